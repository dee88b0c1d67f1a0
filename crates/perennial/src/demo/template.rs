//! A page, its version and a request number -> the HTML that a visitor gets.
//!
//! The version decides the content. The request number decides the noise (advertisement, counter, stamp, session id),
//! which differs at every request.

use std::fmt::Write;

use perennial_core::rng::Rng;
use perennial_core::time::Timestamp;

use super::prose::{headline, paragraph, sentence};
use super::web::{Amount, LivingKind, LivingPage, LivingWeb};

const N_ITEMS: usize = 12;
const N_PARAGRAPHS: usize = 9;
const N_BANNERS: u64 = 9;

/// The name of the meta element with the version number. Readers do not see it, and the measurement reads it from the
/// archive.
pub const VERSION_META: &str = "living-version";

/// A page at one instant, for one request.
pub(super) struct ServedPage<'a> {
    pub web: &'a LivingWeb,
    pub page: usize,
    /// Number of changes to the page so far.
    pub version: usize,
    /// Number that decides the noise.
    pub request: u64,
    /// The time that the page prints.
    pub now: Timestamp,
}

impl<'a> ServedPage<'a> {
    /// Returns a page as served at an instant. `request` may be any number; the visitor number on the page remains
    /// small.
    pub(super) fn at(web: &'a LivingWeb, page: usize, request: u64, now: Timestamp) -> ServedPage<'a> {
        ServedPage { web, page, version: web.pages[page].version_at(now), request: request % 800_000, now }
    }
}

/// Renders the pages of a site that serves them as JSON.
pub(super) const DRAW_SCRIPT: &str = "\
fetch('/api' + location.pathname).then(response => response.json()).then(page => {
  const version = document.createElement('meta');
  version.name = page.version_name;
  version.content = page.version;
  document.head.prepend(version);
  document.body.innerHTML = page.html;
});
";

/// The HTML of a page at the current instant.
pub(super) fn html(served: &ServedPage<'_>) -> String {
    let (page, version) = (&served.web.pages[served.page], served.version);
    let mut out = String::with_capacity(12_000);
    head(&mut out, served, page, Some(version));
    body(&mut out, served);
    out.push_str("</body></html>");
    out
}

/// The HTML of a page that a script renders. It is the same for every version.
pub(super) fn shell(served: &ServedPage<'_>) -> String {
    let mut out = String::with_capacity(1_000);
    head(&mut out, served, &served.web.pages[served.page], None);
    out.push_str("<p>Loading</p><script src=\"/draw.js\"></script></body></html>");
    out
}

/// The data that the page's script requests.
pub(super) fn json(served: &ServedPage<'_>) -> String {
    let mut html = String::with_capacity(12_000);
    body(&mut html, served);
    serde_json::json!({"version_name": VERSION_META, "version": served.version, "html": html}).to_string()
}

/// The contents of the body.
fn body(out: &mut String, served: &ServedPage<'_>) {
    let (page, version) = (&served.web.pages[served.page], served.version);
    header(out, served, page);
    out.push_str("<main>");
    match page.kind {
        LivingKind::List => list(out, served, version),
        LivingKind::Text | LivingKind::Still => text(out, served, version),
        LivingKind::Product => product(out, served, version),
    }
    out.push_str("</main>");
    sidebar(out, served, page);
    footer(out, served, page);
}

fn head(out: &mut String, served: &ServedPage<'_>, page: &LivingPage, version: Option<usize>) {
    let site = &served.web.sites[page.site];
    let session = Rng::from_parts(&[served.request, 11]).bits();
    let _ = write!(
        out,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} - {}</title>\
         <meta name=\"csrf-token\" content=\"{session:016x}\"><link rel=\"stylesheet\" href=\"/style.css\">",
        page.title, site.title
    );
    if let Some(version) = version {
        let _ = write!(out, "<meta name=\"{VERSION_META}\" content=\"{version}\">");
    }
    if page.path == "/" {
        out.push_str("<link rel=\"alternate\" type=\"application/rss+xml\" href=\"/feed.xml\">");
    }
    out.push_str("</head><body>");
}

fn header(out: &mut String, served: &ServedPage<'_>, page: &LivingPage) {
    let site = &served.web.sites[page.site];
    let _ = write!(
        out,
        "<header><img src=\"/logo.gif\" alt=\"{0}\" width=\"120\" height=\"60\"><p class=\"name\">{0}</p></header><nav><ul>",
        site.title
    );
    out.push_str("<li><a href=\"/\">Home</a></li>");
    let lists = served.web.pages.iter().filter(|other| other.site == page.site && other.path.ends_with('/'));
    for other in lists.filter(|other| other.kind == LivingKind::List && other.path != "/") {
        let _ = write!(out, "<li><a href=\"{}\">{}</a></li>", other.path, other.path.trim_matches('/'));
    }
    let banner = Rng::from_parts(&[served.request, 12]).bits() % N_BANNERS;
    let campaign = Rng::from_parts(&[served.request, 13]).bits() % 100_000;
    let _ = write!(
        out,
        "</ul></nav><div class=\"ad\"><a href=\"http://ads.localhost/click?campaign={campaign}\">\
         <img src=\"/ads/banner-{banner}.gif\" alt=\"Advertisement {banner}\" width=\"728\" height=\"90\"></a></div>"
    );
}

fn list(out: &mut String, served: &ServedPage<'_>, version: usize) {
    let page = &served.web.pages[served.page];
    let newest: usize =
        N_ITEMS + page.changes[..version].iter().map(|change| n_items(change.amount)).sum::<usize>();
    let _ = write!(out, "<h1>{}</h1>", page.title);
    for item in (newest - N_ITEMS..newest).rev() {
        let mut choices = Rng::from_parts(&[served.web.seed, served.page as u64, 21, item as u64]);
        let target = &served.web.pages[page.links[item % page.links.len().max(1)]];
        let _ = write!(
            out,
            "<article><h2><a href=\"{}\">{}</a></h2><p>{}</p></article>",
            target.path,
            headline(&mut choices),
            sentence(&mut choices)
        );
    }
}

fn n_items(amount: Amount) -> usize {
    match amount {
        Amount::Small => 1,
        Amount::Medium => 2,
        Amount::Large => 5,
    }
}

/// How often each paragraph and each first sentence was edited after `version` changes.
fn revisions(served: &ServedPage<'_>, version: usize) -> ([u64; N_PARAGRAPHS], [u64; N_PARAGRAPHS]) {
    let page = &served.web.pages[served.page];
    let (mut paragraphs, mut sentences) = ([0; N_PARAGRAPHS], [0; N_PARAGRAPHS]);
    for (number, change) in page.changes[..version].iter().enumerate() {
        let first =
            Rng::from_parts(&[served.web.seed, served.page as u64, 31, number as u64]).below(N_PARAGRAPHS);
        match change.amount {
            Amount::Small => sentences[first] += 1,
            Amount::Medium => paragraphs[first] += 1,
            Amount::Large => (0..3).for_each(|step| paragraphs[(first + step) % N_PARAGRAPHS] += 1),
        }
    }
    (paragraphs, sentences)
}

fn text(out: &mut String, served: &ServedPage<'_>, version: usize) {
    let page = &served.web.pages[served.page];
    let (paragraphs, sentences) = revisions(served, version);
    let _ = write!(out, "<article><h1>{}</h1>", page.title);
    for number in 0..N_PARAGRAPHS {
        let key = [served.web.seed, served.page as u64, 41, number as u64, paragraphs[number]];
        let lead = sentence(&mut Rng::from_parts(&[&key[..], &[sentences[number]]].concat()));
        if number % 3 == 2 {
            let _ = write!(out, "<h2>{}</h2>", headline(&mut Rng::from_parts(&[&key[..4], &[99]].concat())));
        }
        let _ = write!(out, "<p>{lead} {}</p>", paragraph(&mut Rng::from_parts(&key)));
    }
    out.push_str("</article>");
}

fn product(out: &mut String, served: &ServedPage<'_>, version: usize) {
    let page = &served.web.pages[served.page];
    let (paragraphs, sentences) = revisions(served, version);
    let edits: u64 = paragraphs.iter().chain(&sentences).sum();
    let cents = Rng::from_parts(&[served.web.seed, served.page as u64, 51, edits]).bits() % 9_000 + 500;
    let stock = Rng::from_parts(&[served.request, 52]).below(40) + 3;
    let _ = write!(
        out,
        "<article><h1>{}</h1><img src=\"/photo.gif\" alt=\"Photograph\" width=\"320\" height=\"240\">\
         <p class=\"price\">Price: {}.{:02} crowns, delivery in three days</p><p class=\"stock\">{stock} in stock</p>",
        page.title,
        cents / 100,
        cents % 100
    );
    for number in 0..3 {
        let revision: u64 = (0..3).map(|part| paragraphs[number * 3 + part]).sum();
        let key = [served.web.seed, served.page as u64, 53, number as u64, revision];
        let _ = write!(out, "<p>{}</p>", paragraph(&mut Rng::from_parts(&key)));
    }
    out.push_str("</article>");
}

fn sidebar(out: &mut String, served: &ServedPage<'_>, page: &LivingPage) {
    out.push_str("<aside><h3>More</h3><ul>");
    for &link in &page.links {
        let target = &served.web.pages[link];
        let _ = write!(out, "<li><a href=\"{}\">{}</a></li>", target.path, target.title);
    }
    out.push_str("</ul></aside>");
}

fn footer(out: &mut String, served: &ServedPage<'_>, page: &LivingPage) {
    let site = &served.web.sites[page.site];
    let _ = write!(
        out,
        "<footer><p>{} - all rights reserved</p><p>You are visitor number {}</p><p>Page made on {}</p></footer>",
        site.title,
        120_000 + served.request,
        served.now
    );
}

/// Number of items in a site's feed.
const N_FEED_ITEMS: usize = 20;

/// An RSS feed of a site: the latest changes of its front page and articles. It does not announce prices and sections.
pub(super) fn feed(web: &LivingWeb, site: usize, now: Timestamp) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><rss version=\"2.0\"><channel><title>{0}</title><link>/</link>\
         <description>News of {0}</description>",
        web.sites[site].title
    );
    for (at, index, number) in announced(web, site, now).into_iter().take(N_FEED_ITEMS) {
        let page = &web.pages[index];
        let mut choices = Rng::from_parts(&[web.seed, index as u64, 61, number as u64]);
        let _ = write!(
            out,
            "<item><title>{}</title><link>{}</link><guid isPermaLink=\"false\">{index}-{number}</guid><pubDate>{}</pubDate></item>",
            headline(&mut choices),
            page.path,
            at.to_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT")
        );
    }
    out.push_str("</channel></rss>");
    out
}

/// All changes that a site's feed announced until `now`, the latest first. Each has its time, its page and its number
/// on the page.
pub(super) fn announced(web: &LivingWeb, site: usize, now: Timestamp) -> Vec<(Timestamp, usize, usize)> {
    let pages = web.pages.iter().enumerate().filter(|(_, page)| page.site == site);
    let newsworthy = pages.filter(|(_, page)| page.path == "/" || page.kind == LivingKind::Text);
    let mut changes: Vec<(Timestamp, usize, usize)> = newsworthy
        .flat_map(|(index, page)| {
            let changes = page.changes[..page.version_at(now)].iter().enumerate();
            changes.map(move |(number, change)| (change.at, index, number))
        })
        .collect();
    changes.sort_unstable_by(|one, other| other.cmp(one));
    changes
}

/// The style sheet of every site.
pub const STYLE: &str = "body{margin:0;font-family:sans-serif;font-size:16px;color:#222;background:#fff}\
header{background:#234;color:#fff;padding:16px 24px;height:60px}header .name{display:inline;font-size:28px}\
nav{background:#eee;padding:8px 24px}nav ul{margin:0;padding:0}nav li{display:inline;margin-right:16px}\
.ad{width:728px;margin:16px auto;background:#fffbe6}main{float:left;width:820px;padding:8px 24px}\
main h1{font-size:30px}main h2{font-size:20px;margin:18px 0 4px}main p{line-height:1.5;margin:6px 0 14px}\
aside{float:left;width:320px;margin-left:40px;background:#f6f6f2;padding:8px 16px;font-size:14px}\
footer{clear:both;background:#234;color:#cde;padding:16px 24px;font-size:13px}";

#[cfg(test)]
mod tests {
    use super::*;

    fn page_html(web: &LivingWeb, page: usize, request: u64, now: Timestamp) -> String {
        html(&ServedPage::at(web, page, request, now))
    }

    #[test]
    fn noise_differs_by_request_and_truth_by_time() {
        let web = LivingWeb::new(3, Timestamp::parse("2026-03-02").unwrap(), 14);
        let main =
            |html: &str| html.split("<main>").nth(1).unwrap().split("</main>").next().unwrap().to_owned();
        for (index, page) in web.pages.iter().enumerate().filter(|(_, page)| page.kind != LivingKind::Product)
        {
            let before = page_html(&web, index, 1, web.start);
            let again = page_html(&web, index, 2, web.start);
            assert_ne!(before, again, "noise must differ on {}", page.path);
            assert_eq!(
                main(&before),
                main(&again),
                "the request must not touch the content of {}",
                page.path
            );
            for change in page.changes.iter().take(5) {
                let just_before = Timestamp::from_millis(change.at.as_millis() - 1);
                let earlier = page_html(&web, index, 1, just_before);
                let later = page_html(&web, index, 1, change.at);
                assert_ne!(main(&earlier), main(&later), "a change must be seen on {}", page.path);
            }
        }
    }
}
