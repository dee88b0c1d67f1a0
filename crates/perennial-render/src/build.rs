//! Converts a parsed page into the engine's document, with changes where the engine would fail:
//!
//! - Unresolvable `href` and `src` attributes, which would make it panic, are left out.
//! - Print and alternate stylesheets, which it would apply to the screen, are left out or wrapped in `@media`.
//! - Spans are capped, because 10,000 columns cost memory each.
//! - A vector graphic is a box with a size. Its contents are not part of the page's text.

use std::sync::Arc;

use blitz_dom::node::{ImageData, RasterImageData, SpecialElementData};
use blitz_dom::{Attribute, BaseDocument, DocumentMutator, NodeId, QualName};
use html5ever::ns;
use url::Url;

use crate::dom::{Dom, DomKind, DomNode};
use crate::engine::NodeMap;
use crate::mentions::Mentions;
use crate::resource::svg_intrinsic_size;

/// Most columns or rows of a cell.
const MAX_SPAN: u32 = 200;

pub(crate) struct DocumentBuilder<'a> {
    dom: &'a Dom,
    base: &'a Url,
    built: NodeMap,
    mentions: &'a mut Mentions,
    svgs: Vec<(NodeId, (u32, u32))>,
}

impl<'a> DocumentBuilder<'a> {
    pub(crate) fn new(dom: &'a Dom, base: &'a Url, mentions: &'a mut Mentions) -> DocumentBuilder<'a> {
        let built = NodeMap { ids: vec![None; dom.nodes.len()] };
        DocumentBuilder { dom, base, built, mentions, svgs: Vec::new() }
    }

    /// Creates the nodes in document order, because the engine orders stylesheets by creation.
    pub(crate) fn into_document(mut self, document: &mut BaseDocument) -> NodeMap {
        let root_id = document.root_node().id;
        let mut mutator = document.mutate();
        let mut index = 0;
        while let Some(node) = self.dom.nodes.get(index) {
            let id = self.create(&mut mutator, index as u32);
            self.built.ids[index] = id;
            let is_entered = id.is_some() && !is_opaque(node);
            index = if is_entered { index + 1 } else { node.end as usize };
        }
        self.join(&mut mutator);
        if let Some(top) = self.built.ids.first().copied().flatten() {
            mutator.append_children(root_id, &[top]);
        }
        drop(mutator);
        self.size_vector_graphics(document);
        self.built
    }

    /// Connects the nodes, all children of an element at once.
    fn join(&self, mutator: &mut DocumentMutator<'_>) {
        let mut children: Vec<NodeId> = Vec::new();
        for (index, id) in (0..).zip(&self.built.ids) {
            let Some(id) = *id else { continue };
            children.clear();
            children.extend(self.dom.children(index).filter_map(|child| self.built.ids[child as usize]));
            if !children.is_empty() {
                mutator.append_children(id, &children);
            }
        }
    }

    fn create(&mut self, mutator: &mut DocumentMutator<'_>, index: u32) -> Option<NodeId> {
        let node = &self.dom.nodes[index as usize];
        let (name, attributes) = match &node.kind {
            DomKind::Text(text) => return Some(mutator.create_text_node(text)),
            DomKind::Element { name, attributes } => (name, attributes),
        };
        if is_left_out(node) {
            return None;
        }
        if name.ns == ns!(html) {
            match &*name.local {
                "style" => return self.style(mutator, index),
                "link" => return self.stylesheet(mutator, node),
                _ => {}
            }
        }
        let attributes = attributes.iter().filter_map(|attribute| self.attribute(node, attribute)).collect();
        let id = mutator.create_element(name.clone(), attributes);
        if &*name.local == "svg" {
            let size = svg_intrinsic_size(
                node.attribute("width"),
                node.attribute("height"),
                node.attribute("viewBox"),
            );
            self.svgs.push((id, size.unwrap_or((300, 150))));
        }
        Some(id)
    }

    fn attribute(&self, node: &DomNode, attribute: &html5ever::Attribute) -> Option<Attribute> {
        if !takes(node.tag(), attribute) {
            return None;
        }
        let name = &*attribute.name.local;
        let value = &*attribute.value;
        let value = match name {
            "src" => self.base.join(value.trim()).ok()?.to_string(),
            "colspan" | "rowspan" | "span" => {
                value.trim().parse::<u32>().unwrap_or(1).clamp(1, MAX_SPAN).to_string()
            }
            // `start="0"` underflows in the engine.
            "start" if value.trim().parse::<u32>().is_ok_and(|start| start == 0) => return None,
            _ => value.to_string(),
        };
        Some(Attribute { name: attribute.name.clone(), value })
    }

    /// Only stylesheets for the screen matter. One with a media query becomes an `@import` with that query.
    fn stylesheet(&self, mutator: &mut DocumentMutator<'_>, node: &DomNode) -> Option<NodeId> {
        let rel = node.attribute("rel").unwrap_or_default().to_ascii_lowercase();
        let mut words = rel.split_ascii_whitespace();
        let is_preload = rel.contains("preload") && node.attribute("as") == Some("style");
        if !(words.clone().any(|word| word == "stylesheet") || is_preload)
            || words.any(|word| word == "alternate")
        {
            return None;
        }
        if node.attribute("disabled").is_some() {
            return None;
        }
        let url = self.base.join(node.attribute("href")?.trim()).ok()?;
        // Stylesheets that a script enables later often start with `media="print"`.
        let media = match node.attribute("onload") {
            Some(onload) if onload.contains("media") => "all",
            _ => node.attribute("media").unwrap_or("all").trim(),
        };
        if is_preload && node.attribute("onload").is_none() {
            return None;
        }
        if matches!(media.to_ascii_lowercase().as_str(), "" | "all" | "screen") {
            let attributes = [("rel", "stylesheet"), ("href", url.as_str())]
                .map(|(name, value)| Attribute { name: html_name(name), value: value.to_string() });
            return Some(mutator.create_element(html_element("link"), attributes.into()));
        }
        let quoted_url = url.as_str().replace('\\', "%5C").replace('"', "%22");
        Some(style_element(
            mutator,
            &format!("@import url(\"{quoted_url}\") {};", media.replace([';', '{', '}'], " ")),
        ))
    }

    fn style(&mut self, mutator: &mut DocumentMutator<'_>, index: u32) -> Option<NodeId> {
        let css = self.dom.text_content(index);
        self.mentions.read(&css);
        let media = self.dom.nodes[index as usize].attribute("media").unwrap_or("all").trim();
        let is_for_screen = matches!(media.to_ascii_lowercase().as_str(), "" | "all" | "screen");
        if is_for_screen || css.contains("@import") {
            return Some(style_element(mutator, &css));
        }
        Some(style_element(mutator, &format!("@media {} {{\n{css}\n}}", media.replace([';', '{', '}'], " "))))
    }

    fn size_vector_graphics(&self, document: &mut BaseDocument) {
        for &(id, (width, height)) in &self.svgs {
            if let Some(element) = document.get_node_mut(id).and_then(|node| node.element_data_mut()) {
                let image = ImageData::Raster(RasterImageData::new(width, height, Arc::new(Vec::new())));
                element.special_data = SpecialElementData::Image(Box::new(image));
            }
        }
    }
}

/// Whether the engine does not need the element. No script runs, and the base URL is known.
pub(crate) fn is_left_out(node: &DomNode) -> bool {
    node.is_html() && matches!(node.tag(), "script" | "base" | "meta")
}

/// Whether the contents of the element take no part in layout.
pub(crate) fn is_opaque(node: &DomNode) -> bool {
    !node.is_html()
        || matches!(node.tag(), "script" | "iframe" | "object" | "video" | "audio" | "canvas" | "style")
}

/// Whether an attribute can affect the engine. Scripts and frames are not loaded, so their URLs are left out.
pub(crate) fn takes(tag: &str, attribute: &html5ever::Attribute) -> bool {
    match &*attribute.name.local {
        // The attributes of a stylesheet link decide whether it applies.
        _ if tag == "link" => true,
        "src" => tag == "img",
        "srcdoc" | "srcset" | "data" => false,
        name => !name.starts_with("on"),
    }
}

fn style_element(mutator: &mut DocumentMutator<'_>, css: &str) -> NodeId {
    let style = mutator.create_element(html_element("style"), Vec::new());
    let text = mutator.create_text_node(css);
    mutator.append_children(style, &[text]);
    style
}

fn html_element(tag: &str) -> QualName {
    QualName::new(None, ns!(html), tag.into())
}

fn html_name(attribute: &str) -> QualName {
    QualName::new(None, ns!(), attribute.into())
}
