//! Captures <-> lines of a CDXJ index, sorted as bytes. A key -> its lines, by binary search over the file without
//! loading it. Sorted runs -> one run.
//!
//! A line is `key timestamp {json}`. The fields, their order and their form (every value a string, all ASCII) match
//! `cdxj-indexer`, so both tools make identical indexes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::surt::KeyRange;
use crate::time::Timestamp;

/// The longest line that is read. It bounds memory on hostile files.
const MAX_LINE: u64 = 1 << 20;
/// Below this distance the search reads the lines in order instead of seeking.
const LINEAR: u64 = 8 * 1024;

/// One capture in an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdxjLine {
    /// The SURT key of the URL.
    pub key: String,
    /// The time of the capture as fourteen digits.
    pub timestamp: String,
    /// The URL as captured.
    pub url: String,
    /// Media type; `warc/revisit` for a revisit.
    pub mime: Option<String>,
    /// HTTP status.
    pub status: Option<String>,
    /// Label of the payload, such as `sha1:...`.
    pub digest: Option<String>,
    /// Length of the record in its file.
    pub length: Option<u64>,
    /// Offset of the record in its file.
    pub offset: Option<u64>,
    /// Name of the WARC file.
    pub filename: Option<String>,
    /// Further fields in their order. Values that were not strings are stored as their JSON text.
    pub extra: Vec<(String, String)>,
}

/// A line that is not in CDXJ form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no CDXJ line at byte {offset} of {line:?}: it must read `key timestamp {{\"url\": ...}}`")]
pub struct CdxjError {
    /// Number of bytes before the error.
    pub offset: usize,
    /// The beginning of the line.
    pub line: String,
}

impl CdxjLine {
    /// Parses a line, with or without a line end.
    pub fn parse(line: &str) -> Result<CdxjLine, CdxjError> {
        let line = line.trim_end_matches(['\r', '\n']);
        let error = |offset| CdxjError { offset, line: line.chars().take(80).collect() };
        let (key, rest) = line.split_once(' ').ok_or_else(|| error(0))?;
        let (timestamp, json) = rest.split_once(' ').ok_or_else(|| error(key.len() + 1))?;
        let json_at = key.len() + timestamp.len() + 2;
        if key.is_empty() || timestamp.is_empty() || !timestamp.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error(key.len() + 1));
        }
        let fields: CdxjFields =
            serde_json::from_str(json).map_err(|e| error(json_at + e.column().saturating_sub(1)))?;
        let mut out =
            CdxjLine { key: key.to_string(), timestamp: timestamp.to_string(), ..CdxjLine::default() };
        for (name, value) in fields.0 {
            out.set(name, value);
        }
        Ok(out)
    }

    fn set(&mut self, name: String, value: String) {
        match name.as_str() {
            "url" => self.url = value,
            "mime" => self.mime = Some(value),
            "status" => self.status = Some(value),
            "digest" => self.digest = Some(value),
            "length" if value.parse::<u64>().is_ok() => self.length = value.parse().ok(),
            "offset" if value.parse::<u64>().is_ok() => self.offset = value.parse().ok(),
            "filename" => self.filename = Some(value),
            _ => self.extra.push((name, value)),
        }
    }

    /// The time of the capture, if the digits are a valid time.
    pub fn date(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.timestamp).ok()
    }

    /// Whether the capture's content is stored with a different capture.
    pub fn is_revisit(&self) -> bool {
        self.mime.as_deref() == Some("warc/revisit")
    }
}

impl fmt::Display for CdxjLine {
    /// Writes the line without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {{\"url\": {}", self.key, self.timestamp, JsonString(&self.url))?;
        let texts = [("mime", &self.mime), ("status", &self.status), ("digest", &self.digest)];
        for (name, value) in texts.into_iter().filter_map(|(n, v)| Some((n, v.as_ref()?))) {
            write!(f, ", \"{name}\": {}", JsonString(value))?;
        }
        for (name, value) in [("length", self.length), ("offset", self.offset)] {
            if let Some(value) = value {
                write!(f, ", \"{name}\": \"{value}\"")?;
            }
        }
        if let Some(filename) = &self.filename {
            write!(f, ", \"filename\": {}", JsonString(filename))?;
        }
        for (name, value) in &self.extra {
            write!(f, ", {}: {}", JsonString(name), JsonString(value))?;
        }
        f.write_str("}")
    }
}

/// A JSON string in ASCII, as Python writes it.
struct JsonString<'a>(&'a str);

impl fmt::Display for JsonString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                ' '..='~' => write!(f, "{c}")?,
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        f.write_str("\"")
    }
}

/// The members of a JSON object in their order, as texts. Nulls are omitted.
struct CdxjFields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for CdxjFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CdxjFields, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = CdxjFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CdxjFields, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                    match value {
                        serde_json::Value::Null => {}
                        serde_json::Value::String(text) => fields.push((name, text)),
                        other => fields.push((name, other.to_string())),
                    }
                }
                Ok(CdxjFields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// A sorted index file that is searched without loading it.
pub struct SortedCdxj<F> {
    file: F,
    length: u64,
}

impl<F: Read + Seek> SortedCdxj<F> {
    /// Opens an index over a whole file.
    pub fn new(mut file: F) -> io::Result<SortedCdxj<F>> {
        let length = file.seek(SeekFrom::End(0))?;
        Ok(SortedCdxj { file, length })
    }

    /// Returns all lines of a key range, in order, without their line ends.
    pub fn range(
        mut self,
        range: &KeyRange,
    ) -> io::Result<impl Iterator<Item = io::Result<String>> + use<F>> {
        let from = self.lower_bound(&range.start)?;
        self.file.seek(SeekFrom::Start(from))?;
        let end = range.end.clone();
        let is_inside =
            move |line: &io::Result<String>| line.as_ref().ok().is_none_or(|line| line.as_bytes() < &end[..]);
        Ok(lines(self.file).take_while(is_inside))
    }

    /// Returns the offset of the first line that is not below `bound`, or the length of the file.
    pub fn lower_bound(&mut self, bound: &[u8]) -> io::Result<u64> {
        // Invariant: `low` is the start of a line, and all lines before it are below the bound. The first line that
        // starts at or after `high` is not below the bound.
        let (mut low, mut high) = (0, self.length);
        while high - low > LINEAR {
            let middle = low + (high - low) / 2;
            match self.line_from(middle)? {
                Some((start, line)) if trim_line_end(&line) < bound => low = start + line.len() as u64,
                _ => high = middle,
            }
        }
        let mut lines = self.lines_at(low)?;
        while let Some(line) = lines.next_raw()?.filter(|line| trim_line_end(line) < bound) {
            low += line.len() as u64;
        }
        Ok(low)
    }

    /// Returns the first line that starts at or after `offset`, with its start and its line end.
    fn line_from(&mut self, offset: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut start = offset;
        let mut lines = self.lines_at(offset.saturating_sub(1))?;
        if offset > 0 {
            start = offset - 1 + lines.skip_line()?;
        }
        Ok(lines.next_raw()?.map(|line| (start, line)))
    }

    fn lines_at(&mut self, offset: u64) -> io::Result<RawLines<&mut F>> {
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(RawLines { source: BufReader::new(&mut self.file) })
    }
}

fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Lines of bounded length.
struct RawLines<R> {
    source: BufReader<R>,
}

impl<R: Read> RawLines<R> {
    /// The next line with its end.
    fn next_raw(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        (&mut self.source).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
            let message = "a line of the index is longer than 1 MiB: this is not a CDXJ file; rebuild it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok((!line.is_empty()).then_some(line))
    }

    /// Skips the rest of a line of any length; returns its number of bytes, including the line end.
    fn skip_line(&mut self) -> io::Result<u64> {
        let mut n_skipped = 0;
        loop {
            let bytes = self.source.fill_buf()?;
            let end = memchr::memchr(b'\n', bytes);
            let n = end.map_or(bytes.len(), |at| at + 1);
            let at_end = end.is_some() || bytes.is_empty();
            self.source.consume(n);
            n_skipped += n as u64;
            if at_end {
                return Ok(n_skipped);
            }
        }
    }

    fn next_text(&mut self) -> Option<io::Result<String>> {
        let line = match self.next_raw().transpose()? {
            Ok(line) => line,
            Err(e) => return Some(Err(e)),
        };
        Some(Ok(String::from_utf8_lossy(trim_line_end(&line)).into_owned()))
    }
}

/// Returns all lines of a sorted run without their ends, for merging.
pub fn lines<R: Read>(source: R) -> impl Iterator<Item = io::Result<String>> {
    let mut lines = RawLines { source: BufReader::new(source) };
    std::iter::from_fn(move || lines.next_text())
}

/// Merges sorted runs into one. Equal lines appear once.
pub fn merge<I>(runs: Vec<I>) -> MergedRuns<I>
where
    I: Iterator<Item = io::Result<String>>,
{
    let mut merge = MergedRuns { runs, heap: BinaryHeap::new(), failure: None, last: None };
    for run in 0..merge.runs.len() {
        merge.advance(run);
    }
    merge
}

/// The merged lines of several sorted runs. It holds one line per run.
pub struct MergedRuns<I> {
    runs: Vec<I>,
    heap: BinaryHeap<RunHead>,
    failure: Option<io::Error>,
    last: Option<String>,
}

/// The next line of a run. The heap returns the least line first.
#[derive(PartialEq, Eq)]
struct RunHead {
    line: String,
    run: usize,
}

impl Ord for RunHead {
    fn cmp(&self, other: &RunHead) -> Ordering {
        (other.line.as_bytes(), other.run).cmp(&(self.line.as_bytes(), self.run))
    }
}

impl PartialOrd for RunHead {
    fn partial_cmp(&self, other: &RunHead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I: Iterator<Item = io::Result<String>>> MergedRuns<I> {
    fn advance(&mut self, run: usize) {
        match self.runs[run].next() {
            Some(Ok(line)) => self.heap.push(RunHead { line, run }),
            Some(Err(e)) => self.failure = Some(e),
            None => {}
        }
    }
}

impl<I: Iterator<Item = io::Result<String>>> Iterator for MergedRuns<I> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        loop {
            if let Some(e) = self.failure.take() {
                self.heap.clear();
                return Some(Err(e));
            }
            let RunHead { line, run } = self.heap.pop()?;
            self.advance(run);
            if self.last.as_ref() != Some(&line) {
                self.last = Some(line.clone());
                return Some(Ok(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surt::MatchType;
    use crate::surt::surt;
    use proptest::prelude::*;
    use std::io::Cursor;

    #[test]
    fn a_line_of_cdxj_indexer_round_trips() {
        let line = r#"com,example)/ 20170306040206 {"url": "http://example.com/\u00e9\ud83d\ude00", "mime": "text/html", "status": "200", "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1228", "offset": "784", "filename": "example.warc.gz", "method": "POST"}"#;
        let parsed = CdxjLine::parse(line).unwrap();
        assert_eq!(parsed.to_string(), line);
        assert_eq!(parsed.url, "http://example.com/é😀");
        assert_eq!(
            (parsed.length, parsed.offset, parsed.status.as_deref()),
            (Some(1228), Some(784), Some("200"))
        );
        assert_eq!(parsed.date().unwrap().to_rfc3339(), "2017-03-06T04:02:06Z");
        assert_eq!(parsed.extra, [("method".to_string(), "POST".to_string())]);
    }

    #[test]
    fn odd_lines_are_read_or_refused_with_the_place() {
        let numbers =
            CdxjLine::parse(r#"a 2020 {"url":"u","length":5,"x":[1],"y":null,"offset":"-1"}"#).unwrap();
        assert_eq!(numbers.length, Some(5));
        assert_eq!(numbers.extra, [("x".into(), "[1]".into()), ("offset".into(), "-1".into())]);
        for (line, offset) in
            [("", 0), ("abc", 0), ("a b c", 2), ("a 2020 x", 7), (r#"a 2020 {"url" 1}"#, 14)]
        {
            assert_eq!(CdxjLine::parse(line).unwrap_err().offset, offset, "{line}");
        }
        assert!(CdxjLine::parse("x").unwrap_err().to_string().contains("key timestamp"));
    }

    fn urls() -> impl Strategy<Value = Vec<(String, u32)>> {
        proptest::collection::vec(("http://(a|b|c)\\.(a|b\\.a|example)/[a-c/?]{0,4}", 0..5u32), 0..600)
    }

    fn index(urls: &[(String, u32)], padding: usize) -> Vec<String> {
        let line = |(url, n): &(String, u32)| CdxjLine {
            key: surt(url),
            timestamp: format!("2020010100000{n}"),
            url: url.clone(),
            mime: Some("x".repeat(padding)),
            ..CdxjLine::default()
        };
        let mut lines: Vec<String> = urls.iter().map(|u| line(u).to_string()).collect();
        lines.sort();
        lines
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn lookups_find_what_a_scan_finds(
            urls in urls(),
            wanted in "http://(a|b|c)\\.(a|b\\.a|example)/[a-c/?]{0,3}",
            padding in 0..300usize,
            final_end: bool,
        ) {
            let lines = index(&urls, padding);
            let mut text = lines.join("\n");
            if final_end && !text.is_empty() {
                text.push('\n');
            }
            for matching in [MatchType::Exact, MatchType::Prefix, MatchType::Host, MatchType::Domain] {
                let range = KeyRange::of(&wanted, matching);
                let scanned: Vec<_> = lines.iter().filter(|l| range.contains(l.as_bytes())).cloned().collect();
                let sorted = SortedCdxj::new(Cursor::new(text.as_bytes())).unwrap();
                let found: Vec<_> = sorted.range(&range).unwrap().map(Result::unwrap).collect();
                prop_assert_eq!(found, scanned);
            }
        }

        #[test]
        fn merged_runs_are_the_sorted_whole(urls in urls(), n_runs in 1..6usize) {
            let mut runs: Vec<Vec<String>> = vec![Vec::new(); n_runs];
            for (i, line) in index(&urls, 0).into_iter().enumerate() {
                runs[i * 7 % n_runs].push(line);
            }
            let sources = runs.iter().map(|run| lines(Cursor::new(run.join("\n").into_bytes()))).collect();
            let merged: Vec<_> = merge(sources).map(Result::unwrap).collect();
            let mut whole = index(&urls, 0);
            whole.dedup();
            prop_assert_eq!(merged, whole);
        }

        #[test]
        fn any_line_is_read_back(url in "\\PC{0,30}", mime in proptest::option::of("\\PC{0,9}"), offset: Option<u64>, name in "\\PC{1,9}") {
            let line = CdxjLine {
                key: "k".into(),
                timestamp: "2020".into(),
                url,
                mime,
                offset,
                extra: vec![(format!("x{name}"), name)],
                ..CdxjLine::default()
            };
            prop_assert_eq!(CdxjLine::parse(&line.to_string()).unwrap(), line);
        }
    }

    #[test]
    fn endless_lines_are_refused_in_constant_memory() {
        let mut sorted = SortedCdxj::new(Cursor::new(vec![b'a'; 3 << 20])).unwrap();
        assert_eq!(sorted.lower_bound(b"b").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
