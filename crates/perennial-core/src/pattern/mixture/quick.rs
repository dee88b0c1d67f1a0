//! Numbers -> exponentials, logarithms and sums with less precision, in a form that the compiler vectorises.

/// Parallel sums, because each addition to a single sum would wait for the previous one.
const LANES: usize = 8;

#[inline]
pub(crate) fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// The largest value; negative infinity for an empty slice.
#[inline]
pub(crate) fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = larger(*lane, *value));
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |top, value| larger(top, *value))
}

#[inline]
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let n = left.len().min(right.len());
    let (left, left_rest) = left[..n].as_chunks::<LANES>();
    let (right, right_rest) = right[..n].as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        lanes.iter_mut().zip(left.iter().zip(right)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

/// ln x for positive x to three digits, without a call: the exponent from the bits, the rest by a polynomial.
pub fn quick_ln(x: f32) -> f32 {
    let bits = x.to_bits();
    let exponent = (bits >> 23) as f32 - 127.0;
    let m = f32::from_bits((bits & 0x007F_FFFF) | 0x3F80_0000);
    let log2 = -2.794_153_7
        + m * (5.069_756_3 + m * (-3.520_218_8 + m * (1.610_177_5 + m * (-0.409_475_6 + m * 0.043_928_6))));
    (exponent + log2) * std::f32::consts::LN_2
}

/// 1 - exp(-x).
#[inline]
pub(crate) fn one_minus_exp(x: f32) -> f32 {
    let near = x * (1.0 - x * (0.5 - x * (1.0 / 6.0 - x * (1.0 / 24.0))));
    let far = 1.0 - exp_neg(x);
    if x < 0.1 { near } else { far }
}

/// exp(-x) for x >= 0 to seven digits, without a call, so a loop over it is vectorised. The power of two is
/// added to the exponent as an integer; a polynomial gives the rest.
#[inline]
pub(crate) fn exp_neg(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let t = (-x).max(-86.0) * std::f32::consts::LOG2_E;
    let shifted = t + ROUND;
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits());
    let f = t - (shifted - ROUND);
    let p = 1.0
        + f * (std::f32::consts::LN_2
            + f * (0.240_226_5
                + f * (0.055_504_11 + f * (0.009_618_13 + f * (0.001_333_36 + f * 0.000_154_035)))));
    f32::from_bits(p.to_bits().wrapping_add(n << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_exact_enough() {
        for i in 0..20_000 {
            let x = i as f32 * 0.004;
            let exact = (-f64::from(x)).exp();
            // The argument is known to seven digits only.
            let tolerance = (1e-6 + 2e-7 * f64::from(x)) * exact;
            assert!((f64::from(exp_neg(x)) - exact).abs() <= tolerance, "{x}");
            let exact = -(-f64::from(x)).exp_m1();
            assert!((f64::from(one_minus_exp(x)) - exact).abs() <= 2e-6 * exact, "{x}");
        }
    }

    #[test]
    fn sums_in_lanes_are_sums() {
        for n in [0, 1, 7, 8, 9, 48, 100] {
            let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(sum(&values), (n * n.max(1) - n) as f32 / 2.0, "{n}");
            assert_eq!(dot(&values, &vec![2.0; n as usize]), 2.0 * sum(&values), "{n}");
        }
    }

    #[test]
    fn the_largest_is_found_in_any_lane() {
        let values = [-3.0, -1.0, -7.0, -2.5, -9.0, -4.0, -6.0, -8.0, -5.0, -0.5, -2.0];
        for n in 1..=values.len() {
            let slow = values[..n].iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(largest(&values[..n]), slow);
        }
        assert_eq!(largest(&[]), f32::NEG_INFINITY);
        assert_eq!(largest(&[f32::NAN, 1.0]), 1.0);
    }

    #[test]
    fn quick_logarithms_are_close() {
        for i in 1..10_000 {
            let x = (i as f32 * 0.004 - 20.0).exp();
            assert!((quick_ln(x) - x.ln()).abs() < 1e-3, "{x}");
        }
    }
}
