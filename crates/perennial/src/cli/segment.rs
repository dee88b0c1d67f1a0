//! `perennial segment`: a page -> the blocks that a reader sees.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use perennial_core::layout::Layout;
use perennial_core::segment::{Block, BlockTree, SegmentConfig, draw_svg, segment, vixml};
use perennial_render::chromium::Ending;
use perennial_render::launch::LaunchOptions;
use perennial_render::picture::draw_png;
use perennial_render::{BrowserOptions, BrowserPage, Chromium, Limits, Lookup, Pool, WorkerCommand};
use serde_json::{Value, json};

use super::context::document_on_stdout;
use super::{Context, Exit};
use crate::analyse::{LoadedPage, PageSpec};
use crate::archive::is_archive;

const AFTER_HELP: &str = "\
PAGE is a file, a page of the archive (URL@TIME, or URL@ for the latest), or a live http address: HTML, Vi-XML, PDF,
JSON, CSV, XML, a feed or plain text.
`layout` runs no scripts and needs no browser; `chromium` does and needs one. Trees of the two are not to be
compared with each other.

Examples:
  perennial segment page.html --format svg --output page.svg
  perennial segment https://news.example/@20261116 --renderer chromium --format png --output page.png
  perennial segment https://news.example/ --coherence 8 --format json";

/// Shows the blocks of a page as a reader sees them.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Segment {
    /// A file, an archived page (URL@TIME), or a live address
    page: PageSpec,
    /// Address of the page, for a file: links resolve against it
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// What lays the page out
    #[arg(long, value_enum, default_value_t = SegmentRenderer::Layout)]
    renderer: SegmentRenderer,
    /// How finely to cut, 1 (coarse) to 10 (fine)
    #[arg(long, value_name = "1..10", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=10))]
    coherence: u8,
    /// What to write [default: vixml, or json with --json]
    #[arg(long, value_enum)]
    format: Option<SegmentFormat>,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Ask hosts with private and loopback addresses too
    #[arg(long)]
    allow_private: bool,
    /// Run the browser without its sandbox, where it does not start otherwise; only for pages that you trust
    #[arg(long)]
    no_sandbox: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum SegmentRenderer {
    /// The embedded engine: milliseconds, no scripts
    Layout,
    /// Chromium: scripts run
    Chromium,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum SegmentFormat {
    /// XML with blocks, links, images, texts
    Vixml,
    /// The same as JSON
    Json,
    /// A drawing of the page with its blocks
    Svg,
    /// A picture of the same, with chromium over a screenshot
    Png,
}

/// A layout and, from a browser, the picture of the page.
struct Seen {
    layout: Layout<'static>,
    screenshot: Option<Vec<u8>>,
}

impl Segment {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let format =
            self.format.unwrap_or(if context.json { SegmentFormat::Json } else { SegmentFormat::Vixml });
        let snapshot = self.page.snapshot(|| context.snapshot())?;
        let mut page = self.page.load(snapshot.as_ref(), self.allow_private)?;
        if let (PageSpec::File(_), Some(url)) = (&self.page, &self.url) {
            page.url.clone_from(url);
        }
        if let Some(note) = &page.note {
            context.note(note);
        }
        if let Some(mut tree) = page.document.take() {
            tree.url = page.url;
            self.write(&render(format, &tree, None)?)?;
            return Ok(Exit::Done);
        }
        let seen = self.see(context, &page, format == SegmentFormat::Png)?;
        let config =
            SegmentConfig { coherence: self.coherence, ..config_of(context, &self.page, &page.url)? };
        let mut tree = segment(&seen.layout, &config);
        (tree.url, tree.version) = (page.url, page.version);
        self.write(&render(format, &tree, Some(&seen))?)?;
        Ok(Exit::Done)
    }

    fn see(&self, context: &Context, page: &LoadedPage<'_>, wants_screenshot: bool) -> anyhow::Result<Seen> {
        if self.renderer == SegmentRenderer::Chromium {
            return self.see_in_browser(context, page, wants_screenshot);
        }
        let lookup: &Lookup = &|url: &str| page.requisite(url);
        let command =
            WorkerCommand { program: std::env::current_exe()?, arguments: vec!["render-worker".into()] };
        let rendered = Pool::new(command, Limits::default()).layout(&page.html, &page.url, lookup);
        if let Some(fallback) = rendered.fallback {
            context.note(format_args!("{fallback}: blocks come from the page's tags alone"));
        }
        Ok(Seen { layout: rendered.layout, screenshot: None })
    }

    /// The browser asks nobody: the page and all that it needs come from where the page was loaded.
    fn see_in_browser(
        &self,
        context: &Context,
        page: &LoadedPage<'_>,
        wants_screenshot: bool,
    ) -> anyhow::Result<Seen> {
        if self.no_sandbox {
            context.note(
                "the browser runs without its sandbox: a page that breaks it has the rights of this user",
            );
        }
        let launch = LaunchOptions { sandbox: !self.no_sandbox, ..LaunchOptions::default() };
        let shown = BrowserPage { url: &page.url, html: &page.html, unix_millis: page.time.as_millis() };
        let answers = |url: &str, deadline| page.requisite_before(url, Some(deadline));
        let mut chromium = Chromium::new(BrowserOptions { launch, ..BrowserOptions::default() });
        let seen = chromium.layout(&shown, &answers, wants_screenshot)?;
        if seen.ending != Ending::Whole {
            context
                .note("the page did not end loading within its bounds: its blocks are those that were there");
        }
        Ok(Seen { layout: seen.layout, screenshot: seen.screenshot })
    }

    fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        match &self.output {
            Some(path) => {
                std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
            }
            None => {
                let mut out = document_on_stdout();
                out.write_all(bytes)?;
                Ok(out.flush()?)
            }
        }
    }
}

/// Addresses are cut as the archive at hand says, if there is one; files need none.
fn config_of(context: &Context, spec: &PageSpec, url: &str) -> anyhow::Result<SegmentConfig> {
    if matches!(spec, PageSpec::File(_)) || !is_archive(&context.archive_dir()) {
        return Ok(SegmentConfig::default());
    }
    Ok(context.open()?.settings().seeds.segment_config(url).cloned().unwrap_or_default())
}

/// Only what was laid out can be drawn.
fn render(format: SegmentFormat, tree: &BlockTree, seen: Option<&Seen>) -> anyhow::Result<Vec<u8>> {
    let drawn = || seen.context("only what was laid out can be drawn: write --format vixml or --format json");
    Ok(match format {
        SegmentFormat::Vixml => vixml::write(tree).into_bytes(),
        SegmentFormat::Json => {
            let blocks: Vec<Value> = tree.blocks.iter().map(block_json).collect();
            let data =
                json!({"url": tree.url, "version": tree.version, "engine": tree.engine, "blocks": blocks});
            let mut bytes = serde_json::to_vec_pretty(&data)?;
            bytes.push(b'\n');
            bytes
        }
        SegmentFormat::Svg => draw_svg(tree, &drawn()?.layout).into_bytes(),
        SegmentFormat::Png => {
            let seen = drawn()?;
            draw_png(tree, &seen.layout, seen.screenshot.as_deref())?
        }
    })
}

/// Blocks nest at most as deep as the page was let to.
fn block_json(block: &Block) -> Value {
    let rect = block.rect;
    let mut data = json!({
        "ref": block.name(), "id": block.id.to_string(), "rect": [rect.x, rect.y, rect.w, rect.h],
        "doc": block.doc, "importance": block.importance, "role": block.role.name(),
    });
    if block.is_leaf() {
        data["links"] =
            block.links.iter().map(|link| json!({"name": link.name, "address": link.address})).collect();
        data["images"] =
            block.images.iter().map(|image| json!({"name": image.name, "source": image.source})).collect();
        data["texts"] = block.texts.iter().map(|text| json!(text.text)).collect();
    } else {
        data["children"] = block.children.iter().map(block_json).collect();
    }
    data
}
