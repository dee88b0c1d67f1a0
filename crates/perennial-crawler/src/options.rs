//! The user's options for one crawl.

use std::sync::mpsc::Sender;

use perennial_core::schedule::{Budget, Goal, Strategy};
use perennial_core::time::Span;
use url::Url;

use super::clock::Clock;
use super::events::CrawlEvent;
use super::stop::StopHandle;

/// The user's options for one crawl. `None` means the value in perennial.toml.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// Capture everything in scope once, then end.
    pub once: bool,
    /// With `once`: poll the feeds and fetch nothing else.
    pub feeds_only: bool,
    /// With `once`: visit these pages with their subresources and nothing else. They need not belong to a site.
    pub only: Vec<Url>,
    /// How the next page is chosen.
    pub strategy: Strategy,
    /// What visits optimise for.
    pub goal: Option<Goal>,
    /// Whether quiet hours save visits for busy ones.
    pub varying_budget: Option<bool>,
    /// Visits of pages per period.
    pub budget: Option<Budget>,
    /// Bytes per day.
    pub bytes_per_day: Option<u64>,
    /// The interval of the fixed-interval strategy.
    pub interval: Option<Span>,
    /// End after this many visits of pages.
    pub limit: Option<u64>,
    /// End after this time on the crawl's clock.
    pub time_limit: Option<Span>,
    /// End when the WARC files have grown by this many bytes.
    pub size_limit: Option<u64>,
    /// A fixed delay after every fetch, instead of adaptive politeness.
    pub delay: Option<Span>,
    /// Connections per host.
    pub connections: u32,
    /// Whether private and loopback addresses may be fetched from.
    pub allow_private: bool,
    pub clock: Clock,
    /// Seed of the random numbers for the scheduler and for politeness delays.
    pub seed: u64,
    /// Whether captures are analysed. Otherwise every changed payload counts as a change.
    pub analyse: bool,
    /// Receives what happens, if anybody listens.
    pub events: Option<Sender<CrawlEvent>>,
    /// Lets another thread stop the crawl.
    pub stop: StopHandle,
}

impl CrawlOptions {
    /// Whether the crawl is a pass over everything.
    pub(super) fn is_pass(&self) -> bool {
        self.once && !self.feeds_only && self.only.is_empty()
    }
}

impl Default for CrawlOptions {
    fn default() -> CrawlOptions {
        CrawlOptions {
            once: false,
            feeds_only: false,
            only: Vec::new(),
            strategy: Strategy::ExpectedGain,
            goal: None,
            varying_budget: None,
            budget: None,
            bytes_per_day: None,
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
            events: None,
            stop: StopHandle::default(),
        }
    }
}
