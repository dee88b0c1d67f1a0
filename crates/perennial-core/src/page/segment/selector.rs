//! CSS selectors for pins and for what is ignored: tag, `#id`, `.class`, `[name]`, `[name=value]`, joined by descendant (space), child
//! (`>`) and comma. Enough to point at a part of a site; anything else is refused with a reason.

use std::fmt;

use super::facts::{NONE, Page};
use crate::text::dom::{Dom, DomKind};

/// Why a selector cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("selector {selector:?}: {reason}")]
pub struct SelectorError {
    /// The selector as it was given.
    pub selector: String,
    /// What is wrong, and what to write instead.
    pub reason: &'static str,
}

/// What one element must match.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Compound {
    tag: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
    attributes: Vec<(String, Option<String>)>,
    /// Whether it is joined to the step before by `>` and not by a space.
    is_child: bool,
}

/// A parsed selector.
#[derive(Clone, PartialEq, Eq)]
pub struct Selector {
    text: String,
    alternatives: Vec<Vec<Compound>>,
}

impl fmt::Display for Selector {
    /// As it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({})", self.text)
    }
}

/// More steps than this are refused: matching costs their product with the depth of the page.
const MAX_STEPS: usize = 16;
/// Steps and classes of a selector that names an element.
const MAX_NAMED: usize = 6;
const MAX_CLASSES: usize = 2;
/// Elements of which a page usually has one.
const LANDMARKS: [&str; 4] = ["main", "header", "footer", "article"];

/// Whether a person gave this name: one of a machine has many figures, and is another one tomorrow.
fn is_given(name: &str) -> bool {
    let n_figures = name.bytes().filter(u8::is_ascii_digit).count();
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    is_name && (2..=40).contains(&name.len()) && n_figures <= 2 && name.starts_with(char::is_alphabetic)
}

impl Selector {
    /// Parses a selector such as `#live .ticker, aside > ul`.
    pub fn parse(selector: &str) -> Result<Selector, SelectorError> {
        let alternatives: Result<Vec<_>, &'static str> = selector.split(',').map(parse_steps).collect();
        match alternatives {
            Ok(alternatives) => Ok(Selector { text: selector.to_string(), alternatives }),
            Err(reason) => Err(SelectorError { selector: selector.to_string(), reason }),
        }
    }

    /// A selector that finds an element of a page, and no more than one, by what is likely to stay when the page changes: ids and classes
    /// that people gave. `None` where there are none to tell it by, and then the element around it should be taken.
    pub fn naming(dom: &Dom, node: u32) -> Option<Selector> {
        let mut steps: Vec<String> = Vec::new();
        let mut here = Some(node).filter(|node| dom.is_element(*node));
        while let Some(at) = here.filter(|_| steps.len() < MAX_NAMED) {
            let element = dom.nodes.get(at as usize)?;
            let id = element.attribute("id").filter(|id| is_given(id));
            let mut classes: Vec<&str> =
                element.attribute("class").unwrap_or_default().split_ascii_whitespace().collect();
            classes.retain(|class| is_given(class));
            classes.truncate(MAX_CLASSES);
            let step = match id {
                Some(id) => format!("#{id}"),
                None if classes.is_empty() => element.tag().to_owned(),
                None => format!("{}.{}", element.tag(), classes.join(".")),
            };
            steps.insert(0, step);
            let found = Selector::parse(&steps.join(" > ")).ok()?;
            let is_told =
                steps.iter().any(|step| step.contains(['#', '.'])) || LANDMARKS.contains(&element.tag());
            if is_told && found.finds_only(dom, node) {
                return Some(found);
            }
            here = element.parent.filter(|above| dom.is_element(*above));
        }
        None
    }

    /// Whether it finds this element and no other.
    fn finds_only(&self, dom: &Dom, node: u32) -> bool {
        let is_found = |at: &u32| self.alternatives.iter().any(|steps| matches_steps(dom, *at, steps));
        (0..dom.nodes.len() as u32).filter(is_found).take(2).eq([node])
    }

    /// What either of the two finds.
    pub fn or(self, other: &Selector) -> Selector {
        let alternatives = self.alternatives.into_iter().chain(other.alternatives.iter().cloned()).collect();
        Selector { text: format!("{}, {}", self.text, other.text), alternatives }
    }

    pub(super) fn matches(&self, page: &Page, node: u32) -> bool {
        self.alternatives.iter().any(|steps| matches_steps(page, node, steps))
    }

    /// The text of what it finds on a page, in document order, a space between words; what stands inside of another match is not said
    /// twice. Scripts and styles have no text.
    pub fn text_in(&self, dom: &Dom) -> String {
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(node) = dom.nodes.get(at as usize) {
            let is_found = self.alternatives.iter().any(|steps| matches_steps(dom, at, steps));
            at = match is_found {
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

/// The words from a node up to another.
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

/// A tree of elements in which a selector finds something.
trait Elements {
    /// The node above.
    fn above(&self, node: u32) -> Option<u32>;
    /// Name of an element; `None` for a text.
    fn tag(&self, node: u32) -> Option<&str>;
    /// The value of an attribute.
    fn attribute(&self, node: u32, name: &str) -> Option<&str>;
}

impl Elements for Page<'_> {
    fn above(&self, node: u32) -> Option<u32> {
        Some(self.parents[node as usize]).filter(|above| *above != NONE)
    }

    fn tag(&self, node: u32) -> Option<&str> {
        let node = self.node(node);
        (!node.is_text()).then_some(&node.tag)
    }

    fn attribute(&self, node: u32, name: &str) -> Option<&str> {
        self.node(node).attribute(name)
    }
}

impl Elements for Dom {
    fn above(&self, node: u32) -> Option<u32> {
        self.nodes[node as usize].parent
    }

    fn tag(&self, node: u32) -> Option<&str> {
        self.is_element(node).then(|| self.nodes[node as usize].tag())
    }

    fn attribute(&self, node: u32, name: &str) -> Option<&str> {
        self.nodes[node as usize].attribute(name)
    }
}

fn parse_steps(alternative: &str) -> Result<Vec<Compound>, &'static str> {
    let spaced = alternative.replace('>', " > ");
    let mut steps = Vec::new();
    let mut is_child = false;
    for word in spaced.split_ascii_whitespace() {
        if word == ">" {
            is_child = true;
            continue;
        }
        let mut step = parse_compound(word)?;
        step.is_child = std::mem::take(&mut is_child) && !steps.is_empty();
        steps.push(step);
    }
    match steps.len() {
        _ if is_child => Err("ends in >: name the child"),
        0 => Err("is empty: name a tag, #id or .class"),
        1..=MAX_STEPS => Ok(steps),
        _ => Err("has too many steps: shorten it"),
    }
}

fn parse_compound(word: &str) -> Result<Compound, &'static str> {
    const UNKNOWN: &str = "only tag, #id, .class, [name], [name=value], space, > and comma are understood";
    let mut compound = Compound::default();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let body = if matches!(first, '#' | '.' | '[') { &rest[1..] } else { rest };
        let stop = |c: char| if first == '[' { c == ']' } else { matches!(c, '#' | '.' | '[') };
        let end = body.find(stop).unwrap_or(body.len());
        let name = &body[..end];
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        };
        match first {
            '[' => {
                let (name, value) =
                    name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
                let value = value.map(|value| value.trim_matches(['"', '\'']).to_string());
                if end == body.len() || !is_name(name) {
                    return Err(UNKNOWN);
                }
                compound.attributes.push((name.to_ascii_lowercase(), value));
            }
            _ if !is_name(name) && (name != "*" || compound.tag.is_some()) => return Err(UNKNOWN),
            '#' => compound.id = Some(name.to_string()),
            '.' => compound.classes.push(name.to_string()),
            _ => compound.tag = Some(name.to_ascii_lowercase()).filter(|tag| tag != "*"),
        }
        rest = &body[(end + usize::from(first == '[')).min(body.len())..];
    }
    Ok(compound)
}

/// Matches from the last step up. For descendants alone the nearest ancestor that matches is enough. With `>` the steps
/// above are tried from each ancestor, at most depth times steps in all.
fn matches_steps(page: &impl Elements, node: u32, steps: &[Compound]) -> bool {
    let Some((last, above)) = steps.split_last() else { return true };
    if !matches_compound(page, node, last) {
        return false;
    }
    if above.is_empty() {
        return true;
    }
    let mut parent = page.above(node);
    while let Some(here) = parent {
        if matches_steps(page, here, above) {
            return true;
        }
        if last.is_child {
            return false;
        }
        parent = page.above(here);
    }
    false
}

fn matches_compound(page: &impl Elements, node: u32, compound: &Compound) -> bool {
    let Some(own_tag) = page.tag(node) else { return false };
    let has_class = |class: &String| {
        page.attribute(node, "class")
            .is_some_and(|classes| classes.split_ascii_whitespace().any(|own| own == class))
    };
    compound.tag.as_ref().is_none_or(|tag| *tag == own_tag)
        && compound.id.as_ref().is_none_or(|id| page.attribute(node, "id") == Some(id))
        && compound.classes.iter().all(has_class)
        && compound.attributes.iter().all(|(name, wanted)| match (page.attribute(node, name), wanted) {
            (Some(value), Some(wanted)) => value == wanted,
            (found, _) => found.is_some() && wanted.is_none(),
        })
}

/// Fixes the importance of a part of a site's pages.
#[derive(Clone, PartialEq, Debug)]
pub struct Pin {
    /// The part: blocks that lie mostly inside a match.
    pub selector: Selector,
    /// The share of the page's importance that all its blocks have together, 0 to 1.
    pub importance: f32,
}

/// For each node the first pin that matches it or a node above.
pub(super) fn pinned_nodes(page: &Page, pins: &[Pin]) -> Vec<Option<usize>> {
    let mut pinned: Vec<Option<usize>> = Vec::new();
    if pins.is_empty() {
        return pinned;
    }
    for index in 0..page.parents.len() {
        let above = page.parents[index];
        let inherited = if above == NONE { None } else { pinned[above as usize] };
        pinned
            .push(inherited.or_else(|| pins.iter().position(|pin| pin.selector.matches(page, index as u32))));
    }
    pinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::segment::sketch::sketch;

    fn texts_under(selector: &str) -> Vec<String> {
        let layout = sketch(
            "<html><body><div id=\"a\" class=\"x y\"><p>1</p><div><p class=\"z\">2</p></div></div>\
             <ul data-k=\"v\"><li>3</li></ul></body></html>",
        );
        let page = Page::new(&layout, &[]);
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
    fn a_parsed_page_is_selected_from_as_a_layout_is() {
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
    fn an_element_is_named_by_what_stays() {
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
            Selector::naming(&dom, dom.nodes[at].parent.unwrap()).map(|selector| selector.to_string())
        };
        assert_eq!(named("two").as_deref(), Some("p.lead"));
        assert_eq!(named("five").as_deref(), Some("li.now.x1"));
        assert_eq!(named("one"), None, "another story has such a paragraph");
        assert_eq!(named("four"), None);
        assert_eq!(named("six"), None);
        let weather = dom.nodes.iter().position(|node| node.tag() == "aside").unwrap();
        assert_eq!(Selector::naming(&dom, weather as u32).unwrap().to_string(), "#weather");
        let main = dom.nodes.iter().position(|node| node.tag() == "main").unwrap();
        assert_eq!(Selector::naming(&dom, main as u32).unwrap().to_string(), "main");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for selector in ["", "a:hover", "a >", "a + b", "[x", "#", ".", "a,,b", "a..b", "p::before", "[=x]"] {
            assert!(Selector::parse(selector).is_err(), "{selector}");
        }
    }
}
