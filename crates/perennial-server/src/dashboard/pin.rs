//! `/pin`: previews how pinning or ignoring a part of a site's pages would have changed the last month.

use maud::{Markup, html};
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

use super::admin::{form, login_hint};
use super::components::{columns, date_time, empty, path_link, untrusted};
use super::layout::{Place, Shell, Tab, compare_href, host_with_port, page_href, path, query, site_href};
use super::{Problem, Request, ResponseFormat};
use perennial_archive::settings::Seed;
use perennial_engine::admin::{AdminAction, PartAction};
use perennial_engine::analyse::PartEffect;
use perennial_engine::html::dates::counted;

/// Edits that are evaluated, because a reader is waiting.
const MAX_EDITS: usize = 200;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pin")]
pub(crate) struct PinView {
    /// A page that contains the part.
    url: String,
    /// The site to which the setting applies.
    site: String,
    /// `pin` or `ignore`.
    action: &'static str,
    selector: String,
    /// How importance would have changed.
    effect: Option<PartEffect>,
    /// The part's share of the importance, as typed; empty for the default.
    #[serde(skip)]
    importance: String,
    /// An input error.
    #[serde(skip)]
    problem: Option<String>,
}

/// Programs must name a selector.
pub(crate) fn load(request: &Request<'_>) -> Result<PinView, Problem> {
    let text = |name: &str| request.given(name).unwrap_or_default().to_owned();
    let url = text("url");
    let archive = request.served.pool.archive();
    let parsed = Url::parse(&url).map_err(|_| Problem::bad_request("Write /pin?url=https://example.org/"))?;
    let not_followed = || {
        Problem::bad_request(format!(
            "{url} does not belong to a followed site; add one with `perennial add`"
        ))
    };
    let seed = archive.settings().seeds.of_page(&parsed).ok_or_else(not_followed)?;
    let action = if request.given("act") == Some("ignore") { "ignore" } else { "pin" };
    let mut view = PinView {
        site: seed.scope.seed.to_string(),
        action,
        selector: text("selector"),
        importance: text("importance"),
        effect: None,
        problem: None,
        url,
    };
    let part = request.given("selector").map(|_| read_part(seed, action, request));
    match (part, request.form) {
        (Some(Ok(part)), _) => {
            let effect = part.effect(&archive, seed, MAX_EDITS, &|| ());
            view.effect = Some(effect.map_err(|error| Problem::internal(&error))?);
        }
        (Some(Err(wrong)), ResponseFormat::Html) => view.problem = Some(wrong),
        (Some(Err(wrong)), ResponseFormat::Json) => return Err(Problem::bad_request(wrong)),
        (None, ResponseFormat::Html) => {}
        (None, ResponseFormat::Json) => {
            return Err(Problem::bad_request("Write /api/pin?url=...&selector=..."));
        }
    }
    Ok(view)
}

/// Reads the part as the action itself would.
fn read_part(seed: &Seed, action: &str, request: &Request<'_>) -> Result<PartAction, String> {
    let read = AdminAction::read(|name| match name {
        "act" => Some(action),
        "url" => Some(seed.scope.seed.as_str()),
        name => request.query.get(name),
    })?;
    match read {
        AdminAction::Part(_, part) => Ok(part),
        other => Err(format!("`{}` does not change a part", other.name())),
    }
}

pub(crate) fn render(view: &PinView, place: Place<'_>) -> Markup {
    let host = host_with_port(&view.site);
    let main = html! {
        p.crumbs {
            a href=(site_href(place.base, host)) { (untrusted(host)) } " / " (path_link(place.base, &view.url))
        }
        div.head {
            div {
                @match &view.effect {
                    Some(effect) => {
                        h1 { (effect.n_other) " of " (counted(effect.n_changes as u64, "edit", "edits")) " would have had a different importance" }
                        (summary(view, effect))
                    },
                    None => {
                        h1 { "Pin or ignore a part" }
                        p.lead {
                            "A pinned part counts most; an ignored part does not count. Name it by a CSS selector: a tag, " code { "#id" } ", "
                            code { ".class" } ", joined by a space or " code { ">" } ". You see the effect before anything is saved."
                        }
                    },
                }
            }
        }
        (effect_form(view, place.base))
        @if let Some(effect) = &view.effect { (effects(view, effect, place)) }
    };
    let json = view.effect.as_ref().map(|_| {
        let parameters = [
            ("url", &*view.url),
            ("act", view.action),
            ("selector", &*view.selector),
            ("importance", &*view.importance),
        ];
        format!("/api/pin?{}", query(&parameters.map(|(name, value)| (name, Some(value)))))
    });
    Shell::new(place, Tab::Sites, "Pin a part", json).page(&main)
}

fn summary(view: &PinView, effect: &PartEffect) -> Markup {
    html! {
        p.lead {
            "The last 30 days of " (untrusted(&view.site)) ", with " code { (untrusted(&view.selector)) } " "
            @if view.action == "ignore" { "ignored" } @else { "pinned" } ": "
            (counted(effect.n_touching as u64, "edit", "edits")) " changed it, " (effect.n_inside)
            " of them nothing else. The importance of all edits together was " (format!("{:.2}", effect.importance))
            " and would have been about " (format!("{:.2}", effect.importance_then)) "."
            @if effect.n_unread > 0 { " " (effect.n_unread) " more edits are not readable as HTML." }
            @if effect.is_cut { " Only the latest edits were evaluated; " code { "perennial part pin --dry-run" } " evaluates all." }
        }
    }
}

/// The form for a part. It is a GET, because it changes nothing.
fn effect_form(view: &PinView, base: &str) -> Markup {
    html! {
        div.fields {
            form.do action={ (base) "/pin" } {
                input type="hidden" name="url" value=(view.url);
                label { "Part " input type="text" name="selector" value=(view.selector) size="36" placeholder="#headlines" required; }
                @for (action, words) in [("pin", " counts most"), ("ignore", " does not count")] {
                    label.sw { input type="radio" name="act" value=(action) checked[view.action == action]; (words) }
                }
                label {
                    "Share, if pinned "
                    input type="text" name="importance" value=(view.importance) size="5" placeholder="0.9" inputmode="decimal";
                }
                button { "Preview" }
            }
        }
        @if let Some(problem) = &view.problem { p.alert { b { (untrusted(problem)) } } }
    }
}

fn effects(view: &PinView, effect: &PartEffect, place: Place<'_>) -> Markup {
    let back = site_href(place.base, host_with_port(&view.site));
    let fields = [("url", &*view.site), ("selector", &*view.selector), ("importance", &*view.importance)];
    let action = form(
        place,
        view.action,
        &fields,
        &back,
        &html! { button.btn.go { @if view.action == "ignore" { "Ignore" } @else { "Pin" } } },
    );
    html! {
        section {
            div.sec { h2 { "Most affected edits" } p.legend { "importance as it was, and about as it would have been" } }
            @match (effect.strongest.is_empty(), effect.n_changes) {
                (false, _) => (strongest(effect, place.base)),
                (true, 0) => (empty("No effect", "No page of the site was edited in the last 30 days.", None)),
                (true, _) => (empty(
                    "No effect",
                    "The importance of all edits would have been the same. The selector may match nothing on these pages.",
                    None,
                )),
            }
            div.row style="margin-top:16px" { (action) }
            @if !action.0.is_empty() {
                p.mute.how { "It applies from the next capture of each page. Undo it on the page of the site." }
            }
            (login_hint(place))
        }
    }
}

fn strongest(effect: &PartEffect, base: &str) -> Markup {
    html! {
        table.t.vers {
            (columns(&["Page", "Was", "Would be", "Time", ""]))
            tbody {
                @for other in &effect.strongest {
                    @let at = Timestamp::parse(&other.time).ok();
                    @let before = other.before.as_deref().and_then(|before| Timestamp::parse(before).ok());
                    tr {
                        td.w { a href=(page_href(base, &other.url)) { (untrusted(path(&other.url))) } }
                        td data-l="Was" { (format!("{:.2}", other.importance)) }
                        td data-l="Would be" { b { (format!("{:.2}", other.importance_then)) } }
                        td.nowrap { (at.map(date_time).unwrap_or_default()) }
                        td {
                            @if let Some((before, after)) = before.zip(at) {
                                a href=(compare_href(base, before, after, &other.url)) { "Compare" }
                            }
                        }
                    }
                }
            }
        }
    }
}
