//! HTML and JSON -> one line per tag, text or value, so a changed snapshot shows what changed.
//!
//! The order of attributes and keys and the form of an escape do not matter. A missing escape does: an unescaped tag
//! has its own line, and escaped text is quoted.

use std::cell::RefCell;
use std::fmt::Write;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use serde_json::{Number, Value};

const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Inline style sheets and scripts. Pages contain only their names; each asset has its own snapshot.
#[derive(Default)]
pub(crate) struct Assets(RefCell<Vec<(String, String)>>);

impl Assets {
    /// The name of an asset. Equal texts have equal names.
    fn name(&self, kind: &str, text: &str) -> String {
        let mut known = self.0.borrow_mut();
        if let Some((name, _)) = known.iter().find(|(name, other)| name.starts_with(kind) && other == text) {
            return name.clone();
        }
        let n_before = known.iter().filter(|(name, _)| name.starts_with(kind)).count();
        let name = format!("{kind}-{}", n_before + 1);
        known.push((name.clone(), text.to_string()));
        name
    }

    /// All assets by name.
    pub(crate) fn into_all(self) -> Vec<(String, String)> {
        self.0.into_inner()
    }
}

/// The tags and texts of a page, indented.
pub(crate) fn html(text: &str, assets: &Assets) -> String {
    let mut lines = String::new();
    write_html(text, assets, 0, &mut lines);
    lines
}

fn write_html(text: &str, assets: &Assets, depth: usize, lines: &mut String) {
    let sink = Sink(RefCell::new(Outline {
        assets,
        depth,
        text: String::new(),
        open: Vec::new(),
        lines: String::new(),
    }));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(text));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut outline = tokenizer.sink.0.into_inner();
    outline.flush_text();
    lines.push_str(&outline.lines);
}

struct Sink<'a>(RefCell<Outline<'a>>);

impl TokenSink for Sink<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        self.0.borrow_mut().add(token)
    }
}

struct Outline<'a> {
    assets: &'a Assets,
    depth: usize,
    /// Characters since the last tag.
    text: String,
    open: Vec<String>,
    lines: String,
}

impl Outline<'_> {
    fn add(&mut self, token: Token) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) => self.text.push_str(&text),
            Token::TagToken(tag) => {
                self.flush_text();
                return self.add_tag(&tag);
            }
            Token::CommentToken(text) => {
                self.flush_text();
                self.line(&format!("<!--{text}-->"));
            }
            Token::DoctypeToken(doctype) => {
                self.line(&format!("<!doctype {}>", doctype.name.as_deref().unwrap_or_default()));
            }
            Token::NullCharacterToken => self.text.push('\u{fffd}'),
            Token::ParseError(_) | Token::EOFToken => {}
        }
        TokenSinkResult::Continue
    }

    fn add_tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if tag.kind == TagKind::EndTag {
            let matches = self.open.last().is_some_and(|open| open == name);
            match self.open.pop() {
                Some(_) if matches => self.depth -= 1,
                other => {
                    self.open.extend(other);
                    self.line(&format!("</{name}> [closes nothing]"));
                }
            }
            return TokenSinkResult::Continue;
        }
        let mut attributes: Vec<(&str, &str)> =
            tag.attrs.iter().map(|attribute| (&*attribute.name.local, &*attribute.value)).collect();
        attributes.sort_unstable();
        let srcdoc = attributes.iter().find(|(name, _)| *name == "srcdoc").map(|(_, page)| *page);
        let mut line = format!("<{name}");
        for (name, value) in attributes.iter().filter(|(name, _)| *name != "srcdoc") {
            match value.is_empty() {
                true => line.push_str(&format!(" {name}")),
                false => line.push_str(&format!(" {name}={}", quoted(value))),
            }
        }
        self.line(&(line + ">"));
        if let Some(page) = srcdoc {
            self.line("[srcdoc]");
            write_html(page, self.assets, self.depth + 1, &mut self.lines);
        }
        if !VOID.contains(&name) && !tag.self_closing {
            self.open.push(name.to_string());
            self.depth += 1;
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" => TokenSinkResult::RawData(RawKind::Rawtext),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn flush_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.open.last().map(String::as_str) {
            _ if text.is_empty() => {}
            // White space around the page.
            None if text.trim().is_empty() => {}
            Some(kind @ ("style" | "script")) => {
                let name = self.assets.name(kind, &text);
                self.line(&format!("[{name}]"));
            }
            _ => self.line(&quoted(&text)),
        }
    }

    fn line(&mut self, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.lines, "{:indent$}{text}", "", indent = self.depth);
    }
}

/// The text on one line, with invisible characters escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{a0}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out + "\""
}

/// JSON with one value per line. Numbers keep nine digits, because the last bits of logarithms differ between systems.
pub(crate) fn json(value: &Value) -> String {
    format!("{:#}", rounded(value))
}

fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let digits = number.as_f64().and_then(|number| format!("{number:.8e}").parse().ok());
            digits.and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        Value::Array(values) => values.iter().map(rounded).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.iter().map(|(name, value)| (name.clone(), rounded(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[test]
fn an_outline_shows_whether_text_is_escaped() {
    let outline = |text: &str| html(text, &Assets::default());
    assert_eq!(outline("<p id=a class='b'>x &amp; it&#39;s<br>"), outline("<p class=b id=a>x & it's<br>"));
    assert_eq!(outline("<p>&lt;b&gt;</p>"), "<p>\n \"<b>\"\n");
    assert_eq!(outline("<p><b>"), "<p>\n <b>\n");
}
