//! A page and its context -> the article that it contains: an article, a post, a message. Also: whether two articles
//! are versions of each other.
//!
//! P-FEED (docs/papers.md) finds an article by the words of the feed item that announces it. This module needs more
//! steps:
//! | module | what becomes what |
//! |---|---|
//! | `leaves` | a parsed page -> its lines and paragraphs |
//! | `boxes` | elements -> their purpose: navigation, comments, captions |
//! | `surroundings` | elements -> boxes around the article, by the structure of the page |
//! | `context` | title and description -> grams |
//! | `template` | other pages of the site -> lines that do not belong to any article |
//! | `page` | all of these -> the sums from which a wrapper is chosen |
//! | `wrapper` | sums -> the element around the article |
//! | `phrases` | a line -> whether it is a call to action, a link to other pages, or a byline |
//! | `select` | a wrapper -> the article's own leaves |
//! | `parts` | a page with several articles -> the part with one of them |
//! | `comments` | a page -> its comments |
//! | `metadata`, `byline` | a page -> title, author, time, categories |
//! | `references` | leaves -> links and images |
//! | [`version`] | two articles -> whether they are one version, and the edits between them |
//!
//! The work is linear in the page, which [`crate::text::dom`] limits. Nothing here can fail: a page without an
//! article gives an empty one.

mod boxes;
mod byline;
mod comments;
mod context;
mod leaves;
mod metadata;
mod page;
mod parts;
mod phrases;
mod references;
mod select;
mod surroundings;
mod template;
mod wrapper;

pub mod version;

use crate::text::dom::Dom;
use crate::time::Timestamp;
use crate::time::dates;
use boxes::BoxKind;
use metadata::Metadata;
use page::LeafPage;
use parts::ArticlePart;
use references::UrlBase;
use wrapper::Wrapper;

pub use context::{Grams, word_hashes};
pub use phrases::folded;
pub use template::{MAX_NEIGHBOURS, Template};

/// Words of a gram (P-FEED 4.2: "we start with n = 3 which gave best results").
const GRAM_WORDS: usize = 3;

/// Known facts about an article before its page is read. Each may be missing.
#[derive(Clone, Copy, Default, Debug)]
pub struct ArticleContext<'a> {
    /// The title in a feed.
    pub title: Option<&'a str>,
    /// The description in a feed, which may contain markup.
    pub description: Option<&'a str>,
    /// The page's URL, which resolves relative links.
    pub url: Option<&'a str>,
    /// The common lines of the site's pages.
    pub template: Option<&'a Template>,
}

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ArticleLink {
    pub text: String,
    pub url: String,
}

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ArticleImage {
    pub url: String,
    /// Its caption, or its alternative text.
    pub description: String,
}

/// The part of a page that would be announced, dated and quoted on its own. Empty texts are unknown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Article {
    /// Its headline on the page.
    pub title: String,
    /// The text between headline and body, if it is separate.
    pub lead: String,
    /// Its time of publication, according to the page.
    pub time: Option<Timestamp>,
    pub author: String,
    /// Sections and keywords.
    pub categories: Vec<String>,
    /// Its paragraphs, separated by empty lines.
    pub text: String,
    pub links: Vec<ArticleLink>,
    pub images: Vec<ArticleImage>,
    /// Its element, as a readable selector.
    pub wrapper: String,
    /// The comments of readers, which do not belong to the article.
    pub comments: Vec<String>,
    /// The URL of the comments, if any.
    pub comments_url: String,
}

/// Extracts the article of a page.
pub fn extract(dom: &Dom, context: &ArticleContext<'_>) -> Article {
    let metadata = Metadata::from_dom(dom);
    let is_announced = context.title.is_some() || context.description.is_some();
    let title = context.title.unwrap_or(&metadata.title);
    let announced = context.description.map(plain_text);
    let description = announced.as_deref().unwrap_or(if is_announced { "" } else { &metadata.description });
    let mut page = LeafPage::new(dom, &Grams::new(&[title, description], GRAM_WORDS), context);
    let part =
        if is_announced { parts::find_part(&page, title, is_named(&page, &metadata, title)) } else { None };
    page.is_bounded |= part.is_some();
    if let Some(ArticlePart::Element(node)) = part {
        page.include(node);
    }
    let Some(found) = find(&page, title, part) else {
        return Article { title: title.to_owned(), ..Article::default() };
    };
    describe(&page, context, &metadata, title, &found)
}

/// The text of a description, which may contain markup.
pub fn plain_text(description: &str) -> std::borrow::Cow<'_, str> {
    if !description.contains(['<', '&']) {
        return description.into();
    }
    let dom = Dom::parse(description);
    let leaves = leaves::Leaves::from_dom(&dom, None).leaves;
    leaves.iter().map(|leaf| leaf.text.as_str()).collect::<Vec<_>>().join("\n").into()
}

pub struct PageLine {
    pub node: u32,
    pub block: u32,
    /// With single spaces; line breaks are kept.
    pub text: String,
    /// Whether it is part of a comment.
    pub is_comment: bool,
}

/// The lines of a page, for other extraction methods.
pub fn lines(dom: &Dom) -> Vec<PageLine> {
    let LeafPage { leaves, kinds, .. } = LeafPage::new(dom, &Grams::default(), &ArticleContext::default());
    let line = |(leaf, kinds): (leaves::TextLeaf, boxes::BoxKinds)| {
        let is_comment = kinds & BoxKind::Comments.bit() != 0;
        PageLine { node: leaf.node, block: leaf.block, text: leaf.text, is_comment }
    };
    leaves.leaves.into_iter().zip(kinds).map(line).collect()
}

/// Title and description in the page's metadata.
pub fn title_and_description(dom: &Dom) -> (String, String) {
    let Metadata { title, description, .. } = Metadata::from_dom(dom);
    (title, description)
}

/// Whether the page has the article's title, in its metadata or in its only `h1`.
fn is_named(page: &LeafPage<'_>, metadata: &Metadata, title: &str) -> bool {
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

/// The leaves of an article.
struct ArticleLeaves {
    wrapper: Wrapper,
    title: Option<usize>,
    lead: Vec<usize>,
    text: Vec<usize>,
    comments_from: Option<usize>,
}

fn find(page: &LeafPage<'_>, title: &str, part: Option<ArticlePart>) -> Option<ArticleLeaves> {
    if let Some(ArticlePart::Section(heading, end)) = part {
        return section(page, heading, end);
    }
    let root = match part {
        Some(ArticlePart::Element(node)) => node,
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
    Some(ArticleLeaves { wrapper, title: title_leaf, lead, text, comments_from })
}

/// An article that consists of the leaves below a heading.
fn section(page: &LeafPage<'_>, heading: usize, end: usize) -> Option<ArticleLeaves> {
    let node = page.leaves.dom.nodes[page.leaf(heading).block as usize].parent?;
    let wrapper = Wrapper { node, dropped: wrapper::SURE, n_good: 0.0 };
    let mut text = select::select_from(page, &wrapper, (heading + 1..end).collect(), "");
    text.retain(|&index| page.kinds[index] & BoxKind::Meta.bit() == 0 || page.leaf(index).is_good);
    Some(ArticleLeaves { wrapper, title: Some(heading), lead: Vec::new(), text, comments_from: None })
}

fn describe(
    page: &LeafPage<'_>,
    context: &ArticleContext<'_>,
    metadata: &Metadata,
    title: &str,
    found: &ArticleLeaves,
) -> Article {
    let texts = |leaves: &[usize]| {
        leaves.iter().map(|&index| page.leaf(index).text.as_str()).collect::<Vec<_>>().join("\n\n")
    };
    let base = UrlBase::new(page, context.url);
    let shown = found.title.map(|index| page.leaf(index).text.clone());
    let text = texts(&found.text);
    let images = references::images(page, &found.wrapper, &base);
    Article {
        title: shown.filter(|shown| is_headline(shown, title)).unwrap_or_else(|| title.to_owned()),
        lead: texts(&found.lead),
        time: metadata
            .time
            .or_else(|| byline::time_near(page, found.title, &found.text))
            .or_else(|| context.url.and_then(dates::find_in_url)),
        author: Some(metadata.author.clone())
            .filter(|author| !author.is_empty())
            .unwrap_or_else(|| byline::author_near(page, found.title, &found.text)),
        categories: metadata.categories.clone(),
        links: references::links(page, &found.wrapper, &found.text, &base),
        images: if images.is_empty() { lead_image(&metadata.image, &base) } else { images },
        wrapper: references::selector_path(page, found.wrapper.node),
        comments: comments::texts(page, found.comments_from),
        comments_url: comments_url(page, context, &base),
        text,
    }
}

/// Whether a heading can replace the known title: it shares words with it, or no title is known.
fn is_headline(shown: &str, title: &str) -> bool {
    let known: std::collections::HashSet<u64> = context::word_hashes(title).collect();
    let own: Vec<u64> = context::word_hashes(shown).collect();
    let n_shared = own.iter().filter(|word| known.contains(word)).count();
    !own.is_empty() && (known.is_empty() || n_shared * 2 >= own.len().min(known.len()))
}

fn lead_image(url: &str, base: &UrlBase) -> Vec<ArticleImage> {
    base.resolve(url).map(|url| ArticleImage { url, description: String::new() }).into_iter().collect()
}

/// The feed of the comments, or the element that contains them.
fn comments_url(page: &LeafPage<'_>, context: &ArticleContext<'_>, base: &UrlBase) -> String {
    let dom = page.leaves.dom;
    let is_feed = |node: &&crate::text::dom::DomNode| {
        let is_named =
            |name: &str| node.attribute(name).is_some_and(|value| value.to_lowercase().contains("comment"));
        node.tag() == "link"
            && node.attribute("rel") == Some("alternate")
            && (is_named("title") || is_named("href"))
    };
    let mut feeds = dom.nodes.iter().filter(is_feed).filter_map(|node| node.attribute("href"));
    // The feed of all comments of a site comes first, that of the page last.
    if let Some(url) = feeds.next_back().and_then(|href| base.resolve(href)) {
        return url;
    }
    let id = page.comment_zones.iter().find_map(|&zone| dom.nodes[zone as usize].attribute("id"));
    match (id, context.url) {
        (Some(id), Some(url)) => format!("{}#{id}", url.split('#').next().unwrap_or(url)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
