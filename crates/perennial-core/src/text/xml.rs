//! XML as found on the web -> tags and texts, with work bounded by its length.
//!
//! Feeds, sitemaps and OPML are often not well-formed: bare ampersands, HTML entities, unclosed tags. This scanner
//! never fails. Anything that cannot be a tag is text, and the caller ignores unmatched end tags. Declared entities
//! are expanded once and never within each other, because they must not grow without bound.

use std::borrow::Cow;
use std::collections::BTreeMap;

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// Maximum attributes of a tag that are read.
const MAX_ATTRIBUTES: usize = 64;
/// Maximum length of an entity name.
const MAX_ENTITY_NAME: usize = 40;
/// Maximum number of declared entities.
const MAX_ENTITIES: usize = 500;
/// Maximum length of an entity's value.
const MAX_ENTITY_BYTES: usize = 256;
/// Maximum bytes that declared entities may add to a document.
const MAX_EXPANDED_BYTES: usize = 1 << 20;

/// A part of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum XmlPiece<'a> {
    /// `<name ...>`
    Start(Tag<'a>),
    /// `</name>`
    End(&'a str),
    /// Text between tags with its references resolved.
    Text(Cow<'a, str>),
    /// The raw text of a CDATA section.
    Literal(&'a str),
}

/// A start tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// The name with its prefix, as written.
    pub name: &'a str,
    /// Whether it is self-closing: `<name/>`.
    pub is_empty: bool,
    /// Everything between the name and the end of the tag.
    inside: &'a str,
}

/// An attribute as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawAttribute<'a> {
    /// Its name with prefix.
    pub name: &'a str,
    /// Its value with unresolved references.
    pub value: &'a str,
}

impl<'a> Tag<'a> {
    pub fn local_name(&self) -> &'a str {
        local_name(self.name)
    }

    /// The attributes as written, in their order.
    pub fn raw_attributes(&self) -> impl Iterator<Item = RawAttribute<'a>> + use<'a> {
        let mut rest = self.inside;
        let next = move || {
            let (attribute, after) = next_attribute(rest)?;
            rest = after;
            Some(attribute)
        };
        std::iter::from_fn(next).take(MAX_ATTRIBUTES)
    }

    /// The value of the first attribute with this name, ignoring case.
    pub fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let found = self.raw_attributes().find(|attribute| attribute.name.eq_ignore_ascii_case(name))?;
        Some(resolved(found.value, &mut Entities::default()))
    }
}

/// A name without its prefix.
pub fn local_name(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

fn is_name_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'<' | b'=' | b'"' | b'\'')
}

fn next_attribute(text: &str) -> Option<(RawAttribute<'_>, &str)> {
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|&byte| !is_name_end(byte))?;
    let end = bytes[start..].iter().position(|&byte| is_name_end(byte)).map_or(bytes.len(), |at| start + at);
    let name = &text[start..end];
    let after = text[end..].trim_ascii_start();
    let Some(value) = after.strip_prefix('=') else {
        return Some((RawAttribute { name, value: "" }, &text[end..]));
    };
    let value = value.trim_ascii_start();
    if let Some(quote @ (b'"' | b'\'')) = value.as_bytes().first().copied() {
        let inner = &value[1..];
        let length = memchr::memchr(quote, inner.as_bytes()).unwrap_or(inner.len());
        let after = inner.get(length + 1..).unwrap_or_default();
        return Some((RawAttribute { name, value: &inner[..length] }, after));
    }
    let length = value.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(value.len());
    let (value, after) = value.split_at(length);
    Some((RawAttribute { name, value }, after))
}

/// The entities that a document declares, and the bytes that they added so far.
#[derive(Clone, Default, Debug)]
struct Entities {
    values: BTreeMap<String, String>,
    n_expanded_bytes: usize,
}

/// Scans a document from start to end.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    entities: Entities,
    /// Positions of the last quotes. No value can end after them.
    last_quotes: [Option<usize>; 2],
    /// Whether no comment ends after the current position.
    is_without_comment_end: bool,
    is_broken: bool,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Scanner<'a> {
        let text = text.trim_start_matches('\u{feff}');
        Scanner {
            text,
            at: 0,
            entities: Entities::default(),
            last_quotes: [text.rfind('"'), text.rfind('\'')],
            is_without_comment_end: false,
            is_broken: false,
        }
    }

    /// The position of the next piece.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether the input so far is not well-formed.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Reads text up to the next `<` that begins a tag or declaration.
    fn read_text(&mut self, from: usize) -> XmlPiece<'a> {
        let bytes = self.text.as_bytes();
        let mut end = from;
        loop {
            end = memchr::memchr(b'<', &bytes[end..]).map_or(bytes.len(), |at| end + at);
            if end == bytes.len() || begins_piece(&bytes[end..]) {
                break;
            }
            self.is_broken = true;
            end += 1;
        }
        let start = self.at;
        self.at = end;
        XmlPiece::Text(resolved(&self.text[start..end], &mut self.entities))
    }

    fn read_tag(&mut self) -> Option<XmlPiece<'a>> {
        let start = self.at + 1;
        let rest = &self.text[start..];
        let is_end = rest.starts_with('/');
        let name_from = usize::from(is_end);
        let name_length = rest.as_bytes()[name_from..].iter().position(|&byte| is_name_end(byte));
        let name_to = name_length.map_or(rest.len(), |length| name_from + length);
        let (length, is_closed) = self.tag_length(start);
        self.is_broken |= !is_closed;
        self.at = start + length + usize::from(is_closed);
        let name = &rest[name_from..name_to.min(length.max(name_from))];
        if is_end {
            return Some(XmlPiece::End(name));
        }
        let inside = &rest[name_to.min(length)..length];
        let is_empty = inside.ends_with('/');
        let inside = inside.strip_suffix('/').unwrap_or(inside);
        Some(XmlPiece::Start(Tag { name, is_empty, inside }))
    }

    /// The number of bytes before the `>` that ends a tag, and whether there is one. An unclosed tag ends where the
    /// next one begins.
    fn tag_length(&self, start: usize) -> (usize, bool) {
        let bytes = &self.text.as_bytes()[start..];
        let (mut at, mut is_value) = (0, false);
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'>' => return (at, true),
                b'<' => return (at, false),
                b'"' | b'\'' if is_value => {
                    let last = self.last_quotes[usize::from(byte == b'\'')];
                    let has_end = last.is_some_and(|last| last > start + at);
                    let length = if has_end { memchr::memchr(byte, &bytes[at + 1..]) } else { None };
                    // An unpaired quote is part of the value.
                    at += length.map_or(0, |length| length + 1);
                    is_value = false;
                }
                b'=' => is_value = true,
                byte if byte.is_ascii_whitespace() => {}
                _ => is_value = false,
            }
            at += 1;
        }
        (bytes.len(), false)
    }

    /// Skips a comment, processing instruction or declaration; returns the text of a CDATA section.
    fn read_declaration(&mut self) -> Option<XmlPiece<'a>> {
        let rest = &self.text[self.at..];
        if let Some(inner) = rest.strip_prefix("<![CDATA[") {
            let length = memchr::memmem::find(inner.as_bytes(), b"]]>");
            self.is_broken |= length.is_none();
            self.at = length.map_or(self.text.len(), |length| self.at + 9 + length + 3);
            return Some(XmlPiece::Literal(&inner[..length.unwrap_or(inner.len())]));
        }
        let end = match rest.strip_prefix("<!--") {
            Some(inner) if !self.is_without_comment_end => {
                let end = memchr::memmem::find(inner.as_bytes(), b"-->").map(|length| 4 + length + 3);
                self.is_without_comment_end = end.is_none();
                end.or(Some(4))
            }
            Some(_) => Some(4),
            None if rest.starts_with("<!DOCTYPE") || rest.starts_with("<!doctype") => {
                let (end, subset) = doctype(rest);
                declared(subset, &mut self.entities);
                Some(end)
            }
            None => memchr::memchr(b'>', rest.as_bytes()).map(|at| at + 1),
        };
        self.at = end.map_or(self.text.len(), |end| self.at + end);
        None
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = XmlPiece<'a>;

    fn next(&mut self) -> Option<XmlPiece<'a>> {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let found = match (rest.first()?, rest.get(1)) {
                (b'<', Some(b'!' | b'?')) => self.read_declaration(),
                (b'<', _) if begins_piece(rest) => self.read_tag(),
                (b'<', _) => {
                    self.is_broken = true;
                    Some(self.read_text(self.at + 1))
                }
                _ => Some(self.read_text(self.at)),
            };
            if found.is_some() {
                return found;
            }
        }
    }
}

/// Whether a `<` begins a tag or declaration and is not part of a text.
fn begins_piece(rest: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || *byte >= 0x80;
    match rest.get(1) {
        Some(b'!' | b'?') => true,
        Some(b'/') => rest.get(2).is_some_and(|byte| is_name(byte) || *byte == b'>'),
        Some(byte) => is_name(byte),
        None => false,
    }
}

/// The length of a document type declaration, and its internal subset.
fn doctype(rest: &str) -> (usize, &str) {
    let bytes = rest.as_bytes();
    let first = memchr::memchr2(b'[', b'>', bytes).unwrap_or(bytes.len());
    if bytes.get(first) != Some(&b'[') {
        return ((first + 1).min(bytes.len()), "");
    }
    let subset = &rest[first + 1..];
    let length = memchr::memchr(b']', subset.as_bytes()).unwrap_or(subset.len());
    let close = memchr::memchr(b'>', &bytes[first + 1 + length..]).unwrap_or(bytes.len());
    ((first + 1 + length + close + 1).min(bytes.len()), &subset[..length])
}

/// Stores the entities that are declared with a value. External entities are never fetched.
fn declared(subset: &str, entities: &mut Entities) {
    for declaration in subset.split("<!ENTITY").skip(1).take(MAX_ENTITIES) {
        let text = declaration.trim_start();
        let Some((name, rest)) = text.split_once(|c: char| c.is_ascii_whitespace()) else { continue };
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        let Some((value, _)) = rest[1..].split_once(quote) else { continue };
        if name.len() <= MAX_ENTITY_NAME && value.len() <= MAX_ENTITY_BYTES {
            // Only numeric references are resolved. References to other entities are not expanded.
            let value = with_references(value, |name| character_by_number(name).map(String::from));
            entities.values.entry(name.to_owned()).or_insert(value.into_owned());
        }
    }
}

/// Resolves numeric references, HTML names and declared entities. All other text is returned unchanged.
fn resolved<'a>(text: &'a str, entities: &mut Entities) -> Cow<'a, str> {
    let resolved = with_references(text, |name| {
        if let Some(value) = entities.values.get(name) {
            entities.n_expanded_bytes += value.len();
            return (entities.n_expanded_bytes <= MAX_EXPANDED_BYTES).then(|| value.clone());
        }
        character_by_number(name).map(String::from).or_else(|| named_character(name))
    });
    match resolved {
        Cow::Owned(text) => Cow::Owned(without_controls(&text).into_owned()),
        plain => plain,
    }
}

/// Replaces the control characters U+0080 to U+009F, which come from bytes that were decoded as Latin-1. If they and
/// their neighbours form UTF-8, they are decoded as UTF-8, otherwise as Windows-1252, like browsers do.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let is_byte = |c: char| ('\u{80}'..='\u{ff}').contains(&c);
    let meant = |c: char| match is_control(c) {
        true => C1_REPLACEMENTS.get(c as usize - 0x80).copied().flatten().unwrap_or(c),
        false => c,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.find(is_byte) {
        out.push_str(&rest[..first]);
        rest = &rest[first..];
        let end = rest.find(|c| !is_byte(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let bytes: Vec<u8> = run.chars().map(|c| c as u8).collect();
        match String::from_utf8(bytes).ok().filter(|_| run.contains(is_control)) {
            Some(decoded) => out.push_str(&decoded),
            None => out.extend(run.chars().map(meant)),
        }
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Resolves numeric and named references once.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    resolved(text, &mut Entities::default())
}

fn with_references(text: &str, mut value_of: impl FnMut(&str) -> Option<String>) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(inner) = rest.strip_prefix('&') {
        let window = &inner.as_bytes()[..inner.len().min(MAX_ENTITY_NAME + 1)];
        let end = window
            .iter()
            .position(|&b| !(b.is_ascii_alphanumeric() || b == b'#' || b == b'_' || b == b'.' || b == b'-'));
        let end = end.filter(|&end| window[end] == b';');
        match end.and_then(|end| Some((value_of(&inner[..end])?, end + 1))) {
            Some((value, length)) => {
                out.push_str(&value);
                rest = &inner[length..];
            }
            None => {
                out.push('&');
                rest = inner;
            }
        }
        let next = memchr::memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
        out.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(out)
}

/// `#8217` or `#x2019`.
fn character_by_number(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#')?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(code).filter(|c| *c != '\0')
}

fn named_character(name: &str) -> Option<String> {
    match name {
        // XML documents take their names from HTML 4, in which these two are different characters than in HTML 5.
        "lang" => return Some("\u{2329}".to_owned()),
        "rang" => return Some("\u{232a}".to_owned()),
        _ => {}
    }
    let (first, second) = *NAMED_ENTITIES.get(format!("{name};").as_str())?;
    let characters = [first, second].into_iter().filter(|&code| code != 0).filter_map(char::from_u32);
    Some(characters.collect()).filter(|text: &String| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The pieces in a short notation.
    fn pieces(text: &str) -> String {
        let mut out = String::new();
        for piece in Scanner::new(text) {
            match piece {
                XmlPiece::Start(tag) => {
                    out += &format!("<{}", tag.name);
                    tag.raw_attributes()
                        .for_each(|found| out += &format!(" {}={}", found.name, unescaped(found.value)));
                    out += if tag.is_empty { "/>" } else { ">" };
                }
                XmlPiece::End(name) => out += &format!("</{name}>"),
                XmlPiece::Text(text) => out += &format!("[{text}]"),
                XmlPiece::Literal(text) => out += &format!("{{{text}}}"),
            }
        }
        out
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(pieces(text), expected, "{text}");
    }

    #[test]
    fn tags_texts_and_sections() {
        check(
            "<?xml version='1.0'?><a b='1' c=\"x &amp; y\"/>t<!-- <c> --><![CDATA[<&]]></a >",
            "<a b=1 c=x & y/>[t]{<&}</a>",
        );
        check("<a b = 'x>y' c>", "<a b=x>y c=>");
    }

    #[test]
    fn invalid_markup_is_text() {
        check("1 < 2 & 3 <4", "[1 < 2 & 3 <4]");
        check(
            "<a>x & y &nbsp;&hellip;&bogus; &#8217;&#146;&#x41; &#xD800;</a>",
            "<a>[x & y \u{a0}…&bogus; ’’A &#xD800;]</a>",
        );
    }

    #[test]
    fn broken_tags_end_where_the_next_one_begins() {
        check("<a href='x<b>t</b>", "<a href=x><b>[t]</b>");
        check("<a <b>t", "<a><b>[t]");
        check("<a title=it's>t", "<a title=it's>[t]");
        check("<![CDATA[open", "{open}");
        check("<!-- open <a>", "[ open ]<a>");
        check("<a", "<a>");
        check("<", "[<]");
        check("</>", "</>");
    }

    #[test]
    fn bytes_that_were_taken_for_characters() {
        let check = |text: &str, expected: &str| assert_eq!(unescaped(text), expected, "{text}");
        check("don&#146;t", "don\u{2019}t");
        check("&#226;&#128;&#166;", "\u{2026}");
        check("&acirc;&#128;&brvbar; and more", "\u{2026} and more");
        check("&eacute;&#128;", "\u{e9}\u{20ac}");
        check("caf&eacute;", "caf\u{e9}");
        check("&lang;x&rang;", "\u{2329}x\u{232a}");
    }

    #[test]
    fn declared_entities_are_expanded_once() {
        let bomb = "<!DOCTYPE r [<!ENTITY a '&#65;'><!ENTITY b \"&a;&a;\"><!ENTITY x SYSTEM 'file:///etc/passwd'>]><r>&a;&b;&x;</r>";
        check(bomb, "<r>[A&a;&a;&x;]</r>");
        let value = "v".repeat(MAX_ENTITY_BYTES);
        let long = format!("<!DOCTYPE r [<!ENTITY a '{value}'>]><r>{}</r>", "&a;".repeat(100_000));
        let n_bytes: usize = Scanner::new(&long)
            .map(|piece| if let XmlPiece::Text(text) = piece { text.len() } else { 0 })
            .sum();
        assert!(n_bytes <= MAX_EXPANDED_BYTES + 3 * 100_000, "{n_bytes}");
    }

    proptest! {
        /// The scanner never panics and always makes progress.
        #[test]
        fn any_text_is_survived(text in "[<>/!?a-c='\"& \\[\\]CDATA;#-]{0,80}") {
            let mut scanner = Scanner::new(&text);
            let mut before = 0;
            while let Some(piece) = scanner.next() {
                if let XmlPiece::Start(tag) = piece {
                    prop_assert!(tag.raw_attributes().count() <= MAX_ATTRIBUTES);
                }
                prop_assert!(scanner.at > before);
                before = scanner.at;
            }
        }

        /// Escaped text is read back unchanged.
        #[test]
        fn escaped_text_comes_back(text in "[a-z<>&\"' é]{1,40}") {
            let xml = format!("<p t=\"{0}\">{0}</p>", crate::text::markup::escaped(&text));
            let mut scanner = Scanner::new(&xml);
            let Some(XmlPiece::Start(tag)) = scanner.next() else { panic!("{xml}") };
            let value = tag.attribute("T").unwrap();
            prop_assert_eq!(value.as_ref(), text.as_str());
            prop_assert_eq!(scanner.next(), Some(XmlPiece::Text(text.into())));
        }
    }
}
