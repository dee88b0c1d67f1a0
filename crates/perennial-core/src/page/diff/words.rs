//! Texts -> their distance in words (P-VISUAL 5.2, P-PATTERN 6.2; docs/papers.md, Vi-DIFF and Vi-Delta).
//!
//! Two texts are compared as bags of words, which takes linear time and space after sorting. So texts of any length
//! can be compared. Order is ignored, except that two different texts with the same words have a distance of one word.
//! In scripts without spaces each character counts as a word.

pub fn word_hashes(text: &str) -> Vec<u32> {
    let mut hashes = Vec::with_capacity(text.len() / 6);
    for word in text.split_whitespace() {
        push_word(word, &mut hashes);
    }
    hashes
}

pub fn n_words(text: &str) -> usize {
    if text.is_ascii() {
        return text.split_ascii_whitespace().count();
    }
    word_hashes(text).len()
}

/// Changed words divided by the words of the text before: 0 for equal texts, at most 1. A replaced word counts once.
/// An empty text has distance 1 from any other.
pub fn word_distance(before: &str, after: &str) -> f64 {
    if before == after {
        return 0.0;
    }
    let (mut before, mut after) = (word_hashes(before), word_hashes(after));
    before.sort_unstable();
    after.sort_unstable();
    bag_distance(&before, &after)
}

/// The distance of two texts that differ, by their sorted word hashes.
pub(super) fn bag_distance(before: &[u32], after: &[u32]) -> f64 {
    if before.is_empty() || after.is_empty() {
        return 1.0;
    }
    let shared = n_shared(before, after);
    let differing = before.len().max(after.len()) - shared;
    (differing.max(1) as f64 / before.len() as f64).min(1.0)
}

/// Size of the intersection of two sorted bags.
pub(super) fn n_shared(before: &[u32], after: &[u32]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < before.len() && j < after.len() {
        match before[i].cmp(&after[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
        }
    }
    shared
}

fn push_word(word: &str, hashes: &mut Vec<u32>) {
    if word.is_ascii() {
        return hashes.push(hash(word));
    }
    let mut rest = word;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unspaced(*c)) {
        if at > 0 {
            hashes.push(hash(&rest[..at]));
        }
        let end = at + c.len_utf8();
        hashes.push(hash(&rest[at..end]));
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        hashes.push(hash(rest));
    }
}

/// Scripts without spaces: Kana, Han, Thai and related ones.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// FNV-1a, folded to 32 bits. Word hashes are kept only in memory and in short histories, so rare collisions are
/// harmless.
pub(crate) fn hash(word: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in word.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_changed_words_divided_by_words_before() {
        assert_eq!(word_distance("a b c d", "a b c e"), 0.25);
        assert_eq!(word_distance("a b c d", "a b c d e"), 0.25);
        assert_eq!(word_distance("a b c d", "a b"), 0.5);
        assert_eq!(word_distance("a b", "c d e f"), 1.0);
        assert_eq!(word_distance("same", "same"), 0.0);
        assert_eq!(word_distance("", "x"), 1.0);
        assert_eq!(word_distance("x", ""), 1.0);
    }

    #[test]
    fn a_changed_word_order_is_one_word_apart() {
        assert_eq!(word_distance("man bites dog now", "dog bites man now"), 0.25);
    }

    #[test]
    fn scripts_without_spaces_count_characters() {
        assert_eq!(n_words("日本語 text"), 4);
        assert_eq!(word_distance("日本語で", "日本人で"), 0.25);
    }
}
