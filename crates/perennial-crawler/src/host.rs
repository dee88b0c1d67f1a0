//! Queues URLs by host and returns the next one that may be fetched.
//!
//! Each host has its own queue and its own delay, so a slow or dead host does not delay others. Hosts with work and a
//! free connection are in a heap, ordered by when their next fetch may start.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use perennial_core::http::politeness::HostState;
use perennial_core::schedule::Reason;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};

/// Why a page is queued.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum QueueReason {
    /// It is part of a pass over everything.
    Pass,
    /// It is a subresource of a page.
    Needed,
    /// It lists pages.
    Sitemap,
    /// The feed is due.
    Feed,
    /// An admin wants it now.
    Requested,
    /// The scheduler chose it.
    Scheduled(Reason),
}

/// The queues and the state of one host.
#[derive(Debug, Default)]
struct HostQueue {
    /// Subresources, which come before pages.
    needed: VecDeque<PageId>,
    /// Sitemaps and feeds, which alternate with pages, because a host can list sitemaps without end.
    sitemaps: VecDeque<(PageId, QueueReason)>,
    pages: VecDeque<(PageId, QueueReason)>,
    /// Number of pages before the next sitemap.
    n_pages_first: u32,
    n_active: u32,
    /// Whether a visit has ended. Before, robots.txt is unknown and the host gets one connection only.
    is_known: bool,
    state: HostState,
    in_heap: bool,
}

/// While pages wait, at most one in this many fetches from a host is a sitemap or a feed.
const SITEMAP_SHARE: u32 = 4;

impl HostQueue {
    fn pop(&mut self) -> Option<(PageId, QueueReason)> {
        if let Some(page) = self.needed.pop_front() {
            return Some((page, QueueReason::Needed));
        }
        if (self.n_pages_first == 0 || self.pages.is_empty())
            && let Some(next) = self.sitemaps.pop_front()
        {
            self.n_pages_first = SITEMAP_SHARE - 1;
            return Some(next);
        }
        self.n_pages_first = self.n_pages_first.saturating_sub(1);
        self.pages.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.needed.is_empty() && self.sitemaps.is_empty() && self.pages.is_empty()
    }
}

#[derive(Debug)]
pub(super) struct HostQueues {
    hosts: HashMap<SiteId, HostQueue>,
    ready: BinaryHeap<Reverse<(Timestamp, SiteId)>>,
    max_connections: u32,
    n_waiting: usize,
}

impl HostQueues {
    pub(super) fn new(max_connections: u32) -> HostQueues {
        HostQueues { hosts: HashMap::new(), ready: BinaryHeap::new(), max_connections, n_waiting: 0 }
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    /// Sets the state of a host from an earlier crawl.
    pub(super) fn set_state(&mut self, site: SiteId, state: HostState) {
        self.hosts.entry(site).or_default().state = state;
    }

    /// Ends a host's backoff.
    pub(super) fn reset_backoff(&mut self, site: SiteId, now: Timestamp) {
        let host = self.hosts.entry(site).or_default();
        if host.state.n_troubles == 0 {
            // The host is only waiting for its politeness delay.
            return;
        }
        host.state.n_troubles = 0;
        host.state.ready_at = host.state.ready_at.min(now);
        host.in_heap = false;
        self.ready.retain(|Reverse((_, other))| *other != site);
        self.enlist(site);
    }

    pub(super) fn state(&self, site: SiteId) -> HostState {
        self.hosts.get(&site).map(|host| host.state).unwrap_or_default()
    }

    /// Adds a URL to the queue of its host.
    pub(super) fn push(&mut self, site: SiteId, page: PageId, why: QueueReason) {
        let host = self.hosts.entry(site).or_default();
        match why {
            QueueReason::Needed => host.needed.push_back(page),
            QueueReason::Sitemap => host.sitemaps.push_back((page, why)),
            // Feeds go before sitemaps, because new content is urgent.
            QueueReason::Feed => host.sitemaps.push_front((page, why)),
            QueueReason::Requested => host.pages.push_front((page, why)),
            _ => host.pages.push_back((page, why)),
        }
        self.n_waiting += 1;
        self.enlist(site);
    }

    /// The next URL that may be fetched at `now`. It uses a connection of its host.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<(PageId, QueueReason)> {
        while let Some(&Reverse((at, site))) = self.ready.peek() {
            if at > now {
                return None;
            }
            self.ready.pop();
            let Some(host) = self.hosts.get_mut(&site) else { continue };
            host.in_heap = false;
            if host.state.ready_at > now {
                // The host was put into backoff since it was enlisted.
                self.enlist(site);
                continue;
            }
            if let Some(next) = host.pop() {
                host.n_active += 1;
                self.n_waiting -= 1;
                self.enlist(site);
                return Some(next);
            }
        }
        None
    }

    /// When [`HostQueues::pop`] may next return a URL, unless a connection becomes free before.
    pub(super) fn next_ready(&self) -> Option<Timestamp> {
        self.ready.peek().map(|Reverse((at, _))| *at)
    }

    /// Frees a connection of the host and sets its state.
    pub(super) fn release(&mut self, site: SiteId, state: HostState) {
        let host = self.hosts.entry(site).or_default();
        host.n_active = host.n_active.saturating_sub(1);
        host.is_known = true;
        host.state = state;
        self.enlist(site);
    }

    /// Frees the connection that [`HostQueues::pop`] used, if no request was sent.
    pub(super) fn give_back(&mut self, site: SiteId) {
        if let Some(host) = self.hosts.get_mut(&site) {
            host.n_active = host.n_active.saturating_sub(1);
        }
        self.enlist(site);
    }

    /// Empties a host's queues and returns the pages. The caller notifies the scheduler.
    pub(super) fn drain(&mut self, site: SiteId) -> Vec<PageId> {
        let Some(host) = self.hosts.get_mut(&site) else { return Vec::new() };
        let mut pages: Vec<PageId> = host.needed.drain(..).collect();
        pages.extend(host.sitemaps.drain(..).chain(host.pages.drain(..)).map(|(page, _)| page));
        self.n_waiting -= pages.len();
        pages
    }

    fn enlist(&mut self, site: SiteId) {
        let max_connections = self.max_connections;
        let Some(host) = self.hosts.get_mut(&site) else { return };
        let free = host.n_active < if host.is_known { max_connections } else { 1 };
        if free && !host.is_empty() && !host.in_heap {
            host.in_heap = true;
            self.ready.push(Reverse((host.state.ready_at, site)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn resting(until: i64) -> HostState {
        HostState { ready_at: at(until), n_troubles: 0 }
    }

    #[test]
    fn a_host_has_one_connection_and_rests_after_it() {
        let mut hosts = HostQueues::new(1);
        let site = SiteId(0);
        for page in 0..3 {
            hosts.push(site, PageId(page), QueueReason::Pass);
        }
        assert_eq!(hosts.pop(at(0)), Some((PageId(0), QueueReason::Pass)));
        assert_eq!(hosts.pop(at(0)), None);
        hosts.release(site, resting(5));
        assert_eq!((hosts.pop(at(4)), hosts.next_ready()), (None, Some(at(5))));
        assert_eq!(hosts.pop(at(5)), Some((PageId(1), QueueReason::Pass)));
    }

    #[test]
    fn a_dead_host_delays_nobody() {
        let mut hosts = HostQueues::new(1);
        for page in 0..10 {
            hosts.push(SiteId(page % 2), PageId(page), QueueReason::Pass);
        }
        hosts.set_state(SiteId(0), resting(1_000_000));
        let mut n_fetched = 0;
        while let Some((page, _)) = hosts.pop(at(n_fetched)) {
            assert_eq!(page.0 % 2, 1);
            hosts.release(SiteId(1), resting(0));
            n_fetched += 1;
        }
        assert_eq!((n_fetched, hosts.n_waiting()), (5, 5));
        assert_eq!(hosts.drain(SiteId(0)).len(), 5);
        assert_eq!(hosts.n_waiting(), 0);
    }

    #[test]
    fn a_requested_visit_reaches_a_host_in_trouble_after_the_polite_pause() {
        let mut hosts = HostQueues::new(1);
        hosts.push(SiteId(0), PageId(0), QueueReason::Pass);
        hosts.set_state(SiteId(0), HostState { ready_at: at(1_000_000), n_troubles: 3 });
        assert_eq!(hosts.pop(at(5)), None);
        hosts.reset_backoff(SiteId(0), at(5));
        hosts.push(SiteId(0), PageId(1), QueueReason::Requested);
        assert_eq!(
            hosts.pop(at(5)),
            Some((PageId(1), QueueReason::Requested)),
            "what a person wants comes first"
        );
        hosts.release(SiteId(0), resting(9));
        hosts.reset_backoff(SiteId(0), at(6));
        assert_eq!((hosts.pop(at(6)), hosts.next_ready()), (None, Some(at(9))));
        assert_eq!(hosts.pop(at(9)), Some((PageId(0), QueueReason::Pass)));
        assert_eq!(hosts.n_waiting(), 0);
    }

    #[test]
    fn sitemaps_without_end_leave_most_fetches_to_pages() {
        let mut hosts = HostQueues::new(1);
        (0..100).for_each(|page| hosts.push(SiteId(0), PageId(page), QueueReason::Sitemap));
        (100..130).for_each(|page| hosts.push(SiteId(0), PageId(page), QueueReason::Pass));
        let mut popped = Vec::new();
        while let Some((_, why)) = hosts.pop(at(0)) {
            popped.push(why);
            hosts.release(SiteId(0), resting(0));
        }
        let n_sitemaps =
            |whys: &[QueueReason]| whys.iter().filter(|why| **why == QueueReason::Sitemap).count();
        assert_eq!((popped[0], n_sitemaps(&popped[..40]), popped.len()), (QueueReason::Sitemap, 10, 130));
    }

    #[test]
    fn what_pages_need_comes_before_pages() {
        let mut hosts = HostQueues::new(4);
        hosts.push(SiteId(0), PageId(0), QueueReason::Pass);
        hosts.push(SiteId(0), PageId(1), QueueReason::Needed);
        assert_eq!(hosts.pop(at(0)), Some((PageId(1), QueueReason::Needed)));
        assert_eq!(hosts.pop(at(0)), None, "one connection until robots.txt is known");
        hosts.release(SiteId(0), resting(0));
        assert_eq!(hosts.pop(at(0)), Some((PageId(0), QueueReason::Pass)));
    }
}
