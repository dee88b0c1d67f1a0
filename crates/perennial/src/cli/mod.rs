//! The command line. Each file contains one command: its arguments, and a `run` that calls the crates below and prints.
//!
//! A new command is a file with an `Args` struct and `run(self, &Context) -> anyhow::Result<Exit>`, one line in `Command`, one in
//! `Command::run` and, if it is shown by `perennial --help`, its name in `help::GROUPS`.
//!
//! | files | commands |
//! |---|---|
//! | `run`, `watch`, `add`, `remove`, `list`, `set`, `pause`, `visit`, `init` | follow sites and visit them |
//! | `status`, `changes`, `diff`, `search`, `view`, `log`, `serve`, `sql` | show the archive |
//! | `import`, `export`, `tables`, `csv`, `verify`, `doctor`, `analyse`, `filters` | keep and move archives |
//! | `notify`, `part`, `feed`, `article`, `plan`, `config`, `lab` | groups of commands |
//! | `demo` | the demonstration |
//! | `help`, `usage`, `shell` | help texts, answers to wrong usage, completions and manual pages |
//! | `context`, `exit`, `progress`, `raw`, `renderer`, `render_worker`, `signals` | shared code |

mod activity;
mod add;
mod analyse;
mod article;
mod changes;
mod config;
mod context;
mod csv;
mod demo;
mod diff;
mod doctor;
mod erase;
mod exit;
mod export;
mod feed;
mod filters;
mod help;
mod import;
mod init;
mod lab;
mod list;
mod log;
mod notify;
mod part;
mod pause;
mod plan;
mod progress;
mod raw;
mod remove;
mod render_worker;
mod renderer;
mod run;
mod search;
mod serve;
mod set;
mod shell;
mod signals;
mod sql;
mod status;
mod tables;
mod usage;
mod verify;
mod view;
mod visit;
mod watch;

pub use context::Context;
pub use exit::Exit;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};
use perennial_core::schedule::units::{self, UnitError};
use perennial_core::time::Timestamp;

/// A web archive that spends its fetches when pages change in ways that matter.
#[derive(Parser)]
#[command(name = "perennial", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    /// Folder of the archive [default: . if it is an archive, else ./archive]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "PERENNIAL_ARCHIVE",
        hide_env = true,
        help_heading = "Global options"
    )]
    archive: Vec<PathBuf>,

    /// Print data as JSON
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Watch(watch::WatchArgs),
    Add(add::AddArgs),
    #[command(visible_alias = "rm")]
    Remove(remove::RemoveArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Set(set::SetArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Visit(visit::VisitArgs),
    Status(status::StatusArgs),
    Changes(changes::ChangesArgs),
    Diff(diff::DiffArgs),
    Search(search::SearchArgs),
    View(view::ViewArgs),
    Log(log::LogArgs),
    Serve(serve::ServeArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Verify(verify::VerifyArgs),
    Doctor(doctor::DoctorArgs),
    Notify(notify::NotifyArgs),
    Part(part::PartArgs),
    Feed(feed::FeedArgs),
    Article(article::ArticleArgs),
    Plan(plan::PlanArgs),
    Config(config::ConfigArgs),
    Lab(lab::Lab),
    #[command(hide = true)]
    Init(init::InitArgs),
    #[command(hide = true)]
    Analyse(analyse::AnalyseArgs),
    #[command(hide = true)]
    Erase(erase::EraseArgs),
    #[command(hide = true)]
    Filters(filters::FiltersArgs),
    #[command(hide = true)]
    Sql(sql::SqlArgs),
    #[command(hide = true)]
    Demo(demo::DemoArgs),
    #[command(hide = true)]
    Completions(shell::CompletionsArgs),
    #[command(hide = true)]
    Man(shell::ManArgs),
    #[command(hide = true)]
    RenderWorker(render_worker::RenderWorkerArgs),
}

impl Command {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self {
            Command::Run(args) => args.run(context),
            Command::Watch(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Remove(args) => args.run(context),
            Command::List(args) => args.run(context),
            Command::Set(args) => args.run(context),
            Command::Pause(args) => args.run(context),
            Command::Resume(args) => args.run(context),
            Command::Visit(args) => args.run(context),
            Command::Status(args) => args.run(context),
            Command::Changes(args) => args.run(context),
            Command::Diff(args) => args.run(context),
            Command::Search(args) => args.run(context),
            Command::View(args) => args.run(context),
            Command::Log(args) => args.run(context),
            Command::Serve(args) => args.run(context),
            Command::Import(args) => args.run(context),
            Command::Export(args) => args.run(context),
            Command::Verify(args) => args.run(context),
            Command::Erase(args) => args.run(context),
            Command::Doctor(args) => args.run(context),
            Command::Notify(args) => args.run(context),
            Command::Part(args) => args.run(context),
            Command::Feed(args) => args.run(context),
            Command::Article(args) => args.run(context),
            Command::Plan(args) => args.run(context),
            Command::Config(args) => args.run(context),
            Command::Lab(args) => args.run(context),
            Command::Init(args) => args.run(context),
            Command::Analyse(args) => args.run(context),
            Command::Filters(args) => args.run(context),
            Command::Sql(args) => args.run(context),
            Command::Demo(args) => args.run(context),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(context),
            Command::RenderWorker(args) => args.run(context),
        }
    }
}

/// A time as every command takes it: an instant, or a length of time ago.
fn parse_time(text: &str) -> Result<Timestamp, UnitError> {
    units::parse_time(text, perennial_archive::now())
}

/// Runs the command line; returns the exit code of the process.
pub fn run() -> ExitCode {
    let (mut command, words) = help::command_for(std::env::args_os());
    let parsed = command.try_get_matches_from_mut(&words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => match usage::explain_error(&error, &command, &words) {
            Some(text) => {
                context::note(text);
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    let context = Context::new(cli.archive, cli.json);
    exit::exit_code(cli.command.run(&context))
}
