//! The plan -> visits with their reasons, or why one page is visited when it is and not earlier.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::parts::empty;
use super::{Framed, Place, Tab, page_address, short, without_scheme};
use perennial_engine::html::dates::{counted, day_and_minute, day_long, minute};
use perennial_engine::learn::NextVisit;

/// Why a page is visited when it is.
#[derive(Clone, Debug)]
pub struct WhyPage {
    /// Its address.
    pub url: String,
    /// The answer in one sentence.
    pub answer: String,
    /// What it follows from, one sentence each.
    pub because: Vec<String>,
    /// When it was last visited.
    pub last_visit: Option<Timestamp>,
    /// Its next visit, where the plan has one.
    pub next: Option<NextVisit>,
}

/// The page about the schedule.
pub struct ScheduleView<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// When the plan was made; `None` while it is being made.
    pub made: Option<Timestamp>,
    /// Where the plan begins.
    pub at: Timestamp,
    /// Whether a process writes the archive.
    pub is_running: bool,
    /// The budget in words.
    pub pace: String,
    /// Only this site.
    pub site: &'a str,
    /// The address that was asked for.
    pub url: &'a str,
    /// The answer to that.
    pub why: Option<WhyPage>,
    /// The next visits.
    pub visits: Vec<NextVisit>,
    /// Pages that are followed.
    pub n_followed: u64,
    /// Addresses without a page.
    pub n_probes: u64,
    /// Sites that are paused.
    pub n_paused: u64,
}

impl ScheduleView<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let mut main = String::new();
        self.write_head(&mut main);
        if let Some(why) = &self.why {
            self.write_why(&mut main, why);
        }
        self.write_visits(&mut main);
        let json = format!("/api/schedule?site={}&url={}", escape(self.site), escape(self.url));
        Framed { place: self.place, tab: Tab::Schedule, title: "Schedule", query: "", json: Some(&json) }
            .html(&main)
    }

    fn write_head(&self, out: &mut String) {
        let first =
            self.visits.iter().find_map(|visit| visit.at.as_deref()).and_then(|at| Timestamp::parse(at).ok());
        let title = match first {
            Some(first) => format!("The next visit is due {}", day_and_minute(first)),
            None if self.made.is_none() => "The plan is being made".to_string(),
            None => "No visit is planned".to_string(),
        };
        let state = match self.is_running {
            true => "A process writes the archive: what it finds changes this plan.".to_string(),
            false => {
                format!("No crawl is running. This is the plan of one that goes on at {}.", short(self.at))
            }
        };
        let paused = match self.n_paused {
            0 => String::new(),
            n => {
                format!(" {}: no visit of them is planned.", counted(n, "site is paused", "sites are paused"))
            }
        };
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<div class=\"head\"><div><h1>{title}</h1><p class=\"lead\">{}, {}, {} without a page looked at now and then. {state}{paused}</p></div></div>\
             <form class=\"filters\" action=\"{}/schedule\" aria-label=\"Filter\"><label class=\"long\">Why is this page not visited? <input type=\"text\" inputmode=\"url\" name=\"url\" size=\"40\" value=\"{}\" placeholder=\"https://example.org/\"></label>\
             <label>Site <input type=\"text\" name=\"site\" size=\"20\" value=\"{}\" placeholder=\"all\"></label><button class=\"btn go\">Show</button></form>",
            counted(self.n_followed, "page", "pages"),
            escaped(&self.pace),
            counted(self.n_probes, "address", "addresses"),
            self.place.base,
            escaped(self.url),
            escaped(self.site)
        );
    }

    fn write_why(&self, out: &mut String, why: &WhyPage) {
        let _ = write!(
            out,
            "<section><div class=\"sec\"><h2><a class=\"quiet\" href=\"{}\">{}</a></h2></div><p><b>{}</b></p><dl class=\"belief\">",
            escaped(&page_address(self.place.base, &why.url)),
            isolated(without_scheme(&why.url)),
            isolated(&why.answer)
        );
        for (number, sentence) in why.because.iter().enumerate() {
            let name = if number == 0 { "Because" } else { "" };
            let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", isolated(sentence));
        }
        out.push_str("</dl></section>");
    }

    fn write_visits(&self, out: &mut String) {
        out.push_str("<section><div class=\"sec\"><h2>Next visits</h2><p class=\"legend\">times of the plan: politeness, a slow host and what is found until then may delay them</p></div>");
        if self.visits.is_empty() {
            let (title, text, command) = match (self.made, self.site) {
                (None, _) => {
                    ("The plan is being made", "It is learned from all captures. Reload in a moment.", None)
                }
                (Some(_), "") => (
                    "Nothing to do",
                    "No page is followed. Name a site and Perennial visits it, politely, for as long as it is let.",
                    Some("perennial add https://example.org/"),
                ),
                _ => (
                    "No visit of this site within the plan",
                    "Its pages come later, or none of them is followed.",
                    None,
                ),
            };
            out.push_str(&empty(title, text, command));
            out.push_str("</section>");
            return;
        }
        out.push_str("<table class=\"t vers\"><thead><tr><th scope=\"col\">When</th><th scope=\"col\">Page and reason</th><th scope=\"col\">Chance of change</th><th scope=\"col\">Importance expected</th></tr></thead><tbody>");
        let mut day = String::new();
        for visit in &self.visits {
            self.write_visit(out, visit, &mut day);
        }
        out.push_str("</tbody></table></section>");
    }

    fn write_visit(&self, out: &mut String, visit: &NextVisit, day: &mut String) {
        let at = visit.at.as_deref().and_then(|at| Timestamp::parse(at).ok());
        let of = at.map_or("Later than the plan reaches".to_string(), day_long);
        if of != *day {
            let _ = write!(out, "<tr class=\"day\"><th colspan=\"4\" scope=\"colgroup\">{of}</th></tr>");
            *day = of;
        }
        let chance = 100.0 * -(-f64::from(visit.expected_changes)).exp_m1();
        let (chance, worth) = match visit.n_visits == 0 || visit.feed || visit.probe {
            true => ("-".to_string(), "-".to_string()),
            false => (format!("{chance:.0} %"), format!("{:.3}", visit.expected_importance)),
        };
        let _ = write!(
            out,
            "<tr><td class=\"nowrap\">{}</td><td class=\"w\"><a href=\"{}\">{}</a><br><span class=\"small mute\">{}</span></td><td data-l=\"Chance of change\">{chance}</td><td data-l=\"Importance\">{worth}</td></tr>",
            at.map_or("later".to_string(), minute),
            escaped(&page_address(self.place.base, &visit.url)),
            isolated(without_scheme(&visit.url)),
            isolated(&visit.reason)
        );
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let why = self.why.as_ref().map(|why| {
            json!({
                "url": why.url,
                "answer": why.answer,
                "because": why.because,
                "last_visit": why.last_visit.map(Timestamp::to_rfc3339),
                "next": why.next,
            })
        });
        json!({
            "made": self.made.map(Timestamp::to_rfc3339),
            "at": self.at.to_rfc3339(),
            "is_running": self.is_running,
            "budget": self.pace,
            "n_followed": self.n_followed,
            "n_probes": self.n_probes,
            "n_paused": self.n_paused,
            "why": why,
            "visits": self.visits,
        })
    }
}
