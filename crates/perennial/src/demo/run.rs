//! Options -> the demonstration. It serves the living web and archives it in time-lapse with the real crawler. Then it
//! compares the archive with the true changes and with simulated strategies. docs/papers.md defines the measures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use perennial_core::schedule::{Budget, Goal, ScheduleConfig, Strategy};
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_lab::drive::{self, DriveConfig, Visibility};
use perennial_lab::quality::Window;
use perennial_lab::strategy::SimulatedStrategy;
use perennial_lab::world::World;
use perennial_render::launch::LaunchOptions;
use perennial_render::{BrowserOptions, Chromium};
use rayon::prelude::*;
use serde::Serialize;
use tokio::net::TcpListener;

use super::server::LivingServer;
use super::truth::Truth;
use super::web::LivingWeb;
use super::{learned, measure};
use perennial_archive::settings::site::{parse_url, parse_zone};
use perennial_archive::settings::{PageRenderer, Seed, edit, follow};
use perennial_archive::{Archive, is_archive};
use perennial_crawler::clock::Clock;
use perennial_crawler::{CrawlOptions, CrawlStatus, StopHandle, crawl};
use perennial_engine::analyse::Analyst;

/// Number of instants at which the coherence of the archive is measured.
const N_QUERIES: u32 = 56;

/// Options of the demonstration.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Folder of the archive. An existing archive is continued.
    pub root: PathBuf,
    /// Seed of the random numbers of the web and of the crawl.
    pub seed: u64,
    /// Length in virtual days.
    pub days: u32,
    /// Fetches per virtual hour, as a share of the pages.
    pub budget: f64,
    /// Virtual seconds per real second; `None` runs as fast as possible.
    pub factor: Option<f64>,
    /// Strategy of the crawl.
    pub strategy: Strategy,
    /// Goal of the crawl.
    pub goal: Goal,
    /// Whether to follow the feeds of the sites.
    pub feeds: bool,
    /// Whether to add the site that needs a browser.
    pub browser: bool,
    /// Whether style sheets and pictures change too.
    pub subresources_change: bool,
    /// The handle with which a different thread stops the crawl.
    pub stop: StopHandle,
}

/// Completeness and coherence of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Caught {
    /// Number of visits to pages.
    pub fetches: u64,
    /// Captured importance divided by all importance, weighted by omega(P).
    pub completeness_pooled: f64,
    /// Weighted mean of the pages' completeness, with weights omega(P) (P-QUALITY Definition 5.13).
    pub completeness_weighted: f64,
    /// Share of versions captured.
    pub completeness_count: f64,
    /// Share of a snapshot that was valid at one instant, weighted; mean over time.
    pub coherence_weighted: f64,
    /// Share of the visits after the first week that were to noise-only pages.
    pub noise_share: f64,
}

impl Caught {
    /// The mean of several results; zero if there are none.
    fn mean(all: &[Caught]) -> Caught {
        let mean = |of: fn(&Caught) -> f64| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
        Caught {
            fetches: mean(|caught| caught.fetches as f64).round() as u64,
            completeness_pooled: mean(|caught| caught.completeness_pooled),
            completeness_weighted: mean(|caught| caught.completeness_weighted),
            completeness_count: mean(|caught| caught.completeness_count),
            coherence_weighted: mean(|caught| caught.coherence_weighted),
            noise_share: mean(|caught| caught.noise_share),
        }
    }
}

/// The results of one site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteResult {
    /// The site's name.
    pub site: &'static str,
    /// Number of visits to the site's pages.
    pub fetches: u64,
    /// The same in the simulator.
    pub fetches_simulated: u64,
    /// Captured importance divided by all importance.
    pub completeness_pooled: f64,
    /// The same in the simulator.
    pub completeness_simulated: f64,
    /// Share of a snapshot of the site that was valid at one instant, weighted; mean over time.
    pub coherence_weighted: f64,
    /// The same in the simulator.
    pub coherence_simulated: f64,
}

/// The results of following the sites' feeds.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct FeedsResult {
    /// Number of polls, which have a separate budget.
    pub polls: u64,
    /// Number of polls that found new items.
    pub polls_with_news: u64,
    /// Number of items published until the last poll of their feed.
    pub items_published: u64,
    /// Number of published items that no poll found.
    pub items_lost: u64,
}

/// The results of the demonstration.
#[derive(Clone, Debug, Serialize)]
pub struct DemoResult {
    /// Completeness and coherence of the archive.
    #[serde(flatten)]
    pub caught: Caught,
    /// Length in virtual days.
    pub days: u32,
    /// Name of the strategy.
    pub strategy: &'static str,
    /// Name of the goal.
    pub goal: &'static str,
    /// The same strategy in the simulator, as the mean of several crawls. The difference is due to the real crawl.
    pub simulated: Caught,
    /// The papers' best strategy, Importance-Pattern, simulated with the same budget.
    pub importance_pattern: Caught,
    /// A fixed interval with as many fetches, simulated.
    pub fixed_interval: Caught,
    /// Number of caught important changes (importance 0.1 or more).
    pub important_caught: u64,
    /// Number of all important changes.
    pub important_total: u64,
    /// Results of the feeds; `None` if they were not followed.
    pub feeds: Option<FeedsResult>,
    /// The results of each site.
    pub sites: Vec<SiteResult>,
    /// Folder of the archive.
    pub archive: PathBuf,
    /// Path of the report.
    pub report: PathBuf,
}

/// The three crawls of one world, for the report.
pub struct Crawls {
    /// The web that was crawled.
    pub web: LivingWeb,
    /// The importance of the web's changes.
    pub truth: Truth,
    /// The web as the simulator sees it.
    pub world: World,
    /// The real crawl, read back from the archive.
    pub real: drive::SimulatedCrawl,
    /// A fixed interval with as many fetches, simulated.
    pub fixed: drive::SimulatedCrawl,
    /// Changes per hour that the real crawl learned, by local hour of a workday.
    pub learned: Vec<Vec<f64>>,
}

/// Runs the demonstration. It calls `show` a few times per second with the state of the crawl and the virtual time.
pub fn demo(
    options: &DemoOptions,
    mut show: impl FnMut(&CrawlStatus, Timestamp),
    mut warn: impl FnMut(&str),
) -> anyhow::Result<(DemoResult, Crawls)> {
    let start = Timestamp::parse("2026-03-02")?;
    let archive = open_archive(&options.root)?;
    let mut web = match has_browser(options, &archive, &mut warn) {
        true => LivingWeb::with_rendered_site(options.seed, start, options.days),
        false => LivingWeb::new(options.seed, start, options.days),
    };
    web.subresources_change = options.subresources_change;
    let resumed = archive.store()?.last_visit()?.unwrap_or(start).max(start);
    let clock = match options.factor {
        Some(factor) => Clock::time_lapse(factor, resumed),
        None => Clock::leaping(resumed),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let server = runtime.block_on(serve(&web, &archive, &clock))?;
    let archive = follow_sites(&archive, &web, &server, options)?;
    let crawl_options = CrawlOptions {
        strategy: options.strategy,
        goal: Some(options.goal),
        budget: Some(daily_budget(&web, options.budget)),
        time_limit: Some(web.end - resumed),
        delay: Some(Span::ZERO),
        connections: 2,
        clock: clock.clone(),
        seed: options.seed,
        stop: options.stop.clone(),
        ..CrawlOptions::default()
    };
    crawl(&archive, crawl_options, |status| show(status, clock.now()), warn)?;
    let urls: Vec<String> = (0..web.pages.len()).map(|page| server.url(page)).collect();
    runtime.shutdown_background();
    let real = measure::page_captures(&archive, &web, &urls)?;
    let truth = Truth::of(&web, &Analyst::for_archive(&archive)?);
    let learned = learned::learned_rates(&archive, &web, &urls)?;
    let feeds = match options.feeds {
        true => Some(measure::compare_feeds(&archive, &web, &server.seeds())?),
        false => None,
    };
    let (result, crawls) = compare(options, web, truth, real, learned);
    Ok((DemoResult { feeds, ..result }, crawls))
}

/// Number of simulated crawls in the mean. Each begins a little later than the previous one.
const N_SIMULATIONS: u32 = 6;
const SHIFT_SECS: i64 = 131;

/// Time between two rankings of the papers' strategies.
const SLOT: Span = Span::from_millis(15 * 60 * 1000);

fn compare(
    options: &DemoOptions,
    web: LivingWeb,
    truth: Truth,
    real: drive::SimulatedCrawl,
    learned: Vec<Vec<f64>>,
) -> (DemoResult, Crawls) {
    let world = web.world(&truth);
    let window = Window { from: web.start, until: web.end };
    let fetches = real.captures.iter().map(Vec::len).sum::<usize>() as f64;
    let hours = (web.end - web.start).as_hours_f64();
    let simulate = |strategy, budget, number: u32| {
        let (budget, goal) = (Some(budget), options.goal);
        let schedule = ScheduleConfig { goal, budget, ..ScheduleConfig::default() };
        let config = DriveConfig {
            strategy,
            schedule,
            slot: SLOT,
            visibility: Visibility::Difference,
            known: None,
            announced_share: 0.0,
            clock: LocalClock::utc(),
            seed: options.seed,
        };
        let start = world.start + Span::from_secs(SHIFT_SECS * i64::from(number));
        only_of_living(&web, drive::crawl(&World { start, ..world.clone() }, &config))
    };
    let simulated: Vec<drive::SimulatedCrawl> = (0..N_SIMULATIONS)
        .into_par_iter()
        .map(|number| simulate(options.strategy.into(), daily_budget(&web, options.budget), number))
        .collect();
    let of_papers = simulate(SimulatedStrategy::IMPORTANCE_PATTERN, daily_budget(&web, options.budget), 0);
    let fixed = simulate(SimulatedStrategy::FIXED_INTERVAL, Budget::per_hour(fetches / hours), 0);
    let caught = |crawl: &drive::SimulatedCrawl| caught(&web, &world, crawl, window);
    let all: Vec<Caught> = simulated.iter().map(caught).collect();
    let (important_caught, important_total) = measure::count_important(&web, &truth, &real);
    let result = DemoResult {
        caught: caught(&real),
        days: options.days,
        strategy: options.strategy.name(),
        goal: options.goal.name(),
        simulated: Caught::mean(&all),
        importance_pattern: caught(&of_papers),
        fixed_interval: caught(&fixed),
        important_caught,
        important_total,
        feeds: None,
        sites: by_site(&web, &world, &real, &simulated[0], window),
        archive: options.root.clone(),
        report: PathBuf::new(),
    };
    (result, Crawls { web, truth, world, real, fixed, learned })
}

/// Removes captures of closed sites from a simulated crawl, because the simulator cannot close sites.
fn only_of_living(web: &LivingWeb, mut crawl: drive::SimulatedCrawl) -> drive::SimulatedCrawl {
    for (page, captures) in web.pages.iter().zip(&mut crawl.captures) {
        if let Some(dies_at) = web.sites[page.site].dies_at {
            captures.retain(|&at| at < dies_at);
        }
    }
    crawl
}

fn caught(web: &LivingWeb, world: &World, crawl: &drive::SimulatedCrawl, window: Window) -> Caught {
    let quality = crawl.quality(world, window, N_QUERIES);
    Caught {
        fetches: crawl.captures.iter().map(Vec::len).sum::<usize>() as u64,
        completeness_pooled: quality.completeness.pooled,
        completeness_weighted: quality.completeness.weighted,
        completeness_count: quality.completeness.count,
        coherence_weighted: quality.coherence.weighted,
        noise_share: measure::noise_share(web, crawl),
    }
}

fn by_site(
    web: &LivingWeb,
    world: &World,
    real: &drive::SimulatedCrawl,
    simulated: &drive::SimulatedCrawl,
    window: Window,
) -> Vec<SiteResult> {
    let of = |crawl: &drive::SimulatedCrawl, site: usize| {
        let mine = |place: &usize| world.pages[*place].site.0 as usize == site;
        let places: Vec<usize> = (0..world.pages.len()).filter(mine).collect();
        let pages = places.iter().map(|&place| world.pages[place].clone()).collect();
        let captures = places.iter().map(|&place| crawl.captures[place].clone()).collect();
        let (part, crawl) = (World { pages, ..world.clone() }, drive::SimulatedCrawl { captures });
        let quality = crawl.quality(&part, window, N_QUERIES);
        let n_fetches = crawl.captures.iter().map(Vec::len).sum::<usize>() as u64;
        (n_fetches, quality.completeness.pooled, quality.coherence.weighted)
    };
    let site = |number: usize| {
        let (fetches, completeness_pooled, coherence_weighted) = of(real, number);
        let (fetches_simulated, completeness_simulated, coherence_simulated) = of(simulated, number);
        SiteResult {
            site: web.sites[number].name,
            fetches,
            fetches_simulated,
            completeness_pooled,
            completeness_simulated,
            coherence_weighted,
            coherence_simulated,
        }
    };
    (0..web.sites.len()).map(site).collect()
}

/// A daily budget, which lets the scheduler save visits in quiet hours for busy ones.
fn daily_budget(web: &LivingWeb, share: f64) -> Budget {
    Budget { visits: 24.0 * share * web.pages.len() as f64, period: Span::from_hours(24) }
}

/// Whether the site that needs a browser can be added. If not, `warn` receives the reason.
fn has_browser(options: &DemoOptions, archive: &Archive, warn: &mut impl FnMut(&str)) -> bool {
    if !options.browser {
        return false;
    }
    let sandbox = archive.settings().crawl.browser_sandbox;
    let launch = LaunchOptions { sandbox, ..LaunchOptions::default() };
    match Chromium::new(BrowserOptions { launch, ..BrowserOptions::default() }).engine() {
        Ok(_) => true,
        Err(error) => {
            warn(&format!("the site whose pages a script draws is left out: {error}"));
            false
        }
    }
}

fn open_archive(root: &Path) -> anyhow::Result<Archive> {
    let archive = if is_archive(root) { Archive::open(root)? } else { Archive::create(root)? };
    archive.mark_time_lapse()
}

/// Listens on the port of an interrupted demonstration if there was one, otherwise on any free port.
async fn serve(web: &LivingWeb, archive: &Archive, clock: &Clock) -> anyhow::Result<Arc<LivingServer>> {
    let port = archive.settings().seeds.iter().next().and_then(|seed| seed.scope.seed.port()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await.with_context(|| {
        format!("cannot listen on port {port} of this machine: is a demonstration running already?")
    })?;
    let clock = clock.clone();
    Ok(LivingServer::start(web.clone(), listener, Arc::new(move || clock.now()))?)
}

/// Adds the sites of the web to the archive's settings.
fn follow_sites(
    archive: &Archive,
    web: &LivingWeb,
    server: &LivingServer,
    options: &DemoOptions,
) -> anyhow::Result<Archive> {
    // The settings include the crawl's budget and goal, so `schedule` and the dashboard plan as the crawl did.
    let visits = daily_budget(web, options.budget).visits.ceil();
    edit(&archive.settings_path(), |document, _| {
        document["crawl"]["feeds"] = toml_edit::value(options.feeds);
        document["crawl"]["budget"] = toml_edit::value(format!("{visits}/1d"));
        document["crawl"]["goal"] = toml_edit::value(options.goal.name());
        Ok(())
    })?;
    let mut seeds = Vec::new();
    for (site, url) in web.sites.iter().zip(server.seeds()) {
        let url = parse_url(&url).map_err(anyhow::Error::msg)?;
        seeds.push(Seed {
            weight: site.weight,
            clock: Some(parse_zone(site.timezone).map_err(anyhow::Error::msg)?),
            renderer: if site.is_rendered { PageRenderer::Chromium } else { PageRenderer::Layout },
            allow_private: true,
            ..Seed::of_host(url)
        });
    }
    follow(&archive.settings_path(), &seeds)?;
    Archive::open(archive.root())
}
