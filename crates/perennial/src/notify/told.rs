//! A change in the state and a condition -> whether it holds, and a [`Notice`] of it.

use perennial_core::diff::{Delta, ItemChangeKind};
use perennial_core::foreign::shown;
use perennial_core::look::Seen;
use perennial_core::memento::address::escape;
use perennial_core::notice::{Change, ChangeKind, Condition, Said, told_importance};
use perennial_core::search::passages;
use perennial_core::segment::{BlockTree, Selector};
use perennial_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::shape::{body_of, title_of};
use crate::analyse::{Changed, ChangedReader, Content, Entry, Filters, headlines, part_texts};
use crate::archive::{Archive, SharedSnapshot};
use crate::store::{ChangeRow, Store, site_of};

/// Lines of one notice, and letters of each side of a line.
const MAX_LINES: usize = 8;
const MAX_LETTERS: usize = 400;
const MAX_TITLE_LETTERS: usize = 300;

/// What is told of one change. The order of fields is that of the JSON.
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
    /// Where the address leads now
    pub leads_to: Option<String>,
    /// The look before; none for a new page
    pub before: Option<String>,
    /// The look that showed the change
    pub after: String,
    pub importance: f64,
    /// How many headlines of a front page came, went or were rewritten
    pub headlines: Option<String>,
    /// What changed, the most important first
    pub changes: Vec<Line>,
    /// How many changes there are, with those that are left out
    pub n_changes: usize,
    /// The comparison of both versions, or the page as it was
    pub link: Option<String>,
}

/// Words before and after.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Line {
    pub op: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
}

impl Notice {
    /// One line that says what happened to which page.
    pub fn headline(&self) -> String {
        title_of(self)
    }

    /// What changed, in lines.
    pub fn text(&self) -> String {
        body_of(self)
    }

    /// A notice that says only that notices arrive.
    pub fn trial(rule: &str, now: Timestamp) -> Notice {
        let line = Line {
            op: "update".into(),
            before: Some("what a page said".into()),
            after: Some("what it says now".into()),
        };
        Notice {
            id: id_of(rule, "trial", now),
            rule: rule.into(),
            kind: "edited".into(),
            url: "https://example.org/".into(),
            title: Some("A trial: notices of this rule arrive here".into()),
            title_before: None,
            leads_to: None,
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

/// Tells of the changes of an archive, one after the other.
pub struct Teller<'s> {
    archive: &'s Archive,
    store: &'s Store,
    reader: ChangedReader<'s>,
}

/// A change with whatever conditions have asked of it.
pub(super) struct Told<'r> {
    row: &'r ChangeRow,
    site: String,
    kind: ChangeKind,
    /// Read when a condition asks for it; the inner `None`: nothing can be compared.
    changed: Option<Option<Changed>>,
    /// Both trees, likewise.
    trees: Option<[Option<BlockTree>; 2]>,
}

impl<'r> Told<'r> {
    /// Of a change nothing was asked yet.
    pub(super) fn new(row: &'r ChangeRow) -> Told<'r> {
        let kind = ChangeKind::of(row.seen, row.title_before.is_some());
        Told { row, site: site_of(&row.url), kind, changed: None, trees: None }
    }

    fn change(&self) -> Change<'_> {
        Change {
            url: &self.row.url,
            site: &self.site,
            kind: self.kind,
            importance: told_importance(self.row.seen),
            is_noise: self.row.seen == Seen::Noise,
        }
    }
}

impl<'s> Teller<'s> {
    /// Reads from a store; filters say what is an advertisement.
    pub fn new(archive: &'s Archive, store: &'s Store, filters: &'s Filters) -> Teller<'s> {
        Teller { archive, store, reader: ChangedReader::new(store, filters) }
    }

    /// Whether a condition may hold for a change, before anything else is read of it.
    pub fn may_hold(row: &ChangeRow, condition: &Condition) -> bool {
        condition.may_hold(&Told::new(row).change())
    }

    /// The notice of a change, if a condition holds for it.
    pub fn tell(
        &mut self,
        row: &ChangeRow,
        rule: &str,
        condition: &Condition,
        link: Option<&Url>,
    ) -> anyhow::Result<Option<Notice>> {
        let mut told = Told::new(row);
        match self.holds(&mut told, condition)? {
            true => self.notice(&mut told, rule, condition, link).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a condition holds.
    pub(super) fn holds(&mut self, told: &mut Told<'_>, condition: &Condition) -> anyhow::Result<bool> {
        if !condition.may_hold(&told.change()) {
            return Ok(false);
        }
        self.read(told)?;
        let is_headline_rewritten = told
            .changed
            .as_ref()
            .and_then(Option::as_ref)
            .is_some_and(|changed| is_rewritten(&changed.delta));
        if let Some(selector) = &condition.selector {
            let Some((before, after)) = self.selected(told.row, selector)? else { return Ok(false) };
            let said = Said { before: vec![&before], after: vec![&after], is_headline_rewritten };
            return Ok(condition.holds(&told.change(), &said));
        }
        if condition.asks_for_texts() {
            self.read_trees(told)?;
        }
        let texts = |tree: &'_ Option<BlockTree>| -> Vec<String> {
            let found = tree.as_ref().map(passages).unwrap_or_default();
            found.iter().map(|passage| passage.text.to_owned()).collect()
        };
        let [before, after] =
            told.trees.as_ref().map(|trees| [texts(&trees[0]), texts(&trees[1])]).unwrap_or_default();
        let said = Said {
            before: before.iter().map(String::as_str).collect(),
            after: after.iter().map(String::as_str).collect(),
            is_headline_rewritten,
        };
        Ok(condition.holds(&told.change(), &said))
    }

    /// The operations between both versions.
    fn read(&mut self, told: &mut Told<'_>) -> anyhow::Result<()> {
        if told.changed.is_none() {
            told.changed = Some(self.reader.read(told.row)?);
        }
        Ok(())
    }

    /// The trees of both versions; there is none where there was no page.
    fn read_trees(&self, told: &mut Told<'_>) -> anyhow::Result<()> {
        if told.trees.is_none() {
            let row = told.row;
            let tree = |time: Option<Timestamp>| {
                time.map(|time| self.store.tree_at(row.page, time)).transpose().map(Option::flatten)
            };
            told.trees = Some([
                tree(row.before.filter(|_| !matches!(row.seen, Seen::First | Seen::Returned)))?,
                tree(Some(row.time).filter(|_| row.seen.is_page()))?,
            ]);
        }
        Ok(())
    }

    fn selected(&self, row: &ChangeRow, selector: &Selector) -> anyhow::Result<Option<(String, String)>> {
        let shared = SharedSnapshot::new(self.archive.snapshot()?);
        Ok(part_texts(&shared, row, selector))
    }

    /// The notice of a change.
    pub(super) fn notice(
        &mut self,
        told: &mut Told<'_>,
        rule: &str,
        condition: &Condition,
        link: Option<&Url>,
    ) -> anyhow::Result<Notice> {
        self.read(told)?;
        let row = told.row;
        let changed = told.changed.as_ref().and_then(Option::as_ref);
        let mut entries = changed.map(Changed::entries).unwrap_or_default();
        entries.retain(|entry| entry.noise < 0.5 && !entry.advertisement && entry.share > 0.0);
        let mut lines: Vec<Line> = entries.iter().filter_map(line_of).collect();
        if let Some(selector) = &condition.selector
            && let Some((before, after)) = self.selected(row, selector)?
        {
            let whole = |text: &str| Some(cut(text, MAX_LETTERS)).filter(|text| !text.is_empty());
            lines = vec![Line { op: "update".into(), before: whole(&before), after: whole(&after) }];
        }
        let n_changes = lines.len();
        lines.truncate(MAX_LINES);
        let title = |title: &Option<String>| {
            title.as_deref().filter(|title| !title.is_empty()).map(|title| cut(title, MAX_TITLE_LETTERS))
        };
        let leads_to = row.identity.split_once(' ').map(|(_, target)| target.to_owned());
        Ok(Notice {
            id: id_of(rule, &row.url, row.time),
            rule: rule.to_owned(),
            kind: told.kind.name().to_owned(),
            title: title(&row.title),
            title_before: title(&row.title_before),
            leads_to: leads_to.filter(|_| told.kind == ChangeKind::Redirected),
            before: row.before.map(Timestamp::to_rfc3339),
            after: row.time.to_rfc3339(),
            importance: told_importance(row.seen),
            headlines: changed.and_then(|changed| headlines(&changed.delta)),
            changes: lines,
            n_changes,
            link: link.map(|link| link_to(link, row, told.kind)),
            url: row.url.clone(),
        })
    }
}

fn is_rewritten(delta: &Delta) -> bool {
    delta.items.as_ref().is_some_and(|items| items.is_hub && items.n(ItemChangeKind::Retitle) > 0)
}

fn line_of(entry: &Entry) -> Option<Line> {
    let text = |content: &Option<Content>| {
        content.as_ref().map(|content| cut(&content.text, MAX_LETTERS)).filter(|text| !text.is_empty())
    };
    let line = Line { op: entry.op.to_owned(), before: text(&entry.before), after: text(&entry.after) };
    (line.before != line.after && entry.element != "block").then_some(line)
}

/// At most so many letters, on one line, and nothing that acts on whoever shows it.
fn cut(text: &str, n_letters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = shown(&line);
    match shown.char_indices().nth(n_letters) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

/// A notice has the same number whenever it is sent, so that whoever gets it twice can tell.
fn id_of(rule: &str, url: &str, time: Timestamp) -> String {
    let digest = Sha256::digest(format!("{rule}\n{url}\n{}", time.as_millis()));
    data_encoding::HEXLOWER.encode(&digest[..16])
}

fn link_to(base: &Url, row: &ChangeRow, kind: ChangeKind) -> String {
    let base = base.as_str().trim_end_matches('/');
    let after = row.time.to_digits14();
    // A space or a quotation mark would end the address in what is made of it.
    let url =
        if row.url.contains(|c: char| !c.is_ascii_graphic()) { escape(&row.url) } else { row.url.clone() };
    match row.before.filter(|_| matches!(kind, ChangeKind::Edited | ChangeKind::Retitled)) {
        Some(before) => format!("{base}/web/diff/{}/{after}/{url}", before.to_digits14()),
        None => format!("{base}/web/{after}/{url}"),
    }
}
