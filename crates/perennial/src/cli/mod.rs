//! The command line: one file a subcommand, each a screenful: parse, call, print.
//!
//! A new subcommand is a file with an `Args` struct and a `run(self, &Context) -> anyhow::Result<Exit>`,
//! one line in `Command` and one in `Command::run`.
//!
//! | files | commands |
//! |---|---|
//! | `run`, `crawl`, `watch`, `add`, `remove`, `list`, `set`, `pause`, `retry`, `init` | follow sites and visit them |
//! | `info`, `changes`, `diff`, `search`, `terms`, `view`, `get`, `log`, `serve`, `sql` | look at the archive |
//! | `patterns`, `schedule`, `quality` | when pages change, what is visited next, how complete the archive is |
//! | `import`, `export`, `tables`, `csv`, `verify`, `doctor`, `analyse` | keep and move archives |
//! | `notify`, `pin`, `feeds`, `objects`, `extract`, `segment`, `filters` | notices, parts of pages, feeds, articles, blocks |
//! | `lab`, `demo` | the laboratory and the demonstration |
//! | `context`, `exit`, `renamed`, `renderer`, `render_worker`, `signals` | what commands share |

mod add;
mod analyse;
mod changes;
mod context;
mod crawl;
mod csv;
mod demo;
mod diff;
mod doctor;
mod exit;
mod export;
mod extract;
mod feeds;
mod filters;
mod get;
mod import;
mod info;
mod init;
mod lab;
mod list;
mod log;
mod notify;
mod objects;
mod patterns;
mod pause;
mod pin;
mod quality;
mod remove;
mod renamed;
mod render_worker;
mod renderer;
mod retry;
mod run;
mod schedule;
mod search;
mod segment;
mod serve;
mod set;
mod signals;
mod sql;
mod tables;
mod terms;
mod verify;
mod view;
mod watch;

pub use context::Context;
pub use exit::Exit;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use perennial_core::schedule::amounts::{self, AmountError};
use perennial_core::time::Timestamp;

const AFTER_HELP: &str = "\
Exit codes:
   0  done
   1  error
   2  wrong usage
   3  disk full
   4  defects found (verify, import), faults of this machine (doctor)
   5  nothing to read in a page (segment, diff)
  11  interrupted
  14  size limit reached
  15  time limit reached

Examples:
  perennial init my-archive
  perennial --archive my-archive import crawl.warc.gz
  PERENNIAL_ARCHIVE=my-archive perennial info --json";

/// A web archive that spends its fetches when pages change in ways that matter.
#[derive(Parser)]
#[command(name = "perennial", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    /// The archive's folder [default: the current folder if it is an archive, else ./archive]
    #[arg(long, global = true, value_name = "DIR", env = "PERENNIAL_ARCHIVE")]
    archive: Vec<PathBuf>,

    /// Print data as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Archive a changing web that this machine serves itself, and report what was caught; takes two minutes
    Demo(demo::Demo),
    /// Archive sites from now on: make the archive if needed, follow them, crawl until stopped
    Run(run::Run),
    /// Make a new, empty archive
    Init(init::Init),
    /// Import WARC, ARC and WACZ files that other tools wrote
    Import(import::Import),
    /// Write a part of the archive into one WACZ, WARC or CDXJ file
    Export(export::Export),
    /// Check the whole archive and name every defect
    Verify(verify::Verify),
    /// Check this machine: browser, confinement, fonts, space, clock; name the cures
    Doctor(doctor::Doctor),
    /// Show what is in the archive
    Info(info::Info),
    /// Follow sites from now on
    Add(add::Add),
    /// Stop following sites
    Remove(remove::Remove),
    /// Do not visit sites for now
    Pause(pause::Pause),
    /// Visit sites again that were paused
    Resume(pause::Resume),
    /// Change the weight, budget or goal of a site
    Set(set::Set),
    /// Visit a page again now, or all pages of a host whose last visit failed
    Retry(retry::Retry),
    /// Show the sites that are followed
    List(list::List),
    /// Let a part of a site's pages count most
    Pin(pin::Pin),
    /// Leave a part of a site's pages out of the comparison
    Ignore(pin::Ignore),
    /// Show feeds and how they publish; find, import and poll them
    Feeds(feeds::Feeds),
    Objects(objects::Objects),
    Object(objects::OneObject),
    /// Visit the sites that are followed, and archive what is there
    Crawl(crawl::Crawl),
    /// Serve archived pages over HTTP: replay, calendars, Memento, CDX
    Serve(serve::Serve),
    /// Open an archived page in a browser
    View(view::View),
    /// Write an archived body to standard output
    Get(get::Get),
    /// Show the visits of the crawl (why, what came back, what was stored), and who changed what is followed
    Log(log::Log),
    /// Estimate how complete and how coherent the archive is
    Quality(quality::Quality),
    /// Show when pages change and how much that matters
    Patterns(patterns::Patterns),
    /// Show what the crawl will do next, when and why
    Schedule(schedule::Schedule),
    /// Analyse every capture that was not analysed yet
    Analyse(analyse::Analyse),
    /// Show the blocks of a page as a reader sees them
    Segment(segment::Segment),
    /// Show what changed between two versions of a page, and how much it matters
    Diff(diff::Diff),
    /// Show the article or post that a page holds
    Extract(extract::Extract),
    /// List the changes in the archive
    Changes(changes::Changes),
    Search(search::Search),
    Terms(terms::Terms),
    Sql(sql::Sql),
    /// Follow one page, and tell someone when it changes
    Watch(watch::Watch),
    /// Show who hears of changes, try it, send what waits
    Notify(notify::Notify),
    /// Update the filter lists that recognise advertisements
    Filters(filters::Filters),
    /// Repeat and extend the experiments of the papers
    Lab(lab::Lab),
    /// Lay out pages from standard input for another process
    #[command(hide = true)]
    RenderWorker(render_worker::RenderWorker),
}

impl Command {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self {
            Command::Demo(args) => args.run(context),
            Command::Run(args) => args.run(context),
            Command::Init(args) => args.run(context),
            Command::Import(args) => args.run(context),
            Command::Export(args) => args.run(context),
            Command::Verify(args) => args.run(context),
            Command::Doctor(args) => args.run(context),
            Command::Info(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Remove(args) => args.run(context),
            Command::Pause(args) => args.run(context),
            Command::Resume(args) => args.run(context),
            Command::Set(args) => args.run(context),
            Command::Retry(args) => args.run(context),
            Command::List(args) => args.run(context),
            Command::Pin(args) => args.run(context),
            Command::Ignore(args) => args.run(context),
            Command::Feeds(args) => args.run(context),
            Command::Objects(args) => args.run(context),
            Command::Object(args) => args.run(context),
            Command::Crawl(args) => args.run(context),
            Command::Serve(args) => args.run(context),
            Command::View(args) => args.run(context),
            Command::Get(args) => args.run(context),
            Command::Log(args) => args.run(context),
            Command::Quality(args) => args.run(context),
            Command::Patterns(args) => args.run(context),
            Command::Schedule(args) => args.run(context),
            Command::Analyse(args) => args.run(context),
            Command::Segment(args) => args.run(context),
            Command::Diff(args) => args.run(context),
            Command::Extract(args) => args.run(context),
            Command::Changes(args) => args.run(context),
            Command::Search(args) => args.run(context),
            Command::Terms(args) => args.run(context),
            Command::Sql(args) => args.run(context),
            Command::Watch(args) => args.run(context),
            Command::Notify(args) => args.run(context),
            Command::Filters(args) => args.run(context),
            Command::Lab(args) => args.run(context),
            Command::RenderWorker(args) => args.run(context),
        }
    }
}

/// A time as every command takes it: an instant, or a length of time ago.
fn parse_time(text: &str) -> Result<Timestamp, AmountError> {
    amounts::parse_time(text, perennial_archive::now())
}

/// Runs the command line; gives the process's exit code.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match renamed::hint(&error, std::env::args()) {
            Some(hint) => {
                context::note(hint);
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    let context = Context::new(cli.archive, cli.json);
    exit::code_of(cli.command.run(&context))
}
