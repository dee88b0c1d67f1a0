//! Makes the [`Notice`] of a change that matches a rule.

use perennial_core::http::response::{Identity, is_refusal};
use perennial_core::memento::replay_url::escape;
use perennial_core::notice::{ChangeCondition, ChangeKind, HealthNotice};
use perennial_core::text::untrusted::{shorten, terminal_safe};
use perennial_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::shape::{notice_text, notice_title};
use crate::analyse::{
    AdFilters, ChangedPart, ElementContent, OperationReport, changed_parts, headlines, operations_for_people,
};
use crate::changes::{CandidateChange, ChangeMatcher};
use perennial_archive::Archive;
use perennial_archive::settings::NotifyRule;
use perennial_archive::store::{ChangeRow, Store};

/// Lines per notice, lines per operation, and columns per side of a line.
const MAX_LINES: usize = 8;
const MAX_LINES_PER_OPERATION: usize = 3;
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
    /// What happened to the page, if it is not an edit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The part of the page that changed most: main, navigation, header, footer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
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

/// Texts up to this length per side are shown before and after in one line.
const MAX_SHORT_COLUMNS: usize = 60;

impl NoticeLine {
    /// As text: `"Sold out" => "In stock"`, `… the limit is [50 => 60] km/h …`, or a line per side.
    pub(super) fn text(&self) -> String {
        let is_short = |text: &str| text.chars().take(MAX_SHORT_COLUMNS + 1).count() <= MAX_SHORT_COLUMNS;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if is_short(before) && is_short(after) => {
                format!("\"{before}\" => \"{after}\"")
            }
            (Some(before), Some(after)) => match &changed_parts(before, after)[..] {
                [part] if part.is_whole() => format!("- {before}\n+ {after}"),
                parts => parts.iter().map(ChangedPart::line).collect::<Vec<_>>().join("\n"),
            },
            (Some(before), None) => format!("- {before}"),
            (None, Some(after)) => format!("+ {after}"),
            (None, None) => String::new(),
        }
    }
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
            event: None,
            part: None,
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
        Ok(self.matcher.holds(candidate, condition)?
            && (condition.wants_noise() || self.has_operation_to_report(candidate, condition)?))
    }

    /// Whether the notice is urgent. Until a page's history shows that its clocks and counters are noise,
    /// their changes are listed among the changes but send nothing.
    fn has_operation_to_report(
        &mut self,
        candidate: &mut CandidateChange<'_>,
        condition: &ChangeCondition,
    ) -> anyhow::Result<bool> {
        if condition.selector.is_some() || condition.operations.is_set() {
            return Ok(true);
        }
        let entries = self.matcher.entries(candidate)?;
        Ok(entries.is_empty() || entries.iter().any(OperationReport::is_worth_reporting))
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
        let entries = operations_for_people(self.matcher.entries(candidate)?, condition.with_noise);
        let mut part = entries.iter().find_map(|entry| entry.role).filter(|role| *role != "other");
        let mut lines: Vec<NoticeLine> = entries.iter().flat_map(notice_lines).collect();
        if let Some(selector) = &condition.selector
            && let Some((before, after)) = self.matcher.selected(row, selector)?
        {
            lines = text_lines("update", &before, &after);
            part = None;
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
            event: event(row, kind, n_changes),
            part: part.map(str::to_owned),
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

/// The lines of an operation: each is a part that differs, among a few words that both sides have.
fn notice_lines(entry: &OperationReport) -> Vec<NoticeLine> {
    let side = |content: &Option<ElementContent>| content.clone().unwrap_or_default();
    let (before, after) = (side(&entry.before), side(&entry.after));
    // An image or link without a name is its URL; so is a link whose URL alone changed.
    let is_url = |one: &ElementContent| one.text.trim().is_empty();
    match (before.text == after.text, entry.op) {
        (_, "move") => Vec::new(),
        (true, _) => text_lines(entry.op, &with_url(&before), &with_url(&after)),
        _ if is_url(&before) && is_url(&after) => text_lines(entry.op, &before.url, &after.url),
        _ => text_lines(entry.op, &before.text, &after.text),
    }
}

fn with_url(content: &ElementContent) -> String {
    match (content.text.is_empty(), content.url.is_empty()) {
        (true, _) => content.url.clone(),
        (_, true) => content.text.clone(),
        _ => format!("{} ({})", content.text, content.url),
    }
}

fn text_lines(op: &str, before: &str, after: &str) -> Vec<NoticeLine> {
    let text = |text: &str| Some(line(text, MAX_COLUMNS)).filter(|text| !text.is_empty());
    let whole = NoticeLine { op: op.to_owned(), before: text(before), after: text(after) };
    if whole.before.is_none() && whole.after.is_none() {
        return Vec::new();
    }
    let is_short = |text: &str| text.chars().take(MAX_COLUMNS / 2).count() < MAX_COLUMNS / 2;
    if before == after
        || whole.before.is_none()
        || whole.after.is_none()
        || is_short(before) && is_short(after)
    {
        return vec![whole];
    }
    let parts = changed_parts(before, after);
    let lines = parts.iter().take(MAX_LINES_PER_OPERATION).map(|part| NoticeLine {
        before: text(&part.text_before(MAX_COLUMNS / 2)),
        after: text(&part.text_after(MAX_COLUMNS / 2)),
        op: op.to_owned(),
    });
    lines.collect()
}

/// What happened to the page, if it is not an edit.
fn event(row: &ChangeRow, kind: ChangeKind, n_changes: usize) -> Option<String> {
    let text = match (kind, &row.identity) {
        (ChangeKind::New, _) => "the page is new".to_owned(),
        (ChangeKind::Vanished, Identity::Error { status }) if is_refusal(*status) => {
            format!("the server refuses the page: HTTP status {status}")
        }
        (ChangeKind::Vanished, Identity::Error { status }) => {
            format!("the page is gone: HTTP status {status}")
        }
        (ChangeKind::Vanished, _) => {
            "the page is gone: its URL delivers an error page with status 200".to_owned()
        }
        (ChangeKind::Redirected, identity) => {
            format!("the URL now redirects to {}", identity.redirect_target().unwrap_or("an unknown place"))
        }
        (ChangeKind::Returned, _) if n_changes == 0 => "the page is back, with the same content".to_owned(),
        (ChangeKind::Returned, _) => "the page is back, with changed content".to_owned(),
        (ChangeKind::Edited | ChangeKind::Retitled, _) if n_changes == 0 => {
            "the content changed, but cannot be compared".to_owned()
        }
        _ => return None,
    };
    Some(line(&text, MAX_COLUMNS))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn side(text: &str, url: &str) -> Option<ElementContent> {
        Some(ElementContent { text: text.into(), url: url.into() })
    }

    fn lines(op: &'static str, before: Option<ElementContent>, after: Option<ElementContent>) -> Vec<String> {
        let entry = OperationReport { op, element: "text", before, after, ..OperationReport::default() };
        notice_lines(&entry).iter().map(NoticeLine::text).collect()
    }

    #[test]
    fn a_notice_shows_the_difference_wherever_it_is() {
        let words = |n: usize| (0..n).map(|i| format!("w{i}")).collect::<Vec<_>>();
        let (before, mut after) = (words(2_000), words(2_000));
        after[1_500] = "ferry".into();
        assert_eq!(
            lines("update", side(&before.join(" "), ""), side(&after.join(" "), "")),
            ["\"… w1496 w1497 w1498 w1499 w1500 w1501 w1502 w1503 w1504 …\" => \
                 \"… w1496 w1497 w1498 w1499 ferry w1501 w1502 w1503 w1504 …\""]
        );
        let moved = lines("update", side("Form", "http://a.org/1"), side("Form", "http://a.org/2"));
        assert_eq!(moved, ["\"Form (http://a.org/1)\" => \"Form (http://a.org/2)\""]);
        assert_eq!(lines("insert", None, side("", "http://a.org/i.png")), ["+ http://a.org/i.png"]);
        assert_eq!(
            lines("update", side("Sold out", ""), side("In stock", "")),
            ["\"Sold out\" => \"In stock\""]
        );
        assert_eq!(lines("move", side("a", ""), side("a", "")), Vec::<String>::new());
    }
}
