//! Time series and looks -> [`Pattern`]: what importance of change to expect in each period (P-PATTERN 3.2, 6.3;
//! docs/papers.md, Time series and patterns).
//!
//! With a look in every period a pattern is the paper's plain average. A look after several periods shows a change
//! that happened somewhere in between. Its importance is not booked on the last period but spread over all of them by
//! what the pattern expects, and the pattern is computed again, in a fixed number of rounds (EM).
//!
//! [`mixture`] estimates rates of change from the same looks for the scheduler, with patterns that pages share.

pub mod calendar;
pub mod mixture;
pub mod series;

use crate::pattern::series::SeenChange;
#[cfg(test)]
use crate::pattern::series::TimeSeries;
use crate::time::{DayKind, LocalClock, LocalDay, Span, Timestamp};

const N_ROUNDS: usize = 30;
/// Looks after a longer gap are left out, because they say nothing about when in it a change happened.
const LONGEST_GAP_DAYS: i64 = 62;
/// Pages that change less often than this are better described by a week, or by a month.
const WEEKLY_BELOW_PER_DAY: f64 = 0.5;
const MONTHLY_BELOW_PER_DAY: f64 = 1.0 / 14.0;

/// The time after which a pattern repeats, and its periods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cycle {
    /// A day with this number of periods, and one pattern each for workdays, weekends and holidays.
    Day(u16),
    /// A day with this number of periods, and one pattern for each weekday.
    Weekday(u16),
    /// A week; periods are its days from Monday.
    Week,
    /// A month; periods are its days.
    Month,
}

/// For which days a pattern holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Days {
    /// Days of one kind.
    Kind(DayKind),
    /// One weekday, 0 for Monday.
    Weekday(u8),
    /// All days.
    All,
}

/// Patt(P) = {(omega_k, T_k)}: the importance of change to expect in each period.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern {
    /// The days for which it holds.
    pub days: Days,
    /// omega_k.
    pub omega: Vec<f64>,
    /// How often looks covered each period, in whole periods.
    pub n_seen: Vec<f64>,
}

impl Pattern {
    /// The plain average of the series of one kind of day (Algorithm 3): omega_k = sum of mu_k / number of series. A series
    /// without a value for a period does not count there.
    #[cfg(test)]
    fn discover(days: Days, series: &[TimeSeries]) -> Pattern {
        let n_periods = series.iter().map(|series| series.0.len()).max().unwrap_or(0);
        let mut pattern = Pattern { days, omega: vec![0.0; n_periods], n_seen: vec![0.0; n_periods] };
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

    /// How sure the pattern is, from 0 without a look towards 1: the mean over periods of n / (n + 3), so that three looks
    /// make it half sure.
    pub fn sureness(&self) -> f64 {
        let sure = |n: &f64| n / (n + 3.0);
        self.n_seen.iter().map(sure).sum::<f64>() / self.n_seen.len().max(1) as f64
    }
}

/// The patterns of one page.
#[derive(Clone, PartialEq, Debug)]
pub struct PagePatterns {
    /// The cycle that describes the page best.
    pub cycle: Cycle,
    /// One pattern per kind of day that was seen, or a single one for weeks and months.
    pub patterns: Vec<Pattern>,
    /// Looks a day that found a change.
    pub changes_per_day: f64,
    /// Looks after the first.
    pub n_looks: usize,
}

/// The patterns of a page from its looks, oldest first. Without a `cycle` one is chosen by how often the page changes.
pub fn patterns_of(
    looks: &[SeenChange],
    clock: &LocalClock,
    cycle: Option<Cycle>,
    n_periods: u16,
) -> PagePatterns {
    let changes_per_day = changes_per_day(looks);
    let cycle = cycle.unwrap_or(match changes_per_day {
        rate if looks.len() >= 3 && rate < MONTHLY_BELOW_PER_DAY => Cycle::Month,
        rate if looks.len() >= 3 && rate < WEEKLY_BELOW_PER_DAY => Cycle::Week,
        _ => Cycle::Day(n_periods.clamp(1, 120)),
    });
    let patterns = spread(looks, clock, cycle);
    PagePatterns { cycle, patterns, changes_per_day, n_looks: looks.len() }
}

fn changes_per_day(looks: &[SeenChange]) -> f64 {
    let days: f64 = looks.iter().map(|look| (look.to - look.from).as_hours_f64().max(0.0) / 24.0).sum();
    let n_changed = looks.iter().filter(|look| look.importance.get() > 0.0).count();
    if days > 0.0 { n_changed as f64 / days } else { 0.0 }
}

/// The part of a look's interval that lies in one period.
struct Stretch {
    bin: usize,
    /// Share of a whole period.
    share: f64,
}

/// The EM rounds: each books the importance of every look on its periods by what is expected of them, then averages.
fn spread(looks: &[SeenChange], clock: &LocalClock, cycle: Cycle) -> Vec<Pattern> {
    let n_bins = cycle.n_groups() * cycle.n_periods();
    let (stretches, ends) = cut(looks, clock, cycle);
    let mut n_seen = vec![0.0; n_bins];
    stretches.iter().for_each(|stretch| n_seen[stretch.bin] += stretch.share);
    let mut omega = vec![1.0; n_bins];
    for _ in 0..N_ROUNDS {
        let mut booked = vec![0.0; n_bins];
        let mut start = 0;
        for (look, &end) in looks.iter().zip(&ends) {
            book(&stretches[start..end], look.importance.get(), &omega, &mut booked);
            start = end;
        }
        for ((omega, booked), n_seen) in omega.iter_mut().zip(&booked).zip(&n_seen) {
            *omega = if *n_seen > 0.0 { booked / n_seen } else { 0.0 };
        }
    }
    let n_periods = cycle.n_periods();
    let groups = omega.chunks(n_periods).zip(n_seen.chunks(n_periods)).enumerate();
    groups
        .filter(|(_, (_, n_seen))| n_seen.iter().any(|n| *n > 0.0))
        .map(|(group, (omega, n_seen))| Pattern {
            days: cycle.days_of(group),
            omega: omega.to_vec(),
            n_seen: n_seen.to_vec(),
        })
        .collect()
}

fn book(stretches: &[Stretch], importance: f64, omega: &[f64], booked: &mut [f64]) {
    let expected: f64 = stretches.iter().map(|stretch| omega[stretch.bin] * stretch.share).sum();
    let total: f64 = stretches.iter().map(|stretch| stretch.share).sum();
    for stretch in stretches {
        let share = if expected > 1e-12 {
            omega[stretch.bin] * stretch.share / expected
        } else {
            stretch.share / total.max(1e-12)
        };
        booked[stretch.bin] += importance * share;
    }
}

fn cut(looks: &[SeenChange], clock: &LocalClock, cycle: Cycle) -> (Vec<Stretch>, Vec<usize>) {
    let mut stretches = Vec::new();
    let mut ends = Vec::with_capacity(looks.len());
    for look in looks {
        if look.to - look.from <= Span::from_hours(24 * LONGEST_GAP_DAYS) {
            cycle.each_stretch(clock, look.from, look.to, |stretch| stretches.push(stretch));
        }
        ends.push(stretches.len());
    }
    (stretches, ends)
}

impl Cycle {
    /// Periods of one pattern.
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

    fn days_of(self, group: usize) -> Days {
        match (self, group) {
            (Cycle::Day(_), 0) => Days::Kind(DayKind::Workday),
            (Cycle::Day(_), 1) => Days::Kind(DayKind::Weekend),
            (Cycle::Day(_), _) => Days::Kind(DayKind::Holiday),
            (Cycle::Weekday(_), weekday) => Days::Weekday(weekday as u8),
            (Cycle::Week | Cycle::Month, _) => Days::All,
        }
    }

    fn bin_of(self, clock: &LocalClock, day: LocalDay, period: usize) -> usize {
        match self {
            Cycle::Day(_) => clock.kind_of(day) as usize * self.n_periods() + period,
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

    /// Cuts `(from, to]` at the ends of days and periods.
    fn each_stretch(self, clock: &LocalClock, from: Timestamp, to: Timestamp, mut each: impl FnMut(Stretch)) {
        let n_periods = self.periods_a_day();
        let whole_hours = 24.0 / f64::from(n_periods);
        let mut day_start = from;
        while day_start < to {
            let day = clock.local(day_start).day;
            let next = clock.start_of(LocalDay(day.0.saturating_add(1)));
            // With a damaged table of offsets the loop must still end.
            let next = if next > day_start { next } else { day_start + Span::from_hours(24) };
            clock.pieces(day_start, next.min(to), n_periods, |piece| {
                let share = f64::from(piece.hours) * f64::from(piece.times) / whole_hours;
                each(Stretch { bin: self.bin_of(clock, day, usize::from(piece.period)), share });
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
        let looks: Vec<SeenChange> = (0..5 * 6)
            .map(|k| SeenChange {
                from: at("2026-03-02") + Span::from_hours(4 * k),
                to: at("2026-03-02") + Span::from_hours(4 * k + 4),
                importance: Importance::new(omega[k as usize % 6]),
            })
            .collect();
        let found = patterns_of(&looks, &LocalClock::utc(), Some(Cycle::Day(6)), 6);
        assert_eq!(found.patterns.len(), 1);
        assert_eq!(found.patterns[0].days, Days::Kind(DayKind::Workday));
        for (found, omega) in found.patterns[0].omega.iter().zip(omega) {
            assert!((found - omega).abs() < 1e-6);
        }
        assert!(found.patterns[0].sureness() > 0.6);
    }

    #[test]
    fn skipped_periods_get_their_share_by_expectation() {
        // The page changes only at noon. Looks at 00, 12, 13 and 24 on every other day prove it; long looks are then
        // booked there.
        let mut looks = Vec::new();
        for day in 0..20 {
            let start = at("2026-03-02") + Span::from_hours(24 * day);
            let cuts: &[i64] = if day % 2 == 0 { &[0, 12, 13, 24] } else { &[0, 24] };
            for pair in cuts.windows(2) {
                let has_noon = pair[0] <= 12 && pair[1] >= 13;
                looks.push(SeenChange {
                    from: start + Span::from_hours(pair[0]),
                    to: start + Span::from_hours(pair[1]),
                    importance: Importance::new(if has_noon { 0.5 } else { 0.0 }),
                });
            }
        }
        let found = patterns_of(&looks, &LocalClock::utc(), None, 24);
        let workday = &found.patterns[0];
        assert!((workday.omega[12] - 0.5).abs() < 0.02, "{}", workday.omega[12]);
        assert!(workday.omega.iter().enumerate().all(|(k, omega)| k == 12 || *omega < 0.01));
    }

    #[test]
    fn slow_pages_have_weeks_and_months() {
        let mut looks = Vec::new();
        for day in 0..70 {
            let from = at("2026-03-02") + Span::from_hours(24 * day);
            let importance = Importance::new(if day % 7 == 3 { 0.8 } else { 0.0 });
            looks.push(SeenChange { from, to: from + Span::from_hours(24), importance });
        }
        let weekly = patterns_of(&looks, &LocalClock::utc(), None, 24);
        assert_eq!(weekly.cycle, Cycle::Week);
        assert!((weekly.patterns[0].omega[3] - 0.8).abs() < 1e-6 && weekly.patterns[0].omega[0] == 0.0);
        looks.iter_mut().enumerate().for_each(|(day, look)| {
            look.importance = Importance::new(if day == 13 || day == 44 { 0.6 } else { 0.0 });
        });
        let monthly = patterns_of(&looks, &LocalClock::utc(), None, 24);
        assert_eq!(monthly.cycle, Cycle::Month);
        // 15 March and 15 April.
        assert!((monthly.patterns[0].omega[14] - 0.6).abs() < 1e-6);
    }

    proptest! {
        /// With a look in every period the result is the plain average of P-PATTERN 6.3.1, across kinds of day, time zones
        /// and daylight saving.
        #[test]
        fn full_looks_give_the_plain_average(
            mu in prop::collection::vec(0.0f64..1.0, 24 * 6),
            start_day in 0i64..400,
        ) {
            let clock = LocalClock::of_zone("Europe/Berlin").unwrap();
            let start = clock.start_of(LocalDay(20_500 + start_day as i32));
            let looks: Vec<SeenChange> = mu.iter().enumerate().map(|(k, mu)| SeenChange {
                from: start + Span::from_hours(k as i64),
                to: start + Span::from_hours(k as i64 + 1),
                importance: Importance::new(*mu),
            }).collect();
            let found = patterns_of(&looks, &clock, Some(Cycle::Day(24)), 24);
            for pattern in &found.patterns {
                let mut sums = [(0.0, 0.0); 24];
                for look in &looks {
                    let (kind, period) = clock.period_at(look.from, 24);
                    if Days::Kind(kind) == pattern.days {
                        sums[usize::from(period)].0 += look.importance.get();
                        sums[usize::from(period)].1 += 1.0;
                    }
                }
                for (k, (sum, n)) in sums.into_iter().enumerate() {
                    let plain: f64 = if n > 0.0 { sum / n } else { 0.0 };
                    prop_assert!((pattern.omega[k] - plain).abs() < 1e-5, "{} {}", pattern.omega[k], plain);
                }
            }
        }

        #[test]
        fn series_and_looks_agree(mu in prop::collection::vec(0.0f64..1.0, 72)) {
            let looks: Vec<SeenChange> = mu.iter().enumerate().map(|(k, mu)| SeenChange {
                from: at("2026-03-02") + Span::from_hours(k as i64),
                to: at("2026-03-02") + Span::from_hours(k as i64 + 1) - Span::from_millis(1),
                importance: Importance::new(*mu),
            }).collect();
            let series = time_series(&looks, &LocalClock::utc(), 24);
            let plain = Pattern::discover(Days::Kind(DayKind::Workday), &series);
            let spread = patterns_of(&looks, &LocalClock::utc(), Some(Cycle::Day(24)), 24);
            for (a, b) in plain.omega.iter().zip(&spread.patterns[0].omega) {
                prop_assert!((a - b).abs() < 1e-4);
            }
        }
    }
}
