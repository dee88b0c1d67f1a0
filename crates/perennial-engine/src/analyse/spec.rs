//! Loads a page named on the command line: a file, Vi-XML, a PDF, `url@time` or a URL.
//!
//! Both sides of a comparison are loaded here, so the same engine lays out both.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context as _, bail};
use perennial_core::page::document::{Document, DocumentFormat};
use perennial_core::page::segment::{BlockTree, vixml};
use perennial_core::text::charset::decode_text;
use perennial_core::time::Timestamp;
use perennial_render::CapturedResource;
use perennial_warc::payload;
use url::Url;

use super::SubresourceCache;
use perennial_archive::store::Capture;
use perennial_archive::{SharedSnapshot, Snapshot};
use perennial_fetch::{Client, FetchLimits, FetchRequest};

/// Most redirects of a live page.
const MAX_REDIRECTS: usize = 10;
/// Longer live bodies are cut.
const MAX_BODY_BYTES: u64 = 32 << 20;
/// One base URL for all files, so relative links of two files compare equal.
const FILE_URL: &str = "http://page.example/";

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageSpec {
    /// A file: HTML, Vi-XML or a supported document format.
    File(PathBuf),
    /// The archived version closest to a time.
    Archived {
        url: String,
        /// `None` means the latest version.
        time: Option<Timestamp>,
    },
    /// The page as it is on the web now.
    Live(String),
}

impl FromStr for PageSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PageSpec, String> {
        let is_url = text.starts_with("http://") || text.starts_with("https://");
        if !is_url {
            return Ok(PageSpec::File(PathBuf::from(text)));
        }
        // A URL may contain an `@` itself. Only an `@` before a time or at the end separates the time.
        if let Some((url, time)) = text.rsplit_once('@') {
            let url = url.to_string();
            if time.is_empty() {
                return Ok(PageSpec::Archived { url, time: None });
            }
            if let Ok(time) = Timestamp::parse(time) {
                return Ok(PageSpec::Archived { url, time: Some(time) });
            }
        }
        Ok(PageSpec::Live(text.to_string()))
    }
}

/// Which private and loopback addresses a live page may be fetched from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PrivateAccess {
    None,
    /// Those of the scheme, host and port that the user named. Redirects and subresources are named by untrusted
    /// content.
    Named,
    Any,
}

impl PageSpec {
    /// Opens a snapshot with `open` if the page is an archived one.
    pub fn snapshot(
        &self,
        open: impl FnOnce() -> anyhow::Result<Snapshot>,
    ) -> anyhow::Result<Option<SharedSnapshot>> {
        let is_archived = matches!(self, PageSpec::Archived { .. });
        is_archived.then(|| open().map(SharedSnapshot::new)).transpose()
    }

    /// Loads a page to compare. A live page may be on this machine if the user named it so.
    pub fn load_named<'s>(&self, snapshot: Option<&'s SharedSnapshot>) -> anyhow::Result<LoadedPage<'s>> {
        match self {
            PageSpec::Live(url) => load_live(url, PrivateAccess::Named),
            _ => self.load(snapshot, false),
        }
    }

    /// Loads the page. An archived page needs a snapshot ([`Self::snapshot`]).
    pub fn load<'s>(
        &self,
        snapshot: Option<&'s SharedSnapshot>,
        allow_private: bool,
    ) -> anyhow::Result<LoadedPage<'s>> {
        match self {
            PageSpec::File(path) => load_file(path),
            PageSpec::Archived { url, time } => {
                load_archived(snapshot.context("an archived page needs an archive")?, url, *time)
            }
            PageSpec::Live(url) => {
                load_live(url, if allow_private { PrivateAccess::Any } else { PrivateAccess::None })
            }
        }
    }
}

/// A loaded page, with access to its subresources.
pub struct LoadedPage<'s> {
    pub url: String,
    /// Name of the version: the capture time or the file name.
    pub version: String,
    /// When the page was captured, fetched or read.
    pub time: Timestamp,
    /// The decoded HTML; empty if only the blocks are known.
    pub html: String,
    /// The blocks of a document that is not HTML, such as a PDF, or of a version whose HTML is not stored.
    pub document: Option<BlockTree>,
    /// A note for the user: the version was left out, and what is shown instead.
    pub note: Option<String>,
    subresources: SubresourceSource<'s>,
}

enum SubresourceSource<'s> {
    Folder(PathBuf),
    Archive(&'s SharedSnapshot, SubresourceCache),
    Network(Box<LiveFetcher>),
}

impl LoadedPage<'_> {
    /// The blocks of a page that needs no layout: Vi-XML, or a document that is not HTML.
    pub fn ready_tree(&self) -> anyhow::Result<Option<BlockTree>> {
        match &self.document {
            Some(tree) => Ok(Some(BlockTree { url: self.url.clone(), ..tree.clone() })),
            None if is_vixml(&self.html) => {
                let tree =
                    vixml::read(&self.html).with_context(|| format!("cannot read {}", self.version))?;
                Ok(Some(tree))
            }
            None => Ok(None),
        }
    }

    /// A stylesheet or image of the page, from the same folder, archive or host.
    pub fn subresource(&self, url: &str) -> Option<CapturedResource> {
        self.subresource_before(url, None)
    }

    /// The same, with a deadline for live hosts.
    pub fn subresource_before(&self, url: &str, deadline: Option<Instant>) -> Option<CapturedResource> {
        match &self.subresources {
            SubresourceSource::Folder(folder) => beside(folder, &self.url, url),
            SubresourceSource::Archive(snapshot, subresources) => {
                let snapshot = snapshot.lock();
                subresources.find_in(snapshot.archive(), snapshot.store(), url, self.time)
            }
            SubresourceSource::Network(live) => {
                let response = live.fetch(&Url::parse(url).ok()?, deadline);
                response.ok().map(|(_, captured)| captured)
            }
        }
    }
}

fn is_vixml(text: &str) -> bool {
    let mut start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with("<?xml") {
        start = start.split_once("?>").map_or("", |(_, rest)| rest).trim_start();
    }
    start.starts_with("<Document")
}

fn load_file(path: &Path) -> anyhow::Result<LoadedPage<'static>> {
    if !path.is_file() {
        bail!(
            "cannot read the page {}: neither a file nor a URL; write page.html, https://host/page or \
             https://host/page@20261116",
            path.display()
        );
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let name = path.display().to_string();
    let format = DocumentFormat::detect_file(&name, &bytes);
    let content = PageContent::read(FILE_URL, &name, None, format, &bytes)?;
    Ok(LoadedPage::new(
        FILE_URL.to_string(),
        name,
        perennial_archive::now(),
        content,
        SubresourceSource::Folder(folder),
    ))
}

/// The content of a page: HTML, or the blocks of a document.
struct PageContent {
    html: String,
    document: Option<BlockTree>,
}

impl PageContent {
    /// Reads known document formats. All others are read as HTML.
    fn read(
        url: &str,
        version: &str,
        content_type: Option<&str>,
        format: Option<DocumentFormat>,
        bytes: &[u8],
    ) -> anyhow::Result<PageContent> {
        let html = || PageContent { html: decode_text(bytes, content_type).into_owned(), document: None };
        let Some(format) = format else { return Ok(html()) };
        if format == DocumentFormat::Xml && is_vixml(&decode_text(bytes, content_type)) {
            return Ok(html());
        }
        match format.read(url, content_type, bytes) {
            Some(Document { tree, .. }) => {
                let tree = BlockTree { url: url.to_owned(), version: version.to_owned(), ..tree };
                Ok(PageContent { html: String::new(), document: Some(tree) })
            }
            None if format == DocumentFormat::Pdf => bail!(
                "{version} contains no readable text: it is encrypted, scanned or damaged; compare a different version, or extract \
                 of it with another program"
            ),
            None => Ok(html()),
        }
    }

    /// Reads the body of an HTTP response.
    fn from_response(
        url: &str,
        version: &str,
        content_type: Option<&str>,
        bytes: &[u8],
    ) -> anyhow::Result<PageContent> {
        let format = DocumentFormat::detect(content_type, url, bytes);
        PageContent::read(url, version, content_type, format, bytes)
    }
}

impl<'s> LoadedPage<'s> {
    fn new(
        url: String,
        version: String,
        time: Timestamp,
        content: PageContent,
        subresources: SubresourceSource<'s>,
    ) -> LoadedPage<'s> {
        let PageContent { html, document } = content;
        LoadedPage { url, version, time, html, document, note: None, subresources }
    }
}

/// The file for a URL relative to the page, never outside the page's folder.
fn beside(folder: &Path, page: &str, wanted: &str) -> Option<CapturedResource> {
    let (page, wanted) = (Url::parse(page).ok()?, Url::parse(wanted).ok()?);
    let relative = page.join(".").ok()?.make_relative(&wanted).filter(|path| !path.starts_with(".."));
    let name = wanted.path_segments()?.next_back()?.to_string();
    let relative = relative.unwrap_or_default();
    let relative = relative.split(['?', '#']).next().unwrap_or_default();
    let is_inside = |path: &str| {
        !path.is_empty()
            && Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    let body = [relative, name.as_str()]
        .into_iter()
        .filter(|path| is_inside(path))
        .find_map(|path| std::fs::read(folder.join(path)).ok())?;
    let content_type = if name.ends_with(".css") { "text/css" } else { "" };
    Some(CapturedResource {
        status: 200,
        content_type: content_type.to_string(),
        body,
        ..CapturedResource::default()
    })
}

fn load_archived<'s>(
    shared: &'s SharedSnapshot,
    url: &str,
    time: Option<Timestamp>,
) -> anyhow::Result<LoadedPage<'s>> {
    let snapshot = shared.lock();
    let near = time.unwrap_or_else(perennial_archive::now);
    let missing = || {
        format!(
            "the archive has no capture of {url}: see `perennial status`, or leave out @TIME to fetch it live"
        )
    };
    let capture = snapshot.store().closest_observation(url, near)?.with_context(missing)?;
    let subresources = SubresourceSource::Archive(shared, SubresourceCache::default());
    if snapshot.store().is_left_out(&capture)? {
        return load_left_out(&snapshot, capture, subresources);
    }
    let content = capture_content(&snapshot, &capture)?.with_context(missing)?;
    let version = capture.time.to_rfc3339();
    Ok(LoadedPage::new(capture.url.clone(), version, capture.time, content, subresources))
}

fn capture_content(snapshot: &Snapshot, capture: &Capture) -> anyhow::Result<Option<PageContent>> {
    let Some(payload) = snapshot.document(capture)? else { return Ok(None) };
    let (version, content_type) = (capture.time.to_rfc3339(), payload.head.get("Content-Type"));
    PageContent::from_response(&capture.url, &version, content_type.as_deref(), &payload.bytes).map(Some)
}

/// Loads a version of which only the delta is stored: the blocks that the deltas give, otherwise the last whole
/// version before it.
fn load_left_out<'s>(
    snapshot: &Snapshot,
    capture: Capture,
    subresources: SubresourceSource<'s>,
) -> anyhow::Result<LoadedPage<'s>> {
    let (store, version) = (snapshot.store(), capture.time.to_rfc3339());
    let url = &capture.url;
    let left_out = format!("{url} at {version} was left out (keep = \"important\")");
    if let Some(mut tree) = store.tree_at(capture.page, capture.time)? {
        tree.version.clone_from(&version);
        let note =
            Some(format!("{left_out}: its blocks are computed from stored deltas, its bytes are not stored"));
        let (url, html, document) = (capture.url, String::new(), Some(tree));
        return Ok(LoadedPage { url, version, time: capture.time, html, document, note, subresources });
    }
    let hint = || {
        format!("{left_out} and no whole version precedes it: choose a different time, see `perennial log`")
    };
    let whole = store.whole_capture_before(capture.page, capture.time)?.with_context(hint)?;
    let content = capture_content(snapshot, &whole)?.with_context(hint)?;
    let version = whole.time.to_rfc3339();
    let note = Some(format!(
        "{left_out} and is not analysed yet: the version of {version} is shown instead; `perennial analyse` computes its blocks"
    ));
    let page = LoadedPage::new(whole.url.clone(), version, whole.time, content, subresources);
    Ok(LoadedPage { note, ..page })
}

fn load_live(url: &str, private: PrivateAccess) -> anyhow::Result<LoadedPage<'static>> {
    let named = Url::parse(url).with_context(|| format!("{url} is not a URL"))?;
    let agent = concat!("perennial/", env!("CARGO_PKG_VERSION")).to_string();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let limits = FetchLimits { max_body_bytes: MAX_BODY_BYTES, ..FetchLimits::default() };
    let live =
        LiveFetcher { client: Client::new(agent, limits, None), runtime, private, named: named.origin() };
    let (url, captured) = live.fetch(&named, None)?;
    if !(200..300).contains(&captured.status) {
        bail!("{url}: the server responded with status {}; there is nothing to show", captured.status);
    }
    let time = perennial_archive::now();
    let content_type = Some(captured.content_type.as_str()).filter(|content_type| !content_type.is_empty());
    let content = PageContent::from_response(url.as_str(), &time.to_rfc3339(), content_type, &captured.body)?;
    Ok(LoadedPage::new(
        url.into(),
        time.to_rfc3339(),
        time,
        content,
        SubresourceSource::Network(Box::new(live)),
    ))
}

/// Fetches a page and its subresources from the web without storing them.
struct LiveFetcher {
    client: Client,
    runtime: tokio::runtime::Runtime,
    private: PrivateAccess,
    named: url::Origin,
}

impl LiveFetcher {
    /// Fetches a URL and follows redirects, until the deadline if there is one. Returns the final URL and its
    /// response.
    fn fetch(&self, url: &Url, deadline: Option<Instant>) -> anyhow::Result<(Url, CapturedResource)> {
        self.runtime.block_on(async {
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline.into(), self.follow(url)).await?,
                None => self.follow(url).await,
            }
        })
    }

    async fn follow(&self, url: &Url) -> anyhow::Result<(Url, CapturedResource)> {
        let mut url = url.clone();
        for _ in 0..MAX_REDIRECTS {
            let allow_private = match self.private {
                PrivateAccess::None => false,
                PrivateAccess::Named => url.origin() == self.named,
                PrivateAccess::Any => true,
            };
            let request = FetchRequest { url: &url, fields: &[], allow_private };
            let mut fetched = self.client.fetch(&request).await?;
            let status = fetched.status();
            let next = fetched.head.get("Location").filter(|_| (300..400).contains(&status));
            if let Some(next) = next.and_then(|next| url.join(next.trim()).ok()) {
                url = next;
                continue;
            }
            let content_type = fetched.head.get("Content-Type").unwrap_or_default().into_owned();
            let body = fetched.body.prefix(MAX_BODY_BYTES as usize)?.into_owned();
            let decoded = payload::decode(&fetched.head, &body[..], payload::DecodingLimits::default());
            return Ok((
                url,
                CapturedResource { status, content_type, body: decoded.bytes, ..CapturedResource::default() },
            ));
        }
        bail!("{url}: too many redirects")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_file_an_archived_version_or_live() {
        let spec = |text: &str| text.parse::<PageSpec>().unwrap();
        assert_eq!(spec("page.html"), PageSpec::File("page.html".into()));
        assert_eq!(spec("http://a.org/x@y"), PageSpec::Live("http://a.org/x@y".into()));
        let url = || "http://a.org/".to_string();
        let time = Timestamp::parse("20260102").unwrap();
        assert_eq!(spec("http://a.org/@20260102"), PageSpec::Archived { url: url(), time: Some(time) });
        assert_eq!(spec("http://a.org/@"), PageSpec::Archived { url: url(), time: None });
    }

    #[test]
    fn vixml_is_distinguished_from_html() {
        assert!(is_vixml("<?xml version=\"1.0\"?>\n<Document url=''/>"));
        assert!(!is_vixml("<!DOCTYPE html><html>"));
    }
}
