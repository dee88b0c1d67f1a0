//! A world and a budget -> what no crawler could beat.
//!
//! Two bounds, each a Lagrangian relaxation: every slot's visits get a price, every page then plans for itself,
//! and the sum of what pages gain and what the budget is worth bounds every schedule from above, whatever the
//! prices are (weak duality). The prices are moved until demand fits the budget.
//! - [`clairvoyant`]: all changes are known in advance. A page's plan is a dynamic program over slots with two
//!   states: its present version is captured, or not yet.
//! - [`pattern_known`]: only the rates and mean importances are known. Between visits nothing is learned that a
//!   known Poisson process does not tell, so a page's plan is a dynamic program over the slot of the last visit.

mod clairvoyant;
mod pattern;

pub use clairvoyant::{Rule, clairvoyant};
pub use pattern::{known_rates, pattern_known};

use perennial_core::page::SiteId;
use perennial_core::quality::{PageRecord, Window, page_completeness};
use perennial_core::schedule::Goal;
use perennial_core::time::Span;

use crate::world::World;

/// Rounds without a better bound after which steps shrink.
const PATIENCE: usize = 8;
/// How much of the last direction is kept. Where slots are alike, demand jumps from the dearer to the cheaper and back; the
/// mean of the two directions leads down between them.
const MOMENTUM: f64 = 0.8;
/// Demand counts up to so many times beyond supply. Were it cut at once the supply, as lack is by nature, two slots between
/// which all demand jumps would seem to be in balance.
const MOST_EXCESS: f64 = 4.0;

/// What is bounded: the changes in a window, visits in slots, so many visits an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundSpec {
    /// Whose changes count.
    pub window: Window,
    /// A page is visited at most once in each.
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

    /// Whole visits of each slot, as the scheduler hands them out: fractions wait for the next.
    fn capacities(&self) -> Vec<f64> {
        let each = self.visits_per_hour * self.slot.as_hours_f64();
        let until = |n: usize| (each * n as f64 + 1e-9).floor();
        (0..self.n_slots()).map(|slot| until(slot + 1) - until(slot)).collect()
    }
}

/// What a unit of importance of each page is worth under a goal, so that all that existed is worth 1.
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
        Goal::Pooled => existing.iter().map(|(weight, sum)| weight * sum).sum(),
        Goal::Definition513 => existing.iter().filter(|(_, sum)| *sum > 0.0).map(|(weight, _)| weight).sum(),
        Goal::Count => existing.iter().map(|(_, sum)| sum).sum(),
    };
    let each = |(weight, sum): &(f64, f64)| match spec.goal {
        _ if total <= 0.0 || *sum <= 0.0 => 0.0,
        Goal::Pooled => weight / total,
        Goal::Definition513 => weight / sum / total,
        Goal::Count => 1.0 / total,
    };
    existing.iter().map(each).collect()
}

/// Moves prices until demand meets supply. `demand(prices)` answers the pages' total gain net of prices and how
/// many visits they want at each price; the answer is the least bound that was found,
/// and its prices.
///
/// Subgradient steps that shrink when they lead nowhere, in units of the present mean price, and at first of what a visit earns where
/// visits cost nothing: prices have the unit of the goal, which differs by orders of magnitude between worlds, and
/// where only some slots are short the mean price starts from nothing.
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
            // Back to the best prices, where shorter steps may lead further down.
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

/// One price for all visits: the start of the search, and the exact answer when only the sum is limited.
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
