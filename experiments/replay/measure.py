"""Crawls a small living site, and counts what other tools show of its captures.

Usage: measure.py PERENNIAL PYTHON [NODE_FOLDER]

PERENNIAL is the program, PYTHON one that has pywb 2.10.0, NODE_FOLDER a folder with `npm install @webrecorder/wabac@2.24.2
fake-indexeddb`. Without NODE_FOLDER ReplayWeb.page is left out.
"""

import collections
import datetime
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
WEATHER = ["sunny", "cloudy", "windy", "rainy", "foggy", "frosty", "mild"]


def page(path, hour):
    """The site's page at an hour, and words of it: the story changes every nine hours, its margin every three."""
    if path == "/":
        edition = hour // 9
        line = "<p>Edition %d reports in line %d: %s</p>"
        story = "".join(line % (edition, n, "word of it " * (20 + edition)) for n in range(12))
        weather = WEATHER[hour // 3 % len(WEATHER)]
        body = f"<main><h1>The story of edition {edition}</h1>{story}</main><footer><p>Outside it is {weather}</p></footer>"
        return body + "<a href=/one>one</a> <a href=/two>two</a>", f"Edition {edition} reports"
    if path in ("/one", "/two"):
        return "<p>The same words at two addresses, long enough to be read</p>" * 5, "The same words"
    return None


class Site(http.server.BaseHTTPRequestHandler):
    """Serves the site at the crawl's virtual time, and records what it served."""

    protocol_version = "HTTP/1.1"
    shown, sent = {}, collections.Counter()

    def log_message(self, *_):
        pass

    def do_GET(self):
        said = self.headers.get("Perennial-Time", START.isoformat()).replace("Z", "+00:00")
        now = datetime.datetime.fromisoformat(said)
        found = page(self.path, int((now - START).total_seconds() // 3600))
        body = found[0].encode() if found else b""
        etag = '"%s"' % hashlib.sha1(body).hexdigest()
        if found:
            Site.shown[self.path, now.strftime("%Y%m%d%H%M%S")] = found[1]
        is_same = found and self.headers.get("If-None-Match") == etag
        self.send_response(304 if is_same else 200 if found else 404)
        self.send_header("ETag", etag)
        self.send_header("Content-Type", "text/html")
        if is_same:
            self.end_headers()
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        Site.sent.update(bodies=bool(found), bytes=len(body))


def judged(lines):
    """Counts views: correct is status 200 with the words valid at the time."""
    counts = collections.Counter()
    for view in map(json.loads, lines.splitlines()):
        words = Site.shown.get(("/" + view["url"].split("/", 3)[3], view["time"]))
        if words is None:
            continue
        is_right = view["status"] == 200 and words in view["text"]
        what = "right" if is_right else "Vi-Delta" if "<Delta" in view["text"] else "other version" if view["text"] else "nothing"
        counts[what] += 1
    return dict(counts)


def measure(perennial, python, node, keep):
    Site.shown, Site.sent = {}, collections.Counter()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tempfile.mkdtemp()

    def run(*arguments, code=0):
        command = [perennial, "--archive", f"{folder}/archive", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done
        return done.stdout

    def views(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    run("init")
    run("add", f"http://127.0.0.1:{server.server_port}/", "--allow-private", "--keep", keep)
    lapse = ["--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"]
    run("run", "--no-serve", *lapse, "--strategy", "fixed-interval", "--interval", "1h", "--time-limit", "36h", code=15)
    run("export", "--format", "cdxj", "-o", f"{folder}/x.cdxj")
    run("export", "--format", "wacz", "-o", f"{folder}/x.wacz")
    info = json.loads(run("status", "--json"))
    print(f"keep = {keep}: {dict(Site.sent)}, {info['n_left_out']} left out, {info['warc_bytes']} bytes of WARC")
    in_pywb = f"{HERE}/../../tests/it/replay_in_pywb.py"
    print("  pywb, live index:", judged(views(python, in_pywb, f"{folder}/x.cdxj", f"{folder}/archive/warc")))
    if node:
        script = f"{node}/replaywebpage.mjs"
        shutil.copy(f"{HERE}/replaywebpage.mjs", script)
        print("  ReplayWeb.page, WACZ:", judged(views("node", script, f"{folder}/x.wacz", f"{folder}/x.cdxj")))
    server.shutdown()
    shutil.rmtree(folder)


for kept in ["all", "important"]:
    measure(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None, kept)
