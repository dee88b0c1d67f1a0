//! Importance, operations, words of a change -> the marks that all pages have.

use std::fmt::Write;

use perennial_core::text::markup::escaped;

use super::super::diff::marked_words;
use perennial_engine::html::cut;

/// What a line of words tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineKind {
    /// Words that came.
    Inserted,
    /// Words that went.
    Deleted,
    /// Words that became others.
    Updated,
}

/// Words of a change.
#[derive(Clone, Debug)]
pub struct Line {
    /// What happened.
    pub kind: LineKind,
    /// The words before; empty for inserted ones.
    pub before: String,
    /// The words after; empty for deleted ones.
    pub after: String,
}

/// Sign, class and name of each kind of operation.
pub(super) const SIGNS: [(&str, &str, &str); 4] =
    [("+", "i", "inserted"), ("−", "d", "deleted"), ("~", "u", "updated"), ("→", "m", "moved")];

/// The mark of importance: figure, bar, a tick at the threshold where one is known.
pub(super) fn importance(value: f64, is_kept: bool, threshold: Option<f64>) -> String {
    let low = if is_kept { "" } else { " low" };
    let bare = if threshold.is_some() { "" } else { " bare" };
    let tick = threshold.unwrap_or_default().clamp(0.0, 1.0);
    format!(
        "<span class=\"imp{low}{bare}\" style=\"--v:{value:.3};--th:{tick:.3}\"><span><span class=\"vh\">importance </span>{value:.2}</span><i aria-hidden=\"true\"></i></span>"
    )
}

/// The operations of a change with their counts.
pub(super) fn operations(counts: &[usize; 4]) -> String {
    if counts.iter().all(|n| *n == 0) {
        return String::new();
    }
    let mut out = String::from("<span class=\"ops\">");
    for (n, (sign, class, name)) in counts.iter().zip(SIGNS).filter(|(n, _)| **n > 0) {
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<span class=\"op {class}\" title=\"{name}\"><span class=\"vh\">{name} </span>{sign}{n}</span>"
        );
    }
    out + "</span>"
}

/// The words before and after, one line each.
pub(super) fn write_words(out: &mut String, line: &Line) {
    let mut tagged = |(sign, class, name): (&str, &str, &str), words: &str| {
        let _ = write!(
            out,
            "<p><span class=\"op {class}\" title=\"{name}\"><span class=\"vh\">{name} </span>{sign}</span><span>{words}</span></p>"
        );
    };
    match line.kind {
        LineKind::Inserted => tagged(SIGNS[0], &escaped(&line.after).to_string()),
        LineKind::Deleted => tagged(SIGNS[1], &escaped(&line.before).to_string()),
        LineKind::Updated => {
            let (before, after) = marked_or_plain(&line.before, &line.after);
            tagged(SIGNS[1], &before);
            tagged(SIGNS[0], &after);
        }
    }
}

/// Both texts with the words that differ marked; plain where less than a third is shared, because striped text cannot be read.
pub(super) fn marked_or_plain(before: &str, after: &str) -> (String, String) {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    let (mine, theirs) = (words(before), words(after));
    let known: std::collections::HashSet<&String> = mine.iter().collect();
    let n_shared = theirs.iter().filter(|word| known.contains(word)).count();
    if 3 * n_shared >= mine.len().max(theirs.len()) {
        let marked = marked_words(before, after);
        if !(is_one_mark(&marked.0, "del") && is_one_mark(&marked.1, "ins")) {
            return marked;
        }
    }
    (escaped(&cut(before)).to_string(), escaped(&cut(after)).to_string())
}

/// Whether a text is marked as a whole, which says no more than its sign does.
fn is_one_mark(text: &str, tag: &str) -> bool {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    text.starts_with(&open) && text.ends_with(&close) && text.matches(&close).count() == 1
}

/// An empty state: what is missing, why, and the command that changes it.
pub(super) fn empty(title: &str, text: &str, command: Option<&str>) -> String {
    let command = command.map(|command| format!("<pre>{}</pre>", escaped(command))).unwrap_or_default();
    format!(
        "<div class=\"empty\"><h2 class=\"h3\">{}</h2><p>{}</p>{command}</div>",
        escaped(title),
        escaped(text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_little_are_not_striped() {
        let (before, after) = marked_or_plain("the limit is <30>", "the limit is 50");
        assert!(before.contains("<del>") && after.contains("<ins>50</ins>"), "{before} {after}");
        let (before, after) = marked_or_plain("one two <three> four", "five six seven four");
        assert_eq!((before.as_str(), after.as_str()), ("one two &lt;three&gt; four", "five six seven four"));
        assert!(is_one_mark("<del>a b</del>", "del") && !is_one_mark("<del>a</del> b <del>c</del>", "del"));
        assert_eq!(marked_or_plain("", ""), (String::new(), String::new()));
    }
}
