//! Importance, operations, words of a change -> the marks that all pages have.

use std::fmt::Write;

use perennial_core::markup::escaped;

use super::super::diff::marked_words;

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
    let tick = threshold.map_or("2".to_string(), |threshold| format!("{:.3}", threshold.min(1.0)));
    format!(
        "<span class=\"imp{low}\" style=\"--v:{value:.3};--th:{tick}\"><span><span class=\"vh\">importance </span>{value:.2}</span><i aria-hidden=\"true\"></i></span>"
    )
}

/// The operations of a change with their counts.
pub(super) fn operations(counts: &[usize; 4]) -> String {
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
            let (before, after) = marked_words(&line.before, &line.after);
            tagged(SIGNS[1], &before);
            tagged(SIGNS[0], &after);
        }
    }
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
