//! What the user asks of one crawl.

use perennial_core::schedule::{Budget, Pacing, Strategy};
use perennial_core::time::Span;

use super::clock::Clock;
use super::stop::Stop;

/// What the user asks of one crawl.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// Capture everything in scope once, then end.
    pub once: bool,
    /// Which policy decides.
    pub strategy: Strategy,
    /// How many visits it may make; without, what perennial.toml says.
    pub budget: Option<Budget>,
    /// How many bytes it may fetch in a day; without, what perennial.toml says.
    pub bytes_per_day: Option<u64>,
    /// How often pages are ranked.
    pub slot: Span,
    /// When the visits of a slot are made.
    pub pacing: Pacing,
    /// The fixed interval, for the policy of that name.
    pub interval: Option<Span>,
    /// End after so many visits of pages.
    pub limit: Option<u64>,
    /// End after this time on the crawl's clock.
    pub time_limit: Option<Span>,
    /// End when the WARC files grew by so much.
    pub size_limit: Option<u64>,
    /// The same delay for every host, instead of manners.
    pub delay: Option<Span>,
    /// Connections to a host at a time.
    pub connections: u32,
    /// Whether all private addresses may be asked.
    pub allow_private: bool,
    /// The crawl's time.
    pub clock: Clock,
    /// Seed of the policy's and the jitter's chance.
    pub seed: u64,
    /// Whether captures are looked at as a reader would; without, another payload is another page.
    pub analyse: bool,
    /// Ends the crawl when it is asked to.
    pub stop: Stop,
}

impl Default for CrawlOptions {
    fn default() -> CrawlOptions {
        CrawlOptions {
            once: false,
            strategy: Strategy::ExpectedGain,
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
            clock: Clock::Real,
            seed: 0,
            analyse: true,
            stop: Stop::default(),
        }
    }
}
