//! The two origins, as a client reaches them.
//!
//! Browsers send the cookies of a host to all its ports, so an archived page on a different port of our host could set cookies for the
//! dashboard. On loopback the replay origin therefore has a different host name: `localhost` beside `127.0.0.1`, and the reverse.

use std::net::{IpAddr, SocketAddr};

use perennial_core::url::canonical::host_name;

use super::Origin;

/// The two origins, such as `http://127.0.0.1:8080` and `http://localhost:8081`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origins {
    pub main: String,
    pub replay: String,
}

impl Origins {
    /// The origins of two listeners.
    pub fn of_listeners(main: SocketAddr, replay: SocketAddr) -> Origins {
        let name = match main.ip() == replay.ip() && is_usual_loopback(main.ip()) {
            true => beside(&url_host(main.ip())).to_string(),
            false => url_host(replay.ip()),
        };
        Origins { main: format!("http://{main}"), replay: format!("http://{name}:{}", replay.port()) }
    }

    /// The origins with the host name that a client uses, if both listen on the same address.
    pub fn for_client(&self, at: Origin, host: &str) -> Origins {
        let host = without_port(host).to_ascii_lowercase();
        let (Some(main), Some(replay)) = (host_name(&self.main), host_name(&self.replay)) else {
            return self.clone();
        };
        let is_shared = main == replay || is_loopback_name(main) && replay == beside(main);
        if host.is_empty() || !is_shared {
            return self.clone();
        }
        let (client_main, client_replay) = match at {
            _ if !is_loopback_name(&host) => (host.as_str(), host.as_str()),
            Origin::Main => (host.as_str(), beside(&host)),
            Origin::Replay if host == "localhost" && is_loopback_name(main) && !main.starts_with('[') => {
                (main, host.as_str())
            }
            Origin::Replay => (beside(&host), host.as_str()),
        };
        Origins {
            main: self.main.replacen(main, client_main, 1),
            replay: self.replay.replacen(replay, client_replay, 1),
        }
    }
}

/// The name of loopback next to a name.
fn beside(name: &str) -> &'static str {
    if name == "localhost" { "127.0.0.1" } else { "localhost" }
}

/// The addresses that `localhost` resolves to.
pub fn is_usual_loopback(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets() == [127, 0, 0, 1])
        || matches!(ip, IpAddr::V6(ip) if ip.is_loopback())
}

pub fn is_loopback_name(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || ip.parse::<IpAddr>().is_ok_and(is_usual_loopback)
}

/// An address as URLs write it.
pub fn url_host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// `127.0.0.1:8080` -> `127.0.0.1`; `[::1]:8080` -> `[::1]`.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(main: &str, replay: &str) -> Origins {
        Origins::of_listeners(main.parse().unwrap(), replay.parse().unwrap())
    }

    fn seen(origins: &Origins, at: Origin, host: &str) -> [String; 2] {
        let seen = origins.for_client(at, host);
        [seen.main, seen.replay].map(|origin| origin.trim_start_matches("http://").to_string())
    }

    #[test]
    fn archived_content_has_another_host_name_on_loopback() {
        let origins = listening("127.0.0.1:80", "127.0.0.1:81");
        for (at, host, main, replay) in [
            (Origin::Main, "127.0.0.1:80", "127.0.0.1:80", "localhost:81"),
            (Origin::Main, "LOCALHOST:80", "localhost:80", "127.0.0.1:81"),
            (Origin::Main, "[::1]:80", "[::1]:80", "localhost:81"),
            (Origin::Replay, "localhost:81", "127.0.0.1:80", "localhost:81"),
            (Origin::Replay, "127.0.0.1:81", "localhost:80", "127.0.0.1:81"),
            (Origin::Main, "", "127.0.0.1:80", "localhost:81"),
            // A name that the user allowed, for example of a proxy.
            (Origin::Main, "archive.example", "archive.example:80", "archive.example:81"),
            (Origin::Replay, "archive.example:81", "archive.example:80", "archive.example:81"),
        ] {
            assert_eq!(seen(&origins, at, host), [main, replay], "{at:?} {host}");
        }
        let six = listening("[::1]:80", "[::1]:81");
        assert_eq!(six.replay, "http://localhost:81");
        assert_eq!(seen(&six, Origin::Main, "localhost:80"), ["localhost:80", "127.0.0.1:81"]);
        assert_eq!(seen(&six, Origin::Replay, "127.0.0.1:81"), ["localhost:80", "127.0.0.1:81"]);
        let open = listening("0.0.0.0:80", "0.0.0.0:81");
        assert_eq!(seen(&open, Origin::Main, "192.168.0.7:80"), ["192.168.0.7:80", "192.168.0.7:81"]);
        assert_eq!(seen(&open, Origin::Main, "127.0.0.1:80"), ["127.0.0.1:80", "localhost:81"]);
        assert_eq!(seen(&open, Origin::Replay, "localhost:81"), ["127.0.0.1:80", "localhost:81"]);
        let two = listening("127.0.0.1:80", "127.0.0.2:80");
        assert_eq!(seen(&two, Origin::Main, "127.0.0.1:80"), ["127.0.0.1:80", "127.0.0.2:80"]);
    }

    #[test]
    fn a_port_ends_a_host() {
        for (host, name) in
            [("a:1", "a"), ("[::1]:8080", "[::1]"), ("[::1]", "[::1]"), ("a", "a"), ("a:x", "a:x")]
        {
            assert_eq!(without_port(host), name);
        }
    }
}
