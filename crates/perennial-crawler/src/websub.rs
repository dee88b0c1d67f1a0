//! Hubs of feeds -> news at once: subscribes at hubs, listens where the user says that they reach this crawl, and makes feeds due
//! whose news a hub announces (WebSub; `perennial_core::feed::websub`).
//!
//! The listener takes a request a connection, few at a time, each bounded in bytes and time, and believes nothing that is not signed. What a
//! hub delivers is not archived: the feed is polled, and its own answer is.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use perennial_core::feed::MAX_FEED_BYTES;
use perennial_core::feed::websub::{Subscriptions, Told};
use perennial_core::url::PageId;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{Limits, transferred};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use url::Url;

use super::clock::Clock;
use super::visit::VisitContext;
use perennial_archive::random_seed;
use perennial_fetch::Framing;

/// Requests that are read at a time.
const MAX_REQUESTS: usize = 32;
/// Bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// A request that is not whole by then is given up.
const MAX_TIME: Duration = Duration::from_secs(15);
/// Hubs that are asked at a time: many feeds have the same one.
const MAX_ASKING: usize = 2;
/// Feeds with news that are not planned yet.
const MAX_WAITING: usize = 1_024;

/// Subscriptions of a crawl and what hubs announce.
pub(super) struct WebSub {
    subscriptions: Arc<Mutex<Subscriptions>>,
    /// The feeds that hubs announced news of.
    pub(super) notified: Receiver<PageId>,
    /// Turns at asking.
    asking: Arc<Semaphore>,
    /// Until the listener is started, which needs a runtime.
    listener: Option<(TcpListener, Sender<PageId>)>,
}

impl WebSub {
    /// Listens at an address for what hubs send to a callback address.
    pub(super) fn bind(listen: SocketAddr, callback: Url) -> anyhow::Result<WebSub> {
        let listener = TcpListener::bind(listen).with_context(|| {
            format!(
                "cannot listen at {listen} for hubs: choose another crawl.websub_listen in perennial.toml"
            )
        })?;
        listener.set_nonblocking(true)?;
        let (sender, notified) = channel(MAX_WAITING);
        let subscriptions = Arc::new(Mutex::new(Subscriptions::new(callback)));
        let asking = Arc::new(Semaphore::new(MAX_ASKING));
        Ok(WebSub { subscriptions, notified, asking, listener: Some((listener, sender)) })
    }

    pub(super) fn start(&mut self, clock: &Clock) -> anyhow::Result<()> {
        let Some((listener, notified)) = self.listener.take() else { return Ok(()) };
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = Arc::new(CallbackServer {
            subscriptions: self.subscriptions.clone(),
            notified,
            clock: clock.clone(),
        });
        let turns = Arc::new(Semaphore::new(MAX_REQUESTS));
        tokio::spawn(async move {
            loop {
                let Ok(turn) = turns.clone().acquire_owned().await else { return };
                let Ok((stream, _)) = listener.accept().await else {
                    // Too many open files, mostly: the next may be taken.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let server = server.clone();
                tokio::spawn(async move {
                    // Who sends half a request gets no answer.
                    let _ = tokio::time::timeout(MAX_TIME, server.serve(stream)).await;
                    drop(turn);
                });
            }
        });
        Ok(())
    }

    /// A feed names a hub.
    pub(super) fn want(&self, page: PageId, topic: &str, hub: &str, clock: &Clock) {
        let Ok(hub) = Url::parse(hub) else { return };
        let (token, secret) = (word(), word());
        lock(&self.subscriptions).want(page, topic, &hub, &token, &secret, clock.now());
    }

    /// Sends one request that is due. A hub that fails is asked again later, as one that does not ask back.
    pub(super) fn send_next(&self, shared: &Arc<VisitContext>) {
        let Ok(turn) = self.asking.clone().try_acquire_owned() else { return };
        let Some(asking) = lock(&self.subscriptions).due(shared.clock.now()) else { return };
        let shared = shared.clone();
        tokio::spawn(async move {
            let allow_private = shared.allow_private || is_of_private_seed(&shared, &asking.hub);
            let _ = shared.client.post_form(&asking.hub, &asking.form, allow_private).await;
            drop(turn);
        });
    }
}

/// `allow_private` of a site holds for its own scheme, host and port.
fn is_of_private_seed(shared: &VisitContext, hub: &Url) -> bool {
    shared.seeds.iter().any(|seed| seed.allow_private && seed.scope.seed.origin() == hub.origin())
}

/// A word that nobody can guess.
fn word() -> String {
    format!("{:032x}", random_seed())
}

fn lock(subscriptions: &Mutex<Subscriptions>) -> MutexGuard<'_, Subscriptions> {
    subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of hubs.
struct CallbackServer {
    subscriptions: Arc<Mutex<Subscriptions>>,
    notified: Sender<PageId>,
    clock: Clock,
}

impl CallbackServer {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let (status, body) = match read_request(&mut stream).await? {
            Ok(request) => self.answer(&request),
            Err(status) => (status, String::new()),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }

    fn answer(&self, request: &CallbackRequest) -> (&'static str, String) {
        const GONE: &str = "410 Gone";
        let subscriptions = || lock(&self.subscriptions);
        match request.method.as_str() {
            "GET" => match subscriptions().verify(&request.token, &request.query, self.clock.now()) {
                Some(challenge) => ("200 OK", challenge),
                None => ("404 Not Found", String::new()),
            },
            "POST" => match subscriptions().told(&request.token, request.signature.as_deref(), &request.body)
            {
                Told::News(page) => {
                    // With so many waiting, the feed is polled by its pattern.
                    let _ = self.notified.try_send(page);
                    ("202 Accepted", String::new())
                }
                Told::Unsigned => ("202 Accepted", String::new()),
                Told::Unknown => (GONE, String::new()),
            },
            _ => ("405 Method Not Allowed", String::new()),
        }
    }
}

/// A request that came to the callback address.
struct CallbackRequest {
    method: String,
    /// The last word of the path.
    token: String,
    query: String,
    signature: Option<String>,
    body: Vec<u8>,
}

/// Reads a request; the inner error is the status to answer with.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<Result<CallbackRequest, &'static str>> {
    let mut bytes = Vec::with_capacity(2_048);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(Err("400 Bad Request"));
        }
    };
    let mut body = bytes.split_off(end);
    let head = HttpHead::parse(&bytes);
    let line = head.first_line();
    let mut words = line.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(Err("400 Bad Request"));
    };
    let framing = match Framing::of(&head) {
        Framing::Length(n_bytes) if n_bytes > MAX_FEED_BYTES as u64 => {
            return Ok(Err("413 Content Too Large"));
        }
        Framing::UntilClose if head.get("Content-Length").is_some() => return Ok(Err("400 Bad Request")),
        Framing::UntilClose if method == "POST" => return Ok(Err("411 Length Required")),
        Framing::UntilClose => Framing::Length(0),
        framing => framing,
    };
    if let Err(status) = read_body(stream, framing, &mut body).await? {
        return Ok(Err(status));
    }
    // A signature is one of the content, whatever it was carried in.
    let limits = Limits { max_bytes: MAX_FEED_BYTES as u64, ..Limits::default() };
    let mut content = Vec::new();
    if transferred(&head, &body[..], limits).read_to_end(&mut content).is_err() {
        return Ok(Err("400 Bad Request"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Ok(CallbackRequest {
        method: method.to_owned(),
        token: path.rsplit('/').next().unwrap_or_default().to_owned(),
        query: query.to_owned(),
        signature: head.get("X-Hub-Signature").map(|text| text.into_owned()),
        body: content,
    }))
}

/// Reads on until the body is whole, with its framing; the inner error is the status to answer with.
async fn read_body(
    stream: &mut TcpStream,
    mut framing: Framing,
    body: &mut Vec<u8>,
) -> std::io::Result<Result<(), &'static str>> {
    let mut n_taken = 0;
    loop {
        let Ok(taken) = framing.take(&body[n_taken..]) else { return Ok(Err("400 Bad Request")) };
        n_taken += taken;
        if framing.is_done() {
            body.truncate(n_taken);
            return Ok(Ok(()));
        }
        if body.len() > MAX_FEED_BYTES {
            return Ok(Err("413 Content Too Large"));
        }
        if stream.read_buf(body).await? == 0 {
            return Ok(Err("400 Bad Request"));
        }
    }
}
