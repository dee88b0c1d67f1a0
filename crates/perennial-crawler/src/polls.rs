//! Chooses the next feed to poll. Each feed has its own publishing pattern; all share one budget.
//!
//! A poll is not a page visit. It is cheap, mostly a 304, and its result makes pages urgent. So the page scheduler
//! does not rank feeds, and they have a separate budget (docs/decisions/0032).

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use perennial_core::feed::PollHints;
use perennial_core::feed::polling::{PollLimits, PublishingHistory};
use perennial_core::schedule::{Budget, Every};
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

use super::budgets::{period_end, period_number};
use super::record::VisitRecord;
use perennial_archive::store::VisitEnding;

/// The first wait after a failure. It doubles with each further failure, up to a day.
const FIRST_RETRY: Span = Span::from_secs(600);
/// A feed that is gone or has moved is tried again after this time.
const GONE_WAIT: Span = Span::from_hours(24 * 7);

/// The result of a poll that found a feed.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct FeedPoll {
    /// Publication times of its items. New items without a date have the time of the poll.
    pub(super) times: Vec<Timestamp>,
    pub(super) n_held: usize,
    /// How many of them are new.
    pub(super) n_new: usize,
    /// The polling interval that the feed suggests.
    pub(super) pace: PollHints,
    /// The feed's channel page, if it is followed. It changes with the items.
    pub(super) channel: Option<PageId>,
    /// The feed's hub, and the URL by which the hub knows the feed.
    pub(super) hub: Option<(String, String)>,
}

struct PolledFeed {
    site: SiteId,
    publishing: PublishingHistory,
    interval: Option<PollInterval>,
    /// When it is due; `None` while it is queued or in flight.
    due: Option<Timestamp>,
    /// Whether a hub announced news while it was in flight.
    is_notified: bool,
}

/// The interval that the user set for a feed, on the clock of its site.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PollInterval {
    pub(super) every: Every,
    pub(super) clock: LocalClock,
}

impl From<(Every, LocalClock)> for PollInterval {
    fn from((every, clock): (Every, LocalClock)) -> PollInterval {
        PollInterval { every, clock }
    }
}

impl PolledFeed {
    fn new(site: SiteId, interval: Option<PollInterval>) -> PolledFeed {
        let publishing = PublishingHistory::default();
        PolledFeed { site, publishing, interval, due: None, is_notified: false }
    }

    /// When the feed is due after a poll at `last` that had an answer.
    fn next_poll(&self, last: Timestamp, limits: &PollLimits) -> Timestamp {
        match &self.interval {
            Some(set) => set.every.next(&set.clock, last),
            None => self.publishing.next_poll(last, limits),
        }
    }
}

/// All followed feeds.
pub(super) struct FeedPolls {
    feeds: HashMap<PageId, PolledFeed>,
    due: BTreeSet<(Timestamp, PageId)>,
    limits: PollLimits,
    budget: Option<Budget>,
    /// Number of the budget's period, and the polls in it.
    spent: (i64, u64),
    /// When [`FeedPolls::take_due`] was last called.
    checked_at: Timestamp,
}

impl FeedPolls {
    /// `budget` bounds the polls of all feeds together.
    pub(super) fn new(budget: Option<Budget>) -> FeedPolls {
        FeedPolls {
            feeds: HashMap::new(),
            due: BTreeSet::new(),
            limits: PollLimits::default(),
            budget,
            spent: (i64::MIN, 0),
            checked_at: Timestamp::EPOCH,
        }
    }

    /// Adds a new feed. It is due at once.
    pub(super) fn add(&mut self, page: PageId, site: SiteId, interval: Option<PollInterval>) {
        if let Entry::Vacant(new) = self.feeds.entry(page) {
            new.insert(PolledFeed::new(site, interval));
            self.set_due(page, self.checked_at);
        }
    }

    /// Adds a URL whose first visit is queued. Polls start when that visit ends.
    pub(super) fn expect(&mut self, page: PageId, site: SiteId) {
        self.feeds.entry(page).or_insert(PolledFeed::new(site, None));
    }

    /// Adds a feed of an earlier crawl with its publishing pattern and its last visit.
    pub(super) fn load(
        &mut self,
        page: PageId,
        publishing: PublishingHistory,
        (site, interval): (SiteId, Option<PollInterval>),
        visited: Option<Timestamp>,
        now: Timestamp,
    ) {
        let feed = PolledFeed { publishing, ..PolledFeed::new(site, interval) };
        let due = visited.map_or(now, |visited| feed.next_poll(visited.min(now), &self.limits));
        self.feeds.insert(page, feed);
        self.set_due(page, due);
    }

    fn set_due(&mut self, page: PageId, at: Timestamp) {
        let Some(poll) = self.feeds.get_mut(&page) else { return };
        if let Some(before) = poll.due.replace(at) {
            self.due.remove(&(before, page));
        }
        self.due.insert((at, page));
    }

    /// The next feed that is due, within the budget. It counts as polled.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<(SiteId, PageId)> {
        self.checked_at = now;
        let &(at, page) = self.due.first()?;
        if at > now || self.spent_until(now).is_some() {
            return None;
        }
        self.due.pop_first();
        let poll = self.feeds.get_mut(&page)?;
        poll.due = None;
        if let Some(budget) = self.budget {
            let period = period_number(now, budget.period);
            self.spent = (period, if self.spent.0 == period { self.spent.1 + 1 } else { 1 });
        }
        Some((poll.site, page))
    }

    /// Until when the budget is spent; `None` if a poll is within it.
    fn spent_until(&self, now: Timestamp) -> Option<Timestamp> {
        let budget = self.budget?;
        let period = period_number(now, budget.period);
        let is_spent = self.spent.0 == period && self.spent.1 as f64 >= budget.visits.max(1.0);
        is_spent.then(|| period_end(period, budget.period))
    }

    /// When [`FeedPolls::take_due`] may return a feed.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let &(at, _) = self.due.first()?;
        // No feed is due before the end of a period whose budget is spent.
        Some(self.spent_until(at.max(self.checked_at)).map_or(at, |until| at.max(until)))
    }

    /// Records a finished visit, if it was a poll.
    pub(super) fn finish_visit(&mut self, record: &VisitRecord, now: Timestamp) {
        let (page, ending) = (record.target.page, record.ending());
        let Some(poll) = self.feeds.get_mut(&page) else { return };
        match &record.poll {
            Some(found) => {
                let times = found.times.iter().copied();
                poll.publishing.read(times, found.n_held, found.n_new, &found.pace, now);
            }
            None if ending != VisitEnding::Failed => poll.publishing.unchanged(),
            None => {}
        }
        let is_notified = std::mem::take(&mut poll.is_notified);
        let next = match ending {
            // News that a hub announced during the poll may not be in its response.
            VisitEnding::New | VisitEnding::Changed | VisitEnding::Unchanged if is_notified => now,
            VisitEnding::Failed => {
                let wait = FIRST_RETRY
                    .as_millis()
                    .saturating_mul(1 << record.n_failures().saturating_sub(1).min(10));
                now + Span::from_millis(wait.min(Span::from_hours(24).as_millis()))
            }
            VisitEnding::Gone | VisitEnding::Missing | VisitEnding::Refused | VisitEnding::Redirected => {
                now + GONE_WAIT
            }
            VisitEnding::New | VisitEnding::Changed | VisitEnding::Unchanged => {
                poll.next_poll(now, &self.limits)
            }
        };
        // An interval that the user set holds after a failure too, and for a feed that is gone.
        let next = poll.interval.as_ref().map_or(next, |set| next.min(set.every.next(&set.clock, now)));
        self.set_due(page, next.max(record.host.ready_at));
    }

    /// Makes a feed due at once, because a hub announced news. Returns whether the feed is followed.
    pub(super) fn notify(&mut self, page: PageId, now: Timestamp) -> bool {
        let Some(poll) = self.feeds.get_mut(&page) else { return false };
        match poll.due {
            Some(_) => self.set_due(page, now),
            None => poll.is_notified = true,
        }
        true
    }

    /// Plans a poll again that was given up before its host was contacted.
    pub(super) fn put_back(&mut self, page: PageId, until: Timestamp) {
        self.set_due(page, until);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::samples::{failed, found, responded};
    use super::*;
    use perennial_archive::store::PageKind;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_700_000_000 / 3600 * 3600 + secs)
    }

    fn drain(polls: &mut FeedPolls, now: Timestamp) -> Vec<u32> {
        std::iter::from_fn(|| polls.take_due(now)).map(|(_, page)| page.0).collect()
    }

    #[test]
    fn a_feed_is_polled_at_once_and_then_by_its_pattern() {
        let mut polls = FeedPolls::new(None);
        polls.add(PageId(1), SiteId(1), None);
        polls.add(PageId(1), SiteId(1), None);
        assert_eq!(
            (drain(&mut polls, at(0)), drain(&mut polls, at(9_999_999))),
            (vec![1], vec![]),
            "once until it is settled"
        );
        let times = (0..10).map(|n| at(n * 3600 - 36_000)).collect();
        let poll = Some(FeedPoll { times, n_held: 10, n_new: 10, ..FeedPoll::default() });
        polls.finish_visit(&VisitRecord { poll, ..found(PageId(1), PageKind::Feed, at(0)) }, at(60));
        let due = polls.next_due().unwrap();
        assert!(due > at(60 + 600) && due < at(4 * 3600), "one an hour: {due}");
        assert_eq!(drain(&mut polls, due), [1]);
    }

    #[test]
    fn an_announcement_of_a_hub_makes_a_feed_due_at_once() {
        let mut polls = FeedPolls::new(None);
        polls.add(PageId(1), SiteId(1), None);
        assert!(!polls.notify(PageId(2), at(0)), "not followed");
        assert_eq!(drain(&mut polls, at(0)), [1]);
        assert!(polls.notify(PageId(1), at(1)), "in flight");
        polls.finish_visit(&found(PageId(1), PageKind::Feed, at(0)), at(2));
        assert_eq!(drain(&mut polls, at(2)), [1], "so it is asked again");
        polls.finish_visit(&found(PageId(1), PageKind::Feed, at(0)), at(3));
        assert!(drain(&mut polls, at(4)).is_empty());
        polls.notify(PageId(1), at(5));
        assert_eq!(drain(&mut polls, at(5)), [1]);
    }

    #[test]
    fn failures_wait_longer_and_longer_and_what_is_gone_longest() {
        let mut polls = FeedPolls::new(None);
        polls.add(PageId(1), SiteId(1), None);
        let mut waits = Vec::new();
        for n in 1..=9 {
            drain(&mut polls, at(1_000_000));
            polls.finish_visit(&failed(PageId(1), n, at(-60)), at(0));
            waits.push((polls.next_due().unwrap() - at(0)).as_millis() / 60_000);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1280, 1440]);
        polls.finish_visit(&responded(PageId(1), PageKind::Feed, 404, at(0)), at(0));
        assert_eq!(polls.next_due(), Some(at(0) + GONE_WAIT));
    }

    #[test]
    fn polls_have_a_budget_of_their_own() {
        let budget = Budget { visits: 3.0, period: Span::from_hours(1) };
        let mut polls = FeedPolls::new(Some(budget));
        (0..5).for_each(|page| polls.add(PageId(page), SiteId(1), None));
        assert_eq!(drain(&mut polls, at(0)), [0, 1, 2]);
        assert_eq!(polls.next_due(), Some(at(3600)), "the next period");
        assert_eq!(drain(&mut polls, at(3600)), [3, 4]);
    }

    #[test]
    fn an_interval_of_the_user_holds_for_every_response_of_a_feed() {
        let every = Every { interval: Span::from_secs(90), hours: None };
        let mut polls = FeedPolls::new(None);
        polls.add(PageId(1), SiteId(1), Some(PollInterval { every, clock: LocalClock::utc() }));
        let slow = FeedPoll {
            pace: PollHints { ttl_minutes: Some(60), ..PollHints::default() },
            ..FeedPoll::default()
        };
        let responses = [
            VisitRecord { poll: Some(slow), ..found(PageId(1), PageKind::Feed, at(0)) },
            failed(PageId(1), 5, at(-60)),
            responded(PageId(1), PageKind::Feed, 404, at(0)),
        ];
        for response in responses {
            drain(&mut polls, at(1000));
            polls.finish_visit(&response, at(0));
            assert_eq!(polls.next_due(), Some(at(90)), "{:?}", response.ending());
        }
    }
}
