//! Who is told of changes, and a choice of changes -> a page that says how to be told of them.

use std::fmt::Write;

use perennial_core::memento::address::escape;
use perennial_core::text::markup::{escaped, isolated};
use serde_json::{Value, json};

use super::parts::empty;
use super::{Framed, Place, Tab};
use perennial_engine::html::dates::{counted, grouped};

/// A rule by which somebody is told. Where its notices go is said without the secret that an address may hold.
#[derive(Clone, Debug)]
pub struct RuleLine {
    /// Its name.
    pub name: String,
    /// By what it tells: webhook, Slack, a program.
    pub kind: &'static str,
    /// Notices that were sent and that wait; `None` before it has begun.
    pub sent: Option<(u64, u64)>,
    /// When the last one was sent.
    pub last_sent: Option<String>,
    /// Why the last one was not taken.
    pub error: Option<String>,
}

/// The page about notices.
#[derive(Clone, Debug)]
pub struct NoticesPage<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// Only changes of this site, by its host, or of this page, by its address.
    pub of: Option<&'a str>,
    /// Only changes that matter at least so much.
    pub least: Option<f64>,
    /// The rules that there are.
    pub rules: &'a [RuleLine],
}

/// Where somebody learns how to be told of these changes.
pub(super) fn notices_address(base: &str, of: Option<&str>, least: Option<f64>) -> String {
    format!("{base}/notices?{}", choice(of, least))
}

/// The choice as a query. The feed of changes takes the same.
fn choice(of: Option<&str>, least: Option<f64>) -> String {
    let of = of.map(|of| format!("place={}", escape(of)));
    of.into_iter().chain(least.map(|least| format!("least={least}"))).collect::<Vec<_>>().join("&")
}

impl NoticesPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let mut main = String::from("<div class=\"head\"><div><h1>Be told of changes</h1><p class=\"lead\">");
        // Writing into a string cannot fail, here and below.
        let _ = write!(main, "{}</p></div></div>", self.chosen());
        self.write_ways(&mut main);
        self.write_rules(&mut main);
        let json = format!("/api/notices?{}", choice(self.of, self.least));
        Framed { place: self.place, tab: Tab::Changes, title: "Notices", query: "", json: Some(&json) }
            .html(&main)
    }

    /// Of which changes, in a sentence.
    fn chosen(&self) -> String {
        let of = self.of.map_or("every site".to_string(), |of| isolated(of).to_string());
        let least = self.least.map(|least| format!(", of importance {least} or more")).unwrap_or_default();
        format!("Changes of {of}{least}. Each is told at least once, those of a page in order.")
    }

    fn write_ways(&self, out: &mut String) {
        let base = self.place.base;
        let choice = choice(self.of, self.least);
        let page = self.of.filter(|of| of.contains("://"));
        let _ = write!(
            out,
            "<section><h2>As a feed</h2><p>For any feed reader, without further ado: <a href=\"{base}/changes.atom?{0}\">/changes.atom?{0}</a></p></section>",
            escaped(&choice)
        );
        out.push_str("<section><h2>As a message</h2>");
        let least = self.least.map(|least| format!(" --least-importance {least}")).unwrap_or_default();
        if let Some(url) = page {
            let _ = write!(
                out,
                "<p>One command, on the machine of the archive:</p><pre class=\"code\"><code>perennial watch {}{least} --notify ntfy:https://ntfy.example/my-topic</code></pre>",
                escaped(&quoted(url))
            );
        }
        let mut rule =
            String::from("[[notify]]\nname = \"mine\"\nto = \"ntfy:https://ntfy.example/my-topic\"\n");
        if let Some(of) = self.of {
            let _ = writeln!(rule, "place = {}", Value::from(of));
        }
        if let Some(least) = self.least {
            let _ = writeln!(rule, "least_importance = {least}");
        }
        let _ = write!(
            out,
            "<p>{} lines in <code>perennial.toml</code>; <code>to</code> may also be a webhook, Slack, Apprise, an e-mail address or a program:</p>\
             <pre class=\"code\"><code>{}</code></pre><p class=\"cap\"><code>perennial notify test mine</code> tries it.</p></section>",
            if page.is_some() { "Or these" } else { "These" },
            escaped(&rule)
        );
    }

    fn write_rules(&self, out: &mut String) {
        let n = self.rules.len() as u64;
        let _ = write!(
            out,
            "<section><h2>{}</h2>",
            if n == 0 { "Nobody is told yet".to_string() } else { counted(n, "rule", "rules") }
        );
        if n == 0 {
            out.push_str(&empty(
                "No rule tells anybody",
                "A crawl sends notices by itself, as soon as there is one.",
                None,
            ));
            out.push_str("</section>");
            return;
        }
        out.push_str(
            "<table class=\"t\"><thead><tr><th scope=\"col\">Rule</th><th scope=\"col\">By</th><th scope=\"col\">Sent</th><th scope=\"col\">Waiting</th>\
             <th scope=\"col\">State</th></tr></thead><tbody>",
        );
        for rule in self.rules {
            let (sent, waiting) = rule.sent.map_or(("-".to_string(), "-".to_string()), |(sent, waiting)| {
                (grouped(sent), grouped(waiting))
            });
            let state = match (&rule.error, &rule.last_sent, rule.sent) {
                (Some(error), ..) => format!("the last one was not taken: {error}"),
                (None, Some(at), _) => format!("the last one was sent {at}"),
                (None, None, Some(_)) => "nothing to tell yet".to_string(),
                (None, None, None) => "begins with the next crawl".to_string(),
            };
            let _ = write!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{sent}</td><td>{waiting}</td><td class=\"w\">{}</td></tr>",
                isolated(&rule.name),
                rule.kind,
                isolated(&state)
            );
        }
        out.push_str("</tbody></table></section>");
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let choice = choice(self.of, self.least);
        json!({
            "feed": format!("{}/changes.atom?{choice}", self.place.base),
            "rules": self.rules.iter().map(|rule| json!({
                "name": rule.name,
                "by": rule.kind,
                "n_sent": rule.sent.map(|(sent, _)| sent),
                "n_waiting": rule.sent.map(|(_, waiting)| waiting),
                "last_sent": rule.last_sent,
                "error": rule.error,
            })).collect::<Vec<_>>(),
        })
    }
}

/// A word of a command line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-~%+,=@".contains(c);
    if word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
