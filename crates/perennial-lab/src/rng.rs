//! Random numbers and distributions from which worlds are drawn.
//!
//! Worlds were first drawn with xoshiro256++ of Blackman and Vigna. This generator preserves the meaning of their
//! seeds, on which the results under `experiments/` depend. Everything else uses [`perennial_core::rng`].

use perennial_core::rng::{Rng, mix};

/// The random stream of the simulator's worlds.
#[derive(Clone, Debug)]
pub struct WorldRng {
    state: [u64; 4],
}

impl WorldRng {
    pub fn new(seed: u64) -> WorldRng {
        let mut rng = Rng::new(seed);
        WorldRng { state: std::array::from_fn(|_| rng.bits()) }
    }

    /// An independent stream for one part. Adding a page leaves the other pages unchanged.
    pub fn fork(seed: u64, part: u64) -> WorldRng {
        WorldRng::new(mix(seed ^ part.wrapping_mul(0xD134_2543_DE82_EF95)))
    }

    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in (0, 1], so its logarithm is finite.
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

    /// Beta with the given mean. A larger `concentration` is closer to the mean.
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
        let (mut a, mut b, mut c) = (WorldRng::new(7), WorldRng::new(7), WorldRng::fork(7, 1));
        let (x, y, z) = (a.bits(), b.bits(), c.bits());
        assert_eq!(x, y);
        assert_ne!(x, z);
    }

    /// Results kept under `experiments/` depend on these.
    #[test]
    fn the_first_numbers_are_fixed() {
        let mut world = WorldRng::new(1);
        assert_eq!([world.bits(), world.bits()], [14971601782005023387, 13781649495232077965]);
        assert_eq!(WorldRng::fork(7, 3).bits(), 6698941099491093660);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = WorldRng::new(3);
        assert!((mean(40_000, || rng.unit()) - 0.5).abs() < 0.01);
        assert!((mean(40_000, || rng.exponential()) - 1.0).abs() < 0.03);
        assert!(mean(40_000, || rng.normal()).abs() < 0.02);
        assert!((mean(40_000, || rng.normal().powi(2)) - 1.0).abs() < 0.03);
        assert!((mean(40_000, || rng.gamma(2.5)) - 2.5).abs() < 0.05);
        assert!((mean(40_000, || rng.gamma(0.4)) - 0.4).abs() < 0.02);
        assert!((mean(40_000, || rng.beta(0.3, 6.0)) - 0.3).abs() < 0.01);
    }
}
