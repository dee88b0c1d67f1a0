//! Following a page from the dashboard: the form on the home page, and the page of a URL that waits for its first capture.

use hyper::http::{HeaderValue, Response};
use maud::{Markup, html};
use perennial_core::url::canonical;

use super::admin::{form, login_hint};
use super::components::{choice, crumbs, date_time, empty, untrusted};
use super::layout::{AdminAccess, Place, Shell, Tab, path};
use super::plan::explain;
use super::{Problem, Request};
use crate::body::Body;
use crate::pages;
use perennial_archive::CrawlRecord;
use perennial_archive::lock::is_being_written;
use perennial_archive::settings::Settings;
use perennial_core::time::Timestamp;

/// The page of a waiting URL reloads itself at this interval, without a script.
const RELOAD_SECS: &str = "3";

/// The form that follows a page or its site.
pub(crate) fn follow_form(place: Place<'_>, is_open: bool) -> Markup {
    let intervals = [
        ("", "when it probably changes"),
        ("5m", "every 5 minutes"),
        ("15m", "every 15 minutes"),
        ("1h", "every hour"),
        ("6h", "every 6 hours"),
        ("1d", "every day"),
    ];
    let scopes = [("page", "only this page"), ("host", "the whole site")];
    html! {
        @match place.admin {
            AdminAccess::On(_) => details.follow open[is_open] {
                summary.btn { "Follow a page" }
                div.fields {
                    (form(place, "watch", &[], "", &html! {
                        label { "URL " input type="text" name="url" size="36" placeholder="https://example.org/news" required; }
                        (choice("scope", "What", scopes.map(|(name, words)| (name, words, name == "page"))))
                        (choice("every", "Visit", intervals.map(|(name, words)| (name, words, name.is_empty()))))
                        (receiver_fields(false))
                        button.btn.go { "Follow" }
                        (condition_fields(None))
                    }))
                }
            },
            _ => @if is_open { (login_hint(place)) },
        }
    }
}

/// The fields of a notice's receiver.
pub(super) fn receiver_fields(is_required: bool) -> Markup {
    let kinds = [
        ("email", "e-mail"),
        ("webhook", "webhook"),
        ("ntfy", "ntfy"),
        ("slack", "Slack"),
        ("apprise", "Apprise"),
    ];
    html! {
        (choice("receiver", "Notify by", kinds.map(|(name, words)| (name, words, false))))
        label {
            "Address "
            input type="text" name="to" size="28" placeholder="me@example.org or https://…" autocomplete="off" required[is_required];
        }
    }
}

/// The fields that restrict which changes are reported.
pub(super) fn condition_fields(least: Option<f64>) -> Markup {
    let least = least.map(|least| least.to_string()).unwrap_or_default();
    html! {
        details.further {
            summary { "Only some changes" }
            div.filters {
                label { "Part of the page, a CSS selector " input type="text" name="selector" size="18" placeholder="#prices"; }
                label { "Words that appeared " input type="text" name="appears" size="18" placeholder="\"sold out\""; }
                label { "Words that vanished " input type="text" name="vanishes" size="18"; }
                label { "Importance at least " input type="text" name="min_importance" value=(least) size="5" inputmode="decimal" placeholder="0.1"; }
            }
        }
    }
}

/// The page of a followed URL that was never captured; `None` if nobody follows it.
pub(super) fn waiting(request: &Request<'_>, url: &str) -> Result<Option<Response<Body>>, Problem> {
    let Some(url) = canonical::parse(url) else { return Ok(None) };
    let archive = request.served.pool.archive();
    let settings = Settings::load(&archive.settings_path()).map_err(|error| Problem::internal(&error))?;
    if settings.seeds.of_page(&url).is_none() {
        return Ok(None);
    }
    let url = url.as_str();
    let record = CrawlRecord::of_running(archive.root());
    let fetched = record.iter().flat_map(|record| &record.fetching).find(|fetch| fetch.url == url);
    let since = fetched.and_then(|fetch| Timestamp::parse(&fetch.since).ok());
    let is_running = is_being_written(archive.root());
    let reasons = request.with_summary(|snapshot, summary| {
        let known = snapshot.store().page(url)?.is_some();
        let Some(summary) = summary.filter(|_| known) else { return Ok(Vec::new()) };
        let why = explain(snapshot, summary, url)?;
        Ok(std::iter::once(why.summary).chain(why.reasons).collect())
    })?;
    let place = request.place();
    let state = match (since, is_running) {
        (Some(since), _) => format!("It is being fetched since {}.", date_time(since)),
        (None, true) => "The running crawl visits it as soon as the pauses between fetches allow. This page reloads itself.".to_owned(),
        (None, false) => "No crawl is running. Start one:".to_owned(),
    };
    let main = html! {
        (crumbs(place, url, &untrusted(path(url).trim_start_matches('/'))))
        h1 { "Followed, not captured yet" }
        (empty("Waiting for the first visit", &state, (!is_running).then_some("perennial run")))
        @for reason in &reasons { p { (untrusted(reason)) } }
    };
    let page = Shell::new(place, Tab::Sites, "Waiting for the first visit", None).page(&main);
    let mut response = pages::html(page);
    if is_running {
        response.headers_mut().insert("refresh", HeaderValue::from_static(RELOAD_SECS));
    }
    Ok(Some(response))
}
