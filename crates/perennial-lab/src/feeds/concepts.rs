//! Concepts of a feed item or page, by which its article is found (P-FEED 4.1).

use std::collections::{BTreeMap, HashSet};

use perennial_core::article::word_hashes;

/// Most words of a context that are read. Real titles and descriptions are shorter, but a feed may have a whole
/// article.
const MAX_WORDS: usize = 2_000;

/// Stems of the words that carry the subject, the most frequent ones.
#[derive(Default, Debug)]
pub(super) struct Concepts {
    stems: HashSet<u64>,
}

/// Most concepts of a context. The paper draws some at random; here the choice is deterministic.
const MAX_CONCEPTS: usize = 30;
/// Shorter words carry no subject.
const MIN_CONCEPT_LETTERS: usize = 4;

impl Concepts {
    pub(super) fn new(parts: &[&str]) -> Concepts {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for part in parts {
            for word in words(part).take(MAX_WORDS).filter(|word| is_concept(word)) {
                *counts.entry(stem(&word).to_owned()).or_default() += 1;
            }
        }
        let mut ranked: Vec<(String, usize)> = counts.into_iter().collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Concepts { stems: ranked.iter().take(MAX_CONCEPTS).map(|(stem, _)| word_hash(stem)).collect() }
    }

    /// The concepts in a text, in order and with repetitions.
    pub(super) fn found_in(&self, text: &str) -> Vec<u64> {
        words(text).map(|word| word_hash(stem(&word))).filter(|hash| self.stems.contains(hash)).collect()
    }
}

fn word_hash(word: &str) -> u64 {
    word_hashes(word).next().unwrap_or_default()
}

fn is_concept(word: &str) -> bool {
    word.chars().count() >= MIN_CONCEPT_LETTERS && !is_stop_word(word)
}

/// A word without the endings of English and related languages. It is coarse on purpose, because both sides of a
/// comparison are cut alike.
fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 14] =
        ["ingly", "ation", "ings", "ing", "edly", "ies", "ied", "ed", "es", "en", "ly", "s", "e", "n"];
    let longest =
        |ending: &&&str| word.len() >= ending.len() + MIN_CONCEPT_LETTERS && word.ends_with(**ending);
    ENDINGS.iter().find(longest).map_or(word, |ending| &word[..word.len() - ending.len()])
}

fn is_stop_word(word: &str) -> bool {
    const WORDS: [&str; 60] = [
        "about", "after", "again", "aber", "alle", "also", "auch", "avec", "been", "before", "being", "beim",
        "both", "como", "could", "dans", "dass", "della", "desde", "diese", "does", "each", "eine", "einem",
        "einen", "einer", "elle", "esta", "from", "haben", "have", "having", "here", "into", "just", "like",
        "mais", "more", "most", "nach", "nicht", "oder", "only", "other", "over", "para", "pour", "sich",
        "sind", "some", "such", "than", "that", "their", "them", "then", "there", "they", "this", "with",
    ];
    WORDS.binary_search(&word).is_ok()
        || matches!(
            word,
            "were"
                | "what"
                | "when"
                | "where"
                | "which"
                | "while"
                | "will"
                | "would"
                | "your"
                | "those"
                | "these"
                | "werden"
                | "wird"
        )
}

/// The words of a text in lower case: runs of letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then(|| word.to_lowercase())
    })
}
