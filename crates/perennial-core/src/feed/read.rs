//! XML -> feed: RSS, RDF and Atom in one pass over tags and texts.
//!
//! A text that may contain markup is captured twice: as plain text, and as rewritten markup. Its end decides which
//! one is meant, depending on tags inside and on the type attribute.

use std::collections::HashMap;
use std::rc::Rc;

use url::Url;

use super::capture::{Syntax, TextCapture, parse_person, url_in_text};
use super::names::{Meaning, Vocabulary, element_meaning, vocabulary_by_prefix, vocabulary_by_url};
use super::{
    Feed, FeedError, FeedFormat, FeedItem, FeedLink, FeedText, MAX_ITEMS, MAX_LABEL_BYTES, MAX_PARTS, Person,
    absolute, parse_date, period_secs,
};
use crate::text::untrusted::truncate;
use crate::text::xml::{Scanner, Tag, XmlPiece, local_name};
use crate::time::Timestamp;

/// Maximum number of open elements.
const MAX_DEPTH: usize = 256;
/// Maximum number of declared namespaces.
const MAX_NAMESPACES: usize = 64;

pub(super) fn read(text: &str, base: Option<Url>) -> Result<Feed, FeedError> {
    let mut scanner = Scanner::new(text);
    let mut reading = FeedReader { base: base.map(Rc::new), ..FeedReader::default() };
    for piece in scanner.by_ref() {
        match piece {
            XmlPiece::Start(tag) => reading.start(&tag)?,
            XmlPiece::End(name) => reading.end(name),
            XmlPiece::Text(text) => reading.text(&text),
            XmlPiece::Literal(text) => reading.text(text),
        }
    }
    reading.feed.is_broken = scanner.is_broken() || !reading.open.is_empty();
    reading.finish()
}

struct OpenTag<'a> {
    name: &'a str,
    meaning: Meaning,
    base: Option<Rc<Url>>,
    /// Number of namespaces declared outside.
    n_namespaces: usize,
}

/// An item, or the head of the feed, during parsing.
#[derive(Default)]
struct ItemDraft {
    item: FeedItem,
    /// The rank of the element that supplied the title or summary.
    title_rank: Option<u8>,
    summary_rank: Option<u8>,
    /// The identifier, if it is the URL of the item's page.
    permalink: Option<String>,
}

#[derive(Default)]
struct FeedReader<'a> {
    feed: Feed,
    syntax: Syntax,
    has_root: bool,
    base: Option<Rc<Url>>,
    open: Vec<OpenTag<'a>>,
    /// The number of open elements per name, so an unmatched end tag needs no search.
    n_open: HashMap<&'a str, u32>,
    /// Open elements beyond the maximum depth.
    n_deeper: usize,
    namespaces: Vec<(&'a str, Vocabulary)>,
    head: ItemDraft,
    item: Option<ItemDraft>,
    capture: Option<TextCapture>,
    /// The person that is being parsed, with the text so far.
    person: Option<(Person, String)>,
}

impl<'a> FeedReader<'a> {
    fn start(&mut self, tag: &Tag<'a>) -> Result<(), FeedError> {
        if self.open.len() >= MAX_DEPTH {
            self.n_deeper += usize::from(!tag.is_empty);
            return Ok(());
        }
        if self.capture.is_some() && self.begins_item(tag) {
            // A text cannot contain an item, so its element was never closed.
            while self.capture.is_some() {
                self.end_last();
            }
        }
        let n_namespaces = self.namespaces.len();
        let outer = self.open.last().map_or(&self.base, |open| &open.base).clone();
        let base = self.declare(tag, outer);
        if let Some(capture) = &mut self.capture {
            capture.start_child(tag);
            self.push(OpenTag { name: tag.name, meaning: Meaning::Ignored, base, n_namespaces });
        } else {
            let meaning = self.meaning_here(tag);
            if !self.has_root {
                self.take_root(tag)?;
            }
            if meaning == Meaning::Item {
                self.close_item();
            }
            self.push(OpenTag { name: tag.name, meaning, base, n_namespaces });
            self.begin(tag, meaning);
        }
        if tag.is_empty {
            self.end_last();
        }
        Ok(())
    }

    fn push(&mut self, open: OpenTag<'a>) {
        *self.n_open.entry(open.name).or_default() += 1;
        self.open.push(open);
    }

    /// Records the namespaces that a tag declares, and returns the base URL of its content.
    fn declare(&mut self, tag: &Tag<'a>, outer: Option<Rc<Url>>) -> Option<Rc<Url>> {
        let mut base = outer;
        for attribute in tag.raw_attributes() {
            let name = attribute.name;
            if name == "xmlns" || name.starts_with("xmlns:") {
                if self.namespaces.len() < MAX_NAMESPACES {
                    let prefix = name.strip_prefix("xmlns:").unwrap_or_default();
                    self.namespaces.push((prefix, vocabulary_by_url(attribute.value)));
                }
            } else if name == "xml:base" {
                let given = crate::text::xml::unescaped(attribute.value);
                let joined = match &base {
                    Some(base) => base.join(given.trim()).ok(),
                    None => Url::parse(given.trim()).ok(),
                };
                // Only web URLs can be a base for relative ones.
                if let Some(joined) = joined.filter(|url| matches!(url.scheme(), "http" | "https" | "ftp")) {
                    base = Some(Rc::new(joined));
                }
            }
        }
        base
    }

    fn vocabulary(&self, name: &str) -> Vocabulary {
        let prefix = name.rsplit_once(':').map_or("", |(prefix, _)| prefix);
        let declared =
            self.namespaces.iter().rev().find(|(known, _)| *known == prefix).map(|(_, found)| *found);
        match declared {
            Some(Vocabulary::Other) if prefix.is_empty() => Vocabulary::Core,
            Some(found) => found,
            None => vocabulary_by_prefix(prefix),
        }
    }

    fn begins_item(&self, tag: &Tag<'a>) -> bool {
        let name = tag.local_name().to_ascii_lowercase();
        element_meaning(self.vocabulary(tag.name), &name) == Meaning::Item
    }

    /// The meaning of an element at its position.
    fn meaning_here(&self, tag: &Tag<'a>) -> Meaning {
        let name = tag.local_name().to_ascii_lowercase();
        let parent = self.open.last();
        if parent.is_some_and(|parent| parent.meaning == Meaning::Ignored) {
            return Meaning::Ignored;
        }
        let meaning = element_meaning(self.vocabulary(tag.name), &name);
        let parent_name =
            parent.map(|parent| local_name(parent.name).to_ascii_lowercase()).unwrap_or_default();
        let is_here = match meaning {
            Meaning::PersonName | Meaning::PersonEmail | Meaning::PersonUrl => {
                parent.is_some_and(|parent| parent.meaning == Meaning::Author)
            }
            Meaning::SkipHour => parent_name == "skiphours",
            Meaning::SkipDay => parent_name == "skipdays",
            Meaning::Item => !parent.is_some_and(|parent| parent.meaning == Meaning::Author),
            _ => !parent.is_some_and(|parent| parent.meaning == Meaning::Author),
        };
        if is_here { meaning } else { Meaning::Ignored }
    }

    fn take_root(&mut self, tag: &Tag<'a>) -> Result<(), FeedError> {
        let name = tag.local_name().to_ascii_lowercase();
        self.feed.format = match name.as_str() {
            "rss" => match tag.attribute("version").as_deref().map(str::trim) {
                Some(version) if version.starts_with('2') => FeedFormat::Rss2,
                _ => FeedFormat::Rss09,
            },
            "feed" => FeedFormat::Atom,
            // An Atom entry may be a document.
            "entry" if tag.attribute("xmlns").is_some_and(|name| name.contains("Atom")) => FeedFormat::Atom,
            "rdf" => FeedFormat::Rdf,
            "channel" => FeedFormat::Rss09,
            "html" => return Err(FeedError::Page),
            _ => return Ok(()),
        };
        self.syntax = match self.feed.format {
            FeedFormat::Atom if tag.attribute("xmlns").is_some_and(|name| name.contains("purl.org")) => {
                Syntax::OldAtom
            }
            FeedFormat::Atom => Syntax::Atom,
            _ => Syntax::Rss,
        };
        self.has_root = true;
        self.head.item.link = tag.attribute("href").map(|href| label(&absolute(self.base.as_deref(), &href)));
        Ok(())
    }

    fn draft(&mut self) -> &mut ItemDraft {
        self.item.as_mut().unwrap_or(&mut self.head)
    }

    fn base_here(&self) -> Option<Rc<Url>> {
        self.open.last().and_then(|open| open.base.clone())
    }

    /// Starts an element outside of a text.
    fn begin(&mut self, tag: &Tag<'a>, meaning: Meaning) {
        match meaning {
            Meaning::Item => {
                let mut draft = ItemDraft::default();
                let base = self.base_here();
                let about = tag.raw_attributes().find(|found| local_name(found.name) == "about");
                draft.item.id = about.map(|found| label(&crate::text::xml::unescaped(found.value)));
                if let Some(href) = tag.attribute("href") {
                    draft.item.link = Some(label(&absolute(base.as_deref(), &href)));
                }
                draft.item.updated = tag.attribute("lastmod").and_then(|date| parse_date(&date));
                self.item = Some(draft);
            }
            Meaning::Author => self.person = Some(Default::default()),
            Meaning::Media => self.take_media(tag),
            Meaning::Ignored | Meaning::Container => {}
            _ => self.capture = Some(TextCapture::new(tag, meaning, self.open.len())),
        }
    }

    fn take_media(&mut self, tag: &Tag<'a>) {
        let Some(url) = tag.attribute("url").or_else(|| tag.attribute("href")) else { return };
        let href = label(&absolute(self.base_here().as_deref(), &url));
        let media_type =
            label(&tag.attribute("type").or_else(|| tag.attribute("medium")).unwrap_or_default());
        push_link(&mut self.draft().item.media, FeedLink { href, rel: "enclosure".to_owned(), media_type });
    }

    fn text(&mut self, text: &str) {
        if let Some(capture) = &mut self.capture {
            capture.push(text);
        } else if let Some((_, said)) = &mut self.person
            && self.open.last().is_some_and(|open| open.meaning == Meaning::Author)
            && said.len() < MAX_LABEL_BYTES
        {
            said.push_str(text);
        }
    }

    /// Ends the nearest open element of this name and all elements inside it. An unmatched name is ignored.
    fn end(&mut self, name: &str) {
        if self.n_deeper > 0 {
            self.n_deeper -= 1;
            return;
        }
        let found = match name {
            // The short form `</>` ends the innermost element.
            "" => self.open.len().checked_sub(1),
            name if self.n_open.get(name).is_none_or(|&n_open| n_open == 0) => None,
            name => self.open.iter().rposition(|open| open.name == name),
        };
        let Some(place) = found else { return };
        while self.open.len() > place {
            self.end_last();
        }
    }

    fn end_last(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if let Some(n_open) = self.n_open.get_mut(open.name) {
            *n_open -= 1;
        }
        self.namespaces.truncate(open.n_namespaces);
        if let Some(capture) = self.capture.as_mut().filter(|capture| self.open.len() >= capture.level) {
            capture.end_child(open.name);
            return;
        }
        if let Some(capture) = self.capture.take() {
            self.put(capture, open.base.as_deref());
            return;
        }
        match open.meaning {
            Meaning::Item => self.close_item(),
            Meaning::Author => self.close_person(open.base.as_deref()),
            _ => {}
        }
    }

    fn close_person(&mut self, base: Option<&Url>) {
        let Some((mut person, said)) = self.person.take() else { return };
        if person == Person::default() {
            person = parse_person(&said);
        }
        if !person.url.is_empty() {
            person.url = absolute(base, &person.url);
        }
        let authors = &mut self.draft().item.authors;
        if person != Person::default() && authors.len() < MAX_PARTS && !authors.contains(&person) {
            authors.push(person);
        }
    }

    /// Stores a complete text.
    fn put(&mut self, capture: TextCapture, base: Option<&Url>) {
        let syntax = self.syntax;
        match capture.meaning {
            Meaning::Title(rank) => {
                let text = capture.text(syntax, base);
                let draft = self.draft();
                if !text.is_empty() && draft.title_rank.is_none_or(|known| rank < known) {
                    (draft.item.title, draft.title_rank) = (text, Some(rank));
                }
            }
            Meaning::Summary(rank) => self.put_summary(capture.text(syntax, base), rank),
            Meaning::Content => {
                let text = capture.text(syntax, base);
                let contents = &mut self.draft().item.contents;
                if !text.is_empty() && contents.len() < MAX_PARTS {
                    contents.push(text);
                }
            }
            Meaning::Link => self.put_link(&capture, base),
            Meaning::Id => self.put_id(&capture, base),
            _ => self.put_value(&capture, base),
        }
    }

    /// The first text of the most specific element is the summary; a second one of the same rank is the full text.
    fn put_summary(&mut self, text: FeedText, rank: u8) {
        let is_item = self.item.is_some();
        let draft = self.draft();
        if text.is_empty() {
            return;
        }
        match draft.summary_rank {
            Some(known) if rank > known => {}
            Some(known) if rank == known => {
                if is_item && rank == 0 && draft.item.contents.len() < MAX_PARTS {
                    draft.item.contents.push(text);
                }
            }
            _ => (draft.item.summary, draft.summary_rank) = (Some(text), Some(rank)),
        }
    }

    fn put_link(&mut self, capture: &TextCapture, base: Option<&Url>) {
        let written = match &capture.href {
            Some(href) => href.clone(),
            None => url_in_text(capture.plain.trim()),
        };
        if written.is_empty() {
            return;
        }
        let rel = capture.rel.trim().to_ascii_lowercase();
        let rel = if rel.is_empty() { "alternate".to_owned() } else { rel };
        let link =
            FeedLink { href: label(&absolute(base, &written)), rel, media_type: capture.media_type.clone() };
        let item = &mut self.draft().item;
        let is_feed = link.media_type.contains("atom")
            || link.media_type.contains("rss")
            || link.media_type.contains("rdf");
        match link.rel.as_str() {
            "alternate" if !is_feed || item.link.is_none() => {
                item.link.get_or_insert_with(|| link.href.clone());
            }
            "enclosure" => push_link(&mut item.media, link.clone()),
            "replies" if is_feed => item.comment_feed = Some(link.href.clone()),
            "replies" => item.comments = Some(link.href.clone()),
            _ => {}
        }
        push_link(&mut item.links, link);
    }

    fn put_id(&mut self, capture: &TextCapture, base: Option<&Url>) {
        let written = label(capture.plain.trim());
        if written.is_empty() {
            return;
        }
        let is_guid = capture.is_permalink.is_some();
        let draft = self.draft();
        if capture.is_permalink == Some(true) {
            let href = absolute(base, &written);
            draft.permalink =
                Some(href).filter(|href| href.starts_with("http://") || href.starts_with("https://"));
        }
        // An Atom identifier is a URL, even if it is written relative to a base.
        let is_relative = !is_guid && !super::has_scheme(&written) && written.contains('/');
        draft.item.id = Some(if is_relative { absolute(base, &written) } else { written });
    }

    fn put_value(&mut self, capture: &TextCapture, base: Option<&Url>) {
        let plain = capture.plain.trim();
        let number = || plain.parse::<u32>().ok();
        let (person, pace) = (&mut self.person, &mut self.feed.pace);
        match capture.meaning {
            Meaning::PersonName | Meaning::PersonEmail | Meaning::PersonUrl => {
                let Some((person, _)) = person else { return };
                let part = match capture.meaning {
                    Meaning::PersonName => &mut person.name,
                    Meaning::PersonEmail => &mut person.email,
                    _ => &mut person.url,
                };
                *part = label(plain);
            }
            Meaning::Ttl => pace.ttl_minutes = pace.ttl_minutes.or(number()),
            Meaning::SkipHour => {
                pace.skip_hours |= number().filter(|hour| *hour <= 24).map_or(0, |hour| 1 << (hour % 24))
            }
            Meaning::SkipDay => pace.skip_days |= day_bit(plain),
            Meaning::UpdatePeriod => pace.update_period_secs = period_secs(plain),
            Meaning::UpdateFrequency => pace.update_frequency = number().filter(|number| *number > 0),
            Meaning::Language => {
                self.feed.language.get_or_insert_with(|| label(plain));
            }
            Meaning::NComments => self.draft().item.n_comments = number(),
            Meaning::Comments => self.draft().item.comments = Some(label(&absolute(base, plain))),
            Meaning::CommentFeed => self.draft().item.comment_feed = Some(label(&absolute(base, plain))),
            Meaning::Category => {
                let term = capture.term.clone().unwrap_or_else(|| label(plain));
                let categories = &mut self.draft().item.categories;
                if !term.is_empty() && categories.len() < MAX_PARTS {
                    categories.push(term);
                }
            }
            Meaning::Published | Meaning::Updated | Meaning::Created => {
                self.put_date(capture.meaning, parse_date(plain))
            }
            _ => {}
        }
    }

    fn put_date(&mut self, meaning: Meaning, date: Option<Timestamp>) {
        let item = &mut self.draft().item;
        let known = match meaning {
            Meaning::Published => &mut item.published,
            Meaning::Created => &mut item.created,
            _ => &mut item.updated,
        };
        // Of several dates the last one counts, as in other readers.
        *known = date.or(*known);
    }

    fn close_item(&mut self) {
        let Some(mut draft) = self.item.take() else { return };
        if draft.item.link.is_none() {
            draft.item.link = draft.permalink.take();
        }
        match self.feed.items.len() < MAX_ITEMS {
            true => self.feed.items.push(draft.item),
            false => self.feed.n_left_out += 1,
        }
    }

    fn finish(mut self) -> Result<Feed, FeedError> {
        // A truncated file ends with open elements.
        while !self.open.is_empty() {
            self.end_last();
        }
        self.close_item();
        if !self.has_root {
            return Err(FeedError::Unknown);
        }
        let head = self.head.item;
        Ok(Feed {
            title: head.title,
            link: head.link,
            id: head.id,
            description: head.summary.unwrap_or_default(),
            authors: head.authors,
            updated: head.updated,
            published: head.published,
            created: head.created,
            categories: head.categories,
            links: head.links,
            ..self.feed
        })
    }
}

fn push_link(links: &mut Vec<FeedLink>, link: FeedLink) {
    if links.len() < MAX_PARTS && !links.contains(&link) {
        links.push(link);
    }
}

fn label(text: &str) -> String {
    truncate(text.trim(), MAX_LABEL_BYTES).to_owned()
}

fn day_bit(name: &str) -> u8 {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let name = name.to_ascii_lowercase();
    DAYS.iter().position(|day| name.starts_with(day)).map_or(0, |day| 1 << day)
}
