//! For programs: JSON of every page with data, what it looks like (OpenAPI), figures for Prometheus, health.

use std::fmt::Write;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use perennial_core::memento::address::Query;
use serde_json::Value;

use super::Server;
use super::face::{self, Form};
use super::operate;
use super::problem::Problem;
use super::replay::Asking;

/// The description of the API, which a test compares with what the server says.
const OPENAPI: &str = include_str!("openapi.json");

/// A value for programs.
pub fn json(value: &Value) -> Response<Body> {
    text(&format!("{value}\n"), "application/json")
}

fn text(text: &str, mime: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// `/api/<name>`: the data of a page.
pub fn answer(asking: &Asking<'_>, name: &str, query: &Query) -> Result<Response<Body>, Problem> {
    let needed = |parameter: &str| {
        query
            .get(parameter)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Problem::bad_request(format!("Write /api/{name}?{parameter}=...")))
    };
    match name {
        "openapi.json" => Ok(text(OPENAPI, "application/json")),
        "home" => face::home(asking, query, Form::Json),
        "changes" => face::changes(asking, query, Form::Json),
        "page" => face::page(asking, needed("url")?, query, Form::Json),
        "sites" => face::sites(asking, Form::Json),
        "site" => face::site(asking, needed("host")?, query, Form::Json),
        "pin" => face::pin(asking, query, Form::Json),
        "acts" => operate::acts(asking, Form::Json),
        "schedule" => face::schedule(asking, query, Form::Json),
        "search" => face::search(asking, query, Form::Json),
        "objects" => face::objects(asking, query, Form::Json),
        "object" => face::object(asking, needed("url")?, Form::Json),
        "notices" => face::notices(asking, query, Form::Json),
        "terms" => face::terms(asking, query, Form::Json),
        "diff" => face::operations(asking, query),
        _ => Err(Problem::no_such_page(&format!("/api/{name}"))),
    }
}

/// `/healthz`: whether every archive can be asked.
pub fn health(server: &Server) -> Response<Body> {
    let asked = server.archives().iter().map(|served| {
        served.pool.with(|snapshot| snapshot.store().last_capture_number()).and_then(|number| number)
    });
    let failed: Vec<String> = asked.filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if failed.is_empty() {
        return text("ok\n", "text/plain; charset=utf-8");
    }
    let mut response = text(&format!("{}\n", failed.join("\n")), "text/plain; charset=utf-8");
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// `/metrics`: figures in the text form of Prometheus.
pub fn metrics(server: &Server) -> Result<Response<Body>, Problem> {
    let mut out = Metrics(Vec::new());
    for served in server.archives() {
        let standing = served.standings.of(&served.pool).map_err(|error| Problem::internal(&error))?;
        let Some(standing) = standing else { continue };
        let of = |name: &str, help: &str, kind: &str, value: f64, out: &mut Metrics| {
            out.add(name, help, kind, &[("archive", &served.name)], value);
        };
        let (counts, overview) = (&standing.counts, &standing.overview);
        of("perennial_captures", "Captures of all kinds.", "gauge", counts.n_captures as f64, &mut out);
        of("perennial_versions", "Distinct contents.", "gauge", counts.n_versions as f64, &mut out);
        of(
            "perennial_versions_indexed",
            "Versions kept in the index.",
            "gauge",
            counts.n_indexed as f64,
            &mut out,
        );
        of("perennial_pages", "Captured addresses.", "gauge", counts.n_pages as f64, &mut out);
        of("perennial_sites", "Hosts with captures.", "gauge", counts.n_sites as f64, &mut out);
        of("perennial_warc_bytes", "Bytes of WARC files.", "gauge", overview.holdings[5] as f64, &mut out);
        of(
            "perennial_pages_followed",
            "Pages that the scheduler follows.",
            "gauge",
            overview.n_followed as f64,
            &mut out,
        );
        of(
            "perennial_analysis_waiting",
            "Captures that wait for analysis.",
            "gauge",
            overview.n_waiting as f64,
            &mut out,
        );
        of("perennial_needs", "Hosts that need a person.", "gauge", overview.needs.len() as f64, &mut out);
        if let Some(spending) = &overview.spending {
            let (hours, per_hour) = (spending.last_day() as f64, spending.per_hour);
            of(
                "perennial_visits_last_day",
                "Visits of pages in the last 24 hours.",
                "gauge",
                hours,
                &mut out,
            );
            of(
                "perennial_budget_visits_per_hour",
                "Visits an hour that are allowed.",
                "gauge",
                per_hour,
                &mut out,
            );
        }
        if let Some(shares) = overview.completeness {
            for (bound, share) in ["least", "likely", "most"].into_iter().zip(shares) {
                let labels = [("archive", served.name.as_str()), ("bound", bound)];
                out.add(
                    "perennial_completeness",
                    "Share of important change that was caught.",
                    "gauge",
                    &labels,
                    share,
                );
            }
        }
        if let Some((_, last)) = overview.span {
            let secs = last.as_secs() as f64;
            of(
                "perennial_last_capture_seconds",
                "When the last capture was, since 1970.",
                "gauge",
                secs,
                &mut out,
            );
        }
    }
    for (kind, n) in server.problems_by_kind() {
        let labels = [("kind", kind)];
        out.add(
            "perennial_server_problems_total",
            "Requests that were not answered as meant.",
            "counter",
            &labels,
            n as f64,
        );
    }
    let n_requests = server.n_requests() as f64;
    out.add("perennial_server_requests_total", "Requests that were answered.", "counter", &[], n_requests);
    Ok(text(&out.text(), "text/plain; version=0.0.4; charset=utf-8"))
}

/// Lines of one name stand together, as the format wants it.
struct Metrics(Vec<(String, String)>);

impl Metrics {
    fn add(&mut self, name: &str, help: &str, kind: &str, labels: &[(&str, &str)], value: f64) {
        let head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(key, text)| format!("{key}=\"{}\"", escape(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let line = format!("{name}{labels} {value}\n");
        match self.0.iter_mut().find(|(known, _)| *known == head) {
            Some((_, lines)) => lines.push_str(&line),
            None => self.0.push((head, line)),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (head, lines) in &self.0 {
            // Writing into a string cannot fail.
            let _ = write!(out, "{head}{lines}");
        }
        out
    }
}

/// What programs ask of the whole server and not of one archive.
pub fn of_server(server: &Server, name: &str) -> Option<Result<Response<Body>, Problem>> {
    match name {
        "/healthz" => Some(Ok(health(server))),
        "/metrics" => Some(metrics(server)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_figure_stand_together_and_names_are_escaped() {
        let mut metrics = Metrics(Vec::new());
        metrics.add("a", "A.", "gauge", &[("archive", "x\"y")], 1.0);
        metrics.add("b", "B.", "gauge", &[], 0.5);
        metrics.add("a", "A.", "gauge", &[("archive", "z")], 2.0);
        let expected = "# HELP a A.\n# TYPE a gauge\na{archive=\"x\\\"y\"} 1\na{archive=\"z\"} 2\n# HELP b B.\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(metrics.text(), expected);
    }

    #[test]
    fn the_description_is_json() {
        let value: Value = serde_json::from_str(OPENAPI).unwrap();
        assert_eq!(value["openapi"], "3.1.0");
    }
}
