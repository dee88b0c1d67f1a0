//! Fetches the robots.txt of an origin and caches it for a day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use perennial_core::http::robots::{MAX_ROBOTS_BYTES, Robots, RobotsStatus};
use perennial_core::time::{Span, Timestamp};
use perennial_warc::payload::{DecodingLimits, decode};
use url::Url;

use super::exchange::FetchedExchange;
use super::failure::VisitFailure;
use super::visit::VisitContext;
use perennial_fetch::{FetchRequest, FetchedResponse};

/// RFC 9309, 2.4: at most a day.
const KEPT: Span = Span::from_hours(24);
/// RFC 9309, 2.3.1.2: at least five.
const MAX_REDIRECTS: usize = 5;
const MAX_CACHED: usize = 20_000;
/// Most bytes of a stored response: what is read, and as much again for chunk framing. The rest is cut.
const MAX_STORED_BYTES: u64 = 2 * MAX_ROBOTS_BYTES as u64;

pub(super) struct OriginRobots {
    /// The rules, or why they could not be read.
    pub(super) rules: Result<Robots, VisitFailure>,
    fetched_at: Timestamp,
}

/// An origin's robots.txt, and the exchange if it was fetched now.
pub(super) struct RobotsLookup {
    pub(super) origin: Arc<OriginRobots>,
    /// The exchange to archive.
    pub(super) exchange: Option<FetchedExchange>,
}

pub(super) struct RobotsCache {
    known: Mutex<HashMap<String, Arc<OriginRobots>>>,
    agent: String,
}

impl RobotsCache {
    pub(super) fn new(user_agent: &str) -> RobotsCache {
        RobotsCache { known: Mutex::default(), agent: user_agent.to_string() }
    }

    /// The robots.txt of a URL's origin, fetched if it is unknown or older than a day.
    pub(super) async fn get(&self, shared: &VisitContext, url: &Url, allow_private: bool) -> RobotsLookup {
        let origin = perennial_core::url::canonical::origin(url);
        let now = shared.clock.now();
        let known = self.known.lock().ok().and_then(|known| known.get(&origin).cloned());
        if let Some(origin) = known.filter(|origin| now - origin.fetched_at < KEPT) {
            return RobotsLookup { origin, exchange: None };
        }
        let (rules, exchange) = self.fetch(shared, url, allow_private, now).await;
        let fetched = Arc::new(OriginRobots { rules, fetched_at: now });
        if fetched.rules.is_ok()
            && let Ok(mut known) = self.known.lock()
        {
            if known.len() >= MAX_CACHED {
                known.clear();
            }
            known.insert(origin, fetched.clone());
        }
        RobotsLookup { origin: fetched, exchange }
    }

    async fn fetch(
        &self,
        shared: &VisitContext,
        url: &Url,
        allow_private: bool,
        now: Timestamp,
    ) -> (Result<Robots, VisitFailure>, Option<FetchedExchange>) {
        let Ok(mut at) = url.join("/robots.txt") else { return (Ok(Robots::allow_all()), None) };
        for _ in 0..=MAX_REDIRECTS {
            let allow_private = allow_private && at.origin() == url.origin();
            let request = FetchRequest::get(&at, &[], allow_private);
            let mut fetched = match shared.client.fetch_up_to(&request, MAX_STORED_BYTES).await {
                Ok(fetched) => fetched,
                Err(error) => return (Err(error.into()), None),
            };
            match redirect_target(&at, &fetched) {
                Some(target) => at = target,
                None => {
                    let rules = self.read(&at, &mut fetched);
                    let exchange = FetchedExchange::new(at.into(), now, "P".to_string(), fetched);
                    return (rules, Some(exchange));
                }
            }
        }
        // Too many redirects count as no robots.txt (RFC 9309, 2.3.1.2).
        (Ok(Robots::allow_all()), None)
    }

    fn read(&self, at: &Url, fetched: &mut FetchedResponse) -> Result<Robots, VisitFailure> {
        let status = fetched.status();
        match RobotsStatus::from_http(Some(status)) {
            RobotsStatus::Text => {
                let body = fetched.body.prefix(MAX_STORED_BYTES as usize).unwrap_or_default();
                let limits =
                    DecodingLimits { max_bytes: MAX_ROBOTS_BYTES as u64 + 1, ..DecodingLimits::default() };
                Ok(Robots::parse(&decode(&fetched.head, &*body, limits).bytes, &self.agent))
            }
            RobotsStatus::Unavailable => Ok(Robots::allow_all()),
            RobotsStatus::Unreachable => Err(VisitFailure::RobotsUnreachable { url: at.clone(), status }),
        }
    }
}

fn redirect_target(at: &Url, fetched: &FetchedResponse) -> Option<Url> {
    if !(300..400).contains(&fetched.status()) {
        return None;
    }
    perennial_core::url::canonical::resolve(at, &fetched.head.get("Location")?)
}
