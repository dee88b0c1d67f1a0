//! Makes the [`Notice`] of a change that matches a rule.

use perennial_core::memento::replay_url::escape;
use perennial_core::notice::{ChangeCondition, ChangeKind, HealthNotice};
use perennial_core::text::untrusted::{shorten, terminal_safe};
use perennial_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::shape::{notice_text, notice_title};
use crate::analyse::{AdFilters, ElementContent, OperationReport, headlines};
use crate::changes::{CandidateChange, ChangeMatcher};
use perennial_archive::Archive;
use perennial_archive::settings::NotifyRule;
use perennial_archive::store::{ChangeRow, Store};

/// Lines per notice, and columns per side of a line.
const MAX_LINES: usize = 8;
const MAX_COLUMNS: usize = 400;
const MAX_TITLE_COLUMNS: usize = 300;

/// A notice of one change. The fields are in the order of the JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Notice {
    /// The same whenever this notice is sent again
    pub id: String,
    pub rule: String,
    pub kind: String,
    pub url: String,
    pub title: Option<String>,
    pub title_before: Option<String>,
    /// The target of a redirect
    #[serde(alias = "leads_to")]
    pub redirects_to: Option<String>,
    /// Time of the previous observation; none for a new page
    pub before: Option<String>,
    /// Time of the observation that showed the change
    pub after: String,
    pub importance: f64,
    /// How many headlines of a listing page appeared, disappeared or were rewritten
    pub headlines: Option<String>,
    /// What changed, most important first
    pub changes: Vec<NoticeLine>,
    /// Number of all changes, including those left out
    pub n_changes: usize,
    /// The comparison of both versions, or the last capture of a vanished page
    pub link: Option<String>,
}

/// The text before and after.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct NoticeLine {
    pub op: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
}

impl Notice {
    /// One line: what happened to which page.
    pub fn headline(&self) -> String {
        notice_title(self)
    }

    /// The changes, one per line.
    pub fn text(&self) -> String {
        notice_text(self)
    }

    /// A notice that a watch does not see its page, or sees it again.
    pub(super) fn of_health(rule: &NotifyRule, url: &str, health: &HealthNotice, now: Timestamp) -> Notice {
        let (kind, watch, line) = match health {
            HealthNotice::Failing(watch) => {
                let after = Some(line(&watch.reason, MAX_COLUMNS));
                ("failing", watch, NoticeLine { op: "failing".into(), before: None, after })
            }
            HealthNotice::Working(watch) => {
                let before = Some(line(&watch.reason, MAX_COLUMNS));
                ("working", watch, NoticeLine { op: "working".into(), before, after: None })
            }
        };
        Notice {
            id: notice_id(&rule.name, url, now),
            kind: kind.into(),
            url: url.to_owned(),
            title: None,
            before: Some(watch.since.to_rfc3339()),
            changes: vec![line],
            link: rule
                .link
                .as_ref()
                .map(|base| format!("{}/page/{}", base.as_str().trim_end_matches('/'), escape(url))),
            ..Notice::sample(&rule.name, now)
        }
    }

    /// A sample notice, to test whether notices arrive.
    pub fn sample(rule: &str, now: Timestamp) -> Notice {
        let line = NoticeLine {
            op: "update".into(),
            before: Some("the text before".into()),
            after: Some("the text after".into()),
        };
        Notice {
            id: notice_id(rule, "trial", now),
            rule: rule.into(),
            kind: "edited".into(),
            url: "https://example.org/".into(),
            title: Some("Test: notices of this rule arrive here".into()),
            title_before: None,
            redirects_to: None,
            before: Some(now.to_rfc3339()),
            after: now.to_rfc3339(),
            importance: 1.0,
            headlines: None,
            changes: vec![line],
            n_changes: 1,
            link: None,
        }
    }
}

/// Makes the notices of an archive's changes.
pub struct NoticeWriter<'s> {
    matcher: ChangeMatcher<'s>,
}

impl<'s> NoticeWriter<'s> {
    pub fn new(archive: &'s Archive, store: &'s Store, filters: &'s AdFilters) -> NoticeWriter<'s> {
        NoticeWriter { matcher: ChangeMatcher::new(archive, store, filters) }
    }

    pub(super) fn holds(
        &mut self,
        candidate: &mut CandidateChange<'_>,
        condition: &ChangeCondition,
    ) -> anyhow::Result<bool> {
        self.matcher.holds(candidate, condition)
    }

    pub fn notice(
        &mut self,
        candidate: &mut CandidateChange<'_>,
        rule: &str,
        condition: &ChangeCondition,
        link: Option<&Url>,
    ) -> anyhow::Result<Notice> {
        let (row, kind) = (candidate.row, candidate.kind);
        let headlines = self.matcher.changed(candidate)?.and_then(|changed| headlines(&changed.delta));
        let mut entries = self.matcher.entries(candidate)?.to_vec();
        entries.retain(OperationReport::is_worth_reporting);
        let mut lines: Vec<NoticeLine> = entries.iter().filter_map(notice_line).collect();
        if let Some(selector) = &condition.selector
            && let Some((before, after)) = self.matcher.selected(row, selector)?
        {
            let whole = |text: &str| Some(line(text, MAX_COLUMNS)).filter(|text| !text.is_empty());
            lines = vec![NoticeLine { op: "update".into(), before: whole(&before), after: whole(&after) }];
        }
        let n_changes = lines.len();
        lines.truncate(MAX_LINES);
        let title = |title: &Option<String>| {
            title.as_deref().filter(|title| !title.is_empty()).map(|title| line(title, MAX_TITLE_COLUMNS))
        };
        let redirects_to = row.identity.redirect_target().map(str::to_owned);
        Ok(Notice {
            id: notice_id(rule, &row.url, row.time),
            rule: rule.to_owned(),
            kind: kind.name().to_owned(),
            title: title(&row.title),
            title_before: title(&row.title_before),
            redirects_to: redirects_to.filter(|_| kind == ChangeKind::Redirected),
            before: row.before.map(Timestamp::to_rfc3339),
            after: row.time.to_rfc3339(),
            importance: row.status.reported_importance().get(),
            headlines,
            changes: lines,
            n_changes,
            link: link.map(|link| link_to(link, row, kind)),
            url: row.url.clone(),
        })
    }
}

fn notice_line(entry: &OperationReport) -> Option<NoticeLine> {
    let text = |content: &Option<ElementContent>| {
        content.as_ref().map(|content| line(&content.text, MAX_COLUMNS)).filter(|text| !text.is_empty())
    };
    let line = NoticeLine { op: entry.op.to_owned(), before: text(&entry.before), after: text(&entry.after) };
    (line.before != line.after && entry.element != "block").then_some(line)
}

/// One line of at most so many columns, without control characters.
fn line(text: &str, n_columns: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&terminal_safe(&line), n_columns).into_owned()
}

/// A notice keeps its number when it is sent again, so receivers can detect duplicates.
fn notice_id(rule: &str, url: &str, time: Timestamp) -> String {
    let digest = Sha256::digest(format!("{rule}\n{url}\n{}", time.as_millis()));
    data_encoding::HEXLOWER.encode(&digest[..16])
}

fn link_to(base: &Url, row: &ChangeRow, kind: ChangeKind) -> String {
    let base = base.as_str().trim_end_matches('/');
    let after = row.time.to_digits14();
    // A space or a quotation mark would end the URL in mails and chats.
    let url =
        if row.url.contains(|c: char| !c.is_ascii_graphic()) { escape(&row.url) } else { row.url.clone() };
    match row.before.filter(|_| matches!(kind, ChangeKind::Edited | ChangeKind::Retitled)) {
        Some(before) => format!("{base}/web/diff/{}/{after}/{url}", before.to_digits14()),
        None => format!("{base}/web/{after}/{url}"),
    }
}
