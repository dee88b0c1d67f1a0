//! A change for which a question holds -> what is said of it.

use perennial_core::notice::ChangeKind;
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::analyse::OperationReport;
use perennial_archive::store::ChangeRow;

/// One observation that differs from the one before, as `perennial changes --json` and `/api/changes` report it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MatchingChange")]
pub struct MatchingChange {
    /// What happened.
    #[serde(serialize_with = "kind_name")]
    #[schemars(with = "String")]
    pub kind: ChangeKind,
    /// Address of the page.
    pub url: String,
    /// The page's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its title before, where it had another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_before: Option<String>,
    /// Where the address leads now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// When the observation before was; absent for a new page.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_time")]
    #[schemars(with = "String")]
    pub before: Option<Timestamp>,
    /// When the observation was that showed it.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub after: Timestamp,
    /// 0 to 1.
    pub importance: f64,
    /// Whether all of it is noise.
    pub noise: bool,
    /// How many headlines of a front page came, went or were rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headlines: Option<String>,
    /// The operations that were asked for, most important first.
    pub operations: Vec<OperationReport>,
    /// The page's number.
    #[serde(skip)]
    pub page: PageId,
    /// What the observation showed.
    #[serde(skip)]
    pub status: ChangeStatus,
    /// Whether the version is worth indexing.
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

impl MatchingChange {
    pub(super) fn new(
        row: ChangeRow,
        kind: ChangeKind,
        headlines: Option<String>,
        operations: Vec<OperationReport>,
    ) -> MatchingChange {
        let leads_to = row.identity.redirect_target().map(str::to_owned);
        MatchingChange {
            kind,
            leads_to: leads_to.filter(|_| kind == ChangeKind::Redirected),
            url: row.url,
            title: row.title.filter(|title| !title.is_empty()),
            title_before: row.title_before.filter(|title| !title.is_empty()),
            before: row.before,
            after: row.time,
            importance: row.status.reported_importance().get(),
            noise: row.status == ChangeStatus::NoiseOnly,
            headlines,
            operations,
            page: row.page,
            status: row.status,
            is_indexed: row.is_indexed,
        }
    }
}
