//! Two versions of a page among all others -> what stands around the diff view: the way to the page, the comparisons beside this one,
//! and a slider over all versions.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::Timestamp;

use super::super::diff::{self, Around};
use super::{Framed, Place, Tab, host_of, page_address, path_of, short, site_address};
use perennial_engine::html::chart::stretched::{Axis, Mark, strip};
use perennial_engine::html::dates::{counted, day_short, minute};

/// A version on the slider.
#[derive(Clone, Copy, Debug)]
pub struct ComparedVersion {
    /// When it was seen first.
    pub time: Timestamp,
    /// The look before.
    pub before: Option<Timestamp>,
    /// Importance of its change.
    pub importance: f64,
    /// Whether it is kept in the index.
    pub is_indexed: bool,
    /// Whether it differs by noise only, or not at all.
    pub is_noise: bool,
}

/// What stands around a comparison.
#[derive(Clone, Debug)]
pub struct ComparePage<'a> {
    /// Of which archive.
    pub place: Place<'a>,
    /// The page.
    pub url: &'a str,
    /// The two that are compared.
    pub before: Timestamp,
    /// The later one.
    pub after: Timestamp,
    /// From which importance on versions are kept in the index.
    pub threshold: f64,
    /// Its versions in time, those that are drawn.
    pub versions: &'a [ComparedVersion],
    /// How many there are.
    pub n_versions: u64,
    /// The change before this one, the one after it, and the next important one: each as two versions.
    pub beside: [Option<ComparedVersion>; 3],
}

impl ComparePage<'_> {
    /// The parts that the diff view puts around its own.
    pub fn around(&self) -> Around {
        Around {
            crumbs: self.crumbs(),
            threshold: self.threshold,
            steps: self.steps(),
            slider: self.slider(),
        }
    }

    /// The whole page around the diff component.
    pub fn html(&self, body: &str) -> String {
        let main = format!("<style>{}</style>{body}<script>{}</script>", diff::STYLE, diff::SCRIPT);
        let (before, after) = (self.before.to_digits14(), self.after.to_digits14());
        let json = format!("/api/diff?before={before}&after={after}&url={}", escape(self.url));
        let frame = Framed {
            place: self.place,
            tab: Tab::Changes,
            title: &format!("Changes of {}", host_of(self.url)),
            query: "",
            json: Some(&json),
        };
        frame.html(&main)
    }

    fn crumbs(&self) -> String {
        let Place { name, base, .. } = self.place;
        format!(
            "<p class=\"crumbs\"><a href=\"{base}/\">{}</a> / <a href=\"{}\">{}</a> / <a href=\"{}\">{}</a></p>",
            escaped(name),
            escaped(&site_address(base, host_of(self.url))),
            isolated(host_of(self.url)),
            escaped(&page_address(base, self.url)),
            isolated(&super::cut(path_of(self.url)))
        )
    }

    /// The comparison of a version with the look before it.
    fn address(&self, version: &ComparedVersion) -> Option<String> {
        let (before, after) = (version.before?.to_digits14(), version.time.to_digits14());
        Some(format!("{}/web/diff/{before}/{after}/{}", self.place.base, self.url))
    }

    fn steps(&self) -> String {
        let mut out = String::from("<p class=\"row\">");
        let [earlier, later, important] = &self.beside;
        let step = |version: &Option<ComparedVersion>| {
            version.as_ref().and_then(|version| Some((self.address(version)?, version.importance)))
        };
        if let Some((address, _)) = step(earlier) {
            let _ = write!(
                out,
                "<a class=\"btn\" rel=\"prev\" href=\"{}\"><span aria-hidden=\"true\">‹</span> Earlier</a>",
                escaped(&address)
            );
        }
        if let Some((address, _)) = step(later) {
            let _ = write!(
                out,
                "<a class=\"btn\" rel=\"next\" href=\"{}\">Later <span aria-hidden=\"true\">›</span></a>",
                escaped(&address)
            );
        }
        if let Some((address, importance)) = step(important) {
            let _ = write!(
                out,
                "<a class=\"btn\" href=\"{}\">Next important {importance:.2}</a>",
                escaped(&address)
            );
        }
        out + "</p>"
    }

    /// The versions on a scale of time, with two handles under them. Without a script the button goes to the versions that are closest
    /// to the handles.
    fn slider(&self) -> String {
        let (Some(first), Some(last)) = (self.versions.first(), self.versions.last()) else {
            return String::new();
        };
        let axis = Axis { from: first.time.min(self.before), until: last.time.max(self.after) };
        if axis.from == axis.until {
            return String::new();
        }
        let marks: Vec<Mark> = self
            .versions
            .iter()
            .filter(|version| !version.is_noise)
            .filter_map(|version| {
                Some(Mark {
                    time: version.time,
                    importance: version.importance,
                    is_indexed: version.is_indexed,
                    href: self.address(version)?,
                    title: format!("{}, importance {:.2}", short(version.time), version.importance),
                })
            })
            .collect();
        let noise: Vec<Timestamp> =
            self.versions.iter().filter(|version| version.is_noise).map(|version| version.time).collect();
        let label = format!(
            "{} of the page; compared are {} and {}",
            counted(self.n_versions, "capture", "captures"),
            short(self.before),
            short(self.after)
        );
        let mut times: Vec<i64> = self.versions.iter().map(|version| version.time.as_secs()).collect();
        times.extend([self.before.as_secs(), self.after.as_secs()]);
        times.sort_unstable();
        times.dedup();
        let times = times.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        let mut out = format!(
            "<form class=\"pd-slider\" action=\"{}/web/changes\" data-times=\"{times}\">{}<input type=\"hidden\" name=\"url\" value=\"{}\"><div class=\"track\">",
            self.place.base,
            strip(axis, &marks, &noise, (self.before, self.after), &label),
            escaped(self.url)
        );
        let chosen = [("before", "Before", self.before), ("after", "After", self.after)];
        for (name, label, time) in chosen {
            let _ = write!(
                out,
                "<input type=\"range\" name=\"{name}\" min=\"{}\" max=\"{}\" value=\"{}\" aria-label=\"{label}\" aria-valuetext=\"{}\">",
                axis.from.as_secs(),
                axis.until.as_secs(),
                time.as_secs(),
                short(time)
            );
        }
        out.push_str("</div><p class=\"chosen\">");
        for (name, label, time) in chosen {
            let _ = write!(
                out,
                "<span>{label} <b data-of=\"{name}\">{} {}</b></span>",
                day_short(time),
                minute(time)
            );
        }
        out + "<button>Compare these</button></p></form>"
    }
}
