//! Pages that change visit by visit.

use proptest::prelude::*;

use super::*;
use crate::page::diff::diff;
use crate::page::importance::Judgement;
use crate::page::noise::reason::MOSTLY_NOISE;
use crate::page::segment::{Block, BlockRole, BlockTree, Link, Text};

#[test]
fn unreadable_documents_that_always_change_become_noise() {
    let mut history = NoiseHistory::default();
    let first: Vec<f64> = (0..9).map(|_| history.record_unreadable(true).share).collect();
    assert!(first[0] == 0.0 && first.is_sorted() && first[3] < 1.0, "{first:?}");
    assert_eq!(first[4..], [1.0; 5]);
    let mut stored = NoiseHistory::from_bytes(&history.to_bytes()).unwrap();
    assert_eq!(stored.record_unreadable(true).share, 1.0, "a restart forgets nothing");
    history.record_unchanged();
    assert_eq!(
        history.record_unreadable(true).share,
        0.0,
        "an observation that finds it the same begins anew"
    );
}

#[test]
fn daily_publications_are_not_noise() {
    let mut history = NoiseHistory::default();
    assert!((0..100).all(|_| history.record_unreadable(false).share == 0.0));
}

fn page(texts: &[String], link: &str) -> BlockTree {
    let mut all = vec![Text::new("an article of some words that stays as it is")];
    all.extend(texts.iter().map(|text| Text::new(text.as_str())));
    let block = Block::leaf(vec![Link::new("next", link)], vec![], all);
    let mut tree = BlockTree { blocks: vec![Block { importance: 1.0, ..block }], ..BlockTree::default() };
    tree.seal();
    tree
}

/// The noise of each operation on each visit.
fn watch(visits: impl Iterator<Item = BlockTree>) -> Vec<Vec<f64>> {
    let mut history = NoiseHistory::default();
    let mut last: Option<BlockTree> = None;
    let mut all = Vec::new();
    for tree in visits {
        if let Some(before) = &last {
            let delta = diff(before, &tree);
            let judge = history.judge(&delta);
            all.push(delta.operations().map(|operation| judge.noise(&operation).share).collect());
            history.record(&delta);
            let stored = history.to_bytes();
            assert_eq!(NoiseHistory::from_bytes(&stored).unwrap(), history);
        }
        last = Some(tree);
    }
    all
}

#[test]
fn a_counter_becomes_noise_visit_by_visit() {
    // The text does not show what is counted, so only the history can decide.
    let seen = watch((0..12).map(|n| page(&[format!("this is number {}", 1000 + n * 37)], "/n")));
    assert_eq!(seen[0], [0.5]);
    assert!(seen.windows(2).all(|pair| pair[0][0] < pair[1][0]), "{seen:?}");
    assert!(seen[10][0] >= MOSTLY_NOISE);
}

/// The status of a change and the report of its operations use the same threshold.
#[test]
fn operations_are_reported_unless_they_are_noise() {
    for noise in [0.0, 0.3, 0.49, 0.5, 0.55, MOSTLY_NOISE, 1.0] {
        let judgement = Judgement { noise, ..Judgement::default() };
        assert_eq!(judgement.is_worth_reporting(0.1), noise < MOSTLY_NOISE, "{noise}");
        assert_eq!(judgement.is_noise(), !judgement.is_worth_reporting(0.1), "{noise}");
        assert!(!judgement.is_worth_reporting(0.0), "{noise}");
    }
    let advertisement = Judgement { is_advertisement: true, ..Judgement::default() };
    assert!(advertisement.is_noise() && !advertisement.is_worth_reporting(1.0));
}

/// The noise of the last operation, after visits with these texts.
fn last_noise(texts: impl IntoIterator<Item = &'static str>) -> Noise {
    let (mut history, mut last, mut noise) = (NoiseHistory::default(), None::<BlockTree>, Noise::NONE);
    for text in texts {
        let tree = page(&[text.to_string()], "/n");
        if let Some(before) = last.replace(tree.clone()) {
            let delta = diff(&before, &tree);
            let judge = history.judge(&delta);
            noise = delta.operations().next().map_or(Noise::NONE, |operation| judge.noise(&operation));
            history.record(&delta);
        }
    }
    noise
}

fn is_folded_for_good(noise: Noise) -> bool {
    noise.is_mostly_noise() && noise.reason.is_some_and(|reason| reason.is_earned())
}

#[test]
fn a_counter_weighs_little_at_first_and_is_noise_once_it_repeats() {
    let texts = ["you are visitor number 1000", "you are visitor number 1037", "you are visitor number 1074"];
    let first = last_noise(texts[..2].iter().copied());
    assert!(first.share > 0.9 && !is_folded_for_good(first), "{first:?}");
    let second = last_noise(texts);
    assert!(is_folded_for_good(second), "{second:?}");
    assert_eq!(second.reason.unwrap().sentence(), "a counter that changed at 1 of 1 visits");
}

#[test]
fn the_history_decides_about_the_date_of_a_document() {
    let dates = ["as of 19 February 2024", "as of 13 March 2024", "as of 2 April 2024", "as of 1 May 2024"];
    assert!(is_folded_for_good(last_noise(dates)), "it changes at every visit");
    let quiet = std::iter::repeat_n(dates[0], 20).chain([dates[1]]);
    let noise = last_noise(quiet);
    assert!(noise.share < 0.1, "{noise:?}");
}

#[test]
fn a_date_that_is_renewed_every_day_is_noise_on_a_page_visited_every_hour() {
    let days = [
        "18 November 2026",
        "19 November 2026",
        "20 November 2026",
        "21 November 2026",
        "22 November 2026",
        "23 November 2026",
        "24 November 2026",
    ];
    let visits = days.iter().flat_map(|day| std::iter::repeat_n(*day, 24)).chain(["25 November 2026"]);
    assert!(is_folded_for_good(last_noise(visits)));
}

#[test]
fn what_returns_once_in_a_while_is_news() {
    let flips = |n_visits: usize| {
        let text = |visit: usize| if (visit / n_visits).is_multiple_of(2) { "sold out" } else { "in stock" };
        let noise = last_noise((0..=n_visits * 6).map(text));
        is_folded_for_good(noise)
    };
    assert!(flips(1) && !flips(40));
    assert!(!is_folded_for_good(last_noise(["sold out", "in stock", "sold out"])), "the first return");
}

#[test]
fn words_that_go_are_news() {
    let noise = last_noise(["you may not smoke in the boat", "you may smoke in the boat"]);
    assert_eq!(noise, Noise::NONE);
}

#[test]
fn a_death_toll_that_rises_hour_by_hour_is_news() {
    let texts = (0..10).map(|n| page(&[format!("at least {} people died in the storm", 12 + n)], "/n"));
    assert!(watch(texts).iter().flatten().all(|noise| *noise == 0.0));
}

#[test]
fn a_changed_price_is_news_on_the_first_visit() {
    let seen = watch((0..2).map(|n| page(&[format!("the price is {} euro", 10 + n)], "/n")));
    assert_eq!(seen, [[0.0]]);
}

#[test]
fn a_price_that_rarely_changes_is_news() {
    let price = |visit: usize| if visit < 20 { "the price is 10 euro" } else { "the price is 12 euro" };
    let seen = watch((0..25).map(|visit| page(&[price(visit).to_string()], "/n")));
    assert!(seen[19][0] < 0.1, "{seen:?}");
}

#[test]
fn a_nonce_in_a_url_becomes_noise() {
    let seen =
        watch((0..12).map(|n: u64| page(&[], &format!("/next?token=q{:x}", n.wrapping_mul(0x9e37_79b9)))));
    assert!(seen[10][0] >= MOSTLY_NOISE, "{seen:?}");
}

#[test]
fn teasers_that_come_back_are_noise_and_new_ones_are_not() {
    let teasers = ["buy green shoes", "visit sunny islands", "learn to dance"];
    let seen = watch((0..9).map(|n| page(&[teasers[n % 3].to_string()], "/n")));
    assert_eq!(seen[0], [0.0, 0.0]);
    assert!(seen[6].iter().all(|noise| *noise >= MOSTLY_NOISE), "{seen:?}");
    let fresh = ["first story", "second tale", "third report", "fourth account", "fifth column"];
    let seen = watch(fresh.iter().map(|text| page(&[text.to_string()], "/n")));
    assert!(seen.iter().flatten().all(|noise| *noise == 0.0), "{seen:?}");
}

#[test]
fn new_words_are_news_however_often_they_come() {
    let words = [
        "alpha bravo charlie",
        "delta echo foxtrot",
        "golf hotel india",
        "juliet kilo lima",
        "mike november oscar",
    ];
    let seen = watch(
        words.iter().map(|words| page(&[format!("the latest of all our many reports says {words}")], "/n")),
    );
    assert!(seen.iter().flatten().all(|noise| *noise == 0.0), "{seen:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_a_history_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(history) = NoiseHistory::from_bytes(&bytes) {
            prop_assert!(bytes.starts_with(&history.to_bytes()));
        }
    }

    #[test]
    fn the_stored_form_stays_small(seed in any::<u64>()) {
        let mut history = NoiseHistory::default();
        let many = |n: u64| page(&(0..200).map(|i| format!("text {} of {}", seed ^ (n * 1000 + i), i)).collect::<Vec<_>>(), "/n");
        for n in 0..4 {
            history.record(&diff(&many(n), &many(n + 1)));
        }
        prop_assert!(history.to_bytes().len() < 6_000);
    }
}

fn box_page(stories: &[&str], role: BlockRole, host: &str) -> BlockTree {
    let links = stories.iter().map(|story| Link::new(*story, format!("http://{host}/news/2026/11/{story}")));
    let content = Block {
        role: BlockRole::Main,
        importance: 0.7,
        ..Block::leaf(vec![], vec![], vec![Text::new("words of the page itself")])
    };
    let sidebar = Block { role, importance: 0.3, ..Block::leaf(links.collect(), vec![], vec![]) };
    let mut tree =
        BlockTree { url: "http://a.org/".into(), blocks: vec![content, sidebar], ..BlockTree::default() };
    tree.seal();
    tree
}

#[test]
fn a_box_of_stories_that_were_all_replaced_is_not_news_of_its_page() {
    let stories = ["harbour", "quay", "pier", "lighthouse", "ferry", "anchor", "sail", "mast"];
    let page = |n: usize, role| box_page(&stories[2 * n..2 * n + 2], role, "a.org");
    let seen = watch((0..3).map(|n| page(n, BlockRole::Related)));
    assert!(seen.iter().flatten().all(|noise| *noise > 0.99), "{seen:?}");
    for role in [BlockRole::Main, BlockRole::Other] {
        let seen = watch((0..2).map(|n| page(n, role)));
        assert!(seen.iter().flatten().all(|noise| *noise == 0.0), "{role:?}: {seen:?}");
    }
    let one_more = watch(
        [&stories[..2], &stories[..3]]
            .map(|stories| box_page(stories, BlockRole::Related, "a.org"))
            .into_iter(),
    );
    assert_eq!(one_more, [[0.0]], "one more story is not another box");
    let mut history = NoiseHistory::default();
    let deltas: Vec<_> =
        (0..3).map(|n| diff(&page(n, BlockRole::Related), &page(n + 1, BlockRole::Related))).collect();
    let reasons: Vec<_> = deltas
        .iter()
        .map(|delta| {
            let reason = history.judge(delta).noise(&delta.operations().next().unwrap()).reason.unwrap();
            history.record(delta);
            reason.sentence()
        })
        .collect();
    assert_eq!(reasons[0], "a box of other stories, by its form");
    assert_eq!(reasons[2], "a box of other stories that changed at 2 of 2 visits");
}

/// The noise of the operations between two pages with these texts.
fn first_noise(before: &[&str], after: &[&str]) -> Vec<f64> {
    let page = |texts: &[&str]| page(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), "/n");
    watch([page(before), page(after)].into_iter()).remove(0)
}

#[test]
fn dates_in_another_time_zone_are_noise_and_one_moved_deadline_is_not() {
    let dates = ["29 April 2022", "24 December 2021", "1 December 2019"];
    let shifted = first_noise(&dates, &["28 April 2022", "23 December 2021", "30 November 2019"]);
    assert!(shifted.iter().all(|noise| *noise > 0.9), "{shifted:?}");
    let moved = first_noise(&dates, &["28 April 2022", "24 December 2021", "1 December 2019"]);
    assert_eq!(moved, [0.0]);
    let different = first_noise(&dates, &["28 April 2022", "20 December 2021", "15 November 2019"]);
    assert!(different.contains(&0.0), "{different:?}");
}

#[test]
fn entries_that_are_renumbered_together_are_noise_and_ranks_are_not() {
    let clauses = ["1. Keys are kept here", "§ 2 Boats are washed", "4.3 Nets dry on the pier"];
    let numbered =
        first_noise(&clauses, &["2. Keys are kept here", "§ 3 Boats are washed", "4.4 Nets dry on the pier"]);
    assert!(numbered.len() == 3 && numbered.iter().all(|noise| *noise > 0.9), "{numbered:?}");
    let ranks = first_noise(
        &["1. The red team wins", "2. The blue team rows"],
        &["2. The red team wins", "1. The blue team rows"],
    );
    assert!(ranks.iter().all(|noise| *noise < 0.9), "{ranks:?}");
    assert!(first_noise(&["3 boats are missing"], &["5 boats are missing"]).iter().all(|noise| *noise < 0.6));
}
