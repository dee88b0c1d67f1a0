//! Sends e-mail with `lettre`. Secrets are sent over encrypted connections only.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, AsyncTokioStream, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::extension::ClientId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::deliver::DeliveryFailure;
use perennial_archive::settings::{SmtpSecurity, SmtpTable};

/// Most bytes read from a server before it is authenticated.
const MAX_READ_BYTES: usize = 256 << 10;

/// For the whole delivery.
const MAX_TIME: Duration = Duration::from_secs(60);

/// One mail, with its sender and receiver.
pub(super) struct Mail<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// Head and body with CRLF line ends.
    pub(super) text: &'a str,
}

/// A server and how to log in.
pub(super) struct MailServer<'a> {
    pub(super) table: &'a SmtpTable,
    pub(super) password: Option<&'a str>,
    /// Certificates to trust in addition to the usual ones.
    pub(super) tls_roots: Option<&'a Path>,
}

impl MailServer<'_> {
    pub(super) async fn send(&self, mail: &Mail<'_>) -> Result<(), DeliveryFailure> {
        match tokio::time::timeout(MAX_TIME, self.hand_over(mail)).await {
            Ok(done) => done,
            Err(_) => Err(DeliveryFailure::away(format!("the mail server took longer than {MAX_TIME:?}"))),
        }
    }

    async fn hand_over(&self, mail: &Mail<'_>) -> Result<(), DeliveryFailure> {
        let wrong = |error: &dyn std::fmt::Display| {
            DeliveryFailure::away(format!("{} or {} is not an e-mail address: {error}", mail.from, mail.to))
        };
        let from = mail.from.parse().map_err(|error| wrong(&error))?;
        let to = mail.to.parse().map_err(|error| wrong(&error))?;
        let envelope = Envelope::new(Some(from), vec![to]).map_err(|error| wrong(&error))?;
        let mut connection = self.connect().await?;
        // A permanent error rejects this mail only.
        connection.send(&envelope, mail.text.as_bytes()).await.map_err(|error| {
            match error.is_permanent() {
                true => DeliveryFailure::refused(describe_error(&error)),
                false => DeliveryFailure::away(describe_error(&error)),
            }
        })?;
        connection.abort().await;
        Ok(())
    }

    /// Connects, and logs in if the connection is encrypted.
    async fn connect(&self) -> Result<AsyncSmtpConnection, DeliveryFailure> {
        let Some((host, port)) = &self.table.server else {
            return Err(DeliveryFailure::away(
                "no mail server: write server = \"mail.example.org:587\" below [smtp]",
            ));
        };
        let host = host.trim_matches(['[', ']']);
        let hello = ClientId::default();
        let lost = |error: Error| DeliveryFailure::away(describe_error(&error));
        let no_tls = |reason: String| {
            DeliveryFailure::away(format!(
                "TLS with {host} failed: {reason}; for a private certificate authority set crawl.tls_roots"
            ))
        };
        if self.table.security == SmtpSecurity::Tls {
            let tls = Some(self.tls(host).map_err(no_tls)?);
            let opened = AsyncSmtpConnection::connect_tokio1((host, *port), None, &hello, tls, None).await;
            let connection = opened.map_err(|error| no_tls(describe_error(&error)))?;
            return self.log_in(connection).await;
        }
        let tcp = TcpStream::connect((host, *port)).await;
        let tcp =
            tcp.map_err(|error| DeliveryFailure::away(format!("cannot connect to {host}:{port}: {error}")))?;
        let stream = Box::new(UnbufferedStream { tcp, n_left: MAX_READ_BYTES });
        let mut connection =
            AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(lost)?;
        if self.table.security == SmtpSecurity::None {
            return Ok(connection);
        }
        if !connection.can_starttls() {
            return Err(DeliveryFailure::away(
                "the mail server does not offer STARTTLS, and mail is sent over TLS only: set security below [smtp]",
            ));
        }
        let tls = self.tls(host).map_err(no_tls)?;
        connection.starttls(tls, &hello).await.map_err(|error| no_tls(describe_error(&error)))?;
        self.log_in(connection).await
    }

    fn tls(&self, host: &str) -> Result<TlsParameters, String> {
        let mut builder =
            TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::WebpkiRoots);
        if let Some(file) = self.tls_roots {
            let pem = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let roots = Certificate::from_pem(&pem).map_err(|error| error.to_string())?;
            builder = builder.add_root_certificate(roots);
        }
        builder.build_rustls().map_err(|error| error.to_string())
    }

    async fn log_in(
        &self,
        mut connection: AsyncSmtpConnection,
    ) -> Result<AsyncSmtpConnection, DeliveryFailure> {
        let user = &self.table.user;
        if user.is_empty() {
            return Ok(connection);
        }
        let password =
            self.password.ok_or_else(|| DeliveryFailure::away("[smtp] has a user but no password_file"))?;
        let credentials = Credentials::new(user.clone(), password.to_owned());
        let response = connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await;
        response.map_err(|error| {
            DeliveryFailure::away(format!("cannot log in as {user}: {}; see [smtp]", describe_error(&error)))
        })?;
        Ok(connection)
    }
}

fn describe_error(error: &Error) -> String {
    let text: String = match std::error::Error::source(error) {
        Some(source) => source.to_string().chars().take(200).collect(),
        None => error.to_string(),
    };
    let text = perennial_core::text::untrusted::terminal_safe(&text);
    match error.status() {
        Some(code) => format!("the mail server responded with {code} {text}"),
        None => format!("the connection to the mail server was lost: {text}"),
    }
}

/// A connection that is read byte by byte. `lettre` keeps its read buffer across STARTTLS. An attacker could inject a
/// plain-text response that would count as one of the encrypted server. With single bytes the injected text becomes
/// part of the TLS handshake, which fails.
#[derive(Debug)]
struct UnbufferedStream {
    tcp: TcpStream,
    n_left: usize,
}

impl AsyncTokioStream for UnbufferedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.peer_addr()
    }
}

impl AsyncRead for UnbufferedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.n_left == 0 {
            return Poll::Ready(Err(io::Error::other("its responses are too long")));
        }
        let mut byte = [0];
        let mut read = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut read))?;
        self.n_left -= 1;
        buf.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UnbufferedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
