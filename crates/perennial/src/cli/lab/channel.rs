//! `perennial lab channel`: a feed -> its channel page at a time between two captures, inferred from the items.

use std::io::Write;

use clap::Args;
use perennial_core::schedule::units;
use perennial_core::time::Timestamp;
use url::Url;

use crate::cli::context::{document_on_stdout, not_found};
use crate::cli::{Context, Exit};
use perennial_archive::SharedSnapshot;
use perennial_archive::settings::site::parse_url;
use perennial_lab::feeds::inferred::{InferredChannel, fill_template, infer_channel};

const AFTER_HELP: &str = "\
A channel page is the page that a feed belongs to. Between two captures of the page, the feed shows which items were published. The \
result is marked as inferred and never stored as a capture. --html puts these items into the list of the nearest capture, or into a \
plain page if that capture has no such list. The page runs no scripts and fetches nothing.

Examples:
  perennial lab channel https://example.org/@2026-11-16T09:30:00Z
  perennial lab channel https://example.org/@yesterday --html > page.html
  perennial lab channel https://example.org/@20261116093000 --json";

/// Infer a page between two captures from the items of its feed.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Channel {
    /// URL and time
    #[arg(value_name = "URL@TIME", value_parser = parse_place)]
    place: (Url, Timestamp),
    /// Write a page in HTML
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

fn parse_place(text: &str) -> Result<(Url, Timestamp), String> {
    let (url, time) =
        text.rsplit_once('@').ok_or("write URL@TIME, such as https://example.org/@2026-11-16")?;
    let time = units::parse_time(time, perennial_archive::now()).map_err(|error| error.to_string())?;
    Ok((parse_url(url)?, time))
}

impl Channel {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let shared = SharedSnapshot::new(context.snapshot()?);
        let (url, at) = self.place;
        let inferred = {
            let snapshot = shared.lock();
            let store = snapshot.store();
            let page = store.page(url.as_str())?.ok_or_else(|| not_found(store, url.as_str()))?;
            infer_channel(store, &page, at)?
        };
        let Some(inferred) = inferred else {
            anyhow::bail!(
                "no feed of {url} has an item before {at}; `perennial feed list --json` shows the feeds with their channel pages"
            );
        };
        if self.html {
            let html = match fill_template(&shared, &inferred)? {
                Some(html) => html,
                None => inferred.to_html(&feed_title(&shared, &inferred)?),
            };
            let mut out = document_on_stdout();
            out.write_all(html.as_bytes())?;
            out.flush()?;
            return Ok(Exit::Done);
        }
        context.print(&inferred, |out| print(&inferred, out))?;
        Ok(Exit::Done)
    }
}

fn feed_title(shared: &SharedSnapshot, inferred: &InferredChannel) -> anyhow::Result<String> {
    let feeds = shared.lock().store().feeds_to_poll()?;
    let feed = feeds.into_iter().find(|feed| inferred.feeds.contains(&feed.url));
    Ok(feed.map(|feed| feed.title).unwrap_or_default())
}

fn print(inferred: &InferredChannel, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "Inferred, not captured: {} at {}", inferred.url, inferred.at)?;
    writeln!(out, "nearest capture: {}", inferred.nearest_capture.as_deref().unwrap_or("none"))?;
    for item in &inferred.items {
        let time = item.item.published.as_deref().unwrap_or(&item.item.first_seen);
        let known = if item.was_seen { "" } else { " (published by then, seen later)" };
        let stub = if item.is_stub { " (stub)" } else { "" };
        writeln!(out, "{time}  {}{known}{stub}", item.item.title)?;
        writeln!(out, "    {}", item.item.link.as_deref().unwrap_or("no page"))?;
    }
    Ok(())
}
