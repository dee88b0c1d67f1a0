//! What the scheduler and its driver hand to each other: pages go in, visits come out, outcomes go back.

use crate::page::change_status::ChangeStatus;
use crate::page::importance::Importance;
use crate::pattern::calendar::DayHabit;
use crate::time::{DayKind, Timestamp};
use crate::url::{PageId, SiteId};

use super::Goal;

/// The local clock of a page; `Scheduler::add_clock` hands it out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClockId(pub u16);

/// What a driver knows of a page when it adds it.
#[derive(Clone, PartialEq, Debug)]
pub struct PageInfo {
    /// The site, whose host politeness counts.
    pub site: SiteId,
    /// omega(P): PageRank times the weight that the user gives. A value that is negative or not finite counts as 0.
    pub weight: f32,
    /// The site's local time.
    pub clock: ClockId,
    /// What the user wants of the site, where that is not the scheduler's own goal. Pages of one site have one goal: that of
    /// the last page that was added.
    pub goal: Option<Goal>,
    /// Pages with the same hint, such as a hash of site, directory and depth, are expected to change alike.
    pub group: u64,
    /// The true rates, where an experiment knows them.
    pub known: Option<KnownPattern>,
}

impl PageInfo {
    /// The hint that groups pages everywhere, in a crawl and in a simulation: pages of one directory are expected to change alike.
    pub fn group_of(address: &str) -> u64 {
        let directory = address.rfind('/').map_or(address, |slash| &address[..slash]);
        directory.bytes().fold(0x0064_6972, |hash, byte| crate::rng::mix(hash ^ u64::from(byte)))
    }

    /// A page of weight 1 on the clock of UTC.
    pub fn of_site(site: SiteId) -> PageInfo {
        PageInfo { site, weight: 1.0, clock: ClockId(0), goal: None, group: u64::from(site.0), known: None }
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
    /// The site, whose host politeness counts.
    pub site: SiteId,
    /// When the plan puts the visit; never later than the `now` of the question.
    pub at: Timestamp,
    /// Why the visit is made; the log shows it.
    pub reason: Reason,
}

/// Why a visit is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// Never captured before.
    FirstCapture,
    /// The strategy ranked the page among the most urgent of this slot.
    Urgent {
        /// What the page was ranked by; only urgencies of one slot can be compared.
        urgency: f32,
        /// Importance of the change that is expected since the last visit.
        expected: Importance,
        /// The last visit.
        since: Timestamp,
    },
    /// The page was seen longest ago: a share of the budget goes to such pages, so that each is visited some time.
    Oldest {
        /// The last visit.
        since: Timestamp,
    },
    /// The whole site is visited at once, so that its pages as archived belong together.
    Picture {
        /// How many pages are visited for it.
        n_pages: u32,
        /// The last visit.
        since: Timestamp,
    },
    /// A feed, a sitemap or a push announced that the page changed.
    Announced,
    /// There was no page at this address: see whether one has come.
    Probe,
    /// The page lies in a directory that is skipped: see whether that is still right.
    DirectoryProbe {
        /// Why the directory is skipped.
        rule: SkipRule,
        /// The last visit.
        since: Timestamp,
    },
    /// No visit is made, because the directory is skipped. Only rankings have this reason.
    Skipped {
        /// Why the directory is skipped.
        rule: SkipRule,
        /// The last visit.
        since: Timestamp,
    },
    /// An earlier attempt failed; this is another.
    Retry {
        /// How many attempts failed in a row.
        n_failures: u16,
    },
}

/// Why a directory is skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SkipRule {
    /// It was looked at so often without a change that a visit gains less than it costs.
    Still {
        /// Looks since its last change.
        n_looks: u32,
    },
    /// It never changes on a day on which the directory of this page does, and that one did today.
    Excluded {
        /// A page of the other directory.
        by: PageId,
    },
}

/// The driver's answer to a [`Visit`].
#[derive(Clone, PartialEq, Debug)]
pub enum VisitOutcome {
    /// The content is not that of the last visit. A first capture is `Changed` with [`Importance::FULL`].
    Changed(Importance),
    /// The content is the same: the answer was 304, the payload is equal, or only noise changed.
    Unchanged,
    /// No answer came that could be compared. The host may have said when to ask again.
    Failed {
        /// Not before this instant.
        retry_at: Option<Timestamp>,
    },
    /// The page was there and is not any more. It is probed rarely.
    Vanished(Importance),
    /// There is no page: 404, 410, a redirect to another page, forbidden by robots.txt. It is probed rarely.
    Absent,
}

impl From<ChangeStatus> for VisitOutcome {
    /// The one way in which an observation becomes what the scheduler learns.
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
    /// On which days.
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

/// A page and why it is ranked where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// Which page.
    pub page: PageId,
    /// Its site.
    pub site: SiteId,
    /// Why it would be visited.
    pub reason: Reason,
    /// What the page was ranked by; only urgencies of one slot can be compared.
    pub urgency: f32,
    /// Importance of the change that is expected since the last visit.
    pub expected: Importance,
    /// How many changes are expected since the last visit.
    pub n_expected: f32,
    /// Changes a day that the scheduler believes in.
    pub changes_per_day: f32,
    /// When it usually changes, if some hours stand out.
    pub peak: Option<Peak>,
    /// On which days it usually changes, if some stand out.
    pub days: Option<DayHabit>,
    /// Number of visits from which this was learned.
    pub n_visits: u32,
    /// Whether it is among the visits of this slot.
    pub is_planned: bool,
}

impl Ranked {
    /// When the page usually changes, in words: hours, days, or hours of some days.
    pub fn habit(&self) -> Option<String> {
        match (&self.days, self.peak) {
            (Some(days), Some(peak)) => Some(format!("{:.0}-{:.0}h {days}", peak.from_hour, peak.to_hour)),
            (Some(days), None) => Some(days.to_string()),
            (None, peak) => peak.map(|peak| peak.to_string()),
        }
    }
}
