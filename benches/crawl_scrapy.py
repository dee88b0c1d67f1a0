"""A scrapy crawl of one host that writes gzipped WARC through warcio: crawl_scrapy.py URL FILE."""
import io
import re
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

URL, FILE = sys.argv[1:3]
OUT = open(FILE, "wb")
WRITER = WARCWriter(OUT, gzip=True)


class SiteSpider(scrapy.Spider):
    name = "site"
    start_urls = [URL]
    extractor = LinkExtractor(allow=re.escape(URL.rsplit("/", 1)[0]))

    def parse(self, response):
        headers = [(name.decode(), value.decode()) for name, values in response.headers.items() for value in values]
        http = StatusAndHeaders(f"{response.status} OK", headers, protocol="HTTP/1.1")
        record = WRITER.create_warc_record(response.url, "response", payload=io.BytesIO(response.body), http_headers=http)
        WRITER.write_record(record)
        for link in self.extractor.extract_links(response):
            yield response.follow(link)


process = CrawlerProcess({
    "LOG_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "AUTOTHROTTLE_ENABLED": False,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "HTTPCACHE_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
})
process.crawl(SiteSpider)
process.start()
OUT.close()
