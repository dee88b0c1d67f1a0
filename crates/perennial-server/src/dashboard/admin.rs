//! Forms and buttons that change settings, the settings of followed sites, the audit log at `/audit`, and `/login`.
//!
//! Each form is a POST with the token of the reader's session. A reader without a session sees the settings and how to log in.

use maud::{Markup, html};
use perennial_core::schedule::Goal;
use perennial_core::schedule::units::{write_budget, write_span};
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{choice, columns, date_time, empty, untrusted};
use super::layout::{AdminAccess, Place, Shell, Tab, site_href};
use super::{Problem, Request};
use perennial_archive::settings::{Seed, VisitTimes};
use perennial_archive::store::parse_site_name;
use perennial_engine::admin::audit::{AuditEntry, each_audit_entry};
use perennial_engine::html::dates::counted;

/// Sites with their settings on one page.
const MAX_FOLLOWED: usize = 500;
/// Entries of the audit log on one page.
const MAX_ACTIONS: usize = 200;

/// A form with one button; empty if the reader may not change settings.
pub(crate) fn button(
    place: Place<'_>,
    action: &str,
    fields: &[(&str, &str)],
    label: &str,
    back: &str,
) -> Markup {
    form(place, action, fields, back, &html! { button { (label) } })
}

/// A form with its visible fields; empty if the reader may not change settings.
pub(crate) fn form(
    place: Place<'_>,
    action: &str,
    fields: &[(&str, &str)],
    back: &str,
    visible: &Markup,
) -> Markup {
    let AdminAccess::On(token) = place.admin else { return html! {} };
    html! {
        form.do method="post" action={ (place.base) "/admin" } {
            @for (name, value) in [("form", token), ("act", action), ("back", back)].iter().chain(fields) {
                input type="hidden" name=(name) value=(value);
            }
            (visible)
        }
    }
}

/// How to get permission to change settings; empty if the reader has it.
pub(crate) fn login_hint(place: Place<'_>) -> Markup {
    match place.admin {
        AdminAccess::On(_) => html! {},
        AdminAccess::LoggedOut => html! {
            p.mute.how {
                "You cannot change settings yet. " a href={ (place.base) "/login" } { "Log in as admin" } "."
            }
        },
        AdminAccess::Off => html! {
            p.mute.how {
                "This server is read-only. Start it with " code { "perennial serve --admin" }
                " to change settings here, or use " code { "perennial add" } ", " code { "pause" } " and "
                code { "set" } "."
            }
        },
    }
}

fn goals(chosen: Option<Goal>) -> Markup {
    let all = [Goal::Balanced, Goal::Importance, Goal::EveryPage, Goal::Coherent, Goal::Count];
    let named = all.iter().map(|goal| (goal.name(), goal.name()));
    let chosen = chosen.map(Goal::name).unwrap_or_default();
    choice(
        "goal",
        "Goal",
        [("", "default")].into_iter().chain(named).map(|(name, words)| (name, words, name == chosen)),
    )
}

/// The fields for the interval and the hours of visits.
fn times(times: &VisitTimes) -> Markup {
    let every = times.every.map(write_span).unwrap_or_default();
    let hours = times.hours.as_ref().map(ToString::to_string).unwrap_or_default();
    html! {
        label { "Every " input type="text" name="every" value=(every) size="5" placeholder="15m"; }
        label { "Hours " input type="text" name="hours" value=(hours) size="20" placeholder="Mon-Fri 08:00-18:00"; }
    }
}

/// The settings of a site in words.
fn describe(seed: &Seed) -> String {
    let budget = seed.allowance.visits.map(write_budget);
    let budget = budget.map_or("no own budget".to_owned(), |budget| format!("budget {budget}"));
    let mut words = vec![format!("scope {}, weight {}, {budget}", seed.scope.kind, seed.weight)];
    words.extend(seed.goal.map(|goal| format!("goal {}", goal.name())));
    words.extend(seed.times.every.map(|every| format!("every {}", write_span(every))));
    words.extend(seed.times.hours.as_ref().map(ToString::to_string));
    for (what, selectors) in [
        ("pinned", seed.parts.pinned().iter().map(|part| part.selector.to_string()).collect::<Vec<_>>()),
        ("ignored", seed.parts.ignored().iter().map(ToString::to_string).collect()),
    ] {
        if !selectors.is_empty() {
            words.push(format!("{what} {}", selectors.join(" and ")));
        }
    }
    words.join(", ")
}

/// A followed site: its settings, and the forms that change them.
fn site(place: Place<'_>, seed: &Seed, back: &str) -> Markup {
    let url = seed.scope.seed.as_str();
    let this = [("url", url)];
    html! {
        div.followed {
            div {
                p {
                    a.quiet href=(site_href(place.base, &parse_site_name(url))) { b { (untrusted(url)) } }
                    @if seed.paused { " " span.state.maybe { "paused" } }
                }
                p.mute { (untrusted(&describe(seed))) "." }
            }
            @if let AdminAccess::On(_) = place.admin {
                div.row {
                    @if seed.paused { (button(place, "resume", &this, "Resume", back)) }
                    @else { (button(place, "pause", &this, "Pause", back)) }
                    details {
                        summary.btn { "Change" }
                        div.fields {
                            (form(place, "set", &this, back, &html! {
                                label { "Weight " input type="text" name="weight" value=(seed.weight) size="5" inputmode="decimal"; }
                                label {
                                    "Budget "
                                    input type="text" name="budget" value=(seed.allowance.visits.map(write_budget).unwrap_or_default()) size="8" placeholder="100/1h";
                                }
                                (goals(seed.goal))
                                (times(&seed.times))
                                button { "Save" }
                            }))
                            (form(place, "remove", &this, back, &html! {
                                button.harm { "Stop following" } " " span.mute.small { "Its captures are kept." }
                            }))
                        }
                    }
                }
                (parts(place, seed, back))
            }
        }
    }
}

/// Pinned and ignored parts, each with a button that undoes it.
fn parts(place: Place<'_>, seed: &Seed, back: &str) -> Markup {
    let url = seed.scope.seed.as_str();
    let pinned = seed.parts.pinned().iter().map(|part| ("Pinned", part.selector.to_string()));
    let ignored = seed.parts.ignored().iter().map(|selector| ("Ignored", selector.to_string()));
    html! {
        @for (what, selector) in pinned.chain(ignored) {
            div.row.part {
                span { (what) " " code { (untrusted(&selector)) } }
                (button(place, "release", &[("url", url), ("selector", &selector)], "Undo", back))
            }
        }
    }
}

/// The followed sites of a host with their forms; empty if there are none.
pub(crate) fn host_settings(place: Place<'_>, seeds: &[Seed], back: &str) -> Markup {
    html! {
        @if !seeds.is_empty() {
            section #settings {
                div.sec { h2 { "Followed sites" } }
                (login_hint(place))
                @for seed in seeds { (site(place, seed, back)) }
            }
        }
    }
}

/// All followed sites, and the form that adds one.
pub(crate) fn all_settings(place: Place<'_>, seeds: &[Seed]) -> Markup {
    let n_paused = seeds.iter().filter(|seed| seed.paused).count();
    let back = format!("{}/sites", place.base);
    let scopes = [
        ("host", "the whole host"),
        ("prefix", "the directory"),
        ("page", "only this page"),
        ("domain", "the host and its subdomains"),
    ];
    html! {
        section #settings {
            div.sec {
                h2 {
                    (counted(seeds.len() as u64, "site is followed", "sites are followed"))
                    @if n_paused > 0 { ", " (n_paused) " paused" }
                }
                p.legend { a href={ (place.base) "/audit" } { "Audit log" } }
            }
            @if let AdminAccess::On(_) = place.admin {
                div.fields.add {
                    (form(place, "add", &[], &back, &html! {
                        label { "URL " input type="text" name="url" size="32" placeholder="https://example.org/" required; }
                        (choice("scope", "Scope", scopes.map(|(name, words)| (name, words, false))))
                        label { "Weight " input type="text" name="weight" value="1" size="5" inputmode="decimal"; }
                        label { "Budget " input type="text" name="budget" size="8" placeholder="100/1h"; }
                        (goals(None))
                        (times(&VisitTimes::default()))
                        button.btn.go { "Follow" }
                    }))
                }
            }
            (login_hint(place))
            @for seed in seeds.iter().take(MAX_FOLLOWED) { (site(place, seed, &back)) }
            @if seeds.len() > MAX_FOLLOWED { p.more.mute { (MAX_FOLLOWED) " of " (seeds.len()) " shown." } }
        }
    }
}

/// The audit log.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Audit")]
pub(crate) struct AuditView {
    n_actions: usize,
    /// The latest first.
    actions: Vec<AuditEntry>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<AuditView, Problem> {
    let mut actions = Vec::new();
    let read = each_audit_entry(request.served.pool.archive().root(), |action| actions.push(action));
    read.map_err(|error| Problem::internal(&error.into()))?;
    let n_actions = actions.len();
    actions.reverse();
    actions.truncate(MAX_ACTIONS);
    Ok(AuditView { n_actions, actions })
}

pub(crate) fn render(view: &AuditView, place: Place<'_>) -> Markup {
    let main = html! {
        div.head {
            div {
                h1 { "Audit log" }
                p.lead {
                    (counted(view.n_actions as u64, "change", "changes")) " of settings, the latest first. " code { "perennial log --audit" }
                    " prints the same."
                }
            }
            @if let AdminAccess::On(token) = place.admin {
                form.do method="post" action="/logout" { input type="hidden" name="form" value=(token); button { "Log out" } }
            }
        }
        @if view.actions.is_empty() {
            (empty(
                "No changes of settings yet",
                "The log contains what admins change on this dashboard or with commands.",
                Some("perennial pause example.org"),
            ))
        } @else {
            table.t.vers {
                (columns(&["Time", "Action", "URL", "New settings", "Admin"]))
                tbody {
                    @for action in &view.actions {
                        tr {
                            td.nowrap { time datetime=(action.time) { (Timestamp::parse(&action.time).map(date_time).unwrap_or_default()) } }
                            td data-l="Action" { (action.action) }
                            td.w { (untrusted(&action.url)) }
                            td.w { (untrusted(&action.detail)) }
                            td.w { (untrusted(&action.who)) }
                        }
                    }
                }
            }
        }
    };
    Shell::new(place, Tab::Audit, "Audit log", Some("/api/audit".into())).page(&main)
}

/// The login page. Its form contains the key of the URL, if there is one.
pub(crate) fn login(place: Place<'_>, key: Option<&str>) -> Markup {
    let main = match place.admin {
        AdminAccess::Off => html! {
            div.head { div { h1 { "This server is read-only" } } }
            (empty(
                "Nobody can log in",
                "Restart the server like this. It then prints a key that lets this browser change settings.",
                Some("perennial serve --admin"),
            ))
        },
        AdminAccess::On(_) => html! {
            div.head {
                div {
                    h1 { "You are logged in" }
                    p.lead { "You can add, pause and change sites on " a href={ (place.base) "/sites" } { "Sites" } "." }
                }
            }
        },
        AdminAccess::LoggedOut => html! {
            div.head {
                div {
                    h1 { "Log in as admin" }
                    p.lead {
                        "A session lets this browser change settings. It ends when you log out, after twelve hours without use, or when the server stops. A printed key works once."
                    }
                }
            }
            div.fields {
                form.do method="post" action="/login" {
                    @match key {
                        Some(key) => input type="hidden" name="key" value=(key);,
                        None => label { "Key or admin's token " input type="password" name="key" size="32" autocomplete="off" required; },
                    }
                    button.btn.go { "Log in" }
                }
            }
        },
    };
    Shell::new(place, Tab::Other, "Log in", None).page(&main)
}
