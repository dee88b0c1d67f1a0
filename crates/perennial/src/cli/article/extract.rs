//! `perennial article extract`: a page -> the article that it contains.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use perennial_core::article::version::{EditRun, edits, n_edited, same_version};
use perennial_core::article::{Article, ArticleContext as Known, MAX_NEIGHBOURS, Template, extract};
use perennial_core::text::charset::decode_text;
use perennial_core::text::dom::Dom;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::context::{json_on_stdout, text_on_stdout};
use crate::cli::{Context, Exit};
use perennial_engine::analyse::PageSpec;
use perennial_engine::feeds::articles::{article_json, edit_json, field_name, template_around};

/// Longer pages are truncated.
const MAX_PAGE_BYTES: u64 = 32 << 20;
/// Longer lines of a list are refused.
const MAX_LINE_BYTES: u64 = 4 << 20;

const AFTER_HELP: &str = "\
PAGE is a file, a page of the archive (URL@TIME, or URL@ for the latest), or a live http address. \
--title and --description select one of several posts on a page; the default is the page's title and description. --neighbour \
gives other pages of the same site: text that half of them share is not part of the article, and five or more make the result much \
more exact. Neighbours of an archived page come from the archive.
--json prints one article per line. --list reads one page per line, as JSON: {\"file\": ..., \"title\": ..., \"description\": ..., \
\"url\": ..., \"neighbours\": [...], \"before\": ...}; only `file` is required, and `id` is copied to the result.

Examples:
  perennial article extract --html article.html
  perennial article extract --html article.html --url https://news.example/2026/article.html --json
  perennial article extract --html blog.html --title 'Second post' --description 'It rained all week'
  perennial article extract --html new.html --neighbour old-1.html old-2.html old-3.html old-4.html old-5.html
  perennial article extract --html monday.html --before sunday.html
  perennial article extract --list pages.jsonl --json > articles.jsonl
  perennial article extract https://news.example/article@20261116";

/// Extract the article of a page: title, author, time, text, links, images, comments.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(in crate::cli) struct ExtractArticleArgs {
    /// A file, an archived page (URL@TIME), or a live URL
    #[arg(required_unless_present_any = ["html", "list"])]
    page: Vec<PageSpec>,
    /// HTML files
    #[arg(long, value_name = "FILE", num_args = 1..)]
    html: Vec<PathBuf>,
    /// File with one page per line, as JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Title of the article, as in a feed
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Description of the article, as in a feed; may contain HTML
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// URL of the page, if it is a file: links resolve against it
    #[arg(long)]
    url: Option<String>,
    /// Other pages of the same site: HTML files
    #[arg(long, value_name = "FILE", num_args = 1..)]
    neighbour: Vec<PathBuf>,
    /// An older version of the page, in the same forms: print the edits since, the headline first
    #[arg(long, value_name = "PAGE")]
    before: Option<PageSpec>,
    /// Allow hosts with private and loopback addresses
    #[arg(long)]
    allow_private: bool,
}

/// A page and its context -> its article.
pub(in crate::cli) type Algorithm = dyn Fn(&Dom, &Known<'_>) -> Article;

/// One page to read.
#[derive(Deserialize, Default)]
struct ExtractJob {
    file: PathBuf,
    #[serde(default)]
    id: Value,
    title: Option<String>,
    description: Option<String>,
    url: Option<String>,
    #[serde(default)]
    neighbours: Vec<PathBuf>,
    before: Option<PathBuf>,
}

impl ExtractArticleArgs {
    pub(in crate::cli) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        self.run_with(context, &extract)
    }

    /// The same by any algorithm.
    pub(in crate::cli) fn run_with(self, context: &Context, algorithm: &Algorithm) -> anyhow::Result<Exit> {
        let out = if context.json { json_on_stdout() } else { text_on_stdout() };
        let mut printer = ArticlePrinter { context, out, algorithm };
        let template = read_template(&self.neighbour)?;
        let before = self.before.as_ref().map(|spec| self.load(context, spec)).transpose()?;
        let before = before.as_ref().map(|page| page.html.as_str());
        for spec in &self.page {
            let page = self.load(context, spec)?;
            let url = if matches!(spec, PageSpec::File(_)) { self.url.clone() } else { Some(page.url) };
            let template = template.as_ref().or(page.template.as_ref());
            let source = ExtractionSource { html: &page.html, before, template };
            printer.print(&page.version, &ExtractJob { url, ..self.job(Path::new("")) }, &source)?;
        }
        let progress = context.progress_count(self.html.len() as u64, "extracting");
        let is_only = self.html.len() == 1;
        let mut n_unread = 0;
        for file in &self.html {
            match read_page(file) {
                Ok(html) => {
                    let source = ExtractionSource { html: &html, before, template: template.as_ref() };
                    printer.print(&file.display().to_string(), &self.job(file), &source)?;
                }
                Err(error) if is_only => return Err(error),
                Err(error) => n_unread += printer.skip(&error),
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        if let Some(list) = &self.list {
            n_unread += printer.print_list(list)?;
        }
        printer.out.flush()?;
        if n_unread > 0 {
            bail!("{n_unread} pages could not be read (see above) and were skipped");
        }
        Ok(Exit::Done)
    }

    /// The options, as they apply to each page.
    fn job(&self, file: &Path) -> ExtractJob {
        let (title, description) = (self.title.clone(), self.description.clone());
        ExtractJob {
            file: file.to_owned(),
            title,
            description,
            url: self.url.clone(),
            ..ExtractJob::default()
        }
    }

    fn load(&self, context: &Context, spec: &PageSpec) -> anyhow::Result<SourcePage> {
        let snapshot = spec.snapshot(|| context.snapshot())?;
        let page = spec.load(snapshot.as_ref(), self.allow_private)?;
        if let Some(note) = &page.note {
            context.note(note);
        }
        if page.document.is_some() {
            bail!(
                "{} is not an HTML page, so it contains no article; `perennial lab segment` prints its text",
                page.version
            );
        }
        // Neighbours given by the user take precedence over the archive's.
        let template = match (&snapshot, spec) {
            (Some(snapshot), PageSpec::Archived { .. }) if self.neighbour.is_empty() => {
                template_around(snapshot, &page.url)?
            }
            _ => None,
        };
        let (url, version, html) = (page.url.clone(), page.version.clone(), page.html.clone());
        Ok(SourcePage { url, version, html, template })
    }
}

/// The text of a page, and what else is known of it.
struct ExtractionSource<'a> {
    html: &'a str,
    /// An older version.
    before: Option<&'a str>,
    template: Option<&'a Template>,
}

/// Extracts and prints page by page, because a list may not fit into memory.
struct ArticlePrinter<'c> {
    context: &'c Context,
    out: Box<dyn Write>,
    algorithm: &'c Algorithm,
}

impl ArticlePrinter<'_> {
    /// Reads a list to its end; returns the number of unreadable pages.
    fn print_list(&mut self, list: &Path) -> anyhow::Result<u64> {
        let input: Box<dyn std::io::Read> = match list.to_str() {
            Some("-") => Box::new(std::io::stdin()),
            _ => Box::new(
                File::open(list).with_context(|| format!("cannot read the list {}", list.display()))?,
            ),
        };
        let mut input = BufReader::new(input);
        let progress = self.context.progress_count(0, "extracting");
        let mut n_unread = 0;
        for number in 1.. {
            let mut line = Vec::new();
            if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let job: ExtractJob = serde_json::from_slice(&line).with_context(|| {
                format!("line {number} of the list is not a page: write {{\"file\": \"page.html\"}}")
            })?;
            if let Err(error) = self.print_listed(&job)? {
                n_unread += self.skip(&error);
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(n_unread)
    }

    /// The outer error ends the run; the inner one concerns this page only.
    fn print_listed(&mut self, job: &ExtractJob) -> anyhow::Result<anyhow::Result<()>> {
        let read = || -> anyhow::Result<_> {
            let before = job.before.as_deref().map(read_page).transpose()?;
            Ok((read_page(&job.file)?, before, read_template(&job.neighbours)?))
        };
        match read() {
            Ok((html, before, template)) => {
                let source =
                    ExtractionSource { html: &html, before: before.as_deref(), template: template.as_ref() };
                self.print(&job.file.display().to_string(), job, &source).map(Ok)
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Reports and counts an unreadable page among many.
    fn skip(&self, error: &anyhow::Error) -> u64 {
        self.context.note(format_args!("{error:#}"));
        1
    }

    /// Prints the article of one page, or its edits since the previous version.
    fn print(&mut self, name: &str, job: &ExtractJob, source: &ExtractionSource<'_>) -> anyhow::Result<()> {
        let article = self.extract_article(source.html, job, source.template);
        let before = source.before.map(|html| self.extract_article(html, job, source.template));
        if !self.context.json {
            match &before {
                Some(before) => write_edits(&mut self.out, before, &article)?,
                None => write_text(&mut self.out, &article)?,
            }
            return Ok(());
        }
        let mut line = article_json(&article);
        line["page"] = json!(name);
        if !job.id.is_null() {
            line["id"] = job.id.clone();
        }
        if let Some(before) = &before {
            line["same_version"] = json!(same_version(before, &article));
            line["edits"] = edits(before, &article).iter().map(edit_json).collect();
        }
        serde_json::to_writer(&mut self.out, &line)?;
        Ok(writeln!(self.out)?)
    }

    fn extract_article(&self, html: &str, job: &ExtractJob, template: Option<&Template>) -> Article {
        let (title, description) = (job.title.as_deref(), job.description.as_deref());
        let known = Known { title, description, url: job.url.as_deref(), template };
        (self.algorithm)(&Dom::parse(html), &known)
    }
}

/// A page that the options name.
struct SourcePage {
    url: String,
    version: String,
    html: String,
    /// The text that it shares with other pages of its site in the archive.
    template: Option<Template>,
}

fn read_page(file: &Path) -> anyhow::Result<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(file)?.take(MAX_PAGE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("cannot read the page {}", file.display()))?;
    Ok(decode_text(&bytes, None).into_owned())
}

fn read_template(neighbours: &[PathBuf]) -> anyhow::Result<Option<Template>> {
    if neighbours.is_empty() {
        return Ok(None);
    }
    let read = |file: &PathBuf| read_page(file).map(|html| Dom::parse(&html));
    let pages: Vec<Dom> = neighbours.iter().take(MAX_NEIGHBOURS).map(read).collect::<anyhow::Result<_>>()?;
    Ok(Some(Template::from_neighbours(&pages)))
}

/// Writes headline, author, time, lead and text, and the number of links, images and comments.
pub(in crate::cli) fn write_text(out: &mut dyn Write, article: &Article) -> std::io::Result<()> {
    if article.text.is_empty() {
        return writeln!(out, "{}\n\n(the page contains no running text)\n", article.title);
    }
    writeln!(out, "{}", article.title)?;
    let time = article.time.map(|time| time.to_rfc3339()).unwrap_or_default();
    let said: Vec<&str> =
        [article.author.as_str(), time.as_str()].into_iter().filter(|said| !said.is_empty()).collect();
    if !said.is_empty() {
        writeln!(out, "{}", said.join(", "))?;
    }
    for part in [&article.lead, &article.text].into_iter().filter(|part| !part.is_empty()) {
        writeln!(out, "\n{part}")?;
    }
    let (n_links, n_images, n_comments) = (article.links.len(), article.images.len(), article.comments.len());
    writeln!(out, "\n({n_links} links, {n_images} images, {n_comments} paragraphs of comments)\n")
}

/// Number of words shown before and after an edit.
const N_AROUND: usize = 6;

/// Writes removed words in [- -] and added words in {+ +}, with a few words of context.
pub(in crate::cli) fn write_edits(
    out: &mut dyn Write,
    before: &Article,
    after: &Article,
) -> std::io::Result<()> {
    if same_version(before, after) {
        return writeln!(out, "{}\n\nThe same version: the article was not edited.\n", after.title);
    }
    let edits = edits(before, after);
    let (n_taken_out, n_added) = n_edited(&edits);
    writeln!(out, "{}\n{n_taken_out} words removed, {n_added} added", after.title)?;
    for edit in &edits {
        writeln!(out, "\n{}:", field_name(edit.field))?;
        for (place, run) in edit.runs.iter().enumerate() {
            let (is_first, is_last) = (place == 0, place + 1 == edit.runs.len());
            match run {
                EditRun::Kept(words) => writeln!(out, "  {}", around(words, is_first, is_last))?,
                EditRun::TakenOut(words) => writeln!(out, "  [-{words}-]")?,
                EditRun::Added(words) => writeln!(out, "  {{+{words}+}}")?,
            }
        }
    }
    if edits.is_empty() {
        writeln!(out, "\nlinks or images:")?;
        let urls = |article: &Article| -> BTreeSet<String> {
            let links = article.links.iter().map(|link| link.url.clone());
            links.chain(article.images.iter().map(|image| image.url.clone())).collect()
        };
        let (old, new) = (urls(before), urls(after));
        old.difference(&new).try_for_each(|url| writeln!(out, "  [-{url}-]"))?;
        new.difference(&old).try_for_each(|url| writeln!(out, "  {{+{url}+}}"))?;
    }
    writeln!(out)
}

/// The words next to an edit.
fn around(words: &str, is_first: bool, is_last: bool) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let n_shown = N_AROUND * (2 - usize::from(is_first) - usize::from(is_last));
    if words.len() <= n_shown {
        return words.join(" ");
    }
    let head = if is_first { String::new() } else { words[..N_AROUND].join(" ") };
    let tail = if is_last { String::new() } else { words[words.len() - N_AROUND..].join(" ") };
    format!("{head} ... {tail}").trim().to_owned()
}
