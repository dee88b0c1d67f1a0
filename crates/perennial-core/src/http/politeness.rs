//! A host's response, and its duration -> the earliest time of the next request.
//!
//! The state of a host is a small value that the driver stores; time and random numbers are arguments. The defaults
//! follow common practice. The delay is five times the duration of the last fetch, within 3 to 30 s (as in Heritrix),
//! or the site's Crawl-delay up to 300 s. Retry-After is obeyed. After 429, 5xx or no response the pause is 60 s,
//! doubling up to a day, with jitter.

use crate::time::{Span, Timestamp};

/// The delays between fetches of one host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PolitenessConfig {
    /// The delay is this many times the duration of the last fetch.
    pub factor: f64,
    /// Shortest delay.
    pub min_delay: Span,
    /// Longest delay.
    pub max_delay: Span,
    /// The maximum Crawl-delay; a longer one is cut to this.
    pub max_crawl_delay: Span,
    /// The first pause after the host was overloaded or did not respond.
    pub first_backoff: Span,
    pub max_backoff: Span,
}

impl Default for PolitenessConfig {
    fn default() -> PolitenessConfig {
        PolitenessConfig {
            factor: 5.0,
            min_delay: Span::from_secs(3),
            max_delay: Span::from_secs(30),
            max_crawl_delay: Span::from_secs(300),
            first_backoff: Span::from_secs(60),
            max_backoff: Span::from_hours(24),
        }
    }
}

impl PolitenessConfig {
    /// A fixed delay after every fetch, for the user's own hosts.
    pub fn with_fixed_delay(self, delay: Span) -> PolitenessConfig {
        PolitenessConfig { factor: 0.0, min_delay: delay, max_delay: delay, ..self }
    }
}

/// How a host handled a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum HostResponse {
    /// It responded, if only with a 404.
    Served,
    /// It responded with 429 or 5xx, perhaps with a pause.
    Overloaded {
        /// From Retry-After.
        retry_after: Option<Span>,
    },
    /// There was no connection, no response, or an incomplete response.
    Silent,
}

/// The state of a host between fetches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostState {
    /// No request before this instant.
    pub ready_at: Timestamp,
    /// Overloaded or missing responses in a row.
    pub n_troubles: u16,
}

impl Default for HostState {
    fn default() -> HostState {
        HostState { ready_at: Timestamp::from_millis(i64::MIN / 4), n_troubles: 0 }
    }
}

impl HostState {
    /// Records a fetch that ended at `now` after `took`. `chance` in [0, 1) sets the jitter.
    pub fn record(
        &mut self,
        config: &PolitenessConfig,
        crawl_delay_secs: Option<f64>,
        response: HostResponse,
        took: Span,
        now: Timestamp,
        jitter: f64,
    ) {
        let usual = usual_delay(config, crawl_delay_secs, took);
        let pause = match response {
            HostResponse::Served => {
                self.n_troubles = 0;
                usual
            }
            HostResponse::Overloaded { retry_after } => {
                self.n_troubles = self.n_troubles.saturating_add(1);
                match retry_after {
                    Some(requested) => requested.clamp(usual, config.max_backoff.max(usual)),
                    None => backoff(config, self.n_troubles, jitter).max(usual),
                }
            }
            HostResponse::Silent => {
                self.n_troubles = self.n_troubles.saturating_add(1);
                backoff(config, self.n_troubles, jitter).max(usual)
            }
        };
        self.ready_at = now + pause;
    }
}

fn usual_delay(config: &PolitenessConfig, crawl_delay_secs: Option<f64>, took: Span) -> Span {
    if let Some(secs) = crawl_delay_secs.filter(|_| config.max_delay > Span::ZERO) {
        let requested = Span::from_millis((secs * 1000.0).min(1e15) as i64);
        return requested.clamp(Span::ZERO, config.max_crawl_delay).max(config.min_delay.min(requested));
    }
    let scaled = Span::from_millis((took.as_millis() as f64 * config.factor).clamp(0.0, 1e15) as i64);
    scaled.clamp(config.min_delay, config.max_delay.max(config.min_delay))
}

/// The pause, which doubles with every failure. The jitter keeps many crawlers from returning together.
fn backoff(config: &PolitenessConfig, n_troubles: u16, jitter: f64) -> Span {
    let doublings = n_troubles.saturating_sub(1).min(24);
    let full = config.first_backoff.as_millis().saturating_mul(1 << doublings);
    let capped = full.min(config.max_backoff.as_millis()) as f64;
    let jitter = 0.5 + 0.5 * jitter.clamp(0.0, 1.0);
    Span::from_millis((capped * jitter) as i64)
}

/// Parses Retry-After: seconds, or an HTTP date relative to `now` (RFC 9110, 10.2.3).
pub fn parse_retry_after(value: &str, now: Timestamp) -> Option<Span> {
    let value = value.trim();
    if let Ok(secs) = value.parse::<u64>() {
        return Some(Span::from_secs(secs.min(10 * 365 * 86_400) as i64));
    }
    let at = parse_http_date(value)?;
    Some((at - now).max(Span::ZERO))
}

/// Parses an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_http_date(value: &str) -> Option<Timestamp> {
    let value = value.trim();
    let zoned =
        jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(value).ok()?;
    Some(Timestamp::from_millis(zoned.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pause(crawl_delay_secs: Option<f64>, response: HostResponse, took_secs: i64) -> f64 {
        let mut state = HostState::default();
        let now = Timestamp::from_secs(1_000_000);
        let config = PolitenessConfig::default();
        state.record(&config, crawl_delay_secs, response, Span::from_secs(took_secs), now, 1.0);
        (state.ready_at - now).as_secs_f64()
    }

    #[test]
    fn the_delay_follows_the_fetch_within_bounds() {
        assert_eq!(pause(None, HostResponse::Served, 0), 3.0);
        assert_eq!(pause(None, HostResponse::Served, 2), 10.0);
        assert_eq!(pause(None, HostResponse::Served, 60), 30.0);
    }

    #[test]
    fn the_site_may_request_its_own_delay() {
        assert_eq!(pause(Some(17.0), HostResponse::Served, 0), 17.0);
        assert_eq!(pause(Some(1e9), HostResponse::Served, 0), 300.0);
        assert_eq!(pause(Some(1.0), HostResponse::Served, 20), 1.0);
    }

    #[test]
    fn retry_after_is_obeyed_and_bounded() {
        let requested = |secs| HostResponse::Overloaded { retry_after: Some(Span::from_secs(secs)) };
        assert_eq!(pause(None, requested(120), 0), 120.0);
        assert_eq!(pause(None, requested(0), 0), 3.0);
        assert_eq!(pause(None, requested(100 * 86_400), 0), 86_400.0);
    }

    #[test]
    fn trouble_doubles_to_a_day_and_is_forgotten() {
        let config = PolitenessConfig::default();
        let mut state = HostState::default();
        let mut pauses = Vec::new();
        for _ in 0..20 {
            let now = Timestamp::from_secs(5);
            state.record(&config, None, HostResponse::Silent, Span::ZERO, now, 1.0);
            pauses.push((state.ready_at - now).as_secs_f64());
        }
        assert_eq!(&pauses[..4], [60.0, 120.0, 240.0, 480.0]);
        assert_eq!(pauses[19], 86_400.0);
        state.record(&config, None, HostResponse::Served, Span::ZERO, Timestamp::from_secs(9), 1.0);
        assert_eq!(state.n_troubles, 0);
    }

    #[test]
    fn retry_after_in_both_forms() {
        let now = Timestamp::parse("1994-11-06T08:49:00Z").unwrap();
        assert_eq!(parse_retry_after("37", now), Some(Span::from_secs(37)));
        assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Span::from_secs(37)));
        assert_eq!(parse_retry_after("Sun, 06 Nov 1984 08:49:37 GMT", now), Some(Span::ZERO));
        assert_eq!(parse_retry_after("soon", now), None);
        assert!(parse_retry_after("99999999999999999999", now).is_none());
    }

    proptest! {
        #[test]
        fn a_pause_is_never_negative_nor_beyond_its_bounds(
            took in 0i64..1_000_000, delay in proptest::option::of(0.0f64..1e12), jitter in 0.0f64..1.0,
            kinds in proptest::collection::vec((0u8..4, 0i64..10_000_000), 1..30),
        ) {
            let config = PolitenessConfig::default();
            let mut state = HostState::default();
            let now = Timestamp::from_secs(0);
            for (kind, secs) in kinds {
                let response = match kind {
                    0 => HostResponse::Served,
                    1 => HostResponse::Overloaded { retry_after: None },
                    2 => HostResponse::Overloaded { retry_after: Some(Span::from_secs(secs)) },
                    _ => HostResponse::Silent,
                };
                state.record(&config, delay, response, Span::from_millis(took), now, jitter);
                let pause = state.ready_at - now;
                prop_assert!(pause >= Span::ZERO && pause <= config.max_backoff, "{:?}", pause);
            }
        }
    }
}
