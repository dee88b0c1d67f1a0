//! Written tables are read back by a reader based only on the specification.

use proptest::prelude::*;

use super::*;

/// A field of the compact protocol.
#[derive(Clone, Debug, PartialEq)]
enum ThriftField {
    Truth(bool),
    Int(i64),
    Bytes(Vec<u8>),
    List(Vec<ThriftField>),
    Struct(Vec<(i16, ThriftField)>),
}

impl ThriftField {
    fn at(&self, number: i16) -> &ThriftField {
        let ThriftField::Struct(fields) = self else { panic!("no struct: {self:?}") };
        &fields
            .iter()
            .find(|(known, _)| *known == number)
            .unwrap_or_else(|| panic!("no {number} in {self:?}"))
            .1
    }

    fn int(&self) -> i64 {
        let ThriftField::Int(value) = self else { panic!("{self:?}") };
        *value
    }

    fn list(&self) -> &[ThriftField] {
        let ThriftField::List(values) = self else { panic!("{self:?}") };
        values
    }

    fn text(&self) -> String {
        let ThriftField::Bytes(bytes) = self else { panic!("{self:?}") };
        String::from_utf8(bytes.clone()).unwrap()
    }
}

struct ThriftReader<'b>(&'b [u8]);

impl ThriftReader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap();
        self.0 = rest;
        *first
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken.to_vec()
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn value(&mut self, kind: u8) -> ThriftField {
        match kind {
            1 | 2 => ThriftField::Truth(kind == 1),
            5 | 6 => {
                let value = self.varint();
                ThriftField::Int((value >> 1) as i64 ^ -((value & 1) as i64))
            }
            8 => {
                let n = self.varint() as usize;
                ThriftField::Bytes(self.bytes(n))
            }
            9 => {
                let head = self.byte();
                let n = if head >> 4 == 15 { self.varint() as usize } else { usize::from(head >> 4) };
                ThriftField::List((0..n).map(|_| self.value(head & 15)).collect())
            }
            12 => self.fields(),
            kind => panic!("kind {kind}"),
        }
    }

    fn fields(&mut self) -> ThriftField {
        let (mut found, mut number) = (Vec::new(), 0);
        loop {
            let head = self.byte();
            if head == 0 {
                return ThriftField::Struct(found);
            }
            assert!(head >> 4 > 0, "numbers grow");
            number += i16::from(head >> 4);
            found.push((number, self.value(head & 15)));
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum CellValue {
    Missing,
    Truth(bool),
    Whole(i64),
    Number(u64),
    Text(String),
}

fn page_values(file: &[u8], column: &ThriftField) -> Vec<CellValue> {
    let metadata = column.at(3);
    let (offset, total) = (metadata.at(9).int() as usize, metadata.at(7).int() as usize);
    let mut reader = ThriftReader(&file[offset..offset + total]);
    let head = reader.fields();
    let body = reader.bytes(head.at(3).int() as usize);
    assert!(reader.0.is_empty(), "the page ends where the footer says");
    let n_plain = head.at(2).int() as usize;
    let body = match metadata.at(4).int() {
        6 => zstd::bulk::decompress(&body, n_plain).unwrap(),
        codec => {
            assert_eq!(codec, 0);
            body
        }
    };
    assert_eq!(body.len(), n_plain);
    let n_levels = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    let (mut levels, mut values) =
        (ThriftReader(&body[4..4 + n_levels]), ThriftReader(&body[4 + n_levels..]));
    let mut is_there = Vec::new();
    while !levels.0.is_empty() {
        let run = levels.varint();
        assert_eq!(run & 1, 0, "a run of one value");
        let level = levels.byte();
        is_there.extend(std::iter::repeat_n(level == 1, (run >> 1) as usize));
    }
    assert_eq!(is_there.len() as i64, metadata.at(5).int());
    let (mut read, mut n_truths, mut bits) = (Vec::new(), 0, 0);
    for is_there in is_there {
        read.push(match (is_there, metadata.at(1).int()) {
            (false, _) => CellValue::Missing,
            (true, 0) => {
                if n_truths % 8 == 0 {
                    bits = values.byte();
                }
                n_truths += 1;
                CellValue::Truth(bits >> ((n_truths - 1) % 8) & 1 == 1)
            }
            (true, 2) => CellValue::Whole(i64::from_le_bytes(values.bytes(8).try_into().unwrap())),
            (true, 5) => CellValue::Number(u64::from_le_bytes(values.bytes(8).try_into().unwrap())),
            (true, _) => {
                let n = u32::from_le_bytes(values.bytes(4).try_into().unwrap()) as usize;
                CellValue::Text(String::from_utf8(values.bytes(n)).unwrap())
            }
        });
    }
    assert!(values.0.is_empty());
    read
}

/// Reads all columns of a file, and the number of row groups.
fn read(file: &[u8]) -> (Vec<(String, Vec<CellValue>)>, usize) {
    assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
    let tail = file.len() - 8;
    let n_footer = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize;
    let mut reader = ThriftReader(&file[tail - n_footer..tail]);
    let footer = reader.fields();
    assert!(reader.0.is_empty());
    let schema = footer.at(2).list();
    assert_eq!(schema[0].at(5).int() as usize, schema.len() - 1);
    let mut columns: Vec<(String, Vec<CellValue>)> =
        schema[1..].iter().map(|element| (element.at(4).text(), Vec::new())).collect();
    for group in footer.at(4).list() {
        for (chunk, (name, values)) in group.at(1).list().iter().zip(&mut columns) {
            assert_eq!(chunk.at(3).at(3).list()[0].text(), *name);
            let page = page_values(file, chunk);
            assert_eq!(page.len() as i64, group.at(3).int());
            values.extend(page);
        }
    }
    assert!(columns.iter().all(|(_, values)| values.len() as i64 == footer.at(3).int()));
    (columns, footer.at(4).list().len())
}

const COLUMNS: [(&str, ColumnKind); 5] = [
    ("truth", ColumnKind::Truth),
    ("whole", ColumnKind::Whole),
    ("number", ColumnKind::Number),
    ("text", ColumnKind::Text),
    ("time", ColumnKind::Time),
];

type TestRow = (Option<bool>, Option<i64>, Option<f64>, Option<String>, Option<i64>);

fn write(rows: &[TestRow]) -> Vec<u8> {
    let mut writer = ParquetWriter::new(&COLUMNS);
    let mut file = Vec::new();
    for (truth, whole, number, text, time) in rows {
        let row = [
            truth.map_or(ParquetValue::Missing, ParquetValue::Truth),
            whole.map_or(ParquetValue::Missing, ParquetValue::Whole),
            number.map_or(ParquetValue::Missing, ParquetValue::Number),
            text.as_deref().map_or(ParquetValue::Missing, ParquetValue::Text),
            time.map_or(ParquetValue::Missing, |millis| ParquetValue::Time(Timestamp::from_millis(millis))),
        ];
        writer.push(&row).unwrap();
        file.extend(writer.take());
    }
    file.extend(writer.finish());
    file
}

fn expected(rows: &[TestRow]) -> [Vec<CellValue>; 5] {
    let of = |value: &dyn Fn(&TestRow) -> Option<CellValue>| {
        rows.iter().map(|row| value(row).unwrap_or(CellValue::Missing)).collect::<Vec<_>>()
    };
    [
        of(&|row| row.0.map(CellValue::Truth)),
        of(&|row| row.1.map(CellValue::Whole)),
        of(&|row| row.2.map(|number| CellValue::Number(number.to_bits()))),
        of(&|row| row.3.clone().map(CellValue::Text)),
        of(&|row| row.4.map(CellValue::Whole)),
    ]
}

#[test]
fn an_empty_table_has_its_columns() {
    let (columns, n_groups) = read(&write(&[]));
    assert_eq!(
        columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        COLUMNS.map(|(name, _)| name)
    );
    assert_eq!(n_groups, 0);
}

#[test]
fn a_long_table_has_several_row_groups() {
    let row =
        |n: i64| (Some(n % 3 == 0), Some(n), Some(n as f64 / 7.0), Some(n.to_string()), Some(n * 1_000));
    let rows: Vec<TestRow> = (0..250_000).map(row).collect();
    let (columns, n_groups) = read(&write(&rows));
    assert_eq!(n_groups, 3);
    for ((_, values), expected) in columns.into_iter().zip(expected(&rows)) {
        assert!(values == expected);
    }
}

#[test]
fn a_row_that_does_not_fit_is_refused_whole() {
    let mut writer = ParquetWriter::new(&[("a", ColumnKind::Whole), ("b", ColumnKind::Text)]);
    assert_eq!(writer.push(&[ParquetValue::Whole(1)]), Err(RowError::Width(1, 2)));
    assert_eq!(
        writer.push(&[ParquetValue::Whole(1), ParquetValue::Whole(1)]),
        Err(RowError::Kind("b".into()))
    );
    writer.push(&[ParquetValue::Whole(2), ParquetValue::Text("x")]).unwrap();
    let (columns, _) = read(&writer.finish());
    assert_eq!(columns[0].1, [CellValue::Whole(2)]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(rows in prop::collection::vec(
        (any::<Option<bool>>(), any::<Option<i64>>(), any::<Option<f64>>(), any::<Option<String>>(), any::<Option<i64>>()), 0..60)
    ) {
        let (columns, _) = read(&write(&rows));
        for ((_, values), expected) in columns.into_iter().zip(expected(&rows)) {
            prop_assert_eq!(values, expected);
        }
    }
}
