//! The papers' examples, properties of each form, and changes as a reader would weigh them.

use proptest::prelude::*;

use super::*;
use crate::page::diff::{ElementKind, diff};
use crate::page::segment::{Block, BlockRole, BlockTree, ElementPositions, Image, Link, Text, TextPosition};

fn config(form: ImportanceForm) -> ImportanceConfig {
    ImportanceConfig::new(form)
}

fn sealed(blocks: Vec<Block>) -> BlockTree {
    let mut tree = BlockTree { blocks, ..BlockTree::default() };
    tree.seal();
    tree
}

fn links(n: usize, prefix: &str) -> Vec<Link> {
    (0..n).map(|i| Link::new(format!("{prefix}{i}"), format!("/{prefix}{i}"))).collect()
}

fn images(n: usize) -> Vec<Image> {
    (0..n).map(|i| Image::new(format!("image{i}"), format!("/image{i}"))).collect()
}

fn weighed(importance: f32, block: Block) -> Block {
    Block { importance, ..block }
}

/// P-VISUAL 6, example 1 (figure 7): B1 0.1, B2.1 0.3, B2.2 0.4, B3 0.2.
fn figure_7() -> (BlockTree, BlockTree) {
    let page = |text: &str, n_links: usize, n_images: usize| {
        let mut many = links(2, "link");
        many.extend(links(n_links, "more"));
        sealed(vec![
            weighed(0.1, Block::leaf(vec![], vec![], vec![Text::new(text)])),
            Block::inner(vec![
                weighed(0.3, Block::leaf(vec![], vec![], vec![Text::new("untouched words")])),
                weighed(0.4, Block::leaf(many, vec![], vec![])),
            ]),
            weighed(0.2, Block::leaf(vec![], images(n_images), vec![])),
        ])
    };
    (page("a text of five words", 0, 4), page("a text of five changes", 4, 2))
}

#[test]
fn example_of_p_visual_in_the_form_of_2009() {
    let (before, after) = figure_7();
    let found = importance(&diff(&before, &after), &config(ImportanceForm::Visual2009)).get();
    let expected = 0.1 * 1.0 * (1.0 / 1.0) + 0.4 * 1.0 * (4.0 / 6.0) + 0.2 * 0.8 * (2.0 / 4.0);
    assert!((expected - 0.4467f64).abs() < 1e-4);
    assert!((found - expected).abs() < 1e-6, "{found}");
}

/// The same changes by Algorithm 2 of P-PATTERN: texts count by their distance, deletions count fully.
#[test]
fn example_of_p_visual_in_the_form_of_2011() {
    let (before, after) = figure_7();
    let delta = diff(&before, &after);
    let found = importance(&delta, &config(ImportanceForm::Pattern2011)).get();
    let expected = 0.1 * (1.0 / 5.0) + 0.4 * (4.0 / 6.0) + 0.2 * (2.0 / 4.0);
    assert!((found - expected).abs() < 1e-6, "{found}");
    let all_advertisements = &mut |operation: &Operation| Judgement {
        is_advertisement: operation.element_kind() == Some(ElementKind::Image),
        noise: 0.0,
    };
    let found = assess(&delta, &config(ImportanceForm::Pattern2011), all_advertisements).importance.get();
    let expected = 0.1 * (1.0 / 5.0) + 0.4 * (4.0 / 6.0) + 0.1 * 0.2 * (2.0 / 4.0);
    assert!((found - expected).abs() < 1e-6, "alpha = 0.1 for images: {found}");
}

#[test]
fn only_our_form_is_monotone() {
    let page = |links: Vec<Link>, n_images: usize| {
        sealed(vec![weighed(1.0, Block::leaf(links, images(n_images), vec![]))])
    };
    let mut grown = links(4, "a");
    grown.extend(links(8, "b"));
    let before = page(links(4, "a"), 9);
    let (one, two) = (page(grown.clone(), 9), page(grown, 8));
    for (form, falls) in [
        (ImportanceForm::Visual2009, true),
        (ImportanceForm::Pattern2011, true),
        (ImportanceForm::Monotone, false),
    ] {
        let one = importance(&diff(&before, &one), &config(form)).get();
        let two = importance(&diff(&before, &two), &config(form)).get();
        assert_eq!(two < one, falls, "{form}: {one} {two}");
    }
}

#[test]
fn a_structural_operation_counts_with_its_block() {
    let old = || weighed(0.7, Block::leaf(links(3, "old"), vec![], vec![Text::new("words of old")]));
    let new = weighed(0.3, Block::leaf(links(3, "new"), vec![], vec![Text::new("news of today")]));
    let delta = diff(&sealed(vec![old()]), &sealed(vec![old(), new]));
    for (form, _) in ImportanceForm::NAMES {
        assert!((importance(&delta, &config(form)).get() - 0.3).abs() < 1e-6, "{form}");
    }
}

#[test]
fn noise_does_not_count() {
    let (before, after) = figure_7();
    let delta = diff(&before, &after);
    for (form, _) in ImportanceForm::NAMES {
        let judged =
            assess(&delta, &config(form), &mut |_| Judgement { noise: 1.0, is_advertisement: false });
        assert_eq!(judged.importance, Importance::NONE, "{form}");
    }
}

fn any_page() -> impl Strategy<Value = BlockTree> {
    let leaf = (0usize..6, 0usize..4, proptest::collection::vec("([a-e] ){1,6}", 0..4), 0.01f32..1.0);
    proptest::collection::vec(leaf, 1..6).prop_map(|leaves| {
        let total: f32 = leaves.iter().map(|leaf| leaf.3).sum();
        let block = |(n_links, n_images, texts, importance): (usize, usize, Vec<String>, f32)| {
            let texts = texts.into_iter().map(Text::new).collect();
            weighed(importance / total, Block::leaf(links(n_links, "l"), images(n_images), texts))
        };
        sealed(leaves.into_iter().map(block).collect())
    })
}

/// `n` different words.
fn words(prefix: &str, n: usize) -> String {
    (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(" ")
}

fn main_leaf(importance: f32, texts: Vec<String>) -> Block {
    let leaf = Block::leaf(vec![], vec![], texts.into_iter().map(Text::new).collect());
    Block { role: BlockRole::Main, ..weighed(importance, leaf) }
}

fn menu(importance: f32) -> Block {
    Block {
        role: BlockRole::Navigation,
        ..weighed(importance, Block::leaf(links(8, "menu"), vec![], vec![]))
    }
}

fn monotone(before: &BlockTree, after: &BlockTree) -> f64 {
    importance(&diff(before, after), &config(ImportanceForm::Monotone)).get()
}

#[test]
fn deletions_are_weighed_by_the_importance_before() {
    let rows = |n: usize| (0..n).map(|row| words(&format!("row{row}w"), 3)).collect::<Vec<_>>();
    let long = sealed(vec![menu(0.1), main_leaf(0.9, rows(800))]);
    let short = sealed(vec![menu(0.9), main_leaf(0.1, rows(4))]);
    let (cut, grown) = (monotone(&long, &short), monotone(&short, &long));
    assert!(cut > 0.8, "{cut}");
    assert!(grown > 0.08 && cut > grown / 3.0, "{grown}");
}

#[test]
fn a_changed_url_alone_is_reported_with_little_weight() {
    let page = |scheme: &str, file: &str| {
        let links = vec![
            Link::new("the tide table", format!("{scheme}://a.org/tides")),
            Link::new("sha512", format!("http://a.org/{file}")),
        ];
        let texts = vec![Text::new(words("w", 60))];
        sealed(vec![weighed(1.0, Block::leaf(links, vec![], texts))])
    };
    let plain = page("http", "1.sum");
    let secure = diff(&plain, &page("https", "1.sum"));
    assert_eq!(secure.operations().count(), 1, "it is shown");
    assert!(importance(&secure, &config(ImportanceForm::Monotone)).get() < 0.001);
    let other = monotone(&plain, &page("http", "2.sum"));
    assert!(other > 0.0 && other < 0.02, "{other}");
}

#[test]
fn a_repeated_link_does_not_count() {
    let page = |links: &[(&str, &str)]| {
        let links = links.iter().map(|(name, url)| Link::new(*name, *url)).collect();
        sealed(vec![weighed(1.0, Block::leaf(links, vec![], vec![Text::new(words("w", 40))]))])
    };
    let before = page(&[("the whole story", "http://a.org/story")]);
    let again =
        page(&[("the whole story", "http://a.org/story"), ("read it here", "https://www.a.org/story/#top")]);
    assert_eq!(monotone(&before, &again), 0.0);
    assert_eq!(monotone(&again, &before), 0.0);
    let other = page(&[("the whole story", "http://a.org/story"), ("read it here", "http://a.org/other")]);
    assert!(monotone(&before, &other) > 0.01);
}

proptest! {
    // Each case compares lists of thousands of entries.
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// A new entry at the top of 20 or 2,000 entries differs by less than a factor of 3 in importance.
    #[test]
    fn the_length_of_a_list_hardly_matters(n_words in 1usize..40, n_parts in 1usize..4, share in 0.3f32..0.95) {
        let entry = |number: usize| (0..n_parts).map(move |part| words(&format!("e{number}p{part}w"), n_words));
        let page = |from: usize, n: usize| {
            sealed(vec![menu(1.0 - share), main_leaf(share, (from..from + n).flat_map(entry).collect())])
        };
        let [few, many] = [20, 2000].map(|n| monotone(&page(1, n), &page(0, n + 1)));
        prop_assert!(few < 3.0 * many && many < 3.0 * few, "{few} {many}");
        let [few, many] = [20, 2000].map(|n| monotone(&page(0, n + 1), &page(1, n)));
        prop_assert!(few < 3.0 * many && many < 3.0 * few, "deleted: {few} {many}");
    }
}

proptest! {
    /// Losing 30 % of the words of the main content has an importance of at least 0.2.
    #[test]
    fn a_third_less_is_much(texts in proptest::collection::vec(10usize..60, 4..40), share in 0.7f32..1.0, seed in any::<u64>()) {
        let all: Vec<String> = texts.iter().enumerate().map(|(n, len)| words(&format!("t{n}w"), *len)).collect();
        let n_words: usize = texts.iter().sum();
        let mut order: Vec<usize> = (0..all.len()).collect();
        crate::rng::Rng::new(seed).shuffle(&mut order);
        let mut n_gone = 0;
        let gone: Vec<usize> = order.into_iter().take_while(|n| {
            let takes = 10 * n_gone < 3 * n_words;
            n_gone += texts[*n];
            takes
        }).collect();
        let kept: Vec<String> = all.iter().enumerate().filter(|(n, _)| !gone.contains(n)).map(|(_, text)| text.clone()).collect();
        let before = sealed(vec![menu(1.0 - share), main_leaf(share, all)]);
        let after = sealed(vec![menu(1.0 - share), main_leaf(share, kept)]);
        let found = monotone(&before, &after);
        prop_assert!(found >= 0.2, "{found}");
    }

    /// The same words in the same order: below 0.02, whatever happens to wrappers, URLs and images.
    #[test]
    fn the_same_words_in_the_same_order_are_little(
        texts in proptest::collection::vec(8usize..20, 4..20), cuts in proptest::collection::vec(1usize..6, 3), other in any::<bool>()
    ) {
        let page = |cut: usize, is_wrapped: bool, scheme: &str| {
            let text = |n: usize| words(&format!("t{n}w"), texts[n]);
            let leaf = |from: usize, to: usize| {
                let link = Link::new(format!("link{from}"), format!("{scheme}://a.org/{from}/{scheme}"));
                let mut leaf = Block::leaf(vec![link], images(usize::from(is_wrapped)), (from..to).map(|n| Text::new(text(n))).collect());
                leaf.places = ElementPositions { links: vec![TextPosition::default()], images: vec![TextPosition::default(); leaf.images.len()] };
                weighed(0.2, leaf)
            };
            let starts: Vec<usize> = (0..texts.len()).step_by(cut).collect();
            let leaves: Vec<Block> = starts.iter().map(|&from| leaf(from, (from + cut).min(texts.len()))).collect();
            sealed(if is_wrapped { vec![Block::inner(leaves)] } else { leaves })
        };
        let before = page(cuts[0], false, "http");
        let after = page(cuts[0], other, "https");
        let found = monotone(&before, &after);
        prop_assert!(found < 0.02, "{found}");
    }
}

proptest! {
    #[test]
    fn always_between_none_and_full(before in any_page(), other in any_page()) {
        for after in [&other, &before] {
            let delta = diff(&before, after);
            for (form, _) in ImportanceForm::NAMES {
                let assessment = assess(&delta, &config(form), &mut |_| Judgement::default());
                let value = assessment.importance.get();
                prop_assert!((0.0..=1.0).contains(&value), "{form}: {value}");
                prop_assert_eq!(delta.is_empty(), assessment.contributions.is_empty());
                if delta.is_empty() {
                    prop_assert_eq!(assessment.importance, Importance::NONE);
                }
                let shares: f64 = assessment.contributions.iter().map(|each| each.share).sum();
                prop_assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-9);
            }
        }
    }
}
