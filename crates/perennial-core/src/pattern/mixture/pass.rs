//! All fitted pages -> the shapes, the prior of each pair (shape, rate), and the default importance of a page
//! (docs/papers.md, Learning from visits).

use super::{GROUP_PRIOR, GroupPrior, Mixture, N_RATES, N_SHAPES, ObservedImportance, PageFit};

/// Weight of the previous shape against the counts of its pages, in expected changes per bucket.
const SHAPE_PRIOR: f32 = 20.0;
/// Weight of the relative size of all pages in a bucket against that of the group, and of 1 against that of all
/// pages, in changed hours.
const SIZE_PRIOR: f32 = 30.0;
/// With more changed hours than this, a page's importance counts as known.
const KNOWN_CHANGES: f32 = 4.0;
/// The default importance exceeds the mean by this many standard deviations.
const UNKNOWN_DEVIATIONS: f32 = 2.0;

/// Sums over pages, from which shapes and priors are re-estimated.
#[derive(Clone, Debug)]
pub struct EmPass {
    shape_n: Vec<f32>,
    shape_hours: Vec<f32>,
    prior: Vec<f32>,
    /// Number of pages whose importance is known, its sum and its sum of squares.
    importance: (f32, f32, f32),
    n_pages: u32,
}

impl Mixture {
    /// Starts a pass over the pages.
    pub fn begin_pass(&self) -> EmPass {
        EmPass {
            shape_n: vec![0.0; N_SHAPES * self.n_buckets],
            shape_hours: vec![0.0; N_SHAPES * self.n_buckets],
            prior: vec![0.0; N_SHAPES * N_RATES],
            importance: (0.0, 0.0, 0.0),
            n_pages: 0,
        }
    }

    /// Adds a fitted page to the pass.
    pub fn add_to_pass(&self, fit: &PageFit, sweep: &mut EmPass) {
        sweep.n_pages += 1;
        let (size_sum, n_changed_hours) = fit.counts.totals;
        if n_changed_hours > KNOWN_CHANGES {
            let mu = size_sum / n_changed_hours;
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
                sweep.shape_n[from + b] += share * fit.counts.buckets[b].n_changes;
                sweep.shape_hours[from + b] += mean * fit.counts.buckets[b].hours;
            }
        }
    }

    /// Updates shapes and priors from a pass.
    pub fn end_pass(&mut self, sweep: &EmPass) {
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
        self.ln_prior = self.prior.iter().map(|share| share.ln()).collect();
        self.unknown_importance = unknown_importance(sweep.importance, self.unknown_importance);
    }

    /// Clears the sums of the groups before the next pass.
    pub fn clear_groups(&mut self) {
        self.groups.clear();
    }

    /// Computes the priors of the groups from their sums.
    pub fn settle_groups(&mut self) {
        for group in self.groups.iter_mut().filter(|group| group.n_pages > 0.0) {
            let total = group.n_pages + GROUP_PRIOR;
            let share = |(sum, prior): (&f32, &f32)| ((sum + GROUP_PRIOR * prior) / total).ln();
            group.ln = group.sum.iter().zip(&self.prior).map(share).collect();
        }
        self.settle_sizes();
    }

    /// Relative sizes of changes by bucket, from the group's own pages or, if these have few changes, from all pages.
    /// If a visit shows the last change alone, its hour is nearly known and the page's own counts suffice.
    fn settle_sizes(&mut self) {
        if self.observed == ObservedImportance::LastChange {
            return;
        }
        let mut of_all = vec![[SIZE_PRIOR; 2]; self.n_buckets];
        for group in &self.groups {
            add_sums(&mut of_all, &group.size_sums);
        }
        let of_group = |group: &GroupPrior| {
            let mut sums: Vec<[f32; 2]> =
                of_all.iter().map(|[size, n]| [SIZE_PRIOR * size / n, SIZE_PRIOR]).collect();
            add_sums(&mut sums, &group.size_sums);
            sums.iter().map(|[size, n]| size / n).collect()
        };
        self.sizes = self.groups.iter().map(of_group).collect();
        self.groups.iter_mut().for_each(|group| group.size_sums = Vec::new());
    }

    /// Adds a fitted page to its group.
    pub fn add_to_group(&mut self, group: u32, fit: &PageFit) {
        let at = group as usize;
        if at >= self.groups.len() {
            self.groups.resize_with(at + 1, GroupPrior::default);
        }
        let of_page = self.page_importance(&fit.counts).max(1e-9);
        let group = &mut self.groups[at];
        group.sum.resize(N_SHAPES * N_RATES, 0.0);
        group.sum.iter_mut().zip(&fit.posterior).for_each(|(sum, share)| *sum += share);
        group.n_pages += 1.0;
        group.size_sums.resize(self.n_buckets, [0.0; 2]);
        for (sum, tally) in group.size_sums.iter_mut().zip(&fit.counts.buckets) {
            *sum = [sum[0] + tally.size_sum / of_page, sum[1] + tally.n_changed_hours];
        }
    }
}

fn add_sums(into: &mut [[f32; 2]], more: &[[f32; 2]]) {
    into.iter_mut().zip(more).for_each(|(into, more)| *into = [into[0] + more[0], into[1] + more[1]]);
}

/// The mean importance of the pages plus some standard deviations. Five pseudo-pages with the previous value act as a
/// prior.
fn unknown_importance((n, sum, squares): (f32, f32, f32), before: f32) -> f32 {
    let mean = sum / n.max(1.0);
    let deviation = (squares / n.max(1.0) - mean * mean).max(0.0).sqrt();
    (n * (mean + UNKNOWN_DEVIATIONS * deviation) + 5.0 * before) / (n + 5.0)
}
