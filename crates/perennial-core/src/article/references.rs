//! The leaves of an article -> its links and images, and its position in the page.

use url::Url;

use super::boxes::BoxKind;
use super::page::LeafPage;
use super::wrapper::Wrapper;
use super::{ArticleImage, ArticleLink};
use crate::text::dom::DomNode;

/// The maximum number of links, and of images.
const MAX_REFERENCES: usize = 2_000;
/// Longer URLs are left out.
const MAX_URL_BYTES: usize = 8_192;
/// Images with a smaller width or height are icons and counters.
const MIN_SIDE: u32 = 40;
/// Longer descriptions are truncated.
const MAX_TEXT_BYTES: usize = 2_000;
/// The maximum number of elements in a path.
const MAX_PATH: usize = 64;

/// The base URL of a page.
pub(super) struct UrlBase(Option<Url>);

impl UrlBase {
    /// The page's URL, modified by its `base` element.
    pub(super) fn new(page: &LeafPage<'_>, url: Option<&str>) -> UrlBase {
        let own = url.and_then(|url| Url::parse(url).ok());
        let named = page.leaves.dom.base_href().filter(|href| href.len() <= MAX_URL_BYTES);
        let joined = named.and_then(|href| match &own {
            Some(own) => own.join(href).ok(),
            None => Url::parse(href).ok(),
        });
        UrlBase(joined.or(own))
    }

    /// Resolves a URL; without a base it remains as written.
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

/// The links in the text of an article, each URL once.
pub(super) fn links(
    page: &LeafPage<'_>,
    wrapper: &Wrapper,
    kept: &[usize],
    base: &UrlBase,
) -> Vec<ArticleLink> {
    let dom = page.leaves.dom;
    let mut links: Vec<ArticleLink> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for node in wrapper.node..dom.nodes[wrapper.node as usize].end {
        let source = &dom.nodes[node as usize];
        let Some(href) = (source.tag() == "a").then(|| source.attribute("href")).flatten() else { continue };
        let is_kept = page
            .leaves
            .near(node)
            .is_some_and(|leaf| page.leaf(leaf).last >= node && kept.binary_search(&leaf).is_ok());
        let Some(url) = base.resolve(href).filter(|_| is_kept) else { continue };
        if links.len() < MAX_REFERENCES && known.insert(url.clone()) {
            links.push(ArticleLink { text: text_below(page, node), url });
        }
    }
    links
}

/// The images of an article with their captions, each URL once. Boxes around images are often named captions or
/// galleries, so these kinds count here.
pub(super) fn images(page: &LeafPage<'_>, wrapper: &Wrapper, base: &UrlBase) -> Vec<ArticleImage> {
    let dom = page.leaves.dom;
    let dropped = wrapper.dropped & !(BoxKind::Caption.bit() | BoxKind::Header.bit());
    let mut images: Vec<ArticleImage> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for node in wrapper.node..dom.nodes[wrapper.node as usize].end {
        let source = &dom.nodes[node as usize];
        if source.tag() != "img" || page.node_kinds[node as usize] & dropped != 0 || is_small(source) {
            continue;
        }
        let names = ["data-src", "data-lazy-src", "data-original", "src"];
        let url = names.iter().filter_map(|name| source.attribute(name)).find_map(|href| base.resolve(href));
        let Some(url) = url else { continue };
        if images.len() < MAX_REFERENCES && known.insert(url.clone()) {
            images.push(ArticleImage { url, description: image_description(page, node) });
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

/// The caption of the figure around an image, or its alternative text.
fn image_description(page: &LeafPage<'_>, image: u32) -> String {
    let dom = page.leaves.dom;
    let figure =
        std::iter::successors(dom.nodes[image as usize].parent, |&node| dom.nodes[node as usize].parent)
            .take(6)
            .find(|&node| dom.nodes[node as usize].tag() == "figure");
    let caption = figure.map(|figure| text_below(page, figure)).filter(|text| !text.is_empty());
    caption.unwrap_or_else(|| collapsed(dom.nodes[image as usize].attribute("alt").unwrap_or_default()))
}

fn text_below(page: &LeafPage<'_>, node: u32) -> String {
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
    collapsed(&text)
}

fn collapsed(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The position of an element as a readable selector: `body > div#main > article.post`.
pub(super) fn selector_path(page: &LeafPage<'_>, node: u32) -> String {
    let dom = page.leaves.dom;
    let above = std::iter::successors(Some(node), |&node| dom.nodes[node as usize].parent).take(MAX_PATH);
    let mut names: Vec<String> = above.map(|node| element_name(&dom.nodes[node as usize])).collect();
    names.pop_if(|name| name.starts_with("html"));
    names.reverse();
    names.join(" > ")
}

fn element_name(node: &DomNode) -> String {
    let is_plain =
        |name: &&str| !name.is_empty() && name.len() <= 60 && !name.contains(['>', ' ', '#', '"', '\'']);
    let id = node.attribute("id").map(str::trim).filter(is_plain).map(|id| format!("#{id}"));
    let class = node
        .attribute("class")
        .and_then(|names| names.split_whitespace().find(is_plain))
        .map(|name| format!(".{name}"));
    format!("{}{}", node.tag(), id.or(class).unwrap_or_default())
}
