//! The path and query of a request -> the requested memento, in the common form `/web/<time><modifier>/<url>`.
//!
//! The path contains the archived URL verbatim, including its query and without escaping. So the path must not be
//! decoded or normalised before.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::time::Timestamp;

/// The longest archived URL that is looked up.
pub const MAX_URL_BYTES: usize = crate::text::untrusted::MAX_URL_BYTES;

/// The maximum number of query parameters that are read.
const MAX_PARAMETERS: usize = 64;

/// The form of an archived body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Modifier {
    /// None: the page within our banner, if the client is a browser.
    #[default]
    Top,
    /// `id_`: the bytes as they were captured.
    Identity,
    /// `mp_`: a page, rewritten.
    Page,
    /// `if_`: a page inside a frame.
    Frame,
    /// `fr_`: a page inside a frameset.
    Frameset,
    /// `js_`: a script.
    Script,
    /// `cs_`: a style sheet.
    Style,
    /// `im_`: an image.
    Image,
    /// `oe_`: an object, audio or video.
    Object,
    /// Any other letters and an underscore. The media type decides.
    Other,
}

impl Modifier {
    /// As written in a URL, including the underscore.
    pub fn as_str(self) -> &'static str {
        match self {
            Modifier::Top => "",
            Modifier::Identity => "id_",
            Modifier::Page | Modifier::Other => "mp_",
            Modifier::Frame => "if_",
            Modifier::Frameset => "fr_",
            Modifier::Script => "js_",
            Modifier::Style => "cs_",
            Modifier::Image => "im_",
            Modifier::Object => "oe_",
        }
    }

    fn parse(text: &str) -> Option<Modifier> {
        let known = match text {
            "" => Modifier::Top,
            "id_" => Modifier::Identity,
            "mp_" => Modifier::Page,
            "if_" => Modifier::Frame,
            "fr_" => Modifier::Frameset,
            "js_" => Modifier::Script,
            "cs_" => Modifier::Style,
            "im_" => Modifier::Image,
            "oe_" => Modifier::Object,
            _ => {
                let letters = text.strip_suffix('_')?;
                let is_word = (1..=8).contains(&letters.len());
                return (is_word && letters.bytes().all(|b| b.is_ascii_lowercase()))
                    .then_some(Modifier::Other);
            }
        };
        Some(known)
    }
}

/// The time in a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestedTime {
    /// None: the URL is a TimeGate.
    Unsaid,
    /// `*`: all captures.
    All,
    /// Some digits and `*`: all captures between two instants.
    Within {
        /// The first instant with these digits.
        from: Timestamp,
        /// The last instant with these digits.
        to: Timestamp,
        n_digits: usize,
    },
    /// Some digits of a time.
    At {
        /// The instant; missing digits have their highest value.
        time: Timestamp,
        /// How many of the fourteen digits were given.
        n_digits: usize,
    },
}

/// A parsed `/web/...` URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayUrl {
    pub when: RequestedTime,
    pub modifier: Modifier,
    /// The archived URL as the client wrote it, with a scheme.
    pub url: String,
}

impl ReplayUrl {
    /// Parses the part after `/web/`, including the query. `None` if it contains no URL.
    pub fn parse(rest: &str) -> Option<ReplayUrl> {
        if rest.len() > MAX_URL_BYTES + 64 {
            return None;
        }
        let (first, behind) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some((when, modifier)) = parse_when(first).filter(|_| !behind.is_empty()) {
            return Some(ReplayUrl { when, modifier, url: with_scheme(behind)? });
        }
        Some(ReplayUrl { when: RequestedTime::Unsaid, modifier: Modifier::Top, url: with_scheme(rest)? })
    }
}

/// `20140102030405js_` -> time and modifier. A modifier without digits occurs alone or after `*`: `mp_/http://...`
/// requests the latest capture.
fn parse_when(text: &str) -> Option<(RequestedTime, Modifier)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((RequestedTime::All, Modifier::parse(rest)?));
    }
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=14).contains(&n_digits) && &text[n_digits..] == "*" {
        let digits = &text[..n_digits];
        let within = RequestedTime::Within { from: earliest_time(digits), to: latest_time(digits), n_digits };
        return Some((within, Modifier::Top));
    }
    let modifier = Modifier::parse(&text[n_digits..])?;
    match n_digits {
        0 if modifier == Modifier::Top => None,
        0 => Some((RequestedTime::Unsaid, modifier)),
        // Some clients add milliseconds, which no URL of a memento has.
        1..=14 | 17 => {
            let n_digits = n_digits.min(14);
            Some((RequestedTime::At { time: latest_time(&text[..n_digits]), n_digits }, modifier))
        }
        _ => None,
    }
}

/// The last instant that begins with 1 to 14 digits, as in other replay systems: `2014` is the end of that year, `2`
/// the latest possible time. An invalid month, day or hour becomes the nearest valid one, because clients cut times
/// anywhere and invent day 31.
pub fn latest_time(digits: &str) -> Timestamp {
    complete_time(digits, Bound::Latest)
}

/// The first instant that begins with 1 to 14 digits.
pub fn earliest_time(digits: &str) -> Timestamp {
    complete_time(digits, Bound::Earliest)
}

#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Earliest,
    Latest,
}

/// The last year of which all days are valid in every time type.
const MAX_YEAR: i64 = 9998;

fn complete_time(digits: &str, side: Bound) -> Timestamp {
    let digits: Vec<i64> =
        digits.bytes().filter(u8::is_ascii_digit).map(|b| i64::from(b - b'0')).take(14).collect();
    let missing = |lowest: i64, highest: i64| if side == Bound::Latest { highest } else { lowest };
    // A missing digit in the middle of a part takes any value that makes the part valid.
    let part = |from: usize, lowest: i64, highest: i64| match (digits.get(from), digits.get(from + 1)) {
        (Some(tens), Some(ones)) => (tens * 10 + ones).clamp(lowest, highest),
        (Some(tens), None) => (tens * 10 + missing(0, 9)).clamp(lowest, highest),
        (None, _) => missing(lowest, highest),
    };
    let defaults = if side == Bound::Latest { [2, 9, 9, 9] } else { [1, 0, 0, 0] };
    let year =
        (0..4).fold(0, |year, place| year * 10 + digits.get(place).copied().unwrap_or(defaults[place]));
    let (year, month) = (year.min(MAX_YEAR), part(4, 1, 12));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let n_days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let (day, hour, minute, second) = (part(6, 1, n_days), part(8, 0, 23), part(10, 0, 59), part(12, 0, 59));
    let text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}");
    Timestamp::parse(&text).unwrap_or(Timestamp::EPOCH)
}

/// Restores the archived URL from a request path: the default scheme is http, and a slash that a proxy merged is
/// added. `None` if the text cannot be a URL.
fn with_scheme(text: &str) -> Option<String> {
    let text = text.trim_start_matches('/');
    if text.is_empty() || text.len() > MAX_URL_BYTES || text.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return None;
    }
    for scheme in ["http", "https", "ftp"] {
        let Some(rest) = strip_prefix_ignoring_case(text, scheme).and_then(|rest| rest.strip_prefix(":/"))
        else {
            continue;
        };
        let host = rest.trim_start_matches('/');
        return (!host.is_empty()).then(|| format!("{scheme}://{host}"));
    }
    let has_scheme = ["urn:", "dns:", "metadata:"].iter().any(|scheme| text.starts_with(scheme));
    Some(if has_scheme { text.to_string() } else { format!("http://{text}") })
}

fn strip_prefix_ignoring_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

impl fmt::Display for ReplayUrl {
    /// The part after `/web/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modifier = self.modifier.as_str();
        match self.when {
            RequestedTime::Unsaid if self.modifier == Modifier::Top => f.write_str(&self.url),
            RequestedTime::Unsaid => write!(f, "{modifier}/{}", self.url),
            RequestedTime::All => write!(f, "*{modifier}/{}", self.url),
            RequestedTime::Within { from, n_digits, .. } => {
                let digits = from.to_digits14();
                write!(f, "{}*/{}", digits.get(..n_digits).unwrap_or(&digits), self.url)
            }
            RequestedTime::At { time, n_digits } => {
                let digits = time.to_digits14();
                write!(f, "{}{modifier}/{}", digits.get(..n_digits).unwrap_or(&digits), self.url)
            }
        }
    }
}

/// The parameters of a query, decoded: `a=b&c=d+e`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueryParameters(Vec<(String, String)>);

impl QueryParameters {
    /// Parses a query without its question mark. Invalid escapes remain as they are.
    pub fn parse(text: &str) -> QueryParameters {
        QueryParameters(form_urlencoded::parse(text.as_bytes()).into_owned().take(MAX_PARAMETERS).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    /// Whether a flag such as `showNumPages=true` is set.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "true" | "1" | "yes" | ""))
    }
}

/// Decodes percent escapes, and optionally `+` as a space. Invalid UTF-8 becomes U+FFFD.
pub fn unescape(text: &str, plus_is_blank: bool) -> String {
    let text = if plus_is_blank { text.replace('+', " ") } else { text.to_owned() };
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// The bytes that are escaped in the value of a query parameter: all but the unreserved ones of RFC 3986.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Escapes a text for the value of a query parameter.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, &RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(rest: &str) -> String {
        match ReplayUrl::parse(rest) {
            Some(replay_url) => {
                let when = match replay_url.when {
                    RequestedTime::Unsaid => "-".to_string(),
                    RequestedTime::All => "*".to_string(),
                    RequestedTime::Within { from, to, .. } => {
                        format!("{}-{}", from.to_digits14(), to.to_digits14())
                    }
                    RequestedTime::At { time, n_digits } => format!("{}/{n_digits}", time.to_digits14()),
                };
                format!("{when} {:?} {}", replay_url.modifier, replay_url.url)
            }
            None => "none".to_string(),
        }
    }

    #[test]
    fn urls_as_clients_write_them() {
        for (rest, expected) in [
            ("20140102030405/http://a.example/", "20140102030405/14 Top http://a.example/"),
            ("20140102030405id_/http://a.example/x?y=z", "20140102030405/14 Identity http://a.example/x?y=z"),
            ("2014/a.example/b", "20141231235959/4 Top http://a.example/b"),
            ("2014mp_/https:/a.example/b", "20141231235959/4 Page https://a.example/b"),
            ("20140102030405wkr_/http://a.example/", "20140102030405/14 Other http://a.example/"),
            ("*/http://a.example/*", "* Top http://a.example/*"),
            ("2014022/a.example/", "20140228235959/7 Top http://a.example/"),
            ("20141/a.example/", "20141231235959/5 Top http://a.example/"),
            ("201402*/a.example/", "20140201000000-20140228235959 Top http://a.example/"),
            ("mp_/http://a.example/", "- Page http://a.example/"),
            ("http://a.example/2014/http://b.example/", "- Top http://a.example/2014/http://b.example/"),
            ("a.example", "- Top http://a.example"),
            ("2/HTTP://A.example/", "29991231235959/1 Top http://A.example/"),
            ("20149931999999/http://a.example/", "20141231235959/14 Top http://a.example/"),
            ("20140102/urn:dom:http://a.example/", "20140102235959/8 Top urn:dom:http://a.example/"),
            ("2014/", "- Top http://2014/"),
            ("201401020304051/http://a.example/", "- Top http://201401020304051/http://a.example/"),
            ("", "none"),
            ("2014/http://", "none"),
            ("2014/http://a.example/\u{1}", "none"),
        ] {
            assert_eq!(parsed(rest), expected, "{rest}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let query = QueryParameters::parse(
            "url=http%3A%2F%2Fa.example%2F%3Fb%3Dc&filter=a+b&filter=%zz%f&x&=y&&limit=-5",
        );
        assert_eq!(query.get("url"), Some("http://a.example/?b=c"));
        assert_eq!(query.all("filter").collect::<Vec<_>>(), ["a b", "%zz%f"]);
        assert!(query.is_on("x"));
        assert_eq!(query.get("limit"), Some("-5"));
        assert_eq!(QueryParameters::parse(&"a=b&".repeat(1000)).all("a").count(), MAX_PARAMETERS);
    }

    proptest! {
        #[test]
        fn what_was_read_is_written_and_read_again(rest in "([0-9*]{0,15}([a-z]{2}_)?/)?(https?:/{0,3})?[a-z.:/?=&%é]{0,30}") {
            if let Some(replay_url) = ReplayUrl::parse(&rest) {
                prop_assert_eq!(ReplayUrl::parse(&replay_url.to_string()).map(|again| again.url), Some(replay_url.url));
            }
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,80}") {
            let _ = (ReplayUrl::parse(&text), QueryParameters::parse(&text), latest_time(&text), earliest_time(&text));
            prop_assert_eq!(unescape(&escape(&text), true), text);
        }

        #[test]
        fn every_run_of_digits_is_an_instant(digits in "[0-9]{1,14}") {
            prop_assert!(earliest_time(&digits) <= latest_time(&digits));
            prop_assert_eq!(latest_time(&digits).to_digits14().len(), 14);
        }
    }
}
