//! `perennial lab reproduce`: every table and figure of the papers, with a verdict.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use perennial_core::page::segment::{BlockTree, SegmentConfig, segment};
use perennial_lab::reproduce::data::{DataFiles, read_page};
use perennial_lab::reproduce::{
    MeasuredPage, Paper, Reproduction, ReproductionData, WorldResults, fastest, made_pages, reproduce,
};
use perennial_render::{LayoutEngine, resource::nothing};

use crate::cli::{Context, Exit};

const AFTER_HELP: &str = "\
  repeated           the 95 % interval excludes no effect and reaches the published size
  repeated in sign   it excludes no effect, but the effect is smaller than published
  not repeated       the interval contains no effect
  not testable here  data or numbers of the paper are not available

Without --data, P-NEAR uses made sites, P-VISUAL made news fronts, and P-FEED made posts. Worlds are drawn from five seeds. --data \
recognises:
  *.tsv, *.tsv.xz           P-NEAR: versions of a site (docs/rules.md)
  *.html                    P-VISUAL: successive versions of a page in each folder
  *.xml, *.rss, *.atom      P-FEED: feeds in folders by domain
  posts.jsonl               P-FEED: posts, {\"file\", \"title\", \"description\", \"text\"}

Examples:
  perennial lab reproduce
  perennial lab reproduce near --data histories/
  perennial lab reproduce visual --data fronts/ --report out";

/// Repeat the tables and figures of the papers, each with a verdict.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Reproduce {
    /// pattern, quality, visual, near or feed [default: all]
    #[arg(value_name = "PAPER")]
    paper: Option<Paper>,

    /// Files of real data, or folders of them
    #[arg(long, value_name = "PATH", num_args = 1..)]
    data: Vec<PathBuf>,

    /// Write tables and charts into DIR/index.html, and all numbers into DIR/findings.json
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

impl Reproduce {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let papers = self.paper.map_or(Paper::ALL.to_vec(), |paper| vec![paper]);
        let files = DataFiles::new(self.data.clone())?;
        let mut data = ReproductionData::default();
        if papers.contains(&Paper::Near) {
            data.histories = files.histories()?;
        }
        if papers.contains(&Paper::Visual) {
            (data.pages, data.pages_are_made) = measured_pages(context, &files)?;
        }
        if papers.contains(&Paper::Feed) {
            (data.posts, data.feeds) = (files.posts()?, files.feeds()?);
        }
        let bar =
            context.progress_count(papers.iter().map(|paper| paper.n_steps()).sum(), "repeating the papers");
        let (mut found, mut world) = (Reproduction::default(), WorldResults::default());
        for paper in papers {
            found.extend(reproduce(paper, &data, &mut world, &|| bar.inc(1)));
        }
        bar.finish_and_clear();
        if let Some(dir) = &self.report {
            write_report(dir, &found)?;
            context.note(format_args!("report: {}", dir.join("index.html").display()));
        }
        context.print(&found, |out| print(&found, out))?;
        Ok(Exit::Done)
    }
}

/// The pages of the data, or made ones.
fn measured_pages(context: &Context, files: &DataFiles) -> anyhow::Result<(Vec<MeasuredPage>, bool)> {
    let engine = LayoutEngine::new();
    let pairs = files.page_pairs();
    if pairs.is_empty() {
        let pair =
            |[earlier, html]: &[String; 2]| measure(&engine, html, Some(&read_tree(&engine, earlier).1));
        return Ok((made_pages().iter().map(pair).collect(), true));
    }
    let bar = context.progress_count(pairs.len() as u64, "pages");
    let mut pages = Vec::new();
    for (earlier, page) in pairs {
        let earlier = earlier.map(|path| anyhow::Ok(read_tree(&engine, &read_page(path)?).1)).transpose()?;
        pages.push(measure(&engine, &read_page(page)?, earlier.as_ref()));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((pages, false))
}

/// Seconds of layout and segmentation, and the blocks.
fn read_tree(engine: &LayoutEngine, html: &str) -> ([f64; 2], BlockTree) {
    let (laid_out, layout) = fastest(|| engine.layout(html, "http://page.example/", &nothing));
    let (segmented, tree) = fastest(|| segment(&layout, &SegmentConfig::default()));
    ([laid_out, segmented], tree)
}

fn measure(engine: &LayoutEngine, html: &str, earlier: Option<&BlockTree>) -> MeasuredPage {
    let (seconds, tree) = read_tree(engine, html);
    MeasuredPage::new(html.len(), seconds, &tree, earlier)
}

fn write_report(dir: &Path, found: &Reproduction) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    let files = [("index.html", found.to_html()), ("findings.json", serde_json::to_string_pretty(found)?)];
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn print(found: &Reproduction, out: &mut dyn Write) -> io::Result<()> {
    for finding in &found.findings {
        writeln!(out, "{} {}: {}", finding.paper, finding.item, finding.claim)?;
        writeln!(out, "  {:<18} {}", finding.verdict.name(), finding.reason)?;
        for (label, text) in [
            ("published", finding.published),
            ("paper's condition", &finding.in_condition),
            ("as shipped", &finding.as_shipped),
        ] {
            if text != "-" {
                writeln!(out, "  {label:<18} {text}")?;
            }
        }
        writeln!(out)?;
    }
    for table in &found.tables {
        writeln!(out, "{table}")?;
    }
    Ok(())
}
