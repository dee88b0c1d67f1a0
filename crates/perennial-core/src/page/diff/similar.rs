//! Elements without a partner -> pairs that a reader sees as one edited element: their text differs only in numbers,
//! or they share most of their words or characters.
//!
//! Candidates are searched first in the old position, between the same neighbours. Table rows are thereby compared
//! with the rows that were in their place. Then elements that share rare words and characters are compared, nearest
//! first. The number of comparisons per element is bounded.

use std::collections::HashMap;

use super::words::{bag_distance, n_shared, word_hashes};

/// Maximum word distance of two texts that count as one edited text. A reader who finds less than half of the words again
/// sees a new text.
const UPDATED: f64 = 0.5;
/// Minimum share of common character pairs of two texts that count as one edited text. It finds inflected and corrected
/// words, which share no whole word. Two random texts of one language share up to half of their pairs.
const ALIKE: f64 = 0.7;
/// Minimum share of characters in common order of two short texts that count as one edited text: "Open" and "Opened"
/// have too few pairs to compare.
const SAME_LETTERS: f64 = 0.75;
/// Longer texts are compared by words only.
const MAX_LETTERS: usize = 400;
/// Texts up to this length are compared character by character.
const MAX_SHORT: usize = 64;
/// Number of elements on each side of the old position with which an element is compared. Most edits change the number of
/// rows or paragraphs by few.
const NEAR: usize = 4;
/// Number of its rarest features by which candidates for a text are found. An edit that changes all six leaves little of
/// the text.
const MAX_FEATURES: usize = 6;
/// Maximum number of texts per feature that are compared, nearest first.
const MAX_SHARERS: usize = 8;
/// Maximum number of comparisons in total, except those with the nearest candidates.
const MAX_COMPARISONS: usize = 20_000;

/// Factor on the distance of texts at the same position: an edit there is more likely than a deletion and an
/// insertion.
const AT_PLACE: f64 = 0.5;

/// An element without a partner.
#[derive(Clone, Copy)]
pub(super) struct UnmatchedElement<'a> {
    pub(super) text: &'a str,
    /// Number of unchanged elements before it. Equal numbers in both versions mean the same position.
    pub(super) place: usize,
    /// A hash of the URL, if it is the headline of an article. Two articles are never one edited element.
    pub(super) story: Option<u32>,
}

type Pairs = Vec<(usize, usize)>;

/// Pairs elements that are one edited text. Each element is in one pair at most.
pub(super) fn pair_similar(before: &[UnmatchedElement], after: &[UnmatchedElement]) -> Pairs {
    let mut taken = (vec![false; before.len()], vec![false; after.len()]);
    let mut pairs = pair_numbered(before, after, true, &mut taken);
    pairs.extend(pair_numbered(before, after, false, &mut taken));
    let still_open = |taken: &[bool]| (0..taken.len()).filter(|&n| !taken[n]).collect::<Vec<usize>>();
    let (open_before, open_after) = (still_open(&taken.0), still_open(&taken.1));
    if open_before.is_empty() || open_after.is_empty() {
        return pairs;
    }
    let texts_before: Vec<ComparedText> =
        open_before.iter().map(|&i| ComparedText::new(&before[i])).collect();
    let texts_after: Vec<ComparedText> = open_after.iter().map(|&j| ComparedText::new(&after[j])).collect();
    let mut tried = at_the_same_place(&texts_before, &texts_after);
    tried.extend(with_the_same_features(&texts_before, &texts_after));
    tried.sort_unstable();
    tried.dedup();
    let distance = |&(i, j): &(usize, usize)| {
        let (one, other) = (&texts_before[i], &texts_after[j]);
        let weight = if one.place == other.place { AT_PLACE } else { 1.0 };
        Some((weight * distance(one, other)?, i, j))
    };
    let mut near: Vec<(f64, usize, usize)> = tried.iter().filter_map(distance).collect();
    let apart = |i: usize, j: usize| {
        let (one, other) = (&texts_before[i], &texts_after[j]);
        (one.place.abs_diff(other.place), i.abs_diff(j), i, j)
    };
    near.sort_by(|x, y| x.0.total_cmp(&y.0).then_with(|| apart(x.1, x.2).cmp(&apart(y.1, y.2))));
    let mut taken = (vec![false; open_before.len()], vec![false; open_after.len()]);
    for (_, i, j) in near {
        if !taken.0[i] && !taken.1[j] {
            (taken.0[i], taken.1[j]) = (true, true);
            pairs.push((open_before[i], open_after[j]));
        }
    }
    pairs
}

/// Pairs texts that differ only in numbers, in order: either at the same position or at any. Texts without words are
/// paired only at the same position.
fn pair_numbered(
    before: &[UnmatchedElement],
    after: &[UnmatchedElement],
    at_place: bool,
    taken: &mut (Vec<bool>, Vec<bool>),
) -> Pairs {
    let key = |open: &UnmatchedElement| {
        Some((without_numbers(open.text, at_place)?, if at_place { open.place } else { 0 }, open.story))
    };
    let mut places: HashMap<(String, usize, Option<u32>), Vec<usize>> = HashMap::new();
    for (i, open) in before.iter().enumerate().rev().filter(|(i, _)| !taken.0[*i]) {
        if let Some(key) = key(open) {
            places.entry(key).or_default().push(i);
        }
    }
    let mut pairs = Vec::new();
    for (j, open) in after.iter().enumerate() {
        if taken.1[j] {
            continue;
        }
        let Some(same) = key(open).and_then(|key| places.get_mut(&key)) else { continue };
        if let Some(i) = same.pop() {
            (taken.0[i], taken.1[j]) = (true, true);
            pairs.push((i, j));
        }
    }
    pairs
}

/// The text with each number replaced by a placeholder. `None` for a text without numbers. Texts without words are
/// also excluded unless `without_words` is set.
fn without_numbers(text: &str, without_words: bool) -> Option<String> {
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
    let has_word = without_words || key.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    (has_number && has_word).then_some(key)
}

/// A text prepared for comparison; characters are kept for short texts only.
struct ComparedText {
    place: usize,
    story: Option<u32>,
    words: Vec<u32>,
    /// Character pairs, sorted.
    pairs: Vec<u32>,
    letters: Vec<char>,
}

impl ComparedText {
    fn new(open: &UnmatchedElement) -> ComparedText {
        let mut words = word_hashes(open.text);
        words.sort_unstable();
        let (mut pairs, mut letters) = (Vec::new(), Vec::new());
        if open.text.len() <= MAX_LETTERS {
            letters = open.text.chars().flat_map(char::to_lowercase).collect();
            pairs.extend(letters.windows(2).map(|pair| pair[0] as u32 ^ (pair[1] as u32).rotate_left(16)));
            pairs.sort_unstable();
        }
        if letters.len() > MAX_SHORT {
            letters.clear();
        }
        ComparedText { place: open.place, story: open.story, words, pairs, letters }
    }

    /// The features by which a text is found: its words, and its character pairs if it is short. Hash collisions are
    /// harmless.
    fn features(&self) -> impl Iterator<Item = u32> + '_ {
        let pairs = if self.letters.is_empty() { &[] } else { self.pairs.as_slice() };
        distinct(&self.words).chain(distinct(pairs))
    }
}

fn distinct(sorted: &[u32]) -> impl Iterator<Item = u32> + '_ {
    sorted.chunk_by(|x, y| x == y).map(|run| run[0])
}

/// Pairs between the same neighbours, counted from both ends. Both lists are sorted by position.
fn at_the_same_place(before: &[ComparedText], after: &[ComparedText]) -> Pairs {
    let mut tried = Vec::new();
    let mut first = 0;
    for group in after.chunk_by(|x, y| x.place == y.place) {
        let from = before.partition_point(|text| text.place < group[0].place);
        let to = before.partition_point(|text| text.place <= group[0].place);
        let n = to - from;
        for at in 0..group.len() {
            let from_last = (at + n).checked_sub(group.len());
            for expected in [Some(at), from_last].into_iter().flatten() {
                let near = expected.saturating_sub(NEAR)..(expected + NEAR + 1).min(n);
                tried.extend(near.map(|i| (from + i, first + at)));
            }
        }
        first += group.len();
    }
    tried
}

/// Pairs that share one of the rarest features of the new text, nearest first.
fn with_the_same_features(before: &[ComparedText], after: &[ComparedText]) -> Pairs {
    let mut sharers: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, text) in before.iter().enumerate() {
        text.features().for_each(|feature| sharers.entry(feature).or_default().push(i));
    }
    let n_each = (MAX_COMPARISONS / (after.len() * MAX_FEATURES)).clamp(1, MAX_SHARERS);
    let mut tried = Vec::new();
    for (j, text) in after.iter().enumerate() {
        let mut held: Vec<&Vec<usize>> =
            text.features().filter_map(|feature| sharers.get(&feature)).collect();
        held.sort_by_key(|sharers| sharers.len());
        for sharers in held.into_iter().take(MAX_FEATURES) {
            let at = sharers.partition_point(|&i| before[i].place < text.place);
            let from = at.saturating_sub(n_each / 2).min(sharers.len().saturating_sub(n_each));
            tried.extend(sharers[from..].iter().take(n_each).map(|&i| (i, j)));
        }
    }
    tried
}

/// The distance of two texts. `None` if they are too different to be one text.
fn distance(before: &ComparedText, after: &ComparedText) -> Option<f64> {
    if before.story.zip(after.story).is_some_and(|(before, after)| before != after) {
        return None;
    }
    let by_words = bag_distance(&before.words, &after.words);
    if by_words <= UPDATED {
        return Some(by_words);
    }
    let n_pairs = before.pairs.len() + after.pairs.len();
    let shared = 2.0 * n_shared(&before.pairs, &after.pairs) as f64 / n_pairs.max(1) as f64;
    if shared >= ALIKE {
        return Some(1.0 - shared * UPDATED);
    }
    let shared = same_letters(&before.letters, &after.letters);
    (shared >= SAME_LETTERS).then_some(1.0 - shared * UPDATED)
}

/// The share of characters in common order of two short texts: the longest common subsequence, computed with one row
/// of bits (Crochemore et al. 2001). 0 if either is empty.
fn same_letters(before: &[char], after: &[char]) -> f64 {
    let n = before.len() + after.len();
    let shorter = before.len().min(after.len());
    if shorter == 0 || ((2 * shorter) as f64) < SAME_LETTERS * n as f64 {
        return 0.0;
    }
    let mut row = u64::MAX;
    for letter in after {
        let is_same =
            before.iter().enumerate().fold(0u64, |bits, (at, c)| bits | u64::from(c == letter) << at);
        let both = row & is_same;
        row = row.wrapping_add(both) | (row & !is_same);
    }
    let unused = if before.len() == MAX_SHORT { 0 } else { u64::MAX << before.len() };
    2.0 * f64::from((!row & !unused).count_ones()) / n as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pairs texts without unchanged neighbours.
    fn pair(before: &[&str], after: &[&str]) -> Pairs {
        pair_at(before, &vec![0; before.len()], after, &vec![0; after.len()])
    }

    fn pair_at(before: &[&str], places_before: &[usize], after: &[&str], places_after: &[usize]) -> Pairs {
        fn open<'a>(texts: &[&'a str], places: &[usize]) -> Vec<UnmatchedElement<'a>> {
            texts
                .iter()
                .zip(places)
                .map(|(text, place)| UnmatchedElement { text, place: *place, story: None })
                .collect()
        }
        let mut pairs = pair_similar(&open(before, places_before), &open(after, places_after));
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn names_that_differ_in_a_number_match() {
        let before = ["Comments (12)", "Release 9.1.0", "About us"];
        let after = ["Imprint", "Release 9.2.0", "Comments (13)"];
        assert_eq!(pair(&before, &after), [(0, 2), (1, 1)]);
    }

    #[test]
    fn two_stories_are_never_one_edit() {
        let open = |text, story| [UnmatchedElement { text, place: 0, story: Some(story) }];
        let (one, other) = (open("Announcing Rust 1.67.0", 1), open("Announcing Rust 1.67.1", 2));
        assert_eq!(pair_similar(&one, &other), []);
        assert_eq!(pair_similar(&one, &open("Announcing Rust 1.67.1", 1)), [(0, 0)]);
    }

    #[test]
    fn most_letters_in_common_are_enough_and_a_few_are_not() {
        assert_eq!(pair(&["apache-solr-src.tgz"], &["apache-solr-src.tar.gz"]), [(0, 0)]);
        assert_eq!(pair(&["gitbox-he-fi"], &["gitbox2-he-fi"]), [(0, 0)]);
        assert_eq!(pair(&["News"], &["Newsletter"]), []);
    }

    #[test]
    fn texts_of_numbers_match_at_their_position_only() {
        assert_eq!(pair_at(&["12", "9.1.0"], &[1, 4], &["13", "9.4.0"], &[1, 4]), [(0, 0), (1, 1)]);
        assert_eq!(pair_at(&["12"], &[1], &["73"], &[2]), []);
    }

    #[test]
    fn a_row_is_compared_with_the_row_at_its_position() {
        // All rows consist of the same words, so words cannot identify them.
        let row = |n: usize| {
            format!("class {} registered in {}", n % 7, if n.is_multiple_of(2) { "Japan" } else { "Norway" })
        };
        let before: Vec<String> = (0..400).map(row).collect();
        let after: Vec<String> = (0..400).map(|n| row(n).replace("registered", "pending")).collect();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let places: Vec<usize> = (0..400).collect();
        let pairs = pair_at(&before, &places, &after, &places);
        assert_eq!(pairs, (0..400).map(|n| (n, n)).collect::<Pairs>());
    }

    #[test]
    fn many_names_of_common_words_take_no_quadratic_work() {
        let side =
            |from: usize| (from..from + 20_000).map(|n| format!("link number {n}")).collect::<Vec<_>>();
        let (before, after) = (side(0), side(50_000));
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        assert_eq!(pair(&before, &after).len(), 20_000);
    }

    proptest! {
        /// The bit-parallel result equals that of the plain dynamic programme.
        #[test]
        fn letters_in_order_are_counted(before in "[abc]{1,64}", after in "[abc]{1,64}") {
            let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
            let mut lengths = vec![vec![0u32; after.len() + 1]; before.len() + 1];
            for i in 0..before.len() {
                for j in 0..after.len() {
                    lengths[i + 1][j + 1] = match before[i] == after[j] {
                        true => lengths[i][j] + 1,
                        false => lengths[i][j + 1].max(lengths[i + 1][j]),
                    };
                }
            }
            let n = (before.len() + after.len()) as f64;
            let expected = 2.0 * f64::from(lengths[before.len()][after.len()]) / n;
            let found = same_letters(&before, &after);
            prop_assert!(found == expected || (found == 0.0 && expected < SAME_LETTERS));
        }
    }
}
