//! The crawls of one world -> a self-contained page with charts of caught changes and learned rates.

use std::fmt::Write;

use perennial_core::text::markup::escaped;
use perennial_core::time::{Span, Timestamp};
use perennial_lab::drive::SimulatedCrawl;
use perennial_lab::quality::{Window, completeness, page_completeness};

use super::measure::is_caught;
use super::run::{Caught, Crawls, DemoResult};
use super::web::{LivingChange, LivingPage};
use perennial_engine::html::chart::{Dot, time_line};
use perennial_engine::html::page;
use perennial_lab::chart::{Chart, REPORT_STYLE, Series, Stroke};

/// Number of pages on the time line. They are the busiest.
const N_LANES: usize = 14;
/// Number of pages whose pattern is charted. They are the busiest of every site.
const N_PATTERNS: usize = 8;

/// Returns the complete page.
pub fn html(result: &DemoResult, crawls: &Crawls) -> String {
    let mut out = format!("<main><h1>{} virtual days of a living web, archived</h1>", result.days);
    summary(&mut out, result, crawls);
    completeness_chart(&mut out, crawls);
    time_lines(&mut out, crawls);
    patterns(&mut out, crawls);
    out.push_str("</main>");
    page("Perennial: the demonstration", REPORT_STYLE, &out)
}

fn summary(out: &mut String, result: &DemoResult, crawls: &Crawls) {
    let _ = write!(
        out,
        "<p>{} pages on {} sites changed {} times. With {} fetches the archive caught <span class=\"big\">{:.0} %</span> of \
         the importance of all changes; a fixed interval with as many fetches catches {:.0} %. Of {} important changes \
         {} were caught.</p><table><tr><th></th><th>fetches</th><th>pooled</th><th>Definition 5.13</th><th>versions</th>\
         <th>coherence</th><th>fetches spent on noise</th></tr>",
        crawls.web.pages.len(),
        crawls.web.sites.len(),
        crawls.world.n_changes(),
        result.caught.fetches,
        100.0 * result.caught.completeness_pooled,
        100.0 * result.fixed_interval.completeness_pooled,
        result.important_total,
        result.important_caught,
    );
    row(out, &format!("{}, this archive", result.strategy), &result.caught);
    let without = if result.feeds.is_some() { " without feeds" } else { "" };
    row(out, &format!("{}{without}, simulated", result.strategy), &result.simulated);
    row(out, "importance-pattern, simulated", &result.importance_pattern);
    row(out, "fixed interval, simulated", &result.fixed_interval);
    out.push_str(
        "</table><p class=\"dim\">Measured from the WARC files against the log of the living web. A change is worth what the \
         analysis finds between the two versions around it, a page its PageRank times the weight of its site.</p>\
         <table><tr><th>site</th><th>fetches</th><th>caught</th><th>simulated: fetches</th><th>caught</th></tr>",
    );
    for site in &result.sites {
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=n>{}</td><td class=n>{:.1} %</td><td class=n>{}</td><td class=n>{:.1} %</td></tr>",
            escaped(site.site),
            site.fetches,
            100.0 * site.completeness_pooled,
            site.fetches_simulated,
            100.0 * site.completeness_simulated
        );
    }
    out.push_str("</table>");
}

fn row(out: &mut String, name: &str, caught: &Caught) {
    let _ = write!(out, "<tr><td>{}</td><td class=n>{}</td>", escaped(name), caught.fetches);
    for share in [
        caught.completeness_pooled,
        caught.completeness_weighted,
        caught.completeness_count,
        caught.coherence_weighted,
        caught.noise_share,
    ] {
        let _ = write!(out, "<td class=n>{:.1} %</td>", 100.0 * share);
    }
    out.push_str("</tr>");
}

fn completeness_chart(out: &mut String, crawls: &Crawls) {
    let days = ((crawls.web.end - crawls.web.start).as_hours_f64() / 24.0).round() as i64;
    let line = |crawl: &SimulatedCrawl| -> Vec<(f64, f64)> {
        (0..days).map(|day| (day as f64 + 1.0, pooled_on(crawls, crawl, day))).collect()
    };
    let chart = Chart {
        x_label: "day".into(),
        y_label: "importance caught that day".into(),
        x_ticks: (1..=days).map(|day| (day as f64, day.to_string())).collect(),
        series: vec![
            series("Perennial", "#00a866", Stroke::Bold, line(&crawls.real)),
            series("fixed interval", "#8899aa", Stroke::Thin, line(&crawls.fixed)),
        ],
        x_is_log: false,
    };
    let _ = write!(out, "<h2>Completeness over time</h2>{}", chart.to_svg());
}

fn series(label: &str, colour: &'static str, stroke: Stroke, points: Vec<(f64, f64)>) -> Series {
    Series { label: label.into(), colour, stroke, points }
}

fn pooled_on(crawls: &Crawls, crawl: &SimulatedCrawl, day: i64) -> f64 {
    let from = crawls.web.start + Span::from_hours(24 * day);
    let window = Window { from, until: from + Span::from_hours(24) };
    let pages = crawls.world.pages.iter().zip(&crawl.captures).map(|(page, captures)| {
        let record = perennial_lab::quality::PageRecord {
            site: page.site,
            weight: page.weight,
            changes: &page.changes,
            captures,
        };
        (page.site, page.weight, page_completeness(&record, window))
    });
    completeness(pages).pooled
}

fn time_lines(out: &mut String, crawls: &Crawls) {
    out.push_str(
        "<h2>Captures and misses</h2><p class=\"dim\">One line a page. Dots: changes, large when important; green: caught, \
         red: missed. Ticks below: captures.</p>",
    );
    for (index, page) in busiest(crawls) {
        let name = format!("{}{}", crawls.web.sites[page.site].name, page.path);
        let _ = write!(
            out,
            "<div class=\"lane\"><span>{}</span>{}</div>",
            escaped(&name),
            lane(crawls, index, page)
        );
    }
}

/// Sorts the busiest page of every site first, then the second busiest, and so on.
fn busiest(crawls: &Crawls) -> Vec<(usize, &LivingPage)> {
    let mut pages: Vec<(usize, &LivingPage)> = crawls.web.pages.iter().enumerate().collect();
    pages.sort_by_key(|(_, page)| std::cmp::Reverse(page.changes.len()));
    let mut rank_in_site = vec![0usize; crawls.web.sites.len()];
    let mut ranked: Vec<(usize, (usize, &LivingPage))> = pages
        .into_iter()
        .map(|(index, page)| {
            rank_in_site[page.site] += 1;
            (rank_in_site[page.site], (index, page))
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, page)| page).take(N_LANES).collect()
}

fn lane(crawls: &Crawls, index: usize, page: &LivingPage) -> String {
    let whole = (crawls.web.end - crawls.web.start).as_hours_f64();
    let share = |at: Timestamp| (at - crawls.web.start).as_hours_f64() / whole;
    let captures = &crawls.real.captures[index];
    let dot = |(number, change): (usize, &LivingChange)| Dot {
        at: share(change.at),
        size: crawls.truth.importance[index][number].get(),
        colour: if is_caught(page, captures, number) { "#00a866" } else { "#d33" },
    };
    time_line(captures.iter().map(|at| share(*at)), page.changes.iter().enumerate().map(dot))
}

fn patterns(out: &mut String, crawls: &Crawls) {
    out.push_str(
        "<h2>When pages change, and what was learned of it</h2><p class=\"dim\">Share of a workday's changes by hour of \
         the site's own clock. Grey: the pattern by which the page lives. Green: what the archive believes after its \
         visits, which is what it schedules by.</p><div class=\"pair\">",
    );
    for (index, page) in busiest(crawls).into_iter().take(N_PATTERNS) {
        let chart = Chart {
            x_label: "hour of the workday".into(),
            y_label: "share of the day".into(),
            x_ticks: (0..24).step_by(3).map(|hour| (f64::from(hour), hour.to_string())).collect(),
            series: vec![
                series("true", "#8899aa", Stroke::Thin, shares(&page.rates[0])),
                series("learned", "#00a866", Stroke::Bold, shares(&crawls.learned[index])),
            ],
            x_is_log: false,
        };
        let name = format!("{}{}", crawls.web.sites[page.site].name, page.path);
        let visits = crawls.real.captures[index].len();
        let _ = write!(out, "<div><h3>{}, {visits} visits</h3>{}</div>", escaped(&name), chart.to_svg());
    }
    out.push_str("</div>");
}

fn shares(rates: &[f64]) -> Vec<(f64, f64)> {
    let all: f64 = rates.iter().sum::<f64>().max(1e-9);
    rates.iter().enumerate().map(|(hour, rate)| (hour as f64, rate / all)).collect()
}
