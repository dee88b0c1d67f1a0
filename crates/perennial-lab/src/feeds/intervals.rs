//! Update intervals of feeds, with quartiles and deviations (P-FEED 3, Figures 1 and 2, Table 2; docs/papers.md).
//!
//! Intervals are between the dates of successive items, not between polls, because the polling rate does not show how
//! often items appear.

use perennial_core::time::Timestamp;

/// The update intervals of one feed, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Intervals {
    /// The number of intervals, one less than dated items.
    pub n: usize,
    pub min: f64,
    /// First quartile.
    pub quartile_1: f64,
    pub median: f64,
    /// Third quartile.
    pub quartile_3: f64,
    pub max: f64,
    pub mean: f64,
    /// Sample standard deviation; 0 for a single interval.
    pub deviation: f64,
}

impl Intervals {
    /// The intervals between items; `None` for fewer than two dates.
    pub fn from_times(times: &[Timestamp]) -> Option<Intervals> {
        let mut times = times.to_vec();
        times.sort_unstable();
        let mut spans: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        if spans.is_empty() {
            return None;
        }
        spans.sort_unstable_by(f64::total_cmp);
        let n = spans.len();
        let mean = spans.iter().sum::<f64>() / n as f64;
        let squares: f64 = spans.iter().map(|span| (span - mean).powi(2)).sum();
        Some(Intervals {
            n,
            min: spans[0],
            quartile_1: quantile(&spans, 0.25),
            median: quantile(&spans, 0.5),
            quartile_3: quantile(&spans, 0.75),
            max: spans[n - 1],
            mean,
            deviation: if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
        })
    }
}

/// The quantile of sorted values, interpolated linearly; 0 for none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The pooled deviation of several series: sqrt(sum (n_i - 1) s_i^2 / sum (n_i - 1)); 0 if no series has two values.
pub fn pooled_deviation<'a>(feeds: impl IntoIterator<Item = &'a Intervals>) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for feed in feeds {
        let less_one = (feed.n - 1) as f64;
        squares += less_one * feed.deviation.powi(2);
        freedom += less_one;
    }
    if freedom > 0.0 { (squares / freedom).sqrt() } else { 0.0 }
}

/// How many feeds hold 0 to 9 items, 10 to 19, and so on (Figure 1).
pub fn histogram_in_tens(n_items: impl IntoIterator<Item = usize>) -> Vec<usize> {
    const MAX_BINS: usize = 1_000;
    let mut bins = Vec::new();
    for n in n_items {
        let bin = (n / 10).min(MAX_BINS - 1);
        if bin >= bins.len() {
            bins.resize(bin + 1, 0);
        }
        bins[bin] += 1;
    }
    bins
}

/// The cumulative share at each value (Figure 2).
pub fn cumulative(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    values.into_iter().zip(1..).map(|(value, rank)| (value, f64::from(rank) / n)).collect()
}

/// Statistics of the feeds of one tag, or of all (Table 2 and the text next to Figure 2).
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct IntervalSummary {
    pub n_feeds: usize,
    /// Number of feeds with at least two dated items.
    pub n_with_intervals: usize,
    /// Mean of the feeds' mean intervals, in seconds.
    pub mean_interval: f64,
    pub pooled_deviation: f64,
    /// Share of feeds whose median is below an hour; the paper has 20 %.
    pub median_below_hour: f64,
    /// Share whose median is a day, within one percent; the paper has about 10 %.
    pub median_a_day: f64,
    /// Share whose median is a day or less; the paper has 60 %.
    pub median_within_day: f64,
    /// Share that never exceeds a day; the paper has less than 10 %.
    pub always_within_day: f64,
    /// Share with an interval within a day; the paper has more than 90 %.
    pub once_within_day: f64,
}

impl IntervalSummary {
    /// Summarises feeds; `n_feeds` also counts those without intervals.
    pub fn new(n_feeds: usize, feeds: &[Intervals]) -> IntervalSummary {
        const DAY: f64 = 86_400.0;
        let n = feeds.len();
        let share = |is_such: fn(&Intervals) -> bool| match n {
            0 => 0.0,
            n => feeds.iter().filter(|feed| is_such(feed)).count() as f64 / n as f64,
        };
        IntervalSummary {
            n_feeds,
            n_with_intervals: n,
            mean_interval: feeds.iter().map(|feed| feed.mean).sum::<f64>() / n.max(1) as f64,
            pooled_deviation: pooled_deviation(feeds),
            median_below_hour: share(|feed| feed.median < 3_600.0),
            median_a_day: share(|feed| (feed.median - DAY).abs() <= DAY / 100.0),
            median_within_day: share(|feed| feed.median <= DAY),
            always_within_day: share(|feed| feed.max <= DAY),
            once_within_day: share(|feed| feed.min <= DAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(secs: &[i64]) -> Vec<Timestamp> {
        secs.iter().map(|&secs| Timestamp::from_secs(secs)).collect()
    }

    #[test]
    fn known_dates_give_their_intervals() {
        let found = Intervals::from_times(&times(&[40, 0, 10, 20])).unwrap();
        assert_eq!((found.n, found.min, found.median, found.max), (3, 10.0, 10.0, 20.0));
        assert_eq!((found.quartile_1, found.quartile_3), (10.0, 15.0));
        assert!((found.deviation - (100.0f64 / 3.0).sqrt()).abs() < 1e-9);
        assert_eq!(Intervals::from_times(&times(&[5])), None);
    }

    #[test]
    fn figures_and_table() {
        assert_eq!(histogram_in_tens([0, 9, 10, 10, 35]), [2, 2, 0, 1]);
        assert_eq!(cumulative([3.0, 1.0]), [(1.0, 0.5), (3.0, 1.0)]);
        let daily = Intervals::from_times(&times(&[0, 86_400, 172_800])).unwrap();
        let quick = Intervals::from_times(&times(&[0, 60, 200_000])).unwrap();
        let summary = IntervalSummary::new(3, &[daily, quick]);
        assert_eq!(
            (summary.median_a_day, summary.always_within_day, summary.once_within_day),
            (0.5, 0.5, 1.0)
        );
        assert!((summary.pooled_deviation - (quick.deviation.powi(2) / 2.0).sqrt()).abs() < 1e-6);
        assert_eq!(IntervalSummary::new(0, &[]).mean_interval, 0.0);
    }

    proptest! {
        /// Quartiles are in order, and the pooled deviation is between the smallest and the largest.
        #[test]
        fn orders_hold(series in proptest::collection::vec(proptest::collection::vec(0i64..1_000_000, 3..20), 1..6)) {
            let feeds: Vec<Intervals> = series.iter().map(|secs| Intervals::from_times(&times(secs)).unwrap()).collect();
            for feed in &feeds {
                prop_assert!(feed.min <= feed.quartile_1 && feed.quartile_1 <= feed.median);
                prop_assert!(feed.median <= feed.quartile_3 && feed.quartile_3 <= feed.max);
            }
            let pooled = pooled_deviation(&feeds);
            let least = feeds.iter().map(|feed| feed.deviation).fold(f64::MAX, f64::min);
            let most = feeds.iter().map(|feed| feed.deviation).fold(0.0, f64::max);
            prop_assert!(least - 1e-6 <= pooled && pooled <= most + 1e-6);
        }
    }
}
