//! Lists the nodes of a parsed page for the structure fingerprint.

use perennial_core::page::layout::ParsedNode;

use crate::dom::{Dom, DomKind};

/// The elements and texts of a page in document order, numbered as in [`Dom::nodes`].
pub fn parsed_nodes(dom: &Dom) -> Vec<ParsedNode<'_>> {
    dom.nodes
        .iter()
        .map(|node| match &node.kind {
            DomKind::Text(text) => ParsedNode { parent: node.parent, text, ..ParsedNode::default() },
            DomKind::Element { attributes, .. } => ParsedNode {
                parent: node.parent,
                tag: node.tag(),
                attributes: attributes.iter().map(|a| (&*a.name.local, &*a.value)).collect(),
                text: "",
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_in_document_order_with_their_parents() {
        let dom = Dom::parse("<p class=a>x<b>y</b></p>");
        let nodes = parsed_nodes(&dom);
        let tags: Vec<&str> =
            nodes.iter().map(|node| if node.tag.is_empty() { node.text } else { node.tag }).collect();
        assert_eq!(tags, ["html", "head", "body", "p", "x", "b", "y"]);
        assert_eq!(nodes[3].attributes, [("class", "a")]);
        assert_eq!(nodes[6].parent, Some(5));
    }
}
