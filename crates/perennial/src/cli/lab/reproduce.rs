//! `perennial lab reproduce`: every table and figure of the papers, with a verdict.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use perennial_core::page::segment::{SegmentConfig, segment};
use perennial_core::text::charset::decode_text;
use perennial_lab::reproduce::{MeasuredPage, Paper, Reproduction, ReproductionData, made_pages, reproduce};
use perennial_render::{LayoutEngine, resource::nothing};

use super::rules::read_files;
use crate::cli::{Context, Exit};

/// Pages that are read.
const MAX_PAGES: usize = 400;

const AFTER_HELP: &str = "\
  repeated           the 95 % interval excludes no effect and reaches the published size
  repeated in sign   it excludes no effect, but the effect is smaller than published
  not repeated       the interval contains no effect
  not testable here  data or numbers of the paper are not available

P-PATTERN and P-QUALITY use worlds drawn from five seeds, P-VISUAL and P-FEED made pages, P-NEAR made sites.

Examples:
  perennial lab reproduce
  perennial lab reproduce near --history *.tsv.xz
  perennial lab reproduce visual --pages FOLDER --report out";

/// Repeat the tables and figures of the papers, each with a verdict.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Reproduce {
    /// pattern, quality, visual, near or feed [default: all]
    #[arg(value_name = "PAPER")]
    paper: Option<Paper>,

    /// Files of site versions for P-NEAR
    #[arg(long, value_name = "FILE", num_args = 1..)]
    history: Vec<PathBuf>,

    /// Folder of HTML pages for P-VISUAL
    #[arg(long, value_name = "FOLDER")]
    pages: Option<PathBuf>,

    /// Write the table with charts into DIR/index.html, and the findings into DIR/findings.json
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

impl Reproduce {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let papers = self.paper.map_or(Paper::ALL.to_vec(), |paper| vec![paper]);
        let pages = match (papers.contains(&Paper::Visual), &self.pages) {
            (false, _) => Vec::new(),
            (true, Some(folder)) => measured_pages(folder)?,
            (true, None) => {
                let engine = LayoutEngine::new();
                made_pages().iter().map(|page| measure(&engine, &page.html)).collect()
            }
        };
        let data = ReproductionData {
            histories: read_files(context, &self.history)?,
            pages,
            pages_are_made: self.pages.is_none(),
        };
        let bar = context.progress_count(papers.len() as u64, "repeating the papers");
        let found = reproduce(&papers, &data);
        bar.finish_and_clear();
        if let Some(dir) = &self.report {
            write_report(dir, &found)?;
            context.note(format_args!("report: {}", dir.join("index.html").display()));
        }
        context.print(&found.findings, |out| print(&found, out))?;
        Ok(Exit::Done)
    }
}

fn measured_pages(folder: &Path) -> anyhow::Result<Vec<MeasuredPage>> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html") {
                files.push(path);
            }
        }
    }
    files.sort();
    // An even choice of the pages.
    let step = files.len().div_ceil(MAX_PAGES).max(1);
    let engine = LayoutEngine::new();
    files
        .iter()
        .step_by(step)
        .map(|file| {
            let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            Ok(measure(&engine, &decode_text(&bytes, None)))
        })
        .collect()
}

fn measure(engine: &LayoutEngine, html: &str) -> MeasuredPage {
    let began = Instant::now();
    let layout = engine.layout(html, "http://page.example/", &nothing);
    let tree = segment(&layout, &SegmentConfig::default());
    MeasuredPage { html_bytes: html.len(), seconds: began.elapsed().as_secs_f64(), tree }
}

fn write_report(dir: &Path, found: &Reproduction) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    let files =
        [("index.html", found.to_html()), ("findings.json", serde_json::to_string_pretty(&found.findings)?)];
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
    Ok(())
}
