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
Archived pages are at /web/<time>/<url>, their calendar at /web/*/<url>. Archived content has a separate origin, on the second port.

Examples:
  perennial serve
  perennial serve --listen 127.0.0.1:9000 --replay-listen 127.0.0.1:9001
  perennial serve --archive news --archive weather
  perennial serve --admin
  perennial serve --allow-origin https://replayweb.page
  perennial serve --listen 0.0.0.0:8080 --token-file ~/.perennial-token --allow-host archive.example.org";

/// The default address of the server.
pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Serve the dashboard, replay and APIs.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Serve {
    /// Address for the dashboard and APIs
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "HOST:PORT")]
    listen: SocketAddr,

    /// Address for archived content [default: the next port]
    #[arg(long, value_name = "HOST:PORT")]
    replay_listen: Option<SocketAddr>,

    /// Replay the captures closest in time, not the ones that were valid at the time of the page
    #[arg(long)]
    closest: bool,

    /// Additional name of this server, such as archive.example.org; repeatable
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Allow requests of scripts from this origin, such as https://replayweb.page; repeatable
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Require the bearer token in FILE (created if missing)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Allow admin actions on the dashboard: prints a URL that makes one browser an admin
    #[arg(long)]
    admin: bool,

    /// Allow admin actions of browsers and programs with the token in FILE (created if missing)
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,

    /// Serve everybody, on any address
    #[arg(long, conflicts_with = "token_file")]
    public: bool,
}

impl Serve {
    /// An archive is served beyond this machine only on request.
    fn options(&self) -> anyhow::Result<Options> {
        let addresses = [Some(self.listen), self.replay_listen];
        let is_open = addresses.iter().flatten().any(|address| !address.ip().is_loopback());
        if is_open && !self.public && self.token_file.is_none() {
            bail!("{} can be reached from other machines: use --token-file FILE, or --public", self.listen);
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
            let admin_login = server.admin_login_url();
            let facts =
                json!({ "url": origins.main, "replay": origins.replay, "archives": names, "admin_login": admin_login });
            context.print(&facts, |out| {
                writeln!(
                    out,
                    "serving {} at {}/ (archived content at {})",
                    names.join(", "),
                    origins.main,
                    origins.replay
                )?;
                match &admin_login {
                    Some(url) => writeln!(out, "for admin actions open once: {url}"),
                    None => Ok(()),
                }
            })?;
            let mut signals = Signals::new()?;
            bound.run(signals.next()).await
        })?;
        Ok(Exit::Done)
    }
}

/// Serves an archive to this machine on a thread, as long as the process lives. Without `listen` it uses the default address, or a free
/// port if that is taken.
pub(super) fn serve_beside(
    archive: Archive,
    listen: Option<SocketAddr>,
    operate: Option<AdminOptions>,
) -> anyhow::Result<()> {
    if let Some(open) = listen.filter(|address| !address.ip().is_loopback()) {
        bail!(
            "{open} can be reached from other machines: use `perennial serve --token-file FILE` in addition to the crawl"
        );
    }
    std::thread::spawn(move || {
        if let Err(error) = run_beside(archive, listen, operate, false) {
            note(format!("the dashboard is not served: {error:#}"));
        }
    });
    Ok(())
}

/// Serves an archive to this machine with admin actions, until a signal.
pub(super) fn serve_here(archive: Archive) -> anyhow::Result<()> {
    run_beside(archive, None, Some(AdminOptions::default()), true)
}

fn run_beside(
    archive: Archive,
    requested: Option<SocketAddr>,
    operate: Option<AdminOptions>,
    until_signal: bool,
) -> anyhow::Result<()> {
    let usual: SocketAddr = DEFAULT_LISTEN.parse()?;
    listen::runtime()?.block_on(async {
        let options = |at: SocketAddr| Options { operate: operate.clone(), ..Options::on_loopback(at) };
        let bound = match listen::bind(vec![archive.clone()], options(requested.unwrap_or(usual))).await {
            Err(_) if requested.is_none() => {
                let anywhere = SocketAddr::new(usual.ip(), 0);
                listen::bind(vec![archive], options(anywhere)).await?
            }
            bound => bound?,
        };
        note(format!("the dashboard is at {}/", bound.server().origins().main));
        if let Some(url) = bound.server().admin_login_url() {
            note(format!("for admin actions open once: {url}"));
        }
        if !until_signal {
            return bound.run(std::future::pending()).await;
        }
        let mut signals = Signals::new()?;
        bound.run(signals.next()).await
    })
}
