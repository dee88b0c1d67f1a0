//! Articles that feeds announce, with their versions and edits.

use serde_json::Value;

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

/// Unique sentences.
fn prose(n: usize) -> String {
    let words = [
        "harbour",
        "bridge",
        "council",
        "winter",
        "timetable",
        "museum",
        "ferry",
        "orchard",
        "library",
        "signal",
    ];
    let sentence = |at: usize| {
        let word = |step: usize| words[(at * 3 + step * n + step) % words.len()];
        format!(
            "The {} of the {} was discussed by the {} in {} hours of talks on the {}.",
            word(1),
            word(2),
            word(3),
            at + 2,
            word(4)
        )
    };
    (0..4).map(|at| format!("<p>{} {}</p>", sentence(n + at), sentence(n * 7 + at))).collect()
}

/// Six articles of a feed. From the second visit on, the first article has a different headline and one more word. The
/// page around the second article changes.
pub(crate) fn press(request: &WebRequest) -> Reply {
    let host = request.field("host").unwrap_or_default();
    let page = |n: usize, title: &str, more: &str, around: &str| {
        html(&format!(
            "<title>{title}</title><nav><a href=/>Home of the press</a> visitor {around}</nav>\
             <article><h1>{title}</h1>{}<p>At the end of day {n} all of them went home{more} by the last train of the evening.</p></article>",
            prose(n)
        ))
    };
    let visit = request.n_before.min(2);
    match request.path.as_str() {
        "/" => html(
            "<title>Press</title><link rel=alternate type='application/rss+xml' href=/feed.xml><p>All the news",
        ),
        "/feed.xml" => {
            let item = |n: usize| {
                format!(
                    "<item><title>Story number {n}</title><link>http://{host}/a{n}</link>\
                     <pubDate>Thu, 01 Jan 2026 0{n}:00:00 GMT</pubDate></item>"
                )
            };
            let items: String = (0..6).map(item).collect();
            let feed = format!("<rss version='2.0'><channel><title>Press</title>{items}</channel></rss>");
            Reply::Page(200, vec![("Content-Type", "application/rss+xml".into())], feed.into_bytes())
        }
        "/a0" if visit > 0 => page(0, "Story number 0, corrected", " quietly", "1"),
        "/a1" => page(1, "Story number 1", "", &format!("{visit}")),
        path => match path.strip_prefix("/a").and_then(|n| n.parse::<usize>().ok()) {
            Some(n) if n < 6 => page(n, &format!("Story number {n}"), "", "1"),
            _ => status(404),
        },
    }
}

pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn articles_have_versions_when_their_own_words_changed() {
    let web = Web::serve(press);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.lapse("1h", "5h");
    let all = lines(&archive.ok(&["article", "list", "--json"]));
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(
        all.iter().all(|article| article["feed"] == web.url("/feed.xml")
            && article["text"].as_str().unwrap().len() > 200)
    );
    let edited = lines(&archive.ok(&["article", "list", "--edited", "--json"]));
    let pages: Vec<&Value> = edited.iter().map(|article| &article["page"]).collect();
    assert_eq!(pages, [&Value::from(web.url("/a0"))], "changed surroundings are not a version");
    let versions = edited[0]["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    let fields: Vec<&Value> =
        versions[1]["edits"].as_array().unwrap().iter().map(|edit| &edit["field"]).collect();
    assert_eq!(fields, ["title", "text"], "the headline comes first");
    let reported = archive.ok(&["article", "show", &web.url("/a0"), "--history"]);
    assert!(reported.contains("corrected") && reported.contains("{+quietly+}"), "{reported}");
    assert_eq!(lines(&archive.ok(&["article", "list", "--text", "corrected", "--json"])).len(), 1);
    let corpus = archive.ok(&["article", "list", "--format", "markdown"]);
    assert!(
        corpus.matches("\n# ").count() + usize::from(corpus.starts_with("# ")) == 6
            && !corpus.contains("visitor"),
        "{corpus}"
    );
    assert!(archive.ok(&["article", "list", "elsewhere.example"]).contains("no such article"));
}
