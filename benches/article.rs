//! A page of 65 KB with an article, navigation and comments -> the time to parse it, and then to extract its article.
//!
//! cargo bench -p perennial-core --bench article

use divan::{Bencher, black_box};
use perennial_core::article::{ArticleContext, Template, extract};
use perennial_core::text::dom::Dom;

fn main() {
    divan::main();
}

/// A typical news page of today: a quarter of it is the article.
fn page(number: usize) -> String {
    let link = |n: usize| {
        format!("<li class='menu-item menu-{n}'><a href='/section/{n}?ref=nav'>Section number {n}</a></li>")
    };
    let teaser = |n: usize| {
        format!(
            "<div class='teaser card-{n}'><a href='/story/{n}'><img src='/img/{n}.jpg' alt='Picture {n}'><h3>Headline of story {n}</h3></a>\
             <p>What happened in story {n}, told in one sentence that is long enough to be read.</p></div>"
        )
    };
    let paragraph = |n: usize| {
        format!(
            "<p>Paragraph {n} of page {number} tells at some length what was decided, by whom and why, with <a href='/x/{n}'>a link</a> \
             to an earlier report, <b>some words</b> in bold, and a sentence at the end that says what comes next.</p>"
        )
    };
    let comment = |n: usize| {
        format!(
            "<div class=comment><b>Reader {n}</b><p>I agree with what was said in paragraph {n}, mostly.</p></div>"
        )
    };
    let list = |n_parts: usize, part: &dyn Fn(usize) -> String| (0..n_parts).map(part).collect::<String>();
    format!(
        "<html><head><title>Decision of page {number} | Bench News</title><meta property=og:title content='Decision of page {number}'></head>\
         <body><header><nav><ul>{}</ul></nav></header><main><article><h1>Decision of page {number}</h1>{}</article>\
         <section class=related>{}</section><div id=comments>{}</div></main><footer><ul>{}</ul></footer></body></html>",
        list(150, &link),
        list(60, &paragraph),
        list(120, &teaser),
        list(80, &comment),
        list(60, &link)
    )
}

#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    let html = page(0);
    bencher.counter(divan::counter::BytesCount::new(html.len())).bench(|| Dom::parse(black_box(&html)));
}

#[divan::bench]
fn extract_after_parsing(bencher: Bencher<'_, '_>) {
    let dom = Dom::parse(&page(0));
    let context = ArticleContext { url: Some("http://bench.example/0"), ..ArticleContext::default() };
    bencher.bench_local(|| extract(black_box(&dom), &context));
}

#[divan::bench]
fn extract_with_ten_neighbours_known(bencher: Bencher<'_, '_>) {
    let pages: Vec<Dom> = (0..11).map(|number| Dom::parse(&page(number))).collect();
    let template = Template::from_neighbours(&pages[1..]);
    let context = ArticleContext { template: Some(&template), ..ArticleContext::default() };
    bencher.bench_local(|| extract(black_box(&pages[0]), &context));
}
