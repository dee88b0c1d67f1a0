//! Elements without a partner -> those that are one element to a reader, edited: names or texts that differ in a number, and those
//! that share most of their letters.

use std::collections::HashMap;

use super::matching::pairs_by_shared;
use super::words::{bag_distance, n_shared, word_hashes};

/// Two texts at most this far apart, in words, are one text that was updated.
const UPDATED: f64 = 0.5;
/// Two texts that share this much of their pairs of letters are one too.
const ALIKE: f64 = 0.7;
/// Texts longer than this are compared by words alone.
const MAX_LETTERS: usize = 400;

/// Pairs of the first and the second list that are one text, edited; each is in one pair at most.
pub(super) fn pair_similar(before: &[&str], after: &[&str]) -> Vec<(usize, usize)> {
    let mut taken = (vec![false; before.len()], vec![false; after.len()]);
    let mut pairs = pair_numbered(before, after, &mut taken);
    let sides: [Vec<Text>; 2] = [before, after].map(|side| side.iter().map(|text| Text::of(text)).collect());
    let mut near: Vec<(f64, usize, usize)> = candidates(&sides[0], &sides[1], &taken)
        .into_iter()
        .filter_map(|(i, j)| Some((distance(&sides[0][i], &sides[1][j])?, i, j)))
        .collect();
    near.sort_by(|x, y| {
        x.0.total_cmp(&y.0)
            .then(x.1.abs_diff(x.2).cmp(&y.1.abs_diff(y.2)))
            .then(x.1.cmp(&y.1))
            .then(x.2.cmp(&y.2))
    });
    for (_, i, j) in near {
        if !taken.0[i] && !taken.1[j] {
            (taken.0[i], taken.1[j]) = (true, true);
            pairs.push((i, j));
        }
    }
    pairs
}

/// Pairs texts that differ in numbers alone, in order.
fn pair_numbered(before: &[&str], after: &[&str], taken: &mut (Vec<bool>, Vec<bool>)) -> Vec<(usize, usize)> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, text) in before.iter().enumerate().rev() {
        if let Some(key) = without_numbers(text) {
            places.entry(key).or_default().push(i);
        }
    }
    let mut pairs = Vec::new();
    for (j, text) in after.iter().enumerate() {
        let Some(open) = without_numbers(text).and_then(|key| places.get_mut(&key)) else { continue };
        if let Some(i) = open.pop() {
            (taken.0[i], taken.1[j]) = (true, true);
            pairs.push((i, j));
        }
    }
    pairs
}

/// The text with each number replaced by one sign; `None` for a text without words or without numbers.
fn without_numbers(text: &str) -> Option<String> {
    let mut key = String::with_capacity(text.len());
    let mut has_number = false;
    for c in text.chars() {
        if c.is_ascii_digit() {
            has_number = true;
            if !key.ends_with('\u{0}') {
                key.push('\u{0}');
            }
        } else {
            key.push(c);
        }
    }
    let has_word = key.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    (has_number && has_word).then_some(key)
}

/// A text with its words, and its pairs of letters where it is short.
struct Text {
    words: Vec<u32>,
    letters: Vec<u32>,
}

impl Text {
    fn of(text: &str) -> Text {
        let mut words = word_hashes(text);
        words.sort_unstable();
        let mut letters = Vec::new();
        if text.len() <= MAX_LETTERS {
            let lower: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
            letters.extend(lower.windows(2).map(|pair| pair[0] as u32 ^ (pair[1] as u32).rotate_left(16)));
            letters.sort_unstable();
        }
        Text { words, letters }
    }
}

/// Pairs that share a rare word or stand at the same place, counted from the first or from the last.
fn candidates(before: &[Text], after: &[Text], taken: &(Vec<bool>, Vec<bool>)) -> Vec<(usize, usize)> {
    let open = |taken: &[bool]| (0..taken.len()).filter(|&n| !taken[n]).collect::<Vec<usize>>();
    let (open_before, open_after) = (open(&taken.0), open(&taken.1));
    let bags = open_before.iter().map(|&i| before[i].words.as_slice());
    let shared = pairs_by_shared(bags, open_after.iter().map(|&j| after[j].words.as_slice()));
    let n = open_before.len().min(open_after.len());
    let from_first = (0..n).map(|at| (at, at));
    let from_last = (1..=n).map(|at| (open_before.len() - at, open_after.len() - at));
    let all = shared.into_iter().chain(from_first).chain(from_last);
    let mut all: Vec<(usize, usize)> = all.map(|(i, j)| (open_before[i], open_after[j])).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// How far apart two texts are; `None` where they are two texts.
fn distance(before: &Text, after: &Text) -> Option<f64> {
    let by_words = bag_distance(&before.words, &after.words);
    if by_words <= UPDATED {
        return Some(by_words);
    }
    let n_letters = before.letters.len() + after.letters.len();
    let shared = 2.0 * n_shared(&before.letters, &after.letters) as f64 / n_letters.max(1) as f64;
    (shared >= ALIKE).then_some(1.0 - shared * UPDATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_a_number_are_one_name() {
        let before = ["Comments (12)", "Release 9.1.0", "About us"];
        let after = ["Imprint", "Release 9.2.0", "Comments (13)"];
        let mut pairs = pair_similar(&before, &after);
        pairs.sort_unstable();
        assert_eq!(pairs, [(0, 2), (1, 1)]);
    }

    #[test]
    fn most_letters_in_common_are_enough_and_a_few_are_not() {
        assert_eq!(pair_similar(&["apache-solr-src.tgz"], &["apache-solr-src.tar.gz"]), [(0, 0)]);
        assert_eq!(pair_similar(&["News"], &["Newsletter"]), []);
        assert_eq!(pair_similar(&["12"], &["13"]), [], "numbers alone are no name");
    }

    #[test]
    fn many_names_of_common_words_are_no_burden() {
        let side =
            |from: usize| (from..from + 20_000).map(|n| format!("link number {n}")).collect::<Vec<_>>();
        let (before, after) = (side(0), side(50_000));
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        assert_eq!(pair_similar(&before, &after).len(), 20_000);
    }
}
