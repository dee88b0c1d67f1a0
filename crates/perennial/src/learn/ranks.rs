//! Links between captured pages -> PageRank.

use perennial_core::page::PageId;
use perennial_core::rank::LinkGraph;

use crate::store::Store;

/// The rank of a page that no link leads to, beside a mean of 1.
const UNLINKED: f32 = 0.15;

/// PageRank by page number, over the links between captured pages. `start` may hold earlier ranks. Links to addresses
/// that were never captured lead out of what is known and are left out, as PageRank's authors do with dangling links: a
/// rotating advertisement on every page would else take half of what a page with one other link has to give.
pub fn page_ranks(store: &Store, start: &[f32]) -> anyhow::Result<Vec<f32>> {
    let mut links: Vec<(u32, u32)> = Vec::new();
    let mut n_pages = 0;
    store.each_link(|source, target| {
        n_pages = n_pages.max(source.max(target) as usize + 1);
        links.push((source, target));
    })?;
    Ok(LinkGraph::from_links(n_pages, links).page_rank(start))
}

/// The rank of a page, the least there is where no link leads to it.
pub fn rank_of(ranks: &[f32], page: PageId) -> f32 {
    ranks.get(page.0 as usize).copied().unwrap_or(UNLINKED)
}

#[cfg(test)]
mod tests {
    use perennial_core::time::Timestamp;

    use super::*;
    use crate::store::{CaptureRow, FileRow, FileState, Kind, LinkTarget};

    fn capture(url: &str, links: &[&str], offset: u64) -> CaptureRow {
        let surt = perennial_core::surt::surt;
        CaptureRow {
            url: url.into(),
            surt: surt(url),
            time: Timestamp::from_secs(0),
            kind: Kind::Response,
            status: Some(200),
            mime: Some("text/html".into()),
            digest: "sha1:A".into(),
            answer: None,
            identity: None,
            offset,
            length: 1,
            group_offset: offset,
            group_length: 1,
            links: Some(links.iter().map(|url| LinkTarget { url: (*url).into(), surt: surt(url) }).collect()),
        }
    }

    fn ranks_with(links_of_leaf: &[&str]) -> Vec<f32> {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open_write(&dir.path().join("state.db")).unwrap();
        let file = FileRow {
            name: "a.warc".into(),
            state: FileState::Closed,
            committed_bytes: 2,
            source_digest: None,
        };
        let rows = [
            capture("http://a.example/", &["http://a.example/leaf"], 0),
            capture("http://a.example/leaf", links_of_leaf, 1),
        ];
        store.commit(&file, &rows).unwrap();
        page_ranks(&store, &[]).unwrap()
    }

    #[test]
    fn links_out_of_the_archive_take_nothing_from_those_within() {
        let alone = ranks_with(&["http://a.example/"]);
        let with_others = ranks_with(&["http://a.example/", "http://a.example/never-captured"]);
        assert_eq!(with_others[1..3], alone[1..3]);
    }
}
