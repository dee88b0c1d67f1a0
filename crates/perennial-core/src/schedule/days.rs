//! Visits -> on which days of the week and of the month pages change, and time as it passes for a page: faster on its busy days.
//!
//! A day on which a page is f times as busy as usual is taken to be f days long. So rates by hour, gains and spells need to know
//! nothing of calendars: they are told how much time has passed (docs/decisions/0052-calendars.md).

use std::collections::BTreeMap;

use super::learn::Learner;
use super::pages::Pages;
use crate::pattern::calendar::{DayPlace, DayPrior, DaySums};
use crate::pattern::mixture::{BucketPiece, HIGHEST_RATE, bucket_of, one_minus_exp};
use crate::time::{DayKind, LocalClock, LocalDay, Span};

/// A history shorter than this says nothing of days of the week, one shorter than that nothing of days of the month.
const SHORTEST_HOURS: f32 = 24.0 * 14.0;
/// A visit after a longer gap says nothing of days.
const LONGEST_GAP_DAYS: i32 = 31;
/// Months come rarely: what was seen of days fades this many times slower than what was seen of hours.
const SLOWER: f32 = 6.0;

/// A day of which a visit covers a part, and where its pieces end.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayMark {
    day: LocalDay,
    end: usize,
}

impl Learner {
    /// The stretches of a span by bucket, each with its day where it has one, in the time that passes for a page.
    pub(super) fn each_piece(
        &self,
        pages: &Pages,
        at: usize,
        clock: &LocalClock,
        (from, to): (u32, u32),
        mut each: impl FnMut(Option<LocalDay>, BucketPiece),
    ) {
        let instant = |secs: u32| self.base + Span::from_secs(i64::from(secs));
        let (from, to, n_periods) = (instant(from), instant(to), self.n_periods);
        let each = |piece: crate::time::Piece| {
            let bucket = bucket_of(piece.kind, piece.period, n_periods);
            each(piece.day, BucketPiece { bucket, hours: piece.hours, times: piece.times });
        };
        match self.rows.calendar(pages.row[at]) {
            None => clock.pieces(from, to, n_periods, each),
            Some(calendar) => {
                let speed = |day: LocalDay, kind: DayKind| calendar.at(DayPlace::of(day, kind));
                clock.pieces_at_speeds(from, to, n_periods, speed, each);
            }
        }
    }

    /// The same, collected.
    pub(super) fn pieces_for(
        &self,
        pages: &Pages,
        at: usize,
        clock: &LocalClock,
        span: (u32, u32),
        pieces: &mut Vec<BucketPiece>,
    ) {
        pieces.clear();
        self.each_piece(pages, at, clock, span, |_, piece| pieces.push(piece));
    }

    /// The same, with the days of which only a part is covered.
    pub(super) fn marked_pieces(
        &self,
        pages: &Pages,
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

    /// Adds what a visit saw to the days that it covers. `pieces` are those of [`Learner::marked_pieces`].
    pub(super) fn count_days(
        &mut self,
        pages: &Pages,
        clock: &LocalClock,
        at: usize,
        pieces: &[BucketPiece],
        changed: bool,
    ) {
        let (Some(first), Some(last)) = (self.marks.first(), self.marks.last()) else { return };
        if !self.tells_days {
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
                let kind = clock.kind_of(day);
                let (place, expected) =
                    (DayPlace::of(day, kind), of_whole[usize::from(kind != DayKind::Workday)]);
                days.add(day, || place, found * expected * speed(place), expected);
            }
            let passed = sum_of(&pieces[start..mark.end]);
            let place = || DayPlace::by(clock, mark.day);
            let speed = if calendar.is_some() { speed(place()) } else { 1.0 };
            days.add(mark.day, place, found * passed, passed / speed);
            (start, next) = (mark.end, mark.day.0 + 1);
        }
    }

    /// Finds out how busy each day is for a page.
    pub(super) fn fit_days(&mut self, pages: &Pages, at: usize, end: u32) {
        let evidence = &mut self.evidence[pages.evidence[at] as usize];
        if !self.tells_days || evidence.hours < SHORTEST_HOURS {
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

    /// Finds out on which days the pages of each group change.
    pub(super) fn learn_group_days(&mut self, pages: &Pages, with_history: &[usize]) {
        let mut sums: BTreeMap<u32, DaySums> = BTreeMap::new();
        for &at in with_history {
            let evidence = &self.evidence[pages.evidence[at] as usize];
            if !self.tells_days || evidence.hours < SHORTEST_HOURS {
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

    /// The days of a group of which its new pages begin.
    pub(super) fn start_days(&mut self, row: u32, group: usize) {
        let factors = self.day_priors.get(group).map(DayPrior::expected);
        self.rows.set_calendar(row, factors.filter(|factors| !factors.is_even()));
    }
}

/// What a whole workday, or another day, is expected to bring.
fn whole_day(n_periods: u16, kind: u16, rate: impl Fn(usize) -> f32) -> f32 {
    let hours = 24.0 / f32::from(n_periods);
    (0..n_periods).map(|period| rate(usize::from(period + kind * n_periods)) * hours).sum()
}
