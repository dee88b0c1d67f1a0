//! Two versions of a page -> the operations between them with their importance, as JSON and as text.

use std::io::{self, Write};

use perennial_core::page::diff::{
    BlockRef, Delta, Element, ItemChange, ItemChangeKind, ItemDelta, Operation, OperationKind, Subject, diff,
};
use perennial_core::page::importance::{Assessment, ImportanceConfig, Judgement, assess};
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::observe::is_about_advertisement;
use perennial_core::page::segment::{Block, BlockTree, Item};
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::AdFilters;
use perennial_archive::store::Store;

/// A comparison with everything that a report shows.
pub struct Comparison {
    /// The version before.
    pub before: BlockTree,
    /// The version after.
    pub after: BlockTree,
    /// What changed.
    pub delta: Delta,
    /// The importance of it all and of each operation.
    pub assessment: Assessment,
}

impl Comparison {
    /// Whether two versions were cut in the same way, so that what differs between them is the page. A tree whose maker is unknown is
    /// taken as it is.
    pub fn is_fair(before: &BlockTree, after: &BlockTree) -> bool {
        before.engine == after.engine || before.engine.is_empty() || after.engine.is_empty()
    }

    /// Compares two versions; filter lists say what is an advertisement, the page's history what is noise.
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

    /// Operations with their part in the importance, in the delta's order.
    pub fn entries(&self) -> Vec<OperationReport> {
        entries(&self.delta, &self.assessment)
    }

    /// The comparison as `--json` prints it.
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

    /// Writes a line for each operation, the most important first.
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

/// What is known of a page's noise.
#[derive(Clone, Copy)]
pub enum NoiseSource<'h> {
    /// Nothing: what a clock or a counter says by itself is all that is known.
    Unknown,
    /// What its observations taught.
    Learned(&'h NoiseHistory),
    /// How much of each operation was noise when the later version was analysed, in the delta's order; empty: nothing was.
    Stored(&'h [f64]),
}

/// What the archive knows of a change already.
#[derive(Default)]
pub struct StoredChange {
    /// Where its analysis compared the same two: the number that `perennial changes` shows, and the noise of each operation.
    pub found: Option<(f64, Vec<f64>)>,
    /// What the observations of the page taught of its noise.
    noise: Option<NoiseHistory>,
}

impl StoredChange {
    /// Between two observations of a page, in a row or far apart.
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

    /// What it says of noise.
    pub fn history(&self) -> NoiseSource<'_> {
        match (&self.found, &self.noise) {
            (Some((_, noise)), _) => NoiseSource::Stored(noise),
            (None, Some(noise)) => NoiseSource::Learned(noise),
            (None, None) => NoiseSource::Unknown,
        }
    }
}

/// The importance of a delta, operation by operation.
pub(super) fn weigh(
    delta: &Delta,
    config: &ImportanceConfig,
    filters: &AdFilters,
    page: &str,
    history: NoiseSource<'_>,
) -> Assessment {
    let is_advertisement = |element: &Element| filters.is_advertisement(element, page);
    // Stored values of a delta that another release found do not belong to these operations.
    let stored = match history {
        NoiseSource::Stored(noise) if noise.len() == delta.operations().count() => noise,
        _ => &[],
    };
    let stranger = NoiseHistory::default();
    let mut place = 0;
    assess(delta, config, &mut |operation| {
        place += 1;
        Judgement {
            is_advertisement: is_about_advertisement(operation, &is_advertisement),
            noise: match history {
                NoiseSource::Unknown => stranger.noise(operation).0,
                NoiseSource::Learned(history) => {
                    history.noise(operation).0.max(history.noise(&turned(operation)).0)
                }
                NoiseSource::Stored(_) => stored.get(place - 1).copied().unwrap_or(0.0),
            },
        }
    })
}

/// The same operation the other way round. A history knows an element as it was seen last, which may be either side of versions
/// that are far apart.
fn turned<'o>(operation: &Operation<'o>) -> Operation<'o> {
    match operation.subject {
        Subject::Element { before: Some(before), after: Some(after) } => {
            Operation { subject: Subject::Element { before: Some(after), after: Some(before) }, ..*operation }
        }
        _ => *operation,
    }
}

/// What `perennial diff --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Diff")]
#[allow(missing_docs)]
pub struct ComparisonReport {
    pub url: String,
    pub before: String,
    pub after: String,
    pub form: String,
    pub importance: f64,
    /// How many headlines of a front page came, went or were rewritten; absent for other pages
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headlines: Option<String>,
    pub operations: Vec<OperationReport>,
    pub structure: Vec<OperationReport>,
}

/// One operation, as it is printed.
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
    /// Share of it that is noise, 0 to 1: by the page's history where there is one
    pub noise: f64,
    /// Importance of the operation by itself
    pub value: f64,
    /// Its share of the importance of the whole change
    pub share: f64,
    /// A headline of a front page that was rewritten
    #[serde(skip)]
    pub is_rewritten: bool,
}

/// Text and address of an element; of a block its first words.
#[derive(Clone, Serialize, JsonSchema, Default)]
#[allow(missing_docs)]
pub struct ElementContent {
    pub text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
}

impl OperationReport {
    /// Whether it is about an advertisement, and how much of it is noise.
    pub fn judgement(&self) -> Judgement {
        Judgement { is_advertisement: self.advertisement, noise: self.noise }
    }

    /// Whether people are told of it.
    pub fn is_worth_reporting(&self) -> bool {
        self.judgement().is_worth_reporting(self.share)
    }

    /// The line that `perennial diff` prints for it.
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

    /// What changed into what, short enough for a line: the words that differ, with a few words around them.
    pub fn summary(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if self.op == "update" => {
                let mut parts = Vec::new();
                if before.text != after.text {
                    parts.push(difference(&before.text, &after.text));
                }
                if before.address != after.address {
                    let name = if parts.is_empty() { format!("{}: ", brief(after)) } else { String::new() };
                    parts.push(format!("{name}{} => {}", before.address, after.address));
                }
                if parts.is_empty() { brief(after) } else { parts.join("; ") }
            }
            (before, after) => after.as_ref().or(before.as_ref()).map(brief).unwrap_or_default(),
        }
    }
}

/// Words that are shown before and after a difference.
const N_WORDS_AROUND: usize = 4;
/// Columns of a difference that are shown of each side.
const MAX_SHOWN_COLUMNS: usize = 120;

/// The words that differ between two texts, in brackets, with a few of the words that they share around them.
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
    shorten(if content.text.is_empty() { &content.address } else { &content.text }, 70).into_owned()
}

/// All operations of a delta with their part in the importance, in its order, and then the items of a front page.
fn entries(delta: &Delta, assessment: &Assessment) -> Vec<OperationReport> {
    let hub = delta.items.as_ref().filter(|items| items.is_hub);
    let of_prose = hub.map_or(1.0, |items| items.prose_share);
    let operations = delta.operations().zip(&assessment.contributions);
    let operations = operations.map(|(operation, contribution)| OperationReport {
        value: of_prose * contribution.value,
        advertisement: contribution.judgement.is_advertisement,
        noise: contribution.judgement.noise,
        ..entry(&operation)
    });
    let items = hub.into_iter().flat_map(ItemDelta::seen).map(item_entry);
    let mut entries: Vec<OperationReport> = operations.chain(items).collect();
    let sum: f64 = entries.iter().map(|entry| entry.value).sum();
    if sum > 0.0 {
        entries.iter_mut().for_each(|entry| entry.share = entry.value / sum);
    }
    entries
}

/// The same for people, most important first. What changed within the items of a front page is told by the items.
pub fn reported_entries(delta: &Delta, assessment: &Assessment) -> Vec<OperationReport> {
    let is_hub = delta.items.as_ref().is_some_and(|items| items.is_hub);
    let mut entries = entries(delta, assessment);
    entries.retain(|entry| !is_hub || entry.element == "item" || entry.value > 0.0);
    entries.sort_by(|x, y| y.share.total_cmp(&x.share));
    entries
}

fn item_entry(change: &ItemChange) -> OperationReport {
    let content = |item: &Item| ElementContent { text: item.title.clone(), address: item.address.clone() };
    let op = match change.kind {
        ItemChangeKind::Insert => OperationKind::Insert,
        ItemChangeKind::Leave => OperationKind::Delete,
        _ => OperationKind::Update,
    };
    let side = |item: &Item| match change.kind {
        ItemChangeKind::Edit => ElementContent { text: item.teaser.clone(), address: item.address.clone() },
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

/// "3 headlines new, 1 retitled, 2 gone", for a front page.
pub fn headlines(delta: &Delta) -> Option<String> {
    let items = delta.items.as_ref().filter(|items| items.is_hub)?;
    let counts = [
        (items.n(ItemChangeKind::Insert), "new"),
        (items.n(ItemChangeKind::Retitle), "retitled"),
        (items.n(ItemChangeKind::Leave), "gone"),
        (items.n_moved(), "moved"),
    ];
    let said: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    Some(match said.is_empty() {
        true => "the same headlines".into(),
        false => format!("headlines: {}", said.join(", ")),
    })
}

/// An operation without its weight.
fn entry(operation: &Operation) -> OperationReport {
    let name = |reference: Option<&[u16]>| reference.map(|numbers| BlockRef(numbers.to_vec()).to_string());
    let content = |element: Option<&Element>| {
        element
            .map(|element| ElementContent { text: element.text().into(), address: element.address().into() })
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
    ElementContent { text: words.join(" "), address: String::new() }
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
    fn changed_addresses_are_shown() {
        let content =
            |text: &str, address: &str| Some(ElementContent { text: text.into(), address: address.into() });
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
