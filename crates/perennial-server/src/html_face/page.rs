//! One page -> its versions in time with the importance of each, when it changes, what the scheduler expects, its next visit.

use std::collections::BTreeMap;
use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::page::segment::BlockTree;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::items::Items;
use super::notices::notices_address;
use super::operate::button;
use super::parts::{Line, empty, importance, operations, write_words};
use super::{Framed, Place, Tab, foreign, host_of, page_address, path_of, short, site_address, thumb, time};
use perennial_archive::store::{AnalysisCounts, AnalysisDay};
use perennial_engine::html::chart::stretched::{Axis, HATCH, Hours, Mark, days, hours, versions};
use perennial_engine::html::dates::{
    counted, day_long, day_of_year, day_short, grouped, minute, month_name, month_of, start_of_day,
};
use perennial_engine::learn::NextVisit;

/// A version of the page.
#[derive(Clone, Debug)]
pub struct VersionLine {
    /// When the look was that showed it first.
    pub time: Timestamp,
    /// The look before.
    pub before: Option<Timestamp>,
    /// Importance of the change.
    pub importance: f64,
    /// Whether it is kept in the index.
    pub is_indexed: bool,
    /// Whether it differs by noise only, or not at all.
    pub is_noise: bool,
    /// A word for what happened where it is no edit.
    pub event: Option<&'static str>,
    /// Operations of the change.
    pub n_operations: usize,
    /// The words that differ, and how many operations there are of each kind; `None` where they are not looked up.
    pub words: Option<(Vec<Line>, [usize; 4])>,
}

/// A drawing of one version.
pub struct Picture {
    /// When it was seen first.
    pub time: Timestamp,
    /// Importance of its change.
    pub importance: f64,
    /// Its blocks.
    pub tree: BlockTree,
    /// Those that changed.
    pub changed: Vec<String>,
}

/// What the looks of one local day showed.
#[derive(Clone, Debug)]
pub struct SeriesDay {
    /// The day, as the number of days since 1970.
    pub number: i64,
    /// For each hour the importance that was seen to have changed; `None` where nobody looked.
    pub hours: [Option<f64>; 24],
}

/// When the page changes, as the scheduler believes.
#[derive(Clone, Debug)]
pub struct PatternView {
    /// Importance of change to expect in each part of a workday, and of another day.
    pub values: [Vec<f64>; 2],
    /// How sure that is, 0 to 1.
    pub sureness: f64,
    /// The busiest hours: on which kind of day (0 or 1), from, to.
    pub peak: Option<(usize, f32, f32)>,
    /// The kind of day and the hour of now.
    pub now: (usize, f64),
    /// The zone of the site.
    pub zone: String,
}

/// What the scheduler says of the page, in sentences.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// What it believes.
    pub believes: String,
    /// What it expects to have changed by now.
    pub expects: String,
    /// When it visits the page next, and why.
    pub next_visit: String,
    /// The visit itself, where one is planned.
    pub visit: Option<NextVisit>,
}

/// The page about a page.
pub struct PageView<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// Its address.
    pub url: &'a str,
    /// Its title.
    pub title: Option<String>,
    /// Its captures, and the first and last of them.
    pub n_captures: u64,
    /// See `n_captures`.
    pub span: Option<(Timestamp, Timestamp)>,
    /// What its looks showed.
    pub counts: AnalysisCounts,
    /// The importance from which a version is kept in the index.
    pub threshold: f64,
    /// The stretch that is shown whole.
    pub window: (Timestamp, Timestamp),
    /// The looks of it, latest first.
    pub lines: Vec<VersionLine>,
    /// Whether there are more than those.
    pub has_more: bool,
    /// Whether versions below the threshold are listed too.
    pub shows_all: bool,
    /// All days with looks.
    pub days: Vec<AnalysisDay>,
    /// The last important version before the window, and the first behind it.
    pub important: [Option<Timestamp>; 2],
    /// The last important change: the look before it, and its own.
    pub last_important: Option<(Timestamp, Timestamp)>,
    /// When it changes.
    pub pattern: Option<PatternView>,
    /// The days that the pattern was learned from, the latest first.
    pub series: Vec<SeriesDay>,
    /// What the scheduler says.
    pub expected: Expected,
    /// Drawings of some versions, latest first.
    pub pictures: Vec<Picture>,
    /// The headlines, where it is a front page.
    pub items: Option<Items>,
    /// The look that found no page any more, and the last that found one.
    pub vanished: Option<(Timestamp, Option<Timestamp>)>,
    /// Whether a site that is followed holds it.
    pub is_followed: bool,
}

/// With more versions than this in view no stems are drawn.
const MOST_STEMS: usize = 200;
/// Days of the overview.
const MOST_DAYS: i64 = 180;
/// Months of the calendar.
const MOST_MONTHS: usize = 4;

impl PageView<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let mut main = String::from(HATCH);
        self.write_head(&mut main);
        if self.counts.n_looks == 0 {
            main.push_str(&empty(
                "No look at this page was analysed yet",
                "Its captures wait, or it is nothing that people read. The calendar has them all.",
                Some("perennial analyse"),
            ));
        } else {
            self.write_time_line(&mut main);
            if let Some(items) = &self.items {
                items.write(&mut main, &self.address(None));
            }
            main.push_str("<section><div class=\"two\">");
            self.write_calendar(&mut main);
            self.write_pattern(&mut main);
            main.push_str("</div></section>");
            self.write_pictures(&mut main);
            self.write_table(&mut main);
        }
        let title = format!("{} - {}", self.name(), host_of(self.url));
        let json = format!("/api/page?url={}", escape(self.url));
        Framed { place: self.place, tab: Tab::Sites, title: &title, query: "", json: Some(&json) }.html(&main)
    }

    fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(path_of(self.url))
    }

    /// The address of this page with another end of its window.
    fn address(&self, until: Option<Timestamp>) -> String {
        let mut address = page_address(self.place.base, self.url);
        if let Some(until) = until {
            let _ = write!(address, "&until={}", until.to_digits14());
        }
        if self.shows_all {
            address.push_str("&show=all");
        }
        address
    }

    fn open(&self, at: Timestamp) -> String {
        format!("{}/web/{}/{}", self.place.base, at.to_digits14(), escaped(self.url))
    }

    fn compare(&self, before: Timestamp, after: Timestamp) -> String {
        format!(
            "{}/web/diff/{}/{}/{}",
            self.place.base,
            before.to_digits14(),
            after.to_digits14(),
            escaped(self.url)
        )
    }

    fn write_head(&self, out: &mut String) {
        let base = self.place.base;
        let (host, path) = (host_of(self.url), path_of(self.url));
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<p class=\"crumbs\"><a href=\"{base}/\">{}</a> / <a href=\"{}\">{}</a> / {}</p><h1>{}</h1><div class=\"head\"><div><p class=\"lead\">",
            escaped(self.place.name),
            escaped(&site_address(base, host)),
            isolated(host),
            isolated(path.trim_start_matches('/')),
            foreign(self.name())
        );
        if let Some((gone, last)) = self.vanished {
            let last = last.map(|last| format!("{} and ", time(last))).unwrap_or_default();
            let between = if last.is_empty() { "before" } else { "between" };
            let _ = write!(out, "<b>The page has vanished</b>, {between} {last}{}. ", time(gone));
        }
        let counts = &self.counts;
        if let Some((first, last)) = self.span {
            let _ = write!(
                out,
                "{} since {}: {} something new, {} are noise. Last seen {}.",
                counted(self.n_captures, "capture", "captures"),
                day_of_year(first),
                counted(counts.n_changes, "says", "say"),
                grouped(counts.n_noise),
                time(last)
            );
        }
        if let Some(items) = &self.items {
            let _ = write!(out, " {}", items.told());
        }
        if let Some(pattern) = &self.pattern {
            let _ = write!(out, " Zone of the site: {}.", escaped(&pattern.zone));
        }
        out.push_str("</p></div><div class=\"row\">");
        if let Some((_, last)) = self.span {
            let _ = write!(out, "<a class=\"btn go\" href=\"{}\">Open latest</a>", self.open(last));
        }
        if let Some((before, after)) = self.last_important {
            let _ = write!(
                out,
                "<a class=\"btn\" href=\"{}\">Last important change</a>",
                self.compare(before, after)
            );
        }
        let _ = write!(
            out,
            "<a class=\"btn\" href=\"{base}/object?url={}\">Article and edits</a><a class=\"btn\" href=\"{base}/web/*/{}\">All captures</a><a class=\"btn\" href=\"{}\">Notify</a>",
            escape(self.url),
            escaped(self.url),
            escaped(&notices_address(base, Some(self.url), None))
        );
        if self.is_followed {
            let back = page_address(base, self.url);
            let _ = write!(
                out,
                "<a class=\"btn\" href=\"{base}/pin?url={}\">Pin a part</a>{}",
                escape(self.url),
                button(self.place, "retry", &[("url", self.url)], "Visit now", &back)
            );
        }
        out.push_str("</div></div>");
    }

    fn write_time_line(&self, out: &mut String) {
        let axis = Axis { from: self.window.0, until: self.window.1 };
        let changes: Vec<&VersionLine> = self.lines.iter().filter(|line| !line.is_noise).collect();
        let _ = write!(
            out,
            "<section><div class=\"sec\"><h2>Versions</h2><p class=\"legend\"><span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"f4\" cx=\"6\" cy=\"6\" r=\"5\"/></svg>kept in the index</span>\
             <span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"fb sm\" stroke-width=\"1.5\" cx=\"6\" cy=\"6\" r=\"4\"/></svg>below</span>\
             <span><svg width=\"10\" height=\"12\" aria-hidden=\"true\"><line class=\"sm\" x1=\"5\" x2=\"5\" y1=\"2\" y2=\"10\"/></svg>noise only</span>\
             <span><svg width=\"20\" height=\"12\" aria-hidden=\"true\"><line class=\"th\" x1=\"0\" x2=\"20\" y1=\"6\" y2=\"6\"/></svg>index threshold {:.3}</span></p></div>",
            self.threshold
        );
        let noise: Vec<Timestamp> =
            self.lines.iter().filter(|line| line.is_noise).map(|line| line.time).collect();
        if changes.len() <= MOST_STEMS {
            let marks: Vec<Mark> = changes.iter().map(|line| self.mark(line)).collect();
            let label =
                format!("Versions from {} to {}, height is importance", short(axis.from), short(axis.until));
            out.push_str(&versions(axis, &marks, &noise, self.threshold, &label));
        }
        self.write_days(out);
        let _ = write!(
            out,
            "<p class=\"cap\">Above: {} to {}, {} and {} with noise only. {}</p></section>",
            short(self.window.0),
            short(self.window.1),
            counted(changes.len() as u64, "change", "changes"),
            counted(noise.len() as u64, "capture", "captures"),
            if self.is_whole() {
                ""
            } else {
                "Below: strongest change of each day; weekends are fainter. A day opens its week."
            }
        );
    }

    fn mark(&self, line: &VersionLine) -> Mark {
        let href = match line.before.filter(|_| line.event.is_none()) {
            Some(before) => format!(
                "{}/web/diff/{}/{}/{}",
                self.place.base,
                before.to_digits14(),
                line.time.to_digits14(),
                self.url
            ),
            None => format!("{}/web/{}/{}", self.place.base, line.time.to_digits14(), self.url),
        };
        Mark {
            time: line.time,
            importance: line.importance,
            is_indexed: line.is_indexed,
            href,
            title: format!(
                "{}, importance {:.2}, {}",
                short(line.time),
                line.importance,
                counted(line.n_operations as u64, "operation", "operations")
            ),
        }
    }

    fn write_days(&self, out: &mut String) {
        let (Some(first), Some(last)) = (self.days.first(), self.days.last()) else { return };
        // A history that is shown whole needs no overview.
        if self.is_whole() || first.number == last.number {
            return;
        }
        let first = first.number.max(last.number - MOST_DAYS + 1);
        let by_number: BTreeMap<i64, f64> = self.days.iter().map(|day| (day.number, day.strongest)).collect();
        let values: Vec<f64> =
            (first..=last.number).map(|number| by_number.get(&number).copied().unwrap_or(0.0)).collect();
        let number_of = |at: Timestamp| at.as_millis().div_euclid(86_400_000);
        let framed = (number_of(self.window.0), number_of(self.window.1));
        out.push_str(&days(first, &values, framed, |number| self.address(Some(start_of_day(number + 1)))));
    }

    fn is_whole(&self) -> bool {
        self.span == Some(self.window)
    }

    fn write_calendar(&self, out: &mut String) {
        let _ = write!(
            out,
            "<div><div class=\"sec\"><h2>Calendar</h2><p class=\"legend\"><span>less</span><span class=\"ramp\"><i style=\"background:var(--d1)\"></i><i style=\"background:var(--d2)\"></i>\
             <i style=\"background:var(--d3)\"></i><i style=\"background:var(--d4)\"></i></span><span>more important change in a day</span></p></div><div class=\"cal\">"
        );
        let top = self.days.iter().map(|day| day.total).fold(0.0, f64::max);
        let mut months: Vec<(i16, usize)> =
            self.days.iter().map(|day| month_of(start_of_day(day.number))).collect();
        months.dedup();
        for month in &months[months.len().saturating_sub(MOST_MONTHS)..] {
            self.write_month(out, *month, top);
        }
        out.push_str("</div></div>");
    }

    fn write_month(&self, out: &mut String, (year, month): (i16, usize), top: f64) {
        let Ok(start) = Timestamp::parse(&format!("{year:04}-{month:02}-01")) else { return };
        let _ = write!(out, "<table><caption>{} {year}</caption><thead><tr>", month_name(month));
        for day in ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"] {
            let _ = write!(out, "<th scope=\"col\">{day}</th>");
        }
        out.push_str("</tr></thead><tbody><tr>");
        let first = start.as_millis().div_euclid(86_400_000);
        let mut column = (first + 3).rem_euclid(7);
        out.push_str(&"<td></td>".repeat(column as usize));
        let days = (first..first + 31).take_while(|number| month_of(start_of_day(*number)) == (year, month));
        for (place, number) in days.enumerate() {
            if column == 7 {
                out.push_str("</tr><tr>");
                column = 0;
            }
            column += 1;
            let known =
                self.days.binary_search_by_key(&number, |day| day.number).ok().map(|at| self.days[at]);
            let _ = match known {
                None => write!(out, "<td>{}</td>", place + 1),
                Some(day) => {
                    let step = match day.total / top.max(1e-9) {
                        share if share <= 0.0 => 0,
                        share => (share * 4.0).ceil().clamp(1.0, 4.0) as u8,
                    };
                    write!(
                        out,
                        "<td><a class=\"h{step}\" href=\"{}\" title=\"{}, importance {:.2}\">{}</a></td>",
                        escaped(&self.address(Some(start_of_day(number + 1)))),
                        counted(day.n_looks, "look", "looks"),
                        day.total,
                        place + 1
                    )
                }
            };
        }
        out.push_str("</tr></tbody></table>");
    }

    fn write_pattern(&self, out: &mut String) {
        out.push_str("<div><div class=\"sec\"><h2>When it changes</h2><p class=\"legend\">important change to expect in each hour, local time</p></div>");
        if let Some(pattern) = &self.pattern {
            let top = pattern.values.iter().flatten().copied().fold(0.0, f64::max);
            let top =
                [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6].into_iter().find(|step| top <= *step).unwrap_or(1.0);
            for (kind, name) in ["Workdays", "Weekends"].into_iter().enumerate() {
                out.push_str(&hours(&Hours {
                    name,
                    values: &pattern.values[kind],
                    top,
                    expected: pattern.peak.filter(|peak| peak.0 == kind).map(|(_, from, to)| (from, to)),
                    now: (pattern.now.0 == kind).then_some(pattern.now.1),
                    class: if kind == 0 { "f4" } else { "f3" },
                }));
                out.push_str("<div style=\"height:16px\"></div>");
            }
        }
        self.write_series(out);
        out.push_str("<dl class=\"belief\" id=\"next\">");
        let expected = &self.expected;
        for (name, text) in [
            ("Believes", &expected.believes),
            ("Expects", &expected.expects),
            ("Next visit", &expected.next_visit),
        ] {
            if !text.is_empty() {
                let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", isolated(text));
            }
        }
        let _ = write!(
            out,
            "</dl><p class=\"cap\"><a href=\"{}/schedule?url={}\">Why not today?</a></p></div>",
            self.place.base,
            escape(self.url)
        );
    }

    /// The days that the bars were learned from, hour by hour.
    fn write_series(&self, out: &mut String) {
        if self.series.is_empty() {
            return;
        }
        let top = self.series.iter().flat_map(|day| day.hours).flatten().fold(0.0, f64::max);
        out.push_str("<div class=\"heat series\" role=\"img\" aria-label=\"Importance of what was seen to have changed, by day and hour\">");
        for day in &self.series {
            let name = day_short(start_of_day(day.number));
            // A day and its number fit beside the hours, on a phone too.
            let label: Vec<&str> = name.split(' ').take(2).collect();
            let label = format!("{} {}", &label[0][..2], label[1]);
            let _ = write!(out, "<span>{label}</span>");
            for (hour, value) in day.hours.iter().enumerate() {
                let _ = match value {
                    None => write!(out, "<i class=\"none\"></i>"),
                    Some(value) => {
                        let step = (4.0 * value / top.max(1e-9)).ceil().clamp(0.0, 4.0) as u8;
                        let class = if step > 0 { format!(" class=\"b{step}\"") } else { String::new() };
                        write!(out, "<i{class} title=\"{name}, {hour} to {} h: {value:.2}\"></i>", hour + 1)
                    }
                };
            }
        }
        out.push_str(
            "</div><p class=\"cap\">What it was learned from: the latest days, hour by hour. Filled: something changed. Framed: seen, nothing new. Bare: nobody looked.</p>",
        );
    }

    fn write_pictures(&self, out: &mut String) {
        if self.pictures.is_empty() {
            return;
        }
        out.push_str("<section><div class=\"sec\"><h2>Pictures of versions</h2><p class=\"legend\">drawn from the boxes of the layout, what changed framed; latest first</p></div><ul class=\"pics\">");
        for picture in &self.pictures {
            let _ = write!(
                out,
                "<li><a href=\"{}\">{}<span class=\"small\">{}<br>{:.2}</span></a></li>",
                self.open(picture.time),
                thumb::svg(&picture.tree, &picture.changed),
                short(picture.time),
                picture.importance
            );
        }
        out.push_str("</ul></section>");
    }

    fn write_table(&self, out: &mut String) {
        let _ = write!(
            out,
            "<section id=\"versions\"><div class=\"sec\"><h2>{}</h2><p class=\"row\"><span class=\"seg\">",
            self.table_title()
        );
        let plain = page_address(self.place.base, self.url);
        let until = format!("&until={}", self.window.1.to_digits14());
        let other =
            escaped(&format!("{plain}{until}{}", if self.shows_all { "" } else { "&show=all" })).to_string();
        let _ = match self.shows_all {
            true => write!(
                out,
                "<a href=\"{other}\">Important</a><span aria-current=\"true\">All {}</span>",
                grouped(self.counts.n_looks)
            ),
            false => write!(
                out,
                "<span aria-current=\"true\">Important</span><a href=\"{other}\">All {}</a>",
                grouped(self.counts.n_looks)
            ),
        };
        out.push_str("</span>");
        let [previous, next] = self.important;
        if let Some(previous) = previous {
            let _ = write!(
                out,
                "<a class=\"btn\" rel=\"prev\" href=\"{}\">Previous important, {}</a>",
                escaped(&self.address(Some(Timestamp::from_secs(previous.as_secs() + 1)))),
                short(previous)
            );
        }
        if let Some(next) = next {
            let _ = write!(
                out,
                "<a class=\"btn\" rel=\"next\" href=\"{}\">Next important, {}</a>",
                escaped(&self.address(Some(Timestamp::from_secs(next.as_secs() + 1)))),
                short(next)
            );
        }
        out.push_str(
            "</p></div><table class=\"t vers\"><thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Importance</th><th scope=\"col\">Strongest words</th>\
             <th scope=\"col\" class=\"wide-only\">Operations</th><th scope=\"col\"><span class=\"vh\">Compare</span></th></tr></thead><tbody>",
        );
        self.write_rows(out);
        out.push_str("</tbody></table>");
        if self.has_more {
            let older = self.lines.last().map(|line| line.time);
            let _ = write!(
                out,
                "<p class=\"more\"><a class=\"btn\" href=\"{}\">Older</a></p>",
                escaped(&self.address(older))
            );
        }
        out.push_str("</section>");
    }

    fn table_title(&self) -> String {
        let (from, until) = (day_of_year(self.window.0), day_of_year(self.window.1));
        if from == until { from } else { format!("{from} to {until}") }
    }

    /// One row for each version that is listed; what lies between two of them is folded and counted.
    fn write_rows(&self, out: &mut String) {
        let mut folded: Vec<&VersionLine> = Vec::new();
        let mut day = String::new();
        for line in &self.lines {
            let is_listed = line.words.is_some() || self.shows_all && !line.is_noise;
            if !is_listed {
                folded.push(line);
                continue;
            }
            write_fold(out, &mut folded);
            if day_long(line.time) != day {
                day = day_long(line.time);
                let _ = write!(out, "<tr class=\"day\"><th colspan=\"5\" scope=\"colgroup\">{day}</th></tr>");
            }
            self.write_row(out, line);
        }
        write_fold(out, &mut folded);
    }

    fn write_row(&self, out: &mut String, line: &VersionLine) {
        let _ = write!(
            out,
            "<tr><td class=\"nowrap\"><a href=\"{}\"><time datetime=\"{}\">{}</time></a></td><td>{}</td><td class=\"w\"><div class=\"pair\">",
            self.open(line.time),
            line.time.to_rfc3339(),
            minute(line.time),
            importance(line.importance, line.is_indexed, Some(self.threshold))
        );
        if let Some(event) = line.event {
            let _ = write!(out, "<span>{event}</span>");
        }
        let (words, counts) = line.words.clone().unwrap_or_default();
        words.iter().for_each(|words| write_words(out, words));
        let _ =
            write!(out, "</div></td><td class=\"wide-only\">{}</td><td class=\"r\">", operations(&counts));
        if let Some(before) = line.before.filter(|_| line.event.is_none()) {
            let _ = write!(out, "<a href=\"{}\">Compare</a>", self.compare(before, line.time));
        }
        out.push_str("</td></tr>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let line = |line: &VersionLine| {
            json!({
                "time": line.time.to_rfc3339(),
                "before": line.before.map(Timestamp::to_rfc3339),
                "importance": line.importance,
                "is_indexed": line.is_indexed,
                "is_noise": line.is_noise,
                "event": line.event,
                "n_operations": line.n_operations,
            })
        };
        let pattern = self.pattern.as_ref().map(|pattern| {
            json!({
                "zone": pattern.zone,
                "workdays": pattern.values[0],
                "weekends": pattern.values[1],
                "sureness": pattern.sureness,
            })
        });
        json!({
            "url": self.url,
            "title": self.title,
            "n_captures": self.n_captures,
            "first_capture": self.span.map(|(first, _)| first.to_rfc3339()),
            "last_capture": self.span.map(|(_, last)| last.to_rfc3339()),
            "n_looks": self.counts.n_looks,
            "n_changes": self.counts.n_changes,
            "n_noise": self.counts.n_noise,
            "n_indexed": self.counts.n_indexed,
            "index_threshold": self.threshold,
            "from": self.window.0.to_rfc3339(),
            "until": self.window.1.to_rfc3339(),
            "versions": self.lines.iter().map(line).collect::<Vec<_>>(),
            "pattern": pattern,
            "series": self.series.iter().map(|day| json!({
                "day": start_of_day(day.number).to_rfc3339().get(..10),
                "hours": day.hours,
            })).collect::<Vec<_>>(),
            "believes": self.expected.believes,
            "expects": self.expected.expects,
            "next_visit": self.expected.next_visit,
            "items": self.items.as_ref().map(Items::json),
        })
    }
}

fn write_fold(out: &mut String, folded: &mut Vec<&VersionLine>) {
    let (Some(last), Some(first)) = (folded.first(), folded.last()) else { return };
    let n_noise = folded.iter().filter(|line| line.is_noise).count() as u64;
    let n_below = folded.len() as u64 - n_noise;
    let time = match first.time == last.time {
        true => minute(first.time),
        false => format!("{} to {}", minute(first.time), minute(last.time)),
    };
    let mut said = Vec::new();
    if n_noise > 0 {
        said.push(format!("{n_noise} with noise only or nothing new"));
    }
    if n_below > 0 {
        said.push(format!("{n_below} below the index threshold or without words at hand"));
    }
    let _ = write!(
        out,
        "<tr class=\"fold\"><td class=\"nowrap\"><time>{time}</time></td><td colspan=\"4\">{}</td></tr>",
        said.join(", ")
    );
    folded.clear();
}
