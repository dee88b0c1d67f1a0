//! Sites whose pages are visited together: when, and which of their pages (docs/decisions/0037-goals-and-sweeps.md).
//!
//! Every site has a timer. When it rings, the site's pages are looked at: those that have probably changed and are
//! worth a visit make up the sweep, and it begins if their mean gain reaches the shadow price and the budget can pay
//! for all of them. The timer's wait grows with the time since the last sweep, so a large site that is swept once a
//! week is looked at some sixty times in between.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::balance::LONGEST_GAP_HOURS;
use super::outlook::HOUR_SECS;
use super::pages::IN_SWEEP;
use super::{Reason, Scheduler};
use crate::pattern::mixture::{exp_neg, one_minus_exp};

/// A sweep needs a mean gain of this many times the price.
const SWEEP_MARGIN: f32 = 1.05;
/// A sweep leaves out a page that has changed with a probability below 5 %, because its last capture is still valid.
/// This is the number of changes, -ln(1 - 0.05).
const LEAST_CHANGES: f32 = 0.051_293_3;
const LONGEST_GAP_SECS: u32 = LONGEST_GAP_HOURS * HOUR_SECS;
/// A site is looked at again after this share of the time since its last sweep, and not sooner than this.
const LOOK_SHARE: u32 = 20;
const SHORTEST_LOOK_SECS: u32 = 300;
const HOUR: u32 = HOUR_SECS;
/// Seconds between two pages of a sweep, about as long as a polite crawler takes.
const APART_SECS: u32 = 3;

/// Timers of sites, and the pages of sweeps that have begun.
#[derive(Clone, Default)]
pub(super) struct Sweeps {
    timers: BinaryHeap<Reverse<(u32, u32)>>,
    /// The pages of each site, by its place.
    members: Vec<Vec<u32>>,
    /// How many positions are listed.
    n_listed: usize,
    /// Position, number of pages of the sweep, and the second from which the page is visited.
    queue: VecDeque<(u32, u32, u32)>,
}

impl Sweeps {
    /// When a site is looked at or a page of a sweep is due.
    pub(super) fn next(&self) -> Option<u32> {
        let site = self.timers.peek().map(|Reverse((when, _))| *when);
        let page = self.queue.front().map(|(_, _, due)| *due);
        site.into_iter().chain(page).min()
    }
}

impl Scheduler {
    /// Lists the pages that were added, and gives new sites a timer.
    fn list_sites(&mut self) {
        let secs = self.secs(self.now);
        let sweeps = &mut self.sweeps;
        while sweeps.members.len() < self.sites.all.len() {
            sweeps.timers.push(Reverse((secs, sweeps.members.len() as u32)));
            sweeps.members.push(Vec::new());
        }
        for at in sweeps.n_listed..self.pages.len() {
            if let Some(members) = sweeps.members.get_mut(self.pages.site[at] as usize) {
                members.push(at as u32);
            }
        }
        sweeps.n_listed = self.pages.len();
    }

    /// Looks at the sites whose timers are due.
    pub(super) fn start_sweeps(&mut self) {
        if !self.sweeps_sites() || self.config.budget.is_none() {
            return;
        }
        self.list_sites();
        let secs = self.secs(self.now);
        while let Some(&Reverse((when, site))) = self.sweeps.timers.peek() {
            if when > secs {
                return;
            }
            self.sweeps.timers.pop();
            let next = self.consider_sweep(site as usize, secs);
            self.sweeps.timers.push(Reverse((next.max(secs + 1), site)));
        }
    }

    /// Starts a sweep of a site if it is worth it. Returns when to look again.
    fn consider_sweep(&mut self, site: usize, secs: u32) -> u32 {
        let hour = self.balance.incoherent_hours.get(site).copied().unwrap_or(0.0);
        if hour <= 0.0 || self.balance.shadow_price <= 0.0 {
            return secs + HOUR;
        }
        if !self.sweeps.queue.is_empty() {
            // One sweep at a time, so that each is short.
            return secs + 60;
        }
        let swept_at = self.sites.all[site].swept_at;
        let since = secs.saturating_sub(swept_at).min(LONGEST_GAP_SECS);
        let (pages, mean_gain) = self.sweep_of(site, hour, secs);
        let is_due = secs.saturating_sub(swept_at) >= LONGEST_GAP_SECS;
        if pages.is_empty() || !(is_due || mean_gain >= SWEEP_MARGIN * self.balance.shadow_price) {
            return secs + (since / LOOK_SHARE).max(SHORTEST_LOOK_SECS);
        }
        let n = pages.len() as f64;
        let saved = if self.config.saves_visits() { self.tokens() } else { f64::INFINITY };
        let short = n - saved.min(self.left_for_others());
        if short > 0.0 {
            let wait = short / self.config.per_hour().max(1e-9) * f64::from(HOUR);
            let period = self.secs(self.period_end()).saturating_sub(secs);
            return secs + if self.config.saves_visits() { wait as u32 } else { period }.clamp(1, HOUR);
        }
        self.sites.all[site].record_sweep(secs);
        if !self.controls_price() {
            // Without savings the price is the mean gain of all visits.
            pages.iter().for_each(|_| self.follow_visit(mean_gain));
        }
        let n_pages = pages.len() as u32;
        let due = (0..).map(|nth: u32| secs + APART_SECS * nth);
        self.sweeps.queue.extend(pages.into_iter().zip(due).map(|(at, due)| (at, n_pages, due)));
        secs + SHORTEST_LOOK_SECS
    }

    /// The pages that a sweep of a site would include now, in the same order each time so that intervals are even,
    /// and their mean gain.
    fn sweep_of(&mut self, site: usize, hour: f32, secs: u32) -> (Vec<u32>, f32) {
        let gap = self.sites.all[site].gap_hours;
        let members = std::mem::take(&mut self.sweeps.members[site]);
        let (mut pages, mut sum) = (Vec::new(), 0.0f32);
        for &at in members.iter() {
            let place = at as usize;
            if !self.can_rank(place) || self.pages.not_before[place] > secs {
                continue;
            }
            self.carry(place);
            let (gain, changes) = (self.pages.urgency[place], self.pages.expected_changes[place]);
            let age = secs.saturating_sub(self.pages.seen_at[place]);
            // A page that sweeps have left out and that changed once does not match the captures of other pages. If
            // it changed often, an earlier visit helps little, because it would miss other versions.
            let late = (age as f32 / HOUR as f32 - gap).max(0.0);
            let omega = self.page_omega(place) * hour;
            let overdue = omega * late * changes * exp_neg(changes);
            let until_next = omega * gap * one_minus_exp(changes);
            let is_worth =
                changes >= LEAST_CHANGES && gain + until_next + overdue >= self.balance.shadow_price;
            if is_worth || age >= LONGEST_GAP_SECS {
                pages.push(at);
                sum += gain + overdue;
            }
        }
        self.sweeps.members[site] = members;
        let n = pages.len().max(1) as f32;
        (pages, sum / n)
    }

    /// The next page of a sweep, if one is due.
    pub(super) fn next_of_sweep(&mut self) -> Option<(usize, Reason)> {
        let secs = self.secs(self.now);
        while let Some(&(at, n_pages, _)) = self.sweeps.queue.front().filter(|(_, _, due)| *due <= secs) {
            self.sweeps.queue.pop_front();
            let at = at as usize;
            // The page may have been removed or chosen otherwise.
            if !self.can_rank(at) || self.pages.not_before[at] > secs {
                continue;
            }
            self.carry(at);
            self.pages.sweep_flags[at] |= IN_SWEEP;
            let reason = match self.reason(at) {
                Reason::Urgent { since, .. } if n_pages > 1 => Reason::Sweep { n_pages, since },
                other => other,
            };
            return Some((at, reason));
        }
        None
    }
}
