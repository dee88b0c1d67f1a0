//! A page's observed gaps -> how many versions were probably never captured (docs/papers.md, Estimates on a real
//! archive).
//!
//! A gap whose two captures differ contained at least one change; how many more is not observable. What the other gaps
//! show is evidence: if one can predict which gaps contain a change, from the hour, the weekday, the time since the last
//! change or the rhythm so far, then the page is published regularly, and one change per gap explains it. If a constant
//! rate predicts as well, changes come at random, some of them together. Three explanations are weighed by how well they
//! predict each observation from those before it: regular, at random, and in bursts. The result is the 90 % interval of
//! the mixture. If every gap contains a change, nothing is known, and the interval is wide.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// The time between two successive captures of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaptureGap {
    pub end: Timestamp,
    pub hours: f64,
    /// Whether the captures differ.
    pub changed: bool,
}

/// The number of versions that no capture contains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HiddenVersions {
    /// With 95 % probability at least so many.
    pub least: f64,
    pub likely: f64,
    /// With 95 % probability at most so many.
    pub most: f64,
}

/// Changes per mean gap that are considered: eight values per power of ten.
const RATES: std::ops::RangeInclusive<i32> = -24..=7;
/// The most changes per gap that a context's share of changed gaps is read as.
const MOST_PER_GAP: f64 = 8.0;
/// How much a context counts before it was observed, in observations.
const PRIOR: f64 = 0.3;
/// Versions per change that was seen, if the page has bursts, and their probability.
const BURSTS: [(f64, f64); 3] = [(2.0, 0.5), (3.0, 0.3), (5.0, 0.2)];
/// The probability that a schedule has one time per changed gap, because people spread the times out.
const ONE_PER_GAP: f64 = 0.5;
/// The probability of a line that fits, among schedules.
const LINE_THAT_FITS: f64 = 0.5;
/// How much of the hidden versions at random there are, and its probability: less if the other changes are regular,
/// more if the rate varies.
const AT_RANDOM: [(f64, f64); 4] = [(1.0, 0.5), (0.5, 0.2), (0.2, 0.15), (2.0, 0.15)];

/// One explanation of the observations.
struct GapExplanation {
    probability: f64,
    hidden: f64,
    deviation: f64,
}

/// Estimates the hidden versions of closed gaps, in order of time.
pub fn hidden_versions(gaps: &[CaptureGap]) -> HiddenVersions {
    let n_changed = gaps.iter().filter(|gap| gap.changed).count() as f64;
    if n_changed == 0.0 {
        return HiddenVersions::default();
    }
    let explanations = GapEvidence::new(gaps).explanations(n_changed);
    let share: f64 =
        explanations.iter().map(|one| one.probability * n_changed / (n_changed + one.hidden)).sum();
    let (least, most) = (quantile(&explanations, 0.05), quantile(&explanations, 0.95));
    HiddenVersions { least, likely: (n_changed / share - n_changed).clamp(least, most), most }
}

/// What the observations say about the three explanations. GapEvidence is the logarithm of a probability.
struct GapEvidence<'a> {
    gaps: &'a [CaptureGap],
    mean_hours: f64,
    /// GapEvidence of each rate if changes come at random, and if they come at equal intervals.
    at_random: Vec<f64>,
    at_intervals: Vec<f64>,
    /// The context that predicts best: its evidence, and the share of changed gaps in the context of each gap.
    in_context: f64,
    /// GapEvidence of equal intervals that are longer than the gaps.
    in_line: f64,
    shares: Vec<f64>,
    /// Changed gaps between two unchanged ones.
    is_isolated: Vec<bool>,
}

impl<'a> GapEvidence<'a> {
    fn new(gaps: &'a [CaptureGap]) -> GapEvidence<'a> {
        let mean_hours = gaps.iter().map(hours).sum::<f64>() / gaps.len() as f64;
        let of_rates = |probability: fn(f64) -> f64| -> Vec<f64> {
            let each = |rate: f64| {
                let one = |gap: &CaptureGap| {
                    let probability = probability(rate / mean_hours * hours(gap)).clamp(1e-12, 1.0 - 1e-3);
                    if gap.changed { probability.ln() } else { (-probability).ln_1p() }
                };
                gaps.iter().map(one).sum()
            };
            rates().map(each).collect()
        };
        let changed = |at: usize| gaps.get(at).is_some_and(|gap| gap.changed);
        let contexts = [Context::Hour, Context::Weekday, Context::Age, Context::Run];
        let best = contexts
            .map(|context| context.predict(gaps))
            .into_iter()
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let (in_context, shares) = best.unwrap_or_default();
        GapEvidence {
            gaps,
            mean_hours,
            at_random: of_rates(|expected| -(-expected).exp_m1()),
            at_intervals: of_rates(|expected| expected),
            in_context,
            in_line: in_line(gaps),
            shares,
            is_isolated: (0..gaps.len())
                .map(|at| changed(at) && !changed(at + 1) && !(at > 0 && changed(at - 1)))
                .collect(),
        }
    }

    fn explanations(&self, n_changed: f64) -> Vec<GapExplanation> {
        let (at_random, at_intervals) = (mean_evidence(&self.at_random), mean_evidence(&self.at_intervals));
        let regular =
            logistic(-0.6 + (at_intervals - at_random).clamp(-4.0, 4.0) + self.predictability(at_random));
        let bursts =
            (1.0 - regular) * (0.25 * (0.5 * self.clustering(at_random).clamp(-3.0, 3.0)).exp()).min(0.6);
        let mut all = self.regular_explanations(regular);
        let in_context = logistic(self.in_context - at_random.max(at_intervals));
        let random = 1.0 - regular - bursts;
        for one in self.random_explanations(in_context, n_changed) {
            for (scale, probability) in AT_RANDOM {
                let (hidden, deviation) = (one.hidden * scale, one.deviation * scale);
                let probability = one.probability * probability;
                all.push(GapExplanation { probability: random * probability, hidden, deviation });
                all.extend(BURSTS.map(|(size, share)| GapExplanation {
                    probability: bursts * probability * share,
                    hidden: hidden + n_changed * (size - 1.0),
                    deviation: (deviation * deviation + n_changed * (size - 1.0) * size).sqrt(),
                }));
            }
        }
        all
    }

    /// How much better the best context predicts than a constant rate; 0 if there is too little to predict.
    fn predictability(&self, at_random: f64) -> f64 {
        if at_random > -4.0 {
            return 0.0;
        }
        let explained = (1.0 - self.in_context.max(self.in_line) / at_random).max(0.0);
        (14.0 * (explained - 0.35)).clamp(-3.5, 8.0)
    }

    /// How many deviations more often than expected a change follows a change.
    fn clustering(&self, at_random: f64) -> f64 {
        let n_changed = self.gaps.iter().filter(|gap| gap.changed).count() as f64;
        let overall = n_changed / self.gaps.len() as f64;
        let (mut seen, mut expected, mut variance) = (0.0, 0.0, 0.25);
        for (pair, share) in self.gaps.windows(2).zip(self.shares.iter().skip(1)) {
            if let [before, after] = pair
                && before.changed
            {
                let share = if self.in_context > at_random { *share } else { overall };
                seen += f64::from(u8::from(after.changed));
                expected += share;
                variance += share * (1.0 - share);
            }
        }
        (seen - expected) / variance.sqrt()
    }

    /// Published by a schedule: equal intervals, or fixed hours and days. If the intervals are longer than the gaps,
    /// every change was captured. Otherwise the schedule may have several times within one gap; how many is judged by
    /// the gaps that never change.
    fn regular_explanations(&self, probability: f64) -> Vec<GapExplanation> {
        let n_changed = self.gaps.iter().filter(|gap| gap.changed).count() as f64;
        let in_line = self.probability_of_line(n_changed);
        let mut all =
            vec![GapExplanation { probability: probability * in_line, hidden: 0.0, deviation: 0.1 }];
        let probability = probability * (1.0 - in_line);
        all.push(GapExplanation { probability: probability * ONE_PER_GAP, hidden: 0.0, deviation: 0.1 });
        let n_runs =
            1.0 + self.gaps.windows(2).filter(|pair| !pair[0].changed && pair[1].changed).count() as f64;
        let (in_run, between) = (n_changed / n_runs, (self.gaps.len() as f64 - n_changed) / n_runs);
        let days = self.mean_hours * self.gaps.len() as f64 / 24.0;
        // Changed gaps in one day of the schedule.
        let n_slots = (n_changed / days).max(1.0);
        let weights: Vec<f64> = times_per_gap()
            .map(|rate| {
                let all_changed = (-(-rate).exp()).ln_1p() * in_run;
                let evenly = (all_changed - rate * between).exp();
                let locally = (all_changed - rate * between.min(2.0)).exp() / (in_run + between).powi(2);
                evenly + locally
            })
            .collect();
        let total: f64 = weights.iter().sum();
        for (rate, weight) in times_per_gap().zip(&weights) {
            let (more, _) = hidden_at_random(std::iter::once(rate));
            let mean = more * n_slots;
            let probability = probability * (1.0 - ONE_PER_GAP) * weight / total;
            if mean > 6.0 {
                all.push(GapExplanation {
                    probability,
                    hidden: more * n_changed,
                    deviation: more * n_changed / mean.sqrt(),
                });
                continue;
            }
            // The extra times of a schedule are few.
            let mut share = (-mean).exp();
            for n in 0..14 {
                let hidden = f64::from(n) / n_slots * n_changed;
                all.push(GapExplanation {
                    probability: probability * share,
                    hidden,
                    deviation: 0.1 * hidden,
                });
                share *= mean / f64::from(n + 1);
            }
        }
        all
    }

    /// How probable equal intervals are for a page with a schedule. A context predicts a line as well, so a line that
    /// fits is believed even if the context is the better evidence. Intervals hardly longer than the gaps prove little.
    fn probability_of_line(&self, n_changed: f64) -> f64 {
        let by_evidence = logistic(self.in_line - self.in_context.max(mean_evidence(&self.at_intervals)));
        let misfit = -self.in_line - price_of_line(self.gaps.len());
        let unchanged = 1.0 - n_changed / self.gaps.len() as f64;
        by_evidence.max(LINE_THAT_FITS * (-misfit).exp() * (2.0 * unchanged).min(1.0))
    }

    /// A Poisson number of changes per gap: with a constant rate, or with the rate of the context.
    fn random_explanations(&self, in_context: f64, n_changed: f64) -> Vec<GapExplanation> {
        let changed = || self.gaps.iter().enumerate().filter(|(_, gap)| gap.changed);
        let mut all: Vec<GapExplanation> = rates()
            .zip(shares_of(&self.at_random))
            .filter(|(_, share)| *share > 1e-3)
            .map(|(rate, share)| {
                let expected = changed().map(|(_, gap)| rate / self.mean_hours * hours(gap));
                let (hidden, variance) = hidden_at_random(expected);
                let (probability, deviation) = (share * (1.0 - in_context), variance.sqrt() + 0.1 * hidden);
                GapExplanation { probability, hidden, deviation }
            })
            .collect();
        // A change that is alone and certain is one change rather than many that always come together.
        for (probability, one_if_certain) in [(0.3, false), (0.7, true)] {
            let expected = changed().map(|(at, _)| match self.shares.get(at).copied().unwrap_or(0.5) {
                share if one_if_certain && self.is_isolated[at] && share > 0.7 => 0.0,
                share => (-(-share).ln_1p()).min(MOST_PER_GAP),
            });
            let (hidden, variance) = hidden_at_random(expected);
            all.push(GapExplanation {
                probability: probability * in_context,
                hidden,
                deviation: variance.sqrt() + hidden * (0.1 + 1.0 / n_changed.sqrt()),
            });
        }
        all
    }
}

/// The evidence that the n-th changed gap contains the n-th of equally distant instants: 0 would be certain. Two
/// numbers are fitted, interval and phase, and an instant outside of its gap has a price.
fn in_line(gaps: &[CaptureGap]) -> f64 {
    let changed: Vec<(f64, f64)> = gaps
        .iter()
        .filter(|gap| gap.changed)
        .map(|gap| (gap.end.as_millis() as f64 / 3.6e6 - hours(gap) / 2.0, hours(gap)))
        .collect();
    let n = changed.len() as f64;
    if n < 4.0 {
        return f64::NEG_INFINITY;
    }
    let start = changed[0].0;
    let mean_at = changed.iter().map(|(at, _)| at - start).sum::<f64>() / n;
    let mean_n = (n - 1.0) / 2.0;
    let (mut product, mut square) = (0.0, 0.0);
    for (number, (at, _)) in changed.iter().enumerate() {
        let number = number as f64 - mean_n;
        product += number * (at - start - mean_at);
        square += number * number;
    }
    let interval = product / square;
    let outside = |(number, (at, hours)): (usize, &(f64, f64))| {
        let expected = mean_at + interval * (number as f64 - mean_n);
        let beyond = ((at - start - expected).abs() / hours - 0.5).max(0.0);
        (6.0 * beyond).min(6.0) + if beyond > 0.25 { 1.0 } else { 0.0 }
    };
    let outside: f64 = changed.iter().enumerate().map(outside).sum();
    -price_of_line(gaps.len()) - outside
}

/// The evidence that two fitted numbers cost.
fn price_of_line(n_gaps: usize) -> f64 {
    2.0 * (n_gaps as f64).ln()
}

fn hours(gap: &CaptureGap) -> f64 {
    gap.hours.max(1e-3)
}

/// Times of a schedule per gap that are considered: two values per power of two.
fn times_per_gap() -> impl Iterator<Item = f64> {
    (-10..=9).map(|step| 2f64.powf(f64::from(step) / 2.0))
}

fn rates() -> impl Iterator<Item = f64> {
    RATES.map(|step| 10f64.powf(f64::from(step) / 8.0))
}

fn logistic(evidence: f64) -> f64 {
    1.0 / (1.0 + (-evidence.clamp(-30.0, 30.0)).exp())
}

/// The evidence of a family whose members are equally probable.
fn mean_evidence(evidence: &[f64]) -> f64 {
    let most = evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + (evidence.iter().map(|one| (one - most).exp()).sum::<f64>() / evidence.len().max(1) as f64).ln()
}

/// The probability of each member of such a family.
fn shares_of(evidence: &[f64]) -> Vec<f64> {
    let most = evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = evidence.iter().map(|one| (one - most).exp()).sum();
    evidence.iter().map(|one| (one - most).exp() / total).collect()
}

/// Mean and variance of the hidden versions of changed gaps, each a Poisson number that is not 0, minus the captured
/// version.
fn hidden_at_random(expected: impl Iterator<Item = f64>) -> (f64, f64) {
    let each = |expected: f64| {
        if expected < 1e-6 {
            return (0.0, 0.0);
        }
        let at_least_one = -(-expected).exp_m1();
        let mean = expected / at_least_one;
        let variance = (expected + expected * expected) / at_least_one - mean * mean;
        (mean - 1.0, variance.max(0.0))
    };
    expected.map(each).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The number below which the hidden versions are with this probability. Each explanation is a normal distribution.
fn quantile(explanations: &[GapExplanation], probability: f64) -> f64 {
    let total: f64 = explanations.iter().map(|one| one.probability).sum();
    let below = |x: f64| {
        let each = |one: &GapExplanation| {
            let z = (x - one.hidden) / one.deviation.max(0.25);
            // The logistic approximation of the normal distribution, within 0.01.
            one.probability * logistic(1.702 * z)
        };
        explanations.iter().map(each).sum::<f64>() / total
    };
    if below(0.0) >= probability {
        return 0.0;
    }
    let highest = |one: &GapExplanation| one.hidden + 5.0 * one.deviation + 2.0;
    let (mut low, mut high) = (0.0, explanations.iter().map(highest).fold(0.0, f64::max));
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if below(middle) < probability { low = middle } else { high = middle }
    }
    high
}

/// What may predict whether a gap contains a change.
#[derive(Clone, Copy)]
enum Context {
    /// Hour of the day and kind of day of the gap's end.
    Hour,
    Weekday,
    /// The time since the last change.
    Age,
    /// How many gaps before it changed, or did not.
    Run,
}

impl Context {
    /// The evidence of predicting each gap from those before it in the same context, and the share of changed gaps in
    /// the context of each.
    fn predict(self, gaps: &[CaptureGap]) -> (f64, Vec<f64>) {
        // (unchanged, changed)
        let (mut counts, mut all) = (BTreeMap::<i64, [f64; 2]>::new(), [0.5, 0.5]);
        let keys = self.keys(gaps);
        let mut evidence = 0.0;
        for (gap, key) in gaps.iter().zip(&keys) {
            let (count, at) = (counts.entry(*key).or_default(), usize::from(gap.changed));
            let usual = all[at] / (all[0] + all[1]);
            evidence += ((count[at] + PRIOR * usual) / (count[0] + count[1] + PRIOR)).ln();
            count[at] += 1.0;
            all[at] += 1.0;
        }
        let share = |key: &i64| {
            let [unchanged, changed] = counts.get(key).copied().unwrap_or_default();
            (changed + 0.5) / (unchanged + changed + 1.0)
        };
        (evidence, keys.iter().map(share).collect())
    }

    fn keys(self, gaps: &[CaptureGap]) -> Vec<i64> {
        // Four classes per doubling.
        let class = |value: f64| (4.0 * (1.0 + value).log2() + 1e-9) as i64;
        let (mut age, mut run) = (None::<f64>, 0i64);
        let mut key = |gap: &CaptureGap| {
            let hour = gap.end.as_millis().div_euclid(3_600_000);
            let weekday = (hour.div_euclid(24) + 3).rem_euclid(7);
            let reached = age.map(|age| age + hours(gap));
            let key = match self {
                Context::Hour => hour.rem_euclid(24) + 24 * i64::from(weekday >= 5),
                Context::Weekday => weekday,
                Context::Age => reached.map_or(-1, class),
                Context::Run => run.signum() * class(run.unsigned_abs() as f64),
            };
            age = if gap.changed { Some(0.0) } else { reached };
            run = if gap.changed { run.max(0) + 1 } else { run.min(0) - 1 };
            key
        };
        gaps.iter().map(&mut key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::time::Span;

    /// The gaps of visits to a page that changes at these hours, and how many changes they contain.
    fn visited(changes: &[f64], visits: &[f64]) -> (Vec<CaptureGap>, f64) {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let mut n_true = 0;
        let gaps = visits
            .windows(2)
            .map(|pair| {
                let n = changes.iter().filter(|at| pair[0] < **at && **at <= pair[1]).count();
                n_true += n;
                let end = start + Span::from_secs((pair[1] * 3600.0) as i64);
                CaptureGap { end, hours: pair[1] - pair[0], changed: n > 0 }
            })
            .collect();
        (gaps, n_true as f64)
    }

    /// True share of captured versions, then lower bound, likely value and upper bound.
    fn shares(changes: &[f64], visits: &[f64]) -> Option<[f64; 4]> {
        let (gaps, n_true) = visited(changes, visits);
        let n = gaps.iter().filter(|gap| gap.changed).count() as f64;
        let hidden = hidden_versions(&gaps);
        let share = |hidden: f64| n / (n + hidden);
        (n > 0.0).then(|| [n / n_true, share(hidden.most), share(hidden.likely), share(hidden.least)])
    }

    fn every(hours: f64, days: f64) -> Vec<f64> {
        (0..(24.0 * days / hours) as usize).map(|n| hours * n as f64 + 0.3).collect()
    }

    /// The pages that the papers are about: P-PATTERN monitors a broadcaster hourly.
    #[test]
    fn regular_pages_are_recognised() {
        let workdays: Vec<f64> =
            (0..28).filter(|day| day % 7 < 5).map(|day| f64::from(24 * day) + 9.5).collect();
        let weekly: Vec<f64> = (0..8).map(|week| f64::from(168 * week) + 50.0).collect();
        let fixed: Vec<f64> =
            (0..28).flat_map(|day| [8.1, 12.6, 18.2].map(|hour| f64::from(24 * day) + hour)).collect();
        for (name, changes, visits, least) in [
            ("each workday, visited hourly", workdays, every(1.0, 28.0), 0.9),
            ("three times a day, visited every four hours", every(8.0, 28.0), every(4.0, 28.0), 0.5),
            ("three fixed times, visited every four hours", fixed, every(4.0, 28.0), 0.4),
            ("every nine hours, visited every two", every(9.0, 28.0), every(2.0, 28.0), 0.9),
            ("daily, visited hourly", every(24.0, 28.0), every(1.0, 28.0), 0.9),
            ("weekly, visited daily", weekly, every(24.0, 56.0), 0.8),
        ] {
            let changes: Vec<f64> = changes.iter().map(|at| at + 0.1).collect();
            let [truth, low, likely, high] = shares(&changes, &visits).unwrap();
            assert_eq!((truth, high), (1.0, 1.0), "{name}");
            assert!(likely > 0.85 && low > least, "{name}: {low} {likely}");
        }
    }

    #[test]
    fn if_every_gap_changed_the_bounds_admit_few_and_many() {
        for (per_hour, truth) in [(1.0, 1.0), (4.0, 0.25)] {
            let changes: Vec<f64> = every(1.0 / per_hour, 14.0).iter().map(|at| at + 0.05).collect();
            let [found, low, _, high] = shares(&changes, &every(1.0, 14.0)).unwrap();
            assert!((found - truth).abs() < 1e-2 && low <= truth && truth <= high, "{found}: {low} {high}");
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum World {
        Regular,
        Poisson,
        Bursty,
        Mixed,
        /// Fixed times of the day or of the week, not punctual, sometimes left out.
        Scheduled,
        /// Equal intervals of any length.
        Intervals,
        /// At random in office hours, rarely else.
        Office,
    }

    impl World {
        fn changes(self, rng: &mut Rng, days: f64, visit: f64) -> Vec<f64> {
            let exponential = |rng: &mut Rng, mean: f64| -mean * (1.0 - rng.unit()).ln();
            let log_uniform = |rng: &mut Rng, low: f64, high: f64| low * (high / low).powf(rng.unit());
            let mut changes = Vec::new();
            match self {
                World::Regular => match rng.below(3) {
                    0 => {
                        let interval = log_uniform(rng, 0.5, 72.0);
                        let phase = interval * rng.unit();
                        changes.extend(every(interval, days).iter().map(|at| at - 0.3 + phase));
                    }
                    1 => {
                        let hour = 24.0 * rng.unit();
                        let days = (0..days as usize).filter(|day| day % 7 < 5);
                        changes.extend(days.map(|day| 24.0 * day as f64 + hour));
                    }
                    _ => {
                        let hours = [7.0, 12.5, 18.0].map(|hour| hour + rng.unit());
                        changes.extend(
                            (0..days as usize).flat_map(|day| hours.map(|hour| 24.0 * day as f64 + hour)),
                        );
                    }
                },
                World::Poisson => {
                    let mean = visit / log_uniform(rng, 0.03, 4.0);
                    let mut at = exponential(rng, mean);
                    while at < 24.0 * days {
                        changes.push(at);
                        at += exponential(rng, mean);
                    }
                }
                World::Bursty => {
                    let (mean, size) = (visit / log_uniform(rng, 0.03, 1.0), 2 + rng.below(3));
                    let spread = log_uniform(rng, 0.1, 2.0);
                    let mut at = exponential(rng, mean);
                    while at < 24.0 * days {
                        let mut edit = at;
                        for _ in 0..1 + rng.below(2 * size - 1) {
                            changes.push(edit);
                            edit += exponential(rng, spread);
                        }
                        at += exponential(rng, mean);
                    }
                }
                World::Scheduled => {
                    let times: Vec<f64> = match rng.below(3) {
                        0 => vec![168.0 * rng.unit()],
                        n => (0..7)
                            .flat_map(|day| {
                                let times: Vec<f64> =
                                    (0..2 * n).map(|_| 24.0 * day as f64 + 5.0 + 18.0 * rng.unit()).collect();
                                times
                            })
                            .collect(),
                    };
                    for week in 0..(days / 7.0) as usize {
                        for time in &times {
                            if rng.unit() > 0.03 {
                                changes.push(168.0 * week as f64 + time + 0.4 * (rng.unit() - 0.5));
                            }
                        }
                    }
                }
                World::Intervals => {
                    let interval = log_uniform(rng, 0.25, 100.0);
                    let mut at = interval * rng.unit();
                    while at < 24.0 * days {
                        changes.push(at + 0.1 * interval * (rng.unit() - 0.5));
                        at += interval;
                    }
                }
                World::Office => {
                    let mean = log_uniform(rng, 0.3, 60.0);
                    let mut at = exponential(rng, mean);
                    while at < 24.0 * days {
                        let is_open = (8.0..19.0).contains(&(at % 24.0)) && (at / 24.0) as usize % 7 < 5;
                        if is_open || rng.unit() < 0.1 {
                            changes.push(at);
                        }
                        at += exponential(rng, mean);
                    }
                }
                World::Mixed => {
                    changes = World::Regular.changes(rng, days, visit);
                    let other = if rng.below(2) == 0 { World::Poisson } else { World::Bursty };
                    changes.extend(other.changes(rng, days, visit));
                }
            }
            changes
        }
    }

    /// Share of pages whose true share is within the bounds, and mean width of the bounds.
    fn coverage(world: World, n_pages: usize) -> (f64, f64) {
        let mut rng = Rng::from_parts(&[7, world as u64]);
        let (mut n, mut n_within, mut width) = (0.0, 0.0, 0.0);
        for _ in 0..n_pages {
            let visit = [1.0, 2.0, 4.0, 6.0, 12.0, 24.0][rng.below(6)];
            let days = [14.0, 28.0, 56.0][rng.below(3)];
            let jitter = if rng.below(2) == 0 { 0.4 } else { 0.0 };
            let visits: Vec<f64> =
                every(visit, days).iter().map(|at| at + jitter * visit * (rng.unit() - 0.5)).collect();
            let changes = world.changes(&mut rng, days, visit);
            if let Some([truth, low, _, high]) = shares(&changes, &visits) {
                n += 1.0;
                n_within += f64::from(u8::from(low <= truth + 1e-9 && truth <= high + 1e-9));
                width += high - low;
            }
        }
        (n_within / n, width / n)
    }

    #[test]
    fn bounds_contain_the_truth_in_nine_of_ten_pages() {
        let mut all = 0.0;
        let worlds = [
            (World::Regular, 0.5),
            (World::Poisson, 0.75),
            (World::Bursty, 0.8),
            (World::Mixed, 0.75),
            (World::Scheduled, 0.8),
            (World::Intervals, 0.7),
            (World::Office, 0.8),
        ];
        for (world, widest) in worlds {
            let (within, width) = coverage(world, 200);
            #[expect(clippy::disallowed_macros, reason = "prints the figures of docs/papers.md")]
            {
                println!("{world:?}: {within:.3} within, width {width:.3}");
            }
            assert!(within >= 0.85 && width <= widest, "{world:?}: {within} within, width {width}");
            all += within / worlds.len() as f64;
        }
        assert!(all >= 0.9, "{all}");
    }

    #[test]
    fn more_captures_narrow_the_bounds_of_a_page_that_changes_at_random() {
        let changes: Vec<f64> = {
            let (mut rng, mut at, mut changes) = (Rng::new(3), 0.0, Vec::new());
            while at < 24.0 * 56.0 {
                at -= 12.0 * (1.0 - rng.unit()).ln();
                changes.push(at);
            }
            changes
        };
        let likely = |visit: f64| shares(&changes, &every(visit, 56.0)).unwrap()[2];
        assert!(likely(1.0) > likely(6.0) && likely(6.0) > likely(24.0));
        assert_eq!(hidden_versions(&[]), HiddenVersions::default());
    }
}
