//! Rows -> the bytes of a Parquet file, for data frames.
//!
//! The module implements only the parts of the format that flat tables of five types need. Pages contain plain values
//! compressed with Zstandard. Each column has one page per row group, and missing values take no space. The footer uses
//! Thrift's compact protocol. Full row groups are returned at once, so a table of any length needs the memory of one
//! row group.
//!
//! | file | what becomes what |
//! |---|---|
//! | `column` | the values of one column in a row group -> a page |
//! | `thrift` | fields -> Thrift's compact protocol, for page headers and the footer |

mod column;
mod thrift;

use thiserror::Error;

use self::column::{ColumnBuffer, ColumnChunk};
use self::thrift::ThriftStruct;
use perennial_core::time::Timestamp;

const MAGIC: &[u8; 4] = b"PAR1";
/// Number of rows, or bytes of values, that fill a row group.
const MAX_ROWS: usize = 100_000;
const MAX_BYTES: usize = 16 << 20;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Booleans.
    Truth,
    /// Integers.
    Whole,
    /// Floating-point numbers.
    Number,
    /// Strings.
    Text,
    /// Instants in UTC, in milliseconds.
    Time,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParquetValue<'a> {
    /// A null.
    Missing,
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(&'a str),
    Time(Timestamp),
}

/// Why a row cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RowError {
    /// The number of values differs from the number of columns.
    #[error("the row has {0} values, the table {1} columns")]
    Width(usize, usize),
    /// The type of a value differs from that of its column.
    #[error("a value of the column {0} has a different kind")]
    Kind(String),
}

#[derive(Debug)]
pub struct ParquetWriter {
    columns: Vec<(String, ColumnBuffer)>,
    n_pending: usize,
    n_rows: u64,
    groups: Vec<RowGroup>,
    offset: u64,
    /// Finished bytes that the caller has not taken yet.
    ready: Vec<u8>,
}

#[derive(Debug)]
struct RowGroup {
    n_rows: usize,
    /// The offset of each column's page, and the page.
    chunks: Vec<(u64, ColumnChunk)>,
}

impl ParquetWriter {
    /// A table with these columns and no rows.
    pub fn new(columns: &[(&str, ColumnKind)]) -> ParquetWriter {
        let buffer = |(name, kind): &(&str, ColumnKind)| ((*name).to_owned(), ColumnBuffer::new(*kind));
        ParquetWriter {
            columns: columns.iter().map(buffer).collect(),
            n_pending: 0,
            n_rows: 0,
            groups: Vec::new(),
            offset: MAGIC.len() as u64,
            ready: MAGIC.to_vec(),
        }
    }

    /// Adds a row. A row that cannot be written is skipped.
    pub fn push(&mut self, row: &[ParquetValue<'_>]) -> Result<(), RowError> {
        if row.len() != self.columns.len() {
            return Err(RowError::Width(row.len(), self.columns.len()));
        }
        if let Some(((name, _), _)) =
            self.columns.iter().zip(row).find(|((_, column), value)| !column.takes(value))
        {
            return Err(RowError::Kind(name.clone()));
        }
        self.columns.iter_mut().zip(row).for_each(|((_, column), value)| column.push(value));
        self.n_pending += 1;
        let n_bytes: usize = self.columns.iter().map(|(_, column)| column.n_bytes()).sum();
        if self.n_pending >= MAX_ROWS || n_bytes >= MAX_BYTES {
            self.end_group();
        }
        Ok(())
    }

    /// The finished bytes, to be appended to the file.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ready)
    }

    /// Ends the table and returns the last bytes of the file.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_group();
        let footer = self.footer();
        self.ready.extend_from_slice(&footer);
        self.ready.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        self.ready.extend_from_slice(MAGIC);
        self.ready
    }

    fn end_group(&mut self) {
        if self.n_pending == 0 {
            return;
        }
        let mut chunks = Vec::with_capacity(self.columns.len());
        for (_, column) in &mut self.columns {
            let (chunk, bytes) = column.end_page();
            chunks.push((self.offset, chunk));
            self.offset += bytes.len() as u64;
            self.ready.extend_from_slice(&bytes);
        }
        let n_rows = std::mem::take(&mut self.n_pending);
        self.n_rows += n_rows as u64;
        self.groups.push(RowGroup { n_rows, chunks });
    }

    fn footer(&self) -> Vec<u8> {
        let mut root = ThriftStruct::default();
        root.binary(4, b"rows").i32(5, self.columns.len() as i32);
        let schema =
            std::iter::once(root).chain(self.columns.iter().map(|(name, column)| column.schema(name)));
        let groups = self.groups.iter().map(|group| {
            let chunks = group.chunks.iter().zip(&self.columns);
            let chunks =
                chunks.map(|((offset, chunk), (name, column))| column.metadata(name, *offset, chunk));
            let total = group.chunks.iter().map(|(_, chunk)| chunk.n_bytes_plain as i64).sum();
            let mut written = ThriftStruct::default();
            written.structs(1, chunks).i64(2, total).i64(3, group.n_rows as i64);
            written
        });
        let mut file = ThriftStruct::default();
        file.i32(1, 1)
            .structs(2, schema)
            .i64(3, self.n_rows as i64)
            .structs(4, groups)
            .binary(6, concat!("perennial version ", env!("CARGO_PKG_VERSION"), " (build 0)").as_bytes());
        file.end()
    }
}

#[cfg(test)]
mod tests;
