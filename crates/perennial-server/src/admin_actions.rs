//! Performs the admin action of a POST ([`perennial_engine::admin`]). A GET changes nothing.

use hyper::http::{HeaderValue, Response, StatusCode, header};
use perennial_core::memento::replay_url::QueryParameters;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::admin_auth::{AdminAuth, is_same_origin, read_only};
use super::dashboard::layout::page_href;
use super::problem::Problem;
use super::request::Request;
use super::{ServedArchive, api};
use crate::body::Body;
use perennial_archive::now;
use perennial_archive::settings::site::parse_url;
use perennial_engine::admin::audit::AuditEntry;
use perennial_engine::admin::{AdminAction, perform};

/// The longest path to return to.
const MAX_BACK: usize = 4096;
/// The fields that JSON may contain.
const FIELDS: [&str; 18] = [
    "act",
    "url",
    "scope",
    "weight",
    "budget",
    "bytes_per_day",
    "goal",
    "every",
    "hours",
    "selector",
    "importance",
    "name",
    "place",
    "receiver",
    "to",
    "min_importance",
    "appears",
    "vanishes",
];

/// An action that a program requests with JSON.
pub fn perform_for_program(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let admin = request.server.admin().ok_or_else(read_only)?;
    if media_type(request) != "application/json" {
        return Err(Problem::bad_request("Send the action as application/json."));
    }
    let who = admin.check(request.parts, None)?;
    let fields = parse_fields(request.body).map_err(Problem::bad_request)?;
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
    let lines = perform_action(request.served, &who, field)?;
    Ok(api::json(&AdminResponse { done: lines }))
}

/// An action that a form of the dashboard requests.
pub fn perform_for_form(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let (form, who) = checked_form(request)?;
    let base = &request.served.base;
    perform_action(request.served, &who, |name| form.get(name))?;
    let back = match form.get("act") {
        // The reader wants to see how the page is doing.
        Some("watch") => {
            form.get("url").and_then(|url| parse_url(url).ok()).map(|url| page_href(base, url.as_str()))
        }
        _ => None,
    };
    Ok(see_other(&back.unwrap_or_else(|| return_path(&form, base)), None))
}

/// The fields of a form that an admin sent, and who it was.
pub(crate) fn checked_form(request: &Request<'_>) -> Result<(QueryParameters, String), Problem> {
    let (admin, form) = parse_form(request)?;
    let who = admin.check(request.parts, form.get("form"))?;
    Ok((form, who))
}

/// Starts a session.
pub fn log_in(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    request.server.guard().check_host(request.parts)?;
    let (admin, form) = parse_form(request)?;
    if !is_same_origin(request.parts)? {
        return Err(Problem::bad_request("Log in at /login."));
    }
    let cookie = admin.log_in(form.get("key").unwrap_or_default())?;
    Ok(see_other(&format!("{}/", request.served.base), Some(&cookie)))
}

/// Ends a session.
pub fn log_out(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let (admin, form) = parse_form(request)?;
    admin.check(request.parts, form.get("form"))?;
    Ok(see_other("/", Some(&admin.log_out(request.parts))))
}

fn media_type<'r>(request: &'r Request<'_>) -> &'r str {
    request.field("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

fn parse_form<'r>(request: &Request<'r>) -> Result<(&'r AdminAuth, QueryParameters), Problem> {
    let admin = request.server.admin().ok_or_else(read_only)?;
    if media_type(request) != "application/x-www-form-urlencoded" {
        return Err(Problem::bad_request("Send the action as a form."));
    }
    let text = std::str::from_utf8(request.body)
        .map_err(|_| Problem::bad_request("The form is not valid UTF-8."))?;
    Ok((admin, QueryParameters::parse(text)))
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AdminResponse {
    done: Vec<AuditEntry>,
}

fn perform_action<'a>(
    served: &ServedArchive,
    who: &str,
    field: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<AuditEntry>, Problem> {
    let action = AdminAction::read(field).map_err(Problem::bad_request)?;
    let done =
        perform(&served.pool.archive(), &action, who, now()).map_err(|error| Problem::not_done(&error))?;
    served.summaries.invalidate();
    Ok(done.lines)
}

/// Reads the fields of a JSON object, each as text.
fn parse_fields(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let object: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| format!("Send a JSON object: {error}."))?;
    let text = |(name, value): (String, Value)| match value {
        _ if !FIELDS.contains(&name.as_str()) => {
            Err(format!("unknown field `{name}`; write {}", FIELDS.join(", ")))
        }
        Value::String(text) => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        Value::Null => Ok((name, String::new())),
        _ => Err(format!("`{name}` must be text or a number")),
    };
    object.into_iter().map(text).collect()
}

/// Where to go after an action: a page of the dashboard.
fn return_path(query: &QueryParameters, base: &str) -> String {
    let is_ours = |back: &&str| {
        back.starts_with('/')
            && !back.starts_with("//")
            && back.len() <= MAX_BACK
            && back.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    query.get("back").filter(is_ours).map_or_else(|| format!("{base}/sites"), str::to_owned)
}

fn see_other(to: &str, cookie: Option<&str>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let fields = [(header::LOCATION, Some(to)), (header::SET_COOKIE, cookie)];
    for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_returns_to_the_dashboard_only() {
        for (form, expected) in [
            ("back=/site/a.org", "/site/a.org"),
            ("back=%2Fpage%3Furl%3Dhttps%253A%252F%252Fa.org", "/page?url=https%3A%2F%2Fa.org"),
            ("back=//evil.example/", "/sites"),
            ("back=/\\evil.example/", "/sites"),
            ("back=https://evil.example/", "/sites"),
            ("back=/a%0d%0aSet-Cookie:x", "/sites"),
            ("", "/sites"),
        ] {
            assert_eq!(return_path(&QueryParameters::parse(form), ""), expected, "{form}");
        }
    }

    #[test]
    fn json_is_read_field_by_field() {
        let fields = parse_fields(br#"{"act":"set","url":"a.org","weight":2,"goal":null}"#).unwrap();
        assert!(
            fields.contains(&("weight".into(), "2".into()))
                && fields.contains(&("goal".into(), String::new()))
        );
        for wrong in ["[]", "{\"act\":[]}", "{\"allow_private\":\"true\"}", "{", "{\"act\":true}"] {
            assert!(parse_fields(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
