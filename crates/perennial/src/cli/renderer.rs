//! `--renderer`: a page -> its layout by the embedded engine or by a browser, for `segment` and `diff`.

use perennial_core::page::layout::Layout;
use perennial_core::page::segment::{BlockTree, SegmentConfig, segment_with_lost_words};
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
    /// The embedded engine, and Chromium where a page has hardly a word without its scripts
    Auto,
    /// The embedded engine: milliseconds, no scripts
    Layout,
    /// Chromium: scripts run
    Chromium,
}

/// The options of every command that lays pages out.
#[derive(clap::Args)]
pub(super) struct RendererArgs {
    /// What lays the page out
    #[arg(long, value_enum, default_value_t = Renderer::Auto)]
    pub(super) renderer: Renderer,
    /// Run the browser without its sandbox, where it does not start otherwise; only for pages that you trust
    #[arg(long)]
    no_sandbox: bool,
}

/// A page that was laid out and cut into blocks.
pub(super) struct SeenPage {
    pub(super) tree: BlockTree,
    /// `None` for a document that needs no layout.
    pub(super) layout: Option<Layout<'static>>,
    /// Words that the page shows and no block holds.
    pub(super) n_lost_words: u32,
}

/// Lays a page out.
type Draw<'d> = dyn Fn(&LoadedPage<'_>) -> anyhow::Result<Layout<'static>> + 'd;

/// Words of a page that scripts are likely to draw, as most of such pages say only that they need scripts.
const FEW_WORDS: usize = 20;

impl RendererArgs {
    /// Sees some pages by one engine, because trees of two engines are not to be compared.
    pub(super) fn see(
        &self,
        context: &Context,
        pages: &[(&LoadedPage<'_>, SegmentConfig)],
    ) -> anyhow::Result<Vec<SeenPage>> {
        let all = |renderer: &Draw<'_>| {
            pages
                .iter()
                .map(|(page, config)| seen(page, config, renderer))
                .collect::<anyhow::Result<Vec<_>>>()
        };
        let by_browser = || {
            if self.no_sandbox {
                context.note(
                    "the browser runs without its sandbox: a page that breaks it has the rights of this user",
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
        let is_drawn = |(seen, (page, _)): (&SeenPage, &(&LoadedPage<'_>, SegmentConfig))| {
            seen.layout.is_some() && n_words(&seen.tree) < FEW_WORDS && page.html.contains("<script")
        };
        if self.renderer == Renderer::Layout || !found.iter().zip(pages).any(is_drawn) {
            return Ok(found);
        }
        match by_browser() {
            Ok(drawn) => Ok(drawn),
            Err(error) => {
                context.note(format_args!(
                    "the page has hardly a word without its scripts, and they could not run: {error:#}"
                ));
                Ok(found)
            }
        }
    }

    /// The browser asks nobody: the page and all that it needs come from where the page was loaded.
    fn by_browser(&self, context: &Context, page: &LoadedPage<'_>) -> anyhow::Result<Layout<'static>> {
        let launch = LaunchOptions { sandbox: !self.no_sandbox, ..LaunchOptions::default() };
        let shown = BrowserPage { url: &page.url, html: &page.html, unix_millis: page.time.as_millis() };
        let answers = |url: &str, deadline| page.subresource_before(url, Some(deadline));
        let mut chromium = Chromium::new(BrowserOptions { launch, ..BrowserOptions::default() });
        let seen = chromium.layout(&shown, &answers)?;
        if seen.ending != LoadEnd::Whole {
            context
                .note("the page did not end loading within its bounds: its blocks are those that were there");
        }
        Ok(seen.layout)
    }
}

fn by_engine(context: &Context, pool: &WorkerPool, page: &LoadedPage<'_>) -> Layout<'static> {
    let lookup: &SubresourceLookup = &|url: &str| page.subresource(url);
    let rendered = pool.layout(&page.html, &page.url, lookup);
    if let Some(fallback) = rendered.fallback {
        context.note(format_args!("{fallback}: blocks come from the page's tags alone"));
    }
    rendered.layout
}

fn seen(page: &LoadedPage<'_>, config: &SegmentConfig, renderer: &Draw<'_>) -> anyhow::Result<SeenPage> {
    if let Some(tree) = page.ready_tree()? {
        return Ok(SeenPage { tree, layout: None, n_lost_words: 0 });
    }
    let layout = renderer(page)?;
    let (mut tree, n_lost_words) = segment_with_lost_words(&layout, config);
    (tree.url, tree.version) = (page.url.clone(), page.version.clone());
    Ok(SeenPage { tree, layout: Some(layout), n_lost_words })
}

/// Addresses are cut as the archive at hand says, if there is one; files need none.
pub(super) fn config_of(context: &Context, spec: &PageSpec, url: &str) -> anyhow::Result<SegmentConfig> {
    if matches!(spec, PageSpec::File(_)) || !is_archive(&context.archive_dir()) {
        return Ok(SegmentConfig::default());
    }
    Ok(context.open()?.settings().seeds.segment_config(url).cloned().unwrap_or_default())
}

fn n_words(tree: &BlockTree) -> usize {
    let texts = tree.leaves().flat_map(|leaf| {
        let links = leaf.links.iter().map(|link| link.name.as_str());
        links.chain(leaf.texts.iter().map(|text| text.text.as_str()))
    });
    texts.map(perennial_core::page::diff::n_words).sum()
}

/// Whether a version has neither a word nor a picture. Says so, and names the cure.
pub(super) fn has_nothing_to_read(context: &Context, args: &RendererArgs, tree: &BlockTree) -> bool {
    let is_empty = n_words(tree) == 0 && tree.leaves().all(|leaf| leaf.images.is_empty());
    if is_empty {
        let cure = match args.renderer {
            Renderer::Chromium => "look at its bytes with `perennial export`, or name another version",
            _ => "if scripts draw it, use --renderer chromium; else name another version",
        };
        context.note(format_args!(
            "nothing to read in {}: no word and no picture can be seen; {cure}",
            tree.version
        ));
    }
    is_empty
}
