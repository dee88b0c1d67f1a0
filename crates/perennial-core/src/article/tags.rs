//! The tags zone of a page: links with `rel="tag"`, lists of tags, and lines such as "Filed under: Ships" (P-FEED 6).

use super::metadata::clean_field;
use crate::text::dom::{Dom, DomNode};

const MAX_TAGS: usize = 50;
/// Longer texts are sentences.
const MAX_TAG_BYTES: usize = 60;
/// A tag zone has no more text than this.
const MAX_ZONE_BYTES: usize = 1_000;
/// Words in the names of elements that list the tags of one article.
const ZONE_NAMES: [&str; 12] = [
    "tags",
    "taglist",
    "tag-list",
    "tag_list",
    "post-tags",
    "entry-tags",
    "article-tags",
    "tags-links",
    "cat-links",
    "post-categories",
    "topics",
    "keywords",
];
/// Words in the names of elements that list tags of the whole site, or of other articles.
const ELSEWHERE: [&str; 8] =
    ["widget", "sidebar", "tagcloud", "tag-cloud", "related", "recommended", "comments", "comment"];
const ZONE_STARTS: [&str; 10] = [
    "filed under",
    "posted in",
    "tagged",
    "tags:",
    "tag:",
    "topics:",
    "categories:",
    "schlagworte",
    "schlagwörter",
    "mots-clés",
];

/// The tags in the order of the page.
pub(super) fn of_page(dom: &Dom) -> Vec<String> {
    let mut found = Vec::new();
    let mut zone_end = 0;
    for (index, node) in dom.nodes.iter().enumerate() {
        let at = index as u32;
        if found.len() >= MAX_TAGS {
            break;
        }
        if at >= zone_end && is_zone(dom, at, node) {
            zone_end = node.end;
        }
        let is_tag = node.tag() == "a" && (at < zone_end || has_rel_tag(node));
        if is_tag && !is_elsewhere(dom, at) {
            let name = clean_field(&dom.text_content(at));
            let name = name.trim_start_matches('#').trim().to_owned();
            if !name.is_empty() && name.len() <= MAX_TAG_BYTES && !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

fn has_rel_tag(node: &DomNode) -> bool {
    node.attribute("rel")
        .is_some_and(|rel| rel.split_ascii_whitespace().any(|one| one.eq_ignore_ascii_case("tag")))
}

fn names(node: &DomNode) -> impl Iterator<Item = String> {
    let of = |name: &str| node.attribute(name).unwrap_or_default().to_ascii_lowercase();
    let both = [of("id"), of("class")].join(" ");
    both.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Whether an element lists tags, by its name or by its first words.
fn is_zone(dom: &Dom, at: u32, node: &DomNode) -> bool {
    match node.tag() {
        "ul" | "ol" | "div" | "p" | "span" | "footer" | "section" | "dl" => {}
        _ => return false,
    }
    if names(node).any(|name| ZONE_NAMES.contains(&name.as_str())) {
        return dom.text_content(at).len() <= MAX_ZONE_BYTES;
    }
    let own = first_words(dom, at, node);
    ZONE_STARTS.iter().any(|start| own.starts_with(start)) && dom.text_content(at).len() <= MAX_ZONE_BYTES
}

/// The beginning of the first text of an element, in lower case. The text must be the element's own.
fn first_words(dom: &Dom, at: u32, node: &DomNode) -> String {
    use crate::text::dom::DomKind;
    let inner = dom.nodes.get(at as usize + 1..(node.end as usize).min(at as usize + 4)).unwrap_or_default();
    let text = inner.iter().find_map(|inner| match &inner.kind {
        DomKind::Text(text) if !text.trim().is_empty() => Some(text.trim()),
        _ => None,
    });
    text.unwrap_or_default().chars().take(20).collect::<String>().to_lowercase()
}

/// Whether an element is in the navigation, a sidebar, or a list of other articles.
fn is_elsewhere(dom: &Dom, at: u32) -> bool {
    let mut above = dom.nodes[at as usize].parent;
    while let Some(parent) = above {
        let node = &dom.nodes[parent as usize];
        if matches!(node.tag(), "nav" | "aside") || names(node).any(|name| ELSEWHERE.contains(&name.as_str()))
        {
            return true;
        }
        above = node.parent;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::article::metadata::Metadata;

    fn categories(html: &str) -> Vec<String> {
        Metadata::from_dom(&Dom::parse(html)).categories
    }

    #[test]
    fn tags_are_read_in_every_form() {
        for html in [
            "<p>Text <a rel='tag' href=/t/1>Ships</a> and <a rel='category tag' href=/t/2>Harbour</a></p>",
            "<ul class='post-tags'><li><a href=/t/1>#Ships</a><li><a href=/t/2>Harbour</a></ul>",
            "<div>Filed under: <a href=/t/1>Ships</a>, <a href=/t/2>Harbour</a></div>",
            "<meta property=article:tag content=Ships><meta property=article:tag content=Harbour>",
            "<meta name=keywords content='Ships, Harbour'>",
            "<script type=application/ld+json>{\"@type\":\"NewsArticle\",\"keywords\":\"Ships,Harbour\"}</script>",
        ] {
            assert_eq!(categories(html), ["Ships", "Harbour"], "{html}");
        }
    }

    #[test]
    fn all_sources_are_joined() {
        let html = "<meta property=article:section content=News><meta property=article:tag content=Ships>
            <meta name=keywords content='ships,ferry'><p>Tagged <a href=/t>Ferry</a> <a href=/u>Harbour</a></p>";
        assert_eq!(categories(html), ["News", "Ships", "ferry", "Harbour"]);
    }

    #[test]
    fn tags_of_the_site_or_of_other_articles_do_not_count() {
        let html = "<aside><a rel=tag href=/a>All</a></aside><div class='widget tagcloud'><a rel=tag href=/b>Cloud</a></div>
            <nav class=tags><a href=/c>Menu</a></nav><div class=related><a rel=tag href=/d>Other</a></div>
            <p>He tagged along to <a href=/e>Harwich</a>.</p>";
        assert_eq!(categories(html), Vec::<String>::new());
    }
}
