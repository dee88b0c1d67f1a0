//! Bounds on the completeness that any crawler can reach in a world with a budget (docs/papers.md, Bounds).
//!
//! Both bounds are Lagrangian relaxations. Each slot's visits get a shadow price, and each page then plans alone. The
//! net gain of all pages plus the value of the budget at these prices bounds every schedule from above, for any prices
//! (weak duality). The prices are adjusted until demand fits the budget.
//! - [`clairvoyant`]: all changes are known in advance. A page's plan is a dynamic program over slots with two states:
//!   its current version is captured or not.
//! - [`pattern_known`]: only the rates and mean importances are known. A visit reveals nothing beyond the known Poisson
//!   process, so a page's plan is a dynamic program over the slot of the last visit.

mod clairvoyant;
mod pattern;

pub use clairvoyant::{VisitConstraint, clairvoyant};
pub use pattern::{known_rates, pattern_known};

use perennial_core::schedule::Goal;
use perennial_core::time::Span;
use perennial_core::url::SiteId;

use crate::quality::{PageRecord, Window, page_completeness};
use crate::world::World;

/// Rounds without a better bound before the steps shrink.
const PATIENCE: usize = 8;
/// Share of the previous direction in the next one. Between similar slots all demand jumps to the cheaper one and back.
/// The mean of both directions points downhill.
const MOMENTUM: f64 = 0.8;
/// The largest excess of demand that counts, in units of the supply. It exceeds 1, the largest shortage, because two
/// slots between which all demand jumps would otherwise look balanced.
const MOST_EXCESS: f64 = 4.0;

/// The conditions of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundSpec {
    pub window: Window,
    pub slot: Span,
    pub visits_per_hour: f64,
    /// The completeness that is bounded.
    pub goal: Goal,
}

impl BoundSpec {
    /// Number of slots in the window.
    fn n_slots(&self) -> usize {
        let length = (self.window.until - self.window.from).as_millis().max(0);
        let slot = self.slot.as_millis().max(1);
        ((length + slot - 1) / slot) as usize
    }

    /// Whole visits of each slot, as the scheduler grants them. Fractions carry over to the next slot.
    fn capacities(&self) -> Vec<f64> {
        let each = self.visits_per_hour * self.slot.as_hours_f64();
        let until = |n: usize| (each * n as f64 + 1e-9).floor();
        (0..self.n_slots()).map(|slot| until(slot + 1) - until(slot)).collect()
    }
}

/// The value per unit of importance of each page under a goal, scaled to a total of 1 over all changes.
fn importance_values(world: &World, spec: &BoundSpec) -> Vec<f64> {
    let existing: Vec<(f64, f64)> = world
        .pages
        .iter()
        .map(|page| {
            let record = PageRecord { site: SiteId(0), weight: 1.0, changes: &page.changes, captures: &[] };
            let sums = page_completeness(&record, spec.window);
            (
                page.weight.max(0.0),
                if spec.goal == Goal::Count { f64::from(sums.n_existing) } else { sums.existing },
            )
        })
        .collect();
    let total: f64 = match spec.goal {
        Goal::Importance | Goal::Balanced | Goal::Coherent => {
            existing.iter().map(|(weight, sum)| weight * sum).sum()
        }
        Goal::EveryPage => existing.iter().filter(|(_, sum)| *sum > 0.0).map(|(weight, _)| weight).sum(),
        Goal::Count => existing.iter().map(|(_, sum)| sum).sum(),
    };
    let each = |(weight, sum): &(f64, f64)| match spec.goal {
        _ if total <= 0.0 || *sum <= 0.0 => 0.0,
        Goal::Importance | Goal::Balanced | Goal::Coherent => weight / total,
        Goal::EveryPage => weight / sum / total,
        Goal::Count => 1.0 / total,
    };
    existing.iter().map(each).collect()
}

/// Adjusts shadow prices until demand meets supply. `demand(prices)` returns the total gain of the pages net of prices,
/// and how many visits they want in each slot. Returns the prices of the least bound found, and that bound.
///
/// These are subgradient steps that shrink if they find no better bound. The unit of a step is the current mean price,
/// because prices have the unit of the goal, which differs by orders of magnitude between worlds. It is at least a
/// fifth of the mean gain of a visit without prices. Otherwise it would start near 0 if only some slots are short of
/// visits.
fn least_bound(
    supply: &[f64],
    mut shadow_prices: Vec<f64>,
    n_rounds: usize,
    mut demand: impl FnMut(&[f64]) -> (f64, Vec<f64>),
) -> (Vec<f64>, f64) {
    let mut best = (shadow_prices.clone(), f64::INFINITY);
    let mean_of =
        |shadow_prices: &[f64]| shadow_prices.iter().sum::<f64>() / shadow_prices.len().max(1) as f64;
    let (all, visits) = demand(&vec![0.0; shadow_prices.len()]);
    let least_scale = 0.2 * all / visits.iter().sum::<f64>().max(1.0);
    let mut scale = mean_of(&shadow_prices).max(least_scale);
    let (mut step, mut n_in_vain) = (0.5, 0);
    let mut heading = vec![0.0; shadow_prices.len()];
    for _ in 0..n_rounds {
        let (gain, wanted) = demand(&shadow_prices);
        let worth: f64 = shadow_prices.iter().zip(supply).map(|(shadow_price, n)| shadow_price * n).sum();
        if gain + worth < best.1 {
            best = (shadow_prices.clone(), gain + worth);
            n_in_vain = 0;
        } else {
            n_in_vain += 1;
        }
        if n_in_vain >= PATIENCE {
            // Return to the best prices, from which shorter steps may improve further.
            shadow_prices.clone_from(&best.0);
            (step, n_in_vain) = (step * 0.6, 0);
            heading.fill(0.0);
            continue;
        }
        let places = shadow_prices.iter_mut().zip(&mut heading).zip(wanted.iter().zip(supply));
        for ((shadow_price, heading), (wanted, supply)) in places {
            let excess = ((wanted - supply) / supply.max(1.0)).clamp(-1.0, MOST_EXCESS);
            *heading = MOMENTUM * *heading + (1.0 - MOMENTUM) * excess;
            *shadow_price = (*shadow_price + step * scale * *heading).max(0.0);
        }
        scale = 0.5 * scale + 0.5 * mean_of(&shadow_prices).max(least_scale);
    }
    best
}

/// The best single price for all visits, and its bound. The search starts from it. It is exact if only the sum of
/// visits is limited.
fn uniform_shadow_price(total: f64, highest: f64, mut demand: impl FnMut(f64) -> (f64, f64)) -> (f64, f64) {
    let (mut low, mut high) = (0.0, highest.max(f64::MIN_POSITIVE));
    let mut best = f64::INFINITY;
    let mut shadow_price = 0.0;
    for _ in 0..30 {
        let (gain, wanted) = demand(shadow_price);
        best = best.min(gain + shadow_price * total);
        if wanted > total {
            low = shadow_price;
        } else {
            high = shadow_price;
        }
        shadow_price = 0.5 * (low + high);
    }
    (shadow_price, best)
}
