//! A world and a budget -> bounds on completeness that no crawler can exceed (docs/papers.md, Bounds).
//!
//! Both bounds are Lagrangian relaxations. The visits of every slot get a price, and every page then plans for itself.
//! The net gain of all pages plus the value of the budget at these prices bounds every schedule from above, whatever
//! the prices are (weak duality). The prices are moved until demand fits the budget.
//! - [`clairvoyant`]: all changes are known in advance. A page's plan is a dynamic program over slots with two
//!   states: its present version is captured, or not yet.
//! - [`pattern_known`]: only the rates and mean importances are known. Between visits nothing is learned that a
//!   known Poisson process does not tell, so a page's plan is a dynamic program over the slot of the last visit.

mod clairvoyant;
mod pattern;

pub use clairvoyant::{VisitConstraint, clairvoyant};
pub use pattern::{known_rates, pattern_known};

use perennial_core::schedule::Goal;
use perennial_core::time::Span;
use perennial_core::url::SiteId;

use crate::quality::{PageRecord, Window, page_completeness};
use crate::world::World;

/// Rounds without a better bound after which steps shrink.
const PATIENCE: usize = 8;
/// Share of the last direction that is kept. Between slots that are alike, all demand jumps to the cheaper one and back; the
/// mean of the two directions leads down between them.
const MOMENTUM: f64 = 0.8;
/// The largest excess of demand over supply that counts, in units of the supply. It is above 1, the largest lack of demand,
/// because two slots between which all demand jumps would otherwise seem to be in balance.
const MOST_EXCESS: f64 = 4.0;

/// What is bounded: which changes count, the slots, the budget and the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundSpec {
    /// The window whose changes count.
    pub window: Window,
    /// Length of a slot.
    pub slot: Span,
    /// The budget.
    pub visits_per_hour: f64,
    /// Which completeness is bounded.
    pub goal: Goal,
}

impl BoundSpec {
    /// How many slots the window has.
    fn n_slots(&self) -> usize {
        let length = (self.window.until - self.window.from).as_millis().max(0);
        let slot = self.slot.as_millis().max(1);
        ((length + slot - 1) / slot) as usize
    }

    /// Whole visits of each slot, as the scheduler grants them: fractions are carried over to the next slot.
    fn capacities(&self) -> Vec<f64> {
        let each = self.visits_per_hour * self.slot.as_hours_f64();
        let until = |n: usize| (each * n as f64 + 1e-9).floor();
        (0..self.n_slots()).map(|slot| until(slot + 1) - until(slot)).collect()
    }
}

/// The value of a unit of importance of each page under a goal, scaled so that everything that existed is worth 1.
fn values(world: &World, spec: &BoundSpec) -> Vec<f64> {
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

/// Moves prices until demand meets supply. `demand(prices)` returns the pages' total gain net of prices and how
/// many visits they want in each slot. Returns the prices of the least bound that was found, and that bound.
///
/// These are subgradient steps that shrink when they find no better bound. A step is measured in the present mean price,
/// because prices have the unit of the goal, which differs by orders of magnitude between worlds. It is measured in at least
/// a fifth of what a visit earns without prices, because the mean price starts near 0 where only some slots are short.
fn least_bound(
    supply: &[f64],
    mut prices: Vec<f64>,
    n_rounds: usize,
    mut demand: impl FnMut(&[f64]) -> (f64, Vec<f64>),
) -> (Vec<f64>, f64) {
    let mut best = (prices.clone(), f64::INFINITY);
    let mean_of = |prices: &[f64]| prices.iter().sum::<f64>() / prices.len().max(1) as f64;
    let (all, visits) = demand(&vec![0.0; prices.len()]);
    let least_scale = 0.2 * all / visits.iter().sum::<f64>().max(1.0);
    let mut scale = mean_of(&prices).max(least_scale);
    let (mut step, mut n_in_vain) = (0.5, 0);
    let mut heading = vec![0.0; prices.len()];
    for _ in 0..n_rounds {
        let (gain, wanted) = demand(&prices);
        let worth: f64 = prices.iter().zip(supply).map(|(price, n)| price * n).sum();
        if gain + worth < best.1 {
            best = (prices.clone(), gain + worth);
            n_in_vain = 0;
        } else {
            n_in_vain += 1;
        }
        if n_in_vain >= PATIENCE {
            // Goes back to the best prices, from which shorter steps may lead further down.
            prices.clone_from(&best.0);
            (step, n_in_vain) = (step * 0.6, 0);
            heading.fill(0.0);
            continue;
        }
        let places = prices.iter_mut().zip(&mut heading).zip(wanted.iter().zip(supply));
        for ((price, heading), (wanted, supply)) in places {
            let excess = ((wanted - supply) / supply.max(1.0)).clamp(-1.0, MOST_EXCESS);
            *heading = MOMENTUM * *heading + (1.0 - MOMENTUM) * excess;
            *price = (*price + step * scale * *heading).max(0.0);
        }
        scale = 0.5 * scale + 0.5 * mean_of(&prices).max(least_scale);
    }
    best
}

/// One price for all visits, and its bound. It starts the search, and it is exact when only the sum of visits is limited.
fn uniform_price(total: f64, highest: f64, mut demand: impl FnMut(f64) -> (f64, f64)) -> (f64, f64) {
    let (mut low, mut high) = (0.0, highest.max(f64::MIN_POSITIVE));
    let mut best = f64::INFINITY;
    let mut price = 0.0;
    for _ in 0..30 {
        let (gain, wanted) = demand(price);
        best = best.min(gain + price * total);
        if wanted > total {
            low = price;
        } else {
            high = price;
        }
        price = 0.5 * (low + high);
    }
    (price, best)
}
