//! Rewrites an archived page: all URLs point into the archive, and our script comes first.
//!
//! The page is streamed: only a tag, a style or a script is held at a time, each within bounds. The page keeps its encoding, because
//! scripts, styles and forms without a declared encoding inherit it.

use std::sync::{Arc, Mutex, PoisonError};

use lol_html::html_content::{ContentType, TextChunk};
use lol_html::send::{ElementContentHandlers, HtmlRewriter, Settings};
use lol_html::{AsciiCompatibleEncoding, MemorySettings, OutputSink, Selector};
use perennial_core::text::markup::escaped;
use url::Url;

use super::attributes::{self, Attribute};
use super::css::rewrite_css;
use super::script::{rewrite_import_map, rewrite_script};
use super::url::RewritePlace;

/// A longer tag ends the rewriting; the rest of the page is dropped.
const MAX_TAG_BYTES: usize = 4 << 20;
/// A longer style or script is dropped, because it would run without being rewritten.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The depth to which `srcdoc` documents are rewritten; deeper ones are dropped.
const MAX_NESTED: usize = 4;

/// Markup at the start of each page.
#[derive(Clone, Debug)]
pub struct Injection {
    /// Precedes everything that could run.
    pub markup: String,
}

impl Injection {
    /// Our script, with its parameters as JSON.
    pub fn script(url: &str, knowledge: &str) -> Injection {
        Injection {
            markup: format!(
                "<script src=\"{}\" data-perennial=\"{}\"></script>",
                escaped(url),
                escaped(knowledge)
            ),
        }
    }
}

/// How a page is rewritten.
#[derive(Clone, Debug)]
pub struct PageOptions {
    pub place: RewritePlace,
    pub injection: Option<Injection>,
    /// Whether this is the page itself instead of a frame in it; the frame around it is ours.
    pub is_outermost: bool,
    /// The depth of `srcdoc` documents.
    pub n_nested: usize,
}

/// Rewrites one page.
pub struct PageRewriter {
    rewriter: HtmlRewriter<'static, RewrittenOutput>,
    output: Arc<Mutex<Vec<u8>>>,
}

/// Collects the output of the rewriter.
struct RewrittenOutput(Arc<Mutex<Vec<u8>>>);

impl OutputSink for RewrittenOutput {
    fn handle_chunk(&mut self, chunk: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(chunk);
    }
}

/// The page could not be rewritten to its end.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be rewritten ({0}): ask for its bytes with the modifier id_")]
pub struct PageError(String);

impl PageRewriter {
    /// Starts a page in an encoding that contains ASCII. With `strict`, markup that old and new browsers read differently is an error.
    pub fn new(options: PageOptions, encoding: AsciiCompatibleEncoding, strict: bool) -> PageRewriter {
        let output = Arc::new(Mutex::new(Vec::new()));
        let state = Arc::new(Mutex::new(HtmlState::new(options)));
        let elements = state.clone();
        let everything = ElementContentHandlers::default().element(
            move |element: &mut lol_html::send::Element<'_, '_>| {
                lock(&elements).element(element);
                Ok(())
            },
        );
        let memory = MemorySettings::new().with_max_allowed_memory_usage(MAX_TAG_BYTES);
        let mut settings = Settings::new_send()
            .with_encoding(encoding)
            .with_strict(strict)
            .with_memory_settings(memory)
            .append_element_content_handler((std::borrow::Cow::Owned(selector("*")), everything));
        for tag in ["style", "script", "noscript"] {
            let texts = state.clone();
            let handler = ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
                lock(&texts).text(tag, chunk);
                Ok(())
            });
            settings =
                settings.append_element_content_handler((std::borrow::Cow::Owned(selector(tag)), handler));
        }
        PageRewriter { rewriter: HtmlRewriter::new(settings, RewrittenOutput(output.clone())), output }
    }

    /// Rewrites more of the page; returns what is ready.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Vec<u8>, PageError> {
        self.rewriter.write(bytes).map_err(|error| PageError(error.to_string()))?;
        Ok(self.taken())
    }

    /// The rest of the page.
    pub fn end(self) -> Result<Vec<u8>, PageError> {
        let output = self.output.clone();
        self.rewriter.end().map_err(|error| PageError(error.to_string()))?;
        Ok(std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn taken(&self) -> Vec<u8> {
        std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Rewrites a page in memory.
pub fn rewrite_page(html: &str, options: PageOptions) -> Result<String, PageError> {
    rewrite_text(html, options, false)
}

/// As [`rewrite_page`], but ambiguous markup is an error.
pub fn rewrite_page_strictly(html: &str, options: PageOptions) -> Result<String, PageError> {
    rewrite_text(html, options, true)
}

fn rewrite_text(html: &str, options: PageOptions, strict: bool) -> Result<String, PageError> {
    let mut rewriter = PageRewriter::new(options, AsciiCompatibleEncoding::utf_8(), strict);
    let mut out = rewriter.write(html.as_bytes())?;
    out.extend(rewriter.end()?);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn lock(state: &Mutex<HtmlState>) -> std::sync::MutexGuard<'_, HtmlState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The selectors here are plain names.
fn selector(name: &str) -> Selector {
    name.parse().unwrap_or_else(|_| unreachable!("{name} is a selector"))
}

/// The content of a script element.
#[derive(Clone, Copy, PartialEq)]
enum ScriptKind {
    Code,
    ImportMap,
    Data,
}

struct HtmlState {
    options: PageOptions,
    has_base: bool,
    has_begun: bool,
    script: ScriptKind,
    /// The text of the current style or script.
    held: String,
}

impl HtmlState {
    fn new(options: PageOptions) -> HtmlState {
        HtmlState {
            options,
            has_base: false,
            has_begun: false,
            script: ScriptKind::Data,
            held: String::new(),
        }
    }

    fn element(&mut self, element: &mut lol_html::send::Element<'_, '_>) {
        let tag = element.tag_name();
        self.begin(&tag, element);
        // Text of an unclosed element does not belong to the next element.
        self.held.clear();
        let all: Vec<(String, String)> = element
            .attributes()
            .iter()
            .take(attributes::MAX_ATTRIBUTES)
            .map(|attribute| (attribute.name(), attributes::decoded(&attribute.value())))
            .collect();
        if element.attributes().len() > attributes::MAX_ATTRIBUTES {
            return element.remove();
        }
        let given = |name: &str| all.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        match tag.as_str() {
            "base" => self.base(given("href")),
            "script" => self.script = script_kind(given("type"), given("language")),
            _ => {}
        }
        let attributes =
            attributes::Element { tag: &tag, all: &all, is_outermost: self.options.is_outermost };
        for (name, value) in &all {
            match attributes.rewrite(name, value, &self.options.place) {
                Attribute::Unchanged => {}
                Attribute::Goes => element.remove_attribute(name),
                Attribute::Document => {
                    let inner = self.nested_document(value);
                    set(element, name, &inner);
                }
                Attribute::Becomes(to) => set(element, name, &to),
            }
        }
    }

    /// Inserts our script before the first element of the head or the body.
    fn begin(&mut self, tag: &str, element: &mut lol_html::send::Element<'_, '_>) {
        if self.has_begun || tag == "html" {
            return;
        }
        self.has_begun = true;
        if let Some(injection) = &self.options.injection {
            match tag {
                "head" => element.prepend(&injection.markup, ContentType::Html),
                _ => element.before(&injection.markup, ContentType::Html),
            }
        }
    }

    /// The first `base` with a URL applies to all that follows.
    fn base(&mut self, href: Option<&str>) {
        let Some(href) = href.filter(|_| !self.has_base) else { return };
        self.has_base = true;
        let found = self.options.place.charset.join(&self.options.place.base, href.trim());
        if let Some(base) = found.filter(|base: &Url| matches!(base.scheme(), "http" | "https")) {
            self.options.place.base = base;
        }
    }

    fn nested_document(&self, html: &str) -> String {
        let n_nested = self.options.n_nested + 1;
        if n_nested > MAX_NESTED {
            return String::new();
        }
        let options = PageOptions { n_nested, is_outermost: false, ..self.options.clone() };
        rewrite_page(html, options).unwrap_or_default()
    }

    /// Collects the text of an element and replaces its last chunk with the rewritten text.
    fn text(&mut self, tag: &str, chunk: &mut TextChunk<'_>) {
        if tag == "script" && self.script == ScriptKind::Data {
            return;
        }
        let has_room = self.held.len() + chunk.as_str().len() <= MAX_TEXT_BYTES;
        if has_room {
            self.held.push_str(chunk.as_str());
        }
        if !chunk.last_in_text_node() {
            return chunk.remove();
        }
        let held = std::mem::take(&mut self.held);
        if !has_room {
            return chunk.replace("/* too long to be replayed */", ContentType::Html);
        }
        let rewritten = match tag {
            "style" => rewrite_css(&held, &self.options.place),
            "noscript" => self.nested_markup(&held),
            _ if self.script == ScriptKind::ImportMap => {
                rewrite_import_map(&held, &self.options.place).unwrap_or(held)
            }
            _ => rewrite_script(&held, &self.options.place).into_owned(),
        };
        chunk.replace(&rewritten, ContentType::Html);
    }

    /// The content of `noscript` is markup of this document.
    fn nested_markup(&self, html: &str) -> String {
        let options =
            PageOptions { injection: None, n_nested: self.options.n_nested + 1, ..self.options.clone() };
        if options.n_nested > MAX_NESTED {
            return String::new();
        }
        rewrite_page(html, options).unwrap_or_default()
    }
}

fn set(element: &mut lol_html::send::Element<'_, '_>, name: &str, value: &str) {
    // The name was read from the element, so only an unwritable name fails; then the attribute is removed.
    if element.set_attribute(name, &attributes::encoded(value)).is_err() {
        element.remove_attribute(name);
    }
}

/// A script with a type that browsers do not know is data.
fn script_kind(kind: Option<&str>, language: Option<&str>) -> ScriptKind {
    let named = match (kind, language) {
        (Some(kind), _) if !kind.trim().is_empty() => kind.trim().to_ascii_lowercase(),
        (None, Some(language)) if !language.is_empty() => format!("text/{}", language.to_ascii_lowercase()),
        _ => return ScriptKind::Code,
    };
    match named.split(';').next().unwrap_or_default().trim() {
        "module" => ScriptKind::Code,
        "importmap" => ScriptKind::ImportMap,
        name if name.contains("javascript") || name.contains("ecmascript") || name.ends_with("/jscript") => {
            ScriptKind::Code
        }
        _ => ScriptKind::Data,
    }
}

#[cfg(test)]
mod tests;
