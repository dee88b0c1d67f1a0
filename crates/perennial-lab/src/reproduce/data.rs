//! Files of real data -> what each paper needs of them, recognised by the ends of their names.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use perennial_core::directory::SiteHistory;
use perennial_core::text::charset::decode_text;
use serde::Deserialize;

use super::AnnouncedPost;
use crate::feeds::statistics::{FeedStatistics, file_statistics, files_in};
use crate::rules::read_history;

const HISTORIES: [&str; 4] = [".tsv", ".tsv.xz", ".tsv.gz", ".tsv.zst"];
const FEEDS: [&str; 4] = [".xml", ".rss", ".atom", ".rdf"];
const PAGES: [&str; 2] = [".html", ".htm"];
const POSTS: [&str; 1] = ["posts.jsonl"];
/// Pages of 100 kB take a tenth of a second each.
const MAX_PAGES: usize = 100;
const MAX_POSTS: usize = 1_000;
const MAX_PAGE_BYTES: u64 = 16 << 20;

/// The files of `--data`.
#[derive(Debug, Default)]
pub struct DataFiles {
    paths: Vec<PathBuf>,
    all: Vec<PathBuf>,
}

/// A line of a list of posts.
#[derive(Deserialize)]
struct PostLine {
    /// The page, relative to the list.
    file: PathBuf,
    #[serde(flatten)]
    post: AnnouncedPost,
}

fn ends_with(path: &Path, ends: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    ends.iter().any(|end| name.ends_with(end))
}

impl DataFiles {
    /// Finds the files below these paths.
    pub fn new(paths: Vec<PathBuf>) -> anyhow::Result<DataFiles> {
        let all: Vec<PathBuf> = files_in(&paths)?.into_iter().map(|file| file.path).collect();
        let known = [&HISTORIES[..], &FEEDS, &PAGES, &POSTS].concat();
        ensure!(
            paths.is_empty() || all.iter().any(|path| ends_with(path, &known)),
            "no data: no file ends with {}",
            known.join(", ")
        );
        Ok(DataFiles { paths, all })
    }

    fn of(&self, ends: &'static [&str]) -> impl Iterator<Item = &PathBuf> {
        self.all.iter().filter(move |path| ends_with(path, ends))
    }

    /// Histories of sites, for P-NEAR.
    pub fn histories(&self) -> anyhow::Result<Vec<SiteHistory>> {
        let read = |path: &PathBuf| read_history(path).with_context(|| format!("reading {}", path.display()));
        self.of(&HISTORIES).map(read).collect()
    }

    /// Pairs of successive versions, for P-VISUAL: files of one folder in the order of their names. If there are many,
    /// an even choice. A page alone in its folder has no earlier version.
    pub fn page_pairs(&self) -> Vec<(Option<&PathBuf>, &PathBuf)> {
        let pages: Vec<&PathBuf> = self.of(&PAGES).collect();
        let mut pairs = Vec::new();
        for folder in pages.chunk_by(|a, b| a.parent() == b.parent()) {
            match folder {
                [only] => pairs.push((None, *only)),
                _ => pairs.extend(folder.windows(2).map(|pair| (Some(pair[0]), pair[1]))),
            }
        }
        let step = pairs.len().div_ceil(MAX_PAGES).max(1);
        pairs.into_iter().step_by(step).collect()
    }

    /// Posts with their feed items, for P-FEED.
    pub fn posts(&self) -> anyhow::Result<Vec<AnnouncedPost>> {
        let mut posts = Vec::new();
        for list in self.of(&POSTS) {
            let text =
                std::fs::read_to_string(list).with_context(|| format!("reading {}", list.display()))?;
            for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
                let PostLine { file, post } = serde_json::from_str(line).with_context(|| {
                    format!(
                        "{}, line {number}: expected {{\"file\", \"title\", \"description\", \"text\"}}",
                        list.display()
                    )
                })?;
                let html = read_page(&list.with_file_name("").join(file))?;
                posts.push(AnnouncedPost { html, ..post });
            }
        }
        let step = posts.len().div_ceil(MAX_POSTS).max(1);
        Ok(posts.into_iter().step_by(step).collect())
    }

    /// Statistics of feeds, for P-FEED; `None` without any.
    pub fn feeds(&self) -> anyhow::Result<Option<FeedStatistics>> {
        if self.of(&FEEDS).next().is_none() {
            return Ok(None);
        }
        file_statistics(&self.paths, &|path| ends_with(path, &FEEDS), &|| ()).map(Some)
    }
}

/// The text of a page.
pub fn read_page(path: &Path) -> anyhow::Result<String> {
    let what = || format!("reading {}", path.display());
    let n_bytes = std::fs::metadata(path).with_context(what)?.len();
    ensure!(n_bytes <= MAX_PAGE_BYTES, "{}: larger than 16 MiB", path.display());
    Ok(decode_text(&std::fs::read(path).with_context(what)?, None).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sites/a.tsv", "#host www.a.org\nW\t0\t2026-01-04\nA\tx.html\th\t10\n");
        for name in ["front/1.html", "front/2.html", "front/3.html", "other/x.html"] {
            write(name, "<p>One</p>");
        }
        write(
            "posts/posts.jsonl",
            "{\"file\":\"p.htm\",\"title\":\"T\",\"description\":\"D\",\"text\":\"x\"}\n",
        );
        write("posts/p.htm", "<h1>T</h1>");
        let item = "<item><title>x</title><pubDate>Mon, 02 Mar 2026 10:00:00 GMT</pubDate></item>";
        for name in ["art/a.xml", "science/physics/b.rss"] {
            write(name, &format!("<rss version=\"2.0\"><channel><title>F</title>{item}</channel></rss>"));
        }
        let data = DataFiles::new(vec![folder.path().to_owned()]).unwrap();
        let histories = data.histories().unwrap();
        assert_eq!((histories[0].name.as_str(), histories[0].domain()), ("www.a.org", Some("org")));
        let pairs: Vec<bool> = data.page_pairs().iter().map(|(before, _)| before.is_some()).collect();
        assert_eq!(pairs, [true, true, false, false]);
        assert_eq!(data.posts().unwrap()[0].html, "<h1>T</h1>");
        let feeds = data.feeds().unwrap().unwrap();
        assert_eq!((feeds.n_tried, feeds.n_unreadable), (2, 0));
        assert_eq!(feeds.tags.keys().collect::<Vec<_>>(), ["art", "physics", "science"]);
        write("posts/posts.jsonl", "{}");
        assert!(format!("{:#}", data.posts().unwrap_err()).contains("line 1: expected"));
        assert!(DataFiles::new(vec![folder.path().join("posts/p.htm")]).unwrap().feeds().unwrap().is_none());
        write("empty/readme.txt", "");
        assert!(DataFiles::new(vec![folder.path().join("empty")]).is_err());
    }
}
