//! A text -> its words in normal form.
//!
//! Case, accents and compatibility forms are ignored: `Élan` and `elan` are one word. In scripts without spaces
//! (Chinese, Japanese, Thai and others) each character is a word, so any run of characters is a phrase.

use std::ops::Range;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Longer words are truncated, because no reader searches for them.
const MAX_TERM_CHARS: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextTerm {
    /// In normal form.
    pub word: String,
    /// Its position in the text, in bytes.
    pub at: Range<usize>,
}

pub fn terms(text: &str) -> Vec<TextTerm> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices() {
        if is_word(c) && !is_unspaced(c) {
            start.get_or_insert(at);
            continue;
        }
        if let Some(start) = start.take() {
            push(&mut found, text, start..at);
        }
        if is_unspaced(c) {
            push(&mut found, text, at..at + c.len_utf8());
        }
    }
    if let Some(start) = start {
        push(&mut found, text, start..text.len());
    }
    found
}

fn push(found: &mut Vec<TextTerm>, text: &str, at: Range<usize>) {
    let word = folded(&text[at.clone()]);
    // A lone mark normalises to nothing.
    if !word.is_empty() {
        found.push(TextTerm { word, at });
    }
}

/// Removes case, accents and compatibility forms.
pub fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.chars().take(MAX_TERM_CHARS).map(|c| c.to_ascii_lowercase()).collect();
    }
    let normalizer = DecomposingNormalizerBorrowed::new_nfkd();
    // Lower case before and after, because some letters have a lower case only in one of the two forms.
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let plain = lower(&normalizer.normalize(&lower(word)));
    let letters = plain.chars().filter(|&c| !is_mark(c) && is_word(c));
    letters.flat_map(|c| if c == 'ß' { ['s', 's'].to_vec() } else { vec![c] }).take(MAX_TERM_CHARS).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Combining marks.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}')
}

/// Letters of scripts without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|term| term.word).collect()
    }

    #[test]
    fn case_accents_and_forms_do_not_count() {
        assert_eq!(words("Élan, ÉCOLE! straße"), ["elan", "ecole", "strasse"]);
        assert_eq!(words("e\u{301}lan ﬁle ２０２６"), ["elan", "file", "2026"]);
        assert_eq!(words("İstanbul ΣΊΣΥΦΟΣ"), [folded("istanbul"), folded("σίσυφοσ")]);
    }

    #[test]
    fn words_end_where_a_reader_sees_them_end() {
        assert_eq!(words("don't re-open 3.5%"), ["don", "t", "re", "open", "3", "5"]);
        assert_eq!(words(" \u{301} -- "), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_give_characters() {
        assert_eq!(words("東京都is big"), ["東", "京", "都", "is", "big"]);
        assert_eq!(words("한국어 검색"), [folded("한국어"), folded("검색")]);
    }

    proptest::proptest! {
        #[test]
        fn places_are_those_of_the_words(text in "\\PC{0,60}") {
            for term in terms(&text) {
                proptest::prop_assert_eq!(folded(&text[term.at.clone()]), term.word.clone());
                // A store that splits words at spaces returns it as one word.
                proptest::prop_assert!(!term.word.contains(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()));
                proptest::prop_assert_eq!(folded(&term.word), term.word);
            }
        }
    }
}
