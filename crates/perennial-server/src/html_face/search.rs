//! The answers to a question -> who said it, from when to when, on one scale of time.

use std::fmt::Write;
use std::ops::Range;

use perennial_core::memento::address::escape;
use perennial_core::search::Stay;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::parts::empty;
use super::{Framed, Place, Tab, foreign, host_of, page_address, short, site_address, without_scheme};
use perennial_engine::html::chart::stretched::{Axis, Bar, HATCH, intervals};
use perennial_engine::html::dates::{counted, day_and_minute, minute, size};

/// Stays of a text on a page that are told at sight.
const MOST_STAYS: usize = 4;

/// A page that said it.
pub struct SearchRow {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// The sentence.
    pub text: String,
    /// The words in it that answer.
    pub found: Vec<Range<usize>>,
    /// Where on the page it stands.
    pub role: &'static str,
    /// When it stood there.
    pub stays: Vec<Stay>,
    /// When the page was looked at.
    pub looks: Vec<Timestamp>,
}

/// What the user asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchForm<'a> {
    /// Words.
    pub words: &'a str,
    /// Only this site.
    pub site: &'a str,
    /// Only what stood there on this day or later.
    pub from: &'a str,
    /// Only what stood there before the end of this day.
    pub to: &'a str,
    /// The words stand in a row.
    pub is_phrase: bool,
    /// Only what is not there any more.
    pub is_vanished: bool,
    /// Only important versions.
    pub is_important: bool,
}

/// The page.
pub struct SearchPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The question.
    pub form: SearchForm<'a>,
    /// Why there is no answer.
    pub problem: Option<String>,
    /// The answers.
    pub rows: &'a [SearchRow],
    /// How many pages said it.
    pub n_pages: usize,
    /// Whether there may be more.
    pub is_partial: bool,
    /// What is saved and lost where only important versions are looked in.
    pub restricted: Option<Restricted>,
}

/// What it saves to look in important versions only, and what is not found then.
#[derive(Clone, Copy, Debug)]
pub struct Restricted {
    /// Pages that said it in any version.
    pub n_pages_in_all: usize,
    /// Bytes of text that are looked in, and of all text; `None` while that is being reckoned.
    pub bytes: Option<(u64, u64)>,
}

impl SearchPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let mut main = format!("{HATCH}<h1 class=\"vh\">Search all versions</h1>");
        self.write_form(&mut main);
        self.write_restricted(&mut main);
        if let Some(problem) = &self.problem {
            let _ = write!(main, "<div class=\"alert\"><p>{}</p></div>", isolated(problem));
        } else if self.form.words.is_empty() {
            main.push_str(
                "<div class=\"empty\"><h2 class=\"h3\">What was ever said</h2><p>Words are looked for in everything that any analysed page ever showed: \
                 <code>ferry harbour</code> both words, <code>&quot;new ferry line&quot;</code> in a row, <code>harb*</code> words that begin so, \
                 <code>-boat</code> without, <code>OR</code> either.</p></div>",
            );
        } else if self.rows.is_empty() {
            main.push_str(&empty(
                "No page said so",
                "No analysed page of this archive ever showed these words as they are asked for. Fewer words, or part of a word with * behind it, find more.",
                None,
            ));
        } else {
            self.write_answers(&mut main);
        }
        let json = format!("/api/search?{}", self.query());
        let json = Some(json.as_str()).filter(|_| !self.form.words.is_empty());
        Framed { place: self.place, tab: Tab::Search, title: "Search", query: self.form.words, json }
            .html(&main)
    }

    fn query(&self) -> String {
        let form = &self.form;
        let mut query = format!("q={}", escape(form.words));
        for (name, value) in [("site", form.site), ("from", form.from), ("to", form.to)] {
            if !value.is_empty() {
                let _ = write!(query, "&{name}={}", escape(value));
            }
        }
        for (name, is_on) in
            [("phrase", form.is_phrase), ("vanished", form.is_vanished), ("important", form.is_important)]
        {
            if is_on {
                let _ = write!(query, "&{name}=1");
            }
        }
        query
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let stay = |stay: &Stay| {
            json!({
                "absent_until": stay.absent_until.map(Timestamp::to_rfc3339),
                "first": stay.first.to_rfc3339(),
                "last": stay.last.to_rfc3339(),
                "gone": stay.gone.map(Timestamp::to_rfc3339),
            })
        };
        let row = |row: &SearchRow| {
            json!({
                "url": row.url,
                "title": row.title,
                "text": row.text,
                "place": row.role,
                "stays": row.stays.iter().map(stay).collect::<Vec<_>>(),
            })
        };
        json!({
            "words": self.form.words,
            "problem": self.problem,
            "n_pages": self.n_pages,
            "is_partial": self.is_partial,
            "restricted": self.restricted.map(|restricted| json!({
                "n_pages_in_all": restricted.n_pages_in_all,
                "text_bytes": restricted.bytes.map(|(looked_in, _)| looked_in),
                "all_text_bytes": restricted.bytes.map(|(_, all)| all),
            })),
            "answers": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// The price of a narrower search, in a sentence.
    fn write_restricted(&self, out: &mut String) {
        let Some(Restricted { n_pages_in_all, bytes }) = self.restricted else { return };
        out.push_str("<p class=\"cap\">Important versions only: ");
        if let Some((looked_in, all)) = bytes {
            let _ = write!(out, "{} of {} of text are looked in. ", size(looked_in), size(all));
        }
        let _ = match n_pages_in_all.saturating_sub(self.n_pages) {
            0 => write!(out, "No page is lost by it.</p>"),
            n => write!(
                out,
                "{} said it in versions below the index threshold alone.</p>",
                counted(n as u64, "more page", "more pages")
            ),
        };
    }

    fn write_form(&self, out: &mut String) {
        let form = &self.form;
        let checked = |is_on: bool| if is_on { " checked" } else { "" };
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<form role=\"search\" action=\"{}/search\"><div class=\"searchbar\"><input type=\"search\" name=\"q\" value=\"{}\" aria-label=\"Words in any version\" \
             placeholder=\"Words in any version\" required autocomplete=\"off\"><button class=\"btn go\">Search</button></div>\
             <div class=\"row\" style=\"padding:8px 0 16px;gap:8px 16px\"><label>Site <input type=\"text\" name=\"site\" size=\"16\" value=\"{}\" placeholder=\"all\"></label>\
             <label>From <input type=\"text\" name=\"from\" size=\"10\" value=\"{}\" placeholder=\"2026-01-28\"></label>\
             <label>to <input type=\"text\" name=\"to\" size=\"10\" value=\"{}\" placeholder=\"2026-01-30\"></label>",
            self.place.base,
            escaped(form.words),
            escaped(form.site),
            escaped(form.from),
            escaped(form.to)
        );
        for (name, label, is_on) in [
            ("phrase", "exact phrase", form.is_phrase),
            ("vanished", "gone by now", form.is_vanished),
            ("important", "important versions only", form.is_important),
        ] {
            let _ = write!(
                out,
                "<label class=\"sw\"><input type=\"checkbox\" name=\"{name}\" value=\"1\"{}> {label}</label>",
                checked(is_on)
            );
        }
        out.push_str("</div></form>");
    }

    fn write_answers(&self, out: &mut String) {
        self.write_facts(out);
        let axis = axis_of(self.rows);
        let _ = write!(
            out,
            "<section style=\"padding-top:16px\"><div class=\"sec\"><h2>When each page said it</h2><p class=\"legend\">\
             <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f4\" y=\"1\" width=\"24\" height=\"12\"/></svg>seen</span>\
             <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect y=\"4\" width=\"24\" height=\"6\" fill=\"url(#hatch)\"/></svg>came or went in this gap</span>\
             <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><path class=\"sm\" d=\"M4 5v6M12 5v6M20 5v6\"/></svg>looks</span><span>&#9656; still there</span></p></div>\
             <div class=\"rows\">{}<div class=\"iv axisrow\"><div class=\"say small mute\" style=\"padding-bottom:4px\">By site</div>{}</div>",
            axis.grid("grid wide-only"),
            axis.head()
        );
        let mut hosts: Vec<(&str, Vec<&SearchRow>)> = Vec::new();
        for row in self.rows {
            let host = host_of(&row.url);
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, rows)) => rows.push(row),
                None => hosts.push((host, vec![row])),
            }
        }
        for (host, rows) in &hosts {
            let _ = write!(
                out,
                "<h3 class=\"grp\"><a class=\"quiet\" href=\"{}\">{}</a> <span>{}</span></h3>",
                escaped(&site_address(self.place.base, host)),
                isolated(host),
                counted(rows.len() as u64, "page", "pages")
            );
            rows.iter().for_each(|row| self.write_row(out, row, axis));
        }
        out.push_str("</div></section>");
        if self.n_pages > self.rows.len() {
            let _ = write!(
                out,
                "<p class=\"more mute\">{}: a site, a span or another word brings them here, and <code>perennial search --limit</code> lists all.</p>",
                counted((self.n_pages - self.rows.len()) as u64, "more page", "more pages")
            );
        }
    }

    fn write_facts(&self, out: &mut String) {
        let is_there = |row: &&SearchRow| row.stays.last().is_some_and(|stay| stay.gone.is_none());
        let n_there = self.rows.iter().filter(is_there).count();
        let first = self
            .rows
            .iter()
            .filter_map(|row| Some((row.stays.first()?, row)))
            .min_by_key(|(stay, _)| stay.first);
        let last_gone = self
            .rows
            .iter()
            .filter_map(|row| Some((row.stays.last()?, row)))
            .filter(|(stay, _)| stay.gone.is_some());
        let last_gone = last_gone.max_by_key(|(stay, _)| stay.gone);
        let n_hosts: std::collections::BTreeSet<&str> =
            self.rows.iter().map(|row| host_of(&row.url)).collect();
        let _ = write!(
            out,
            "<dl class=\"facts\"><div><dt>Said by</dt><dd>{}{}<small>on {}</small></dd></div>",
            if self.is_partial { "at least " } else { "" },
            counted(self.n_pages as u64, "page", "pages"),
            counted(n_hosts.len() as u64, "site", "sites"),
        );
        if let Some((stay, row)) = first {
            let before = stay.absent_until.map_or("at its first look".to_string(), |absent| {
                format!("not yet at {}", day_and_minute(absent))
            });
            let _ = write!(
                out,
                "<div><dt>First seen</dt><dd>{}<small>{}, {before}</small></dd></div>",
                day_and_minute(stay.first),
                isolated(host_of(&row.url))
            );
        }
        let _ = match last_gone.and_then(|(stay, row)| Some((stay, stay.gone?, row))) {
            Some((stay, gone, row)) => write!(
                out,
                "<div><dt>Last gone</dt><dd>{} to {}<small>{}</small></dd></div>",
                day_and_minute(stay.last),
                if day_of(stay.last) == day_of(gone) { minute(gone) } else { day_and_minute(gone) },
                isolated(host_of(&row.url))
            ),
            None => write!(
                out,
                "<div><dt>Last gone</dt><dd>nowhere<small>no page took it back</small></dd></div>"
            ),
        };
        let _ = write!(
            out,
            "<div><dt>Still there at the last look</dt><dd>{n_there} of {} shown<small>{} gone</small></dd></div></dl>",
            self.rows.len(),
            self.rows.len() - n_there
        );
    }

    fn write_row(&self, out: &mut String, row: &SearchRow, axis: Axis) {
        let base = self.place.base;
        let open = row
            .stays
            .last()
            .map(|stay| format!("{base}/web/{}/{}", stay.last.to_digits14(), escaped(&row.url)));
        let _ = write!(
            out,
            "<div class=\"iv\"><div class=\"say\"><p><a class=\"quiet\" href=\"{}\">{}</a></p><p class=\"small mute\"><a href=\"{}\">{}</a>, {}{}</p>",
            open.unwrap_or_default(),
            marked(&row.text, &row.found),
            escaped(&page_address(base, &row.url)),
            isolated(without_scheme(&row.url)),
            row.title.as_ref().map(|title| format!("{}, ", foreign(title))).unwrap_or_default(),
            row.role
        );
        write_stays(out, &row.stays);
        let mut bars = Vec::new();
        for stay in &row.stays {
            bars.extend(stay.absent_until.map(|absent| Bar::Gap(absent, stay.first)));
            bars.extend(stay.gone.map(|gone| Bar::Gap(stay.last, gone)));
            bars.push(Bar::Seen(stay.first, stay.last, true));
            if stay.gone.is_none() {
                bars.push(Bar::Open(stay.last));
            }
        }
        let looks = row.looks.iter().filter(|look| **look >= axis.from && **look <= axis.until);
        bars.extend(looks.map(|look| Bar::Look(*look)));
        let label = row.stays.first().map(told).unwrap_or_default();
        let _ = write!(out, "</div>{}</div>", intervals(axis, &bars, &label));
    }
}

/// When it came and went: the first stay and the last ones in sight, those between on demand.
fn write_stays(out: &mut String, stays: &[Stay]) {
    let line = |out: &mut String, stay: &Stay| {
        let _ = write!(out, "<p class=\"small mute\">{}</p>", told(stay));
    };
    let between = if stays.len() > MOST_STAYS { 1..stays.len() + 1 - MOST_STAYS } else { 0..0 };
    for (place, stay) in stays.iter().enumerate() {
        if place == between.start && !between.is_empty() {
            let n = between.len();
            let _ =
                write!(out, "<details class=\"small mute\"><summary>came and went {n} times more</summary>");
        }
        line(out, stay);
        if place + 1 == between.end {
            out.push_str("</details>");
        }
    }
}

fn told(stay: &Stay) -> String {
    let appeared = match stay.absent_until {
        Some(absent) => format!("appeared between {} and {}", short(absent), short(stay.first)),
        None => format!("there at the first look, {}", short(stay.first)),
    };
    match stay.gone {
        Some(gone) => format!("{appeared}; gone between {} and {}", short(stay.last), short(gone)),
        None => format!("{appeared}; still there at the last look, {}", short(stay.last)),
    }
}

fn marked(text: &str, found: &[Range<usize>]) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for at in found.iter().filter(|at| at.end <= text.len()) {
        if at.start >= done {
            out += &format!("{}<mark>{}</mark>", escaped(&text[done..at.start]), escaped(&text[at.clone()]));
            done = at.end;
        }
    }
    out + &escaped(&text[done..]).to_string()
}

fn day_of(at: Timestamp) -> i64 {
    at.as_secs().div_euclid(86_400)
}

/// One scale of time for all rows.
fn axis_of(rows: &[SearchRow]) -> Axis {
    let stays = || rows.iter().flat_map(|row| &row.stays);
    let from = stays().map(|stay| stay.absent_until.unwrap_or(stay.first)).min().unwrap_or(Timestamp::EPOCH);
    let until = stays().map(|stay| stay.gone.unwrap_or(stay.last)).max().unwrap_or(from);
    Axis { from, until }
}
