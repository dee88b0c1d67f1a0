"""Vi-DIFF against xmldiff on the same Vi-XML and web-monitoring-diff's html_token on the same HTML, in one run.

    python benches/diff_peers.py DIFF_EVAL VERSIONS [N]

DIFF_EVAL is the built example of that name, VERSIONS a folder of successive HTML versions (one folder a page), N the number of
pairs (default 20), evenly spread. Needs PyPI's xmldiff and web-monitoring-diff.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from web_monitoring_diff import html_diff_render
from xmldiff import main as xmldiff

LIMIT_SECS = 60


def pairs(folder, suffix):
    found = []
    files = [path for path in folder.rglob("*" + suffix) if path.is_file()]
    for page in sorted({path.parent for path in files}):
        versions = sorted(path for path in files if path.parent == page)
        found.extend(zip(versions, versions[1:]))
    return found


def seconds(function, *arguments):
    began = time.perf_counter()
    try:
        function(*arguments)
    except Exception as error:
        print(f"failed: {error}", file=sys.stderr)
        return None
    return time.perf_counter() - began


def main():
    program, versions = sys.argv[1], pathlib.Path(sys.argv[2])
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run([program, "vixml", versions, scratch / "vixml"], check=True)
        html, vixml = pairs(versions, ".html"), pairs(scratch / "vixml", ".xml")
        chosen = [i * len(vixml) // n for i in range(n)]
        listed = scratch / "pairs"
        listed.write_text("".join(f"{vixml[i][0]}\t{vixml[i][1]}\n" for i in chosen))
        ours = [float(line) for line in subprocess.run([program, "pairs", listed], check=True, capture_output=True, text=True).stdout.split()]
        rows = []
        for i, own in zip(chosen, ours):
            by_xmldiff = seconds(xmldiff.diff_files, str(vixml[i][0]), str(vixml[i][1]))
            before, after = (path.read_text(errors="replace") for path in html[i])
            by_token = seconds(lambda: html_diff_render(before, after, include="combined"))
            rows.append((own, by_xmldiff, by_token))
            print(f"{own * 1e3:8.2f} ms  xmldiff {by_xmldiff or 0:8.2f} s  html_token {by_token or 0:8.2f} s  {html[i][1]}", flush=True)
    for place, name in ((1, "xmldiff"), (2, "html_token")):
        ratios = [row[place] / row[0] for row in rows if row[place]]
        print(f"{name}: {statistics.median(ratios):.0f} x slower at the median, {min(ratios):.0f} x at least, {len(ratios)} pairs")


main()
