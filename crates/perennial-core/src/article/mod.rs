//! A page and what is known of it -> the object that it holds: an article, a post, a message; and whether two of them are versions of
//! one another.
//!
//! P-FEED (docs/papers.md) finds an object by the words of the feed item that announces it. This module does it in more steps, each
//! with its own question:
//!
//! | module | what becomes what |
//! |---|---|
//! | `leaves` | a parsed page -> its lines and paragraphs |
//! | `boxes` | elements -> what they are for: navigation, comments, captions |
//! | `beside` | elements -> what stands beside the article by how the page is built |
//! | `context` | title and description -> grams and concepts |
//! | `template` | other pages of the site -> lines that are no part of any object |
//! | `page` | all of these -> the sums from which a wrapper is chosen |
//! | `wrapper` | sums -> the element around the object |
//! | `phrases` | a line -> whether it calls, leads on, or tells who wrote |
//! | `select` | a wrapper -> the leaves that are the object's own |
//! | `several` | a page with several objects -> the part of one |
//! | `comments` | a page -> what readers answered |
//! | `metadata`, `byline` | what a page says of its object -> title, author, time, categories |
//! | `references` | leaves -> links and images |
//! | [`version`] | two objects -> whether they are one version, and what was edited |
//!
//! Work is linear in the page, which [`crate::text::dom`] bounds. Nothing here can fail: a page without an object gives an empty one.

mod beside;
mod boxes;
mod byline;
mod comments;
mod context;
mod leaves;
mod metadata;
mod page;
mod phrases;
mod references;
mod select;
mod several;
mod template;
mod wrapper;

pub mod version;

use crate::text::dom::Dom;
use crate::time::Timestamp;
use crate::time::dates;
use boxes::BoxKind;
use metadata::Metadata;
use page::Page;
use references::Base;
use several::Part;
use wrapper::Wrapper;

pub use context::{Grams, word_hashes};
pub use phrases::folded;
pub use template::{MAX_NEIGHBOURS, Template};

/// Words of a gram (P-FEED 4.2: "we start with n = 3 which gave best results").
const GRAM_WORDS: usize = 3;

/// What is known of an object before its page is read. All of it may be missing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Context<'a> {
    /// Its title, as a feed gives it.
    pub title: Option<&'a str>,
    /// Its description, as a feed gives it; it may have markup.
    pub description: Option<&'a str>,
    /// The address of its page, against which links are resolved.
    pub url: Option<&'a str>,
    /// What its page shares with others of the site.
    pub template: Option<&'a Template>,
}

/// A link in the text of an object.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Link {
    /// The words that are linked.
    pub text: String,
    /// Where they lead.
    pub address: String,
}

/// An image of an object.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Image {
    /// Where it is.
    pub address: String,
    /// Its caption, else its alternative text.
    pub description: String,
}

/// What a page holds that would be announced, dated and quoted by itself. Empty texts are unknown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Object {
    /// Its headline, as the page shows it.
    pub title: String,
    /// What stands between headline and text, where it is apart from the text.
    pub lead: String,
    /// When it was published, as the page says.
    pub time: Option<Timestamp>,
    /// Who wrote it.
    pub author: String,
    /// Sections and keywords.
    pub categories: Vec<String>,
    /// Its text: paragraphs with an empty line between them.
    pub text: String,
    /// The links in the text.
    pub links: Vec<Link>,
    /// The images.
    pub images: Vec<Image>,
    /// Where it stands in the page, as a selector for people.
    pub wrapper: String,
    /// What readers answered, which is no part of it.
    pub comments: Vec<String>,
    /// The address of the answers, if the page has any.
    pub comments_address: String,
}

/// The object of a page.
pub fn extract(dom: &Dom, context: &Context<'_>) -> Object {
    let metadata = Metadata::of(dom);
    let is_announced = context.title.is_some() || context.description.is_some();
    let title = context.title.unwrap_or(&metadata.title);
    let announced = context.description.map(plain_text);
    let description = announced.as_deref().unwrap_or(if is_announced { "" } else { &metadata.description });
    let mut page = Page::of(dom, &Grams::of(&[title, description], GRAM_WORDS), context);
    let part =
        if is_announced { several::part_of(&page, title, is_named(&page, &metadata, title)) } else { None };
    page.is_bounded |= part.is_some();
    if let Some(Part::Element(node)) = part {
        page.take_in(node);
    }
    let Some(found) = find(&page, title, part) else {
        return Object { title: title.to_owned(), ..Object::default() };
    };
    describe(&page, context, &metadata, title, &found)
}

/// The text of a description, which feeds give with markup or without.
pub fn plain_text(description: &str) -> std::borrow::Cow<'_, str> {
    if !description.contains(['<', '&']) {
        return description.into();
    }
    let dom = Dom::parse(description);
    let leaves = leaves::Leaves::of(&dom, None).leaves;
    leaves.iter().map(|leaf| leaf.text.as_str()).collect::<Vec<_>>().join("\n").into()
}

/// A line or paragraph of a page.
pub struct Line {
    /// The first node of its text.
    pub node: u32,
    /// The nearest block element around it.
    pub block: u32,
    /// With single spaces; line breaks where the page has them.
    pub text: String,
    /// Whether a reader wrote it below the object.
    pub is_comment: bool,
}

/// The lines of a page, for who finds its object by other rules.
pub fn lines(dom: &Dom) -> Vec<Line> {
    let Page { leaves, kinds, .. } = Page::of(dom, &Grams::default(), &Context::default());
    let line = |(leaf, kinds): (leaves::Leaf, boxes::Kinds)| {
        let is_comment = kinds & BoxKind::Comments.bit() != 0;
        Line { node: leaf.node, block: leaf.block, text: leaf.text, is_comment }
    };
    leaves.leaves.into_iter().zip(kinds).map(line).collect()
}

/// The title and the description that a page gives itself.
pub fn title_and_description(dom: &Dom) -> (String, String) {
    let Metadata { title, description, .. } = Metadata::of(dom);
    (title, description)
}

/// Whether the page is named after the object: by its own title, or by its only `h1`.
fn is_named(page: &Page<'_>, metadata: &Metadata, title: &str) -> bool {
    let title = phrases::folded(title);
    let own = phrases::folded(&metadata.title);
    let is_in_own = !title.is_empty() && (own.contains(&title) || own.len() > 15 && title.contains(&own));
    let is_top = |index: &usize| page.leaf(*index).kind == leaves::LeafKind::Heading(1);
    let mut tops = (0..page.n_leaves()).filter(is_top);
    let is_only_heading = match (tops.next(), tops.next()) {
        (Some(only), None) => select::is_title_copy(&phrases::folded(&page.leaf(only).text), &title),
        _ => false,
    };
    is_in_own || is_only_heading
}

/// An object in its page, by leaves.
struct Found {
    wrapper: Wrapper,
    title: Option<usize>,
    lead: Vec<usize>,
    text: Vec<usize>,
    comments_from: Option<usize>,
}

fn find(page: &Page<'_>, title: &str, part: Option<Part>) -> Option<Found> {
    if let Some(Part::Section(heading, end)) = part {
        return section(page, heading, end);
    }
    let root = match part {
        Some(Part::Element(node)) => node,
        _ => 0,
    };
    let wrapper = wrapper::find(page, root)?;
    let title_leaf = select::title_leaf(page, &wrapper, title);
    let first = page.leaves.below(wrapper.node).find(|&index| page.leaf(index).is_good);
    let comments_from = first.and_then(|first| comments::begin(page, first));
    let mut text = select::select(page, &wrapper, title);
    if let Some(from) = comments_from {
        let zone = from..comments::end(page, from);
        text.retain(|index| !zone.contains(index));
    }
    let mut lead = select::lead(page, &text, title_leaf);
    lead.retain(|&index| page.leaves.below(root).contains(&index));
    Some(Found { wrapper, title: title_leaf, lead, text, comments_from })
}

/// An object that is a run of leaves below a heading.
fn section(page: &Page<'_>, heading: usize, end: usize) -> Option<Found> {
    let node = page.leaves.dom.nodes[page.leaf(heading).block as usize].parent?;
    let wrapper = Wrapper { node, dropped: wrapper::SURE, n_good: 0.0 };
    let mut text = select::select_from(page, &wrapper, (heading + 1..end).collect(), "");
    text.retain(|&index| page.kinds[index] & BoxKind::Meta.bit() == 0 || page.leaf(index).is_good);
    Some(Found { wrapper, title: Some(heading), lead: Vec::new(), text, comments_from: None })
}

fn describe(
    page: &Page<'_>,
    context: &Context<'_>,
    metadata: &Metadata,
    title: &str,
    found: &Found,
) -> Object {
    let texts = |leaves: &[usize]| {
        leaves.iter().map(|&index| page.leaf(index).text.as_str()).collect::<Vec<_>>().join("\n\n")
    };
    let base = Base::of(page, context.url);
    let shown = found.title.map(|index| page.leaf(index).text.clone());
    let text = texts(&found.text);
    let images = references::images(page, &found.wrapper, &base);
    Object {
        title: shown.filter(|shown| is_headline(shown, title)).unwrap_or_else(|| title.to_owned()),
        lead: texts(&found.lead),
        time: metadata
            .time
            .or_else(|| byline::time_near(page, found.title, &found.text))
            .or_else(|| context.url.and_then(dates::in_address)),
        author: Some(metadata.author.clone())
            .filter(|author| !author.is_empty())
            .unwrap_or_else(|| byline::author_near(page, found.title, &found.text)),
        categories: metadata.categories.clone(),
        links: references::links(page, &found.wrapper, &found.text, &base),
        images: if images.is_empty() { image_of(&metadata.image, &base) } else { images },
        wrapper: references::path_of(page, found.wrapper.node),
        comments: comments::texts(page, found.comments_from),
        comments_address: comments_address(page, context, &base),
        text,
    }
}

/// Whether a heading may stand for the title that is known: it has some of its words, or nothing is known.
fn is_headline(shown: &str, title: &str) -> bool {
    let known: std::collections::HashSet<u64> = context::word_hashes(title).collect();
    let own: Vec<u64> = context::word_hashes(shown).collect();
    let n_shared = own.iter().filter(|word| known.contains(word)).count();
    !own.is_empty() && (known.is_empty() || n_shared * 2 >= own.len().min(known.len()))
}

fn image_of(address: &str, base: &Base) -> Vec<Image> {
    base.resolve(address).map(|address| Image { address, description: String::new() }).into_iter().collect()
}

/// The feed of the answers, else the element that holds them.
fn comments_address(page: &Page<'_>, context: &Context<'_>, base: &Base) -> String {
    let dom = page.leaves.dom;
    let is_feed = |node: &&crate::text::dom::DomNode| {
        let is_named =
            |name: &str| node.attribute(name).is_some_and(|value| value.to_lowercase().contains("comment"));
        node.tag() == "link"
            && node.attribute("rel") == Some("alternate")
            && (is_named("title") || is_named("href"))
    };
    let mut feeds = dom.nodes.iter().filter(is_feed).filter_map(|node| node.attribute("href"));
    // A site's feed of all comments comes first; the page's own stands last.
    if let Some(address) = feeds.next_back().and_then(|href| base.resolve(href)) {
        return address;
    }
    let id = page.comment_zones.iter().find_map(|&zone| dom.nodes[zone as usize].attribute("id"));
    match (id, context.url) {
        (Some(id), Some(url)) => format!("{}#{id}", url.split('#').next().unwrap_or(url)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
