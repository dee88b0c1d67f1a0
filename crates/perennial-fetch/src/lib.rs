//! A URL -> the exact bytes of one HTTP exchange, within limits, from an address that the guard admits.
//!
//! HTTP/1.1 is implemented here, because an archive stores the bytes as they came, also from servers that a strict library
//! refuses (docs/decisions/0005). Redirects, politeness and robots.txt are left to the crawl, which records what it does.
//!
//! | file | what becomes what |
//! |---|---|
//! | `wire` | bytes as they arrive -> head and body framing, no I/O |
//! | `guard` | a host -> addresses that may be connected to |
//! | `spool` | large bodies -> files on the archive's disk, bounded in total |
//! | `connect` | an address -> a byte stream: TCP, TLS, proxy |
//! | `client` | a request -> [`FetchedResponse`], over connections that are reused |

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

/// What to ask for.
#[derive(Clone, Debug)]
pub struct FetchRequest<'a> {
    /// An http or https URL.
    pub url: &'a url::Url,
    /// Further fields, such as If-None-Match.
    pub fields: &'a [(&'a str, String)],
    /// Whether hosts with private or loopback addresses are admitted.
    pub allow_private: bool,
}

/// One exchange, as it went over the wire.
#[derive(Debug)]
pub struct FetchedResponse {
    /// The request as sent.
    pub request_head: Vec<u8>,
    /// The response's head.
    pub head: HttpHead,
    /// The response's body as sent: chunk framing and content coding untouched.
    pub body: FetchedBody,
    /// The server's address; none behind a proxy.
    pub address: Option<SocketAddr>,
    /// Why the body is not whole, if it is not.
    pub truncation: Option<Truncation>,
    /// From the first byte sent to the last received.
    pub took: Duration,
}

impl FetchedResponse {
    /// The status, 0 when the first line has none.
    pub fn status(&self) -> u16 {
        self.head.status().unwrap_or(0)
    }
}

/// A body in memory or, when large, in a file.
#[derive(Debug)]
pub enum FetchedBody {
    /// The bytes.
    Memory(Vec<u8>),
    /// A file without a name and its length.
    Spooled(SpoolFile, u64),
}

impl FetchedBody {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            FetchedBody::Memory(bytes) => bytes.len() as u64,
            FetchedBody::Spooled(_, length) => *length,
        }
    }

    /// Whether there are none.
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

/// Why there is nothing to archive.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address guard refused.
    #[error(
        "{host} is at {address}, a {} address: refused; allow it with --allow-private or `allow_private = true` of its site",
        kind.name()
    )]
    Guarded {
        /// As in the URL.
        host: String,
        /// The first address it has.
        address: std::net::IpAddr,
        /// Why it is refused.
        kind: AddressKind,
    },
    /// The name has no address.
    #[error("{host} cannot be resolved: {reason}")]
    Dns {
        /// As in the URL.
        host: String,
        /// What the resolver says.
        reason: String,
    },
    /// No TCP connection.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The last address tried.
        address: String,
        /// What the system says.
        reason: String,
    },
    /// No TLS session.
    #[error(
        "TLS with {host} failed: {reason}; for an authority of your own set crawl.tls_roots in perennial.toml"
    )]
    Tls {
        /// As in the URL.
        host: String,
        /// What rustls says.
        reason: String,
    },
    /// The proxy refused.
    #[error("the proxy answered: {0}")]
    Proxy(String),
    /// No head in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The connection ended before a head was there.
    #[error("the server closed the connection before it answered{0}")]
    Disconnected(String),
    /// What came is no HTTP.
    #[error("the answer is not HTTP: {0:?}")]
    NotHttp(String),
    /// The head has no end.
    #[error("the response head is larger than {0} bytes")]
    HeadTooLarge(usize),
    /// The local disk failed.
    #[error("cannot store the body: {0}")]
    Local(io::Error),
}

impl FetchError {
    /// Its name in the log.
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
