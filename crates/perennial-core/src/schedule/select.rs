//! Keys -> the positions of the n largest, in one pass over the keys and without a heap.
//!
//! The upper bits of a positive float order it coarsely. A histogram of them finds the bin of the n-th largest key,
//! and only that bin is sorted. Ten million keys take tens of milliseconds.

/// Bits that are dropped. The exponent and seven bits of the mantissa remain, so a bin spans less than 1 %.
const SHIFT: u32 = 16;
const N_BINS: usize = 1 << (31 - SHIFT);

/// Keys that are compared together.
const RUN: usize = 32;

/// Counts keys by their upper bits. Only positive keys count.
#[derive(Clone)]
pub(super) struct Histogram {
    bins: Vec<u32>,
    /// Smaller keys are not counted, because they are not expected among the largest.
    from: f32,
    /// Positions of the counted keys, if there is a bound.
    candidates: Vec<u32>,
}

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram { bins: vec![0; N_BINS], from: 0.0, candidates: Vec::new() }
    }

    /// Counts keys from a bound on, and keeps their positions.
    pub(super) fn from_bound(from: f32) -> Histogram {
        Histogram { from: if from > 0.0 { from } else { 0.0 }, ..Histogram::new() }
    }

    /// Adds the keys at a range of positions that starts at `first`.
    pub(super) fn add_range(&mut self, first: usize, keys: &[f32]) {
        if self.from <= 0.0 {
            keys.iter().for_each(|key| self.add(*key));
            return;
        }
        for (run, keys) in keys.chunks(RUN).enumerate() {
            // Most runs contain no such key. One sum per run finds that without a branch per key.
            if keys.iter().map(|key| u32::from(*key >= self.from)).sum::<u32>() == 0 {
                continue;
            }
            for (place, &key) in keys.iter().enumerate() {
                if key >= self.from {
                    self.add(key);
                    self.candidates.push((first + run * RUN + place) as u32);
                }
            }
        }
    }

    /// The positions of all keys from a bound on, and of some below it; `None` if they are unknown.
    pub(super) fn candidates_from(&self, bound: f32) -> Option<&[u32]> {
        (self.from > 0.0 && self.from <= bound).then_some(&self.candidates[..])
    }

    /// Counts all keys if fewer than `n` reached the bound.
    pub(super) fn complete(&mut self, keys: &[f32], n: usize) {
        if self.from > 0.0 && self.candidates.len() < n {
            *self = Histogram::new();
            keys.iter().for_each(|key| self.add(*key));
        }
    }

    /// The lower end of the bin of the n-th largest key.
    pub(super) fn bound(&self, n: usize) -> f32 {
        f32::from_bits((self.threshold(n).0 as u32) << SHIFT)
    }

    #[inline]
    pub(super) fn add(&mut self, key: f32) {
        if let Some(bin) = self.bins.get_mut(bin(key)) {
            *bin += 1;
        }
    }

    pub(super) fn remove(&mut self, key: f32) {
        if key < self.from {
            return;
        }
        if let Some(bin) = self.bins.get_mut(bin(key)) {
            *bin = bin.saturating_sub(1);
        }
    }

    /// The bin of the n-th largest key, and how many keys of that bin are needed.
    fn threshold(&self, n: usize) -> (usize, usize) {
        let mut wanted = n;
        for (bin, &count) in self.bins.iter().enumerate().skip(1).rev() {
            if count as usize >= wanted {
                return (bin, wanted);
            }
            wanted -= count as usize;
        }
        (1, usize::MAX)
    }
}

/// Negative keys, zero and NaN go to bin 0.
#[inline]
fn bin(key: f32) -> usize {
    if key > 0.0 { (key.to_bits() >> SHIFT) as usize } else { 0 }
}

/// The positions of the `n` largest positive keys in ascending order. Of equal keys the first ones win.
pub(super) fn largest(keys: &[f32], n: usize, histogram: &Histogram) -> Vec<u32> {
    let key_of = |at: usize| keys.get(at).copied().unwrap_or(0.0);
    if histogram.from > 0.0 && histogram.threshold(n).1 != usize::MAX {
        choose(histogram.candidates.iter().copied(), n, histogram, key_of)
    } else if histogram.from > 0.0 {
        largest_by(keys.len(), n, key_of)
    } else {
        choose(0..keys.len() as u32, n, histogram, key_of)
    }
}

/// The same for computed keys, with a separate histogram.
pub(super) fn largest_by(n_keys: usize, n: usize, key_of: impl Fn(usize) -> f32) -> Vec<u32> {
    let mut histogram = Histogram::new();
    (0..n_keys).for_each(|at| histogram.add(key_of(at)));
    choose(0..n_keys as u32, n, &histogram, key_of)
}

fn choose(
    places: impl ExactSizeIterator<Item = u32>,
    n: usize,
    histogram: &Histogram,
    key_of: impl Fn(usize) -> f32,
) -> Vec<u32> {
    if n == 0 {
        return Vec::new();
    }
    let (threshold, wanted) = histogram.threshold(n);
    let mut chosen = Vec::with_capacity(n.min(places.len()));
    let mut on_threshold: Vec<u32> = Vec::new();
    let lowest = f32::from_bits((threshold as u32) << SHIFT);
    for at in places {
        let key = key_of(at as usize);
        if key >= lowest {
            if bin(key) > threshold {
                chosen.push(at);
            } else {
                on_threshold.push(at);
            }
        }
    }
    if wanted < on_threshold.len() {
        let key = |at: u32| key_of(at as usize);
        on_threshold.select_nth_unstable_by(wanted, |&a, &b| key(b).total_cmp(&key(a)).then(a.cmp(&b)));
        on_threshold.truncate(wanted);
    }
    chosen.append(&mut on_threshold);
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_sorting(keys: &[f32], n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..keys.len() as u32).filter(|&p| keys[p as usize] > 0.0).collect();
        order.sort_by(|&a, &b| keys[b as usize].total_cmp(&keys[a as usize]).then(a.cmp(&b)));
        order.truncate(n);
        order.sort_unstable();
        order
    }

    proptest! {
        #[test]
        fn equals_sorting(keys in prop::collection::vec(prop_oneof![
            -1.0f32..1.0, 0.5f32..0.51, Just(0.25f32), Just(f32::NAN), Just(f32::INFINITY), 0.0f32..1e-30
        ], 0..200), n in 0usize..220) {
            prop_assert_eq!(largest_by(keys.len(), n, |at| keys[at]), by_sorting(&keys, n));
        }

        /// A wrong estimate of the bound affects only the running time.
        #[test]
        fn a_guessed_bound_changes_nothing(
            keys in prop::collection::vec(-1.0f32..1.0, 0..200), n in 0usize..220, from in -0.5f32..1.0, cut in 0usize..200
        ) {
            let mut histogram = Histogram::from_bound(from);
            let cut = cut.min(keys.len());
            histogram.add_range(0, &keys[..cut]);
            histogram.add_range(cut, &keys[cut..]);
            prop_assert_eq!(largest(&keys, n, &histogram), by_sorting(&keys, n));
            histogram.complete(&keys, n);
            prop_assert_eq!(largest(&keys, n, &histogram), by_sorting(&keys, n));
        }
    }
}
