//! Text of a page and captured requisites -> [`Layout`], by the embedded engine, without a browser.
//!
//! The engine is blitz-dom, with styles by Stylo, boxes by Taffy and text by Parley. `build.rs` changes what the engine
//! would fail on. `extract.rs` makes a box from the children for elements that have none in the engine.

use std::sync::{Arc, Mutex};

use blitz_dom::net::{Resource, ResourceLoadResponse};
use blitz_dom::util::ImageType;
use blitz_dom::{BaseDocument, DocumentConfig, NodeId, StyleThreading, UserAgentStylesheet};
use blitz_traits::net::{Bytes, NetHandler, NetProvider, Request};
use blitz_traits::shell::{ColorScheme, Viewport};
use perennial_core::layout::{Layout, VIEWPORT_HEIGHT, VIEWPORT_WIDTH};
use url::Url;

use crate::build::Build;
use crate::dom::Dom;
use crate::fonts::Fonts;
use crate::mentions::Mentions;
use crate::resource::{Lookup, Requisite, requisite};
use crate::{extract, tables, words};

/// Name and version of the engine, as recorded in every layout it makes.
pub const ENGINE: &str = concat!("perennial-render/", env!("CARGO_PKG_VERSION"), " blitz/0.3.0-beta.4");

/// Styles that browsers have and the engine's own stylesheet lacks. List items get no marks, because these are not text
/// of the page.
const EXTRA_CSS: &str =
    "noscript,template,dialog:not([open]),datalist,area,param,source,track,rp{display:none!important}
    object,audio:not([controls]){display:none}
    select{display:inline-block;min-width:3em;min-height:1.3em}
    select>*{display:none!important}
    li{list-style:none!important}";

/// Shows a page that hides itself until its scripts have run, because no script runs here.
const REVEALING_CSS: &str = "html,body{display:block!important}
    html,body,body>*,body>*>*{opacity:1!important;visibility:visible!important}";

/// Most requests of a page, because stylesheets may import each other in circles. Further ones get an empty answer.
const MAX_REQUESTS: usize = 4000;

/// The embedded engine with its fonts loaded. One engine lays out one page at a time.
pub struct Engine {
    fonts: Fonts,
    sheets: Vec<UserAgentStylesheet>,
    revealing_sheets: Vec<UserAgentStylesheet>,
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::new()
    }
}

impl Engine {
    /// Loads the fonts and the engine's own stylesheet.
    pub fn new() -> Engine {
        let sheets = vec![UserAgentStylesheet::default_sheet(), UserAgentStylesheet::parse(EXTRA_CSS)];
        let revealing_sheets =
            sheets.iter().cloned().chain([UserAgentStylesheet::parse(REVEALING_CSS)]).collect();
        Engine { fonts: Fonts::load(), sheets, revealing_sheets }
    }

    /// Lays a page out. The engine may panic or run for long on some pages; [`crate::Pool`] guards against both.
    pub fn layout(&self, html: &str, url: &str, lookup: &Lookup) -> Layout {
        self.layout_asking(html, url, &|wanted| requisite(wanted, lookup))
    }

    /// Lays a page out with requisites that are already reduced to what layout needs.
    pub(crate) fn layout_asking(&self, html: &str, url: &str, ask: &dyn Fn(&str) -> Requisite) -> Layout {
        let dom = &Dom::parse(html);
        let layout = self.layout_dom(dom, url, ask, &self.sheets);
        if is_blank(&layout) && has_text(dom) {
            return self.layout_dom(dom, url, ask, &self.revealing_sheets);
        }
        layout
    }

    fn layout_dom(
        &self,
        dom: &Dom,
        url: &str,
        ask: &dyn Fn(&str) -> Requisite,
        sheets: &[UserAgentStylesheet],
    ) -> Layout {
        let base = base_url(dom, url);
        let net = Arc::new(Net::default());
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
        let built = Build::new(dom, &base, &mut mentions).into_document(&mut document);
        answer(&mut document, &net, ask, &mut mentions);
        if dom.root().is_some() {
            document.handle_messages();
            answer(&mut document, &net, ask, &mut mentions);
            mentions.prune(&mut document, &built);
            document.resolve_stylist(0.0);
            tables::mend(&mut document, &built);
            // These are the steps of `BaseDocument::resolve` up to the boxes. Its further steps are for painting.
            document.resolve_stylist(0.0);
            words::shorten(&mut document, &built, &self.fonts);
            document.resolve_layout_children();
            document.resolve_deferred_tasks();
            document.resolve_layout();
            resolve_transforms(&mut document, &built);
        }
        extract::layout(dom, &document, &built, base.to_string())
    }
}

/// Resolves `transform`, which moves boxes after layout.
fn resolve_transforms(document: &mut BaseDocument, built: &Built) {
    for id in built.ids.iter().flatten() {
        if let Some(node) = document.get_node_mut(*id).filter(|node| node.is_element()) {
            node.set_transform(1.0);
        }
    }
}

/// Whether the layout shows nothing to read.
fn is_blank(layout: &Layout) -> bool {
    !layout.nodes.iter().any(|node| node.is_text() && node.is_visible && node.rect.area() > 0.0)
}

/// Whether the page has something to read, shown or hidden.
fn has_text(dom: &Dom) -> bool {
    dom.child_of_root("body").is_some_and(|body| dom.text_content(body).trim().len() > 200)
}

/// The address against which the page's links resolve.
pub fn base_url(dom: &Dom, url: &str) -> Url {
    let page = Url::parse(url).ok().filter(|url| !url.cannot_be_a_base());
    let page = page.unwrap_or_else(|| Url::parse("http://page.invalid/").unwrap_or_else(|_| unreachable!()));
    match dom.base_href().map(|href| page.join(href.trim())) {
        Some(Ok(base)) if !base.cannot_be_a_base() => base,
        _ => page,
    }
}

/// Answers what the document asked for, and what the answers ask for in turn.
fn answer(document: &mut BaseDocument, net: &Net, ask: &dyn Fn(&str) -> Requisite, mentions: &mut Mentions) {
    let mut n_answered = 0;
    loop {
        let requests = std::mem::take(&mut *net.lock());
        if requests.is_empty() {
            return;
        }
        for (url, handler) in requests {
            n_answered += 1;
            let found = if n_answered > MAX_REQUESTS { Requisite::Absent } else { ask(&url) };
            match found {
                Requisite::Image(width, height) => load_image(document, url, width, height),
                // A stylesheet must be answered even when it is absent: layout waits for it.
                Requisite::Css(css) => {
                    mentions.read(&css);
                    handler.bytes(url, Bytes::from(css));
                }
                Requisite::Absent => handler.bytes(url, Bytes::new()),
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
struct Net(Mutex<Pending>);

impl Net {
    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl NetProvider for Net {
    fn fetch(&self, _document: usize, request: Request, handler: Box<dyn NetHandler>) {
        self.lock().push((request.url.to_string(), handler));
    }
}

/// The nodes of the engine's document for the nodes of the page.
pub(crate) struct Built {
    /// By index of [`Dom::nodes`]; `None` where the engine has no such node.
    pub(crate) ids: Vec<Option<NodeId>>,
    /// Nodes of the page that the engine has, each after its parent.
    pub(crate) order: Vec<u32>,
    /// The parent within `order`, which differs from the page's where nesting was cut.
    pub(crate) parents: Vec<Option<u32>>,
}
