//! `perennial serve`: archives -> HTTP, until a signal.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;
use url::Url;

use super::context::note;
use super::signals::Signals;
use super::{Context, Exit};
use perennial_archive::Archive;
use perennial_archive::manifest::files_behind;
use perennial_server::guard::read_or_make_token;
use perennial_server::{AdminOptions, Options, Origins, listen};

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
pub(super) struct ServeArgs {
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

    /// URL of the dashboard as browsers reach it through a proxy, such as https://archive.example
    #[arg(long, value_name = "URL", requires = "replay_url", value_parser = parse_origin)]
    url: Option<String>,

    /// URL of archived content as browsers reach it, such as https://archive.example:8443
    #[arg(long, value_name = "URL", requires = "url", value_parser = parse_origin)]
    replay_url: Option<String>,

    /// Add the rules in FILE to those that ignore cache busters in URLs
    #[arg(long, value_name = "FILE")]
    fuzzy_rules: Option<PathBuf>,

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

impl ServeArgs {
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
            proxied: self.proxied()?,
            fuzzy_rules: self.fuzzy_rules.clone(),
            operate: self.operating()?,
        })
    }

    fn proxied(&self) -> anyhow::Result<Option<Origins>> {
        let (Some(main), Some(replay)) = (self.url.clone(), self.replay_url.clone()) else { return Ok(None) };
        if main == replay {
            bail!(
                "--replay-url {replay}: the same as --url; archived content needs a different port or host name"
            );
        }
        Ok(Some(Origins { main, replay }))
    }

    fn operating(&self) -> anyhow::Result<Option<AdminOptions>> {
        let token = self.admin_token_file.as_deref().map(read_or_make_token).transpose()?;
        Ok((self.admin || token.is_some()).then_some(AdminOptions { token }))
    }

    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archives = context.open_all()?;
        let options = self.options()?;
        for archive in &archives {
            warn_of_old_state(context, archive);
        }
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

fn parse_origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none() {
        true => Ok(url.origin().ascii_serialization()),
        false => Err("write a scheme and a host, such as https://archive.example".to_string()),
    }
}

/// A state that was replaced by an older or empty one shows an archive with less in it.
fn warn_of_old_state(context: &Context, archive: &Archive) {
    // A state that cannot be read is reported when it is served.
    let behind = archive.store().and_then(|store| files_behind(archive, &store)).unwrap_or_default();
    if let Some(first) = behind.first() {
        context.note(format!(
            "the state lacks captures of {} WARC files, {first} is the first: the next command that writes adds them, such as \
             `perennial analyse`",
            behind.len()
        ));
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
