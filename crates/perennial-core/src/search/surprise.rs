//! Passages of a period and the passages before it -> the terms with a surprising frequency (P-FEED 6).
//!
//! A term is a word or a pair of adjacent words; its count is the number of passages that contain it. The surprise is
//! Dunning's log-likelihood ratio: how much likelier the counts are with a separate rate for the period than with one
//! rate for all. It needs no word list and no language. A term with few occurrences is not surprising merely because
//! it was rare before.

use std::collections::{BTreeMap, HashSet};

use super::terms::terms;
use crate::url::PageId;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TermCandidate {
    /// One or two words in normal form.
    pub words: Vec<String>,
    /// In the form of its first occurrence.
    pub shown: String,
    pub n_passages: u64,
}

#[derive(Clone, Debug, Default)]
pub struct TermCounts {
    /// Words, and pairs joined by a space, each with its first form and the number of passages that contain it.
    counts: BTreeMap<String, (String, u64)>,
    /// The counted passages by page, without their numbers.
    seen: HashSet<(u32, Vec<String>)>,
}

/// The maximum number of counted terms; further new ones are ignored.
const MAX_TERMS: usize = 1_000_000;
/// The minimum number of passages with a term.
const MIN_PASSAGES: u64 = 2;
/// A word in more than this share of the passages is a function word, and pairs with it are not terms.
const JOINING_SHARE: f64 = 0.02;
const MIN_JOINING: u64 = 20;

impl TermCounts {
    /// Adds a passage of a page. Passages of a page that differ only in numbers count once. A passage of mostly
    /// numbers is a time stamp, a counter or a price, and does not count.
    pub fn add(&mut self, page: PageId, text: &str) {
        let words = terms(text);
        let said: Vec<String> =
            words.iter().map(|term| &term.word).filter(|word| !contains_digit(word)).cloned().collect();
        if 2 * said.len() <= words.len() || !self.seen.insert((page.0, said)) {
            return;
        }
        let mut seen = HashSet::new();
        let mut count = |key: String, shown: &str| {
            if seen.insert(key.clone()) {
                let is_full = self.counts.len() >= MAX_TERMS;
                match self.counts.get_mut(&key) {
                    Some((_, n)) => *n += 1,
                    None if is_full => {}
                    None => drop(self.counts.insert(key, (shown.to_owned(), 1))),
                }
            }
        };
        for (place, word) in words.iter().enumerate() {
            if is_word(&word.word) && word.word.chars().nth(1).is_some() {
                count(word.word.clone(), &text[word.at.clone()]);
            }
            let Some(next) = words.get(place + 1) else { continue };
            let is_together = text[word.at.end..next.at.start]
                .chars()
                .all(|c| c.is_whitespace() || c == '-' || c == '\u{2019}');
            if is_together && is_word(&word.word) && is_word(&next.word) {
                count(format!("{} {}", word.word, next.word), &text[word.at.start..next.at.end]);
            }
        }
    }

    pub fn n_passages(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The terms of several passages, most frequent first, with at most this many words and pairs.
    pub fn candidates(&self, max_words: usize, max_pairs: usize) -> Vec<TermCandidate> {
        let joining = ((self.n_passages() as f64 * JOINING_SHARE) as u64).max(MIN_JOINING);
        let is_joining = |word: &str| self.counts.get(word).is_none_or(|(_, n)| *n > joining);
        let mut all: Vec<(&String, &(String, u64))> =
            self.counts.iter().filter(|(_, (_, n))| *n >= MIN_PASSAGES).collect();
        all.sort_by(|(a, (_, n)), (b, (_, m))| m.cmp(n).then_with(|| a.cmp(b)));
        let (mut n_words, mut n_pairs) = (0, 0);
        let mut found = Vec::new();
        for (key, (shown, n)) in all {
            let words: Vec<String> = key.split(' ').map(str::to_owned).collect();
            let (taken, most) = match words.as_slice() {
                [_] => (&mut n_words, max_words),
                pair if pair.iter().any(|word| word.chars().nth(1).is_some() && is_joining(word)) => continue,
                _ => (&mut n_pairs, max_pairs),
            };
            if *taken < most {
                *taken += 1;
                found.push(TermCandidate { words, shown: shown.clone(), n_passages: *n });
            }
        }
        found
    }
}

/// Excludes numbers and words that begin with one, such as times.
fn is_word(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_alphabetic)
}

fn contains_digit(word: &str) -> bool {
    word.chars().any(char::is_numeric)
}

/// The surprise of a count `a` among `n_a`, compared with `b` among `n_b` before; 0 if the rate has not grown.
pub fn surprise(a: u64, n_a: u64, b: u64, n_b: u64) -> f64 {
    let (a, b, n_a, n_b) = (a as f64, b as f64, n_a.max(a) as f64, n_b.max(b) as f64);
    if n_a == 0.0 || n_b == 0.0 || a * n_b <= b * n_a {
        return 0.0;
    }
    let likelihood = |k: f64, n: f64, p: f64| {
        let part = |k: f64, p: f64| if k > 0.0 { k * p.ln() } else { 0.0 };
        part(k, p) + part(n - k, 1.0 - p)
    };
    let p = (a + b) / (n_a + n_b);
    let ratio = likelihood(a, n_a, a / n_a) + likelihood(b, n_b, b / n_b)
        - likelihood(a, n_a, p)
        - likelihood(b, n_b, p);
    (2.0 * ratio).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(texts: &[&str]) -> Vec<(String, u64)> {
        let mut counts = TermCounts::default();
        texts.iter().zip(0..).for_each(|(text, page)| counts.add(PageId(page), text));
        counts.candidates(100, 100).into_iter().map(|term| (term.shown, term.n_passages)).collect()
    }

    #[test]
    fn words_and_pairs_are_counted_once_a_passage() {
        let found = counted(&[
            "The Limit-value of 2026: limit value, limit value.",
            "limit value! 2026",
            "a limit. Value it",
        ]);
        assert_eq!(found, [("Limit".into(), 3), ("value".into(), 3), ("Limit-value".into(), 2)]);
        assert_eq!(counted(&["東京都 23", "東京 1"]), [("東京".into(), 2)]);
    }

    #[test]
    fn numbers_make_no_news() {
        let stamps =
            ["pubDate: Wed, 04 Mar 2026 00:38:46 GMT", "Page made on 2026-03-04T10:45:00Z", "visitor 12"];
        assert_eq!(counted(&[stamps, stamps].concat()), []);
        let mut counts = TermCounts::default();
        (0..9).for_each(|n| counts.add(PageId(1), &format!("{n} lamps in stock")));
        assert_eq!(
            (counts.n_passages(), counts.candidates(9, 9)),
            (1, Vec::new()),
            "one passage that counts"
        );
    }

    #[test]
    fn words_that_join_others_make_no_pairs() {
        let texts: Vec<String> = (0..30).map(|n| format!("the harbour{} is shut", n % 10)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = counted(&texts);
        assert!(found.iter().all(|(term, _)| !term.contains(' ')), "{found:?}");
        let (words, pairs): (Vec<_>, Vec<_>) =
            counted(&["red kite", "red kite", "blue"]).into_iter().partition(|(term, _)| !term.contains(' '));
        assert_eq!((words.len(), pairs.len()), (2, 1));
    }

    #[test]
    fn what_is_new_surprises_more_than_what_grows_and_what_is_rare_less() {
        assert!(surprise(10, 100, 0, 10_000) > surprise(10, 100, 10, 10_000));
        assert!(surprise(10, 100, 10, 10_000) > surprise(2, 100, 0, 10_000));
        assert_eq!(surprise(1, 100, 100, 10_000), 0.0);
        assert_eq!(surprise(0, 100, 0, 10_000), 0.0);
        assert_eq!(surprise(5, 100, 0, 0), 0.0, "nothing can surprise those who knew nothing");
        // By hand: 2 (10 ln(0.1 / 0.05) + 90 ln(0.9 / 0.95) + 100 ln(1 / 0.95)).
        assert!((surprise(10, 100, 0, 100) - 14.387).abs() < 0.01, "{}", surprise(10, 100, 0, 100));
    }

    proptest! {
        #[test]
        fn surprise_is_a_number_that_grows_with_the_count(a in 0u64..50, n_a in 1u64..100, b in 0u64..50, n_b in 1u64..1000) {
            let reported = surprise(a, n_a, b, n_b);
            prop_assert!(reported.is_finite() && reported >= 0.0);
            prop_assert!(a >= n_a || surprise(a + 1, n_a.max(a + 1), b, n_b) >= reported - 1e-9);
        }
    }
}
