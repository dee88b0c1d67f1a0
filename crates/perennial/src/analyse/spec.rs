//! What a user calls a page -> its tree of blocks: a file, Vi-XML, an archived version `url@time`, a live page.
//!
//! Both sides of a comparison go through here, so both are laid out by the same engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use perennial_core::charset::decode_text;
use perennial_core::payload::{self, Limits as PayloadLimits};
use perennial_core::segment::{BlockTree, vixml};
use perennial_core::time::Timestamp;
use perennial_render::Captured;
use url::Url;

use super::{Analyst, Look, Readers, Requisites};
use crate::archive::Archive;
use crate::fetch::{Client, Limits, Request};

/// What a user calls a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageSpec {
    /// An HTML or Vi-XML file.
    File(PathBuf),
    /// The version of the archive closest to a time.
    Archived {
        /// Address of the page.
        url: String,
        /// When.
        time: Timestamp,
    },
    /// The page as it is now on the web.
    Live(String),
}

impl FromStr for PageSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PageSpec, String> {
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        if !is_address {
            return Ok(PageSpec::File(PathBuf::from(text)));
        }
        if let Some((url, time)) = text.rsplit_once('@')
            && let Ok(time) = Timestamp::parse(time)
        {
            return Ok(PageSpec::Archived { url: url.to_string(), time });
        }
        Ok(PageSpec::Live(text.to_string()))
    }
}

impl Analyst {
    /// The blocks of what a user calls a page; `open` gives the archive when one is needed.
    pub fn tree_of(
        &self,
        spec: &PageSpec,
        open: impl FnOnce() -> anyhow::Result<Archive>,
    ) -> anyhow::Result<BlockTree> {
        match spec {
            PageSpec::File(path) => self.tree_of_file(path),
            PageSpec::Archived { url, time } => self.tree_of_archived(&open()?, url, *time),
            PageSpec::Live(url) => self.tree_of_live(url),
        }
    }

    /// A file, with the stylesheets and images that stand beside it.
    fn tree_of_file(&self, path: &Path) -> anyhow::Result<BlockTree> {
        let bytes = fs::read(path).with_context(|| format!("cannot read the page {}", path.display()))?;
        let html = decode_text(&bytes, None);
        if is_vixml(&html) {
            return vixml::read(&html).with_context(|| format!("cannot read {}", path.display()));
        }
        let requisites = |wanted: &str| beside(wanted, path);
        let version = path.display().to_string();
        // One address for all files, so that relative links of two files compare equal.
        Ok(self.tree(&Look {
            url: "http://page.example/",
            version: &version,
            html: &html,
            requisites: &requisites,
        }))
    }

    fn tree_of_archived(&self, archive: &Archive, url: &str, time: Timestamp) -> anyhow::Result<BlockTree> {
        let store = archive.store()?;
        let absent = || format!("the archive has no version of {url}: see `perennial info`");
        let capture = store.closest_payload(url, time)?.with_context(absent)?;
        let payload = archive.payload(&store, &capture)?.with_context(absent)?;
        let html = decode_text(&payload.bytes, payload.head.get("Content-Type").as_deref());
        let (requisites, readers) = (Requisites::default(), Readers::new(archive));
        let find = |wanted: &str| requisites.find(&readers, wanted, capture.time);
        let version = capture.time.to_rfc3339();
        Ok(self.tree(&Look { url, version: &version, html: &html, requisites: &find }))
    }

    fn tree_of_live(&self, url: &str) -> anyhow::Result<BlockTree> {
        let web = Web::new()?;
        let page = web.get(url).with_context(|| format!("cannot fetch {url}"))?;
        let html = decode_text(&page.body, Some(&page.content_type));
        let find = |wanted: &str| web.get(wanted).ok();
        let version = crate::archive::now().to_rfc3339();
        Ok(self.tree(&Look { url, version: &version, html: &html, requisites: &find }))
    }
}

fn is_vixml(text: &str) -> bool {
    let mut start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with("<?xml") {
        start = start.split_once("?>").map_or("", |(_, rest)| rest).trim_start();
    }
    start.starts_with("<Document")
}

fn beside(wanted: &str, page: &Path) -> Option<Captured> {
    let name = wanted.split(['?', '#']).next()?.rsplit('/').next().filter(|name| !name.is_empty())?;
    let body = fs::read(page.with_file_name(name)).ok()?;
    Some(Captured { status: 200, content_type: String::new(), body })
}

/// A page and its requisites from the web, nothing kept.
struct Web {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

const MAX_REDIRECTS: usize = 5;
const MAX_LIVE_BYTES: u64 = 16 << 20;

impl Web {
    fn new() -> anyhow::Result<Web> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let limits = Limits { max_body_bytes: MAX_LIVE_BYTES, ..Limits::default() };
        let agent = format!("perennial/{}", env!("CARGO_PKG_VERSION"));
        Ok(Web { runtime, client: Client::new(agent, limits, None) })
    }

    fn get(&self, url: &str) -> anyhow::Result<Captured> {
        let mut url = Url::parse(url)?;
        for _ in 0..=MAX_REDIRECTS {
            // The user named the page: one at home is as good as any.
            let request = Request { url: &url, fields: &[], allow_private: true };
            let mut fetched = self.runtime.block_on(self.client.fetch(&request))?;
            if (300..400).contains(&fetched.status())
                && let Some(location) = fetched.head.get("Location")
            {
                url = url.join(location.trim())?;
                continue;
            }
            let body = fetched.body.prefix(MAX_LIVE_BYTES as usize)?.into_owned();
            let decoded = payload::decode(&fetched.head, body.as_slice(), PayloadLimits::default());
            let content_type = fetched.head.get("Content-Type").unwrap_or_default().into_owned();
            return Ok(Captured { status: fetched.status(), content_type, body: decoded.bytes });
        }
        bail!("{url} redirects more than {MAX_REDIRECTS} times")
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
        let time = Timestamp::parse("20260102").unwrap();
        assert_eq!(spec("http://a.org/@20260102"), PageSpec::Archived { url: "http://a.org/".into(), time });
    }

    #[test]
    fn vixml_is_told_from_html() {
        assert!(is_vixml("<?xml version=\"1.0\"?>\n<Document url=''/>"));
        assert!(!is_vixml("<!DOCTYPE html><html>"));
    }
}
