#!/usr/bin/env python3
"""Serves real page histories as living sites on loopback, and crawls them for two virtual weeks.

    python3 living_site.py BINARY FOLDER [--days 14] [--budget 0.1] [--renderer layout|auto]

FOLDER holds SITE/PAGE/NNN_TIME.html, the successive versions of real pages. The history of each page is spread over the
days. Links to pages outside the folder are dead. Each site also has a redirect per page, a PDF, a JSON file, a page rendered
by a script, and pages that vanish, of which half return. The server's own request log is the witness: which share of the
page visits went to URLs that never were pages and to redirects that did not change, and whether `perennial changes` has
every page that vanished.
"""

import argparse
import collections
import datetime
import http.server
import json
import pathlib
import re
import subprocess
import tempfile
import threading

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
SHELL = b"<title>App</title><body><div id=app></div><script src=/app.js></script>"
SCRIPT = b"fetch('/app.json').then(r=>r.json()).then(d=>{document.getElementById('app').textContent=d.text})"


def pdf(text):
    """A minimal PDF with a line of text."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    return (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"
        b"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n"
        b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n" % (len(stream), stream)
    )


class Site:
    """One site: its pages' versions, spread over the days."""

    def __init__(self, folder, days):
        self.days = days
        self.pages = {}
        for page in sorted(path for path in folder.iterdir() if path.is_dir()):
            versions = sorted(page.glob("*.html"))
            path = "/" + page.name.replace("__", "/").removeprefix("output/").removeprefix("www/")
            path = re.sub(r"(^|/)index\.html$", r"\1", path)
            times = [datetime.datetime.strptime(v.stem.split("_")[1], "%Y%m%dT%H%M%S") for v in versions]
            span = (times[-1] - times[0]).total_seconds() or 1.0
            shares = [(time - times[0]).total_seconds() / span for time in times]
            self.pages[path] = (shares, [version.read_bytes() for version in versions])
        # A third of the pages vanish after half of the time; half of those return after three quarters.
        names = sorted(self.pages)
        self.vanishing = {path: number % 2 == 0 for number, path in enumerate(names[1::3])}
        self.asked = []

    def answer(self, path, day):
        """Status, media type, fields, body."""
        share = day / self.days
        if path == "/":
            if "/" in self.pages:
                front = self.version("/", share)
            else:
                front = b"<h1>Site</h1>"
            links = [*self.pages, *(f"/moved{name}" for name in self.pages), "/report.pdf", "/data.json", "/app"]
            listing = "".join(f'<a href="{link}">{link}</a> ' for link in links)
            return 200, "text/html", {}, front + f"<p>{listing}</p>".encode()
        if path in self.vanishing and share > 0.5 and not (self.vanishing[path] and share > 0.75):
            return 404, "text/html", {}, b"gone"
        if path in self.pages:
            return 200, "text/html", {}, self.version(path, share)
        if path.startswith("/moved/") and path.removeprefix("/moved") in self.pages:
            return 301, "text/html", {"Location": path.removeprefix("/moved")}, b""
        edition = int(day * 2)
        if path == "/report.pdf":
            return 200, "application/pdf", {}, pdf(f"Report, edition {edition}")
        if path == "/data.json":
            return 200, "application/json", {}, json.dumps({"edition": edition}).encode()
        if path == "/app":
            return 200, "text/html", {}, SHELL
        if path == "/app.js":
            return 200, "text/javascript", {}, SCRIPT
        if path == "/app.json":
            return 200, "application/json", {}, json.dumps({"text": f"Words of edition {edition}"}).encode()
        return 404, "text/html", {}, b"not here"

    def version(self, path, share):
        shares, versions = self.pages[path]
        return versions[max(0, sum(1 for at in shares if at <= share) - 1)]

    def is_page(self, path):
        return path in self.pages or path in ("/", "/report.pdf", "/data.json", "/app")


def serve(site):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            time = self.headers.get("Perennial-Time")
            day = 0.0
            if time:
                now = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
                day = (now - START).total_seconds() / 86400
            status, kind, fields, body = site.answer(self.path, day)
            site.asked.append((day, self.path, status))
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **fields}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("binary")
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--days", type=float, default=14)
    options.add_argument("--budget", type=float, default=0.1, help="visits an hour for each page that there is")
    options.add_argument("--renderer", default="layout")
    options = options.parse_args()
    sites = {folder.name: Site(folder, options.days) for folder in sorted(options.folder.iterdir()) if folder.is_dir()}
    hosts = {name: serve(site) for name, site in sites.items()}
    n_pages = sum(len(site.pages) + 4 for site in sites.values())
    with tempfile.TemporaryDirectory() as folder:
        base = [options.binary, "--archive", folder + "/archive"]
        subprocess.run([options.binary, "init", folder + "/archive"], check=True, stdout=subprocess.DEVNULL)
        for host in hosts.values():
            add = ["add", host + "/", "--allow-private", "--renderer", options.renderer]
            subprocess.run(base + add, check=True, stdout=subprocess.DEVNULL)
        budget = f"{max(1, round(options.budget * n_pages))}/1h"
        crawl = ["run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0", "--budget", budget]
        subprocess.run(base + crawl + ["--time-limit", f"{options.days}d"], stderr=subprocess.DEVNULL)
        log = subprocess.run(base + ["changes", "--json"], capture_output=True, text=True).stdout
        changes = json.loads(log)
        visits = [json.loads(line) for line in open(folder + "/archive/crawl.log", encoding="utf-8")]
    report(sites, hosts, visits, changes, budget)


def report(sites, hosts, visits, changes, budget):
    pages = [visit for visit in visits if visit["kind"] == "page"]
    of_url = {host: sites[name] for name, host in hosts.items()}

    def place(url):
        match = re.match(r"(http://[^/]+)(/.*)", url)
        return of_url.get(match[1]), match[2]

    never, redirects, kinds = 0, 0, collections.Counter()
    for visit in pages:
        site, path = place(visit["url"])
        is_redirect = path.startswith("/moved/") and site.is_page(path.removeprefix("/moved"))
        kinds["redirect" if is_redirect else "page" if site.is_page(path) else "never a page"] += 1
        redirects += is_redirect
        never += not is_redirect and not site.is_page(path)
    seen = {change["url"] for change in changes if change["kind"] == "vanished"}
    returned = {change["url"] for change in changes if change["kind"] == "returned"}
    vanishing = [(hosts[name] + path, comes) for name, site in sites.items() for path, comes in site.vanishing.items()]
    visited = {visit["url"] for visit in pages}
    unseen = [hosts[name] + path for name, site in sites.items() for path in site.pages if hosts[name] + path not in visited]
    print(f"pages that were never visited: {len(unseen)} of {sum(len(site.pages) for site in sites.values())}")
    print(f"budget {budget}, page visits {len(pages)}: {dict(kinds)}")
    print(f"to addresses that never were pages: {100 * never / len(pages):.1f} %")
    print(f"to redirects, none of which changed: {100 * redirects / len(pages):.1f} %")
    print(f"pages that vanished: {len(vanishing)}, reported: {sum(url in seen for url, _ in vanishing)}")
    print(f"of them came back: {sum(comes for _, comes in vanishing)}, reported: {sum(url in returned for url, _ in vanishing)}")
    print(f"changes: {dict(collections.Counter(change['kind'] for change in changes))}")


if __name__ == "__main__":
    main()
