//! What goes between the scheduler and its driver: pages in, visits out, outcomes back.

use crate::importance::Importance;
use crate::look::Seen;
use crate::page::{PageId, SiteId};
use crate::time::{DayKind, Timestamp};

/// Which local clock a page lives by; handed out by `Scheduler::add_clock`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClockId(pub u16);

/// What a driver knows of a page when it adds it.
#[derive(Clone, PartialEq, Debug)]
pub struct PageInfo {
    /// Whose politeness counts.
    pub site: SiteId,
    /// omega(P): PageRank times what the user says. Not finite or negative counts as 0.
    pub weight: f32,
    /// The site's local time.
    pub clock: ClockId,
    /// Pages with the same hint (a hash of site, directory and depth, say) are expected to behave alike.
    pub group: u64,
    /// The true rates, where an experiment knows them.
    pub known: Option<KnownPattern>,
}

impl PageInfo {
    /// A page of weight 1 on the clock of UTC.
    pub fn of_site(site: SiteId) -> PageInfo {
        PageInfo { site, weight: 1.0, clock: ClockId(0), group: u64::from(site.0), known: None }
    }
}

/// Rates and importances by bucket: the periods of a workday, then those of any other day.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownPattern {
    /// Changes an hour.
    pub rates: Vec<f32>,
    /// Mean importance of a change.
    pub importance: Vec<f32>,
}

/// The scheduler's request: fetch this page now.
#[derive(Clone, PartialEq, Debug)]
pub struct Visit {
    /// Which page.
    pub page: PageId,
    /// Whose politeness counts.
    pub site: SiteId,
    /// When the plan meant it to happen; never later than the `now` it was asked with.
    pub at: Timestamp,
    /// Why, as data; log and dashboard show it.
    pub reason: Reason,
}

/// Why a visit is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// Never captured before.
    FirstCapture,
    /// The policy ranked it among the best of this slot.
    Urgent {
        /// What ranked it; comparable within one slot only.
        urgency: f32,
        /// Importance of the change that is expected since the last visit.
        expected: Importance,
        /// The last visit.
        since: Timestamp,
    },
    /// Seen longest ago: the share of the budget that keeps every page from starving.
    Oldest {
        /// The last visit.
        since: Timestamp,
    },
    /// A feed, a sitemap or a push said that it changed.
    Notice,
    /// An earlier attempt failed; this is another.
    Retry {
        /// How many attempts failed in a row.
        n_failures: u16,
    },
}

/// The driver's answer to a [`Visit`].
#[derive(Clone, PartialEq, Debug)]
pub enum VisitOutcome {
    /// Another content than at the last visit; a first capture is `Changed` with [`Importance::FULL`].
    Changed(Importance),
    /// The same content: 304, equal payload, or nothing but noise.
    Unchanged,
    /// Nothing came back that could be compared; the host may have said when to ask again.
    Failed {
        /// Not before this instant.
        retry_at: Option<Timestamp>,
    },
    /// It will not come back: 404, 410, excluded by robots.txt. Probed rarely.
    Gone,
}

impl From<Seen> for VisitOutcome {
    /// The one way in which what was seen becomes what the scheduler learns.
    fn from(seen: Seen) -> VisitOutcome {
        match seen {
            Seen::First => VisitOutcome::Changed(Importance::FULL),
            Seen::Gone => VisitOutcome::Gone,
            seen if seen.is_change() => VisitOutcome::Changed(seen.importance()),
            _ => VisitOutcome::Unchanged,
        }
    }
}

/// The hours in which a page usually changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peak {
    /// On which days.
    pub kind: DayKind,
    /// First local hour of the busiest stretch.
    pub from_hour: f32,
    /// End of the stretch.
    pub to_hour: f32,
    /// How many times the page's mean rate it has then.
    pub ratio: f32,
}

/// A page and why it is ranked where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// Which page.
    pub page: PageId,
    /// Its site.
    pub site: SiteId,
    /// Why it would be visited.
    pub reason: Reason,
    /// What ranked it; comparable within one slot only.
    pub urgency: f32,
    /// Importance of the change that is expected since the last visit.
    pub expected: Importance,
    /// How many changes are expected since the last visit.
    pub n_expected: f32,
    /// Believed changes a day.
    pub changes_per_day: f32,
    /// When it usually changes, if that is distinct.
    pub peak: Option<Peak>,
    /// Visits from which this was learned.
    pub n_visits: u32,
    /// Whether the budget of this slot reaches it.
    pub is_planned: bool,
}
