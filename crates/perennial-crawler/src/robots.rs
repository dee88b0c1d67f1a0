//! An origin -> its robots.txt, fetched when needed and kept for a day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use perennial_core::http::robots::{MAX_ROBOTS_BYTES, Robots, RobotsStatus};
use perennial_core::time::{Span, Timestamp};
use perennial_warc::payload::{Limits, decode};
use url::Url;

use super::exchange::Exchanged;
use super::failure::{Failure, FailureKind};
use super::visit::Shared;
use perennial_fetch::{Fetched, Request};

/// RFC 9309, 2.4: not longer than a day.
const KEPT: Span = Span::from_hours(24);
/// RFC 9309, 2.3.1.2: at least five.
const MAX_REDIRECTS: usize = 5;
const MAX_CACHED: usize = 20_000;
/// Bytes of an answer that are stored: what is read, and as much again for the framing of its chunks. The rest is cut.
const MAX_STORED_BYTES: u64 = 2 * MAX_ROBOTS_BYTES as u64;

/// What is known of an origin's robots.txt.
pub struct OriginRobots {
    /// What it allows.
    pub robots: Robots,
    /// Whether it was found, is missing or could not be fetched.
    pub status: RobotsStatus,
    /// Why it could not be fetched.
    pub failure: Option<Failure>,
    fetched_at: Timestamp,
}

/// An origin's robots.txt, and the exchange that brought it if it was fetched now.
pub struct RobotsAnswer {
    /// The robots.txt, parsed.
    pub origin: Arc<OriginRobots>,
    /// The exchange that brought it, for the archive.
    pub exchanged: Option<Exchanged>,
}

/// robots.txt by origin.
#[derive(Default)]
pub struct RobotsCache {
    known: Mutex<HashMap<String, Arc<OriginRobots>>>,
    agent: String,
}

impl RobotsCache {
    /// A cache that reads robots.txt for this User-Agent.
    pub fn new(user_agent: &str) -> RobotsCache {
        RobotsCache { known: Mutex::default(), agent: user_agent.to_string() }
    }

    /// The robots.txt of a URL's origin, fetched if it is not known or older than a day.
    pub async fn get(&self, shared: &Shared, url: &Url, allow_private: bool) -> RobotsAnswer {
        let origin = perennial_core::url::canonical::origin(url);
        let now = shared.clock.now();
        let known = self.known.lock().ok().and_then(|known| known.get(&origin).cloned());
        if let Some(origin) = known.filter(|origin| now - origin.fetched_at < KEPT) {
            return RobotsAnswer { origin, exchanged: None };
        }
        let (fetched, exchanged) = self.fetch(shared, url, allow_private, now).await;
        let fetched = Arc::new(fetched);
        if fetched.status != RobotsStatus::Unreachable
            && let Ok(mut known) = self.known.lock()
        {
            if known.len() >= MAX_CACHED {
                known.clear();
            }
            known.insert(origin, fetched.clone());
        }
        RobotsAnswer { origin: fetched, exchanged }
    }

    async fn fetch(
        &self,
        shared: &Shared,
        url: &Url,
        allow_private: bool,
        now: Timestamp,
    ) -> (OriginRobots, Option<Exchanged>) {
        let Ok(mut at) = url.join("/robots.txt") else {
            return (self.origin(RobotsStatus::Unavailable, b"", None, now), None);
        };
        for _ in 0..=MAX_REDIRECTS {
            let request = Request {
                url: &at,
                fields: &[],
                allow_private: allow_private && at.origin() == url.origin(),
            };
            let mut fetched = match shared.client.fetch_up_to(&request, MAX_STORED_BYTES).await {
                Ok(fetched) => fetched,
                Err(error) => {
                    let why = Failure::of_fetch(&error);
                    return (self.origin(RobotsStatus::Unreachable, b"", Some(why), now), None);
                }
            };
            let target = redirect_target(&at, &fetched);
            match target {
                Some(target) => at = target,
                None => return self.read(&at, &mut fetched, now).map_exchanged(at, fetched, now),
            }
        }
        // Too many redirects count as no robots.txt (RFC 9309, 2.3.1.2).
        (self.origin(RobotsStatus::Unavailable, b"", None, now), None)
    }

    fn read(&self, at: &Url, fetched: &mut Fetched, now: Timestamp) -> OriginRobots {
        let status = RobotsStatus::from_http(Some(fetched.status()));
        match status {
            RobotsStatus::Text => {
                let body = fetched.body.prefix(MAX_STORED_BYTES as usize).unwrap_or_default();
                let limits = Limits { max_bytes: MAX_ROBOTS_BYTES as u64 + 1, ..Limits::default() };
                let decoded = decode(&fetched.head, &*body, limits).bytes;
                self.origin(status, &decoded, None, now)
            }
            RobotsStatus::Unavailable => self.origin(status, b"", None, now),
            RobotsStatus::Unreachable => {
                let detail =
                    format!("{at} answers {}: nothing is fetched until it can be read", fetched.status());
                self.origin(status, b"", Some(Failure::new(FailureKind::RobotsUnreachable, detail)), now)
            }
        }
    }

    fn origin(
        &self,
        status: RobotsStatus,
        text: &[u8],
        failure: Option<Failure>,
        now: Timestamp,
    ) -> OriginRobots {
        let robots = match status {
            RobotsStatus::Text => Robots::parse(text, &self.agent),
            RobotsStatus::Unavailable => Robots::allow_all(),
            RobotsStatus::Unreachable => Robots::disallow_all(),
        };
        OriginRobots { robots, status, failure, fetched_at: now }
    }
}

impl OriginRobots {
    fn map_exchanged(self, at: Url, fetched: Fetched, time: Timestamp) -> (OriginRobots, Option<Exchanged>) {
        let exchanged = Exchanged::new(at.to_string(), time, "P".to_string(), fetched);
        (self, Some(exchanged))
    }
}

fn redirect_target(at: &Url, fetched: &Fetched) -> Option<Url> {
    if !(300..400).contains(&fetched.status()) {
        return None;
    }
    perennial_core::url::canonical::resolve(at, &fetched.head.get("Location")?)
}
