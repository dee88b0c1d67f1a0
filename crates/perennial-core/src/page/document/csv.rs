//! Comma-separated values -> one text per row, with the names of its columns.

use super::draft::{DocumentDraft, DocumentUnit, UnitPlacement};

/// Maximum cells of a row that are read.
const MAX_CELLS: usize = 256;
/// Bytes in which the separator is searched.
const MAX_HEAD_BYTES: usize = 4096;

/// Reads rows. The first row names the columns if none of its cells is a number.
pub(super) fn read(text: &str) -> DocumentDraft {
    let separator = detect_separator(text);
    let mut draft = DocumentDraft::default();
    let mut names: Option<Vec<String>> = None;
    let mut rest = text;
    while let Some((cells, after)) = take_row(rest, separator) {
        rest = after;
        if cells.iter().all(String::is_empty) {
            continue;
        }
        match &names {
            None if cells.iter().all(|cell| is_name(cell)) => {
                draft.add(DocumentUnit::from_text(&cells.join(", "), UnitPlacement::Heading));
                names = Some(cells);
            }
            None => {
                draft.add(row(&cells, &[]));
                names = Some(Vec::new());
            }
            Some(names) => draft.add(row(&cells, names)),
        }
    }
    draft
}

fn is_name(cell: &str) -> bool {
    !cell.is_empty() && cell.parse::<f64>().is_err()
}

/// The row as a reader sees it: `road: Ring; limit: 50`.
fn row(cells: &[String], names: &[String]) -> DocumentUnit {
    let shown = cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
    let shown: Vec<String> = shown
        .map(|(column, cell)| match names.get(column) {
            Some(name) => format!("{name}: {cell}"),
            None => cell.clone(),
        })
        .collect();
    let key = cells.first().cloned().unwrap_or_default();
    DocumentUnit { texts: vec![shown.join("; ")], key, ..DocumentUnit::default() }
}

/// The most frequent separator at the top of the file.
fn detect_separator(text: &str) -> char {
    let head = &text[..text.floor_char_boundary(MAX_HEAD_BYTES)];
    let count = |separator: &char| head.matches(*separator).count();
    // The last of several equally frequent ones wins.
    ['|', ';', '\t', ','].into_iter().max_by_key(count).unwrap_or(',')
}

/// The cells of the first row, and the rest of the text (RFC 4180). An unclosed quote ends with its line.
fn take_row(text: &str, separator: char) -> Option<(Vec<String>, &str)> {
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    let mut cells = Vec::new();
    loop {
        let (cell, after) = take_cell(rest, separator);
        if cells.len() < MAX_CELLS {
            cells.push(cell.trim().to_owned());
        }
        match after.chars().next() {
            Some(c) if c == separator => rest = &after[c.len_utf8()..],
            Some(c) => return Some((cells, &after[c.len_utf8()..])),
            None => return Some((cells, "")),
        }
    }
}

/// Maximum length of a quoted cell. A longer one was never closed.
const MAX_CELL_BYTES: usize = 64 << 10;

/// A cell, and the text from its separator or line end on.
fn take_cell(text: &str, separator: char) -> (String, &str) {
    if let Some(quoted) = text.strip_prefix('"')
        && let Some((cell, after)) = take_quoted(quoted)
    {
        let end = after.find([separator, '\n']).unwrap_or(after.len());
        return (cell + &after[..end], &after[end..]);
    }
    let end = text.find([separator, '\n']).unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

fn take_quoted(text: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut rest = text;
    let bound = text.floor_char_boundary(MAX_CELL_BYTES);
    loop {
        let end = rest[..rest.len().min(rest.floor_char_boundary(bound))].find('"')?;
        cell.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) if cell.len() < MAX_CELL_BYTES => {
                cell.push('"');
                rest = after;
            }
            _ => return Some((cell, rest)),
        }
    }
}
