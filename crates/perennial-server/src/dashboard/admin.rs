//! What may be done from the pages: buttons and forms, the settings of followed sites, `/acts` with what was done, `/login`.
//!
//! Each form is a POST with the token of the reader's session. A reader without a session sees what is set, and how to get one.

use maud::{Markup, html};
use perennial_core::schedule::Goal;
use perennial_core::schedule::amounts::write_budget;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{choice, columns, empty, short, untrusted};
use super::layout::{AdminAccess, Place, Shell, Tab, site_address};
use super::{Problem, Request};
use perennial_archive::settings::Seed;
use perennial_archive::store::site_of;
use perennial_engine::admin::audit::{AuditEntry, each_audit_entry};
use perennial_engine::html::dates::counted;

/// Sites with their settings on one page, and acts that are shown.
const MAX_FOLLOWED: usize = 500;
const MAX_ACTS: usize = 200;

/// A button that does one thing. Nothing if the reader may not act.
pub(crate) fn button(
    place: Place<'_>,
    act: &str,
    fields: &[(&str, &str)],
    label: &str,
    back: &str,
) -> Markup {
    form(place, act, fields, back, &html! { button { (label) } })
}

/// A form with its visible fields. Nothing if the reader may not act.
pub(crate) fn form(
    place: Place<'_>,
    act: &str,
    fields: &[(&str, &str)],
    back: &str,
    visible: &Markup,
) -> Markup {
    let AdminAccess::On(token) = place.operating else { return html! {} };
    html! {
        form.do method="post" action={ (place.base) "/operate" } {
            @for (name, value) in [("form", token), ("act", act), ("back", back)].iter().chain(fields) {
                input type="hidden" name=(name) value=(value);
            }
            (visible)
        }
    }
}

/// Why nothing can be done here, and what to do about it; nothing if something can.
pub(crate) fn how(place: Place<'_>) -> Markup {
    match place.operating {
        AdminAccess::On(_) => html! {},
        AdminAccess::LoggedOut => html! {
            p.mute.how {
                "You read. " a href={ (place.base) "/login" } { "Log in as operator" } " to change what is followed."
            }
        },
        AdminAccess::Off => html! {
            p.mute.how {
                "This server only reads. Started with " code { "perennial serve --operate" }
                " it lets you change what is followed from here; " code { "perennial add" } ", " code { "pause" } " and "
                code { "set" } " always do."
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
        [("", "as the crawl")].into_iter().chain(named).map(|(name, words)| (name, words, name == chosen)),
    )
}

/// What is set for a site, in words.
fn in_words(seed: &Seed) -> String {
    let budget = seed.allowance.visits.map(write_budget);
    let budget = budget.map_or("no budget of its own".to_owned(), |budget| format!("budget {budget}"));
    let mut words = vec![format!("scope {}, weight {}, {budget}", seed.scope.kind, seed.weight)];
    words.extend(seed.goal.map(|goal| format!("goal {}", goal.name())));
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

/// One site that is followed: what is set, and the forms that change it.
fn site(place: Place<'_>, seed: &Seed, back: &str) -> Markup {
    let url = seed.scope.seed.as_str();
    let this = [("url", url)];
    html! {
        div.followed {
            div {
                p {
                    a.quiet href=(site_address(place.base, &site_of(url))) { b { (untrusted(url)) } }
                    @if seed.paused { " " span.state.maybe { "paused" } }
                }
                p.mute { (untrusted(&in_words(seed))) "." }
            }
            @if let AdminAccess::On(_) = place.operating {
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
                                button { "Save" }
                            }))
                            (form(place, "remove", &this, back, &html! {
                                button.harm { "Stop following" } " " span.mute.small { "What is archived stays." }
                            }))
                        }
                    }
                }
                (parts(place, seed, back))
            }
        }
    }
}

/// The parts that are pinned or ignored, each with a button that takes it back.
fn parts(place: Place<'_>, seed: &Seed, back: &str) -> Markup {
    let url = seed.scope.seed.as_str();
    let pinned = seed.parts.pinned().iter().map(|part| ("Pinned", part.selector.to_string()));
    let ignored = seed.parts.ignored().iter().map(|selector| ("Ignored", selector.to_string()));
    html! {
        @for (what, selector) in pinned.chain(ignored) {
            div.row.part {
                span { (what) " " code { (untrusted(&selector)) } }
                (button(place, "release", &[("url", url), ("selector", &selector)], "Take back", back))
            }
        }
    }
}

/// The sites that are followed on a host, with what can be done to them; nothing if there are none.
pub(crate) fn followed_of_site(place: Place<'_>, seeds: &[Seed], back: &str) -> Markup {
    html! {
        @if !seeds.is_empty() {
            section #settings {
                div.sec { h2 { "Followed" } }
                (how(place))
                @for seed in seeds { (site(place, seed, back)) }
            }
        }
    }
}

/// All sites that are followed, and the form that adds one.
pub(crate) fn followed(place: Place<'_>, seeds: &[Seed]) -> Markup {
    let n_paused = seeds.iter().filter(|seed| seed.paused).count();
    let back = format!("{}/sites", place.base);
    let scopes = [
        ("host", "its host"),
        ("prefix", "below its last slash"),
        ("page", "the page alone"),
        ("domain", "its host and all below"),
    ];
    html! {
        section #settings {
            div.sec {
                h2 {
                    (counted(seeds.len() as u64, "site is followed", "sites are followed"))
                    @if n_paused > 0 { ", " (n_paused) " paused" }
                }
                p.legend { a href={ (place.base) "/acts" } { "Who changed what" } }
            }
            @if let AdminAccess::On(_) = place.operating {
                div.fields.add {
                    (form(place, "add", &[], &back, &html! {
                        label { "Address " input type="text" name="url" size="32" placeholder="https://example.org/" required; }
                        (choice("scope", "Scope", scopes.map(|(name, words)| (name, words, false))))
                        label { "Weight " input type="text" name="weight" value="1" size="5" inputmode="decimal"; }
                        label { "Budget " input type="text" name="budget" size="8" placeholder="100/1h"; }
                        (goals(None))
                        button.btn.go { "Follow" }
                    }))
                }
            }
            (how(place))
            @for seed in seeds.iter().take(MAX_FOLLOWED) { (site(place, seed, &back)) }
            @if seeds.len() > MAX_FOLLOWED { p.more.mute { (MAX_FOLLOWED) " of " (seeds.len()) " are shown." } }
        }
    }
}

/// What people did, the latest first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Acts")]
pub(crate) struct View {
    n_acts: usize,
    /// The latest first.
    acts: Vec<AuditEntry>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let mut acts = Vec::new();
    let read = each_audit_entry(request.served.pool.archive().root(), |act| acts.push(act));
    read.map_err(|error| Problem::internal(&error.into()))?;
    let n_acts = acts.len();
    acts.reverse();
    acts.truncate(MAX_ACTS);
    Ok(View { n_acts, acts })
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let main = html! {
        p.crumbs { a href={ (place.base) "/sites" } { "sites" } " / acts" }
        div.head {
            div {
                h1 { @match view.n_acts as u64 { 0 => "Nobody changed anything yet", n => (counted(n, "act", "acts")) } }
                p.lead {
                    "Who added, removed, paused or changed what is followed, the latest first. " code { "perennial log --acts" }
                    " says the same."
                }
            }
            @if let AdminAccess::On(token) = place.operating {
                form.do method="post" action="/logout" { input type="hidden" name="form" value=(token); button { "Log out" } }
            }
        }
        @if view.acts.is_empty() {
            (empty(
                "No act is in the log",
                "Acts are told from the first one on that this version of the program performs.",
                Some("perennial pause example.org"),
            ))
        } @else {
            table.t.vers {
                (columns(&["When", "What", "Where", "Now set", "Who"]))
                tbody {
                    @for act in &view.acts {
                        tr {
                            td.nowrap { time datetime=(act.time) { (Timestamp::parse(&act.time).map(short).unwrap_or_default()) } }
                            td data-l="What" { (act.act) }
                            td.w { (untrusted(&act.url)) }
                            td.w { (untrusted(&act.detail)) }
                            td.w { (untrusted(&act.who)) }
                        }
                    }
                }
            }
        }
    };
    Shell::new(place, Tab::Sites, "Acts", Some("/api/acts".into())).page(&main)
}

/// The page on which a session begins. A key in the address is in its form already.
pub(crate) fn login(place: Place<'_>, key: Option<&str>) -> Markup {
    let main = match place.operating {
        AdminAccess::Off => html! {
            div.head { div { h1 { "This server only reads" } } }
            (empty(
                "Nobody can act here",
                "Started otherwise it prints a key, with which this browser may change what is followed.",
                Some("perennial serve --operate"),
            ))
        },
        AdminAccess::On(_) => html! {
            div.head {
                div {
                    h1 { "This browser may act" }
                    p.lead { "Add, pause and change sites on " a href={ (place.base) "/sites" } { "Sites" } "." }
                }
            }
        },
        AdminAccess::LoggedOut => html! {
            div.head {
                div {
                    h1 { "Let this browser change what is followed?" }
                    p.lead {
                        "The session ends after twelve hours without use, when you log out, or with the server. A printed key begins one session."
                    }
                }
            }
            div.fields {
                form.do method="post" action="/login" {
                    @match key {
                        Some(key) => input type="hidden" name="key" value=(key);,
                        None => label { "Key or operator's token " input type="password" name="key" size="32" autocomplete="off" required; },
                    }
                    button.btn.go { "Begin" }
                }
            }
        },
    };
    Shell::new(place, Tab::Other, "Log in", None).page(&main)
}
