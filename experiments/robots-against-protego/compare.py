#!/usr/bin/env python3
"""Compares the decisions of `robots_answers` with Protego's (PyPI) for the same files and URLs.

cargo run --release --example robots_answers -- DIR AGENT | python3 compare.py DIR AGENT
"""
import collections
import pathlib
import sys

from protego import Protego

directory, agent = pathlib.Path(sys.argv[1]), sys.argv[2]
files, n_same, differences = {}, 0, []
for line in sys.stdin:
    name, path, answer = line.rstrip("\n").split("\t")
    if name not in files:
        text = (directory / name).read_bytes().decode("utf-8-sig", "replace")
        files[name] = Protego.parse(text)
    theirs = "allow" if files[name].can_fetch("https://example.org" + path, agent) else "deny"
    if theirs == answer:
        n_same += 1
    else:
        differences.append((name, path, answer, theirs))
n_all = n_same + len(differences)
print(f"{len(files)} files, {n_all} addresses, {n_same} answers agree ({100 * n_same / max(n_all, 1):.3f} %)")
by_file = collections.Counter(name for name, *_ in differences)
print(f"{len(differences)} differ, in {len(by_file)} files")
shown = set()
for name, path, ours, theirs in differences:
    if name not in shown and len(shown) < int(sys.argv[3] if len(sys.argv) > 3 else 40):
        shown.add(name)
        print(f"  {name}\t{path}\tours {ours}\tProtego {theirs}\t({by_file[name]} in this file)")
