//! Visits -> the days of the week and of the month on which pages change, and time that passes faster on a page's
//! busy days.
//!
//! A day that is f times as busy as usual counts as f days. So hourly rates, gains and spells need no calendar, only
//! the time that passed (docs/decisions/0052-calendars.md).

use std::collections::BTreeMap;

use super::learn::Learner;
use super::pages::PageColumns;
use crate::pattern::calendar::{DayPlace, DayPrior, DaySums};
use crate::pattern::mixture::{BucketPiece, HIGHEST_RATE, bucket_index, one_minus_exp};
use crate::time::{DayKind, LocalClock, LocalDay, Span};

/// A shorter history contains no information about days.
const SHORTEST_HOURS: f32 = 24.0 * 14.0;
/// A visit after a longer gap contains no information about days.
const LONGEST_GAP_DAYS: i32 = 31;
/// Days of the month recur rarely, so observations of days fade this many times more slowly than those of hours.
const SLOWER: f32 = 6.0;

/// A day that a visit covers in part, and where its pieces end.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayMark {
    day: LocalDay,
    end: usize,
}

impl Learner {
    /// Splits a span by bucket, in the page's own time. Each piece has its day, unless it stands for several days.
    pub(super) fn each_piece(
        &self,
        pages: &PageColumns,
        at: usize,
        clock: &LocalClock,
        (from, to): (u32, u32),
        mut each: impl FnMut(Option<LocalDay>, BucketPiece),
    ) {
        let instant = |secs: u32| self.base + Span::from_secs(i64::from(secs));
        let (from, to, n_periods) = (instant(from), instant(to), self.n_periods);
        let each = |piece: crate::time::PeriodPiece| {
            let bucket = bucket_index(piece.kind, piece.period, n_periods);
            each(piece.day, BucketPiece { bucket, hours: piece.hours, times: piece.times });
        };
        match self.rows.calendar(pages.row[at]) {
            None => clock.pieces(from, to, n_periods, each),
            Some(calendar) => {
                let speed = |day: LocalDay, kind: DayKind| calendar.at(DayPlace::new(day, kind));
                clock.pieces_at_speeds(from, to, n_periods, speed, each);
            }
        }
    }

    /// Collects the pieces of [`Learner::each_piece`].
    pub(super) fn pieces_for(
        &self,
        pages: &PageColumns,
        at: usize,
        clock: &LocalClock,
        span: (u32, u32),
        pieces: &mut Vec<BucketPiece>,
    ) {
        pieces.clear();
        self.each_piece(pages, at, clock, span, |_, piece| pieces.push(piece));
    }

    /// The same, with marks for the days that are covered in part.
    pub(super) fn marked_pieces(
        &self,
        pages: &PageColumns,
        at: usize,
        clock: &LocalClock,
        span: (u32, u32),
        pieces: &mut Vec<BucketPiece>,
        marks: &mut Vec<DayMark>,
    ) {
        pieces.clear();
        marks.clear();
        self.each_piece(pages, at, clock, span, |day, piece| {
            pieces.push(piece);
            let end = pieces.len();
            match (day, marks.last_mut()) {
                (Some(day), Some(mark)) if mark.day == day => mark.end = end,
                (Some(day), _) => marks.push(DayMark { day, end }),
                (None, _) => {}
            }
        });
    }

    /// Adds the outcome of a visit to the days that it covers. `pieces` are those of [`Learner::marked_pieces`].
    pub(super) fn count_days(
        &mut self,
        pages: &PageColumns,
        clock: &LocalClock,
        at: usize,
        pieces: &[BucketPiece],
        changed: bool,
    ) {
        let (Some(first), Some(last)) = (self.marks.first(), self.marks.last()) else { return };
        if !self.learns_days {
            return;
        }
        let (first, last) = (first.day, last.day);
        let e = pages.evidence[at] as usize;
        if last.0.saturating_sub(first.0) > LONGEST_GAP_DAYS {
            self.evidence[e].days.close();
            return;
        }
        let (rows, row, mean) = (&self.rows, pages.row[at], pages.rate[at]);
        let rate = |bucket: usize| (mean * rows.rate(row, bucket)).min(HIGHEST_RATE);
        let sum_of = |pieces: &[BucketPiece]| -> f32 {
            pieces.iter().map(|piece| rate(usize::from(piece.bucket)) * piece.hours * piece.times).sum()
        };
        // The change happened on one of the covered days. Each day gets its share in proportion to the expected
        // changes.
        let found = if changed { 1.0 / one_minus_exp(sum_of(pieces)).max(1e-6) } else { 0.0 };
        let calendar = rows.calendar(row);
        let speed = |place: DayPlace| calendar.map_or(1.0, |calendar| calendar.at(place));
        let any_whole = (last.0 - first.0) as usize >= self.marks.len();
        let of_whole =
            if any_whole { [0, 1].map(|kind| whole_day(self.n_periods, kind, rate)) } else { [0.0; 2] };
        let days = &mut self.evidence[e].days;
        let (mut start, mut next) = (0, first.0);
        for mark in &self.marks {
            for day in (next..mark.day.0).map(LocalDay) {
                let kind = clock.day_kind(day);
                let (place, expected) =
                    (DayPlace::new(day, kind), of_whole[usize::from(kind != DayKind::Workday)]);
                days.add(day, || place, found * expected * speed(place), expected);
            }
            let passed = sum_of(&pieces[start..mark.end]);
            let place = || DayPlace::on_clock(clock, mark.day);
            let speed = if calendar.is_some() { speed(place()) } else { 1.0 };
            days.add(mark.day, place, found * passed, passed / speed);
            (start, next) = (mark.end, mark.day.0 + 1);
        }
    }

    /// Estimates how busy each day is for a page.
    pub(super) fn fit_days(&mut self, pages: &PageColumns, at: usize, end: u32) {
        let evidence = &mut self.evidence[pages.evidence[at] as usize];
        if !self.learns_days || evidence.hours < SHORTEST_HOURS {
            return;
        }
        let age = end.saturating_sub(evidence.days_at) as f32;
        if evidence.days_at > 0 {
            evidence.days.fade((-age / (SLOWER * self.half_life_secs)).exp2());
        }
        evidence.days_at = end;
        let prior = self.day_priors.get(pages.group[at] as usize);
        let factors = match prior {
            Some(prior) => evidence.days.fit(prior),
            None => evidence.days.fit(&DayPrior::default()),
        };
        self.rows.set_calendar(pages.row[at], (!factors.is_even()).then_some(factors));
    }

    /// Estimates on which days the pages of each group change.
    pub(super) fn learn_group_days(&mut self, pages: &PageColumns, with_history: &[usize]) {
        let mut sums: BTreeMap<u32, DaySums> = BTreeMap::new();
        for &at in with_history {
            let evidence = &self.evidence[pages.evidence[at] as usize];
            if !self.learns_days || evidence.hours < SHORTEST_HOURS {
                continue;
            }
            let group = pages.group[at];
            let prior = DayPrior::default();
            sums.entry(group).or_default().add(&evidence.days, &evidence.days.fit(&prior));
        }
        self.day_priors.clear();
        for (group, mut sums) in sums {
            self.day_priors.resize(group as usize + 1, DayPrior::default());
            self.day_priors[group as usize] = sums.prior();
        }
    }

    /// Gives the row of a group's new pages the days of the group.
    pub(super) fn start_days(&mut self, row: u32, group: usize) {
        let factors = self.day_priors.get(group).map(DayPrior::expected);
        self.rows.set_calendar(row, factors.filter(|factors| !factors.is_even()));
    }
}

/// The changes expected on a whole workday, or another day.
fn whole_day(n_periods: u16, kind: u16, rate: impl Fn(usize) -> f32) -> f32 {
    let hours = 24.0 / f32::from(n_periods);
    (0..n_periods).map(|period| rate(usize::from(period + kind * n_periods)) * hours).sum()
}
