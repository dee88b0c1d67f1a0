//! The leaves of an object -> its links and images, and where it stands in the page.

use url::Url;

use super::boxes::BoxKind;
use super::page::Page;
use super::wrapper::Wrapper;
use super::{Image, Link};
use crate::text::dom::DomNode;

/// References of one object that are kept.
const MAX_REFERENCES: usize = 2_000;
/// Longer addresses are left out.
const MAX_URL_BYTES: usize = 8_192;
/// Images that say that they are smaller in one direction are marks and counters.
const MIN_SIDE: u32 = 40;
/// Longer descriptions are cut.
const MAX_TEXT_BYTES: usize = 2_000;
/// Elements of a path that are named.
const MAX_PATH: usize = 64;

/// Addresses against which a page's own are resolved.
pub(super) struct Base(Option<Url>);

impl Base {
    /// The page's address, and what its `base` element makes of it.
    pub(super) fn of(page: &Page<'_>, url: Option<&str>) -> Base {
        let own = url.and_then(|url| Url::parse(url).ok());
        let named = page.leaves.dom.base_href().filter(|href| href.len() <= MAX_URL_BYTES);
        let joined = named.and_then(|href| match &own {
            Some(own) => own.join(href).ok(),
            None => Url::parse(href).ok(),
        });
        Base(joined.or(own))
    }

    /// An address as it is reached from the page; as it is written where the page's own is unknown.
    pub(super) fn resolve(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.len() > MAX_URL_BYTES || href.starts_with('#') {
            return None;
        }
        let scheme = href.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if scheme.is_some_and(|scheme| {
            matches!(scheme.as_str(), "javascript" | "data" | "mailto" | "tel" | "blob" | "about")
        }) {
            return None;
        }
        match &self.0 {
            Some(base) => base.join(href).ok().map(String::from),
            None => Some(href.to_owned()),
        }
    }
}

/// The links in the text of an object, each address once.
pub(super) fn links(page: &Page<'_>, wrapper: &Wrapper, kept: &[usize], base: &Base) -> Vec<Link> {
    let dom = page.leaves.dom;
    let mut links: Vec<Link> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for node in wrapper.node..dom.nodes[wrapper.node as usize].end {
        let source = &dom.nodes[node as usize];
        let Some(href) = (source.tag() == "a").then(|| source.attribute("href")).flatten() else { continue };
        let is_kept = page
            .leaves
            .near(node)
            .is_some_and(|leaf| page.leaf(leaf).last >= node && kept.binary_search(&leaf).is_ok());
        let Some(address) = base.resolve(href).filter(|_| is_kept) else { continue };
        if links.len() < MAX_REFERENCES && known.insert(address.clone()) {
            links.push(Link { text: text_below(page, node), address });
        }
    }
    links
}

/// The images of an object with what stands below them, each address once. Boxes around images are often called captions or
/// galleries, so these count here.
pub(super) fn images(page: &Page<'_>, wrapper: &Wrapper, base: &Base) -> Vec<Image> {
    let dom = page.leaves.dom;
    let dropped = wrapper.dropped & !(BoxKind::Caption.bit() | BoxKind::Header.bit());
    let mut images: Vec<Image> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for node in wrapper.node..dom.nodes[wrapper.node as usize].end {
        let source = &dom.nodes[node as usize];
        if source.tag() != "img" || page.node_kinds[node as usize] & dropped != 0 || is_small(source) {
            continue;
        }
        let names = ["data-src", "data-lazy-src", "data-original", "src"];
        let address =
            names.iter().filter_map(|name| source.attribute(name)).find_map(|href| base.resolve(href));
        let Some(address) = address else { continue };
        if images.len() < MAX_REFERENCES && known.insert(address.clone()) {
            images.push(Image { address, description: description_of(page, node) });
        }
    }
    images
}

fn is_small(image: &DomNode) -> bool {
    ["width", "height"].iter().any(|side| {
        let value = image.attribute(side).map(|value| value.trim().trim_end_matches("px"));
        value.and_then(|value| value.parse::<u32>().ok()).is_some_and(|side| side < MIN_SIDE)
    })
}

/// The caption of the figure around an image, else its alternative text.
fn description_of(page: &Page<'_>, image: u32) -> String {
    let dom = page.leaves.dom;
    let figure =
        std::iter::successors(dom.nodes[image as usize].parent, |&node| dom.nodes[node as usize].parent)
            .take(6)
            .find(|&node| dom.nodes[node as usize].tag() == "figure");
    let caption = figure.map(|figure| text_below(page, figure)).filter(|text| !text.is_empty());
    caption.unwrap_or_else(|| bounded(dom.nodes[image as usize].attribute("alt").unwrap_or_default()))
}

fn text_below(page: &Page<'_>, node: u32) -> String {
    let dom = page.leaves.dom;
    let mut text = String::new();
    for inner in &dom.nodes[node as usize..dom.nodes[node as usize].end as usize] {
        if let crate::text::dom::DomKind::Text(part) = &inner.kind {
            text.push_str(part);
            if text.len() > MAX_TEXT_BYTES {
                break;
            }
        }
    }
    bounded(&text)
}

fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where an element stands, as a selector that people can read: `body > div#main > article.post`.
pub(super) fn path_of(page: &Page<'_>, node: u32) -> String {
    let dom = page.leaves.dom;
    let above = std::iter::successors(Some(node), |&node| dom.nodes[node as usize].parent).take(MAX_PATH);
    let mut names: Vec<String> = above.map(|node| name_of(&dom.nodes[node as usize])).collect();
    names.pop_if(|name| name.starts_with("html"));
    names.reverse();
    names.join(" > ")
}

fn name_of(node: &DomNode) -> String {
    let is_plain =
        |name: &&str| !name.is_empty() && name.len() <= 60 && !name.contains(['>', ' ', '#', '"', '\'']);
    let id = node.attribute("id").map(str::trim).filter(is_plain).map(|id| format!("#{id}"));
    let class = node
        .attribute("class")
        .and_then(|names| names.split_whitespace().find(is_plain))
        .map(|name| format!(".{name}"));
    format!("{}{}", node.tag(), id.or(class).unwrap_or_default())
}
