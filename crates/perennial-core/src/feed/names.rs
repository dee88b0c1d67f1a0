//! Prefixes and URLs of namespaces, names of elements -> the meaning of an element.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vocabulary {
    /// RSS, RDF and Atom.
    Core,
    DublinCore,
    /// Terms of Dublin Core.
    Terms,
    /// content:encoded.
    Content,
    Media,
    Itunes,
    /// Comments by wellformedweb.org.
    Wfw,
    Slash,
    Syndication,
    Thread,
    Xhtml,
    Other,
}

use Vocabulary::{
    Content, Core, DublinCore, Itunes, Media, Other, Slash, Syndication, Terms, Thread, Wfw, Xhtml,
};

pub(super) fn vocabulary_by_url(url: &str) -> Vocabulary {
    let url = url.trim().to_ascii_lowercase();
    let url = url.trim_start_matches("https://").trim_start_matches("http://").trim_start_matches("www.");
    let begins = |starts: &[&str]| starts.iter().any(|start| url.starts_with(start));
    match url {
        "" => Core,
        _ if begins(&["purl.org/dc/terms"]) => Terms,
        _ if begins(&["purl.org/dc/elements"]) => DublinCore,
        _ if begins(&["purl.org/rss/1.0/modules/content"]) => Content,
        _ if begins(&["purl.org/rss/1.0/modules/slash"]) => Slash,
        _ if begins(&["purl.org/rss/1.0/modules/syndication"]) => Syndication,
        _ if begins(&["purl.org/syndication/thread"]) => Thread,
        _ if begins(&["purl.org/rss/1.0/modules"]) => Other,
        _ if begins(&["search.yahoo.com/mrss"]) => Media,
        _ if begins(&["itunes.com/dtds/podcast"]) => Itunes,
        _ if begins(&["wellformedweb.org/commentapi"]) => Wfw,
        _ if begins(&["w3.org/1999/xhtml"]) => Xhtml,
        _ if begins(&[
            "w3.org/2005/atom",
            "purl.org/atom",
            "w3.org/1999/02/22-rdf",
            "my.netscape.com/rdf",
            "my.netscape.com/publish",
        ]) || begins(&[
            "purl.org/rss",
            "purl.org/net/rss",
            "backend.userland.com/rss",
            "blogs.law.harvard.edu/tech/rss",
        ]) || begins(&["channel.netscape.com/rdf", "rssboard.org"]) =>
        {
            Core
        }
        _ => Other,
    }
}

/// The usual vocabulary of an undeclared prefix.
pub(super) fn vocabulary_by_prefix(prefix: &str) -> Vocabulary {
    match prefix.to_ascii_lowercase().as_str() {
        "" | "rss" | "atom" | "rdf" | "a10" => Core,
        "dc" => DublinCore,
        "dcterms" => Terms,
        "content" => Content,
        "media" => Media,
        "itunes" => Itunes,
        "wfw" => Wfw,
        "slash" => Slash,
        "sy" => Syndication,
        "thr" => Thread,
        "xhtml" => Xhtml,
        _ => Other,
    }
}

/// The meaning of an element in a feed or an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Item,
    /// A headline; the smallest number wins.
    Title(u8),
    Link,
    Id,
    /// A short text; the smallest number wins.
    Summary(u8),
    /// The full text.
    Content,
    Published,
    Updated,
    Created,
    /// A person, as child elements or as one text.
    Author,
    PersonName,
    PersonEmail,
    PersonUrl,
    Category,
    Comments,
    CommentFeed,
    NComments,
    Media,
    Ttl,
    SkipHour,
    SkipDay,
    UpdatePeriod,
    UpdateFrequency,
    Language,
    /// Its content belongs to neither feed nor item.
    Ignored,
    /// A container without its own meaning.
    Container,
}

/// The meaning of an element by its local name in lower case.
pub(super) fn element_meaning(vocabulary: Vocabulary, name: &str) -> Meaning {
    use Meaning as M;
    match (vocabulary, name) {
        (Core, "item" | "entry") => M::Item,
        (Core, "title") => M::Title(0),
        (DublinCore | Terms, "title") => M::Title(1),
        (Media, "title") => M::Title(2),
        (Itunes, "title") => M::Title(3),
        (Core, "link") => M::Link,
        (Core, "guid" | "id") => M::Id,
        (DublinCore | Terms, "identifier") => M::Id,
        (Core, "description" | "summary" | "subtitle" | "tagline" | "abstract") => M::Summary(0),
        (DublinCore | Terms, "description" | "abstract") => M::Summary(1),
        (Media, "description") => M::Summary(2),
        (Itunes, "summary" | "subtitle") => M::Summary(3),
        (Core, "content" | "fullitem") => M::Content,
        (Content, "encoded") => M::Content,
        (Xhtml, "body" | "div") | (Core, "body") => M::Content,
        (Core, "pubdate" | "published" | "issued") | (Terms, "issued") => M::Published,
        (Core, "lastbuilddate" | "updated" | "modified")
        | (DublinCore, "date")
        | (Terms, "modified" | "date") => M::Updated,
        (Core, "created") | (Terms, "created") => M::Created,
        (Core, "author" | "managingeditor")
        | (DublinCore | Terms, "creator" | "author")
        | (Itunes, "author") => M::Author,
        (Core, "name") => M::PersonName,
        (Core, "email") | (Itunes, "email") => M::PersonEmail,
        (Core, "uri" | "url" | "homepage") => M::PersonUrl,
        (Core, "category") | (DublinCore | Terms, "subject") | (Itunes, "category") => M::Category,
        (Core, "comments") | (Wfw, "comment") => M::Comments,
        (Wfw, "commentrss") => M::CommentFeed,
        (Slash, "comments") | (Thread, "total") => M::NComments,
        (Core, "enclosure") | (Media, "content" | "thumbnail") => M::Media,
        (Core, "ttl") => M::Ttl,
        (Core, "hour") => M::SkipHour,
        (Core, "day") => M::SkipDay,
        (Syndication, "updateperiod") => M::UpdatePeriod,
        (Syndication, "updatefrequency") => M::UpdateFrequency,
        (Core, "language") | (DublinCore, "language") => M::Language,
        (Core, "rss" | "channel" | "feed" | "rdf" | "items" | "skiphours" | "skipdays")
        | (Media, "group") => M::Container,
        (Core, _) => M::Ignored,
        // An unknown element of a different vocabulary may contain anything, which is unrelated to the item.
        _ => M::Ignored,
    }
}
