//! What a user typed -> a question; a question and a text -> the places that answer it.
//!
//! | typed | means |
//! |---|---|
//! | `ferry harbour` | both words, in any order |
//! | `"new ferry line"` | these words in a row |
//! | `harb*` | words that begin so; also the last word of a phrase |
//! | `ferry -harbour` | without that word or phrase |
//! | `ferry OR boat` | one or the other |

use std::ops::Range;

use super::terms::{Term, terms};

/// Longer questions are refused, as are questions with more words.
const MAX_QUERY_BYTES: usize = 1_000;
const MAX_QUERY_TERMS: usize = 32;

/// Words in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clause {
    /// The words as they are compared.
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub is_prefix: bool,
    /// Whether a text that has them is no answer.
    pub is_excluded: bool,
}

/// A question: a text answers if it answers one of the alternatives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// In each, all clauses must hold; at least one of them is not excluded.
    pub alternatives: Vec<Vec<Clause>>,
}

/// Why there is no question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueryError {
    /// Nothing but punctuation.
    #[error("no word to look for: give at least one word, or \"words in a row\"")]
    Empty,
    /// Only excluded words.
    #[error("only words to leave out: give at least one word without - before it")]
    NothingWanted,
    /// Too long.
    #[error("the question is too long: at most {MAX_QUERY_TERMS} words and {MAX_QUERY_BYTES} bytes")]
    TooLong,
}

impl Query {
    /// Reads what a user typed.
    pub fn parse(typed: &str) -> Result<Query, QueryError> {
        if typed.len() > MAX_QUERY_BYTES {
            return Err(QueryError::TooLong);
        }
        let mut alternatives = vec![Vec::new()];
        let mut rest = typed.trim_start();
        while !rest.is_empty() {
            let (piece, after) = next_piece(rest);
            rest = after.trim_start();
            match piece {
                Piece::Or => alternatives.push(Vec::new()),
                Piece::Words { text, is_prefix, is_excluded } => {
                    let words: Vec<String> = terms(text).into_iter().map(|term| term.word).collect();
                    if let (Some(last), false) = (alternatives.last_mut(), words.is_empty()) {
                        last.push(Clause { words, is_prefix, is_excluded });
                    }
                }
            }
        }
        alternatives.retain(|clauses| !clauses.is_empty());
        let n_terms: usize = alternatives.iter().flatten().map(|clause| clause.words.len()).sum();
        if n_terms == 0 {
            return Err(QueryError::Empty);
        }
        if n_terms > MAX_QUERY_TERMS {
            return Err(QueryError::TooLong);
        }
        if alternatives.iter().any(|clauses| clauses.iter().all(|clause| clause.is_excluded)) {
            return Err(QueryError::NothingWanted);
        }
        Ok(Query { alternatives })
    }

    /// Where a text answers, in bytes and in order; empty when it does not.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let words = terms(text);
        let mut found: Vec<Range<usize>> = Vec::new();
        for clauses in &self.alternatives {
            let places: Vec<(bool, Vec<Range<usize>>)> =
                clauses.iter().map(|clause| (clause.is_excluded, clause.find(&words))).collect();
            if places.iter().all(|(is_excluded, places)| *is_excluded == places.is_empty()) {
                found.extend(places.into_iter().flat_map(|(_, places)| places));
            }
        }
        found.sort_by_key(|place| (place.start, place.end));
        found.dedup();
        found
    }
}

impl Clause {
    fn find(&self, words: &[Term]) -> Vec<Range<usize>> {
        let starts = words.windows(self.words.len()).filter(|window| self.is_at(window));
        starts.filter_map(|window| Some(window.first()?.at.start..window.last()?.at.end)).collect()
    }

    fn is_at(&self, window: &[Term]) -> bool {
        let last = self.words.len() - 1;
        self.words.iter().zip(window).enumerate().all(|(number, (word, term))| {
            if self.is_prefix && number == last { term.word.starts_with(word) } else { term.word == *word }
        })
    }
}

enum Piece<'t> {
    Or,
    Words { text: &'t str, is_prefix: bool, is_excluded: bool },
}

/// The first piece of a text that does not begin with a space, and what follows it. A quotation mark that is not closed goes on
/// to the end.
fn next_piece(text: &str) -> (Piece<'_>, &str) {
    let (is_excluded, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if let Some(quoted) = text.strip_prefix('"') {
        let (inside, after) = quoted.split_once('"').unwrap_or((quoted, ""));
        let (is_prefix, after) = match after.strip_prefix('*') {
            Some(rest) => (true, rest),
            None => (inside.trim_end().ends_with('*'), after),
        };
        return (Piece::Words { text: inside, is_prefix, is_excluded }, after);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    match word {
        "OR" if !is_excluded => (Piece::Or, after),
        _ => (Piece::Words { text: word, is_prefix: word.ends_with('*'), is_excluded }, after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(query: &str, text: &str) -> Vec<String> {
        Query::parse(query).unwrap().find(text).into_iter().map(|at| text[at].to_string()).collect()
    }

    #[test]
    fn words_phrases_prefixes_and_what_is_left_out() {
        let text = "The new ferry line to the Harbour opens; the old ferry stays.";
        assert_eq!(finds("ferry harbour", text), ["ferry", "Harbour", "ferry"]);
        assert_eq!(finds("\"NEW ferry line\"", text), ["new ferry line"]);
        assert_eq!(finds("\"ferry new\"", text), Vec::<String>::new());
        assert_eq!(finds("harb*", text), ["Harbour"]);
        assert_eq!(finds("\"ferry li*\"", text), ["ferry line"]);
        assert_eq!(finds("\"ferry li\"*", text), ["ferry line"]);
        assert_eq!(finds("ferry -\"old ferry\"", text), Vec::<String>::new());
        assert_eq!(finds("ferry -boat", text), ["ferry", "ferry"]);
        assert_eq!(finds("boat OR opens", text), ["opens"]);
    }

    #[test]
    fn a_word_with_a_hyphen_is_words_in_a_row() {
        assert_eq!(finds("re-open", "They re-open. Re: we open."), ["re-open"]);
        assert_eq!(finds("東京", "東京都"), ["東京"]);
    }

    #[test]
    fn questions_without_a_word_are_refused() {
        for (typed, error) in [
            ("", QueryError::Empty),
            (" \"\" OR !", QueryError::Empty),
            ("-ferry", QueryError::NothingWanted),
            ("ferry OR -boat", QueryError::NothingWanted),
        ] {
            assert_eq!(Query::parse(typed), Err(error), "{typed}");
        }
        assert_eq!(Query::parse(&"word ".repeat(33)), Err(QueryError::TooLong));
        assert_eq!(Query::parse(&"w".repeat(1001)), Err(QueryError::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_question_or_an_error(typed in "[-\"* a-cOR東é]{0,40}", text in "[ a-cOR東é.]{0,40}") {
            if let Ok(query) = Query::parse(&typed) {
                for place in query.find(&text) {
                    proptest::prop_assert!(!text[place].is_empty());
                }
            }
        }
    }
}
