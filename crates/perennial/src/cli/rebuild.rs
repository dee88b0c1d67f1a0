//! `perennial rebuild`: a channel page for a time between its captures, inferred from what its feed knew by then.

use std::io::Write;

use clap::Args;
use perennial_core::amounts;
use perennial_core::time::Timestamp;
use url::Url;

use super::context::{document_on_stdout, not_found};
use super::{Context, Exit};
use crate::archive;
use crate::feeds::inferred::{Inferred, infer};
use crate::settings::site::parse_address;

const AFTER_HELP: &str = "\
A channel page is the page that a feed belongs to. Between two captures of it nobody looked, but its feed knows what was published by
then. The result is marked as inferred and is never stored as a capture.

Examples:
  perennial rebuild https://example.org/@2026-11-16T09:30:00Z
  perennial rebuild https://example.org/@yesterday --html > page.html
  perennial rebuild https://example.org/@20261116093000 --json";

/// Infer a channel page for a time between its captures, from the items of its feed.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Rebuild {
    /// Address and time, with @ between them
    #[arg(value_name = "URL@TIME", value_parser = parse_place)]
    place: (Url, Timestamp),
    /// Write a page in HTML
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

fn parse_place(text: &str) -> Result<(Url, Timestamp), String> {
    let (url, time) = text
        .rsplit_once('@')
        .ok_or("write an address, @ and a time, such as https://example.org/@2026-11-16")?;
    let time = amounts::parse_time(time, archive::now()).map_err(|error| error.to_string())?;
    Ok((parse_address(url)?, time))
}

impl Rebuild {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let (url, at) = self.place;
        let page = store.page(url.as_str())?.ok_or_else(|| not_found(store, url.as_str()))?;
        let Some(inferred) = infer(store, &page, at)? else {
            anyhow::bail!(
                "no feed of {url} knew an item at {at}: `perennial feeds` shows the feeds with their channel pages and their first captures"
            );
        };
        if self.html {
            let title = store
                .feeds_to_poll()?
                .into_iter()
                .find(|feed| inferred.feeds.contains(&feed.url))
                .map(|feed| feed.title);
            let mut out = document_on_stdout();
            out.write_all(inferred.to_html(&title.unwrap_or_default()).as_bytes())?;
            out.flush()?;
            return Ok(Exit::Done);
        }
        context.print(&inferred, |out| print(&inferred, out))?;
        Ok(Exit::Done)
    }
}

fn print(inferred: &Inferred, out: &mut dyn Write) -> std::io::Result<()> {
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
