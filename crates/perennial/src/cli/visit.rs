//! `perennial visit`: a page -> fetched now, and what the visit found; or the failing pages of a host -> visited soon.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use perennial_core::time::Timestamp;
use serde::Serialize;

use super::pause::perform;
use super::{Context, Exit, signals};
use perennial_archive::lock::is_being_written;
use perennial_archive::settings::site::parse_url;
use perennial_archive::store::{ChangeFilter, Store};
use perennial_archive::{Archive, CrawlRecord};
use perennial_crawler::log::{LogLine, LogTail};
use perennial_crawler::{CrawlEnd, CrawlOptions, crawl};
use perennial_engine::admin::AdminAction;
use perennial_engine::analyse::{AdFilters, ChangeReader, OperationReport};

const AFTER_HELP: &str = "\
The page need not belong to a followed site: this saves it once, with its style sheets, images and scripts. The running crawl makes \
the visit, if there is one. The host's pauses are respected, its backoff ends. A host instead of a URL asks for its failing pages.

Exit code 0: the page was fetched, changed or not. 6: there is no page, or it could not be fetched.

Examples:
  perennial visit https://example.org/news
  perennial visit https://example.org/report.pdf --json
  perennial visit example.org";

/// How long the running crawl may take.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// How long the analysis of the capture may take.
const MAX_ANALYSIS: Duration = Duration::from_secs(30);
/// The pause between two checks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Visit a page now and print what was found; also a page that is not followed.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct VisitArgs {
    /// URL of a page, or a host
    #[arg(value_name = "URL")]
    target: String,
    /// Allow a private or loopback address
    #[arg(long)]
    allow_private: bool,
}

/// What a visit found.
#[derive(Serialize)]
struct VisitReport {
    url: String,
    /// `new`, `changed`, `unchanged`, `redirected`, `gone`, `missing`, `refused` or `failed`
    outcome: String,
    status: Option<u16>,
    /// When the visit ended.
    time: String,
    /// Why there is no page.
    reason: Option<String>,
    title: Option<String>,
    body_bytes: u64,
    /// Importance of the change, if the visit found one.
    importance: Option<f64>,
    /// The most important parts of the change.
    changes: Vec<String>,
    /// The target of a redirect.
    redirects_to: Option<String>,
}

impl VisitArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        let is_host = !self.target.contains("://") && archive.settings().seeds.has_host(&self.target);
        if is_host {
            let act = AdminAction::Retry { target: self.target, allow_private: self.allow_private };
            return perform(context, &act, "requested visits of the failing pages of");
        }
        let url = parse_url(&self.target).map_err(anyhow::Error::msg)?;
        let mut log = LogTail::from_end(archive.root());
        let act = AdminAction::Retry { target: url.to_string(), allow_private: self.allow_private };
        context.perform(&archive, &act)?;
        let line = match CrawlRecord::of_running(archive.root()) {
            Some(_) => wait_for_crawl(context, &archive, &mut log, url.as_str())?,
            None if is_being_written(archive.root()) => bail!(
                "another command is writing the archive: the next crawl visits {url} first; try again when it is done"
            ),
            None => {
                let options = CrawlOptions {
                    only: vec![url.clone()],
                    once: true,
                    allow_private: self.allow_private,
                    ..CrawlOptions::default()
                };
                let _listening = signals::listen(context, &options.stop, false);
                let status = crawl(&archive, options, |_| (), |text| context.note(text))?;
                if status.end == Some(CrawlEnd::Interrupted) {
                    return Ok(Exit::Interrupted);
                }
                log.last_visit(url.as_str())?
            }
        };
        let Some(line) = line else {
            bail!(
                "{url} was not visited: its host is waiting after failures; `perennial log --url {url}` shows them"
            )
        };
        let report = report(&archive.store()?, line)?;
        context.print(&report, |out| print(&report, out))?;
        let is_fetched = matches!(report.outcome.as_str(), "new" | "changed" | "unchanged" | "redirected");
        Ok(if is_fetched { Exit::Done } else { Exit::NotFetched })
    }
}

/// The line that the running crawl writes about the visit; `None` if it does not come.
fn wait_for_crawl(
    context: &Context,
    archive: &Archive,
    log: &mut LogTail,
    url: &str,
) -> anyhow::Result<Option<LogLine>> {
    context.note("the running crawl makes the visit");
    let line = wait_for(MAX_WAIT, || log.last_visit(url))?;
    if line.as_ref().is_some_and(|line| line.stored.is_some()) {
        // The analysis says what changed. Without it, the report has only the outcome.
        wait_for(MAX_ANALYSIS, || Ok(is_analysed(&archive.store()?, url)?.then_some(())))?;
    }
    Ok(line)
}

fn is_analysed(store: &Store, url: &str) -> anyhow::Result<bool> {
    let Some(page) = store.page(url)? else { return Ok(true) };
    Ok(store.last_analysed(page.id)? >= page.last_seen)
}

fn wait_for<T>(
    time: Duration,
    mut find: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let began = Instant::now();
    loop {
        if let Some(found) = find()? {
            return Ok(Some(found));
        }
        if began.elapsed() > time {
            return Ok(None);
        }
        std::thread::sleep(INTERVAL);
    }
}

fn report(store: &Store, line: LogLine) -> anyhow::Result<VisitReport> {
    let page = store.page(&line.url)?;
    let target = page.as_ref().map(|page| store.target(page.id)).transpose()?.flatten();
    let redirects_to = target.and_then(|target| Some(target.identity?.redirect_target()?.to_owned()));
    let is_capture = line.stored.is_some();
    let mut report = VisitReport {
        reason: line.words_of_failure(),
        title: page
            .as_ref()
            .filter(|_| is_capture)
            .map(|page| store.page_title(page.id))
            .transpose()?
            .flatten(),
        outcome: line.outcome,
        status: line.status,
        time: line.time,
        body_bytes: line.body_bytes,
        importance: None,
        changes: Vec::new(),
        redirects_to: redirects_to.filter(|_| is_capture),
        url: line.url,
    };
    if report.outcome == "changed" {
        add_change(store, &mut report)?;
    }
    Ok(report)
}

/// Adds the latest change of the page, if this visit found it. A change that is only noise counts as none.
fn add_change(store: &Store, report: &mut VisitReport) -> anyhow::Result<()> {
    let Some(page) = store.page(&report.url)? else { return Ok(()) };
    let Some(last) = page.last_seen else { return Ok(()) };
    let until = Timestamp::from_millis(last.as_millis() + 1);
    let filter = ChangeFilter {
        url: Some(&report.url),
        since: Some(last),
        until: Some(until),
        ..ChangeFilter::default()
    };
    let filters = AdFilters::built_in();
    let mut reader = ChangeReader::new(store, &filters);
    store.each_change(&filter, |row| {
        report.importance = Some(row.status.reported_importance().get());
        let entries = reader.read(&row)?.map(|details| details.entries()).unwrap_or_default();
        let entries = entries.iter().filter(|entry| entry.is_worth_reporting());
        report.changes = entries.take(MAX_CHANGES).map(OperationReport::summary).collect();
        Ok(())
    })
}

/// Parts of a change that are printed.
const MAX_CHANGES: usize = 5;

fn print(report: &VisitReport, out: &mut dyn Write) -> std::io::Result<()> {
    let status = report.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let importance = report.importance.map(|x| format!(", importance {x:.2}")).unwrap_or_default();
    let bytes = super::context::human_bytes(report.body_bytes);
    let size = if report.status.is_some() { format!(", {bytes}") } else { String::new() };
    writeln!(out, "{} {}{status}{size}{importance}", report.outcome, report.url)?;
    report.title.iter().try_for_each(|title| writeln!(out, "  {title}"))?;
    report.redirects_to.iter().try_for_each(|to| writeln!(out, "  redirects to {to}"))?;
    report.reason.iter().try_for_each(|reason| writeln!(out, "  {reason}"))?;
    report.changes.iter().try_for_each(|change| writeln!(out, "  {change}"))
}
