//! `/changes.atom?...`: the latest changes as an Atom feed, by the conditions of `[[notify]]`.

use std::collections::VecDeque;
use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use perennial_core::markup::escaped;
use perennial_core::memento::address::Query;
use perennial_core::notice::Condition;
use perennial_core::time::Timestamp;
use url::Url;

use super::problem::Problem;
use super::replay::Asking;
use crate::analyse::Filters;
use crate::archive::Snapshot;
use crate::notify::{Notice, Teller};
use crate::settings::notify::parse_place;
use crate::settings::site::parse_selector;
use crate::store::{ChangeFilter, ChangeRow};

/// Entries of a feed, and changes that are looked at for them.
const MAX_ENTRIES: usize = 50;
const MAX_CHANGES: usize = 400;

/// The feed of a question such as `?place=example.org&least=0.2&kind=edited&appears=ferry`.
pub fn changes(asking: &Asking<'_>, query: &Query) -> Result<Response<Body>, Problem> {
    let condition = condition_of(query).map_err(Problem::bad_request)?;
    let read = |snapshot: &Snapshot| latest(asking, snapshot, &condition);
    let told = asking.served.pool.with(read).and_then(|told| told);
    let told = told.map_err(|error| Problem::internal(&error))?;
    let target = asking.parts.uri.path_and_query().map_or("/changes.atom", |target| target.as_str());
    let feed = feed_of(&asking.served.name, &asking.origins().main, target, &told);
    let mut response = Response::new(Body::from(feed));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/atom+xml; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// The keys of `[[notify]]`, with `site` and `page` for its place and `least` for its least importance.
fn condition_of(query: &Query) -> Result<Condition, String> {
    let given = |key: &str| query.get(key).map(str::trim).filter(|text| !text.is_empty());
    let wrong = |key: &str, cure: String| format!("{key}: {cure}.");
    let mut condition = Condition::default();
    if let Some(place) = given("page").or(given("site")).or(given("place")) {
        condition.place = parse_place(place).map_err(|cure| wrong("place", cure))?;
    }
    if let Some(least) = given("least") {
        let least = least.parse().ok().filter(|least| (0.0..=1.0).contains(least));
        condition.least_importance =
            least.ok_or_else(|| wrong("least", "write a number from 0 to 1".into()))?;
    }
    if let Some(selector) = given("selector") {
        condition.selector = Some(parse_selector(selector).map_err(|cure| wrong("selector", cure))?);
    }
    if let Some(kinds) = given("kind") {
        let kinds: Result<_, String> = kinds.split(',').map(str::parse).collect();
        condition.kinds = kinds.map_err(|cure| wrong("kind", cure))?;
    }
    if let Some(words) = given("appears") {
        condition.appears = Some(words.parse().map_err(|cure| wrong("appears", cure))?);
    }
    if let Some(words) = given("vanishes") {
        condition.vanishes = Some(words.parse().map_err(|cure| wrong("vanishes", cure))?);
    }
    Ok(condition)
}

/// The latest changes for which a condition holds, the latest first.
fn latest(asking: &Asking<'_>, snapshot: &Snapshot, condition: &Condition) -> anyhow::Result<Vec<Notice>> {
    use perennial_core::notice::Place;
    let (host, url) = match &condition.place {
        Place::Anywhere => (None, None),
        Place::Site(host) => (Some(host.as_str()), None),
        Place::Page(url) => (None, Some(url.as_str())),
    };
    let least = condition.least_importance;
    let filter = ChangeFilter { host, url, min_importance: least, ..ChangeFilter::default() };
    let mut rows: VecDeque<ChangeRow> = VecDeque::new();
    let store = snapshot.store();
    store.each_change(&filter, |row| {
        if Teller::may_hold(&row, condition) {
            if rows.len() == MAX_CHANGES {
                rows.pop_front();
            }
            rows.push_back(row);
        }
        Ok(())
    })?;
    let filters = Filters::built_in();
    let mut teller = Teller::new(snapshot.archive(), store, &filters);
    let link = Url::parse(&format!("{}{}/", asking.origins().main, asking.served.base)).ok();
    let mut told = Vec::new();
    for row in rows.iter().rev() {
        if told.len() == MAX_ENTRIES {
            break;
        }
        told.extend(teller.tell(row, "", condition, link.as_ref())?);
    }
    Ok(told)
}

fn feed_of(name: &str, origin: &str, target: &str, told: &[Notice]) -> String {
    let address = format!("{origin}{target}");
    let updated = told.first().map_or_else(|| Timestamp::EPOCH.to_rfc3339(), |notice| notice.after.clone());
    let mut feed = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\
         <title>{}: changes</title><id>{address}</id><updated>{updated}</updated>\
         <link rel=\"self\" href=\"{address}\"/><author><name>Perennial</name></author>\n",
        escaped(name),
        address = escaped(&address),
    );
    for notice in told {
        let link = notice.link.as_ref().unwrap_or(&notice.url);
        // Writing to a text cannot fail.
        let _ = writeln!(
            feed,
            "<entry><id>urn:perennial:{}</id><title>{}</title><updated>{}</updated><link href=\"{}\"/>\
             <category term=\"{}\"/><content type=\"text\">{}</content></entry>",
            notice.id,
            escaped(&notice.headline()),
            notice.after,
            escaped(link),
            escaped(&notice.kind),
            escaped(&notice.text())
        );
    }
    feed.push_str("</feed>\n");
    feed
}
