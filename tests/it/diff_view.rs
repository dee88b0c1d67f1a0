//! `perennial diff --format html` marks the planted changes and nothing else. Nothing of a page can run or send a
//! request.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use perennial_core::text::dom::{Dom, DomKind};
use perennial_core::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};

use crate::program::{folder, perennial, ran, testdata};

/// The view of two files.
struct View {
    outer: Dom,
    frames: [Dom; 2],
}

fn files(case: &str) -> [PathBuf; 2] {
    let dir = testdata("pages").join(case);
    [dir.join("before.html"), dir.join("after.html")]
}

fn view(files: &[PathBuf; 2]) -> View {
    let output = ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["diff", "--format", "html", "--renderer", "layout"])
        .args(files)
        .env_remove("PERENNIAL_ARCHIVE"));
    let outer = Dom::parse(&output.ok().stdout);
    let frames = |side: &str| {
        let mut nodes = outer.nodes.iter().filter(|node| node.tag() == "iframe");
        let frame = nodes.find(|node| node.attribute("name") == Some(side)).unwrap();
        assert_eq!(frame.attribute("sandbox"), Some("allow-same-origin"), "no scripts, no windows, no forms");
        Dom::parse(frame.attribute("srcdoc").unwrap())
    };
    let frames = [frames("pd-before"), frames("pd-after")];
    View { outer, frames }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// Elements that do not separate words.
const INLINE: [&str; 9] = ["a", "abbr", "b", "em", "i", "pd-w", "span", "strong", "u"];

/// The words under the elements that a condition selects, without the numbers of tags and the words that went.
fn words_where(dom: &Dom, is_chosen: impl Fn(&perennial_core::text::dom::DomNode) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (index, node) in dom.nodes.iter().enumerate().filter(|(_, node)| is_chosen(node)) {
        let (mut at, mut text, mut block_ends) = (index as u32, String::new(), Vec::new());
        while at < node.end {
            if block_ends.last().is_some_and(|end| *end <= at) {
                block_ends.pop();
                text.push(' ');
                continue;
            }
            let inner = &dom.nodes[at as usize];
            match &inner.kind {
                DomKind::Element { .. } if matches!(inner.tag(), "pd-t" | "pd-g") => {
                    at = inner.end;
                    continue;
                }
                DomKind::Text(own) => text.push_str(own),
                DomKind::Element { .. } if !INLINE.contains(&inner.tag()) => {
                    text.push(' ');
                    block_ends.push(inner.end);
                }
                DomKind::Element { .. } => {}
            }
            at += 1;
        }
        found.extend(words(&text));
    }
    found
}

impl View {
    /// The marked words of a side that a reader sees at first, without folded noise and advertisements.
    fn marked(&self, side: usize) -> Vec<String> {
        words_where(&self.frames[side], |node| {
            node.tag() == "pd-w" && matches!(node.attribute("data-pd-group"), Some("news" | "moves"))
        })
    }

    fn framed(&self, side: usize) -> Vec<String> {
        words_where(&self.frames[side], |node| {
            node.attribute("data-pd-frame").is_some()
                && matches!(node.attribute("data-pd-group"), Some("news" | "moves"))
        })
    }

    fn n_framed_images(&self, side: usize) -> usize {
        let is_framed =
            |node: &&perennial_core::text::dom::DomNode| node.attribute("data-pd-frame").is_some();
        self.frames[side].nodes.iter().filter(|node| node.tag() == "img").filter(is_framed).count()
    }

    fn is_unmarked(&self) -> bool {
        let is_marked = |node: &perennial_core::text::dom::DomNode| {
            ["data-pd", "data-pd-frame"].iter().any(|name| node.attribute(name).is_some())
        };
        !self.frames.iter().flat_map(|dom| &dom.nodes).any(is_marked)
    }

    fn heading(&self) -> String {
        let place = self.outer.nodes.iter().position(|node| node.tag() == "h1").unwrap();
        self.outer.text_content(place as u32)
    }
}

#[test]
fn what_a_reader_cannot_see_is_not_marked() {
    for case in ["unchanged", "change-style-only", "add-hidden-text", "change-session-id"] {
        let view = view(&files(case));
        assert!(view.is_unmarked(), "{case}");
        assert_eq!(view.heading(), "No change that a reader could tell", "{case}");
    }
}

#[test]
fn one_word_is_marked_in_both_versions() {
    let view = view(&files("change-word-in-paragraph"));
    let (before, after) = (view.marked(0), view.marked(1));
    assert_eq!((before.len(), after.len()), (1, 1), "{before:?} {after:?}");
    assert_ne!(before, after);
    assert!(
        view.framed(0).contains(&before[0]) && view.framed(1).contains(&after[0]),
        "its paragraph is framed"
    );
    assert_eq!(view.heading(), "1 change");
}

#[test]
fn a_new_paragraph_is_framed_and_nothing_else() {
    let view = view(&files("add-paragraph"));
    let all =
        |name: &str| words(&std::fs::read_to_string(testdata("pages/add-paragraph").join(name)).unwrap());
    let (before, after) = (all("before.html"), all("after.html"));
    let framed = view.framed(1);
    assert!(framed.len() > 5, "{framed:?}");
    assert_eq!(after.len() - before.len(), framed.len(), "exactly the words that are more");
    assert!(view.framed(0).is_empty() && view.marked(0).is_empty() && view.marked(1).is_empty());
}

/// For every pair, each marked or framed word belongs to an operation, and each word of an operation is marked or
/// framed.
#[test]
fn what_was_planted_is_marked_and_nothing_else() {
    let mut cases: Vec<String> = std::fs::read_dir(testdata("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    cases.sort();
    assert!(cases.len() >= 20);
    let mut wrong = String::new();
    for case in &cases {
        let files = files(case);
        let report = ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
            .args(["diff", "--json", "--renderer", "layout"])
            .args(&files)
            .env_remove("PERENNIAL_ARCHIVE"))
        .json();
        let view = view(&files);
        for (side, name) in ["before", "after"].into_iter().enumerate() {
            let entries = report["operations"]
                .as_array()
                .unwrap()
                .iter()
                .chain(report["structure"].as_array().unwrap());
            // Advertisements and noise are folded. The report truncates the words of a block.
            let reported: Vec<&serde_json::Value> = entries
                .filter(|entry| entry["advertisement"] == false && entry["noise"].as_f64().unwrap() < 0.6)
                .collect();
            let has_block = reported.iter().any(|entry| entry["element"] == "block");
            let texts = reported.iter().filter(|entry| entry["element"] != "image" && entry["op"] != "move");
            let planted: BTreeSet<String> =
                texts.filter_map(|entry| entry[name]["text"].as_str()).flat_map(words).collect();
            let marked: BTreeSet<String> = view.marked(side).into_iter().collect();
            let shown: BTreeSet<String> = marked.iter().cloned().chain(view.framed(side)).collect();
            let is_moved = reported.iter().any(|entry| entry["op"] == "move");
            // A frame also contains the links within an updated text.
            // A mark ends where a link does, also within a word: "around" and ",".
            let is_planted = |mark: &String| {
                planted.iter().any(|word| word.starts_with(mark.as_str()) || word.ends_with(mark.as_str()))
            };
            let is_too_much = !has_block && !is_moved && !marked.iter().all(is_planted);
            // An update must show only what differs. Its frame shows the rest.
            if is_too_much || !planted.is_subset(&shown) {
                wrong += &format!("{case} {name}\nplanted {planted:?}\nshown {shown:?}\n");
            }
            let n_images =
                reported.iter().filter(|entry| entry["element"] == "image" && !entry[name].is_null()).count();
            if n_images > 0 && view.n_framed_images(side) == 0 {
                wrong += &format!("{case} {name}: {n_images} images are not framed\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn changed_urls_are_shown_with_what_differs() {
    let view = view(&files("change-link-address"));
    let place = view.outer.nodes.iter().position(|node| node.attribute("class") == Some("adr")).unwrap();
    let parts: Vec<&str> = view.outer.nodes[place..view.outer.nodes[place].end as usize]
        .iter()
        .map(|node| node.tag())
        .filter(|tag| !tag.is_empty())
        .collect();
    assert!(parts.contains(&"ins"), "{parts:?}");
    let adr = view.outer.text_content(place as u32);
    assert_eq!(adr, "http://page.example/city/detour → http://page.example/city/detour-2");
}

const HOSTILE: &str = r#"<!doctype html><html onload="alert(1)"><head><title>"><script>alert(2)</script></title>
<base href="http://evil.example/"><meta http-equiv="refresh" content="0;url=http://evil.example/">
<link rel="stylesheet" href="http://evil.example/style.css"><link rel="preload" href="http://evil.example/x">
<style>@import "http://evil.example/more.css";p{background:url(http://evil.example/p.png)}</style>
<script>document.write('x')</script><script src="http://evil.example/s.js"></script></head>
<body onclick="alert(3)" background="http://evil.example/b.png"><noscript><img src="http://evil.example/n.png"></noscript>
<p style="background:url('http://evil.example/q.png')">Words of a paragraph that a reader reads, NUMBER of them.</p>
<p>"&gt;&lt;/iframe&gt;&lt;script&gt;alert(4)&lt;/script&gt; NUMBER &quot;&amp;quot;</p>
<a href="javascript:alert(5)">a script</a> <a href="data:text/html,<script>alert(6)</script>">data</a> <a href="/ok">fine NUMBER</a>
<img src="http://evil.example/i.png" onerror="alert(7)" srcset="http://evil.example/j.png 2x" alt="&quot;><script>NUMBER">
<iframe src="http://evil.example/frame" srcdoc="<script>alert(8)</script>"></iframe><object data="http://evil.example/o"></object>
<form action="http://evil.example/f"><input formaction="http://evil.example/g" value="x"><button>go</button></form>
<svg><script>alert(9)</script><a xlink:href="javascript:alert(10)"><text>drawn</text></a><use href="http://evil.example/u.svg#a"/></svg>
<x"y onfocus=alert(11) autofocus>odd</x"y><p a"b=c>odd attribute</p><template><script>alert(12)</script></template>
<math><mtext><style><img src=x onerror=alert(13)></style></mtext></math></body></html>"#;

#[test]
fn nothing_of_a_hostile_page_runs_or_is_loaded() {
    let (dir, _) = folder();
    let files = [dir.path().join("before.html"), dir.path().join("after.html")];
    std::fs::write(&files[0], HOSTILE.replace("NUMBER", "one")).unwrap();
    std::fs::write(&files[1], HOSTILE.replace("NUMBER", "two")).unwrap();
    let view = view(&files);
    let scripts = view.outer.nodes.iter().filter(|node| node.tag() == "script").count();
    assert_eq!(scripts, 1, "ours and no other");
    for node in &view.outer.nodes {
        let DomKind::Element { attributes, .. } = &node.kind else { continue };
        assert!(
            !attributes.iter().any(|a| a.name.local.starts_with("on") || &*a.name.local == "src"),
            "{node:?}"
        );
    }
    for frame in &view.frames {
        let policy = frame.nodes.iter().find(|node| node.tag() == "meta").unwrap();
        assert_eq!(policy.attribute("http-equiv"), Some("Content-Security-Policy"));
        assert!(policy.attribute("content").unwrap().starts_with("default-src 'none'; img-src data:;"));
        assert_harmless(frame);
        assert!(words_where(frame, |node| node.tag() == "p").contains(&"paragraph".to_string()));
    }
    assert_eq!(view.marked(0).iter().filter(|word| *word == "one").count(), 3);
    assert_eq!(view.marked(1).iter().filter(|word| *word == "two").count(), 3);
}

fn assert_harmless(frame: &Dom) {
    let refused = ["script", "iframe", "object", "embed", "base", "link", "template", "noscript"];
    for (index, node) in frame.nodes.iter().enumerate() {
        let DomKind::Element { attributes, .. } = &node.kind else { continue };
        assert!(!refused.contains(&node.tag()), "{node:?}");
        if node.tag() == "style" {
            assert!(!frame.text_content(index as u32).contains("evil.example"));
        }
        for attribute in attributes {
            let (name, value) = (&*attribute.name.local, &*attribute.value);
            assert!(!name.starts_with("on") && !name.contains("action") && name != "srcset", "{node:?}");
            assert!(!value.to_ascii_lowercase().contains("javascript:"), "{node:?}");
            // A URL that the browser requests without a click.
            let is_loaded = value.contains("evil.example") && !(node.tag() == "a" && name == "href");
            assert!(!is_loaded, "{node:?}");
        }
    }
}

#[test]
fn stylesheets_and_pictures_beside_a_page_are_within_it() {
    let (dir, _) = folder();
    let page = |word: &str| {
        format!("<link rel=stylesheet href=s.css><p>A {word} of some words.<img src=i.gif alt=dot>")
    };
    let files = [dir.path().join("before.html"), dir.path().join("after.html")];
    std::fs::write(&files[0], page("line")).unwrap();
    std::fs::write(&files[1], page("row")).unwrap();
    std::fs::write(dir.path().join("s.css"), "p{color:#123456;background:url(i.gif)}").unwrap();
    std::fs::write(dir.path().join("i.gif"), b"GIF89a\x01\x00\x01\x00\x00\x00\x00;").unwrap();
    let view = view(&files);
    for frame in &view.frames {
        let styles: String = (0..frame.nodes.len() as u32)
            .filter(|&node| frame.nodes[node as usize].tag() == "style")
            .map(|node| frame.text_content(node))
            .collect();
        assert!(styles.contains("#123456") && styles.contains("url(\"data:image/gif;base64,"), "{styles}");
        let image = frame.nodes.iter().find(|node| node.tag() == "img").unwrap();
        assert!(image.attribute("src").unwrap().starts_with("data:image/gif;base64,"));
    }
    assert_eq!((view.marked(0), view.marked(1)), (words("line"), words("row")));
}

#[test]
fn a_document_that_is_no_page_is_shown_as_text() {
    let (dir, _) = folder();
    let files = [dir.path().join("before.csv"), dir.path().join("after.csv")];
    std::fs::write(&files[0], "road,limit\nRing,50\nBridge,30\n").unwrap();
    std::fs::write(&files[1], "road,limit\nRing,60\nBridge,30\n").unwrap();
    let output =
        ran(Command::new(env!("CARGO_BIN_EXE_perennial")).args(["diff", "--format", "html"]).args(&files))
            .ok();
    let outer = Dom::parse(&output.stdout);
    assert!(!outer.nodes.iter().any(|node| node.tag() == "iframe"));
    let checked = outer.nodes.iter().find(|node| node.attribute("checked").is_some()).unwrap();
    assert_eq!(checked.attribute("id"), Some("pd-text"));
    let text = words_where(&outer, |node| node.tag() == "ins");
    assert!(text.iter().any(|word| word.contains("60")), "{text:?}");
}

#[test]
fn nothing_to_read_is_said_and_seen_by_scripts() {
    let (dir, _) = folder();
    let write = |name: &str, html: &str| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, html).unwrap();
        path
    };
    let empty = write("empty.html", "<!doctype html><body><div id=root></div>");
    let full = write("full.html", "<!doctype html><body><p>Some words to read.");
    let run = |args: &[&str], files: &[&Path]| {
        ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
            .args(args)
            .args(files)
            .env_remove("PERENNIAL_ARCHIVE"))
    };
    for (args, files) in [
        (&["lab", "segment"][..], &[&*empty][..]),
        (&["diff"], &[&*full, &*empty]),
        (&["diff"], &[&*empty, &*empty]),
    ] {
        let found = run(args, files);
        assert_eq!(found.code, 5, "{args:?}: {}", found.stderr);
        assert!(
            found.stderr.contains("nothing to read in ") && found.stderr.contains("--renderer chromium"),
            "{}",
            found.stderr
        );
    }
    run(&["lab", "segment"], &[&full]).ok();
    run(&["diff", "--renderer", "layout"], &[&full, &full]).ok();
}

#[test]
fn noise_is_reported_for_files() {
    let found = ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["diff", "--json"])
        .args(files("change-date-stamp"))
        .env_remove("PERENNIAL_ARCHIVE"))
    .ok()
    .json();
    let operations = found["operations"].as_array().unwrap();
    assert!(operations.iter().any(|entry| entry["noise"].as_f64().unwrap() > 0.9), "{found}");
}

/// A WARC file with a page that counts its visitors. One version contains news.
fn counting_pages(path: &Path) {
    let mut ids = RecordIds::new(11);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(6)).unwrap();
    for hour in 0..12 {
        let time = Timestamp::parse(&format!("2026-02-01T{hour:02}:00:00Z")).unwrap();
        let news = if hour == 11 {
            "The old bridge stays closed all winter."
        } else {
            "The old bridge stays open all winter."
        };
        let body = format!(
            "<!doctype html><title>Port</title><h1>News of the port</h1><p>{news}</p><p>The ferry runs from eight to six, also on \
             Sundays, and takes cars.</p><p>You are visitor number {}</p>",
            1000 + 37 * hour
        );
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        let record = NewRecord::response(
            ids.next_id(),
            time,
            "http://port.example/",
            head.as_bytes(),
            body.as_bytes(),
        );
        out.write(&record).unwrap();
    }
    std::fs::write(path, out.into_inner()).unwrap();
}

#[test]
fn diff_and_changes_report_the_same_noise_of_a_page_s_history() {
    let (dir, archive) = folder();
    let file = dir.path().join("port.warc.gz");
    counting_pages(&file);
    perennial(&archive, ["init", archive.to_str().unwrap()]).ok();
    perennial(&archive, ["import", file.to_str().unwrap()]).ok();
    let changes = perennial(&archive, ["changes", "--json"]).ok().json();
    let changes = changes.as_array().unwrap();
    assert_eq!(changes.len(), 11);
    let noise_of = |operations: &serde_json::Value, word: &str| -> f64 {
        let all = operations.as_array().unwrap().iter();
        let mut found =
            all.filter(|entry| entry["after"]["text"].as_str().is_some_and(|text| text.contains(word)));
        found.next().unwrap()["noise"].as_f64().unwrap()
    };
    let counts: Vec<f64> = changes.iter().map(|change| noise_of(&change["operations"], "visitor")).collect();
    assert!(counts.iter().all(|noise| *noise > 0.6), "a counter has a label: {counts:?}");
    let last = &changes[10];
    assert_eq!(noise_of(&last["operations"], "closed"), 0.0);
    let versions = ["http://port.example/@20260201100000", "http://port.example/@20260201110000"];
    let diff = perennial(&archive, ["diff", versions[0], versions[1], "--json"]).ok().json();
    assert_eq!(diff["importance"], last["importance"]);
    assert_eq!(noise_of(&diff["operations"], "visitor"), counts[10]);
    // The observations are not consecutive, so the page's earlier observations provide the noise.
    let apart = perennial(&archive, ["diff", "http://port.example/@20260201010000", versions[1], "--json"])
        .ok()
        .json();
    assert!(noise_of(&apart["operations"], "visitor") > 0.6, "{apart}");
    let view = perennial(&archive, ["diff", versions[0], versions[1], "--format", "html"]).ok();
    assert!(view.stdout.contains("> Noise 1</label>") && view.stdout.contains("<h1>1 change in 1 h</h1>"));
}

/// A frame that overlaps the lines around it would look like a struck-out word.
#[test]
fn frames_stay_within_their_lines() {
    let [_, after] = view(&files("change-link-address")).frames;
    let at = after.nodes.iter().position(|node| node.tag() == "style").unwrap();
    let css = after.text_content(at as u32);
    let rule = css.split_once("[data-pd-frame]{outline-offset:").unwrap().1;
    let offset: i32 = rule.split_once("px").unwrap().0.parse().unwrap();
    assert!(offset < 0, "{offset}");
}
