//! `/changes.atom?...`: the latest changes that match a query, as an Atom feed.

use std::fmt::Write as _;

use hyper::http::{HeaderValue, Response, header};
use perennial_core::memento::replay_url::QueryParameters;
use perennial_core::text::markup::escaped;
use perennial_core::time::Timestamp;
use url::Url;

use super::problem::Problem;
use super::request::Request;
use crate::body::Body;
use perennial_archive::store::ChangeOrder;
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::AdFilters;
use perennial_engine::changes::{CandidateChange, ChangeFinder, ChangeQuery, WorkLimits};
use perennial_engine::notify::{Notice, NoticeWriter};

/// Entries per feed, and limits of the work for them.
const BOUNDS: WorkLimits = WorkLimits { max_found: 50, max_read: 400, max_rows: 20_000 };

/// The feed of a query such as `?site=example.org&least=0.2&kind=edited&appears=ferry`.
pub fn changes(request: &Request<'_>, query: &QueryParameters) -> Result<Response<Body>, Problem> {
    let change_query = ChangeQuery::read(|name| query.get(name), now()).map_err(Problem::bad_request)?;
    // A feed is sorted by time, whatever the order of the page from which the URL was copied.
    let change_query = ChangeQuery { order: ChangeOrder::Latest, ..change_query };
    let read = |snapshot: &Snapshot| latest(request, snapshot, &change_query);
    let notices = request.served.pool.with(read).and_then(|notices| notices);
    let notices = notices.map_err(|error| Problem::internal(&error))?;
    let target = request.parts.uri.path_and_query().map_or("/changes.atom", |target| target.as_str());
    let feed = atom_feed(&request.served.name, &request.origins().main, target, &notices);
    let mut response = Response::new(Body::from(feed));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/atom+xml; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn latest(
    request: &Request<'_>,
    snapshot: &Snapshot,
    change_query: &ChangeQuery,
) -> anyhow::Result<Vec<Notice>> {
    let filters = AdFilters::built_in();
    let (archive, store) = (snapshot.archive(), snapshot.store());
    let found = ChangeFinder::new(archive, store, &filters, change_query)?.find(None, BOUNDS)?;
    let mut reporter = NoticeWriter::new(archive, store, &filters);
    let link = Url::parse(&format!("{}{}/", request.origins().main, request.served.base)).ok();
    let mut notices = Vec::new();
    for change in found.changes {
        if let Some(row) = store.change_at(change.page, change.after)? {
            notices.push(reporter.notice(
                &mut CandidateChange::new(&row),
                "",
                &change_query.condition,
                link.as_ref(),
            )?);
        }
    }
    Ok(notices)
}

fn atom_feed(name: &str, origin: &str, target: &str, notices: &[Notice]) -> String {
    let url = format!("{origin}{target}");
    let updated =
        notices.first().map_or_else(|| Timestamp::EPOCH.to_rfc3339(), |notice| notice.after.clone());
    let mut feed = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\
         <title>{}: changes</title><id>{url}</id><updated>{updated}</updated>\
         <link rel=\"self\" href=\"{url}\"/><author><name>Perennial</name></author>\n",
        escaped(name),
        url = escaped(&url),
    );
    for notice in notices {
        let link = notice.link.as_ref().unwrap_or(&notice.url);
        // Writing to a string cannot fail.
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
