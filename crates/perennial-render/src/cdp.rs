//! Commands -> answers and events of Chromium, over its debugging pipe.
//!
//! The pipe carries JSON texts that end in a zero byte. It needs no WebSocket and no port, and the browser ends when the
//! pipe closes. Chromium reads file descriptor 3 and writes 4; a shell moves its standard streams there.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Why a command to the browser failed.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// There is no browser on this machine.
    #[error(
        "no Chromium found ({0}): install it (Debian: apt install chromium), name it with PERENNIAL_CHROMIUM, \
         or use --renderer layout"
    )]
    Missing(String),
    /// It could not be started or ended by itself.
    #[error("Chromium ended unexpectedly ({0}): try again, or use --renderer layout")]
    Ended(String),
    /// It did not answer in time.
    #[error("Chromium did not finish {0} in time: allow more time, or use --renderer layout")]
    TimedOut(String),
    /// It refused a command.
    #[error("Chromium refused {method}: {message}")]
    Refused {
        /// The command.
        method: String,
        /// The message of the browser.
        message: String,
    },
}

/// Usual names of the executable.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// Finds the browser: the given one, the one in `PERENNIAL_CHROMIUM`, or a usual name on the search path.
pub fn find_browser(given: Option<&Path>) -> Result<PathBuf, BrowserError> {
    let named =
        given.map(Path::to_path_buf).or_else(|| std::env::var_os("PERENNIAL_CHROMIUM").map(PathBuf::from));
    if let Some(path) = named {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(BrowserError::Missing(path.display().to_string()))
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    found.ok_or_else(|| BrowserError::Missing("looked for chromium and google-chrome on the PATH".into()))
}

/// A running browser.
pub struct Connection {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    next_id: u64,
    /// Events that came before an awaited answer.
    events: VecDeque<Value>,
    /// The browser's own folder, removed with it.
    _profile: TempDir,
}

impl Connection {
    /// Starts a browser without a window that makes no requests of its own. It also runs as root, as in a container.
    pub fn start(program: &Path) -> Result<Connection, BrowserError> {
        let ended = |error: io::Error| BrowserError::Ended(error.to_string());
        let profile = tempfile::Builder::new().prefix("perennial-chromium").tempdir().map_err(ended)?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
                "--disable-default-apps",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--mute-audio",
                "--force-color-profile=srgb",
                "--force-device-scale-factor=1",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(ended)?;
        let input = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| BrowserError::Ended("it has no pipe".into()))?;
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::with_capacity(1 << 16, stdout);
            let mut text = Vec::new();
            while reader.read_until(0, &mut text).is_ok_and(|n| n > 0) {
                text.pop();
                let Ok(value) = serde_json::from_slice(&text) else { break };
                text.clear();
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        Ok(Connection { child, input, output, next_id: 0, events: VecDeque::new(), _profile: profile })
    }

    /// Sends a command without waiting for its answer, and returns its number.
    pub fn send(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<u64, BrowserError> {
        self.next_id += 1;
        let mut message = json!({"id": self.next_id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let input = self.input.as_mut().ok_or_else(|| BrowserError::Ended("its pipe is closed".into()))?;
        input
            .write_all(&bytes)
            .and_then(|()| input.flush())
            .map_err(|error| BrowserError::Ended(error.to_string()))?;
        Ok(self.next_id)
    }

    /// Sends a command and waits for its answer. Events that come first are kept.
    pub fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
        deadline: Instant,
    ) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params)?;
        loop {
            let message = self.receive(deadline, method)?;
            if message["id"] == id {
                return answer(message, method);
            }
            if message["method"].is_string() {
                self.events.push_back(message);
            }
        }
    }

    /// The next event of any session.
    pub fn event(&mut self, deadline: Instant) -> Result<Value, BrowserError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        loop {
            let message = self.receive(deadline, "loading")?;
            // Answers to commands that nobody waits for are dropped.
            if message["method"].is_string() {
                return Ok(message);
            }
        }
    }

    fn receive(&mut self, deadline: Instant, what: &str) -> Result<Value, BrowserError> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.output.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => BrowserError::TimedOut(what.to_string()),
            RecvTimeoutError::Disconnected => BrowserError::Ended("its pipe closed".into()),
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Closing the pipe ends the browser with all its processes. A browser that hangs is killed.
        self.input = None;
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(mut message: Value, method: &str) -> Result<Value, BrowserError> {
    match message.get("error") {
        Some(error) => Err(BrowserError::Refused {
            method: method.to_string(),
            message: error["message"].as_str().unwrap_or("no words").to_string(),
        }),
        None => Ok(message["result"].take()),
    }
}
