//! `perennial list`: the followed sites, with the numbers of their pages and visits.

use std::collections::HashMap;

use clap::Args;
use serde::Serialize;

use super::{Context, Exit};
use perennial_archive::settings::{Seed, VisitTimes};
use perennial_archive::store::{PageKind, VisitEnding};
use perennial_core::schedule::units::write_span;

const AFTER_HELP: &str = "\
Examples:
  perennial list
  perennial list --json";

/// List the followed sites and watched pages.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ListArgs {}

#[derive(Serialize)]
struct FollowedSite<'a> {
    #[serde(flatten)]
    seed: &'a Seed,
    n_pages: u64,
    n_visited: u64,
    n_failed: u64,
    last_visit: Option<String>,
}

impl ListArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let numbers = store.seeds()?;
        let mut counts: HashMap<i64, (u64, u64, u64, Option<perennial_core::time::Timestamp>)> =
            HashMap::new();
        store.each_frontier_page(|known| {
            if known.kind == PageKind::Page {
                let count = counts.entry(known.seed).or_default();
                count.0 += 1;
                count.1 += u64::from(known.visited.is_some());
                count.2 += u64::from(known.ending == Some(VisitEnding::Failed));
                count.3 = count.3.max(known.visited);
            }
        })?;
        let rows: Vec<FollowedSite<'_>> = archive
            .settings()
            .seeds
            .iter()
            .map(|seed| {
                let number = numbers.get(seed.scope.seed.as_str());
                let (n_pages, n_visited, n_failed, last) =
                    number.and_then(|number| counts.get(number).copied()).unwrap_or_default();
                FollowedSite {
                    seed,
                    n_pages,
                    n_visited,
                    n_failed,
                    last_visit: last.map(|at| at.to_rfc3339()),
                }
            })
            .collect();
        let pages = &archive.settings().pages;
        context.print(&rows, |out| {
            if rows.is_empty() {
                return writeln!(out, "no site is followed; use `perennial run https://example.org/`");
            }
            rows.iter().try_for_each(|row| {
                writeln!(
                    out,
                    "{}  {}scope {}, {}{} pages known, {} visited, {} failed, last visit {}",
                    row.seed.scope.seed,
                    if row.seed.paused { "paused, " } else { "" },
                    row.seed.scope.kind,
                    times(&row.seed.times).map(|times| times + ", ").unwrap_or_default(),
                    row.n_pages,
                    row.n_visited,
                    row.n_failed,
                    row.last_visit.as_deref().unwrap_or("never")
                )
            })?;
            pages.iter().try_for_each(|page| {
                let times = times(&page.times).unwrap_or_else(|| "watched".to_owned());
                writeln!(out, "{}  {times}", page.url)
            })
        })?;
        Ok(Exit::Done)
    }
}

/// As in "every 15m, Mon-Fri 08:00-18:00".
fn times(times: &VisitTimes) -> Option<String> {
    let hours = times.hours.as_ref().map(|hours| format!(", {hours}")).unwrap_or_default();
    times.every.map(|every| format!("every {}{hours}", write_span(every)))
}
