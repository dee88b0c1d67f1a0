//! Opens byte streams: TCP, TLS over it, or through a proxy.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

use super::{FetchError, FetchLimits, Proxy};

#[derive(Debug)]
pub(super) enum HostStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for HostStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            HostStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            HostStream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for HostStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            HostStream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            HostStream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            HostStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            HostStream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            HostStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            HostStream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}

pub(super) fn read_roots(pem_file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates =
        CertificateDer::pem_file_iter(pem_file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err("it contains no certificate".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// TLS with the usual root certificates and additional ones. Offers http/1.1 only.
pub(super) fn tls(own_roots: &[CertificateDer<'static>]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(own_roots.iter().cloned());
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Connects to the first of `addresses` that responds.
pub(super) async fn open(
    url: &Url,
    addresses: &[SocketAddr],
    tls: &TlsConnector,
    limits: &FetchLimits,
) -> Result<(HostStream, SocketAddr), FetchError> {
    let mut last = FetchError::Connect { address: url.to_string(), reason: "it has no address".into() };
    for &address in addresses.iter().take(4) {
        match connect_tcp(address, limits.connect_timeout).await {
            Ok(tcp) => return Ok((secure(url, tcp, tls, limits).await?, address)),
            Err(reason) => last = FetchError::Connect { address: address.to_string(), reason },
        }
    }
    Err(last)
}

async fn connect_tcp(
    address: impl tokio::net::ToSocketAddrs,
    timeout: Duration,
) -> Result<TcpStream, String> {
    let tcp = tokio::time::timeout(timeout, TcpStream::connect(address))
        .await
        .map_err(|_| format!("no connection within {timeout:?}"))?
        .map_err(|e| e.to_string())?;
    tcp.set_nodelay(true).map_err(|e| e.to_string())?;
    Ok(tcp)
}

async fn secure(
    url: &Url,
    tcp: TcpStream,
    tls: &TlsConnector,
    limits: &FetchLimits,
) -> Result<HostStream, FetchError> {
    if url.scheme() != "https" {
        return Ok(HostStream::Plain(tcp));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_string();
    let error = |reason: String| FetchError::Tls { host: host.clone(), reason };
    let name = ServerName::try_from(host.clone()).map_err(|e| error(e.to_string()))?;
    let stream = tokio::time::timeout(limits.connect_timeout, tls.connect(name, tcp))
        .await
        .map_err(|_| error(format!("no handshake within {:?}", limits.connect_timeout)))?
        .map_err(|e| error(e.to_string()))?;
    Ok(HostStream::Tls(Box::new(stream)))
}

/// Connects through a proxy; for https through a tunnel.
pub(super) async fn open_by_proxy(
    url: &Url,
    proxy: &Proxy,
    tls: &TlsConnector,
    limits: &FetchLimits,
) -> Result<HostStream, FetchError> {
    let mut tcp = connect_tcp(&proxy.authority, limits.connect_timeout)
        .await
        .map_err(|reason| FetchError::Connect { address: proxy.authority.clone(), reason })?;
    if url.scheme() == "https" {
        tokio::time::timeout(limits.head_timeout, request_tunnel(&mut tcp, url))
            .await
            .map_err(|_| FetchError::Timeout(limits.head_timeout))??;
    }
    secure(url, tcp, tls, limits).await
}

async fn request_tunnel(tcp: &mut TcpStream, url: &Url) -> Result<(), FetchError> {
    let error = |e: io::Error| FetchError::Proxy(e.to_string());
    let target =
        format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    tcp.write_all(head.as_bytes()).await.map_err(error)?;
    // Byte by byte, because the bytes after the head belong to TLS.
    let mut response = Vec::new();
    while super::wire::find_head_end(&response, response.len()).is_none() {
        if response.len() > 16 << 10 {
            return Err(FetchError::Proxy("an endless head".into()));
        }
        response.push(tcp.read_u8().await.map_err(error)?);
    }
    let head = perennial_warc::http::HttpHead::parse(&response);
    match head.status() {
        Some(200..=299) => Ok(()),
        _ => Err(FetchError::Proxy(head.first_line().into_owned())),
    }
}
