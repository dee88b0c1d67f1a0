//! What the archive holds and what changed in it -> the pages of the server that people read first.
//!
//! | file | what becomes what |
//! |---|---|
//! | `changes` | changes of pages -> the home page: what changed that matters, words before and after |
//! | `search` | the answers to a question -> who said it, from when to when, on one scale of time |
//! | `thumb` | a tree and the blocks that changed -> a small drawing of the page |
//!
//! The pages need no script. Titles and addresses of captured pages are foreign text and are escaped everywhere.

mod changes;
mod search;
mod thumb;

pub use changes::{ChangedPage, Changes, Holdings, Line, LineKind};
pub use search::{SearchForm, SearchPage, SearchRow};

use perennial_core::markup::escaped;
use perennial_core::time::Timestamp;

use super::{SERVE_STYLE, page};

const FACE_STYLE: &str = include_str!("face.css");

/// Where a page stands in the archive's own pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tab {
    /// What changed.
    Changes,
    /// Search.
    Search,
    /// Calendars of captures.
    Calendar,
    /// None of them.
    Other,
}

/// The archive that a page is about.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its addresses begin.
    pub base: &'a str,
}

/// A whole page under the head that all of them have. `main` is HTML already.
pub fn framed(place: Place<'_>, tab: Tab, title: &str, query: &str, main: &str) -> String {
    let Place { name, base } = place;
    let link = |of: Tab, path: &str, text: &str| {
        let current = if of == tab { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{base}{path}\"{current}>{text}</a>")
    };
    let body = format!(
        "<a class=\"skip\" href=\"#main\">Skip to content</a><header class=\"top\"><div class=\"wrap\">\
         <a class=\"brand\" href=\"{base}/\">Perennial</a><span class=\"mute\">{}</span>\
         <nav aria-label=\"Archive\">{}{}{}</nav>\
         <form role=\"search\" action=\"{base}/search\"><input type=\"search\" name=\"q\" value=\"{}\" \
         aria-label=\"Words in any version\" placeholder=\"Words in any version\"></form></div></header>\
         <main class=\"wrap\" id=\"main\">{main}</main><footer class=\"wrap mute\">Times are UTC. Importance runs from 0 to 1.</footer>",
        escaped(name),
        link(Tab::Changes, "/", "Changes"),
        link(Tab::Search, "/search", "Search"),
        link(Tab::Calendar, "/calendar", "Calendar"),
        escaped(query)
    );
    page(&format!("{title} - Perennial"), &format!("{SERVE_STYLE}{FACE_STYLE}"), &body)
}

/// A time as people read it, with the instant for programs.
fn time(at: Timestamp) -> String {
    format!("<time datetime=\"{}\">{}</time>", at.to_rfc3339(), short(at))
}

/// Day and minute: `2026-06-29 23:30`.
fn short(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    format!("{} {}", &text[..10], &text[11..16])
}

/// An address without its scheme.
fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}
