//! A request -> whether it may act, and who acts. Without `--operate` nobody may.
//!
//! A browser acts in a session, which begins with a key that the server prints once or with the operator's token. The cookie of a session
//! is sent by whatever page makes the browser ask, archived pages on the port beside us too: to a cookie all ports of a host are one
//! site. So an act needs three things more: an `Origin` and a `Sec-Fetch-Site` that say that the form stands on a page of ours, and
//! the form's own token, which only a page of ours can have read (docs/decisions/0048-admin-actions.md).

use std::fs;
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use data_encoding::HEXLOWER;
use hyper::http::StatusCode;
use hyper::http::request::Parts;
use sha2::{Digest, Sha256};

use super::guard::{self, Tries};
use super::problem::Problem;

/// A session that nobody uses for so long ends.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3600);
/// Sessions at a time; the one that was not used for longest ends.
const MAX_SESSIONS: usize = 32;
/// Random bytes of keys and sessions.
const SECRET_BYTES: usize = 24;

/// Who may act.
#[derive(Debug)]
pub struct AdminAuth {
    /// The digest of the operator's token, if there is one.
    token: Option<[u8; 32]>,
    /// The digest of the key that begins one session.
    key: Mutex<Option<[u8; 32]>>,
    sessions: Mutex<Vec<Session>>,
    tries: Tries,
    /// The cookie's name. To cookies all ports of a host are one, so it has the port.
    cookie: String,
}

#[derive(Debug)]
struct Session {
    digest: [u8; 32],
    used: Instant,
}

impl AdminAuth {
    /// An operator with the token of a file, if one is given, and a key for the first session.
    pub fn new(token: Option<&str>, port: u16) -> anyhow::Result<(AdminAuth, String)> {
        let key = secret()?;
        let operator = AdminAuth {
            token: token.map(guard::digest_of),
            key: Mutex::new(Some(guard::digest_of(&key))),
            sessions: Mutex::default(),
            tries: Tries::default(),
            cookie: format!("perennial_operator_{port}"),
        };
        Ok((operator, key))
    }

    /// Begins a session with the key, which then is of no more use, or with the token. Gives the field that sets the cookie.
    pub fn log_in(&self, given: &str) -> Result<String, Problem> {
        self.tries.open()?;
        let digest = guard::digest_of(given);
        let is_key = {
            let mut key = lock(&self.key);
            let is_key = key.as_ref().is_some_and(|key| guard::is_same(key, &digest));
            if is_key {
                *key = None;
            }
            is_key
        };
        if !is_key && !self.token.as_ref().is_some_and(|token| guard::is_same(token, &digest)) {
            self.tries.fail();
            return Err(wrong_key());
        }
        let session = secret().map_err(|error| Problem::internal(&error))?;
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.used.elapsed() < SESSION_LIFE);
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().enumerate().min_by_key(|(_, session)| session.used);
            if let Some((at, _)) = oldest {
                sessions.remove(at);
            }
        }
        sessions.push(Session { digest: guard::digest_of(&session), used: Instant::now() });
        Ok(format!("{}={session}; Path=/; HttpOnly; SameSite=Strict", self.cookie))
    }

    /// Ends the session of a request. Gives the field that takes the cookie back.
    pub fn log_out(&self, parts: &Parts) -> String {
        if let Some(session) = self.session_in(parts) {
            let digest = guard::digest_of(&session);
            lock(&self.sessions).retain(|session| !guard::is_same(&session.digest, &digest));
        }
        format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", self.cookie)
    }

    /// The token of the forms on a page that is made for this request; `None` where its reader may not act.
    pub fn form_of(&self, parts: &Parts) -> Option<String> {
        self.session_in(parts).map(|session| form_token(&session))
    }

    /// Whether a request brings the operator's token.
    pub fn has_token(&self, parts: &Parts) -> Result<bool, Problem> {
        let Some(expected) = &self.token else { return Ok(false) };
        let Some(given) = guard::bearer_in(parts) else { return Ok(false) };
        self.tries.open()?;
        let is_same = guard::is_same(expected, &guard::digest_of(&given));
        if !is_same {
            self.tries.fail();
        }
        Ok(is_same)
    }

    /// Who acts by a request, with the token that its form has; or why nobody may.
    pub fn check(&self, parts: &Parts, form: Option<&str>) -> Result<String, Problem> {
        let is_ours = comes_from_us(parts)?;
        let Some(session) = self.session_in(parts) else {
            let is_operator = self.has_token(parts)?;
            return if is_operator { Ok("operator's token".to_owned()) } else { Err(no_session()) };
        };
        // A browser always says where a form stands.
        if !is_ours {
            return Err(elsewhere());
        }
        let given = guard::digest_of(form.unwrap_or_default());
        if !guard::is_same(&guard::digest_of(&form_token(&session)), &given) {
            return Err(Problem {
                status: StatusCode::FORBIDDEN,
                kind: "form",
                title: "Nothing was done".to_owned(),
                text: "The form is of another session. Go back, reload the page, and do it again.".to_owned(),
            });
        }
        let number = HEXLOWER.encode(&guard::digest_of(&session)[..3]);
        Ok(format!("dashboard, session {number}"))
    }

    /// The session of a request, if it is one of ours.
    fn session_in(&self, parts: &Parts) -> Option<String> {
        let given = guard::cookie_in(parts, &self.cookie)?;
        let digest = guard::digest_of(&given);
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.used.elapsed() < SESSION_LIFE);
        let session = sessions.iter_mut().find(|session| guard::is_same(&session.digest, &digest))?;
        session.used = Instant::now();
        Some(given)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn secret() -> anyhow::Result<String> {
    let mut random = [0; SECRET_BYTES];
    let read = fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random));
    read.context("no random numbers can be had")?;
    Ok(HEXLOWER.encode(&random))
}

/// Who knows a session knows this; who knows this does not know the session.
fn form_token(session: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(format!("form of {session}")))
}

/// Whether a page of ours made the request; an error where another one did. A program says neither.
pub fn comes_from_us(parts: &Parts) -> Result<bool, Problem> {
    let field = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = field("host").unwrap_or_default();
    let origin = field("origin").map(|origin| {
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        place.is_some_and(|place| !host.is_empty() && place.eq_ignore_ascii_case(host))
    });
    let site = field("sec-fetch-site").map(|site| site == "same-origin");
    match (origin, site) {
        (Some(false), _) | (_, Some(false)) => Err(elsewhere()),
        (origin, site) => Ok(origin.or(site).unwrap_or_default()),
    }
}

fn elsewhere() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "elsewhere",
        title: "Nothing was done".to_owned(),
        text: "The request was not made by a page of this server. Where a proxy stands before it, the proxy must pass Host on.".to_owned(),
    }
}

fn no_session() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "operator",
        title: "Nothing was done".to_owned(),
        text: "Only an operator may act here. Log in at /login with the key that the server printed or with the operator's token.".to_owned(),
    }
}

fn wrong_key() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "key",
        title: "That is no key of this server".to_owned(),
        text: "A printed key is good for one session. Start the server again for another, or use the token of --operator-file.".to_owned(),
    }
}

/// Nobody may act.
pub fn only_reads() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        kind: "only-reads",
        title: "This server only reads".to_owned(),
        text: "To change what is followed from its pages, start it with `perennial serve --operate`."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::http::Request;

    fn parts(fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method("POST").uri("/operate");
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
    fn a_key_begins_one_session_and_the_token_any_number() {
        let (operator, key) = AdminAuth::new(Some("0123456789abcdef"), 8080).unwrap();
        assert!(operator.log_in("wrong").is_err());
        assert!(operator.log_in(&key).is_ok());
        assert!(operator.log_in(&key).is_err(), "a key is used once");
        assert!(operator.log_in("0123456789abcdef").is_ok());
        assert!(operator.log_in(" 0123456789abcdef\n").is_ok());
        for _ in 0..20 {
            let _ = operator.log_in("wrong");
        }
        assert_eq!(operator.log_in("0123456789abcdef").unwrap_err().kind, "tries");
    }

    #[test]
    fn a_session_acts_from_pages_of_ours_with_their_form_only() {
        let (operator, key) = AdminAuth::new(None, 8080).unwrap();
        let set = operator.log_in(&key).unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"));
        let session = cookie(&set);
        let cookie = ("cookie", session.as_str());
        let form = operator.form_of(&parts(&[cookie])).unwrap();
        let kind = |fields: &[(&str, &str)], form: Option<&str>| match operator.check(&parts(fields), form) {
            Ok(who) => who,
            Err(problem) => problem.kind.to_owned(),
        };
        let form = Some(form.as_str());
        assert!(kind(&[HOST, OURS, cookie], form).starts_with("dashboard, session "));
        let fetched = ("sec-fetch-site", "same-origin");
        assert!(kind(&[HOST, fetched, cookie], form).starts_with("dashboard"));
        for (fields, form, expected) in [
            (vec![HOST, OURS], form, "operator"),
            (vec![HOST, OURS, ("cookie", "perennial_operator_8080=00")], form, "operator"),
            (vec![HOST, OURS, cookie], None, "form"),
            (vec![HOST, OURS, cookie], Some("00"), "form"),
            // An archived page on the port beside us, which the browser calls the same site.
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
        operator.log_out(&parts(&[cookie]));
        assert_eq!(kind(&[HOST, OURS, cookie], form), "operator");
    }

    #[test]
    fn a_program_acts_with_the_token_and_no_page_can_make_it() {
        let (operator, _) = AdminAuth::new(Some("0123456789abcdef"), 8080).unwrap();
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(operator.check(&parts(&[HOST, bearer]), None).unwrap(), "operator's token");
        let evil = ("origin", "https://evil.example");
        assert_eq!(operator.check(&parts(&[HOST, bearer, evil]), None).unwrap_err().kind, "elsewhere");
        let wrong = ("authorization", "Bearer x");
        assert_eq!(operator.check(&parts(&[HOST, wrong]), None).unwrap_err().kind, "operator");
    }
}
