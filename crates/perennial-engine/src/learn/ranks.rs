//! PageRank over the links between captured pages.

use perennial_core::schedule::rank::LinkGraph;
use perennial_core::url::PageId;

use perennial_archive::store::Store;

/// The rank of a page without incoming links, relative to a mean of 1.
const UNLINKED: f32 = 0.15;

/// PageRank by page number, over the links between captured pages. `start` may contain earlier ranks. Links to URLs
/// that were never captured are left out, as PageRank's authors do with dangling links. Otherwise a rotating
/// advertisement would take half of the rank that a page with one other link passes on. The graph contains linked
/// pages only. A state that was rebuilt from the WARC files numbers pages differently, and must give the same ranks.
pub fn page_ranks(store: &Store, start: &[f32]) -> anyhow::Result<Vec<f32>> {
    let mut links: Vec<(u32, u32)> = Vec::new();
    store.each_link(|source, target| links.push((source, target)))?;
    let mut pages: Vec<u32> = links.iter().flat_map(|&(source, target)| [source, target]).collect();
    pages.sort_unstable();
    pages.dedup();
    let n_numbers = pages.last().map_or(0, |&page| page as usize + 1);
    let mut place = vec![0; n_numbers];
    for (at, &page) in (0..).zip(&pages) {
        place[page as usize] = at;
    }
    let links = links.into_iter().map(|(source, target)| (place[source as usize], place[target as usize]));
    let start: Vec<f32> = pages.iter().map(|&page| rank(start, PageId(page))).collect();
    let mut ranks = vec![UNLINKED; n_numbers];
    for (page, rank) in pages.iter().zip(LinkGraph::from_links(pages.len(), links).page_rank(&start)) {
        ranks[*page as usize] = rank;
    }
    Ok(ranks)
}

/// The rank of a page; the lowest one if no link points to it.
pub fn rank(ranks: &[f32], page: PageId) -> f32 {
    ranks.get(page.0 as usize).copied().unwrap_or(UNLINKED)
}

#[cfg(test)]
mod tests {
    use perennial_core::time::Timestamp;

    use super::*;
    use perennial_archive::store::{CaptureKind, CaptureRow, FileRow, FileState, LinkTarget};

    fn capture(url: &str, links: &[&str], offset: u64) -> CaptureRow {
        let surt = perennial_warc::surt::surt;
        CaptureRow {
            url: url.into(),
            surt: surt(url),
            time: Timestamp::from_secs(0),
            kind: CaptureKind::Response,
            status: Some(200),
            mime: Some("text/html".into()),
            digest: "sha1:A".into(),
            content: None,
            is_sound: true,
            response_kind: None,
            identity: None,
            purpose: None,
            offset,
            length: 1,
            group_offset: offset,
            group_length: 1,
            links: Some(links.iter().map(|url| LinkTarget { url: (*url).into(), surt: surt(url) }).collect()),
            named: Vec::new(),
            feed: None,
        }
    }

    fn file() -> FileRow {
        FileRow { name: "a.warc".into(), state: FileState::Closed, committed_bytes: 2, source_digest: None }
    }

    fn ranks_with(links_of_leaf: &[&str]) -> Vec<f32> {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open_write(&dir.path().join("state.db")).unwrap();
        let rows = [
            capture("http://a.example/", &["http://a.example/leaf"], 0),
            capture("http://a.example/leaf", links_of_leaf, 1),
        ];
        store.commit(&file(), &rows).unwrap();
        page_ranks(&store, &[]).unwrap()
    }

    #[test]
    fn how_pages_are_numbered_changes_nothing() {
        let ranks_after = |others: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            let mut store = Store::open_write(&dir.path().join("state.db")).unwrap();
            // Pages without captures or links take the first numbers.
            let mut rows = vec![capture("http://b.example/", others, 0)];
            rows.push(capture("http://a.example/", &["http://a.example/leaf"], 1));
            rows.push(capture("http://a.example/leaf", &[], 2));
            store.commit(&file(), &rows).unwrap();
            let ranks = page_ranks(&store, &[]).unwrap();
            let rank = |url: &str| rank(&ranks, store.page(url).unwrap().unwrap().id);
            (rank("http://a.example/"), rank("http://a.example/leaf"), rank("http://b.example/"))
        };
        assert_eq!(ranks_after(&[]), ranks_after(&["http://c.example/1", "http://c.example/2"]));
        assert_eq!(ranks_after(&[]).2, UNLINKED);
    }

    #[test]
    fn links_out_of_the_archive_take_nothing_from_those_within() {
        let alone = ranks_with(&["http://a.example/"]);
        let with_others = ranks_with(&["http://a.example/", "http://a.example/never-captured"]);
        assert_eq!(with_others[1..3], alone[1..3]);
    }
}
