//! A cookie that remembers which changes the reader has seen. The server stores nothing about readers.

use hyper::http::HeaderValue;
use hyper::http::request::Parts;
use perennial_core::time::{Span, Timestamp};

use super::super::guard::cookies_in;

/// Requests within this time belong to the same session of reading.
const SESSION: Span = Span::from_secs(1_800);
/// A year.
const MAX_AGE_SECS: u32 = 31_536_000;

/// The cookie's name. Browsers send a cookie to all ports of a host, and each port may serve a different archive.
fn name(origin: &str) -> String {
    let port = origin.rsplit(':').next().filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("perennial_looked_{}", port.unwrap_or("0"))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReaderCookie {
    /// The latest capture at the previous session.
    pub(crate) last_seen: Timestamp,
}

impl ReaderCookie {
    pub(crate) fn read(parts: &Parts, origin: &str, now: Timestamp) -> Option<ReaderCookie> {
        let name = name(origin);
        let value = cookies_in(parts, &name).next()?;
        let time = |secs: &str| Some(Timestamp::from_secs(secs.parse::<u32>().ok()?.into()));
        let mut times = value.splitn(3, '.').map(time);
        let (earlier, seen, at) = (times.next()??, times.next()??, times.next()??);
        Some(ReaderCookie { last_seen: if now - at > SESSION { seen } else { earlier } })
    }

    /// The cookie for a response that shows changes up to the latest capture.
    pub(crate) fn next(
        known: Option<ReaderCookie>,
        last: Timestamp,
        origin: &str,
        base: &str,
        now: Timestamp,
    ) -> Option<HeaderValue> {
        let earlier = known.map_or(last, |known| known.last_seen);
        let (earlier, seen, at) = (earlier.as_secs(), last.as_secs(), now.as_secs());
        let cookie = format!(
            "{}={earlier}.{seen}.{at}; Path={base}/; Max-Age={MAX_AGE_SECS}; HttpOnly; SameSite=Strict",
            name(origin)
        );
        HeaderValue::from_str(&cookie).ok()
    }
}

#[cfg(test)]
mod tests {
    use hyper::http::Request;

    use super::*;

    #[test]
    fn the_cookie_changes_with_each_session_of_reading() {
        let at = |secs: i64| Timestamp::from_secs(secs);
        let origin = "http://127.0.0.1:80";
        let last_seen = |cookie: &str, now: i64| {
            let (parts, ()) = Request::get("/").header("cookie", cookie).body(()).unwrap().into_parts();
            ReaderCookie::read(&parts, origin, at(now)).map(|cookie| cookie.last_seen)
        };
        let set = ReaderCookie::next(None, at(5_000), origin, "", at(9_000)).unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap();
        assert_eq!(cookie, "perennial_looked_80=5000.5000.9000");
        assert_eq!(last_seen(&format!("a=b; {cookie}"), 9_100), Some(at(5_000)));
        // The same session with newer captures; then the next session.
        assert_eq!(last_seen("perennial_looked_80=5000.6000.9100", 9_200), Some(at(5_000)));
        assert_eq!(last_seen("perennial_looked_80=5000.6000.9100", 99_200), Some(at(6_000)));
        for odd in ["", "=", "=1.2", "=-1.2.3", "=1.2.x"] {
            assert_eq!(last_seen(&format!("perennial_looked_80{odd}"), 9_200), None, "{odd}");
        }
    }
}
