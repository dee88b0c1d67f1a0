//! Hours of the week, as people write them: `Mon-Fri 08:00-18:00`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{LocalClock, LocalDay, LocalTime, Span, Timestamp};

const DAY_MINUTES: u16 = 24 * 60;
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// More stretches than this are a mistake.
const MOST_STRETCHES: usize = 50;

/// Stretches of the week on a local clock. At least one, and none is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeeklyHours {
    stretches: Arc<[Stretch]>,
}

/// The same hours on some days in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    /// 0 for Monday; the last may be before the first, as in `Sat-Mon`.
    first_day: u8,
    last_day: u8,
    /// Minutes since midnight.
    from: u16,
    /// Minutes since the same midnight: more than a day if the stretch ends on the next day.
    to: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` does not name hours: write them as `Mon-Fri 08:00-18:00`, or several with commas between them"
)]
pub struct HoursError {
    text: String,
}

impl Stretch {
    fn parse(text: &str) -> Option<Stretch> {
        let (days, times) = match text.rsplit_once(char::is_whitespace) {
            Some((days, times)) => (days.trim(), times),
            None => ("Mon-Sun", text),
        };
        let (first, last) = days.split_once('-').unwrap_or((days, days));
        let (from, to) = times.split_once('-')?;
        let (from, to) = (minutes(from)?, minutes(to)?);
        let to = if to <= from { to + DAY_MINUTES } else { to };
        let is_real = from < DAY_MINUTES && to - from <= DAY_MINUTES;
        is_real.then_some(Stretch { first_day: day(first)?, last_day: day(last)?, from, to })
    }

    fn has_day(self, weekday: u8) -> bool {
        let place = |day: u8| (day + 7 - self.first_day) % 7;
        place(weekday) <= place(self.last_day)
    }

    fn contains(self, weekday: u8, minute: u16) -> bool {
        let runs = |day: u8, minute: u16| self.has_day(day) && (self.from..self.to).contains(&minute);
        runs(weekday, minute) || runs((weekday + 6) % 7, minute + DAY_MINUTES)
    }
}

impl WeeklyHours {
    fn contains(&self, local: LocalTime) -> bool {
        let minute = (local.millis_of_day / 60_000) as u16;
        self.stretches.iter().any(|stretch| stretch.contains(local.day.weekday(), minute))
    }

    /// The first instant from `at` on that is within the hours.
    pub fn next_open(&self, clock: &LocalClock, at: Timestamp) -> Timestamp {
        let local = clock.local(at);
        if self.contains(local) {
            return at;
        }
        // A week and a day, because the clock may skip the first hour of a stretch.
        let days = (0..=8).map(|day| LocalDay(local.day.0.saturating_add(day)));
        let starts = days.flat_map(|day| {
            let todays = self.stretches.iter().filter(move |stretch| stretch.has_day(day.weekday()));
            todays.map(move |stretch| instant(clock, day, stretch.from))
        });
        starts.filter(|start| *start > at).min().unwrap_or(at)
    }
}

/// The instant at which a clock shows so many minutes since midnight; if it skips them, the same wait after midnight.
fn instant(clock: &LocalClock, day: LocalDay, minutes: u16) -> Timestamp {
    let wait = Span::from_secs(i64::from(minutes) * 60);
    let guess = clock.day_start(day) + wait;
    let shown = clock.local(guess);
    let mended = guess + Span::from_millis(wait.as_millis() - shown.millis_of_day);
    if shown.day == day && clock.local(mended).millis_of_day == wait.as_millis() { mended } else { guess }
}

fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let is_number = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let (hours, minutes): (u16, u16) = match is_number(hours) && is_number(minutes) {
        true => (hours.parse().ok()?, minutes.parse().ok()?),
        false => return None,
    };
    (minutes < 60 && hours * 60 + minutes <= DAY_MINUTES).then_some(hours * 60 + minutes)
}

fn day(text: &str) -> Option<u8> {
    let place = DAYS.iter().position(|name| name.eq_ignore_ascii_case(text.trim()))?;
    Some(place as u8)
}

impl FromStr for WeeklyHours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<WeeklyHours, HoursError> {
        let stretches: Option<Vec<Stretch>> =
            text.split(',').take(MOST_STRETCHES + 1).map(|part| Stretch::parse(part.trim())).collect();
        match stretches {
            Some(stretches) if stretches.len() <= MOST_STRETCHES => {
                Ok(WeeklyHours { stretches: stretches.into() })
            }
            _ => Err(HoursError { text: text.chars().take(80).collect() }),
        }
    }
}

impl fmt::Display for WeeklyHours {
    /// In the form that [`WeeklyHours::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, stretch) in self.stretches.iter().enumerate() {
            let name = |day: u8| DAYS.get(usize::from(day)).copied().unwrap_or_default();
            f.write_str(if nth > 0 { ", " } else { "" })?;
            match (stretch.first_day, stretch.last_day) {
                (0, 6) => {}
                (first, last) if first == last => write!(f, "{} ", name(first))?,
                (first, last) => write!(f, "{}-{} ", name(first), name(last))?,
            }
            let to = if stretch.to > DAY_MINUTES { stretch.to - DAY_MINUTES } else { stretch.to };
            let time = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
            write!(f, "{}-{}", time(stretch.from), time(to))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hours(text: &str) -> WeeklyHours {
        text.parse().unwrap()
    }

    fn opens(text: &str, zone: &str, at: &str) -> String {
        let clock = LocalClock::from_zone(zone).unwrap();
        hours(text).next_open(&clock, Timestamp::parse(at).unwrap()).to_rfc3339()
    }

    #[test]
    fn hours_are_written_as_they_are_read() {
        for text in
            ["Mon-Fri 08:00-18:00", "Sat-Mon 22:00-06:00", "00:00-24:00", "Sun 09:30-10:00, 12:00-13:00"]
        {
            assert_eq!(hours(text).to_string(), text);
        }
        assert_eq!(hours(" mon-SUN 8:00-9:05 ").to_string(), "08:00-09:05");
        for wrong in [
            "",
            "Mon-Fri",
            "Mon-Fry 08:00-18:00",
            "08:00",
            "08:00-25:00",
            "24:00-24:00",
            "8-18",
            ",",
            "-1:00-2:00",
        ] {
            assert!(wrong.parse::<WeeklyHours>().is_err(), "{wrong}");
        }
        assert!("08:00-08:00".parse::<WeeklyHours>().is_ok(), "a whole day from eight to eight");
    }

    #[test]
    fn work_hours_open_on_the_next_workday_of_the_zone() {
        let work = "Mon-Fri 08:00-18:00";
        // Friday in Berlin, an hour ahead of UTC.
        assert_eq!(opens(work, "Europe/Berlin", "2026-11-20T16:59:00Z"), "2026-11-20T16:59:00Z");
        assert_eq!(opens(work, "Europe/Berlin", "2026-11-20T17:00:00Z"), "2026-11-23T07:00:00Z");
        assert_eq!(opens(work, "Europe/Berlin", "2026-11-20T05:00:00Z"), "2026-11-20T07:00:00Z");
    }

    #[test]
    fn a_night_belongs_to_the_day_on_which_it_begins() {
        let night = "Sun 22:00-06:00";
        assert_eq!(opens(night, "UTC", "2026-11-23T05:59:00Z"), "2026-11-23T05:59:00Z");
        assert_eq!(opens(night, "UTC", "2026-11-23T06:00:00Z"), "2026-11-29T22:00:00Z");
    }

    #[test]
    fn days_of_23_and_25_hours_keep_the_hours_of_the_clock() {
        let work = "08:00-18:00";
        assert_eq!(opens(work, "Europe/Berlin", "2025-03-30T00:30:00Z"), "2025-03-30T06:00:00Z");
        assert_eq!(opens(work, "Europe/Berlin", "2025-10-25T22:30:00Z"), "2025-10-26T07:00:00Z");
        // The clock skips this hour, so the day has none of it.
        assert_eq!(opens("02:00-03:00", "Europe/Berlin", "2025-03-30T00:00:00Z"), "2025-03-30T01:00:00Z");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_and_read_again(text in "(mon|Sun-Tue|Wed|x)? ?[0-9:]{1,5}-[0-9:]{1,5},?") {
            if let Ok(hours) = text.parse::<WeeklyHours>() {
                prop_assert_eq!(hours.to_string().parse::<WeeklyHours>(), Ok(hours));
            }
        }

        /// No earlier minute is within the hours, and the found one is, unless the clock skips it.
        #[test]
        fn the_first_open_minute_is_found(from in 0u16..1440, length in 1u16..=1440, day in 0u8..7, days in 0u8..7, at in 0i64..525_600) {
            let stretch = Stretch { first_day: day, last_day: (day + days) % 7, from, to: from + length };
            let hours = WeeklyHours { stretches: vec![stretch].into() };
            let clock = LocalClock::utc();
            let at = Timestamp::from_secs(60 * at);
            let open = hours.next_open(&clock, at);
            prop_assert!(open >= at && hours.contains(clock.local(open)));
            let wait = (open - at).as_millis() / 60_000;
            prop_assert!((0..wait).all(|minute| !hours.contains(clock.local(at + Span::from_secs(60 * minute)))));
        }
    }
}
