//! A small web whose pages depend only on URL and time, and an archive of it that is identical on every machine.
//!
//! A proxy serves it, so its URLs have no port. The crawl runs on a virtual clock in the past with one fetch at a time.
//! The snapshots show this archive, so every change of this file changes them.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use perennial_core::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};

use crate::crawled::Archive;
use crate::notices::mail_server;
use crate::web::{self, Reply, Web, WebRequest, status};

/// Markup, quotation marks, an ampersand, a right-to-left override, a mention.
const HOSTILE: &str = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &quot;quoted&quot; it's &amp;amp; \u{202e}turned <!channel>";

/// The archive, its web, and the receivers of notices.
pub(crate) struct Town {
    pub(crate) archive: Archive,
    pub(crate) web: Web,
    /// SMTP dialogues, line by line.
    pub(crate) mails: Receiver<Vec<String>>,
}

impl Town {
    /// Crawls two virtual days in a few seconds.
    pub(crate) fn crawled() -> Town {
        let (web, archive) = (Web::serve(page), Archive::new());
        let (mail_port, mails) = mail_server(false, |_| None);
        write_settings(&archive, &web, mail_port);
        for seed in ["http://town.localhost/", "http://press.localhost/", "http://fails.localhost/"] {
            archive.ok(&["add", seed, "--allow-private", "--renderer", "layout"]);
        }
        archive.lapse("6h", "42h");
        let town = Town { archive, web, mails };
        // Exit code 1: the receiver `closed` accepts nothing.
        town.archive.ended(&["notify", "send"], 1);
        import_damaged(&town.archive);
        town.archive.ok(&["analyse"]);
        town.run(&["pause", "http://press.localhost/"]);
        town.run(&[
            "set",
            "http://town.localhost/",
            "--weight",
            "2",
            "--budget",
            "6/1h",
            "--goal",
            "importance",
        ]);
        town.run(&["part", "pin", "http://town.localhost/", "--selector", "#limit", "--importance", "0.6"]);
        town.run(&["part", "ignore", "http://town.localhost/", "--selector", "nav a[title]"]);
        town
    }

    /// Runs a command as a user with a fixed name.
    fn run(&self, args: &[&str]) {
        let output = self.archive.command(args).env("USER", "clerk").output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }

    /// A path next to the archive.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.archive.root.with_file_name(name).to_str().unwrap().to_string()
    }

    /// Requests to a path of `post.localhost`.
    pub(crate) fn posted(&self, path: &str) -> Vec<WebRequest> {
        let url = format!("http://post.localhost{path}");
        self.web.requests().into_iter().filter(|request| request.path == url).collect()
    }

    pub(crate) fn mail(&self) -> Option<Vec<String>> {
        self.mails.recv_timeout(Duration::from_secs(20)).ok()
    }
}

/// Rules of every shape. `all` receives every change; the receiver of `closed` fails.
fn write_settings(archive: &Archive, web: &Web, mail_port: u16) {
    let path = archive.root.join("perennial.toml");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (table, keys) in [
        (
            "crawl",
            format!(
                "contact = \"clerk@example.org\"\nproxy = \"http://{}\"\nmax_workers = 1\nbudget = \"60/1h\"\n",
                web.address
            ),
        ),
        (
            "smtp",
            format!(
                "server = \"localhost:{mail_port}\"\nsecurity = \"none\"\nfrom = \"clerk@example.org\"\n"
            ),
        ),
    ] {
        text = text.replacen(&format!("\n[{table}]\n"), &format!("\n[{table}]\n{keys}"), 1);
    }
    let limits = "place = \"http://town.localhost/limits\"\nlink = \"http://archive.example/town/\"\n";
    for (name, to, more) in [
        ("all", "webhook:http://post.localhost/webhook", ""),
        ("part", "webhook:http://post.localhost/part", "selector = \"#limit\"\n"),
        ("slack", "slack:http://post.localhost/slack", limits),
        ("ntfy", "ntfy:http://post.localhost/ntfy/topic", limits),
        ("apprise", "apprise:http://post.localhost/apprise", limits),
        ("program", "command:sh tell.sh", limits),
        ("mail", "email:reader@example.org", limits),
        ("closed", "webhook:http://post.localhost/closed", limits),
    ] {
        text.push_str(&format!("\n[[notify]]\nname = \"{name}\"\nto = \"{to}\"\n{more}"));
    }
    std::fs::write(path, text).unwrap();
    std::fs::write(archive.root.join("tell.sh"), "cat >> told.json\n").unwrap();
}

/// Imports a truncated file with captures of a site that is not followed.
fn import_damaged(archive: &Archive) {
    let mut ids = RecordIds::new(5);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(1)).unwrap();
    for (day, words) in [(1, "<i>are</i> kept"), (2, "<b>were</b> kept"), (3, "are lost")] {
        let at = Timestamp::parse(&format!("2026-01-0{day}T03:00:00Z")).unwrap();
        let body = format!(
            "<title>Old {HOSTILE}</title><h1>Old</h1><p>Papers of the old harbour {words} in the cellar of the museum.</p>"
        );
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
        let url = "http://old.example/";
        out.write(&NewRecord::response(ids.next_id(), at, url, head.as_bytes(), body.as_bytes())).unwrap();
    }
    let bytes = out.into_inner();
    let file = archive.root.with_file_name("old.warc.gz");
    std::fs::write(&file, &bytes[..bytes.len() - 40]).unwrap();
    archive.ended(&["import", file.to_str().unwrap()], 4);
}

/// Hours since the start of 2026 on the crawl's clock.
fn hour_of(request: &WebRequest) -> i64 {
    let start = Timestamp::parse("2026-01-01").unwrap();
    let now = request.field("perennial-time").and_then(|time| Timestamp::parse(time).ok()).unwrap_or(start);
    (now - start).as_millis() / 3_600_000
}

fn page(request: &WebRequest) -> Reply {
    let hour = hour_of(request);
    let rest = request.path.strip_prefix("http://").unwrap_or_default();
    match rest.split_once('/').unwrap_or_default() {
        ("town.localhost", path) => town(path, hour),
        ("press.localhost", path) => press(path, hour),
        ("fails.localhost", "") if hour < 6 => {
            html("shop", "<title>Shop</title><h1>Shop</h1><p>Open all day.</p><a href=/stock>Stock</a>")
        }
        ("fails.localhost", "stock") => {
            html("stock", "<title>Stock</title><h1>Stock</h1><p>Nine lamps are left.</p>")
        }
        ("fails.localhost", "") => status(500),
        ("post.localhost", "closed") => status(503),
        ("post.localhost", _) => status(200),
        _ => status(404),
    }
}

fn town(path: &str, hour: i64) -> Reply {
    match path {
        "" => html("front", &home(hour)),
        "style.css" => of_type("text/css", "nav { width: 200px; float: left } h1 { font-size: 40px }"),
        "flag.gif" => Reply::Page(
            200,
            vec![("Content-Type", "image/gif".into())],
            b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\x00!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;".to_vec(),
        ),
        "feed.xml" => of_type("application/rss+xml", &feed(hour)),
        "limits" => html("limits", &limits(hour)),
        "gone" if hour < 18 => html("flood", "<title>Flood plan</title><h1>Flood plan</h1><p>What to do when the river rises.</p>"),
        "back" if !(12..30).contains(&hour) => html("opening", "<title>Opening hours</title><h1>Opening hours</h1><p>The town hall is open from nine to noon.</p>"),
        "moved" if hour >= 24 => Reply::Page(301, vec![("Location", "http://town.localhost/limits".into())], Vec::new()),
        "moved" => html("ring", "<title>Ring road</title><h1>Ring road</h1><p>The ring road has two lanes in each direction.</p>"),
        "clock" => html("clock", &format!("<title>Clock</title><h1>Clock</h1><p>The town hall has a clock since the year of the great fire.</p><p>It is {} o'clock.</p>", hour % 24)),
        "still" => html("still", "<title>Still</title><h1>Still</h1><p>Nothing happens here.</p>"),
        "it's?a=1&b=%22%3E%3Cscript%3E" => html("odd", &odd(hour)),
        path => match path.strip_prefix("town/").and_then(|number| number.parse().ok()) {
            Some(number) => html(&format!("article-{number}"), &article(number, hour)),
            None => status(404),
        },
    }
}

/// Adds a unique tag to each page. Pages with the same tags share a layout, and the number of cores decides which of
/// them is laid out first.
fn html(name: &str, body: &str) -> Reply {
    web::html(&format!("{body}<p><x-{name}>All of this is made up.</x-{name}></p>"))
}

fn of_type(mime: &str, text: &str) -> Reply {
    Reply::Page(200, vec![("Content-Type", mime.into())], text.as_bytes().to_vec())
}

/// A listing page with ten headlines. The second is rewritten after 12 hours, the ninth replaced after 24.
fn home(hour: i64) -> String {
    let story = |number: i64| {
        let number = if number == 9 && hour >= 24 { 11 } else { number };
        format!(
            "<li><h2><a href=/town/{number}>{}</a></h2><p>What is known of it so far, in a line.</p></li>",
            headline(number, hour)
        )
    };
    let list: String = (1..=10).map(story).collect();
    format!(
        "<title>Front {HOSTILE}</title><link rel=alternate type=application/rss+xml href=/feed.xml><link rel=stylesheet href=/style.css>\
         <nav><a href=/limits title=\"&lt;b&gt;'\">Limits &amp; <b>rules</b></a> <a href=/gone>Plan</a> <a href=/back>Hours</a> <a href=/moved>Road</a> \
         <a href=/clock>Clock</a> <a href=/still>Still</a> <a href=\"/it's?a=1&amp;b=%22%3E%3Cscript%3E\">&lt;script&gt; \"here\"</a></nav>\
         <h1>The town today</h1><img src=/flag.gif width=40 height=30 alt='A \"flag\" of &lt;b&gt;'><ul>{list}</ul>"
    )
}

fn headline(number: i64, hour: i64) -> String {
    match number {
        2 if hour >= 12 => "Council defends the harbour bridge against all critics".to_string(),
        2 => "Council approves the harbour bridge against all critics".to_string(),
        3 => format!("Story {HOSTILE}"),
        _ => format!("Story number {number} about the town and what its people said of it"),
    }
}

/// The limit changes twice.
fn limits(hour: i64) -> String {
    let limit = match hour {
        0..12 => "thirty",
        12..36 => "fifty",
        _ => "seventy",
    };
    format!(
        "<title>Limits {HOSTILE}</title><link rel=stylesheet href=/style.css><h1>Limits</h1>\
         <p id=limit>Cars on the ring road must not drive faster than {limit} kilometres an hour, says the city, from Monday on and until further notice.</p>\
         <table><tr><th>Road<th>Since<tr><td>Ring road<td>{}<tr><td>\"Old\" &lt;road&gt;<td>1987</table>\
         <p>Who asks finds the rules at <a href=/>the town</a>.</p>",
        if hour < 12 { "Monday" } else { "Friday" }
    )
}

/// A page with hostile URL, title and links.
fn odd(hour: i64) -> String {
    let target = if hour < 24 { "/x\"y" } else { "/x'y&amp;z" };
    format!(
        "<title>{HOSTILE}</title><h1>Odd &lt;b&gt;\"'&amp;</h1><p>This page links to <a href='{target}'>\"odd\" &lt;b&gt; addresses</a> and to \
         <a href=javascript:alert(1)>a script</a>, which no reader should follow.</p>"
    )
}

/// The first is edited and retitled, the third has a hostile title.
fn article(number: i64, hour: i64) -> String {
    let is_edited = number == 1 && hour >= 18;
    let title = match is_edited {
        true => "Story number 1, corrected".to_string(),
        false => headline(number, hour),
    };
    let more = if is_edited { " quietly" } else { "" };
    let subjects = ["harbour", "bridge", "museum", "ferry", "orchard", "library"];
    let subject = |step: i64| subjects[((number + step) % 6) as usize];
    let sentences: String = (0..4)
        .map(|n| {
            format!(
                "<p>The {} was discussed by the council in {} hours of talks about the {}, and the {} was named once.</p>",
                subject(n),
                number + n + 2,
                subject(n + 1),
                subject(n + 3)
            )
        })
        .collect();
    format!(
        "<title>{title}</title><meta name=author content='A. &lt;b&gt;Writer'><nav><a href=/>Home of the town</a></nav>\
         <article><h1>{title}</h1><time datetime=2026-01-01T0{}:00:00Z>1 January 2026</time>{sentences}\
         <p>At the end of the day all of them went home{more} by the last train of the evening.</p></article>",
        number % 10
    )
}

fn feed(hour: i64) -> String {
    let item = |number: i64| {
        format!(
            "<item><title>{}</title><link>http://town.localhost/town/{number}</link><guid>{number}</guid>\
             <pubDate>Thu, 01 Jan 2026 0{}:00:00 GMT</pubDate></item>",
            headline(number, hour).replace("<!channel>", ""),
            number % 10
        )
    };
    let n_items = if hour < 24 { 3 } else { 4 };
    let items: String = (1..=n_items).map(item).collect();
    format!(
        "<rss version='2.0'><channel><title>Town &lt;b&gt;\"'</title><link>http://town.localhost/</link>{items}</channel></rss>"
    )
}

/// A second site, which is paused after the crawl.
fn press(path: &str, hour: i64) -> Reply {
    match path {
        "" => html(
            "press",
            "<title>Press</title><h1>Press</h1><p>All the news that the town has.</p><a href=/weekly>Weekly</a>",
        ),
        "weekly" => html(
            "weekly",
            &format!(
                "<title>Weekly</title><h1>Weekly</h1><p>Number {} of the weekly is out, with all that was said in the town hall.</p>",
                hour / 12
            ),
        ),
        _ => status(404),
    }
}
