//! The crawl log -> the spending that a rebuilt state lacks. Without it, a budget that is spent would be granted again.

use std::collections::BTreeMap;

use perennial_core::time::Timestamp;
use url::Url;

use super::log::{LogLine, each_line, last_line};
use perennial_archive::ArchiveWriter;
use perennial_archive::settings::Seeds;
use perennial_archive::store::{OVERALL, PageKind, Store, spending_minute};

/// Adds the spending since an instant that the log has and the state lacks. Reads the log only if it is ahead.
pub(super) fn restore(writer: &mut ArchiveWriter, seeds: &Seeds, since: Timestamp) -> anyhow::Result<()> {
    let root = writer.archive().root().to_owned();
    let known = writer.store().last_spent()?;
    let is_new = |at: Timestamp| at >= since && known.is_none_or(|known| spending_minute(at) > known);
    if !last_line(&root)?.and_then(|line| time_of(&line)).is_some_and(is_new) {
        return Ok(());
    }
    // Visits of pages, and bytes, by seed and minute.
    let mut spent: BTreeMap<(i64, Timestamp), (u64, u64)> = BTreeMap::new();
    let mut failure = None;
    each_line(&root, |line| {
        let Some(at) = time_of(&line).filter(|at| *at >= since && line.by.is_none()) else { return };
        match visit_seed(writer.store(), seeds, &line.url) {
            Ok(seed) => {
                for seed in [Some(OVERALL), seed].into_iter().flatten() {
                    let (n_visits, n_bytes) = spent.entry((seed, spending_minute(at))).or_default();
                    *n_visits += u64::from(line.kind == PageKind::Page.name());
                    *n_bytes = n_bytes.saturating_add(line.body_bytes);
                }
            }
            Err(error) => failure = Some(error),
        }
    })?;
    if let Some(error) = failure {
        return Err(error);
    }
    writer.store_mut().write(|commit| {
        spent.iter().try_for_each(|((seed, minute), (n_visits, n_bytes))| {
            commit.restore_spent(*seed, *minute, *n_visits, *n_bytes)
        })
    })
}

fn time_of(line: &LogLine) -> Option<Timestamp> {
    Timestamp::parse(&line.time).ok()
}

/// The seed that a visit was made for: that of the frontier, else the one with the URL in its scope.
fn visit_seed(store: &Store, seeds: &Seeds, url: &str) -> anyhow::Result<Option<i64>> {
    if let Some(seed) = store.frontier_seed(url)? {
        return Ok(Some(seed));
    }
    Ok(Url::parse(url).ok().and_then(|url| seeds.owner(&url, 0, 0)))
}
