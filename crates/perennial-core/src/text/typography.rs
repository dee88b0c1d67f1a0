//! A text -> the same text without differences of typography: quotes, dashes, spaces, case, Unicode forms.

use icu_normalizer::ComposingNormalizerBorrowed;

/// The form in which texts that differ only in typography are equal. It is for comparing, not for reading.
pub fn without_typography(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    if text.is_ascii() {
        for (at, c) in text.char_indices() {
            match c {
                _ if c.is_ascii_whitespace() => push_space(&mut plain, &text[at + 1..]),
                '"' => plain.push('\''),
                _ => plain.push(c.to_ascii_lowercase()),
            }
        }
        return plain;
    }
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(text);
    for (at, c) in composed.char_indices() {
        match c {
            _ if is_invisible(c) => {}
            _ if c.is_whitespace() => push_space(&mut plain, &composed[at + c.len_utf8()..]),
            '"'
            | '\u{2018}'..='\u{201f}'
            | '\u{2032}'
            | '\u{2033}'
            | '«'
            | '»'
            | '\u{2039}'
            | '\u{203a}'
            | '`'
            | '´' => {
                plain.push('\'');
            }
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
            '…' => plain.push_str("..."),
            'ﬀ' => plain.push_str("ff"),
            'ﬁ' => plain.push_str("fi"),
            'ﬂ' => plain.push_str("fl"),
            'ﬃ' => plain.push_str("ffi"),
            'ﬄ' => plain.push_str("ffl"),
            '\u{ff01}'..='\u{ff5e}' => {
                let narrow = char::from_u32(c as u32 - 0xfee0).unwrap_or(c);
                plain.extend(narrow.to_lowercase());
            }
            _ => plain.extend(c.to_lowercase()),
        }
    }
    plain
}

/// A space between two words counts: "can not" and "cannot" are different words. One next to a digit or a sign does
/// not, and neither does a second one.
fn push_space(plain: &mut String, after: &str) {
    let next = after.chars().find(|c| !is_invisible(*c));
    let is_between_words = plain.chars().next_back().is_some_and(is_spaced) && next.is_some_and(is_spaced);
    if is_between_words {
        plain.push(' ');
    }
}

/// Whether it is a letter of a script that separates words by spaces.
fn is_spaced(c: char) -> bool {
    c.is_alphabetic() && !('\u{2e80}'..='\u{9fff}').contains(&c) && !('\u{0e00}'..='\u{0eff}').contains(&c)
}

/// Characters that nobody sees.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typography_does_not_distinguish_texts() {
        for (one, other) in [
            ("She said \"no\" - twice", "She said “no” – twice"),
            ("Bonjour !", "Bonjour\u{202f}!"),
            ("Don't Panic", "DON’T PANIC"),
            ("Cafe\u{301} ﬁn", "Café fin"),
            ("Sie sagte „nein“", "Sie sagte «nein»"),
            ("2020-2021...", "2020–2021…"),
            ("ＡＢＣ１２", "abc12"),
            ("Donau\u{ad}dampf", "Donaudampf"),
            ("one  two\u{a0}three", "one two three"),
            ("1 204 visites", "1\u{202f}204 visites"),
            ("日本 語", "日本語"),
        ] {
            assert_eq!(without_typography(one), without_typography(other));
        }
        for (one, other) in [
            ("10", "102"),
            ("m²", "m2"),
            ("can not", "cannot"),
            ("Uptime Robot", "UptimeRobot"),
            ("Recht", "recht so"),
            ("é", "e"),
            ("a.b", "ab"),
        ] {
            assert_ne!(without_typography(one), without_typography(other));
        }
    }
}
