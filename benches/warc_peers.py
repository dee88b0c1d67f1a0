#!/usr/bin/env python3
"""Iterates the records of one gzipped WARC with HTTP headers parsed: ours, fastwarc and warcio, in turns.

Usage: benches/warc_peers.py FILE.warc.gz [ROUNDS]
Needs fastwarc and warcio (PyPI) for the Python that runs it, and the example built:
    cargo build --release -p perennial-warc --example warc_speed
Prints the best round by CPU time of each tool (a busy machine blurs wall time), the ratios, and each tool's peak memory.
"""
import json
import os
import subprocess
import sys

FASTWARC = """
import json, resource, sys, time
from fastwarc.warc import ArchiveIterator
start = time.perf_counter(); cpu = time.process_time(); n = heads = fields = 0
with open(sys.argv[1], 'rb') as f:
    for record in ArchiveIterator(f, parse_http=True):
        n += 1
        if record.http_headers is not None:
            heads += 1; fields += len(record.http_headers)
secs = time.perf_counter() - start
print(json.dumps(dict(tool='fastwarc', secs=secs, cpu_secs=time.process_time() - cpu, n_records=n, n_heads=heads, n_fields=fields,
                      peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
"""
WARCIO = """
import json, resource, sys, time
from warcio.archiveiterator import ArchiveIterator
start = time.perf_counter(); cpu = time.process_time(); n = heads = fields = 0
with open(sys.argv[1], 'rb') as f:
    for record in ArchiveIterator(f):
        n += 1
        if record.http_headers is not None:
            heads += 1; fields += len(record.http_headers.headers)
secs = time.perf_counter() - start
print(json.dumps(dict(tool='warcio', secs=secs, cpu_secs=time.process_time() - cpu, n_records=n, n_heads=heads, n_fields=fields,
                      peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
"""


def run(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    path = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
    ours = os.path.join(target, "release", "examples", "warc_speed")
    commands = [[ours, path, "read"], [sys.executable, "-c", FASTWARC, path], [sys.executable, "-c", WARCIO, path]]
    best = {}
    for _ in range(rounds):
        for command in commands:
            result = run(command)
            if result["cpu_secs"] < best.get(result["tool"], {"cpu_secs": 1e9})["cpu_secs"]:
                best[result["tool"]] = result
    size = os.path.getsize(path) / 1e6
    for tool, result in best.items():
        print(f"{tool:10} {result['cpu_secs']:8.3f} s of CPU, {result['secs']:8.3f} s {size / result['secs']:8.1f} MB/s (compressed)"
              f" {result['n_records']:8} records {result['n_heads']:8} heads {result['peak_mb']:7.1f} MB peak")
    secs = best["perennial"]["cpu_secs"]
    ratios = [best[peer]["cpu_secs"] / secs for peer in ("fastwarc", "warcio")]
    print(f"by CPU time: {ratios[0]:.2f} x fastwarc, {ratios[1]:.2f} x warcio")
    print(json.dumps(run([ours, path, "write"])))


if __name__ == "__main__":
    main()
