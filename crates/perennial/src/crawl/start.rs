//! An archive and options -> a crawl that knows what earlier ones knew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow};
use perennial_core::schedule::{Budget, ScheduleConfig};
use perennial_core::time::{Span, Timestamp};
use tokio::sync::mpsc::unbounded_channel;
use url::Url;

use super::analysis::Analysis;
use super::clock::Clock;
use super::host::{Hosts, Why};
use super::record::Recorder;
use super::settings::{CrawlSettings, CrawlTable, Seeds};
use super::spending::{self, Allowance, Spending};
use super::unstyled::Unstyled;
use super::visit::Shared;
use super::weights::Weights;
use super::{Crawl, CrawlOptions, Order, Status, browser, log, robots};
use crate::analyse::{Analyst, PageAnalyst, analyse_backlog};
use crate::archive::{Archive, ArchiveWriter};
use crate::fetch::{Client, Proxy};
use crate::learn::{self, Followed};
use crate::store::{Discovery, Ending, FrontierPage, PageKind, url_hash};

impl Crawl {
    /// Opens the archive and loads what is known; the recorder runs in a thread of its own from here on.
    pub(super) fn start(
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
        let spending = spending_of(&mut writer, &table, &seeds, &seed_numbers, &options, now)?;
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
            hosts: writer.store().host_states()?,
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
            analyst: analyst.map(|analyst| Arc::new(PageAnalyst::new(archive, analyst))),
            table,
        });
        let followed = Followed::of(archive, recorder.writer.store())?;
        let (reports, report_receiver) = std::sync::mpsc::channel();
        let (word_sender, words) = unbounded_channel();
        let analysis = match &shared.analyst {
            Some(analyst) => Some(Analysis::start(analyst, &reports)?),
            None => None,
        };
        let mut crawl = Crawl {
            store: archive.store()?,
            hosts: Hosts::new(options.connections.max(1)),
            order: match order_start {
                Some((pass, started)) => Order::Once { pass, started },
                None => {
                    let config = schedule_config(&options, spending.plan());
                    let store = recorder.writer.store();
                    let scheduler = learn::scheduler(store, &followed, config, options.seed, now)?;
                    Order::Scheduled(Box::new(scheduler))
                }
            },
            shared,
            reports: Some(reports),
            words,
            analysis,
            judged: HashMap::new(),
            unstyled: Unstyled::default(),
            weights: Weights::new(archive),
            spending,
            put_off: Vec::new(),
            planned_at: now,
            status: Status::default(),
            followed,
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
        // A connection of its own, so that loading can change the crawl.
        let store = recorder.writer.archive().store()?;
        store.each_frontier_page(|known| {
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
            self.weights.rank_now(scheduler, self.began)?;
        }
        Ok(())
    }

    fn load_one(&mut self, known: &FrontierPage) {
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
        self.weights.add(known.page, self.followed.weight_of_seed(known.seed));
        self.spending.add(known.page, known.seed);
        if known.visited.is_some() {
            self.weights.saw(known.page);
        }
        match &mut self.order {
            Order::Once { started, .. } => {
                let is_done = known.visited.is_some_and(|visited| visited >= *started)
                    && (known.ending != Some(Ending::Failed)
                        || known.n_failures >= self.shared.table.max_tries);
                if !is_done {
                    self.hosts.push(known.site, known.page, Why::Pass);
                }
            }
            Order::Scheduled(_) => {}
        }
    }
}

/// What may be spent, and what was spent before; the command line goes before perennial.toml.
fn spending_of(
    writer: &mut ArchiveWriter,
    table: &CrawlTable,
    seeds: &Seeds,
    numbers: &[i64],
    options: &CrawlOptions,
    now: Timestamp,
) -> anyhow::Result<Spending> {
    let written = table.allowance()?;
    let overall = Allowance {
        visits: options.budget.or(written.visits),
        bytes_per_day: options.bytes_per_day.or(written.bytes_per_day),
    };
    let of_seeds = || numbers.iter().copied().zip(seeds.0.iter().map(|seed| seed.allowance));
    let periods = of_seeds().map(|(_, allowance)| allowance).chain([overall]).filter_map(|a| a.visits);
    let longest = periods.map(|budget| budget.period).max().unwrap_or(Span::ZERO);
    writer.store_mut().write(|commit| commit.forget_spent(spending::forgotten_before(longest, now)))?;
    Spending::load(writer.store(), overall, of_seeds(), now)
}

fn schedule_config(options: &CrawlOptions, budget: Option<Budget>) -> ScheduleConfig {
    ScheduleConfig {
        strategy: options.strategy,
        budget,
        slot: options.slot,
        pacing: options.pacing,
        interval: options.interval,
        ..ScheduleConfig::default()
    }
}

/// A virtual clock never runs backwards: it goes on where the last crawl left it.
fn resume_clock(clock: &Clock, writer: &ArchiveWriter) -> anyhow::Result<Clock> {
    let last = writer.store().last_visit()?;
    if let Some(last) = last {
        clock.leap_to(last);
    }
    let Clock::TimeLapse { factor, start, .. } = clock else { return Ok(clock.clone()) };
    match last {
        Some(last) if last > *start => Ok(Clock::time_lapse(*factor, last)),
        // The same clock, not one like it: the demonstration's web lives by it too.
        _ => Ok(clock.clone()),
    }
}

/// Captures that no lesson was drawn from: fetched before a crash, or imported.
fn analyse_what_was_left(
    archive: &Archive,
    writer: &mut ArchiveWriter,
    analyst: &Arc<Analyst>,
    warn: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    let n_left = writer.store().count_backlog()?;
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

/// Number and start of a pass over everything.
type Pass = (i64, Timestamp);

/// Seeds get their numbers and their places in the frontier; `--once` begins its pass.
fn prepare(
    writer: &mut ArchiveWriter,
    seeds: &Seeds,
    options: &CrawlOptions,
    now: Timestamp,
) -> anyhow::Result<(Vec<i64>, Option<Pass>)> {
    let urls: Vec<String> = seeds.0.iter().map(|seed| seed.scope.seed.to_string()).collect();
    writer.store_mut().write(|commit| {
        let numbers = commit.seed_numbers(&urls)?;
        for (url, &seed) in urls.iter().zip(&numbers) {
            let (url, kind) = (url.clone(), PageKind::Page);
            commit.put_discovery(&Discovery { url, kind, seed, depth: 0, n_redirects: 0, changed: None })?;
        }
        let pass = if options.once { Some(commit.begin_pass(now)?) } else { None };
        Ok((numbers, pass))
    })
}
