//! Building blocks of pages: untrusted text, times, importance, operations, words of a change, empty states, ranges.

use std::ops::Deref;

use maud::{Markup, PreEscaped, html};
use perennial_core::text::markup::isolated;
use perennial_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::layout::{Place, host_with_port, page_href, path, site_href};
use crate::diff::marked_words;
use perennial_engine::html::cut;
use perennial_engine::html::dates::{day_of_year, minute};

/// An instant in a view; RFC 3339 in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Time(pub Timestamp);

impl Deref for Time {
    type Target = Timestamp;

    fn deref(&self) -> &Timestamp {
        &self.0
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Time {
        Time(at)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.to_rfc3339())
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Bounds of a share, and its likely value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Range {
    pub(crate) at_least: f64,
    pub(crate) likely: f64,
    pub(crate) at_most: f64,
}

/// Bounds of a share.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Bounds {
    pub(crate) at_least: f64,
    pub(crate) at_most: f64,
}

/// `57` for 0.57.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

/// The words of a change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Words {
    /// Empty for inserted words.
    pub(crate) before: String,
    /// Empty for deleted words.
    pub(crate) after: String,
}

/// Counts the operations of a change by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Operations {
    pub(crate) n_inserted: usize,
    pub(crate) n_deleted: usize,
    pub(crate) n_updated: usize,
    pub(crate) n_moved: usize,
}

/// Untrusted text, which cannot change the direction of the text around it.
pub(crate) fn untrusted(text: &str) -> Markup {
    PreEscaped(isolated(text).to_string())
}

/// A shortened title of a captured page, item or feed.
pub(crate) fn title(text: &str) -> Markup {
    untrusted(&cut(text))
}

/// A time for people, with a machine-readable `datetime`.
pub(crate) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (date_time(at)) } }
}

/// `29 Jun 2026, 23:30`.
pub(crate) fn date_time(at: Timestamp) -> String {
    format!("{}, {}", day_of_year(at), minute(at))
}

/// What the number means, for people.
pub(crate) const IMPORTANCE: &str = "Importance measures how much of what a reader sees has changed, weighted by how prominent it is. \
    Advertisements, counters and dates do not count. From 0.3 a change is called large, from 0.1 medium, otherwise small.";

/// The size of a change in a word.
pub(crate) fn magnitude(importance: f64) -> &'static str {
    match importance {
        0.3.. => "large",
        0.1.. => "medium",
        _ => "small",
    }
}

/// Importance as number, bar and word, with a tick at the threshold if there is one.
pub(crate) fn importance(value: f64, is_kept: bool, threshold: Option<f64>) -> Markup {
    let tick = threshold.unwrap_or_default().clamp(0.0, 1.0);
    html! {
        span.imp title=(IMPORTANCE).low[!is_kept].bare[threshold.is_none()] style={ "--v:" (format!("{value:.3}")) ";--th:" (format!("{tick:.3}")) } {
            span { span.vh { "importance " } (format!("{value:.2}")) }
            i aria-hidden="true" {}
            small { (magnitude(value)) }
        }
    }
}

/// Symbol, class and name of a kind of operation.
type Sign = (&'static str, &'static str, &'static str);

const INSERTED: Sign = ("+", "i", "inserted");
const DELETED: Sign = ("−", "d", "deleted");
const UPDATED: Sign = ("~", "u", "updated");
const MOVED: Sign = ("→", "m", "moved");

fn sign((sign, class, name): Sign, n: Option<usize>) -> Markup {
    html! { span class={ "op " (class) } title=(name) { span.vh { (name) " " } (sign) @if let Some(n) = n { (n) } } }
}

pub(crate) fn operations(counts: &Operations) -> Markup {
    let Operations { n_inserted, n_deleted, n_updated, n_moved } = *counts;
    let all = [(INSERTED, n_inserted), (DELETED, n_deleted), (UPDATED, n_updated), (MOVED, n_moved)];
    html! {
        @if all.iter().any(|(_, n)| *n > 0) {
            span.ops { @for (kind, n) in all.into_iter().filter(|(_, n)| *n > 0) { (sign(kind, Some(n))) } }
        }
    }
}

fn signed(kind: Sign, words: &Markup) -> Markup {
    html! { p { (sign(kind, None)) span { (words) } } }
}

/// The words before and after, on one line each.
pub(crate) fn words(Words { before, after }: &Words) -> Markup {
    match (before.is_empty(), after.is_empty()) {
        (true, _) => signed(INSERTED, &html! { (after) }),
        (_, true) => signed(DELETED, &html! { (before) }),
        _ => became(before, after),
    }
}

pub(crate) fn became(before: &str, after: &str) -> Markup {
    let (before, after) = marked_or_plain(before, after);
    html! { (signed(DELETED, &before)) (signed(INSERTED, &after)) }
}

/// Both texts with differing words marked. If they share less than a third, they remain plain, because striped text is unreadable.
fn marked_or_plain(before: &str, after: &str) -> (Markup, Markup) {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    let (mine, theirs) = (words(before), words(after));
    let known: std::collections::HashSet<&String> = mine.iter().collect();
    let n_shared = theirs.iter().filter(|word| known.contains(word)).count();
    if 3 * n_shared >= mine.len().max(theirs.len()) {
        let marked = marked_words(before, after);
        if !(is_one_mark(&marked.0, "del") && is_one_mark(&marked.1, "ins")) {
            return (PreEscaped(marked.0), PreEscaped(marked.1));
        }
    }
    (html! { (cut(before)) }, html! { (cut(after)) })
}

/// Whether a text consists of one mark, which adds nothing to its symbol.
fn is_one_mark(text: &str, tag: &str) -> bool {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    text.starts_with(&open) && text.ends_with(&close) && text.matches(&close).count() == 1
}

/// An empty state: what is missing, why, and the command that helps.
pub(crate) fn empty(title: &str, text: &str, command: Option<&str>) -> Markup {
    html! {
        div.empty { h2.h3 { (title) } p { (text) } @if let Some(command) = command { pre { (command) } } }
    }
}

pub(crate) fn alert(problem: &str) -> Markup {
    html! { div.alert { p { (untrusted(problem)) } } }
}

/// Links up from a page: archive, site, path.
pub(crate) fn crumbs(place: Place<'_>, url: &str, path: &Markup) -> Markup {
    let host = host_with_port(url);
    html! {
        p.crumbs {
            a href={ (place.base) "/" } { (place.name) } " / "
            a href=(site_href(place.base, host)) { (untrusted(host)) } " / " (path)
        }
    }
}

/// The path of a page, linked to the page about it.
pub(crate) fn path_link(base: &str, url: &str) -> Markup {
    html! { a href=(page_href(base, url)) { (untrusted(path(url))) } }
}

/// Choices in a row; the chosen one has no link.
pub(crate) fn segments<'a>(choices: impl IntoIterator<Item = (String, Option<String>)> + 'a) -> Markup {
    html! {
        span.seg {
            @for (words, href) in choices {
                @match href {
                    Some(href) => a href=(href) { (words) },
                    None => span aria-current="true" { (words) },
                }
            }
        }
    }
}

/// A select field; options are value, label, whether it is chosen.
pub(crate) fn choice<V: AsRef<str>, W: AsRef<str>>(
    name: &str,
    label: &str,
    options: impl IntoIterator<Item = (V, W, bool)>,
) -> Markup {
    html! {
        label {
            (label) " "
            select name=(name) {
                @for (value, words, is_chosen) in options {
                    option value=(value.as_ref()) selected[is_chosen] { (words.as_ref()) }
                }
            }
        }
    }
}

/// A text field.
pub(crate) fn field(name: &str, label: &str, size: u32, value: &str, hint: &str) -> Markup {
    html! { label { (label) " " input type="text" name=(name) size=(size) value=(value) placeholder=(hint); } }
}

/// A checkbox.
pub(crate) fn tick(name: &str, label: &str, is_on: bool) -> Markup {
    html! { label.sw { input type="checkbox" name=(name) value="1" checked[is_on]; " " (label) } }
}

pub(crate) fn columns(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_only_in_similar_texts() {
        let html = became("the limit is <30>", "the limit is 50").0;
        assert!(
            html.contains("the limit is <del>&lt;30&gt;</del>") && html.contains("<ins>50</ins>"),
            "{html}"
        );
        let (before, after) = marked_or_plain("one two <three> four", "five six seven four");
        assert_eq!(
            (before.0.as_str(), after.0.as_str()),
            ("one two &lt;three&gt; four", "five six seven four")
        );
        assert!(is_one_mark("<del>a b</del>", "del") && !is_one_mark("<del>a</del> b <del>c</del>", "del"));
        assert_eq!(
            [0.05, 0.1, 0.29, 0.3, 1.0].map(magnitude),
            ["small", "medium", "medium", "large", "large"]
        );
    }

    #[test]
    fn right_to_left_text_is_isolated() {
        assert_eq!(title("\u{202e}<b>").0, "<bdi>&lt;b&gt;</bdi>");
    }
}
