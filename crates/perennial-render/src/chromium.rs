//! A page and captured requisites -> [`Layout`] through Chromium, scripts included.
//!
//! Every request is answered from the archive and none reaches the network. Scripts run in virtual time from the
//! moment of the capture, with the same clock and the same random numbers at every run. Threads and installed fonts still
//! make small differences between runs and machines.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use perennial_core::layout::{Layout, VIEWPORT_HEIGHT, VIEWPORT_WIDTH};
use serde_json::{Value, json};

use crate::cdp::{BrowserError, Connection, find_browser};
use crate::resource::{Captured, Lookup};
use crate::snapshot;

/// How the browser is run.
#[derive(Clone, Debug)]
pub struct BrowserOptions {
    /// The executable; without a value it is searched for.
    pub program: Option<PathBuf>,
    /// Longest time for one page.
    pub time: Duration,
    /// Whether scripts run.
    pub run_scripts: bool,
    /// Virtual time that scripts get after the page has loaded.
    pub script_time: Duration,
}

impl Default for BrowserOptions {
    fn default() -> BrowserOptions {
        BrowserOptions {
            program: None,
            time: Duration::from_secs(30),
            run_scripts: true,
            script_time: Duration::from_secs(3),
        }
    }
}

/// A page to be laid out.
#[derive(Clone, Copy, Debug)]
pub struct BrowserPage<'a> {
    /// Address of the page.
    pub url: &'a str,
    /// Its text, already decoded.
    pub html: &'a str,
    /// The moment that scripts see, in milliseconds since 1970.
    pub unix_millis: i64,
}

/// A page as a browser laid it out.
#[derive(Clone, Debug)]
pub struct BrowserLayout {
    /// Boxes and styles.
    pub layout: Layout<'static>,
    /// The screenshot as PNG, if it was asked for.
    pub screenshot: Option<Vec<u8>>,
    /// Time for loading and the snapshot, in a tab that was already open.
    pub time: Duration,
}

/// One answer that a live page received.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveResponse {
    /// Address asked for.
    pub url: String,
    /// HTTP method.
    pub method: String,
    /// HTTP status.
    pub status: u16,
    /// Headers in the order received.
    pub headers: Vec<(String, String)>,
    /// The body without content encodings.
    pub body: Vec<u8>,
}

/// What a browser saw of a live page.
#[derive(Clone, Debug)]
pub struct LivePage {
    /// Every answer, in the order received.
    pub responses: Vec<LiveResponse>,
    /// The document after its scripts have run, as HTML.
    pub html: String,
    /// Boxes and styles.
    pub layout: Layout<'static>,
}

/// A browser that is started when first needed and again after a crash or a hang.
pub struct Chromium {
    options: BrowserOptions,
    running: Option<(Connection, String)>,
    n_restarts: u64,
}

impl Chromium {
    /// A browser with these options; it starts with the first page.
    pub fn new(options: BrowserOptions) -> Chromium {
        Chromium { options, running: None, n_restarts: 0 }
    }

    /// How often the browser had to be started anew.
    pub fn n_restarts(&self) -> u64 {
        self.n_restarts
    }

    /// Name and version, as recorded in layouts.
    pub fn engine(&mut self) -> Result<String, BrowserError> {
        self.connection().map(|(_, engine)| engine.clone())
    }

    /// Lays out a captured page. Every request is answered from the archive.
    pub fn layout(
        &mut self,
        page: &BrowserPage<'_>,
        lookup: &Lookup,
        wants_screenshot: bool,
    ) -> Result<BrowserLayout, BrowserError> {
        let options = self.options.clone();
        self.run(|connection, engine| {
            let mut visit = Visit::open(connection, &options)?;
            visit.fix_clock_and_chance(page.unix_millis)?;
            let began = Instant::now();
            visit.answer_from_archive(page, lookup)?;
            let snapshot = visit.snapshot()?;
            let time = began.elapsed();
            let layout = snapshot::layout(&snapshot, page.url, engine);
            let screenshot = if wants_screenshot { Some(visit.screenshot(&layout)?) } else { None };
            visit.close();
            Ok(BrowserLayout { layout, screenshot, time })
        })
    }

    /// The document after its scripts have run, as HTML; every request is answered by `lookup`.
    pub fn document(&mut self, page: &BrowserPage<'_>, lookup: &Lookup) -> Result<String, BrowserError> {
        let options = self.options.clone();
        self.run(|connection, _| {
            let mut visit = Visit::open(connection, &options)?;
            visit.answer_from_archive(page, lookup)?;
            let html = visit.outer_html()?;
            visit.close();
            Ok(html)
        })
    }

    /// Visits a live page over the network and keeps every answer it received.
    pub fn visit_live(&mut self, url: &str) -> Result<LivePage, BrowserError> {
        let options = self.options.clone();
        self.run(|connection, engine| {
            let mut visit = Visit::open(connection, &options)?;
            let responses = visit.capture(url)?;
            let snapshot = visit.snapshot()?;
            let html = visit.outer_html()?;
            visit.close();
            Ok(LivePage { responses, html, layout: snapshot::layout(&snapshot, url, engine) })
        })
    }

    /// Runs one page. After a crash or a hang the browser is ended, and the next page gets a new one.
    fn run<T>(
        &mut self,
        visit: impl FnOnce(&mut Connection, &str) -> Result<T, BrowserError>,
    ) -> Result<T, BrowserError> {
        let (connection, engine) = self.connection()?;
        let outcome = visit(connection, engine);
        if matches!(outcome, Err(BrowserError::Ended(_) | BrowserError::TimedOut(_))) {
            self.running = None;
            self.n_restarts += 1;
        }
        outcome
    }

    fn connection(&mut self) -> Result<&mut (Connection, String), BrowserError> {
        let running = match self.running.take() {
            Some(running) => running,
            None => {
                let program = find_browser(self.options.program.as_deref())?;
                let mut connection = Connection::start(&program)?;
                let deadline = Instant::now() + self.options.time;
                let version = connection.call(None, "Browser.getVersion", json!({}), deadline)?;
                let engine = version["product"].as_str().unwrap_or("Chrome").to_string();
                (connection, engine)
            }
        };
        Ok(self.running.insert(running))
    }
}

/// One page in a context of its own, without cookies or caches of other pages.
struct Visit<'a> {
    connection: &'a mut Connection,
    session: String,
    context: String,
    deadline: Instant,
    script_millis: u64,
}

impl<'a> Visit<'a> {
    fn open(connection: &'a mut Connection, options: &BrowserOptions) -> Result<Visit<'a>, BrowserError> {
        let deadline = Instant::now() + options.time;
        let context = connection.call(
            None,
            "Target.createBrowserContext",
            json!({"disposeOnDetach": true}),
            deadline,
        )?;
        let context = text(&context["browserContextId"]);
        let target = connection.call(
            None,
            "Target.createTarget",
            json!({"url": "about:blank", "browserContextId": context}),
            deadline,
        )?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = text(&connection.call(None, "Target.attachToTarget", attach, deadline)?["sessionId"]);
        let script_millis = options.script_time.as_millis() as u64;
        let mut visit = Visit { connection, session, context, deadline, script_millis };
        visit.call("Page.enable", json!({}))?;
        let metrics = json!({
            "width": VIEWPORT_WIDTH as u32, "height": VIEWPORT_HEIGHT as u32, "deviceScaleFactor": 1, "mobile": false
        });
        visit.call("Emulation.setDeviceMetricsOverride", metrics)?;
        if !options.run_scripts {
            visit.call("Emulation.setScriptExecutionDisabled", json!({"value": true}))?;
        }
        Ok(visit)
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, BrowserError> {
        self.connection.call(Some(&self.session), method, params, self.deadline)
    }

    /// Sends a command without waiting. If it fails, a later command fails too.
    fn tell(&mut self, method: &str, params: Value) -> Result<(), BrowserError> {
        self.connection.send(Some(&self.session), method, params).map(|_| ())
    }

    fn fix_clock_and_chance(&mut self, unix_millis: i64) -> Result<(), BrowserError> {
        let source = FIXED_SCRIPT.replace("UNIX_MILLIS", &unix_millis.to_string());
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": source}))?;
        Ok(())
    }

    /// Navigates and answers until the page has loaded and its scripts have used up their virtual time.
    fn answer_from_archive(&mut self, page: &BrowserPage<'_>, lookup: &Lookup) -> Result<(), BrowserError> {
        self.call("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]}))?;
        self.tell("Page.navigate", json!({"url": page.url}))?;
        let mut is_first = true;
        let mut has_loaded = false;
        loop {
            let event = match self.connection.event(self.deadline) {
                // A page that does not finish loading is taken as it is.
                Err(BrowserError::TimedOut(_)) if !is_first => return self.stop(),
                other => other?,
            };
            if event["sessionId"] != self.session.as_str() {
                continue;
            }
            match event["method"].as_str().unwrap_or_default() {
                "Fetch.requestPaused" => {
                    let found =
                        if is_first { Some(document(page)) } else { look_up(&event["params"], lookup) };
                    is_first = false;
                    self.answer(&event["params"], found)?;
                }
                "Page.loadEventFired" if !has_loaded => {
                    has_loaded = true;
                    let policy =
                        json!({"policy": "pauseIfNetworkFetchesPending", "budget": self.script_millis});
                    self.tell("Emulation.setVirtualTimePolicy", policy)?;
                }
                "Emulation.virtualTimeBudgetExpired" => return Ok(()),
                "Page.javascriptDialogOpening" => {
                    self.tell("Page.handleJavaScriptDialog", json!({"accept": false}))?
                }
                "Inspector.targetCrashed" => return Err(BrowserError::Ended("the page crashed it".into())),
                _ => {}
            }
        }
    }

    fn stop(&mut self) -> Result<(), BrowserError> {
        self.deadline += Duration::from_secs(5);
        self.tell("Page.stopLoading", json!({}))
    }

    fn answer(&mut self, request: &Value, found: Option<Captured>) -> Result<(), BrowserError> {
        let id = &request["requestId"];
        match found {
            Some(captured) => {
                let headers = json!([
                    {"name": "Content-Type", "value": captured.content_type},
                    // Fonts and modules of other hosts need this header. It was granted when they were captured.
                    {"name": "Access-Control-Allow-Origin", "value": "*"}
                ]);
                let status = if captured.status == 0 { 200 } else { captured.status };
                let body = BASE64.encode(&captured.body);
                let answer = json!({"requestId": id, "responseCode": status, "responseHeaders": headers, "body": body});
                self.tell("Fetch.fulfillRequest", answer)
            }
            None => {
                self.tell("Fetch.failRequest", json!({"requestId": id, "errorReason": "AddressUnreachable"}))
            }
        }
    }

    fn snapshot(&mut self) -> Result<Value, BrowserError> {
        self.call("DOMSnapshot.captureSnapshot", json!({"computedStyles": snapshot::STYLES}))
    }

    fn screenshot(&mut self, layout: &Layout) -> Result<Vec<u8>, BrowserError> {
        let clip = json!({
            "x": 0, "y": 0, "width": VIEWPORT_WIDTH, "height": layout.height.clamp(1.0, 16_000.0), "scale": 1
        });
        let shot = self.call(
            "Page.captureScreenshot",
            json!({"format": "png", "clip": clip, "captureBeyondViewport": true}),
        )?;
        let data = shot["data"].as_str().unwrap_or_default();
        BASE64.decode(data.as_bytes()).map_err(|error| BrowserError::Refused {
            method: "Page.captureScreenshot".into(),
            message: error.to_string(),
        })
    }

    /// Navigates over the network. The page is done when no request was made for half a second after loading.
    fn capture(&mut self, url: &str) -> Result<Vec<LiveResponse>, BrowserError> {
        self.call("Fetch.enable", json!({"patterns": [{"urlPattern": "*", "requestStage": "Response"}]}))?;
        self.tell("Page.navigate", json!({"url": url}))?;
        let mut responses = Vec::new();
        let mut has_loaded = false;
        loop {
            let until = if has_loaded {
                self.deadline.min(Instant::now() + Duration::from_millis(500))
            } else {
                self.deadline
            };
            let event = match self.connection.event(until) {
                Err(BrowserError::TimedOut(_)) if has_loaded || !responses.is_empty() => break,
                other => other?,
            };
            if event["sessionId"] != self.session.as_str() {
                continue;
            }
            match event["method"].as_str().unwrap_or_default() {
                "Fetch.requestPaused" => responses.push(self.keep(&event["params"])?),
                "Page.loadEventFired" => has_loaded = true,
                "Page.javascriptDialogOpening" => {
                    self.tell("Page.handleJavaScriptDialog", json!({"accept": false}))?
                }
                "Inspector.targetCrashed" => return Err(BrowserError::Ended("the page crashed it".into())),
                _ => {}
            }
        }
        self.deadline = self.deadline.max(Instant::now() + Duration::from_secs(5));
        responses.retain(|response: &LiveResponse| response.status != 0);
        Ok(responses)
    }

    fn keep(&mut self, request: &Value) -> Result<LiveResponse, BrowserError> {
        let id = json!({"requestId": request["requestId"]});
        let status = request["responseStatusCode"].as_u64().unwrap_or(0) as u16;
        let has_body = status != 0 && !(300..400).contains(&status);
        let body = match has_body.then(|| self.call("Fetch.getResponseBody", id.clone())) {
            Some(Ok(answer)) => body_of(&answer),
            Some(Err(BrowserError::Refused { .. })) | None => Vec::new(),
            Some(Err(error)) => return Err(error),
        };
        self.tell("Fetch.continueRequest", id)?;
        let headers = request["responseHeaders"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(LiveResponse {
            url: text(&request["request"]["url"]),
            method: text(&request["request"]["method"]),
            status,
            headers: headers.iter().map(|header| (text(&header["name"]), text(&header["value"]))).collect(),
            body,
        })
    }

    fn outer_html(&mut self) -> Result<String, BrowserError> {
        let expression = "document.documentElement ? document.documentElement.outerHTML : ''";
        let result =
            self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}))?;
        Ok(text(&result["result"]["value"]))
    }

    fn close(self) {
        let context = json!({"browserContextId": self.context});
        // If the browser cannot close a page, the next page fails and starts a new browser.
        let _ = self.connection.send(None, "Target.disposeBrowserContext", context);
    }
}

/// Makes clock and random numbers the same at every run. The clock moves on by a millisecond at each reading, because some
/// scripts wait for it.
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

fn document(page: &BrowserPage<'_>) -> Captured {
    Captured {
        status: 200,
        content_type: "text/html; charset=utf-8".into(),
        body: page.html.as_bytes().to_vec(),
    }
}

fn look_up(request: &Value, lookup: &Lookup) -> Option<Captured> {
    let url = request["request"]["url"].as_str()?;
    let url = url.split('#').next().unwrap_or(url);
    lookup(url)
}

fn body_of(answer: &Value) -> Vec<u8> {
    let body = answer["body"].as_str().unwrap_or_default();
    if answer["base64Encoded"] == true {
        return BASE64.decode(body.as_bytes()).unwrap_or_default();
    }
    body.as_bytes().to_vec()
}
