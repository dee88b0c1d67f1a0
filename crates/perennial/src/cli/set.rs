//! `perennial set`: some settings of a followed site -> `[[site]]` in perennial.toml.

use clap::Args;

use super::pause::perform;
use super::watch::note_conflicts;
use super::{Context, Exit};
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
Only the given settings change. A running crawl applies them within a few seconds. An empty value restores the default.

Examples:
  perennial set example.org --weight 2
  perennial set example.org --budget 100/1h --goal balanced
  perennial set example.org --every 15m --hours 'Mon-Fri 08:00-18:00'
  perennial set https://example.org/prices --every 5m    one page of a site
  perennial set https://example.org/ --budget ''";

/// Change the weight, budget, goal or interval of a site, or the interval of a page.
#[derive(Args)]
#[command(after_help = AFTER_HELP, override_usage = "perennial set [OPTIONS] <SITE>")]
#[group(required = true, multiple = true, args = ["weight", "budget", "bytes_per_day", "goal", "every", "hours"])]
pub(super) struct SetArgs {
    /// URL or host of the site, as in `perennial list`
    #[arg(value_name = "SITE")]
    site: String,
    /// Importance relative to other sites: 2 counts twice as much as 1
    #[arg(long, value_name = "NUMBER")]
    weight: Option<String>,
    /// Limit the visits of its pages, such as 100/1h
    #[arg(long, value_name = "N/PERIOD")]
    budget: Option<String>,
    /// Limit the bytes fetched per day, such as 200MB
    #[arg(long, value_name = "BYTES")]
    bytes_per_day: Option<String>,
    /// Optimise for balanced, importance, every-page, coherent or count
    #[arg(long, value_name = "GOAL")]
    goal: Option<String>,
    /// Visit each page at this interval, such as 15m
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// With --every: only at these hours, such as 'Mon-Fri 08:00-18:00'
    #[arg(long, value_name = "HOURS")]
    hours: Option<String>,
}

impl SetArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let action = AdminAction::read(|name| match name {
            "act" => Some("set"),
            "url" => Some(&self.site),
            "weight" => self.weight.as_deref(),
            "budget" => self.budget.as_deref(),
            "bytes_per_day" => self.bytes_per_day.as_deref(),
            "goal" => self.goal.as_deref(),
            "every" => self.every.as_deref(),
            "hours" => self.hours.as_deref(),
            _ => None,
        });
        let done = perform(context, &action.map_err(anyhow::Error::msg)?, "set")?;
        note_conflicts(context)?;
        Ok(done)
    }
}
