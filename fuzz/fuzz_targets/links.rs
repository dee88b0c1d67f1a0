//! Any bytes as a response: its canonical links are found as a crawl does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::http::soft_error::html_title;
use perennial_core::text::charset::decode_with_charset;
use perennial_core::text::links::{MAX_LINKS, find_css_links, find_links};
use perennial_core::url::canonical::canonicalise;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{DecodingLimits, decode};

fuzz_target!(|data: &[u8]| {
    let head = HttpHead::parse(data);
    let limits = DecodingLimits { max_bytes: 1 << 20, max_ratio: 100 };
    let body = decode(&head, &data[head.len()..], limits).bytes;
    let (text, charset) = decode_with_charset(&body, head.get("Content-Type").as_deref());
    let page = url::Url::parse("https://example.org/a/b?c").expect("a URL");
    let links = find_links(&text, &page, charset);
    assert!(links.len() <= MAX_LINKS);
    for link in links.into_iter().chain(find_css_links(&text, &page)) {
        assert!(matches!(link.url.scheme(), "http" | "https") && link.url.fragment().is_none());
        if let Some(url) = canonicalise(link.url) {
            assert_eq!(canonicalise(url.clone()).as_ref(), Some(&url));
        }
    }
    let _ = html_title(&text);
});
