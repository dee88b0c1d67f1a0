//! Fetches the exact bytes of one HTTP exchange, within limits, from an admitted address.
//!
//! HTTP/1.1 is implemented here for two reasons: an archive stores the bytes as received, and strict libraries refuse
//! some servers (docs/decisions/0005). The crawler handles redirects, politeness and robots.txt, because it records
//! them.
//!
//! | module | purpose |
//! |---|---|
//! | `wire` | finds the end of the head and of the body in received bytes, without I/O |
//! | `guard` | decides which addresses may be connected to |
//! | `spool` | stores large bodies on the archive's disk, bounded in total |
//! | `connect` | opens byte streams: TCP, TLS, proxy |
//! | `client` | makes a [`FetchedResponse`], reusing connections |

mod client;
mod connect;
mod guard;
mod spool;
mod wire;

pub use client::Client;
pub use spool::SpoolFile;
pub use wire::Framing;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use perennial_core::http::address::AddressKind;
pub use perennial_core::http::limits::{FetchLimits, Proxy};
use perennial_warc::Truncation;
use perennial_warc::http::HttpHead;

#[derive(Clone, Debug)]
pub struct FetchRequest<'a> {
    /// An http or https URL.
    pub url: &'a url::Url,
    /// Additional fields, such as If-None-Match.
    pub fields: &'a [(&'a str, String)],
    /// Fields that are sent but not recorded, such as the cookie of a login.
    pub secrets: &'a [(String, String)],
    /// Method and body; `None` for GET.
    pub body: Option<RequestBody<'a>>,
    /// Whether private and loopback addresses are admitted.
    pub allow_private: bool,
}

/// The method of a request, and its body.
#[derive(Clone, Copy, Debug)]
pub struct RequestBody<'a> {
    pub method: &'a str,
    pub bytes: &'a [u8],
}

impl<'a> FetchRequest<'a> {
    /// A GET without secrets.
    pub fn get(url: &'a url::Url, fields: &'a [(&'a str, String)], allow_private: bool) -> FetchRequest<'a> {
        FetchRequest { url, fields, secrets: &[], body: None, allow_private }
    }
}

/// One exchange, as sent and received.
#[derive(Debug)]
pub struct FetchedResponse {
    /// The head of the request without its secrets.
    pub request_head: Vec<u8>,
    pub request_body: Vec<u8>,
    pub head: HttpHead,
    /// The body as received, with chunk framing and content coding.
    pub body: FetchedBody,
    /// The server's address; none behind a proxy.
    pub address: Option<SocketAddr>,
    /// Why the body is incomplete, if so.
    pub truncation: Option<Truncation>,
    /// Time from the first byte sent to the last byte received.
    pub took: Duration,
}

impl FetchedResponse {
    /// The status; 0 if the first line has none.
    pub fn status(&self) -> u16 {
        self.head.status().unwrap_or(0)
    }
}

/// A body in memory or, if large, in a file.
#[derive(Debug)]
pub enum FetchedBody {
    Memory(Vec<u8>),
    /// An unnamed file and its length.
    Spooled(SpoolFile, u64),
}

impl FetchedBody {
    pub fn len(&self) -> u64 {
        match self {
            FetchedBody::Memory(bytes) => bytes.len() as u64,
            FetchedBody::Spooled(_, length) => *length,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `max` bytes.
    pub fn prefix(&mut self, max: usize) -> io::Result<std::borrow::Cow<'_, [u8]>> {
        match self {
            FetchedBody::Memory(bytes) => Ok(std::borrow::Cow::Borrowed(&bytes[..bytes.len().min(max)])),
            FetchedBody::Spooled(file, _) => Ok(std::borrow::Cow::Owned(file.prefix(max)?)),
        }
    }
}

/// Where a host is. An address says that itself.
fn place(host: &str, address: std::net::IpAddr) -> String {
    let is_address = host.trim_matches(['[', ']']) == address.to_string();
    if is_address { host.to_owned() } else { format!("{host} is at {address}") }
}

/// Why there is nothing to archive.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address guard refused the host.
    #[error(
        "{}, a {} address: refused; allow it with --allow-private or `allow_private = true` of its site",
        place(host, *address),
        kind.name()
    )]
    Guarded {
        host: String,
        /// Its first address.
        address: std::net::IpAddr,
        kind: AddressKind,
    },
    /// The name has no address.
    #[error("{host} cannot be resolved: {reason}; check its spelling and this machine's network")]
    Dns { host: String, reason: String },
    #[error("cannot connect to {address}: {reason}; check the port and this machine's network")]
    Connect {
        /// The last address tried.
        address: String,
        reason: String,
    },
    #[error(
        "TLS with {host} failed: {reason}; for a private certificate authority set crawl.tls_roots in perennial.toml"
    )]
    Tls { host: String, reason: String },
    #[error("the proxy responded: {0}")]
    Proxy(String),
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// The connection ended before the head was complete.
    #[error("the server closed the connection without a response{0}")]
    Disconnected(String),
    #[error("the response is not HTTP: {0:?}")]
    NotHttp(String),
    #[error("the response head is larger than {0} bytes")]
    HeadTooLarge(usize),
    #[error("cannot store the body: {0}")]
    Local(io::Error),
}

impl FetchError {
    /// The name in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            FetchError::Guarded { .. } => "guarded",
            FetchError::Dns { .. } => "dns",
            FetchError::Connect { .. } => "connect",
            FetchError::Tls { .. } => "tls",
            FetchError::Proxy(_) => "proxy",
            FetchError::Timeout(_) => "timeout",
            FetchError::Disconnected(_) => "disconnected",
            FetchError::NotHttp(_) => "not-http",
            FetchError::HeadTooLarge(_) => "head-too-large",
            FetchError::Local(_) => "local",
        }
    }
}
