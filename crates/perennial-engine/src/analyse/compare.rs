//! Compares two versions of a page and reports the operations as JSON and text.

use std::io::{self, Write};

use perennial_core::page::diff::{
    BlockRef, Delta, Element, ItemChange, ItemChangeKind, ItemDelta, Operation, OperationKind, Subject, diff,
};
use perennial_core::page::importance::{Assessment, ImportanceConfig, Judgement, assess};
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::observe::is_about_advertisement;
use perennial_core::page::segment::{Block, BlockTree, ListItem};
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::AdFilters;
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

    /// The operations in the delta's order, with their shares of the importance.
    pub fn entries(&self) -> Vec<OperationReport> {
        entries(&self.delta, &self.assessment)
    }

    /// The comparison as printed by `--json`.
    pub fn report(&self, form: &str) -> ComparisonReport {
        let (structure, operations) = self.entries().into_iter().partition(|entry| entry.element == "block");
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
        for entry in &reported_entries(&self.delta, &self.assessment) {
            writeln!(out, "{}", entry.line())?;
        }
        Ok(())
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
    Stored(&'h [f64]),
}

/// What the archive already knows about a change.
#[derive(Default)]
pub struct StoredChange {
    /// Importance and noise per operation, if the analysis compared the same two versions. `perennial changes` shows
    /// the same importance.
    pub found: Option<(f64, Vec<f64>)>,
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
        Judgement {
            is_advertisement: is_about_advertisement(operation, &is_advertisement),
            noise: match history {
                NoiseSource::Unknown => empty.noise(operation).0,
                NoiseSource::Learned(history) => {
                    history.noise(operation).0.max(history.noise(&turned(operation)).0)
                }
                NoiseSource::Stored(_) => stored.get(place - 1).copied().unwrap_or(0.0),
            },
        }
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
    /// Importance of the operation alone
    pub value: f64,
    /// Its share of the importance of the whole change
    pub share: f64,
    /// Whether a headline of a listing page was rewritten
    #[serde(skip)]
    pub is_rewritten: bool,
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
        Judgement { is_advertisement: self.advertisement, noise: self.noise }
    }

    pub fn is_worth_reporting(&self) -> bool {
        self.judgement().is_worth_reporting(self.share)
    }

    /// The line of this operation in `perennial diff`.
    pub fn line(&self) -> String {
        let place = match (&self.block_before, &self.block_after) {
            (Some(before), Some(after)) if before != after => format!("{before} > {after}"),
            (before, after) => after.clone().or(before.clone()).unwrap_or_default(),
        };
        let ad = if self.advertisement { " (advertisement)" } else { "" };
        format!(
            "{:5.1} %  {:6} {:5} {place:12} {}{ad}",
            100.0 * self.share,
            self.op,
            self.element,
            self.summary()
        )
    }

    /// The change in one line: the words that differ, with a few words of context.
    pub fn summary(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if self.op == "update" => {
                let mut parts = Vec::new();
                if before.text != after.text {
                    parts.push(difference(&before.text, &after.text));
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

/// Words of context before and after a difference.
const N_WORDS_AROUND: usize = 4;
/// Longest shown difference per side, in columns.
const MAX_SHOWN_COLUMNS: usize = 120;

/// The differing words of two texts in brackets, with some context.
fn difference(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_whitespace().collect(), after.split_whitespace().collect());
    let n_shared = old.len().min(new.len());
    let n_first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let ends = old.iter().rev().zip(new.iter().rev()).take(n_shared - n_first);
    let n_last = ends.take_while(|(old, new)| old == new).count();
    let lead = &old[n_first.saturating_sub(N_WORDS_AROUND)..n_first];
    let rest = &new[new.len() - n_last..];
    let tail = &rest[..rest.len().min(N_WORDS_AROUND)];
    let shown = |words: &[&str]| shorten(&words.join(" "), MAX_SHOWN_COLUMNS).into_owned();
    let (old, new) = (shown(&old[n_first..old.len() - n_last]), shown(&new[n_first..new.len() - n_last]));
    let middle = format!("[{old} => {new}]").replace("[ =>", "[nothing =>").replace("=> ]", "=> nothing]");
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    let words =
        [dots(n_first > lead.len()), &lead.join(" "), &middle, &tail.join(" "), dots(n_last > tail.len())];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
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
    entries.retain(|entry| !is_listing || entry.element == "item" || entry.value > 0.0);
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
        ..OperationReport::default()
    }
}

fn first_words(block: &Block) -> ElementContent {
    let texts = block.walk().flat_map(|block| {
        let texts = block.texts.iter().map(|text| text.text.as_str());
        texts.chain(block.links.iter().map(|link| link.name.as_str()))
    });
    let words: Vec<&str> = texts.flat_map(str::split_whitespace).take(20).collect();
    ElementContent { text: words.join(" "), url: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_differ_are_shown_among_those_that_do_not() {
        let (before, after) = (
            "The limit for cars on the ring road is 50 km/h from Monday to Friday in all districts",
            "The limit for cars on the ring road is 60 km/h from Monday to Friday in all districts",
        );
        assert_eq!(difference(before, after), "… the ring road is [50 => 60] km/h from Monday to …");
        assert_eq!(difference("a b", "a b c"), "a b [nothing => c]");
        assert_eq!(difference("b c", "c"), "[b => nothing] c");
        assert_eq!(difference("a a", "a"), "a [a => nothing]");
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
