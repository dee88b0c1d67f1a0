//! Our own files for replayed pages, and where a leaked request belongs.
//!
//! A page that requests `/api/x` from its host sends the request to our origin, because that is where it is replayed. The service
//! worker redirects such a request. Before it is installed, the server redirects the request by its `Referer`.

use hyper::http::{HeaderValue, Response, StatusCode, header};
use perennial_core::memento::ReplayUrl;
use url::Url;

use crate::body::Body;

/// Paths of our assets, on both origins. Names of archives do not begin with an underscore.
pub const ROOT: &str = "/_perennial/";

/// The script that runs before those of a page.
pub const SCRIPT_URL: &str = concat!("/_perennial/replay.js?v=", env!("CARGO_PKG_VERSION"));

const SCRIPT: &str = include_str!("replay.js");
const WORKER: &str = include_str!("worker.js");

/// An asset for replayed pages.
pub fn file(path: &str, main_origin: &str) -> Option<Response<Body>> {
    let text = match path.split('?').next()? {
        "replay.js" => SCRIPT,
        "worker.js" => WORKER,
        _ => return None,
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The worker's scope is the whole origin.
    headers.insert("service-worker-allowed", HeaderValue::from_static("/"));
    // Workers of archived pages begin with our script and get its policy.
    let policy = super::headers::policy(main_origin, true);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).ok()?);
    Some(response)
}

/// Redirects a leaked request to the host of the page that sent it, at the page's time.
pub fn leaked_request(
    referer: Option<&str>,
    replay_origin: &str,
    base: &str,
    target: &str,
) -> Option<Response<Body>> {
    let asker = referer?.strip_prefix(replay_origin)?.strip_prefix(base)?.strip_prefix("/web/")?;
    let (context, _) = asker.split_once('/')?;
    let digits: String = context.chars().take_while(char::is_ascii_digit).collect();
    let page = Url::parse(&ReplayUrl::parse(asker)?.url).ok()?;
    let url = page.join(target).ok().filter(|url| url.host() == page.host() && !digits.is_empty())?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let to = format!("{base}/web/{digits}mp_/{url}");
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&to).ok()?);
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(referer: &str, target: &str) -> Option<String> {
        let response = leaked_request(Some(referer), "http://127.0.0.1:2", "", target)?;
        Some(response.headers()[header::LOCATION].to_str().unwrap().to_string())
    }

    #[test]
    fn a_leaked_request_belongs_to_the_host_of_the_page() {
        let page = "http://127.0.0.1:2/web/20200102030405mp_/https://a.example/b/c?d";
        assert_eq!(led(page, "/api/x?y").unwrap(), "/web/20200102030405mp_/https://a.example/api/x?y");
        assert_eq!(led(page, "//evil.example/x"), None);
        assert_eq!(led("http://evil.example/web/2020mp_/http://a.example/", "/x"), None);
        assert_eq!(led("http://127.0.0.1:2/other", "/x"), None);
    }
}
