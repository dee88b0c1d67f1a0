//! A request -> whoever answers it. Paths are read here and not decoded: an archived address stands in them as it is.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use perennial_core::memento::address::{Query, unescape};
use perennial_core::memento::{ReplayAddress, When};
use tokio::sync::Semaphore;

use super::cdx::{self, Dialect};
use super::face::Form;
use super::problem::Problem;
use super::replay::{Asking, replay};
use super::{Origin, Server, api, atom, banner, face, files, guard, memento, operate, pages, rewrite};
use crate::html_face::{Operating, Place};

/// The longest path with its query that is read.
const MAX_TARGET_BYTES: usize = 16 << 10;

/// How long the body of a request that acts may take.
const BODY_TIME: Duration = Duration::from_secs(15);

/// The routes of one origin.
pub fn router(server: Arc<Server>, origin: Origin) -> Router {
    Router::new().fallback(answer).with_state((server, origin))
}

async fn answer(State((server, origin)): State<(Arc<Server>, Origin)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let wants_json = wants_json(&parts);
    let reader = parts.headers.get(header::ORIGIN).cloned();
    server.count();
    let asked = server.clone();
    let body = match read_body(&parts, origin, body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(wants_json),
    };
    let base =
        archive_of(&server, parts.uri.path()).map(|(served, _)| served.base.clone()).unwrap_or_default();
    // Nobody closes these doors.
    let _place = server.doors().of(parts.uri.path()).acquire().await;
    // The archive is asked and its files are read on threads that may wait for the disk.
    let answered = tokio::task::spawn_blocking(move || match body {
        Some(body) => post(&asked, &parts, &body),
        None => route(&asked, origin, &parts),
    })
    .await;
    let result = answered.unwrap_or_else(|error| Err(Problem::internal(&error.into())));
    let mut response = result.unwrap_or_else(|problem| {
        server.note(problem.kind);
        match origin {
            // Archived content stands in frames.
            Origin::Main if !wants_json => problem.into_page(&base),
            _ => problem.into_response(wants_json),
        }
    });
    name_readers(&server, reader, response.headers_mut());
    response
}

/// The body of a request that may act; `None` where it does not.
async fn read_body(parts: &Parts, origin: Origin, body: Body) -> Result<Option<Vec<u8>>, Problem> {
    if parts.method != Method::POST || origin != Origin::Main || !operate::takes(parts.uri.path()) {
        return Ok(None);
    }
    let read = axum::body::to_bytes(body, operate::MAX_BODY_BYTES);
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Ok(bytes)) => Ok(Some(bytes.to_vec())),
        _ => Err(Problem::bad_request("The body is too long, or did not come in time.")),
    }
}

/// Answers a POST on the main origin, or says what is wrong with it. May block.
pub fn post(server: &Server, parts: &Parts, body: &[u8]) -> Result<Response<Body>, Problem> {
    match parts.uri.path() {
        // Who has no right yet asks for one.
        "/login" => server.guard().check_host(parts)?,
        _ => let_in(server, parts)?,
    }
    let (served, path) = archive_of(server, parts.uri.path())?;
    operate::post(server, served, path, parts, body)
}

/// Whether a request is answered at all. An operator may read, too.
fn let_in(server: &Server, parts: &Parts) -> Result<(), Problem> {
    let checked = server.guard().check(parts);
    match (checked, server.operator()) {
        (Err(problem), Some(operator)) if problem.kind == "token" => {
            let is_operator = operator.form_of(parts).is_some() || operator.has_token(parts)?;
            if is_operator { Ok(()) } else { Err(problem) }
        }
        (checked, _) => checked,
    }
}

/// What anybody may fetch, any website's script may read. What only this machine may fetch, no website may: its reader's browser stands
/// on this machine. So scripts of other pages read where the archive is public, needs a token, or their origin was allowed.
fn name_readers(server: &Server, reader: Option<HeaderValue>, headers: &mut HeaderMap) {
    let options = server.options();
    if options.public || options.token.is_some() {
        return;
    }
    if headers.remove(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_none() {
        return;
    }
    // In one field: some clients read no second one.
    let varies = match headers.get(header::VARY).and_then(|varies| varies.to_str().ok()) {
        Some(varies) => format!("{varies}, origin"),
        None => "origin".to_owned(),
    };
    if let Ok(varies) = HeaderValue::from_str(&varies) {
        headers.insert(header::VARY, varies);
    }
    let is_allowed = |reader: &HeaderValue| {
        let allowed = options.allow_origins.iter().chain([&server.origins().main]);
        allowed.map(String::as_bytes).any(|allowed| allowed == reader.as_bytes())
    };
    if let Some(reader) = reader.filter(is_allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, reader);
    }
}

/// How many requests of each kind are worked on at a time; the others wait without a thread. More than a few for each core would only
/// wait for each other, and those that take long must leave room for those that do not.
#[derive(Debug)]
pub struct Doors {
    replay: Semaphore,
    scan: Semaphore,
    build: Semaphore,
}

impl Default for Doors {
    fn default() -> Doors {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Doors {
            replay: Semaphore::new((2 * n_cores).clamp(4, 16)),
            scan: Semaphore::new(n_cores.clamp(2, 8)),
            build: Semaphore::new(1),
        }
    }
}

impl Doors {
    fn of(&self, path: &str) -> &Semaphore {
        let has = |part: &str| path.contains(part);
        match path {
            _ if has("/wacz/") => &self.build,
            _ if has("/cdx")
                || has("/web/timemap/")
                || has("/web/*/")
                || has("/search")
                || has("/changes")
                || has("/web/diff/") =>
            {
                &self.scan
            }
            // An archived address may have such a part too.
            _ if !has("/web/")
                && [
                    "/page",
                    "/pin",
                    "/site",
                    "/schedule",
                    "/terms",
                    "/notices",
                    "/object",
                    "/api/",
                    "/metrics",
                ]
                .iter()
                .any(|part| has(part)) =>
            {
                &self.scan
            }
            _ => &self.replay,
        }
    }
}

/// Programs get JSON: whoever asks for it, and whoever asks an API.
fn wants_json(parts: &Parts) -> bool {
    let accept = parts.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let path = parts.uri.path();
    let is_api = ["/cdx", "/wayback/", "/record/", "/wacz/", "/web/timemap/", "/status"]
        .iter()
        .any(|api| path.contains(api))
        || path.contains("/api/") && !path.contains("/web/");
    accept.contains("json") || is_api && !accept.contains("text/html")
}

/// Answers a request, or says what is wrong with it. May block.
pub fn route(server: &Server, origin: Origin, parts: &Parts) -> Result<Response<Body>, Problem> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    if target.len() > MAX_TARGET_BYTES {
        return Err(Problem::bad_request("The address is too long."));
    }
    if !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Err(Problem::method());
    }
    if let Some(query) = target.strip_prefix("/login?token=") {
        return log_in(server, &Query::parse(&format!("token={query}")));
    }
    let form = server.operator().and_then(|operator| operator.form_of(parts));
    let operating = match (&form, server.operator()) {
        (Some(form), _) => Operating::On(form),
        (None, Some(_)) => Operating::LoggedOut,
        (None, None) => Operating::Off,
    };
    if let (Origin::Main, "/login") = (origin, parts.uri.path()) {
        server.guard().check_host(parts)?;
        return login(server, &Query::parse(parts.uri.query().unwrap_or_default()), operating);
    }
    let_in(server, parts)?;
    if parts.method == Method::OPTIONS {
        return Ok(preflight());
    }
    if let (Origin::Main, Some(answer)) = (origin, api::of_server(server, parts.uri.path())) {
        return answer;
    }
    let (served, path) = archive_of(server, target)?;
    let asking = Asking { server, served, origin, parts, operating };
    if let Some(rest) = target.strip_prefix(rewrite::own::ROOT) {
        return own(&asking, rest);
    }
    if asking.field("service-worker").is_some() {
        return Err(Problem::bad_request("Archived service workers are not registered."));
    }
    if let Some(rest) = path.strip_prefix("/web/") {
        return web(&asking, rest);
    }
    match origin {
        Origin::Main => named(&asking, path),
        Origin::Replay => asking.stray(target).ok_or_else(|| Problem::no_such_page(path)),
    }
}

/// What replayed pages and the banner over them ask of us.
fn own(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let found = match asking.origin {
        Origin::Replay => rewrite::own::file(rest, &asking.origins().main),
        Origin::Main => banner::answer(asking, rest)?,
    };
    found.ok_or_else(|| Problem::no_such_page(rest))
}

/// What stands behind `/web/`.
fn web(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    if asking.origin == Origin::Main {
        let cdx = rest.strip_prefix("timemap/cdx").filter(|rest| !rest.starts_with('j'));
        if let Some(rest) = cdx {
            return cdx_at(asking, Dialect::Wayback, rest);
        }
        if let Some(rest) = rest.strip_prefix("timemap/") {
            return memento::timemap(asking, rest);
        }
        if let Some(rest) = rest.strip_prefix("diff/") {
            return face::compare(asking, rest);
        }
        let changes = rest.strip_prefix("changes").filter(|rest| rest.starts_with(['/', '?']));
        if let Some(rest) = changes {
            return face::changes_of(asking, rest);
        }
        if let Some(response) =
            rest.strip_prefix('?').and_then(|query| pages::search(asking, &Query::parse(query)))
        {
            return Ok(response);
        }
    }
    let address = ReplayAddress::parse(rest)
        .ok_or_else(|| Problem::bad_request("No address: write /web/20260102030405/https://example.org/"))?;
    match address.when {
        When::Unsaid | When::At { .. } => replay(asking, &address),
        _ if asking.origin == Origin::Replay => Err(Problem::no_such_page("A calendar")),
        When::All => match address.url.split_once("*?after=") {
            Some((prefix, after)) => pages::addresses(asking, prefix, Some(&unescape(after, true))),
            None => match address.url.strip_suffix('*') {
                Some(prefix) => pages::addresses(asking, prefix, None),
                None => pages::calendar(asking, &address.url, None),
            },
        },
        When::Within { from, n_digits: 1..=4, .. } => {
            pages::calendar(asking, &address.url, from.to_digits14()[..4].parse().ok())
        }
        When::Within { from, to, .. } => pages::captures(asking, &address.url, from, to),
    }
}

/// What programs ask.
fn named(asking: &Asking<'_>, path: &str) -> Result<Response<Body>, Problem> {
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    let query = Query::parse(query);
    match name {
        "/" | "" if asking.is_unnamed() => Ok(pages::home(asking.server)),
        "/" | "" => face::home(asking, &query, Form::of(&query)),
        "/changes" => face::changes(asking, &query, Form::of(&query)),
        "/calendar" => Ok(pages::home(asking.server)),
        "/search" => face::search(asking, &query, Form::of(&query)),
        "/notices" => face::notices(asking, &query, Form::of(&query)),
        "/terms" => face::terms(asking, &query, Form::of(&query)),
        "/objects" => face::objects(asking, &query, Form::of(&query)),
        "/object" => match query.get("url").filter(|url| !url.is_empty()) {
            Some(url) => face::object(asking, url, Form::of(&query)),
            None => Err(Problem::bad_request("Write /object?url=https://example.org/article")),
        },
        "/sites" => face::sites(asking, Form::of(&query)),
        "/pin" => face::pin(asking, &query, Form::of(&query)),
        "/acts" => operate::acts(asking, Form::of(&query)),
        "/schedule" => face::schedule(asking, &query, Form::of(&query)),
        "/page" => match query.get("url").filter(|url| !url.is_empty()) {
            Some(url) => face::page(asking, url, &query, Form::of(&query)),
            None => Err(Problem::bad_request("Write /page/https://example.org/")),
        },
        "/changes.atom" => atom::changes(asking, &query),
        "/cdx" => cdx::answer(asking, Dialect::Pywb, &query, None),
        "/cdx/search/cdx" => cdx::answer(asking, Dialect::Wayback, &query, None),
        "/wayback/available" => memento::available(asking, &query),
        "/status" => Ok(asking.server.status()),
        _ => of_one(asking, path, name, &query),
    }
}

/// What is asked of one record, page or site that the path names.
fn of_one(asking: &Asking<'_>, path: &str, name: &str, query: &Query) -> Result<Response<Body>, Problem> {
    // An address of a page stands in the path as it is, with its own query.
    if let Some(url) = path.strip_prefix("/page/") {
        return face::page(asking, url, &Query::default(), Form::Html);
    }
    if let Some(host) = name.strip_prefix("/site/") {
        return face::site(asking, &unescape(host, false), query, Form::of(query));
    }
    if let Some(name) = name.strip_prefix("/api/") {
        return api::answer(asking, name, query);
    }
    match (name.strip_prefix("/record/"), name.strip_prefix("/wacz/")) {
        (Some(digest), _) => files::record(asking, digest),
        (None, Some(_)) => files::wacz(asking, query),
        (None, None) => Err(Problem::no_such_page(name)),
    }
}

/// `/web/timemap/cdx?url=...` and `/web/timemap/cdx/<url>`.
fn cdx_at(asking: &Asking<'_>, dialect: Dialect, rest: &str) -> Result<Response<Body>, Problem> {
    match rest.strip_prefix('/') {
        Some(url) => cdx::answer(asking, dialect, &Query::default(), Some(url)),
        None => cdx::answer(asking, dialect, &Query::parse(rest.trim_start_matches('?')), None),
    }
}

/// The page on which a session of an operator begins.
fn login(server: &Server, query: &Query, operating: Operating<'_>) -> Result<Response<Body>, Problem> {
    let served = server.archives().first().ok_or_else(|| Problem::no_such_page("/login"))?;
    let key = query.get("key").filter(|key| !key.is_empty());
    // Who is no operator yet may not know what is served.
    let place = Place { name: "", base: &served.base, operating };
    Ok(pages::html(crate::html_face::login(place, key)))
}

/// Sets the cookie with the token, for browsers.
fn log_in(server: &Server, query: &Query) -> Result<Response<Body>, Problem> {
    let token = query.get("token").unwrap_or_default();
    server.guard().accepts(token)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", guard::COOKIE);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Players ask before they read in ranges from another origin.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    memento::allow_all(headers);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Range, Accept-Datetime"));
    response
}

/// The archive that a path begins with, and the rest of the path; without a name it is the first one.
fn archive_of<'s, 't>(server: &'s Server, target: &'t str) -> Result<(&'s super::Served, &'t str), Problem> {
    let (name, _) = target.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
    let named = server.archives().iter().find(|served| served.name == name && !name.is_empty());
    if let Some(served) = named {
        return Ok((served, &target[1 + name.len()..]));
    }
    let first = server.archives().first();
    first.map(|served| (served, target)).ok_or_else(|| Problem::no_such_page(target))
}
