//! A slot's budget -> visits that serve all measures at once: sweeps of whole sites, and single visits between them
//! (P-QUALITY 5 and 6; docs/decisions/0037-goals-and-sweeps.md).
//!
//! Coherence measures whether the archived versions of a site's pages existed together. After a sweep, which visits
//! all pages within one slot, they did. A single visit between two sweeps that finds a change makes the page
//! incoherent. For about half of the time between the sweeps, the version nearest to a query then differs from that
//! of its neighbours. The first such visit costs most; each further one adds little.
//!
//! So a single visit is charged for the hours of incoherence that it is expected to cause, at a price that follows
//! from what the archive earns. A few busy pages end up incoherent for good and are visited often. The others are
//! visited with their site. All visits have one shadow price, which follows the savings. A site is swept when the
//! mean gain of its pages reaches the price.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::pages::{
    ABSENT, ANNOUNCED, CHANGED, FRESH, IN_SWEEP, INCOHERENT, PENDING, PROMISED, SKIPPED, VACANT,
};
use super::select::{self, Histogram};
use super::sweep::{SiteSweepCost, SweepSelection};
use super::{Goal, Reason, Scheduler, Strategy};
use crate::pattern::mixture::one_minus_exp;
use crate::time::{Span, Timestamp};

/// A sweep needs a mean gain of this many times the price.
const SWEEP_MARGIN: f32 = 1.05;
/// A site is swept at least this often, and a sweep includes every page that was last seen before that.
const LONGEST_GAP_HOURS: u32 = 168;
/// Hours of the budget that the sweeps of one slot may use, unless the first alone uses more.
const MAX_HOURS_PER_SLOT: f64 = 8.0;
/// Hours of the budget that can be saved.
const SAVED_HOURS: f64 = 24.0;
/// A site whose sweep takes more hours of the budget than this is not swept. Without savings a sweep has to fit into
/// one slot.
const LONGEST_SWEEP_HOURS: f64 = 84.0;
/// Hours after which a mean over time has forgotten 63 % of its input.
const MEMORY_HOURS: f64 = 168.0;
/// Hours before a mean over time is used.
const FIRST_HOURS: f64 = 48.0;
/// Hours in which the highest gain fades to 1/e. Gains are highest just before a sweep, and sweeps may be days apart.
const HIGHEST_HOURS: f64 = 504.0;
/// The most by which savings beyond the target count.
const MOST_PLENTY: f64 = 8.0;
/// Smaller gains count as 0.
const LEAST_GAIN: f32 = 1e-30;
/// The initial weight of Definition 5.13, and the bounds within which it follows the results.
const FIRST_EVERY_PAGE: f32 = 1.2;
const EVERY_PAGE: std::ops::RangeInclusive<f32> = 0.1..=2.0;
/// The aim: a share of what a fixed interval would reach by Definition 5.13.
const AIM: f64 = 0.97;
/// The exponent of captured importance, against all importance, in the price of an incoherent hour. It lowers the price
/// if little is captured, because each visit of a sweep is then missed elsewhere.
const SHARE_OF_CAUGHT: f64 = 0.6;

/// A mean rate of events over time.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct MeanOverTime {
    mean: f64,
    hours: f64,
    piece: f64,
}

impl MeanOverTime {
    fn pass(&mut self, hours: f64) {
        // An exponential mean. At the start it is too low, which `per_hour` corrects.
        let left = (-hours / MEMORY_HOURS).exp();
        self.mean = self.mean * left + self.piece * (1.0 - left) / hours.max(1e-6);
        self.hours += hours;
        self.piece = 0.0;
    }

    /// Whether all numbers are finite and not negative.
    pub(super) fn is_sound(&self) -> bool {
        [self.mean, self.hours, self.piece].iter().all(|number| number.is_finite() && *number >= 0.0)
    }

    /// Events per hour.
    fn per_hour(&self) -> f64 {
        self.mean / (1.0 - (-self.hours / MEMORY_HOURS).exp()).max(1e-9)
    }
}

/// The state that balances the measures.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    /// B: the weight of Definition 5.13 against pooled completeness.
    pub every_page: f32,
    /// Visits that were granted and not made. With a daily budget, which always holds, it is how far the day's visits
    /// lag behind an even distribution, plus half of the most that can be saved.
    saved: Option<f64>,
    /// The shadow price of a visit before savings are considered; 0 while it is unknown.
    pub base: f32,
    /// The highest gain of the page at the granted rank in a slot, fading over weeks. It bounds the price. If all
    /// pages gain alike, the price would otherwise rise above them all.
    pub highest: f32,
    /// The importance that visits capture, weighted by omega(P).
    pub found: MeanOverTime,
    /// What visits add to Definition 5.13.
    pub shares: MeanOverTime,
    /// Pages of sweeps that the budget has not yet allowed.
    sweep_queue: VecDeque<(u32, u32)>,
    /// The number of the budget's period, and visits made in it.
    spent: (i64, u64),
}

impl Default for Balance {
    fn default() -> Balance {
        Balance {
            every_page: FIRST_EVERY_PAGE,
            saved: None,
            highest: 0.0,
            base: 0.0,
            found: MeanOverTime::default(),
            shares: MeanOverTime::default(),
            sweep_queue: VecDeque::new(),
            spent: (0, 0),
        }
    }
}

struct SiteSweep {
    site: usize,
    n_pages: u32,
    gain: f32,
}

struct ShadowPrices {
    /// The gain that a visit needs.
    visit: f32,
    /// By site: the cost per hour of an incoherent page of weight 1; 0 if the site is not swept.
    incoherent_hour: Vec<f32>,
}

impl Scheduler {
    pub(super) fn sweeps_sites(&self) -> bool {
        self.config.strategy == Strategy::ExpectedGain && self.sites.any_sweeps()
    }

    /// Counts what a visit captured, before the page's state is recomputed. The expected gain is counted and not the
    /// actual one, because it is compared with the expected gain of other visits.
    pub(super) fn count_gain(&mut self, at: usize, is_changed: bool) {
        let before = self.pages.sweep_flags[at];
        let site = self.sites.all.get(self.pages.site[at] as usize);
        let was_swept = site.is_some_and(|site| site.swept_at >= self.pages.seen_at[at]);
        let mut after = before & CHANGED;
        if before & IN_SWEEP == 0 {
            after |= if was_swept { 0 } else { before & INCOHERENT };
            after |= if is_changed { INCOHERENT } else { 0 };
        }
        if is_changed {
            after |= CHANGED;
        }
        self.balance.found.piece += f64::from(self.pages.weight[at] * self.pages.expected_importance[at]);
        self.balance.shares.piece += self.share_of_week(at);
        self.pages.sweep_flags[at] = after;
    }

    pub(super) fn choose_balanced(
        &mut self,
        granted: f64,
        histogram: &mut Histogram,
        end_secs: u32,
    ) -> Vec<(u32, Reason)> {
        let per_hour = self.config.budget.map_or(0.0, |budget| budget.visits_in(Span::from_hours(1)));
        let hours = granted / per_hour.max(1e-9);
        self.update_balance(hours);
        let most = self.allowed(granted, per_hour);
        let mut left = most.min(self.pages.len());
        let mut probes = self.choose_probes(granted, left);
        probes.extend(self.probe_directories(granted, left - probes.len()));
        left -= probes.len();
        let n_new = (self.credit.floor() as usize).min(left);
        let mut chosen = self.choose_new(n_new);
        // New pages leave a fifth of the slot to others. Those left over follow at the end if there is room.
        let mut waiting = chosen.split_off(chosen.len().min((0.8 * n_new as f64).ceil() as usize));
        left -= chosen.len();
        let floor = self.floor_visits(left, granted).min(left);
        let mut longest_wait = self.longest_wait_secs(granted);
        if self.config.floor.is_none() {
            // Pages are swept before they are old. The floor serves sites that cannot be swept.
            longest_wait = longest_wait.max(1.2 * 3600.0 * f64::from(LONGEST_GAP_HOURS));
        }
        let oldest = self.choose_oldest(floor, longest_wait, histogram);
        left -= oldest.len();
        chosen.extend(oldest);
        if let Some(shadow_prices) = self.shadow_prices(granted, per_hour, hours, histogram) {
            self.start_sweeps(&shadow_prices, per_hour, left, end_secs);
            let selection = self.next_sweep_visits(left, histogram, end_secs);
            left -= selection.len();
            chosen.extend(selection);
            let n_visits = chosen.len() + probes.len();
            let single = self.choose_single(&shadow_prices, left, (granted, n_visits), histogram, end_secs);
            chosen.extend(single);
            self.note_slot_shadow_price(shadow_prices.visit);
            let bound =
                if self.config.saves_visits() { shadow_prices.visit } else { histogram.bound(4 * most + 64) };
            // The next slot only looks at pages above this bound. It is a little lower because prices move slowly.
            self.last_bounds = [0.9 * bound; 2];
        }
        waiting.truncate((self.credit.floor() as usize).saturating_sub(chosen.len() + probes.len()));
        chosen.append(&mut waiting);
        chosen.extend(probes);
        // Pages announced during the slot may use the savings.
        let more = (2.0 * granted).ceil() as usize;
        self.slot.capacity = if self.config.saves_visits() { most.min(chosen.len() + more) } else { most };
        chosen
    }

    /// The number of visits allowed in the slot.
    fn allowed(&mut self, granted: f64, per_hour: f64) -> usize {
        if !self.config.saves_visits() {
            return self.credit.floor() as usize;
        }
        let (most, left) = (self.most_saved(per_hour), self.left_of_period());
        let saved = match self.behind(per_hour) {
            // A day's savings end with the day. If visits of the previous day were added to this one, they would be
            // missing in its evening. The middle of the range means neither saved nor borrowed.
            Some(behind) => 0.5 * most + behind,
            // Without a daily limit, only granted visits are spent.
            None => self.balance.saved.unwrap_or(0.0) + granted,
        };
        let saved = saved.clamp(0.0, most);
        self.balance.saved = Some(saved);
        // Pages that are found during the slot may use what the known ones do not need.
        saved.min(left).floor().max(0.0) as usize
    }

    /// The most visits that can be saved: enough for a day, and for a sweep of the largest site.
    fn most_saved(&self, per_hour: f64) -> f64 {
        let is_meant = |n_pages: &f64| *n_pages <= self.largest_sweep(per_hour);
        let pages = self.sites.all.iter().filter(|site| site.goal.sweeps_sites());
        let largest = pages.map(|site| f64::from(site.n_pages)).filter(is_meant).fold(0.0, f64::max);
        (SAVED_HOURS * per_hour).max(1.5 * largest).max(1.0)
    }

    /// The largest site that is swept. A sweep over several slots would cost visits and be incoherent.
    fn largest_sweep(&self, per_hour: f64) -> f64 {
        match self.config.saves_visits() {
            true => LONGEST_SWEEP_HOURS * per_hour,
            false => self.config.slot.as_hours_f64() * per_hour,
        }
    }

    /// The visits left in the budget's period; infinite for periods below a day, which are not a limit that a user
    /// set.
    pub(super) fn left_of_period(&self) -> f64 {
        let Some(budget) = self.config.budget.filter(|budget| budget.period >= Span::from_hours(24)) else {
            return f64::INFINITY;
        };
        let spent = if self.balance.spent.0 == self.period() { self.balance.spent.1 } else { 0 };
        budget.visits.ceil() - spent as f64 - self.promised_in(self.rest_of_period())
    }

    /// How far visits lag behind an even distribution over the budget's period, if that is a day or longer.
    pub(super) fn behind(&self, per_hour: f64) -> Option<f64> {
        let left = self.left_of_period();
        let rest = self.rest_of_period();
        let even = per_hour * rest.as_hours_f64() - self.promised_in(rest);
        left.is_finite().then_some(left - even)
    }

    /// Savings against their target: 0 on target, -1 twice the target, 1 nothing saved. In the last hours of a period
    /// the target is the even share of these hours, because leftover visits are then lost.
    pub(super) fn shortfall(&self, per_hour: f64) -> f64 {
        let half = 0.5 * self.most_saved(per_hour);
        match self.behind(per_hour) {
            Some(behind) => {
                let wanted = half.min(per_hour * self.rest_of_period().as_hours_f64()).max(1e-9);
                (-behind / wanted).clamp(-MOST_PLENTY, 1.0)
            }
            None => 1.0 - self.balance.saved.unwrap_or(half) / half,
        }
    }

    fn rest_of_period(&self) -> Span {
        let length = self.config.budget.map_or(1, |budget| budget.period.as_millis().max(1));
        let passed = self.slot.range.map_or(0, |(start, _)| start.as_millis().rem_euclid(length));
        Span::from_millis(length - passed)
    }

    fn period(&self) -> i64 {
        let length = self.config.budget.map_or(1, |budget| budget.period.as_millis().max(1));
        self.slot.range.map_or(0, |(start, _)| start.as_millis().div_euclid(length))
    }

    /// Sets the number of visits made in the current period of the budget before this scheduler was created.
    pub fn set_spent(&mut self, n_visits: u64, now: Timestamp) {
        let length = self.config.budget.map_or(1, |budget| budget.period.as_millis().max(1));
        self.balance.spent = (now.as_millis().div_euclid(length), n_visits);
    }

    /// Counts a visit that was handed out.
    pub(super) fn spend(&mut self) {
        let period = self.period();
        if self.balance.spent.0 != period {
            self.balance.spent = (period, 0);
        }
        self.balance.spent.1 += 1;
        self.balance.saved = self.balance.saved.map(|saved| saved - 1.0);
    }

    /// Takes back a visit that was handed out and not made.
    pub(super) fn refund(&mut self) {
        self.balance.spent.1 = self.balance.spent.1.saturating_sub(1);
        self.balance.saved = self.balance.saved.map(|saved| saved + 1.0);
    }

    /// Estimates the last sweep of each site after a restart: the median of when its pages were last seen.
    pub(super) fn estimate_last_sweeps(&mut self) {
        let mut seen: Vec<Vec<u32>> = vec![Vec::new(); self.sites.all.len()];
        for at in (0..self.pages.len()).filter(|&at| !self.pages.has(at, FRESH | VACANT | ABSENT)) {
            if let Some(seen) = seen.get_mut(self.pages.site[at] as usize) {
                seen.push(self.pages.seen_at[at]);
            }
        }
        for (site, mut seen) in self.sites.all.iter_mut().zip(seen).filter(|(site, _)| site.swept_at == 0) {
            let middle = seen.len() / 2;
            if middle < seen.len() {
                site.swept_at = *seen.select_nth_unstable(middle).1;
            }
        }
    }

    /// Updates the means, and increases the weight of Definition 5.13 if less of it is reached than by a fixed
    /// interval.
    fn update_balance(&mut self, hours: f64) {
        let balance = &mut self.balance;
        balance.found.pass(hours);
        balance.shares.pass(hours);
        let aim = self.totals.by_fixed_interval;
        if balance.shares.hours > 1.5 * FIRST_HOURS && aim > 0.0 {
            let own = MEMORY_HOURS * balance.shares.per_hour() / self.totals.weight.max(1e-9);
            let shortfall = ((AIM * aim - own) / aim).clamp(-0.5, 0.5);
            // The weight changes multiplicatively and slowly, over about three days, so it does not oscillate with
            // the hours of the day.
            let followed = balance.every_page * (shortfall * hours / 72.0).exp() as f32;
            balance.every_page = followed.clamp(*EVERY_PAGE.start(), *EVERY_PAGE.end());
        }
    }

    /// The prices of the slot; `None` while no page is worth a visit.
    fn shadow_prices(
        &mut self,
        granted: f64,
        per_hour: f64,
        hours: f64,
        histogram: &mut Histogram,
    ) -> Option<ShadowPrices> {
        let n_granted = (granted.ceil() as usize).max(1);
        let saves_visits = self.config.saves_visits();
        if self.balance.base <= 0.0 || !saves_visits {
            histogram.complete(&self.pages.urgency, n_granted);
            let best = select::largest(&self.pages.urgency, n_granted, histogram);
            let least = best.iter().map(|&at| self.pages.urgency[at as usize]).reduce(f32::min)?;
            let base = &mut self.balance.base;
            let weight = if *base > 0.0 { (hours / 72.0).min(1.0) as f32 } else { 1.0 };
            *base += weight * (least - *base);
        }
        let mut visit = self.balance.base;
        if saves_visits {
            let shortfall = self.shortfall(per_hour);
            let balance = &mut self.balance;
            let faded = balance.highest * (-hours / HIGHEST_HOURS).exp() as f32;
            balance.highest = faded.max(histogram.bound(n_granted));
            // The bound is unknown until as many pages as are granted have a gain.
            let most = if balance.highest > LEAST_GAIN { balance.highest } else { f32::INFINITY };
            // With savings above the target the price falls at once, and the base price drifts in the same direction.
            // Together they act like a proportional and an integral controller.
            visit = visit.min(most) * (0.25 * shortfall).exp() as f32;
            balance.base = (balance.base * (shortfall.max(-1.0) * hours / 24.0).exp() as f32).min(most);
        }
        Some(ShadowPrices {
            visit: visit.max(f32::MIN_POSITIVE),
            incoherent_hour: self.incoherent_hours(per_hour),
        })
    }

    /// By site: the cost per hour of an incoherent page of weight 1. An hour in which all pages of a site are
    /// incoherent costs the site's share of the hourly importance. For [`Goal::Balanced`] that is a geometric mean of
    /// the importance that appears and the importance that is captured.
    fn incoherent_hours(&self, per_hour: f64) -> Vec<f32> {
        let brings = self.totals.importance / f64::from(LONGEST_GAP_HOURS);
        let found =
            if self.balance.found.hours < FIRST_HOURS { brings } else { self.balance.found.per_hour() };
        let n_sites = self.sites.all.iter().filter(|site| site.n_pages > 0).count().max(1) as f64;
        let shadow_price = |site: &super::sites::SiteState| {
            let all = match site.goal {
                Goal::Balanced => brings.powf(1.0 - SHARE_OF_CAUGHT) * found.powf(SHARE_OF_CAUGHT),
                Goal::Coherent => brings,
                _ => return 0.0,
            };
            if site.n_pages == 0 || f64::from(site.n_pages) > self.largest_sweep(per_hour) {
                return 0.0;
            }
            (all / n_sites / f64::from(site.omega.max(1e-9))) as f32
        };
        self.sites.all.iter().map(shadow_price).collect()
    }

    /// Decides which sites are swept, and queues their pages.
    fn start_sweeps(&mut self, shadow_prices: &ShadowPrices, per_hour: f64, left: usize, end_secs: u32) {
        if !self.balance.sweep_queue.is_empty() {
            return;
        }
        let now_secs = self.slot.range.map_or(end_secs, |(start, _)| self.secs(start));
        let mut sweeps = self.possible_sweeps(shadow_prices, end_secs);
        sweeps.retain(|sweep| {
            let site = &self.sites.all[sweep.site];
            let is_due = now_secs.saturating_sub(site.swept_at) >= LONGEST_GAP_HOURS * 3600;
            is_due || sweep.gain >= SWEEP_MARGIN * shadow_prices.visit
        });
        sweeps.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.site.cmp(&b.site)));
        let mut left = left as f64;
        let most = MAX_HOURS_PER_SLOT * per_hour;
        let mut n_pages = 0.0;
        let mut is_taken = vec![0u32; self.sites.all.len()];
        let selection = self.selection(shadow_prices, end_secs);
        for sweep in sweeps {
            let n = f64::from(sweep.n_pages);
            // If the budget cannot pay for the best sweep, it saves for it.
            if n > left || (n_pages > 0.0 && n_pages + n > most) {
                break;
            }
            (left, n_pages) = (left - n, n_pages + n);
            is_taken[sweep.site] = sweep.n_pages;
            self.sites.all[sweep.site].record_sweep(now_secs);
        }
        if n_pages > 0.0 {
            let mut members = VecDeque::new();
            let n_pages_of = |site: u32| is_taken.get(site as usize).copied().unwrap_or(0);
            selection.for_each_of(
                &self.pages,
                |site| n_pages_of(site) > 0,
                |at| {
                    if self.can_sweep(at, end_secs) {
                        members.push_back((at as u32, n_pages_of(self.pages.site[at])));
                    }
                },
            );
            self.balance.sweep_queue = members;
        }
    }

    fn selection(&self, shadow_prices: &ShadowPrices, end_secs: u32) -> SweepSelection {
        let sites = shadow_prices.incoherent_hour.iter().zip(&self.sites.all);
        let sites = sites.map(|(hour, site)| SiteSweepCost { hour: *hour, gap_hours: site.gap_hours });
        let old = end_secs.saturating_sub(LONGEST_GAP_HOURS * 3600);
        SweepSelection { shadow_price: shadow_prices.visit, sites: sites.collect(), now: end_secs, old }
    }

    /// By site, how many pages a sweep would include now and their mean gain.
    fn possible_sweeps(&self, shadow_prices: &ShadowPrices, end_secs: u32) -> Vec<SiteSweep> {
        let mut sums = vec![(0u32, 0.0f32); self.sites.all.len()];
        let selection = self.selection(shadow_prices, end_secs);
        selection.for_each(&self.pages, |at| {
            if self.can_sweep(at, end_secs)
                && let Some(sum) = sums.get_mut(self.pages.site[at] as usize)
            {
                let gain = self.pages.urgency[at].max(0.0) + selection.overdue(&self.pages, at);
                *sum = (sum.0 + 1, sum.1 + gain);
            }
        });
        let sweep = |(site, (n_pages, gain)): (usize, (u32, f32))| SiteSweep {
            site,
            n_pages,
            gain: gain / n_pages.max(1) as f32,
        };
        sums.into_iter().enumerate().filter(|(_, sum)| sum.0 > 0).map(sweep).collect()
    }

    fn can_sweep(&self, at: usize, end_secs: u32) -> bool {
        !self.pages.has(at, FRESH | PENDING | VACANT | ABSENT | SKIPPED | PROMISED)
            && self.pages.not_before[at] <= end_secs
    }

    /// The next pages of the sweeps in progress.
    fn next_sweep_visits(
        &mut self,
        n: usize,
        histogram: &mut Histogram,
        end_secs: u32,
    ) -> Vec<(u32, Reason)> {
        let mut chosen = Vec::new();
        while chosen.len() < n {
            let Some((at, n_pages)) = self.balance.sweep_queue.pop_front() else { break };
            // The page may have been removed or chosen otherwise.
            if !self.can_sweep(at as usize, end_secs) || self.pages.urgency[at as usize] < 0.0 {
                continue;
            }
            self.pages.sweep_flags[at as usize] |= IN_SWEEP;
            let urgency = &mut self.pages.urgency[at as usize];
            histogram.remove(*urgency);
            *urgency = -*urgency;
            let reason = match self.reason(at as usize) {
                Reason::Urgent { since, .. } if n_pages > 1 => Reason::Sweep { n_pages, since },
                other => other,
            };
            chosen.push((at, reason));
        }
        chosen
    }

    /// Pages that are worth a single visit, including the cost of making them incoherent.
    fn choose_single(
        &mut self,
        shadow_prices: &ShadowPrices,
        left: usize,
        (granted, n_visits): (f64, usize),
        histogram: &mut Histogram,
        end_secs: u32,
    ) -> Vec<(u32, Reason)> {
        let saves_visits = self.config.saves_visits();
        let per_hour = self.config.budget.map_or(0.0, |budget| budget.visits_in(Span::from_hours(1)));
        let mut most = left;
        // If savings are nearly at their maximum the grant is spent, and without savings always.
        let mut fewest = if saves_visits { 0 } else { left };
        if saves_visits {
            let plenty = (-self.shortfall(per_hour)).max(1.0);
            most = most.min((2.0 * granted * plenty).ceil() as usize);
            if self.balance.saved.is_some_and(|saved| saved > 23.0 / 24.0 * self.most_saved(per_hour)) {
                fewest = (granted as usize).saturating_sub(n_visits).min(most);
            }
        }
        let mut worth = self.worth_alone(shadow_prices, histogram, end_secs);
        if worth.len() < fewest {
            let n_wanted = 4 * fewest + 16;
            histogram.complete(&self.pages.urgency, n_wanted);
            let best = select::largest(&self.pages.urgency, n_wanted, histogram);
            worth = best
                .into_iter()
                .map(|at| (self.net_gain(at as usize, shadow_prices, end_secs), at))
                .collect();
            most = most.min(fewest);
        }
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        worth.truncate(most);
        worth.into_iter().map(|(_, at)| (at, self.reason(at as usize))).collect()
    }

    fn worth_alone(
        &self,
        shadow_prices: &ShadowPrices,
        histogram: &Histogram,
        end_secs: u32,
    ) -> Vec<(f32, u32)> {
        let net = |at: u32| {
            let is_near = self.pages.urgency[at as usize] >= shadow_prices.visit;
            is_near.then(|| (self.net_gain(at as usize, shadow_prices, end_secs), at))
        };
        let is_worth = |(net, _): &(f32, u32)| *net >= shadow_prices.visit;
        match histogram.candidates_from(shadow_prices.visit) {
            Some(candidates) => candidates.iter().copied().filter_map(net).filter(is_worth).collect(),
            None => (0..self.pages.len() as u32).filter_map(net).filter(is_worth).collect(),
        }
    }

    /// The gain of a single visit, minus the cost of the incoherent hours that it is expected to cause.
    fn net_gain(&self, at: usize, shadow_prices: &ShadowPrices, end_secs: u32) -> f32 {
        let pages = &self.pages;
        let place = pages.site[at] as usize;
        let (Some(site), Some(&incoherent_hour)) =
            (self.sites.all.get(place), shadow_prices.incoherent_hour.get(place))
        else {
            return pages.urgency[at];
        };
        if incoherent_hour <= 0.0 || pages.has(at, ANNOUNCED) {
            return pages.urgency[at];
        }
        let age = end_secs.saturating_sub(pages.seen_at[at]) as f32 / 3600.0;
        let is_incoherent = pages.sweep_flags[at] & INCOHERENT != 0 && pages.seen_at[at] > site.swept_at;
        // A page that is already incoherent loses only the hours since its last visit. On average a query falls into
        // half of them.
        let hours = if is_incoherent { age.min(site.gap_hours) } else { site.gap_hours } / 2.0;
        pages.urgency[at]
            - incoherent_hour * self.page_omega(at) * one_minus_exp(pages.expected_changes[at]) * hours
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::page::importance::Importance;
    use crate::schedule::{Budget, PageInfo, ScheduleConfig, Visit, VisitOutcome};
    use crate::url::{PageId, SiteId};

    const DAY: Span = Span::from_hours(24);

    fn start() -> Timestamp {
        Timestamp::parse("2026-03-02").unwrap()
    }

    /// The visits to two sites of ten pages that change about every six hours.
    fn visits(of: Option<Goal>, budget: Budget, days: i64) -> Vec<(Timestamp, Visit)> {
        let config =
            ScheduleConfig { goal: Goal::Balanced, budget: Some(budget), ..ScheduleConfig::default() };
        let mut scheduler = Scheduler::new(config, 7, start());
        for page in 0..20 {
            let goal = of.filter(|_| page >= 10);
            scheduler.add_page(PageId(page), PageInfo { goal, ..PageInfo::for_site(SiteId(page / 10)) });
        }
        let (mut now, end, mut visits) = (start(), start() + Span::from_hours(24 * days), Vec::new());
        let mut seen: HashMap<PageId, i64> = HashMap::new();
        while now < end {
            while let Some(visit) = scheduler.next_visit(now) {
                let version = (now - start()).as_millis() / 3_600_000 + i64::from(visit.page.0);
                let before = seen.insert(visit.page, version / 6);
                let outcome = match before == Some(version / 6) {
                    true => VisitOutcome::Unchanged,
                    false => VisitOutcome::Changed(Importance::new(0.3)),
                };
                scheduler.record(visit.page, outcome, now);
                visits.push((now, visit));
            }
            now = scheduler.next_wakeup().unwrap().max(now + Span::from_millis(1));
        }
        visits
    }

    fn by<K: std::hash::Hash + Eq>(
        visits: &[(Timestamp, Visit)],
        key: impl Fn(Timestamp, &Visit) -> K,
    ) -> HashMap<K, usize> {
        let mut counts = HashMap::new();
        visits.iter().for_each(|(at, visit)| *counts.entry(key(*at, visit)).or_default() += 1);
        counts
    }

    fn hour(at: Timestamp) -> i64 {
        (at - start()).as_millis() / 3_600_000
    }

    #[test]
    fn sites_are_visited_as_a_whole() {
        let visits = visits(None, Budget { visits: 48.0, period: DAY }, 20);
        let late: Vec<_> = visits.into_iter().filter(|(at, _)| hour(*at) >= 24 * 7).collect();
        let hours = by(&late, |at, visit| (hour(at), visit.site));
        let n_whole: usize = hours.values().filter(|&&n| n >= 7).sum();
        assert!(n_whole * 2 > late.len(), "{n_whole} of {} visits", late.len());
        let is_sweep = |visit: &Visit| matches!(visit.reason, Reason::Sweep { .. });
        for (at, visit) in late.iter().filter(|(_, visit)| is_sweep(visit)) {
            let Reason::Sweep { n_pages, .. } = visit.reason else { continue };
            assert!(hours[&(hour(*at), visit.site)] >= n_pages as usize, "{n_pages} pages in one slot");
        }
    }

    #[test]
    fn the_budget_of_a_day_is_kept_and_used() {
        let budget = 30.0;
        let visits = visits(None, Budget { visits: budget, period: DAY }, 20);
        let days = by(&visits, |at, _| hour(at) / 24);
        assert!(days.values().all(|&n| n as f64 <= budget), "{days:?}");
        let mean = visits.len() as f64 / 20.0;
        assert!(mean > 0.9 * budget, "{mean} a day");
    }

    /// A day's savings end with the day (docs/decisions/0037-goals-and-sweeps.md). No day starts with visits of
    /// another day, and none ends with unused visits.
    #[test]
    fn every_day_spends_its_own_visits() {
        let visits = visits(None, Budget { visits: 48.0, period: DAY }, 21);
        let late: Vec<_> = visits.into_iter().filter(|(at, _)| hour(*at) >= 24 * 7).collect();
        let days = by(&late, |at, _| hour(at) / 24);
        assert!(days.len() == 14 && days.values().all(|&n| (44..=48).contains(&n)), "{days:?}");
        let halves = by(&late, |at, _| hour(at) % 24 / 12);
        assert!(halves.values().all(|&n| n * 4 > late.len()), "{halves:?}");
    }

    #[test]
    fn what_is_left_counts_more_the_sooner_it_ends() {
        let budget = Some(Budget { visits: 240.0, period: DAY });
        let config = ScheduleConfig { goal: Goal::Balanced, budget, ..ScheduleConfig::default() };
        let shortfall_at = |hour: i64, spent: u64| {
            let mut scheduler = Scheduler::new(config.clone(), 7, start());
            scheduler.add_page(PageId(0), PageInfo::for_site(SiteId(0)));
            let now = start() + Span::from_hours(hour);
            scheduler.set_spent(spent, now);
            scheduler.slot.range = Some((now, now + Span::from_hours(1)));
            scheduler.shortfall(10.0)
        };
        assert_eq!([shortfall_at(0, 0), shortfall_at(12, 120), shortfall_at(23, 230)], [0.0; 3]);
        // Ten visits behind: at noon that is a twelfth of the target, an hour before midnight all of it.
        assert!((shortfall_at(12, 110) + 1.0 / 12.0).abs() < 1e-9);
        assert!((shortfall_at(23, 220) + 1.0).abs() < 1e-9);
        assert_eq!([shortfall_at(23, 240), shortfall_at(23, 0)], [1.0, -MOST_PLENTY]);
    }

    #[test]
    fn what_was_spent_before_a_restart_is_not_granted_again() {
        let budget = Some(Budget { visits: 24.0, period: DAY });
        let config = ScheduleConfig { goal: Goal::Balanced, budget, ..ScheduleConfig::default() };
        let mut scheduler = Scheduler::new(config, 7, start());
        (0..40).for_each(|page| scheduler.add_page(PageId(page), PageInfo::for_site(SiteId(0))));
        scheduler.set_spent(22, start());
        let (mut now, mut n_visits) = (start(), 0);
        while now < start() + DAY {
            while let Some(visit) = scheduler.next_visit(now) {
                scheduler.record(visit.page, VisitOutcome::Unchanged, now);
                n_visits += 1;
            }
            now = scheduler.next_wakeup().unwrap().max(now + Span::from_millis(1));
        }
        assert_eq!(n_visits, 2);
    }

    #[test]
    fn a_site_with_another_goal_is_not_swept() {
        let visits = visits(Some(Goal::Importance), Budget { visits: 48.0, period: DAY }, 14);
        let is_sweep = |visit: &Visit| matches!(visit.reason, Reason::Sweep { .. });
        let sweeps = by(&visits, |_, visit| (visit.site, is_sweep(visit)));
        assert!(sweeps[&(SiteId(0), true)] > 0 && !sweeps.contains_key(&(SiteId(1), true)), "{sweeps:?}");
    }

    #[test]
    fn by_the_hour_every_hour_keeps_to_its_budget() {
        let is_sweep = |(_, visit): &(Timestamp, Visit)| matches!(visit.reason, Reason::Sweep { .. });
        // A budget of two visits cannot sweep a site of ten pages; a budget of ten can.
        for (budget, has_sweeps) in [(2, false), (10, true)] {
            let visits = visits(None, Budget::per_hour(budget as f64), 14);
            assert!(by(&visits, |at, _| hour(at)).values().all(|&n| n <= budget));
            assert!(visits.len() + 10 >= 24 * 14 * budget.min(10), "{} visits", visits.len());
            assert_eq!(visits.iter().any(is_sweep), has_sweeps);
        }
    }
}
