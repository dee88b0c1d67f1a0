//! Which requests are answered at all.
//!
//! Any web page can make a browser send requests to this server, and with DNS rebinding under a host name of the page's own. So `Host` must
//! be a name of ours. Clients on other machines also need a token, unless the user declared the archive public.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use data_encoding::{BASE64, HEXLOWER};
use hyper::http::request::Parts;
use hyper::http::{StatusCode, header};
use sha2::{Digest, Sha256};

use super::problem::Problem;

pub const COOKIE: &str = "perennial_token";

/// Wrong tokens per window, from all clients together, before all tokens are refused.
const MAX_FAILURES: u32 = 10;

const WINDOW: Duration = Duration::from_secs(60);

const TOKEN_BYTES: usize = 24;

#[derive(Debug)]
pub struct Guard {
    /// Accepted names in `Host`; `None`: any.
    hosts: Option<BTreeSet<String>>,
    /// The token's digest; `None`: no token is needed.
    token: Option<[u8; 32]>,
    failed_attempts: FailedAttempts,
}

/// Counts wrong tokens in the current window.
#[derive(Debug)]
pub struct FailedAttempts(Mutex<(Instant, u32)>);

impl Default for FailedAttempts {
    fn default() -> FailedAttempts {
        FailedAttempts(Mutex::new((Instant::now(), 0)))
    }
}

impl FailedAttempts {
    /// Refuses further tokens after too many wrong ones.
    pub fn check_limit(&self) -> Result<(), Problem> {
        let mut failed_attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failed_attempts.0.elapsed() > WINDOW {
            *failed_attempts = (Instant::now(), 0);
        }
        if failed_attempts.1 < MAX_FAILURES {
            return Ok(());
        }
        Err(Problem {
            status: StatusCode::TOO_MANY_REQUESTS,
            kind: "tries",
            title: "Too many wrong tokens".to_string(),
            text: "Wait a minute, then try again.".to_string(),
        })
    }

    pub fn record(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 += 1;
    }
}

impl Guard {
    /// Accepts the names of loopback, the listening addresses and the allowed names.
    pub fn new(listening: &[IpAddr], allowed: &[String], token: Option<&str>, is_public: bool) -> Guard {
        let ours = ["localhost", "127.0.0.1", "[::1]"].into_iter().map(str::to_string);
        let addresses = listening.iter().map(|ip| match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
        let hosts =
            ours.chain(addresses).chain(allowed.iter().map(|host| host.to_ascii_lowercase())).collect();
        // With a token, or in public, a name protects nothing.
        let any_host = allowed.is_empty() && (is_public || token.is_some());
        Guard {
            hosts: (!any_host).then_some(hosts),
            token: token.map(digest),
            failed_attempts: FailedAttempts::default(),
        }
    }

    /// Checks the host name and the token.
    pub fn check(&self, parts: &Parts) -> Result<(), Problem> {
        self.check_host(parts)?;
        let Some(expected) = &self.token else { return Ok(()) };
        let given = token_in(parts).ok_or_else(no_token)?;
        self.check_token(expected, &given)
    }

    /// Whether the token is right; for the page that sets the cookie.
    pub fn accepts(&self, token: &str) -> Result<(), Problem> {
        match &self.token {
            Some(expected) => self.check_token(expected, token),
            None => Ok(()),
        }
    }

    pub fn check_host(&self, parts: &Parts) -> Result<(), Problem> {
        if parts.headers.get_all(header::HOST).iter().count() > 1 {
            return Err(Problem::bad_request("The request names two hosts."));
        }
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let said = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let said =
            said.or_else(|| parts.uri.authority().map(|authority| authority.as_str())).unwrap_or_default();
        match hosts.contains(&without_port(said).to_ascii_lowercase()) {
            true => Ok(()),
            false => Err(Problem {
                status: StatusCode::MISDIRECTED_REQUEST,
                kind: "host",
                title: "Not a name of this server".to_string(),
                text: format!(
                    "The request is for {said}. If that is a name of this server, start it with --allow-host {said}."
                ),
            }),
        }
    }

    fn check_token(&self, expected: &[u8; 32], given: &str) -> Result<(), Problem> {
        self.failed_attempts.check_limit()?;
        if is_same(&digest(given), expected) {
            return Ok(());
        }
        self.failed_attempts.record();
        Err(no_token())
    }
}

fn no_token() -> Problem {
    Problem {
        status: StatusCode::UNAUTHORIZED,
        kind: "token",
        title: "This archive needs a token".to_string(),
        text: "The server's token file contains it. Open /login?token=<token>, or send it as a bearer token."
            .to_string(),
    }
}

/// Compares two digests in constant time, so that the time reveals nothing about the token.
pub fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.trim().as_bytes()).into()
}

/// `127.0.0.1:8080` -> `127.0.0.1`; `[::1]:8080` -> `[::1]`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// The token of a request: a bearer token, the password of basic authentication, or the cookie.
fn token_in(parts: &Parts) -> Option<String> {
    match parts.headers.contains_key(header::AUTHORIZATION) {
        true => bearer_in(parts),
        false => cookie_in(parts, COOKIE),
    }
}

/// The token in the `Authorization` field.
pub fn bearer_in(parts: &Parts) -> Option<String> {
    let (scheme, value) = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(value.trim().to_string()),
        "basic" => {
            let pair = String::from_utf8(BASE64.decode(value.trim().as_bytes()).ok()?).ok()?;
            pair.split_once(':').map(|(_, password)| password.to_string())
        }
        _ => None,
    }
}

pub fn cookie_in(parts: &Parts, name: &str) -> Option<String> {
    let cookies = parts.headers.get(header::COOKIE)?.to_str().ok()?.split(';');
    let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
    pairs.find(|pair| pair.0 == name).map(|pair| pair.1.to_string())
}

/// The token in a file, which is created if missing and readable by its owner only.
pub fn read_or_make_token(path: &Path) -> anyhow::Result<String> {
    let context = || format!("cannot use the token file {}", path.display());
    match fs::read_to_string(path) {
        Ok(text) if text.trim().len() >= 16 => return Ok(text.trim().to_string()),
        Ok(_) => anyhow::bail!(
            "{}: expected a token of 16 or more characters; remove the file to get a new one",
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(context),
    }
    let mut random = [0; TOKEN_BYTES];
    fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut random))
        .with_context(context)?;
    let token = HEXLOWER.encode(&random);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).with_context(context)?;
    writeln!(file, "{token}").with_context(context)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::http::Request;

    fn parts(fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/web/");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, fields: &[(&str, &str)]) -> u16 {
        guard.check(&parts(fields)).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_requests_for_names_of_ours_are_answered() {
        let guard =
            Guard::new(&["192.168.0.7".parse().unwrap()], &["archive.example".to_string()], None, false);
        for (host, expected) in [
            ("localhost", 200),
            ("LOCALHOST:8080", 200),
            ("127.0.0.1:8080", 200),
            ("[::1]:8080", 200),
            ("[::1]", 200),
            ("192.168.0.7:1", 200),
            ("archive.example", 200),
            ("evil.example", 421),
            ("evil.example:8080", 421),
            ("127.0.0.1.evil.example", 421),
            ("", 421),
        ] {
            assert_eq!(status(&guard, &[("host", host)]), expected, "{host}");
        }
        assert_eq!(status(&guard, &[]), 421);
        assert_eq!(status(&guard, &[("host", "localhost"), ("host", "evil.example")]), 400);
        assert_eq!(status(&guard, &[("host", "localhost"), ("host", "localhost")]), 400);
        let public = Guard::new(&[], &[], None, true);
        assert_eq!(status(&public, &[("host", "a.example"), ("host", "b.example")]), 400);
    }

    #[test]
    fn a_token_is_needed_and_wrong_ones_are_limited() {
        let guard = Guard::new(&[], &[], Some("0123456789abcdef"), false);
        let basic = format!("Basic {}", BASE64.encode(b"me:0123456789abcdef"));
        assert_eq!(status(&guard, &[]), 401);
        assert_eq!(status(&guard, &[("authorization", "Bearer 0123456789abcdef")]), 200);
        assert_eq!(status(&guard, &[("authorization", &basic)]), 200);
        assert_eq!(status(&guard, &[("cookie", "a=b; perennial_token=0123456789abcdef")]), 200);
        for _ in 0..MAX_FAILURES {
            assert_eq!(status(&guard, &[("authorization", "Bearer wrong")]), 401);
        }
        assert_eq!(status(&guard, &[("authorization", "Bearer wrong")]), 429);
    }

    #[test]
    fn a_token_file_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = read_or_make_token(&path).unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(read_or_make_token(&path).unwrap(), token);
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777,
            0o600
        );
        fs::write(&path, "short").unwrap();
        assert!(read_or_make_token(&path).is_err());
    }
}
