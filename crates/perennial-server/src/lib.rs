//! A snapshot of archives -> HTTP: replay of archived pages, Memento, CDX, calendars, files for other tools.
//!
//! The server reads: it has snapshots and no writer. With `--operate` an operator changes `perennial.toml` from its pages, by
//! [`perennial_engine::admin`] alone. Archived content is hostile, so it has an origin of
//! its own (a second port): the main origin has our pages and APIs, the replay origin has archived content and nothing else
//! (docs/replay.md, docs/decisions/0035-replay.md).
//!
//! | file | what becomes what |
//! |---|---|
//! | [`pool`] | archives -> snapshots that are as new as the last commit |
//! | [`replay_context`] | what is replayed, at which instant, where: all that the rewriting is told |
//! | [`body`] | a stored record -> its bytes as a stream, checked |
//! | [`problem`] | what went wrong -> a page or JSON that says it |
//! | [`headers`] | fields of an archived answer -> those that a client may be given |
//! | [`find`] | an address and an instant -> the capture to show |
//! | [`memento`] | RFC 7089: TimeGate, TimeMap, links; the availability API |
//! | [`cdx`] | the CDX APIs of pywb and of the Internet Archive |
//! | [`summary`] | an archive -> what is computed over the whole of it, kept between requests |
//! | [`dashboard`] | what changed, pages, sites, schedule, search, comparisons, calendars: the pages that people read first |
//! | [`api`] | a view as JSON; metrics for Prometheus; health |
//! | [`atom`] | a condition -> the latest changes for which it holds, as an Atom feed |
//! | [`pages`] | HTML of ours -> a response with its policy |
//! | [`files`] | WARC records by digest, WACZ of a page or a site |
//! | [`range`] | `Range` -> a part of a body |
//! | [`guard`] | a request -> whether it is answered at all |
//! | [`admin_auth`] | a request -> whether it may act, and who acts |
//! | [`admin_actions`] | a POST -> an act |
//! | [`replay`] | `/web/...` -> archived content |
//! | [`rewrite`] | archived content -> content whose addresses lead into the archive |
//! | [`banner`] | a capture -> the page around it: version, state of the whole, parts, steps in time |
//! | [`request`] | a request as the handlers see it |
//! | [`router`] | the table of routes: path, cost, handler |
//! | [`listen`] | sockets -> connections, within limits |

pub mod admin_actions;
pub mod admin_auth;
pub mod api;
pub mod atom;
pub mod banner;
pub mod body;
pub mod cdx;
pub mod dashboard;
pub mod diff;
pub mod files;
pub mod find;
pub mod guard;
pub mod headers;
pub mod listen;
pub mod memento;
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

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::{HeaderValue, Response, header};
use serde_json::json;

use crate::body::Body;
use admin_auth::AdminAuth;
use files::WaczCache;
use guard::Guard;
use perennial_archive::Archive;
use pool::Pool;
use router::Limits;
use summary::SummaryCache;

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where our own pages and APIs are served.
    pub listen: SocketAddr,
    /// Where archived content is served; `None`: the port behind that of `listen`, or any where that is 0.
    pub replay_listen: Option<SocketAddr>,
    /// Show what was captured closest in time, as other replay systems do, in place of what was there.
    pub closest: bool,
    /// Names of this server beside those of loopback and of the address that it listens on.
    pub allow_hosts: Vec<String>,
    /// Origins of other pages, such as `https://replayweb.page`, whose scripts may read what is served.
    pub allow_origins: Vec<String>,
    /// What a request must bring; `None`: nothing.
    pub token: Option<String>,
    /// Anybody may ask.
    pub public: bool,
    /// Who may act; `None`: nobody.
    pub operate: Option<AdminOptions>,
}

/// How somebody becomes an operator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminOptions {
    /// A token that programs and browsers may bring, beside the key that is printed.
    pub token: Option<String>,
}

impl Options {
    /// For whoever uses this machine.
    pub fn on_loopback(listen: SocketAddr) -> Options {
        Options {
            listen,
            replay_listen: None,
            closest: false,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            token: None,
            public: false,
            operate: None,
        }
    }
}

/// All that requests share.
#[derive(Debug)]
pub struct Server {
    options: Options,
    archives: Vec<ServedArchive>,
    origins: Origins,
    guard: Guard,
    operator: Option<AdminAuth>,
    /// What begins a session of an operator, once.
    key: Option<String>,
    made: WaczCache,
    limits: Limits,
    /// How often each kind of problem was met.
    problems: Mutex<BTreeMap<&'static str, u64>>,
    n_requests: AtomicU64,
}

/// One archive under its name.
#[derive(Debug)]
pub struct ServedArchive {
    /// Its name, which begins the paths of its addresses.
    pub name: String,
    /// Where its addresses begin on both origins: empty, or a slash and its name.
    pub base: String,
    pool: Pool,
    standings: SummaryCache,
}

/// The two origins, such as `http://127.0.0.1:8080`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origins {
    /// Of our own pages.
    pub main: String,
    /// Of archived content.
    pub replay: String,
}

/// Which of the two a request came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Our own pages and APIs.
    Main,
    /// Archived content.
    Replay,
}

impl Server {
    /// A server of some archives that listens nowhere yet. A single archive has addresses without its name.
    pub fn new(archives: Vec<Archive>, options: Options, origins: Origins) -> anyhow::Result<Arc<Server>> {
        let is_single = archives.len() == 1;
        let mut served: Vec<ServedArchive> = Vec::new();
        for archive in archives {
            let name = pool::name_of(&archive, |taken| served.iter().any(|other| other.name == taken));
            let base = if is_single { String::new() } else { format!("/{name}") };
            served.push(ServedArchive {
                name,
                base,
                pool: Pool::open(archive)?,
                standings: SummaryCache::default(),
            });
        }
        let listening = [Some(options.listen), options.replay_listen].into_iter().flatten();
        let listening: Vec<IpAddr> = listening.map(|address| address.ip()).collect();
        let guard = Guard::new(&listening, &options.allow_hosts, options.token.as_deref(), options.public);
        let operator = match &options.operate {
            Some(operate) => Some(AdminAuth::new(operate.token.as_deref(), port_of(&origins.main))?),
            None => None,
        };
        let (operator, key) = operator.unzip();
        let (made, problems) = (WaczCache::default(), Mutex::default());
        let (limits, n_requests) = (Limits::default(), AtomicU64::new(0));
        let archives = served;
        Ok(Arc::new(Server {
            options,
            archives,
            origins,
            guard,
            operator,
            key,
            made,
            limits,
            problems,
            n_requests,
        }))
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Who may act; `None`: nobody.
    fn operator(&self) -> Option<&AdminAuth> {
        self.operator.as_ref()
    }

    /// The address at which a session of an operator begins, once.
    pub fn operator_address(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("{}/login?key={key}", self.origins.main))
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn made(&self) -> &WaczCache {
        &self.made
    }

    /// Counts a problem.
    fn note(&self, kind: &'static str) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// Counts a request.
    fn count(&self) {
        self.n_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests so far.
    fn n_requests(&self) -> u64 {
        self.n_requests.load(Ordering::Relaxed)
    }

    /// How often each kind of problem was met.
    fn problems_by_kind(&self) -> BTreeMap<&'static str, u64> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is served, and what went wrong how often.
    fn status(&self) -> Response<Body> {
        let problems = self.problems_by_kind();
        let mut status = json!({
            "program": concat!("perennial/", env!("CARGO_PKG_VERSION")),
            "address": self.origins.main,
            "replay": self.origins.replay,
            "archives": self.archives.iter().map(|served| served.name.as_str()).collect::<Vec<_>>(),
            "bases": self.archives.iter().map(|served| served.base.as_str()).collect::<Vec<_>>(),
            "problems": problems,
        });
        // Where archives lie is the business of this machine's users.
        if !self.options.public {
            let roots = self.archives.iter().map(|served| served.pool.archive().root().to_path_buf());
            let whole = |root: &Path| root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
            status["folders"] = roots.map(|root| whole(&root).display().to_string()).collect();
        }
        let mut response = Response::new(Body::from(format!("{status}\n")));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// The archives, in the order in which they were named.
    pub fn archives(&self) -> &[ServedArchive] {
        &self.archives
    }

    /// What the user asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Where the two origins are.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Whether versions are chosen by distance in time alone.
    pub fn is_closest(&self) -> bool {
        self.options.closest
    }
}

/// The port of an origin.
fn port_of(origin: &str) -> u16 {
    origin.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default()
}
