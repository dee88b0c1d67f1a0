//! A parsed page -> the plain list of nodes that the structure fingerprint reads: no style, no layout.

use perennial_core::segment::ParsedNode;

use crate::dom::{Dom, DomKind};

/// The elements and texts of a page in document order.
pub fn parsed_nodes(dom: &Dom) -> Vec<ParsedNode<'_>> {
    let mut nodes: Vec<ParsedNode<'_>> = Vec::with_capacity(dom.nodes.len());
    let mut pending: Vec<(u32, Option<u32>)> = dom.root().map(|root| (root, None)).into_iter().collect();
    while let Some((index, parent)) = pending.pop() {
        let node = &dom.nodes[index as usize];
        let own = nodes.len() as u32;
        match &node.kind {
            DomKind::Text(text) => nodes.push(ParsedNode { parent, text, ..ParsedNode::default() }),
            DomKind::Element { attributes, .. } => {
                let attributes = attributes.iter().map(|a| (&*a.name.local, &*a.value)).collect();
                nodes.push(ParsedNode { parent, tag: node.tag(), attributes, text: "" });
                pending.extend(node.children.iter().rev().map(|child| (*child, Some(own))));
            }
            DomKind::Document | DomKind::Comment => {}
        }
    }
    nodes
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
