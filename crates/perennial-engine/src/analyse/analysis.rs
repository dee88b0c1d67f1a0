//! Makes an [`Analysis`] of a capture and updates the page's state.

use perennial_core::http::response::Identity;
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::diff::{Delta, ItemChangeKind};
use perennial_core::page::importance::Importance;
use perennial_core::page::observe::VersionComparison;
use perennial_core::page::segment::BlockTree;
use perennial_core::page::threshold::IndexSums;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::compare::{OperationReport, reported_entries};
use perennial_archive::store::{
    Analysis, NewTree, NewsItem, PackedTree, PageState, ShownVersion, pack_noise,
};

/// A document that differs at every visit within this time is noise. A longer gap may be a daily publication.
const SOON: Span = Span::from_hours(24);

/// Most items that are reported per observation.
const MAX_NEWS: usize = 200;

/// Analyses a capture without layout: an unchanged response, a redirect, an image, a page that is gone.
pub(super) fn analyse_response(
    page: PageId,
    time: Timestamp,
    identity: &Identity,
    before: Option<&PageState>,
    status: ChangeStatus,
) -> (Analysis, PageState) {
    let mut state = before.cloned().unwrap_or_else(|| PageState::new(time, identity.clone()));
    let mut status = status;
    match status {
        ChangeStatus::Unchanged => state.noise.record_unchanged(),
        _ => state.identity.clone_from(identity),
    }
    state.was_page |= status.is_page();
    if let ChangeStatus::Unknown(importance) = status {
        state.shown = None;
        let noise = state.noise.record_unreadable(time - state.time < SOON);
        status = match noise.share >= 1.0 {
            true => ChangeStatus::NoiseOnly,
            false => ChangeStatus::Unknown(Importance::new(importance.get() * (1.0 - noise.share))),
        };
    }
    state.time = time;
    let analysis = Analysis {
        page,
        time,
        before: before.map(|before| before.time),
        status,
        n_operations: 0,
        noise_of_operations: None,
        is_indexed: state.sums.add(status, time),
        tree: None,
        remade_before: None,
        title: state.title.clone(),
        title_before: None,
        items: Vec::new(),
        summary: None,
    };
    (analysis, state)
}

/// Analyses a capture that was laid out and compared with the page's state. An untitled page keeps its last title.
pub(super) fn analyse_version(
    page: PageId,
    time: Timestamp,
    identity: Identity,
    before: Option<&PageState>,
    comparison: VersionComparison,
    title: Option<String>,
) -> anyhow::Result<(Analysis, PageState)> {
    let earlier_title = before.and_then(|before| before.title.clone());
    let title = title.or_else(|| earlier_title.clone());
    let title_before = earlier_title.filter(|earlier| Some(earlier) != title.as_ref());
    let tree_before = before.and_then(|before| before.tree.as_ref());
    let status = match before.filter(|before| before.was_page) {
        Some(before) if before.identity.is_page() => comparison_status(&comparison, tree_before.is_some()),
        Some(_) => ChangeStatus::Returned,
        None => ChangeStatus::New,
    };
    let (tree, new_tree) = match tree_before.filter(|_| comparison.is_unchanged()) {
        Some(kept) => (kept.clone(), None),
        None => {
            let packed = PackedTree::of(&comparison.tree)?;
            let new = NewTree::following(packed.clone(), tree_before.map(|(_, packed)| packed))?;
            ((time, packed), Some(new))
        }
    };
    let mut sums = before.map_or_else(|| IndexSums::new(time), |before| before.sums);
    let contributions = &comparison.assessment.contributions;
    let analysis = Analysis {
        page,
        time,
        before: before.map(|before| before.time),
        status,
        n_operations: contributions.len(),
        noise_of_operations: pack_noise(contributions.iter().map(|part| part.judgement.noise())),
        is_indexed: sums.add(status, time),
        tree: new_tree,
        remade_before: None,
        title: title.clone(),
        title_before,
        items: new_items(&comparison),
        summary: summary(&comparison),
    };
    let state = PageState {
        time,
        shown: Some(ShownVersion { identity: identity.clone(), time }),
        identity,
        was_page: true,
        title,
        tree: Some(tree),
        unpacked: Some(comparison.tree),
        noise: comparison.noise,
        sums,
    };
    Ok((analysis, state))
}

/// Trees of different engines are not compared and have no delta. Such a version counts as unchanged, unless the
/// document format changed.
fn comparison_status(comparison: &VersionComparison, has_tree: bool) -> ChangeStatus {
    match has_tree {
        false => ChangeStatus::unknown(),
        true if comparison.is_other_format => ChangeStatus::unknown(),
        true if comparison.is_only_noise => ChangeStatus::NoiseOnly,
        true if comparison.is_unchanged() || comparison.delta.is_none() => ChangeStatus::Unchanged,
        true => ChangeStatus::Changed(comparison.assessment.importance),
    }
}

/// The most important operation that is worth reporting.
fn summary(comparison: &VersionComparison) -> Option<String> {
    let entries = reported_entries(comparison.delta.as_ref()?, &comparison.assessment);
    entries.iter().find(|entry| entry.is_worth_reporting()).map(OperationReport::summary)
}

fn new_items(comparison: &VersionComparison) -> Vec<NewsItem> {
    let items =
        comparison.delta.as_ref().and_then(|delta| delta.items.as_ref()).filter(|items| items.is_listing);
    let changes = items.iter().flat_map(|items| &items.changes);
    let news = changes.filter_map(|change| {
        let is_retitled = match change.kind {
            ItemChangeKind::Insert => false,
            ItemChangeKind::Retitle => true,
            _ => return None,
        };
        let item = change.after.as_ref().filter(|item| !item.url.is_empty())?;
        Some(NewsItem { url: item.url.clone(), title: item.title.clone(), is_retitled })
    });
    news.take(MAX_NEWS).collect()
}

/// Approximate number of characters of text outside links.
pub(super) fn n_letters(tree: &BlockTree) -> usize {
    tree.leaves().flat_map(|leaf| &leaf.texts).map(|text| text.text.len()).sum()
}

/// The delta of a comparison as Vi-Delta; an empty one if nothing changed.
pub(super) fn delta_xml(comparison: &VersionComparison) -> String {
    let delta = comparison.delta.as_ref().filter(|delta| !delta.is_empty());
    delta.map_or_else(empty_delta_xml, |delta| delta.to_xml(&comparison.tree))
}

/// The Vi-Delta of an unchanged version.
pub(super) fn empty_delta_xml() -> String {
    Delta::default().to_operations_xml()
}
