//! Files for other tools: raw WARC records by digest, WACZ of a page or a site.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::{HeaderMap, HeaderValue, Response, header};
use perennial_core::memento::replay_url::QueryParameters;

use super::problem::Problem;
use super::request::Request;
use super::{memento, range};
use crate::body::Body;
use perennial_archive::Snapshot;
use perennial_archive::export::{ExportOptions, RecordFormat, export};
use perennial_archive::parts::with_subresources;
use perennial_archive::store::CaptureFilter;

/// WACZ files that are cached, because a player reads one file in many requests.
const MAX_KEPT: usize = 8;

/// Captures per WACZ file; more would take longer than a client waits.
const MAX_CAPTURES: u64 = 50_000;

/// Recently requested WACZ files, which are unnamed temporary files.
#[derive(Debug, Default)]
pub struct WaczCache(Mutex<Vec<Wacz>>);

#[derive(Clone, Debug)]
struct Wacz {
    /// The archive's base, the query, the archive's last capture.
    of: (String, String, i64),
    file: Arc<File>,
    n_bytes: u64,
}

/// `/record/<digest>`: the record with a payload, as stored in its WARC file.
pub fn record(request: &Request<'_>, digest: &str) -> Result<Response<Body>, Problem> {
    let digest = if digest.contains(':') { digest.to_string() } else { format!("sha1:{digest}") };
    let found = request.served.pool.with(|snapshot| snapshot.store().origin_by_digest("", &digest));
    let found = found.and_then(|found| found).map_err(|error| Problem::internal(&error))?;
    let found = found.ok_or_else(|| Problem::no_such_page(&format!("A record with the digest {digest}")))?;
    let archive = request.served.pool.archive();
    // The record is read before it is sent, so damage is reported.
    archive.open_record(&found).map_err(|error| Problem::damaged(&error))?;
    let file = archive.open_warc(&found.file).map_err(|error| Problem::damaged(&error))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/warc"));
    let name = format!("attachment; filename=\"record{}\"", download_extension(&found.file));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    memento::allow_all(&mut headers);
    let open = |from: u64| range::stretch(file, found.offset + from..found.offset + found.length);
    range::respond(request.field("range"), found.length, headers, open)
        .map_err(|error| Problem::damaged(&error.into()))
}

fn download_extension(name: &str) -> &'static str {
    let known = [".warc.gz", ".warc.zst", ".arc.gz", ".arc"];
    known.into_iter().find(|extension| name.ends_with(extension)).unwrap_or(".warc")
}

/// `/wacz/<name>.wacz?url=...` or `?site=...`: a page or a site as a file for ReplayWeb.page.
pub fn wacz(request: &Request<'_>, query: &QueryParameters) -> Result<Response<Body>, Problem> {
    let filter = CaptureFilter {
        page: query.get("url").map(str::to_string),
        site: query.get("site").map(str::to_string),
        ..CaptureFilter::default()
    };
    if filter.page.is_none() && filter.site.is_none() {
        return Err(Problem::bad_request("Add ?url=<page> or ?site=<host>"));
    }
    let made = request
        .served
        .pool
        .with(|snapshot| request.server.made().get(&request.served.base, snapshot, &filter));
    let wacz = made.map_err(|error| Problem::internal(&error))??;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/wacz"));
    memento::allow_all(&mut headers);
    let open =
        |from: u64| Ok(Box::new(range::At::new(wacz.file.clone(), from)) as Box<dyn std::io::Read + Send>);
    range::respond(request.field("range"), wacz.n_bytes, headers, open)
        .map_err(|error| Problem::damaged(&error.into()))
}

impl WaczCache {
    /// The cached file, or a new one; only one is made at a time.
    fn get(&self, base: &str, snapshot: &Snapshot, filter: &CaptureFilter) -> Result<Wacz, Problem> {
        let internal = |error: anyhow::Error| Problem::internal(&error);
        let last = snapshot.store().last_capture_number().map_err(internal)?;
        let of = (base.to_string(), format!("{filter:?}"), last);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.iter().find(|wacz| wacz.of == of) {
            return Ok(found.clone());
        }
        let filter = with_subresources(snapshot, filter).map_err(internal)?;
        check_size(snapshot, &filter)?;
        let wacz = make(of, snapshot, &filter).map_err(internal)?;
        kept.retain(|other| (&other.of.0, &other.of.1) != (&wacz.of.0, &wacz.of.1));
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push(wacz.clone());
        Ok(wacz)
    }
}

fn check_size(snapshot: &Snapshot, filter: &CaptureFilter) -> Result<(), Problem> {
    let store = snapshot.store();
    let n_of = |url: &String| store.page(url).map(|page| page.map_or(0, |page| page.n_captures));
    let n_captures = match (&filter.page, &filter.site) {
        (Some(page), _) => match n_of(page) {
            Ok(n) if n > 0 => {
                filter.parts.iter().map(n_of).sum::<Result<u64, _>>().map(|n_parts| n + n_parts)
            }
            none => none,
        },
        (None, site) => store.site_capture_count(site.as_deref().unwrap_or_default()),
    };
    match n_captures.map_err(|error| Problem::internal(&error))? {
        0 => {
            Err(Problem::not_archived(filter.page.as_deref().or(filter.site.as_deref()).unwrap_or_default()))
        }
        n if n > MAX_CAPTURES => Err(Problem::bad_request(format!(
            "{n} captures are more than the {MAX_CAPTURES} that the server exports; use `perennial export --format wacz`."
        ))),
        _ => Ok(()),
    }
}

fn make(of: (String, String, i64), snapshot: &Snapshot, filter: &CaptureFilter) -> anyhow::Result<Wacz> {
    let mut file = tempfile::tempfile()?;
    let options = ExportOptions { format: RecordFormat::Wacz, with_trees: false, key: None };
    let report = export(snapshot, &options, filter, perennial_archive::now(), &mut file, &|_| ())?;
    Ok(Wacz { of, file: Arc::new(file), n_bytes: report.bytes })
}
