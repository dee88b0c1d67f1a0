//! A seed -> the same numbers on every machine and in every release.
//!
//! Written here rather than taken from a crate because a world must be the same world for as long as results are
//! compared. [`Chance`] is the generator for everything (SplitMix64, Steele, Lea and Flood 2014). The simulator's worlds
//! were first drawn with another one, xoshiro256++ of Blackman and Vigna: [`WorldChance`] keeps the meaning of their
//! seeds, on which the results under `experiments/` depend.

/// The odd number nearest to 2^64 divided by the golden ratio: its multiples are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers; equal seeds give equal streams.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Chance {
        Chance { state: seed }
    }

    /// The stream of one thing among many: the numbers that name it, the seed first.
    pub fn of(parts: &[u64]) -> Chance {
        Chance { state: parts.iter().fold(GOLDEN, |state, part| scramble(state ^ part)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        scramble(self.state)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit_of(self.bits())
    }

    /// One of 0..n; 0 when n is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Puts items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// A number -> 64 bits each of which depends on all of its bits: the last step of a hash, or the n-th of many numbers.
#[inline]
pub fn mix(number: u64) -> u64 {
    Chance::new(number).bits()
}

/// A seed and the number of a thing -> 16 bits, by one multiplication: enough to keep things apart that would
/// otherwise happen at the same time. The scheduler's retries have their times from it.
pub fn spread(seed: u64, thing: u64) -> u16 {
    ((seed ^ thing).wrapping_mul(GOLDEN) >> 48) as u16
}

#[inline]
fn scramble(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn unit_of(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The stream from which the simulator's worlds are drawn, and the distributions that they need.
#[derive(Clone, Debug)]
pub struct WorldChance {
    state: [u64; 4],
}

impl WorldChance {
    /// The stream of a seed.
    pub fn new(seed: u64) -> WorldChance {
        let mut chance = Chance::new(seed);
        WorldChance { state: std::array::from_fn(|_| chance.bits()) }
    }

    /// An independent stream for one part of a larger whole: adding a page leaves the others as they were.
    pub fn fork(seed: u64, part: u64) -> WorldChance {
        WorldChance::new(mix(seed ^ part.wrapping_mul(0xD134_2543_DE82_EF95)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit_of(self.bits())
    }

    /// Uniform in (0, 1]: safe under a logarithm.
    fn unit_above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform in [from, to).
    pub fn range(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// Uniform among 0..n; 0 when n is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit_above_zero().ln()
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit_above_zero().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Gamma with the given shape and scale 1 (Marsaglia and Tsang).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = self.unit_above_zero().powf(1.0 / shape.max(1e-3));
            return self.gamma(shape.max(1e-3) + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit_above_zero().ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                return d * v;
            }
        }
    }

    /// Beta with the given mean; the larger `concentration`, the closer to it.
    pub fn beta(&mut self, mean: f64, concentration: f64) -> f64 {
        let mean = mean.clamp(1e-4, 1.0 - 1e-4);
        let a = self.gamma(mean * concentration);
        let b = self.gamma((1.0 - mean) * concentration);
        if a + b > 0.0 { a / (a + b) } else { mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: usize, mut draw: impl FnMut() -> f64) -> f64 {
        (0..n).map(|_| draw()).sum::<f64>() / n as f64
    }

    #[test]
    fn streams_repeat_and_differ() {
        let (mut a, mut b, mut c) = (WorldChance::new(7), WorldChance::new(7), WorldChance::fork(7, 1));
        let (x, y, z) = (a.bits(), b.bits(), c.bits());
        assert_eq!(x, y);
        assert_ne!(x, z);
    }

    /// Results kept under `experiments/`, the living web of the demonstration and stored block IDs depend on these.
    #[test]
    fn the_first_numbers_never_change() {
        let three = |mut chance: Chance| [chance.bits(), chance.bits(), chance.bits()];
        assert_eq!(three(Chance::new(1)), [10451216379200822465, 13757245211066428519, 17911839290282890590]);
        assert_eq!(three(Chance::of(&[1, 2, 3]))[..2], [7644213744914435277, 15226138658228862845]);
        let mut chance = Chance::new(9);
        assert_eq!([(); 8].map(|()| chance.below(10)), [8, 6, 8, 4, 1, 0, 8, 5]);
        assert_eq!(mix(7), 7191089600892374487);
        assert_eq!((spread(7, 42), spread(1, 0)), (53184, 40503));
        let mut world = WorldChance::new(1);
        assert_eq!([world.bits(), world.bits()], [14971601782005023387, 13781649495232077965]);
        assert_eq!(WorldChance::fork(7, 3).bits(), 6698941099491093660);
    }

    #[test]
    fn a_shuffle_keeps_all_items() {
        let mut items: Vec<usize> = (0..50).collect();
        Chance::new(5).shuffle(&mut items);
        assert!(items.iter().enumerate().any(|(at, item)| at != *item));
        items.sort_unstable();
        assert!(items.into_iter().eq(0..50));
        assert_eq!(Chance::new(5).below(0), 0);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut chance = WorldChance::new(3);
        assert!((mean(40_000, || chance.unit()) - 0.5).abs() < 0.01);
        assert!((mean(40_000, || chance.exponential()) - 1.0).abs() < 0.03);
        assert!(mean(40_000, || chance.normal()).abs() < 0.02);
        assert!((mean(40_000, || chance.normal().powi(2)) - 1.0).abs() < 0.03);
        assert!((mean(40_000, || chance.gamma(2.5)) - 2.5).abs() < 0.05);
        assert!((mean(40_000, || chance.gamma(0.4)) - 0.4).abs() < 0.02);
        assert!((mean(40_000, || chance.beta(0.3, 6.0)) - 0.3).abs() < 0.01);
    }
}
