//! Element trees -> input of the `selectors` crate, with a limit on the work per search.

use std::borrow::Borrow;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::num::NonZero;
use std::ptr::NonNull;

use cssparser::{ToCss, serialize_identifier};
use precomputed_hash::PrecomputedHash;
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode, SelectorCaches,
};
use selectors::matching::{ElementSelectorFlags, matches_selector_list};
use selectors::parser::{NonTSPseudoClass, PseudoElement, SelectorImpl};
use selectors::{Element, OpaqueElement, SelectorList};

use super::facts::{NONE, PageFacts};
use crate::text::dom::Dom;

/// Maximum steps and comparisons of one selector on one page. `a b` on the largest accepted page takes at most 50
/// million. A selector that exceeds the limit matches nothing from then on.
const MAX_WORK: u64 = 60_000_000;
/// Bytes of an attribute value that cost one step.
const BYTES_PER_STEP: usize = 32;

/// Elements and texts in document order.
pub(super) trait ElementTree {
    fn n_nodes(&self) -> u32;
    fn parent(&self, node: u32) -> Option<u32>;
    /// Name of an element. `None` for a text.
    fn tag(&self, node: u32) -> Option<&str>;
    fn attribute(&self, node: u32, name: &str) -> Option<&str>;
}

impl ElementTree for PageFacts<'_> {
    fn n_nodes(&self) -> u32 {
        self.parents.len() as u32
    }

    fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parents[node as usize]).filter(|parent| *parent != NONE)
    }

    fn tag(&self, node: u32) -> Option<&str> {
        let node = self.node(node);
        (!node.is_text()).then_some(&node.tag)
    }

    fn attribute(&self, node: u32, name: &str) -> Option<&str> {
        self.node(node).attribute(name)
    }
}

impl ElementTree for Dom {
    fn n_nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn parent(&self, node: u32) -> Option<u32> {
        self.nodes[node as usize].parent
    }

    fn tag(&self, node: u32) -> Option<&str> {
        self.is_element(node).then(|| self.nodes[node as usize].tag())
    }

    fn attribute(&self, node: u32, name: &str) -> Option<&str> {
        self.nodes[node as usize].attribute(name)
    }
}

pub(super) struct SelectorMatcher<'s, T> {
    list: &'s SelectorList<Css>,
    search: SelectorSearch<'s, T>,
    caches: SelectorCaches,
}

impl<'s, T: ElementTree> SelectorMatcher<'s, T> {
    pub(super) fn new(list: &'s SelectorList<Css>, tree: &'s T) -> SelectorMatcher<'s, T> {
        let search = SelectorSearch { tree, relatives: OnceCell::new(), work_left: Cell::new(MAX_WORK) };
        SelectorMatcher { list, search, caches: SelectorCaches::default() }
    }

    /// Whether the selector matches a node.
    pub(super) fn finds(&mut self, node: u32) -> bool {
        if self.search.tree.tag(node).is_none() || !self.search.spend(1) {
            return false;
        }
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut self.caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        let is_found =
            matches_selector_list(self.list, &SelectorNode { search: &self.search, node }, &mut context);
        // Inside `:not`, an aborted match would count as a success.
        is_found && self.search.spend(0)
    }
}

struct SelectorSearch<'t, T> {
    tree: &'t T,
    /// Computed on demand, because few selectors need it.
    relatives: OnceCell<Vec<Relatives>>,
    work_left: Cell<u64>,
}

/// The neighbours of an element; [`NONE`] if missing.
#[derive(Clone)]
struct Relatives {
    previous: u32,
    next: u32,
    first_child: u32,
}

impl<T: ElementTree> SelectorSearch<'_, T> {
    /// Returns false once the limit is exceeded.
    fn spend(&self, work: u64) -> bool {
        self.work_left.set(self.work_left.get().saturating_sub(work));
        self.work_left.get() > 0
    }

    fn relatives(&self, node: u32) -> &Relatives {
        &self.relatives.get_or_init(|| relatives(self.tree))[node as usize]
    }
}

fn relatives(tree: &impl ElementTree) -> Vec<Relatives> {
    let none = Relatives { previous: NONE, next: NONE, first_child: NONE };
    let mut relatives = vec![none; tree.n_nodes() as usize];
    let mut last_children = vec![NONE; relatives.len()];
    for node in (0..tree.n_nodes()).filter(|node| tree.tag(*node).is_some()) {
        let Some(parent) = tree.parent(node) else { continue };
        let previous = std::mem::replace(&mut last_children[parent as usize], node);
        match relatives.get_mut(previous as usize) {
            Some(before) => before.next = node,
            None => relatives[parent as usize].first_child = node,
        }
        relatives[node as usize].previous = previous;
    }
    relatives
}

struct SelectorNode<'t, T> {
    search: &'t SelectorSearch<'t, T>,
    node: u32,
}

impl<T> Clone for SelectorNode<'_, T> {
    fn clone(&self) -> Self {
        SelectorNode { search: self.search, node: self.node }
    }
}

impl<T> fmt::Debug for SelectorNode<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {}", self.node)
    }
}

impl<'t, T: ElementTree> SelectorNode<'t, T> {
    fn at(&self, node: u32) -> Option<Self> {
        (node != NONE && self.search.spend(1)).then_some(SelectorNode { search: self.search, node })
    }

    fn attribute(&self, name: &str) -> Option<&'t str> {
        let value = self.search.tree.attribute(self.node, name);
        let work = 1 + value.map_or(0, str::len) / BYTES_PER_STEP;
        value.filter(|_| self.search.spend(work as u64))
    }
}

impl<T: ElementTree> Element for SelectorNode<'_, T> {
    type Impl = Css;

    fn opaque(&self) -> OpaqueElement {
        let number = NonZero::<usize>::MIN.saturating_add(self.node as usize);
        OpaqueElement::from_non_null_ptr(NonNull::without_provenance(number))
    }

    fn parent_element(&self) -> Option<Self> {
        self.at(self.search.tree.parent(self.node)?)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.at(self.search.relatives(self.node).previous)
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.at(self.search.relatives(self.node).next)
    }

    fn first_element_child(&self) -> Option<Self> {
        self.at(self.search.relatives(self.node).first_child)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        true
    }

    fn has_local_name(&self, name: &str) -> bool {
        self.search.spend(1)
            && self.search.tree.tag(self.node).is_some_and(|tag| tag.eq_ignore_ascii_case(name))
    }

    /// Users' selectors contain no namespaces.
    fn has_namespace(&self, _: &str) -> bool {
        true
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.search.tree.tag(self.node) == self.search.tree.tag(other.node)
    }

    fn attr_matches(
        &self,
        _: &NamespaceConstraint<&Name>,
        name: &Name,
        operation: &AttrSelectorOperation<&Name>,
    ) -> bool {
        self.attribute(&name.0).is_some_and(|value| operation.eval_str(value))
    }

    fn has_id(&self, id: &Name, case: CaseSensitivity) -> bool {
        self.attribute("id").is_some_and(|own| case.eq(own.as_bytes(), id.0.as_bytes()))
    }

    fn has_class(&self, class: &Name, case: CaseSensitivity) -> bool {
        let is_class = |own: &str| case.eq(own.as_bytes(), class.0.as_bytes());
        self.attribute("class").is_some_and(|classes| classes.split_ascii_whitespace().any(is_class))
    }

    fn is_empty(&self) -> bool {
        let next = self.node + 1;
        next >= self.search.tree.n_nodes() || self.search.tree.parent(next) != Some(self.node)
    }

    fn is_root(&self) -> bool {
        self.search.tree.parent(self.node).is_none()
    }

    fn match_non_ts_pseudo_class(&self, pseudo: &NoPseudoClass, _: &mut MatchingContext<Css>) -> bool {
        match *pseudo {}
    }

    fn match_pseudo_element(&self, pseudo: &NoPseudoClass, _: &mut MatchingContext<Css>) -> bool {
        match *pseudo {}
    }

    // Captured pages have no shadow trees, visited links or custom states, and nothing is matched again after a
    // change.

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    fn is_link(&self) -> bool {
        false
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    fn has_custom_state(&self, _: &Name) -> bool {
        false
    }

    fn imported_part(&self, _: &Name) -> Option<Name> {
        None
    }

    fn is_part(&self, _: &Name) -> bool {
        false
    }

    fn add_element_unique_hashes(&self, _: &mut BloomFilter) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
pub(super) struct Css;

impl SelectorImpl for Css {
    type ExtraMatchingData<'a> = ();
    type AttrValue = Name;
    type Identifier = Name;
    type LocalName = Name;
    type NamespaceUrl = Name;
    type NamespacePrefix = Name;
    type BorrowedNamespaceUrl = str;
    type BorrowedLocalName = str;
    type NonTSPseudoClass = NoPseudoClass;
    type PseudoElement = NoPseudoClass;
}

/// A name or a value within a selector.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Name(String);

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.to_owned())
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl ToCss for Name {
    fn to_css<W: fmt::Write>(&self, out: &mut W) -> fmt::Result {
        serialize_identifier(&self.0, out)
    }
}

/// Required for Bloom filters, which are not used here.
impl PrecomputedHash for Name {
    fn precomputed_hash(&self) -> u32 {
        0
    }
}

/// A pseudo-class or pseudo-element. The parser rejects all of them, so no value exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NoPseudoClass {}

impl ToCss for NoPseudoClass {
    fn to_css<W: fmt::Write>(&self, _: &mut W) -> fmt::Result {
        match *self {}
    }
}

impl PseudoElement for NoPseudoClass {}

impl NonTSPseudoClass for NoPseudoClass {
    fn is_active_or_hover(&self) -> bool {
        match *self {}
    }

    fn is_user_action_state(&self) -> bool {
        match *self {}
    }
}
