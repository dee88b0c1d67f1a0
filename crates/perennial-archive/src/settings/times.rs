//! `every` and `hours` of `[[site]]` and `[[page]]` <-> when pages are visited; `[[page]]` <-> watched pages.

use std::collections::HashSet;
use std::path::Path;

use perennial_core::schedule::units::{parse_span, write_span};
use perennial_core::time::{Span, WeeklyHours};
use perennial_core::url::canonical;
use toml_edit::{Item, Table, value};
use url::Url;

use super::edit;
use super::reader::TableReader;
use super::site::parse_url;
use super::write::{differences, replace, tables};

/// Bounds of an interval.
const SHORTEST: Span = Span::from_secs(1);
const LONGEST: Span = Span::from_hours(24 * 366);

/// How often pages are visited, and at which hours, if the user chose.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VisitTimes {
    pub every: Option<Span>,
    pub hours: Option<WeeklyHours>,
}

/// `[[page]]`: a page that is watched with times of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct WatchedPage {
    pub url: Url,
    /// Those of its site apply where these are missing.
    pub times: VisitTimes,
}

/// Parses an interval such as `5m`.
pub fn parse_every(text: &str) -> Result<Span, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    let is_fit = (SHORTEST..=LONGEST).contains(&span);
    is_fit.then_some(span).ok_or_else(|| "write a time from 1s to 366d, such as 5m".to_owned())
}

/// Parses hours such as `Mon-Fri 08:00-18:00`.
pub fn parse_hours(text: &str) -> Result<WeeklyHours, String> {
    text.parse::<WeeklyHours>().map_err(|error| error.to_string())
}

impl VisitTimes {
    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> VisitTimes {
        VisitTimes { every: reader.parsed("every", parse_every), hours: reader.parsed("hours", parse_hours) }
    }

    /// The values of the table; nothing for what is not set.
    pub(super) fn to_toml(&self) -> [(&'static str, Option<Item>); 2] {
        [
            ("every", self.every.map(|every| value(write_span(every)))),
            ("hours", self.hours.as_ref().map(|hours| value(hours.to_string()))),
        ]
    }

    pub fn is_empty(&self) -> bool {
        *self == VisitTimes::default()
    }
}

impl WatchedPage {
    /// Reads each `[[page]]` of the file.
    pub(super) fn read_all(reader: &mut TableReader<'_, '_>) -> Vec<WatchedPage> {
        let mut known = HashSet::new();
        reader.tables("page", "[[page]]", |reader| {
            if !reader.has("url") {
                reader.lacks("[[page]] needs a url, such as url = \"https://example.org/prices\"");
            }
            let url = reader.parsed("url", parse_url);
            let times = VisitTimes::read(reader);
            let url = url?;
            if !known.insert(url.clone()) {
                reader.refuse("url", "another [[page]] has it: leave one of the two out");
            }
            Some(WatchedPage { url, times })
        })
    }

    fn to_toml(&self) -> Table {
        let mut table = Table::new();
        table["url"] = value(self.url.as_str());
        for (key, item) in self.times.to_toml() {
            if let Some(item) = item {
                table[key] = item;
            }
        }
        table
    }
}

/// Writes a watched page into perennial.toml, or changes its times. Returns what changed, for people.
pub fn watch_page(path: &Path, page: &WatchedPage) -> anyhow::Result<Vec<String>> {
    edit(path, |document, settings| {
        let tables = tables(document, "page")?;
        let after = page.to_toml();
        let known = settings.pages.iter().find(|known| known.url == page.url).map(WatchedPage::to_toml);
        let place = tables.iter().position(|table| page_url(table).as_ref() == Some(&page.url));
        match (place.and_then(|at| tables.get_mut(at)), known) {
            (Some(table), Some(before)) => {
                replace(table, &before, &after);
                Ok(differences(&before, &after))
            }
            _ => {
                let mut before = Table::new();
                before["url"] = value(page.url.as_str());
                tables.push(after.clone());
                Ok(differences(&before, &after))
            }
        }
    })
}

/// Removes watched pages from perennial.toml.
pub fn unwatch_pages(path: &Path, urls: &[Url]) -> anyhow::Result<()> {
    edit(path, |document, _| {
        let tables = tables(document, "page")?;
        tables.retain(|table| page_url(table).is_none_or(|url| !urls.contains(&url)));
        Ok(())
    })
}

fn page_url(table: &Table) -> Option<Url> {
    canonical::parse(table.get("url")?.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_watched_page_is_written_changed_and_removed_and_comments_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        let text = "# mine\n[[page]]\nurl = \"a.org/x\" # watched\nevery = \"1h\" # hourly\n";
        std::fs::write(&path, text).unwrap();
        let page = |url: &str, every: &str, hours: Option<&str>| WatchedPage {
            url: parse_url(url).unwrap(),
            times: VisitTimes {
                every: Some(parse_every(every).unwrap()),
                hours: hours.map(|hours| parse_hours(hours).unwrap()),
            },
        };
        let changed = watch_page(&path, &page("a.org/x", "5m", None)).unwrap();
        assert_eq!(changed, ["every = \"5m\" (was \"1h\")"]);
        let changed = watch_page(&path, &page("b.org", "90s", Some("Mon-Fri 08:00-18:00"))).unwrap();
        assert_eq!(changed, ["every = \"90s\"", "hours = \"Mon-Fri 08:00-18:00\""]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("# mine\n[[page]]\nurl = \"a.org/x\" # watched\nevery = \"5m\" # hourly\n"),
            "{text}"
        );
        let pages = Settings::load(&path).unwrap().pages;
        let both = [page("a.org/x", "5m", None), page("b.org", "90s", Some("Mon-Fri 08:00-18:00"))];
        assert_eq!(pages, both);
        unwatch_pages(&path, &[parse_url("https://a.org/x").unwrap()]).unwrap();
        assert_eq!(Settings::load(&path).unwrap().pages, both[1..]);
    }

    #[test]
    fn an_interval_is_a_time_above_a_second() {
        assert_eq!(parse_every("5m"), Ok(Span::from_secs(300)));
        for wrong in ["0", "0.5s", "5 minutes", "400d", "-5m", ""] {
            assert!(parse_every(wrong).is_err(), "{wrong}");
        }
    }
}
