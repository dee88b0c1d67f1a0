//! Bytes -> PDF values: numbers, names, strings, arrays, dictionaries (ISO 32000-1, 7.2 and 7.3).

use std::collections::BTreeMap;

/// Maximum nesting of arrays and dictionaries.
const MAX_DEPTH: usize = 32;
/// Maximum length of a name or string.
const MAX_STRING_BYTES: usize = 64 << 10;

/// Bytes in which the rest of a reference is searched.
const MAX_REFERENCE_BYTES: usize = 24;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum PdfValue {
    Null,
    Number(f32),
    Name(String),
    String(Vec<u8>),
    Array(Vec<PdfValue>),
    Dictionary(Dictionary),
    /// Object number.
    Reference(u32),
    /// A word that is not a value: an operator of a content stream, `obj`, `R`.
    Word(String),
}

pub(super) type Dictionary = BTreeMap<String, PdfValue>;

impl PdfValue {
    pub(super) fn number(&self) -> Option<f32> {
        if let PdfValue::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn name(&self) -> Option<&str> {
        if let PdfValue::Name(name) = self { Some(name) } else { None }
    }

    pub(super) fn string(&self) -> Option<&[u8]> {
        if let PdfValue::String(bytes) = self { Some(bytes) } else { None }
    }

    pub(super) fn word(&self) -> Option<&str> {
        if let PdfValue::Word(word) = self { Some(word) } else { None }
    }
}

/// Reads values one by one.
pub(super) struct Lexer<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Number of values that may still be read. It limits the memory for a file with many small values.
    pub(super) n_left: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], n_left: usize) -> Lexer<'a> {
        Lexer { bytes, at: 0, n_left }
    }

    /// The next value, with references resolved to one value. `None` at the end, or if reading on makes no sense.
    pub(super) fn value(&mut self) -> Option<PdfValue> {
        self.value_within(0)
    }

    fn value_within(&mut self, depth: usize) -> Option<PdfValue> {
        let value = self.simple_value(depth)?;
        if let PdfValue::Number(number) = value
            && number >= 0.0
            && let Some(reference) = self.reference(number)
        {
            return Some(reference);
        }
        Some(value)
    }

    /// The rest of `12 0 R` after its first number.
    fn reference(&mut self, number: f32) -> Option<PdfValue> {
        let start = self.at;
        let rest = &self.bytes[start..self.bytes.len().min(start + MAX_REFERENCE_BYTES)];
        let text = rest.trim_ascii_start();
        let n_generation = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let after = text[n_generation..].trim_ascii_start();
        let is_word_end = after.get(1).is_none_or(|&byte| !is_regular(byte));
        if n_generation == 0
            || after.len() == text.len() - n_generation
            || after.first() != Some(&b'R')
            || !is_word_end
        {
            return None;
        }
        self.at = start + rest.len() - after.len() + 1;
        Some(PdfValue::Reference(number as u32))
    }

    fn simple_value(&mut self, depth: usize) -> Option<PdfValue> {
        self.skip_blanks();
        self.n_left = self.n_left.checked_sub(1)?;
        let byte = *self.bytes.get(self.at)?;
        let next = self.bytes.get(self.at + 1).copied();
        match (byte, next) {
            (b'/', _) => {
                self.at += 1;
                Some(PdfValue::Name(self.name()))
            }
            (b'(', _) => self.literal_string(),
            (b'<', Some(b'<')) => self.dictionary(depth),
            (b'<', _) => Some(self.hexadecimal_string()),
            (b'[', _) => self.array(depth),
            (b'0'..=b'9' | b'+' | b'-' | b'.', _) => Some(self.number()),
            (b')' | b']' | b'>' | b'{' | b'}', _) => {
                self.at += 1;
                Some(PdfValue::Word((byte as char).to_string()))
            }
            _ => Some(self.word()),
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'%' => {
                    let rest = &self.bytes[self.at..];
                    self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                }
                byte if is_blank(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    fn regular(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take(MAX_STRING_BYTES).take_while(|&&byte| is_regular(byte)).count();
        self.at += length;
        &rest[..length]
    }

    fn word(&mut self) -> PdfValue {
        let word = self.regular();
        if word.is_empty() {
            self.at += 1;
        }
        match word {
            b"null" => PdfValue::Null,
            word => PdfValue::Word(String::from_utf8_lossy(word).into_owned()),
        }
    }

    fn name(&mut self) -> String {
        let name = self.regular();
        if !name.contains(&b'#') {
            return String::from_utf8_lossy(name).into_owned();
        }
        let mut bytes = Vec::with_capacity(name.len());
        let mut at = 0;
        while at < name.len() {
            let escaped = (name[at] == b'#').then(|| name.get(at + 1..at + 3)).flatten();
            match escaped.and_then(|digits| Some(hex(digits[0])? << 4 | hex(digits[1])?)) {
                Some(byte) => {
                    bytes.push(byte);
                    at += 3;
                }
                None => {
                    bytes.push(name[at]);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn number(&mut self) -> PdfValue {
        let text = self.regular();
        let text = std::str::from_utf8(text).unwrap_or_default();
        PdfValue::Number(text.parse().ok().filter(|number: &f32| number.is_finite()).unwrap_or_default())
    }

    /// Returns `None` if the string is longer than in any real file.
    fn literal_string(&mut self) -> Option<PdfValue> {
        let (mut string, mut depth) = (Vec::new(), 1);
        self.at += 1;
        while string.len() < MAX_STRING_BYTES {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' if depth == 1 => return Some(PdfValue::String(string)),
                b')' => depth -= 1,
                b'\\' => {
                    string.extend(self.escaped());
                    continue;
                }
                _ => {}
            }
            string.push(byte);
        }
        None
    }

    /// The meaning of a backslash and the bytes after it.
    fn escaped(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        match byte {
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            b'b' | b'f' => Some(b' '),
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.bytes.get(self.at).copied() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                Some(code as u8)
            }
            b'\r' => {
                self.at += usize::from(self.bytes.get(self.at) == Some(&b'\n'));
                None
            }
            b'\n' => None,
            byte => Some(byte),
        }
    }

    fn hexadecimal_string(&mut self) -> PdfValue {
        let rest = &self.bytes[self.at + 1..];
        let rest = &rest[..rest.len().min(2 * MAX_STRING_BYTES)];
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        self.at += 1 + (end + 1).min(self.bytes.len() - self.at - 1);
        PdfValue::String(from_hexadecimal(&rest[..end]))
    }

    fn array(&mut self, depth: usize) -> Option<PdfValue> {
        self.at += 1;
        let mut values = Vec::new();
        if depth >= MAX_DEPTH {
            return None;
        }
        loop {
            match self.value_within(depth + 1)? {
                PdfValue::Word(word) if word == "]" => return Some(PdfValue::Array(values)),
                // The end of the array is missing.
                PdfValue::Word(word) if word == "endobj" || word == ">" => {
                    return Some(PdfValue::Array(values));
                }
                value => values.push(value),
            }
        }
    }

    fn dictionary(&mut self, depth: usize) -> Option<PdfValue> {
        self.at += 2;
        let mut entries = Dictionary::new();
        if depth >= MAX_DEPTH {
            return None;
        }
        loop {
            match self.value_within(depth + 1)? {
                PdfValue::Name(name) => match self.value_within(depth + 1)? {
                    PdfValue::Word(word) if word == ">" => break,
                    value => _ = entries.insert(name, value),
                },
                PdfValue::Word(word) if word == ">" || word == "endobj" || word == "stream" => break,
                _ => {}
            }
        }
        // The second `>` of the two at the end.
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'>'));
        Some(PdfValue::Dictionary(entries))
    }
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0 | 12)
}

fn is_regular(byte: u8) -> bool {
    !is_blank(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// Decodes pairs of digits. A missing last digit is 0.
pub(super) fn from_hexadecimal(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = text.iter().filter_map(|&digit| hex(digit)).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or_default()).collect()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|digit| digit as u8)
}
