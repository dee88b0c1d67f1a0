//! Outcomes of visits -> estimates for pages: histories of single pages, and the model that they share (P-PATTERN
//! 6.3.4, 8.2; docs/papers.md, Learning from visits).
//!
//! Every visit immediately updates the buckets of the time that it covers. A page is fitted to its whole history when
//! the history has doubled or grown by 64 visits. All pages and the shared patterns are fitted on [`REFIT_DAYS`] and
//! weekly afterwards.

use std::collections::{HashMap, VecDeque};

use super::days::DayMark;
use super::gain::SPELL_HOURS;
use super::pages::{KNOWN, NONE, PageColumns, VACANT};
use super::rows::Rows;
use crate::pattern::calendar::{DayCounts, DayPrior};
use crate::pattern::mixture::{
    BucketCounts, BucketPiece, BucketTally, HIGHEST_RATE, Mixture, ObservedImportance, PageFit, VisitLog,
    exp_neg, one_minus_exp, own_rate,
};
use crate::time::{LocalClock, Span, Timestamp};

/// Days after the start on which all pages are fitted.
const REFIT_DAYS: [u32; 7] = [1, 2, 3, 5, 7, 10, 14];
const DAY_SECS: u32 = 86_400;
/// Visits that are kept individually. Older ones are summed.
const LONGEST_LOG: usize = 256;
/// Visits that are summed when a log is too long.
const SETTLED_AT_ONCE: usize = 64;
/// About how many pages one pass uses to learn the shared patterns.
const PASS_PAGES: usize = 1500;
const N_PASSES: usize = 3;
/// Weight of the usual rate against recent changes, in expected changes.
const SPELL_PRIOR: f32 = 3.0;
/// Weight of the estimate against one visit of a page without a history, in changes.
const BRIEF_PRIOR: f32 = 3.0;
/// About how many bytes a history takes, including the row of its page.
pub(super) const BYTES_PER_HISTORY: usize = 2560;
/// Further groups share group 0.
const MOST_GROUPS: usize = 1 << 16;

/// One visit after the first: the time since the previous visit, and its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LoggedVisit {
    pub gap_secs: u32,
    /// 0 for the same content; otherwise 1 + importance * 65534.
    pub code: u16,
}

impl LoggedVisit {
    pub(super) fn new(gap_secs: u32, importance: Option<f32>) -> LoggedVisit {
        let code = importance.map_or(0, |y| 1 + (y.clamp(0.0, 1.0) * 65534.0).round() as u16);
        LoggedVisit { gap_secs, code }
    }

    pub(super) fn importance(self) -> Option<f32> {
        (self.code > 0).then(|| f32::from(self.code - 1) / 65534.0)
    }
}

/// The visits of one page.
#[derive(Clone, Default)]
pub(super) struct VisitHistory {
    pub n_visits: u32,
    pub n_changed: u32,
    /// Hours between the visits counted above.
    pub hours: f32,
    /// The number of visits at which the page is next fitted to its whole history.
    refit_at: u32,
    pub log: VecDeque<LoggedVisit>,
    /// The sum of older visits, faded to the instant `settled_at`.
    settled: Option<Box<BucketCounts>>,
    settled_at: u32,
    counts: BucketCounts,
    /// Recent changes, and the number expected in that time (C2).
    spell: (f32, f32),
    /// The shared pattern that fits best, and its posterior probability.
    pub shape: (u8, f32),
    /// Changes by day of the week and of the month, faded to the instant `days_at`.
    pub(super) days: DayCounts,
    pub(super) days_at: u32,
}

#[derive(Clone)]
pub(super) struct Learner {
    pub mixture: Mixture,
    pub(super) rows: Rows,
    pub evidence: Vec<VisitHistory>,
    vacant: Vec<u32>,
    groups: HashMap<u64, u32>,
    /// The initial estimate of each group's new pages. Group 0 holds the pages of all groups beyond the maximum.
    group_starts: Vec<Option<GroupStart>>,
    pub(super) n_periods: u16,
    pub(super) half_life_secs: f32,
    pub(super) base: Timestamp,
    started: u32,
    n_refits: u32,
    follows_spells: bool,
    /// Whether to learn about days of the week and of the month.
    pub(super) learns_days: bool,
    n_histories_at_most: usize,
    visits: VisitLog,
    pieces: Vec<BucketPiece>,
    /// By group.
    pub(super) day_priors: Vec<DayPrior>,
    pub(super) marks: Vec<DayMark>,
    sizes: Vec<f32>,
    fit: PageFit,
}

/// A fit of all pages that is under way.
#[derive(Clone)]
pub(super) struct Refit {
    with_history: Vec<usize>,
    /// How many of these are fitted.
    n_fitted: usize,
    /// The shared patterns, without what groups know.
    without_groups: Mixture,
    /// The same, with what groups learn from the fitted pages.
    sums: Mixture,
}

/// The initial estimate of a group's new pages.
#[derive(Clone, Copy)]
struct GroupStart {
    row: u32,
    rate: f32,
    importance: f32,
}

impl Learner {
    pub(super) fn new(
        n_periods: u16,
        observed: ObservedImportance,
        half_life: Option<Span>,
        follows_spells: bool,
        learns_days: bool,
    ) -> Learner {
        let mixture = Mixture::new(n_periods, observed);
        Learner {
            rows: Rows::new(mixture.n_buckets()),
            mixture,
            evidence: Vec::new(),
            vacant: Vec::new(),
            groups: HashMap::new(),
            group_starts: Vec::new(),
            n_periods,
            half_life_secs: half_life.map_or(f32::INFINITY, |span| span.as_secs_f64().max(60.0) as f32),
            base: Timestamp::EPOCH,
            started: 0,
            n_refits: 0,
            follows_spells,
            learns_days,
            n_histories_at_most: usize::MAX,
            visits: VisitLog::default(),
            pieces: Vec::new(),
            day_priors: Vec::new(),
            marks: Vec::new(),
            sizes: Vec::new(),
            fit: PageFit::default(),
        }
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(super) fn start(&mut self, base: Timestamp, started: u32) {
        (self.base, self.started) = (base, started);
    }

    pub(super) fn group(&mut self, hint: u64) -> u32 {
        let next = self.groups.len() as u32 + 1;
        if self.groups.len() >= MOST_GROUPS {
            return self.groups.get(&hint).copied().unwrap_or(0);
        }
        *self.groups.entry(hint).or_insert(next)
    }

    /// The changes per hour and the importance of a change in a bucket, in the page's present spell.
    #[inline]
    pub(super) fn estimated(&self, pages: &PageColumns, at: usize, bucket: usize) -> (f32, f32) {
        self.in_spell(pages, at, bucket, pages.spell[at])
    }

    /// The same in the long run, without spells.
    pub(super) fn usual(&self, pages: &PageColumns, at: usize, bucket: usize) -> (f32, f32) {
        self.in_spell(pages, at, bucket, 1.0)
    }

    #[inline]
    pub(super) fn in_spell(&self, pages: &PageColumns, at: usize, bucket: usize, spell: f32) -> (f32, f32) {
        let (rate, importance) = self.rows.get(pages.row[at], bucket);
        let rate = (pages.rate[at] * spell * rate).min(HIGHEST_RATE);
        (rate, (pages.importance[at] * importance).min(1.0))
    }

    /// The usual rate alone, because every visit needs it for every bucket that it covers.
    #[inline]
    pub(super) fn usual_rate(&self, pages: &PageColumns, at: usize, bucket: usize) -> f32 {
        (pages.rate[at] * self.rows.rate(pages.row[at], bucket)).min(HIGHEST_RATE)
    }

    /// Gives a new page the estimate of its group.
    pub(super) fn start_page(&mut self, pages: &mut PageColumns, at: usize) {
        let group = pages.group[at] as usize;
        if group >= self.group_starts.len() {
            self.group_starts.resize(group + 1, None);
        }
        let start = match self.group_starts[group] {
            Some(start) => start,
            None => self.start_group(group),
        };
        (pages.rate[at], pages.importance[at], pages.row[at]) = (start.rate, start.importance, start.row);
    }

    fn start_group(&mut self, group: usize) -> GroupStart {
        self.visits.clear();
        let mut fit = std::mem::take(&mut self.fit);
        self.mixture.fit(&self.visits, None, group as u32, &BucketCounts::default(), &mut fit);
        let row = self.group_starts[group].map_or_else(|| self.rows.take(), |start| start.row);
        let (rate, importance) = self.write_row(row, &fit);
        self.start_days(row, group);
        self.fit = fit;
        let start = GroupStart { row, rate, importance };
        self.group_starts[group] = Some(start);
        start
    }

    /// Sets the true rates, which only an experiment knows.
    pub(super) fn set_known(
        &mut self,
        pages: &mut PageColumns,
        at: usize,
        rates: &[f32],
        importance: &[f32],
    ) {
        let n = self.mixture.n_buckets();
        let mut fit = PageFit::default();
        let pick = |values: &[f32], b: usize| values.get(b).copied().filter(|v| v.is_finite()).unwrap_or(0.0);
        fit.rates = (0..n).map(|b| pick(rates, b).max(0.0)).collect();
        fit.importance = (0..n).map(|b| pick(importance, b).clamp(0.0, 1.0)).collect();
        if !owns_row(pages, at) {
            pages.row[at] = self.rows.take();
        }
        pages.flags[at] |= KNOWN;
        (pages.rate[at], pages.importance[at]) = self.write_row(pages.row[at], &fit);
    }

    pub(super) fn forget(&mut self, pages: &mut PageColumns, at: usize) {
        if owns_row(pages, at) {
            self.rows.release_row(pages.row[at]);
        }
        if pages.evidence[at] != NONE {
            self.evidence[pages.evidence[at] as usize] = VisitHistory::default();
            self.vacant.push(pages.evidence[at]);
        }
        (pages.row[at], pages.evidence[at]) = (0, NONE);
    }

    fn own_evidence(&mut self, pages: &mut PageColumns, at: usize) -> usize {
        if pages.evidence[at] == NONE {
            if !owns_row(pages, at) {
                pages.row[at] = self.rows.copy(pages.row[at]);
            }
            pages.evidence[at] = match self.vacant.pop() {
                Some(vacant) => vacant,
                None => {
                    self.evidence.push(VisitHistory::default());
                    (self.evidence.len() - 1) as u32
                }
            };
            let mut counts = BucketCounts::new(self.mixture.n_buckets());
            for (b, tally) in counts.buckets.iter_mut().enumerate() {
                tally.prior_rate = self.estimated(pages, at, b).0;
            }
            let evidence = &mut self.evidence[pages.evidence[at] as usize];
            evidence.counts = counts;
            evidence.refit_at = 2;
        }
        pages.evidence[at] as usize
    }

    /// Records a visit at `to`. The previous visit was at `from`.
    pub(super) fn observe(
        &mut self,
        pages: &mut PageColumns,
        clock: &LocalClock,
        at: usize,
        (from, to): (u32, u32),
        importance: Option<f32>,
    ) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut marks = std::mem::take(&mut self.marks);
        self.marked_pieces(pages, at, clock, (from, to), &mut pieces, &mut marks);
        self.marks = marks;
        if pages.evidence[at] == NONE && self.is_full() {
            self.observe_in_brief(pages, at, &pieces, importance);
            self.pieces = pieces;
            return;
        }
        let e = self.own_evidence(pages, at);
        let evidence = &mut self.evidence[e];
        evidence.n_visits += 1;
        evidence.n_changed += u32::from(importance.is_some());
        evidence.hours += to.saturating_sub(from) as f32 / 3600.0;
        if self.follows_spells {
            self.follow_spell(
                pages,
                at,
                to.saturating_sub(from) as f32 / 3600.0,
                &pieces,
                importance.is_some(),
            );
        }
        self.count_days(pages, clock, at, &pieces, importance.is_some());
        let evidence = &mut self.evidence[e];
        evidence.log.push_back(LoggedVisit::new(to.saturating_sub(from), importance));
        if evidence.n_visits >= evidence.refit_at {
            evidence.refit_at = next_refit(evidence.n_visits);
            self.refit_page(pages, clock, at, to);
        } else {
            self.update_buckets(pages, at, &pieces, importance);
        }
        self.pieces = pieces;
    }

    /// The importance of each of several changes whose combined importance is given.
    pub(super) fn importance_of_each(&self, together: f32, n_changes: usize) -> f32 {
        match self.mixture.observed() {
            ObservedImportance::Difference => single_importance(together, n_changes as f32),
            ObservedImportance::LastChange => together,
        }
    }

    /// Records a visit of a page without room for a history. Its mean rate and importance change; its pattern stays
    /// that of its group. The previous mean is a Gamma prior that weighs as much as a few changes.
    fn observe_in_brief(
        &self,
        pages: &mut PageColumns,
        at: usize,
        pieces: &[BucketPiece],
        importance: Option<f32>,
    ) {
        let estimated = |piece: &BucketPiece| {
            self.estimated(pages, at, usize::from(piece.bucket)).0 * piece.hours * piece.times
        };
        let expected: f32 = pieces.iter().map(estimated).sum::<f32>().max(1e-9);
        // A visit shows at most one change, but several may have happened. Given at least one, their mean number is
        // expected / P(at least one).
        let any = (-(-expected).exp_m1()).max(1e-6);
        let seen = if importance.is_some() { expected / any } else { 0.0 };
        // The posterior mean of a Gamma prior with shape BRIEF_PRIOR whose mean is the present rate.
        pages.rate[at] *= (seen + BRIEF_PRIOR) / (expected + BRIEF_PRIOR);
        if let Some(y) = importance {
            let each = match self.mixture.observed() {
                ObservedImportance::Difference => single_importance(y, seen.max(1.0)),
                ObservedImportance::LastChange => y,
            };
            pages.importance[at] += (each - pages.importance[at]) / (1.0 + BRIEF_PRIOR);
        }
    }

    fn is_full(&self) -> bool {
        self.evidence.len() - self.vacant.len() >= self.n_histories_at_most
    }

    /// Sets how many pages may have a history. The first visited pages get one; [`Learner::keep_at_most`] later keeps
    /// those of the most valuable pages.
    pub(super) fn allow_histories(&mut self, n_histories: usize) {
        self.n_histories_at_most = n_histories;
    }

    /// Drops the histories of the least valuable pages beyond a number.
    pub(super) fn keep_at_most(&mut self, pages: &mut PageColumns, n_histories: usize) {
        self.allow_histories(n_histories);
        let mut with_history: Vec<usize> =
            (0..pages.len()).filter(|&at| pages.evidence[at] != NONE).collect();
        if with_history.len() <= n_histories {
            return;
        }
        // A tenth more is dropped, so pages that became valuable get a history.
        let n_kept = n_histories - n_histories / 10;
        let worth = |at: usize| pages.value[at] * pages.rate[at] * pages.importance[at];
        with_history.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)));
        for &at in with_history.iter().skip(n_kept) {
            let (rate, importance) = (pages.rate[at], pages.importance[at]);
            self.forget(pages, at);
            self.start_page(pages, at);
            (pages.rate[at], pages.importance[at]) = (rate, importance);
        }
    }

    /// Compares the recent changes of a page with the expected number (C2).
    fn follow_spell(
        &mut self,
        pages: &mut PageColumns,
        at: usize,
        gap_hours: f32,
        pieces: &[BucketPiece],
        changed: bool,
    ) {
        let usual = |piece: &BucketPiece| {
            self.usual_rate(pages, at, usize::from(piece.bucket)) * piece.hours * piece.times
        };
        let expected: f32 = pieces.iter().map(usual).sum();
        let scaled = expected * pages.spell[at];
        let seen = if changed { scaled / one_minus_exp(scaled).max(1e-6) } else { 0.0 };
        let age = gap_hours.max(1e-3) / SPELL_HOURS;
        // Older evidence fades. The evidence of this gap arrived evenly over the gap, so a part of it has already
        // faded.
        let (left, share) = (exp_neg(age), one_minus_exp(age) / age);
        let evidence = &mut self.evidence[pages.evidence[at] as usize];
        evidence.spell.0 = evidence.spell.0 * left + share * seen;
        evidence.spell.1 = evidence.spell.1 * left + share * expected;
        pages.spell[at] = (evidence.spell.0 + SPELL_PRIOR) / (evidence.spell.1 + SPELL_PRIOR);
    }

    /// Updates the buckets of the time that the visit covers.
    fn update_buckets(
        &mut self,
        pages: &mut PageColumns,
        at: usize,
        pieces: &[BucketPiece],
        importance: Option<f32>,
    ) {
        let (rows, rate, row) = (&self.rows, pages.rate[at], pages.row[at]);
        let estimated = |b: usize| (rate * rows.rate(row, b)).clamp(1e-7, HIGHEST_RATE);
        let evidence = &mut self.evidence[pages.evidence[at] as usize];
        let per_rate = 1.0 / pages.rate[at].max(1e-9);
        let rate_of = |evidence: &VisitHistory, b: usize| {
            let tally = &evidence.counts.buckets[b];
            per_rate * own_rate(tally.n_changes, tally.hours, tally.prior_rate)
        };
        if importance.is_none() {
            // Most visits find no change: they add hours only, and the estimate of importance stays.
            evidence.counts.add_hours(pieces, 1.0);
            for piece in pieces {
                let b = usize::from(piece.bucket);
                self.rows.set_rate(row, b, rate_of(evidence, b));
            }
            return;
        }
        let group = pages.group[at];
        let of_page = self.mixture.page_importance(&evidence.counts);
        self.sizes.resize(evidence.counts.buckets.len(), 0.0);
        for piece in pieces {
            let b = usize::from(piece.bucket);
            self.sizes[b] = self.mixture.size(&evidence.counts, b, of_page, group);
        }
        let estimated = (estimated, |b: usize| self.sizes[b]);
        evidence.counts.add_visit(pieces, importance, 1.0, self.mixture.scale(of_page), estimated);
        let of_page = self.mixture.page_importance(&evidence.counts);
        let per_importance = 1.0 / pages.importance[at].max(1e-6);
        for piece in pieces {
            let b = usize::from(piece.bucket);
            let m = self.mixture.importance_from_size(self.mixture.size(&evidence.counts, b, of_page, group));
            self.rows.set(row, b, rate_of(evidence, b), m * per_importance);
        }
    }

    /// Fits one page to its whole history, which ends at `end`.
    fn refit_page(&mut self, pages: &mut PageColumns, clock: &LocalClock, at: usize, end: u32) {
        self.fit_days(pages, at, end);
        let mut fit = std::mem::take(&mut self.fit);
        self.fit_page(pages, clock, at, end, &mut fit);
        (pages.rate[at], pages.importance[at]) = self.write_row(pages.row[at], &fit);
        let evidence = &mut self.evidence[pages.evidence[at] as usize];
        evidence.counts.clone_from(&fit.counts);
        let (shape, share) = fit.best_shape();
        evidence.shape = (shape as u8, share);
        self.fit = fit;
    }

    fn fit_page(&mut self, pages: &PageColumns, clock: &LocalClock, at: usize, end: u32, fit: &mut PageFit) {
        self.sum_old_visits(pages, clock, at, end);
        let mut visits = std::mem::take(&mut self.visits);
        visits.clear();
        let evidence = &self.evidence[pages.evidence[at] as usize];
        let span: u64 = evidence.log.iter().map(|seen| u64::from(seen.gap_secs)).sum();
        let mut from = u64::from(end).saturating_sub(span) as u32;
        for seen in &evidence.log {
            let to = from.saturating_add(seen.gap_secs);
            self.each_piece(pages, at, clock, (from, to), |_, piece| visits.add_piece(piece));
            visits.close(seen.importance(), self.faded(end.saturating_sub(to)));
            from = to;
        }
        let settled = evidence.settled.as_deref();
        self.mixture.fit(&visits, settled, pages.group[at], &evidence.counts, fit);
        self.visits = visits;
    }

    fn faded(&self, age_secs: u32) -> f32 {
        (-(age_secs as f32) / self.half_life_secs).exp2()
    }

    /// Sums the oldest visits of a log that is too long.
    fn sum_old_visits(&mut self, pages: &PageColumns, clock: &LocalClock, at: usize, end: u32) {
        let e = pages.evidence[at] as usize;
        // The sums are faded lazily, only when the page is fitted, instead of with every visit.
        let fade = self.faded(end.saturating_sub(self.evidence[e].settled_at));
        if let Some(settled) = &mut self.evidence[e].settled {
            settled.fade(fade);
        }
        self.evidence[e].settled_at = end;
        if self.evidence[e].log.len() <= LONGEST_LOG {
            return;
        }
        let mut settled = self.evidence[e]
            .settled
            .take()
            .unwrap_or_else(|| Box::new(BucketCounts::new(self.mixture.n_buckets())));
        let span: u64 = self.evidence[e].log.iter().map(|seen| u64::from(seen.gap_secs)).sum();
        let mut from = u64::from(end).saturating_sub(span) as u32;
        let mut pieces = std::mem::take(&mut self.pieces);
        // The sums use the present rates and sizes as weights. Later fits cannot redo this, so only old visits are
        // summed.
        let of_page = self.mixture.page_importance(&self.evidence[e].counts);
        let scale = self.mixture.scale(of_page);
        for _ in 0..SETTLED_AT_ONCE {
            let Some(seen) = self.evidence[e].log.pop_front() else { break };
            let to = from.saturating_add(seen.gap_secs);
            self.pieces_for(pages, at, clock, (from, to), &mut pieces);
            let weight = self.faded(end.saturating_sub(to));
            let rate = |b: usize| self.estimated(pages, at, b).0.max(1e-7);
            let size = |b: usize| self.mixture.size(&self.evidence[e].counts, b, of_page, pages.group[at]);
            settled.add_visit(&pieces, seen.importance(), weight, scale, (rate, size));
            from = to;
        }
        self.pieces = pieces;
        self.evidence[e].settled = Some(settled);
    }

    /// Writes a row, and returns the mean rate and importance to which it is relative.
    fn write_row(&mut self, row: u32, fit: &PageFit) -> (f32, f32) {
        let rate = self.mixture.mean_over_week(&fit.rates).max(1e-9);
        let importance = self.mixture.mean_over_week(&fit.importance).max(1e-6);
        let (per_rate, per_importance) = (1.0 / rate, 1.0 / importance);
        self.rows.fill(row, &fit.rates, &fit.importance, (per_rate, per_importance));
        (rate, importance)
    }

    /// Whether the shared patterns are due for a fit.
    pub(super) fn is_refit_due(&self, now: u32) -> bool {
        let days = now.saturating_sub(self.started) / DAY_SECS;
        let n = self.n_refits as usize;
        let due = REFIT_DAYS.get(n).copied().unwrap_or_else(|| 14 + 7 * (n as u32 + 1 - 7));
        days >= due
    }

    /// The number of fits that a continuous crawl would have made by now.
    pub(super) fn n_refits_due(&self, now: u32) -> u32 {
        let days = now.saturating_sub(self.started) / DAY_SECS;
        let early = REFIT_DAYS.iter().filter(|&&day| day <= days).count() as u32;
        (early + days.saturating_sub(14) / 7).saturating_sub(self.n_refits)
    }

    /// Fits the shared patterns, and all pages to their histories.
    pub(super) fn refit_all(&mut self, pages: &mut PageColumns, clocks: &[LocalClock], now: u32) {
        let mut refit = self.begin_refit(pages, clocks, now);
        self.refit_some(&mut refit, pages, clocks, usize::MAX);
        for at in 0..pages.len() {
            self.restart(pages, at);
        }
    }

    /// Fits the shared patterns to a sample of the pages, and lists the pages to be fitted.
    pub(super) fn begin_refit(&mut self, pages: &PageColumns, clocks: &[LocalClock], now: u32) -> Refit {
        self.n_refits += 1;
        while self.is_refit_due(now) {
            self.n_refits += 1;
        }
        let with_history: Vec<usize> = (0..pages.len()).filter(|&at| pages.evidence[at] != NONE).collect();
        self.sweep(pages, clocks, &with_history);
        self.learn_group_days(pages, &with_history);
        let mut without_groups = self.mixture.clone();
        without_groups.clear_groups();
        Refit { with_history, n_fitted: 0, sums: without_groups.clone(), without_groups }
    }

    /// Fits at most `n` further pages. Returns whether all are fitted. Then new pages of each group start from it.
    pub(super) fn refit_some(
        &mut self,
        refit: &mut Refit,
        pages: &mut PageColumns,
        clocks: &[LocalClock],
        n: usize,
    ) -> bool {
        let until = refit.n_fitted.saturating_add(n).min(refit.with_history.len());
        // Pages are fitted without the estimate of their group, because the group learns from its pages.
        std::mem::swap(&mut self.mixture, &mut refit.without_groups);
        for &at in &refit.with_history[refit.n_fitted..until] {
            if pages.evidence[at] == NONE {
                // It was removed meanwhile.
                continue;
            }
            self.refit_page(pages, &clocks[usize::from(pages.clock[at])], at, pages.seen_at[at]);
            refit.sums.add_to_group(pages.group[at], &self.fit);
        }
        std::mem::swap(&mut self.mixture, &mut refit.without_groups);
        refit.n_fitted = until;
        if until < refit.with_history.len() {
            return false;
        }
        refit.sums.settle_groups();
        self.mixture = refit.sums.clone();
        for group in 0..self.group_starts.len() {
            if self.group_starts[group].is_some() {
                self.start_group(group);
            }
        }
        true
    }

    /// Gives a page without a history of its own the new estimate of its group.
    pub(super) fn restart(&mut self, pages: &mut PageColumns, at: usize) {
        let is_untouched = pages.evidence[at] == NONE && !self.is_full();
        if is_untouched && !pages.has(at, KNOWN | VACANT) {
            self.start_page(pages, at);
        }
    }

    fn sweep(&mut self, pages: &PageColumns, clocks: &[LocalClock], with_history: &[usize]) {
        let stride = with_history.len().div_ceil(PASS_PAGES).max(1);
        let mut fit = std::mem::take(&mut self.fit);
        for _ in 0..N_PASSES {
            let mut sweep = self.mixture.begin_pass();
            for &at in with_history.iter().step_by(stride) {
                let clock = &clocks[usize::from(pages.clock[at])];
                self.fit_page(pages, clock, at, pages.seen_at[at], &mut fit);
                self.mixture.add_to_pass(&fit, &mut sweep);
            }
            self.mixture.end_pass(&sweep);
        }
        self.fit = fit;
    }

    pub(super) fn n_bytes(&self) -> usize {
        let of_one = |e: &VisitHistory| {
            let of_counts =
                |counts: &BucketCounts| counts.buckets.capacity() * std::mem::size_of::<BucketTally>();
            let (counts, settled) = (of_counts(&e.counts), e.settled.as_deref().map_or(0, of_counts));
            std::mem::size_of::<VisitHistory>()
                + counts
                + settled
                + e.log.capacity() * std::mem::size_of::<LoggedVisit>()
        };
        self.rows.n_bytes() + self.evidence.iter().map(of_one).sum::<usize>()
    }
}

/// The number of visits at which a history of `n_visits` has doubled or grown by 64.
fn next_refit(n_visits: u32) -> u32 {
    n_visits + n_visits.clamp(1, 64)
}

/// Pages with a history or with given rates own a row.
pub(super) fn owns_row(pages: &PageColumns, at: usize) -> bool {
    pages.evidence[at] != NONE || pages.has(at, KNOWN)
}

/// The importance of each of several changes. A change of importance y keeps 1 - y of a page, and n equal changes
/// together keep that to the power of n.
fn single_importance(together: f32, n_changes: f32) -> f32 {
    -((1.0 - together.min(0.98)).ln() / n_changes).exp_m1()
}
