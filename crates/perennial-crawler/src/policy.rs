//! Chooses the next visit from finished visits and analyses. The policy is the crawl's loop as a state machine
//! without effects.
//!
//! It uses no clock, disk or network. The real crawl, the time-lapse and the unit tests drive the same code.
//! [`Policy::next`] returns a page, and [`Policy::admit`] checks the budgets once its target is known.
//! [`Policy::finish_visit`] and [`Policy::finish_analysis`] record the results. [`Policy::wakeup`] returns when to
//! call `next` again.

use std::collections::{HashMap, HashSet};

use perennial_core::http::politeness::{HostResponse, HostState};
use perennial_core::schedule::{Checkpoint, RankedPage, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

use super::budgets::{BudgetAccounts, Permission};
use super::host::{HostQueues, QueueReason};
use super::pending_styles::PendingStyles;
use super::polls::{FeedPolls, PollInterval};
use super::record::{NewPage, VisitRecord};
use super::status::CrawlEnd;
use perennial_archive::store::{FrontierPage, PageKind, VisitEnding, VisitTarget};
use perennial_engine::analyse::PageHeadline;
use perennial_engine::learn::{AHEAD, FollowedSites};

/// If this many pages wait for analysis, no visit starts. This bounds the memory of a crawl that fetches faster than
/// it analyses.
const MAX_ANALYSING: usize = 64;
/// The same limit for large documents. They wait on disk and are analysed one at a time, so they must not delay
/// others before that.
const MAX_LARGE: usize = 1000;
/// Most feed items that are remembered as causes of visits.
const MAX_CAUSES: usize = 100_000;
/// A host in trouble is left alone for at least this long.
const LEAST_BACKOFF: Span = Span::from_secs(60);
/// Most visits that are foreseen for a plan; a page with a short interval has many of them.
const MAX_FORESEEN: u32 = 5_000;
/// With more pages the next visit is estimated instead of foreseen, because a copy of the scheduler takes too long.
const MAX_COPIED: usize = 10_000;
/// How often the scheduler is given a new budget.
const PLAN_SPAN: Span = Span::from_hours(1);

/// In which order pages are visited.
pub(super) enum VisitOrder {
    /// Every page once, in the order of discovery. Pages visited since the pass began are done.
    Once { started: Timestamp },
    /// As the scheduler decides.
    Scheduled(Box<Scheduler>),
}

/// The limits of the policy.
#[derive(Clone, Debug)]
pub(super) struct PolicyConfig {
    pub(super) max_workers: usize,
    pub(super) connections: u32,
    /// Attempts per page before a pass gives up.
    pub(super) max_tries: u16,
    /// Longest time that a pass waits for a host.
    pub(super) max_wait: Span,
    /// End after this many visits of pages.
    pub(super) limit: Option<u64>,
    pub(super) time_limit: Option<Span>,
    /// End when the WARC files have grown by this many bytes.
    pub(super) size_limit: Option<u64>,
    /// Whether captures are analysed before the scheduler gets the outcome.
    pub(super) is_analysing: bool,
    /// Whether a pass polls the feeds and fetches nothing else.
    pub(super) feeds_only: bool,
    /// Whether a pass visits requested pages and fetches nothing else.
    pub(super) only_requested: bool,
    /// Whether sitemaps are fetched again like feeds, because they contain the times of changes.
    pub(super) polls_sitemaps: bool,
}

/// A visit that the budget does not allow yet.
struct DeferredVisit {
    until: Timestamp,
    site: SiteId,
    page: PageId,
    why: QueueReason,
}

/// The crawl's queues, budgets and scheduler.
pub(super) struct Policy {
    config: PolicyConfig,
    order: VisitOrder,
    hosts: HostQueues,
    followed: FollowedSites,
    budgets: BudgetAccounts,
    /// Feeds have their own publishing patterns.
    polls: FeedPolls,
    /// Titles of the feed items that made pages urgent, until these are visited.
    causes: HashMap<PageId, String>,
    /// Pages under analysis: the outcome judged by the response alone, and the capture time.
    analysing: HashMap<PageId, (VisitOutcome, Timestamp)>,
    /// Those with a large document.
    large: HashSet<PageId>,
    /// Pages that wait for subresources before their analysis.
    pending_styles: PendingStyles,
    deferred: Vec<DeferredVisit>,
    /// Seeds of requested pages that belong to no followed site.
    requested_seeds: HashSet<i64>,
    /// Until when the scheduler holds the pages of a seed, or all pages, because a budget is spent.
    held: HashMap<Option<i64>, Timestamp>,
    /// When the scheduler was last given a budget.
    planned_at: Timestamp,
    /// The hour of the last checkpoint.
    checkpoint_hour: Option<Timestamp>,
    began: Timestamp,
    n_active: u64,
    n_pages_started: u64,
    n_given_up: u64,
    n_known: u64,
    stored_bytes: u64,
    is_stopping: bool,
}

impl Policy {
    pub(super) fn new(
        config: PolicyConfig,
        order: VisitOrder,
        followed: FollowedSites,
        budgets: BudgetAccounts,
        now: Timestamp,
    ) -> Policy {
        Policy {
            hosts: HostQueues::new(config.connections.max(1)),
            config,
            order,
            followed,
            budgets,
            polls: FeedPolls::new(None),
            causes: HashMap::new(),
            analysing: HashMap::new(),
            large: HashSet::new(),
            pending_styles: PendingStyles::default(),
            deferred: Vec::new(),
            requested_seeds: HashSet::new(),
            held: HashMap::new(),
            planned_at: now,
            checkpoint_hour: None,
            began: now,
            n_active: 0,
            n_pages_started: 0,
            n_given_up: 0,
            n_known: 0,
            stored_bytes: 0,
            is_stopping: false,
        }
    }

    /// Sets the feeds of earlier crawls.
    pub(super) fn set_polls(&mut self, polls: FeedPolls) {
        self.polls = polls;
    }

    /// The title of the item that made a page urgent.
    pub(super) fn visit_cause(&self, page: PageId) -> Option<&str> {
        self.causes.get(&page).map(String::as_str)
    }

    /// Sets the state of a host from an earlier crawl.
    pub(super) fn set_host(&mut self, site: SiteId, state: HostState) {
        self.hosts.set_state(site, state);
    }

    /// Adds a URL of an earlier crawl. The scheduler has it already.
    pub(super) fn load(&mut self, known: &FrontierPage) {
        if !self.followed.has_seed(known.seed) || self.is_excluded(known.kind) || self.config.only_requested {
            return;
        }
        if matches!(known.kind, PageKind::Subresource | PageKind::Sitemap) {
            if known.visited.is_none() {
                self.queue(known.kind, known.page, known.site);
            }
            return;
        }
        if known.kind == PageKind::Page {
            self.n_known += 1;
            self.budgets.add(known.page, known.seed);
        }
        if let VisitOrder::Once { started } = self.order {
            let is_given_up =
                known.ending != Some(VisitEnding::Failed) || known.n_failures >= self.config.max_tries;
            // A visit in the future was made while the clock was ahead. It is not part of this pass.
            let is_of_pass = |visited: Timestamp| visited >= started && visited <= self.began;
            if !(known.visited.is_some_and(is_of_pass) && is_given_up) {
                self.queue(known.kind, known.page, known.site);
            }
        }
    }

    /// The next page whose visit may start now. The driver calls [`Policy::admit`] with the page's target.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<(PageId, QueueReason)> {
        if self.is_stopping || self.limit_reached(now).is_some() || self.is_behind() {
            return None;
        }
        self.resume_deferred(now);
        self.queue_scheduled(now);
        if self.n_active as usize >= self.config.max_workers.max(1) || self.pages_used_up() {
            return None;
        }
        self.hosts.pop(now)
    }

    /// Whether fetching must wait because the analysis is too far behind.
    fn is_behind(&self) -> bool {
        self.n_analysing().saturating_sub(self.large.len()) >= MAX_ANALYSING || self.large.len() >= MAX_LARGE
    }

    /// Whether a page under analysis is a large document.
    pub(super) fn is_large(&self, page: PageId) -> bool {
        self.large.contains(&page)
    }

    fn queue_scheduled(&mut self, now: Timestamp) {
        let VisitOrder::Scheduled(scheduler) = &mut self.order else { return };
        while let Some((site, page)) = self.polls.take_due(now) {
            self.hosts.push(site, page, QueueReason::Feed);
        }
        if now - self.planned_at >= PLAN_SPAN {
            scheduler.set_budget(self.budgets.plan());
            self.planned_at = now;
        }
        while let Some(visit) = scheduler.next_visit(now) {
            self.hosts.push(visit.site, visit.page, QueueReason::Scheduled(visit.reason));
        }
    }

    /// Queues deferred visits that the budget allows now.
    fn resume_deferred(&mut self, now: Timestamp) {
        for visit in self.deferred.extract_if(.., |visit| visit.until <= now) {
            self.hosts.push(visit.site, visit.page, visit.why);
        }
    }

    /// Whether the budgets allow the visit that [`Policy::next`] returned. If so, it counts as started.
    pub(super) fn admit(&mut self, target: &VisitTarget, why: QueueReason, now: Timestamp) -> bool {
        let is_page = target.kind == PageKind::Page;
        match self.budgets.try_spend(target.seed, is_page, now) {
            // Somebody waits for it. It counts, but no budget holds it back.
            Permission::Refused { until, all } if why != QueueReason::Requested => {
                self.defer(target, why, until, all);
                false
            }
            Permission::Refused { .. } | Permission::Granted => {
                if let (VisitOrder::Scheduled(scheduler), true) = (&mut self.order, is_page) {
                    scheduler.start_visit(target.page, now);
                }
                self.n_active += 1;
                self.n_pages_started += u64::from(is_page);
                true
            }
        }
    }

    /// Handles a spent budget. A scheduled visit goes back to the scheduler, which holds all pages on the same budget.
    /// If the visit were only deferred, it would displace a visit of the next period, and so on in every period.
    fn defer(&mut self, target: &VisitTarget, why: QueueReason, until: Timestamp, all: bool) {
        self.hosts.give_back(target.site);
        match (&mut self.order, why) {
            (VisitOrder::Scheduled(scheduler), QueueReason::Scheduled(_)) => {
                scheduler.release(target.page);
                scheduler.defer(target.page, until);
                let seed = (!all).then_some(target.seed);
                if self.held.insert(seed, until) != Some(until) {
                    self.budgets.seed_pages(seed).for_each(|page| scheduler.defer(page, until));
                }
            }
            _ => self.deferred.push(DeferredVisit { until, site: target.site, page: target.page, why }),
        }
    }

    /// Retries a host in trouble when a page with its own interval is due, instead of after a
    /// backoff that grows to a day. A pause that the host itself requested remains.
    pub(super) fn shorten_backoff(&self, record: &mut VisitRecord) {
        let VisitOrder::Scheduled(scheduler) = &self.order else { return };
        let Some(every) = scheduler.every(record.target.page) else { return };
        let is_requested =
            matches!(record.host_response(), Some(HostResponse::Overloaded { retry_after: Some(_) }));
        if record.host.n_troubles > 0 && !is_requested {
            let longest = record.ended_at + every.interval.max(LEAST_BACKOFF);
            record.host.ready_at = record.host.ready_at.min(longest);
        }
    }

    /// Records a committed visit. Returns the pages that can be analysed now.
    pub(super) fn finish_visit(&mut self, record: &VisitRecord, now: Timestamp) -> Vec<PageId> {
        let target = &record.target;
        self.n_active = self.n_active.saturating_sub(1);
        self.stored_bytes += record.stored_bytes();
        self.budgets.book(target.seed, record.body_bytes(), record.ended_at, self.n_active);
        self.hosts.release(target.site, record.host);
        self.causes.remove(&target.page);
        for new in &record.new_pages {
            // In a pass, a page that turned out to be a feed was already fetched.
            if new.page != target.page || matches!(self.order, VisitOrder::Scheduled(_)) {
                self.add_new_page(new);
            }
        }
        self.finish_poll(record, now);
        let mut ready = match target.kind {
            // The words of a feed are analysed like those of a page.
            PageKind::Page | PageKind::Feed => self.finish_page_visit(record, now),
            // Pages that waited for this subresource can be analysed, even if it failed.
            PageKind::Subresource | PageKind::Sitemap => self.pending_styles.take(target.page),
        };
        if record.ending() == VisitEnding::Failed {
            // Subresources on a host that was given up are not captured soon either.
            let lost = self.after_failure(record, now);
            ready.extend(lost.into_iter().flat_map(|page| self.pending_styles.take(page)));
        }
        ready
    }

    /// Plans the next poll of a feed, including one that was visited as a page.
    fn finish_poll(&mut self, record: &VisitRecord, now: Timestamp) {
        self.polls.finish_visit(record, now);
        if let (Some(poll), VisitOrder::Scheduled(scheduler)) = (&record.poll, &mut self.order)
            && let Some(channel) = poll.channel
        {
            for &time in poll.times.iter().filter(|time| **time <= now) {
                scheduler.note_change_time(channel, time);
            }
        }
    }

    /// Visits a page as soon as politeness allows, on request of an admin. Ends the backoff of its host. The page of no
    /// followed site is captured with its subresources.
    pub(super) fn visit_now(&mut self, target: &VisitTarget, now: Timestamp) {
        if !self.followed.has_seed(target.seed) {
            self.requested_seeds.insert(target.seed);
        }
        self.hosts.reset_backoff(target.site, now);
        self.hosts.push(target.site, target.page, QueueReason::Requested);
    }

    /// Records that a hub announced news of a feed.
    pub(super) fn announce_by_hub(&mut self, page: PageId, now: Timestamp) {
        if self.polls.notify(page, now) {
            self.note_cause(page, "its hub announced news".to_owned());
        }
    }

    /// An observation is analysed before the scheduler gets its outcome. Any other outcome is recorded at once.
    fn finish_page_visit(&mut self, record: &VisitRecord, now: Timestamp) -> Vec<PageId> {
        let (page, outcome, captured_at) = (record.target.page, record.outcome(), record.captured_at());
        if !self.config.is_analysing || !record.is_observation() {
            self.record_outcome(page, outcome, captured_at);
            return Vec::new();
        }
        self.analysing.insert(page, (outcome, captured_at));
        if record.is_large() {
            self.large.insert(page);
        }
        let subresources = record.new_pages.iter().filter(|new| new.kind == PageKind::Subresource);
        // A page does not wait for hosts with a long delay.
        let soon = subresources
            .filter(|new| self.hosts.state(new.site).ready_at - now <= self.config.max_wait)
            .map(|new| new.page);
        if self.pending_styles.put(page, soon) { Vec::new() } else { vec![page] }
    }

    fn is_excluded(&self, kind: PageKind) -> bool {
        self.config.feeds_only && kind != PageKind::Feed
            || self.config.only_requested && kind != PageKind::Subresource
    }

    fn add_new_page(&mut self, new: &NewPage) {
        // A paused site may own pages that other sites link to.
        let is_needed = new.kind == PageKind::Subresource && self.requested_seeds.contains(&new.seed);
        if self.is_excluded(new.kind) || !(self.followed.has_seed(new.seed) || is_needed) {
            return;
        }
        if let (PageKind::Feed, VisitOrder::Scheduled(scheduler)) = (new.kind, &mut self.order) {
            // It may have been queued as a page before.
            scheduler.remove_page(new.page);
            let interval = self.followed.poll_interval(&new.url, new.seed).map(PollInterval::from);
            self.polls.add(new.page, new.site, interval);
            return;
        }
        if new.kind != PageKind::Page {
            self.queue(new.kind, new.page, new.site);
            return;
        }
        self.n_known += u64::from(new.is_new);
        if let Some(item) = &new.item {
            self.note_cause(new.page, item.clone());
        }
        match &mut self.order {
            VisitOrder::Once { .. } if new.is_new => self.hosts.push(new.site, new.page, QueueReason::Pass),
            VisitOrder::Once { .. } => {}
            VisitOrder::Scheduled(scheduler) => {
                if new.is_new {
                    let info = self.followed.info(Some(new.seed), &new.url, new.site, scheduler);
                    self.budgets.add(new.page, new.seed);
                    scheduler.add_page(new.page, info);
                }
                if let Some(changed) = new.changed {
                    scheduler.announce(new.page, changed, None);
                }
            }
        }
    }

    /// Queues a URL that the scheduler did not choose.
    fn queue(&mut self, kind: PageKind, page: PageId, site: SiteId) {
        let is_scheduled = matches!(self.order, VisitOrder::Scheduled(_));
        if kind == PageKind::Sitemap && self.config.polls_sitemaps && is_scheduled {
            self.polls.expect(page, site);
        }
        let why = match kind {
            PageKind::Page => QueueReason::Pass,
            PageKind::Subresource => QueueReason::Needed,
            PageKind::Sitemap => QueueReason::Sitemap,
            PageKind::Feed => QueueReason::Feed,
        };
        self.hosts.push(site, page, why);
    }

    fn note_cause(&mut self, page: PageId, cause: String) {
        if self.causes.len() < MAX_CAUSES {
            self.causes.insert(page, cause);
        }
    }

    /// Queues a retry, leaves it to the scheduler, or gives up. A host that keeps failing loses its queue. Returns
    /// the pages that were in it.
    fn after_failure(&mut self, record: &VisitRecord, now: Timestamp) -> Vec<PageId> {
        let (site, ready_at) = (record.target.site, record.host.ready_at);
        // Requests in flight at the same time fail together, so several failures may have one cause.
        let max_troubles =
            u32::from(self.config.max_tries).saturating_mul(self.config.connections.saturating_add(1));
        let is_lost =
            ready_at - now > self.config.max_wait || u32::from(record.host.n_troubles) > max_troubles;
        let lost = if is_lost { self.hosts.drain(site) } else { Vec::new() };
        lost.iter().for_each(|&page| self.polls.put_back(page, ready_at));
        match &mut self.order {
            VisitOrder::Once { .. } if is_lost => self.n_given_up += lost.len() as u64,
            VisitOrder::Once { .. } => {
                if record.n_failures() < self.config.max_tries && !record.is_final() {
                    self.queue(record.target.kind, record.target.page, site);
                }
            }
            VisitOrder::Scheduled(scheduler) if is_lost => {
                let outcome = VisitOutcome::Failed { retry_at: Some(ready_at) };
                for &page in &lost {
                    scheduler.record(page, outcome.clone(), now);
                }
            }
            VisitOrder::Scheduled(_) => {}
        }
        lost
    }

    /// Records the outcome of a page's analysis; `None` if it has none.
    pub(super) fn finish_analysis(
        &mut self,
        page: PageId,
        outcome: Option<VisitOutcome>,
        headlines: Vec<PageHeadline>,
    ) {
        self.large.remove(&page);
        if let Some((by_response, at)) = self.analysing.remove(&page) {
            self.record_outcome(page, outcome.unwrap_or(by_response), at);
            headlines.into_iter().for_each(|headline| self.announce_headline(headline, at));
        }
    }

    /// A listing page changed the headline of a page. New pages are visited first anyway. A page with a changed
    /// headline was probably edited.
    fn announce_headline(&mut self, headline: PageHeadline, at: Timestamp) {
        if let VisitOrder::Scheduled(scheduler) = &mut self.order {
            scheduler.announce(headline.page, at, None);
            self.note_cause(headline.page, headline.title);
        }
    }

    fn record_outcome(&mut self, page: PageId, outcome: VisitOutcome, at: Timestamp) {
        if let VisitOrder::Scheduled(scheduler) = &mut self.order {
            scheduler.record(page, outcome, at);
        }
    }

    /// No new visit starts. Fetches in flight finish.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Why the crawl should end as soon as the visits in flight allow.
    pub(super) fn wanted_end(&self, now: Timestamp) -> Option<CrawlEnd> {
        match self.is_stopping {
            true => Some(CrawlEnd::Interrupted),
            false => self.limit_reached(now),
        }
    }

    /// Why the crawl is over, if it is.
    pub(super) fn end(&self, now: Timestamp) -> Option<CrawlEnd> {
        if self.n_active > 0 {
            return None;
        }
        if self.is_stopping {
            return Some(CrawlEnd::Interrupted);
        }
        let limit = self.limit_reached(now);
        // At a limit the crawl must end within a bounded time. The next crawl analyses the large documents.
        let n_left_out = if limit.is_some() { self.large.len() } else { 0 };
        if self.n_analysing() > n_left_out || (!self.pending_styles.is_empty() && limit.is_none()) {
            return None;
        }
        if limit.is_some() {
            return limit;
        }
        if self.pages_used_up() {
            return Some(CrawlEnd::Done);
        }
        match self.order {
            VisitOrder::Once { .. } => self.nothing_soon(now).then_some(CrawlEnd::Done),
            VisitOrder::Scheduled(_) => None,
        }
    }

    /// Whether no visit can start within `max_wait`.
    fn nothing_soon(&self, now: Timestamp) -> bool {
        let ready = self.hosts.next_ready();
        self.deferred.is_empty() && ready.is_none_or(|at| at - now > self.config.max_wait)
    }

    /// When [`Policy::next`] may return something new, unless something in flight ends before.
    pub(super) fn wakeup(&self) -> Option<Timestamp> {
        let scheduled = match &self.order {
            VisitOrder::Scheduled(scheduler) => {
                let polls = self.polls.next_due();
                scheduler.next_wakeup().into_iter().chain(polls).min()
            }
            VisitOrder::Once { .. } => None,
        };
        let has_room = (self.n_active as usize) < self.config.max_workers.max(1);
        let ready = self.hosts.next_ready().filter(|_| has_room);
        let end = self.config.time_limit.map(|limit| self.began + limit);
        if self.is_behind() {
            // Nothing starts before an analysis ends, so the scheduler is not asked.
            return end;
        }
        let deferred = self.deferred.iter().map(|visit| visit.until).min();
        [scheduled, ready, end, deferred].into_iter().flatten().min()
    }

    /// The visit that the scheduler will probably choose next. `None` in a pass over everything.
    pub(super) fn next_visit(&self, now: Timestamp) -> Option<(Timestamp, RankedPage)> {
        let VisitOrder::Scheduled(scheduler) = &self.order else { return None };
        let mut next = None;
        if scheduler.n_pages() <= MAX_COPIED {
            scheduler.forecast(now, now + AHEAD, |at, ranked| {
                next = Some((at, ranked));
                false
            });
        }
        next.or_else(|| scheduler.next_expected().map(|(at, ranked)| (at.max(now), ranked)))
    }

    /// The next visits of the scheduler's plan, at most `n`, each page once. Empty in a pass over everything.
    pub(super) fn next_visits(&self, now: Timestamp, n: usize) -> Vec<(Timestamp, RankedPage)> {
        let VisitOrder::Scheduled(scheduler) = &self.order else { return Vec::new() };
        let (mut visits, mut listed, mut n_left) = (Vec::new(), HashSet::new(), MAX_FORESEEN);
        let n = n.min(scheduler.n_pages());
        scheduler.forecast(now, now + AHEAD, |at, ranked| {
            if listed.insert(ranked.page) {
                visits.push((at, ranked));
            }
            n_left -= 1;
            visits.len() < n && n_left > 0
        });
        visits
    }

    /// Until when the overall budget is spent; `None` if a visit is within it.
    pub(super) fn spent_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let scheduled = match &self.order {
            VisitOrder::Scheduled(scheduler) => scheduler.spent_until(),
            VisitOrder::Once { .. } => None,
        };
        self.budgets.spent_until(now).into_iter().chain(scheduled).max()
    }

    /// Whether a visit could start at `now` if a worker were free.
    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        self.hosts.next_ready().is_some_and(|at| at <= now)
    }

    fn limit_reached(&self, now: Timestamp) -> Option<CrawlEnd> {
        if self.config.size_limit.is_some_and(|limit| self.stored_bytes >= limit) {
            return Some(CrawlEnd::SizeLimit);
        }
        self.config.time_limit.is_some_and(|limit| now - self.began >= limit).then_some(CrawlEnd::TimeLimit)
    }

    /// Whether a pass over everything ended because nothing was left, not because of `limit`.
    pub(super) fn is_pass_complete(&self) -> bool {
        matches!(self.order, VisitOrder::Once { .. }) && !self.pages_used_up()
    }

    fn pages_used_up(&self) -> bool {
        self.config.limit.is_some_and(|limit| self.n_pages_started >= limit)
    }

    /// The scheduler; `None` in a pass over everything.
    pub(super) fn scheduler_mut(&mut self) -> Option<&mut Scheduler> {
        match &mut self.order {
            VisitOrder::Scheduled(scheduler) => Some(scheduler),
            VisitOrder::Once { .. } => None,
        }
    }

    /// The scheduler's checkpoint, once per hour.
    pub(super) fn new_checkpoint(&mut self) -> Option<Checkpoint> {
        let VisitOrder::Scheduled(scheduler) = &self.order else { return None };
        let hour = scheduler.hour_start();
        if hour == self.checkpoint_hour {
            return None;
        }
        self.checkpoint_hour = hour;
        scheduler.checkpoint()
    }

    pub(super) fn followed(&self) -> &FollowedSites {
        &self.followed
    }

    /// Whether the user still follows this seed.
    pub(super) fn has_seed(&self, seed: i64) -> bool {
        self.followed.has_seed(seed)
    }

    pub(super) fn seed_weight(&self, seed: i64) -> f32 {
        self.followed.seed_weight(seed)
    }

    /// Pages under analysis or ready for it, without those that wait for subresources.
    pub(super) fn n_analysing(&self) -> usize {
        self.analysing.len().saturating_sub(self.pending_styles.n_waiting())
    }

    pub(super) fn n_active(&self) -> u64 {
        self.n_active
    }

    pub(super) fn n_known(&self) -> u64 {
        self.n_known
    }

    /// URLs that wait for their host.
    pub(super) fn n_waiting(&self) -> u64 {
        self.hosts.n_waiting() as u64
    }

    /// Pages given up because their host did not respond.
    pub(super) fn n_given_up(&self) -> u64 {
        self.n_given_up
    }
}

#[cfg(test)]
mod tests;
