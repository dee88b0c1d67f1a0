//! The OpenAPI description: paths and parameters from a table, responses from the types of the views.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{admin, articles, changes, home, notices, page, pin, plan, search, site, sites, terms};
use crate::admin_actions::AdminResponse;
use crate::problem::ProblemReport;

struct ApiOperation {
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    response: fn(&mut SchemaGenerator) -> Schema,
}

/// Name, kind and description. The name of a required parameter ends with a star.
type Parameter = (&'static str, ParameterKind, &'static str);

#[derive(Clone, Copy)]
enum ParameterKind {
    Text,
    Integer,
    Number,
    OneOf(&'static [&'static str]),
}

use ParameterKind::{Integer, Number, OneOf, Text};

const SITE: Parameter = ("site", Text, "Only this host, with its port unless it is the default");
const LEAST: Parameter = ("least", Number, "Least importance, 0 to 1");
const ORDER: Parameter = ("order", OneOf(&["latest", "oldest", "importance"]), "latest by default");
const URL: Parameter = ("url*", Text, "URL of the page");

const fn operation<V: JsonSchema>(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
) -> ApiOperation {
    ApiOperation { path, summary, parameters, response: |generator| generator.subschema_for::<V>() }
}

static OPERATIONS: &[ApiOperation] = &[
    operation::<home::HomeView>(
        "/api/home",
        "The strongest recent change of each page, and the state of the archive",
        &[
            (
                "since",
                Text,
                "Only changes since this time, as in /api/changes, relative to the last capture; 1d by default",
            ),
            ("least", Number, "Least importance, 0 to 1; 0.1 by default"),
            SITE,
            ORDER,
        ],
    ),
    operation::<changes::ChangesView>(
        "/api/changes",
        "Changes that match a query, with their operations, in parts",
        &[
            ("site", Text, "Only this host, with its port unless it is the default, or this page"),
            ("page", Text, "Only the page with this URL"),
            (
                "since",
                Text,
                "Only changes since this time: 2026-01-28, 2026-01-28T09:30:00Z, or a time ago such as 7d",
            ),
            ("until", Text, "Before this time"),
            LEAST,
            (
                "kind",
                Text,
                "Only these kinds, separated by commas: edited, retitled, new, vanished, returned, redirected",
            ),
            (
                "appears",
                Text,
                "Only if these words, or matches of this /regular expression/, are new on the page",
            ),
            (
                "vanishes",
                Text,
                "Only if these words, or matches of this /regular expression/, are no longer on the page",
            ),
            ("op", OneOf(&["insert", "delete", "update", "move"]), "Only with such an operation"),
            (
                "element",
                OneOf(&["text", "link", "image", "item", "block"]),
                "Only with an operation on this; item is a headline of a listing page",
            ),
            (
                "block",
                Text,
                "Only with an operation in blocks of this role (main, nav, ad, header, footer, other) or in this block, such as B1.2",
            ),
            ("text", Text, "Only with an operation on these words"),
            ("selector", Text, "CSS selector; only if the text of this part changed"),
            ("noise", Text, "1: include noise"),
            ORDER,
            ("limit", Integer, "At most so many changes, 1 to 200; 25 by default"),
            ("after", Text, "Value of next of the previous response"),
        ],
    ),
    operation::<page::PageView>(
        "/api/page",
        "Versions of a page, its pattern of change, its next visit, its headlines",
        &[
            URL,
            ("until", Text, "End of the week to show, as 4 to 14 digits"),
            ("show", Text, "all: look up the words of every version"),
        ],
    ),
    operation::<sites::SitesView>("/api/sites", "All sites with captures, and followed sites", &[]),
    operation::<site::SiteView>(
        "/api/site",
        "Activity by hour, directories, pages, coherence and feeds of a site",
        &[
            ("host*", Text, "Host, with its port unless it is the default"),
            ("order", Text, "fresh: order pages by their last capture"),
        ],
    ),
    operation::<plan::PlanView>(
        "/api/plan",
        "The next visits with their reasons",
        &[SITE, ("url", Text, "Explain the next visit of this page")],
    ),
    operation::<search::SearchView>(
        "/api/search",
        "Which pages contained the words, and when",
        &[
            ("q*", Text, "Words"),
            SITE,
            ("from", Text, "Since this day"),
            ("to", Text, "Until this day, inclusive"),
            ("phrase", Text, "1: as a phrase"),
            ("vanished", Text, "1: no longer on the page"),
            ("important", Text, "1: only in important versions"),
        ],
    ),
    operation::<terms::TermsView>(
        "/api/terms",
        "Terms that are new or more frequent in a span",
        &[
            ("since", Text, "Start of the span: a time, or a time before the last capture such as 7d"),
            ("site", Text, "Only this host"),
        ],
    ),
    operation::<perennial_engine::analyse::ComparisonReport>(
        "/api/diff",
        "The operations between two versions of a page",
        &[
            ("before*", Text, "Time of the earlier version, up to 14 digits"),
            ("after*", Text, "Time of the later version"),
            URL,
        ],
    ),
    operation::<articles::ListView>(
        "/api/articles",
        "Articles and posts that feeds announced, the latest first",
        &[SITE, ("skip", Integer, "Value of next of the previous response")],
    ),
    operation::<articles::ArticleView>(
        "/api/article",
        "The article or post of a page, with its versions and edits",
        &[URL],
    ),
    operation::<admin::AuditView>(
        "/api/audit",
        "The audit log: who changed which settings, the latest first",
        &[],
    ),
    operation::<pin::PinView>(
        "/api/pin",
        "Preview of a pinned or ignored part over the last 30 days; changes nothing",
        &[
            ("url*", Text, "A page that contains the part"),
            ("selector*", Text, "CSS selector of the part"),
            ("act", OneOf(&["pin", "ignore"]), "pin by default"),
            ("importance", Number, "Share of the importance of the page, above 0 and at most 1"),
        ],
    ),
    operation::<notices::NoticesView>(
        "/api/notices",
        "Notification rules, and a feed of the matching changes",
        &[("place", Text, "Only changes of this site, by its host, or of this page, by its URL"), LEAST],
    ),
];

pub(crate) fn description() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = OPERATIONS
        .iter()
        .map(|operation| {
            let parameters: Vec<Value> = operation.parameters.iter().map(parameter).collect();
            let mut get = json!({ "summary": operation.summary, "parameters": parameters });
            get["responses"] = responses(operation.response, &mut generator);
            (operation.path.to_owned(), json!({ "get": get }))
        })
        .collect();
    paths.insert("/api/admin".to_owned(), json!({ "post": admin_operation(&mut generator) }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Perennial",
            "version": "1",
            "description": "The data of the dashboard for programs. If several archives are served, paths begin with a slash \
                and the archive's name. See also /metrics (Prometheus text), /healthz (200 if every archive is readable), /cdx, \
                /web/timemap/ and /status (docs/replay.md).",
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) },
    })
}

fn parameter((name, kind, description): &Parameter) -> Value {
    let schema = match kind {
        Text => json!({ "type": "string" }),
        Integer => json!({ "type": "integer" }),
        Number => json!({ "type": "number" }),
        OneOf(choices) => json!({ "type": "string", "enum": choices }),
    };
    let (name, required) = (name.trim_end_matches('*'), name.ends_with('*'));
    json!({ "name": name, "in": "query", "required": required, "description": description, "schema": schema })
}

fn responses(response: fn(&mut SchemaGenerator) -> Schema, generator: &mut SchemaGenerator) -> Value {
    let content = |description: &str, schema: Schema| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
    json!({
        "200": content("The view", response(generator)),
        "default": content("The error, and what to do about it", generator.subschema_for::<ProblemReport<'_>>()),
    })
}

/// The only operation that changes something.
fn admin_operation(generator: &mut SchemaGenerator) -> Value {
    json!({
        "summary": "Changes settings; needs the token of serve --admin-token-file as Authorization: Bearer",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": {
                "type": "object",
                "properties": {
                    "act": {
                        "type": "string",
                        "enum": [
                            "add", "remove", "pause", "resume", "set", "watch", "notify", "remove-rule", "pin",
                            "ignore", "release", "retry",
                        ],
                    },
                    "url": { "type": "string", "description": "URL or host of the site; for retry a page or a host; for watch a page; all but notify and remove-rule need it" },
                    "scope": { "type": "string", "enum": ["page", "prefix", "host", "domain"] },
                    "weight": { "type": ["number", "string", "null"] },
                    "budget": {
                        "type": ["string", "null"],
                        "description": "Such as 100/1h; null or empty removes it",
                    },
                    "bytes_per_day": { "type": ["string", "integer", "null"] },
                    "goal": { "type": ["string", "null"] },
                    "every": { "type": ["string", "null"], "description": "Such as 15m; null or empty removes it" },
                    "hours": { "type": ["string", "null"], "description": "Such as Mon-Fri 08:00-18:00" },
                    "selector": { "type": "string" },
                    "importance": { "type": ["number", "string", "null"] },
                    "receiver": {
                        "type": "string",
                        "enum": ["email", "webhook", "ntfy", "slack", "apprise"],
                        "description": "For watch and notify: the kind of `to`",
                    },
                    "to": { "type": "string", "description": "URL or mail address that receives notices" },
                    "place": { "type": "string", "description": "For notify: a host or a page; empty for all" },
                    "name": { "type": "string", "description": "The name of a rule" },
                    "min_importance": { "type": ["number", "string", "null"] },
                    "appears": { "type": "string", "description": "Words that must appear in a reported change" },
                    "vanishes": { "type": "string" },
                },
                "required": ["act"],
                "additionalProperties": false,
            } } },
        },
        "responses": responses(|generator| generator.subschema_for::<AdminResponse>(), generator),
    })
}
