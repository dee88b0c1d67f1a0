//! What a person decides about sites -> `perennial.toml` and a line of `acts.log`: the one path of the command line and of the server's pages.
//!
//! An act edits the settings, which a running crawl reads again by itself, and is told in the log with its time and who did it. Acts of
//! several processes come one after the other: the log is locked while one is performed.
//!
//! | file | what becomes what |
//! |---|---|
//! | [`log`] | acts <-> lines of `acts.log` |

pub mod audit;

use anyhow::{Context, anyhow, bail};
use perennial_core::page::segment::Selector;
use perennial_core::schedule::amounts::{parse_budget, parse_bytes};
use perennial_core::schedule::{Budget, Goal};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::scope::ScopeKind;
use url::Url;

use crate::analyse::{AdFilters, PartEffect, PartEffectQuery, PartTreatment};
use audit::{AuditEntry, AuditLog};
use perennial_archive::settings::crawl::parse_goal;
use perennial_archive::settings::parts::{PINNED_SHARE, parse_share};
use perennial_archive::settings::site::{parse_address, parse_selector, parse_weight};
use perennial_archive::settings::{self, Edited, PinnedPart, Seed, Settings};
use perennial_archive::store::site_of;
use perennial_archive::{Archive, SharedSnapshot};

/// What somebody decided. Sites are named by address or host, as [`perennial_archive::settings::Seeds::named`] finds them.
#[derive(Clone, Debug)]
pub enum AdminAction {
    /// Follow these, with these settings.
    Follow(Vec<Seed>),
    /// Follow them no longer.
    Remove(Vec<String>),
    /// Do not visit them for now.
    Pause(Vec<String>),
    /// Visit them again.
    Resume(Vec<String>),
    /// Give a site other settings.
    Set(String, SettingsChange),
    /// Name a part of a site's pages.
    Part(String, PartAction),
    /// Visit a page, or what fails on a host, as soon as politeness allows it.
    Retry(String),
}

/// Settings that are to be others; `None`: as they are. `Some(None)`: as usual.
#[derive(Clone, Default, Debug)]
pub struct SettingsChange {
    /// How much the site matters beside others.
    pub weight: Option<f64>,
    /// Visits of its pages.
    pub budget: Option<Option<Budget>>,
    /// Bytes fetched from it in a day.
    pub bytes_per_day: Option<Option<u64>>,
    /// What its visits serve.
    pub goal: Option<Option<Goal>>,
}

/// What is decided about a part of pages.
#[derive(Clone, Debug)]
pub enum PartAction {
    /// It counts most.
    Pin(PinnedPart),
    /// It is not looked at.
    Ignore(Selector),
    /// It is neither pinned nor ignored.
    Release(Selector),
}

/// What was done.
#[derive(Debug)]
pub struct AdminOutcome {
    /// What the log says of it.
    pub lines: Vec<AuditEntry>,
    /// The settings as they are now.
    pub settings: Settings,
}

impl AdminAction {
    /// The act that fields of a form or of JSON name. What opens this machine (`allow_private`) is no field: that is decided at the
    /// machine itself.
    pub fn read<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Result<AdminAction, String> {
        let given = |name: &str| field(name).map(str::trim).filter(|text| !text.is_empty());
        let needed = |name: &str| given(name).ok_or_else(|| format!("`{name}` is missing"));
        let site = || needed("url").map(str::to_owned);
        let wrong = |name: &'static str| move |cure: String| format!("{name}: {cure}");
        Ok(match needed("act")? {
            "add" => {
                let mut seed = Seed::of_host(parse_address(needed("url")?)?);
                if let Some(scope) = given("scope") {
                    seed.scope.kind = scope
                        .parse::<ScopeKind>()
                        .map_err(|error| error.to_string())
                        .map_err(wrong("scope"))?;
                }
                AdminAction::Follow(vec![SettingsChange::read(&field)?.apply_to(&seed)])
            }
            "remove" => AdminAction::Remove(vec![site()?]),
            "pause" => AdminAction::Pause(vec![site()?]),
            "resume" => AdminAction::Resume(vec![site()?]),
            "set" => AdminAction::Set(site()?, SettingsChange::read(&field)?),
            "retry" => AdminAction::Retry(site()?),
            part @ ("pin" | "ignore" | "release") => {
                let selector = parse_selector(needed("selector")?).map_err(wrong("selector"))?;
                let share = given("importance").map(parse_share).transpose().map_err(wrong("importance"))?;
                let part = match part {
                    "pin" => PartAction::Pin(PinnedPart { selector, importance: share }),
                    "ignore" => PartAction::Ignore(selector),
                    _ => PartAction::Release(selector),
                };
                AdminAction::Part(site()?, part)
            }
            other => {
                return Err(format!(
                    "`{other}` is no act: write add, remove, pause, resume, set, pin, ignore, release or retry"
                ));
            }
        })
    }

    /// Its name in the log and in forms.
    pub fn name(&self) -> &'static str {
        match self {
            AdminAction::Follow(_) => "add",
            AdminAction::Remove(_) => "remove",
            AdminAction::Pause(_) => "pause",
            AdminAction::Resume(_) => "resume",
            AdminAction::Set(..) => "set",
            AdminAction::Part(_, PartAction::Pin(_)) => "pin",
            AdminAction::Part(_, PartAction::Ignore(_)) => "ignore",
            AdminAction::Part(_, PartAction::Release(_)) => "release",
            AdminAction::Retry(_) => "retry",
        }
    }
}

impl SettingsChange {
    fn read<'a>(field: &impl Fn(&str) -> Option<&'a str>) -> Result<SettingsChange, String> {
        // An empty field of a form means that the setting is as usual.
        fn read<T>(
            name: &str,
            text: Option<&str>,
            parse: impl Fn(&str) -> Result<T, String>,
        ) -> FieldValue<T> {
            let Some(text) = text.map(str::trim) else { return Ok(None) };
            let value = Some(text).filter(|text| !text.is_empty()).map(parse).transpose();
            value.map(Some).map_err(|cure| format!("{name}: {cure}"))
        }
        let hour = Span::from_hours(1);
        let budget = |text: &str| parse_budget(text, hour).map_err(|error| error.to_string());
        let bytes = |text: &str| parse_bytes(text).map_err(|error| error.to_string());
        Ok(SettingsChange {
            weight: read("weight", field("weight"), parse_weight)?.map(|weight| weight.unwrap_or(1.0)),
            budget: read("budget", field("budget"), budget)?,
            bytes_per_day: read("bytes_per_day", field("bytes_per_day"), bytes)?,
            goal: read("goal", field("goal"), parse_goal)?,
        })
    }

    /// A site with these settings.
    fn apply_to(&self, seed: &Seed) -> Seed {
        let mut seed = seed.clone();
        seed.weight = self.weight.unwrap_or(seed.weight);
        seed.allowance.visits = self.budget.unwrap_or(seed.allowance.visits);
        seed.allowance.bytes_per_day = self.bytes_per_day.unwrap_or(seed.allowance.bytes_per_day);
        seed.goal = self.goal.unwrap_or(seed.goal);
        seed
    }
}

type FieldValue<T> = Result<Option<Option<T>>, String>;

impl PartAction {
    /// The part.
    pub fn selector(&self) -> &Selector {
        match self {
            PartAction::Pin(part) => &part.selector,
            PartAction::Ignore(selector) | PartAction::Release(selector) => selector,
        }
    }

    /// What the part would be; `None` where it is taken back.
    pub fn treatment(&self) -> Option<PartTreatment> {
        match self {
            PartAction::Pin(part) => Some(PartTreatment::Pinned(part.importance.unwrap_or(PINNED_SHARE))),
            PartAction::Ignore(_) => Some(PartTreatment::Ignored),
            PartAction::Release(_) => None,
        }
    }

    /// What it would have changed in the last 30 days, of the latest `most` edits of a site. Nothing is written.
    pub fn effect(
        &self,
        archive: &Archive,
        seed: &Seed,
        most: usize,
        progress: &dyn Fn(),
    ) -> anyhow::Result<PartEffect> {
        let Some(treatment) = self.treatment() else { return Ok(PartEffect::default()) };
        let snapshot = SharedSnapshot::new(archive.snapshot()?);
        let latest = snapshot.lock().store().latest_capture_time()?;
        let since = latest.map(|latest| latest - Span::from_hours(24 * 30));
        let filters = AdFilters::load(Some(archive.root()))?;
        let seeds = &archive.settings().seeds;
        let is_of = |url: &str| {
            let owner =
                Url::parse(url).ok().and_then(|url| seeds.of_page(&url).map(|owner| &owner.scope.seed));
            owner == Some(&seed.scope.seed)
        };
        PartEffectQuery { selector: self.selector(), treatment, since, most }
            .estimate(&snapshot, &filters, is_of, progress)
    }

    /// A site with it.
    pub fn apply_to(&self, seed: &Seed) -> Seed {
        let parts = match self {
            PartAction::Pin(part) => seed.parts.with_pin(part.clone()),
            PartAction::Ignore(selector) => seed.parts.with_ignored(selector.clone()),
            PartAction::Release(selector) => seed.parts.without(selector),
        };
        Seed { parts, ..seed.clone() }
    }
}

/// Performs an act: edits the settings and says so in the log, or does neither and says why.
pub fn perform(
    archive: &Archive,
    act: &AdminAction,
    who: &str,
    now: Timestamp,
) -> anyhow::Result<AdminOutcome> {
    let path = archive.settings_path();
    // Opened and locked first: what cannot be told is not done.
    let mut log = AuditLog::open(archive.root())?;
    let known = Settings::load(&path)?;
    let named = |names: &[String]| -> anyhow::Result<Vec<Url>> {
        names.iter().map(|name| Ok(known.seeds.named(name)?.scope.seed.clone())).collect()
    };
    let one = |name: &String| named(std::slice::from_ref(name));
    let edited = match act {
        AdminAction::Follow(seeds) => settings::follow(&path, seeds)?,
        AdminAction::Remove(names) => {
            let urls = named(names)?;
            settings::unfollow(&path, &urls)?;
            urls.into_iter().map(|url| Edited { url, is_new: false, changed: Vec::new() }).collect()
        }
        AdminAction::Pause(names) => {
            settings::change(&path, &named(names)?, |seed| Seed { paused: true, ..seed.clone() })?
        }
        AdminAction::Resume(names) => {
            settings::change(&path, &named(names)?, |seed| Seed { paused: false, ..seed.clone() })?
        }
        AdminAction::Set(name, change) => {
            settings::change(&path, &one(name)?, |seed| change.apply_to(&seed))?
        }
        AdminAction::Part(name, part) => settings::change(&path, &one(name)?, |seed| part.apply_to(&seed))?,
        AdminAction::Retry(target) => {
            let lines = vec![AuditEntry::new(now, who, act.name(), &retried(&known, target)?, String::new())];
            lines.iter().try_for_each(|line| log.put(line))?;
            return Ok(AdminOutcome { lines, settings: known });
        }
    };
    let line = |edited: &Edited| {
        let name = if edited.is_new || act.name() != "add" { act.name() } else { "set" };
        // That it is paused is what the act is called.
        let told = edited.changed.iter().filter(|text| !text.starts_with("paused")).cloned();
        AuditEntry::new(now, who, name, edited.url.as_str(), told.collect::<Vec<_>>().join(", "))
    };
    let lines: Vec<AuditEntry> = edited.iter().map(line).collect();
    lines
        .iter()
        .try_for_each(|line| log.put(line))
        .context("the settings are changed, and the log does not tell it")?;
    Ok(AdminOutcome { lines, settings: Settings::load(&path)? })
}

/// What is to be visited again: a page of a site that is followed and not paused, or a host with such a site.
fn retried(known: &Settings, target: &str) -> anyhow::Result<String> {
    let is_host = !target.contains("://");
    let found = match is_host {
        false => {
            let url = parse_address(target).map_err(|cure| anyhow!(cure))?;
            known.seeds.of_page(&url).map(|seed| (seed, url.to_string()))
        }
        true => {
            let is_of = |scheme: &str| Url::parse(&format!("{scheme}://{target}/")).ok();
            let urls = ["https", "http"].into_iter().filter_map(is_of);
            let mut owners = urls.filter_map(|url| known.seeds.of_page(&url));
            let seed = known.seeds.iter().find(|seed| site_of(seed.scope.seed.as_str()) == target);
            seed.or_else(|| owners.next()).map(|seed| (seed, target.to_owned()))
        }
    };
    let (seed, target) = found.with_context(|| {
        format!("{target} belongs to no site that is followed: `perennial list` shows them, `perennial add` follows one")
    })?;
    if seed.paused {
        bail!("{} is paused: `perennial resume {0}` first", seed.scope.seed);
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<AdminAction, String> {
        AdminAction::read(|name| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value))
    }

    fn archive() -> (tempfile::TempDir, Archive) {
        let dir = tempfile::tempdir().unwrap();
        let archive = Archive::create(&dir.path().join("a")).unwrap();
        (dir, archive)
    }

    #[test]
    fn every_act_changes_the_settings_and_is_told() {
        let (_dir, archive) = archive();
        let now = Timestamp::parse("2026-11-17T12:00:00Z").unwrap();
        let steps: [&[(&str, &str)]; 8] = [
            &[("act", "add"), ("url", "a.org"), ("weight", "2"), ("budget", "10/1h"), ("goal", "")],
            &[("act", "pause"), ("url", "a.org")],
            &[("act", "resume"), ("url", "https://a.org/")],
            &[("act", "set"), ("url", "a.org"), ("weight", ""), ("goal", "balanced")],
            &[("act", "pin"), ("url", "a.org"), ("selector", "#main"), ("importance", "0.5")],
            &[("act", "release"), ("url", "a.org"), ("selector", "#main")],
            &[("act", "retry"), ("url", "https://a.org/x")],
            &[("act", "remove"), ("url", "a.org")],
        ];
        for step in steps {
            perform(&archive, &read(step).unwrap(), "a test", now).unwrap();
        }
        let mut told = Vec::new();
        audit::each_audit_entry(archive.root(), |line| {
            told.push(format!("{} {} {}", line.act, line.url, line.detail))
        })
        .unwrap();
        assert_eq!(
            told,
            [
                "add https://a.org/ weight = 2.0, budget = \"10/1h\"",
                "pause https://a.org/ ",
                "resume https://a.org/ ",
                "set https://a.org/ goal = \"balanced\", weight as usual (was 2.0)",
                "pin https://a.org/ pin = [{ selector = \"#main\", importance = 0.5 }]",
                "release https://a.org/ pin as usual (was [{ selector = \"#main\", importance = 0.5 }])",
                "retry https://a.org/x ",
                "remove https://a.org/ ",
            ]
        );
        assert!(Settings::load(&archive.settings_path()).unwrap().seeds.is_empty());
    }

    #[test]
    fn what_cannot_be_done_is_neither_done_nor_told() {
        let (_dir, archive) = archive();
        let before = std::fs::read_to_string(archive.settings_path()).unwrap();
        for (fields, told) in [
            (vec![("act", "pause"), ("url", "b.org")], "b.org is not followed"),
            (vec![("act", "remove"), ("url", "b.org")], "b.org is not followed"),
            (vec![("act", "retry"), ("url", "https://b.org/")], "belongs to no site"),
        ] {
            let error = perform(&archive, &read(&fields).unwrap(), "a test", Timestamp::EPOCH).unwrap_err();
            assert!(error.to_string().contains(told), "{error:#}");
        }
        assert_eq!(std::fs::read_to_string(archive.settings_path()).unwrap(), before);
        let mut n_acts = 0;
        audit::each_audit_entry(archive.root(), |_| n_acts += 1).unwrap();
        assert_eq!(n_acts, 0);
    }

    #[test]
    fn a_wrong_field_is_named_with_its_cure() {
        for (fields, told) in [
            (vec![("url", "a.org")], "`act` is missing"),
            (vec![("act", "fly")], "`fly` is no act"),
            (vec![("act", "add")], "`url` is missing"),
            (vec![("act", "add"), ("url", "mailto:a@b")], "is not an http or https address"),
            (vec![("act", "add"), ("url", "a.org"), ("weight", "-1")], "weight: write a number"),
            (vec![("act", "set"), ("url", "a.org"), ("budget", "many")], "budget: "),
            (vec![("act", "set"), ("url", "a.org"), ("goal", "win")], "goal: "),
            (vec![("act", "pin"), ("url", "a.org"), ("selector", "a:hover")], "selector: this pseudo-class"),
            (vec![("act", "pin"), ("url", "a.org"), ("selector", "a"), ("importance", "2")], "importance: "),
        ] {
            let error = read(&fields).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
