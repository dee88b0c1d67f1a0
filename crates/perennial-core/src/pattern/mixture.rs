//! Visits that skip periods -> rates of change and importances by bucket, with patterns that pages share
//! (P-PATTERN 6.3.4).
//!
//! A page's rate in bucket b is a * S_c\[b\]: how often it changes (a, on a logarithmic grid) times when pages of
//! its kind change (the shape S_c). Each visit says only whether something changed since the visit before;
//! the likelihood of that weighs every pair (a, c), and the pairs' shares over all pages are the prior of each.
//! On top of this, every page's own counts move its buckets (a few EM rounds), and the pages' counts move the
//! shapes. A bucket is a period of the day on workdays or on other days; holidays count as weekend, which they
//! resemble.

use crate::time::DayKind;

/// Values of a: 0.00093 to 112 a day, each 1.34 times the one before.
pub const N_RATES: usize = 41;
const HIGHEST_PER_DAY: f64 = 112.0;
const RATE_STEP: f64 = 1.3398;
/// Flat, bumps around the clock, and office, evening, night and weekend days: before anything is learned.
pub const N_SHAPES: usize = 14;
/// Above this rate every look an hour apart sees a change; more cannot be told.
pub const HIGHEST_RATE: f32 = 4.7;
/// Weight of the prior against a page's own counts, in expected changes a bucket.
const OWN_PRIOR: f32 = 1.5;
/// The same for a shape against the counts of its pages.
const SHAPE_PRIOR: f32 = 20.0;
/// Weight of the page's mean importance against a bucket's, and of all pages' mean against the page's.
const BUCKET_IMPORTANCE_PRIOR: f32 = 6.0;
const PAGE_IMPORTANCE_PRIOR: f32 = 3.0;
/// Differences above the first say little more than that all is new; none counts for more than the second.
const SATURATED: f32 = 0.8;
const FULL_DIFFERENCE: f32 = 0.98;
/// Weight of the prior over all pages against a group's own, in pages.
const GROUP_PRIOR: f32 = 5.0;
/// A page's importance counts as known from so many changes on.
const KNOWN_CHANGES: f32 = 4.0;
/// How many deviations above the mean an unknown page is hoped to be.
const HOPE: f32 = 2.0;
const N_EM_ROUNDS: usize = 4;
const N_IMPORTANCE_ROUNDS: usize = 3;

/// What the importance of a visit means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Observed {
    /// The difference to the last copy, everything in between included: what a crawler sees (C1).
    #[default]
    Difference,
    /// The importance of the last change alone: what some simulated worlds report.
    LastChange,
}

/// A stretch of a visit's interval within one bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BucketPiece {
    /// Which bucket.
    pub bucket: u16,
    /// Its length in hours.
    pub hours: f32,
    /// How many such stretches the interval has.
    pub times: f32,
}

/// Which bucket a period of a day falls into.
pub fn bucket_of(kind: DayKind, period: u16, n_periods: u16) -> u16 {
    if kind == DayKind::Workday { period } else { period + n_periods }
}

/// The visits of one page, cut into pieces by bucket; reused from page to page.
#[derive(Clone, Default, Debug)]
pub struct Visits {
    pieces: Vec<BucketPiece>,
    looks: Vec<Look>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    end: u32,
    importance: Option<f32>,
    weight: f32,
}

impl Visits {
    /// Forgets all visits, keeps the memory.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.looks.clear();
    }

    /// Adds a piece of the visit that the next [`Visits::close`] ends.
    pub fn add_piece(&mut self, piece: BucketPiece) {
        self.pieces.push(piece);
    }

    /// Ends a visit: what was seen, and how much the visit counts.
    pub fn close(&mut self, importance: Option<f32>, weight: f32) {
        self.looks.push(Look { end: self.pieces.len() as u32, importance, weight });
    }

    /// How many visits there are.
    pub fn len(&self) -> usize {
        self.looks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// Whether what was believed of the page's importance bears on how any visit is read.
    fn any_saturated(&self) -> bool {
        self.looks.iter().any(|look| look.importance.is_some_and(|importance| importance > SATURATED))
    }

    fn iter(&self) -> impl Iterator<Item = (&[BucketPiece], Option<f32>, f32)> {
        let mut start = 0;
        self.looks.iter().map(move |look| {
            let pieces = self.pieces.get(start..look.end as usize).unwrap_or_default();
            start = look.end as usize;
            (pieces, look.importance, look.weight)
        })
    }
}

/// How to read the importance of a visit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    /// What it means.
    pub observed: Observed,
    /// Mean importance of one change of the page, as believed so far, on the scale on which differences add up.
    pub of_page: f32,
}

impl Scale {
    /// A difference on the scale on which the changes behind it add up. When nearly nothing is left of the last
    /// copy, the difference says "at least so much" and no more: if more was believed, it says nothing, or a page
    /// that is seen once a week would seem to change by trifles.
    fn added_up(self, difference: f32, n_changes: f32) -> Option<f32> {
        let seen = -(1.0 - difference.min(FULL_DIFFERENCE)).ln();
        let is_mute = difference > SATURATED && seen < self.of_page * n_changes;
        (!is_mute).then_some(seen)
    }
}

/// What a page's visits add up to, by bucket.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counts {
    /// Expected changes.
    pub n: Vec<f32>,
    /// Hours looked over.
    pub hours: Vec<f32>,
    /// Importance, on the scale on which differences add up.
    pub wy: Vec<f32>,
    /// Expected changed slots to which it belongs.
    pub ny: Vec<f32>,
}

impl Counts {
    /// Nothing seen.
    pub fn new(n_buckets: usize) -> Counts {
        let zeros = || vec![0.0; n_buckets];
        Counts { n: zeros(), hours: zeros(), wy: zeros(), ny: zeros() }
    }

    /// Everything counts for less.
    pub fn fade(&mut self, factor: f32) {
        for column in [&mut self.n, &mut self.hours, &mut self.wy, &mut self.ny] {
            column.iter_mut().for_each(|value| *value *= factor);
        }
    }

    fn reset_changes(&mut self, to: Option<&Counts>) {
        reset(&mut self.n, to.map(|to| &to.n));
        reset(&mut self.hours, to.map(|to| &to.hours));
    }

    fn reset_importance(&mut self, to: Option<&Counts>) {
        reset(&mut self.wy, to.map(|to| &to.wy));
        reset(&mut self.ny, to.map(|to| &to.ny));
    }

    /// Books one visit under the rates believed in: a change happened somewhere in the interval, more likely
    /// where the rate is high. `rate` gives changes an hour by bucket.
    pub fn add_visit(
        &mut self,
        pieces: &[BucketPiece],
        importance: Option<f32>,
        weight: f32,
        scale: Scale,
        rate: impl Fn(usize) -> f32,
    ) {
        self.add_hours(pieces, weight);
        let Some(importance) = importance else { return };
        self.add_changes(pieces, weight, &rate);
        self.add_importance(pieces, importance, weight, scale, &rate);
    }

    fn add_hours(&mut self, pieces: &[BucketPiece], weight: f32) {
        for piece in pieces {
            self.hours[usize::from(piece.bucket)] += weight * piece.hours * piece.times;
        }
    }

    fn add_changes(&mut self, pieces: &[BucketPiece], weight: f32, rate: &impl Fn(usize) -> f32) {
        let total = integral(pieces, rate);
        let scale = weight / one_minus_exp(total).max(1e-9);
        for piece in pieces {
            let b = usize::from(piece.bucket);
            self.n[b] += scale * rate(b) * piece.hours * piece.times;
        }
    }

    fn add_importance(
        &mut self,
        pieces: &[BucketPiece],
        importance: f32,
        weight: f32,
        scale: Scale,
        rate: &impl Fn(usize) -> f32,
    ) {
        let total = integral(pieces, rate);
        let any = one_minus_exp(total).max(1e-9);
        match scale.observed {
            Observed::Difference => {
                let p = |piece: &BucketPiece| {
                    let x = rate(usize::from(piece.bucket)) * piece.hours;
                    // x - x^2/2 + x^3/6 is as good below a tenth and needs no exponential.
                    let p = if x < 0.1 { x * (1.0 - x * (0.5 - x / 6.0)) } else { one_minus_exp(x) };
                    p * piece.times
                };
                let sum: f32 = pieces.iter().map(p).sum::<f32>().max(1e-9);
                let Some(seen) = scale.added_up(importance, sum / any) else { return };
                for piece in pieces {
                    let p = p(piece);
                    self.wy[usize::from(piece.bucket)] += weight * seen * p / sum;
                    self.ny[usize::from(piece.bucket)] += weight * p / any;
                }
            }
            Observed::LastChange => {
                // g_b: the last change fell into this piece and none into the later ones.
                let mut later = 0.0f32;
                for piece in pieces.iter().rev() {
                    let x = rate(usize::from(piece.bucket)) * piece.hours * piece.times;
                    let g = weight * (-later).exp() * one_minus_exp(x) / any;
                    self.wy[usize::from(piece.bucket)] += g * importance;
                    self.ny[usize::from(piece.bucket)] += g;
                    later += x;
                }
            }
        }
    }
}

fn reset(column: &mut [f32], to: Option<&Vec<f32>>) {
    match to {
        Some(to) => column.copy_from_slice(to),
        None => column.fill(0.0),
    }
}

/// ln x for positive x to three digits, without a call: the exponent by its bits, the rest by a polynomial.
pub(crate) fn quick_ln(x: f32) -> f32 {
    let bits = x.to_bits();
    let exponent = (bits >> 23) as f32 - 127.0;
    let m = f32::from_bits((bits & 0x007F_FFFF) | 0x3F80_0000);
    let log2 = -2.794_153_7
        + m * (5.069_756_3 + m * (-3.520_218_8 + m * (1.610_177_5 + m * (-0.409_475_6 + m * 0.043_928_6))));
    (exponent + log2) * std::f32::consts::LN_2
}

fn integral(pieces: &[BucketPiece], rate: &impl Fn(usize) -> f32) -> f32 {
    pieces.iter().map(|piece| rate(usize::from(piece.bucket)) * piece.hours * piece.times).sum()
}

/// 1 - exp(-x), exact for small x.
fn one_minus_exp(x: f32) -> f32 {
    -(-x).exp_m1()
}

/// What is believed of one page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fit {
    /// Changes an hour by bucket.
    pub rates: Vec<f32>,
    /// The same before the page's own counts were added.
    pub prior_rates: Vec<f32>,
    /// Mean importance of a change by bucket.
    pub importance: Vec<f32>,
    /// What the visits add up to.
    pub counts: Counts,
    /// Share of each pair (shape, rate), rates innermost.
    pub posterior: Vec<f32>,
}

impl Fit {
    fn sized(&mut self, n_buckets: usize) {
        if self.rates.len() != n_buckets {
            *self = Fit {
                rates: vec![0.0; n_buckets],
                prior_rates: vec![0.0; n_buckets],
                importance: vec![0.0; n_buckets],
                counts: Counts::new(n_buckets),
                posterior: vec![0.0; N_SHAPES * N_RATES],
            };
        }
    }

    /// The shape that fits best and its share.
    pub fn best_shape(&self) -> (usize, f32) {
        let share = |c: &[f32]| c.iter().sum::<f32>();
        let shares = self.posterior.chunks(N_RATES).map(share).enumerate();
        shares.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best })
    }
}

/// Sums over pages from which shapes and priors are re-estimated.
#[derive(Clone, Debug)]
pub struct Sweep {
    shape_n: Vec<f32>,
    shape_hours: Vec<f32>,
    prior: Vec<f32>,
    /// Number of pages whose importance is known, sum and sum of squares of it.
    importance: (f32, f32, f32),
    n_pages: u32,
}

/// The model that all pages share.
#[derive(Clone, Debug)]
pub struct Mixture {
    n_buckets: usize,
    observed: Observed,
    /// Share of the week of each bucket; sums to 1.
    week: Vec<f32>,
    /// Relative rates, shape after shape, mean 1 over the week.
    shapes: Vec<f32>,
    prior: Vec<f32>,
    /// The same per group, where a group has pages.
    groups: Vec<GroupPrior>,
    rates: Vec<f32>,
    /// ln(1 - exp(-x)) for x on a logarithmic grid with the step of the rates.
    ln_change: Vec<f32>,
    /// From ln x to a place in the table: add, then multiply.
    table_shift: f32,
    table_scale: f32,
    /// The shapes once more, bucket after bucket.
    by_bucket: Vec<[f32; N_SHAPES]>,
    /// What the importance of an unknown page is taken to be: more than the mean, so that it is found out.
    hope: f32,
}

/// What the pages of one group turned out to be.
#[derive(Clone, Debug, Default)]
struct GroupPrior {
    sum: Vec<f32>,
    n_pages: f32,
}

/// ln x at the start of the table.
const TABLE_START: f64 = -30.0;
const N_TABLE: usize = 190;

impl Mixture {
    /// The model before anything was seen, for days of `n_periods`.
    pub fn new(n_periods: u16, observed: Observed) -> Mixture {
        let n_periods = usize::from(n_periods.max(1));
        let n_buckets = 2 * n_periods;
        let share = |days: f32| days / 7.0 / n_periods as f32;
        let week: Vec<f32> = (0..n_buckets).map(|b| share(if b < n_periods { 5.0 } else { 2.0 })).collect();
        let rates = rate_grid();
        let mut mixture = Mixture {
            n_buckets,
            observed,
            shapes: first_shapes(n_periods, &week),
            week,
            prior: first_prior(&rates),
            groups: Vec::new(),
            ln_change: ln_change_table(),
            table_shift: (f64::from(rates[0]).ln() - TABLE_START) as f32,
            table_scale: (1.0 / RATE_STEP.ln()) as f32,
            by_bucket: vec![[0.0; N_SHAPES]; n_buckets],
            rates,
            hope: match observed {
                Observed::Difference => 0.35,
                Observed::LastChange => 0.3,
            },
        };
        mixture.normalise_shapes();
        mixture
    }

    /// Buckets a week is cut into.
    pub fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    /// Share of the week of each bucket.
    pub fn week(&self) -> &[f32] {
        &self.week
    }

    /// Relative rates of a shared pattern, mean 1 over the week.
    pub fn shape(&self, shape: usize) -> &[f32] {
        self.shapes.get(shape * self.n_buckets..(shape + 1) * self.n_buckets).unwrap_or_default()
    }

    /// What a visit's importance means.
    pub fn observed(&self) -> Observed {
        self.observed
    }

    /// Fits one page to its visits and to what older visits added up to.
    pub fn fit(&self, visits: &Visits, settled: Option<&Counts>, group: u32, fit: &mut Fit) {
        fit.sized(self.n_buckets);
        self.weigh_pairs(visits, settled, group, &mut fit.posterior);
        self.expect_rates(&fit.posterior, &mut fit.prior_rates);
        fit.rates.copy_from_slice(&fit.prior_rates);
        for _ in 0..if visits.is_empty() { 1 } else { N_EM_ROUNDS } {
            fit.counts.reset_changes(settled);
            let rates = &fit.rates;
            for (pieces, importance, weight) in visits.iter() {
                fit.counts.add_hours(pieces, weight);
                if importance.is_some() {
                    fit.counts.add_changes(pieces, weight, &|b| rates[b]);
                }
            }
            for b in 0..self.n_buckets {
                fit.rates[b] = own_rate(fit.counts.n[b], fit.counts.hours[b], fit.prior_rates[b]);
            }
        }
        self.fit_importance(visits, fit, settled);
    }

    fn fit_importance(&self, visits: &Visits, fit: &mut Fit, settled: Option<&Counts>) {
        let mut scale = self.scale(self.hope);
        for _ in 0..N_IMPORTANCE_ROUNDS {
            fit.counts.reset_importance(settled);
            let rates = &fit.rates;
            for (pieces, importance, weight) in visits.iter() {
                if let Some(importance) = importance {
                    fit.counts.add_importance(pieces, importance, weight, scale, &|b| rates[b]);
                }
            }
            scale.of_page = self.page_importance(&fit.counts);
            if self.observed == Observed::LastChange || !visits.any_saturated() {
                break;
            }
        }
        for b in 0..self.n_buckets {
            fit.importance[b] = self.bucket_importance(&fit.counts, b, scale.of_page);
        }
    }

    /// How visits of a page with this mean importance are to be read.
    pub fn scale(&self, of_page: f32) -> Scale {
        Scale { observed: self.observed, of_page }
    }

    /// mu of the page: its mean importance, on the scale of the counts.
    pub fn page_importance(&self, counts: &Counts) -> f32 {
        let (wy, ny): (f32, f32) = (counts.wy.iter().sum(), counts.ny.iter().sum());
        (wy + PAGE_IMPORTANCE_PRIOR * self.hope) / (ny + PAGE_IMPORTANCE_PRIOR)
    }

    /// m_b: the importance that a change in one bucket is expected to have.
    pub fn bucket_importance(&self, counts: &Counts, bucket: usize, of_page: f32) -> f32 {
        let mu = (counts.wy[bucket] + BUCKET_IMPORTANCE_PRIOR * of_page)
            / (counts.ny[bucket] + BUCKET_IMPORTANCE_PRIOR);
        match self.observed {
            Observed::Difference => one_minus_exp(mu),
            Observed::LastChange => mu.min(1.0),
        }
    }

    /// Posterior over the pairs (shape, rate), rates innermost.
    fn weigh_pairs(&self, visits: &Visits, settled: Option<&Counts>, group: u32, posterior: &mut [f32]) {
        self.fill_log_prior(group, posterior);
        let mut unchanged = [0.0f32; N_SHAPES];
        for (pieces, importance, weight) in visits.iter() {
            let integrals = self.integrate(pieces);
            if importance.is_none() {
                for (sum, x) in unchanged.iter_mut().zip(integrals) {
                    *sum += weight * x;
                }
                continue;
            }
            for (c, x) in integrals.into_iter().enumerate() {
                self.add_ln_change(x, weight, &mut posterior[c * N_RATES..(c + 1) * N_RATES]);
            }
        }
        if let Some(settled) = settled {
            self.add_settled(settled, &mut unchanged, posterior);
        }
        for (c, hours) in unchanged.into_iter().enumerate() {
            for (i, rate) in self.rates.iter().enumerate() {
                posterior[c * N_RATES + i] -= rate * hours;
            }
        }
        exponentiate(posterior);
    }

    /// Visits that were added up long ago count as if their changes had been seen one by one.
    fn add_settled(&self, settled: &Counts, unchanged: &mut [f32; N_SHAPES], posterior: &mut [f32]) {
        let n_changes: f32 = settled.n.iter().sum();
        for (c, sum) in unchanged.iter_mut().enumerate() {
            let shape = self.shape(c);
            let mut by_shape = 0.0;
            for ((share, hours), n) in shape.iter().zip(&settled.hours).zip(&settled.n).take(self.n_buckets) {
                *sum += share * hours;
                by_shape += n * share.max(1e-6).ln();
            }
            for (i, rate) in self.rates.iter().enumerate() {
                posterior[c * N_RATES + i] += by_shape + n_changes * rate.ln();
            }
        }
    }

    fn integrate(&self, pieces: &[BucketPiece]) -> [f32; N_SHAPES] {
        let mut sums = [0.0; N_SHAPES];
        for piece in pieces {
            let hours = piece.hours * piece.times;
            let shapes = &self.by_bucket[usize::from(piece.bucket)];
            sums.iter_mut().zip(shapes).for_each(|(sum, shape)| *sum += hours * shape);
        }
        sums
    }

    /// Adds weight * ln(1 - exp(-a x)) for every rate a: one look into the table, since the rates are a
    /// geometric series.
    fn add_ln_change(&self, x: f32, weight: f32, into: &mut [f32]) {
        let place = (quick_ln(x.max(1e-9)) + self.table_shift) * self.table_scale;
        let place = place.clamp(0.0, (N_TABLE - N_RATES - 2) as f32);
        let (start, share) = (place as usize, place.fract());
        let low = &self.ln_change[start..start + N_RATES];
        let high = &self.ln_change[start + 1..start + 1 + N_RATES];
        for ((into, low), high) in into.iter_mut().zip(low).zip(high) {
            *into += weight * (low + share * (high - low));
        }
    }

    fn fill_log_prior(&self, group: u32, into: &mut [f32]) {
        match self.groups.get(group as usize).filter(|group| group.n_pages > 0.0) {
            Some(group) => {
                let total = group.n_pages + GROUP_PRIOR;
                for ((into, sum), prior) in into.iter_mut().zip(&group.sum).zip(&self.prior) {
                    *into = ((sum + GROUP_PRIOR * prior) / total).ln();
                }
            }
            None => into.iter_mut().zip(&self.prior).for_each(|(into, prior)| *into = prior.ln()),
        }
    }

    /// E\[a * S_c\[b\]\].
    fn expect_rates(&self, posterior: &[f32], into: &mut [f32]) {
        into.fill(0.0);
        for (c, shares) in posterior.chunks(N_RATES).enumerate() {
            let mean: f32 = shares.iter().zip(&self.rates).map(|(share, rate)| share * rate).sum();
            if mean > 1e-9 {
                let shape = self.shape(c);
                into.iter_mut().zip(shape).for_each(|(into, relative)| *into += mean * relative);
            }
        }
        into.iter_mut().for_each(|rate| *rate = rate.clamp(1e-6, HIGHEST_RATE));
    }

    /// Starts a round over pages.
    pub fn begin_sweep(&self) -> Sweep {
        Sweep {
            shape_n: vec![0.0; N_SHAPES * self.n_buckets],
            shape_hours: vec![0.0; N_SHAPES * self.n_buckets],
            prior: vec![0.0; N_SHAPES * N_RATES],
            importance: (0.0, 0.0, 0.0),
            n_pages: 0,
        }
    }

    /// Adds a fitted page to the round.
    pub fn add_to_sweep(&self, fit: &Fit, sweep: &mut Sweep) {
        sweep.n_pages += 1;
        let (wy, ny): (f32, f32) = (fit.counts.wy.iter().sum(), fit.counts.ny.iter().sum());
        if ny > KNOWN_CHANGES {
            let mu = wy / ny;
            let (n, sum, squares) = sweep.importance;
            sweep.importance = (n + 1.0, sum + mu, squares + mu * mu);
        }
        sweep.prior.iter_mut().zip(&fit.posterior).for_each(|(sum, share)| *sum += share);
        for (c, shares) in fit.posterior.chunks(N_RATES).enumerate() {
            let share: f32 = shares.iter().sum();
            if share < 1e-4 {
                continue;
            }
            let mean: f32 = shares.iter().zip(&self.rates).map(|(share, rate)| share * rate).sum();
            let from = c * self.n_buckets;
            for b in 0..self.n_buckets {
                sweep.shape_n[from + b] += share * fit.counts.n[b];
                sweep.shape_hours[from + b] += mean * fit.counts.hours[b];
            }
        }
    }

    /// Moves shapes and priors to what the round has found.
    pub fn end_sweep(&mut self, sweep: &Sweep) {
        if sweep.n_pages == 0 {
            return;
        }
        for (at, shape) in self.shapes.iter_mut().enumerate() {
            *shape = (sweep.shape_n[at] + SHAPE_PRIOR * *shape) / (sweep.shape_hours[at] + SHAPE_PRIOR);
        }
        self.normalise_shapes();
        let n_pairs = (N_SHAPES * N_RATES) as f32;
        let n_pages = sweep.n_pages as f32;
        for (prior, sum) in self.prior.iter_mut().zip(&sweep.prior) {
            *prior = (sum + 2.0 / n_pairs) / (n_pages + 2.0);
        }
        self.hope = hope_of(sweep.importance, self.hope);
    }

    /// Forgets what the groups turned out to be, to gather it anew.
    pub fn clear_groups(&mut self) {
        self.groups.clear();
    }

    /// Adds a fitted page to its group.
    pub fn add_to_group(&mut self, group: u32, fit: &Fit) {
        let at = group as usize;
        if at >= self.groups.len() {
            self.groups.resize_with(at + 1, GroupPrior::default);
        }
        let group = &mut self.groups[at];
        group.sum.resize(N_SHAPES * N_RATES, 0.0);
        group.sum.iter_mut().zip(&fit.posterior).for_each(|(sum, share)| *sum += share);
        group.n_pages += 1.0;
    }

    fn normalise_shapes(&mut self) {
        for shape in self.shapes.chunks_mut(self.n_buckets) {
            let mean: f32 = shape.iter().zip(&self.week).map(|(relative, share)| relative * share).sum();
            let mean = mean.max(1e-6);
            shape.iter_mut().for_each(|relative| *relative = (*relative / mean).max(1e-3));
        }
        for (b, by_shape) in self.by_bucket.iter_mut().enumerate() {
            for (c, relative) in by_shape.iter_mut().enumerate() {
                *relative = self.shapes[c * self.n_buckets + b];
            }
        }
    }
}

/// Mean and a deviation of the pages' importances, with a few imagined pages of what was hoped before.
fn hope_of((n, sum, squares): (f32, f32, f32), before: f32) -> f32 {
    let mean = sum / n.max(1.0);
    let deviation = (squares / n.max(1.0) - mean * mean).max(0.0).sqrt();
    (n * (mean + HOPE * deviation) + 5.0 * before) / (n + 5.0)
}

/// A bucket's rate from the page's counts and the prior.
pub fn own_rate(n_changes: f32, hours: f32, prior: f32) -> f32 {
    ((n_changes + OWN_PRIOR) / (hours + OWN_PRIOR / prior.max(1e-7))).clamp(1e-7, HIGHEST_RATE)
}

fn rate_grid() -> Vec<f32> {
    let value = |i: usize| HIGHEST_PER_DAY / 24.0 / RATE_STEP.powi((N_RATES - 1 - i) as i32);
    (0..N_RATES).map(|i| value(i) as f32).collect()
}

fn ln_change_table() -> Vec<f32> {
    let at = |j: usize| (TABLE_START + j as f64 * RATE_STEP.ln()).exp();
    (0..N_TABLE).map(|j| (-(-at(j)).exp_m1()).max(1e-300).ln() as f32).collect()
}

/// Most pages change between once in ten days and ten times a day.
fn first_prior(rates: &[f32]) -> Vec<f32> {
    let weight = |rate: f32| {
        let z = (f64::from(rate) * 24.0).ln() / 2.5;
        ((-0.5 * z * z).exp() + 0.02) as f32
    };
    let mut prior: Vec<f32> = (0..N_SHAPES).flat_map(|_| rates.iter().map(|&rate| weight(rate))).collect();
    let sum: f32 = prior.iter().sum();
    prior.iter_mut().for_each(|share| *share /= sum);
    prior
}

fn first_shapes(n_periods: usize, week: &[f32]) -> Vec<f32> {
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

/// From log weights to shares that sum to 1.
fn exponentiate(weights: &mut [f32]) {
    let top = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for weight in weights.iter_mut() {
        *weight = if *weight > top - 20.0 { (*weight - top).exp() } else { 0.0 };
        sum += *weight;
    }
    let n = weights.len() as f32;
    if sum > 0.0 && sum.is_finite() {
        weights.iter_mut().for_each(|weight| *weight /= sum);
    } else {
        weights.fill(1.0 / n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_logarithms_are_close() {
        for i in 1..10_000 {
            let x = (i as f32 * 0.004 - 20.0).exp();
            assert!((quick_ln(x) - x.ln()).abs() < 1e-3, "{x}");
        }
    }

    fn looked(gap_hours: u16, n: usize, changed: impl Fn(usize) -> Option<f32>) -> Visits {
        let mut visits = Visits::default();
        let mut hour = 0u16;
        for look in 0..n {
            for _ in 0..gap_hours {
                visits.add_piece(BucketPiece { bucket: hour % 24, hours: 1.0, times: 1.0 });
                hour = (hour + 1) % 24;
            }
            visits.close(changed(look), 1.0);
        }
        visits
    }

    #[test]
    fn rates_come_back_from_looks_that_skip_periods() {
        let mixture = Mixture::new(24, Observed::Difference);
        let mut fit = Fit::default();
        // Every sixth look of six hours saw a change: one in 33 hours.
        mixture.fit(&looked(6, 400, |look| (look % 6 == 0).then_some(0.3)), None, 0, &mut fit);
        let mean = fit.rates[..24].iter().sum::<f32>() / 24.0;
        assert!((mean * 33.0 - 1.0).abs() < 0.25, "{mean}");
        assert!((fit.importance[5] - 0.3).abs() < 0.06, "{}", fit.importance[5]);
        assert!((fit.posterior.iter().sum::<f32>() - 1.0).abs() < 1e-3);
    }

    /// A page that is wholly new after a week may change much or little: the look says nothing of a single change.
    #[test]
    fn saturated_differences_do_not_make_a_page_dull() {
        let mixture = Mixture::new(24, Observed::Difference);
        let (mut unseen, mut saturated, mut dull) = (Fit::default(), Fit::default(), Fit::default());
        mixture.fit(&Visits::default(), None, 0, &mut unseen);
        mixture.fit(&looked(168, 4, |_| Some(0.97)), None, 0, &mut saturated);
        mixture.fit(&looked(168, 4, |_| Some(0.3)), None, 0, &mut dull);
        assert!(saturated.importance[0] > 0.8 * unseen.importance[0]);
        assert!(dull.importance[0] < 0.3 * unseen.importance[0]);
    }
}
