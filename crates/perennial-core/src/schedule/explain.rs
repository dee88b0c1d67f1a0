//! The scheduler's state -> its estimates for a page and the reasons for the page's rank, for people.

use super::pages::{ABSENT, CHANGED, FRESH, NONE, PENDING, PROMISED, SKIPPED, VACANT};
use super::{Peak, RankedPage, Reason, Scheduler};
use crate::page::importance::Importance;
use crate::pattern::calendar::DayFactors;
use crate::time::{DayKind, Span, Timestamp};
use crate::url::PageId;

/// Hours count as a peak if their rate is this many times the mean.
const PEAK_RATIO: f32 = 1.5;

/// The scheduler's estimate for a page.
#[derive(Clone, PartialEq, Debug)]
pub struct Belief {
    /// Changes per hour: first the periods of a workday, then those of any other day.
    pub rates: Vec<f32>,
    /// Mean importance of a change, in the same order.
    pub importance: Vec<f32>,
    /// Number of visits after the first.
    pub n_visits: u32,
    /// Number of those that found a change.
    pub n_changed: u32,
    /// The shared pattern that fits best, by number, and its posterior probability.
    pub shape: Option<(u8, f32)>,
    /// How much busier than usual the page was recently.
    pub spell: f32,
    /// How much busier than usual each day of the week and of the month is, if days matter.
    pub days: Option<DayFactors>,
}

impl Belief {
    /// Changes per day, averaged over the week.
    pub fn changes_per_day(&self) -> f32 {
        let (workday, rest) = self.rates.split_at(self.rates.len() / 2);
        let mean = |rates: &[f32]| rates.iter().sum::<f32>() / rates.len().max(1) as f32;
        24.0 * (5.0 * mean(workday) + 2.0 * mean(rest)) / 7.0
    }
}

impl Scheduler {
    pub fn belief(&self, page: PageId) -> Option<Belief> {
        let at = self.pages.position(page)?;
        let n_buckets = self.learner.mixture.n_buckets();
        let (rates, importance) = (0..n_buckets).map(|b| self.learner.estimated(&self.pages, at, b)).unzip();
        let evidence = self.learner.evidence.get(self.pages.evidence[at] as usize);
        Some(Belief {
            rates,
            importance,
            n_visits: evidence.map_or(0, |e| e.n_visits),
            n_changed: evidence.map_or(0, |e| e.n_changed),
            shape: evidence.filter(|e| e.shape.1 > 0.0).map(|e| e.shape),
            spell: self.pages.spell[at],
            days: self.learner.rows().calendar(self.pages.row[at]).cloned(),
        })
    }

    /// The number of changes expected between two instants, without spells. `None` for a page without an observed
    /// change, because its estimate comes from other pages.
    pub fn expected_changes(&self, page: PageId, from: Timestamp, to: Timestamp) -> Option<f64> {
        let at = self.pages.position(page)?;
        if self.pages.sweep_flags[at] & CHANGED == 0 || self.pages.evidence[at] == NONE {
            return None;
        }
        let clock = &self.clocks[usize::from(self.pages.clock[at])];
        let mut expected = 0.0;
        let span = (self.secs(from), self.secs(to.max(from)));
        self.learner.each_piece(&self.pages, at, clock, span, |_, piece| {
            let (rate, _) = self.learner.usual(&self.pages, at, usize::from(piece.bucket));
            expected += f64::from(rate) * f64::from(piece.hours) * f64::from(piece.times);
        });
        Some(expected)
    }

    /// The pages by what a visit would gain at an instant: new pages, then the others by their gain. Pages in flight
    /// follow, and URLs without a page are last. This changes no state.
    pub fn ranking(&self, now: Timestamp, n: usize) -> Vec<RankedPage> {
        let mut then = self.clone();
        then.now = then.now.max(now);
        let secs = then.secs(then.now);
        then.outlook.extend(&then.clocks, then.base, secs, then.config.n_periods);
        let is_there = |at: &usize| !self.pages.has(*at, FRESH | VACANT);
        (0..self.pages.len()).filter(is_there).for_each(|at| then.carry(at));
        then.most_urgent(n).into_iter().map(|at| then.ranked(at, None)).collect()
    }

    /// The page that will probably be visited next, and when at the earliest: the first new page, the best known one, the
    /// next that can climb, or one with an interval of its own. It costs nothing, unlike a forecast.
    pub fn next_expected(&self) -> Option<(Timestamp, RankedPage)> {
        let is_new =
            |at: &usize| self.pages.has(*at, FRESH) && !self.pages.has(*at, PENDING | ABSENT | VACANT);
        let new = self.fresh.front().map(|at| *at as usize).filter(is_new);
        let best = new.or_else(|| self.ladder.top().map(|(at, _)| at));
        let best = best.and_then(|at| Some((self.next_wakeup()?, at)));
        let climbing = || self.ladder.timers.first().map(|(when, at)| (self.instant(when), at));
        let candidates = best.or_else(climbing).into_iter().chain(self.first_promise());
        let (when, at) = candidates.min()?;
        Some((when.max(self.now), self.ranked(at, Some(self.reason(at)))))
    }

    /// Calls `each` with every visit from `from` up to `until`, in order of time, assuming that no visit finds a
    /// change. Stops when `each` returns `false`. This changes no state.
    pub fn forecast(
        &self,
        from: Timestamp,
        until: Timestamp,
        mut each: impl FnMut(Timestamp, RankedPage) -> bool,
    ) {
        let mut then = self.clone();
        then.config.learn = false;
        let mut now = from;
        while now < until {
            let Some(visit) = then.next_visit(now) else {
                let Some(next) = then.next_wakeup() else { return };
                now = next.max(now + Span::from_millis(1));
                continue;
            };
            let Some(at) = then.pages.position(visit.page) else { continue };
            if !each(now, then.ranked(at, Some(visit.reason))) {
                return;
            }
            then.settle(at, now);
            let is_absent = then.pages.has(at, ABSENT) && !then.is_untried(at);
            match visit.reason {
                Reason::Probe | Reason::Every { .. } if is_absent => then.set_absent(at, then.secs(now)),
                _ => then.record_seen(at, None, then.secs(now)),
            }
            then.place(at);
        }
    }

    /// The URLs without a page that wait for a probe, in order. Each has the instant from which it may be probed, or
    /// `None` if it was never tried because similar links are dead. Returns at most `n`, and the total number.
    pub fn waiting_probes(&self, n: usize) -> (Vec<(Option<Timestamp>, RankedPage)>, usize) {
        let pages = &self.pages;
        let is_waiting = |at: &usize| pages.has(*at, ABSENT) && !pages.has(*at, VACANT | PROMISED);
        let mut waiting: Vec<usize> = (0..pages.len()).filter(is_waiting).collect();
        let n_all = waiting.len();
        let turn = |at: usize| (self.is_untried(at), pages.not_before[at], at);
        waiting.sort_unstable_by_key(|at| turn(*at));
        waiting.truncate(n);
        let due = |at: usize| (!self.is_untried(at)).then(|| self.instant(pages.not_before[at]));
        (waiting.into_iter().map(|at| (due(at), self.ranked(at, None))).collect(), n_all)
    }

    /// The first `n` pages by their urgency.
    fn most_urgent(&self, n: usize) -> Vec<usize> {
        let pages = &self.pages;
        let mut order: Vec<usize> = (0..pages.len()).filter(|&at| !pages.has(at, VACANT)).collect();
        let is_out = |at: usize| (pages.has(at, ABSENT), pages.has(at, SKIPPED), pages.has(at, PENDING));
        let turn = |at: usize| (is_out(at), !pages.has(at, FRESH));
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

    fn ranked(&self, at: usize, planned: Option<Reason>) -> RankedPage {
        let pages = &self.pages;
        let belief = self.belief(pages.id[at]);
        RankedPage {
            page: pages.id[at],
            site: self.site(at),
            reason: planned.unwrap_or_else(|| self.reason(at)),
            urgency: pages.urgency[at],
            expected: Importance::new(f64::from(pages.expected_importance[at])),
            n_expected: pages.expected_changes[at],
            changes_per_day: belief.as_ref().map_or(0.0, Belief::changes_per_day),
            peak: belief.as_ref().and_then(|belief| peak_hours(&belief.rates)),
            days: belief.as_ref().and_then(|belief| belief.days.as_ref()?.habit()),
            n_visits: belief.map_or(0, |belief| belief.n_visits),
            is_planned: planned.is_some(),
        }
    }

    /// Bytes per page in the scheduler, including its part of shared data.
    pub fn bytes_per_page(&self) -> f64 {
        let n = self.pages.len().max(1);
        let shared = self.learner.n_bytes() as f64 / n as f64;
        (super::pages::PageColumns::BYTES_PER_PAGE + super::ladder::Ladder::BYTES_PER_PAGE + 4) as f64
            + shared
    }

    pub fn n_histories(&self) -> usize {
        self.pages.evidence.iter().filter(|&&evidence| evidence != NONE).count()
    }
}

/// The busiest hours on workdays or on other days, if they stand out.
pub fn peak_hours(rates: &[f32]) -> Option<Peak> {
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
    fn peaks_are_written_in_words() {
        let peak = Peak { kind: DayKind::Weekend, from_hour: 14.0, to_hour: 15.0, ratio: 3.0 };
        assert_eq!(peak.to_string(), "14-15h on weekends");
    }

    #[test]
    fn the_forecast_matches_the_visits() {
        use super::super::{Budget, PageInfo, ScheduleConfig, VisitOutcome};
        use crate::url::SiteId;
        let from = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
        let config = ScheduleConfig { budget: Some(Budget::per_hour(3.0)), ..ScheduleConfig::default() };
        let mut scheduler = Scheduler::new(config, 7, from);
        // The URL without a page is on another site, so the other URLs are not doubtful.
        for page in 0..10 {
            scheduler.add_page(PageId(page), PageInfo::for_site(SiteId(page / 9)));
        }
        scheduler.record(PageId(9), VisitOutcome::Absent, from);
        let until = from + Span::from_hours(6);
        let mut foreseen = Vec::new();
        scheduler.forecast(from, until, |at, ranked| {
            foreseen.push((at, ranked.page));
            true
        });
        let (mut done, mut now) = (Vec::new(), from);
        while now < until {
            match scheduler.next_visit(now) {
                Some(visit) => {
                    done.push((now, visit.page));
                    scheduler.record(visit.page, VisitOutcome::Changed(Importance::FULL), now);
                }
                None => now = scheduler.next_wakeup().unwrap(),
            }
        }
        // The nine existing pages come first, once each. Later visits may depend on what was learned.
        assert_eq!(foreseen[..9], done[..9]);
        assert_eq!(foreseen.len(), 18);
        let (probes, n_probes) = scheduler.waiting_probes(5);
        assert_eq!((probes.len(), n_probes, probes[0].1.page), (1, 1, PageId(9)));
        assert_eq!(probes[0].0, Some(from + Span::from_hours(24)));
        assert_eq!(scheduler.ranking(now, 10).last().map(|ranked| ranked.page), Some(PageId(9)));
    }

    #[test]
    fn peaks_wrap_around_midnight() {
        let mut rates = vec![0.1; 48];
        for hour in [23, 0, 1] {
            rates[hour] = 2.0;
        }
        let peak = peak_hours(&rates).unwrap();
        assert_eq!((peak.kind, peak.from_hour, peak.to_hour), (DayKind::Workday, 23.0, 2.0));
        assert_eq!(peak_hours(&[0.5; 48]), None);
        assert_eq!(peak_hours(&[]), None);
    }
}
