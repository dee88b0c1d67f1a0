//! Compares two versions of a page and reports the operations as JSON and text.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use perennial_core::page::diff::{
    BlockRef, Delta, Element, ItemChange, ItemChangeKind, ItemDelta, Operation, OperationKind, Subject,
    Typography, diff, diff_with,
};
use perennial_core::page::importance::{Assessment, ImportanceConfig, Judgement, assess};
use perennial_core::page::noise::{Noise, NoiseHistory, NoiseReason};
use perennial_core::page::observe::judge;
use perennial_core::page::segment::{Block, BlockTree, ListItem};
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::AdFilters;
use super::excerpt::{ChangedPart, changed_parts};
use perennial_archive::store::Store;

/// A comparison with everything that a report needs.
pub struct Comparison {
    pub before: BlockTree,
    pub after: BlockTree,
    pub delta: Delta,
    /// The importance of the whole change and of each operation.
    pub assessment: Assessment,
}

impl Comparison {
    /// Whether two versions were segmented by the same engine. Only then are all differences due to the page. Trees
    /// of unknown origin are accepted.
    pub fn is_fair(before: &BlockTree, after: &BlockTree) -> bool {
        before.engine == after.engine || before.engine.is_empty() || after.engine.is_empty()
    }

    /// Compares two versions. The filter lists identify advertisements, the page's history identifies noise.
    pub fn new(
        before: BlockTree,
        after: BlockTree,
        config: &ImportanceConfig,
        filters: &AdFilters,
        history: NoiseSource<'_>,
    ) -> Comparison {
        let delta = diff(&before, &after);
        let assessment = weigh(&delta, config, filters, &after.url, history);
        Comparison { before, after, delta, assessment }
    }

    /// The same with changes of quotes, dashes, spaces and case.
    pub fn with_typography(
        before: BlockTree,
        after: BlockTree,
        config: &ImportanceConfig,
        filters: &AdFilters,
        history: NoiseSource<'_>,
    ) -> Comparison {
        let delta = diff_with(&before, &after, Typography::Compared);
        let assessment = weigh(&delta, config, filters, &after.url, history);
        Comparison { before, after, delta, assessment }
    }

    /// The operations in the delta's order, with their shares of the importance.
    pub fn entries(&self) -> Vec<OperationReport> {
        entries(&self.delta, &self.assessment)
    }

    /// The comparison as printed by `--json`.
    pub fn report(&self, form: &str) -> ComparisonReport {
        let counted = self.entries().into_iter().filter(|entry| !entry.is_counted_elsewhere);
        let (structure, operations) = counted.partition(|entry| entry.element == "block");
        ComparisonReport {
            headlines: headlines(&self.delta),
            url: self.after.url.clone(),
            before: self.before.version.clone(),
            after: self.after.version.clone(),
            form: form.to_string(),
            importance: self.assessment.importance.get(),
            operations,
            structure,
        }
    }

    /// Writes one line per operation, most important first.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "importance {:.4}", self.assessment.importance.get())?;
        if let Some(headlines) = headlines(&self.delta) {
            writeln!(out, "{headlines}")?;
        }
        let entries = reported_entries(&self.delta, &self.assessment);
        operations_for_people(&entries, true).iter().try_for_each(|entry| writeln!(out, "{}", entry.line()))
    }
}

/// Where the noise of operations is known from.
#[derive(Clone, Copy)]
pub enum NoiseSource<'h> {
    /// Nowhere: only clocks and counters are recognised as noise.
    Unknown,
    /// The page's observations.
    Learned(&'h NoiseHistory),
    /// The stored noise of each operation, in the delta's order, from the analysis of the later version. Empty if
    /// nothing was noise.
    Stored(&'h [Noise]),
}

/// The archive's knowledge about a change.
#[derive(Default)]
pub struct StoredChange {
    /// Importance and noise per operation, if the analysis compared the same two versions. `perennial changes` shows
    /// the same importance.
    pub found: Option<(f64, Vec<Noise>)>,
    /// The noise history of the page.
    noise: Option<NoiseHistory>,
}

impl StoredChange {
    /// Between any two observations of a page, consecutive or not.
    pub fn between(
        store: &Store,
        url: &str,
        before: Timestamp,
        after: Timestamp,
    ) -> anyhow::Result<StoredChange> {
        let state = store.page(url)?.map(|page| store.page_state(page.id)).transpose()?.flatten();
        let found = store.change_between(url, before, after)?;
        Ok(StoredChange { found, noise: state.map(|state| state.noise) })
    }

    pub fn history(&self) -> NoiseSource<'_> {
        match (&self.found, &self.noise) {
            (Some((_, noise)), _) => NoiseSource::Stored(noise),
            (None, Some(noise)) => NoiseSource::Learned(noise),
            (None, None) => NoiseSource::Unknown,
        }
    }
}

/// Assesses each operation of a delta.
pub(super) fn weigh(
    delta: &Delta,
    config: &ImportanceConfig,
    filters: &AdFilters,
    page: &str,
    history: NoiseSource<'_>,
) -> Assessment {
    let is_advertisement = |element: &Element| filters.is_advertisement(element, page);
    // The stored values do not match if a different release found different operations.
    let stored = match history {
        NoiseSource::Stored(noise) if noise.len() == delta.operations().count() => noise,
        _ => &[],
    };
    let empty = NoiseHistory::default();
    let mut place = 0;
    assess(delta, config, &mut |operation| {
        place += 1;
        let noise = match history {
            NoiseSource::Unknown => empty.noise(operation),
            NoiseSource::Learned(history) => {
                let (noise, reverse) = (history.noise(operation), history.noise(&turned(operation)));
                if reverse.share > noise.share { reverse } else { noise }
            }
            NoiseSource::Stored(_) => stored.get(place - 1).copied().unwrap_or_default(),
        };
        judge(operation, noise, &is_advertisement)
    })
}

/// The reverse operation. A history contains the latest state of an element, which may match either side of two
/// distant versions.
fn turned<'o>(operation: &Operation<'o>) -> Operation<'o> {
    match operation.subject {
        Subject::Element { before: Some(before), after: Some(after) } => {
            Operation { subject: Subject::Element { before: Some(after), after: Some(before) }, ..*operation }
        }
        _ => *operation,
    }
}

/// The output of `perennial diff --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Diff")]
#[allow(missing_docs)]
pub struct ComparisonReport {
    pub url: String,
    pub before: String,
    pub after: String,
    pub form: String,
    pub importance: f64,
    /// How many headlines of a listing page appeared, disappeared or were rewritten; absent for other pages
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headlines: Option<String>,
    pub operations: Vec<OperationReport>,
    pub structure: Vec<OperationReport>,
}

/// One reported operation.
#[derive(Clone, Serialize, JsonSchema, Default)]
#[schemars(rename = "Operation")]
#[allow(missing_docs)]
pub struct OperationReport {
    pub op: &'static str,
    /// link, image, text or block; item for an entry of a list
    pub element: &'static str,
    pub block_before: Option<String>,
    pub block_after: Option<String>,
    pub role: Option<&'static str>,
    pub before: Option<ElementContent>,
    pub after: Option<ElementContent>,
    pub advertisement: bool,
    /// Share of the operation that is noise, 0 to 1, judged by the page's history if there is one
    pub noise: f64,
    /// Why it is noise: "a time stamp that changed at 21 of 22 visits"
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_reason: Option<String>,
    /// Importance of the operation alone
    pub value: f64,
    /// Its share of the importance of the whole change
    pub share: f64,
    /// Whether a headline of a listing page was rewritten
    #[serde(skip)]
    pub is_rewritten: bool,
    #[serde(skip)]
    pub reason: Option<NoiseReason>,
    /// Number of elements of its kind that stayed before it in its block. A deletion and an insertion with the same
    /// number replace one text with another.
    #[serde(skip)]
    pub place: Option<usize>,
    /// Whether a different operation counts the same words: the name of a link is part of a text.
    #[serde(skip)]
    pub is_counted_elsewhere: bool,
}

/// Text and URL of an element; for a block its first words.
#[derive(Clone, Serialize, JsonSchema, Default)]
#[allow(missing_docs)]
pub struct ElementContent {
    pub text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

impl OperationReport {
    pub fn judgement(&self) -> Judgement {
        Judgement { is_advertisement: self.advertisement, noise: self.noise, reason: self.reason }
    }

    pub fn is_worth_reporting(&self) -> bool {
        self.judgement().is_worth_reporting(self.share)
    }

    /// The line of this operation in `perennial diff` and `perennial changes`: share and kind, what changed, where.
    pub fn line(&self) -> String {
        let place = match (&self.block_before, &self.block_after) {
            (Some(before), Some(after)) if before != after => format!("{before} > {after}"),
            (before, after) => after.clone().or(before.clone()).unwrap_or_default(),
        };
        let mut notes: Vec<String> = Vec::new();
        let role = self.role.filter(|role| *role != "other" && !self.advertisement);
        notes.extend(role.map(str::to_owned));
        notes.extend(Some(place).filter(|place| !place.is_empty()));
        notes.extend(self.advertisement.then(|| "advertisement".to_owned()));
        notes.extend(self.noise_reason.iter().map(|reason| format!("noise: {reason}")));
        let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
        let (share, summary) = (100.0 * self.share, self.summary());
        format!("{share:5.1} %  {:6} {:5} {summary}{notes}", self.op, self.element)
    }

    /// The change in one line: the words that differ, with a few words of context.
    pub fn summary(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if self.op == "update" => {
                let mut parts: Vec<String> = Vec::new();
                if before.text != after.text {
                    let changed = changed_parts(&before.text, &after.text);
                    let n_more = changed.len().saturating_sub(MAX_PARTS_PER_LINE);
                    parts.extend(changed.iter().take(MAX_PARTS_PER_LINE).map(ChangedPart::line));
                    parts.extend((n_more > 0).then(|| format!("and {n_more} more places")));
                }
                if before.url != after.url {
                    let name = if parts.is_empty() { format!("{}: ", brief(after)) } else { String::new() };
                    parts.push(format!("{name}{} => {}", before.url, after.url));
                }
                if parts.is_empty() { brief(after) } else { parts.join("; ") }
            }
            (before, after) => after.as_ref().or(before.as_ref()).map(brief).unwrap_or_default(),
        }
    }
}

/// Parts of a text in one line.
const MAX_PARTS_PER_LINE: usize = 2;

/// The operations for people: those that are worth reporting, or all if the change has no others. A deletion and an
/// insertion in the same place are one update.
pub fn operations_for_people(entries: &[OperationReport], with_noise: bool) -> Vec<OperationReport> {
    let reported = |entry: &&OperationReport| with_noise || entry.is_worth_reporting();
    let mut chosen: Vec<OperationReport> = entries.iter().filter(reported).cloned().collect();
    if chosen.is_empty() {
        chosen = entries.to_vec();
    }
    let mut open: HashMap<ReplacementKey, VecDeque<usize>> = HashMap::new();
    let mut is_joined = vec![false; chosen.len()];
    for (at, entry) in chosen.iter().enumerate().filter(|(_, entry)| entry.op == "delete") {
        if let Some(key) = ReplacementKey::new(entry) {
            open.entry(key).or_default().push_back(at);
        }
    }
    for at in 0..chosen.len() {
        let key = ReplacementKey::new(&chosen[at]).filter(|_| chosen[at].op == "insert");
        let Some(deleted) = key.and_then(|key| open.get_mut(&key)).and_then(VecDeque::pop_front) else {
            continue;
        };
        let before = chosen[deleted].clone();
        chosen[at] = OperationReport {
            op: "update",
            before: before.before,
            share: chosen[at].share + before.share,
            value: chosen[at].value.max(before.value),
            ..chosen[at].clone()
        };
        is_joined[deleted] = true;
    }
    let mut is_joined = is_joined.into_iter();
    chosen.retain(|_| !is_joined.next().unwrap_or_default());
    chosen.sort_by(|x, y| y.share.total_cmp(&x.share));
    chosen
}

/// What a deletion and an insertion have in common if one replaces the other.
#[derive(PartialEq, Eq, Hash)]
struct ReplacementKey {
    element: &'static str,
    blocks: [Option<String>; 2],
    place: usize,
}

impl ReplacementKey {
    fn new(entry: &OperationReport) -> Option<ReplacementKey> {
        let blocks = [entry.block_before.clone(), entry.block_after.clone()];
        Some(ReplacementKey { element: entry.element, blocks, place: entry.place? })
    }
}

fn brief(content: &ElementContent) -> String {
    shorten(if content.text.is_empty() { &content.url } else { &content.text }, 70).into_owned()
}

/// All operations of a delta in its order, then the items of a listing page.
fn entries(delta: &Delta, assessment: &Assessment) -> Vec<OperationReport> {
    let hub = delta.items.as_ref().filter(|items| items.is_listing);
    let of_prose = hub.map_or(1.0, |items| items.prose_share);
    let operations = delta.operations().zip(&assessment.contributions);
    let operations = operations.map(|(operation, contribution)| OperationReport {
        value: of_prose * contribution.value,
        advertisement: contribution.judgement.is_advertisement,
        noise: contribution.judgement.noise,
        noise_reason: contribution.judgement.reason.map(|reason| reason.sentence()),
        reason: contribution.judgement.reason,
        is_counted_elsewhere: contribution.is_counted_elsewhere,
        ..entry(&operation)
    });
    let items = hub.into_iter().flat_map(ItemDelta::visible_changes).map(item_entry);
    let mut entries: Vec<OperationReport> = operations.chain(items).collect();
    let sum: f64 = entries.iter().map(|entry| entry.value).sum();
    if sum > 0.0 {
        entries.iter_mut().for_each(|entry| entry.share = entry.value / sum);
    }
    entries
}

/// The operations to report, most important first. Changes inside the items of a listing page are reported as items.
pub fn reported_entries(delta: &Delta, assessment: &Assessment) -> Vec<OperationReport> {
    let is_listing = delta.items.as_ref().is_some_and(|items| items.is_listing);
    let mut entries = entries(delta, assessment);
    entries.retain(|entry| {
        !entry.is_counted_elsewhere && (!is_listing || entry.element == "item" || entry.value > 0.0)
    });
    entries.sort_by(|x, y| y.share.total_cmp(&x.share));
    entries
}

fn item_entry(change: &ItemChange) -> OperationReport {
    let content = |item: &ListItem| ElementContent { text: item.title.clone(), url: item.url.clone() };
    let op = match change.kind {
        ItemChangeKind::Insert => OperationKind::Insert,
        ItemChangeKind::Leave => OperationKind::Delete,
        _ => OperationKind::Update,
    };
    let side = |item: &ListItem| match change.kind {
        ItemChangeKind::Edit => ElementContent { text: item.teaser.clone(), url: item.url.clone() },
        _ => content(item),
    };
    OperationReport {
        op: op.name(),
        element: "item",
        before: change.before.as_ref().map(side),
        after: change.after.as_ref().map(side),
        value: change.share,
        is_rewritten: change.kind == ItemChangeKind::Retitle,
        ..OperationReport::default()
    }
}

/// "3 headlines new, 1 retitled, 2 gone", for a listing page.
pub fn headlines(delta: &Delta) -> Option<String> {
    let items = delta.items.as_ref().filter(|items| items.is_listing)?;
    let counts = [
        (items.n_changes(ItemChangeKind::Insert), "new"),
        (items.n_changes(ItemChangeKind::Retitle), "retitled"),
        (items.n_changes(ItemChangeKind::Leave), "gone"),
        (items.n_moved(), "moved"),
    ];
    let parts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    Some(match parts.is_empty() {
        true => "the same headlines".into(),
        false => format!("headlines: {}", parts.join(", ")),
    })
}

/// An operation without its weight.
fn entry(operation: &Operation) -> OperationReport {
    let name = |reference: Option<&[u16]>| reference.map(|numbers| BlockRef(numbers.to_vec()).to_string());
    let content = |element: Option<&Element>| {
        element.map(|element| ElementContent { text: element.text().into(), url: element.url().into() })
    };
    let (before, after) = match operation.subject {
        Subject::Element { before, after } => (content(before), content(after)),
        Subject::Block(block) if operation.kind == OperationKind::Delete => (block.map(first_words), None),
        Subject::Block(block) => (None, block.map(first_words)),
    };
    OperationReport {
        op: operation.kind.name(),
        element: operation.subject_name(),
        block_before: name(operation.block_before),
        block_after: name(operation.block_after),
        role: operation.role.map(|role| role.name()),
        before,
        after,
        place: operation.place(),
        ..OperationReport::default()
    }
}

/// Words that a report shows of an inserted or deleted block.
const WORDS_OF_BLOCK: usize = 60;

fn first_words(block: &Block) -> ElementContent {
    let texts = block.walk().flat_map(|block| {
        let texts = block.texts.iter().map(|text| text.text.as_str());
        texts.chain(block.links.iter().map(|link| link.name.as_str()))
    });
    let words: Vec<&str> = texts.flat_map(str::split_whitespace).take(WORDS_OF_BLOCK).collect();
    ElementContent { text: words.join(" "), url: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_text_is_one_line() {
        let side = |text: &str| Some(ElementContent { text: text.into(), ..ElementContent::default() });
        let entry = |op, before, after, place| OperationReport {
            op,
            element: "text",
            before,
            after,
            place: Some(place),
            share: 0.2,
            value: 0.1,
            ..OperationReport::default()
        };
        let entries = [
            entry("insert", None, side("In stock"), 3),
            entry("insert", None, side("A new paragraph"), 5),
            entry("delete", side("Sold out"), None, 3),
        ];
        let lines: Vec<String> =
            operations_for_people(&entries, false).iter().map(OperationReport::summary).collect();
        assert_eq!(lines, ["[Sold out => In stock]", "A new paragraph"]);
    }

    #[test]
    fn a_change_of_noise_only_is_not_empty() {
        let clock = OperationReport { op: "update", noise: 0.95, share: 1.0, ..OperationReport::default() };
        let news = OperationReport { op: "insert", share: 0.5, ..OperationReport::default() };
        assert_eq!(operations_for_people(std::slice::from_ref(&clock), false).len(), 1);
        let both = operations_for_people(&[clock.clone(), news.clone()], false);
        assert_eq!(both.iter().map(|entry| entry.op).collect::<Vec<_>>(), ["insert"]);
        assert_eq!(operations_for_people(&[clock, news], true).len(), 2);
    }

    #[test]
    fn versions_that_were_cut_differently_are_not_compared() {
        let cut_by = |engine: &str| BlockTree { engine: engine.into(), ..BlockTree::default() };
        let (of_today, of_before) = (cut_by("layout/1 cut/2"), cut_by("layout/1 cut/1"));
        assert!(Comparison::is_fair(&of_today, &of_today) && Comparison::is_fair(&of_today, &cut_by("")));
        assert!(!Comparison::is_fair(&of_before, &of_today));
    }

    #[test]
    fn changed_urls_are_shown() {
        let content = |text: &str, url: &str| Some(ElementContent { text: text.into(), url: url.into() });
        let update = |before, after| {
            OperationReport { op: "update", before, after, ..OperationReport::default() }.summary()
        };
        assert_eq!(update(content("Form", "/a"), content("Form", "/b")), "Form: /a => /b");
        assert_eq!(
            update(content("Old form", "/a"), content("New form", "/b")),
            "[Old => New] form; /a => /b"
        );
    }
}
