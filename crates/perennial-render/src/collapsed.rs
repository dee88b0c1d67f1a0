//! Finds content that a reader opens with one click: closed `<details>`, tabs, accordions, "read more" boxes, slides.
//!
//! It belongs to the page, so it is laid out and marked. Menus and dialogs open with a click too, but they are not
//! content. Markup and usual class names distinguish them; only what styles really hide counts as collapsed.

use std::collections::HashSet;

use blitz_dom::BaseDocument;
use style::properties::generated::longhands::visibility::computed_value::T as Visibility;
use style::values::specified::box_::DisplayInside;

use crate::dom::{Dom, DomNode};
use crate::engine::NodeMap;

/// The parts of a page that may be collapsed.
pub(crate) struct Collapsible {
    /// By index of [`Dom::nodes`].
    roots: Vec<Part>,
    /// Whether the page has any.
    has_any: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Not the root of such a part.
    None,
    /// Collapsed if styles hide it.
    IfHidden,
    /// Collapsed by its markup.
    Closed,
}

impl Collapsible {
    pub(crate) fn find(dom: &Dom) -> Collapsible {
        let apart = apart_from_content(dom);
        let controlled = controlled_ids(dom, &apart);
        let part = |(index, node): (usize, &DomNode)| match apart[index] {
            true => Part::None,
            false => hidden_part(dom, node, &controlled),
        };
        let roots: Vec<Part> = dom.nodes.iter().enumerate().map(part).collect();
        let has_any = roots.iter().any(|part| *part != Part::None);
        Collapsible { roots, has_any }
    }

    pub(crate) fn is_root(&self, index: u32) -> bool {
        self.roots[index as usize] != Part::None
    }

    /// Whether markup or [`Collapsible::open`] closed the part with this root.
    pub(crate) fn is_closed(&self, index: u32) -> bool {
        self.roots[index as usize] == Part::Closed
    }

    /// Shows parts that styles hide. Call it after styles are computed. Returns whether any was hidden.
    pub(crate) fn open(&mut self, document: &mut BaseDocument, built: &NodeMap) -> bool {
        if !self.has_any {
            return false;
        }
        let mut has_opened = false;
        for (part, id) in self.roots.iter_mut().zip(&built.ids) {
            let Some(id) = id.filter(|_| *part != Part::None) else { continue };
            let Some(styles) = document.get_node(id).and_then(|node| node.primary_styles()) else { continue };
            let is_removed = styles.clone_display().inside() == DisplayInside::None;
            let is_unseen = styles.clone_visibility() != Visibility::Visible;
            drop(styles);
            if is_removed {
                document.set_style_property(id, "display", "block");
            }
            if is_unseen {
                document.set_style_property(id, "visibility", "visible");
            }
            if is_removed || is_unseen {
                *part = Part::Closed;
                has_opened = true;
            }
        }
        has_opened
    }
}

/// Whether a `<details>` is laid out open although it is closed.
pub(crate) fn is_closed_details(node: &DomNode) -> bool {
    node.tag() == "details" && node.attribute("open").is_none()
}

fn hidden_part(dom: &Dom, node: &DomNode, controlled: &HashSet<&str>) -> Part {
    let parent = node.parent.map(|parent| &dom.nodes[parent as usize]);
    if parent.is_some_and(is_closed_details) && node.tag() != "summary" {
        return Part::Closed;
    }
    if !node.is_html() {
        return Part::None;
    }
    let is_collapsible = node.attribute("role") == Some("tabpanel")
        || node.attribute("hidden") == Some("until-found")
        || node.attribute("id").is_some_and(|id| controlled.contains(id))
        || node.attribute("class").is_some_and(|class| class.split_ascii_whitespace().any(names_collapsible));
    match (is_collapsible, node.attribute("hidden").is_some()) {
        (false, _) => Part::None,
        (true, false) => Part::IfHidden,
        (true, true) => Part::Closed,
    }
}

/// Whether a class is a usual one of tabs, accordions, slides or "read more" boxes.
fn names_collapsible(class: &str) -> bool {
    let mut before = String::new();
    name_words(class).any(|word| {
        let pair = format!("{before} {word}");
        let is_known = matches!(
            &*word,
            "accordion"
                | "collapse"
                | "collapsible"
                | "collapsed"
                | "expandable"
                | "expander"
                | "carousel"
                | "slider"
                | "swiper"
                | "slick"
                | "tabpane"
                | "tabpanel"
                | "readmore"
        ) || matches!(
            &*pair,
            "tab pane"
                | "tab panel"
                | "tab content"
                | "tabs panel"
                | "tabs content"
                | "read more"
                | "show more"
                | "more text"
                | "more content"
                | "faq answer"
                | "toggle content"
        );
        before = word;
        is_known
    })
}

/// The words of a name such as `tab-pane`, `tabPane` or `tab__pane`, in lower case.
fn name_words(name: &str) -> impl Iterator<Item = String> + '_ {
    let parts = name.split(|c: char| !c.is_ascii_alphabetic()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let starts = part.char_indices().filter(|(at, c)| {
            *at > 0 && c.is_ascii_uppercase() && part.as_bytes()[at - 1].is_ascii_lowercase()
        });
        let mut ends: Vec<usize> = starts.map(|(at, _)| at).collect();
        ends.push(part.len());
        let mut from = 0;
        ends.into_iter().map(move |end| part[std::mem::replace(&mut from, end)..end].to_ascii_lowercase())
    })
}

/// The IDs of parts that a button opens.
fn controlled_ids<'d>(dom: &'d Dom, apart: &[bool]) -> HashSet<&'d str> {
    let mut ids = HashSet::new();
    for (node, _) in dom.nodes.iter().zip(apart).filter(|(node, is_apart)| node.is_html() && !**is_apart) {
        let is_tab = node.attribute("role") == Some("tab");
        let opens = is_tab || node.attribute("aria-expanded") == Some("false");
        if opens && node.attribute("aria-haspopup").is_none() {
            ids.extend(node.attribute("aria-controls").unwrap_or_default().split_ascii_whitespace());
        }
        let toggles = ["data-toggle", "data-bs-toggle"].into_iter().find_map(|name| node.attribute(name));
        if matches!(toggles, Some("collapse" | "tab" | "pill")) {
            let targets = ["data-target", "data-bs-target", "href"];
            let target = targets.into_iter().find_map(|name| node.attribute(name)?.strip_prefix('#'));
            ids.extend(target);
        }
    }
    ids
}

/// For each node whether it is in a menu, dialog or similar part.
fn apart_from_content(dom: &Dom) -> Vec<bool> {
    let mut apart: Vec<bool> = Vec::with_capacity(dom.nodes.len());
    let mut is_content: Vec<bool> = Vec::with_capacity(dom.nodes.len());
    for node in &dom.nodes {
        let above = node.parent.map(|parent| parent as usize);
        let is_in_content = above.is_some_and(|above| is_content[above]);
        let is_apart = above.is_some_and(|above| apart[above])
            || node.is_html() && !matches!(node.tag(), "html" | "body") && is_apart(node, is_in_content);
        is_content.push(is_in_content || matches!(node.tag(), "article" | "main" | "section"));
        apart.push(is_apart);
    }
    apart
}

fn is_apart(node: &DomNode, is_in_content: bool) -> bool {
    let by_tag = match node.tag() {
        "nav" | "dialog" | "select" => true,
        "header" | "footer" => !is_in_content,
        _ => false,
    };
    let by_role = || {
        matches!(
            node.attribute("role"),
            Some(
                "navigation"
                    | "menu"
                    | "menubar"
                    | "dialog"
                    | "alertdialog"
                    | "listbox"
                    | "search"
                    | "banner"
                    | "contentinfo"
                    | "tooltip"
            )
        )
    };
    let is_known = |word: String| {
        matches!(
            &*word,
            "nav"
                | "navbar"
                | "navigation"
                | "menu"
                | "submenu"
                | "dropdown"
                | "modal"
                | "dialog"
                | "popup"
                | "overlay"
                | "cookie"
                | "cookies"
                | "consent"
                | "offcanvas"
                | "drawer"
                | "lightbox"
                | "tooltip"
                | "login"
                | "search"
        )
    };
    by_tag || by_role() || node.attribute("class").is_some_and(|class| name_words(class).any(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let words = |name| name_words(name).collect::<Vec<_>>();
        assert_eq!(words("tab-pane"), ["tab", "pane"]);
        assert_eq!(words("faqAnswer__item2x"), ["faq", "answer", "item", "x"]);
        assert!(names_collapsible("tabPanel") && names_collapsible("accordion-item__body"));
        assert!(!names_collapsible("table-pane") && !names_collapsible("more"));
    }
}
