//! A change that matches a query, as reports show it.

use perennial_core::notice::ChangeKind;
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::analyse::OperationReport;
use perennial_archive::store::ChangeRow;

/// One matching change in `perennial changes --json` and `/api/changes`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MatchingChange")]
pub struct MatchingChange {
    /// What happened.
    #[serde(serialize_with = "kind_name")]
    #[schemars(with = "String")]
    pub kind: ChangeKind,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The previous title, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_before: Option<String>,
    /// The target of a redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirects_to: Option<String>,
    /// Time of the previous observation; absent for a new page.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_time")]
    #[schemars(with = "String")]
    pub before: Option<Timestamp>,
    /// Time of the observation that showed the change.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub after: Timestamp,
    /// 0 to 1.
    pub importance: f64,
    /// Whether the whole change is noise.
    pub noise: bool,
    /// How many headlines of a listing page appeared, disappeared or were rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headlines: Option<String>,
    /// The matching operations, most important first.
    pub operations: Vec<OperationReport>,
    /// Operations that were left out as noise or advertisements.
    pub n_folded: usize,
    #[serde(skip)]
    pub page: PageId,
    #[serde(skip)]
    pub status: ChangeStatus,
    #[serde(skip)]
    pub is_indexed: bool,
}

fn kind_name<S: Serializer>(kind: &ChangeKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

fn time<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&time.to_rfc3339())
}

fn maybe_time<S: Serializer>(maybe: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match maybe {
        Some(at) => time(at, to),
        None => to.serialize_none(),
    }
}

/// The operations of a change that match a query.
pub(super) struct MatchingOperations {
    pub(super) headlines: Option<String>,
    pub(super) entries: Vec<OperationReport>,
    pub(super) n_folded: usize,
}

impl MatchingChange {
    pub(super) fn new(row: ChangeRow, kind: ChangeKind, operations: MatchingOperations) -> MatchingChange {
        let redirects_to = row.identity.redirect_target().map(str::to_owned);
        MatchingChange {
            kind,
            redirects_to: redirects_to.filter(|_| kind == ChangeKind::Redirected),
            url: row.url,
            title: row.title.filter(|title| !title.is_empty()),
            title_before: row.title_before.filter(|title| !title.is_empty()),
            before: row.before,
            after: row.time,
            importance: row.status.reported_importance().get(),
            noise: row.status == ChangeStatus::NoiseOnly,
            headlines: operations.headlines,
            operations: operations.entries,
            n_folded: operations.n_folded,
            page: row.page,
            status: row.status,
            is_indexed: row.is_indexed,
        }
    }
}
