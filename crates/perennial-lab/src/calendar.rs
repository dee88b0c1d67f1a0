//! Draws a world in which some pages follow days of the week, of the month, or holidays (P-PATTERN 6.3).
//!
//! Examples are a baker's page edited on Mondays, an office's edited on the first of the month, a newspaper's edited on
//! holidays. Such a page has a few busy days with several versions, and hardly changes on all other days. Pages of all
//! kinds share one directory, so the scheduler cannot infer the days of one page from another.

use perennial_core::page::importance::Importance;
use perennial_core::time::{LocalClock, LocalDay, Span, Timestamp};

use crate::paper::PaperWorld;
use crate::rng::WorldRng;
use crate::world::{Change, World, WorldPage};

/// Changes of a busy day.
const BUSY_CHANGES: (f64, f64) = (3.0, 8.0);
/// Changes of a quiet day.
const QUIET_CHANGES: f64 = 0.03;
/// Changes happen between these hours.
const OFFICE_HOURS: (f64, f64) = (7.0, 19.0);
const SITES: u32 = 3;

/// The days on which a page is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCycle {
    /// No special days: hours and workdays as in the papers' world.
    Ordinary,
    /// One day of the week.
    Weekly,
    /// One day of the month.
    Monthly,
    /// Public holidays.
    Holiday,
}

impl PageCycle {
    pub const ALL: [PageCycle; 4] =
        [PageCycle::Ordinary, PageCycle::Weekly, PageCycle::Monthly, PageCycle::Holiday];

    pub const fn name(self) -> &'static str {
        match self {
            PageCycle::Ordinary => "ordinary",
            PageCycle::Weekly => "weekly",
            PageCycle::Monthly => "monthly",
            PageCycle::Holiday => "holiday",
        }
    }
}

/// The size of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarWorld {
    /// Ordinary pages of each of three sites.
    pub n_ordinary: u32,
    /// Pages per site of each other cycle.
    pub n_per_cycle: u32,
    /// Length of the world in days.
    pub days: u32,
    pub seed: u64,
}

impl Default for CalendarWorld {
    /// 300 pages for a year, a third of them ordinary.
    fn default() -> CalendarWorld {
        CalendarWorld { n_ordinary: 40, n_per_cycle: 20, days: 364, seed: 1 }
    }
}

impl CalendarWorld {
    /// Returns the world and the cycle of each page.
    pub fn build(&self) -> (World, Vec<PageCycle>) {
        let paper =
            PaperWorld { n_sites: SITES, pages_per_site: self.n_ordinary, days: self.days, seed: self.seed };
        let mut world = paper.build();
        "calendar".clone_into(&mut world.name);
        let clock = self.clock(world.start);
        let mut kinds = vec![PageCycle::Ordinary; world.pages.len()];
        for site in 0..SITES {
            for nth in 0..3 * self.n_per_cycle {
                let kind = PageCycle::ALL[1 + nth as usize % 3];
                let part = (2 << 32) + u64::from(site * 3 * self.n_per_cycle + nth);
                let mut rng = WorldRng::fork(self.seed, part);
                kinds.push(kind);
                world.pages.push(WorldPage {
                    name: format!("/page{}", self.n_ordinary + nth),
                    site: perennial_core::url::SiteId(site),
                    weight: 1.0 + 3.0 * rng.unit(),
                    changes: draw_changes(kind, &clock, (world.start, world.end), &mut rng),
                    truth: None,
                });
            }
        }
        world.clocks = vec![clock; SITES as usize];
        (world, kinds)
    }

    /// UTC with about one holiday per 28 days, on days without a weekly or monthly rule.
    fn clock(&self, start: Timestamp) -> LocalClock {
        let mut rng = WorldRng::fork(self.seed, 3 << 32);
        let first = LocalClock::utc().local(start).day.0;
        let day = |month: u32| LocalDay(first + (month * 28) as i32 + rng.below(28) as i32);
        LocalClock::utc().with_holidays((0..self.days.div_ceil(28)).map(day).collect::<Vec<_>>())
    }
}

fn draw_changes(
    kind: PageCycle,
    clock: &LocalClock,
    (start, end): (Timestamp, Timestamp),
    rng: &mut WorldRng,
) -> Vec<Change> {
    let (a_busy_day, importance) = (rng.range(BUSY_CHANGES.0, BUSY_CHANGES.1), rng.range(0.1, 0.6));
    let (weekday, of_month) = (rng.below(7) as u8, draw_day_of_month(rng));
    let mut changes = Vec::new();
    let (first, last) = (clock.local(start).day.0, clock.local(end).day.0);
    for day in (first..last).map(LocalDay) {
        let is_busy = match kind {
            PageCycle::Ordinary => false,
            PageCycle::Weekly => day.weekday() == weekday,
            PageCycle::Monthly => of_month.map_or(day.in_month().1, |of_month| day.in_month().0 == of_month),
            PageCycle::Holiday => clock.day_kind(day) == perennial_core::time::DayKind::Holiday,
        };
        let mut left = if is_busy { a_busy_day } else { QUIET_CHANGES } - rng.exponential();
        while left >= 0.0 {
            let hour = rng.range(OFFICE_HOURS.0, OFFICE_HOURS.1);
            let at = clock.day_start(day) + Span::from_millis((3.6e6 * hour) as i64);
            changes.push(Change { at, importance: Importance::new(rng.beta(importance, 4.0)) });
            left -= rng.exponential();
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

/// Draws the first, the fifteenth, the last (`None`), or any other day.
fn draw_day_of_month(rng: &mut WorldRng) -> Option<u8> {
    match rng.unit() {
        u if u < 0.4 => Some(1),
        u if u < 0.55 => Some(15),
        u if u < 0.7 => None,
        _ => Some(1 + rng.below(28) as u8),
    }
}
