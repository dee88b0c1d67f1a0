//! Two articles -> whether they are one version, and the edits between them.
//!
//! Changed words or references make a new version (P-FEED 6). Surroundings, comments, the time of the update and the
//! wrapping element do not count.

use std::collections::{BTreeSet, HashMap};

use super::Article;
use crate::page::diff::{self, align, n_words};

/// Whether headline, lead, text, links and images are the same.
pub fn same_version(before: &Article, after: &Article) -> bool {
    same_words(&before.title, &after.title)
        && same_words(&body(before), &body(after))
        && references(before) == references(after)
}

/// Lead and text together, because moving the first paragraph is not an edit.
fn body(article: &Article) -> String {
    format!("{}\n{}", article.lead, article.text)
}

fn same_words(before: &str, after: &str) -> bool {
    before.split_whitespace().eq(after.split_whitespace())
}

/// Links and images. The query of an image's URL only describes scaling or caching.
fn references(article: &Article) -> BTreeSet<&str> {
    let links = article.links.iter().map(|link| link.url.as_str());
    let images = article.images.iter().map(|image| image.url.split(['?', '#']).next().unwrap_or_default());
    links.chain(images).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditedField {
    Title,
    Text,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EditRun {
    /// Words in both versions.
    Kept(String),
    /// Words in the old version only.
    Removed(String),
    /// Words in the new version only.
    Added(String),
}

/// The edits of one field: all its words in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    pub field: EditedField,
    pub runs: Vec<EditRun>,
}

/// The edited fields, the headline first, because readers look for silently changed headlines.
pub fn edits(before: &Article, after: &Article) -> Vec<Edit> {
    let fields = [
        (EditedField::Title, before.title.clone(), after.title.clone()),
        (EditedField::Text, body(before), body(after)),
    ];
    let changed = fields.into_iter().filter(|(_, before, after)| !same_words(before, after));
    changed.map(|(field, before, after)| Edit { field, runs: compare_words(&before, &after) }).collect()
}

/// The common and the different words of two texts, in order. Removed words come before added ones.
pub fn compare_words(before: &str, after: &str) -> Vec<EditRun> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.split_whitespace().collect(), after.split_whitespace().collect());
    // Numbers instead of hashes, because here case and punctuation are edits.
    let mut numbers = HashMap::new();
    let mut number = |words: &[&str]| -> Vec<u32> {
        let one = |word: &&str| {
            let next = numbers.len() as u32;
            *numbers.entry((*word).to_owned()).or_insert(next)
        };
        words.iter().map(one).collect()
    };
    let (old, new) = (number(&before), number(&after));
    let mut runs = Vec::new();
    for run in align(&old, &new) {
        match run {
            diff::WordRun::Same(words, _) => runs.push(EditRun::Kept(before[words].join(" "))),
            diff::WordRun::Other(removed, added) => {
                if !removed.is_empty() {
                    runs.push(EditRun::Removed(before[removed].join(" ")));
                }
                if !added.is_empty() {
                    runs.push(EditRun::Added(after[added].join(" ")));
                }
            }
        }
    }
    runs
}

/// The numbers of removed and added words.
pub fn n_edited(edits: &[Edit]) -> (usize, usize) {
    let (mut n_removed, mut n_added) = (0, 0);
    for run in edits.iter().flat_map(|edit| &edit.runs) {
        match run {
            EditRun::Kept(_) => {}
            EditRun::Removed(words) => n_removed += n_words(words),
            EditRun::Added(words) => n_added += n_words(words),
        }
    }
    (n_removed, n_added)
}
