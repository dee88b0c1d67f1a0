//! What a user calls a page (a file, `URL@TIME`, a live address) -> its text and a way to its requisites.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use perennial_core::charset::decode_text;
use perennial_core::payload;
use perennial_core::time::Timestamp;
use perennial_render::Captured;
use url::Url;

use super::Context;
use crate::analyse::{Readers, Requisites};
use crate::archive::{self, Archive};
use crate::fetch::{Client, Limits, Request};

/// Redirects that are followed for a live page.
const MAX_REDIRECTS: usize = 10;
/// A longer live body is cut here.
const MAX_BODY_BYTES: usize = 32 << 20;

/// Where a page comes from.
pub(super) enum PageSource {
    /// A file, and the address it is to have.
    File(PathBuf, String),
    /// The capture closest to a time, or the latest.
    Archived(String, Option<Timestamp>),
    /// The network.
    Live(String),
}

impl PageSource {
    /// Understands what the user wrote.
    pub(super) fn parse(text: &str, url: Option<&str>) -> anyhow::Result<PageSource> {
        let path = Path::new(text);
        if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let own = format!("http://file.invalid/{name}");
            return Ok(PageSource::File(path.to_path_buf(), url.map_or(own, str::to_string)));
        }
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        // An address may hold an @ of its own: only one followed by a time, or by nothing, ends it.
        let at = text.rsplit_once('@').filter(|(_, time)| time.is_empty() || Timestamp::parse(time).is_ok());
        match at {
            Some((url, "")) if is_address => Ok(PageSource::Archived(url.to_string(), None)),
            Some((url, time)) if is_address => {
                Ok(PageSource::Archived(url.to_string(), Some(Timestamp::parse(time)?)))
            }
            None if is_address => Ok(PageSource::Live(text.to_string())),
            _ => bail!(
                "{text}: neither a file nor an address; write page.html, https://host/page or https://host/page@20261116"
            ),
        }
    }

    /// Reads the page.
    pub(super) fn load(&self, context: &Context, allow_private: bool) -> anyhow::Result<Page> {
        match self {
            PageSource::File(path, url) => load_file(path, url),
            PageSource::Archived(url, time) => load_archived(context.open()?, url, *time),
            PageSource::Live(url) => load_live(url, allow_private),
        }
    }
}

/// A page and the way to what it needs.
pub(super) struct Page {
    pub(super) url: String,
    pub(super) time: Timestamp,
    pub(super) html: String,
    requisites: Origin,
}

enum Origin {
    Folder(PathBuf),
    Archive(Readers, Requisites),
    Network(Box<Live>),
}

impl Page {
    /// Address and version, as they stand in the tree.
    pub(super) fn stamp(&self) -> (String, String) {
        (self.url.clone(), self.time.to_rfc3339())
    }

    /// A stylesheet or image of the page, from where the page came from.
    pub(super) fn requisite(&self, url: &str) -> Option<Captured> {
        match &self.requisites {
            Origin::Folder(folder) => beside(folder, &self.url, url),
            Origin::Archive(readers, requisites) => requisites.find(readers, url, self.time),
            Origin::Network(live) => live.fetch(&Url::parse(url).ok()?).ok().map(|(_, captured)| captured),
        }
    }
}

fn load_file(path: &Path, url: &str) -> anyhow::Result<Page> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    Ok(Page {
        url: url.to_string(),
        time: archive::now(),
        html: decode_text(&bytes, None).into_owned(),
        requisites: Origin::Folder(folder),
    })
}

/// The file that an address relative to the page names, never outside the page's folder.
fn beside(folder: &Path, page: &str, wanted: &str) -> Option<Captured> {
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
    Some(Captured { status: 200, content_type: content_type.to_string(), body })
}

fn load_archived(archive: Archive, url: &str, time: Option<Timestamp>) -> anyhow::Result<Page> {
    let store = archive.store()?;
    let near = time.unwrap_or_else(archive::now);
    let missing = || {
        format!(
            "the archive has no capture of {url}: see `perennial info`, or leave out @TIME to fetch it live"
        )
    };
    let capture = store.closest_payload(url, near)?.with_context(missing)?;
    let payload = archive.payload(&store, &capture)?.with_context(missing)?;
    let html = decode_text(&payload.bytes, payload.head.get("Content-Type").as_deref()).into_owned();
    drop(store);
    let requisites = Origin::Archive(Readers::new(&archive), Requisites::default());
    Ok(Page { url: capture.url, time: capture.time, html, requisites })
}

fn load_live(url: &str, allow_private: bool) -> anyhow::Result<Page> {
    let agent = concat!("perennial/", env!("CARGO_PKG_VERSION")).to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let live = Live { client: Client::new(agent, Limits::default(), None), runtime, allow_private };
    let (url, captured) = live.fetch(&Url::parse(url).with_context(|| format!("{url} is no address"))?)?;
    if !(200..300).contains(&captured.status) {
        bail!("{url} answered with status {}: there is nothing to segment", captured.status);
    }
    Ok(Page {
        html: decode_text(&captured.body, Some(&captured.content_type)).into_owned(),
        url: url.into(),
        time: archive::now(),
        requisites: Origin::Network(Box::new(live)),
    })
}

struct Live {
    client: Client,
    runtime: tokio::runtime::Runtime,
    allow_private: bool,
}

impl Live {
    /// Fetches an address, following redirects; the last address and what was there.
    fn fetch(&self, url: &Url) -> anyhow::Result<(Url, Captured)> {
        let mut url = url.clone();
        for _ in 0..MAX_REDIRECTS {
            let request = Request { url: &url, fields: &[], allow_private: self.allow_private };
            let mut fetched = self.runtime.block_on(self.client.fetch(&request))?;
            let status = fetched.status();
            let next = fetched.head.get("Location").filter(|_| (300..400).contains(&status));
            if let Some(next) = next.and_then(|next| url.join(&next).ok()) {
                url = next;
                continue;
            }
            let content_type = fetched.head.get("Content-Type").unwrap_or_default().into_owned();
            let body = fetched.body.prefix(MAX_BODY_BYTES)?.into_owned();
            let decoded = payload::decode(&fetched.head, &body[..], payload::Limits::default());
            return Ok((url, Captured { status, content_type, body: decoded.bytes }));
        }
        bail!("{url} redirects without end")
    }
}
