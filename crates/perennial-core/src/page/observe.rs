//! A block tree, the tree before it and the page's noise history -> delta, importance, new history (docs/papers.md,
//! How the papers join).
//!
//! The crawler and the import call [`compare`] after each capture.

use crate::page::diff::{Delta, Element, ElementKind, Operation, Subject, diff, n_words as n_words_in};
use crate::page::document::DocumentFormat;
use crate::page::importance::{Assessment, Contribution, ImportanceConfig, Judgement, assess};
use crate::page::noise::{Noise, NoiseHistory};
use crate::page::segment::{Block, BlockRole, BlockTree};
use crate::url::canonical::without_scheme;

/// Decides whether an element is an advertisement, by filter lists if there are any.
pub type IsAdvertisement<'a> = &'a dyn Fn(&Element) -> bool;

/// A version of a page compared with the version before it.
#[derive(Clone, PartialEq, Debug)]
pub struct VersionComparison {
    /// The blocks of the new version.
    pub tree: BlockTree,
    /// The noise history including this version.
    pub noise: NoiseHistory,
    /// The changes. `None` for the first capture, and if a different engine made the tree before.
    pub delta: Option<Delta>,
    /// The importance of each operation.
    pub assessment: Assessment,
    /// Whether there were changes and all of them are noise, as the page's history shows, or advertisements.
    pub is_only_noise: bool,
    /// Whether the format of the document changed, for example from a page to a PDF. The importance of such a change
    /// is unknown.
    pub is_other_format: bool,
}

impl VersionComparison {
    /// Whether a reader sees no difference.
    pub fn is_unchanged(&self) -> bool {
        self.delta.as_ref().is_some_and(Delta::is_empty)
    }
}

/// Compares a version with the one before it and with the noise history. Trees of different engines are not compared,
/// because they cut the same page in different places. The new tree is then stored with importance 0, because no
/// change was observed.
pub fn compare(
    before: Option<(&BlockTree, &NoiseHistory)>,
    tree: BlockTree,
    config: &ImportanceConfig,
    is_advertisement: IsAdvertisement,
) -> VersionComparison {
    let alone = VersionComparison {
        tree,
        noise: before.map(|(_, noise)| noise.clone()).unwrap_or_default(),
        delta: None,
        assessment: Assessment::default(),
        is_only_noise: false,
        is_other_format: false,
    };
    let Some((tree_before, noise_before)) = before else { return alone };
    let (engine_before, engine) = (&tree_before.engine, &alone.tree.engine);
    if engine_before != engine {
        let is_other_format =
            DocumentFormat::from_engine(engine_before) != DocumentFormat::from_engine(engine);
        return VersionComparison { is_other_format, ..alone };
    }
    let delta = diff(tree_before, &alone.tree);
    let noise_judge = noise_before.judge(&delta);
    let assessment = assess(&delta, config, &mut |operation| {
        judge(operation, noise_judge.noise(operation), is_advertisement)
    });
    let mut noise = noise_before.clone();
    noise.record(&delta);
    let is_only_noise = !delta.is_empty() && is_only_noise(&delta, &assessment);
    VersionComparison { noise, delta: Some(delta), assessment, is_only_noise, ..alone }
}

/// The judgement of an operation, given how much of it is noise.
pub fn judge(operation: &Operation, noise: Noise, is_advertisement: IsAdvertisement) -> Judgement {
    let is_advertisement = is_about_advertisement(operation, is_advertisement);
    Judgement { is_advertisement, noise: noise.share, reason: noise.reason }
}

/// Whether the history of the page shows that all operations are noise. On a listing page the links and images around
/// the items do not count.
fn is_only_noise(delta: &Delta, assessment: &Assessment) -> bool {
    let items = delta.items.as_ref().filter(|items| items.is_listing);
    let is_noise = |(operation, contribution): (Operation<'_>, &Contribution)| {
        let is_around_items = items.is_some() && contribution.value == 0.0;
        contribution.is_counted_elsewhere
            || contribution.judgement.is_earned_noise()
            || is_around_items && operation.element_kind() != Some(ElementKind::Text)
    };
    items.is_none_or(|items| items.importance() == 0.0)
        && delta.operations().zip(&assessment.contributions).all(is_noise)
}

/// Whether the element or its block is an advertisement, or most links and images of an inserted or deleted block are.
pub fn is_about_advertisement(operation: &Operation, is_advertisement: IsAdvertisement) -> bool {
    if operation.role == Some(BlockRole::Advertisement) {
        return true;
    }
    match operation.subject {
        Subject::Element { before, after } => before.into_iter().chain(after).any(is_advertisement),
        Subject::Block(Some(block)) => is_advertising_block(block, is_advertisement),
        Subject::Block(None) => false,
    }
}

/// Minimum number of words of a link name that is a headline.
const MIN_HEADLINE_WORDS: usize = 4;

/// Whether an element is a headline that links to a page of the same site. The URL of such a link contains the words
/// of its headline, so advertising words in it do not count.
pub fn is_own_headline(element: &Element, page: &str) -> bool {
    let host = |url: &str| {
        let url = url::Url::parse(url).ok()?;
        Some(url.host_str()?.trim_start_matches("www.").to_owned())
    };
    matches!(element, Element::Link(link) if n_words_in(&link.name) >= MIN_HEADLINE_WORDS)
        && host(page).is_some_and(|own| host(element.url()) == Some(own))
}

/// Whether a URL contains an advertising word: the test of P-PATTERN 6.2, used if no filter list decides. Only whole
/// words of the host and of short path segments count. "download" contains "ad", and a long segment is the headline of
/// an article, which may be about advertising.
pub fn has_advertising_words(url: &str) -> bool {
    let rest = without_scheme(url);
    let path = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = path.split_at(path.find('/').unwrap_or(path.len()));
    let is_known = |word: &str| ADVERTISING_WORDS.split(' ').any(|known| known.eq_ignore_ascii_case(word));
    let words =
        |part: &str| part.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).count();
    let has_known = |part: &str| part.split(|c: char| !c.is_ascii_alphanumeric()).any(is_known);
    host.split('.').any(has_known)
        || path.split('/').any(|segment| {
            let stem = segment.rsplit_once('.').map_or(segment, |(stem, _)| stem);
            words(stem) <= 2 && has_known(stem)
        })
}

const ADVERTISING_WORDS: &str = "\
    ad ads adserver adservice advert advertise advertisement advertisements advertising adverts banner \
    banners doubleclick googlesyndication sponsor sponsored";

fn is_advertising_block(block: &Block, is_advertisement: IsAdvertisement) -> bool {
    let (mut n_references, mut n_advertisements, mut n_words) = (0, 0, 0);
    for block in block.walk() {
        for element in Element::in_block(block) {
            match &element {
                Element::Text(text) => n_words += n_words_in(&text.text),
                _ => {
                    n_references += 1;
                    n_advertisements += usize::from(is_advertisement(&element));
                }
            }
        }
    }
    2 * n_advertisements > n_references && n_words < 20 * n_references
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::importance::Importance;
    use crate::page::segment::{Image, Link, Text};

    fn page(date: &str, story: &str, banner: &str) -> BlockTree {
        let news = Block::leaf(
            vec![Link::new("Home", "http://a.org/")],
            vec![],
            vec![Text::new(date), Text::new(story)],
        );
        let banner =
            Block::leaf(vec![], vec![Image::new("banner", format!("http://ads.example/{banner}"))], vec![]);
        let blocks = vec![Block { importance: 0.9, ..news }, Block { importance: 0.1, ..banner }];
        let mut tree =
            BlockTree { url: "http://a.org/".into(), engine: "e".into(), blocks, ..BlockTree::default() };
        tree.seal();
        tree
    }

    fn by_host(element: &Element) -> bool {
        element.url().starts_with("http://ads.example/")
    }

    fn visit(before: Option<&VersionComparison>, tree: BlockTree) -> VersionComparison {
        let before = before.map(|before| (&before.tree, &before.noise));
        compare(before, tree, &ImportanceConfig::default(), &by_host)
    }

    #[test]
    fn a_first_capture_has_no_delta() {
        let first = visit(None, page("monday", "a story of many words", "1"));
        assert!(first.delta.is_none() && !first.is_unchanged() && !first.is_only_noise);
    }

    #[test]
    fn an_unchanged_page_has_an_empty_delta() {
        let first = visit(None, page("monday", "a story of many words", "1"));
        let second = visit(Some(&first), page("monday", "a story of many words", "1"));
        assert_eq!(second.assessment.importance, Importance::NONE);
        assert!(second.is_unchanged() && !second.is_only_noise);
    }

    #[test]
    fn a_banner_and_a_clock_are_only_noise_and_a_story_is_not() {
        let mut last = visit(None, page("at 10:00 today", "a story of many words", "0"));
        for n in 1..10 {
            let page = page(&format!("at 10:0{n} today"), "a story of many words", &n.to_string());
            last = visit(Some(&last), page);
        }
        assert!(last.is_only_noise, "{:?}", last.assessment);
        let news =
            visit(Some(&last), page("at 10:59 today", "another tale that nobody had ever heard of", "9"));
        assert!(!news.is_only_noise);
        assert!(news.assessment.importance.get() > 10.0 * last.assessment.importance.get());
    }

    #[test]
    fn advertising_is_recognised_by_whole_words() {
        assert!(has_advertising_words("http://a.org/ads/x.gif"));
        assert!(has_advertising_words("http://ad.doubleclick.net/x"));
        assert!(has_advertising_words("http://a.org/img/banner_468x60.gif"));
        assert!(!has_advertising_words("http://a.org/downloads/header.html"));
        assert!(!has_advertising_words("http://a.org/news/super-bowl-ad-makes-history"));
        assert!(!has_advertising_words("http://a.org/read?from=ad"));
    }

    #[test]
    fn the_url_of_a_headline_does_not_make_it_an_advertisement() {
        let link = |name: &str, url: &str| Element::Link(Link::new(name, url));
        let page = "http://www.a.org/";
        assert!(is_own_headline(&link("Car maker stops its ad", "http://a.org/ads/stop"), page));
        assert!(!is_own_headline(&link("Buy now", "http://a.org/ads/stop"), page));
        assert!(!is_own_headline(&link("Buy these very fine shoes", "http://shop.example/ads/1"), page));
    }

    #[test]
    fn trees_of_two_engines_are_not_compared() {
        let first = visit(None, page("monday", "a story", "1"));
        let other = BlockTree { engine: "other".into(), ..page("tuesday", "more", "2") };
        let second = visit(Some(&first), other);
        assert!(!second.is_other_format);
        assert_eq!((second.delta, second.assessment.importance), (None, Importance::NONE));
        let text = BlockTree { engine: "pdf/1".into(), ..page("tuesday", "more", "2") };
        assert!(visit(Some(&first), text.clone()).is_other_format);
        let first = visit(None, text);
        let later = BlockTree { engine: "pdf/2".into(), ..page("tuesday", "more", "2") };
        assert!(!visit(Some(&first), later).is_other_format, "a later release reads the same format");
    }
}
