//! The worked examples of the papers. Their numbers are calculations, so they have no interval.

use perennial_core::directory::{DeltaTree, DirectoryNode, PageTransition, Significance};
use perennial_core::page::diff::diff;
use perennial_core::page::importance::{Importance, ImportanceConfig, ImportanceForm, importance};
use perennial_core::page::segment::{Block, BlockTree, Image, Link, Text};
use perennial_core::pattern::series::ObservedChange;
use perennial_core::pattern::{Cycle, page_patterns};
use perennial_core::quality::{ValidVersion, coherence};
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::url::SiteId;

use super::{Finding, Paper, Reproduction, Verdict};
use crate::quality::{PageRecord, Window, completeness, page_completeness};
use crate::world::Change;

/// The papers print two digits, and cut the rest off.
const TOLERANCE: f64 = 0.01;

/// Adds the examples of a paper.
pub(super) fn check(paper: Paper, all: &mut Reproduction) {
    let mut add = |item, claim, published: &'static str, printed: f64, ours: f64| {
        let is_equal = (ours - printed).abs() < TOLERANCE;
        let verdict = if is_equal { Verdict::Repeated } else { Verdict::NotRepeated };
        let (in_condition, as_shipped) = (format!("{ours:.4}"), format!("{ours:.4}"));
        let reason = "a calculation, not a measurement";
        let finding = Finding::untestable((paper, item), (claim, published), reason);
        all.findings.push(Finding { verdict, in_condition, as_shipped, ..finding });
    };
    match paper {
        Paper::Pattern => {
            add(
                "Ex. 3.2.1",
                "the pattern of six periods is the mean of its series",
                "0.83 at 20h",
                0.83,
                last_omega(),
            );
        }
        Paper::Quality => {
            add("Ex. 5.11", "completeness of a site of two pages", "0.49", 0.49, site_completeness());
            add("Ex. 5.21", "coherence of five versions", "0.56", 0.56, snapshot_coherence());
        }
        Paper::Visual => {
            add(
                "Example 1",
                "importance of a delta with three kinds of changes",
                "0.44",
                0.44,
                delta_importance(),
            );
        }
        Paper::Near => {
            let [degree, frequency] = directory_example();
            add("Ex. 1 and 2", "degree of change of directory g", "3/4", 0.75, degree);
            add("Ex. 3", "b and g change together", "2/3", 2.0 / 3.0, frequency);
        }
        Paper::Feed => {}
    }
}

fn monday() -> Timestamp {
    Timestamp::from_secs(1_772_409_600)
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn last_omega() -> f64 {
    let omega = [0.1, 0.3, 0.6, 0.42, 0.37, 0.83];
    let observed = |k: i64| ObservedChange {
        from: monday() + Span::from_hours(4 * k),
        to: monday() + Span::from_hours(4 * k + 4),
        importance: Importance::new(omega[k as usize % 6]),
    };
    let observations: Vec<ObservedChange> = (0..5 * 6).map(observed).collect();
    let found = page_patterns(&observations, &LocalClock::utc(), Some(Cycle::Day(6)), 6);
    found.patterns.first().and_then(|pattern| pattern.omega.last()).map_or(f64::NAN, |omega| *omega)
}

fn site_completeness() -> f64 {
    let page = |changes: &[f64], captures: &[i64]| {
        let change = |(n, importance): (i64, &f64)| Change {
            at: at(10 * n),
            importance: Importance::new(*importance),
        };
        let changes: Vec<Change> = (1..).zip(changes).map(change).collect();
        let captures: Vec<Timestamp> = captures.iter().map(|secs| at(*secs)).collect();
        let page = PageRecord { site: SiteId(0), weight: 1.0, changes: &changes, captures: &captures };
        page_completeness(&page, Window { from: at(0), until: at(100) })
    };
    let pages = [page(&[0.1, 0.6, 0.5, 0.2], &[25, 35]), page(&[0.12, 0.45], &[15])];
    completeness(pages.map(|page| (SiteId(0), 1.0, page))).weighted
}

fn snapshot_coherence() -> f64 {
    let version = |weight, since, until| ValidVersion { weight, since: at(since), until: at(until) };
    let versions = [
        version(0.2, 0, 10),
        version(0.54, 5, 12),
        version(0.34, 8, 20),
        version(0.22, 15, 25),
        version(0.6, 22, 30),
    ];
    coherence(&versions).weighted
}

/// Figure 7: an updated text, four inserted links, two deleted images.
fn delta_importance() -> f64 {
    let weighed = |importance, block| Block { importance, ..block };
    let page = |text: &str, n_links: usize, n_images: usize| {
        let link = |n: usize| Link::new(format!("link{n}"), format!("/link{n}"));
        let image = |n: usize| Image::new(format!("image{n}"), format!("/image{n}"));
        let blocks = vec![
            weighed(0.1, Block::leaf(vec![], vec![], vec![Text::new(text)])),
            Block::inner(vec![
                weighed(0.3, Block::leaf(vec![], vec![], vec![Text::new("untouched words")])),
                weighed(0.4, Block::leaf((0..n_links).map(link).collect(), vec![], vec![])),
            ]),
            weighed(0.2, Block::leaf(vec![], (0..n_images).map(image).collect(), vec![])),
        ];
        let mut tree = BlockTree { blocks, ..BlockTree::default() };
        tree.seal();
        tree
    };
    let (before, after) = (page("a text of five words", 2, 4), page("a text of five changes", 6, 2));
    importance(&diff(&before, &after), &ImportanceConfig::new(ImportanceForm::Visual2009)).get()
}

/// Figure 2: DoC of g at the first transition, and FoC of b and g at an alpha of one half.
fn directory_example() -> [f64; 2] {
    use PageTransition::{Deleted, Inserted, Updated};
    let mut delta = DeltaTree::new("a", 3, Significance::Later);
    let first: Vec<DirectoryNode> =
        ["c", "m", "b/f/h", "b/g/j", "b/g/k"].iter().map(|path| delta.page(path)).collect();
    delta.begin(first);
    let versions: [&[(&str, PageTransition)]; 3] = [
        &[
            ("m", Deleted),
            ("n", Inserted),
            ("b/d", Inserted),
            ("b/g/j", Deleted),
            ("b/g/k", Updated(1.0)),
            ("b/g/l", Inserted),
        ],
        &[
            ("n", Deleted),
            ("b/d", Deleted),
            ("b/x", Inserted),
            ("b/y", Inserted),
            ("b/g/k", Updated(1.0)),
            ("b/g/l", Updated(1.0)),
        ],
        &[("b/f/h", Updated(1.0)), ("b/g/k", Updated(1.0)), ("b/g/l", Deleted), ("b/g/z", Inserted)],
    ];
    for changes in versions {
        let changes: Vec<(DirectoryNode, PageTransition)> =
            changes.iter().map(|(path, change)| (delta.page(path), *change)).collect();
        delta.add(changes);
    }
    let (Some(b), Some(g)) = (delta.tree().directory("b"), delta.tree().directory("b/g")) else {
        return [f64::NAN; 2];
    };
    let degree = delta.degrees(g).next().map_or(f64::NAN, |first| f64::from(first.degree));
    let together = delta.bits_from(b, 0.5).count_with(&delta.bits_from(g, 0.5));
    [degree, f64::from(together) / delta.n_transitions() as f64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_comes_out_as_printed() {
        let mut all = Reproduction::default();
        Paper::ALL.iter().for_each(|paper| check(*paper, &mut all));
        assert_eq!(all.findings.len(), 6);
        for finding in &all.findings {
            assert_eq!(finding.verdict, Verdict::Repeated, "{finding:?}");
        }
    }
}
