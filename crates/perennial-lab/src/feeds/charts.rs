//! Draws the paper's figures: items per feed as bars, update intervals as cumulative curves (P-FEED, Figures 1 and 2).

use std::fmt::Write as _;

use perennial_core::text::markup::escaped;

use crate::chart::{Chart, REPORT_STYLE, Series, Stroke};
use perennial_engine::html::chart::{Bars, bars_to_svg};

/// A curve of Figure 2: its label, and the share of feeds with at most so many seconds.
pub type IntervalCurve = (&'static str, Vec<(f64, f64)>);

/// Both figures as one SVG file.
pub fn feed_figures(histogram: &[usize], curves: &[IntervalCurve]) -> String {
    let bars = bars_to_svg(&[items_per_feed(histogram)]);
    let chart = intervals(curves).to_svg();
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"600\" font-family=\"sans-serif\" font-size=\"12\">\n",
    );
    let _ = write!(svg, "<style>{}</style>", escaped(REPORT_STYLE));
    // Nested drawings keep their own coordinates.
    let _ = write!(svg, "<svg y=\"0\" width=\"760\" height=\"170\">{bars}</svg>");
    let _ = write!(
        svg,
        "<svg y=\"180\" width=\"760\" height=\"400\">{}</svg>\n</svg>\n",
        quote_attributes(&chart)
    );
    svg
}

/// Quotes attributes. The chart is written for HTML, where they need no quotes, but XML requires them.
fn quote_attributes(html: &str) -> String {
    let mut out = String::with_capacity(html.len() + 64);
    let (mut in_tag, mut in_quotes, mut open) = (false, false, false);
    for letter in html.chars() {
        if open && (letter == ' ' || letter == '>' || letter == '/') {
            out.push('"');
            open = false;
        }
        match letter {
            '<' if !in_quotes => in_tag = true,
            '>' if !in_quotes => in_tag = false,
            '"' if in_tag => in_quotes = !in_quotes,
            _ => {}
        }
        let before_is_equals = out.ends_with('=');
        if in_tag && !in_quotes && before_is_equals && letter != '"' {
            out.push('"');
            open = true;
        }
        out.push(letter);
    }
    out
}

fn items_per_feed(histogram: &[usize]) -> Bars {
    let top = histogram.iter().copied().max().unwrap_or(0);
    let step = (histogram.len() / 10).max(1);
    Bars {
        title: format!("Items per feed, in tens; the highest bar is {top} feeds"),
        values: histogram.iter().map(|&n| n as f64).collect(),
        top: top as f64,
        ticks: (0..histogram.len()).step_by(step).map(|bin| (bin, format!("{}", bin * 10))).collect(),
        below: "items".to_owned(),
    }
}

fn intervals(curves: &[IntervalCurve]) -> Chart {
    const COLOURS: [&str; 5] = ["#888", "#36c", "#293", "#c63", "#a2a"];
    let ticks = [
        (60.0, "1 min"),
        (3_600.0, "1 h"),
        (86_400.0, "1 day"),
        (604_800.0, "1 week"),
        (2_592_000.0, "30 days"),
    ];
    let series = curves.iter().zip(COLOURS).map(|((label, points), colour)| Series {
        label: (*label).to_owned(),
        colour,
        stroke: if *label == "median" { Stroke::Bold } else { Stroke::Thin },
        // The axis is logarithmic, so values below a second are drawn at a second.
        points: points.iter().map(|&(secs, share)| (secs.max(1.0), share)).collect(),
    });
    Chart {
        x_label: "update interval".to_owned(),
        y_label: "share of feeds".to_owned(),
        x_ticks: ticks.map(|(at, label)| (at, label.to_owned())).to_vec(),
        x_is_log: true,
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::text::xml::{Scanner, XmlPiece};

    #[test]
    fn the_figures_are_xml_with_a_line_for_each_curve() {
        let curve = vec![(0.0, 0.5), (3_600.0, 1.0)];
        let svg = feed_figures(&[3, 5, 0, 1], &[("min", curve.clone()), ("median", curve)]);
        let mut scanner = Scanner::new(&svg);
        let mut n_tags = 0;
        for piece in scanner.by_ref() {
            let XmlPiece::Start(tag) = piece else { continue };
            n_tags += 1;
            for attribute in tag.raw_attributes() {
                let is_quoted = svg.contains(&format!("{}=\"{}\"", attribute.name, attribute.value));
                assert!(is_quoted, "{attribute:?} in {svg}");
            }
        }
        assert!(!scanner.is_broken() && n_tags > 10, "{svg}");
        assert!(svg.contains(">median<") && svg.contains(">1 day<"), "{svg}");
        assert_eq!(svg.matches("NaN").count(), 0);
        assert!(feed_figures(&[], &[]).contains("</svg>"), "no feed at all");
    }
}
