//! Stores links between pages in the table `links`: one row of compressed page numbers per page.

use rusqlite::Row;

use super::Store;
use super::rows::Statements;

impl Store {
    /// Calls `each` with every link between two captured pages, by their numbers. The source's latest version counts.
    pub fn each_link(&self, mut each: impl FnMut(u32, u32)) -> anyhow::Result<()> {
        let captured = self.captured_pages()?;
        self.connection.each_row("SELECT page, targets FROM links ORDER BY page", [], |row| {
            let source: u32 = row.get(0)?;
            for target in decode_targets(row.get_ref(1)?.as_blob()?) {
                if captured.get(target as usize).is_some_and(|is_captured| *is_captured) {
                    each(source, target);
                }
            }
            Ok(())
        })
    }

    /// The pages that the latest version of a page links to.
    pub fn page_links(&self, page: u32) -> anyhow::Result<Vec<u32>> {
        let read = |row: &Row<'_>| Ok(decode_targets(row.get_ref(0)?.as_blob()?).collect());
        let targets = self.connection.row("SELECT targets FROM links WHERE page = ?1", [page], read)?;
        Ok(targets.unwrap_or_default())
    }

    /// Which pages were captured, by page number.
    fn captured_pages(&self) -> anyhow::Result<Vec<bool>> {
        let mut captured = Vec::new();
        self.connection.each_row("SELECT id FROM pages WHERE first_seen IS NOT NULL", [], |row| {
            let page = row.get::<_, u32>(0)? as usize;
            if page >= captured.len() {
                captured.resize(page + 1, false);
            }
            captured[page] = true;
            Ok(())
        })?;
        Ok(captured)
    }
}

/// Sorts, removes duplicates, and writes the differences as LEB128: about two bytes per link.
pub(super) fn encode_targets(targets: &mut Vec<u32>) -> Vec<u8> {
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

/// The inverse of [`encode_targets`]. Damaged bytes return wrong numbers, but never panic.
pub(super) fn decode_targets(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
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
