//! `perennial changes`: a query -> the matching changes of the archive.

use std::borrow::Cow;

use anyhow::bail;
use clap::ValueEnum;
use perennial_core::notice::{
    BlockPlace, ChangeCondition, ChangeKind, OperationFilter, PageFilter, ReportedElement, Wording,
};
use perennial_core::page::diff::OperationKind;
use perennial_core::page::segment::Selector;
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Timestamp;
use regex::Regex;

use super::{Context, Exit, parse_time};
use perennial_archive::Archive;
use perennial_archive::lock::is_being_written;
use perennial_archive::settings::site::parse_selector;
use perennial_archive::store::{ChangeKey, ChangeOrder, Store};
use perennial_engine::analyse::{AdFilters, operations_for_people};
use perennial_engine::changes::{ChangeFinder, ChangeQuery, MatchingChange, WorkLimits};

/// List the changes of pages: edited, new, vanished, returned or redirected.
#[derive(clap::Args)]
#[command(
    after_help = "docs/search.md explains the query. /changes and /api/changes of `perennial serve` accept it.

Examples:
  perennial changes
  perennial changes --since yesterday --sort importance --limit 20
  perennial changes example.org --kind vanished
  perennial changes https://example.org/ --min-importance 0.1
  perennial changes example.org --since 2026-01-01 --op insert --element link
  perennial changes --appeared '\"limit value\"' --since 7d
  perennial changes --text 'resign(s|ed)' --block main --json"
)]
pub(super) struct ChangesArgs {
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
    /// Show the latest (with --json the oldest) or the most important changes first
    #[arg(long, value_enum, default_value_t = Sort::Time)]
    sort: Sort,
    /// Show at most N changes [default: a screen; all with --json]
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
    /// Only operations with a text that matches this regular expression
    #[arg(long, value_name = "RE")]
    text: Option<Regex>,
    /// Only operations in blocks with this role (main, nav, ad, header, footer, comments, other), or in one block (B1.2)
    #[arg(long, value_name = "ROLE|REF")]
    block: Option<BlockPlace>,
    /// Only changes of the text in the part with this CSS selector
    #[arg(long, value_name = "CSS", value_parser = parse_selector)]
    selector: Option<Selector>,
    /// Include noise and advertisements, as --json does
    #[arg(long, conflicts_with = "without_noise")]
    with_noise: bool,
    /// Omit noise and advertisements with --json
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

impl ChangesArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let filters = AdFilters::load(Some(snapshot.archive().root()))?;
        let n_waiting = store.count_backlog(snapshot.archive().horizon())?;
        if n_waiting > 0 {
            context.note(format!(
                "{n_waiting} captures have not been analysed and are not included: run `perennial analyse`"
            ));
        }
        let mut query = self.query(store, context.json)?;
        if !context.json {
            return self.show(context, snapshot.archive(), store, &filters, query);
        }
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
            context.print(&latest, |_| Ok(()))?;
            return Ok(Exit::Done);
        }
        context.print_each(
            |each| listed(&mut finder, self.limit.unwrap_or(usize::MAX), &mut |change| each(&change)),
            |_, _| Ok(()),
        )?;
        Ok(Exit::Done)
    }

    /// Shows the changes to people: the latest first, at most a screen unless --limit is given.
    fn show(
        &self,
        context: &Context,
        archive: &Archive,
        store: &Store,
        filters: &AdFilters,
        query: ChangeQuery,
    ) -> anyhow::Result<Exit> {
        let order = match self.sort {
            Sort::Importance => ChangeOrder::Strongest,
            Sort::Time => ChangeOrder::Latest,
        };
        let query = ChangeQuery { order, ..query };
        let mut finder = ChangeFinder::new(archive, store, filters, &query)?;
        let screen = Screen::of_terminal();
        let (mut text, mut n_lines, mut is_cut) = (String::new(), 0, false);
        let mut after: Option<ChangeKey> = None;
        let mut n_left = self.limit.unwrap_or(usize::MAX);
        while n_left > 0 && !is_cut {
            let max_found = n_left.min(AT_A_TIME).min(screen.n_lines);
            let bounds = WorkLimits { max_found, max_read: usize::MAX, max_rows: usize::MAX };
            let found = finder.find(after.as_ref(), bounds)?;
            n_left -= found.changes.len();
            for change in &found.changes {
                let lines = change_lines(change, self.with_noise);
                // The last line counts the rest.
                is_cut = self.limit.is_none() && n_lines > 0 && n_lines + lines.len() >= screen.n_lines;
                if is_cut {
                    break;
                }
                n_lines += lines.len();
                for line in lines {
                    text += &screen.shorten(&line);
                    text.push('\n');
                }
            }
            match found.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if text.is_empty() {
            text.push_str(match (store.has_second_capture()?, is_being_written(archive.root())) {
                (true, _) => "no such change\n",
                (false, true) => {
                    "too early to tell: no page was visited twice yet; a crawl is running, and `perennial plan next` shows its next visits\n"
                }
                (false, false) => {
                    "too early to tell: no page was visited twice yet; no crawl is running, so start one with `perennial run`\n"
                }
            });
        }
        if is_cut {
            text.push_str("there are more: --limit 100 shows more, --json all\n");
        }
        context.print(&(), |out| out.write_all(text.as_bytes()))?;
        Ok(Exit::Done)
    }

    fn query(&self, store: &Store, is_json: bool) -> anyhow::Result<ChangeQuery> {
        let place = match self.place.as_deref() {
            Some(url) if url.contains("://") => {
                if store.page(url)?.is_none() {
                    bail!("the archive does not contain the page {url}: see `perennial status --sites 50`");
                }
                PageFilter::Page(url.to_owned())
            }
            Some(host) => {
                if !store.sites()?.iter().any(|site| site.host == host) {
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
            with_noise: self.with_noise || is_json && !self.without_noise,
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

/// Operations per change in the list.
const MAX_OPERATIONS: usize = 5;

/// A change for people: what happened where, and the operations that matter most.
fn change_lines(change: &MatchingChange, with_noise: bool) -> Vec<String> {
    let noise = if change.noise { ", only noise" } else { "" };
    let (time, kind, url) = (change.after.to_rfc3339(), change.kind.name(), &change.url);
    let mut lines = vec![format!("{time} {kind} {url} importance {:.4}{noise}", change.importance)];
    match (&change.title_before, &change.title) {
        (Some(before), Some(title)) => lines.push(format!("  \"{before}\" => \"{title}\"")),
        (_, Some(title)) => lines.push(format!("  \"{title}\"")),
        _ => {}
    }
    lines.extend(change.redirects_to.iter().map(|target| format!("  redirects to {target}")));
    lines.extend(change.headlines.iter().map(|headlines| format!("  {headlines}")));
    let operations = operations_for_people(&change.operations, with_noise);
    let is_unread = operations.is_empty() && change.headlines.is_none();
    if is_unread && matches!(change.kind, ChangeKind::Edited | ChangeKind::Retitled) {
        lines.push("  the content cannot be compared; the importance is a fixed value".to_owned());
    }
    lines.extend(operations.iter().take(MAX_OPERATIONS).map(|entry| format!("  {}", entry.line())));
    if let Some((before, n_more)) =
        change.before.zip(operations.len().checked_sub(MAX_OPERATIONS).filter(|n_more| *n_more > 0))
    {
        let (before, after) = (before.to_digits14(), change.after.to_digits14());
        lines.push(format!("  and {n_more} more: perennial diff {url}@{before} {url}@{after}"));
    }
    if change.n_folded > 0 {
        lines.push(format!("  {} folded as noise: --with-noise", change.n_folded));
    }
    lines
}

/// The size of the output.
struct Screen {
    n_lines: usize,
    /// Unlimited if the output is not a terminal.
    n_columns: Option<usize>,
}

impl Screen {
    /// Of the terminal; without one, of a usual terminal.
    fn of_terminal() -> Screen {
        const USUAL_LINES: usize = 24;
        // A terminal without a size reports zeros.
        match rustix::termios::tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Screen { n_lines: usize::from(size.ws_row), n_columns: Some(usize::from(size.ws_col)) }
            }
            _ => Screen { n_lines: USUAL_LINES, n_columns: None },
        }
    }

    /// A line that does not wrap.
    fn shorten<'l>(&self, line: &'l str) -> Cow<'l, str> {
        match self.n_columns {
            Some(n_columns) => shorten(line, n_columns),
            None => Cow::Borrowed(line),
        }
    }
}
