//! `perennial notify`: the notification rules, trial notices and pending notices.

use std::io::Write;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Context, Exit};
use perennial_archive::lock::WriteLock;
use perennial_archive::settings::NotifyRule;
use perennial_archive::store::{BlindPage, Outbox, RuleState};
use perennial_archive::{Archive, now};
use perennial_engine::notify::{Notice, NoticeMaker, Notifier, SendReport, open_outbox, send_all};

const AFTER_HELP: &str = "\
Rules are [[notify]] tables in perennial.toml. `perennial watch` adds one, and docs/notices.md explains them. A crawl sends notices \
itself; `send` is for archives that are not crawled here, and retries failed notices at once.

Examples:
  perennial notify list
  perennial notify test
  perennial notify test prices
  perennial notify send --json";

/// List notification rules, test them, send pending notices.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct NotifyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the rules with their sent and pending notices
    #[command(after_help = AFTER_HELP)]
    List,
    /// Send a trial notice at once
    Test(TestReceiverArgs),
    /// Match new changes, then send all pending notices once
    #[command(after_help = AFTER_HELP)]
    Send,
}

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
struct TestReceiverArgs {
    /// Name of a rule [default: all rules]
    name: Option<String>,
}

#[derive(Serialize)]
struct RuleRow {
    name: String,
    to: String,
    #[serde(flatten)]
    state: Option<StateRow>,
}

#[derive(Serialize)]
struct StateRow {
    n_waiting: u64,
    n_sent: u64,
    last_sent: Option<String>,
    n_failures: u32,
    ready_at: Option<String>,
    error: Option<String>,
    /// Watched pages that it does not see.
    blind: Vec<BlindPage>,
}

/// The result of a trial notice.
#[derive(Serialize)]
struct TrialReport {
    rule: String,
    to: String,
    is_taken: bool,
    error: Option<String>,
}

impl NotifyArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        if archive.settings().notify.is_empty() {
            bail!(
                "no notification rules; add [[notify]] to {}, or use `perennial watch URL --notify TARGET`",
                archive.settings_path().display()
            );
        }
        match self.action {
            Action::List => list(context, &archive),
            Action::Test(test) => test.run(context, &archive),
            Action::Send => send(context, &archive),
        }
    }
}

fn list(context: &Context, archive: &Archive) -> anyhow::Result<Exit> {
    let states = match Outbox::open_read(&archive.outbox_path())? {
        Some(outbox) => outbox.states()?,
        None => Vec::new(),
    };
    let row = |rule: &NotifyRule| {
        let state = states.iter().find(|state| state.name == rule.name).cloned();
        RuleRow { name: rule.name.clone(), to: rule.to.to_string(), state: state.map(StateRow::from) }
    };
    let rows: Vec<RuleRow> = archive.settings().notify.iter().map(row).collect();
    context.print(&rows, |out| rows.iter().try_for_each(|row| write_row(out, row)))?;
    Ok(Exit::Done)
}

impl From<RuleState> for StateRow {
    fn from(state: RuleState) -> StateRow {
        let RuleState { n_waiting, n_sent, last_sent, n_failures, ready_at, error, blind, .. } = state;
        StateRow { n_waiting, n_sent, last_sent, n_failures, ready_at, error, blind }
    }
}

fn write_row(out: &mut dyn Write, row: &RuleRow) -> std::io::Result<()> {
    writeln!(out, "{}  to {}", row.name, row.to)?;
    let Some(state) = &row.state else {
        return writeln!(out, "  not started: `perennial run` or `perennial notify send` starts it");
    };
    let last = state.last_sent.as_deref().map(|at| format!(", the last at {at}")).unwrap_or_default();
    writeln!(out, "  {} sent{last}; {} pending", state.n_sent, state.n_waiting)?;
    if let Some(error) = &state.error {
        let again = state.ready_at.as_deref().map(|at| format!("; next attempt {at}")).unwrap_or_default();
        writeln!(out, "  the last attempt failed: {error}{again}")?;
    }
    for blind in &state.blind {
        writeln!(out, "  sees nothing of {} since {}: {}", blind.url, blind.since, blind.reason)?;
    }
    Ok(())
}

impl TestReceiverArgs {
    fn run(self, context: &Context, archive: &Archive) -> anyhow::Result<Exit> {
        let rules = &archive.settings().notify;
        let wanted: Vec<&NotifyRule> =
            rules.iter().filter(|rule| self.name.as_ref().is_none_or(|name| *name == rule.name)).collect();
        if wanted.is_empty() {
            let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
            bail!("no rule has this name; the rules are {}", names.join(", "));
        }
        let courier = Notifier::new(archive)?;
        let bar = context.progress_count(wanted.len() as u64, "sending trials");
        let mut tried = Vec::with_capacity(wanted.len());
        for rule in wanted {
            let delivered = courier.deliver(rule, &Notice::sample(&rule.name, now()));
            bar.inc(1);
            let error = delivered.err().map(|failure| failure.text);
            let (name, to) = (rule.name.clone(), rule.to.to_string());
            tried.push(TrialReport { rule: name, to, is_taken: error.is_none(), error });
        }
        bar.finish_and_clear();
        context.print(&tried, |out| {
            tried.iter().try_for_each(|tried| match &tried.error {
                None => writeln!(out, "{}: accepted by {}", tried.rule, tried.to),
                Some(error) => writeln!(out, "{}: refused by {}: {error}", tried.rule, tried.to),
            })
        })?;
        match tried.iter().all(|tried| tried.is_taken) {
            true => Ok(Exit::Done),
            false => bail!("a trial notice failed; correct `to` in {}", archive.settings_path().display()),
        }
    }
}

fn send(context: &Context, archive: &Archive) -> anyhow::Result<Exit> {
    // Takes the lock because a running crawl sends too, and a second sender would send notices twice.
    let _lock = WriteLock::take(archive.root())?;
    let (_, n_forgotten) = open_outbox(archive)?;
    if n_forgotten > 0 {
        context.note(format!("{n_forgotten} pending notices of removed rules were deleted"));
    }
    let bar = context.progress_count(0, "reading changes");
    NoticeMaker::open(archive)?.catch_up(|n_done, n_all| {
        bar.set_length(n_all);
        bar.set_position(n_done);
    })?;
    bar.finish_and_clear();
    let bar = context.progress_count(0, "sending");
    let sent = send_all(archive, |n_sent| bar.set_position(n_sent));
    bar.finish_and_clear();
    let sent = sent?;
    context.print(&sent, |out| sent.iter().try_for_each(|sent| write_sent(out, sent)))?;
    match sent.iter().all(|sent| sent.error.is_none()) {
        true => Ok(Exit::Done),
        false => bail!("some notices failed; the next run or `perennial notify send` retries them"),
    }
}

fn write_sent(out: &mut dyn Write, sent: &SendReport) -> std::io::Result<()> {
    match &sent.error {
        None => writeln!(out, "{}: {} sent", sent.rule, sent.n_sent),
        Some(error) => writeln!(out, "{}: {} sent, then an error: {error}", sent.rule, sent.n_sent),
    }
}
