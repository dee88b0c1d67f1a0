//! An e-mail -> a mail server: the little of SMTP (RFC 5321) that handing over one mail takes, with STARTTLS (RFC 3207) and AUTH PLAIN and
//! LOGIN (RFC 4954). Nothing secret goes over a connection that is not encrypted.

use std::path::Path;
use std::time::Duration;

use data_encoding::BASE64;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::deliver::Failure;
use perennial_archive::settings::{Security, SmtpTable};

/// Longer answers are not read on.
const MAX_REPLY_BYTES: usize = 16 << 10;

/// For all of it.
const MAX_TIME: Duration = Duration::from_secs(60);

/// One mail, and who it is from and for.
pub(super) struct Mail<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// Head and body, with the line ends of SMTP.
    pub(super) text: &'a str,
}

/// A server, and how to log in.
pub(super) struct MailServer<'a> {
    pub(super) table: &'a SmtpTable,
    pub(super) password: Option<&'a str>,
    /// Certificates to trust beside those that browsers trust.
    pub(super) tls_roots: Option<&'a Path>,
}

impl MailServer<'_> {
    /// Hands a mail over.
    pub(super) async fn send(&self, mail: &Mail<'_>) -> Result<(), Failure> {
        match tokio::time::timeout(MAX_TIME, self.hand_over(mail)).await {
            Ok(done) => done,
            Err(_) => Err(Failure::away(format!("the mail server took longer than {MAX_TIME:?}"))),
        }
    }

    async fn hand_over(&self, mail: &Mail<'_>) -> Result<(), Failure> {
        let Some((host, port)) = &self.table.server else {
            return Err(Failure::away(
                "no mail server: write server = \"mail.example.org:587\" below [smtp]",
            ));
        };
        let tcp = TcpStream::connect((host.trim_matches(['[', ']']), *port)).await;
        let tcp = tcp.map_err(|error| Failure::away(format!("cannot connect to {host}:{port}: {error}")))?;
        match self.table.security {
            Security::None => {
                let mut talk = Talk::new(tcp);
                talk.expect(220).await?;
                talk.greet().await?;
                talk.hand_over(mail).await
            }
            Security::Tls => {
                let mut talk = Talk::new(self.encrypt(host, tcp).await?);
                talk.expect(220).await?;
                self.go_on(&mut talk, mail).await
            }
            Security::StartTls => {
                let mut talk = Talk::new(tcp);
                talk.expect(220).await?;
                talk.greet().await?;
                talk.say("STARTTLS", 220).await.map_err(|failure| {
                    Failure::away(format!(
                        "{}; without TLS nothing is sent: set security below [smtp]",
                        failure.text
                    ))
                })?;
                // What came after the answer was not protected: it is thrown away with the buffer.
                let mut talk = Talk::new(self.encrypt(host, talk.stream).await?);
                self.go_on(&mut talk, mail).await
            }
        }
    }

    async fn encrypt(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin, Failure> {
        let failed = |reason: String| {
            Failure::away(format!(
                "TLS with {host} failed: {reason}; for an authority of your own set crawl.tls_roots"
            ))
        };
        let connector: TlsConnector = perennial_fetch::mail_tls(self.tls_roots).map_err(failed)?;
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|error| failed(error.to_string()))?;
        connector.connect(name, tcp).await.map_err(|error| failed(error.to_string()))
    }

    /// From the greeting on, over a connection that is encrypted.
    async fn go_on<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        talk: &mut Talk<S>,
        mail: &Mail<'_>,
    ) -> Result<(), Failure> {
        let can_do = talk.greet().await?;
        if !self.table.user.is_empty() {
            let Some(password) = self.password else {
                return Err(Failure::away("[smtp] has a user and no password_file"));
            };
            talk.log_in(&can_do, &self.table.user, password).await?;
        }
        talk.hand_over(mail).await
    }
}

/// A conversation with a server.
struct Talk<S> {
    stream: S,
    /// What came and was not read yet.
    rest: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    fn new(stream: S) -> Talk<S> {
        Talk { stream, rest: Vec::new() }
    }

    /// Sends a line and waits for an answer that begins as it should.
    async fn say(&mut self, line: &str, code: u16) -> Result<String, Failure> {
        let lost = |error: std::io::Error| Failure::away(format!("the mail server is gone: {error}"));
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.map_err(lost)?;
        self.stream.flush().await.map_err(lost)?;
        self.expect(code).await
    }

    async fn expect(&mut self, code: u16) -> Result<String, Failure> {
        let reply = self.reply().await?;
        match reply.code / 100 == code / 100 {
            true => Ok(reply.text),
            // 5xx: this mail is refused for good; 4xx: it may be taken later.
            false => {
                let said: String = reply.text.chars().take(200).collect();
                let text = format!(
                    "the mail server answered {} {}",
                    reply.code,
                    perennial_core::text::foreign::shown(&said)
                );
                Err(if reply.code >= 500 { Failure::refused(text) } else { Failure::away(text) })
            }
        }
    }

    async fn reply(&mut self) -> Result<Reply, Failure> {
        loop {
            if let Some((reply, length)) = read_reply(&self.rest).map_err(Failure::away)? {
                self.rest.drain(..length);
                return Ok(reply);
            }
            if self.rest.len() > MAX_REPLY_BYTES {
                return Err(Failure::away("the mail server's answer has no end"));
            }
            match self.stream.read_buf(&mut self.rest).await {
                Ok(0) => return Err(Failure::away("the mail server closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(Failure::away(format!("the mail server is gone: {error}"))),
            }
        }
    }

    /// Says hello, without giving away the name of this machine; what the server can do.
    async fn greet(&mut self) -> Result<String, Failure> {
        self.say("EHLO [127.0.0.1]", 250).await
    }

    async fn log_in(&mut self, can_do: &str, user: &str, password: &str) -> Result<(), Failure> {
        let ways = can_do.lines().find(|line| line.to_ascii_uppercase().starts_with("AUTH"));
        let has = |way: &str| {
            ways.is_some_and(|ways| ways.to_ascii_uppercase().split_whitespace().any(|own| own == way))
        };
        if has("PLAIN") || !has("LOGIN") {
            let secret = BASE64.encode(format!("\0{user}\0{password}").as_bytes());
            self.say(&format!("AUTH PLAIN {secret}"), 235).await?;
            return Ok(());
        }
        self.say("AUTH LOGIN", 334).await?;
        self.say(&BASE64.encode(user.as_bytes()), 334).await?;
        self.say(&BASE64.encode(password.as_bytes()), 235).await?;
        Ok(())
    }

    async fn hand_over(&mut self, mail: &Mail<'_>) -> Result<(), Failure> {
        self.say(&format!("MAIL FROM:<{}>", mail.from), 250).await?;
        self.say(&format!("RCPT TO:<{}>", mail.to), 250).await?;
        self.say("DATA", 354).await?;
        self.say(&format!("{}.", stuffed(mail.text)), 250).await?;
        // It is taken: whatever comes now changes nothing.
        let _ = self.say("QUIT", 221).await;
        Ok(())
    }
}

/// A line that begins with a dot gets another one, so that none is taken for the end.
fn stuffed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive("\r\n") {
        if line.starts_with('.') {
            out.push('.');
        }
        out.push_str(line);
    }
    if !out.ends_with("\r\n") {
        out.push_str("\r\n");
    }
    out
}

/// What a server answered: its number, and its lines without it.
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    code: u16,
    text: String,
}

/// The first whole answer and its length; `None` while it is not whole.
fn read_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, &'static str> {
    let mut text = String::new();
    let mut at = 0;
    while let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&bytes[at..at + end]);
        let line = line.trim_end_matches('\r');
        at += end + 1;
        let code =
            line.get(..3).and_then(|code| code.parse::<u16>().ok()).filter(|code| (200..600).contains(code));
        let code = code.ok_or("this is no mail server: its answer has no number")?;
        text.push_str(line.get(4..).unwrap_or_default());
        if line.as_bytes().get(3) != Some(&b'-') {
            return Ok(Some((Reply { code, text }, at)));
        }
        text.push('\n');
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_of_several_lines_are_one() {
        let bytes = b"250-mail.example\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS\r\n354 go";
        let (reply, length) = read_reply(bytes).unwrap().unwrap();
        assert_eq!(reply, Reply { code: 250, text: "mail.example\nAUTH PLAIN LOGIN\nSTARTTLS".into() });
        assert_eq!(read_reply(&bytes[length..]), Ok(None));
        assert!(read_reply(b"HTTP/1.1 400\r\n").is_err());
    }

    #[test]
    fn no_line_is_taken_for_the_end() {
        assert_eq!(stuffed(".\r\na\r\n..b"), "..\r\na\r\n...b\r\n");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some((_, length))) = read_reply(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
