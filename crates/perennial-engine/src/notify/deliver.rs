//! Delivers a notice to its receiver, bounded in bytes and time.
//!
//! The user names the receivers, so private addresses are allowed. Only the head of a response is read. Redirects are
//! not followed, because their target is not chosen by the user.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use url::Url;

use super::notice::Notice;
use super::shape::{http_request, mail_message};
use super::smtp::{Mail, MailServer};
use perennial_archive::settings::{NoticeReceiver, NotifyRule, WebFormat};
use perennial_archive::{Archive, now};
use perennial_fetch::{Client, FetchLimits};

/// For connecting, and again for the response.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A program that runs longer is killed.
const MAX_COMMAND_TIME: Duration = Duration::from_secs(60);

/// Longest token or password.
const MAX_SECRET_BYTES: usize = 4 << 10;

/// Why a notice was not delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFailure {
    /// The reason in words.
    pub text: String,
    /// Whether the receiver rejected this notice but may accept others.
    pub is_refused: bool,
}

impl DeliveryFailure {
    /// The receiver is unreachable or cannot accept notices now.
    pub(super) fn away(text: impl Into<String>) -> DeliveryFailure {
        DeliveryFailure { text: text.into(), is_refused: false }
    }

    /// The receiver rejected this notice.
    pub(super) fn refused(text: impl Into<String>) -> DeliveryFailure {
        DeliveryFailure { text: text.into(), is_refused: true }
    }
}

/// A client for servers that the user names.
pub(crate) fn receiver_client(archive: &Archive) -> anyhow::Result<Client> {
    let table = &archive.settings().crawl;
    let limits = FetchLimits {
        connect_timeout: MAX_WAIT,
        head_timeout: MAX_WAIT,
        max_head_bytes: 64 << 10,
        ..FetchLimits::default()
    };
    let client =
        Client::new(concat!("perennial/", env!("CARGO_PKG_VERSION")).into(), limits, table.proxy.clone());
    let Some(file) = &table.tls_roots else { return Ok(client) };
    let file = archive.root().join(file);
    client.trusting(&file).map_err(|reason| {
        anyhow!("crawl.tls_roots in perennial.toml: {}: {reason}; name a PEM file", file.display())
    })
}

/// Delivers notices.
pub struct Notifier {
    runtime: Runtime,
    client: Client,
    archive: Archive,
}

impl Notifier {
    pub fn new(archive: &Archive) -> anyhow::Result<Notifier> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Notifier { runtime, client: receiver_client(archive)?, archive: archive.clone() })
    }

    /// Delivers a notice and waits for the acknowledgement.
    pub fn deliver(&self, rule: &NotifyRule, notice: &Notice) -> Result<(), DeliveryFailure> {
        match &rule.to {
            NoticeReceiver::Web(shape, url) => self.runtime.block_on(self.post(rule, *shape, url, notice)),
            NoticeReceiver::Command(words) => self.runtime.block_on(run(words, self.archive.root(), notice)),
            NoticeReceiver::Email(address) => self.runtime.block_on(self.mail(address, notice)),
        }
    }

    async fn post(
        &self,
        rule: &NotifyRule,
        shape: WebFormat,
        url: &Url,
        notice: &Notice,
    ) -> Result<(), DeliveryFailure> {
        let (url, text) = http_request(shape, url, notice);
        let mut fields = Vec::new();
        if let Some(file) = &rule.token_file {
            let token =
                self.secret(file).map_err(|error| DeliveryFailure::away(format!("token_file: {error:#}")))?;
            fields.push(("Authorization", format!("Bearer {token}")));
        }
        let status = self.client.post(&url, "application/json", &fields, &text.to_string(), true).await;
        match status.map_err(|error| DeliveryFailure::away(error.to_string()))? {
            200..=299 => Ok(()),
            // The receiver is reachable but rejects this notice. It may accept others.
            status @ (400 | 413 | 415 | 422) => {
                Err(DeliveryFailure::refused(format!("the receiver responded with {status}")))
            }
            status => Err(DeliveryFailure::away(format!("the receiver responded with {status}"))),
        }
    }

    async fn mail(&self, to: &str, notice: &Notice) -> Result<(), DeliveryFailure> {
        let settings = self.archive.settings();
        let table = &settings.smtp;
        let from = if table.from.is_empty() { to } else { &table.from };
        let password = table.password_file.as_deref().map(|file| self.secret(file)).transpose();
        let password =
            password.map_err(|error| DeliveryFailure::away(format!("smtp.password_file: {error:#}")))?;
        let tls_roots = settings.crawl.tls_roots.as_ref().map(|file| self.archive.root().join(file));
        let server = MailServer { table, password: password.as_deref(), tls_roots: tls_roots.as_deref() };
        let text = mail_message(notice, from, to, now());
        server.send(&Mail { from, to, text: &text }).await
    }

    /// The first line of a file.
    fn secret(&self, file: &Path) -> anyhow::Result<String> {
        let path = self.archive.root().join(file);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let line = text.lines().next().unwrap_or_default().trim().to_owned();
        match line.is_empty() || line.len() > MAX_SECRET_BYTES {
            true => Err(anyhow!("{}: expected the secret on the first line", path.display())),
            false => Ok(line),
        }
    }
}

/// Runs a program without a shell, with the notice on its standard input.
async fn run(words: &[String], folder: &Path, notice: &Notice) -> Result<(), DeliveryFailure> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let failed = |error: &dyn std::fmt::Display| DeliveryFailure::away(format!("{program}: {error}"));
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).current_dir(folder).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let text = serde_json::to_string(notice).map_err(|error| failed(&error))? + "\n";
    let stdin = child.stdin.take();
    let work = async {
        if let Some(mut stdin) = stdin {
            // A program may succeed without reading its input.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        child.wait().await
    };
    let ended = tokio::time::timeout(MAX_COMMAND_TIME, work).await;
    let ended =
        ended.map_err(|_| failed(&format!("it took longer than {MAX_COMMAND_TIME:?} and was killed")))?;
    match ended.map_err(|error| failed(&error))? {
        status if status.success() => Ok(()),
        status => Err(failed(&format!("it ended with {status}"))),
    }
}
