//! The living web on a loopback port: requests by host name -> the page at the current virtual instant.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use perennial_core::memento::date;
use perennial_core::rng::Rng;
use perennial_core::time::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::subresource::{DemoSubresource, subresource};
use super::template::{self, ServedPage};
use super::web::LivingWeb;

/// Longest request line or header that the server reads. The crawler sends far less.
const MAX_LINE: usize = 16 * 1024;

/// The clock of the server, which is that of the crawl.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A served living web.
pub struct LivingServer {
    web: LivingWeb,
    pages: HashMap<(usize, String), usize>,
    now: Now,
    n_requests: AtomicU64,
    port: u16,
}

const HTML: &str = "text/html; charset=utf-8";

/// A page, or the data that its script requests.
#[derive(Clone, Copy)]
enum RequestedContent {
    Page,
    Data,
}

struct Response {
    status: &'static str,
    content_type: &'static str,
    validator: Option<String>,
    modified: Option<Timestamp>,
    body: Vec<u8>,
}

impl LivingServer {
    /// Serves on `listener` until the runtime ends.
    pub fn start(web: LivingWeb, listener: TcpListener, now: Now) -> io::Result<Arc<LivingServer>> {
        let port = listener.local_addr()?.port();
        let pages = web
            .pages
            .iter()
            .enumerate()
            .map(|(index, page)| ((page.site, page.path.clone()), index))
            .collect();
        let server = Arc::new(LivingServer { web, pages, now, n_requests: AtomicU64::new(0), port });
        let serving = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&serving);
                // It is not an error if a client closes the connection.
                tokio::spawn(async move { server.converse(stream).await.ok() });
            }
        });
        Ok(server)
    }

    /// The URL of every site's front page.
    pub fn seeds(&self) -> Vec<String> {
        (0..self.web.sites.len()).map(|site| format!("{}/", self.origin(site))).collect()
    }

    /// The URL of a page.
    pub fn url(&self, page: usize) -> String {
        let page = &self.web.pages[page];
        format!("{}{}", self.origin(page.site), page.path)
    }

    /// Number of requests answered so far.
    pub fn n_requests(&self) -> u64 {
        self.n_requests.load(Ordering::Relaxed)
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    fn origin(&self, site: usize) -> String {
        format!("http://{}.localhost:{}", self.web.sites[site].name, self.port)
    }

    async fn converse(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some(request) = read_request(&mut stream).await? {
            let response = self.respond(&request);
            let not_modified = response
                .validator
                .as_deref()
                .is_some_and(|tag| request.if_none_match.as_deref() == Some(tag));
            let mut head = format!(
                "HTTP/1.1 {}\r\nContent-Type: {}\r\n",
                if not_modified { "304 Not Modified" } else { response.status },
                response.content_type
            );
            if let Some(tag) = &response.validator {
                head.push_str(&format!("ETag: {tag}\r\nCache-Control: max-age=604800\r\n"));
            }
            if let Some(modified) = response.modified {
                head.push_str(&format!("Last-Modified: {}\r\n", date::write(modified)));
            }
            let body: &[u8] = if not_modified || request.is_head { &[] } else { &response.body };
            head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            let mut bytes = head.into_bytes();
            bytes.extend_from_slice(body);
            stream.get_mut().write_all(&bytes).await?;
        }
        Ok(())
    }

    fn respond(&self, request: &PageRequest) -> Response {
        self.n_requests.fetch_add(1, Ordering::Relaxed);
        let now = (self.now)();
        let Some(site) =
            self.web.sites.iter().position(|site| request.host.starts_with(&format!("{}.", site.name)))
        else {
            return text("404 Not Found", "no such site");
        };
        if self.web.sites[site].dies_at.is_some_and(|end| now >= end) {
            return text("410 Gone", "this site has closed for good");
        }
        match request.path.as_str() {
            "/robots.txt" => text(
                "200 OK",
                &format!("User-agent: *\nAllow: /\n\nSitemap: {}/sitemap.xml\n", self.origin(site)),
            ),
            "/sitemap.xml" => xml(self.sitemap(site)),
            "/feed.xml" => self.feed(site, now),
            path if let Some(found) = subresource(&self.web, site, path, now) => asset(found),
            path => match path.strip_prefix("/api").filter(|_| self.web.sites[site].is_rendered) {
                Some(page) => self.page(site, page, RequestedContent::Data, now),
                None => self.page(site, path, RequestedContent::Page, now),
            },
        }
    }

    fn page(&self, site: usize, path: &str, wanted: RequestedContent, now: Timestamp) -> Response {
        let Some(&page) = self.pages.get(&(site, path.to_owned())) else {
            return text("404 Not Found", "no such page");
        };
        // The number differs between requests but is the same for the same request of a different run.
        let rng = Rng::from_parts(&[self.web.seed, page as u64, now.as_millis().unsigned_abs()]).bits();
        let served = ServedPage::at(&self.web, page, rng, now);
        let (content_type, body) = match wanted {
            RequestedContent::Data => ("application/json", template::json(&served)),
            RequestedContent::Page if self.web.sites[site].is_rendered => (HTML, template::shell(&served)),
            RequestedContent::Page => (HTML, template::html(&served)),
        };
        Response { status: "200 OK", content_type, validator: None, modified: None, body: body.into_bytes() }
    }

    /// An unchanged feed costs only a 304.
    fn feed(&self, site: usize, now: Timestamp) -> Response {
        let n_items = template::announced(&self.web, site, now).len();
        Response {
            status: "200 OK",
            content_type: "application/rss+xml",
            validator: Some(format!("\"{n_items}\"")),
            modified: None,
            body: template::feed(&self.web, site, now).into_bytes(),
        }
    }

    fn sitemap(&self, site: usize) -> String {
        let pages = self.web.pages.iter().enumerate().filter(|(_, page)| page.site == site);
        let locations: String =
            pages.map(|(index, _)| format!("<url><loc>{}</loc></url>", self.url(index))).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
             <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{locations}</urlset>"
        )
    }
}

struct PageRequest {
    path: String,
    host: String,
    if_none_match: Option<String>,
    is_head: bool,
}

/// Reads the next request on the connection; `None` if the client has closed it.
async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<PageRequest>> {
    let first = read_line(stream).await?;
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let path = path.split(['?', '#']).next().unwrap_or("/").to_owned();
    let mut request =
        PageRequest { path, host: String::new(), if_none_match: None, is_head: method == "HEAD" };
    loop {
        let line = read_line(stream).await?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(Some(request));
        };
        match name.to_ascii_lowercase().as_str() {
            "host" => request.host = value.trim().to_ascii_lowercase(),
            "if-none-match" => request.if_none_match = Some(value.trim().to_owned()),
            _ => {}
        }
    }
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    use tokio::io::AsyncReadExt;
    let mut line = String::new();
    stream.take(MAX_LINE as u64).read_line(&mut line).await?;
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn text(status: &'static str, body: &str) -> Response {
    Response {
        status,
        content_type: "text/plain",
        validator: None,
        modified: None,
        body: body.as_bytes().to_vec(),
    }
}

fn xml(body: String) -> Response {
    Response {
        status: "200 OK",
        content_type: "application/xml",
        validator: None,
        modified: None,
        body: body.into_bytes(),
    }
}

fn asset(found: DemoSubresource) -> Response {
    let DemoSubresource { content_type, validator, modified, body } = found;
    Response { status: "200 OK", content_type, validator: Some(validator), modified, body }
}
