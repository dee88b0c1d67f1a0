//! The crawl's clock: real time, or a virtual time that runs faster (time-lapse).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use perennial_core::time::{Span, Timestamp};

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system's clock.
    Real,
    /// `factor` virtual seconds pass in each real one.
    TimeLapse {
        /// Virtual seconds in a real second.
        factor: f64,
        /// The virtual instant at `origin`.
        start: Timestamp,
        /// When it was set going; until then it stands at `start`.
        origin: Arc<OnceLock<Instant>>,
        /// Microseconds of real time for which it stood still.
        held_micros: Arc<AtomicU64>,
    },
    /// Stands still while there is work, and leaps to the next event when there is none. Its results are the same on
    /// every machine.
    Leaping {
        /// Milliseconds since 1970.
        millis: Arc<AtomicI64>,
    },
}

impl Clock {
    /// A virtual clock that stands at `start` until it is set going.
    pub fn time_lapse(factor: f64, start: Timestamp) -> Clock {
        Clock::TimeLapse { factor, start, origin: Arc::default(), held_micros: Arc::default() }
    }

    /// A clock that stands at `start` until it leaps.
    pub fn leaping(start: Timestamp) -> Clock {
        Clock::Leaping { millis: Arc::new(AtomicI64::new(start.as_millis())) }
    }

    /// Whether it leaps.
    pub fn is_leaping(&self) -> bool {
        matches!(self, Clock::Leaping { .. })
    }

    /// Sets a leaping clock to `at`, never backwards. Other clocks ignore it.
    pub fn leap_to(&self, at: Timestamp) {
        if let Clock::Leaping { millis } = self {
            millis.fetch_max(at.as_millis(), Ordering::Relaxed);
        }
    }

    /// Sets a virtual clock going. What happens before, such as loading the archive, takes no virtual time.
    pub fn set_going(&self) {
        if let Clock::TimeLapse { origin, .. } = self {
            origin.get_or_init(Instant::now);
        }
    }

    /// The current time on this clock.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Real => {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(since_epoch.as_millis() as i64)
            }
            Clock::TimeLapse { factor, start, origin, held_micros } => {
                let held = Duration::from_micros(held_micros.load(Ordering::Relaxed));
                let elapsed = origin.get().map_or(Duration::ZERO, Instant::elapsed);
                let running = elapsed.saturating_sub(held).as_secs_f64();
                *start + Span::from_millis((running * factor * 1000.0) as i64)
            }
            Clock::Leaping { millis } => Timestamp::from_millis(millis.load(Ordering::Relaxed)),
        }
    }

    /// How long to sleep, in real time, until it shows `at`.
    pub fn real_wait(&self, at: Timestamp) -> Duration {
        let secs = (at - self.now()).as_secs_f64().max(0.0);
        let factor = match self {
            Clock::Real => 1.0,
            Clock::TimeLapse { factor, .. } => *factor,
            // The end of something in flight interrupts this wait.
            Clock::Leaping { .. } => return Duration::from_secs(if secs > 0.0 { 3600 } else { 0 }),
        };
        // Bounded, so that a wake-up in the far future cannot overflow a timer.
        Duration::from_secs_f64((secs / factor).clamp(0.0, 3600.0))
    }

    /// Subtracts real time that passed while a virtual clock had to stand still. On a slow machine the crawl then takes
    /// longer, and its result stays the same. The real clock ignores it.
    pub fn hold(&self, passed: Duration) {
        if let Clock::TimeLapse { held_micros, .. } = self {
            held_micros.fetch_add(passed.as_micros() as u64, Ordering::Relaxed);
        }
    }

    /// Whether it is virtual.
    pub fn is_time_lapse(&self) -> bool {
        !matches!(self, Clock::Real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_runs_by_its_factor() {
        let start = Timestamp::parse("2026-01-01").unwrap();
        let clock = Clock::time_lapse(3600.0, start);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(clock.now(), start, "it does not run before it is set going");
        clock.set_going();
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.now() > start);
        let wait = clock.real_wait(start + Span::from_hours(10));
        assert!(wait <= Duration::from_secs(10));
        assert_eq!(clock.real_wait(start - Span::from_hours(1)), Duration::ZERO);
    }

    #[test]
    fn a_held_clock_stands_still() {
        let start = Timestamp::parse("2026-01-01").unwrap();
        let clock = Clock::time_lapse(3600.0, start);
        clock.set_going();
        clock.hold(Duration::from_secs(3600));
        assert_eq!(clock.now(), start);
    }

    #[test]
    fn a_leaping_clock_stands_until_it_leaps_and_never_goes_back() {
        let start = Timestamp::parse("2026-01-01").unwrap();
        let clock = Clock::leaping(start);
        let seen_by_others = clock.clone();
        clock.leap_to(start + Span::from_hours(3));
        clock.leap_to(start);
        assert_eq!(seen_by_others.now(), start + Span::from_hours(3));
        assert!(clock.is_time_lapse() && clock.is_leaping());
    }
}
