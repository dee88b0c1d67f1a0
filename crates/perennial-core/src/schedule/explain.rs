//! The state of the scheduler -> what it believes of a page and why the page has its rank, for people to read.

use std::collections::HashSet;

use super::pages::{FRESH, NONE, VACANT};
use super::plan::Planned;
use super::{Peak, Ranked, Reason, Scheduler};
use crate::importance::Importance;
use crate::page::{PageId, SiteId};
use crate::time::{DayKind, Timestamp};

/// A stretch counts as a peak when its rate is this many times the mean.
const PEAK_RATIO: f32 = 1.5;

/// What is believed of a page.
#[derive(Clone, PartialEq, Debug)]
pub struct Belief {
    /// Changes an hour: the periods of a workday, then those of any other day.
    pub rates: Vec<f32>,
    /// Mean importance of a change, in the same order.
    pub importance: Vec<f32>,
    /// Visits after the first from which this was learned.
    pub n_visits: u32,
    /// How many of them found a change.
    pub n_changed: u32,
    /// The shared pattern that fits best, by number, and its share of belief.
    pub shape: Option<(u8, f32)>,
    /// How much busier than usual the page has been recently.
    pub spell: f32,
}

impl Belief {
    /// Changes a day, averaged over the week.
    pub fn changes_per_day(&self) -> f32 {
        let (workday, rest) = self.rates.split_at(self.rates.len() / 2);
        let mean = |rates: &[f32]| rates.iter().sum::<f32>() / rates.len().max(1) as f32;
        24.0 * (5.0 * mean(workday) + 2.0 * mean(rest)) / 7.0
    }
}

impl Scheduler {
    /// What is believed of a page.
    pub fn belief(&self, page: PageId) -> Option<Belief> {
        let at = self.pages.position(page)?;
        let n_buckets = self.learner.mixture.n_buckets();
        let (rates, importance) = (0..n_buckets).map(|b| self.learner.believed(&self.pages, at, b)).unzip();
        let evidence = self.learner.evidence.get(self.pages.evidence[at] as usize);
        Some(Belief {
            rates,
            importance,
            n_visits: evidence.map_or(0, |e| e.n_visits),
            n_changed: evidence.map_or(0, |e| e.n_changed),
            shape: evidence.filter(|e| e.shape.1 > 0.0).map(|e| e.shape),
            spell: self.pages.spell[at],
        })
    }

    /// The pages in the order in which they would be visited from an instant on: those on the list of its slot as
    /// [`Scheduler::next_visit`] will hand them out, then the others, new ones first and then by urgency. Pages that had
    /// their turn in the slot come last. Asking changes nothing.
    pub fn ranking(&self, now: Timestamp, n: usize) -> Vec<Ranked> {
        if self.is_in_slot(now) {
            return self.ranking_in_slot(n);
        }
        // A slot's list is made from every page's state at its end, so it is made on a copy.
        let mut then = self.clone();
        then.enter_slot(now);
        then.ranking_in_slot(n)
    }

    fn ranking_in_slot(&self, n: usize) -> Vec<Ranked> {
        let is_kept = |planned: &&Planned| !self.has_become_doubtful(planned.at as usize);
        let listed = || self.slot.at_once.iter().chain(&self.slot.plan).filter(is_kept);
        let mut ranking: Vec<Ranked> =
            listed().take(n).map(|planned| self.ranked(planned.at as usize, Some(planned.reason))).collect();
        let n_others = n - ranking.len();
        if n_others > 0 {
            let is_listed: HashSet<usize> = listed().map(|planned| planned.at as usize).collect();
            let others = self.most_urgent(n_others, |at| !is_listed.contains(&at));
            ranking.extend(others.into_iter().map(|at| self.ranked(at, None)));
        }
        ranking
    }

    /// The first `n` of the pages that are not on the slot's list.
    fn most_urgent(&self, n: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let pages = &self.pages;
        let mut order: Vec<usize> =
            (0..pages.len()).filter(|&at| !pages.has(at, VACANT) && is_wanted(at)).collect();
        let turn = |at: usize| (self.was_visited_in_slot(at), !pages.has(at, FRESH));
        let compare = |a: &usize, b: &usize| {
            let by_urgency = || pages.urgency[*b].total_cmp(&pages.urgency[*a]);
            turn(*a).cmp(&turn(*b)).then_with(by_urgency).then(a.cmp(b))
        };
        if n < order.len() {
            order.select_nth_unstable_by(n, compare);
            order.truncate(n);
        }
        order.sort_unstable_by(compare);
        order
    }

    fn ranked(&self, at: usize, planned: Option<Reason>) -> Ranked {
        let pages = &self.pages;
        let belief = self.belief(pages.id[at]);
        Ranked {
            page: pages.id[at],
            site: SiteId(pages.site[at]),
            reason: planned.unwrap_or_else(|| self.reason_of(at)),
            urgency: pages.urgency[at],
            expected: Importance::new(f64::from(pages.reward[at])),
            n_expected: pages.load[at],
            changes_per_day: belief.as_ref().map_or(0.0, Belief::changes_per_day),
            peak: belief.as_ref().and_then(|belief| peak_of(&belief.rates)),
            n_visits: belief.map_or(0, |belief| belief.n_visits),
            is_planned: planned.is_some(),
        }
    }

    /// Bytes that a page takes in the scheduler, with its share of what pages share.
    pub fn bytes_per_page(&self) -> f64 {
        let n = self.pages.len().max(1);
        let shared = self.learner.n_bytes() + self.ahead.n_bytes();
        super::pages::Pages::BYTES_PER_PAGE as f64 + shared as f64 / n as f64
    }

    /// How many pages have a history of their own.
    pub fn n_histories(&self) -> usize {
        self.pages.evidence.iter().filter(|&&evidence| evidence != NONE).count()
    }
}

/// The busiest stretch of hours on workdays or on other days, if it stands out.
pub fn peak_of(rates: &[f32]) -> Option<Peak> {
    let n = rates.len() / 2;
    let mean = rates.iter().sum::<f32>() / rates.len().max(1) as f32;
    if n == 0 || mean <= 0.0 {
        return None;
    }
    let (workday, rest) = rates.split_at(n);
    let of = |kind: DayKind, rates: &[f32]| {
        let top = (0..n).max_by(|&a, &b| rates[a].total_cmp(&rates[b]))?;
        let is_high = |at: usize| rates[at] >= 0.7 * rates[top] && rates[at] >= mean;
        let before = (1..n).take_while(|step| is_high((top + n - step) % n)).count();
        let after = (1..n - before).take_while(|step| is_high((top + step) % n)).count();
        let hours = 24.0 / n as f32;
        Some(Peak {
            kind,
            from_hour: ((top + n - before) % n) as f32 * hours,
            to_hour: (top + after + 1) as f32 * hours % 24.0,
            ratio: rates[top] / mean,
        })
    };
    let (a, b) = (of(DayKind::Workday, workday)?, of(DayKind::Weekend, rest)?);
    Some(if a.ratio >= b.ratio { a } else { b }).filter(|peak| peak.ratio >= PEAK_RATIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_wrap_around_midnight() {
        let mut rates = vec![0.1; 48];
        for hour in [23, 0, 1] {
            rates[hour] = 2.0;
        }
        let peak = peak_of(&rates).unwrap();
        assert_eq!((peak.kind, peak.from_hour, peak.to_hour), (DayKind::Workday, 23.0, 2.0));
        assert_eq!(peak_of(&[0.5; 48]), None);
        assert_eq!(peak_of(&[]), None);
    }
}
