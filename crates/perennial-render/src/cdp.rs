//! Sends commands to Chromium over its debugging pipe and receives responses and events.
//!
//! The pipe carries JSON texts that end in a zero byte. It needs no WebSocket and no port, and the browser ends when
//! the pipe closes. Messages are bounded in time and size, because a page can cause any number of them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::launch::{BrowserProcess, LaunchOptions};
use crate::pipe::{self, PipeEnd};

/// Longest message. Snapshots of large pages need a tenth of it.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// Most events before an awaited response, and the bytes of their messages.
const MAX_WAITING: (usize, usize) = (10_000, 64 << 20);

/// Why a command to the browser failed.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// There is no browser on this machine.
    #[error(
        "no Chromium found ({0}): install it (Debian: apt install chromium), name it with PERENNIAL_CHROMIUM, \
         or use --renderer layout"
    )]
    Missing(String),
    /// It could not be started, or it ended unexpectedly.
    #[error("Chromium ended unexpectedly ({0}): try again, or use --renderer layout")]
    Ended(String),
    /// It did not respond in time.
    #[error("Chromium did not finish {0} in time: allow more time, or use --renderer layout")]
    TimedOut(String),
    /// It did not start with its sandbox.
    #[error(
        "Chromium does not start in its sandbox ({0}): run as a user who may create user namespaces (see `perennial \
         doctor`), or switch the sandbox off with `browser_sandbox = false` in [crawl] or --no-sandbox"
    )]
    NoSandbox(String),
    /// The page made it use too much memory or send too many messages.
    #[error("Chromium exceeded its limits ({0}): the page needs too much; use --renderer layout for it")]
    OverLimit(String),
    /// It rejected a command.
    #[error("Chromium refused {method}: {message}")]
    Refused {
        method: String,
        /// The browser's message.
        message: String,
    },
}

/// Common names of the executable.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// Finds the browser: the given one, the one in `PERENNIAL_CHROMIUM`, or a common name in the search path.
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

pub struct BrowserConnection {
    browser: BrowserProcess,
    next_id: u64,
    /// Events before an awaited response, and the bytes of their messages.
    events: VecDeque<Value>,
    waiting_bytes: usize,
    /// Whether events are dropped.
    is_over: bool,
    /// The received part of the next message, and how much of it was searched for its end.
    partial: Vec<u8>,
    n_searched: usize,
}

impl BrowserConnection {
    /// Starts a headless browser without a network, with the cookies of a profile if there is one.
    pub fn start(
        program: &Path,
        options: LaunchOptions,
        profile: Option<&Path>,
    ) -> Result<BrowserConnection, BrowserError> {
        let browser = BrowserProcess::start(program, options, profile);
        Ok(BrowserConnection {
            browser: browser.map_err(|error| BrowserError::Ended(error.to_string()))?,
            next_id: 0,
            events: VecDeque::new(),
            waiting_bytes: 0,
            is_over: false,
            partial: Vec::new(),
            n_searched: 0,
        })
    }

    /// Whether the browser's pages are sandboxed, and whether it has a separate network namespace, as the system
    /// reports. A page must be open.
    pub fn isolation(&self) -> (bool, bool) {
        (self.browser.has_sandbox(), self.browser.has_own_network())
    }

    /// Keeps events, or drops them from now on.
    pub fn keep_events(&mut self, is_heard: bool) {
        self.is_over = !is_heard;
        if self.is_over {
            self.events.clear();
            self.waiting_bytes = 0;
        }
    }

    /// Sends a command without waiting for its response. Returns the command's number.
    pub fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
        deadline: Instant,
    ) -> Result<u64, BrowserError> {
        self.next_id += 1;
        let mut message = json!({"id": self.next_id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        pipe::write_all(&self.browser.input, &bytes, deadline).map_err(|end| self.error(end, method))?;
        Ok(self.next_id)
    }

    /// Sends a command and waits for its response. Events that arrive first are kept.
    pub fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
        deadline: Instant,
    ) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params, deadline)?;
        loop {
            let (message, n_bytes) = self.receive(deadline, method)?;
            if message["id"] == id {
                return answer(message, method);
            }
            if message["method"].is_string() && !self.is_over {
                self.waiting_bytes += n_bytes;
                self.events.push_back(message);
            }
            if self.events.len() > MAX_WAITING.0 || self.waiting_bytes > MAX_WAITING.1 {
                return Err(BrowserError::OverLimit(format!("more than {} events at once", MAX_WAITING.0)));
            }
        }
    }

    /// The next event of any session. After the deadline it fails, even if more events have arrived.
    pub fn event(&mut self, deadline: Instant) -> Result<Value, BrowserError> {
        if Instant::now() >= deadline {
            return Err(BrowserError::TimedOut("loading".into()));
        }
        if let Some(event) = self.events.pop_front() {
            if self.events.is_empty() {
                self.waiting_bytes = 0;
            }
            return Ok(event);
        }
        loop {
            let (message, _) = self.receive(deadline, "loading")?;
            // Responses to commands that nobody waits for are dropped.
            if message["method"].is_string() {
                return Ok(message);
            }
        }
    }

    /// The next message and its length.
    fn receive(&mut self, deadline: Instant, what: &str) -> Result<(Value, usize), BrowserError> {
        let mut chunk = [0; 1 << 16];
        loop {
            if let Some(at) = self.partial[self.n_searched..].iter().position(|byte| *byte == 0) {
                let length = self.n_searched + at;
                let message = serde_json::from_slice(&self.partial[..length]);
                self.partial.drain(..=length);
                self.n_searched = 0;
                let message =
                    message.map_err(|error| BrowserError::Ended(format!("it sent invalid JSON: {error}")))?;
                return Ok((message, length));
            }
            self.n_searched = self.partial.len();
            if self.partial.len() > MAX_MESSAGE_BYTES {
                let words = format!("a message of more than {} MB", MAX_MESSAGE_BYTES >> 20);
                return Err(BrowserError::OverLimit(words));
            }
            let n_read = pipe::read_some(&self.browser.output, &mut chunk, deadline);
            let n_read = n_read.map_err(|end| self.error(end, what))?;
            self.partial.extend_from_slice(&chunk[..n_read]);
        }
    }

    fn error(&self, end: PipeEnd, what: &str) -> BrowserError {
        match end {
            PipeEnd::Closed if self.browser.was_too_large() => {
                BrowserError::OverLimit("too much memory".into())
            }
            PipeEnd::Closed => BrowserError::Ended("its pipe closed".into()),
            PipeEnd::TimedOut => BrowserError::TimedOut(what.to_string()),
        }
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
