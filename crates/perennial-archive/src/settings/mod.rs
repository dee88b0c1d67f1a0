//! `perennial.toml` -> typed tables. Opening an archive reads and checks the file once.
//!
//! Unknown keys and invalid values are mistakes. All mistakes of a file are reported together, each with its line. A
//! file of a later format is refused before anything else in it is read (docs/archive-format.md).
//!
//! | file | what becomes what |
//! |---|---|
//! | `reader` | tables of a TOML document -> values, and mistakes with their lines |
//! | [`archive`] | `[archive]`, `[warc]` -> the identity of the folder, and how WARC files are written |
//! | [`crawl`] | `[crawl]` -> politeness and limits |
//! | [`holidays`] | `holidays` of `[[site]]` -> local days, including those of whole countries |
//! | [`parts`] | `pin` and `ignore` of `[[site]]` <-> how pages are segmented |
//! | [`site`] | `[[site]]` -> seeds, found by URL and by number |
//! | [`times`] | `every` and `hours` of `[[site]]`; `[[page]]` <-> watched pages |
//! | [`mod@write`] | seeds -> `[[site]]`, with comments unchanged |
//! | [`notify`] | `[[notify]]` <-> rules for notices; `[smtp]` -> the mail server |

pub mod archive;
pub mod crawl;
pub mod holidays;
pub mod notify;
pub mod parts;
mod reader;
pub mod site;
pub mod times;
pub mod write;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use perennial_core::time::Span;
use toml_edit::{Document, DocumentMut, Table};
use url::Url;

use crate::disk::write_whole;
pub use archive::{ArchiveTable, Codec, FORMAT, WarcTable};
pub use crawl::{BudgetTable, CrawlTable};
pub use notify::{NoticeReceiver, NotifyRule, SmtpSecurity, SmtpTable, WebFormat, put_rule, remove_rule};
pub use parts::{PageParts, PinnedPart};

pub use reader::{Mistakes, nearest};
use reader::{ReadingLog, SettingKey, TableReader};
pub use site::{PageRenderer, Seed, Seeds, VersionRetention};
pub use times::{VisitTimes, WatchedPage, unwatch_pages, watch_page};
pub use write::{SiteEdit, change, follow, unfollow};

/// The initial file that `perennial init` writes.
pub const TEMPLATE: &str = include_str!("template.toml");

/// Keys without a default. Their lines in the template are examples.
pub const WITHOUT_DEFAULT: [&str; 11] = [
    "user_agent",
    "budget",
    "feed_polls",
    "websub_callback",
    "bytes_per_day",
    "proxy",
    "tls_roots",
    "varying_budget",
    "floor",
    "server",
    "password_file",
];

/// The name of the file as a whole in messages.
const FILE: &str = "perennial.toml";

/// The contents of `perennial.toml`.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `[archive]`
    pub archive: ArchiveTable,
    /// `[warc]`
    pub warc: WarcTable,
    /// `[crawl]`
    pub crawl: CrawlTable,
    /// `[[site]]`, in the order of the file.
    pub seeds: Seeds,
    /// `[[page]]`, in the order of the file.
    pub pages: Vec<WatchedPage>,
    /// `[[notify]]`, in the order of the file.
    pub notify: Vec<NotifyRule>,
    /// `[smtp]`
    pub smtp: SmtpTable,
}

impl Settings {
    pub fn load(path: &Path) -> anyhow::Result<Settings> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Settings::parse(path, &text)
    }

    /// Reads and checks the text of a file. Messages name `path`.
    pub fn parse(path: &Path, text: &str) -> anyhow::Result<Settings> {
        let document =
            Document::parse(text).map_err(|error| Mistakes::from_syntax_error(path, text, &error))?;
        refuse_later_format(path, document.as_table())?;
        let mut notes = ReadingLog::new(text);
        let settings = notes.read(FILE, Some(document.as_table()), None, Settings::read);
        match notes.into_mistakes(path, known_keys) {
            Some(mistakes) => Err(mistakes.into()),
            None => Ok(settings),
        }
    }

    /// The interval that the user wrote for a page or its site.
    pub fn user_interval(&self, url: &Url) -> Option<Span> {
        let own = self.pages.iter().find(|page| page.url == *url).and_then(|page| page.times.every);
        own.or_else(|| self.seeds.of_page(url)?.times.every)
    }

    fn read(reader: &mut TableReader<'_, '_>) -> Settings {
        let archive = reader.table("archive", "[archive]", ArchiveTable::read);
        let warc = reader.table("warc", "[warc]", WarcTable::read);
        let crawl = reader.table("crawl", "[crawl]", CrawlTable::read);
        let seeds = Seeds::read(reader, crawl.max_depth);
        let pages = WatchedPage::read_all(reader);
        let notify = NotifyRule::read_all(reader);
        let smtp = reader.table("smtp", "[smtp]", SmtpTable::read);
        Settings { archive, warc, crawl, seeds, pages, notify, smtp }
    }
}

/// A later format may have keys that this program does not know. Its file is refused before the check.
fn refuse_later_format(path: &Path, root: &Table) -> anyhow::Result<()> {
    let format = root.get("archive").and_then(|archive| archive.get("format")?.as_integer());
    match format {
        Some(format) if format > i64::from(FORMAT) => bail!(
            "{} says format = {format}, and this program knows formats up to {FORMAT}: install a later perennial",
            path.display()
        ),
        _ => Ok(()),
    }
}

/// The keys of all tables, collected by reading a minimal file.
fn known_keys() -> BTreeSet<SettingKey> {
    let text = "[[site]]\nurl = \"https://example.org/\"\n[[page]]\nurl = \"https://example.org/\"\n\
        [[notify]]\nname = \"a\"\nto = \"email:a@b\"\n";
    let Ok(document) = Document::parse(text) else { return BTreeSet::new() };
    let mut notes = ReadingLog::new(text);
    notes.read(FILE, Some(document.as_table()), None, Settings::read);
    notes.into_keys()
}

/// Edits the file and keeps its comments and order. `change` also receives the settings before the edit. A file with
/// mistakes is refused, and so is an edit that would cause one. The file is replaced atomically.
pub fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut, &Settings) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let settings = Settings::parse(path, &text)?;
    let mut document: DocumentMut =
        text.parse().map_err(|error| Mistakes::from_syntax_error(path, &text, &error))?;
    let done = change(&mut document, &settings)?;
    let after = document.to_string();
    if after == text {
        return Ok(done);
    }
    let text = after;
    Settings::parse(path, &text).context("the change would leave a mistake; nothing was changed")?;
    write_whole(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(done)
}

/// Returns the choice with this name. The error lists all choices.
fn parse_choice<T: Copy>(text: &str, choices: &[(&'static str, T)]) -> Result<T, String> {
    match choices.iter().find(|(name, _)| *name == text) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let (last, others) = names.split_last().unwrap_or((&"", &[]));
            Err(format!("choose {} or {last}", others.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Settings> {
        Settings::parse(Path::new("perennial.toml"), text)
    }

    fn mistakes(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn the_template_says_the_defaults() {
        let loaded = parse(TEMPLATE).unwrap();
        assert_eq!(format!("{loaded:?}"), format!("{:?}", Settings::default()));
    }

    /// Removes the comment mark from a line of the template that is a header or a setting.
    fn uncommented(line: &str) -> Option<&str> {
        let line = line.strip_prefix("# ").unwrap_or(line);
        let is_key = line.split_once(" = ").is_some_and(|(key, _)| is_key(key));
        (is_key || line.starts_with('[')).then_some(line)
    }

    fn is_key(word: &str) -> bool {
        !word.is_empty() && word.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
    }

    fn keys() -> Vec<(String, String)> {
        let keys = known_keys().into_iter().filter(|(table, _)| *table != FILE);
        keys.map(|(table, key)| (table.to_owned(), key.to_owned())).collect()
    }

    #[test]
    fn the_template_names_every_setting_once_with_its_default() {
        let (mut found, mut table) = (Vec::new(), "");
        let (mut whole, mut with_defaults) = (String::new(), String::new());
        for line in TEMPLATE.lines().filter_map(uncommented) {
            whole += &format!("{line}\n");
            match line.split_once(" = ") {
                None => table = line,
                Some((key, _)) => found.push((table.to_owned(), key.to_owned())),
            }
            let is_example = line.split_once(" = ").is_some_and(|(key, _)| WITHOUT_DEFAULT.contains(&key));
            if !table.starts_with("[[") && !is_example {
                with_defaults += &format!("{line}\n");
            }
        }
        found.sort();
        assert_eq!(found, keys());
        assert_eq!(parse(&whole).unwrap().seeds.len(), 1, "the examples hold");
        assert_eq!(format!("{:?}", parse(&with_defaults).unwrap()), format!("{:?}", Settings::default()));
    }

    /// Table, key and default of each entry in docs/settings.md, such as "- `robots` = `true`: Obey robots.txt".
    fn documented() -> Vec<(String, String, String)> {
        let text = include_str!("../../../../docs/settings.md");
        let (mut rows, mut table) = (Vec::new(), "");
        for line in text.lines() {
            if let Some(header) = line.strip_prefix("## ") {
                table = header;
            }
            let Some((key, rest)) = line.strip_prefix("- `").and_then(|rest| rest.split_once('`')) else {
                continue;
            };
            let default = rest.strip_prefix(" = `").and_then(|rest| rest.split_once('`'));
            rows.push((
                table.to_owned(),
                key.to_owned(),
                default.map_or("none", |(value, _)| value).to_owned(),
            ));
        }
        rows
    }

    #[test]
    fn the_documentation_names_every_setting_once() {
        let mut found: Vec<_> = documented().into_iter().map(|(table, key, _)| (table, key)).collect();
        found.sort();
        assert_eq!(found, keys());
    }

    #[test]
    fn the_documentation_says_the_defaults() {
        let url = "url = \"https://example.org/\"";
        let rule = "name = \"a\"\nto = \"email:a@b\"";
        for (table, key, default) in documented().into_iter().filter(|(_, _, default)| default != "none") {
            let url = match table.as_str() {
                "[[site]]" | "[[page]]" => url,
                "[[notify]]" => rule,
                _ => "",
            };
            let without = format!("{:?}", parse(&format!("{table}\n{url}\n")).unwrap());
            let with = format!("{:?}", parse(&format!("{table}\n{url}\n{key} = {default}\n")).unwrap());
            assert_eq!(with, without, "{key} of {table}");
        }
    }

    #[test]
    fn editing_keeps_comments() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        fs::write(&path, TEMPLATE).unwrap();
        edit(&path, |document, _| {
            document["warc"]["operator"] = toml_edit::value("A Library");
            Ok(())
        })
        .unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches('#').count(), TEMPLATE.matches('#').count());
        assert_eq!(Settings::load(&path).unwrap().warc.operator, "A Library");
    }

    #[test]
    fn an_edit_that_leaves_a_mistake_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        fs::write(&path, TEMPLATE).unwrap();
        let edited = edit(&path, |document, _| {
            document["warc"]["gzip_level"] = toml_edit::value(10);
            Ok(())
        });
        assert!(format!("{:#}", edited.unwrap_err()).contains("from 1 to 9"));
        assert_eq!(fs::read_to_string(&path).unwrap(), TEMPLATE);
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line_and_the_nearest_key() {
        let text = "[crawl]\nrobots = true\n\n[[site]]\nurl = \"https://example.org/\"\nbuget = \"1/1h\"\n";
        assert_eq!(
            mistakes(text),
            "perennial.toml line 6: `buget` is not a setting of [[site]]: did you mean `budget`?"
        );
        assert_eq!(
            mistakes("[crwal]\n"),
            "perennial.toml line 1: `crwal` is not a setting of perennial.toml: did you mean `crawl`?"
        );
        let misplaced = mistakes("[[site]]\nurl = \"https://example.org/\"\nmax_workers = 3\n");
        assert!(
            misplaced
                .ends_with("line 3: `max_workers` is not a setting of [[site]]: it belongs below [crawl]")
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line_and_what_is_allowed() {
        let crawl = |line: &str| format!("[crawl]\n{line}\n");
        let site = |line: &str| format!("[[site]]\nurl = \"https://example.org/\"\n{line}\n");
        let warc = |line: &str| format!("[warc]\n{line}\n");
        let notify = |lines: &str| format!("[[notify]]\nname = \"n\"\n{lines}\n");
        for (text, message) in [
            (warc("prefix = \"../x\""), "line 2: prefix = \"../x\": it begins file names: use letters"),
            (warc("gzip_level = 0"), "line 2: gzip_level = 0: write a whole number from 1 to 9"),
            (warc("gzip_level = 10"), "from 1 to 9"),
            (warc("compression = \"lzma\""), "compression = \"lzma\": choose gzip or zstd"),
            (warc("max_file_bytes = \"large\""), "write a number of bytes above 0"),
            (warc("max_file_bytes = -1"), "write a number of bytes above 0"),
            (warc("operator = \"a\\nb\""), "write one line of text"),
            ("[archive]\nformat = 0\n".into(), "line 2: format = 0: write a whole number from 1 to 1"),
            (crawl("robots = \"yes\""), "robots = \"yes\": write true or false"),
            (crawl("max_workers = 0"), "write a whole number from 1 to"),
            (crawl("max_workers = 1.5"), "write a whole number"),
            (crawl("min_delay_secs = -1"), "write a number from 0 to"),
            (crawl("delay_factor = nan"), "write a number"),
            (crawl("delay_factor = inf"), "write a number"),
            (crawl("head_timeout_secs = 0"), "write a number from 0.001 to"),
            (crawl("max_delay_secs = 1"), "max_delay_secs = 1: it must not be below min_delay_secs (3)"),
            (crawl("min_delay_secs = 60"), "min_delay_secs = 60: it must not be above max_delay_secs (30)"),
            (crawl("budget = \"lots\""), "such as 1000/1h, both numbers above 0"),
            (crawl("budget = \"0/1h\""), "such as 1000/1h, both numbers above 0"),
            (crawl("budget = 5"), "write it as text in quotes"),
            (crawl("bytes_per_day = \"0MB\""), "write a number of bytes above 0"),
            (crawl("proxy = \"socks://x\""), "http://proxy.example:3128"),
            (crawl("user_agent = \"\""), "write one line"),
            ("crawl = 3\n".into(), "line 1: `crawl` is a table: write [crawl]"),
            (
                site("renderer = \"chromiun\""),
                "line 3: renderer = \"chromiun\": choose auto, layout or chromium",
            ),
            (site("scope = \"hosts\""), "choose page, prefix, host or domain"),
            (site("keep = \"some\""), "choose all or important"),
            (site("timezone = \"Mars/Base\""), "Europe/Berlin"),
            (site("weight = 0"), "write a number"),
            (site("weight = -2.0"), "write a number"),
            (site("depth = -1"), "write a whole number from 0 to"),
            (site("include = \"a\""), "write a list of texts"),
            (site("exclude = [\n  \"fine\",\n  \"(\",\n]"), "line 5: exclude = \"(\": unclosed group"),
            (
                site("pin = [\"#a\", \"b:hover\"]"),
                "line 3: pin = \"b:hover\": this pseudo-class is not supported",
            ),
            (site("ignore = \"#a\""), "write a list of texts"),
            (
                site("pin = [{ selector = \"#a\" }]"),
                "line 3: pin = { selector = \"#a\" }: write \"#headlines\" or { selector",
            ),
            (site("pin = [{ selector = \"#a\", importance = 2 }]"), "write a number above 0 and at most 1"),
            (site("exclude = [3]"), "write it as text in quotes"),
            (crawl("requisite_hours = 2"), "`requisite_hours` is now called `subresource_hours`"),
            (
                notify("to = \"email:a@b\"\nleast_importance = 1"),
                "`least_importance` is now called `min_importance`",
            ),
            (site("url_ = 1"), "did you mean `url`?"),
            ("[[site]]\nscope = \"page\"\n".into(), "line 1: [[site]] needs a url"),
            ("[[site]]\nurl = \"ftp://a.org\"\n".into(), "write it like https://example.org/"),
            ("[site]\nurl = \"https://a.org\"\n".into(), "write [[site]], with two brackets"),
            ("[crawl\n".into(), "line 1: "),
            (notify("to = \"fax:1\""), "line 3: to = \"fax:1\": write webhook:, slack:, ntfy:"),
            (
                notify("to = \"email:a@b\"\nkinds = [\"edit\"]"),
                "line 4: kinds = \"edit\": choose edited, retitled",
            ),
            (notify("to = \"email:a@b\"\nappears = \"/(/\""), "line 4: appears = \"/(/\": unclosed group"),
            (notify("to = \"email:a@b\"\nplace = \"a b\""), "write the host of a site"),
            (notify("to = \"email:a@b\"\nleast = 1"), "line 4: `least` is not a setting of [[notify]]"),
            (notify("to = \"email:a@b\"\nmin_importance = 2"), "write a number from 0 to 1"),
            (notify(""), "line 1: [[notify]] needs to, such as"),
            (
                notify("to = \"email:a@b\"\n[[notify]]\nname = \"n\"\nto = \"email:a@b\""),
                "line 5: name = \"n\": another [[notify]] has it",
            ),
            ("[smtp]\nserver = \"a:b\"\n".into(), "line 2: server = \"a:b\": write host and port"),
            ("[smtp]\nsecurity = \"ssl\"\n".into(), "choose starttls, tls or none"),
        ] {
            let mistakes = mistakes(&text);
            assert!(mistakes.contains(message), "{text}\ngives {mistakes}\nand not {message}");
            assert_eq!(mistakes.lines().count(), 1, "{mistakes}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once_in_line_order() {
        let text = "[crawl]\nmax_workers = 0\nbuget = \"1/1h\"\n[warc]\ngzip_level = \"x\"\n";
        let mistakes = mistakes(text);
        let lines: Vec<&str> = mistakes.lines().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(lines, ["perennial.toml line 2", "perennial.toml line 3", "perennial.toml line 5"]);
    }

    #[test]
    fn a_wrong_url_hides_no_other_mistake() {
        let message = mistakes("[[site]]\nurl = \"ftp://a.org/\"\nkeep = \"some\"\nignore = [\"a:b\"]\n");
        assert_eq!(message.lines().count(), 3, "{message}");
    }

    #[test]
    fn no_more_mistakes_are_reported_than_fit_a_screen() {
        let keys: String = (0..5000).map(|n| format!("x{n} = 1\n")).collect();
        let mistakes = mistakes(&format!("[crawl]\n{keys}"));
        assert_eq!(mistakes.lines().count(), 21);
        assert!(mistakes.ends_with("and 4980 more mistakes"), "{mistakes}");
    }

    #[test]
    fn an_url_that_is_followed_twice_is_a_mistake() {
        let text =
            "[[site]]\nurl = \"https://a.org\"\n[[site]]\nurl = \"https://a.org/\"\nscope = \"page\"\n";
        assert!(mistakes(text).contains("line 4: url = \"https://a.org/\": another [[site]] has it"));
    }

    #[test]
    fn a_later_format_is_refused_before_its_keys_are_read() {
        let mistakes = mistakes("[archive]\nformat = 2\ncolour = \"red\"\n");
        assert!(mistakes.contains("install a later perennial") && !mistakes.contains("colour"), "{mistakes}");
    }

    #[test]
    fn values_are_typed_once_they_are_loaded() {
        let settings = parse(
            "site = [{ url = \"example.org\", bytes_per_day = 5_000, timezone = \"Europe/Berlin\" }]\n\
             [warc]\nmax_file_bytes = \"1MB\"\n\
             [crawl]\nsubresource_hours = 2\nmax_head_bytes = 1000\nbudget = \"24/d\"\n",
        )
        .unwrap();
        let seed = settings.seeds.iter().next().unwrap();
        assert_eq!(
            (seed.scope.seed.as_str(), seed.allowance.bytes_per_day),
            ("https://example.org/", Some(5_000))
        );
        assert_eq!(seed.clock.as_ref().unwrap().zone(), "Europe/Berlin");
        assert_eq!(settings.warc.max_file_bytes, 1_000_000);
        assert_eq!(settings.crawl.subresource_span, perennial_core::time::Span::from_hours(2));
        assert_eq!(settings.crawl.limits.max_head_bytes, 1000);
        assert_eq!(settings.crawl.allowance.visits.unwrap().visits, 24.0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_settings_or_mistakes_with_lines(
            lines in proptest::collection::vec("(\\[\\[site\\]\\]|\\[(crawl|warc|archive|x)\\]|(url|budget|depth|pin|format|site|é) = (\"[^\"]{0,9}\"|-?[0-9]{1,20}|nan|\\[\\]|\\{\\}|true)|\\PC{0,12})", 0..12),
        ) {
            let text = lines.join("\n");
            if let Err(error) = parse(&text) {
                let message = error.to_string();
                let has_lines = message.lines().all(|line| line.starts_with("perennial.toml "));
                proptest::prop_assert!(has_lines && !message.is_empty(), "{text}\n{message}");
            }
        }
    }
}
