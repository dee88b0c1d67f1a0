//! When a clicked block got its words, and when it lost them.

use std::collections::HashSet;

use perennial_core::time::Timestamp;
use serde::Serialize;

use perennial_archive::store::{ChangeFilter, ChangeRow, Store};
use perennial_engine::analyse::{AdFilters, ChangeReader, OperationReport};

/// Words of a block that are compared.
const MAX_WORDS: usize = 100;

/// Two blocks are the same if they share at least this part of the words of the shorter one.
const SAME_SHARE: f64 = 0.6;

/// A change of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockChange {
    /// The observation that showed it, as 14 digits.
    pub time: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The changes of a block before and after an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockChanges {
    /// The last change at or before the instant, which made the block what it is.
    pub previous: Option<BlockChange>,
    pub next: Option<BlockChange>,
}

/// Finds the changes of a block among those of its page.
pub fn changes(store: &Store, url: &str, at: Timestamp, text: &str) -> anyhow::Result<BlockChanges> {
    let words = distinct_words(text);
    let mut found = BlockChanges::default();
    if words.is_empty() {
        return Ok(found);
    }
    let filter = ChangeFilter { url: Some(url), ..ChangeFilter::default() };
    // Captures have milliseconds, URLs have seconds.
    let until = Timestamp::from_secs(at.as_secs() + 1);
    // The built-in list suffices, because nothing is weighed here.
    let filters = AdFilters::built_in();
    let mut reader = ChangeReader::new(store, &filters);
    store.each_change(&filter, |row| {
        let is_before = row.time < until;
        if !is_before && found.next.is_some() {
            return Ok(());
        }
        let entries = reader.read(&row)?.map(|changed| changed.entries()).unwrap_or_default();
        let side =
            |entry: &OperationReport| if is_before { entry.after.clone() } else { entry.before.clone() };
        let matching = entries.iter().find(|entry| {
            side(entry).is_some_and(|content| is_same_block(&words, &distinct_words(&content.text)))
        });
        if let Some(entry) = matching {
            let change = new_change(&row, entry, &entries);
            *(if is_before { &mut found.previous } else { &mut found.next }) = Some(change);
        }
        Ok(())
    })?;
    Ok(found)
}

/// To a reader, words deleted and inserted in the same block are one change.
fn new_change(row: &ChangeRow, entry: &OperationReport, all: &[OperationReport]) -> BlockChange {
    let is_partner = |other: &&OperationReport| {
        let block =
            |entry: &OperationReport| entry.block_after.clone().or_else(|| entry.block_before.clone());
        other.element == entry.element && block(other) == block(entry)
    };
    let text = |content: &Option<_>| {
        content.as_ref().map(|content: &perennial_engine::analyse::ElementContent| content.text.clone())
    };
    let came = || {
        all.iter()
            .filter(is_partner)
            .filter(|other| other.before.is_none())
            .find_map(|other| text(&other.after))
    };
    let went = || {
        all.iter()
            .filter(is_partner)
            .filter(|other| other.after.is_none())
            .find_map(|other| text(&other.before))
    };
    BlockChange {
        time: row.time.to_digits14(),
        before: text(&entry.before).or_else(went),
        after: text(&entry.after).or_else(came),
    }
}

fn distinct_words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(MAX_WORDS).map(str::to_lowercase).collect()
}

fn is_same_block(a: &HashSet<String>, b: &HashSet<String>) -> bool {
    let n_shorter = a.len().min(b.len());
    n_shorter > 0 && a.intersection(b).count() as f64 >= SAME_SHARE * n_shorter as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_by_their_words() {
        let is_same = |a: &str, b: &str| is_same_block(&distinct_words(a), &distinct_words(b));
        assert!(is_same("The pool is open until May", "the pool is closed until May"));
        assert!(!is_same("The pool is open", "Trains run late again"));
        assert!(!is_same("", "a"));
    }
}
