//! The bound if only rates and mean importances are known.
//!
//! With known Poisson rates a visit reveals nothing, so the best plan is fixed in advance. A visit at the end of slot t
//! after one at s gains r(s, t) = R_t - exp(Lambda_s - Lambda_t) R_s. R is the expected importance of the last change
//! if there is no visit. As a function of x = exp(-Lambda_t), each candidate s is a line. Slopes grow with s while x
//! falls, so an upper envelope with one pointer finds the best predecessor of each slot in constant time.

use perennial_core::schedule::{Goal, KnownPattern};
use perennial_core::time::{Span, Timestamp};
use rayon::prelude::*;

use super::{BoundSpec, importance_values, least_bound, uniform_shadow_price};
use crate::world::{HOURS, World, WorldPage, hour_of_day, is_weekend};

/// How often prices are adjusted: first by the demand of a sample of the pages, then of all pages. The bound holds for
/// any prices; good prices make it tight.
const SAMPLE_ROUNDS: usize = 40;
const ROUNDS: usize = 8;
const ONE_IN: usize = 4;
/// Hours of a workday and of a weekend day. Slots of one bucket share a price.
const N_BUCKETS: usize = 2 * HOURS;

/// A page that changes at every visit has a rate of 4.7 per hour.
const MAX_SHARE: f64 = 0.991;

/// A bound on the expected completeness of any crawler that knows only the patterns.
pub fn pattern_known(world: &World, patterns: &[KnownPattern], spec: &BoundSpec) -> f64 {
    let n_slots = spec.n_slots();
    let slots: Vec<BoundSlot> = (0..n_slots).map(|place| BoundSlot::at(spec, place)).collect();
    let pages = expected_pages(world, patterns, spec, &slots);
    if n_slots == 0 || pages.is_empty() {
        return 1.0;
    }
    let mut supply = vec![0.0; N_BUCKETS];
    for slot in &slots {
        supply[slot.bucket] += spec.visits_per_hour * spec.slot.as_hours_f64();
    }
    let shadow_prices = sample_shadow_prices(&pages, &slots, &supply);
    let demand = |shadow_prices: &[f64]| total_demand(pages.iter(), &slots, shadow_prices);
    least_bound(&supply, shadow_prices, ROUNDS, demand).1.clamp(0.0, 1.0)
}

/// The prices at which a sample of the pages demands its share of the budget.
fn sample_shadow_prices(pages: &[ExpectedPage], slots: &[BoundSlot], supply: &[f64]) -> Vec<f64> {
    let sample: Vec<&ExpectedPage> =
        pages.iter().step_by(if pages.len() < 40 * ONE_IN { 1 } else { ONE_IN }).collect();
    let share = sample.len() as f64 / pages.len().max(1) as f64;
    let supply: Vec<f64> = supply.iter().map(|n| n * share).collect();
    let demand = |shadow_prices: &[f64]| total_demand(sample.iter().copied(), slots, shadow_prices);
    let highest = sample.iter().map(|page| page.value).fold(0.0, f64::max);
    let (shadow_price, _) = uniform_shadow_price(supply.iter().sum(), highest, |shadow_price| {
        let (gain, wanted) = demand(&[shadow_price; N_BUCKETS]);
        (gain, wanted.iter().sum())
    });
    least_bound(&supply, vec![shadow_price.max(1e-6 * highest); N_BUCKETS], SAMPLE_ROUNDS, demand).0
}

/// The pattern of each page, for a scheduler with `n_periods` per day. It is the true pattern if there is one.
/// Otherwise it is the frequency of changes in the whole world, the best that a crawler could have learned.
pub fn known_rates(world: &World, n_periods: u16) -> Vec<KnownPattern> {
    let exposure = bucket_hours(world.start, world.end);
    world.pages.iter().map(|page| resample_pattern(&hourly_pattern(page, &exposure), n_periods)).collect()
}

/// Hours of each bucket between two instants.
fn bucket_hours(from: Timestamp, until: Timestamp) -> [f64; N_BUCKETS] {
    let mut hours = [0.0; N_BUCKETS];
    let mut at = from;
    while at < until {
        hours[hour_bucket(at)] += 1.0;
        at = at + Span::from_hours(1);
    }
    hours
}

fn hour_bucket(at: Timestamp) -> usize {
    hour_of_day(at) + if is_weekend(at) { HOURS } else { 0 }
}

/// The rate and importance of each bucket.
fn hourly_pattern(page: &WorldPage, exposure: &[f64; N_BUCKETS]) -> [(f64, f64); N_BUCKETS] {
    if let Some(truth) = &page.truth {
        let both = [&truth.workday, &truth.weekend];
        return std::array::from_fn(|bucket| {
            let profile = both[bucket / HOURS];
            (profile.rate[bucket % HOURS], profile.importance[bucket % HOURS])
        });
    }
    // A page of a polled trace changes at most once per poll. The rate therefore follows from the share of hours with a
    // change.
    let (mut n, mut sums) = ([0.0; N_BUCKETS], [0.0; N_BUCKETS]);
    for (place, change) in page.changes.iter().enumerate() {
        let hour = change.at.as_secs().div_euclid(3600);
        if page.changes.get(place + 1).is_none_or(|next| next.at.as_secs().div_euclid(3600) != hour) {
            n[hour_bucket(change.at)] += 1.0;
            sums[hour_bucket(change.at)] += change.importance.get();
        }
    }
    let mean = sums.iter().sum::<f64>() / n.iter().sum::<f64>().max(1.0);
    std::array::from_fn(|bucket| {
        let share = (n[bucket] / exposure[bucket].max(1.0)).min(MAX_SHARE);
        (-(1.0 - share).ln(), (sums[bucket] + 3.0 * mean) / (n[bucket] + 3.0))
    })
}

/// Converts a pattern to periods of a different length. Importance is averaged by rate.
fn resample_pattern(hourly: &[(f64, f64); N_BUCKETS], n_periods: u16) -> KnownPattern {
    let n_periods = usize::from(n_periods.max(1));
    let (mut rates, mut importance) = (Vec::new(), Vec::new());
    for (day, period) in (0..2).flat_map(|day| (0..n_periods).map(move |period| (day, period))) {
        let (from, until) = (period as f64 / n_periods as f64, (period + 1) as f64 / n_periods as f64);
        let (mut changes, mut sum, mut plain, mut width) = (0.0, 0.0, 0.0, 0.0);
        for hour in 0..HOURS {
            let (start, end) = (hour as f64 / HOURS as f64, (hour + 1) as f64 / HOURS as f64);
            let overlap = (until.min(end) - from.max(start)).max(0.0);
            let (rate, mean) = hourly[day * HOURS + hour];
            changes += overlap * rate;
            sum += overlap * rate * mean;
            plain += overlap * mean;
            width += overlap;
        }
        rates.push((changes / width.max(1e-12)) as f32);
        importance.push((if changes > 0.0 { sum / changes } else { plain / width.max(1e-12) }) as f32);
    }
    KnownPattern { rates, importance }
}

struct BoundSlot {
    bucket: usize,
    hours: f64,
    /// Share of the day before the middle of the slot.
    of_day: f64,
    weekend: bool,
}

impl BoundSlot {
    fn at(spec: &BoundSpec, place: usize) -> BoundSlot {
        let start = spec.window.from + Span::from_millis(spec.slot.as_millis() * place as i64);
        let middle = start + Span::from_millis(spec.slot.as_millis() / 2);
        let of_day = middle.as_millis().rem_euclid(86_400_000) as f64 / 86_400_000.0;
        let weekend = is_weekend(middle);
        BoundSlot { bucket: hour_bucket(middle), hours: spec.slot.as_hours_f64(), of_day, weekend }
    }
}

/// The expected changes of a page in each slot.
struct ExpectedPage {
    /// Value per unit of importance; all changes together are worth 1.
    value: f64,
    /// The highest importance of a change in any slot.
    highest: f64,
    slots: Vec<ExpectedSlot>,
}

/// The expected changes of a page in one slot.
struct ExpectedSlot {
    n_changes: f32,
    /// Importance of a change.
    importance: f32,
    /// Probability of no change.
    unchanged: f32,
}

impl ExpectedPage {
    fn new(value: f64, slots: impl Iterator<Item = (f32, f32)>) -> ExpectedPage {
        let slot =
            |(n, importance): (f32, f32)| ExpectedSlot { n_changes: n, importance, unchanged: (-n).exp() };
        let slots: Vec<ExpectedSlot> = slots.map(slot).collect();
        let highest = slots.iter().map(|slot| f64::from(slot.importance)).fold(0.0, f64::max);
        ExpectedPage { value, highest, slots }
    }
}

fn expected_pages(
    world: &World,
    patterns: &[KnownPattern],
    spec: &BoundSpec,
    slots: &[BoundSlot],
) -> Vec<ExpectedPage> {
    let mut pages: Vec<ExpectedPage> = importance_values(world, spec)
        .into_iter()
        .zip(patterns)
        .map(|(value, pattern)| {
            let n_periods = pattern.rates.len() / 2;
            let each = slots.iter().map(|slot| {
                let period = ((slot.of_day * n_periods as f64) as usize).min(n_periods.saturating_sub(1));
                let place = period + if slot.weekend { n_periods } else { 0 };
                let rate = pattern.rates.get(place).copied().unwrap_or(0.0);
                let mean = pattern.importance.get(place).copied().unwrap_or(0.0);
                (rate * slot.hours as f32, if spec.goal == Goal::Count { 1.0 } else { mean })
            });
            ExpectedPage::new(value, each)
        })
        .collect();
    if world.pages.iter().all(|page| page.truth.is_some()) {
        set_expected_values(&mut pages, world, spec.goal);
    }
    pages.retain(|page| page.value > 0.0);
    pages
}

/// Scales the values by the expected sums if the rates are true. The sums of one world deviate by chance.
fn set_expected_values(pages: &mut [ExpectedPage], world: &World, goal: Goal) {
    let sum = |page: &ExpectedPage| {
        page.slots.iter().map(|slot| f64::from(slot.n_changes * slot.importance)).sum::<f64>()
    };
    let sums: Vec<f64> = pages.iter().map(sum).collect();
    for ((page, sum), weight) in pages.iter_mut().zip(&sums).zip(world.pages.iter().map(|page| page.weight)) {
        page.value = match goal {
            Goal::Importance | Goal::Balanced | Goal::Coherent => weight.max(0.0),
            Goal::EveryPage if *sum > 0.0 => weight.max(0.0) / sum,
            Goal::EveryPage => 0.0,
            Goal::Count => 1.0,
        };
    }
    let total: f64 = pages.iter().zip(&sums).map(|(page, sum)| page.value * sum).sum();
    pages.iter_mut().for_each(|page| page.value /= total.max(f64::MIN_POSITIVE));
}

fn total_demand<'a>(
    pages: impl Iterator<Item = &'a ExpectedPage>,
    slots: &[BoundSlot],
    shadow_prices: &[f64],
) -> (f64, Vec<f64>) {
    // A page whose best version is worth less than the lowest price demands no visit.
    let lowest = shadow_prices.iter().copied().fold(f64::INFINITY, f64::min);
    let buyers: Vec<&ExpectedPage> = pages.filter(|page| page.value * page.highest > lowest).collect();
    let parts: Vec<(f64, Vec<f64>)> = buyers
        .par_chunks(16)
        .map(|chunk| {
            let mut wanted = vec![0.0; shadow_prices.len()];
            let mut planner = EnvelopePlanner::default();
            let gain =
                chunk.iter().map(|page| planner.best_plan(page, slots, shadow_prices, &mut wanted)).sum();
            (gain, wanted)
        })
        .collect();
    parts.into_iter().fold((0.0, vec![0.0; shadow_prices.len()]), |(sum, mut wanted), (gain, more)| {
        wanted.iter_mut().zip(more).for_each(|(wanted, more)| *wanted += more);
        (sum + gain, wanted)
    })
}

/// A visit that may precede a later one: a line of the envelope.
#[derive(Clone, Copy)]
struct EnvelopeLine {
    /// Slot of the visit plus one; 0 is the start.
    visit: usize,
    net: f64,
    unvisited: f64,
    integral: f64,
    /// From this integral on it beats the previous candidate in the envelope.
    since: f64,
}

impl EnvelopeLine {
    const START: EnvelopeLine =
        EnvelopeLine { visit: 0, net: 0.0, unvisited: 0.0, integral: 0.0, since: f64::NEG_INFINITY };

    /// The integral from which on the later candidate is the better predecessor.
    fn overtaken_at(&self, later: &EnvelopeLine, value: f64) -> f64 {
        let ahead = later.net - self.net;
        if ahead <= 0.0 {
            return f64::INFINITY;
        }
        let between = value * (later.unvisited - (self.integral - later.integral).exp() * self.unvisited);
        if between <= 0.0 { f64::NEG_INFINITY } else { later.integral + (between / ahead).ln() }
    }
}

/// Buffers of the dynamic program, reused for each page.
#[derive(Default)]
struct EnvelopePlanner {
    envelope: std::collections::VecDeque<EnvelopeLine>,
    before: Vec<usize>,
}

impl EnvelopePlanner {
    fn best_plan(
        &mut self,
        page: &ExpectedPage,
        slots: &[BoundSlot],
        shadow_prices: &[f64],
        wanted: &mut [f64],
    ) -> f64 {
        self.envelope.clear();
        self.before.clear();
        let mut now = EnvelopeLine::START;
        self.envelope.push_back(now);
        let mut best = (0.0, 0);
        for (place, slot) in page.slots.iter().enumerate() {
            let unchanged = f64::from(slot.unchanged);
            now.unvisited = now.unvisited * unchanged + f64::from(slot.importance) * (1.0 - unchanged);
            now.integral += f64::from(slot.n_changes);
            now.visit = place + 1;
            let from = self.predecessor(now.integral);
            let earned = now.unvisited - (from.integral - now.integral).exp() * from.unvisited;
            now.net = from.net + page.value * earned - shadow_prices[slots[place].bucket];
            self.before.push(from.visit);
            if now.net > best.0 {
                best = (now.net, now.visit);
            }
            self.insert(now, page.value);
        }
        let mut visit = best.1;
        while visit > 0 {
            wanted[slots[visit - 1].bucket] += 1.0;
            visit = self.before[visit - 1];
        }
        best.0
    }

    fn predecessor(&mut self, integral: f64) -> EnvelopeLine {
        while self.envelope.get(1).is_some_and(|second| second.since <= integral) {
            self.envelope.pop_front();
        }
        self.envelope.front().copied().unwrap_or(EnvelopeLine::START)
    }

    fn insert(&mut self, mut new: EnvelopeLine, value: f64) {
        while let Some(last) = self.envelope.back() {
            new.since = last.overtaken_at(&new, value);
            if new.since == f64::INFINITY {
                return;
            }
            if self.envelope.len() < 2 || last.since < new.since {
                break;
            }
            self.envelope.pop_back();
        }
        self.envelope.push_back(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots(n: usize) -> Vec<BoundSlot> {
        (0..n).map(|place| BoundSlot { bucket: place % 5, hours: 1.0, of_day: 0.0, weekend: false }).collect()
    }

    /// Tries all predecessors of all slots.
    fn quadratic_plan(page: &ExpectedPage, slots: &[BoundSlot], shadow_prices: &[f64]) -> f64 {
        let n = page.slots.len();
        let mut net = vec![f64::NEG_INFINITY; n + 1];
        net[0] = 0.0;
        for from in 0..n {
            let mut earned = 0.0;
            for to in from..n {
                let slot = &page.slots[to];
                let decay = f64::from(slot.unchanged);
                earned = earned * decay + f64::from(slot.importance) * (1.0 - decay);
                net[to + 1] =
                    net[to + 1].max(net[from] + page.value * earned - shadow_prices[slots[to].bucket]);
            }
        }
        net.into_iter().fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn the_envelope_finds_the_best_plan(
            list in prop::collection::vec((0.0f32..3.0, 0.0f32..1.0), 1..40),
            shadow_prices in prop::collection::vec(0.0f64..1.0, 5),
            zeros in prop::collection::vec(any::<bool>(), 40),
        ) {
            let each = list.iter().zip(&zeros).map(|((n, mean), zero)| (if *zero { 0.0 } else { *n }, *mean));
            let page = ExpectedPage::new(1.0, each);
            let slots = slots(list.len());
            let mut wanted = vec![0.0; 5];
            let fast = EnvelopePlanner::default().best_plan(&page, &slots, &shadow_prices, &mut wanted);
            let slow = quadratic_plan(&page, &slots, &shadow_prices);
            prop_assert!((fast - slow).abs() < 1e-6 * (1.0 + slow), "{fast} {slow}");
        }
    }

    #[test]
    fn periods_keep_the_sum_of_the_day() {
        let hourly: [(f64, f64); N_BUCKETS] =
            std::array::from_fn(|bucket| (0.1 * (bucket % 7) as f64, 0.01 * bucket as f64));
        for n_periods in [2u16, 5, 24, 30, 120] {
            let pattern = resample_pattern(&hourly, n_periods);
            let hours = 24.0 / f64::from(n_periods);
            let sum = |list: &[f32]| list.iter().map(|rate| f64::from(*rate) * hours).sum::<f64>();
            let expected: f64 = hourly[..24].iter().map(|(rate, _)| rate).sum();
            assert!((sum(&pattern.rates[..usize::from(n_periods)]) - expected).abs() < 1e-4, "{n_periods}");
        }
        assert_eq!(resample_pattern(&hourly, 24).rates[9], hourly[9].0 as f32);
    }
}
