//! `perennial log`: the visits in `crawl.log` and the admin actions in `acts.log`.

use std::collections::{BTreeMap, VecDeque};

use clap::Args;
use perennial_core::time::Timestamp;
use serde::Serialize;

use super::{Context, Exit, parse_time};
use perennial_crawler::log::{LogLine, each_line};
use perennial_engine::admin::audit::{AuditEntry, each_audit_entry};

const AFTER_HELP: &str = "\
Examples:
  perennial log                       the last 50 visits
  perennial log --url /news/ -n 500   the last 500 whose URL contains /news/
  perennial log --since yesterday     visits since then, the last 50 of them
  perennial log --outcome failed      visits that failed
  perennial log --audit               admin actions: sites added, paused or changed
  perennial log --errors              errors by kind and host";

/// Show the visits of the crawler, and the audit log.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct LogArgs {
    /// Show the last N visits
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    last: usize,
    /// Only URLs that contain this text
    #[arg(long, value_name = "TEXT")]
    url: Option<String>,
    /// Only visits that ended at this time or later: an instant, today, yesterday, or 2d for two days ago
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only visits with this outcome
    #[arg(long, value_parser = ["new", "changed", "unchanged", "failed", "gone", "missing", "refused", "redirected"])]
    outcome: Option<String>,
    /// Only admin actions: sites added, removed, paused, changed
    #[arg(long, conflicts_with_all = ["outcome", "errors"])]
    audit: bool,
    /// Count errors by kind and host instead
    #[arg(long)]
    errors: bool,
}

/// The kind of a line with an admin action.
const ADMIN_ACTION: &str = "act";

#[derive(Serialize)]
struct ErrorRow {
    error: String,
    host: String,
    n_visits: u64,
    last: String,
}

impl LogArgs {
    /// Prints the selected visits, the oldest first.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let root = archive.root().to_path_buf();
        if self.errors {
            return self.print_errors(context, &root);
        }
        let (mut lines, mut n_found) = (VecDeque::new(), 0usize);
        let mut take = |line: LogLine| {
            if self.wants(&line) {
                n_found += 1;
                if lines.len() >= self.last {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        };
        let mut entries = Vec::new();
        each_audit_entry(&root, |entry| entries.push(as_line(entry)))?;
        let mut entries = entries.into_iter().peekable();
        if !self.audit {
            each_line(&root, |line| {
                while let Some(entry) = entries.next_if(|entry| entry.time <= line.time) {
                    take(entry);
                }
                take(line);
            })?;
        }
        entries.for_each(&mut take);
        context.print(&lines, |out| lines.iter().try_for_each(|line| writeln!(out, "{}", words(line))))?;
        match n_found {
            0 if self.audit => context.note("no such admin action"),
            0 => context.note("no such visit in crawl.log"),
            n if n > lines.len() => {
                context.note(format!("the last {} of {n} visits: -n {n} shows all", lines.len()));
            }
            _ => {}
        }
        Ok(Exit::Done)
    }

    fn wants(&self, line: &LogLine) -> bool {
        let is_late = |since: Timestamp| Timestamp::parse(&line.time).is_ok_and(|ended| ended >= since);
        self.url.as_ref().is_none_or(|text| line.url.contains(text))
            && self.since.is_none_or(is_late)
            && self.outcome.as_ref().is_none_or(|outcome| line.outcome == *outcome)
    }

    fn print_errors(&self, context: &Context, root: &std::path::Path) -> anyhow::Result<Exit> {
        let mut counts: BTreeMap<(String, String), (u64, String)> = BTreeMap::new();
        each_line(root, |line| {
            if let Some(error) = line.error.clone().filter(|_| self.wants(&line)) {
                let count =
                    counts.entry((error, perennial_archive::store::parse_site_name(&line.url))).or_default();
                *count = (count.0 + 1, line.time);
            }
        })?;
        let rows: Vec<ErrorRow> = counts
            .into_iter()
            .map(|((error, host), (n_visits, last))| ErrorRow { error, host, n_visits, last })
            .collect();
        context.print(&rows, |out| {
            rows.iter().try_for_each(|row| {
                writeln!(out, "{:20} {:6}  {}  (last {})", row.error, row.n_visits, row.host, row.last)
            })
        })?;
        Ok(Exit::Done)
    }
}

/// An admin action as a line between visits.
fn as_line(entry: AuditEntry) -> LogLine {
    LogLine {
        time: entry.time,
        url: entry.url,
        kind: ADMIN_ACTION.to_owned(),
        reason: entry.action,
        outcome: "done".to_owned(),
        detail: Some(entry.detail).filter(|detail| !detail.is_empty()),
        by: Some(entry.who),
        ..LogLine::default()
    }
}

fn words(line: &LogLine) -> String {
    if line.kind == ADMIN_ACTION {
        let who = line.by.as_deref().unwrap_or_default();
        let detail = line.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        return format!("{} {:9}     {}{detail} ({who})", line.time, line.reason, line.url);
    }
    let status = line.status.map_or("-".to_string(), |status| status.to_string());
    let mut text = format!("{} {:9} {:>3} {} [{}]", line.time, line.outcome, status, line.url, line.reason);
    if let Some(stored) = &line.stored {
        text.push_str(&format!(" {stored} {} -> {} bytes", line.body_bytes, line.stored_bytes));
    }
    for note in [&line.truncated.as_ref().map(|why| format!("cut: {why}")), &line.detail, &line.error]
        .into_iter()
        .flatten()
    {
        text.push_str(&format!(" ({note})"));
    }
    text
}
