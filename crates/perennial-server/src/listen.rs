//! Sockets and connections, within limits on their number and on the time for a request's head.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

use super::{Options, Origin, Origins, Server, router};
use perennial_archive::Archive;
use perennial_engine::background::lower_priority;

/// Connections at a time, on both origins together.
const MAX_CONNECTIONS: usize = 1024;

/// The time in which a client must send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(15);

const MAX_HEAD_BYTES: usize = 64 << 10;

/// Threads that read archives.
const MAX_THREADS: usize = 64;

/// A connection is closed if its client reads nothing for so long.
const STALL_TIME: Duration = Duration::from_secs(60);

/// A server with bound sockets that accepts no connections yet.
pub struct Listeners {
    main: TcpListener,
    replay: TcpListener,
    server: Arc<Server>,
}

impl Listeners {
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Serves until `stop` completes.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let main = accept(self.main, self.server.clone(), Origin::Main, places.clone());
        let replay = accept(self.replay, self.server, Origin::Replay, places);
        tokio::select! {
            () = main => {}
            () = replay => {}
            () = stop => {}
        }
        Ok(())
    }
}

/// The runtime of a server. Its threads have low priority, so that readers do not delay a crawl.
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
    let origins =
        Origins { main: format!("http://{at}"), replay: format!("http://{}", replay.local_addr()?) };
    Ok(Listeners { main, replay, server: Server::new(archives, options, origins)? })
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; choose a different one with --listen HOST:PORT")
    })
}

async fn accept(listener: TcpListener, server: Arc<Server>, origin: Origin, places: Arc<Semaphore>) {
    loop {
        // A connection is accepted only when there is room; others wait in the system's queue.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // If there are no file descriptors, some will be closed soon.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            converse(stream, server, origin).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, server: Arc<Server>, origin: Origin) {
    // Responses are written whole, so delaying packets would not merge any.
    let _ = stream.set_nodelay(true);
    let respond = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(router::respond(server, origin, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream)), respond);
    // The client disconnected, or did not speak HTTP.
    let _ = connection.await;
}

/// Closes a connection whose client stops reading; otherwise a thousand such clients would block the server.
struct WriteTimeout {
    stream: TcpStream,
    /// Runs while a write is blocked.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    fn new(stream: TcpStream) -> WriteTimeout {
        WriteTimeout { stream, stalled: None }
    }

    /// Fails a write that is blocked for too long.
    fn watched<T>(&mut self, result: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
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
        Pin::new(&mut self.get_mut().stream).poll_read(cx, out)
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
