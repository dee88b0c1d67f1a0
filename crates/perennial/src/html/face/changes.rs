//! Changes of pages -> the home page: what changed that matters, with the words before and after.

use std::fmt::Write;

use perennial_core::markup::escaped;
use perennial_core::segment::BlockTree;
use perennial_core::time::Timestamp;

use super::super::diff::marked_words;
use super::{Place, Tab, framed, thumb, time, without_scheme};

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
    /// A word for what happened where it is no edit: new, vanished, returned, redirected.
    pub event: Option<&'static str>,
    /// The words that differ, strongest first.
    pub lines: Vec<Line>,
    /// How many operations there are of each kind: insert, delete, update, move.
    pub n_operations: [usize; 4],
    /// The page as it is now, and the blocks that changed.
    pub drawn: Option<(BlockTree, Vec<String>)>,
    /// Further changes of the page in the span.
    pub n_more: usize,
}

/// What a line of words tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineKind {
    /// Words that came.
    Inserted,
    /// Words that went.
    Deleted,
    /// Words that became others.
    Updated,
}

/// Words of a change.
pub struct Line {
    /// What happened.
    pub kind: LineKind,
    /// The words before; empty for inserted ones.
    pub before: String,
    /// The words after; empty for deleted ones.
    pub after: String,
}

/// What the archive holds.
pub struct Holdings {
    /// Captures of pages.
    pub n_captures: u64,
    /// Pages.
    pub n_pages: u64,
    /// Sites.
    pub n_sites: u64,
    /// Bytes of the WARC files.
    pub warc_bytes: u64,
    /// First and last capture.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Captures that wait for the analysis.
    pub n_waiting: u64,
}

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
    /// All sites.
    pub sites: &'a [String],
    /// How many pages changed so.
    pub n_pages: usize,
    /// The latest of them.
    pub pages: &'a [ChangedPage],
    /// What the archive holds.
    pub holdings: Holdings,
}

impl Changes<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let pages = if self.n_pages == 1 { "page" } else { "pages" };
        let mut main = format!("<h1>{} {pages} changed in ways that matter</h1>", self.n_pages);
        self.write_lead(&mut main);
        main.push_str("<div class=\"home\"><div>");
        self.write_filters(&mut main);
        for page in self.pages {
            self.write_page(&mut main, page);
        }
        self.write_end(&mut main);
        main.push_str("</div>");
        self.write_aside(&mut main);
        main.push_str("</div>");
        framed(self.place, Tab::Changes, "What changed", "", &main)
    }

    fn write_lead(&self, out: &mut String) {
        // Writing into a string cannot fail, here and below.
        let _ = match &self.holdings.span {
            Some((_, last)) => write!(
                out,
                "<p class=\"mute\">In the {} before the last capture, {}; changes of importance {:.2} or more. Less, and noise, is left out.</p>",
                span_name(self.hours),
                time(*last),
                self.least
            ),
            None => write!(
                out,
                "<p class=\"empty\">Nothing is archived yet. <code>perennial run https://example.org/</code> begins.</p>"
            ),
        };
    }

    fn write_filters(&self, out: &mut String) {
        let base = self.place.base;
        out.push_str("<form class=\"filters\" aria-label=\"Filter\">");
        let choice = |name: &str, label: &str, options: &[(String, String, bool)]| {
            let mut text = format!("<label>{label} <select name=\"{name}\">");
            for (value, shown, is_chosen) in options {
                let chosen = if *is_chosen { " selected" } else { "" };
                let _ =
                    write!(text, "<option value=\"{}\"{chosen}>{}</option>", escaped(value), escaped(shown));
            }
            text + "</select></label>"
        };
        let hours =
            [24, 168, 720].map(|hours| (hours.to_string(), span_name(hours).into(), hours == self.hours));
        let least = [0.01, 0.1, 0.3]
            .map(|least| (least.to_string(), format!("{least} and more"), least == self.least));
        let mut sites = vec![(String::new(), format!("All {}", self.sites.len()), self.site.is_none())];
        sites.extend(self.sites.iter().map(|site| (site.clone(), site.clone(), self.site == Some(site))));
        out.push_str(&choice("hours", "Span", &hours));
        out.push_str(&choice("least", "Importance", &least));
        out.push_str(&choice("site", "Site", &sites));
        let _ = write!(out, "<button formaction=\"{base}/\">Show</button></form>");
    }

    fn write_page(&self, out: &mut String, page: &ChangedPage) {
        let (base, url) = (self.place.base, escaped(&page.url));
        let compare = page.before.map(|before| {
            format!("{base}/web/diff/{}/{}/{url}", before.to_digits14(), page.time.to_digits14())
        });
        let open = format!("{base}/web/{}/{url}", page.time.to_digits14());
        let title =
            page.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(without_scheme(&page.url));
        let _ = write!(
            out,
            "<article class=\"entry\"><span class=\"imp\" style=\"--v:{0:.3}\"><span class=\"vh\">importance </span>{0:.2}<i aria-hidden=\"true\"></i></span>\
             <span>{1}</span><div><h2><a href=\"{2}\">{3}</a></h2><p class=\"mute\">{4} · {5}</p>",
            page.importance,
            page.drawn.as_ref().map(|(tree, changed)| thumb::svg(tree, changed)).unwrap_or_default(),
            compare.as_deref().unwrap_or(&open),
            escaped(title),
            escaped(without_scheme(&page.url)),
            time(page.time),
        );
        if let Some(event) = page.event {
            let _ = write!(out, "<p><b>{event}</b></p>");
        }
        page.lines.iter().for_each(|line| write_line(out, line));
        out.push_str("<p class=\"acts\">");
        for (n, (sign, class, name)) in page.n_operations.iter().zip(SIGNS) {
            if *n > 0 {
                let _ = write!(
                    out,
                    "<span class=\"op {class}\"><span class=\"vh\">{name} </span>{sign}{n}</span>"
                );
            }
        }
        if let Some(compare) = compare {
            let _ = write!(out, " <a href=\"{compare}\">Compare</a>");
        }
        let _ = write!(out, " <a href=\"{open}\">Open</a> <a href=\"{base}/web/*/{url}\">Calendar</a>");
        if page.n_more > 0 {
            let _ = write!(out, " <span class=\"mute\">and {} more changes of this page</span>", page.n_more);
        }
        out.push_str("</p></div></article>");
    }

    fn write_end(&self, out: &mut String) {
        let n_hidden = self.n_pages.saturating_sub(self.pages.len());
        let _ = match (self.n_pages, n_hidden) {
            (0, _) => write!(
                out,
                "<p class=\"empty\">No change of that importance in this span. A longer span or less importance shows more.</p>"
            ),
            (_, 0) => Ok(()),
            (_, n) => write!(
                out,
                "<p class=\"mute\">{n} more pages changed: choose a site, or a higher importance. <code>perennial changes</code> lists all.</p>"
            ),
        };
    }

    fn write_aside(&self, out: &mut String) {
        let held = &self.holdings;
        out.push_str("<aside aria-label=\"State of the archive\">");
        if held.n_waiting > 0 {
            let _ = write!(
                out,
                "<section class=\"failure\"><h2>Needs you</h2><p>{} captures wait for their analysis, and are in none of these figures. \
                 <code>perennial analyse</code> completes it, as does the next crawl.</p></section>",
                held.n_waiting
            );
        }
        let _ = write!(
            out,
            "<section><h2>Holdings</h2><dl><dt>Captures</dt><dd>{}</dd><dt>Pages</dt><dd>{}</dd><dt>Sites</dt><dd>{}</dd>\
             <dt>WARC files</dt><dd>{}</dd>",
            held.n_captures,
            held.n_pages,
            held.n_sites,
            megabytes(held.warc_bytes)
        );
        if let Some((first, last)) = held.span {
            let _ = write!(
                out,
                "<dt>First capture</dt><dd>{}</dd><dt>Last capture</dt><dd>{}</dd>",
                time(first),
                time(last)
            );
        }
        out.push_str("</dl></section></aside>");
    }
}

/// Sign, class and name of each kind of operation.
const SIGNS: [(&str, &str, &str); 4] =
    [("+", "i", "inserted"), ("−", "d", "deleted"), ("~", "u", "updated"), ("→", "m", "moved")];

fn write_line(out: &mut String, line: &Line) {
    let tagged = |out: &mut String, (sign, class, name): (&str, &str, &str), words: &str| {
        let _ = write!(
            out,
            "<p class=\"words\"><span class=\"op {class}\"><span class=\"vh\">{name} </span>{sign}</span><span>{words}</span></p>"
        );
    };
    match line.kind {
        LineKind::Inserted => tagged(out, SIGNS[0], &format!("<ins>{}</ins>", escaped(&line.after))),
        LineKind::Deleted => tagged(out, SIGNS[1], &format!("<del>{}</del>", escaped(&line.before))),
        LineKind::Updated => {
            let (before, after) = marked_words(&line.before, &line.after);
            tagged(out, SIGNS[1], &before);
            tagged(out, SIGNS[0], &after);
        }
    }
}

fn span_name(hours: u32) -> &'static str {
    match hours {
        0..=24 => "24 hours",
        25..=168 => "7 days",
        _ => "30 days",
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped_and_words_stand_before_and_after() {
        let hostile = "\"><script>alert(1)</script>";
        let at = Timestamp::parse("2026-03-02T10:00:00Z").unwrap();
        let page = ChangedPage {
            url: format!("http://a.example/{hostile}"),
            title: Some(hostile.into()),
            time: at,
            before: Some(at),
            importance: 0.5,
            event: None,
            lines: vec![
                Line {
                    kind: LineKind::Updated,
                    before: "the limit is 30".into(),
                    after: "the limit is 50".into(),
                },
                Line { kind: LineKind::Inserted, before: String::new(), after: hostile.into() },
            ],
            n_operations: [1, 0, 1, 0],
            drawn: None,
            n_more: 2,
        };
        let holdings = Holdings {
            n_captures: 2,
            n_pages: 1,
            n_sites: 1,
            warc_bytes: 0,
            span: Some((at, at)),
            n_waiting: 3,
        };
        let place = Place { name: hostile, base: "" };
        let sites = [hostile.to_string()];
        let html = Changes {
            place,
            hours: 24,
            least: 0.1,
            site: None,
            sites: &sites,
            n_pages: 1,
            pages: &[page],
            holdings,
        }
        .html();
        assert!(!html.contains("<script"), "{html}");
        assert!(
            html.contains("the limit is <del>30</del>") && html.contains("the limit is <ins>50</ins>"),
            "{html}"
        );
        assert!(
            html.contains("3 captures wait for their analysis") && html.contains("and 2 more changes"),
            "{html}"
        );
    }
}
