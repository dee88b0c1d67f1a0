//! A request as the handlers of the routes see it.

use hyper::http::Response;
use hyper::http::request::Parts;
use perennial_core::memento::replay_url::QueryParameters;

use super::body::Body;
use super::dashboard::layout::{AdminAccess, Place};
use super::problem::Problem;
use super::summary::Summary;
use super::{Origin, Origins, ServedArchive, Server, rewrite};
use perennial_archive::Snapshot;

/// The format of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseFormat {
    Html,
    Json,
}

pub struct Request<'a> {
    pub server: &'a Server,
    pub served: &'a ServedArchive,
    pub origin: Origin,
    pub parts: &'a Parts,
    /// Whether the client is logged in as an admin.
    pub admin: AdminAccess<'a>,
    /// The target after the path of its route, as the client wrote it.
    pub rest: &'a str,
    pub query: QueryParameters,
    pub form: ResponseFormat,
    /// The body of a POST.
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

    pub fn place(&self) -> Place<'_> {
        Place { name: &self.served.name, base: &self.served.base, admin: self.admin }
    }

    /// Reads from the current snapshot.
    pub fn with<T>(&self, read: impl FnOnce(&Snapshot) -> anyhow::Result<T>) -> Result<T, Problem> {
        let read = self.served.pool.with(read).and_then(|read| read);
        read.map_err(|error| Problem::internal(&error))
    }

    /// Also passes the archive's summary; `None` while it is computed for the first time.
    pub(crate) fn with_summary<T>(
        &self,
        read: impl FnOnce(&Snapshot, Option<&Summary>) -> anyhow::Result<T>,
    ) -> Result<T, Problem> {
        let summary = self.served.summaries.latest(&self.served.pool);
        let summary = summary.map_err(|error| Problem::internal(&error))?;
        self.with(|snapshot| read(snapshot, summary.as_deref()))
    }

    /// A header field, if it is text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Whether several archives are served and the path does not name one.
    pub fn is_unnamed(&self) -> bool {
        let is_named = self.parts.uri.path().trim_start_matches('/').split('/').next()
            == Some(self.served.name.as_str());
        self.server.archives().len() > 1 && !is_named
    }

    /// Redirects a leaked request, which a replayed page sent to the root of the replay origin, to the page's archive.
    pub fn leaked_request(&self, target: &str) -> Option<Response<Body>> {
        let (origins, referer) = (self.origins(), self.field("referer"));
        let archives = self.server.archives().iter();
        archives
            .filter_map(|served| {
                rewrite::assets::leaked_request(referer, &origins.replay, &served.base, target)
            })
            .next()
    }

    /// The two origins as the client reaches them.
    pub fn origins(&self) -> Origins {
        self.server.origins_for(self.origin, self.parts)
    }

    /// The main origin with the host that the client uses.
    pub fn main_origin(&self) -> String {
        let main = &self.server.origins().main;
        match (self.origin, self.field("host")) {
            (Origin::Main, Some(host)) if !host.is_empty() && self.server.options().proxied.is_none() => {
                let scheme = main.split("://").next().unwrap_or("http");
                format!("{scheme}://{host}")
            }
            _ => main.clone(),
        }
    }

    /// Whether a browser requests this URL to show it as a page. Without TLS on other machines, browsers do not say so; then a page of
    /// the main origin is recognised by a field that browsers add when they navigate, because nothing frames it.
    pub fn is_navigation(&self) -> bool {
        match self.field("sec-fetch-dest") {
            Some(destination) => destination == "document",
            None => self.origin == Origin::Main && self.field("upgrade-insecure-requests") == Some("1"),
        }
    }
}
