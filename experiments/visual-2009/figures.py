#!/usr/bin/env python3
"""Makes figures 8, 9 and 10 of P-VISUAL over real pages.

    figures.py PERENNIAL VERSIONS [--pairs N]

VERSIONS/<site>/<page>/ holds successive versions as *.html. Figure 8: time of segmentation by size of the page, including
layout. Figure 9: size of Vi-XML relative to that of the HTML. Figure 10: time of Vi-DIFF, which reads two Vi-XML files,
compares them and writes the Vi-Delta. Times are CPU times of the program, less those of the same run on a page of one
letter.
"""
import argparse
import os
import pathlib
import random
import resource
import statistics
import subprocess
import tempfile


def seconds(*command, output=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(output or os.devnull, "wb") as out:
        subprocess.run(command, stdout=out, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("versions", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=120)
    options = parser.parse_args()
    pairs = []
    for page in sorted(path for site in options.versions.iterdir() if site.is_dir() for path in site.iterdir()):
        files = sorted(page.glob("*.html"))
        pairs += list(zip(files, files[1:]))
    random.Random(2009).shuffle(pairs)
    work = pathlib.Path(tempfile.mkdtemp())
    empty = work / "empty.html"
    empty.write_text("<p>x</p>")
    start_segment = min(seconds(options.program, "lab", "segment", empty, output=work / "empty.xml") for _ in range(5))
    start_diff = min(seconds(options.program, "diff", work / "empty.xml", work / "empty.xml", "--format", "videlta") for _ in range(5))
    less = lambda taken, start: max(0.0, taken - start)
    rows = []
    for before, after in pairs[: options.pairs]:
        segment = [seconds(options.program, "lab", "segment", page, output=work / name) for page, name in ((before, "a.xml"), (after, "b.xml"))]
        diff = less(seconds(options.program, "diff", work / "a.xml", work / "b.xml", "--format", "videlta"), start_diff)
        rows.append((after.stat().st_size, (work / "b.xml").stat().st_size, less(segment[1], start_segment), diff))
    rows.sort()
    print("| HTML, kB | pages | Fig. 8: layout and segmentation, ms | Fig. 9: Vi-XML / HTML | Fig. 10: read, compare, write, ms |")
    print("|---|---|---|---|---|")
    for low, high in ((0, 10), (10, 30), (30, 60), (60, 150), (150, 10**6)):
        part = [row for row in rows if low * 1000 <= row[0] < high * 1000]
        if part:
            median = lambda at: statistics.median(row[at] for row in part)
            ratio = statistics.median(row[1] / row[0] for row in part)
            print(f"| {low} to {high if high < 10**6 else ''} | {len(part)} | {1000 * median(2):.1f} | {ratio:.2f} | {1000 * median(3):.1f} |")
    print("P-VISUAL: 200 ms for 150 kB (Fig. 8), Vi-XML 30 to 50 % smaller than HTML above 100 kB (Fig. 9), less than 10 ms a page (Fig. 10).")


if __name__ == "__main__":
    main()
