//! Makes a [`Layout`] or a document of a page with Chromium, which runs its scripts.
//!
//! The browser has no network (module `launch`). A function of this process answers or refuses every request. Each
//! frame or worker that a page opens is paused until its requests are intercepted too. Windows, shared workers and
//! service workers are closed. Scripts run in virtual time from the moment of the capture, with the same clock and
//! the same random numbers in every run. Threads and installed fonts still cause small differences between runs and
//! machines.
//!
//! Loading ends at the deadline or after [`MAX_REQUESTS`] requests. Then the page is used as it is. If the browser
//! does not respond any more, it is killed with all its processes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use perennial_core::http::login::LoginStep;
use perennial_core::page::layout::{Layout, VIEWPORT_HEIGHT, VIEWPORT_WIDTH};
use serde_json::{Value, json};

use crate::behaviors::Behaviors;
use crate::cdp::{BrowserConnection, BrowserError, find_browser};
use crate::launch::LaunchOptions;
use crate::login::{BrowserCookie, LoginError, read_cookies};
use crate::resource::CapturedResource;
use crate::snapshot;

/// Most requests of a page, answered or not. Then loading stops.
pub const MAX_REQUESTS: usize = 2000;
/// Most response bytes per page. Further requests fail.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Longer URLs are not requested.
const MAX_URL_BYTES: usize = 16 << 10;
/// Longer bodies of requests are not sent.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Fields of a request that a script set, and the bytes of one.
const MAX_FIELDS: usize = 20;
const MAX_FIELD_BYTES: usize = 4 << 10;
/// Frames and workers per page.
const MAX_TARGETS: usize = 200;
/// Time for reading a page after its deadline, if the deadline was at least as long.
const GRACE: Duration = Duration::from_secs(5);

/// Least time for starting the browser, because a busy machine needs long for it.
const START: Duration = Duration::from_secs(10);

/// Checks of a browser's processes, a tenth of a second apart, until all are sandboxed.
const MAX_CHECKS: usize = 30;

/// How the browser is run.
#[derive(Clone, Debug)]
pub struct BrowserOptions {
    /// The executable; if `None` it is searched for.
    pub program: Option<PathBuf>,
    /// Time limit per page.
    pub time: Duration,
    /// Whether scripts run.
    pub run_scripts: bool,
    /// Virtual time for scripts after the page has loaded.
    pub script_time: Duration,
    /// Sandbox, network and memory.
    pub launch: LaunchOptions,
}

impl Default for BrowserOptions {
    fn default() -> BrowserOptions {
        BrowserOptions {
            program: None,
            time: Duration::from_secs(30),
            run_scripts: true,
            script_time: Duration::from_secs(3),
            launch: LaunchOptions::default(),
        }
    }
}

/// A request of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrowserRequest {
    pub url: String,
    pub method: String,
    /// Fields that a script set, and the media type of the body.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Names and values of fields.
type FieldList<'a> = Vec<(&'a str, &'a str)>;

impl BrowserRequest {
    /// The fields that may identify a person, and the others.
    pub fn split_secrets(&self) -> (FieldList<'_>, FieldList<'_>) {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        fields.partition(|(name, _)| {
            name.eq_ignore_ascii_case("cookie") || name.eq_ignore_ascii_case("authorization")
        })
    }
}

/// Answers a request, or refuses it. It must return before the given instant.
pub type RequestHandler<'a> = dyn Fn(&BrowserRequest, Instant) -> Option<CapturedResource> + 'a;

/// A page to lay out.
#[derive(Clone, Copy, Debug)]
pub struct BrowserPage<'a> {
    pub url: &'a str,
    /// The decoded HTML.
    pub html: &'a str,
    /// The time that scripts see, in milliseconds since 1970.
    pub unix_millis: i64,
}

impl BrowserPage<'_> {
    /// A page whose document the handler answers like any other request.
    pub(crate) fn of_url(url: &str) -> BrowserPage<'_> {
        BrowserPage { url, html: "", unix_millis: 0 }
    }
}

/// The actions in a page before its document is taken.
#[derive(Default)]
pub struct ReaderActions<'a> {
    pub behaviors: Option<Behaviors<'a>>,
    /// The cookies that scripts may read.
    pub cookies: &'a [BrowserCookie],
}

/// Why loading ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadEnd {
    /// The page loaded and its scripts used their virtual time.
    Whole,
    /// The deadline passed.
    Deadline,
    /// It made more than [`MAX_REQUESTS`] requests.
    Flood,
}

/// The layout of a page in a browser.
#[derive(Clone, Debug)]
pub struct BrowserLayout {
    pub layout: Layout<'static>,
    /// Time for loading and the snapshot, without opening the tab.
    pub time: Duration,
    /// Whether the page is complete.
    pub ending: LoadEnd,
}

/// A page after its scripts have run.
#[derive(Clone, Debug)]
pub struct BrowserDocument {
    pub html: String,
    /// The actions of a reader in it, in words.
    pub actions: Vec<String>,
    /// Whether the page is complete.
    pub ending: LoadEnd,
}

/// How a running browser is isolated, as the system reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserIsolation {
    /// Name and version of the browser.
    pub engine: String,
    /// Whether its pages are sandboxed.
    pub has_sandbox: bool,
    /// Whether it has a separate network namespace.
    pub has_own_network: bool,
}

/// A browser that is started on demand, and restarted after a crash or a hang.
pub struct Chromium {
    options: BrowserOptions,
    running: Option<(BrowserConnection, String)>,
    n_restarts: u64,
    n_failed_starts: u64,
}

impl Chromium {
    pub fn new(options: BrowserOptions) -> Chromium {
        Chromium { options, running: None, n_restarts: 0, n_failed_starts: 0 }
    }

    /// Number of restarts.
    pub fn n_restarts(&self) -> u64 {
        self.n_restarts
    }

    /// Number of consecutive failed starts. Crashes caused by a page do not count.
    pub fn n_failed_starts(&self) -> u64 {
        self.n_failed_starts
    }

    /// Name and version, as recorded in layouts.
    pub fn engine(&mut self) -> Result<String, BrowserError> {
        self.connection().map(|(_, engine)| engine.clone())
    }

    /// How the browser is isolated, measured with an empty page.
    pub fn isolation(&mut self) -> Result<BrowserIsolation, BrowserError> {
        let options = self.options.clone();
        self.run(|connection, engine| {
            let mut visit = BrowserTab::open(connection, &options)?;
            // The page's process is sandboxed once it responds. A spare process for the next page may still be
            // starting.
            visit.call("Runtime.evaluate", json!({"expression": "1"}))?;
            let mut n_checks = 1;
            let mut isolation = visit.connection.isolation();
            while options.launch.sandbox && !isolation.0 && n_checks < MAX_CHECKS {
                std::thread::sleep(Duration::from_millis(100));
                isolation = visit.connection.isolation();
                n_checks += 1;
            }
            let (has_sandbox, has_own_network) = isolation;
            visit.close();
            Ok(BrowserIsolation { engine: engine.to_owned(), has_sandbox, has_own_network })
        })
    }

    /// Lays out a page. `answers` handles every request.
    pub fn layout(
        &mut self,
        page: &BrowserPage<'_>,
        answers: &RequestHandler,
    ) -> Result<BrowserLayout, BrowserError> {
        let options = self.options.clone();
        self.run(|connection, engine| {
            let mut visit = BrowserTab::open(connection, &options)?;
            visit.prelude = Some(FIXED_SCRIPT.replace("UNIX_MILLIS", &page.unix_millis.to_string()));
            let began = Instant::now();
            let ending = visit.load(page, answers)?;
            visit.connection.keep_events(false);
            let snapshot = visit.snapshot()?;
            let time = began.elapsed();
            let layout = snapshot::layout(&snapshot, page.url, engine);
            visit.close();
            Ok(BrowserLayout { layout, time, ending })
        })
    }

    /// The document after its scripts have run and a reader has acted. `answers` handles every request.
    pub fn document(
        &mut self,
        page: &BrowserPage<'_>,
        answers: &RequestHandler,
        reader: &ReaderActions<'_>,
    ) -> Result<BrowserDocument, BrowserError> {
        let options = self.options.clone();
        self.run(|connection, _| {
            let mut visit = BrowserTab::open(connection, &options)?;
            visit.set_cookies(reader.cookies)?;
            let mut ending = visit.load(page, answers)?;
            let mut actions = Vec::new();
            if let Some(behaviors) = reader.behaviors.as_ref().filter(|_| ending == LoadEnd::Whole) {
                actions = visit.behave(page, answers, behaviors)?;
                if visit.has_stopped {
                    ending = LoadEnd::Deadline;
                }
            }
            visit.connection.keep_events(false);
            let html = visit.outer_html()?;
            visit.close();
            Ok(BrowserDocument { html, actions, ending })
        })
    }

    /// Takes the steps of a login, and returns the cookies that they left. `answers` handles every request.
    pub fn log_in(
        &mut self,
        steps: &[LoginStep],
        answers: &RequestHandler,
    ) -> Result<Vec<BrowserCookie>, LoginError> {
        let options = self.options.clone();
        let mut failure = None;
        let cookies = self.run(|connection, _| {
            let mut visit = BrowserTab::open(connection, &options)?;
            let outcome = visit.log_in(steps, answers);
            visit.connection.keep_events(false);
            visit.close();
            match outcome {
                Ok(cookies) => Ok(cookies),
                Err(LoginError::Browser(error)) => Err(error),
                Err(other) => {
                    failure = Some(other);
                    Ok(Vec::new())
                }
            }
        })?;
        failure.map_or(Ok(cookies), Err)
    }

    /// The cookies of a browser's profile folder. The browser reads a copy of the profile, without a network.
    pub fn profile_cookies(&self, profile: &Path) -> Result<Vec<BrowserCookie>, BrowserError> {
        let (mut connection, _) = start(&self.options, Some(profile))?;
        let deadline = Instant::now() + self.options.time.max(START);
        let found = connection.call(None, "Storage.getCookies", json!({}), deadline)?;
        Ok(read_cookies(&found["cookies"]))
    }

    /// Handles one page. After a crash, a hang or an exceeded limit the browser is killed. The next page starts a new
    /// one.
    fn run<T>(
        &mut self,
        visit: impl FnOnce(&mut BrowserConnection, &str) -> Result<T, BrowserError>,
    ) -> Result<T, BrowserError> {
        let (connection, engine) = self.connection()?;
        let outcome = visit(connection, engine);
        if !matches!(outcome, Ok(_) | Err(BrowserError::Refused { .. })) {
            self.running = None;
            self.n_restarts += 1;
        }
        outcome
    }

    fn connection(&mut self) -> Result<&mut (BrowserConnection, String), BrowserError> {
        let running = match self.running.take() {
            Some(running) => running,
            None => {
                let started = start(&self.options, None);
                self.n_failed_starts = if started.is_ok() { 0 } else { self.n_failed_starts + 1 };
                started?
            }
        };
        Ok(self.running.insert(running))
    }
}

/// Starts a browser, with the cookies of a profile if there is one. Also returns its name and version.
fn start(
    options: &BrowserOptions,
    profile: Option<&Path>,
) -> Result<(BrowserConnection, String), BrowserError> {
    let program = find_browser(options.program.as_deref())?;
    let mut connection = BrowserConnection::start(&program, options.launch, profile)?;
    let deadline = Instant::now() + options.time.max(START);
    let version = connection.call(None, "Browser.getVersion", json!({}), deadline);
    let version = version.map_err(|error| match error {
        // A browser that fails to set up its sandbox reports it on standard error only, and exits.
        BrowserError::Ended(why) if options.launch.sandbox => BrowserError::NoSandbox(why),
        other => other,
    })?;
    connection.call(None, "Target.setDiscoverTargets", json!({"discover": true}), deadline)?;
    Ok((connection, text(&version["product"])))
}

/// One page in a separate context, without cookies or caches of other pages.
pub(crate) struct BrowserTab<'a> {
    pub(crate) connection: &'a mut BrowserConnection,
    pub(crate) session: String,
    /// The sessions of the page, its frames and its workers.
    sessions: HashSet<String>,
    target: String,
    pub(crate) context: String,
    pub(crate) deadline: Instant,
    options: &'a BrowserOptions,
    /// A script that runs first in every document.
    prelude: Option<String>,
    n_requests: usize,
    n_answer_bytes: usize,
    /// Whether the caller gives the page's document. Otherwise it is requested.
    pub(crate) has_document: bool,
    /// Real time without an event after which a page counts as idle. Virtual time stands still when a page navigates,
    /// so it is not used then.
    pub(crate) quiet: Option<Duration>,
    /// Whether the page must not navigate.
    pub(crate) is_held: bool,
    /// Whether loading ended at a limit.
    pub(crate) has_stopped: bool,
}

impl<'a> BrowserTab<'a> {
    fn open(
        connection: &'a mut BrowserConnection,
        options: &'a BrowserOptions,
    ) -> Result<BrowserTab<'a>, BrowserError> {
        let deadline = Instant::now() + options.time;
        connection.keep_events(true);
        let context = json!({"disposeOnDetach": true});
        let context = connection.call(None, "Target.createBrowserContext", context, deadline)?;
        let context = text(&context["browserContextId"]);
        let denied = json!({"behavior": "deny", "browserContextId": context});
        connection.call(None, "Browser.setDownloadBehavior", denied, deadline)?;
        let blank = json!({"url": "about:blank", "browserContextId": context});
        let target = text(&connection.call(None, "Target.createTarget", blank, deadline)?["targetId"]);
        let attach = json!({"targetId": target, "flatten": true});
        let session = text(&connection.call(None, "Target.attachToTarget", attach, deadline)?["sessionId"]);
        Ok(BrowserTab {
            connection,
            sessions: HashSet::from([session.clone()]),
            session,
            target,
            context,
            deadline,
            options,
            prelude: None,
            n_requests: 0,
            n_answer_bytes: 0,
            has_document: true,
            quiet: None,
            is_held: false,
            has_stopped: false,
        })
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, BrowserError> {
        self.connection.call(Some(&self.session), method, params, self.deadline)
    }

    /// Sends a command without waiting. If it fails, a later command fails too.
    pub(crate) fn post(&mut self, session: &str, method: &str, params: Value) -> Result<(), BrowserError> {
        self.connection.send(Some(session), method, params, self.deadline).map(|_| ())
    }

    /// Intercepts all requests of a page, frame or worker, and of the targets that it opens. A worker rejects
    /// unsupported commands, but it has no network anyway.
    fn take_over(&mut self, session: &str) -> Result<(), BrowserError> {
        self.post(session, "Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]}))?;
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.post(session, "Target.setAutoAttach", attach)?;
        self.post(session, "Page.enable", json!({}))?;
        if !self.options.run_scripts {
            self.post(session, "Emulation.setScriptExecutionDisabled", json!({"value": true}))?;
        }
        if let Some(source) = self.prelude.clone() {
            self.post(session, "Page.addScriptToEvaluateOnNewDocument", json!({"source": source}))?;
        }
        Ok(())
    }

    /// Navigates and answers requests until the page has loaded and its scripts have used their virtual time.
    fn load(&mut self, page: &BrowserPage<'_>, answers: &RequestHandler) -> Result<LoadEnd, BrowserError> {
        self.prepare()?;
        self.navigate(page.url)?;
        self.pump(page, answers, true)
    }

    pub(crate) fn prepare(&mut self) -> Result<(), BrowserError> {
        let session = self.session.clone();
        self.take_over(&session)?;
        let metrics = json!({
            "width": VIEWPORT_WIDTH as u32, "height": VIEWPORT_HEIGHT as u32, "deviceScaleFactor": 1, "mobile": false
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics).map(|_| ())
    }

    pub(crate) fn navigate(&mut self, url: &str) -> Result<(), BrowserError> {
        let session = self.session.clone();
        self.post(&session, "Page.navigate", json!({"url": url}))
    }

    /// Lets virtual time pass, except while requests are pending.
    pub(crate) fn grant(&mut self, time: Duration) -> Result<(), BrowserError> {
        if self.quiet.is_some() {
            return Ok(());
        }
        let session = self.session.clone();
        let policy = json!({"policy": "pauseIfNetworkFetchesPending", "budget": time.as_millis() as u64});
        self.post(&session, "Emulation.setVirtualTimePolicy", policy)
    }

    /// Answers requests until the granted time has passed. If `loads`, the time is granted when the page has loaded.
    pub(crate) fn pump(
        &mut self,
        page: &BrowserPage<'_>,
        answers: &RequestHandler,
        loads: bool,
    ) -> Result<LoadEnd, BrowserError> {
        let mut has_loaded = !loads;
        loop {
            let until = self.quiet.map_or(self.deadline, |quiet| self.deadline.min(Instant::now() + quiet));
            let event = match self.connection.event(until) {
                Err(BrowserError::TimedOut(_)) if Instant::now() < self.deadline => {
                    return Ok(LoadEnd::Whole);
                }
                // A page that does not finish loading is used as it is.
                Err(BrowserError::TimedOut(_)) if self.n_requests > 0 => return self.stop(LoadEnd::Deadline),
                other => other?,
            };
            let (session, params) = (text(&event["sessionId"]), &event["params"]);
            let method = event["method"].as_str().unwrap_or_default();
            if method == "Target.targetCreated" {
                self.close_unknown_target(&params["targetInfo"])?;
            }
            if !self.sessions.contains(&session) {
                continue;
            }
            match method {
                "Fetch.requestPaused" if self.n_requests >= MAX_REQUESTS => return self.stop(LoadEnd::Flood),
                "Fetch.requestPaused" => self.answer(&session, params, page, answers)?,
                "Target.attachedToTarget" => self.attached(params)?,
                "Target.detachedFromTarget" => drop(self.sessions.remove(&text(&params["sessionId"]))),
                "Page.loadEventFired" if !has_loaded && session == self.session => {
                    has_loaded = true;
                    self.grant(self.options.script_time)?;
                }
                "Emulation.virtualTimeBudgetExpired" if has_loaded => return Ok(LoadEnd::Whole),
                "Page.javascriptDialogOpening" => {
                    self.post(&session, "Page.handleJavaScriptDialog", json!({"accept": false}))?
                }
                "Inspector.targetCrashed" if session == self.session => {
                    return Err(BrowserError::Ended("the page crashed it".into()));
                }
                _ => {}
            }
        }
    }

    /// A new frame or worker, which is paused.
    fn attached(&mut self, params: &Value) -> Result<(), BrowserError> {
        let session = text(&params["sessionId"]);
        if self.sessions.len() >= MAX_TARGETS {
            return self.close_target(&params["targetInfo"]["targetId"]);
        }
        self.sessions.insert(session.clone());
        self.take_over(&session)?;
        self.post(&session, "Runtime.runIfWaitingForDebugger", json!({}))
    }

    /// Closes windows, and workers that outlive the page.
    fn close_unknown_target(&mut self, target: &Value) -> Result<(), BrowserError> {
        let is_part = matches!(target["type"].as_str(), Some("iframe" | "worker" | "tab" | "browser"));
        let is_ours = target["browserContextId"] == self.context.as_str();
        if !is_ours || is_part || target["targetId"] == self.target.as_str() {
            return Ok(());
        }
        self.close_target(&target["targetId"])
    }

    fn close_target(&mut self, target: &Value) -> Result<(), BrowserError> {
        let params = json!({"targetId": target});
        self.connection.send(None, "Target.closeTarget", params, self.deadline).map(|_| ())
    }

    /// Stops loading. The page gets no more responses, so its pending requests wait forever.
    fn stop(&mut self, ending: LoadEnd) -> Result<LoadEnd, BrowserError> {
        self.has_stopped = true;
        self.deadline = Instant::now() + self.options.time.min(GRACE);
        self.connection.keep_events(false);
        let session = self.session.clone();
        self.post(&session, "Page.stopLoading", json!({}))?;
        Ok(ending)
    }

    /// Answers a request. The first one is for the page itself.
    fn answer(
        &mut self,
        session: &str,
        request: &Value,
        page: &BrowserPage<'_>,
        answers: &RequestHandler,
    ) -> Result<(), BrowserError> {
        self.n_requests += 1;
        let found = match self.n_requests {
            1 if self.has_document => Some(document(page)),
            // Leaving the page would lose it.
            _ if self.is_held && self.is_navigation(request) => None,
            _ if self.n_answer_bytes >= MAX_ANSWER_BYTES => None,
            _ if request["request"]["method"] == "OPTIONS" => Some(preflight()),
            _ => look_up(request, answers, self.deadline),
        };
        // A late response is dropped. The next step notices the deadline too.
        if Instant::now() >= self.deadline {
            return Ok(());
        }
        let id = &request["requestId"];
        let Some(captured) = found else {
            let refusal = json!({"requestId": id, "errorReason": "AddressUnreachable"});
            return self.post(session, "Fetch.failRequest", refusal);
        };
        self.n_answer_bytes += captured.body.len();
        let mut headers = vec![json!({"name": "Content-Type", "value": captured.content_type})];
        headers.extend(grants(request));
        headers.extend(captured.location.map(|target| json!({"name": "Location", "value": target})));
        let cookies = captured.cookies.iter();
        headers.extend(cookies.map(|cookie| json!({"name": "Set-Cookie", "value": cookie})));
        let status = if captured.status == 0 { 200 } else { captured.status };
        let body = BASE64.encode(&captured.body);
        let answer =
            json!({"requestId": id, "responseCode": status, "responseHeaders": headers, "body": body});
        self.post(session, "Fetch.fulfillRequest", answer)
    }

    fn snapshot(&mut self) -> Result<Value, BrowserError> {
        self.call("DOMSnapshot.captureSnapshot", json!({"computedStyles": snapshot::STYLES}))
    }

    fn outer_html(&mut self) -> Result<String, BrowserError> {
        let html = self.evaluate("document.documentElement ? document.documentElement.outerHTML : ''")?;
        Ok(text(&html))
    }

    /// The value of an expression in the page; null if it fails.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let params = json!({"expression": expression, "returnByValue": true});
        let mut result = self.call("Runtime.evaluate", params)?;
        Ok(result["result"]["value"].take())
    }

    /// A world whose globals the page's scripts cannot change, in the page's main frame.
    pub(crate) fn isolated_world(&mut self) -> Result<u64, BrowserError> {
        let tree = self.call("Page.getFrameTree", json!({}))?;
        let frame = tree["frameTree"]["frame"]["id"].clone();
        let made = self.call("Page.createIsolatedWorld", json!({"frameId": frame}))?;
        Ok(made["executionContextId"].as_u64().unwrap_or_default())
    }

    /// The value of an expression in a world; `None` if it fails or the world is gone.
    pub(crate) fn evaluate_in(
        &mut self,
        world: u64,
        expression: &str,
    ) -> Result<Option<Value>, BrowserError> {
        let params =
            json!({"expression": expression, "returnByValue": true, "contextId": world, "userGesture": true});
        match self.call("Runtime.evaluate", params) {
            Ok(mut result) if result["exceptionDetails"].is_null() => {
                Ok(Some(result["result"]["value"].take()))
            }
            Ok(_) | Err(BrowserError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a request would replace the page. The id of the main frame is that of its target.
    fn is_navigation(&self, request: &Value) -> bool {
        request["resourceType"] == "Document" && request["frameId"] == self.target.as_str()
    }

    fn close(self) {
        let context = json!({"browserContextId": self.context});
        // If the browser cannot close a page, the next page fails and restarts it.
        let _ = self.connection.send(None, "Target.disposeBrowserContext", context, self.deadline);
    }
}

/// Makes clock and random numbers the same in every run. The clock advances by a millisecond per reading, because
/// some scripts wait for it.
const FIXED_SCRIPT: &str = r"(() => {
  let now = UNIX_MILLIS, ticks = 0, seed = 88172645;
  const Real = Date;
  const next = () => now + ticks++;
  const Fixed = function (...given) {
    if (!new.target) return new Real(next()).toString();
    return given.length ? new Real(...given) : new Real(next());
  };
  Fixed.prototype = Real.prototype;
  Fixed.now = next; Fixed.parse = Real.parse; Fixed.UTC = Real.UTC;
  Object.defineProperty(Real.prototype, 'constructor', {value: Fixed});
  globalThis.Date = Fixed;
  const random = () => {
    seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
    return (seed >>> 0) / 4294967296;
  };
  Math.random = random;
  if (globalThis.crypto) crypto.getRandomValues = (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = random() * 256;
    return array;
  };
})();";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn document(page: &BrowserPage<'_>) -> CapturedResource {
    CapturedResource {
        status: 200,
        content_type: "text/html; charset=utf-8".into(),
        body: page.html.as_bytes().to_vec(),
        ..CapturedResource::default()
    }
}

/// Other hosts grant access to their fonts, modules and data. They did so when these were captured.
fn grants(request: &Value) -> Vec<Value> {
    let headers = request["request"]["headers"].as_object();
    let field = |wanted: &str| {
        let found = headers?.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        found.1.as_str().map(str::to_string)
    };
    let origin = field("Origin").unwrap_or_else(|| "*".into());
    let mut grants = vec![json!({"name": "Access-Control-Allow-Origin", "value": origin})];
    if origin != "*" {
        grants.push(json!({"name": "Access-Control-Allow-Credentials", "value": "true"}));
    }
    let preflight_fields = [
        ("Access-Control-Request-Headers", "Access-Control-Allow-Headers"),
        ("Access-Control-Request-Method", "Access-Control-Allow-Methods"),
    ];
    for (wanted_name, grant) in preflight_fields {
        grants.extend(field(wanted_name).map(|value| json!({"name": grant, "value": value})));
    }
    grants
}

/// The response to a preflight. The browser then sends the request itself, which reaches the host.
fn preflight() -> CapturedResource {
    CapturedResource { status: 204, ..CapturedResource::default() }
}

fn look_up(request: &Value, answers: &RequestHandler, deadline: Instant) -> Option<CapturedResource> {
    let details = &request["request"];
    let url = details["url"].as_str()?;
    let url = url.split('#').next().unwrap_or(url);
    if url.len() > MAX_URL_BYTES || Instant::now() >= deadline {
        return None;
    }
    let method = details["method"].as_str().unwrap_or("GET");
    let is_plain = matches!(method, "GET" | "HEAD");
    let request = BrowserRequest {
        url: url.to_string(),
        method: if is_plain { "GET" } else { method }.to_string(),
        fields: script_fields(&details["headers"]),
        body: if is_plain { Vec::new() } else { request_body(details)? },
    };
    answers(&request, deadline)
}

/// The fields that a script may add to a request, and that servers of data expect.
fn script_fields(headers: &Value) -> Vec<(String, String)> {
    let is_set = |name: &str| {
        let name = name.to_ascii_lowercase();
        matches!(name.as_str(), "content-type" | "cookie" | "authorization") || name.starts_with("x-")
    };
    let headers = headers.as_object().into_iter().flatten().filter(|(name, _)| is_set(name));
    let text = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_string())));
    text.filter(|(name, value)| name.len() + value.len() <= MAX_FIELD_BYTES).take(MAX_FIELDS).collect()
}

/// The body of a request; `None` if it is too long, or only in files.
fn request_body(details: &Value) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    match details["postDataEntries"].as_array() {
        Some(entries) => {
            for entry in entries {
                body.extend(BASE64.decode(entry["bytes"].as_str()?.as_bytes()).ok()?);
            }
        }
        None if details["hasPostData"] == true => return None,
        None => body.extend_from_slice(details["postData"].as_str().unwrap_or_default().as_bytes()),
    }
    (body.len() <= MAX_BODY_BYTES).then_some(body)
}
