#!/usr/bin/env python3
"""Measures requests to a server of very many captures: medians from a cold start.

    python3 many.py FOLDER --perennial target/release/perennial [--captures 1000000]

FOLDER gets a WARC file and an archive (about 0.7 GB for a million), which a second run reuses. A thousand URLs on ten hosts
are captured repeatedly; one URL has a tenth of all captures.
"""

import argparse
import gzip
import json
import pathlib
import random
import statistics
import subprocess
import time
import uuid

from compare import ask


def write_warc(path, n_captures):
    chance = random.Random(7)
    with open(path, "wb") as out:
        for n in range(n_captures):
            page = 0 if n % 10 == 0 else chance.randrange(1, 1000)
            seconds = 1_600_000_000 + n * 100
            date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nversion %d of page %d" % (n // 5000, page)
            head = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://host{page % 10}.example/{page}\r\nWARC-Date: {date}\r\n"
                f"WARC-Record-ID: <urn:uuid:{uuid.UUID(int=n)}>\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            out.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--perennial", default="target/release/perennial")
    parser.add_argument("--captures", type=int, default=1_000_000)
    options = parser.parse_args()
    archive, warc = options.folder / "archive", options.folder / "many.warc.gz"
    if not archive.exists():
        options.folder.mkdir(exist_ok=True)
        write_warc(warc, options.captures)
        subprocess.run([options.perennial, "init", archive], check=True)
        subprocess.run([options.perennial, "--archive", archive, "import", "--no-analysis", warc], check=True)
        warc.unlink()
    chance = random.Random(11)
    times = {}
    # Each round starts a new server, which has read nothing yet.
    for _ in range(9):
        command = [options.perennial, "--archive", archive, "--json", "serve", "--listen", "127.0.0.1:0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        told = ""
        while not told.rstrip().endswith("}"):
            told += server.stdout.readline()
        host = json.loads(told)["url"].removeprefix("http://").rstrip("/")
        page = chance.randrange(1, 1000)
        url = f"http://host{page % 10}.example/{page}"
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(1_600_000_000 + chance.randrange(options.captures * 100)))
        often = "http://host0.example/0"
        for what, path in (
            ("CDX of an address", f"/cdx?url={url}"),
            ("CDX closest", f"/cdx?url={often}&closest={stamp}&limit=10"),
            ("CDX of a host, 1,000 rows", f"/cdx?url=host3.example&matchType=host&limit=1000"),
            ("TimeMap of an address", f"/web/timemap/link/{url}"),
            ("TimeMap of the address with a tenth of all, one page", f"/web/timemap/link/{often}"),
            ("calendar", f"/web/*/{url}"),
            ("calendar of the address with a tenth of all", f"/web/*/{often}"),
            ("replay", f"/web/{stamp}id_/{url}"),
            ("replay of the address with a tenth of all", f"/web/{stamp}id_/{often}"),
        ):
            began = time.perf_counter()
            status, _, body = ask(host, path)
            times.setdefault(what, []).append((1000 * (time.perf_counter() - began), status, len(body)))
        server.terminate()
        server.wait()
    print("| question | median ms | worst ms | status | bytes |\n|---|---|---|---|---|")
    for what, rows in times.items():
        spans = [row[0] for row in rows]
        print(f"| {what} | {statistics.median(spans):.1f} | {max(spans):.1f} | {rows[0][1]} | {rows[0][2]} |")


if __name__ == "__main__":
    main()
