//! Responses for programs: a view as JSON, metrics for Prometheus, health.

use std::fmt::Write;

use hyper::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::Server;
use super::dashboard::components::Range;
use super::problem::Problem;
use crate::body::Body;

pub fn json(view: &impl Serialize) -> Response<Body> {
    // Converting to a value sorts the keys. It never fails, because the keys of views are strings.
    let value = serde_json::to_value(view).unwrap_or_default();
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

/// `/healthz`: whether every archive is readable.
pub fn health(server: &Server) -> Response<Body> {
    let results = server.archives().iter().map(|served| {
        served.pool.with(|snapshot| snapshot.store().last_capture_number()).and_then(|number| number)
    });
    let failed: Vec<String> = results.filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if failed.is_empty() {
        return text("ok\n", "text/plain; charset=utf-8");
    }
    let mut response = text(&format!("{}\n", failed.join("\n")), "text/plain; charset=utf-8");
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// `/metrics`, in the text format of Prometheus.
pub fn metrics(server: &Server) -> Result<Response<Body>, Problem> {
    let mut out = Metrics(Vec::new());
    for served in server.archives() {
        let summary = served.summaries.latest(&served.pool).map_err(|error| Problem::internal(&error))?;
        let Some(summary) = summary else { continue };
        let overview = &summary.overview;
        let archive = ("archive", served.name.as_str());
        let last = overview.last_capture.map(|last| last.as_secs() as f64);
        for (name, help, value) in [
            ("captures", "Captures of all kinds.", Some(overview.n_captures as f64)),
            ("versions", "Different contents.", Some(overview.n_versions as f64)),
            ("versions_indexed", "Versions in the index.", Some(overview.n_indexed as f64)),
            ("pages", "Captured pages, without subresources.", Some(overview.n_pages as f64)),
            ("sites", "Hosts with captures.", Some(overview.n_sites as f64)),
            ("warc_bytes", "Bytes of WARC files.", Some(overview.warc_bytes as f64)),
            ("pages_followed", "Pages in the scheduler's plan.", Some(overview.n_followed as f64)),
            ("analysis_waiting", "Captures not yet analysed.", Some(overview.n_unanalysed as f64)),
            ("needs", "Hosts with problems.", Some(overview.warnings.len() as f64)),
            (
                "visits_last_day",
                "Visits of pages in the last 24 hours.",
                overview.visits_last_day.map(|n| n as f64),
            ),
            ("budget_visits_per_hour", "Visits per hour that the budget allows.", overview.visits_per_hour),
            ("last_capture_seconds", "Time of the last capture, since 1970.", last),
        ] {
            if let Some(value) = value {
                out.add(&format!("perennial_{name}"), help, "gauge", &[archive], value);
            }
        }
        if let Some(Range { at_least, likely, at_most }) = overview.completeness {
            for (bound, share) in [("least", at_least), ("likely", likely), ("most", at_most)] {
                let help = "Share of important changes that were captured.";
                out.add("perennial_completeness", help, "gauge", &[archive, ("bound", bound)], share);
            }
        }
    }
    for (kind, n) in server.problems_by_kind() {
        let labels = [("kind", kind)];
        out.add("perennial_server_problems_total", "Requests that failed.", "counter", &labels, n as f64);
    }
    let n_requests = server.n_requests() as f64;
    out.add("perennial_server_requests_total", "All requests.", "counter", &[], n_requests);
    Ok(text(&out.text(), "text/plain; version=0.0.4; charset=utf-8"))
}

/// Lines by metric, because the format requires the lines of a metric to be adjacent.
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
            // Writing to a string cannot fail.
            let _ = write!(out, "{head}{lines}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_metric_are_adjacent_and_labels_are_escaped() {
        let mut metrics = Metrics(Vec::new());
        metrics.add("a", "A.", "gauge", &[("archive", "x\"y")], 1.0);
        metrics.add("b", "B.", "gauge", &[], 0.5);
        metrics.add("a", "A.", "gauge", &[("archive", "z")], 2.0);
        let expected = "# HELP a A.\n# TYPE a gauge\na{archive=\"x\\\"y\"} 1\na{archive=\"z\"} 2\n# HELP b B.\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(metrics.text(), expected);
    }
}
