//! `perennial plan patterns`: when pages change, as sparklines, JSON or a chart.

use std::io::{self, Write};

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::pattern::calendar::DayFactors;
use perennial_core::pattern::{Cycle, PagePatterns, PatternDays, PeriodPattern, page_patterns};
use perennial_core::schedule::{Belief, ScheduleConfig, Scheduler};
use perennial_core::time::{DayKind, LocalClock};
use serde::Serialize;

use crate::cli::context::{document_on_stdout, json_on_stdout, not_found};
use crate::cli::{Context, Exit};
use perennial_engine::html::chart::{Bars, bars_to_svg, sparkline, text_axis};
use perennial_engine::learn::{
    self, DEFAULT_PERIODS, ENOUGH_VISITS, FollowedSites, PageHistory, confidence, expected_by_period,
    histories,
};

const AFTER_HELP: &str = "\
A bar is the expected importance of changes in that hour of the day, or on that day of the week or month for pages that change rarely. \
A dot is an hour without observations.
  up to            value of the highest bar; 1 is a completely new page
  sure             grows with the observations: three in each hour make it 50 %
  index threshold  mean of the bars: versions of less importance are gathered before one is indexed
  as the scheduler expects   prediction that decides visits, learned from this page and similar ones; the bars above are averages
  usually on ...   days on which the scheduler expects most changes
  group            pages of one group change at the same hours; the share is the probability

Examples:
  perennial plan patterns https://example.org/
  perennial plan patterns example.org --zone Europe/Berlin
  perennial plan patterns https://example.org/ --format svg > pattern.svg
  perennial plan patterns --json --periods 8";

/// Chart when pages tend to change.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct PatternsArgs {
    /// URL of a page or host of a site [default: all pages]
    #[arg(value_name = "URL|SITE")]
    only: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = PatternFormat::Text)]
    format: PatternFormat,

    /// Periods per day, 1 to 120
    #[arg(long, default_value_t = DEFAULT_PERIODS, value_parser = clap::value_parser!(u16).range(1..=120), value_name = "N")]
    periods: u16,

    /// Time zone of the site's editors [default: timezone of the site, else UTC]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// Holiday of the site, such as 2026-12-25; repeatable
    #[arg(long, value_name = "DATE")]
    holiday: Vec<String>,

    /// Show N pages, those with most captures first
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PatternFormat {
    Text,
    Json,
    Svg,
}

#[derive(Serialize)]
struct PageReport {
    url: String,
    n_observations: usize,
    n_not_analysed: usize,
    changes_per_day: f64,
    cycle: &'static str,
    /// Unit of the bars.
    periods: String,
    /// Positions of the labels below the bars, and their texts.
    #[serde(skip)]
    ticks: Vec<(usize, String)>,
    /// Least importance of an indexed version: the mean of the pattern.
    index_threshold: f64,
    /// The prediction of the scheduler, which decides the visits.
    estimated: Vec<PatternReport>,
    /// Description of the days with most expected changes.
    days: Option<String>,
    /// Expected changes on each day of the week, on holidays and on each day of the month, relative to the mean.
    day_factors: Option<DayFactorsReport>,
    /// Averages of the observations, as in the papers.
    patterns: Vec<PatternReport>,
    /// Number of the group whose shared pattern fits best.
    group: Option<u8>,
    /// Probability of that group.
    group_share: Option<f32>,
    /// Learned changes per hour: the periods of a workday, then those of other days.
    learned_rates: Vec<f32>,
}

#[derive(Serialize)]
struct DayFactorsReport {
    week: Vec<f32>,
    month: Vec<f32>,
    belief_in_week: f32,
    belief_in_month: f32,
}

impl DayFactorsReport {
    fn of(factors: &DayFactors) -> DayFactorsReport {
        let (belief_in_week, belief_in_month) = factors.belief();
        DayFactorsReport {
            week: factors.week().to_vec(),
            month: factors.month().to_vec(),
            belief_in_week,
            belief_in_month,
        }
    }
}

#[derive(Serialize)]
struct PatternReport {
    days: String,
    sureness: f64,
    omega: Vec<f64>,
    n_seen: Vec<f64>,
}

impl PatternsArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let given = self.zone.as_deref().map(LocalClock::from_zone).transpose()?;
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let now = perennial_archive::now();
        let mut found = histories(store, self.only.as_deref(), now)?;
        if let (true, Some(only)) = (found.is_empty(), &self.only) {
            return Err(not_found(store, only));
        }
        let followed = FollowedSites::load(archive, store)?;
        let written = learn::schedule_config(&archive.settings().crawl, None);
        let config = ScheduleConfig { n_periods: self.periods, ..written };
        let scheduler = learn::scheduler(store, &followed, config, 0, now)?;
        found.sort_by_key(|history| std::cmp::Reverse(history.observations.len()));
        found.truncate(self.top);
        let clock_of = |url: &str| {
            let clock = given.clone().or_else(|| followed.local_clock(url)).unwrap_or_else(LocalClock::utc);
            clock.with_holidays_from(self.holiday.iter().map(String::as_str))
        };
        let reports: Vec<PageReport> = found
            .iter()
            .map(|history| Ok(report(history, &clock_of(&history.url)?, self.periods, &scheduler)))
            .collect::<anyhow::Result<_>>()?;
        match self.format {
            PatternFormat::Svg => {
                let mut out = document_on_stdout();
                out.write_all(bars_to_svg(&panels(&reports)).as_bytes())?;
                out.flush()?;
            }
            PatternFormat::Json => {
                let mut out = json_on_stdout();
                writeln!(out, "{}", serde_json::to_string_pretty(&reports)?)?;
                out.flush()?;
            }
            PatternFormat::Text => context.print(&reports, |out| print(&reports, out))?,
        }
        Ok(Exit::Done)
    }
}

fn report(history: &PageHistory, clock: &LocalClock, n_periods: u16, scheduler: &Scheduler) -> PageReport {
    let found = page_patterns(&history.observations, clock, None, n_periods);
    let index_threshold = found.index_threshold();
    let PagePatterns { cycle, patterns, changes_per_day, n_observations } = found;
    let belief = scheduler.belief(history.page);
    PageReport {
        url: history.url.clone(),
        n_observations,
        n_not_analysed: history.n_unknown,
        changes_per_day,
        cycle: cycle_name(cycle),
        periods: periods_label(cycle, clock),
        ticks: cycle_ticks(cycle),
        index_threshold,
        estimated: belief.as_ref().map(estimated_patterns).unwrap_or_default(),
        days: belief.as_ref().and_then(|belief| Some(belief.days.as_ref()?.habit()?.to_string())),
        day_factors: belief.as_ref().and_then(|belief| belief.days.as_ref().map(DayFactorsReport::of)),
        patterns: patterns.into_iter().map(pattern_report).collect(),
        group: belief.as_ref().and_then(|belief| belief.shape).map(|shape| shape.0),
        group_share: belief.as_ref().and_then(|belief| belief.shape).map(|shape| shape.1),
        learned_rates: belief.map(|belief| belief.rates).unwrap_or_default(),
    }
}

/// The prediction of the scheduler in the form of the averages.
fn estimated_patterns(belief: &Belief) -> Vec<PatternReport> {
    let sureness = confidence(belief);
    let report = |(days, omega): (DayKind, Vec<f64>)| PatternReport {
        days: days_name(PatternDays::Kind(days)),
        sureness,
        n_seen: vec![f64::from(belief.n_visits); omega.len()],
        omega,
    };
    [DayKind::Workday, DayKind::Weekend].into_iter().zip(expected_by_period(belief)).map(report).collect()
}

fn pattern_report(pattern: PeriodPattern) -> PatternReport {
    PatternReport {
        days: days_name(pattern.days),
        sureness: pattern.sureness(),
        omega: pattern.omega,
        n_seen: pattern.n_seen,
    }
}

fn cycle_name(cycle: Cycle) -> &'static str {
    match cycle {
        Cycle::Day(_) => "day",
        Cycle::Weekday(_) => "weekday",
        Cycle::Week => "week",
        Cycle::Month => "month",
    }
}

fn periods_label(cycle: Cycle, clock: &LocalClock) -> String {
    let unit = match cycle {
        Cycle::Day(_) | Cycle::Weekday(_) => "hour of the day",
        Cycle::Week => "day of the week",
        Cycle::Month => "day of the month",
    };
    format!("{unit}, {}", clock.zone())
}

/// Labels below the bars of a cycle.
fn cycle_ticks(cycle: Cycle) -> Vec<(usize, String)> {
    match cycle {
        Cycle::Day(n_periods) | Cycle::Weekday(n_periods) => (0..24usize)
            .step_by(3)
            .filter(|hour| hour * usize::from(n_periods) % 24 == 0)
            .map(|hour| (hour * usize::from(n_periods) / 24, hour.to_string()))
            .collect(),
        Cycle::Week => NAMES.iter().map(|name| name[..2].to_owned()).enumerate().collect(),
        Cycle::Month => (1..=31usize).step_by(7).map(|day| (day - 1, day.to_string())).collect(),
    }
}

const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn days_name(days: PatternDays) -> String {
    match days {
        PatternDays::Kind(DayKind::Workday) => "workday".to_owned(),
        PatternDays::Kind(DayKind::Weekend) => "weekend".to_owned(),
        PatternDays::Kind(DayKind::Holiday) => "holiday".to_owned(),
        PatternDays::Weekday(day) => NAMES.get(usize::from(day)).copied().unwrap_or("day").to_owned(),
        PatternDays::All => "all days".to_owned(),
    }
}

fn print(pages: &[PageReport], out: &mut dyn Write) -> io::Result<()> {
    if pages.is_empty() {
        return writeln!(out, "no page has been captured; use `perennial run` or `perennial import`");
    }
    pages.iter().try_for_each(|page| print_page(page, out))?;
    writeln!(
        out,
        "Each bar is the expected importance of changes, from 0 to 1; a dot is an hour without observations.\n\
         `perennial plan patterns --help` explains the terms."
    )
}

fn print_page(page: &PageReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", page.url)?;
    if page.n_observations < ENOUGH_VISITS as usize {
        return writeln!(
            out,
            "  {} observations, too few to tell when it changes\n",
            page.n_observations + 1
        );
    }
    writeln!(
        out,
        "  {} observations, {:.2} changes per day, cycle of a {}; index threshold {:.3}",
        page.n_observations, page.changes_per_day, page.cycle, page.index_threshold
    )?;
    if page.n_not_analysed > 0 {
        writeln!(
            out,
            "  {} unreadable changes, with an importance of at most {}",
            page.n_not_analysed,
            ChangeStatus::UNKNOWN
        )?;
    }
    // The labels of days need two columns each.
    let is_wide = page.cycle == "week";
    let top = highest_bar(page);
    for pattern in &page.patterns {
        let seen = pattern.omega.iter().zip(&pattern.n_seen);
        let line = sparkline(seen.map(|(omega, n_seen)| (*n_seen > 0.0).then_some(*omega)), top);
        let line: String =
            if is_wide { line.chars().flat_map(|bar| [bar, bar, ' ']).collect() } else { line };
        writeln!(
            out,
            "  {:<9} {line}  up to {top:.2}, {:.0} % sure",
            pattern.days,
            100.0 * pattern.sureness
        )?;
    }
    if !page.patterns.is_empty() {
        let width = if is_wide { 3 } else { 1 };
        let ticks: Vec<(usize, String)> =
            page.ticks.iter().map(|(place, label)| (place * width, label.clone())).collect();
        writeln!(out, "  {:<9} {}  ({})", "", text_axis(&ticks), page.periods)?;
    }
    for pattern in &page.estimated {
        let top = pattern.omega.iter().copied().fold(0.0, f64::max);
        let line = sparkline(pattern.omega.iter().map(|omega| Some(*omega)), top);
        writeln!(out, "  {:<9} {line}  up to {top:.2}, as the scheduler expects", pattern.days)?;
    }
    if let Some(days) = &page.days {
        writeln!(out, "  usually {days}, as the scheduler expects")?;
    }
    if let (Some(group), Some(share)) = (page.group, page.group_share) {
        writeln!(out, "  changes like group {group} ({:.0} %)", 100.0 * share)?;
    }
    writeln!(out)
}

/// One panel per page and kind of day.
fn panels(pages: &[PageReport]) -> Vec<Bars> {
    let of_page = |page: &PageReport| {
        let top = highest_bar(page);
        let panel = |pattern: &PatternReport| Bars {
            title: format!("{} ({})", page.url, pattern.days),
            values: pattern.omega.clone(),
            top,
            ticks: page.ticks.clone(),
            below: page.periods.clone(),
        };
        page.patterns.iter().map(panel).collect::<Vec<_>>()
    };
    pages.iter().flat_map(of_page).collect()
}

fn highest_bar(page: &PageReport) -> f64 {
    page.patterns.iter().flat_map(|pattern| &pattern.omega).copied().fold(0.0, f64::max)
}
