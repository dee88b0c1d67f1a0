//! A parsed page and the layout of an earlier version -> a layout without running the engine, if tags and styles are
//! equal. P-VISUAL 7.1 and 8 propose this (docs/papers.md, Reuse of structure).
//!
//! Cuts depend on columns, gaps, fonts and colours, which follow from tags and styles. They also depend on sizes of
//! the content, which are read from the new version. So a reused layout gives the same cuts as a new one. Only the
//! boxes in the tree are those of the earlier layout.

use super::NodeId;
use super::id::IdHasher;
use crate::page::layout::{Boxes, Layout, ParsedNode};

/// Attributes with content as their value. Styles rarely select by them.
fn is_content(name: &str) -> bool {
    matches!(
        name,
        "href"
            | "src"
            | "srcset"
            | "alt"
            | "title"
            | "content"
            | "value"
            | "datetime"
            | "placeholder"
            | "name"
            | "action"
            | "nonce"
            | "integrity"
    ) || name.starts_with("data-")
        || (name.starts_with("aria-") && name != "aria-hidden")
        || name.starts_with("on")
}

/// A hash of tags and of everything that styles depend on, without content. The caller computes `styles`, a hash of
/// the external stylesheets.
pub fn fingerprint(nodes: &[ParsedNode], styles: u64) -> NodeId {
    let mut hasher = IdHasher::new(b'S').number(styles);
    for node in nodes {
        hasher = hasher.number(node.parent.map_or(0, |parent| u64::from(parent) + 1));
        hasher = if node.tag.is_empty() { add_text(hasher, node, nodes) } else { add_element(hasher, node) };
    }
    hasher.finish()
}

/// The text of a `<style>` is hashed. For other texts only their presence counts.
fn add_text(hasher: IdHasher, node: &ParsedNode, nodes: &[ParsedNode]) -> IdHasher {
    let above = node.parent.and_then(|parent| nodes.get(parent as usize)).map_or("", |parent| parent.tag);
    match above {
        "style" => hasher.part(node.text),
        "script" | "title" | "noscript" | "template" => hasher,
        _ => hasher.number(u64::from(!node.text.trim().is_empty())),
    }
}

fn add_element(mut hasher: IdHasher, node: &ParsedNode) -> IdHasher {
    hasher = hasher.part(node.tag);
    // An image without a size in the markup has the size of its file, so its URL is hashed.
    let has = |wanted: &str| node.attributes.iter().any(|(name, _)| *name == wanted);
    let is_sized_by_file = node.tag == "img" && !(has("width") && has("height"));
    let is_style = node.tag == "link" || node.tag == "base";
    for (name, value) in &node.attributes {
        hasher = hasher.part(name);
        if !is_content(name) || is_style || (is_sized_by_file && matches!(*name, "src" | "srcset")) {
            hasher = hasher.part(value);
        }
    }
    hasher
}

/// The boxes of a page that the next version can reuse.
#[derive(Clone, PartialEq, Debug)]
pub struct ReusableLayout {
    fingerprint: NodeId,
    boxes: Boxes,
}

impl ReusableLayout {
    pub fn new(fingerprint: NodeId, boxes: Boxes) -> ReusableLayout {
        ReusableLayout { fingerprint, boxes }
    }

    pub fn fingerprint(&self) -> NodeId {
        self.fingerprint
    }

    /// Number of nodes, which determines its memory use.
    pub fn n_nodes(&self) -> usize {
        self.boxes.nodes.len()
    }

    /// Combines the nodes of a new version with the earlier boxes. The caller has compared the fingerprints.
    pub fn fill<'a>(&self, nodes: &[ParsedNode<'a>], base_url: &str) -> Option<Layout<'a>> {
        self.boxes.fill(nodes, base_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::layout::{LayoutNode, NodeBox};
    use crate::page::segment::tests::sketch::sketch;
    use crate::page::segment::{SegmentConfig, segment};
    use proptest::prelude::*;

    fn light<'a>(layout: &'a Layout) -> Vec<ParsedNode<'a>> {
        let attributes =
            |own: &'a LayoutNode| own.attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
        let node = |own: &'a LayoutNode| ParsedNode {
            parent: own.parent,
            tag: &own.tag,
            attributes: attributes(own),
            text: &own.text,
        };
        layout.nodes.iter().map(node).collect()
    }

    fn plan(layout: &Layout, styles: u64) -> ReusableLayout {
        let own = |(source, node): (u32, &LayoutNode)| NodeBox {
            source,
            parent: node.parent,
            rect: node.rect,
            font_size: node.font_size,
            font_weight: node.font_weight,
            color: node.color,
            background: node.background,
            has_background_image: node.has_background_image,
            display: node.display,
            is_fixed: node.is_fixed,
            is_visible: node.is_visible,
            is_collapsed: node.is_collapsed,
        };
        let nodes = (0..).zip(&layout.nodes).map(own).collect();
        let (engine, width, height) = (layout.engine.clone(), layout.width, layout.height);
        let boxes = Boxes { engine, width, height, is_unstyled: layout.is_unstyled, nodes };
        ReusableLayout::new(fingerprint(&light(layout), styles), boxes)
    }

    /// A page of cards, columns and prose with the given words.
    fn page(words: &[usize], side_class: &str) -> Layout<'static> {
        let text = |at: usize| "word ".repeat(words[at % words.len()]);
        let cards: String = (0..4)
            .map(|i| format!("<div class=\"card\"><h2>{}</h2><p>{}</p></div>", text(i), text(i + 1)))
            .collect();
        sketch(&format!(
            "<html><body><nav><a href=\"/{}\">{}</a><a href=\"/b\">b c</a></nav><div class=\"row\"><div>{cards}</div>\
             <div class=\"{side_class}\"><p>{}</p><ul><li><a href=\"/c\">{}</a></li></ul></div></div><footer><p>{}</p></footer></body></html>",
            words[0],
            text(2),
            text(3),
            text(4),
            text(5)
        ))
    }

    proptest! {
        #[test]
        fn a_reused_run_equals_a_full_one(
            before in proptest::collection::vec(1..60usize, 6),
            after in proptest::collection::vec(1..60usize, 6),
        ) {
            let (before, after) = (page(&before, "side"), page(&after, "side"));
            let config = SegmentConfig::default();
            let (plan, nodes) = (plan(&before, 1), light(&after));
            prop_assert_eq!(fingerprint(&nodes, 1), plan.fingerprint());
            let reused = segment(&plan.fill(&nodes, &after.base_url).unwrap(), &config);
            prop_assert_eq!(reused.without_boxes(), segment(&after, &config).without_boxes());
        }
    }

    #[test]
    fn a_changed_class_style_or_paragraph_is_a_different_structure() {
        let words = [5, 6, 7, 8, 9, 10];
        let before = page(&words, "side");
        let plan = plan(&before, 1);
        let is_same =
            |layout: &Layout, styles: u64| fingerprint(&light(layout), styles) == plan.fingerprint();
        assert!(is_same(&page(&[5, 1, 7, 8, 9, 3], "side"), 1));
        assert!(!is_same(&page(&words, "other"), 1));
        assert!(!is_same(&before, 2));
        let shorter = Layout { nodes: before.nodes[..before.nodes.len() - 3].to_vec(), ..before.clone() };
        assert!(!is_same(&shorter, 1));
    }

    #[test]
    fn nodes_without_a_box_are_skipped() {
        let full = sketch("<html><body><p>a</p><script>x</script><p>b</p></body></html>");
        let mut plan = plan(&full, 0);
        plan.boxes.nodes.retain(|node| !matches!(node.source, 4 | 5));
        plan.boxes.nodes[5].parent = Some(4);
        let next = sketch("<html><body><p>c</p><script>y</script><p>d</p></body></html>");
        let nodes = light(&next);
        let texts: Vec<_> = plan.fill(&nodes, "").unwrap().nodes.into_iter().map(|node| node.text).collect();
        assert_eq!(texts.concat(), "cd");
    }
}
