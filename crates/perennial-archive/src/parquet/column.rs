//! The values of one column in a row group -> a page: the definition levels, and the present values.

use super::thrift::{ThriftStruct, varint};
use super::{ColumnKind, ParquetValue};

/// Constants of the format.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DATA_PAGE: i32 = 0;
const OPTIONAL: i32 = 1;
const UNCOMPRESSED: i32 = 0;
const ZSTD: i32 = 6;

/// The level of Zstandard. Higher levels save too few bytes for their time.
const LEVEL: i32 = 3;

/// Values of a column that are not written yet.
#[derive(Debug)]
pub(super) struct ColumnBuffer {
    kind: ColumnKind,
    /// Alternating lengths of runs of present and missing values, beginning with present ones.
    runs: Vec<u32>,
    n: usize,
    n_truths: usize,
    plain: Vec<u8>,
}

/// The footer's data about a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnChunk {
    n: usize,
    codec: i32,
    pub(super) n_bytes_plain: usize,
    n_bytes: usize,
}

impl ColumnBuffer {
    pub(super) fn new(kind: ColumnKind) -> ColumnBuffer {
        ColumnBuffer { kind, runs: vec![0], n: 0, n_truths: 0, plain: Vec::new() }
    }

    /// Whether a value has the type of this column.
    pub(super) fn takes(&self, value: &ParquetValue<'_>) -> bool {
        match value {
            ParquetValue::Missing => true,
            ParquetValue::Truth(_) => self.kind == ColumnKind::Truth,
            ParquetValue::Whole(_) => self.kind == ColumnKind::Whole,
            ParquetValue::Number(_) => self.kind == ColumnKind::Number,
            ParquetValue::Text(text) => self.kind == ColumnKind::Text && u32::try_from(text.len()).is_ok(),
            ParquetValue::Time(_) => self.kind == ColumnKind::Time,
        }
    }

    pub(super) fn push(&mut self, value: &ParquetValue<'_>) {
        let is_there = *value != ParquetValue::Missing;
        // Runs of present values have even indexes.
        if (self.runs.len() % 2 == 1) != is_there {
            self.runs.push(0);
        }
        if let Some(run) = self.runs.last_mut() {
            *run += 1;
        }
        self.n += 1;
        match value {
            ParquetValue::Missing => {}
            ParquetValue::Truth(truth) => {
                if self.n_truths.is_multiple_of(8) {
                    self.plain.push(0);
                }
                if let Some(bits) = self.plain.last_mut() {
                    *bits |= u8::from(*truth) << (self.n_truths % 8);
                }
                self.n_truths += 1;
            }
            ParquetValue::Whole(number) => self.plain.extend(number.to_le_bytes()),
            ParquetValue::Number(number) => self.plain.extend(number.to_le_bytes()),
            ParquetValue::Time(time) => self.plain.extend(time.as_millis().to_le_bytes()),
            ParquetValue::Text(text) => {
                self.plain.extend((text.len() as u32).to_le_bytes());
                self.plain.extend_from_slice(text.as_bytes());
            }
        }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.plain.len() + 5 * self.runs.len()
    }

    /// The page with its header, and its data for the footer. Empties the buffer.
    pub(super) fn end_page(&mut self) -> (ColumnChunk, Vec<u8>) {
        let mut levels = Vec::new();
        for (place, run) in self.runs.iter().enumerate().filter(|(_, run)| **run > 0) {
            varint(&mut levels, u64::from(*run) << 1);
            levels.push(u8::from(place % 2 == 0));
        }
        let mut body = (levels.len() as u32).to_le_bytes().to_vec();
        body.extend(levels);
        body.extend_from_slice(&self.plain);
        let n_plain = body.len();
        // Incompressible values are stored uncompressed.
        let packed = zstd::bulk::compress(&body, LEVEL).ok().filter(|packed| packed.len() < body.len());
        let codec = if packed.is_some() { ZSTD } else { UNCOMPRESSED };
        let body = packed.unwrap_or(body);

        let mut data = ThriftStruct::default();
        data.i32(1, self.n as i32).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
        let mut head = ThriftStruct::default();
        head.i32(1, DATA_PAGE).i32(2, n_plain as i32).i32(3, body.len() as i32).inner(5, data);
        let mut page = head.end();
        let n_head = page.len();
        page.extend(body);
        let chunk = ColumnChunk { n: self.n, codec, n_bytes_plain: n_head + n_plain, n_bytes: page.len() };
        *self = ColumnBuffer::new(self.kind);
        (chunk, page)
    }

    /// The physical type in the format.
    fn physical(&self) -> i32 {
        match self.kind {
            ColumnKind::Truth => 0,
            ColumnKind::Whole | ColumnKind::Time => 2,
            ColumnKind::Number => 5,
            ColumnKind::Text => 6,
        }
    }

    /// The footer's schema of the column, as both converted type and logical type.
    pub(super) fn schema(&self, name: &str) -> ThriftStruct {
        let mut element = ThriftStruct::default();
        element.i32(1, self.physical()).i32(3, OPTIONAL).binary(4, name.as_bytes());
        let mut logical = ThriftStruct::default();
        match self.kind {
            ColumnKind::Text => {
                logical.inner(1, ThriftStruct::default());
                element.i32(6, 0).inner(10, logical);
            }
            ColumnKind::Time => {
                let (mut unit, mut time) = (ThriftStruct::default(), ThriftStruct::default());
                unit.inner(1, ThriftStruct::default());
                time.truth(1, true).inner(2, unit);
                logical.inner(8, time);
                element.i32(6, 9).inner(10, logical);
            }
            _ => {}
        }
        element
    }

    /// The footer's metadata of a page.
    pub(super) fn metadata(&self, name: &str, offset: u64, chunk: &ColumnChunk) -> ThriftStruct {
        let (plain, packed) = (chunk.n_bytes_plain as i64, chunk.n_bytes as i64);
        let mut column = ThriftStruct::default();
        column
            .i32(1, self.physical())
            .i32s(2, &[PLAIN, RLE])
            .one_binary(3, name.as_bytes())
            .i32(4, chunk.codec)
            .i64(5, chunk.n as i64)
            .i64(6, plain)
            .i64(7, packed)
            .i64(9, offset as i64);
        let mut written = ThriftStruct::default();
        written.i64(2, offset as i64).inner(3, column);
        written
    }
}
