"""The visible words of a page, by its tags alone: independent of the program that is measured."""
import difflib
import html.parser
import re

HIDDEN = {"script", "style", "noscript", "template", "head", "title", "svg", "option", "textarea"}
INLINE = {"a", "b", "i", "em", "strong", "span", "code", "tt", "small", "sub", "sup", "u", "font", "img", "abbr", "cite", "kbd", "q", "s", "var", "wbr"}
VOID = {"br", "hr", "img", "input", "meta", "link", "wbr", "area", "base", "col", "embed", "source", "track"}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.lines, self.line, self.hidden = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        is_hidden = tag in HIDDEN or "hidden" in attrs or attrs.get("aria-hidden") == "true"
        is_hidden |= bool(re.search(r"display\s*:\s*none", attrs.get("style") or ""))
        if is_hidden and tag not in VOID or self.hidden and tag == self.hidden[0]:
            self.hidden.append(tag)
        if tag not in INLINE:
            self.end_line()

    def handle_endtag(self, tag):
        if self.hidden and tag == self.hidden[-1]:
            self.hidden.pop()
        if tag not in INLINE:
            self.end_line()

    def handle_data(self, data):
        if not self.hidden:
            self.line.append(data)

    def end_line(self):
        line = " ".join("".join(self.line).split())
        if line:
            self.lines.append(line)
        self.line = []


def lines(path):
    reader = Reader()
    reader.feed(path.read_text("utf8", "replace"))
    reader.end_line()
    return reader.lines


def words(path):
    return [word for line in lines(path) for word in re.findall(r"\w+", line)]


def changes(before, after):
    """Lines that went and lines that came."""
    old, new = lines(before), lines(after)
    gone, come = [], []
    for op, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op != "equal":
            gone += old[i1:i2]
            come += new[j1:j2]
    return gone, come
