//! One site -> its hours, directories, pages, coherence and feeds; all sites -> a list.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::aside::need_acts;
use super::operate::{write_followed, write_followed_of};
use super::parts::empty;
use super::{Framed, Place, Tab, foreign, page_address, path_of, short, site_address, time};
use perennial_archive::settings::Seed;
use perennial_engine::html::chart::stretched::{Axis, curve, small_bars};
use perennial_engine::html::dates::{counted, day_and_minute, day_of_year, grouped, weekday_name};

/// A directory of a site.
#[derive(Clone, Debug)]
pub struct DirectoryRow {
    /// Its path.
    pub path: String,
    /// Pages in it and below.
    pub n_pages: u64,
    /// Share of it that changed from each pass over the site to the next.
    pub degrees: Vec<f64>,
    /// The rule that it follows, in words.
    pub rule: Option<String>,
}

/// A page in the list of a site.
#[derive(Clone, Debug)]
pub struct PageRow {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// Importance of all its changes.
    pub total: f64,
    /// Captures of it.
    pub n_captures: u64,
    /// The last of them.
    pub last_seen: Timestamp,
    /// Status of that.
    pub status: Option<u16>,
    /// Changes a day that the scheduler believes in.
    pub changes_per_day: Option<f32>,
}

/// A feed of a site.
#[derive(Clone, Debug)]
pub struct FeedLine {
    /// Its address.
    pub url: String,
    /// Its name.
    pub title: String,
    /// Items that were ever seen.
    pub n_items: u64,
    /// Times at which items were lost between two reads.
    pub n_gaps: u64,
    /// When it was last read with something new.
    pub last_read: Timestamp,
    /// Its latest items: when they were first seen, their headlines and pages.
    pub latest: Vec<(Timestamp, String, Option<String>)>,
}

/// The page about a site.
#[derive(Clone, Debug)]
pub struct SiteView<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The host.
    pub host: &'a str,
    /// The zone of the site.
    pub zone: String,
    /// Its captured pages that people read, as far as they are listed, and captures of everything.
    pub n_pages: u64,
    /// See `n_pages`.
    pub n_captures: u64,
    /// Importance of change by weekday, Monday first, and hour, in the site's zone.
    pub heat: [[f64; 24]; 7],
    /// Changes that were added up for it, and since when.
    pub n_changes: u64,
    /// See `n_changes`.
    pub since: Timestamp,
    /// Its directories with most change, in the order of the tree.
    pub directories: Vec<DirectoryRow>,
    /// Passes over the site from which they were reckoned.
    pub n_passes: usize,
    /// Its pages.
    pub pages: Vec<PageRow>,
    /// Whether the pages are ordered by their last capture.
    pub is_by_freshness: bool,
    /// Completeness: least, likely, most.
    pub completeness: Option<[f64; 3]>,
    /// Coherence of the site at some instants: at least, at most.
    pub coherence: Vec<(Timestamp, f64, f64)>,
    /// Its feeds.
    pub feeds: Vec<FeedLine>,
    /// What is wrong with it.
    pub need: Option<(String, String)>,
    /// What the user follows on it.
    pub followed: Vec<&'a Seed>,
}

/// Pages that are listed, and sites.
const MOST_PAGES: usize = 60;
const MOST_SITES: usize = 1_000;

impl SiteView<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let mut main = String::new();
        self.write_head(&mut main);
        self.write_heat(&mut main);
        self.write_coherence(&mut main);
        self.write_directories(&mut main);
        self.write_pages(&mut main);
        self.write_feeds(&mut main);
        let back = site_address(self.place.base, self.host);
        write_followed_of(&mut main, self.place, &self.followed, &back);
        let json = format!("/api/site?host={}", escape(self.host));
        Framed { place: self.place, tab: Tab::Sites, title: self.host, query: "", json: Some(&json) }
            .html(&main)
    }

    fn write_head(&self, out: &mut String) {
        let base = self.place.base;
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<p class=\"crumbs\"><a href=\"{base}/\">{}</a> / <a href=\"{base}/sites\">sites</a> / {2}</p><div class=\"head\"><div><h1>{2}</h1><p class=\"lead\">{1}",
            escaped(self.place.name),
            format_args!(
                "{}, {}.",
                counted(self.n_pages, "page", "pages"),
                counted(self.n_captures, "capture", "captures")
            ),
            isolated(self.host)
        );
        if let Some([least, likely, most]) = self.completeness {
            let _ = write!(
                out,
                " Completeness likely {:.0} %, between {:.0} and {:.0} %.",
                100.0 * likely,
                100.0 * least,
                100.0 * most
            );
        }
        let _ = write!(
            out,
            " Zone of the site: {}.</p></div><div class=\"row\"><a class=\"btn\" href=\"{base}/?hours=720&amp;site={}\">What changed</a>\
             <a class=\"btn\" href=\"{base}/schedule?site={}\">Next visits</a></div></div>",
            escaped(&self.zone),
            escape(self.host),
            escape(self.host)
        );
        if let Some((title, text)) = &self.need {
            let _ = write!(
                out,
                "<div class=\"alert\" style=\"margin-bottom:24px\"><p><b>{}.</b> {}</p>{}</div>",
                isolated(title),
                isolated(text),
                need_acts(self.place, self.host, &site_address(base, self.host))
            );
        }
    }

    fn write_heat(&self, out: &mut String) {
        out.push_str("<section><div class=\"sec\"><h2>When it changes</h2><p class=\"legend\"><span>less</span><span class=\"ramp\"><i style=\"background:var(--d1)\"></i><i style=\"background:var(--d2)\"></i>\
             <i style=\"background:var(--d3)\"></i><i style=\"background:var(--d4)\"></i></span><span>more important change in an hour of the week</span></p></div>");
        if self.n_changes == 0 {
            out.push_str(&empty(
                "No change was seen yet",
                "A page must be looked at twice before anything is known of its changes.",
                None,
            ));
            out.push_str("</section>");
            return;
        }
        let top = self.heat.iter().flatten().copied().fold(0.0, f64::max);
        let _ = write!(
            out,
            "<div class=\"heat\" role=\"img\" aria-label=\"{}\">",
            escaped(&self.heat_in_words())
        );
        for (day, hours) in self.heat.iter().enumerate() {
            let _ = write!(out, "<span class=\"wd\">{}</span>", &weekday_name(day)[..3]);
            for (hour, value) in hours.iter().enumerate() {
                let step = (4.0 * value / top.max(1e-9)).ceil() as u8;
                let class =
                    if *value > 0.0 { format!(" class=\"b{}\"", step.clamp(1, 4)) } else { String::new() };
                let _ = write!(
                    out,
                    "<i{class} title=\"{} {hour} to {} h: {value:.2}\"></i>",
                    weekday_name(day),
                    hour + 1
                );
            }
        }
        out.push_str("<span></span>");
        for hour in 0..24 {
            let text = if hour % 6 == 0 { hour.to_string() } else { String::new() };
            let _ = write!(out, "<span>{text}</span>");
        }
        let _ = write!(
            out,
            "</div><p class=\"cap\">{} since {}, in the time of {}: when they were seen, which is after they happened. {}</p></section>",
            counted(self.n_changes, "change", "changes"),
            day_of_year(self.since),
            escaped(&self.zone),
            escaped(&self.heat_in_words())
        );
    }

    /// The busiest hour of the week.
    fn heat_in_words(&self) -> String {
        let cells =
            self.heat.iter().enumerate().flat_map(|(day, hours)| {
                hours.iter().enumerate().map(move |(hour, value)| (day, hour, *value))
            });
        let most = cells.max_by(|a, b| a.2.total_cmp(&b.2));
        most.map(|(day, hour, _)| format!("Most on {}s, {hour} to {} h.", weekday_name(day), hour + 1))
            .unwrap_or_default()
    }

    fn write_coherence(&self, out: &mut String) {
        let (Some(first), Some(last)) = (self.coherence.first(), self.coherence.last()) else { return };
        if first.0 == last.0 {
            return;
        }
        let base = self.place.base;
        // The front page, or else the page that matters most.
        let front = self.pages.iter().find(|page| path_of(&page.url) == "/").or(self.pages.first());
        let href = |at: Timestamp| {
            front.map(|page| format!("{base}/web/{}/{}", at.to_digits14(), page.url)).unwrap_or_default()
        };
        let _ = write!(
            out,
            "<section><div class=\"sec\"><h2>Coherence over time</h2><p class=\"legend\">line: at least; tint: up to at most</p></div>{}\
             <p class=\"cap\">Share of the site, by weight, that belongs together if it is shown as of that instant. {} it is {:.0} to {:.0} %. A click opens the site then.</p></section>",
            curve(
                Axis { from: first.0, until: last.0 },
                &self.coherence,
                "Coherence of the site over time",
                href
            ),
            day_and_minute(last.0),
            100.0 * last.1,
            100.0 * last.2
        );
    }

    fn write_directories(&self, out: &mut String) {
        if self.directories.is_empty() {
            return;
        }
        let _ = write!(
            out,
            "<section><div class=\"sec\"><h2>Directories</h2><p class=\"legend\">share that changed in each of {}, and what follows for visits</p></div>\
             <table class=\"t vers tree\"><thead><tr><th scope=\"col\">Directory</th><th scope=\"col\">Pages</th><th scope=\"col\">Degree of change</th><th scope=\"col\">Rule</th></tr></thead><tbody>",
            counted(self.n_passes as u64, "pass", "passes")
        );
        for row in &self.directories {
            let depth = row.path.trim_matches('/').split('/').filter(|part| !part.is_empty()).count();
            let top = row.degrees.iter().copied().fold(0.0, f64::max);
            let n_changed = row.degrees.iter().filter(|degree| **degree > 0.0).count();
            let _ = write!(
                out,
                "<tr style=\"--deep:{}\"><td>{}</td><td data-l=\"Pages\">{}</td><td class=\"w\">{}<span class=\"small mute\">changed in {n_changed} of {}, up to {:.2}</span></td><td class=\"w\" data-l=\"Rule\">{}</td></tr>",
                depth.saturating_sub(1).min(6),
                isolated(&row.path),
                grouped(row.n_pages),
                small_bars(&row.degrees, "Share that changed in each pass"),
                row.degrees.len(),
                top,
                row.rule
                    .as_deref()
                    .map_or("<span class=\"mute\">none</span>".to_string(), |rule| escaped(rule).to_string())
            );
        }
        out.push_str("</tbody></table></section>");
    }

    fn write_pages(&self, out: &mut String) {
        let address = site_address(self.place.base, self.host);
        let _ = write!(
            out,
            "<section id=\"pages\"><div class=\"sec\"><h2>Pages</h2><p class=\"row\"><span class=\"seg\">{}</span></p></div>",
            match self.is_by_freshness {
                true => format!(
                    "<a href=\"{address}#pages\">By importance</a><span aria-current=\"true\">By freshness</span>"
                ),
                false => format!(
                    "<span aria-current=\"true\">By importance</span><a href=\"{address}?order=fresh#pages\">By freshness</a>"
                ),
            }
        );
        out.push_str(
            "<table class=\"t vers\"><thead><tr><th scope=\"col\">Page</th><th scope=\"col\">Important change</th><th scope=\"col\">Changes a day</th>\
             <th scope=\"col\">Captures</th><th scope=\"col\">Last seen</th></tr></thead><tbody>",
        );
        for page in self.pages.iter().take(MOST_PAGES) {
            let title = page.title.as_deref().filter(|title| !title.is_empty()).unwrap_or("no title");
            let status = page.status.filter(|status| !(200..300).contains(status) && *status != 304);
            let _ = write!(
                out,
                "<tr><td class=\"w\"><a href=\"{}\">{}</a><br><span class=\"small mute\">{}</span></td><td data-l=\"Important change\">{:.2}</td><td data-l=\"Changes a day\">{}</td><td data-l=\"Captures\">{}</td><td class=\"nowrap\">{}{}</td></tr>",
                escaped(&page_address(self.place.base, &page.url)),
                isolated(path_of(&page.url)),
                foreign(title),
                page.total,
                page.changes_per_day.map_or("-".to_string(), |rate| format!("{rate:.1}")),
                grouped(page.n_captures),
                time(page.last_seen),
                status.map(|status| format!(" <b>{status}</b>")).unwrap_or_default()
            );
        }
        out.push_str("</tbody></table>");
        if self.pages.len() > MOST_PAGES {
            let _ = write!(
                out,
                "<p class=\"more mute\">{MOST_PAGES} of {} are shown. <a href=\"{}/web/*/{}*\">All addresses</a></p>",
                grouped(self.pages.len() as u64),
                self.place.base,
                escaped(self.host)
            );
        }
        out.push_str("</section>");
    }

    fn write_feeds(&self, out: &mut String) {
        if self.feeds.is_empty() {
            return;
        }
        let _ = write!(
            out,
            "<section><div class=\"sec\"><h2>Feeds</h2><p><a href=\"{}/objects?site={}\">Articles and posts</a></p></div>",
            self.place.base,
            escape(self.host)
        );
        out.push_str("<table class=\"t vers\"><thead><tr><th scope=\"col\">Feed</th><th scope=\"col\">Items</th><th scope=\"col\">Lost between reads</th><th scope=\"col\">Last news</th><th scope=\"col\">Latest items</th></tr></thead><tbody>");
        for feed in &self.feeds {
            let _ = write!(
                out,
                "<tr><td class=\"w\"><a href=\"{}\">{}</a><br><span class=\"small mute\">{}</span></td><td data-l=\"Items\">{}</td><td data-l=\"Lost\">{}</td><td class=\"nowrap\" data-l=\"Last news\">{}</td><td class=\"w\">",
                escaped(&page_address(self.place.base, &feed.url)),
                isolated(path_of(&feed.url)),
                foreign(&feed.title),
                grouped(feed.n_items),
                if feed.n_gaps == 0 { "never".to_string() } else { counted(feed.n_gaps, "time", "times") },
                time(feed.last_read)
            );
            for (at, title, link) in &feed.latest {
                let title = match link {
                    Some(link) => {
                        format!(
                            "<a class=\"quiet\" href=\"{}\">{}</a>",
                            escaped(&page_address(self.place.base, link)),
                            foreign(title)
                        )
                    }
                    None => foreign(title).to_string(),
                };
                let _ = write!(
                    out,
                    "<p class=\"small\"><span class=\"mute\">{}</span> {title}</p>",
                    day_and_minute(*at)
                );
            }
            out.push_str("</td></tr>");
        }
        out.push_str("</tbody></table></section>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let page = |page: &PageRow| {
            json!({
                "url": page.url, "title": page.title, "importance": page.total, "n_captures": page.n_captures,
                "last_seen": page.last_seen.to_rfc3339(), "status": page.status, "changes_per_day": page.changes_per_day,
            })
        };
        json!({
            "host": self.host,
            "zone": self.zone,
            "n_pages": self.n_pages,
            "n_captures": self.n_captures,
            "n_changes": self.n_changes,
            "since": self.since.to_rfc3339(),
            "heat": self.heat,
            "completeness": self.completeness.map(|[least, likely, most]| json!({ "at_least": least, "likely": likely, "at_most": most })),
            "coherence": self.coherence.iter().map(|(at, least, most)| json!({
                "at": at.to_rfc3339(), "at_least": least, "at_most": most,
            })).collect::<Vec<_>>(),
            "directories": self.directories.iter().map(|row| json!({
                "path": row.path, "n_pages": row.n_pages, "degrees": row.degrees, "rule": row.rule,
            })).collect::<Vec<_>>(),
            "pages": self.pages.iter().map(page).collect::<Vec<_>>(),
            "followed": self.followed,
            "feeds": self.feeds.iter().map(|feed| json!({
                "url": feed.url, "title": feed.title, "n_items": feed.n_items, "n_gaps": feed.n_gaps, "last_read": feed.last_read.to_rfc3339(),
            })).collect::<Vec<_>>(),
        })
    }
}

/// One site in the list of all.
#[derive(Clone, Debug)]
pub struct SiteRow {
    /// Its host.
    pub host: String,
    /// Its captured addresses.
    pub n_pages: u64,
    /// Their captures.
    pub n_captures: u64,
    /// Completeness: least, likely, most.
    pub completeness: Option<[f64; 3]>,
    /// What is wrong with it.
    pub need: Option<String>,
}

/// The list of sites.
pub struct Sites<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The sites, largest first.
    pub rows: &'a [SiteRow],
    /// When it was reckoned.
    pub made: Option<Timestamp>,
    /// What the user follows.
    pub followed: &'a [&'a Seed],
}

impl Sites<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let n = self.rows.len() as u64;
        let mut main = format!(
            "<div class=\"head\"><div><h1>{}</h1><p class=\"lead\">Largest first{}.</p></div></div>",
            counted(n, "site", "sites"),
            self.made.map(|made| format!(", as of {}", short(made))).unwrap_or_default()
        );
        if self.rows.is_empty() {
            let (title, text) = match self.followed.is_empty() {
                true => (
                    "Nothing is followed yet",
                    "Name a site and Perennial visits it, politely, for as long as it is let.",
                ),
                false => ("Nothing was captured yet", "A crawl visits what is followed below."),
            };
            let command = if self.followed.is_empty() {
                "perennial run https://example.org/"
            } else {
                "perennial crawl"
            };
            main.push_str(&empty(title, text, Some(command)));
        } else {
            self.write_rows(&mut main);
        }
        write_followed(&mut main, self.place, self.followed);
        let json = Some("/api/sites");
        Framed { place: self.place, tab: Tab::Sites, title: "Sites", query: "", json }.html(&main)
    }

    fn write_rows(&self, out: &mut String) {
        out.push_str("<table class=\"t vers\"><thead><tr><th scope=\"col\">Site</th><th scope=\"col\">Addresses</th><th scope=\"col\">Captures</th><th scope=\"col\">Completeness, likely</th><th scope=\"col\">Needs you</th></tr></thead><tbody>");
        for row in self.rows.iter().take(MOST_SITES) {
            let completeness =
                row.completeness.map_or("not known yet".to_string(), |[least, likely, most]| {
                    format!(
                        "{:.0} % <span class=\"mute\">({:.0} to {:.0})</span>",
                        100.0 * likely,
                        100.0 * least,
                        100.0 * most
                    )
                });
            let _ = write!(
                out,
                "<tr><td class=\"w\"><a href=\"{}\">{}</a></td><td data-l=\"Addresses\">{}</td><td data-l=\"Captures\">{}</td><td class=\"w\" data-l=\"Completeness, likely\">{completeness}</td><td class=\"w\" data-l=\"Needs you\">{}</td></tr>",
                escaped(&site_address(self.place.base, &row.host)),
                isolated(&row.host),
                grouped(row.n_pages),
                grouped(row.n_captures),
                row.need
                    .as_deref()
                    .map_or("<span class=\"mute\">nothing</span>".to_string(), |need| escaped(need)
                        .to_string())
            );
        }
        out.push_str("</tbody></table>");
        if self.rows.len() > MOST_SITES {
            let _ = write!(out, "<p class=\"more mute\">{MOST_SITES} of {} are shown.</p>", self.rows.len());
        }
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let row = |row: &SiteRow| {
            json!({
                "host": row.host,
                "n_pages": row.n_pages,
                "n_captures": row.n_captures,
                "completeness": row.completeness.map(|[least, likely, most]| json!({ "at_least": least, "likely": likely, "at_most": most })),
                "need": row.need,
            })
        };
        json!({ "sites": self.rows.iter().map(row).collect::<Vec<_>>(), "followed": self.followed })
    }
}
