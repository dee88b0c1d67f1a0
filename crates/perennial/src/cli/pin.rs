//! `perennial pin` and `perennial ignore`: parts of a site's pages that count most, or not at all -> `[[site]]` in perennial.toml.

use perennial_core::segment::Selector;
use perennial_core::time::Span;
use serde::Serialize;
use url::Url;

use super::{Context, Exit};
use crate::analyse::{Filters, PartEffect};
use crate::archive::{Archive, SharedSnapshot};
use crate::operate::{Act, PartAct};
use crate::settings::parts::parse_share;
use crate::settings::site::parse_selector;
use crate::settings::{PinnedPart, Seed};

const PIN_HELP: &str = "\
SITE is the address of a site that is followed, or its host; `perennial list` shows them. Before anything is written, the edits of the last 30 days \
are looked at: how many of them touched the part, and how many nothing else.

Examples:
  perennial pin example.org --selector '#headlines' --dry-run
  perennial pin https://example.org/ --selector article.main --importance 0.6
  perennial ignore example.org --selector '.weather, .stock-ticker'";

/// Let a part of a site's pages count most.
#[derive(clap::Args)]
#[command(after_help = PIN_HELP)]
pub(super) struct Pin {
    #[command(flatten)]
    part: Part,
    /// Share of the page's importance that the part has, above 0 and at most 1 [default: all pins without one have 0.9 together]
    #[arg(long, value_name = "X", value_parser = parse_share)]
    importance: Option<f32>,
}

/// Leave a part of a site's pages out of the comparison.
#[derive(clap::Args)]
#[command(after_help = PIN_HELP)]
pub(super) struct Ignore {
    #[command(flatten)]
    part: Part,
}

#[derive(clap::Args)]
struct Part {
    /// The site: its address or its host
    site: String,
    /// CSS selector of the part
    #[arg(long, value_name = "CSS", value_parser = parse_selector)]
    selector: Selector,
    /// Only say what it would have changed
    #[arg(long)]
    dry_run: bool,
}

/// What was written, and what it would have changed.
#[derive(Serialize)]
struct Told {
    site: String,
    selector: String,
    is_written: bool,
    #[serde(flatten)]
    effect: PartEffect,
}

impl Pin {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let importance = self.importance;
        let share = importance.map_or("nine tenths, with other pins".to_owned(), |share| share.to_string());
        let words = move |effect: &PartEffect| {
            format!(
                "pinned, the part has {share} of each page's importance: {} edits that touched it had {:.2} of {:.2} in all",
                effect.n_touching, effect.importance_touching, effect.importance
            )
        };
        let act = PartAct::Pin(PinnedPart { selector: self.part.selector.clone(), importance });
        self.part.run(context, words, act)
    }
}

impl Ignore {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let words = |effect: &PartEffect| {
            format!(
                "ignored, {} edits that were inside of it alone would have been none: {:.2} of {:.2} in all",
                effect.n_inside, effect.importance_inside, effect.importance
            )
        };
        let act = PartAct::Ignore(self.part.selector.clone());
        self.part.run(context, words, act)
    }
}

impl Part {
    fn run(
        self,
        context: &Context,
        words: impl Fn(&PartEffect) -> String,
        part: PartAct,
    ) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let seed = archive.settings().seeds.named(&self.site)?;
        let effect = self.effect(context, &archive, seed)?;
        if !self.dry_run {
            context.perform(&archive, &Act::Part(self.site.clone(), part))?;
        }
        let site = seed.scope.seed.to_string();
        let told = Told { site, selector: self.selector.to_string(), is_written: !self.dry_run, effect };
        context.print(&told, |out| {
            let PartEffect { n_changes, n_touching, n_inside, .. } = effect;
            writeln!(
                out,
                "{n_changes} edits in the last 30 days: {n_touching} touched it, {n_inside} nothing else"
            )?;
            writeln!(out, "{}", words(&effect))?;
            if effect.n_unread > 0 {
                writeln!(out, "{} more edits cannot be read as HTML", effect.n_unread)?;
            }
            match self.dry_run {
                true => writeln!(out, "nothing was written"),
                false => {
                    writeln!(out, "written for {}; it holds from the next capture of each page on", told.site)
                }
            }
        })?;
        Ok(Exit::Done)
    }

    fn effect(&self, context: &Context, archive: &Archive, seed: &Seed) -> anyhow::Result<PartEffect> {
        let snapshot = SharedSnapshot::new(archive.snapshot()?);
        let latest = snapshot.lock().store().latest_capture_time()?;
        let since = latest.map(|latest| latest - Span::from_hours(24 * 30));
        let filters = Filters::load(Some(archive.root()))?;
        let seeds = &archive.settings().seeds;
        let is_of = |url: &str| {
            let owner =
                Url::parse(url).ok().and_then(|url| seeds.of_page(&url).map(|owner| &owner.scope.seed));
            owner == Some(&seed.scope.seed)
        };
        let bar = context.progress_count(0, "reading changes");
        let effect = PartEffect::since(&snapshot, &filters, &self.selector, since, is_of, &|| bar.inc(1));
        bar.finish_and_clear();
        effect
    }
}
