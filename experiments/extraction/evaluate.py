#!/usr/bin/env python3
"""Compares article extraction with other extractors. See README.md.

    python3 experiments/extraction/evaluate.py BIN DATA WORK [--only tune] [--no-peers]

BIN   the perennial executable
DATA  a folder with the archives article-extraction-benchmark-third.tar, trafilatura-eval-half.tar.xz, feedpages.tar.xz
      and readability-test-pages.tar.xz (missing ones are left out)
WORK  a scratch folder for the unpacked pages and a virtual environment with the peers

The hash of a page's domain assigns it to the tuning half or the held-out half. `--only tune` prints the tuning half alone;
use it to choose settings.
"""
import argparse, collections, gzip, hashlib, html, json, os, random, re, subprocess, sys, tarfile, time
from pathlib import Path
from urllib.parse import urlsplit

PEERS = ["trafilatura==2.3.1", "readability-lxml==0.9", "boilerpy3==1.0.7", "jusText==3.0.2", "lxml_html_clean"]
VARIANTS = ["exact-title", "concepts", "grams-2", "grams-3", "grams-4", "grams-then-concepts"]
WORD = re.compile(r"\w+")


# --- measures

def shingles(text, n=4):
    words = WORD.findall(text or "")
    return collections.Counter(tuple(words[i:i + n]) for i in range(max(1, len(words) - n + 1)))


def normalised(text):
    return " ".join((text or "").split())


def compare(gold, text):
    """Shares of shingles in both, in the text alone and in the gold alone, as in article-extraction-benchmark."""
    a, b = shingles(gold), shingles(text)
    both = sum((a & b).values())
    parts = both, sum((b - a).values()), sum((a - b).values())
    return tuple(part / (sum(parts) or 1) for part in parts)


def of_gold(jobs, texts):
    rows = [compare(job["gold"], texts[job["id"]]) for job in jobs]
    precision = [tp / (tp + fp) for tp, fp, _ in rows if tp + fp > 0]
    recall = [tp / (tp + fn) for tp, _, fn in rows if tp + fn > 0]
    p, r = (sum(x) / max(1, len(x)) for x in (precision, recall))
    exact = sum(normalised(job["gold"]) == normalised(texts[job["id"]]) for job in jobs) / max(1, len(jobs))
    return f"n {len(jobs):4}  P {p:.3f}  R {r:.3f}  F1 {2 * p * r / ((p + r) or 1):.3f}  exact {exact:.3f}"


def of_snippets(jobs, texts):
    hit = miss = wrong = 0
    for job in jobs:
        text = texts[job["id"]]
        hit += sum(snippet in text for snippet in job["with"])
        miss += sum(snippet not in text for snippet in job["with"])
        wrong += sum(snippet in text for snippet in job["without"])
    p, r = hit / ((hit + wrong) or 1), hit / ((hit + miss) or 1)
    return f"n {len(jobs):4}  P {p:.3f}  R {r:.3f}  F1 {2 * p * r / ((p + r) or 1):.3f}"


# --- data

def domain(url):
    host = (urlsplit(url).hostname or url).lower()
    n = 3 if re.search(r"\.(co|com|org|gov|ac|net)\.[a-z]{2}$", host) else 2
    return ".".join(host.split(".")[-n:])


def half(url):
    return "tune" if hashlib.sha1(domain(url).encode()).digest()[0] % 2 == 0 else "apart"


def decoded(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        named = re.search(rb"charset=[\"']?([\w-]+)", data[:4000])
        try:
            return data.decode(named.group(1).decode() if named else "latin-1", "replace")
        except LookupError:
            return data.decode("utf-8", "replace")


def page(work, name, data):
    """Gives all tools the same characters: a byte order mark outweighs the encoding that the page declares."""
    path = work / "pages" / (hashlib.sha1(name.encode()).hexdigest()[:20] + ".html")
    path.parent.mkdir(exist_ok=True)
    path.write_text(decoded(data), encoding="utf-8-sig")
    return str(path)


def unpack(data, work):
    for name in os.listdir(data):
        done = work / "unpacked" / (name + ".done")
        if ".tar" in name and not done.exists():
            with tarfile.open(Path(data) / name) as archive:
                archive.extractall(work / "unpacked", filter="data")
            done.touch()
    return work / "unpacked"


def articles(root, work):
    folder = root / "article-extraction-benchmark-third"
    if not folder.exists():
        return []
    gold = json.loads((folder / "ground-truth.json").read_text())
    return [dict(id=key, file=page(work, key, gzip.open(folder / "html" / (key + ".html.gz")).read()), url=value["url"],
                 half=half(value["url"]), gold=value["articleBody"]) for key, value in gold.items()]


def snippets(root, work):
    folder = root / "trafilatura-eval"
    if not folder.exists():
        return []
    jobs = []
    for url, value in json.loads((folder / "evaldata.json").read_text()).items():
        file = folder / "eval" / value["file"]
        if file.exists():
            jobs.append(dict(value, id=value["file"], file=page(work, value["file"], file.read_bytes()), url=url, half=half(url), meta=value))
    for job in jobs:
        # Title and description of the data are expected results, not input.
        job.pop("title", None), job.pop("description", None)
    return jobs


def reader_pages(root, work):
    """Pages of Readability.js with the text that this tool finds. No person marked them."""
    folder = root / "test" / "test-pages"
    names = sorted(os.listdir(folder)) if folder.exists() else []
    return [dict(id="reader/" + name, file=page(work, "reader/" + name, (folder / name / "source.html").read_bytes()), half="reader",
                 gold=stripped((folder / name / "expected.html").read_text())) for name in names if (folder / name / "expected.html").exists()]


def stripped(text):
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", text, flags=re.S)
    text = re.sub(r"</?(p|div|li|ul|ol|h\d|br|tr|td|pre|blockquote|table)[^>]*>", "\n", text)
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def feed_items(root, site):
    """Items whose full text is in the feed; the same post under several URLs counts once."""
    items = {}
    file = root / site / "items.jsonl"
    for line in file.read_text().splitlines() if file.exists() else []:
        item = json.loads(line)
        item["file"] = str(root / (item["id"] + ".html"))
        summary = item.get("summary") or ""
        is_cut = len(summary) < 2500 or re.search(r"(…|\.\.\.|&hellip;)\s*(</p>)?\s*$", summary)
        item["gold"] = stripped(item.get("content") or ("" if is_cut else summary))
        if os.path.exists(item["file"]):
            items.setdefault(item["title"], item)
    return list(items.values())


def feed_pages(items, n_neighbours):
    jobs = []
    for number, item in enumerate(items):
        others = [other["file"] for other in items if other is not item]
        random.Random(number).shuffle(others)
        if item["gold"].strip():
            jobs.append(dict(id=item["id"], file=item["file"], title=item["title"], description=(item.get("summary") or "")[:2000],
                             url=item["link"], neighbours=others[:n_neighbours], gold=item["gold"]))
    return jobs


LAYOUTS = {
    "div, linked headings": '<div class="post"><h2><a href="{u}">{t}</a></h2><p class="meta">3 May 2021</p><div class="entry">{c}</div>'
                            '<p class="more"><a href="{u}#comments">3 comments</a></p></div>',
    "article, plain headings": "<article><header><h2>{t}</h2><time>3 May 2021</time></header>{c}<footer>Filed under <a href=/x>News</a></footer></article>",
    "flat, linked headings": '<h3><a href="{u}">{t}</a></h3><p><small>3 May 2021</small></p>{c}<hr>',
    "flat, plain headings": "<h2>{t}</h2>{c}",
    "rows of a table": '<tr><td><b class="date">3 May 2021</b></td><td><h3><a href="{u}">{t}</a></h3>{c}</td></tr>',
    "sections": '<section class="item"><h2>{t}</h2><div>{c}</div></section>',
}


def several(items, work):
    """Pages made for this test: three posts per page, in the ways in which sites build them."""
    posts = [item for item in items if item.get("content") and 300 < len(item["gold"]) < 6000][:60]
    jobs = []
    for layout, form in LAYOUTS.items():
        for n in range(0, len(posts) - 2, 3):
            three = posts[n:n + 3]
            inner = lambda text: re.sub(r"<(/?)h[1-3]", r"<\1h4", text)
            body = "".join(form.format(t=html.escape(post["title"]), u=post["link"], c=inner(post["content"])) for post in three)
            body = f"<table>{body}</table>" if "table" in layout else body
            text = (f'<title>The Blog</title><body><div id="top"><a href="/">Home</a></div><div id="content">{body}</div>'
                    '<div class="sidebar"><h3>Archive</h3><ul><li><a href="/1">May</a></ul></div>')
            file = page(work, f"{layout}{n}", text.encode())
            jobs += [dict(id=layout + post["id"], layout=layout, file=file, title=post["title"], description=normalised(post["gold"])[:300],
                          url=post["link"], gold=post["gold"], others=[other["gold"] for other in three if other is not post]) for post in three]
    return jobs


def has_neighbour(job, text):
    """Whether the text contains more than a phrase of a different post on the page."""
    own, held = set(shingles(job["gold"], 6)), set(shingles(text, 6))
    return any(len(set(shingles(other, 6)) & held - own) > 3 for other in job["others"])


# --- tools

def run_ours(binary, jobs, *command):
    keys = ("id", "file", "title", "description", "url", "neighbours")
    lines = "".join(json.dumps({key: job[key] for key in keys if job.get(key)}) + "\n" for job in jobs)
    start = cpu_of_children()
    done = subprocess.run([binary, *(command or ["article", "extract"]), "--json", "--list", "-"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    found = {line["id"]: line for line in map(json.loads, done.stdout.decode().splitlines())}
    return found, (cpu_of_children() - start) * 1000 / max(1, len(jobs))


def cpu_of_children():
    """CPU time, because wall-clock time also measures other work on the machine."""
    times = os.times()
    return times.children_user + times.children_system


def peer_functions():
    import logging
    logging.disable(logging.CRITICAL)
    import justext, lxml.html, trafilatura
    from boilerpy3 import extractors
    from readability import Document
    blocks = {"p", "div", "li", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "br", "tr", "td", "pre", "blockquote", "table", "figure"}

    def joined(root):
        # Inline elements must not separate words, or no text would be exact.
        parts = []
        for event, node in __import__("lxml.etree").etree.iterwalk(root, events=("start", "end")):
            if not isinstance(node.tag, str):
                continue
            parts.append("\n" if node.tag in blocks else "")
            parts.append((node.text if event == "start" else node.tail) or "")
        return "".join(parts)

    def by_justext(text):
        languages = dict(de="German", en="English", fr="French", es="Spanish", pt="Portuguese", it="Italian", pl="Polish", ru="Russian", nl="Dutch")
        lang = re.search(r"<html[^>]*\blang=[\"']?(\w\w)", text[:5000], re.I)
        words = justext.get_stoplist(languages.get(lang.group(1).lower() if lang else "en", "English"))
        return "\n".join(part.text for part in justext.justext(text.encode(), words, encoding="utf-8") if not part.is_boilerplate)

    extract = lambda text, **options: trafilatura.extract(text, include_comments=False, **options)
    return {
        "trafilatura": extract,
        "trafilatura, precision": lambda text: extract(text, favor_precision=True),
        "trafilatura, recall": lambda text: extract(text, favor_recall=True),
        "readability-lxml": lambda text: joined(lxml.html.fromstring(Document(text).summary())),
        "boilerpy3": lambda text: extractors.ArticleExtractor().get_content(text),
        "jusText": by_justext,
    }


def run_as_peers(jobs_file, out_file):
    jobs, out = json.loads(Path(jobs_file).read_text()), {}
    for name, function in peer_functions().items():
        start, texts = time.process_time(), {}
        for job in jobs:
            try:
                texts[job["id"]] = function(Path(job["file"]).read_text(encoding="utf-8-sig")) or ""
            except Exception:  # a tool that fails on a page has found nothing there
                texts[job["id"]] = ""
        out[name] = dict(texts=texts, ms=(time.process_time() - start) * 1000 / max(1, len(jobs)))
    Path(out_file).write_text(json.dumps(out))


def run_peers(work, jobs):
    python = work / "venv/bin/python"
    if not (work / "venv/done").exists():
        subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", "pip"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=True)
        (work / "venv/done").touch()
    asked = json.dumps([dict(id=job["id"], file=job["file"]) for job in jobs])
    # The results of the peers depend on the pages alone, so they are cached.
    if not (work / "peers.json").exists() or (work / "jobs.json").read_text() != asked:
        (work / "jobs.json").write_text(asked)
        subprocess.run([python, __file__, "--as-peers", work / "jobs.json", work / "peers.json"], check=True)
    return json.loads((work / "peers.json").read_text())


def run_rust_peer(work, jobs):
    """The Rust crate trafilatura, built outside of the workspace; left out without cargo."""
    folder = Path(__file__).parent / "peers"
    build = ["cargo", "build", "--release", "-q", "--manifest-path", folder / "Cargo.toml", "--target-dir", work / "rust-peers"]
    try:
        subprocess.run(build, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the Rust peers are left out: {error}")
        return []
    lines = "".join(json.dumps(dict(id=job["id"], file=job["file"])) + "\n" for job in jobs).encode()
    rows = []
    for mode in ("balanced", "precision", "recall"):
        start = cpu_of_children()
        done = subprocess.run([work / "rust-peers/release/extraction-peers", mode], input=lines, stdout=subprocess.PIPE, check=True)
        texts = {line["id"]: line["text"] for line in map(json.loads, done.stdout.decode().splitlines())}
        rows.append((f"Rust trafilatura, {mode}", texts, (cpu_of_children() - start) * 1000 / max(1, len(jobs))))
    return rows


# --- tables

def tables(halves, a, t, r, rows):
    for part in halves:
        mine = lambda jobs: [job for job in jobs if part in (job["half"], "all")]
        print(f"\n== {part}: articles marked by hand")
        for name, texts, ms in rows:
            print(f"{name:28} {of_gold(mine(a), texts)}  {ms:5.1f} ms")
        print(f"== {part}: snippets")
        for name, texts, _ in rows:
            print(f"{name:28} {of_snippets(mine(t), texts)}")
    if "all" in halves:
        print("\n== what another tool's own output is, on pages that nothing was tuned on")
        for name, texts, _ in rows:
            print(f"{name:28} {of_gold(r, texts)}")


def comments(halves, t, found):
    for part in halves:
        n = zone = leaked = gone = 0
        for job in t:
            if part not in (job["half"], "all"):
                continue
            source = normalised(stripped(Path(job["file"]).read_text(encoding="utf-8-sig")))
            for snippet in filter(None, job.get("comments") or []):
                if normalised(snippet) not in source:
                    gone += 1
                    continue
                n += 1
                zone += snippet in "\n".join(found[job["id"]]["comments"])
                leaked += snippet in found[job["id"]]["text"]
        print(f"{part}: {n} comments in the pages ({gone} more are not), in their zone {zone / (n or 1):.3f}, leaked {leaked / (n or 1):.3f}")


def metadata(halves, t, found):
    plain = lambda value: normalised(" ".join(value) if isinstance(value, list) else value or "").lower()
    for part in halves:
        right, known = collections.Counter(), collections.Counter()
        for job in t:
            if part not in (job["half"], "all"):
                continue
            own, meta = found[job["id"]], job["meta"]
            author, name = plain(meta.get("author")), plain(own["author"])
            for field, is_known, is_right in [
                ("title", meta.get("title"), plain(meta.get("title")) == plain(own["title"])),
                ("day", meta.get("date"), (own["time"] or "")[:10] == meta.get("date")),
                ("author", author, bool(name) and (author in name or name in author)),
            ]:
                known[field] += bool(is_known)
                right[field] += bool(is_known) and is_right
        print(part, ", ".join(f"{field} {right[field] / (known[field] or 1):.3f} of {known[field]}" for field in known))


def main():
    if sys.argv[1:2] == ["--as-peers"]:
        return run_as_peers(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary"), parser.add_argument("data"), parser.add_argument("work", type=Path)
    parser.add_argument("--only", choices=["tune"])
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    options.work = options.work.resolve()
    (options.work / "unpacked").mkdir(parents=True, exist_ok=True)
    root, halves = unpack(options.data, options.work), ["tune"] if options.only else ["tune", "apart", "all"]
    a, t, r = articles(root, options.work), snippets(root, options.work), reader_pages(root, options.work)
    found, ms = run_ours(options.binary, a + t + r)
    text = lambda line: line["text"]
    rows = [("perennial", {key: text(line) for key, line in found.items()}, ms),
            ("perennial, lead and text", {key: line["lead"] + "\n" + text(line) for key, line in found.items()}, ms)]
    for variant in VARIANTS:
        by, ms = run_ours(options.binary, a + t + r, "lab", "extract", "--algorithm", variant)
        rows.append((f"paper: {variant}", {key: text(line) for key, line in by.items()}, ms))
    if not options.no_peers:
        rows += [(name, peer["texts"], peer["ms"]) for name, peer in run_peers(options.work, a + t + r).items()]
        rows += run_rust_peer(options.work, a + t + r)
    tables(halves, a, t, r, rows)
    print("\n== comments"), comments(halves, t, found)
    print("\n== metadata"), metadata(halves, t, found)
    print("\n== pages that a feed links to, by known pages of the site")
    for site in ("infra-apache", "flink"):
        for n in (0, 10):
            jobs = feed_pages(feed_items(root, site), n)
            print(f"{site:14} {n:2} known  {of_gold(jobs, {key: text(line) for key, line in run_ours(options.binary, jobs)[0].items()})}")
    print("\n== three posts a page")
    jobs = several(feed_items(root, "infra-apache"), options.work)
    by = {key: text(line) for key, line in run_ours(options.binary, jobs)[0].items()}
    for layout in LAYOUTS:
        mine = [job for job in jobs if job["layout"] == layout]
        leaked = sum(has_neighbour(job, by[job["id"]]) for job in mine) / (len(mine) or 1)
        print(f"{layout:24} {of_gold(mine, by)}  with words of a neighbour {leaked:.3f}")


if __name__ == "__main__":
    main()
