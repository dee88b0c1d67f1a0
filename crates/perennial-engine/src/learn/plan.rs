//! The next visits that a scheduler plans, each with its reason in words.

use std::collections::HashSet;

use perennial_core::feed::polling::PollLimits;
use perennial_core::http::response::Identity;
use perennial_core::schedule::units::parse_budget;
use perennial_core::schedule::{Belief, Budget, RankedPage, Reason, ReasonContext, Scheduler, SkipRule};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FollowedSites, publishing};
use perennial_archive::store::{OVERALL, ObservationOrder, ObservationSelection, Store};
use perennial_archive::{Archive, CrawlRecord};

/// How far ahead visits are planned.
pub const AHEAD: Span = Span::from_hours(24);
/// The same for archives with less than one visit per day.
pub const FAR_AHEAD: Span = Span::from_hours(30 * 24);

/// The next visit of a page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Visit")]
pub struct NextVisit {
    /// URL of the page.
    pub url: String,
    /// When; none if it is beyond the plan's horizon or unknown.
    pub at: Option<String>,
    /// The rank of the page. Only urgencies of the same slot are comparable.
    pub urgency: f32,
    /// Importance of the change expected since the last visit.
    pub expected_importance: f64,
    /// Number of changes expected since then.
    pub expected_changes: f32,
    /// Estimated changes per day.
    pub changes_per_day: f32,
    /// Visits that the estimate is based on.
    pub n_visits: u32,
    /// Whether the visit is in the plan.
    pub planned: bool,
    /// Whether the URL is a probe: as far as is known, it has no page.
    pub probe: bool,
    /// Whether it is a feed. Feeds are polled in addition to page visits.
    pub feed: bool,
    /// The reason for the visit, in words.
    pub reason: String,
}

/// A budget and its origin.
#[derive(Clone, Copy, Debug)]
pub struct PlannedBudget {
    /// `None` if the crawl has no limit of visits.
    pub budget: Option<Budget>,
    /// The origin, in words.
    pub source: &'static str,
}

impl PlannedBudget {
    /// The given budget, otherwise that of the last crawl, of the settings, or the archive's mean so far.
    pub fn choose(
        archive: &Archive,
        store: &Store,
        given: Option<Budget>,
        at: Timestamp,
    ) -> anyhow::Result<PlannedBudget> {
        let written = archive.settings().crawl.allowance.visits;
        let crawl = CrawlRecord::load(archive.root());
        let of_crawl = crawl.as_ref().filter(|crawl| crawl.is_budget_given);
        let of_crawl = of_crawl.and_then(|crawl| {
            let budget = parse_budget(crawl.budget.as_deref()?, Span::from_hours(1)).ok()?;
            let is_running = CrawlRecord::of_running(archive.root()).is_some();
            Some((
                budget,
                if is_running { "--budget of the running crawl" } else { "--budget of the last crawl" },
            ))
        });
        let (budget, source) = match (given, of_crawl, written) {
            (Some(budget), ..) => (Some(budget), "--budget"),
            (None, Some((budget, source)), _) => (Some(budget), source),
            (None, None, Some(budget)) => (Some(budget), "perennial.toml"),
            (None, None, None) if crawl.is_some() => (None, "perennial.toml sets none"),
            (None, None, None) => (
                Some(Budget::per_hour(observations_per_hour(store, at)?)),
                "the archive's mean so far, because perennial.toml sets no budget",
            ),
        };
        Ok(PlannedBudget { budget, source })
    }

    /// As in "100.0 visits per hour (perennial.toml)".
    pub fn describe(&self) -> String {
        match self.budget {
            Some(budget) => {
                format!("{:.1} visits per hour ({})", budget.visits_in(Span::from_hours(1)), self.source)
            }
            None => "no budget".to_owned(),
        }
    }

    /// Tells a scheduler how much of the current period's budget is spent.
    pub fn record_spent(
        &self,
        store: &Store,
        scheduler: &mut Scheduler,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let Some(budget) = self.budget else { return Ok(()) };
        let period = budget.period.as_millis().max(1);
        let since = Timestamp::from_millis(at.as_millis().div_euclid(period).saturating_mul(period));
        scheduler.set_spent(store.spent(OVERALL, since)?.0, at);
        Ok(())
    }
}

/// The archive's mean rate so far, at least one visit per hour.
fn observations_per_hour(store: &Store, at: Timestamp) -> anyhow::Result<f64> {
    let (mut n_observations, mut first) = (0u64, at);
    store.observations(ObservationSelection::Pages, ObservationOrder::ByPage, at, |observation| {
        n_observations += 1;
        first = first.min(observation.time);
        Ok(())
    })?;
    Ok((n_observations as f64 / (at - first).as_hours_f64().max(1.0)).max(1.0))
}

/// The plan that the running crawl published itself, soonest first; empty without one.
pub fn published_plan(archive: &Archive, at: Timestamp) -> Vec<NextVisit> {
    let Some(crawl) = CrawlRecord::of_running(archive.root()) else { return Vec::new() };
    let visits = crawl.plan.into_iter().filter_map(|visit| serde_json::from_value(visit).ok());
    // A visit that was due in the meantime was made, or its host is busy.
    let is_ahead = |visit: &NextVisit| {
        visit.at.as_deref().and_then(|due| Timestamp::parse(due).ok()).is_some_and(|due| due >= at)
    };
    visits.filter(is_ahead).collect()
}

/// The plan of the running crawl, with what was computed for the pages that it does not contain.
pub fn with_published(published: Vec<NextVisit>, computed: Vec<NextVisit>) -> Vec<NextVisit> {
    let last = published.iter().filter_map(|visit| visit.at.clone()).max();
    let known: HashSet<String> = published.iter().map(|visit| visit.url.clone()).collect();
    let others = computed.into_iter().filter(|visit| !known.contains(&visit.url)).map(|visit| {
        // The crawl itself would have listed an earlier visit of a page.
        let is_later = visit.feed || visit.at.is_none() || last.is_none() || visit.at > last;
        let at = if is_later { visit.at.clone() } else { None };
        NextVisit { planned: visit.planned && at.is_some(), at, ..visit }
    });
    published.iter().cloned().chain(others).collect()
}

/// The next visit of each page, soonest first, followed by pages whose visits are beyond the horizon.
pub struct VisitPlan {
    pub visits: Vec<(Option<Timestamp>, RankedPage)>,
    /// URLs without a page.
    pub probes: Vec<(Option<Timestamp>, RankedPage)>,
    /// Number of all probes.
    pub n_probes: usize,
}

impl VisitPlan {
    /// Plans the visits from an instant on, for at most `top` pages.
    pub fn new(scheduler: &Scheduler, from: Timestamp, top: usize) -> VisitPlan {
        let (mut visits, mut listed) = (Vec::new(), HashSet::<PageId>::new());
        let (probes, n_probes) = scheduler.waiting_probes(top);
        let are_probes: HashSet<PageId> = probes.iter().map(|(_, ranked)| ranked.page).collect();
        let n_pages = scheduler.n_pages() - n_probes;
        scheduler.forecast(from, from + AHEAD, |at, ranked| {
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

/// Describes visits to people.
pub struct VisitDescriber<'a> {
    pub store: &'a Store,
    pub followed: &'a FollowedSites,
}

impl VisitDescriber<'_> {
    /// The next visits in order, assuming that no visit finds a change.
    pub fn next(&self, scheduler: &Scheduler, at: Timestamp, n: usize) -> anyhow::Result<Vec<NextVisit>> {
        let mut visits = Vec::new();
        scheduler.forecast(at, at + FAR_AHEAD, |at, ranked| {
            visits.push((at, ranked));
            visits.len() < n
        });
        visits.iter().map(|(at, ranked)| self.entry(Some(*at), ranked)).collect()
    }

    /// The description of one visit.
    pub fn entry(&self, at: Option<Timestamp>, ranked: &RankedPage) -> anyhow::Result<NextVisit> {
        let url = self.store.page_url(ranked.page)?;
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

    fn reason(&self, ranked: &RankedPage, url: &str) -> anyhow::Result<String> {
        let rule = match ranked.reason {
            Reason::Skipped { rule, .. } | Reason::DirectoryProbe { rule, .. } => Some(rule),
            _ => None,
        };
        let excluded_by = match rule {
            Some(SkipRule::Excluded { by }) => Some(self.store.page_url(by)?),
            _ => None,
        };
        Ok(ranked.reason.describe(&ReasonContext {
            url,
            clock: self.followed.local_clock(url).as_ref(),
            // Before that, the hours are those of the pages that it was compared with.
            habit: ranked.habit().filter(|_| ranked.n_visits >= ENOUGH_VISITS).as_deref(),
            excluded_by: excluded_by.as_deref(),
            cause: self.item(ranked)?.as_deref(),
        }))
    }

    /// The next poll of each followed feed.
    pub fn polls(&self, at: Timestamp) -> anyhow::Result<Vec<NextVisit>> {
        let mut polls = Vec::new();
        for feed in self.store.feeds_to_poll()? {
            if !feed.seed.is_some_and(|seed| self.followed.has_seed(seed)) {
                continue;
            }
            let publishing = publishing(self.store, &feed)?;
            let last = feed.visited.unwrap_or(feed.last_read);
            let interval = feed.seed.and_then(|seed| self.followed.poll_interval(&feed.url, seed));
            let due = match &interval {
                Some((every, clock)) => every.next(clock, last),
                None => publishing.next_poll(last, &PollLimits::default()),
            };
            let due = due.max(at);
            let a_day = publishing.items_per_hour(last).map(|rate| 24.0 * rate);
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
                    _ if interval.is_some() => "the feed has an interval of its own".to_owned(),
                    Some(a_day) => format!("the feed is due, {a_day:.1} items per day"),
                    None => "the feed is due, too few dated items for a rate".to_owned(),
                },
                url: feed.url,
            });
        }
        Ok(polls)
    }

    /// The feed item that causes the visit, if any.
    fn item(&self, ranked: &RankedPage) -> anyhow::Result<Option<String>> {
        if !matches!(ranked.reason, Reason::FirstCapture | Reason::Announced) {
            return Ok(None);
        }
        let item = self.store.page_item(ranked.page, None)?;
        Ok(item.map(|item| format!("{} ({})", item.title, item.feed)))
    }

    /// Why the URL has no page; `None` if it has one.
    fn no_page(&self, ranked: &RankedPage) -> anyhow::Result<Option<String>> {
        if ranked.reason != Reason::Probe {
            return Ok(None);
        }
        let identity = self.store.target(ranked.page)?.and_then(|target| target.identity);
        Ok(Some(match identity.filter(|identity| !identity.is_page()) {
            Some(Identity::Redirect { target, .. }) => format!("redirects to {target}"),
            Some(Identity::Alias(other)) => format!("is the same page as {other}"),
            None if ranked.n_visits == 0 => "never tried: similar links lead to missing pages".to_owned(),
            _ => Reason::Probe.describe(&ReasonContext::default()),
        }))
    }
}

/// With fewer visits, nothing is said about how often a page changes.
pub const ENOUGH_VISITS: u32 = 10;

/// Whether a page was visited often enough to say how often it changes.
pub fn is_rate_known(belief: &Belief) -> bool {
    belief.n_visits >= ENOUGH_VISITS
}

/// Whether it was also visited for long enough, from its first to its last capture, to say at which hours.
pub fn are_hours_known(belief: &Belief, observed: Span) -> bool {
    is_rate_known(belief) && observed >= Span::from_hours(24)
}

/// Expected importance of change per period, for workdays and other days: the probability of a change times its
/// importance.
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

/// Confidence in that estimate, 0 to 1. Three observations per period give one half.
pub fn confidence(belief: &Belief) -> f64 {
    let n_periods = (belief.rates.len() / 2).max(1) as u32;
    f64::from(belief.n_visits) / f64::from(belief.n_visits + 3 * n_periods)
}
