//! Decisions of an admin about sites. The command line and the dashboard both go through this module.
//!
//! An action edits `perennial.toml` and adds an entry to the audit log. A running crawl reloads the settings by
//! itself. The log is locked during an action, so actions of several processes run one at a time.
//!
//! | module | purpose |
//! |---|---|
//! | [`audit`] | reads and writes the audit log |

pub mod audit;

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use perennial_core::notice::{ChangeCondition, PageFilter, Wording};
use perennial_core::page::segment::Selector;
use perennial_core::schedule::units::{parse_budget, parse_bytes};
use perennial_core::schedule::{Budget, Goal};
use perennial_core::time::{Span, Timestamp, WeeklyHours};
use perennial_core::url::canonical::without_scheme;
use perennial_core::url::scope::{Scope, ScopeError, ScopeKind};
use url::Url;

use crate::analyse::{AdFilters, PartEffect, PartEffectQuery, PartTreatment};
use audit::{AuditEntry, AuditLog};
use perennial_archive::settings::crawl::parse_goal;
use perennial_archive::settings::notify::{DEFAULT_FAILURES, parse_name, parse_place};
use perennial_archive::settings::parts::{PINNED_SHARE, parse_share};
use perennial_archive::settings::site::{parse_selector, parse_url, parse_weight};
use perennial_archive::settings::times::{parse_every, parse_hours};
use perennial_archive::settings::{
    self, NoticeReceiver, NotifyRule, PinnedPart, Seed, Settings, SiteEdit, VisitTimes, WatchedPage,
};
use perennial_archive::store::parse_site_name;
use perennial_archive::{Archive, SharedSnapshot};

/// A decision. Sites are named by URL or host ([`perennial_archive::settings::Seeds::named`]).
#[derive(Clone, Debug)]
pub enum AdminAction {
    /// Follow these sites with these settings.
    Follow(Vec<Seed>),
    /// Stop following them.
    Remove(Vec<String>),
    /// Pause visits.
    Pause(Vec<String>),
    /// Resume visits.
    Resume(Vec<String>),
    /// Change the settings of a site, or when a page of a site is visited.
    Set(String, SettingsChange),
    /// Watch a page, or all pages of a wider scope: follow them, visit them at these times, and report their changes
    /// by these rules.
    Watch { url: Url, scope: ScopeKind, allow_private: bool, times: VisitTimes, rules: Vec<NotifyRule> },
    /// Report changes by this rule.
    Notify(NotifyRule),
    /// Remove the rule with this name.
    RemoveRule(String),
    /// Pin, ignore or release a part of a site's pages.
    Part(String, PartAction),
    /// Visit a page, or the failing pages of a followed host, as soon as politeness allows.
    Retry {
        target: String,
        /// Whether the page may be on this machine or in its network.
        allow_private: bool,
    },
}

/// Settings to change. `None` keeps a setting; `Some(None)` resets it to its default.
#[derive(Clone, Default, Debug)]
pub struct SettingsChange {
    /// Weight of the site relative to other sites.
    pub weight: Option<f64>,
    /// Visits per period.
    pub budget: Option<Option<Budget>>,
    /// Bytes per day.
    pub bytes_per_day: Option<Option<u64>>,
    /// What the visits optimise for.
    pub goal: Option<Option<Goal>>,
    /// The interval between two visits of a page.
    pub every: Option<Option<Span>>,
    /// The hours in which pages are visited.
    pub hours: Option<Option<WeeklyHours>>,
}

/// A decision about a part of pages.
#[derive(Clone, Debug)]
pub enum PartAction {
    /// The part counts most.
    Pin(PinnedPart),
    /// Changes in the part are ignored.
    Ignore(Selector),
    /// The part is neither pinned nor ignored any more.
    Release(Selector),
}

/// The result of an action.
#[derive(Debug)]
pub struct AdminOutcome {
    /// Its entries in the audit log.
    pub lines: Vec<AuditEntry>,
    /// The settings after the action.
    pub settings: Settings,
}

impl AdminAction {
    /// Parses an action from the fields of a form or of JSON. `allow_private` is not accepted here, because it opens
    /// this machine's network and may only be set on the machine itself.
    pub fn read<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Result<AdminAction, String> {
        let given = |name: &str| field(name).map(str::trim).filter(|text| !text.is_empty());
        let needed = |name: &str| given(name).ok_or_else(|| format!("`{name}` is missing"));
        let site = || needed("url").map(str::to_owned);
        let wrong = |name: &'static str| move |hint: String| format!("{name}: {hint}");
        Ok(match needed("act")? {
            "add" => {
                let mut seed = Seed::of_host(parse_url(needed("url")?)?);
                if let Some(scope) = read_scope(given("scope"))? {
                    seed.scope.kind = scope;
                }
                AdminAction::Follow(vec![SettingsChange::read(&field)?.apply_to(&seed)])
            }
            "remove" => AdminAction::Remove(vec![site()?]),
            "pause" => AdminAction::Pause(vec![site()?]),
            "resume" => AdminAction::Resume(vec![site()?]),
            "set" => AdminAction::Set(site()?, SettingsChange::read(&field)?),
            "retry" => AdminAction::Retry { target: site()?, allow_private: false },
            "watch" => {
                let url = parse_url(needed("url")?)?;
                let scope = read_scope(given("scope"))?.unwrap_or(ScopeKind::Page);
                let (place, usual) = match scope {
                    ScopeKind::Page => {
                        (PageFilter::Page(url.to_string()), without_scheme(url.as_str()).to_owned())
                    }
                    _ => {
                        let host = parse_site_name(url.as_str());
                        (PageFilter::Site(host.clone()), host)
                    }
                };
                let times = SettingsChange::read(&field)?.apply_to_times(&VisitTimes::default());
                let receivers: Vec<NoticeReceiver> =
                    read_receiver(given("receiver"), given("to"))?.into_iter().collect();
                let condition = read_condition(&field, place)?;
                let name = read_rule_name(&field, &usual)?;
                let rules = NotifyRule::for_receivers(&name, &receivers, &condition, DEFAULT_FAILURES);
                AdminAction::Watch { url, scope, allow_private: false, times, rules }
            }
            "notify" => {
                let place = given("place").map(parse_place).transpose().map_err(wrong("place"))?;
                let to = read_receiver(given("receiver"), given("to"))?.ok_or("`to` is missing")?;
                let usual = given("place").map_or("all changes", without_scheme);
                let name = read_rule_name(&field, usual)?;
                let condition = read_condition(&field, place.unwrap_or_default())?;
                AdminAction::Notify(NotifyRule::new(name, to, condition))
            }
            "remove-rule" => AdminAction::RemoveRule(needed("name")?.to_owned()),
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
                    "`{other}` is not an action: write add, remove, pause, resume, set, watch, notify, remove-rule, pin, ignore, release or retry"
                ));
            }
        })
    }

    /// The name in the log and in forms.
    pub fn name(&self) -> &'static str {
        match self {
            AdminAction::Follow(_) => "add",
            AdminAction::Remove(_) => "remove",
            AdminAction::Pause(_) => "pause",
            AdminAction::Resume(_) => "resume",
            AdminAction::Set(..) => "set",
            AdminAction::Watch { .. } => "watch",
            AdminAction::Notify(_) => "notify",
            AdminAction::RemoveRule(_) => "remove-rule",
            AdminAction::Part(_, PartAction::Pin(_)) => "pin",
            AdminAction::Part(_, PartAction::Ignore(_)) => "ignore",
            AdminAction::Part(_, PartAction::Release(_)) => "release",
            AdminAction::Retry { .. } => "retry",
        }
    }
}

fn read_scope(text: Option<&str>) -> Result<Option<ScopeKind>, String> {
    text.map(str::parse).transpose().map_err(|error: ScopeError| format!("scope: {error}"))
}

/// The receiver in a form: with its kind, or the kind and its URL or mail address apart. A program may only be set on
/// the machine itself, because whoever may change settings here could otherwise run anything.
fn read_receiver(kind: Option<&str>, to: Option<&str>) -> Result<Option<NoticeReceiver>, String> {
    let Some(to) = to else { return Ok(None) };
    let is_mail = to.contains('@') && !to.contains(':');
    let is_bare = is_mail || to.starts_with("http://") || to.starts_with("https://");
    let to = match kind.filter(|_| is_bare) {
        Some(kind) => format!("{kind}:{to}"),
        None if is_mail => format!("email:{to}"),
        None => to.to_owned(),
    };
    match to.parse().map_err(|hint: String| format!("to: {hint}"))? {
        NoticeReceiver::Command(_) => Err("to: a program can only be set on the machine with the archive, \
            with `perennial watch URL --notify command:PROGRAM`"
            .to_owned()),
        to => Ok(Some(to)),
    }
}

fn read_rule_name<'a>(field: &impl Fn(&str) -> Option<&'a str>, usual: &str) -> Result<String, String> {
    let given = field("name").map(str::trim).filter(|name| !name.is_empty());
    parse_name(given.unwrap_or(usual)).map_err(|hint| format!("name: {hint}"))
}

/// The conditions of a rule in a form.
fn read_condition<'a>(
    field: &impl Fn(&str) -> Option<&'a str>,
    place: PageFilter,
) -> Result<ChangeCondition, String> {
    let given = |name: &str| field(name).map(str::trim).filter(|text| !text.is_empty());
    let wording = |name: &'static str| {
        given(name).map(str::parse::<Wording>).transpose().map_err(|error| format!("{name}: {error}"))
    };
    let selector = given("selector").map(parse_selector).transpose();
    let least = given("min_importance").map(parse_least).transpose();
    Ok(ChangeCondition {
        place,
        selector: selector.map_err(|hint| format!("selector: {hint}"))?,
        min_importance: least.map_err(|hint| format!("min_importance: {hint}"))?.unwrap_or_default(),
        appears: wording("appears")?,
        vanishes: wording("vanishes")?,
        ..ChangeCondition::default()
    })
}

fn parse_least(text: &str) -> Result<f64, String> {
    let least = text.parse().ok().filter(|least| (0.0..=1.0).contains(least));
    least.ok_or_else(|| "write a number from 0 to 1, such as 0.1".to_owned())
}

impl SettingsChange {
    fn read<'a>(field: &impl Fn(&str) -> Option<&'a str>) -> Result<SettingsChange, String> {
        // An empty form field resets the setting to its default.
        fn read<T>(
            name: &str,
            text: Option<&str>,
            parse: impl Fn(&str) -> Result<T, String>,
        ) -> FieldValue<T> {
            let Some(text) = text.map(str::trim) else { return Ok(None) };
            let value = Some(text).filter(|text| !text.is_empty()).map(parse).transpose();
            value.map(Some).map_err(|hint| format!("{name}: {hint}"))
        }
        let hour = Span::from_hours(1);
        let budget = |text: &str| parse_budget(text, hour).map_err(|error| error.to_string());
        let bytes = |text: &str| parse_bytes(text).map_err(|error| error.to_string());
        Ok(SettingsChange {
            weight: read("weight", field("weight"), parse_weight)?.map(|weight| weight.unwrap_or(1.0)),
            budget: read("budget", field("budget"), budget)?,
            bytes_per_day: read("bytes_per_day", field("bytes_per_day"), bytes)?,
            goal: read("goal", field("goal"), parse_goal)?,
            every: read("every", field("every"), parse_every)?,
            hours: read("hours", field("hours"), parse_hours)?,
        })
    }

    /// The seed with these settings applied.
    fn apply_to(&self, seed: &Seed) -> Seed {
        let mut seed = seed.clone();
        seed.weight = self.weight.unwrap_or(seed.weight);
        seed.allowance.visits = self.budget.unwrap_or(seed.allowance.visits);
        seed.allowance.bytes_per_day = self.bytes_per_day.unwrap_or(seed.allowance.bytes_per_day);
        seed.goal = self.goal.unwrap_or(seed.goal);
        seed.times = self.apply_to_times(&seed.times);
        seed
    }

    fn apply_to_times(&self, times: &VisitTimes) -> VisitTimes {
        VisitTimes {
            every: self.every.unwrap_or(times.every),
            hours: self.hours.clone().unwrap_or_else(|| times.hours.clone()),
        }
    }

    /// Whether it concerns nothing but the times of visits, which a single page may have.
    fn is_of_times(&self) -> bool {
        self.weight.is_none() && self.budget.is_none() && self.bytes_per_day.is_none() && self.goal.is_none()
    }
}

type FieldValue<T> = Result<Option<Option<T>>, String>;

impl PartAction {
    pub fn selector(&self) -> &Selector {
        match self {
            PartAction::Pin(part) => &part.selector,
            PartAction::Ignore(selector) | PartAction::Release(selector) => selector,
        }
    }

    /// How the part is weighted; `None` if it is released.
    pub fn treatment(&self) -> Option<PartTreatment> {
        match self {
            PartAction::Pin(part) => Some(PartTreatment::Pinned(part.importance.unwrap_or(PINNED_SHARE))),
            PartAction::Ignore(_) => Some(PartTreatment::Ignored),
            PartAction::Release(_) => None,
        }
    }

    /// Estimates the effect over the last 30 days on at most the latest `most` edits of a site. Writes nothing.
    pub fn effect(
        &self,
        archive: &Archive,
        seed: &Seed,
        most: usize,
        progress: &dyn Fn(),
    ) -> anyhow::Result<PartEffect> {
        let Some(treatment) = self.treatment() else { return Ok(PartEffect::default()) };
        let snapshot = SharedSnapshot::new(archive.snapshot()?);
        let latest = snapshot.lock().store().last_capture(archive.horizon())?;
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

    /// The seed with this part applied.
    pub fn apply_to(&self, seed: &Seed) -> Seed {
        let parts = match self {
            PartAction::Pin(part) => seed.parts.with_pin(part.clone()),
            PartAction::Ignore(selector) => seed.parts.with_ignored(selector.clone()),
            PartAction::Release(selector) => seed.parts.without(selector),
        };
        Seed { parts, ..seed.clone() }
    }
}

/// Performs an action: edits the settings and logs it, or does neither and returns the reason.
pub fn perform(
    archive: &Archive,
    action: &AdminAction,
    who: &str,
    now: Timestamp,
) -> anyhow::Result<AdminOutcome> {
    let path = archive.settings_path();
    // The log is opened first: without a log entry nothing may change.
    let mut log = AuditLog::open(archive.root())?;
    let known = Settings::load(&path)?;
    let named = |names: &[String]| -> anyhow::Result<Vec<Url>> {
        names.iter().map(|name| Ok(known.seeds.named(name)?.scope.seed.clone())).collect()
    };
    let one = |name: &String| named(std::slice::from_ref(name));
    let edited = match action {
        AdminAction::Follow(seeds) => settings::follow(&path, seeds)?,
        AdminAction::Remove(names) => {
            let (pages, sites): (Vec<String>, Vec<String>) =
                names.iter().cloned().partition(|name| watched_page(&known, name).is_some());
            let urls = named(&sites)?;
            settings::unfollow(&path, &urls)?;
            let pages: Vec<Url> = pages.iter().filter_map(|name| watched_page(&known, name)).collect();
            let gone: Vec<Url> = urls.into_iter().chain(pages).collect();
            settings::unwatch_pages(&path, &gone)?;
            gone.into_iter().map(|url| SiteEdit { url, is_new: false, changed: Vec::new() }).collect()
        }
        AdminAction::Pause(names) => {
            settings::change(&path, &named(names)?, |seed| Seed { paused: true, ..seed.clone() })?
        }
        AdminAction::Resume(names) => {
            settings::change(&path, &named(names)?, |seed| Seed { paused: false, ..seed.clone() })?
        }
        AdminAction::Set(name, change) => match page_of_site(&known, name).filter(|_| change.is_of_times()) {
            Some(url) => {
                let before = known.pages.iter().find(|page| page.url == url);
                let times = before.map(|page| page.times.clone()).unwrap_or_default();
                put_watched(&path, &known, url, change.apply_to_times(&times))?
            }
            None => settings::change(&path, &one(name)?, |seed| change.apply_to(seed))?,
        },
        AdminAction::Watch { url, scope, allow_private, times, rules } => {
            let edited = match scope {
                ScopeKind::Page => watch(&path, &known, url, *allow_private, times)?,
                kind => {
                    let seed = Seed::of_host(url.clone());
                    let scope = Scope { kind: *kind, ..seed.scope };
                    let (allow_private, times) = (*allow_private, times.clone());
                    settings::follow(&path, &[Seed { scope, allow_private, times, ..seed }])?
                }
            };
            rules.iter().try_for_each(|rule| settings::put_rule(&path, rule))?;
            edited
        }
        AdminAction::Notify(rule) => {
            settings::put_rule(&path, rule)?;
            Vec::new()
        }
        AdminAction::RemoveRule(name) => {
            if !known.notify.iter().any(|rule| rule.name == *name) {
                bail!("no rule is named `{name}`: see `perennial notify list`");
            }
            settings::remove_rule(&path, name)?;
            Vec::new()
        }
        AdminAction::Part(name, part) => settings::change(&path, &one(name)?, |seed| part.apply_to(seed))?,
        AdminAction::Retry { target, allow_private } => {
            let detail = if *allow_private { ALLOWS_PRIVATE } else { "" };
            let lines =
                vec![AuditEntry::new(now, who, action.name(), &retried(&known, target)?, detail.to_owned())];
            lines.iter().try_for_each(|line| log.put(line))?;
            return Ok(AdminOutcome { lines, settings: known });
        }
    };
    let line = |edited: &SiteEdit| {
        let name = if edited.is_new || action.name() != "add" { action.name() } else { "set" };
        // The name of the action already contains this.
        let details = edited.changed.iter().filter(|text| !text.starts_with("paused")).cloned();
        AuditEntry::new(now, who, name, edited.url.as_str(), details.collect::<Vec<_>>().join(", "))
    };
    let rule_line = |rule: &NotifyRule| {
        // The receiver's URL may contain a secret.
        let detail = format!("rule `{}` for {}", rule.name, rule.to.kind());
        AuditEntry::new(now, who, "notify", rule.condition.place.name(), detail)
    };
    let lines = edited.iter().map(line);
    let lines: Vec<AuditEntry> = match action {
        AdminAction::Watch { rules, .. } => lines.chain(rules.iter().map(rule_line)).collect(),
        AdminAction::Notify(rule) => vec![rule_line(rule)],
        AdminAction::RemoveRule(name) => {
            vec![AuditEntry::new(now, who, action.name(), "", format!("rule `{name}`"))]
        }
        _ => lines.collect(),
    };
    lines
        .iter()
        .try_for_each(|line| log.put(line))
        .context("the settings are changed, but the audit log lacks the entry")?;
    Ok(AdminOutcome { lines, settings: Settings::load(&path)? })
}

/// Watches a page. A page of a larger site gets its own table, any other page is a site.
fn watch(
    path: &Path,
    known: &Settings,
    url: &Url,
    allow_private: bool,
    times: &VisitTimes,
) -> anyhow::Result<Vec<SiteEdit>> {
    match known.seeds.of_page(url) {
        None => {
            let seed = Seed::of_host(url.clone());
            let scope = Scope { kind: ScopeKind::Page, ..seed.scope };
            settings::follow(path, &[Seed { scope, allow_private, times: times.clone(), ..seed }])
        }
        Some(seed) if seed.scope.kind == ScopeKind::Page => {
            let times = VisitTimes {
                every: times.every.or(seed.times.every),
                hours: times.hours.clone().or_else(|| seed.times.hours.clone()),
            };
            settings::change(path, std::slice::from_ref(url), |seed| Seed {
                times: times.clone(),
                ..seed.clone()
            })
        }
        Some(_) => {
            let own = known.pages.iter().find(|page| page.url == *url);
            let own = own.map(|page| page.times.clone()).unwrap_or_default();
            let times =
                VisitTimes { every: times.every.or(own.every), hours: times.hours.clone().or(own.hours) };
            put_watched(path, known, url.clone(), times)
        }
    }
}

/// Writes the table of a page that a larger site contains.
fn put_watched(path: &Path, known: &Settings, url: Url, times: VisitTimes) -> anyhow::Result<Vec<SiteEdit>> {
    let is_new = known.pages.iter().all(|page| page.url != url);
    let page = WatchedPage { url, times };
    let changed = settings::watch_page(path, &page)?;
    Ok(vec![SiteEdit { url: page.url, is_new, changed }])
}

/// The page with its own table that a name means, if any.
fn watched_page(known: &Settings, name: &str) -> Option<Url> {
    let url = parse_url(name).ok().filter(|url| known.seeds.with_url(url).is_none())?;
    known.pages.iter().any(|page| page.url == url).then_some(url)
}

/// The URL that a name means, if it is a page of a site and not its start.
fn page_of_site(known: &Settings, name: &str) -> Option<Url> {
    let url = parse_url(name).ok().filter(|_| name.contains("://"))?;
    let is_start = known.seeds.with_url(&url).is_some();
    (!is_start && known.seeds.of_page(&url).is_some()).then_some(url)
}

/// The detail of a requested visit that may go to a private address.
pub const ALLOWS_PRIVATE: &str = "allow_private = true";

/// The URL or host to retry: a page of any site that is not paused, or a host with a followed site.
fn retried(known: &Settings, target: &str) -> anyhow::Result<String> {
    let is_host = !target.contains("://");
    let found = match is_host {
        false => {
            let url = parse_url(target).map_err(|hint| anyhow!(hint))?;
            match known.seeds.of_page(&url) {
                None => return Ok(url.to_string()),
                Some(seed) => Some((seed, url.to_string())),
            }
        }
        true => {
            let is_of = |scheme: &str| Url::parse(&format!("{scheme}://{target}/")).ok();
            let urls = ["https", "http"].into_iter().filter_map(is_of);
            let mut owners = urls.filter_map(|url| known.seeds.of_page(&url));
            let seed = known.seeds.iter().find(|seed| parse_site_name(seed.scope.seed.as_str()) == target);
            seed.or_else(|| owners.next()).map(|seed| (seed, target.to_owned()))
        }
    };
    let (seed, target) = found.with_context(|| {
        format!(
            "{target} is not part of a followed site: see `perennial list`, or follow it with `perennial add`"
        )
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
    fn every_action_changes_the_settings_and_is_logged() {
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
        let mut logged = Vec::new();
        audit::each_audit_entry(archive.root(), |line| {
            logged.push(format!("{} {} {}", line.action, line.url, line.detail))
        })
        .unwrap();
        assert_eq!(
            logged,
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
    fn an_impossible_action_is_neither_done_nor_logged() {
        let (_dir, archive) = archive();
        let before = std::fs::read_to_string(archive.settings_path()).unwrap();
        for (fields, expected) in [
            (vec![("act", "pause"), ("url", "b.org")], "b.org is not followed"),
            (vec![("act", "remove"), ("url", "b.org")], "b.org is not followed"),
        ] {
            let error = perform(&archive, &read(&fields).unwrap(), "a test", Timestamp::EPOCH).unwrap_err();
            assert!(error.to_string().contains(expected), "{error:#}");
        }
        assert_eq!(std::fs::read_to_string(archive.settings_path()).unwrap(), before);
        let mut n_entries = 0;
        audit::each_audit_entry(archive.root(), |_| n_entries += 1).unwrap();
        assert_eq!(n_entries, 0);
    }

    #[test]
    fn a_wrong_field_is_named_with_its_hint() {
        for (fields, expected) in [
            (vec![("url", "a.org")], "`act` is missing"),
            (vec![("act", "fly")], "`fly` is not an action"),
            (vec![("act", "add")], "`url` is missing"),
            (vec![("act", "add"), ("url", "mailto:a@b")], "is not an http or https address"),
            (vec![("act", "add"), ("url", "a.org"), ("weight", "-1")], "weight: write a number"),
            (vec![("act", "set"), ("url", "a.org"), ("budget", "many")], "budget: "),
            (vec![("act", "set"), ("url", "a.org"), ("goal", "win")], "goal: "),
            (vec![("act", "pin"), ("url", "a.org"), ("selector", "a:hover")], "selector: this pseudo-class"),
            (vec![("act", "pin"), ("url", "a.org"), ("selector", "a"), ("importance", "2")], "importance: "),
        ] {
            let error = read(&fields).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
