//! Draws a world like that of the papers' experiments (P-PATTERN 9, P-QUALITY 7; docs/papers.md, The papers' world).
//!
//! The papers drew changes from patterns of French television pages that they do not print. This world has the traits
//! that they report: pages that change by day or by night, quasi-static pages, pages shifted by a time zone, different
//! patterns at weekends, and unequal importance of pages and changes.

use perennial_core::time::Timestamp;

use crate::rng::WorldRng;
use crate::world::{DayProfile, HOURS, TruePattern, World, WorldPageSpec};

/// Changes per day of the median page.
const MEDIAN_CHANGES_PER_DAY: f64 = 4.0;
/// Deviation of the logarithm of the rate.
const RATE_SIGMA: f64 = 1.1;
/// No hour has more changes.
const MAX_CHANGES_PER_HOUR: f64 = 4.0;
/// Tail of the Pareto distribution of page importance, and its cap.
const WEIGHT_TAIL: f64 = 1.1;
const MAX_WEIGHT: f64 = 300.0;
/// Correlation between the importance of a page and its rate. Important pages change more often.
const WEIGHT_RATE_CORRELATION: f64 = 0.4;
const SHIFTED_SHARE: f64 = 0.12;
/// Rate of a quasi-static page, relative to the other pages.
const QUASI_STATIC_FACTOR: f64 = 0.03;
/// Deviation of the logarithm of single hours from the smooth pattern, because real patterns are ragged.
const RATE_RAGGEDNESS: f64 = 0.4;
const IMPORTANCE_RAGGEDNESS: f64 = 0.4;

/// 2026-01-05, a Monday.
const MONDAY: i64 = 1_767_571_200;

/// The size of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperWorld {
    pub n_sites: u32,
    pub pages_per_site: u32,
    pub days: u32,
    pub seed: u64,
}

impl Default for PaperWorld {
    /// Three sites of a thousand pages, for five weeks.
    fn default() -> PaperWorld {
        PaperWorld { n_sites: 3, pages_per_site: 1000, days: 35, seed: 1 }
    }
}

/// Kinds of pages reported in the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// One broad peak by day.
    DayPeaked,
    /// One broad peak by night.
    Night,
    /// The same rate at all hours.
    Flat,
    /// All changes within one to three hours of the day.
    Bursty,
    /// Rare changes, as on pages at the deepest level.
    QuasiStatic,
}

impl PaperWorld {
    /// Draws the pages, then their changes. The world starts on a Monday, so weeks are whole.
    pub fn build(&self) -> World {
        let start = Timestamp::from_secs(MONDAY);
        World::from_specs("paper", start, self.days, &self.specs(), self.seed)
    }

    /// The world with significantly different patterns of pages, as in P-QUALITY 7: each page changes in one or two
    /// hours of the day that are drawn for it.
    pub fn build_unlike(&self) -> World {
        let start = Timestamp::from_secs(MONDAY);
        let specs: Vec<WorldPageSpec> = (0u64..)
            .zip(self.specs())
            .map(|(place, spec)| move_to_own_hours(spec, self.seed, place))
            .collect();
        World::from_specs("paper, unlike patterns", start, self.days, &specs, self.seed)
    }

    /// The pages with their patterns, before changes are drawn.
    pub fn specs(&self) -> Vec<WorldPageSpec> {
        let pages = (0..self.n_sites).flat_map(|site| (0..self.pages_per_site).map(move |page| (site, page)));
        pages
            .map(|(site, page)| {
                let part = (1 << 32) + u64::from(site) * u64::from(self.pages_per_site) + u64::from(page);
                let mut rng = WorldRng::fork(self.seed, part);
                draw_spec(format!("site{site}.example"), format!("/page{page}"), &mut rng)
            })
            .collect()
    }
}

fn draw_spec(site: String, name: String, rng: &mut WorldRng) -> WorldPageSpec {
    let habit = draw_habit(rng);
    let rate_normal = rng.normal();
    let changes_per_day = MEDIAN_CHANGES_PER_DAY
        * (RATE_SIGMA * rate_normal).exp()
        * if habit == Habit::QuasiStatic { QUASI_STATIC_FACTOR } else { 1.0 };
    let shift = if rng.unit() < SHIFTED_SHARE { 5 + rng.below(8) } else { 0 };
    let weekend_share = rng.range(0.25, 0.9);
    let importance = draw_importance(rng);
    let workday = draw_profile(habit, changes_per_day, importance, rng);
    let weekend = draw_profile(habit, changes_per_day * weekend_share, importance, rng);
    WorldPageSpec {
        name,
        site,
        weight: draw_weight(rate_normal, rng),
        pattern: TruePattern { workday: workday.shifted(shift), weekend: weekend.shifted(shift) },
        dies_at: None,
    }
}

/// Moves all changes of a page to its own hours. Their number and importance stay the same.
fn move_to_own_hours(spec: WorldPageSpec, seed: u64, place: u64) -> WorldPageSpec {
    let mut rng = WorldRng::fork(seed, (2 << 32) + place);
    let shape = burst_shape(rng.below(HOURS), 1 + rng.below(2));
    let profile = |of: &DayProfile| {
        DayProfile::from_shape(&shape, of.rate.iter().sum(), MAX_CHANGES_PER_HOUR, of.importance)
    };
    let pattern =
        TruePattern { workday: profile(&spec.pattern.workday), weekend: profile(&spec.pattern.weekend) };
    WorldPageSpec { pattern, ..spec }
}

fn draw_habit(rng: &mut WorldRng) -> Habit {
    match rng.unit() {
        u if u < 0.35 => Habit::DayPeaked,
        u if u < 0.47 => Habit::Night,
        u if u < 0.62 => Habit::Flat,
        u if u < 0.80 => Habit::Bursty,
        _ => Habit::QuasiStatic,
    }
}

fn draw_profile(
    habit: Habit,
    changes_per_day: f64,
    importance: [f64; HOURS],
    rng: &mut WorldRng,
) -> DayProfile {
    let shape = match habit {
        Habit::DayPeaked => bell_shape(rng.range(9.0, 18.0), rng.range(3.4, 6.8)),
        Habit::Night => bell_shape(rng.range(21.0, 28.0), rng.range(1.5, 3.0)),
        Habit::Flat | Habit::QuasiStatic => [1.0; HOURS],
        Habit::Bursty => burst_shape(rng.below(HOURS), 1 + rng.below(3)),
    };
    let shape = shape.map(|share| share * (RATE_RAGGEDNESS * rng.normal()).exp());
    DayProfile::from_shape(&shape, changes_per_day, MAX_CHANGES_PER_HOUR, importance)
}

/// A bell curve around `centre` over the circle of the day, above a low floor.
fn bell_shape(centre: f64, width: f64) -> [f64; HOURS] {
    std::array::from_fn(|hour| {
        let away = (hour as f64 + 0.5 - centre).rem_euclid(HOURS as f64);
        let away = away.min(HOURS as f64 - away);
        0.03 + (-0.5 * (away / width).powi(2)).exp()
    })
}

fn burst_shape(first: usize, n_hours: usize) -> [f64; HOURS] {
    let mut shape = [0.005; HOURS];
    for hour in first..first + n_hours {
        shape[hour % HOURS] = 1.0;
    }
    shape
}

/// The mean importance of a change by hour: a level per page, and a swing over the day.
fn draw_importance(rng: &mut WorldRng) -> [f64; HOURS] {
    let level = rng.beta(0.35, 5.0);
    let swing = rng.range(0.0, 0.3);
    let peak = rng.range(0.0, HOURS as f64);
    std::array::from_fn(|hour| {
        let angle = (hour as f64 + 0.5 - peak) / HOURS as f64 * std::f64::consts::TAU;
        let ragged = (IMPORTANCE_RAGGEDNESS * rng.normal()).exp();
        (level * (1.0 + swing * angle.cos()) * ragged).clamp(0.02, 0.95)
    })
}

/// Pareto, by the rank of a normal variable correlated with the one that gives the rate.
fn draw_weight(rate_normal: f64, rng: &mut WorldRng) -> f64 {
    let rho = WEIGHT_RATE_CORRELATION;
    let normal = rho * rate_normal + (1.0 - rho * rho).sqrt() * rng.normal();
    upper_tail(normal).powf(-1.0 / WEIGHT_TAIL).min(MAX_WEIGHT)
}

/// P(Z > z) of a standard normal, to 7 digits (Abramowitz and Stegun 26.2.17).
fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-0.5 * z * z).exp() / (std::f64::consts::TAU).sqrt() * poly;
    if z >= 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> PaperWorld {
        PaperWorld { n_sites: 2, pages_per_site: 1000, days: 7, seed: 4 }
    }

    #[test]
    fn weights_are_pareto_and_go_with_the_rates() {
        let specs = small().specs();
        let mut weights: Vec<f64> = specs.iter().map(|spec| spec.weight).collect();
        weights.sort_by(f64::total_cmp);
        assert!(weights[0] >= 1.0 && weights[weights.len() - 1] <= MAX_WEIGHT);
        // The median of a Pareto variable with tail a is 2^(1/a).
        assert!((weights[weights.len() / 2] / 2f64.powf(1.0 / WEIGHT_TAIL) - 1.0).abs() < 0.1);
        let busy =
            |spec: &&WorldPageSpec| spec.pattern.workday.rate.iter().sum::<f64>() > MEDIAN_CHANGES_PER_DAY;
        let mean = |it: Vec<f64>| it.iter().sum::<f64>() / it.len() as f64;
        let of_busy = mean(specs.iter().filter(busy).map(|spec| spec.weight.ln()).collect());
        let of_slow = mean(specs.iter().filter(|spec| !busy(spec)).map(|spec| spec.weight.ln()).collect());
        assert!(of_busy > of_slow + 0.1, "{of_busy} {of_slow}");
    }

    #[test]
    fn rates_keep_their_cap_and_seeds_their_world() {
        let world = small().build();
        assert_eq!((world.sites.len(), world.pages.len()), (2, 2000));
        assert_eq!(world, small().build());
        for page in &world.pages {
            let truth = page.truth.as_ref().unwrap();
            assert!(truth.workday.rate.iter().all(|rate| *rate <= MAX_CHANGES_PER_HOUR));
        }
    }

    #[test]
    fn each_unlike_page_has_its_own_hours() {
        let world = small().build_unlike();
        let mut n_pages = [0; HOURS];
        for page in &world.pages {
            let rate = page.truth.as_ref().unwrap().workday.rate;
            let (peak, most) =
                (0..HOURS).map(|hour| (hour, rate[hour])).max_by(|x, y| x.1.total_cmp(&y.1)).unwrap();
            n_pages[peak] += 1;
            let busy = rate.iter().filter(|rate| **rate > 0.1 * most).count();
            assert!((1..=2).contains(&busy), "{rate:?}");
        }
        assert!(n_pages.iter().all(|n| *n > 20), "{n_pages:?}");
    }

    /// The results under `experiments/` name the seeds of their worlds.
    #[test]
    fn a_seed_always_gives_the_same_world() {
        let world = small().build();
        let secs: i64 =
            world.pages.iter().flat_map(|page| &page.changes).map(|change| change.at.as_secs()).sum();
        assert_eq!((world.n_changes(), secs), (61_147, 108_098_490_778_466));
    }

    #[test]
    fn the_normal_tail_is_right() {
        assert!((upper_tail(0.0) - 0.5).abs() < 1e-6);
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
        assert!((upper_tail(-1.0) - 0.841_344_75).abs() < 1e-6);
    }
}
