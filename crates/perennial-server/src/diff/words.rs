//! Two texts -> how their words differ, for people.

use std::ops::Range;

pub(super) use perennial_core::page::diff::{Run, Word, align, split_words as words};
use perennial_core::text::markup::escaped;

/// How two texts differ, word by word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Difference {
    pub(super) before: Vec<Word>,
    pub(super) after: Vec<Word>,
    pub(super) runs: Vec<Run>,
    /// So little is shared that the texts are shown whole, one after the other: striped text cannot be read.
    pub(super) is_rewritten: bool,
}

impl Difference {
    pub(super) fn of(before: &str, after: &str) -> Difference {
        let (before, after) = (words(before), words(after));
        let keys = |words: &[Word]| words.iter().map(|word| word.key).collect::<Vec<u32>>();
        let runs = without_stripes(align(&keys(&before), &keys(&after)));
        let n_same: usize =
            runs.iter().map(|run| if let Run::Same(same, _) = run { same.len() } else { 0 }).sum();
        let is_rewritten = 3 * n_same < before.len().max(after.len());
        Difference { before, after, runs, is_rewritten }
    }

    /// Words before, and words after, that the other text lacks; all of them when hardly any is shared.
    pub(super) fn changed(&self) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        if self.is_rewritten {
            let all = |words: &[Word]| std::iter::once(0..words.len()).collect();
            return (all(&self.before), all(&self.after));
        }
        let others = self.runs.iter().filter_map(|run| match run {
            Run::Other(before, after) => Some((before.clone(), after.clone())),
            Run::Same(..) => None,
        });
        let (before, after): (Vec<_>, Vec<_>) = others.unzip();
        let not_empty =
            |ranges: Vec<Range<usize>>| ranges.into_iter().filter(|range| !range.is_empty()).collect();
        (not_empty(before), not_empty(after))
    }
}

/// Letters that are shown before the first word that differs, and of the text in all.
const LETTERS_BEFORE: usize = 60;
const MAX_LETTERS: usize = 240;

/// Two texts as HTML, the words that differ in `del` and `ins`, cut so that the first of them is in sight.
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

/// Joins differences that a single shared word keeps apart, where both are longer than that.
fn without_stripes(runs: Vec<Run>) -> Vec<Run> {
    let n_words = |run: Option<&Run>| match run {
        Some(Run::Other(before, after)) => before.len().max(after.len()),
        _ => 0,
    };
    let mut joined: Vec<Run> = Vec::new();
    let mut runs = runs.into_iter().peekable();
    while let Some(run) = runs.next() {
        let is_stripe = matches!(&run, Run::Same(same, _) if same.len() == 1)
            && n_words(joined.last()) >= 2
            && n_words(runs.peek()) >= 2;
        match (joined.last_mut(), run) {
            (Some(Run::Other(x, y)), Run::Same(before, after)) if is_stripe => {
                (x.end, y.end) = (before.end, after.end)
            }
            (Some(Run::Other(x, y)), Run::Other(before, after)) => (x.end, y.end) = (before.end, after.end),
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
            Run::Same(same, _) => text(before, &difference.before[same.clone()]),
            Run::Other(x, y) => format!(
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
