//! A request as the handlers of the routes see it: what it is about, what it asks for, who sent it.

use hyper::http::Response;
use hyper::http::request::Parts;
use perennial_core::memento::address::Query;
use perennial_core::url::canonical::host_name;

use super::body::Body;
use super::dashboard::layout::{AdminAccess, Place};
use super::problem::Problem;
use super::summary::Summary;
use super::{Origin, Origins, ServedArchive, Server, rewrite};
use perennial_archive::Snapshot;

/// Whom a response is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// People.
    Html,
    /// Programs.
    Json,
}

/// A request as the handlers of the routes see it.
pub struct Request<'a> {
    /// All that is served.
    pub server: &'a Server,
    /// The archive that it is about.
    pub served: &'a ServedArchive,
    /// Where it came to.
    pub origin: Origin,
    /// Its head.
    pub parts: &'a Parts,
    /// Whether the client may act.
    pub operating: AdminAccess<'a>,
    /// What stands behind the path of its route, as the client wrote it.
    pub rest: &'a str,
    /// Its parameters.
    pub query: Query,
    /// Whom the response is for.
    pub form: Form,
    /// What a POST carries.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// A parameter that is not blank, trimmed.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// A parameter that the request must have.
    pub fn needed(&self, name: &str) -> Result<&str, Problem> {
        let hint = || format!("Write {}?{name}=...", self.parts.uri.path());
        self.given(name).ok_or_else(|| Problem::bad_request(hint()))
    }

    /// The archive as a page shows it.
    pub fn place(&self) -> Place<'_> {
        Place { name: &self.served.name, base: &self.served.base, operating: self.operating }
    }

    /// Reads from the archive as it is now.
    pub fn with<T>(&self, read: impl FnOnce(&Snapshot) -> anyhow::Result<T>) -> Result<T, Problem> {
        let read = self.served.pool.with(read).and_then(|read| read);
        read.map_err(|error| Problem::internal(&error))
    }

    /// Reads from the archive and from what is computed over the whole of it; `None` while that is computed for the first time.
    pub(crate) fn with_summary<T>(
        &self,
        read: impl FnOnce(&Snapshot, Option<&Summary>) -> anyhow::Result<T>,
    ) -> Result<T, Problem> {
        let standing = self.served.standings.of(&self.served.pool);
        let standing = standing.map_err(|error| Problem::internal(&error))?;
        self.with(|snapshot| read(snapshot, standing.as_deref()))
    }

    /// A field of the head, if it is text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Whether several archives are served and the path names none of them.
    pub fn is_unnamed(&self) -> bool {
        let is_named = self.parts.uri.path().trim_start_matches('/').split('/').next()
            == Some(self.served.name.as_str());
        self.server.archives().len() > 1 && !is_named
    }

    /// Where a request belongs that a replayed page made to the root of the replay origin: to the archive of the page that asked.
    pub fn stray(&self, target: &str) -> Option<Response<Body>> {
        let (origins, referer) = (self.origins(), self.field("referer"));
        let archives = self.server.archives().iter();
        archives
            .filter_map(|served| rewrite::assets::stray(referer, &origins.replay, &served.base, target))
            .next()
    }

    /// The two origins under the name that the client knows this machine by, where both are on it.
    pub fn origins(&self) -> Origins {
        let configured = self.server.origins();
        let host = self.field("host").map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        match (
            host.filter(|host| !host.is_empty()),
            host_name(&configured.main),
            host_name(&configured.replay),
        ) {
            (Some(host), Some(main), Some(replay)) if main == replay && main != host => Origins {
                main: configured.main.replacen(main, host, 1),
                replay: configured.replay.replacen(replay, host, 1),
            },
            _ => configured.clone(),
        }
    }

    /// Our own origin under the name that the client knows it by.
    pub fn main_origin(&self) -> String {
        let main = &self.server.origins().main;
        match (self.origin, self.field("host")) {
            (Origin::Main, Some(host)) if !host.is_empty() => {
                let scheme = main.split("://").next().unwrap_or("http");
                format!("{scheme}://{host}")
            }
            _ => main.clone(),
        }
    }

    /// Whether a browser goes to this address to show it as a page.
    pub fn is_navigation(&self) -> bool {
        self.field("sec-fetch-dest") == Some("document")
    }
}
