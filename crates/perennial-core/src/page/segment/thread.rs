//! Comments by their structure, in any language: a list of dated texts next to the form with which readers add one, or
//! elements that schema.org calls comments (P-FEED 4.3, 6).

use super::facts::PageFacts;
use super::purpose::Purpose;
use crate::page::layout::LayoutNode;
use crate::time::dates;

/// Elements above the field of a form in which its comments are searched.
const MAX_LEVELS: usize = 4;
/// Forms of a page that are examined.
const MAX_FORMS: usize = 4;
/// A list has at least so many comments.
const MIN_COMMENTS: usize = 2;
/// Letters of a comment.
const MIN_LETTERS: u32 = 12;
/// Longer texts are not dates or names.
const MAX_DATE_BYTES: usize = 80;
/// Letters of running text outside of the comments. Without them, the list is the page's own content.
const MIN_PROSE_LETTERS: u32 = 200;

/// Whether markup calls an element a comment.
pub(super) fn is_marked(node: &LayoutNode<'_>) -> bool {
    let names = |name: &str| node.attribute(name).unwrap_or_default().split_ascii_whitespace();
    names("itemprop").any(|name| name == "comment")
        || names("itemtype").any(|kind| kind.ends_with("/Comment") || kind.ends_with("/UserComments"))
}

impl PageFacts<'_> {
    /// Gives the lists of comments their purpose.
    pub(super) fn mark_comment_lists(&mut self) {
        let fields = (0..self.facts.len() as u32).filter(|index| self.node(*index).tag == "textarea");
        let lists: Vec<u32> = fields.take(MAX_FORMS).filter_map(|field| self.comments_near(field)).collect();
        for list in lists {
            let facts = &mut self.facts[list as usize];
            if !facts.purpose.is_landmark() {
                facts.purpose = Purpose::Comments;
            }
        }
    }

    /// The list next to the form of a field.
    fn comments_near(&self, field: u32) -> Option<u32> {
        let n_prose = self.facts.first()?.n_prose_letters;
        let (mut below, mut at) = (field, self.parents[field as usize]);
        for _ in 0..=MAX_LEVELS {
            let tag = &*self.layout.nodes.get(at as usize)?.tag;
            let beside = self.children(at).filter(|child| *child != below);
            let inside = beside.flat_map(|child| std::iter::once(child).chain(self.children(child)));
            let found = std::iter::once(at).chain(inside).find(|list| {
                self.is_comment_list(*list)
                    && n_prose - self.facts(*list).n_prose_letters.min(n_prose) >= MIN_PROSE_LETTERS
            });
            if found.is_some() || matches!(tag, "body" | "html" | "main") {
                return found;
            }
            (below, at) = (at, self.parents[at as usize]);
        }
        None
    }

    /// Whether most children are texts with a date, without a headline and with few links.
    fn is_comment_list(&self, list: u32) -> bool {
        let elements = self
            .children(list)
            .filter(|child| !self.node(*child).is_text() && self.facts(*child).has_content());
        let (mut n_elements, mut n_comments) = (0, 0);
        for element in elements {
            n_elements += 1;
            let facts = self.facts(element);
            let is_said = facts.n_letters >= MIN_LETTERS && facts.link_share() < 0.4 && !facts.has_heading;
            n_comments += usize::from(is_said && self.has_date(element));
        }
        n_comments >= MIN_COMMENTS && 2 * n_comments > n_elements
    }

    /// Whether a short text of an element, or a `time`, is a date.
    fn has_date(&self, element: u32) -> bool {
        (element..self.facts(element).end).any(|index| {
            let node = self.node(index);
            node.tag == "time"
                || node.is_text() && node.text.len() <= MAX_DATE_BYTES && dates::find(&node.text).is_some()
        })
    }
}
