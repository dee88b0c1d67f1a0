#!/usr/bin/env python3
"""Fits the weights of block importance on pages with a known article, and scores them on held-out pages.

    fit.py LEAVES.jsonl GROUND_TRUTH.json EVALDATA.json [--baseline BASELINE.jsonl]...

LEAVES.jsonl is the output of the example `segment_layouts`. Pages are named `aeb_<first 16 letters of the hash>` (article
marked by hand, article-extraction-benchmark) or `tra_<file>` (wanted and unwanted snippets, trafilatura).
"""
import argparse
import json
import re

import numpy as np
from sklearn.linear_model import LogisticRegression

SEED = 20261116
SHINGLE = 4
# off_centre and width are left out: they hardly help, and they need the length of a line, which a reused layout lacks.
UNUSED = [5, 6]
FLOOR = 0.01  # as in the core


def words(text):
    return re.findall(r"\w+", text.lower())


def n_main_words(leaf_words, shingles, gold_words):
    """Words of a leaf that are in the marked text: in a shared run of four, or all of a shorter leaf."""
    hit = np.zeros(len(leaf_words), bool)
    for i in range(len(leaf_words) - SHINGLE + 1):
        if tuple(leaf_words[i:i + SHINGLE]) in shingles:
            hit[i:i + SHINGLE] = True
    return int(hit.sum())


def folded(text):
    return re.sub(r"\W+", "", text.lower())


def label_pages(path, truth, evaldata):
    """Pages as lists of (row of features, words, main share or None)."""
    gold = {"aeb_" + key[:16]: value["articleBody"] for key, value in truth.items()}
    entries = evaldata.values() if isinstance(evaldata, dict) else evaldata
    snippets = {("tra_" + e["file"].replace("/", "_"))[:-5]: (e.get("with") or [], e.get("without") or []) for e in entries}
    pages = {}
    for line in open(path):
        page = json.loads(line)
        name, leaves = page["page"], page["leaves"]
        if name in gold:
            body = words(gold[name])
            shingles = {tuple(body[i:i + SHINGLE]) for i in range(len(body) - SHINGLE + 1)}
            rows = []
            for leaf in leaves:
                own = words(leaf["text"])
                main = n_main_words(own, shingles, body)
                rows.append((leaf, len(own), main / len(own) if own else 0.0))
            if sum(n * share for _, n, share in rows) >= 0.5 * len(body):
                pages[name] = rows
        elif name in snippets:
            must, must_not = snippets[name]
            rows, found = [], 0
            for leaf in leaves:
                text = folded(leaf["text"])
                has = sum(folded(s) in text for s in must if folded(s))
                has_not = sum(folded(s) in text for s in must_not if folded(s))
                found += has
                # A leaf with both kinds of snippet is main: an article with a photo credit, for example.
                share = None if not has and not has_not else (1.0 if has else 0.0)
                rows.append((leaf, len(words(leaf["text"])), share))
            if found:
                pages[name] = rows
    return pages


def samples(pages):
    xs, ys, ws = [], [], []
    for rows in pages.values():
        weight = 1.0 / max(1.0, sum(np.sqrt(n) for _, n, share in rows if share is not None))
        for leaf, n, share in rows:
            if share is None or n == 0:
                continue
            for y, part in ((1, share), (0, 1 - share)):
                if part > 0:
                    xs.append(leaf["features"]); ys.append(y); ws.append(weight * np.sqrt(n) * part)
    return np.array(xs), np.array(ys), np.array(ws) * len(pages)


def importances(rows, weights, bias, power, exponent):
    x = np.array([leaf["features"] for leaf, _, _ in rows])
    p = 1 / (1 + np.exp(-(x @ weights + bias)))
    size = np.exp(x[:, 0]) + 1
    score = (p ** exponent + FLOOR) * size ** power
    return score / score.sum()


def on_main(pages, shares_of):
    return {name: float(sum(i * (share or 0.0) for i, (_, _, share) in zip(shares_of(rows), rows)))
            for name, rows in pages.items()}


def summary(values):
    values = np.array(list(values))
    return f"pages {len(values)}, >=60 %: {np.mean(values >= 0.6):.3f}, mean {values.mean():.3f}, median {np.median(values):.3f}"


def spread_and_purity(pages):
    """Number of leaves with nine tenths of the main words, and the share of main words in them; medians and means."""
    spreads, purities = [], []
    for name, rows in pages.items():
        if not name.startswith("aeb_"):
            continue
        main = sorted(((n * share, n) for _, n, share in rows), reverse=True)
        total, got, count, n_all = sum(m for m, _ in main), 0.0, 0, 0
        for m, n in main:
            if got >= 0.9 * total:
                break
            got += m; count += 1; n_all += n
        spreads.append(count); purities.append(got / max(n_all, 1))
    return f"spread median {np.median(spreads):.0f} mean {np.mean(spreads):.2f}, purity median {np.median(purities):.3f} mean {np.mean(purities):.3f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("leaves"); parser.add_argument("truth"); parser.add_argument("evaldata")
    parser.add_argument("--baseline", action="append", default=[])
    parser.add_argument("--worst", type=int, default=0)
    args = parser.parse_args()
    truth, evaldata = json.load(open(args.truth)), json.load(open(args.evaldata))
    pages = label_pages(args.leaves, truth, evaldata)
    names = sorted(pages)
    np.random.default_rng(SEED).shuffle(names)
    cut = int(0.6 * len(names))
    train, held = ({n: pages[n] for n in part} for part in (names[:cut], names[cut:]))
    x, y, w = samples(train)
    x[:, UNUSED] = 0
    scale = x.std(axis=0) + 1e-6
    model = LogisticRegression(C=0.3, max_iter=5000).fit(x / scale, y, sample_weight=w)
    weights, bias = model.coef_[0] / scale, model.intercept_[0]
    # The mildest pair that gives 60 % of the importance to the article on nine in ten training pages. Other blocks must
    # keep some importance too.
    pairs = [(0.5, 1), (0.5, 2), (0.75, 2), (1.0, 2), (1.0, 3)]
    reached = lambda pe: np.mean([v >= 0.6 for v in on_main(train, lambda r: importances(r, weights, bias, *pe)).values()])
    for pair in pairs:
        print("size power, exponent", pair, f"pages with 60 %: {reached(pair):.3f}")
    best = next((pair for pair in pairs if reached(pair) >= 0.9), pairs[-1])
    print("weights", ", ".join(f"{v:.4f}" for v in weights)); print("bias", f"{bias:.4f}", "size power", best[0], "exponent", best[1])
    fitted = lambda rows: importances(rows, weights, bias, *best)
    for title, part in (("train", train), ("held out", held)):
        for kind in ("aeb_", "tra_"):
            sub = {n: r for n, r in part.items() if n.startswith(kind)}
            values = on_main(sub, fitted)
            print(f"{title:9} {kind} fitted now:  {summary(values.values())}")
            shipped = on_main(sub, lambda rows: [leaf["importance"] for leaf, _, _ in rows])
            print(f"{title:9} {kind} as shipped: {summary(shipped.values())}")
            for name in sorted(values, key=values.get)[:args.worst]:
                print("   worst", name, f"{values[name]:.2f}", len(part[name]), "leaves")
    print("segmentation:", spread_and_purity(pages))
    for baseline in args.baseline:
        print(f"{baseline}:", spread_and_purity(label_pages(baseline, truth, {})))


main()
