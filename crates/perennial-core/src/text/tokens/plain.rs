//! Plain tags -> tokens without the tokenizer's state machine: names and quoted values are cut from the page directly.
//!
//! Nearly all tags of real pages are plain. The tokenizer handles the rest: references and carriage returns in values,
//! a `<` inside a tag, forms that the standard calls errors, and elements whose content is not markup.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, TagKind};
use html5ever::{Attribute, LocalName, QualName, ns};

use super::MAX_ATTRIBUTES;

/// Elements whose start tag changes the state of the tokenizer (HTML standard, 13.2.6).
const RAW: [&str; 10] =
    ["iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"];

/// Number of cached names.
const N_NAMES: usize = 256;

/// Longer names are left to the tokenizer, because caching them is not worthwhile.
const MAX_NAME_BYTES: usize = 32;

/// Reads plain tags. Pages repeat a few names, and interning a name costs more than reading it.
pub(super) struct PlainTags {
    names: Vec<Option<LocalName>>,
}

impl PlainTags {
    pub(super) fn new() -> PlainTags {
        PlainTags { names: vec![None; N_NAMES] }
    }

    /// Reads the plain tag at the start of `part`. Returns it with its length. `cut` returns a slice of the part.
    pub(super) fn read(
        &mut self,
        part: &str,
        cut: impl Fn(usize, usize) -> StrTendril,
    ) -> Option<(Tag, usize)> {
        let bytes = part.as_bytes();
        if bytes.first() != Some(&b'<') {
            return None;
        }
        let is_end = bytes.get(1) == Some(&b'/');
        let start = 1 + usize::from(is_end);
        if !bytes.get(start)?.is_ascii_alphabetic() {
            return None;
        }
        let mut at = name_end(bytes, start);
        let name = self.name(&part[start..at])?;
        if RAW.contains(&&*name) {
            return None;
        }
        let kind = if is_end { TagKind::EndTag } else { TagKind::StartTag };
        let mut tag =
            Tag { kind, name, self_closing: false, attrs: Vec::new(), had_duplicate_attributes: false };
        loop {
            let next = skip_space(bytes, at);
            match bytes.get(next)? {
                b'>' => return Some((tag, next + 1)),
                b'/' if !is_end && bytes.get(next + 1) == Some(&b'>') => {
                    tag.self_closing = true;
                    return Some((tag, next + 2));
                }
                // Names must be separated by white space.
                _ if next == at || is_end || tag.attrs.len() == MAX_ATTRIBUTES => return None,
                _ => at = self.attribute(part, next, &cut, &mut tag)?,
            }
        }
    }

    /// Reads the attribute that begins at a byte. Returns where it ends.
    fn attribute(
        &mut self,
        part: &str,
        start: usize,
        cut: impl Fn(usize, usize) -> StrTendril,
        tag: &mut Tag,
    ) -> Option<usize> {
        let bytes = part.as_bytes();
        let name_end = name_end(bytes, start);
        let name = self.name(&part[start..name_end])?;
        let (value, end) = match bytes.get(name_end)? {
            b'=' => plain_value(bytes, name_end + 1)?,
            b'>' | b'/' => ((0, 0), name_end),
            // An equals sign may still follow.
            _ if bytes.get(skip_space(bytes, name_end)) == Some(&b'=') => return None,
            _ => ((0, 0), name_end),
        };
        if tag.attrs.iter().any(|own| own.name.local == name) {
            tag.had_duplicate_attributes = true;
        } else {
            tag.attrs
                .push(Attribute { name: QualName::new(None, ns!(), name), value: cut(value.0, value.1) });
        }
        Some(end)
    }

    /// A name in lower case. `None` if it is not plain.
    fn name(&mut self, name: &str) -> Option<LocalName> {
        let bytes = name.as_bytes();
        if !(1..=MAX_NAME_BYTES).contains(&bytes.len()) {
            return None;
        }
        // Different names usually have different slots. If not, they replace each other.
        let mix = |sum: usize, byte: &u8| sum.wrapping_mul(31).wrapping_add(usize::from(*byte));
        let slot = &mut self.names[bytes.iter().fold(0, mix) % N_NAMES];
        if let Some(known) = slot.as_ref().filter(|known| ***known == *name) {
            return Some(known.clone());
        }
        if bytes.iter().any(u8::is_ascii_uppercase) {
            return Some(LocalName::from(name.to_ascii_lowercase()));
        }
        let found = LocalName::from(name);
        *slot = Some(found.clone());
        Some(found)
    }
}

/// The end of a plain name.
fn name_end(bytes: &[u8], start: usize) -> usize {
    let is_letter =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.' | b'@');
    bytes[start..].iter().position(|byte| !is_letter(byte)).map_or(bytes.len(), |n| start + n)
}

fn skip_space(bytes: &[u8], start: usize) -> usize {
    let is_space = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | b' ');
    bytes[start..].iter().position(|byte| !is_space(byte)).map_or(bytes.len(), |n| start + n)
}

/// Start and end of the value that begins at a byte, and the end of the attribute.
fn plain_value(bytes: &[u8], start: usize) -> Option<((usize, usize), usize)> {
    let quote = *bytes.get(start)?;
    if matches!(quote, b'"' | b'\'') {
        let end = start + 1 + memchr::memchr(quote, &bytes[start + 1..])?;
        let is_plain = is_plain_text(&bytes[start + 1..end]);
        return is_plain.then_some(((start + 1, end), end + 1));
    }
    let is_letter =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'#' | b'%');
    let n = bytes[start..].iter().position(|byte| !is_letter(byte))?;
    let end = start + n;
    (n > 0 && matches!(bytes[end], b'\t' | b'\n' | b' ' | b'>')).then_some(((start, end), end))
}

/// Whether a text without `<` needs no decoding: it contains no references, carriage returns or null bytes.
pub(super) fn is_plain_text(bytes: &[u8]) -> bool {
    memchr::memchr3(b'&', b'\r', b'\0', bytes).is_none()
}
