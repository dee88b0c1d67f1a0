//! Rows of numbers, as in the papers' tables and figures.

use std::fmt;

use perennial_core::text::markup::escaped;
use serde::Serialize;

use super::Paper;

/// A table or figure of a paper, repeated.
#[derive(Clone, Debug, Serialize)]
pub struct ResultTable {
    pub paper: &'static str,
    pub item: &'static str,
    /// What was measured, and on which data.
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<ResultRow>,
    /// Digits after the point.
    #[serde(skip)]
    n_digits: usize,
}

/// A row of a table. A missing value was not measured, or not published.
#[derive(Clone, Debug, Serialize)]
pub struct ResultRow {
    pub name: String,
    pub values: Vec<Option<f64>>,
}

impl ResultTable {
    pub(super) fn new(
        (paper, item): (Paper, &'static str),
        title: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
        n_digits: usize,
    ) -> ResultTable {
        let columns = columns.into_iter().map(Into::into).collect();
        ResultTable { paper: paper.name(), item, title: title.into(), columns, rows: Vec::new(), n_digits }
    }

    pub(super) fn push(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) {
        let values = values.into_iter().map(|value| Some(value).filter(|value| value.is_finite())).collect();
        self.rows.push(ResultRow { name: name.into(), values });
    }

    fn cell(&self, value: Option<f64>) -> String {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.*}", self.n_digits))
    }

    pub(super) fn to_html(&self) -> String {
        let head: String = self.columns.iter().map(|column| format!("<th>{}", escaped(column))).collect();
        let row = |row: &ResultRow| {
            let cells: String =
                row.values.iter().map(|value| format!("<td class=n>{}", self.cell(*value))).collect();
            format!("<tr><td>{}{cells}</tr>", escaped(&row.name))
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<section><h2>{} {}</h2><p class=dim>{}</p><table><thead><tr><th>{head}</thead><tbody>{rows}</tbody></table></section>",
            self.paper,
            escaped(self.item),
            escaped(&self.title)
        )
    }
}

impl fmt::Display for ResultTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}: {}", self.paper, self.item, self.title)?;
        let widest = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        write!(f, "  {:<widest$}", "")?;
        for column in &self.columns {
            write!(f, "  {column:>8}")?;
        }
        for row in &self.rows {
            write!(f, "\n  {:<widest$}", row.name)?;
            for (value, column) in row.values.iter().zip(&self.columns) {
                write!(f, "  {:>width$}", self.cell(*value), width = column.chars().count().max(8))?;
            }
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_dashes() {
        let mut table = ResultTable::new((Paper::Near, "Table 2"), "two sites", ["BR", "OP & OR"], 2);
        table.push("a.example", [0.5, f64::NAN]);
        table.push("b", [0.25, 1.0]);
        let text = table.to_string();
        assert!(text.contains("a.example      0.50         -\n"), "{text}");
        assert!(table.to_html().contains("<td class=n>0.25<td class=n>1.00"));
        assert!(table.to_html().contains("OP &amp; OR"));
        assert_eq!(serde_json::json!(table)["rows"][0]["values"], serde_json::json!([0.5, null]));
    }
}
