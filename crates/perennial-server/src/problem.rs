//! An error as a status and a page or JSON, with a hint.

use hyper::http::{HeaderValue, Response, StatusCode, header};
use maud::{PreEscaped, html};
use schemars::JsonSchema;
use serde::Serialize;

use super::body::Body;
use super::dashboard::components::untrusted;
use super::dashboard::layout::{Place, Shell, Tab};
use super::{api, pages};
use perennial_engine::html;

/// The stylesheet of a page without navigation.
const STYLE: &str = include_str!("problem.css");

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub status: StatusCode,
    /// Identifies the problem for programs.
    pub kind: &'static str,
    /// The problem in a sentence.
    pub title: String,
    /// Details, and a hint.
    pub text: String,
}

impl Problem {
    /// No capture has this URL.
    pub fn not_archived(url: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "not-archived",
            title: "Not in this archive".to_string(),
            text: format!("There is no capture of {url}. The live web was not queried."),
        }
    }

    pub fn no_such_page(path: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "no-such-page",
            title: "No such page".to_string(),
            text: format!("This server has no {path}. Archived pages are under /web/."),
        }
    }

    pub fn bad_request(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::BAD_REQUEST,
            kind: "bad-request",
            title: "The request is invalid".to_string(),
            text: text.into(),
        }
    }

    /// The record of a capture is unreadable, or not what was captured.
    pub fn damaged(error: &anyhow::Error) -> Problem {
        Problem {
            status: StatusCode::BAD_GATEWAY,
            kind: "damaged",
            title: "The stored record is unreadable".to_string(),
            text: format!("{error:#}"),
        }
    }

    /// No record contains the payload of a capture.
    pub fn not_held(url: &str, time: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "not-held",
            title: "Captured, but its content is not in this archive".to_string(),
            text: format!(
                "{url} was captured on {time} as a repetition of earlier content, but no record of this archive contains that content."
            ),
        }
    }

    /// A version is missing, or has no blocks.
    pub fn nothing_to_compare(url: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "nothing-to-compare",
            title: "Two versions are needed".to_string(),
            text: format!(
                "{url} was not captured at or before one of these times, or has no layout then. /web/*/{url} lists its captures."
            ),
        }
    }

    /// An admin action was refused.
    pub fn not_done(error: &anyhow::Error) -> Problem {
        Problem {
            status: StatusCode::CONFLICT,
            kind: "not-done",
            title: "Nothing was changed".to_string(),
            text: format!("{error:#}"),
        }
    }

    /// The two versions were segmented in different ways.
    pub fn cut_differently(url: &str, before: &str, after: &str) -> Problem {
        Problem {
            status: StatusCode::CONFLICT,
            kind: "cut-differently",
            title: "The two versions are not comparable".to_string(),
            text: format!(
                "{url} was laid out by {before} for one version and by {after} for the other, so differences may come from the layout. \
                     `perennial diff {url}@TIME {url}@TIME` lays out both again."
            ),
        }
    }

    pub fn method() -> Problem {
        Problem {
            status: StatusCode::METHOD_NOT_ALLOWED,
            kind: "method",
            title: "Method not allowed".to_string(),
            text: "Use GET, HEAD or OPTIONS.".to_string(),
        }
    }

    pub fn internal(error: &anyhow::Error) -> Problem {
        Problem {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "internal",
            title: "Internal error".to_string(),
            text: format!("{error:#}"),
        }
    }

    /// As a page with navigation.
    pub fn into_page(self, base: &str) -> Response<Body> {
        let place = Place { base, ..Place::default() };
        let main = html! {
            div.head { div { h1 { (untrusted(&self.title)) } p.lead { (untrusted(&self.text)) } } }
        };
        self.label(pages::html(Shell::new(place, Tab::Other, &self.title, None).page(&main)))
    }

    /// For a frame or a program: a page without navigation, or JSON.
    pub fn into_response(self, as_json: bool) -> Response<Body> {
        let mut response = match as_json {
            true => api::json(&ProblemReport { error: self.kind, title: &self.title, message: &self.text }),
            false => {
                let main = html! { main.failure { h1 { (self.title) } p { (untrusted(&self.text)) } } };
                pages::html(PreEscaped(html::page(&self.title, STYLE, &main.0)))
            }
        };
        response.headers_mut().insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
        );
        self.label(response)
    }

    /// Adds the fields that programs read.
    fn label(&self, mut response: Response<Body>) -> Response<Body> {
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert("x-perennial-problem", HeaderValue::from_static(self.kind));
        response
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemReport<'a> {
    /// Identifies the problem.
    error: &'a str,
    title: &'a str,
    /// Details, and a hint.
    message: &'a str,
}
