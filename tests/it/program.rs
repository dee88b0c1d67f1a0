//! Runs the real executable, and makes WARC files for it to read.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use perennial_archive::{ArchiveWriter, Exchange, ExchangeBody};
use perennial_core::rng::Rng;
use perennial_core::time::{Span, Timestamp};
use perennial_warc::{Compression, NewRecord, RecordIds, RevisitProfile, WarcWriter, sha1_label};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Exit code and output of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `perennial --archive ARCHIVE ARGS...`.
pub(crate) fn perennial<S: AsRef<std::ffi::OsStr>>(archive: &Path, args: impl IntoIterator<Item = S>) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_perennial")).arg("--archive").arg(archive).args(args))
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

impl Ran {
    /// Asserts that the run succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {} {}", self.stdout, self.stderr))
    }
}

/// A folder for one test, and the path of an archive in it.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("archive");
    (dir, archive)
}

/// A page with links.
pub(crate) fn html(title: &str, links: &[&str]) -> String {
    let links: String = links.iter().map(|href| format!("<a href=\"{href}\">{href}</a>\n")).collect();
    format!("<!doctype html><title>{title}</title><h1>{title}</h1>\n{links}")
}

/// Captures as a different tool would write them:
/// - two versions of a page with a revisit between them,
/// - a second page, a redirect and a style sheet.
///
/// `salt` makes the payloads differ from those of other files.
pub(crate) fn sample_warc(salt: &str, compression: Compression) -> Vec<u8> {
    let mut ids = RecordIds::new(salt.bytes().fold(7, |seed, byte| seed * 31 + u128::from(byte)));
    let mut out = WarcWriter::new(Vec::new(), 0, compression).unwrap();
    let day = |n: u32| Timestamp::parse(&format!("2024-03-{n:02}T08:00:00Z")).unwrap();
    let home = format!("http://{salt}.example/");
    let first = html(&format!("{salt} one"), &["/second", "http://elsewhere.example/x"]);
    let later = html(&format!("{salt} two"), &["/second", "/third"]);
    let second = html(&format!("{salt} second page"), &["/"]);
    let info = NewRecord::warcinfo(ids.next_id(), day(1), "sample", &[("software", "a test")]);
    out.write(&info).unwrap();
    let mut page = |n: u32, url: &str, kind: &str, status: &str, extra: &str, body: &str| {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{extra}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let id = ids.next_id();
        out.write(&NewRecord::response(id, day(n), url, head.as_bytes(), body.as_bytes())).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {salt}.example\r\n\r\n");
        let request_id = ids.next_id();
        out.write(&NewRecord::request(request_id, day(n), url, request.as_bytes(), b"").concurrent_to(id))
            .unwrap();
    };
    page(1, &home, "text/html; charset=utf-8", "200 OK", "", &first);
    page(2, &format!("{home}second"), "text/html", "200 OK", "", &second);
    page(2, &format!("{home}old"), "text/html", "301 Moved", "Location: /second\r\n", "");
    page(2, &format!("{home}style.css"), "text/css", "200 OK", "", &format!("/* {salt} */"));
    page(4, &home, "text/html", "200 OK", "", &later);
    let digest = sha1_label(first.as_bytes());
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let profile = RevisitProfile::IdenticalPayloadDigest;
    let revisit = NewRecord::revisit(ids.next_id(), day(3), &home, profile, head, Some(&digest));
    out.write(&revisit.refers_to(&home, day(1))).unwrap();
    out.into_inner()
}

pub(crate) fn sample_file(dir: &Path, salt: &str) -> PathBuf {
    let path = dir.join(format!("{salt}.warc.gz"));
    std::fs::write(&path, sample_warc(salt, Compression::Gzip(6))).unwrap();
    path
}

/// A file of `testdata`, by its path there.
pub(crate) fn testdata(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name).canonicalize().unwrap()
}

/// Appends a capture of `http://HOST/N` with this many incompressible bytes.
pub(crate) fn append_random(writer: &mut ArchiveWriter, host: &str, n: u64, n_bytes: u64) {
    let mut rng = Rng::new(n);
    let body: Vec<u8> = (0..n_bytes).map(|_| rng.bits() as u8).collect();
    writer
        .append(Exchange {
            url: &format!("http://{host}/{n}"),
            time: Timestamp::parse("2025-01-01").unwrap() + Span::from_secs(n as i64),
            ip: None,
            request_head: format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(),
            request_body: b"",
            response_head: b"HTTP/1.1 200 OK\r\n\r\n",
            body: ExchangeBody::Bytes(&body),
            truncated: None,
            metadata: &[],
            derived: &[],
            links: None,
        })
        .unwrap();
}

/// A TLS configuration for `localhost`, with the certificate of testdata/tls.
pub(crate) fn localhost_tls() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(testdata("tls/localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(testdata("tls/localhost.key")).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}
