//! The crawl: next visit -> fetch -> archive -> record, for months, under any policy.
//!
//! | file | what becomes what |
//! |---|---|
//! | [`options`], [`amounts`] | what the user asks of one crawl, and how it is written |
//! | [`settings`] | perennial.toml -> seeds, manners, limits |
//! | [`clock`] | the real time, or a virtual one |
//! | `start` | an archive and options -> a crawl that knows what earlier ones knew ([`crate::learn`]) |
//! | `weights` | links, and what the user says -> omega(P) |
//! | [`spending`] | what was spent -> whether another visit is within the budget |
//! | [`host`] | addresses that wait -> the next that may be fetched |
//! | [`robots`] | an origin -> its rules |
//! | [`visit`] | an address -> what came back and what it leads to |
//! | [`analysis`] | safe captures -> what they taught, on all cores |
//! | `unstyled` | pages whose stylesheets are still to come -> pages that can be looked at |
//! | [`browser`] | a page that scripts draw -> its document after they ran |
//! | [`record`] | reports -> captures, memory and log, durable together |
//! | [`status`] | visits that ended -> where the crawl stands |
//! | [`log`] | every visit -> a line in `crawl.log` |
//!
//! The loop below owns the queues and the policy, tasks do the fetching, one thread owns the archive. A visit
//! is over when its commit is: only then is its connection free, its page judged, its links followed.

pub mod amounts;
pub mod analysis;
pub mod browser;
pub mod clock;
pub mod host;
pub mod log;
pub mod options;
pub mod record;
pub mod robots;
pub mod settings;
mod signals;
pub mod spending;
mod start;
pub mod status;
mod unstyled;
pub mod visit;
mod weights;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::bail;
use perennial_core::page::{PageId, SiteId};
use perennial_core::schedule::{Reason, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::archive::Archive;
use crate::learn::Followed;
use crate::store::{Ending, PageKind, Store, Target};
use analysis::{Analysis, Learned};
use host::{Hosts, Why};
pub use options::CrawlOptions;
use record::{Message, NewPage, Settled, Word};
use settings::{CrawlSettings, Seeds};
use signals::Signals;
use spending::{Permission, Spending};
pub use status::{End, Status};
use unstyled::Unstyled;
use visit::Shared;
use weights::Weights;

/// Pages that may wait for their analysis before no visit is started: the memory of fetching too fast.
const MAX_ANALYSING: usize = 64;
/// Visits in flight and under analysis at which a virtual clock stands still.
const MAX_BEHIND: usize = 1;
/// How often the scheduler hears what the budget in bytes allows.
const PLAN_SPAN: Span = Span::from_hours(1);

/// Crawls an archive until it is done, stopped, or at a limit. `show` is called a few times a second, `warn` when
/// there is something to tell.
pub fn crawl(
    archive: &Archive,
    options: CrawlOptions,
    show: impl FnMut(&Status),
    mut warn: impl FnMut(&str),
) -> anyhow::Result<Status> {
    let settings = CrawlSettings::load(&archive.settings_path())?;
    if settings.site.is_empty() {
        bail!("no site to crawl: add one with `perennial add https://example.org/`");
    }
    let seeds = Seeds::compile(&settings.site, settings.crawl.max_depth)?;
    if options.clock.is_time_lapse() {
        refuse_foreign(&seeds)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let started = Crawl::start(archive, settings, seeds, options, &mut warn)?;
    let (mut crawl, recorder) = started;
    crawl.status.n_known = crawl.n_known;
    let outcome = runtime.block_on(crawl.run(show, warn));
    // The recorder closes the archive when nobody can report any more.
    runtime.shutdown_timeout(Duration::from_secs(5));
    let closed = recorder.join().map_err(|_| anyhow::anyhow!("the recorder failed unexpectedly"))?;
    let status = outcome?;
    closed?;
    Ok(status)
}

/// A virtual clock would ask a real host a hundred times a second.
fn refuse_foreign(seeds: &Seeds) -> anyhow::Result<()> {
    match seeds.0.iter().find(|seed| !visit::is_loopback(&seed.scope.seed)) {
        Some(seed) => bail!(
            "--time-lapse is for hosts on this machine only, and {} is not: remove it with `perennial remove`, or crawl in real time",
            seed.scope.seed
        ),
        None => Ok(()),
    }
}

/// Which policy hands out pages.
enum Order {
    /// Everything once, as it was found; pages visited since the pass began are done.
    Once { pass: i64, started: Timestamp },
    /// The scheduler's.
    Scheduled(Box<Scheduler>),
}

struct Crawl {
    options: CrawlOptions,
    shared: Arc<Shared>,
    store: Store,
    hosts: Hosts,
    order: Order,
    /// None once the crawl is over: the recorder then closes the archive.
    reports: Option<Sender<Message>>,
    words: UnboundedReceiver<Word>,
    /// None once the crawl is over, or when nobody wants it.
    analysis: Option<Analysis>,
    /// Pages under analysis: what their payload alone tells, and when they were visited.
    judged: HashMap<PageId, (VisitOutcome, Timestamp)>,
    unstyled: Unstyled,
    weights: Weights,
    spending: Spending,
    /// Visits that the budget does not allow before an instant.
    put_off: Vec<(Timestamp, SiteId, PageId, Why)>,
    /// When the scheduler last heard of the budget.
    planned_at: Timestamp,
    status: Status,
    followed: Followed,
    n_known: u64,
    n_pages_started: u64,
    began: Timestamp,
    is_stopping: bool,
}

impl Crawl {
    async fn run(
        mut self,
        mut show: impl FnMut(&Status),
        mut warn: impl FnMut(&str),
    ) -> anyhow::Result<Status> {
        let mut signals = Signals::new()?;
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        self.options.clock.set_going();
        let end = loop {
            self.hand_out()?;
            if let Some(end) = self.end() {
                break end;
            }
            self.leap();
            let wait = self.wait();
            let (is_behind, since) = (self.is_behind(), Instant::now());
            tokio::select! {
                word = self.words.recv() => match word {
                    Some(word) => self.settle(word?, &mut warn),
                    None => bail!("the recorder ended before the crawl"),
                },
                learned = next_learned(&mut self.analysis) => self.learn(learned, &mut warn),
                () = signals.next() => {
                    if self.is_stopping {
                        std::process::exit(11);
                    }
                    self.is_stopping = true;
                    warn("finishing what is in flight; once more stops at once");
                }
                _ = ticks.tick() => show(self.refresh(None)),
                () = tokio::time::sleep(wait) => {}
            }
            if is_behind {
                self.options.clock.hold(since.elapsed());
            }
        };
        if end == End::Done
            && let Order::Once { pass, .. } = self.order
            && self.options.limit.is_none_or(|limit| self.n_pages_started < limit)
        {
            let message = Message::EndPass(pass, self.options.clock.now());
            if let Some(reports) = &self.reports {
                let _ = reports.send(message);
            }
        }
        self.reports = None;
        self.analysis = None;
        let status = self.refresh(Some(end)).clone();
        show(&status);
        Ok(status)
    }

    /// Starts every visit that may start now.
    fn hand_out(&mut self) -> anyhow::Result<()> {
        if self.is_stopping || self.limit_reached().is_some() || self.n_analysing() >= MAX_ANALYSING {
            return Ok(());
        }
        let now = self.options.clock.now();
        self.take_up_again(now);
        if let Order::Scheduled(scheduler) = &mut self.order {
            self.weights.keep_up(scheduler, now, self.options.clock.is_leaping())?;
            if now - self.planned_at >= PLAN_SPAN {
                scheduler.set_budget(self.spending.plan());
                self.planned_at = now;
            }
            while let Some(visit) = scheduler.next_visit(now) {
                self.hosts.push(visit.site, visit.page, Why::Scheduled(visit.reason));
            }
        }
        while (self.status.n_active as usize) < self.shared.table.max_workers.max(1) && !self.pages_used_up()
        {
            let Some((page, why)) = self.hosts.pop(now) else { break };
            self.start_visit(page, why, now)?;
        }
        Ok(())
    }

    /// Queues again what the budget allows now.
    fn take_up_again(&mut self, now: Timestamp) {
        for (_, site, page, why) in self.put_off.extract_if(.., |(until, ..)| *until <= now) {
            self.hosts.push(site, page, why);
        }
    }

    /// The budget is spent. A scheduled visit is given back: were it only put off, it would take the place of one in
    /// the next period, and so on for ever. If the wait is long, all pages on the same budget are left alone.
    fn put_off(&mut self, target: &Target, why: Why, until: Timestamp, all: bool) {
        self.hosts.give_back(target.site);
        let is_long = until - self.options.clock.now() > self.options.slot;
        match (&mut self.order, why) {
            (Order::Scheduled(scheduler), Why::Scheduled(_)) => {
                scheduler.release(target.page);
                let seed = (!all).then_some(target.seed);
                if is_long {
                    // A slot that ends with the period must not choose them either.
                    let until = until + Span::from_secs(1);
                    self.spending.pages_of(seed).for_each(|page| scheduler.hold(page, until));
                }
            }
            _ => self.put_off.push((until, target.site, target.page, why)),
        }
    }

    fn pages_used_up(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.n_pages_started >= limit)
    }

    fn start_visit(&mut self, page: PageId, why: Why, now: Timestamp) -> anyhow::Result<()> {
        let Some(target) = self.store.target(page)? else {
            bail!(
                "page {} waits to be visited but is not in the crawl's state: run `perennial verify`",
                page.0
            );
        };
        let Some(reports) = self.reports.clone() else { return Ok(()) };
        if let Permission::Refused { until, all } =
            self.spending.ask(target.seed, target.kind == PageKind::Page, now)
        {
            self.put_off(&target, why, until, all);
            return Ok(());
        }
        self.status.n_active += 1;
        self.n_pages_started += u64::from(target.kind == PageKind::Page);
        let reason = reason_words(why, &target);
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let report = visit::visit(shared, target, reason).await;
            // Fails only when the crawl is over, and then nobody waits for it.
            let _ = reports.send(Message::Visit(Box::new(report)));
        });
        Ok(())
    }

    fn settle(&mut self, batch: Vec<Settled>, warn: &mut impl FnMut(&str)) {
        for settled in batch {
            if let Some(warning) = &settled.warning {
                warn(warning);
            }
            self.count(&settled);
            self.hosts.release(settled.site, settled.host);
            for new_page in &settled.new_pages {
                self.take_new(new_page);
            }
            match settled.kind {
                PageKind::Page => self.judge(&settled),
                _ => self.dress(settled.page),
            }
            if settled.ending == Ending::Failed {
                self.after_failure(&settled);
            }
        }
    }

    /// What was delivered is looked at first; anything else the scheduler hears at once.
    fn judge(&mut self, settled: &Settled) {
        match &mut self.analysis {
            Some(analysis) if settled.is_look => {
                self.weights.saw(settled.page);
                self.judged.insert(settled.page, (settled.outcome.clone(), settled.done_at));
                let needed = settled.new_pages.iter().filter(|new| new.kind == PageKind::Requisite);
                if !self.unstyled.put(settled.page, needed.map(|new| new.page)) {
                    analysis.submit(settled.page);
                }
            }
            _ => self.tell_scheduler(settled.page, settled.outcome.clone(), settled.done_at),
        }
    }

    /// A requisite is there, or will not be: pages that waited for it can be looked at.
    fn dress(&mut self, requisite: PageId) {
        for page in self.unstyled.take(requisite) {
            if let Some(analysis) = &mut self.analysis {
                analysis.submit(page);
            }
        }
    }

    fn learn(&mut self, learned: Learned, warn: &mut impl FnMut(&str)) {
        if let Some(warning) = &learned.warning {
            warn(warning);
        }
        self.status.n_analysed += u64::from(learned.outcome.is_some());
        if let Some((outcome, at)) = self.judged.remove(&learned.page) {
            self.tell_scheduler(learned.page, learned.outcome.unwrap_or(outcome), at);
        }
    }

    fn tell_scheduler(&mut self, page: PageId, outcome: VisitOutcome, at: Timestamp) {
        if let Order::Scheduled(scheduler) = &mut self.order {
            scheduler.record(page, outcome, at);
        }
    }

    fn n_analysing(&self) -> usize {
        self.analysis.as_ref().map_or(0, Analysis::n_waiting)
    }

    /// With nothing in flight, a clock that leaps is set to the next thing to do.
    fn leap(&self) {
        if self.options.clock.is_leaping()
            && !self.is_behind()
            && let Some(at) = self.next_event()
        {
            self.options.clock.leap_to(at);
        }
    }

    /// Whether a virtual clock should stand still until work in flight is done.
    fn is_behind(&self) -> bool {
        let n_ready = self.hosts.next_ready().is_some_and(|at| at <= self.options.clock.now());
        self.options.clock.is_time_lapse()
            && (n_ready || self.status.n_active as usize + self.n_analysing() >= MAX_BEHIND)
    }

    fn take_new(&mut self, new: &NewPage) {
        if new.kind != PageKind::Page {
            self.hosts.push(new.site, new.page, Why::Needed);
            return;
        }
        if new.is_new {
            self.n_known += 1;
        }
        match &mut self.order {
            Order::Once { .. } if new.is_new => self.hosts.push(new.site, new.page, Why::Pass),
            Order::Once { .. } => {}
            Order::Scheduled(scheduler) => {
                if new.is_new {
                    let info = self.followed.info(Some(new.seed), &new.url, new.site, scheduler);
                    self.weights.add(new.page, info.weight);
                    self.spending.add(new.page, new.seed);
                    scheduler.add_page(new.page, info);
                }
                if let Some(changed) = new.changed {
                    scheduler.notice(new.page, changed, None);
                }
            }
        }
    }

    /// Another try soon, another try when the policy says so, or none; a host in long trouble loses its queue.
    fn after_failure(&mut self, settled: &Settled) {
        let table = &self.shared.table;
        let wait_secs = (settled.host.ready_at - self.options.clock.now()).as_secs_f64();
        // Requests in flight together fail together: that is one trouble, however many they are.
        let max_troubles =
            u32::from(table.max_tries).saturating_mul(self.options.connections.saturating_add(1));
        let is_lost = wait_secs > table.max_wait_secs || u32::from(settled.host.n_troubles) > max_troubles;
        match &mut self.order {
            Order::Once { .. } => {
                if is_lost {
                    self.status.n_given_up += self.hosts.drain(settled.site).len() as u64;
                } else if settled.n_failures < table.max_tries && !settled.is_final {
                    let why = if settled.kind == PageKind::Page { Why::Pass } else { Why::Needed };
                    self.hosts.push(settled.site, settled.page, why);
                }
            }
            Order::Scheduled(scheduler) if is_lost => {
                let now = self.options.clock.now();
                for page in self.hosts.drain(settled.site) {
                    scheduler.record(
                        page,
                        VisitOutcome::Failed { retry_at: Some(settled.host.ready_at) },
                        now,
                    );
                }
            }
            Order::Scheduled(_) => {}
        }
    }
    fn limit_reached(&self) -> Option<End> {
        if self.options.size_limit.is_some_and(|limit| self.status.stored_bytes >= limit) {
            return Some(End::SizeLimit);
        }
        let elapsed = self.options.clock.now() - self.began;
        self.options.time_limit.is_some_and(|limit| elapsed >= limit).then_some(End::TimeLimit)
    }

    fn end(&self) -> Option<End> {
        if self.status.n_active > 0 {
            return None;
        }
        if self.is_stopping {
            return Some(End::Interrupted);
        }
        if self.n_analysing() > 0 || (!self.unstyled.is_empty() && self.limit_reached().is_none()) {
            return None;
        }
        if let Some(limit) = self.limit_reached() {
            return Some(limit);
        }
        if self.pages_used_up() {
            return Some(End::Done);
        }
        match self.order {
            Order::Once { .. } => self.nothing_soon().then_some(End::Done),
            Order::Scheduled(_) => None,
        }
    }

    /// Whether all that waits, if anything does, waits longer than the user cares.
    fn nothing_soon(&self) -> bool {
        let patience = Span::from_millis((self.shared.table.max_wait_secs * 1000.0) as i64);
        self.put_off.is_empty()
            && self.hosts.next_ready().is_none_or(|at| at - self.options.clock.now() > patience)
    }

    fn next_event(&self) -> Option<Timestamp> {
        let scheduled = match &self.order {
            Order::Scheduled(scheduler) => scheduler.next_wakeup(),
            Order::Once { .. } => None,
        };
        let has_room = (self.status.n_active as usize) < self.shared.table.max_workers;
        let ready = self.hosts.next_ready().filter(|_| has_room);
        let end = self.options.time_limit.map(|limit| self.began + limit);
        let put_off = self.put_off.iter().map(|(until, ..)| *until).min();
        [scheduled, ready, end, put_off].into_iter().flatten().min()
    }

    fn wait(&self) -> Duration {
        if self.is_stopping {
            return Duration::from_secs(3600);
        }
        let wait = self.next_event().map_or(Duration::from_secs(3600), |at| self.options.clock.real_wait(at));
        if self.options.clock.is_leaping() { wait } else { wait.max(Duration::from_millis(1)) }
    }
}

async fn next_learned(analysis: &mut Option<Analysis>) -> Learned {
    match analysis {
        Some(analysis) => analysis.next().await,
        None => std::future::pending().await,
    }
}
/// Why a visit is made, for the log.
fn reason_words(why: Why, target: &Target) -> String {
    match why {
        Why::Pass if target.n_failures > 0 => format!("retry after {} failures", target.n_failures),
        Why::Pass if target.visited.is_none() => "first capture".into(),
        Why::Pass => "pass over everything".into(),
        Why::Needed if target.kind == PageKind::Sitemap => "tells of pages".into(),
        Why::Needed => "a page needs it".into(),
        Why::Scheduled(Reason::FirstCapture) => "first capture".into(),
        Why::Scheduled(Reason::Urgent { urgency, expected, since }) => {
            format!("urgency {urgency:.4}, expected change {:.3} since {since}", expected.get())
        }
        Why::Scheduled(Reason::Oldest { since }) => format!("seen longest ago, {since}"),
        Why::Scheduled(Reason::Notice) => "a feed or sitemap announced a change".into(),
        Why::Scheduled(Reason::Retry { n_failures }) => format!("retry after {n_failures} failures"),
    }
}
