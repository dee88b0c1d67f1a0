//! The head of an archived HTTP message, byte for byte -> [`HttpHead`]: the status or request line and the fields,
//! each with its position in the original bytes.
//!
//! The parser is as lenient as browsers: it accepts bare LF, a missing reason or version, folded lines, lines without
//! a colon and bytes that are not UTF-8. It never fails; unreadable lines are missing from the fields.

use std::borrow::Cow;
use std::ops::Range;

/// The offset after the blank line that ends a head. The first `searched` bytes contain no end.
pub(crate) fn find_head_end(bytes: &[u8], searched: usize) -> Option<usize> {
    let mut from = searched.saturating_sub(4);
    while let Some(at) = memchr::memchr(b'\n', bytes.get(from..)?) {
        let next = from + at + 1;
        match bytes.get(next..) {
            Some([b'\n', ..]) => return Some(next + 1),
            Some([b'\r', b'\n', ..]) => return Some(next + 2),
            // A text editor may have saved the file with bare LF.
            Some([b'\r', b'\r', b'\n', ..]) => return Some(next + 3),
            _ => from = next,
        }
    }
    None
}

/// The head of a request or response: its bytes and the positions of its parts in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpHead {
    bytes: Vec<u8>,
    first_line: Range<u32>,
    fields: Vec<FieldSpan>,
}

/// The position of one field in the head's bytes. A folded value includes its line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpan {
    /// The field's name.
    pub name: Range<u32>,
    /// The field's value, without surrounding blanks.
    pub value: Range<u32>,
}

impl HttpHead {
    /// Parses the head at the start of a message: up to its blank line, or all of it if there is none.
    pub fn parse(message: &[u8]) -> HttpHead {
        let mut head = HttpHead::default();
        let end = find_head_end(message, 0).unwrap_or(message.len());
        head.parse_into(&message[..end]);
        head
    }

    /// Parses exactly these bytes and reuses the memory of the previous head.
    pub(crate) fn parse_into(&mut self, head: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&head[..head.len().min(u32::MAX as usize)]);
        self.fields.clear();
        self.first_line = 0..0;
        let mut from = 0;
        let mut is_first = true;
        while from < self.bytes.len() {
            let end = memchr::memchr(b'\n', &self.bytes[from..]).map_or(self.bytes.len(), |at| from + at);
            let line = trim_end(&self.bytes, from, end);
            if is_first {
                self.first_line = from as u32..line as u32;
                is_first = false;
            } else {
                self.parse_line(from, line);
            }
            from = end + 1;
        }
    }

    fn parse_line(&mut self, from: usize, end: usize) {
        let line = &self.bytes[from..end];
        match line.first() {
            None => {}
            Some(b' ' | b'\t') => {
                if let Some(last) = self.fields.last_mut() {
                    last.value.end = end as u32;
                }
            }
            Some(_) => {
                let Some(colon) = memchr::memchr(b':', line) else { return };
                let name_end = trim_end(&self.bytes, from, from + colon);
                let value = trim_start(&self.bytes, from + colon + 1, end);
                self.fields
                    .push(FieldSpan { name: from as u32..name_end as u32, value: value as u32..end as u32 });
            }
        }
    }

    /// The head as the server or crawler sent it, including the blank line.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Length of the head. The body begins there in the message.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the head is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The status or request line without its line end.
    pub fn first_line(&self) -> Cow<'_, str> {
        text(self.slice(&self.first_line))
    }

    /// Whether this is a response: its first line begins with a protocol instead of a method.
    pub fn is_response(&self) -> bool {
        let line = self.slice(&self.first_line);
        line.len() >= 5 && line[..5].eq_ignore_ascii_case(b"HTTP/") || line.starts_with(b"ICY ")
    }

    /// The status code of a response; `None` for a request or a line without one.
    pub fn status(&self) -> Option<u16> {
        if !self.is_response() {
            return None;
        }
        let line = self.slice(&self.first_line);
        let code = line.split(|b| b.is_ascii_whitespace()).skip(1).find(|word| !word.is_empty())?;
        std::str::from_utf8(code.get(..3).filter(|_| code.len() == 3)?).ok()?.parse().ok()
    }

    /// The reason phrase of a response, often empty.
    pub fn reason(&self) -> Cow<'_, str> {
        let line = self.slice(&self.first_line);
        let mut words = line.splitn(3, |&b| b == b' ');
        text(words.nth(2).unwrap_or(b""))
    }

    /// The method of a request, which is its first word.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        let word = self.slice(&self.first_line).split(|&b| b == b' ').next()?;
        (!self.is_response() && !word.is_empty()).then(|| text(word))
    }

    /// All fields in their order. A value that is not UTF-8 is read as Latin-1, and a folded one is joined.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.fields.iter().map(|field| (text(self.slice(&field.name)), self.value(field)))
    }

    /// The position of each field in [`HttpHead::as_bytes`].
    pub fn spans(&self) -> &[FieldSpan] {
        &self.fields
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or(b"")
    }

    fn value(&self, field: &FieldSpan) -> Cow<'_, str> {
        let raw = self.slice(&field.value);
        if memchr::memchr(b'\n', raw).is_none() {
            return text(raw);
        }
        let lines: Vec<_> = raw.split(|&b| b == b'\n').map(|line| text(line.trim_ascii())).collect();
        Cow::Owned(lines.join(" "))
    }

    /// The first field with this name; letter case does not matter.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.fields
            .iter()
            .find(|field| self.slice(&field.name).eq_ignore_ascii_case(name.as_bytes()))
            .map(|field| self.value(field))
    }

    /// All fields with this name, for example several `Link` or `Set-Cookie` fields.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        self.fields
            .iter()
            .filter(move |field| self.slice(&field.name).eq_ignore_ascii_case(name.as_bytes()))
            .map(|field| self.value(field))
    }

    /// The URLs in `Link` fields with this relation (RFC 8288), as written.
    pub fn link_targets(&self, relation: &str) -> Vec<String> {
        const MAX_LINKS: usize = 64;
        let mut found = Vec::new();
        for field in self.get_all("Link") {
            // A URL may contain a comma, so links are split at their opening brackets.
            for link in field.split('<').skip(1).take(MAX_LINKS) {
                let Some((target, parameters)) = link.split_once('>') else { continue };
                let names = |parameter: &str| {
                    let (name, value) = parameter.split_once('=')?;
                    let value = value.trim().trim_end_matches(',').trim().trim_matches('"');
                    name.trim().eq_ignore_ascii_case("rel").then(|| value.to_owned())
                };
                let relations = parameters.split(';').find_map(names).unwrap_or_default();
                if relations.split_whitespace().any(|word| word.eq_ignore_ascii_case(relation)) {
                    found.push(target.trim().to_owned());
                }
            }
        }
        found
    }

    /// The media type of `Content-Type`, lower case, without parameters.
    pub fn media_type(&self) -> Option<String> {
        let value = self.get("Content-Type")?;
        let word = value.split([';', ' ', '\t', ',']).next()?.trim().to_ascii_lowercase();
        (!word.is_empty()).then_some(word)
    }

    /// The `charset` parameter of `Content-Type`.
    pub fn charset(&self) -> Option<String> {
        parameter(&self.get("Content-Type")?, "charset")
    }

    /// The codings of a body in the order in which they were applied: all of `Content-Encoding`, then all of
    /// `Transfer-Encoding`. The names are in lower case and `identity` is omitted.
    pub fn codings(&self) -> (Vec<String>, Vec<String>) {
        let list = |name| {
            self.get_all(name)
                .flat_map(|v| v.split(',').map(|c| c.trim().to_ascii_lowercase()).collect::<Vec<_>>())
                .filter(|c| !c.is_empty() && c != "identity" && c != "none")
                .collect()
        };
        (list("Content-Encoding"), list("Transfer-Encoding"))
    }
}

/// A parameter of a field value such as `text/html; charset="utf-8"`.
pub(crate) fn parameter(value: &str, name: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|part| {
        let (key, value) = part.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (key.trim().eq_ignore_ascii_case(name) && !value.is_empty()).then(|| value.to_string())
    })
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&b| b as char).collect()),
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

fn trim_end(bytes: &[u8], from: usize, mut end: usize) -> usize {
    while end > from && is_blank(bytes[end - 1]) {
        end -= 1;
    }
    end
}

fn trim_start(bytes: &[u8], mut from: usize, end: usize) -> usize {
    while from < end && is_blank(bytes[from]) {
        from += 1;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_response() {
        let message = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; Charset=\"utf-8\"\r\nContent-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\nbody";
        let head = HttpHead::parse(message);
        assert_eq!(head.status(), Some(200));
        assert_eq!(head.reason(), "OK");
        assert_eq!(&message[head.len()..], b"body");
        assert_eq!(head.media_type().as_deref(), Some("text/html"));
        assert_eq!(head.charset().as_deref(), Some("utf-8"));
        assert_eq!(head.codings(), (vec!["gzip".into()], vec!["chunked".into()]));
        assert_eq!(head.method(), None);
    }

    #[test]
    fn spans_point_into_the_original() {
        let head = HttpHead::parse(b"HTTP/1.0 200\nA :  x y \n\tz\nno colon\nB:\n\nrest");
        let span = &head.spans()[0];
        let at = |r: &std::ops::Range<u32>| &head.as_bytes()[r.start as usize..r.end as usize];
        assert_eq!((at(&span.name), at(&span.value)), (&b"A"[..], &b"x y \n\tz"[..]));
        assert_eq!(head.get("a").as_deref(), Some("x y z"));
        assert_eq!(head.get("b").as_deref(), Some(""));
        assert_eq!(head.fields().count(), 2);
    }

    #[test]
    fn odd_first_lines() {
        for (line, status) in [
            ("HTTP/1.1 404 Not Found", Some(404)),
            ("HTTP/2 204", Some(204)),
            ("http/1.1  301  Moved", Some(301)),
            ("HTTP/1.1", None),
            ("HTTP/1.1 2000 x", None),
            ("ICY 200 OK", Some(200)),
            ("GET / HTTP/1.1", None),
            ("", None),
        ] {
            assert_eq!(HttpHead::parse(format!("{line}\r\n\r\n").as_bytes()).status(), status, "{line}");
        }
        assert_eq!(HttpHead::parse(b"POST /x HTTP/1.1\r\n\r\n").method().as_deref(), Some("POST"));
    }

    #[test]
    fn latin1_and_missing_ends() {
        let head = HttpHead::parse(b"HTTP/1.1 200 OK\r\nServer: caf\xe9");
        assert_eq!(head.get("server").as_deref(), Some("café"));
        assert!(HttpHead::parse(b"").is_empty());
        assert_eq!(HttpHead::parse(b" \n x: y").fields().count(), 0);
    }

    #[test]
    fn heads_end_at_the_blank_line() {
        assert_eq!(find_head_end(b"a\r\n\r\nb", 0), Some(5));
        assert_eq!(find_head_end(b"a\n\nb", 0), Some(3));
        assert_eq!(find_head_end(b"a\r\r\n\r\r\nb", 0), Some(7));
        assert_eq!(find_head_end(b"a\r\n\r", 0), None);
        for searched in 0..=4 {
            assert_eq!(find_head_end(b"a\r\n\r\nb", searched), Some(5));
        }
    }

    #[test]
    fn links_of_the_head() {
        let head = HttpHead::parse(
            b"HTTP/1.1 200 OK\r\nLink: <http://a.example/?x=1,2>; rel=\"self\", <http://hub.example/>; rel=hub\r\nLink: </b>; title=\"x\"; rel=\"alternate hub\"\r\n\r\n",
        );
        assert_eq!(head.link_targets("hub"), ["http://hub.example/", "/b"]);
        assert_eq!(head.link_targets("self"), ["http://a.example/?x=1,2"]);
        assert!(head.link_targets("next").is_empty());
    }
}
