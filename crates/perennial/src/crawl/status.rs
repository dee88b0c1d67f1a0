//! Visits that ended -> the counts that progress and summary show.

use std::collections::BTreeMap;

use super::Crawl;
use super::recorder::Settled;
use crate::store::{Ending, PageKind};

/// Why a crawl ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Nothing is left to do, or `limit` was reached.
    Done,
    /// The user stopped it.
    Interrupted,
    /// `size_limit` was reached.
    SizeLimit,
    /// `time_limit` was reached.
    TimeLimit,
}

/// The counts of a crawl so far.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Status {
    /// Why it ended; none while it runs.
    pub end: Option<End>,
    /// Visits that ended, requisites and sitemaps included.
    pub n_fetched: u64,
    /// Visits of pages that ended.
    pub n_pages: u64,
    /// Visits that found other content than before, or the first.
    pub n_changed: u64,
    /// Visits that found the same content.
    pub n_unchanged: u64,
    /// Visits that failed.
    pub n_failed: u64,
    /// Visits of pages that are gone or may not be fetched.
    pub n_gone: u64,
    /// Of them, those that led to another address.
    pub n_redirected: u64,
    /// Pages given up because their host did not answer.
    pub n_given_up: u64,
    /// Documents that were archived whole and read in part only, because their codings are broken or a bomb.
    pub n_unread: u64,
    /// Captures that were analysed.
    pub n_analysed: u64,
    /// Captures that wait for their analysis.
    pub n_analysing: u64,
    /// Bytes of bodies received.
    pub body_bytes: u64,
    /// Bytes that the WARC files grew by.
    pub stored_bytes: u64,
    /// Addresses that wait for their host.
    pub n_waiting: u64,
    /// Fetches in flight.
    pub n_active: u64,
    /// Pages that are known.
    pub n_known: u64,
    /// When the crawl will next look for work.
    pub next_wakeup: Option<String>,
    /// Errors by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Errors by host, the first thousand hosts.
    pub errors_by_host: BTreeMap<String, u64>,
    /// What happened last.
    #[serde(skip)]
    pub last: String,
}

impl Crawl {
    pub(super) fn count(&mut self, settled: &Settled) {
        let status = &mut self.status;
        status.n_fetched += 1;
        status.n_pages += u64::from(settled.kind == PageKind::Page);
        *match settled.ending {
            Ending::Changed => &mut status.n_changed,
            Ending::Unchanged => &mut status.n_unchanged,
            Ending::Failed => &mut status.n_failed,
            Ending::Gone => &mut status.n_gone,
            Ending::Redirected => &mut status.n_redirected,
        } += 1;
        status.body_bytes += settled.body_bytes;
        status.stored_bytes += settled.stored_bytes;
        if let Some(error) = settled.error {
            *status.errors.entry(error).or_default() += 1;
            if let Ok(Some(host)) = self.store.host_of(settled.site)
                && (status.errors_by_host.len() < 1000 || status.errors_by_host.contains_key(&host))
            {
                *status.errors_by_host.entry(host).or_default() += 1;
            }
        }
    }

    pub(super) fn refresh(&mut self, end: Option<End>) -> &Status {
        let next = self.policy.wakeup();
        self.status.n_waiting = self.policy.n_waiting();
        self.status.n_active = self.policy.n_active();
        self.status.n_known = self.policy.n_known();
        self.status.n_given_up = self.policy.n_given_up();
        self.status.n_analysing = self.policy.n_analysing() as u64;
        self.status.next_wakeup = next.filter(|_| end.is_none()).map(|at| at.to_rfc3339());
        self.status.end = end;
        &self.status
    }
}
