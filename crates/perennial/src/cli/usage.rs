//! Wrong usage -> one line that names the right command or option.

use std::ffi::OsString;

use clap::builder::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use perennial_archive::settings::nearest;

/// Former commands and their successors.
const RENAMED_COMMANDS: [(&str, &str); 25] = [
    ("crawl", "run"),
    ("info", "status"),
    ("retry", "visit"),
    ("get", "view --raw"),
    ("objects", "article list"),
    ("object", "article show"),
    ("extract", "article extract"),
    ("terms", "article terms"),
    ("feeds", "feed list"),
    ("feeds list", "feed list"),
    ("feeds discover", "feed find"),
    ("feeds import", "feed import"),
    ("feeds poll", "feed poll"),
    ("feeds stats", "lab feeds"),
    ("feed discover", "feed find"),
    ("pin", "part pin"),
    ("ignore", "part ignore"),
    ("schedule", "plan next"),
    ("patterns", "plan patterns"),
    ("quality", "plan quality"),
    ("segment", "lab segment"),
    ("rebuild", "lab channel"),
    ("rules", "lab rules"),
    ("simulate", "lab simulate"),
    ("notify run", "notify send"),
];

/// Words by which other programs call what a command does.
const COMMANDS_OF_OTHER_TOOLS: [(&str, &str); 28] = [
    ("archive", "run"),
    ("mirror", "run"),
    ("start", "run"),
    ("update", "run --once"),
    ("pull", "run --once"),
    ("create", "init"),
    ("new", "init"),
    ("follow", "add"),
    ("subscribe", "add"),
    ("unfollow", "remove"),
    ("delete", "remove"),
    ("stop", "pause"),
    ("continue", "resume"),
    ("fetch", "visit"),
    ("refresh", "visit"),
    ("show", "view"),
    ("open", "view"),
    ("cat", "view --raw"),
    ("server", "serve"),
    ("replay", "serve"),
    ("history", "changes"),
    ("compare", "diff"),
    ("find", "search"),
    ("grep", "search"),
    ("stats", "status"),
    ("check", "verify"),
    ("fsck", "verify"),
    ("settings", "config show"),
];

/// Former options and their successors, by command.
const RENAMED_OPTIONS: [(&str, &str, &str); 9] = [
    ("run", "--operate", "--admin"),
    ("serve", "--operate", "--admin"),
    ("serve", "--operator-file", "--admin-token-file"),
    ("log", "--acts", "--audit"),
    ("watch", "--least-importance", "--min-importance"),
    ("plan next", "--next", "--visits"),
    ("verify", "--accept-foreign", "--accept-imported"),
    ("demo", "--changing-requisites", "--changing-subresources"),
    ("lab simulate", "--notices", "--announced"),
];

/// Options that other programs have or this one had, and what to use instead.
const OPTIONS_OF_OTHER_TOOLS: [(&str, &str, &str); 4] = [
    (
        "run",
        "--period",
        "write the period into --budget, such as 1000/1h; pages are visited at any time, so there is no other",
    ),
    ("watch", "--interval", "use --every TIME"),
    ("set", "--interval", "use --every TIME"),
    ("add", "--interval", "use --every TIME"),
];

/// The answer to an unknown command or option; `None` leaves the answer to clap.
pub(super) fn explain_error(error: &clap::Error, root: &Command, words: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let unknown = text(ContextKind::InvalidSubcommand)?;
            let n_before = words.iter().position(|word| word == unknown)?;
            let (command, path) = named(root, &words[..n_before]);
            Some(unknown_command(command, &path, unknown, words.get(n_before + 1)))
        }
        ErrorKind::UnknownArgument => {
            let (command, path) = named(root, words);
            let option = text(ContextKind::InvalidArg)?;
            option.starts_with("--").then(|| unknown_option(root, command, &path, option))
        }
        _ => None,
    }
}

/// The innermost command that the words name, and its path.
fn named<'c>(root: &'c Command, words: &[OsString]) -> (&'c Command, Vec<&'c str>) {
    let (mut command, mut path) = (root, Vec::new());
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            path.push(inner.get_name());
        }
    }
    (command, path)
}

fn unknown_command(command: &Command, path: &[&str], unknown: &str, next: Option<&OsString>) -> String {
    let called = [path, &[unknown]].concat().join(" ");
    // clap stops at the first unknown word: of `feeds poll` at `feeds`.
    let longer = format!("{called} {}", next.and_then(|word| word.to_str()).unwrap_or_default());
    let successor = |called: &str| RENAMED_COMMANDS.iter().find(|(before, _)| *before == called);
    if let Some((before, now)) = successor(&longer).or_else(|| successor(&called)) {
        return format!("`perennial {before}` was renamed: use `perennial {now}`");
    }
    if let Some((_, ours)) = COMMANDS_OF_OTHER_TOOLS.iter().find(|(theirs, _)| *theirs == called) {
        return format!("there is no `perennial {called}`: use `perennial {ours}`");
    }
    let own = command.get_subcommands().flat_map(Command::get_name_and_visible_aliases);
    let prefix: String = path.iter().map(|name| format!("{name} ")).collect();
    match nearest(unknown, own) {
        Some(near) => format!("there is no `perennial {called}`: did you mean `perennial {prefix}{near}`?"),
        None => format!("there is no `perennial {called}`: `perennial {prefix}--help` lists the commands"),
    }
}

fn unknown_option(root: &Command, command: &Command, path: &[&str], option: &str) -> String {
    let path = path.join(" ");
    let unknown = format!("`perennial {path}` has no option {option}");
    let find = |table: &'static [(&str, &str, &'static str)]| {
        table
            .iter()
            .find(|(of, name, _)| *of == path && *name == option)
            .map(|(.., explain_error)| *explain_error)
    };
    if let Some(now) = find(&RENAMED_OPTIONS) {
        return format!("{option} of `perennial {path}` was renamed: use {now}");
    }
    if let Some(instead) = find(&OPTIONS_OF_OTHER_TOOLS) {
        return format!("{unknown}: {instead}");
    }
    let name = option.trim_start_matches('-');
    if let Some(near) = nearest(name, command.get_arguments().filter_map(|argument| argument.get_long())) {
        return format!("{unknown}: did you mean --{near}?");
    }
    let mut owners = Vec::new();
    add_owners(root, name, "perennial", &mut owners);
    match owners.as_slice() {
        [] | [_, _, _, _, ..] => format!("{unknown}: see `perennial {path} --help`"),
        owners => format!("{unknown}, but {} has", owners.join(", ")),
    }
}

/// Adds the commands that have an option.
fn add_owners(command: &Command, option: &str, path: &str, owners: &mut Vec<String>) {
    for inner in command.get_subcommands() {
        let path = format!("{path} {}", inner.get_name());
        if inner.get_arguments().any(|argument| argument.get_long() == Some(option)) {
            owners.push(format!("`{path}`"));
        }
        add_owners(inner, option, &path, owners);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help::command_for;

    fn error_text(line: &str) -> String {
        let words = format!("perennial {line}");
        let (mut command, words) = command_for(words.split(' ').map(OsString::from));
        let error = command.try_get_matches_from_mut(&words).expect_err(line);
        explain_error(&error, &command, &words).unwrap_or_else(|| error.to_string())
    }

    fn exists(line: &str) -> bool {
        let (mut command, words) =
            command_for(format!("perennial {line} --help").split(' ').map(OsString::from));
        command.try_get_matches_from_mut(&words).is_err_and(|error| error.kind() == ErrorKind::DisplayHelp)
    }

    #[test]
    fn former_names_and_those_of_other_tools_suggest_a_command_that_exists() {
        for (name, successor) in RENAMED_COMMANDS.into_iter().chain(COMMANDS_OF_OTHER_TOOLS) {
            assert!(
                error_text(name).contains(&format!("use `perennial {successor}`")),
                "{}",
                error_text(name)
            );
            assert!(exists(successor), "{successor}");
        }
        assert!(error_text("feeds poll --delay 0").contains("use `perennial feed poll`"));
    }

    #[test]
    fn former_options_suggest_options_that_exist() {
        for (command, option, successor) in RENAMED_OPTIONS {
            let explain_error = error_text(&format!("{command} {option}"));
            assert!(explain_error.ends_with(&format!("was renamed: use {successor}")), "{explain_error}");
            let (root, _) = command_for(std::iter::empty());
            let words: Vec<OsString> =
                format!("perennial {command}").split(' ').map(OsString::from).collect();
            let found =
                named(&root, &words).0.get_arguments().any(|one| one.get_long() == Some(&successor[2..]));
            assert!(found, "{command} {successor}");
        }
    }

    #[test]
    fn typing_mistakes_suggest_the_nearest_name() {
        for (line, near) in [
            ("statsu", "`perennial status`"),
            ("chnages", "`perennial changes`"),
            ("plan nxt", "`perennial plan next`"),
            ("changes --sinc 2d", "--since"),
            ("run --time-limt 2d", "--time-limit"),
        ] {
            assert!(error_text(line).ends_with(&format!("did you mean {near}?")), "{}", error_text(line));
        }
        assert!(error_text("frobnicate").ends_with("`perennial --help` lists the commands"));
    }

    #[test]
    fn an_option_of_another_command_suggests_that_command() {
        assert!(error_text("run https://a.example --depth 3").ends_with("but `perennial add` has"));
        assert!(error_text("watch https://a.example --interval 5m").contains("use --every TIME"));
    }

    /// The command lines in a document or a source: after a backtick or a build folder, or alone on an
    /// indented line.
    fn command_lines(text: &str) -> Vec<String> {
        let text = text.replace("\\n", "\n");
        let mut found = Vec::new();
        for line in text.lines().filter(|line| !line.contains("python3")) {
            for (at, name) in line.match_indices("perennial ") {
                let (before, rest) = (&line[..at], &line[at + name.len()..]);
                let is_example = before.len() >= 2 && before.trim().is_empty() || before.trim() == "$";
                if is_example || before.ends_with('`') || before.ends_with("release/") {
                    let ends = ["`", "\"", "|", ";", ")", ">", "&&", "  ", " #", "\\"];
                    let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
                    found.push(rest[..end].to_owned());
                }
            }
        }
        found
    }

    /// What is wrong with a command line: a command or an option that does not exist.
    fn mistake_in(root: &Command, line: &str) -> Option<String> {
        let words: Vec<OsString> =
            ["perennial"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        let (command, path) = named(root, &words);
        let first = line.split_whitespace().next().unwrap_or_default();
        let is_word = !first.is_empty() && first.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if path.is_empty() && is_word && !first.starts_with('-') {
            return Some(format!("`perennial {line}`: no command {first}"));
        }
        let has = |command: &Command, name: &str| {
            command.get_arguments().any(|argument| {
                argument.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name))
            })
        };
        let options = line.split_whitespace().filter_map(|word| word.strip_prefix("--"));
        let name = |option: &str| {
            option.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default().to_owned()
        };
        let is_known = |name: &String| {
            ["", "help", "help-all", "version"].contains(&name.as_str())
                || has(command, name)
                || has(root, name)
        };
        let unknown = options.map(name).find(|name| !is_known(name))?;
        Some(format!("`perennial {line}`: no option --{unknown}"))
    }

    /// Files below a folder with an ending.
    fn files(folder: &std::path::Path, ending: &str, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_skipped = ["target", ".git", "testdata", "vendor"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !is_skipped {
                files(&path, ending, found);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }

    #[test]
    fn commands_in_hints_and_documents_exist() {
        let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut paths = Vec::new();
        files(&top, ".md", &mut paths);
        files(&top.join("crates"), ".rs", &mut paths);
        let mut root = command_for(std::iter::empty()).0;
        root.build();
        let (mut n_lines, mut mistakes) = (0, Vec::new());
        for path in paths.iter().filter(|path| !path.ends_with("cli/usage.rs")) {
            for line in command_lines(&std::fs::read_to_string(path).unwrap()) {
                n_lines += 1;
                mistakes
                    .extend(mistake_in(&root, &line).map(|mistake| format!("{}: {mistake}", path.display())));
            }
        }
        assert!(n_lines > 300, "only {n_lines} command lines were found");
        assert!(mistakes.is_empty(), "{mistakes:#?}");
    }

    #[test]
    fn a_wrong_command_or_option_in_a_text_is_found() {
        let root = command_for(std::iter::empty()).0;
        let mistakes = |text: &str| {
            command_lines(text).iter().filter_map(|line| mistake_in(&root, line)).collect::<Vec<_>>()
        };
        assert_eq!(mistakes("see `perennial crawl URL`").len(), 1);
        assert_eq!(mistakes("Examples:\\n  perennial status --site 3").len(), 1);
        assert_eq!(
            mistakes("    perennial plan next --visits 3   # three\n`perennial COMMAND --help`").len(),
            0
        );
    }
}
