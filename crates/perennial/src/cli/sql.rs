//! `perennial sql`: a statement over documented views -> a table, JSON or CSV.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use perennial_core::schedule::units::{parse_bytes, parse_span};
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Span;
use serde_json::{Map, Value};

use super::context::{document_on_stdout, note};
use super::{Context, Exit, csv};
use perennial_archive::store::{SqlLimits, SqlRows, SqlValue, query_views, sql_views};

const AFTER_HELP: &str = "\
Views: sites, pages, captures, versions, observations, changes, feeds, items, articles, visits; --views lists their columns, docs/sql.md explains \
them. Times are texts such as 2026-11-16T09:30:00Z. The archive cannot be changed. A statement ends after --time-limit, and its result after \
--max-rows.

Examples:
  perennial sql \"select site, count(*) from changes where importance > 0.2 group by site\"
  perennial sql \"select time, url, title from changes where kind = 'vanished' order by time desc limit 20\"
  perennial sql --csv \"select * from items where published >= '2026-11-01'\" > items.csv
  perennial sql --views";

/// Query the archive with SQL.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SqlArgs {
    /// The statement
    #[arg(value_name = "STATEMENT", required_unless_present = "views")]
    statement: Option<String>,
    /// Show the views and their columns
    #[arg(long)]
    views: bool,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Stop it after this time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_span)]
    time_limit: Span,
    /// Print at most N rows
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max_rows: usize,
    /// Memory for the statement, and the same for its result
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_bytes)]
    max_memory: u64,
}

/// SQLite checks the time limit between its steps. A step may exceed the limit by this much before the process ends.
const GRACE: Duration = Duration::from_secs(2);

/// Ends the process if a statement does not end. Ending is safe because the statement only reads.
fn end_after(time: Duration) -> Arc<AtomicBool> {
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    std::thread::spawn(move || {
        std::thread::sleep(time);
        if !done.load(Ordering::Acquire) {
            note("the statement exceeded its time limit; select less, or raise --time-limit");
            std::process::exit(1);
        }
    });
    is_done
}

impl SqlArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.views {
            return show_views(context);
        }
        let archive = context.open()?;
        let limits = SqlLimits {
            time: Duration::from_millis(self.time_limit.as_millis().max(1) as u64),
            max_rows: self.max_rows,
            max_bytes: usize::try_from(self.max_memory).unwrap_or(usize::MAX),
        };
        let spinner = context.progress_count(0, "asking");
        let is_done = end_after(limits.time.saturating_add(GRACE));
        let result = query_views(&archive.state_path(), &self.statement.unwrap_or_default(), limits);
        is_done.store(true, Ordering::Release);
        spinner.finish_and_clear();
        let result = result?;
        match self.csv {
            true => print_csv(&result)?,
            false => context.print(&rows_as_json(&result), |out| print_table(out, &result))?,
        }
        if result.is_cut {
            context.note(format_args!(
                "only the first {} rows are shown; raise --max-rows or --max-memory, or select less",
                result.rows.len()
            ));
        }
        Ok(Exit::Done)
    }
}

fn show_views(context: &Context) -> anyhow::Result<Exit> {
    let views = sql_views();
    let data: Map<String, Value> =
        views.iter().map(|(name, columns)| ((*name).to_owned(), columns.clone().into())).collect();
    context.print(&data, |out| {
        views.iter().try_for_each(|(name, columns)| writeln!(out, "{name:9} {}", columns.join(", ")))
    })?;
    Ok(Exit::Done)
}

/// Unique names for the columns, because a JSON object cannot have two values of one name: the second `url` is `url_2`.
fn distinct(names: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let numbered = (2..).map(|number: usize| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered);
        let taken =
            |candidate: &String| all.contains(candidate) || candidate != name && names.contains(candidate);
        let chosen = free.into_iter().find(|candidate| !taken(candidate)).unwrap_or_default();
        all.push(chosen);
    }
    all
}

/// The rows as JSON objects with the names of the columns.
fn rows_as_json(result: &SqlRows) -> Vec<Value> {
    let value = |cell: &SqlValue| match cell {
        SqlValue::Null => Value::Null,
        SqlValue::Whole(number) => (*number).into(),
        SqlValue::Number(number) => (*number).into(),
        cell => csv::cell_text(cell).into(),
    };
    let names = distinct(&result.columns);
    let object = |row: &Vec<SqlValue>| -> Value {
        let pairs = names.iter().zip(row);
        Value::Object(pairs.map(|(name, cell)| (name.clone(), value(cell))).collect())
    };
    result.rows.iter().map(object).collect()
}

fn print_csv(result: &SqlRows) -> anyhow::Result<()> {
    let mut out = document_on_stdout();
    csv::write_names(&mut out, &result.columns)?;
    for row in &result.rows {
        csv::write_row(&mut out, row)?;
    }
    Ok(out.flush()?)
}

/// Longest text of a cell, in columns of the terminal.
const MAX_COLUMNS: usize = 100;

fn print_table(out: &mut dyn Write, result: &SqlRows) -> std::io::Result<()> {
    let shown = |text: String| -> String {
        let line = text.replace(['\r', '\n', '\t'], " ");
        shorten(&line, MAX_COLUMNS).into_owned()
    };
    let head: Vec<String> = result.columns.clone();
    let lines: Vec<Vec<String>> =
        result.rows.iter().map(|row| row.iter().map(|cell| shown(csv::cell_text(cell))).collect()).collect();
    let mut widths: Vec<usize> = head.iter().map(|name| name.chars().count()).collect();
    for line in &lines {
        for (width, text) in widths.iter_mut().zip(line) {
            *width = (*width).max(text.chars().count());
        }
    }
    for line in std::iter::once(&head).chain(&lines) {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(text, width)| format!("{text:width$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    writeln!(out, "{} rows", lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_with_the_same_name_get_numbers() {
        let names =
            |names: &[&str]| distinct(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["url", "time"]), ["url", "time"]);
        assert_eq!(names(&["url", "url", "url"]), ["url", "url_2", "url_3"]);
        assert_eq!(names(&["url", "url", "url_2"]), ["url", "url_3", "url_2"]);
    }
}
