//! Feeds written for these tests -> the expected items.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Feed {
    parse(text.as_bytes(), None, "http://e.org/blog/feed.xml")
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn instant(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).ok()
}

const RSS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:atom="http://www.w3.org/2005/Atom" xmlns:slash="http://purl.org/rss/1.0/modules/slash/"
  xmlns:wfw="http://wellformedweb.org/CommentAPI/" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
  xmlns:media="http://search.yahoo.com/mrss/">
<channel><title>News &amp; views</title><link>http://e.org/</link><description>What &lt;b&gt;happens&lt;/b&gt;</description>
<atom:link rel="self" href="http://e.org/blog/feed.xml"/><atom:link rel="hub" href="http://hub.example/"/>
<lastBuildDate>Mon, 02 Nov 2026 10:00:00 +0100</lastBuildDate><ttl>30</ttl><language>en</language>
<skipHours><hour>0</hour><hour>24</hour><hour>3</hour></skipHours><skipDays><day>Sunday</day></skipDays>
<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>
<image><title>Not the title</title><url>http://e.org/i.png</url><link>http://other.example/</link></image>
<item><title>First</title><link>/a?x=1&amp;y=2</link><guid isPermaLink="false">17</guid>
<pubDate>Mon, 02 Nov 2026 09:00:00 GMT</pubDate><dc:creator>A. Writer</dc:creator><category>one</category><category>two</category>
<description>In &lt;i&gt;short&lt;/i&gt;</description><content:encoded><![CDATA[<p>In <a href="full">full</a></p>]]></content:encoded>
<comments>http://e.org/a#c</comments><wfw:commentRss>http://e.org/a/feed</wfw:commentRss><slash:comments>3</slash:comments>
<enclosure url="http://e.org/a.mp3" type="audio/mpeg" length="1"/><media:content url="http://e.org/a.jpg" medium="image">
<media:title>Not the headline</media:title></media:content></item>
<item><guid>http://e.org/b</guid><title>Second</title></item>
</channel></rss>"#;

#[test]
fn rss_with_its_modules() {
    let feed = read(RSS);
    assert_eq!((feed.format, feed.title.words().as_str()), (FeedFormat::Rss2, "News & views"));
    assert_eq!(feed.link.as_deref(), Some("http://e.org/"));
    assert_eq!(feed.description.words(), "What happens");
    assert_eq!(feed.updated, instant("2026-11-02T09:00:00Z"));
    assert_eq!((feed.hub(), feed.language.as_deref()), (Some("http://hub.example/"), Some("en")));
    let pace = PollHints {
        ttl_minutes: Some(30),
        skip_hours: 0b1001,
        skip_days: 1 << 6,
        update_period_secs: Some(86_400),
        update_frequency: Some(4),
    };
    assert_eq!(feed.pace, pace);
    let [first, second] = &feed.items[..] else { panic!("{feed:?}") };
    assert_eq!((first.key().as_str(), first.link.as_deref()), ("17", Some("http://e.org/a?x=1&y=2")));
    assert_eq!((first.title.words().as_str(), first.time()), ("First", instant("2026-11-02T09:00:00Z")));
    assert_eq!(first.summary.as_ref().unwrap().words(), "In short");
    assert_eq!(first.contents[0].value, "<p>In <a href=\"http://e.org/blog/full\">full</a></p>");
    assert_eq!(first.authors[0].name, "A. Writer");
    assert_eq!(first.categories, ["one", "two"]);
    assert_eq!((first.comments.as_deref(), first.n_comments), (Some("http://e.org/a#c"), Some(3)));
    assert_eq!(first.comment_feed.as_deref(), Some("http://e.org/a/feed"));
    let media: Vec<&str> = first.media.iter().map(|link| link.href.as_str()).collect();
    assert_eq!(media, ["http://e.org/a.mp3", "http://e.org/a.jpg"]);
    assert_eq!((second.link.as_deref(), second.time()), (Some("http://e.org/b"), None));
}

#[test]
fn atom_with_inherited_bases_and_markup() {
    let feed = read(
        r#"<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://f.org/x/" xmlns:thr="http://purl.org/syndication/thread/1.0">
        <title type="text">A &lt;tag&gt;</title><link href="." /><link rel="self" href="feed"/><id>urn:f</id>
        <updated>2026-11-03T00:00:00Z</updated><author><name>Editor</name><email>e@f.org</email></author>
        <entry xml:base="y/"><id>urn:1</id><title type="html">&lt;b&gt;One&lt;/b&gt;</title>
          <link rel="edit" href="edit"/><link href="1"/><link rel="replies" type="application/atom+xml" href="1/replies"/>
          <published>2026-11-01T10:00:00+01:00</published><updated>2026-11-02T10:00:00Z</updated><thr:total>4</thr:total>
          <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Text &amp; <a href="z">more</a><br/></div></content>
          <source><title>Elsewhere</title><id>urn:source</id><author><name>Other</name></author></source></entry></feed>"#,
    );
    assert_eq!((feed.format, feed.title.words().as_str()), (FeedFormat::Atom, "A <tag>"));
    assert_eq!((feed.link.as_deref(), feed.id.as_deref()), (Some("http://f.org/x/"), Some("urn:f")));
    assert_eq!(feed.authors, [Person { name: "Editor".into(), email: "e@f.org".into(), url: String::new() }]);
    let item = &feed.items[0];
    assert_eq!((item.key().as_str(), item.link.as_deref()), ("urn:1", Some("http://f.org/x/y/1")));
    assert_eq!((item.title.words().as_str(), item.title.is_html), ("One", true));
    assert_eq!(item.contents[0].value, "Text &amp; <a href=\"http://f.org/x/y/z\">more</a><br />");
    assert_eq!(
        (item.time(), item.changed()),
        (instant("2026-11-01T09:00:00Z"), instant("2026-11-02T10:00:00Z"))
    );
    assert_eq!(
        (item.comment_feed.as_deref(), item.n_comments),
        (Some("http://f.org/x/y/1/replies"), Some(4))
    );
    assert!(item.authors.is_empty(), "the author of the source is not that of the entry");
}

#[test]
fn rdf_and_old_rss() {
    let feed = read(
        r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://e.org/"><title>T</title><link>http://e.org/</link>
        <items><rdf:Seq><rdf:li resource="http://e.org/1"/></rdf:Seq></items></channel>
        <item rdf:about="http://e.org/1"><title>One</title><link>http://e.org/1</link><dc:date>2026-11-01</dc:date></item></rdf:RDF>"#,
    );
    assert_eq!((feed.format, feed.items.len()), (FeedFormat::Rdf, 1));
    assert_eq!(
        (feed.items[0].key().as_str(), feed.items[0].time()),
        ("http://e.org/1", instant("2026-11-01"))
    );
    let old = read(
        "<rss version='0.91'><channel><title>T</title><item><title>One</title><link>http://e.org/1</link></item></channel></rss>",
    );
    assert_eq!((old.format, old.items[0].key().as_str()), (FeedFormat::Rss09, "http://e.org/1"));
}

#[test]
fn json_feed() {
    let feed = read(
        r#"{"version":"https://jsonfeed.org/version/1.1","title":"T","home_page_url":"http://e.org/","author":{"name":"F"},"items":[
        {"id":7,"url":"/a","content_html":"<a href='b'>x</a>","date_published":"2026-11-01T00:00:00Z","authors":[{"name":"N"}],
         "tags":["t"],"attachments":[{"url":"c.mp3","mime_type":"audio/mpeg"}]},{"content_text":"only text"}]}"#,
    );
    assert_eq!((feed.format, feed.items.len()), (FeedFormat::Json, 2));
    let item = &feed.items[0];
    assert_eq!((item.key().as_str(), item.link.as_deref()), ("7", Some("http://e.org/a")));
    assert_eq!(item.contents[0].value, "<a href='http://e.org/blog/b'>x</a>");
    assert_eq!(
        (item.authors[0].name.as_str(), item.media[0].href.as_str()),
        ("N", "http://e.org/blog/c.mp3")
    );
    assert_eq!(feed.items[1].authors[0].name, "F", "the feed's, where the item names none");
}

#[test]
fn broken_feeds_are_read_as_far_as_they_make_sense() {
    let feed = read(
        "<rss version=2.0><channel><title>A & B<item><title>One</title><link>http://e.org/1?a=1&b=2</link><description><p>x<br>y</description>\
         <item><title>Two &nbsp; &hellip;</title><link>http://e.org/2</link></channel",
    );
    let found: Vec<_> =
        feed.items.iter().map(|item| (item.title.words(), item.link.clone().unwrap())).collect();
    let expected = [("One", "http://e.org/1?a=1&b=2"), ("Two …", "http://e.org/2")];
    assert_eq!(found, expected.map(|(title, link)| (title.to_owned(), link.to_owned())));
    assert!(feed.is_broken);
    assert_eq!(feed.items[0].summary.as_ref().unwrap().words(), "x y");
    let latin =
        parse(b"<rss><channel><title>caf\xe9</title></channel></rss>", Some("text/xml; charset=utf-8"), "")
            .unwrap();
    assert_eq!(latin.title.value, "café");
}

#[test]
fn pages_and_other_things_are_no_feeds() {
    assert_eq!(parse(b"<!doctype html><html><head><title>x</title>", None, ""), Err(FeedError::Page));
    for none in
        [&b""[..], b"{}", b"[1]", b"\xff\xd8\xff\xe0", b"<urlset><url><loc>x</loc></url></urlset>", b"hello"]
    {
        assert_eq!(parse(none, None, ""), Err(FeedError::Unknown), "{none:?}");
    }
    assert!(looks_like_feed(RSS.as_bytes()) && !looks_like_feed(b"<html><body>rss</body></html>"));
}

#[test]
fn items_without_identifiers_differ_by_their_texts() {
    let feed = read(
        "<rss><channel><item><title>A</title></item><item><title>B</title></item><item><description>C</description></item></channel></rss>",
    );
    let keys: std::collections::BTreeSet<String> = feed.items.iter().map(FeedItem::key).collect();
    assert_eq!(keys.len(), 3);
}

#[test]
fn hostile_feeds_stay_within_their_bounds() {
    let many =
        format!("<rss><channel>{}</channel></rss>", "<item><title>x</title></item>".repeat(MAX_ITEMS + 5));
    let feed = read(&many);
    assert_eq!((feed.items.len(), feed.n_left_out), (MAX_ITEMS, 5));
    let deep =
        format!("<rss><channel><item>{}<title>x</title></item></channel></rss>", "<a>".repeat(100_000));
    assert_eq!(read(&deep).items.len(), 1);
    let long = format!("<rss><channel><title>{}</title></channel></rss>", "x".repeat(3 * MAX_VALUE_BYTES));
    assert_eq!(read(&long).title.value.len(), MAX_VALUE_BYTES, "a longer text is cut");
    let categories = "<category>c</category>".repeat(1000);
    assert_eq!(read(&format!("<rss><item>{categories}</item></rss>")).items[0].categories.len(), MAX_PARTS);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes, None, "http://e.org/");
    }

    /// Any order of tags is parsed without panics and within limits.
    #[test]
    fn any_order_of_tags_is_parsed_without_panics(parts in proptest::collection::vec(0usize..16, 0..60)) {
        const PARTS: [&str; 16] = ["<rss>", "<feed>", "<channel>", "<item>", "</item>", "<entry>", "<title>", "</title>", "text", "<author>",
            "<name>", "</author>", "<content type='xhtml'>", "<link href='x'/>", "<![CDATA[", "]]>"];
        let text: String = parts.iter().map(|&part| PARTS[part]).collect();
        if let Ok(feed) = parse(text.as_bytes(), None, "http://e.org/") {
            prop_assert!(feed.items.len() <= parts.len());
        }
    }

    /// RSS with any words is read as it was written.
    #[test]
    fn written_rss_is_parsed_again(items in proptest::collection::vec(("[a-zé<>&\"' ]{1,20}", 0i64..2_000_000_000), 0..8)) {
        let mut text = String::from("<rss version='2.0'><channel>");
        for (n, (title, time)) in items.iter().enumerate() {
            let date = Timestamp::from_secs(*time).to_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            let title = crate::text::markup::escaped(title);
            text += &format!("<item><title>{title}</title><link>http://e.org/{n}</link><pubDate>{date}</pubDate></item>");
        }
        let feed = parse(text.as_bytes(), None, "").unwrap();
        prop_assert_eq!(feed.items.len(), items.len());
        for (n, (item, (title, time))) in feed.items.iter().zip(&items).enumerate() {
            prop_assert_eq!(&item.title.value, title.trim());
            prop_assert_eq!(item.time(), Some(Timestamp::from_secs(*time)));
            prop_assert_eq!(item.link.clone(), Some(format!("http://e.org/{n}")));
        }
    }
}

/// The `<div>` around XHTML does not belong to the text in Atom 1.0; in Atom 0.3 it does.
#[test]
fn the_div_of_atom() {
    let content = |namespace: &str, kind: &str, inside: &str| {
        let text = format!(
            "<feed xmlns='{namespace}'><entry><content {kind}><div xmlns='http://www.w3.org/1999/xhtml'>{inside}</div></content></entry></feed>"
        );
        read(&text).items[0].contents[0].value.clone()
    };
    let (new, old) = ("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#");
    assert_eq!(content(new, "type='xhtml'", "<b>x</b>"), "<b>x</b>");
    assert_eq!(content(new, "type='application/xhtml+xml'", "<b>x</b>"), "<b>x</b>");
    assert_eq!(content(old, "type='application/xhtml+xml' mode='xml'", "<b>x</b>"), "<div><b>x</b></div>");
    assert_eq!(
        content(new, "type='html'", "A &lt;b&gt;x&lt;/b&gt;"),
        "A <b>x</b>",
        "escaped HTML in it is HTML"
    );
}
