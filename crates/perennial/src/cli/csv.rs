//! Values -> lines of CSV (RFC 4180, with the line ends of Unix), as spreadsheets and data frames read it.

use std::io::{self, Write};

use data_encoding::HEXLOWER;

use perennial_archive::store::SqlValue;
use perennial_core::text::untrusted::terminal_safe;

/// Writes a line of texts, such as the names of columns.
pub(super) fn write_names<T: AsRef<str>>(out: &mut dyn Write, names: &[T]) -> io::Result<()> {
    write_line(out, names.iter().map(|name| field(name.as_ref())))
}

/// Writes a row. NULL is an empty field, an empty text is a quoted one, and bytes are hexadecimal.
pub(super) fn write_row(out: &mut dyn Write, cells: &[SqlValue]) -> io::Result<()> {
    write_line(
        out,
        cells.iter().map(|cell| match cell {
            SqlValue::Null => String::new(),
            SqlValue::Text(text) if text.is_empty() => "\"\"".to_owned(),
            cell => field(&cell_text(cell)),
        }),
    )
}

/// A value as text.
pub(super) fn cell_text(cell: &SqlValue) -> String {
    match cell {
        SqlValue::Null => String::new(),
        SqlValue::Whole(number) => number.to_string(),
        SqlValue::Number(number) => number.to_string(),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Bytes(bytes) => HEXLOWER.encode(bytes),
    }
}

fn write_line(out: &mut dyn Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    for (number, field) in fields.enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}{field}")?;
    }
    out.write_all(b"\n")
}

/// Whether a spreadsheet would compute the text, which a page may have chosen, and with some programs run commands.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '@', '\t']) || text.starts_with(['+', '-']) && text.parse::<f64>().is_err()
}

/// A formula becomes a text by an apostrophe before it. A field that holds a comma, a quotation mark or a line end is quoted. Other control characters are escaped, because
/// the field may be shown on a terminal.
fn field(text: &str) -> String {
    let is_command = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t');
    let text = if text.contains(is_command) { terminal_safe(text) } else { text.into() };
    let text = if is_formula(&text) { format!("'{text}").into() } else { text };
    match text.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads CSV.
    fn read(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
        let (mut is_quoted, mut letters) = (false, text.chars().peekable());
        while let Some(letter) = letters.next() {
            match letter {
                '"' if is_quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(std::mem::take(&mut field)),
                '\n' if !is_quoted => {
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                letter => field.push(letter),
            }
        }
        rows
    }

    #[test]
    fn no_field_is_a_formula() {
        for text in ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "\t=1"] {
            assert!(field(text).trim_start_matches('"').starts_with('\''), "{text}");
        }
        for text in ["-5", "+1.5e3", "a=b", "", "https://a.example/?x=1"] {
            assert_eq!(field(text), text);
        }
    }

    proptest! {
        #[test]
        fn written_rows_can_be_read_back(rows in prop::collection::vec(prop::collection::vec("[a\",\\r\\n é]{0,5}", 2), 0..4)) {
            let mut out = Vec::new();
            for row in &rows {
                let cells: Vec<SqlValue> = row.iter().map(|text| SqlValue::Text(text.clone())).collect();
                write_row(&mut out, &cells).unwrap();
            }
            prop_assert_eq!(read(&String::from_utf8(out).unwrap()), rows);
        }
    }
}
