//! The initial rates, shapes and prior of the model, and its table of logarithms.

use super::{N_RATES, N_SHAPES};

const HIGHEST_PER_DAY: f64 = 112.0;
/// The ratio of successive rates.
pub(super) const RATE_STEP: f64 = 1.3398;
/// ln x at the start of the table.
pub(super) const TABLE_START: f64 = -30.0;
pub(super) const N_TABLE: usize = 190;

pub(super) fn rate_grid() -> Vec<f32> {
    let value = |i: usize| HIGHEST_PER_DAY / 24.0 / RATE_STEP.powi((N_RATES - 1 - i) as i32);
    (0..N_RATES).map(|i| value(i) as f32).collect()
}

pub(super) fn ln_change_table() -> Vec<f32> {
    let at = |j: usize| (TABLE_START + j as f64 * RATE_STEP.ln()).exp();
    (0..N_TABLE).map(|j| (-(-at(j)).exp_m1()).max(1e-300).ln() as f32).collect()
}

/// Initially every order of magnitude is equally likely. Suppose that the prior favoured slow pages. Then pages with
/// a change in every observation would remain just above the excluded rates.
pub(super) fn first_prior() -> Vec<f32> {
    vec![1.0 / (N_SHAPES * N_RATES) as f32; N_SHAPES * N_RATES]
}

pub(super) fn first_shapes(n_periods: usize, week: &[f32]) -> Vec<f32> {
    let hour_of = |b: usize| ((b % n_periods) as f32 + 0.5) * 24.0 / n_periods as f32;
    let mut shapes = Vec::with_capacity(N_SHAPES * week.len());
    for c in 0..N_SHAPES {
        for b in 0..week.len() {
            shapes.push(first_shape(c, hour_of(b), b < n_periods));
        }
    }
    shapes
}

fn first_shape(shape: usize, hour: f32, is_workday: bool) -> f32 {
    let bump = |centre: f32, width: f32| {
        let away = (hour - centre).abs();
        let away = away.min(24.0 - away) / width;
        0.15 + 3.0 * (-0.5 * away * away).exp()
    };
    let rest = |share: f32| if is_workday { 1.0 } else { share };
    match shape {
        0 => 1.0,
        1..=8 => bump(3.0 * (shape as f32 - 1.0), 2.0),
        9 => bump(13.0, 4.5) * rest(0.8),
        10 => bump(13.0, 3.5) * rest(0.25),
        11 => bump(18.0, 3.5) * rest(1.0),
        12 => bump(1.0, 4.0) * rest(1.0),
        _ => bump(14.0, 5.0) * rest(2.5),
    }
}
