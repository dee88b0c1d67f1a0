//! `/notices?place=...&least=...`: how to be notified of changes, and the existing rules.

use hyper::http::Response;
use maud::{Markup, html};
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::admin::{button, form, login_hint};
use super::components::{alert, columns, date_time, empty, untrusted};
use super::follow::{condition_fields, receiver_fields};
use super::layout::{AdminAccess, Place, Shell, Tab, query};
use super::{Problem, Request};
use crate::admin_actions::checked_form;
use crate::body::Body;
use crate::pages;
use perennial_archive::Snapshot;
use perennial_archive::now;
use perennial_archive::settings::{NotifyRule, Settings};
use perennial_archive::store::Outbox;
use perennial_engine::html::dates::{counted, grouped};
use perennial_engine::notify::{Notice, Notifier};

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
pub(crate) struct NoticesView {
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

pub(crate) fn load(request: &Request<'_>) -> Result<NoticesView, Problem> {
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
    Ok(NoticesView { feed, rules: request.with(rules)?, place, least, query })
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
            by: rule.to.kind(),
            n_sent: state.map(|state| state.n_sent),
            n_waiting: state.map(|state| state.n_waiting),
            last_sent: state.and_then(|state| state.last_sent.clone()),
            error: error.map(|_| "`perennial notify list` shows the reason".to_string()),
        }
    };
    Ok(archive.settings().notify.iter().map(rule).collect())
}

pub(crate) fn render(view: &NoticesView, place: Place<'_>) -> Markup {
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
        (messages(view, place))
        section {
            @match view.rules.len() as u64 {
                0 => {
                    h2 { "No notification rules" }
                    (empty("Nobody is notified yet", "Once there is a rule, each crawl sends notices.", None))
                },
                n => { h2 { (counted(n, "rule", "rules")) } (table(&view.rules, place)) },
            }
        }
    };
    Shell::new(place, Tab::Notices, "Notices", Some(format!("/api/notices?{}", view.query))).page(&main)
}

/// The form of a rule; how to add one elsewhere for readers who may not.
fn messages(view: &NoticesView, place: Place<'_>) -> Markup {
    let AdminAccess::On(_) = place.admin else { return html! { (commands(view)) (login_hint(place)) } };
    let back = format!("{}/notices", place.base);
    html! {
        section {
            h2 { "As a message" }
            div.fields {
                (form(place, "notify", &[], &back, &html! {
                    (receiver_fields(true))
                    label {
                        "Page or site "
                        input type="text" name="place" value=(view.place.as_deref().unwrap_or_default()) size="30" placeholder="all sites";
                    }
                    label { "Name " input type="text" name="name" size="14" placeholder="optional"; }
                    button.btn.go { "Add the rule" }
                    (condition_fields(view.least))
                }))
            }
            p.cap { "A rule with the same name is replaced. Programs can only be set on the machine with the archive." }
        }
    }
}

fn commands(view: &NoticesView) -> Markup {
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

fn table(rules: &[RuleView], place: Place<'_>) -> Markup {
    let back = format!("{}/notices", place.base);
    let AdminAccess::On(token) = place.admin else { return rule_table(rules, |_| html! {}) };
    rule_table(rules, |rule| {
        html! {
            form.do method="post" action={ (place.base) "/notices/test" } {
                input type="hidden" name="form" value=(token);
                input type="hidden" name="name" value=(rule.name);
                button { "Send a test" }
            }
            " "
            (button(place, "remove-rule", &[("name", &rule.name)], "Remove", &back))
        }
    })
}

fn rule_table(rules: &[RuleView], actions: impl Fn(&RuleView) -> Markup) -> Markup {
    let number = |n: Option<u64>| n.map_or("-".to_string(), grouped);
    html! {
        table.t.vers {
            (columns(&["Rule", "Receiver", "Sent", "Waiting", "State", ""]))
            tbody {
                @for rule in rules {
                    tr {
                        td { (untrusted(&rule.name)) }
                        td data-l="Receiver" { (rule.by) }
                        td data-l="Sent" { (number(rule.n_sent)) }
                        td data-l="Waiting" { (number(rule.n_waiting)) }
                        td.w { (untrusted(&state(rule))) }
                        td.nowrap { (actions(rule)) }
                    }
                }
            }
        }
    }
}

/// Sends a sample notice by a rule, and responds with what its receiver said.
pub(crate) fn send_test(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let (form, _) = checked_form(request)?;
    let name = form.get("name").unwrap_or_default();
    let archive = request.served.pool.archive();
    // The rule may have been added a moment ago.
    let settings = Settings::load(&archive.settings_path()).map_err(|error| Problem::internal(&error))?;
    let rule = settings.notify.iter().find(|rule| rule.name == name);
    let rule = rule.ok_or_else(|| Problem::bad_request(format!("No rule is named `{name}`.")))?;
    let notifier = Notifier::new(&archive).map_err(|error| Problem::internal(&error))?;
    let failure =
        notifier.deliver(rule, &Notice::sample(&rule.name, now())).err().map(|failure| failure.text);
    Ok(pages::html(render_test(rule, failure.as_deref(), request.place())))
}

fn render_test(rule: &NotifyRule, failure: Option<&str>, place: Place<'_>) -> Markup {
    let main = html! {
        p.crumbs { a href={ (place.base) "/notices" } { "notices" } " / test" }
        @match failure {
            None => {
                h1 { "The receiver accepted the test" }
                p.lead { "A sample notice of the rule " (untrusted(&rule.name)) " was sent by " (rule.to.kind()) "." }
            }
            Some(failure) => {
                h1 { "The test was not delivered" }
                (alert(failure))
                p { "Correct the receiver of the rule " (untrusted(&rule.name)) ", then try again." }
            }
        }
    };
    Shell::new(place, Tab::Notices, "Test of a notice", None).page(&main)
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
