//! A question about changes and a part of its answer -> the page with the form and the list. The link is the state.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::notice::{ChangeKind, ReportedElement};
use perennial_core::text::markup::escaped;
use serde_json::{Value, json};

use super::changes::{ChangedPage, write_entry};
use super::parts::empty;
use super::{Framed, Place, Tab};
use perennial_engine::html::dates::{counted, grouped};

/// The page of changes that were asked for.
pub struct AskedPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The parameters as they were given, by name.
    pub given: &'a [(&'static str, String)],
    /// Why there is no answer.
    pub problem: Option<String>,
    /// The changes of this part of the list.
    pub changes: &'a [ChangedPage],
    /// The same for programs.
    pub json: Vec<Value>,
    /// Where the list goes on.
    pub next: Option<String>,
    /// How many changes were looked at for this part.
    pub n_rows: usize,
    /// Whether this is not the first part.
    pub is_later: bool,
}

/// A list to choose from: value and words.
type Choices = &'static [(&'static str, &'static str)];

/// The fields that are folded unless one of them is filled.
const MORE: [&str; 9] =
    ["kind", "appears", "vanishes", "op", "element", "block", "text", "selector", "noise"];

const OPS: Choices =
    &[("", "any"), ("insert", "inserted"), ("delete", "deleted"), ("update", "updated"), ("move", "moved")];
const BLOCKS: Choices = &[
    ("", "anywhere"),
    ("main", "main part"),
    ("header", "header"),
    ("nav", "navigation"),
    ("footer", "footer"),
    ("ad", "advertisements"),
    ("other", "other parts"),
];
const LEAST: Choices = &[
    ("", "any"),
    ("0.01", "0.01 and more"),
    ("0.1", "0.1 and more"),
    ("0.3", "0.3 and more"),
    ("0.6", "0.6 and more"),
];
const ORDERS: Choices =
    &[("", "latest first"), ("oldest", "oldest first"), ("importance", "most important first")];

impl AskedPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let n = counted(self.changes.len() as u64, "change", "changes");
        let heading = match (&self.problem, self.changes.is_empty(), self.next.is_some()) {
            (Some(_), ..) => "Ask for changes".to_owned(),
            (None, true, false) => "No such change".to_owned(),
            (None, true, true) => "No such change so far".to_owned(),
            (None, false, true) => format!("{n} and more"),
            (None, false, false) => n,
        };
        let mut main = format!("<div class=\"head\"><div><h1>{heading}</h1>");
        self.write_lead(&mut main);
        main.push_str("</div></div>");
        self.write_form(&mut main);
        if let Some(problem) = &self.problem {
            // Writing into a string cannot fail, here and below.
            let _ = write!(main, "<div class=\"alert\"><p>{}</p></div>", escaped(problem));
        }
        self.changes.iter().for_each(|change| write_entry(&mut main, self.place.base, change));
        self.write_end(&mut main);
        let json = format!("/api/changes?{}", self.query());
        let json = Some(json.as_str()).filter(|_| self.problem.is_none());
        Framed { place: self.place, tab: Tab::Changes, title: "Changes that were asked for", query: "", json }
            .html(&main)
    }

    /// The same for programs.
    pub fn json(self) -> Value {
        json!({ "changes": self.json, "next": self.next, "n_looked_at": self.n_rows })
    }

    fn value(&self, name: &str) -> &str {
        self.given.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The question without the place in its list.
    fn query(&self) -> String {
        let pairs = self.given.iter().map(|(name, value)| format!("{name}={}", escape(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    fn write_lead(&self, out: &mut String) {
        if self.problem.is_some() {
            return;
        }
        let _ = write!(
            out,
            "<p class=\"lead\">{} looked at for this part of the list. <a href=\"{}/changes.atom?{}\">This question as a feed</a></p>",
            counted(self.n_rows as u64, "change was", "changes were"),
            self.place.base,
            escaped(&self.query())
        );
    }

    fn write_form(&self, out: &mut String) {
        let _ = write!(
            out,
            "<form class=\"filters asked\" aria-label=\"Question\" action=\"{}/changes\">",
            self.place.base
        );
        let text = |out: &mut String, name: &str, label: &str, size: u32, hint: &str| {
            let value = escaped(self.value(name)).to_string();
            let _ = write!(
                out,
                "<label>{label} <input type=\"text\" name=\"{name}\" size=\"{size}\" value=\"{value}\" placeholder=\"{}\" autocomplete=\"off\"></label>",
                escaped(hint)
            );
        };
        let site = if self.value("page").is_empty() { "site" } else { "page" };
        text(out, site, "Site or page", 22, "all");
        text(out, "since", "Since", 12, "2026-01-28 or 7d");
        text(out, "until", "Before", 12, "2026-01-30");
        self.write_choice(out, "least", "Importance", LEAST);
        self.write_choice(out, "order", "Order", ORDERS);
        let is_open = MORE.iter().any(|name| !self.value(name).is_empty());
        let _ = write!(
            out,
            "<button class=\"btn go\">Show</button><details class=\"further\"{}><summary>Kind, words, operation, part of the page</summary><div class=\"filters\">",
            if is_open { " open" } else { "" }
        );
        let kinds = ChangeKind::ALL.map(|kind| (kind.name(), kind.name()));
        let kinds: Vec<(&str, &str)> = [("", "any")].into_iter().chain(kinds).collect();
        self.write_choice(out, "kind", "Kind", &kinds);
        text(out, "appears", "Words that appeared", 18, "\"limit value\"");
        text(out, "vanishes", "Words that vanished", 18, "resign* or /regex/");
        self.write_choice(out, "op", "Operation", OPS);
        let elements = ReportedElement::ALL.map(|element| match element {
            ReportedElement::Item => ("item", "headline"),
            element => (element.name(), element.name()),
        });
        let elements: Vec<(&str, &str)> = [("", "any")].into_iter().chain(elements).collect();
        self.write_choice(out, "element", "Element", &elements);
        self.write_choice(out, "block", "Where", BLOCKS);
        text(out, "text", "Words of the operation", 16, "any");
        text(out, "selector", "CSS selector", 14, "#price");
        let noise = if self.value("noise").is_empty() { "" } else { " checked" };
        let _ = write!(
            out,
            "<label class=\"sw\"><input type=\"checkbox\" name=\"noise\" value=\"1\"{noise}> noise too</label>\
             </div></details></form>"
        );
    }

    fn write_choice(&self, out: &mut String, name: &str, label: &str, choices: &[(&str, &str)]) {
        let value = self.value(name);
        let _ = write!(out, "<label>{label} <select name=\"{name}\">");
        // A value that is not offered stays chosen.
        let other = (!choices.iter().any(|(known, _)| *known == value)).then_some((value, value));
        for (known, words) in choices.iter().copied().chain(other) {
            let chosen = if known == value { " selected" } else { "" };
            let (known, words) = (escaped(known), escaped(words));
            let _ = write!(out, "<option value=\"{known}\"{chosen}>{words}</option>");
        }
        out.push_str("</select></label>");
    }

    fn write_end(&self, out: &mut String) {
        if self.problem.is_some() {
            return;
        }
        if let Some(next) = &self.next {
            let query = self.query();
            let and = if query.is_empty() { "" } else { "&" };
            let _ = write!(
                out,
                "<p class=\"more\"><a class=\"btn\" rel=\"next\" href=\"{}/changes?{}\">Go on</a> <span class=\"mute\">{} looked at so far in this part</span></p>",
                self.place.base,
                escaped(&format!("{query}{and}after={}", escape(next))),
                grouped(self.n_rows as u64)
            );
        } else if self.changes.is_empty() && !self.is_later {
            out.push_str(&empty(
                "No change is all of that",
                "A longer span, less importance or fewer words show more. Captures that wait for their analysis are not in the answer.",
                None,
            ));
        } else {
            out.push_str("<p class=\"more mute\">That was the last one.</p>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_keeps_what_was_asked_and_escapes_it() {
        let hostile = "\"><script>alert(1)</script>".to_owned();
        let given = [("site", hostile.clone()), ("op", "insert".to_owned()), ("least", "0.25".to_owned())];
        let page = AskedPage {
            place: Place { name: "a", base: "/b", operating: Default::default() },
            given: &given,
            problem: None,
            changes: &[],
            json: Vec::new(),
            next: Some("1.2.0.5".to_owned()),
            n_rows: 1_234,
            is_later: false,
        };
        let html = page.html();
        assert!(!html.contains("<script") && html.contains("value=\"insert\" selected"), "{html}");
        assert!(html.contains("value=\"0.25\" selected") && html.contains("No such change so far"), "{html}");
        assert!(html.contains("op=insert&amp;least=0.25&amp;after=1.2.0.5"), "{html}");
        assert!(html.contains("/b/changes.atom?site=%22%3E%3Cscript"), "{html}");
        let wrong = AskedPage { problem: Some(hostile), ..page }.html();
        assert!(
            !wrong.contains("<script") && wrong.contains("class=\"alert\"") && !wrong.contains("Go on"),
            "{wrong}"
        );
    }
}
