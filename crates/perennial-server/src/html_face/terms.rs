//! The terms that are new in a span -> a table, each with the search for it.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::parts::empty;
use super::{Framed, Place, Tab};
use perennial_engine::html::dates::{counted, day_and_minute, grouped};

/// A term.
pub struct TermRow {
    /// As a reader saw it first.
    pub shown: String,
    /// Passages of the span that have it.
    pub n_passages: u64,
    /// Passages before that had it.
    pub n_before: u64,
    /// The log-likelihood ratio.
    pub surprise: f64,
}

/// The page.
pub struct TermsPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The span as it was asked for.
    pub since_asked: &'a str,
    /// Only this site.
    pub site: &'a str,
    /// Why there is no answer.
    pub problem: Option<String>,
    /// From when on terms are new.
    pub since: Timestamp,
    /// The terms.
    pub rows: &'a [TermRow],
    /// Passages that came in the span.
    pub n_passages: u64,
    /// Passages that stood there before.
    pub n_before: u64,
    /// Whether only the latest passages were read.
    pub is_partial: bool,
}

/// Spans that can be chosen.
const SPANS: [(&str, &str); 3] = [("1d", "24 hours"), ("7d", "7 days"), ("30d", "30 days")];

impl TermsPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let heading = match self.rows.len() {
            0 => "No term surprises".to_owned(),
            n => format!("{} that are new, or more frequent", counted(n as u64, "term", "terms")),
        };
        let mut main = format!("<div class=\"head\"><div><h1>{heading}</h1>");
        // Writing into a string cannot fail, here and below.
        if self.problem.is_none() {
            let _ = write!(
                main,
                "<p class=\"lead\">Among {} that came to pages since {}, {}beside {} before.</p>",
                counted(self.n_passages, "passage", "passages"),
                day_and_minute(self.since),
                if self.is_partial { "the latest of them, " } else { "" },
                grouped(self.n_before)
            );
        }
        main.push_str("</div></div>");
        self.write_form(&mut main);
        match &self.problem {
            Some(problem) => drop(write!(main, "<div class=\"alert\"><p>{}</p></div>", escaped(problem))),
            None if self.rows.is_empty() => main.push_str(&empty(
                "Nothing is said more often than before",
                "A longer span has more. What a site said when it was seen first is not news: there is nothing to compare it with.",
                None,
            )),
            None => self.write_rows(&mut main),
        }
        let json = format!("/api/terms?{}", self.query(self.since_asked));
        Framed { place: self.place, tab: Tab::Search, title: "New terms", query: "", json: Some(&json) }
            .html(&main)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let row = |row: &TermRow| json!({ "term": row.shown, "n_passages": row.n_passages, "n_before": row.n_before, "surprise": row.surprise });
        json!({
            "since": self.since.to_rfc3339(),
            "n_passages": self.n_passages,
            "n_before": self.n_before,
            "is_partial": self.is_partial,
            "terms": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    fn query(&self, since: &str) -> String {
        let site = if self.site.is_empty() { String::new() } else { format!("&site={}", escape(self.site)) };
        format!("since={}{site}", escape(since))
    }

    fn write_form(&self, out: &mut String) {
        let base = self.place.base;
        let _ = write!(
            out,
            "<form class=\"filters\" aria-label=\"Span\" action=\"{base}/terms\"><span class=\"seg\">"
        );
        for (since, name) in SPANS {
            let _ = match since == self.since_asked {
                true => write!(out, "<span aria-current=\"true\">{name}</span>"),
                false => write!(out, "<a href=\"{base}/terms?{}\">{name}</a>", escaped(&self.query(since))),
            };
        }
        let _ = write!(
            out,
            "</span><label>Since <input type=\"text\" name=\"since\" size=\"12\" value=\"{}\" placeholder=\"2026-01-28\"></label>\
             <label>Site <input type=\"text\" name=\"site\" size=\"16\" value=\"{}\" placeholder=\"all\"></label><button>Show</button></form>",
            escaped(self.since_asked),
            escaped(self.site)
        );
    }

    fn write_rows(&self, out: &mut String) {
        out.push_str(
            "<table class=\"t\"><thead><tr><th scope=\"col\">Term</th><th scope=\"col\" class=\"r\">Passages</th>\
             <th scope=\"col\" class=\"r\">Before</th><th scope=\"col\" class=\"r\">Surprise</th></tr></thead><tbody>",
        );
        for row in self.rows {
            let site =
                if self.site.is_empty() { String::new() } else { format!("&site={}", escape(self.site)) };
            let search = format!("{}/search?q={}&phrase=1{site}", self.place.base, escape(&row.shown));
            let before = if row.n_before == 0 { "new".to_owned() } else { grouped(row.n_before) };
            let _ = write!(
                out,
                "<tr><td class=\"w\"><a href=\"{}\">{}</a></td><td class=\"r\">{}</td><td class=\"r\">{before}</td><td class=\"r\">{:.1}</td></tr>",
                escaped(&search),
                isolated(&row.shown),
                grouped(row.n_passages),
                row.surprise
            );
        }
        out.push_str("</tbody></table>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_escaped_and_lead_to_the_search() {
        let hostile = "<script>alert(1)</script>".to_owned();
        let rows = [TermRow { shown: hostile.clone(), n_passages: 3, n_before: 0, surprise: 12.3 }];
        let page = TermsPage {
            place: Place { name: "a", base: "/b", operating: Default::default() },
            since_asked: "7d",
            site: &hostile,
            problem: None,
            since: Timestamp::EPOCH,
            rows: &rows,
            n_passages: 9,
            n_before: 1_000,
            is_partial: false,
        };
        let html = page.html();
        assert!(!html.contains("<script") && html.contains("/b/search?q=%3Cscript%3E"), "{html}");
        assert!(html.contains("1 term that") || html.contains("1 term "), "{html}");
    }
}
