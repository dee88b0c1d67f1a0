//! Any text -> text that is safe in HTML, SVG and XML, between tags and in double-quoted attributes.

use std::fmt::{self, Display, Write};

/// Escapes a text when it is written: `write!(out, "<p>{}</p>", escaped(text))`.
pub fn escaped(text: &str) -> impl Display {
    fmt::from_fn(move |f| write_escaped(f, text))
}

/// Escapes a text between tags of HTML when it is written, and isolates its direction from the text around it. A
/// right-to-left text is put into a `bdi`, without the marks that would reach beyond it.
pub fn isolated(text: &str) -> impl Display {
    fmt::from_fn(move |f| {
        if !text.contains(|c| is_reordering(c) || is_right_to_left(c)) {
            return write_escaped(f, text);
        }
        f.write_str("<bdi>")?;
        // An unclosed embedding would continue after the element, and a closing mark could close the element's own
        // embedding.
        text.split(is_reordering).try_for_each(|part| write_escaped(f, part))?;
        f.write_str("</bdi>")
    })
}

/// Removes direction marks from a text, for places that cannot contain elements, such as the title of a window.
pub fn without_direction_marks(text: &str) -> String {
    text.replace(is_reordering, "")
}

/// Marks that change the direction of the text after them: embeddings, overrides, isolates and their ends.
fn is_reordering(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{200f}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Writes escaped text. Line ends and tabs become references, because XML readers would turn them into spaces in
/// attributes. Characters that XML forbids become U+FFFD.
pub fn write_escaped(out: &mut impl Write, text: &str) -> fmt::Result {
    // Most text needs no escapes, so the text between two of them is written at once.
    let mut written = 0;
    for (at, character) in text.char_indices() {
        let Some(escape) = escape(character) else { continue };
        out.write_str(&text[written..at])?;
        out.write_str(escape)?;
        written = at + character.len_utf8();
    }
    out.write_str(&text[written..])
}

/// Replaces characters that XML forbids with U+FFFD.
pub fn xml_safe(mut text: String) -> String {
    if text.contains(is_forbidden) {
        text = text.replace(is_forbidden, "\u{fffd}");
    }
    text
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

fn escape(character: char) -> Option<&'static str> {
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

    #[test]
    fn text_of_any_direction_is_isolated() {
        assert_eq!(isolated("a<b").to_string(), "a&lt;b");
        assert_eq!(isolated("\u{202e}gpj.exe").to_string(), "<bdi>gpj.exe</bdi>");
        assert_eq!(isolated("a\u{2069}\u{202e}b</bdi>").to_string(), "<bdi>ab&lt;/bdi&gt;</bdi>");
        assert_eq!(isolated("שלום").to_string(), "<bdi>שלום</bdi>");
    }

    proptest! {
        /// An XML reader reads back the same text, as content and as an attribute.
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
