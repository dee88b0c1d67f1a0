//! `perennial watch`: a page and its receivers -> `[[site]]` and `[[notify]]` in perennial.toml.

use clap::Args;
use perennial_core::notice::{ChangeCondition, ChangeKind, PageFilter, Wording};
use perennial_core::page::segment::Selector;
use perennial_core::url::canonical::without_scheme;
use perennial_core::url::scope::{Scope, ScopeKind};
use serde::Serialize;
use url::Url;

use super::{Context, Exit};
use perennial_archive::settings::notify::parse_name;
use perennial_archive::settings::site::{parse_selector, parse_url};
use perennial_archive::settings::{NoticeReceiver, NotifyRule, Seed, put_rule};
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
TARGET is webhook:URL (JSON), slack:URL, ntfy:URL, apprise:URL, email:ADDRESS (by the server in [smtp] of perennial.toml), or \
command:PROGRAM, which receives JSON on standard input. Without --notify the page is only followed; `perennial serve` publishes its \
changes as a feed. The archive is created if missing.

Examples:
  perennial watch https://example.org/prices --notify ntfy:https://ntfy.example/my-topic
  perennial watch https://example.org/prices --selector '#prices' --notify email:me@example.org
  perennial watch https://example.org/ --notify slack:https://hooks.slack.example/x --min-importance 0.2
  perennial watch https://example.org/jobs --notify 'command:notify-send Jobs' --appears engineer";

/// Follow one page and report its changes.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Watch {
    /// URL of the page; https is the default scheme
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: Url,
    /// Only changes of the text in the part with this CSS selector
    #[arg(long, value_name = "CSS", value_parser = parse_selector)]
    selector: Option<Selector>,
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
    rules: Vec<String>,
}

impl Watch {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        let path = archive.settings_path();
        let is_new = archive.settings().seeds.of_page(&self.url).is_none();
        if is_new {
            let seed = Seed::of_host(self.url.clone());
            let scope = Scope { kind: ScopeKind::Page, ..seed.scope };
            let seed = Seed { scope, allow_private: self.allow_private, ..seed };
            context.perform(&archive, &AdminAction::Follow(vec![seed]))?;
        }
        let rules = self.rules();
        rules.iter().try_for_each(|rule| put_rule(&path, rule))?;
        let names = rules.iter().map(|rule| rule.name.clone()).collect();
        let report = WatchReport { url: self.url.to_string(), is_new, rules: names };
        let folder = match context.archive_option() {
            Some(dir) => format!("--archive {} ", dir.display()),
            None => String::new(),
        };
        context.print(&report, |out| {
            let followed = if is_new { "follows" } else { "followed already:" };
            writeln!(out, "{followed} {}", self.url)?;
            for rule in &rules {
                writeln!(out, "rule `{}` notifies {}", rule.name, rule.to)?;
            }
            match rules.is_empty() {
                true => writeln!(
                    out,
                    "no notification rule: feed readers can use /changes.atom of `perennial {folder}serve`"
                )?,
                false => writeln!(out, "try it: perennial {folder}notify test")?,
            }
            writeln!(out, "start it: perennial {folder}run")
        })?;
        Ok(Exit::Done)
    }

    /// One rule per receiver.
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
        let rule = |(number, to): (usize, &NoticeReceiver)| NotifyRule {
            name: if number == 0 { name.clone() } else { format!("{name} {}", number + 1) },
            to: to.clone(),
            condition: condition.clone(),
            link: None,
            token_file: None,
        };
        self.notify.iter().enumerate().map(rule).collect()
    }
}
