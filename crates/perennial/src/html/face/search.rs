//! The answers to a question -> who said it, from when to when, on one scale of time.

use std::fmt::Write;
use std::ops::Range;

use perennial_core::markup::escaped;
use perennial_core::search::Stay;
use perennial_core::time::Timestamp;

use super::{Place, Tab, framed, short, time, without_scheme};

/// What the form holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchForm<'a> {
    /// The words as they were typed.
    pub words: &'a str,
    /// Only this site.
    pub site: &'a str,
    /// Only what is not there any more.
    pub is_vanished: bool,
    /// Only versions worth indexing.
    pub is_important: bool,
}

/// A page that said it.
pub struct SearchRow {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// The words with the text around them, and where they stand in it.
    pub text: String,
    /// See `text`.
    pub found: Vec<Range<usize>>,
    /// Role of the block.
    pub role: &'static str,
    /// When it said so.
    pub stays: Vec<Stay>,
    /// Looks at the page, as many as are drawn.
    pub looks: Vec<Timestamp>,
}

/// The page.
pub struct SearchPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// What was asked.
    pub form: SearchForm<'a>,
    /// What is wrong with the question, or why nothing can be searched.
    pub problem: Option<String>,
    /// The pages.
    pub rows: &'a [SearchRow],
    /// How many pages there are.
    pub n_pages: usize,
    /// Whether only the latest answers were looked at.
    pub is_partial: bool,
}

impl SearchPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let mut main = String::from("<h1>Search all versions</h1>");
        self.write_form(&mut main);
        if let Some(problem) = &self.problem {
            let _ = write!(main, "<p class=\"failure\">{}</p>", escaped(problem));
        } else if self.form.words.is_empty() {
            main.push_str(
                "<p class=\"empty\">Words are looked for in everything that any analysed page ever showed: <code>ferry harbour</code> both words, \
                 <code>&quot;new ferry line&quot;</code> in a row, <code>harb*</code> words that begin so, <code>-boat</code> without, <code>OR</code> either.</p>",
            );
        } else if self.rows.is_empty() {
            main.push_str("<p class=\"empty\">No page said so. Fewer words, or part of a word with * behind it, find more.</p>");
        } else {
            self.write_answers(&mut main);
        }
        framed(self.place, Tab::Search, "Search", self.form.words, &main)
    }

    fn write_form(&self, out: &mut String) {
        let checked = |is_on: bool| if is_on { " checked" } else { "" };
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<form class=\"ask\" action=\"{}/search\"><input type=\"search\" name=\"q\" value=\"{}\" aria-label=\"Words\" required>\
             <button class=\"main\">Search</button><p><label>Site <input type=\"text\" name=\"site\" value=\"{}\" placeholder=\"all\"></label>\
             <label><input type=\"checkbox\" name=\"vanished\" value=\"1\"{}> gone by now</label>\
             <label><input type=\"checkbox\" name=\"important\" value=\"1\"{}> important versions only</label></p></form>",
            self.place.base,
            escaped(self.form.words),
            escaped(self.form.site),
            checked(self.form.is_vanished),
            checked(self.form.is_important)
        );
    }

    fn write_answers(&self, out: &mut String) {
        let scale = Scale::of(self.rows);
        let n_there =
            self.rows.iter().filter(|row| row.stays.last().is_some_and(|stay| stay.gone.is_none())).count();
        let first = self.rows.iter().flat_map(|row| &row.stays).map(|stay| stay.first).min();
        let _ = write!(
            out,
            "<dl class=\"facts\"><div><dt>Said by</dt><dd>{}{} pages</dd></div><div><dt>First seen</dt><dd>{}</dd></div>\
             <div><dt>Still there at the last look</dt><dd>{n_there} of {} shown</dd></div></dl>",
            if self.is_partial { "at least " } else { "" },
            self.n_pages,
            first.map(time).unwrap_or_default(),
            self.rows.len()
        );
        let _ = write!(
            out,
            "<h2>When each page said it</h2><p class=\"legend mute\"><span class=\"k seen\"></span> seen <span class=\"k gap\"></span> came or went in this gap \
             <span class=\"k look\"></span> looks</p><div class=\"axis\" aria-hidden=\"true\"><span>{}</span><span>{}</span></div>",
            short(scale.from),
            short(scale.until)
        );
        for row in self.rows {
            self.write_row(out, row, &scale);
        }
        if self.n_pages > self.rows.len() {
            let _ = write!(
                out,
                "<p class=\"mute\">{} more pages: <code>perennial search --limit</code> lists all.</p>",
                self.n_pages - self.rows.len()
            );
        }
    }

    fn write_row(&self, out: &mut String, row: &SearchRow, scale: &Scale) {
        let base = self.place.base;
        let _ = write!(
            out,
            "<div class=\"said\"><div><p class=\"mute\"><a href=\"{base}/web/*/{0}\">{1}</a> {2}</p><p>{3}</p>",
            escaped(&row.url),
            escaped(without_scheme(&row.url)),
            escaped(row.title.as_deref().unwrap_or_default()),
            marked(&row.text, &row.found)
        );
        for stay in &row.stays {
            let open = format!("{base}/web/{}/{}", stay.last.to_digits14(), escaped(&row.url));
            let _ = write!(
                out,
                "<p class=\"small mute\">{}; {} <a href=\"{open}\">Open</a></p>",
                row.role,
                told(stay)
            );
        }
        out.push_str("</div>");
        scale.write_bars(out, row);
        out.push_str("</div>");
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

/// One scale of time for all rows.
struct Scale {
    from: Timestamp,
    until: Timestamp,
}

impl Scale {
    fn of(rows: &[SearchRow]) -> Scale {
        let stays = || rows.iter().flat_map(|row| &row.stays);
        let from =
            stays().map(|stay| stay.absent_until.unwrap_or(stay.first)).min().unwrap_or(Timestamp::EPOCH);
        let until = stays().map(|stay| stay.gone.unwrap_or(stay.last)).max().unwrap_or(from);
        Scale { from, until }
    }

    /// Where a time stands, in per cent.
    fn at(&self, time: Timestamp) -> f64 {
        let (length, passed) = ((self.until - self.from).as_hours_f64(), (time - self.from).as_hours_f64());
        if length > 0.0 { (100.0 * passed / length).clamp(0.0, 100.0) } else { 0.0 }
    }

    fn write_bars(&self, out: &mut String, row: &SearchRow) {
        out.push_str("<svg class=\"bars\" height=\"34\" role=\"img\" aria-label=\"When the page said it\">");
        let bar = |out: &mut String, class: &str, from: Timestamp, until: Timestamp| {
            let (x, end) = (self.at(from), self.at(until));
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{x:.2}%\" y=\"8\" width=\"{:.2}%\" height=\"10\"/>",
                (end - x).max(0.3)
            );
        };
        for stay in &row.stays {
            if let Some(absent) = stay.absent_until {
                bar(out, "gap", absent, stay.first);
            }
            if let Some(gone) = stay.gone {
                bar(out, "gap", stay.last, gone);
            }
            bar(out, "seen", stay.first, stay.last);
        }
        for look in row.looks.iter().filter(|look| **look >= self.from && **look <= self.until) {
            let _ = write!(
                out,
                "<rect class=\"look\" x=\"{:.2}%\" y=\"24\" width=\"1\" height=\"5\"/>",
                self.at(*look)
            );
        }
        out.push_str("</svg>");
    }
}
