//! `perennial view`: an archived page -> its URL on a server of this machine, which is started if none runs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::raw::{self, UrlAt};
use super::signals::Signals;
use super::{Context, Exit};
use perennial_server::{Options, listen};

/// Time limit for the response of a running server.
const PATIENCE: Duration = Duration::from_secs(2);

/// A longer response is not from a Perennial server.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

const AFTER_HELP: &str = "\
If `perennial serve` serves this archive at --listen, that server is used. Otherwise a server is started, on a free port if that one is \
taken, and runs until it is stopped. The capture is the one closest to TIME, or the latest one. TIME is 2026-11-16T09:30:00Z, 2026-11-16, \
20261116, or a time ago such as 3d. `--raw --json` prints metadata of the capture.

Examples:
  perennial view https://news.example/
  perennial view https://news.example/@2026-11-16
  perennial view --no-browser https://news.example/
  perennial view --raw https://news.example/@2026-11-16 > page.html
  perennial view --response https://news.example/logo.png@20261116 > response.http";

/// Open an archived page in a browser, or print its content.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ViewArgs {
    /// URL of the page, with @TIME for a capture other than the latest
    #[arg(value_name = "URL[@TIME]", value_parser = UrlAt::parse)]
    page: UrlAt,

    /// Address of the server
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "HOST:PORT")]
    listen: SocketAddr,

    /// Print the URL only
    #[arg(long)]
    no_browser: bool,

    /// Print the archived body instead
    #[arg(long, conflicts_with_all = ["listen", "no_browser"])]
    raw: bool,

    /// Print the stored response: status line, fields, and the body with its codings
    #[arg(long, conflicts_with_all = ["listen", "no_browser"])]
    response: bool,
}

impl ViewArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.raw || self.response {
            return raw::print(context, &self.page, self.response);
        }
        let archive = context.open()?;
        let root = archive.root().canonicalize()?;
        if let Some(prefix) = running(self.listen, &root) {
            self.show(context, &prefix)?;
            return Ok(Exit::Done);
        }
        listen::runtime()?.block_on(async {
            let bound = match listen::bind(vec![archive.clone()], Options::on_loopback(self.listen)).await {
                Ok(bound) => bound,
                Err(_) => {
                    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
                    listen::bind(vec![archive], Options::on_loopback(anywhere)).await?
                }
            };
            let prefix = bound.server().origins().main.clone();
            self.show(context, &prefix)?;
            context.note("serving until you stop it with Ctrl-C");
            let mut signals = Signals::new()?;
            bound.run(signals.next()).await
        })?;
        Ok(Exit::Done)
    }

    fn show(&self, context: &Context, prefix: &str) -> anyhow::Result<()> {
        let time = self.page.time.unwrap_or_else(perennial_archive::now);
        let url = format!("{prefix}/web/{}/{}", time.to_digits14(), self.page.url);
        context.print(&json!({ "url": url }), |out| writeln!(out, "{url}"))?;
        if !self.no_browser {
            open_browser(&url);
        }
        Ok(())
    }
}

/// The URL prefix of this archive on a running server, if that serves it.
fn running(at: SocketAddr, root: &Path) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET /status HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut response).ok()?;
    let status: Value = serde_json::from_str(response.split_once("\r\n\r\n")?.1.trim()).ok()?;
    let folders = status["folders"].as_array()?;
    let place = folders.iter().position(|folder| folder.as_str().map(Path::new) == Some(root))?;
    let base = status["bases"][place].as_str()?;
    Some(format!("{}{base}", status["url"].as_str()?))
}

/// Opens a URL in the desktop's browser. If that fails, the user has the printed URL.
fn open_browser(url: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if has_desktop || cfg!(target_os = "macos") {
        let _ = Command::new(program)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}
