//! A part of a site's pages and what it would have changed -> the page on which it is pinned or ignored.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::operate::{button, write_how};
use super::parts::empty;
use super::{Framed, Place, Tab, host_of, page_address, path_of, short, site_address};
use perennial_engine::analyse::PartEffect;
use perennial_engine::html::dates::counted;

/// The page on which a part is pinned.
pub struct PinPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// A page that has the part.
    pub url: &'a str,
    /// The site that the pin is written for.
    pub site: &'a str,
    /// `pin` or `ignore`.
    pub act: &'a str,
    /// The part; empty where none is named yet.
    pub selector: &'a str,
    /// Its share of the importance, as it was written; empty for the usual one.
    pub importance: &'a str,
    /// What is wrong with what was written.
    pub problem: Option<&'a str>,
    /// What it would have changed.
    pub effect: Option<&'a PartEffect>,
}

impl PinPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let base = self.place.base;
        let mut main = format!(
            "<p class=\"crumbs\"><a href=\"{}\">{}</a> / <a href=\"{}\">{}</a></p><div class=\"head\"><div><h1>{}</h1><p class=\"lead\">{}</p></div></div>",
            escaped(&site_address(base, host_of(self.site))),
            isolated(host_of(self.site)),
            escaped(&page_address(base, self.url)),
            isolated(path_of(self.url)),
            self.heading(),
            self.lead()
        );
        self.write_form(&mut main);
        if let Some(effect) = self.effect {
            self.write_effect(&mut main, effect);
        }
        let json = format!(
            "/api/pin?url={}&act={}&selector={}&importance={}",
            escape(self.url),
            self.act,
            escape(self.selector),
            escape(self.importance)
        );
        let json = self.effect.map(|_| json.as_str());
        Framed { place: self.place, tab: Tab::Sites, title: "Pin a part", query: "", json }.html(&main)
    }

    fn heading(&self) -> String {
        match self.effect {
            Some(effect) => format!(
                "{} of {} would have had another importance",
                effect.n_other,
                counted(effect.n_changes as u64, "edit", "edits")
            ),
            None => "Which part counts most, or not at all?".to_owned(),
        }
    }

    fn lead(&self) -> String {
        let Some(effect) = self.effect else {
            return "A part is named by a CSS selector: a tag, <code>#id</code>, <code>.class</code>, joined by a space or <code>&gt;</code>. Nothing is written \
                    before you have seen what it would have changed."
                .to_owned();
        };
        let fate = if self.act == "ignore" { "ignored" } else { "pinned" };
        format!(
            "The last 30 days of {}, with <code>{}</code> {fate}: {} touched it, {} of them nothing else. All together they were worth {:.2} and would have been worth about {:.2}.{}{}",
            isolated(self.site),
            isolated(self.selector),
            counted(effect.n_touching as u64, "edit", "edits"),
            effect.n_inside,
            effect.importance,
            effect.importance_then,
            if effect.n_unread > 0 {
                format!(" {} more cannot be read as HTML.", effect.n_unread)
            } else {
                String::new()
            },
            if effect.is_cut {
                " Only the latest were looked at: <code>perennial pin --dry-run</code> looks at all."
            } else {
                ""
            }
        )
    }

    /// What is asked. A GET: it only shows.
    fn write_form(&self, out: &mut String) {
        let checked = |act: &str| if self.act == act { " checked" } else { "" };
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            out,
            "<div class=\"fields\"><form class=\"do\" action=\"{}/pin\"><input type=\"hidden\" name=\"url\" value=\"{}\">\
             <label>Part <input type=\"text\" name=\"selector\" value=\"{}\" size=\"36\" placeholder=\"#headlines\" required></label>\
             <label class=\"sw\"><input type=\"radio\" name=\"act\" value=\"pin\"{}> counts most</label>\
             <label class=\"sw\"><input type=\"radio\" name=\"act\" value=\"ignore\"{}> is ignored</label>\
             <label>Share, if pinned <input type=\"text\" name=\"importance\" value=\"{}\" size=\"5\" placeholder=\"0.9\" inputmode=\"decimal\"></label>\
             <button>Show what it changes</button></form></div>",
            self.place.base,
            escaped(self.url),
            escaped(self.selector),
            checked("pin"),
            checked("ignore"),
            escaped(self.importance)
        );
        if let Some(problem) = self.problem {
            let _ = write!(out, "<p class=\"alert\"><b>{}</b></p>", isolated(problem));
        }
    }

    fn write_effect(&self, out: &mut String, effect: &PartEffect) {
        out.push_str("<section><div class=\"sec\"><h2>The strongest</h2><p class=\"legend\">importance as it was, and about as it would have been</p></div>");
        if effect.strongest.is_empty() {
            let text = match effect.n_changes {
                0 => "No page of the site was edited in the last 30 days.",
                _ => {
                    "None of the edits would have been worth more or less. The selector may name nothing on these pages."
                }
            };
            out.push_str(&empty("Nothing would have changed", text, None));
        } else {
            self.write_strongest(out, effect);
        }
        let back = site_address(self.place.base, host_of(self.site));
        let fields = [("url", self.site), ("selector", self.selector), ("importance", self.importance)];
        let label = if self.act == "ignore" { "Ignore it" } else { "Pin it" };
        let act = button(self.place, self.act, &fields, label, &back)
            .replace("<button>", "<button class=\"btn go\">");
        let _ = write!(out, "<div class=\"row\" style=\"margin-top:16px\">{act}</div>");
        if !act.is_empty() {
            out.push_str("<p class=\"mute how\">It holds from the next capture of each page on. The page of the site takes it back.</p>");
        }
        write_how(out, self.place);
        out.push_str("</section>");
    }

    fn write_strongest(&self, out: &mut String, effect: &PartEffect) {
        out.push_str("<table class=\"t vers\"><thead><tr><th scope=\"col\">Page</th><th scope=\"col\">Was</th><th scope=\"col\">Would be</th><th scope=\"col\">Seen</th><th scope=\"col\"></th></tr></thead><tbody>");
        for other in &effect.strongest {
            let at = Timestamp::parse(&other.time).ok();
            let before = other.before.as_deref().and_then(|before| Timestamp::parse(before).ok());
            let compare = before.zip(at).map(|(before, after)| {
                let address = format!(
                    "{}/web/diff/{}/{}/{}",
                    self.place.base,
                    before.to_digits14(),
                    after.to_digits14(),
                    other.url
                );
                format!("<a href=\"{}\">Compare</a>", escaped(&address))
            });
            let _ = write!(
                out,
                "<tr><td class=\"w\"><a href=\"{}\">{}</a></td><td data-l=\"Was\">{:.2}</td><td data-l=\"Would be\"><b>{:.2}</b></td><td class=\"nowrap\">{}</td><td>{}</td></tr>",
                escaped(&page_address(self.place.base, &other.url)),
                isolated(path_of(&other.url)),
                other.importance,
                other.importance_then,
                at.map(short).unwrap_or_default(),
                compare.unwrap_or_default()
            );
        }
        out.push_str("</tbody></table>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({ "url": self.url, "site": self.site, "act": self.act, "selector": self.selector, "effect": self.effect })
    }
}
