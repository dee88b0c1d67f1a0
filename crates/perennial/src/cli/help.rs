//! `perennial --help`: the commands in groups. `--help-all`: rare commands and options too.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::builder::Command;

use super::Cli;

/// clap has one heading for all commands, so the groups are written here. A test compares them with `Command`.
const HELP: &str = "\
{about}

Usage: perennial [--archive DIR] [--json] COMMAND

Follow:
  run             Follow URLs and crawl until stopped; without a URL crawl all that is followed
  watch           Follow one page and report its changes
  add, remove     Start or stop following sites
  list            List the followed sites
  set             Change the weight, budget or goal of a site
  pause, resume   Suspend or resume the visits of a site
  visit           Visit a page, or the failing pages of a host, as soon as possible

Look:
  status          Show what the archive contains
  changes         List the changes of pages
  diff            Compare two versions of a page
  search          Find pages that contained the words, and when
  view            Open an archived page in a browser, or print its content
  log             Show the visits of the crawler, and the audit log
  serve           Serve the dashboard, replay and APIs

Keep:
  import, export  Read and write WARC, WACZ, CDXJ, CSV, Parquet and other files
  verify          Check every record of the archive, or rebuild its index
  doctor          Check this machine: browser, sandbox, fonts, disk space, clock

Groups:
  notify          List notification rules, test them, send pending notices
  part            Pin or ignore parts of a site's pages
  feed            List, find, import and poll feeds
  article         Articles of pages: list, show, extract, new terms
  plan            Next visits, patterns of change, quality of the archive
  config          Show and check the settings
  lab             Simulate strategies and repeat the experiments of the papers

Examples:
  perennial run https://example.org/   follow a site and crawl it until Ctrl-C
  perennial COMMAND --help             explain a command
  perennial --help-all                 list options, exit codes and rare commands too";

const HELP_ALL: &str = "

Rare:
  init            Create an empty archive
  analyse         Analyse every capture that has not been analysed
  erase           Erase the captures of a page or a site, for legal requests
  filters         Update the filter lists that recognise advertisements
  sql             Query the archive with SQL
  demo            Archive a changing web that this machine serves, and report what was caught
  completions     Print completions for a shell
  man             Write the manual pages

{all-args}

Exit codes:
   0  success
   1  error
   2  wrong usage
   3  disk full
   4  defects found (verify, import, export), faults (doctor), mistakes (config check)
   5  nothing to read in a page (diff, lab segment)
   6  no page, or it could not be fetched (visit)
  11  interrupted
  14  size limit reached
  15  time limit reached";

/// The command line for some words, and the words that clap parses: `--help-all` is a `--help` that hides nothing, and
/// `help COMMAND --all` is the same.
pub(super) fn command_for(words: impl Iterator<Item = OsString>) -> (Command, Vec<OsString>) {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "help") && words.last().is_some_and(|word| word == "--all") {
        words.remove(1);
        words.pop();
        words.push("--help-all".into());
    }
    let command = Cli::command();
    match words.iter_mut().take_while(|word| *word != "--").find(|word| *word == "--help-all") {
        None => (command.help_template(HELP), words),
        Some(word) => {
            *word = "--help".into();
            let command = command.mut_subcommands(|command| with_all_options(command).hide(true));
            (command.help_template(format!("{HELP}{HELP_ALL}")), words)
        }
    }
}

fn with_all_options(command: Command) -> Command {
    command.mut_args(|option| option.hide(false)).mut_subcommands(with_all_options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that a help text lists.
    fn listed(text: &str) -> Vec<&str> {
        let lines = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  perennial"));
        let lines = lines.take_while(|line| !line.starts_with("   0"));
        lines.flat_map(|line| line.trim_start().split("  ").next().unwrap_or_default().split(", ")).collect()
    }

    #[test]
    fn every_command_is_in_the_help() {
        let command = Cli::command();
        let names = |is_hidden: bool| -> Vec<&str> {
            let all = command.get_subcommands().filter(|one| one.is_hide_set() == is_hidden);
            all.map(Command::get_name).collect()
        };
        assert_eq!(listed(HELP), names(false));
        let rare = names(true).into_iter().filter(|name| *name != "render-worker");
        assert_eq!(listed(HELP_ALL), rare.collect::<Vec<_>>());
    }

    /// The screens of a command and its subcommands, with their paths.
    fn screens(command: &mut Command, path: &str, all: &mut Vec<(String, String)>) {
        let path = format!("{path}{} ", command.get_name());
        if command.get_name() != "help" {
            all.push((path.clone(), command.render_help().to_string()));
            command.get_subcommands_mut().for_each(|command| screens(command, &path, all));
        }
    }

    #[test]
    fn help_fits_one_screen_and_has_examples() {
        let (command, _) = command_for(std::iter::empty());
        let mut command = command.term_width(100);
        command.build();
        let mut all = Vec::new();
        screens(&mut command, "", &mut all);
        assert!(all.len() > 50 && all[0].1.lines().count() <= 40, "{}", all[0].1);
        let fits =
            |text: &str| text.lines().count() <= 45 && text.lines().all(|line| line.chars().count() <= 100);
        let is_good = |text: &str| fits(text) && text.contains("Examples:");
        let bad: Vec<String> = all
            .into_iter()
            .filter(|(path, text)| !is_good(text) && !path.contains("render-worker"))
            .map(|(path, text)| format!("{path}: {} lines\n{text}", text.lines().count()))
            .collect();
        assert!(bad.is_empty(), "{}", bad.join("\n\n"));
    }
}
