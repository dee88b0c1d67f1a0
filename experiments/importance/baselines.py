"""Measures of other tools on the pages that importance_eval wrote with --dump.

    python baselines.py DIR

Each folder below DIR holds base.html and RANK-NAME.html. Prints for each baseline the share of pairs of changes of one page
in a reader's order (higher rank, higher value; equal values count half).
"""

import difflib
import hashlib
import html.parser
import pathlib
import sys


class Text(html.parser.HTMLParser):
    """The text as a tool that drops tags sees it."""

    def __init__(self):
        super().__init__()
        self.words, self.hidden = [], 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style") and self.hidden > 0

    def handle_data(self, data):
        if not self.hidden:
            self.words.extend(data.split())


def text(page):
    parser = Text()
    parser.feed(page)
    return parser.words


def byte_hash(before, after):
    digest = lambda page: hashlib.sha256(page.encode()).digest()
    return float(digest(before) != digest(after))


def changed_characters(before, after):
    """Share of the text's characters in changed words."""
    before, after = text(before), text(after)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed = 0
    for op, i, j, k, l in matcher.get_opcodes():
        if op != "equal":
            changed += sum(map(len, before[i:j])) + sum(map(len, after[k:l]))
    return changed / max(1, sum(map(len, before)) + sum(map(len, after)))


def html_token(before, after):
    """Changes that web-monitoring-diff's html_token counts."""
    from web_monitoring_diff import html_diff_render

    return html_diff_render(before, after, include="combined")["change_count"]


def main():
    measures = {"byte hash": byte_hash, "changed characters": changed_characters}
    try:
        import web_monitoring_diff  # noqa: F401

        measures["html_token"] = html_token
    except ImportError:
        print("web-monitoring-diff is not installed: html_token left out")
    right = {name: 0.0 for name in measures}
    pairs = {name: 0 for name in measures}
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        base = (folder / "base.html").read_text(errors="replace")
        changes = [(int(path.name[0]), path.read_text(errors="replace")) for path in sorted(folder.glob("[0-9]-*.html"))]
        for name, measure in measures.items():
            try:
                values = [(rank, measure(base, page)) for rank, page in changes]
            except Exception as error:  # one page of a peer's failing is no result
                print(f"{name}: {folder.name}: {error}", file=sys.stderr)
                continue
            for high, value in values:
                for low, other in values:
                    if low < high:
                        pairs[name] += 1
                        right[name] += 1.0 if value > other else 0.5 if value == other else 0.0
    for name in measures:
        print(f"{name}: {right[name] / max(1, pairs[name]):.3f} of {pairs[name]} pairs")


main()
