//! `perennial changes`: a query -> the matching changes of the archive.

use std::io::Write;

use anyhow::bail;
use clap::ValueEnum;
use perennial_core::notice::{
    BlockPlace, ChangeCondition, ChangeKind, OperationFilter, PageFilter, ReportedElement, Wording,
};
use perennial_core::page::diff::OperationKind;
use perennial_core::page::segment::Selector;
use perennial_core::time::Timestamp;
use regex::Regex;

use super::{Context, Exit, parse_time};
use perennial_archive::settings::site::parse_selector;
use perennial_archive::store::{ChangeKey, ChangeOrder, Store};
use perennial_engine::analyse::AdFilters;
use perennial_engine::changes::{ChangeFinder, ChangeQuery, MatchingChange, WorkLimits};

/// List the changes of pages: edited, new, vanished, returned or redirected.
#[derive(clap::Args)]
#[command(
    after_help = "docs/search.md explains the query. /changes and /api/changes of `perennial serve` accept the same one.

Examples:
  perennial changes
  perennial changes --since yesterday --sort importance --limit 20
  perennial changes example.org --kind vanished
  perennial changes https://example.org/ --min-importance 0.1
  perennial changes example.org --since 2026-01-01 --op insert --element link
  perennial changes --appeared '\"limit value\"' --since 7d
  perennial changes --text 'resign(s|ed)' --block main --json"
)]
pub(super) struct Changes {
    /// URL of a page, or host of a site [default: the whole archive]
    place: Option<String>,
    /// Only changes at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only changes before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Only this kind: edited, retitled, new, vanished, returned or redirected; repeatable
    #[arg(long, value_name = "KIND")]
    kind: Vec<ChangeKind>,
    /// Show the oldest or the most important changes first
    #[arg(long, value_enum, default_value_t = Sort::Time)]
    sort: Sort,
    /// Show at most N changes (the latest ones with --sort time)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only changes of at least this importance, 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    min_importance: f64,
    /// Only changes in which these words, or matches of a /regular expression/, appeared
    #[arg(long, visible_alias = "appeared", value_name = "WORDS")]
    appears: Option<Wording>,
    /// Only changes in which they vanished
    #[arg(long, visible_alias = "vanished", value_name = "WORDS")]
    vanishes: Option<Wording>,
    /// Only operations of this kind: insert, delete, update or move
    #[arg(long)]
    op: Option<OperationKind>,
    /// Only operations on a text, link, image, item (a headline of a listing page) or block
    #[arg(long)]
    element: Option<ReportedElement>,
    /// Only operations whose text matches this regular expression, before or after
    #[arg(long, value_name = "RE")]
    text: Option<Regex>,
    /// Only operations in blocks with this role (main, nav, ad, header, footer, other), or in one block (B1.2)
    #[arg(long, value_name = "ROLE|REF")]
    block: Option<BlockPlace>,
    /// Only changes of the text in the part with this CSS selector
    #[arg(long, value_name = "CSS", value_parser = parse_selector)]
    selector: Option<Selector>,
    /// Omit changes that consist of noise
    #[arg(long)]
    without_noise: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Importance,
    Time,
}

/// Number of changes in memory at a time.
const AT_A_TIME: usize = 200;

impl Changes {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let filters = AdFilters::load(Some(snapshot.archive().root()))?;
        let n_waiting = store.count_backlog()?;
        if n_waiting > 0 {
            context.note(format!(
                "{n_waiting} captures have not been analysed and are not included: run `perennial analyse`"
            ));
        }
        let mut query = self.query(store)?;
        let is_latest = self.limit.is_some() && self.sort == Sort::Time;
        if is_latest {
            query.order = ChangeOrder::Latest;
        }
        let mut finder = ChangeFinder::new(snapshot.archive(), store, &filters, &query)?;
        if let Some(limit) = self.limit.filter(|_| is_latest) {
            let mut latest = Vec::new();
            listed(&mut finder, limit, &mut |change| {
                latest.push(change);
                Ok(())
            })?;
            latest.reverse();
            context.print(&latest, |out| print(&latest, out))?;
            return Ok(Exit::Done);
        }
        let mut n = 0;
        context.print_each(
            |each| {
                listed(&mut finder, self.limit.unwrap_or(usize::MAX), &mut |change| {
                    n += 1;
                    each(&change)
                })
            },
            write_change,
        )?;
        if n == 0 {
            context.print_none("no such change")?;
        }
        Ok(Exit::Done)
    }

    fn query(&self, store: &Store) -> anyhow::Result<ChangeQuery> {
        let place = match self.place.as_deref() {
            Some(url) if url.contains("://") => {
                if store.page(url)?.is_none() {
                    bail!("the archive does not contain the page {url}: see `perennial status --sites 50`");
                }
                PageFilter::Page(url.to_owned())
            }
            Some(host) => {
                if !store.sites()?.iter().any(|(known, ..)| known == host) {
                    bail!(
                        "the archive does not contain the site {host}: see `perennial status --sites 50`, or name a page as http://{host}/"
                    );
                }
                PageFilter::Site(host.to_owned())
            }
            None => PageFilter::Anywhere,
        };
        let condition = ChangeCondition {
            place,
            selector: self.selector.clone(),
            min_importance: self.min_importance,
            kinds: self.kind.clone(),
            appears: self.appears.clone(),
            vanishes: self.vanishes.clone(),
            operations: OperationFilter {
                op: self.op,
                element: self.element,
                block: self.block.clone(),
                text: self.text.clone().map(Wording::Pattern),
            },
            with_noise: !self.without_noise,
        };
        let order = match self.sort {
            Sort::Importance => ChangeOrder::Strongest,
            Sort::Time => ChangeOrder::Oldest,
        };
        Ok(ChangeQuery { condition, since: self.since, until: self.until, order })
    }
}

/// Calls `each` with the first `limit` changes.
fn listed(
    finder: &mut ChangeFinder<'_>,
    limit: usize,
    each: &mut dyn FnMut(MatchingChange) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut after, mut n_left): (Option<ChangeKey>, usize) = (None, limit);
    while n_left > 0 {
        let bounds =
            WorkLimits { max_found: n_left.min(AT_A_TIME), max_read: usize::MAX, max_rows: usize::MAX };
        let found = finder.find(after.as_ref(), bounds)?;
        n_left -= found.changes.len();
        found.changes.into_iter().try_for_each(&mut *each)?;
        match found.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(())
}

fn print(changes: &[MatchingChange], out: &mut dyn Write) -> std::io::Result<()> {
    if changes.is_empty() {
        writeln!(out, "no such change")?;
    }
    changes.iter().try_for_each(|change| write_change(change, out))
}

fn write_change(change: &MatchingChange, out: &mut dyn Write) -> std::io::Result<()> {
    let noise = if change.noise { ", only noise" } else { "" };
    let (time, kind, url) = (change.after.to_rfc3339(), change.kind.name(), &change.url);
    writeln!(out, "{time} {kind} {url} importance {:.4}{noise}", change.importance)?;
    match (&change.title_before, &change.title) {
        (Some(before), Some(title)) => writeln!(out, "  \"{before}\" => \"{title}\"")?,
        (_, Some(title)) => writeln!(out, "  \"{title}\"")?,
        _ => {}
    }
    if let Some(target) = &change.redirects_to {
        writeln!(out, "  redirects to {target}")?;
    }
    if let Some(headlines) = &change.headlines {
        writeln!(out, "  {headlines}")?;
    }
    let is_unread = change.operations.is_empty() && change.headlines.is_none();
    if is_unread && matches!(change.kind, ChangeKind::Edited | ChangeKind::Retitled) {
        writeln!(out, "  the content cannot be compared; the importance is a fixed value")?;
    }
    change.operations.iter().try_for_each(|entry| writeln!(out, "  {}", entry.line()))
}
