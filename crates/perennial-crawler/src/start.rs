//! Builds a crawl that continues the earlier ones.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use anyhow::{Context, anyhow};
use perennial_core::feed::polling::PublishingHistory;
use perennial_core::rng::Rng;
use perennial_core::schedule::{Budget, ScheduleConfig, Strategy};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use tokio::sync::mpsc::unbounded_channel;

use super::analysis::AnalysisPool;
use super::backfill::backfill;
use super::budgets::{self, BudgetAccounts};
use super::clock::Clock;
use super::config_watcher::ConfigWatcher;
use super::events::{CrawlEvent, EventReporter};
use super::known_urls::KnownUrls;
use super::page_weights::PageWeights;
use super::policy::{Policy, PolicyConfig, VisitOrder};
use super::polls::{FeedPolls, PollInterval};
use super::publish::Publisher;
use super::recorder::{Recorder, put_request};
use super::visit::{ReadPermits, VisitContext, is_loopback};
use super::websub::WebSub;
use super::{CrawlLoop, CrawlOptions, CrawlStatus, browser, log, robots};
use perennial_archive::settings::{BudgetTable, CrawlTable, Seeds};
use perennial_archive::store::{Discovery, PageKind, Store, StoredFeed};
use perennial_archive::{Archive, ArchiveWriter, CHECKING};
use perennial_engine::analyse::{Analyst, PageAnalyst, analyse_backlog};
use perennial_engine::background::PageFollower;
use perennial_engine::learn::{self, FollowedSites};
use perennial_engine::notify::{DeliveryReport, WatchNews, start_notifying};
use perennial_engine::search::start_indexing;
use perennial_fetch::Client;

/// The user chose this, and should know the risk.
const WITHOUT_SANDBOX: &str = "the browser runs without its sandbox, because of `browser_sandbox = false` in perennial.toml: a page \
    that exploits it has the rights of this user";

/// Site owners should know whom to contact.
const WITHOUT_CONTACT: &str = "perennial.toml sets no `contact`: site owners cannot see whose crawler this is, and may block \
    it. Write an e-mail address or a web page into [crawl], as in contact = \"archive@example.org\"";

impl CrawlLoop {
    /// Opens the archive, loads the frontier and starts the recorder's thread.
    pub(super) fn start(
        archive: &Archive,
        mut options: CrawlOptions,
        earlier: CrawlStatus,
        warn: &mut impl FnMut(&str),
    ) -> anyhow::Result<(CrawlLoop, std::thread::JoinHandle<anyhow::Result<()>>)> {
        if archive.is_unchecked() {
            warn(CHECKING);
        }
        let mut writer = ArchiveWriter::open(archive)?;
        writer.repairs().iter().for_each(|repair| warn(&repair.to_string()));
        let analyst = start_analyst(archive, &mut writer, &options, warn)?;
        options.clock = resume_clock(&options.clock, &writer)?;
        let now = options.clock.now();
        let ahead = time_ahead(&writer, now)?;
        if ahead > Span::ZERO {
            warn(&format!(
                "the archive has visits of up to {}, and it is {}: either the clock was ahead then or it is behind now. Check it; \
                 until then they count as made now",
                (now + ahead).to_rfc3339(),
                now.to_rfc3339()
            ));
        }
        let (seeds, pass) = prepare(&mut writer, archive, options.is_pass(), now)?;
        let table = &archive.settings().crawl;
        if !table.browser_sandbox {
            warn(WITHOUT_SANDBOX);
        }
        if options.only.is_empty()
            && !table.names_a_contact()
            && seeds.iter().any(|seed| !is_loopback(&seed.scope.seed))
        {
            warn(WITHOUT_CONTACT);
        }
        if !options.only.is_empty() {
            writer.store_mut().write(|commit| {
                options.only.iter().try_for_each(|url| put_request(commit, &seeds, url).map(drop))
            })?;
        }
        let known_urls = load_frontier(&mut writer, &seeds, now, warn)?;
        let parts = CrawlBuilder { archive, table, options: &options, seeds, now };
        let policy = parts.policy(&mut writer, pass)?;
        let shared = Arc::new(parts.shared(analyst)?);
        parts.conflicts(writer.store(), policy.followed())?.iter().for_each(|conflict| warn(conflict));
        let recorder = parts.recorder(writer, known_urls, ahead, warn)?;
        let websub = parts.websub(warn)?;
        let (reports, report_receiver) = std::sync::mpsc::channel();
        let (committed_sender, committed) = unbounded_channel();
        let analysis = match &shared.analyst {
            Some(analyst) => Some(AnalysisPool::start(analyst, &reports)?),
            None => None,
        };
        let mut crawl = CrawlLoop {
            store: archive.store()?,
            policy,
            pass: pass.map(|(number, _)| number),
            shared,
            reports: Some(reports),
            committed,
            analysis,
            page_weights: PageWeights::new(archive),
            websub,
            publisher: Publisher::new(archive, &options, now),
            reporter: options.events.clone().map(EventReporter::new),
            watcher: ConfigWatcher::new(archive, &options.clock, &earlier),
            foreseen: None,
            poll_due: std::time::Instant::now(),
            slow_hosts: HashSet::new(),
            status: CrawlStatus {
                began: earlier.began.clone().or(Some(now.to_rfc3339())),
                end: None,
                ..earlier
            },
            options,
        };
        crawl.load(&recorder, now)?;
        crawl.report_start(archive);
        let record = move || recorder.run(report_receiver, &committed_sender);
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(record)?;
        Ok((crawl, thread))
    }

    /// Queues the URLs that are due, and ranks the known pages.
    fn load(&mut self, recorder: &Recorder, now: Timestamp) -> anyhow::Result<()> {
        for (&site, &state) in &recorder.hosts {
            self.policy.set_host(site, state);
        }
        // A separate connection, because loading changes the crawl.
        let store = recorder.writer.archive().store()?;
        let polls = load_polls(&store, self.policy.followed(), &self.shared.table, now)?;
        self.policy.set_polls(polls);
        if let Some(websub) = &self.websub {
            for feed in store.feeds_to_poll()? {
                let is_followed = feed.seed.is_some_and(|seed| self.policy.has_seed(seed));
                if let Some(hub) = feed.hub.filter(|_| is_followed) {
                    websub.want(feed.page, &feed.url, &hub, &self.options.clock);
                }
            }
        }
        store.each_frontier_page(|known| {
            if known.kind == PageKind::Page {
                self.page_weights.add(known.page, self.policy.seed_weight(known.seed));
                if known.visited.is_some() {
                    self.page_weights.mark_captured(known.page);
                }
            }
            self.policy.load(&known);
            if let Some(reporter) = self.reporter.as_mut().filter(|_| self.policy.has_seed(known.seed)) {
                reporter.load(&known);
            }
        })?;
        if let Some(scheduler) = self.policy.scheduler_mut() {
            self.page_weights.rank_now(scheduler, now)?;
        }
        if self.options.only.is_empty() {
            return self.queue_retries();
        }
        for url in &self.options.only {
            let page = self.store.page(url.as_str())?.map(|page| page.id);
            let Some(target) = page.map(|page| self.store.target(page)).transpose()?.flatten() else {
                continue;
            };
            self.policy.visit_now(&target, now);
        }
        Ok(())
    }
}

/// The analyst, unless `--no-analysis` was given. Analyses the backlog first.
fn start_analyst(
    archive: &Archive,
    writer: &mut ArchiveWriter,
    options: &CrawlOptions,
    warn: &mut impl FnMut(&str),
) -> anyhow::Result<Option<Arc<PageAnalyst>>> {
    if !options.analyse {
        return Ok(None);
    }
    let analyst = Arc::new(Analyst::for_archive(archive)?);
    if let Some(warning) = analyst.confinement_warning() {
        warn(&warning);
    }
    let clock = options.clock.clone();
    // A virtual clock may be set forward after this, and has no captures of a wrong clock.
    let now = move || if clock.is_time_lapse() { Timestamp::MAX } else { clock.now() };
    analyse_leftovers(archive, writer, &analyst, now(), warn)?;
    Ok(Some(Arc::new(PageAnalyst::new(archive, analyst, Box::new(now)))))
}

/// The feeds of the frontier with their publishing patterns.
fn load_polls(
    store: &Store,
    followed: &FollowedSites,
    table: &CrawlTable,
    now: Timestamp,
) -> anyhow::Result<FeedPolls> {
    let with_sitemaps = polls_sitemaps(table);
    let mut polled = Vec::new();
    store.each_frontier_page(|known| {
        // A sitemap that was never visited is queued like a new one.
        let is_polled = match known.kind {
            PageKind::Feed => true,
            PageKind::Sitemap => with_sitemaps && known.visited.is_some(),
            PageKind::Page | PageKind::Subresource => false,
        };
        if is_polled && followed.has_seed(known.seed) {
            polled.push((known.page, known.site, known.visited, known.url, known.seed));
        }
    })?;
    let known: HashMap<PageId, StoredFeed> = match polled.is_empty() {
        true => HashMap::new(),
        false => store.feeds_to_poll()?.into_iter().map(|feed| (feed.page, feed)).collect(),
    };
    let mut polls = FeedPolls::new(table.feed_polls);
    for (page, site, visited, url, seed) in polled {
        let publishing = match known.get(&page) {
            Some(feed) => learn::publishing(store, feed)?,
            None => PublishingHistory::default(),
        };
        let interval = followed.poll_interval(&url, seed).map(PollInterval::from);
        polls.load(page, publishing, (site, interval), visited, now);
    }
    Ok(polls)
}

/// Builds the frontier of a rebuilt archive from its captures and settings.
pub fn make_frontier(archive: &Archive, writer: &mut ArchiveWriter, now: Timestamp) -> anyhow::Result<()> {
    let (seeds, _) = prepare(writer, archive, false, now)?;
    load_frontier(writer, &seeds, now, &mut |_| ()).map(drop)
}

/// Loads the known URLs, and adds captured URLs that are not among them.
fn load_frontier(
    writer: &mut ArchiveWriter,
    seeds: &Seeds,
    now: Timestamp,
    warn: &mut impl FnMut(&str),
) -> anyhow::Result<KnownUrls> {
    let archive = writer.archive().clone();
    let table = &archive.settings().crawl;
    let mut known_urls = KnownUrls::new(table.max_pages_per_shape, table.subresource_span);
    writer.store().each_frontier_page(|known| known_urls.load(&known, now))?;
    match backfill(&archive, writer.store_mut(), seeds, &mut known_urls, now)? {
        0 => {}
        n => warn(&format!("{n} pages of earlier captures and their links are followed from now on")),
    }
    Ok(known_urls)
}

/// Builds the components of a crawl.
struct CrawlBuilder<'a> {
    archive: &'a Archive,
    table: &'a CrawlTable,
    options: &'a CrawlOptions,
    seeds: Seeds,
    now: Timestamp,
}

impl CrawlBuilder<'_> {
    fn policy(&self, writer: &mut ArchiveWriter, pass: Option<Pass>) -> anyhow::Result<Policy> {
        let (options, now) = (self.options, self.now);
        let mut budgets = self.budgets(writer)?;
        let mut followed = FollowedSites::load(self.archive, writer.store())?;
        if options.goal.is_some() {
            followed.forget_goals();
        }
        followed.fit_to(budgets.plan());
        if self.options.strategy == Strategy::FixedInterval {
            followed.forget_watch_interval();
        }
        let order = match pass {
            Some((_, started)) => VisitOrder::Once { started },
            None if options.once => VisitOrder::Once { started: now },
            None => {
                let config = self.schedule_config(budgets.plan());
                let mut scheduler = learn::scheduler(writer.store(), &followed, config, options.seed, now)?;
                scheduler.set_spent(budgets.n_visits_in_period(), now);
                budgets.leave_visits_to_scheduler();
                VisitOrder::Scheduled(Box::new(scheduler))
            }
        };
        Ok(Policy::new(self.policy_config(), order, followed, budgets, now))
    }

    /// Intervals that cannot be kept. In a pass over everything there are none.
    fn conflicts(&self, store: &Store, followed: &FollowedSites) -> anyhow::Result<Vec<String>> {
        if self.options.once {
            return Ok(Vec::new());
        }
        let delay = self.options.delay.unwrap_or(self.table.politeness.min_delay);
        let delay = Span::from_millis(delay.as_millis() / i64::from(self.options.connections.max(1)));
        let budget = self.options.budget.or(self.table.allowance.visits);
        learn::conflicts(store, followed, budget, delay)
    }

    fn policy_config(&self) -> PolicyConfig {
        PolicyConfig {
            max_workers: self.table.max_workers,
            connections: self.options.connections,
            max_tries: if self.options.only.is_empty() { self.table.max_tries } else { 1 },
            max_wait: self.table.max_wait,
            limit: self.options.limit,
            time_limit: self.options.time_limit,
            size_limit: self.options.size_limit,
            is_analysing: self.options.analyse,
            feeds_only: self.options.feeds_only,
            only_requested: !self.options.only.is_empty(),
            polls_sitemaps: polls_sitemaps(self.table),
        }
    }

    /// The scheduler's configuration. Command-line options override perennial.toml.
    fn schedule_config(&self, budget: Option<Budget>) -> ScheduleConfig {
        let written = learn::schedule_config(self.table, budget);
        ScheduleConfig {
            strategy: self.options.strategy,
            goal: self.options.goal.unwrap_or(written.goal),
            varying_budget: self.options.varying_budget.or(written.varying_budget),
            interval: self.options.interval,
            ..written
        }
    }

    /// The budgets with their spending. Command-line options override perennial.toml.
    fn budgets(&self, writer: &mut ArchiveWriter) -> anyhow::Result<BudgetAccounts> {
        let written = self.table.allowance;
        let overall = BudgetTable {
            visits: self.options.budget.or(written.visits),
            bytes_per_day: self.options.bytes_per_day.or(written.bytes_per_day),
        };
        let of_seeds = || self.seeds.iter_numbered().map(|(number, seed)| (number, seed.allowance));
        let periods = of_seeds().map(|(_, allowance)| allowance).chain([overall]).filter_map(|a| a.visits);
        let longest = periods.map(|budget| budget.period).max().unwrap_or(Span::ZERO);
        let forgotten = budgets::forgotten_before(longest, self.now);
        writer.store_mut().write(|commit| commit.forget_spent(forgotten))?;
        BudgetAccounts::load(writer.store(), overall, of_seeds(), self.now)
    }

    fn recorder(
        &self,
        writer: ArchiveWriter,
        known_urls: KnownUrls,
        ahead: Span,
        warn: &mut impl FnMut(&str),
    ) -> anyhow::Result<Recorder> {
        let mut hosts = writer.store().host_states()?;
        // A delay that was set while the clock was ahead ends that much earlier.
        hosts.values_mut().for_each(|state| state.ready_at = state.ready_at - ahead);
        let politeness = self.table.politeness;
        Ok(Recorder {
            log: log::CrawlLog::open(self.archive.root()).context("cannot open crawl.log")?,
            known_urls,
            seeds: self.seeds.clone(),
            hosts,
            politeness: match self.options.delay {
                Some(delay) => politeness.with_fixed_delay(delay),
                None => politeness,
            },
            rng: Rng::new(self.options.seed),
            indexing: self.options.analyse.then(|| start_indexing(self.archive)).transpose()?,
            notifying: self.notifying(warn),
            checkpoint: None,
            writer,
        })
    }

    /// Starts the notices, if there are rules. If that fails, the crawl continues without them.
    fn notifying(&self, warn: &mut impl FnMut(&str)) -> Option<PageFollower<WatchNews>> {
        let report = self.options.events.clone().map(|events| -> DeliveryReport {
            Arc::new(move |delivery| {
                // Sending fails only if nobody listens any more.
                let _ = events.send(CrawlEvent::Notice(delivery));
            })
        });
        let started = self.options.analyse.then(|| start_notifying(self.archive, report))?;
        started.unwrap_or_else(|error| {
            warn(&format!("no notices are sent during this crawl: {error:#}"));
            None
        })
    }

    /// Subscribes to hubs if a callback URL is configured. In a time-lapse there are no hubs, because they use real
    /// time.
    fn websub(&self, warn: &mut impl FnMut(&str)) -> anyhow::Result<Option<WebSub>> {
        let is_wanted = self.table.feeds && !self.options.once;
        let Some(callback) = self.table.websub_callback.clone().filter(|_| is_wanted) else {
            return Ok(None);
        };
        if self.options.clock.is_time_lapse() {
            warn("hubs are not used in a time-lapse: crawl.websub_callback is ignored");
            return Ok(None);
        }
        WebSub::bind(self.table.websub_listen, callback).map(Some)
    }

    fn shared(&self, analyst: Option<Arc<PageAnalyst>>) -> anyhow::Result<VisitContext> {
        let (archive, table) = (self.archive, self.table.clone());
        let user_agent = table.user_agent();
        let spool = archive.spool_dir();
        let mut client = Client::new(user_agent.clone(), table.limits.clone(), table.proxy.clone())
            .spooling_in(&spool)
            .with_context(|| format!("cannot create {} for large bodies", spool.display()))?;
        if let Some(file) = &table.tls_roots {
            let file = archive.root().join(file);
            client = client.trusting(&file).map_err(|reason| {
                anyhow!("crawl.tls_roots in perennial.toml: {}: {reason}; name a PEM file", file.display())
            })?;
        }
        Ok(VisitContext {
            readers: ReadPermits::default(),
            client,
            robots: robots::RobotsCache::new(&user_agent),
            seeds: self.seeds.clone(),
            clock: self.options.clock.clone(),
            allow_private: self.options.allow_private,
            private_origins: Mutex::default(),
            compression: archive.settings().warc.compression(),
            browser: browser::Browser::new(table.browser_timeout, table.browser_sandbox),
            analyst,
            table,
        })
    }
}

/// Whether sitemaps are fetched again.
fn polls_sitemaps(table: &CrawlTable) -> bool {
    table.sitemaps && table.feeds
}

/// How far the last visit is in the future; zero if it is not.
fn time_ahead(writer: &ArchiveWriter, now: Timestamp) -> anyhow::Result<Span> {
    Ok(writer.store().last_visit()?.map_or(Span::ZERO, |last| (last - now).max(Span::ZERO)))
}

/// Continues a virtual clock from the last crawl, because it must not run backwards.
fn resume_clock(clock: &Clock, writer: &ArchiveWriter) -> anyhow::Result<Clock> {
    let last = writer.store().last_visit()?;
    if let Some(last) = last {
        clock.leap_to(last);
    }
    let Clock::TimeLapse { factor, start, .. } = clock else { return Ok(clock.clone()) };
    match last {
        Some(last) if last > *start => Ok(Clock::time_lapse(*factor, last)),
        // Not a copy: the demonstration's server reads the same clock.
        _ => Ok(clock.clone()),
    }
}

/// Analyses captures without an analysis: those fetched before a crash, and imported ones.
fn analyse_leftovers(
    archive: &Archive,
    writer: &mut ArchiveWriter,
    analyst: &Arc<Analyst>,
    now: Timestamp,
    warn: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    let n_left = writer.store().count_backlog(now)?;
    if n_left == 0 {
        return Ok(());
    }
    warn(&format!("analysing {n_left} captures that were not analysed yet"));
    let done = analyse_backlog(archive, writer.store_mut(), analyst, now, &AtomicBool::new(false), &|_| ())?;
    if done.n_failed > 0 {
        warn(&format!(
            "{} captures could not be analysed and are quarantined: their payload is missing or unreadable, see \
             `perennial verify`",
            done.n_failed
        ));
    }
    if done.n_failed_pages > 0 {
        warn(&format!(
            "{} pages could not be analysed: rebuild the state with `perennial verify --rebuild`",
            done.n_failed_pages
        ));
    }
    Ok(())
}

/// Number and start of a pass over everything.
type Pass = (i64, Timestamp);

/// Numbers every seed and adds it to the frontier. With `--once` begins or continues a pass.
fn prepare(
    writer: &mut ArchiveWriter,
    archive: &Archive,
    is_pass: bool,
    now: Timestamp,
) -> anyhow::Result<(Seeds, Option<Pass>)> {
    let seeds = archive.settings().seeds.clone();
    let urls: Vec<String> = seeds.iter().map(|seed| seed.scope.seed.to_string()).collect();
    writer.store_mut().write(|commit| {
        let numbers = commit.seed_numbers(&urls)?;
        for (url, &seed) in urls.iter().zip(&numbers) {
            commit.backfill(&Discovery::new(url.as_str(), PageKind::Page, seed, 0), now)?;
        }
        for (seed, &number) in seeds.iter().zip(&numbers) {
            for feed in &seed.feeds {
                commit.backfill(&Discovery::new(feed.as_str(), PageKind::Feed, number, 0), now)?;
            }
        }
        let pass = if is_pass { Some(commit.begin_pass(now)?) } else { None };
        Ok((seeds.numbered(numbers), pass))
    })
}
