//! Versions of a page by importance -> those worth indexing (P-PATTERN 7, SPEC of the index threshold).
//!
//! A version is indexed when the importance gathered since the last indexed one, its own included, reaches the page's
//! threshold delta(P), the mean of its pattern. (The paper's Algorithm 4 compares the sum before adding the current
//! version, and so indexes one version too late.) Indexing decides what search and "next important version" see; it
//! never deletes.

use crate::importance::Importance;

/// Decides version by version.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Indexer {
    threshold: f64,
    gathered: f64,
    kept: Kept,
}

/// What an index keeps of the versions it was offered.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Kept {
    /// Versions offered.
    pub n_versions: u64,
    /// Versions indexed.
    pub n_indexed: u64,
    /// Importance of all versions.
    pub importance: f64,
    /// Importance of the indexed ones, what had gathered before them included.
    pub importance_indexed: f64,
}

impl Indexer {
    /// For a page with the threshold delta(P); not a number or negative counts as 0, which indexes every version.
    pub fn new(threshold: f64) -> Indexer {
        let threshold = if threshold.is_finite() { threshold.max(0.0) } else { 0.0 };
        Indexer { threshold, gathered: 0.0, kept: Kept::default() }
    }

    /// The same with what has gathered since the last indexed version.
    pub fn gathered(self, gathered: f64) -> Indexer {
        Indexer { gathered: if gathered.is_finite() { gathered.max(0.0) } else { 0.0 }, ..self }
    }

    /// What has gathered since the last indexed version.
    pub fn gathering(&self) -> f64 {
        self.gathered
    }

    /// Whether this version is to be indexed.
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
        let mut indexer = Indexer::new(threshold);
        importances.iter().map(|&mu| indexer.offer(Importance::new(mu))).collect()
    }

    #[test]
    fn importance_gathers_until_it_is_enough() {
        assert_eq!(indexed(0.5, &[0.6, 0.2, 0.2, 0.1, 0.4]), [true, false, false, true, false]);
        assert_eq!(indexed(f64::NAN, &[0.0]), [true]);
    }

    /// The printed Algorithm 4 would index the third version only after a fourth: 0.3 + 0.3 reach 0.5 at the second.
    #[test]
    fn the_current_version_counts_at_once() {
        assert_eq!(indexed(0.5, &[0.3, 0.3, 0.1]), [false, true, false]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_but_what_is_still_gathering(
            importances in prop::collection::vec(0.0f64..1.0, 0..50), threshold in 0.0f64..2.0
        ) {
            let mut indexer = Indexer::new(threshold);
            for mu in &importances {
                indexer.offer(Importance::new(*mu));
            }
            let kept = indexer.kept();
            prop_assert!(kept.importance - kept.importance_indexed < threshold.max(1e-9));
            prop_assert!(kept.n_indexed <= kept.n_versions);
        }
    }
}
