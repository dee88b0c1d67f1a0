//! P-FEED: what can be tested without the paper's feeds and pages. Algorithm 1 and ours run on made pages, with the feed
//! item that both need.

use perennial_core::article::{ArticleContext, extract};
use perennial_core::rng::Rng;
use perennial_core::text::dom::Dom;

use super::{Finding, Paper, Reproduction, Verdict};
use crate::feeds::extraction::{ExtractionVariant, extract_text};

const N_PAGES: u64 = 40;

pub(super) fn reproduce(all: &mut Reproduction) {
    let [one, three] = [1, 3].map(|n_posts| {
        let posts: Vec<MadePosts> = (0..N_PAGES).map(|seed| MadePosts::new(n_posts, seed)).collect();
        let share = |extracted: &dyn Fn(&MadePosts) -> String| {
            let right = |posts: &&MadePosts| words(&extracted(posts)).ends_with(&words(&posts.text));
            posts.iter().filter(right).count() as f64 / posts.len() as f64
        };
        (share(&by_algorithm_1), share(&as_shipped))
    });
    let describe = |(one, three): (f64, f64)| {
        format!("made pages, text found exactly: {one:.2} with one post per page, {three:.2} with three")
    };
    all.findings.push(Finding {
        in_condition: describe((one.0, three.0)),
        as_shipped: describe((one.1, three.1)),
        verdict: Verdict::NotTestable,
        ..Finding::untestable(
            (Paper::Feed, "Table 3"),
            ("grams, then concepts, find the text of an item on its page", ".79 exact, Boilerpipe .62"),
            "the 60 sites are not public; experiments/extraction has three conditions on real and made pages",
        )
    });
    for (item, claim, published) in [
        ("Fig. 1", "most feeds hold few items", "75 % below 30, mode 10"),
        (
            "Fig. 2",
            "most feeds publish at least daily",
            "20 % have a median interval below an hour, 60 % of a day or less",
        ),
        ("Table 2", "feeds of some domains publish more often", "table missing in our copy"),
    ] {
        all.findings.push(Finding::untestable(
            (Paper::Feed, item),
            (claim, published),
            "the 340 feeds are not public; `perennial lab feeds FOLDER` makes it from own feeds",
        ));
    }
}

fn by_algorithm_1(posts: &MadePosts) -> String {
    let dom = Dom::parse(&posts.html);
    extract_text(&dom, Some(&posts.title), Some(&posts.description), ExtractionVariant::GramsThenConcepts)
}

fn as_shipped(posts: &MadePosts) -> String {
    let dom = Dom::parse(&posts.html);
    let (title, description) = (Some(posts.title.as_str()), Some(posts.description.as_str()));
    extract(&dom, &ArticleContext { title, description, ..ArticleContext::default() }).text
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A page with posts, of which a feed announced one.
struct MadePosts {
    html: String,
    title: String,
    description: String,
    /// The announced post.
    text: String,
}

impl MadePosts {
    fn new(n_posts: usize, seed: u64) -> MadePosts {
        let mut rng = Rng::from_parts(&[seed, n_posts as u64, 0x706f_7374]);
        let mut made = MadePosts {
            html: String::new(),
            title: String::new(),
            description: String::new(),
            text: String::new(),
        };
        let announced = rng.below(n_posts);
        let mut body = String::new();
        for post in 0..n_posts {
            let title = sentence(&mut rng, 6);
            let n_paragraphs = 3 + rng.below(3);
            let paragraphs: Vec<String> = (0..n_paragraphs)
                .map(|_| [sentence(&mut rng, 14), sentence(&mut rng, 11)].join(". ") + ".")
                .collect();
            let content: String = paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect();
            body += &match seed % 3 {
                0 => format!(
                    "<div class=post><h2><a href=/p{post}>{title}</a></h2><div class=entry>{content}</div></div>"
                ),
                1 => format!("<article><header><h2>{title}</h2></header>{content}</article>"),
                _ => format!("<section class=item><h2>{title}</h2><div>{content}</div></section>"),
            };
            if post == announced {
                made.description = paragraphs.iter().flat_map(|text| text.chars()).take(120).collect();
                (made.title, made.text) = (title, paragraphs.join(" "));
            }
        }
        made.html = format!(
            "<title>The log</title><nav><a href=/>Home</a> <a href=/about>About</a></nav><div id=content>{body}</div>\
             <div class=sidebar><h3>Archive</h3><ul><li><a href=/1>May</a><li><a href=/2>June</a></ul></div>"
        );
        made
    }
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

    #[test]
    fn made_pages_have_the_announced_post() {
        let posts = MadePosts::new(3, 4);
        assert!(posts.html.contains(&posts.title) && posts.text.len() > 200);
        assert!(posts.text.starts_with(&posts.description[..50]));
        let mut all = Reproduction::default();
        reproduce(&mut all);
        assert!(all.findings.iter().all(|finding| finding.verdict == Verdict::NotTestable));
        assert!(all.findings[0].as_shipped.contains("with three"));
    }
}
