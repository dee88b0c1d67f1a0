//! The crawler. It repeats one cycle for months: choose a visit, fetch, archive, analyse, learn.
//!
//! `policy` decides, tasks fetch, one thread owns the archive, and the loop in this file passes messages between
//! them. A visit ends with its commit. Only then is its connection free, its page analysed, and are its links
//! followed.
//!
//! | start and watch | purpose |
//! |---|---|
//! | `options` | the user's options for one crawl |
//! | `start` | builds a crawl that continues the earlier ones ([`perennial_engine::learn`]) |
//! | `backfill` | adds imported captures and their links to the frontier |
//! | `config_watcher` | applies changes of perennial.toml and retry requests |
//! | [`clock`] | real or virtual time |
//! | `stop` | a stop request that the loop can wait for |
//! | `status` | the counts of a crawl |
//! | `events` | what happens, one line per event |
//! | `publish` | publishes state and plan for other processes |
//!
//! | decide | |
//! |---|---|
//! | `policy` | chooses the next visit; a state machine without effects |
//! | `host` | queues URLs by host |
//! | `budgets` | enforces budgets overall and per site |
//! | `polls` | chooses the next feed to poll |
//! | `websub` | receives hub notifications of feeds |
//! | `page_weights` | computes omega(P) from links and the user's weights |
//! | `pending_styles` | holds pages until their stylesheets are captured |
//!
//! | visit | |
//! |---|---|
//! | `visit` | makes one visit |
//! | `robots` | fetches and caches robots.txt |
//! | `failure` | why a visit returned nothing, and whether to retry |
//! | `exchange` | an exchange between fetching and archiving |
//! | `browser` | renders a page that needs scripts |
//! | `discover` | finds the URLs to fetch in a response |
//!
//! | record | |
//! |---|---|
//! | `record` | all facts of one visit, and the views of them |
//! | `recorder` | commits captures, frontier and log together |
//! | `known_urls` | decides which discovered URLs are fetched |
//! | [`log`] | writes one line per visit to `crawl.log` |
//! | `analysis` | analyses committed captures on all cores |

mod analysis;
mod backfill;
mod browser;
mod budgets;
pub mod clock;
mod config_watcher;
mod discover;
mod events;
mod exchange;
mod failure;
mod host;
mod known_urls;
pub mod log;
mod options;
mod page_weights;
mod pending_styles;
mod policy;
mod polls;
mod publish;
mod record;
mod recorder;
mod robots;
mod start;
mod status;
mod stop;
mod visit;
mod websub;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::bail;
use perennial_core::schedule::units::write_span;
use perennial_core::schedule::{Reason, ReasonContext};
use perennial_core::text::untrusted;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};
use tokio::sync::mpsc::UnboundedReceiver;

use analysis::{AnalysisPool, FinishedAnalysis};
use config_watcher::{ConfigWatcher, RemainingLimits};
pub use events::CrawlEvent;
use events::EventReporter;
use host::QueueReason;
pub use options::CrawlOptions;
use page_weights::PageWeights;
use perennial_archive::Archive;
use perennial_archive::settings::Seeds;
use perennial_archive::store::{PageKind, Store, VisitTarget};
use policy::Policy;
use publish::Publisher;
use record::VisitRecord;
use recorder::{CommittedVisits, RecorderMessage};
pub use start::make_frontier;
pub use status::{CrawlEnd, CrawlStatus, ExpectedVisit, VisitCounts};
pub use stop::StopHandle;
use visit::VisitContext;
pub use visit::is_loopback;
use websub::WebSub;

/// A virtual clock is held while this many visits are in flight or under analysis.
const MAX_BEHIND: usize = 1;

/// How often progress is shown while something is fetched or analysed.
const SHOW_EVERY: Duration = Duration::from_millis(200);
/// How often an idle crawl looks for changed settings and requested visits, which nobody announces.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// How long visits in flight may take, in real time, after a limit or a request to stop. A server that sends a body byte
/// by byte must not keep the crawl alive.
const MAX_FINISHING: Duration = Duration::from_secs(10);

/// Crawls an archive until nothing is left, it is stopped, or a limit is reached. `show` is called a few times per
/// second, `warn` with every message for the user.
pub fn crawl(
    archive: &Archive,
    options: CrawlOptions,
    mut show: impl FnMut(&CrawlStatus),
    mut warn: impl FnMut(&str),
) -> anyhow::Result<CrawlStatus> {
    let seeds = &archive.settings().seeds;
    if seeds.is_empty() && options.only.is_empty() {
        bail!("no site to crawl: add one with `perennial add https://example.org/`");
    }
    let mut archive = archive.clone();
    if options.clock.is_time_lapse() {
        refuse_remote_hosts(seeds)?;
        archive = archive.mark_time_lapse()?;
    }
    if options.only.is_empty() && seeds.iter().all(|seed| seed.paused) {
        warn("every site is paused: `perennial resume SITE` continues the crawl");
    }
    let mut options = options;
    let mut status = CrawlStatus::default();
    // Warnings of the start are not repeated when the crawl continues with changed settings.
    let mut warned = HashSet::new();
    loop {
        let limits = RemainingLimits::of(&options, &status);
        let mut warn_once = |text: &str| {
            if warned.insert(text.to_owned()) {
                warn(text);
            }
        };
        status = round(&archive, options.clone(), status, &mut show, &mut warn_once)?;
        if status.end != Some(CrawlEnd::OtherSettings) {
            return Ok(status);
        }
        limits.left(&mut options, &status);
        // These settings were valid when the round ended. If they became invalid since, the crawl keeps the old ones.
        archive = Archive::open(archive.root()).unwrap_or(archive);
        warn("perennial.toml has changed: the crawl continues with the new settings");
    }
}

/// Crawls until the end, or until the settings change.
fn round(
    archive: &Archive,
    options: CrawlOptions,
    status: CrawlStatus,
    show: impl FnMut(&CrawlStatus),
    mut warn: impl FnMut(&str),
) -> anyhow::Result<CrawlStatus> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (crawl, recorder) = CrawlLoop::start(archive, options, status, &mut warn)?;
    let outcome = runtime.block_on(crawl.run(show, warn));
    // The recorder closes the archive when the last sender of reports is dropped.
    runtime.shutdown_timeout(Duration::from_secs(5));
    let closed = recorder.join().map_err(|_| anyhow::anyhow!("the recorder failed unexpectedly"))?;
    let status = outcome?;
    closed?;
    Ok(status)
}

/// Under a virtual clock a real host would receive a hundred requests per second.
fn refuse_remote_hosts(seeds: &Seeds) -> anyhow::Result<()> {
    match seeds.iter().find(|seed| !visit::is_loopback(&seed.scope.seed)) {
        Some(seed) => bail!(
            "--time-lapse is for hosts on this machine only, and {} is not: remove it with `perennial remove`, or crawl in real time",
            seed.scope.seed
        ),
        None => Ok(()),
    }
}

struct CrawlLoop {
    options: CrawlOptions,
    shared: Arc<VisitContext>,
    store: Store,
    policy: Policy,
    /// Number of the pass over everything, if this crawl makes one.
    pass: Option<i64>,
    /// `None` once the crawl is over. The recorder then closes the archive.
    reports: Option<Sender<RecorderMessage>>,
    committed: UnboundedReceiver<CommittedVisits>,
    /// `None` once the crawl is over, and with `--no-analysis`.
    analysis: Option<AnalysisPool>,
    page_weights: PageWeights,
    /// Hub subscriptions, if the user configured a callback URL.
    websub: Option<WebSub>,
    status: CrawlStatus,
    /// `None` if nobody listens.
    reporter: Option<EventReporter>,
    /// `None` under a virtual clock.
    publisher: Option<Publisher>,
    /// Hosts whose robots.txt requests pauses longer than an interval, and that were reported.
    slow_hosts: HashSet<SiteId>,
    /// Watches settings and retry requests.
    watcher: ConfigWatcher,
    /// When settings, requests and progress are looked at again.
    poll_due: Instant,
    /// The expected next visit, and the wake-up for which it was computed.
    foreseen: Option<(Timestamp, Option<ExpectedVisit>)>,
}

impl CrawlLoop {
    async fn run(
        mut self,
        mut show: impl FnMut(&CrawlStatus),
        mut warn: impl FnMut(&str),
    ) -> anyhow::Result<CrawlStatus> {
        let stop = self.options.stop.clone();
        // When the visits in flight are given up. Their captures are not made, as after a crash.
        let mut give_up: Option<tokio::time::Instant> = None;
        self.options.clock.set_going();
        if let Some(websub) = &mut self.websub {
            websub.start(&self.options.clock)?;
        }
        let end = loop {
            self.start_visits()?;
            if let Some(websub) = &self.websub {
                websub.send_next(&self.shared);
            }
            if let Some(end) = self.policy.end(self.now()) {
                break self.watcher.end(end, stop.is_requested());
            }
            if let Some(end) = self.policy.wanted_end(self.now()).filter(|_| self.policy.n_active() > 0) {
                let give_up = *give_up.get_or_insert_with(|| tokio::time::Instant::now() + MAX_FINISHING);
                if tokio::time::Instant::now() >= give_up {
                    break self.watcher.end(end, stop.is_requested());
                }
            }
            if self.watcher.is_waited_for() {
                break self.watcher.end(CrawlEnd::Interrupted, stop.is_requested());
            }
            self.leap();
            self.warn_of_clock(&mut warn);
            if self.poll_due <= Instant::now() {
                self.watch_config(&mut warn);
                show(self.refresh(None));
                self.report_idle();
                self.publish(false);
                let n_working = self.policy.n_active() as usize + self.policy.n_analysing();
                self.poll_due = Instant::now() + if n_working > 0 { SHOW_EVERY } else { POLL_EVERY };
                // A change of the settings may have ended the crawl.
                continue;
            }
            let wait = self.wait().min(self.poll_due.saturating_duration_since(Instant::now()));
            let (is_behind, since) = (self.is_behind(), Instant::now());
            tokio::select! {
                records = self.committed.recv() => match records {
                    Some(records) => self.settle(&mut records?, &mut warn),
                    None => bail!("the recorder ended before the crawl"),
                },
                Some(page) = async { self.analysis.as_mut()?.analysed.recv().await } => {
                    self.learn(page, &mut warn);
                }
                Some(page) = async { self.websub.as_mut()?.notified.recv().await } => {
                    self.policy.announce_by_hub(page, self.now());
                }
                () = stop.requested(), if !self.policy.is_stopping() => self.policy.stop(),
                () = tokio::time::sleep(wait) => {}
                () = async { tokio::time::sleep_until(give_up.unwrap_or_else(tokio::time::Instant::now)).await },
                    if give_up.is_some() => {}
            }
            if is_behind {
                self.options.clock.hold(since.elapsed());
            }
        };
        if end == CrawlEnd::Done && self.policy.is_pass_complete() {
            self.end_pass();
        }
        self.publish(true);
        self.reports = None;
        self.analysis = None;
        let status = self.refresh(Some(end)).clone();
        show(&status);
        Ok(status)
    }

    fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// Warns when the system's clock was set back.
    fn warn_of_clock(&self, warn: &mut impl FnMut(&str)) {
        if let Some(back) = self.options.clock.take_step_back() {
            warn(&format!(
                "the system's clock was set back by {:.0} s. The crawl continues with a slower clock until both agree: captures \
                 are dated too late by up to that time. Restart the crawl to use the new time at once",
                back.as_secs_f64()
            ));
        }
    }

    fn end_pass(&self) {
        if let (Some(pass), Some(reports)) = (self.pass, &self.reports) {
            // Sending fails only if the recorder failed. Then `committed` returns its error.
            let _ = reports.send(RecorderMessage::EndPass(pass, self.now()));
        }
    }

    fn start_visits(&mut self) -> anyhow::Result<()> {
        let now = self.now();
        if let Some(scheduler) = self.policy.scheduler_mut() {
            self.page_weights.update(scheduler, now, self.options.clock.is_leaping())?;
        }
        while let Some((page, why)) = self.policy.next(now) {
            let Some(target) = self.store.target(page)? else {
                bail!("page {} is queued but not in the crawl's state: run `perennial verify`", page.0);
            };
            if self.policy.admit(&target, why, now) {
                self.start_visit(target, why);
            }
        }
        if let (Some(checkpoint), Some(reports)) = (self.policy.new_checkpoint(), &self.reports) {
            // As in `end_pass`.
            let _ = reports.send(RecorderMessage::Checkpoint(Box::new(checkpoint)));
        }
        Ok(())
    }

    fn start_visit(&mut self, target: VisitTarget, why: QueueReason) {
        let Some(reports) = self.reports.clone() else { return };
        let now = self.now();
        if let Some(publisher) = &mut self.publisher {
            publisher.begin(target.page, &target.url, now);
        }
        let reason = reason_text(why, &target, self.policy.visit_cause(target.page));
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let record = visit::visit(shared.clone(), target, reason).await;
            let message = match shared.client.disk_failure() {
                Some(error) => RecorderMessage::DiskFailed(error),
                None => RecorderMessage::Visit(Box::new(record)),
            };
            // Sending fails only if the crawl is over. Then the record is not needed.
            let _ = reports.send(message);
        });
    }

    fn settle(&mut self, records: &mut [VisitRecord], warn: &mut impl FnMut(&str)) {
        let now = self.now();
        for record in records {
            self.policy.shorten_backoff(record);
            let record = &*record;
            record.warning.iter().for_each(|warning| warn(warning));
            self.warn_of_crawl_delay(record, warn);
            self.count(record);
            if let Some(publisher) = &mut self.publisher {
                publisher.end(record.target.page);
            }
            if let Some(reporter) = &mut self.reporter {
                reporter.visited(record, &self.shared.seeds);
            }
            self.note_weights(record);
            self.subscribe(record);
            for page in self.policy.finish_visit(record, now) {
                self.analyse(page);
            }
        }
    }

    /// Warns, once per host, if its robots.txt requests longer pauses than the interval of a page.
    fn warn_of_crawl_delay(&mut self, record: &VisitRecord, warn: &mut impl FnMut(&str)) {
        let pause = record.crawl_delay_secs.map(|secs| Span::from_millis((secs * 1000.0) as i64));
        let Some(pause) = pause.filter(|_| !self.slow_hosts.contains(&record.target.site)) else { return };
        let every = self.policy.followed().visit_interval(&record.target.url).map(|every| every.interval);
        if let Some(every) = every.filter(|every| *every < pause) {
            self.slow_hosts.insert(record.target.site);
            warn(&format!(
                "{}: its robots.txt requests a pause of {} between two fetches, so it cannot be visited every {}",
                record.target.url,
                write_span(pause),
                write_span(every)
            ));
        }
    }

    /// Subscribes to the hub of a feed.
    fn subscribe(&self, record: &VisitRecord) {
        let hub = record.poll.as_ref().and_then(|poll| poll.hub.as_ref());
        if let (Some(websub), Some((hub, topic))) = (&self.websub, hub) {
            websub.want(record.target.page, topic, hub, &self.options.clock);
        }
    }

    fn note_weights(&mut self, record: &VisitRecord) {
        if record.is_observation() && record.target.kind == PageKind::Page {
            self.page_weights.mark_captured(record.target.page);
        }
        for new in record.new_pages.iter().filter(|new| new.kind == PageKind::Page) {
            self.page_weights.add(new.page, self.policy.seed_weight(new.seed));
        }
    }

    fn analyse(&mut self, page: PageId) {
        let is_large = self.policy.is_large(page);
        if let Some(analysis) = &self.analysis {
            analysis.submit(page, is_large);
        }
    }

    fn learn(&mut self, analysed: FinishedAnalysis, warn: &mut impl FnMut(&str)) {
        analysed.warning.iter().for_each(|warning| warn(warning));
        self.status.n_analysed += u64::from(analysed.outcome.is_some());
        if let Some(reporter) = &self.reporter {
            for change in &analysed.changes {
                // The URL of a page under analysis is known. If it cannot be read, the change is still in the archive.
                let Ok(url) = self.store.page_url(change.page) else { continue };
                reporter.analysed(url, change);
            }
        }
        self.policy.finish_analysis(analysed.page, analysed.outcome, analysed.headlines);
    }

    /// If nothing is in flight, advances a leaping clock to the next event.
    fn leap(&self) {
        if self.options.clock.is_leaping()
            && !self.is_behind()
            && let Some(at) = self.policy.wakeup()
        {
            self.options.clock.leap_to(at);
        }
    }

    /// Whether a virtual clock must be held until work in flight is done.
    fn is_behind(&self) -> bool {
        let n_working = self.policy.n_active() as usize + self.policy.n_analysing();
        self.options.clock.is_time_lapse() && (self.policy.is_ready(self.now()) || n_working >= MAX_BEHIND)
    }

    fn wait(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(3600);
        if self.policy.is_stopping() {
            return LONGEST;
        }
        let wait = self.policy.wakeup().map_or(LONGEST, |at| self.options.clock.real_wait(at));
        if self.options.clock.is_leaping() { wait } else { wait.max(Duration::from_millis(1)) }
    }
}

/// The reason for a visit, for the log.
fn reason_text(why: QueueReason, target: &VisitTarget, cause: Option<&str>) -> String {
    let context = ReasonContext { url: &target.url, cause, ..ReasonContext::default() };
    let words = match why {
        QueueReason::Pass if target.n_failures > 0 => {
            return Reason::Retry { n_failures: target.n_failures }.describe(&context);
        }
        QueueReason::Pass if target.visited.is_none() => return Reason::FirstCapture.describe(&context),
        QueueReason::Scheduled(reason @ Reason::Urgent { urgency, expected, .. }) => {
            let words = reason.describe(&context);
            return format!("{words} (urgency {urgency:.4}, expected change {:.3})", expected.get());
        }
        QueueReason::Scheduled(reason) => return reason.describe(&context),
        QueueReason::Pass => "pass over everything",
        QueueReason::Requested => "requested",
        QueueReason::Needed => "a page needs it",
        QueueReason::Sitemap => "lists pages",
        QueueReason::Feed if target.kind == PageKind::Sitemap => "the sitemap is due",
        QueueReason::Feed => "the feed is due",
    };
    cause.map_or_else(|| words.to_owned(), |cause| format!("{words}: {}", untrusted::quoted(cause)))
}
