//! `perennial changes`: the archive asked about its changes.

use std::io::Write;

use anyhow::bail;
use clap::ValueEnum;
use perennial_core::diff::{Delta, ElementKind, ItemChangeKind, OperationKind};
use perennial_core::look::Seen;
use perennial_core::notice::{ChangeKind, told_importance};
use perennial_core::time::Timestamp;
use regex::Regex;
use serde::{Serialize, Serializer};

use super::{Context, Exit, parse_time};
use crate::analyse::{ChangedReader, Entry, Filters, headlines};
use crate::store::{ChangeFilter, ChangeRow, Store};

/// Lists what happened to pages: edits, new pages, pages that vanished, moved or came back.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  perennial changes
  perennial changes --since yesterday --sort importance --limit 20
  perennial changes example.org --kind vanished
  perennial changes https://example.org/ --min-importance 0.1
  perennial changes example.org --since 2026-01-01 --op insert --element link
  perennial changes --text 'resign(s|ed)' --block main --json")]
pub(super) struct Changes {
    /// Address of a page, or the host of a site [default: the whole archive]
    place: Option<String>,
    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Only this kind of change: edited, retitled, new, vanished, returned or redirected; may be given several times
    #[arg(long, value_name = "KIND")]
    kind: Vec<ChangeKind>,
    /// Oldest first, or the most important first
    #[arg(long, value_enum, default_value_t = Sort::Time)]
    sort: Sort,
    /// At most so many; with --sort time the latest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only captures whose change matters at least so much, 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    min_importance: f64,
    /// Only operations of this kind: insert, delete, update or move
    #[arg(long)]
    op: Option<OperationKind>,
    /// Only operations on links, images or texts: link, image or text
    #[arg(long)]
    element: Option<ElementKind>,
    /// Only operations whose text before or after matches this regular expression
    #[arg(long, value_name = "RE")]
    text: Option<Regex>,
    /// Only operations in blocks of a role (main, nav, ad, header, footer) or in one block (B1.2)
    #[arg(long, value_name = "ROLE|REF")]
    block: Option<String>,
}

/// In which order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Importance,
    Time,
}

fn is_wanted(kind: ChangeKind, wanted: &[ChangeKind]) -> bool {
    let is_edit = kind == ChangeKind::Retitled && wanted.contains(&ChangeKind::Edited);
    wanted.is_empty() || wanted.contains(&kind) || is_edit
}

fn kind_name<S: Serializer>(kind: &ChangeKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

/// One capture that differs from the one before.
#[derive(Serialize)]
struct Change {
    #[serde(serialize_with = "kind_name")]
    kind: ChangeKind,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title_before: Option<String>,
    /// Where the address leads now.
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
    /// When the look before was; absent for a new page.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    after: String,
    importance: f64,
    noise: bool,
    /// How many headlines of a front page came, went or were rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    headlines: Option<String>,
    operations: Vec<Entry>,
}

/// What a stored delta shows.
#[derive(Default)]
struct Shown {
    headlines: Option<String>,
    /// Whether a headline of a front page was rewritten.
    is_rewritten: bool,
    entries: Vec<Entry>,
}

fn has_rewritten(delta: &Delta) -> bool {
    delta.items.as_ref().is_some_and(|items| items.is_hub && items.n(ItemChangeKind::Retitle) > 0)
}

impl Change {
    fn new(row: ChangeRow, kind: ChangeKind, shown: Shown) -> Change {
        let leads_to = row.identity.split_once(' ').map(|(_, target)| target.to_string());
        let importance = told_importance(row.seen);
        Change {
            kind,
            leads_to: leads_to.filter(|_| kind == ChangeKind::Redirected),
            url: row.url,
            title: row.title.filter(|title| !title.is_empty()),
            title_before: row.title_before.filter(|title| !title.is_empty()),
            before: row.before.map(Timestamp::to_rfc3339),
            after: row.time.to_rfc3339(),
            importance,
            noise: row.seen == Seen::Noise,
            headlines: shown.headlines,
            operations: shown.entries,
        }
    }
}

impl Changes {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let filters = Filters::load(Some(snapshot.archive().root()))?;
        let n_waiting = store.count_backlog()?;
        if n_waiting > 0 {
            context.note(format!(
                "{n_waiting} captures are not analysed yet and not in this answer: run `perennial analyse`"
            ));
        }
        let mut changes = Vec::new();
        let mut reader = ChangedReader::new(store, &filters);
        store.each_change(&self.filter(store)?, |row| {
            let kind = ChangeKind::of(row.seen, row.title_before.is_some());
            let may_be_rewritten = kind == ChangeKind::Edited && self.kind.contains(&ChangeKind::Retitled);
            if !is_wanted(kind, &self.kind) && !may_be_rewritten {
                return Ok(());
            }
            let shown = self.operations(&mut reader, &row)?;
            if !is_wanted(kind, &self.kind) && !shown.is_rewritten {
                return Ok(());
            }
            if !shown.entries.is_empty()
                || !self.asks_for_operations() && told_importance(row.seen) >= self.min_importance
            {
                changes.push(Change::new(row, kind, shown));
            }
            Ok(())
        })?;
        self.put_in_order(&mut changes);
        context.print(&changes, |out| print(&changes, out))?;
        Ok(Exit::Done)
    }

    /// Whether the options name a part of a change: an event without operations has none.
    fn asks_for_operations(&self) -> bool {
        self.op.is_some() || self.element.is_some() || self.text.is_some() || self.block.is_some()
    }

    fn put_in_order(&self, changes: &mut Vec<Change>) {
        if self.sort == Sort::Importance {
            // A stable sort: of equally important ones the older comes first.
            changes.sort_by(|x, y| y.importance.total_cmp(&x.importance));
            changes.truncate(self.limit.unwrap_or(usize::MAX));
        } else if let Some(n_over) = self.limit.and_then(|limit| changes.len().checked_sub(limit)) {
            changes.drain(..n_over);
        }
    }

    fn filter(&self, store: &Store) -> anyhow::Result<ChangeFilter<'_>> {
        let (url, host) = match self.place.as_deref() {
            Some(place) if place.contains("://") => (Some(place), None),
            place => (None, place),
        };
        if let Some(url) = url
            && store.page(url)?.is_none()
        {
            bail!("the archive has no page {url}: see `perennial info --sites 50`");
        }
        if let Some(host) = host
            && !store.sites()?.iter().any(|(known, ..)| known == host)
        {
            bail!(
                "the archive has no site {host}: see `perennial info --sites 50`, or give a page as http://{host}/"
            );
        }
        let (since, until, min_importance) = (self.since, self.until, self.min_importance);
        Ok(ChangeFilter { url, host, since, until, min_importance })
    }

    /// The operations of a change that the options let through, weighed.
    fn operations(&self, reader: &mut ChangedReader<'_>, row: &ChangeRow) -> anyhow::Result<Shown> {
        let Some(changed) = reader.read(row)? else { return Ok(Shown::default()) };
        let mut entries = changed.entries();
        entries.retain(|entry| self.lets_through(entry));
        let delta = &changed.delta;
        Ok(Shown { headlines: headlines(delta), is_rewritten: has_rewritten(delta), entries })
    }

    fn lets_through(&self, entry: &Entry) -> bool {
        let contents = || entry.before.iter().chain(&entry.after);
        self.op.is_none_or(|op| entry.op == op.name())
            && self.element.is_none_or(|kind| entry.element == kind.name())
            && self.text.as_ref().is_none_or(|re| contents().any(|content| re.is_match(&content.text)))
            && self.block.as_deref().is_none_or(|block| is_in(entry, block))
    }
}

fn is_in(entry: &Entry, block: &str) -> bool {
    let role = match block {
        "nav" => "navigation",
        "ad" => "advertisement",
        other => other,
    };
    let is_ad = role == "advertisement" && entry.advertisement;
    is_ad
        || entry.role == Some(role)
        || [&entry.block_before, &entry.block_after].into_iter().flatten().any(|reference| {
            reference == block || reference.strip_prefix(block).is_some_and(|rest| rest.starts_with('.'))
        })
}

fn print(changes: &[Change], out: &mut dyn Write) -> std::io::Result<()> {
    for change in changes {
        let noise = if change.noise { ", only noise" } else { "" };
        let (time, kind, url) = (&change.after, change.kind.name(), &change.url);
        writeln!(out, "{time} {kind} {url} importance {:.4}{noise}", change.importance)?;
        match (&change.title_before, &change.title) {
            (Some(before), Some(title)) => writeln!(out, "  \"{before}\" => \"{title}\"")?,
            (_, Some(title)) => writeln!(out, "  \"{title}\"")?,
            _ => {}
        }
        if let Some(target) = &change.leads_to {
            writeln!(out, "  leads to {target}")?;
        }
        if let Some(headlines) = &change.headlines {
            writeln!(out, "  {headlines}")?;
        }
        let is_unread = change.operations.is_empty() && change.headlines.is_none();
        if is_unread && matches!(change.kind, ChangeKind::Edited | ChangeKind::Retitled) {
            writeln!(out, "  its content cannot be compared; it counts with a fixed importance")?;
        }
        for entry in &change.operations {
            writeln!(out, "  {}", entry.line())?;
        }
    }
    if changes.is_empty() {
        writeln!(out, "no such change")?;
    }
    Ok(())
}
