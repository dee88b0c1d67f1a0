#!/usr/bin/env python3
"""Compares Perennial with urlwatch and changedetection.io on ten changing pages whose edits are known.

All three watch the same pages of a local server, each set up as its documentation says, once a minute. Each page has a
clock, a counter of visitors and a rotating advertisement; some have edits in the middle of their text. An edit has
words that no other text has. It counts as reported if a notice contains its words.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

N_PAGES = 10
WORDS = ["amber", "birch", "cedar", "dahlia", "elder", "fennel", "ginger", "hazel", "iris", "juniper"]
ADS = ["Cheap flights to the south", "Win a new car today", "Loans without questions", "Lose weight in a week"]


class Web:
    """The pages, and the receiver of notices."""

    def __init__(self, minutes, every):
        self.began = time.time()
        self.edits = self.script(minutes * 60, every)
        self.n_requests = {}
        self.notices = []
        self.lock = threading.Lock()
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                number = re.fullmatch(r"/p(\d+)", self.path)
                self.reply(*((200, web.page(int(number[1]))) if number else (404, "not here")))

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8", "replace")
                with web.lock:
                    web.notices.append((self.path.strip("/"), time.time() - web.began, body))
                self.reply(200, "")

            def reply(self, status, text):
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def script(seconds, every):
        """(time, page, words): edits of a page are two to four intervals apart, the first after everyone looked twice."""
        edits = []
        for page in range(N_PAGES):
            at, nth = 3 * every + 7 * page, 0
            while at < seconds - 2 * every:
                edits.append((at, page, f"{WORDS[page]} {100 * (page + 1) + nth}"))
                at, nth = at + (2 + (page * 7 + nth * 3) % 3) * every + 11, nth + 1
        return sorted(edits)

    def page(self, page):
        with self.lock:
            n = self.n_requests[page] = self.n_requests.get(page, 0) + 1
        passed = time.time() - self.began
        done = [words for at, of, words in self.edits if of == page and at <= passed]
        news = f"Since the last delivery we offer {done[-1]} at a lower price." if done else "Nothing to report yet."
        return (
            f"<!doctype html><html><head><title>Shop {page}</title></head><body><h1>Shop number {page}</h1><main>"
            f"<p>Welcome to the shop on the corner, which has sold plants and seeds for eighty years.</p><p>{news}</p>"
            f"<p>Our opening hours are from nine to six on every day but Sunday.</p></main>"
            f'<aside class="ad"><a href="https://ads.example/{n}">{ADS[n % len(ADS)]}</a></aside>'
            f"<footer>Page generated at {time.strftime('%H:%M:%S')}. {4000 + 17 * n} visitors so far.</footer></body></html>"
        )

    def url(self, page):
        return f"http://127.0.0.1:{self.port}/p{page}"


def perennial(web, folder, binary, every):
    archive = ["--archive", str(folder / "perennial")]
    for page in range(N_PAGES):
        notify = f"webhook:http://127.0.0.1:{web.port}/perennial"
        command = [binary, *archive, "watch", web.url(page), "--every", f"{every}s", "--notify", notify, "--allow-private"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return subprocess.Popen([binary, *archive, "run", "--no-serve"], stderr=open(folder / "perennial.log", "w"))


def urlwatch(web, folder, binary, every):
    (folder / "urls.yaml").write_text("---\n".join(f"name: p{n}\nurl: {web.url(n)}\nfilter:\n  - html2text\n" for n in range(N_PAGES)))
    (folder / "urlwatch.yaml").write_text("report:\n  text:\n    line_length: 200\n  stdout:\n    enabled: true\n    color: false\n")
    command = [binary, "--urls", folder / "urls.yaml", "--config", folder / "urlwatch.yaml", "--cache", folder / "urlwatch.db"]

    def loop():
        while True:
            began = time.time()
            text = subprocess.run(command, capture_output=True, text=True).stdout
            for part in re.split(r"(?m)^-+\n(?=CHANGED: )", text)[1:]:
                web.notices.append(("urlwatch", time.time() - web.began, part))
            time.sleep(max(0, every - (time.time() - began)))

    threading.Thread(target=loop, daemon=True).start()


def changedetection(web, folder, binary, every):
    data, port = folder / "changedetection", 18000 + os.getpid() % 1000
    data.mkdir()
    env = {**os.environ, "ALLOW_IANA_RESTRICTED_ADDRESSES": "true", "DISABLE_VERSION_CHECK": "true"}
    process = subprocess.Popen(
        [binary, "-d", data, "-p", str(port), "-h", "127.0.0.1"],
        env=env, stdout=open(folder / "changedetection.log", "w"), stderr=subprocess.STDOUT,
    )
    token = None
    while not token:
        time.sleep(1)
        for name in ("changedetection.json", "url-watches.json"):
            try:
                token = json.loads((data / name).read_text())["settings"]["application"]["api_access_token"]
            except (OSError, ValueError, KeyError):
                pass
    for page in range(N_PAGES):
        watch = {
            "url": web.url(page),
            "time_between_check": {"seconds": every},
            "time_between_check_use_default": False,
            "notification_urls": [f"json://127.0.0.1:{web.port}/changedetection"],
            "notification_title": "{{watch_url}}",
            "notification_body": "{{diff}}",
            "notification_format": "text",
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/watch", json.dumps(watch).encode(),
            {"x-api-key": token, "Content-Type": "application/json"},
        )
        for attempt in range(30):
            try:
                urllib.request.urlopen(request, timeout=10)
                break
            except urllib.error.HTTPError as error:
                print("changedetection.io:", error.read().decode()[:300])
                break
            except OSError:
                time.sleep(1)
    return process


def score(web, tool):
    notices = [(at, body) for name, at, body in web.notices if name == tool]
    contains = lambda body, words: re.search(re.escape(words).replace(r"\ ", r"\s+") + r"\b", body) is not None
    delays, n_real = [], sum(any(contains(body, words) for _, _, words in web.edits) for _, body in notices)
    for edited, _, words in web.edits:
        arrivals = [at for at, body in notices if contains(body, words)]
        if arrivals:
            delays.append(min(arrivals) - edited)
    return {
        "tool": tool,
        "edits_reported": len(delays),
        "edits": len(web.edits),
        "notices": len(notices),
        "notices_of_edits": n_real,
        "median_delay_secs": round(statistics.median(delays), 1) if delays else None,
    }


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--perennial", default="perennial", help="the program")
    options.add_argument("--peers", default="", help="a virtual environment with urlwatch and changedetection.io")
    options.add_argument("--minutes", type=float, default=20)
    options.add_argument("--every", type=int, default=60, help="seconds between two visits")
    options = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="watching-"))
    web = Web(options.minutes, options.every)
    print(f"{len(web.edits)} edits in {options.minutes:g} minutes; logs in {folder}")
    tools, processes = ["perennial"], [perennial(web, folder, options.perennial, options.every)]
    if options.peers:
        tools += ["urlwatch", "changedetection"]
        urlwatch(web, folder, f"{options.peers}/bin/urlwatch", options.every)
        processes.append(changedetection(web, folder, f"{options.peers}/bin/changedetection.io", options.every))
    time.sleep(max(0, web.began + options.minutes * 60 - time.time()))
    for process in processes:
        process.send_signal(signal.SIGINT)
    (folder / "notices.json").write_text(json.dumps(web.notices, indent=1))
    for tool in tools:
        print(json.dumps(score(web, tool)))
    for process in processes:
        process.terminate()


if __name__ == "__main__":
    main()
