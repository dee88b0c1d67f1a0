//! What many pages are made of: untrusted text, times, importance, operations, words of a change, empty states, ranges.

use std::ops::Deref;

use maud::{Markup, PreEscaped, html};
use perennial_core::text::markup::isolated;
use perennial_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::layout::{Place, host_with_port, page_address, path_of, site_address};
use crate::diff::marked_words;
use perennial_engine::html::cut;

/// An instant in a view: RFC 3339 for programs.
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

/// A share that is known within bounds, with its likely value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Range {
    /// It is not less.
    pub(crate) at_least: f64,
    /// What it likely is.
    pub(crate) likely: f64,
    /// It is not more.
    pub(crate) at_most: f64,
}

/// A share that is known within bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Bounds {
    /// It is not less.
    pub(crate) at_least: f64,
    /// It is not more.
    pub(crate) at_most: f64,
}

/// `57 %`, without its sign.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

/// Words of a change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Words {
    /// The words before; empty for inserted ones.
    pub(crate) before: String,
    /// The words after; empty for deleted ones.
    pub(crate) after: String,
}

/// How many operations of each kind a change has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Operations {
    /// What came.
    pub(crate) n_inserted: usize,
    /// What went.
    pub(crate) n_deleted: usize,
    /// What has other words.
    pub(crate) n_updated: usize,
    /// What has another place.
    pub(crate) n_moved: usize,
}

/// Untrusted text between tags, unable to turn what stands around it.
pub(crate) fn untrusted(text: &str) -> Markup {
    PreEscaped(isolated(text).to_string())
}

/// A title of a captured page, item or feed, shortened.
pub(crate) fn title(text: &str) -> Markup {
    untrusted(&cut(text))
}

/// A time as people read it, with the instant for programs.
pub(crate) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (short(at)) } }
}

/// Day and minute: `2026-06-29 23:30`.
pub(crate) fn short(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    format!("{} {}", text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default())
}

/// Importance: number, bar, a tick at the threshold if one is known.
pub(crate) fn importance(value: f64, is_kept: bool, threshold: Option<f64>) -> Markup {
    let tick = threshold.unwrap_or_default().clamp(0.0, 1.0);
    html! {
        span.imp.low[!is_kept].bare[threshold.is_none()] style={ "--v:" (format!("{value:.3}")) ";--th:" (format!("{tick:.3}")) } {
            span { span.vh { "importance " } (format!("{value:.2}")) }
            i aria-hidden="true" {}
        }
    }
}

/// Sign, class and name of a kind of operation.
type Sign = (&'static str, &'static str, &'static str);

const INSERTED: Sign = ("+", "i", "inserted");
const DELETED: Sign = ("−", "d", "deleted");
const UPDATED: Sign = ("~", "u", "updated");
const MOVED: Sign = ("→", "m", "moved");

fn sign((sign, class, name): Sign, n: Option<usize>) -> Markup {
    html! { span class={ "op " (class) } title=(name) { span.vh { (name) " " } (sign) @if let Some(n) = n { (n) } } }
}

/// The operations of a change with their counts.
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

/// The words before and after, one line each.
pub(crate) fn words(Words { before, after }: &Words) -> Markup {
    match (before.is_empty(), after.is_empty()) {
        (true, _) => signed(INSERTED, &html! { (after) }),
        (_, true) => signed(DELETED, &html! { (before) }),
        _ => became(before, after),
    }
}

/// A text that became another.
pub(crate) fn became(before: &str, after: &str) -> Markup {
    let (before, after) = marked_or_plain(before, after);
    html! { (signed(DELETED, &before)) (signed(INSERTED, &after)) }
}

/// Both texts with the words that differ marked; plain where less than a third is shared, because striped text cannot be read.
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

/// Whether a text is marked as a whole, which says no more than its sign does.
fn is_one_mark(text: &str, tag: &str) -> bool {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    text.starts_with(&open) && text.ends_with(&close) && text.matches(&close).count() == 1
}

/// An empty state: what is missing, why, and the command that changes it.
pub(crate) fn empty(title: &str, text: &str, command: Option<&str>) -> Markup {
    html! {
        div.empty { h2.h3 { (title) } p { (text) } @if let Some(command) = command { pre { (command) } } }
    }
}

/// What is wrong with what was asked for.
pub(crate) fn alert(problem: &str) -> Markup {
    html! { div.alert { p { (untrusted(problem)) } } }
}

/// The way up from a page: the archive, the site, the path.
pub(crate) fn crumbs(place: Place<'_>, url: &str, path: &Markup) -> Markup {
    let host = host_with_port(url);
    html! {
        p.crumbs {
            a href={ (place.base) "/" } { (place.name) } " / "
            a href=(site_address(place.base, host)) { (untrusted(host)) } " / " (path)
        }
    }
}

/// The path of a page as a link to the page about it.
pub(crate) fn path_link(base: &str, url: &str) -> Markup {
    html! { a href=(page_address(base, url)) { (untrusted(path_of(url))) } }
}

/// The choices of a row of which one holds.
pub(crate) fn segments<'a>(choices: impl IntoIterator<Item = (String, Option<String>)> + 'a) -> Markup {
    html! {
        span.seg {
            @for (words, address) in choices {
                @match address {
                    Some(address) => a href=(address) { (words) },
                    None => span aria-current="true" { (words) },
                }
            }
        }
    }
}

/// A field to choose from: value, words, whether it is chosen.
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

/// A field for a text.
pub(crate) fn field(name: &str, label: &str, size: u32, value: &str, hint: &str) -> Markup {
    html! { label { (label) " " input type="text" name=(name) size=(size) value=(value) placeholder=(hint); } }
}

/// A box that can be ticked.
pub(crate) fn tick(name: &str, label: &str, is_on: bool) -> Markup {
    html! { label.sw { input type="checkbox" name=(name) value="1" checked[is_on]; " " (label) } }
}

/// The head of a table.
pub(crate) fn columns(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_little_are_not_striped() {
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
    }

    #[test]
    fn right_to_left_text_is_isolated() {
        assert_eq!(title("\u{202e}<b>").0, "<bdi>&lt;b&gt;</bdi>");
    }
}
