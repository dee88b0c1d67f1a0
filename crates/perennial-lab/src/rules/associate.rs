//! Finds directories that change together or never do, so that visits to one predict the other (P-NEAR 1.2, used during
//! a crawl).
//!
//! Before a crawl, a rule of the paper adds nothing to the tail's own rate. It helps during a crawl: the head is
//! fetched first, and its change is then known. Here heads need not be ancestors. The activity of an ancestor excludes
//! that of the tail.

use perennial_core::directory::CoOccurrence;

use super::evidence::{PageDirectories, SiteKnowledge};

/// Only the directories with most changes are compared.
const MOST_COMPARED: usize = 64;
/// Fewest changes of a compared directory.
const FEWEST_CHANGES: u32 = 4;
/// The chance level of an association, divided by the number of compared pairs.
const SIGNIFICANCE: f64 = 0.05;

/// How the changes of one directory predict those of a second one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Association {
    /// The directory that is visited first.
    pub head: u32,
    /// The directory to predict.
    pub tail: u32,
    /// Share of transitions in which the head is busy.
    pub head_rate: f64,
    /// Changes of the head in busy and in other transitions.
    pub head_changes: [f64; 2],
    /// How much likelier than usual the tail is to change if the head is busy, and if it is not.
    pub factors: [f64; 2],
    /// Whether they exclude each other.
    pub is_negative: bool,
}

impl Association {
    /// The factor for the tail after visits to a share of the head that found `n_seen` changes.
    pub fn factor(&self, share_fetched: f64, n_seen: f64) -> f64 {
        // Unusual numbers of changes keep both alternatives possible.
        let [busy, calm] = self.head_changes.map(|changes| changes * share_fetched + 0.05);
        let log_odds = n_seen * (busy / calm).ln() - (busy - calm)
            + (self.head_rate / (1.0 - self.head_rate).max(1e-9)).max(1e-9).ln();
        let is_busy = 1.0 / (1.0 + (-log_odds).exp());
        is_busy * self.factors[0] + (1.0 - is_busy) * self.factors[1]
    }
}

/// The most certain association of each directory.
pub fn associations(known: &SiteKnowledge<'_>, directories: &PageDirectories) -> Vec<Option<Association>> {
    let mut found: Vec<Option<Association>> = vec![None; directories.len()];
    let compared = DirectoryChanges::new(known, directories);
    let n_pairs = compared.places.len() * compared.places.len().saturating_sub(1);
    let mut surest = vec![SIGNIFICANCE / n_pairs.max(1) as f64; directories.len()];
    for tail in 0..compared.places.len() {
        let place = compared.places[tail];
        for head in (0..compared.places.len()).filter(|&head| head != tail) {
            let Some((association, p_value)) = compared.associate_pair(directories, head, tail) else {
                continue;
            };
            if p_value < surest[place as usize] {
                surest[place as usize] = p_value;
                found[place as usize] = Some(association);
            }
        }
    }
    found
}

/// Changes by directory and transition.
struct DirectoryChanges {
    places: Vec<u32>,
    counts: Vec<Vec<u32>>,
}

impl DirectoryChanges {
    fn new(known: &SiteKnowledge<'_>, directories: &PageDirectories) -> DirectoryChanges {
        let (tree, nodes) = (&known.history.tree, &known.history.nodes);
        let at = |page: u32| directories.nearest(tree, nodes[page as usize]);
        let mut totals = vec![0u32; directories.len()];
        for change in known.transitions.iter().copied().flatten() {
            totals[at(change.page) as usize] += 1;
        }
        directories.add_to_ancestors(&mut totals);
        let mut places: Vec<u32> =
            (1..directories.len() as u32).filter(|&place| totals[place as usize] >= FEWEST_CHANGES).collect();
        places.sort_by_key(|&place| std::cmp::Reverse(totals[place as usize]));
        places.truncate(MOST_COMPARED);
        let mut number = vec![usize::MAX; directories.len()];
        places.iter().enumerate().for_each(|(n, &place)| number[place as usize] = n);
        let mut counts = vec![vec![0u32; known.transitions.len()]; places.len()];
        for (transition, changes) in known.transitions.iter().enumerate() {
            for change in *changes {
                let mut place = at(change.page);
                while place != 0 {
                    if let Some(counts) = counts.get_mut(number[place as usize]) {
                        counts[transition] += 1;
                    }
                    place = directories.parents[place as usize];
                }
            }
        }
        DirectoryChanges { places, counts }
    }

    /// The association of two directories and its probability by chance; `None` if the head lies within the tail.
    fn associate_pair(
        &self,
        directories: &PageDirectories,
        head: usize,
        tail: usize,
    ) -> Option<(Association, f64)> {
        let (h, t) = (self.places[head], self.places[tail]);
        if is_within(directories, h, t) {
            return None;
        }
        let contains = is_within(directories, t, h);
        let tail_counts = &self.counts[tail];
        let less = |(head, tail): (&u32, &u32)| if contains { head - tail } else { *head };
        let head_counts: Vec<u32> = self.counts[head].iter().zip(tail_counts).map(less).collect();
        let (heads, tails) = (busy_transitions(&head_counts), busy_transitions(tail_counts));
        let count =
            |of: &dyn Fn(bool, bool) -> bool| heads.iter().zip(&tails).filter(|(h, t)| of(**h, **t)).count();
        let (n, n_head, n_tail) = (heads.len(), count(&|h, _| h), count(&|_, t| t));
        let n_both = count(&|h, t| h && t);
        if n_head == 0 || n_head == n || n_tail == 0 || n_tail == n {
            return None;
        }
        let usual = n_tail as f64 / n as f64;
        let smoothed = |both: usize, of: usize| (both as f64 + usual) / (of as f64 + 1.0) / usual;
        let mean = |is_busy: bool| {
            let of: Vec<u32> =
                heads.iter().zip(&head_counts).filter(|(h, _)| **h == is_busy).map(|(_, c)| *c).collect();
            f64::from(of.iter().sum::<u32>()) / of.len().max(1) as f64
        };
        let association = Association {
            head: h,
            tail: t,
            head_rate: n_head as f64 / n as f64,
            head_changes: [mean(true), mean(false)],
            factors: [smoothed(n_both, n_head), smoothed(n_tail - n_both, n - n_head)],
            is_negative: n_both * n < n_head * n_tail,
        };
        let [n, first, second, both] = [n, n_head, n_tail, n_both].map(|n| n as u32);
        Some((association, CoOccurrence { n, first, second, both }.p_value()))
    }
}

fn is_within(directories: &PageDirectories, mut place: u32, above: u32) -> bool {
    while place > above {
        place = directories.parents[place as usize];
    }
    place == above
}

/// The transitions with at least half as many changes as a mean one with any change.
fn busy_transitions(counts: &[u32]) -> Vec<bool> {
    let n_any = counts.iter().filter(|count| **count > 0).count();
    let least = f64::from(counts.iter().sum::<u32>()) / (2 * n_any.max(1)) as f64;
    counts.iter().map(|&count| count > 0 && f64::from(count) >= least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_transitions_have_half_of_a_mean_one() {
        assert_eq!(busy_transitions(&[0, 10, 12, 1, 0]), [false, true, true, false, false]);
        assert_eq!(busy_transitions(&[0, 0]), [false, false]);
    }
}
