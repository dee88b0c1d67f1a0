//! Pages -> their sites: the goal of each, and when it was last swept.

use std::collections::HashMap;

use super::pages::CHANGED;
use super::{Goal, Scheduler};
use crate::url::SiteId;

/// Assumed hours between two sweeps before there have been two.
const FIRST_GAP_HOURS: f32 = 24.0;
/// Sweeps within this time count as one that continues. With a shorter gap incoherence would cost nothing, and the
/// "sweeps" would be single visits to the busiest pages.
const SHORTEST_GAP_HOURS: f32 = 2.5;
const SHORTEST_GAP_HOURS_COHERENT: f32 = 5.0;
/// Weight of the latest gap in the mean gap between sweeps.
const GAP_WEIGHT: f32 = 0.2;

#[derive(Clone, Debug)]
pub(super) struct SiteState {
    pub id: SiteId,
    pub goal: Goal,
    /// Number of followed pages.
    pub n_pages: u32,
    /// The weight of its versions in a sweep.
    pub omega: f32,
    /// When it was last swept, in seconds since the scheduler's base; 0: never.
    pub swept_at: u32,
    /// P: the usual hours between two sweeps.
    pub gap_hours: f32,
}

/// All sites, in order of arrival.
#[derive(Clone, Default)]
pub(super) struct Sites {
    pub all: Vec<SiteState>,
    places: HashMap<SiteId, u32>,
    /// Number of sites whose goal includes sweeps.
    n_swept: usize,
}

impl Sites {
    /// The index of a site, which is added if it is new.
    pub(super) fn place(&mut self, id: SiteId, goal: Goal) -> u32 {
        let place = *self.places.entry(id).or_insert(self.all.len() as u32);
        let before = self.all.get_mut(place as usize).map(|site| std::mem::replace(&mut site.goal, goal));
        self.n_swept -= usize::from(before.is_some_and(Goal::sweeps_sites));
        self.n_swept += usize::from(goal.sweeps_sites());
        if before.is_none() {
            let gap_hours = FIRST_GAP_HOURS;
            self.all.push(SiteState { id, goal, n_pages: 0, omega: 0.0, swept_at: 0, gap_hours });
        }
        place
    }

    pub(super) fn known(&mut self, id: SiteId) -> Option<&mut SiteState> {
        self.all.get_mut(*self.places.get(&id)? as usize)
    }

    pub(super) fn any_sweeps(&self) -> bool {
        self.n_swept > 0
    }
}

impl SiteState {
    /// Records a sweep of the site.
    pub(super) fn record_sweep(&mut self, now_secs: u32) {
        if self.swept_at > 0 {
            let gap = now_secs.saturating_sub(self.swept_at) as f32 / 3600.0;
            let shortest = match self.goal {
                Goal::Coherent => SHORTEST_GAP_HOURS_COHERENT,
                _ => SHORTEST_GAP_HOURS,
            };
            self.gap_hours = (self.gap_hours + GAP_WEIGHT * (gap - self.gap_hours)).max(shortest);
        }
        self.swept_at = now_secs;
    }
}

impl Scheduler {
    pub(super) fn site(&self, at: usize) -> SiteId {
        self.sites.all.get(self.pages.site[at] as usize).map_or(SiteId(0), |site| site.id)
    }

    pub(super) fn goal(&self, at: usize) -> Goal {
        self.sites.all.get(self.pages.site[at] as usize).map_or(self.config.goal, |site| site.goal)
    }

    /// The weight of a page's captured version in a sweep. A page without an observed change has the weight of a
    /// first version.
    pub(super) fn page_omega(&self, at: usize) -> f32 {
        let is_changing = self.pages.sweep_flags[at] & CHANGED != 0;
        self.pages.weight[at] * if is_changing { self.pages.importance[at] } else { 1.0 }
    }
}
