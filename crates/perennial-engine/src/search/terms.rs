//! Finds terms that appeared in a span and were absent or much rarer before (P-FEED 6).

use perennial_core::search::{TermCounts, TextClause, TextQuery, surprise};
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use perennial_archive::store::{Store, Texts};

/// Latest passages of the span that are read.
const MAX_PASSAGES: usize = 50_000;
/// Words and pairs whose earlier frequency is looked up: the most frequent ones.
const MAX_WORDS: usize = 4_000;
const MAX_PAIRS: usize = 2_000;
/// Most earlier passages that are counted per term: a minimum, and a number per passage of the span. A term with more
/// is not new.
const MIN_BEFORE: u64 = 500;
const BEFORE_PER_PASSAGE: u64 = 20;
/// Thresholds for a term that existed before: growth of its frequency, and surprise. Below 10.83, one in a thousand
/// terms would exceed it by chance.
const LEAST_GROWTH: f64 = 2.0;
const LEAST_SURPRISE: f64 = 10.83;

/// The conditions of a search for new terms.
#[derive(Clone, Copy, Debug)]
pub struct TermsQuery<'a> {
    /// Start of the span.
    pub since: Timestamp,
    /// End of the span (exclusive).
    pub until: Option<Timestamp>,
    /// Only on pages of this host, compared with its own past.
    pub host: Option<&'a str>,
    /// Most terms.
    pub limit: usize,
}

/// A term that is new or more frequent.
#[derive(Clone, PartialEq, Debug)]
pub struct NewTerm {
    /// The spelling that a reader saw first.
    pub shown: String,
    /// Passages of the span with the term.
    pub n_passages: u64,
    /// Passages before the span with the term.
    pub n_before: u64,
    /// The log-likelihood ratio.
    pub surprise: f64,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct NewTerms {
    /// Most surprising first.
    pub terms: Vec<NewTerm>,
    /// Passages of the span that were read.
    pub n_passages: u64,
    /// Passages before the span.
    pub n_before: u64,
    /// Whether only the latest passages of the span were read.
    pub is_partial: bool,
}

/// Finds new terms. It reads the passages of the span, and for a bounded number of terms a bounded number of earlier
/// passages.
pub fn new_terms(store: &Store, texts: &Texts, query: &TermsQuery<'_>) -> anyhow::Result<NewTerms> {
    let pages = query.host.map(|host| store.host_pages(host)).transpose()?;
    let mut counts = TermCounts::default();
    let since = query.since;
    // A site without earlier captures has no past to compare with.
    let mut sites = KnownSites { store, since, known: Default::default() };
    let is_partial = texts.each_new_passage(
        (since, query.until),
        pages.as_deref(),
        MAX_PASSAGES,
        &mut |page| sites.were_known(page),
        &mut |page, text| counts.add(page, text),
    )?;
    let n_before = texts.count_passages_before(since, pages.as_deref())?;
    let n_passages = counts.n_passages();
    let mut terms = Vec::new();
    for candidate in counts.candidates(MAX_WORDS, MAX_PAIRS) {
        let most = MIN_BEFORE.max(BEFORE_PER_PASSAGE * candidate.n_passages);
        let clause = TextClause { words: candidate.words, is_prefix: false, is_excluded: false };
        let query = TextQuery { alternatives: vec![vec![clause]] };
        let Some(before) = texts.count_before(&query, since, pages.as_deref(), most)? else { continue };
        let surprise = surprise(candidate.n_passages, n_passages, before, n_before);
        let rate = |n: u64, of: u64| n as f64 / of.max(1) as f64;
        let has_grown = rate(candidate.n_passages, n_passages) >= LEAST_GROWTH * rate(before, n_before);
        if surprise > 0.0 && (before == 0 || has_grown && surprise >= LEAST_SURPRISE) {
            let (shown, n_passages) = (candidate.shown, candidate.n_passages);
            terms.push(NewTerm { shown, n_passages, n_before: before, surprise });
        }
    }
    terms.sort_by(|a, b| b.surprise.total_cmp(&a.surprise).then_with(|| a.shown.cmp(&b.shown)));
    without_parts(&mut terms);
    terms.truncate(query.limit);
    Ok(NewTerms { terms, n_passages, n_before, is_partial })
}

/// Drops words that occur only as part of a listed pair.
fn without_parts(terms: &mut Vec<NewTerm>) {
    let all = terms.clone();
    let is_part = |part: &NewTerm, whole: &NewTerm| {
        let words: Vec<&str> = whole.shown.split_whitespace().collect();
        words.len() == 2
            && words.iter().any(|word| word.eq_ignore_ascii_case(&part.shown))
            && whole.n_passages == part.n_passages
    };
    terms.retain(|term| !all.iter().take(500).any(|whole| is_part(term, whole)));
}

/// Caches which sites were known before an instant.
struct KnownSites<'s> {
    store: &'s Store,
    since: Timestamp,
    known: std::collections::HashMap<perennial_core::url::SiteId, bool>,
}

impl KnownSites<'_> {
    fn were_known(&mut self, page: PageId) -> anyhow::Result<bool> {
        let Some(site) = self.store.page_site(page)? else { return Ok(false) };
        if let Some(known) = self.known.get(&site) {
            return Ok(*known);
        }
        let known = self.store.site_first_capture(site)?.is_some_and(|first| first < self.since);
        self.known.insert(site, known);
        Ok(known)
    }
}
