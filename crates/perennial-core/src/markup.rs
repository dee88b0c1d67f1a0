//! Text of any origin -> what may stand in HTML, SVG and XML, between tags and in double-quoted attributes.

use std::fmt::{self, Display, Write};

/// Text that is escaped when it is written: `write!(out, "<p>{}</p>", escaped(text))`.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(&'a str);

/// Text that means itself wherever it stands: nothing in it opens a tag or ends an attribute.
pub fn escaped(text: &str) -> Escaped<'_> {
    Escaped(text)
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0)
    }
}

/// Writes text that means itself. Line ends and tabs become references, or a reader of XML would turn them into spaces
/// where they stand in an attribute. Characters that XML forbids become U+FFFD.
pub fn write_escaped(out: &mut impl Write, text: &str) -> fmt::Result {
    // Most text needs no escape: what lies between two is written at once.
    let mut written = 0;
    for (at, character) in text.char_indices() {
        let Some(escape) = escape_of(character) else { continue };
        out.write_str(&text[written..at])?;
        out.write_str(escape)?;
        written = at + character.len_utf8();
    }
    out.write_str(&text[written..])
}

/// A text as XML can hold it: characters that it forbids become U+FFFD.
pub fn holdable(mut text: String) -> String {
    if text.contains(is_forbidden) {
        text = text.replace(is_forbidden, "\u{fffd}");
    }
    text
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

fn escape_of(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\t' => Some("&#9;"),
        '\n' => Some("&#10;"),
        '\r' => Some("&#13;"),
        forbidden if is_forbidden(forbidden) => Some("\u{fffd}"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escaped("a<b> & \"c\"").to_string(), "a&lt;b&gt; &amp; &quot;c&quot;");
        assert_eq!(escaped("é\u{1}\n").to_string(), "é\u{fffd}&#10;");
        assert_eq!(escaped("").to_string(), "");
    }

    proptest! {
        /// A reader of XML finds the very text again, as content and as an attribute.
        #[test]
        fn a_reader_finds_the_text_again(text in "[a-z<>&\"'\\t\\n\\r é]{0,40}") {
            let xml = format!("<p t=\"{}\"></p>", escaped(&text));
            let mut reader = Reader::from_str(&xml);
            let Event::Start(tag) = reader.read_event().unwrap() else { panic!("{xml}") };
            let attribute = tag.attributes().next().unwrap().unwrap();
            let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap();
            prop_assert_eq!(value.as_ref(), text.as_str());
            let nothing_opens = !escaped(&text).to_string().contains(['<', '>', '"']);
            prop_assert!(nothing_opens);
        }
    }
}
