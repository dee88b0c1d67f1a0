//! Untrusted text -> text of bounded length, and text that is harmless on a terminal.
//!
//! URLs, names, labels and lines of imported files pass through this module where they enter. Other code therefore
//! never receives one that is too long. Printed text passes through [`TerminalWriter`], because a URL may contain
//! terminal control sequences.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Write};

use unicode_width::UnicodeWidthChar;

/// Maximum length of a capture's URL. Its index line, with up to six bytes per character, is far below the maximum
/// line length.
pub const MAX_URL_BYTES: usize = 32 << 10;
/// Maximum length of a media type or digest. Real ones are far shorter.
pub const MAX_LABEL_BYTES: usize = 255;
/// Maximum length of a file name, with room for a number and a suffix below the usual limit of 255.
pub const MAX_NAME_BYTES: usize = 200;
/// Maximum length of an index line. The rest of a longer one is skipped.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Maximum length of a text that is quoted in a message.
const MAX_QUOTED_COLUMNS: usize = 200;
/// Maximum bytes per column of a shortened text. A base character with many combining marks exceeds it.
const MAX_COLUMN_BYTES: usize = 16;

/// Returns the URL, or why it is not acceptable.
pub fn checked_url(text: &str) -> Result<&str, String> {
    match text.len() {
        0 => Err("its address is empty".to_string()),
        n if n > MAX_URL_BYTES => {
            Err(format!("its address has {n} bytes, more than {MAX_URL_BYTES}: {}", quoted(text)))
        }
        _ => Ok(text),
    }
}

/// Returns a media type or digest, or `None` if it is too long.
pub fn checked_label(text: &str) -> Option<&str> {
    (text.len() <= MAX_LABEL_BYTES).then_some(text)
}

/// The beginning of a text, for messages.
pub fn quoted(text: &str) -> Cow<'_, str> {
    shorten(text, MAX_QUOTED_COLUMNS)
}

/// Truncates a stored text to a number of bytes, at a character boundary. Use [`shorten`] for text that people see.
pub fn truncate(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Shortens a text to a number of columns and appends `…`. A wide character takes two columns, combining marks are not
/// separated from their base character, and open text directions are closed.
pub fn shorten(text: &str, n_columns: usize) -> Cow<'_, str> {
    match end_within(text, n_columns) {
        None => Cow::Borrowed(text),
        Some(_) if n_columns == 0 => Cow::Borrowed(""),
        Some(end) => Cow::Owned(format!("{}…{}", &text[..end], closing_marks(&text[..end]))),
    }
}

/// The offset at which to cut a text before `…`. `None` if the whole text fits.
fn end_within(text: &str, n_columns: usize) -> Option<usize> {
    let (mut n_used, mut end, mut is_joined) = (0, 0, false);
    for (at, c) in text.char_indices() {
        if !is_joined && !is_continuation(c) {
            end = if n_used < n_columns { at } else { end };
            n_used += c.width().unwrap_or(1);
        }
        if n_used > n_columns || at >= n_columns * MAX_COLUMN_BYTES {
            return Some(end);
        }
        is_joined = c == '\u{200d}';
    }
    None
}

/// Whether a character combines with the one before it: accents, variation selectors, skin tones.
fn is_continuation(c: char) -> bool {
    c.width() == Some(0) || matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// The marks that close the open text directions.
fn closing_marks(text: &str) -> String {
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' => open.push('\u{202c}'),
            '\u{2066}'..='\u{2068}' => open.push('\u{2069}'),
            _ if open.last() == Some(&c) => drop(open.pop()),
            _ => {}
        }
    }
    open.into_iter().rev().collect()
}

/// A safe file name: bounded, without separators, control characters and leading dots. The end with the extension is
/// kept.
pub fn file_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c == '/' || c == '\\' || is_command(c) || c == '\n' || c == '\t' { '_' } else { c })
        .collect();
    let clean = clean.trim_start_matches('.');
    if clean.len() <= MAX_NAME_BYTES {
        return clean.to_string();
    }
    let mut from = clean.len() - MAX_NAME_BYTES;
    while !clean.is_char_boundary(from) {
        from += 1;
    }
    clean[from..].trim_start_matches('.').to_string()
}

/// Whether a terminal may interpret a character instead of showing it: control characters, direction marks and line
/// separators, except newline and tab.
fn is_command(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let parts = matches!(c, '\u{2028}' | '\u{2029}');
    turns || parts || c.is_control() && !matches!(c, '\n' | '\t')
}

/// Replaces characters that a terminal may interpret with escapes.
pub fn terminal_safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push_escaped(c, EscapeForm::Text, &mut out));
    Cow::Owned(out)
}

/// The notation of such a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EscapeForm {
    /// For people: `\u{1b}`.
    Text,
    /// As in a JSON string, the only place in JSON where such characters can occur: `\u001b`.
    Json,
}

fn push_escaped(c: char, form: EscapeForm, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match (is_command(c), form) {
        (false, _) => {
            out.push(c);
            Ok(())
        }
        (true, EscapeForm::Text) => write!(out, "\\u{{{:x}}}", u32::from(c)),
        // All of them are below U+10000, so one escape is sufficient.
        (true, EscapeForm::Json) => write!(out, "\\u{:04x}", u32::from(c)),
    };
}

/// Writes text to `out` with escapes for characters that a terminal may interpret, even if they are split across
/// calls.
pub struct TerminalWriter<W> {
    out: W,
    form: EscapeForm,
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    pub fn new(out: W, form: EscapeForm) -> TerminalWriter<W> {
        TerminalWriter { out, form, begun: Vec::new() }
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes;
        loop {
            let (sound, error) = match std::str::from_utf8(rest) {
                Ok(sound) => (sound, None),
                Err(error) => {
                    (std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(), Some(error))
                }
            };
            match sound.contains(is_command) {
                true => sound.chars().for_each(|c| push_escaped(c, self.form, &mut text)),
                false => text.push_str(sound),
            }
            let Some(error) = error else { break };
            rest = &rest[error.valid_up_to()..];
            let Some(n_bad) = error.error_len() else {
                self.begun = rest.to_vec();
                break;
            };
            // On a terminal that is not in UTF-8 mode, a single byte may be a control character, too.
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[n_bad..];
        }
        self.out.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.begun.is_empty() {
            self.pass(bytes)?;
        } else {
            let mut whole = std::mem::take(&mut self.begun);
            whole.extend_from_slice(bytes);
            self.pass(&whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One line of an untrusted file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundedLine {
    /// A line without its line end. Bytes that are not UTF-8 are replaced.
    Whole(String),
    /// The beginning of a line that is longer than [`MAX_LINE_BYTES`].
    TooLong(String),
}

/// The lines of an input. At most [`MAX_LINE_BYTES`] of a line are kept in memory.
pub fn bounded_lines(mut source: impl BufRead) -> impl Iterator<Item = io::Result<BoundedLine>> {
    std::iter::from_fn(move || next_line(&mut source).transpose())
}

fn next_line(source: &mut impl BufRead) -> io::Result<Option<BoundedLine>> {
    let mut line = Vec::new();
    source.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let is_whole = line.ends_with(b"\n") || line.len() < MAX_LINE_BYTES;
    if !is_whole {
        source.skip_until(b'\n')?;
    }
    let text = String::from_utf8_lossy(line.trim_ascii_end());
    Ok(Some(match is_whole {
        true => BoundedLine::Whole(text.into_owned()),
        false => BoundedLine::TooLong(quoted(&text).into_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::BufReader;

    #[test]
    fn urls_and_labels_are_bounded() {
        assert_eq!(checked_url("http://a.example/"), Ok("http://a.example/"));
        assert!(checked_url("").is_err());
        assert!(checked_url(&"a".repeat(MAX_URL_BYTES)).is_ok());
        let long = checked_url(&"é".repeat(MAX_URL_BYTES)).unwrap_err();
        assert!(long.contains("65536 bytes") && long.len() < 500, "{long}");
        assert_eq!(checked_label(&"x".repeat(MAX_LABEL_BYTES + 1)), None);
    }

    #[test]
    fn texts_are_shortened_at_character_boundaries() {
        for (text, n_columns, expected) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("longer", 1, "…"),
            ("longer", 0, ""),
            ("", 0, ""),
            // Wide characters take two columns.
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            // Combining marks are not separated from their base character.
            ("cafe\u{301}s", 5, "cafe\u{301}s"),
            ("cafe\u{301}s!", 5, "cafe\u{301}…"),
            ("cafe\u{301}s!", 4, "caf…"),
            ("👩\u{200d}👩\u{200d}👧 and 👍🏽", 3, "👩\u{200d}👩\u{200d}👧…"),
            ("👍🏽👍🏽", 3, "👍🏽…"),
            // Open text directions are closed.
            ("\u{202e}txt.exe", 4, "\u{202e}txt…\u{202c}"),
            ("\u{2067}a\u{202b}bcd", 3, "\u{2067}a\u{202b}b…\u{202c}\u{2069}"),
            ("\u{2067}a\u{2069}bcd", 3, "\u{2067}a\u{2069}b…"),
        ] {
            assert_eq!(shorten(text, n_columns), expected, "{text:?} in {n_columns}");
        }
        assert!(quoted(&format!("a{}", "\u{301}".repeat(1 << 20))).len() < 20, "heaps of marks are cut too");
        assert_eq!((truncate("é", 1), truncate("aé", 2), truncate("aé", 9)), ("", "a", "aé"));
    }

    #[test]
    fn file_names_are_safe() {
        assert_eq!(file_name("crawl-1.warc.gz"), "crawl-1.warc.gz");
        assert_eq!(file_name("../a\u{1b}[2J\n.warc"), "_a_[2J_.warc");
        let long = file_name(&format!("{}.warc.gz", "é".repeat(400)));
        assert!(long.len() <= MAX_NAME_BYTES && long.ends_with(".warc.gz"));
    }

    #[test]
    fn control_characters_are_escaped_for_terminals() {
        assert_eq!(terminal_safe("plain é text\n"), "plain é text\n");
        assert_eq!(terminal_safe("a\u{1b}[2J\u{9b}\u{202e}b\r"), "a\\u{1b}[2J\\u{9b}\\u{202e}b\\u{d}");
        let mut json = TerminalWriter::new(Vec::new(), EscapeForm::Json);
        json.write_all("\"\u{9b}\u{7f}\"".as_bytes()).unwrap();
        assert_eq!(serde_json::from_slice::<String>(&json.out).unwrap(), "\u{9b}\u{7f}");
    }

    proptest! {
        #[test]
        fn shortened_texts_fit(text in any::<String>(), n_columns in 1..20usize) {
            let short = shorten(&text, n_columns);
            let n_used: usize = short.chars().map(|c| c.width().unwrap_or(1)).sum();
            prop_assert!(short == text || short.contains('…') && n_used <= n_columns);
        }

        #[test]
        fn text_may_be_cut_anywhere(text in any::<String>(), step in 1..5usize) {
            let mut out = TerminalWriter::new(Vec::new(), EscapeForm::Text);
            text.as_bytes().chunks(step).for_each(|part| out.write_all(part).unwrap());
            prop_assert_eq!(String::from_utf8(out.out).unwrap(), terminal_safe(&text));
        }

        #[test]
        fn no_bytes_give_a_command(bytes in any::<Vec<u8>>(), step in 1..5usize) {
            let mut out = TerminalWriter::new(Vec::new(), EscapeForm::Text);
            bytes.chunks(step).for_each(|part| out.write_all(part).unwrap());
            prop_assert!(!String::from_utf8(out.out).unwrap().contains(is_command));
        }
    }

    #[test]
    fn endless_lines_are_skipped() {
        let endless = io::repeat(b'a').take(3 << 20);
        let text = BufReader::new(endless.chain(&b"\nshort\r\nlast"[..]));
        let lines: Vec<BoundedLine> = bounded_lines(text).map(Result::unwrap).collect();
        assert!(matches!(&lines[0], BoundedLine::TooLong(beginning) if beginning.len() < 300));
        assert_eq!(lines[1..], [BoundedLine::Whole("short".into()), BoundedLine::Whole("last".into())]);
    }
}
