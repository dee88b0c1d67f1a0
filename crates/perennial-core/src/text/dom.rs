//! Text of a page -> a bounded tree of elements and texts.
//!
//! The layout engine builds its document from this tree. The structural layout and the article extraction read it
//! directly, so all of them use the same nodes.
//!
//! The parser of html5ever searches its stack of open elements on almost every tag. It compares each formatting
//! element with all open ones, and repeats unclosed ones in every paragraph. Hostile input makes all of this
//! quadratic. A gate between tokenizer and tree builder therefore drops tags below [`MAX_DEPTH`], names and formatting
//! elements beyond their limits, and everything after [`MAX_NODES`] or [`MAX_TAGS`]. The tokenizer has its own limits
//! ([`crate::text::tokens`]).

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashSet;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, LocalName, QualName, ns};

use crate::text::tokens::{MAX_ATTRIBUTES, read_tokens};

/// Maximum nesting. Deeper elements become siblings, because the engine recurses and its stack is limited.
pub const MAX_DEPTH: u16 = 256;

/// Maximum nodes of a page; the rest is not read. Trees, layouts and blocks together take about 700 bytes per node.
pub const MAX_NODES: usize = 200_000;

/// Maximum stored attributes of all elements.
const MAX_KEPT_ATTRIBUTES: usize = 1_000_000;

/// Maximum tags, including those without a node: each may cost a walk over all open elements.
pub const MAX_TAGS: usize = 2_000_000;

/// Maximum different attribute names. The parser keeps all names of a process in one table of fixed width, and
/// compares each new one with part of the others. A page has hundreds.
const MAX_NAMES: usize = 50_000;

/// Names up to this length are not stored in that table.
const SHORT_NAME_BYTES: usize = 7;

/// Maximum attribute comparisons for formatting elements, each of which is compared with every open one. A page with
/// 100,000 links at a depth of 30 needs a quarter of them.
const MAX_FORMATTING_WORK: usize = 64_000_000;

/// A body with at most this much text has nothing to read.
const FEW_BYTES: usize = 200;

/// The kind and content of a [`DomNode`].
#[derive(Clone, PartialEq, Debug)]
pub enum DomKind {
    /// An element.
    Element {
        /// Name with its namespace.
        name: QualName,
        attributes: Vec<Attribute>,
    },
    /// A run of text.
    Text(String),
}

/// One node of [`Dom`].
#[derive(Clone, PartialEq, Debug)]
pub struct DomNode {
    /// `None` for the root only.
    pub parent: Option<u32>,
    /// One past the last node below it.
    pub end: u32,
    pub kind: DomKind,
}

impl DomNode {
    pub fn first_class(&self) -> Option<&str> {
        self.attribute("class").and_then(|names| names.split_whitespace().next())
    }

    /// The local tag name; empty for a text.
    pub fn tag(&self) -> &str {
        match &self.kind {
            DomKind::Element { name, .. } => &name.local,
            DomKind::Text(_) => "",
        }
    }

    pub fn attribute(&self, wanted: &str) -> Option<&str> {
        match &self.kind {
            DomKind::Element { attributes, .. } => {
                attributes.iter().find(|attribute| &*attribute.name.local == wanted).map(|a| &*a.value)
            }
            DomKind::Text(_) => None,
        }
    }

    /// Whether it is in the HTML namespace and not in SVG or MathML.
    pub fn is_html(&self) -> bool {
        matches!(&self.kind, DomKind::Element { name, .. } if name.ns == ns!(html))
    }
}

/// A parsed page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dom {
    /// Elements and texts in document order. The first is the root element, `html`.
    pub nodes: Vec<DomNode>,
    /// Whether the body contains enough text to read, visible or hidden.
    pub has_body_text: bool,
}

impl Dom {
    /// Parses a page with scripting enabled. Therefore, the contents of `noscript` are not elements.
    pub fn parse(html: &str) -> Dom {
        let builder = TreeBuilder::new(
            Sink::default(),
            TreeBuilderOpts { scripting_enabled: true, drop_doctype: true, ..TreeBuilderOpts::default() },
        );
        let options = TokenizerOpts { discard_bom: true, ..TokenizerOpts::default() };
        let gate = read_tokens(html, Gate::new(builder), options);
        let mut dom = Dom::from_sink_nodes(gate.builder.sink.nodes.into_inner());
        dom.has_body_text = dom.child_of_root("body").is_some_and(|body| dom.has_text(body));
        dom
    }

    /// Puts the nodes below the document in order and leaves out comments.
    fn from_sink_nodes(mut made: Vec<SinkNode>) -> Dom {
        let mut nodes: Vec<DomNode> = Vec::with_capacity(made.len());
        let is_element = |made: &[SinkNode], node: u32| {
            matches!(made[node as usize].kind, SinkKind::Node(DomKind::Element { .. }))
        };
        let root = made[0].children.iter().copied().find(|&child| is_element(&made, child));
        let mut pending: Vec<(u32, Option<u32>)> = root.map(|root| (root, None)).into_iter().collect();
        while let Some((index, parent)) = pending.pop() {
            let node = &mut made[index as usize];
            if let SinkKind::Node(kind) = std::mem::replace(&mut node.kind, SinkKind::Comment) {
                let own = nodes.len() as u32;
                nodes.push(DomNode { parent, end: own + 1, kind });
                pending.extend(node.children.iter().rev().map(|&child| (child, Some(own))));
            }
        }
        Dom::in_order(nodes)
    }

    /// Builds a tree from nodes in document order with known parents.
    pub fn in_order(mut nodes: Vec<DomNode>) -> Dom {
        for index in (1..nodes.len()).rev() {
            let end = nodes[index].end;
            if let Some(parent) = nodes[index].parent {
                let above = &mut nodes[parent as usize];
                above.end = above.end.max(end);
            }
        }
        Dom { nodes, has_body_text: false }
    }

    /// The root element, `html`.
    pub fn root(&self) -> Option<u32> {
        (!self.nodes.is_empty()).then_some(0)
    }

    pub fn is_element(&self, node: u32) -> bool {
        matches!(self.nodes[node as usize].kind, DomKind::Element { .. })
    }

    /// The children of a node in document order.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.nodes[node as usize].end;
        let inside = move |child: u32| (child < end).then_some(child);
        std::iter::successors(inside(node + 1), move |&child| inside(self.nodes[child as usize].end))
    }

    /// The first child of the root with this name, such as `head` or `body`.
    pub fn child_of_root(&self, tag: &str) -> Option<u32> {
        self.children(self.root()?).find(|&child| self.nodes[child as usize].tag() == tag)
    }

    /// The `href` of the first `base` element in the head.
    pub fn base_href(&self) -> Option<&str> {
        let head = self.child_of_root("head")?;
        self.children(head)
            .map(|child| &self.nodes[child as usize])
            .find(|node| node.tag() == "base" && node.attribute("href").is_some())?
            .attribute("href")
    }

    /// All texts below a node in order.
    fn texts(&self, node: u32) -> impl Iterator<Item = &str> {
        self.nodes[node as usize..self.nodes[node as usize].end as usize].iter().filter_map(
            |node| match &node.kind {
                DomKind::Text(text) => Some(text.as_str()),
                DomKind::Element { .. } => None,
            },
        )
    }

    /// All text below a node.
    pub fn text_content(&self, node: u32) -> String {
        self.texts(node).collect()
    }

    /// Whether there is more than [`FEW_BYTES`] of text, not counting white space around it.
    fn has_text(&self, node: u32) -> bool {
        let (mut n_bytes, mut n_blank) = (0, 0);
        for text in self.texts(node) {
            let text = if n_bytes == 0 { text.trim_start() } else { text };
            let n_solid = text.trim_end().len();
            if n_solid > 0 {
                (n_bytes, n_blank) = (n_bytes + n_blank + n_solid, 0);
            }
            n_blank += text.len() - n_solid;
            if n_bytes > FEW_BYTES {
                return true;
            }
        }
        false
    }
}

/// Passes tokens to the tree builder unless they would make the tree too deep, too large or too expensive.
struct Gate {
    builder: TreeBuilder<u32, Sink>,
    /// Whether an end tag since the last dropped start tag may have changed the depth.
    has_closed: Cell<bool>,
    n_tags: Cell<usize>,
    /// Attribute names in the tree, except short ones.
    names: RefCell<HashSet<LocalName>>,
    n_attributes: Cell<usize>,
    formatting_work: Cell<usize>,
}

impl Gate {
    fn new(builder: TreeBuilder<u32, Sink>) -> Gate {
        Gate {
            builder,
            has_closed: Cell::new(false),
            n_tags: Cell::new(0),
            names: RefCell::default(),
            n_attributes: Cell::new(0),
            formatting_work: Cell::new(0),
        }
    }

    /// Whether a tag is admitted. If so, its attributes are limited.
    fn admits(&self, tag: &mut Tag) -> bool {
        self.n_tags.set(self.n_tags.get() + 1);
        if tag.kind == TagKind::EndTag || tag.self_closing {
            self.has_closed.set(true);
            self.bound_attributes(tag);
            return true;
        }
        let is_deep = self.builder.sink.depth.get() >= MAX_DEPTH;
        if is_deep && !self.has_closed.replace(false) {
            return false;
        }
        self.bound_attributes(tag);
        !is_formatting(&tag.name) || self.admits_formatting(tag)
    }

    /// Removes attributes beyond the limits, and all attributes of end tags.
    fn bound_attributes(&self, tag: &mut Tag) {
        if tag.kind == TagKind::EndTag {
            tag.attrs.clear();
        }
        tag.attrs.truncate(MAX_KEPT_ATTRIBUTES.saturating_sub(self.n_attributes.get()));
        tag.attrs.retain(|attribute| self.admits_name(&attribute.name.local));
        self.n_attributes.set(self.n_attributes.get() + tag.attrs.len());
    }

    fn admits_name(&self, name: &LocalName) -> bool {
        if name.len() <= SHORT_NAME_BYTES {
            return true;
        }
        let mut names = self.names.borrow_mut();
        names.contains(name) || names.len() < MAX_NAMES && names.insert(name.clone())
    }

    fn admits_formatting(&self, tag: &Tag) -> bool {
        let n_open = usize::from(self.builder.sink.depth.get());
        let work = self.formatting_work.get() + n_open * (1 + tag.attrs.len());
        self.formatting_work.set(work);
        work <= MAX_FORMATTING_WORK
    }

    fn is_full(&self) -> bool {
        self.n_tags.get() >= MAX_TAGS || self.builder.sink.nodes.borrow().len() >= MAX_NODES
    }
}

/// Elements that the tree builder repeats if they are left open (HTML standard, 13.2.4.3).
fn is_formatting(name: &str) -> bool {
    const NAMES: [&str; 14] =
        ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
    name.len() <= 6 && NAMES.contains(&name)
}

impl TokenSink for Gate {
    type Handle = u32;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<u32> {
        if self.is_full() && !matches!(token, Token::EOFToken) {
            return TokenSinkResult::Continue;
        }
        if let Token::TagToken(tag) = &mut token
            && !self.admits(tag)
        {
            return TokenSinkResult::Continue;
        }
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// The kind of a node during parsing.
enum SinkKind {
    /// The document (always node 0) or the contents of a template.
    Document,
    Node(DomKind),
    /// A comment or processing instruction, of which only the position is kept.
    Comment,
}

struct SinkNode {
    /// `None` for the document and for removed nodes.
    parent: Option<u32>,
    children: Vec<u32>,
    kind: SinkKind,
    depth: u16,
}

struct Sink {
    nodes: RefCell<Vec<SinkNode>>,
    /// Depth of the last insertion.
    depth: Cell<u16>,
}

impl Default for Sink {
    fn default() -> Sink {
        let document = SinkNode { parent: None, children: Vec::new(), kind: SinkKind::Document, depth: 0 };
        Sink { nodes: RefCell::new(vec![document]), depth: Cell::new(0) }
    }
}

impl Sink {
    fn create(&self, kind: SinkKind) -> u32 {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(SinkNode { parent: None, children: Vec::new(), kind, depth: 0 });
        (nodes.len() - 1) as u32
    }

    fn detach(&self, child: u32) {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(parent) = nodes[child as usize].parent.take() {
            let siblings = &mut nodes[parent as usize].children;
            // html5ever removes nodes at or near the end of the list.
            if let Some(place) = siblings.iter().rposition(|&sibling| sibling == child) {
                siblings.remove(place);
            }
        }
    }

    /// Inserts `child` below `parent` at index `place`, or appends text to the text before it.
    fn insert(&self, parent: u32, place: Option<usize>, child: NodeOrText<u32>) {
        let child = match child {
            NodeOrText::AppendNode(child) => {
                self.detach(child);
                child
            }
            NodeOrText::AppendText(text) => {
                if self.joined(parent, place, &text) {
                    return;
                }
                // Texts arrive in pieces, with separate line breaks. Spare capacity avoids copies as they grow.
                let mut own = String::with_capacity(text.len().max(48));
                own.push_str(&text);
                self.create(SinkKind::Node(DomKind::Text(own)))
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        let depth = nodes[parent as usize].depth.saturating_add(1);
        nodes[child as usize].parent = Some(parent);
        nodes[child as usize].depth = depth;
        self.depth.set(depth);
        let siblings = &mut nodes[parent as usize].children;
        let place = place.unwrap_or(siblings.len()).min(siblings.len());
        siblings.insert(place, child);
    }

    fn joined(&self, parent: u32, place: Option<usize>, text: &str) -> bool {
        let mut nodes = self.nodes.borrow_mut();
        let siblings = &nodes[parent as usize].children;
        let Some(&before) = siblings[..place.unwrap_or(siblings.len()).min(siblings.len())].last() else {
            return false;
        };
        self.depth.set(nodes[parent as usize].depth.saturating_add(1));
        match &mut nodes[before as usize].kind {
            SinkKind::Node(DomKind::Text(own)) => {
                own.push_str(text);
                true
            }
            _ => false,
        }
    }
}

impl TreeSink for Sink {
    type Handle = u32;
    type Output = ();
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) {}

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> u32 {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a u32) -> Ref<'a, QualName> {
        Ref::map(self.nodes.borrow(), |nodes| match &nodes[*target as usize].kind {
            SinkKind::Node(DomKind::Element { name, .. }) => name,
            // html5ever requests names of elements only.
            _ => unreachable!("not an element"),
        })
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _flags: ElementFlags) -> u32 {
        self.create(SinkKind::Node(DomKind::Element { name, attributes }))
    }

    fn create_comment(&self, _text: StrTendril) -> u32 {
        self.create(SinkKind::Comment)
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> u32 {
        self.create(SinkKind::Comment)
    }

    fn append(&self, parent: &u32, child: NodeOrText<u32>) {
        self.insert(*parent, None, child);
    }

    fn append_based_on_parent_node(&self, element: &u32, before: &u32, child: NodeOrText<u32>) {
        let has_parent = self.nodes.borrow()[*element as usize].parent.is_some();
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(before, child);
        }
    }

    fn append_doctype_to_document(&self, _name: StrTendril, _public: StrTendril, _system: StrTendril) {}

    fn get_template_contents(&self, target: &u32) -> u32 {
        // Contents of a template are invisible. Their parent is a separate document.
        let _ = target;
        self.create(SinkKind::Document)
    }

    fn same_node(&self, x: &u32, y: &u32) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &u32, node: NodeOrText<u32>) {
        if let NodeOrText::AppendNode(child) = &node {
            self.detach(*child);
        }
        let (parent, place) = {
            let nodes = self.nodes.borrow();
            let Some(parent) = nodes[*sibling as usize].parent else { return };
            (parent, nodes[parent as usize].children.iter().rposition(|child| child == sibling))
        };
        self.insert(parent, place, node);
    }

    fn add_attrs_if_missing(&self, target: &u32, missing: Vec<Attribute>) {
        let kind = &mut self.nodes.borrow_mut()[*target as usize].kind;
        if let SinkKind::Node(DomKind::Element { attributes, .. }) = kind {
            for attribute in missing {
                let has_room = attributes.len() < MAX_ATTRIBUTES;
                if has_room && !attributes.iter().any(|own| own.name == attribute.name) {
                    attributes.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &u32) {
        self.detach(*target);
    }

    fn reparent_children(&self, node: &u32, parent: &u32) {
        let mut nodes = self.nodes.borrow_mut();
        let children = std::mem::take(&mut nodes[*node as usize].children);
        let depth = nodes[*parent as usize].depth.saturating_add(1);
        for &child in &children {
            nodes[child as usize].parent = Some(*parent);
            nodes[child as usize].depth = depth;
        }
        nodes[*parent as usize].children.extend(children);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(dom: &Dom, node: &DomNode) -> usize {
        std::iter::successors(node.parent, |&parent| dom.nodes[parent as usize].parent).count()
    }

    fn outline(html: &str) -> String {
        let dom = Dom::parse(html);
        let mut out = String::new();
        for node in &dom.nodes {
            let indent = "  ".repeat(1 + depth(&dom, node));
            match &node.kind {
                DomKind::Element { name, .. } => out.push_str(&format!("{indent}{}\n", name.local)),
                DomKind::Text(text) => out.push_str(&format!("{indent}'{}'\n", text.trim())),
            }
        }
        out
    }

    #[test]
    fn misnested_formatting_is_repaired_like_in_browsers() {
        let seen = outline("<p><b>a<i>b</b>c</i>");
        assert_eq!(
            seen,
            "  html\n    head\n    body\n      p\n        b\n          'a'\n          i\n            'b'\n        i\n          'c'\n"
        );
    }

    #[test]
    fn text_in_a_table_goes_before_it() {
        let seen = outline("<table><tr>x<td>y");
        assert!(seen.find("'x'") < seen.find("table"), "{seen}");
    }

    #[test]
    fn contents_of_templates_and_noscript_are_not_elements() {
        let seen = outline("<template><p>hidden</template><noscript><p>off</noscript><p>shown");
        assert!(!seen.contains("hidden") && !seen.contains("  p\n          'off'"), "{seen}");
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = Dom::parse(&"<div>".repeat(200_000));
        assert!(deep.nodes.iter().all(|node| depth(&deep, node) <= usize::from(MAX_DEPTH) + 2));
        let hostile: String =
            (0..3000).map(|n| format!("<b id={n}>")).chain((0..30_000).map(|_| "<p>x".to_string())).collect();
        assert!(Dom::parse(&hostile).nodes.len() < MAX_NODES + 2 * MAX_DEPTH as usize);
    }

    /// A page that repeats its root element with different attributes.
    #[test]
    fn attributes_of_the_root_are_bounded_over_all_its_tags() {
        let again = |n: usize| (0..100).map(|at| format!(" x{n}-{at}")).collect::<String>();
        let html: String = (0..200).map(|n| format!("<html{0}><body{0}>", again(n))).collect();
        let dom = Dom::parse(&html);
        for tag in [0, dom.child_of_root("body").unwrap()] {
            let DomKind::Element { attributes, .. } = &dom.nodes[tag as usize].kind else { panic!() };
            assert_eq!(attributes.len(), MAX_ATTRIBUTES);
        }
    }

    #[test]
    fn names_and_tags_are_bounded() {
        let html: String = (0..60_000).map(|n| format!("<p data-name-{n}>")).collect();
        let n_kept = |node: &DomNode| match &node.kind {
            DomKind::Element { attributes, .. } => attributes.len(),
            DomKind::Text(_) => 0,
        };
        assert_eq!(Dom::parse(&html).nodes.iter().map(n_kept).sum::<usize>(), MAX_NAMES);
        let html = format!("<p>first{}<p>last", "</x>".repeat(MAX_TAGS));
        let text = Dom::parse(&html).text_content(0);
        assert!(text.contains("first") && !text.contains("last"));
    }

    #[test]
    fn formatting_elements_are_admitted_until_comparing_them_is_expensive() {
        let builder = TreeBuilder::new(Sink::default(), TreeBuilderOpts::default());
        let gate = read_tokens("", Gate::new(builder), TokenizerOpts::default());
        gate.builder.sink.depth.set(MAX_DEPTH - 1);
        let mut tag = Tag {
            kind: TagKind::StartTag,
            name: "b".into(),
            self_closing: false,
            attrs: vec![Attribute { name: QualName::new(None, ns!(), "id".into()), value: "1".into() }; 64],
            had_duplicate_attributes: false,
        };
        let n_admitted = (0..100_000).filter(|_| gate.admits(&mut tag)).count();
        assert_eq!(n_admitted, MAX_FORMATTING_WORK / (255 * 65));
        tag.name = "p".into();
        assert!(gate.admits(&mut tag), "other elements are let in still");
    }

    #[test]
    fn closing_deep_elements_admits_later_ones() {
        let html = format!("{}{}<h1>after</h1>", "<div>".repeat(1000), "</div>".repeat(1000));
        assert!(outline(&html).contains("      h1\n"));
    }

    #[test]
    fn children_follow_each_other_and_comments_are_left_out() {
        let dom = Dom::parse("<!--a--><p>x<!--b--><b>y</b>z</p><p>");
        let body = dom.child_of_root("body").unwrap();
        let children: Vec<u32> = dom.children(body).collect();
        let tags: Vec<&str> = children.iter().map(|&child| dom.nodes[child as usize].tag()).collect();
        assert_eq!(tags, ["p", "p"]);
        assert_eq!(dom.text_content(children[0]), "xyz");
        assert_eq!(dom.children(children[1]).count(), 0);
    }

    #[test]
    fn a_body_has_text_if_it_contains_more_than_a_few_bytes() {
        let of = |text: &str| Dom::parse(&format!("<body>  <p>{text}</p>  <script> </script>")).has_body_text;
        assert!(!of(&"x".repeat(200)) && of(&"x".repeat(201)));
        assert!(!of(&" ".repeat(300)) && of(&format!("x<i>{}</i>y", " ".repeat(200))));
    }
}
