//! Subscribes to the hubs of feeds and receives their notifications, which make feeds due at once (WebSub;
//! `perennial_core::feed::websub`).
//!
//! The listener reads one request per connection, few at a time, each bounded in bytes and time. It ignores unsigned
//! content. Delivered content is not archived. Instead the feed is polled, and the poll's response is archived.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use perennial_core::feed::MAX_FEED_BYTES;
use perennial_core::feed::websub::{HubSubscriptions, PushOutcome};
use perennial_core::url::PageId;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{DecodingLimits, transferred};
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
/// Longest head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// A request must be complete within this time.
const MAX_TIME: Duration = Duration::from_secs(15);
/// Subscription requests at a time: many feeds share a hub.
const MAX_CONCURRENT_REQUESTS: usize = 2;
/// Most announced feeds that are not planned yet.
const MAX_WAITING: usize = 1_024;

/// The subscriptions of a crawl, and the announced feeds.
pub(super) struct WebSub {
    subscriptions: Arc<Mutex<HubSubscriptions>>,
    /// Feeds with announced news.
    pub(super) notified: Receiver<PageId>,
    /// Permits for subscription requests.
    turns: Arc<Semaphore>,
    /// Until the listener is started, which needs a runtime.
    listener: Option<(TcpListener, Sender<PageId>)>,
}

impl WebSub {
    /// Listens at an address for requests to the callback URL.
    pub(super) fn bind(listen: SocketAddr, callback: Url) -> anyhow::Result<WebSub> {
        let listener = TcpListener::bind(listen).with_context(|| {
            format!(
                "cannot listen at {listen} for hubs: choose another crawl.websub_listen in perennial.toml"
            )
        })?;
        listener.set_nonblocking(true)?;
        let (sender, notified) = channel(MAX_WAITING);
        let subscriptions = Arc::new(Mutex::new(HubSubscriptions::new(callback)));
        let turns = Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS));
        Ok(WebSub { subscriptions, notified, turns, listener: Some((listener, sender)) })
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
                    // Probably too many open files. The next connection may succeed.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let server = server.clone();
                tokio::spawn(async move {
                    // An incomplete request gets no response.
                    let _ = tokio::time::timeout(MAX_TIME, server.serve(stream)).await;
                    drop(turn);
                });
            }
        });
        Ok(())
    }

    /// Records that a feed has a hub.
    pub(super) fn want(&self, page: PageId, topic: &str, hub: &str, clock: &Clock) {
        let Ok(hub) = Url::parse(hub) else { return };
        let (token, secret) = (word(), word());
        lock(&self.subscriptions).want(page, topic, &hub, &token, &secret, clock.now());
    }

    /// Sends one subscription request that is due. A failing hub is tried again later, like one that never verifies.
    pub(super) fn send_next(&self, shared: &Arc<VisitContext>) {
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return };
        let Some(request) = lock(&self.subscriptions).due(shared.clock.now()) else { return };
        let shared = shared.clone();
        tokio::spawn(async move {
            let allow_private = shared.allow_private || is_of_private_seed(&shared, &request.hub);
            let _ = shared.client.post_form(&request.hub, &request.form, allow_private).await;
            drop(turn);
        });
    }
}

/// A site's `allow_private` covers its own scheme, host and port.
fn is_of_private_seed(shared: &VisitContext, hub: &Url) -> bool {
    shared.seeds.iter().any(|seed| seed.allow_private && seed.scope.seed.origin() == hub.origin())
}

/// An unguessable token.
fn word() -> String {
    format!("{:032x}", random_seed())
}

fn lock(subscriptions: &Mutex<HubSubscriptions>) -> MutexGuard<'_, HubSubscriptions> {
    subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of hubs.
struct CallbackServer {
    subscriptions: Arc<Mutex<HubSubscriptions>>,
    notified: Sender<PageId>,
    clock: Clock,
}

impl CallbackServer {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let (status, body) = match read_request(&mut stream).await? {
            Ok(request) => self.response(&request),
            Err(status) => (status, String::new()),
        };
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    }

    fn response(&self, request: &CallbackRequest) -> (&'static str, String) {
        const GONE: &str = "410 Gone";
        let subscriptions = || lock(&self.subscriptions);
        match request.method.as_str() {
            "GET" => match subscriptions().verify(&request.token, &request.query, self.clock.now()) {
                Some(challenge) => ("200 OK", challenge),
                None => ("404 Not Found", String::new()),
            },
            "POST" => {
                match subscriptions().receive(&request.token, request.signature.as_deref(), &request.body) {
                    PushOutcome::News(page) => {
                        // With so many waiting, the feed is polled by its own pattern.
                        let _ = self.notified.try_send(page);
                        ("202 Accepted", String::new())
                    }
                    PushOutcome::Unsigned => ("202 Accepted", String::new()),
                    PushOutcome::Unknown => (GONE, String::new()),
                }
            }
            _ => ("405 Method Not Allowed", String::new()),
        }
    }
}

/// A request to the callback URL.
struct CallbackRequest {
    method: String,
    /// The last segment of the path.
    token: String,
    query: String,
    signature: Option<String>,
    body: Vec<u8>,
}

/// Reads a request. The inner error is the response status.
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
    // The signature covers the content without its transfer coding.
    let limits = DecodingLimits { max_bytes: MAX_FEED_BYTES as u64, ..DecodingLimits::default() };
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

/// Reads the rest of the body, with its framing. The inner error is the response status.
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
