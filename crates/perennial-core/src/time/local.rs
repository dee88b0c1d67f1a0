//! Instants -> local days, kinds of day and periods of the day, because people publish by local time (P-PATTERN 3.2;
//! docs/papers.md, Time series and patterns).
//!
//! A [`LocalClock`] contains the offsets of one time zone and the holidays of one calendar. Days of 23 and 25 hours
//! are handled: a skipped hour gets no time, a repeated hour gets two.

use std::collections::BTreeSet;

use super::Timestamp;

const HOURS_PER_MS: f32 = 1.0 / 3.6e6;
const DAY_MS: i64 = 86_400_000;

/// Whether people work on a local day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DayKind {
    /// Monday to Friday.
    Workday,
    /// Saturday and Sunday.
    Weekend,
    /// A day listed in the user's calendar, on any weekday.
    Holiday,
}

/// A local day, as days since 1970-01-01 in local time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocalDay(pub i32);

/// An instant in local time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTime {
    pub day: LocalDay,
    /// Milliseconds since midnight on the local clock.
    pub millis_of_day: i64,
}

/// A span within one period of a day.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PeriodPiece {
    /// The local day; `None` if the piece stands for several whole days.
    pub day: Option<LocalDay>,
    /// Kind of day; holidays are a separate kind.
    pub kind: DayKind,
    /// Period of the day, from 0.
    pub period: u16,
    pub hours: f32,
    /// The number of such spans, because whole days of one kind are combined. If days pass at different speeds, the
    /// sum of their speeds.
    pub times: f32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    #[error("`{0}` is not a time zone; write an IANA name such as Europe/Berlin")]
    UnknownZone(String),
    #[error("`{0}` is not a date; write a holiday as 2026-12-25")]
    NotADate(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct LocalClock {
    name: String,
    /// Instants with the offset of local time from UTC from then on, both in milliseconds; sorted.
    offsets: Vec<(i64, i64)>,
    holidays: BTreeSet<LocalDay>,
}

impl LocalDay {
    pub fn from_date(date: jiff::civil::Date) -> LocalDay {
        let days = date.since(jiff::civil::date(1970, 1, 1)).map(|span| span.get_days()).unwrap_or(0);
        LocalDay(days)
    }

    /// A day as people write it: `2026-12-25`.
    pub fn parse(text: &str) -> Result<LocalDay, ClockError> {
        let date = text.trim().parse().map_err(|_| ClockError::NotADate(text.chars().take(40).collect()))?;
        Ok(LocalDay::from_date(date))
    }

    /// As a civil date, clamped to the range of jiff.
    pub fn to_date(self) -> jiff::civil::Date {
        let span = jiff::Span::new().try_days(self.0).unwrap_or_default();
        jiff::civil::date(1970, 1, 1).saturating_add(span)
    }

    /// The day of the month, from 1, and whether it is the last.
    pub fn in_month(self) -> (u8, bool) {
        // Years start in March, so the leap day is the last of a year; 400 years are a cycle of 146,097 days.
        let (days, mut month_of_leap) = ((i64::from(self.0) + 719_468).rem_euclid(146_097), false);
        let year = (days - days / 1460 + days / 36_524 - days / 146_096) / 365;
        let of_year = days - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        if month == 11 {
            let next = year + 1;
            month_of_leap = next % 4 == 0 && (next % 100 != 0 || next % 400 == 0);
        }
        let length = match month {
            11 if month_of_leap => 29,
            11 => 28,
            1 | 3 | 6 | 8 => 30,
            _ => 31,
        };
        (day as u8, day == length)
    }

    /// 0 for Monday to 6 for Sunday.
    pub fn weekday(self) -> u8 {
        // 1970-01-01 was a Thursday.
        (i64::from(self.0) + 3).rem_euclid(7) as u8
    }
}

impl Default for LocalClock {
    fn default() -> LocalClock {
        LocalClock::utc()
    }
}

impl LocalClock {
    /// UTC without holidays.
    pub fn utc() -> LocalClock {
        LocalClock { name: "UTC".to_owned(), offsets: vec![(i64::MIN, 0)], holidays: BTreeSet::new() }
    }

    /// The clock of an IANA time zone, from the bundled database.
    pub fn from_zone(name: &str) -> Result<LocalClock, ClockError> {
        if name.eq_ignore_ascii_case("utc") {
            return Ok(LocalClock::utc());
        }
        let zone = jiff::tz::db().get(name).map_err(|_| ClockError::UnknownZone(name.to_owned()))?;
        Ok(LocalClock { name: name.to_owned(), offsets: zone_offsets(&zone), holidays: BTreeSet::new() })
    }

    pub fn with_holidays(mut self, days: impl IntoIterator<Item = LocalDay>) -> LocalClock {
        self.holidays.extend(days);
        self
    }

    /// Adds holidays written as `2026-12-25`.
    pub fn with_holidays_from<'a>(
        self,
        dates: impl IntoIterator<Item = &'a str>,
    ) -> Result<LocalClock, ClockError> {
        let days: Result<Vec<LocalDay>, ClockError> = dates.into_iter().map(LocalDay::parse).collect();
        Ok(self.with_holidays(days?))
    }

    pub fn zone(&self) -> &str {
        &self.name
    }

    pub fn has_holidays(&self) -> bool {
        !self.holidays.is_empty()
    }

    pub fn local(&self, at: Timestamp) -> LocalTime {
        let (offset, _) = self.offset_at(at.as_millis());
        local_time(at.as_millis().saturating_add(offset))
    }

    pub fn day_kind(&self, day: LocalDay) -> DayKind {
        if !self.holidays.is_empty() && self.holidays.contains(&day) {
            DayKind::Holiday
        } else if day.weekday() >= 5 {
            DayKind::Weekend
        } else {
            DayKind::Workday
        }
    }

    /// The kind of day and the period at an instant, with `n_periods` equal periods per day.
    pub fn period_at(&self, at: Timestamp, n_periods: u16) -> (DayKind, u16) {
        let local = self.local(at);
        (self.day_kind(local.day), period(local.millis_of_day, n_periods))
    }

    /// The first instant of a local day; if midnight is skipped, the first instant that exists.
    pub fn day_start(&self, day: LocalDay) -> Timestamp {
        let wall = i64::from(day.0) * DAY_MS;
        // Offsets are less than a day, so the two guesses are on both sides of any change. The earlier valid one
        // wins.
        let (before, _) = self.offset_at(wall - DAY_MS);
        let (after, _) = self.offset_at(wall + DAY_MS);
        for offset in [before.max(after), before.min(after)] {
            let guess = wall - offset;
            if local_time(guess + self.offset_at(guess).0).day == day {
                return Timestamp::from_millis(guess);
            }
        }
        Timestamp::from_millis(wall - after)
    }

    /// Splits `(from, to]` into pieces, in order, each within one period of the day. Whole days after the first are
    /// combined by kind, so a gap of years remains cheap.
    pub fn pieces(&self, from: Timestamp, to: Timestamp, n_periods: u16, each: impl FnMut(PeriodPiece)) {
        self.pieces_at_speeds(from, to, n_periods, |_, _| 1.0, each);
    }

    /// The same if local days pass at different speeds.
    pub fn pieces_at_speeds(
        &self,
        from: Timestamp,
        to: Timestamp,
        n_periods: u16,
        speed: impl Fn(LocalDay, DayKind) -> f32,
        mut each: impl FnMut(PeriodPiece),
    ) {
        let end = to.as_millis();
        // The limit of two centuries keeps a corrupt time from taking minutes.
        let first = from.as_millis().max(end.saturating_sub(73_000 * DAY_MS));
        let mut at = first;
        let mut whole_days = [0.0f32; 3];
        let periods = Periods::new(n_periods);
        while at < end {
            let (offset, until) = self.offset_at(at);
            let local = local_time(at.saturating_add(offset));
            let left_of_day = DAY_MS - local.millis_of_day;
            let kind = self.day_kind(local.day);
            let is_whole = left_of_day == DAY_MS && at.saturating_add(DAY_MS) <= end.min(until);
            if is_whole && at != first {
                whole_days[kind as usize] += speed(local.day, kind);
                at = at.saturating_add(DAY_MS);
                continue;
            }
            let stop = at.saturating_add(left_of_day).min(end).min(until);
            let mut period = period(local.millis_of_day, n_periods);
            // Milliseconds since midnight fit into 32 bits.
            let mut here = local.millis_of_day as u32;
            let there = here + (stop - at) as u32;
            let (day, times) = (Some(local.day), speed(local.day, kind));
            while here < there {
                let next = periods.end(period).min(there);
                each(PeriodPiece { day, kind, period, hours: (next - here) as f32 * HOURS_PER_MS, times });
                here = next;
                period += 1;
            }
            at = stop;
        }
        let hours = 24.0 / f32::from(n_periods.max(1));
        let kinds = [DayKind::Workday, DayKind::Weekend, DayKind::Holiday].into_iter().zip(whole_days);
        for (kind, times) in kinds.filter(|(_, times)| *times > 0.0) {
            for period in 0..n_periods.max(1) {
                each(PeriodPiece { day: None, kind, period, hours, times });
            }
        }
    }

    /// The offset at an instant and when it ends.
    fn offset_at(&self, millis: i64) -> (i64, i64) {
        let next = self.offsets.partition_point(|(since, _)| *since <= millis);
        let until = self.offsets.get(next).map_or(i64::MAX, |(since, _)| *since);
        (self.offsets.get(next.saturating_sub(1)).map_or(0, |(_, offset)| *offset), until)
    }
}

fn zone_offsets(zone: &jiff::tz::TimeZone) -> Vec<(i64, i64)> {
    // The web began in 1991. After 2100 the last known offset applies.
    let start = jiff::Timestamp::from_second(631_152_000).unwrap_or_default();
    let end = jiff::Timestamp::from_second(4_102_444_800).unwrap_or_default();
    let millis_ahead = |offset: jiff::tz::Offset| i64::from(offset.seconds()) * 1000;
    let mut offsets = vec![(i64::MIN, millis_ahead(zone.to_offset(start)))];
    for transition in zone.following(start).take(1000) {
        if transition.timestamp() > end {
            break;
        }
        offsets.push((transition.timestamp().as_millisecond(), millis_ahead(transition.offset())));
    }
    offsets
}

fn local_time(wall_millis: i64) -> LocalTime {
    let day = wall_millis.div_euclid(DAY_MS).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    LocalTime { day: LocalDay(day), millis_of_day: wall_millis.rem_euclid(DAY_MS) }
}

fn period(millis_of_day: i64, n_periods: u16) -> u16 {
    let n = i64::from(n_periods.max(1));
    (millis_of_day * n / DAY_MS).clamp(0, n - 1) as u16
}

/// The periods of a day. The divisions are done once, because they would dominate the running time.
struct Periods {
    n: u32,
    length: u32,
    rest: u32,
}

impl Periods {
    fn new(n_periods: u16) -> Periods {
        let (n, day) = (u32::from(n_periods.max(1)), DAY_MS as u32);
        Periods { n, length: day / n, rest: day % n }
    }

    /// When a period ends, in milliseconds since midnight.
    fn end(&self, period: u16) -> u32 {
        let next = u32::from(period) + 1;
        let more = if self.rest == 0 { 0 } else { (next * self.rest).div_ceil(self.n) };
        next * self.length + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn hours_by_period(clock: &LocalClock, from: &str, to: &str) -> Vec<f32> {
        let mut hours = vec![0.0; 24];
        clock.pieces(at(from), at(to), 24, |piece| {
            hours[usize::from(piece.period)] += piece.hours * piece.times;
        });
        hours
    }

    #[test]
    fn berlin_is_ahead_and_changes_twice_a_year() {
        let berlin = LocalClock::from_zone("Europe/Berlin").unwrap();
        assert_eq!(berlin.period_at(at("2025-01-08T11:30:00Z"), 24), (DayKind::Workday, 12));
        assert_eq!(berlin.period_at(at("2025-07-05T22:30:00Z"), 24), (DayKind::Weekend, 0));
        let length_of = |day: LocalDay| berlin.day_start(LocalDay(day.0 + 1)) - berlin.day_start(day);
        let short = LocalDay::from_date(jiff::civil::date(2025, 3, 30));
        let long = LocalDay::from_date(jiff::civil::date(2025, 10, 26));
        assert_eq!(length_of(short), Span::from_hours(23));
        assert_eq!(length_of(long), Span::from_hours(25));
        assert_eq!(length_of(LocalDay(short.0 - 1)), Span::from_hours(24));
    }

    #[test]
    fn skipped_hours_get_no_time_and_repeated_ones_get_two() {
        let berlin = LocalClock::from_zone("Europe/Berlin").unwrap();
        let spring = hours_by_period(&berlin, "2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z");
        assert_eq!(spring[2], 0.0);
        assert_eq!(spring.iter().sum::<f32>(), 23.0);
        let autumn = hours_by_period(&berlin, "2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z");
        assert_eq!(autumn[2], 2.0);
        assert_eq!(autumn.iter().sum::<f32>(), 25.0);
    }

    #[test]
    fn long_gaps_are_complete_across_daylight_saving() {
        let berlin = LocalClock::from_zone("Europe/Berlin").unwrap();
        let hours = hours_by_period(&berlin, "2025-01-01T05:17:00Z", "2026-02-03T04:05:00Z");
        let total = (at("2026-02-03T04:05:00Z") - at("2025-01-01T05:17:00Z")).as_hours_f64();
        assert!((f64::from(hours.iter().sum::<f32>()) - total).abs() < 0.01);
    }

    #[test]
    fn holidays_are_their_own_kind() {
        let clock = LocalClock::from_zone("Europe/Paris").unwrap();
        let clock = clock.with_holidays_from(["2025-07-14"]).unwrap();
        assert_eq!(clock.period_at(at("2025-07-14T10:00:00Z"), 24).0, DayKind::Holiday);
        assert!(LocalClock::utc().with_holidays_from(["14 July"]).is_err());
        assert!(LocalClock::from_zone("Mars/Base").unwrap_err().to_string().contains("IANA"));
    }

    #[test]
    fn half_hour_zones_and_odd_period_counts() {
        let kolkata = LocalClock::from_zone("Asia/Kolkata").unwrap();
        assert_eq!(kolkata.period_at(at("2025-01-08T00:00:00Z"), 24).1, 5);
        for n_periods in [1, 2, 7, 24, 120] {
            let mut total = 0.0;
            kolkata.pieces(at("2025-01-08T00:01:00Z"), at("2025-01-13T07:31:00Z"), n_periods, |piece| {
                assert!(piece.period < n_periods && piece.hours > 0.0);
                total += piece.hours * piece.times;
            });
            assert!((total - 127.5).abs() < 0.01, "{n_periods}: {total}");
        }
    }

    #[test]
    fn days_know_their_place_in_the_month() {
        for day in (-800_000..800_000).step_by(7).chain(20_000..21_500).map(LocalDay) {
            let date = day.to_date();
            let expected = (date.day() as u8, date.day() == date.days_in_month());
            assert_eq!(day.in_month(), expected, "{date}");
        }
    }

    #[test]
    fn days_pass_at_their_speeds() {
        let clock = LocalClock::utc();
        let speed = |day: LocalDay, _| if day.weekday() == 0 { 3.0 } else { 0.5 };
        let mut hours = 0.0;
        // Monday noon to Tuesday noon of the next week.
        clock.pieces_at_speeds(at("2026-03-02T12:00:00Z"), at("2026-03-10T12:00:00Z"), 24, speed, |piece| {
            hours += piece.hours * piece.times;
        });
        assert!((hours - (12.0 * 3.0 + 6.0 * 12.0 + 24.0 * 3.0 + 6.0)).abs() < 0.01, "{hours}");
    }

    #[test]
    fn extremes_end() {
        let clock = LocalClock::utc();
        clock.pieces(Timestamp::from_millis(i64::MAX - 5), Timestamp::from_millis(i64::MAX), 24, |_| {});
        clock.pieces(at("2025-01-01"), at("2024-01-01"), 24, |_| panic!("nothing to hand out"));
    }
}
