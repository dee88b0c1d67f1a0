//! The papers' examples, the laws of each form, and changes as a reader would weigh them.

use proptest::prelude::*;

use super::*;
use crate::diff::diff;
use crate::diff::plant::{PlantRates, plant};
use crate::segment::{Block, BlockTree, Image, Link, Text};

fn config(form: Form) -> ImportanceConfig {
    ImportanceConfig::of(form)
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
fn the_example_of_2009() {
    let (before, after) = figure_7();
    let found = importance(&diff(&before, &after), &config(Form::Visual2009)).get();
    let expected = 0.1 * 1.0 * (1.0 / 1.0) + 0.4 * 1.0 * (4.0 / 6.0) + 0.2 * 0.8 * (2.0 / 4.0);
    assert!((expected - 0.4467f64).abs() < 1e-4);
    assert!((found - expected).abs() < 1e-6, "{found}");
}

/// The same changes by Algorithm 2 of P-PATTERN: the text counts by its distance, a deletion counts fully.
#[test]
fn the_example_by_the_form_of_2011() {
    let (before, after) = figure_7();
    let delta = diff(&before, &after);
    let found = importance(&delta, &config(Form::Pattern2011)).get();
    let expected = 0.1 * (1.0 / 5.0) + 0.4 * (4.0 / 6.0) + 0.2 * (2.0 / 4.0);
    assert!((found - expected).abs() < 1e-6, "{found}");
    let all_advertisements = &mut |operation: &Operation| Judgement {
        is_advertisement: operation.element_kind() == Some(ElementKind::Image),
        noise: 0.0,
    };
    let found = assess(&delta, &config(Form::Pattern2011), all_advertisements).importance.get();
    let expected = 0.1 * (1.0 / 5.0) + 0.4 * (4.0 / 6.0) + 0.1 * 0.2 * (2.0 / 4.0);
    assert!((found - expected).abs() < 1e-6, "alpha = 0.1 for images: {found}");
}

#[test]
fn averaging_over_operations_is_not_monotone_and_our_form_is() {
    let page = |links: Vec<Link>, n_images: usize| {
        sealed(vec![weighed(1.0, Block::leaf(links, images(n_images), vec![]))])
    };
    let mut grown = links(4, "a");
    grown.extend(links(8, "b"));
    let before = page(links(4, "a"), 9);
    let (one, two) = (page(grown.clone(), 9), page(grown, 8));
    for (form, falls) in [(Form::Visual2009, true), (Form::Pattern2011, true), (Form::Monotone, false)] {
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
    for (form, _) in Form::NAMES {
        assert!((importance(&delta, &config(form)).get() - 0.3).abs() < 1e-6, "{form}");
    }
}

#[test]
fn noise_takes_its_part_away() {
    let (before, after) = figure_7();
    let delta = diff(&before, &after);
    for (form, _) in Form::NAMES {
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

proptest! {
    #[test]
    fn always_between_none_and_full(before in any_page(), other in any_page(), seed in any::<u64>()) {
        let (planted, _) = plant(&before, PlantRates { elements: 0.4, blocks: 0.4 }, seed);
        for after in [&other, &planted, &before] {
            let delta = diff(&before, after);
            for (form, _) in Form::NAMES {
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
