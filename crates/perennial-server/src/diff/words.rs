//! Two texts -> how their words differ, for people.

use std::ops::Range;

pub(super) use perennial_core::page::diff::{Word, WordRun, align, split_words as words};
use perennial_core::text::markup::escaped;

/// How two texts differ, word by word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Difference {
    pub(super) before: Vec<Word>,
    pub(super) after: Vec<Word>,
    pub(super) runs: Vec<WordRun>,
    /// The texts share so little that they are shown one after the other, because striped text is unreadable.
    pub(super) is_rewritten: bool,
}

impl Difference {
    pub(super) fn of(before: &str, after: &str) -> Difference {
        let (before, after) = (words(before), words(after));
        let keys = |words: &[Word]| words.iter().map(|word| word.key).collect::<Vec<u32>>();
        let runs = without_stripes(align(&keys(&before), &keys(&after)));
        let n_same: usize =
            runs.iter().map(|run| if let WordRun::Same(same, _) = run { same.len() } else { 0 }).sum();
        let is_rewritten = 3 * n_same < before.len().max(after.len());
        Difference { before, after, runs, is_rewritten }
    }

    /// Words before and after that the other text lacks; all words if the texts share hardly any.
    pub(super) fn changed(&self) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        if self.is_rewritten {
            let all = |words: &[Word]| std::iter::once(0..words.len()).collect();
            return (all(&self.before), all(&self.after));
        }
        let others = self.runs.iter().filter_map(|run| match run {
            WordRun::Other(before, after) => Some((before.clone(), after.clone())),
            WordRun::Same(..) => None,
        });
        let (before, after): (Vec<_>, Vec<_>) = others.unzip();
        let not_empty =
            |ranges: Vec<Range<usize>>| ranges.into_iter().filter(|range| !range.is_empty()).collect();
        (not_empty(before), not_empty(after))
    }
}

/// Maximum number of characters before the first difference, and in total.
const LETTERS_BEFORE: usize = 60;
const MAX_LETTERS: usize = 240;

/// Two texts as HTML with differing words in `del` and `ins`, cut to show the first of them.
pub(crate) fn marked_words(before: &str, after: &str) -> (String, String) {
    let difference = Difference::of(before, after);
    let (gone, new) = difference.changed();
    (marked(before, &difference.before, &gone, "del"), marked(after, &difference.after, &new, "ins"))
}

fn marked(text: &str, words: &[Word], changed: &[Range<usize>], tag: &str) -> String {
    let places = changed.iter().filter_map(|range| {
        Some(words.get(range.start)?.range.start..words.get(range.end.checked_sub(1)?)?.range.end)
    });
    let places: Vec<Range<usize>> = places.collect();
    let first = places.first().map_or(0, |place| place.start);
    let start = text[..first].char_indices().rev().nth(LETTERS_BEFORE).map_or(0, |(at, _)| at);
    let end = text[start..].char_indices().nth(MAX_LETTERS).map_or(text.len(), |(at, _)| start + at);
    let mut out = String::from(if start > 0 { "… " } else { "" });
    let mut done = start;
    for place in places.iter().filter(|place| place.start < end) {
        let to = place.end.min(end);
        out += &format!(
            "{}<{tag}>{}</{tag}>",
            escaped(&text[done..place.start]),
            escaped(&text[place.start..to])
        );
        done = to;
    }
    out += &escaped(&text[done..end]).to_string();
    if end < text.len() {
        out += " …";
    }
    out
}

/// Joins two differences separated by a single common word, if both are longer than that.
fn without_stripes(runs: Vec<WordRun>) -> Vec<WordRun> {
    let n_words = |run: Option<&WordRun>| match run {
        Some(WordRun::Other(before, after)) => before.len().max(after.len()),
        _ => 0,
    };
    let mut joined: Vec<WordRun> = Vec::new();
    let mut runs = runs.into_iter().peekable();
    while let Some(run) = runs.next() {
        let is_stripe = matches!(&run, WordRun::Same(same, _) if same.len() == 1)
            && n_words(joined.last()) >= 2
            && n_words(runs.peek()) >= 2;
        match (joined.last_mut(), run) {
            (Some(WordRun::Other(x, y)), WordRun::Same(before, after)) if is_stripe => {
                (x.end, y.end) = (before.end, after.end)
            }
            (Some(WordRun::Other(x, y)), WordRun::Other(before, after)) => {
                (x.end, y.end) = (before.end, after.end)
            }
            (_, run) => joined.push(run),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(before: &str, after: &str) -> String {
        let difference = Difference::of(before, after);
        let text = |text: &str, words: &[Word]| match words {
            [] => String::new(),
            [first, .., last] => text[first.range.start..last.range.end].to_string(),
            [word] => text[word.range.clone()].to_string(),
        };
        let runs = difference.runs.iter().map(|run| match run {
            WordRun::Same(same, _) => text(before, &difference.before[same.clone()]),
            WordRun::Other(x, y) => format!(
                "[{}|{}]",
                text(before, &difference.before[x.clone()]),
                text(after, &difference.after[y.clone()])
            ),
        });
        runs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_that_differ_stand_apart() {
        assert_eq!(
            marked("the limit is 50 km/h now", "the limit is 60 km/h now"),
            "the limit is [50|60] km/h now"
        );
        assert_eq!(marked("a b c", "a c"), "a [b|] c");
        assert_eq!(marked("", "x"), "[|x]");
        assert_eq!(marked("日本語で", "日本人で"), "日本 [語|人] で");
        assert_eq!(marked("u v the x y", "p q the r s"), "[u v the x y|p q the r s]", "no stripes");
    }

    #[test]
    fn a_text_with_few_shared_words_is_rewritten() {
        assert!(!Difference::of("one two three", "one two four").is_rewritten);
        assert!(Difference::of("one two three four", "five six three seven").is_rewritten);
    }
}
