#!/usr/bin/env python3
"""Measures how much of the article the main leaves hold, and the best that any choice of leaves could do.

    leaves.py PERENNIAL ARTICLES --work FOLDER

ARTICLES holds ground-truth.json (articleBody, url by name) and html/NAME.html.gz. Tokens of leaves with role `main` are
compared with those of the article marked by hand, for the two halves of ../extraction. "Best" takes the leaves of which
most runs of four words belong to the article. It is a bound for any choice of roles, because headline, byline and captions
share a leaf with the text but are not marked.
"""
import argparse
import collections
import gzip
import hashlib
import json
import pathlib
import re
import statistics
import subprocess
import urllib.parse


def half(url):
    """Splits by the hash of the domain, like ../extraction/evaluate.py."""
    host = (urllib.parse.urlsplit(url).hostname or url).lower()
    n = 3 if re.search(r"\.(co|com|org|gov|ac|net)\.[a-z]{2}$", host) else 2
    domain = ".".join(host.split(".")[-n:])
    return "tune" if hashlib.sha1(domain.encode()).digest()[0] % 2 == 0 else "apart"


def tokens(text):
    return re.findall(r"\w+", text.lower())


def runs(words):
    return list(zip(*(words[at:] for at in range(4))))


def leaves(block):
    return [leaf for child in block["children"] for leaf in leaves(child)] if block.get("children") else [block]


def score(found, gold):
    common = sum((found & gold).values())
    precision, recall = common / max(1, sum(found.values())), common / max(1, sum(gold.values()))
    return 2 * precision * recall / max(1e-9, precision + recall), precision, recall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("articles", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    rows = collections.defaultdict(list)
    for name, gold in sorted(json.loads((options.articles / "ground-truth.json").read_text("utf8")).items()):
        page = options.work / f"{name}.html"
        page.write_bytes(gzip.decompress((options.articles / "html" / f"{name}.html.gz").read_bytes()))
        done = subprocess.run([options.program, "lab", "segment", page, "--format", "json"], capture_output=True)
        tree = json.loads(done.stdout) if done.returncode == 0 else {"blocks": []}
        all_leaves = [leaf for block in tree["blocks"] for leaf in leaves(block)]
        wanted = tokens(gold["articleBody"])
        known = set(runs(wanted))

        def is_article(leaf):
            own = runs(tokens(leaf["text"]))
            return sum(run in known for run in own) > len(own) / 2

        words = lambda chosen: collections.Counter(word for leaf in all_leaves if chosen(leaf) for word in tokens(leaf["text"]))
        by_role = score(words(lambda leaf: leaf["role"] == "main"), collections.Counter(wanted))
        rows[half(gold["url"])].append((by_role, score(words(is_article), collections.Counter(wanted))))
    for part, scores in sorted(rows.items()):
        mean = lambda which, at: statistics.mean(row[which][at] for row in scores)
        for which, label in enumerate(("role main", "best")):
            print(f"{part} ({len(scores)}), {label}: F1 {mean(which, 0):.3f}, precision {mean(which, 1):.3f}, recall {mean(which, 2):.3f}")


if __name__ == "__main__":
    main()
