//! An observation of a look, and what was known of the page -> a lesson, and what is known afterwards.

use perennial_core::http::verdict::shows_page;
use perennial_core::page::diff::{Delta, ItemChangeKind};
use perennial_core::page::importance::Importance;
use perennial_core::page::look::{Before, Seen};
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::observe::{Known, Observation};
use perennial_core::page::segment::BlockTree;
use perennial_core::page::threshold::{IndexThreshold, mean_an_hour};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use perennial_archive::store::{
    Commit, KnownRow, LessonRow, NewTree, PackedTree, ShownVersion, Store, Worth, pack_noise,
};

/// Looks less than this apart tell a document that is another one at every look from one that is published daily.
const SOON: Span = Span::from_hours(24);

/// What the next look at a page is compared with.
#[derive(Clone, Debug)]
pub struct KnownPage {
    tree: Option<KnownTree>,
    /// Which version the tree shows; `None` when a later one could not be laid out.
    laid_out: Option<ShownVersion>,
    noise: NoiseHistory,
    /// The identity of the last answer: the same identity again needs no layout.
    identity: String,
    /// Whether any look showed a page.
    was_page: bool,
    /// The page's title as it was last shown.
    title: Option<String>,
    /// When the last look was.
    pub time: Timestamp,
    worth: Worth,
}

/// The last tree, and the look that first showed it.
#[derive(Clone, Debug)]
struct KnownTree {
    time: Timestamp,
    /// As it is stored.
    packed: PackedTree,
    /// As the last look showed it, which may have shifted its boxes. Unpacked only when it is needed: most visits find the same
    /// payload and never need it.
    read: Option<BlockTree>,
}

impl KnownPage {
    /// What the state holds of a page, if any look at it was analysed.
    pub fn load(store: &Store, page: PageId) -> anyhow::Result<Option<KnownPage>> {
        Ok(store.known(page)?.map(KnownPage::from))
    }

    /// The identity of the last answer.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What the next look at the page is compared with, before it is laid out.
    pub fn before(&self) -> Before<'_> {
        Before { identity: &self.identity, was_page: self.was_page }
    }

    /// About how many letters the last tree holds; 0 where nothing could be laid out.
    pub fn n_letters(&self) -> anyhow::Result<usize> {
        Ok(self.known()?.map_or(0, |known| n_letters(&known.tree)))
    }

    /// Which version the tree shows, that of [`Self::known`]; `None` when there is no tree, or a later version could not be
    /// laid out.
    pub fn laid_out(&self) -> Option<&ShownVersion> {
        self.laid_out.as_ref()
    }

    /// Tree and noise history, as the comparison wants them; `None` when no look could be laid out.
    pub fn known(&self) -> anyhow::Result<Option<Known>> {
        let Some(known) = &self.tree else { return Ok(None) };
        let tree = match &known.read {
            Some(tree) => tree.clone(),
            None => known.packed.read()?,
        };
        Ok(Some(Known { tree, noise: self.noise.clone() }))
    }
}

impl From<KnownRow> for KnownPage {
    fn from(row: KnownRow) -> KnownPage {
        KnownPage {
            tree: row.tree.map(|(time, packed)| KnownTree { time, packed, read: None }),
            laid_out: row.shown,
            // A history that cannot be read is learned again.
            noise: NoiseHistory::from_bytes(&row.noise).unwrap_or_default(),
            identity: row.identity,
            was_page: row.was_page,
            title: row.title,
            time: row.time,
            worth: row.worth,
        }
    }
}

/// What one look taught. The thread that analysed makes it, and the thread that owns the state stores it.
#[derive(Clone, Debug)]
pub struct Lesson {
    row: LessonRow,
    items: Vec<NewsItem>,
}

/// An item that came to a front page, or got another headline there.
#[derive(Clone, Debug, PartialEq)]
pub struct NewsItem {
    /// Where it leads.
    pub address: String,
    /// Its headline.
    pub title: String,
    /// Whether it was there under another headline.
    pub is_retitled: bool,
}

/// Items of one look that are told.
const MAX_NEWS: usize = 200;

impl Lesson {
    /// The lesson of a look without layout: the same answer again, a redirect, a picture, a page that is gone.
    pub fn without_layout(
        page: PageId,
        time: Timestamp,
        identity: &str,
        before: Option<&KnownPage>,
        seen: Seen,
    ) -> (Lesson, KnownPage) {
        let mut known = match before {
            Some(known) => known.clone(),
            None => KnownPage {
                tree: None,
                laid_out: None,
                noise: NoiseHistory::default(),
                identity: String::new(),
                was_page: false,
                title: None,
                time,
                worth: Worth { first: time, total: 0.0, gathered: 0.0 },
            },
        };
        let mut seen = seen;
        match seen {
            Seen::Same => known.noise.record_unchanged(),
            _ => identity.clone_into(&mut known.identity),
        }
        known.was_page |= seen.is_page();
        if let Seen::Unjudged(importance) = seen {
            known.laid_out = None;
            let noise = known.noise.record_unreadable(time - known.time < SOON);
            seen = match noise.0 >= 1.0 {
                true => Seen::Noise,
                false => Seen::Unjudged(Importance::new(importance.get() * (1.0 - noise.0))),
            };
        }
        known.time = time;
        let is_indexed = is_worth_indexing(&mut known.worth, seen, time);
        let row = LessonRow {
            page,
            time,
            before: before.map(|known| known.time),
            seen,
            n_operations: 0,
            noise_of_operations: None,
            is_indexed,
            tree: None,
            tree_time: known.tree.as_ref().map(|known| known.time),
            shown: known.laid_out.clone(),
            identity: known.identity.clone(),
            was_page: known.was_page,
            title: known.title.clone(),
            title_before: None,
            noise: known.noise.to_bytes(),
            worth: known.worth,
        };
        let lesson = Lesson { row, items: Vec::new() };
        (lesson, known)
    }

    /// The lesson of a look that was laid out and compared, and what is known of the page afterwards.
    pub fn of_observation(
        page: PageId,
        time: Timestamp,
        identity: String,
        before: Option<&KnownPage>,
        observation: Observation,
        title: Option<String>,
    ) -> anyhow::Result<(Lesson, KnownPage)> {
        let earlier_title = before.and_then(|known| known.title.clone());
        let title = title.or_else(|| earlier_title.clone());
        let title_before = earlier_title.filter(|earlier| Some(earlier) != title.as_ref());
        let known_tree = before.and_then(|known| known.tree.as_ref());
        let seen = match before.map(KnownPage::before) {
            Some(before) if before.was_page && shows_page(before.identity) => {
                seen_in(&observation, known_tree.is_some())
            }
            Some(before) if before.was_page => Seen::Returned,
            _ => Seen::First,
        };
        let kept_tree = known_tree.filter(|_| observation.is_unchanged());
        let new_tree = match kept_tree {
            Some(_) => None,
            None => {
                let packed = PackedTree::of(&observation.known.tree)?;
                Some(NewTree::following(packed, known_tree.map(|known| &known.packed))?)
            }
        };
        let mut worth = before.map_or(Worth { first: time, total: 0.0, gathered: 0.0 }, |known| known.worth);
        let is_indexed = is_worth_indexing(&mut worth, seen, time);
        let tree_time = kept_tree.map_or(time, |known| known.time);
        let packed = new_tree.as_ref().map(NewTree::whole).or(kept_tree.map(|known| &known.packed)).cloned();
        let laid_out = Some(ShownVersion { identity: identity.clone(), time });
        let contributions = &observation.assessment.contributions;
        let items = news_of(&observation);
        let row = LessonRow {
            page,
            time,
            before: before.map(|known| known.time),
            seen,
            n_operations: contributions.len(),
            noise_of_operations: pack_noise(contributions.iter().map(|part| part.judgement.noise)),
            is_indexed,
            tree: new_tree,
            tree_time: Some(tree_time),
            shown: laid_out.clone(),
            identity: identity.clone(),
            was_page: true,
            title: title.clone(),
            title_before,
            noise: observation.known.noise.to_bytes(),
            worth,
        };
        let lesson = Lesson { row, items };
        let Known { tree, noise } = observation.known;
        let tree = packed.map(|packed| KnownTree { time: tree_time, packed, read: Some(tree) });
        Ok((lesson, KnownPage { tree, laid_out, noise, identity, was_page: true, title, time, worth }))
    }

    /// When the look was captured.
    pub fn time(&self) -> Timestamp {
        self.row.time
    }

    /// What the look showed.
    pub fn seen(&self) -> Seen {
        self.row.seen
    }

    /// Whether the version is worth indexing (docs/papers.md, Index threshold).
    pub fn is_indexed(&self) -> bool {
        self.row.is_indexed
    }

    /// Whether the look showed a change: a first look does not.
    pub fn is_change(&self) -> bool {
        self.row.seen.is_change()
    }

    /// The items that came to a front page or got another headline; none for other pages.
    pub fn items(&self) -> &[NewsItem] {
        &self.items
    }

    /// Stores it. Lessons of one page must come in order of time.
    pub fn keep(&self, commit: &Commit<'_>) -> anyhow::Result<()> {
        commit.put_lesson(&self.row)
    }
}

/// Trees of different engines are not compared and have no delta: such a look counts as the same, unless the page became another
/// kind of document.
fn seen_in(observation: &Observation, has_tree: bool) -> Seen {
    match has_tree {
        false => Seen::Unjudged(Importance::new(Seen::UNJUDGED)),
        true if observation.is_other_format => Seen::Unjudged(Importance::new(Seen::UNJUDGED)),
        true if observation.is_only_noise => Seen::Noise,
        true if observation.is_unchanged() || observation.delta.is_none() => Seen::Same,
        true => Seen::Changed(observation.importance()),
    }
}

fn news_of(observation: &Observation) -> Vec<NewsItem> {
    let items =
        observation.delta.as_ref().and_then(|delta| delta.items.as_ref()).filter(|items| items.is_hub);
    let changes = items.iter().flat_map(|items| &items.changes);
    let news = changes.filter_map(|change| {
        let is_retitled = match change.kind {
            ItemChangeKind::Insert => false,
            ItemChangeKind::Retitle => true,
            _ => return None,
        };
        let item = change.after.as_ref().filter(|item| !item.address.is_empty())?;
        Some(NewsItem { address: item.address.clone(), title: item.title.clone(), is_retitled })
    });
    news.take(MAX_NEWS).collect()
}

/// About how many letters a reader of a tree sees outside links.
pub(super) fn n_letters(tree: &BlockTree) -> usize {
    tree.leaves().flat_map(|leaf| &leaf.texts).map(|text| text.text.len()).sum()
}

/// Adds a look to the page's sums, and says whether its version is worth indexing. delta(P), the mean of omega_k, is the
/// mean importance of the page's changes in an hour.
fn is_worth_indexing(worth: &mut Worth, seen: Seen, now: Timestamp) -> bool {
    let importance = match seen {
        // The first version is always indexed, and is no change.
        Seen::First => return true,
        // A page that is not there has no version to index; one that returns has.
        seen if !seen.is_page() => return false,
        Seen::Same | Seen::Noise => return false,
        Seen::Changed(importance) => importance,
        seen => seen.importance(),
    };
    worth.first = worth.first.min(now);
    worth.total += importance.get();
    let mean = mean_an_hour(worth.total, now - worth.first);
    let mut threshold = IndexThreshold::new(mean).with_gathered(worth.gathered);
    let is_indexed = threshold.offer(importance);
    worth.gathered = threshold.gathered();
    is_indexed
}

/// What an observation found, as Vi-Delta; an empty one when that is nothing.
pub(super) fn delta_xml(observation: &Observation) -> String {
    let delta = observation.delta.as_ref().filter(|delta| !delta.is_empty());
    delta.map_or_else(empty_delta_xml, |delta| delta.to_xml(&observation.known.tree))
}

/// The Vi-Delta of a version that shows what the one before showed.
pub(super) fn empty_delta_xml() -> String {
    Delta::default().to_operations_xml()
}
