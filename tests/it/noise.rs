//! Small changes of a page: news counts more than noise at first sight, nothing is silenced before it has repeated, and
//! what has repeated is noise.

use std::path::PathBuf;

use perennial_core::page::observe::VersionComparison;
use perennial_engine::analyse::{AdFilters, Analyst, PageText};

use crate::program::testdata;

/// An entry of `testdata/noise/pairs.txt`.
struct Case {
    is_news: bool,
    language: String,
    name: String,
    /// The paragraphs around the element.
    frame: Vec<String>,
    /// The element on successive visits.
    versions: Vec<String>,
}

impl Case {
    fn page(&self, version: usize) -> String {
        let block = |text: &String| match text.starts_with('<') {
            true => text.clone(),
            false => format!("<p>{text}</p>"),
        };
        let (first, last) = self.frame.split_at(2);
        let article: String = first.iter().chain([&self.versions[version]]).chain(last).map(block).collect();
        format!(
            "<!DOCTYPE html><html lang={}><meta charset=utf-8><title>Port</title>
            <header><a href=/>Port</a></header><nav><a href=/a>Aktuell</a> <a href=/b>Boats</a> <a href=/c>Contact</a></nav>
            <main><article><h1>Port</h1>{article}</article></main><footer><a href=/i>Imprint</a></footer></html>",
            self.language
        )
    }
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(testdata("noise/pairs.txt")).unwrap();
    let (mut cases, mut frame): (Vec<Case>, Vec<String>) = (Vec::new(), Vec::new());
    for part in text.split("\n\n").map(str::trim).filter(|part| !part.starts_with('#')) {
        let (head, rest) = part.split_once('\n').unwrap();
        if head.starts_with("frame ") {
            frame = rest.lines().map(str::to_owned).collect();
            continue;
        }
        let [what, language, name] = head.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
        let versions: Vec<String> =
            rest.lines().map(|line| line.trim_start_matches(['-', '+']).trim_start().to_owned()).collect();
        assert!(versions.len() >= 2 && matches!(what, "news" | "noise"), "{head}");
        let (is_news, language, name) = (what == "news", language.to_owned(), name.to_owned());
        cases.push(Case { is_news, language, name, frame: frame.clone(), versions });
    }
    cases
}

fn analyst() -> Analyst {
    Analyst::with_worker(PathBuf::from(env!("CARGO_BIN_EXE_perennial")), AdFilters::built_in())
}

/// Observes the versions with these numbers one after the other; returns the last comparison.
fn observe(analyst: &Analyst, case: &Case, versions: impl IntoIterator<Item = usize>) -> VersionComparison {
    let mut last: Option<VersionComparison> = None;
    for version in versions {
        let html = case.page(version);
        let page =
            PageText { url: "http://port.example/page", version: "", html: &html, subresources: &|_| None };
        let before = last.as_ref().map(|last| (&last.tree, &last.noise));
        last = Some(analyst.compare(before, analyst.tree(&page)));
    }
    last.unwrap()
}

fn importance(comparison: &VersionComparison) -> f64 {
    comparison.assessment.importance.get()
}

#[test]
fn news_counts_more_than_noise_at_first_sight() {
    let analyst = analyst();
    let mut seen: Vec<(f64, bool, String)> = Vec::new();
    for case in cases() {
        let comparison = observe(&analyst, &case, [0, 1]);
        assert!(!comparison.is_only_noise, "{} {}: silent at first sight", case.language, case.name);
        let name = format!("{} {}", case.language, case.name);
        seen.push((importance(&comparison), case.is_news, name));
    }
    assert!(seen.len() >= 60 && 2 * seen.iter().filter(|(_, is_news, _)| *is_news).count() == seen.len());
    seen.sort_by(|x, y| y.0.total_cmp(&x.0));
    let n_news = seen.len() / 2;
    let list: String = seen
        .iter()
        .map(|(importance, is_news, name)| format!("{importance:.5} {is_news} {name}\n"))
        .collect();
    println!("{list}");
    assert!(seen[..n_news].iter().all(|(importance, is_news, _)| *is_news && *importance >= 0.005), "{list}");
}

#[test]
fn noise_is_earned_by_repetition() {
    let analyst = analyst();
    let mut wrong = String::new();
    for case in cases().iter().filter(|case| case.versions.len() > 2) {
        let comparison = observe(&analyst, case, 0..case.versions.len());
        if !comparison.is_only_noise {
            wrong += &format!("{} {}: {:?}\n", case.language, case.name, comparison.assessment);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// On a page that is otherwise still, a changed number is news, and so is the date of a document.
#[test]
fn a_long_quiet_page_makes_no_noise() {
    let analyst = analyst();
    let validity = Case {
        is_news: true,
        language: "en".into(),
        name: "validity".into(),
        frame: cases()[0].frame.clone(),
        versions: vec!["As of 19 February 2024".into(), "As of 13 March 2024".into()],
    };
    let quiet = std::iter::repeat_n(0, 20).chain([1]);
    for case in cases().iter().filter(|case| case.is_news).chain([&validity]) {
        let first = importance(&observe(&analyst, case, [0, 1]));
        let comparison = observe(&analyst, case, quiet.clone());
        let name = format!("{} {}", case.language, case.name);
        assert!(!comparison.is_only_noise && importance(&comparison) >= 0.99 * first, "{name}");
        let is_folded = |noise: f64| noise >= 0.6;
        let contributions = &comparison.assessment.contributions;
        assert!(
            contributions.iter().any(|part| !is_folded(part.judgement.noise)),
            "{name}: {contributions:?}"
        );
    }
}

/// A box of stories in the header, as some offices have it on every page: other stories are not news of the page, one
/// removed link of its content is.
#[test]
fn other_stories_beside_the_content_count_less_than_a_link_of_the_content() {
    let analyst = analyst();
    let prose = "The register lists every berth of the harbour with its depth, its length and the year of its last survey.";
    let story = |name: &&str| {
        format!(
            "<li><article><img src=/{name}.jpg alt='The {name}' width=900 height=300><p>People come from far away to see the \
             {name} of our coast in spring, when the light is best and nobody else is there.</p>\
             <a href=/stories/the-old-{name}>See the {name}</a></article></li>"
        )
    };
    let page = |stories: &[&str], link: &str| {
        let stories: String = stories.iter().map(story).collect();
        let prose = format!("<p>{prose}</p>").repeat(3);
        format!(
            "<!DOCTYPE html><meta charset=utf-8><title>Berths</title><header role=banner><ul class=slides>{stories}</ul></header>
            <main><h1>Berths</h1>{prose}<p><a href=/notes>Notes</a></p>{link}</main><footer><a href=/i>Imprint</a></footer>"
        )
    };
    let compare = |before: &str, after: &str| {
        let tree = |html: &str| {
            analyst.tree(&PageText {
                url: "http://port.example/berths",
                version: "",
                html,
                subresources: &|_| None,
            })
        };
        let first = analyst.compare(None, tree(before));
        let second = analyst.compare(Some((&first.tree, &first.noise)), tree(after));
        assert!(!second.is_only_noise, "it is listed");
        importance(&second)
    };
    let link = "<p><a href=/data/depths-2026>Download</a></p>";
    let (some, others) = (["harbour", "lighthouse", "ferry"], ["pier", "island", "market"]);
    let stories = compare(&page(&some, link), &page(&others, link));
    let content = compare(&page(&some, link), &page(&some, ""));
    assert!(0.0 < stories && 3.0 * stories < content, "{stories} {content}");
}
