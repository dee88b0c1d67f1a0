//! A text -> the same text without differences of typography: quotes, dashes, spaces, case, Unicode forms.

use icu_normalizer::ComposingNormalizerBorrowed;

/// The form in which texts that differ only in typography are equal. It is for comparing, not for reading.
pub fn without_typography(text: &str) -> String {
    if text.is_ascii() {
        let kept = text.chars().filter(|c| !c.is_ascii_whitespace());
        return kept.map(|c| if c == '"' { '\'' } else { c.to_ascii_lowercase() }).collect();
    }
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(text);
    let mut plain = String::with_capacity(text.len());
    for c in composed.chars().filter(|c| !is_space(*c)) {
        match c {
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

/// White space, and characters that nobody sees.
fn is_space(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}')
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
        ] {
            assert_eq!(without_typography(one), without_typography(other));
        }
        for (one, other) in [("10", "102"), ("m²", "m2"), ("Recht", "recht so"), ("é", "e"), ("a.b", "ab")]
        {
            assert_ne!(without_typography(one), without_typography(other));
        }
    }
}
