//! Plants changes of known rank into real pages, and measures how often each measure of importance orders them
//! correctly.
//!
//!     cargo run --release -p perennial-lab --example importance_eval -- VERSIONS [MORE...] [--dump DIR]
//!
//! Base pages are the newest version in each folder below VERSIONS, and all pages below MORE. Each gets common page
//! furniture: a banner, a date stamp, a footer with a year. Then each change is made to the HTML, laid out, segmented
//! and weighed. Ranks follow a reader's order: 3 for a rewritten article or an exchanged template, 2 for a news item
//! added to the main block, 1 for a new menu entry, 0 for banner, date stamp and year. A pair is right if the higher
//! rank has the higher importance. Equal values count half. `--dump` writes the HTML for
//! `experiments/importance/baselines.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perennial_core::page::diff::Element;
use perennial_core::page::importance::{ImportanceConfig, ImportanceForm};
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::observe::{compare, has_advertising_words};
use perennial_core::page::segment::{BlockTree, SegmentConfig, segment};
use perennial_core::text::charset::decode_text;
use perennial_render::{LayoutEngine, resource::nothing};

/// A kind of change that is planted into pages.
struct PlantedChange {
    name: &'static str,
    rank: u8,
    /// Changes the HTML of a page; `None` if the page does not permit it.
    plant: fn(&str) -> Option<String>,
}

const CHANGES: [PlantedChange; 7] = [
    PlantedChange { name: "article-rewritten", rank: 3, plant: rewrite_article },
    PlantedChange { name: "template-exchanged", rank: 3, plant: exchange_template },
    PlantedChange { name: "news-added", rank: 2, plant: add_news },
    PlantedChange { name: "menu-entry", rank: 1, plant: add_menu_entry },
    PlantedChange { name: "banner-rotated", rank: 0, plant: |html| replaced(html, "banner-17", "banner-42") },
    PlantedChange {
        name: "date-stamp",
        rank: 0,
        plant: |html| replaced(html, "12 November 2026, 10:15", "13 November 2026, 08:40"),
    },
    PlantedChange {
        name: "footer-year",
        rank: 0,
        plant: |html| replaced(html, "2025 The Editors", "2026 The Editors"),
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let versions =
        PathBuf::from(args.next().ok_or("usage: importance_eval VERSIONS [MORE...] [--dump DIR]")?);
    let (mut pages, mut dump) = (newest(&versions)?, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--dump" => dump = args.next().map(PathBuf::from),
            _ => pages.extend(all_pages(Path::new(&arg))?),
        }
    }
    let engine = LayoutEngine::new();
    let mut measured: BTreeMap<String, Vec<PageValues>> = BTreeMap::new();
    let (mut n_pages, mut n_unseen) = (0, 0);
    for page in &pages {
        let Some(base) = std::fs::read(page).ok().and_then(|bytes| furnish(&decode_text(&bytes, None)))
        else {
            continue;
        };
        let variants: Vec<(&str, u8, String)> = CHANGES
            .iter()
            .filter_map(|change| Some((change.name, change.rank, (change.plant)(&base)?)))
            .collect();
        if let Some(dump) = &dump {
            write_dump(&dump.join(n_pages.to_string()), &base, &variants)?;
        }
        n_pages += 1;
        let before = tree(&engine, &base);
        let trees: Vec<BlockTree> = variants.iter().map(|(.., html)| tree(&engine, html)).collect();
        n_unseen += trees.iter().filter(|tree| tree.id() == before.id()).count();
        let knowns = [("", first(before.clone())), (" after 6 visits", history(&engine, &base))];
        for (form, form_name) in ImportanceForm::NAMES {
            for (suffix, known) in &knowns {
                let seen = variants.iter().zip(&trees).filter(|(_, after)| after.id() != before.id());
                let values = seen.map(|((name, rank, _), after)| ChangeValues {
                    name,
                    rank: *rank,
                    value: weigh(known, after.clone(), form),
                });
                measured.entry(format!("{form_name}{suffix}")).or_default().push(values.collect());
            }
        }
    }
    println!("pages {n_pages}; {n_unseen} changes that no reader sees, as in a hidden menu, are left out");
    measured.iter().for_each(|(measure, pages)| report(measure, pages));
    Ok(())
}

/// The values of all measures for one change.
#[derive(Clone, Copy)]
struct ChangeValues {
    name: &'static str,
    rank: u8,
    value: f64,
}

/// The changes of one page.
type PageValues = Vec<ChangeValues>;

fn report(measure: &str, pages: &[PageValues]) {
    let (within, n_within) = right_within(pages);
    let all: PageValues = pages.iter().flatten().copied().collect();
    let (across, n_across) = right_within(&[all]);
    println!(
        "{measure}: within a page {within:.3} of {n_within} pairs, across pages {across:.3} of {n_across}"
    );
    for PlantedChange { name, .. } in CHANGES {
        let values: Vec<f64> =
            pages.iter().flatten().filter(|value| value.name == name).map(|value| value.value).collect();
        let mean = values.iter().sum::<f64>() / f64::max(values.len() as f64, 1.0);
        println!("    {name}: mean {mean:.4} over {}", values.len());
    }
    for (pair, n) in wrong_pairs(pages) {
        println!("    wrong: {pair} {n}");
    }
}

fn wrong_pairs(pages: &[PageValues]) -> BTreeMap<String, usize> {
    let mut wrong = BTreeMap::new();
    for page in pages {
        for high in page {
            for low in page.iter().filter(|low| low.rank < high.rank && low.value >= high.value) {
                *wrong.entry(format!("{} not above {}", high.name, low.name)).or_default() += 1;
            }
        }
    }
    wrong
}

fn newest(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pages = all_pages(folder)?;
    pages.sort();
    Ok(pages.chunk_by(|x, y| x.parent() == y.parent()).filter_map(|all| all.last().cloned()).collect())
}

fn all_pages(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pages.append(&mut all_pages(&path)?);
        } else if path.file_name().is_some_and(|name| name != "expected.html")
            && path.extension().is_some_and(|extension| extension == "html")
        {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

fn write_dump(folder: &Path, base: &str, variants: &[(&str, u8, String)]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("base.html"), base)?;
    for (name, rank, html) in variants {
        std::fs::write(folder.join(format!("{rank}-{name}.html")), html)?;
    }
    Ok(())
}

fn tree(engine: &LayoutEngine, html: &str) -> BlockTree {
    segment(&engine.layout(html, "http://page.example/", &nothing), &SegmentConfig::default())
}

/// The last version of a page, and its noise history.
type PageHistory = (BlockTree, NoiseHistory);

fn first(tree: BlockTree) -> PageHistory {
    (tree, NoiseHistory::default())
}

/// Five earlier visits, each with a different banner and date.
fn history(engine: &LayoutEngine, base: &str) -> PageHistory {
    let mut known: Option<PageHistory> = None;
    for visit in 0..6 {
        let html = base
            .replace("banner-17", &format!("banner-{}", 17 + (visit + 1) % 6))
            .replace("12 November 2026, 10:15", &format!("{} November 2026, {}:15", 7 + visit, 5 + visit));
        let before = known.as_ref().map(|(tree, noise)| (tree, noise));
        let version = compare(before, tree(engine, &html), &ImportanceConfig::default(), &is_ad);
        known = Some((version.tree, version.noise));
    }
    known.unwrap_or_else(|| first(BlockTree::default()))
}

fn is_ad(element: &Element) -> bool {
    has_advertising_words(element.url())
}

fn weigh((tree, noise): &PageHistory, after: BlockTree, form: ImportanceForm) -> f64 {
    let version = compare(Some((tree, noise)), after, &ImportanceConfig::new(form), &is_ad);
    version.assessment.importance.get()
}

/// 1 for the right order, a half for equal values.
fn right(high: f64, low: f64) -> f64 {
    if high > low {
        1.0
    } else if high == low {
        0.5
    } else {
        0.0
    }
}

fn right_within(pages: &[PageValues]) -> (f64, usize) {
    let (mut sum, mut n) = (0.0, 0);
    for page in pages {
        for high in page {
            for low in page.iter().filter(|low| low.rank < high.rank) {
                (sum, n) = (sum + right(high.value, low.value), n + 1);
            }
        }
    }
    (sum / f64::max(n as f64, 1.0), n)
}

fn replaced(html: &str, from: &str, to: &str) -> Option<String> {
    html.contains(from).then(|| html.replace(from, to))
}

/// Adds a banner and a date above the page and a footer below; `None` if the page has no long paragraph.
fn furnish(html: &str) -> Option<String> {
    let body = tag_end(html, "<body")?;
    let close = html.rfind("</body").unwrap_or(html.len());
    longest_paragraph(html)?;
    let head = "<div class=\"top\"><a href=\"http://ads.example.net/click/banner-17\"><img \
        src=\"http://ads.example.net/ads/banner-17.gif\" width=\"468\" height=\"60\" alt=\"banner-17\"></a></div>\
        <div class=\"stamp\">Last updated: 12 November 2026, 10:15</div>";
    let foot = "<hr><div class=\"footer\">Copyright 2025 The Editors. All rights reserved. <a \
        href=\"/imprint\">Imprint</a></div>";
    (body <= close).then(|| format!("{}{head}{}{foot}{}", &html[..body], &html[body..close], &html[close..]))
}

fn tag_end(html: &str, open: &str) -> Option<usize> {
    let start = html.find(open)?;
    Some(start + html[start..].find('>')? + 1)
}

/// Start and end of the contents of each `<p>`.
fn paragraphs(html: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = html[at..].find("<p").map(|offset| at + offset) {
        at = start + 2;
        if !html[at..].starts_with(['>', ' ', '\n']) {
            continue;
        }
        let Some(open) = html[at..].find('>').map(|offset| at + offset + 1) else { break };
        let Some(close) = html[open..].find("</p>").map(|offset| open + offset) else { break };
        found.push((open, close));
        at = close;
    }
    found
}

fn n_words(html: &str) -> usize {
    text(html).split_whitespace().count()
}

fn text(html: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' => inside = false,
            _ if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

fn longest_paragraph(html: &str) -> Option<(usize, usize)> {
    let longest = paragraphs(html).into_iter().max_by_key(|&(open, close)| n_words(&html[open..close]))?;
    (n_words(&html[longest.0..longest.1]) >= 15).then_some(longest)
}

/// Adds a headline with a link and two sentences before the longest paragraph.
fn add_news(html: &str) -> Option<String> {
    let (open, _) = longest_paragraph(html)?;
    let start = html[..open].rfind("<p")?;
    let item = "<h3><a href=\"/news/2026/harbour\">Harbour bridge reopens after long repairs</a></h3><p>Engineers finished \
        welding the last girder on Thursday evening. Commuters may cross again from early morning, while heavy lorries \
        must wait until inspectors have signed every certificate.</p>";
    Some(format!("{}{item}{}", &html[..start], &html[start..]))
}

/// Replaces seven of ten words in every paragraph of twenty words or more.
fn rewrite_article(html: &str) -> Option<String> {
    let (mut out, mut at, mut n_rewritten) = (String::new(), 0, 0);
    for (open, close) in paragraphs(html) {
        let words = text(&html[open..close]);
        if words.split_whitespace().count() < 20 || open < at {
            continue;
        }
        out.push_str(&html[at..open]);
        for (place, word) in words.split_whitespace().enumerate() {
            let kept = place % 10 < 3;
            let other = OTHER_WORDS[(place * 7 + word.len() * 3 + n_rewritten) % OTHER_WORDS.len()];
            out.push_str(if kept { word } else { other });
            out.push(' ');
        }
        at = close;
        n_rewritten += 1;
    }
    out.push_str(&html[at..]);
    (n_rewritten > 0).then_some(out)
}

const OTHER_WORDS: [&str; 24] = [
    "council",
    "refuses",
    "budget",
    "winter",
    "railway",
    "minister",
    "announced",
    "growing",
    "shortage",
    "teachers",
    "fishing",
    "quota",
    "northern",
    "villages",
    "protest",
    "against",
    "closing",
    "hospital",
    "despite",
    "promised",
    "funding",
    "until",
    "spring",
    "elections",
];

/// Adds an entry to the first list of three or more links.
fn add_menu_entry(html: &str) -> Option<String> {
    let mut at = 0;
    while let Some(start) = html[at..].find("<ul").map(|offset| at + offset) {
        let end = start + html[start..].find("</ul>")?;
        let list = &html[start..end];
        let n_entries = list.matches("<li").count();
        if n_entries >= 3 && list.matches("<a ").count() >= n_entries && n_words(list) < 6 * n_entries {
            return Some(format!("{}<li><a href=\"/jobs\">Jobs</a></li>{}", &html[..end], &html[end..]));
        }
        at = start + 3;
    }
    None
}

/// Moves the words of the article into the template of a different site.
fn exchange_template(html: &str) -> Option<String> {
    let article: Vec<String> = paragraphs(html)
        .into_iter()
        .map(|(open, close)| text(&html[open..close]))
        .filter(|words| words.split_whitespace().count() >= 8)
        .map(|words| format!("<p>{words}</p>"))
        .collect();
    let menu = "<li><a href=\"/start\">Start</a></li><li><a href=\"/themes\">Themes</a></li><li><a href=\"/people\">People</a></li>";
    (!article.is_empty()).then(|| {
        format!(
            "<!DOCTYPE html><html><head><style>body{{margin:0;font-family:serif}} .bar{{background:#024;color:#fff;padding:20px}} \
             .left{{float:left;width:260px;background:#eee;padding:20px}} .text{{margin-left:340px;padding:20px;font-size:18px}}\
             </style></head><body><div class=\"bar\"><h1>The New Look</h1></div><div class=\"left\"><ul>{menu}</ul></div>\
             <div class=\"text\">{}</div><div class=\"bar\">A new imprint, <a href=\"/contact\">contact us</a></div></body></html>",
            article.join("\n")
        )
    })
}
