//! A change of a page -> the words that differ, and its entry on home and in the list of changes.

use maud::{Markup, html};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::segment::BlockTree;
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{Operations, Time, Words, importance, operations, time, title, untrusted, words};
use super::layout::{
    compare_address, host_with_port, page_address, path_of, version_address, without_scheme,
};
use super::thumbnail;
use perennial_archive::store::{ChangeRow, Store};
use perennial_engine::analyse::{ChangeReader, ElementContent, OperationReport};
use perennial_engine::html::cut;
use perennial_engine::html::dates::{counted, span_words};

/// Words of one change.
const MAX_WORDS: usize = 3;

/// A word for a page that is not there any more.
const VANISHED: &str = "The page has vanished";

/// A change of a page.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
pub(crate) struct ShownChange {
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    /// When the capture was that showed it.
    pub(crate) time: Time,
    /// When the observation before was.
    pub(crate) before: Option<Time>,
    pub(crate) importance: f64,
    /// Whether the version is kept in the index.
    pub(crate) is_indexed: bool,
    /// What happened, if it is not an edit: the page is new, has vanished, is back or redirects.
    pub(crate) event: Option<&'static str>,
    /// The part of the page in which the strongest operation is.
    pub(crate) part: Option<&'static str>,
    /// The words that differ, strongest first.
    pub(crate) words: Vec<Words>,
    #[serde(flatten)]
    pub(crate) operations: Operations,
    /// Further changes of the page that were asked for.
    pub(crate) n_more: usize,
    /// The page as it is now, and the blocks that changed.
    #[serde(skip)]
    pub(crate) drawn: Option<(BlockTree, Vec<String>)>,
    /// Other pages of the same directory that changed in the same way, without their words.
    #[serde(skip)]
    pub(crate) beside: Vec<ShownChange>,
}

impl ShownChange {
    /// A change without its words.
    pub(crate) fn brief(row: ChangeRow, n_more: usize) -> ShownChange {
        ShownChange {
            time: row.time.into(),
            before: row.before.map(Time),
            importance: row.status.reported_importance().get(),
            is_indexed: row.is_indexed,
            event: event_of(row.status),
            title: row.title,
            url: row.url,
            n_more,
            part: None,
            words: Vec::new(),
            operations: Operations::default(),
            drawn: None,
            beside: Vec::new(),
        }
    }

    /// A change with its words and a drawing of the page.
    pub(crate) fn whole(
        store: &Store,
        reader: &mut ChangeReader<'_>,
        row: ChangeRow,
        n_more: usize,
    ) -> anyhow::Result<ShownChange> {
        let reported = Reported::read(reader, &row)?;
        let tree = store.tree_at(row.page, row.time)?;
        Ok(ShownChange::brief(row, n_more).with(reported, tree))
    }

    /// The same with what is reported of it.
    pub(crate) fn with(self, reported: Reported, tree: Option<BlockTree>) -> ShownChange {
        let Reported { words, operations, part, blocks } = reported;
        ShownChange { words, operations, part, drawn: tree.map(|tree| (tree, blocks)), ..self }
    }

    fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(without_scheme(&self.url))
    }

    /// The comparison that shows it. A page that is gone or new has nothing to compare.
    fn compare(&self, base: &str) -> Option<String> {
        let before = self.before.filter(|_| self.event.is_none())?;
        Some(compare_address(base, *before, *self.time, &self.url))
    }

    /// The version; of a page that has vanished, what it showed before.
    fn open(&self, base: &str) -> String {
        let shown = self.before.filter(|_| self.event == Some(VANISHED)).unwrap_or(self.time);
        version_address(base, *shown, &self.url)
    }

    fn importance(&self) -> Markup {
        importance(self.importance, self.is_indexed || self.event.is_some(), None)
    }
}

/// What is reported of a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) words: Vec<Words>,
    pub(crate) operations: Operations,
    /// The part of the page that the strongest operation is in.
    pub(crate) part: Option<&'static str>,
    /// The blocks that changed.
    pub(crate) blocks: Vec<String>,
}

impl Reported {
    pub(crate) fn read(reader: &mut ChangeReader<'_>, row: &ChangeRow) -> anyhow::Result<Reported> {
        let entries = reader.read(row)?.map(|changed| changed.entries()).unwrap_or_default();
        let is_told =
            |entry: &&OperationReport| entry.noise < 0.5 && !entry.advertisement && entry.share > 0.0;
        Ok(Reported::new(entries.iter().filter(is_told)))
    }

    /// Of these operations, the strongest first.
    pub(crate) fn new<'e>(entries: impl Iterator<Item = &'e OperationReport>) -> Reported {
        let told: Vec<&OperationReport> = entries.collect();
        let n_of = |op: &str| told.iter().filter(|entry| entry.op == op).count();
        Reported {
            words: told.iter().filter_map(|entry| words_of(entry)).take(MAX_WORDS).collect(),
            operations: Operations {
                n_inserted: n_of("insert"),
                n_deleted: n_of("delete"),
                n_updated: n_of("update"),
                n_moved: n_of("move"),
            },
            part: told.iter().find_map(|entry| entry.role).filter(|role| *role != "other"),
            blocks: told.iter().take(MAX_WORDS).filter_map(|entry| entry.block_after.clone()).collect(),
        }
    }
}

/// A word for what happened, if it is not an edit.
pub(crate) fn event_of(seen: ChangeStatus) -> Option<&'static str> {
    match seen {
        ChangeStatus::New => Some("New page"),
        ChangeStatus::Vanished => Some(VANISHED),
        ChangeStatus::Returned => Some("The page is there again"),
        ChangeStatus::Redirected(_) => Some("The address leads elsewhere now"),
        _ => None,
    }
}

fn words_of(entry: &OperationReport) -> Option<Words> {
    let whole = |content: &Option<ElementContent>| {
        content.as_ref().map(|content| content.text.clone()).unwrap_or_default()
    };
    let (before, after) = match entry.op {
        "insert" => (String::new(), cut(&whole(&entry.after))),
        "delete" => (cut(&whole(&entry.before)), String::new()),
        "update" => (whole(&entry.before), whole(&entry.after)),
        _ => return None,
    };
    (before != after).then_some(Words { before, after })
}

/// The directory of a page: host and path up to the last slash.
pub(crate) fn directory_of(url: &str) -> String {
    let path = path_of(url);
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    format!("{}{}", host_with_port(url), &path[..end])
}

/// The entry of a change with its words.
pub(crate) fn entry(base: &str, change: &ShownChange) -> Markup {
    let (compare, open) = (change.compare(base), change.open(base));
    let page = page_address(base, &change.url);
    html! {
        article.entry {
            (change.importance())
            span { @if let Some((tree, changed)) = &change.drawn { (thumbnail::svg(tree, changed)) } }
            div {
                h2.h3 { a href=(compare.as_ref().unwrap_or(&open)) { (title(change.name())) } }
                p.meta {
                    span { a.quiet href=(page) { (untrusted(without_scheme(&change.url))) } }
                    @if let Some(part) = change.part { span { (part_name(part)) } }
                    span { (time(*change.time)) }
                }
                @if let Some(event) = change.event { p { (event) "." } }
                @if !change.words.is_empty() { div.words { @for line in &change.words { (words(line)) } } }
                p.acts {
                    (operations(&change.operations))
                    @if let Some(before) = change.before { span { "within " (span_words(*change.time - *before)) } }
                    @if let Some(compare) = &compare { a href=(compare) { "Compare" } }
                    a href=(open) { @if change.event == Some(VANISHED) { "Open its last version" } @else { "Open" } }
                    @if change.n_more > 0 {
                        a href=(page) { (counted(change.n_more as u64, "more change", "more changes")) " of this page" }
                    }
                }
                @if !change.beside.is_empty() { (beside(base, change)) }
            }
        }
    }
}

/// The part of a page, as people call it.
fn part_name(part: &str) -> &str {
    match part {
        "main" => "main text",
        "navigation" => "menu",
        other => other,
    }
}

fn beside(base: &str, change: &ShownChange) -> Markup {
    html! {
        details.alike {
            summary {
                (counted(change.beside.len() as u64, "more page", "more pages"))
                " of " (untrusted(&directory_of(&change.url))) " changed too"
            }
            table.t {
                tbody {
                    @for other in &change.beside {
                        tr {
                            td { (other.importance()) }
                            td.w { a.quiet href=(page_address(base, &other.url)) { (title(other.name())) } }
                            td.r {
                                a href=(other.compare(base).unwrap_or_else(|| other.open(base))) {
                                    @if other.event.is_none() { "Compare" } @else { "Open" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::time::Timestamp;

    use super::*;

    #[test]
    fn what_strangers_wrote_is_escaped_and_words_are_marked() {
        let at = Time(Timestamp::parse("2026-01-02T03:04:05Z").unwrap());
        let hostile = "\"><script>alert(1)</script>";
        let change = |beside: Vec<ShownChange>| ShownChange {
            url: format!("https://a.example/{hostile}"),
            title: Some(hostile.into()),
            time: at,
            before: Some(at),
            importance: 0.5,
            is_indexed: true,
            event: None,
            part: Some("main"),
            words: vec![Words { before: "the limit is 30".into(), after: "the limit is 50".into() }],
            operations: Operations { n_inserted: 1, n_updated: 1, ..Operations::default() },
            n_more: 2,
            drawn: None,
            beside,
        };
        let html = entry("", &change(vec![change(Vec::new())])).0;
        assert!(!html.contains("<script"), "{html}");
        assert!(
            html.contains("the limit is <del>30</del>") && html.contains("the limit is <ins>50</ins>"),
            "{html}"
        );
        assert!(html.contains("2 more changes of this page") && html.contains("1 more page of"), "{html}");
        assert_eq!(directory_of("https://a.example/b/c?d=/e"), "a.example/b/c?d=/");
    }
}
