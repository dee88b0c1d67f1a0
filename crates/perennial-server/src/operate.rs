//! A POST -> an act ([`perennial_engine::operate`]) and where to go then; what was done -> a page. Nothing is changed by a GET.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, header};
use perennial_core::memento::address::Query;
use serde_json::{Map, Value, json};

use super::face::Form;
use super::operator::{comes_from_us, only_reads};
use super::pages::place_of;
use super::problem::Problem;
use super::replay::Asking;
use super::{Served, Server, api};
use crate::html_face::ActsPage;
use perennial_archive::now;
use perennial_engine::operate::log::{ActLine, each_act};
use perennial_engine::operate::{Act, perform};

/// Bytes of a request that acts.
pub const MAX_BODY_BYTES: usize = 64 << 10;
/// Acts that are shown.
const MAX_SHOWN: usize = 200;
/// Letters of an address to go back to.
const MAX_BACK: usize = 4096;
/// What JSON may name.
const FIELDS: [&str; 9] =
    ["act", "url", "scope", "weight", "budget", "bytes_per_day", "goal", "selector", "importance"];

/// Whether a path takes a POST. Others get no body read for them.
pub fn takes(path: &str) -> bool {
    matches!(path, "/login" | "/logout") || path.ends_with("/operate") && !path.contains("/web/")
}

/// Answers a POST.
pub fn post(
    server: &Server,
    served: &Served,
    path: &str,
    parts: &Parts,
    body: &[u8],
) -> Result<Response<Body>, Problem> {
    let operator = server.operator().ok_or_else(only_reads)?;
    let mime =
        parts.headers.get(header::CONTENT_TYPE).and_then(|mime| mime.to_str().ok()).unwrap_or_default();
    let mime = mime.split(';').next().unwrap_or_default().trim();
    match (path, mime) {
        ("/api/operate", "application/json") => {
            let who = operator.check(parts, None)?;
            let fields = fields_of(body).map_err(Problem::bad_request)?;
            let field =
                |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
            let lines = acted(served, &who, field)?;
            Ok(api::json(&json!({ "done": lines })))
        }
        ("/operate", "application/x-www-form-urlencoded") => {
            let query = form_of(body)?;
            let who = operator.check(parts, query.get("form"))?;
            acted(served, &who, |name| query.get(name))?;
            Ok(see_other(&back_of(&query, &served.base), None))
        }
        ("/login", "application/x-www-form-urlencoded") => {
            if !comes_from_us(parts)? {
                return Err(Problem::bad_request("Log in on the page /login."));
            }
            let cookie = operator.log_in(form_of(body)?.get("key").unwrap_or_default())?;
            Ok(see_other(&format!("{}/sites", served.base), Some(&cookie)))
        }
        ("/logout", "application/x-www-form-urlencoded") => {
            operator.check(parts, form_of(body)?.get("form"))?;
            Ok(see_other("/", Some(&operator.log_out(parts))))
        }
        ("/api/operate", _) => Err(Problem::bad_request("Send it as application/json.")),
        ("/operate" | "/login" | "/logout", _) => Err(Problem::bad_request("Send it as a form.")),
        _ => Err(Problem::method()),
    }
}

/// Performs an act. What is reckoned over the archive is made anew then.
fn acted<'a>(
    served: &Served,
    who: &str,
    field: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<ActLine>, Problem> {
    let act = Act::read(field).map_err(Problem::bad_request)?;
    let done =
        perform(&served.pool.archive(), &act, who, now()).map_err(|error| Problem::not_done(&error))?;
    served.standings.forget();
    Ok(done.lines)
}

fn form_of(body: &[u8]) -> Result<Query, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::bad_request("The form is no text."))?;
    Ok(Query::parse(text))
}

/// The fields of a JSON object, each as text.
fn fields_of(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let object: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| format!("Send a JSON object: {error}."))?;
    let text = |(name, value): (String, Value)| match value {
        _ if !FIELDS.contains(&name.as_str()) => {
            Err(format!("`{name}` is no field of an act: write {}.", FIELDS.join(", ")))
        }
        Value::String(text) => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        Value::Null => Ok((name, String::new())),
        _ => Err(format!("`{name}`: write text or a number.")),
    };
    object.into_iter().map(text).collect()
}

/// Where to go after an act: a page of ours, and no other.
fn back_of(query: &Query, base: &str) -> String {
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

/// `/acts`: what people did, the latest first.
pub fn acts(asking: &Asking<'_>, form: Form) -> Result<Response<Body>, Problem> {
    let mut acts = Vec::new();
    let read = each_act(asking.served.pool.archive().root(), |act| acts.push(act));
    read.map_err(|error| Problem::internal(&error.into()))?;
    let n_acts = acts.len();
    acts.reverse();
    acts.truncate(MAX_SHOWN);
    let page = ActsPage { place: place_of(asking), acts: &acts, n_acts };
    Ok(form.answer(|| page.html(), || page.json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_leads_back_to_pages_of_ours_only() {
        for (form, expected) in [
            ("back=/site/a.org", "/site/a.org"),
            ("back=%2Fpage%3Furl%3Dhttps%253A%252F%252Fa.org", "/page?url=https%3A%2F%2Fa.org"),
            ("back=//evil.example/", "/sites"),
            ("back=/\\evil.example/", "/sites"),
            ("back=https://evil.example/", "/sites"),
            ("back=/a%0d%0aSet-Cookie:x", "/sites"),
            ("", "/sites"),
        ] {
            assert_eq!(back_of(&Query::parse(form), ""), expected, "{form}");
        }
    }

    #[test]
    fn json_is_read_field_by_field() {
        let fields = fields_of(br#"{"act":"set","url":"a.org","weight":2,"goal":null}"#).unwrap();
        assert!(
            fields.contains(&("weight".into(), "2".into()))
                && fields.contains(&("goal".into(), String::new()))
        );
        for wrong in ["[]", "{\"act\":[]}", "{\"allow_private\":\"true\"}", "{", "{\"act\":true}"] {
            assert!(fields_of(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
