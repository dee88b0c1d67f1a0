//! The part of `perennial status` about the crawl: last and next visits, failures, unsent notices.

use std::io::{self, Write};

use perennial_archive::store::{FailingHost, Outbox};
use perennial_archive::{Snapshot, now};
use perennial_core::schedule::local_minute;
use perennial_core::time::Timestamp;
use perennial_engine::learn::{self, NextVisit, PlannedCrawl, VisitDescriber};
use serde::Serialize;

/// Next visits in the report; `perennial plan next` lists more.
const N_NEXT: usize = 3;
/// Hosts in the report; the dashboard lists more.
const N_FAILING: usize = 5;

#[derive(Serialize)]
pub(super) struct Activity {
    last_visit: Option<String>,
    next_visits: Vec<UpcomingVisit>,
    failing_hosts: Vec<HostFailures>,
    n_unsent_notices: u64,
}

#[derive(Serialize)]
struct UpcomingVisit {
    url: String,
    at: Option<String>,
    reason: String,
}

#[derive(Serialize)]
struct HostFailures {
    host: String,
    n_visited: u64,
    /// Pages whose last visit failed.
    n_failed: u64,
    /// Pages that are gone.
    n_gone: u64,
}

impl Activity {
    pub(super) fn load(snapshot: &Snapshot) -> anyhow::Result<Activity> {
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let states = match Outbox::open_read(&archive.outbox_path())? {
            Some(outbox) => outbox.states()?,
            None => Vec::new(),
        };
        let failures = |FailingHost { host, n_visited, n_failed, n_gone, .. }| HostFailures {
            host,
            n_visited,
            n_failed,
            n_gone,
        };
        let last_visit = store.last_visit()?;
        Ok(Activity {
            last_visit: last_visit.map(Timestamp::to_rfc3339),
            // From the last visit on: an overdue visit has the time at which it became due.
            next_visits: next_visits(
                snapshot,
                last_visit.or(store.last_capture(archive.horizon())?).unwrap_or_else(now),
            )?,
            failing_hosts: store.failing_hosts(N_FAILING)?.into_iter().map(failures).collect(),
            n_unsent_notices: states.iter().map(|state| state.n_waiting).sum(),
        })
    }

    /// Writes a line for each fact that there is.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let minute = |at: &str| Timestamp::parse(at).map_or(at.to_owned(), |at| local_minute(at, None));
        if let Some(last) = &self.last_visit {
            writeln!(out, "visited   last {}", minute(last))?;
        }
        for visit in &self.next_visits {
            let at = visit.at.as_deref().map_or("later".to_owned(), minute);
            writeln!(out, "next      {at} {}, {}", visit.url, visit.reason)?;
        }
        for host in &self.failing_hosts {
            let HostFailures { host, n_visited, n_failed, n_gone } = host;
            writeln!(out, "failing   {host}: {n_failed} of {n_visited} pages failed, {n_gone} are gone")?;
        }
        if self.n_unsent_notices > 0 {
            writeln!(out, "notices   {} unsent: see `perennial notify list`", self.n_unsent_notices)?;
        }
        Ok(())
    }
}

/// The next visits of the running crawl, else of one that continues at an instant.
fn next_visits(snapshot: &Snapshot, at: Timestamp) -> anyhow::Result<Vec<UpcomingVisit>> {
    let mut visits = learn::published_plan(snapshot.archive(), now());
    if visits.is_empty() {
        visits = computed_visits(snapshot, at)?;
    }
    let planned = |NextVisit { url, at, reason, .. }| UpcomingVisit { url, at, reason };
    Ok(visits.into_iter().take(N_NEXT).map(planned).collect())
}

fn computed_visits(snapshot: &Snapshot, at: Timestamp) -> anyhow::Result<Vec<NextVisit>> {
    let (archive, store) = (snapshot.archive(), snapshot.store());
    let planned = PlannedCrawl::load(archive, store, None, at)?;
    let scheduler = planned.scheduler(store, at)?;
    VisitDescriber { store, followed: &planned.followed }.next(&scheduler, at, N_NEXT)
}
