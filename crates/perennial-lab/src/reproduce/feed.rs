//! P-FEED 3 and 5: statistics of feeds, and Table 3 in three conditions. The paper's algorithm needs the feed item, so
//! only the conditions with the item are the paper's.

use std::collections::HashMap;

use perennial_core::article::{ArticleContext, extract};
use perennial_core::rng::Rng;
use perennial_core::text::dom::Dom;
use perennial_core::text::markup::escaped;
use rayon::prelude::*;
use serde::Deserialize;

use super::{Finding, Interval, Paper, Reproduction, ResultTable, mean};
use crate::feeds::extraction::{ExtractionVariant, extract_text};
use crate::feeds::statistics::FeedStatistics;

const N_MADE: u64 = 60;
/// Samples of an interval: groups of pages.
const N_GROUPS: usize = 6;

/// A post with the item of the feed that announced it.
#[derive(Clone, Debug, Deserialize)]
pub struct AnnouncedPost {
    /// Its page.
    #[serde(skip)]
    pub html: String,
    pub title: String,
    pub description: String,
    /// What must be extracted.
    pub text: String,
}

/// What the algorithms know, and what is on the page.
#[derive(Clone, Copy, PartialEq)]
enum ExtractionCondition {
    /// The page's own title and description.
    WithoutItem,
    /// The paper's condition.
    WithItem,
    /// The same, and two more posts on the page.
    AmongThree,
}

const CONDITIONS: [(ExtractionCondition, &str); 3] = [
    (ExtractionCondition::WithoutItem, "no feed item"),
    (ExtractionCondition::WithItem, "with the item"),
    (ExtractionCondition::AmongThree, "three posts per page"),
];

pub(super) fn reproduce(posts: &[AnnouncedPost], feeds: Option<&FeedStatistics>, all: &mut Reproduction) {
    table_3(posts, all);
    match feeds {
        Some(feeds) => statistics(feeds, all),
        None => {
            for (item, claim, published) in STATISTICS {
                let reason = "the 340 feeds are not public; give feeds with --data, one folder per domain";
                all.findings.push(Finding::untestable((Paper::Feed, item), (claim, published), reason));
            }
        }
    }
}

/// How well one algorithm does on some posts.
struct AlgorithmResult {
    name: String,
    /// Exact, and F1, of each post.
    scores: Vec<PostScore>,
}

#[derive(Clone, Copy)]
struct PostScore {
    is_exact: bool,
    precision: f64,
    recall: f64,
}

impl PostScore {
    /// Shares of words in rows of four, as in experiments/extraction.
    fn new(post: &AnnouncedPost, extracted: &str) -> PostScore {
        let (gold, found) = (words(&post.text), words(extracted));
        // The title belongs to the article, but may be outside of the text by hand.
        let is_exact = found == gold || found == words(&format!("{} {}", post.title, post.text));
        let (expected, got) = (shingles(&gold), shingles(&found));
        let both: usize =
            expected.iter().map(|(shingle, n)| (*n).min(got.get(shingle).copied().unwrap_or(0))).sum();
        let share =
            |all: &HashMap<Vec<String>, usize>| both as f64 / all.values().sum::<usize>().max(1) as f64;
        PostScore { is_exact, precision: share(&got), recall: share(&expected) }
    }

    fn f1(&self) -> f64 {
        let sum = self.precision + self.recall;
        if sum > 0.0 { 2.0 * self.precision * self.recall / sum } else { 0.0 }
    }
}

fn shingles(words: &[String]) -> HashMap<Vec<String>, usize> {
    let mut counts = HashMap::new();
    let n = 4.min(words.len().max(1));
    for shingle in words.windows(n) {
        *counts.entry(shingle.to_vec()).or_default() += 1;
    }
    counts
}

impl AlgorithmResult {
    fn exact(&self) -> f64 {
        mean(self.scores.iter().map(|score| f64::from(u8::from(score.is_exact))))
    }

    fn f1(&self) -> f64 {
        let (precision, recall) = (
            mean(self.scores.iter().map(|score| score.precision)),
            mean(self.scores.iter().map(|score| score.recall)),
        );
        2.0 * precision * recall / (precision + recall).max(1e-9)
    }
}

fn table_3(given: &[AnnouncedPost], all: &mut Reproduction) {
    let is_made = given.is_empty();
    let made: Vec<AnnouncedPost> = if is_made { (0..N_MADE).map(made_post).collect() } else { Vec::new() };
    let one: Vec<&AnnouncedPost> = if is_made { made.iter().collect() } else { given.iter().collect() };
    let among_three = three_per_page(&one);
    let source = if is_made { "made pages" } else { "pages of --data" };
    let of = (Paper::Feed, "Table 3");
    let columns = CONDITIONS.iter().flat_map(|(_, name)| [format!("{name}: exact"), format!("{name}: F1")]);
    let title =
        format!("{} posts, {source}; the paper has the item, and one or several posts per page", one.len());
    let mut table = ResultTable::new(of, title, columns, 3);
    let absent = f64::NAN;
    table.push("published", [absent, absent, 0.79, absent, absent, absent]);
    table.push("Boilerpipe, published", [0.62, absent, absent, absent, absent, absent]);
    let by_condition: Vec<Vec<AlgorithmResult>> = CONDITIONS
        .iter()
        .map(|(condition, _)| match condition {
            ExtractionCondition::AmongThree => run_all(&among_three.iter().collect::<Vec<_>>(), *condition),
            _ => run_all(&one, *condition),
        })
        .collect();
    for (at, result) in by_condition[0].iter().enumerate() {
        let values = by_condition.iter().flat_map(|results| [results[at].exact(), results[at].f1()]);
        table.push(result.name.clone(), values);
    }
    all.tables.push(table);

    let describe = |name: &str| {
        let of = |(results, (_, condition)): (&Vec<AlgorithmResult>, &(ExtractionCondition, &str))| {
            let result = results.iter().find(|result| result.name == name)?;
            Some(format!("{condition}: exact {:.2}, F1 {:.3}", result.exact(), result.f1()))
        };
        by_condition.iter().zip(&CONDITIONS).filter_map(of).collect::<Vec<_>>().join("; ")
    };
    let claim = ("grams, then concepts, find the text of an item on its page", ".79 exact, Boilerpipe .62");
    all.findings.push(Finding {
        in_condition: describe(ExtractionVariant::GramsThenConcepts.name()),
        as_shipped: describe(SHIPPED),
        ..Finding::untestable(
            of,
            claim,
            "neither the 60 sites nor their marked texts are public; the same conditions on other pages",
        )
    });
    let in_paper: &[AlgorithmResult] = &by_condition[1];
    let scores =
        |name: &str| in_paper.iter().find(|result| result.name == name).map(|result| &result.scores[..]);
    let published = scores(ExtractionVariant::GramsThenConcepts.name()).unwrap_or_default();
    let by_title = scores(ExtractionVariant::ExactTitle.name()).unwrap_or_default();
    let group = published.len().div_ceil(N_GROUPS).max(1);
    let leads = published.chunks(group).zip(by_title.chunks(group)).map(|(published, by_title)| {
        mean(published.iter().map(PostScore::f1)) - mean(by_title.iter().map(PostScore::f1))
    });
    let claim = ("they are better than the zone of the exact title (F1)", "the title gives poor results");
    all.findings.push(noted(Finding::measured(of, claim, &leads.collect::<Vec<_>>(), None), source));
    let richer: Vec<f64> = published
        .iter()
        .filter(|score| !score.is_exact)
        .map(|score| score.recall - score.precision)
        .collect();
    let claim = ("on a miss the zone found is richer than the article", "covers the object");
    all.findings.push(noted(Finding::measured(of, claim, &richer, None), source));
}

fn noted(finding: Finding, source: &str) -> Finding {
    Finding { reason: format!("{}; {source}", finding.reason), ..finding }
}

const SHIPPED: &str = "as shipped";

fn run_all(posts: &[&AnnouncedPost], condition: ExtractionCondition) -> Vec<AlgorithmResult> {
    let score = |extracted: &(dyn Fn(&AnnouncedPost, &Dom) -> String + Sync)| {
        posts.par_iter().map(|post| PostScore::new(post, &extracted(post, &Dom::parse(&post.html)))).collect()
    };
    let has_item = condition != ExtractionCondition::WithoutItem;
    let item =
        |post: &AnnouncedPost| has_item.then(|| (post.title.clone(), post.description.clone())).unzip();
    let variants = ExtractionVariant::ALL.map(|variant| AlgorithmResult {
        name: variant.name().to_owned(),
        scores: score(&|post, dom| {
            let (title, description) = item(post);
            extract_text(dom, title.as_deref(), description.as_deref(), variant)
        }),
    });
    let shipped = AlgorithmResult {
        name: SHIPPED.to_owned(),
        scores: score(&|post, dom| {
            let (title, description) = item(post);
            let (title, description) = (title.as_deref(), description.as_deref());
            extract(dom, &ArticleContext { title, description, ..ArticleContext::default() }).text
        }),
    };
    variants.into_iter().chain([shipped]).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Pages with three of the posts each, in the ways in which sites build them.
fn three_per_page(posts: &[&AnnouncedPost]) -> Vec<AnnouncedPost> {
    let page = |(number, three): (usize, &[&AnnouncedPost])| -> Vec<AnnouncedPost> {
        let body: String = three.iter().map(|post| post_html(post, number)).collect();
        let html = page_html(&body, "<title>The log</title>", &[]);
        three.iter().map(|post| AnnouncedPost { html: html.clone(), ..(*post).clone() }).collect()
    };
    posts.chunks_exact(3).enumerate().flat_map(page).collect()
}

fn post_html(post: &AnnouncedPost, layout: usize) -> String {
    let title = escaped(&post.title);
    let lines = post.text.split('\n').filter(|line| !line.trim().is_empty());
    let content: String = lines.map(|line| format!("<p>{}</p>", escaped(line))).collect();
    match layout % 3 {
        0 => format!(
            "<div class=post><h2><a href=/p>{title}</a></h2><div class=entry>{content}<p>Share this: <a href=/s>Post</a> <a \
             href=/m>Mail</a></p></div></div>"
        ),
        1 => format!(
            "<article><header><h2>{title}</h2></header>{content}<div class=comments><p>I read about {title} with pleasure.</p>\
             </div></article>"
        ),
        _ => format!("<section class=item><h2>{title}</h2><div>{content}</div></section>"),
    }
}

/// A page with a frame, and with the titles of other posts in its sidebar.
fn page_html(body: &str, head: &str, others: &[String]) -> String {
    let others: String = others.iter().map(|title| format!("<li><a href=/o>{title}</a>")).collect();
    format!(
        "{head}<nav><a href=/>Home</a> <a href=/about>About</a></nav><div id=content>{body}</div>\
         <div class=sidebar><h3>Archive</h3><ul><li><a href=/1>May</a><li><a href=/2>June</a></ul><h3>Recent</h3><ul>{others}</ul></div>"
    )
}

/// A post alone on its page.
fn made_post(seed: u64) -> AnnouncedPost {
    let mut rng = Rng::from_parts(&[seed, 0x706f_7374]);
    let title = sentence(&mut rng, 6);
    let n_paragraphs = 3 + rng.below(3);
    let paragraphs: Vec<String> = (0..n_paragraphs)
        .map(|_| [sentence(&mut rng, 14), sentence(&mut rng, 11)].join(". ") + ".")
        .collect();
    let description = paragraphs.concat().chars().take(120).collect();
    let post = AnnouncedPost { html: String::new(), title, description, text: paragraphs.join("\n") };
    // Pages say less about their posts than feeds do, and some nothing.
    let head = match seed % 3 {
        0 => "<title>The log</title>".to_owned(),
        _ => format!("<title>{} - The log</title>", escaped(&post.title)),
    };
    let others = [post.title.clone(), sentence(&mut rng, 6), sentence(&mut rng, 5)];
    AnnouncedPost { html: page_html(&post_html(&post, seed as usize), &head, &others), ..post }
}

const STATISTICS: [(&str, &str, &str); 5] = [
    ("Table 1", "most feeds are RSS 2.0", "table missing in our copy"),
    ("Fig. 1", "most feeds hold fewer than 30 items", "75 %, mode 10"),
    ("Fig. 2", "some feeds have a median interval below an hour", "20 %"),
    ("Fig. 2", "most feeds have a median interval of a day or less", "60 %"),
    ("Table 2", "mean intervals vary among domains", "huge variations; table missing in our copy"),
];

fn statistics(feeds: &FeedStatistics, all: &mut Reproduction) {
    const DAY: f64 = 86_400.0;
    let share = |values: Vec<bool>| -> Vec<f64> {
        values.into_iter().map(|value| f64::from(u8::from(value))).collect()
    };
    let medians: Vec<f64> = feeds
        .feeds
        .iter()
        .filter_map(|feed| feed.intervals.as_ref())
        .map(|intervals| intervals.median)
        .collect();
    let held: Vec<usize> = feeds.feeds.iter().filter_map(|feed| feed.n_held).filter(|n| *n > 0).collect();
    let half = |samples: Vec<f64>| -> Vec<f64> { samples.into_iter().map(|sample| sample - 0.5).collect() };
    let overall = feeds.all.mean_interval;
    let spread = feeds
        .tags
        .values()
        .filter(|tag| tag.n_with_intervals > 0)
        .map(|tag| (tag.mean_interval / overall.max(1.0)).max(1e-9).ln().abs())
        .collect();
    let samples: [(Vec<f64>, Option<f64>); 5] = [
        (half(share(feeds.feeds.iter().map(|feed| feed.format.contains("2.0")).collect())), None),
        (half(share(held.iter().map(|n| *n < 30).collect())), Some(0.25)),
        (share(medians.iter().map(|median| *median < 3600.0).collect()), Some(0.2)),
        (half(share(medians.iter().map(|median| *median <= DAY).collect())), Some(0.1)),
        (spread, None),
    ];
    for ((item, claim, published), (samples, effect)) in STATISTICS.into_iter().zip(samples) {
        let finding = Finding::measured((Paper::Feed, item), (claim, published), &samples, effect);
        let is_over_half = claim.starts_with("most");
        let in_condition = match (Interval::from_samples(&samples), is_over_half) {
            (Some(interval), true) => {
                format!("{:.0} % of {} feeds", 100.0 * (interval.mean + 0.5), interval.n)
            }
            _ => finding.in_condition.clone(),
        };
        all.findings.push(Finding { in_condition, ..finding });
    }
    let title = "by tag, or folder; means of the feeds' mean intervals and pooled deviations, in days";
    let mut table =
        ResultTable::new((Paper::Feed, "Table 2"), title, ["feeds", "mean interval", "deviation"], 2);
    for (tag, summary) in
        feeds.tags.iter().map(|(tag, summary)| (tag.as_str(), summary)).chain([("all", &feeds.all)])
    {
        table
            .push(tag, [summary.n_feeds as f64, summary.mean_interval / DAY, summary.pooled_deviation / DAY]);
    }
    all.tables.push(table);
}

/// Words of two to four syllables.
fn sentence(rng: &mut Rng, n_words: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "den", "fo", "gal", "hi", "jor", "ka", "lem", "mi", "nus", "pe", "ran", "so", "tel", "vi",
        "wun",
    ];
    let mut word =
        || (0..2 + rng.below(3)).map(|_| SYLLABLES[rng.below(SYLLABLES.len())]).collect::<String>();
    let text = (0..n_words).map(|_| word()).collect::<Vec<_>>().join(" ");
    text[..1].to_uppercase() + &text[1..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn made_pages_have_the_announced_post() {
        let posts: Vec<AnnouncedPost> = (0..6).map(made_post).collect();
        let three = three_per_page(&posts.iter().collect::<Vec<_>>());
        assert_eq!(three.len(), 6);
        for post in posts.iter().chain(&three) {
            assert!(post.html.contains(&post.title) && post.text.len() > 200);
        }
        assert!(three[0].html.contains(&three[2].title) && !three[0].html.contains(&three[3].title));
    }

    #[test]
    fn the_papers_condition_has_the_item() {
        let mut all = Reproduction::default();
        reproduce(&[], None, &mut all);
        assert_eq!(all.findings[0].verdict, Verdict::NotTestable);
        let row = |name: &str| all.tables[0].rows.iter().find(|row| row.name == name).unwrap().values.clone();
        let published = row("grams-then-concepts");
        assert!(
            published[3] > published[1],
            "without the item the paper's algorithm is treated unfairly: {published:?}"
        );
        assert!(row("published")[2] == Some(0.79) && row("Boilerpipe, published")[0] == Some(0.62));
        for finding in &all.findings {
            let has_effect = finding.effect.is_some_and(|effect| effect.low > 0.0);
            assert!(has_effect || finding.verdict != Verdict::Repeated, "{finding:?}");
        }
    }

    #[test]
    fn scores_are_those_of_the_words() {
        let post = AnnouncedPost {
            html: String::new(),
            title: "T".into(),
            description: String::new(),
            text: "a b c d e".into(),
        };
        let score = PostScore::new(&post, "T a b  c d\ne");
        assert!(score.is_exact && score.recall == 1.0);
        let score = PostScore::new(&post, "a b c d");
        assert!(!score.is_exact && score.precision == 1.0 && score.recall == 0.5);
        assert_eq!(PostScore::new(&post, "").f1(), 0.0);
    }
}
