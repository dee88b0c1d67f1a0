//! The values that the scheduler and its driver exchange: pages in, visits out, outcomes back.

use crate::page::change_status::ChangeStatus;
use crate::page::importance::Importance;
use crate::pattern::calendar::DayHabit;
use crate::time::{DayKind, Span, Timestamp};
use crate::url::{PageId, SiteId};

use super::{Every, Goal};

/// The local clock of a page; `Scheduler::add_clock` hands it out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClockId(pub u16);

#[derive(Clone, PartialEq, Debug)]
pub struct PageInfo {
    /// The site whose host limits the rate of visits.
    pub site: SiteId,
    /// omega(P): PageRank times the user's weight. A negative or non-finite value counts as 0.
    pub weight: f32,
    pub clock: ClockId,
    /// The site's goal if it differs from the scheduler's. All pages of a site share one goal: that of the page added
    /// last.
    pub goal: Option<Goal>,
    /// Pages of the same group are expected to change alike. The number may hash site, directory and depth.
    pub group: u64,
    /// How often the page is visited, if not by what a visit gains.
    pub every: Option<Every>,
    /// The true rates, if an experiment knows them.
    pub known: Option<KnownPattern>,
}

impl PageInfo {
    /// The group of a URL's directory, for crawls and simulations alike.
    pub fn directory_group(url: &str) -> u64 {
        let directory = url.rfind('/').map_or(url, |slash| &url[..slash]);
        directory.bytes().fold(0x0064_6972, |hash, byte| crate::rng::mix(hash ^ u64::from(byte)))
    }

    /// A page of weight 1 on the clock of UTC.
    pub fn for_site(site: SiteId) -> PageInfo {
        let group = u64::from(site.0);
        PageInfo { site, weight: 1.0, clock: ClockId(0), goal: None, group, every: None, known: None }
    }
}

/// Rates and importances by bucket: first the periods of a workday, then those of any other day.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownPattern {
    /// Changes per hour.
    pub rates: Vec<f32>,
    /// Mean importance of a change.
    pub importance: Vec<f32>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Visit {
    pub page: PageId,
    /// The site whose host limits the rate of visits.
    pub site: SiteId,
    /// When the visit was chosen: the `now` of the call.
    pub at: Timestamp,
    pub reason: Reason,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    FirstCapture,
    /// A visit gains as much as visits cost.
    Urgent {
        /// The gain of the visit; comparable at one instant only.
        urgency: f32,
        /// Importance of the change expected since the last visit.
        expected: Importance,
        since: Timestamp,
    },
    /// The page has one of the oldest captures. A share of the budget ensures that every page is visited eventually.
    Oldest {
        since: Timestamp,
    },
    /// The whole site is swept, so its captured pages are coherent.
    Sweep {
        /// Number of pages in the sweep.
        n_pages: u32,
        since: Timestamp,
    },
    /// The page has an interval of its own.
    Every {
        interval: Span,
        since: Timestamp,
    },
    /// A feed, a sitemap or a push announced that the page changed.
    Announced,
    /// The URL had no page; check whether one has appeared.
    Probe,
    /// The page is in a skipped directory; check whether skipping is still right.
    DirectoryProbe {
        rule: SkipRule,
        since: Timestamp,
    },
    /// No visit is made, because the directory is skipped. Only rankings use this reason.
    Skipped {
        rule: SkipRule,
        since: Timestamp,
    },
    /// An earlier attempt failed.
    Retry {
        /// Number of failed attempts in a row.
        n_failures: u16,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SkipRule {
    /// No observation found a change in so many that a visit gains less than it costs.
    Still {
        /// Observations since its last change.
        n_observations: u32,
    },
    /// It never changes on the same day as another directory, and that one changed today.
    Excluded {
        /// A page of that other directory.
        by: PageId,
    },
}

/// The result of a [`Visit`].
#[derive(Clone, PartialEq, Debug)]
pub enum VisitOutcome {
    /// The content differs from the last visit. A first capture is `Changed` with [`Importance::FULL`].
    Changed(Importance),
    /// The content is the same: the response was 304, the payload is equal, or only noise changed.
    Unchanged,
    /// No comparable response arrived. The host may have sent a time for the retry.
    Failed { retry_at: Option<Timestamp> },
    /// The page existed and is gone. It is probed rarely.
    Vanished(Importance),
    /// No page: 404, 410, a redirect to another page, forbidden by robots.txt. It is probed rarely.
    Absent,
}

impl From<ChangeStatus> for VisitOutcome {
    /// The only conversion from an observation to what the scheduler learns.
    fn from(status: ChangeStatus) -> VisitOutcome {
        let importance = status.observed_importance();
        match status {
            ChangeStatus::Absent => VisitOutcome::Absent,
            ChangeStatus::Vanished | ChangeStatus::Redirected(_) => VisitOutcome::Vanished(importance),
            _ if importance > Importance::NONE => VisitOutcome::Changed(importance),
            _ => VisitOutcome::Unchanged,
        }
    }
}

/// The hours in which a page usually changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peak {
    pub kind: DayKind,
    /// First local hour of the busiest stretch.
    pub from_hour: f32,
    /// End of the stretch.
    pub to_hour: f32,
    /// The rate in that stretch over the page's mean rate.
    pub ratio: f32,
}

impl std::fmt::Display for Peak {
    /// As in "14-15h on workdays".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let days = if self.kind == DayKind::Workday { "workdays" } else { "weekends" };
        write!(f, "{:.0}-{:.0}h on {days}", self.from_hour, self.to_hour)
    }
}

/// A page with the reasons for its rank.
#[derive(Clone, PartialEq, Debug)]
pub struct RankedPage {
    pub page: PageId,
    pub site: SiteId,
    pub reason: Reason,
    /// The gain of a visit; comparable at one instant only.
    pub urgency: f32,
    /// Importance of the change expected since the last visit.
    pub expected: Importance,
    /// Expected number of changes since the last visit.
    pub n_expected: f32,
    /// Estimated changes per day.
    pub changes_per_day: f32,
    /// The hours of most changes, if some stand out.
    pub peak: Option<Peak>,
    /// The days of most changes, if some stand out.
    pub days: Option<DayHabit>,
    /// Number of visits behind this estimate.
    pub n_visits: u32,
    pub is_planned: bool,
}

impl RankedPage {
    /// When the page usually changes, as a phrase: hours, days, or hours of some days.
    pub fn habit(&self) -> Option<String> {
        match (&self.days, self.peak) {
            (Some(days), Some(peak)) => Some(format!("{:.0}-{:.0}h {days}", peak.from_hour, peak.to_hour)),
            (Some(days), None) => Some(days.to_string()),
            (None, peak) => peak.map(|peak| peak.to_string()),
        }
    }
}
