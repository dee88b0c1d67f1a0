//! Observations -> [`PeriodPattern`]: the importance of change to expect in each period (P-PATTERN 3.2, 6.3;
//! docs/papers.md, Time series and patterns).
//!
//! With an observation in every period, a pattern is the paper's plain average. Several observations in one period of
//! one day are joined to one value. An observation after several periods shows a change somewhere in between. Its
//! importance is spread over these periods in proportion to the pattern, and the pattern is recomputed, in a fixed
//! number of rounds (EM).
//!
//! [`mixture`] estimates rates of change for the scheduler from the same observations, with patterns that pages
//! share.

pub mod calendar;
pub mod mixture;
pub mod series;

#[cfg(test)]
use crate::pattern::series::TimeSeries;
use crate::pattern::series::{ObservedChange, covered_period};
use crate::time::{DayKind, LocalClock, LocalDay, Span, Timestamp};

const N_ROUNDS: usize = 30;
/// Observations after a longer gap are left out, because they hardly show when a change happened.
const LONGEST_GAP_DAYS: i64 = 62;
/// Pages that change less often than this are better described by a week, or by a month.
const WEEKLY_BELOW_PER_DAY: f64 = 0.5;
const MONTHLY_BELOW_PER_DAY: f64 = 1.0 / 14.0;

/// The time after which a pattern repeats, and its periods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cycle {
    /// A day with this many periods; one pattern each for workdays, weekends and holidays.
    Day(u16),
    /// A day with this many periods; one pattern per weekday.
    Weekday(u16),
    /// A week of seven days from Monday.
    Week,
    /// A month of days.
    Month,
}

/// The days to which a pattern applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PatternDays {
    Kind(DayKind),
    /// One weekday, 0 for Monday.
    Weekday(u8),
    All,
}

/// Patt(P) = {(omega_k, T_k)}: the importance of change to expect in each period.
#[derive(Clone, PartialEq, Debug)]
pub struct PeriodPattern {
    pub days: PatternDays,
    /// omega_k.
    pub omega: Vec<f64>,
    /// How often observations covered each period, in whole periods.
    pub n_seen: Vec<f64>,
}

impl PeriodPattern {
    /// The plain average of the series of one kind of day (Algorithm 3): omega_k = sum of mu_k / number of series. A
    /// series without a value for a period does not count there.
    #[cfg(test)]
    fn discover(days: PatternDays, series: &[TimeSeries]) -> PeriodPattern {
        let n_periods = series.iter().map(|series| series.0.len()).max().unwrap_or(0);
        let mut pattern = PeriodPattern { days, omega: vec![0.0; n_periods], n_seen: vec![0.0; n_periods] };
        for series in series {
            for (k, mu) in series.0.iter().enumerate() {
                if let Some(mu) = mu {
                    pattern.omega[k] += mu.get();
                    pattern.n_seen[k] += 1.0;
                }
            }
        }
        for (omega, n_seen) in pattern.omega.iter_mut().zip(&pattern.n_seen) {
            *omega /= n_seen.max(1.0);
        }
        pattern
    }

    /// The certainty of the pattern, from 0 without an observation towards 1: the mean of n / (n + 3) over the
    /// periods, so three observations give 0.5.
    pub fn sureness(&self) -> f64 {
        let sure = |n: &f64| n / (n + 3.0);
        self.n_seen.iter().map(sure).sum::<f64>() / self.n_seen.len().max(1) as f64
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct PagePatterns {
    /// The cycle that describes the page best.
    pub cycle: Cycle,
    /// One pattern per observed kind of day, or a single one for weeks and months.
    pub patterns: Vec<PeriodPattern>,
    /// Observations with a change per day.
    pub changes_per_day: f64,
    /// Observations after the first.
    pub n_observations: usize,
}

impl PagePatterns {
    /// delta(P), the index threshold (P-PATTERN 7.1): the mean of omega_k over the periods, and over the days if kinds
    /// of day have patterns of their own.
    pub fn index_threshold(&self) -> f64 {
        let (mut sum, mut n_days) = (0.0, 0.0);
        for pattern in &self.patterns {
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
            let days = mean(&pattern.n_seen);
            sum += days * mean(&pattern.omega);
            n_days += days;
        }
        if n_days > 0.0 { sum / n_days } else { 0.0 }
    }
}

/// The patterns of a page from its observations, oldest first. The default `cycle` depends on how often the page
/// changes.
pub fn page_patterns(
    observations: &[ObservedChange],
    clock: &LocalClock,
    cycle: Option<Cycle>,
    n_periods: u16,
) -> PagePatterns {
    let changes_per_day = changes_per_day(observations);
    let cycle = cycle.unwrap_or(match changes_per_day {
        rate if observations.len() >= 3 && rate < MONTHLY_BELOW_PER_DAY => Cycle::Month,
        rate if observations.len() >= 3 && rate < WEEKLY_BELOW_PER_DAY => Cycle::Week,
        _ => Cycle::Day(n_periods.clamp(1, 120)),
    });
    let patterns = fit_periods(observations, clock, cycle);
    PagePatterns { cycle, patterns, changes_per_day, n_observations: observations.len() }
}

fn changes_per_day(observations: &[ObservedChange]) -> f64 {
    let days: f64 = observations
        .iter()
        .map(|observation| (observation.to - observation.from).as_hours_f64().max(0.0) / 24.0)
        .sum();
    let n_changed = observations.iter().filter(|observation| observation.importance.get() > 0.0).count();
    if days > 0.0 { n_changed as f64 / days } else { 0.0 }
}

/// The part of an observation's interval that is in one occurrence of a period.
struct PeriodShare {
    occurrence: usize,
    /// As a share of a whole period.
    share: f64,
}

/// A period of one day.
struct Occurrence {
    bin: usize,
    /// The observed share of it, at most 1.
    seen: f64,
}

/// The occurrences of periods that observations cover.
#[derive(Default)]
struct Coverage {
    occurrences: Vec<Occurrence>,
    stretches: Vec<PeriodShare>,
    /// Where the stretches of each observation end.
    ends: Vec<usize>,
    /// The latest occurrence.
    latest: Option<(LocalDay, u16)>,
}

/// The EM rounds: each distributes the importance of every observation over its periods in proportion to the pattern,
/// joins what belongs to one occurrence of a period, then averages over occurrences.
fn fit_periods(observations: &[ObservedChange], clock: &LocalClock, cycle: Cycle) -> Vec<PeriodPattern> {
    let n_bins = cycle.n_groups() * cycle.n_periods();
    let Coverage { occurrences, stretches, ends, .. } = Coverage::new(observations, clock, cycle);
    let mut n_seen = vec![0.0; n_bins];
    occurrences.iter().for_each(|occurrence| n_seen[occurrence.bin] += occurrence.seen);
    let mut omega = vec![1.0; n_bins];
    // A fixed number of rounds keeps results reproducible. Thirty are enough for the shares to settle.
    for _ in 0..N_ROUNDS {
        let mut unchanged = vec![1.0; occurrences.len()];
        let mut start = 0;
        for (observation, &end) in observations.iter().zip(&ends) {
            let expected = |stretch: &PeriodShare| omega[occurrences[stretch.occurrence].bin] * stretch.share;
            distribute(&stretches[start..end], observation.importance.get(), expected, &mut unchanged);
            start = end;
        }
        let mut booked = vec![0.0; n_bins];
        for (occurrence, unchanged) in occurrences.iter().zip(&unchanged) {
            // An occurrence cannot change more than completely, however little of it was observed.
            booked[occurrence.bin] += (1.0 - unchanged).min(occurrence.seen);
        }
        for ((omega, booked), n_seen) in omega.iter_mut().zip(&booked).zip(&n_seen) {
            *omega = if *n_seen > 0.0 { booked / n_seen } else { 0.0 };
        }
    }
    let n_periods = cycle.n_periods();
    let groups = omega.chunks(n_periods).zip(n_seen.chunks(n_periods)).enumerate();
    groups
        .filter(|(_, (_, n_seen))| n_seen.iter().any(|n| *n > 0.0))
        .map(|(group, (omega, n_seen))| PeriodPattern {
            days: cycle.group_days(group),
            omega: omega.to_vec(),
            n_seen: n_seen.to_vec(),
        })
        .collect()
}

/// Distributes one change. The changes of an occurrence are joined as 1 - prod(1 - mu), because mu_k compares the
/// versions at the two ends of the period (P-PATTERN Definition 3.3.1).
fn distribute(
    stretches: &[PeriodShare],
    importance: f64,
    expected: impl Fn(&PeriodShare) -> f64,
    unchanged: &mut [f64],
) {
    let sum: f64 = stretches.iter().map(&expected).sum();
    let total: f64 = stretches.iter().map(|stretch| stretch.share).sum();
    for stretch in stretches {
        // A pattern that expects nothing in these periods cannot distribute the change, so time does.
        let share = if sum > 1e-12 { expected(stretch) / sum } else { stretch.share / total.max(1e-12) };
        unchanged[stretch.occurrence] *= 1.0 - importance * share;
    }
}

impl Coverage {
    fn new(observations: &[ObservedChange], clock: &LocalClock, cycle: Cycle) -> Coverage {
        let mut coverage = Coverage::default();
        for observation in observations {
            if observation.to - observation.from <= Span::from_hours(24 * LONGEST_GAP_DAYS) {
                coverage.add(observation, clock, cycle);
            }
            coverage.ends.push(coverage.stretches.len());
        }
        coverage
    }

    /// Adds the stretches of an observation. If it covers one period, its change belongs to that period alone.
    fn add(&mut self, observation: &ObservedChange, clock: &LocalClock, cycle: Cycle) {
        let start = self.stretches.len();
        cycle.each_share(clock, observation.from, observation.to, |day, period, share| {
            if self.latest != Some((day, period)) {
                self.latest = Some((day, period));
                self.occurrences.push(Occurrence { bin: cycle.bin(clock, day, period.into()), seen: 0.0 });
            }
            if let Some(last) = self.occurrences.last_mut() {
                last.seen = (last.seen + share).min(1.0);
            }
            self.stretches.push(PeriodShare { occurrence: self.occurrences.len() - 1, share });
        });
        let own = &self.stretches[start..];
        if let Some(place) = covered_period(own.iter().map(|stretch| stretch.share)) {
            self.stretches.swap(start, start + place);
            self.stretches.truncate(start + 1);
        }
    }
}

impl Cycle {
    pub fn n_periods(self) -> usize {
        match self {
            Cycle::Day(n_periods) | Cycle::Weekday(n_periods) => usize::from(n_periods.clamp(1, 120)),
            Cycle::Week => 7,
            Cycle::Month => 31,
        }
    }

    fn n_groups(self) -> usize {
        match self {
            Cycle::Day(_) => 3,
            Cycle::Weekday(_) => 7,
            Cycle::Week | Cycle::Month => 1,
        }
    }

    fn group_days(self, group: usize) -> PatternDays {
        match (self, group) {
            (Cycle::Day(_), 0) => PatternDays::Kind(DayKind::Workday),
            (Cycle::Day(_), 1) => PatternDays::Kind(DayKind::Weekend),
            (Cycle::Day(_), _) => PatternDays::Kind(DayKind::Holiday),
            (Cycle::Weekday(_), weekday) => PatternDays::Weekday(weekday as u8),
            (Cycle::Week | Cycle::Month, _) => PatternDays::All,
        }
    }

    fn bin(self, clock: &LocalClock, day: LocalDay, period: usize) -> usize {
        match self {
            Cycle::Day(_) => clock.day_kind(day) as usize * self.n_periods() + period,
            Cycle::Weekday(_) => usize::from(day.weekday()) * self.n_periods() + period,
            Cycle::Week => usize::from(day.weekday()),
            Cycle::Month => (day.to_date().day() as usize).saturating_sub(1),
        }
    }

    fn periods_a_day(self) -> u16 {
        match self {
            Cycle::Day(n_periods) | Cycle::Weekday(n_periods) => n_periods.clamp(1, 120),
            Cycle::Week | Cycle::Month => 1,
        }
    }

    /// Splits `(from, to]` at the ends of days and periods, and calls `each` with day, period and share of the period.
    fn each_share(
        self,
        clock: &LocalClock,
        from: Timestamp,
        to: Timestamp,
        mut each: impl FnMut(LocalDay, u16, f64),
    ) {
        let n_periods = self.periods_a_day();
        let whole_hours = 24.0 / f64::from(n_periods);
        let mut day_start = from;
        while day_start < to {
            let day = clock.local(day_start).day;
            let next = clock.day_start(LocalDay(day.0.saturating_add(1)));
            // The loop must end even with a corrupt table of offsets.
            let next = if next > day_start { next } else { day_start + Span::from_hours(24) };
            clock.pieces(day_start, next.min(to), n_periods, |piece| {
                let share = f64::from(piece.hours) * f64::from(piece.times) / whole_hours;
                each(day, piece.period, share);
            });
            day_start = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::importance::Importance;
    use crate::pattern::series::time_series;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// P-PATTERN Example 3.2.1: the pattern of a weekday in six periods of four hours.
    #[test]
    fn example_3_2_1_comes_back_from_its_own_series() {
        let omega = [0.1, 0.3, 0.6, 0.42, 0.37, 0.83];
        let observations: Vec<ObservedChange> = (0..5 * 6)
            .map(|k| ObservedChange {
                from: at("2026-03-02") + Span::from_hours(4 * k),
                to: at("2026-03-02") + Span::from_hours(4 * k + 4),
                importance: Importance::new(omega[k as usize % 6]),
            })
            .collect();
        let found = page_patterns(&observations, &LocalClock::utc(), Some(Cycle::Day(6)), 6);
        assert_eq!(found.patterns.len(), 1);
        assert_eq!(found.patterns[0].days, PatternDays::Kind(DayKind::Workday));
        for (found, omega) in found.patterns[0].omega.iter().zip(omega) {
            assert!((found - omega).abs() < 1e-6);
        }
        assert!(found.patterns[0].sureness() > 0.6);
    }

    /// A page that is replaced as a whole every hour, visited `after` minutes past each.
    fn replaced_hourly(after_minutes: i64) -> Vec<ObservedChange> {
        let at = |hour: i64| at("2026-03-02") + Span::from_secs(60 * (60 * hour + after_minutes));
        (0..24 * 9)
            .map(|hour| ObservedChange { from: at(hour), to: at(hour + 1), importance: Importance::FULL })
            .collect()
    }

    #[test]
    fn a_period_never_changes_more_than_completely() {
        for after_minutes in [0, 1, 30, 59] {
            let observations = replaced_hourly(after_minutes);
            for n_periods in 1..=120 {
                let found = page_patterns(&observations, &LocalClock::utc(), None, n_periods);
                for omega in found.patterns.iter().flat_map(|pattern| &pattern.omega) {
                    assert!((0.0..=1.0).contains(omega), "{n_periods} periods: {omega}");
                    // The first and the last period are observed in part only.
                    assert!(n_periods > 24 || *omega > 0.9, "{n_periods} periods: {omega}");
                }
            }
        }
    }

    /// The days on which clocks change have 23 and 25 hours, and periods need not divide an hour.
    #[test]
    fn omega_is_a_share_when_clocks_change() {
        let berlin = LocalClock::from_zone("Europe/Berlin").unwrap();
        for start in ["2026-03-26", "2026-10-22"] {
            let at = |minutes: i64| at(start) + Span::from_secs(60 * minutes);
            let observations: Vec<ObservedChange> = (0..6 * 24 * 4)
                .map(|n| ObservedChange {
                    from: at(15 * n),
                    to: at(15 * n + 15),
                    importance: Importance::FULL,
                })
                .collect();
            for n_periods in [1, 2, 5, 7, 11, 13, 23, 24, 25, 50, 97, 119, 120] {
                for cycle in [None, Some(Cycle::Day(n_periods))] {
                    let found = page_patterns(&observations, &berlin, cycle, n_periods);
                    let all = found.patterns.iter().flat_map(|pattern| &pattern.omega);
                    assert!(
                        all.clone().all(|omega| (0.0..=1.0 + 1e-9).contains(omega)),
                        "{start}, {n_periods}"
                    );
                    assert!((0.0..=1.0 + 1e-9).contains(&found.index_threshold()), "{start}, {n_periods}");
                }
            }
        }
    }

    /// Definition 3.3.1: mu_k compares the versions at the two ends of the period.
    #[test]
    fn changes_within_a_period_are_joined() {
        let observations: Vec<ObservedChange> = replaced_hourly(0)
            .into_iter()
            .map(|observation| ObservedChange { importance: Importance::new(0.2), ..observation })
            .collect();
        let found = page_patterns(&observations, &LocalClock::utc(), None, 6);
        let joined = 1.0 - 0.8f64.powi(4);
        assert!((found.patterns[0].omega[2] - joined).abs() < 1e-6, "{:?}", found.patterns[0].omega);
        assert!((found.index_threshold() - joined).abs() < 1e-6);
    }

    #[test]
    fn the_index_threshold_is_the_mean_of_the_pattern() {
        let mut observations = replaced_hourly(0);
        observations
            .iter_mut()
            .skip(1)
            .step_by(2)
            .for_each(|observation| observation.importance = Importance::NONE);
        for (n_periods, expected) in [(24, 0.5), (12, 1.0), (1, 1.0)] {
            let found = page_patterns(&observations, &LocalClock::utc(), None, n_periods);
            assert!((found.index_threshold() - expected).abs() < 1e-6, "{n_periods} periods");
        }
        assert_eq!(page_patterns(&[], &LocalClock::utc(), None, 24).index_threshold(), 0.0);
    }

    #[test]
    fn skipped_periods_get_their_share_by_expectation() {
        // The page changes only at noon. Observations at 00, 12, 13 and 24 on every other day prove it, so long
        // intervals count there.
        let mut observations = Vec::new();
        for day in 0..20 {
            let start = at("2026-03-02") + Span::from_hours(24 * day);
            let cuts: &[i64] = if day % 2 == 0 { &[0, 12, 13, 24] } else { &[0, 24] };
            for pair in cuts.windows(2) {
                let has_noon = pair[0] <= 12 && pair[1] >= 13;
                observations.push(ObservedChange {
                    from: start + Span::from_hours(pair[0]),
                    to: start + Span::from_hours(pair[1]),
                    importance: Importance::new(if has_noon { 0.5 } else { 0.0 }),
                });
            }
        }
        let found = page_patterns(&observations, &LocalClock::utc(), None, 24);
        let workday = &found.patterns[0];
        assert!((workday.omega[12] - 0.5).abs() < 0.02, "{}", workday.omega[12]);
        assert!(workday.omega.iter().enumerate().all(|(k, omega)| k == 12 || *omega < 0.01));
    }

    #[test]
    fn slow_pages_have_weeks_and_months() {
        let mut observations = Vec::new();
        for day in 0..70 {
            let from = at("2026-03-02") + Span::from_hours(24 * day);
            let importance = Importance::new(if day % 7 == 3 { 0.8 } else { 0.0 });
            observations.push(ObservedChange { from, to: from + Span::from_hours(24), importance });
        }
        let weekly = page_patterns(&observations, &LocalClock::utc(), None, 24);
        assert_eq!(weekly.cycle, Cycle::Week);
        assert!((weekly.patterns[0].omega[3] - 0.8).abs() < 1e-6 && weekly.patterns[0].omega[0] == 0.0);
        observations.iter_mut().enumerate().for_each(|(day, observation)| {
            observation.importance = Importance::new(if day == 13 || day == 44 { 0.6 } else { 0.0 });
        });
        let monthly = page_patterns(&observations, &LocalClock::utc(), None, 24);
        assert_eq!(monthly.cycle, Cycle::Month);
        // 15 March and 15 April.
        assert!((monthly.patterns[0].omega[14] - 0.6).abs() < 1e-6);
    }

    proptest! {
        /// With an observation in every period the result is the plain average of P-PATTERN 6.3.1, for all kinds of
        /// day, time zones and daylight saving.
        #[test]
        fn an_observation_in_every_period_gives_the_plain_average(
            mu in prop::collection::vec(0.0f64..1.0, 24 * 6),
            start_day in 0i64..400,
        ) {
            let clock = LocalClock::from_zone("Europe/Berlin").unwrap();
            let start = clock.day_start(LocalDay(20_500 + start_day as i32));
            let observations: Vec<ObservedChange> = mu.iter().enumerate().map(|(k, mu)| ObservedChange {
                from: start + Span::from_hours(k as i64),
                to: start + Span::from_hours(k as i64 + 1),
                importance: Importance::new(*mu),
            }).collect();
            let found = page_patterns(&observations, &clock, Some(Cycle::Day(24)), 24);
            for pattern in &found.patterns {
                let mut sums = [(0.0, 0.0); 24];
                // The hour that occurs twice when clocks are put back is one period.
                let mut unchanged = std::collections::BTreeMap::new();
                for observation in &observations {
                    let (kind, period) = clock.period_at(observation.from, 24);
                    if PatternDays::Kind(kind) == pattern.days {
                        let day = clock.local(observation.from).day;
                        *unchanged.entry((day, period)).or_insert(1.0) *= 1.0 - observation.importance.get();
                    }
                }
                for ((_, period), unchanged) in unchanged {
                    sums[usize::from(period)].0 += 1.0 - unchanged;
                    sums[usize::from(period)].1 += 1.0;
                }
                for (k, (sum, n)) in sums.into_iter().enumerate() {
                    let plain: f64 = if n > 0.0 { sum / n } else { 0.0 };
                    prop_assert!((pattern.omega[k] - plain).abs() < 1e-5, "{} {}", pattern.omega[k], plain);
                }
            }
        }

        #[test]
        fn series_and_observations_agree(mu in prop::collection::vec(0.0f64..1.0, 72)) {
            let observations: Vec<ObservedChange> = mu.iter().enumerate().map(|(k, mu)| ObservedChange {
                from: at("2026-03-02") + Span::from_hours(k as i64),
                to: at("2026-03-02") + Span::from_hours(k as i64 + 1) - Span::from_millis(1),
                importance: Importance::new(*mu),
            }).collect();
            let series = time_series(&observations, &LocalClock::utc(), 24);
            let plain = PeriodPattern::discover(PatternDays::Kind(DayKind::Workday), &series);
            let spread = page_patterns(&observations, &LocalClock::utc(), Some(Cycle::Day(24)), 24);
            for (a, b) in plain.omega.iter().zip(&spread.patterns[0].omega) {
                prop_assert!((a - b).abs() < 1e-4);
            }
        }
    }
}
