//! What the archive holds and what changed in it -> the pages of the server that people read first.
//!
//! | file | what becomes what |
//! |---|---|
//! | `parts` | importance, operations, words of a change -> the marks that all pages have |
//! | `changes` | changes of pages -> the home page: what changed that matters, words before and after |
//! | `asked` | a question about changes and a part of its answer -> the form and the list |
//! | `aside` | what is reckoned over the whole archive -> the margin of home: what needs you, budget, plan, quality |
//! | `compare` | two versions among all others -> what stands around the diff view, with a slider |
//! | `notices` | who is told of changes, and a choice of changes -> how to be told of them |
//! | `objects` | what feeds announced -> articles and posts; one of them -> its versions and edits |
//! | `page` | one page -> its versions in time, when it changes, its next visit |
//! | `items` | the headlines of a front page through time -> rows of intervals |
//! | `site` | one site -> its hours, directories, pages, coherence, feeds; all sites -> a list |
//! | `operate` | what may be done from the pages, and what was done |
//! | `pin` | a part of a site's pages -> what it would have changed, before it is pinned |
//! | `schedule` | the plan -> visits with reasons, or why one page is not visited |
//! | `search` | the answers to a question -> who said it, from when to when, on one scale of time |
//! | `terms` | the terms that are new in a span -> a table |
//! | `thumb` | a tree and the blocks that changed -> a small drawing of the page |
//!
//! The pages need no script. Titles and addresses of captured pages are foreign text and are escaped everywhere.

mod aside;
mod asked;
mod changes;
mod compare;
mod items;
mod notices;
mod objects;
mod operate;
mod page;
mod parts;
mod pin;
mod schedule;
mod search;
mod site;
mod terms;
mod thumb;

pub use aside::{Needs, Overview, QualityPoint, Spending};
pub use asked::AskedPage;
pub use changes::{ChangedPage, Changes, LIVE, VANISHED, directory_of};
pub use compare::{ComparePage, ComparedVersion};
pub use items::{Headline, ItemView, Items, ShownItem};
pub use notices::{NoticesPage, RuleLine};
pub use objects::{EditWords, ObjectPage, ObjectRow, ObjectStep, ObjectsPage};
pub use operate::{ActsPage, Operating, login};
pub use page::{Expected, PageView, PatternView, Picture, SeriesDay, VersionLine};
pub use parts::{Line, LineKind};
pub use perennial_engine::html::cut;
pub use pin::PinPage;
pub use schedule::{ScheduleView, WhyPage};
pub use search::{Restricted, SearchForm, SearchPage, SearchRow};
pub use site::{DirectoryRow, FeedLine, PageRow, SiteRow, SiteView, Sites};
pub use terms::{TermRow, TermsPage};

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;

use perennial_engine::html::page;

/// The stylesheet of these pages.
pub const FACE_STYLE: &str = include_str!("face.css");

/// Where a page stands in the archive's own pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tab {
    /// What changed.
    Changes,
    /// Sites and their pages.
    Sites,
    /// The plan of visits.
    Schedule,
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
    /// Whether the reader may act.
    pub operating: Operating<'a>,
}

/// The mark of the project.
const MARK: &str = "<svg width=\"20\" height=\"20\" viewBox=\"0 0 20 20\" fill=\"none\" stroke=\"currentColor\" aria-hidden=\"true\">\
    <circle cx=\"10\" cy=\"10\" r=\"9\" stroke-width=\"1.5\"/><circle cx=\"9.2\" cy=\"10.6\" r=\"5.8\" stroke-width=\"1.5\"/>\
    <circle cx=\"8.6\" cy=\"11\" r=\"2.8\" stroke-width=\"1.5\"/></svg>";

/// A page of ours: where it stands, what it is called, and where programs find the same.
#[derive(Clone, Copy, Debug)]
pub struct Framed<'a> {
    /// Of which archive.
    pub place: Place<'a>,
    /// Where it stands.
    pub tab: Tab,
    /// What the window is called.
    pub title: &'a str,
    /// Words in the field for a search.
    pub query: &'a str,
    /// The same for programs.
    pub json: Option<&'a str>,
}

impl Framed<'_> {
    /// A whole page under the head that all of them have. `main` is HTML already.
    pub fn html(&self, main: &str) -> String {
        let Place { name, base, .. } = self.place;
        let link = |of: Tab, path: &str, text: &str| {
            let current = if of == self.tab { " aria-current=\"page\"" } else { "" };
            format!("<a href=\"{base}{path}\"{current}>{text}</a>")
        };
        // The page of the search has its own field.
        let field = match self.tab {
            Tab::Search => String::new(),
            _ => format!(
                "<form class=\"q\" role=\"search\" action=\"{base}/search\"><input type=\"search\" name=\"q\" value=\"{}\" size=\"24\" \
                 aria-label=\"Words in any version\" placeholder=\"Words in any version\"></form>",
                escaped(self.query)
            ),
        };
        let json =
            self.json.map(|path| format!("<a href=\"{base}{}\">JSON</a>", escaped(path))).unwrap_or_default();
        let body = format!(
            "<a class=\"skip\" href=\"#main\">Skip to content</a><header class=\"top\"><div class=\"wrap\">\
             <a class=\"brand\" href=\"{base}/\">{MARK}Perennial</a><span class=\"where\">{}</span>\
             <nav class=\"main\" aria-label=\"Archive\">{}{}{}{}{}</nav>{field}</div></header>\
             <main class=\"wrap\" id=\"main\">{main}</main><footer class=\"bot\"><div class=\"wrap\"><span>Times are UTC unless a zone is named.</span>\
             <span>Importance runs from 0 to 1.</span>{json}<a href=\"{base}/api/openapi.json\">API</a></div></footer>",
            escaped(name),
            link(Tab::Changes, "/", "Changes"),
            link(Tab::Sites, "/sites", "Sites"),
            link(Tab::Schedule, "/schedule", "Schedule"),
            link(Tab::Search, "/search", "Search"),
            link(Tab::Calendar, "/calendar", "Calendar"),
        );
        page(&format!("{} - Perennial", self.title), FACE_STYLE, &body)
    }
}

/// A title that strangers wrote, between tags: cut, escaped, and unable to turn what stands around it. Titles of captured pages, items and
/// feeds come into pages through this alone.
fn foreign(title: &str) -> String {
    isolated(&cut(title)).to_string()
}

/// The address of the page about a page.
pub fn page_address(base: &str, url: &str) -> String {
    format!("{base}/page?url={}", escape(url))
}

/// The address of the page about a site.
pub fn site_address(base: &str, host: &str) -> String {
    format!("{base}/site/{}", escape(host))
}

/// A time as people read it, with the instant for programs.
fn time(at: Timestamp) -> String {
    format!("<time datetime=\"{}\">{}</time>", at.to_rfc3339(), short(at))
}

/// Day and minute: `2026-06-29 23:30`.
fn short(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    format!("{} {}", text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default())
}

/// An address without its scheme.
fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// The host of an address, with its port.
fn host_of(url: &str) -> &str {
    without_scheme(url).split('/').next().unwrap_or_default()
}

/// The path of an address.
fn path_of(url: &str) -> &str {
    let rest = without_scheme(url);
    rest.find('/').map_or("/", |slash| &rest[slash..])
}
