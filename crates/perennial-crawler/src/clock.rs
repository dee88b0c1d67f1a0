//! The crawl's clock: real time, or virtual time that runs faster (time-lapse).
//!
//! No clock runs backwards, because pauses, passes and the order of captures depend on it. If the system's clock is
//! set back, this clock runs at half speed until both agree, as systems do for small steps.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use perennial_core::time::{Span, Timestamp};

#[derive(Clone, Debug)]
pub enum Clock {
    Real(Arc<Mutex<RealTime>>),
    /// `factor` virtual seconds pass per real second.
    TimeLapse {
        /// Virtual seconds per real second.
        factor: f64,
        /// The virtual instant at `origin`.
        start: Timestamp,
        /// When the clock was started. Until then it shows `start`.
        origin: Arc<OnceLock<Instant>>,
        /// Microseconds of real time during which the clock was held.
        held_micros: Arc<AtomicU64>,
    },
    /// Advances only when there is nothing to do, then directly to the next event. Its results are the same on every
    /// machine.
    Leaping {
        /// Milliseconds since 1970.
        millis: Arc<AtomicI64>,
    },
}

/// The system's time, made monotonic.
#[derive(Debug)]
pub struct RealTime {
    /// The last reading of the system's clock, and of the monotonic clock at the same moment.
    system: Timestamp,
    seen_at: Instant,
    /// The last returned time, in milliseconds since 1970 with their fraction.
    shown_millis: f64,
    stepped_back: Option<Span>,
}

/// Systems correct their clocks by small steps all the time. Only larger ones get a message.
const SMALL_STEP: Span = Span::from_secs(10);

impl RealTime {
    fn starting(system: Timestamp, seen_at: Instant) -> RealTime {
        RealTime { system, seen_at, shown_millis: system.as_millis() as f64, stepped_back: None }
    }

    /// The time to return when the system's clock reads `system`.
    fn show(&mut self, system: Timestamp, seen_at: Instant) -> Timestamp {
        let passed_millis = seen_at.saturating_duration_since(self.seen_at).as_secs_f64() * 1000.0;
        let back = self.system + Span::from_millis(passed_millis as i64) - system;
        if back > SMALL_STEP {
            self.stepped_back = Some(back);
        }
        let is_ahead = self.shown_millis + passed_millis > system.as_millis() as f64;
        let slowly = self.shown_millis + passed_millis / 2.0;
        let system_millis = system.as_millis() as f64;
        self.shown_millis = if is_ahead { slowly.max(system_millis) } else { system_millis };
        (self.system, self.seen_at) = (system, seen_at);
        Timestamp::from_millis(self.shown_millis as i64)
    }
}

fn system_time() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since_epoch.as_millis() as i64)
}

impl Clock {
    pub fn real() -> Clock {
        Clock::Real(Arc::new(Mutex::new(RealTime::starting(system_time(), Instant::now()))))
    }

    /// By how much the system's clock was set back since the last call.
    pub fn take_step_back(&self) -> Option<Span> {
        let Clock::Real(real) = self else { return None };
        real.lock().unwrap_or_else(PoisonError::into_inner).stepped_back.take()
    }

    /// A virtual clock that shows `start` until it is started.
    pub fn time_lapse(factor: f64, start: Timestamp) -> Clock {
        Clock::TimeLapse { factor, start, origin: Arc::default(), held_micros: Arc::default() }
    }

    /// A clock that shows `start` until it leaps.
    pub fn leaping(start: Timestamp) -> Clock {
        Clock::Leaping { millis: Arc::new(AtomicI64::new(start.as_millis())) }
    }

    pub fn is_leaping(&self) -> bool {
        matches!(self, Clock::Leaping { .. })
    }

    /// Sets a leaping clock to `at`, never backwards. Other clocks ignore it.
    pub fn leap_to(&self, at: Timestamp) {
        if let Clock::Leaping { millis } = self {
            millis.fetch_max(at.as_millis(), Ordering::Relaxed);
        }
    }

    /// Starts a virtual clock. Anything before, such as loading the archive, takes no virtual time.
    pub fn set_going(&self) {
        if let Clock::TimeLapse { origin, .. } = self {
            origin.get_or_init(Instant::now);
        }
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Real(real) => {
                let mut real = real.lock().unwrap_or_else(PoisonError::into_inner);
                // Both are read under the lock, so time is monotonic across threads.
                real.show(system_time(), Instant::now())
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

    /// How long to sleep, in real time, until the clock shows `at`.
    pub fn real_wait(&self, at: Timestamp) -> Duration {
        let secs = (at - self.now()).as_secs_f64().max(0.0);
        let factor = match self {
            Clock::Real(_) => 1.0,
            Clock::TimeLapse { factor, .. } => *factor,
            // The end of a fetch interrupts this wait.
            Clock::Leaping { .. } => return Duration::from_secs(if secs > 0.0 { 3600 } else { 0 }),
        };
        // Bounded, because a wake-up in the far future would overflow a timer.
        Duration::from_secs_f64((secs / factor).clamp(0.0, 3600.0))
    }

    /// Subtracts real time during which a virtual clock had to be held. The crawl takes longer on a slow machine, but
    /// its result is the same. The real clock ignores it.
    pub fn hold(&self, passed: Duration) {
        if let Clock::TimeLapse { held_micros, .. } = self {
            held_micros.fetch_add(passed.as_micros() as u64, Ordering::Relaxed);
        }
    }

    pub fn is_time_lapse(&self) -> bool {
        !matches!(self, Clock::Real(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_runs_slowly_after_a_step_back_and_then_agrees_again() {
        let (start, since) = (Timestamp::parse("2026-01-01").unwrap(), Instant::now());
        let after = |secs: i64| since + Duration::from_secs(secs as u64);
        let mut real = RealTime::starting(start, since);
        let mut shown = real.show(start + Span::from_secs(10), after(10));
        assert_eq!((shown, real.stepped_back), (start + Span::from_secs(10), None));
        // The clock is set back by an hour. Two hours later both clocks agree.
        for secs in (20..=7300).step_by(10) {
            let now = real.show(start + Span::from_secs(secs - 3600), after(secs));
            assert!(now > shown, "it runs on");
            shown = now;
            if secs == 20 {
                assert_eq!(real.stepped_back.take(), Some(Span::from_secs(3600)));
            }
        }
        assert_eq!((shown, real.stepped_back), (start + Span::from_secs(3700), None));
        // A step forwards takes effect at once: the machine may have slept.
        let later = start + Span::from_hours(100);
        assert_eq!(real.show(later, after(7310)), later);
    }

    #[test]
    fn virtual_time_runs_by_its_factor() {
        let start = Timestamp::parse("2026-01-01").unwrap();
        let clock = Clock::time_lapse(3600.0, start);
        let real = Instant::now();
        while 3600 * real.elapsed() < Duration::from_millis(1) {}
        assert_eq!(clock.now(), start, "it does not run before it is set going");
        clock.set_going();
        while clock.now() == start {}
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
