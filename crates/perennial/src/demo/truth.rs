//! The living web -> the importance of each change and the weight of each page. Both are used to measure an archive of
//! it.
//!
//! The importance of a change is the analysis' result for the versions before and after it. Both versions have the
//! same advertisement, counter and stamp. A crawler that visits after every change finds the same values, except for
//! changes that it classifies as noise. The weight of a page is omega(P), as in the crawl: PageRank over the web's
//! links times the user's weight.

use std::collections::HashMap;

use perennial_core::page::diff::diff;
use perennial_core::page::importance::{Importance, ImportanceConfig, importance};
use perennial_core::schedule::rank::{LinkGraph, page_weight};
use perennial_core::text::charset::Charset;
use perennial_core::text::links::find_links;
use perennial_render::CapturedResource;
use rayon::prelude::*;
use url::Url;

use super::template::{self, ServedPage};
use super::web::LivingWeb;
use perennial_engine::analyse::{Analyst, PageText};

/// The true importances and weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Importance of every change of every page.
    pub importance: Vec<Vec<Importance>>,
    /// omega(P) of every page.
    pub weights: Vec<f64>,
}

impl Truth {
    /// Analyses every version of every page.
    pub fn of(web: &LivingWeb, analyst: &Analyst) -> Truth {
        let importance = (0..web.pages.len()).into_par_iter().map(|page| page_changes(web, page, analyst));
        Truth { importance: importance.collect(), weights: page_weights(web) }
    }
}

/// The page as served, with the noise of one request in all versions.
fn served_html(web: &LivingWeb, page: usize, version: usize) -> String {
    template::html(&ServedPage { web, page, version, request: 0, now: web.start })
}

fn page_url(web: &LivingWeb, page: usize) -> String {
    let page = &web.pages[page];
    format!("http://{}.localhost{}", web.sites[page.site].name, page.path)
}

fn page_changes(web: &LivingWeb, page: usize, analyst: &Analyst) -> Vec<Importance> {
    let (url, config) = (page_url(web, page), ImportanceConfig::default());
    let subresources = |wanted: &str| {
        let body = template::STYLE.as_bytes().to_vec();
        let style = CapturedResource {
            status: 200,
            content_type: "text/css".into(),
            body,
            ..CapturedResource::default()
        };
        wanted.ends_with("/style.css").then_some(style)
    };
    let tree = |version: usize| {
        let html = served_html(web, page, version);
        analyst.tree(&PageText { url: &url, version: "", html: &html, subresources: &subresources })
    };
    let n_changes = web.pages[page].changes.len();
    if n_changes == 0 {
        return Vec::new();
    }
    let mut before = tree(0);
    let weigh = |version: usize| {
        let after = tree(version);
        let delta = diff(&before, &after);
        before = after;
        importance(&delta, &config)
    };
    (1..=n_changes).map(weigh).collect()
}

fn page_weights(web: &LivingWeb) -> Vec<f64> {
    let numbers: HashMap<String, u32> =
        (0..web.pages.len()).map(|page| (page_url(web, page), page as u32)).collect();
    let mut links = Vec::new();
    for (url, &page) in &numbers {
        let Ok(base) = Url::parse(url) else { continue };
        let found = find_links(&served_html(web, page as usize, 0), &base, Charset::default());
        let targets =
            found.iter().filter(|link| link.kind.is_page()).filter_map(|link| numbers.get(link.url.as_str()));
        links.extend(targets.map(|&target| (page, target)));
    }
    let ranks = LinkGraph::from_links(web.pages.len(), links).page_rank(&[]);
    let user = |page: usize| web.sites[web.pages[page].site].weight as f32;
    ranks.iter().enumerate().map(|(page, &rank)| f64::from(page_weight(rank, user(page)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::time::Timestamp;

    #[test]
    fn home_pages_weigh_more_than_pages_linked_from_them() {
        let web = LivingWeb::new(1, Timestamp::parse("2026-03-02").unwrap(), 1);
        let weights = page_weights(&web);
        for (page, weight) in weights.iter().enumerate() {
            let site = web.pages[page].site;
            let home = web.pages.iter().position(|page| page.site == site && page.path == "/").unwrap();
            assert!(*weight > 0.0 && *weight <= weights[home], "{}", page_url(&web, page));
        }
    }
}
