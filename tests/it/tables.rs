//! Tables for data frames: `export --format parquet` writes the same as `--format csv`, and other tools read it.

use std::path::Path;

use crate::crawled::Archive;
use crate::dashboard::crawled;

const TABLES: [&str; 5] = ["changes", "versions", "observations", "captures", "deltas"];

fn export(archive: &Archive, format: &str, table: &str, to: &Path) -> u64 {
    let path = to.to_str().unwrap();
    archive.json(&["export", "--format", format, "--table", table, "--output", path])["n_rows"]
        .as_u64()
        .unwrap()
}

#[test]
fn every_table_is_written_in_both_forms() {
    let (_web, archive) = crawled();
    let dir = tempfile::tempdir().unwrap();
    for table in TABLES {
        let (csv, parquet) =
            (dir.path().join(format!("{table}.csv")), dir.path().join(format!("{table}.parquet")));
        let n_rows = export(&archive, "csv", table, &csv);
        assert!(n_rows > 0, "{table}");
        assert_eq!(export(&archive, "parquet", table, &parquet), n_rows, "{table}");
        let bytes = std::fs::read(&parquet).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
    }
    let operations: usize = archive
        .json(&["changes"])
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["operations"].as_array().unwrap().len())
        .sum();
    let again = dir.path().join("again.csv");
    assert_eq!(export(&archive, "csv", "deltas", &again), operations as u64);
    let text = std::fs::read_to_string(again).unwrap();
    assert!(
        text.starts_with("url,site,time,before,op,element,") && text.contains("fifty kilometres"),
        "{text}"
    );
    let site = archive.json(&[
        "export",
        "--format",
        "parquet",
        "--site",
        "nowhere.example",
        "--output",
        dir.path().join("none.parquet").to_str().unwrap(),
    ]);
    assert_eq!(site["n_rows"], 0);
}

/// pyarrow reads the same values from each Parquet table as from its CSV file, with the types documented in
/// docs/sql.md.
#[cfg(feature = "interop")]
#[test]
fn pyarrow_reads_the_tables() {
    const SCRIPT: &str = "
import sys, csv
import pyarrow.parquet as pq
for table in sys.argv[2:]:
    read = pq.read_table(f'{sys.argv[1]}/{table}.parquet')
    rows = list(csv.reader(open(f'{sys.argv[1]}/{table}.csv', newline='')))
    assert read.column_names == rows[0], (read.column_names, rows[0])
    assert read.num_rows == len(rows) - 1
    for name, kind in zip(read.column_names, read.schema.types):
        is_time = name in ('time', 'before', 'first_time', 'last_time')
        assert str(kind) == 'timestamp[ms, tz=UTC]' if is_time else True, (name, kind)
        assert str(kind) == 'bool' if name.startswith('is_') else True, (name, kind)
        assert str(kind) == 'int64' if name.startswith('n_') else True, (name, kind)
    def text(value):
        if value is None: return ''
        if isinstance(value, bool): return str(int(value))
        if hasattr(value, 'isoformat'): return value.isoformat().replace('+00:00', 'Z').replace('.000Z', 'Z')
        return value
    for row, other in zip(read.to_pylist(), rows[1:]):
        for (name, value), expected in zip(row.items(), other):
            same = float(expected) == value if isinstance(value, float) else str(text(value)) == expected
            assert same, (table, name, value, expected)
print('read')
";
    let (_web, archive) = crawled();
    let dir = tempfile::tempdir().unwrap();
    for (table, format) in TABLES.iter().flat_map(|table| [(table, "csv"), (table, "parquet")]) {
        export(&archive, format, table, &dir.path().join(format!("{table}.{format}")));
    }
    let output =
        crate::interop::tool("python").args(["-c", SCRIPT]).arg(dir.path()).args(TABLES).output().unwrap();
    assert!(output.status.success() && output.stdout == b"read\n", "{output:?}");
}
