//! A change of a page: the words that differ, and its entry on the home page and in the list of changes.

use maud::{Markup, html};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::segment::BlockTree;
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{Operations, Time, Words, importance, operations, time, title, untrusted, words};
use super::layout::{compare_href, host_with_port, page_href, path, version_href, without_scheme};
use super::thumbnail;
use perennial_archive::store::{ChangeRow, Store};
use perennial_core::text::quantity::counted;
use perennial_engine::analyse::{ChangeReader, ElementContent, OperationReport, operations_for_people};
use perennial_engine::html::cut;
use perennial_engine::html::dates::span_words;

/// Words shown per change.
const MAX_WORDS: usize = 3;

const VANISHED: &str = "The page has vanished";

#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
pub(crate) struct ChangeView {
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    /// The capture that showed the change.
    pub(crate) time: Time,
    /// The observation before.
    pub(crate) before: Option<Time>,
    pub(crate) importance: f64,
    /// Whether the version is kept in the index.
    pub(crate) is_indexed: bool,
    /// What happened, if it is not an edit: the page is new, vanished, returned or redirects.
    pub(crate) event: Option<&'static str>,
    /// The part of the page that contains the strongest operation.
    pub(crate) part: Option<&'static str>,
    /// The words that differ, strongest first.
    pub(crate) words: Vec<Words>,
    #[serde(flatten)]
    pub(crate) operations: Operations,
    /// Operations that are noise or about advertisements.
    pub(crate) n_folded: usize,
    /// Other matching changes of the page.
    pub(crate) n_more: usize,
    /// The tree of the page for its thumbnail, and the blocks that changed.
    #[serde(skip)]
    pub(crate) thumbnail: Option<(BlockTree, Vec<String>)>,
    /// Other pages of the same directory that changed in the same way, without their words.
    #[serde(skip)]
    pub(crate) similar: Vec<ChangeView>,
}

impl ChangeView {
    /// A change without its words.
    pub(crate) fn brief(row: ChangeRow, n_more: usize) -> ChangeView {
        ChangeView {
            time: row.time.into(),
            before: row.before.map(Time),
            importance: row.status.reported_importance().get(),
            is_indexed: row.is_indexed,
            event: event(row.status),
            title: row.title,
            url: row.url,
            n_folded: 0,
            n_more,
            part: None,
            words: Vec::new(),
            operations: Operations::default(),
            thumbnail: None,
            similar: Vec::new(),
        }
    }

    /// A change with its words and a thumbnail of the page.
    pub(crate) fn with_words(
        store: &Store,
        reader: &mut ChangeReader<'_>,
        row: ChangeRow,
        n_more: usize,
    ) -> anyhow::Result<ChangeView> {
        let summary = ChangeSummary::read(reader, &row)?;
        let tree = store.tree_at(row.page, row.time)?;
        Ok(ChangeView::brief(row, n_more).with(summary, tree))
    }

    /// Adds the words and the thumbnail.
    pub(crate) fn with(self, summary: ChangeSummary, tree: Option<BlockTree>) -> ChangeView {
        let ChangeSummary { words, operations, part, blocks, n_folded } = summary;
        ChangeView { words, operations, part, n_folded, thumbnail: tree.map(|tree| (tree, blocks)), ..self }
    }

    fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(without_scheme(&self.url))
    }

    /// The comparison that shows the change. New and vanished pages have nothing to compare.
    fn compare(&self, base: &str) -> Option<String> {
        let before = self.before.filter(|_| self.event.is_none())?;
        Some(compare_href(base, *before, *self.time, &self.url))
    }

    /// The version; for a vanished page, the version before.
    fn open(&self, base: &str) -> String {
        let shown = self.before.filter(|_| self.event == Some(VANISHED)).unwrap_or(self.time);
        version_href(base, *shown, &self.url)
    }

    fn importance(&self) -> Markup {
        importance(self.importance, self.is_indexed || self.event.is_some(), None)
    }
}

/// The operations of a change that are worth showing.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeSummary {
    pub(crate) words: Vec<Words>,
    pub(crate) operations: Operations,
    /// The part of the page that contains the strongest operation.
    pub(crate) part: Option<&'static str>,
    pub(crate) blocks: Vec<String>,
    /// Operations that are noise or about advertisements.
    pub(crate) n_folded: usize,
}

impl ChangeSummary {
    pub(crate) fn read(reader: &mut ChangeReader<'_>, row: &ChangeRow) -> anyhow::Result<ChangeSummary> {
        let entries = reader.read(row)?.map(|changed| changed.entries()).unwrap_or_default();
        let shown = operations_for_people(&entries, false);
        let n_folded = entries.iter().filter(|entry| entry.judgement().is_noise()).count();
        // A change of noise only shows its noise.
        let is_folded = shown.iter().any(|entry| !entry.judgement().is_noise());
        Ok(ChangeSummary {
            n_folded: if is_folded { n_folded } else { 0 },
            ..ChangeSummary::new(shown.iter())
        })
    }

    /// Summarises operations, given the strongest first.
    pub(crate) fn new<'e>(entries: impl Iterator<Item = &'e OperationReport>) -> ChangeSummary {
        let entries: Vec<&OperationReport> = entries.collect();
        let count = |op: &str| entries.iter().filter(|entry| entry.op == op).count();
        ChangeSummary {
            words: entries.iter().filter_map(|entry| changed_words(entry)).take(MAX_WORDS).collect(),
            operations: Operations {
                n_inserted: count("insert"),
                n_deleted: count("delete"),
                n_updated: count("update"),
                n_moved: count("move"),
            },
            part: entries.iter().find_map(|entry| entry.role).filter(|role| *role != "other"),
            n_folded: 0,
            blocks: entries.iter().take(MAX_WORDS).filter_map(|entry| entry.block_after.clone()).collect(),
        }
    }
}

/// What happened, if it is not an edit.
pub(crate) fn event(status: ChangeStatus) -> Option<&'static str> {
    match status {
        ChangeStatus::New => Some("New page"),
        ChangeStatus::Vanished => Some(VANISHED),
        ChangeStatus::Returned => Some("The page has returned"),
        ChangeStatus::Redirected(_) => Some("The URL now redirects elsewhere"),
        _ => None,
    }
}

fn changed_words(entry: &OperationReport) -> Option<Words> {
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

/// The host and the path of a page up to the last slash.
pub(crate) fn directory(url: &str) -> String {
    let path = path(url);
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    format!("{}{}", host_with_port(url), &path[..end])
}

pub(crate) fn entry(base: &str, change: &ChangeView) -> Markup {
    let (compare, open) = (change.compare(base), change.open(base));
    let page = page_href(base, &change.url);
    html! {
        article.entry {
            (change.importance())
            span { @if let Some((tree, changed)) = &change.thumbnail { (thumbnail::svg(tree, changed)) } }
            div {
                h2.h3 { a href=(compare.as_ref().unwrap_or(&open)) { (title(change.name())) } }
                p.meta {
                    span { a.quiet href=(page) { (untrusted(without_scheme(&change.url))) } }
                    @if let Some(part) = change.part { span { (part_name(part)) } }
                    span { (time(*change.time)) }
                }
                @if let Some(event) = change.event { p { (event) "." } }
                @if !change.words.is_empty() { div.words { @for line in &change.words { (words(line)) } } }
                p.actions {
                    (operations(&change.operations))
                    @if let Some(before) = change.before { span { "within " (span_words(*change.time - *before)) " of the version before" } }
                    @if let Some(compare) = &compare {
                        a href=(compare) { "Compare" }
                        @if change.n_folded > 0 {
                            a href={ (compare) "#show=moves,ads,noise" } { (change.n_folded) " folded as noise" }
                        }
                    }
                    a href=(open) { @if change.event == Some(VANISHED) { "Open its last version" } @else { "Open" } }
                    @if change.n_more > 0 {
                        a href=(page) { (counted(change.n_more as u64, "more change", "more changes")) " of this page" }
                    }
                }
                @if !change.similar.is_empty() { (similar(base, change)) }
            }
        }
    }
}

fn part_name(part: &str) -> &str {
    match part {
        "main" => "main text",
        "navigation" => "menu",
        other => other,
    }
}

fn similar(base: &str, change: &ChangeView) -> Markup {
    html! {
        details.alike {
            summary {
                (counted(change.similar.len() as u64, "more page", "more pages"))
                " in " (untrusted(&directory(&change.url))) " changed in the same way"
            }
            table.t {
                tbody {
                    @for other in &change.similar {
                        tr {
                            td { (other.importance()) }
                            td.w { a.quiet href=(page_href(base, &other.url)) { (title(other.name())) } }
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
    fn untrusted_text_is_escaped_and_words_are_marked() {
        let at = Time(Timestamp::parse("2026-01-02T03:04:05Z").unwrap());
        let hostile = "\"><script>alert(1)</script>";
        let change = |similar: Vec<ChangeView>| ChangeView {
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
            n_folded: 3,
            n_more: 2,
            thumbnail: None,
            similar,
        };
        let html = entry("", &change(vec![change(Vec::new())])).0;
        assert!(!html.contains("<script"), "{html}");
        assert!(
            html.contains("the limit is <del>30</del>") && html.contains("the limit is <ins>50</ins>"),
            "{html}"
        );
        assert!(html.contains("2 more changes of this page") && html.contains("1 more page in"), "{html}");
        assert!(html.contains("show=moves,ads,noise\">3 folded as noise"), "{html}");
        assert_eq!(directory("https://a.example/b/c?d=/e"), "a.example/b/c?d=/");
    }
}
