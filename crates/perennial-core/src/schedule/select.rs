//! Keys -> the positions of the n largest, in one pass over the keys and no heap.
//!
//! The upper bits of a positive float order it coarsely: a histogram over them finds the bin that holds the
//! n-th largest, and only that bin is looked at again. Ten million keys take tens of milliseconds.

/// Bits kept: exponent and three bits of the mantissa, so that a bin spans an eighth of an octave.
const SHIFT: u32 = 20;
const N_BINS: usize = 1 << (31 - SHIFT);

/// Counts keys by their upper bits. Keys that are not positive never count.
#[derive(Clone)]
pub(super) struct Histogram {
    bins: Vec<u32>,
}

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram { bins: vec![0; N_BINS] }
    }

    #[inline]
    pub(super) fn add(&mut self, key: f32) {
        if let Some(bin) = self.bins.get_mut(bin_of(key)) {
            *bin += 1;
        }
    }

    /// Takes back a key that was counted.
    pub(super) fn remove(&mut self, key: f32) {
        if let Some(bin) = self.bins.get_mut(bin_of(key)) {
            *bin = bin.saturating_sub(1);
        }
    }

    /// The bin that holds the n-th largest key, and how many of that bin are wanted.
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

/// Negative keys and NaN have the sign bit or fall beyond every real exponent; both end in bin 0.
#[inline]
fn bin_of(key: f32) -> usize {
    if key > 0.0 { (key.to_bits() >> SHIFT) as usize } else { 0 }
}

/// The positions of the `n` largest positive keys, in order of position; of equal keys the earlier ones.
pub(super) fn largest(keys: &[f32], n: usize, histogram: &Histogram) -> Vec<u32> {
    choose(keys.len(), n, histogram, |at| keys.get(at).copied().unwrap_or(0.0))
}

/// The same for keys that are computed, without a histogram at hand.
pub(super) fn largest_by(n_keys: usize, n: usize, key_of: impl Fn(usize) -> f32) -> Vec<u32> {
    let mut histogram = Histogram::new();
    (0..n_keys).for_each(|at| histogram.add(key_of(at)));
    choose(n_keys, n, &histogram, key_of)
}

fn choose(n_keys: usize, n: usize, histogram: &Histogram, key_of: impl Fn(usize) -> f32) -> Vec<u32> {
    if n == 0 {
        return Vec::new();
    }
    let (threshold, wanted) = histogram.threshold(n);
    let mut chosen = Vec::with_capacity(n.min(n_keys));
    let mut on_threshold: Vec<u32> = Vec::new();
    let lowest = f32::from_bits((threshold as u32) << SHIFT);
    for at in 0..n_keys {
        let key = key_of(at);
        if key >= lowest {
            if bin_of(key) > threshold {
                chosen.push(at as u32);
            } else {
                on_threshold.push(at as u32);
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
    }
}
