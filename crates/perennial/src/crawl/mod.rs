//! The crawl: next visit -> fetch -> archive -> record, for months, under any policy.
//!
//! | file | what becomes what |
//! |---|---|
//! | [`settings`] | perennial.toml -> seeds, manners, limits |
//! | [`clock`] | the real time, or a virtual one |
//! | [`frontier`] | what is remembered of every address, in SQLite |
//! | [`history`] | what earlier visits taught -> the scheduler's knowledge |
//! | [`host`] | addresses that wait -> the next that may be fetched |
//! | [`robots`] | an origin -> its rules |
//! | [`visit`] | an address -> what came back and what it leads to |
//! | [`analysis`] | safe captures -> what they taught, on all cores |
//! | [`browser`] | a page that scripts draw -> its document after they ran |
//! | [`record`] | reports -> captures, memory and log, durable together |
//! | [`log`] | every visit -> a line in `crawl.log` |
//!
//! The loop below owns the queues and the policy, tasks do the fetching, one thread owns the archive. A visit
//! is over when its commit is: only then is its connection free, its page judged, its links followed.

pub mod analysis;
pub mod browser;
pub mod clock;
pub mod frontier;
pub mod history;
pub mod host;
pub mod log;
pub mod record;
pub mod robots;
pub mod settings;
pub mod visit;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use perennial_core::page::PageId;
use perennial_core::schedule::{Budget, PageInfo, Reason, ScheduleConfig, Scheduler, Strategy, VisitOutcome};
use perennial_core::time::{LocalClock, Span, Timestamp};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use url::Url;

use crate::analyse::{Analyst, analyse_backlog, count_backlog};
use crate::archive::{Archive, ArchiveWriter};
use crate::fetch::{Client, Proxy};
use crate::store::{PageNumbers, Store};
use analysis::{Analysis, Learned};
use clock::Clock;
use frontier::{Ending, Found, Known, PageKind};
use host::{Hosts, Why};
use record::{Message, NewPage, Recorder, Settled, Word, url_hash};
use settings::{CrawlSettings, Seeds};
use visit::Shared;

/// Pages that may wait for their analysis before no visit is started: the memory of fetching too fast.
const MAX_ANALYSING: usize = 64;
/// Visits in flight and under analysis at which a virtual clock stands still.
const MAX_BEHIND: usize = 6;

/// What the user asks of one crawl.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// Capture everything in scope once, then end.
    pub once: bool,
    /// Which policy decides.
    pub strategy: Strategy,
    /// How many visits it may make.
    pub budget: Option<Budget>,
    /// How often pages are ranked.
    pub slot: Span,
    /// The fixed interval, for the policy of that name.
    pub interval: Option<Span>,
    /// End after so many visits of pages.
    pub limit: Option<u64>,
    /// End after this time on the crawl's clock.
    pub time_limit: Option<Span>,
    /// End when the WARC files grew by so much.
    pub size_limit: Option<u64>,
    /// The same delay for every host, instead of manners.
    pub delay: Option<Span>,
    /// Connections to a host at a time.
    pub connections: u32,
    /// Whether all private addresses may be asked.
    pub allow_private: bool,
    /// The crawl's time.
    pub clock: Clock,
    /// Seed of the policy's and the jitter's chance.
    pub seed: u64,
    /// Whether captures are looked at as a reader would; without, another payload is another page.
    pub analyse: bool,
}

impl Default for CrawlOptions {
    fn default() -> CrawlOptions {
        CrawlOptions {
            once: false,
            strategy: Strategy::ExpectedGain,
            budget: None,
            slot: Span::from_hours(1),
            interval: None,
            limit: None,
            time_limit: None,
            size_limit: None,
            delay: None,
            connections: 1,
            allow_private: false,
            clock: Clock::Real,
            seed: 0,
            analyse: true,
        }
    }
}

/// Why a crawl ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Nothing is left to do, or `limit` was reached.
    Done,
    /// The user stopped it.
    Interrupted,
    /// `size_limit` was reached.
    SizeLimit,
    /// `time_limit` was reached.
    TimeLimit,
}

/// Where a crawl stands; at its end, what it did.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Status {
    /// Why it ended; none while it runs.
    pub end: Option<End>,
    /// Visits that ended, requisites and sitemaps included.
    pub n_fetched: u64,
    /// Visits of pages that ended.
    pub n_pages: u64,
    /// Another content than before, or the first.
    pub n_changed: u64,
    /// The same content.
    pub n_unchanged: u64,
    /// Nothing that counts came back.
    pub n_failed: u64,
    /// Not there, or not to be fetched.
    pub n_gone: u64,
    /// Given up because their host did not answer.
    pub n_given_up: u64,
    /// Captures that were looked at.
    pub n_analysed: u64,
    /// Captures that wait for it.
    pub n_analysing: u64,
    /// Bytes of bodies received.
    pub body_bytes: u64,
    /// Bytes that the WARC files grew by.
    pub stored_bytes: u64,
    /// Addresses that wait for their host.
    pub n_waiting: u64,
    /// Fetches in flight.
    pub n_active: u64,
    /// Pages that are known.
    pub n_known: u64,
    /// When something happens next, if the crawl waits.
    pub next_wakeup: Option<String>,
    /// Errors by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Errors by host, the first thousand hosts.
    pub errors_by_host: BTreeMap<String, u64>,
    /// What happened last.
    #[serde(skip)]
    pub last: String,
}

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
    status: Status,
    clocks: HashMap<i64, PageInfo>,
    n_known: u64,
    n_pages_started: u64,
    began: Timestamp,
    is_stopping: bool,
}

impl Crawl {
    /// Opens the archive and loads what is known; the recorder runs in a thread of its own from here on.
    fn start(
        archive: &Archive,
        settings: CrawlSettings,
        seeds: Seeds,
        mut options: CrawlOptions,
        warn: &mut impl FnMut(&str),
    ) -> anyhow::Result<(Crawl, std::thread::JoinHandle<anyhow::Result<()>>)> {
        let table = settings.crawl;
        let mut writer = ArchiveWriter::open(archive)?;
        let analyst = match options.analyse {
            true => Some(Arc::new(Analyst::for_archive(archive)?)),
            false => None,
        };
        if let Some(analyst) = &analyst {
            analyse_what_was_left(archive, &mut writer, analyst, warn)?;
        }
        options.clock = resume_clock(&options.clock, &writer)?;
        let now = options.clock.now();
        let (seed_numbers, order_start) = prepare(&mut writer, &seeds, &options, now)?;
        let politeness = match options.delay {
            Some(delay) => table.politeness().with_fixed_delay(delay),
            None => table.politeness(),
        };
        let mut recorder = Recorder {
            log: log::CrawlLog::open(archive.root()).context("cannot open crawl.log")?,
            known: HashSet::new(),
            fetched: HashMap::new(),
            shapes: HashMap::new(),
            max_pages_per_shape: table.max_pages_per_shape,
            requisite_span: Span::from_millis((table.requisite_hours * 3.6e6) as i64),
            hosts: frontier::load_hosts(writer.store().connection())?,
            politeness,
            chance: options.seed,
            writer,
        };
        let user_agent = table.user_agent();
        let proxy = match &table.proxy {
            Some(text) => Some(Proxy::parse(text).with_context(|| {
                format!("crawl.proxy = {text:?} in perennial.toml: write it like http://proxy.example:3128")
            })?),
            None => None,
        };
        let mut client = Client::new(user_agent.clone(), table.limits(), proxy);
        if let Some(file) = &table.tls_roots {
            let file = archive.root().join(file);
            client = client.trusting(&file).map_err(|reason| {
                anyhow!("crawl.tls_roots in perennial.toml: {}: {reason}; name a PEM file", file.display())
            })?;
        }
        let shared = Arc::new(Shared {
            client,
            robots: robots::RobotsCache::new(&user_agent),
            seeds,
            seed_numbers,
            clock: options.clock.clone(),
            allow_private: options.allow_private,
            compression: archive.settings().warc.compression(),
            browser: browser::Browser::new(Duration::from_secs_f64(table.browser_timeout_secs)),
            table,
        });
        let (reports, report_receiver) = std::sync::mpsc::channel();
        let (word_sender, words) = unbounded_channel();
        let analysis = match analyst {
            Some(analyst) => Some(Analysis::start(archive, analyst, &reports)?),
            None => None,
        };
        let mut crawl = Crawl {
            store: archive.store()?,
            hosts: Hosts::new(options.connections.max(1)),
            order: match order_start {
                Some((pass, started)) => Order::Once { pass, started },
                None => Order::Scheduled(Box::new(scheduler(&options, now))),
            },
            shared,
            reports: Some(reports),
            words,
            analysis,
            judged: HashMap::new(),
            status: Status::default(),
            clocks: HashMap::new(),
            n_known: 0,
            n_pages_started: 0,
            began: now,
            is_stopping: false,
            options,
        };
        crawl.load(&mut recorder)?;
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(move || {
            let word_sender = word_sender;
            recorder.run(report_receiver, &word_sender)
        })?;
        Ok((crawl, thread))
    }

    /// Queues what is due, tells the policy of the rest, and the recorder what is known.
    fn load(&mut self, recorder: &mut Recorder) -> anyhow::Result<()> {
        for (&site, &state) in &recorder.hosts {
            self.hosts.set_state(site, state);
        }
        let store = self.archive_store()?;
        frontier::each_known(store.connection(), |known| {
            let hash = url_hash(&known.url);
            match known.kind {
                PageKind::Page => {
                    recorder.known.insert(hash);
                    if let Ok(url) = Url::parse(&known.url) {
                        recorder.count_shape(&url);
                    }
                }
                _ => drop(recorder.fetched.insert(hash, known.visited.map_or(0, Timestamp::as_secs))),
            }
            self.load_one(&known);
        })?;
        if let Order::Scheduled(scheduler) = &mut self.order {
            history::replay(store.connection(), scheduler, self.began)?;
        }
        Ok(())
    }

    /// A connection of its own, so that loading can call back.
    fn archive_store(&self) -> anyhow::Result<Store> {
        Store::open_read(std::path::Path::new(self.store.connection().path().unwrap_or_default()))
    }

    fn load_one(&mut self, known: &Known) {
        if !self.shared.seed_numbers.contains(&known.seed) {
            return;
        }
        if known.kind != PageKind::Page {
            if known.visited.is_none() {
                self.hosts.push(known.site, known.page, Why::Needed);
            }
            return;
        }
        self.n_known += 1;
        let info = self.info(known.seed, known.site, &known.url);
        match &mut self.order {
            Order::Once { started, .. } => {
                let is_done = known.visited.is_some_and(|visited| visited >= *started)
                    && (known.ending != Some(Ending::Failed)
                        || known.n_failures >= self.shared.table.max_tries);
                if !is_done {
                    self.hosts.push(known.site, known.page, Why::Pass);
                }
            }
            Order::Scheduled(scheduler) => scheduler.add_page(known.page, info),
        }
    }

    /// Weight and local time of a seed's pages; pages of one directory are expected to behave alike.
    fn info(&mut self, seed: i64, site: perennial_core::page::SiteId, url: &str) -> PageInfo {
        let base = match self.clocks.get(&seed) {
            Some(base) => base.clone(),
            None => {
                let base = self.seed_info(seed);
                self.clocks.insert(seed, base.clone());
                base
            }
        };
        let directory = url.rfind('/').map_or(url, |slash| &url[..slash]);
        PageInfo { site, group: url_hash(directory), ..base }
    }

    fn seed_info(&mut self, seed: i64) -> PageInfo {
        let mut info = PageInfo::of_site(perennial_core::page::SiteId(0));
        let at = self.shared.seed_numbers.iter().position(|&number| number == seed);
        let Some(table) = at.and_then(|at| self.shared.seeds.0.get(at)).map(|seed| &seed.table) else {
            return info;
        };
        info.weight = table.weight as f32;
        if let (Order::Scheduled(scheduler), Some(zone)) = (&mut self.order, &table.timezone)
            && let Ok(clock) = LocalClock::of_zone(zone)
        {
            info.clock = scheduler.add_clock(clock);
        }
        info
    }

    async fn run(
        mut self,
        mut show: impl FnMut(&Status),
        mut warn: impl FnMut(&str),
    ) -> anyhow::Result<Status> {
        let mut signals = Signals::new()?;
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        let end = loop {
            self.hand_out()?;
            if let Some(end) = self.end() {
                break end;
            }
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
        if let Order::Scheduled(scheduler) = &mut self.order {
            while let Some(visit) = scheduler.next_visit(now) {
                self.hosts.push(visit.site, visit.page, Why::Scheduled(visit.reason));
            }
        }
        while (self.status.n_active as usize) < self.shared.table.max_workers.max(1) && !self.pages_used_up()
        {
            let Some((page, why)) = self.hosts.pop(now) else { break };
            self.start_visit(page, why)?;
        }
        Ok(())
    }

    fn pages_used_up(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.n_pages_started >= limit)
    }

    fn start_visit(&mut self, page: PageId, why: Why) -> anyhow::Result<()> {
        let Some(target) = frontier::target(self.store.connection(), page)? else {
            bail!(
                "page {} waits to be visited but is not in the crawl's state: run `perennial verify`",
                page.0
            );
        };
        let Some(reports) = self.reports.clone() else { return Ok(()) };
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
                self.take_new(*new_page);
            }
            if settled.kind == PageKind::Page {
                self.judge(&settled);
            }
            if settled.ending == Ending::Failed {
                self.after_failure(&settled);
            }
        }
    }

    /// What was delivered is looked at first; anything else the scheduler hears at once.
    fn judge(&mut self, settled: &Settled) {
        let is_delivered = matches!(settled.outcome, VisitOutcome::Changed(_) | VisitOutcome::Unchanged);
        match &mut self.analysis {
            Some(analysis) if is_delivered => {
                self.judged.insert(settled.page, (settled.outcome.clone(), settled.done_at));
                analysis.submit(settled.page);
            }
            _ => self.tell_scheduler(settled.page, settled.outcome.clone(), settled.done_at),
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

    /// Whether a virtual clock should stand still until work in flight is done.
    fn is_behind(&self) -> bool {
        let n_ready = self.hosts.next_ready().is_some_and(|at| at <= self.options.clock.now());
        self.options.clock.is_time_lapse()
            && (n_ready || self.status.n_active as usize + self.n_analysing() >= MAX_BEHIND)
    }

    fn take_new(&mut self, new: NewPage) {
        if new.kind != PageKind::Page {
            self.hosts.push(new.site, new.page, Why::Needed);
            return;
        }
        if new.is_new {
            self.n_known += 1;
        }
        let info = match self.order {
            Order::Scheduled(_) if new.is_new => {
                let group = u64::from(new.site.0);
                Some(PageInfo { group, ..self.info(new.seed, new.site, "") })
            }
            _ => None,
        };
        match &mut self.order {
            Order::Once { .. } if new.is_new => self.hosts.push(new.site, new.page, Why::Pass),
            Order::Once { .. } => {}
            Order::Scheduled(scheduler) => {
                if let Some(info) = info {
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
        let is_lost = wait_secs > table.max_wait_secs || settled.host.n_troubles > 2 * table.max_tries;
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

    fn count(&mut self, settled: &Settled) {
        let status = &mut self.status;
        status.n_active -= 1;
        status.n_fetched += 1;
        status.n_pages += u64::from(settled.kind == PageKind::Page);
        *match settled.ending {
            Ending::Changed => &mut status.n_changed,
            Ending::Unchanged => &mut status.n_unchanged,
            Ending::Failed => &mut status.n_failed,
            Ending::Gone => &mut status.n_gone,
        } += 1;
        status.body_bytes += settled.body_bytes;
        status.stored_bytes += settled.stored_bytes;
        if let Some(error) = settled.error {
            *status.errors.entry(error).or_default() += 1;
            if let Ok(Some(host)) = host_name(&self.store, settled.site)
                && (status.errors_by_host.len() < 1000 || status.errors_by_host.contains_key(&host))
            {
                *status.errors_by_host.entry(host).or_default() += 1;
            }
        }
    }

    fn refresh(&mut self, end: Option<End>) -> &Status {
        let next = self.next_event();
        self.status.n_waiting = self.hosts.n_waiting() as u64;
        self.status.n_known = self.n_known;
        self.status.n_analysing = self.n_analysing() as u64;
        self.status.next_wakeup = next.filter(|_| end.is_none()).map(|at| at.to_rfc3339());
        self.status.end = end;
        &self.status
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
        if self.n_analysing() > 0 {
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
        self.hosts.next_ready().is_none_or(|at| at - self.options.clock.now() > patience)
    }

    fn next_event(&self) -> Option<Timestamp> {
        let scheduled = match &self.order {
            Order::Scheduled(scheduler) => scheduler.next_wakeup(),
            Order::Once { .. } => None,
        };
        let has_room = (self.status.n_active as usize) < self.shared.table.max_workers;
        let ready = self.hosts.next_ready().filter(|_| has_room);
        let end = self.options.time_limit.map(|limit| self.began + limit);
        [scheduled, ready, end].into_iter().flatten().min()
    }

    fn wait(&self) -> Duration {
        if self.is_stopping {
            return Duration::from_secs(3600);
        }
        let wait = self.next_event().map_or(Duration::from_secs(3600), |at| self.options.clock.real_wait(at));
        wait.max(Duration::from_millis(1))
    }
}

fn host_name(store: &Store, site: perennial_core::page::SiteId) -> rusqlite::Result<Option<String>> {
    use rusqlite::OptionalExtension;
    store
        .connection()
        .prepare_cached("SELECT host FROM sites WHERE id = ?1")?
        .query_row([site.0], |row| row.get(0))
        .optional()
}

fn scheduler(options: &CrawlOptions, now: Timestamp) -> Scheduler {
    let config = ScheduleConfig {
        strategy: options.strategy,
        budget: options.budget,
        slot: options.slot,
        interval: options.interval,
        ..ScheduleConfig::default()
    };
    Scheduler::new(config, options.seed, now)
}

/// A virtual clock never runs backwards: it goes on where the last crawl left it.
fn resume_clock(clock: &Clock, writer: &ArchiveWriter) -> anyhow::Result<Clock> {
    let Clock::TimeLapse { factor, start, .. } = clock else { return Ok(clock.clone()) };
    match frontier::last_visit(writer.store().connection())? {
        Some(last) if last > *start => Ok(Clock::time_lapse(*factor, last)),
        // The same clock, not one like it: the demonstration's web lives by it too.
        _ => Ok(clock.clone()),
    }
}

/// Captures that no lesson was drawn from: fetched before a crash, or imported.
fn analyse_what_was_left(
    archive: &Archive,
    writer: &mut ArchiveWriter,
    analyst: &Analyst,
    warn: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    let n_left = count_backlog(writer.store())?;
    if n_left == 0 {
        return Ok(());
    }
    warn(&format!("looking at {n_left} captures that were not analysed yet"));
    let done = analyse_backlog(archive, writer.store_mut(), analyst, &AtomicBool::new(false), &|_| ())?;
    if done.n_failed > 0 {
        warn(&format!(
            "{} captures could not be analysed: their payload is not in the archive",
            done.n_failed
        ));
    }
    Ok(())
}

async fn next_learned(analysis: &mut Option<Analysis>) -> Learned {
    match analysis {
        Some(analysis) => analysis.next().await,
        None => std::future::pending().await,
    }
}

/// Number and start of a pass over everything.
type Pass = (i64, Timestamp);

/// Seeds get their numbers and their places in the frontier; `--once` begins its pass.
fn prepare(
    writer: &mut ArchiveWriter,
    seeds: &Seeds,
    options: &CrawlOptions,
    now: Timestamp,
) -> anyhow::Result<(Vec<i64>, Option<Pass>)> {
    let transaction = writer.store_mut().connection_mut().transaction()?;
    let urls: Vec<String> = seeds.0.iter().map(|seed| seed.scope.seed.to_string()).collect();
    let numbers = frontier::seed_numbers(&transaction, &urls)?;
    {
        let mut pages = PageNumbers::new(&transaction);
        for (url, &seed) in urls.iter().zip(&numbers) {
            let found = Found {
                url: url.clone(),
                kind: PageKind::Page,
                seed,
                depth: 0,
                n_redirects: 0,
                changed: None,
            };
            frontier::put_found(&transaction, &mut pages, &found)?;
        }
    }
    let pass = if options.once { Some(frontier::begin_pass(&transaction, now)?) } else { None };
    transaction.commit()?;
    Ok((numbers, pass))
}

/// Why a visit is made, for the log.
fn reason_words(why: Why, target: &frontier::Target) -> String {
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

/// Ctrl-C and the system's polite request to end.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
