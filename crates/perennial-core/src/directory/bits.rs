//! Sets of transitions as bits, and the measures that count them (P-NEAR 3.3).

/// A set of transitions in a window.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TransitionBits {
    pub(super) words: Vec<u64>,
}

impl TransitionBits {
    /// The empty set.
    pub fn none(n_transitions: usize) -> TransitionBits {
        TransitionBits { words: vec![0; n_transitions.div_ceil(64)] }
    }

    /// Adds a transition.
    pub fn set(&mut self, transition: usize) {
        self.words[transition / 64] |= 1 << (transition % 64);
    }

    /// Whether the set contains a transition.
    pub fn has(&self, transition: usize) -> bool {
        self.words[transition / 64] >> (transition % 64) & 1 != 0
    }

    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The size of the intersection.
    pub fn count_with(&self, other: &TransitionBits) -> u32 {
        self.words.iter().zip(&other.words).map(|(a, b)| (a & b).count_ones()).sum()
    }

    /// The intersection.
    pub fn and(&self, other: &TransitionBits) -> TransitionBits {
        TransitionBits { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() }
    }
}

/// How often two events occurred, separately and together, among `n` transitions (Table 1 of P-NEAR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoOccurrence {
    pub n: u32,
    /// Transitions with the first event.
    pub first: u32,
    /// Transitions with the second event.
    pub second: u32,
    /// Transitions with both events.
    pub both: u32,
}

impl CoOccurrence {
    /// The correlation of change (Definition 3), the phi coefficient; `None` if one of the events occurred always or
    /// never.
    pub fn correlation(&self) -> Option<f64> {
        let [n, first, second, both] = [self.n, self.first, self.second, self.both].map(f64::from);
        let spread = first * (n - first) * second * (n - second);
        (spread > 0.0).then(|| (n * both - first * second) / spread.sqrt())
    }

    /// The confidence of "if the first occurs, the second does not" (Definition 6).
    pub fn confidence(&self) -> f64 {
        if self.first == 0 { 0.0 } else { f64::from(self.first - self.both) / f64::from(self.first) }
    }

    /// The probability that two independent events coincide this rarely, or this often (Fisher's exact test, one
    /// side).
    pub fn p_value(&self) -> f64 {
        let [n, first, second, both] = [self.n, self.first, self.second, self.both].map(|n| n as usize);
        let ln_choose = |n: usize, k: usize| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
        let probability = |both: usize| {
            (ln_choose(first, both) + ln_choose(n - first, second - both) - ln_choose(n, second)).exp()
        };
        let least = (first + second).saturating_sub(n);
        let most = first.min(second);
        let rarely: f64 = (least..=both).map(probability).sum();
        let often: f64 = (both..=most).map(probability).sum();
        rarely.min(often)
    }
}

fn ln_factorial(n: usize) -> f64 {
    (2..=n).map(|k| (k as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_is_that_of_example_3() {
        assert_eq!(CoOccurrence { n: 3, first: 2, second: 1, both: 0 }.correlation(), Some(-1.0));
        assert_eq!(CoOccurrence { n: 3, first: 3, second: 1, both: 1 }.correlation(), None);
        assert_eq!(CoOccurrence { n: 3, first: 2, second: 0, both: 0 }.correlation(), None);
        assert_eq!(CoOccurrence { n: 4, first: 2, second: 2, both: 2 }.correlation(), Some(1.0));
        assert_eq!(CoOccurrence { n: 4, first: 2, second: 2, both: 1 }.confidence(), 0.5);
    }

    #[test]
    fn p_value_is_that_of_counting_all_ways() {
        // Six transitions, three with each event: in one of 20 arrangements they never coincide, and in one always.
        let p_value = |both| CoOccurrence { n: 6, first: 3, second: 3, both }.p_value();
        for (both, expected) in [(0, 1.0 / 20.0), (3, 1.0 / 20.0), (1, 10.0 / 20.0)] {
            assert!((p_value(both) - expected).abs() < 1e-12, "{both}");
        }
    }

    #[test]
    fn bits_count_across_words() {
        let mut bits = TransitionBits::none(130);
        [0, 63, 64, 129].into_iter().for_each(|transition| bits.set(transition));
        let mut other = TransitionBits::none(130);
        [63, 129, 128].into_iter().for_each(|transition| other.set(transition));
        assert_eq!((bits.count(), bits.count_with(&other), bits.and(&other).count()), (4, 2, 2));
        assert!(bits.has(129) && !bits.has(128));
    }
}
