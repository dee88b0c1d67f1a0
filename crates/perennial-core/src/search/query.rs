//! A typed query -> its clauses; a query and a text -> the matches in the text.
//!
//! | typed | means |
//! |---|---|
//! | `ferry harbour` | both words, in any order |
//! | `"new ferry line"` | these words in a row |
//! | `harb*` | words with this prefix; also the last word of a phrase |
//! | `ferry -harbour` | without that word or phrase |
//! | `ferry OR boat` | one or the other |

use std::ops::Range;

use super::terms::{TextTerm, terms};

/// Longer queries, or queries with more words, are rejected.
const MAX_QUERY_BYTES: usize = 1_000;
const MAX_QUERY_TERMS: usize = 32;

/// A word or a phrase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextClause {
    /// The words in normal form.
    pub words: Vec<String>,
    /// Whether the last word is a prefix.
    pub is_prefix: bool,
    /// Whether texts that contain the words are excluded.
    pub is_excluded: bool,
}

/// A query. A text matches if it matches one of the alternatives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextQuery {
    /// A text must match all clauses of an alternative. At least one clause is not excluded.
    pub alternatives: Vec<Vec<TextClause>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TextQueryError {
    #[error("no word to search for; give at least one word, or \"words in a row\"")]
    Empty,
    #[error("only excluded words; give at least one word without a leading -")]
    NothingWanted,
    #[error("the query is too long: at most {MAX_QUERY_TERMS} words and {MAX_QUERY_BYTES} bytes")]
    TooLong,
}

impl TextQuery {
    pub fn parse(typed: &str) -> Result<TextQuery, TextQueryError> {
        if typed.len() > MAX_QUERY_BYTES {
            return Err(TextQueryError::TooLong);
        }
        let mut alternatives = vec![Vec::new()];
        let mut rest = typed.trim_start();
        while !rest.is_empty() {
            let (piece, after) = next_piece(rest);
            rest = after.trim_start();
            match piece {
                QueryPiece::Or => alternatives.push(Vec::new()),
                QueryPiece::Words { text, is_prefix, is_excluded } => {
                    let words: Vec<String> = terms(text).into_iter().map(|term| term.word).collect();
                    if let (Some(last), false) = (alternatives.last_mut(), words.is_empty()) {
                        last.push(TextClause { words, is_prefix, is_excluded });
                    }
                }
            }
        }
        alternatives.retain(|clauses| !clauses.is_empty());
        let n_terms: usize = alternatives.iter().flatten().map(|clause| clause.words.len()).sum();
        if n_terms == 0 {
            return Err(TextQueryError::Empty);
        }
        if n_terms > MAX_QUERY_TERMS {
            return Err(TextQueryError::TooLong);
        }
        if alternatives.iter().any(|clauses| clauses.iter().all(|clause| clause.is_excluded)) {
            return Err(TextQueryError::NothingWanted);
        }
        Ok(TextQuery { alternatives })
    }

    /// The matches in a text, as sorted byte ranges; empty if the text does not match.
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

impl TextClause {
    fn find(&self, words: &[TextTerm]) -> Vec<Range<usize>> {
        let starts = words.windows(self.words.len()).filter(|window| self.is_at(window));
        starts.filter_map(|window| Some(window.first()?.at.start..window.last()?.at.end)).collect()
    }

    fn is_at(&self, window: &[TextTerm]) -> bool {
        let last = self.words.len() - 1;
        self.words.iter().zip(window).enumerate().all(|(number, (word, term))| {
            if self.is_prefix && number == last { term.word.starts_with(word) } else { term.word == *word }
        })
    }
}

enum QueryPiece<'t> {
    Or,
    Words { text: &'t str, is_prefix: bool, is_excluded: bool },
}

/// The first piece of a text without leading spaces, and the rest. An unclosed quotation mark extends to the end.
fn next_piece(text: &str) -> (QueryPiece<'_>, &str) {
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
        return (QueryPiece::Words { text: inside, is_prefix, is_excluded }, after);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    match word {
        "OR" if !is_excluded => (QueryPiece::Or, after),
        _ => (QueryPiece::Words { text: word, is_prefix: word.ends_with('*'), is_excluded }, after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(query: &str, text: &str) -> Vec<String> {
        TextQuery::parse(query).unwrap().find(text).into_iter().map(|at| text[at].to_string()).collect()
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
    fn queries_without_a_word_are_refused() {
        for (typed, error) in [
            ("", TextQueryError::Empty),
            (" \"\" OR !", TextQueryError::Empty),
            ("-ferry", TextQueryError::NothingWanted),
            ("ferry OR -boat", TextQueryError::NothingWanted),
        ] {
            assert_eq!(TextQuery::parse(typed), Err(error), "{typed}");
        }
        assert_eq!(TextQuery::parse(&"word ".repeat(33)), Err(TextQueryError::TooLong));
        assert_eq!(TextQuery::parse(&"w".repeat(1001)), Err(TextQueryError::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_query_or_an_error(typed in "[-\"* a-cOR東é]{0,40}", text in "[ a-cOR東é.]{0,40}") {
            if let Ok(query) = TextQuery::parse(&typed) {
                for place in query.find(&text) {
                    proptest::prop_assert!(!text[place].is_empty());
                }
            }
        }
    }
}
