//! What is known of pages -> which one to visit next, and when to ask again (P-PATTERN 8, P-QUALITY 6).
//!
//! The crawler (real clock) and the simulator (virtual clock) drive the same [`Scheduler`].

use crate::importance::Importance;
use crate::page::{PageId, SiteId};
use crate::time::Timestamp;

/// The scheduler's request: fetch this page now.
#[derive(Clone, PartialEq, Debug)]
pub struct Visit {
    /// Which page.
    pub page: PageId,
    /// Whose politeness counts.
    pub site: SiteId,
    /// Why, as data; log and dashboard show it.
    pub reason: Reason,
}

/// Why a visit is made.
#[derive(Clone, PartialEq, Debug)]
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
