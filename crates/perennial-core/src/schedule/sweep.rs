//! Sites whose pages are visited together: when, and which of their pages (docs/decisions/0037-goals-and-sweeps.md).
//!
//! Every site has a timer. When it rings, the site's pages are looked at: those that have probably changed and are
//! worth a visit make up the sweep, and it begins if their mean gain reaches the shadow price and the budget can pay
//! for all of them. A large site is looked at in slices, so no event waits for all its pages. The timer's wait grows
//! with the time since the last sweep, and with the distance of the gain from the price.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::balance::LONGEST_GAP_HOURS;
use super::outlook::HOUR_SECS;
use super::pages::{IN_SWEEP, VACANT};
use super::{Reason, Scheduler};
use crate::pattern::mixture::{exp_neg, one_minus_exp};

/// A sweep needs a mean gain of this many times the price.
const SWEEP_MARGIN: f32 = 1.05;
/// A sweep leaves out a page that has changed with a probability below 5 %, because its last capture is still valid.
/// This is the number of changes, -ln(1 - 0.05).
const LEAST_CHANGES: f32 = 0.051_293_3;
const LONGEST_GAP_SECS: u32 = LONGEST_GAP_HOURS * HOUR_SECS;
/// A site is looked at again after a share of the time since its last sweep: at least this, so that a sweep is late
/// by a twentieth at most, and at most that, because rates of single hours may be far above the mean.
const CHECK_SHARES: std::ops::RangeInclusive<f32> = 0.05..=0.25;
/// Seconds between two looks at a site. At least one for each of its pages, so that looks cost little beside visits.
const CHECK_SECS: std::ops::RangeInclusive<u32> = 300..=3600;
/// Pages that one event looks at. A page costs about a tenth of a microsecond.
const SLICE: usize = 2048;
/// A sweep that the budget cannot pay for is considered again after this time at the earliest.
const SOON_SECS: u32 = 10;
const HOUR: u32 = HOUR_SECS;
/// Seconds between two pages of a sweep, about as long as a polite crawler takes.
const APART_SECS: u32 = 3;

/// Timers of sites, and the pages of sweeps that have begun.
#[derive(Clone, Default)]
pub(super) struct Sweeps {
    timers: BinaryHeap<Reverse<(u32, u32)>>,
    /// The pages of each site, by its place. Pages that were removed are dropped at the next check.
    members: Vec<Vec<u32>>,
    check: Option<SiteCheck>,
    /// The pages of sweeps that have begun.
    queue: BinaryHeap<Reverse<SweptPage>>,
}

/// A look at the pages of a site that is under way.
#[derive(Clone)]
struct SiteCheck {
    site: usize,
    /// How many of its pages were looked at.
    n_seen: usize,
    /// Those that a sweep would include, and the sum of their gains.
    pages: Vec<u32>,
    gain: f32,
}

/// A page of a sweep, ordered by its second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SweptPage {
    /// The second from which the page is visited.
    due: u32,
    at: u32,
    /// Number of pages in the sweep.
    n_pages: u32,
}

impl Sweeps {
    fn next(&self) -> Option<u32> {
        let check = self.check.as_ref().map(|_| 0);
        let site = self.timers.peek().map(|Reverse((when, _))| *when);
        let page = self.queue.peek().map(|Reverse(page)| page.due);
        check.into_iter().chain(site).chain(page).min()
    }

    /// Lists a page of a site.
    pub(super) fn list(&mut self, at: usize, site: usize, secs: u32) {
        while self.members.len() <= site {
            self.timers.push(Reverse((secs, self.members.len() as u32)));
            self.members.push(Vec::new());
        }
        self.members[site].push(at as u32);
    }
}

impl Scheduler {
    fn makes_sweeps(&self) -> bool {
        self.sweeps_sites() && self.config.budget.is_some()
    }

    /// When a site is looked at or a page of a sweep is due.
    pub(super) fn next_sweep(&self) -> Option<u32> {
        if self.makes_sweeps() { self.sweeps.next() } else { None }
    }

    /// Looks at the sites whose timers are due.
    pub(super) fn start_sweeps(&mut self) {
        if !self.makes_sweeps() {
            return;
        }
        let (secs, mut n_left) = (self.secs(self.now), SLICE);
        while n_left > 0 {
            if let Some(mut check) = self.sweeps.check.take() {
                n_left -= self.check_pages(&mut check, n_left, secs);
                if check.n_seen < self.sweeps.members[check.site].len() {
                    self.sweeps.check = Some(check);
                    return;
                }
                let (site, next) = (check.site, self.decide_sweep(check, secs));
                self.sweeps.timers.push(Reverse((next.max(secs + 1), site as u32)));
            }
            match self.sweeps.timers.peek() {
                Some(&Reverse((when, site))) if when <= secs => {
                    self.sweeps.timers.pop();
                    self.begin_check(site as usize, secs);
                    n_left -= 1;
                }
                _ => return,
            }
        }
    }

    /// Begins a look at a site, unless it is not swept now.
    fn begin_check(&mut self, site: usize, secs: u32) {
        let hour = self.balance.incoherent_hours.get(site).copied().unwrap_or(0.0);
        if hour > 0.0 && self.balance.shadow_price > 0.0 {
            self.sweeps.check = Some(SiteCheck { site, n_seen: 0, pages: Vec::new(), gain: 0.0 });
        } else {
            self.sweeps.timers.push(Reverse((secs + HOUR, site as u32)));
        }
    }

    /// Looks at some more pages of a site: which a sweep would include now, and what they gain. Returns their number.
    fn check_pages(&mut self, check: &mut SiteCheck, n: usize, secs: u32) -> usize {
        let hour = self.balance.incoherent_hours.get(check.site).copied().unwrap_or(0.0);
        let gap = self.sites.all[check.site].gap_hours;
        let mut members = std::mem::take(&mut self.sweeps.members[check.site]);
        let until = (check.n_seen + n).min(members.len());
        let mut n_removed = 0;
        for &at in &members[check.n_seen..until] {
            let place = at as usize;
            n_removed += usize::from(!self.is_of_site(place, check.site));
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
            if (is_worth || age >= LONGEST_GAP_SECS) && self.is_of_site(place, check.site) {
                check.pages.push(at);
                check.gain += gain + overdue;
            }
        }
        let n_seen = until - check.n_seen;
        check.n_seen = until;
        if n_removed > 0 {
            check.n_seen =
                members[..until].iter().filter(|at| self.is_of_site(**at as usize, check.site)).count();
            members.retain(|at| self.is_of_site(*at as usize, check.site));
        }
        self.sweeps.members[check.site] = members;
        n_seen
    }

    /// Whether a position still holds a page of a site.
    fn is_of_site(&self, at: usize, site: usize) -> bool {
        self.pages.site[at] as usize == site && !self.pages.has(at, VACANT)
    }

    /// Starts the sweep of a site if it is worth it. Returns when to look again.
    fn decide_sweep(&mut self, check: SiteCheck, secs: u32) -> u32 {
        let SiteCheck { site, mut pages, gain, .. } = check;
        // In the same order each time, so that intervals are even. A position that was used again may be listed twice.
        pages.sort_unstable();
        pages.dedup();
        let mean_gain = gain / pages.len().max(1) as f32;
        let swept_at = self.sites.all[site].swept_at;
        let since = secs.saturating_sub(swept_at).min(LONGEST_GAP_SECS);
        let price = SWEEP_MARGIN * self.balance.shadow_price;
        let shortest = (self.sweeps.members[site].len() as u32).clamp(*CHECK_SECS.start(), *CHECK_SECS.end());
        if pages.is_empty() || (since < LONGEST_GAP_SECS && mean_gain < price) {
            // At constant rates a gain grows with the square of the time at most. Half of that leaves room for busy
            // hours.
            let growth = 0.5 * ((price / mean_gain.max(1e-30)).sqrt() - 1.0);
            let wait = since as f32 * growth.clamp(*CHECK_SHARES.start(), *CHECK_SHARES.end());
            return secs + (wait as u32).max(shortest);
        }
        let n = pages.len() as f64;
        let saved = if self.config.saves_visits() { self.tokens() } else { f64::INFINITY };
        let n_queued = self.sweeps.queue.len() as f64;
        let short = n + n_queued - saved.min(self.left_for_others());
        if short > 0.0 {
            let wait = short / self.config.per_hour().max(1e-9) * f64::from(HOUR);
            let period = self.secs(self.period_end()).saturating_sub(secs);
            let wait = if self.config.saves_visits() { wait as u32 } else { period };
            return secs + wait.clamp(SOON_SECS, HOUR);
        }
        self.sites.all[site].record_sweep(secs);
        if !self.controls_price() {
            // Without savings the price is the mean gain of all visits.
            pages.iter().for_each(|_| self.follow_visit(mean_gain));
        }
        let n_pages = pages.len() as u32;
        let due = (0..).map(|nth: u32| secs + APART_SECS * nth);
        self.sweeps
            .queue
            .extend(pages.into_iter().zip(due).map(|(at, due)| Reverse(SweptPage { due, at, n_pages })));
        secs + shortest.max(APART_SECS * n_pages)
    }

    /// The next page of a sweep, if one is due.
    pub(super) fn next_of_sweep(&mut self) -> Option<(usize, Reason)> {
        let secs = self.secs(self.now);
        while let Some(&Reverse(SweptPage { at, n_pages, .. })) =
            self.sweeps.queue.peek().filter(|Reverse(page)| page.due <= secs)
        {
            self.sweeps.queue.pop();
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
