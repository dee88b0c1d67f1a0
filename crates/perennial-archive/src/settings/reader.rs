//! Tables of a TOML document -> values. A mistake is noted with its line and reading continues. All mistakes of a file
//! are therefore reported at once.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use perennial_core::text::untrusted::shorten;
use perennial_core::time::Span;
use toml_edit::{Item, TableLike, TomlError, Value};

use perennial_core::schedule::units::parse_bytes;

/// Maximum number of mistakes shown; further ones are only counted.
const MAX_REPORTED: usize = 20;
/// Maximum number of characters shown of a wrong value.
const MAX_SHOWN: usize = 60;
/// A longer key is not compared with known keys.
const MAX_KEY: usize = 40;
/// The longest plausible pause or time limit, in seconds: 31 years.
const MAX_SECS: f64 = 1e9;

/// All mistakes of a settings file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    path: PathBuf,
    /// Line numbers from 1, and descriptions.
    mistakes: Vec<(usize, String)>,
    n_more: usize,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (line, text)) in self.mistakes.iter().enumerate() {
            let between = if n > 0 { "\n" } else { "" };
            write!(f, "{between}{} line {line}: {text}", self.path.display())?;
        }
        match self.n_more {
            0 => Ok(()),
            n => write!(f, "\nand {n} more mistakes"),
        }
    }
}

impl std::error::Error for Mistakes {}

impl Mistakes {
    /// A TOML syntax error. The parser stops at the first one.
    pub(super) fn from_syntax_error(path: &Path, text: &str, error: &TomlError) -> Mistakes {
        let start = error.span().map_or(0, |span| span.start);
        let mistakes = vec![(line_number(text, start), error.message().trim().replace('\n', ", "))];
        Mistakes { path: path.to_path_buf(), mistakes, n_more: 0 }
    }
}

/// The line number of a byte, from 1.
fn line_number(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// One mistake.
enum Mistake {
    /// A description for people.
    Value(String),
    /// An unknown key of a table.
    Key { table: &'static str, key: String },
}

/// The log of reading one file.
pub(super) struct ReadingLog<'a> {
    text: &'a str,
    /// Byte offsets and mistakes.
    wrong: Vec<(usize, Mistake)>,
    /// All requested keys with their tables.
    keys: BTreeSet<SettingKey>,
}

pub(super) type SettingKey = (&'static str, &'static str);

impl<'a> ReadingLog<'a> {
    pub(super) fn new(text: &'a str) -> ReadingLog<'a> {
        ReadingLog { text, wrong: Vec::new(), keys: BTreeSet::new() }
    }

    pub(super) fn into_keys(self) -> BTreeSet<SettingKey> {
        self.keys
    }

    /// Reads a table, and notes keys that `read` did not request.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        table: Option<&'a dyn TableLike>,
        span: Option<Range<usize>>,
        read: impl FnOnce(&mut TableReader<'_, 'a>) -> T,
    ) -> T {
        let mut reader = TableReader { table, span, notes: self, requested: Vec::new() };
        let value = read(&mut reader);
        let requested = reader.requested;
        for (key, item) in table.into_iter().flat_map(|table| table.iter()) {
            if !requested.contains(&key) {
                let span = table.and_then(|table| table.get_key_value(key)?.0.span()).or(item.span());
                let at = span.map_or(0, |span| span.start);
                self.wrong.push((at, Mistake::Key { table: name, key: key.to_owned() }));
            }
        }
        self.keys.extend(requested.into_iter().map(|key| (name, key)));
        value
    }

    fn wrong(&mut self, span: Option<Range<usize>>, text: String) {
        self.wrong.push((span.map_or(0, |span| span.start), Mistake::Value(text)));
    }

    /// The text of a value, shortened if it is long.
    fn source(&self, span: Option<Range<usize>>) -> String {
        let source = span.and_then(|span| self.text.get(span)).unwrap_or_default();
        let line = source.lines().next().unwrap_or_default();
        let more = if line.len() < source.len() { "…" } else { "" };
        shorten(&format!("{line}{more}"), MAX_SHOWN).into_owned()
    }

    /// Returns all noted mistakes. `all_keys` returns the keys of all tables.
    pub(super) fn into_mistakes(
        mut self,
        path: &Path,
        all_keys: impl FnOnce() -> BTreeSet<SettingKey>,
    ) -> Option<Mistakes> {
        if self.wrong.is_empty() {
            return None;
        }
        let keys = all_keys();
        self.wrong.sort_by_key(|(at, _)| *at);
        let n_more = self.wrong.len().saturating_sub(MAX_REPORTED);
        let mistakes = self.wrong.iter().take(MAX_REPORTED);
        let mistakes =
            mistakes.map(|(at, wrong)| (line_number(self.text, *at), wrong.message(&keys))).collect();
        Some(Mistakes { path: path.to_path_buf(), mistakes, n_more })
    }
}

/// Keys of earlier versions, with the names they have now.
const FORMER_KEYS: [(&str, &str); 3] = [
    ("requisites", "subresources"),
    ("requisite_hours", "subresource_hours"),
    ("least_importance", "min_importance"),
];

impl Mistake {
    fn message(&self, keys: &BTreeSet<SettingKey>) -> String {
        let (table, key) = match self {
            Mistake::Value(text) => return text.clone(),
            Mistake::Key { table, key } => (table, key),
        };
        if let Some((_, current)) = FORMER_KEYS.iter().find(|(former, _)| former == key) {
            return format!("`{key}` is now called `{current}`");
        }
        let own = keys.iter().filter(|(of, _)| of == table).map(|(_, key)| *key);
        let elsewhere = keys.iter().find(|(of, name)| name == key && of.starts_with('[')).map(|(of, _)| *of);
        let hint = match (elsewhere, nearest(key, own)) {
            (Some(table), _) => format!("it belongs below {table}"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => "docs/settings.md names those that there are".to_owned(),
        };
        format!("`{}` is not a setting of {table}: {hint}", shorten(key, MAX_SHOWN))
    }
}

/// The candidate most similar to a misspelt word, if any is similar enough.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let n_letters = word.chars().count();
    if n_letters > MAX_KEY {
        return None;
    }
    let distances = candidates.map(|candidate| (strsim::osa_distance(word, candidate), candidate));
    let (least, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= (n_letters / 3).max(1)).then_some(candidate)
}

/// Reads one table, key by key. A missing key has its default. So does a key with a wrong value, because the whole file
/// is then refused.
pub(super) struct TableReader<'n, 'a> {
    table: Option<&'a dyn TableLike>,
    /// The table's place in the file.
    span: Option<Range<usize>>,
    notes: &'n mut ReadingLog<'a>,
    requested: Vec<&'static str>,
}

impl<'a> TableReader<'_, 'a> {
    fn item(&mut self, key: &'static str) -> Option<&'a Item> {
        self.requested.push(key);
        self.table?.get(key)
    }

    /// Notes a wrong value with a hint.
    pub(super) fn refuse(&mut self, key: &str, hint: &str) {
        let span = self.table.and_then(|table| table.get(key)).and_then(Item::span);
        self.refuse_at(key, span, hint);
    }

    fn refuse_at(&mut self, key: &str, span: Option<Range<usize>>, hint: &str) {
        let source = self.notes.source(span.clone());
        self.notes.wrong(span, format!("{key} = {source}: {hint}"));
    }

    /// Converts the value of a key. If `convert` fails, notes the hint.
    fn value<T>(
        &mut self,
        key: &'static str,
        hint: impl FnOnce() -> String,
        convert: impl FnOnce(&Item) -> Option<T>,
    ) -> Option<T> {
        let item = self.item(key)?;
        let value = convert(item);
        if value.is_none() {
            self.refuse_at(key, item.span(), &hint());
        }
        value
    }

    pub(super) fn bool(&mut self, key: &'static str, default: bool) -> bool {
        self.maybe(key).unwrap_or(default)
    }

    /// Like [`Self::bool`], if a missing key differs from false.
    pub(super) fn maybe(&mut self, key: &'static str) -> Option<bool> {
        self.value(key, || "write true or false".into(), Item::as_bool)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let line =
            |item: &Item| Some(item.as_str()?.to_owned()).filter(|text| !text.contains(char::is_control));
        self.value(key, || "write one line of text in quotes".into(), line)
    }

    pub(super) fn whole<T: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<T> {
        let hint = || format!("write a whole number from {} to {}", range.start(), range.end());
        let number = |item: &Item| T::try_from(item.as_integer().filter(|n| range.contains(n))?).ok();
        self.value(key, hint, number)
    }

    pub(super) fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let hint = || format!("write a number from {} to {}", range.start(), range.end());
        self.value(key, hint, |item| as_number(item).filter(|number| range.contains(number)))
    }

    pub(super) fn span(&mut self, key: &'static str, unit_secs: f64, default: Span) -> Span {
        let number = self.number(key, 0.0..=MAX_SECS / unit_secs);
        number.map_or(default, |number| Span::from_millis((number * unit_secs * 1000.0) as i64))
    }

    pub(super) fn timeout(&mut self, key: &'static str, default: Duration) -> Duration {
        self.number(key, 0.001..=MAX_SECS / 100.0).map_or(default, Duration::from_secs_f64)
    }

    /// A number of bytes: an integer, or text such as `200MB`.
    pub(super) fn bytes(&mut self, key: &'static str) -> Option<u64> {
        let bytes = |item: &Item| match item.as_str() {
            Some(text) => parse_bytes(text).ok(),
            None => u64::try_from(item.as_integer()?).ok(),
        };
        let hint = || "write a number of bytes above 0, such as 1000, \"200MB\" or \"1GiB\"".into();
        self.value(key, hint, |item| bytes(item).filter(|bytes| *bytes > 0))
    }

    /// A text parsed by `parse`, whose error is the hint.
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let item = self.item(key)?;
        let parsed = match item.as_str() {
            Some(text) => parse(text),
            None => Err("write it as text in quotes".to_owned()),
        };
        parsed.map_err(|hint| self.refuse_at(key, item.span(), &hint)).ok()
    }

    /// A list of texts, each parsed by `parse`.
    pub(super) fn list<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let text = |value: &Value| value.as_str().ok_or("write it as text in quotes").map(str::to_owned);
        self.elements(key, "a list of texts", |value| parse(&text(value)?))
    }

    /// Like [`Self::list`], but a single text needs no brackets.
    pub(super) fn texts<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        match self.table.and_then(|table| table.get(key)?.as_str()) {
            Some(_) => self.parsed(key, parse).into_iter().collect(),
            None => self.list(key, parse),
        }
    }

    /// A list of values, each parsed by `parse`.
    pub(super) fn values<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Vec<T> {
        self.elements(key, "a list", parse)
    }

    fn elements<T>(
        &mut self,
        key: &'static str,
        what: &str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Vec<T> {
        let Some(item) = self.item(key) else { return Vec::new() };
        let Some(array) = item.as_array() else {
            self.refuse_at(key, item.span(), &format!("write {what}, such as [\"one\", \"another\"]"));
            return Vec::new();
        };
        let mut values = Vec::with_capacity(array.len());
        for element in array {
            match parse(element) {
                Ok(value) => values.push(value),
                Err(hint) => self.refuse_at(key, element.span(), &hint),
            }
        }
        values
    }

    /// A nested table; a missing one has only defaults.
    pub(super) fn table<T>(
        &mut self,
        key: &'static str,
        name: &'static str,
        read: impl FnOnce(&mut TableReader<'_, 'a>) -> T,
    ) -> T {
        let item = self.item(key);
        let table = item.and_then(Item::as_table_like);
        let span = item.and_then(Item::span);
        if item.is_some() && table.is_none() {
            self.notes
                .wrong(span.clone(), format!("`{key}` is a table: write {name} and its settings below"));
        }
        self.notes.read(name, table, span, read)
    }

    /// All tables of a name, without those for which `read` returns `None`.
    pub(super) fn tables<T>(
        &mut self,
        key: &'static str,
        name: &'static str,
        mut read: impl FnMut(&mut TableReader<'_, 'a>) -> Option<T>,
    ) -> Vec<T> {
        let Some(item) = self.item(key) else { return Vec::new() };
        let tables: Option<Vec<(&'a dyn TableLike, _)>> = match item {
            Item::ArrayOfTables(tables) => {
                Some(tables.iter().map(|table| (table as &dyn TableLike, table.span())).collect())
            }
            Item::Value(Value::Array(array)) => {
                let inline =
                    |value: &'a Value| Some((value.as_inline_table()? as &dyn TableLike, value.span()));
                array.iter().map(inline).collect()
            }
            _ => None,
        };
        let Some(tables) = tables else {
            self.notes.wrong(item.span(), format!("write {name}, with two brackets on each side"));
            return Vec::new();
        };
        tables
            .into_iter()
            .filter_map(|(table, span)| self.notes.read(name, Some(table), span, &mut read))
            .collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Notes that the table lacks something.
    pub(super) fn lacks(&mut self, text: &str) {
        self.notes.wrong(self.span.clone(), text.to_owned());
    }
}

fn as_number(item: &Item) -> Option<f64> {
    match item.as_value()? {
        Value::Integer(number) => Some(*number.value() as f64),
        Value::Float(number) => Some(*number.value()).filter(|number| number.is_finite()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_nothing_far() {
        let keys = ["budget", "bytes_per_day", "depth", "weight"];
        for (word, near) in [
            ("buget", Some("budget")),
            ("budgte", Some("budget")),
            ("dept", Some("depth")),
            ("wieght", Some("weight")),
            ("byte_per_day", Some("bytes_per_day")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys.into_iter()), near, "{word}");
        }
    }
}
