#!/usr/bin/env python3
"""Measures the dashboard of an archive of very many captures: medians from a cold start, and many readers during a crawl.

    python3 load.py FOLDER --perennial target/release/perennial [--captures 1000000] [--seconds 30] [--connections 64]

FOLDER gets an archive that a second run reuses. Five thousand URLs on twenty hosts are captured repeatedly, with texts of a
few paragraphs. Each version lasts for twenty captures of its page and changes one paragraph. Then a site on this machine is
crawled into the same archive for SECONDS, TURNS times without readers and as often with CONNECTIONS of them. The readers
request home, a site, a page, changes and searches in turn.
"""

import argparse
import functools
import gzip
import http.client
import http.server
import json
import multiprocessing
import os
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import threading
import time
import urllib.parse
import uuid

N_PAGES, N_HOSTS, N_DIRECTORIES = 5000, 20, 12
N_CRAWLED = 20_000  # pages of the site that is crawled; their first visits are spread over what is left of an hour
WORDS = "harbour council ferry bridge winter market limit value school river garden letter signal voyage copper lantern meadow island".split()


def url_of(page):
    return f"http://host{page % N_HOSTS}.example/{page // N_HOSTS % N_DIRECTORIES}/{page}"


# Each version is made once. Pages are captured in turns, so the last two versions of each suffice.
@functools.lru_cache(maxsize=2 * N_PAGES)
def body_of(page, version):
    said = []
    for place in range(6):
        # One paragraph differs from the previous version.
        own = random.Random(f"{page} {place} {(version + 5 - place) // 6}")
        said.append(" ".join(own.choice(WORDS) for _ in range(12)) + f" p{page}")
    return f"<title>Page {page}</title><h1>Page {page}</h1>" + "".join(f"<p>{text}</p>" for text in said)


def write_warc(path, n_captures):
    chance = random.Random(7)
    seen = [0] * N_PAGES
    with open(path, "wb") as out:
        for n in range(n_captures):
            page = 0 if n % 10 == 0 else chance.randrange(1, N_PAGES)
            seen[page] += 1
            date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_600_000_000 + n * 100))
            text = body_of(page, seen[page] // 20).encode()
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + text
            head = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url_of(page)}\r\nWARC-Date: {date}\r\n"
                f"WARC-Record-ID: <urn:uuid:{uuid.UUID(int=n)}>\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            out.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 1))


def paths(chance):
    url, word = url_of(chance.randrange(1, N_PAGES)), chance.choice(WORDS)
    return {
        "home": "/",
        "site": f"/site/host{chance.randrange(N_HOSTS)}.example",
        "page": f"/page?url={urllib.parse.quote(url, safe='')}",
        "changes": "/changes",
        "changes of a site, updated texts": f"/changes?site=host{chance.randrange(N_HOSTS)}.example&op=update&element=text",
        "changes, words that appeared": f"/changes?appears=%22{word}%20p{chance.randrange(1, N_PAGES)}%22",
        "changes by importance": "/changes?order=importance&least=0.3",
        "search, two words": f"/search?q={word}%20p{chance.randrange(1, N_PAGES)}",
        "search, a frequent word": f"/search?q={word}",
        "terms": "/terms",
    }


def ask(host, path, timeout=60):
    connection = http.client.HTTPConnection(host, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, len(answer.read())
    finally:
        connection.close()


def serve(options, archive):
    command = [options.perennial, "--archive", archive, "--json", "serve", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    told = ""
    while not told.rstrip().endswith("}"):
        told += server.stdout.readline()
    return server, json.loads(told)["address"].removeprefix("http://")


def resident_mb(pid):
    return int(re.search(r"^VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1)) / 1024


def cpu_ms(pid):
    """CPU milliseconds of all threads of a process: the cost of a request, however busy the machine is."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def cold(options, archive):
    times, chance = {}, random.Random(11)
    for _ in range(options.rounds):
        for what in paths(random.Random(1)):
            # Each request goes to a new server, which has read nothing yet.
            server, host = serve(options, archive)
            began, computed = time.perf_counter(), cpu_ms(server.pid)
            status, size = ask(host, paths(chance)[what])
            first, computed = 1000 * (time.perf_counter() - began), cpu_ms(server.pid) - computed
            began = time.perf_counter()
            ask(host, paths(chance)[what])
            times.setdefault(what, []).append((first, 1000 * (time.perf_counter() - began), computed, status, size))
            server.terminate()
            server.wait()
    print("| question | first, median ms | worst | computed, median ms | second, median ms | status | bytes |\n|---|---|---|---|---|---|---|")
    for what, rows in times.items():
        first, second, computed = ([row[place] for row in rows] for place in range(3))
        figures = [statistics.median(first), max(first), statistics.median(computed), statistics.median(second)]
        print(f"| {what} | {' | '.join(f'{figure:.0f}' for figure in figures)} | {rows[0][3]} | {rows[0][4]} |", flush=True)


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    n = 0

    def do_GET(self):
        Site.n += 1
        if self.path == "/":
            body = "".join(f"<a href=/{n}>Page {n}</a> " for n in range(N_CRAWLED))
        else:
            body = f"<h1>{self.path}</h1><p>What request number {Site.n} found here, in a sentence.</p>"
        data = f"<title>Site</title>{body}".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve_site(told):
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    told.put(f"http://127.0.0.1:{site.server_address[1]}/")
    site.serve_forever()


def crawled(options, archive):
    """Fetches per second of a crawl of the given time, from its first capture to its last, and their number."""
    state = sqlite3.connect(f"file:{archive / 'state.db'}?mode=ro", uri=True)
    last = state.execute("SELECT max(id) FROM captures").fetchone()[0]
    command = [options.perennial, "--archive", archive, "run", "--no-serve", "--allow-private", "--time-limit", f"{options.seconds}s", "--delay", "10ms",
               "--budget", "100000/1h"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 15):
        raise SystemExit(ended.stderr)
    n, first, latest = state.execute("SELECT count(*), min(time), max(time) FROM captures WHERE id > ?", [last]).fetchone()
    state.close()
    return (n - 1) / max((latest - first) / 1000, 1), n


def readers(host, n_connections, until, told):
    """Runs in a separate process with low priority, because readers are on other machines."""
    os.nice(15)
    rows = []

    def read(number):
        chance = random.Random(f"{number} {time.time()}")
        while not until.is_set():
            what, path = chance.choice(list(paths(chance).items()))
            began = time.perf_counter()
            try:
                status, _ = ask(host, path)
            except (OSError, http.client.HTTPException) as error:
                status = repr(error)
            rows.append((what, 1000 * (time.perf_counter() - began), status))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(n_connections)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    told.put(rows)


def beside(options, archive):
    ports, told = multiprocessing.Queue(), multiprocessing.Queue()
    site = multiprocessing.Process(target=serve_site, args=(ports,), daemon=True)
    site.start()
    address = ports.get()
    subprocess.run([options.perennial, "--archive", archive, "add", address, "--allow-private", *options.add], check=True, capture_output=True)
    crawled(options, archive)  # The first crawl finds the addresses.
    pairs, rows, most = [], [], 0
    # Alternating, so that other work on the machine affects both.
    for turn in range(options.turns):
        print(f"turn {turn + 1}, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        alone = crawled(options, archive)
        server, host = serve(options, archive)
        until = multiprocessing.Event()
        crowd = multiprocessing.Process(target=readers, args=(host, options.connections, until, told))
        crowd.start()
        found = []
        crawl = threading.Thread(target=lambda: found.append(crawled(options, archive)))
        crawl.start()
        while crawl.is_alive():
            most = max(most, resident_mb(server.pid))
            time.sleep(0.5)
        until.set()
        rows += told.get()
        crowd.join()
        server.terminate()
        server.wait()
        pairs.append((alone, found[0]))
        print(f"  {alone[0]:.2f} fetches a second alone ({alone[1]}), {found[0][0]:.2f} beside {options.connections} readers ({found[0][1]})", flush=True)
    site.terminate()
    subprocess.run([options.perennial, "--archive", archive, "remove", address], check=True, capture_output=True)
    wrong = [row for row in rows if row[2] != 200]
    print(f"\n{len(rows)} answers, {len(wrong)} errors {wrong[:3]}, server at most {most:.0f} MB")
    without, within = (statistics.mean(pair[place][0] for pair in pairs) for place in range(2))
    print(f"crawl: {without:.2f} fetches a second alone, {within:.2f} beside the readers: {100 * (without - within) / without:.1f} % lost")
    for what in sorted({row[0] for row in rows}):
        spans = [row[1] for row in rows if row[0] == what]
        print(f"  {what}: median {statistics.median(spans):.0f} ms of {len(spans)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--perennial", default="target/release/perennial")
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3, help="crawls without and with readers")
    parser.add_argument("--only", choices=["cold", "beside"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--make-only", action="store_true")
    parser.add_argument("--add", nargs="*", default=[], help="more options of `perennial add`")
    options = parser.parse_args()
    archive, warc = options.folder / "archive", options.folder / "many.warc.gz"
    if not archive.exists():
        options.folder.mkdir(exist_ok=True)
        if not warc.exists():
            write_warc(warc, options.captures)
        subprocess.run([options.perennial, "init", archive], check=True)
        subprocess.run([options.perennial, "--archive", archive, "import", warc], check=True)
        warc.unlink()
    if options.make_only:
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    if options.only != "beside":
        cold(options, archive)
    if options.only != "cold":
        beside(options, archive)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
