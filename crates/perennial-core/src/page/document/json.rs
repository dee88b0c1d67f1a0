//! JSON -> one text per value, with its path: `roads[Ring].limit: 50`.
//!
//! Members are sorted by name, because JSON gives their order no meaning. A list record is named by an identifying
//! member, not by its index. Otherwise a new first record would rename all others.

use serde_json::{Map, Value};

use super::draft::{DocumentDraft, DocumentUnit, MAX_ELEMENTS, UnitPlacement};

/// Members that may identify a record, in order of preference.
const NAMES: [&str; 8] = ["id", "@id", "key", "slug", "name", "title", "url", "date"];
/// Maximum length of a path.
const MAX_PATH_BYTES: usize = 200;

/// Reads a document. `None` if it is not JSON.
pub(super) fn read(text: &str) -> Option<DocumentDraft> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let mut draft = DocumentDraft::default();
    match &value {
        Value::Object(members) => {
            let title = ["title", "name"].iter().find_map(|name| members.get(*name)?.as_str());
            draft.title = title.unwrap_or_default().to_owned();
            add_members(&mut draft, members);
        }
        Value::Array(list) => add_records(&mut draft, "", list),
        value => add(&mut draft, "", value, UnitPlacement::Among),
    }
    Some(draft)
}

/// Simple values share a block, each nested object is a separate block, and each list record is a unit.
fn add_members(draft: &mut DocumentDraft, members: &Map<String, Value>) {
    for (name, value) in members {
        match value {
            Value::Object(_) => add(draft, name, value, UnitPlacement::Apart),
            Value::Array(list) => add_records(draft, name, list),
            _ => add(draft, name, value, UnitPlacement::Among),
        }
    }
}

fn add_records(draft: &mut DocumentDraft, path: &str, list: &[Value]) {
    for (number, value) in list.iter().enumerate() {
        add(draft, &record_path(path, number, value), value, UnitPlacement::Among);
    }
}

fn add(draft: &mut DocumentDraft, path: &str, value: &Value, place: UnitPlacement) {
    let mut texts = Vec::new();
    if !draft.is_full() {
        collect(path, value, &mut texts);
    }
    draft.is_cut |= draft.is_full() || texts.len() >= MAX_ELEMENTS;
    draft.add(DocumentUnit { texts, key: path.to_owned(), place, ..DocumentUnit::default() });
}

/// Collects the texts of all nested values. The parser limits the nesting.
fn collect(path: &str, value: &Value, texts: &mut Vec<String>) {
    if texts.len() >= MAX_ELEMENTS {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                collect(&bounded(format!("{path}{dot}{name}")), value, texts);
            }
        }
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                collect(&record_path(path, number, value), value, texts);
            }
        }
        Value::Null => {}
        Value::String(text) if path.is_empty() => texts.push(text.clone()),
        Value::String(text) => texts.push(format!("{path}: {text}")),
        value => texts.push(format!("{path}: {value}").trim_start_matches(": ").to_owned()),
    }
}

/// The path of a record, named by its identifying member or else by its index. Simple values need no name.
fn record_path(path: &str, number: usize, value: &Value) -> String {
    let name = match value {
        Value::Object(members) => NAMES.iter().find_map(|name| match members.get(*name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }),
        Value::Array(_) => None,
        _ => return path.to_owned(),
    };
    bounded(format!("{path}[{}]", name.unwrap_or_else(|| number.to_string())))
}

fn bounded(mut path: String) -> String {
    path.truncate(path.floor_char_boundary(MAX_PATH_BYTES));
    path
}
