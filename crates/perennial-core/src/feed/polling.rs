//! A feed's history -> the time of the next poll, so no item is missed (docs/decisions/0032).
//!
//! A feed contains its last k items. If more than k new ones appear between two polls, some are missed: p polls per
//! day catch at most k p items per day. The next poll is the earlier of two times, which follow from the dates of the
//! items:
//! - when one new item is expected, from the feed's rate in each hour of the day;
//! - when half of the feed would be replaced if its fastest burst recurred.
//!
//! Finally the feed's own hints apply: `ttl`, `skipHours`, `skipDays`, the period of `sy`.

use super::PollHints;
use crate::time::{Span, Timestamp};

/// Item dates kept per feed.
pub const MAX_TIMES: usize = 64;
/// The age up to which dates count, in seconds.
const MEMORY_SECS: u32 = 28 * 86_400;
/// With fewer dates than this, no pattern is used.
const FEW_TIMES: usize = 8;
/// The wait for a feed with few dates. It doubles after each poll without new items.
const FIRST_WAIT_SECS: u32 = 600;
/// The longest wait for a feed with recent items. A silent feed waits a tenth of its silence.
const DAY_SECS: u32 = 86_400;
/// The longest wait overall.
const LONGEST_WAIT_SECS: u32 = 30 * DAY_SECS;
/// The longest pause that a feed can request.
const LONGEST_TTL_SECS: u32 = 2 * DAY_SECS;
/// Prior items per hour of the day; 24 of them weigh as much as a day's items.
const PRIOR_PER_HOUR: f64 = 0.5;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PollLimits {
    /// The minimum time between polls.
    pub shortest: Span,
    /// The number of new items to expect at a poll.
    pub expected_new: f64,
}

impl Default for PollLimits {
    fn default() -> PollLimits {
        PollLimits { shortest: Span::from_secs(600), expected_new: 1.0 }
    }
}

/// The state of a feed between polls, below 400 bytes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PublishingHistory {
    /// When the latest items were published, in seconds since 1970, ascending.
    times: Vec<u32>,
    /// Number of items at the last poll.
    n_held: u32,
    /// Polls in a row without new items.
    n_quiet: u32,
    pace: PollHints,
}

impl PublishingHistory {
    /// Records a poll: the dates of all items, and the number of new ones. A new item without a date has the time of
    /// the poll.
    pub fn read(
        &mut self,
        times: impl IntoIterator<Item = Timestamp>,
        n_held: usize,
        n_new: usize,
        pace: &PollHints,
        now: Timestamp,
    ) {
        let now_secs = secs(now);
        // A date in the future is a plan or a mistake, and does not show when items appear.
        self.times.extend(times.into_iter().map(secs).filter(|&time| time > 0 && time <= now_secs));
        self.times.sort_unstable();
        let n_old = self.times.partition_point(|&time| time < now_secs.saturating_sub(MEMORY_SECS));
        // One older date is kept, because it shows how long the feed was silent.
        self.times.drain(..n_old.saturating_sub(1));
        self.times.dedup();
        let n_over = self.times.len().saturating_sub(MAX_TIMES);
        self.times.drain(..n_over);
        self.n_held = n_held as u32;
        self.n_quiet = if n_new > 0 { 0 } else { self.n_quiet.saturating_add(1) };
        self.pace = pace.clone();
    }

    /// Records a poll without new items: a 304, or the same bytes.
    pub fn unchanged(&mut self) {
        self.n_quiet = self.n_quiet.saturating_add(1);
    }

    /// Items per hour over the known dates; `None` with fewer than two dates.
    pub fn items_per_hour(&self, now: Timestamp) -> Option<f64> {
        let first = *self.times.first().filter(|_| self.times.len() > 1)?;
        let hours = f64::from(secs(now).saturating_sub(first).max(60)) / 3600.0;
        Some((self.times.len() - 1) as f64 / hours)
    }

    /// The hour of the day, in UTC, with the most items, if it has twice its share of at least eight items.
    pub fn busiest_hour(&self) -> Option<u8> {
        let counts = self.counts_by_hour();
        let (hour, &most) = counts.iter().enumerate().max_by_key(|&(_, count)| count)?;
        let n_items: u32 = counts.iter().sum();
        (n_items >= 8 && most * 12 >= n_items && most >= 3).then_some(hour as u8)
    }

    fn counts_by_hour(&self) -> [u32; 24] {
        let mut counts = [0; 24];
        self.times.iter().for_each(|time| counts[(time / 3600 % 24) as usize] += 1);
        counts
    }

    /// The time of the next poll after a poll at `last`.
    pub fn next_poll(&self, last: Timestamp, limits: &PollLimits) -> Timestamp {
        let last_secs = secs(last);
        let wait = self.wait_secs(last_secs, limits);
        let shortest = (limits.shortest.as_millis() / 1000).clamp(1, i64::from(LONGEST_WAIT_SECS)) as u32;
        let wait = wait.max(shortest).max(self.requested_secs());
        let allowed = Timestamp::from_secs(i64::from(self.allowed_from(last_secs.saturating_add(wait))));
        // The clock may exceed the range of seconds. The wait applies in any case.
        allowed.max(last + Span::from_secs(i64::from(wait)))
    }

    fn wait_secs(&self, last: u32, limits: &PollLimits) -> u32 {
        let growing = FIRST_WAIT_SECS.saturating_mul(1 << self.n_quiet.min(12)).min(LONGEST_WAIT_SECS / 4);
        let Some(&newest) = self.times.last() else { return growing };
        let silence = last.saturating_sub(newest);
        // A tenth of the silence bounds the delay of the next item to a tenth of the time that it took to appear.
        let longest = (silence / 10).clamp(DAY_SECS, LONGEST_WAIT_SECS);
        let by_pattern =
            self.until_expected(last, limits.expected_new, longest).min(self.until_full()).min(longest);
        // A young feed may be a busy one.
        if self.times.len() < FEW_TIMES { by_pattern.min(growing) } else { by_pattern }
    }

    /// Seconds until this many new items are expected. Each hour of the day has its own rate, close to the mean if it
    /// has few items.
    fn until_expected(&self, last: u32, n_expected: f64, longest: u32) -> u32 {
        let Some(rate) = self.items_per_hour(Timestamp::from_secs(i64::from(last))) else { return longest };
        let counts = self.counts_by_hour();
        let n_items: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        let shares =
            counts.map(|count| (f64::from(count) + PRIOR_PER_HOUR) / (n_items + 24.0 * PRIOR_PER_HOUR));
        let (mut left, mut at) = (n_expected, last);
        while at - last < longest {
            let end = (at / 3600 + 1).saturating_mul(3600);
            let an_hour = rate * 24.0 * shares[(at / 3600 % 24) as usize];
            let here = an_hour * f64::from(end - at) / 3600.0;
            if here >= left {
                return at - last + (left / an_hour * 3600.0) as u32;
            }
            left -= here;
            at = end;
        }
        longest
    }

    /// Seconds in which the fastest burst replaced half of the feed.
    fn until_full(&self) -> u32 {
        let half = (self.n_held as usize / 2).max(1);
        let spans = self.times.windows(half + 1).map(|window| window[half] - window[0]);
        spans.min().unwrap_or(u32::MAX)
    }

    /// The pause that the feed requests.
    fn requested_secs(&self) -> u32 {
        let ttl = self.pace.ttl_minutes.map_or(0, |minutes| minutes.saturating_mul(60));
        let period = self
            .pace
            .update_period_secs
            .map_or(0, |period| period / self.pace.update_frequency.unwrap_or(1).max(1));
        // Generators write `hourly` without meaning it, so a period counts as an hour at most.
        ttl.max(period.min(3_600)).min(LONGEST_TTL_SECS)
    }

    /// The first second from `at` in an hour and on a day without a skip hint.
    fn allowed_from(&self, at: u32) -> u32 {
        let PollHints { skip_hours, skip_days, .. } = self.pace;
        // A feed that skips all hours or all days is mistaken.
        let (skip_hours, skip_days) = (skip_hours & 0xff_ffff, skip_days & 0x7f);
        let skip_hours = if skip_hours == 0xff_ffff { 0 } else { skip_hours };
        let skip_days = if skip_days == 0x7f { 0 } else { skip_days };
        let mut at = at;
        for _ in 0..24 * 8 {
            let hour = at / 3600;
            // 1970-01-01 was a Thursday.
            let day = (hour / 24 + 3) % 7;
            if skip_hours & (1 << (hour % 24)) == 0 && skip_days & (1 << day) == 0 {
                break;
            }
            at = (hour + 1).saturating_mul(3600);
        }
        at
    }
}

fn secs(at: Timestamp) -> u32 {
    at.as_secs().clamp(0, i64::from(u32::MAX / 2)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    const START: i64 = 1_700_000_000 / 86_400 * 86_400;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(START + secs)
    }

    /// Polls a feed of `n_held` items for a while. Returns the items published since the first poll, those that a
    /// poll contained, and the number of polls. Items of the first poll count as seen.
    fn followed(
        times: &[i64],
        n_held: usize,
        (from, until): (i64, i64),
        pace: &PollHints,
    ) -> (usize, usize, usize) {
        let limits = &PollLimits::default();
        let mut publishing = PublishingHistory::default();
        let n_before = times.partition_point(|&time| time <= from).saturating_sub(n_held);
        let (mut now, mut n_seen, mut n_polls, mut seen_to) = (from, 0, 0, n_before);
        while now <= until {
            let n_out = times.partition_point(|&time| time <= now);
            let held = &times[n_out.saturating_sub(n_held)..n_out];
            let n_new = held.len().min(n_out - seen_to);
            (n_seen, seen_to, n_polls) = (n_seen + n_new, n_out, n_polls + 1);
            publishing.read(held.iter().map(|&time| at(time)), held.len(), n_new, pace, at(now));
            let next = publishing.next_poll(at(now), limits);
            assert!(next > at(now));
            now = (next - at(0)).as_millis() / 1000;
        }
        (seen_to - n_before, n_seen, n_polls)
    }

    /// Items by day, in office hours, with a mean number per day.
    fn office_hours(n_days: i64, a_day: f64, seed: u64) -> Vec<i64> {
        let mut rng = Rng::new(seed);
        let mut times = Vec::new();
        for hour in 0..n_days * 24 {
            let rate = if (8..18).contains(&(hour % 24)) { a_day / 10.0 } else { 0.0 };
            let mut left = rate;
            while rng.unit() < left {
                times.push(hour * 3600 + (rng.unit() * 3600.0) as i64);
                left -= 1.0;
            }
        }
        times.sort_unstable();
        times
    }

    #[test]
    fn no_item_is_lost_where_the_feed_is_long_enough() {
        for (a_day, n_held) in [(2.0, 10), (10.0, 10), (40.0, 20), (100.0, 30)] {
            let times = office_hours(30, a_day, 7);
            let (n_out, n_seen, n_polls) =
                followed(&times, n_held, (2 * 86_400, 30 * 86_400), &PollHints::default());
            assert_eq!(n_out, n_seen, "{a_day} a day, {n_held} held, {n_polls} polls");
        }
    }

    #[test]
    fn a_quiet_feed_costs_little_and_a_busy_one_is_fresh() {
        let quiet: Vec<i64> = (0..5).map(|week| week * 7 * 86_400).collect();
        let (_, n_seen, n_polls) = followed(&quiet, 10, (0, 30 * 86_400), &PollHints::default());
        assert!(n_seen == 5 && n_polls <= 70, "{n_seen} {n_polls}");
        let busy: Vec<i64> = (0..30 * 24).map(|hour| hour * 3600).collect();
        let (_, _, n_polls) = followed(&busy, 20, (0, 30 * 86_400), &PollHints::default());
        assert!((500..1200).contains(&n_polls), "one an hour: {n_polls}");
    }

    #[test]
    fn polls_fall_into_the_hours_in_which_items_come() {
        let times = office_hours(28, 8.0, 3);
        let mut publishing = PublishingHistory::default();
        let now = at(28 * 86_400 + 19 * 3600);
        publishing.read(times.iter().map(|&time| at(time)), 20, 5, &PollHints::default(), now);
        let next = publishing.next_poll(now, &PollLimits::default());
        let hour = next.as_secs() / 3600 % 24;
        assert!((2..11).contains(&hour), "the evening is over, the next item comes tomorrow: {next}");
    }

    #[test]
    fn intervals_of_feeds_are_respected() {
        let busy: Vec<Timestamp> = (0..20).map(|minute| at(minute * 60)).collect();
        let now = at(20 * 60);
        let wait = |pace: PollHints| {
            let mut publishing = PublishingHistory::default();
            publishing.read(busy.iter().copied(), 20, 20, &pace, now);
            (publishing.next_poll(now, &PollLimits::default()) - now).as_millis() / 1000
        };
        assert_eq!(wait(PollHints::default()), 600);
        assert_eq!(wait(PollHints { ttl_minutes: Some(90), ..PollHints::default() }), 5400);
        assert_eq!(
            wait(PollHints { ttl_minutes: Some(u32::MAX), ..PollHints::default() }),
            i64::from(LONGEST_TTL_SECS)
        );
        assert_eq!(wait(PollHints { skip_hours: 0b111, ..PollHints::default() }), 3 * 3600 - 20 * 60);
        assert_eq!(
            wait(PollHints { skip_hours: u32::MAX, skip_days: 0x7f, ..PollHints::default() }),
            600,
            "all hours: none"
        );
        let daily = PollHints {
            update_period_secs: Some(86_400),
            update_frequency: Some(48),
            ..PollHints::default()
        };
        assert_eq!(wait(daily), 1800);
    }

    #[test]
    fn a_feed_without_news_is_polled_more_and_more_rarely() {
        let mut publishing = PublishingHistory::default();
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push((publishing.next_poll(at(0), &PollLimits::default()) - at(0)).as_millis() / 60_000);
            publishing.unchanged();
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320]);
    }

    proptest! {
        /// p polls of k items contain at most k p items, all of them published.
        #[test]
        fn polls_hold_at_most_what_the_feed_holds(
            gaps in proptest::collection::vec(1i64..20_000, 0..300), n_held in 1usize..30, ttl in proptest::option::of(1u32..3000),
        ) {
            let times: Vec<i64> = gaps.iter().scan(0, |time, gap| { *time += gap; Some(*time) }).collect();
            let pace = PollHints { ttl_minutes: ttl, ..PollHints::default() };
            let until = times.last().copied().unwrap_or(86_400);
            let (n_out, n_seen, n_polls) = followed(&times, n_held, (0, until), &pace);
            prop_assert!(n_seen <= n_held * n_polls);
            prop_assert!(n_seen <= n_out);
        }

        /// The next poll is in the future and within a limit, for any dates.
        #[test]
        fn the_next_poll_is_ahead(times in proptest::collection::vec(any::<i64>(), 0..100), n_held in 0usize..1000, bits in any::<u32>()) {
            let mut publishing = PublishingHistory::default();
            let pace = PollHints { skip_hours: bits, skip_days: bits as u8, ..PollHints::default() };
            publishing.read(times.into_iter().map(Timestamp::from_secs), n_held, 1, &pace, at(0));
            let next = publishing.next_poll(at(0), &PollLimits::default());
            prop_assert!(next > at(0) && next <= at(40 * 86_400), "{next}");
            prop_assert!(publishing.times.len() <= MAX_TIMES);
        }
    }
}
