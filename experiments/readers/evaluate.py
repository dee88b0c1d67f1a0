#!/usr/bin/env python3
"""Compares operations and importance with a reader's judgement, over successive versions of real pages.

    evaluate.py PERENNIAL VERSIONS [--work FOLDER] [--html-token]

VERSIONS/<site>/<page>/ holds successive versions as NNN_*.html. Every pair of neighbours is compared. Printed are false
moves, deletions with a similar insertion in the same block, the weight of URLs, two laws, and the order of importance on
the pairs of changes in judged.tsv. For comparison it prints the share of changed characters, the two published forms and,
with --html-token, the number of changes that html_token of web-monitoring-diff finds (it must be installed). Results are
cached in --work.
"""
import argparse
import collections
import difflib
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile

import visible

HERE = pathlib.Path(__file__).parent


def run(work, program, *arguments):
    key = hashlib.sha256("\0".join(map(str, (program, *arguments))).encode()).hexdigest()[:24]
    kept = work / key
    if not kept.exists():
        done = subprocess.run([program, *arguments], capture_output=True, check=True)
        kept.write_bytes(done.stdout)
    return json.loads(kept.read_text("utf8"))


def tree(work, program, page):
    """The page as Vi-XML, laid out once."""
    kept = work / (hashlib.sha256(f"{program}\0{page}".encode()).hexdigest()[:24] + ".xml")
    if not kept.exists():
        kept.write_bytes(subprocess.run([program, "lab", "segment", str(page)], capture_output=True, check=True).stdout)
    return str(kept)


def compare(work, program, before, after, *form):
    return run(work, program, "diff", tree(work, program, before), tree(work, program, after), "--format", "json", *form)


def pairs(versions):
    for page in sorted(path for site in versions.iterdir() if site.is_dir() for path in site.iterdir()):
        all_versions = sorted(page.glob("*.html"))
        for before, after in zip(all_versions, all_versions[1:]):
            yield page, before, after


def tokens(text):
    return re.findall(r"\w+", text)


def leaves(block):
    return [block] if "children" not in block else [leaf for child in block["children"] for leaf in leaves(child)]


def leaf_words(leaf):
    text = leaf["text"] if "text" in leaf else " ".join(leaf["texts"] + [link["name"] for link in leaf["links"]])
    return tokens(text)


def block_at(tree, reference):
    block = {"children": tree["blocks"]}
    for number in reference[1:].split("."):
        block = block["children"][int(number) - 1]
    return block


def displaced(before, after):
    """The words of the later page outside a common subsequence of both."""
    old, new = visible.words(before), visible.words(after)
    n = 0
    while n < min(len(old), len(new)) and old[n] == new[n]:
        n += 1
    old, new = old[n:], new[n:]
    n = 0
    while n < min(len(old), len(new)) and old[-1 - n] == new[-1 - n]:
        n += 1
    old, new = old[: len(old) - n], new[: len(new) - n]
    matched = difflib.SequenceMatcher(None, old, new, autojunk=len(old) > 3000).get_matching_blocks()
    rest = collections.Counter(new)
    for _, start, size in matched:
        rest -= collections.Counter(new[start : start + size])
    return rest


def false_moves(work, program, before, after, report):
    """Moves of which most words did not move."""
    moves = [entry for entry in report["structure"] + report["operations"] if entry["op"] == "move"]
    if not moves:
        return 0, 0
    tree = run(work, program, "lab", "segment", str(after), "--format", "json")
    rest = displaced(before, after)
    n_false = 0
    for move in moves:
        if move["element"] == "block":
            words = [word for leaf in leaves(block_at(tree, move["block_after"])) for word in leaf_words(leaf)]
        else:
            words = tokens(move["after"]["text"])
        moved = collections.Counter(words) & rest
        n_false += 2 * sum(moved.values()) < max(1, len(words))
    return len(moves), n_false


def similar_pairs(report):
    """Deletions, and those with an insertion of a similar element in the same block."""
    inserted = collections.defaultdict(list)
    for entry in report["operations"]:
        if entry["op"] == "insert":
            inserted[entry["block_before"], entry["element"]].append(entry["after"]["text"])
    n, n_similar = 0, 0
    for entry in report["operations"]:
        if entry["op"] != "delete":
            continue
        n += 1
        text = entry["before"]["text"]
        for other in inserted[entry["block_before"], entry["element"]]:
            matcher = difflib.SequenceMatcher(None, text, other, autojunk=False)
            if matcher.real_quick_ratio() >= 0.75 and matcher.quick_ratio() >= 0.75 and matcher.ratio() >= 0.75:
                n_similar += 1
                break
    return n, n_similar


def address_weight(report):
    """The importance of all updates that change only a URL."""
    left = 1.0
    for entry in report["operations"]:
        if entry["op"] == "update" and entry["before"]["text"] == entry["after"]["text"]:
            left *= 1.0 - entry["value"]
    return 1.0 - left


def main_words(work, program, page):
    tree = run(work, program, "lab", "segment", str(page), "--format", "json")
    words = collections.Counter()
    for leaf in (leaf for block in tree["blocks"] for leaf in leaves(block)):
        if leaf["role"] == "main":
            words.update(leaf_words(leaf))
    return words


def changed_characters(before, after):
    gone, come = visible.changes(before, after)
    n = sum(map(len, visible.lines(before))) + sum(map(len, visible.lines(after)))
    return (sum(map(len, gone)) + sum(map(len, come))) / max(1, n)


def html_token(before, after):
    from web_monitoring_diff import html_diff_render

    return html_diff_render(before.read_text("utf8", "replace"), after.read_text("utf8", "replace"))["change_count"]


def order(work, program, versions, with_html_token):
    measures = {
        "importance": lambda b, a: compare(work, program, b, a)["importance"],
        "pattern-2011": lambda b, a: compare(work, program, b, a, "--importance", "pattern-2011")["importance"],
        "visual-2009": lambda b, a: compare(work, program, b, a, "--importance", "visual-2009")["importance"],
        "changed characters": changed_characters,
    }
    if with_html_token:
        measures["html_token"] = html_token
    right = collections.Counter()
    n, wrong = 0, []
    for line in (HERE / "judged.tsv").read_text("utf8").splitlines()[1:]:
        site, page, first, second, more, why = line.split("\t")
        if more == "=":
            continue
        files = sorted((versions / site / page).glob("*.html"))
        sides = [(files[int(at)], files[int(at) + 1]) for at in (first, second)]
        n += 1
        for name, measure in measures.items():
            values = [measure(*side) for side in sides]
            more_value, less_value = values if more == "A" else values[::-1]
            right[name] += 1.0 if more_value > less_value else 0.5 if more_value == less_value else 0.0
            if name == "importance" and more_value <= less_value:
                wrong.append(f"{site} {page} {first} {second}: {values[0]:.4f} {values[1]:.4f}, but {more}: {why}")
    print(f"order of importance on {n} judged pairs:")
    for name in measures:
        print(f"  {name:20} {right[name] / n:.3f}")
    print("\n".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("versions", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--html-token", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="compare every Nth pair only")
    options = parser.parse_args()
    work = options.work or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    order(work, options.program, options.versions, options.html_token)
    totals = collections.Counter()
    for _, before, after in list(pairs(options.versions))[:: options.every]:
        report = compare(work, options.program, before, after)
        n_moves, n_false = false_moves(work, options.program, before, after, report)
        n_deleted, n_similar = similar_pairs(report)
        totals.update(pairs=1, moves=n_moves, false=n_false, deleted=n_deleted, similar=n_similar)
        addresses = address_weight(report)
        totals["addresses"] = max(totals["addresses"], addresses)
        label = f"{before.parent.parent.name} {before.parent.name} {before.name[:3]}"
        if options.verbose and n_false:
            print(f"false moves: {label} {n_false} of {n_moves}")
        if visible.words(before) == visible.words(after):
            totals.update(same=1, same_broken=report["importance"] >= 0.02)
            if report["importance"] >= 0.02:
                print(f"same words: {label} {report['importance']:.4f}")
        old = main_words(work, options.program, before)
        gone = old - collections.Counter(visible.words(after))
        if sum(gone.values()) >= 0.3 * sum(old.values()) and sum(old.values()) >= 30:
            totals.update(lost=1, lost_broken=report["importance"] < 0.2)
            if report["importance"] < 0.2:
                print(f"30 % gone: {label} {report['importance']:.4f}")
    print(f"{totals['pairs']} pairs")
    print(f"moves {totals['moves']}, false {totals['false']}")
    print(f"deletions {totals['deleted']}, with a similar insertion in the same block {totals['similar'] / max(1, totals['deleted']):.3f}")
    print(f"addresses alone weigh at most {totals['addresses']:.4f}")
    print(f"same words in the same order: {totals['same']} pairs, importance of .02 and more {totals['same_broken']}")
    print(f"30 % of the main words gone: {totals['lost']} pairs, importance below .2 {totals['lost_broken']}")


if __name__ == "__main__":
    main()
