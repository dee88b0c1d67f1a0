//! Runs cached statements and reads their rows, for every file of the store.

use perennial_core::time::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

/// Runs cached statements.
pub(super) trait Statements {
    /// The statement, from the cache if it is there.
    fn cached(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>>;

    /// All rows of a query.
    fn rows<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<C> {
        Ok(self.cached(sql)?.query_map(values, read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The first row of a query.
    fn row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        Ok(self.cached(sql)?.query_row(values, read).optional()?)
    }

    /// The first column of a query that always has a row.
    fn value<T: FromSql>(&self, sql: &str, values: impl Params) -> anyhow::Result<T> {
        Ok(self.cached(sql)?.query_row(values, |row| row.get(0))?)
    }

    /// The same for a number that is never negative.
    fn count(&self, sql: &str, values: impl Params) -> anyhow::Result<u64> {
        Ok(self.value::<i64>(sql, values)? as u64)
    }

    /// The same for a time; `None` for NULL or if there is no row.
    fn time(&self, sql: &str, values: impl Params) -> anyhow::Result<Option<Timestamp>> {
        Ok(self.row(sql, values, |row| row.optional_time(0))?.flatten())
    }

    /// Calls `each` with every row of a query.
    fn each_row(
        &self,
        sql: &str,
        values: impl Params,
        mut each: impl FnMut(&Row<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut statement = self.cached(sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }

    /// Inserts a row and returns its number.
    fn insert(&self, sql: &str, values: impl Params) -> anyhow::Result<i64> {
        Ok(self.cached(sql)?.insert(values)?)
    }

    /// Runs a statement that returns no rows.
    fn run(&self, sql: &str, values: impl Params) -> anyhow::Result<()> {
        self.cached(sql)?.execute(values)?;
        Ok(())
    }
}

impl Statements for Connection {
    fn cached(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.prepare_cached(sql)
    }
}

/// Typed columns of a row.
pub(super) trait Columns {
    /// Milliseconds since 1970.
    fn time(&self, column: usize) -> rusqlite::Result<Timestamp>;

    /// The same; `None` for NULL.
    fn optional_time(&self, column: usize) -> rusqlite::Result<Option<Timestamp>>;

    /// A number that is never negative; 0 for NULL.
    fn count(&self, column: usize) -> rusqlite::Result<u64>;
}

impl Columns for Row<'_> {
    fn time(&self, column: usize) -> rusqlite::Result<Timestamp> {
        self.get(column).map(Timestamp::from_millis)
    }

    fn optional_time(&self, column: usize) -> rusqlite::Result<Option<Timestamp>> {
        Ok(self.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
    }

    fn count(&self, column: usize) -> rusqlite::Result<u64> {
        Ok(self.get::<_, Option<i64>>(column)?.unwrap_or_default() as u64)
    }
}
