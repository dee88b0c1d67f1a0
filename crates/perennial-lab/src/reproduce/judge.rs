//! Samples of a measured effect -> its interval, and a verdict on a paper's claim.

use serde::Serialize;

/// A smaller effect counts as none if the paper gives no number.
const LEAST_EFFECT: f64 = 0.02;
/// 97.5 % quantiles of Student's t, by degrees of freedom.
const T: [f64; 12] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The interval excludes 0 and reaches the published effect.
    #[serde(rename = "repeated")]
    Repeated,
    /// The interval excludes 0, but the effect is smaller than published.
    #[serde(rename = "repeated in sign")]
    InSign,
    /// The interval contains no effect, or the opposite one.
    #[serde(rename = "not repeated")]
    NotRepeated,
    /// The data or the numbers of the paper are not available.
    #[serde(rename = "not testable here")]
    NotTestable,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Repeated => "repeated",
            Verdict::InSign => "repeated in sign",
            Verdict::NotRepeated => "not repeated",
            Verdict::NotTestable => "not testable here",
        }
    }
}

/// Mean of an effect with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// Number of independent samples, such as seeds or sites.
    pub n: usize,
}

impl Interval {
    /// The t interval of a mean; `None` for fewer than three samples.
    pub fn from_samples(samples: &[f64]) -> Option<Interval> {
        let n = samples.len();
        if n < 3 || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half = T.get(n - 2).copied().unwrap_or(2.1) * (variance / n as f64).sqrt();
        Some(Interval { mean, low: mean - half, high: mean + half, n })
    }

    /// The verdict on a claim that the effect is positive, and about as large as published if a number is.
    pub fn judge(&self, published: Option<f64>) -> Verdict {
        match published {
            _ if self.low <= 0.0 => Verdict::NotRepeated,
            Some(effect) if self.high >= effect => Verdict::Repeated,
            None if self.mean >= LEAST_EFFECT => Verdict::Repeated,
            _ => Verdict::InSign,
        }
    }

    /// The verdict on a claim that there is no effect: the whole interval is within the tolerance.
    pub fn judge_constant(&self, tolerance: f64) -> Verdict {
        match self.low >= -tolerance && self.high <= tolerance {
            true => Verdict::Repeated,
            false => Verdict::NotRepeated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_repeated_if_the_interval_contains_no_effect() {
        let judge = |samples: &[f64], published| Interval::from_samples(samples).unwrap().judge(published);
        assert_eq!(judge(&[0.3, -0.1, 0.2], None), Verdict::NotRepeated);
        assert_eq!(judge(&[0.3, -0.1, 0.2], Some(0.1)), Verdict::NotRepeated);
        assert_eq!(judge(&[0.2, 0.21, 0.19], Some(0.2)), Verdict::Repeated);
        assert_eq!(judge(&[0.05, 0.06, 0.055], Some(0.2)), Verdict::InSign);
        assert_eq!(judge(&[-0.2, -0.21, -0.19], Some(0.2)), Verdict::NotRepeated);
        // Less than two points are no growth.
        assert_eq!(judge(&[0.008, 0.009, 0.0085], None), Verdict::InSign);
        assert_eq!(judge(&[0.05, 0.06, 0.055], None), Verdict::Repeated);
    }

    #[test]
    fn few_samples_have_no_interval() {
        assert_eq!(Interval::from_samples(&[0.5, 0.5]), None);
        assert_eq!(Interval::from_samples(&[0.5, 0.5, f64::NAN]), None);
        let known = Interval::from_samples(&[1.0, 2.0, 3.0]).unwrap();
        assert!((known.mean - 2.0).abs() < 1e-12 && (known.high - 4.48).abs() < 0.01, "{known:?}");
    }

    #[test]
    fn a_constant_needs_a_narrow_interval() {
        let judge = |samples: &[f64]| Interval::from_samples(samples).unwrap().judge_constant(0.02);
        assert_eq!(judge(&[0.001, 0.002, -0.001]), Verdict::Repeated);
        assert_eq!(judge(&[0.1, -0.1, 0.0]), Verdict::NotRepeated);
    }
}
