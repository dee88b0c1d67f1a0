//! URLs as pages write them -> one form per page, keeping different pages apart.
//!
//! Only differences that cannot name a different page are removed: case of scheme and host, default port, dot
//! segments, escapes of unreserved characters, fragment, credentials, an empty query, session identifiers and
//! campaign tags. Order of parameters, trailing slashes, `www.` and case of the path remain, because they matter on
//! some sites.

use url::Url;

/// The longest URL that is followed. Browsers have a similar limit.
pub const MAX_URL_BYTES: usize = 2083;

/// Resolves `reference` against `base` and canonicalises it; `None` if it is not the URL of a web page.
pub fn resolve(base: &Url, reference: &str) -> Option<Url> {
    let joined = base.join(reference.trim()).ok()?;
    canonicalise(joined)
}

/// Parses a URL as a user types it. The default scheme is https.
pub fn parse(text: &str) -> Option<Url> {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_string() } else { format!("https://{text}") };
    canonicalise(Url::parse(&with_scheme).ok()?)
}

/// Canonicalises a URL; `None` if it is not http or https, has no host, or is too long.
pub fn canonicalise(mut url: Url) -> Option<Url> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    if url.as_str().len() > 4 * MAX_URL_BYTES {
        return None;
    }
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    if let Some(host) = url.host_str().filter(|host| host.ends_with('.')) {
        // Removes the trailing dot. A host of dots alone becomes empty, which is invalid.
        let host = host.trim_end_matches('.').to_string();
        url.set_host(Some(&host)).ok()?;
    }
    let path = canonical_path(url.path());
    if path != url.path() {
        url.set_path(&path);
    }
    if let Some(query) = url.query() {
        let kept = canonical_query(query);
        if Some(kept.as_str()) != url.query() {
            url.set_query((!kept.is_empty()).then_some(kept.as_str()));
        } else if kept.is_empty() {
            url.set_query(None);
        }
    }
    (url.as_str().len() <= MAX_URL_BYTES).then_some(url)
}

fn canonical_path(path: &str) -> String {
    let normal = normalise_escapes(path);
    if !normal.contains(';') {
        return normal;
    }
    let segments: Vec<&str> = normal.split('/').map(without_session).collect();
    segments.join("/")
}

/// `page;jsessionid=1A2B` -> `page`; other matrix parameters remain.
fn without_session(segment: &str) -> &str {
    match segment.find(';') {
        Some(at) => {
            let name = segment[at + 1..].split('=').next().unwrap_or_default();
            if is_session_name(name) && segment[at + 1..].contains('=') { &segment[..at] } else { segment }
        }
        None => segment,
    }
}

fn canonical_query(query: &str) -> String {
    let normal = normalise_escapes(query);
    if !normal.split('&').any(is_dropped_pair) {
        return normal;
    }
    let kept: Vec<&str> = normal.split('&').filter(|pair| !is_dropped_pair(pair)).collect();
    kept.join("&")
}

fn is_dropped_pair(pair: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    is_campaign_name(name) || (is_session_name(name) && is_random(value))
}

fn is_campaign_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("utm_")
        || matches!(lower.as_str(), "fbclid" | "gclid" | "dclid" | "msclkid" | "yclid" | "mc_eid" | "_ga")
}

fn is_session_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "jsessionid"
            | "phpsessid"
            | "sid"
            | "sessionid"
            | "session_id"
            | "cfid"
            | "cftoken"
            | "zenid"
            | "oscsid"
    ) || lower.starts_with("aspsessionid")
}

/// Whether a value looks like a session identifier: `sid=3` may name a section, `sid=9f8e7d6c5b4a39281706f5e4` does
/// not.
fn is_random(value: &str) -> bool {
    value.len() >= 8
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'!'))
        && value.bytes().any(|b| b.is_ascii_digit())
}

/// Decodes escapes of unreserved characters and writes all others with upper-case digits (RFC 3986, 6.2.2).
pub(crate) fn normalise_escapes(text: &str) -> String {
    if !text.contains('%') {
        return text.to_string();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    // A character decoded right after a lone % could complete an escape.
    let mut lone: Option<usize> = None;
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| Some((hex(*bytes.get(at + 1)?)?, hex(*bytes.get(at + 2)?)?)))
            .flatten();
        match escaped {
            Some((high, low)) => {
                let may_decode = lone.is_none_or(|lone| out.len() > lone + 2);
                push_escaped(&mut out, high * 16 + low, may_decode);
                at += 3;
            }
            None => {
                lone = if bytes[at] == b'%' { Some(out.len()) } else { lone };
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn push_escaped(out: &mut Vec<u8>, byte: u8, may_decode: bool) {
    // A decoded dot could make a dot segment, which the next parser would resolve, so it remains escaped.
    if may_decode && (byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~')) {
        out.push(byte);
    } else {
        out.extend_from_slice(format!("%{byte:02X}").as_bytes());
    }
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// A URL without its scheme, as people read it.
pub fn without_scheme(url: &str) -> &str {
    let is_scheme = |scheme: &str| scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).map_or(url, |(_, rest)| rest)
}

/// The host of a URL as written, with an explicit port.
pub fn host_with_port(url: &str) -> &str {
    let authority = without_scheme(url).split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or(authority)
}

/// The host of a URL as written, without its port; `None` for a relative reference.
pub fn host_name(url: &str) -> Option<&str> {
    let url = url.trim_start();
    let host = host_with_port(url);
    let has_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| has_port(port)).map_or(host, |(name, _)| name);
    (without_scheme(url).len() < url.len()).then_some(name)
}

/// The name of a URL's site in the archive: its host, with any non-default port. So a server has one name, however
/// its URLs are written. `None` for `urn:` and the like.
pub fn site_name(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// The origin of a URL (scheme, host and port), which identifies a host for politeness.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap().as_str(), expected, "{text}");
    }

    #[test]
    fn a_host_of_dots_is_none() {
        for text in ["https://%2E./", "https://./", "https://../", "https://..././"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("https://a.example../").unwrap().as_str(), "https://a.example/");
    }

    #[test]
    fn a_lone_percent_sign_makes_no_escape() {
        check("https://a.example/%%6666/", "https://a.example/%%6666/");
        check("https://a.example/%6%31", "https://a.example/%6%31");
        check("https://a.example/%zz%41", "https://a.example/%zzA");
    }

    #[test]
    fn one_page_has_one_form() {
        check("HTTP://Example.COM:80/a/../b#top", "http://example.com/b");
        check("example.com", "https://example.com/");
        check("https://user:pw@example.com./x?", "https://example.com/x");
        check("https://example.com/%7Euser/%c3%a9", "https://example.com/~user/%C3%A9");
        check("https://example.com/a;jsessionid=1A2B3C?x=1", "https://example.com/a?x=1");
        check("https://example.com/a?PHPSESSID=0123456789abcdef&x=1", "https://example.com/a?x=1");
        check("https://example.com/a?utm_source=n&id=3&fbclid=q", "https://example.com/a?id=3");
        check("https://example.com/a?utm_source=n", "https://example.com/a");
        check("http://0x7f.1/", "http://127.0.0.1/");
        check("http://2130706433/", "http://127.0.0.1/");
        check("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4");
    }

    #[test]
    fn hosts_are_read_off_urls() {
        for (url, with_port, name) in [
            ("https://a.example:8443/x?y=http://b.example/", "a.example:8443", Some("a.example")),
            ("http://a.example", "a.example", Some("a.example")),
            ("http://a.example?x", "a.example", Some("a.example")),
            ("http://bank.example@evil.example/", "evil.example", Some("evil.example")),
            ("http://[2001:db8::1]:80/", "[2001:db8::1]:80", Some("[2001:db8::1]")),
            ("http://[2001:db8::1]/", "[2001:db8::1]", Some("[2001:db8::1]")),
            ("a.example/x", "a.example", None),
            ("/go?to=http://b.example/", "", None),
            ("urn:dom:http", "urn:dom:http", None),
        ] {
            assert_eq!((host_with_port(url), host_name(url)), (with_port, name), "{url}");
        }
        assert_eq!(without_scheme("/go?to=http://b.example/"), "/go?to=http://b.example/");
        let site = |url: &str| site_name(&Url::parse(url).unwrap());
        assert_eq!(site("https://A.example:443/x").as_deref(), Some("a.example"));
        assert_eq!(site("https://a.example:80/x").as_deref(), Some("a.example:80"));
        assert_eq!(site("urn:dom:x"), None);
    }

    #[test]
    fn different_pages_remain_separate() {
        for (one, other) in [
            ("https://e.org/a", "https://e.org/a/"),
            ("https://e.org/A", "https://e.org/a"),
            ("https://e.org/?a=1&b=2", "https://e.org/?b=2&a=1"),
            ("https://e.org/?sid=3", "https://e.org/?sid=4"),
            ("https://e.org/a%2Fb", "https://e.org/a/b"),
            ("https://www.e.org/", "https://e.org/"),
            ("http://e.org/", "https://e.org/"),
            ("https://e.org/a;v=1", "https://e.org/a;v=2"),
        ] {
            assert_ne!(parse(one), parse(other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let base = Url::parse("https://e.org/dir/page").unwrap();
        for reference in ["mailto:a@b.c", "javascript:void(0)", "data:text/html,x", "http://", "ftp://e.org/"]
        {
            assert_eq!(resolve(&base, reference), None, "{reference}");
        }
        assert_eq!(resolve(&base, &format!("/{}", "a".repeat(3000))), None);
        assert_eq!(resolve(&base, " ../x \n").unwrap().as_str(), "https://e.org/x");
    }

    proptest! {
        #[test]
        fn canonical_form_is_a_fixed_point(text in "[a-zA-Z0-9:/?#@%&=;._~ \\-é]{0,60}") {
            if let Some(url) = parse(&format!("https://e.org/{text}")) {
                prop_assert_eq!(canonicalise(url.clone()), Some(url));
            }
        }

        #[test]
        fn any_reference_is_survived(reference in "\\PC{0,80}") {
            let base = Url::parse("https://e.org/dir/page?x").unwrap();
            if let Some(url) = resolve(&base, &reference) {
                prop_assert!(url.fragment().is_none());
                prop_assert_eq!(parse(url.as_str()), Some(url));
            }
        }
    }
}
