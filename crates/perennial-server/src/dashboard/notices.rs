//! `/notices?place=...&least=...`: how to be notified of changes, and who is already.

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::components::{columns, empty, untrusted};
use super::layout::{Place, Shell, Tab, query};
use super::{Problem, Request};
use perennial_archive::Snapshot;
use perennial_archive::settings::{NotifyRule, Shape, Target};
use perennial_archive::store::Outbox;
use perennial_engine::html::dates::{counted, grouped};

/// A notification rule. Where its notices go is said without the secret that an address may hold.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rule {
    name: String,
    /// Webhook, Slack, a program.
    by: &'static str,
    /// Notices that were sent; null before the rule was first used.
    n_sent: Option<u64>,
    n_waiting: Option<u64>,
    last_sent: Option<String>,
    /// Why the last one was not taken.
    error: Option<String>,
}

/// The page about notices.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notices")]
pub(crate) struct View {
    /// The address of an Atom feed of these changes.
    feed: String,
    rules: Vec<Rule>,
    /// Only changes of this site, by its host, or of this page, by its URL.
    #[serde(skip)]
    place: Option<String>,
    #[serde(skip)]
    least: Option<f64>,
    /// Both as a query.
    #[serde(skip)]
    query: String,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let least = match request.given("least").map(str::parse) {
        None => None,
        Some(Ok(least)) if (0.0..=1.0).contains(&least) => Some(least),
        Some(_) => return Err(Problem::bad_request("Write least from 0 to 1, such as least=0.1.")),
    };
    let place = request.given("place").map(str::to_owned);
    let query = query(&[
        ("place", place.as_deref()),
        ("least", least.map(|least: f64| least.to_string()).as_deref()),
    ]);
    let feed = format!("{}/changes.atom?{query}", request.served.base);
    Ok(View { feed, rules: request.with(rules)?, place, least, query })
}

fn rules(snapshot: &Snapshot) -> anyhow::Result<Vec<Rule>> {
    let archive = snapshot.archive();
    let states = match Outbox::open_read(&archive.outbox_path())? {
        Some(outbox) => outbox.states()?,
        None => Vec::new(),
    };
    let rule = |rule: &NotifyRule| {
        let state = states.iter().find(|state| state.name == rule.name);
        // What a receiver answered may name its address, which may be a secret.
        let error = state.and_then(|state| state.error.as_ref());
        Rule {
            name: rule.name.clone(),
            by: kind_of(&rule.to),
            n_sent: state.map(|state| state.n_sent),
            n_waiting: state.map(|state| state.n_waiting),
            last_sent: state.and_then(|state| state.last_sent.clone()),
            error: error.map(|_| "`perennial notify list` says why".to_string()),
        }
    };
    Ok(archive.settings().notify.iter().map(rule).collect())
}

fn kind_of(target: &Target) -> &'static str {
    match target {
        Target::Web(Shape::Webhook, _) => "webhook",
        Target::Web(Shape::Slack, _) => "Slack",
        Target::Web(Shape::Ntfy, _) => "ntfy",
        Target::Web(Shape::Apprise, _) => "Apprise",
        Target::Command(_) => "program",
        Target::Email(_) => "e-mail",
    }
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let main = html! {
        div.head {
            div {
                h1 { "Be told of changes" }
                p.lead {
                    "Changes of " @match &view.place { Some(of) => (untrusted(of)), None => "every site" }
                    @if let Some(least) = view.least { ", of importance " (least) " or more" }
                    ". Each is told at least once, those of a page in order."
                }
            }
        }
        section {
            h2 { "As a feed" }
            p { "For any feed reader, without further ado: " a href=(view.feed) { "/changes.atom?" (view.query) } }
        }
        (messages(view))
        section {
            @match view.rules.len() as u64 {
                0 => {
                    h2 { "Nobody is told yet" }
                    (empty("No rule tells anybody", "A crawl sends notices by itself, as soon as there is one.", None))
                },
                n => { h2 { (counted(n, "rule", "rules")) } (table(&view.rules)) },
            }
        }
    };
    Shell::new(place, Tab::Changes, "Notices", Some(format!("/api/notices?{}", view.query))).page(&main)
}

fn messages(view: &View) -> Markup {
    let page = view.place.as_deref().filter(|place| place.contains("://"));
    let least = view.least.map(|least| format!(" --least-importance {least}")).unwrap_or_default();
    html! {
        section {
            h2 { "As a message" }
            @if let Some(url) = page {
                p { "One command, on the machine of the archive:" }
                pre.code { code { "perennial watch " (quoted(url)) (least) " --notify ntfy:https://ntfy.example/my-topic" } }
            }
            p {
                @if page.is_some() { "Or these" } @else { "These" }
                " lines in " code { "perennial.toml" } "; " code { "to" }
                " may also be a webhook, Slack, Apprise, an e-mail address or a program:"
            }
            pre.code {
                code {
                    "[[notify]]\nname = \"mine\"\nto = \"ntfy:https://ntfy.example/my-topic\"\n"
                    @if let Some(of) = &view.place { "place = " (Value::from(of.as_str())) "\n" }
                    @if let Some(least) = view.least { "least_importance = " (least) "\n" }
                }
            }
            p.cap { code { "perennial notify test mine" } " tries it." }
        }
    }
}

fn table(rules: &[Rule]) -> Markup {
    let number = |n: Option<u64>| n.map_or("-".to_string(), grouped);
    html! {
        table.t {
            (columns(&["Rule", "By", "Sent", "Waiting", "State"]))
            tbody {
                @for rule in rules {
                    tr {
                        td { (untrusted(&rule.name)) }
                        td { (rule.by) }
                        td { (number(rule.n_sent)) }
                        td { (number(rule.n_waiting)) }
                        td.w { (untrusted(&state_of(rule))) }
                    }
                }
            }
        }
    }
}

fn state_of(rule: &Rule) -> String {
    match (&rule.error, &rule.last_sent, rule.n_sent) {
        (Some(error), ..) => format!("the last one was not taken: {error}"),
        (None, Some(at), _) => format!("the last one was sent {at}"),
        (None, None, Some(_)) => "nothing to tell yet".to_string(),
        (None, None, None) => "begins with the next crawl".to_string(),
    }
}

/// A word of a command line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-~%+,=@".contains(c);
    if word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
