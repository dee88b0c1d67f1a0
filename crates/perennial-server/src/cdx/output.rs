//! Writes rows as text, JSON or CDXJ in either dialect.

use std::borrow::Cow;
use std::fmt::Write;

use perennial_core::memento::replay_url::escape;
use perennial_warc::cdxj::CdxjLine;
use serde_json::{Map, Value, json};

use super::{CdxQuery, CdxRows};

/// The API whose field names and formats a client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// `mime`, `status`, `url`; one JSON object per line.
    Pywb,
    /// `mimetype`, `statuscode`, `original`; an array of arrays.
    Wayback,
}

/// The format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CdxFormat {
    /// Separated by blanks.
    Text,
    Json,
    /// Key, time, JSON.
    Cdxj,
}

impl CdxFormat {
    pub(super) fn parse(text: Option<&str>, dialect: Dialect) -> Result<CdxFormat, String> {
        match (text.unwrap_or_default(), dialect) {
            ("cdxj", _) | ("", Dialect::Pywb) => Ok(CdxFormat::Cdxj),
            ("text" | "csv", _) | ("", Dialect::Wayback) => Ok(CdxFormat::Text),
            ("json", _) => Ok(CdxFormat::Json),
            (other, _) => Err(format!("output={other}: write json, text or cdxj")),
        }
    }
}

const PYWB_FIELDS: [&str; 9] =
    ["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename"];
pub(super) const WAYBACK_FIELDS: [&str; 7] =
    ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"];
/// Fields that only some lines have.
const RARE_FIELDS: [&str; 3] = ["method", "requestBody", "shows"];

/// The fields of a row, in order.
pub(super) fn fields(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Pywb => &PYWB_FIELDS,
        Dialect::Wayback => &WAYBACK_FIELDS,
    }
}

/// Whether a field has this name in either dialect.
pub(super) fn is_known(name: &str) -> bool {
    [&PYWB_FIELDS[..], &WAYBACK_FIELDS, &RARE_FIELDS].concat().contains(&name)
}

/// A field by its name in either dialect.
pub(super) fn find_field<'l>(line: &'l CdxjLine, name: &str) -> Option<Cow<'l, str>> {
    let text = |text: &'l Option<String>| text.as_deref().map(Cow::Borrowed);
    match name {
        "urlkey" => Some(line.key.as_str().into()),
        "timestamp" => Some(line.timestamp.as_str().into()),
        "url" | "original" => Some(line.url.as_str().into()),
        "mime" | "mimetype" => text(&line.mime),
        "status" | "statuscode" => text(&line.status),
        "digest" => text(&line.digest),
        "length" => line.length.map(|length| length.to_string().into()),
        "offset" => line.offset.map(|offset| offset.to_string().into()),
        "filename" => text(&line.filename),
        _ => line.extra.iter().find(|field| field.0 == name).map(|field| field.1.as_str().into()),
    }
}

/// A value in a dialect: the Internet Archive's digests have no algorithm prefix.
fn value_of<'l>(line: &'l CdxjLine, name: &str, dialect: Dialect) -> Option<Cow<'l, str>> {
    let value = find_field(line, name)?;
    match (dialect, name, value) {
        (Dialect::Wayback, "digest", Cow::Borrowed(digest)) => {
            Some(digest.strip_prefix("sha1:").unwrap_or(digest).into())
        }
        (.., value) => Some(value),
    }
}

/// The media type and text of a response.
pub(super) fn write(query: &CdxQuery, rows: &CdxRows) -> (&'static str, String) {
    let names: Vec<&str> = match &query.fields {
        Some(fields) => fields.iter().map(String::as_str).collect(),
        None => fields(query.dialect).to_vec(),
    };
    let resume_key = rows.resume_key.as_ref().filter(|_| query.shows_resume_key);
    match (query.output, query.dialect) {
        (CdxFormat::Cdxj, _) => ("text/x-cdxj", write_cdxj(query, rows)),
        (CdxFormat::Text, dialect) => {
            ("text/plain; charset=utf-8", write_text(&names, rows, dialect, resume_key))
        }
        (CdxFormat::Json, Dialect::Pywb) => ("text/x-ndjson", write_json_lines(query, &names, rows)),
        (CdxFormat::Json, Dialect::Wayback) => {
            ("application/json", write_arrays(&names, rows, resume_key, query.page.is_some()))
        }
    }
}

fn write_cdxj(query: &CdxQuery, rows: &CdxRows) -> String {
    let mut out = String::new();
    for line in &rows.rows {
        // Writing to a string cannot fail.
        let _ = match &query.fields {
            None => writeln!(out, "{line}"),
            Some(fields) => {
                let article = json_object(line, fields.iter().map(String::as_str), query.dialect);
                writeln!(out, "{} {} {}", line.key, line.timestamp, Value::Object(article))
            }
        };
    }
    out
}

fn json_object<'n>(
    line: &CdxjLine,
    names: impl Iterator<Item = &'n str>,
    dialect: Dialect,
) -> Map<String, Value> {
    let pair =
        |name: &str| Some((name.to_string(), Value::from(value_of(line, name, dialect)?.into_owned())));
    names.filter_map(pair).collect()
}

fn write_json_lines(query: &CdxQuery, names: &[&str], rows: &CdxRows) -> String {
    let mut out = String::new();
    for line in &rows.rows {
        let mut article = json_object(line, names.iter().copied(), query.dialect);
        if query.fields.is_none() {
            article.extend(line.extra.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
        }
        let _ = writeln!(out, "{}", Value::Object(article));
    }
    out
}

fn write_text(names: &[&str], rows: &CdxRows, dialect: Dialect, resume_key: Option<&String>) -> String {
    let mut out = String::new();
    for line in &rows.rows {
        let values: Vec<Cow<'_, str>> =
            names.iter().map(|name| value_of(line, name, dialect).unwrap_or("-".into())).collect();
        out.push_str(&values.join(" "));
        out.push('\n');
    }
    if let Some(key) = resume_key {
        let _ = writeln!(out, "\n{}", escape(key));
    }
    out
}

fn write_arrays(names: &[&str], rows: &CdxRows, resume_key: Option<&String>, is_page: bool) -> String {
    if rows.rows.is_empty() {
        // Clients that request page after page stop at an empty response.
        return if is_page { String::new() } else { "[]\n".to_string() };
    }
    let mut all = vec![json!(names)];
    for line in &rows.rows {
        let values: Vec<Cow<'_, str>> =
            names.iter().map(|name| value_of(line, name, Dialect::Wayback).unwrap_or("-".into())).collect();
        all.push(json!(values));
    }
    if let Some(key) = resume_key {
        all.extend([json!([]), json!([key])]);
    }
    let lines: Vec<String> = all.iter().map(Value::to_string).collect();
    format!("[{}]\n", lines.join(",\n "))
}

/// The number of pages in each dialect.
pub(super) fn n_pages(query: &CdxQuery, n_lines: usize) -> (&'static str, String) {
    let n_pages = n_lines.div_ceil(query.page_lines);
    match query.dialect {
        Dialect::Wayback => ("text/plain; charset=utf-8", format!("{n_pages}\n")),
        Dialect::Pywb => {
            let response = json!({ "pages": n_pages, "pageSize": query.page_lines, "blocks": n_lines.div_ceil(super::BLOCK_LINES) });
            ("application/json", format!("{response}\n"))
        }
    }
}
