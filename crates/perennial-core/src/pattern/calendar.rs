//! On which days a page changes -> how much busier than usual each day of the week and of the month is (P-PATTERN 6.3;
//! docs/decisions/0052-calendars.md).
//!
//! What is known of hours expects some changes of every local day. [`DayCounts`] adds up, by day of the week and of the
//! month, what was expected and what was seen. Three explanations are compared by their evidence, the probability of
//! the counts with the unknown factors integrated out: all days are alike, each day of the week has a factor of its
//! own, or a few days of the month stand out from the others. [`DayFactors`] is the mean of the three, weighed by what
//! they are believed. So a page without a cycle keeps factors of 1, and nothing is decided before it is known.

use std::fmt;

use crate::time::{DayKind, LocalClock, LocalDay};

/// Monday to Sunday, and holidays.
const N_WEEK: usize = 8;
const HOLIDAY: usize = 7;
/// Days from the first on, and the last day of a month whatever its number.
const N_MONTH: usize = 32;
const LAST: usize = 31;

/// Changes of one day come in bursts: a day on which many were seen counts as about this many at most.
const BURST: f32 = 4.0;
/// Shape of the Gamma prior of a factor. Below 1: most factors are far from 1 where there is a cycle at all.
const SHAPE: f32 = 0.5;
/// How closely a page is expected to follow the cycle of its group, where it has one.
const GROUP_SHAPE: f32 = 3.0;
/// Probability that a page follows days of the week, or of the month, before anything is known of its group.
const WEEKLY: f32 = 0.1;
const MONTHLY: f32 = 0.05;
/// Weight of that against the pages of the group, in pages.
const PRIOR_PAGES: f32 = 4.0;
/// Share of the pages of a group with a cycle that follow the group's own days.
const SHARED: f32 = 0.7;
/// Of the months that stand out by one day, how many do by the first, the fifteenth and the last.
const FIRST_OF_MONTH: f32 = 0.3;
const OTHER_HABITS: f32 = 0.1;
/// Days of a month that can stand out.
const MOST_PEAKS: usize = 3;
/// A day of the month stands out with as many changes, and with as many times the changes of the others.
const LEAST_OF_PEAK: f32 = 1.0;
const PEAK_FACTOR: f32 = 2.0;
/// Fewer changes than this say nothing of days.
const FEWEST_CHANGES: f32 = 1.5;
/// A factor below this would be a promise that nothing happens.
const LEAST: f32 = 0.05;
/// Cycles that are believed less are not used.
const LEAST_BELIEF: f32 = 0.1;
/// A day whose factor is this high is told to people, if its cycle is believed this much.
const TOLD_FACTOR: f32 = 1.5;
const TOLD_BELIEF: f32 = 0.6;
/// Pages of a group that change on the same days are no independent witnesses: more of them count as this many.
const WITNESSES: f32 = 5.0;

/// Changes that were seen, and that were expected.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Tally {
    seen: f32,
    expected: f32,
}

impl Tally {
    fn add(&mut self, other: Tally, weight: f32) {
        self.seen += weight * other.seen;
        self.expected += weight * other.expected;
    }

    /// ln of the probability of the counts with a factor from Gamma(shape, rate), over that with the factor 1.
    fn evidence(self, shape: f32, rate: f32) -> f32 {
        let Tally { seen, expected } = self;
        ln_gamma(seen + shape) - ln_gamma(shape) + shape * rate.ln() - (seen + shape) * (expected + rate).ln()
            + expected
    }

    /// The factor that is expected with that prior.
    fn factor(self, shape: f32, rate: f32) -> f32 {
        (self.seen + shape) / (self.expected + rate)
    }
}

/// Where a local day stands in its week and month.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayPlace {
    week: u8,
    month: u8,
    is_last: bool,
}

impl DayPlace {
    /// The place of a day in a calendar.
    pub fn of(day: LocalDay, kind: DayKind) -> DayPlace {
        let week = if kind == DayKind::Holiday { HOLIDAY as u8 } else { day.weekday() };
        let (month, is_last) = day.in_month();
        DayPlace { week, month: month - 1, is_last }
    }

    /// The place of a day by a clock.
    pub fn by(clock: &LocalClock, day: LocalDay) -> DayPlace {
        DayPlace::of(day, clock.kind_of(day))
    }
}

/// What was seen and expected of a page, by day of the week and of the month.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DayCounts {
    week: [Tally; N_WEEK],
    month: [Tally; N_MONTH],
    open: Option<(LocalDay, DayPlace, Tally)>,
}

impl DayCounts {
    /// Adds what was seen and expected of a part of a day. Days come in order.
    #[inline]
    pub fn add(&mut self, day: LocalDay, place: impl FnOnce() -> DayPlace, seen: f32, expected: f32) {
        match &mut self.open {
            Some((open, _, tally)) if *open == day => tally.add(Tally { seen, expected }, 1.0),
            _ => {
                self.close();
                self.open = Some((day, place(), Tally { seen, expected }));
            }
        }
    }

    /// Ends the day to which parts were added.
    pub fn close(&mut self) {
        let Some((_, place, tally)) = self.open.take() else { return };
        let weight = 1.0 / (1.0 + tally.seen.max(tally.expected) / BURST);
        self.week[usize::from(place.week)].add(tally, weight);
        self.month[usize::from(place.month)].add(tally, weight);
        if place.is_last {
            self.month[LAST].add(tally, weight);
        }
    }

    /// Multiplies all sums by a factor below 1.
    pub fn fade(&mut self, factor: f32) {
        for tally in self.week.iter_mut().chain(&mut self.month) {
            *tally = Tally { seen: factor * tally.seen, expected: factor * tally.expected };
        }
    }

    /// What is expected brought to the sum of what was seen; nothing where that is too little.
    fn levelled(&self) -> Option<DayCounts> {
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
        self.levelled().map_or_else(|| group.expected(), |counts| counts.weigh(group))
    }

    fn weigh(&self, group: &DayPrior) -> DayFactors {
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
            let (evidence, month) = self.like(&shared.month);
            models.push((group.monthly * SHARED, evidence, month));
        }
        DayFactors::mean(&models)
    }

    /// Each day of the week has a factor of its own, whose prior has this shape.
    fn by_week(&self, shape: impl Fn(usize) -> f32, rate: f32) -> (f32, DayFactors) {
        let mut factors = DayFactors::default();
        let mut evidence = 0.0;
        for (place, tally) in self.week.iter().enumerate().filter(|(_, tally)| tally.expected > 0.0) {
            let shape = shape(place).max(0.02);
            evidence += tally.evidence(shape, rate);
            factors.week[place] = tally.factor(shape, rate);
        }
        level(&mut factors.week, HOLIDAY, 0.0);
        factors.weekly = 1.0;
        (evidence, factors)
    }

    /// A few days of the month stand out, and the others are alike. The evidence is with the best days, which have to be
    /// as much better as there are days to choose from.
    fn by_month(&self) -> (f32, DayFactors) {
        let mut rest = Tally::default();
        self.month[..LAST].iter().for_each(|tally| rest.add(*tally, 1.0));
        let mut peaks: Vec<usize> = Vec::new();
        let mut best = f32::NEG_INFINITY;
        let mut sum_of_peaks = 0.0;
        while peaks.len() < MOST_PEAKS {
            let without = |place: usize| Tally {
                seen: (rest.seen - self.month[place].seen).max(0.0),
                expected: (rest.expected - self.month[place].expected).max(1e-6),
            };
            let with = |place: usize| {
                let (peak, others) = (self.month[place], without(place));
                let factor = |tally: Tally| tally.factor(SHAPE, SHAPE);
                let stands_out = peak.seen >= LEAST_OF_PEAK && factor(peak) > PEAK_FACTOR * factor(others);
                stands_out.then(|| {
                    let of_peak = habit(place).ln() + peak.evidence(SHAPE, SHAPE);
                    (of_peak, sum_of_peaks + of_peak + others.evidence(SHAPE, SHAPE))
                })
            };
            let candidates = (0..N_MONTH).filter(|place| !peaks.contains(place));
            let found = candidates.filter_map(|place| Some((place, with(place)?)));
            let Some((place, (of_peak, evidence))) = found.max_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
                break;
            };
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
        // The last of a month is one of its days, too: its factor counts only where it is a peak.
        factors.month[LAST] = 0.0;
        peaks.iter().for_each(|&place| factors.month[place] = self.month[place].factor(SHAPE, SHAPE));
        let of_last = (factors.month[LAST] - factors.month[LAST - 1]).max(0.0);
        level(&mut factors.month, LAST, of_last);
        factors.monthly = 1.0;
        (best, factors)
    }

    /// The days of the month are as busy as those of the group.
    fn like(&self, shared: &[f32; N_MONTH]) -> (f32, DayFactors) {
        let mut evidence = 0.0;
        for (tally, factor) in self.month[..LAST].iter().zip(shared) {
            let factor = factor.max(LEAST);
            evidence += tally.seen * factor.ln() + tally.expected * (1.0 - factor);
        }
        let factors = DayFactors { month: *shared, monthly: 1.0, ..DayFactors::default() };
        (evidence, factors)
    }
}

/// What is known of the days of a group of pages.
#[derive(Clone, PartialEq, Debug)]
pub struct DayPrior {
    weekly: f32,
    monthly: f32,
    /// The factors of the pages taken together, where they have a cycle.
    shared: Option<Box<DayFactors>>,
}

impl Default for DayPrior {
    fn default() -> DayPrior {
        DayPrior { weekly: WEEKLY, monthly: MONTHLY, shared: None }
    }
}

impl DayPrior {
    /// The factors that a new page of the group is expected to have.
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

/// What the pages of a group add up to.
#[derive(Clone, Debug, Default)]
pub struct DaySums {
    counts: DayCounts,
    n_pages: f32,
    weekly: f32,
    monthly: f32,
}

impl DaySums {
    /// Adds a page with what was found of it.
    pub fn add(&mut self, counts: &DayCounts, found: &DayFactors) {
        let Some(levelled) = counts.levelled() else { return };
        self.n_pages += 1.0;
        self.weekly += found.weekly;
        self.monthly += found.monthly;
        let both = self.counts.week.iter_mut().zip(&levelled.week);
        both.chain(self.counts.month.iter_mut().zip(&levelled.month))
            .for_each(|(sum, tally)| sum.add(*tally, 1.0));
    }

    /// What the next pages of the group begin with.
    pub fn prior(&mut self) -> DayPrior {
        let share =
            |believed: f32, usual: f32| (believed + PRIOR_PAGES * usual) / (self.n_pages + PRIOR_PAGES);
        let (weekly, monthly) = (share(self.weekly, WEEKLY), share(self.monthly, MONTHLY));
        if self.n_pages < 2.0 {
            return DayPrior { weekly, monthly, shared: None };
        }
        self.counts.fade(WITNESSES.min(self.n_pages) / self.n_pages);
        let shared = self.counts.fit(&DayPrior { weekly, monthly, shared: None });
        let shared = (!shared.is_even()).then(|| {
            // As they are where there is a cycle; whether there is one is weighed for each page.
            let (week, month) = (self.counts.by_week(|_| SHAPE, SHAPE).1, self.counts.by_month().1);
            Box::new(DayFactors { week: week.week, month: month.month, ..shared })
        });
        // Both cannot be more likely than all.
        let most = (weekly + monthly).max(0.98) / 0.98;
        DayPrior { weekly: weekly / most, monthly: monthly / most, shared }
    }
}

/// How much busier than usual a page is on each day.
#[derive(Clone, PartialEq, Debug)]
pub struct DayFactors {
    week: [f32; N_WEEK],
    month: [f32; N_MONTH],
    /// How much it is believed that the page follows days of the week, and of the month.
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
    /// The mean of some explanations, each with its prior share and the logarithm of its evidence.
    fn mean(models: &[(f32, f32, DayFactors)]) -> DayFactors {
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

    /// Whether days make no difference worth following.
    pub fn is_even(&self) -> bool {
        self.weekly + self.monthly < LEAST_BELIEF
    }

    /// The factor of a day.
    #[inline]
    pub fn at(&self, place: DayPlace) -> f32 {
        let of_month = self.month[usize::from(place.month)];
        let of_month = if place.is_last { of_month.max(self.month[LAST]) } else { of_month };
        (self.week[usize::from(place.week)] + of_month - 1.0).max(LEAST)
    }

    /// The days that stand out, if they are believed enough to be told.
    pub fn habit(&self) -> Option<DayHabit> {
        let standing_out = |factors: &[f32]| -> Vec<u8> {
            (0u8..)
                .zip(factors)
                .filter(|(_, factor)| **factor >= TOLD_FACTOR)
                .map(|(place, _)| place)
                .collect()
        };
        let (weekdays, days) = (standing_out(&self.week), standing_out(&self.month));
        if self.weekly >= TOLD_BELIEF && (1..5).contains(&weekdays.len()) {
            return Some(DayHabit::Week(weekdays));
        }
        (self.monthly >= TOLD_BELIEF && !days.is_empty()).then_some(DayHabit::Month(days))
    }

    /// Factors of Monday to Sunday and of holidays, for people to read.
    pub fn week(&self) -> &[f32] {
        &self.week
    }

    /// Factors of the days of a month from the first on, for people to read.
    pub fn month(&self) -> &[f32] {
        &self.month[..LAST]
    }

    /// How much it is believed that the page follows days of the week, and days of the month.
    pub fn belief(&self) -> (f32, f32) {
        (self.weekly, self.monthly)
    }
}

/// Days on which a page usually changes.
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

/// How likely it is that a page that follows a day of the month follows this one.
fn habit(place: usize) -> f32 {
    match place {
        0 => FIRST_OF_MONTH,
        14 | LAST => OTHER_HABITS,
        _ => (1.0 - FIRST_OF_MONTH - 2.0 * OTHER_HABITS) / (N_MONTH - 3) as f32,
    }
}

/// Scales factors so that those of the first `n` days, and what a further one adds, change nothing in the mean.
fn level(factors: &mut [f32], n: usize, more: f32) {
    let mean = (factors[..n].iter().sum::<f32>() + more) / n as f32;
    factors.iter_mut().for_each(|factor| *factor /= mean.max(1e-6));
}

/// ln of the Gamma function above 0: Stirling's series after a few steps up.
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

    /// A page that is expected to change as often on each day, seen every day.
    fn seen(n_days: i32, mean: f32, is_busy: impl Fn(LocalDay) -> f32) -> DayCounts {
        let mut rng = Rng::new(3);
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
            counts.add(day, || DayPlace::by(&LocalClock::utc(), day), n_changes as f32, mean);
        }
        counts.close();
        counts
    }

    fn at(factors: &DayFactors, date: &str) -> f32 {
        factors.at(DayPlace::by(&LocalClock::utc(), LocalDay::parse(date).unwrap()))
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
        // A burst on one day is no habit.
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
