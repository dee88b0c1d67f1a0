//! Shadow prices of the hours ahead -> the urgency of a visit that may also wait for a cheaper hour (docs/papers.md,
//! Expected gain; docs/decisions/0013-expected-gain.md).
//!
//! The shadow price of a visit is the gain of the last visit in a slot. The gain of [`super::gain`] is exact if the
//! price is the same at all hours. But pages change by day while nights have as many visits, so the price at night is
//! less than half. A version that no other replaces until the night can wait for the night. A version that is
//! replaced in the evening cannot. This matters for Definition 5.13, where pages with a few changes per day earn
//! most.
//!
//! After a visit, a dynamic program over the hour of the next visit plans two days for the page at the known prices.
//! The simulator's bound for known patterns does the same. The page's urgency is the price at which a visit now and
//! waiting for the best hour are worth the same. Nothing is learned about a page before its next visit, so one plan
//! lasts until then. The work grows with the number of visits and not with the number of pages.

use super::pages::{ANNOUNCED, PageColumns};
use super::{Goal, Reason, Scheduler, Strategy, gain, learn};
use crate::pattern::calendar::DayPlace;
use crate::pattern::mixture::{bucket_index, one_minus_exp};
use crate::time::{LocalClock, Span, Timestamp};

/// Hours after a visit for which a plan has an urgency.
const SPAN: usize = 24;
/// Hours that a plan covers.
pub(super) const DEPTH: usize = 2 * SPAN;
/// Weight of a new price against the known price for that hour.
const SHADOW_PRICE_WEIGHT: f32 = 0.25;
/// If waiting is worth more than a visit, urgency is this share of the gain, so such pages come last, sorted by gain.
const LEAST_SHARE: f32 = 1e-3;
const HOUR_SECS: f32 = 3600.0;

/// One of the hours after the current slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpcomingHour {
    bucket: u16,
    day: DayPlace,
}

/// The estimate for one page and hour.
#[derive(Clone, Copy, Default, Debug)]
struct HourForecast {
    changed: f32,
    importance: f32,
}

/// Prices by bucket, and the plans of pages.
#[derive(Clone, Default)]
pub(super) struct HourlyPlans {
    /// By bucket of clock 0; `None` until a slot has fallen into the bucket.
    shadow_prices: Vec<Option<f32>>,
    /// Prices of the hours after the current slot, once all hours of a day have a price.
    hours: Option<[f32; DEPTH]>,
    /// The end of the current slot.
    from: u32,
    /// By row of the page.
    plans: Vec<UrgencyPlan>,
}

/// The urgency of a visit 0, 1, 2 hours after `from`, and so on.
#[derive(Clone)]
struct UrgencyPlan {
    from: u32,
    urgency: [f32; SPAN + 1],
}

impl Scheduler {
    /// Whether visits are planned ahead. If the budget may vary, all hours have about the same price. Pooled
    /// completeness gains nothing, because the busiest pages earn most and cannot wait. If sites are swept, the
    /// sweeps decide the hour.
    pub(super) fn plans_ahead(&self) -> bool {
        let config = &self.config;
        config.strategy == Strategy::ExpectedGain
            && matches!(config.goal, Goal::EveryPage | Goal::Count)
            && config.budget.is_some()
            && !config.saves_visits()
            && config.slot <= Span::from_hours(1)
    }

    /// Records the price of the slot, which is the lowest urgency among its most urgent visits, and looks up the
    /// prices of the following hours.
    pub(super) fn note_shadow_price(&mut self, urgent: &[(u32, Reason)]) {
        let Some((start, end)) = self.slot.range.filter(|_| self.plans_ahead()) else { return };
        let urgency = |(at, _): &(u32, Reason)| self.pages.urgency[*at as usize];
        if let Some(shadow_price) = urgent.iter().map(urgency).reduce(f32::min) {
            let hours = (end - start).as_hours_f64() as f32;
            let bucket = usize::from(self.bucket_at(&self.clocks[0], start));
            self.ahead.note_shadow_price(bucket, self.learner.mixture.n_buckets(), hours, shadow_price);
        }
        let middle_of = |hour: usize| end + Span::from_secs(3600 * hour as i64 + 1800);
        let hour_at = |clock: &LocalClock, at: Timestamp| UpcomingHour {
            bucket: self.bucket_at(clock, at),
            day: DayPlace::on_clock(clock, clock.local(at).day),
        };
        let hours = |clock| std::array::from_fn(|hour| hour_at(clock, middle_of(hour)));
        self.hours_ahead = self.clocks.iter().map(hours).collect();
        self.ahead.enter(self.secs(end), &self.hours_ahead[0].map(|hour| hour.bucket));
    }

    fn bucket_at(&self, clock: &LocalClock, at: Timestamp) -> u16 {
        let (kind, period) = clock.period_at(at, self.config.n_periods);
        bucket_index(kind, period, self.config.n_periods)
    }

    /// Plans the next visit of a page after a visit.
    pub(super) fn plan_ahead(&mut self, at: usize) {
        if !self.ahead.is_ready() || !self.plans_ahead() || !learn::owns_row(&self.pages, at) {
            return;
        }
        let Some(buckets) = self.hours_ahead.get(usize::from(self.pages.clock[at])) else { return };
        let (mut unusual, left) = (self.pages.spell[at] - 1.0, gain::spell_left(1.0));
        let mut hours = [HourForecast::default(); DEPTH];
        let calendar = self.learner.rows().calendar(self.pages.row[at]);
        for (hour, ahead) in hours.iter_mut().zip(buckets) {
            let busy = calendar.map_or(1.0, |calendar| calendar.at(ahead.day));
            let (rate, importance) =
                self.learner.in_spell(&self.pages, at, usize::from(ahead.bucket), busy * (1.0 + unusual));
            *hour = HourForecast { changed: one_minus_exp(rate), importance };
            unusual *= left;
        }
        self.ahead.plan(self.pages.row[at], self.pages.value[at], self.pages.expected_importance[at], &hours);
    }
}

impl HourlyPlans {
    /// Starts the slot that ends at `from`; `buckets` are those of the hours after it on clock 0.
    fn enter(&mut self, from: u32, buckets: &[u16; DEPTH]) {
        self.from = from;
        let of_other_days =
            |bucket: usize| (bucket + self.shadow_prices.len() / 2) % self.shadow_prices.len().max(1);
        let shadow_price = |bucket: usize| self.shadow_prices.get(bucket).copied().flatten();
        let mut hours = [0.0; DEPTH];
        self.hours = None;
        for (hour, &bucket) in hours.iter_mut().zip(buckets) {
            let bucket = usize::from(bucket);
            let Some(shadow_price) = shadow_price(bucket).or_else(|| shadow_price(of_other_days(bucket)))
            else {
                return;
            };
            *hour = shadow_price;
        }
        self.hours = Some(hours);
    }

    fn is_ready(&self) -> bool {
        self.hours.is_some()
    }

    /// Records the price of a slot of `hours` hours in a bucket.
    fn note_shadow_price(&mut self, bucket: usize, n_buckets: usize, hours: f32, shadow_price: f32) {
        self.shadow_prices.resize(n_buckets, None);
        let Some(known) = self.shadow_prices.get_mut(bucket) else { return };
        let weight = SHADOW_PRICE_WEIGHT * hours.min(1.0);
        *known = Some(known.map_or(shadow_price, |known| known + weight * (shadow_price - known)));
    }

    /// Plans a page that was visited in this slot. Its expected importance refers to the end of the slot.
    fn plan(&mut self, row: u32, value: f32, expected_importance: f32, hours: &[HourForecast; DEPTH]) {
        let Some(shadow_prices) = &self.hours else { return };
        let row = row as usize;
        if row >= self.plans.len() {
            self.plans.resize(row + 1, UrgencyPlan { from: 0, urgency: [0.0; SPAN + 1] });
        }
        let mut urgency = [0.0; SPAN + 1];
        urgencies(value, expected_importance, hours, shadow_prices, &mut urgency);
        self.plans[row] = UrgencyPlan { from: self.from, urgency };
    }

    /// Replaces the gain by the planned urgency for pages that own a row and whose plan reaches `now_secs`.
    pub(super) fn follow(&self, pages: &mut PageColumns, range: std::ops::Range<usize>, now_secs: u32) {
        for at in range {
            let Some(plan) = self.plans.get(pages.row[at] as usize) else { continue };
            if plan.from <= pages.seen_at[at] || pages.has(at, ANNOUNCED) || !learn::owns_row(pages, at) {
                continue;
            }
            if let Some(planned) = plan.urgency_at(now_secs) {
                pages.urgency[at] = planned.max(LEAST_SHARE * pages.urgency[at]);
            }
        }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.plans.capacity() * std::mem::size_of::<UrgencyPlan>()
    }
}

impl UrgencyPlan {
    fn urgency_at(&self, now_secs: u32) -> Option<f32> {
        let hours = now_secs.checked_sub(self.from)? as f32 / HOUR_SECS;
        let whole = hours as usize;
        let (here, next) = (self.urgency.get(whole)?, self.urgency.get(whole + 1));
        Some(next.map_or(*here, |next| here + (hours - whole as f32) * (next - here)))
    }
}

/// Writes the prices at which a visit and waiting are worth the same to `into`: now, with this expected importance,
/// and at the end of each hour.
fn urgencies(
    value: f32,
    expected_importance: f32,
    hours: &[HourForecast],
    shadow_prices: &[f32],
    into: &mut [f32],
) {
    let n = hours.len();
    let mut after = vec![0.0f32; n + 1];
    for visited in (0..n).rev() {
        let (mut expected_importance, mut best) = (0.0f32, 0.0f32);
        let next = hours.iter().zip(shadow_prices).zip(&after[1..]).skip(visited).take(SPAN);
        for ((hour, shadow_price), after) in next {
            expected_importance += (hour.importance - expected_importance) * hour.changed;
            best = best.max(value * expected_importance - shadow_price + after);
        }
        after[visited] = best;
    }
    let mut worth = vec![0.0f32; n + 1];
    let mut expected_importance = expected_importance;
    worth[0] = value * expected_importance + after[0];
    for (i, hour) in hours.iter().enumerate() {
        expected_importance += (hour.importance - expected_importance) * hour.changed;
        worth[i + 1] = value * expected_importance + after[i + 1];
    }
    // Backwards in time, `waiting` is the most that a later visit earns after its price.
    let mut waiting = 0.0f32;
    for i in (0..=n).rev() {
        if let Some(urgency) = into.get_mut(i) {
            *urgency = worth[i] - waiting;
        }
        if i > 0 {
            waiting = waiting.max(worth[i] - shadow_prices[i - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The most that visits at the ends of some hours can earn, by trying all choices. A visit before them would earn
    /// the expected importance.
    fn most(value: f32, expected_importance: f32, hours: &[HourForecast], shadow_prices: &[f32]) -> f32 {
        let (Some((hour, hours)), Some((shadow_price, shadow_prices))) =
            (hours.split_first(), shadow_prices.split_first())
        else {
            return 0.0;
        };
        let expected_importance =
            expected_importance + (hour.importance - expected_importance) * hour.changed;
        let visited = value * expected_importance - shadow_price + most(value, 0.0, hours, shadow_prices);
        visited.max(most(value, expected_importance, hours, shadow_prices))
    }

    proptest! {
        #[test]
        fn urgency_is_the_shadow_price_at_which_waiting_is_as_good(
            hours in prop::collection::vec((0.0f32..1.0, 0.0f32..1.0, 0.0f32..1.0), 1..10),
            value in 0.1f32..4.0, expected_importance in 0.0f32..1.0,
        ) {
            let shadow_prices: Vec<f32> = hours.iter().map(|hour| hour.2).collect();
            let hours: Vec<HourForecast> =
                hours.iter().map(|&(changed, importance, _)| HourForecast { changed, importance }).collect();
            let mut planned = vec![0.0; hours.len() + 1];
            urgencies(value, expected_importance, &hours, &shadow_prices, &mut planned);
            let mut expected_importance = expected_importance;
            for i in 0..=hours.len() {
                let visit = value * expected_importance + most(value, 0.0, &hours[i..], &shadow_prices[i..]);
                let wait = most(value, expected_importance, &hours[i..], &shadow_prices[i..]);
                prop_assert!((planned[i] - (visit - wait)).abs() < 1e-4, "{i}: {} {visit} {wait}", planned[i]);
                if let Some(hour) = hours.get(i) {
                    expected_importance += (hour.importance - expected_importance) * hour.changed;
                }
            }
        }
    }

    /// Two pages have changed in the afternoon: one is quiet from now on, the other changes all evening.
    #[test]
    fn what_nothing_will_replace_waits_for_the_cheap_hours() {
        let mut shadow_prices = [1.0; DEPTH];
        shadow_prices[6..16].fill(0.3);
        let plan = |changed: f32| {
            let mut evening = [HourForecast { changed: 0.0, importance: 0.5 }; DEPTH];
            evening[..6].fill(HourForecast { changed, importance: 0.5 });
            let mut urgency = [0.0; SPAN + 1];
            urgencies(2.4, 0.5, &evening, &shadow_prices, &mut urgency);
            urgency
        };
        let (quiet, busy) = (plan(0.0), plan(0.5));
        assert!(quiet[0] < 0.31 && busy[0] > 0.6, "{} {}", quiet[0], busy[0]);
    }

    #[test]
    fn shadow_prices_are_known_once_every_hour_of_a_day_had_one() {
        let mut ahead = HourlyPlans::default();
        let buckets: [u16; DEPTH] = std::array::from_fn(|hour| (hour % 24) as u16);
        for bucket in 0..24 {
            ahead.enter(0, &buckets);
            assert!(!ahead.is_ready(), "{bucket}");
            ahead.note_shadow_price(bucket, 48, 1.0, 2.0);
        }
        ahead.enter(0, &buckets);
        assert!(ahead.is_ready());
        // A weekend is taken to be like other days until one has passed.
        ahead.enter(0, &buckets.map(|bucket| bucket + 24));
        assert!(ahead.is_ready());
    }
}
