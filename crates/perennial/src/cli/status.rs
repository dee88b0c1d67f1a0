//! `perennial status`: an archive -> the numbers of its contents, and the state of its crawl.

use std::path::Path;

use serde::Serialize;

use super::activity::Activity;
use super::{Context, Exit, context::human_bytes};
use perennial_archive::CrawlRecord;
use perennial_archive::store::{ArchiveCounts, SiteCounts, TextCounts, Texts};
use perennial_engine::notify::{SilentRule, silent_rules};

/// Show what the archive contains, its last and next visits, failures and unsent notices
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  perennial status\n  perennial status --sites 50\n  perennial status --texts --json"
)]
pub(super) struct StatusArgs {
    /// List the N largest sites
    #[arg(long, default_value_t = 10, value_name = "N")]
    sites: usize,
    /// Show the size of the text index too
    #[arg(long)]
    texts: bool,
}

#[derive(Serialize)]
struct StatusReport {
    archive: String,
    /// What the running crawl does; none without one.
    crawl: Option<RunningCrawl>,
    #[serde(flatten)]
    activity: Activity,
    #[serde(flatten)]
    counts: ArchiveCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    texts: Option<TextCounts>,
    silent_rules: Vec<SilentRule>,
    sites: Vec<SiteCounts>,
}

#[derive(Serialize)]
struct RunningCrawl {
    began: String,
    budget: Option<String>,
    fetching: Vec<String>,
    n_waiting: u64,
}

impl RunningCrawl {
    fn load(root: &Path) -> Option<RunningCrawl> {
        let CrawlRecord { began, budget, fetching, n_waiting, .. } = CrawlRecord::of_running(root)?;
        let fetching = fetching.into_iter().map(|fetch| fetch.url).collect();
        Some(RunningCrawl { began, budget, fetching, n_waiting })
    }
}

impl StatusArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let texts = match self.texts {
            true => {
                Texts::open_read(&snapshot.archive().texts_path())?.map(|texts| texts.counts()).transpose()?
            }
            false => None,
        };
        let report = StatusReport {
            archive: snapshot.archive().root().display().to_string(),
            crawl: RunningCrawl::load(snapshot.archive().root()),
            activity: Activity::load(&snapshot)?,
            counts: store.counts(snapshot.archive().horizon())?,
            texts,
            silent_rules: silent_rules(snapshot.archive())?,
            sites: store.sites()?.into_iter().take(self.sites).collect(),
        };
        context.print(&report, |out| print(&report, out))?;
        Ok(Exit::Done)
    }
}

fn print(report: &StatusReport, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let counts = &report.counts;
    writeln!(out, "archive   {}", report.archive)?;
    if let Some(crawl) = &report.crawl {
        let budget =
            crawl.budget.as_ref().map_or("no budget".to_owned(), |budget| format!("budget {budget}"));
        writeln!(
            out,
            "crawl     running since {}, {budget}, {} in flight, {} waiting for their hosts",
            crawl.began,
            crawl.fetching.len(),
            crawl.n_waiting
        )?;
        crawl.fetching.iter().try_for_each(|url| writeln!(out, "          fetching {url}"))?;
    }
    report.activity.print(out)?;
    writeln!(out, "files     {} WARC, {}", counts.n_files, human_bytes(counts.warc_bytes))?;
    writeln!(out, "sites     {}", counts.n_sites)?;
    writeln!(out, "pages     {}, and {} known from links", counts.n_pages, counts.n_pages_linked_only)?;
    writeln!(out, "captures  {}, {} of them revisits", counts.n_captures, counts.n_revisits)?;
    if counts.n_unfounded > 0 {
        writeln!(
            out,
            "unfounded {} revisits, whose payload is in no record of this archive",
            counts.n_unfounded
        )?;
    }
    writeln!(out, "versions  {}, {} worth indexing", counts.n_versions, counts.n_indexed)?;
    if counts.n_left_out > 0 {
        writeln!(out, "reduced   {} unimportant versions, stored as deltas", counts.n_left_out)?;
    }
    let quarantine = &counts.quarantine;
    if *quarantine != Default::default() {
        writeln!(
            out,
            "quarantine {} records that cannot be captures, {} captures with wrong digests, {} that could not be analysed: see \
             `perennial verify`",
            quarantine.n_records, quarantine.n_mismatching, quarantine.n_unread
        )?;
    }
    if let Some(texts) = &report.texts {
        let (all, important) = (texts.n_texts, texts.n_important_texts);
        writeln!(
            out,
            "texts     {all} passages with {} presences, {} of text, {} with the index\n          --important searches {important} of them, {} of text; \
             {} are from unimportant versions only",
            texts.n_presences,
            human_bytes(texts.text_bytes),
            human_bytes(texts.n_bytes),
            human_bytes(texts.important_text_bytes),
            all - important
        )?;
    }
    if let (Some(first), Some(last)) = (&counts.first_capture, &counts.last_capture) {
        writeln!(out, "from      {first}\nto        {last}")?;
    }
    if counts.n_future > 0 {
        writeln!(
            out,
            "future    {} captures are dated in the future and count only then: see `perennial verify`",
            counts.n_future
        )?;
    }
    for rule in &report.silent_rules {
        writeln!(out, "silent    {rule}")?;
    }
    if !report.sites.is_empty() {
        writeln!(out, "\n{:>8} {:>9}  site", "pages", "captures")?;
    }
    for site in &report.sites {
        let host = if site.host.is_empty() { "(no host)" } else { &site.host };
        writeln!(out, "{:>8} {:>9}  {host}", site.n_pages, site.n_captures)?;
    }
    Ok(())
}
