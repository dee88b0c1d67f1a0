//! Rewrites a URL in an archived document.
//!
//! Every URL becomes `<root><time><modifier>/<url>`, so that a browser requests it from the archive at the time of the page. URLs that stay
//! within the document (a fragment, `data:`, `javascript:`) are unchanged, because the response's policy limits them (module `headers`).
//! Invalid URLs become `about:invalid`.

use perennial_core::memento::Modifier;
use perennial_core::text::charset::Charset;
use url::Url;

/// Schemes that are unchanged, because they contact no server or only open a local program.
const KEPT_SCHEMES: [&str; 8] = ["javascript", "data", "blob", "about", "mailto", "tel", "sms", "xmpp"];

/// Replaces invalid URLs and URLs of other schemes.
pub const NOWHERE: &str = "about:invalid";

/// How the URLs of a document are rewritten.
#[derive(Clone, Debug)]
pub struct RewritePlace {
    /// Path of replayed URLs, such as `/web/`; it begins and ends with a slash.
    pub root: String,
    /// The time of the page, up to 14 digits.
    pub time: String,
    /// The base of relative URLs: the document's URL, or that of its `<base>`.
    pub base: Url,
    /// The encoding of the document, which is also that of queries in its URLs.
    pub charset: Charset,
}

impl RewritePlace {
    /// The URL in this archive.
    pub fn to(&self, url: &Url, part: Modifier) -> String {
        format!("{}{}{}/{url}", self.root, self.time, part.as_str())
    }

    /// Rewrites a reference as written in the document; `None` if it is unchanged.
    pub fn rewrite(&self, reference: &str, part: Modifier) -> Option<String> {
        let trimmed = reference.trim_matches(|c: char| c <= ' ');
        if trimmed.is_empty() || trimmed.starts_with('#') {
            return None;
        }
        let Some(url) = self.charset.join(&self.base, trimmed) else {
            return Some(NOWHERE.to_string());
        };
        match url.scheme() {
            "http" | "https" | "ftp" => Some(self.to(&url, part)),
            scheme if KEPT_SCHEMES.contains(&scheme) => None,
            _ => Some(NOWHERE.to_string()),
        }
    }

    /// Rewrites the candidates of a `srcset`.
    pub fn rewrite_srcset(&self, srcset: &str, part: Modifier) -> Option<String> {
        let mut out = String::with_capacity(srcset.len() * 2);
        for (url, descriptor) in candidates(srcset) {
            if !out.is_empty() {
                out.push_str(", ");
            }
            let rewritten = self.rewrite(url, part);
            // A comma at the end of a URL would separate candidates.
            out.push_str(rewritten.as_deref().unwrap_or(url).trim_end_matches(','));
            if !descriptor.is_empty() {
                out.push(' ');
                out.push_str(descriptor);
            }
        }
        (out != srcset).then_some(out)
    }

    /// Rewrites the content of `<meta http-equiv=refresh>`; `None` if it has no URL.
    pub fn rewrite_refresh(&self, content: &str) -> Option<String> {
        let at = refresh_url(content)?;
        let rewritten = self.rewrite(&content[at.clone()], Modifier::Page)?;
        let seconds: String =
            content.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        Some(format!("{}; url={rewritten}", if seconds.is_empty() { "0" } else { &seconds }))
    }
}

/// The candidates of a `srcset` (HTML standard, "parsing a srcset attribute").
fn candidates(srcset: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = srcset;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return found;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, behind) = rest.split_at(end);
        if url.ends_with(',') {
            found.push((url.trim_end_matches(','), ""));
            rest = behind;
            continue;
        }
        let mut depth = 0usize;
        let ends = |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        };
        let end = behind.find(ends).unwrap_or(behind.len());
        found.push((url, behind[..end].trim()));
        rest = &behind[end..];
    }
}

/// The position of the URL in the content of a refresh (HTML standard, "shared declarative refresh steps").
fn refresh_url(content: &str) -> Option<std::ops::Range<usize>> {
    let is_space = |c: char| c.is_ascii_whitespace();
    let rest = content.trim_start_matches(is_space);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let after_time = rest.trim_start_matches(is_space);
    let mut rest = after_time.strip_prefix([';', ',']).unwrap_or(after_time).trim_start_matches(is_space);
    if rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("url")) {
        let behind = rest[3..].trim_start_matches(is_space);
        if let Some(value) = behind.strip_prefix('=') {
            rest = value.trim_start_matches(is_space);
        }
    }
    let mut end = rest.len();
    for quote in ['"', '\''] {
        if let Some(inner) = rest.strip_prefix(quote) {
            rest = inner;
            end = inner.find(quote).unwrap_or(inner.len());
            break;
        }
    }
    let start = content.len() - rest.len();
    (end > 0).then_some(start..start + end)
}

#[cfg(test)]
impl RewritePlace {
    /// A document in the only archive of a server, for tests.
    pub(super) fn of_test(time: &str, base: &str) -> RewritePlace {
        let base = Url::parse(base).unwrap();
        RewritePlace { root: "/web/".into(), time: time.into(), base, charset: Charset::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(base: &str) -> RewritePlace {
        RewritePlace::of_test("20200102030405", base)
    }

    fn check(reference: &str, expected: Option<&str>) {
        let found = place("https://site.example/a/b.html").rewrite(reference, Modifier::Page);
        assert_eq!(found.as_deref(), expected, "{reference:?}");
    }

    #[test]
    fn every_kind_of_url_is_rewritten() {
        check("c", Some("/web/20200102030405mp_/https://site.example/a/c"));
        check("/c?d#e", Some("/web/20200102030405mp_/https://site.example/c?d#e"));
        check("//other.example", Some("/web/20200102030405mp_/https://other.example/"));
        check("http://other.example/x", Some("/web/20200102030405mp_/http://other.example/x"));
        check("../../../../c", Some("/web/20200102030405mp_/https://site.example/c"));
        check("?q", Some("/web/20200102030405mp_/https://site.example/a/b.html?q"));
        check("\n HT\tTP:\\\\evil.example\\x", Some("/web/20200102030405mp_/http://evil.example/x"));
        check("https:foo", Some("/web/20200102030405mp_/https://site.example/a/foo"));
        check("http:foo", Some("/web/20200102030405mp_/http://foo/"));
        check("ftp://f.example/x", Some("/web/20200102030405mp_/ftp://f.example/x"));
    }

    #[test]
    fn what_leads_nowhere_else_stays_and_the_rest_leads_nowhere() {
        for kept in ["", "  ", "#x", "javascript:void(0)", "JavaScript:x", "data:text/html,x", "mailto:a@b"] {
            check(kept, None);
        }
        for lost in ["http://[", "file:///etc/passwd", "chrome://settings", "ws://x.example/"] {
            check(lost, Some(NOWHERE));
        }
    }

    #[test]
    fn a_srcset_keeps_its_descriptors() {
        let place = place("http://a.example/");
        let found =
            place.rewrite_srcset("x.png 1x,\n y.png 2x, data:image/png;base64,AA== 3x", Modifier::Image);
        let to = "/web/20200102030405im_/http://a.example";
        assert_eq!(found.unwrap(), format!("{to}/x.png 1x, {to}/y.png 2x, data:image/png;base64,AA== 3x"));
        assert_eq!(place.rewrite_srcset("a,b 2x,", Modifier::Image).unwrap(), format!("{to}/a,b 2x"));
    }

    #[test]
    fn a_refresh_is_found_however_it_is_written() {
        let place = place("http://a.example/");
        for content in ["5;url=/x", "5; URL = '/x'", "5,/x", " 5 ; url=\"/x\" y", "5 /x"] {
            let found = place.rewrite_refresh(content);
            assert_eq!(
                found.as_deref(),
                Some("5; url=/web/20200102030405mp_/http://a.example/x"),
                "{content}"
            );
        }
        assert_eq!(place.rewrite_refresh("5"), None);
        assert_eq!(place.rewrite_refresh(""), None);
        assert_eq!(
            place.rewrite_refresh(";é"),
            Some("0; url=/web/20200102030405mp_/http://a.example/%C3%A9".into())
        );
    }
}
