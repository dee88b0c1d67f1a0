//! `perennial part`: parts of a site's pages that count most, or not at all -> `pin` and `ignore` of `[[site]]` in perennial.toml.

use std::io::{self, Write};

use clap::Subcommand;
use perennial_core::page::segment::Selector;
use serde::Serialize;

use super::{Context, Exit};
use perennial_archive::settings::PinnedPart;
use perennial_archive::settings::parts::parse_share;
use perennial_archive::settings::site::parse_selector;
use perennial_engine::admin::{AdminAction, PartAction};
use perennial_engine::analyse::PartEffect;

const AFTER_HELP: &str = "\
The command reports the effect on the edits of the last 30 days: how many touched the part, and how many touched nothing else. With \
--dry-run it only reports.

Examples:
  perennial part pin example.org --selector '#headlines' --dry-run
  perennial part pin https://example.org/ --selector article.main --importance 0.6
  perennial part ignore example.org --selector '.weather, .stock-ticker'
  perennial part list";

/// Pin or ignore parts of a site's pages.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct PartArgs {
    #[command(subcommand)]
    command: PartCommand,
}

#[derive(Subcommand)]
enum PartCommand {
    Pin(PinArgs),
    Ignore(IgnoreArgs),
    List(ListPartsArgs),
}

impl PartArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            PartCommand::Pin(args) => args.run(context),
            PartCommand::Ignore(args) => args.run(context),
            PartCommand::List(args) => args.run(context),
        }
    }
}

/// Treat changes in a part of the page as most important.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
struct PinArgs {
    #[command(flatten)]
    part: SelectorArgs,
    /// The part's share of the page's importance, up to 1 [default: 0.9 for all pins without a share together]
    #[arg(long, value_name = "X", value_parser = parse_share)]
    importance: Option<f32>,
}

/// Ignore changes in a part of a site's pages.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
struct IgnoreArgs {
    #[command(flatten)]
    part: SelectorArgs,
}

/// List the pinned and ignored parts.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  perennial part list\n  perennial part list example.org --json")]
struct ListPartsArgs {
    /// URL or host of a site [default: all sites]
    site: Option<String>,
}

#[derive(clap::Args)]
struct SelectorArgs {
    /// URL or host of a followed site
    site: String,
    /// CSS selector of the part
    #[arg(long, value_name = "CSS", value_parser = parse_selector)]
    selector: Selector,
    /// Report the effect without writing anything
    #[arg(long)]
    dry_run: bool,
}

/// The part and its effect on past edits.
#[derive(Serialize)]
struct PartReport {
    site: String,
    selector: String,
    is_written: bool,
    #[serde(flatten)]
    effect: PartEffect,
}

impl PinArgs {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let selector = self.part.selector.clone();
        self.part.run(context, PartAction::Pin(PinnedPart { selector, importance: self.importance }))
    }
}

impl IgnoreArgs {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let action = PartAction::Ignore(self.part.selector.clone());
        self.part.run(context, action)
    }
}

impl SelectorArgs {
    fn run(self, context: &Context, action: PartAction) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let seed = archive.settings().seeds.named(&self.site)?;
        let bar = context.progress_count(0, "reading changes");
        let effect = action.effect(&archive, seed, usize::MAX, &|| bar.inc(1));
        bar.finish_and_clear();
        let (effect, site) = (effect?, seed.scope.seed.to_string());
        if !self.dry_run {
            context.perform(&archive, &AdminAction::Part(site.clone(), action))?;
        }
        let report =
            PartReport { site, selector: self.selector.to_string(), is_written: !self.dry_run, effect };
        context.print(&report, |out| report.write(out))?;
        Ok(Exit::Done)
    }
}

#[derive(Serialize)]
struct PartRow {
    site: String,
    selector: String,
    /// `pin` or `ignore`.
    action: &'static str,
    importance: Option<f32>,
}

impl ListPartsArgs {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let seeds = &archive.settings().seeds;
        let only = self.site.as_deref().map(|site| seeds.named(site)).transpose()?;
        let mut rows = Vec::new();
        for seed in seeds.iter().filter(|seed| only.is_none_or(|only| only.scope.seed == seed.scope.seed)) {
            let row = |selector: &Selector, action, importance| PartRow {
                site: seed.scope.seed.to_string(),
                selector: selector.to_string(),
                action,
                importance,
            };
            rows.extend(seed.parts.pinned().iter().map(|part| row(&part.selector, "pin", part.importance)));
            rows.extend(seed.parts.ignored().iter().map(|selector| row(selector, "ignore", None)));
        }
        context.print(&rows, |out| rows.iter().try_for_each(|row| row.write(out)))?;
        if rows.is_empty() {
            context.note("no part is pinned or ignored: use `perennial part pin` or `perennial part ignore`");
        }
        Ok(Exit::Done)
    }
}

impl PartRow {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let importance = self.importance.map(|share| format!(" (importance {share})")).unwrap_or_default();
        writeln!(out, "{:<6} {} {}{importance}", self.action, self.site, self.selector)
    }
}

impl PartReport {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let effect = &self.effect;
        let PartEffect { n_changes, n_touching, n_inside, n_other, .. } = effect;
        writeln!(
            out,
            "{n_changes} edits in the last 30 days: {n_touching} touched the part, {n_inside} touched nothing else"
        )?;
        writeln!(
            out,
            "{n_other} would have had a different importance, in total {:.2} instead of {:.2}",
            effect.importance_then, effect.importance
        )?;
        for other in &effect.strongest {
            writeln!(
                out,
                "  {:.2} -> {:.2}  {} {}",
                other.importance, other.importance_then, other.time, other.url
            )?;
        }
        if effect.n_unread > 0 {
            writeln!(out, "{} more edits are not HTML", effect.n_unread)?;
        }
        match self.is_written {
            false => writeln!(out, "nothing was written"),
            true => {
                writeln!(out, "written for {}; it applies from the next capture of each page", self.site)
            }
        }
    }
}
