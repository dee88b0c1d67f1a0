//! The trees of exported captures -> `resource` records `urn:vixml:<url>`.

use std::io::Write;

use perennial_core::page::segment::vixml;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};

use super::writer::random_seed;
use crate::store::ExportSelection;

/// Writes the tree of each chosen capture that has one. Returns the number of trees.
pub(super) fn write_trees(chosen: &ExportSelection<'_>, mut out: impl Write) -> anyhow::Result<u64> {
    let mut ids = RecordIds::new(random_seed());
    let mut n_trees = 0;
    chosen.each_tree(|url, time, tree| {
        let xml = vixml::write(tree);
        let uri = format!("urn:vixml:{url}");
        let record = NewRecord::resource(ids.next_id(), time, &uri, "application/xml", xml.as_bytes())
            .refers_to(url, time);
        WarcWriter::new(&mut out, 0, Compression::default())?.write(&record)?;
        n_trees += 1;
        Ok(())
    })?;
    Ok(n_trees)
}
