//! An HTTP/1.1 client that returns each exchange as sent and received.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use perennial_core::text::untrusted::shorten;
use perennial_warc::Truncation;
use perennial_warc::http::HttpHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use url::Url;

use super::connect::{self, HostStream};
use super::guard::{Resolver, admit};
use super::spool::{Spool, SpoolFile, SpoolFull};
use super::wire::find_head_end;
use super::{FetchError, FetchLimits, FetchRequest, FetchedBody, FetchedResponse, Framing, Proxy};

/// How long an idle connection is kept. Servers close theirs after 5 to 75 s.
const IDLE_KEPT: Duration = Duration::from_secs(20);
const MAX_IDLE: usize = 512;
const READ_BYTES: usize = 64 << 10;

/// An HTTP/1.1 client that keeps every byte of an exchange.
pub struct Client {
    user_agent: String,
    limits: FetchLimits,
    proxy: Option<Proxy>,
    tls: TlsConnector,
    resolver: Resolver,
    spool: Spool,
    idle: Mutex<HashMap<String, Vec<HttpConnection>>>,
}

struct HttpConnection {
    stream: HostStream,
    address: Option<SocketAddr>,
    /// When it became idle; `None` for a new connection.
    idle_since: Option<Instant>,
}

impl Client {
    pub fn new(user_agent: String, limits: FetchLimits, proxy: Option<Proxy>) -> Client {
        let user_agent = user_agent.replace(['\r', '\n'], " ");
        let tls = connect::tls(&[]);
        let spool = Spool::new(None, limits.max_spooled_bytes);
        let (resolver, idle) = (Resolver::default(), Mutex::default());
        Client { user_agent, limits, proxy, tls, resolver, spool, idle }
    }

    /// Spools large bodies in this folder instead of the system's temporary folder, which may be small or in memory.
    /// Deletes files that a crash left there.
    pub fn spooling_in(self, folder: &Path) -> std::io::Result<Client> {
        super::spool::clean(folder)?;
        let spool = Spool::new(Some(folder.to_path_buf()), self.limits.max_spooled_bytes);
        Ok(Client { spool, ..self })
    }

    /// The first failure of the local disk to store a body. It is not the fault of a host, and ends the crawl.
    pub fn disk_failure(&self) -> Option<std::io::Error> {
        self.spool.failure()
    }

    /// Trusts the certificates in this PEM file, too.
    pub fn trusting(self, pem_file: &Path) -> Result<Client, String> {
        Ok(Client { tls: connect::tls(&connect::read_roots(pem_file)?), ..self })
    }

    /// The permitted addresses of a URL's host. A proxy resolves names itself.
    pub async fn resolve(&self, url: &Url, allow_private: bool) -> Result<Vec<SocketAddr>, FetchError> {
        match self.proxy {
            None => self.resolver.resolve(url, allow_private, self.limits.connect_timeout).await,
            Some(_) => guard_literal(url, allow_private).map(|()| Vec::new()),
        }
    }

    /// Makes one exchange, within the limits.
    pub async fn fetch(&self, request: &FetchRequest<'_>) -> Result<FetchedResponse, FetchError> {
        self.fetch_up_to(request, self.limits.max_body_bytes).await
    }

    /// The same with a lower limit for the body. A longer body is cut.
    pub async fn fetch_up_to(
        &self,
        request: &FetchRequest<'_>,
        max_body_bytes: u64,
    ) -> Result<FetchedResponse, FetchError> {
        let max_body_bytes = max_body_bytes.min(self.limits.max_body_bytes);
        let limit = self.limits.total_timeout + self.limits.connect_timeout * 2;
        // The inner limits end an exchange and keep the bytes received so far. This one bounds the rest.
        let hard = limit + self.limits.drip_window + self.limits.head_timeout;
        tokio::time::timeout(hard, self.fetch_reusing(request, max_body_bytes))
            .await
            .map_err(|_| FetchError::Timeout(hard))?
    }

    /// Posts a form. Returns the status and ignores the body of the response.
    pub async fn post_form(&self, url: &Url, form: &str, allow_private: bool) -> Result<u16, FetchError> {
        self.post(url, "application/x-www-form-urlencoded", &[], form, allow_private).await
    }

    /// Posts a text with additional fields. Returns the status and ignores the body of the response.
    pub async fn post(
        &self,
        url: &Url,
        content_type: &str,
        fields: &[(&str, String)],
        text: &str,
        allow_private: bool,
    ) -> Result<u16, FetchError> {
        let mut all = vec![
            ("Content-Type", content_type.to_owned()),
            ("Content-Length", text.len().to_string()),
            ("Connection", "close".to_owned()),
        ];
        all.extend_from_slice(fields);
        let fields = all;
        let request = FetchRequest { url, fields: &fields, allow_private };
        let mut message = self.request_head("POST", &request);
        message.extend_from_slice(text.as_bytes());
        let limit = self.limits.head_timeout;
        let exchange = async {
            let mut connection = self.connect(&request).await?;
            send(&mut connection.stream, &message).await?;
            self.read_head(&mut connection.stream).await
        };
        let (head, _) =
            tokio::time::timeout(limit, exchange).await.map_err(|_| FetchError::Timeout(limit))??;
        Ok(head.status().unwrap_or_default())
    }

    /// The server may have closed an idle connection. If no byte arrived, the request is sent again on a new
    /// connection.
    async fn fetch_reusing(
        &self,
        request: &FetchRequest<'_>,
        max_body_bytes: u64,
    ) -> Result<FetchedResponse, FetchError> {
        if let Some(kept) = self.take_idle(request.url, request.allow_private) {
            match self.exchange(kept, request, max_body_bytes).await {
                Err(FetchError::Disconnected(_)) => {}
                done => return done,
            }
        }
        let fresh = self.connect(request).await?;
        self.exchange(fresh, request, max_body_bytes).await
    }

    async fn connect(&self, request: &FetchRequest<'_>) -> Result<HttpConnection, FetchError> {
        let Some(proxy) = &self.proxy else {
            let addresses = self.resolve(request.url, request.allow_private).await?;
            let (stream, address) = connect::open(request.url, &addresses, &self.tls, &self.limits).await?;
            return Ok(HttpConnection { stream, address: Some(address), idle_since: None });
        };
        guard_literal(request.url, request.allow_private)?;
        let stream = connect::open_by_proxy(request.url, proxy, &self.tls, &self.limits).await?;
        Ok(HttpConnection { stream, address: None, idle_since: None })
    }

    async fn exchange(
        &self,
        mut connection: HttpConnection,
        request: &FetchRequest<'_>,
        max_body_bytes: u64,
    ) -> Result<FetchedResponse, FetchError> {
        let started = Instant::now();
        let request_head = self.request_head("GET", request);
        let head_timeout = self.limits.head_timeout;
        let (head, rest) = tokio::time::timeout(head_timeout, async {
            send(&mut connection.stream, &request_head).await?;
            self.read_head(&mut connection.stream).await
        })
        .await
        .map_err(|_| FetchError::Timeout(head_timeout))??;
        let mut receiver = BodyReceiver::new(self, max_body_bytes, Framing::of(&head), started);
        let truncation = receiver.receive(&mut connection.stream, rest).await.map_err(FetchError::Local)?;
        let clean = truncation.is_none() && receiver.framing.is_done() && !receiver.surplus;
        let address = connection.address;
        if clean && keeps_alive(&head) {
            self.put_idle(request.url, request.allow_private, connection);
        }
        let body = receiver.finish().map_err(FetchError::Local)?;
        Ok(FetchedResponse { request_head, head, body, address, truncation, took: started.elapsed() })
    }

    fn request_head(&self, method: &str, request: &FetchRequest<'_>) -> Vec<u8> {
        let url = request.url;
        let mut head = String::with_capacity(512);
        let absolute = self.proxy.is_some() && url.scheme() == "http";
        let target =
            if absolute { &url[..] } else { &url[url::Position::BeforePath..url::Position::AfterQuery] };
        let _ = write!(head, "{method} {target} HTTP/1.1\r\nHost: {}", url.host_str().unwrap_or_default());
        if let Some(port) = url.port() {
            let _ = write!(head, ":{port}");
        }
        let _ = write!(
            head,
            "\r\nUser-Agent: {}\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\n\
             Accept-Language: *\r\nAccept-Encoding: gzip, br\r\n",
            self.user_agent
        );
        for (name, value) in request.fields {
            if !value.contains(['\r', '\n']) {
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// The final head and the bytes after it. Interim responses (1xx) are skipped.
    async fn read_head(&self, stream: &mut HostStream) -> Result<(HttpHead, Vec<u8>), FetchError> {
        let mut bytes = Vec::with_capacity(READ_BYTES);
        loop {
            let end = self.read_to_head_end(stream, &mut bytes).await?;
            let head = HttpHead::parse(&bytes[..end]);
            let rest = bytes.split_off(end);
            match head.status() {
                Some(100..=199) if head.status() != Some(101) => bytes = rest,
                Some(_) => return Ok((head, rest)),
                None => return Err(FetchError::NotHttp(shorten(&head.first_line(), 60).into_owned())),
            }
        }
    }

    async fn read_to_head_end(
        &self,
        stream: &mut HostStream,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, FetchError> {
        let mut searched = 0;
        loop {
            if let Some(end) = find_head_end(bytes, searched) {
                return Ok(end);
            }
            searched = bytes.len();
            if bytes.len() > self.limits.max_head_bytes {
                return Err(FetchError::HeadTooLarge(self.limits.max_head_bytes));
            }
            if bytes.len() >= 5 && !bytes[..5].eq_ignore_ascii_case(b"HTTP/") && !bytes.starts_with(b"ICY ") {
                let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
                return Err(FetchError::NotHttp(start));
            }
            bytes.reserve(READ_BYTES);
            match stream.read_buf(bytes).await {
                Ok(0) if bytes.is_empty() => return Err(FetchError::Disconnected(String::new())),
                Ok(0) => return Err(FetchError::NotHttp("an endless head".into())),
                Ok(_) => {}
                Err(e) if bytes.is_empty() => return Err(FetchError::Disconnected(format!(": {e}"))),
                Err(e) => return Err(FetchError::NotHttp(format!("an incomplete head, then {e}"))),
            }
        }
    }

    fn take_idle(&self, url: &Url, allow_private: bool) -> Option<HttpConnection> {
        let mut idle = self.idle.lock().ok()?;
        let kept = idle.get_mut(&idle_key(url, allow_private))?;
        while let Some(connection) = kept.pop() {
            if connection.idle_since.is_some_and(|since| since.elapsed() < IDLE_KEPT) {
                return Some(connection);
            }
        }
        None
    }

    fn put_idle(&self, url: &Url, allow_private: bool, connection: HttpConnection) {
        let Ok(mut idle) = self.idle.lock() else { return };
        if idle.len() >= MAX_IDLE {
            idle.retain(|_, kept| {
                kept.retain(|c| c.idle_since.is_some_and(|since| since.elapsed() < IDLE_KEPT));
                !kept.is_empty()
            });
            if idle.len() >= MAX_IDLE {
                idle.clear();
            }
        }
        let kept = HttpConnection { idle_since: Some(Instant::now()), ..connection };
        idle.entry(idle_key(url, allow_private)).or_default().push(kept);
    }
}

/// Connections that `allow_private` admitted are not reused for requests without it.
fn idle_key(url: &Url, allow_private: bool) -> String {
    let mut key = perennial_core::url::canonical::origin(url);
    if allow_private {
        key.push('!');
    }
    key
}

/// A proxy resolves names itself. Literal addresses can still be checked.
fn guard_literal(url: &Url, allow_private: bool) -> Result<(), FetchError> {
    let address = match url.host() {
        Some(url::Host::Ipv4(address)) => address.into(),
        Some(url::Host::Ipv6(address)) => address.into(),
        Some(url::Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
            std::net::Ipv4Addr::LOCALHOST.into()
        }
        _ => return Ok(()),
    };
    admit(url.host_str().unwrap_or_default(), &[address], allow_private)
}

/// If the peer closed an idle connection, this or the first read fails. Both errors are `Disconnected`.
async fn send(stream: &mut HostStream, head: &[u8]) -> Result<(), FetchError> {
    stream.write_all(head).await.map_err(|e| FetchError::Disconnected(format!(": {e}")))?;
    stream.flush().await.map_err(|e| FetchError::Disconnected(format!(": {e}")))
}

fn keeps_alive(head: &HttpHead) -> bool {
    let connection = head.get("Connection").unwrap_or_default().to_ascii_lowercase();
    let is_1_1 = head.as_bytes().get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/1.1"));
    if is_1_1 { !connection.contains("close") } else { connection.contains("keep-alive") }
}

/// Receives a body, within its framing and limits.
struct BodyReceiver<'a> {
    limits: &'a FetchLimits,
    spool: &'a Spool,
    max_body_bytes: u64,
    framing: Framing,
    started: Instant,
    memory: Vec<u8>,
    file: Option<SpoolFile>,
    n_bytes: u64,
    /// Whether bytes arrived after the body's end, so the connection cannot be reused.
    surplus: bool,
}

impl<'a> BodyReceiver<'a> {
    fn new(client: &'a Client, max_body_bytes: u64, framing: Framing, started: Instant) -> BodyReceiver<'a> {
        let memory = match framing {
            Framing::Length(length) => Vec::with_capacity(length.min(1 << 20) as usize),
            _ => Vec::new(),
        };
        let (limits, spool) = (&client.limits, &client.spool);
        let (file, n_bytes, surplus) = (None, 0, false);
        BodyReceiver { limits, spool, max_body_bytes, framing, started, memory, file, n_bytes, surplus }
    }

    /// Returns why the body is incomplete, if so. An error is one of the local disk.
    async fn receive(
        &mut self,
        stream: &mut HostStream,
        first: Vec<u8>,
    ) -> std::io::Result<Option<Truncation>> {
        let mut window = (Instant::now(), 0);
        self.memory.extend_from_slice(&first);
        let mut fresh = first.len();
        loop {
            if let Some(cut) = self.account(fresh) {
                return Ok(Some(cut));
            }
            if self.memory.len() > self.limits.spool_bytes
                && let Some(cut) = self.spill().await?
            {
                return Ok(Some(cut));
            }
            if self.framing.is_done() {
                return Ok(None);
            }
            if window.0.elapsed() >= self.limits.drip_window {
                if self.n_bytes - window.1 < self.limits.min_bytes_per_window {
                    return Ok(Some(Truncation::Time));
                }
                window = (Instant::now(), self.n_bytes);
            }
            self.memory.reserve(READ_BYTES);
            let rest = self.limits.total_timeout.saturating_sub(self.started.elapsed());
            let wait = rest.min(self.limits.drip_window.saturating_sub(window.0.elapsed()));
            fresh = match tokio::time::timeout(wait, stream.read_buf(&mut self.memory)).await {
                Err(_) if rest <= wait => return Ok(Some(Truncation::Time)),
                Err(_) => 0,
                // A body without a length is complete only after an orderly end. A reset or a TLS session without
                // close_notify may have cut it.
                Ok(Ok(0)) if self.framing == Framing::UntilClose => return Ok(None),
                Ok(Ok(0)) | Ok(Err(_)) => return Ok(Some(Truncation::Disconnect)),
                Ok(Ok(n_read)) => n_read,
            };
        }
    }

    /// Keeps those of the last `fresh` bytes in memory that belong to the body.
    fn account(&mut self, fresh: usize) -> Option<Truncation> {
        let start = self.memory.len() - fresh;
        let broken = match self.framing.take(&self.memory[start..]) {
            Ok(taken) => {
                self.surplus |= taken < fresh;
                self.memory.truncate(start + taken);
                false
            }
            // The bytes are archived even if their framing is broken.
            Err(_) => true,
        };
        self.n_bytes += (self.memory.len() - start) as u64;
        let over = self.n_bytes.saturating_sub(self.max_body_bytes);
        if over > 0 {
            let kept = self.memory.len().saturating_sub(over as usize);
            self.memory.truncate(kept);
            self.n_bytes -= over;
            return Some(Truncation::Length);
        }
        broken.then_some(Truncation::Disconnect)
    }

    /// Moves the bytes in memory to disk. If bodies in flight use all space, it waits for a while, and then cuts the
    /// body.
    async fn spill(&mut self) -> std::io::Result<Option<Truncation>> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.spool.file()?),
        };
        let n_bytes = self.memory.len() as u64;
        match tokio::time::timeout(self.limits.drip_window, file.reserve(n_bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(SpoolFull)) | Err(_) => return Ok(Some(Truncation::Length)),
        }
        file.append(&self.memory)?;
        self.memory.clear();
        Ok(None)
    }

    /// The body. A file gets its last bytes, which may exceed the total space by `spool_bytes`.
    fn finish(self) -> std::io::Result<FetchedBody> {
        let Some(mut file) = self.file else { return Ok(FetchedBody::Memory(self.memory)) };
        file.append(&self.memory)?;
        Ok(FetchedBody::Spooled(file, self.n_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> FetchLimits {
        FetchLimits {
            max_body_bytes: 100_000,
            max_head_bytes: 10_000,
            head_timeout: Duration::from_millis(800),
            total_timeout: Duration::from_secs(3),
            drip_window: Duration::from_millis(300),
            min_bytes_per_window: 20,
            spool_bytes: 40_000,
            ..FetchLimits::default()
        }
    }

    /// A server that sends these bytes to every client, then closes.
    async fn response(bytes: &'static [u8]) -> Result<FetchedResponse, FetchError> {
        serve(move |mut stream| async move {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(bytes).await;
        })
        .await
    }

    async fn serve<F, T>(each: F) -> Result<FetchedResponse, FetchError>
    where
        F: Fn(tokio::net::TcpStream) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/p?q=1", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(each(stream));
            }
        });
        let client = client();
        client.fetch(&FetchRequest { url: &url, fields: &[], allow_private: true }).await
    }

    fn client() -> Client {
        Client::new("perennial/test".into(), limits(), None)
    }

    fn body(fetched: &mut FetchedResponse) -> String {
        String::from_utf8_lossy(&fetched.body.prefix(1 << 20).unwrap()).into_owned()
    }

    #[tokio::test]
    async fn bytes_are_kept_as_they_came() {
        let chunked =
            b"HTTP/1.1 200 oK\r\nx-ODD :  1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let mut fetched = response(chunked).await.unwrap();
        let body_at = chunked.len() - b"3\r\nabc\r\n0\r\n\r\n".len();
        assert_eq!(fetched.head.as_bytes(), &chunked[..body_at]);
        assert_eq!(body(&mut fetched), "3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(fetched.truncation, None);
        assert!(fetched.request_head.starts_with(b"GET /p?q=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
    }

    #[tokio::test]
    async fn interim_responses_are_skipped() {
        let mut fetched =
            response(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\n\nrest").await.unwrap();
        assert_eq!((fetched.status(), body(&mut fetched).as_str()), (200, "rest"));
    }

    #[tokio::test]
    async fn what_breaks_off_is_cut_and_says_so() {
        let short = response(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").await.unwrap();
        assert_eq!((short.truncation, short.body.len()), (Some(Truncation::Disconnect), 3));
        let broken =
            response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX").await.unwrap();
        assert_eq!((broken.truncation, broken.body.len()), (Some(Truncation::Disconnect), 8));
    }

    /// Sends these bytes and closes with an unread request, which resets the connection.
    async fn respond_and_reset(bytes: &'static [u8]) -> FetchedResponse {
        let served = serve(move |mut stream| async move {
            let _ = stream.peek(&mut [0]).await;
            let _ = stream.write_all(bytes).await;
        });
        served.await.unwrap()
    }

    #[tokio::test]
    async fn a_body_without_a_length_is_whole_only_after_an_orderly_end() {
        let head = b"HTTP/1.0 200 OK\r\n\r\nhalf";
        assert_eq!(
            (response(head).await.unwrap().truncation, response(head).await.unwrap().body.len()),
            (None, 4)
        );
        let reset = respond_and_reset(head).await;
        assert_eq!((reset.truncation, reset.body.len()), (Some(Truncation::Disconnect), 4));
    }

    #[tokio::test]
    async fn a_body_that_the_disk_rejects_is_an_error() {
        let large = || {
            serve(|mut stream| async move {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n").await;
                let _ = stream.write_all(&[b'x'; 60_000]).await;
            })
        };
        assert_eq!(large().await.unwrap().body.len(), 60_000);
        let folder = tempfile::tempdir().unwrap();
        let client = client().spooling_in(&folder.path().join("spool")).unwrap();
        std::fs::remove_dir(folder.path().join("spool")).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n").await;
            let _ = stream.write_all(&[b'x'; 60_000]).await;
        });
        let request = FetchRequest { url: &url, fields: &[], allow_private: true };
        assert_eq!(client.fetch(&request).await.unwrap_err().kind(), "local");
        assert!(client.disk_failure().is_some_and(|error| error.to_string().contains("free space")));
    }

    #[tokio::test]
    async fn a_response_is_cut_once_the_rest_is_useless() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n").await;
            let _ = stream.write_all(&[b'x'; 50_000]).await;
        });
        let request = FetchRequest { url: &url, fields: &[], allow_private: true };
        let fetched = client().fetch_up_to(&request, 1000).await.unwrap();
        assert_eq!((fetched.truncation, fetched.body.len()), (Some(Truncation::Length), 1000));
    }

    #[tokio::test]
    async fn what_is_no_http_is_an_error() {
        assert_eq!(response(b"SSH-2.0-OpenSSH\r\n").await.unwrap_err().kind(), "not-http");
        assert_eq!(response(b"HTTP/1.1 200 OK\r\nno end").await.unwrap_err().kind(), "not-http");
        assert_eq!(response(b"").await.unwrap_err().kind(), "disconnected");
    }

    #[tokio::test]
    async fn endless_heads_and_bodies_end() {
        let endless = |start: &'static [u8], line: &'static [u8]| {
            serve(move |mut stream| async move {
                let _ = stream.write_all(start).await;
                while stream.write_all(&line.repeat(100)).await.is_ok() {}
            })
        };
        assert_eq!(endless(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n").await.unwrap_err().kind(), "head-too-large");
        let fetched = endless(b"HTTP/1.1 200 OK\r\n\r\n", b"0123456789").await.unwrap();
        assert_eq!((fetched.truncation, fetched.body.len()), (Some(Truncation::Length), 100_000));
        assert!(matches!(fetched.body, FetchedBody::Spooled(..)));
    }

    /// A deliberately slow server.
    async fn dawdle(time: Duration) {
        tokio::time::sleep(time).await;
    }

    #[tokio::test]
    async fn dripping_and_silence_end() {
        let drip = serve(|mut stream| async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n").await;
            while stream.write_all(b"x").await.is_ok() {
                dawdle(Duration::from_millis(30)).await;
            }
        });
        assert_eq!(drip.await.unwrap().truncation, Some(Truncation::Time));
        // Until the client disconnects.
        let silent =
            serve(|mut stream| async move { while stream.read(&mut [0]).await.is_ok_and(|n| n > 0) {} });
        assert_eq!(silent.await.unwrap_err().kind(), "timeout");
    }

    #[tokio::test]
    async fn a_connection_serves_several_requests_and_a_stale_one_is_replaced() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let server = tokio::spawn(async move {
            let mut n_connections = 0;
            while n_connections < 2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                n_connections += 1;
                for _ in 0..3 {
                    let mut request = [0; 4096];
                    if stream.read(&mut request).await.unwrap_or(0) == 0 {
                        break;
                    }
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
                }
            }
        });
        let client = client();
        for _ in 0..6 {
            let request = FetchRequest { url: &url, fields: &[], allow_private: true };
            assert_eq!(client.fetch(&request).await.unwrap().body.len(), 2);
        }
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_proxy_gets_the_absolute_form() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy { authority: listener.local_addr().unwrap().to_string() };
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let n_read = stream.read(&mut request).await.unwrap();
            stream.write_all(b"HTTP/1.1 204 None\r\n\r\n").await.unwrap();
            String::from_utf8_lossy(&request[..n_read]).into_owned()
        });
        let client = Client::new("perennial/test".into(), limits(), Some(proxy));
        let url = Url::parse("http://example.org/x").unwrap();
        let request = FetchRequest { url: &url, fields: &[], allow_private: false };
        assert_eq!(client.fetch(&request).await.unwrap().status(), 204);
        assert!(
            server.await.unwrap().starts_with("GET http://example.org/x HTTP/1.1\r\nHost: example.org\r\n")
        );
        let local = Url::parse("http://127.0.0.1/x").unwrap();
        let request = FetchRequest { url: &local, fields: &[], allow_private: false };
        assert_eq!(client.fetch(&request).await.unwrap_err().kind(), "guarded");
    }
}
