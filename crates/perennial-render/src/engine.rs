//! Makes a [`Layout`] of a page and its captured subresources with the embedded engine, without a browser.
//!
//! The engine is blitz-dom, with Stylo for styles, Taffy for boxes and Parley for text. `build.rs` works around its
//! failures. `extract.rs` derives boxes for elements that have none in the engine.

use std::sync::{Arc, Mutex};

use blitz_dom::net::{Resource, ResourceLoadResponse};
use blitz_dom::util::ImageType;
use blitz_dom::{BaseDocument, DocumentConfig, NodeId, StyleThreading, UserAgentStylesheet};
use blitz_traits::net::{Bytes, NetHandler, NetProvider, Request};
use blitz_traits::shell::{ColorScheme, Viewport};
use perennial_core::page::layout::{Boxes, Layout, NodeBox, VIEWPORT_HEIGHT, VIEWPORT_WIDTH};
use url::Url;

use crate::build::DocumentBuilder;
use crate::dom::Dom;
use crate::fonts::Fonts;
use crate::mentions::Mentions;
use crate::parsed::parsed_nodes;
use crate::resource::{Subresource, SubresourceLookup, all_subresources};
use crate::{alternative, extract, tables, words};

/// Name and version of the engine, as recorded in its layouts. The last number increases whenever boxes change, so
/// that an upgrade does not look like a change of the page.
pub const ENGINE: &str =
    concat!("perennial-render/", env!("CARGO_PKG_VERSION"), " blitz/0.3.0-beta.4 boxes/2");

/// Default styles of browsers that the engine's own stylesheet lacks. List markers are left out, because they are not
/// text of the page.
const EXTRA_CSS: &str =
    "noscript,template,dialog:not([open]),datalist,area,param,source,track,rp{display:none!important}
    object,audio:not([controls]){display:none}
    select{display:inline-block;min-width:3em;min-height:1.3em}
    select>*{display:none!important}
    li{list-style:none!important}";

/// Shows a page that hides itself until its scripts have run, because no script runs here.
const REVEALING_CSS: &str = "html,body{display:block!important}
    html,body,body>*,body>*>*{opacity:1!important;visibility:visible!important}";

/// Most requests per page, because stylesheets may import each other in circles. Further requests get an empty
/// response.
const MAX_REQUESTS: usize = 4000;

/// Looks up several subresources, in order.
pub(crate) type FindSubresources<'a> = dyn Fn(&[String]) -> Vec<Subresource> + 'a;

/// The embedded engine with its fonts. It lays out one page at a time.
pub struct LayoutEngine {
    fonts: Fonts,
    sheets: Vec<UserAgentStylesheet>,
    revealing_sheets: Vec<UserAgentStylesheet>,
}

impl Default for LayoutEngine {
    fn default() -> LayoutEngine {
        LayoutEngine::new()
    }
}

impl LayoutEngine {
    /// Loads the fonts and the default stylesheet.
    pub fn new() -> LayoutEngine {
        let sheets = vec![UserAgentStylesheet::default_sheet(), UserAgentStylesheet::parse(EXTRA_CSS)];
        let revealing_sheets =
            sheets.iter().cloned().chain([UserAgentStylesheet::parse(REVEALING_CSS)]).collect();
        LayoutEngine { fonts: Fonts::load(), sheets, revealing_sheets }
    }

    /// Lays a page out. The engine may panic or hang on some pages; [`crate::WorkerPool`] guards against both.
    pub fn layout(&self, html: &str, url: &str, lookup: &SubresourceLookup) -> Layout<'static> {
        let dom = Dom::parse(html);
        let base = base_url(&dom, url);
        let boxes = self.boxes(&dom, &base, lookup);
        boxes.fill(&parsed_nodes(&dom), base.as_str()).unwrap_or_default().into_owned()
    }

    /// Lays out a parsed page. Its links resolve against `base`.
    pub fn boxes(&self, dom: &Dom, base: &Url, lookup: &SubresourceLookup) -> Boxes {
        self.boxes_with_lookup(dom, base, &|wanted| all_subresources(wanted, lookup))
    }

    /// The same with subresources that are already reduced for layout.
    pub(crate) fn boxes_with_lookup(&self, dom: &Dom, base: &Url, find: &FindSubresources) -> Boxes {
        let boxes = self.boxes_by(dom, base, find, &self.sheets);
        if dom.has_body_text && is_blank(dom, &boxes) {
            return self.boxes_by(dom, base, find, &self.revealing_sheets);
        }
        boxes
    }

    fn boxes_by(
        &self,
        dom: &Dom,
        base: &Url,
        find: &FindSubresources,
        sheets: &[UserAgentStylesheet],
    ) -> Boxes {
        let net = Arc::new(RequestCollector::default());
        let mut document = BaseDocument::new(DocumentConfig {
            viewport: Some(Viewport::new(
                VIEWPORT_WIDTH as u32,
                VIEWPORT_HEIGHT as u32,
                1.0,
                ColorScheme::Light,
            )),
            base_url: Some(base.to_string()),
            ua_stylesheets: sheets.to_vec(),
            net_provider: Some(net.clone() as Arc<dyn NetProvider>),
            font_ctx: Some(self.fonts.context.clone()),
            style_threading: StyleThreading::Sequential,
            ..DocumentConfig::default()
        });
        let mut mentions = Mentions::default();
        let built = DocumentBuilder::new(dom, base, &mut mentions).into_document(&mut document);
        answer(&mut document, &net, find, &mut mentions);
        if dom.root().is_some() {
            document.handle_messages();
            answer(&mut document, &net, find, &mut mentions);
            alternative::size_placeholders(&mut document, dom, &built);
            mentions.prune(&mut document, &built);
            document.resolve_stylist(0.0);
            tables::fix_displays(&mut document, &built);
            // These are the steps of `BaseDocument::resolve` up to the boxes. The remaining steps are for painting.
            document.resolve_stylist(0.0);
            words::shorten(&mut document, dom, &built, &self.fonts);
            document.resolve_layout_children();
            document.resolve_deferred_tasks();
            document.resolve_layout();
            resolve_transforms(&mut document, &built);
        }
        extract::boxes(dom, &document, &built)
    }
}

/// Applies `transform`, which moves boxes after layout.
fn resolve_transforms(document: &mut BaseDocument, built: &NodeMap) {
    for id in built.ids.iter().flatten() {
        if let Some(node) = document.get_node_mut(*id).filter(|node| node.is_element()) {
            node.set_transform(1.0);
        }
    }
}

/// Whether the boxes contain no visible text.
fn is_blank(dom: &Dom, boxes: &Boxes) -> bool {
    let is_read = |node: &NodeBox| node.is_visible && node.rect.area() > 0.0 && !dom.is_element(node.source);
    !boxes.nodes.iter().any(is_read)
}

/// The URL against which the page's links resolve.
pub fn base_url(dom: &Dom, url: &str) -> Url {
    let page = Url::parse(url).ok().filter(|url| !url.cannot_be_a_base());
    let page = page.unwrap_or_else(|| Url::parse("http://page.invalid/").unwrap_or_else(|_| unreachable!()));
    match dom.base_href().map(|href| page.join(href.trim())) {
        Some(Ok(base)) if !base.cannot_be_a_base() => base,
        _ => page,
    }
}

/// Answers the document's requests, and those that follow from the responses.
fn answer(
    document: &mut BaseDocument,
    net: &RequestCollector,
    find: &FindSubresources,
    mentions: &mut Mentions,
) {
    let mut n_left = MAX_REQUESTS;
    loop {
        let (urls, handlers): (Vec<String>, Vec<_>) = std::mem::take(&mut *net.lock()).into_iter().unzip();
        if urls.is_empty() {
            return;
        }
        let n_requested = urls.len().min(n_left);
        n_left -= n_requested;
        let found = find(&urls[..n_requested]).into_iter().chain(std::iter::repeat(Subresource::Absent));
        for ((url, handler), found) in urls.into_iter().zip(handlers).zip(found) {
            match found {
                Subresource::Image(width, height) => load_image(document, url, width, height),
                // A missing stylesheet must be answered too, because layout waits for it.
                Subresource::Css(css) => {
                    mentions.read(&css);
                    handler.bytes(url, Bytes::from(css));
                }
                Subresource::Absent => handler.bytes(url, Bytes::new()),
            }
        }
    }
}

/// Gives an image its size without its pixels.
fn load_image(document: &mut BaseDocument, url: String, width: u32, height: u32) {
    document.load_resource(ResourceLoadResponse {
        request_id: usize::MAX,
        node_id: None,
        resolved_url: Some(url),
        result: Ok(Resource::Image(ImageType::Image, width.max(1), height.max(1), Arc::new(Vec::new()))),
    });
}

type Pending = Vec<(String, Box<dyn NetHandler>)>;

/// Collects the requests of a document, which are answered from the archive between two steps.
#[derive(Default)]
struct RequestCollector(Mutex<Pending>);

impl RequestCollector {
    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl NetProvider for RequestCollector {
    fn fetch(&self, _document: usize, request: Request, handler: Box<dyn NetHandler>) {
        self.lock().push((request.url.to_string(), handler));
    }
}

/// The engine's node for each node of the page.
pub(crate) struct NodeMap {
    /// By index of [`Dom::nodes`]; `None` if the engine has no such node.
    pub(crate) ids: Vec<Option<NodeId>>,
}
