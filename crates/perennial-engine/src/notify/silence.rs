//! Finds rules that cannot fire. A watch that is blind must not look as if nothing had changed.

use std::fmt;

use perennial_archive::Archive;
use perennial_archive::settings::NotifyRule;
use perennial_archive::store::{Outbox, parse_site_name};
use perennial_core::notice::PageFilter;
use serde::Serialize;
use url::Url;

/// A rule that cannot fire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SilentRule {
    pub rule: String,
    /// The reason in words.
    pub why: String,
}

impl fmt::Display for SilentRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule `{}` cannot fire: {}", self.rule, self.why)
    }
}

/// The rules of an archive that cannot fire.
pub fn silent_rules(archive: &Archive) -> anyhow::Result<Vec<SilentRule>> {
    let outbox = Outbox::open_read(&archive.outbox_path());
    let reason = |rule: &NotifyRule| -> anyhow::Result<Option<String>> {
        Ok(match &outbox {
            Err(error) => Some(format!("{error:#}: move the file away, and rules start again")),
            Ok(outbox) => match outbox.as_ref().filter(|_| follows_place(archive, &rule.condition.place)) {
                None if !follows_place(archive, &rule.condition.place) => {
                    Some("no site that is followed and not paused has such pages".to_owned())
                }
                None => None,
                Some(outbox) => starts_later(archive, outbox, &rule.name)?,
            },
        })
    };
    let rules = archive.settings().notify.iter();
    let found = rules.map(|rule| Ok(reason(rule)?.map(|why| SilentRule { rule: rule.name.clone(), why })));
    Ok(found.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Whether pages of a place are visited.
fn follows_place(archive: &Archive, place: &PageFilter) -> bool {
    let mut seeds = archive.settings().seeds.iter().filter(|seed| !seed.paused);
    match place {
        // An archive without sites is filled by others.
        PageFilter::Anywhere => archive.settings().seeds.is_empty() || seeds.next().is_some(),
        PageFilter::Site(host) => {
            archive.settings().seeds.is_empty()
                || seeds.any(|seed| {
                    let own = parse_site_name(seed.scope.seed.as_str());
                    // The scope of a domain includes its other hosts.
                    own == *host
                        || Url::parse(&format!("{}://{host}/", seed.scope.seed.scheme()))
                            .is_ok_and(|url| seed.scope.contains(&url, 0))
                })
        }
        PageFilter::Page(url) => {
            archive.settings().seeds.is_empty()
                || Url::parse(url)
                    .is_ok_and(|url| archive.settings().seeds.of_page(&url).is_some_and(|seed| !seed.paused))
        }
    }
}

/// Whether a rule begins in the future: its start is only known as a time, of a clock that was ahead.
fn starts_later(archive: &Archive, outbox: &Outbox, rule: &str) -> anyhow::Result<Option<String>> {
    let since = outbox.since(rule)?;
    let start = since.time.filter(|time| since.number.is_none() && *time > archive.horizon());
    Ok(start.map(|start| format!("it starts at {}, in the future", start.to_rfc3339())))
}
