//! Two texts -> an alignment of their common words, or of their common lines.
//!
//! Words that are unique in both texts and in the same order are the anchors. A bounded search finds the fewest edits
//! between anchors, so the work grows like that of sorting.

use std::collections::HashMap;
use std::ops::Range;

use super::words::word_hashes;

/// A word, or one character of a script without spaces, with its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    pub range: Range<usize>,
    pub key: u32,
}

/// The words of a text.
pub fn split_words(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    for word in text.split(char::is_whitespace).filter(|word| !word.is_empty()) {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        push_words(word, start, &mut found);
    }
    found
}

/// In scripts without spaces each counted character is a word.
fn push_words(word: &str, start: usize, found: &mut Vec<Word>) {
    let keys = word_hashes(word);
    if let [key] = keys[..] {
        found.push(Word { range: start..start + word.len(), key });
        return;
    }
    for (at, character) in word.char_indices() {
        let piece = &word[at..at + character.len_utf8()];
        if let [key] = word_hashes(piece)[..] {
            found.push(Word { range: start + at..start + at + piece.len(), key });
        }
    }
}

/// A run of indices: common to both sides, or on one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WordRun {
    Same(Range<usize>, Range<usize>),
    Other(Range<usize>, Range<usize>),
}

/// Maximum steps of the search between two anchors. Its cost grows with their square, and a reader sees a stretch with
/// more differences as rewritten.
const MAX_EDITS: usize = 400;

/// The runs of two sequences in order.
pub fn align(before: &[u32], after: &[u32]) -> Vec<WordRun> {
    let mut pairs = Vec::new();
    let (mut a, mut b) = (0, 0);
    for (i, j) in anchors(before, after).into_iter().chain([(before.len(), after.len())]) {
        between(before, after, a..i, b..j, &mut pairs);
        if i < before.len() {
            pairs.push((i, j));
        }
        (a, b) = (i + 1, j + 1);
    }
    runs(&pairs, before.len(), after.len())
}

/// Ascending pairs of indices -> runs.
fn runs(pairs: &[(usize, usize)], n_before: usize, n_after: usize) -> Vec<WordRun> {
    let mut runs: Vec<WordRun> = Vec::new();
    let (mut a, mut b) = (0, 0);
    for &(i, j) in pairs.iter().chain([&(n_before, n_after)]) {
        if a < i || b < j {
            runs.push(WordRun::Other(a..i, b..j));
        }
        if i < n_before {
            match runs.last_mut() {
                Some(WordRun::Same(x, y)) => (x.end, y.end) = (i + 1, j + 1),
                _ => runs.push(WordRun::Same(i..i + 1, j..j + 1)),
            }
        }
        (a, b) = (i + 1, j + 1);
    }
    runs
}

/// Pairs of indices of words that are unique in both texts: the most that are in the same order.
fn anchors(before: &[u32], after: &[u32]) -> Vec<(usize, usize)> {
    let once = |keys: &[u32]| {
        let mut places: HashMap<u32, Option<usize>> = HashMap::new();
        for (place, key) in keys.iter().enumerate() {
            places.entry(*key).and_modify(|place| *place = None).or_insert(Some(place));
        }
        places
    };
    let (mine, theirs) = (once(before), once(after));
    let pairs = before.iter().enumerate().filter(|(place, key)| mine[*key] == Some(*place));
    let pairs: Vec<(usize, usize)> =
        pairs.filter_map(|(place, key)| Some((place, theirs.get(key).copied().flatten()?))).collect();
    longest_ascending(&pairs)
}

/// The longest subsequence of pairs, ascending on the left, that also ascends on the right.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![usize::MAX; pairs.len()];
    for (index, (_, right)) in pairs.iter().enumerate() {
        let at = ends.partition_point(|end| pairs[*end].1 < *right);
        if at > 0 {
            previous[index] = ends[at - 1];
        }
        match ends.get_mut(at) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut chosen = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied().unwrap_or(usize::MAX);
    while let Some(pair) = pairs.get(next) {
        chosen.push(*pair);
        next = previous[next];
    }
    chosen.reverse();
    chosen
}

/// Adds the pairs between two anchors: common prefix and suffix, and between them those of the fewest edits.
fn between(
    before: &[u32],
    after: &[u32],
    mut a: Range<usize>,
    mut b: Range<usize>,
    pairs: &mut Vec<(usize, usize)>,
) {
    while !a.is_empty() && !b.is_empty() && before[a.start] == after[b.start] {
        pairs.push((a.start, b.start));
        (a.start, b.start) = (a.start + 1, b.start + 1);
    }
    let mut tail = Vec::new();
    while !a.is_empty() && !b.is_empty() && before[a.end - 1] == after[b.end - 1] {
        (a.end, b.end) = (a.end - 1, b.end - 1);
        tail.push((a.end, b.end));
    }
    fewest_edits(&before[a.clone()], &after[b.clone()], (a.start, b.start), pairs);
    pairs.extend(tail.into_iter().rev());
}

/// Myers, "An O(ND) Difference Algorithm and Its Variations", greedy and bounded.
fn fewest_edits(before: &[u32], after: &[u32], offset: (usize, usize), pairs: &mut Vec<(usize, usize)>) {
    let (n, m) = (before.len() as isize, after.len() as isize);
    if n == 0 || m == 0 {
        return;
    }
    let most = MAX_EDITS.min((n + m) as usize) as isize;
    let place = |k: isize| (k + most + 1) as usize;
    let mut reached = vec![0isize; 2 * most as usize + 3];
    let mut trace: Vec<Vec<isize>> = Vec::new();
    for d in 0..=most {
        trace.push(reached[place(-d)..=place(d)].to_vec());
        for k in (-d..=d).step_by(2) {
            let goes_down = k == -d || k != d && reached[place(k - 1)] < reached[place(k + 1)];
            let mut x = if goes_down { reached[place(k + 1)] } else { reached[place(k - 1)] + 1 };
            while x < n && x - k < m && before[x as usize] == after[(x - k) as usize] {
                x += 1;
            }
            reached[place(k)] = x;
            if x >= n && x - k >= m {
                return walk_back(&trace, d, (n, m), offset, pairs);
            }
        }
    }
}

fn walk_back(
    trace: &[Vec<isize>],
    d: isize,
    end: (isize, isize),
    offset: (usize, usize),
    pairs: &mut Vec<(usize, usize)>,
) {
    let first = pairs.len();
    let (mut x, mut y) = end;
    for d in (1..=d).rev() {
        // The state before step d has diagonals -d to d. Step d - 1 reached those within.
        let reached = |k: isize| trace[d as usize].get((k + d) as usize).copied().unwrap_or(0);
        let k = x - y;
        let goes_down = k == -d || k != d && reached(k - 1) < reached(k + 1);
        let from = if goes_down { k + 1 } else { k - 1 };
        let (start_x, start_y) = (reached(from), reached(from) - from);
        while x > start_x && y > start_y {
            (x, y) = (x - 1, y - 1);
            pairs.push((offset.0 + x as usize, offset.1 + y as usize));
        }
        (x, y) = (start_x, start_y);
    }
    while x > 0 && y > 0 {
        (x, y) = (x - 1, y - 1);
        pairs.push((offset.0 + x as usize, offset.1 + y as usize));
    }
    pairs[first..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Length of the longest common subsequence, by the table.
    fn n_common(before: &[u32], after: &[u32]) -> usize {
        let mut row = vec![0; after.len() + 1];
        for x in before {
            let mut corner = 0;
            for (j, y) in after.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { corner + 1 } else { above.max(row[j]) };
                corner = above;
            }
        }
        row[after.len()]
    }

    fn n_same(runs: &[WordRun]) -> usize {
        runs.iter().map(|run| if let WordRun::Same(same, _) = run { same.len() } else { 0 }).sum()
    }

    proptest! {
        #[test]
        fn runs_cover_both_sides_and_pair_what_is_equal(before in vec(0u32..9, 0..40), after in vec(0u32..9, 0..40)) {
            let runs = align(&before, &after);
            let (mut a, mut b) = (0, 0);
            for run in &runs {
                let (WordRun::Same(x, y) | WordRun::Other(x, y)) = run;
                prop_assert_eq!((x.start, y.start), (a, b));
                (a, b) = (x.end, y.end);
                if let WordRun::Same(..) = run {
                    prop_assert_eq!(&before[x.clone()], &after[y.clone()]);
                }
            }
            prop_assert_eq!((a, b), (before.len(), after.len()));
        }

        /// Without unique words there are no anchors, and the search finds the fewest edits.
        #[test]
        fn without_anchors_as_many_are_paired_as_can_be(before in vec(0u32..4, 0..30), after in vec(0u32..4, 0..30)) {
            let twice = |keys: &[u32]| keys.iter().chain(&[0, 1, 2, 3, 0, 1, 2, 3]).copied().collect::<Vec<_>>();
            let (before, after) = (twice(&before), twice(&after));
            prop_assert_eq!(n_same(&align(&before, &after)), n_common(&before, &after));
        }
    }

    #[test]
    fn long_texts_that_share_nothing_end_soon() {
        let (before, after): (Vec<u32>, Vec<u32>) =
            ((0..200_000).map(|n| n % 7).collect(), (0..200_000).map(|n| 10 + n % 7).collect());
        assert_eq!(align(&before, &after).len(), 1);
    }
}
