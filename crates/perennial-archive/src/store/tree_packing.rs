//! Packs a tree into bytes, whole or as its difference to a later tree of the same page.
//!
//! The text of a tree is Vi-XML without the values that follow from the rest. Zeros replace the IDs of elements and
//! blocks, and the importance of inner blocks. The IDs of lists are omitted, because nothing reads them. The reason is
//! that sixteen digits of a hash do not compress.
//!
//! Values that do not follow, as with ignored parameters of a URL, are kept. A tree that would not be restored exactly
//! is written as plain Vi-XML; trees of earlier schemas are too.

use std::io::{self, Read, Write};

use anyhow::Context;
use perennial_core::page::segment::{Block, BlockTree, Image, Link, NodeId, Text, vixml};
use zstd::zstd_safe::CParameter;

/// Level of whole trees: low, because every change writes one.
const WHOLE_LEVEL: i32 = 6;
/// Level of differences. They are small and permanent.
const PATCH_LEVEL: i32 = 9;
/// The dictionary of whole trees: the tags that every tree has. It is part of the format and never changes.
const DICTIONARY: &str = include_str!("tree.dictionary");
/// A tree that unpacks to more than this is damaged.
const MAX_UNPACKED_BYTES: u64 = 256 << 20;
/// The window of a difference: as many bits as the two texts together need, within the limits of every reader.
const WINDOW_BITS: std::ops::RangeInclusive<u32> = 10..=27;
/// The first character of a text without IDs; Vi-XML begins with `<`.
const LEAN: char = 'L';

const HINT: &str =
    "a stored tree is damaged: make it again with `perennial verify --rebuild` and `perennial analyse`";

/// The text of a tree, as it is packed.
pub(super) fn tree_to_text(tree: &BlockTree) -> String {
    let lean = lean(tree);
    match restored(lean.clone()) == *tree {
        true => format!("{LEAN}{}", without_list_ids(&vixml::write(&lean))),
        false => vixml::write(tree),
    }
}

/// The inverse of [`tree_to_text`].
pub(super) fn tree_from_text(text: &str) -> anyhow::Result<BlockTree> {
    match text.strip_prefix(LEAN) {
        Some(lean) => Ok(restored(vixml::read(lean).context(HINT)?)),
        None => vixml::read(text).context(HINT),
    }
}

/// Packs a text by itself.
pub(super) fn pack(text: &str) -> io::Result<Vec<u8>> {
    compressed(text, DICTIONARY, WHOLE_LEVEL)
}

/// The inverse of [`pack`].
pub(super) fn unpack(packed: &[u8]) -> anyhow::Result<String> {
    unpack_beside(packed, DICTIONARY)
}

/// The text of a tree in states before schema 10.
pub(super) fn unpack_schema_9(packed: &[u8]) -> anyhow::Result<String> {
    read_all(zstd::stream::read::Decoder::new(packed).context(HINT)?)
}

/// The difference of a text to one that the reader will have.
pub(super) fn pack_beside(text: &str, beside: &str) -> io::Result<Vec<u8>> {
    compressed(text, beside, PATCH_LEVEL)
}

/// The inverse of [`pack_beside`], with the same second text.
pub(super) fn unpack_beside(packed: &[u8], beside: &str) -> anyhow::Result<String> {
    let reader = io::BufReader::new(packed);
    read_all(zstd::stream::read::Decoder::with_ref_prefix(reader, beside.as_bytes()).context(HINT)?)
}

fn compressed(text: &str, beside: &str, level: i32) -> io::Result<Vec<u8>> {
    let n_bytes = text.len() + beside.len();
    let n_bits = (usize::BITS - n_bytes.leading_zeros()).clamp(*WINDOW_BITS.start(), *WINDOW_BITS.end());
    let mut out = zstd::stream::write::Encoder::with_ref_prefix(Vec::new(), level, beside.as_bytes())?;
    out.set_parameter(CParameter::WindowLog(n_bits))?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

fn read_all(reader: impl Read) -> anyhow::Result<String> {
    let mut text = String::new();
    reader.take(MAX_UNPACKED_BYTES).read_to_string(&mut text).context(HINT)?;
    Ok(text)
}

/// Removes the IDs of lists from Vi-XML: `<Links ID="...">`. Nothing in a text or an attribute resembles such a tag.
fn without_list_ids(xml: &str) -> String {
    const N_DIGITS: usize = 16;
    let mut out = String::with_capacity(xml.len());
    let mut rest = xml;
    while let Some(at) = rest.find(" ID=\"") {
        let (before, id) = rest.split_at(at);
        out.push_str(before);
        let is_list = ["<Links", "<Imgs", "<Txts"].iter().any(|tag| before.ends_with(tag));
        let n_bytes = " ID=\"\"".len() + N_DIGITS;
        match id.split_at_checked(n_bytes) {
            Some((_, after)) if is_list => rest = after,
            _ => {
                out.push_str(&id[..1]);
                rest = &id[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// A tree without the values that follow from the rest.
fn lean(tree: &BlockTree) -> BlockTree {
    let mut tree = tree.clone();
    each_block(&mut tree.blocks, &mut |block| {
        block.id = NodeId(0);
        if !block.is_leaf() {
            block.importance = 0.0;
        }
        for link in &mut block.links {
            link.id = unless(link.id, plain_link_id(link));
        }
        for image in &mut block.images {
            image.id = unless(image.id, plain_image_id(image));
        }
        for text in &mut block.texts {
            text.id = unless(text.id, Text::new(text.text.as_str()).id);
        }
    });
    tree
}

/// The inverse of [`lean`]: a missing ID is that of the content.
fn restored(mut tree: BlockTree) -> BlockTree {
    each_block(&mut tree.blocks, &mut |block| {
        for link in block.links.iter_mut().filter(|link| link.id == NodeId(0)) {
            link.id = plain_link_id(link);
        }
        for image in block.images.iter_mut().filter(|image| image.id == NodeId(0)) {
            image.id = plain_image_id(image);
        }
        for text in block.texts.iter_mut().filter(|text| text.id == NodeId(0)) {
            text.id = Text::new(text.text.as_str()).id;
        }
    });
    tree.seal();
    tree
}

fn plain_link_id(link: &Link) -> NodeId {
    Link::new(link.name.as_str(), link.url.as_str()).id
}

fn plain_image_id(image: &Image) -> NodeId {
    Image::new(image.name.as_str(), image.source.as_str()).id
}

fn unless(id: NodeId, plain: NodeId) -> NodeId {
    if id == plain { NodeId(0) } else { id }
}

fn each_block(blocks: &mut [Block], change: &mut impl FnMut(&mut Block)) {
    for block in blocks {
        change(block);
        each_block(&mut block.children, change);
    }
}

/// How much of each operation of a change is noise, in the order of the delta; `None` if none is. The bytes are pairs
/// of value and number of repetitions.
pub fn pack_noise(noise: impl IntoIterator<Item = f64>) -> Option<Vec<u8>> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for noise in noise {
        let value = (noise.clamp(0.0, 1.0) * NOISE_STEPS).round() as u8;
        match runs.last_mut() {
            Some((last, n)) if *last == value && *n < u8::MAX => *n += 1,
            _ => runs.push((value, 1)),
        }
    }
    let is_some = runs.iter().any(|(value, _)| *value > 0);
    is_some.then(|| runs.into_iter().flat_map(|(value, n)| [value, n]).collect())
}

/// The inverse of [`pack_noise`], in steps of 1/200.
pub fn unpack_noise(packed: &[u8]) -> Vec<f64> {
    let runs = packed.chunks_exact(2);
    runs.flat_map(|run| std::iter::repeat_n(f64::from(run[0]) / NOISE_STEPS, usize::from(run[1]))).collect()
}

const NOISE_STEPS: f64 = 200.0;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use perennial_core::page::layout::Rect;
    use perennial_core::page::segment::IgnoredParameters;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn any_text() -> impl Strategy<Value = String> {
        "([a-d ]|[&<>\"']|\u{e9}|\u{1f600}){0,12}"
    }

    fn any_leaf() -> impl Strategy<Value = Block> {
        let ignored = IgnoredParameters { parameters: vec!["sid".into()] };
        let link =
            (any_text(), any_text(), any::<bool>()).prop_map(
                move |(name, url, is_ignored)| match is_ignored {
                    true => Link::ignoring(&ignored, name, format!("http://a.example/?sid={url}")),
                    false => Link::new(name, url),
                },
            );
        let image = (any_text(), any_text()).prop_map(|(name, source)| Image::new(name, source));
        let contents = (vec(link, 0..3), vec(image, 0..3), vec(any_text().prop_map(Text::new), 0..3));
        (contents, any::<[i16; 4]>(), 0.0..1.0f32).prop_map(
            |((links, images, texts), [x, y, w, h], importance)| {
                let rect = Rect { x: f32::from(x) / 4.0, y: f32::from(y), w: f32::from(w), h: f32::from(h) };
                Block { importance, rect, ..Block::leaf(links, images, texts) }
            },
        )
    }

    pub(crate) fn any_tree() -> impl Strategy<Value = BlockTree> {
        let block = any_leaf().prop_recursive(4, 24, 4, |child| vec(child, 1..4).prop_map(Block::inner));
        (any_text(), vec(block, 0..4)).prop_map(|(version, blocks)| {
            let url = "http://a.example/".into();
            let mut tree = BlockTree { url, version, engine: "test".into(), blocks, ..BlockTree::default() };
            tree.seal();
            tree
        })
    }

    proptest! {
        #[test]
        fn a_packed_tree_is_the_same_tree(tree in any_tree(), beside in any_tree()) {
            let (text, beside) = (tree_to_text(&tree), tree_to_text(&beside));
            prop_assert!(text.starts_with(LEAN) && !text.contains("<Links ID="));
            prop_assert_eq!(&tree_from_text(&unpack(&pack(&text).unwrap()).unwrap()).unwrap(), &tree);
            let patch = pack_beside(&text, &beside).unwrap();
            prop_assert_eq!(unpack_beside(&patch, &beside).unwrap(), text);
        }

        #[test]
        fn a_tree_whose_numbers_do_not_follow_is_kept_as_it_is(tree in any_tree(), id in any::<u64>()) {
            let mut tree = tree;
            let Some(block) = tree.blocks.first_mut() else { return Ok(()) };
            block.id = NodeId(id);
            block.importance = 7.5;
            prop_assert_eq!(&tree_from_text(&tree_to_text(&tree)).unwrap(), &tree);
        }

        #[test]
        fn damaged_bytes_are_an_error_or_a_text(bytes in vec(any::<u8>(), 0..80), beside in ".{0,20}") {
            let _ = unpack(&bytes);
            let _ = unpack_beside(&bytes, &beside);
            let _ = unpack_noise(&bytes);
        }

        #[test]
        fn noise_comes_back_within_a_step(noise in vec(prop_oneof![Just(0.0), Just(0.75), 0.0..1.0f64], 0..600)) {
            match pack_noise(noise.iter().copied()) {
                Some(packed) => {
                    let again = unpack_noise(&packed);
                    prop_assert_eq!(again.len(), noise.len());
                    prop_assert!(again.iter().zip(&noise).all(|(x, y)| (x - y).abs() <= 0.5 / NOISE_STEPS));
                }
                None => prop_assert!(noise.iter().all(|noise| *noise < 1.0 / NOISE_STEPS)),
            }
        }
    }

    #[test]
    fn one_word_more_costs_few_bytes() {
        let word = |n: u32| format!("{:x} ", n.wrapping_mul(2_654_435_761));
        let tree = |n_words: u32| {
            let texts = (0..40).map(|block| (0..n_words).map(|n| word(100 * block + n)).collect::<String>());
            let blocks = texts.map(|text| Block::leaf(vec![], vec![], vec![Text::new(text)])).collect();
            let mut tree = BlockTree { blocks: vec![Block::inner(blocks)], ..BlockTree::default() };
            tree.seal();
            tree_to_text(&tree)
        };
        let (before, after) = (tree(50), tree(51));
        let (whole, patch) = (pack(&before).unwrap(), pack_beside(&before, &after).unwrap());
        assert!(20 * patch.len() < whole.len(), "{} of {}", patch.len(), whole.len());
    }
}
