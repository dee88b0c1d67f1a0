//! The view as a whole, over trees and pages made by hand.

use perennial_core::page::importance::ImportanceConfig;
use perennial_core::page::segment::{Block, BlockTree, Link, Text};
use perennial_core::text::dom::{Dom, DomKind};
use proptest::prelude::*;

use super::*;
use perennial_engine::analyse::{AdFilters, NoiseSource};

fn nothing(_: &str) -> Option<perennial_render::CapturedResource> {
    None
}

fn comparison(before: BlockTree, after: BlockTree) -> Comparison {
    let filters = AdFilters::load(None).unwrap();
    Comparison::new(before, after, &ImportanceConfig::default(), &filters, NoiseSource::Unknown)
}

fn body(comparison: &Comparison, before: &str, after: &str) -> Dom {
    let original = |html| Some(Original { url: "http://a.example/", html, subresources: &nothing });
    let view = DiffView {
        comparison,
        form: "monotone",
        before: original(before),
        after: original(after),
        pin: None,
        frame: None,
    };
    Dom::parse(&view.page())
}

fn frame(outer: &Dom, name: &str) -> Dom {
    let mut frames = outer.nodes.iter().filter(|node| node.attribute("name") == Some(name));
    Dom::parse(frames.next().unwrap().attribute("srcdoc").unwrap())
}

fn leaf(links: Vec<Link>, texts: &[&str]) -> Block {
    let texts = texts.iter().map(|text| Text::new(*text)).collect();
    Block { importance: 0.5, ..Block::leaf(links, vec![], texts) }
}

fn tree(blocks: Vec<Block>) -> BlockTree {
    let mut tree =
        BlockTree { url: "http://a.example/".into(), engine: "test".into(), blocks, ..BlockTree::default() };
    tree.seal();
    tree
}

fn marked(dom: &Dom, op: &str) -> Vec<String> {
    let places = (0..dom.nodes.len() as u32).filter(|&place| {
        let node = &dom.nodes[place as usize];
        node.tag() == "pd-w" && node.attribute("data-pd-op") == Some(op)
    });
    places.map(|place| dom.text_content(place)).collect()
}

/// The analysis decides with importance that has gathered, and keeps a version that just reaches the threshold.
#[test]
fn a_version_is_kept_in_the_index_where_the_analysis_kept_it() {
    let version =
        |word: &str| tree(vec![leaf(vec![], &[&format!("The limit is {word} for all on the ring.")])]);
    let comparison = comparison(version("thirty"), version("fifty"));
    let threshold = comparison.assessment.importance.get();
    for (is_indexed, words) in [(true, ", kept in the index"), (false, ", below the index threshold")] {
        let frame = Some(DiffFrame { threshold, is_indexed, ..DiffFrame::default() });
        let (form, comparison) = ("monotone", &comparison);
        let view = DiffView { comparison, form, before: None, after: None, pin: None, frame };
        assert!(view.body().contains(words), "{is_indexed}");
    }
}

#[test]
fn a_word_is_marked_where_it_is_seen_and_not_where_it_is_hidden() {
    let page = |word: &str| {
        format!(
            "<div hidden>The limit is {word} for all cars on the ring.</div><p>A first text stands here before.</p>\
             <p>The limit is <b>{word}</b> for all <a href=/c>cars</a> on the ring.</p>"
        )
    };
    let text = |word: &str| format!("The limit is {word} for all on the ring.");
    let version = |word: &str| {
        let link = vec![Link::new("cars", "http://a.example/c")];
        tree(vec![leaf(link, &["A first text stands here before.", &text(word)])])
    };
    let comparison = comparison(version("fifty"), version("sixty"));
    let outer = body(&comparison, &page("fifty"), &page("sixty"));
    assert_eq!(marked(&frame(&outer, "pd-before"), "del"), ["fifty"]);
    assert_eq!(marked(&frame(&outer, "pd-after"), "ins"), ["sixty"]);
}

#[test]
fn a_deleted_text_has_a_place_in_the_version_after() {
    let page = |texts: &[&str]| texts.iter().map(|text| format!("<p>{text}</p>")).collect::<String>();
    let (first, second, third) =
        ("The first text of three.", "A second one that will go away.", "The third is last.");
    let comparison = comparison(
        tree(vec![leaf(vec![], &[first, second, third])]),
        tree(vec![leaf(vec![], &[first, third])]),
    );
    let outer = body(&comparison, &page(&[first, second, third]), &page(&[first, third]));
    let after = frame(&outer, "pd-after");
    let place = after.nodes.iter().find(|node| node.attribute("data-pd-at") == Some("1")).unwrap();
    assert!(after.text_content(place.parent.unwrap()).starts_with(first));
    assert!(frame(&outer, "pd-before").nodes.iter().any(|node| node.attribute("data-pd-frame") == Some("1")));
}

/// Pieces of markup that a page is made of, many of them broken or hostile.
fn any_page() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<script>alert(1)</script>".to_string()),
        Just("<style>p{background:url(http://e.example/x)}".to_string()),
        Just("</style>".to_string()),
        Just("<svg><style>".to_string()),
        Just("<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">".to_string()),
        Just("<img src=http://e.example/i onerror=alert(1)>".to_string()),
        Just("<a href=\"java\nscript:alert(1)\">link</a>".to_string()),
        Just("<svg><a xlink:href=javascript:alert(1)>x</a><set attributeName=href to=javascript:alert(1)>".to_string()),
        Just("<noscript><p title=\"</noscript><script>alert(1)</script>\">".to_string()),
        Just("<template><script>1</script></template><textarea></textarea><xmp><script>".to_string()),
        Just("\"></iframe><script>alert(1)</script>".to_string()),
        Just("<pd-w data-pd=1>forged</pd-w>".to_string()),
        "[a-z<>&\"'=/ \n]{0,12}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn no_page_contains_a_script_or_a_url_that_is_loaded(before in any_page(), after in any_page()) {
        let comparison = comparison(BlockTree::default(), BlockTree::default());
        let outer = body(&comparison, &before, &after);
        let scripts = outer.nodes.iter().filter(|node| node.tag() == "script").count();
        prop_assert_eq!(scripts, 1, "ours");
        for name in ["pd-before", "pd-after"] {
            for node in &frame(&outer, name).nodes {
                let DomKind::Element { attributes, .. } = &node.kind else { continue };
                prop_assert!(!["script", "iframe", "link", "base", "object", "embed", "set", "animate"].contains(&node.tag()), "{:?}", node);
                prop_assert!(node.attribute("data-pd").is_none(), "forged: {:?}", node);
                for attribute in attributes {
                    let (name, value) = (&*attribute.name.local, &*attribute.value);
                    let squeezed: String = value.chars().filter(|c| !c.is_whitespace()).collect();
                    prop_assert!(!name.starts_with("on") && !squeezed.contains("javascript:"), "{:?}", node);
                    prop_assert!(name != "src" || value.starts_with("data:image/"), "{:?}", node);
                }
            }
        }
    }
}

#[test]
fn what_went_stands_in_the_later_page_where_it_was() {
    let page = |middle: &str, last: &str| {
        format!(
            "<p>Cars must not drive faster than {middle} kilometres an hour here.</p><p>All of it holds from Monday on.</p>{last}"
        )
    };
    let blocks = |middle: &str, last: &[&str]| {
        let first = format!("Cars must not drive faster than {middle} kilometres an hour here.");
        let texts: Vec<&str> = [first.as_str(), "All of it holds from Monday on."]
            .into_iter()
            .chain(last.iter().copied())
            .collect();
        tree(vec![leaf(vec![], &texts)])
    };
    let gone = "Nobody has to pay for the bridge.";
    let comparison = comparison(blocks("thirty", &[gone]), blocks("fifty", &[]));
    let outer = body(&comparison, &page("thirty", &format!("<p>{gone}</p>")), &page("fifty", ""));
    let words = |name: &str, tag: &str| {
        let dom = frame(&outer, name);
        let places = (0..dom.nodes.len() as u32).filter(|&place| dom.nodes[place as usize].tag() == tag);
        places.map(|place| dom.text_content(place)).collect::<Vec<String>>()
    };
    assert_eq!(words("pd-after", "pd-s"), ["thirty", gone]);
    assert!(words("pd-before", "pd-s").is_empty());
    // Where it is, and in reading order.
    let after = frame(&outer, "pd-after");
    let text = after.text_content(0);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(at("than") < at("thirty") && at("thirty") < at("fifty") && at("Monday") < at("Nobody"), "{text}");
}
