//! Texts without a partner -> paragraphs that were merged or split: the same words in a different number of texts.
//!
//! The first words of each text are searched in the texts of the other version, so the cost is linear. What was merged
//! may have been edited too, within the limits of an edited text.

use std::collections::HashMap;
use std::ops::Range;

use super::similar::UnmatchedElement;
use super::words::{bag_distance, n_shared, word_hashes};

/// Number of first words by which a text is found. One word begins too many texts, and with three an edit at the
/// beginning hides the text.
const N_FIRST_WORDS: usize = 2;
/// Maximum word distance of the texts together, as for an edited text ([`super::similar`]).
const SAME: f64 = 0.5;
/// Minimum share of the words of each part that the whole contains. Otherwise a short part that went and a text that came
/// would pass together with a long part that stayed.
const CONTAINED: f64 = 0.6;

/// Indexes of neighbouring texts before that hold the words of neighbouring texts after. One of the two sides is a
/// single text.
pub(super) type Regrouped = (Range<usize>, Range<usize>);

pub(super) fn find_regrouped(before: &[UnmatchedElement], after: &[UnmatchedElement]) -> Vec<Regrouped> {
    let (words_before, words_after) = (all_words(before), all_words(after));
    let merged = wholes(before, &words_before, &words_after, &vec![false; after.len()]);
    let mut is_taken = vec![false; before.len()];
    let mut found = Vec::new();
    for (parts, whole) in merged {
        is_taken[parts.clone()].fill(true);
        found.push((parts, whole..whole + 1));
    }
    let is_whole = found.iter().map(|(_, whole)| whole.start).collect::<std::collections::HashSet<_>>();
    for (parts, whole) in wholes(after, &words_after, &words_before, &is_taken) {
        if !parts.clone().any(|part| is_whole.contains(&part)) {
            found.push((whole..whole + 1, parts));
        }
    }
    found
}

fn all_words(texts: &[UnmatchedElement]) -> Vec<Vec<u32>> {
    texts.iter().map(|text| word_hashes(text.text)).collect()
}

/// The runs of two or more parts that together are a whole, with that whole. No part is in two runs.
fn wholes(
    parts: &[UnmatchedElement],
    part_words: &[Vec<u32>],
    whole_words: &[Vec<u32>],
    is_taken: &[bool],
) -> Vec<(Range<usize>, usize)> {
    let mut by_first_words: HashMap<&[u32], Vec<usize>> = HashMap::new();
    for (part, words) in part_words.iter().enumerate().filter(|(_, words)| !words.is_empty()) {
        by_first_words.entry(&words[..words.len().min(N_FIRST_WORDS)]).or_default().push(part);
    }
    let mut is_used = vec![false; parts.len()];
    let mut found = Vec::new();
    for (whole, words) in whole_words.iter().enumerate().filter(|(whole, _)| !is_taken[*whole]) {
        let run = longest_run(parts, part_words, words, &by_first_words);
        let is_free = !is_used[run.clone()].iter().any(|is_used| *is_used);
        if run.len() >= 2 && is_free && is_same(&part_words[run.clone()], words) {
            is_used[run.clone()].fill(true);
            found.push((run, whole));
        }
    }
    found
}

/// The neighbouring parts whose first words occur in the whole, one after the other.
fn longest_run(
    parts: &[UnmatchedElement],
    part_words: &[Vec<u32>],
    words: &[u32],
    by_first_words: &HashMap<&[u32], Vec<usize>>,
) -> Range<usize> {
    let mut run = 0..0;
    let mut at = 0;
    while at < words.len() {
        let longest = N_FIRST_WORDS.min(words.len() - at);
        let found = (1..=longest).rev().find_map(|n| {
            // Only texts shorter than the usual number of first words are known by fewer.
            let known = by_first_words.get(&words[at..at + n])?;
            match run.is_empty() {
                true => known.first().copied(),
                false => {
                    let is_next = parts.get(run.end).is_some_and(|next| next.place == parts[run.start].place);
                    known.binary_search(&run.end).ok().filter(|_| is_next).map(|_| run.end)
                }
            }
        });
        match found {
            Some(part) => {
                run = if run.is_empty() { part..part + 1 } else { run.start..part + 1 };
                at += part_words[part].len().min(N_FIRST_WORDS);
            }
            None => at += 1,
        }
    }
    run
}

fn is_same(parts: &[Vec<u32>], whole: &[u32]) -> bool {
    let sorted = |words: &[u32]| {
        let mut sorted = words.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let whole = sorted(whole);
    let is_contained =
        |part: &Vec<u32>| n_shared(&sorted(part), &whole) as f64 >= CONTAINED * part.len() as f64;
    parts.iter().all(is_contained) && bag_distance(&sorted(&parts.concat()), &whole) <= SAME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(before: &[&str], after: &[&str]) -> Vec<Regrouped> {
        let open = |text| UnmatchedElement { text, place: 0, story: None };
        let before: Vec<_> = before.iter().copied().map(open).collect();
        let after: Vec<_> = after.iter().copied().map(open).collect();
        find_regrouped(&before, &after)
    }

    const ONE: &str = "The ferry leaves at noon from the north quay.";
    const TWO: &str = "Dogs travel free, but only on the lower deck.";

    #[test]
    fn paragraphs_merge_and_split() {
        let both = format!("{ONE} {TWO}");
        assert_eq!(found(&["Other words here", ONE, TWO], &[&both]), [(1..3, 0..1)]);
        assert_eq!(found(&[&both], &[ONE, TWO, "Other words here"]), [(0..1, 0..2)]);
        let edited = both.replace("free", "for half the fare");
        assert_eq!(found(&[ONE, TWO], &[&edited]), [(0..2, 0..1)]);
        assert_eq!(
            found(&["渡船正午开船。", "狗可以免费乘船。"], &["渡船正午开船。狗可以免费乘船。"]),
            [(0..2, 0..1)]
        );
    }

    #[test]
    fn an_edit_and_a_new_text_are_not_regrouped() {
        assert_eq!(found(&[ONE], &[&ONE.replace("noon", "one"), TWO]), []);
        assert_eq!(found(&[ONE, TWO], &["The ferry leaves, say dogs"]), []);
    }
}
