//! The address guard: decides which addresses of a host may be connected to.
//!
//! The addresses are checked here, and the connection uses exactly these. A second lookup could return different ones
//! (DNS rebinding).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use perennial_core::http::address::{AddressKind, classify};
use url::{Host, Url};

use super::FetchError;

/// How long a lookup is cached. The system's resolver does not return the TTL.
const KEPT: Duration = Duration::from_secs(300);
const MAX_CACHED: usize = 100_000;

/// Resolves names with the system's resolver and caches the results.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    cache: Mutex<HashMap<String, (Instant, Vec<IpAddr>)>>,
}

impl Resolver {
    /// The admitted addresses of a URL's host: public ones only, unless `allow_private`.
    pub(super) async fn resolve(
        &self,
        url: &Url,
        allow_private: bool,
        timeout: Duration,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        let port = url.port_or_known_default().unwrap_or(80);
        let (name, addresses) = match url.host() {
            Some(Host::Ipv4(address)) => (address.to_string(), vec![IpAddr::V4(address)]),
            Some(Host::Ipv6(address)) => (address.to_string(), vec![IpAddr::V6(address)]),
            Some(Host::Domain(name)) => (name.to_string(), self.lookup(name, timeout).await?),
            None => {
                return Err(FetchError::Dns { host: String::new(), reason: "the URL has no host".into() });
            }
        };
        admit(&name, &addresses, allow_private)?;
        let admitted =
            addresses.into_iter().filter(|&ip| allow_private || classify(ip) == AddressKind::Public);
        Ok(admitted.map(|ip| SocketAddr::new(ip, port)).collect())
    }

    async fn lookup(&self, name: &str, timeout: Duration) -> Result<Vec<IpAddr>, FetchError> {
        // Names below localhost refer to this machine and are not looked up (RFC 6761, 6.3).
        if name.ends_with(".localhost") {
            return Ok(vec![IpAddr::from([127, 0, 0, 1])]);
        }
        if let Some(known) = self.cached(name) {
            return Ok(known);
        }
        let error = |reason: String| FetchError::Dns { host: name.to_string(), reason };
        let found = tokio::time::timeout(timeout, tokio::net::lookup_host((name, 0)))
            .await
            .map_err(|_| error(format!("no response within {timeout:?}")))?
            .map_err(|e| error(e.to_string()))?;
        let mut addresses: Vec<IpAddr> = found.map(|socket| socket.ip()).collect();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(error("it has no address".into()));
        }
        self.remember(name, &addresses);
        Ok(addresses)
    }

    fn cached(&self, name: &str) -> Option<Vec<IpAddr>> {
        let cache = self.cache.lock().ok()?;
        let (at, addresses) = cache.get(name)?;
        (at.elapsed() < KEPT).then(|| addresses.clone())
    }

    fn remember(&self, name: &str, addresses: &[IpAddr]) {
        if let Ok(mut cache) = self.cache.lock() {
            if cache.len() >= MAX_CACHED {
                cache.clear();
            }
            cache.insert(name.to_string(), (Instant::now(), addresses.to_vec()));
        }
    }
}

/// Refuses a host without a public address, unless `allow_private`.
pub(super) fn admit(host: &str, addresses: &[IpAddr], allow_private: bool) -> Result<(), FetchError> {
    let Some(&first) = addresses.first() else { return Ok(()) };
    if allow_private || addresses.iter().any(|&ip| classify(ip) == AddressKind::Public) {
        return Ok(());
    }
    Err(FetchError::Guarded { host: host.to_string(), address: first, kind: classify(first) })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(url: &str, allow_private: bool) -> Result<Vec<SocketAddr>, FetchError> {
        let url = Url::parse(url).unwrap();
        Resolver::default().resolve(&url, allow_private, Duration::from_secs(5)).await
    }

    #[tokio::test]
    async fn literal_addresses_are_guarded_in_every_notation() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://10.0.0.1/",
            "http://100.64.1.1/",
            "http://0.0.0.0/",
            "http://[fd00::1]/",
            "http://[64:ff9b::a00:1]/",
            "http://localhost/",
        ] {
            let error = resolve(url, false).await.unwrap_err();
            assert_eq!(error.kind(), "guarded", "{url}: {error}");
            assert!(error.to_string().contains("--allow-private"));
        }
    }

    #[tokio::test]
    async fn a_user_may_allow_it() {
        assert_eq!(resolve("http://127.0.0.1:81/", true).await.unwrap()[0].to_string(), "127.0.0.1:81");
        assert_eq!(resolve("https://8.8.8.8/", false).await.unwrap()[0].to_string(), "8.8.8.8:443");
    }
}
