//! `perennial lab rules mine`: rules, patterns, and the tree of a site over time (P-NEAR Figures 1 and 4).

use std::io::{self, Write};

use clap::Args;
use perennial_lab::rules::mining::{MiningConfig, SiteReport, site_charts};

use super::ThresholdOptions;
use super::read::HistorySource;
use crate::cli::context::document_on_stdout;
use crate::cli::{Context, Exit};
use perennial_engine::html::chart::{bars_to_svg, sparkline};

const AFTER_HELP: &str = "\
The rule `/, /docs/ => not /docs/old/` means: when the site and /docs/ change significantly, /docs/old/ \
does not and can be skipped.
  frequency    share of versions in which the head changes
  correlation  of head and tail, from -1 (never together) to 1
  confidence   share of the head's changes without one of the tail
  saved        fetches of the tail's pages in those versions, and the changes that were among them

Each bar of the tree is the share of a directory that changed from one version to the next.

Examples:
  perennial lab rules mine example.org
  perennial lab rules mine --history site.tsv.xz --alpha 0.01 --beta 0.1 --json
  perennial lab rules mine --history site.tsv.xz --format svg > site.svg";

/// Show the rules and patterns of a site's evolution, and its tree over time.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Mine {
    #[command(flatten)]
    source: HistorySource,

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
    #[arg(long, value_enum, default_value_t = RulesFormat::Text)]
    format: RulesFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RulesFormat {
    Text,
    Svg,
}

impl Mine {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let histories = self.source.read(context)?;
        let mining = MiningConfig {
            thresholds: self.thresholds.thresholds(),
            n_versions: self.versions,
            with_subsumed: self.subsumed,
            top: self.top,
        };
        let reports: Vec<SiteReport> = histories.iter().map(|history| mining.report(history)).collect();
        match self.format {
            RulesFormat::Svg => {
                let mut out = document_on_stdout();
                out.write_all(bars_to_svg(&site_charts(&reports)).as_bytes())?;
                out.flush()?;
            }
            RulesFormat::Text => {
                context.print(&reports, |out| reports.iter().try_for_each(|report| print(report, out)))?;
            }
        }
        Ok(Exit::Done)
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
        return writeln!(out, "  no rule: every directory changes when those above it change significantly");
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
