//! Two segmented pages -> the time of diff and importance, for a median page, large pages and unchanged ones.
//!
//! cargo bench -p perennial-lab --bench diff

use perennial_core::page::diff::diff;
use perennial_core::page::importance::{ImportanceConfig, importance};
use perennial_core::page::segment::{Block, BlockTree, Image, Link, Text};
use perennial_lab::plant::{PlantRates, plant};

fn main() {
    divan::main();
}

/// A page of `n` teasers between a menu and a footer. With 12 teasers it is about as long as a median page.
fn page(n: u64) -> BlockTree {
    let words = |salt: u64, n: u64| {
        (0..n).map(|i| format!("w{}", (salt * 7919 + i * 104_729) % 900)).collect::<Vec<_>>().join(" ")
    };
    let links = |salt: u64, n: u64| {
        (0..n)
            .map(|i| Link::new(words(salt * 31 + i, 4), format!("http://a.org/{salt}/{i}")))
            .collect::<Vec<_>>()
    };
    let teaser = |salt: u64| {
        let image = Image::new(format!("photo {salt}"), format!("http://a.org/{salt}.jpg"));
        Block::leaf(
            links(salt, 4),
            vec![image],
            (0..5).map(|i| Text::new(words(salt * 17 + i, 20))).collect(),
        )
    };
    let teasers = Block::inner((0..n).map(|i| teaser(100 + i)).collect());
    let blocks =
        vec![Block::leaf(links(1, 20), vec![], vec![]), teasers, Block::leaf(links(2, 8), vec![], vec![])];
    let mut tree = BlockTree { url: "http://a.org/".into(), blocks, ..BlockTree::default() };
    let n_leaves = tree.leaves().count() as f32;
    set_importance(&mut tree.blocks, 1.0 / n_leaves);
    tree.seal();
    tree
}

fn set_importance(blocks: &mut [Block], importance: f32) {
    for block in blocks {
        block.importance = importance;
        set_importance(&mut block.children, importance);
    }
}

#[divan::bench(args = [12, 120, 1200])]
fn diff_and_importance(bencher: divan::Bencher, n_teasers: u64) {
    let before = page(n_teasers);
    let (after, _) = plant(&before, PlantRates { elements: 0.05, blocks: 0.05 }, 7);
    bencher.counter(divan::counter::ItemsCount::new(1u32)).bench(|| {
        let delta = diff(&before, &after);
        importance(&delta, &ImportanceConfig::default())
    });
}

#[divan::bench(args = [12, 120])]
fn unchanged(bencher: divan::Bencher, n_teasers: u64) {
    let (before, after) = (page(n_teasers), page(n_teasers));
    bencher.bench(|| diff(&before, &after).is_empty());
}
