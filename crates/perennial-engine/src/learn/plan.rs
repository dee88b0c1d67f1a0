//! A scheduler that has learned -> what it will do next, with the reason of each visit in words.

use std::collections::HashSet;

use perennial_core::feed::polling::PollLimits;
use perennial_core::http::verdict::Identity;
use perennial_core::schedule::{Belief, Budget, Ranked, Reason, ReasonContext, Scheduler, SkipRule};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::Serialize;

use super::{FollowedSites, publishing};
use perennial_archive::Archive;
use perennial_archive::store::{OVERALL, ObservationOrder, Selection, Store};

/// How far ahead visits are foreseen.
pub const AHEAD: Span = Span::from_hours(24);
/// How far ahead where less than one visit a day is made.
pub const FAR_AHEAD: Span = Span::from_hours(30 * 24);

/// The next visit of a page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Visit")]
pub struct NextVisit {
    /// Address of the page.
    pub url: String,
    /// When; none where it is later than the plan reaches, or nothing is known of it.
    pub at: Option<String>,
    /// What the page is ranked by; only urgencies of one slot can be compared.
    pub urgency: f32,
    /// Importance of the change that is expected since the last visit.
    pub expected_importance: f64,
    /// How many changes are expected since then.
    pub expected_changes: f32,
    /// Changes a day that the scheduler believes in.
    pub changes_per_day: f32,
    /// Visits from which this was learned.
    pub n_visits: u32,
    /// Whether the plan has the visit.
    pub planned: bool,
    /// Whether there is no page at the address, as far as is known.
    pub probe: bool,
    /// Whether it is a feed, which is polled beside the visits of pages.
    pub feed: bool,
    /// Why it is visited then, in words.
    pub reason: String,
}

/// A budget, and where it is from.
#[derive(Clone, Copy, Debug)]
pub struct PlannedBudget {
    /// Visits in a period.
    pub budget: Budget,
    /// Where it is from, in words.
    pub source: &'static str,
}

impl PlannedBudget {
    /// The budget that was given, else that of the settings, else the archive's mean so far.
    pub fn choose(
        archive: &Archive,
        store: &Store,
        given: Option<Budget>,
        at: Timestamp,
    ) -> anyhow::Result<PlannedBudget> {
        let written = archive.settings().crawl.allowance.visits;
        Ok(match (given, written) {
            (Some(budget), _) => PlannedBudget { budget, source: "--budget" },
            (None, Some(budget)) => PlannedBudget { budget, source: "perennial.toml" },
            (None, None) => PlannedBudget {
                budget: Budget::per_hour(observations_per_hour(store, at)?),
                source: "the archive's mean so far, as perennial.toml sets no budget",
            },
        })
    }

    /// Tells a scheduler what was spent already of the period in which an instant lies.
    pub fn record_spent(
        &self,
        store: &Store,
        scheduler: &mut Scheduler,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let period = self.budget.period.as_millis().max(1);
        let since = Timestamp::from_millis(at.as_millis().div_euclid(period).saturating_mul(period));
        scheduler.set_spent(store.spent(OVERALL, since)?.0, at);
        Ok(())
    }
}

/// The pace of the archive so far, at least one visit an hour.
fn observations_per_hour(store: &Store, at: Timestamp) -> anyhow::Result<f64> {
    let (mut n_looks, mut first) = (0u64, at);
    store.observations(Selection::Pages, ObservationOrder::ByPage, at, |observation| {
        n_looks += 1;
        first = first.min(observation.time);
        Ok(())
    })?;
    Ok((n_looks as f64 / (at - first).as_hours_f64().max(1.0)).max(1.0))
}

/// The next visit of each page, soonest first, and then the pages whose visits come later than that.
pub struct VisitPlan {
    /// Visits of pages.
    pub visits: Vec<(Option<Timestamp>, Ranked)>,
    /// Addresses without a page.
    pub probes: Vec<(Option<Timestamp>, Ranked)>,
    /// How many of those there are.
    pub n_probes: usize,
}

impl VisitPlan {
    /// Foresees the visits from an instant on, at most `top` pages.
    pub fn new(scheduler: &Scheduler, from: Timestamp, top: usize) -> VisitPlan {
        let (mut visits, mut listed) = (Vec::new(), HashSet::<PageId>::new());
        let (probes, n_probes) = scheduler.waiting_probes(top);
        let are_probes: HashSet<PageId> = probes.iter().map(|(_, ranked)| ranked.page).collect();
        let n_pages = scheduler.n_pages() - n_probes;
        scheduler.foresee(from, from + AHEAD, |at, ranked| {
            let is_page = ranked.reason != Reason::Probe && !are_probes.contains(&ranked.page);
            if is_page && visits.len() < top && listed.insert(ranked.page) {
                visits.push((Some(at), ranked));
            }
            visits.len() < top.min(n_pages)
        });
        let n_ranked = top.saturating_add(listed.len()).min(scheduler.n_pages());
        let later = scheduler.ranking(from, n_ranked).into_iter();
        let later = later.filter(|ranked| {
            ranked.reason != Reason::Probe
                && !are_probes.contains(&ranked.page)
                && !listed.contains(&ranked.page)
        });
        let n_later = top - visits.len();
        visits.extend(later.take(n_later).map(|ranked| (None, ranked)));
        VisitPlan { visits, probes, n_probes }
    }
}

/// What is needed to describe a visit to people.
pub struct VisitDescriber<'a> {
    /// The archive's state.
    pub store: &'a Store,
    /// The user's settings.
    pub followed: &'a FollowedSites,
}

impl VisitDescriber<'_> {
    /// The next visits in order, as they are made if each finds its page as it was.
    pub fn next(&self, scheduler: &Scheduler, at: Timestamp, n: usize) -> anyhow::Result<Vec<NextVisit>> {
        let mut visits = Vec::new();
        scheduler.foresee(at, at + FAR_AHEAD, |at, ranked| {
            visits.push((at, ranked));
            visits.len() < n
        });
        visits.iter().map(|(at, ranked)| self.entry(Some(*at), ranked)).collect()
    }

    /// One visit in words.
    pub fn entry(&self, at: Option<Timestamp>, ranked: &Ranked) -> anyhow::Result<NextVisit> {
        let url = self.store.url_of(ranked.page)?;
        let probe = self.no_page(ranked)?;
        let reason = match &probe {
            Some(why) => why.clone(),
            None => self.reason(ranked, &url)?,
        };
        Ok(NextVisit {
            at: at.map(|at| at.to_rfc3339()),
            urgency: ranked.urgency,
            expected_importance: ranked.expected.get(),
            expected_changes: ranked.n_expected,
            changes_per_day: ranked.changes_per_day,
            n_visits: ranked.n_visits,
            planned: at.is_some() && probe.is_none(),
            probe: probe.is_some(),
            feed: false,
            reason,
            url,
        })
    }

    fn reason(&self, ranked: &Ranked, url: &str) -> anyhow::Result<String> {
        let rule = match ranked.reason {
            Reason::Skipped { rule, .. } | Reason::DirectoryProbe { rule, .. } => Some(rule),
            _ => None,
        };
        let excluded_by = match rule {
            Some(SkipRule::Excluded { by }) => Some(self.store.url_of(by)?),
            _ => None,
        };
        Ok(ranked.reason.describe(&ReasonContext {
            url,
            clock: self.followed.local_clock(url).as_ref(),
            habit: ranked.habit().as_deref(),
            excluded_by: excluded_by.as_deref(),
            cause: self.item(ranked)?.as_deref(),
        }))
    }

    /// The next poll of each feed that is followed.
    pub fn polls(&self, at: Timestamp) -> anyhow::Result<Vec<NextVisit>> {
        let mut polls = Vec::new();
        for feed in self.store.feeds_to_poll()? {
            if !feed.seed.is_some_and(|seed| self.followed.has_seed(seed)) {
                continue;
            }
            let publishing = publishing(self.store, &feed)?;
            let last = feed.visited.unwrap_or(feed.last_read);
            let due = publishing.next_poll(last, &PollLimits::default()).max(at);
            let a_day = publishing.items_per_hour(at.max(last)).map(|rate| 24.0 * rate);
            polls.push(NextVisit {
                at: Some(due.to_rfc3339()),
                urgency: 0.0,
                expected_importance: 0.0,
                expected_changes: 0.0,
                changes_per_day: a_day.unwrap_or(0.0) as f32,
                n_visits: feed.n_reads as u32,
                planned: true,
                probe: false,
                feed: true,
                reason: match a_day {
                    Some(a_day) => format!("the feed is due, {a_day:.1} items a day"),
                    None => "the feed is due, too few dates for a rate".to_owned(),
                },
                url: feed.url,
            });
        }
        Ok(polls)
    }

    /// The item of a feed that causes the visit, if one does.
    fn item(&self, ranked: &Ranked) -> anyhow::Result<Option<String>> {
        if !matches!(ranked.reason, Reason::FirstCapture | Reason::Announced) {
            return Ok(None);
        }
        let item = self.store.item_of_page(ranked.page, None)?;
        Ok(item.map(|item| format!("{} ({})", item.title, item.feed)))
    }

    /// Why there is no page, where there is none.
    fn no_page(&self, ranked: &Ranked) -> anyhow::Result<Option<String>> {
        if ranked.reason != Reason::Probe {
            return Ok(None);
        }
        let identity = self.store.target(ranked.page)?.and_then(|target| target.identity);
        Ok(Some(match identity.filter(|identity| !identity.is_page()) {
            Some(Identity::Redirect { target, .. }) => format!("leads to {target}"),
            Some(Identity::Alias(other)) => format!("is the same page as {other}"),
            None if ranked.n_visits == 0 => "never tried: links like this one lead nowhere".to_owned(),
            _ => Reason::Probe.describe(&ReasonContext::default()),
        }))
    }
}

/// The importance of change that the scheduler expects in each period of a workday, and of any other day: the probability of a
/// change times its importance.
pub fn expected_by_period(belief: &Belief) -> [Vec<f64>; 2] {
    let n_periods = (belief.rates.len() / 2).max(1);
    let hours = 24.0 / n_periods as f64;
    let mut omega = belief
        .rates
        .iter()
        .zip(&belief.importance)
        .map(|(rate, importance)| -(-f64::from(*rate) * hours).exp_m1() * f64::from(*importance));
    let workday = omega.by_ref().take(n_periods).collect();
    [workday, omega.collect()]
}

/// How sure that is: it grows with the observations, three in each period make it a half.
pub fn confidence(belief: &Belief) -> f64 {
    let n_periods = (belief.rates.len() / 2).max(1) as u32;
    f64::from(belief.n_visits) / f64::from(belief.n_visits + 3 * n_periods)
}
