//! A command that was renamed -> an error that names the new one.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Before and after.
const RENAMED: [(&str, &str); 4] = [
    ("feeds stats", "lab feeds"),
    ("rebuild", "lab channel"),
    ("rules", "lab rules"),
    ("simulate", "lab simulate"),
];

/// What to tell a user whose arguments clap did not understand, if they name a command of before.
pub(super) fn hint(error: &clap::Error, arguments: impl Iterator<Item = String>) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let words: Vec<String> = arguments.collect();
    let is_named = |(before, _): &&(&str, &str)| {
        before.split(' ').next_back() == Some(unknown)
            && before.split(' ').all(|word| words.iter().any(|w| w == word))
    };
    let (before, after) =
        RENAMED.iter().find(is_named).filter(|_| error.kind() == ErrorKind::InvalidSubcommand)?;
    Some(format!("`perennial {before}` was renamed; use `perennial {after}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser as _;

    fn refused(command: &str) -> Option<(clap::Error, Vec<String>)> {
        let words: Vec<String> =
            ["perennial"].into_iter().chain(command.split(' ')).map(str::to_owned).collect();
        Cli::try_parse_from(&words).err().map(|error| (error, words))
    }

    #[test]
    fn a_former_name_is_answered_with_a_command_that_there_is() {
        for (before, after) in RENAMED {
            let (error, words) = refused(before).unwrap();
            assert!(hint(&error, words.into_iter()).unwrap().contains(after));
            let is_known = |(error, _): (clap::Error, _)| error.kind() != ErrorKind::InvalidSubcommand;
            assert!(refused(after).is_none_or(is_known), "{after}");
        }
        let (error, words) = refused("simulat").unwrap();
        assert_eq!(hint(&error, words.into_iter()), None, "clap's own suggestion is better");
    }
}
