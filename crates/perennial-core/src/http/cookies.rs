//! Cookies of a login -> the field that a request sends.

use url::Url;

use crate::time::Timestamp;

/// Cookies that are kept; a browser keeps some thousand.
const MAX_COOKIES: usize = 5_000;

/// A cookie with its name and value, and the URLs that receive it.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    pub name: String,
    pub value: String,
    /// In lower case, without a leading dot.
    pub domain: String,
    /// Whether hosts below the domain receive it too.
    pub has_subdomains: bool,
    pub path: String,
    pub is_secure: bool,
    /// `None`: when the session ends.
    pub expires: Option<Timestamp>,
}

/// Cookies, one per name, domain and path.
#[derive(Clone, Default)]
pub struct CookieJar(Vec<Cookie>);

/// Values are secret: they must not reach a log.
impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({} of {})", self.name, self.domain)
    }
}

impl std::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl Cookie {
    /// Whether a request for this URL sends it.
    fn is_for(&self, url: &Url, now: Timestamp) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_below = || host.strip_suffix(&self.domain).is_some_and(|front| front.ends_with('.'));
        let is_host = host == self.domain || self.has_subdomains && is_below();
        let rest = url.path().strip_prefix(self.path.as_str());
        let is_path =
            rest.is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        let is_safe = !self.is_secure || url.scheme() == "https" || is_this_machine(host);
        is_host && is_path && is_safe && self.expires.is_none_or(|expires| expires > now)
    }
}

/// As in browsers, secure cookies are sent to this machine without TLS.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]"
}

impl CookieJar {
    /// Reads a file in Netscape's format: domain, subdomains, path, secure, expiry, name and value, separated by tabs.
    /// `Err` is the number of the first wrong line, because the line itself is secret.
    pub fn from_netscape(text: &str) -> Result<CookieJar, usize> {
        let mut jar = CookieJar::default();
        for (at, line) in text.lines().enumerate() {
            // Curl marks cookies that scripts cannot read.
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let &[domain, has_subdomains, path, is_secure, expires, name, ref value @ ..] = &fields[..]
            else {
                return Err(at + 1);
            };
            let expires: f64 = expires.trim().parse().map_err(|_| at + 1)?;
            jar.put(Cookie {
                name: name.to_string(),
                value: value.join("\t"),
                domain: domain.trim_start_matches('.').to_ascii_lowercase(),
                has_subdomains: domain.starts_with('.') || has_subdomains.eq_ignore_ascii_case("true"),
                path: path.to_string(),
                is_secure: is_secure.eq_ignore_ascii_case("true"),
                expires: (expires > 0.0).then(|| Timestamp::from_secs(expires as i64)),
            });
        }
        Ok(jar)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Cookie> {
        self.0.iter()
    }

    /// Adds a cookie, or replaces the one with the same name, domain and path.
    pub fn put(&mut self, cookie: Cookie) {
        let is_same = |known: &Cookie| {
            (&known.name, &known.domain, &known.path) == (&cookie.name, &cookie.domain, &cookie.path)
        };
        match self.0.iter().position(is_same) {
            Some(at) => self.0[at] = cookie,
            None if self.0.len() < MAX_COOKIES => self.0.push(cookie),
            None => {}
        }
    }

    /// The value of the field `Cookie` of a request; `None` without cookies for its URL. Longer paths come first.
    pub fn field(&self, url: &Url, now: Timestamp) -> Option<String> {
        let mut found: Vec<&Cookie> = self.0.iter().filter(|cookie| cookie.is_for(url, now)).collect();
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> =
            found.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Netscape HTTP Cookie File\n\n.news.example\tTRUE\t/\tTRUE\t4102444800\tsession\ts3cret\n\
        #HttpOnly_www.news.example\tFALSE\t/account\tFALSE\t0\tid\t7\nnews.example\tFALSE\t/\tFALSE\t1000\told\tx\n";

    #[test]
    fn each_url_gets_its_cookies() {
        let jar = CookieJar::from_netscape(FILE).unwrap();
        let now = Timestamp::from_secs(2_000_000_000);
        let field = |url: &str| jar.field(&Url::parse(url).unwrap(), now);
        assert_eq!(field("https://www.news.example/account/me").as_deref(), Some("id=7; session=s3cret"));
        assert_eq!(field("https://www.news.example/accounts").as_deref(), Some("session=s3cret"));
        assert_eq!(field("https://news.example/").as_deref(), Some("session=s3cret"));
        for other in ["http://news.example/", "https://othernews.example/", "https://example/"] {
            assert_eq!(field(other), None, "{other}");
        }
        assert_eq!(
            field("https://news.example/").as_deref(),
            Some("session=s3cret"),
            "the old one has expired"
        );
        let later = Timestamp::from_secs(4_102_444_801);
        assert_eq!(jar.field(&Url::parse("https://news.example/").unwrap(), later), None);
    }

    #[test]
    fn wrong_lines_are_named_without_their_words() {
        assert_eq!(
            CookieJar::from_netscape("a\tTRUE\t/\tTRUE\t0\tname\tsecret\nname=secret\n").err(),
            Some(2)
        );
        assert_eq!(CookieJar::from_netscape("a\tTRUE\t/\tTRUE\tsoon\tname\tsecret\n").err(), Some(1));
        let jar = CookieJar::from_netscape(FILE).unwrap();
        assert!(!format!("{jar:?}").contains("s3cret"));
    }
}
