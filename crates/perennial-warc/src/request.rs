//! A request with a method other than GET -> the URL under which its response is indexed, and back.
//!
//! The response to such a request depends on its method and body, so both become parameters of the URL:
//! `?__wb_method=POST&name=value`. Bodies are converted as pywb and `cdxj-indexer` do. They therefore find captures in
//! our indexes, and we find captures in theirs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use data_encoding::BASE64;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode, percent_encode};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Bytes of a body that distinguish requests.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// Characters of a converted body that distinguish requests, as in other tools.
const MAX_QUERY_CHARS: usize = 4096;
/// Bytes of it, which keep the URL below the longest one that is indexed.
const MAX_QUERY_BYTES: usize = 8 << 10;
const MAX_METHOD_BYTES: usize = 16;
const METHOD: &str = "__wb_method=";
const BINARY: &str = "__wb_post_data=";

/// Characters that a body in a URL escapes.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'#').add(b'%').add(b'"').add(b'<').add(b'>');
/// Characters that Python's `urlencode` escapes.
const FORM_ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~').remove(b' ');

/// The parts of a URL that [`capture_url`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedRequest<'a> {
    /// The URL as requested.
    pub url: &'a str,
    /// The method, in capitals.
    pub method: &'a str,
    /// The body as escaped parameters; often shortened, empty if there was none.
    pub body: &'a str,
}

/// Returns the URL under which the response to a request is indexed. It is the requested one for GET.
pub fn capture_url<'a>(url: &'a str, method: &str, content_type: &str, body: &[u8]) -> Cow<'a, str> {
    let method = method.to_ascii_uppercase();
    let is_method =
        method.bytes().all(|b| b.is_ascii_uppercase()) && (1..=MAX_METHOD_BYTES).contains(&method.len());
    if method == "GET" || !is_method {
        return Cow::Borrowed(url);
    }
    let query = match method.as_str() {
        "POST" | "PUT" | "PATCH" if !body.is_empty() => {
            to_query(content_type, &body[..body.len().min(MAX_BODY_BYTES)])
        }
        _ => String::new(),
    };
    Cow::Owned(with_query(url, &method, &query))
}

/// Returns the URL under which an index line with these fields is found. `query` is its `requestBody`.
pub fn with_query(url: &str, method: &str, query: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    let end = query.char_indices().nth(MAX_QUERY_CHARS).map_or(query.len(), |(at, _)| at);
    let end = end.min(query.floor_char_boundary(MAX_QUERY_BYTES));
    let query = percent_encode(&query.as_bytes()[..end], ESCAPED);
    let ampersand = if end == 0 { "" } else { "&" };
    format!("{url}{separator}{METHOD}{method}{ampersand}{query}")
}

impl CapturedRequest<'_> {
    /// Splits a URL that contains a method; `None` if it contains none.
    pub fn parse(capture_url: &str) -> Option<CapturedRequest<'_>> {
        let at = capture_url.find(METHOD)?;
        let url = capture_url[..at].strip_suffix(['?', '&'])?;
        let rest = &capture_url[at + METHOD.len()..];
        let (method, body) = rest.split_once('&').unwrap_or((rest, ""));
        Some(CapturedRequest { url, method, body })
    }

    /// The body as parameters, as index lines contain it in `requestBody`.
    pub fn query(&self) -> String {
        percent_decode(self.body.as_bytes()).decode_utf8_lossy().into_owned()
    }
}

/// Returns the URL as requested.
pub fn requested_url(capture_url: &str) -> &str {
    CapturedRequest::parse(capture_url).map_or(capture_url, |request| request.url)
}

/// Converts a body to parameters.
fn to_query(content_type: &str, body: &[u8]) -> String {
    let mime = content_type.trim().to_ascii_lowercase();
    if mime.starts_with("application/x-www-form-urlencoded") {
        match std::str::from_utf8(body) {
            Ok(text) => unescape_form(text),
            Err(_) => binary(body),
        }
    } else if mime.starts_with("multipart/") {
        boundary(content_type).map_or_else(|| binary(body), |boundary| form_data(body, &boundary))
    } else if mime.starts_with("application/json") {
        json(body).unwrap_or_default()
    } else if mime.starts_with("text/plain") {
        json(body).unwrap_or_else(|| binary(body))
    } else {
        binary(body)
    }
}

fn binary(body: &[u8]) -> String {
    // Longer ones are shortened anyway.
    format!("{BINARY}{}", BASE64.encode(&body[..body.len().min(MAX_QUERY_CHARS)]))
}

fn unescape_form(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode(text.as_bytes()).decode_utf8_lossy().into_owned()
}

fn escape_form(bytes: &[u8]) -> String {
    percent_encode(bytes, FORM_ESCAPED).to_string().replace(' ', "+")
}

fn boundary(content_type: &str) -> Option<String> {
    let at = content_type.to_ascii_lowercase().find("boundary=")?;
    let value = content_type[at + "boundary=".len()..].split(';').next()?.trim().trim_matches('"');
    (!value.is_empty()).then(|| value.to_string())
}

/// The fields of a multipart form.
fn form_data(body: &[u8], boundary: &str) -> String {
    let delimiter = format!("--{boundary}");
    let mut fields = Vec::new();
    let mut starts = memchr::memmem::find_iter(body, delimiter.as_bytes()).peekable();
    while let Some(start) = starts.next() {
        let end = starts.peek().copied().unwrap_or(body.len());
        let part = &body[(start + delimiter.len()).min(end)..end];
        let Some(head_end) = memchr::memmem::find(part, b"\r\n\r\n") else { continue };
        let content = &part[head_end + 4..];
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        if let Some(name) = field_name(&String::from_utf8_lossy(&part[..head_end])) {
            fields.push(format!("{}={}", escape_form(name.as_bytes()), escape_form(content)));
        }
    }
    fields.join("&")
}

fn field_name(head: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition"))?;
    let parameter = line.split(';').skip(1).find_map(|part| part.trim().strip_prefix("name="))?;
    Some(parameter.trim().trim_matches('"').to_string())
}

/// The named values of a JSON text in their order; `None` if it is not JSON.
fn json(body: &[u8]) -> Option<String> {
    let mut leaves = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    JsonLeaves { name: "", found: &mut leaves }.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    let mut used = HashSet::new();
    let mut n_alike: HashMap<String, u32> = HashMap::new();
    let mut pairs = Vec::with_capacity(leaves.len());
    for (name, value) in leaves {
        let mut key = name.clone();
        if used.contains(&name) {
            let n = n_alike.entry(name).or_insert(1);
            *n += 1;
            key = format!("{key}.{n}_");
        }
        pairs.push(format!("{}={}", escape_form(key.as_bytes()), escape_form(value.as_bytes())));
        used.insert(key);
    }
    Some(pairs.join("&"))
}

/// Collects the values that are neither objects nor arrays, with the name of the nearest object member.
struct JsonLeaves<'a> {
    name: &'a str,
    found: &'a mut Vec<(String, String)>,
}

impl JsonLeaves<'_> {
    fn add(self, value: &str) {
        if !self.name.is_empty() {
            self.found.push((self.name.to_string(), value.to_string()));
        }
    }
}

impl<'de> DeserializeSeed<'de> for JsonLeaves<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonLeaves<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(JsonLeaves { name: &name, found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let name = self.name;
        while values.next_element_seed(JsonLeaves { name, found: &mut *self.found })?.is_some() {}
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add(text);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.add(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.add(&value.to_string());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.add(&value.to_string());
        Ok(())
    }

    /// Whole numbers are written without a decimal point, as in JavaScript.
    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.add(&value.to_string());
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.add("null");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surt::surt;

    const FORM: &str = "application/x-www-form-urlencoded";

    /// Expected values are those of pywb 2.10.
    #[test]
    fn bodies_become_the_parameters_that_other_tools_write() {
        let multipart = "multipart/form-data; boundary=XX";
        let parts = "--XX\r\nContent-Disposition: form-data; name=\"a b\"\r\n\r\none&two\r\n--XX\r\n\
            Content-Disposition: form-data; name=\"f\"; filename=\"x.bin\"\r\nContent-Type: x/y\r\n\r\n\u{e9}\r\n--XX--\r\n";
        for (content_type, body, expected) in [
            (FORM, "a=b+c&d=%C3%A9%2B", "a=b%20c&d=%C3%A9+"),
            ("application/x-www-form-urlencoded; charset=UTF-8", "foo=bar&test=abc", "foo=bar&test=abc"),
            (
                "application/json",
                r#"{"z":1.0,"a":{"z":"x y","l":[true,null,{"z":2.5}]}}"#,
                "z=1&z.2_=x+y&l=true&l.2_=null&z.3_=2.5",
            ),
            ("application/json", "{not json", ""),
            ("text/plain;charset=UTF-8", r#"{"q":"é"}"#, "q=%25C3%25A9"),
            ("text/plain", "hello", "__wb_post_data=aGVsbG8="),
            ("", "\u{1}", "__wb_post_data=AQ=="),
            (multipart, parts, "a+b=one%2526two&f=%25C3%25A9"),
        ] {
            let url = capture_url("https://a.example/api", "post", content_type, body.as_bytes());
            let ampersand = if expected.is_empty() { "" } else { "&" };
            assert_eq!(url, format!("https://a.example/api?__wb_method=POST{ampersand}{expected}"), "{body}");
        }
    }

    #[test]
    fn the_requested_url_is_read_back() {
        for url in ["https://a.example/", "https://a.example/?", "https://a.example/?a=1", "urn:x"] {
            assert_eq!(capture_url(url, "GET", FORM, b"a=1"), url);
            assert_eq!(requested_url(url), url);
            for method in ["POST", "PUT", "HEAD", "DELETE"] {
                let capture = capture_url(url, method, FORM, b"x=1&__wb_method=y");
                let request = CapturedRequest::parse(&capture).unwrap();
                assert_eq!((request.url, request.method), (url, method));
                assert_eq!(with_query(url, method, &request.query()), capture);
            }
        }
        assert_eq!(capture_url("https://a.example/", "P O", FORM, b""), "https://a.example/");
    }

    #[test]
    fn keys_equal_those_of_other_tools() {
        let url = capture_url("http://httpbin.org/post", "POST", FORM, b"foo=bar&test=A%20b");
        assert_eq!(surt(&url), "org,httpbin)/post?__wb_method=post&foo=bar&test=a%20b");
    }

    #[test]
    fn long_and_hostile_bodies_are_bounded() {
        for (content_type, body) in [
            (FORM, "a=".to_string() + &"%25".repeat(1 << 20)),
            ("application/json", "[".repeat(1 << 20)),
            ("application/json", format!("{{\"a\":[{}1]}}", "1,".repeat(400_000))),
            ("multipart/x; boundary=-", "-".repeat(1 << 20)),
            ("x", "\u{0}".repeat(1 << 21)),
            (FORM, "\u{1f600}".repeat(1 << 16)),
        ] {
            let url = capture_url("http://a.example/", "POST", content_type, body.as_bytes());
            assert!(url.len() < 32 << 10, "{content_type}: {}", url.len());
        }
    }
}
