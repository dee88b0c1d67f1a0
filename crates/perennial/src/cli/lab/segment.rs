//! `perennial lab segment`: a page -> its blocks.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use perennial_core::page::segment::{Block, SegmentConfig, vixml};
use perennial_lab::draw::draw_svg;
use serde_json::{Value, json};

use crate::cli::context::document_on_stdout;
use crate::cli::renderer::{RendererArgs, SegmentedPage, has_nothing_to_read, segment_config};
use crate::cli::{Context, Exit};
use perennial_engine::analyse::PageSpec;

const AFTER_HELP: &str = "\
PAGE is a file, a page of the archive (URL@TIME, or URL@ for the latest), or a live http address: HTML, Vi-XML, PDF, \
JSON, CSV, XML, a feed or plain text.
`layout` runs no scripts; `chromium` runs them in a browser; `auto` uses the browser for pages that are almost empty without scripts. \
Trees of different engines cannot be compared. `vixml` and `json` list blocks, links, images and texts; `svg` draws them. Exit code 5: nothing to read.

Examples:
  perennial lab segment page.html --format svg --output page.svg
  perennial lab segment https://news.example/@20261116 --renderer chromium --format svg --output page.svg
  perennial lab segment https://news.example/ --coherence 8 --format json";

/// Show the blocks of a page.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Segment {
    /// A file, an archived page (URL@TIME), or a live URL
    page: PageSpec,
    /// URL of the page, if it is a file: links resolve against it
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    renderer: RendererArgs,
    /// Granularity of the blocks, 1 (coarse) to 10 (fine)
    #[arg(long, value_name = "1..10", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=10))]
    coherence: u8,
    /// Output format [default: vixml, or json with --json]
    #[arg(long, value_enum)]
    format: Option<SegmentFormat>,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Allow hosts with private and loopback addresses
    #[arg(long)]
    allow_private: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum SegmentFormat {
    Vixml,
    Json,
    Svg,
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
        let config =
            SegmentConfig { coherence: self.coherence, ..segment_config(context, &self.page, &page.url)? };
        let seen = self.renderer.segment_pages(context, &[(&page, config)])?;
        let seen = seen.first().context("internal error: the renderer returned no page")?;
        if seen.n_lost_words > 0 {
            context.note(format_args!(
                "{} visible words have no position in the layout and are not in any block; try --renderer chromium",
                seen.n_lost_words
            ));
        }
        self.write(&render(format, seen)?)?;
        Ok(match has_nothing_to_read(context, &self.renderer, &seen.tree) {
            true => Exit::NothingToRead,
            false => Exit::Done,
        })
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

fn render(format: SegmentFormat, seen: &SegmentedPage) -> anyhow::Result<Vec<u8>> {
    let tree = &seen.tree;
    let rendered = || {
        seen.layout.as_ref().context("only rendered pages can be drawn; use --format vixml or --format json")
    };
    Ok(match format {
        SegmentFormat::Vixml => vixml::write(tree).into_bytes(),
        SegmentFormat::Json => {
            let blocks: Vec<Value> = tree.blocks.iter().map(block_json).collect();
            let mut data =
                json!({"url": tree.url, "version": tree.version, "engine": tree.engine, "blocks": blocks});
            if seen.layout.is_some() {
                data["lost_words"] = json!(seen.n_lost_words);
            }
            let mut bytes = serde_json::to_vec_pretty(&data)?;
            bytes.push(b'\n');
            bytes
        }
        SegmentFormat::Svg => draw_svg(tree, rendered()?).into_bytes(),
    })
}

/// Recursion is safe because the depth of pages is limited.
fn block_json(block: &Block) -> Value {
    let rect = block.rect;
    let mut data = json!({
        "ref": block.name(), "id": block.id.to_string(), "rect": [rect.x, rect.y, rect.w, rect.h],
        "doc": block.doc, "importance": block.importance, "role": block.role.name(),
    });
    if block.is_leaf() {
        data["text"] = json!(block.read().join(" "));
        data["links"] = block.links.iter().map(|link| json!({"name": link.name, "url": link.url})).collect();
        data["images"] =
            block.images.iter().map(|image| json!({"name": image.name, "source": image.source})).collect();
        data["texts"] = block.texts.iter().map(|text| json!(text.text)).collect();
    } else {
        data["children"] = block.children.iter().map(block_json).collect();
    }
    data
}
