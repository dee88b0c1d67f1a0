//! `perennial config`: perennial.toml -> the settings in force, and its mistakes.

use std::io::{self, Write};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use perennial_archive::settings::{Settings, TEMPLATE, WITHOUT_DEFAULT};
use serde::Serialize;
use toml_edit::{Document, Item};

use super::{Context, Exit};

/// Show and check the settings.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

const AFTER_HELP: &str = "\
The settings are in perennial.toml in the archive's folder; docs/settings.md explains each.

Examples:
  perennial config show
  perennial config check";

#[derive(Subcommand)]
enum ConfigCommand {
    /// Show every setting with its value, and whether the file or the default sets it
    #[command(after_help = AFTER_HELP)]
    Show,
    /// Report the mistakes of perennial.toml with their lines; exit code 4 if there are any
    #[command(after_help = AFTER_HELP)]
    Check,
}

/// A setting and where its value is from.
#[derive(Serialize)]
struct SettingRow {
    table: String,
    key: String,
    /// `None`: off until it is set.
    value: Option<String>,
    /// `file` or `default`.
    source: &'static str,
}

impl ConfigArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            ConfigCommand::Show => show(context),
            ConfigCommand::Check => check(context),
        }
    }
}

fn show(context: &Context) -> anyhow::Result<Exit> {
    let path = context.open()?.settings_path();
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows = settings_in_force(&text)?;
    context.print(&rows, |out| write_rows(&rows, out))?;
    Ok(Exit::Done)
}

fn check(context: &Context) -> anyhow::Result<Exit> {
    let path = context.archive_dir().join("perennial.toml");
    let mistakes = Settings::load(&path).err().map(|error| format!("{error:#}"));
    let lines: Vec<&str> = mistakes.iter().flat_map(|text| text.lines()).collect();
    context.print(&lines, |out| match lines.is_empty() {
        true => writeln!(out, "{}: no mistakes", path.display()),
        false => lines.iter().try_for_each(|line| writeln!(out, "{line}")),
    })?;
    Ok(if lines.is_empty() { Exit::Done } else { Exit::Defects })
}

/// Each key of the template with the value of the file or the default, then the sites and notification rules of the file.
fn settings_in_force(text: &str) -> anyhow::Result<Vec<SettingRow>> {
    let document = Document::parse(text)?;
    let mut rows = Vec::new();
    let mut table = "";
    for line in TEMPLATE.lines() {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if line.starts_with('[') {
            table = line;
        }
        let Some((key, default)) = line.split_once(" = ").filter(|(key, _)| is_key(key)) else { continue };
        if table.starts_with("[[") {
            continue;
        }
        let set = document.get(table.trim_matches(['[', ']'])).and_then(|table| table.get(key));
        let default = (!WITHOUT_DEFAULT.contains(&key)).then(|| default.to_owned());
        rows.push(SettingRow {
            table: table.to_owned(),
            key: key.to_owned(),
            value: set.map(value_text).or(default),
            source: if set.is_some() { "file" } else { "default" },
        });
    }
    for name in ["site", "notify"] {
        let tables = document.get(name).and_then(Item::as_array_of_tables);
        for (key, item) in tables.into_iter().flatten().flat_map(|table| table.iter()) {
            let (table, value) = (format!("[[{name}]]"), Some(value_text(item)));
            rows.push(SettingRow { table, key: key.to_owned(), value, source: "file" });
        }
    }
    Ok(rows)
}

fn is_key(word: &str) -> bool {
    word.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
}

/// A value as the file has it, without the comment behind it.
fn value_text(item: &Item) -> String {
    let value = item.as_value().map(|value| value.clone().decorated("", "").to_string());
    value.unwrap_or_else(|| item.to_string())
}

/// TOML again: values of the file as they are, defaults as comments.
fn write_rows(rows: &[SettingRow], out: &mut dyn Write) -> io::Result<()> {
    let mut table = "";
    for row in rows {
        // Every site and every rule begins with its first key.
        if row.table != table || ["url", "name"].contains(&row.key.as_str()) {
            writeln!(out, "{}{}", if table.is_empty() { "" } else { "\n" }, row.table)?;
            table = &row.table;
        }
        match (&row.value, row.source) {
            (Some(value), "file") => writeln!(out, "{} = {value}", row.key)?,
            (Some(value), _) => writeln!(out, "{} = {value}  # default", row.key)?,
            (None, _) => writeln!(out, "# {} is not set", row.key)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_with_their_source() {
        let text = "[crawl]\nrobots = false # a test\n[[site]]\nurl = \"https://a.example/\"\n";
        let rows = settings_in_force(text).unwrap();
        let find = |key: &str| {
            let row = rows.iter().find(|row| row.key == key).unwrap();
            (row.table.as_str(), row.value.as_deref(), row.source)
        };
        assert_eq!(find("robots"), ("[crawl]", Some("false"), "file"));
        assert_eq!(find("max_redirects"), ("[crawl]", Some("10"), "default"));
        assert_eq!(find("budget"), ("[crawl]", None, "default"));
        assert_eq!(find("url"), ("[[site]]", Some("\"https://a.example/\""), "file"));
        let mut shown = Vec::new();
        write_rows(&rows, &mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let settings = Settings::parse(std::path::Path::new("perennial.toml"), &shown).unwrap();
        assert!(!settings.crawl.robots && settings.seeds.len() == 1, "{shown}");
    }
}
