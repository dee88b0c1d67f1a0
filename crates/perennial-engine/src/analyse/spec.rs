//! A page named on the command line (a file, Vi-XML, a PDF, `url@time`, a URL) -> its text, its subresources and its tree.
//!
//! Both sides of a comparison go through here, so both are laid out by the same engine.

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

/// Redirects that are followed for a live page.
const MAX_REDIRECTS: usize = 10;
/// A longer live body is cut here.
const MAX_BODY_BYTES: u64 = 32 << 20;
/// One address for all files, so that relative links of two files compare equal.
const FILE_URL: &str = "http://page.example/";

/// A page as it is named on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageSpec {
    /// An HTML or Vi-XML file, or another document that can be read.
    File(PathBuf),
    /// The archived version closest to a time.
    Archived {
        /// Address of the page.
        url: String,
        /// The time; `None`: the latest version.
        time: Option<Timestamp>,
    },
    /// The page as it is on the web now.
    Live(String),
}

impl FromStr for PageSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PageSpec, String> {
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        if !is_address {
            return Ok(PageSpec::File(PathBuf::from(text)));
        }
        // An address may hold an @ of its own: only one followed by a time, or by nothing, ends it.
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

/// Which private and loopback addresses are asked for a live page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PrivateAccess {
    None,
    /// Those of the scheme, host and port that the user named. Where these redirect to, and what their page refers to, was named
    /// by a stranger.
    Named,
    Any,
}

impl PageSpec {
    /// The snapshot that `open` gives, if the page is an archived one.
    pub fn snapshot(
        &self,
        open: impl FnOnce() -> anyhow::Result<Snapshot>,
    ) -> anyhow::Result<Option<SharedSnapshot>> {
        let is_archived = matches!(self, PageSpec::Archived { .. });
        is_archived.then(|| open().map(SharedSnapshot::new)).transpose()
    }

    /// Reads a page that is to be compared: a live one may be on this machine, when the user named it so.
    pub fn load_named<'s>(&self, snapshot: Option<&'s SharedSnapshot>) -> anyhow::Result<LoadedPage<'s>> {
        match self {
            PageSpec::Live(url) => load_live(url, PrivateAccess::Named),
            _ => self.load(snapshot, false),
        }
    }

    /// Reads the page; an archived one needs a snapshot ([`Self::snapshot`]).
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

/// A page that was read, with access to its subresources.
pub struct LoadedPage<'s> {
    /// Its address.
    pub url: String,
    /// Name of the version: the time of the capture, or the file.
    pub version: String,
    /// When it was captured, fetched or read.
    pub time: Timestamp,
    /// Its HTML, decoded; empty where only its blocks are known.
    pub html: String,
    /// The blocks of a document that is no HTML, such as a PDF, or of a version of which they are all that is known.
    pub document: Option<BlockTree>,
    /// What the user must know of it: that it was left out, and what is shown.
    pub note: Option<String>,
    subresources: SubresourceSource<'s>,
}

enum SubresourceSource<'s> {
    Folder(PathBuf),
    Archive(&'s SharedSnapshot, SubresourceCache),
    Network(Box<LiveFetcher>),
}

impl LoadedPage<'_> {
    /// The blocks of a page that needs no layout: a document that is no HTML, or Vi-XML.
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

    /// A stylesheet or image of the page, from the folder, archive or host that the page is from.
    pub fn subresource(&self, url: &str) -> Option<CapturedResource> {
        self.subresource_before(url, None)
    }

    /// The same; a host that has not answered by the deadline is given up.
    pub fn subresource_before(&self, url: &str, deadline: Option<Instant>) -> Option<CapturedResource> {
        match &self.subresources {
            SubresourceSource::Folder(folder) => beside(folder, &self.url, url),
            SubresourceSource::Archive(snapshot, subresources) => {
                let snapshot = snapshot.lock();
                subresources.find_in(snapshot.archive(), snapshot.store(), url, self.time)
            }
            SubresourceSource::Network(live) => {
                let answer = live.fetch(&Url::parse(url).ok()?, deadline);
                answer.ok().map(|(_, captured)| captured)
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
            "cannot read the page {}: neither a file nor an address; write page.html, https://host/page or \
             https://host/page@20261116",
            path.display()
        );
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let name = path.display().to_string();
    let format = DocumentFormat::of_file(&name, &bytes);
    let content = PageContent::read(FILE_URL, &name, None, format, &bytes)?;
    Ok(LoadedPage::new(
        FILE_URL.to_string(),
        name,
        perennial_archive::now(),
        content,
        SubresourceSource::Folder(folder),
    ))
}

/// The content of a page: HTML, or the blocks of another document.
struct PageContent {
    html: String,
    document: Option<BlockTree>,
}

impl PageContent {
    /// Reads a document of a known format as such, and all others as HTML.
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
                "no word of {version} can be read: it is encrypted, scanned or damaged; compare another version, or make a text \
                 of it with another program"
            ),
            None => Ok(html()),
        }
    }

    /// The same for an answer of a server.
    fn from_response(
        url: &str,
        version: &str,
        content_type: Option<&str>,
        bytes: &[u8],
    ) -> anyhow::Result<PageContent> {
        let format = DocumentFormat::of(content_type, url, bytes);
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

/// The file that an address relative to the page names, never outside the page's folder.
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
    Some(CapturedResource { status: 200, content_type: content_type.to_string(), body })
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
            "the archive has no capture of {url}: see `perennial info`, or leave out @TIME to fetch it live"
        )
    };
    let capture = snapshot.store().closest_look(url, near)?.with_context(missing)?;
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
    let (version, content_type) = (capture.time.to_rfc3339(), payload.head.get("PageContent-Type"));
    PageContent::from_response(&capture.url, &version, content_type.as_deref(), &payload.bytes).map(Some)
}

/// A version of which only what changed was stored: the blocks that the deltas gave, else the whole version before it.
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
            Some(format!("{left_out}: its blocks are made from what changed, its bytes are not stored"));
        let (url, html, document) = (capture.url, String::new(), Some(tree));
        return Ok(LoadedPage { url, version, time: capture.time, html, document, note, subresources });
    }
    let cure =
        || format!("{left_out} and no whole version is before it: name another time, see `perennial log`");
    let whole = store.whole_capture_before(capture.page, capture.time)?.with_context(cure)?;
    let content = capture_content(snapshot, &whole)?.with_context(cure)?;
    let version = whole.time.to_rfc3339();
    let note = Some(format!(
        "{left_out} and is not analysed yet: shown is the version of {version}; `perennial analyse` makes its blocks"
    ));
    let page = LoadedPage::new(whole.url.clone(), version, whole.time, content, subresources);
    Ok(LoadedPage { note, ..page })
}

fn load_live(url: &str, private: PrivateAccess) -> anyhow::Result<LoadedPage<'static>> {
    let named = Url::parse(url).with_context(|| format!("{url} is no address"))?;
    let agent = concat!("perennial/", env!("CARGO_PKG_VERSION")).to_string();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let limits = FetchLimits { max_body_bytes: MAX_BODY_BYTES, ..FetchLimits::default() };
    let live =
        LiveFetcher { client: Client::new(agent, limits, None), runtime, private, named: named.origin() };
    let (url, captured) = live.fetch(&named, None)?;
    if !(200..300).contains(&captured.status) {
        bail!("{url} answered with status {}: there is nothing to look at", captured.status);
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

/// Fetches a page and its subresources from the web and stores nothing.
struct LiveFetcher {
    client: Client,
    runtime: tokio::runtime::Runtime,
    private: PrivateAccess,
    /// Scheme, host and port of the page.
    named: url::Origin,
}

impl LiveFetcher {
    /// Fetches an address and follows redirects, until the deadline if there is one. Gives the last address and its answer.
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
            let decoded = payload::decode(&fetched.head, &body[..], payload::Limits::default());
            return Ok((url, CapturedResource { status, content_type, body: decoded.bytes }));
        }
        bail!("{url} redirects without end")
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
    fn vixml_is_told_from_html() {
        assert!(is_vixml("<?xml version=\"1.0\"?>\n<Document url=''/>"));
        assert!(!is_vixml("<!DOCTYPE html><html>"));
    }
}
