//! What the user asks of one crawl.

use perennial_core::schedule::{Budget, Goal, Pacing, Strategy};
use perennial_core::time::Span;

use super::clock::Clock;
use super::stop::StopHandle;

/// What the user asks of one crawl.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// Capture everything in scope once, then end.
    pub once: bool,
    /// With `once`: poll the feeds and fetch nothing else.
    pub feeds_only: bool,
    /// The strategy that decides which page is visited next.
    pub strategy: Strategy,
    /// What the strategy serves; `None`: the goals of perennial.toml.
    pub goal: Option<Goal>,
    /// Whether quiet hours save visits for busy ones; `None`: as perennial.toml says.
    pub varying_budget: Option<bool>,
    /// Visits of pages in a period; `None`: the budget of perennial.toml.
    pub budget: Option<Budget>,
    /// Bytes fetched in a day; `None`: those of perennial.toml.
    pub bytes_per_day: Option<u64>,
    /// How often pages are ranked.
    pub slot: Span,
    /// When the visits of a slot are made.
    pub pacing: Pacing,
    /// The interval of the strategy fixed-interval.
    pub interval: Option<Span>,
    /// End after this many visits of pages.
    pub limit: Option<u64>,
    /// End after this time on the crawl's clock.
    pub time_limit: Option<Span>,
    /// End when the WARC files have grown by this many bytes.
    pub size_limit: Option<u64>,
    /// A fixed delay after every fetch instead of politeness.
    pub delay: Option<Span>,
    /// Connections to a host at a time.
    pub connections: u32,
    /// Whether hosts with private or loopback addresses are fetched from.
    pub allow_private: bool,
    /// The clock of the crawl, real or virtual.
    pub clock: Clock,
    /// Seed of the random numbers of the scheduler and of the politeness delays.
    pub seed: u64,
    /// Whether captures are analysed; otherwise any other payload counts as a change.
    pub analyse: bool,
    /// The handle by which another thread stops the crawl.
    pub stop: StopHandle,
}

impl Default for CrawlOptions {
    fn default() -> CrawlOptions {
        CrawlOptions {
            once: false,
            feeds_only: false,
            strategy: Strategy::ExpectedGain,
            goal: None,
            varying_budget: None,
            budget: None,
            bytes_per_day: None,
            slot: Span::from_hours(1),
            pacing: Pacing::Spread,
            interval: None,
            limit: None,
            time_limit: None,
            size_limit: None,
            delay: None,
            connections: 1,
            allow_private: false,
            clock: Clock::real(),
            seed: 0,
            analyse: true,
            stop: StopHandle::default(),
        }
    }
}
