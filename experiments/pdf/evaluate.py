"""Compares readers of PDF: words also found by pdftotext, CPU seconds, memory, and the effect of damaged files.

evaluate.py READERS FOLDER...              # READERS: the built pdf-readers
evaluate.py READERS FOLDER... --damage N   # N damaged copies of each file below 300 kB
"""

import argparse
import collections
import os
import pathlib
import random
import re
import resource
import statistics
import subprocess
import tempfile
import unicodedata

NAMES = ["own", "pdf-extract", "lopdf"]
SECONDS, BYTES = 20, 2 << 30


def words(text):
    text = unicodedata.normalize("NFKC", text).lower()
    return collections.Counter(re.findall(r"[^\W_]+", text))


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def run(command):
    """Text or the name of the failure, CPU seconds, megabytes."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, preexec_fn=limit)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    seconds = used.ru_utime + used.ru_stime
    names = {0: None, 1: "error", 101: "panic", -6: "abort", -11: "stack overflow", -9: "too slow", -24: "too slow"}
    failure = names.get(child.returncode, f"exit {child.returncode}")
    return ("" if failure else text), failure, seconds, used.ru_maxrss / 1024


def damaged(bytes_, rng):
    bytes_ = bytearray(bytes_)
    kind = rng.randrange(4)
    if kind == 0:
        for _ in range(rng.choice([1, 8, 64])):
            bytes_[rng.randrange(len(bytes_))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del bytes_[rng.randrange(len(bytes_)):]
    elif kind == 2:
        start = rng.randrange(len(bytes_))
        del bytes_[start:start + rng.randrange(1, 2000)]
    else:
        # Numbers are lengths, counts and references. Changed ones reach furthest into a reader.
        numbers = [m.span() for m in re.finditer(rb"\d+", bytes_)]
        for start, end in sorted(rng.sample(numbers, min(4, len(numbers))), reverse=True):
            bytes_[start:end] = rng.choice([b"0", b"-1", b"1", b"4294967295", b"99999999999"])
    return bytes(bytes_)


def score(readers, files):
    rows = {name: [] for name in NAMES}
    for file in files:
        reference, failure, *_ = run(["pdftotext", "-enc", "UTF-8", file, "-"])
        wanted = words(reference)
        if failure or wanted.total() < 20:
            continue
        for name in NAMES:
            text, failure, seconds, megabytes = run([readers, name, file])
            found = words(text)
            common = (found & wanted).total()
            rows[name].append((common / wanted.total(), common / max(found.total(), 1), seconds, megabytes, failure, file))
    print("reader       files  recall mean  median  >=.9   precision mean  CPU s  p95 s  MB max  failures")
    for name, own in rows.items():
        recall, precision, seconds, megabytes, failures, _ = zip(*own)
        failures = collections.Counter(failure for failure in failures if failure)
        print(f"{name:12} {len(own):5}  {statistics.mean(recall):11.3f} {statistics.median(recall):7.3f} "
              f"{sum(r >= .9 for r in recall) / len(own):5.2f}  {statistics.mean(precision):15.3f} {sum(seconds):6.1f} "
              f"{sorted(seconds)[int(.95 * len(own))]:6.2f} {max(megabytes):7.0f}  {dict(failures)}")
    better = sum(own[0] > max(a[0], b[0]) + .01 for own, a, b in zip(*rows.values()))
    worse = [(own[0], a[0], b[0], own[5]) for own, a, b in zip(*rows.values()) if own[0] < max(a[0], b[0]) - .01]
    print(f"own finds over .01 more than both on {better} files, less than one of them on {len(worse)}")
    for own, a, b, file in sorted(worse)[:15]:
        print(f"  {own:.2f} {a:.2f} {b:.2f} {pathlib.Path(file).name}")


def damage(readers, files, n_copies):
    rng = random.Random(7)
    outcomes = {name: collections.Counter() for name in NAMES}
    longest, largest = collections.Counter(), collections.Counter()
    n_files = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "damaged.pdf")
        for file in (file for file in files if os.path.getsize(file) < 300_000):
            original = pathlib.Path(file).read_bytes()
            for _ in range(n_copies):
                pathlib.Path(path).write_bytes(damaged(original, rng))
                n_files += 1
                for name in NAMES:
                    _, failure, seconds, megabytes = run([readers, name, path])
                    outcomes[name][failure or "read"] += 1
                    longest[name], largest[name] = max(longest[name], seconds), max(largest[name], megabytes)
    print(f"{n_files} damaged files")
    for name in NAMES:
        print(f"{name:12} slowest {longest[name]:5.1f} s, largest {largest[name]:5.0f} MB, {dict(outcomes[name])}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("readers")
    arguments.add_argument("folders", nargs="+")
    arguments.add_argument("--damage", type=int, metavar="N")
    arguments = arguments.parse_args()
    files = sorted(str(path) for folder in arguments.folders for path in pathlib.Path(folder).rglob("*.pdf"))
    if arguments.damage:
        damage(arguments.readers, files, arguments.damage)
    else:
        score(arguments.readers, files)


main()
