//! Two articles -> whether they are one version, and the edits between them.
//!
//! Changed words or references make a new version (P-FEED 6). Surroundings, comments, the time of the update and the
//! wrapping element do not count.

use std::collections::BTreeSet;

use super::Article;
use crate::page::diff::n_words;

/// The maximum work of a comparison of words. Texts with more differences are shown whole.
const MAX_WORK: usize = 40_000_000;
/// The maximum number of different words.
const MAX_DIFFERENT: usize = 1_500;

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
    TakenOut(String),
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

/// The common and the different words of two texts. The number of different words is minimal unless it is very large.
pub fn compare_words(before: &str, after: &str) -> Vec<EditRun> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.split_whitespace().collect(), after.split_whitespace().collect());
    let n_first = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - n_first;
    let n_last = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[n_first..before.len() - n_last], &after[n_first..after.len() - n_last]);
    let mut steps = vec![EditStep::Keep; n_first];
    steps.extend(shortest_script(old, new));
    steps.extend(std::iter::repeat_n(EditStep::Keep, n_last));
    runs(&before, &after, &steps)
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum EditStep {
    Keep,
    TakeOut,
    Add,
}

/// The shortest edit script between two lists of words (Myers, "An O(ND) difference algorithm", 1986). If it is too
/// long, all words are replaced.
fn shortest_script(old: &[&str], new: &[&str]) -> Vec<EditStep> {
    let all = || {
        let out = std::iter::repeat_n(EditStep::TakeOut, old.len());
        out.chain(std::iter::repeat_n(EditStep::Add, new.len())).collect()
    };
    let n_words = old.len() + new.len();
    if old.is_empty() || new.is_empty() {
        return all();
    }
    let most = MAX_DIFFERENT.min(MAX_WORK / n_words).min(n_words);
    let offset = most + 1;
    let mut furthest = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for n_different in 0..=most {
        // Only the diagonals reached so far are stored, so the memory is quadratic in the number of differences and
        // not in the texts.
        trace.push(furthest[offset - n_different..=offset + n_different].to_vec());
        for diagonal in (-(n_different as isize)..=n_different as isize).step_by(2) {
            let at = offset.wrapping_add_signed(diagonal);
            let goes_down = diagonal == -(n_different as isize)
                || diagonal != n_different as isize && furthest[at - 1] < furthest[at + 1];
            let mut x = if goes_down { furthest[at + 1] } else { furthest[at - 1] + 1 };
            let mut y = x.wrapping_add_signed(-diagonal);
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at] = x;
            if x >= old.len() && y >= new.len() {
                return backtrack(&trace, old.len(), new.len());
            }
        }
    }
    all()
}

/// The steps of the shortest path, from its end.
fn backtrack(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<EditStep> {
    let mut steps = Vec::with_capacity(x + y);
    for (n_different, furthest) in trace.iter().enumerate().skip(1).rev() {
        let diagonal = x as isize - y as isize;
        let reach = n_different as isize;
        let value = |diagonal: isize| furthest.get((diagonal + reach) as usize).copied().unwrap_or_default();
        let goes_down = diagonal == -reach || diagonal != reach && value(diagonal - 1) < value(diagonal + 1);
        let before = if goes_down { diagonal + 1 } else { diagonal - 1 };
        let before_x = value(before);
        let before_y = before_x.wrapping_add_signed(-before);
        while x > before_x && y > before_y {
            steps.push(EditStep::Keep);
            (x, y) = (x - 1, y - 1);
        }
        steps.push(if goes_down { EditStep::Add } else { EditStep::TakeOut });
        (x, y) = (before_x, before_y);
    }
    steps.extend(std::iter::repeat_n(EditStep::Keep, x));
    steps.reverse();
    steps
}

/// Joins steps of a kind. Between two runs of kept words, removed words come before added ones.
fn runs(before: &[&str], after: &[&str], steps: &[EditStep]) -> Vec<EditRun> {
    let (mut x, mut y) = (0, 0);
    let mut runs = Vec::new();
    for part in steps.chunk_by(|a, b| (*a == EditStep::Keep) == (*b == EditStep::Keep)) {
        let n_out = part.iter().filter(|step| **step == EditStep::TakeOut).count();
        let n_added = part.iter().filter(|step| **step == EditStep::Add).count();
        if n_out == 0 && n_added == 0 {
            runs.push(EditRun::Kept(before[x..x + part.len()].join(" ")));
            (x, y) = (x + part.len(), y + part.len());
            continue;
        }
        if n_out > 0 {
            runs.push(EditRun::TakenOut(before[x..x + n_out].join(" ")));
        }
        if n_added > 0 {
            runs.push(EditRun::Added(after[y..y + n_added].join(" ")));
        }
        (x, y) = (x + n_out, y + n_added);
    }
    runs
}

/// The numbers of removed and added words.
pub fn n_edited(edits: &[Edit]) -> (usize, usize) {
    let (mut n_taken_out, mut n_added) = (0, 0);
    for run in edits.iter().flat_map(|edit| &edit.runs) {
        match run {
            EditRun::Kept(_) => {}
            EditRun::TakenOut(words) => n_taken_out += n_words(words),
            EditRun::Added(words) => n_added += n_words(words),
        }
    }
    (n_taken_out, n_added)
}
