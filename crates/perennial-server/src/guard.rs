//! Which requests are answered at all.
//!
//! Any web page can make a browser send requests to this server, and with DNS rebinding under a host name of the page's own. So `Host` must
//! be a name of ours. Clients on other machines also need a token, unless the user declared the archive public.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::Context;
use data_encoding::{BASE64, HEXLOWER};
use hyper::http::request::Parts;
use hyper::http::{StatusCode, header};
use perennial_core::url::canonical::host_name;
use sha2::{Digest, Sha256};

use super::origins::{url_host, without_port};
use super::problem::Problem;
use super::{Options, Origin};

pub const COOKIE: &str = "perennial_token";

/// Contains the pass of a frame, on the replay origin only.
const PASS_COOKIE: &str = "perennial_replay";

/// Over HTTPS, a cookie with this prefix is set only by the server itself, for its whole host.
const HOST_PREFIX: &str = "__Host-";

const SECRET_BYTES: usize = 24;

/// Wrong tokens are not counted: a token has 16 or more characters, and a limit would lock its owner out.
#[derive(Debug)]
pub struct Guard {
    /// Accepted names in `Host`; `None`: any.
    hosts: Option<BTreeSet<String>>,
    token: Option<AccessToken>,
}

#[derive(Debug)]
struct AccessToken {
    digest: [u8; 32],
    /// Admits our frame to the replay origin, whose host does not get the cookie of the main origin.
    pass: String,
}

impl Guard {
    /// Accepts the names of loopback, the listening addresses, the proxy's names and the allowed names.
    pub fn new(options: &Options) -> anyhow::Result<Guard> {
        let ours = ["localhost", "127.0.0.1", "[::1]"].into_iter().map(str::to_string);
        let addresses = [Some(options.listen), options.replay_listen].into_iter().flatten();
        let proxied = options.proxied.iter().flat_map(|origins| [&origins.main, &origins.replay]);
        let proxied = proxied.filter_map(|origin| host_name(origin)).map(str::to_string);
        let allowed: Vec<String> = options.allow_hosts.iter().cloned().chain(proxied).collect();
        // With a token, or in public, a name protects nothing.
        let any_host = allowed.is_empty() && (options.public || options.token.is_some());
        let hosts = ours.chain(addresses.map(|address| url_host(address.ip())));
        let hosts = hosts.chain(allowed.iter().map(|host| host.to_ascii_lowercase())).collect();
        let token = options
            .token
            .as_deref()
            .map(|token| anyhow::Ok(AccessToken { digest: digest(token), pass: secret()? }));
        Ok(Guard { hosts: (!any_host).then_some(hosts), token: token.transpose()? })
    }

    /// Checks the host name and the token.
    pub fn check(&self, origin: Origin, parts: &Parts) -> Result<(), Problem> {
        self.check_host(parts)?;
        let Some(token) = &self.token else { return Ok(()) };
        let is_right = match parts.headers.contains_key(header::AUTHORIZATION) {
            true => bearer_in(parts).is_some_and(|given| is_same(&digest(&given), &token.digest)),
            false => {
                let is_token = |given: &str| is_same(&digest(given), &token.digest);
                cookies_in(parts, COOKIE).any(is_token)
                    || origin == Origin::Replay
                        && cookies_in(parts, PASS_COOKIE).any(|pass| self.admits(pass))
            }
        };
        if is_right { Ok(()) } else { Err(no_token()) }
    }

    /// What our frame needs to enter the replay origin; `None` if no token is needed.
    pub fn pass(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.pass.as_str())
    }

    /// The `Set-Cookie` value for a frame with the pass. The frame is of a different site than the page around it, so the cookie belongs
    /// to the two together.
    pub fn pass_cookie(&self, replay_origin: &str) -> Option<String> {
        let prefix = if replay_origin.starts_with("https:") { HOST_PREFIX } else { "" };
        let pass = self.pass()?;
        Some(format!("{prefix}{PASS_COOKIE}={pass}; Path=/; HttpOnly; SameSite=None; Secure; Partitioned"))
    }

    pub fn admits(&self, pass: &str) -> bool {
        self.pass().is_some_and(|expected| is_same(&digest(pass), &digest(expected)))
    }

    /// Whether the token is right; for the page that sets the cookie.
    pub fn accepts(&self, token: &str) -> Result<(), Problem> {
        match &self.token {
            Some(expected) if !is_same(&digest(token), &expected.digest) => Err(no_token()),
            _ => Ok(()),
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

/// Compares two digests in constant time, so the time reveals nothing about the token.
pub fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.trim().as_bytes()).into()
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

/// The values of all cookies with a name. An archived page can add a cookie of any name for its host, so the first one may be wrong.
pub fn cookies_in<'p>(parts: &'p Parts, name: &str) -> impl Iterator<Item = &'p str> {
    let cookies = parts.headers.get_all(header::COOKIE).into_iter();
    let cookies = cookies.flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
    cookies.filter_map(move |cookie| {
        let (known, value) = std::str::from_utf8(cookie).ok()?.trim().split_once('=')?;
        (known.strip_prefix(HOST_PREFIX).unwrap_or(known) == name).then_some(value)
    })
}

/// The `Set-Cookie` value of a cookie for this origin only. The attributes may limit its life.
pub fn set_cookie(origin: &str, name: &str, value: &str, attributes: &str) -> String {
    let (prefix, secure) = if origin.starts_with("https:") { (HOST_PREFIX, "; Secure") } else { ("", "") };
    format!("{prefix}{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{attributes}")
}

/// A random secret.
pub fn secret() -> anyhow::Result<String> {
    let mut random = [0; SECRET_BYTES];
    let read = fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random));
    read.context("cannot read random numbers from /dev/urandom")?;
    Ok(HEXLOWER.encode(&random))
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
    let token = secret()?;
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
    use hyper::http::Request;

    use super::*;
    use crate::Origins;

    fn parts(fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/web/");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn guard(options: Options) -> Guard {
        Guard::new(&options).unwrap()
    }

    fn with_token(token: &str) -> Guard {
        let token = Some(token.to_string());
        guard(Options { token, ..Options::on_loopback(([127, 0, 0, 1], 80).into()) })
    }

    fn status(guard: &Guard, fields: &[(&str, &str)]) -> u16 {
        guard.check(Origin::Main, &parts(fields)).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_requests_for_our_names_are_served() {
        let guard = guard(Options {
            listen: "192.168.0.7:80".parse().unwrap(),
            allow_hosts: vec!["archive.example".to_string()],
            proxied: Some(Origins {
                main: "https://proxy.example".into(),
                replay: "https://replay.proxy.example:444".into(),
            }),
            ..Options::on_loopback(([127, 0, 0, 1], 80).into())
        });
        for (host, expected) in [
            ("localhost", 200),
            ("LOCALHOST:8080", 200),
            ("127.0.0.1:8080", 200),
            ("[::1]:8080", 200),
            ("[::1]", 200),
            ("192.168.0.7:1", 200),
            ("archive.example", 200),
            ("proxy.example", 200),
            ("replay.proxy.example:444", 200),
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
        let public = super::tests::guard(Options {
            public: true,
            ..Options::on_loopback(([127, 0, 0, 1], 80).into())
        });
        assert_eq!(status(&public, &[("host", "a.example"), ("host", "b.example")]), 400);
    }

    #[test]
    fn the_right_token_always_passes() {
        let token = "0123456789abcdef";
        let guard = with_token(token);
        let basic = format!("Basic {}", BASE64.encode(b"me:0123456789abcdef"));
        assert_eq!(status(&guard, &[]), 401);
        for _ in 0..100 {
            assert_eq!(status(&guard, &[("authorization", "Bearer wrong")]), 401);
            assert!(guard.accepts("wrong").is_err());
        }
        assert_eq!(status(&guard, &[("authorization", "Bearer 0123456789abcdef")]), 200);
        assert_eq!(status(&guard, &[("authorization", &basic)]), 200);
        assert!(guard.accepts(token).is_ok());
    }

    /// The other cookies may be those of an archived page.
    #[test]
    fn any_cookie_may_be_the_right_one() {
        let guard = with_token("0123456789abcdef");
        for cookies in [
            vec!["a=b; perennial_token=0123456789abcdef"],
            vec!["perennial_token=bad; perennial_token=0123456789abcdef"],
            vec!["perennial_token=bad", "perennial_token=0123456789abcdef"],
            vec!["a=\u{e9}; perennial_token=0123456789abcdef"],
            vec!["perennial_token=bad; __Host-perennial_token=0123456789abcdef"],
        ] {
            let fields: Vec<(&str, &str)> = cookies.iter().map(|cookie| ("cookie", *cookie)).collect();
            assert_eq!(status(&guard, &fields), 200, "{cookies:?}");
        }
        assert_eq!(status(&guard, &[("cookie", "perennial_token=bad; x0123456789abcdef")]), 401);
    }

    #[test]
    fn a_pass_is_for_the_replay_origin_only() {
        let guard = with_token("0123456789abcdef");
        let cookie = guard.pass_cookie("http://localhost:1").unwrap();
        let with_pass = parts(&[("cookie", cookie.split(';').next().unwrap())]);
        assert!(guard.check(Origin::Replay, &with_pass).is_ok());
        assert!(guard.check(Origin::Main, &with_pass).is_err());
        assert!(!guard.admits("") && !guard.admits("0123456789abcdef"));
    }

    #[test]
    fn a_token_file_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = read_or_make_token(&path).unwrap();
        assert_eq!(token.len(), 2 * SECRET_BYTES);
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
