//! Which requests may change settings, and on whose behalf. Without `--admin` none may.
//!
//! A browser acts in a session, which starts with a key that the server prints once, or with the admin's token. The session cookie alone
//! proves nothing: browsers send it with requests of any page, including archived pages on our second port, because cookies ignore
//! ports. So an action also needs an `Origin` and a `Sec-Fetch-Site` of our own pages, and a form token that only our pages can
//! read (docs/decisions/0048-admin-actions.md).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use hyper::http::StatusCode;
use hyper::http::request::Parts;
use sha2::{Digest, Sha256};

use super::guard;
use super::problem::Problem;

/// A session ends if it is not used for so long.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3600);
/// Sessions at a time; the least recently used one is dropped.
const MAX_SESSIONS: usize = 32;

/// The admin's credentials and sessions.
#[derive(Debug)]
pub struct AdminAuth {
    /// The digest of the admin's token.
    token: Option<[u8; 32]>,
    /// The digest of the key, until it is used.
    key: Mutex<Option<[u8; 32]>>,
    sessions: Mutex<Vec<Session>>,
    /// Contains the port, because cookies ignore ports.
    cookie: String,
    /// The main origin.
    origin: String,
}

#[derive(Debug)]
struct Session {
    digest: [u8; 32],
    used: Instant,
}

impl AdminAuth {
    /// Uses the given token, if any, and makes a key for the first session.
    pub fn new(token: Option<&str>, main_origin: &str) -> anyhow::Result<(AdminAuth, String)> {
        let key = guard::secret()?;
        let port = main_origin.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let admin = AdminAuth {
            token: token.map(guard::digest),
            key: Mutex::new(Some(guard::digest(&key))),
            sessions: Mutex::default(),
            cookie: format!("perennial_admin_{}", port.unwrap_or_default()),
            origin: main_origin.to_string(),
        };
        Ok((admin, key))
    }

    /// Starts a session with the key, which works once, or with the token. Returns the `Set-Cookie` value.
    pub fn log_in(&self, given: &str) -> Result<String, Problem> {
        let digest = guard::digest(given);
        let is_key = {
            let mut key = lock(&self.key);
            let is_key = key.as_ref().is_some_and(|key| guard::is_same(key, &digest));
            if is_key {
                *key = None;
            }
            is_key
        };
        if !is_key && !self.token.as_ref().is_some_and(|token| guard::is_same(token, &digest)) {
            return Err(wrong_key());
        }
        let session = guard::secret().map_err(|error| Problem::internal(&error))?;
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.used.elapsed() < SESSION_LIFE);
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().enumerate().min_by_key(|(_, session)| session.used);
            if let Some((at, _)) = oldest {
                sessions.remove(at);
            }
        }
        sessions.push(Session { digest: guard::digest(&session), used: Instant::now() });
        Ok(guard::set_cookie(&self.origin, &self.cookie, &session, ""))
    }

    /// Ends the session of a request. Returns the `Set-Cookie` value that removes the cookie.
    pub fn log_out(&self, parts: &Parts) -> String {
        if let Some(session) = self.session_in(parts) {
            let digest = guard::digest(&session);
            lock(&self.sessions).retain(|session| !guard::is_same(&session.digest, &digest));
        }
        guard::set_cookie(&self.origin, &self.cookie, "", "; Max-Age=0")
    }

    /// The token of the forms on a page made for this request; `None` if its reader is not logged in.
    pub fn form_token(&self, parts: &Parts) -> Option<String> {
        self.session_in(parts).map(|session| session_form_token(&session))
    }

    /// Whether a request brings the admin's token.
    pub fn has_token(&self, parts: &Parts) -> Result<bool, Problem> {
        let Some(expected) = &self.token else { return Ok(false) };
        let Some(given) = guard::bearer_in(parts) else { return Ok(false) };
        Ok(guard::is_same(expected, &guard::digest(&given)))
    }

    /// Names whoever sent a request that may act, given the token of its form.
    pub fn check(&self, parts: &Parts, form: Option<&str>) -> Result<String, Problem> {
        let is_ours = is_same_origin(parts)?;
        let Some(session) = self.session_in(parts) else {
            let is_admin = self.has_token(parts)?;
            return if is_admin { Ok("admin's token".to_owned()) } else { Err(no_session()) };
        };
        // A browser always names the origin of a form.
        if !is_ours {
            return Err(cross_origin());
        }
        let given = guard::digest(form.unwrap_or_default());
        if !guard::is_same(&guard::digest(&session_form_token(&session)), &given) {
            return Err(Problem {
                status: StatusCode::FORBIDDEN,
                kind: "form",
                title: "Nothing was changed".to_owned(),
                text: "The form belongs to an earlier session. Go back, reload the page and try again."
                    .to_owned(),
            });
        }
        let number = HEXLOWER.encode(&guard::digest(&session)[..3]);
        Ok(format!("dashboard, session {number}"))
    }

    /// The session of a request, if it exists.
    fn session_in(&self, parts: &Parts) -> Option<String> {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.used.elapsed() < SESSION_LIFE);
        guard::cookies_in(parts, &self.cookie).find_map(|given| {
            let digest = guard::digest(given);
            let session = sessions.iter_mut().find(|session| guard::is_same(&session.digest, &digest))?;
            session.used = Instant::now();
            Some(given.to_string())
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session determines the token of its forms, but the token does not reveal the session.
fn session_form_token(session: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(format!("form of {session}")))
}

/// Whether a page of ours made the request; an error if the page of a different origin did. Programs name no origin.
pub fn is_same_origin(parts: &Parts) -> Result<bool, Problem> {
    let field = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = field("host").unwrap_or_default();
    let origin = field("origin").map(|origin| {
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        place.is_some_and(|place| !host.is_empty() && place.eq_ignore_ascii_case(host))
    });
    let site = field("sec-fetch-site").map(|site| site == "same-origin");
    match (origin, site) {
        (Some(false), _) | (_, Some(false)) => Err(cross_origin()),
        (origin, site) => Ok(origin.or(site).unwrap_or_default()),
    }
}

fn cross_origin() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "elsewhere",
        title: "Nothing was changed".to_owned(),
        text:
            "The request was not made by a page of this server. A reverse proxy must pass the Host field on."
                .to_owned(),
    }
}

fn no_session() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "admin",
        title: "Nothing was changed".to_owned(),
        text: "Only an admin can do this. Log in at /login with the key that the server printed or with the admin's token.".to_owned(),
    }
}

fn wrong_key() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "key",
        title: "Wrong key".to_owned(),
        text: "A printed key works once. Restart the server for a new one, or use the token of --admin-file."
            .to_owned(),
    }
}

pub fn read_only() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "only-reads",
        title: "This server is read-only".to_owned(),
        text: "To change settings from its pages, start it with `perennial serve --admin`.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::http::Request;

    fn parts(fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method("POST").uri("/admin");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn cookie(set: &str) -> String {
        set.split(';').next().unwrap().to_owned()
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8080");
    const OURS: (&str, &str) = ("origin", "http://127.0.0.1:8080");

    #[test]
    fn a_key_starts_one_session_and_the_token_any_number() {
        let (admin, key) = AdminAuth::new(Some("0123456789abcdef"), OURS.1).unwrap();
        assert!(admin.log_in("wrong").is_err());
        assert!(admin.log_in(&key).is_ok());
        assert!(admin.log_in(&key).is_err(), "a key is used once");
        assert!(admin.log_in("0123456789abcdef").is_ok());
        assert!(admin.log_in(" 0123456789abcdef\n").is_ok());
        for _ in 0..100 {
            assert_eq!(admin.log_in("wrong").unwrap_err().kind, "key");
        }
        assert!(admin.log_in("0123456789abcdef").is_ok());
    }

    #[test]
    fn a_session_needs_the_origin_and_the_form_token_of_our_pages() {
        let (admin, key) = AdminAuth::new(None, OURS.1).unwrap();
        let set = admin.log_in(&key).unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"));
        let session = cookie(&set);
        let cookie = ("cookie", session.as_str());
        let form = admin.form_token(&parts(&[cookie])).unwrap();
        let kind = |fields: &[(&str, &str)], form: Option<&str>| match admin.check(&parts(fields), form) {
            Ok(who) => who,
            Err(problem) => problem.kind.to_owned(),
        };
        let form = Some(form.as_str());
        assert!(kind(&[HOST, OURS, cookie], form).starts_with("dashboard, session "));
        let fetched = ("sec-fetch-site", "same-origin");
        assert!(kind(&[HOST, fetched, cookie], form).starts_with("dashboard"));
        for (fields, form, expected) in [
            (vec![HOST, OURS], form, "admin"),
            (vec![HOST, OURS, ("cookie", "perennial_admin_8080=00")], form, "admin"),
            (vec![HOST, OURS, cookie], None, "form"),
            (vec![HOST, OURS, cookie], Some("00"), "form"),
            // An archived page on our second port, which the browser calls the same site.
            (vec![HOST, ("origin", "http://127.0.0.1:8081"), cookie], form, "elsewhere"),
            (vec![HOST, OURS, ("sec-fetch-site", "same-site"), cookie], form, "elsewhere"),
            (vec![HOST, OURS, ("sec-fetch-site", "none"), cookie], form, "elsewhere"),
            (vec![HOST, ("origin", "https://evil.example"), cookie], form, "elsewhere"),
            (vec![HOST, ("origin", "null"), cookie], form, "elsewhere"),
            (vec![HOST, cookie], form, "elsewhere"),
            (vec![("host", ""), ("origin", "http://"), cookie], form, "elsewhere"),
        ] {
            assert_eq!(kind(&fields, form), expected, "{fields:?}");
        }
        admin.log_out(&parts(&[cookie]));
        assert_eq!(kind(&[HOST, OURS, cookie], form), "admin");
    }

    #[test]
    fn a_program_needs_the_token_and_our_origin() {
        let (admin, _) = AdminAuth::new(Some("0123456789abcdef"), OURS.1).unwrap();
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(admin.check(&parts(&[HOST, bearer]), None).unwrap(), "admin's token");
        let evil = ("origin", "https://evil.example");
        assert_eq!(admin.check(&parts(&[HOST, bearer, evil]), None).unwrap_err().kind, "elsewhere");
        let wrong = ("authorization", "Bearer x");
        assert_eq!(admin.check(&parts(&[HOST, wrong]), None).unwrap_err().kind, "admin");
    }
}
