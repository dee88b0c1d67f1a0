//! Importance of changes by time (P-PATTERN 3.3, 6.2; docs/papers.md, Time series and patterns).
//!
//! A crawler with a budget does not visit a page in every period. [`ObservedChange`] contains the importance of the
//! change between two observations, if any. The paper's series of one value per period exist in tests only, which
//! compare patterns with them.

use crate::page::importance::Importance;
use crate::time::Timestamp;
#[cfg(test)]
use crate::time::{LocalClock, LocalDay};

/// An observation of a page, compared with the previous one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ObservedChange {
    /// The time of the previous observation.
    pub from: Timestamp,
    /// The time of this observation.
    pub to: Timestamp,
    /// Importance of the change in between; [`Importance::NONE`] without a change.
    pub importance: Importance,
}

/// (mu_k, T_k) for the periods of one day of one page: the importance of the change in each period, or `None` without
/// an observation at both ends of the period.
#[cfg(test)]
pub(crate) struct TimeSeries(pub(crate) Vec<Option<Importance>>);

/// The series of a page from its observations, one per local day with an observation, oldest first (Algorithm 1). A
/// change between observations within a period, or at its two ends, belongs to that period. Several changes in one
/// period are combined as 1 - prod(1 - mu).
#[cfg(test)]
pub(crate) fn time_series(
    observations: &[ObservedChange],
    clock: &LocalClock,
    n_periods: u16,
) -> Vec<TimeSeries> {
    let n_periods = n_periods.clamp(1, 120);
    let mut days: std::collections::BTreeMap<LocalDay, Vec<Option<Importance>>> =
        std::collections::BTreeMap::new();
    for observation in observations {
        let local = clock.local(observation.to);
        let periods = days.entry(local.day).or_insert_with(|| vec![None; usize::from(n_periods)]);
        let (mut pieces, whole) = (Vec::new(), 24.0 / f64::from(n_periods));
        clock.pieces(observation.from, observation.to, n_periods, |piece| {
            pieces.push((piece.period, f64::from(piece.hours) / whole));
        });
        if let Some(place) = covered_period(pieces.iter().map(|(_, share)| *share))
            && let Some(seen) = periods.get_mut(usize::from(pieces[place].0))
        {
            let before = seen.map_or(0.0, Importance::get);
            *seen = Some(Importance::new(1.0 - (1.0 - before) * (1.0 - observation.importance.get())));
        }
    }
    days.into_values().map(TimeSeries).collect()
}

/// The index of the period that an observation covers, if it covers only one. It must be at most one and a
/// half periods long, with at least half of it in that period. This tolerance allows for visits that are slightly early
/// or late.
pub(super) fn covered_period(shares: impl Iterator<Item = f64>) -> Option<usize> {
    let (mut total, mut longest) = (0.0, (0.0, 0));
    for (place, share) in shares.enumerate() {
        total += share;
        if share > longest.0 {
            longest = (share, place);
        }
    }
    (total > 0.0 && total <= 1.5 && longest.0 >= 0.5 * total).then_some(longest.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn hourly_observations_fill_the_day() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let observation = |hour: i64| ObservedChange {
            from: start + Span::from_hours(hour),
            to: start + Span::from_hours(hour + 1) - Span::from_millis(1),
            importance: Importance::new(hour as f64 / 100.0),
        };
        let observations: Vec<ObservedChange> = (0..24).map(observation).collect();
        let series = time_series(&observations, &LocalClock::utc(), 24);
        assert_eq!(series.len(), 1);
        for (hour, mu) in series[0].0.iter().enumerate() {
            assert!((mu.unwrap().get() - hour as f64 / 100.0).abs() < 1e-6);
        }
    }

    #[test]
    fn gaps_stay_unknown_and_changes_in_one_period_add_up() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let observations = [
            ObservedChange {
                from: at("2026-03-02T09:00:00Z"),
                to: at("2026-03-02T09:20:00Z"),
                importance: Importance::new(0.5),
            },
            ObservedChange {
                from: at("2026-03-02T09:20:00Z"),
                to: at("2026-03-02T09:50:00Z"),
                importance: Importance::new(0.5),
            },
            ObservedChange {
                from: at("2026-03-02T09:50:00Z"),
                to: at("2026-03-02T17:00:00Z"),
                importance: Importance::FULL,
            },
        ];
        let series = time_series(&observations, &LocalClock::utc(), 24);
        assert_eq!(series[0].0[9].unwrap().get(), 0.75);
        assert_eq!(series[0].0.iter().flatten().count(), 1);
        assert!(time_series(&[], &LocalClock::utc(), 24).is_empty());
    }
}
