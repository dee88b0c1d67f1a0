//! What feeds announced -> a list of articles and posts; one of them -> its versions, and the words that were edited.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::parts::empty;
use super::{Framed, Place, Tab, foreign, page_address, without_scheme};
use perennial_engine::html::dates::counted;

/// An object in the list.
pub struct ObjectRow {
    /// The page that holds it.
    pub url: String,
    /// Headline in the feed.
    pub title: String,
    /// When it was published, or first announced.
    pub time: Timestamp,
    /// The feed that announced it first.
    pub feed: String,
    /// Distinct contents of the page.
    pub n_versions: usize,
}

/// The list.
pub struct ObjectsPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// Only this site.
    pub site: &'a str,
    /// The objects.
    pub rows: &'a [ObjectRow],
    /// Where the list goes on.
    pub next: Option<usize>,
}

impl ObjectsPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let base = self.place.base;
        let more = if self.next.is_some() { " and more" } else { "" };
        let heading = match self.rows.len() {
            0 => "No article or post".to_owned(),
            n => format!("{}{more}", counted(n as u64, "article or post", "articles and posts")),
        };
        let mut main = format!(
            "<div class=\"head\"><div><h1>{heading}</h1><p class=\"lead\">What feeds announced and captures show, the latest first.</p></div></div>\
             <form class=\"filters\" aria-label=\"Filter\" action=\"{base}/objects\"><label>Site <input type=\"text\" name=\"site\" size=\"22\" value=\"{}\" placeholder=\"all\"></label><button>Show</button></form>",
            escaped(self.site)
        );
        match self.rows.is_empty() {
            true => main.push_str(&empty(
                "No feed has announced a captured page",
                "Feeds are found on the pages of followed sites and read beside the visits.",
                Some("perennial feeds"),
            )),
            false => self.write_rows(&mut main),
        }
        if let Some(next) = self.next {
            // Writing into a string cannot fail, here and below.
            let _ = write!(
                main,
                "<p class=\"more\"><a class=\"btn\" rel=\"next\" href=\"{base}/objects?{}\">Go on</a></p>",
                escaped(&self.query(Some(next)))
            );
        }
        let json = format!("/api/objects?{}", self.query(None));
        Framed {
            place: self.place,
            tab: Tab::Sites,
            title: "Articles and posts",
            query: "",
            json: Some(&json),
        }
        .html(&main)
    }

    fn query(&self, skip: Option<usize>) -> String {
        let site = if self.site.is_empty() { String::new() } else { format!("site={}", escape(self.site)) };
        match skip {
            Some(skip) => {
                format!("{site}{}skip={skip}", if site.is_empty() { "" } else { "&" })
            }
            None => site,
        }
    }

    fn write_rows(&self, out: &mut String) {
        out.push_str(
            "<table class=\"t\"><thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Headline</th><th scope=\"col\" class=\"r\">Contents</th></tr></thead><tbody>",
        );
        for row in self.rows {
            let title = if row.title.is_empty() { without_scheme(&row.url) } else { &row.title };
            let _ = write!(
                out,
                "<tr><td>{}</td><td class=\"w\"><a href=\"{}/object?url={}\">{}</a><br><span class=\"small mute\">{}</span></td><td class=\"r\">{}</td></tr>",
                super::time(row.time),
                self.place.base,
                escape(&row.url),
                foreign(title),
                isolated(without_scheme(&row.url)),
                row.n_versions
            );
        }
        out.push_str("</tbody></table>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let row = |row: &ObjectRow| {
            json!({
                "url": row.url, "title": row.title, "time": row.time.to_rfc3339(), "feed": row.feed, "n_contents": row.n_versions,
            })
        };
        json!({
            "objects": self.rows.iter().map(row).collect::<Vec<_>>(),
            "next": self.next,
        })
    }
}

/// Words of an edit.
pub enum EditWords {
    /// That both versions have.
    Kept(String),
    /// That only the version before has.
    TakenOut(String),
    /// That only this version has.
    Added(String),
}

/// A version of an object.
pub struct ObjectStep {
    /// The capture that showed it first.
    pub since: Timestamp,
    /// Its headline.
    pub title: String,
    /// What was edited: `title` or `text`, and the words.
    pub edits: Vec<(&'static str, Vec<EditWords>)>,
}

/// One object with its history.
pub struct ObjectPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The page that holds it.
    pub url: &'a str,
    /// Headline, author, time and text of the latest version.
    pub latest: [&'a str; 4],
    /// The oldest first.
    pub steps: &'a [ObjectStep],
    /// Captures that could not be read.
    pub n_unread: u64,
    /// The same for programs.
    pub json: Value,
}

/// Letters of kept words around an edit.
const MAX_KEPT: usize = 80;

impl ObjectPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let base = self.place.base;
        let [title, author, time, text] = self.latest;
        let n_edits = self.steps.len().saturating_sub(1) as u64;
        let mut main = format!(
            "<div class=\"head\"><div><h1>{}</h1><p class=\"lead\">{} since {}. <a href=\"{}\">{}</a></p></div></div>",
            foreign(if title.is_empty() { without_scheme(self.url) } else { title }),
            match n_edits {
                0 => "Not edited".to_owned(),
                n => format!("Edited {}", counted(n, "time", "times")),
            },
            self.steps.first().map(|step| super::time(step.since)).unwrap_or_default(),
            escaped(&page_address(base, self.url)),
            isolated(without_scheme(self.url)),
        );
        for (number, step) in self.steps.iter().enumerate().rev() {
            self.write_step(&mut main, number, step);
        }
        if self.n_unread > 0 {
            let unread = counted(self.n_unread, "capture cannot be read", "captures cannot be read");
            let _ = write!(main, "<p class=\"mute\">{unread}: see <code>perennial verify</code>.</p>");
        }
        let said: Vec<&str> = [author, time].into_iter().filter(|said| !said.is_empty()).collect();
        let _ = write!(
            main,
            "<section><h2>As it says now</h2><p class=\"mute\">{}</p>",
            isolated(&said.join(", "))
        );
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let _ = write!(main, "<p>{}</p>", isolated(line));
        }
        main.push_str("</section>");
        let json = format!("/api/object?url={}", escape(self.url));
        Framed { place: self.place, tab: Tab::Sites, title: "Article", query: "", json: Some(&json) }
            .html(&main)
    }

    fn write_step(&self, out: &mut String, number: usize, step: &ObjectStep) {
        let open = format!("{}/web/{}/{}", self.place.base, step.since.to_digits14(), escaped(self.url));
        let what = if number == 0 { "First seen" } else { "Edited" };
        let _ = write!(
            out,
            "<article class=\"entry\" style=\"display:block\"><h2 class=\"h3\">{what} {}</h2><p class=\"meta\"><span>{}</span><span><a href=\"{open}\">Open</a></span></p>",
            super::time(step.since),
            foreign(&step.title)
        );
        for (field, words) in &step.edits {
            let _ = write!(out, "<p class=\"inline\"><span class=\"mute\">{field}:</span> ");
            for words in words {
                let _ = match words {
                    EditWords::Kept(words) => write!(out, "{} ", isolated(&shortened(words))),
                    EditWords::TakenOut(words) => write!(out, "<del>{}</del> ", isolated(words)),
                    EditWords::Added(words) => write!(out, "<ins>{}</ins> ", isolated(words)),
                };
            }
            out.push_str("</p>");
        }
        out.push_str("</article>");
    }
}

/// Of words that were kept, those next to an edit.
fn shortened(words: &str) -> String {
    if words.chars().count() <= 2 * MAX_KEPT {
        return words.to_owned();
    }
    let head: String = words.chars().take(MAX_KEPT).collect();
    let tail: Vec<char> = words.chars().rev().take(MAX_KEPT).collect();
    format!("{head} … {}", tail.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_wrote_is_escaped() {
        let hostile = "<script>alert(1)</script>";
        let step = ObjectStep {
            since: Timestamp::EPOCH,
            title: hostile.into(),
            edits: vec![("title", vec![EditWords::TakenOut(hostile.into()), EditWords::Added("new".into())])],
        };
        let first = ObjectStep { since: Timestamp::EPOCH, title: String::new(), edits: Vec::new() };
        let place = Place { name: hostile, base: "", operating: Default::default() };
        let page = ObjectPage {
            place,
            url: hostile,
            latest: [hostile; 4],
            steps: &[first, step],
            n_unread: 1,
            json: Value::Null,
        };
        let html = page.html();
        assert!(
            !html.contains("<script") && html.contains("<ins>new</ins>") && html.contains("Edited 1 time"),
            "{html}"
        );
        let row = ObjectRow {
            url: hostile.into(),
            title: hostile.into(),
            time: Timestamp::EPOCH,
            feed: hostile.into(),
            n_versions: 2,
        };
        let list = ObjectsPage { place, site: hostile, rows: &[row], next: Some(50) }.html();
        assert!(!list.contains("<script") && list.contains("skip=50"), "{list}");
        assert!(shortened(&"ß ".repeat(500)).chars().count() < 200);
    }
}
