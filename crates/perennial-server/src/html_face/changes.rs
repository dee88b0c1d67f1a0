//! Changes of pages -> the home page: what changed that matters, with the words before and after.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::page::segment::BlockTree;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::{Span, Timestamp};
use serde_json::{Value, json};

use super::aside::Overview;
use super::notices::notices_address;
use super::parts::{Line, empty, importance, operations, write_words};
use super::{Framed, Place, Tab, foreign, host_of, page_address, path_of, thumb, without_scheme};
use perennial_engine::html::dates::{counted, day_and_minute, day_long, minute, span_words};

/// The strongest change of one page in the span.
pub struct ChangedPage {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// When the look was that showed the change.
    pub time: Timestamp,
    /// The look before.
    pub before: Option<Timestamp>,
    /// Importance of the change.
    pub importance: f64,
    /// Whether its version is kept in the index.
    pub is_indexed: bool,
    /// A word for what happened where it is no edit: new, vanished, returned, redirected.
    pub event: Option<&'static str>,
    /// The words that differ, strongest first.
    pub lines: Vec<Line>,
    /// How many operations there are of each kind: insert, delete, update, move.
    pub n_operations: [usize; 4],
    /// The part of the page in which the strongest of them is.
    pub part: Option<&'static str>,
    /// The page as it is now, and the blocks that changed.
    pub drawn: Option<(BlockTree, Vec<String>)>,
    /// Further changes of the page in the span.
    pub n_more: usize,
    /// Other pages of the same directory that changed as much as to be told, without their words.
    pub beside: Vec<ChangedPage>,
}

/// What is said of a page that is not there any more.
pub const VANISHED: &str = "The page has vanished";

/// The home page.
pub struct Changes<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// Hours that are looked back, from the last capture on.
    pub hours: u32,
    /// Only changes that matter at least so much.
    pub least: f64,
    /// Only this site.
    pub site: Option<&'a str>,
    /// The most important first, and not the latest.
    pub by_importance: bool,
    /// All sites.
    pub sites: &'a [String],
    /// How many pages changed so.
    pub n_pages: usize,
    /// On how many sites.
    pub n_sites: usize,
    /// The latest of them.
    pub pages: &'a [ChangedPage],
    /// When the last capture was.
    pub last: Option<Timestamp>,
    /// Up to which capture the reader has seen changes before.
    pub looked: Option<Timestamp>,
    /// What is reckoned over the whole archive.
    pub overview: &'a Overview,
}

/// The script of home while a crawl runs: the margin is asked for again and again.
pub const LIVE: &str = include_str!("live.js");

/// Spans that can be chosen, in hours.
const SPANS: [(u32, &str); 3] = [(24, "24 hours"), (168, "7 days"), (720, "30 days")];
const LEAST: [f64; 4] = [0.01, 0.1, 0.3, 0.6];
/// Sites that can be chosen, the largest; others are reached from their own pages.
const MOST_SITES: usize = 300;

impl Changes<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let pages = counted(self.n_pages as u64, "page", "pages");
        let mut main = format!("<div class=\"head\"><div><h1>{pages} changed in ways that matter</h1>");
        self.write_lead(&mut main);
        let _ = write!(
            main,
            "</div><div class=\"row\"><a class=\"btn\" href=\"{}\">Notify me of these</a></div></div>",
            escaped(&notices_address(self.place.base, self.site, Some(self.least)))
        );
        self.overview.write_first_need(&mut main);
        main.push_str("<div class=\"home\"><div>");
        self.write_filters(&mut main);
        let n_new = self.n_new();
        for (place, page) in self.pages.iter().enumerate() {
            if let Some(looked) = self.looked.filter(|_| place > 0 && n_new == Some(place)) {
                let _ = write!(
                    main,
                    "<p class=\"here\">You looked last when {} was the latest</p>",
                    day_and_minute(looked)
                );
            }
            write_entry(&mut main, self.place.base, page);
        }
        self.write_end(&mut main);
        main.push_str("</div>");
        self.overview.write(&mut main, self.place);
        main.push_str("</div>");
        let json = format!("/api/home?{}", self.query(self.hours));
        if self.overview.is_running {
            let _ = write!(main, "<script>{LIVE}</script>");
        }
        Framed { place: self.place, tab: Tab::Changes, title: "What changed", query: "", json: Some(&json) }
            .html(&main)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "hours": self.hours,
            "least": self.least,
            "site": self.site,
            "last_capture": self.last.map(Timestamp::to_rfc3339),
            "n_pages": self.n_pages,
            "pages": self.pages.iter().flat_map(|page| std::iter::once(page).chain(&page.beside)).map(ChangedPage::json).collect::<Vec<_>>(),
            "archive": self.overview.json(),
        })
    }

    /// How many of the pages changed since the reader looked last, where they stand in the order of time.
    fn n_new(&self) -> Option<usize> {
        let looked = self.looked.filter(|_| !self.by_importance)?;
        Some(self.pages.iter().take_while(|page| page.time > looked).count())
    }

    /// The choice as a query, with another span.
    fn query(&self, hours: u32) -> String {
        let site = self.site.map(|site| format!("&site={}", escape(site))).unwrap_or_default();
        let order = if self.by_importance { "&order=importance" } else { "" };
        format!("hours={hours}&least={}{site}{order}", self.least)
    }

    fn write_lead(&self, out: &mut String) {
        // Writing into a string cannot fail, here and below.
        let Some(last) = self.last else {
            out.push_str("<p class=\"lead\">Nothing is archived yet.</p>");
            return;
        };
        let span = SPANS.iter().find(|(hours, _)| *hours == self.hours).map_or("24 hours", |(_, name)| name);
        let _ = write!(
            out,
            "<p class=\"lead\">In the {span} up to {}, {}, on {} of {}; changes of importance {} or more. Less, and noise, is folded away.</p>",
            day_long(last),
            minute(last),
            self.n_sites,
            counted(self.sites.len() as u64, "site", "sites"),
            self.least
        );
    }

    fn write_filters(&self, out: &mut String) {
        let base = self.place.base;
        let _ = write!(
            out,
            "<form class=\"filters\" aria-label=\"Filter\" action=\"{base}/\"><span class=\"seg\">"
        );
        for (hours, name) in SPANS {
            let _ = match hours == self.hours {
                true => write!(out, "<span aria-current=\"true\">{name}</span>"),
                false => write!(out, "<a href=\"{base}/?{}\">{name}</a>", escaped(&self.query(hours))),
            };
        }
        let _ = write!(out, "</span><input type=\"hidden\" name=\"hours\" value=\"{}\">", self.hours);
        let choice = |name: &str, label: &str, options: &[(String, String, bool)]| {
            let mut text = format!("<label>{label} <select name=\"{name}\">");
            for (value, shown, is_chosen) in options {
                let chosen = if *is_chosen { " selected" } else { "" };
                let _ =
                    write!(text, "<option value=\"{}\"{chosen}>{}</option>", escaped(value), escaped(shown));
            }
            text + "</select></label>"
        };
        let least = LEAST.map(|least| (least.to_string(), format!("{least} and more"), least == self.least));
        let mut sites = vec![(String::new(), format!("All {}", self.sites.len()), self.site.is_none())];
        let offered = &self.sites[..self.sites.len().min(MOST_SITES)];
        // One that was asked for and is not offered stays chosen.
        let asked = self.site.filter(|site| !offered.iter().any(|known| known == site));
        let names = offered.iter().map(String::as_str).chain(asked);
        sites.extend(names.map(|site| (site.to_string(), site.to_string(), self.site == Some(site))));
        out.push_str(&choice("site", "Site", &sites));
        out.push_str(&choice("least", "Importance", &least));
        let orders = [("time", "latest first", false), ("importance", "most important first", true)];
        let orders =
            orders.map(|(name, words, by)| (name.to_owned(), words.to_owned(), by == self.by_importance));
        out.push_str(&choice("order", "Order", &orders));
        let _ = write!(out, "<button>Show</button> <a href=\"{base}/changes\">Ask for certain changes</a>");
        if let Some(last) = self.last {
            let day = |at: Timestamp| at.to_rfc3339().chars().take(10).collect::<String>();
            let (before, until) = (day(last - Span::from_hours(24)), day(last));
            let _ = write!(
                out,
                " <a href=\"{base}/changes?since={before}&amp;until={until}&amp;order=importance\">Strongest of the day before, {before}</a>"
            );
        }
        out.push_str("</form>");
    }

    fn write_end(&self, out: &mut String) {
        let n_shown: usize = self.pages.iter().map(|page| 1 + page.beside.len()).sum();
        match (self.last, self.n_pages, self.n_pages.saturating_sub(n_shown)) {
            (None, ..) => out.push_str(&empty(
                "Nothing is followed yet",
                "Name a site and Perennial visits it, politely, for as long as it is let.",
                Some("perennial run https://example.org/"),
            )),
            (Some(_), 0, _) => {
                out.push_str(&empty(
                    &format!("No change of importance {} in this span", self.least),
                    "A longer span or less importance shows more. The page of a site has all its pages.",
                    None,
                ));
            }
            (Some(_), _, 0) => {}
            (Some(_), _, n) => {
                let _ = write!(
                    out,
                    "<p class=\"more mute\">{} changed. Choose a site or a higher importance, or ask <a href=\"{}/sites\">the sites</a>.</p>",
                    counted(n as u64, "more page", "more pages"),
                    self.place.base
                );
            }
        }
    }
}

/// A change of a page with its words.
pub(super) fn write_entry(out: &mut String, base: &str, page: &ChangedPage) {
    let (compare, open) = (page.compare(base), page.open(base));
    let _ = write!(
        out,
        "<article class=\"entry\">{0}<span>{1}</span><div><h2 class=\"h3\"><a href=\"{2}\">{3}</a></h2><p class=\"meta\"><span><a class=\"quiet\" href=\"{4}\">{5}</a></span>{6}<span>{7}</span></p>",
        importance(page.importance, page.is_indexed || page.event.is_some(), None),
        page.drawn.as_ref().map(|(tree, changed)| thumb::svg(tree, changed)).unwrap_or_default(),
        compare.as_deref().unwrap_or(&open),
        foreign(page.name()),
        escaped(&page_address(base, &page.url)),
        isolated(without_scheme(&page.url)),
        page.part.map(|part| format!("<span>{}</span>", part_words(part))).unwrap_or_default(),
        super::time(page.time),
    );
    if let Some(event) = page.event {
        let _ = write!(out, "<p>{event}.</p>");
    }
    if !page.lines.is_empty() {
        out.push_str("<div class=\"words\">");
        page.lines.iter().for_each(|line| write_words(out, line));
        out.push_str("</div>");
    }
    let _ = write!(out, "<p class=\"acts\">{}", operations(&page.n_operations));
    if let Some(before) = page.before {
        let _ = write!(out, "<span>within {}</span>", span_words(page.time - before));
    }
    if let Some(compare) = compare {
        let _ = write!(out, "<a href=\"{compare}\">Compare</a>");
    }
    let words = if page.event == Some(VANISHED) { "Open its last version" } else { "Open" };
    let _ = write!(out, "<a href=\"{open}\">{words}</a>");
    if page.n_more > 0 {
        let _ = write!(
            out,
            "<a href=\"{}\">{} of this page</a>",
            escaped(&page_address(base, &page.url)),
            counted(page.n_more as u64, "more change", "more changes")
        );
    }
    out.push_str("</p>");
    write_beside(out, base, page);
    out.push_str("</div></article>");
}

/// The part of a page, as people call it.
fn part_words(part: &str) -> &str {
    match part {
        "main" => "main text",
        "navigation" => "menu",
        other => other,
    }
}

fn write_beside(out: &mut String, base: &str, page: &ChangedPage) {
    if page.beside.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<details class=\"alike\"><summary>{} of {} changed too</summary><table class=\"t\"><tbody>",
        counted(page.beside.len() as u64, "more page", "more pages"),
        isolated(&directory_of(&page.url))
    );
    for other in &page.beside {
        let open = other.open(base);
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"w\"><a class=\"quiet\" href=\"{}\">{}</a></td><td class=\"r\"><a href=\"{}\">{}</a></td></tr>",
            importance(other.importance, other.is_indexed || other.event.is_some(), None),
            escaped(&page_address(base, &other.url)),
            foreign(other.name()),
            other.compare(base).as_deref().unwrap_or(&open),
            if other.event.is_none() { "Compare" } else { "Open" }
        );
    }
    out.push_str("</tbody></table></details>");
}

/// Where a page stands: host and directory.
pub fn directory_of(url: &str) -> String {
    let path = path_of(url);
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    format!("{}{}", host_of(url), &path[..end])
}

impl ChangedPage {
    fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(without_scheme(&self.url))
    }

    /// Where the change is shown; escaped. Where a page is gone or new there is nothing to compare.
    fn compare(&self, base: &str) -> Option<String> {
        let url = escaped(&self.url);
        self.before.filter(|_| self.event.is_none()).map(|before| {
            format!("{base}/web/diff/{}/{}/{url}", before.to_digits14(), self.time.to_digits14())
        })
    }

    /// Where the version is shown; escaped.
    /// What is opened of a page that has vanished is what it showed before.
    fn open(&self, base: &str) -> String {
        let shown = self.before.filter(|_| self.event == Some(VANISHED)).unwrap_or(self.time);
        format!("{base}/web/{}/{}", shown.to_digits14(), escaped(&self.url))
    }

    fn json(&self) -> Value {
        let words: Vec<Value> =
            self.lines.iter().map(|line| json!({ "before": line.before, "after": line.after })).collect();
        let [n_inserted, n_deleted, n_updated, n_moved] = self.n_operations;
        json!({
            "url": self.url,
            "title": self.title,
            "time": self.time.to_rfc3339(),
            "before": self.before.map(Timestamp::to_rfc3339),
            "importance": self.importance,
            "is_indexed": self.is_indexed,
            "event": self.event,
            "part": self.part,
            "words": words,
            "n_inserted": n_inserted,
            "n_deleted": n_deleted,
            "n_updated": n_updated,
            "n_moved": n_moved,
            "n_more": self.n_more,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::LineKind;
    use super::*;

    #[test]
    fn what_strangers_wrote_is_escaped_and_words_are_marked() {
        let at = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
        let hostile = "\"><script>alert(1)</script>";
        let page = |beside: Vec<ChangedPage>| ChangedPage {
            url: format!("https://a.example/{hostile}"),
            title: Some(hostile.into()),
            time: at,
            before: Some(at),
            importance: 0.5,
            is_indexed: true,
            event: None,
            lines: vec![Line {
                kind: LineKind::Updated,
                before: "the limit is 30".into(),
                after: "the limit is 50".into(),
            }],
            n_operations: [1, 0, 1, 0],
            part: Some("main"),
            drawn: None,
            n_more: 2,
            beside,
        };
        let pages = [page(vec![page(Vec::new())])];
        let place = Place { name: hostile, base: "", operating: Default::default() };
        let sites = [hostile.to_string()];
        let overview = Overview { n_waiting: 3, ..Overview::default() };
        let shown = Changes {
            place,
            hours: 24,
            least: 0.1,
            site: Some(hostile),
            by_importance: true,
            sites: &sites,
            n_pages: 2,
            n_sites: 1,
            pages: &pages,
            last: Some(at),
            looked: None,
            overview: &overview,
        };
        let html = shown.html();
        assert!(!html.contains("<script"), "{html}");
        assert!(
            html.contains("the limit is <del>30</del>") && html.contains("the limit is <ins>50</ins>"),
            "{html}"
        );
        assert!(
            html.contains("3 captures wait for their analysis") && html.contains("2 more changes of"),
            "{html}"
        );
        assert_eq!(shown.json()["pages"].as_array().map(Vec::len), Some(2));
        assert_eq!(directory_of("https://a.example/b/c?d=/e"), "a.example/b/c?d=/");
    }
}
