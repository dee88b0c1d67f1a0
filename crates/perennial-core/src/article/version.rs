//! Two objects -> whether they are one version, and what was edited between them.
//!
//! A new version is one whose own words or references changed (P-FEED 6). Its surroundings, its comments, its time of update and the
//! element that wraps it do not count.

use std::collections::BTreeSet;

use super::Object;
use crate::page::diff::n_words;

/// Steps of a comparison of words; where two texts differ in more, they are shown whole.
const MAX_WORK: usize = 40_000_000;
/// Words that may differ at most.
const MAX_DIFFERENT: usize = 1_500;

/// Whether nothing of an object's own changed: headline, lead, text, links, images.
pub fn same_version(before: &Object, after: &Object) -> bool {
    same_words(&before.title, &after.title)
        && same_words(&body(before), &body(after))
        && references(before) == references(after)
}

/// Lead and text together: a page that puts the first paragraph elsewhere has edited nothing.
fn body(object: &Object) -> String {
    format!("{}\n{}", object.lead, object.text)
}

fn same_words(before: &str, after: &str) -> bool {
    before.split_whitespace().eq(after.split_whitespace())
}

/// Where an object leads and what it shows. The query of an image's address says how it is scaled or cached.
fn references(object: &Object) -> BTreeSet<&str> {
    let links = object.links.iter().map(|link| link.address.as_str());
    let images = object.images.iter().map(|image| image.address.split(['?', '#']).next().unwrap_or_default());
    links.chain(images).collect()
}

/// Which part of an object was edited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The headline.
    Title,
    /// Lead and text.
    Text,
}

/// A run of words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run {
    /// Words that both have.
    Kept(String),
    /// Words that only the older one has.
    TakenOut(String),
    /// Words that only the newer one has.
    Added(String),
}

/// What was edited in one part: all its words in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// Where.
    pub field: Field,
    /// The words.
    pub runs: Vec<Run>,
}

/// What was edited, the headline first: a silently changed headline is what readers look for.
pub fn edits(before: &Object, after: &Object) -> Vec<Edit> {
    let fields =
        [(Field::Title, before.title.clone(), after.title.clone()), (Field::Text, body(before), body(after))];
    let changed = fields.into_iter().filter(|(_, before, after)| !same_words(before, after));
    changed.map(|(field, before, after)| Edit { field, runs: compare_words(&before, &after) }).collect()
}

/// The words of two texts, those of both and those of one. As few words as possible are taken out and added, as long as these are
/// not very many.
pub fn compare_words(before: &str, after: &str) -> Vec<Run> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.split_whitespace().collect(), after.split_whitespace().collect());
    let n_first = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - n_first;
    let n_last = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[n_first..before.len() - n_last], &after[n_first..after.len() - n_last]);
    let mut steps = vec![Step::Keep; n_first];
    steps.extend(shortest(old, new));
    steps.extend(std::iter::repeat_n(Step::Keep, n_last));
    runs(&before, &after, &steps)
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    Keep,
    TakeOut,
    Add,
}

/// The shortest way from one list of words to another (Myers, "An O(ND) difference algorithm", 1986); all out and all in where it is
/// too long to look for.
fn shortest(old: &[&str], new: &[&str]) -> Vec<Step> {
    let all = || {
        let out = std::iter::repeat_n(Step::TakeOut, old.len());
        out.chain(std::iter::repeat_n(Step::Add, new.len())).collect()
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
                return way_back(&trace, old.len(), new.len());
            }
        }
    }
    all()
}

/// The steps of the way that was found, from its end.
fn way_back(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Step> {
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
            steps.push(Step::Keep);
            (x, y) = (x - 1, y - 1);
        }
        steps.push(if goes_down { Step::Add } else { Step::TakeOut });
        (x, y) = (before_x, before_y);
    }
    steps.extend(std::iter::repeat_n(Step::Keep, x));
    steps.reverse();
    steps
}

/// Joins steps of a kind; between two runs of kept words what is taken out comes before what is added.
fn runs(before: &[&str], after: &[&str], steps: &[Step]) -> Vec<Run> {
    let (mut x, mut y) = (0, 0);
    let mut runs = Vec::new();
    for part in steps.chunk_by(|a, b| (*a == Step::Keep) == (*b == Step::Keep)) {
        let n_out = part.iter().filter(|step| **step == Step::TakeOut).count();
        let n_added = part.iter().filter(|step| **step == Step::Add).count();
        if n_out == 0 && n_added == 0 {
            runs.push(Run::Kept(before[x..x + part.len()].join(" ")));
            (x, y) = (x + part.len(), y + part.len());
            continue;
        }
        if n_out > 0 {
            runs.push(Run::TakenOut(before[x..x + n_out].join(" ")));
        }
        if n_added > 0 {
            runs.push(Run::Added(after[y..y + n_added].join(" ")));
        }
        (x, y) = (x + n_out, y + n_added);
    }
    runs
}

/// How many words were taken out, and how many added.
pub fn n_edited(edits: &[Edit]) -> (usize, usize) {
    let (mut n_taken_out, mut n_added) = (0, 0);
    for run in edits.iter().flat_map(|edit| &edit.runs) {
        match run {
            Run::Kept(_) => {}
            Run::TakenOut(words) => n_taken_out += n_words(words),
            Run::Added(words) => n_added += n_words(words),
        }
    }
    (n_taken_out, n_added)
}
