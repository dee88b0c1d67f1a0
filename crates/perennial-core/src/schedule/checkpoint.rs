//! What a scheduler learned about shadow prices during a crawl <-> a value that survives a restart.
//!
//! A new scheduler learns from stored observations how pages change. Observations do not contain what a visit was
//! worth lately, how much each measure counts, or when sites were swept. Learning these takes days, so a restart, or
//! a command that shows the plan, starts from the crawl's values.

use serde::{Deserialize, Serialize};

use super::balance::MeanOverTime;
use super::{Goal, Scheduler, Strategy};
use crate::time::{Span, Timestamp};
use crate::url::SiteId;

/// Prices of a crawl that ended longer ago are outdated.
const LONGEST_PAUSE: Span = Span::from_hours(7 * 24);

/// Scheduler state that observations do not contain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The start of the hour in which the state was saved, in milliseconds since the Unix epoch.
    at: i64,
    /// A price applies to its own strategy and goal only.
    strategy: String,
    goal: String,
    /// Weight of Definition 5.13.
    every_page: f32,
    base: f32,
    highest: f32,
    found: MeanOverTime,
    shares: MeanOverTime,
    /// The mean price of a visit that decides about directories.
    directory_price: Option<f32>,
    sites: Vec<SweptSite>,
}

/// When a site was last swept, and how often.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct SweptSite {
    site: u32,
    #[serde(rename = "pictured_at")]
    swept_at: i64,
    gap_hours: f32,
}

impl Checkpoint {
    /// Whether a scheduler can have written these numbers.
    fn is_sound(&self) -> bool {
        let means = [self.found, self.shares];
        let gaps = self.sites.iter().map(|site| site.gap_hours);
        let shadow_prices = [self.every_page, self.base, self.highest, self.directory_price.unwrap_or(0.0)];
        shadow_prices.into_iter().chain(gaps).all(|number| number.is_finite() && number >= 0.0)
            && means.iter().all(MeanOverTime::is_sound)
    }
}

impl Scheduler {
    /// The start of the current hour; `None` before the first call of [`Scheduler::next_visit`].
    pub fn hour_start(&self) -> Option<Timestamp> {
        self.has_begun().then(|| self.instant(self.next_hour) - Span::from_hours(1))
    }

    /// The state to save, once prices are known.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let at = self.hour_start()?.as_millis();
        let balance = &self.balance;
        let sites = self.sites.all.iter().filter(|site| site.swept_at > 0).map(|site| SweptSite {
            site: site.id.0,
            swept_at: self.instant(site.swept_at).as_millis(),
            gap_hours: site.gap_hours,
        });
        Some(Checkpoint {
            at,
            strategy: self.config.strategy.name().to_owned(),
            goal: self.config.goal.name().to_owned(),
            every_page: balance.every_page,
            base: balance.base,
            highest: balance.highest,
            found: balance.found,
            shares: balance.shares,
            directory_price: self.directories.shadow_price,
            sites: sites.collect(),
        })
    }

    /// Continues with the prices of an earlier scheduler if they have the same goal and are recent. Call it after
    /// [`Scheduler::learn_now`].
    pub fn restore(&mut self, checkpoint: &Checkpoint) {
        let is_same = checkpoint.strategy.parse::<Strategy>() == Ok(self.config.strategy)
            && checkpoint.goal.parse::<Goal>() == Ok(self.config.goal);
        let pause = self.now - Timestamp::from_millis(checkpoint.at);
        if !is_same || !checkpoint.is_sound() || pause < Span::ZERO || pause > LONGEST_PAUSE {
            return;
        }
        let balance = &mut self.balance;
        (balance.every_page, balance.base, balance.highest) =
            (checkpoint.every_page, checkpoint.base, checkpoint.highest);
        (balance.found, balance.shares) = (checkpoint.found, checkpoint.shares);
        (balance.shadow_price, balance.least_gain) = (checkpoint.base, 0.5 * checkpoint.base);
        self.directories.shadow_price = checkpoint.directory_price;
        for known in &checkpoint.sites {
            let swept_at = self.secs(Timestamp::from_millis(known.swept_at));
            if let Some(site) = self.sites.known(SiteId(known.site)) {
                (site.swept_at, site.gap_hours) = (swept_at, known.gap_hours);
            }
        }
        self.recompute_values();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::importance::Importance;
    use crate::schedule::{Budget, PageInfo, ScheduleConfig, Visit, VisitOutcome};
    use crate::url::PageId;

    fn start() -> Timestamp {
        Timestamp::parse("2026-03-02").unwrap()
    }

    fn scheduler(goal: Goal) -> Scheduler {
        let budget = Some(Budget { visits: 60.0, period: Span::from_hours(24) });
        let mut scheduler =
            Scheduler::new(ScheduleConfig { goal, budget, ..ScheduleConfig::default() }, 7, start());
        (0..30).for_each(|page| {
            scheduler.add_page(PageId(page), PageInfo::for_site(SiteId(page / 10)));
        });
        scheduler
    }

    /// Page n changes every n + 2 hours.
    fn outcome(page: PageId, before: Timestamp, now: Timestamp) -> VisitOutcome {
        let version = |at: Timestamp| (at - start()).as_millis() / 3_600_000 / i64::from(page.0 + 2);
        match version(before) == version(now) {
            true => VisitOutcome::Unchanged,
            false => VisitOutcome::Changed(Importance::new(0.3)),
        }
    }

    /// Crawls for some hours; all visits with their times.
    fn crawl(
        scheduler: &mut Scheduler,
        from: Timestamp,
        hours: i64,
        announced: &mut Vec<(Timestamp, PageId, VisitOutcome)>,
    ) -> Vec<(Timestamp, Visit)> {
        let (mut now, end, mut visits) = (from, from + Span::from_hours(hours), Vec::new());
        while now < end {
            while let Some(visit) = scheduler.next_visit(now) {
                let before = announced
                    .iter()
                    .rev()
                    .find(|(_, page, _)| *page == visit.page)
                    .map_or(start(), |(at, ..)| *at);
                let outcome = outcome(visit.page, before, now);
                scheduler.record(visit.page, outcome.clone(), now);
                announced.push((now, visit.page, outcome));
                visits.push((now, visit));
            }
            now = scheduler.next_wakeup().unwrap().max(now + Span::from_millis(1));
        }
        visits
    }

    #[test]
    fn a_restart_goes_on_with_the_shadow_prices_of_the_crawl() {
        for goal in [Goal::Balanced, Goal::Importance] {
            let (mut first, mut announced) = (scheduler(goal), Vec::new());
            crawl(&mut first, start(), 24 * 9 + 5, &mut announced);
            let now = start() + Span::from_hours(24 * 9 + 5);
            let text = serde_json::to_string(&first.checkpoint().unwrap()).unwrap();
            let mut second = scheduler(goal);
            announced.iter().for_each(|(at, page, outcome)| second.record(*page, outcome.clone(), *at));
            second.learn_now(now);
            second.restore(&serde_json::from_str(&text).unwrap());
            let shadow_prices =
                |scheduler: &Scheduler| (scheduler.balance.base, scheduler.balance.every_page);
            assert_eq!(shadow_prices(&second), shadow_prices(&first), "{goal:?}");
            let gaps = |scheduler: &Scheduler| -> Vec<(SiteId, f32)> {
                scheduler.sites.all.iter().map(|site| (site.id, site.gap_hours)).collect()
            };
            assert_eq!(gaps(&second), gaps(&first));
        }
    }

    #[test]
    fn shadow_prices_of_another_goal_or_time_and_broken_ones_are_left_alone() {
        let (mut first, mut announced) = (scheduler(Goal::Balanced), Vec::new());
        crawl(&mut first, start(), 100, &mut announced);
        let taken = first.checkpoint().unwrap();
        let base_after = |goal: Goal, hours: i64, checkpoint: &Checkpoint| {
            let mut second = scheduler(goal);
            second.learn_now(start() + Span::from_hours(hours));
            second.restore(checkpoint);
            second.balance.base
        };
        assert_eq!(base_after(Goal::Balanced, 101, &taken), taken.base);
        let broken = Checkpoint { base: f32::NAN, ..taken.clone() };
        assert_eq!(base_after(Goal::Balanced, 101, &broken), 0.0);
        assert_eq!(base_after(Goal::Coherent, 101, &taken), 0.0);
        assert_eq!(base_after(Goal::Balanced, 90, &taken), 0.0);
        assert_eq!(base_after(Goal::Balanced, 101 + 8 * 24, &taken), 0.0);
    }
}
