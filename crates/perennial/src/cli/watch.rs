//! `perennial watch`: a page and its receivers -> `[[site]]` and `[[notify]]` in perennial.toml.

use std::io::{self, Write};

use clap::Args;
use perennial_core::notice::{ChangeCondition, ChangeKind, PageFilter, Wording};
use perennial_core::page::segment::Selector;
use perennial_core::schedule::units::write_span;
use perennial_core::time::{Span, WeeklyHours};
use perennial_core::url::canonical::without_scheme;
use perennial_core::url::scope::ScopeKind;
use serde::Serialize;
use url::Url;

use super::{Context, Exit};
use perennial_archive::Archive;
use perennial_archive::lock::is_being_written;
use perennial_archive::settings::notify::{DEFAULT_FAILURES, parse_name};
use perennial_archive::settings::site::{parse_selector, parse_url};
use perennial_archive::settings::times::{parse_every, parse_hours};
use perennial_archive::settings::{NoticeReceiver, NotifyRule, VisitTimes};
use perennial_engine::admin::AdminAction;
use perennial_engine::learn::{FollowedSites, conflicts};
use perennial_engine::reach::{ReachTarget, check_robots};

const AFTER_HELP: &str = "\
TARGET is webhook:URL (JSON), slack:URL, ntfy:URL, apprise:URL, email:ADDRESS (by the server in [smtp] of perennial.toml), or \
command:PROGRAM, which receives JSON on standard input. Without --notify the page is only followed; `perennial serve` publishes its \
changes as a feed. The archive is created if missing.

Examples:
  perennial watch https://example.org/prices --every 5m --notify ntfy:https://ntfy.example/my-topic
  perennial watch https://example.org/prices --selector '#prices' --notify email:me@example.org
  perennial watch https://example.org/ --notify slack:https://hooks.slack.example/x --min-importance 0.2
  perennial watch https://example.org/jobs --notify 'command:notify-send Jobs' --appears engineer";

/// Follow one page and report its changes.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct WatchArgs {
    /// URL of the page; https is the default scheme
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: Url,
    /// Only changes of the text in the part with this CSS selector
    #[arg(long, value_name = "CSS", value_parser = parse_selector)]
    selector: Option<Selector>,
    /// Visit the page at this interval, such as 5m [default: that of its site, else 15m]
    #[arg(long, value_name = "TIME", value_parser = parse_every)]
    every: Option<Span>,
    /// Visit it only at these hours of its site's time zone, such as 'Mon-Fri 08:00-18:00'
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    hours: Option<WeeklyHours>,
    /// Receiver of the notices; repeatable
    #[arg(long, value_name = "TARGET")]
    notify: Vec<NoticeReceiver>,
    /// Only changes of at least this importance, 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = parse_share)]
    min_importance: f64,
    /// Only changes in which these words, or matches of a /regular expression/, appeared
    #[arg(long, value_name = "WORDS")]
    appears: Option<Wording>,
    /// Only changes in which they vanished
    #[arg(long, value_name = "WORDS")]
    vanishes: Option<Wording>,
    /// Only this kind: edited, retitled, new, vanished, returned or redirected; repeatable
    #[arg(long, value_name = "KIND")]
    kind: Vec<ChangeKind>,
    /// Say so after this many visits in a row that show no page or no selected part; 0 for never
    #[arg(long, value_name = "N", default_value_t = DEFAULT_FAILURES)]
    failures: u32,
    /// Name of the rule [default: the page without its scheme]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,
    /// Allow a host with a private or loopback address
    #[arg(long)]
    allow_private: bool,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

#[derive(Serialize)]
struct WatchReport {
    url: String,
    is_new: bool,
    /// The interval of its visits.
    every: Option<String>,
    hours: Option<String>,
    rules: Vec<String>,
}

impl WatchArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        let is_new = archive.settings().seeds.of_page(&self.url).is_none();
        let times = VisitTimes { every: self.every, hours: self.hours.clone() };
        let rules = self.rules();
        let action = AdminAction::Watch {
            url: self.url.clone(),
            scope: ScopeKind::Page,
            allow_private: self.allow_private,
            times,
            rules: rules.clone(),
        };
        context.perform(&archive, &action)?;
        // Opened again, because the settings have changed.
        let archive = context.open()?;
        let every = FollowedSites::load(&archive, &archive.store()?)?.visit_interval(self.url.as_str());
        let report = WatchReport {
            url: self.url.to_string(),
            is_new,
            every: every.as_ref().map(|every| write_span(every.interval)),
            hours: every.and_then(|every| every.hours).map(|hours| hours.to_string()),
            rules: rules.iter().map(|rule| rule.name.clone()).collect(),
        };
        context.print(&report, |out| self.print(context, &archive, &report, &rules, out))?;
        check_reach(context, &archive, std::slice::from_ref(&self.url), self.allow_private);
        note_conflicts(context)?;
        Ok(Exit::Done)
    }

    fn print(
        &self,
        context: &Context,
        archive: &Archive,
        report: &WatchReport,
        rules: &[NotifyRule],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let folder = match context.archive_option() {
            Some(dir) => format!("--archive {} ", dir.display()),
            None => String::new(),
        };
        let followed = if report.is_new { "follows" } else { "followed already:" };
        writeln!(out, "{followed} {}", self.url)?;
        if let Some(every) = &report.every {
            let hours = report.hours.as_ref().map(|hours| format!(", {hours}")).unwrap_or_default();
            let hint = if self.every.is_some() { "" } else { "; --every TIME sets another interval" };
            writeln!(out, "visits it every {every}{hours}{hint}")?;
        }
        for rule in rules {
            writeln!(out, "rule `{}` notifies {}", rule.name, rule.to)?;
        }
        match rules.is_empty() {
            true => writeln!(
                out,
                "no notification rule: feed readers can use /changes.atom of `perennial {folder}serve`"
            )?,
            false => writeln!(out, "try it: perennial {folder}notify test")?,
        }
        match is_being_written(archive.root()) {
            true => writeln!(out, "the running crawl visits it within seconds"),
            false => writeln!(out, "start it: perennial {folder}run"),
        }
    }

    fn rules(&self) -> Vec<NotifyRule> {
        let usual = || without_scheme(self.url.as_str()).to_owned();
        let name = self.name.clone().unwrap_or_else(usual);
        let condition = ChangeCondition {
            place: PageFilter::Page(self.url.to_string()),
            selector: self.selector.clone(),
            min_importance: self.min_importance,
            kinds: self.kind.clone(),
            appears: self.appears.clone(),
            vanishes: self.vanishes.clone(),
            ..ChangeCondition::default()
        };
        NotifyRule::for_receivers(&name, &self.notify, &condition, self.failures)
    }
}

/// Checks URLs before a crawl does, and prints the obstacles.
pub(super) fn check_reach(context: &Context, archive: &Archive, urls: &[Url], allow_private: bool) {
    let seeds = &archive.settings().seeds;
    let target = |url: &Url| ReachTarget {
        url: url.clone(),
        allow_private: allow_private || seeds.of_page(url).is_some_and(|seed| seed.allow_private),
        every: archive.settings().user_interval(url),
    };
    let targets: Vec<ReachTarget> = urls.iter().map(target).collect();
    check_robots(archive, &targets).iter().for_each(|problem| context.note(problem));
}

/// Prints which intervals the budgets and the pauses between fetches do not allow.
pub(super) fn note_conflicts(context: &Context) -> anyhow::Result<()> {
    let archive = context.open()?;
    let store = archive.store()?;
    let table = &archive.settings().crawl;
    let followed = FollowedSites::load(&archive, &store)?;
    let (budget, delay) = (table.allowance.visits, table.politeness.min_delay);
    conflicts(&store, &followed, budget, delay)?.iter().for_each(|conflict| context.note(conflict));
    Ok(())
}
