#!/usr/bin/env python3
"""Counts how many expectations of feedparser's test files the feed reader meets.

    conformance.py FEED_DUMP FOLDER [--misses]

FEED_DUMP is the example `feed_dump` of perennial-lab, FOLDER the unpacked `tests` of the feedparser project. A comment at
the top of each file has the expectation as a Python expression. Counted are expectations on title, link, ID, dates,
summary, content and author of the feed or an item. There are three levels: the value is equal; the HTML is the same up to
the order of attributes and escaping; the text is the same for a reader (feedparser removes unsafe parts, an archive keeps
them).
"""
import calendar
import html
import html.parser
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
from email.utils import parsedate_to_datetime

FIELDS = {"title", "title_detail", "link", "links", "id", "guid", "updated", "updated_parsed", "published", "published_parsed",
          "created", "created_parsed", "modified", "modified_parsed", "date", "date_parsed", "summary", "summary_detail",
          "description", "subtitle", "subtitle_detail", "tagline", "tagline_detail", "content", "author", "authors", "author_detail"}
PARTS = {"value", "name", "email", "url", "uri", "href"}
LEVEL = 0


class Canon(html.parser.HTMLParser):
    """HTML as tokens, without insignificant differences."""
    VOID = {"br", "img", "hr", "input", "area", "base", "col", "embed", "link", "meta", "param", "source", "track", "wbr"}
    # feedparser drops the content of these, and a reader of a page does not see it.
    HIDDEN = {"script", "style", "applet", "noscript", "title"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tokens, self.words, self.hidden = [], [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tokens.append(("<", tag, tuple(sorted((k, v or "") for k, v in attrs if not k.startswith("xmlns")))))
        self.hidden += tag in self.HIDDEN

    def handle_startendtag(self, tag, attrs):
        self.tokens.append(("<", tag, tuple(sorted((k, v or "") for k, v in attrs if not k.startswith("xmlns")))))
        if tag not in self.VOID:
            self.tokens.append((">", tag))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            self.tokens.append((">", tag))
        self.hidden = max(0, self.hidden - (tag in self.HIDDEN))

    def handle_data(self, data):
        if self.tokens and self.tokens[-1][0] == "t":
            data = self.tokens.pop()[1] + data
        self.tokens.append(("t", data))
        if not self.hidden:
            self.words.append(data)


def canon(text):
    tokens = Canon(text).tokens
    return [t for t in tokens if t[0] != "t" or t[1].strip()]


def words(text):
    return "".join(Canon(text).words).split()


class Value(str):
    """A string, normalised by the level of comparison."""
    def __new__(cls, text, is_html=False):
        value = super().__new__(cls, text)
        value.is_html = is_html
        return value

    def __eq__(self, other):
        if str.__eq__(self, other):
            return True
        if not isinstance(other, str) or LEVEL == 0:
            return False
        if LEVEL >= 1 and canon(self) == canon(other):
            return True
        return LEVEL >= 2 and words(self) == words(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


class Date(str):
    """A date as written; equal if it is the same instant."""
    def __eq__(self, other):
        def instant(text):
            try:
                return parsedate_to_datetime(text).timestamp()
            except (ValueError, TypeError):
                from datetime import datetime
                return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        try:
            return instant(str(self)) == instant(str(other))
        except (ValueError, TypeError):
            return str.__eq__(self, other)

    __hash__ = str.__hash__


class Dict(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)

    def has_key(self, name):
        return name in self


def struct(text):
    return tuple(time.gmtime(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))))[:8] + (0,) if text else None


def text_of(value):
    return Value(value["value"], value["is_html"])


def people(out, authors):
    out["authors"] = [Dict({k: Value(v) for k, v in person.items() if v} | ({"href": Value(person["url"])} if person["url"] else {}))
                      for person in authors]
    if authors:
        first = authors[0]
        out["author_detail"] = out["authors"][0]
        name, email = first["name"], first["email"]
        out["author"] = Value(f"{name} ({email})" if name and email else name or email)


def dates(out, thing):
    for name in ("published", "updated", "created"):
        if thing[name]:
            out[name], out[name + "_parsed"] = Date(thing[name]), struct(thing[name])
    # Without a date of the last change feedparser returns the date of publication.
    if "updated" not in out and "published" in out:
        out["updated"], out["updated_parsed"] = out["published"], out["published_parsed"]
    for name in ("modified", "date"):
        if "updated" in out:
            out[name], out[name + "_parsed"] = out["updated"], out["updated_parsed"]


def common(thing, summary):
    out = Dict()
    if thing["title"]["value"]:
        out["title"] = text_of(thing["title"])
        out["title_detail"] = Dict(value=out["title"])
    if thing["link"]:
        out["link"] = Value(thing["link"])
    if thing["id"]:
        out["id"] = out["guid"] = Value(thing["id"])
    out["links"] = [Dict(href=Value(link["href"]), rel=link["rel"], type=link["media_type"]) for link in thing["links"]]
    if summary is not None:
        out["summary"] = out["description"] = out["subtitle"] = out["tagline"] = text_of(summary)
        out["summary_detail"] = out["subtitle_detail"] = out["tagline_detail"] = Dict(value=out["summary"])
    people(out, thing["authors"])
    dates(out, thing)
    return out


def environment(feed):
    head = common(feed, feed["description"])
    entries = []
    for item in feed["items"]:
        summary = item["summary"] or (item["contents"][0] if item["contents"] else None)
        entry = common(item, summary)
        entry["content"] = [Dict(value=text_of(content)) for content in item["contents"]]
        entry["links"] += [Dict(href=Value(link["href"]), rel="enclosure") for link in item["media"]]
        entries.append(entry)
    return {"feed": head, "entries": entries, "version": "", "encoding": "", "len": len, "ord": ord}


def is_counted(expression):
    """Whether it concerns a counted field only."""
    if re.search(r"source|language|'base'|\['type'\]|'rel'|contributors|publisher|links'\]\[\d\]\['title|\.get\(|links'\]\[\d\]\s*==|len\(", expression):
        return False
    names = re.findall(r"(?:feed|entries\[\d+\])(?:\[['\"](\w+)['\"]\]|\.(\w+))", expression)
    names = [one or other for one, other in names]
    parts = re.findall(r"\]\[['\"](\w+)['\"]\]", expression)
    parts = [part for part in parts if part not in FIELDS]
    return bool(names) and all(name in FIELDS for name in names) and all(part in PARTS for part in parts)


def expectation(data):
    text = data[:6000]
    for encoding in ("utf-8", "utf-16", "utf-32", "cp037", "latin-1"):
        try:
            decoded = text.decode(encoding)
        except UnicodeDecodeError:
            continue
        found = re.search(r"Expect:\s*(.*?)\s*(?:\n|-->)", decoded)
        if found:
            headers = dict(re.findall(r"Header:\s*([\w-]+):\s*(.*)", decoded))
            return found.group(1), {name.lower(): value.strip() for name, value in headers.items()}
    return None, {}


def main():
    dump, folder = sys.argv[1:3]
    cases = []
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                expression, headers = expectation(file.read())
            if expression is None:
                continue
            url = urllib.parse.urljoin("http://127.0.0.1:8097/", os.path.relpath(path, os.path.dirname(folder.rstrip("/"))))
            location = headers.get("content-location")
            base = urllib.parse.urljoin(url, location) if location else url
            if not base.startswith("http"):
                base = url
            cases.append((path, expression, headers.get("content-type", ""), base))
    lines = "".join(f"{path}\t{kind}\t{base}\n" for path, _, kind, base in cases)
    run = subprocess.run([dump], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    read = [json.loads(line) for line in run.stdout.decode().splitlines()]
    assert len(read) == len(cases), "a file was not read"
    totals, misses = {}, []
    for (path, expression, _, _), result in zip(cases, read):
        kind = os.path.relpath(path, folder).split(os.sep)
        group = {"sanitize": "taken out for safety", "cdf": "CDF, another format"}.get(kind[-2], "feeds")
        if not is_counted(expression):
            continue
        total = totals.setdefault(group, [0, 0, 0, 0])
        total[0] += 1
        level = met_at(expression, result)
        if level is None:
            misses.append((path, expression, result))
        else:
            for place in range(level, 3):
                total[place + 1] += 1
    for group, (n, exact, same, seen) in sorted(totals.items()):
        print(f"{group}: {n} expectations; equal {exact} ({exact / n:.1%}), same HTML {same} ({same / n:.1%}), "
              f"same text {seen} ({seen / n:.1%})")
    print(f"files read: {len(cases)}, none failed")
    if "--misses" in sys.argv:
        for path, expression, result in misses:
            print(f"\n{os.path.relpath(path, folder)}\n  {expression}")
            said = result.get("error") or json.dumps({k: v for k, v in result["feed"].items() if v}, ensure_ascii=False)
            print("  " + said[:1200])


def met_at(expression, result):
    global LEVEL
    if "error" in result:
        return None
    for LEVEL in range(3):
        for bozo in (True, False):
            names = environment(result["feed"]) | {"bozo": bozo}
            try:
                if eval(expression, {"__builtins__": {"ord": ord, "len": len}}, names):
                    return LEVEL
            except (KeyError, IndexError, AttributeError, NameError, TypeError, SyntaxError):
                continue
    return None


main()
