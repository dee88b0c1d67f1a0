//! A cookie of the reader's browser -> which changes it has shown before. The server keeps nothing of it.

use hyper::http::HeaderValue;
use hyper::http::request::Parts;
use perennial_core::time::{Span, Timestamp};

use super::super::guard::cookie_in;

/// Whoever opens home again within this time still looks for the same time.
const SITTING: Span = Span::from_secs(1_800);
/// How long a browser keeps it, in seconds: a year.
const KEPT_SECS: u32 = 31_536_000;

/// The name of the cookie. A browser brings it to every port of a machine, and each may serve another archive.
fn name(origin: &str) -> String {
    let port = origin.rsplit(':').next().filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("perennial_looked_{}", port.unwrap_or("0"))
}

/// What a browser has shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    /// The latest capture when the reader looked last, before this sitting.
    pub(crate) before: Timestamp,
}

impl Looked {
    /// By the cookie, as of now; `None` where the browser brings none.
    pub(crate) fn of(parts: &Parts, origin: &str, now: Timestamp) -> Option<Looked> {
        let value = cookie_in(parts, &name(origin))?;
        let time = |secs: &str| Some(Timestamp::from_secs(secs.parse::<u32>().ok()?.into()));
        let mut times = value.splitn(3, '.').map(time);
        let (before, seen, at) = (times.next()??, times.next()??, times.next()??);
        Some(Looked { before: if now - at > SITTING { seen } else { before } })
    }

    /// The cookie by which a browser remembers that it has shown what there is now.
    pub(crate) fn cookie(
        known: Option<Looked>,
        last: Timestamp,
        origin: &str,
        base: &str,
        now: Timestamp,
    ) -> Option<HeaderValue> {
        let before = known.map_or(last, |known| known.before);
        let (before, seen, at) = (before.as_secs(), last.as_secs(), now.as_secs());
        let cookie = format!(
            "{}={before}.{seen}.{at}; Path={base}/; Max-Age={KEPT_SECS}; HttpOnly; SameSite=Strict",
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
    fn a_sitting_lasts_and_the_next_one_knows_of_it() {
        let at = |secs: i64| Timestamp::from_secs(secs);
        let origin = "http://127.0.0.1:80";
        let of = |cookie: &str, now: i64| {
            let (parts, ()) = Request::get("/").header("cookie", cookie).body(()).unwrap().into_parts();
            Looked::of(&parts, origin, at(now)).map(|looked| looked.before)
        };
        let set = Looked::cookie(None, at(5_000), origin, "", at(9_000)).unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap();
        assert_eq!(cookie, "perennial_looked_80=5000.5000.9000");
        assert_eq!(of(&format!("a=b; {cookie}"), 9_100), Some(at(5_000)));
        // The same sitting, with newer captures; then the next one.
        assert_eq!(of("perennial_looked_80=5000.6000.9100", 9_200), Some(at(5_000)));
        assert_eq!(of("perennial_looked_80=5000.6000.9100", 99_200), Some(at(6_000)));
        for odd in ["", "=", "=1.2", "=-1.2.3", "=1.2.x"] {
            assert_eq!(of(&format!("perennial_looked_80{odd}"), 9_200), None, "{odd}");
        }
    }
}
