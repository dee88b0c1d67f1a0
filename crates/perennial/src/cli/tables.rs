//! A table of the archive -> a file of CSV for spreadsheets, or of Parquet for data frames.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Context as _;
use perennial_archive::parquet::{ColumnKind, ParquetValue, ParquetWriter};
use perennial_core::time::Timestamp;

use super::csv;
use perennial_archive::Archive;
use perennial_archive::store::{
    CaptureFilter, ChangeOrder, SqlValue, each_view_row, parse_site_name, sql_views,
};
use perennial_engine::analyse::{AdFilters, ElementContent, OperationReport};
use perennial_engine::changes::{ChangeFinder, ChangeQuery, MatchingChange, WorkLimits};

/// A table: one row for each of these. A row of `Deltas` is an operation of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum ExportTable {
    Changes,
    Versions,
    Observations,
    Captures,
    Deltas,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TableForm {
    Csv,
    Parquet,
}

/// The columns of [`ExportTable::Deltas`] (docs/sql.md).
const DELTAS: [&str; 17] = [
    "url",
    "site",
    "time",
    "before",
    "op",
    "element",
    "block_before",
    "block_after",
    "role",
    "text_before",
    "text_after",
    "url_before",
    "url_after",
    "is_advertisement",
    "noise",
    "value",
    "share",
];

/// Number of changes in memory at a time.
const AT_A_TIME: usize = 100;

impl ExportTable {
    /// Its name. Tables that are views of docs/sql.md have the view's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            ExportTable::Changes => "changes",
            ExportTable::Versions => "versions",
            ExportTable::Observations => "observations",
            ExportTable::Captures => "captures",
            ExportTable::Deltas => "deltas",
        }
    }

    fn columns(self) -> Vec<&'static str> {
        if self == ExportTable::Deltas {
            return DELTAS.to_vec();
        }
        let view = sql_views().into_iter().find(|(name, _)| *name == self.name());
        view.map(|(_, columns)| columns).unwrap_or_default()
    }

    /// Writes the rows that pass a filter, and calls `progress` after each. Returns their number, and the file.
    pub(super) fn write(
        self,
        archive: &Archive,
        filter: &CaptureFilter,
        form: TableForm,
        out: File,
        progress: &dyn Fn(),
    ) -> anyhow::Result<(u64, BufWriter<File>)> {
        let mut sheet = Sheet::begin(form, &self.columns(), BufWriter::new(out))?;
        let mut n_rows = 0;
        let mut each = |row: &[SqlValue]| {
            n_rows += 1;
            progress();
            sheet.row(row)
        };
        match self {
            ExportTable::Deltas => each_operation(archive, filter, &mut each)?,
            _ => each_view_row(&archive.state_path(), self.name(), filter, &mut each)?,
        }
        Ok((n_rows, sheet.end()?))
    }
}

/// Calls `each` with the operations of the changes that pass a filter, oldest first.
fn each_operation(
    archive: &Archive,
    filter: &CaptureFilter,
    each: &mut dyn FnMut(&[SqlValue]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let snapshot = archive.snapshot()?;
    let filters = AdFilters::load(Some(archive.root()))?;
    let mut query = ChangeQuery { since: filter.since, until: filter.until, ..ChangeQuery::default() };
    query.order = ChangeOrder::Oldest;
    query.condition.with_noise = true;
    query.condition.place = filter.place();
    let mut finder = ChangeFinder::new(archive, snapshot.store(), &filters, &query)?;
    let bounds = WorkLimits { max_found: AT_A_TIME, max_read: usize::MAX, max_rows: usize::MAX };
    let mut after = None;
    loop {
        let found = finder.find(after.as_ref(), bounds)?;
        for change in &found.changes {
            for entry in &change.operations {
                each(&operation_row(change, entry))?;
            }
        }
        let Some(next) = found.next else { return Ok(()) };
        after = Some(next);
    }
}

fn operation_row(change: &MatchingChange, entry: &OperationReport) -> Vec<SqlValue> {
    let text = |text: &str| SqlValue::Text(text.to_owned());
    let maybe = |value: Option<&str>| value.map_or(SqlValue::Null, text);
    let words =
        |side: &Option<ElementContent>| side.as_ref().map_or(SqlValue::Null, |content| text(&content.text));
    let url = |side: &Option<ElementContent>| {
        let url = side.as_ref().map(|content| content.url.as_str());
        maybe(url.filter(|url| !url.is_empty()))
    };
    vec![
        text(&change.url),
        text(&parse_site_name(&change.url)),
        text(&change.after.to_rfc3339()),
        change.before.map_or(SqlValue::Null, |before| text(&before.to_rfc3339())),
        text(entry.op),
        text(entry.element),
        maybe(entry.block_before.as_deref()),
        maybe(entry.block_after.as_deref()),
        maybe(entry.role),
        words(&entry.before),
        words(&entry.after),
        url(&entry.before),
        url(&entry.after),
        SqlValue::Whole(i64::from(entry.advertisement)),
        SqlValue::Number(entry.noise),
        SqlValue::Number(entry.value),
        SqlValue::Number(entry.share),
    ]
}

/// The file with the rows.
enum Sheet {
    Csv(BufWriter<File>),
    Parquet(BufWriter<File>, Box<ParquetWriter>, Vec<ColumnKind>),
}

impl Sheet {
    fn begin(form: TableForm, columns: &[&str], mut out: BufWriter<File>) -> anyhow::Result<Sheet> {
        match form {
            TableForm::Csv => {
                csv::write_names(&mut out, columns)?;
                Ok(Sheet::Csv(out))
            }
            TableForm::Parquet => {
                let columns: Vec<(&str, ColumnKind)> =
                    columns.iter().map(|column| (*column, column_kind(column))).collect();
                let kinds = columns.iter().map(|(_, kind)| *kind).collect();
                Ok(Sheet::Parquet(out, Box::new(ParquetWriter::new(&columns)), kinds))
            }
        }
    }

    fn row(&mut self, cells: &[SqlValue]) -> anyhow::Result<()> {
        match self {
            Sheet::Csv(out) => csv::write_row(out, cells)?,
            Sheet::Parquet(out, writer, kinds) => {
                let values: Vec<ParquetValue> =
                    cells.iter().zip(kinds.iter()).map(|(cell, kind)| typed_value(cell, *kind)).collect();
                writer.push(&values).context("the state has a row that the table cannot hold")?;
                out.write_all(&writer.take())?;
            }
        }
        Ok(())
    }

    fn end(self) -> anyhow::Result<BufWriter<File>> {
        match self {
            Sheet::Csv(out) => Ok(out),
            Sheet::Parquet(mut out, writer, _) => {
                out.write_all(&writer.finish())?;
                Ok(out)
            }
        }
    }
}

/// The type of a column. Names of counts begin with `n_`, of booleans with `is_`.
fn column_kind(column: &str) -> ColumnKind {
    match column {
        "time" | "before" | "first_time" | "last_time" => ColumnKind::Time,
        "importance" | "noise" | "value" | "share" => ColumnKind::Number,
        "status" | "offset" | "length" => ColumnKind::Whole,
        _ if column.starts_with("n_") => ColumnKind::Whole,
        _ if column.starts_with("is_") => ColumnKind::Truth,
        _ => ColumnKind::Text,
    }
}

/// A value of the column's type. A value of a different type is passed on, and the writer refuses it.
fn typed_value(cell: &SqlValue, kind: ColumnKind) -> ParquetValue<'_> {
    match (cell, kind) {
        (SqlValue::Null, _) => ParquetValue::Missing,
        (SqlValue::Whole(number), ColumnKind::Truth) => ParquetValue::Truth(*number != 0),
        (SqlValue::Whole(number), ColumnKind::Number) => ParquetValue::Number(*number as f64),
        (SqlValue::Whole(number), _) => ParquetValue::Whole(*number),
        (SqlValue::Number(number), _) => ParquetValue::Number(*number),
        (SqlValue::Text(text), ColumnKind::Time) => {
            Timestamp::parse(text).map_or(ParquetValue::Text(text), ParquetValue::Time)
        }
        (SqlValue::Text(text), _) => ParquetValue::Text(text),
        (SqlValue::Bytes(_), _) => ParquetValue::Missing,
    }
}
