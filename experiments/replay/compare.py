#!/usr/bin/env python3
"""Compares Perennial and pywb on the same WARC files: captures, bytes, CDX queries, TimeMaps.

    python3 compare.py DIR --perennial target/release/perennial --pywb VENV/bin

DIR holds WARC and ARC files, also in subfolders. pywb is installed from PyPI in a virtual environment. Prints counts and
every difference with the reason that the script recognises. The exit code is 1 if a difference has no such reason.
"""

import argparse
import collections
import http.client
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")


def ask(host, path, fields=None):
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "identity", **(fields or {})})
        answer = connection.getresponse()
        try:
            body = answer.read()
        except (http.client.IncompleteRead, TimeoutError):
            return 599, {}, b"(broken off)"
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body
    finally:
        connection.close()


def wait_for(host):
    for _ in range(200):
        try:
            ask(host, "/")
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nobody answers at {host}")


def quote(url):
    return urllib.parse.quote(url, safe=":/?#[]@!$&'()*+,;=%~|")


def serve_perennial(binary, files, folder, refused):
    archive = folder / "perennial"
    subprocess.run([binary, "init", archive], check=True, stdout=subprocess.DEVNULL)
    for file in files:
        # Damaged files are imported as far as they are readable; the exit code reports it.
        ran = subprocess.run([binary, "--archive", archive, "import", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if ran.returncode:
            refused.add(file.name)
    command = [binary, "--archive", archive, "--json", "serve", "--closest", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    told = ""
    while not told.rstrip().endswith("}"):
        told += server.stdout.readline()
    return server, json.loads(told)["url"].removeprefix("http://").rstrip("/")


def serve_pywb(bin_dir, files, folder, port, refused):
    home = folder / "pywb"
    home.mkdir()
    # These processes run in other folders, so paths must be absolute.
    bin_dir = pathlib.Path(bin_dir).absolute()
    subprocess.run([bin_dir / "wb-manager", "init", "c"], cwd=home, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = open(folder / "pywb.log", "w")
    for place, file in enumerate(files):
        # Files in different folders may have the same name.
        copy = folder / f"{place:03}-{file.name}"
        shutil.copy(file, copy)
        ran = subprocess.run([bin_dir / "wb-manager", "add", "c", copy], cwd=home, stdout=log, stderr=subprocess.PIPE, text=True)
        if ran.returncode or "Traceback" in ran.stderr or "Error" in ran.stderr:
            refused.add(file.name)
    server = subprocess.Popen([bin_dir / "wayback", "-p", str(port), "-b", "127.0.0.1"], cwd=home, stdout=log, stderr=log)
    return server, f"127.0.0.1:{port}", home / "collections/c/indexes/index.cdxj"


def read_index(text):
    rows = []
    for line in text.splitlines():
        parts = line.split(" ", 2)
        if len(parts) == 3 and parts[2].startswith("{"):
            rows.append((parts[0], parts[1], json.loads(parts[2])))
    return rows


def digest_of(row):
    return (row.get("digest") or "").removeprefix("sha1:")


def compare_captures(ours, theirs, refused_here, refused_there):
    """Captures by time and URL; prints those that one side lacks."""
    us = {(time, row["url"]) for _, time, row in ours}
    them = {(time, row["url"]) for _, time, row in theirs}
    print(f"captures: {len(us)} here, {len(them)} in pywb, {len(us & them)} in both")
    reasons = collections.Counter()
    unexplained = 0
    details = {(time, row["url"]): row for _, time, row in ours + theirs}
    for key in sorted(us ^ them):
        row = details[key]
        side = "only here" if key in us else "only in pywb"
        if row.get("mime") in ("application/warc-fields",) or key[1].startswith(("metadata:", "urn:", "dns:", "filedesc:")):
            reason = "records without HTTP"
        elif any(other[0] == key[0] and quote(other[1]) == quote(key[1]) or other == (key[0], key[1].replace(" ", "%20")) for other in us ^ them if other != key):
            reason = "the address is written in another form"
        elif key in us and row.get("filename") in refused_there:
            reason = "in a file at which pywb's indexer stops"
        elif key in them and (row.get("filename") or "")[4:] in refused_here:
            reason = "in a file with records that the import sets aside"
        else:
            reason = ""
            unexplained += 1
            print(f"  {side}: {key[0]} {key[1]} {row.get('mime')} {row.get('status')} {row.get('filename')}")
        reasons[side + (": " + reason if reason else ": listed above")] += 1
    for reason, n in reasons.items():
        print(f"  {n} {reason}")
    return us & them, us ^ them, unexplained


def compare_bytes(keys, us, them, posted, doubled):
    counts = collections.Counter()
    unexplained = 0
    for time, url in sorted(keys):
        path = f"{time}id_/{quote(url)}"
        our_status, our_fields, ours = ask(us, "/web/" + path)
        their_status, their_fields, theirs = ask(them, "/c/" + path)
        if (our_status, ours) == (their_status, theirs):
            counts["equal"] += 1
        elif their_status >= 500 or (their_status == 404 and our_status != 404 and b"pywb" in theirs):
            counts[f"pywb fails ({their_status}), here {our_status}"] += 1
        elif our_status == 502 and our_fields.get("x-perennial-problem") == "damaged":
            counts["damaged, said so here"] += 1
        elif our_status == their_status and their_fields.get("content-encoding"):
            counts["pywb sends a content coding that was not asked for"] += 1
        elif their_status == 307:
            counts["pywb first leads to the address with a slash"] += 1
        elif (time, url) in doubled:
            counts["two captures of one second, of which each takes one"] += 1
        elif (time, url) in posted:
            counts["answers to POST, which pywb finds by what was posted"] += 1
        elif our_fields.get("x-archive-orig-content-length") == str(len(theirs)) and ours.startswith(theirs):
            counts["the stored body is longer than its Content-Length, at which pywb cuts it"] += 1
        elif our_fields.get("memento-datetime") != their_fields.get("memento-datetime"):
            counts["another capture"] += 1
            unexplained += 1
            print(f"  {path}: here {our_status} {our_fields.get('memento-datetime')}, pywb {their_status} {their_fields.get('memento-datetime')}")
        else:
            unexplained += 1
            print(f"  {path}: here {our_status} {len(ours)} bytes, pywb {their_status} {len(theirs)} bytes")
    print("id_:", ", ".join(f"{n} {what}" for what, n in counts.items()), f"{unexplained} unexplained")
    return unexplained


def mementos(text, prefix):
    found = set()
    for match in re.finditer(r'<([^>]*)>; rel="([^"]*memento)"; datetime="([^"]*)"', text):
        address = match.group(1)
        tail = re.search(re.escape(prefix) + r"(\d{14})(?:mp_)?/(.*)", address)
        if tail:
            found.add((tail.group(1), tail.group(2), match.group(3)))
    return found


def compare_timemaps(urls, us, them, apart):
    n_equal, unexplained = 0, 0
    for url in sorted(urls):
        ours = mementos(ask(us, f"/web/timemap/link/{quote(url)}")[2].decode("utf-8", "replace"), "/web/")
        theirs = mementos(ask(them, f"/c/timemap/link/{quote(url)}")[2].decode("utf-8", "replace"), "/c/")
        ours, theirs = ({row for row in side if (row[0], quote(row[1])) not in apart} for side in (ours, theirs))
        if ours == theirs:
            n_equal += 1
        else:
            unexplained += 1
            only = [sorted(f"{t} {u}" for t, u, _ in side)[:3] for side in (ours - theirs, theirs - ours)]
            print(f"  TimeMap of {url}: {len(ours)} here, {len(theirs)} in pywb; only here {only[0]}, only there {only[1]}")
    print(f"TimeMaps: {n_equal} equal, {unexplained} not")
    return unexplained


def compare_cdx(urls, us, them, apart):
    """The CDX API of both, for exact, prefix, host and domain queries."""
    n_equal, unexplained = 0, 0
    hosts = sorted({urllib.parse.urlsplit(url).netloc for url in urls})
    queries = [("exact", url) for url in sorted(urls)] + [(kind, host) for host in hosts for kind in ("prefix", "host", "domain")]
    for kind, url in queries:
        query = f"cdx?output=json&matchType={kind}&url={urllib.parse.quote(url, safe='')}"
        rows = []
        for host, prefix in ((us, "/"), (them, "/c/")):
            lines = ask(host, prefix + query)[2].decode().splitlines()
            parsed = [json.loads(line) for line in lines if line.startswith("{")]
            rows.append({(row.get("timestamp"), quote(row.get("url", ""))) for row in parsed if "timestamp" in row})
        rows = [side - apart for side in rows]
        if rows[0] == rows[1]:
            n_equal += 1
        else:
            unexplained += 1
            print(f"  CDX {kind} {url}: only here {sorted(rows[0] - rows[1])[:3]}, only in pywb {sorted(rows[1] - rows[0])[:3]}")
    print(f"CDX queries: {n_equal} equal, {unexplained} not")
    return unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--perennial", default="target/release/perennial")
    parser.add_argument("--pywb", required=True, help="the folder with pywb's programs")
    parser.add_argument("--port", type=int, default=8190, help="where pywb listens")
    options = parser.parse_args()
    files = sorted(file for file in options.dir.rglob("*") if file.name.endswith(SUFFIXES))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        refused_here, refused_there = set(), set()
        ours_process, us = serve_perennial(options.perennial, files, folder, refused_here)
        pywb_process, them, index = serve_pywb(options.pywb, files, folder, options.port, refused_there)
        try:
            wait_for(them)
            ours = read_index(ask(us, "/cdx?url=*")[2].decode())
            theirs = read_index(index.read_text())
            both, one_sided, unexplained = compare_captures(ours, theirs, refused_here, refused_there)
            posted = {(time, row["url"]) for key, time, row in theirs if "__wb_method" in key}
            n_of = collections.Counter((time, row["url"]) for _, time, row in ours)
            n_of |= collections.Counter((time, row["url"]) for _, time, row in theirs)
            doubled = {key for key, n in n_of.items() if n > 1}
            # Captures of one side and responses to POST are reported above; the rest must be equal.
            apart = {(time, quote(url)) for time, url in one_sided | posted}
            print(f"compared without {len(apart)} captures that only one side has or that answer a POST")
            urls = {url for _, url in both}
            unexplained += compare_bytes(both, us, them, posted, doubled)
            unexplained += compare_cdx(urls, us, them, apart)
            unexplained += compare_timemaps(urls, us, them, apart)
        finally:
            for process in (ours_process, pywb_process):
                process.terminate()
                process.wait()
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
