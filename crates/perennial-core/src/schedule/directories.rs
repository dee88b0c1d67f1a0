//! Observations by directory -> directories that are skipped as a whole, and a few visits that check this (P-NEAR 1.1
//! and 5; docs/decisions/0030-directories.md).
//!
//! This happens per site, before pages are ranked. A directory is skipped for one of two reasons. It is still: many
//! observations found no change, so a visit is expected to gain less than visits cost. Or it is excluded
//! for the day, because another directory changed that never changes on the same day. A small share of the budget
//! probes skipped directories in turn. A probe that finds a change ends the rule, and all rules are found again.
//!
//! The directory of a page is its group. Sites without such rules are crawled as if this module did not exist.

use std::collections::VecDeque;

use super::pages::{ABSENT, ANNOUNCED, FRESH, PENDING, PROMISED, SKIPPED, VACANT};
use super::{Reason, Scheduler, SkipRule, Strategy, gain};
use crate::directory::CoOccurrence;
use crate::url::PageId;

/// Share of the visits that may go to pages of skipped directories.
const PROBE_SHARE: f64 = 0.01;
/// Observations without a change before a directory can be still: at least so many, and so many per page.
const FEWEST_OBSERVATIONS: u32 = 20;
const OBSERVATIONS_PER_PAGE: u32 = 3;
/// A directory that changed within this time is not still.
const STILL_SECS: u32 = 14 * 86_400;
/// Assumed importance of a change in a still directory.
const PRIOR_IMPORTANCE: f32 = 0.3;
/// Added to the observed changes, so no directory seems unchangeable.
const PRIOR_CHANGES: f32 = 0.5;
/// The half-life of observations.
const HALF_LIFE_DAYS: f32 = 120.0;
/// A directory is skipped while its gain is below this share of the price, because its pages' own estimates may be
/// higher.
const SHARE_OF_SHADOW_PRICE: f32 = 0.5;
/// Smaller directories are not skipped, because the ranking handles single pages.
const FEWEST_PAGES: u32 = 3;
/// Weight of an hour's price against the known price.
const SHADOW_PRICE_WEIGHT: f32 = 0.25;
const DAY_SECS: u32 = 86_400;
/// Days on which both directories must have been observed, and on which each must have changed.
const FEWEST_DAYS: u32 = 12;
const FEWEST_CHANGED_DAYS: u32 = 4;
/// Directories of a site that are compared with each other.
const MOST_COMPARED: usize = 32;
/// The maximum probability that two directories never changed on one day by chance, divided by the number of pairs.
const SIGNIFICANCE: f64 = 0.01;

#[derive(Clone, Debug, Default)]
struct DirectoryStats {
    n_unchanged: u32,
    changed_at: u32,
    /// Days of single pages that observations covered, and the changes that they found. Both fade.
    page_days: f32,
    n_changes: f32,
    /// The day of the latest bit, and a bit for each of the last 64 days: whether it was observed, and whether it
    /// changed.
    day: u32,
    visited: u64,
    changed: u64,
    rule: Option<ActiveRule>,
    /// Directories that never change on the same day as this one.
    excludes: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ActiveRule {
    Still { n_observations: u32 },
    Excluded { by: PageId, day: u32 },
}

impl DirectoryStats {
    /// Shifts the bits to a day.
    fn enter(&mut self, day: u32) {
        let n_days = day.saturating_sub(self.day);
        let shift = |bits: u64| if n_days >= 64 { 0 } else { bits << n_days };
        (self.visited, self.changed) = (shift(self.visited), shift(self.changed));
        let left = (-(n_days as f32) / HALF_LIFE_DAYS).exp2();
        (self.page_days, self.n_changes) = (self.page_days * left, self.n_changes * left);
        self.day = self.day.max(day);
    }
}

/// Means over the pages of a directory: the value of a change, and the days since the last observation.
#[derive(Clone, Copy, Debug, Default)]
struct DirectoryMeans {
    n_pages: u32,
    value: f32,
    days: f32,
}

#[derive(Clone, Default)]
pub(super) struct DirectoryRules {
    /// By group of a page.
    all: Vec<DirectoryStats>,
    /// Skipped groups with their pages, in the order of their probes.
    skipped: VecDeque<(u32, VecDeque<u32>)>,
    /// Fractions of a probe that were granted.
    credit: f64,
    /// The mean price of a visit; `None` before the first hour.
    pub(super) shadow_price: Option<f32>,
    /// The day of the last search for rules, plus one.
    decided: u32,
    /// Directories that changed today and exclude others, with the page that changed.
    heads: Vec<(u32, PageId)>,
    pub(super) n_skipped: usize,
}

impl Scheduler {
    fn judges_directories(&self) -> bool {
        let config = &self.config;
        config.directories && config.strategy == Strategy::ExpectedGain && config.budget.is_some()
    }

    /// Records an observation of a page that was observed before.
    pub(super) fn count_observation(&mut self, at: usize, is_changed: bool, (before, secs): (u32, u32)) {
        let group = self.pages.group[at];
        if group == 0 || !self.config.learn || !self.judges_directories() {
            return;
        }
        let all = &mut self.directories.all;
        if all.len() <= group as usize {
            all.resize(group as usize + 1, DirectoryStats::default());
        }
        let directory = &mut all[group as usize];
        directory.enter(secs / DAY_SECS);
        directory.visited |= 1;
        directory.page_days += secs.saturating_sub(before) as f32 / DAY_SECS as f32;
        directory.n_changes += f32::from(u8::from(is_changed));
        directory.n_unchanged = directory.n_unchanged.saturating_add(1);
        if is_changed {
            directory.n_unchanged = 0;
            directory.changed_at = secs;
            let is_first_today = directory.changed & 1 == 0;
            directory.changed |= 1;
            if is_first_today && !directory.excludes.is_empty() {
                self.directories.heads.push((group, self.pages.id[at]));
            }
            if self.directories.all[group as usize].rule.is_some() {
                self.end_rule(group);
                // A wrong rule casts doubt on all, so the next hour finds them again.
                self.directories.decided = 0;
            }
        }
    }

    /// Ends the rule of a directory.
    fn end_rule(&mut self, group: u32) {
        self.directories.all[group as usize].rule = None;
        let skipped = &mut self.directories.skipped;
        let Some(place) = skipped.iter().position(|(other, _)| *other == group) else { return };
        let Some((_, members)) = skipped.remove(place) else { return };
        for at in members {
            self.unskip(at as usize, group);
        }
    }

    fn unskip(&mut self, at: usize, group: u32) {
        if self.pages.group[at] == group && self.pages.has(at, SKIPPED) {
            self.pages.flags[at] &= !SKIPPED;
            self.unskipped.push(at as u32);
            self.directories.n_skipped -= 1;
        }
    }

    /// Exempts an announced or removed page from the rule of its directory.
    pub(super) fn exempt(&mut self, at: usize) {
        self.unskip(at, self.pages.group[at]);
    }

    /// Finds the rules of a new day, and those that today's changes cause.
    pub(super) fn judge_directories(&mut self, now_secs: u32) {
        if !self.judges_directories() || self.directories.all.is_empty() {
            return;
        }
        let day = now_secs / DAY_SECS;
        if self.directories.decided != day + 1 {
            self.directories.decided = day + 1;
            self.end_exclusions(day);
            self.find_exclusions(day);
            self.find_still(now_secs);
        }
        let heads = std::mem::take(&mut self.directories.heads);
        let mut excluded: Vec<(u32, ActiveRule)> = Vec::new();
        for (head, by) in heads {
            for &tail in &self.directories.all[head as usize].excludes {
                if self.directories.all[tail as usize].rule.is_none() {
                    excluded.push((tail, ActiveRule::Excluded { by, day }));
                }
            }
        }
        self.skip(excluded);
    }

    fn end_exclusions(&mut self, day: u32) {
        let is_over = |group: &u32| {
            let rule = self.directories.all[*group as usize].rule;
            matches!(rule, Some(ActiveRule::Excluded { day: of, .. }) if of != day)
        };
        let over: Vec<u32> =
            self.directories.skipped.iter().map(|(group, _)| *group).filter(is_over).collect();
        over.into_iter().for_each(|group| self.end_rule(group));
    }

    /// Skips directories whose visits are expected to gain less than visits cost. The gain grows while a
    /// directory is skipped, so a rule also ends without a probe.
    fn find_still(&mut self, now_secs: u32) {
        let means = self.directory_means(now_secs);
        let shadow_price = SHARE_OF_SHADOW_PRICE
            * self.directories.shadow_price.unwrap_or_else(|| self.first_shadow_price());
        let is_cheap = |group: usize| {
            means[group].n_pages >= FEWEST_PAGES && self.directory_gain(group, &means[group]) < shadow_price
        };
        let is_over = |group: &u32| {
            let is_still =
                matches!(self.directories.all[*group as usize].rule, Some(ActiveRule::Still { .. }));
            is_still && !is_cheap(*group as usize)
        };
        let over: Vec<u32> =
            self.directories.skipped.iter().map(|(group, _)| *group).filter(is_over).collect();
        let is_still = |group: &usize| {
            let directory = &self.directories.all[*group];
            // A large directory needs more observations, because its changes may be on pages that were not visited.
            let least = FEWEST_OBSERVATIONS.max(OBSERVATIONS_PER_PAGE.saturating_mul(means[*group].n_pages));
            let is_long_ago = now_secs.saturating_sub(directory.changed_at) >= STILL_SECS;
            let is_known = directory.n_unchanged >= least && is_long_ago;
            directory.rule.is_none() && is_known && is_cheap(*group)
        };
        let rule = |group: usize| {
            let n_observations = self.directories.all[group].n_unchanged;
            (group as u32, ActiveRule::Still { n_observations })
        };
        let still = (1..means.len()).filter(is_still).map(rule).collect();
        over.into_iter().for_each(|group| self.end_rule(group));
        self.skip(still);
    }

    /// What an hour's last visit would gain, for a scheduler that has learned but not chosen a visit.
    fn first_shadow_price(&self) -> f32 {
        let n = self.config.per_hour().ceil().max(1.0) as usize;
        let gain = |at: usize| match self.pages.has(at, FRESH | PENDING | VACANT | ABSENT | PROMISED) {
            true => 0.0,
            false => gain::page_gain(&self.pages, at),
        };
        let mut gains: Vec<f32> = (0..self.pages.len()).map(gain).filter(|gain| *gain > 0.0).collect();
        if gains.len() < n {
            return 0.0;
        }
        *gains.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1
    }

    /// Computes the means in one pass over the pages.
    fn directory_means(&self, now_secs: u32) -> Vec<DirectoryMeans> {
        let mut means = vec![DirectoryMeans::default(); self.directories.all.len()];
        for at in 0..self.pages.len() {
            let is_meant = !self.pages.has(at, VACANT | ABSENT | FRESH);
            if let Some(of_group) = means.get_mut(self.pages.group[at] as usize).filter(|_| is_meant) {
                of_group.n_pages += 1;
                of_group.value += self.pages.value[at];
                of_group.days += now_secs.saturating_sub(self.pages.seen_at[at]) as f32 / DAY_SECS as f32;
            }
        }
        for of_group in &mut means {
            let n = of_group.n_pages.max(1) as f32;
            (of_group.value, of_group.days) = (of_group.value / n, of_group.days / n);
        }
        means
    }

    /// The expected gain of a visit to an average page of a directory, comparable with [`gain::page_gain`].
    fn directory_gain(&self, group: usize, means: &DirectoryMeans) -> f32 {
        let directory = &self.directories.all[group];
        let rate = (directory.n_changes + PRIOR_CHANGES) / directory.page_days.max(1.0);
        gain::gain_at(means.value, PRIOR_IMPORTANCE, rate * means.days)
    }

    /// Marks the pages of skipped directories. New pages are captured anyway, and join later.
    fn skip(&mut self, rules: Vec<(u32, ActiveRule)>) {
        if rules.is_empty() {
            return;
        }
        let mut place = vec![usize::MAX; self.directories.all.len()];
        let mut members: Vec<VecDeque<u32>> = vec![VecDeque::new(); rules.len()];
        for (nth, (group, rule)) in rules.iter().enumerate() {
            self.directories.all[*group as usize].rule = Some(*rule);
            place[*group as usize] = nth;
        }
        for at in 0..self.pages.len() {
            let nth = place.get(self.pages.group[at] as usize).copied().unwrap_or(usize::MAX);
            if nth != usize::MAX
                && !self.pages.has(at, VACANT | ABSENT | FRESH | ANNOUNCED | SKIPPED | PROMISED)
            {
                self.pages.flags[at] |= SKIPPED;
                self.directories.n_skipped += 1;
                members[nth].push_back(at as u32);
            }
        }
        for ((group, _), mut members) in rules.into_iter().zip(members) {
            members.make_contiguous().sort_by_key(|&at| self.pages.seen_at[at as usize]);
            self.directories.skipped.push_back((group, members));
        }
    }

    /// Finds directories of a site that were often observed on the same days and never changed on the same day.
    fn find_exclusions(&mut self, day: u32) {
        let mut by_site: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
        let mut is_met = vec![false; self.directories.all.len()];
        for at in 0..self.pages.len() {
            let group = self.pages.group[at];
            if let Some(met) = is_met.get_mut(group as usize).filter(|met| !**met) {
                *met = true;
                by_site.entry(self.pages.site[at]).or_default().push(group);
            }
        }
        for directory in &mut self.directories.all {
            directory.enter(day);
            directory.excludes.clear();
        }
        for groups in by_site.into_values() {
            self.compare(groups);
        }
    }

    fn compare(&mut self, mut groups: Vec<u32>) {
        let all = &mut self.directories.all;
        groups.retain(|&group| group != 0 && all[group as usize].changed.count_ones() >= FEWEST_CHANGED_DAYS);
        // Only the most active directories have enough changed days for a significant result, and pairs grow
        // quadratically.
        groups.sort_by_key(|&group| std::cmp::Reverse(all[group as usize].changed.count_ones()));
        groups.truncate(MOST_COMPARED);
        let n_pairs = (groups.len() * groups.len().saturating_sub(1) / 2).max(1);
        for (nth, &a) in groups.iter().enumerate() {
            for &b in &groups[nth + 1..] {
                let (one, other) = (&all[a as usize], &all[b as usize]);
                let both = one.visited & other.visited;
                let (first, second) = (one.changed & both, other.changed & both);
                let counts = CoOccurrence {
                    n: both.count_ones(),
                    first: first.count_ones(),
                    second: second.count_ones(),
                    both: (first & second).count_ones(),
                };
                let is_rule = counts.n >= FEWEST_DAYS
                    && counts.both == 0
                    && counts.first.min(counts.second) >= FEWEST_CHANGED_DAYS
                    && counts.p_value() < SIGNIFICANCE / n_pairs as f64;
                if is_rule {
                    all[a as usize].excludes.push(b);
                    all[b as usize].excludes.push(a);
                }
            }
        }
    }

    /// Records the shadow price of a visit in an hour.
    pub(super) fn note_visit_price(&mut self, shadow_price: f32) {
        let known = self.directories.shadow_price.unwrap_or(shadow_price);
        self.directories.shadow_price = Some(known + SHADOW_PRICE_WEIGHT * (shadow_price - known));
    }

    /// Chooses a few visits to skipped directories: the directories take turns, each with its page last seen longest
    /// ago.
    pub(super) fn probe_directories(&mut self, granted: f64, capacity: usize) -> Vec<(u32, Reason)> {
        let share = PROBE_SHARE * granted;
        self.directories.credit = (self.directories.credit + share).min(1.0 + share);
        let n = (self.directories.credit.floor() as usize).min(capacity).min(self.directories.skipped.len());
        let end_secs = self.next_hour;
        let mut chosen = Vec::new();
        for _ in 0..n {
            let Some((group, mut members)) = self.directories.skipped.pop_front() else { break };
            for _ in 0..members.len() {
                let Some(at) = members.pop_front() else { break };
                let is_member =
                    self.pages.group[at as usize] == group && self.pages.has(at as usize, SKIPPED);
                if !is_member {
                    continue;
                }
                members.push_back(at);
                let may_visit =
                    !self.pages.has(at as usize, PENDING) && self.pages.not_before[at as usize] <= end_secs;
                if may_visit {
                    chosen.push((at, self.probe_reason(at as usize)));
                    break;
                }
            }
            self.directories.skipped.push_back((group, members));
        }
        self.directories.credit -= chosen.len() as f64;
        chosen
    }

    fn probe_reason(&self, at: usize) -> Reason {
        let since = self.instant(self.pages.seen_at[at]);
        match self.skip_rule(at) {
            Some(rule) => Reason::DirectoryProbe { rule, since },
            None => Reason::Oldest { since },
        }
    }

    /// The rule by which a page is skipped.
    pub(super) fn skip_rule(&self, at: usize) -> Option<SkipRule> {
        if !self.pages.has(at, SKIPPED) {
            return None;
        }
        Some(match self.directories.all.get(self.pages.group[at] as usize)?.rule? {
            ActiveRule::Still { n_observations } => SkipRule::Still { n_observations },
            ActiveRule::Excluded { by, .. } => SkipRule::Excluded { by },
        })
    }

    pub fn n_skipped(&self) -> usize {
        self.directories.n_skipped
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Budget, PageInfo, ScheduleConfig, Scheduler, Visit, VisitOutcome};
    use super::*;
    use crate::page::importance::Importance;
    use crate::rng::Rng;
    use crate::time::{Span, Timestamp};
    use crate::url::SiteId;

    const PAGES: u32 = 40;

    fn start() -> Timestamp {
        Timestamp::parse("2026-03-02").unwrap()
    }

    /// Directories of forty pages, six visits per hour.
    fn new_scheduler(n_directories: u32, directories: bool) -> Scheduler {
        let budget = Some(Budget::per_hour(6.0));
        let config = ScheduleConfig { budget, directories, ..ScheduleConfig::default() };
        let mut scheduler = Scheduler::new(config, 7, start());
        for page in 0..n_directories * PAGES {
            let group = 100 + u64::from(page / PAGES);
            scheduler.add_page(PageId(page), PageInfo { group, ..PageInfo::for_site(SiteId(0)) });
        }
        scheduler
    }

    /// Drives the scheduler for some days. A page changes on a day if `changes(directory, page, day)` is true.
    fn drive(
        scheduler: &mut Scheduler,
        days: std::ops::Range<i64>,
        changes: impl Fn(u32, u32, i64) -> bool,
    ) -> Vec<(i64, Visit)> {
        let day_of = |at: Timestamp| (at - start()).as_millis() / 86_400_000;
        let mut seen = vec![i64::MIN; 4096];
        let mut visits = Vec::new();
        let (mut now, end) =
            (start() + Span::from_hours(24 * days.start), start() + Span::from_hours(24 * days.end));
        while now < end {
            while let Some(visit) = scheduler.next_visit(now) {
                let (page, day) = (visit.page.0, day_of(now));
                let last = std::mem::replace(&mut seen[page as usize], day).max(days.start - 1);
                let is_changed = (last + 1..=day).any(|day| changes(page / PAGES, page, day));
                let outcome = match is_changed {
                    true => VisitOutcome::Changed(Importance::new(0.3)),
                    false => VisitOutcome::Unchanged,
                };
                scheduler.record(visit.page, outcome, now);
                visits.push((day, visit));
            }
            now = scheduler.next_wakeup().unwrap().max(now + Span::from_millis(1));
        }
        visits
    }

    fn busy(directory: u32, page: u32, day: i64) -> bool {
        directory == 1 && Rng::from_parts(&[u64::from(page), day as u64]).unit() < 0.4
    }

    fn n_still(visits: &[(i64, Visit)]) -> usize {
        visits.iter().filter(|(day, visit)| *day >= 40 && visit.page.0 < PAGES).count()
    }

    #[test]
    fn a_still_directory_is_skipped_except_for_probes() {
        let (mut with, mut without) = (new_scheduler(2, true), new_scheduler(2, false));
        let (seen, seen_without) = (drive(&mut with, 0..60, busy), drive(&mut without, 0..60, busy));
        assert_eq!((with.n_skipped(), without.n_skipped()), (PAGES as usize, 0));
        let skipped_by = |page: PageId| with.skip_rule(with.pages.position(page)?);
        assert!(
            matches!(skipped_by(PageId(3)), Some(SkipRule::Still { n_observations }) if n_observations >= 120)
        );
        assert_eq!(skipped_by(PageId(PAGES)), None);
        let (n_with, n_without) = (n_still(&seen), n_still(&seen_without));
        assert!(n_with > 0 && 2 * n_with < n_without, "{n_with} visits against {n_without}");
        let late = seen.iter().filter(|(day, visit)| *day >= 40 && visit.page.0 < PAGES);
        let is_probe = |(_, visit): &&(i64, Visit)| matches!(visit.reason, Reason::DirectoryProbe { .. });
        let others: Vec<_> = late.clone().filter(|visit| !is_probe(visit)).collect();
        // A directory that was skipped for long is visited once, because its gain has grown.
        assert!(4 * others.len() < n_without, "{others:?}");
        let pages: std::collections::HashSet<PageId> = late.map(|(_, visit)| visit.page).collect();
        assert_eq!(pages.len(), n_with.min(PAGES as usize), "each page has its turn");
    }

    #[test]
    fn a_probe_that_finds_a_change_ends_the_rule() {
        let mut scheduler = new_scheduler(2, true);
        drive(&mut scheduler, 0..60, busy);
        assert_eq!(scheduler.n_skipped(), PAGES as usize);
        let all = |directory: u32, page: u32, day: i64| directory == 0 || busy(directory, page, day);
        let visits = drive(&mut scheduler, 60..75, all);
        assert_eq!(scheduler.n_skipped(), 0);
        let first =
            visits.iter().position(|(_, visit)| matches!(visit.reason, Reason::DirectoryProbe { .. }));
        let after = &visits[first.unwrap() + 1..];
        assert!(after.iter().filter(|(_, visit)| visit.page.0 < PAGES).count() > 20);
        assert!(!after.iter().any(|(_, visit)| matches!(visit.reason, Reason::DirectoryProbe { .. })));
    }

    #[test]
    fn a_page_that_is_announced_or_new_is_visited_whatever_the_rule() {
        let mut scheduler = new_scheduler(2, true);
        drive(&mut scheduler, 0..60, busy);
        let now = start() + Span::from_hours(24 * 60);
        scheduler.announce(PageId(3), now, None);
        scheduler.add_page(PageId(500), PageInfo { group: 100, ..PageInfo::for_site(SiteId(0)) });
        let page = scheduler.pages.position(PageId(3)).unwrap();
        assert_eq!((scheduler.n_skipped(), scheduler.skip_rule(page)), (PAGES as usize - 1, None));
        let visits = drive(&mut scheduler, 60..61, busy);
        for page in [PageId(3), PageId(500)] {
            assert!(visits.iter().any(|(_, visit)| visit.page == page));
        }
    }

    #[test]
    fn a_new_page_starts_with_the_rate_of_its_directory() {
        let mut scheduler = new_scheduler(2, true);
        drive(&mut scheduler, 0..30, busy);
        let rate_of_new = |scheduler: &mut Scheduler, page: u32, group: u64| {
            scheduler.add_page(PageId(page), PageInfo { group, ..PageInfo::for_site(SiteId(0)) });
            scheduler.belief(PageId(page)).unwrap().changes_per_day()
        };
        let (still, busy) = (rate_of_new(&mut scheduler, 500, 100), rate_of_new(&mut scheduler, 501, 101));
        assert!(busy > 5.0 * still, "{busy} changes a day against {still}");
    }

    /// Each day either the first or the second directory changes.
    fn seasons(directory: u32, page: u32, day: i64) -> bool {
        let turn = Rng::from_parts(&[9, day as u64]).below(2) as u32;
        directory < 2 && turn == directory && Rng::from_parts(&[u64::from(page), day as u64]).unit() < 0.5
    }

    #[test]
    fn a_directory_that_another_excludes_is_skipped_for_the_day() {
        let budget = Some(Budget::per_hour(12.0));
        let mut visits = Vec::new();
        for directories in [true, false] {
            let mut scheduler = new_scheduler(3, directories);
            scheduler.set_budget(budget);
            // Every page is visited daily in the first weeks, so the days are known.
            let full = Some(Budget::per_hour(30.0));
            scheduler.set_budget(full);
            drive(&mut scheduler, 0..40, seasons);
            scheduler.set_budget(budget);
            visits.push(drive(&mut scheduler, 40..80, seasons));
        }
        let is_idle = |(day, visit): &&(i64, Visit)| {
            let directory = visit.page.0 / PAGES;
            directory < 2 && Rng::from_parts(&[9, *day as u64]).below(2) as u32 != directory
        };
        let idle: Vec<usize> = visits.iter().map(|visits| visits.iter().filter(is_idle).count()).collect();
        assert!(idle[0] < idle[1], "visits to the directory that cannot change: {idle:?}");
        let probes = visits[0].iter().filter(|(_, visit)| {
            matches!(visit.reason, Reason::DirectoryProbe { rule: SkipRule::Excluded { .. }, .. })
        });
        assert!(probes.count() > 0);
    }

    #[test]
    fn a_site_without_evidence_is_crawled_as_before() {
        let lively =
            |_: u32, page: u32, day: i64| Rng::from_parts(&[u64::from(page), day as u64]).unit() < 0.3;
        let visits =
            [true, false].map(|directories| drive(&mut new_scheduler(3, directories), 0..30, lively));
        assert_eq!(visits[0], visits[1]);
    }
}
