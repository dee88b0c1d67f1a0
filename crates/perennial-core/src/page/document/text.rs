//! Plain text -> paragraphs under headings.

use super::draft::{DocumentDraft, DocumentUnit, UnitPlacement};

/// Maximum length of a heading.
const MAX_HEADING_LETTERS: usize = 80;
/// Maximum lines of a paragraph. A longer one is a list or table with independent lines.
const MAX_PARAGRAPH_LINES: usize = 24;

/// Reads paragraphs, which are separated by blank lines.
pub(super) fn read(text: &str) -> DocumentDraft {
    let mut draft = DocumentDraft::default();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            add_paragraph(&mut draft, &paragraph);
            paragraph.clear();
        } else {
            paragraph.push(line);
        }
    }
    add_paragraph(&mut draft, &paragraph);
    draft
}

/// Adds a paragraph and the headings at its top.
pub(super) fn add_paragraph(draft: &mut DocumentDraft, mut lines: &[&str]) {
    while let Some((heading, rest)) = take_heading(lines) {
        if draft.title.is_empty() {
            heading.clone_into(&mut draft.title);
        }
        draft.add(DocumentUnit::from_text(heading, UnitPlacement::Heading));
        lines = rest;
    }
    if lines.len() > MAX_PARAGRAPH_LINES || lines.iter().any(|line| is_item(line)) {
        return lines.iter().for_each(|line| draft.add(DocumentUnit::from_text(line, UnitPlacement::Among)));
    }
    draft.add(DocumentUnit::from_text(&lines.join(" "), UnitPlacement::Among));
}

/// A first line that is marked as a heading (`# ...` or underlined), or a single line that is not a sentence.
fn take_heading<'a, 'b>(lines: &'a [&'b str]) -> Option<(&'b str, &'a [&'b str])> {
    let (first, rest) = lines.split_first()?;
    let first = first.trim();
    if let Some(marked) = first.strip_prefix('#') {
        let heading = marked.trim_start_matches('#');
        return heading.starts_with(' ').then(|| (heading.trim(), rest));
    }
    let is_rule = |line: &str| {
        let line = line.trim();
        line.len() >= 3 && ["=", "-", "~"].iter().any(|mark| line.replace(mark, "").is_empty())
    };
    if rest.first().is_some_and(|second| is_rule(second)) && !is_rule(first) {
        return Some((first, &rest[1..]));
    }
    let is_short = first.chars().take(MAX_HEADING_LETTERS + 1).count() <= MAX_HEADING_LETTERS;
    let ends_sentence = first.ends_with(['.', ',', ';', ':', '!', '?', '…', '。']);
    let has_letters = first.chars().any(char::is_alphabetic);
    (rest.is_empty() && is_short && !ends_sentence && has_letters && !is_item(first)).then_some((first, rest))
}

/// Whether a line is a list item or a quotation, which is a separate unit.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let is_marked = ["- ", "* ", "+ ", "• ", "> ", "| "].iter().any(|mark| line.starts_with(mark));
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    is_marked
        || (1..=3).contains(&digits) && line[digits..].starts_with([')', '.']) && line.len() > digits + 1
}
