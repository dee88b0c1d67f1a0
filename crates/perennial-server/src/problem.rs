//! What went wrong -> a status and a page, or JSON, that says it and names the cure.

use hyper::http::{HeaderValue, Response, StatusCode, header};
use maud::{PreEscaped, html};
use schemars::JsonSchema;
use serde::Serialize;

use super::body::Body;
use super::dashboard::components::untrusted;
use super::dashboard::layout::{Place, Shell, Tab};
use super::{api, pages};
use perennial_engine::html;

/// The stylesheet of a bare page.
const STYLE: &str = include_str!("problem.css");

/// Why a request was not answered as it was meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The answer's status.
    pub status: StatusCode,
    /// A word for programs.
    pub kind: &'static str,
    /// What is so, in a sentence.
    pub title: String,
    /// More about it, and the cure.
    pub text: String,
}

impl Problem {
    /// Nothing is captured under that address.
    pub fn not_archived(url: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "not-archived",
            title: "Not in this archive".to_string(),
            text: format!(
                "There is no capture of {url}. Nothing was fetched from the live web in its place."
            ),
        }
    }

    /// No such page of ours.
    pub fn no_such_page(path: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "no-such-page",
            title: "No such page".to_string(),
            text: format!("{path} is nothing that this server has. Archived pages are under /web/."),
        }
    }

    /// The request makes no sense.
    pub fn bad_request(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::BAD_REQUEST,
            kind: "bad-request",
            title: "The request cannot be understood".to_string(),
            text: text.into(),
        }
    }

    /// The capture is known, and its record cannot be read or is not what was captured.
    pub fn damaged(error: &anyhow::Error) -> Problem {
        Problem {
            status: StatusCode::BAD_GATEWAY,
            kind: "damaged",
            title: "The stored record cannot be read".to_string(),
            text: format!("{error:#}"),
        }
    }

    /// The capture is known, and no record of the archive holds what it showed.
    pub fn not_held(url: &str, time: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "not-held",
            title: "Captured, but its content is not in this archive".to_string(),
            text: format!(
                "{url} was seen at {time}, as a repetition of a content that no record of this archive holds."
            ),
        }
    }

    /// One of two versions was not seen, or has no blocks.
    pub fn nothing_to_compare(url: &str) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            kind: "nothing-to-compare",
            title: "Two versions are needed".to_string(),
            text: format!(
                "{url} was not seen at or before one of these times, or could not be laid out then. /web/*/{url} lists its captures."
            ),
        }
    }

    /// An act was refused; nothing is changed.
    pub fn not_done(error: &anyhow::Error) -> Problem {
        Problem {
            status: StatusCode::CONFLICT,
            kind: "not-done",
            title: "Nothing was done".to_string(),
            text: format!("{error:#}"),
        }
    }

    /// The two versions were cut into blocks in different ways.
    pub fn cut_differently(url: &str, before: &str, after: &str) -> Problem {
        Problem {
            status: StatusCode::CONFLICT,
            kind: "cut-differently",
            title: "The two versions were cut differently".to_string(),
            text: format!(
                "{url} was seen by {before} at one of these times and by {after} at the other, so that what differs need not be the page. \
                 `perennial diff {url}@TIME {url}@TIME` cuts both anew."
            ),
        }
    }

    /// Only reading is possible.
    pub fn method() -> Problem {
        Problem {
            status: StatusCode::METHOD_NOT_ALLOWED,
            kind: "method",
            title: "This server only reads".to_string(),
            text: "Only GET, HEAD and OPTIONS are answered.".to_string(),
        }
    }

    /// Something of ours failed.
    pub fn internal(error: &anyhow::Error) -> Problem {
        Problem {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "internal",
            title: "The archive could not be asked".to_string(),
            text: format!("{error:#}"),
        }
    }

    /// As a page of ours, with the way to the others.
    pub fn into_page(self, base: &str) -> Response<Body> {
        let place = Place { base, ..Place::default() };
        let main = html! {
            div.head { div { h1 { (untrusted(&self.title)) } p.lead { (untrusted(&self.text)) } } }
        };
        self.label(pages::html(Shell::new(place, Tab::Other, &self.title, None).page(&main)))
    }

    /// For a frame or a program: as a bare page, or as JSON where that is wanted.
    pub fn into_response(self, as_json: bool) -> Response<Body> {
        let mut response = match as_json {
            true => api::json(&Report { error: self.kind, title: &self.title, message: &self.text }),
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

    /// Adds what programs read of it.
    fn label(&self, mut response: Response<Body>) -> Response<Body> {
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert("x-perennial-problem", HeaderValue::from_static(self.kind));
        response
    }
}

/// A problem as programs read it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Report<'a> {
    /// A word for what is wrong.
    error: &'a str,
    title: &'a str,
    /// More about it, and what to do.
    message: &'a str,
}
