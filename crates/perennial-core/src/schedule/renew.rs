//! What concerns all pages from time to time, a slice of pages at a time: fits of histories, sums over the archive, and
//! values of pages.
//!
//! A value that is a day old is wrong by a tenth at most, so it may wait until its slice has its turn. Otherwise one
//! event a day would take a second for a million pages, and everybody who waits for the crawl would notice.

use super::learn::Refit;
use super::pages::FRESH;
use super::worth::ArchiveSums;
use super::{Scheduler, Strategy};

/// Pages that one event renews. A page costs one to two microseconds, so a slice delays an event by some
/// milliseconds.
const SLICE: usize = 4096;
/// A fit of a history costs about as much as so many other pages.
const FIT_COST: usize = 16;

/// A renewal that is under way.
#[derive(Clone)]
pub(super) struct Renewal {
    stage: Stage,
    /// Whether rates change, and not only values.
    is_refit: bool,
}

#[derive(Clone)]
enum Stage {
    Fit(Box<Refit>),
    /// Sums over the pages before a position.
    Sum(ArchiveSums, usize),
    /// The pages before a position have their new values.
    Value(usize),
}

impl Scheduler {
    /// Starts a renewal if rates or values are outdated.
    pub(super) fn renew_if_due(&mut self, secs: u32) {
        if self.renewal.is_some() {
            return;
        }
        let is_refit = self.config.learn && self.learner.is_refit_due(secs);
        let is_valued = self.config.strategy == Strategy::ExpectedGain && self.are_values_outdated(secs);
        if is_refit {
            let most = self.most_histories();
            self.learner.keep_at_most(&mut self.pages, most);
            let refit = self.learner.begin_refit(&self.pages, &self.clocks, secs);
            self.renewal = Some(Renewal { stage: Stage::Fit(Box::new(refit)), is_refit });
        } else if is_valued {
            self.renewal = Some(Renewal { stage: Stage::Sum(self.new_sums(), 0), is_refit });
        }
    }

    /// Does the next slice of a renewal.
    pub(super) fn renew_slice(&mut self) {
        let Some(mut renewal) = self.renewal.take() else { return };
        let (mut n_left, n_pages) = (SLICE, self.pages.len());
        while n_left > 0 {
            renewal.stage = match renewal.stage {
                Stage::Fit(mut refit) => {
                    let is_done =
                        self.learner.refit_some(&mut refit, &mut self.pages, &self.clocks, n_left / FIT_COST);
                    n_left = if is_done { n_left } else { 0 };
                    if is_done { Stage::Sum(self.new_sums(), 0) } else { Stage::Fit(refit) }
                }
                Stage::Sum(mut sums, from) => {
                    let until = (from + n_left).min(n_pages);
                    (from..until).for_each(|at| self.add_to_sums(&mut sums, at));
                    n_left -= until - from;
                    if until < n_pages {
                        Stage::Sum(sums, until)
                    } else {
                        self.use_sums(sums);
                        Stage::Value(0)
                    }
                }
                Stage::Value(from) => {
                    let until = (from + n_left).min(n_pages);
                    (from..until).for_each(|at| self.renew_page(at, renewal.is_refit));
                    n_left -= until - from;
                    if until == n_pages {
                        return;
                    }
                    Stage::Value(until)
                }
            };
        }
        self.renewal = Some(renewal);
    }

    fn renew_page(&mut self, at: usize, is_refit: bool) {
        if is_refit {
            self.learner.restart(&mut self.pages, at);
            self.recompute_state(at);
        }
        self.set_value(at);
        // By age nothing has changed, and the order of arrival must stay.
        if self.config.strategy == Strategy::ExpectedGain && !self.pages.has(at, FRESH) {
            self.place(at);
        }
    }
}
