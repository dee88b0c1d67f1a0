//! Vi-DIFF on the example of P-VISUAL 5.1 (docs/papers.md, Vi-DIFF and Vi-Delta), on small pages and on random ones.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::page::layout::Rect;
use crate::page::segment::{
    Block, BlockRole, BlockTree, ElementPositions, IgnoredParameters, Image, Link, Text, TextPosition, vixml,
};

fn leaf(links: &[(&str, &str)], images: &[(&str, &str)], texts: &[&str]) -> Block {
    Block::leaf(
        links.iter().map(|(name, url)| Link::new(*name, *url)).collect(),
        images.iter().map(|(name, source)| Image::new(*name, *source)).collect(),
        texts.iter().map(|text| Text::new(*text)).collect(),
    )
}

fn tree(version: &str, blocks: Vec<Block>) -> BlockTree {
    let mut tree = BlockTree {
        url: "http://a.org/".into(),
        version: version.into(),
        engine: "e".into(),
        blocks,
        list: None,
    };
    tree.seal();
    tree
}

/// One line an operation: kind, subject, content, blocks.
fn lines(delta: &Delta) -> Vec<String> {
    let place =
        |reference: Option<&[u16]>| reference.map_or("-".into(), |r| BlockRef(r.to_vec()).to_string());
    let mut lines: Vec<String> = delta
        .operations()
        .map(|operation| {
            let text = operation.element().map_or("", Element::text);
            let (before, after) = (place(operation.block_before), place(operation.block_after));
            format!("{} {} {text} {before} {after}", operation.kind.name(), operation.subject_name())
        })
        .collect();
    lines.sort();
    lines
}

fn check(before: &BlockTree, after: &BlockTree) -> Delta {
    let delta = diff(before, after);
    assert_eq!(&delta.apply(before).unwrap(), after, "{delta:#?}");
    let whole = delta.to_operations_xml();
    assert_eq!(Delta::from_xml(&whole).unwrap(), delta, "{whole}");
    let stored = delta.to_xml(after);
    assert!(stored.len() <= vixml::write(after).len());
    assert_eq!(&Delta::from_xml(&stored).unwrap().apply(before).unwrap(), after);
    delta
}

/// P-VISUAL 5.1, example 1 (figures 4 and 5).
#[test]
fn the_papers_example() {
    let links =
        |all: &[&str]| all.iter().map(|name| (name.to_string(), format!("/{name}"))).collect::<Vec<_>>();
    let block = |names: &[&str], images: &[&str], text: &str| {
        let (links, images) = (links(names), links(images));
        let pairs = |all: &[(String, String)]| {
            all.iter().map(|(name, url)| (name.clone(), url.clone())).collect::<Vec<_>>()
        };
        Block::leaf(
            pairs(&links).into_iter().map(|(name, url)| Link::new(name, url)).collect(),
            pairs(&images).into_iter().map(|(name, source)| Image::new(name, source)).collect(),
            vec![Text::new(text)],
        )
    };
    let before = tree(
        "V1",
        vec![
            block(&["Link1"], &["Img1"], "first text"),
            block(&["Link21", "Link22"], &[], "second text"),
            block(&["Link31"], &[], "the text of B3 is A"),
        ],
    );
    let after = tree(
        "V2",
        vec![
            block(&["Link1", "Link2"], &[], "first text"),
            block(&["Link22"], &[], "second text"),
            block(&["Link31", "Link21"], &[], "the text of B3 is B"),
        ],
    );
    let delta = check(&before, &after);
    assert_eq!(
        lines(&delta),
        [
            "delete image Img1 B1 B1",
            "insert link Link2 B1 B1",
            "move link Link21 B2 B3",
            "update text the text of B3 is B B3 B3",
        ]
    );
    let xml = delta.to_operations_xml();
    assert!(
        xml.contains("<link name=\"Link21\" adr=\"/Link21\" fromBlock=\"B2\" fromN=\"0\" toBlock=\"B3\""),
        "{xml}"
    );
}

#[test]
fn a_move_is_found_whatever_the_sort_order() {
    // The paper's merge loop passes "a" in B1 before it reaches "b", so it reports delete and insert.
    let before = tree(
        "1",
        vec![leaf(&[("b", "/b"), ("x", "/x")], &[], &["one"]), leaf(&[("a", "/a")], &[], &["two"])],
    );
    let after = tree(
        "2",
        vec![leaf(&[("x", "/x")], &[], &["one"]), leaf(&[("a", "/a2"), ("b", "/b")], &[], &["two"])],
    );
    assert_eq!(lines(&check(&before, &after)), ["move link b B1 B2", "update link a B2 B2"]);
}

#[test]
fn a_changed_order_within_a_block_is_not_a_change() {
    let before = tree("1", vec![leaf(&[("a", "/a"), ("b", "/b"), ("c", "/c")], &[], &[])]);
    let after = tree("2", vec![leaf(&[("c", "/c"), ("a", "/a"), ("b", "/b")], &[], &[])]);
    let delta = check(&before, &after);
    assert!(delta.is_empty());
    assert!(!delta.is_identity());
}

#[test]
fn ignored_parameters_are_not_a_change_but_are_stored() {
    let with_session = |session: &str| {
        let ignored = IgnoredParameters::default();
        let link = Link::ignoring(&ignored, "Home", format!("http://a.org/?sid={session}"));
        tree("1", vec![Block::leaf(vec![link], vec![], vec![Text::new("words")])])
    };
    let delta = check(&with_session("17"), &with_session("18"));
    assert!(delta.is_empty());
    assert_eq!(delta.blocks[0].respelled.len(), 1);
}

#[test]
fn a_link_is_updated_if_its_name_or_its_url_is_unchanged() {
    let before = tree("1", vec![leaf(&[("more", "/1"), ("title", "/2"), ("gone", "/3")], &[], &["keep"])]);
    let after = tree("2", vec![leaf(&[("more", "/9"), ("headline", "/2"), ("came", "/4")], &[], &["keep"])]);
    assert_eq!(
        lines(&check(&before, &after)),
        [
            "delete link gone B1 B1",
            "insert link came B1 B1",
            "update link headline B1 B1",
            "update link more B1 B1"
        ]
    );
}

#[test]
fn a_text_that_keeps_half_of_its_words_is_updated() {
    let before = tree("1", vec![leaf(&[("k", "/k")], &[], &["one two three four"])]);
    let half = tree("2", vec![leaf(&[("k", "/k")], &[], &["one two five six"])]);
    let less = tree("2", vec![leaf(&[("k", "/k")], &[], &["one five six seven"])]);
    assert_eq!(lines(&check(&before, &half)), ["update text one two five six B1 B1"]);
    assert_eq!(
        lines(&check(&before, &less)),
        ["delete text one two three four B1 B1", "insert text one five six seven B1 B1"]
    );
}

#[test]
fn inserting_a_block_moves_no_other_block() {
    let old = vec![leaf(&[("a", "/a")], &[], &["first words"]), leaf(&[("b", "/b")], &[], &["second words"])];
    let mut new = vec![leaf(&[("n", "/n")], &[], &["news of today"])];
    new.extend(old.clone());
    let delta = check(&tree("1", old), &tree("2", new));
    assert_eq!(lines(&delta), ["insert block  - B1"]);
}

#[test]
fn blocks_are_inserted_deleted_and_moved() {
    let a = || leaf(&[("a", "/a")], &[], &["alpha words here"]);
    let b = || leaf(&[("b", "/b")], &[], &["beta words there"]);
    let c = || leaf(&[("c", "/c")], &[], &["gamma words everywhere"]);
    let d = || leaf(&[("d", "/d")], &[], &["delta words nowhere"]);
    let before = tree("1", vec![Block::inner(vec![a(), b()]), Block::inner(vec![c(), d()])]);
    let moved = tree("2", vec![Block::inner(vec![b()]), Block::inner(vec![c(), d(), a()])]);
    assert_eq!(lines(&check(&before, &moved)), ["move block  B1.1 B2.3"]);
    let gone = tree("2", vec![Block::inner(vec![a(), b()])]);
    assert_eq!(lines(&check(&before, &gone)), ["delete block  B2 -"]);
    let swapped = tree("2", vec![Block::inner(vec![c(), d()]), Block::inner(vec![a(), b()])]);
    assert_eq!(lines(&check(&before, &swapped)).len(), 1);
}

#[test]
fn a_region_with_replaced_content_is_still_the_same_region() {
    let banner = |name: &str| {
        let mut banner = leaf(&[(name, name)], &[(name, name)], &[]);
        banner.rect = Rect { x: 900.0, y: 10.0, w: 300.0, h: 250.0 };
        banner
    };
    let main = || leaf(&[("a", "/a")], &[], &["an article of some words"]);
    let before = tree("1", vec![main(), banner("shoes")]);
    let after = tree("2", vec![main(), banner("cars")]);
    let delta = check(&before, &after);
    assert!(delta.structure.is_empty(), "{:?}", lines(&delta));
    assert_eq!(delta.operations().count(), 4);
}

#[test]
fn an_element_may_move_into_a_new_block_and_out_of_a_deleted_one() {
    let before = tree(
        "1",
        vec![leaf(&[("a", "/a"), ("b", "/b")], &[], &["one two"]), leaf(&[("c", "/c")], &[], &["x y"])],
    );
    let after = tree(
        "2",
        vec![
            leaf(&[("a", "/a")], &[], &["one two"]),
            Block::inner(vec![leaf(&[("c", "/c"), ("b", "/b"), ("n", "/n")], &[], &["all new here"])]),
        ],
    );
    let delta = check(&before, &after);
    assert!(lines(&delta).contains(&"move link b B1 B2.1".to_string()), "{:?}", lines(&delta));
}

fn stories() -> Vec<Block> {
    let story = |n: usize| {
        let text = |part: usize| format!("story {n} has part {part} with words{n}{part} of its own");
        let texts: Vec<String> = (0..3).map(text).collect();
        let link = (format!("headline number {n}"), format!("/story/{n}"));
        leaf(&[(&link.0, &link.1)], &[], &[&texts[0], &texts[1], &texts[2]])
    };
    (0..6).map(story).collect()
}

#[test]
fn a_wrapper_that_appears_or_vanishes_moves_nothing() {
    let (flat, mut wrapped) = (tree("1", stories()), stories());
    let tail = wrapped.split_off(4);
    let wrapped = tree("2", vec![Block::inner(vec![Block::inner(wrapped), Block::inner(tail)])]);
    for (before, after) in [(&flat, &wrapped), (&wrapped, &flat)] {
        let delta = check(before, after);
        assert_eq!(lines(&delta), [""; 0]);
        assert!(!delta.nested.is_empty() && delta.is_empty());
    }
}

#[test]
fn moves_next_to_a_new_wrapper_are_detected() {
    let before = tree("1", stories());
    let mut order = stories();
    let first = order.remove(0);
    order.push(first);
    let after = tree("2", vec![Block::inner(order)]);
    assert_eq!(lines(&check(&before, &after)), ["move block  B1 B1.6"]);
}

#[test]
fn punctuation_does_not_move() {
    let before = tree(
        "1",
        vec![leaf(&[], &[], &["one release", "( , )"]), leaf(&[], &[], &["another release", "of today"])],
    );
    let after = tree(
        "2",
        vec![leaf(&[], &[], &["one release"]), leaf(&[], &[], &["another release", "of today", "( , )"])],
    );
    let delta = check(&before, &after);
    let is_move = |line: &&String| line.starts_with("move");
    assert_eq!(lines(&delta).iter().filter(is_move).count(), 0, "{:?}", lines(&delta));
}

#[test]
fn splitting_a_leaf_moves_nothing() {
    let texts: Vec<String> =
        (0..8).map(|n| format!("text number {n} is about subject{n} and no other")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let whole =
        tree("1", vec![leaf(&[], &[], &texts), leaf(&[("end", "/end")], &[], &["the end of it all"])]);
    let parts = tree(
        "2",
        vec![
            leaf(&[], &[], &texts[..5]),
            leaf(&[], &[], &texts[5..]),
            leaf(&[("end", "/end")], &[], &["the end of it all"]),
        ],
    );
    for (before, after) in [(&whole, &parts), (&parts, &whole)] {
        let delta = check(before, after);
        assert_eq!(lines(&delta), [""; 0]);
        assert_eq!(delta.shifted.len(), 3);
    }
}

#[test]
fn links_that_differ_in_a_number_are_edited() {
    let before =
        tree("1", vec![leaf(&[("Comments (12)", "/c?n=12"), ("Home", "/")], &[], &["keep these words"])]);
    let after =
        tree("2", vec![leaf(&[("Comments (15)", "/c?n=15"), ("Home", "/")], &[], &["keep these words"])]);
    assert_eq!(lines(&check(&before, &after)), ["update link Comments (15) B1 B1"]);
}

#[test]
fn a_delta_does_not_apply_to_a_different_version() {
    let before = tree("1", vec![leaf(&[("a", "/a"), ("b", "/b")], &[], &["one"])]);
    let after = tree("2", vec![leaf(&[("a", "/a")], &[], &["one"])]);
    let delta = diff(&before, &after);
    assert!(delta.apply(&after).unwrap_err().to_string().contains("no link number 1"));
}

#[test]
fn reader_errors_contain_place_and_hint() {
    for (xml, reason) in [
        ("", "not Vi-Delta"),
        ("<Other/>", "not Vi-Delta"),
        ("<Delta url='' from='' to=''>", "truncated"),
        ("<Delta url='' from=''/>", "without the attribute to"),
        ("<Delta url='' from='' to=''><Block ref='x'/></Delta>", "not a block reference"),
        ("<Delta url='' from='' to=''><Look><Block ref='B1' box='1 2'/></Look></Delta>", "is not a box"),
    ] {
        let error = Delta::from_xml(xml).unwrap_err().to_string();
        assert!(error.contains(reason), "{xml}: {error}");
    }
}

#[test]
fn ten_thousand_links_in_any_order_take_no_quadratic_work() {
    // Quadratic work would be 10^8 comparisons of strings and would make the test very slow. No time is asserted.
    let numbered = |from: usize, step: usize| {
        let links = (0..10_000).map(|i| {
            let n = from + i * step % 10_007;
            Link::new(format!("link {n}"), format!("http://a.org/{n}"))
        });
        let texts = (0..10_000).map(|i| Text::new(format!("the same words and number {}", from + i)));
        tree("v", vec![Block::leaf(links.collect(), vec![], texts.collect())])
    };
    let delta = check(&numbered(0, 1), &numbered(3000, 7919));
    assert!(!delta.is_empty());
}

fn any_leaf() -> impl Strategy<Value = Block> {
    let link = ("[abc]{0,2}", "/[xy]{0,2}").prop_map(|(name, url)| Link::new(name, url));
    let image = ("[ab]{0,1}", "/[xy]{0,2}").prop_map(|(name, source)| Image::new(name, source));
    let text = "([abcd] ){0,5}<?".prop_map(Text::new);
    let role = prop_oneof![Just(BlockRole::Main), Just(BlockRole::Footer), Just(BlockRole::Other)];
    (vec(link, 0..4), vec(image, 0..3), vec(text, 0..4), 0..4u8, role, 0.0..1.0f32).prop_map(
        |(links, images, texts, place, role, importance)| {
            let rect = Rect { x: f32::from(place) * 100.0, y: 0.25, w: 100.0, h: 20.0 };
            let spot = |n: usize| TextPosition {
                text: (n % 3) as u32,
                byte: u32::from(place),
                n_bytes: u32::from(place % 3),
            };
            let spots = |n: usize| if place == 0 { Vec::new() } else { (0..n).map(spot).collect() };
            let places = ElementPositions { links: spots(links.len()), images: spots(images.len()) };
            Block { rect, role, importance, places, ..Block::leaf(links, images, texts) }
        },
    )
}

fn any_tree() -> impl Strategy<Value = BlockTree> {
    let block = any_leaf().prop_recursive(4, 24, 4, |child| vec(child, 1..4).prop_map(Block::inner));
    vec(block, 0..5).prop_map(|blocks| tree("v", blocks))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn applying_the_delta_gives_the_version_after(before in any_tree(), after in any_tree()) {
        check(&before, &after);
    }

    #[test]
    fn a_version_does_not_differ_from_itself(tree in any_tree()) {
        prop_assert!(diff(&tree, &tree).is_identity());
    }

    #[test]
    fn damaged_videlta_is_an_error_or_a_delta_but_no_panic(
        before in any_tree(), after in any_tree(), at in 0usize..4000, with in "\\PC{0,4}|[<>&\"/0-9]{1,3}"
    ) {
        let mut xml = diff(&before, &after).to_operations_xml();
        let at = (0..=at.min(xml.len())).rev().find(|at| xml.is_char_boundary(*at)).unwrap();
        xml.insert_str(at, &with);
        if let Ok(delta) = Delta::from_xml(&xml) {
            let _ = delta.apply(&before);
        }
        let _ = Delta::from_xml(&xml[at..]);
    }
}

/// A leaf with one text, and links at the bytes of their names in it.
fn sentence(text: &str, links: &[(&str, &str)]) -> Block {
    let mut block = leaf(links, &[], &[text]);
    let place = |name: &str| TextPosition {
        text: 0,
        byte: text.find(name).unwrap() as u32,
        n_bytes: name.len() as u32,
    };
    block.places.links = links.iter().map(|(name, _)| place(name)).collect();
    Block { importance: 1.0, ..block }
}

#[test]
fn a_changed_link_in_a_sentence_is_one_change() {
    use crate::page::importance::{ImportanceConfig, ImportanceForm, assess};
    let before = tree("1", vec![sentence("The office is led by Anna Ahn.", &[("Anna Ahn", "/anna")])]);
    let after = tree("2", vec![sentence("The office is led by Ben Bo.", &[("Ben Bo", "/ben")])]);
    let delta = check(&before, &after);
    let counted = |form: ImportanceForm| -> Vec<String> {
        let all = assess(&delta, &ImportanceConfig::new(form), &mut |_| Default::default()).contributions;
        let counted =
            delta.operations().zip(all).filter(|(_, contribution)| !contribution.is_counted_elsewhere);
        counted
            .map(|(operation, _)| format!("{} {}", operation.kind.name(), operation.subject_name()))
            .collect()
    };
    assert_eq!(counted(ImportanceForm::Monotone), ["update text"]);
    // The papers have links, and texts without them.
    assert_eq!(counted(ImportanceForm::Visual2009), ["insert link", "delete link"]);
    assert_eq!(counted(ImportanceForm::Pattern2011), ["insert link", "delete link"]);
}

#[test]
fn words_that_become_a_link_are_one_change_of_a_link() {
    let before = tree("1", vec![sentence("The report of the board is here.", &[])]);
    let after = tree("2", vec![sentence("The report of the board is here.", &[("report", "/r.pdf")])]);
    assert_eq!(lines(&check(&before, &after)), ["insert link report B1 B1"]);
    assert_eq!(lines(&check(&after, &before)), ["delete link report B1 B1"]);
}

#[test]
fn typography_is_not_a_change() {
    let page = |texts: &[&str], link: &str| tree("1", vec![leaf(&[(link, "/a")], &[], texts)]);
    let before = page(&["She said \"no\" - twice.", "Bonjour !"], "About us");
    let after = page(&["She said “no” – twice.", "Bonjour\u{202f}!"], "ABOUT US");
    let delta = check(&before, &after);
    assert!(delta.is_empty() && !delta.is_identity(), "{:?}", lines(&delta));
    assert_eq!(lines(&diff_with(&before, &after, Typography::Compared)).len(), 3);
    let other = page(&["She said “no” – thrice.", "Bonjour !"], "About us");
    assert_eq!(lines(&check(&before, &other)).len(), 1);
}

#[test]
fn merged_and_split_paragraphs_are_not_new() {
    let one = "The ferry leaves at noon from the north quay.";
    let two = "Dogs travel free, but only on the lower deck.";
    let both = format!("{one} {two}");
    let page = |texts: &[&str]| tree("1", vec![leaf(&[], &[], texts)]);
    let (apart, together) = (page(&["Head", one, two, "Tail"]), page(&["Head", &both, "Tail"]));
    assert!(check(&apart, &together).is_empty() && check(&together, &apart).is_empty());
    let edited = page(&["Head", &both.replace("free", "for half the fare"), "Tail"]);
    assert_eq!(lines(&check(&apart, &edited)).len(), 1, "{:?}", lines(&check(&apart, &edited)));
}

#[test]
fn two_stories_with_different_urls_are_never_one_edit() {
    let page = |name: &str, url: &str| tree("1", vec![leaf(&[(name, url), ("Home", "/")], &[], &["words"])]);
    let before = page("Announcing Rust 1.67.0", "http://a.org/2023/01/rust-1-67-0");
    let after = page("Announcing Rust 1.67.1", "http://a.org/2023/02/rust-1-67-1");
    let found = lines(&check(&before, &after));
    assert_eq!(
        found,
        ["delete link Announcing Rust 1.67.0 B1 B1", "insert link Announcing Rust 1.67.1 B1 B1"]
    );
}

/// A paragraph that becomes a list item, or moves to a different part of the page, is not deleted and inserted.
#[test]
fn a_text_that_moves_and_is_edited_is_one_update() {
    let rest = |n: usize| leaf(&[], &[], &[["first words that stay", "last words that stay"][n]]);
    let clause = "every mooring costs ten euro a night in summer";
    let edited = clause.replace("ten", "twelve");
    let before = tree("1", vec![leaf(&[], &[], &["first words that stay", clause]), rest(1)]);
    let after = tree("2", vec![rest(0), leaf(&[], &[], &[&edited, "last words that stay"])]);
    let delta = check(&before, &after);
    assert_eq!(lines(&delta), [format!("update text {edited} B1 B2")]);
    let into_new = tree("3", vec![rest(0), leaf(&[], &[], &[&edited]), rest(1)]);
    assert_eq!(lines(&check(&before, &into_new)), [format!("update text {edited} B1 B2")]);
    let other = tree(
        "5",
        vec![rest(0), leaf(&[], &[], &["dogs travel free of charge on deck", "last words that stay"])],
    );
    let found = lines(&check(&before, &other));
    assert!(found[0].starts_with("delete") && found[1].starts_with("insert"), "{found:?}");
}
