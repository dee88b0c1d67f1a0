//! What is reckoned over the whole archive -> the margin of home: what needs you, budget, plan, quality, holdings.

use std::fmt::Write;

use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::{Span, Timestamp};
use serde_json::{Value, json};

use super::operate::{Operating, button};
use super::{Place, page_address, site_address, without_scheme};
use perennial_engine::html::chart::stretched::{Axis, ranges, spent, trend};
use perennial_engine::html::dates::{counted, day_and_minute, grouped, minute, size};
use perennial_engine::learn::NextVisit;

/// Something that a person should look at, and the cure.
#[derive(Clone, Debug)]
pub struct Needs {
    /// What is so, in few words.
    pub title: String,
    /// Since when and how often.
    pub text: String,
    /// What to do.
    pub cure: String,
    /// The command that does it.
    pub command: Option<String>,
    /// The site that it is about.
    pub host: Option<String>,
}

/// What was spent in the hours before an instant.
#[derive(Clone, Debug)]
pub struct Spending {
    /// Visits of pages in each hour; the last is that of `until`.
    pub hours: Vec<u64>,
    /// The instant.
    pub until: Timestamp,
    /// Visits an hour that are allowed.
    pub per_hour: f64,
    /// Where that is from; empty where the user said it.
    pub source: &'static str,
}

/// The quality of an archive as it was at an instant.
#[derive(Clone, Copy, Debug)]
pub struct QualityPoint {
    /// When.
    pub at: Timestamp,
    /// Completeness of what was captured by then: least, likely, most.
    pub completeness: [f64; 3],
    /// Coherence of all sites as of then: at least, at most.
    pub coherence: (f64, f64),
}

/// The state of an archive, as it is reckoned now and then.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// When it was reckoned; `None` while the first time is under way.
    pub made: Option<Timestamp>,
    /// What needs a person, worst first.
    pub needs: Vec<Needs>,
    /// Captures that wait for their analysis.
    pub n_waiting: u64,
    /// Whether a process writes the archive.
    pub is_running: bool,
    /// The captures that came last.
    pub latest: Vec<(Timestamp, String)>,
    /// Visits that were spent, and how many are allowed.
    pub spending: Option<Spending>,
    /// The instant of the plan.
    pub plan_at: Option<Timestamp>,
    /// The next visits.
    pub next: Vec<NextVisit>,
    /// Pages that are followed.
    pub n_followed: u64,
    /// Completeness of all: least, likely, most.
    pub completeness: Option<[f64; 3]>,
    /// Completeness of each site that is known.
    pub by_site: Vec<(String, [f64; 3])>,
    /// Coherence at the last capture: at least, at most.
    pub coherence: Option<(f64, f64)>,
    /// How both were at earlier instants, earliest first.
    pub past: Vec<QualityPoint>,
    /// Captures, versions, versions in the index, pages, sites, bytes of WARC files.
    pub holdings: [u64; 6],
    /// The first and the last capture.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// Rows of completeness in the margin.
const MOST_SITES: usize = 12;

impl Overview {
    /// The worst need in one line, for narrow pages.
    pub(super) fn write_first_need(&self, out: &mut String) {
        if let Some(need) = self.needs.first() {
            let _ = write!(
                out,
                "<p class=\"alert narrow-block\"><b>{}.</b> <a href=\"#needs\">What to do</a></p>",
                isolated(&need.title)
            );
        }
    }

    /// The margin.
    pub(super) fn write(&self, out: &mut String, place: Place<'_>) {
        let base = place.base;
        out.push_str("<aside aria-label=\"State of the archive\">");
        self.write_needs(out, place);
        if self.made.is_none() {
            out.push_str(
                "<section><h2 class=\"h3\">Being reckoned</h2><p class=\"mute\">Plan, quality and holdings are learned from all captures. \
                 Reload in a moment.</p></section>",
            );
        }
        self.write_spending(out);
        self.write_latest(out, base);
        self.write_next(out, base);
        self.write_quality(out);
        self.write_holdings(out);
        out.push_str("</aside>");
    }

    fn write_needs(&self, out: &mut String, place: Place<'_>) {
        let base = place.base;
        let n = self.needs.len() + usize::from(self.n_waiting > 0);
        if n == 0 {
            return;
        }
        let _ = write!(out, "<section id=\"needs\"><h2 class=\"h3\">Needs you <span>{n}</span></h2>");
        let back = format!("{base}/#needs");
        for need in &self.needs {
            let title = match &need.host {
                Some(host) => {
                    format!(
                        "<a class=\"quiet\" href=\"{}\">{}</a>",
                        escaped(&site_address(base, host)),
                        isolated(&need.title)
                    )
                }
                None => isolated(&need.title).to_string(),
            };
            let command = need
                .command
                .as_ref()
                .map(|text| format!(" <code>{}</code>", isolated(text)))
                .unwrap_or_default();
            let acts = need.host.as_deref().map(|host| need_acts(place, host, &back)).unwrap_or_default();
            let _ = write!(
                out,
                "<div class=\"alert\"><p><b>{title}.</b> {}</p><p class=\"cure\">{}{command}</p>{acts}</div>",
                isolated(&need.text),
                isolated(&need.cure)
            );
        }
        if self.n_waiting > 0 {
            let _ = write!(
                out,
                "<div class=\"alert\"><p><b>{} for their analysis.</b> They are in none of these figures, and completeness is likely higher than it says.</p>\
                 <p class=\"cure\">The next crawl completes it, or at once: <code>perennial analyse</code></p></div>",
                counted(self.n_waiting, "capture waits", "captures wait")
            );
        }
        out.push_str("</section>");
    }

    fn write_spending(&self, out: &mut String) {
        let Some(spending) = &self.spending else { return };
        let last_day: u64 = spending.hours.iter().sum();
        let allowed = spending.per_hour;
        let _ = write!(
            out,
            "<section><h2 class=\"h3\">Budget <span>{:.0} visits an hour{}</span></h2>{}<p class=\"cap\">{} in the {} before {}.{}</p></section>",
            allowed,
            if spending.source.is_empty() { "" } else { ", not set" },
            spent(&spending.hours, Some(allowed), spending.until),
            counted(last_day, "visit", "visits"),
            counted(spending.hours.len() as u64, "hour", "hours"),
            day_and_minute(spending.until),
            if spending.source.is_empty() {
                String::new()
            } else {
                format!(" The line is {}.", escaped(spending.source))
            },
        );
    }

    fn write_latest(&self, out: &mut String, base: &str) {
        if self.latest.is_empty() {
            return;
        }
        let head = match self.is_running {
            true => {
                "<span class=\"live\" style=\"color:var(--ink);font-weight:600\">Being fetched</span> <span>newest first</span>"
            }
            false => "Fetched last <span>no crawl is running</span>",
        };
        let _ = write!(out, "<section><h2 class=\"h3\">{head}</h2><ul class=\"now\">");
        for (time, url) in &self.latest {
            let _ = write!(
                out,
                "<li><time class=\"mute\" datetime=\"{}\">{}</time><a class=\"cut quiet\" href=\"{}\">{}</a></li>",
                time.to_rfc3339(),
                minute(*time),
                escaped(&page_address(base, url)),
                isolated(without_scheme(url))
            );
        }
        out.push_str("</ul></section>");
    }

    fn write_next(&self, out: &mut String, base: &str) {
        if self.next.is_empty() {
            return;
        }
        let as_of = match self.is_running {
            true => "when, why".to_string(),
            false => format!("as of {}", self.plan_at.map(day_and_minute).unwrap_or_default()),
        };
        let _ =
            write!(out, "<section><h2 class=\"h3\">Next visits <span>{as_of}</span></h2><ul class=\"next\">");
        for visit in &self.next {
            let at = visit.at.as_deref().and_then(|at| Timestamp::parse(at).ok());
            let _ = write!(
                out,
                "<li><span class=\"num\">{}</span><span><span class=\"cut\" style=\"display:block\"><a href=\"{}\">{}</a></span><span class=\"mute small\">{}</span></span></li>",
                at.map_or("later".to_string(), minute),
                escaped(&page_address(base, &visit.url)),
                isolated(without_scheme(&visit.url)),
                isolated(&visit.reason)
            );
        }
        let _ = write!(
            out,
            "</ul><p class=\"small\" style=\"margin-top:4px\"><a href=\"{base}/schedule\">{} with their reasons</a></p></section>",
            counted(self.n_followed, "page", "pages")
        );
    }

    fn write_quality(&self, out: &mut String) {
        if let Some([least, likely, _]) = self.completeness {
            let rows = &self.by_site[..self.by_site.len().min(MOST_SITES)];
            let _ = write!(
                out,
                "<section><h2 class=\"h3\">Completeness <span>likely {:.0} %, at least {:.0} %</span></h2>{}\
                 <p class=\"cap\">Share of what changed and mattered that was caught. Line: least to most. Dot: likely.{}</p>{}</section>",
                100.0 * likely,
                100.0 * least,
                ranges(rows, "Completeness of each site: least, likely, most"),
                if self.by_site.len() > rows.len() { " The lowest of all sites." } else { "" },
                self.trend("Completeness over time, of what was captured by then", |point| point
                    .completeness)
            );
        }
        if let (Some((least, most)), Some((_, last))) = (self.coherence, self.span) {
            let _ = write!(
                out,
                "<section><h2 class=\"h3\">Coherence <span>{:.0} to {:.0} %</span></h2><p class=\"cap\">Share of what belongs together, if all sites are shown \
                 as of {}. The page of a site has its own.</p>{}</section>",
                100.0 * least,
                100.0 * most,
                day_and_minute(last),
                self.trend("Coherence over time", |point| {
                    [point.coherence.0, point.coherence.0, point.coherence.1]
                })
            );
        }
    }

    /// A range through time, where it is known of more than one instant.
    fn trend(&self, label: &str, value: impl Fn(&QualityPoint) -> [f64; 3]) -> String {
        let (Some(first), Some(last)) = (self.past.first(), self.past.last()) else { return String::new() };
        if first.at >= last.at {
            return String::new();
        }
        let points: Vec<(Timestamp, [f64; 3])> =
            self.past.iter().map(|point| (point.at, value(point))).collect();
        let axis = Axis { from: first.at, until: last.at };
        format!("{}<p class=\"cap\">{label}.</p>", trend(axis, &points, label))
    }

    fn write_holdings(&self, out: &mut String) {
        if self.made.is_none() {
            return;
        }
        let [captures, versions, indexed, pages, sites, bytes] = self.holdings;
        let _ = write!(
            out,
            "<section><h2 class=\"h3\">Holdings</h2><dl class=\"kv\"><dt>Captures</dt><dd>{}</dd><dt>Versions</dt><dd>{}</dd><dt>kept in the index</dt><dd>{}</dd>\
             <dt>Pages, sites</dt><dd>{}, {}</dd><dt>WARC files</dt><dd>{}</dd>",
            grouped(captures),
            grouped(versions),
            grouped(indexed),
            grouped(pages),
            grouped(sites),
            size(bytes)
        );
        if let Some((first, last)) = self.span {
            let _ = write!(
                out,
                "<dt>First, last capture</dt><dd>{}, {}</dd>",
                day_and_minute(first),
                day_and_minute(last)
            );
        }
        out.push_str("</dl></section>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let [captures, versions, indexed, pages, sites, bytes] = self.holdings;
        let three =
            |[least, likely, most]: [f64; 3]| json!({ "at_least": least, "likely": likely, "at_most": most });
        json!({
            "made": self.made.map(Timestamp::to_rfc3339),
            "is_running": self.is_running,
            "n_waiting": self.n_waiting,
            "n_captures": captures,
            "n_versions": versions,
            "n_indexed": indexed,
            "n_pages": pages,
            "n_sites": sites,
            "warc_bytes": bytes,
            "first_capture": self.span.map(|(first, _)| first.to_rfc3339()),
            "last_capture": self.span.map(|(_, last)| last.to_rfc3339()),
            "visits_per_hour": self.spending.as_ref().map(|spending| spending.per_hour),
            "visits_last_day": self.spending.as_ref().map(Spending::last_day),
            "completeness": self.completeness.map(three),
            "coherence": self.coherence.map(|(least, most)| json!({ "at_least": least, "at_most": most })),
            "past": self.past.iter().map(|point| json!({
                "time": point.at.to_rfc3339(),
                "completeness": three(point.completeness),
                "coherence": json!({ "at_least": point.coherence.0, "at_most": point.coherence.1 }),
            })).collect::<Vec<_>>(),
            "needs": self.needs.iter().map(|need| json!({
                "title": need.title, "text": need.text, "cure": need.cure, "command": need.command, "site": need.host,
            })).collect::<Vec<_>>(),
        })
    }
}

/// What can be done about a host that fails.
pub(super) fn need_acts(place: Place<'_>, host: &str, back: &str) -> String {
    let fields = [("url", host)];
    match place.operating {
        Operating::On(_) => format!(
            "<div class=\"row cure\">{}{}</div>",
            button(place, "retry", &fields, "Try again now", back),
            button(place, "pause", &fields, "Pause", back)
        ),
        _ => String::new(),
    }
}

impl Spending {
    /// Visits of the last 24 hours.
    pub fn last_day(&self) -> u64 {
        self.hours.iter().rev().take(Span::from_hours(24).as_hours_f64() as usize).sum()
    }
}
