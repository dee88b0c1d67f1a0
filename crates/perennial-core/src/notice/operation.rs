//! An operation of a change and a user's filter -> whether the operation matches.

use std::fmt;
use std::str::FromStr;

use super::Wording;
use crate::page::diff::OperationKind;
use crate::page::importance::Judgement;
use crate::page::segment::BlockRole;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportedElement {
    /// A link.
    Link,
    /// An image.
    Image,
    /// A text.
    Text,
    /// A whole block.
    Block,
    /// An entry of a listing page: a headline with the text below it.
    Item,
}

impl ReportedElement {
    pub const ALL: [ReportedElement; 5] = [
        ReportedElement::Text,
        ReportedElement::Link,
        ReportedElement::Image,
        ReportedElement::Item,
        ReportedElement::Block,
    ];

    /// The name in settings, commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            ReportedElement::Link => "link",
            ReportedElement::Image => "image",
            ReportedElement::Text => "text",
            ReportedElement::Block => "block",
            ReportedElement::Item => "item",
        }
    }
}

impl FromStr for ReportedElement {
    type Err = String;

    fn from_str(text: &str) -> Result<ReportedElement, String> {
        let name = if text == "headline" { "item" } else { text };
        let found = ReportedElement::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| "choose text, link, image, item (a headline) or block".to_owned())
    }
}

/// A place on a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockPlace {
    Role(BlockRole),
    /// One block and its descendants, such as `B1.2`.
    Reference(String),
}

impl FromStr for BlockPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<BlockPlace, String> {
        let name = match text {
            "nav" => "navigation",
            "ad" => "advertisement",
            other => other,
        };
        if let Some((role, _)) = BlockRole::NAMES.iter().find(|(_, known)| *known == name) {
            return Ok(BlockPlace::Role(*role));
        }
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_reference = text.strip_prefix('B').is_some_and(|numbers| numbers.split('.').all(is_number));
        is_reference.then(|| BlockPlace::Reference(text.to_owned())).ok_or_else(|| {
            "choose main, nav, ad, header, footer, comments, related or other, or write a block such as B1.2"
                .to_owned()
        })
    }
}

impl fmt::Display for BlockPlace {
    /// As written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockPlace::Role(BlockRole::Navigation) => f.write_str("nav"),
            BlockPlace::Role(BlockRole::Advertisement) => f.write_str("ad"),
            BlockPlace::Role(role) => f.write_str(role.name()),
            BlockPlace::Reference(reference) => f.write_str(reference),
        }
    }
}

/// An operation in a report, with its texts and blocks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReportedOperation<'a> {
    /// `insert`, `delete`, `update` or `move`.
    pub op: &'a str,
    /// Name of a [`ReportedElement`].
    pub element: &'a str,
    pub role: Option<&'a str>,
    /// Before and after.
    pub blocks: [Option<&'a str>; 2],
    /// Before and after.
    pub texts: [Option<&'a str>; 2],
    /// Whether it concerns an advertisement, and how much of it is noise.
    pub judgement: Judgement,
    /// Its share of the importance of the change.
    pub share: f64,
}

/// A filter for operations; all given fields must match the same operation.
#[derive(Clone, Debug, Default)]
pub struct OperationFilter {
    pub op: Option<OperationKind>,
    pub element: Option<ReportedElement>,
    pub block: Option<BlockPlace>,
    /// The text before or after.
    pub text: Option<Wording>,
}

impl OperationFilter {
    /// Whether any field is given. Changes without operations match only an empty filter.
    pub fn is_set(&self) -> bool {
        self.op.is_some() || self.element.is_some() || self.block.is_some() || self.text.is_some()
    }

    /// Whether it selects advertisements.
    pub(super) fn is_in_advertisements(&self) -> bool {
        self.block == Some(BlockPlace::Role(BlockRole::Advertisement))
    }

    pub fn matches_operation(&self, operation: &ReportedOperation<'_>) -> bool {
        self.op.is_none_or(|op| operation.op == op.name())
            && self.element.is_none_or(|element| operation.element == element.name())
            && self.block.as_ref().is_none_or(|place| is_in(operation, place))
            && self.text.as_ref().is_none_or(|text| text.is_in_any(operation.texts.into_iter().flatten()))
    }
}

fn is_in(operation: &ReportedOperation<'_>, place: &BlockPlace) -> bool {
    match place {
        BlockPlace::Role(BlockRole::Advertisement) if operation.judgement.is_advertisement => true,
        BlockPlace::Role(role) => operation.role == Some(role.name()),
        BlockPlace::Reference(block) => operation.blocks.into_iter().flatten().any(|reference| {
            reference == block
                || reference.strip_prefix(block.as_str()).is_some_and(|rest| rest.starts_with('.'))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: ReportedOperation<'_> = ReportedOperation {
        op: "insert",
        element: "link",
        role: Some("main"),
        blocks: [None, Some("B1.2.3")],
        texts: [None, Some("Speed limits")],
        judgement: Judgement { is_advertisement: false, noise: 0.0, reason: None },
        share: 0.5,
    };

    #[test]
    fn each_part_of_a_filter_keeps_operations_out() {
        let all = OperationFilter::default();
        assert!(all.matches_operation(&LINK) && !all.is_set());
        let of = |op: &str, element: &str, block: &str, text: &str| {
            let filter = OperationFilter {
                op: Some(op.parse().unwrap()),
                element: Some(element.parse().unwrap()),
                block: Some(block.parse().unwrap()),
                text: Some(text.parse().unwrap()),
            };
            assert!(filter.is_set());
            filter.matches_operation(&LINK)
        };
        assert!(of("insert", "link", "main", "limits") && of("insert", "link", "B1.2", "/Speed l/"));
        assert!(!of("delete", "link", "main", "limits") && !of("insert", "headline", "main", "limits"));
        assert!(!of("insert", "link", "nav", "limits") && !of("insert", "link", "B1.20", "limits"));
        assert!(!of("insert", "link", "B1.2.3.1", "limits") && !of("insert", "link", "main", "limit"));
        let ad = OperationFilter { block: Some("ad".parse().unwrap()), ..OperationFilter::default() };
        assert!(!ad.matches_operation(&LINK));
        let judgement = Judgement { is_advertisement: true, ..Judgement::default() };
        assert!(ad.matches_operation(&ReportedOperation { judgement, ..LINK }));
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["main", "nav", "ad", "header", "footer", "comments", "other", "B1", "B1.2.13"] {
            assert_eq!(text.parse::<BlockPlace>().unwrap().to_string(), text);
        }
        for text in ["", "B", "B1.", "b1", "aside", "B1.x"] {
            assert!(text.parse::<BlockPlace>().is_err(), "{text}");
        }
        for element in ReportedElement::ALL {
            assert_eq!(element.name().parse(), Ok(element));
        }
    }
}
