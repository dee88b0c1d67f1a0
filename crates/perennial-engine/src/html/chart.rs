//! Bars and time lines, as SVG or as text in a terminal.

use std::fmt::Write as _;

use perennial_core::text::markup::escaped;

/// A bar chart in text, one character per value. Full height is `top`; a dot is an unknown value.
pub fn sparkline(values: impl IntoIterator<Item = Option<f64>>, top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: f64| BARS[((value / top.max(1e-9) * 7.0).round() as usize).min(7)];
    values.into_iter().map(|value| value.map_or('·', bar)).collect()
}

/// A bar chart with a title.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub title: String,
    pub values: Vec<f64>,
    /// The value of a bar of full height.
    pub top: f64,
    /// Labels below some bars: the index of the bar, and the text.
    pub ticks: Vec<(usize, String)>,
    /// The meaning of the labels, such as "hour of the day".
    pub below: String,
}

/// Labels for a [`sparkline`], each below its bar. A label that would touch the previous one is left out.
pub fn text_axis(ticks: &[(usize, String)]) -> String {
    let mut line = String::new();
    for (place, label) in ticks {
        let n_written = line.chars().count();
        if n_written == 0 || n_written < *place {
            line.extend(std::iter::repeat_n(' ', place.saturating_sub(n_written)));
            line.push_str(label);
        }
    }
    line
}

const PANEL_HEIGHT: f64 = 110.0;

/// Several bar charts below each other, as an SVG file.
pub fn bars_to_svg(panels: &[Bars]) -> String {
    let height = 40.0 + PANEL_HEIGHT * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n"
    );
    for (nth, panel) in panels.iter().enumerate() {
        draw_bars(panel, 30.0 + PANEL_HEIGHT * nth as f64, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_bars(bars: &Bars, y: f64, svg: &mut String) {
    let width = 720.0 / bars.values.len().max(1) as f64;
    let _ = writeln!(svg, "<text x=\"20\" y=\"{y}\">{}</text>", escaped(&bars.title));
    for (place, value) in bars.values.iter().enumerate() {
        let height = 70.0 * value / bars.top.max(1e-9);
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#2a6f97\"><title>{place}: \
             {value:.3}</title></rect>",
            20.0 + width * place as f64,
            y + 80.0 - height,
            (width - 1.0).max(0.5),
        );
    }
    let below = y + 94.0;
    for (place, label) in &bars.ticks {
        let x = 20.0 + width * *place as f64;
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{below}\" fill=\"#666\">{}</text>", escaped(label));
    }
    let _ = writeln!(
        svg,
        "<text x=\"740\" y=\"{y}\" fill=\"#666\" text-anchor=\"end\">{}, up to {:.2}</text>",
        escaped(&bars.below),
        bars.top
    );
}

/// One event on a time line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Position, as a share of the time line.
    pub at: f64,
    /// Size, 0 to 1.
    pub size: f64,
    /// Any CSS colour.
    pub colour: &'static str,
}

/// A time line with dots for events and ticks for visits. Times are shares of the whole.
pub fn time_line(ticks: impl IntoIterator<Item = f64>, dots: impl IntoIterator<Item = Dot>) -> String {
    const LENGTH: f64 = 1000.0;
    let mut svg = format!("<svg viewBox=\"0 0 {LENGTH} 30\"><path stroke=\"#99a\" stroke-width=\"0.6\" d=\"");
    for at in ticks {
        let _ = write!(svg, "M{:.1} 22v7", LENGTH * at);
    }
    svg.push_str("\"/>");
    for Dot { at, size, colour } in dots {
        let _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"12\" r=\"{:.1}\" fill=\"{colour}\" fill-opacity=\".7\"/>",
            LENGTH * at,
            1.5 + 7.0 * size
        );
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_share() {
        assert_eq!(sparkline([Some(0.0), None, Some(0.5), Some(1.0), Some(9.0)], 1.0), "▁·▅██");
        assert_eq!(sparkline([Some(0.0)], 0.0), "▁");
        let hours: Vec<(usize, String)> = (0..24).map(|hour| (hour, hour.to_string())).collect();
        assert_eq!(text_axis(&hours[..10]), "0 2 4 6 8");
        assert_eq!(text_axis(&[(0, "0".into()), (6, "6".into()), (12, "12".into())]), "0     6     12");
        let ticks = vec![(0, "Mon".to_owned()), (1, "<Tue".to_owned())];
        let below = "day".to_owned();
        let bars = Bars { title: "a & b".to_owned(), values: vec![1.0, 2.0], top: 2.0, ticks, below };
        let svg = bars_to_svg(&[bars.clone(), bars]);
        assert!(
            svg.contains("a &amp; b") && svg.contains("height=\"35.0\"") && svg.contains("height=\"70.0\"")
        );
        assert!(svg.contains(">Mon</text>") && svg.contains("&lt;Tue"), "{svg}");
        assert!(bars_to_svg(&[]).ends_with("</svg>\n"));
    }

    #[test]
    fn a_time_line_has_changes_and_visits() {
        let svg = time_line([0.25], [Dot { at: 0.5, size: 1.0, colour: "red" }]);
        assert!(
            svg.contains("M250.0 22v7") && svg.contains("cx=\"500.0\"") && svg.contains("r=\"8.5\""),
            "{svg}"
        );
    }
}
