//! Rewrites an attribute of an archived page.

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use perennial_core::memento::Modifier;

use super::css::rewrite_css;
use super::script::rewrite_handler;
use super::url::RewritePlace;

/// An element with more attributes is removed.
pub(super) const MAX_ATTRIBUTES: usize = 2000;

/// The name of the frame in which a page is replayed, where links open that would open a window.
pub const FRAME_NAME: &str = "perennial_page";

/// The result for an attribute.
#[derive(Debug, PartialEq)]
pub(super) enum Attribute {
    Unchanged,
    Goes,
    /// A document of its own, to be rewritten as one.
    Document,
    Becomes(String),
}

impl Attribute {
    fn of(rewritten: Option<String>) -> Attribute {
        rewritten.map_or(Attribute::Unchanged, Attribute::Becomes)
    }
}

/// An element with its attributes; names in lower case, values decoded.
pub(super) struct Element<'a> {
    pub(super) tag: &'a str,
    pub(super) all: &'a [(String, String)],
    pub(super) is_outermost: bool,
}

impl Element<'_> {
    fn given(&self, name: &str) -> Option<&str> {
        self.all.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.given(name).is_some_and(|given| given.trim().eq_ignore_ascii_case(value))
    }

    pub(super) fn rewrite(&self, name: &str, value: &str, place: &RewritePlace) -> Attribute {
        match name {
            "srcset" | "imagesrcset" => Attribute::of(place.rewrite_srcset(value, Modifier::Image)),
            "srcdoc" if self.tag == "iframe" => Attribute::Document,
            "style" => changed(value, rewrite_css(value, place).into()),
            // The archive needs the referrer; the other attributes would report elsewhere or forbid rewritten content.
            "ping" | "integrity" | "referrerpolicy" | "csp" | "attributionsrc" | "browsingtopics" => {
                Attribute::Goes
            }
            "manifest" if self.tag == "html" => Attribute::Goes,
            "target" | "formtarget" => self.target(value),
            "type" if self.tag == "script" && self.is("type", "speculationrules") => {
                Attribute::Becomes("text/speculationrules-archived".into())
            }
            "http-equiv" => self.equivalent(value),
            "name" if self.tag == "meta" && self.is("name", "referrer") => Attribute::Goes,
            "content" if self.is("http-equiv", "refresh") => match place.rewrite_refresh(value) {
                Some(to) => Attribute::Becomes(to),
                None => Attribute::Unchanged,
            },
            "attributename" if value.to_ascii_lowercase().contains("href") => Attribute::Goes,
            "value" if self.tag == "param" => self.param(value, place),
            _ if name.starts_with("on") => changed(value, rewrite_handler(value, place)),
            _ => match self.part(name) {
                Some(part) => Attribute::of(place.rewrite(value, part)),
                None if value.contains('(') && is_presentation(name) => {
                    changed(value, rewrite_css(value, place).into())
                }
                None => Attribute::Unchanged,
            },
        }
    }

    /// How the URL in an attribute is used; `None` if the attribute has none.
    fn part(&self, name: &str) -> Option<Modifier> {
        let part = match (name, self.tag) {
            ("src", "script") => Modifier::Script,
            ("src", "img" | "input" | "image") => Modifier::Image,
            ("src", "iframe" | "fencedframe" | "portal") => Modifier::Frame,
            ("src", "frame") => Modifier::Frameset,
            ("src", _) => Modifier::Object,
            ("href" | "xlink:href", "image" | "feimage" | "use") => Modifier::Image,
            ("href" | "xlink:href", "script") => Modifier::Script,
            ("href", "link") => self.link_part(),
            ("href" | "xlink:href", _) => Modifier::Page,
            ("action" | "formaction" | "cite" | "longdesc", _) => Modifier::Page,
            ("poster" | "background" | "dynsrc" | "lowsrc" | "icon", _) => Modifier::Image,
            ("data", "object") => Modifier::Object,
            ("codebase", _) => Modifier::Object,
            _ => return None,
        };
        Some(part)
    }

    fn link_part(&self) -> Modifier {
        let rel = self.given("rel").unwrap_or_default().to_ascii_lowercase();
        let has = |word: &str| rel.split_ascii_whitespace().any(|found| found == word);
        let kind = self.given("as").unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            _ if has("stylesheet") => Modifier::Style,
            _ if has("icon") || has("apple-touch-icon") || has("mask-icon") => Modifier::Image,
            _ if has("modulepreload") => Modifier::Script,
            "script" | "worker" => Modifier::Script,
            "style" => Modifier::Style,
            "image" => Modifier::Image,
            _ if has("preload") || has("manifest") || has("prefetch") => Modifier::Object,
            _ => Modifier::Page,
        }
    }

    /// Opens links in the frame of the replay instead of new windows. The window around a replayed page is ours.
    fn target(&self, value: &str) -> Attribute {
        let becomes = |name: &str| Attribute::Becomes(name.to_string());
        match value.to_ascii_lowercase().as_str() {
            "_blank" | "_top" | "_new" => becomes(FRAME_NAME),
            "_parent" if self.is_outermost => becomes("_self"),
            _ => Attribute::Unchanged,
        }
    }

    /// Removes what replaces a header field: the server sets the policy, and archived cookies are not set.
    fn equivalent(&self, value: &str) -> Attribute {
        match value.trim().to_ascii_lowercase().as_str() {
            "content-type" | "content-language" | "default-style" | "x-ua-compatible" => Attribute::Unchanged,
            "refresh" => Attribute::Unchanged,
            _ => Attribute::Goes,
        }
    }

    fn param(&self, value: &str, place: &RewritePlace) -> Attribute {
        let is_url =
            ["movie", "src", "url", "href", "filename", "data"].iter().any(|name| self.is("name", name));
        Attribute::of(is_url.then(|| place.rewrite(value, Modifier::Object)).flatten())
    }
}

/// SVG attributes that contain styles.
fn is_presentation(name: &str) -> bool {
    matches!(name, "fill" | "stroke" | "filter" | "mask" | "clip-path" | "cursor" | "marker")
        || name.starts_with("marker-")
}

fn changed(before: &str, after: Cow<'_, str>) -> Attribute {
    if after == before { Attribute::Unchanged } else { Attribute::Becomes(after.into_owned()) }
}

/// Decodes character references and zero characters as browsers do.
pub(super) fn decoded(value: &str) -> String {
    if !value.contains(['&', '\0']) {
        return value.to_string();
    }
    let tag = format!("<a b=\"{}\">", value.replace('"', "&quot;"));
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(tag.as_str()));
    let tokenizer = Tokenizer::new(FirstValue(RefCell::new(None)), TokenizerOpts::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner().unwrap_or_default()
}

/// Encodes a value for double quotes.
pub(super) fn encoded(value: &str) -> String {
    value.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// Stores the value of the first attribute.
struct FirstValue(RefCell<Option<String>>);

impl TokenSink for FirstValue {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        if let Token::TagToken(tag) = token {
            *self.0.borrow_mut() = tag.attrs.first().map(|attribute| attribute.value.to_string());
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_in_an_attribute() {
        assert_eq!(decoded("a&amp;b&#x3a;c&copy=1&copy;"), "a&b:c&copy=1©");
        assert_eq!(decoded("'\"<>&lt"), "'\"<><");
        assert_eq!(decoded("a\0b"), "a\u{fffd}b");
        assert_eq!(decoded("java&Tab;script&colon;x"), "java\tscript:x");
    }
}
