#!/usr/bin/env python3
"""Measures how long Perennial and pywb take to add WARC files, in processor time and on the clock, one after the other.

    python3 import.py FOLDER --perennial target/release/perennial --pywb VENV/bin [--captures 5000,100000]

FOLDER gets a WARC file for each number of captures: a third pages with twenty links, the others style sheets and images.
Perennial copies and hashes the file, checks every digest and stores captures, versions and links; the analysis of the
pages is a command of its own and not measured. pywb copies the file and writes an index.
"""

import argparse
import gzip
import pathlib
import random
import resource
import shutil
import subprocess
import time
import uuid


def write_warc(path, n_captures):
    chance = random.Random(7)
    letters = "abcdefghijklmnop"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(3000)]
    n_pages = max(1, n_captures // 4)
    with open(path, "wb") as out:
        for n in range(n_captures):
            page = n % n_pages
            url = f"http://site{page % 50}.example/{'p' if n % 3 == 0 else 's'}/{page}"
            if n % 3 == 0:
                mime = "text/html; charset=utf-8"
                links = "".join(
                    f'<p><a href="/p/{chance.randrange(n_pages)}">{chance.choice(words)}</a> {" ".join(chance.choices(words, k=30))}</p>'
                    for _ in range(20)
                )
                body = f"<html><head><title>Page {page}</title></head><body>{links}</body></html>"
            else:
                mime = "text/css" if n % 3 == 1 else "image/png"
                body = " ".join(chance.choices(words, k=600))
            date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_600_000_000 + n * 100))
            block = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            head = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
                f"WARC-Record-ID: <urn:uuid:{uuid.UUID(int=n)}>\r\nContent-Type: application/http; msgtype=response\r\n"
                f"Content-Length: {len(block)}\r\n\r\n"
            )
            out.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 1))


def measured(command, folder):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--perennial", type=pathlib.Path, default="target/release/perennial")
    parser.add_argument("--pywb", type=pathlib.Path, required=True, help="the bin folder of a virtual environment")
    parser.add_argument("--captures", default="5000,100000")
    options = parser.parse_args()
    print("| captures | Perennial: processor, clock | pywb: processor, clock | microseconds of processor per capture | ratio |")
    print("|---|---|---|---|---|")
    for n_captures in map(int, options.captures.split(",")):
        folder = (options.folder / str(n_captures)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        warc = folder / "captures.warc.gz"
        if not warc.exists():
            write_warc(warc, n_captures)
        for name in ("archive", "collections"):
            shutil.rmtree(folder / name, ignore_errors=True)
        program, manager = options.perennial.absolute(), options.pywb.absolute() / "wb-manager"
        ours = measured([program, "--archive", folder / "archive", "import", "--create", "--no-analysis", warc], folder)
        subprocess.run([manager, "init", "c"], cwd=folder, check=True, capture_output=True)
        theirs = measured([manager, "add", "c", warc], folder)
        each = [1e6 * cpu / n_captures for cpu, _ in (ours, theirs)]
        print(
            f"| {n_captures} | {ours[0]:.1f} s, {ours[1]:.1f} s | {theirs[0]:.1f} s, {theirs[1]:.1f} s "
            f"| {each[0]:.0f}, {each[1]:.0f} | {each[1] / each[0]:.2f} |"
        )


if __name__ == "__main__":
    main()
