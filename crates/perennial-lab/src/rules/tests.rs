//! Tests of plans and measures on small synthetic sites.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use perennial_core::directory::{Alpha, PageTransition, Significance, SiteHistory, Thresholds};
use perennial_core::rng::Rng;

/// A site of four directories: two that exclude each other, one that always changes a little, one that never changes.
fn exclusive_site(seed: u64, n_versions: usize) -> SiteHistory {
    let mut history = SiteHistory::new("exclusive");
    let mut rng = Rng::new(seed);
    history.begin_version("0");
    let mut pages = Vec::new();
    for (directory, n) in [("spring", 60), ("autumn", 60), ("news", 20), ("about", 60)] {
        for page in 0..n {
            let page = history.add_page(&format!("{directory}/{page}.html"));
            history.add_change(page, PageTransition::Inserted, 1000);
            pages.push((directory, page));
        }
    }
    let mut is_spring = false;
    for version in 1..n_versions {
        history.begin_version(&version.to_string());
        is_spring ^= rng.unit() < 0.5;
        for &(directory, page) in &pages {
            let rate = match (directory, is_spring) {
                ("spring", true) | ("autumn", false) => 0.3,
                ("news", _) => 0.15,
                _ => 0.0,
            };
            if rng.unit() < rate {
                history.add_change(page, PageTransition::Updated(1.0), 1000);
            }
        }
    }
    history
}

fn recall_at(history: &SiteHistory, ranking: PageRanking, skip: f64) -> f64 {
    let protocol = Protocol { aim: SkipAim::Skip(skip), ..Protocol::default() };
    evaluate_plan(history, &protocol, SkipPlan::Ranked(ranking)).mean.change_recall
}

#[test]
fn the_tail_of_example_5_is_skipped() {
    let versions = "W\t0\t0\nA\tc\nA\tm\nA\tb/f/h\nA\tb/g/j\nA\tb/g/k\n\
                    W\t1\t1\nD\tm\nA\tn\nA\tb/d\nD\tb/g/j\nM\tb/g/k\nA\tb/g/l\n\
                    W\t2\t2\nD\tn\nD\tb/d\nA\tb/x\nA\tb/y\nM\tb/g/k\nM\tb/g/l\n\
                    W\t3\t3\nM\tb/f/h\nM\tb/g/k\nD\tb/g/l\nA\tb/g/z\n";
    let delta =
        parse_history("a", versions.as_bytes()).unwrap().delta_of_last(usize::MAX, Significance::Later);
    let thresholds = Thresholds { alpha: Alpha::Fixed(0.5), beta: 0.6, gamma: Some(0.5), theta: 1.0 };
    let (skipped, mined) = near_skipped_directories(&delta, &thresholds, false);
    assert_eq!(skipped, [delta.tree().directory("b/f").unwrap()]);
    assert_eq!(rule_savings(&delta, &mined.rules[0]), (2, 0), "two fetches of h, which did not change then");
}

#[test]
fn visits_to_the_head_predict_the_tail() {
    let mean = |ranking, skip| {
        (0..8).map(|seed| recall_at(&exclusive_site(seed, 40), ranking, skip)).sum::<f64>() / 8.0
    };
    let (rate, combined) = (mean(PageRanking::Rate, 0.5), mean(PageRanking::Combined, 0.5));
    assert!(combined > rate + 0.05, "{combined} against {rate}");
    let (in_rounds, combined) = (mean(PageRanking::InRounds, 0.8), mean(PageRanking::Combined, 0.8));
    assert!(combined > in_rounds, "associations help: {combined} against {in_rounds}");
}

#[test]
fn only_exclusive_directories_are_associated() {
    let history = exclusive_site(3, 40);
    let mut n_windows = 0;
    each_window(&history, &Protocol::default(), |window| {
        let evidence = SiteEvidence::new(&window.known);
        let names = |association: &Association| {
            let name = |place: u32| history.tree.path(evidence.directories.nodes[place as usize]);
            (name(association.head), name(association.tail), association.is_negative)
        };
        let found: BTreeSet<_> =
            associations(&window.known, &evidence.directories).iter().flatten().map(names).collect();
        let both = [("/spring/", "/autumn/", true), ("/autumn/", "/spring/", true)];
        assert_eq!(found, both.map(|(head, tail, no)| (head.to_owned(), tail.to_owned(), no)).into());
        n_windows += 1;
    });
    assert_eq!(n_windows, 10);
}

#[test]
fn a_busy_head_lowers_the_tail_and_a_calm_one_raises_it() {
    let association = Association {
        head: 1,
        tail: 2,
        head_rate: 0.5,
        head_changes: [20.0, 0.0],
        factors: [0.1, 1.9],
        is_negative: true,
    };
    assert!((association.factor(0.0, 0.0) - 1.0).abs() < 1e-9, "nothing was visited");
    assert!(association.factor(0.5, 8.0) < 0.11);
    assert!(association.factor(0.5, 0.0) > 1.89);
}

#[test]
fn static_directories_are_skipped_and_counted_apart_from_rules() {
    let history = exclusive_site(1, 40);
    let outcome = evaluate_plan(&history, &Protocol::default(), SkipPlan::Static);
    assert_eq!((outcome.n_windows, outcome.n_rules), (10, 0.0));
    assert!((outcome.mean.bypass - 0.3).abs() < 1e-9 && outcome.mean.change_recall == 1.0);
    let nothing = evaluate_plan(&history, &Protocol::default(), SkipPlan::Nothing).mean;
    assert_eq!(
        (nothing.bypass, nothing.precision, nothing.recall, nothing.change_recall),
        (0.0, 1.0, 1.0, 1.0)
    );
}

/// A directory of news changes the site in two weeks of three; `archive` changes in the other weeks only.
fn site_with_a_rule(n_versions: usize) -> SiteHistory {
    let mut history = SiteHistory::new("ruled");
    history.begin_version("0");
    let mut add = |directory: &str, n: usize| {
        (0..n).map(|page| history.add_page(&format!("{directory}/{page}"))).collect::<Vec<u32>>()
    };
    let (news, old) = (add("news", 30), add("archive", 20));
    news.iter().chain(&old).for_each(|&page| history.add_change(page, PageTransition::Inserted, 1));
    for version in 1..n_versions {
        history.begin_version(&version.to_string());
        let changed = if version % 3 == 0 { &old[..15] } else { &news[..] };
        changed.iter().for_each(|&page| history.add_change(page, PageTransition::Updated(1.0), 1));
    }
    history
}

#[test]
fn warm_skips_the_tail_of_a_rule() {
    let history = site_with_a_rule(30);
    let thresholds = Thresholds { alpha: Alpha::Fixed(0.5), beta: 0.4, gamma: Some(0.5), theta: 0.9 };
    let outcome =
        evaluate_plan(&history, &Protocol { windows: 9, ..Protocol::default() }, SkipPlan::Near(thresholds));
    assert_eq!((outcome.n_windows, outcome.n_rules), (9, 1.0));
    assert!((outcome.mean.bypass - 0.4).abs() < 1e-9);
    // The paper assumes that every parent changed. In the third of the weeks without such a change everything is lost.
    assert!((outcome.mean.change_recall - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(outcome.mean.change_recall_9, 1.0, "by eq. 9 a skipped update is not missed");
}

#[test]
fn tuning_finds_no_rule_that_loses_too_much() {
    let history = site_with_a_rule(30);
    each_window(&history, &Protocol { windows: 1, ..Protocol::default() }, |window| {
        assert_eq!(tune_thresholds(&window.known, 0.05), None);
        assert!(tune_thresholds(&window.known, 0.5).is_some());
    });
}

#[test]
fn a_largest_loss_is_kept_in_training() {
    let history = exclusive_site(2, 40);
    let skipped = |loss| {
        let protocol = Protocol { aim: SkipAim::MaxLoss(loss), ..Protocol::default() };
        evaluate_plan(&history, &protocol, SkipPlan::Ranked(PageRanking::Combined)).mean
    };
    let (careful, bold) = (skipped(0.01), skipped(0.3));
    assert!(careful.bypass < bold.bypass && careful.change_recall > bold.change_recall);
    assert!(careful.bypass >= 0.3 && careful.change_recall > 0.95, "{careful:?}");
}

#[test]
fn windows_are_the_last_ones_or_spread() {
    let history = exclusive_site(1, 60);
    let protocol = Protocol { windows: 3, ..Protocol::default() };
    assert_eq!(tested_versions(&history, &protocol), [57, 58, 59]);
    assert_eq!(tested_versions(&history, &Protocol { spread: true, ..protocol }), [20, 39, 59]);
    assert_eq!(tested_versions(&history, &Protocol { distance: 40, ..protocol }), [59]);
    assert!(tested_versions(&history, &Protocol { train: 60, ..protocol }).is_empty());
}

#[test]
fn changes_far_ahead_accumulate_or_not() {
    let history = site_with_a_rule(30);
    let n_changes = |accumulate| {
        let mut n = Vec::new();
        let protocol = Protocol { windows: 1, distance: 3, accumulate, ..Protocol::default() };
        each_window(&history, &protocol, |window| n.push(window.test().changes.len()));
        n
    };
    assert_eq!((n_changes(false), n_changes(true)), (vec![30], vec![45]));
}

#[test]
fn the_curve_falls_as_more_is_skipped() {
    let history = exclusive_site(5, 40);
    let points = recall_curve(&history, &Protocol::default(), SkipPlan::Oracle, &[0.0, 0.5, 0.9]);
    assert_eq!(points.len(), 3);
    assert!(points[0] == (0.0, 1.0) && points[1].1 == 1.0 && points[2].1 < 1.0, "{points:?}");
    assert_eq!(recall_curve(&history, &Protocol::default(), SkipPlan::Static, &[0.0, 0.5]).len(), 1);
}

/// All pages are rebuilt once, in week 30. Otherwise only a few pages change every week.
#[test]
fn after_a_rebuild_unfetched_pages_count_as_stale() {
    let mut history = SiteHistory::new("rebuilt");
    history.begin_version("0");
    let pages: Vec<u32> = (0..200).map(|page| history.add_page(&format!("d{}/{page}", page % 4))).collect();
    pages.iter().for_each(|&page| history.add_change(page, PageTransition::Inserted, 1));
    for version in 1..50 {
        history.begin_version(&version.to_string());
        let n = if version == 30 { 200 } else { 8 };
        pages[..n].iter().for_each(|&page| history.add_change(page, PageTransition::Updated(1.0), 1));
    }
    let run =
        |ranking| closed_loop(&history, &ClosedLoop { train: 20, n_weeks: 30, skip: 0.8, ranking }).unwrap();
    let (known, combined, plain) =
        (run(None), run(Some(PageRanking::Combined)), run(Some(PageRanking::Rate)));
    assert_eq!(known.n_weeks, 30);
    // With 40 pages per week, of which 8 always change, catching up with a rebuild takes six weeks.
    assert!(known.stale < 0.09, "{known:?}");
    assert!(combined.stale < 0.15, "{combined:?} against {known:?}");
    assert!(plain.stale > 2.0 * combined.stale, "{plain:?}");
}

/// The measures, computed with the sets of eqs. 2 to 5.
fn by_sets(history: &SiteHistory, window: &TestWindow<'_>, fetched: &[u32]) -> [f64; 4] {
    let path = |page: u32| history.tree.path(history.nodes[page as usize]);
    let directory = |path: &str| path[..=path.rfind('/').unwrap()].to_owned();
    let before: BTreeSet<String> = window.known.present.iter().map(|&page| path(page)).collect();
    let fetched: BTreeSet<String> = fetched.iter().map(|&page| path(page)).collect();
    let changes = window.test().changes;
    let of = |wanted: fn(&PageTransition) -> bool| -> BTreeSet<String> {
        changes.iter().filter(|change| wanted(&change.change)).map(|change| path(change.page)).collect()
    };
    let (inserted, deleted) = (of(|c| *c == PageTransition::Inserted), of(|c| *c == PageTransition::Deleted));
    let updated = of(|c| matches!(c, PageTransition::Updated(_)));
    let is_seen = |page: &String| {
        let mut nearest = directory(page);
        while nearest != "/" && !before.iter().any(|known| known.starts_with(&nearest)) {
            nearest = directory(nearest.trim_end_matches('/'));
        }
        fetched.iter().any(|fetched| fetched.starts_with(&nearest))
    };
    let seen: BTreeSet<String> = inserted.iter().filter(|page| is_seen(page)).cloned().collect();
    let test: BTreeSet<String> = before.difference(&deleted).chain(&inserted).cloned().collect();
    let carried: BTreeSet<String> = before.difference(&fetched).cloned().collect();
    let archived: BTreeSet<String> =
        fetched.difference(&deleted).chain(&seen).chain(&carried).cloned().collect();
    let skipped = test.iter().filter(|page| !fetched.contains(*page) && !seen.contains(*page)).count() as f64;
    let caught = seen.len() + deleted.iter().chain(&updated).filter(|page| fetched.contains(*page)).count();
    let right = test.intersection(&archived).count() as f64;
    [
        skipped / test.len() as f64,
        right / (archived.len() as f64).max(1.0),
        right / test.len() as f64,
        caught as f64 / changes.len() as f64,
    ]
}

proptest! {
    #[test]
    fn measures_are_those_of_the_sets(
        pages in prop::collection::btree_map("([ab]/){0,3}[xyz]", prop::collection::vec(0u8..4, 4), 2..14),
        choice in prop::collection::vec(any::<bool>(), 14),
    ) {
        let mut history = SiteHistory::new("s");
        let numbers: Vec<u32> = pages.keys().map(|path| history.add_page(path)).collect();
        for version in 0..4 {
            history.begin_version("v");
            for (&page, contents) in numbers.iter().zip(pages.values()) {
                let before = if version == 0 { 0 } else { contents[version - 1] };
                match (before, contents[version]) {
                    (0, 0) => {}
                    (0, _) => history.add_change(page, PageTransition::Inserted, 1),
                    (_, 0) => history.add_change(page, PageTransition::Deleted, 0),
                    (a, b) if a != b => history.add_change(page, PageTransition::Updated(1.0), 1),
                    _ => {}
                }
            }
        }
        prop_assert_eq!(history.n_skipped, 0);
        each_window(&history, &Protocol { train: 3, windows: 1, ..Protocol::default() }, |window| {
            let fetched: Vec<u32> =
                window.known.present.iter().copied().filter(|&page| choice[page as usize]).collect();
            if let Some(m) = window.count(&fetched).measures() {
                let found = [m.bypass, m.precision, m.recall, m.change_recall];
                for (found, expected) in found.iter().zip(by_sets(&history, window, &fetched)) {
                    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
                }
                assert!(m.precision_7 <= m.precision + 1e-9 && m.change_recall <= m.change_recall_9);
            }
        });
    }
}
