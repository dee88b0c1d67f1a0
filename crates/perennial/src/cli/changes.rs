//! `perennial changes`: the archive asked about its changes.

use std::io::Write;

use anyhow::{Context as _, bail};
use perennial_core::diff::{Delta, ElementKind, OperationKind, diff};
use perennial_core::importance::{Assessment, ImportanceConfig, Judgement, assess};
use perennial_core::look::Seen;
use perennial_core::observe::is_about_advertisement;
use perennial_core::time::Timestamp;
use regex::Regex;
use serde::Serialize;

use super::{Context, Exit, parse_time};
use crate::analyse::{Entry, Filters, entry, tree_at, unpack};
use crate::store::{ChangeFilter, ChangeRow, Store};

/// Lists the archive's changes, those that matter most first in each capture.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  perennial changes
  perennial changes https://example.org/ --min-importance 0.1
  perennial changes example.org --since 2026-01-01 --op insert --element link
  perennial changes --since 2d
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

/// One capture that differs from the one before.
#[derive(Serialize)]
struct Change {
    url: String,
    before: String,
    after: String,
    importance: f64,
    noise: bool,
    operations: Vec<Entry>,
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
        store.each_change(&self.filter(store)?, |row| {
            let operations = self.operations(store, &row, &filters)?;
            if !operations.is_empty() {
                changes.push(Change {
                    url: row.url,
                    before: row.before.to_rfc3339(),
                    after: row.time.to_rfc3339(),
                    importance: row.seen.importance().get(),
                    noise: row.seen == Seen::Noise,
                    operations,
                });
            }
            Ok(())
        })?;
        context.print(&changes, |out| print(&changes, out))?;
        Ok(Exit::Done)
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
        let (since, until, min_importance) = (self.since, self.until, self.min_importance);
        Ok(ChangeFilter { url, host, since, until, min_importance })
    }

    /// The operations of a change that the options let through, weighed.
    fn operations(&self, store: &Store, row: &ChangeRow, filters: &Filters) -> anyhow::Result<Vec<Entry>> {
        let cure = "a stored delta is damaged: make it again with `perennial verify --rebuild`";
        let mut delta = Delta::from_xml(&unpack(&row.delta).context(cure)?).context(cure)?;
        if let Some(after) = delta.replacement.take() {
            let before = tree_at(store, row.page, row.before)?.context(cure)?;
            delta = diff(&before, &after);
        }
        let assessment = weigh(&delta, filters, &row.url);
        let mut entries: Vec<Entry> = delta
            .operations()
            .zip(&assessment.contributions)
            .map(|(operation, contribution)| Entry {
                share: contribution.share,
                value: contribution.value,
                advertisement: contribution.judgement.is_advertisement,
                ..entry(&operation)
            })
            .filter(|entry| self.lets_through(entry))
            .collect();
        entries.sort_by(|x, y| y.share.total_cmp(&x.share));
        Ok(entries)
    }

    fn lets_through(&self, entry: &Entry) -> bool {
        let contents = || entry.before.iter().chain(&entry.after);
        self.op.is_none_or(|op| entry.op == op.name())
            && self.element.is_none_or(|kind| entry.element == kind.name())
            && self.text.as_ref().is_none_or(|re| contents().any(|content| re.is_match(&content.text)))
            && self.block.as_deref().is_none_or(|block| is_in(entry, block))
    }
}

fn weigh(delta: &Delta, filters: &Filters, page: &str) -> Assessment {
    assess(delta, &ImportanceConfig::default(), &mut |operation| Judgement {
        is_advertisement: is_about_advertisement(operation, &|element| {
            filters.is_advertisement(element, page)
        }),
        noise: 0.0,
    })
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
        writeln!(out, "{} {} importance {:.4}{noise}", change.after, change.url, change.importance)?;
        for entry in &change.operations {
            writeln!(out, "  {}", entry.line())?;
        }
    }
    if changes.is_empty() {
        writeln!(out, "no such change")?;
    }
    Ok(())
}
