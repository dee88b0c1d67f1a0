//! A seed -> the same numbers on every machine and in every release.
//!
//! Written here instead of taken from a crate, because simulated worlds must remain the same as long as results are
//! compared. [`Rng`] is SplitMix64 (Steele, Lea and Flood 2014).

/// The odd number nearest to 2^64 divided by the golden ratio. Its multiples are evenly spread.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers; equal seeds give equal streams.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub const fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The stream that belongs to a sequence of numbers, the seed first.
    pub fn from_parts(parts: &[u64]) -> Rng {
        Rng { state: parts.iter().fold(GOLDEN, |state, part| scramble(state ^ part)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        scramble(self.state)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n; 0 if n is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Mixes a number: each of the 64 bits depends on all of its bits.
#[inline]
pub fn mix(number: u64) -> u64 {
    Rng::new(number).bits()
}

/// Derives 16 bits from a seed and a number with one multiplication. The scheduler uses them to spread out retries
/// that would otherwise happen at the same time.
pub fn spread(seed: u64, thing: u64) -> u16 {
    ((seed ^ thing).wrapping_mul(GOLDEN) >> 48) as u16
}

#[inline]
fn scramble(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results in `experiments/`, the demonstration and stored block IDs depend on these numbers.
    #[test]
    fn the_first_numbers_never_change() {
        let three = |mut rng: Rng| [rng.bits(), rng.bits(), rng.bits()];
        assert_eq!(three(Rng::new(1)), [10451216379200822465, 13757245211066428519, 17911839290282890590]);
        assert_eq!(three(Rng::from_parts(&[1, 2, 3]))[..2], [7644213744914435277, 15226138658228862845]);
        let mut rng = Rng::new(9);
        assert_eq!([(); 8].map(|()| rng.below(10)), [8, 6, 8, 4, 1, 0, 8, 5]);
        assert_eq!(mix(7), 7191089600892374487);
        assert_eq!((spread(7, 42), spread(1, 0)), (53184, 40503));
    }

    #[test]
    fn a_shuffle_keeps_all_items() {
        let mut items: Vec<usize> = (0..50).collect();
        Rng::new(5).shuffle(&mut items);
        assert!(items.iter().enumerate().any(|(at, item)| at != *item));
        items.sort_unstable();
        assert!(items.into_iter().eq(0..50));
        assert_eq!(Rng::new(5).below(0), 0);
    }
}
