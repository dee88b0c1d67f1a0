//! Boxes for images that were not captured.
//!
//! A browser shows the alternative text of an image that it cannot load. Without a box, that text and a link around
//! it would be invisible. An image without alternative text gets the size of a browser's icon for a broken image, but
//! only in links without other content. Most other such images are tracking pixels.

use std::sync::Arc;

use blitz_dom::BaseDocument;
use blitz_dom::node::{ImageData, RasterImageData, SpecialElementData};

use crate::dom::{Dom, DomKind};
use crate::engine::NodeMap;

/// A character counts as half an em of 16 pixels.
const CHAR_WIDTH: usize = 8;
const LINE_HEIGHT: usize = 19;
/// Longest line of alternative text.
const LINE_CHARS: usize = 50;
/// Most lines. Longer text is cut.
const MOST_LINES: usize = 20;
/// The icon for a broken image.
const SIGN: (u32, u32) = (16, 16);

/// Width and height of an alternative text; `None` if it is blank.
pub(crate) fn size_of_text(text: &str) -> Option<(u32, u32)> {
    let n_chars = text.trim().chars().take(LINE_CHARS * MOST_LINES).count();
    if n_chars == 0 {
        return None;
    }
    let (width, n_lines) = (n_chars.min(LINE_CHARS), n_chars.div_ceil(LINE_CHARS));
    Some(((CHAR_WIDTH * width) as u32, (LINE_HEIGHT * n_lines) as u32))
}

/// For each node the size of its box, if it is an image that needs one without being captured.
pub(crate) fn sizes(dom: &Dom) -> Vec<Option<(u32, u32)>> {
    let wordless = wordless_links(dom);
    let size = |index: usize| {
        let node = &dom.nodes[index];
        if !(node.is_html() && node.tag() == "img") {
            return None;
        }
        let alternative = node.attribute("alt");
        alternative.and_then(size_of_text).or_else(|| wordless[index].then_some(SIGN))
    };
    (0..dom.nodes.len()).map(size).collect()
}

/// For each node whether it is in a link without text and without images that have alternative text.
fn wordless_links(dom: &Dom) -> Vec<bool> {
    let mut link_of: Vec<Option<usize>> = Vec::with_capacity(dom.nodes.len());
    let mut has_words = vec![false; dom.nodes.len()];
    for (index, node) in dom.nodes.iter().enumerate() {
        let above = node.parent.and_then(|parent| link_of[parent as usize]);
        let is_link = node.is_html() && node.tag() == "a" && node.attribute("href").is_some();
        let link = if is_link { Some(index) } else { above };
        let says_something = match &node.kind {
            DomKind::Text(text) => !text.trim().is_empty(),
            DomKind::Element { .. } => {
                node.tag() == "img" && node.attribute("alt").is_some_and(|alt| !alt.trim().is_empty())
            }
        };
        if let (Some(link), true) = (link, says_something) {
            has_words[link] = true;
        }
        link_of.push(link);
    }
    link_of.into_iter().map(|link| link.is_some_and(|link| !has_words[link])).collect()
}

/// Gives uncaptured images the size of their replacement. Sizes that the page sets take precedence.
pub(crate) fn size_placeholders(document: &mut BaseDocument, dom: &Dom, built: &NodeMap) {
    for (size, id) in sizes(dom).into_iter().zip(&built.ids) {
        let (Some((width, height)), Some(id)) = (size, id) else { continue };
        let Some(element) = document.get_node_mut(*id).and_then(|node| node.element_data_mut()) else {
            continue;
        };
        let is_captured = match &element.special_data {
            SpecialElementData::Image(image) => !matches!(**image, ImageData::None),
            _ => false,
        };
        if !is_captured {
            let image = ImageData::Raster(RasterImageData::new(width, height, Arc::new(Vec::new())));
            element.special_data = SpecialElementData::Image(Box::new(image));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{CapturedResource, nothing};
    use crate::{LayoutEngine, structural};

    const PAGE: &str = "<p>Words.</p><a href=/map><img src=map.png alt='Map of the city'></a><a href=/home><img src=logo.png></a>\
        <img src=count.gif><img src=gap.gif alt=''><a href=/all>All <img src=arrow.gif></a>";

    /// The alternative text or the source of each image that has a box.
    fn boxed(layout: &perennial_core::page::layout::Layout<'_>) -> Vec<String> {
        let images = layout.nodes.iter().filter(|node| node.tag == "img" && node.rect.area() > 0.0);
        images.map(|node| node.attribute("src").unwrap_or_default().to_string()).collect()
    }

    #[test]
    fn an_image_that_was_not_captured_has_the_box_of_its_words() {
        assert_eq!(size_of_text("  "), None);
        assert_eq!(size_of_text("Map"), Some((24, 19)));
        assert_eq!(size_of_text(&"a".repeat(1_000_000)), Some((400, 380)));
        let layout = LayoutEngine::new().layout(PAGE, "http://a.example/", &nothing);
        assert_eq!(boxed(&layout), ["map.png", "logo.png"]);
        let plain = structural::layout(&Dom::parse(PAGE), "http://a.example/").into_owned();
        assert_eq!(boxed(&plain), ["map.png", "logo.png"]);
    }

    #[test]
    fn an_image_that_was_captured_keeps_its_own_size() {
        let lookup = |_: &str| {
            let body = b"<svg xmlns='http://www.w3.org/2000/svg' width='70' height='30'></svg>".to_vec();
            Some(CapturedResource {
                status: 200,
                content_type: "image/svg+xml".into(),
                body,
                ..CapturedResource::default()
            })
        };
        let layout = LayoutEngine::new().layout(
            "<img src=i.svg alt='Long words about it'>",
            "http://a.example/",
            &lookup,
        );
        let image = layout.nodes.iter().find(|node| node.tag == "img").map(|node| node.rect);
        assert!(image.is_some_and(|rect| (rect.w, rect.h) == (70.0, 30.0)), "{image:?}");
    }
}
