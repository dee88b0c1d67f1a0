//! A URL -> its SURT key, the sort key of indexes: `http://www.example.com/a?b` -> `com,example)/a?b`.
//!
//! Keys equal those of the Internet Archive's default canonicaliser in the Python package `surt` (and so
//! `cdxj-indexer`), including its oddities. Other tools can use an index only if its keys equal theirs. If the package
//! rejects a URL, the URL is its own key, as in `cdxj-indexer`.

use std::net::Ipv4Addr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

/// Returns the SURT key of a URL.
pub fn surt(url: &str) -> String {
    if url.is_empty() {
        return "-".to_string();
    }
    if url.starts_with("filedesc") {
        return url.to_string();
    }
    match UrlParts::parse(url.as_bytes()) {
        Some(parts) => String::from_utf8_lossy(&parts.canonicalise().key()).into_owned(),
        None => url.to_string(),
    }
}

/// A range of keys: `start` inclusive, `end` exclusive, compared as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key of the range.
    pub start: Vec<u8>,
    /// First key after the range.
    pub end: Vec<u8>,
}

/// The captures that a lookup by URL returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchType {
    /// The URL itself.
    Exact,
    /// All URLs that begin with the URL.
    Prefix,
    /// All URLs of the same host.
    Host,
    /// All URLs of the same host and its subdomains.
    Domain,
}

impl KeyRange {
    /// The keys that a lookup returns. In an index line a blank follows the key.
    pub fn of(url: &str, matching: MatchType) -> KeyRange {
        let key = surt(url);
        let host = key.split(')').next().unwrap_or(&key);
        match matching {
            MatchType::Exact => KeyRange { start: format!("{key} ").into(), end: format!("{key}!").into() },
            MatchType::Prefix => {
                let mut start = key.clone().into_bytes();
                // Canonicalisation removes the slash that ends a directory or path.
                for end in [b'/', b'?'] {
                    if url.ends_with(end as char) && !start.ends_with(&[end]) {
                        start.push(end);
                    }
                }
                let end = successor(&start);
                KeyRange { start, end }
            }
            MatchType::Host => KeyRange { start: format!("{host})").into(), end: format!("{host}*").into() },
            // `)` ends the key of the host, `,` continues it with a subdomain, and `-` is the next character.
            MatchType::Domain => {
                KeyRange { start: format!("{host})").into(), end: format!("{host}-").into() }
            }
        }
    }

    /// Whether a line of an index is in the range.
    pub fn contains(&self, line: &[u8]) -> bool {
        line >= &self.start[..] && line < &self.end[..]
    }
}

/// The least byte string that sorts after all strings with this prefix.
fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 255 {
            end.push(last + 1);
            return end;
        }
    }
    vec![255; prefix.len() + 1]
}

struct UrlParts {
    scheme: Vec<u8>,
    host: Option<Vec<u8>>,
    port: Option<u16>,
    path: Option<Vec<u8>>,
    query: Option<Vec<u8>>,
}

impl UrlParts {
    /// Splits a URL as in RFC 2396, appendix B; `None` if the package raises an error.
    fn parse(url: &[u8]) -> Option<UrlParts> {
        let url: Vec<u8> =
            trim_python(url).iter().copied().filter(|b| !matches!(b, b'\n' | b'\r' | b'\t')).collect();
        if url.is_empty() {
            return None;
        }
        let url = match scheme_len(&url) {
            Some(_) => url,
            None => [b"http://", &url[..]].concat(),
        };
        let url = last_of_repeated_protocols(&url);
        let n_scheme = scheme_len(url)?;
        let (scheme, rest) = (&url[..n_scheme], &url[n_scheme + 1..]);
        let rest = before(rest, b"#");
        let (rest, query) = split_at_first(rest, b'?');
        let (netloc, path) = match rest.strip_prefix(b"//") {
            Some(rest) => rest.split_at(before(rest, b"/").len()),
            None => (&b""[..], rest),
        };
        let (host, port) = split_netloc(netloc)?;
        let mut parts = UrlParts {
            scheme: scheme.to_vec(),
            host: (!host.is_empty()).then_some(host),
            port: port.filter(|&p| p != 0),
            path: (!path.is_empty()).then(|| path.to_vec()),
            query: query.filter(|q| !q.is_empty()).map(<[u8]>::to_vec),
        };
        if scheme.starts_with(b"http") && parts.host.is_none() {
            parts.take_host_from_path();
        }
        Some(parts)
    }

    /// Repairs `http:////host/path`, which means `http://host/path`.
    fn take_host_from_path(&mut self) {
        let Some(path) = &self.path else { return };
        let n_slashes = path.iter().take_while(|&&b| b == b'/').count();
        let (host, rest) = split_at_first(&path[n_slashes..], b'/');
        let (host, path) = (host.to_vec(), [b"/", rest.unwrap_or(b"")].concat());
        self.host = Some(host);
        self.path = Some(path);
    }

    fn canonicalise(mut self) -> UrlParts {
        self.query = self.query.map(|q| escape_once(&unescape_repeatedly(&q)));
        self.host = self.host.filter(|h| !h.is_empty()).map(|h| canonical_host(&h));
        let has_host = self.host.as_ref().is_some_and(|h| !h.is_empty());
        let path = self.path.take().map(|p| unescape_repeatedly(&p));
        self.path = if has_host {
            Some(escape_once(&normalise_path(path.as_deref().unwrap_or(b""))))
        } else {
            path.map(|p| escape_once(&p))
        };
        if self.scheme != b"dns" {
            self.host = self.host.map(strip_www);
        }
        if self.port == default_port(&self.scheme) {
            self.port = None;
        }
        self.path = self.path.map(canonical_path);
        self.query = self.query.map(canonical_query).filter(|q| !q.is_empty());
        self
    }

    fn key(self) -> Vec<u8> {
        let mut key = Vec::new();
        match self.host.filter(|h| !h.is_empty()) {
            None => {
                key.extend_from_slice(&self.scheme);
                key.push(b':');
            }
            Some(host) => {
                let labels: Vec<&[u8]> = host.split(|&b| b == b'.').rev().collect();
                key.extend_from_slice(&labels.join(&b','));
                if let Some(port) = self.port {
                    key.extend_from_slice(format!(":{port}").as_bytes());
                }
                key.push(b')');
            }
        }
        match self.path.filter(|p| !p.is_empty()) {
            Some(path) => key.extend_from_slice(&path),
            None if self.query.is_some() => key.push(b'/'),
            None => {}
        }
        if let Some(query) = self.query {
            key.push(b'?');
            key.extend_from_slice(&query);
        }
        key
    }
}

/// The bytes that Python's `bytes.strip` removes.
fn trim_python(bytes: &[u8]) -> &[u8] {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let from = bytes.iter().position(|b| !is_space(b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !is_space(b)).map_or(from, |at| at + 1);
    &bytes[from..end]
}

/// Length of the scheme before its colon.
fn scheme_len(url: &[u8]) -> Option<usize> {
    let n = url.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
    (url.first()?.is_ascii_alphabetic() && url.get(n) == Some(&b':')).then_some(n)
}

/// Repairs `http://https://host`, which means `https://host`.
fn last_of_repeated_protocols(url: &[u8]) -> &[u8] {
    let protocol_len =
        |u: &[u8]| [&b"https://"[..], b"http://"].iter().find(|p| u.starts_with(p)).map(|p| p.len());
    let mut rest = url;
    while let Some(n) = protocol_len(rest) {
        if protocol_len(&rest[n..]).is_none() {
            break;
        }
        rest = &rest[n..];
    }
    rest
}

/// The part of a text before the first of these bytes.
fn before<'a>(bytes: &'a [u8], stops: &[u8]) -> &'a [u8] {
    let end = bytes.iter().position(|b| stops.contains(b)).unwrap_or(bytes.len());
    &bytes[..end]
}

fn split_at_first(bytes: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(separator, bytes) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
}

/// Host in lower case and port; `None` if the port is not a number.
fn split_netloc(netloc: &[u8]) -> Option<(Vec<u8>, Option<u16>)> {
    let n_colons = netloc.iter().rev().take_while(|&&b| b == b':').count();
    let netloc = &netloc[..netloc.len() - n_colons];
    let host_and_port = memchr::memrchr(b'@', netloc).map_or(netloc, |at| &netloc[at + 1..]);
    let (host, port) = match split_at_first(host_and_port, b'[') {
        (_, Some(bracketed)) => {
            let (host, rest) = split_at_first(bracketed, b']');
            (host, rest.and_then(|r| split_at_first(r, b':').1))
        }
        (plain, None) => split_at_first(plain, b':'),
    };
    let port = match port.filter(|p| !p.is_empty()) {
        None => None,
        Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
            Some(std::str::from_utf8(digits).ok()?.parse().ok()?)
        }
        Some(_) => return None,
    };
    // The zone of an IPv6 address keeps its letter case.
    let n_name = memchr::memchr(b'%', host).unwrap_or(host.len());
    let host = [&host[..n_name].to_ascii_lowercase()[..], &host[n_name..]].concat();
    Some((host, port))
}

/// Decodes percent-encoding until nothing changes.
fn unescape_repeatedly(bytes: &[u8]) -> Vec<u8> {
    let mut current = bytes.to_vec();
    loop {
        let next: Vec<u8> = percent_decode(&current).collect();
        if next.len() == current.len() {
            return current;
        }
        current = next;
    }
}

/// Characters to escape: blanks, `#`, `%` and all that are not printable ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'#').add(b'%');

fn escape_once(bytes: &[u8]) -> Vec<u8> {
    percent_encode(bytes, ESCAPED).to_string().into_bytes()
}

fn canonical_host(host: &[u8]) -> Vec<u8> {
    let mut host = unescape_repeatedly(host);
    if !host.is_ascii()
        && let Some(ascii) = idna_2003(&utf8_ignoring_errors(&host))
    {
        host = ascii.into_bytes();
    }
    let host = collapse_dots(&host);
    match parse_ipv4(&host) {
        Some(address) => address.to_string().into_bytes(),
        None => escape_once(&host.to_ascii_lowercase()).to_ascii_lowercase(),
    }
}

fn utf8_ignoring_errors(bytes: &[u8]) -> String {
    bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

/// Python's `idna` codec follows IDNA 2003, which maps four characters that IDNA 2008 keeps.
fn idna_2003(host: &str) -> Option<String> {
    let labels: Vec<&str> = host.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).collect();
    let (last, inner) = labels.split_last()?;
    let mut ascii: Vec<String> = inner.iter().map(|label| label_to_ascii(label)).collect::<Option<_>>()?;
    ascii.push(if last.is_empty() { String::new() } else { label_to_ascii(last)? });
    Some(ascii.join("."))
}

fn label_to_ascii(label: &str) -> Option<String> {
    let ascii = if label.is_ascii() {
        label.to_string()
    } else {
        let mapped = label.replace('ß', "ss").replace('ς', "σ").replace(['\u{200c}', '\u{200d}'], "");
        idna::domain_to_ascii(&mapped).ok()?
    };
    (1..64).contains(&ascii.len()).then_some(ascii)
}

/// Replaces two dots by one, in a single pass, and removes the dots around the name.
fn collapse_dots(host: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(host.len());
    let mut at = 0;
    while let Some(&byte) = host.get(at) {
        out.push(byte);
        at += if byte == b'.' && host.get(at + 1) == Some(&b'.') { 2 } else { 1 };
    }
    let from = out.iter().take_while(|&&b| b == b'.').count();
    let end = out.iter().rposition(|&b| b != b'.').map_or(from, |last| last + 1);
    out[from..end].to_vec()
}

/// Parses one number, or two to four parts as the C library's `inet_aton` does. The last part fills the remaining
/// bytes, and a leading zero means octal.
fn parse_ipv4(host: &[u8]) -> Option<Ipv4Addr> {
    if !host.is_empty() && host.iter().all(u8::is_ascii_digit) {
        let number =
            host.iter().fold(0u32, |n, &digit| n.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
        return Some(Ipv4Addr::from(number));
    }
    let parts: Vec<&[u8]> = host.split(|&b| b == b'.').collect();
    if parts.len() > 4 || parts.iter().any(|p| p.is_empty() || !p.iter().all(u8::is_ascii_digit)) {
        return None;
    }
    let numbers: Vec<u64> = parts.iter().map(|part| c_number(part)).collect::<Option<_>>()?;
    let (&last, inner) = numbers.split_last()?;
    let n_left = 4 - inner.len() as u32;
    if inner.iter().any(|&n| n > 255) || last >= 1 << (8 * n_left) {
        return None;
    }
    let high = inner.iter().enumerate().fold(0u64, |sum, (i, &n)| sum | n << (24 - 8 * i));
    Some(Ipv4Addr::from((high | last) as u32))
}

fn c_number(digits: &[u8]) -> Option<u64> {
    let radix = if digits.len() > 1 && digits[0] == b'0' { 8 } else { 10 };
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// Removes `www.`, `www2.` and similar prefixes.
fn strip_www(host: Vec<u8>) -> Vec<u8> {
    let Some(rest) = host.strip_prefix(b"www") else { return host };
    let n_digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    match rest.get(n_digits) {
        Some(b'.') => rest[n_digits + 1..].to_vec(),
        _ => host,
    }
}

fn default_port(scheme: &[u8]) -> Option<u16> {
    match scheme.to_ascii_lowercase().as_slice() {
        b"http" => Some(80),
        b"https" => Some(443),
        _ => Some(0),
    }
}

/// Resolves `.` and `..`, and drops empty segments. A `..` above the root remains in the path.
fn normalise_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, inner)) = kept.split_last() {
        for segment in inner.iter().filter(|s| !s.is_empty()) {
            out.extend_from_slice(segment);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

fn canonical_path(path: Vec<u8>) -> Vec<u8> {
    let mut path = path.to_ascii_lowercase();
    for strip in [asp_session_nested as fn(&[u8]) -> Option<usize>, asp_session_plain] {
        path = strip_path_session(path, strip);
    }
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// Removes the last `/(session)/` that is followed by some `.aspx` from a path. `session_len` measures a session at
/// the start of its argument, including the closing slash.
fn strip_path_session(path: Vec<u8>, session_len: fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    let followed = |rest: &[u8]| memchr::memmem::find_iter(before(rest, b"?"), b".aspx").any(|at| at > 0);
    for at in memchr::memrchr_iter(b'/', &path).map(|slash| slash + 1) {
        if let Some(n) = session_len(&path[at..])
            && followed(&path[at + n..])
        {
            return [&path[..at], &path[at + n..]].concat();
        }
    }
    path
}

fn asp_session_plain(path: &[u8]) -> Option<usize> {
    let inside = path.strip_prefix(b"(")?;
    (inside.get(..24)?.iter().all(u8::is_ascii_alphanumeric) && inside.get(24..26) == Some(b")/"))
        .then_some(27)
}

/// Matches `(S(24 characters)F(24 characters))/`, with one or more such groups.
fn asp_session_nested(path: &[u8]) -> Option<usize> {
    let mut rest = path.strip_prefix(b"(")?;
    let mut n_parts = 0;
    while let [letter, b'(', inside @ ..] = rest
        && letter.is_ascii_alphabetic()
        && inside.get(..24).is_some_and(|s| s.iter().all(u8::is_ascii_alphanumeric))
        && inside.get(24) == Some(&b')')
    {
        rest = &inside[25..];
        n_parts += 1;
    }
    (n_parts > 0 && rest.starts_with(b")/")).then(|| path.len() - rest.len() + 2)
}

fn canonical_query(query: Vec<u8>) -> Vec<u8> {
    let mut query = query;
    for name in [&b"jsessionid="[..], b"phpsessid=", b"sid="] {
        query = strip_query_session(query, name, |value| {
            value.get(..32).filter(|v| v.iter().all(u8::is_ascii_alphanumeric)).map(|_| 32)
        });
    }
    query = strip_query_session(query, b"aspsessionid", |value| {
        let is_name = value.get(..8)?.iter().all(u8::is_ascii_alphabetic) && value.get(8) == Some(&b'=');
        (is_name && value.get(9..33)?.iter().all(u8::is_ascii_alphabetic)).then_some(33)
    });
    query = strip_query_session(query, b"cfid=", |value| {
        let id = before(value, b"&");
        let token = value.get(id.len()..)?;
        let is_token = token.len() >= 9 && token[..9].eq_ignore_ascii_case(b"&cftoken=");
        let token = before(token.get(9..)?, b"&");
        (is_token && !id.is_empty() && !token.is_empty()).then_some(id.len() + 9 + token.len())
    });
    reorder(&query.to_ascii_lowercase())
}

/// Removes the last `name` + value that ends a parameter from a query. `value_len` measures a value.
fn strip_query_session(query: Vec<u8>, name: &[u8], value_len: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    let lower = query.to_ascii_lowercase();
    let found = memchr::memmem::rfind_iter(&lower, name).find_map(|at| {
        let from = at + name.len();
        let end = from + value_len(&query[from..])?;
        matches!(query.get(end), None | Some(b'&')).then_some((at, end))
    });
    match found {
        Some((at, end)) => [&query[..at], query.get(end + 1..).unwrap_or(b"")].concat(),
        None => query,
    }
}

/// Sorts the parameters. A parameter without a value precedes one with an empty value.
fn reorder(query: &[u8]) -> Vec<u8> {
    if query.len() <= 1 {
        return query.to_vec();
    }
    let mut parameters: Vec<_> = query.split(|&b| b == b'&').map(|p| split_at_first(p, b'=')).collect();
    parameters.sort();
    let joined: Vec<Vec<u8>> = parameters
        .into_iter()
        .map(|(name, value)| match value {
            Some(value) => [name, b"=", value].concat(),
            None => name.to_vec(),
        })
        .collect();
    joined.join(&b'&')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The Python package `surt` 0.3.1 returns these keys. If it raises an error, `cdxj-indexer` uses the URL itself.
    #[test]
    fn keys_are_those_of_the_python_package() {
        for (url, key) in [
            ("http://www.example.com/", "com,example)/"),
            ("https://example.com", "com,example)/"),
            ("example.com/Path/", "com,example)/path"),
            ("http://www2.example.com:80/A?B=1&a=2", "com,example)/a?a=2&b=1"),
            ("https://example.com:443/x/", "com,example)/x"),
            ("https://example.com:8443/x/", "com,example:8443)/x"),
            ("http://example.com/a/../b/./c//d", "com,example)/b/c/d"),
            ("http://example.com/../x", "com,example)/../x"),
            ("http://example.com/%7Euser/%2520x", "com,example)/~user/%20x"),
            ("http://example.com/a b", "com,example)/a%20b"),
            ("http://example.com/#fragment", "com,example)/"),
            ("http://example.com/?", "com,example)/"),
            ("http://example.com/?b=2&a=1&a&a=", "com,example)/?a&a=&a=1&b=2"),
            ("http://user:pw@example.com/", "com,example)/"),
            ("http://EXAMPLE.com:/x", "com,example)/x"),
            ("http://example.com../", "com,example)/"),
            ("http://https://example.org/x", "org,example)/x"),
            ("http:////example.org/x", "org,example)/x"),
            ("http://127.1/", "1,0,0,127)/"),
            ("http://3232235777/", "1,1,168,192)/"),
            ("http://0177.0.0.1/", "1,0,0,127)/"),
            ("http://256.1.1.1/", "1,1,1,256)/"),
            ("http://[2001:DB8::1]:8080/", "2001:db8::1:8080)/"),
            ("http://example.com:abc/", "http://example.com:abc/"),
            ("http://bücher.example/straße", "example,xn--bcher-kva)/stra%c3%9fe"),
            ("http://straße.example/", "example,strasse)/"),
            ("http://日本.example/", "example,xn--wgv71a)/"),
            ("http://example.com/é", "com,example)/%c3%a9"),
            (
                "http://example.com/p.php?PHPSESSID=0123456789abcdef0123456789abcdef&x=1",
                "com,example)/p.php?x=1",
            ),
            ("http://example.com/p?x=1&jsessionid=0123456789abcdef0123456789abcdef", "com,example)/p?&x=1"),
            ("http://example.com/p?sid=0123456789abcdef0123456789abcdef", "com,example)/p"),
            ("http://example.com/p?cfid=1&cftoken=2&z=1", "com,example)/p?z=1"),
            ("http://example.com/p?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX", "com,example)/p"),
            ("http://example.com/(S(0123456789abcdefghij0123))/a.aspx", "com,example)/a.aspx"),
            ("http://example.com/(0123456789abcdefghij0123)/A.ASPX?x=1", "com,example)/a.aspx?x=1"),
            (
                "http://example.com/(0123456789abcdefghij0123)/a.html",
                "com,example)/(0123456789abcdefghij0123)/a.html",
            ),
            ("dns:www.example.com", "dns:www.example.com"),
            ("mailto:Someone@Example.com", "mailto:someone@example.com"),
            ("urn:vixml:http://Example.com/A/", "urn:vixml:http://example.com/a"),
            ("urn:text:https://example.com/?q=Ü", "urn:text:https://example.com?q=%c3%9c"),
            ("filedesc://IAH-2008.arc", "filedesc://IAH-2008.arc"),
            ("ftp://www.example.com:21/file", "com,example:21)/file"),
            ("whois://whois.example/x", "example,whois)/x"),
            ("data:text/plain,hello", "data:text/plain,hello"),
            ("http://www.www.example.com/", "com,example,www)/"),
            ("http://www.com/", "com)/"),
            ("http://example.com/%zz%", "com,example)/%25zz%25"),
            ("http://example.com/a;b=c?d;e", "com,example)/a;b=c?d;e"),
            ("http://example.com/a|b\\c^d{e}", "com,example)/a|b\\c^d{e}"),
            ("HTTP://WWW.Example.COM:80/", "com,example)/"),
            ("  http://example.com/x\ty\n ", "com,example)/xy"),
            ("", "-"),
        ] {
            assert_eq!(surt(url), key, "{url:?}");
        }
    }

    #[test]
    fn ranges_hold_what_they_should() {
        let line = |url: &str| format!("{} 20200101000000 {{}}", surt(url)).into_bytes();
        let cases = [
            (MatchType::Exact, "http://example.com/a", "http://www.example.com/a/", true),
            (MatchType::Exact, "http://example.com/a", "http://example.com/ab", false),
            (MatchType::Exact, "http://example.com/a", "http://example.com/a?b", false),
            (MatchType::Prefix, "http://example.com/a", "http://example.com/ab", true),
            (MatchType::Prefix, "http://example.com/a/", "http://example.com/ab", false),
            (MatchType::Prefix, "http://example.com/a/", "http://example.com/a/b", true),
            (MatchType::Host, "http://example.com/a", "http://example.com/z?q", true),
            (MatchType::Host, "http://example.com/a", "http://sub.example.com/", false),
            (MatchType::Host, "http://example.com/a", "http://example.community/", false),
            (MatchType::Domain, "http://example.com/a", "http://sub.example.com/", true),
            (MatchType::Domain, "http://example.com/a", "http://example.com/", true),
            (MatchType::Domain, "http://example.com/a", "http://example-x.com/", false),
            (MatchType::Domain, "http://example.com/a", "http://notexample.com/", false),
        ];
        for (matching, url, other, belongs) in cases {
            let range = KeyRange::of(url, matching);
            assert_eq!(range.contains(&line(other)), belongs, "{matching:?} {url} {other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_key_on_one_line(url in "\\PC{0,60}") {
            let key = surt(&url);
            prop_assert!(!key.contains('\n'));
            prop_assert_eq!(key.is_empty(), false);
        }

        #[test]
        fn a_key_is_the_key_of_itself_as_url(path in "[a-z0-9/.]{0,12}", query in "[a-c=&]{0,8}") {
            let url = format!("http://example.com/{path}?{query}");
            let key = surt(&url);
            let again = surt(&key.replacen("com,example)", "http://example.com", 1));
            prop_assert_eq!(key, again);
        }
    }
}
