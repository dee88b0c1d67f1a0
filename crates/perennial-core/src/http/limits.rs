//! The limits of one HTTP exchange, and the proxy that it uses.

use std::time::Duration;

use url::Url;

#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// Bytes of a body; the rest is cut, as `Fetched::truncation` reports.
    pub max_body_bytes: u64,
    /// Bytes of a response head.
    pub max_head_bytes: usize,
    /// Time for the DNS lookup, and again for TCP and TLS.
    pub connect_timeout: Duration,
    /// Time until the head is complete.
    pub head_timeout: Duration,
    /// Time for the whole exchange.
    pub total_timeout: Duration,
    /// A body must deliver `min_bytes_per_window` in each window of this length.
    pub drip_window: Duration,
    /// See `drip_window`.
    pub min_bytes_per_window: u64,
    /// Larger bodies are written to a file.
    pub spool_bytes: usize,
    /// Total bytes of these files. A body without room waits for `drip_window` and is then cut.
    pub max_spooled_bytes: u64,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            max_body_bytes: 1 << 30,
            max_head_bytes: 256 << 10,
            connect_timeout: Duration::from_secs(15),
            head_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(1200),
            drip_window: Duration::from_secs(30),
            min_bytes_per_window: 3_000,
            spool_bytes: 8 << 20,
            max_spooled_bytes: 16 << 30,
        }
    }
}

/// An HTTP proxy for all requests, https ones by CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// `host:port`.
    pub authority: String,
}

impl Proxy {
    /// Reads `http://host:port`.
    pub fn parse(text: &str) -> Option<Proxy> {
        let url = Url::parse(text).ok().filter(|url| url.scheme() == "http")?;
        let authority = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
        Some(Proxy { authority })
    }
}
