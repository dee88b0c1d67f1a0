//! Savings and results -> the shadow price of a visit, and the cost of an incoherent hour, so that sweeps and single
//! visits serve all measures at once
//! (P-QUALITY 5 and 6; docs/decisions/0037-goals-and-sweeps.md).
//!
//! Coherence measures whether the archived versions of a site's pages existed together. After a sweep, which visits
//! all pages within minutes, they did. A single visit between two sweeps that finds a change makes the page
//! incoherent. For about half of the time between the sweeps, the version nearest to a query then differs from that
//! of its neighbours. The first such visit costs most; each further one adds little.
//!
//! So a single visit is charged for the hours of incoherence that it is expected to cause, at a price that follows
//! from what the archive earns. A few busy pages end up incoherent for good and are visited often. The others are
//! visited with their site. All visits have one shadow price, which follows the savings. A site is swept when the
//! mean gain of its pages reaches the price.

use serde::{Deserialize, Serialize};

use super::ladder::LEAST_GAIN;
use super::pages::{ABSENT, CHANGED, FRESH, IN_SWEEP, INCOHERENT, VACANT};
use super::sites::SiteState;
use super::{Goal, Scheduler, Strategy};

/// A site is swept at least this often, and a sweep includes every page that was last seen before that.
pub(super) const LONGEST_GAP_HOURS: u32 = 168;
/// Hours of the budget that can be saved. A day, so that nights pay for mornings, and a mistake about what is worth saving
/// for costs a day at most.
const SAVED_HOURS: f64 = 24.0;
/// Savings above this share of the maximum are spent at any price. What exceeds the maximum would be lost, and an hour's
/// visits are left as room.
const NEARLY_ALL: f64 = 23.0 / 24.0;
/// A site whose sweep takes more hours of the budget than this is not swept. Half a week, because a sweep a week should
/// leave half of the visits to others. Without savings a sweep has to fit into
/// the budget's period.
const LONGEST_SWEEP_HOURS: f64 = 84.0;
/// Hours after which a mean over time has forgotten 63 % of its input. A week, so that weekends count.
const MEMORY_HOURS: f64 = 168.0;
/// Hours before a mean over time is used. After two days it has met each hour of the day twice.
const FIRST_HOURS: f64 = 48.0;
/// Hours in which the highest gain fades to 1/e. Gains are highest just before a sweep, and sweeps may be days apart.
const HIGHEST_HOURS: f64 = 504.0;
/// The most by which savings beyond the target count. The price then falls to e^-2, which is enough to spend a day's rest in
/// its last hours, and not so much that worthless visits are made.
const MOST_PLENTY: f64 = 8.0;
/// The initial weight of Definition 5.13. It follows the results, so the bounds only keep the numbers sane.
const FIRST_EVERY_PAGE: f32 = 1.2;
const EVERY_PAGE: std::ops::RangeInclusive<f32> = 0.1..=16.0;
/// The aim: a share of what a fixed interval would reach by Definition 5.13. The goal weighs all measures, so it need not
/// be reached in full (docs/decisions/0037-goals-and-sweeps.md).
const AIM: f64 = 0.97;
/// The exponent of captured importance, against all importance, in the price of an incoherent hour. It lowers the price
/// if little is captured, because each visit of a sweep is then missed elsewhere. Chosen on news fronts: .3 is more
/// coherent (.05 at 10 % of the pages an hour) and catches less (.01).
const SHARE_OF_CAUGHT: f64 = 0.6;
/// Pages that gain at least this share of the shadow price are on the ladder. The price moves by less within hours, so the
/// ladder seldom has to reach further down, and few pages climb in vain.
const LEAST_SHARE: f32 = 0.5;
/// The ladder reaches further down when the price has fallen by this factor, because all pages are then placed again. It is
/// above [`LEAST_SHARE`], so no page that is due is missing.
const FALLEN: f32 = 0.6;
/// Hours in which the mean gain of visits by the hour follows them. Half a day, so that it is neither the price of the night
/// nor of the morning.
const MEAN_HOURS: f64 = 12.0;
/// Hours of twice the budget that single visits may use at once. Without a bound they would spend the savings for the next
/// sweep when a busy hour begins.
const SINGLE_HOURS: f64 = 0.25;

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
    /// The shadow price of a visit before savings are considered; 0 while it is unknown.
    pub base: f32,
    /// The shadow price of a visit now.
    pub shadow_price: f32,
    /// The gain from which pages are on the ladder.
    pub least_gain: f32,
    /// The highest gain of the page at the rank that an hour's budget reaches, fading over weeks. It bounds the price.
    /// If all pages gain alike, the price would otherwise rise above them all.
    pub highest: f32,
    /// The importance that visits capture, weighted by omega(P).
    pub found: MeanOverTime,
    /// What visits add to Definition 5.13.
    pub shares: MeanOverTime,
    /// By site: the cost per hour of an incoherent page of weight 1; 0 if the site is not swept.
    pub incoherent_hours: Vec<f32>,
    /// Pages of the largest site that is swept.
    largest_swept: f64,
    /// Single visits that may be made now.
    pub singles: f64,
    /// The share of the visits that is reserved for the oldest captures, as far as it is unused.
    pub floor_credit: f64,
}

impl Default for Balance {
    fn default() -> Balance {
        Balance {
            every_page: FIRST_EVERY_PAGE,
            base: 0.0,
            shadow_price: 0.0,
            least_gain: LEAST_GAIN,
            highest: 0.0,
            found: MeanOverTime::default(),
            shares: MeanOverTime::default(),
            incoherent_hours: Vec::new(),
            largest_swept: 0.0,
            singles: 1.0,
            floor_credit: 0.0,
        }
    }
}

impl Scheduler {
    pub(super) fn sweeps_sites(&self) -> bool {
        self.config.strategy == Strategy::ExpectedGain && self.sites.any_sweeps()
    }

    /// Whether the shadow price follows the savings. Otherwise every granted visit is made at once, and the price is
    /// the mean gain of those.
    pub(super) fn controls_price(&self) -> bool {
        self.config.strategy == Strategy::ExpectedGain
            && self.config.budget.is_some()
            && self.config.saves_visits()
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

    /// The most visits that can be saved: enough for a day, and for a sweep of the largest site. By the hour it is an
    /// hour's visits.
    pub(super) fn most_saved(&self) -> f64 {
        let Some(budget) = self.config.budget else { return f64::INFINITY };
        if !self.config.saves_visits() {
            return budget.visits_in(budget.period).clamp(1.0, 1e9);
        }
        (SAVED_HOURS * self.config.per_hour()).max(1.5 * self.balance.largest_swept).max(1.0)
    }

    /// Finds the largest site that is swept, after the budget or the number of pages of sites has changed.
    pub(super) fn find_largest_sweep(&mut self) {
        let largest = self.largest_sweep();
        let sites = self.sites.all.iter().filter(|site| site.goal.sweeps_sites());
        let pages = sites.map(|site| f64::from(site.n_pages)).filter(|n_pages| *n_pages <= largest);
        self.balance.largest_swept = pages.fold(0.0, f64::max);
    }

    /// The largest site that is swept.
    pub(super) fn largest_sweep(&self) -> f64 {
        match (self.config.budget, self.config.saves_visits()) {
            (Some(_), true) => LONGEST_SWEEP_HOURS * self.config.per_hour(),
            (Some(budget), false) => budget.visits_in(budget.period),
            (None, _) => f64::INFINITY,
        }
    }

    /// Savings against their target: 0 on target, -1 twice the target, 1 nothing saved. In the last hours of a period
    /// the target is the even share of these hours, because leftover visits are then lost.
    pub(super) fn shortfall(&self) -> f64 {
        let half = 0.5 * self.most_saved();
        match self.behind() {
            Some(behind) => {
                let even = self.config.per_hour() * self.rest_of_period().as_hours_f64();
                (-behind / half.min(even).max(1e-9)).clamp(-MOST_PLENTY, 1.0)
            }
            None => 1.0 - self.tokens() / half,
        }
    }

    /// Whether savings are nearly at their maximum, so visits are made even below the price.
    pub(super) fn is_rich(&self) -> bool {
        self.tokens() > NEARLY_ALL * self.most_saved()
    }

    /// Lets the shadow price follow the savings for some hours. With savings above the target the price falls at
    /// once, and the base price drifts in the same direction. Together they act like a proportional and an integral
    /// controller.
    pub(super) fn follow_savings(&mut self, hours: f64) {
        let per_hour = self.config.per_hour();
        self.balance.floor_credit =
            (self.balance.floor_credit + self.floor_share() * per_hour * hours).min(4.0);
        if !self.controls_price() {
            self.balance.shadow_price = self.balance.base;
            return;
        }
        let shortfall = self.shortfall();
        let rate = 2.0 * per_hour * (-shortfall).max(1.0);
        let balance = &mut self.balance;
        balance.singles = (balance.singles + rate * hours).min((rate * SINGLE_HOURS).max(1.0));
        // The bound is unknown until as many pages as are granted have a gain.
        let most = if balance.highest > LEAST_GAIN { balance.highest } else { f32::INFINITY };
        balance.base = (balance.base * (shortfall.max(-1.0) * hours / SAVED_HOURS).exp() as f32).min(most);
        balance.shadow_price = balance.base * (0.25 * shortfall).exp() as f32;
    }

    /// Hours until a single visit may be made, if sweeps and savings limit them.
    pub(super) fn hours_to_single(&self) -> f64 {
        if !self.controls_price() {
            return 0.0;
        }
        (1.0 - self.balance.singles).max(0.0) / (2.0 * self.config.per_hour()).max(1e-9)
    }

    /// The most by which the logarithm of the shadow price falls in an hour: see [`Scheduler::follow_savings`].
    pub(super) fn fall_per_hour(&self) -> f64 {
        let saved_hours = (self.most_saved() / self.config.per_hour().max(1e-9)).max(1e-3);
        1.0 / SAVED_HOURS + 0.25 * 2.0 / saved_hours
    }

    /// Lets the mean gain follow a visit by the hour.
    pub(super) fn follow_visit(&mut self, gain: f32) {
        let weight = 1.0 / (MEAN_HOURS * self.config.per_hour()).max(1.0);
        self.balance.base += weight as f32 * (gain - self.balance.base);
    }

    /// Keeps the ladder reaching below the price.
    pub(super) fn reach_down(&mut self) {
        let wanted = (LEAST_SHARE * self.balance.shadow_price).max(LEAST_GAIN);
        if wanted < FALLEN * self.balance.least_gain {
            self.balance.least_gain = wanted;
            self.place_all();
        } else {
            self.balance.least_gain = self.balance.least_gain.max(wanted);
        }
    }

    /// Once an hour: the highest gain, the weights of the measures and the cost of incoherence.
    pub(super) fn update_prices(&mut self, hours: f64) {
        if self.config.budget.is_none() || self.config.strategy != Strategy::ExpectedGain {
            return;
        }
        let n_granted = (self.config.per_hour().ceil() as u32).max(1);
        let faded = self.balance.highest * (-hours / HIGHEST_HOURS).exp() as f32;
        self.balance.highest = faded.max(self.ladder.nth_gain(n_granted));
        if self.sweeps_sites() {
            self.update_balance(hours);
            self.balance.incoherent_hours = self.incoherent_hours();
        }
        if self.balance.shadow_price > 0.0 {
            // If visits are left over, a visit costs nothing.
            let price = if self.controls_price() && self.is_rich() { 0.0 } else { self.balance.shadow_price };
            self.note_visit_price(price);
        }
    }

    /// The first price: what the best visits gain, as many as an hour's budget can make. A page counts with what it
    /// gains alone or, if that is more, as one page of a sweep of its site. Otherwise a large archive whose sites are
    /// all worth a sweep would wait for days until the price has fallen to their gain.
    ///
    /// This looks at all pages at once, but only once, when a crawl begins.
    pub(super) fn find_first_price(&mut self) {
        let has_price = self.balance.base > LEAST_GAIN || self.config.budget.is_none();
        if has_price || self.config.strategy != Strategy::ExpectedGain {
            return;
        }
        let n = (self.config.per_hour().ceil() as usize).max(1);
        let mut of_sites = vec![(0u32, 0.0f32); self.sites.all.len()];
        let mut gains: Vec<(u32, f32)> = Vec::new();
        for at in 0..self.pages.len() {
            if self.can_rank(at) {
                self.carry(at);
                let site = self.pages.site[at];
                let sum = &mut of_sites[site as usize];
                *sum = (sum.0 + 1, sum.1 + self.pages.urgency[at]);
                gains.push((site, self.gain_now(at)));
            }
        }
        let price = |(site, alone): (u32, f32)| {
            let (n_pages, sum) = of_sites[site as usize];
            let is_swept = self.balance.incoherent_hours.get(site as usize).is_some_and(|cost| *cost > 0.0);
            if is_swept { alone.max(sum / n_pages as f32) } else { alone }
        };
        let mut gains: Vec<f32> = gains.into_iter().map(price).collect();
        if gains.is_empty() {
            return;
        }
        let rank = n.min(gains.len()) - 1;
        let (_, gain, _) = gains.select_nth_unstable_by(rank, |a, b| b.total_cmp(a));
        if *gain > LEAST_GAIN {
            self.balance.base = *gain;
            self.balance.shadow_price = *gain;
            self.balance.least_gain = LEAST_SHARE * *gain;
            self.place_all();
        }
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

    /// By site: the cost per hour of an incoherent page of weight 1. An hour in which all pages of a site are
    /// incoherent costs the site's share of the hourly importance. For [`Goal::Balanced`] that is a geometric mean of
    /// the importance that appears and the importance that is captured.
    fn incoherent_hours(&self) -> Vec<f32> {
        let brings = self.totals.importance / f64::from(LONGEST_GAP_HOURS);
        let found =
            if self.balance.found.hours < FIRST_HOURS { brings } else { self.balance.found.per_hour() };
        let n_sites = self.sites.all.iter().filter(|site| site.n_pages > 0).count().max(1) as f64;
        let largest_sweep = self.largest_sweep();
        let price = |site: &SiteState| {
            let all = match site.goal {
                Goal::Balanced => brings.powf(1.0 - SHARE_OF_CAUGHT) * found.powf(SHARE_OF_CAUGHT),
                Goal::Coherent => brings,
                _ => return 0.0,
            };
            if site.n_pages == 0 || f64::from(site.n_pages) > largest_sweep {
                return 0.0;
            }
            (all / n_sites / f64::from(site.omega.max(1e-9))) as f32
        };
        self.sites.all.iter().map(price).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::page::importance::Importance;
    use crate::schedule::{Budget, PageInfo, Reason, ScheduleConfig, Visit, VisitOutcome};
    use crate::time::{Span, Timestamp};
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
            let is_near = |other: &&(Timestamp, Visit)| {
                other.1.site == visit.site && (other.0 - *at).as_millis().abs() < 60_000
            };
            assert!(
                late.iter().filter(is_near).count() >= n_pages as usize,
                "{n_pages} pages within a minute"
            );
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
            scheduler.now = now;
            scheduler.shortfall()
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
