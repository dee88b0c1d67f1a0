//! `perennial serve`: archives -> HTTP, until a signal.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;

use super::context::note;
use super::signals::Signals;
use super::{Context, Exit};
use perennial_archive::Archive;
use perennial_server::guard::read_or_make_token;
use perennial_server::{AdminOptions, Options, listen};

const AFTER_HELP: &str = "\
Archived pages are at /web/<time>/<address>, their calendar at /web/*/<address>. Archived content has an origin of \
its own, on the second port.

Examples:
  perennial serve
  perennial serve --listen 127.0.0.1:9000 --replay-listen 127.0.0.1:9001
  perennial serve --archive news --archive weather
  perennial serve --admin
  perennial serve --allow-origin https://replayweb.page
  perennial serve --listen 0.0.0.0:8080 --token-file ~/.perennial-token --allow-host archive.example.org";

/// Where the server listens unless it is told otherwise.
pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Serve the dashboard, replay and APIs.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Serve {
    /// Where to serve our own pages and APIs
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "HOST:PORT")]
    listen: SocketAddr,

    /// Where to serve archived content [default: the next port]
    #[arg(long, value_name = "HOST:PORT")]
    replay_listen: Option<SocketAddr>,

    /// Show what was captured closest in time, as other replay systems do, and not what was there at the page's time
    #[arg(long)]
    closest: bool,

    /// Another name of this server, such as archive.example.org; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Let scripts of this origin read what is served, such as https://replayweb.page; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Answer only who brings the token in this file, which is made if it is not there
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Let an operator change what is followed from the pages: prints an address at which one browser becomes one
    #[arg(long)]
    admin: bool,

    /// The same with a token in this file, which is made if it is not there, for browsers and programs
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,

    /// Answer anybody, on any address
    #[arg(long, conflicts_with = "token_file")]
    public: bool,
}

impl Serve {
    /// Beyond this machine an archive is served on purpose only.
    fn options(&self) -> anyhow::Result<Options> {
        let addresses = [Some(self.listen), self.replay_listen];
        let is_open = addresses.iter().flatten().any(|address| !address.ip().is_loopback());
        if is_open && !self.public && self.token_file.is_none() {
            bail!(
                "{} can be reached by other machines: ask for a token with --token-file FILE, or say --public",
                self.listen
            );
        }
        let token = self.token_file.as_deref().map(read_or_make_token).transpose()?;
        Ok(Options {
            listen: self.listen,
            replay_listen: self.replay_listen,
            closest: self.closest,
            allow_hosts: self.allow_host.clone(),
            allow_origins: self
                .allow_origin
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_owned())
                .collect(),
            token,
            public: self.public,
            operate: self.operating()?,
        })
    }

    fn operating(&self) -> anyhow::Result<Option<AdminOptions>> {
        let token = self.admin_token_file.as_deref().map(read_or_make_token).transpose()?;
        Ok((self.admin || token.is_some()).then_some(AdminOptions { token }))
    }

    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archives = context.open_all()?;
        let options = self.options()?;
        listen::runtime()?.block_on(async {
            let bound = listen::bind(archives, options).await?;
            let server = bound.server().clone();
            let origins = server.origins();
            let names: Vec<&str> = server.archives().iter().map(|served| served.name.as_str()).collect();
            let operator = server.admin_login_url();
            let told =
                json!({ "address": origins.main, "replay": origins.replay, "archives": names, "operator": operator });
            context.print(&told, |out| {
                writeln!(
                    out,
                    "serving {} at {}/ (archived content at {})",
                    names.join(", "),
                    origins.main,
                    origins.replay
                )?;
                match &operator {
                    Some(address) => writeln!(out, "to change what is followed, open once: {address}"),
                    None => Ok(()),
                }
            })?;
            let mut signals = Signals::new()?;
            bound.run(signals.next()).await
        })?;
        Ok(Exit::Done)
    }
}

/// Serves an archive to this machine on a thread of its own, for as long as the process lives. Without an address it is the usual
/// one, or any where another program has that.
pub(super) fn serve_beside(
    archive: Archive,
    listen: Option<SocketAddr>,
    operate: Option<AdminOptions>,
) -> anyhow::Result<()> {
    if let Some(open) = listen.filter(|address| !address.ip().is_loopback()) {
        bail!(
            "{open} can be reached by other machines: use `perennial serve` with --token-file FILE beside the crawl"
        );
    }
    std::thread::spawn(move || {
        if let Err(error) = run_beside(archive, listen, operate, false) {
            note(format!("the dashboard is not served: {error:#}"));
        }
    });
    Ok(())
}

/// Serves an archive to this machine and the person before it, until a signal.
pub(super) fn serve_here(archive: Archive) -> anyhow::Result<()> {
    run_beside(archive, None, Some(AdminOptions::default()), true)
}

fn run_beside(
    archive: Archive,
    asked: Option<SocketAddr>,
    operate: Option<AdminOptions>,
    until_signal: bool,
) -> anyhow::Result<()> {
    let usual: SocketAddr = DEFAULT_LISTEN.parse()?;
    listen::runtime()?.block_on(async {
        let options = |at: SocketAddr| Options { operate: operate.clone(), ..Options::on_loopback(at) };
        let bound = match listen::bind(vec![archive.clone()], options(asked.unwrap_or(usual))).await {
            Err(_) if asked.is_none() => {
                let anywhere = SocketAddr::new(usual.ip(), 0);
                listen::bind(vec![archive], options(anywhere)).await?
            }
            bound => bound?,
        };
        note(format!("the dashboard is at {}/", bound.server().origins().main));
        if let Some(address) = bound.server().admin_login_url() {
            note(format!("to change what is followed from it, open once: {address}"));
        }
        if !until_signal {
            return bound.run(std::future::pending()).await;
        }
        let mut signals = Signals::new()?;
        bound.run(signals.next()).await
    })
}
