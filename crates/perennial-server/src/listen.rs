//! Sockets and connections, within limits on the size of a request's head and the time for it.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Sleep;

use super::connections::{ConnectionProgress, Connections};
use super::origins::{Origins, is_usual_loopback};
use super::{Options, Origin, Server, router};
use perennial_archive::Archive;
use perennial_engine::background::lower_priority;

/// The time in which a client must send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// An archived page can set all the cookies that a browser keeps for a host, some 180 of 4 kB. They must not make the server refuse.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// Threads that read archives.
const MAX_THREADS: usize = 64;

/// A connection is closed if its client reads nothing for so long.
const STALL_TIME: Duration = Duration::from_secs(60);

/// A server with bound sockets that accepts no connections yet.
pub struct Listeners {
    main: TcpListener,
    /// One or two: on loopback, `localhost` may be the IPv4 or the IPv6 address.
    replay: Vec<TcpListener>,
    server: Arc<Server>,
}

impl Listeners {
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Serves until `stop` completes.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let connections = Arc::new(Connections::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(self.main, self.server.clone(), Origin::Main, connections.clone()));
        for replay in self.replay {
            accepting.spawn(accept(replay, self.server.clone(), Origin::Replay, connections.clone()));
        }
        stop.await;
        Ok(())
    }
}

/// The runtime of a server. Its threads have low priority, so readers do not delay a crawl.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.max_blocking_threads(MAX_THREADS).on_thread_start(lower_priority).enable_all().build()?)
}

pub async fn bind(archives: Vec<Archive>, options: Options) -> anyhow::Result<Listeners> {
    let main = listen(options.listen).await?;
    let at = main.local_addr()?;
    let beside =
        SocketAddr::new(at.ip(), if options.listen.port() == 0 { 0 } else { at.port().saturating_add(1) });
    let replay = listen(options.replay_listen.unwrap_or(beside)).await?;
    let replay_at = replay.local_addr()?;
    let origins = options.proxied.clone().unwrap_or_else(|| Origins::of_listeners(at, replay_at));
    let server = Server::new(archives, options, origins)?;
    Ok(Listeners {
        main,
        replay: [Some(replay), other_loopback(replay_at).await].into_iter().flatten().collect(),
        server,
    })
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; choose a different one with --listen HOST:PORT")
    })
}

/// The same port of the other address of loopback, if it is free. Then `localhost` is this server, whatever a client resolves it to.
async fn other_loopback(address: SocketAddr) -> Option<TcpListener> {
    let other: IpAddr = match address.ip() {
        ip if !is_usual_loopback(ip) => return None,
        IpAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv4Addr::LOCALHOST.into(),
    };
    TcpListener::bind((other, address.port())).await.ok()
}

async fn accept(listener: TcpListener, server: Arc<Server>, origin: Origin, connections: Arc<Connections>) {
    loop {
        let Ok((stream, client)) = listener.accept().await else {
            // If there are no file descriptors, some will be closed soon.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(place) = connections.admit(client.ip(), Instant::now()) else { continue };
        let server = server.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = converse(stream, server, origin, place.progress.clone()) => {}
                () = place.progress.closing() => {}
            }
        });
    }
}

async fn converse(stream: TcpStream, server: Arc<Server>, origin: Origin, progress: Arc<ConnectionProgress>) {
    // Responses are written whole, so delaying packets would not merge any.
    let _ = stream.set_nodelay(true);
    let responding = progress.clone();
    let respond = service_fn(move |request| {
        let (server, progress) = (server.clone(), responding.clone());
        async move {
            progress.set_responding(true);
            let response = router::respond(server, origin, request).await;
            progress.set_responding(false);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, progress)), respond);
    // The client disconnected, or did not speak HTTP.
    let _ = connection.await;
}

/// Closes a connection whose client stops reading; otherwise a thousand such clients would block the server.
struct WriteTimeout {
    stream: TcpStream,
    /// Runs while a write is blocked.
    stalled: Option<Pin<Box<Sleep>>>,
    progress: Arc<ConnectionProgress>,
}

impl WriteTimeout {
    fn new(stream: TcpStream, progress: Arc<ConnectionProgress>) -> WriteTimeout {
        WriteTimeout { stream, stalled: None, progress }
    }

    /// Fails a write that is blocked for too long.
    fn watched(&mut self, result: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &result {
            self.stalled = None;
            self.progress.add(*written.as_ref().unwrap_or(&0));
            return result;
        }
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_TIME)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (this, n_before) = (self.get_mut(), out.filled().len());
        let read = Pin::new(&mut this.stream).poll_read(cx, out);
        this.progress.add(out.filled().len() - n_before);
        read
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.watched(result, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(cx, pieces);
        this.watched(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
