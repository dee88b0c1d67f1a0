#!/usr/bin/env python3
"""Measures how well the importance of a change follows the news on front pages.

    evaluate.py PERENNIAL FOLDER [--pairs N] [--links]

FOLDER/<site>/<page>/ holds successive versions as *.html, sorted by name, and headlines.jsonl with one line per version:
{"articles": [{"url": ..., "title": ...}, ...]}. The truth of a pair of versions is the share of URLs that came or went.
Printed for each page: the rank correlation (Spearman) of the truth with our importance and with the share of changed
words, and the probability that a pair with a new or lost headline ranks above one without (area under the curve).

Other parsers, one per site, made headlines.jsonl; they miss some lists of a page. With --links the truth is counted on the
page itself: linked articles of the page's own site, recognised by a number of six or more digits in the URL.
"""
import argparse
import collections
import html
import json
import pathlib
import re
import subprocess


def ranks(values):
    """Ranks from 1; equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            result[place] = (start + 1 + end) / 2
        start = end
    return result


def correlation(xs, ys):
    xs, ys = ranks(xs), ranks(ys)
    mean = (len(xs) + 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(xs, ys))
    alone = sum((x - mean) ** 2 for x in xs) * sum((y - mean) ** 2 for y in ys)
    return both / alone**0.5 if alone else None


def area(truth, values):
    """The share of pairs (with, without) in the right order."""
    place = ranks(values)
    positive = [rank for rank, true in zip(place, truth) if true > 0]
    n_negative = len(values) - len(positive)
    if not positive or not n_negative:
        return None
    return (sum(positive) - len(positive) * (len(positive) + 1) / 2) / (len(positive) * n_negative)


def words(path):
    text = path.read_text("utf8", "replace")
    text = re.sub(r"(?is)<(script|style|noscript|template)\b.*?</\1\s*>|<[^>]*>", " ", text)
    return collections.Counter(re.findall(r"\w+", html.unescape(text)))


def changed_words(before, after):
    changed = (before - after) + (after - before)
    return sum(changed.values()) / max(1, sum((before | after).values()))


def address(article):
    url = (article.get("url") or "").partition("#")[0].rstrip("/")
    return url or re.sub(r"\d+", "", article["title"]).strip()


def articles(path, site):
    """The numbers of the site's own articles that a page links to."""
    text = re.sub(r"(?is)<(script|style|noscript|template)\b.*?</\1\s*>", " ", path.read_text("utf8", "replace"))
    found = set()
    for target in re.findall(r'href="([^"]+)"', text):
        host, path_of_it = re.match(r"(?:https?:)?(?://(?:www\.)?([^/?#]*))?([^?#]*)", target).groups()
        number = re.search(r"\d{6,}", path_of_it)
        if number and host in (None, site):
            found.add(number[0])
    return found


def importance(program, before, after):
    run = subprocess.run([program, "diff", before, after, "--json"], capture_output=True, check=False)
    return json.loads(run.stdout)["importance"]


def page(program, folder, n_pairs, by_links):
    versions = sorted(folder.glob("*.html"))[: n_pairs + 1]
    lines = [line for line in (folder / "headlines.jsonl").read_text("utf8").splitlines() if line.strip()]
    headlines = [{address(article) for article in json.loads(line)["articles"]} for line in lines]
    if by_links:
        headlines = [articles(version, folder.parent.name) for version in versions]
    counts = [words(version) for version in versions]
    truth, by_words, ours = [], [], []
    for at in range(len(versions) - 1):
        old, new = headlines[at], headlines[at + 1]
        truth.append(len(old ^ new) / max(1, len(old | new)))
        by_words.append(changed_words(counts[at], counts[at + 1]))
        ours.append(importance(program, versions[at], versions[at + 1]))
    return {
        "pairs": len(truth),
        "importance": correlation(truth, ours),
        "words": correlation(truth, by_words),
        "area_importance": area(truth, ours),
        "area_words": area(truth, by_words),
    }


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--pairs", type=int, default=10**6, help="pairs of each page at most")
    options.add_argument("--links", action="store_true", help="truth by the articles to which a page leads")
    options = options.parse_args()
    results = []
    for folder in sorted(path.parent for path in options.folder.glob("*/*/headlines.jsonl")):
        result = page(options.program, folder, options.pairs, options.links)
        results.append(result)
        shown = {name: round(value, 3) if isinstance(value, float) else value for name, value in result.items()}
        print(f"{folder.parent.name}/{folder.name}", json.dumps(shown), flush=True)
    for name in ["importance", "words", "area_importance", "area_words"]:
        known = [result[name] for result in results if result[name] is not None]
        print(f"mean {name}: {sum(known) / max(1, len(known)):.3f} over {len(known)} pages")


if __name__ == "__main__":
    main()
