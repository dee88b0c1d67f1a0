//! Recognises advertisements by URL, with EasyList filter lists and Brave's engine.
//!
//! The lists come from three places: the archive's `filters/` folder (`perennial filters update FILE`), the folder of
//! Debian's uBlock package, and a short built-in list that covers ordinary banners. The compiled engine is cached
//! next to the archive's lists and recompiled when a list changes. If no list matches, the URL is searched for whole
//! words of advertising (P-PATTERN 6.2; docs/papers.md, Advertisements and noise).

use std::fs;
use std::path::{Path, PathBuf};

use adblock::Engine;
use adblock::lists::{FilterSet, ParseOptions};
use adblock::request::Request;
use anyhow::{Context as _, bail};
use perennial_core::page::diff::{Element, ElementKind};
use perennial_core::page::observe::{has_advertising_words, is_own_headline};
use sha2::{Digest, Sha256};

/// Ordinary banners and the large ad networks, in EasyList syntax; written for this project.
const BUILT_IN: &str = include_str!("filters.txt");
/// Where distributions install EasyList.
const SYSTEM_FOLDERS: [&str; 2] = [
    "/usr/share/chromium/extensions/ublock-origin/assets/thirdparties/easylist",
    "/usr/share/webext/ublock-origin/assets/thirdparties/easylist",
];
const COMPILED: &str = "compiled.bin";

pub struct AdFilters {
    engine: Engine,
}

impl AdFilters {
    /// Loads the lists of an archive's folder if there is one, of the system, and the built-in list.
    pub fn load(archive: Option<&Path>) -> anyhow::Result<AdFilters> {
        let lists = read_lists(archive)?;
        let engine = match archive.map(filters_dir).filter(|dir| dir.is_dir()) {
            Some(dir) => compiled(&dir.join(COMPILED), &lists),
            None => compile(&lists),
        };
        Ok(AdFilters { engine })
    }

    /// Loads the built-in list only.
    pub fn built_in() -> AdFilters {
        AdFilters { engine: compile(&[BUILT_IN.to_string()]) }
    }

    /// Whether a link or image on this page is an advertisement. Filters for third parties depend on the page's URL.
    pub fn is_advertisement(&self, element: &Element, page: &str) -> bool {
        let kind = match element.kind() {
            ElementKind::Image => "image",
            ElementKind::Link => "other",
            ElementKind::Text => return false,
        };
        !is_own_headline(element, page)
            && (self.is_listed(element.url(), page, kind) || has_advertising_words(element.url()))
    }

    fn is_listed(&self, url: &str, page: &str, kind: &str) -> bool {
        let request = Request::new(url, page, kind, "GET");
        request.is_ok_and(|request| self.engine.check_network_request(&request).should_block())
    }
}

fn filters_dir(archive: &Path) -> PathBuf {
    archive.join("filters")
}

/// Adds a list to the archive. Returns the number of its filters.
pub fn update(archive: &Path, file: &Path) -> anyhow::Result<usize> {
    let list =
        fs::read_to_string(file).with_context(|| format!("cannot read the list {}", file.display()))?;
    let n_filters = list.lines().filter(|line| is_filter(line)).count();
    if n_filters == 0 {
        bail!("{} contains no filter: use a list in EasyList syntax, such as easylist.txt", file.display());
    }
    let dir = filters_dir(archive);
    fs::create_dir_all(&dir)?;
    let name = file.file_name().with_context(|| format!("{} is not a file", file.display()))?;
    perennial_archive::write_whole(&dir.join(name).with_extension("txt"), list.as_bytes())?;
    Ok(n_filters)
}

fn is_filter(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(['!', '['])
}

fn read_lists(archive: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let mut lists = vec![BUILT_IN.to_string()];
    let folders = archive.map(filters_dir).into_iter().chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    for folder in folders.filter(|folder| folder.is_dir()) {
        let mut files: Vec<PathBuf> =
            fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "txt")) {
            lists.push(fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    Ok(lists)
}

fn compile(lists: &[String]) -> Engine {
    let mut set = FilterSet::new(false);
    for list in lists {
        set.add_filter_list(list.clone(), ParseOptions::default());
    }
    Engine::new_with_filter_set(set)
}

/// The cached engine if the lists are unchanged. Otherwise compiles them. A damaged cache is replaced.
fn compiled(path: &Path, lists: &[String]) -> Engine {
    let mut hasher = Sha256::new();
    lists.iter().for_each(|list| hasher.update(list.as_bytes()));
    let digest = hasher.finalize();
    let mut engine = Engine::default();
    if let Ok(bytes) = fs::read(path)
        && let Some(stored) = bytes.strip_prefix(digest.as_slice())
        && engine.deserialize(stored).is_ok()
    {
        return engine;
    }
    let engine = compile(lists);
    // If the cache cannot be written, the next start compiles the lists again.
    let _ = fs::write(path, [digest.as_slice(), &engine.serialize()].concat());
    engine
}

#[cfg(test)]
mod tests {
    use perennial_core::page::segment::{Image, Link, Text};

    use super::*;

    const PAGE: &str = "http://news.example/";

    fn image(source: &str) -> Element {
        Element::Image(Image::new("", source))
    }

    #[test]
    fn ordinary_advertisements_are_recognised_by_the_built_in_list() {
        let filters = AdFilters::built_in();
        for url in [
            "http://ad.doubleclick.net/ddm/trackclk/N1",
            "http://news.example/ads/top.gif",
            "http://adserver.example.com/x.jpg",
            "http://cdn.example.com/teaser_468x60.gif",
        ] {
            assert!(filters.is_advertisement(&image(url), PAGE), "{url}");
        }
        for url in ["http://news.example/photo/harbour.jpg", "http://news.example/downloads/header.png"] {
            assert!(!filters.is_advertisement(&image(url), PAGE), "{url}");
        }
        assert!(
            filters.is_advertisement(&Element::Link(Link::new("x", "http://ad.doubleclick.net/click")), PAGE)
        );
        assert!(!filters.is_advertisement(&Element::Text(Text::new("advertisement")), PAGE));
        let headline =
            Link::new("Why this ad was taken down", "http://news.example/media/banner-ad-taken-down.html");
        assert!(!filters.is_advertisement(&Element::Link(headline), PAGE), "an article about advertising");
    }

    #[test]
    fn a_list_that_was_added_is_used_and_cached() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("mine.list");
        fs::write(&list, "! a comment\n||promo.example^\n").unwrap();
        assert_eq!(update(dir.path(), &list).unwrap(), 1);
        for _ in 0..2 {
            let filters = AdFilters::load(Some(dir.path())).unwrap();
            assert!(filters.is_advertisement(&image("http://promo.example/1.gif"), PAGE));
        }
        assert!(filters_dir(dir.path()).join(COMPILED).is_file());
        fs::write(filters_dir(dir.path()).join(COMPILED), b"damaged").unwrap();
        let filters = AdFilters::load(Some(dir.path())).unwrap();
        assert!(filters.is_advertisement(&image("http://promo.example/1.gif"), PAGE));
    }

    #[test]
    fn a_file_without_filters_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("empty.txt");
        fs::write(&list, "! nothing\n").unwrap();
        assert!(update(dir.path(), &list).unwrap_err().to_string().contains("EasyList syntax"));
    }
}
