//! Rewritten header fields with URLs, and the content security policy of replayed content.

use perennial_core::memento::Modifier;
use perennial_warc::http::HttpHead;

use super::url::RewritePlace;

/// `Link` fields that are read.
const MAX_LINK_FIELDS: usize = 20;

/// Link relations that a browser follows automatically.
const FOLLOWED: [&str; 4] = ["stylesheet", "preload", "modulepreload", "icon"];

/// `Refresh` and `Link` with rewritten URLs. The server's `headers` module handles all other fields.
pub fn leading_fields(head: &HttpHead, place: &RewritePlace) -> Vec<(&'static str, String)> {
    let refresh = head.get("Refresh").and_then(|value| place.rewrite_refresh(&value));
    let links = head.get_all("Link").take(MAX_LINK_FIELDS).filter_map(|value| followed_links(&value, place));
    let refresh = refresh.map(|value| ("refresh", printable(&value)));
    refresh.into_iter().chain(links.map(|value| ("link", value)).collect::<Vec<_>>()).collect()
}

/// Visible ASCII and blanks, so that the value cannot end the field.
fn printable(value: &str) -> String {
    value.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// The links that a browser follows automatically, with rewritten URLs.
fn followed_links(value: &str, place: &RewritePlace) -> Option<String> {
    let mut found = Vec::new();
    for link in links_in(value) {
        let Some((url, parameters)) = link.trim().strip_prefix('<').and_then(|rest| rest.split_once('>'))
        else {
            continue;
        };
        let lower = parameters.to_ascii_lowercase();
        let Some(relation) = FOLLOWED.iter().find(|word| lower.contains(*word)) else { continue };
        let part = match *relation {
            "stylesheet" => Modifier::Style,
            "modulepreload" => Modifier::Script,
            "icon" => Modifier::Image,
            _ if lower.contains("style") => Modifier::Style,
            _ if lower.contains("script") => Modifier::Script,
            _ => Modifier::Object,
        };
        found.extend(place.rewrite(url, part).map(|to| format!("<{to}>{parameters}")));
    }
    (!found.is_empty()).then(|| printable(&found.join(", ")))
}

/// Splits a list of links at commas outside URLs and quotes.
fn links_in(value: &str) -> Vec<&str> {
    let (mut found, mut start, mut is_in_url, mut is_quoted) = (Vec::new(), 0, false, false);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'<' if !is_quoted => is_in_url = true,
            b'>' if !is_quoted => is_in_url = false,
            b'"' if !is_in_url => is_quoted = !is_quoted,
            b',' if !is_in_url && !is_quoted => {
                found.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&value[start..]);
    found
}

/// Allows everything within the replay origin and nothing elsewhere. Even a page that defeats all rewriting cannot load from a
/// different host, send a form there, or be shown in a foreign frame.
pub fn policy(main_origin: &str, may_run_scripts: bool) -> String {
    let scripts = if may_run_scripts { "'self' data: blob: 'unsafe-inline' 'unsafe-eval'" } else { "'none'" };
    format!(
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; script-src {scripts}; connect-src 'self' data: blob:; \
         worker-src 'self' blob:; frame-src 'self' data: blob:; form-action 'self'; base-uri 'self'; \
         frame-ancestors 'self' {main_origin}"
    )
}

/// Device features that archived content may not use.
pub const PERMISSIONS: &str = "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), hid=(), midi=(), \
     display-capture=(), bluetooth=()";

#[cfg(test)]
mod tests {

    use super::*;

    fn fields(line: &str) -> Vec<(&'static str, String)> {
        let place = RewritePlace::of_test("2020", "http://a.example/x/");
        let head = format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n");
        leading_fields(&HttpHead::parse(head.as_bytes()), &place)
    }

    #[test]
    fn urls_lead_into_the_archive() {
        let refreshed = fields("Refresh: 3; url=http://b.example/");
        assert_eq!(refreshed, [("refresh", "3; url=/web/2020mp_/http://b.example/".to_string())]);
        let links = "Link: </a,b.css>; rel=stylesheet, <http://c.example/>; rel=\"next, last\", <d.js>; rel=preload; as=script";
        assert_eq!(
            fields(links)[0].1,
            "</web/2020cs_/http://a.example/a,b.css>; rel=stylesheet, \
             </web/2020js_/http://a.example/x/d.js>; rel=preload; as=script"
        );
    }

    #[test]
    fn nothing_ends_a_field() {
        let found = fields("Refresh: 0; url=/a\rSet-Cookie: x=y\u{1}\r\nLink: <é\r>; rel=icon");
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(_, value)| value.chars().all(|c| c == ' ' || c.is_ascii_graphic())));
    }
}
