//! Properties of every page, and the blocks of small pages as a reader sees them.

pub(in crate::page::segment) mod sketch;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::page::layout::{Display, LayoutNode, Rgba};
use sketch::sketch;

fn tree(markup: &str) -> BlockTree {
    segment(&sketch(markup), &SegmentConfig::default())
}

/// The words of each leaf, with links in brackets.
fn leaves(tree: &BlockTree) -> Vec<String> {
    tree.leaves()
        .map(|leaf| {
            let links = leaf.links.iter().map(|link| format!("[{}]", link.name));
            links.chain(leaf.texts.iter().map(|text| text.text.clone())).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

const PROSE: &str = "Many words make a paragraph that a reader reads from its first letter to its last full stop, \
    and then there is one more sentence for good measure.";

fn paragraphs(n: usize) -> String {
    format!("<p>{PROSE}</p>").repeat(n)
}

#[test]
fn an_article_with_its_heading_is_one_block_between_navigation_and_footer() {
    let page = format!(
        "<html><body><nav><a href=\"/\">Home</a><a href=\"/news\">News</a><a href=\"/sport\">Sport</a><a href=\"/x\">More</a></nav>\
         <div><div><h1>A heading of some words</h1>{}</div></div>\
         <footer><p>Copyright by us, all rights reserved, and so on</p></footer></body></html>",
        paragraphs(6)
    );
    let tree = tree(&page);
    let leaves = leaves(&tree);
    assert_eq!(leaves.len(), 3, "{leaves:#?}");
    assert_eq!(leaves[0], "[Home] [News] [Sport] [More]");
    assert!(leaves[1].starts_with("A heading of some words Many words"));
    assert_eq!(leaves[2], "Copyright by us, all rights reserved, and so on");
    let roles: Vec<BlockRole> = tree.leaves().map(|leaf| leaf.role).collect();
    assert_eq!(roles, [BlockRole::Navigation, BlockRole::Main, BlockRole::Footer]);
}

#[test]
fn head_and_tail_of_an_article_are_separate_blocks() {
    let article = |head: &str, tail: &str| {
        let text = paragraphs(6);
        tree(&format!("<html><body><div><h1>The bridge is closed</h1>{head}{text}{tail}</div></body></html>"))
    };
    let head = "<p>By Ann Example and Ben Example</p><p>3 May 2026, 10:42</p><p>Share this story</p>\
                <figure><figcaption>The bridge as it was seen from the harbour on the morning of the third of May.</figcaption></figure>";
    let tail = "<p>Filed under: bridges, harbour</p><p>Send us your photographs of it</p><p>Subscribe to our letters</p>";
    let tree = article(head, tail);
    let roles: Vec<BlockRole> = tree.leaves().map(|leaf| leaf.role).collect();
    assert_eq!(roles, [BlockRole::Other, BlockRole::Main, BlockRole::Other], "{:#?}", leaves(&tree));
    assert!(leaves(&tree)[1].starts_with("Many words") && leaves(&tree)[1].ends_with("good measure."));
    let entries = |n: usize| "<li>Fog until noon, then some sun and a little wind</li>".repeat(n);
    let list = format!("<ul>{}<li>{PROSE}</li>{}</ul>", entries(3), entries(3));
    assert!(leaves(&article("", &list)).iter().any(|leaf| leaf.contains(PROSE) && leaf.ends_with("wind")));
    // Many captions are marked by a class name only.
    let captions = "<div><img src=\"a.jpg\" alt=\"a\"><div class=\"wp-caption-text\"><p>The bridge as it was seen from the harbour on \
                    the morning of the third of May. Photo by Ann Example</p></div></div>"
        .repeat(8);
    let gallery = article(&captions, "");
    let has_caption = |leaf: &&Block| leaf.texts.iter().any(|text| text.text.contains("Photo by"));
    let captioned: Vec<BlockRole> = gallery.leaves().filter(has_caption).map(|leaf| leaf.role).collect();
    assert_eq!(captioned, [BlockRole::Other], "{:#?}", leaves(&gallery));
    // A headline alone belongs to its text, and so does a single word below it.
    assert_eq!(leaves(&article("", "<p>Advice</p>")).len(), 1);
}

#[test]
fn columns_are_blocks() {
    let page = format!(
        "<html><body><div class=\"row\"><div>{}</div><div>{}</div></div></body></html>",
        paragraphs(4),
        "<ul><li><a href=\"/x\">a link of the side column with some words</a></li></ul>".repeat(6)
    );
    assert_eq!(leaves(&tree(&page)).len(), 2);
}

#[test]
fn cells_of_layout_tables_are_columns_and_data_rows_are_not() {
    let laid_out = format!(
        "<html><body><table><tr class=\"row\"><td>{}</td><td>{}</td></tr></table></body></html>",
        paragraphs(4),
        paragraphs(3)
    );
    assert_eq!(leaves(&tree(&laid_out)).len(), 2);
    let row = format!("<tr class=\"row\"><td>1997</td><td>{PROSE}</td></tr>");
    let data = format!("<html><body><table>{}</table></body></html>", row.repeat(6));
    assert_eq!(leaves(&tree(&data)).len(), 1);
}

#[test]
fn columns_of_a_grid_are_blocks_and_cards_are_not() {
    let page = format!(
        "<html><body><div class=\"row\"><div class=\"grid_6\">{0}</div><div class=\"grid_2\">{0}</div></div></body></html>",
        paragraphs(3)
    );
    let mut layout = sketch(&page);
    let n_leaves = |layout: &Layout| segment(layout, &SegmentConfig::default()).leaves().count();
    assert_eq!(n_leaves(&layout), 1);
    layout.nodes.iter_mut().filter(|node| node.rect.x > 600.0).for_each(|node| node.rect.w = 170.0);
    assert_eq!(n_leaves(&layout), 2);
}

#[test]
fn links_images_and_texts_are_read_with_resolved_urls() {
    let page = "<html><body><p>One <a href=\"../x?y=1\">two\n <b>three</b></a> fo<b>ur</b><br/>five<br/><br/>six \
        <img src=\"i/pic.png?v=2\"/><img src=\"b.gif\" alt=\"a  b\"/></p></body></html>";
    let tree = tree(page);
    let leaf = tree.leaves().next().unwrap();
    assert_eq!(leaf.links, [Link::new("two three", "http://a.org/x?y=1")]);
    assert_eq!(leaf.texts, [Text::new("One two three four five"), Text::new("six")]);
    let images = [
        Image::new("pic.png", "http://a.org/dir/i/pic.png?v=2"),
        Image::new("a b", "http://a.org/dir/b.gif"),
    ];
    assert_eq!(leaf.images, images);
}

/// The texts, and the links with their names in brackets if these are part of a text.
fn sentences(markup: &str) -> (Vec<String>, Vec<String>) {
    let tree = tree(&format!("<html><body>{markup}</body></html>"));
    let (mut texts, mut links) = (Vec::new(), Vec::new());
    for leaf in tree.leaves() {
        texts.extend(leaf.texts.iter().map(|text| text.text.clone()));
        for (n, (link, place)) in (0u32..).zip(leaf.links.iter().zip(&leaf.places.links)) {
            let name = leaf.text_around_link(n).map(|text| {
                let (from, n_bytes) = (place.byte as usize, place.n_bytes as usize);
                leaf.texts[text as usize].text[from..from + n_bytes].to_owned()
            });
            assert!(name.as_ref().is_none_or(|name| *name == link.name));
            links.push(if name.is_some() { format!("[{}]", link.name) } else { link.name.clone() });
        }
    }
    (texts, links)
}

#[test]
fn a_text_is_the_sentence_as_it_is_read() {
    let a = |name: &str| format!("<a href=\"/{}\">{name}</a>", name.len());
    for (markup, text) in [
        (
            format!("<p>The minister, {}, resigned.</p>", a("Anna Ó Dálaigh")),
            "The minister, Anna Ó Dálaigh, resigned.",
        ),
        (
            format!("<li>Das Amt leitet {}, Vertreter ist {}.</li>", a("Jürgen Groß"), a("Ute Ahn")),
            "Das Amt leitet Jürgen Groß, Vertreter ist Ute Ahn.",
        ),
        (
            format!("<p>Fix a memory handling bug in {}.</p>", a("telnet(1)")),
            "Fix a memory handling bug in telnet(1).",
        ),
        (format!("<p>{}es en {}</p>", a("Autobus"), a("<b>Perú </b>")), "Autobuses en Perú"),
        (format!("<p>首相{}が辞任した。</p>", a("田中花子")), "首相田中花子が辞任した。"),
        (format!("<p>Tags: {}{}</p>", a("un"), a("deux")), "Tags: un deux"),
        (
            format!("<p>See <b>{}</b><br/>or {}.</p>", a("part one"), a("part two")),
            "See part one or part two.",
        ),
    ] {
        let (texts, links) = sentences(&markup);
        assert_eq!(texts, [text]);
        assert!(links.iter().all(|link| link.starts_with('[')), "{links:?}");
    }
}

#[test]
fn links_without_words_around_them_stand_alone() {
    let (texts, links) = sentences(
        "<p><a href=\"/a\">Home</a> | <a href=\"/b\">News</a></p><li><a href=\"/c\">Sport</a></li>\
         <div>Before <a href=\"/d\"><h2>A card</h2><p>with a teaser</p></a> after</div>\
         <p>Words<br/><br/><a href=\"/e\">below them</a></p>",
    );
    assert_eq!(texts, ["|", "Before", "after", "Words"]);
    assert_eq!(links, ["Home", "News", "Sport", "A card with a teaser", "below them"]);
}

#[test]
fn most_of_a_block_makes_it_collapsed_which_lowers_its_importance() {
    let page = format!(
        "<html><body><div class=\"row\"><div>{}</div><div>{}</div></div></body></html>",
        paragraphs(4),
        "<ul><li><a href=\"/x\">a link of the side column with some words</a></li></ul>".repeat(6)
    );
    let mut layout = sketch(&page);
    let plain = segment(&layout, &SegmentConfig::default());
    layout.nodes.iter_mut().filter(|node| node.rect.x > 600.0).for_each(|node| node.is_collapsed = true);
    let tree = segment(&layout, &SegmentConfig::default());
    let found: Vec<bool> = tree.leaves().map(|leaf| leaf.is_collapsed).collect();
    assert_eq!(found, [false, true]);
    let weights = [&plain, &tree].map(|tree| tree.leaves().nth(1).unwrap().importance);
    assert!(weights[1] > 0.0 && weights[1] < 0.7 * weights[0], "{weights:?}");
    assert_eq!(vixml::read(&vixml::write(&tree)).unwrap(), tree);
}

fn titles(markup: &str) -> Vec<String> {
    let list = tree(&format!("<html><body>{markup}</body></html>")).list.unwrap();
    list.items.into_iter().map(|item| item.title).collect()
}

#[test]
fn a_kicker_is_not_the_title_of_a_story() {
    let story = |kicker: &str, title: &str, slug: &str| {
        format!(
            "<div class=\"card\"><h3>{kicker}</h3><h2><a href=\"/news/{slug}\">{title}</a></h2><p>Some more words about it.</p></div>"
        )
    };
    let page = story("Real estate", "Rents in the harbour district rise again", "rents-rise-again")
        + &story(
            "Rat und Verwaltung heute",
            "Bürgermeisterin tritt nach neun Jahren zurück",
            "sie-tritt-zurueck",
        )
        + &story(
            "Rat und Verwaltung heute",
            "Die neue Brücke wird teurer als geplant",
            "bruecke-wird-teurer",
        )
        + &story("Opinión", "El puente que nadie quiso construir", "el-puente-que-nadie");
    let titles = titles(&page);
    assert_eq!(titles.len(), 4, "{titles:?}");
    assert!(titles[0].starts_with("Rents in") && titles[1].starts_with("Bürgermeisterin"), "{titles:?}");
    assert!(titles[2].starts_with("Die neue") && titles[3].starts_with("El puente"), "{titles:?}");
}

#[test]
fn the_link_carries_the_title_if_the_heading_is_a_label() {
    let story = |title: &str, slug: &str| {
        format!(
            "<div class=\"card\"><h3>Essay</h3><p><a href=\"/{slug}\">{title}</a></p><p><a href=\"/{slug}\">Read the whole text here</a></p></div>"
        )
    };
    let page = story("Why we sleep at noon", "why-we-sleep")
        + &story("On the use of old maps", "on-old-maps")
        + &story("A door without a house", "a-door-without");
    assert_eq!(titles(&page), ["Why we sleep at noon", "On the use of old maps", "A door without a house"]);
}

#[test]
fn short_titles_and_titles_that_differ_in_a_number_are_titles() {
    let posts = |names: &[(&str, &str)]| {
        let entry = |(name, slug): &(&str, &str)| {
            format!("<li class=\"post\"><a href=\"/2023/01/{slug}\">{name}</a></li>")
        };
        names.iter().map(entry).collect::<String>()
    };
    let releases = [
        ("Announcing Rust 1.67.1", "rust-1-67-1"),
        ("Announcing Rust 1.67.0", "rust-1-67-0"),
        ("Announcing Rust 1.66.1", "rust-1-66-1"),
    ];
    let short =
        [("Regen", "der-lange-regen"), ("Cats, dogs", "cats-and-dogs"), ("Hello world", "hello-new-world")];
    let all: Vec<_> = releases.into_iter().chain(short).collect();
    assert_eq!(titles(&format!("<ul>{}</ul>", posts(&all))).len(), 6);
    let menu =
        [("Home", "a"), ("News", "b"), ("Sport", "c"), ("About us", "d"), ("Shop", "e"), ("Contact", "f")];
    let entry = |(name, slug): &(&str, &str)| format!("<li class=\"m\"><a href=\"/{slug}\">{name}</a></li>");
    assert_eq!(
        titles(&format!("<ul>{}</ul>", menu.iter().map(entry).collect::<String>())),
        [""; 0],
        "a menu is no list"
    );
}

#[test]
fn a_list_of_posts_is_not_navigation() {
    let entry = |n: usize| {
        format!("<li class=\"post\"><a href=\"/2023/0{n}/a-post-about-{n}\">A post about number {n}</a></li>")
    };
    let page = format!("<html><body><ul>{}</ul></body></html>", (1..9).map(entry).collect::<String>());
    let roles: Vec<BlockRole> = tree(&page).leaves().map(|leaf| leaf.role).collect();
    assert!(!roles.contains(&BlockRole::Navigation), "{roles:?}");
}

#[test]
fn hidden_content_is_left_out() {
    let page = "<html><body><p>seen</p><p hidden=\"\">unseen</p><div aria-hidden=\"true\"><p>and this</p></div></body></html>";
    let mut layout = sketch(page);
    layout.nodes.iter_mut().filter(|node| node.text == "unseen").for_each(|node| node.is_visible = false);
    let tree = segment(&layout, &SegmentConfig::default());
    assert_eq!(leaves(&tree), ["seen and this"], "aria-hidden hides from screen readers only");
}

#[test]
fn session_ids_change_urls_but_not_ids() {
    let page = |sid: &str| tree(&format!("<html><body><a href=\"/x?sid={sid}\">to x</a></body></html>"));
    let (before, after) = (page("1"), page("2"));
    assert_eq!(before.id(), after.id());
    assert_ne!(before, after);
}

#[test]
fn a_page_without_boxes_is_one_block() {
    let mut layout =
        sketch(&format!("<html><body><nav><p>a b c d e f g</p></nav>{}</body></html>", paragraphs(3)));
    layout.nodes.iter_mut().for_each(|node| node.rect = Rect::default());
    let tree = segment(&layout, &SegmentConfig::default());
    assert_eq!(tree.blocks.len(), 1);
    assert_eq!(tree.blocks[0].texts.len(), 4);
    assert_eq!(tree.blocks[0].importance, 1.0);
}

#[test]
fn no_page_gives_no_blocks() {
    assert_eq!(segment(&Layout::default(), &SegmentConfig::default()).blocks, []);
}

#[test]
fn finer_coherence_never_gives_fewer_blocks() {
    let page = format!(
        "<html><body><header><p>The name of the site</p></header><div>{}<h2>Part two of it</h2>{}</div>\
        <div class=\"related\"><ul><li><a href=\"/1\">One more thing to read now</a></li></ul></div></body></html>",
        paragraphs(3),
        paragraphs(3)
    );
    let layout = sketch(&page);
    let n_leaves = |coherence| {
        segment(&layout, &SegmentConfig { coherence, ..SegmentConfig::default() }).leaves().count()
    };
    let counts: Vec<usize> = (1..=10).map(n_leaves).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    assert!(counts[0] < counts[9], "{counts:?}");
}

/// Arbitrary nodes: wild boxes, any earlier parent, hidden nodes, and every tag with special treatment.
fn any_layout() -> impl Strategy<Value = Layout<'static>> {
    let tags = [
        "", "", "", "div", "p", "a", "img", "table", "tr", "td", "li", "h2", "hr", "br", "nav", "span",
        "script",
    ];
    let displays =
        [Display::Inline, Display::Block, Display::Block, Display::FlexOrGrid, Display::Table, Display::None];
    let coordinate =
        prop_oneof![8 => 0.0..1500.0f32, 1 => -500.0..1e9f32, 1 => Just(f32::NAN), 1 => Just(0.0f32)];
    let text = "[a-z]{1,6}( [a-z\u{e9}\u{4e2d}]{1,8}){0,6}|[ \n]{0,2}";
    let node = (0..tags.len(), 0..displays.len(), any::<u16>(), vec(coordinate, 4), text, 0..8u8);
    vec(node, 0..60).prop_map(move |nodes| {
        let mut path: Vec<u32> = Vec::new();
        let nodes =
            nodes.into_iter().enumerate().map(|(index, (tag, display, parent, at, text, bits))| LayoutNode {
                parent: any_parent(&mut path, index as u32, u32::from(parent)),
                tag: tags[tag].to_string().into(),
                attributes: if tag % 3 == 2 {
                    vec![("href".into(), text.clone().into()), ("src".into(), text.clone().into())]
                } else {
                    vec![]
                },
                text: if tags[tag].is_empty() { text.into() } else { "".into() },
                rect: Rect { x: at[0], y: at[1], w: at[2], h: at[3] },
                font_size: at[0] / 10.0,
                font_weight: 400,
                color: Rgba::default(),
                background: Rgba { r: 0, g: bits, b: 0, a: bits * 30 },
                has_background_image: bits == 3,
                display: if tags[tag].is_empty() { Display::Inline } else { displays[display] },
                is_fixed: bits == 1,
                is_visible: bits != 0,
                is_collapsed: bits == 2,
            });
        Layout { base_url: "http://a.org/".into(), nodes: nodes.collect(), ..Layout::default() }
    })
}

/// Usually a node that is still open, as in real pages; sometimes any earlier node.
fn any_parent(path: &mut Vec<u32>, index: u32, seed: u32) -> Option<u32> {
    if index > 0 && seed.is_multiple_of(16) {
        return Some(seed / 16 % index);
    }
    path.truncate((seed as usize % (path.len() + 1)).max(1));
    let parent = path.last().copied();
    path.push(index);
    parent
}

fn letters<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<char> {
    let mut letters: Vec<char> = texts.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    letters.sort_unstable();
    letters
}

proptest! {
    #[test]
    fn every_visible_letter_is_in_exactly_one_leaf(layout in any_layout(), coherence in 1..=10u8) {
        let tree = segment(&layout, &SegmentConfig { coherence, ..SegmentConfig::default() });
        let page = PageFacts::new(&layout, &[]);
        let seen = (0..layout.nodes.len()).filter(|i| page.is_seen[*i]).map(|i| &*layout.nodes[i].text);
        // A link may be named after its image, which is not text of the page.
        let in_links = tree.leaves().flat_map(|leaf| leaf.links_outside_texts().filter(|link| leaf.images.iter().all(|image| image.name != link.name)));
        let in_texts = tree.leaves().flat_map(|leaf| leaf.texts.iter().map(|text| text.text.as_str()));
        prop_assert_eq!(letters(seen), letters(in_links.map(|link| link.name.as_str()).chain(in_texts)));
    }

    #[test]
    fn trees_are_sound(layout in any_layout()) {
        let tree = segment(&layout, &SegmentConfig::default());
        let sum: f32 = tree.leaves().map(|leaf| leaf.importance).sum();
        prop_assert!(tree.blocks.is_empty() || (sum - 1.0).abs() < 1e-4, "{}", sum);
        for block in tree.walk() {
            prop_assert!((1..=10).contains(&block.doc));
            prop_assert_eq!(block.id, block.content_id());
            prop_assert!(block.is_leaf() != block.texts.is_empty() || !block.links.is_empty() || !block.images.is_empty() || !block.is_leaf());
            prop_assert!(block.rect.x.is_finite() && block.rect.w.is_finite());
        }
        prop_assert_eq!(vixml::read(&vixml::write(&tree)).unwrap(), tree);
    }
}

fn with_parts(pin: Option<&str>, ignored: &[&str]) -> SegmentConfig {
    let selector = |text: &str| Selector::parse(text).unwrap();
    SegmentConfig {
        pins: pin.map(|pin| Pin { selector: selector(pin), importance: 0.9 }).into_iter().collect(),
        ignored: ignored.iter().map(|text| selector(text)).collect(),
        ..SegmentConfig::default()
    }
}

#[test]
fn ignored_parts_are_not_in_the_tree() {
    let page = |visitors: &str| {
        sketch(&format!(
            "<html><body><div id=\"top\"><p class=\"counter\">{visitors} visitors</p></div><div><div>{}</div></div>\
             <ul><li>An item <em class=\"counter\">{visitors}</em> of the list</li></ul></body></html>",
            paragraphs(3)
        ))
    };
    let config = with_parts(None, &[".counter"]);
    let (before, after) = (segment(&page("17"), &config), segment(&page("18"), &config));
    assert!(!leaves(&before).join(" ").contains("17"), "{:?}", leaves(&before));
    assert!(leaves(&before).join(" ").contains("An item of the list"), "{:?}", leaves(&before));
    assert_eq!(before, after);
    assert_ne!(
        segment(&page("17"), &SegmentConfig::default()),
        segment(&page("18"), &SegmentConfig::default())
    );
    assert!(segment(&page("17"), &with_parts(None, &["body"])).blocks.is_empty());
}

#[test]
fn pinned_parts_have_their_share() {
    let prices =
        "<ul id=\"prices\"><li>Bread 3.20 today</li><li>Milk 1.10 today</li><li>Salt 0.90 today</li></ul>";
    let page =
        sketch(&format!("<html><body><div><div>{}</div></div><hr>{prices}</body></html>", paragraphs(5)));
    let share = |config: &SegmentConfig| -> f32 {
        let tree = segment(&page, config);
        let is_price = |leaf: &&Block| leaf.texts.iter().any(|text| text.text.contains("Bread"));
        tree.leaves().filter(is_price).map(|leaf| leaf.importance).sum()
    };
    assert!(share(&SegmentConfig::default()) < 0.5);
    assert!((share(&with_parts(Some("#prices"), &[])) - 0.9).abs() < 1e-3);
}

#[test]
fn visible_words_without_a_box_are_counted() {
    let mut page = sketch(
        "<html><body><p>Some words</p><p>lost \u{2014} ones</p><p>\u{200b}</p><p>no</p></body></html>",
    );
    for node in page.nodes.iter_mut().skip(4) {
        node.rect = Rect::default();
        node.is_visible = node.text != "no";
    }
    let (tree, n_lost) = segment_with_lost_words(&page, &SegmentConfig::default());
    assert_eq!(leaves(&tree), ["Some words"]);
    assert_eq!(n_lost, 3);
}

#[test]
fn different_settings_give_a_different_engine_name() {
    let page = sketch("<html><body><p class=\"x\">Some words</p></body></html>");
    let engine = |config: &SegmentConfig| segment(&page, config).engine;
    assert_eq!(engine(&SegmentConfig::default()), "sketch cut/5");
    let configs = [
        SegmentConfig::default(),
        with_parts(Some(".x"), &[]),
        with_parts(None, &[".x"]),
        with_parts(None, &[".x", ".y"]),
        SegmentConfig { coherence: 8, ..SegmentConfig::default() },
    ];
    for (a, one) in configs.iter().enumerate() {
        for (b, other) in configs.iter().enumerate() {
            assert_eq!(engine(one) == engine(other), a == b, "{one:?} {other:?}");
        }
    }
}

#[test]
fn lost_words_are_counted_but_hidden_ones_are_not() {
    let mut layout =
        sketch("<html><body><p>Some words that have a place</p><p>four words without one</p></body></html>");
    let config = SegmentConfig::default();
    assert_eq!(segment_with_lost_words(&layout, &config).1, 0);
    let lost = layout.nodes.iter_mut().find(|node| node.text.starts_with("four")).unwrap();
    lost.rect = Rect::default();
    assert_eq!(segment_with_lost_words(&layout, &config).1, 4);
    lost_is_hidden(&mut layout);
    assert_eq!(segment_with_lost_words(&layout, &config).1, 0, "hidden words are not lost");
}

fn lost_is_hidden(layout: &mut Layout) {
    if let Some(lost) = layout.nodes.iter_mut().find(|node| node.text.starts_with("four")) {
        lost.is_visible = false;
    }
}

#[test]
fn a_name_does_not_outweigh_prose() {
    for class in ["ad_body", "overlay", "widget", "comment-box"] {
        let page = format!(
            "<html><body><nav><a href=\"/\">Home</a><a href=\"/news\">News</a></nav><div class=\"{class}\">{}</div></body></html>",
            paragraphs(5)
        );
        let tree = tree(&page);
        let article = tree.leaves().find(|leaf| leaf.texts.len() >= 5).unwrap();
        assert_eq!(article.role, BlockRole::Main, "{class}");
    }
    let banner = format!(
        "<html><body><div>{}</div><div class=\"ad_body\"><a href=\"/x\">Buy these shoes today and never walk again in others</a></div></body></html>",
        paragraphs(5)
    );
    assert!(tree(&banner).leaves().any(|leaf| leaf.role == BlockRole::Advertisement));
}

#[test]
fn comments_have_a_role_of_their_own() {
    for comment in ["<li class=\"comment\"><article><p>{}</p></article></li>", "<p>{}</p>"] {
        let comments = comment.replace("{}", PROSE).repeat(4);
        let page = format!(
            "<html><body><main><div>{}</div><section id=\"comments\"><h2>Comments</h2>{comments}</section></main></body></html>",
            paragraphs(4).replace(PROSE, "The harbour office said on Monday that the ferry will not sail until the pier has been mended.")
        );
        let tree = tree(&page);
        for leaf in tree.leaves() {
            let is_comment = leaf.texts.iter().any(|text| text.text == PROSE);
            assert_eq!(leaf.role == BlockRole::Comments, is_comment, "{comment}: {leaf:?}");
        }
    }
}

/// Words of names are not needed: a list of dated texts beside the form for one more is a list of comments.
#[test]
fn comments_are_found_by_their_structure_in_any_language() {
    let article = paragraphs(4).replace(PROSE, "港の事務所は月曜日に、桟橋が修理されるまで船は出ないと述べ、町の人々は長い間待つことになると話した。そして市長は、来年の春までに新しい橋ができると約束したが、誰もそれを信じなかった。");
    let dated = |mark: &str| format!("<li class=k3><b>Ann</b> {mark}<p>{PROSE}</p></li>").repeat(3);
    let form = "<form><textarea name=x></textarea><button>投稿</button></form>";
    for (comments, are_comments) in [
        (format!("<ol class=q>{}</ol>{form}", dated("<time datetime=2026-05-03>5月3日</time>")), true),
        // Without a form it may be any list, without dates too, and one with headlines is a list of articles.
        (format!("<ol class=q>{}</ol>", dated("<time>5月3日</time>")), false),
        (format!("<ol class=q>{}</ol>{form}", dated("")), false),
        (format!("<ol class=q>{}</ol>{form}", dated("<time>5月3日</time><h3>Story</h3>")), false),
    ] {
        let tree = tree(&format!("<html><body><main><div>{article}</div>{comments}</main></body></html>"));
        let said = tree.leaves().filter(|leaf| leaf.texts.iter().any(|text| text.text.contains(PROSE)));
        let roles: Vec<BlockRole> = said.map(|leaf| leaf.role).collect();
        assert!(!roles.is_empty(), "{comments}");
        assert!(
            roles.iter().all(|role| (*role == BlockRole::Comments) == are_comments),
            "{comments}: {roles:?}"
        );
    }
}

#[test]
fn teasers_next_to_an_article_are_a_separate_block() {
    let teaser = |n: usize| {
        format!(
            "<div class=\"t\"><h3><a href=\"/news/the-long-story-{n}\">A long story about thing {n}</a></h3><p>It begins like this and goes on.</p></div>"
        )
    };
    let page = format!(
        "<html><body><div>{}{}</div></body></html>",
        paragraphs(6),
        (0..6).map(teaser).collect::<String>()
    );
    let tree = tree(&page);
    let of_article = |leaf: &&Block| leaf.texts.iter().any(|text| text.text == PROSE);
    let article = tree.leaves().find(of_article).unwrap();
    assert_eq!(article.links.len(), 0);
    assert_eq!(article.role, BlockRole::Main);
    assert!(tree.leaves().filter(|leaf| !of_article(leaf)).all(|leaf| leaf.role != BlockRole::Main));
}

#[test]
fn a_section_of_the_main_element_is_no_footer_whatever_its_name() {
    let page = format!(
        "<html><body><nav><a href=/a>One</a><a href=/b>Two</a><a href=/c>Three</a><a href=/d>Four</a></nav><main><h1>Terms</h1>\
         <section class=\"legal_section\">{0}</section><section class=\"legal_section\">{0}</section></main>\
         <footer class=\"legal\"><a href=/e>Imprint</a><a href=/f>Contact</a><a href=/g>Privacy of visitors</a><a href=/h>The office</a></footer></body></html>",
        paragraphs(5)
    );
    let found = tree(&page);
    let roles: Vec<BlockRole> = found.leaves().map(|leaf| leaf.role).collect();
    assert!(roles.contains(&BlockRole::Main) && roles.last() == Some(&BlockRole::Footer), "{roles:?}");
    assert_eq!(roles.iter().filter(|role| **role == BlockRole::Footer).count(), 1, "{roles:?}");
}

#[test]
fn stories_in_the_header_of_a_page_are_stories_of_other_pages() {
    let story = |name: &str| {
        format!(
            "<li><article><h3>The story of the {name}</h3><p>Come in spring.</p><a href=\"/news/the-old-{name}\">Read it</a></article></li>"
        )
    };
    let stories: String = ["harbour", "lighthouse", "ferry", "pier"].map(story).concat();
    let page = |content: &str| {
        format!(
            "<html><body><header><ul>{stories}</ul></header><main><h1>Mission</h1>{content}</main></body></html>"
        )
    };
    let of = |page: &str, word: &str| {
        let tree = tree(page);
        tree.leaves().find(|leaf| leaf.words().any(|words| words.contains(word))).unwrap().role
    };
    assert_eq!(of(&page(&paragraphs(4)), "lighthouse"), BlockRole::Related);
    assert_ne!(of(&page(""), "lighthouse"), BlockRole::Related, "without other prose they are the page");
}
