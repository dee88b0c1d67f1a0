//! The table of routes: path, cost, handler.
//!
//! Only this table interprets paths. They are compared as the client wrote them, neither decoded nor normalised: a replay path
//! contains an archived URL with its own `//`, `?` and `%`, so only the beginning of the path determines the route.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::{HeaderValue, Method, Response, StatusCode, header};
use maud::Markup;
use perennial_core::memento::replay_url::{QueryParameters, unescape};
use perennial_core::memento::{ReplayUrl, RequestedTime};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::body::Body;
use super::cdx::{self, Dialect};
use super::dashboard::layout::{AdminAccess, Place};
use super::dashboard::{
    self, admin, articles, calendar, changes, compare, home, notices, openapi, page, pin, plan, search, site,
    sites, terms,
};
use super::problem::Problem;
use super::replay::replay;
use super::request::{Request, ResponseFormat};
use super::rewrite::assets;
use super::websites::{self, Asker};
use super::{Origin, ServedArchive, Server, admin_actions, api, atom, banner, files, guard, memento, pages};

/// The longest path with its query.
const MAX_TARGET_BYTES: usize = 16 << 10;
const MAX_BODY_BYTES: usize = 64 << 10;
/// The longest code of a replayed page that is rewritten at run time.
const MAX_CODE_BYTES: usize = 4 << 20;
/// The time in which the body of a POST must arrive.
const BODY_TIME: Duration = Duration::from_secs(15);

/// May block.
type Handler = fn(&Request<'_>) -> Result<Response<Body>, Problem>;

struct Route {
    path: Path,
    cost: Cost,
    handler: Handler,
    method: Verb,
    scope: RouteScope,
    /// For programs: errors are JSON.
    is_api: bool,
    /// The handler itself checks who sent the request.
    is_open: bool,
}

enum Path {
    /// This path, with any query.
    Exact(&'static str),
    /// Every path that begins with this, with any query.
    Under(&'static str),
    /// Every target that begins with this. The rest is a URL with its own query.
    Raw(&'static str),
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    /// GET, HEAD and OPTIONS.
    Get,
    Post,
}

#[derive(Clone, Copy, PartialEq)]
enum RouteScope {
    /// One archive, whose name may precede the path.
    Archive,
    /// The server as a whole.
    Server,
}

/// How much work a request causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cost {
    /// One capture, a file, a simple page of the dashboard.
    Read,
    /// Many rows of the state or of the index.
    Scan,
    /// An export file that is assembled.
    Build,
}

use Cost::{Build, Read, Scan};

const fn exact(path: &'static str, cost: Cost, handler: Handler) -> Route {
    Route::new(Path::Exact(path), cost, handler)
}

const fn under(path: &'static str, cost: Cost, handler: Handler) -> Route {
    Route::new(Path::Under(path), cost, handler)
}

const fn raw(path: &'static str, cost: Cost, handler: Handler) -> Route {
    Route::new(Path::Raw(path), cost, handler)
}

impl Route {
    const fn new(path: Path, cost: Cost, handler: Handler) -> Route {
        Route {
            path,
            cost,
            handler,
            method: Verb::Get,
            scope: RouteScope::Archive,
            is_api: false,
            is_open: false,
        }
    }

    const fn api(self) -> Route {
        Route { is_api: true, ..self }
    }

    const fn open(self) -> Route {
        Route { is_open: true, ..self }
    }

    const fn of_server(self) -> Route {
        Route { scope: RouteScope::Server, ..self }
    }

    const fn post(self) -> Route {
        Route { method: Verb::Post, ..self }
    }

    /// The target after the path, and the query; `None` if the target belongs to another route.
    fn rest<'t>(&self, target: &'t str) -> Option<(&'t str, &'t str)> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match self.path {
            Path::Exact(known) => (path == known).then_some(("", query)),
            Path::Under(known) => path.strip_prefix(known).map(|rest| (rest, query)),
            Path::Raw(known) => target.strip_prefix(known).map(|rest| (rest, "")),
        }
    }

    fn path(&self) -> &'static str {
        match self.path {
            Path::Exact(path) | Path::Under(path) | Path::Raw(path) => path,
        }
    }
}

/// The first route that matches is taken.
static MAIN: &[Route] = &[
    exact("/", Read, home),
    exact("/api/home", Scan, home::show).api(),
    exact("/changes", Scan, |r| page(r, changes::load, changes::render)),
    exact("/api/changes", Scan, |r| json(r, changes::load)).api(),
    exact("/search", Scan, |r| page(r, search::load, search::render)),
    exact("/api/search", Scan, |r| json(r, search::load)).api(),
    exact("/page", Scan, page::show),
    raw("/page/", Scan, page::show),
    exact("/api/page", Scan, |r| json(r, page::load)).api(),
    exact("/sites", Scan, |r| page(r, sites::load, sites::render)),
    exact("/api/sites", Scan, |r| json(r, sites::load)).api(),
    under("/site/", Scan, |r| page(r, site::load, site::render)),
    exact("/api/site", Scan, |r| json(r, site::load)).api(),
    exact("/plan", Scan, |r| page(r, plan::load, plan::render)),
    exact("/api/plan", Scan, |r| json(r, plan::load)).api(),
    exact("/terms", Scan, |r| page(r, terms::load, terms::render)),
    exact("/api/terms", Scan, |r| json(r, terms::load)).api(),
    exact("/articles", Scan, |r| page(r, articles::load_list, articles::render_list)),
    exact("/api/articles", Scan, |r| json(r, articles::load_list)).api(),
    exact("/article", Scan, |r| page(r, articles::load, articles::render)),
    exact("/api/article", Scan, |r| json(r, articles::load)).api(),
    exact("/notices", Scan, |r| page(r, notices::load, notices::render)),
    exact("/api/notices", Scan, |r| json(r, notices::load)).api(),
    exact("/notices/test", Build, notices::send_test).post(),
    exact("/pin", Scan, |r| page(r, pin::load, pin::render)),
    exact("/api/pin", Scan, |r| json(r, pin::load)).api(),
    exact("/audit", Read, |r| page(r, admin::load, admin::render)),
    exact("/api/audit", Scan, |r| json(r, admin::load)).api(),
    exact("/api/diff", Scan, |r| json(r, compare::load)).api(),
    exact("/api/openapi.json", Read, |_| Ok(api::json(&openapi::description()))).api(),
    exact("/api/admin", Read, admin_actions::perform_for_program).post().api(),
    exact("/schedule", Read, |r| moved(r, "/plan")),
    exact("/api/schedule", Read, |r| moved(r, "/api/plan")).api(),
    exact("/objects", Read, |r| moved(r, "/articles")),
    exact("/api/objects", Read, |r| moved(r, "/api/articles")).api(),
    exact("/object", Read, |r| moved(r, "/article")),
    exact("/api/object", Read, |r| moved(r, "/api/article")).api(),
    exact("/acts", Read, |r| moved(r, "/audit")),
    exact("/api/acts", Read, |r| moved(r, "/api/audit")).api(),
    under("/api/", Read, |r| Err(Problem::no_such_page(&format!("/api/{}", r.rest)))).api(),
    exact("/admin", Read, admin_actions::perform_for_form).post(),
    exact("/login", Read, admin_actions::log_in).post().of_server().open(),
    exact("/login", Read, login).of_server().open(),
    exact("/logout", Read, admin_actions::log_out).post().of_server(),
    exact("/calendar", Read, |r| Ok(archives(r))),
    exact("/changes.atom", Scan, |r| atom::changes(r, &r.query)),
    exact("/healthz", Read, |r| Ok(api::health(r.server))).of_server(),
    exact("/metrics", Scan, |r| api::metrics(r.server)).of_server(),
    exact("/status", Read, |r| Ok(r.server.status())).api(),
    exact("/cdx", Scan, |r| cdx::respond(r, Dialect::Pywb, &r.query, None)).api(),
    exact("/cdx/search/cdx", Scan, |r| cdx::respond(r, Dialect::Wayback, &r.query, None)).api(),
    exact("/wayback/available", Read, |r| memento::available(r, &r.query)).api(),
    under("/record/", Read, |r| files::record(r, r.rest)).api(),
    under("/wacz/", Build, |r| files::wacz(r, &r.query)).api(),
    under(assets::ROOT, Read, banner::respond).of_server(),
    exact("/web/timemap/cdx", Scan, |r| cdx::respond(r, Dialect::Wayback, &r.query, None)).api(),
    raw("/web/timemap/cdx/", Scan, |r| cdx::respond(r, Dialect::Wayback, &r.query, Some(r.rest))).api(),
    raw("/web/timemap/", Scan, |r| memento::timemap(r, r.rest)).api(),
    raw("/web/diff/", Scan, compare::compare),
    exact("/web/changes", Scan, compare::last_change),
    raw("/web/changes/", Scan, compare::last_change),
    exact("/web/", Read, redirect_to_calendar),
    raw("/web/*/", Scan, |r| show_url(r, &format!("*/{}", r.rest))),
    raw("/web/", Read, |r| show_url(r, r.rest)),
];

/// Archived content only.
static REPLAY: &[Route] = &[
    exact("/login", Read, login).of_server().open(),
    exact(banner::ENTRANCE, Read, banner::enter).of_server().open(),
    exact(assets::REWRITER, Read, assets::rewritten_code).post().of_server(),
    under(assets::ROOT, Read, |r| assets::file(r.rest).ok_or_else(|| Problem::no_such_page(r.rest)))
        .of_server(),
    raw("/web/", Read, |r| show_url(r, r.rest)),
    raw("/", Read, |r| {
        let target = target(r.parts);
        r.leaked_request(target).ok_or_else(|| Problem::no_such_page(target))
    }),
];

/// Whether a path of the table begins with this name; an archive cannot have it.
pub(super) fn is_ours(name: &str) -> bool {
    let firsts = MAIN.iter().chain(REPLAY).filter_map(|route| route.path().split('/').nth(1));
    firsts.into_iter().any(|first| first == name)
}

struct RouteMatch<'s, 't> {
    served: &'s ServedArchive,
    route: &'static Route,
    rest: &'t str,
    query: &'t str,
}

fn find<'s, 't>(
    server: &'s Server,
    origin: Origin,
    method: &Method,
    target: &'t str,
) -> Option<RouteMatch<'s, 't>> {
    let (served, path) = find_archive(server, target)?;
    let verb = if method == Method::POST { Verb::Post } else { Verb::Get };
    let table = if origin == Origin::Main { MAIN } else { REPLAY };
    table.iter().filter(|route| route.method == verb).find_map(|route| {
        let (rest, query) = route.rest(if route.scope == RouteScope::Server { target } else { path })?;
        Some(RouteMatch { served, route, rest, query })
    })
}

/// The archive named at the start of a target, and the rest of the target; without a name, the first archive.
fn find_archive<'s, 't>(server: &'s Server, target: &'t str) -> Option<(&'s ServedArchive, &'t str)> {
    let (name, _) = target.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
    let named = server.archives().iter().find(|served| served.name == name && !name.is_empty());
    match named {
        Some(served) => Some((served, &target[1 + name.len()..])),
        None => server.archives().first().map(|served| (served, target)),
    }
}

fn target(parts: &Parts) -> &str {
    parts.uri.path_and_query().map_or("/", |target| target.as_str())
}

/// Responds to a request of a connection.
pub async fn respond(
    server: Arc<Server>,
    origin: Origin,
    request: hyper::Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    server.count();
    let found = find(&server, origin, &parts.method, target(&parts));
    let is_json_form =
        found.as_ref().is_some_and(|found| QueryParameters::parse(found.query).get("format") == Some("json"));
    let (route, base) =
        (found.as_ref().map(|found| found.route), found.map(|found| found.served.base.clone()));
    let wants_json = is_json_form || wants_json(&parts, route.is_some_and(|route| route.is_api));
    let body = match read_body(route, body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(wants_json),
    };
    let asker = Asker::of(&parts);
    let around = (origin == Origin::Replay).then(|| server.origins_for(origin, &parts).main);
    // The semaphore is never closed.
    let _place = server.limits().of(route.map_or(Read, |route| route.cost)).acquire().await;
    // Reading archives blocks on the disk.
    let shared = server.clone();
    let handled = tokio::task::spawn_blocking(move || handle(&shared, origin, &parts, &body)).await;
    let result = handled.unwrap_or_else(|error| Err(Problem::internal(&error.into())));
    let mut response = result.unwrap_or_else(|problem| {
        server.note(problem.kind);
        match origin {
            Origin::Main if !wants_json => problem.into_page(&base.unwrap_or_default()),
            _ => problem.into_response(wants_json),
        }
    });
    websites::label(&server, &asker, around.as_deref(), response.headers_mut());
    response
}

fn wants_json(parts: &Parts, is_api: bool) -> bool {
    let accept = parts.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.contains("json") || is_api && !accept.contains("text/html")
}

/// Reads the body of a POST; other requests have none.
async fn read_body(route: Option<&Route>, body: Incoming) -> Result<Vec<u8>, Problem> {
    if route.is_none_or(|route| route.method != Verb::Post) {
        return Ok(Vec::new());
    }
    let is_code = route.is_some_and(|route| route.path() == assets::REWRITER);
    let read = Limited::new(body, if is_code { MAX_CODE_BYTES } else { MAX_BODY_BYTES }).collect();
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        _ => Err(Problem::bad_request("The body is too long or took too long to arrive.")),
    }
}

/// Handles a request without a body. May block.
pub fn route(server: &Server, origin: Origin, parts: &Parts) -> Result<Response<Body>, Problem> {
    handle(server, origin, parts, &[])
}

fn handle(server: &Server, origin: Origin, parts: &Parts, body: &[u8]) -> Result<Response<Body>, Problem> {
    let target = target(parts);
    if target.len() > MAX_TARGET_BYTES {
        return Err(Problem::bad_request("The address is too long."));
    }
    let found = find(server, origin, &parts.method, target);
    match parts.method {
        Method::GET | Method::HEAD | Method::OPTIONS => {}
        Method::POST if found.is_some() => {}
        _ => return Err(Problem::method()),
    }
    websites::check(server, origin, parts)?;
    if !found.as_ref().is_some_and(|found| found.route.is_open) {
        authorize(server, origin, parts)?;
    }
    if parts.method == Method::OPTIONS {
        return Ok(preflight());
    }
    let path = target.split('?').next().unwrap_or_default();
    let RouteMatch { served, route, rest, query } = found.ok_or_else(|| Problem::no_such_page(path))?;
    let query = QueryParameters::parse(query);
    let is_json = route.is_api || query.get("format") == Some("json");
    let session = server.admin().and_then(|admin| admin.form_token(parts));
    let admin = match (&session, server.admin()) {
        (Some(token), _) => AdminAccess::On(token),
        (None, Some(_)) => AdminAccess::LoggedOut,
        (None, None) => AdminAccess::Off,
    };
    let form = if is_json { ResponseFormat::Json } else { ResponseFormat::Html };
    let request = Request { server, served, origin, parts, admin, rest, query, form, body };
    if route.scope == RouteScope::Archive && request.field("service-worker").is_some() {
        return Err(Problem::bad_request("Archived service workers are not registered."));
    }
    (route.handler)(&request)
}

/// Whether a request is answered at all. Admins may also read.
fn authorize(server: &Server, origin: Origin, parts: &Parts) -> Result<(), Problem> {
    let checked = server.guard().check(origin, parts);
    match (checked, server.admin()) {
        (Err(problem), Some(admin)) if problem.kind == "token" => {
            let is_operator = admin.form_token(parts).is_some() || admin.has_token(parts)?;
            if is_operator { Ok(()) } else { Err(problem) }
        }
        (checked, _) => checked,
    }
}

/// How many requests of each cost run at a time; others wait without a thread. More than a few per core would only compete with each
/// other, and slow requests must leave room for quick ones.
#[derive(Debug)]
pub struct Limits {
    read: Semaphore,
    scan: Semaphore,
    build: Semaphore,
}

impl Default for Limits {
    fn default() -> Limits {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Limits {
            read: Semaphore::new((2 * n_cores).clamp(4, 16)),
            scan: Semaphore::new(n_cores.clamp(2, 8)),
            build: Semaphore::new(1),
        }
    }
}

impl Limits {
    fn of(&self, cost: Cost) -> &Semaphore {
        match cost {
            Read => &self.read,
            Scan => &self.scan,
            Build => &self.build,
        }
    }
}

fn page<V: Serialize>(
    request: &Request<'_>,
    load: fn(&Request<'_>) -> Result<V, Problem>,
    render: fn(&V, Place<'_>) -> Markup,
) -> Result<Response<Body>, Problem> {
    Ok(dashboard::respond(request, &load(request)?, render))
}

fn json<V: Serialize>(
    request: &Request<'_>,
    load: fn(&Request<'_>) -> Result<V, Problem>,
) -> Result<Response<Body>, Problem> {
    Ok(api::json(&load(request)?))
}

fn home(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    if request.is_unnamed() { Ok(archives(request)) } else { home::show(request) }
}

/// Lists the archives, each with a field for a URL.
fn archives(request: &Request<'_>) -> Response<Body> {
    let archives = request.server.archives().iter();
    let places: Vec<Place<'_>> =
        archives.map(|served| Place { name: &served.name, base: &served.base, ..Place::default() }).collect();
    pages::html(calendar::home(&places))
}

/// Redirects the form of the calendar to the URL's calendar.
fn redirect_to_calendar(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let url = request.query.get("url").ok_or_else(no_url)?.trim();
    let location = HeaderValue::from_str(&format!("{}/web/*/{url}", request.served.base));
    let location = location.map_err(|_| no_url())?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn no_url() -> Problem {
    Problem::bad_request("URL missing; write /web/20260102030405/https://example.org/")
}

/// Replays an archived URL, or lists its captures.
fn show_url(request: &Request<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let replay_url = ReplayUrl::parse(rest).ok_or_else(no_url)?;
    match replay_url.when {
        RequestedTime::Unsaid | RequestedTime::At { .. } => replay(request, &replay_url),
        _ if request.origin == Origin::Replay => Err(Problem::no_such_page("A calendar")),
        RequestedTime::All => match replay_url.url.split_once("*?after=") {
            Some((prefix, after)) => calendar::urls(request, prefix, Some(&unescape(after, true))),
            None => match replay_url.url.strip_suffix('*') {
                Some(prefix) => calendar::urls(request, prefix, None),
                None => calendar::calendar(request, &replay_url.url, None),
            },
        },
        RequestedTime::Within { from, n_digits: 1..=4, .. } => {
            calendar::calendar(request, &replay_url.url, from.to_digits14()[..4].parse().ok())
        }
        RequestedTime::Within { from, to, .. } => calendar::captures(request, &replay_url.url, from, to),
    }
}

/// The login page; with a token, sets the cookie for reading.
fn login(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    if let Some(token) = request.query.get("token") {
        return set_token(request.server, token);
    }
    if request.origin == Origin::Replay {
        return Err(Problem::no_such_page("/login"));
    }
    request.server.guard().check_host(request.parts)?;
    let key = request.query.get("key").filter(|key| !key.is_empty());
    // A visitor who has not logged in must not learn what is served.
    let place = Place { name: "", base: &request.served.base, admin: request.admin };
    Ok(pages::html(admin::login(place, key)))
}

fn set_token(server: &Server, token: &str) -> Result<Response<Body>, Problem> {
    server.guard().accepts(token)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    let cookie = guard::set_cookie(&server.origins().main, guard::COOKIE, token, "");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Players send a preflight before range requests from another origin.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    memento::allow_all(headers);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Range, Accept-Datetime"));
    response
}

/// Redirects an old path, which may be bookmarked, to the new one.
fn moved(request: &Request<'_>, path: &str) -> Result<Response<Body>, Problem> {
    let query = request.parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let location = HeaderValue::from_str(&format!("{}{path}{query}", request.served.base));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response
        .headers_mut()
        .insert(header::LOCATION, location.map_err(|error| Problem::internal(&error.into()))?);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn main(target: &str) -> &'static Route {
        MAIN.iter().find(|route| route.method == Verb::Get && route.rest(target).is_some()).unwrap()
    }

    /// An archived URL may contain the path of any route without affecting cost or format of the response.
    #[test]
    fn an_archived_url_that_contains_our_paths_is_replayed() {
        for part in [
            "/wacz/",
            "/cdx",
            "/search",
            "/changes",
            "/web/diff/",
            "/api/",
            "/status",
            "/web/*/x",
            "/admin",
            "/web/timemap/",
        ] {
            for target in [
                format!("/web/20260102030405/https://a.example{part}"),
                format!("/web/20260102030405mp_/https://a.example/?next={part}"),
                format!("/web/https://a.example{part}//x%2Fy?z=/wacz/"),
            ] {
                let route = main(&target);
                assert_eq!((route.path(), route.cost, route.is_api), ("/web/", Read, false), "{target}");
                assert_eq!(route.rest(&target), Some((&target[5..], "")), "{target}");
            }
        }
        assert_eq!(main("/page/https://a.example/wacz/").cost, Scan);
        // The query after an archived URL is part of it.
        let page = "/page/https://a.example/?format=json";
        assert_eq!(main(page).rest(page), Some(("https://a.example/?format=json", "")));
        assert!(!MAIN.iter().any(|route| {
            route.method == Verb::Post && route.rest("/web/20260102030405/https://a.example/admin").is_some()
        }));
    }

    #[test]
    fn an_archive_cannot_have_the_name_of_a_route() {
        for name in
            ["web", "cdx", "notices", "changes.atom", "_perennial", "api", "login", "logout", "healthz"]
        {
            assert!(is_ours(name), "{name}");
        }
        assert!(!is_ours("news") && !is_ours("*"));
    }
}
