//! The head of an archived answer -> the fields of a replayed one, and the policy that holds what is replayed.
//!
//! What an archived server asked of a browser was meant for its own origin: policies, cookies, transport. Such fields become
//! `X-Archive-Orig-...`, for people to read and for no browser to obey.

use perennial_core::http::HttpHead;

use super::url::{Part, Place};

/// Names of original fields, as the field's clients know them.
const ORIGINAL: &str = "X-Archive-Orig-";

/// Fields that say the same of a replay.
const KEPT: [&str; 3] = ["content-language", "content-disposition", "content-style-type"];

/// Fields that are nobody's business: of the connection, or secrets.
const DROPPED: [&str; 11] = [
    "set-cookie",
    "set-cookie2",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "www-authenticate",
    "clear-site-data",
];

/// Links of a head that a browser follows by itself.
const FOLLOWED: [&str; 4] = ["stylesheet", "preload", "modulepreload", "icon"];

/// Fields of an archived head that are told.
const MAX_FIELDS: usize = 100;
/// A longer value is not told.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// The fields of a replay that come from the archived head: addresses rewritten, the rest under another name. Content type and length
/// are the replay's own.
pub fn replayed_fields(head: &HttpHead, place: &Place) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (name, value) in head.fields().take(MAX_FIELDS) {
        let lower = name.to_ascii_lowercase();
        let is_name = !lower.is_empty() && lower.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_name || value.len() > MAX_VALUE_BYTES || DROPPED.contains(&lower.as_str()) {
            continue;
        }
        let value = printable(&value);
        match lower.as_str() {
            "location" => fields.extend(location(&value, place).map(|to| ("Location".into(), to))),
            "refresh" => fields.extend(place.rewrite_refresh(&value).map(|to| ("Refresh".into(), printable(&to)))),
            "link" => fields.extend(followed_links(&value, place).map(|to| ("Link".into(), to))),
            kept if KEPT.contains(&kept) => fields.push((name.to_string(), value.clone())),
            _ => {}
        }
        fields.push((format!("{ORIGINAL}{name}"), value));
    }
    fields
}

/// Where a redirect leads, in this archive.
pub fn location(value: &str, place: &Place) -> Option<String> {
    let url = place.charset.join(&place.base, value.trim())?;
    matches!(url.scheme(), "http" | "https" | "ftp").then(|| place.to(&url, Part::Page))
}

/// Visible ASCII and blanks: nothing that could end a field.
fn printable(value: &str) -> String {
    value.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// The links that a browser follows by itself, with their addresses rewritten.
fn followed_links(value: &str, place: &Place) -> Option<String> {
    let mut found = Vec::new();
    for link in links_in(value) {
        let Some((address, parameters)) = link.trim().strip_prefix('<').and_then(|rest| rest.split_once('>')) else {
            continue;
        };
        let lower = parameters.to_ascii_lowercase();
        let Some(relation) = FOLLOWED.iter().find(|word| lower.contains(*word)) else { continue };
        let part = match *relation {
            "stylesheet" => Part::Style,
            "modulepreload" => Part::Script,
            "icon" => Part::Image,
            _ if lower.contains("style") => Part::Style,
            _ if lower.contains("script") => Part::Script,
            _ => Part::Other,
        };
        found.extend(place.rewrite(address, part).map(|to| format!("<{to}>{parameters}")));
    }
    (!found.is_empty()).then(|| printable(&found.join(", ")))
}

/// Splits a list of links at the commas between them, not at those in addresses or quotes.
fn links_in(value: &str) -> Vec<&str> {
    let (mut found, mut start, mut is_in_address, mut is_quoted) = (Vec::new(), 0, false, false);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'<' if !is_quoted => is_in_address = true,
            b'>' if !is_quoted => is_in_address = false,
            b'"' if !is_in_address => is_quoted = !is_quoted,
            b',' if !is_in_address && !is_quoted => {
                found.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&value[start..]);
    found
}

/// What archived content may do: everything within the origin of replays, nothing elsewhere. Even a page that escapes every
/// rewriting loads nothing from another host, sends no form there, and is shown in no frame but ours.
pub fn policy(main_origin: &str, may_run_scripts: bool) -> String {
    let scripts = if may_run_scripts { "'self' data: blob: 'unsafe-inline' 'unsafe-eval'" } else { "'none'" };
    format!(
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; script-src {scripts}; connect-src 'self' data: blob:; \
         worker-src 'self' blob:; frame-src 'self' data: blob:; form-action 'self'; base-uri 'self'; \
         frame-ancestors 'self' {main_origin}"
    )
}

/// The fields that every answer with archived content carries.
pub fn holding_fields(main_origin: &str, may_run_scripts: bool) -> [(&'static str, String); 5] {
    [
        ("Content-Security-Policy", policy(main_origin, may_run_scripts)),
        // The archive must know which page asks, and nobody else may.
        ("Referrer-Policy", "same-origin".into()),
        ("X-Content-Type-Options", "nosniff".into()),
        ("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), hid=(), midi=(), display-capture=()".into()),
        ("X-DNS-Prefetch-Control", "off".into()),
    ]
}

#[cfg(test)]
mod tests {
    use perennial_core::charset::Charset;
    use url::Url;

    use super::*;

    fn fields(head: &str) -> Vec<(String, String)> {
        let place = Place {
            root: "/web/".into(),
            time: "2020".into(),
            base: Url::parse("http://a.example/x/").unwrap(),
            charset: Charset::default(),
        };
        replayed_fields(&HttpHead::parse(head.as_bytes()), &place)
    }

    fn check(line: &str, expected: &[(&str, &str)]) {
        let found = fields(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n"));
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn policies_and_cookies_are_not_obeyed() {
        check("Set-Cookie: a=b", &[]);
        check("Clear-Site-Data: \"*\"", &[]);
        check(
            "Strict-Transport-Security: max-age=1",
            &[("X-Archive-Orig-Strict-Transport-Security", "max-age=1")],
        );
        check(
            "Content-Security-Policy: default-src 'none'",
            &[("X-Archive-Orig-Content-Security-Policy", "default-src 'none'")],
        );
    }

    #[test]
    fn addresses_lead_into_the_archive() {
        check(
            "Location: ../y",
            &[("Location", "/web/2020mp_/http://a.example/y"), ("X-Archive-Orig-Location", "../y")],
        );
        check("Location: javascript:x", &[("X-Archive-Orig-Location", "javascript:x")]);
        let refreshed = fields("HTTP/1.1 200 OK\r\nRefresh: 3; url=http://b.example/\r\n\r\n");
        assert_eq!(refreshed[0], ("Refresh".into(), "3; url=/web/2020mp_/http://b.example/".into()));
        let links = "Link: </a,b.css>; rel=stylesheet, <http://c.example/>; rel=\"next, last\", <d.js>; rel=preload; as=script";
        let linked = fields(&format!("HTTP/1.1 200 OK\r\n{links}\r\n\r\n"));
        assert_eq!(
            linked[0].1,
            "</web/2020cs_/http://a.example/a,b.css>; rel=stylesheet, \
             </web/2020js_/http://a.example/x/d.js>; rel=preload; as=script"
        );
    }

    #[test]
    fn nothing_ends_a_field() {
        let found = fields("HTTP/1.1 302 F\r\nLocation: /a\rSet-Cookie: x=y\r\nX\u{1}: 1\r\nBad Name: 2\r\n\r\n");
        assert!(found.iter().all(|(name, value)| {
            !name.contains(['\r', '\n', ' ']) && value.chars().all(|c| c == ' ' || c.is_ascii_graphic())
        }));
        assert!(found.iter().all(|(name, _)| !name.to_ascii_lowercase().starts_with("set-cookie")));
    }
}
