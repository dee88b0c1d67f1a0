//! Versions of a page by importance -> those that reach the index threshold (P-PATTERN 7; docs/papers.md, Index
//! threshold).
//!
//! Importance accumulates since the last indexed version. A version is indexed if the sum, including its own
//! importance, reaches the page's threshold delta(P), the mean of its pattern. The paper's Algorithm 4 compares the
//! sum before it adds the current version, and so indexes one version too late. The index affects search and "next
//! important version". It never deletes anything. The CDXJ index ([`perennial_warc::cdxj`]) is separate and contains
//! all captures.

use crate::page::change_status::ChangeStatus;
use crate::page::importance::Importance;
use crate::time::Timestamp;

/// The sums that decide which versions of a page are indexed. During a crawl, the mean importance per hour replaces
/// delta(P).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexSums {
    /// The first observation.
    pub first: Timestamp,
    /// Importance since then.
    pub total: f64,
    pub gathered: f64,
}

impl IndexSums {
    /// The sums of a page without observations.
    pub fn new(first: Timestamp) -> IndexSums {
        IndexSums { first, total: 0.0, gathered: 0.0 }
    }

    /// The page's index threshold at an instant: its mean importance per hour.
    pub fn threshold(&self, at: Timestamp) -> f64 {
        self.total / (at - self.first).as_hours_f64().max(1.0)
    }

    /// Adds an observation and returns whether its version is indexed.
    pub fn add(&mut self, status: ChangeStatus, at: Timestamp) -> bool {
        // The first version is always indexed, and is not a change.
        if status == ChangeStatus::New {
            return true;
        }
        // A vanished page does not have a version to index; a returned page does.
        if !status.is_page() || !status.is_new_version() {
            return false;
        }
        let importance = status.reported_importance();
        self.first = self.first.min(at);
        self.total += importance.get();
        reaches(self.threshold(at), &mut self.gathered, importance)
    }
}

/// Adds the importance of a version and returns whether the version is indexed.
fn reaches(threshold: f64, gathered: &mut f64, importance: Importance) -> bool {
    *gathered += importance.get();
    let is_indexed = *gathered >= threshold;
    if is_indexed {
        *gathered = 0.0;
    }
    is_indexed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use proptest::prelude::*;

    fn indexed(threshold: f64, importances: &[f64]) -> Vec<bool> {
        let mut gathered = 0.0;
        importances.iter().map(|&mu| reaches(threshold, &mut gathered, Importance::new(mu))).collect()
    }

    #[test]
    fn importance_accumulates_up_to_the_threshold() {
        assert_eq!(indexed(0.5, &[0.6, 0.2, 0.2, 0.1, 0.4]), [true, false, false, true, false]);
        assert_eq!(indexed(0.0, &[0.0]), [true]);
    }

    /// 0.3 + 0.3 reach 0.5 at the second version. The printed Algorithm 4 would index the third.
    #[test]
    fn the_current_version_counts_at_once() {
        assert_eq!(indexed(0.5, &[0.3, 0.3, 0.1]), [false, true, false]);
    }

    #[test]
    fn the_threshold_is_the_mean_importance_per_hour() {
        let first = Timestamp::from_secs(0);
        let hour = |n| first + Span::from_hours(n);
        let mut sums = IndexSums::new(first);
        assert!(sums.add(ChangeStatus::New, first));
        assert_eq!(sums.threshold(hour(10)), 0.0, "a first capture is not a change");
        assert!(sums.add(ChangeStatus::Changed(Importance::new(0.5)), hour(2)));
        assert!(!sums.add(ChangeStatus::NoiseOnly, hour(3)) && !sums.add(ChangeStatus::Vanished, hour(4)));
        assert_eq!(sums.threshold(hour(5)), 0.1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_but_what_is_still_gathering(
            importances in prop::collection::vec(0.0f64..1.0, 0..50), threshold in 0.0f64..2.0
        ) {
            let mut gathered = 0.0;
            for mu in &importances {
                reaches(threshold, &mut gathered, Importance::new(*mu));
                prop_assert!(gathered < threshold.max(1e-9));
            }
        }
    }
}
