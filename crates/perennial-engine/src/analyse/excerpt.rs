//! Two texts -> the parts that differ, each among a few words that both have.
//!
//! A paragraph, or a whole document, may differ in one word. Reports show that word, not the first words of the text.

use perennial_core::page::diff::{Word, WordRun, align, split_words};
use perennial_core::text::untrusted::shorten;

/// Words of context before and after a difference.
const N_WORDS_AROUND: usize = 4;
/// Differences with at most this many words between them are one part.
const MAX_WORDS_BETWEEN: usize = 4;
/// Longest difference per side in a line, in columns.
const MAX_LINE_COLUMNS: usize = 120;

/// A part in which two texts differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangedPart<'t> {
    lead: &'t str,
    before: &'t str,
    after: &'t str,
    tail: &'t str,
    /// Whether there is more text before the lead, and after the tail.
    is_cut: [bool; 2],
}

impl ChangedPart<'_> {
    /// Whether the texts share so little that the part is all of both.
    pub fn is_whole(&self) -> bool {
        self.lead.is_empty() && self.tail.is_empty() && self.is_cut == [false; 2]
    }

    /// The words before and after in brackets, with context: `… the limit is [50 => 60] km/h now`.
    pub fn line(&self) -> String {
        let shown = |text: &str| match text {
            "" => "nothing".to_owned(),
            text => shorten(text, MAX_LINE_COLUMNS).into_owned(),
        };
        let middle = format!("[{} => {}]", shown(self.before), shown(self.after));
        self.join(&middle)
    }

    /// The part of the text before, with context; at most so many columns of the difference.
    pub fn text_before(&self, n_columns: usize) -> String {
        self.join(&shorten(self.before, n_columns))
    }

    /// The part of the text after.
    pub fn text_after(&self, n_columns: usize) -> String {
        self.join(&shorten(self.after, n_columns))
    }

    fn join(&self, middle: &str) -> String {
        let dots = |is_cut: bool| if is_cut { "…" } else { "" };
        let words = [dots(self.is_cut[0]), self.lead, middle, self.tail, dots(self.is_cut[1])];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// The parts in which two texts differ, in order. Texts that share less than a third of their words are one part.
pub fn changed_parts<'t>(before: &'t str, after: &'t str) -> Vec<ChangedPart<'t>> {
    let (old, new) = (split_words(before), split_words(after));
    let keys = |words: &[Word]| words.iter().map(|word| word.key).collect::<Vec<u32>>();
    let runs = align(&keys(&old), &keys(&new));
    let n_same: usize =
        runs.iter().map(|run| if let WordRun::Same(same, _) = run { same.len() } else { 0 }).sum();
    if 3 * n_same < old.len().max(new.len()) {
        let (before, after) = (before.trim(), after.trim());
        return vec![ChangedPart { lead: "", before, after, tail: "", is_cut: [false; 2] }];
    }
    let mut others: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> = Vec::new();
    for run in runs {
        let WordRun::Other(x, y) = run else { continue };
        match others.last_mut() {
            Some((a, b)) if x.start - a.end <= MAX_WORDS_BETWEEN => (a.end, b.end) = (x.end, y.end),
            _ => others.push((x, y)),
        }
    }
    let slice = |text: &'t str, words: &[Word], range: std::ops::Range<usize>| match words.get(range) {
        Some([first, .., last]) => &text[first.range.start..last.range.end],
        Some([word]) => &text[word.range.clone()],
        _ => "",
    };
    let part = |(x, y): (std::ops::Range<usize>, std::ops::Range<usize>)| {
        let (from, to) = (x.start.saturating_sub(N_WORDS_AROUND), new.len().min(y.end + N_WORDS_AROUND));
        ChangedPart {
            lead: slice(before, &old, from..x.start),
            before: slice(before, &old, x),
            tail: slice(after, &new, y.end..to),
            is_cut: [from > 0, to < new.len()],
            after: slice(after, &new, y),
        }
    };
    others.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(before: &str, after: &str) -> Vec<String> {
        changed_parts(before, after).iter().map(ChangedPart::line).collect()
    }

    #[test]
    fn the_words_that_differ_are_shown_among_those_that_do_not() {
        let (before, after) = (
            "The limit for cars on the ring road is 50 km/h from Monday to Friday in all districts",
            "The limit for cars on the ring road is 60 km/h from Monday to Friday in all districts",
        );
        assert_eq!(lines(before, after), ["… the ring road is [50 => 60] km/h from Monday to …"]);
        assert_eq!(lines("a b", "a b c"), ["a b [nothing => c]"]);
        assert_eq!(lines("b c", "c"), ["[b => nothing] c"]);
        assert_eq!(lines("a a", "a"), ["a [a => nothing]"]);
        assert_eq!(lines("Sold out", "In stock"), ["[Sold out => In stock]"]);
        assert_eq!(lines("日本語で", "日本人で"), ["日本 [語 => 人] で"]);
    }

    #[test]
    fn a_long_document_shows_each_difference() {
        let words = |n: usize| (0..n).map(|i| format!("w{i}")).collect::<Vec<_>>();
        let (old, mut new) = (words(3_000), words(3_000));
        new[900] = "ferry".into();
        new[2_500] = "tunnel".into();
        let (old, new) = (old.join(" "), new.join(" "));
        assert_eq!(
            lines(&old, &new),
            [
                "… w896 w897 w898 w899 [w900 => ferry] w901 w902 w903 w904 …",
                "… w2496 w2497 w2498 w2499 [w2500 => tunnel] w2501 w2502 w2503 w2504 …"
            ]
        );
        let parts = changed_parts(&old, &new);
        assert_eq!(parts[0].text_after(100), "… w896 w897 w898 w899 ferry w901 w902 w903 w904 …");
    }
}
