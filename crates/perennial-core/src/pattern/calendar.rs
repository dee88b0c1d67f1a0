//! The days on which a page changes -> how much busier than usual each day of the week and of the month is (P-PATTERN
//! 6.3; docs/decisions/0052-calendars.md).
//!
//! The hourly rates predict the number of changes on each local day. [`DayCounts`] sums, by day of the week and of
//! the month, the expected and the observed changes. Three models are compared by their evidence, the probability of
//! the counts with the unknown factors integrated out: all days are alike; each day of the week has its own factor;
//! or a few days of the month are busier. [`DayFactors`] is their mean, weighted by posterior probability. So a page
//! without a cycle keeps factors of 1, and no model is chosen before the data support it.

use std::fmt;

use crate::time::{DayKind, LocalClock, LocalDay};

/// Monday to Sunday, and holidays.
const N_WEEK: usize = 8;
const HOLIDAY: usize = 7;
/// The 31 days from the first on, and the last day of a month whatever its number.
const N_MONTH: usize = 32;
const LAST: usize = 31;

/// Changes of one day come in bursts, so a day counts as about this many at most.
const BURST: f32 = 4.0;
/// Shape of the Gamma prior of a factor. It is below 1 because most factors are far from 1 if there is a cycle at
/// all.
const SHAPE: f32 = 0.5;
/// How closely a page is expected to follow the cycle of its group, if any.
const GROUP_SHAPE: f32 = 3.0;
/// Prior probability that a page follows days of the week, or of the month.
const WEEKLY: f32 = 0.1;
const MONTHLY: f32 = 0.05;
/// Weight of that prior against the pages of the group, in pages.
const PRIOR_PAGES: f32 = 4.0;
/// Among pages with a cycle in a group with a cycle, the share that follows the group's days.
const SHARED: f32 = 0.7;
/// Prior probability that a busy day is the first of the month, or the fifteenth or the last.
const FIRST_OF_MONTH: f32 = 0.3;
const OTHER_HABITS: f32 = 0.1;
/// Maximum number of busy days in a month.
const MOST_PEAKS: usize = 3;
/// A day of the month is busy with this many changes, and with a factor this many times that of the others.
const LEAST_OF_PEAK: f32 = 1.0;
const PEAK_FACTOR: f32 = 2.0;
/// Fewer changes than this contain no information about days.
const FEWEST_CHANGES: f32 = 1.5;
/// The minimum factor, because a lower one would promise that nothing happens.
const LEAST: f32 = 0.05;
/// The minimum probability of a cycle that is used.
const LEAST_BELIEF: f32 = 0.1;
/// A day is reported to people with this factor, if its cycle has the probability below.
const REPORTED_FACTOR: f32 = 1.5;
const REPORTED_BELIEF: f32 = 0.6;
/// Pages of a group that change on the same days are not independent. More pages than this count as this many.
const WITNESSES: f32 = 5.0;

/// Observed and expected changes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct DayTally {
    seen: f32,
    expected: f32,
}

impl DayTally {
    fn add(&mut self, other: DayTally, weight: f32) {
        self.seen += weight * other.seen;
        self.expected += weight * other.expected;
    }

    /// ln of the probability of the counts with a factor from Gamma(shape, rate), relative to the factor 1.
    fn evidence(self, shape: f32, rate: f32) -> f32 {
        let DayTally { seen, expected } = self;
        ln_gamma(seen + shape) - ln_gamma(shape) + shape * rate.ln() - (seen + shape) * (expected + rate).ln()
            + expected
    }

    /// The expected factor with that prior.
    fn factor(self, shape: f32, rate: f32) -> f32 {
        (self.seen + shape) / (self.expected + rate)
    }
}

/// The position of a local day in its week and month.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayPlace {
    week: u8,
    month: u8,
    is_last: bool,
}

impl DayPlace {
    pub fn new(day: LocalDay, kind: DayKind) -> DayPlace {
        let week = if kind == DayKind::Holiday { HOLIDAY as u8 } else { day.weekday() };
        let (month, is_last) = day.in_month();
        DayPlace { week, month: month - 1, is_last }
    }

    /// The position of a day on a clock.
    pub fn on_clock(clock: &LocalClock, day: LocalDay) -> DayPlace {
        DayPlace::new(day, clock.day_kind(day))
    }
}

/// A page's observed and expected changes by day of the week and of the month.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DayCounts {
    week: [DayTally; N_WEEK],
    month: [DayTally; N_MONTH],
    open: Option<(LocalDay, DayPlace, DayTally)>,
}

impl DayCounts {
    /// Adds a part of a day. Days must come in order.
    #[inline]
    pub fn add(&mut self, day: LocalDay, place: impl FnOnce() -> DayPlace, seen: f32, expected: f32) {
        match &mut self.open {
            Some((open, _, tally)) if *open == day => tally.add(DayTally { seen, expected }, 1.0),
            _ => {
                self.close();
                self.open = Some((day, place(), DayTally { seen, expected }));
            }
        }
    }

    /// Ends the current day.
    pub fn close(&mut self) {
        let Some((_, place, tally)) = self.open.take() else { return };
        // Changes within a day are correlated. A day with many of them is hardly more evidence than a day with a few.
        let weight = 1.0 / (1.0 + tally.seen.max(tally.expected) / BURST);
        self.week[usize::from(place.week)].add(tally, weight);
        self.month[usize::from(place.month)].add(tally, weight);
        if place.is_last {
            self.month[LAST].add(tally, weight);
        }
    }

    pub fn fade(&mut self, factor: f32) {
        for tally in self.week.iter_mut().chain(&mut self.month) {
            *tally = DayTally { seen: factor * tally.seen, expected: factor * tally.expected };
        }
    }

    /// Scales the expected changes to make their sum match the observed ones; `None` with too few observations.
    fn scaled_to_observed(&self) -> Option<DayCounts> {
        let (mut seen, mut expected) = (0.0f32, 0.0f32);
        self.week.iter().for_each(|tally| (seen, expected) = (seen + tally.seen, expected + tally.expected));
        if seen < FEWEST_CHANGES || expected <= 0.0 {
            return None;
        }
        let mut levelled = self.clone();
        let level = seen / expected;
        levelled.week.iter_mut().chain(&mut levelled.month).for_each(|tally| tally.expected *= level);
        Some(levelled)
    }

    /// The factors of a page, given its group.
    pub fn fit(&self, group: &DayPrior) -> DayFactors {
        self.scaled_to_observed().map_or_else(|| group.expected(), |counts| counts.combine_models(group))
    }

    fn combine_models(&self, group: &DayPrior) -> DayFactors {
        let own = if group.shared.is_some() { 1.0 - SHARED } else { 1.0 };
        let mut models = vec![(1.0 - group.weekly - group.monthly, 0.0, DayFactors::default())];
        let (evidence, week) = self.by_week(|_| SHAPE, SHAPE);
        models.push((group.weekly * own, evidence, week));
        let (evidence, month) = self.by_month();
        models.push((group.monthly * own, evidence, month));
        if let Some(shared) = &group.shared {
            let of_week = |place: usize| GROUP_SHAPE * shared.week[place];
            let (evidence, week) = self.by_week(of_week, GROUP_SHAPE);
            models.push((group.weekly * SHARED, evidence, week));
            let (evidence, month) = self.by_group_month(&shared.month);
            models.push((group.monthly * SHARED, evidence, month));
        }
        DayFactors::mean(&models)
    }

    /// The model in which each day of the week has its own factor, with its evidence. The prior has this shape.
    fn by_week(&self, shape: impl Fn(usize) -> f32, rate: f32) -> (f32, DayFactors) {
        let mut factors = DayFactors::default();
        let mut evidence = 0.0;
        for (place, tally) in self.week.iter().enumerate().filter(|(_, tally)| tally.expected > 0.0) {
            let shape = shape(place).max(0.02);
            evidence += tally.evidence(shape, rate);
            factors.week[place] = tally.factor(shape, rate);
        }
        normalise(&mut factors.week, HOLIDAY, 0.0);
        factors.weekly = 1.0;
        (evidence, factors)
    }

    /// The model in which a few days of the month are busy, with its evidence. The best days are added one
    /// by one. Each day's evidence includes its prior probability, so a day must be clearly busier than chance allows
    /// among so many days.
    fn by_month(&self) -> (f32, DayFactors) {
        let mut rest = DayTally::default();
        self.month[..LAST].iter().for_each(|tally| rest.add(*tally, 1.0));
        let mut peaks: Vec<usize> = Vec::new();
        let mut best = f32::NEG_INFINITY;
        let mut sum_of_peaks = 0.0;
        while peaks.len() < MOST_PEAKS {
            let without = |place: usize| DayTally {
                seen: (rest.seen - self.month[place].seen).max(0.0),
                expected: (rest.expected - self.month[place].expected).max(1e-6),
            };
            let with = |place: usize| {
                let (peak, others) = (self.month[place], without(place));
                let factor = |tally: DayTally| tally.factor(SHAPE, SHAPE);
                let stands_out = peak.seen >= LEAST_OF_PEAK && factor(peak) > PEAK_FACTOR * factor(others);
                stands_out.then(|| {
                    let of_peak = day_of_month_prior(place).ln() + peak.evidence(SHAPE, SHAPE);
                    (of_peak, sum_of_peaks + of_peak + others.evidence(SHAPE, SHAPE))
                })
            };
            let candidates = (0..N_MONTH).filter(|place| !peaks.contains(place));
            let found = candidates.filter_map(|place| Some((place, with(place)?)));
            let Some((place, (of_peak, evidence))) = found.max_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
                break;
            };
            // A further day must raise the evidence, which penalises it by its prior.
            if evidence <= best {
                break;
            }
            (best, sum_of_peaks, rest) = (evidence, sum_of_peaks + of_peak, without(place));
            peaks.push(place);
        }
        let mut factors = DayFactors::default();
        if peaks.is_empty() {
            return (f32::NEG_INFINITY, factors);
        }
        factors.month = [rest.factor(SHAPE, SHAPE); N_MONTH];
        // The last day also has a number. Its factor counts only if it is busy.
        factors.month[LAST] = 0.0;
        peaks.iter().for_each(|&place| factors.month[place] = self.month[place].factor(SHAPE, SHAPE));
        let of_last = (factors.month[LAST] - factors.month[LAST - 1]).max(0.0);
        normalise(&mut factors.month, LAST, of_last);
        factors.monthly = 1.0;
        (best, factors)
    }

    /// The model in which the days of the month match those of the group, with its evidence.
    fn by_group_month(&self, shared: &[f32; N_MONTH]) -> (f32, DayFactors) {
        let mut evidence = 0.0;
        for (tally, factor) in self.month[..LAST].iter().zip(shared) {
            let factor = factor.max(LEAST);
            evidence += tally.seen * factor.ln() + tally.expected * (1.0 - factor);
        }
        let factors = DayFactors { month: *shared, monthly: 1.0, ..DayFactors::default() };
        (evidence, factors)
    }
}

/// The prior of a group of pages.
#[derive(Clone, PartialEq, Debug)]
pub struct DayPrior {
    weekly: f32,
    monthly: f32,
    /// The factors of all pages together, if they have a cycle.
    shared: Option<Box<DayFactors>>,
}

impl Default for DayPrior {
    fn default() -> DayPrior {
        DayPrior { weekly: WEEKLY, monthly: MONTHLY, shared: None }
    }
}

impl DayPrior {
    /// The expected factors of the group's new pages.
    pub fn expected(&self) -> DayFactors {
        let Some(shared) = &self.shared else { return DayFactors::default() };
        let none = (1.0 - self.weekly - self.monthly).max(0.0);
        DayFactors::mean(&[
            (none + (1.0 - SHARED) * (self.weekly + self.monthly), 0.0, DayFactors::default()),
            (
                SHARED * self.weekly,
                0.0,
                DayFactors { week: shared.week, weekly: 1.0, ..DayFactors::default() },
            ),
            (
                SHARED * self.monthly,
                0.0,
                DayFactors { month: shared.month, monthly: 1.0, ..DayFactors::default() },
            ),
        ])
    }
}

/// The sums over the pages of a group.
#[derive(Clone, Debug, Default)]
pub struct DaySums {
    counts: DayCounts,
    n_pages: f32,
    weekly: f32,
    monthly: f32,
}

impl DaySums {
    /// Adds a page with its fitted factors.
    pub fn add(&mut self, counts: &DayCounts, found: &DayFactors) {
        let Some(levelled) = counts.scaled_to_observed() else { return };
        self.n_pages += 1.0;
        self.weekly += found.weekly;
        self.monthly += found.monthly;
        let both = self.counts.week.iter_mut().zip(&levelled.week);
        both.chain(self.counts.month.iter_mut().zip(&levelled.month))
            .for_each(|(sum, tally)| sum.add(*tally, 1.0));
    }

    /// The prior for the group's next pages.
    pub fn prior(&mut self) -> DayPrior {
        let share =
            |estimated: f32, usual: f32| (estimated + PRIOR_PAGES * usual) / (self.n_pages + PRIOR_PAGES);
        let (weekly, monthly) = (share(self.weekly, WEEKLY), share(self.monthly, MONTHLY));
        if self.n_pages < 2.0 {
            return DayPrior { weekly, monthly, shared: None };
        }
        self.counts.fade(WITNESSES.min(self.n_pages) / self.n_pages);
        let shared = self.counts.fit(&DayPrior { weekly, monthly, shared: None });
        let shared = (!shared.is_even()).then(|| {
            // The factors assume that there is a cycle. Whether there is one is weighed for each page.
            let (week, month) = (self.counts.by_week(|_| SHAPE, SHAPE).1, self.counts.by_month().1);
            Box::new(DayFactors { week: week.week, month: month.month, ..shared })
        });
        // The two probabilities must not add up to more than 1.
        let most = (weekly + monthly).max(0.98) / 0.98;
        DayPrior { weekly: weekly / most, monthly: monthly / most, shared }
    }
}

/// How much busier than usual a page is on each day.
#[derive(Clone, PartialEq, Debug)]
pub struct DayFactors {
    week: [f32; N_WEEK],
    month: [f32; N_MONTH],
    /// The probability that the page follows days of the week, and of the month.
    weekly: f32,
    monthly: f32,
}

impl Default for DayFactors {
    /// All days are alike.
    fn default() -> DayFactors {
        let mut month = [1.0; N_MONTH];
        month[LAST] = 0.0;
        DayFactors { week: [1.0; N_WEEK], month, weekly: 0.0, monthly: 0.0 }
    }
}

impl DayFactors {
    /// The mean of some models, each with its prior and the logarithm of its evidence.
    fn mean(models: &[(f32, f32, DayFactors)]) -> DayFactors {
        // The exponents are relative to the largest one, so none overflows.
        let top = models.iter().map(|(_, evidence, _)| *evidence).fold(0.0f32, f32::max);
        let weight = |(prior, evidence, _): &(f32, f32, DayFactors)| prior * (evidence - top).exp();
        let total: f32 = models.iter().map(weight).sum::<f32>().max(1e-30);
        let mut mean = DayFactors { week: [0.0; N_WEEK], month: [0.0; N_MONTH], weekly: 0.0, monthly: 0.0 };
        for model in models {
            let (share, factors) = (weight(model) / total, &model.2);
            mean.week.iter_mut().zip(&factors.week).for_each(|(mean, factor)| *mean += share * factor);
            mean.month.iter_mut().zip(&factors.month).for_each(|(mean, factor)| *mean += share * factor);
            mean.weekly += share * factors.weekly;
            mean.monthly += share * factors.monthly;
        }
        mean
    }

    /// Whether the days differ too little to matter.
    pub fn is_even(&self) -> bool {
        self.weekly + self.monthly < LEAST_BELIEF
    }

    #[inline]
    pub fn at(&self, place: DayPlace) -> f32 {
        let of_month = self.month[usize::from(place.month)];
        let of_month = if place.is_last { of_month.max(self.month[LAST]) } else { of_month };
        (self.week[usize::from(place.week)] + of_month - 1.0).max(LEAST)
    }

    /// The busy days, if they are probable enough to be reported.
    pub fn habit(&self) -> Option<DayHabit> {
        let outliers = |factors: &[f32]| -> Vec<u8> {
            (0u8..)
                .zip(factors)
                .filter(|(_, factor)| **factor >= REPORTED_FACTOR)
                .map(|(place, _)| place)
                .collect()
        };
        let (weekdays, days) = (outliers(&self.week), outliers(&self.month));
        if self.weekly >= REPORTED_BELIEF && (1..5).contains(&weekdays.len()) {
            return Some(DayHabit::Week(weekdays));
        }
        (self.monthly >= REPORTED_BELIEF && !days.is_empty()).then_some(DayHabit::Month(days))
    }

    /// Factors of Monday to Sunday and of holidays.
    pub fn week(&self) -> &[f32] {
        &self.week
    }

    /// Factors of the days of a month from the first on.
    pub fn month(&self) -> &[f32] {
        &self.month[..LAST]
    }

    /// The probability that the page follows days of the week, and days of the month.
    pub fn belief(&self) -> (f32, f32) {
        (self.weekly, self.monthly)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DayHabit {
    /// Days of the week, 0 for Monday; 7 for holidays.
    Week(Vec<u8>),
    /// Days of the month, 0 for the first; 31 for the last.
    Month(Vec<u8>),
}

const DAYS: [&str; N_WEEK] =
    ["Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays", "holidays"];

impl fmt::Display for DayHabit {
    /// As in "on Mondays and Thursdays", "on the 1st of the month".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, after): (Vec<String>, &str) = match self {
            DayHabit::Week(days) => (
                days.iter()
                    .filter_map(|day| DAYS.get(usize::from(*day)))
                    .map(|day| (*day).to_owned())
                    .collect(),
                "",
            ),
            DayHabit::Month(days) => (days.iter().map(|day| ordinal(*day)).collect(), " of the month"),
        };
        let list = match words.as_slice() {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            words => words.concat(),
        };
        write!(f, "on {}{list}{after}", if after.is_empty() { "" } else { "the " })
    }
}

fn ordinal(day: u8) -> String {
    let number = day + 1;
    let ending = match (number % 10, number / 10 == 1) {
        (1, false) => "st",
        (2, false) => "nd",
        (3, false) => "rd",
        _ => "th",
    };
    if usize::from(day) == LAST { "last".to_owned() } else { format!("{number}{ending}") }
}

/// The prior probability that a day of the month is busy, if one is.
fn day_of_month_prior(place: usize) -> f32 {
    match place {
        0 => FIRST_OF_MONTH,
        14 | LAST => OTHER_HABITS,
        _ => (1.0 - FIRST_OF_MONTH - 2.0 * OTHER_HABITS) / (N_MONTH - 3) as f32,
    }
}

/// Divides factors by the mean of the first `n`, to which `more` is added.
fn normalise(factors: &mut [f32], n: usize, more: f32) {
    let mean = (factors[..n].iter().sum::<f32>() + more) / n as f32;
    factors.iter_mut().for_each(|factor| *factor /= mean.max(1e-6));
}

/// ln of the Gamma function for x > 0: Stirling's series after a few steps up.
fn ln_gamma(x: f32) -> f32 {
    let (mut x, mut below) = (x.max(1e-6), 1.0f32);
    while x < 5.0 {
        below *= x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    (x - 0.5) * x.ln() - x + 0.918_938_5 + inverse / 12.0 - inverse * inverse * inverse / 360.0 - below.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A page with the same expected changes on each day, observed daily.
    fn seen(n_days: i32, mean: f32, is_busy: impl Fn(LocalDay) -> f32) -> DayCounts {
        let mut rng = Rng::new(24);
        let mut counts = DayCounts::default();
        // 2026-01-01.
        for day in (20_454..20_454 + n_days).map(LocalDay) {
            let mut n_changes = 0;
            let mut left = f64::from(is_busy(day));
            loop {
                left -= -(1.0 - rng.unit()).ln();
                if left < 0.0 {
                    break;
                }
                n_changes += 1;
            }
            counts.add(day, || DayPlace::on_clock(&LocalClock::utc(), day), n_changes as f32, mean);
        }
        counts.close();
        counts
    }

    fn at(factors: &DayFactors, date: &str) -> f32 {
        factors.at(DayPlace::on_clock(&LocalClock::utc(), LocalDay::parse(date).unwrap()))
    }

    #[test]
    fn a_page_of_mondays_is_busy_on_mondays() {
        let counts = seen(42, 1.0, |day| if day.weekday() == 0 { 7.0 } else { 0.0 });
        let factors = counts.fit(&DayPrior::default());
        assert!(at(&factors, "2026-06-01") > 4.0, "{factors:?}");
        assert!(at(&factors, "2026-06-02") < 0.3, "{factors:?}");
        assert_eq!(factors.habit().unwrap().to_string(), "on Mondays");
    }

    #[test]
    fn a_page_of_the_first_is_busy_on_the_first_and_one_of_the_last_on_the_last() {
        let first = seen(150, 0.2, |day| if day.in_month().0 == 1 { 6.0 } else { 0.0 });
        let factors = first.fit(&DayPrior::default());
        assert_eq!(factors.habit().unwrap().to_string(), "on the 1st of the month");
        assert!(at(&factors, "2026-09-01") > 10.0 && at(&factors, "2026-09-02") < 0.5);
        let last = seen(150, 0.2, |day| if day.in_month().1 { 6.0 } else { 0.0 });
        let factors = last.fit(&DayPrior::default());
        assert_eq!(factors.habit().unwrap().to_string(), "on the last of the month");
        assert!(at(&factors, "2026-02-28") > 5.0 && at(&factors, "2026-03-28") < 0.5, "{factors:?}");
    }

    #[test]
    fn pages_without_a_cycle_have_none() {
        for rate in [0.1, 1.0, 8.0] {
            let factors = seen(200, rate, |_| rate).fit(&DayPrior::default());
            assert!(factors.is_even(), "{rate}: {factors:?}");
        }
        // A burst on one day is not a cycle.
        let burst = seen(40, 0.5, |day| if day.0 == 20_460 { 40.0 } else { 0.3 });
        assert!(burst.fit(&DayPrior::default()).habit().is_none());
    }

    #[test]
    fn pages_of_a_group_learn_from_each_other() {
        let mut sums = DaySums::default();
        for _ in 0..8 {
            let counts = seen(42, 1.0, |day| if day.weekday() == 3 { 7.0 } else { 0.0 });
            sums.add(&counts, &counts.fit(&DayPrior::default()));
        }
        let prior = sums.prior();
        assert!(at(&prior.expected(), "2026-06-04") > 2.0, "{prior:?}");
        let few = seen(9, 0.3, |day| if day.weekday() == 3 { 3.0 } else { 0.0 });
        let (alone, with) = (few.fit(&DayPrior::default()), few.fit(&prior));
        assert!(at(&with, "2026-06-04") > 2.0 * at(&alone, "2026-06-04"), "{alone:?} {with:?}");
    }

    #[test]
    fn words_name_the_days() {
        assert_eq!(DayHabit::Week(vec![0, 3, 7]).to_string(), "on Mondays, Thursdays and holidays");
        assert_eq!(DayHabit::Month(vec![0, 14]).to_string(), "on the 1st and 15th of the month");
        assert_eq!([1, 2, 11, 21, 22].map(ordinal), ["2nd", "3rd", "12th", "22nd", "23rd"]);
    }

    #[test]
    fn ln_gamma_is_right() {
        for (x, expected) in [(0.02, 3.900_8), (0.5, 0.572_36), (1.0, 0.0), (4.3, 2.180_84), (30.0, 71.257)] {
            assert!((ln_gamma(x) - expected).abs() < 2e-3, "{x}: {}", ln_gamma(x));
        }
    }
}
