//! `perennial patterns`: when pages change, as sparklines, JSON or a chart.

use std::fmt::Write as _;
use std::io::{self, Write};

use perennial_core::pattern::{Cycle, Days, PagePatterns, Pattern, patterns_of};
use perennial_core::schedule::{ScheduleConfig, Scheduler};
use perennial_core::time::{DayKind, LocalClock};
use serde::Serialize;

use super::context::not_found;
use super::{Context, Exit};
use crate::archive;
use crate::learn::{self, Followed, PageHistory, histories};

/// Shows when pages change and how much that matters.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  perennial patterns https://example.org/\n  perennial patterns example.org --zone Europe/Berlin\n  \
    perennial patterns https://example.org/ --format svg > pattern.svg\n  perennial patterns --json --periods 8"
)]
pub(super) struct Patterns {
    /// A page's address or a site's host [default: all pages]
    #[arg(value_name = "URL|SITE")]
    only: Option<String>,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Periods of a day, 1 to 120
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=120), value_name = "N")]
    periods: u16,

    /// The time zone by which the site lives [default: the one given to `perennial add`, else UTC]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// A holiday of the site, as 2026-12-25; may be given several times
    #[arg(long, value_name = "DATE")]
    holiday: Vec<String>,

    /// At most so many pages, those with most captures first
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Svg,
}

#[derive(Serialize)]
struct PageReport {
    url: String,
    n_looks: usize,
    n_not_analysed: usize,
    changes_per_day: f64,
    cycle: &'static str,
    index_threshold: f64,
    patterns: Vec<PatternReport>,
    /// The shared pattern that fits best, and how surely.
    group: Option<u8>,
    group_share: Option<f32>,
    /// Learned changes an hour: the periods of a workday, then those of other days.
    learned_rates: Vec<f32>,
}

#[derive(Serialize)]
struct PatternReport {
    days: String,
    sureness: f64,
    omega: Vec<f64>,
    n_seen: Vec<f64>,
}

impl Patterns {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let given = self.zone.as_deref().map(LocalClock::of_zone).transpose()?;
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let now = archive::now();
        let mut found = histories(store, self.only.as_deref(), now)?;
        if let (true, Some(only)) = (found.is_empty(), &self.only) {
            return Err(not_found(store, only));
        }
        let followed = Followed::of(archive, store)?;
        let config = ScheduleConfig { n_periods: self.periods, ..ScheduleConfig::default() };
        let scheduler = learn::scheduler(store, &followed, config, 0, now)?;
        found.sort_by_key(|history| std::cmp::Reverse(history.looks.len()));
        found.truncate(self.top);
        let clock_of = |url: &str| {
            let clock =
                given.as_ref().or_else(|| followed.clock_of(url)).cloned().unwrap_or_else(LocalClock::utc);
            clock.with_holidays_from(self.holiday.iter().map(String::as_str))
        };
        let reports: Vec<PageReport> = found
            .iter()
            .map(|history| Ok(report(history, &clock_of(&history.url)?, self.periods, &scheduler)))
            .collect::<anyhow::Result<_>>()?;
        match self.format {
            Format::Svg => io::stdout().lock().write_all(svg(&reports).as_bytes())?,
            Format::Json => writeln!(io::stdout().lock(), "{}", serde_json::to_string_pretty(&reports)?)?,
            Format::Text => {
                context.print(&reports, |out| reports.iter().try_for_each(|page| print(page, out)))?
            }
        }
        Ok(Exit::Done)
    }
}

fn report(history: &PageHistory, clock: &LocalClock, n_periods: u16, scheduler: &Scheduler) -> PageReport {
    let PagePatterns { cycle, patterns, changes_per_day, n_looks } =
        patterns_of(&history.looks, clock, None, n_periods);
    let belief = scheduler.belief(history.page);
    let mean = patterns.iter().map(Pattern::index_threshold).sum::<f64>() / patterns.len().max(1) as f64;
    PageReport {
        url: history.url.clone(),
        n_looks,
        n_not_analysed: history.n_unjudged,
        changes_per_day,
        cycle: name_of_cycle(cycle),
        index_threshold: mean,
        patterns: patterns.into_iter().map(pattern_report).collect(),
        group: belief.as_ref().and_then(|belief| belief.shape).map(|shape| shape.0),
        group_share: belief.as_ref().and_then(|belief| belief.shape).map(|shape| shape.1),
        learned_rates: belief.map(|belief| belief.rates).unwrap_or_default(),
    }
}

fn pattern_report(pattern: Pattern) -> PatternReport {
    PatternReport {
        days: name_of_days(pattern.days),
        sureness: pattern.sureness(),
        omega: pattern.omega,
        n_seen: pattern.n_seen,
    }
}

fn name_of_cycle(cycle: Cycle) -> &'static str {
    match cycle {
        Cycle::Day(_) => "day",
        Cycle::Weekday(_) => "weekday",
        Cycle::Week => "week",
        Cycle::Month => "month",
    }
}

fn name_of_days(days: Days) -> String {
    const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    match days {
        Days::Kind(DayKind::Workday) => "workday".to_owned(),
        Days::Kind(DayKind::Weekend) => "weekend".to_owned(),
        Days::Kind(DayKind::Holiday) => "holiday".to_owned(),
        Days::Weekday(day) => NAMES.get(usize::from(day)).copied().unwrap_or("day").to_owned(),
        Days::All => "all days".to_owned(),
    }
}

fn print(page: &PageReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", page.url)?;
    writeln!(
        out,
        "  {} looks, {:.2} changes a day, described by a {}; worth indexing from {:.3}",
        page.n_looks, page.changes_per_day, page.cycle, page.index_threshold
    )?;
    if page.n_not_analysed > 0 {
        writeln!(out, "  {} changes not analysed yet, counted as middling", page.n_not_analysed)?;
    }
    let top = page.patterns.iter().flat_map(|pattern| &pattern.omega).copied().fold(0.0, f64::max);
    for pattern in &page.patterns {
        let line = sparkline(&pattern.omega, &pattern.n_seen, top);
        writeln!(
            out,
            "  {:<9} {line}  up to {top:.2}, {:.0} % sure",
            pattern.days,
            100.0 * pattern.sureness
        )?;
    }
    if let (Some(group), Some(share)) = (page.group, page.group_share) {
        writeln!(out, "  changes like group {group} ({:.0} %)", 100.0 * share)?;
    }
    writeln!(out)
}

/// One character a period; a dot where nobody looked.
fn sparkline(values: &[f64], n_seen: &[f64], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |(value, n_seen): (&f64, &f64)| match *n_seen > 0.0 {
        false => '·',
        true => BARS[((value / top.max(1e-9) * 7.0).round() as usize).min(7)],
    };
    values.iter().zip(n_seen).map(bar).collect()
}

/// One panel a page: bars of the pattern by period, kinds of day above each other.
fn svg(pages: &[PageReport]) -> String {
    let n_panels: usize = pages.iter().map(|page| page.patterns.len().max(1)).sum();
    let height = 40 + 110 * n_panels;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    let mut y = 30;
    for page in pages {
        let top = page.patterns.iter().flat_map(|pattern| &pattern.omega).copied().fold(1e-9, f64::max);
        for pattern in &page.patterns {
            panel(&mut out, y, &format!("{} ({})", page.url, pattern.days), &pattern.omega, top);
            y += 110;
        }
    }
    out.push_str("</svg>\n");
    out
}

fn panel(out: &mut String, y: usize, title: &str, omega: &[f64], top: f64) {
    let width = 720.0 / omega.len().max(1) as f64;
    let _ = writeln!(out, "<text x=\"20\" y=\"{}\">{}</text>", y, escaped(title));
    for (k, omega) in omega.iter().enumerate() {
        let height = 70.0 * omega / top;
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#2a6f97\"><title>{k}: {omega:.3}</title></rect>",
            20.0 + width * k as f64,
            y as f64 + 80.0 - height,
            (width - 1.0).max(0.5),
        );
    }
    let _ = writeln!(out, "<text x=\"20\" y=\"{}\" fill=\"#666\">0</text>", y + 94);
    let _ = writeln!(out, "<text x=\"720\" y=\"{}\" fill=\"#666\">{}</text>", y + 94, omega.len());
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
