#!/usr/bin/env python3
"""Measures requests per second and memory of Perennial's server and of pywb on the same WARC files, one after the other.

    python3 load.py DIR --perennial target/release/perennial --pywb VENV/bin [--seconds 30] [--connections 64]

pywb runs under uWSGI with gevent, as its manual recommends (`pip install pywb uwsgi gevent`). `wrk` (Debian) makes the
load: a small page as captured (id_), the same page rewritten (mp_), and the CDX lines of one URL.
"""

import argparse
import os
import pathlib
import re
import subprocess
import tempfile
import time

from compare import SUFFIXES, ask, read_index, quote, serve_perennial, serve_pywb, wait_for

UWSGI = """[uwsgi]
http-socket = 127.0.0.1:{port}
master = true
buffer-size = 65536
die-on-term = true
env = PYWB_CONFIG_FILE=./config.yaml
wsgi = pywb.apps.wayback
gevent = 100
gevent-monkey-patch = true
processes = {processes}
"""


def memory_of(process):
    """Resident MB of a process and its children."""
    total = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        pid, parent = (int(re.search(rf"^{name}:\s*(\d+)", text, re.M).group(1)) for name in ("Pid", "PPid"))
        resident = re.search(r"^VmRSS:\s*(\d+)", text, re.M)
        if process.pid in (pid, parent) and resident:
            total += int(resident.group(1))
    return total / 1024


def load(address, options):
    command = ["wrk", "-t2", f"-c{options.connections}", f"-d{options.seconds}s", "--timeout", "30s", "--latency", address]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1))
    median = re.search(r"50%\s+(\S+)", text)
    errors = re.search(r"Socket errors:.*", text), re.search(r"Non-2xx.*", text)
    return rate, median and median.group(1), "; ".join(error.group(0) for error in errors if error)


def serve_pywb_well(options, files, folder):
    server, _, index = serve_pywb(options.pywb, files, folder, options.port, set())
    server.terminate()
    server.wait()
    home = index.parents[3]
    (home / "config.yaml").write_text("")
    (home / "uwsgi.ini").write_text(UWSGI.format(port=options.port, processes=os.cpu_count()))
    log = open(folder / "uwsgi.log", "w")
    bin_dir = pathlib.Path(options.pywb).absolute()
    command = [bin_dir / "uwsgi", "--virtualenv", bin_dir.parent, "uwsgi.ini"]
    return subprocess.Popen(command, cwd=home, stdout=log, stderr=log), f"127.0.0.1:{options.port}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--perennial", default="target/release/perennial")
    parser.add_argument("--pywb", required=True)
    parser.add_argument("--port", type=int, default=8191)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--url", default="http://www.iana.org/", help="a page that is in the files")
    options = parser.parse_args()
    files = sorted(file for file in options.dir.rglob("*") if file.name.endswith(SUFFIXES))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print("| server | what | requests a second | median | memory MB | errors |\n|---|---|---|---|---|---|")
        process, host = serve_perennial(options.perennial, files, folder, set())
        try:
            query = f"/cdx?url={quote(options.url).replace('?', '%3F').replace('&', '%26')}"
            rows = [row for row in read_index(ask(host, query)[2].decode()) if row[2].get("status") == "200"]
            stamp, url = rows[0][1], quote(rows[0][2]["url"])
            measure("perennial", process, host, f"/web/{stamp}", url, query, options)
        finally:
            process.terminate()
            process.wait()
        process, host = serve_pywb_well(options, files, folder)
        try:
            wait_for(host)
            measure("pywb", process, host, f"/c/{stamp}", url, "/c" + query, options)
        finally:
            process.terminate()
            time.sleep(2)
            process.kill()
            process.wait()


def measure(name, process, host, prefix, url, query, options):
    for what, path in (("id_", f"{prefix}id_/{url}"), ("mp_", f"{prefix}mp_/{url}"), ("CDX", query)):
        status = ask(host, path)[0]
        rate, median, errors = load(f"http://{host}{path}", options)
        print(f"| {name} | {what} ({status}) | {rate:.0f} | {median} | {memory_of(process):.0f} | {errors or 'none'} |", flush=True)


if __name__ == "__main__":
    main()
