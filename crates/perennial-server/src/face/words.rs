//! A change -> the words that differ, for people.

use perennial_core::page::look::ChangeStatus;

use crate::html_face::{ChangedPage, Line, LineKind, VANISHED, cut};
use perennial_archive::store::{ChangeRow, Store};
use perennial_engine::analyse::{ChangedReader, Content, Entry};

/// Lines of words of one change.
pub(super) const MAX_LINES: usize = 3;

pub(super) fn importance_of(row: &ChangeRow) -> f64 {
    row.status.reported_importance().get()
}

/// The words of a change, how many operations of each kind it has, and the blocks that changed.
pub(super) struct Told {
    pub(super) lines: Vec<Line>,
    pub(super) n_operations: [usize; 4],
    pub(super) blocks: Vec<String>,
    /// The part of the page that the strongest of them is in.
    pub(super) part: Option<&'static str>,
}

pub(super) fn told(reader: &mut ChangedReader<'_>, row: &ChangeRow) -> anyhow::Result<Told> {
    let entries = reader.read(row)?.map(|changed| changed.entries()).unwrap_or_default();
    Ok(told_entries(entries.iter().filter(|entry| entry.is_worth_reporting())))
}

/// What is told of these operations, the strongest first.
pub(super) fn told_entries<'e>(entries: impl Iterator<Item = &'e Entry>) -> Told {
    let told: Vec<&Entry> = entries.collect();
    let n_of = |op: &str| told.iter().filter(|entry| entry.op == op).count();
    Told {
        lines: told.iter().filter_map(|entry| line_of(entry)).take(MAX_LINES).collect(),
        n_operations: ["insert", "delete", "update", "move"].map(n_of),
        part: told.iter().find_map(|entry| entry.role).filter(|role| *role != "other"),
        blocks: told.iter().take(MAX_LINES).filter_map(|entry| entry.block_after.clone()).collect(),
    }
}

/// A change with its words and a drawing of the page.
pub(super) fn told_change(
    store: &Store,
    reader: &mut ChangedReader<'_>,
    row: ChangeRow,
    n_more: usize,
) -> anyhow::Result<ChangedPage> {
    let told = told(reader, &row)?;
    let drawn = store.tree_at(row.page, row.time)?.map(|tree| (tree, told.blocks));
    let page = untold_change(row, n_more);
    Ok(ChangedPage { lines: told.lines, n_operations: told.n_operations, part: told.part, drawn, ..page })
}

/// A change without its words.
pub(super) fn untold_change(row: ChangeRow, n_more: usize) -> ChangedPage {
    ChangedPage {
        time: row.time,
        before: row.before,
        importance: importance_of(&row),
        is_indexed: row.is_indexed,
        event: event_of(row.status),
        lines: Vec::new(),
        n_operations: [0; 4],
        part: None,
        drawn: None,
        title: row.title,
        url: row.url,
        n_more,
        beside: Vec::new(),
    }
}

/// A word for what happened where it is no edit.
pub(super) fn event_of(status: ChangeStatus) -> Option<&'static str> {
    match status {
        ChangeStatus::New => Some("New page"),
        ChangeStatus::Vanished => Some(VANISHED),
        ChangeStatus::Returned => Some("The page is there again"),
        ChangeStatus::Redirected(_) => Some("The address leads elsewhere now"),
        _ => None,
    }
}

fn line_of(entry: &Entry) -> Option<Line> {
    let whole =
        |content: &Option<Content>| content.as_ref().map(|content| content.text.clone()).unwrap_or_default();
    let (kind, before, after) = match entry.op {
        "insert" => (LineKind::Inserted, String::new(), cut(&whole(&entry.after))),
        "delete" => (LineKind::Deleted, cut(&whole(&entry.before)), String::new()),
        "update" => (LineKind::Updated, whole(&entry.before), whole(&entry.after)),
        _ => return None,
    };
    (!(before.is_empty() && after.is_empty()) && before != after).then_some(Line { kind, before, after })
}
