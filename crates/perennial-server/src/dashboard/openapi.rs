//! The description of the API: paths and parameters from a table, responses from the types of the views.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{admin, articles, changes, home, notices, page, pin, plan, search, site, sites, terms};
use crate::admin_actions::AdminResponse;
use crate::problem::Report;

/// An operation of the API.
struct Operation {
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    response: fn(&mut SchemaGenerator) -> Schema,
}

/// Name, kind and description of a parameter. A required one ends with a star.
type Parameter = (&'static str, Kind, &'static str);

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Number,
    OneOf(&'static [&'static str]),
}

use Kind::{Integer, Number, OneOf, Text};

const SITE: Parameter = ("site", Text, "Only this host, with its port if that is unusual");
const LEAST: Parameter = ("least", Number, "Least importance, 0 to 1");
const ORDER: Parameter =
    ("order", OneOf(&["latest", "oldest", "importance"]), "The latest first unless given");
const URL: Parameter = ("url*", Text, "URL of the page");

const fn operation<V: JsonSchema>(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
) -> Operation {
    Operation { path, summary, parameters, response: |generator| generator.subschema_for::<V>() }
}

static OPERATIONS: &[Operation] = &[
    operation::<home::View>(
        "/api/home",
        "What changed that matters, the strongest change of each page, and the state of the archive",
        &[
            (
                "since",
                Text,
                "Not before this time, as in /api/changes, counted back from the last capture; 1d unless given",
            ),
            ("least", Number, "Least importance, 0 to 1; 0.1 unless given"),
            SITE,
            ORDER,
        ],
    ),
    operation::<changes::View>(
        "/api/changes",
        "Changes that match a query, with their operations, a part of the list at a time",
        &[
            ("site", Text, "Only this host, with its port if that is unusual, or this page"),
            ("page", Text, "Only the page with this URL"),
            (
                "since",
                Text,
                "Not before this time: 2026-01-28, 2026-01-28T09:30:00Z, or a length of time ago such as 7d",
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
                "Only if these words, or what this /regular expression/ matches, are there now and were not before",
            ),
            ("vanishes", Text, "Only if they were there and are not any more"),
            ("op", OneOf(&["insert", "delete", "update", "move"]), "Only with an operation of this kind"),
            (
                "element",
                OneOf(&["text", "link", "image", "item", "block"]),
                "on this; item is a headline of a listing page",
            ),
            (
                "block",
                Text,
                "in blocks of this role (main, nav, ad, header, footer, other) or in one block such as B1.2",
            ),
            ("text", Text, "with these words before or after it"),
            ("selector", Text, "Only if the text of this part has changed: a CSS selector"),
            ("noise", Text, "1: also what is only noise"),
            ORDER,
            ("limit", Integer, "Most changes, 1 to 200; 25 unless given"),
            ("after", Text, "next of the response before: the list goes on behind it"),
        ],
    ),
    operation::<page::View>(
        "/api/page",
        "Versions of a page, when it changes, its next visit, its headlines",
        &[
            URL,
            ("until", Text, "End of the week that is shown, as 4 to 14 digits"),
            ("show", Text, "all: look up the words of every version"),
        ],
    ),
    operation::<sites::View>("/api/sites", "All sites", &[]),
    operation::<site::View>(
        "/api/site",
        "Hours, directories, pages, coherence and feeds of a site",
        &[
            ("host*", Text, "Its host, with its port if that is unusual"),
            ("order", Text, "fresh: pages by their last capture"),
        ],
    ),
    operation::<plan::View>(
        "/api/plan",
        "The next visits with their reasons",
        &[SITE, ("url", Text, "Also why this page is visited when it is")],
    ),
    operation::<search::View>(
        "/api/search",
        "Which pages contained the words, from when to when",
        &[
            ("q*", Text, "Words"),
            SITE,
            ("from", Text, "Not before this day"),
            ("to", Text, "Up to this day"),
            ("phrase", Text, "1: in a row"),
            ("vanished", Text, "1: gone by now"),
            ("important", Text, "1: important versions only"),
        ],
    ),
    operation::<terms::View>(
        "/api/terms",
        "Terms that came in a span and were not there, or much rarer, before",
        &[
            ("since", Text, "From when on: a time, or a length of time before the last capture such as 7d"),
            ("site", Text, "Only this host, compared with what it said before"),
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
    operation::<articles::List>(
        "/api/articles",
        "Articles and posts that feeds announced, the latest first",
        &[SITE, ("skip", Integer, "next of the response before: the list goes on there")],
    ),
    operation::<articles::View>(
        "/api/article",
        "The article or post of a page, with its versions and what was edited",
        &[URL],
    ),
    operation::<admin::View>(
        "/api/audit",
        "Who added, removed, paused or changed what is followed, the latest first",
        &[],
    ),
    operation::<pin::View>(
        "/api/pin",
        "What a pin or an ignored part would have changed in the last 30 days; nothing is written",
        &[
            ("url*", Text, "A page that has the part"),
            ("selector*", Text, "CSS selector of the part"),
            ("act", OneOf(&["pin", "ignore"]), "pin or ignore; pin unless given"),
            ("importance", Number, "Share of the importance of the page, above 0 and at most 1"),
        ],
    ),
    operation::<notices::View>(
        "/api/notices",
        "Who is notified of changes, and a feed of those that are chosen",
        &[("place", Text, "Only changes of this site, by its host, or of this page, by its URL"), LEAST],
    ),
];

/// The whole description.
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
    paths.insert("/api/admin".to_owned(), json!({ "post": act(&mut generator) }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Perennial",
            "version": "1",
            "description": "What the pages of the server show, for programs. If several archives are served, paths begin with a slash \
                and the archive's name. Beside these: /metrics (Prometheus text), /healthz (200 if every archive can be read), /cdx, \
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
    let of = |description: &str, schema: Schema| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
    json!({
        "200": of("The view", response(generator)),
        "default": of("What is wrong, and what to do about it", generator.subschema_for::<Report<'_>>()),
    })
}

/// The one operation that changes something.
fn act(generator: &mut SchemaGenerator) -> Value {
    json!({
        "summary": "Changes what is followed, with the token of serve --operator-file as Authorization: Bearer",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": {
                "type": "object",
                "properties": {
                    "act": {
                        "type": "string",
                        "enum": ["add", "remove", "pause", "resume", "set", "pin", "ignore", "release", "retry"],
                    },
                    "url": { "type": "string", "description": "The site, by its URL or host; for retry a page or a host" },
                    "scope": { "type": "string", "enum": ["page", "prefix", "host", "domain"] },
                    "weight": { "type": ["number", "string", "null"] },
                    "budget": {
                        "type": ["string", "null"],
                        "description": "Such as 100/1h; null or empty takes it back",
                    },
                    "bytes_per_day": { "type": ["string", "integer", "null"] },
                    "goal": { "type": ["string", "null"] },
                    "selector": { "type": "string" },
                    "importance": { "type": ["number", "string", "null"] },
                },
                "required": ["act", "url"],
                "additionalProperties": false,
            } } },
        },
        "responses": responses(|generator| generator.subschema_for::<AdminResponse>(), generator),
    })
}
