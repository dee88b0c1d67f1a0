//! Thumbnails of a page's latest important versions.

use maud::{Markup, html};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::segment::BlockTree;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::PageView;
use crate::dashboard::change::ChangeSummary;
use crate::dashboard::components::date_time;
use crate::dashboard::thumbnail;
use perennial_archive::store::{AnalysisRow, ChangeFilter, Store, TreeReader};
use perennial_engine::analyse::{AdFilters, ChangeReader};

/// Thumbnails.
const MAX_THUMBNAILS: usize = 8;

pub(super) struct Thumbnail {
    pub(super) time: Timestamp,
    pub(super) importance: f64,
    pub(super) tree: BlockTree,
    pub(super) changed: Vec<String>,
}

/// Thumbnails of the latest important versions.
pub(super) fn load_thumbnails(
    store: &Store,
    page: PageId,
    url: &str,
    lines: &[AnalysisRow],
) -> anyhow::Result<Vec<Thumbnail>> {
    let mut reader = TreeReader::new(store);
    let filters = AdFilters::built_in();
    let mut changed = ChangeReader::new(store, &filters);
    let mut thumbnails = Vec::new();
    for line in lines.iter().filter(|line| {
        line.is_indexed && !matches!(line.status, ChangeStatus::Vanished | ChangeStatus::Redirected(_))
    }) {
        if thumbnails.len() == MAX_THUMBNAILS {
            break;
        }
        if let Some(tree) = reader.tree_at(page, line.time)? {
            let filter = ChangeFilter {
                url: Some(url),
                since: Some(line.time),
                until: Some(line.time + Span::from_millis(1)),
                ..ChangeFilter::default()
            };
            let mut blocks = Vec::new();
            store.each_change(&filter, |row| {
                blocks = ChangeSummary::read(&mut changed, &row)?.blocks;
                Ok(())
            })?;
            let importance = line.status.reported_importance().get();
            thumbnails.push(Thumbnail { time: line.time, importance, tree, changed: blocks });
        }
    }
    Ok(thumbnails)
}

pub(super) fn thumbnails(view: &PageView, base: &str) -> Markup {
    html! {
        section {
            div.sec {
                h2 { "Thumbnails" }
                p.legend { "layout of the latest versions; changed blocks are framed" }
            }
            ul.pics {
                @for thumbnail in &view.thumbnails {
                    li {
                        a href=(view.open(base, thumbnail.time)) {
                            (thumbnail::svg(&thumbnail.tree, &thumbnail.changed))
                            span.small { (date_time(thumbnail.time)) br; (format!("{:.2}", thumbnail.importance)) }
                        }
                    }
                }
            }
        }
    }
}
