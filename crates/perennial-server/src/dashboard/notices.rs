//! `/notices?place=...&least=...`: how to be notified of changes, and the existing rules.

use maud::{Markup, html};
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::components::{columns, date_time, empty, untrusted};
use super::layout::{Place, Shell, Tab, query};
use super::{Problem, Request};
use perennial_archive::Snapshot;
use perennial_archive::settings::{NoticeReceiver, NotifyRule, WebFormat};
use perennial_archive::store::Outbox;
use perennial_core::text::quantity::{counted, grouped};

/// A notification rule, without the receiver's URL, which may contain a secret.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RuleView {
    name: String,
    /// Webhook, Slack, a program, ...
    by: &'static str,
    /// Null before the first use of the rule.
    n_sent: Option<u64>,
    n_waiting: Option<u64>,
    last_sent: Option<String>,
    /// Why the last notice was not delivered.
    error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notices")]
pub(crate) struct View {
    /// The URL of an Atom feed of these changes.
    feed: String,
    rules: Vec<RuleView>,
    /// A host or the URL of a page, whose changes are wanted.
    #[serde(skip)]
    place: Option<String>,
    #[serde(skip)]
    least: Option<f64>,
    /// Both conditions as a query.
    #[serde(skip)]
    query: String,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let least = match request.given("least").map(str::parse) {
        None => None,
        Some(Ok(least)) if (0.0..=1.0).contains(&least) => Some(least),
        Some(_) => return Err(Problem::bad_request("least: write a number from 0 to 1, such as least=0.1")),
    };
    let place = request.given("place").map(str::to_owned);
    let query = query(&[
        ("place", place.as_deref()),
        ("least", least.map(|least: f64| least.to_string()).as_deref()),
    ]);
    let feed = format!("{}/changes.atom?{query}", request.served.base);
    Ok(View { feed, rules: request.with(rules)?, place, least, query })
}

fn rules(snapshot: &Snapshot) -> anyhow::Result<Vec<RuleView>> {
    let archive = snapshot.archive();
    let states = match Outbox::open_read(&archive.outbox_path())? {
        Some(outbox) => outbox.states()?,
        None => Vec::new(),
    };
    let rule = |rule: &NotifyRule| {
        let state = states.iter().find(|state| state.name == rule.name);
        // The receiver's response may contain its URL, which may be a secret.
        let error = state.and_then(|state| state.error.as_ref());
        RuleView {
            name: rule.name.clone(),
            by: receiver_kind(&rule.to),
            n_sent: state.map(|state| state.n_sent),
            n_waiting: state.map(|state| state.n_waiting),
            last_sent: state.and_then(|state| state.last_sent.clone()),
            error: error.map(|_| "`perennial notify list` shows the reason".to_string()),
        }
    };
    Ok(archive.settings().notify.iter().map(rule).collect())
}

fn receiver_kind(target: &NoticeReceiver) -> &'static str {
    match target {
        NoticeReceiver::Web(WebFormat::Webhook, _) => "webhook",
        NoticeReceiver::Web(WebFormat::Slack, _) => "Slack",
        NoticeReceiver::Web(WebFormat::Ntfy, _) => "ntfy",
        NoticeReceiver::Web(WebFormat::Apprise, _) => "Apprise",
        NoticeReceiver::Command(_) => "program",
        NoticeReceiver::Email(_) => "e-mail",
    }
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let main = html! {
        div.head {
            div {
                h1 { "Get notified of changes" }
                p.lead {
                    "Changes of " @match &view.place { Some(of) => (untrusted(of)), None => "every site" }
                    @if let Some(least) = view.least { ", of importance " (least) " or more" }
                    ". Each change is sent at least once; the changes of a page arrive in order."
                }
            }
        }
        section {
            h2 { "As a feed" }
            p { "Add this URL to a feed reader: " a href=(view.feed) { "/changes.atom?" (view.query) } }
        }
        (messages(view))
        section {
            @match view.rules.len() as u64 {
                0 => {
                    h2 { "No notification rules" }
                    (empty("Nobody is notified yet", "Once there is a rule, each crawl sends notices.", None))
                },
                n => { h2 { (counted(n, "rule", "rules")) } (table(&view.rules)) },
            }
        }
    };
    Shell::new(place, Tab::Changes, "Notices", Some(format!("/api/notices?{}", view.query))).page(&main)
}

fn messages(view: &View) -> Markup {
    let page = view.place.as_deref().filter(|place| place.contains("://"));
    let least = view.least.map(|least| format!(" --min-importance {least}")).unwrap_or_default();
    html! {
        section {
            h2 { "As a message" }
            @if let Some(url) = page {
                p { "Run this command on the machine with the archive:" }
                pre.code { code { "perennial watch " (quoted(url)) (least) " --notify ntfy:https://ntfy.example/my-topic" } }
            }
            p {
                @if page.is_some() { "Or add these" } @else { "Add these" }
                " lines to " code { "perennial.toml" } "; " code { "to" }
                " can also be a webhook, Slack, Apprise, an e-mail address or a program:"
            }
            pre.code {
                code {
                    "[[notify]]\nname = \"mine\"\nto = \"ntfy:https://ntfy.example/my-topic\"\n"
                    @if let Some(of) = &view.place { "place = " (Value::from(of.as_str())) "\n" }
                    @if let Some(least) = view.least { "min_importance = " (least) "\n" }
                }
            }
            p.cap { "Test the rule with " code { "perennial notify test mine" } "." }
        }
    }
}

fn table(rules: &[RuleView]) -> Markup {
    let number = |n: Option<u64>| n.map_or("-".to_string(), grouped);
    html! {
        table.t {
            (columns(&["Rule", "Receiver", "Sent", "Waiting", "State"]))
            tbody {
                @for rule in rules {
                    tr {
                        td { (untrusted(&rule.name)) }
                        td { (rule.by) }
                        td { (number(rule.n_sent)) }
                        td { (number(rule.n_waiting)) }
                        td.w { (untrusted(&state(rule))) }
                    }
                }
            }
        }
    }
}

fn state(rule: &RuleView) -> String {
    match (&rule.error, &rule.last_sent, rule.n_sent) {
        (Some(error), ..) => format!("the last notice was not delivered: {error}"),
        (None, Some(at), _) => {
            format!("last notice sent {}", Timestamp::parse(at).map(date_time).unwrap_or_default())
        }
        (None, None, Some(_)) => "no changes yet".to_string(),
        (None, None, None) => "starts with the next crawl".to_string(),
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-~%+,=@".contains(c);
    if word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
