//! The HTTP server of one or more archives: replay, Memento, CDX, the dashboard and its API, exports.
//!
//! The server reads snapshots and has no writer. With `--admin`, an admin can change `perennial.toml` from the dashboard, by
//! [`perennial_engine::admin`] only. Archived content is untrusted, so it is served from a second port, which is an origin of its own.
//! The main origin serves our pages and APIs; the replay origin serves archived content only
//! (docs/replay.md, docs/decisions/0035-replay.md).
//!
//! | module | responsibility |
//! |---|---|
//! | [`pool`] | snapshots of an archive, as new as the last commit |
//! | [`replay_context`] | what is replayed, at which instant and where: the input of rewriting |
//! | [`body`] | streams the bytes of a stored record and checks their digest |
//! | [`problem`] | an error as a page or as JSON |
//! | [`headers`] | the archived header fields that a client may receive |
//! | [`find`] | a URL and an instant -> the capture to show |
//! | [`fuzzy`] | a URL that is not archived -> one that differs only in a cache buster |
//! | [`memento`] | RFC 7089: TimeGate, TimeMap, links; the availability API |
//! | [`cdx`] | the CDX APIs of pywb and of the Internet Archive |
//! | [`summary`] | caches aggregates over the whole archive |
//! | [`dashboard`] | changes, pages, sites, plan, search, comparisons, calendars |
//! | [`api`] | a view as JSON; metrics for Prometheus; health |
//! | [`atom`] | the latest changes that match a query, as an Atom feed |
//! | [`pages`] | HTML of ours -> a response with its content security policy |
//! | [`files`] | WARC records by digest, WACZ files of a page or a site |
//! | [`range`] | range requests |
//! | [`guard`] | which requests are answered at all |
//! | [`origins`] | the two origins, as a client reaches them |
//! | [`websites`] | what websites may learn through a reader's browser |
//! | [`admin_auth`] | which requests may change settings, and on whose behalf |
//! | [`admin_actions`] | performs the admin action of a POST |
//! | [`replay`] | `/web/...` -> archived content |
//! | [`rewrite`] | makes URLs in archived content point into the archive |
//! | [`banner`] | the frame around a replayed page: version, coherence, parts, steps in time |
//! | [`request`] | a request as the handlers see it |
//! | [`router`] | the table of routes: path, cost, handler |
//! | [`connections`] | which connections are served, and which are closed for others |
//! | [`listen`] | sockets and connections, within limits |

pub mod admin_actions;
pub mod admin_auth;
pub mod api;
pub mod atom;
pub mod banner;
pub mod body;
pub mod cdx;
pub mod connections;
pub mod dashboard;
pub mod diff;
pub mod files;
pub mod find;
pub mod fuzzy;
pub mod guard;
pub mod headers;
pub mod listen;
pub mod memento;
pub mod origins;
pub mod pages;
pub mod pool;
pub mod problem;
pub mod range;
pub mod replay;
pub mod replay_context;
pub mod request;
pub mod rewrite;
pub mod router;
pub mod summary;
pub mod websites;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::request::Parts;
use hyper::http::{HeaderValue, Response, header};
use serde_json::json;

use crate::body::Body;
use admin_auth::AdminAuth;
use files::WaczCache;
use fuzzy::FuzzyRules;
use guard::Guard;
pub use origins::Origins;
use perennial_archive::Archive;
use pool::Pool;
use router::Limits;
use summary::SummaryCache;

#[derive(Clone, Debug)]
pub struct Options {
    /// Address of the main origin.
    pub listen: SocketAddr,
    /// Address of the replay origin. `None`: the port after that of `listen`, or any free port if that is 0.
    pub replay_listen: Option<SocketAddr>,
    /// Show the capture closest in time, as other replay systems do, instead of the version that was valid.
    pub closest: bool,
    /// Host names of this server apart from those of loopback and of the listening address.
    pub allow_hosts: Vec<String>,
    /// Origins of other pages, such as `https://replayweb.page`, whose scripts may read responses.
    pub allow_origins: Vec<String>,
    /// The token that every request must bring; `None`: no token is needed.
    pub token: Option<String>,
    /// Answer everybody.
    pub public: bool,
    /// The two origins as browsers reach them, if a proxy is in between.
    pub proxied: Option<Origins>,
    /// A table of more rules for URLs that are not archived.
    pub fuzzy_rules: Option<PathBuf>,
    /// How admins log in; `None`: nobody can change anything.
    pub operate: Option<AdminOptions>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminOptions {
    /// A token for programs and browsers, in addition to the key that the server prints.
    pub token: Option<String>,
}

impl Options {
    pub fn on_loopback(listen: SocketAddr) -> Options {
        Options {
            listen,
            replay_listen: None,
            closest: false,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            token: None,
            public: false,
            proxied: None,
            fuzzy_rules: None,
            operate: None,
        }
    }
}

/// The state that all requests share.
#[derive(Debug)]
pub struct Server {
    options: Options,
    archives: Vec<ServedArchive>,
    origins: Origins,
    guard: Guard,
    fuzzy: FuzzyRules,
    admin: Option<AdminAuth>,
    /// Starts one admin session.
    key: Option<String>,
    made: WaczCache,
    limits: Limits,
    /// How often each kind of problem occurred.
    problems: Mutex<BTreeMap<&'static str, u64>>,
    n_requests: AtomicU64,
}

/// One archive under its name.
#[derive(Debug)]
pub struct ServedArchive {
    /// Comes first in the path of its URLs, if several archives are served.
    pub name: String,
    /// The start of its paths on both origins: empty, or a slash and its name.
    pub base: String,
    pool: Pool,
    summaries: SummaryCache,
}

/// The origin to which a request was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    Main,
    Replay,
}

impl Server {
    /// A server that does not listen yet. URLs contain the archive's name only if there are several archives.
    pub fn new(archives: Vec<Archive>, options: Options, origins: Origins) -> anyhow::Result<Arc<Server>> {
        let is_single = archives.len() == 1;
        let mut served: Vec<ServedArchive> = Vec::new();
        for archive in archives {
            let name = pool::unused_name(&archive, |taken| served.iter().any(|other| other.name == taken));
            let base = if is_single { String::new() } else { format!("/{name}") };
            served.push(ServedArchive {
                name,
                base,
                pool: Pool::open(archive)?,
                summaries: SummaryCache::default(),
            });
        }
        let guard = Guard::new(&options)?;
        let fuzzy = FuzzyRules::read(options.fuzzy_rules.as_deref())?;
        let admin = match &options.operate {
            Some(operate) => Some(AdminAuth::new(operate.token.as_deref(), &origins.main)?),
            None => None,
        };
        let (admin, key) = admin.unzip();
        Ok(Arc::new(Server {
            options,
            archives: served,
            origins,
            guard,
            fuzzy,
            admin,
            key,
            made: WaczCache::default(),
            limits: Limits::default(),
            problems: Mutex::default(),
            n_requests: AtomicU64::new(0),
        }))
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }

    fn fuzzy(&self) -> &FuzzyRules {
        &self.fuzzy
    }

    fn admin(&self) -> Option<&AdminAuth> {
        self.admin.as_ref()
    }

    /// The URL that starts an admin session, once.
    pub fn admin_login_url(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("{}/login?key={key}", self.origins.main))
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn made(&self) -> &WaczCache {
        &self.made
    }

    fn note(&self, kind: &'static str) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    fn count(&self) {
        self.n_requests.fetch_add(1, Ordering::Relaxed);
    }

    fn n_requests(&self) -> u64 {
        self.n_requests.load(Ordering::Relaxed)
    }

    fn problems_by_kind(&self) -> BTreeMap<&'static str, u64> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is served, and how often each kind of problem occurred.
    fn status(&self) -> Response<Body> {
        let problems = self.problems_by_kind();
        let mut status = json!({
            "program": concat!("perennial/", env!("CARGO_PKG_VERSION")),
            "url": self.origins.main,
            "replay": self.origins.replay,
            "archives": self.archives.iter().map(|served| served.name.as_str()).collect::<Vec<_>>(),
            "bases": self.archives.iter().map(|served| served.base.as_str()).collect::<Vec<_>>(),
            "problems": problems,
        });
        // The folders of archives concern only the users of this machine.
        if !self.options.public {
            let roots = self.archives.iter().map(|served| served.pool.archive().root().to_path_buf());
            let whole = |root: &Path| root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
            status["folders"] = roots.map(|root| whole(&root).display().to_string()).collect();
        }
        let mut response = Response::new(Body::from(format!("{status}\n")));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    pub fn archives(&self) -> &[ServedArchive] {
        &self.archives
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The two origins as the client of a request reaches them.
    fn origins_for(&self, origin: Origin, parts: &Parts) -> Origins {
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        match self.options.proxied {
            Some(_) => self.origins.clone(),
            None => self.origins.for_client(origin, host.unwrap_or_default()),
        }
    }

    /// Whether the capture closest in time is shown.
    pub fn is_closest(&self) -> bool {
        self.options.closest
    }
}
