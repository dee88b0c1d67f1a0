//! A parsed page and the layout of an earlier version -> a layout without the engine, when tags and styles are the same
//! (proposed in P-VISUAL 7.1 and 8; docs/papers.md, Reuse of structure).
//!
//! The cuts read columns, gaps, fonts and colours from the layout, which follow from tags and styles, and sizes
//! from the content, which is read anew. So a reused layout is cut as a full one is, and only the boxes in the tree are
//! those of the earlier layout.

use std::collections::HashMap;

use super::id::IdHasher;
use super::{BlockTree, NodeId, SegmentConfig, segment};
use crate::layout::{Layout, LayoutNode};

/// A node of a parsed page, before styles are applied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParsedNode<'a> {
    /// Index of the parent; parents come before children. `None` for the root alone.
    pub parent: Option<u32>,
    /// Lower-case tag name; empty for a text node.
    pub tag: &'a str,
    /// Attributes in document order.
    pub attributes: Vec<(&'a str, &'a str)>,
    /// The text of a text node.
    pub text: &'a str,
}

/// Attributes whose value is content. Styles hardly ever select by them.
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

/// A hash of tags and of what styles depend on, without content. `styles` is a hash of the bytes of the external
/// stylesheets, which the caller computes.
pub fn fingerprint(nodes: &[ParsedNode], styles: u64) -> NodeId {
    let mut hasher = IdHasher::new(b'S').number(styles);
    for node in nodes {
        hasher = hasher.number(node.parent.map_or(0, |parent| u64::from(parent) + 1));
        hasher = if node.tag.is_empty() { add_text(hasher, node, nodes) } else { add_element(hasher, node) };
    }
    hasher.finish()
}

/// The text of a `<style>` counts as a whole. Of other texts only their presence counts.
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
    // An image without a size in the markup has the size of its file, so that its address counts.
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

/// What is kept of a version, so that the next one needs no layout.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    fingerprint: NodeId,
    layout: Layout,
    /// For each node of the layout the parsed node it was made from.
    sources: Vec<u32>,
}

impl Plan {
    /// Matches a layout to the parsed page it was made from. `None` when the engine moved nodes, so that they cannot be
    /// matched one by one.
    pub fn new(nodes: &[ParsedNode], styles: u64, layout: Layout) -> Option<Plan> {
        let sources = match_nodes(nodes, &layout)?;
        Some(Plan { fingerprint: fingerprint(nodes, styles), layout, sources })
    }

    /// The fingerprint of the structure for which it holds.
    pub fn fingerprint(&self) -> NodeId {
        self.fingerprint
    }

    /// Number of nodes of its layout, which tells how much memory it takes.
    pub fn n_nodes(&self) -> usize {
        self.layout.nodes.len()
    }

    /// The layout of this version with the boxes of the earlier one, when the structure is the same.
    pub fn lay_out(&self, nodes: &[ParsedNode], styles: u64) -> Option<Layout> {
        (fingerprint(nodes, styles) == self.fingerprint).then(|| self.fill(nodes)).flatten()
    }

    /// The same for a caller that has compared the fingerprints already.
    pub fn fill(&self, nodes: &[ParsedNode]) -> Option<Layout> {
        let filled = self.layout.nodes.iter().zip(&self.sources).map(|(node, source)| {
            let source = nodes.get(*source as usize)?;
            let attribute = |((name, own), (_, given)): (&(String, String), &(&str, &str))| {
                let value = if is_content(name) { given } else { own.as_str() };
                (name.clone(), value.to_string())
            };
            Some(LayoutNode {
                tag: node.tag.clone(),
                attributes: node.attributes.iter().zip(&source.attributes).map(attribute).collect(),
                text: source.text.to_string(),
                ..*node
            })
        });
        let filled = filled.collect::<Option<Vec<LayoutNode>>>()?;
        Some(Layout {
            nodes: filled,
            base_url: self.layout.base_url.clone(),
            engine: self.layout.engine.clone(),
            ..self.layout
        })
    }
}

/// Cuts the next version of a page without laying it out; `None` when its structure has changed.
pub fn reuse(plan: &Plan, nodes: &[ParsedNode], styles: u64, config: &SegmentConfig) -> Option<BlockTree> {
    plan.lay_out(nodes, styles).map(|layout| segment(&layout, config))
}

/// Both lists are in document order, and a layout leaves nodes out but adds and moves none. So below each parent the next
/// equal node is the right one.
fn match_nodes(nodes: &[ParsedNode], layout: &Layout) -> Option<Vec<u32>> {
    let mut children: HashMap<Option<u32>, std::collections::VecDeque<u32>> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        children.entry(node.parent).or_default().push_back(index as u32);
    }
    let mut sources: Vec<u32> = Vec::with_capacity(layout.nodes.len());
    for node in &layout.nodes {
        let parent = match node.parent {
            Some(parent) => Some(*sources.get(parent as usize)?),
            None => None,
        };
        let candidates = children.get_mut(&parent)?;
        loop {
            let candidate = candidates.pop_front()?;
            if is_same(&nodes[candidate as usize], node) {
                sources.push(candidate);
                break;
            }
        }
    }
    Some(sources)
}

fn is_same(light: &ParsedNode, node: &LayoutNode) -> bool {
    let has_same_text =
        light.text == node.text || (light.text.trim().is_empty() && node.text.trim().is_empty());
    light.tag == node.tag
        && has_same_text
        && light.attributes.len() == node.attributes.len()
        && light
            .attributes
            .iter()
            .zip(&node.attributes)
            .all(|((n, v), (own_n, own_v))| n == own_n && v == own_v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::sketch::sketch;
    use proptest::prelude::*;

    fn light(layout: &Layout) -> Vec<ParsedNode<'_>> {
        let node = |node: &'_ LayoutNode| node.parent;
        layout
            .nodes
            .iter()
            .map(|own| ParsedNode {
                parent: node(own),
                tag: &own.tag,
                attributes: own
                    .attributes
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect(),
                text: &own.text,
            })
            .collect()
    }

    /// A page of cards, columns and prose with the given words.
    fn page(words: &[usize], side_class: &str) -> Layout {
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
            let plan = Plan::new(&light(&before), 1, before.clone()).unwrap();
            let config = SegmentConfig::default();
            let reused = reuse(&plan, &light(&after), 1, &config).unwrap();
            prop_assert_eq!(reused.without_boxes(), segment(&after, &config).without_boxes());
        }
    }

    #[test]
    fn another_class_style_or_paragraph_is_another_structure() {
        let words = [5, 6, 7, 8, 9, 10];
        let before = page(&words, "side");
        let plan = Plan::new(&light(&before), 1, before.clone()).unwrap();
        assert!(plan.lay_out(&light(&page(&[5, 1, 7, 8, 9, 3], "side")), 1).is_some());
        assert!(plan.lay_out(&light(&page(&words, "other")), 1).is_none());
        assert!(plan.lay_out(&light(&before), 2).is_none());
        let shorter = Layout { nodes: before.nodes[..before.nodes.len() - 3].to_vec(), ..before.clone() };
        assert!(plan.lay_out(&light(&shorter), 1).is_none());
    }

    #[test]
    fn nodes_that_a_layout_left_out_are_passed_over() {
        let full = sketch("<html><body><p>a</p><script>x</script><p>b</p></body></html>");
        let mut seen = full.clone();
        seen.nodes.retain(|node| node.tag != "script" && node.text != "x");
        let body = seen.nodes.iter().position(|node| node.tag == "body").unwrap() as u32;
        seen.nodes.iter_mut().filter(|node| node.tag == "p").for_each(|node| node.parent = Some(body));
        seen.nodes.last_mut().unwrap().parent = Some(4);
        let plan = Plan::new(&light(&full), 0, seen).unwrap();
        let next = sketch("<html><body><p>c</p><script>y</script><p>d</p></body></html>");
        let texts: Vec<String> =
            plan.lay_out(&light(&next), 0).unwrap().nodes.into_iter().map(|node| node.text).collect();
        assert_eq!(texts.concat(), "cd");
    }
}
