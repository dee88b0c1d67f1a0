//! Selects the captures of an export, and answers the export's queries about them.
//!
//! The selection and the lines of the new index are in temporary tables. Memory is therefore constant, and the state is
//! not written.

use perennial_core::page::segment::BlockTree;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::params;

use super::rows::{Columns, Statements};
use super::{Capture, CaptureFilter, Store, TreeReader};

pub struct ExportSelection<'s> {
    store: &'s Store,
    /// Captures that pass the filter.
    pub n_captures: u64,
    /// Further captures, whose payload the selected ones need.
    pub n_origins: u64,
}

/// Records of a WARC file that belong together, with their captures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeGroup {
    /// The WARC file.
    pub file: String,
    /// Offset of the first record.
    pub offset: u64,
    /// Bytes of all records.
    pub length: u64,
    /// The captures, including those derived from another one.
    pub captures: Vec<Capture>,
}

/// A group contains a few captures: a response and its derived records.
const MAX_GROUP_CAPTURES: usize = 64;

impl Store {
    /// Selects captures, each with the capture that `shown_for` returns: its record is shown instead. There is one
    /// selection at a time; the next one replaces it.
    pub fn select_captures(
        &self,
        filter: &CaptureFilter,
        mut shown_for: impl FnMut(&Capture) -> anyhow::Result<Option<Capture>>,
    ) -> anyhow::Result<ExportSelection<'_>> {
        if self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN")?;
        }
        self.connection.execute_batch(
            "DROP TABLE IF EXISTS temp.chosen; DROP TABLE IF EXISTS temp.lines;
             CREATE TEMP TABLE chosen (capture INTEGER PRIMARY KEY, is_asked_for INTEGER NOT NULL, shown INTEGER);
             CREATE TEMP TABLE lines (line TEXT NOT NULL)",
        )?;
        let mut n_captures = 0;
        self.each_capture(filter, |capture| {
            let shown = shown_for(&capture)?.map(|shown| shown.id);
            let sql = "INSERT INTO chosen VALUES (?1, 1, ?2)
                ON CONFLICT (capture) DO UPDATE SET is_asked_for = 1, shown = ?2";
            self.connection.run(sql, params![capture.id, shown])?;
            if let Some(shown) = shown {
                self.connection.run("INSERT OR IGNORE INTO chosen VALUES (?1, 0, NULL)", [shown])?;
            }
            n_captures += 1;
            Ok(())
        })?;
        self.connection.execute(
            "INSERT OR IGNORE INTO chosen SELECT DISTINCT coalesce(
                 (SELECT v.origin FROM versions v WHERE v.page = c.page AND v.digest = c.digest
                     AND v.content = coalesce(c.content, v.content) AND v.origin IS NOT NULL LIMIT 1),
                 (SELECT v.origin FROM versions v WHERE v.digest = c.digest
                     AND v.content = coalesce(c.content, v.content) AND v.origin IS NOT NULL LIMIT 1)) AS o, 0, NULL
             FROM chosen JOIN captures c ON c.id = chosen.capture WHERE c.kind = 1 AND o IS NOT NULL",
            [],
        )?;
        let n_origins = self.connection.count("SELECT count(*) FROM chosen WHERE is_asked_for = 0", [])?;
        Ok(ExportSelection { store: self, n_captures, n_origins })
    }
}

impl ExportSelection<'_> {
    /// Calls `each` with the exchanges, in the archive's order.
    pub fn each_group(
        &self,
        mut each: impl FnMut(ExchangeGroup) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sql = "SELECT DISTINCT c.file, c.group_offset, c.group_length, f.name FROM chosen
            JOIN captures c ON c.id = chosen.capture JOIN files f ON f.id = c.file
            ORDER BY c.file, c.group_offset";
        self.store.connection.each_row(sql, [], |row| {
            let (offset, length) = (row.count(1)?, row.count(2)?);
            let file: String = row.get(3)?;
            // A derived record is exported with its capture, so the new index lists it too.
            let mut captures = self.store.captures_in(&file, offset, MAX_GROUP_CAPTURES)?;
            captures.retain(|capture| capture.group_offset == offset);
            each(ExchangeGroup { file, offset, length, captures })
        })
    }

    /// The capture whose record is shown instead.
    pub fn shown_for(&self, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        let sql = "SELECT shown FROM chosen WHERE capture = ?1 AND shown IS NOT NULL";
        match self.store.connection.row(sql, [capture.id], |row| row.get(0))? {
            Some(shown) => self.store.capture(shown),
            None => Ok(None),
        }
    }

    /// Adds a line to the new index.
    pub fn add_line(&self, line: &str) -> anyhow::Result<()> {
        self.store.connection.run("INSERT INTO lines VALUES (?1)", [line])
    }

    /// Calls `each` with the lines of the new index, sorted as bytes.
    pub fn each_line(&self, mut each: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.store
            .connection
            .each_row("SELECT line FROM lines ORDER BY line", [], |row| each(row.get_ref(0)?.as_str()?))
    }

    /// Calls `each` with number, URL and time of the requested HTML captures, in order of time.
    pub fn each_page(
        &self,
        mut each: impl FnMut(i64, &str, Timestamp) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sql = "SELECT c.id, p.url, c.time FROM chosen JOIN captures c ON c.id = chosen.capture
            JOIN pages p ON p.id = c.page
            WHERE is_asked_for AND c.kind <= 1 AND c.status = 200
              AND p.mime IN ('text/html', 'application/xhtml+xml') AND instr(p.url, '__wb_method=') = 0
            ORDER BY c.time, c.id";
        self.store
            .connection
            .each_row(sql, [], |row| each(row.get(0)?, row.get_ref(1)?.as_str()?, row.time(2)?))
    }

    /// Calls `each` with URL, time and tree of every requested capture that has a tree. A capture whose tree equals the
    /// previous one has none.
    pub fn each_tree(
        &self,
        mut each: impl FnMut(&str, Timestamp, &BlockTree) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut trees = TreeReader::new(self.store);
        let sql = "SELECT p.url, c.page, c.time FROM chosen JOIN captures c ON c.id = chosen.capture
            JOIN pages p ON p.id = c.page
            WHERE chosen.is_asked_for = 1 AND EXISTS (SELECT 1 FROM trees t WHERE t.page = c.page
            AND t.time = c.time
                UNION ALL SELECT 1 FROM past_trees t WHERE t.page = c.page AND t.time = c.time)
            ORDER BY c.page, c.time";
        self.store.connection.each_row(sql, [], |row| {
            let time = row.time(2)?;
            if let Some(tree) = trees.tree_at(PageId(row.get(1)?), time)? {
                each(row.get_ref(0)?.as_str()?, time, &tree)?;
            }
            Ok(())
        })
    }
}
