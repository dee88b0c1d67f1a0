//! `--renderer`: a page -> its layout by the embedded engine or by a browser.

use perennial_core::page::layout::Layout;
use perennial_core::page::segment::{Block, BlockTree, SegmentConfig, segment_with_lost_words};
use perennial_render::chromium::LoadEnd;
use perennial_render::launch::LaunchOptions;
use perennial_render::{
    BrowserOptions, BrowserPage, Chromium, PageLimits, SubresourceLookup, WorkerCommand, WorkerPool,
};

use super::Context;
use perennial_archive::is_archive;
use perennial_engine::analyse::{LoadedPage, PageSpec};

/// Which engine lays pages out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Renderer {
    // The embedded engine, or Chromium for pages that are almost empty without scripts.
    Auto,
    // The embedded engine: milliseconds, no scripts.
    Layout,
    // Scripts run.
    Chromium,
}

/// The options of commands that render pages.
#[derive(clap::Args)]
pub(super) struct RendererArgs {
    /// Engine that renders the page; auto uses Chromium if it is almost empty without scripts
    #[arg(long, value_enum, default_value_t = Renderer::Auto)]
    pub(super) renderer: Renderer,
    /// Run the browser without its sandbox; only for pages that you trust
    #[arg(long)]
    no_sandbox: bool,
}

/// A page that was rendered and segmented.
pub(super) struct SegmentedPage {
    pub(super) tree: BlockTree,
    /// `None` for a document that needs no layout.
    pub(super) layout: Option<Layout<'static>>,
    /// Number of visible words that are not in any block.
    pub(super) n_lost_words: u32,
}

/// Lays a page out.
type LayoutFn<'d> = dyn Fn(&LoadedPage<'_>) -> anyhow::Result<Layout<'static>> + 'd;

/// A page with fewer words probably needs scripts: most of these pages contain only a request to enable them.
const FEW_WORDS: usize = 20;

impl RendererArgs {
    /// Renders and segments pages by one engine, because trees of two engines cannot be compared.
    pub(super) fn segment_pages(
        &self,
        context: &Context,
        pages: &[(&LoadedPage<'_>, SegmentConfig)],
    ) -> anyhow::Result<Vec<SegmentedPage>> {
        let all = |renderer: &LayoutFn<'_>| {
            pages
                .iter()
                .map(|(page, config)| seen(page, config, renderer))
                .collect::<anyhow::Result<Vec<_>>>()
        };
        let by_browser = || {
            if self.no_sandbox {
                context.note(
                    "the browser runs without its sandbox: a page that exploits it gets the rights of this user",
                );
            }
            all(&|page| self.by_browser(context, page))
        };
        if self.renderer == Renderer::Chromium {
            return by_browser();
        }
        let command =
            WorkerCommand { program: std::env::current_exe()?, arguments: vec!["render-worker".into()] };
        let pool = WorkerPool::new(command, PageLimits::default());
        let found = all(&|page| Ok(by_engine(context, &pool, page)))?;
        let needs_scripts = |(seen, (page, _)): (&SegmentedPage, &(&LoadedPage<'_>, SegmentConfig))| {
            seen.layout.is_some() && n_words(&seen.tree) < FEW_WORDS && page.html.contains("<script")
        };
        if self.renderer == Renderer::Layout || !found.iter().zip(pages).any(needs_scripts) {
            return Ok(found);
        }
        match by_browser() {
            Ok(rendered) => Ok(rendered),
            Err(error) => {
                context.note(format_args!(
                    "the page is almost empty without its scripts, and they could not run: {error:#}"
                ));
                Ok(found)
            }
        }
    }

    /// The browser has no network: the page and its subresources come from the source of the page.
    fn by_browser(&self, context: &Context, page: &LoadedPage<'_>) -> anyhow::Result<Layout<'static>> {
        let launch = LaunchOptions { sandbox: !self.no_sandbox, ..LaunchOptions::default() };
        let shown = BrowserPage { url: &page.url, html: &page.html, unix_millis: page.time.as_millis() };
        let find_subresource = |url: &str, deadline| page.subresource_before(url, Some(deadline));
        let mut chromium = Chromium::new(BrowserOptions { launch, ..BrowserOptions::default() });
        let seen = chromium.layout(&shown, &find_subresource)?;
        if seen.ending != LoadEnd::Whole {
            context
                .note("the page did not finish loading within the limits; only the loaded part has blocks");
        }
        Ok(seen.layout)
    }
}

fn by_engine(context: &Context, pool: &WorkerPool, page: &LoadedPage<'_>) -> Layout<'static> {
    let lookup: &SubresourceLookup = &|url: &str| page.subresource(url);
    let rendered = pool.layout(&page.html, &page.url, lookup);
    if let Some(fallback) = rendered.fallback {
        context.note(format_args!("{fallback}: the blocks are based on the page's tags only"));
    }
    if rendered.layout.is_unstyled {
        context.note(format_args!(
            "{}: almost nothing is visible with the page's styles, so it was read without them",
            page.url
        ));
    }
    rendered.layout
}

fn seen(
    page: &LoadedPage<'_>,
    config: &SegmentConfig,
    renderer: &LayoutFn<'_>,
) -> anyhow::Result<SegmentedPage> {
    if let Some(tree) = page.ready_tree()? {
        return Ok(SegmentedPage { tree, layout: None, n_lost_words: 0 });
    }
    let layout = renderer(page)?;
    let (mut tree, n_lost_words) = segment_with_lost_words(&layout, config);
    (tree.url, tree.version) = (page.url.clone(), page.version.clone());
    Ok(SegmentedPage { tree, layout: Some(layout), n_lost_words })
}

/// The settings for a page by URL are those of the archive, if there is one; a file needs none.
pub(super) fn segment_config(context: &Context, spec: &PageSpec, url: &str) -> anyhow::Result<SegmentConfig> {
    if matches!(spec, PageSpec::File(_)) || !is_archive(&context.archive_dir()) {
        return Ok(SegmentConfig::default());
    }
    Ok(context.open()?.settings().seeds.segment_config(url).cloned().unwrap_or_default())
}

fn n_words(tree: &BlockTree) -> usize {
    tree.leaves().flat_map(Block::words).map(perennial_core::page::diff::n_words).sum()
}

/// Whether a version has no words and no pictures. If so, prints a hint.
pub(super) fn has_nothing_to_read(context: &Context, args: &RendererArgs, tree: &BlockTree) -> bool {
    let is_empty = n_words(tree) == 0 && tree.leaves().all(|leaf| leaf.images.is_empty());
    if is_empty {
        let hint = match args.renderer {
            Renderer::Chromium => "print its content with `perennial view --raw`, or try a different version",
            _ => "if scripts render it, use --renderer chromium; else try a different version",
        };
        context.note(format_args!(
            "nothing to read in {}: it shows no words and no pictures; {hint}",
            tree.version
        ));
    }
    is_empty
}
