//! An XPath over one XML document, such as a Vi-Delta or a Vi-XML tree (P-VISUAL 3.1: queries over the archive).
//!
//! It has the part of XPath 1.0 that such queries use: `/`, `//`, `*`, `.`, `@name`, `text()`, predicates with `=`, `!=`,
//! `<`, `>`, `and`, `or`, positions, `count`, `contains`, `starts-with` and `not`.

use perennial_core::text::xml::unescaped;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Deeper documents and expressions are refused, because both are read by recursion.
const MAX_DEPTH: usize = 256;

/// A problem of an expression or a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XPathError {
    #[error("XPath, character {at}: expected {expected}")]
    Syntax { at: usize, expected: &'static str },
    #[error("the document is not XML: {0}")]
    Document(String),
}

/// An element of a document. Children have higher numbers than their parents.
#[derive(Debug, Default)]
struct XmlElement {
    name: String,
    attributes: Vec<(String, String)>,
    /// Its own texts.
    text: String,
    children: Vec<usize>,
}

/// A parsed document. Element 0 is the document itself.
#[derive(Debug)]
pub struct XmlDocument {
    elements: Vec<XmlElement>,
}

impl XmlDocument {
    pub fn parse(xml: &str) -> Result<XmlDocument, XPathError> {
        let broken = |error: &dyn std::fmt::Display| XPathError::Document(error.to_string());
        let mut reader = Reader::from_str(xml);
        let (mut elements, mut open) = (vec![XmlElement::default()], vec![0]);
        loop {
            let event = reader.read_event().map_err(|error| broken(&error))?;
            let top = *open.last().unwrap_or(&0);
            match event {
                Event::Start(start) | Event::Empty(start) if open.len() > MAX_DEPTH => {
                    return Err(broken(&format!("{} is nested too deeply", start.name().as_ref())));
                }
                Event::Start(start) => {
                    let number = elements.len();
                    elements[top].children.push(number);
                    open.push(number);
                    elements.push(element(&start)?);
                }
                Event::Empty(start) => {
                    let number = elements.len();
                    elements[top].children.push(number);
                    elements.push(element(&start)?);
                }
                Event::End(_) => {
                    open.pop();
                }
                Event::Text(text) => {
                    elements[top].text.push_str(&unescaped(&text));
                }
                Event::CData(text) => elements[top].text.push_str(&text),
                Event::GeneralRef(reference) => {
                    elements[top].text.push_str(&unescaped(&format!("&{};", &*reference)));
                }
                Event::Eof => return Ok(XmlDocument { elements }),
                _ => {}
            }
        }
    }

    /// All text of an element, in order of its own texts and its children.
    fn text(&self, at: usize) -> String {
        let element = &self.elements[at];
        let below = element.children.iter().map(|child| self.text(*child));
        std::iter::once(element.text.clone()).chain(below).collect()
    }

    fn descendants(&self, at: usize, found: &mut Vec<usize>) {
        found.push(at);
        self.elements[at].children.iter().for_each(|child| self.descendants(*child, found));
    }
}

fn element(start: &BytesStart<'_>) -> Result<XmlElement, XPathError> {
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| XPathError::Document(error.to_string()))?;
        attributes.push((attribute.key.as_ref().to_owned(), unescaped(&attribute.value).into_owned()));
    }
    Ok(XmlElement { name: start.name().as_ref().to_owned(), attributes, ..XmlElement::default() })
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct XPath(XPathValue);

#[derive(Clone, Debug, PartialEq)]
enum XPathValue {
    Text(String),
    Number(f64),
    Path { is_absolute: bool, steps: Vec<XPathStep> },
    Call(XPathFunction, Vec<XPathValue>),
    Compare(Box<XPathValue>, XPathComparison, Box<XPathValue>),
    And(Box<XPathValue>, Box<XPathValue>),
    Or(Box<XPathValue>, Box<XPathValue>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum XPathFunction {
    Count,
    Contains,
    StartsWith,
    Not,
    Position,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum XPathComparison {
    Equal,
    Unequal,
    Less,
    Greater,
}

#[derive(Clone, Debug, PartialEq)]
struct XPathStep {
    /// Whether all descendants count, as after `//`.
    is_deep: bool,
    test: NodeTest,
    predicates: Vec<XPathValue>,
}

#[derive(Clone, Debug, PartialEq)]
enum NodeTest {
    Any,
    Itself,
    Text,
    Element(String),
    Attribute(String),
}

/// A node that an expression selects.
#[derive(Clone, Debug, PartialEq)]
enum SelectedNode {
    Element(usize),
    Text(String),
}

#[derive(Clone, Copy)]
struct XPathContext {
    node: usize,
    position: usize,
    last: usize,
}

impl std::str::FromStr for XPath {
    type Err = XPathError;
    fn from_str(text: &str) -> Result<XPath, XPathError> {
        let mut parser = XPathParser { text, at: 0, depth: 0 };
        let value = parser.or()?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.error("the end"));
        }
        Ok(XPath(value))
    }
}

impl XPath {
    /// The texts of the selected nodes, in document order; one value for `count` and other functions.
    pub fn select(&self, document: &XmlDocument) -> Vec<String> {
        let place = XPathContext { node: 0, position: 1, last: 1 };
        match self.0.evaluate(document, place) {
            XPathResult::Nodes(nodes) => {
                nodes.iter().map(|node| text(document, node).trim().to_owned()).collect()
            }
            XPathResult::Text(text) => vec![text],
            XPathResult::Number(number) => vec![number.to_string()],
            XPathResult::Truth(truth) => vec![truth.to_string()],
        }
    }
}

enum XPathResult {
    Nodes(Vec<SelectedNode>),
    Text(String),
    Number(f64),
    Truth(bool),
}

fn text(document: &XmlDocument, node: &SelectedNode) -> String {
    match node {
        SelectedNode::Element(at) => {
            let element = &document.elements[*at];
            let text = document.text(*at);
            // An element without text is shown by its name, so that a selection never looks empty.
            if text.trim().is_empty() { element.name.clone() } else { text }
        }
        SelectedNode::Text(text) => text.clone(),
    }
}

impl XPathResult {
    fn is_true(&self) -> bool {
        match self {
            XPathResult::Nodes(nodes) => !nodes.is_empty(),
            XPathResult::Text(text) => !text.is_empty(),
            XPathResult::Number(number) => *number != 0.0,
            XPathResult::Truth(truth) => *truth,
        }
    }

    /// The texts that are compared; any of a set of nodes may be equal.
    fn texts(&self, document: &XmlDocument) -> Vec<String> {
        match self {
            XPathResult::Nodes(nodes) => nodes.iter().map(|node| text(document, node)).collect(),
            XPathResult::Text(text) => vec![text.clone()],
            XPathResult::Number(number) => vec![number.to_string()],
            XPathResult::Truth(truth) => vec![truth.to_string()],
        }
    }
}

impl XPathValue {
    fn evaluate(&self, document: &XmlDocument, place: XPathContext) -> XPathResult {
        let truth = |value: &XPathValue| value.evaluate(document, place).is_true();
        match self {
            XPathValue::Text(text) => XPathResult::Text(text.clone()),
            XPathValue::Number(number) => XPathResult::Number(*number),
            XPathValue::And(a, b) => XPathResult::Truth(truth(a) && truth(b)),
            XPathValue::Or(a, b) => XPathResult::Truth(truth(a) || truth(b)),
            XPathValue::Compare(a, comparison, b) => {
                let (left, right) = (a.evaluate(document, place), b.evaluate(document, place));
                let right = right.texts(document);
                let holds = |left: &String| right.iter().any(|right| comparison.holds(left, right));
                XPathResult::Truth(left.texts(document).iter().any(holds))
            }
            XPathValue::Call(function, values) => function.call(values, document, place),
            XPathValue::Path { is_absolute, steps } => {
                let mut nodes = vec![SelectedNode::Element(if *is_absolute { 0 } else { place.node })];
                for step in steps {
                    nodes = step.select(document, &nodes);
                }
                XPathResult::Nodes(nodes)
            }
        }
    }
}

impl XPathComparison {
    fn holds(self, left: &str, right: &str) -> bool {
        let numbers = || Some((left.trim().parse::<f64>().ok()?, right.trim().parse::<f64>().ok()?));
        match self {
            XPathComparison::Equal => numbers().map_or(left == right, |(left, right)| left == right),
            XPathComparison::Unequal => numbers().map_or(left != right, |(left, right)| left != right),
            XPathComparison::Less => numbers().is_some_and(|(left, right)| left < right),
            XPathComparison::Greater => numbers().is_some_and(|(left, right)| left > right),
        }
    }
}

impl XPathFunction {
    fn call(self, values: &[XPathValue], document: &XmlDocument, place: XPathContext) -> XPathResult {
        let of = |at: usize| values.get(at).map(|value| value.evaluate(document, place));
        let first_text =
            |at: usize| of(at).and_then(|value| value.texts(document).into_iter().next()).unwrap_or_default();
        match self {
            XPathFunction::Count => match of(0) {
                Some(XPathResult::Nodes(nodes)) => XPathResult::Number(nodes.len() as f64),
                _ => XPathResult::Number(0.0),
            },
            XPathFunction::Contains => XPathResult::Truth(first_text(0).contains(&first_text(1))),
            XPathFunction::StartsWith => XPathResult::Truth(first_text(0).starts_with(&first_text(1))),
            XPathFunction::Not => XPathResult::Truth(!of(0).is_some_and(|value| value.is_true())),
            XPathFunction::Position => XPathResult::Number(place.position as f64),
            XPathFunction::Last => XPathResult::Number(place.last as f64),
        }
    }
}

impl XPathStep {
    fn select(&self, document: &XmlDocument, nodes: &[SelectedNode]) -> Vec<SelectedNode> {
        let mut found: Vec<SelectedNode> = Vec::new();
        for node in nodes {
            let SelectedNode::Element(at) = node else { continue };
            let mut from = vec![*at];
            if self.is_deep {
                from.clear();
                document.descendants(*at, &mut from);
            }
            for parent in from {
                let here = self.narrow(document, self.children(document, parent));
                found.extend(here);
            }
        }
        // Nested starting points select a node more than once.
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|node| if let SelectedNode::Element(at) = node { seen.insert(*at) } else { true });
        if self.is_deep {
            found.sort_by_key(|node| if let SelectedNode::Element(at) = node { *at } else { 0 });
        }
        found
    }

    fn children(&self, document: &XmlDocument, parent: usize) -> Vec<SelectedNode> {
        let element = &document.elements[parent];
        let named = |wanted: &str| -> Vec<SelectedNode> {
            let children = element
                .children
                .iter()
                .filter(|child| wanted == "*" || document.elements[**child].name == wanted);
            children.map(|child| SelectedNode::Element(*child)).collect()
        };
        match &self.test {
            NodeTest::Itself => vec![SelectedNode::Element(parent)],
            NodeTest::Any => named("*"),
            NodeTest::Element(name) => named(name),
            NodeTest::Text if element.text.trim().is_empty() => Vec::new(),
            NodeTest::Text => vec![SelectedNode::Text(element.text.clone())],
            NodeTest::Attribute(name) => {
                let wanted = element.attributes.iter().filter(|(own, _)| name == "*" || own == name);
                wanted.map(|(_, value)| SelectedNode::Text(value.clone())).collect()
            }
        }
    }

    fn narrow(&self, document: &XmlDocument, mut nodes: Vec<SelectedNode>) -> Vec<SelectedNode> {
        for predicate in &self.predicates {
            let last = nodes.len();
            let mut position = 0;
            nodes.retain(|node| {
                position += 1;
                let SelectedNode::Element(node) = node else { return true };
                match predicate.evaluate(document, XPathContext { node: *node, position, last }) {
                    XPathResult::Number(number) => number == position as f64,
                    other => other.is_true(),
                }
            });
        }
        nodes
    }
}

/// Reads an expression from left to right.
struct XPathParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl XPathParser<'_> {
    fn error(&self, expected: &'static str) -> XPathError {
        XPathError::Syntax { at: self.text[..self.at].chars().count() + 1, expected }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    /// Takes a word that no letter follows.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let after = self.rest().strip_prefix(word).map(|rest| rest.chars().next());
        let is_next = after.is_some_and(|next| !next.is_some_and(is_name_character));
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn or(&mut self) -> Result<XPathValue, XPathError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("fewer nested parts"));
        }
        let mut left = self.and()?;
        while self.take_word("or") {
            left = XPathValue::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<XPathValue, XPathError> {
        let mut left = self.comparison()?;
        while self.take_word("and") {
            left = XPathValue::And(Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<XPathValue, XPathError> {
        let left = self.value()?;
        const SIGNS: [(&str, XPathComparison); 4] = [
            ("!=", XPathComparison::Unequal),
            ("=", XPathComparison::Equal),
            ("<", XPathComparison::Less),
            (">", XPathComparison::Greater),
        ];
        match SIGNS.into_iter().find(|(sign, _)| self.take(sign)) {
            Some((_, comparison)) => {
                Ok(XPathValue::Compare(Box::new(left), comparison, Box::new(self.value()?)))
            }
            None => Ok(left),
        }
    }

    fn value(&mut self) -> Result<XPathValue, XPathError> {
        self.skip_space();
        if let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"')) {
            let inner = &self.rest()[1..];
            let end = inner.find(quote).ok_or_else(|| self.error("a closing quote"))?;
            let text = inner[..end].to_owned();
            self.at += end + 2;
            return Ok(XPathValue::Text(text));
        }
        let n_digits = self.rest().bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            let number = self.rest()[..n_digits].parse().map_err(|_| self.error("a number"))?;
            self.at += n_digits;
            return Ok(XPathValue::Number(number));
        }
        const FUNCTIONS: [(&str, XPathFunction, usize); 6] = [
            ("count(", XPathFunction::Count, 1),
            ("contains(", XPathFunction::Contains, 2),
            ("starts-with(", XPathFunction::StartsWith, 2),
            ("not(", XPathFunction::Not, 1),
            ("position(", XPathFunction::Position, 0),
            ("last(", XPathFunction::Last, 0),
        ];
        if let Some((_, function, n)) = FUNCTIONS.into_iter().find(|(name, ..)| self.take(name)) {
            let mut values = Vec::new();
            for at in 0..n {
                if at > 0 && !self.take(",") {
                    return Err(self.error("a comma"));
                }
                values.push(self.or()?);
            }
            return if self.take(")") {
                Ok(XPathValue::Call(function, values))
            } else {
                Err(self.error("`)`"))
            };
        }
        if self.take("(") {
            let inner = self.or()?;
            return if self.take(")") { Ok(inner) } else { Err(self.error("`)`")) };
        }
        self.path()
    }

    fn path(&mut self) -> Result<XPathValue, XPathError> {
        self.skip_space();
        let is_absolute = self.rest().starts_with('/');
        let mut is_deep = self.take("//");
        if !is_deep && is_absolute {
            self.take("/");
        }
        let mut steps = Vec::new();
        loop {
            steps.push(self.step(is_deep)?);
            is_deep = self.take("//");
            if !is_deep && !self.take("/") {
                return Ok(XPathValue::Path { is_absolute, steps });
            }
        }
    }

    fn step(&mut self, is_deep: bool) -> Result<XPathStep, XPathError> {
        let test = if self.take("text()") {
            NodeTest::Text
        } else if self.take("*") {
            NodeTest::Any
        } else if self.take("@") {
            NodeTest::Attribute(if self.take("*") { "*".to_owned() } else { self.name()? })
        } else if self.take(".") {
            NodeTest::Itself
        } else {
            NodeTest::Element(self.name()?)
        };
        let mut predicates = Vec::new();
        while self.take("[") {
            predicates.push(self.or()?);
            if !self.take("]") {
                return Err(self.error("`]`"));
            }
        }
        Ok(XPathStep { is_deep, test, predicates })
    }

    fn name(&mut self) -> Result<String, XPathError> {
        self.skip_space();
        let n: usize = self.rest().chars().take_while(|c| is_name_character(*c)).map(char::len_utf8).sum();
        if n == 0 {
            return Err(self.error("a name, `@`, `*`, `.` or `text()`"));
        }
        let name = self.rest()[..n].to_owned();
        self.at += n;
        Ok(name)
    }
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELTA: &str = "<?xml version=\"1.0\"?><Delta url='http://a.example/'><Block ref='B1' importance='0.4'>\
        <Insert><link name='Ferry &amp; co' adr='/f'/><txt>New words</txt></Insert></Block>\
        <Block ref='B2' importance='0.05'><Delete><link name='Tram' adr='/t'/></Delete></Block></Delta>";

    fn select(expression: &str) -> Vec<String> {
        expression.parse::<XPath>().unwrap().select(&XmlDocument::parse(DELTA).unwrap())
    }

    #[test]
    fn paths_predicates_and_functions() {
        for (expression, expected) in [
            ("//link/@name", &["Ferry & co", "Tram"][..]),
            ("/Delta/Block[1]//link/@adr", &["/f"]),
            ("//Block[@importance > 0.1]/@ref", &["B1"]),
            ("//Block[@importance < 0.1 or @ref='B1']/@ref", &["B1", "B2"]),
            ("//Insert/txt", &["New words"]),
            ("//Block[.//link[contains(@name, 'Ferry')]]/@ref", &["B1"]),
            ("//Block[not(Insert)]/@ref", &["B2"]),
            ("//Block[last()]/@ref", &["B2"]),
            ("//*[starts-with(text(), 'New')]", &["New words"]),
            ("count(//link)", &["2"]),
            ("//Block[count(.//link) = 1 and @ref != 'B1']/@ref", &["B2"]),
            ("//nothing", &[]),
            ("//Delete/link", &["link"]),
        ] {
            assert_eq!(select(expression), expected, "{expression}");
        }
    }

    #[test]
    fn wrong_expressions_say_where() {
        for (expression, at) in
            [("//link[", 8), ("//link[@a='x]", 11), ("count(//a", 10), ("//a b", 5), ("", 1)]
        {
            let error = expression.parse::<XPath>().unwrap_err();
            assert!(
                matches!(error, XPathError::Syntax { at: found, .. } if found == at),
                "{expression}: {error}"
            );
        }
        assert!("(".repeat(100_000).parse::<XPath>().is_err());
        assert!(XmlDocument::parse(&"<a>".repeat(100_000)).is_err());
        assert!(XmlDocument::parse("<a></b>").is_err());
    }

    proptest! {
        #[test]
        fn no_expression_fails_otherwise(text in "[/@*.a-c\\[\\]()='<> 0-9]{0,20}") {
            if let Ok(path) = text.parse::<XPath>() {
                path.select(&XmlDocument::parse(DELTA).unwrap());
            }
        }
    }
}
