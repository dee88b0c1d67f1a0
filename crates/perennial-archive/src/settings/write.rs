//! Seeds -> `[[site]]` of perennial.toml. Everything else in the file is unchanged: comments, order, spelling.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, bail};
use perennial_core::page::segment::Selector;
use perennial_core::schedule::units::{write_budget, write_bytes};
use perennial_core::url::canonical;
use regex::Regex;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value, value};
use url::Url;

use super::edit;
use super::parts::pin_to_toml;
use super::site::Seed;

/// The result of an edit for one site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteEdit {
    pub url: Url,
    /// Whether the site is new.
    pub is_new: bool,
    /// Each changed setting, for example `weight = 2 (was 1)`.
    pub changed: Vec<String>,
}

/// Writes seeds into perennial.toml. A known URL is edited in its place if its settings differ. Returns the edits.
pub fn follow(path: &Path, seeds: &[Seed]) -> anyhow::Result<Vec<SiteEdit>> {
    edit(path, |document, settings| {
        let sites = tables(document, "site")?;
        let mut places = HashMap::new();
        for (at, table) in sites.iter().enumerate() {
            places.extend(site_url(table).map(|url| (url, at)));
        }
        let mut edited = Vec::with_capacity(seeds.len());
        for seed in seeds {
            let url = seed.scope.seed.clone();
            let (after, known) = (to_toml(seed), settings.seeds.with_url(&url));
            let place = places.get(&url).and_then(|at| sites.get_mut(*at));
            edited.push(match (place, known.map(to_toml)) {
                (Some(table), Some(before)) => {
                    replace(table, &before, &after);
                    SiteEdit { url, is_new: false, changed: differences(&before, &after) }
                }
                // If a new URL occurs twice, the later seed wins.
                (Some(table), None) => {
                    *table = after;
                    continue;
                }
                (None, _) => {
                    places.insert(url.clone(), sites.len());
                    let usual = to_toml(&Seed::of_host(url.clone()));
                    let changed = differences(&usual, &after);
                    sites.push(after);
                    SiteEdit { url, is_new: true, changed }
                }
            });
        }
        Ok(edited)
    })
}

/// Edits followed sites. If any of them is not followed, nothing changes. Returns the edits.
pub fn change(path: &Path, urls: &[Url], change: impl Fn(&Seed) -> Seed) -> anyhow::Result<Vec<SiteEdit>> {
    let settings = super::Settings::load(path)?;
    let changed = |url: &Url| settings.seeds.with_url(url).map(&change).with_context(|| not_followed(url));
    follow(path, &urls.iter().map(changed).collect::<anyhow::Result<Vec<Seed>>>()?)
}

fn not_followed(url: &Url) -> String {
    format!("{url} is not followed: `perennial list` shows the sites that are")
}

/// Sets the values in which `after` differs from `before`, the table as this program would write it. All other text and
/// comments remain unchanged.
pub(super) fn replace(table: &mut Table, before: &Table, after: &Table) {
    table.retain(|key, _| after.contains_key(key) || !before.contains_key(key));
    for (key, item) in after {
        if before.get(key).is_some_and(|before| before.to_string() == item.to_string()) {
            continue;
        }
        let mut item = item.clone();
        if let (Some(old), Some(new)) = (table.get(key).and_then(Item::as_value), item.as_value_mut()) {
            if let (Value::Array(old), Value::Array(new)) = (old, &mut *new) {
                *new = merged(old, new);
            }
            *new.decor_mut() = old.decor().clone();
        }
        table[key] = item;
    }
}

/// The elements of `after`. Elements that were there before keep their spelling.
fn merged(before: &Array, after: &Array) -> Array {
    let plain = |value: &Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.clone().decorated("", "").to_string(),
    };
    let wanted: HashSet<String> = after.iter().map(plain).collect();
    let mut kept = before.clone();
    kept.retain(|value| wanted.contains(&plain(value)));
    let known: HashSet<String> = kept.iter().map(plain).collect();
    after.iter().filter(|value| !known.contains(&plain(value))).for_each(|value| kept.push(value.clone()));
    kept
}

/// The settings in which two tables differ, for people.
pub(super) fn differences(before: &Table, after: &Table) -> Vec<String> {
    let text = |item: &Item| item.to_string().trim().to_owned();
    let mut changes = Vec::new();
    for (key, item) in after {
        match before.get(key).map(text) {
            Some(was) if was == text(item) => {}
            Some(was) => changes.push(format!("{key} = {} (was {was})", text(item))),
            None => changes.push(format!("{key} = {}", text(item))),
        }
    }
    let gone = before.iter().filter(|(key, _)| !after.contains_key(key));
    changes.extend(gone.map(|(key, item)| format!("{key} as usual (was {})", text(item))));
    changes
}

/// Removes seeds from perennial.toml. If any is missing, nothing changes.
pub fn unfollow(path: &Path, urls: &[Url]) -> anyhow::Result<()> {
    edit(path, |document, _| {
        let sites = tables(document, "site")?;
        let followed: HashSet<Url> = sites.iter().filter_map(site_url).collect();
        if let Some(other) = urls.iter().find(|url| !followed.contains(url)) {
            bail!(not_followed(other));
        }
        let urls: HashSet<&Url> = urls.iter().collect();
        sites.retain(|table| site_url(table).is_none_or(|url| !urls.contains(&url)));
        Ok(())
    })
}

/// All tables of a name, even if they are written as one inline list.
pub(super) fn tables<'d>(
    document: &'d mut DocumentMut,
    name: &'static str,
) -> anyhow::Result<&'d mut ArrayOfTables> {
    let item = document.entry(name).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    if let Ok(tables) = std::mem::take(item).into_array_of_tables() {
        *item = Item::ArrayOfTables(tables);
    }
    let tables = item.as_array_of_tables_mut();
    tables.with_context(|| format!("`{name}` in perennial.toml is not a list of tables; write [[{name}]]"))
}

fn site_url(table: &Table) -> Option<Url> {
    canonical::parse(table.get("url")?.as_str()?)
}

/// Writes only the values that differ from the defaults.
fn to_toml(seed: &Seed) -> Table {
    let usual = Seed::of_host(seed.scope.seed.clone());
    let mut table = Table::new();
    let mut put = |key: &str, item: Option<Item>| {
        if let Some(item) = item {
            table[key] = item;
        }
    };
    let patterns = |patterns: &[Regex]| list(patterns.iter().map(Regex::as_str));
    put("url", Some(value(seed.scope.seed.as_str())));
    put("scope", Some(value(seed.scope.kind.name())));
    put("include", patterns(&seed.scope.include));
    put("exclude", patterns(&seed.scope.exclude));
    put("depth", seed.depth.map(|depth| value(i64::from(depth))));
    put("weight", (seed.weight != usual.weight).then(|| value(seed.weight)));
    put("timezone", seed.clock.as_ref().map(|clock| value(clock.zone())));
    put("holidays", list(seed.holidays.iter().map(ToString::to_string)));
    put("goal", seed.goal.map(|goal| value(goal.name())));
    put("renderer", (seed.renderer != usual.renderer).then(|| value(seed.renderer.to_string())));
    put("behaviors", list(seed.behaviors.iter().map(|behavior| behavior.name())));
    put("login", seed.login.as_ref().map(|file| value(file.to_string_lossy().into_owned())));
    put("allow_private", seed.allow_private.then(|| value(true)));
    put("paused", seed.paused.then(|| value(true)));
    put("budget", seed.allowance.visits.map(|budget| value(write_budget(budget))));
    put("bytes_per_day", seed.allowance.bytes_per_day.map(|bytes| value(write_bytes(bytes))));
    seed.times.to_toml().into_iter().for_each(|(key, item)| put(key, item));
    put("keep", (seed.keep != usual.keep).then(|| value(seed.keep.to_string())));
    let selectors = |selectors: &[Selector]| list(selectors.iter().map(Selector::to_string));
    put("pin", list(seed.parts.pinned().iter().map(pin_to_toml)));
    put("ignore", selectors(seed.parts.ignored()));
    put("feeds", list(seed.feeds.iter().map(Url::as_str)));
    put("tags", list(seed.tags.iter().map(String::as_str)));
    table
}

fn list(texts: impl Iterator<Item = impl Into<toml_edit::Value>>) -> Option<Item> {
    let array: Array = texts.collect();
    (!array.is_empty()).then(|| value(array))
}

#[cfg(test)]
mod tests {
    use perennial_core::schedule::Goal;
    use perennial_core::url::scope::{Scope, ScopeKind};

    use super::*;
    use crate::settings::site::{parse_holiday, parse_pattern, parse_selector, parse_url, parse_zone};
    use crate::settings::times::{parse_every, parse_hours};
    use crate::settings::{
        Behavior, BudgetTable, PageParts, PageRenderer, PinnedPart, VersionRetention, VisitTimes,
    };

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let (_dir, path) = file("# kept\n[[site]]\n# kept too\nurl = \"http://a.org\"\nweight = 3\n");
        let plain = Seed::of_host(parse_url("a.org").unwrap());
        let seed = Seed {
            scope: Scope {
                kind: ScopeKind::Prefix,
                include: vec![parse_pattern("a\\.b").unwrap()],
                exclude: vec![parse_pattern("\"").unwrap(), parse_pattern("d").unwrap()],
                max_depth: Some(2),
                seed: parse_url("http://a.org").unwrap(),
            },
            depth: Some(2),
            weight: 0.25,
            clock: Some(parse_zone("Europe/Paris").unwrap()),
            holidays: vec![parse_holiday("DE").unwrap(), parse_holiday("2026-12-24").unwrap()],
            goal: Some(Goal::EveryPage),
            renderer: PageRenderer::Chromium,
            behaviors: vec![Behavior::LoadMore, Behavior::Dismiss],
            login: Some("secrets/a.toml".into()),
            allow_private: true,
            paused: true,
            allowance: BudgetTable {
                visits: Some(
                    perennial_core::schedule::units::parse_budget(
                        "2.5/90s",
                        perennial_core::time::Span::ZERO,
                    )
                    .unwrap(),
                ),
                bytes_per_day: Some(1_500_000),
            },
            times: VisitTimes {
                every: Some(parse_every("90s").unwrap()),
                hours: Some(parse_hours("Mon-Fri 08:00-18:00").unwrap()),
            },
            keep: VersionRetention::Important,
            feeds: vec![parse_url("http://feeds.a.org/f?x=1").unwrap()],
            tags: vec!["news".to_owned(), "a \"b\"".to_owned()],
            parts: PageParts::new(
                vec![
                    PinnedPart { selector: parse_selector("#a > .b").unwrap(), importance: None },
                    PinnedPart { selector: parse_selector("[x=\"y\"]").unwrap(), importance: Some(0.3) },
                ],
                vec![parse_selector("aside").unwrap()],
            ),
        };
        follow(&path, &[seed.clone(), plain]).unwrap();
        let settings = crate::settings::Settings::load(&path).unwrap();
        assert_eq!(settings.seeds.len(), 2, "the one of the same address was replaced");
        assert_eq!(format!("{:?}", settings.seeds.iter().next().unwrap()), format!("{seed:?}"));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("# kept\n[[site]]\n# kept too\nurl"));
    }

    #[test]
    fn a_site_stands_behind_the_template_and_leaves_it_as_it_was() {
        let (_dir, path) = file(crate::settings::TEMPLATE);
        let url = parse_url("https://a.org/").unwrap();
        follow(&path, &[Seed::of_host(url.clone())]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let added = text.strip_prefix(crate::settings::TEMPLATE).unwrap();
        assert_eq!(added.trim_start(), "[[site]]\nurl = \"https://a.org/\"\nscope = \"host\"\n");
        unfollow(&path, &[url]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), crate::settings::TEMPLATE);
    }

    #[test]
    fn a_seed_is_unfollowed_however_its_url_is_written() {
        let (_dir, path) = file("site = [{ url = \"http://a.org\" }, { url = \"http://b.org\" }]\n");
        let [a, c] = ["http://a.org/", "http://c.org/"].map(|url| parse_url(url).unwrap());
        assert!(
            unfollow(&path, &[a.clone(), c])
                .unwrap_err()
                .to_string()
                .contains("http://c.org/ is not followed")
        );
        unfollow(&path, &[a]).unwrap();
        let left = crate::settings::Settings::load(&path).unwrap().seeds;
        assert_eq!(left.iter().map(|seed| seed.scope.seed.as_str()).collect::<Vec<_>>(), ["http://b.org/"]);
    }

    #[test]
    fn an_edit_leaves_what_it_does_not_concern_as_it_was_written() {
        let text = "[[site]]\nurl = \"a.org\" # the first\nweight = 2 # twice\nbudget = \"24/1d\"\n\
                    ignore = [\n  '.ad', # blinks\n  \".clock\",\n]\n\n# the other\n[[site]]\nurl = \"b.org\"\n";
        let (_dir, path) = file(text);
        let url = parse_url("a.org").unwrap();
        let this = [url.clone()];
        let paused = change(&path, &this, |seed| Seed { paused: true, ..seed.clone() }).unwrap();
        assert_eq!(
            paused,
            [SiteEdit { url: url.clone(), is_new: false, changed: vec!["paused = true".into()] }]
        );
        let expected = text.replace("]\n\n# the other", "]\npaused = true\n\n# the other");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        change(&path, &this, |seed| Seed { paused: false, ..seed.clone() }).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let heavier = change(&path, &this, |seed| Seed { weight: 3.0, ..seed.clone() }).unwrap();
        assert_eq!(heavier[0].changed, ["weight = 3.0 (was 2.0)"]);
        assert!(std::fs::read_to_string(&path).unwrap().contains("weight = 3.0 # twice\n"));
        let selector = parse_selector(".c").unwrap();
        change(&path, &this, |seed| Seed {
            parts: seed.parts.with_ignored(selector.clone()),
            ..seed.clone()
        })
        .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("  '.ad', # blinks\n") && text.contains("\".c\""), "{text}");
    }

    #[test]
    fn an_unfollowed_site_is_not_changed_and_a_file_with_a_mistake_is_left_alone() {
        let (_dir, path) = file("[[site]]\nurl = \"a.org\"\n");
        let other = parse_url("b.org").unwrap();
        let error = change(&path, &[other], Seed::clone).unwrap_err();
        assert!(error.to_string().contains("https://b.org/ is not followed"), "{error}");
        let wrong = "[[site]]\nurl = \"a.org\"\nwieght = 2\n";
        std::fs::write(&path, wrong).unwrap();
        let url = parse_url("a.org").unwrap();
        let error = follow(&path, &[Seed::of_host(url)]).unwrap_err();
        assert!(error.to_string().contains("did you mean `weight`?"), "{error:#}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), wrong);
    }
}
