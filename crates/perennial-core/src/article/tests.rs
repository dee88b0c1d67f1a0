//! Pages written for one case each -> the extracted articles; and properties of any page.

use proptest::prelude::*;

use super::version::{Edit, EditRun, EditedField, compare_words, edits, n_edited, same_version};
use super::*;

const FIRST: &str =
    "The council met on Monday evening and decided, after a long debate, to rebuild the old bridge.";
const SECOND: &str =
    "Work will begin in spring, the mayor said, and is expected to take about two years in all.";
const THIRD: &str =
    "Until then, buses will go around the square, which adds ten minutes to the way across town.";

fn paragraphs() -> String {
    [FIRST, SECOND, THIRD].map(|text| format!("<p>{text}</p>")).concat()
}

fn text() -> String {
    [FIRST, SECOND, THIRD].join("\n\n")
}

fn found(html: &str) -> Article {
    extract(&Dom::parse(html), &ArticleContext::default())
}

fn page(before: &str, after: &str) -> String {
    format!(
        "<html><head><title>Bridge to be rebuilt | Town News</title><meta property=og:site_name content='Town News'></head><body>
         <nav><ul><li><a href=/>Home</a><li><a href=/sport>Sport</a></ul></nav>
         <div class=story>{before}<div class=text>{}</div>{after}</div>
         <footer>All rights reserved, Town News, 12 Main Street, Town.</footer></body></html>",
        paragraphs()
    )
}

#[test]
fn the_text_of_a_plain_page() {
    let article = found(&page("<h1>Bridge to be rebuilt</h1>", ""));
    assert_eq!(article.text, text());
    assert_eq!(article.title, "Bridge to be rebuilt");
    assert!(article.wrapper.starts_with("body > div.story"), "{}", article.wrapper);
}

#[test]
fn a_page_without_text_gives_an_empty_article() {
    for html in [
        "",
        "<p>",
        "<title>T</title>",
        "<script>var a = 'long text, with marks. And more of it.'</script>",
        "\0<<<>>&&&",
    ] {
        assert_eq!(found(html).text, "", "{html}");
    }
}

#[test]
fn boxes_inside_the_text_are_cut_out() {
    let boxes = [
        "<div class=newsletter-box><p>Sign up for our newsletter, it comes every morning and is free of charge.</p></div>",
        "<aside><p>Ten bridges that were never built, and what became of the people who planned them.</p></aside>",
        "<div class='related-posts'><a href=/a>Another bridge</a></div>",
        "<p><a href=/b>The bridge of 1890 and its fall</a></p>",
        "<p>Advertisement</p>",
        "<p>Read more: <a href=/c>All about bridges</a></p>",
        "<div style='display: none'><p>Hidden words that nobody sees, but which are as long as a sentence.</p></div>",
    ];
    // A box may contain at most a fifth of the running text, so the text is longer than three paragraphs.
    for inner in boxes {
        let html = format!("<body><article>{}{inner}{}</article>", paragraphs(), paragraphs());
        assert_eq!(found(&html).text, format!("{}\n\n{}", text(), text()), "{inner}");
    }
}

#[test]
fn inline_elements_do_not_break_a_line_and_two_breaks_do() {
    let html = format!(
        "<body><div>{}<br><br>{SECOND}<br>{THIRD}</div>",
        FIRST.replace("Monday", "<b>Mon</b><i>day</i>")
    );
    assert_eq!(found(&html).text, format!("{FIRST}\n\n{SECOND}\n{THIRD}"));
}

#[test]
fn head_and_tail_are_cut() {
    let before = "<h1>Bridge to be rebuilt</h1><p>By Jane Doe</p><p>18 November 2019, 10:15</p>";
    let after = "<h3>Related stories</h3><ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul><p>Tags: bridge, town</p>";
    let article = found(&format!("<body><article>{before}{}{after}</article>", paragraphs()));
    assert_eq!(article.text, text());
    assert_eq!(
        (article.author.as_str(), article.time.unwrap().to_rfc3339().as_str()),
        ("Jane Doe", "2019-11-18T00:00:00Z")
    );
}

#[test]
fn the_lead_is_a_field_of_its_own() {
    let lead = "A decision after years of waiting: the town gets its bridge back.";
    let article = found(&page(&format!("<header><h1>Bridge to be rebuilt</h1><h2>{lead}</h2></header>"), ""));
    assert_eq!((article.lead.as_str(), article.text.as_str()), (lead, text().as_str()));
}

#[test]
fn comments_have_their_own_zone() {
    let said = "I have crossed that bridge every day of my life, and I will miss it.";
    let named = format!("<div id=comments><h3>1 comment</h3><div class=comment><p>{said}</p></div></div>");
    let unnamed = format!("<div><h3>1 comment</h3><div><b>Ann</b><p>{said}</p></div></div>");
    for zone in [named, unnamed] {
        let article = found(&page("<h1>Bridge to be rebuilt</h1>", &zone));
        assert_eq!(article.text, text(), "{zone}");
        assert!(article.comments.iter().any(|comment| comment == said), "{:?}", article.comments);
    }
}

#[test]
fn metadata_by_source() {
    let record = r#"<script type="application/ld+json">{"@graph":[{"@type":"WebSite","name":"x"},{"@type":["NewsArticle"],
        "headline":"From JSON","datePublished":"2019-11-18T08:22:00+01:00","author":[{"name":"Ann Lee"},{"name":"Bo Ray"}],
        "articleSection":"Town"}]}</script>"#;
    let meta = "<meta property=og:title content='From meta'><meta name=author content='Cy Fox'>
        <meta property=article:published_time content=2018-01-02><meta name=keywords content='bridge, town'>";
    let of = |head: &str| Metadata::from_dom(&Dom::parse(&format!("<head>{head}</head>")));
    let both = of(&format!("{meta}{record}"));
    assert_eq!((both.title.as_str(), both.author.as_str()), ("From JSON", "Ann Lee, Bo Ray"));
    assert_eq!(
        (both.time.unwrap().to_rfc3339().as_str(), both.categories.as_slice()),
        ("2019-11-18T07:22:00Z", &["Town".to_owned(), "bridge".to_owned()][..])
    );
    let plain = of(meta);
    assert_eq!((plain.title.as_str(), plain.author.as_str()), ("From meta", "Cy Fox"));
    assert_eq!(plain.categories, ["bridge", "town"]);
    let broken = of(&format!("<script type='application/ld+json'>{{\"@type\":</script>{meta}"));
    assert_eq!(broken.title, "From meta", "broken JSON is ignored");
    let deep = of(&format!("<script type='application/ld+json'>{}</script>{meta}", "[".repeat(100_000)));
    assert_eq!(deep.title, "From meta");
}

#[test]
fn links_and_images_of_the_text_alone() {
    let html = format!(
        "<body><nav><a href=/nav>Navigation</a></nav><article><p>{FIRST} See <a href='plan.html'>the plan</a>.</p>
         <figure><img src=bridge.jpg alt=a><figcaption>The bridge in 1890</figcaption></figure><img src=dot.gif width=1 height=1>
         <p>{SECOND}</p><p>{THIRD}</p></article><aside><a href=/aside>x</a><img src=aside.jpg></aside>"
    );
    let article = extract(
        &Dom::parse(&html),
        &ArticleContext { url: Some("http://a.example/news/1.html"), ..ArticleContext::default() },
    );
    let link = ArticleLink { text: "the plan".into(), url: "http://a.example/news/plan.html".into() };
    let image = ArticleImage {
        url: "http://a.example/news/bridge.jpg".into(),
        description: "The bridge in 1890".into(),
    };
    assert_eq!((article.links, article.images), (vec![link], vec![image]));
}

/// Three posts on a page, in one of several common forms.
fn posts(form: &str) -> (String, [(&'static str, &'static str); 3]) {
    let posts = [
        ("First post of the week", FIRST),
        ("Second post of the week", SECOND),
        ("Third post of the week", THIRD),
    ];
    let one = |(title, text): (&str, &str)| match form {
        "div" => format!("<div class=post><h2><a href=/p>{title}</a></h2><p>{text}</p></div>"),
        "article" => format!("<article><h2>{title}</h2><p>{text}</p></article>"),
        "row" => format!("<tr><td>1 May</td><td><h3><a href=/p>{title}</a></h3><p>{text}</p></td></tr>"),
        _ => format!("<h3><a href=/p>{title}</a></h3><p>{text}</p>"),
    };
    let body: String = posts.into_iter().map(one).collect();
    let body = if form == "row" { format!("<table>{body}</table>") } else { body };
    (format!("<title>A blog</title><body><div id=main>{body}</div>"), posts)
}

#[test]
fn several_posts_on_a_page_stay_apart() {
    for form in ["div", "article", "row", "flat"] {
        let (html, posts) = posts(form);
        for (title, text) in posts {
            let context = ArticleContext {
                title: Some(title),
                description: Some(&text[..60]),
                ..ArticleContext::default()
            };
            let article = extract(&Dom::parse(&html), &context);
            assert_eq!((article.title.as_str(), article.text.as_str()), (title, text), "{form}");
        }
    }
}

#[test]
fn text_repeated_on_most_neighbours_is_not_part_of_the_article() {
    let request = "Support your town's paper with a small gift, every month or whenever you can spare it.";
    let other = |n: usize| {
        format!(
            "<body><div><p>Page number {n} tells of other things, such as the weather in week {n}, at length.</p><p>{request}</p></div>"
        )
    };
    let html = format!("<body><div>{}<p>{request}</p></div>", paragraphs());
    let pages: Vec<Dom> = (0..4).map(|n| Dom::parse(&other(n))).collect();
    let template = Template::from_neighbours(&pages);
    assert_eq!(template.n_pages(), 4);
    let with = extract(
        &Dom::parse(&html),
        &ArticleContext { template: Some(&template), ..ArticleContext::default() },
    );
    assert_eq!(with.text, text());
    assert!(found(&html).text.contains(request), "without neighbours it is a paragraph like any other");
    assert!(!Template::from_neighbours(&pages[..1]).holds(request), "one page is not evidence");
}

#[test]
fn versions() {
    let of = |html: &str| found(html);
    let before = of(&page("<h1>Bridge to be rebuilt</h1>", ""));
    let around =
        of(&page("<h1>Bridge to be rebuilt</h1>", "<div class=related><a href=/new>Another page</a></div>")
            .replace("Sport", "Games"));
    assert!(same_version(&before, &around), "surroundings are not part of it");
    let said = of(&page(
        "<h1>Bridge to be rebuilt</h1>",
        "<div id=comments><p>What a fine idea, at long last, I say.</p></div>",
    ));
    assert!(same_version(&before, &said) && !said.comments.is_empty(), "a comment is not part of it");
    let headline = of(&page("<h1>Bridge not to be rebuilt</h1>", ""));
    assert!(!same_version(&before, &headline), "a word of the headline is");
    let linked = of(&page("<h1>Bridge to be rebuilt</h1>", "")
        .replace("the mayor", "<a href=http://b.example/>the mayor</a>"));
    assert!(!same_version(&before, &linked), "a reference is");
}

#[test]
fn edits_tell_the_headline_first() {
    let of =
        |title: &str, text: &str| Article { title: title.into(), text: text.into(), ..Article::default() };
    let found =
        edits(&of("Bridge to fall", "It is old and grey."), &of("Bridge to stand", "It is grey, now."));
    let headline = vec![
        EditRun::Kept("Bridge to".into()),
        EditRun::TakenOut("fall".into()),
        EditRun::Added("stand".into()),
    ];
    assert_eq!(found[0], Edit { field: EditedField::Title, runs: headline });
    assert_eq!(found[1].field, EditedField::Text);
    assert_eq!(n_edited(&found), (4, 3));
    assert_eq!(edits(&of("a", "b  c"), &of("a", "b\nc")), []);
}

/// The longest common subsequence, by dynamic programming.
fn n_common(a: &[&str], b: &[&str]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut corner = 0;
        for (at, y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if x == y { corner + 1 } else { above.max(row[at]) };
            corner = above;
        }
    }
    row[b.len()]
}

#[test]
fn texts_that_differ_altogether_are_compared_in_bounded_work() {
    let (a, b): (Vec<String>, Vec<String>) = (0..40_000).map(|n| (format!("a{n}"), format!("b{n}"))).unzip();
    assert_eq!(compare_words(&a.join(" "), &b.join(" ")).len(), 2);
}

#[test]
fn hostile_pages_end() {
    let deep = "<div>".repeat(100_000) + &paragraphs();
    let wide = format!("<p>{FIRST}</p>").repeat(20_000);
    let links = "<a href=/x>y</a> ".repeat(50_000);
    let headings = "<h2>Same title</h2><p>x".repeat(20_000);
    for html in [deep, wide, links, headings] {
        let context = ArticleContext {
            title: Some("Same title"),
            description: Some(FIRST),
            ..ArticleContext::default()
        };
        let article = extract(&Dom::parse(&html), &context);
        assert!(article.text.len() <= html.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_page_gives_an_article(picks in proptest::collection::vec(0..24usize, 0..120), has_context in any::<bool>()) {
        const PARTS: [&str; 24] = [
            "<div class=post>", "</div>", "<p>", "</p>", "<h2>Same title</h2>", "<h1>", "<br><br>", "<a href=/x>", "</a>", "<article>", "<ul><li>",
            "</ul>", "<table><tr><td>", "Words of a sentence, which is long enough to be one. ", "3 comments", "18 November 2019 ", "by Jane Doe ",
            "<div class=comments>", "日本語の文章。", "é&amp;\u{a0}", "<img src=a.png>", "<pre> x\n y", "<script>", "<aside>",
        ];
        let html: String = picks.iter().map(|&pick| PARTS[pick]).collect();
        let dom = Dom::parse(&html);
        let title = has_context.then_some("Same title");
        let context = ArticleContext { title, url: Some("http://a.example/"), ..ArticleContext::default() };
        let article = extract(&dom, &context);
        // The text occurs on the page in the same order.
        let all = dom.text_content(0);
        let mut rest = all.chars();
        prop_assert!(article.text.chars().filter(|c| !c.is_whitespace()).all(|c| rest.any(|other| other == c)), "{html}");
        prop_assert!(same_version(&article, &article));
        prop_assert_eq!(extract(&dom, &context), article);
    }

    #[test]
    fn as_few_words_as_possible_differ(a in "[abc ]{0,40}", b in "[abc ]{0,40}") {
        let runs = compare_words(&a, &b);
        let side = |wants_old: bool| -> Vec<String> {
            let words = runs.iter().filter_map(|run| match run {
                EditRun::Kept(words) => Some(words),
                EditRun::TakenOut(words) => wants_old.then_some(words),
                EditRun::Added(words) => (!wants_old).then_some(words),
            });
            words.flat_map(|words| words.split(' ').map(str::to_owned)).collect()
        };
        let (old, new): (Vec<&str>, Vec<&str>) = (a.split_whitespace().collect(), b.split_whitespace().collect());
        prop_assert_eq!(side(true), old.clone());
        prop_assert_eq!(side(false), new.clone());
        let n_kept: usize = runs.iter().map(|run| if let EditRun::Kept(words) = run { words.split(' ').count() } else { 0 }).sum();
        prop_assert_eq!(n_kept, n_common(&old, &new));
    }
}

/// Cards that each link to another page of the site, with more text than the article.
fn cards(n: usize) -> String {
    let card = |at: usize| {
        format!(
            "<div class=card><h3><a href=/story/{at}>Headline of the story number {at}</a></h3>\
             <p>The story number {at} tells, in a line or two, what happened elsewhere in the country.</p></div>"
        )
    };
    (0..n).map(card).collect()
}

#[test]
fn cards_beside_an_article_are_no_part_of_it() {
    let more = [FIRST, SECOND, THIRD].map(|text| format!("<p>{text} {THIRD} {FIRST}</p>")).concat();
    let html = format!(
        "<title>Bridge</title><div class=x><div><h1>Bridge</h1>{more}</div><div>{}</div></div>",
        cards(20)
    );
    let article = found(&html);
    assert!(article.text.starts_with(FIRST) && article.text.ends_with(FIRST), "{}", article.text);
    assert!(!article.text.contains("tells, in a line"), "{}", article.text);
    // Without other content they are the subject of the page.
    let list = found(&format!("<title>News</title><div>{}</div>", cards(20)));
    assert_eq!(list.text.matches("tells, in a line").count(), 20, "{}", list.text);
}

#[test]
fn a_column_with_more_text_than_the_article_is_a_column() {
    let entry = |n: usize| {
        format!(
            "<li><p>At {n} o'clock somebody said something of note, and nobody answered it at all.</p></li>"
        )
    };
    let column: String = (0..40).map(entry).collect();
    let html = format!(
        "<title>Bridge</title><body><article><h1>Bridge</h1>{0}{0}</article><aside><ul>{column}</ul></aside>",
        paragraphs()
    );
    assert_eq!(found(&html).text, [text(), text()].join("\n\n"));
}

#[test]
fn answers_are_known_by_the_offer_to_answer_them() {
    let answer = |said: &str| format!("<div class=row><b>Ann</b><p>{said}</p><button>Reply</button></div>");
    let said = [
        "I do not believe a word of it, sorry to say.",
        "Neither do I, but nobody asked us about it, did they?",
    ];
    let html = page("<h1>Bridge to be rebuilt</h1>", &said.map(answer).concat());
    let article = found(&html);
    assert_eq!(article.text, text());
    assert_eq!(article.comments.iter().filter(|comment| said.contains(&comment.as_str())).count(), 2);
    // In a forum the others reply to the first post.
    let forum =
        format!("<title>Bridge</title><div id=t>{}</div>", [FIRST, said[0], said[1]].map(answer).concat());
    let article = found(&forum);
    assert!(article.text.contains(FIRST) && !article.text.contains("believe"), "{}", article.text);
}

#[test]
fn a_part_of_an_article_may_be_named_response() {
    let html = page("<h1>Bridge to be rebuilt</h1>", &format!("<h2>Response</h2><p>{FIRST}</p>"));
    assert!(found(&html).text.ends_with(FIRST));
}

#[test]
fn a_list_below_a_line_that_leads_on_goes_with_it() {
    let list = "<div>More great stories</div><ul><li>Why it rains so much, <a href=/a>and what can be done about it</a></li>\
        <li>The harbour: <a href=/b>who built it, and for whom</a></li></ul>";
    assert_eq!(found(&page("<h1>Bridge to be rebuilt</h1>", list)).text, text());
}

#[test]
fn a_status_without_running_text_is_an_article() {
    let article = found(
        "<title>A day</title><nav><a href=/>Home</a></nav><article><h1>A day</h1><p>No wind</p></article>",
    );
    assert_eq!(article.text, "No wind");
}
