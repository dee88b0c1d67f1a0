//! Exports of what feeds announced: articles without page layout, channel pages between their captures, and exports
//! that continue after a damaged record.

use std::path::PathBuf;

use perennial_core::time::Timestamp;
use serde_json::Value;

use crate::articles::{lines, press};
use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

/// Exports in a format. Returns exit code, report and file.
fn exported(archive: &Archive, format: &str) -> (Option<i32>, Value, PathBuf) {
    let path = archive.path().join(format!("export.{format}"));
    let output =
        archive.run(&["export", "--json", "--force", "--format", format, "--output", path.to_str().unwrap()]);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, path)
}

fn read(path: &PathBuf) -> String {
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

fn press_archive(web: &Web) -> Archive {
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.lapse("1h", "5h");
    archive
}

#[test]
fn articles_are_exported_with_every_version_whole() {
    let web = Web::serve(press);
    let archive = press_archive(&web);
    let (code, report, path) = exported(&archive, "articles");
    assert_eq!(
        (code, &report["n_articles"], &report["n_versions"]),
        (Some(0), &6.into(), &7.into()),
        "{report}"
    );
    let articles = lines(&read(&path));
    let edited: Vec<&Value> =
        articles.iter().filter(|article| article["versions"].as_array().unwrap().len() > 1).collect();
    assert_eq!((articles.len(), edited.len()), (6, 1));
    let before = edited[0]["versions"][0]["text"].as_str().unwrap();
    assert!(
        !before.contains("quietly") && edited[0]["text"].as_str().unwrap().contains("quietly"),
        "{before}"
    );
    assert!(
        articles.iter().all(|article| !article["text"].as_str().unwrap().contains("visitor")),
        "no layout"
    );
    let (code, _, path) = exported(&archive, "articles-markdown");
    let text = read(&path);
    assert_eq!((code, text.lines().filter(|line| line.starts_with("# ")).count()), (Some(0), 6), "{text}");
    assert_eq!(text.matches("## From ").count(), 1, "the earlier version");
    let none =
        archive.run(&["export", "--format", "articles", "--output", "/nowhere/x", "--site", "no.example"]);
    assert_eq!(none.status.code(), Some(1));
}

/// Overwrites a part of a page's record in its WARC file.
fn damage(archive: &Archive, page: &str) {
    let (_, _, index) = exported(archive, "cdxj");
    let text = read(&index);
    let line =
        text.lines().find(|line| line.contains(&format!("{page}\"")) && line.contains("\"200\"")).unwrap();
    let fields: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
    let number = |name: &str| fields[name].as_str().unwrap().parse::<usize>().unwrap();
    let file =
        archive.path().join("warc").join(fields["filename"].as_str().unwrap().rsplit('/').next().unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = number("offset") + number("length") / 2;
    bytes[middle..middle + 16].fill(0x55);
    std::fs::write(&file, bytes).unwrap();
}

#[test]
fn an_export_leaves_damaged_records_out_and_goes_on() {
    let web = Web::serve(press);
    let archive = press_archive(&web);
    let (_, whole, _) = exported(&archive, "warc");
    assert_eq!(whole["n_damaged"], 0);
    damage(&archive, "/a3");
    let (code, report, path) = exported(&archive, "warc");
    assert_eq!((code, &report["n_damaged"]), (Some(4), &1.into()), "{report}");
    let copy = Archive::new();
    copy.ok(&["import", path.to_str().unwrap()]);
    copy.verify();
    let (code, report, path) = exported(&archive, "articles");
    assert_eq!(
        (code, &report["n_articles"], &report["n_unread"]),
        (Some(4), &5.into(), &1.into()),
        "{report}"
    );
    assert!(!read(&path).contains("/a3\""));
    assert_eq!(exported(&archive, "wacz").0, Some(4));
}

/// A new article every hour and a half. The front page lists the latest four.
fn listing(request: &WebRequest) -> Reply {
    let start = Timestamp::parse("2026-01-01").unwrap();
    let now = request.field("perennial-time").and_then(|time| Timestamp::parse(time).ok()).unwrap_or(start);
    let newest = (now - start).as_millis() / 5_400_000;
    let host = request.field("host").unwrap_or_default();
    let latest = |n: i64| (0..=newest).rev().take(n as usize);
    match request.path.as_str() {
        "/" => {
            let entry = |n: i64| {
                format!(
                    "<li class=e><a href=/a{n}><b>Headline {n}</b></a><p>Words of the page about {n}, which only it has.</p></li>"
                )
            };
            let list: String = latest(4).map(entry).collect();
            html(&format!(
                "<title>Front</title><link rel=stylesheet href=/s.css><link rel=alternate type='application/rss+xml' href=/feed.xml>\
                 <script>run()</script><h1>The front page</h1><ul>{list}</ul><p>Imprint of the paper</p>"
            ))
        }
        "/s.css" => {
            Reply::Page(200, vec![("Content-Type", "text/css".into())], b"h1 { color: teal }".to_vec())
        }
        "/feed.xml" => {
            let item = |n: i64| {
                let date = Timestamp::from_secs(start.as_secs() + n * 5_400).to_rfc3339();
                let about =
                    if n % 2 == 0 { format!("<description>About {n}</description>") } else { String::new() };
                format!(
                    "<item><title>Headline {n}</title><link>http://{host}/a{n}</link><pubDate>{date}</pubDate>{about}</item>"
                )
            };
            let items: String = latest(6).map(item).collect();
            let feed = format!(
                "<rss version='2.0'><channel><title>Front</title><link>http://{host}/</link>{items}</channel></rss>"
            );
            Reply::Page(200, vec![("Content-Type", "application/rss+xml".into())], feed.into_bytes())
        }
        path if path.starts_with("/a") => html(&format!("<title>{path}</title><p>An article")),
        _ => status(404),
    }
}

#[test]
fn a_channel_page_is_rebuilt_inside_its_template() {
    let web = Web::serve(listing);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.lapse("40h", "60h");
    let place = format!("{}@2026-01-01T20:00:00Z", web.url("/"));
    let page = archive.json(&["lab", "channel", &place]);
    let titles: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect();
    assert_eq!(titles[0], "Headline 13", "the latest of eight in the evening");
    let html = archive.ok(&["lab", "channel", &place, "--html"]);
    assert!(
        html.contains("<h1>The front page</h1>") && html.contains("<p>Imprint of the paper</p>"),
        "the template: {html}"
    );
    assert!(
        html.contains("<style>h1 { color: teal }</style>") && !html.contains("run()"),
        "its style, and no script: {html}"
    );
    assert_eq!(html.matches("Inferred, not captured").count(), 1);
    let places: Vec<Option<usize>> =
        titles.iter().map(|title| html.find(&format!("<b>{title}</b>"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{titles:?} {places:?} {html}");
    assert_eq!(html.matches("stub: only the headline is known").count(), titles.len() / 2, "{html}");
    assert!(html.contains("<p>About 12</p>") && !html.contains("<b>Headline 20</b>"), "{html}");
}
