//! `perennial lab extract`: a page -> the text that the algorithm of P-FEED finds, in the variants of its Table 3.

use clap::Args;
use perennial_core::article::{Article, ArticleContext as Known};
use perennial_core::text::dom::Dom;
use perennial_lab::feeds::extraction::{ExtractionVariant, extract_text};

use crate::cli::article::extract;
use crate::cli::{Context, Exit};

const AFTER_HELP: &str = "\
The options are those of `perennial article extract`; the result contains only title and text.

Examples:
  perennial lab extract --html article.html --algorithm grams-3
  perennial lab extract --list pages.jsonl --algorithm concepts --json > texts.jsonl";

/// Extract the text of a page by the algorithm of the paper.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Extract {
    #[command(flatten)]
    pages: extract::ExtractArticleArgs,
    /// Row of the paper's Table 3
    #[arg(long, value_name = "NAME", default_value = ExtractionVariant::GramsThenConcepts.name(), value_parser = parse_variant)]
    algorithm: ExtractionVariant,
}

fn parse_variant(name: &str) -> Result<ExtractionVariant, String> {
    let known = ExtractionVariant::ALL.into_iter().find(|variant| variant.name() == name);
    known.ok_or_else(|| {
        format!("choose one of {}", ExtractionVariant::ALL.map(ExtractionVariant::name).join(", "))
    })
}

impl Extract {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let variant = self.algorithm;
        self.pages.run_with(context, &move |dom: &Dom, known: &Known<'_>| {
            let text = extract_text(dom, known.title, known.description, variant);
            Article { title: known.title.unwrap_or_default().to_owned(), text, ..Article::default() }
        })
    }
}
