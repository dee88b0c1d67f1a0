//! `perennial quality`: the archive's looks -> estimates of its completeness and coherence.

use std::io::Write;

use anyhow::bail;
use perennial_core::quality::estimate::{CoherenceEstimate, CompletenessEstimate};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::context::not_found;
use super::{Context, Exit, parse_time};
use crate::learn::Followed;
use crate::quality::{SiteQuality, archive_means, measure};

/// Estimates completeness and coherence of the archive. Changes between two captures are not observed, so each number is
/// given as a lower bound, a likely value and an upper bound. A version that was certainly missed counts in all three. A
/// version that was probably missed, given how often the page changes, counts in the likely value.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  perennial quality
  perennial quality news.example --at 2026-11-16T09:00:00Z
  perennial quality --json")]
pub(super) struct Quality {
    /// One site only, by its host
    site: Option<String>,

    /// Instant of the snapshot whose coherence is estimated [default: the last capture]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
}

impl Quality {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let Some(last) = store.last_capture()? else {
            bail!("the archive has no captures yet: `perennial crawl` or `perennial import` makes some");
        };
        let at = self.at.unwrap_or(last);
        let sites = measure(store, self.site.as_deref(), at, last, &Followed::of(archive, store)?)?;
        if let (Some(site), true) = (&self.site, sites.is_empty()) {
            return Err(not_found(store, site));
        }
        let data = to_json(&sites, at);
        context.print(&data, |out| print(&sites, at, out))?;
        Ok(Exit::Done)
    }
}

fn to_json(sites: &[SiteQuality], at: Timestamp) -> Value {
    let (by_page, coherence) = archive_means(sites);
    json!({
        "at": at.to_rfc3339(),
        "is_estimate": true,
        "completeness_weighted": range(by_page),
        "coherence": coherence_json(&coherence),
        "sites": sites.iter().map(site_json).collect::<Vec<Value>>(),
    })
}

fn site_json(site: &SiteQuality) -> Value {
    json!({
        "host": site.host,
        "n_pages": site.n_pages,
        "n_captures": site.n_captures,
        "n_versions": site.n_versions,
        "completeness_pooled": completeness_json(&site.pooled),
        "completeness_weighted": range(site.by_page),
        "completeness_count": completeness_json(&site.count),
        "coherence": coherence_json(&site.coherence),
    })
}

fn range([least, likely, most]: [f64; 3]) -> Value {
    json!({ "at_least": least, "likely": likely, "at_most": most })
}

fn completeness_json(estimate: &CompletenessEstimate) -> Value {
    json!({
        "at_least": estimate.at_least,
        "likely": estimate.likely,
        "at_most": estimate.at_most,
        "captured": estimate.captured,
        "surely_missed": estimate.surely_missed,
        "probably_missed": estimate.probably_missed,
    })
}

fn coherence_json(estimate: &CoherenceEstimate) -> Value {
    let both = |least: f64, most: f64| json!({ "at_least": least, "at_most": most });
    json!({
        "weighted": both(estimate.at_least.weighted, estimate.at_most.weighted),
        "max_weight": both(estimate.at_least.max_weight, estimate.at_most.max_weight),
        "count": both(estimate.at_least.count, estimate.at_most.count),
    })
}

fn print(sites: &[SiteQuality], at: Timestamp, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "Completeness in percent: lower bound - likely - upper bound; coherence of the snapshot at {at}: lower bound - upper bound\n"
    )?;
    writeln!(
        out,
        "{:<32} {:>6} {:>8} {:>8}  {:<20} {:<20} {:<20} coherence",
        "site", "pages", "captures", "versions", "by importance", "by page", "by count"
    )?;
    for site in sites {
        let three = |[least, likely, most]: [f64; 3]| {
            format!("{:.1} - {:.1} - {:.1}", least * 100.0, likely * 100.0, most * 100.0)
        };
        let of =
            |estimate: &CompletenessEstimate| three([estimate.at_least, estimate.likely, estimate.at_most]);
        writeln!(
            out,
            "{:<32} {:>6} {:>8} {:>8}  {:<20} {:<20} {:<20} {:.1} - {:.1}",
            site.host,
            site.n_pages,
            site.n_captures,
            site.n_versions,
            of(&site.pooled),
            three(site.by_page),
            of(&site.count),
            site.coherence.at_least.weighted * 100.0,
            site.coherence.at_most.weighted * 100.0
        )?;
    }
    Ok(())
}
