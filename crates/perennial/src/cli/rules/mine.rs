//! `perennial rules mine`: rules, patterns, and the tree of a site over time (P-NEAR Figures 1 and 4).

use std::io::{self, Write};

use clap::Args;
use perennial_core::directory::{
    DeltaTree, Mined, Node, Rule, Significance, SiteHistory, Subsumed, Tree, live_directories, mine, n_pages,
};
use perennial_lab::rules::{savings, sizes, static_directories};
use serde::Serialize;

use super::ThresholdOptions;
use super::read::Source;
use crate::cli::context::document_on_stdout;
use crate::cli::{Context, Exit};
use perennial_engine::html::chart::{Bars, bars_to_svg, sparkline};

const AFTER_HELP: &str = "\
A rule `/, /docs/ => not /docs/old/` says: when the site and /docs/ change significantly, /docs/old/ \
does not, so that it could be skipped then.
  frequency    share of versions in which the head changes
  correlation  of head and tail, from -1 (never together) to 1
  confidence   share of the head's changes without one of the tail
  saved        fetches of the tail's pages in those versions, and the changes that were among them

Each bar of the tree is the share of a directory that changed from one version to the next.

Examples:
  perennial rules mine example.org
  perennial rules mine --history site.tsv.xz --alpha 0.01 --beta 0.1 --json
  perennial rules mine --history site.tsv.xz --format svg > site.svg";

/// Shows the rules and patterns of a site's evolution, and its tree over time.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Mine {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    thresholds: ThresholdOptions,

    /// Versions to learn from, the latest ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    versions: usize,

    /// Also show rules that others make superfluous
    #[arg(long)]
    subsumed: bool,

    /// Directories, rules and patterns to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Svg,
}

#[derive(Serialize)]
struct SiteReport {
    site: String,
    n_versions: usize,
    n_pages: u64,
    n_rules: usize,
    n_contradicted: usize,
    n_patterns: usize,
    rules: Vec<RuleReport>,
    patterns: Vec<PatternReport>,
    /// Directories in which nothing changed, the largest first.
    n_static_directories: usize,
    n_static_pages: u64,
    /// The directories with most change.
    directories: Vec<DirectoryReport>,
    /// Pages of each version.
    sizes: Vec<usize>,
    dates: Vec<String>,
}

#[derive(Serialize)]
struct RuleReport {
    head: Vec<String>,
    tail: String,
    frequency: f64,
    correlation: f64,
    confidence: f64,
    alpha: f64,
    n_pages: u64,
    saved_fetches: u64,
    missed_changes: u64,
    /// A directory below the tail changes with the head, so the rule is not used.
    contradicted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    subsumed_by: Option<&'static str>,
}

#[derive(Serialize)]
struct PatternReport {
    directories: Vec<String>,
    frequency: f64,
}

#[derive(Serialize)]
struct DirectoryReport {
    path: String,
    n_pages: u64,
    /// From each version to the next.
    degrees: Vec<f32>,
}

impl Mine {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let histories = self.source.read(context)?;
        let reports: Vec<SiteReport> = histories.iter().map(|history| self.report(history)).collect();
        match self.format {
            Format::Svg => {
                let mut out = document_on_stdout();
                out.write_all(bars_to_svg(&panels(&reports)).as_bytes())?;
                out.flush()?;
            }
            Format::Text => {
                context.print(&reports, |out| reports.iter().try_for_each(|report| print(report, out)))?;
            }
        }
        Ok(Exit::Done)
    }

    fn report(&self, history: &SiteHistory) -> SiteReport {
        let delta = history.delta_of_last(self.versions, Significance::Later);
        let mined = mine(&delta, &self.thresholds.thresholds(), self.subsumed);
        let still = static_directories(&delta);
        let first = history.versions.len().saturating_sub(self.versions);
        SiteReport {
            site: history.name.clone(),
            n_versions: delta.n_transitions() + 1,
            n_pages: n_pages(&delta, Tree::ROOT),
            n_rules: mined.rules.len(),
            n_contradicted: mined.rules.iter().filter(|rule| rule.is_contradicted).count(),
            n_patterns: mined.patterns.len(),
            rules: self.rules(&delta, &mined),
            patterns: self.patterns(&delta, &mined),
            n_static_directories: still.iter().filter(|node| delta.size(**node) > 0).count(),
            n_static_pages: still.iter().map(|node| n_pages(&delta, *node)).sum(),
            directories: self.directories(&delta),
            sizes: sizes(history).split_off(first),
            dates: history.versions[first..].iter().map(|version| version.date.clone()).collect(),
        }
    }

    fn rules(&self, delta: &DeltaTree, mined: &Mined) -> Vec<RuleReport> {
        let path = |node: &Node| delta.tree().path(*node);
        let report = |rule: &Rule| {
            let (saved_fetches, missed_changes) = savings(delta, rule);
            RuleReport {
                head: rule.head.iter().map(path).collect(),
                tail: path(&rule.tail),
                frequency: f64::from(rule.counts.first) / f64::from(rule.counts.n.max(1)),
                correlation: rule.correlation,
                confidence: rule.counts.confidence(),
                alpha: rule.alpha,
                n_pages: n_pages(delta, rule.tail),
                saved_fetches,
                missed_changes,
                contradicted: rule.is_contradicted,
                subsumed_by: rule.subsumed.map(|by| match by {
                    Subsumed::ByPattern => "a pattern",
                    Subsumed::ByRule => "a rule",
                }),
            }
        };
        let mut rules: Vec<RuleReport> = mined.rules.iter().map(report).collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.saved_fetches));
        rules.truncate(self.top);
        rules
    }

    fn patterns(&self, delta: &DeltaTree, mined: &Mined) -> Vec<PatternReport> {
        let n = delta.n_transitions().max(1) as f64;
        let mut patterns: Vec<PatternReport> = mined
            .patterns
            .iter()
            .map(|pattern| PatternReport {
                directories: pattern.chain.iter().map(|node| delta.tree().path(*node)).collect(),
                frequency: f64::from(pattern.n_together) / n,
            })
            .collect();
        patterns.sort_by(|a, b| b.frequency.total_cmp(&a.frequency).then(a.directories.cmp(&b.directories)));
        patterns.truncate(self.top);
        patterns
    }

    /// The directories with most changed pages, in the order of the tree.
    fn directories(&self, delta: &DeltaTree) -> Vec<DirectoryReport> {
        let changed = |node: &Node| delta.degrees(*node).map(|degree| u64::from(degree.n_pages)).sum::<u64>();
        let mut nodes = live_directories(delta);
        nodes.sort_by_cached_key(|node| (*node != Tree::ROOT, std::cmp::Reverse(changed(node))));
        nodes.truncate(self.top);
        let report = |node: &Node| {
            let mut degrees = vec![0.0; delta.n_transitions()];
            for degree in delta.degrees(*node) {
                degrees[(degree.transition - delta.oldest()) as usize] = degree.degree;
            }
            DirectoryReport { path: delta.tree().path(*node), n_pages: n_pages(delta, *node), degrees }
        };
        let mut reports: Vec<DirectoryReport> = nodes.iter().map(report).collect();
        reports.sort_by(|a, b| a.path.cmp(&b.path));
        reports
    }
}

fn print(report: &SiteReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {} pages, {} versions\n", report.site, report.n_pages, report.n_versions)?;
    let (from, to) = (report.dates.first(), report.dates.last());
    let largest = report.sizes.iter().copied().max().unwrap_or(0) as f64;
    let line = sparkline(report.sizes.iter().map(|size| Some(*size as f64)), largest);
    writeln!(
        out,
        "  {:<40} {line}  pages, {} to {}",
        "size",
        from.map_or("", String::as_str),
        to.map_or("", String::as_str)
    )?;
    for directory in &report.directories {
        let top = directory.degrees.iter().copied().fold(0.0, f32::max);
        let line = sparkline(directory.degrees.iter().map(|degree| Some(f64::from(*degree))), f64::from(top));
        writeln!(out, "  {:<40}  {line}  up to {top:.3}, {} pages", directory.path, directory.n_pages)?;
    }
    writeln!(
        out,
        "\n  {} directories with {} pages never changed in these versions",
        report.n_static_directories, report.n_static_pages
    )?;
    print_rules(report, out)?;
    for pattern in &report.patterns {
        writeln!(
            out,
            "  together in {:.0} %: {}",
            100.0 * pattern.frequency,
            pattern.directories.join(", ")
        )?;
    }
    if report.n_patterns > report.patterns.len() {
        writeln!(
            out,
            "  ... and {} more patterns: --top shows more",
            report.n_patterns - report.patterns.len()
        )?;
    }
    writeln!(out)
}

fn print_rules(report: &SiteReport, out: &mut dyn Write) -> io::Result<()> {
    if report.n_rules == 0 {
        return writeln!(
            out,
            "  no rule: no directory stands still when those above it change significantly"
        );
    }
    writeln!(out, "  {} rules, {} of them contradicted from below", report.n_rules, report.n_contradicted)?;
    for rule in &report.rules {
        writeln!(out, "  {} => not {}", rule.head.join(", "), rule.tail)?;
        writeln!(
            out,
            "      frequency {:.2}, correlation {:.2}, confidence {:.2}; saved {} fetches with {} changes among them{}{}",
            rule.frequency,
            rule.correlation,
            rule.confidence,
            rule.saved_fetches,
            rule.missed_changes,
            if rule.contradicted { "; not used: a directory below changes with the head" } else { "" },
            rule.subsumed_by.map(|by| format!("; superfluous because of {by}")).unwrap_or_default()
        )?;
    }
    Ok(())
}

/// The size of each site over time, then its directories.
fn panels(reports: &[SiteReport]) -> Vec<Bars> {
    let of_site = |report: &SiteReport| {
        // The day is enough, and six of them stand beside each other without touching.
        let day = |date: &String| date.split('T').next().unwrap_or_default().to_owned();
        let ticks = |dates: &[String]| {
            let step = dates.len().div_ceil(6).max(1);
            dates.iter().enumerate().step_by(step).map(|(at, date)| (at, day(date))).collect::<Vec<_>>()
        };
        let size = Bars {
            title: format!("{}: size", report.site),
            values: report.sizes.iter().map(|size| *size as f64).collect(),
            top: report.sizes.iter().copied().max().unwrap_or(0) as f64,
            ticks: ticks(&report.dates),
            below: "pages".to_owned(),
        };
        let directory = |directory: &DirectoryReport| Bars {
            title: format!("{} ({} pages)", directory.path, directory.n_pages),
            values: directory.degrees.iter().map(|degree| f64::from(*degree)).collect(),
            top: f64::from(directory.degrees.iter().copied().fold(0.0, f32::max)),
            ticks: ticks(report.dates.get(1..).unwrap_or_default()),
            below: "degree of change".to_owned(),
        };
        std::iter::once(size).chain(report.directories.iter().map(directory)).collect::<Vec<_>>()
    };
    reports.iter().flat_map(of_site).collect()
}
