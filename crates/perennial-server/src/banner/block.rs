//! The words of a block that was clicked -> when it got them, and when it lost them ("when did this paragraph change?").

use std::collections::HashSet;

use perennial_core::time::Timestamp;
use serde::Serialize;

use perennial_archive::store::{ChangeFilter, ChangeRow, Store};
use perennial_engine::analyse::{AdFilters, ChangeReader, OperationReport};

/// Words of a block that are compared.
const MAX_WORDS: usize = 100;

/// Share of the words of the shorter text that the other has too, from which both are the same block.
const SAME_SHARE: f64 = 0.6;

/// One change of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockChange {
    /// When the look was that showed it, 14 digits.
    pub time: String,
    /// The words before, if there were any.
    pub before: Option<String>,
    /// The words after, if there are any.
    pub after: Option<String>,
}

/// The changes of a block around an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockChanges {
    /// The last at or before it: since then the block is as it was clicked.
    pub previous: Option<BlockChange>,
    /// The first after it.
    pub next: Option<BlockChange>,
}

/// Finds the changes of a block among those of its page.
pub fn changes(store: &Store, url: &str, at: Timestamp, text: &str) -> anyhow::Result<BlockChanges> {
    let words = words_of(text);
    let mut found = BlockChanges::default();
    if words.is_empty() {
        return Ok(found);
    }
    let filter = ChangeFilter { url: Some(url), ..ChangeFilter::default() };
    // A capture has milliseconds, an address has seconds.
    let until = Timestamp::from_secs(at.as_secs() + 1);
    // The short list will do: nothing is weighed here.
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
        let matching = entries
            .iter()
            .find(|entry| side(entry).is_some_and(|content| is_same_block(&words, &words_of(&content.text))));
        if let Some(entry) = matching {
            let change = change_of(&row, entry, &entries);
            *(if is_before { &mut found.previous } else { &mut found.next }) = Some(change);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Words that went and words that came in the same block are one change of it to a reader.
fn change_of(row: &ChangeRow, entry: &OperationReport, all: &[OperationReport]) -> BlockChange {
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

fn words_of(text: &str) -> HashSet<String> {
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
        let is_same = |a: &str, b: &str| is_same_block(&words_of(a), &words_of(b));
        assert!(is_same("The pool is open until May", "the pool is closed until May"));
        assert!(!is_same("The pool is open", "Trains run late again"));
        assert!(!is_same("", "a"));
    }
}
