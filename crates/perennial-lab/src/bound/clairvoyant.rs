//! The bound if all changes are known in advance.
//!
//! Choosing visits is a matching of versions to visits. A version is captured in one slot of its life, a page is
//! visited once per slot, and a slot has a limited number of visits. These are network constraints, so whole visits are
//! as good as fractional ones. With the right prices the bound equals the clairvoyant's result (there is no duality
//! gap). Any remaining gap is due to inexact prices.

use perennial_core::schedule::Goal;
use rayon::prelude::*;

use super::{BoundSpec, importance_values, least_bound, uniform_shadow_price};
use crate::world::World;

/// How often prices are adjusted.
const ROUNDS: usize = 200;

/// The limit on the visits of the clairvoyant crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitConstraint {
    /// At most one visit per page and slot; each slot has its own budget.
    OncePerSlot,
    /// At most one visit per page and slot; only the sum over all slots is limited.
    VaryingBudget,
    /// Any number of visits per page and slot; each slot has its own budget.
    Free,
}

/// The values of a page's changes in one slot.
#[derive(Clone, Debug, PartialEq, Default)]
struct SlotChanges {
    slot: usize,
    /// The best change before the last one. A visit that captures it does not capture the last one.
    best_early: f64,
    /// The last change. Its version lives on into later slots.
    last: f64,
}

/// A bound on completeness, from 0 to 1, for every crawler that obeys the constraint.
pub fn clairvoyant(world: &World, spec: &BoundSpec, constraint: VisitConstraint) -> f64 {
    clairvoyant_in(ROUNDS, world, spec, constraint)
}

fn clairvoyant_in(n_rounds: usize, world: &World, spec: &BoundSpec, constraint: VisitConstraint) -> f64 {
    let n_slots = spec.n_slots();
    if n_slots == 0 || world.pages.is_empty() {
        return 1.0;
    }
    let values = importance_values(world, spec);
    if values.iter().all(|value| *value <= 0.0) {
        return 1.0;
    }
    if constraint == VisitConstraint::Free {
        return unlimited_bound(world, spec, &values);
    }
    let pages: Vec<Vec<SlotChanges>> =
        (0..world.pages.len()).map(|place| slot_changes(world, spec, place, values[place])).collect();
    let highest = pages.iter().flatten().map(|slot| slot.last.max(slot.best_early)).fold(0.0, f64::max);
    if highest <= 0.0 {
        return 1.0;
    }
    let supply = spec.capacities();
    let total: f64 = supply.iter().sum();
    let demand = |shadow_prices: &[f64]| total_demand(&pages, shadow_prices);
    let (shadow_price, best) = uniform_shadow_price(total, highest, |shadow_price| {
        let (gain, wanted) = demand(&vec![shadow_price; n_slots]);
        (gain, wanted.iter().sum())
    });
    let bound = match constraint {
        VisitConstraint::VaryingBudget => best,
        _ => best
            .min(least_bound(&supply, vec![shadow_price.max(1e-6 * highest); n_slots], n_rounds, demand).1),
    };
    bound.clamp(0.0, 1.0)
}

fn total_demand(pages: &[Vec<SlotChanges>], shadow_prices: &[f64]) -> (f64, Vec<f64>) {
    let add = |(sum, mut wanted): (f64, Vec<f64>), (gain, more): (f64, Vec<f64>)| {
        wanted.iter_mut().zip(more).for_each(|(wanted, more)| *wanted += more);
        (sum + gain, wanted)
    };
    // Chunks fix the order of the sums, so the bound does not depend on the number of cores.
    let parts: Vec<(f64, Vec<f64>)> = pages
        .par_chunks(64)
        .map(|chunk| {
            let mut wanted = vec![0.0; shadow_prices.len()];
            let mut decisions = Vec::new();
            let gain =
                chunk.iter().map(|page| best_plan(page, shadow_prices, &mut decisions, &mut wanted)).sum();
            (gain, wanted)
        })
        .collect();
    parts.into_iter().fold((0.0, vec![0.0; shadow_prices.len()]), add)
}

fn slot_changes(world: &World, spec: &BoundSpec, place: usize, value: f64) -> Vec<SlotChanges> {
    let mut slots: Vec<SlotChanges> = Vec::new();
    let slot_millis = spec.slot.as_millis().max(1);
    for change in &world.pages[place].changes {
        if !spec.window.contains(change.at) {
            continue;
        }
        let slot = ((change.at - spec.window.from).as_millis() / slot_millis) as usize;
        let worth = value * if spec.goal == Goal::Count { 1.0 } else { change.importance.get() };
        match slots.last_mut() {
            Some(same) if same.slot == slot => {
                same.best_early = same.best_early.max(same.last);
                same.last = worth;
            }
            _ => slots.push(SlotChanges { slot, best_early: 0.0, last: worth }),
        }
    }
    slots
}

/// Whether a plan visits a slot, and its state before the slot.
#[derive(Clone, Copy)]
struct PlanStep {
    slot: usize,
    visits: bool,
    from_open: bool,
}

/// The gains of the two best plans so far: one has captured the current version, the other has not.
#[derive(Clone, Copy)]
struct BestGains {
    caught: f64,
    open: f64,
}

/// The steps to the two states after a run of slots.
#[derive(Clone, Copy)]
struct PlanDecision {
    to_caught: PlanStep,
    to_open: PlanStep,
}

/// The dynamic program of one page at given prices. It adds the page's visits to `wanted` and returns its net gain.
fn best_plan(
    page: &[SlotChanges],
    shadow_prices: &[f64],
    decisions: &mut Vec<PlanDecision>,
    wanted: &mut [f64],
) -> f64 {
    decisions.clear();
    let mut best = BestGains { caught: 0.0, open: f64::NEG_INFINITY };
    let mut carried = 0.0;
    for (place, slot) in page.iter().enumerate() {
        best = pass_changed_slot(slot, best, carried, shadow_prices[slot.slot], decisions);
        carried = slot.last;
        let until = page.get(place + 1).map_or(shadow_prices.len(), |next| next.slot);
        best = pass_unchanged_slots(slot.slot + 1..until, best, carried, shadow_prices, decisions);
    }
    let mut from_open = best.open > best.caught;
    for decision in decisions.iter().rev() {
        let step = if from_open { decision.to_open } else { decision.to_caught };
        if step.visits {
            wanted[step.slot] += 1.0;
        }
        from_open = step.from_open;
    }
    best.caught.max(best.open).max(0.0)
}

/// In a slot with changes a plan is idle, or visits the page before them (the carried version), between them, or after
/// them.
fn pass_changed_slot(
    slot: &SlotChanges,
    best: BestGains,
    carried: f64,
    shadow_price: f64,
    decisions: &mut Vec<PlanDecision>,
) -> BestGains {
    let from_open = best.open > best.caught;
    let either = best.open.max(best.caught);
    let at = slot.slot;
    let visit_late = (either + slot.last - shadow_price, PlanStep { slot: at, visits: true, from_open });
    let idle = (either, PlanStep { slot: at, visits: false, from_open });
    let visit_between =
        (either + slot.best_early - shadow_price, PlanStep { slot: at, visits: true, from_open });
    let visit_before =
        (best.open + carried - shadow_price, PlanStep { slot: at, visits: true, from_open: true });
    let to_open =
        [idle, visit_between, visit_before].into_iter().fold(idle, |a, b| if b.0 > a.0 { b } else { a });
    decisions.push(PlanDecision { to_caught: visit_late.1, to_open: to_open.1 });
    BestGains { caught: visit_late.0, open: to_open.0 }
}

/// In slots without changes the current version can be captured in the cheapest one.
fn pass_unchanged_slots(
    slots: std::ops::Range<usize>,
    best: BestGains,
    carried: f64,
    shadow_prices: &[f64],
    decisions: &mut Vec<PlanDecision>,
) -> BestGains {
    let Some(cheapest) = slots.min_by(|a, b| shadow_prices[*a].total_cmp(&shadow_prices[*b])) else {
        return best;
    };
    let catch = best.open + carried - shadow_prices[cheapest];
    let no_visit = PlanStep { slot: cheapest, visits: false, from_open: false };
    let to_open = PlanStep { slot: cheapest, visits: false, from_open: true };
    if catch > best.caught {
        let to_caught = PlanStep { slot: cheapest, visits: true, from_open: true };
        decisions.push(PlanDecision { to_caught, to_open });
        return BestGains { caught: catch, open: best.open };
    }
    decisions.push(PlanDecision { to_caught: no_visit, to_open });
    best
}

/// The slots in which a version can be captured, and its value.
struct VersionLife {
    worth: f64,
    first_slot: usize,
    last_slot: usize,
}

/// If visits per slot are unlimited, versions are independent. Each is captured in the cheapest slot of its life.
fn unlimited_bound(world: &World, spec: &BoundSpec, values: &[f64]) -> f64 {
    let slot_millis = spec.slot.as_millis().max(1);
    let n_slots = spec.n_slots();
    let slot_at = |at: perennial_core::time::Timestamp| {
        (((at - spec.window.from).as_millis() / slot_millis).max(0) as usize).min(n_slots - 1)
    };
    let mut lives: Vec<VersionLife> = Vec::new();
    for (page, value) in world.pages.iter().zip(values) {
        for (place, change) in page.changes.iter().enumerate() {
            if spec.window.contains(change.at) {
                let gone = page.changes.get(place + 1).map_or(spec.window.until, |next| next.at);
                let worth = value * if spec.goal == Goal::Count { 1.0 } else { change.importance.get() };
                lives.push(VersionLife { worth, first_slot: slot_at(change.at), last_slot: slot_at(gone) });
            }
        }
    }
    let supply = spec.capacities();
    let total: f64 = supply.iter().sum();
    let highest = lives.iter().map(|life| life.worth).fold(0.0, f64::max);
    let (shadow_price, best) = uniform_shadow_price(total, highest, |shadow_price| {
        let wanted = lives.iter().filter(|life| life.worth > shadow_price);
        let gain: f64 = wanted.clone().map(|life| life.worth - shadow_price).sum();
        (gain, wanted.count() as f64)
    });
    let bound =
        least_bound(&supply, vec![shadow_price.max(1e-6 * highest); n_slots], ROUNDS, |shadow_prices| {
            let mut wanted = vec![0.0; shadow_prices.len()];
            let mut gain = 0.0;
            for life in &lives {
                let slots = life.first_slot..=life.last_slot.min(life.first_slot + 200);
                let Some(cheapest) = slots.min_by(|a, b| shadow_prices[*a].total_cmp(&shadow_prices[*b]))
                else {
                    continue;
                };
                if life.worth > shadow_prices[cheapest] {
                    gain += life.worth - shadow_prices[cheapest];
                    wanted[cheapest] += 1.0;
                }
            }
            (gain, wanted)
        });
    best.min(bound.1).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::Window;
    use crate::world::{Change, WorldPage};
    use perennial_core::page::importance::Importance;
    use perennial_core::time::{Span, Timestamp};
    use perennial_core::url::SiteId;
    use proptest::prelude::*;

    const HALF_HOURS: i64 = 1800;

    /// Changes at half hours, as (half hour, importance in tenths).
    fn world(pages: &[Vec<(u8, u8)>], n_slots: i64) -> (World, Window) {
        let pages = pages
            .iter()
            .map(|list| {
                let mut list = list.clone();
                list.sort_unstable();
                list.dedup_by_key(|change| change.0);
                let changes = list.iter().map(|(half_hour, tenths)| Change {
                    at: Timestamp::from_secs(i64::from(*half_hour) * HALF_HOURS + 60),
                    importance: Importance::new(f64::from(*tenths) / 10.0),
                });
                WorldPage {
                    name: String::new(),
                    site: SiteId(0),
                    weight: 1.0,
                    changes: changes.collect(),
                    truth: None,
                }
            })
            .collect();
        let window = Window { from: Timestamp::EPOCH, until: Timestamp::from_secs(n_slots * 3600) };
        let world = World {
            name: String::new(),
            start: window.from,
            end: window.until,
            sites: vec![],
            pages,
            clocks: vec![],
        };
        (world, window)
    }

    /// Tries all choices of a page and a version for every slot, with one visit per slot in all.
    fn exhaustive(world: &World, n_slots: i64) -> f64 {
        let total: f64 = world.pages.iter().flat_map(|p| &p.changes).map(|c| c.importance.get()).sum();
        fn search(world: &World, slot: i64, n_slots: i64, caught: &mut Vec<(usize, usize)>) -> f64 {
            if slot == n_slots {
                return 0.0;
            }
            let mut best = search(world, slot + 1, n_slots, caught);
            for (place, page) in world.pages.iter().enumerate() {
                for (version, change) in page.changes.iter().enumerate() {
                    let lives_from = change.at.as_secs() / 3600;
                    let gone =
                        page.changes.get(version + 1).map_or(i64::MAX, |next| next.at.as_secs() / 3600);
                    if lives_from <= slot && slot <= gone && !caught.contains(&(place, version)) {
                        caught.push((place, version));
                        let rest = search(world, slot + 1, n_slots, caught);
                        best = best.max(change.importance.get() + rest);
                        caught.pop();
                    }
                }
            }
            best
        }
        if total == 0.0 { 1.0 } else { search(world, 0, n_slots, &mut Vec::new()) / total }
    }

    fn spec(window: Window, visits_per_hour: f64) -> BoundSpec {
        BoundSpec { window, slot: Span::from_hours(1), visits_per_hour, goal: Goal::Importance }
    }

    #[test]
    fn one_visit_an_hour_catches_the_best_change_of_each_hour() {
        let (world, window) = world(&[vec![(0, 2), (1, 5), (2, 9), (3, 1)]], 2);
        // A plan captures 5 and 9. Carrying 5 into the second hour is not better.
        let bound = clairvoyant(&world, &spec(window, 1.0), VisitConstraint::OncePerSlot);
        assert!((bound - 14.0 / 17.0).abs() < 1e-3, "{bound}");
        let free = clairvoyant(&world, &spec(window, 2.0), VisitConstraint::Free);
        assert!((free - 1.0).abs() < 1e-6, "{free}");
    }

    #[test]
    fn a_varying_budget_limits_the_sum_of_visits() {
        // All changes are in the first hour. One visit per hour captures all of them, two visits in all capture two.
        let (world, window) = world(&[vec![(0, 5)], vec![(0, 5)], vec![(1, 5)]], 3);
        let fixed = clairvoyant(&world, &spec(window, 1.0), VisitConstraint::OncePerSlot);
        assert!((fixed - 1.0).abs() < 1e-3, "versions live on: {fixed}");
        let varying = clairvoyant(&world, &spec(window, 2.0 / 3.0 + 1e-6), VisitConstraint::VaryingBudget);
        assert!((varying - 2.0 / 3.0).abs() < 1e-3, "{varying}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn it_bounds_exhaustive_search_and_is_close(
            pages in prop::collection::vec(prop::collection::vec((0u8..8, 1u8..10), 0..4), 1..4)
        ) {
            let (world, window) = world(&pages, 4);
            let exact = exhaustive(&world, 4);
            let bound = clairvoyant(&world, &spec(window, 1.0), VisitConstraint::OncePerSlot);
            prop_assert!(bound >= exact - 1e-6, "{bound} < {exact}");
            // The bound is exact at the right prices. Many rounds find four prices.
            let bound = clairvoyant_in(4000, &world, &spec(window, 1.0), VisitConstraint::OncePerSlot);
            prop_assert!(bound >= exact - 1e-6, "{bound} < {exact}");
            prop_assert!(bound <= exact + 0.02, "{bound} above {exact}");
        }

        #[test]
        fn one_page_alone_is_solved_exactly(
            page in prop::collection::vec((0u8..10, 1u8..10), 0..6), shadow_price in 0u8..10,
        ) {
            // Compares the dynamic program with all subsets of slots, at a price per visit.
            let (world, window) = world(&[page], 5);
            let slots = slot_changes(&world, &spec(window, 1.0), 0, 1.0);
            let shadow_price = f64::from(shadow_price) / 10.0;
            let mut wanted = vec![0.0; 5];
            let gain = best_plan(&slots, &[shadow_price; 5], &mut Vec::new(), &mut wanted);
            let visits: f64 = wanted.iter().sum();
            let mut best = 0.0f64;
            for subset in 0u32..32 {
                best = best.max(best_of_subset(&world, subset) - shadow_price * f64::from(subset.count_ones()));
            }
            prop_assert!((gain - best).abs() < 1e-6, "{gain} {best} {visits}");
        }
    }

    /// The best versions that one visit in each of these slots can capture of the only page.
    fn best_of_subset(world: &World, subset: u32) -> f64 {
        let changes = &world.pages[0].changes;
        fn search(changes: &[Change], subset: u32, slot: u32, next: usize) -> f64 {
            if slot == 5 {
                return 0.0;
            }
            let mut best = search(changes, subset, slot + 1, next);
            if subset & (1 << slot) != 0 {
                for version in next..changes.len() {
                    let from = changes[version].at.as_secs() / 3600;
                    let gone = changes.get(version + 1).map_or(i64::MAX, |c| c.at.as_secs() / 3600);
                    if from <= i64::from(slot) && i64::from(slot) <= gone {
                        let rest = search(changes, subset, slot + 1, version + 1);
                        best = best.max(changes[version].importance.get() + rest);
                    }
                }
            }
            best
        }
        search(changes, subset, 0, 0)
    }
}
