#!/usr/bin/env python3
"""Counts which successive versions of real pages are new versions of the article, and prints a sample.

    python3 experiments/extraction/versions.py BIN DATA WORK [--sample N]

DATA holds <site>.tar.xz with a folder of versions per page, whose names sort by time. The script counts the verdicts of
`perennial article extract --before` on each pair of neighbours. A sample with a fixed seed and equally many of each
verdict is printed, with the lines and the article's words that differ, for a person to judge.
"""
import argparse, collections, difflib, json, random, re, subprocess, tarfile
from pathlib import Path


def pairs(root):
    for folder in sorted(path for path in root.glob("*/*") if path.is_dir()):
        versions = sorted(folder.glob("*.html"))
        yield from zip(versions, versions[1:])


def judged(binary, files):
    jobs = "".join(json.dumps({"id": n, "file": str(after), "before": str(before)}) + "\n" for n, (before, after) in enumerate(files))
    done = subprocess.run([binary, "article", "extract", "--json", "--list", "-"], input=jobs.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def text_lines(path):
    text = re.sub(r"(?s)<(script|style).*?</\1>|<!--.*?-->", "", path.read_text(errors="replace"))
    return [line for line in (re.sub(r"\s+", " ", part).strip() for part in re.split(r"<[^>]*>|\n", text)) if line]


def show(before, after, line):
    print(f"\n=== {before.parent.parent.name}/{before.parent.name} {before.name} {after.name}: "
          f"{'same version' if line['same_version'] else 'new version'}, wrapper {line['wrapper'][-60:]}")
    differing = [part for part in difflib.unified_diff(text_lines(before), text_lines(after), lineterm="", n=0) if part[:2] not in ("--", "++", "@@")]
    for part in differing[:14]:
        print("   page  ", part[:150])
    for edit in line["edits"]:
        runs = [f"-{run['taken_out'][:70]}" if "taken_out" in run else f"+{run['added'][:70]}" for run in edit["words"] if "kept" not in run]
        print("   object", edit["field"], runs[:6])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary"), parser.add_argument("data", type=Path), parser.add_argument("work", type=Path)
    parser.add_argument("--sample", type=int, default=60)
    options = parser.parse_args()
    root = options.work.resolve() / "versions"
    if not root.exists():
        for archive in options.data.glob("*.tar.xz"):
            with tarfile.open(archive) as packed:
                packed.extractall(root, filter="data")
    files = list(pairs(root))
    lines = judged(options.binary, files)
    counts = collections.Counter(line["same_version"] for line in lines)
    print(f"{len(files)} pairs: {counts[True]} the same version, {counts[False]} new ones")
    chance = random.Random(1)
    for verdict in (True, False):
        chosen = [n for n, line in enumerate(lines) if line["same_version"] == verdict]
        for n in sorted(chance.sample(chosen, min(options.sample // 2, len(chosen)))):
            show(*files[n], lines[n])


if __name__ == "__main__":
    main()
