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
use crate::collapsed::Collapsible;
use crate::dom::{Dom, DomKind};
use crate::fonts::Fonts;
use crate::mentions::Mentions;
use crate::parsed::parsed_nodes;
use crate::resource::{Subresource, SubresourceLookup, all_subresources};
use crate::{alternative, extract, scope, tables, words};

/// Name and version of the engine, as recorded in its layouts. The last number increases whenever boxes change, so
/// that an upgrade does not look like a change of the page.
pub const ENGINE: &str =
    concat!("perennial-render/", env!("CARGO_PKG_VERSION"), " blitz/0.3.0-beta.4 boxes/3");

/// Default styles of browsers that the engine's own stylesheet lacks. List markers are left out, because they are not
/// text of the page.
const EXTRA_CSS: &str =
    "noscript,template,dialog:not([open]),datalist,area,param,source,track,rp{display:none!important}
    object,audio:not([controls]){display:none}
    select{display:inline-block;min-width:3em;min-height:1.3em}
    select>*{display:none!important}
    li{list-style:none!important}";

/// Shows what a reader can read though styles hide it from the engine: a root out of the flow, which the engine gives no
/// size, and elements that scripts show later.
const READING_CSS: &str = "html{position:static!important;float:none!important}
    [style*='opacity:0'],[style*='opacity: 0']{opacity:1!important}
    [style*='visibility:hidden'],[style*='visibility: hidden']{visibility:visible!important}";

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
        let sheets = vec![
            UserAgentStylesheet::default_sheet(),
            UserAgentStylesheet::parse(EXTRA_CSS),
            UserAgentStylesheet::parse(READING_CSS),
        ];
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
        let mut boxes = self.boxes_by(dom, base, find, &self.sheets, PageStyles::Used);
        if dom.has_body_text && is_blank(dom, &boxes) {
            boxes = self.boxes_by(dom, base, find, &self.revealing_sheets, PageStyles::Used);
        }
        if !dom.has_body_text || !hides_nearly_all(dom, &boxes) {
            return boxes;
        }
        let plain = self.boxes_by(dom, base, find, &self.revealing_sheets, PageStyles::Ignored);
        match n_visible_letters(dom, &plain) > n_visible_letters(dom, &boxes) {
            true => Boxes { is_unstyled: true, ..plain },
            false => boxes,
        }
    }

    fn boxes_by(
        &self,
        dom: &Dom,
        base: &Url,
        find: &FindSubresources,
        sheets: &[UserAgentStylesheet],
        styles: PageStyles,
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
        let mut collapsible = Collapsible::find(dom);
        let builder = DocumentBuilder::new(dom, base, &mut mentions, &collapsible, styles);
        let built = builder.into_document(&mut document);
        answer(&mut document, &net, find, &mut mentions);
        if dom.root().is_some() {
            document.handle_messages();
            answer(&mut document, &net, find, &mut mentions);
            alternative::size_placeholders(&mut document, dom, &built);
            mentions.prune(&mut document, &built);
            document.resolve_stylist(0.0);
            if collapsible.open(&mut document, &built) {
                document.resolve_stylist(0.0);
            }
            tables::fix_displays(&mut document, &built);
            // These are the steps of `BaseDocument::resolve` up to the boxes. The remaining steps are for painting.
            document.resolve_stylist(0.0);
            words::shorten(&mut document, dom, &built, &self.fonts);
            document.resolve_layout_children();
            document.resolve_deferred_tasks();
            document.resolve_layout();
            resolve_transforms(&mut document, &built);
        }
        extract::boxes(dom, &document, &built, &collapsible)
    }
}

/// Whether the stylesheets and `style` attributes of a page take part in its layout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageStyles {
    Used,
    Ignored,
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

/// A page with more visible letters is read with its styles.
const FEW_LETTERS: usize = 200;
/// The least letters of a page with much text, and the least ratio to its visible letters.
const MANY_LETTERS: usize = 500;
const MANY_TIMES: usize = 10;

/// Whether almost nothing of much text is visible.
fn hides_nearly_all(dom: &Dom, boxes: &Boxes) -> bool {
    let n_visible = n_visible_letters(dom, boxes);
    n_visible < FEW_LETTERS && n_letters(dom) >= MANY_LETTERS.max(MANY_TIMES * n_visible)
}

fn n_visible_letters(dom: &Dom, boxes: &Boxes) -> usize {
    let is_read = |node: &&NodeBox| node.is_visible && node.rect.area() > 0.0;
    let text = |node: &NodeBox| match &dom.nodes[node.source as usize].kind {
        DomKind::Text(text) => text.trim().len(),
        DomKind::Element { .. } => 0,
    };
    boxes.nodes.iter().filter(is_read).map(text).sum()
}

/// The letters of a page that are meant to be read.
fn n_letters(dom: &Dom) -> usize {
    let (mut index, mut n) = (0, 0);
    while let Some(node) = dom.nodes.get(index) {
        let is_unread = crate::build::is_opaque(node)
            || scope::is_never_shown(node.tag())
            || matches!(node.tag(), "select" | "textarea" | "title" | "datalist");
        if let DomKind::Text(text) = &node.kind {
            n += text.trim().len();
        }
        let is_skipped = is_unread && matches!(node.kind, DomKind::Element { .. });
        index = if is_skipped { (node.end as usize).max(index + 1) } else { index + 1 };
    }
    n
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::nothing;

    /// The visible words, those one click away in brackets.
    fn read(html: &str) -> String {
        let layout = LayoutEngine::new().layout(html, "http://a.example/", &nothing);
        let texts =
            layout.nodes.iter().filter(|node| node.is_text() && node.is_visible && node.rect.area() > 0.0);
        let words = texts.map(|node| match node.is_collapsed {
            true => format!("[{}]", node.text.trim()),
            false => node.text.trim().to_owned(),
        });
        words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_hides_from_screen_readers_or_the_engine_is_read() {
        assert_eq!(
            read("<dialog open>Cookies?</dialog><main aria-hidden=true><p>The news"),
            "Cookies? The news"
        );
        for style in ["position:absolute", "position:fixed;width:100%", "float:left"] {
            assert_eq!(read(&format!("<style>html{{{style}}}</style><p>Nachrichten")), "Nachrichten");
        }
        assert_eq!(read("<div style='visibility: hidden'><p>Später sichtbar</div>"), "Später sichtbar");
        assert_eq!(read("<div style='transition:1s;opacity:0'>Plus tard</div><p>x"), "Plus tard x");
    }

    #[test]
    fn what_one_click_opens_is_read_and_marked() {
        for (html, words) in [
            ("<details><summary>More</summary><p>Inside</p> too</details>", "More [Inside] [too]"),
            ("<details open><summary>More</summary><p>Inside</p></details>", "More Inside"),
            (
                "<button aria-expanded=false aria-controls=a>Prix</button><div id=a hidden>Dix euros</div>",
                "Prix [Dix euros]",
            ),
            (
                "<a role=tab aria-controls=b>Two</a><div id=b role=tabpanel style='display:none'><p>Second</div>",
                "Two [Second]",
            ),
            (
                "<style>.tab-pane{display:none}.active{display:block}</style><div class='tab-pane active'>A</div><div class=tab-pane>B</div>",
                "A [B]",
            ),
            (
                "<style>.readMore{max-height:0;overflow:hidden}</style><p>Lead</p><div class=readMore>Rest</div>",
                "Lead [Rest]",
            ),
            (
                "<style>.swiper-slide+.swiper-slide{opacity:0}</style><div class=swiper-slide>uno</div><div class=swiper-slide>dos</div>",
                "uno [dos]",
            ),
        ] {
            assert_eq!(read(html), words, "{html}");
        }
    }

    #[test]
    fn menus_dialogs_and_hidden_parts_stay_hidden() {
        for html in [
            "<nav><button aria-expanded=false aria-controls=m>x</button><ul id=m style='display:none'><li>Menu</ul></nav>",
            "<div class=modal style='display:none'><div class=accordion>Sign up</div></div><p>x",
            "<div style='display:none'>Template</div><p>x",
            "<button aria-haspopup=menu aria-expanded=false aria-controls=p>x</button><div id=p hidden>Options</div>",
        ] {
            assert_eq!(read(html), "x", "{html}");
        }
    }

    #[test]
    fn a_page_that_hides_nearly_all_of_its_text_is_read_without_styles() {
        let text = "Many words that nobody would see. ".repeat(30);
        let page =
            |text: &str| format!("<style>main{{display:none}}</style><p>Loading</p><main><p>{text}</main>");
        let layout = |text: &str| LayoutEngine::new().layout(&page(text), "http://a.example/", &nothing);
        assert!(read(&page(&text)).contains("nobody would see") && layout(&text).is_unstyled);
        assert!(read(&page("A few words")) == "Loading" && !layout("A few words").is_unstyled);
        assert!(!layout(&text).nodes.iter().any(|node| node.text.contains("display") && node.is_visible));
    }
}
