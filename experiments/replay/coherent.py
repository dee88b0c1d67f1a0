#!/usr/bin/env python3
"""Compares replays chosen by interval with replays closest in time, on a web whose subresources change.

    perennial demo --changing-subresources --no-browser --dir DEMO
    python3 coherent.py DEMO --perennial target/release/perennial

Every observation of a page is viewed at its own time on two servers, one of them with --closest. Counted are views in which
the server itself reports a violation (header of the page with the banner), and views that in truth show a part that was
not there: a comment in each edition of a part has the interval in which it was there. The exit code is 1 if a part of ours
is violating although the archive holds a version that is not.
"""

import argparse
import calendar
import collections
import http.client
import json
import re
import subprocess
import sys
import time

EDITION = re.compile(rb"edition (\d+) from (\d+) until (\d+)")
# The subresources of a page of the demonstration.
PARTS = re.compile(rb'(?:href|src)="(/style\.css|/logo\.gif|/photo\.gif|/ads/banner-\d+\.gif)"')

EDITED = re.compile(r"/style\.css$|\.gif$")
VIOLATION = "views with a known violation"
POSSIBLY = "views that are possibly coherent or possibly not"
COHERENT = "views known to be coherent"
WRONG = "views that in truth show a part that was not there"
NEEDLESS = "of these, views whose right parts the archive holds"
AVOIDABLE = "views with a violating part, where another was not known to be one"
ROWS = [VIOLATION, POSSIBLY, COHERENT, WRONG, NEEDLESS, AVOIDABLE]


class Server:
    """A running `perennial serve`, with one connection to it."""

    def __init__(self, options, *more):
        command = [options.perennial, "--archive", options.archive, "--json", "serve", "--listen", "127.0.0.1:0", *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        told = ""
        while not told.rstrip().endswith("}"):
            told += self.process.stdout.readline()
        self.connection = http.client.HTTPConnection(json.loads(told)["url"].removeprefix("http://").rstrip("/"), timeout=60)

    def ask(self, path, **fields):
        self.connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def edition_of(body):
    """Number, first and last instant of an edition, or None."""
    found = EDITION.search(body)
    return tuple(map(int, found.groups())) if found else None


def lines_of(options):
    command = [options.perennial, "--archive", options.archive, "export", "--format", "cdxj", "--force", "--output", options.index]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(options.index, encoding="utf-8") as lines:
        for line in lines:
            _, stamp, fields = line.split(" ", 2)
            yield stamp, json.loads(fields)


def seconds_of(stamp):
    return calendar.timegm(time.strptime(stamp, "%Y%m%d%H%M%S"))


def views_of(server, looks):
    """Each observation of a page with the parts that it names."""
    for stamp, url in looks:
        status, _, body = server.ask(f"/web/{stamp}id_/{url}")
        if status == 200:
            origin = "/".join(url.split("/", 3)[:3])
            parts = sorted({origin + path.decode() for path in PARTS.findall(body)})
            if parts:
                yield stamp, url, parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive")
    parser.add_argument("--perennial", default="target/release/perennial")
    parser.add_argument("--index", default="/tmp/coherent.cdxj", help="where the index is written")
    parser.add_argument("--every", type=int, default=1, help="view only each n-th look")
    options = parser.parse_args()
    pages, parts = [], collections.defaultdict(list)
    for stamp, fields in lines_of(options):
        mime = fields.get("mime", "")
        if EDITED.search(fields["url"]):
            parts[fields["url"]].append(stamp)
        elif "html" in mime or mime == "warc/revisit":
            pages.append((stamp, fields["url"]))
    ours, closest = Server(options), Server(options, "--closest")
    try:
        # All archived captures of each part, by brute force.
        held = {url: {edition_of(ours.ask(f"/web/{stamp}id_/{url}")[2]) for stamp in stamps} for url, stamps in parts.items()}
        counts = {"by interval": collections.Counter(), "closest": collections.Counter()}
        for stamp, url, needed in views_of(ours, pages[:: options.every]):
            view(stamp, url, needed, held, {"by interval": ours, "closest": closest}, counts)
    finally:
        ours.stop()
        closest.stop()
    n_views = counts["closest"]["views"]
    print(f"{n_views} views of pages, {counts['closest']['parts']} parts in them, {len(parts)} parts with {sum(map(len, parts.values()))} captures\n")
    print("| | by interval | closest |\n|---|---|---|")
    for row in ROWS:
        shown = [f"{counts[how][row]} ({counts[how][row] / max(1, n_views):.1%})" for how in counts]
        print(f"| {row} | {' | '.join(shown)} |")
    sys.exit(1 if counts["by interval"][AVOIDABLE] else 0)


def view(stamp, url, needed, held, servers, counts):
    at = seconds_of(stamp)
    states = {}
    for how, server in servers.items():
        count = counts[how]
        _, fields, _ = server.ask(f"/web/{stamp}/{url}", Sec_Fetch_Dest="document", Accept="text/html")
        state = fields.get("x-perennial-coherence")
        count["views"] += 1
        count["parts"] += len(needed)
        count[{"violating": VIOLATION, "coherent": COHERENT}.get(state, POSSIBLY)] += 1
        shown = {part: server.ask(f"/web/{stamp}im_/{part}") for part in needed}
        states[how] = {part: answer[1].get("x-perennial-coherence") for part, answer in shown.items()}
        wrong = [part for part, answer in shown.items() if not is_there(edition_of(answer[2]), at)]
        count[WRONG] += bool(wrong)
        count[NEEDLESS] += bool(wrong) and all(any(is_there(edition, at) for edition in held[part]) for part in wrong)
    for how, others in (("by interval", "closest"), ("closest", "by interval")):
        bad = [part for part in needed if states[how][part] == "violating"]
        counts[how][AVOIDABLE] += any(states[others][part] != "violating" for part in bad)


def is_there(edition, at):
    return edition is not None and edition[1] <= at < edition[2]


if __name__ == "__main__":
    main()
