//! The path and query of a request -> what it asks for: `/web/<time><modifier>/<url>` as every client of the field writes it.
//!
//! The archived address stands in the path as it is, with its own query and without any escaping, so the path must not be
//! decoded or tidied on the way here.

use std::fmt::{self, Write};

use crate::time::Timestamp;

/// The longest archived address that is looked up.
pub const MAX_URL_BYTES: usize = crate::text::untrusted::MAX_URL_BYTES;

/// Most parameters of a query that are read.
const MAX_PARAMETERS: usize = 64;

/// In what form an archived body is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Modifier {
    /// None: the page with a frame of ours around it, where the client is a browser.
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
    /// Any other: letters and an underscore. Served by its media type.
    Other,
}

impl Modifier {
    /// As it stands in an address, underscore included.
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

    /// `None` for what is no modifier.
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

/// The instant that an address names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// None at all: the address is a TimeGate.
    Unsaid,
    /// `*`: all of them.
    All,
    /// Some digits and `*`: all between two instants.
    Within {
        /// The first instant that the digits can mean.
        from: Timestamp,
        /// The last one.
        to: Timestamp,
        /// How many digits there were.
        n_digits: usize,
    },
    /// Some digits of a time.
    At {
        /// The instant; digits that are missing have their highest value.
        time: Timestamp,
        /// How many of the fourteen digits there were.
        n_digits: usize,
    },
}

/// What `/web/...` asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayAddress {
    /// At which instant.
    pub when: When,
    /// In what form.
    pub modifier: Modifier,
    /// Of which address, as the client wrote it, with a scheme.
    pub url: String,
}

impl ReplayAddress {
    /// Reads what stands behind `/web/`, the request's query included. `None` when no address is in it.
    pub fn parse(rest: &str) -> Option<ReplayAddress> {
        if rest.len() > MAX_URL_BYTES + 64 {
            return None;
        }
        let (first, behind) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some((when, modifier)) = parse_when(first).filter(|_| !behind.is_empty()) {
            return Some(ReplayAddress { when, modifier, url: with_scheme(behind)? });
        }
        Some(ReplayAddress { when: When::Unsaid, modifier: Modifier::Top, url: with_scheme(rest)? })
    }
}

/// `20140102030405js_` -> the instant and the modifier. A word without digits is a modifier alone only with `*` before it
/// or nothing: `mp_/http://...` asks for the latest.
fn parse_when(text: &str) -> Option<(When, Modifier)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((When::All, Modifier::parse(rest)?));
    }
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=14).contains(&n_digits) && &text[n_digits..] == "*" {
        let digits = &text[..n_digits];
        let within = When::Within { from: earliest_of(digits), to: time_of_digits(digits), n_digits };
        return Some((within, Modifier::Top));
    }
    let modifier = Modifier::parse(&text[n_digits..])?;
    match n_digits {
        0 if modifier == Modifier::Top => None,
        0 => Some((When::Unsaid, modifier)),
        1..=14 => Some((When::At { time: time_of_digits(&text[..n_digits]), n_digits }, modifier)),
        _ => None,
    }
}

/// The last instant that 1 to 14 digits can mean, as other replay systems read them: `2014` is the end of that year, `2` the
/// latest there is. A month, day or hour that does not exist becomes the nearest that does: clients cut times anywhere
/// and invent day 31.
pub fn time_of_digits(digits: &str) -> Timestamp {
    filled(digits, Side::Latest)
}

/// The first instant that 1 to 14 digits can mean.
pub fn earliest_of(digits: &str) -> Timestamp {
    filled(digits, Side::Earliest)
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Earliest,
    Latest,
}

/// The last year that has all its days in every type of time.
const MAX_YEAR: i64 = 9998;

fn filled(digits: &str, side: Side) -> Timestamp {
    let digits: Vec<i64> =
        digits.bytes().filter(u8::is_ascii_digit).map(|b| i64::from(b - b'0')).take(14).collect();
    let missing = |lowest: i64, highest: i64| if side == Side::Latest { highest } else { lowest };
    // A digit that is missing in the middle of a part is any that makes the part exist.
    let part = |from: usize, lowest: i64, highest: i64| match (digits.get(from), digits.get(from + 1)) {
        (Some(tens), Some(ones)) => (tens * 10 + ones).clamp(lowest, highest),
        (Some(tens), None) => (tens * 10 + missing(0, 9)).clamp(lowest, highest),
        (None, _) => missing(lowest, highest),
    };
    let defaults = if side == Side::Latest { [2, 9, 9, 9] } else { [1, 0, 0, 0] };
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

/// An archived address as the path of a request has it: without a scheme it is one of http, and a slash that a proxy merged
/// away comes back. `None` when nothing could be an address.
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

impl fmt::Display for ReplayAddress {
    /// What stands behind `/web/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modifier = self.modifier.as_str();
        match self.when {
            When::Unsaid if self.modifier == Modifier::Top => f.write_str(&self.url),
            When::Unsaid => write!(f, "{modifier}/{}", self.url),
            When::All => write!(f, "*{modifier}/{}", self.url),
            When::Within { from, n_digits, .. } => {
                let digits = from.to_digits14();
                write!(f, "{}*/{}", digits.get(..n_digits).unwrap_or(&digits), self.url)
            }
            When::At { time, n_digits } => {
                let digits = time.to_digits14();
                write!(f, "{}{modifier}/{}", digits.get(..n_digits).unwrap_or(&digits), self.url)
            }
        }
    }
}

/// The parameters of a query, decoded: `a=b&c=d+e`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query without its question mark. Whatever cannot be decoded is taken as it is.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MAX_PARAMETERS);
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unescape(name, true), unescape(value, true))
        };
        Query(pairs.map(split).collect())
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    /// All values of a name, in their order.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    /// Whether a switch such as `showNumPages=true` is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "true" | "1" | "yes" | ""))
    }
}

/// Undoes percent escapes, and `+` where it stands for a blank. Bytes that are no UTF-8 become U+FFFD.
pub fn unescape(text: &str, plus_is_blank: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |place: usize| bytes.get(place).and_then(|&b| (b as char).to_digit(16));
        let (byte, taken) = match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            (b'+', ..) if plus_is_blank => (b' ', 1),
            (byte, ..) => (byte, 1),
        };
        out.push(byte);
        at += taken;
    }
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A text as it may stand in the value of a query.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            // Writing into a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(rest: &str) -> String {
        match ReplayAddress::parse(rest) {
            Some(address) => {
                let when = match address.when {
                    When::Unsaid => "-".to_string(),
                    When::All => "*".to_string(),
                    When::Within { from, to, .. } => format!("{}-{}", from.to_digits14(), to.to_digits14()),
                    When::At { time, n_digits } => format!("{}/{n_digits}", time.to_digits14()),
                };
                format!("{when} {:?} {}", address.modifier, address.url)
            }
            None => "none".to_string(),
        }
    }

    #[test]
    fn addresses_as_clients_write_them() {
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
        let query =
            Query::parse("url=http%3A%2F%2Fa.example%2F%3Fb%3Dc&filter=a+b&filter=%zz%f&x&=y&&limit=-5");
        assert_eq!(query.get("url"), Some("http://a.example/?b=c"));
        assert_eq!(query.all("filter").collect::<Vec<_>>(), ["a b", "%zz%f"]);
        assert!(query.is_on("x"));
        assert_eq!(query.get("limit"), Some("-5"));
        assert_eq!(Query::parse(&"a=b&".repeat(1000)).all("a").count(), MAX_PARAMETERS);
    }

    proptest! {
        #[test]
        fn what_was_read_is_written_and_read_again(rest in "([0-9*]{0,15}([a-z]{2}_)?/)?(https?:/{0,3})?[a-z.:/?=&%é]{0,30}") {
            if let Some(address) = ReplayAddress::parse(&rest) {
                prop_assert_eq!(ReplayAddress::parse(&address.to_string()).map(|again| again.url), Some(address.url));
            }
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,80}") {
            let _ = (ReplayAddress::parse(&text), Query::parse(&text), time_of_digits(&text), earliest_of(&text));
            prop_assert_eq!(unescape(&escape(&text), true), text);
        }

        #[test]
        fn every_run_of_digits_is_an_instant(digits in "[0-9]{1,14}") {
            prop_assert!(earliest_of(&digits) <= time_of_digits(&digits));
            prop_assert_eq!(time_of_digits(&digits).to_digits14().len(), 14);
        }
    }
}
