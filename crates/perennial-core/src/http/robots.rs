//! robots.txt bytes -> what a crawler of a given name may fetch (RFC 9309).
//!
//! The pattern of a directive is compared octet by octet with the path and query, both in the same escaped form. The
//! longest matching pattern decides, and allow wins a tie. Groups for the same crawler are merged. `Crawl-delay` and
//! `Sitemap` are read too, although they are not in the RFC.

/// Bytes that are read. RFC 9309 requires at least 500 KiB.
pub const MAX_ROBOTS_BYTES: usize = 500 * 1024;

/// The permissions of one crawler in one robots.txt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    directives: Vec<Directive>,
    crawl_delay_secs: Option<f64>,
    sitemaps: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Directive {
    allow: bool,
    pattern: String,
}

/// The result of requesting robots.txt (RFC 9309, 2.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RobotsStatus {
    /// 2xx: the text is read.
    Text,
    /// 4xx: it does not exist, everything may be fetched.
    Unavailable,
    /// 5xx, 429 or no response: nothing may be fetched for now.
    Unreachable,
}

impl RobotsStatus {
    /// From the final HTTP status after redirects; `None` without a response.
    pub fn from_http(status: Option<u16>) -> RobotsStatus {
        match status {
            Some(200..=299) => RobotsStatus::Text,
            Some(429) | None => RobotsStatus::Unreachable,
            Some(300..=499) => RobotsStatus::Unavailable,
            Some(_) => RobotsStatus::Unreachable,
        }
    }
}

impl Robots {
    pub fn allow_all() -> Robots {
        Robots::default()
    }

    /// Parses the directives for the crawler `agent` (its product token, such as `perennial`). Other lines are
    /// skipped.
    pub fn parse(bytes: &[u8], agent: &str) -> Robots {
        let bytes = within_limit(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
        let text = String::from_utf8_lossy(bytes);
        let mut named = RobotsReader::new(product_token(agent));
        for line in text.split(['\n', '\r']) {
            if let Some((key, value)) = split_line(line) {
                named.take(&key, value);
            }
        }
        named.finish()
    }

    /// Whether `path_and_query` (starting with `/`, escaped as in a URL) may be fetched.
    pub fn allows(&self, path_and_query: &str) -> bool {
        let path = normalise(path_and_query);
        if path == "/robots.txt" {
            return true;
        }
        let best = self
            .directives
            .iter()
            .filter(|directive| matches(&directive.pattern, &path))
            .max_by_key(|directive| (directive.pattern.len(), directive.allow));
        best.is_none_or(|directive| directive.allow)
    }

    /// The requested seconds between two fetches.
    pub fn crawl_delay_secs(&self) -> Option<f64> {
        self.crawl_delay_secs
    }

    /// URLs of sitemaps, as written.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

/// Cuts at the limit, back to the last whole line, because half a directive could forbid too much or too little.
fn within_limit(bytes: &[u8]) -> &[u8] {
    if bytes.len() <= MAX_ROBOTS_BYTES {
        return bytes;
    }
    let cut = &bytes[..MAX_ROBOTS_BYTES];
    let end = cut.iter().rposition(|&b| b == b'\n' || b == b'\r').unwrap_or(0);
    &cut[..end]
}

fn split_line(line: &str) -> Option<(String, &str)> {
    let line = line.split('#').next().unwrap_or_default();
    let (key, value) = line.split_once(':')?;
    Some((key.trim().to_ascii_lowercase(), value.trim()))
}

/// `Name/1.2 (comment)` -> `name`. The token consists of letters, `_` and `-` only. But sites write digits and dots
/// too, so names are kept whole up to the version.
fn product_token(text: &str) -> String {
    let end = text.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(text.len());
    text[..end].to_ascii_lowercase()
}

/// Collects the groups for this crawler and for all crawlers in one pass over the text.
struct RobotsReader {
    agent: String,
    own: RobotsGroup,
    any: RobotsGroup,
    in_own: bool,
    in_any: bool,
    naming: bool,
    sitemaps: Vec<String>,
}

#[derive(Default)]
struct RobotsGroup {
    seen: bool,
    directives: Vec<Directive>,
    crawl_delay_secs: Option<f64>,
}

impl RobotsReader {
    fn new(agent: String) -> RobotsReader {
        let (own, any) = (RobotsGroup::default(), RobotsGroup::default());
        RobotsReader { agent, own, any, in_own: false, in_any: false, naming: false, sitemaps: Vec::new() }
    }

    fn take(&mut self, key: &str, value: &str) {
        match key {
            "user-agent" | "useragent" | "user agent" => self.name(value),
            "allow" => self.add(true, value),
            "disallow" => self.add(false, value),
            "crawl-delay" | "crawldelay" => self.delay(value),
            "sitemap" | "site-map" => self.sitemaps.push(value.to_string()),
            _ => {}
        }
    }

    /// Consecutive user-agent lines share the directives that follow. The first one after a directive starts a new
    /// group.
    fn name(&mut self, value: &str) {
        if !self.naming {
            (self.in_own, self.in_any) = (false, false);
            self.naming = true;
        }
        let token = product_token(value);
        if token == "*" {
            self.in_any = true;
            self.any.seen = true;
        } else if token == self.agent {
            self.in_own = true;
            self.own.seen = true;
        }
    }

    fn add(&mut self, allow: bool, value: &str) {
        self.naming = false;
        if value.is_empty() {
            return;
        }
        let pattern = normalise(value);
        let pattern = if pattern.starts_with(['/', '*']) { pattern } else { format!("/{pattern}") };
        for group in self.groups() {
            group.directives.push(Directive { allow, pattern: pattern.clone() });
        }
    }

    fn delay(&mut self, value: &str) {
        self.naming = false;
        let Some(secs) = value.parse::<f64>().ok().filter(|secs| secs.is_finite() && *secs >= 0.0) else {
            return;
        };
        for group in self.groups() {
            group.crawl_delay_secs.get_or_insert(secs);
        }
    }

    fn groups(&mut self) -> impl Iterator<Item = &mut RobotsGroup> {
        let own = self.in_own.then_some(&mut self.own);
        own.into_iter().chain(self.in_any.then_some(&mut self.any))
    }

    fn finish(self) -> Robots {
        let group = if self.own.seen { self.own } else { self.any };
        Robots {
            directives: group.directives,
            crawl_delay_secs: group.crawl_delay_secs,
            sitemaps: self.sitemaps,
        }
    }
}

/// Normalises a pattern or path. Octets that are invalid in URLs are escaped, escapes are in upper case, and those of
/// unreserved characters are decoded. An escaped `*` or `$` remains escaped and so is literal.
fn normalise(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            escaped.push(byte as char);
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    crate::url::canonical::normalise_escapes(&escaped)
}

/// `*` matches any run and a final `$` the end; all else is literal from the start. Each literal matches at its first
/// occurrence. This needs no backtracking, because only the last literal can be tied to the end.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_end) = match pattern.strip_suffix('$') {
        Some(open) => (open, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return !to_end || rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if to_end && pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, allowed: &[&str], forbidden: &[&str]) {
        let robots = Robots::parse(text.as_bytes(), "perennial");
        for path in allowed {
            assert!(robots.allows(path), "{path} must be allowed by {text:?}");
        }
        for path in forbidden {
            assert!(!robots.allows(path), "{path} must be forbidden by {text:?}");
        }
    }

    #[test]
    fn longest_match_wins_and_allow_wins_ties() {
        check("User-agent: *\nDisallow: /p\nAllow: /page\n", &["/page", "/page/x", "/x"], &["/p", "/paint"]);
        check("User-agent: *\nAllow: /a\nDisallow: /a\n", &["/a"], &[]);
        // RFC 9309, 5.2.
        check(
            "User-Agent: foobot\nDisallow: /x\n\nUser-Agent: perennial\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif",
            &["/example/page/", "/x"],
            &["/example/page/disallowed.gif"],
        );
    }

    #[test]
    fn stars_and_end() {
        check("User-agent: *\nDisallow: *.gif$\n", &["/a.gif?x", "/gif"], &["/a.gif", "/b/c.gif"]);
        check("User-agent: *\nDisallow: /fish*.php\n", &["/Fish.PHP"], &["/fish.php", "/fishheads/x.php?y"]);
        check("User-agent: *\nDisallow: /a*b*c$\n", &["/abcd", "/ab"], &["/abc", "/axxbxxbc"]);
        check("User-agent: *\nDisallow: /$\n", &["/index"], &["/"]);
        check("User-agent: *\nDisallow: /*/$\n", &["/x", "/"], &["/x/", "/x/y/"]);
    }

    #[test]
    fn escapes_compare_in_one_form() {
        // RFC 9309, 2.2.2: the table of encodings.
        check("User-agent: *\nDisallow: /foo/bar?baz=quz\n", &[], &["/foo/bar?baz=quz"]);
        check("User-agent: *\nDisallow: /foo/bar/\u{30c4}\n", &[], &["/foo/bar/%E3%83%84"]);
        check("User-agent: *\nDisallow: /foo/bar/%E3%83%84\n", &[], &["/foo/bar/%e3%83%84"]);
        check("User-agent: *\nDisallow: /foo/bar/%62%61%7A\n", &[], &["/foo/bar/baz"]);
        check("User-agent: *\nDisallow: /a%2Ab\n", &["/axb"], &["/a%2ab"]);
        check("User-agent: *\nDisallow: /{{x}}\n", &[], &["/%7B%7Bx%7D%7D"]);
    }

    #[test]
    fn groups_are_joined_and_names_have_versions() {
        check(
            "User-agent: perennial/1.2\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n\nUser-agent: PERENNIAL\nDisallow: /c\n\nUser-agent: *\nDisallow: /",
            &["/b", "/d"],
            &["/a", "/c"],
        );
        check("User-agent: a\nUser-agent: perennial\nDisallow: /a\n", &["/b"], &["/a"]);
        check("User-agent: a\n\n\nDisallow: /a\nUser-agent: *\nDisallow: /b", &["/a"], &["/b"]);
        check("User-agent: perennial-news\nDisallow: /\n", &["/a"], &[]);
        check("Disallow: /a\n", &["/a"], &[]);
        check("User-agent: perennial\n\nUser-agent: *\nDisallow: /", &[], &["/x"]);
        check("User-agent: perennial\nDisallow:\n\nUser-agent: *\nDisallow: /", &["/x"], &[]);
    }

    #[test]
    fn odd_files() {
        check("\u{feff}User-agent: *\r\nDisallow: /a # why\r\n", &["/b"], &["/a"]);
        check("User-agent: *\rDisallow: /a\r", &["/b"], &["/a"]);
        check("<html><body>Not: found</body></html>", &["/a"], &[]);
        check("User-agent : *\nDISALLOW : a\n", &["/b"], &["/a"]);
        check("User-agent: *\nDisallow: /\n", &["/robots.txt"], &["/"]);
    }

    #[test]
    fn five_hundred_kib_are_read_and_no_half_line() {
        let mut text = String::from("User-agent: *\n");
        while text.len() < MAX_ROBOTS_BYTES - 4 {
            text.push_str("#\n");
        }
        text.push_str("Disallow: /beyond\n");
        check(&text, &["/beyond", "/Dis"], &[]);
        let early = format!("User-agent: *\nDisallow: /a\n{}", "#\n".repeat(MAX_ROBOTS_BYTES));
        check(&early, &[], &["/a"]);
    }

    #[test]
    fn delay_and_sitemaps() {
        let text =
            "Sitemap: https://e.org/1.xml\nUser-agent: *\nCrawl-delay: 2.5\nDisallow:\nsitemap: /2.xml\n";
        let robots = Robots::parse(text.as_bytes(), "perennial");
        assert_eq!(robots.crawl_delay_secs(), Some(2.5));
        assert_eq!(robots.sitemaps(), ["https://e.org/1.xml", "/2.xml"]);
        let bad = Robots::parse(b"User-agent: *\nCrawl-delay: -1\nCrawl-delay: NaN\nCrawl-delay: x\n", "p");
        assert_eq!(bad.crawl_delay_secs(), None);
    }

    #[test]
    fn status_decides_before_the_text() {
        assert_eq!(RobotsStatus::from_http(Some(404)), RobotsStatus::Unavailable);
        assert_eq!(RobotsStatus::from_http(Some(200)), RobotsStatus::Text);
        for status in [Some(500), Some(503), Some(429), None] {
            assert_eq!(RobotsStatus::from_http(status), RobotsStatus::Unreachable);
        }
    }

    /// A short matcher that takes exponential time.
    fn slow_matches(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => true,
            [b'$'] => path.is_empty(),
            [b'*', rest @ ..] => (0..=path.len()).any(|at| slow_matches(rest, &path[at..])),
            [byte, rest @ ..] => path.first() == Some(byte) && slow_matches(rest, &path[1..]),
        }
    }

    proptest! {
        #[test]
        fn matcher_agrees_with_the_obvious_one(pattern in "/[ab*]{0,7}\\$?", path in "/[ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &path), slow_matches(pattern.as_bytes(), path.as_bytes()));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400), path in "/\\PC{0,20}") {
            let _ = Robots::parse(&bytes, "perennial").allows(&path);
        }
    }
}
