//! Versions of a page by importance -> those that reach the index threshold (P-PATTERN 7; docs/papers.md, Index
//! threshold).
//!
//! A version is indexed when the importance gathered since the last indexed one, its own included, reaches the page's
//! threshold delta(P), the mean of its pattern. The paper's Algorithm 4 compares the sum before it adds the current
//! version, and so indexes one version too late. Indexing decides what search and "next important version" see. It
//! never deletes. The CDXJ index of captures ([`perennial_warc::cdxj`]) is another thing and holds all of them.

use crate::page::importance::Importance;
use crate::time::Span;

/// Decides version by version whether a page's versions are indexed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IndexThreshold {
    threshold: f64,
    gathered: f64,
    kept: Kept,
}

/// The threshold of a page: its mean importance of change an hour. `total` is the importance that was seen since its first capture.
pub fn mean_an_hour(total: f64, since_first: Span) -> f64 {
    total / since_first.as_hours_f64().max(1.0)
}

/// How much of the versions that were offered is indexed.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Kept {
    /// Versions offered.
    pub n_versions: u64,
    /// Versions indexed.
    pub n_indexed: u64,
    /// Importance of all versions.
    pub importance: f64,
    /// Importance of the indexed versions, with what had gathered before each.
    pub importance_indexed: f64,
}

impl IndexThreshold {
    /// For a page with the threshold delta(P). A value that is negative or not finite counts as 0, which indexes every
    /// version.
    pub fn new(threshold: f64) -> IndexThreshold {
        let threshold = if threshold.is_finite() { threshold.max(0.0) } else { 0.0 };
        IndexThreshold { threshold, gathered: 0.0, kept: Kept::default() }
    }

    /// The same, where importance has gathered since the last indexed version.
    pub fn with_gathered(self, gathered: f64) -> IndexThreshold {
        IndexThreshold { gathered: if gathered.is_finite() { gathered.max(0.0) } else { 0.0 }, ..self }
    }

    /// The importance that has gathered since the last indexed version.
    pub fn gathered(&self) -> f64 {
        self.gathered
    }

    /// Takes in a version, and says whether it is to be indexed.
    pub fn offer(&mut self, importance: Importance) -> bool {
        self.gathered += importance.get();
        self.kept.n_versions += 1;
        self.kept.importance += importance.get();
        let is_indexed = self.gathered >= self.threshold;
        if is_indexed {
            self.kept.n_indexed += 1;
            self.kept.importance_indexed += self.gathered;
            self.gathered = 0.0;
        }
        is_indexed
    }

    /// What has been kept so far.
    pub fn kept(&self) -> Kept {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn indexed(threshold: f64, importances: &[f64]) -> Vec<bool> {
        let mut page = IndexThreshold::new(threshold);
        importances.iter().map(|&mu| page.offer(Importance::new(mu))).collect()
    }

    #[test]
    fn importance_gathers_until_it_is_enough() {
        assert_eq!(indexed(0.5, &[0.6, 0.2, 0.2, 0.1, 0.4]), [true, false, false, true, false]);
        assert_eq!(indexed(f64::NAN, &[0.0]), [true]);
    }

    /// 0.3 + 0.3 reach 0.5 at the second version. The printed Algorithm 4 would index the third.
    #[test]
    fn the_current_version_counts_at_once() {
        assert_eq!(indexed(0.5, &[0.3, 0.3, 0.1]), [false, true, false]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_but_what_is_still_gathering(
            importances in prop::collection::vec(0.0f64..1.0, 0..50), threshold in 0.0f64..2.0
        ) {
            let mut page = IndexThreshold::new(threshold);
            for mu in &importances {
                page.offer(Importance::new(*mu));
            }
            let kept = page.kept();
            prop_assert!(kept.importance - kept.importance_indexed < threshold.max(1e-9));
            prop_assert!(kept.n_indexed <= kept.n_versions);
        }
    }
}
