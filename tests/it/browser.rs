//! A real Chromium that opens replayed pages over the real network, and a proxy that no request may reach.
//!
//! The browser requests the servers of a test directly. All other requests go to the proxy, which records what would
//! have left the machine.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use perennial_core::page::layout::Layout;
use perennial_render::cdp::{BrowserConnection, find_browser};
use perennial_render::launch::LaunchOptions;
use perennial_render::snapshot;
use serde_json::{Value, json};

use crate::crawled::Archive;
use crate::wait::found_within;

/// The time limit for one step of the browser.
const STEP: Duration = Duration::from_secs(20);

/// `perennial serve` on an archive. It ends with the test.
pub(crate) struct Serving {
    child: Child,
    pub(crate) main: String,
    pub(crate) replay: String,
}

impl Serving {
    pub(crate) fn start(archive: &Archive) -> Serving {
        Serving::start_with(archive, &["--listen", "127.0.0.1:0"])
    }

    pub(crate) fn start_with(archive: &Archive, options: &[&str]) -> Serving {
        let args = [&["serve", "--json"], options].concat();
        let mut child = archive.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while serde_json::from_str::<Value>(&text).is_err() {
            assert!(out.read_line(&mut text).unwrap() > 0, "the server ended: {text}");
        }
        let reported: Value = serde_json::from_str(&text).unwrap();
        let origin = |name: &str| reported[name].as_str().unwrap().trim_end_matches('/').to_string();
        Serving { main: origin("url"), replay: origin("replay"), child }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A proxy that records requests and answers none.
struct Forbidden {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Forbidden {
    fn listen() -> Forbidden {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let heard = requests.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 300];
                let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
                let n = stream.read(&mut head).unwrap_or(0);
                heard.lock().unwrap().push(String::from_utf8_lossy(&head[..n]).into_owned());
            }
        });
        Forbidden { address, requests }
    }
}

/// The browser with one tab.
pub(crate) struct Viewer {
    connection: BrowserConnection,
    session: String,
    forbidden: Forbidden,
    /// The script context of each frame, by frame id.
    contexts: HashMap<String, i64>,
    /// The errors that pages wrote to the console.
    pub(crate) errors: Vec<String>,
    /// The URLs that any frame requested.
    pub(crate) requested: Vec<String>,
    _dir: tempfile::TempDir,
}

impl Viewer {
    /// A browser that can reach only these servers, given as `host:port`.
    pub(crate) fn start(reachable: &[String]) -> Viewer {
        let dir = tempfile::tempdir().unwrap();
        let forbidden = Forbidden::listen();
        let program = dir.path().join("browser");
        let bypass = format!("<-loopback>;{}", reachable.join(";"));
        // If a flag occurs twice, Chromium uses the last one.
        let script = format!(
            "#!/bin/sh\nexec '{}' \"$@\" --ignore-certificate-errors '--proxy-server=http://{}' '--proxy-bypass-list={bypass}' \
             '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE ::1 , EXCLUDE localhost , EXCLUDE *.localhost'\n",
            find_browser(None).unwrap().display(),
            forbidden.address,
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let options = LaunchOptions { sandbox: false, own_network: false, ..LaunchOptions::default() };
        let mut connection = BrowserConnection::start(&program, options, None).unwrap();
        let deadline = Instant::now() + STEP;
        let mut call = |session: Option<&str>, method: &str, params: Value| {
            connection.call(session, method, params, deadline).unwrap()
        };
        let target = call(None, "Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = call(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let session = attached["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            call(Some(&session), &format!("{domain}.enable"), json!({}));
        }
        let (contexts, errors, requested) = (HashMap::new(), Vec::new(), Vec::new());
        let mut viewer = Viewer { connection, session, forbidden, contexts, errors, requested, _dir: dir };
        viewer.size(1280, 800, false);
        viewer
    }

    /// The requests of pages that reached the proxy and would have left the machine. Chromium also contacts its maker
    /// and search engines. These requests are excluded by host: test pages use only IP addresses and names that end in
    /// `.example` or `localhost`.
    pub(crate) fn escaped(&self) -> Vec<String> {
        let requests = self.forbidden.requests.lock().unwrap();
        requests
            .iter()
            .filter(|head| [".example", "127.0.0.", "localhost"].iter().any(|host| head.contains(host)))
            .cloned()
            .collect()
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let deadline = Instant::now() + STEP;
        let answer = self.connection.call(Some(&self.session), method, params, deadline).unwrap();
        self.hear();
        answer
    }

    /// Sets the size of the window and the colour scheme.
    pub(crate) fn size(&mut self, width: u32, height: u32, is_dark: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Processes the events received so far.
    fn hear(&mut self) {
        while let Ok(event) = self.connection.event(Instant::now() + Duration::from_millis(1)) {
            self.take(&event);
        }
    }

    fn take(&mut self, event: &Value) {
        let params = &event["params"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.executionContextCreated" => {
                let context = &params["context"];
                if context["auxData"]["isDefault"] == true {
                    let frame = text(&context["auxData"]["frameId"]);
                    self.contexts.insert(frame, context["id"].as_i64().unwrap_or_default());
                }
            }
            "Runtime.executionContextsCleared" => self.contexts.clear(),
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                self.errors.push(format!(
                    "{} {}",
                    text(&details["text"]),
                    text(&details["exception"]["description"])
                ));
            }
            "Runtime.consoleAPICalled" if params["type"] == "error" => {
                self.errors.push(params["args"].to_string())
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.errors.push(format!(
                    "{} {}",
                    text(&params["entry"]["text"]),
                    text(&params["entry"]["url"])
                ));
            }
            "Network.requestWillBeSent" => self.requested.push(text(&params["request"]["url"])),
            _ => {}
        }
    }

    /// Opens a URL and waits until the page and its frames have loaded.
    pub(crate) fn visit(&mut self, url: &str) {
        self.contexts.clear();
        self.errors.clear();
        self.requested.clear();
        self.call("Page.navigate", json!({"url": "about:blank"}));
        let params = json!({"url": url});
        let deadline = Instant::now() + STEP;
        self.connection.send(Some(&self.session), "Page.navigate", params, deadline).unwrap();
        let mut n_loads = 0;
        while let Ok(event) = self.connection.event(deadline) {
            self.take(&event);
            n_loads += usize::from(event["method"] == "Page.loadEventFired");
            let is_there = event["method"] == "Page.loadEventFired"
                && self.value("location.href", None).as_str().is_some_and(|href| href != "about:blank");
            if is_there {
                return;
            }
        }
        panic!("{url} did not load: {n_loads} other pages did");
    }

    /// The frame within the page, if any.
    fn frame(&mut self) -> Option<String> {
        let tree = self.call("Page.getFrameTree", json!({}));
        tree["frameTree"]["childFrames"][0]["frame"]["id"].as_str().map(str::to_string)
    }

    fn value(&mut self, expression: &str, context: Option<i64>) -> Value {
        let mut params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        if let Some(context) = context {
            params["contextId"] = context.into();
        }
        let deadline = Instant::now() + STEP;
        match self.connection.call(Some(&self.session), "Runtime.evaluate", params, deadline) {
            Ok(answer) if answer["exceptionDetails"].is_null() => answer["result"]["value"].clone(),
            Ok(answer) => json!(format!("threw {}", answer["exceptionDetails"]["exception"]["description"])),
            // The context was destroyed with its document.
            Err(error) => json!(format!("failed {error}")),
        }
    }

    /// Evaluates in the page itself.
    pub(crate) fn outside(&mut self, expression: &str) -> Value {
        let value = self.value(expression, None);
        self.hear();
        value
    }

    /// Evaluates in the frame that replays an archived page.
    pub(crate) fn inside(&mut self, expression: &str) -> Value {
        // A document's context exists only a moment after the document has loaded.
        let context = found_within(Duration::from_secs(3), || {
            self.hear();
            self.frame().and_then(|frame| self.contexts.get(&frame).copied())
        });
        let Some(context) = context else { return json!("no frame") };
        self.value(expression, Some(context))
    }

    /// Waits until an expression is true in the frame, or in the page if there is none.
    pub(crate) fn until(&mut self, is_inside: bool, expression: &str) {
        let mut last = Value::Null;
        let found = found_within(STEP, || {
            last = if is_inside { self.inside(expression) } else { self.outside(expression) };
            (last == true).then_some(())
        });
        assert!(found.is_some(), "{expression} stayed {last}; errors: {:?}", self.errors);
    }

    /// The layout of the page, or of the frame within it.
    pub(crate) fn layout(&mut self, is_inside: bool) -> Layout<'static> {
        let mut taken = self.call("DOMSnapshot.captureSnapshot", json!({"computedStyles": snapshot::STYLES}));
        if is_inside {
            taken["documents"] = json!([taken["documents"][1]]);
        }
        snapshot::layout(&taken, "", "test")
    }

    /// Saves a screenshot for people to inspect, if the environment variable names a folder.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("PERENNIAL_TEST_PICTURES") else { return };
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = data_encoding::BASE64.decode(shot["data"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::write(std::path::Path::new(&folder).join(name).with_extension("png"), bytes).unwrap();
    }
}
