//! `article extract`: files, lists, neighbours and archived pages.

use std::path::Path;

use perennial_core::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};
use serde_json::Value;

use crate::program::{Ran, folder, perennial};

const TEXTS: [&str; 3] = [
    "The council met on Monday evening and decided, after a long debate, to rebuild the old bridge.",
    "Work will begin in spring, the mayor said, and is expected to take about two years in all.",
    "Until then, buses will go around the square, which adds ten minutes to the way across town.",
];

fn article() -> String {
    let text = TEXTS.map(|text| format!("<p>{text}</p>")).concat();
    format!(
        "<html><head><title>Bridge to be rebuilt</title><meta name=author content='Jane Doe'>
         <meta property=article:published_time content='2026-11-16T09:30:00Z'></head><body><nav><a href=/>Home</a></nav>
         <article><h1>Bridge to be rebuilt</h1>{text}<p>See <a href=plan.html>the plan</a> in the town hall, which is open all day.</p></article>
         <div id=comments><p>What a fine idea, at long last, I say.</p></div></body></html>"
    )
}

fn blog() -> String {
    let post = |n: usize| {
        format!("<div class=post><h2><a href=/{n}>Post number {n} of three</a></h2><p>{}</p></div>", TEXTS[n])
    };
    format!("<title>A blog</title><body>{}{}{}</body>", post(0), post(1), post(2))
}

fn write(dir: &Path, name: &str, html: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, html).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_gives_an_article() {
    let (dir, archive) = folder();
    let file = write(dir.path(), "a.html", &article());
    let url = "http://town.example/news/1.html";
    let ran = perennial(&archive, ["article", "extract", "--html", &file, "--url", url, "--json"]).ok();
    let article = ran.json();
    assert_eq!(article["title"], "Bridge to be rebuilt");
    assert_eq!((&article["author"], &article["time"]), (&"Jane Doe".into(), &"2026-11-16T09:30:00Z".into()));
    let text = article["text"].as_str().unwrap();
    assert!(
        text.starts_with(TEXTS[0]) && text.ends_with("open all day.") && text.split("\n\n").count() == 4,
        "{text}"
    );
    assert_eq!(article["links"][0]["url"], "http://town.example/news/plan.html");
    assert_eq!(article["comments"][0], "What a fine idea, at long last, I say.");
    assert_eq!(article["comments_url"], "http://town.example/news/1.html#comments");
    for name in ["lead", "images", "wrapper", "categories"] {
        assert!(!article[name].is_null(), "{name}");
    }
    let shown = perennial(&archive, ["article", "extract", "--html", &file]).ok().stdout;
    assert!(
        shown.starts_with("Bridge to be rebuilt\nJane Doe, 2026-11-16T09:30:00Z\n\nThe council"),
        "{shown}"
    );
    assert!(!archive.exists(), "no archive is needed, and none is made");
}

#[test]
fn title_and_description_choose_among_several_posts() {
    let (dir, archive) = folder();
    let file = write(dir.path(), "blog.html", &blog());
    for (n, text) in TEXTS.iter().enumerate() {
        let title = format!("Post number {n} of three");
        let args = [
            "article",
            "extract",
            "--html",
            &file,
            "--title",
            &title,
            "--description",
            &format!("<p>{}</p>", &text[..50]),
            "--json",
        ];
        let article = perennial(&archive, args).ok().json();
        assert_eq!(
            (article["title"].as_str(), article["text"].as_str()),
            (Some(title.as_str()), Some(*text))
        );
    }
}

#[test]
fn files_and_lists_give_one_article_per_line() {
    let (dir, archive) = folder();
    let (a, b) = (write(dir.path(), "a.html", &article()), write(dir.path(), "b.html", &blog()));
    let ran = perennial(&archive, ["article", "extract", "--json", "--html", &a, &b, &a]).ok();
    assert_eq!(
        lines(&ran).iter().map(|line| line["page"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
        [&a, &b, &a].map(String::clone)
    );
    let job = |id: usize, file: &str| {
        format!("{}\n", serde_json::json!({"id": id, "file": file, "title": "Post number 2 of three"}))
    };
    let list = write(dir.path(), "list.jsonl", &format!("{}\n{}", job(7, &b), job(8, &a)));
    let found = lines(&perennial(&archive, ["article", "extract", "--json", "--list", &list]).ok());
    assert_eq!((&found[0]["id"], found[0]["text"].as_str()), (&7.into(), Some(TEXTS[2])));
    assert_eq!((&found[1]["id"], found.len()), (&8.into(), 2));
}

#[test]
fn neighbours_reveal_the_template() {
    let (dir, archive) = folder();
    let notice =
        "<p>Support your town's paper with a small gift, every month or whenever you can spare it.</p>";
    let page = |text: &str| format!("<body><div>{text}{notice}</div></body>");
    let file = write(dir.path(), "new.html", &page(&TEXTS.map(|text| format!("<p>{text}</p>")).concat()));
    let old: Vec<String> = (0..3)
        .map(|n| {
            let text = format!(
                "<p>Page number {n} tells of other things, such as the weather of week {n}, at length.</p>"
            );
            write(dir.path(), &format!("{n}.html"), &page(&text))
        })
        .collect();
    let alone = perennial(&archive, ["article", "extract", "--json", "--html", &file]).ok().json();
    assert!(alone["text"].as_str().unwrap().contains("Support your town"));
    let args = ["article", "extract", "--json", "--html", &file, "--neighbour", &old[0], &old[1], &old[2]];
    assert_eq!(perennial(&archive, args).ok().json()["text"], TEXTS.join("\n\n"));
}

#[test]
fn unreadable_files_are_reported_and_the_rest_extracted() {
    let (dir, archive) = folder();
    let file = write(dir.path(), "a.html", &article());
    let gone = dir.path().join("gone.html").to_str().unwrap().to_owned();
    let ran = perennial(&archive, ["article", "extract", "--json", "--html", &gone, &file]);
    assert_eq!((ran.code, lines(&ran).len()), (1, 1));
    assert!(
        ran.stderr.contains("gone.html") && ran.stderr.contains("1 pages could not be read"),
        "{}",
        ran.stderr
    );
    let list = write(dir.path(), "list", "{\"title\": \"no file\"}\n");
    let ran = perennial(&archive, ["article", "extract", "--list", &list]);
    assert!(ran.code == 1 && ran.stderr.contains("line 1 of the list"), "{}", ran.stderr);
    assert_eq!(perennial(&archive, ["article", "extract"]).code, 2, "nothing to extract is wrong usage");
    let empty = write(dir.path(), "empty.html", "");
    assert!(
        perennial(&archive, ["article", "extract", "--html", &empty]).ok().stdout.contains("no running text")
    );
}

#[test]
fn the_variants_of_the_papers_are_available() {
    let (dir, archive) = folder();
    let file = write(dir.path(), "a.html", &article());
    for name in ["exact-title", "concepts", "grams-2", "grams-3", "grams-4", "grams-then-concepts"] {
        let article = perennial(
            &archive,
            [
                "lab",
                "extract",
                "--json",
                "--html",
                &file,
                "--title",
                "Bridge to be rebuilt",
                "--description",
                TEXTS[0],
                "--algorithm",
                name,
            ],
        )
        .ok()
        .json();
        assert!(article["text"].as_str().unwrap().contains(TEXTS[1]), "{name}: {article}");
    }
    assert_eq!(perennial(&archive, ["lab", "extract", "--html", &file, "--algorithm", "magic"]).code, 2);
}

/// Makes an archive of pages, given by day, URL and HTML.
fn archived(dir: &Path, archive: &Path, pages: &[(&str, String, String)]) {
    let mut ids = RecordIds::new(5);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(1)).unwrap();
    for (day, url, body) in pages {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        let time = Timestamp::parse(day).unwrap();
        out.write(&NewRecord::response(ids.next_id(), time, url, head.as_bytes(), body.as_bytes())).unwrap();
    }
    let file = dir.join("in.warc.gz");
    std::fs::write(&file, out.into_inner()).unwrap();
    perennial(archive, ["init"]).ok();
    perennial(archive, ["import", file.to_str().unwrap()]).ok();
}

#[test]
fn an_archived_page_is_extracted_with_its_sites_template() {
    let own = TEXTS.map(|text| format!("<p>{text}</p>")).concat();
    let notice =
        "<p>Support your town's paper with a small gift, every month or whenever you can spare it.</p>";
    let page = |text: &str| format!("<body><div>{text}{notice}</div></body>");
    let text_with = |n_others: usize, host: &str| {
        let (dir, archive) = folder();
        let mut pages = vec![("2026-01-01", "http://town.example/news/new.html".to_owned(), page(&own))];
        for n in 0..n_others {
            let text = format!(
                "<p>Page number {n} tells of other things, such as the weather of week {n}, at length.</p>"
            );
            pages.push(("2026-01-01", format!("http://{host}/{n}.html"), page(&text)));
        }
        archived(dir.path(), &archive, &pages);
        let found =
            perennial(&archive, ["article", "extract", "--json", "http://town.example/news/new.html@"])
                .ok()
                .json();
        found["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text_with(6, "town.example/news"), TEXTS.join("\n\n"));
    assert_eq!(
        text_with(6, "town.example/elsewhere"),
        TEXTS.join("\n\n"),
        "of the site, if not of the folder"
    );
    assert!(text_with(6, "city.example").contains("Support your town"), "a different site is ignored");
    assert!(text_with(3, "town.example/news").contains("Support your town"), "three are too few");
}

#[test]
fn an_archived_page_is_extracted_at_its_time() {
    let (dir, archive) = folder();
    let url = "http://town.example/news/1.html";
    let versions = [("2026-01-01", "Bridge to fall"), ("2026-02-01", "Bridge to be rebuilt")];
    let pages =
        versions.map(|(day, title)| (day, url.to_owned(), article().replace("Bridge to be rebuilt", title)));
    archived(dir.path(), &archive, &pages);
    let at = |time: &str| {
        perennial(&archive, ["article", "extract", &format!("{url}@{time}"), "--json"]).ok().json()
    };
    let shown = perennial(
        &archive,
        ["article", "extract", &format!("{url}@"), "--before", &format!("{url}@20260102")],
    )
    .ok()
    .stdout;
    assert!(shown.contains("title:\n  Bridge to\n  [-fall-]\n  {+be rebuilt+}\n"), "{shown}");
    assert_eq!(at("20260102")["title"], "Bridge to fall");
    assert_eq!(at("")["title"], "Bridge to be rebuilt");
    assert_eq!(at("")["links"][0]["url"], "http://town.example/news/plan.html");
}

#[test]
fn edits_since_an_older_version_are_reported() {
    let (dir, archive) = folder();
    let old = write(dir.path(), "old.html", &article());
    let of = |html: &str| {
        let new = write(dir.path(), "new.html", html);
        perennial(&archive, ["article", "extract", "--json", "--html", &new, "--before", &old]).ok().json()
    };
    let around = of(&article().replace("Home", "Start").replace("What a fine idea", "What a bad idea"));
    assert_eq!((&around["same_version"], &around["edits"]), (&true.into(), &serde_json::json!([])));
    let edited = of(&article().replace("two years", "ten years"));
    let words = edited["edits"][0]["words"].as_array().unwrap();
    assert_eq!((&words[1]["taken_out"], &words[2]["added"]), (&"two".into(), &"ten".into()));
    assert_eq!((&edited["same_version"], &edited["edits"][0]["field"]), (&false.into(), &"text".into()));
    let linked = of(&article().replace("plan.html", "plan-2.html"));
    assert_eq!((&linked["same_version"], &linked["edits"]), (&false.into(), &serde_json::json!([])));
}
