//! `perennial extract`: a page -> the article or post that it holds.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use perennial_core::charset::decode_text;
use perennial_core::dom::Dom;
use perennial_core::object::paper::{Variant, extract_text};
use perennial_core::object::{Context as Known, MAX_NEIGHBOURS, Object, Template, extract};
use serde::Deserialize;
use serde_json::{Value, json};

use super::context::{json_on_stdout, text_on_stdout};
use super::{Context, Exit};
use crate::analyse::PageSpec;

/// Longer pages are cut here.
const MAX_PAGE_BYTES: u64 = 32 << 20;
/// Longer lines of a list are refused.
const MAX_LINE_BYTES: u64 = 4 << 20;

const AFTER_HELP: &str = "\
PAGE is a file, a page of the archive (URL@TIME, or URL@ for the latest), or a live http address.
Without --title and --description the page's own title and description are used. They matter most where a page holds several
posts: then they say which. --neighbour names other pages of the same site; what stands on half of them is no part of the
object, and five or more make the result much more exact.
With --json one object a line is printed. --list takes one page a line, as JSON: {\"file\": ..., \"title\": ..., \"description\": ...,
\"url\": ..., \"neighbours\": [...]}; only `file` is needed, and what else a line has as `id` is repeated in the result.

Examples:
  perennial extract --html article.html
  perennial extract --html article.html --url https://news.example/2026/article.html --json
  perennial extract --html blog.html --title 'Second post' --description 'It rained all week'
  perennial extract --html new.html --neighbour old-1.html old-2.html old-3.html old-4.html old-5.html
  perennial extract --list pages.jsonl --json > objects.jsonl
  perennial extract https://news.example/article@20261116";

/// Shows the article or post that a page holds: title, lead, time, author, text, links, images, comments.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Extract {
    /// A file, an archived page (URL@TIME), or a live address
    #[arg(required_unless_present_any = ["html", "list"])]
    page: Vec<PageSpec>,
    /// HTML files
    #[arg(long, value_name = "FILE", num_args = 1..)]
    html: Vec<PathBuf>,
    /// A file with one page a line, as JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Title of the object, as a feed gives it
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Description of the object, as a feed gives it; may hold HTML
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Address of the page, for a file: links resolve against it
    #[arg(long)]
    url: Option<String>,
    /// Other pages of the same site: HTML files
    #[arg(long, value_name = "FILE", num_args = 1..)]
    neighbour: Vec<PathBuf>,
    /// How the text is found; the others are those of the paper, for comparison
    #[arg(long, value_name = "NAME", default_value = OWN, value_parser = algorithm_names())]
    algorithm: String,
    /// Ask hosts with private and loopback addresses too
    #[arg(long)]
    allow_private: bool,
}

/// The name of the algorithm that is in use.
const OWN: &str = "perennial";

fn algorithm_names() -> Vec<&'static str> {
    std::iter::once(OWN).chain(Variant::ALL.map(Variant::name)).collect()
}

/// One page to read.
#[derive(Deserialize, Default)]
struct Job {
    file: PathBuf,
    #[serde(default)]
    id: Value,
    title: Option<String>,
    description: Option<String>,
    url: Option<String>,
    #[serde(default)]
    neighbours: Vec<PathBuf>,
}

impl Extract {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut out = if context.json { json_on_stdout() } else { text_on_stdout() };
        let template = template_of(&self.neighbour)?;
        let n_named = self.page.len() + self.html.len();
        for spec in &self.page {
            let page = self.load(context, spec)?;
            let url =
                if matches!(spec, PageSpec::File(_)) { self.url.clone() } else { Some(page.url.clone()) };
            let job = Job {
                title: self.title.clone(),
                description: self.description.clone(),
                url,
                ..Job::default()
            };
            let name = page.version.clone();
            self.print(context, &mut out, &name, &job, &self.object_of(&page.html, &job, template.as_ref()))?;
        }
        let progress = context.progress_count(n_named as u64, "extracting");
        let jobs = self.html.iter().map(|file| Job {
            file: file.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            url: self.url.clone(),
            ..Job::default()
        });
        let mut n_unread = 0;
        for job in jobs {
            n_unread += self.tell(context, &mut out, &job, template.as_ref(), n_named == 1)?;
            progress.inc(1);
        }
        progress.finish_and_clear();
        if let Some(list) = &self.list {
            n_unread += self.read_list(context, &mut out, list)?;
        }
        out.flush()?;
        if n_unread > 0 {
            bail!("{n_unread} pages could not be read and were left out: see the lines above");
        }
        Ok(Exit::Done)
    }

    fn load(&self, context: &Context, spec: &PageSpec) -> anyhow::Result<Loaded> {
        let snapshot = spec.snapshot(|| context.snapshot())?;
        let page = spec.load(snapshot.as_ref(), self.allow_private)?;
        if let Some(note) = &page.note {
            context.note(note);
        }
        if page.document.is_some() {
            bail!(
                "{} is no HTML page: only pages hold objects; see `perennial segment` for its text",
                page.version
            );
        }
        Ok(Loaded { url: page.url.clone(), version: page.version.clone(), html: page.html.clone() })
    }

    /// One page after the other, so that a list may be longer than memory.
    fn read_list(&self, context: &Context, out: &mut dyn Write, list: &Path) -> anyhow::Result<u64> {
        let input: Box<dyn std::io::Read> = match list.to_str() {
            Some("-") => Box::new(std::io::stdin()),
            _ => Box::new(
                File::open(list).with_context(|| format!("cannot read the list {}", list.display()))?,
            ),
        };
        let mut input = BufReader::new(input);
        let mut n_unread = 0;
        let progress = context.progress_count(0, "extracting");
        for number in 1.. {
            let mut line = Vec::new();
            if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let job: Job = serde_json::from_slice(&line).with_context(|| {
                format!("line {number} of the list is no page: write {{\"file\": \"page.html\"}}")
            })?;
            let template = template_of(&job.neighbours)?;
            n_unread += self.tell(context, out, &job, template.as_ref(), false)?;
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(n_unread)
    }

    /// Prints the object of one file. A file among many that cannot be read is told and counted.
    fn tell(
        &self,
        context: &Context,
        out: &mut dyn Write,
        job: &Job,
        template: Option<&Template>,
        is_only: bool,
    ) -> anyhow::Result<u64> {
        match read_page(&job.file) {
            Ok(html) => {
                let name = job.file.display().to_string();
                self.print(context, out, &name, job, &self.object_of(&html, job, template))?;
                Ok(0)
            }
            Err(error) if is_only => Err(error),
            Err(error) => {
                context.note(format_args!("{error:#}"));
                Ok(1)
            }
        }
    }

    fn object_of(&self, html: &str, job: &Job, template: Option<&Template>) -> Object {
        let dom = Dom::parse(html);
        let (title, description) = (job.title.as_deref(), job.description.as_deref());
        match Variant::ALL.into_iter().find(|variant| variant.name() == self.algorithm) {
            Some(variant) => {
                let text = extract_text(&dom, title, description, variant);
                Object { title: title.unwrap_or_default().to_owned(), text, ..Object::default() }
            }
            None => extract(&dom, &Known { title, description, url: job.url.as_deref(), template }),
        }
    }

    fn print(
        &self,
        context: &Context,
        out: &mut dyn Write,
        name: &str,
        job: &Job,
        object: &Object,
    ) -> anyhow::Result<()> {
        if context.json {
            let mut line = json_of(object);
            line["page"] = json!(name);
            if !job.id.is_null() {
                line["id"] = job.id.clone();
            }
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        } else {
            write_text(out, object)?;
        }
        Ok(())
    }
}

/// What is needed of a page that was named by its address.
struct Loaded {
    url: String,
    version: String,
    html: String,
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

fn template_of(neighbours: &[PathBuf]) -> anyhow::Result<Option<Template>> {
    if neighbours.is_empty() {
        return Ok(None);
    }
    let read = |file: &PathBuf| read_page(file).map(|html| Dom::parse(&html));
    let pages: Vec<Dom> = neighbours.iter().take(MAX_NEIGHBOURS).map(read).collect::<anyhow::Result<_>>()?;
    Ok(Some(Template::of(&pages)))
}

fn json_of(object: &Object) -> Value {
    json!({
        "title": object.title,
        "lead": object.lead,
        "time": object.time.map(|time| time.to_rfc3339()),
        "author": object.author,
        "categories": object.categories,
        "text": object.text,
        "links": object.links,
        "images": object.images,
        "wrapper": object.wrapper,
        "comments": object.comments,
        "comments_address": object.comments_address,
    })
}

/// For people: headline, who and when, lead, text, and how much there is besides.
fn write_text(out: &mut dyn Write, object: &Object) -> std::io::Result<()> {
    if object.text.is_empty() {
        return writeln!(out, "{}\n\n(the page holds no running text)\n", object.title);
    }
    writeln!(out, "{}", object.title)?;
    let time = object.time.map(|time| time.to_rfc3339()).unwrap_or_default();
    let said: Vec<&str> =
        [object.author.as_str(), time.as_str()].into_iter().filter(|said| !said.is_empty()).collect();
    if !said.is_empty() {
        writeln!(out, "{}", said.join(", "))?;
    }
    for part in [&object.lead, &object.text].into_iter().filter(|part| !part.is_empty()) {
        writeln!(out, "\n{part}")?;
    }
    let (n_links, n_images, n_comments) = (object.links.len(), object.images.len(), object.comments.len());
    writeln!(out, "\n({n_links} links, {n_images} images, {n_comments} paragraphs of comments)\n")
}
