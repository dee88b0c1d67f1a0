//! Finds a capture whose URL differs only in parameters that do not choose the content, such as a cache buster. Scripts invent
//! these for each request, so the exact URL is never archived. The rules are a table (`fuzzy.toml`), which users can extend.

use std::fs;
use std::path::Path;

use anyhow::Context;
use perennial_archive::Snapshot;
use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::surt::{KeyRange, surt};
use serde::Deserialize;

const BUILT_IN: &str = include_str!("fuzzy.toml");

/// Lines of the index that are compared with a request.
const MAX_LINES: usize = 2_000;
const MAX_RULES_BYTES: u64 = 1 << 20;

/// The rules of a server.
#[derive(Clone, Debug)]
pub struct FuzzyRules(Vec<FuzzyRule>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FuzzyRule {
    /// Applies to this host and its subdomains; to all without it.
    host: Option<String>,
    /// Names of parameters that are ignored, in lower case.
    parameters: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    #[serde(default)]
    rule: Vec<FuzzyRule>,
}

impl FuzzyRules {
    /// The built-in rules and those of a file.
    pub fn read(file: Option<&Path>) -> anyhow::Result<FuzzyRules> {
        let mut rules = parse(BUILT_IN)?;
        if let Some(path) = file {
            let length = fs::metadata(path).map(|found| found.len());
            let is_short =
                length.with_context(|| format!("cannot read {}", path.display()))? <= MAX_RULES_BYTES;
            anyhow::ensure!(is_short, "{}: longer than 1 MiB", path.display());
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            rules.extend(parse(&text).with_context(|| format!("{}: not a table of rules", path.display()))?);
        }
        Ok(FuzzyRules(rules))
    }

    /// The URL of the capture nearest to an instant that differs only in ignored parameters.
    pub fn find(&self, snapshot: &Snapshot, url: &str, at: Timestamp) -> anyhow::Result<Option<String>> {
        let key = surt(url);
        let Some(wanted) = self.without_ignored(&key) else { return Ok(None) };
        let path = wanted.split('?').next().unwrap_or_default();
        let range = |first: &str, after: &str| KeyRange {
            start: format!("{path}{first}").into_bytes(),
            end: format!("{path}{after}").into_bytes(),
        };
        // Without a query, and with one.
        let (plain, queried) = (range(" ", "!"), range("?", "@"));
        let lines = snapshot.lines(&plain)?.take(MAX_LINES).chain(snapshot.lines(&queried)?.take(MAX_LINES));
        let mut nearest: Option<(u64, String)> = None;
        for line in lines {
            let Ok(line) = CdxjLine::parse(&line?) else { continue };
            let is_same = self.without_ignored(&line.key).unwrap_or_else(|| line.key.clone()) == wanted;
            let Some(time) = line.date().filter(|_| is_same) else { continue };
            let distance = time.as_secs().abs_diff(at.as_secs());
            if nearest.as_ref().is_none_or(|nearest| distance < nearest.0) {
                nearest = Some((distance, line.url));
            }
        }
        Ok(nearest.map(|(_, url)| url))
    }

    /// A key without the ignored parameters; `None` if it has none of them.
    fn without_ignored(&self, key: &str) -> Option<String> {
        let (path, query) = key.split_once('?')?;
        let host = path.split(')').next().unwrap_or_default();
        let is_ignored = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            self.0
                .iter()
                .any(|rule| rule.holds_for(host) && rule.parameters.iter().any(|known| known == name))
        };
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_ignored(pair)).collect();
        let is_changed = kept.len() < query.split('&').count();
        is_changed.then(|| match kept.is_empty() {
            true => path.to_string(),
            false => format!("{path}?{}", kept.join("&")),
        })
    }
}

impl FuzzyRule {
    /// Whether the rule holds for the host of a key, as in `org,example,www`.
    fn holds_for(&self, host: &str) -> bool {
        let Some(rule) = &self.host else { return true };
        let rule = surt(&format!("http://{rule}/"));
        let rule = rule.split(')').next().unwrap_or_default();
        host.strip_prefix(rule).is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ':']))
    }
}

fn parse(text: &str) -> anyhow::Result<Vec<FuzzyRule>> {
    Ok(toml_edit::de::from_str::<RuleTable>(text)?.rule)
}

/// The names of a callback in a request and in the archived URL, if they differ.
pub fn callbacks(requested: &str, archived: &str) -> Option<(String, String)> {
    let name = |text: &str| {
        let url = url::Url::parse(text).ok()?;
        let found = url.query_pairs().find(|(name, _)| {
            matches!(name.to_ascii_lowercase().as_str(), "callback" | "jsonp" | "jsoncallback" | "_callback")
        });
        let name = found?.1.into_owned();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '[' | ']');
        (!name.is_empty() && name.chars().all(is_name)).then_some(name)
    };
    let (requested, archived) = (name(requested)?, name(archived)?);
    (requested != archived).then_some((archived, requested))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_parameters_are_those_of_the_rules() {
        let own = "[[rule]]\nhost = \"news.example\"\nparameters = [\"session\"]\n";
        let mut rules = FuzzyRules::read(None).unwrap();
        rules.0.extend(parse(own).unwrap());
        let without = |url: &str| rules.without_ignored(&surt(url));
        for (url, expected) in [
            ("http://a.example/x?_=123", Some("example,a)/x")),
            ("http://a.example/x?b=1&CallBack=f&a=2", Some("example,a)/x?a=2&b=1")),
            ("http://a.example/x?a=1&tsx=2", None),
            ("http://a.example/x", None),
            ("http://a.example/x?session=1", None),
            ("http://news.example/x?session=1&y", Some("example,news)/x?y")),
            ("http://m.news.example/x?session=1", Some("example,news,m)/x")),
            ("http://fakenews.example/x?session=1", None),
        ] {
            assert_eq!(without(url).as_deref(), expected, "{url}");
        }
        assert!(parse("[[rule]]\nparameter = []").is_err());
    }

    #[test]
    fn a_callback_gets_the_requested_name() {
        let names = |a: &str, b: &str| {
            callbacks(&format!("http://a.example/?{a}"), &format!("http://a.example/?{b}"))
        };
        assert_eq!(names("callback=new_1", "callback=old.f"), Some(("old.f".into(), "new_1".into())));
        assert_eq!(names("callback=a", "callback=a"), None);
        assert_eq!(names("callback=a(b", "callback=c"), None);
        assert_eq!(names("x=1", "callback=c"), None);
    }
}
