//! `perennial plan quality`: the archive's observations -> estimates of its completeness and coherence.

use std::io::Write;

use anyhow::bail;
use perennial_core::quality::estimate::{CoherenceEstimate, CompletenessEstimate};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use crate::cli::context::not_found;
use crate::cli::{Context, Exit, parse_time};
use perennial_engine::learn::FollowedSites;
use perennial_engine::quality::{ArchiveQuality, SiteQuality, measure};

const AFTER_HELP: &str = "\
Changes between two captures are not observed, so each number has a likely value and bounds that contain the truth with 90 % \
probability. A version that a \
feed or sitemap announced and no capture can contain lowers all three. A version that was probably missed, given how often the page \
changes, lowers the likely value. If no page changed, the numbers are the probability that nothing was missed.

The definitions are those of the report of `perennial demo`:
  pooled           importance captured over all importance, each times the weight of its page
  Definition 5.13  mean over pages that changed of each page's own share, weighted by the pages
  versions         changes captured over all changes, each counting 1
  coherence        share of the snapshot at one instant that was valid together
The weight of a page is its PageRank times the `weight` of its site. First captures are not changes.

Examples:
  perennial plan quality
  perennial plan quality news.example --at 2026-11-16T09:00:00Z
  perennial plan quality --json";

/// Estimate completeness and coherence of the archive.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct QualityArgs {
    /// Host of a site [default: all sites]
    site: Option<String>,

    /// Instant of the snapshot whose coherence is estimated [default: the last capture]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
}

impl QualityArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let Some(last) = store.last_capture(archive.horizon())? else {
            bail!("the archive contains no captures; use `perennial run` or `perennial import`");
        };
        let at = self.at.unwrap_or(last);
        let quality =
            measure(&snapshot, self.site.as_deref(), at, last, &FollowedSites::load(archive, store)?)?;
        if let (Some(site), true) = (&self.site, quality.sites.is_empty()) {
            return Err(not_found(store, site));
        }
        context.print(&to_json(&quality, at), |out| print(&quality, at, out))?;
        Ok(Exit::Done)
    }
}

fn to_json(quality: &ArchiveQuality, at: Timestamp) -> Value {
    let all = &quality.all;
    json!({
        "at": at.to_rfc3339(),
        "is_estimate": true,
        "n_announced": all.n_announced,
        "completeness_pooled": completeness_json(&all.pooled),
        "completeness_weighted": range(all.by_page),
        "completeness_count": completeness_json(&all.count),
        "coherence": coherence_json(&all.coherence),
        "sites": quality.sites.iter().map(site_json).collect::<Vec<Value>>(),
    })
}

fn site_json(site: &SiteQuality) -> Value {
    json!({
        "host": site.host,
        "n_pages": site.n_pages,
        "n_captures": site.n_captures,
        "n_versions": site.n_versions,
        "n_announced": site.n_announced,
        "is_known": site.is_known(),
        "has_changes": site.has_changes(),
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

fn print(quality: &ArchiveQuality, at: Timestamp, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "Estimates in percent, by the definitions of the demonstration's report (`perennial plan quality --help`).\n\
         Completeness: lower bound - likely - upper bound. Coherence of the snapshot at {at}: lower - upper bound.\n"
    )?;
    writeln!(
        out,
        "{:<32} {:>6} {:>8} {:>8}  {:<22} {:<22} {:<22} coherence",
        "site", "pages", "captures", "versions", "pooled", "Definition 5.13", "versions"
    )?;
    let all = Some(&quality.all).filter(|_| quality.sites.len() > 1);
    for site in quality.sites.iter().chain(all) {
        print_site(site, out)?;
    }
    writeln!(out)?;
    match quality.all.n_announced {
        0 => {
            writeln!(out, "No feed or sitemap in the archive announces a change: all bounds are estimates.")?
        }
        n => writeln!(
            out,
            "Feeds and sitemaps announced {n} changes between captures; no upper bound is higher than they allow."
        )?,
    }
    let any = |is_such: fn(&SiteQuality) -> bool| quality.sites.iter().any(is_such);
    if any(|site| site.is_known() && !site.has_changes()) {
        writeln!(out, "* No change was observed: the numbers are the probability that nothing was missed.")?;
    }
    if any(|site| !site.is_known()) {
        writeln!(out, "- No page was observed twice: nothing is known about changes.")?;
    }
    Ok(())
}

fn print_site(site: &SiteQuality, out: &mut dyn Write) -> std::io::Result<()> {
    let three = |[least, likely, most]: [f64; 3]| match site.is_known() {
        true => format!("{:.1} - {:.1} - {:.1}", least * 100.0, likely * 100.0, most * 100.0),
        false => "-".to_owned(),
    };
    let of = |estimate: &CompletenessEstimate| three([estimate.at_least, estimate.likely, estimate.at_most]);
    let mark = if site.is_known() && !site.has_changes() { " *" } else { "" };
    writeln!(
        out,
        "{:<32} {:>6} {:>8} {:>8}  {:<22} {:<22} {:<22} {:.1} - {:.1}",
        format!("{}{mark}", site.host),
        site.n_pages,
        site.n_captures,
        site.n_versions,
        of(&site.pooled),
        three(site.by_page),
        of(&site.count),
        site.coherence.at_least.weighted * 100.0,
        site.coherence.at_most.weighted * 100.0
    )
}
