//! Replays the recorded steps of a login in a browser -> the cookies that it left.

use std::time::Duration;

use perennial_core::http::login::LoginStep;
use serde_json::{Value, json};

use crate::cdp::BrowserError;
use crate::chromium::{BrowserPage, BrowserTab, LoadEnd, RequestHandler};

/// Real time without a request after which a page counts as idle.
const QUIET: Duration = Duration::from_millis(700);
/// Pauses in which an element may appear.
const MAX_WAITS: usize = 15;

/// A cookie of the browser.
#[derive(Clone)]
pub struct BrowserCookie {
    pub name: String,
    pub value: String,
    /// With a leading dot if hosts below it receive the cookie too.
    pub domain: String,
    pub path: String,
    pub is_secure: bool,
    pub is_http_only: bool,
    /// In seconds since 1970; `None`: when the session ends.
    pub expires: Option<f64>,
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("{0}")]
    Browser(#[from] BrowserError),
    #[error("step {step}: nothing on the page matches `{selector}`")]
    NoElement { step: usize, selector: String },
    #[error("step {step}: the page did not finish loading within the time limit")]
    Unfinished { step: usize },
}

impl BrowserTab<'_> {
    /// Takes the steps.
    pub(crate) fn log_in(
        &mut self,
        steps: &[LoginStep],
        answers: &RequestHandler,
    ) -> Result<Vec<BrowserCookie>, LoginError> {
        self.has_document = false;
        self.quiet = Some(QUIET);
        self.prepare()?;
        for (at, step) in steps.iter().enumerate() {
            let step_number = at + 1;
            let unfinished = LoginError::Unfinished { step: step_number };
            match step {
                LoginStep::Open(url) => {
                    self.navigate(url)?;
                    if self.pump(&BrowserPage::of_url(url), answers, true)? != LoadEnd::Whole {
                        return Err(unfinished);
                    }
                }
                LoginStep::Type { selector, text } => {
                    self.find(step_number, selector, answers)?;
                    self.evaluate(&format!("({TYPE})({}, {})", json!(selector), json!(text)))?;
                }
                LoginStep::Click { selector } => {
                    self.find(step_number, selector, answers)?;
                    self.evaluate(&format!("document.querySelector({}).click()", json!(selector)))?;
                    if self.pump(&BrowserPage::of_url(""), answers, false)? != LoadEnd::Whole {
                        return Err(unfinished);
                    }
                }
                LoginStep::Wait { selector } => self.find(step_number, selector, answers)?,
            }
        }
        Ok(self.cookies()?)
    }

    /// Waits until an element exists.
    fn find(&mut self, step: usize, selector: &str, answers: &RequestHandler) -> Result<(), LoginError> {
        let expression = format!("!!document.querySelector({})", json!(selector));
        for _ in 0..MAX_WAITS {
            if self.evaluate(&expression)? == json!(true) {
                return Ok(());
            }
            if self.pump(&BrowserPage::of_url(""), answers, false)? != LoadEnd::Whole {
                return Err(LoginError::Unfinished { step });
            }
        }
        Err(LoginError::NoElement { step, selector: selector.to_string() })
    }

    /// The cookies of this page's context.
    fn cookies(&mut self) -> Result<Vec<BrowserCookie>, BrowserError> {
        let params = json!({"browserContextId": self.context});
        let found = self.connection.call(None, "Storage.getCookies", params, self.deadline)?;
        Ok(read_cookies(&found["cookies"]))
    }

    /// Gives cookies to this page's context, for scripts that read them.
    pub(crate) fn set_cookies(&mut self, cookies: &[BrowserCookie]) -> Result<(), BrowserError> {
        if cookies.is_empty() {
            return Ok(());
        }
        let cookies: Vec<Value> = cookies.iter().map(write_cookie).collect();
        let params = json!({"browserContextId": self.context, "cookies": cookies});
        self.connection.call(None, "Storage.setCookies", params, self.deadline).map(|_| ())
    }
}

/// Sets the value of a field as typing does, with the events that scripts expect.
const TYPE: &str = "(selector, text) => {
  const field = document.querySelector(selector);
  field.focus();
  const kind = field instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
  const own = Object.getOwnPropertyDescriptor(kind.prototype, 'value');
  if (field instanceof kind) own.set.call(field, text); else field.value = text;
  for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true}));
}";

pub(crate) fn read_cookies(values: &Value) -> Vec<BrowserCookie> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let read = |cookie: &Value| BrowserCookie {
        name: text(&cookie["name"]),
        value: text(&cookie["value"]),
        domain: text(&cookie["domain"]),
        path: text(&cookie["path"]),
        is_secure: cookie["secure"] == true,
        is_http_only: cookie["httpOnly"] == true,
        expires: cookie["expires"].as_f64().filter(|expires| *expires > 0.0),
    };
    values.as_array().into_iter().flatten().map(read).collect()
}

fn write_cookie(cookie: &BrowserCookie) -> Value {
    let mut written = json!({
        "name": cookie.name, "value": cookie.value, "domain": cookie.domain, "path": cookie.path,
        "secure": cookie.is_secure, "httpOnly": cookie.is_http_only
    });
    if let Some(expires) = cookie.expires {
        written["expires"] = expires.into();
    }
    written
}
