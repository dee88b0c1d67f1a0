//! The link graph: one row of compressed page numbers per page -> arrays for link analysis.

use rusqlite::params;

use super::Store;

/// The archive's own link graph in compressed sparse rows; pages are numbered as in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkGraph {
    /// `starts[p]..starts[p + 1]` are page `p`'s targets; one longer than there are page numbers.
    pub starts: Vec<usize>,
    /// All targets, ascending within a page.
    pub targets: Vec<u32>,
}

impl LinkGraph {
    /// The pages that `page` links to.
    pub fn targets_of(&self, page: u32) -> &[u32] {
        let page = page as usize;
        match (self.starts.get(page), self.starts.get(page + 1)) {
            (Some(&from), Some(&to)) => &self.targets[from..to],
            _ => &[],
        }
    }
}

impl Store {
    /// Loads the graph of the latest version of every page: 4 bytes a link and 8 a page.
    pub fn link_graph(&self) -> anyhow::Result<LinkGraph> {
        let n_pages: i64 =
            self.connection()
                .query_row("SELECT coalesce(max(id), 0) + 1 FROM pages", [], |row| row.get(0))?;
        let mut graph = LinkGraph { starts: Vec::with_capacity(n_pages as usize + 1), targets: Vec::new() };
        let mut statement = self.connection().prepare("SELECT page, targets FROM links ORDER BY page")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let page: u32 = row.get(0)?;
            graph.starts.resize(page as usize + 1, graph.targets.len());
            graph.targets.extend(decode_targets(row.get_ref(1)?.as_blob()?));
        }
        graph.starts.resize(n_pages as usize + 1, graph.targets.len());
        Ok(graph)
    }

    /// The pages that the latest version of a page links to.
    pub fn links_of(&self, page: u32) -> anyhow::Result<Vec<u32>> {
        let mut statement = self.connection().prepare_cached("SELECT targets FROM links WHERE page = ?1")?;
        let mut rows = statement.query(params![page])?;
        match rows.next()? {
            Some(row) => Ok(decode_targets(row.get_ref(0)?.as_blob()?).collect()),
            None => Ok(Vec::new()),
        }
    }
}

/// Sorts, drops doubles, and writes the differences as LEB128: about two bytes a link.
pub fn encode_targets(targets: &mut Vec<u32>) -> Vec<u8> {
    targets.sort_unstable();
    targets.dedup();
    let mut bytes = Vec::with_capacity(targets.len() * 2);
    let mut before = 0;
    for &target in targets.iter() {
        let mut step = target - before;
        while step >= 0x80 {
            bytes.push(step as u8 | 0x80);
            step >>= 7;
        }
        bytes.push(step as u8);
        before = target;
    }
    bytes
}

/// Reads what [`encode_targets`] wrote; garbage gives garbage, never a panic.
pub fn decode_targets(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut target = 0u32;
    let (mut step, mut shift) = (0u32, 0u32);
    bytes.iter().filter_map(move |&byte| {
        step |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte & 0x80 != 0 {
            return None;
        }
        target = target.wrapping_add(step);
        (step, shift) = (0, 0);
        Some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn targets_round_trip(mut targets in proptest::collection::vec(any::<u32>(), 0..200)) {
            let bytes = encode_targets(&mut targets);
            prop_assert_eq!(decode_targets(&bytes).collect::<Vec<_>>(), targets);
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            decode_targets(&bytes).count();
        }
    }
}
