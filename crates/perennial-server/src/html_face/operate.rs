//! What may be done from the pages: buttons and forms, the settings of the sites that are followed, what was done, the way to begin.
//!
//! Each form is a POST with the token of the reader's session. Who has none sees what is so, and how to get one.

use std::fmt::Write;

use perennial_core::schedule::Goal;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::parts::empty;
use super::{Framed, Place, Tab, short, site_address};
use perennial_archive::settings::Seed;
use perennial_archive::store::site_of;
use perennial_engine::html::dates::counted;
use perennial_engine::operate::log::ActLine;

/// Whether the reader of a page may act.
#[derive(Clone, Copy, Debug, Default)]
pub enum Operating<'a> {
    /// Nobody may.
    #[default]
    Off,
    /// Who logs in may.
    LoggedOut,
    /// With this token in each form.
    On(&'a str),
}

/// Sites with their settings on one page.
const MOST_FOLLOWED: usize = 500;

/// A button that does one thing. Nothing where the reader may not act.
pub(super) fn button(
    place: Place<'_>,
    act: &str,
    fields: &[(&str, &str)],
    label: &str,
    back: &str,
) -> String {
    match form(place, act, fields, back) {
        Some(start) => format!("{start}<button>{label}</button></form>"),
        None => String::new(),
    }
}

/// The beginning of a form: everything but its visible fields and its button.
fn form(place: Place<'_>, act: &str, fields: &[(&str, &str)], back: &str) -> Option<String> {
    let Operating::On(token) = place.operating else { return None };
    let mut out = format!("<form class=\"do\" method=\"post\" action=\"{}/operate\">", place.base);
    for (name, value) in [("form", token), ("act", act), ("back", back)].iter().chain(fields) {
        // Writing into a string cannot fail, here and below.
        let _ = write!(out, "<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escaped(value));
    }
    Some(out)
}

/// Why nothing can be done here, and the cure; nothing where something can.
pub(super) fn write_how(out: &mut String, place: Place<'_>) {
    match place.operating {
        Operating::On(_) => {}
        Operating::LoggedOut => {
            let _ = write!(
                out,
                "<p class=\"mute how\">You read. <a href=\"{}/login\">Log in as operator</a> to change what is followed.</p>",
                place.base
            );
        }
        Operating::Off => out.push_str(
            "<p class=\"mute how\">This server only reads. Started with <code>perennial serve --operate</code> it lets you change what is followed \
             from here; <code>perennial add</code>, <code>pause</code> and <code>set</code> always do.</p>",
        ),
    }
}

fn goals(chosen: Option<Goal>) -> String {
    let option = |name: &str, label: &str| {
        let selected = if chosen.map(Goal::name).unwrap_or_default() == name { " selected" } else { "" };
        format!("<option value=\"{name}\"{selected}>{label}</option>")
    };
    let all = [Goal::Balanced, Goal::Importance, Goal::EveryPage, Goal::Coherent, Goal::Count];
    let named: String = all.iter().map(|goal| option(goal.name(), goal.name())).collect();
    format!("{}{named}", option("", "as the crawl"))
}

/// What is set for a site, in words.
fn in_words(seed: &Seed) -> String {
    let budget = seed.allowance.visits.map(perennial_core::schedule::amounts::write_budget);
    let mut words = format!(
        "scope {}, weight {}, {}",
        seed.scope.kind,
        seed.weight,
        budget.map_or("no budget of its own".to_owned(), |budget| format!("budget {budget}"))
    );
    if let Some(goal) = seed.goal {
        let _ = write!(words, ", goal {}", goal.name());
    }
    for (what, selectors) in [
        ("pinned", seed.parts.pinned().iter().map(|part| part.selector.to_string()).collect::<Vec<_>>()),
        ("ignored", seed.parts.ignored().iter().map(ToString::to_string).collect()),
    ] {
        if !selectors.is_empty() {
            let _ = write!(words, ", {what} {}", selectors.join(" and "));
        }
    }
    words
}

/// One site that is followed: what is set, and the forms that change it.
fn write_site(out: &mut String, place: Place<'_>, seed: &Seed, back: &str) {
    let url = seed.scope.seed.as_str();
    let state = if seed.paused { " <span class=\"state maybe\">paused</span>" } else { "" };
    let _ = write!(
        out,
        "<div class=\"followed\"><div><p><a class=\"quiet\" href=\"{}\"><b>{}</b></a>{state}</p><p class=\"mute\">{}.</p></div>",
        escaped(&site_address(place.base, &site_of(url))),
        isolated(url),
        isolated(&in_words(seed))
    );
    let this = [("url", url)];
    if let Some(start) = form(place, "set", &this, back) {
        let toggle = if seed.paused { ("resume", "Resume") } else { ("pause", "Pause") };
        let budget =
            seed.allowance.visits.map(perennial_core::schedule::amounts::write_budget).unwrap_or_default();
        let _ = write!(
            out,
            "<div class=\"row\">{}<details><summary class=\"btn\">Change</summary><div class=\"fields\">{start}\
             <label>Weight <input type=\"text\" name=\"weight\" value=\"{}\" size=\"5\" inputmode=\"decimal\"></label>\
             <label>Budget <input type=\"text\" name=\"budget\" value=\"{}\" size=\"8\" placeholder=\"100/1h\"></label>\
             <label>Goal <select name=\"goal\">{}</select></label><button>Save</button></form>{}</div></details></div>",
            button(place, toggle.0, &this, toggle.1, back),
            seed.weight,
            escaped(&budget),
            goals(seed.goal),
            form(place, "remove", &this, back)
                .map(|start| format!(
                    "{start}<button class=\"harm\">Stop following</button> <span class=\"mute small\">What is archived stays.</span></form>"
                ))
                .unwrap_or_default()
        );
        write_parts(out, place, seed, back);
    }
    out.push_str("</div>");
}

/// The parts that are pinned or ignored, each with a button that takes it back.
fn write_parts(out: &mut String, place: Place<'_>, seed: &Seed, back: &str) {
    let url = seed.scope.seed.as_str();
    let pinned = seed.parts.pinned().iter().map(|part| ("Pinned", &part.selector));
    let all = pinned.chain(seed.parts.ignored().iter().map(|selector| ("Ignored", selector)));
    for (what, selector) in all {
        let text = selector.to_string();
        let _ = write!(
            out,
            "<div class=\"row part\"><span>{what} <code>{}</code></span>{}</div>",
            isolated(&text),
            button(place, "release", &[("url", url), ("selector", &text)], "Take back", back)
        );
    }
}

/// The sites that are followed on a host, with what can be done to them; nothing where none is.
pub(super) fn write_followed_of(out: &mut String, place: Place<'_>, seeds: &[&Seed], back: &str) {
    if seeds.is_empty() {
        return;
    }
    out.push_str("<section id=\"settings\"><div class=\"sec\"><h2>Followed</h2></div>");
    write_how(out, place);
    seeds.iter().for_each(|seed| write_site(out, place, seed, back));
    out.push_str("</section>");
}

/// All sites that are followed, and the form that adds one.
pub(super) fn write_followed(out: &mut String, place: Place<'_>, seeds: &[&Seed]) {
    let n_paused = seeds.iter().filter(|seed| seed.paused).count();
    let paused = if n_paused > 0 { format!(", {n_paused} paused") } else { String::new() };
    let back = format!("{}/sites", place.base);
    let _ = write!(
        out,
        "<section id=\"settings\"><div class=\"sec\"><h2>{}{paused}</h2><p class=\"legend\"><a href=\"{}/acts\">Who changed what</a></p></div>",
        counted(seeds.len() as u64, "site is followed", "sites are followed"),
        place.base
    );
    if let Some(start) = form(place, "add", &[], &back) {
        let _ = write!(
            out,
            "<div class=\"fields add\">{start}<label>Address <input type=\"text\" name=\"url\" size=\"32\" placeholder=\"https://example.org/\" required></label>\
             <label>Scope <select name=\"scope\"><option value=\"host\">its host</option><option value=\"prefix\">below its last slash</option>\
             <option value=\"page\">the page alone</option><option value=\"domain\">its host and all below</option></select></label>\
             <label>Weight <input type=\"text\" name=\"weight\" value=\"1\" size=\"5\" inputmode=\"decimal\"></label>\
             <label>Budget <input type=\"text\" name=\"budget\" size=\"8\" placeholder=\"100/1h\"></label>\
             <label>Goal <select name=\"goal\">{}</select></label><button class=\"btn go\">Follow</button></form></div>",
            goals(None)
        );
    }
    write_how(out, place);
    seeds.iter().take(MOST_FOLLOWED).for_each(|seed| write_site(out, place, seed, &back));
    if seeds.len() > MOST_FOLLOWED {
        let _ = write!(out, "<p class=\"more mute\">{MOST_FOLLOWED} of {} are shown.</p>", seeds.len());
    }
    out.push_str("</section>");
}

/// What people did, the latest first.
pub struct ActsPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The acts that are shown.
    pub acts: &'a [ActLine],
    /// How many there are.
    pub n_acts: usize,
}

impl ActsPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let base = self.place.base;
        let mut main = format!(
            "<p class=\"crumbs\"><a href=\"{base}/sites\">sites</a> / acts</p><div class=\"head\"><div><h1>{}</h1>\
             <p class=\"lead\">Who added, removed, paused or changed what is followed, the latest first. <code>perennial log --acts</code> says the same.</p></div>{}</div>",
            match self.n_acts as u64 {
                0 => "Nobody changed anything yet".to_owned(),
                n => counted(n, "act", "acts"),
            },
            self.log_out()
        );
        if self.acts.is_empty() {
            main.push_str(&empty(
                "No act is in the log",
                "Acts are told from the first one on that this version of the program performs.",
                Some("perennial pause example.org"),
            ));
        } else {
            self.write_rows(&mut main);
        }
        let json = Some("/api/acts");
        Framed { place: self.place, tab: Tab::Sites, title: "Acts", query: "", json }.html(&main)
    }

    fn log_out(&self) -> String {
        let Operating::On(token) = self.place.operating else { return String::new() };
        format!(
            "<form class=\"do\" method=\"post\" action=\"/logout\"><input type=\"hidden\" name=\"form\" value=\"{}\"><button>Log out</button></form>",
            escaped(token)
        )
    }

    fn write_rows(&self, out: &mut String) {
        out.push_str("<table class=\"t vers\"><thead><tr><th scope=\"col\">When</th><th scope=\"col\">What</th><th scope=\"col\">Where</th><th scope=\"col\">Now set</th><th scope=\"col\">Who</th></tr></thead><tbody>");
        for act in self.acts {
            let time = Timestamp::parse(&act.time).map(short).unwrap_or_default();
            let _ = write!(
                out,
                "<tr><td class=\"nowrap\"><time datetime=\"{}\">{time}</time></td><td data-l=\"What\">{}</td><td class=\"w\">{}</td><td class=\"w\">{}</td><td class=\"w\">{}</td></tr>",
                escaped(&act.time),
                escaped(&act.act),
                isolated(&act.url),
                isolated(&act.detail),
                isolated(&act.who)
            );
        }
        out.push_str("</tbody></table>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({ "n_acts": self.n_acts, "acts": self.acts })
    }
}

/// The page on which a session begins. A key that the address brings is in its form already.
pub fn login(place: Place<'_>, key: Option<&str>) -> String {
    let field = match key {
        Some(key) => format!("<input type=\"hidden\" name=\"key\" value=\"{}\">", escaped(key)),
        None => "<label>Key or operator's token <input type=\"password\" name=\"key\" size=\"32\" autocomplete=\"off\" required></label>".to_owned(),
    };
    let main = match place.operating {
        Operating::Off => {
            let how =
                "Started otherwise it prints a key, with which this browser may change what is followed.";
            format!(
                "<div class=\"head\"><div><h1>This server only reads</h1></div></div>{}",
                empty("Nobody can act here", how, Some("perennial serve --operate"))
            )
        }
        Operating::On(_) => format!(
            "<div class=\"head\"><div><h1>This browser may act</h1><p class=\"lead\">Add, pause and change sites on <a href=\"{}/sites\">Sites</a>.</p></div></div>",
            place.base
        ),
        Operating::LoggedOut => format!(
            "<div class=\"head\"><div><h1>Let this browser change what is followed?</h1><p class=\"lead\">The session ends after twelve hours without use, when you log \
             out, or with the server. A printed key begins one session.</p></div></div><div class=\"fields\"><form class=\"do\" method=\"post\" action=\"/login\">{field}\
             <button class=\"btn go\">Begin</button></form></div>"
        ),
    };
    Framed { place, tab: Tab::Other, title: "Log in", query: "", json: None }.html(&main)
}
