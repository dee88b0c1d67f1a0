//! CSS selectors for parts of a site's pages, as a browser's inspector copies them. Pins, ignored parts and notices
//! use them.
//!
//! Pseudo-classes that depend on a user (`:hover`) and pseudo-elements are rejected. So are `:has` and `:nth-child(…
//! of …)`, because matching them would need unbounded memory.

use std::fmt;

use cssparser::{ParseErrorKind, Parser as CssParser, serialize_identifier, serialize_string};
use selectors::SelectorList;
use selectors::parser::{ParseRelative, Parser, SelectorParseErrorKind};

use super::css::{Css, ElementTree, SelectorMatcher};
use super::facts::{NONE, PageFacts};
use crate::text::dom::{Dom, DomKind};

/// Why a selector cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("selector {selector:?}: {reason}")]
pub struct SelectorError {
    /// The selector as it was given.
    pub selector: String,
    /// The error, and the correct form.
    pub reason: &'static str,
}

#[derive(Clone)]
pub struct Selector {
    text: String,
    list: SelectorList<Css>,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}

impl fmt::Display for Selector {
    /// Writes the selector as it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({})", self.text)
    }
}

/// Longer selectors are rejected, because matching recurses once per step.
const MAX_BYTES: usize = 2000;
/// Maximum steps of a generated selector, and maximum classes per step.
const MAX_NAMED: usize = 6;
const MAX_CLASSES: usize = 2;
/// Elements that usually occur once on a page.
const LANDMARKS: [&str; 4] = ["main", "header", "footer", "article"];

/// Whether a name was probably written by a person. Generated names contain many digits and change often.
fn is_hand_written_name(name: &str) -> bool {
    let n_digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    is_name && (2..=40).contains(&name.len()) && n_digits <= 2 && name.starts_with(char::is_alphabetic)
}

impl Selector {
    /// Parses a selector such as `#live .ticker, aside > ul:nth-child(2)`.
    pub fn parse(selector: &str) -> Result<Selector, SelectorError> {
        let list = match selector.len() > MAX_BYTES {
            true => Err("longer than 2000 bytes; shorten it, for example to the part after the last #id"),
            false => parse_list(selector).or_else(|reason| parse_list(&as_css(selector)).map_err(|_| reason)),
        };
        match list {
            Ok(list) => Ok(Selector { text: selector.to_string(), list }),
            Err(reason) => Err(SelectorError { selector: selector.to_string(), reason }),
        }
    }

    /// Builds a selector that matches exactly this element, from IDs and classes that are likely to survive changes of
    /// the page. `None` if the element has none of them; then try the element around it.
    pub fn unique_for(dom: &Dom, node: u32) -> Option<Selector> {
        let mut steps: Vec<String> = Vec::new();
        let mut here = Some(node).filter(|node| dom.is_element(*node));
        while let Some(at) = here.filter(|_| steps.len() < MAX_NAMED) {
            let element = dom.nodes.get(at as usize)?;
            let id = element.attribute("id").filter(|id| is_hand_written_name(id));
            let mut classes: Vec<&str> =
                element.attribute("class").unwrap_or_default().split_ascii_whitespace().collect();
            classes.retain(|class| is_hand_written_name(class));
            classes.truncate(MAX_CLASSES);
            let step = match id {
                Some(id) => format!("#{id}"),
                None if classes.is_empty() => element.tag().to_owned(),
                None => format!("{}.{}", element.tag(), classes.join(".")),
            };
            steps.insert(0, step);
            let found = Selector::parse(&steps.join(" > ")).ok()?;
            let is_specific =
                steps.iter().any(|step| step.contains(['#', '.'])) || LANDMARKS.contains(&element.tag());
            if is_specific && found.finds_only(dom, node) {
                return Some(found);
            }
            here = element.parent.filter(|above| dom.is_element(*above));
        }
        None
    }

    /// Whether it matches this element and no other.
    fn finds_only(&self, dom: &Dom, node: u32) -> bool {
        let mut finder = self.finder(dom);
        (0..dom.nodes.len() as u32).filter(|at| finder.finds(*at)).take(2).eq([node])
    }

    /// A selector that matches what either of the two matches.
    pub fn or(self, other: &Selector) -> Selector {
        let both: Vec<_> = self.list.slice().iter().chain(other.list.slice()).cloned().collect();
        Selector {
            text: format!("{}, {}", self.text, other.text),
            list: SelectorList::from_iter(both.into_iter()),
        }
    }

    fn finder<'s, T: ElementTree>(&'s self, tree: &'s T) -> SelectorMatcher<'s, T> {
        SelectorMatcher::new(&self.list, tree)
    }

    /// The text of all matches in document order, words separated by a space. Nested matches are not repeated, and
    /// scripts and styles are left out.
    pub fn text_in(&self, dom: &Dom) -> String {
        let mut finder = self.finder(dom);
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(node) = dom.nodes.get(at as usize) {
            at = match finder.finds(at) {
                true => {
                    push_words(dom, at, node.end, &mut words);
                    node.end
                }
                false => at + 1,
            };
        }
        words.join(" ")
    }
}

/// Appends the words between two nodes.
fn push_words<'d>(dom: &'d Dom, from: u32, end: u32, words: &mut Vec<&'d str>) {
    let mut at = from;
    while let Some(node) = dom.nodes.get(at as usize).filter(|_| at < end) {
        at = match &node.kind {
            DomKind::Text(text) => {
                words.extend(text.split_whitespace());
                at + 1
            }
            DomKind::Element { .. } if matches!(node.tag(), "script" | "style" | "template") => node.end,
            DomKind::Element { .. } => at + 1,
        };
    }
}

struct SelectorParser;

impl Parser<'_> for SelectorParser {
    type Impl = Css;
    type Error = SelectorParseErrorKind;

    fn parse_is_and_where(&self) -> bool {
        true
    }

    /// Rejects `:is(a, b:hover)` as a whole instead of silently dropping its second part.
    fn allow_forgiving_selectors(&self) -> bool {
        false
    }
}

fn parse_list(text: &str) -> Result<SelectorList<Css>, &'static str> {
    use SelectorParseErrorKind::{DanglingCombinator, EmptySelector, UnsupportedPseudoClassOrElement};
    SelectorList::parse(&SelectorParser, &mut CssParser::new(text), ParseRelative::No).map_err(|error| {
        match error.kind {
            ParseErrorKind::Custom(EmptySelector) => {
                "a selector is missing; name a tag, #id or .class"
            }
            ParseErrorKind::Custom(DanglingCombinator) => {
                "ends in a combinator; name the element that follows"
            }
            ParseErrorKind::Custom(UnsupportedPseudoClassOrElement) => {
                "this pseudo-class is not supported; use those about a page's structure, such as :nth-child(2), \
                 :first-of-type, :not(.x), :is(a, b)"
            }
            _ => {
                "not a CSS selector; write one such as #main > p.lead, or copy it from the browser's inspector"
            }
        }
    })
}

/// Converts the syntax of earlier releases to CSS: names that begin with a digit, values without quotes.
fn as_css(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim_start_matches([' ', '>']);
    // Writing to a String cannot fail.
    while let Some(at) = rest.find(['#', '.', '[']) {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_'));
        let end = if before.ends_with('[') { after.find(']') } else { after.find(is_end) };
        let (name, behind) = after.split_at(end.unwrap_or(after.len()));
        match name.split_once('=').filter(|_| before.ends_with('[')) {
            Some((name, value)) => {
                out.push_str(name);
                out.push('=');
                let _ = serialize_string(value.trim_matches(['"', '\'']), &mut out);
            }
            None => _ = serialize_identifier(name, &mut out),
        }
        rest = behind;
    }
    out + rest
}

/// Sets the importance of a part of a site's pages.
#[derive(Clone, PartialEq, Debug)]
pub struct Pin {
    /// The part: blocks that are mostly inside a match.
    pub selector: Selector,
    /// Share of the page's importance for all of its blocks together, 0 to 1.
    pub importance: f32,
}

/// Whether each node matches one of the selectors. Empty if there are none.
pub(super) fn matching_nodes(page: &PageFacts, selectors: &[Selector]) -> Vec<bool> {
    let mut finders: Vec<_> = selectors.iter().map(|selector| selector.finder(page)).collect();
    let nodes = if finders.is_empty() { 0..0 } else { 0..page.parents.len() as u32 };
    nodes.map(|node| finders.iter_mut().any(|finder| finder.finds(node))).collect()
}

/// For each node, the first pin that matches it or one of its ancestors.
pub(super) fn pinned_nodes(page: &PageFacts, pins: &[Pin]) -> Vec<Option<usize>> {
    let mut pinned: Vec<Option<usize>> = Vec::new();
    if pins.is_empty() {
        return pinned;
    }
    let mut finders: Vec<_> = pins.iter().map(|pin| pin.selector.finder(page)).collect();
    for (index, above) in page.parents.iter().enumerate() {
        let inherited = if *above == NONE { None } else { pinned[*above as usize] };
        let own = || finders.iter_mut().position(|finder| finder.finds(index as u32));
        pinned.push(inherited.or_else(own));
    }
    pinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::segment::tests::sketch::sketch;

    fn texts_under(selector: &str) -> Vec<String> {
        let layout = sketch(
            "<html><body><div id=\"a\" class=\"x y\"><p>1</p><div><p class=\"z\">2</p></div></div>\
             <ul data-k=\"v\"><li>3</li></ul></body></html>",
        );
        let page = PageFacts::new(&layout, &[]);
        let pin = Pin { selector: Selector::parse(selector).unwrap(), importance: 0.5 };
        let pinned = pinned_nodes(&page, &[pin]);
        layout
            .nodes
            .iter()
            .zip(pinned)
            .filter(|(node, pin)| node.is_text() && pin.is_some())
            .map(|(node, _)| node.text.to_string())
            .collect()
    }

    #[test]
    fn selectors_find_what_css_finds() {
        for (selector, texts) in [
            ("p", vec!["1", "2"]),
            ("#a", vec!["1", "2"]),
            ("div#a.y.x > p", vec!["1"]),
            (".x p.z", vec!["2"]),
            (".x > p.z", vec![]),
            ("body > div > div p, [data-k=v] li", vec!["2", "3"]),
            ("[data-k]", vec!["3"]),
            ("* > li", vec!["3"]),
            ("em", vec![]),
        ] {
            assert_eq!(texts_under(selector), texts, "{selector}");
        }
    }

    #[test]
    fn selectors_match_parsed_pages_like_layouts() {
        let dom = Dom::parse(
            "<div id=a class='x y'><p>1 <b>one</b></p><div><p class=z>2<script>3</script></p></div></div><ul data-k=v><li>3",
        );
        for (selector, text) in [
            ("p", "1 one 2"),
            ("#a, p", "1 one 2"),
            ("div#a.y.x > p", "1 one"),
            (".x > p.z", ""),
            ("[data-k=v] li", "3"),
            ("script", ""),
        ] {
            assert_eq!(Selector::parse(selector).unwrap().text_in(&dom), text, "{selector}");
        }
    }

    #[test]
    fn a_selector_uses_stable_names() {
        let dom = Dom::parse(
            "<main><div id=post-48213 class='css-1x9z8a7 story'><p>one<p class=lead>two</div><div class=story><p>three</div></main>\
             <aside id=weather><ul><li>four<li class='now x1'>five</ul></aside><div><p>six</div>",
        );
        let named = |text: &str| {
            let at = dom
                .nodes
                .iter()
                .position(|node| matches!(&node.kind, DomKind::Text(own) if &**own == text))
                .unwrap();
            Selector::unique_for(&dom, dom.nodes[at].parent.unwrap()).map(|selector| selector.to_string())
        };
        assert_eq!(named("two").as_deref(), Some("p.lead"));
        assert_eq!(named("five").as_deref(), Some("li.now.x1"));
        assert_eq!(named("one"), None, "another story has such a paragraph");
        assert_eq!(named("four"), None);
        assert_eq!(named("six"), None);
        let weather = dom.nodes.iter().position(|node| node.tag() == "aside").unwrap();
        assert_eq!(Selector::unique_for(&dom, weather as u32).unwrap().to_string(), "#weather");
        let main = dom.nodes.iter().position(|node| node.tag() == "main").unwrap();
        assert_eq!(Selector::unique_for(&dom, main as u32).unwrap().to_string(), "main");
    }

    #[test]
    fn selectors_copied_from_browsers_work() {
        for (selector, texts) in [
            ("#a > div:nth-child(2) > p", vec!["2"]),
            ("body > :nth-child(2)", vec!["3"]),
            ("#a + ul", vec!["3"]),
            ("div ~ ul li:first-child", vec!["3"]),
            ("p:not(.z)", vec!["1"]),
            (":is(#a, main) > p, li:only-child", vec!["1", "3"]),
            ("div:last-of-type > .z", vec!["2"]),
            ("[class~=y] > p", vec!["1"]),
            ("ul[data-k^='v'], ul[data-k*=\"w\"]", vec!["3"]),
            ("UL[data-k=\"V\" i] > LI", vec!["3"]),
            ("div:has-no-such", vec![]),
        ] {
            match Selector::parse(selector) {
                Ok(_) => assert_eq!(texts_under(selector), texts, "{selector}"),
                Err(error) => assert!(texts.is_empty() && error.reason.contains("pseudo-class"), "{error}"),
            }
        }
        let dom = Dom::parse("<p class='md:w-1/2'>half</p><svg><linearGradient>g</linearGradient></svg>");
        assert_eq!(Selector::parse(r".md\:w-1\/2").unwrap().text_in(&dom), "half");
        assert_eq!(Selector::parse("linearGradient").unwrap().text_in(&dom), "g");
    }

    #[test]
    fn selectors_of_earlier_releases_still_work() {
        let dom = Dom::parse(
            "<p id=2024>year<p class='3col -x'>columns<a href=/map rel=2>map</a><b data-k='a.b'>dots</b>",
        );
        for (selector, text) in [
            ("#2024", "year"),
            ("p.3col > a", "map"),
            ("a[href=/map][rel=2]", "map"),
            ("[data-k=a.b]", "dots"),
            ("> #2024, .-x b", "year dots"),
        ] {
            assert_eq!(Selector::parse(selector).unwrap().text_in(&dom), text, "{selector}");
        }
    }

    #[test]
    fn unsupported_selectors_are_rejected() {
        for selector in ["", "#", ".", "a,,b", "a..b", "[=x]", "a {color: red}", "a, ", "x|a", "//div"] {
            assert!(Selector::parse(selector).is_err(), "{selector}");
        }
        for (selector, hint) in [
            ("a >", "ends in a combinator"),
            ("a:hover", "pseudo-class is not supported"),
            ("p::before", "pseudo-class is not supported"),
            ("a:has(b)", "pseudo-class is not supported"),
            (":is(a, b:visited)", "pseudo-class is not supported"),
            (&"a ".repeat(1001), "shorten it"),
        ] {
            let error = Selector::parse(selector).unwrap_err();
            assert!(error.reason.contains(hint), "{selector}: {error}");
        }
    }

    #[test]
    fn hostile_selectors_and_pages_cost_bounded_work() {
        let flat = format!("<main>{}</main>", "<p class=c>x</p>".repeat(50_000));
        let deep = format!("{}x", "<div class=c>".repeat(250)).repeat(40);
        let (flat, deep) = (Dom::parse(&flat), Dom::parse(&deep));
        for selector in [
            "p ~ ".repeat(400) + "a",
            "q ~ p".to_owned(),
            "* ".repeat(900) + "q",
            "a b > ".repeat(200) + "div",
            ":not(:is(".repeat(30) + "p" + &"))".repeat(30),
            ":nth-last-child(2n+1) ~ ".repeat(60) + "p:not(q ~ p)",
            ".c".repeat(900),
        ] {
            let Ok(selector) = Selector::parse(&selector) else { continue };
            for page in [&flat, &deep] {
                let _ = selector.text_in(page);
            }
        }
        let unsearched = Selector::parse("p:not(q ~ p ~ p)").unwrap();
        let n_found = unsearched.text_in(&flat).split(' ').count();
        assert!(n_found < 50_000, "what could not be searched for is not found: {n_found}");
    }
}
