//! The metadata of an article in a page: title, author, time, description, categories.
//!
//! The sources in order of trust: JSON-LD, `meta`, microdata, visible elements.

use serde_json::Value;

use super::tags;
use crate::text::dom::{Dom, DomKind, DomNode};
use crate::time::Timestamp;
use crate::time::dates;

/// JSON-LD scripts that are read, and their maximum length.
const MAX_SCRIPTS: usize = 16;
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// JSON-LD records that are read.
const MAX_RECORDS: usize = 2_000;
/// Longer fields are truncated.
const MAX_FIELD_BYTES: usize = 2_000;
const MAX_CATEGORIES: usize = 50;

/// The fields of one source. Empty texts are unknown.
#[derive(Clone, Default, Debug, PartialEq)]
pub(super) struct Metadata {
    pub(super) title: String,
    pub(super) author: String,
    pub(super) time: Option<Timestamp>,
    pub(super) description: String,
    pub(super) categories: Vec<String>,
    pub(super) site: String,
    pub(super) image: String,
}

impl Metadata {
    /// Collects the metadata of a page.
    pub(super) fn from_dom(dom: &Dom) -> Metadata {
        let mut found = Metadata::default();
        let mut plain_title = String::new();
        let mut n_scripts = 0;
        let mut microdata = Metadata::default();
        for (index, node) in dom.nodes.iter().enumerate() {
            match node.tag() {
                "script" if n_scripts < MAX_SCRIPTS && is_json_ld(node) => {
                    n_scripts += 1;
                    found.fill(from_json_ld(&dom.text_content(index as u32)));
                }
                "title" if plain_title.is_empty() && node.is_html() => {
                    plain_title = clean_field(&dom.text_content(index as u32))
                }
                "meta" => {}
                "" => {}
                _ => microdata.take_microdata(dom, index as u32, node),
            }
        }
        found.fill(from_meta(dom));
        found.fill(microdata);
        found.add_categories(tags::of_page(dom));
        if found.title.is_empty() {
            found.title = plain_title;
        }
        found.title = without_site(&found.title, &found.site);
        found
    }

    /// Adds the fields of another source that are still unknown.
    fn fill(&mut self, other: Metadata) {
        let fill = |own: &mut String, other: String| {
            if own.is_empty() {
                *own = other;
            }
        };
        fill(&mut self.title, other.title);
        fill(&mut self.author, other.author);
        fill(&mut self.description, other.description);
        fill(&mut self.site, other.site);
        fill(&mut self.image, other.image);
        self.time = self.time.or(other.time);
        self.add_categories(other.categories);
    }

    /// Adds categories that are not known yet; upper and lower case are equal.
    fn add_categories(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            let is_known = self.categories.iter().any(|known| known.to_lowercase() == name.to_lowercase());
            if !is_known && !name.is_empty() && self.categories.len() < MAX_CATEGORIES {
                self.categories.push(name);
            }
        }
    }

    /// `itemprop`, `rel="author"` and `<time>`.
    fn take_microdata(&mut self, dom: &Dom, index: u32, node: &DomNode) {
        let property = node.attribute("itemprop").unwrap_or_default();
        let is_author = property == "author"
            || node.attribute("rel").is_some_and(|rel| rel.split(' ').any(|r| r == "author"));
        if self.author.is_empty() && is_author {
            self.author = clean_author(&element_text(dom, index, node));
        }
        if self.time.is_none() {
            let is_time =
                property == "datePublished" || node.tag() == "time" || node.attribute("pubdate").is_some();
            if is_time {
                let value = node.attribute("datetime").or(node.attribute("content"));
                self.time = value
                    .and_then(dates::parse_lenient)
                    .or_else(|| dates::find(&element_text(dom, index, node)));
            }
        }
    }
}

/// The text of an element, truncated before it is joined.
fn element_text(dom: &Dom, index: u32, node: &DomNode) -> String {
    if let Some(content) = node.attribute("content") {
        return clean_field(content);
    }
    let mut text = String::new();
    for inner in &dom.nodes[index as usize..node.end as usize] {
        if let DomKind::Text(part) = &inner.kind {
            text.push_str(part);
            text.push(' ');
        }
        if text.len() > MAX_FIELD_BYTES {
            break;
        }
    }
    clean_field(&text)
}

/// Collapses white space and truncates.
pub(super) fn clean_field(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_FIELD_BYTES)];
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_json_ld(node: &DomNode) -> bool {
    node.attribute("type").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json"))
}

/// The first article in a JSON-LD script; invalid JSON is ignored.
fn from_json_ld(text: &str) -> Metadata {
    if text.len() > MAX_SCRIPT_BYTES {
        return Metadata::default();
    }
    let Ok(value) = serde_json::from_str::<Value>(text.trim()) else { return Metadata::default() };
    let mut pending = vec![&value];
    let mut n_records = 0;
    while let Some(value) = pending.pop() {
        n_records += 1;
        if n_records > MAX_RECORDS {
            break;
        }
        match value {
            Value::Array(values) => pending.extend(values.iter().rev()),
            Value::Object(record) => {
                if is_article(record.get("@type")) {
                    return from_record(record);
                }
                pending.extend(
                    ["@graph", "mainEntity", "mainEntityOfPage"].iter().filter_map(|name| record.get(*name)),
                );
            }
            _ => {}
        }
    }
    Metadata::default()
}

fn is_article(kind: Option<&Value>) -> bool {
    const SUFFIXES: [&str; 8] =
        ["Article", "Posting", "BlogPost", "Report", "Review", "Recipe", "VideoObject", "Question"];
    let is_one =
        |name: &Value| name.as_str().is_some_and(|name| SUFFIXES.iter().any(|suffix| name.ends_with(suffix)));
    match kind {
        Some(Value::Array(kinds)) => kinds.iter().any(is_one),
        Some(kind) => is_one(kind),
        None => false,
    }
}

fn from_record(record: &serde_json::Map<String, Value>) -> Metadata {
    let text = |name: &str| {
        record.get(name).and_then(Value::as_str).map(|text| clean_field(&unescaped(text))).unwrap_or_default()
    };
    let title = Some(text("headline")).filter(|title| !title.is_empty()).unwrap_or_else(|| text("name"));
    let time = [text("datePublished"), text("dateCreated"), text("uploadDate")];
    let sections = names(record.get("articleSection"));
    // A text of keywords is a list with commas.
    let keywords = names(record.get("keywords"));
    let keywords = keywords.iter().flat_map(|text| text.split(',')).map(clean_field);
    let categories =
        sections.into_iter().chain(keywords).filter(|name| !name.is_empty()).take(MAX_CATEGORIES);
    Metadata {
        title,
        author: names(record.get("author"))
            .iter()
            .map(|name| clean_author(name))
            .collect::<Vec<_>>()
            .join(", "),
        time: time.iter().find_map(|text| dates::parse_lenient(text)),
        description: text("description"),
        categories: categories.collect(),
        ..Metadata::default()
    }
}

/// Names in a text, a record, or a list of either.
fn names(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(clean_field(&unescaped(text))),
        Value::Object(record) => {
            record.get("name").and_then(Value::as_str).map(|text| clean_field(&unescaped(text)))
        }
        _ => None,
    };
    let found = match value {
        Some(Value::Array(values)) => values.iter().take(MAX_CATEGORIES).filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    };
    found.into_iter().filter(|name: &String| !name.is_empty()).collect()
}

/// Titles in JSON-LD are often escaped as in HTML.
fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    [
        ("&quot;", "\""),
        ("&#039;", "'"),
        ("&#39;", "'"),
        ("&#8217;", "’"),
        ("&#8216;", "‘"),
        ("&#8220;", "“"),
        ("&#8221;", "”"),
        ("&#8211;", "–"),
        ("&#8230;", "…"),
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (name, character)| text.replace(name, character))
}

/// Fields of `meta` elements, each with its names in order of trust.
fn from_meta(dom: &Dom) -> Metadata {
    const TITLE: [&str; 5] = ["og:title", "twitter:title", "dc.title", "citation_title", "parsely-title"];
    const AUTHOR: [&str; 8] = [
        "author",
        "article:author",
        "dc.creator",
        "citation_author",
        "parsely-author",
        "sailthru.author",
        "byl",
        "twitter:creator_name",
    ];
    const TIME: [&str; 14] = [
        "article:published_time",
        "og:published_time",
        "datepublished",
        "parsely-pub-date",
        "sailthru.date",
        "pubdate",
        "publishdate",
        "publish-date",
        "dc.date.issued",
        "dc.date",
        "dc.date.created",
        "citation_publication_date",
        "date",
        "article:published",
    ];
    const DESCRIPTION: [&str; 4] = ["og:description", "description", "twitter:description", "dc.description"];
    const CATEGORIES: [&str; 4] = ["article:section", "article:tag", "news_keywords", "keywords"];
    let metas: Vec<(String, &str)> = dom
        .nodes
        .iter()
        .filter(|node| node.tag() == "meta")
        .take(MAX_RECORDS)
        .filter_map(|node| {
            let name = node.attribute("property").or(node.attribute("name")).or(node.attribute("itemprop"))?;
            Some((name.to_ascii_lowercase(), node.attribute("content")?))
        })
        .collect();
    let all = |wanted: &&'static str| {
        let wanted = *wanted;
        metas.iter().filter(move |(name, _)| name == wanted).map(|&(_, value)| value)
    };
    let first = |names: &[&'static str]| {
        names.iter().flat_map(all).map(clean_field).find(|value| !value.is_empty()).unwrap_or_default()
    };
    let author = AUTHOR.iter().flat_map(all).map(clean_author).find(|author| !author.is_empty());
    let categories = CATEGORIES.iter().map(|name| {
        let parts =
            all(name).flat_map(|value| value.split(',')).map(clean_field).filter(|part| !part.is_empty());
        parts.take(MAX_CATEGORIES).collect::<Vec<_>>()
    });
    Metadata {
        title: first(&TITLE),
        author: author.unwrap_or_default(),
        time: TIME.iter().flat_map(all).find_map(dates::parse_lenient),
        description: first(&DESCRIPTION),
        categories: categories.into_iter().flatten().take(MAX_CATEGORIES).collect(),
        site: first(&["og:site_name", "application-name"]),
        image: first(&["og:image", "twitter:image"]),
    }
}

/// A name without a leading "by"; empty for URLs and mail addresses.
pub(super) fn clean_author(text: &str) -> String {
    let text = clean_field(text);
    let small = text.to_lowercase();
    if small.contains("://") || text.contains('@') || text.len() > 150 {
        return String::new();
    }
    const BEFORE: [&str; 9] =
        ["written by ", "posted by ", "by: ", "by ", "von ", "por ", "par ", "author: ", "autor: "];
    let cut = BEFORE.iter().find(|word| small.starts_with(*word)).map_or(0, |word| word.len());
    text.get(cut..).unwrap_or(&text).trim().to_owned()
}

/// A title without the name of the site before or after it.
pub(super) fn without_site(title: &str, site: &str) -> String {
    if site.is_empty() {
        return title.to_owned();
    }
    let site = site.to_lowercase();
    for mark in [" | ", " - ", " – ", " — ", " :: ", " · ", " » "] {
        if let Some((before, after)) = title.rsplit_once(mark)
            && after.trim().to_lowercase() == site
        {
            return before.trim().to_owned();
        }
        if let Some((before, after)) = title.split_once(mark)
            && before.trim().to_lowercase() == site
        {
            return after.trim().to_owned();
        }
    }
    title.to_owned()
}
