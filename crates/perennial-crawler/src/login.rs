//! Logged-in sites: which secrets a request sends, and the login that makes them.
//!
//! A recorded login runs in the browser before the site's first visit, and again when the session has ended. Its own
//! exchanges are not archived, because they contain the secrets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use perennial_core::http::cookies::{Cookie, CookieJar};
use perennial_core::time::{Span, Timestamp};
use perennial_fetch::{FetchRequest, RequestBody};
use perennial_render::{BrowserCookie, BrowserRequest, CapturedResource};
use url::Url;

use super::visit::{VisitContext, decoded};
use perennial_archive::settings::Seeds;
use perennial_archive::settings::secrets::SiteSecrets;

/// A site does not log in again earlier than this.
const MIN_PAUSE: Span = Span::from_secs(600);

/// The secrets of all sites of a crawl, by the number of their seed.
#[derive(Default)]
pub(super) struct Logins(HashMap<i64, Login>);

struct Login {
    /// The site's own URL. Fields are sent to its origin only.
    site: Url,
    secrets: SiteSecrets,
    /// Cookies of the file and of the last login.
    jar: Mutex<CookieJar>,
    session: tokio::sync::Mutex<LoginState>,
}

/// The state of a recorded login.
#[derive(Default)]
struct LoginState {
    /// When the steps were last taken.
    tried: Option<Timestamp>,
    /// Why they failed, if so.
    failure: Option<String>,
}

/// The secret fields of a request.
#[derive(Default)]
pub(super) struct RequestSecrets {
    pub(super) fields: Vec<(String, String)>,
    /// Whether the archived request contains them.
    pub(super) are_recorded: bool,
}

impl Logins {
    /// Reads the secrets of all sites that have a login. `profile_cookies` reads those of a browser's profile.
    pub(super) fn read(
        seeds: &Seeds,
        folder: &std::path::Path,
        profile_cookies: impl Fn(&std::path::Path) -> anyhow::Result<Vec<BrowserCookie>>,
    ) -> anyhow::Result<Logins> {
        let mut logins = HashMap::new();
        for (number, seed) in seeds.iter_numbered() {
            let Some(file) = &seed.login else { continue };
            let context = || format!("login of {} in perennial.toml", seed.scope.seed);
            let secrets = SiteSecrets::read(&folder.join(file)).with_context(context)?;
            let mut jar = secrets.cookies.clone();
            if let Some(profile) = &secrets.chromium_profile {
                profile_cookies(profile)
                    .with_context(context)?
                    .into_iter()
                    .for_each(|one| jar.put(stored(one)));
            }
            let session = tokio::sync::Mutex::default();
            let (site, jar) = (seed.scope.seed.clone(), Mutex::new(jar));
            logins.insert(number, Login { site, secrets, jar, session });
        }
        Ok(Logins(logins))
    }

    /// Logs in to a site if it has a recorded login that did not run yet. The error is why it failed.
    pub(super) async fn ensure(&self, shared: &Arc<VisitContext>, seed: i64) -> Result<(), String> {
        let Some(login) = self.0.get(&seed).filter(|login| !login.secrets.steps.is_empty()) else {
            return Ok(());
        };
        let mut session = login.session.lock().await;
        let now = shared.clock.now();
        let is_due = match (session.tried, &session.failure) {
            (None, _) => true,
            (Some(tried), Some(_)) => now - tried >= MIN_PAUSE,
            (Some(_), None) => false,
        };
        if is_due {
            session.tried = Some(now);
            session.failure = login.log_in(shared, seed).await.err();
        }
        session.failure.clone().map_or(Ok(()), Err)
    }

    /// Ends the session of a site that refused it. The next visit logs in again.
    pub(super) async fn end_session(&self, seed: i64, now: Timestamp) {
        if let Some(login) = self.0.get(&seed) {
            let mut session = login.session.lock().await;
            if session.tried.is_some_and(|tried| now - tried >= MIN_PAUSE) {
                session.tried = None;
            }
        }
    }

    /// The secrets of a request for a URL, made for a site.
    pub(super) fn secrets(&self, seed: i64, url: &Url, now: Timestamp) -> RequestSecrets {
        let Some(login) = self.0.get(&seed) else { return RequestSecrets::default() };
        let mut fields = Vec::new();
        let jar = login.jar.lock().unwrap_or_else(PoisonError::into_inner);
        fields.extend(jar.field(url, now).map(|cookies| ("Cookie".to_string(), cookies)));
        if url.origin() == login.site.origin() {
            fields.extend(login.secrets.fields.iter().cloned());
        }
        RequestSecrets { fields, are_recorded: login.secrets.are_recorded }
    }

    /// The cookies that scripts of a page may read.
    pub(super) fn cookies(&self, seed: i64) -> Vec<BrowserCookie> {
        let Some(login) = self.0.get(&seed) else { return Vec::new() };
        let jar = login.jar.lock().unwrap_or_else(PoisonError::into_inner);
        jar.iter().map(of_browser).collect()
    }
}

impl Login {
    async fn log_in(&self, shared: &Arc<VisitContext>, seed: i64) -> Result<(), String> {
        let (shared, steps) = (shared.clone(), self.secrets.steps.clone());
        let cookies = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Handle::current();
            let respond = |requested: &BrowserRequest, deadline: Instant| {
                let responding = respond(&shared, seed, requested);
                let responding = async { tokio::time::timeout_at(deadline.into(), responding).await };
                runtime.block_on(responding).ok()?
            };
            shared.browser.log_in(&steps, &respond)
        });
        let cookies = cookies.await.map_err(|error| error.to_string())??;
        let mut jar = self.jar.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.into_iter().for_each(|cookie| jar.put(stored(cookie)));
        Ok(())
    }
}

/// Fetches what the browser requests during a login. Nothing of it is archived.
async fn respond(
    shared: &Arc<VisitContext>,
    seed: i64,
    requested: &BrowserRequest,
) -> Option<CapturedResource> {
    let url = Url::parse(&requested.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let site = shared.seeds.with_number(seed)?;
    let allow_private =
        shared.allow_private || site.allow_private && site.scope.seed.origin() == url.origin();
    let (own_secrets, plain) = requested.split_secrets();
    // During a login the browser's own cookies are newer.
    let mut secrets: Vec<(String, String)> =
        own_secrets.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let known = shared.logins.secrets(seed, &url, shared.clock.now()).fields;
    let known: Vec<_> = known.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    add_missing(&mut secrets, &known);
    let plain: Vec<(&str, String)> = plain.iter().map(|(name, value)| (*name, value.to_string())).collect();
    let body = RequestBody { method: &requested.method, bytes: &requested.body };
    let request = FetchRequest {
        secrets: &secrets,
        body: Some(body).filter(|body| body.method != "GET"),
        ..FetchRequest::get(&url, &plain, allow_private)
    };
    let mut fetched = shared.client.fetch(&request).await.ok()?;
    let is_redirect = (300..400).contains(&fetched.status());
    let location = fetched.head.get("Location").filter(|_| is_redirect).map(|to| to.into_owned());
    Some(CapturedResource {
        status: fetched.status(),
        content_type: fetched.head.get("Content-Type").unwrap_or_default().into_owned(),
        location,
        cookies: fetched.head.get_all("Set-Cookie").map(|cookie| cookie.into_owned()).collect(),
        body: decoded(&mut fetched)?,
    })
}

/// Adds the fields whose names are not there yet.
pub(super) fn add_missing(fields: &mut Vec<(String, String)>, more: &[(&str, &str)]) {
    for (name, value) in more {
        if !fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            fields.push((name.to_string(), value.to_string()));
        }
    }
}

fn stored(cookie: BrowserCookie) -> Cookie {
    Cookie {
        has_subdomains: cookie.domain.starts_with('.'),
        domain: cookie.domain.trim_start_matches('.').to_ascii_lowercase(),
        name: cookie.name,
        value: cookie.value,
        path: cookie.path,
        is_secure: cookie.is_secure,
        expires: cookie.expires.map(|expires| Timestamp::from_secs(expires as i64)),
    }
}

fn of_browser(cookie: &Cookie) -> BrowserCookie {
    let dot = if cookie.has_subdomains { "." } else { "" };
    BrowserCookie {
        name: cookie.name.clone(),
        value: cookie.value.clone(),
        domain: format!("{dot}{}", cookie.domain),
        path: cookie.path.clone(),
        is_secure: cookie.is_secure,
        is_http_only: false,
        expires: cookie.expires.map(|expires| expires.as_secs() as f64),
    }
}
