//! Pages -> their sites: what the user wants of each, and when it was last visited as a whole.

use std::collections::HashMap;

use super::pages::{ABSENT, CHANGED, SKIPPED, VACANT};
use super::{Goal, Scheduler};
use crate::url::SiteId;

/// Hours between two pictures of a site before there have been two.
const FIRST_GAP_HOURS: f32 = 24.0;
/// Pictures in a row within this time count as one that goes on: with a shorter gap nothing would be charged for tearing, and what
/// is called a picture would be single visits to the busiest pages.
const SHORTEST_GAP_HOURS: f32 = 2.5;
const SHORTEST_GAP_HOURS_COHERENT: f32 = 5.0;
/// Weight of the last gap between two pictures in their mean.
const GAP_WEIGHT: f32 = 0.2;

/// What is known of one site.
#[derive(Clone, Debug)]
pub(super) struct SiteState {
    pub id: SiteId,
    /// What the user wants of it.
    pub goal: Goal,
    /// Its pages that are followed.
    pub n_pages: u32,
    /// Pages of the sites before it.
    pub n_before: u32,
    /// The weight of its versions in a picture of it.
    pub omega: f32,
    /// When it was last visited as a whole, in seconds since the scheduler's base; 0: never.
    pub pictured_at: u32,
    /// P: the usual hours between two pictures.
    pub gap_hours: f32,
}

/// All sites, in the order in which they came.
#[derive(Clone, Default)]
pub(super) struct Sites {
    pub all: Vec<SiteState>,
    places: HashMap<SiteId, u32>,
    n_pages: u32,
}

impl Sites {
    /// The place of a site, a new one if it had none.
    pub(super) fn place(&mut self, id: SiteId, goal: Goal) -> u32 {
        let place = *self.places.entry(id).or_insert(self.all.len() as u32);
        match self.all.get_mut(place as usize) {
            Some(site) => site.goal = goal,
            None => self.all.push(SiteState {
                id,
                goal,
                n_pages: 0,
                n_before: 0,
                omega: 0.0,
                pictured_at: 0,
                gap_hours: FIRST_GAP_HOURS,
            }),
        }
        place
    }

    /// A site, if it has pages.
    pub(super) fn known(&mut self, id: SiteId) -> Option<&mut SiteState> {
        self.all.get_mut(*self.places.get(&id)? as usize)
    }

    /// Whether any site is visited as a whole.
    pub(super) fn any_pictures(&self) -> bool {
        self.all.iter().any(|site| site.goal.takes_pictures())
    }
}

impl SiteState {
    /// Notes a picture of the site.
    pub(super) fn picture(&mut self, now_secs: u32) {
        if self.pictured_at > 0 {
            let gap = now_secs.saturating_sub(self.pictured_at) as f32 / 3600.0;
            let shortest = match self.goal {
                Goal::Coherent => SHORTEST_GAP_HOURS_COHERENT,
                _ => SHORTEST_GAP_HOURS,
            };
            self.gap_hours = (self.gap_hours + GAP_WEIGHT * (gap - self.gap_hours)).max(shortest);
        }
        self.pictured_at = now_secs;
    }
}

/// [`Scheduler::omega_of`] from the weight, the importance and the state of a page.
#[inline]
pub(super) fn omega_from(((weight, importance), picture): ((&f32, &f32), &u8)) -> f32 {
    // Bits instead of a branch, so that a loop over pages becomes vector instructions.
    let is_changing = u32::from(picture & CHANGED != 0).wrapping_neg();
    weight * f32::from_bits(importance.to_bits() & is_changing | 1f32.to_bits() & !is_changing)
}

impl Scheduler {
    /// The site of a page.
    pub(super) fn site_of(&self, at: usize) -> SiteId {
        self.sites.all.get(self.pages.site[at] as usize).map_or(SiteId(0), |site| site.id)
    }

    /// What the user wants of a page's site.
    pub(super) fn goal_of(&self, at: usize) -> Goal {
        self.sites.all.get(self.pages.site[at] as usize).map_or(self.config.goal, |site| site.goal)
    }

    /// What the archived version of a page weighs in a picture of its site. A page that was never seen to change weighs as its
    /// first version does.
    pub(super) fn omega_of(&self, at: usize) -> f32 {
        let pages = &self.pages;
        omega_from(((&pages.weight[at], &pages.importance[at]), &pages.picture[at]))
    }

    /// Counts the pages of sites and what they weigh.
    pub(super) fn survey_sites(&mut self) {
        let mut sums = vec![(0u32, 0.0f32); self.sites.all.len()];
        for at in (0..self.pages.len()).filter(|&at| !self.pages.has(at, VACANT | ABSENT | SKIPPED)) {
            if let Some(sum) = sums.get_mut(self.pages.site[at] as usize) {
                *sum = (sum.0 + 1, sum.1 + self.omega_of(at));
            }
        }
        let mut n_before = 0;
        for (site, (n_pages, omega)) in self.sites.all.iter_mut().zip(sums) {
            (site.n_pages, site.omega, site.n_before) = (n_pages, omega, n_before);
            n_before += n_pages;
        }
        self.sites.n_pages = n_before;
    }

    /// The place of a page's visits within a slot, as a share of its length. It is the same in every slot, so that visits of a busy
    /// page come at even intervals, and pages of one site are close together.
    pub(super) fn share_of_slot(&self, at: usize) -> f64 {
        let within = f64::from(crate::rng::spread(self.seed, u64::from(self.pages.id[at].0))) / 65536.0;
        let Some(site) = self.sites.all.get(self.pages.site[at] as usize) else { return within };
        let place = f64::from(site.n_before) + within * f64::from(site.n_pages);
        (place / f64::from(self.sites.n_pages.max(1))).clamp(0.0, 0.999)
    }
}
