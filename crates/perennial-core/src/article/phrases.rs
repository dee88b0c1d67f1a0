//! Phrases that sites put around an article: calls to read on, to subscribe, to share; bylines; dates.
//!
//! Each test applies only to lines where such phrases occur, and mostly to their beginnings. So an article about
//! newsletters loses nothing.

use std::sync::LazyLock;

use crate::time::dates;

/// A list of phrases, one per line of its file.
pub(super) type Phrases = LazyLock<Vec<&'static str>>;

/// Whole lines that never belong to an article, in lower case and without punctuation at their ends.
static FURNITURE: Phrases = LazyLock::new(|| include_str!("phrases/furniture.txt").lines().collect());

/// The beginnings of lines that link to other pages.
static READ_ON: Phrases = LazyLock::new(|| include_str!("phrases/read_on.txt").lines().collect());

/// The beginnings of lines that ask for an action.
static CALLS_TO_ACTION: Phrases =
    LazyLock::new(|| include_str!("phrases/calls_to_action.txt").lines().collect());

/// Phrases anywhere in such lines.
static CALLS_TO_ACTION_WITHIN: Phrases =
    LazyLock::new(|| include_str!("phrases/calls_to_action_within.txt").lines().collect());

/// Lower case, single spaces, no punctuation at the ends; truncated, because only short lines matter.
pub fn folded(line: &str) -> String {
    let line = &line[..line.floor_char_boundary(300)];
    let small = line.to_lowercase();
    let trimmed = small.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | ':' | '\''));
    trimmed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a whole line is boilerplate.
pub(super) fn is_furniture(folded: &str) -> bool {
    folded.len() <= 40 && FURNITURE.contains(&folded.trim_end_matches(':'))
}

/// Whether a line refers to other pages.
pub(super) fn leads_elsewhere(folded: &str) -> bool {
    begins_with(folded, &READ_ON)
}

/// Whether a line is a call to action.
pub(super) fn is_call_to_action(folded: &str) -> bool {
    begins_with(folded, &CALLS_TO_ACTION)
        || CALLS_TO_ACTION_WITHIN.iter().any(|phrase| folded.contains(phrase))
}

fn begins_with(folded: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| folded.starts_with(phrase))
}

/// Whether a short line lists tags or categories.
pub(super) fn is_filing(folded: &str) -> bool {
    const STARTS: [&str; 17] = [
        "tags:",
        "tag:",
        "tags ",
        "related tags",
        "topics:",
        "topics",
        "filed under",
        "categories:",
        "category:",
        "keywords:",
        "schlagwort",
        "schlagwörter",
        "stichwort",
        "themen:",
        "kategorie",
        "etiquetas",
        "mots-clés",
    ];
    folded.len() <= 160 && begins_with(folded, &STARTS)
}

/// Whether a short line contains the author or the date.
pub(super) fn is_byline(folded: &str) -> bool {
    const WHO: [&str; 11] = [
        "by ",
        "by: ",
        "von ",
        "por ",
        "par ",
        "di ",
        "written by",
        "posted by",
        "submitted by",
        "author:",
        "text:",
    ];
    static WHEN: Phrases = LazyLock::new(|| include_str!("phrases/dated.txt").lines().collect());
    // "Updated dependencies" and "By the end of the year" begin text, so a time needs digits, and a name has few
    // words.
    let has_digit = || folded.contains(|c: char| c.is_ascii_digit());
    let is_name = || folded.split_whitespace().count() <= MAX_BYLINE_WORDS;
    folded.len() <= 120
        && (begins_with(folded, &WHO) && is_name()
            || begins_with(folded, &WHEN) && has_digit()
            || is_date_like(folded)
            || is_dated(folded)
            || folded.ends_with("min read"))
}

/// The maximum number of words in a byline.
const MAX_BYLINE_WORDS: usize = 9;

/// Whether a line is a full date with a name or two, and not a sentence.
fn is_dated(folded: &str) -> bool {
    let n_words = folded.split_whitespace().count();
    folded.len() <= 90 && n_words <= 14 && !folded.contains(". ") && dates::find(folded).is_some()
}

/// Whether a line is little more than a date: a year or a time, with at least a fifth of its characters digits.
pub(super) fn is_date_like(folded: &str) -> bool {
    let n_letters = folded.chars().filter(|c| c.is_alphabetic()).count();
    let n_digits = folded.chars().filter(char::is_ascii_digit).count();
    let has_year = folded
        .split(|c: char| !c.is_ascii_digit())
        .any(|number| number.len() == 4 && (number.starts_with("19") || number.starts_with("20")));
    let has_clock = folded.split_whitespace().any(|word| {
        word.split_once(':').is_some_and(|(hour, minute)| {
            !hour.is_empty()
                && hour.len() <= 2
                && hour.bytes().all(|b| b.is_ascii_digit())
                && minute.bytes().take(2).filter(u8::is_ascii_digit).count() == 2
        })
    });
    (has_year || has_clock) && n_letters <= 30 && n_digits * 4 >= n_letters
}

/// The beginnings of headings of comments.
static COMMENT_STARTS: Phrases =
    LazyLock::new(|| include_str!("phrases/comment_headings.txt").lines().collect());

/// Whether a short line is the heading of comments: `12 comments`, `Comments (3)`, `3 thoughts on ...`.
pub(super) fn is_comment_heading(folded: &str) -> bool {
    static WORDS: Phrases = LazyLock::new(|| include_str!("phrases/comment_words.txt").lines().collect());
    let plain: String =
        folded.chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '(' | ')' | ':')).collect();
    let plain = plain.trim();
    let mut words = plain.split_whitespace();
    let first = words.next().unwrap_or_default();
    let n_more = words.count();
    let has_count = folded.starts_with(|c: char| c.is_ascii_digit());
    // These words need a count, because a section of an article may have such a heading.
    const WITH_COUNT: [&str; 7] =
        ["responses", "response", "replies", "antworten", "réponses", "respuestas", "respostas"];
    let is_counted = has_count
        && (WORDS.contains(&first) || plain.starts_with("thoughts on") || plain.starts_with("thought on"));
    is_counted
        || n_more == 0
            && WORDS.contains(&first)
            && (!WITH_COUNT.contains(&first) || plain.len() < folded.len())
        || COMMENT_STARTS.iter().any(|start| folded.starts_with(start))
}
