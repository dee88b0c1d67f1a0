//! Exports all trees or all deltas that match a filter as one XML document, for XQuery engines.

use std::io::Write;

use perennial_core::page::segment::vixml;

use super::{AdFilters, ChangeReader};
use perennial_archive::store::{CaptureFilter, ChangeFilter, Store};

/// Writes the trees of the matching captures as Vi-XML below one root. An unchanged capture has no tree. Returns the
/// number of trees.
pub fn write_trees(
    store: &Store,
    filter: &CaptureFilter,
    out: &mut dyn Write,
    progress: &dyn Fn(),
) -> anyhow::Result<u64> {
    let mut n_trees = 0;
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Trees>\n")?;
    store.select_captures(filter, |_| Ok(None))?.each_tree(|_, _, tree| {
        n_trees += 1;
        progress();
        Ok(out.write_all(without_declaration(&vixml::write(tree)).as_bytes())?)
    })?;
    out.write_all(b"</Trees>\n")?;
    Ok(n_trees)
}

/// Writes the deltas of the matching changes as Vi-Delta below one root, in chronological order. Returns their
/// number.
pub fn write_deltas(
    store: &Store,
    filters: &AdFilters,
    filter: &CaptureFilter,
    out: &mut dyn Write,
    progress: &dyn Fn(),
) -> anyhow::Result<u64> {
    let mut n_deltas = 0;
    let mut reader = ChangeReader::new(store, filters);
    let (host, url) = (filter.site.as_deref(), filter.page.as_deref());
    let wanted =
        ChangeFilter { host, url, since: filter.since, until: filter.until, ..ChangeFilter::default() };
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Deltas>\n")?;
    store.each_change(&wanted, |row| {
        if let Some(changed) = reader.read(&row)? {
            n_deltas += 1;
            progress();
            out.write_all(without_declaration(&changed.delta.to_operations_xml()).as_bytes())?;
        }
        Ok(())
    })?;
    out.write_all(b"</Deltas>\n")?;
    Ok(n_deltas)
}

/// Strips the XML declaration, so the document can be nested.
fn without_declaration(xml: &str) -> &str {
    xml.split_once("?>\n").map_or(xml, |(_, rest)| rest)
}
