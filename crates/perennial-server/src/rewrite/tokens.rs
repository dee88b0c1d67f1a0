//! The tokens of JavaScript that a rewriter needs: names, strings, brackets, other values and operators.
//!
//! This is not a parser. The previous token, and whether the expression ends on its line, decide whether a slash divides or starts a
//! regular expression. A wrong decision makes the brackets unbalanced, and then the script is not rewritten (module `script`).

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Name,
    /// A string in single or double quotes.
    Text,
    /// A number, a regular expression, a part of a template.
    Value,
    /// One of `( [ {`, including `${` of a template.
    Open,
    Close,
    /// Anything else: `.`, `?.` and `=>` are one token; of other operators each byte is.
    Sign,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Enclosing brackets; an opening bracket does not count itself.
    pub(super) depth: u32,
    /// Whether a line ends before it.
    pub(super) is_on_new_line: bool,
    /// The matching bracket.
    pub(super) partner: u32,
}

/// No matching bracket.
pub(super) const NONE: u32 = u32::MAX;

/// Words after which an expression begins, so that a slash starts a regular expression.
const BEFORE_EXPRESSION: [&str; 15] = [
    "return",
    "typeof",
    "instanceof",
    "in",
    "of",
    "new",
    "delete",
    "void",
    "throw",
    "case",
    "do",
    "else",
    "yield",
    "await",
    "default",
];

/// Words whose brackets contain a condition; a statement follows them.
pub(super) const CONDITIONS: [&str; 6] = ["if", "while", "for", "with", "switch", "catch"];

/// Tokenizes a script; `None` if brackets are unbalanced or a string does not end.
pub(super) fn tokens(source: &str) -> Option<Vec<Token>> {
    let mut scanner = ScriptScanner {
        source,
        bytes: source.as_bytes(),
        at: 0,
        tokens: Vec::new(),
        open: Vec::new(),
        is_new_line: true,
    };
    while scanner.step()? {}
    scanner.open.is_empty().then_some(scanner.tokens)
}

struct ScriptScanner<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Open brackets: the index of the token, and whether it belongs to a template.
    open: Vec<(u32, bool)>,
    is_new_line: bool,
}

impl ScriptScanner<'_> {
    /// Reads a token, blank or comment; `Some(false)` at the end.
    fn step(&mut self) -> Option<bool> {
        let Some(&byte) = self.bytes.get(self.at) else { return Some(false) };
        match byte {
            b'\n' | b'\r' => {
                self.is_new_line = true;
                self.at += 1;
            }
            b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
            b'/' if self.rest().starts_with(b"//") => self.skip_line(),
            b'/' if self.rest().starts_with(b"/*") => self.skip_comment()?,
            b'<' if self.rest().starts_with(b"<!--") => self.skip_line(),
            b'-' if self.is_new_line && self.rest().starts_with(b"-->") => self.skip_line(),
            b'#' if self.rest().starts_with(b"#!") && self.at == 0 => self.skip_line(),
            b'\'' | b'"' => self.text(byte)?,
            b'`' => self.template()?,
            b'(' | b'[' | b'{' => self.open(1, false),
            b')' | b']' | b'}' => self.close(byte)?,
            b'0'..=b'9' => self.number(),
            b'.' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'/' => self.slash(),
            _ if is_name_byte(byte) || byte == b'#' || byte == b'\\' => self.name(),
            _ => self.sign(),
        }
        Some(true)
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let depth = self.open.len() as u32;
        let (start, end) = (self.at, self.at + length);
        self.tokens.push(Token { kind, start, end, depth, is_on_new_line: self.is_new_line, partner: NONE });
        self.is_new_line = false;
        self.at = end;
    }

    fn skip_line(&mut self) {
        self.at +=
            self.rest().iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(self.rest().len());
    }

    fn skip_comment(&mut self) -> Option<()> {
        let length = self.source[self.at..].find("*/")? + 2;
        self.is_new_line |= self.rest()[..length].contains(&b'\n');
        self.at += length;
        Some(())
    }

    fn text(&mut self, quote: u8) -> Option<()> {
        let mut length = 1;
        loop {
            match *self.rest().get(length)? {
                b'\\' => length += 2,
                b'\n' => return None,
                byte if byte == quote => break,
                _ => length += 1,
            }
        }
        self.push(Kind::Text, length + 1);
        Some(())
    }

    /// Reads a part of a template, to its end or to the next `${`.
    fn template(&mut self) -> Option<()> {
        let mut length = 1;
        loop {
            match *self.rest().get(length)? {
                b'\\' => length += 2,
                b'`' => {
                    self.push(Kind::Value, length + 1);
                    return Some(());
                }
                b'$' if self.rest().get(length + 1) == Some(&b'{') => {
                    self.push(Kind::Value, length);
                    self.open(2, true);
                    return Some(());
                }
                _ => length += 1,
            }
        }
    }

    fn open(&mut self, length: usize, is_template: bool) {
        let index = self.tokens.len() as u32;
        self.push(Kind::Open, length);
        self.open.push((index, is_template));
    }

    fn close(&mut self, byte: u8) -> Option<()> {
        let (partner, is_template) = self.open.pop()?;
        let opened = &self.tokens[partner as usize];
        let expected = match self.bytes[opened.end - 1] {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        if byte != expected {
            return None;
        }
        let index = self.tokens.len() as u32;
        if is_template {
            // The next part of the template begins at the bracket.
            self.push(Kind::Close, 0);
        } else {
            self.push(Kind::Close, 1);
        }
        self.tokens[partner as usize].partner = index;
        self.tokens[index as usize].partner = partner;
        if is_template { self.template() } else { Some(()) }
    }

    fn number(&mut self) {
        let is_part = |at: usize| {
            let byte = self.bytes[at];
            let is_exponent_sign = matches!(byte, b'+' | b'-')
                && matches!(self.bytes[at - 1], b'e' | b'E')
                && !self.rest().starts_with(b"0x")
                && !self.rest().starts_with(b"0X");
            is_name_byte(byte) || byte == b'.' || is_exponent_sign
        };
        let end = (self.at + 1..self.bytes.len()).find(|&at| !is_part(at)).unwrap_or(self.bytes.len());
        self.push(Kind::Value, end - self.at);
    }

    fn name(&mut self) {
        let mut length = 1;
        while let Some(&byte) = self.rest().get(length) {
            // An escape in a name, such as `\u{6c}ocation`.
            let is_escape = byte == b'\\' || (byte == b'{' && self.rest()[..length].ends_with(b"\\u"));
            let ends_escape = byte == b'}' && self.rest()[..length].contains(&b'{');
            if !(is_name_byte(byte) || is_escape || ends_escape) {
                break;
            }
            length += 1;
        }
        self.push(Kind::Name, length);
    }

    fn sign(&mut self) {
        let length = if self.rest().starts_with(b"...") {
            3
        } else if self.rest().starts_with(b"?.") || self.rest().starts_with(b"=>") {
            2
        } else {
            self.source[self.at..].chars().next().map_or(1, char::len_utf8)
        };
        self.push(Kind::Sign, length);
    }

    fn slash(&mut self) {
        match self.may_begin_expression().then(|| self.expression_length()).flatten() {
            Some(length) => self.push(Kind::Value, length),
            None => self.push(Kind::Sign, 1),
        }
    }

    /// Whether an expression may begin here.
    fn may_begin_expression(&self) -> bool {
        let Some(before) = self.tokens.last() else { return true };
        match before.kind {
            Kind::Name => BEFORE_EXPRESSION.contains(&&self.source[before.start..before.end]),
            Kind::Text | Kind::Value => false,
            Kind::Open => true,
            Kind::Close if self.bytes.get(before.start) == Some(&b')') => {
                let word = before.partner.checked_sub(1).and_then(|index| self.tokens.get(index as usize));
                word.is_some_and(|word| CONDITIONS.contains(&&self.source[word.start..word.end]))
            }
            Kind::Close => self.bytes.get(before.start) == Some(&b'}'),
            Kind::Sign => !matches!(&self.source[before.start..before.end], "." | "?."),
        }
    }

    /// The length of a regular expression that begins here, if it ends on its line.
    fn expression_length(&self) -> Option<usize> {
        let (mut length, mut is_in_class) = (1, false);
        loop {
            match *self.rest().get(length)? {
                b'\\' => length += 1,
                b'\n' | b'\r' => return None,
                b'[' => is_in_class = true,
                b']' => is_in_class = false,
                b'/' if !is_in_class => break,
                _ => {}
            }
            length += 1;
        }
        let flags = self.rest()[length + 1..].iter().take_while(|byte| is_name_byte(**byte)).count();
        Some(length + 1 + flags)
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Option<Vec<&str>> {
        Some(tokens(source)?.iter().map(|token| &source[token.start..token.end]).collect())
    }

    #[test]
    fn a_slash_is_distinguished_from_an_expression() {
        assert_eq!(words("a/b/c").unwrap(), ["a", "/", "b", "/", "c"]);
        assert_eq!(
            words("x=/[/'\"]/g.test(y)").unwrap(),
            ["x", "=", "/[/'\"]/g", ".", "test", "(", "y", ")"]
        );
        assert_eq!(words("if(a)/'/.x").unwrap(), ["if", "(", "a", ")", "/'/", ".", "x"]);
        assert_eq!(words("(a)/2").unwrap(), ["(", "a", ")", "/", "2"]);
        assert_eq!(words("return/\\//").unwrap(), ["return", "/\\//"]);
    }

    #[test]
    fn templates_hold_code() {
        let expected = ["`a", "${", "b", "+", "`c", "${", "d", "", "}`", "", "}e`", ";", "f"];
        assert_eq!(words("`a${b+`c${d}`}e`;f").unwrap(), expected);
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(words("a//b\nc/*d*/e<!-- f\n--> g\nh").unwrap(), ["a", "c", "e", "h"]);
        assert_eq!(words("a-->b").unwrap(), ["a", "-", "-", ">", "b"]);
    }

    #[test]
    fn what_is_uneven_is_refused() {
        for source in ["(", ")", "(]", "'a", "`a", "/*", "`${", "'\n'", "\"\\"] {
            assert!(tokens(source).is_none(), "{source}");
        }
    }
}
