"""Compares the goals `balanced` and `coherent` with the other strategies on recorded traces, and checks their requirements.

python3 measure.py PERENNIAL FRONTPAGE.tsv [OTHER.tsv ...] [--spread-polls]
Four stretches of 84 days of the first file, 50 days apart; then all files side by side. Needs no packages.
"""

import datetime
import json
import subprocess
import sys

MEASURES = ["completeness_pooled", "completeness_weighted", "completeness_count", "coherence_weighted"]
OTHERS = ["fixed-interval", "adaptive-interval", "frequency", "importance", "pattern", "importance-pattern"]
# Budget -> factor of the best other's pooled completeness, factor of its Definition 5.13, points of count below the best,
# points of coherence above the fixed interval.
ASKED = {0.05: (1.2, 0.95, 0.01, 0.0), 0.1: (1.25, 0.97, 0.006, 0.02), 0.3: (1.15, 1.0, 0.0, -0.015)}


def simulate(program, files, start):
    command = [program, "lab", "simulate", "--trace", *files, "--trace-start", start, "--budget", "5%,10%,30%"]
    command += [name for name in sys.argv[2:] if name.startswith("--")]
    out = subprocess.run([*command, "--frontier", "--no-bounds", "--json"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def mean(stretches):
    sums = {}
    for lines in stretches:
        for line in lines:
            for result in line["results"]:
                sum_of = sums.setdefault((line["budget"], result["strategy"]), [0.0] * len(MEASURES))
                for place, measure in enumerate(MEASURES):
                    sum_of[place] += result[measure] / len(stretches)
    return sums


def asked_of(goal, budget, of):
    best = [max(of[(budget, other)][place] for other in OTHERS) for place in range(3)]
    if goal == "balanced":
        pooled, by_page, count, coherence = ASKED[budget]
        fixed = of[(budget, "fixed-interval")][3]
        return [pooled * best[0], by_page * best[1], best[2] - count, fixed + coherence]
    return [best[0] if budget > 0.05 else 0.0, 0.0, 0.0, of[(budget, "sharc")][3] - 0.02]


def show(title, of):
    print(f"\n{title}\n| | M | pooled | Def. 5.13 | count | coherence |\n|---|---|---|---|---|---|")
    for (budget, strategy), values in sorted(of.items()):
        if strategy == "expected-gain":
            continue
        words = [f"{value:.3f}" for value in values]
        goal = strategy.removeprefix("expected-gain/")
        if goal in ("balanced", "coherent"):
            asked = asked_of(goal, budget, of)
            words = [
                f"{value:.3f}" if need <= 0 else f"{value:.3f} ({'>=' if value >= need else 'below'} {need:.3f})"
                for value, need in zip(values, asked)
            ]
        print(f"| {strategy} | {100 * budget:.0f} % | {' | '.join(words)} |")


def first_day(file):
    for line in open(file):
        if not line.startswith(("#", "P\t")):
            return datetime.datetime.fromtimestamp(int(line.split("\t")[0]), datetime.timezone.utc).date()


def main():
    program, files = sys.argv[1], [name for name in sys.argv[2:] if not name.startswith("--")]
    first = first_day(files[0])
    starts = [(first + datetime.timedelta(days=50 * nth)).isoformat() for nth in range(4)]
    show("four stretches", mean([simulate(program, files[:1], start) for start in starts]))
    if len(files) > 1:
        show("all traces side by side", mean([simulate(program, sorted(files), "auto")]))


main()
