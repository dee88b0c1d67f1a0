//! A slot's budget -> visits that serve all measures at once: pictures of whole sites, and single visits between them
//! (P-QUALITY 5 and 6; docs/decisions/0037-goals-and-sweeps.md).
//!
//! Coherence asks whether the archived versions of a site's pages existed together. If all pages are visited within one slot they
//! did. A single visit between two pictures that finds a change tears the page out of them: for about half of the time between
//! two pictures the version nearest to a query is then another one than its neighbours'. The first such visit costs most, each
//! further one adds little. So a single visit is charged for the hours that it is expected to tear, at a price that follows
//! from what the archive earns. A few busy pages end up torn for good and are visited often; the others are visited with their site.
//!
//! Visits have one price, which follows what is saved. A site is visited as a whole when its pages are worth the price in the mean.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::pages::{ABSENT, ANNOUNCED, CHANGED, FRESH, PENDING, POSING, SKIPPED, TORN, VACANT};
use super::posing::{Posing, TornSite};
use super::select::{self, Histogram};
use super::{Goal, Reason, Scheduler, Strategy};
use crate::pattern::mixture::one_minus_exp;
use crate::time::{Span, Timestamp};

/// A picture is taken when its pages are worth this much more than the price.
const WORTH_A_PICTURE: f32 = 1.05;
/// A picture is taken at least this often, and a page that was not seen for so long is part of it.
const LONGEST_GAP_HOURS: u32 = 168;
/// Hours of the budget that the pictures of one slot may take, if the first of them takes no more.
const MOST_HOURS_A_SLOT: f64 = 8.0;
/// Hours of the budget that can be saved.
const SAVED_HOURS: f64 = 24.0;
/// A site of which a picture takes more hours of the budget than this is not visited as a whole; without savings it has to fit into
/// one slot.
const LONGEST_PICTURE_HOURS: f64 = 84.0;
/// Hours after which a mean over time has forgotten 63 % of what it knew.
const MEMORY_HOURS: f64 = 168.0;
/// Hours before the means over time are believed.
const FIRST_HOURS: f64 = 48.0;
/// Hours in which the highest gain fades to 1/e: pictures, before which gains are highest, may be days apart.
const HIGHEST_HOURS: f64 = 504.0;
/// Savings beyond what is wanted count as so many times as much, at most.
const MOST_PLENTY: f64 = 8.0;
/// Gains below this are none.
const LEAST_GAIN: f32 = 1e-30;
/// How much Definition 5.13 weighs at first, and within which bounds it follows what is reached.
const FIRST_EVERY_PAGE: f32 = 1.2;
const EVERY_PAGE: std::ops::RangeInclusive<f32> = 0.1..=2.0;
/// The share of what a fixed interval would reach by Definition 5.13 that is aimed for.
const AIM: f64 = 0.97;
/// How much what is caught counts in the price of a torn hour, against all there is to catch. With nothing caught a picture is all
/// the more worth having, but where little is caught every visit that goes into pictures is missed elsewhere.
const SHARE_OF_CAUGHT: f64 = 0.6;

/// A mean over time of what comes in pieces.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct MeanOverTime {
    mean: f64,
    hours: f64,
    piece: f64,
}

impl MeanOverTime {
    fn pass(&mut self, hours: f64) {
        let left = (-hours / MEMORY_HOURS).exp();
        self.mean = self.mean * left + self.piece * (1.0 - left) / hours.max(1e-6);
        self.hours += hours;
        self.piece = 0.0;
    }

    /// Whether the numbers are those of a mean.
    pub(super) fn is_sound(&self) -> bool {
        [self.mean, self.hours, self.piece].iter().all(|number| number.is_finite() && *number >= 0.0)
    }

    /// What comes in an hour.
    fn an_hour(&self) -> f64 {
        self.mean / (1.0 - (-self.hours / MEMORY_HOURS).exp()).max(1e-9)
    }
}

/// What holds the measures in balance.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    /// B: how much Definition 5.13 weighs against pooled completeness.
    pub every_page: f32,
    /// Visits that were granted and not made. Where the budget is one of a day, which is kept in any case, it is how far the visits of
    /// the day are behind even ones, and half of what can be saved.
    saved: Option<f64>,
    /// The price of a visit before savings are considered; 0 while it is not known.
    pub base: f32,
    /// The highest gain that as many pages as are granted have had in a slot, fading over weeks. No visit is dearer: where all
    /// pages gain alike, the price would else rise above them all.
    pub highest: f32,
    /// The importance that visits find, weighted by omega(P).
    pub found: MeanOverTime,
    /// What visits add to Definition 5.13.
    pub shares: MeanOverTime,
    /// Pages of pictures that the budget has not yet allowed.
    posing: VecDeque<(u32, u32)>,
    /// Visits handed out in the period of the budget, and the number of that period.
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
            posing: VecDeque::new(),
            spent: (0, 0),
        }
    }
}

/// A site that is worth a picture.
struct Picture {
    site: usize,
    n_pages: u32,
    gain: f32,
}

/// Prices of one slot.
struct Prices {
    /// What a visit has to be worth.
    visit: f32,
    /// By site: what it costs an hour that a page of weight 1 is torn; 0 where no pictures are taken.
    torn_hour: Vec<f32>,
}

impl Scheduler {
    /// Whether pictures of sites are taken.
    pub(super) fn takes_pictures(&self) -> bool {
        self.config.strategy == Strategy::ExpectedGain && self.sites.any_pictures()
    }

    /// Notes what a visit has found before the page's state is made anew. What it earns is counted as it was expected, because
    /// it is compared with what is expected of other ways to visit the pages.
    pub(super) fn note_found(&mut self, at: usize, is_changed: bool) {
        let before = self.pages.picture[at];
        let site = self.sites.all.get(self.pages.site[at] as usize);
        let was_pictured = site.is_some_and(|site| site.pictured_at >= self.pages.seen_at[at]);
        let mut after = before & CHANGED;
        if before & POSING == 0 {
            after |= if was_pictured { 0 } else { before & TORN };
            after |= if is_changed { TORN } else { 0 };
        }
        if is_changed {
            after |= CHANGED;
        }
        self.balance.found.piece += f64::from(self.pages.weight[at] * self.pages.reward[at]);
        self.balance.shares.piece += self.share_of_week(at);
        self.pages.picture[at] = after;
    }

    /// The visits of a slot.
    pub(super) fn choose_balanced(
        &mut self,
        granted: f64,
        histogram: &mut Histogram,
        end_secs: u32,
    ) -> Vec<(u32, Reason)> {
        let an_hour = self.config.budget.map_or(0.0, |budget| budget.visits_in(Span::from_hours(1)));
        let hours = granted / an_hour.max(1e-9);
        self.keep_balance(hours);
        let mut left = self.allowed(granted, an_hour);
        let most = left;
        let mut probes = self.choose_probes(granted, left);
        probes.extend(self.probe_directories(granted, left - probes.len()));
        left -= probes.len();
        let n_new = (self.credit.floor() as usize).min(left);
        let mut chosen = self.choose_new(n_new);
        let mut waiting = chosen.split_off(chosen.len().min((0.8 * n_new as f64).ceil() as usize));
        left -= chosen.len();
        let floor = self.floor_of(left, granted).min(left);
        let mut longest_wait = self.longest_wait_secs(granted);
        if self.config.floor.is_none() {
            // Pages are part of a picture before they are old; the floor is for sites of which none can be taken.
            longest_wait = longest_wait.max(1.2 * 3600.0 * f64::from(LONGEST_GAP_HOURS));
        }
        let oldest = self.choose_oldest(floor, longest_wait, histogram);
        left -= oldest.len();
        chosen.extend(oldest);
        if let Some(prices) = self.prices(granted, an_hour, hours, histogram) {
            self.take_pictures(&prices, an_hour, left, end_secs);
            let posing = self.next_posing(left, histogram, end_secs);
            left -= posing.len();
            chosen.extend(posing);
            let n_visits = chosen.len() + probes.len();
            let single = self.choose_single(&prices, left, (granted, n_visits), histogram, end_secs);
            chosen.extend(single);
            self.note_slot_price(prices.visit);
            let bound = if self.config.varies() { prices.visit } else { histogram.bound_of(4 * most + 64) };
            self.last_bounds = [0.9 * bound; 2];
        }
        waiting.truncate((self.credit.floor() as usize).saturating_sub(chosen.len() + probes.len()));
        chosen.append(&mut waiting);
        chosen.extend(probes);
        // What is announced in the slot may use what is saved.
        let more = (2.0 * granted).ceil() as usize;
        self.slot.capacity = if self.config.varies() { most.min(chosen.len() + more) } else { most };
        chosen
    }

    /// How many visits the slot may have.
    fn allowed(&mut self, granted: f64, an_hour: f64) -> usize {
        if !self.config.varies() {
            return (self.credit.floor() as usize).min(self.pages.len());
        }
        let (most, left) = (self.most_saved(an_hour), self.left_of_period());
        let saved = match self.behind(an_hour) {
            // What a day has saved ends with it: visits that the day before did not make cannot be made in addition to this
            // day's, or they would be missing in its evening. Half of the most is neither saved nor borrowed.
            Some(behind) => 0.5 * most + behind,
            // Where no day limits the visits, only what was granted is spent.
            None => self.balance.saved.unwrap_or(0.0) + granted,
        };
        let saved = saved.clamp(0.0, most);
        self.balance.saved = Some(saved);
        (saved.min(left).floor().max(0.0) as usize).min(self.pages.len())
    }

    /// Visits that can be saved: those of a day, and those for a picture of the largest site.
    fn most_saved(&self, an_hour: f64) -> f64 {
        let is_meant = |n_pages: &f64| *n_pages <= self.largest_picture(an_hour);
        let pages = self.sites.all.iter().filter(|site| site.goal.takes_pictures());
        let largest = pages.map(|site| f64::from(site.n_pages)).filter(is_meant).fold(0.0, f64::max);
        (SAVED_HOURS * an_hour).max(1.5 * largest).max(1.0)
    }

    /// The most pages of a site that is visited as a whole. A picture that takes several slots is none: it costs visits and tears.
    fn largest_picture(&self, an_hour: f64) -> f64 {
        match self.config.varies() {
            true => LONGEST_PICTURE_HOURS * an_hour,
            false => self.config.slot.as_hours_f64() * an_hour,
        }
    }

    /// The visits that the period of the budget has left, where it is a day or longer: a limit that somebody has set.
    pub(super) fn left_of_period(&self) -> f64 {
        let Some(budget) = self.config.budget.filter(|budget| budget.period >= Span::from_hours(24)) else {
            return f64::INFINITY;
        };
        let spent = if self.balance.spent.0 == self.period() { self.balance.spent.1 } else { 0 };
        budget.visits.ceil() - spent as f64
    }

    /// How far the visits of the budget's period are behind even ones, where it is a day or longer.
    pub(super) fn behind(&self, an_hour: f64) -> Option<f64> {
        let left = self.left_of_period();
        left.is_finite().then(|| left - an_hour * self.hours_left_of_period())
    }

    /// Savings in the measure of what they are for: 0 is as much as is wanted, -1 twice as much, 1 nothing. In the last hours of a
    /// period what is left is compared with the even visits of these hours, since afterwards it is worth nothing.
    pub(super) fn lack(&self, an_hour: f64) -> f64 {
        let half = 0.5 * self.most_saved(an_hour);
        match self.behind(an_hour) {
            Some(behind) => {
                let wanted = half.min(an_hour * self.hours_left_of_period()).max(1e-9);
                (-behind / wanted).clamp(-MOST_PLENTY, 1.0)
            }
            None => 1.0 - self.balance.saved.unwrap_or(half) / half,
        }
    }

    /// Hours from the start of the slot to the end of the budget's period.
    fn hours_left_of_period(&self) -> f64 {
        let length = self.config.budget.map_or(1, |budget| budget.period.as_millis().max(1));
        let passed = self.slot.range.map_or(0, |(start, _)| start.as_millis().rem_euclid(length));
        Span::from_millis(length - passed).as_hours_f64()
    }

    fn period(&self) -> i64 {
        let length = self.config.budget.map_or(1, |budget| budget.period.as_millis().max(1));
        self.slot.range.map_or(0, |(start, _)| start.as_millis().div_euclid(length))
    }

    /// Tells how many visits were made in the current period of the budget before this scheduler began.
    pub fn set_spent(&mut self, n_visits: u64, now: Timestamp) {
        let length = self.config.budget.map_or(1, |budget| budget.period.as_millis().max(1));
        self.balance.spent = (now.as_millis().div_euclid(length), n_visits);
    }

    /// Books a visit that was handed out.
    pub(super) fn spend(&mut self) {
        let period = self.period();
        if self.balance.spent.0 != period {
            self.balance.spent = (period, 0);
        }
        self.balance.spent.1 += 1;
        self.balance.saved = self.balance.saved.map(|saved| saved - 1.0);
    }

    /// Takes back a visit that was handed out and not made.
    pub(super) fn take_back(&mut self) {
        self.balance.spent.1 = self.balance.spent.1.saturating_sub(1);
        self.balance.saved = self.balance.saved.map(|saved| saved + 1.0);
    }

    /// After a restart it is not known when pictures were taken. A site's last one is taken to be when half of its pages had been seen.
    pub(super) fn recall_pictures(&mut self) {
        let mut seen: Vec<Vec<u32>> = vec![Vec::new(); self.sites.all.len()];
        for at in (0..self.pages.len()).filter(|&at| !self.pages.has(at, FRESH | VACANT | ABSENT)) {
            if let Some(seen) = seen.get_mut(self.pages.site[at] as usize) {
                seen.push(self.pages.seen_at[at]);
            }
        }
        for (site, mut seen) in self.sites.all.iter_mut().zip(seen).filter(|(site, _)| site.pictured_at == 0)
        {
            let middle = seen.len() / 2;
            if middle < seen.len() {
                site.pictured_at = *seen.select_nth_unstable(middle).1;
            }
        }
    }

    /// Follows what visits find, and lets Definition 5.13 weigh more where less of it is reached than a fixed interval would.
    fn keep_balance(&mut self, hours: f64) {
        let balance = &mut self.balance;
        balance.found.pass(hours);
        balance.shares.pass(hours);
        let aim = self.totals.by_fixed_interval;
        if balance.shares.hours > 1.5 * FIRST_HOURS && aim > 0.0 {
            let own = MEMORY_HOURS * balance.shares.an_hour() / self.totals.weight.max(1e-9);
            let lack = ((AIM * aim - own) / aim).clamp(-0.5, 0.5);
            let followed = balance.every_page * (lack * hours / 72.0).exp() as f32;
            balance.every_page = followed.clamp(*EVERY_PAGE.start(), *EVERY_PAGE.end());
        }
    }

    /// The prices of the slot; none while nothing is worth a visit.
    fn prices(
        &mut self,
        granted: f64,
        an_hour: f64,
        hours: f64,
        histogram: &mut Histogram,
    ) -> Option<Prices> {
        let n_granted = (granted.ceil() as usize).max(1);
        let varies = self.config.varies();
        if self.balance.base <= 0.0 || !varies {
            histogram.complete(&self.pages.urgency, n_granted);
            let best = select::largest(&self.pages.urgency, n_granted, histogram);
            let least = best.iter().map(|&at| self.pages.urgency[at as usize]).reduce(f32::min)?;
            let base = &mut self.balance.base;
            let weight = if *base > 0.0 { (hours / 72.0).min(1.0) as f32 } else { 1.0 };
            *base += weight * (least - *base);
        }
        let mut visit = self.balance.base;
        if varies {
            let lack = self.lack(an_hour);
            let balance = &mut self.balance;
            let faded = balance.highest * (-hours / HIGHEST_HOURS).exp() as f32;
            balance.highest = faded.max(histogram.bound_of(n_granted));
            // Until as many pages as are granted have gained anything, nothing is known.
            let most = if balance.highest > LEAST_GAIN { balance.highest } else { f32::INFINITY };
            visit = visit.min(most) * (0.25 * lack).exp() as f32;
            balance.base = (balance.base * (lack.max(-1.0) * hours / 24.0).exp() as f32).min(most);
        }
        Some(Prices { visit: visit.max(f32::MIN_POSITIVE), torn_hour: self.torn_hours(an_hour) })
    }

    /// By site: what it costs an hour that a page of weight 1 is torn. One hour in which all pages of a site are torn costs that
    /// site's share of what an hour brings. For a balance that is a
    /// geometric mean of what it brings and of what is caught of it.
    fn torn_hours(&self, an_hour: f64) -> Vec<f32> {
        let brings = self.totals.importance / f64::from(LONGEST_GAP_HOURS);
        let found =
            if self.balance.found.hours < FIRST_HOURS { brings } else { self.balance.found.an_hour() };
        let n_sites = self.sites.all.iter().filter(|site| site.n_pages > 0).count().max(1) as f64;
        let price = |site: &super::sites::SiteState| {
            let all = match site.goal {
                Goal::Balanced => brings.powf(1.0 - SHARE_OF_CAUGHT) * found.powf(SHARE_OF_CAUGHT),
                Goal::Coherent => brings,
                _ => return 0.0,
            };
            if site.n_pages == 0 || f64::from(site.n_pages) > self.largest_picture(an_hour) {
                return 0.0;
            }
            (all / n_sites / f64::from(site.omega.max(1e-9))) as f32
        };
        self.sites.all.iter().map(price).collect()
    }

    /// Decides of which sites a picture is taken, and queues their pages.
    fn take_pictures(&mut self, prices: &Prices, an_hour: f64, left: usize, end_secs: u32) {
        if !self.balance.posing.is_empty() {
            return;
        }
        let now_secs = self.slot.range.map_or(end_secs, |(start, _)| self.secs(start));
        let mut pictures = self.possible_pictures(prices, end_secs);
        pictures.retain(|picture| {
            let site = &self.sites.all[picture.site];
            let is_due = now_secs.saturating_sub(site.pictured_at) >= LONGEST_GAP_HOURS * 3600;
            is_due || picture.gain >= WORTH_A_PICTURE * prices.visit
        });
        pictures.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.site.cmp(&b.site)));
        let mut left = left as f64;
        let most = MOST_HOURS_A_SLOT * an_hour;
        let mut n_pages = 0.0;
        let mut is_taken = vec![0u32; self.sites.all.len()];
        let posing = self.posing(prices, end_secs);
        for picture in pictures {
            let n = f64::from(picture.n_pages);
            // If the best picture cannot be paid, it is saved for.
            if n > left || (n_pages > 0.0 && n_pages + n > most) {
                break;
            }
            (left, n_pages) = (left - n, n_pages + n);
            is_taken[picture.site] = picture.n_pages;
            self.sites.all[picture.site].picture(now_secs);
        }
        if n_pages > 0.0 {
            let mut members = VecDeque::new();
            let n_pages_of = |site: u32| is_taken.get(site as usize).copied().unwrap_or(0);
            posing.for_each_of(
                &self.pages,
                |site| n_pages_of(site) > 0,
                |at| {
                    if self.can_pose(at, end_secs) {
                        members.push_back((at as u32, n_pages_of(self.pages.site[at])));
                    }
                },
            );
            self.balance.posing = members;
        }
    }

    fn posing(&self, prices: &Prices, end_secs: u32) -> Posing {
        let sites = prices.torn_hour.iter().zip(&self.sites.all);
        let sites = sites.map(|(hour, site)| TornSite { hour: *hour, gap_hours: site.gap_hours });
        let old = end_secs.saturating_sub(LONGEST_GAP_HOURS * 3600);
        Posing { price: prices.visit, sites: sites.collect(), now: end_secs, old }
    }

    /// By site, how many pages would be part of a picture now and what they gain in the mean.
    fn possible_pictures(&self, prices: &Prices, end_secs: u32) -> Vec<Picture> {
        let mut sums = vec![(0u32, 0.0f32); self.sites.all.len()];
        let posing = self.posing(prices, end_secs);
        posing.for_each(&self.pages, |at| {
            if self.can_pose(at, end_secs)
                && let Some(sum) = sums.get_mut(self.pages.site[at] as usize)
            {
                let gain = self.pages.urgency[at].max(0.0) + posing.overdue(&self.pages, at);
                *sum = (sum.0 + 1, sum.1 + gain);
            }
        });
        let picture = |(site, (n_pages, gain)): (usize, (u32, f32))| Picture {
            site,
            n_pages,
            gain: gain / n_pages.max(1) as f32,
        };
        sums.into_iter().enumerate().filter(|(_, sum)| sum.0 > 0).map(picture).collect()
    }

    fn can_pose(&self, at: usize, end_secs: u32) -> bool {
        !self.pages.has(at, FRESH | PENDING | VACANT | ABSENT | SKIPPED)
            && self.pages.not_before[at] <= end_secs
    }

    /// The next pages of pictures that were begun.
    fn next_posing(&mut self, n: usize, histogram: &mut Histogram, end_secs: u32) -> Vec<(u32, Reason)> {
        let mut chosen = Vec::new();
        while chosen.len() < n {
            let Some((at, n_pages)) = self.balance.posing.pop_front() else { break };
            // Meanwhile the page may have gone or been chosen otherwise.
            if !self.can_pose(at as usize, end_secs) || self.pages.urgency[at as usize] < 0.0 {
                continue;
            }
            self.pages.picture[at as usize] |= POSING;
            let urgency = &mut self.pages.urgency[at as usize];
            histogram.remove(*urgency);
            *urgency = -*urgency;
            let reason = match self.reason_of(at as usize) {
                Reason::Urgent { since, .. } if n_pages > 1 => Reason::Picture { n_pages, since },
                other => other,
            };
            chosen.push((at, reason));
        }
        chosen
    }

    /// Pages that are worth a visit of their own, with what it costs that they are torn from the picture of their site.
    fn choose_single(
        &mut self,
        prices: &Prices,
        left: usize,
        (granted, n_visits): (f64, usize),
        histogram: &mut Histogram,
        end_secs: u32,
    ) -> Vec<(u32, Reason)> {
        let varies = self.config.varies();
        let an_hour = self.config.budget.map_or(0.0, |budget| budget.visits_in(Span::from_hours(1)));
        let mut most = left;
        // With hardly any room for more savings the grant is spent, and without savings always.
        let mut fewest = if varies { 0 } else { left };
        if varies {
            let plenty = (-self.lack(an_hour)).max(1.0);
            most = most.min((2.0 * granted * plenty).ceil() as usize);
            if self.balance.saved.is_some_and(|saved| saved > 23.0 / 24.0 * self.most_saved(an_hour)) {
                fewest = (granted as usize).saturating_sub(n_visits).min(most);
            }
        }
        let mut worth = self.worth_alone(prices, histogram, end_secs);
        if worth.len() < fewest {
            let n_wanted = 4 * fewest + 16;
            histogram.complete(&self.pages.urgency, n_wanted);
            let best = select::largest(&self.pages.urgency, n_wanted, histogram);
            worth = best.into_iter().map(|at| (self.net_gain(at as usize, prices, end_secs), at)).collect();
            most = most.min(fewest);
        }
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        worth.truncate(most);
        worth.into_iter().map(|(_, at)| (at, self.reason_of(at as usize))).collect()
    }

    fn worth_alone(&self, prices: &Prices, histogram: &Histogram, end_secs: u32) -> Vec<(f32, u32)> {
        let net = |at: u32| {
            let is_near = self.pages.urgency[at as usize] >= prices.visit;
            is_near.then(|| (self.net_gain(at as usize, prices, end_secs), at))
        };
        let is_worth = |(net, _): &(f32, u32)| *net >= prices.visit;
        match histogram.candidates_from(prices.visit) {
            Some(candidates) => candidates.iter().copied().filter_map(net).filter(is_worth).collect(),
            None => (0..self.pages.len() as u32).filter_map(net).filter(is_worth).collect(),
        }
    }

    /// The gain of a single visit less what the hours cost that it is expected to tear.
    fn net_gain(&self, at: usize, prices: &Prices, end_secs: u32) -> f32 {
        let pages = &self.pages;
        let place = pages.site[at] as usize;
        let (Some(site), Some(&torn_hour)) = (self.sites.all.get(place), prices.torn_hour.get(place)) else {
            return pages.urgency[at];
        };
        if torn_hour <= 0.0 || pages.has(at, ANNOUNCED) {
            return pages.urgency[at];
        }
        let age = end_secs.saturating_sub(pages.seen_at[at]) as f32 / 3600.0;
        let is_torn = pages.picture[at] & TORN != 0 && pages.seen_at[at] > site.pictured_at;
        let hours = if is_torn { age.min(site.gap_hours) } else { site.gap_hours } / 2.0;
        pages.urgency[at] - torn_hour * self.omega_of(at) * one_minus_exp(pages.load[at]) * hours
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

    /// Two sites of ten pages that change about once in six hours, and what was visited of them in some days.
    fn visits(of: Option<Goal>, budget: Budget, days: i64) -> Vec<(Timestamp, Visit)> {
        let config =
            ScheduleConfig { goal: Goal::Balanced, budget: Some(budget), ..ScheduleConfig::default() };
        let mut scheduler = Scheduler::new(config, 7, start());
        for page in 0..20 {
            let goal = of.filter(|_| page >= 10);
            scheduler.add_page(PageId(page), PageInfo { goal, ..PageInfo::of_site(SiteId(page / 10)) });
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
        let is_picture = |visit: &Visit| matches!(visit.reason, Reason::Picture { .. });
        for (at, visit) in late.iter().filter(|(_, visit)| is_picture(visit)) {
            let Reason::Picture { n_pages, .. } = visit.reason else { continue };
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

    /// What a day has saved ends with it (docs/decisions/0037-goals-and-sweeps.md): no day begins with the visits of
    /// another one, and none ends with visits that nobody made.
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
        let lack_at = |hour: i64, spent: u64| {
            let mut scheduler = Scheduler::new(config.clone(), 7, start());
            scheduler.add_page(PageId(0), PageInfo::of_site(SiteId(0)));
            let now = start() + Span::from_hours(hour);
            scheduler.set_spent(spent, now);
            scheduler.slot.range = Some((now, now + Span::from_hours(1)));
            scheduler.lack(10.0)
        };
        assert_eq!([lack_at(0, 0), lack_at(12, 120), lack_at(23, 230)], [0.0; 3]);
        // Ten visits too few: at noon a twelfth of what is wanted, an hour before midnight as much as is wanted.
        assert!((lack_at(12, 110) + 1.0 / 12.0).abs() < 1e-9);
        assert!((lack_at(23, 220) + 1.0).abs() < 1e-9);
        assert_eq!([lack_at(23, 240), lack_at(23, 0)], [1.0, -MOST_PLENTY]);
    }

    #[test]
    fn what_was_spent_before_a_restart_is_not_granted_again() {
        let budget = Some(Budget { visits: 24.0, period: DAY });
        let config = ScheduleConfig { goal: Goal::Balanced, budget, ..ScheduleConfig::default() };
        let mut scheduler = Scheduler::new(config, 7, start());
        (0..40).for_each(|page| scheduler.add_page(PageId(page), PageInfo::of_site(SiteId(0))));
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
    fn a_site_of_another_goal_has_no_pictures() {
        let visits = visits(Some(Goal::Importance), Budget { visits: 48.0, period: DAY }, 14);
        let is_picture = |visit: &Visit| matches!(visit.reason, Reason::Picture { .. });
        let pictures = by(&visits, |_, visit| (visit.site, is_picture(visit)));
        assert!(
            pictures[&(SiteId(0), true)] > 0 && !pictures.contains_key(&(SiteId(1), true)),
            "{pictures:?}"
        );
    }

    #[test]
    fn by_the_hour_every_hour_keeps_to_its_budget() {
        let is_picture = |(_, visit): &(Timestamp, Visit)| matches!(visit.reason, Reason::Picture { .. });
        // Two pages make no picture of a site of ten, ten do.
        for (budget, has_pictures) in [(2, false), (10, true)] {
            let visits = visits(None, Budget::per_hour(budget as f64), 14);
            assert!(by(&visits, |at, _| hour(at)).values().all(|&n| n <= budget));
            assert!(visits.len() + 10 >= 24 * 14 * budget.min(10), "{} visits", visits.len());
            assert_eq!(visits.iter().any(is_picture), has_pictures);
        }
    }
}
