//! Numbers -> charts, drawn by hand: lines, bars and time lines in SVG; bars in the letters of a terminal.

use std::fmt::Write as _;

use perennial_core::text::markup::escaped;

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Written at its right end.
    pub label: String,
    /// Any CSS colour.
    pub colour: &'static str,
    /// How it is drawn.
    pub stroke: Stroke,
    /// (x, y), ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stroke {
    /// An ordinary line.
    #[default]
    Thin,
    /// The line that stands out.
    Bold,
    /// A bound.
    Dashed,
}

/// A chart of shares: y in percent of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What x means.
    pub x_label: String,
    /// What y means.
    pub y_label: String,
    /// Where x has ticks, and what they say.
    pub x_ticks: Vec<(f64, String)>,
    /// Whether x is drawn by its logarithm.
    pub x_is_log: bool,
    /// The lines; later ones are drawn above earlier ones.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
/// Labels at the right end keep this distance.
const LABEL_GAP: f64 = 15.0;

impl Chart {
    /// The drawing.
    pub fn to_svg(&self) -> String {
        let scale = Scale::of(self);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escaped(&format!("{} by {}", self.y_label, self.x_label))
        );
        self.draw_grid(&scale, &mut svg);
        for series in &self.series {
            draw_series(series, &scale, &mut svg);
        }
        self.draw_labels(&scale, &mut svg);
        svg.push_str("</svg>");
        svg
    }

    fn draw_grid(&self, scale: &Scale, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut share = scale.y_low;
        while share <= scale.y_high + 1e-9 {
            let y = scale.y(share);
            let _ = write!(
                svg,
                "<line class=grid x1={LEFT} x2={right} y1={y:.1} y2={y:.1} /><text x={} y={:.1} text-anchor=end>{:.0} %</text>",
                LEFT - 8.0,
                y + 4.0,
                share * 100.0
            );
            share += scale.y_step;
        }
        for (value, text) in &self.x_ticks {
            let x = scale.x(*value);
            let _ = write!(
                svg,
                "<line class=tick x1={x:.1} x2={x:.1} y1={bottom} y2={} /><text x={x:.1} y={} text-anchor=middle>{}</text>",
                bottom + 5.0,
                bottom + 19.0,
                escaped(text)
            );
        }
        let _ = write!(
            svg,
            "<text class=axis x={:.1} y={} text-anchor=middle>{}</text><text class=axis text-anchor=middle \
             transform=\"translate(14 {:.1}) rotate(-90)\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            escaped(&self.x_label),
            (TOP + bottom) / 2.0,
            escaped(&self.y_label)
        );
    }

    /// Labels stand beside the ends of their lines, pushed apart where they would cover each other.
    fn draw_labels(&self, scale: &Scale, svg: &mut String) {
        let mut ends: Vec<(f64, f64, &Series)> = self
            .series
            .iter()
            .filter_map(|series| series.points.last().map(|(x, y)| (scale.x(*x), scale.y(*y), series)))
            .collect();
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let places = spread(&ends.iter().map(|end| end.1).collect::<Vec<f64>>());
        let x = WIDTH - RIGHT + 22.0;
        for ((end_x, end_y, series), y) in ends.iter().zip(places) {
            let weight = if series.stroke == Stroke::Bold { " font-weight=600" } else { "" };
            let _ = write!(
                svg,
                "<path class=leader d=\"M{:.1} {end_y:.1} L{:.1} {y:.1}\" stroke=\"{}\"/><text x={x} y={:.1} \
                 style=\"fill:{}\"{weight}>{}</text>",
                end_x + 4.0,
                x - 4.0,
                series.colour,
                y + 4.0,
                series.colour,
                escaped(&series.label)
            );
        }
    }
}

/// Sorted places -> places at least [`LABEL_GAP`] apart, inside the drawing and as near as may be.
fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for n in 1..places.len() {
        places[n] = places[n].max(places[n - 1] + LABEL_GAP);
    }
    let mut limit = HEIGHT - BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LABEL_GAP;
    }
    places
}

fn draw_series(series: &Series, scale: &Scale, svg: &mut String) {
    let (width, dash) = match series.stroke {
        Stroke::Thin => (1.6, ""),
        Stroke::Bold => (3.2, ""),
        Stroke::Dashed => (1.6, " stroke-dasharray=\"6 4\""),
    };
    let mut path = String::new();
    for (n, (x, y)) in series.points.iter().enumerate() {
        let _ = write!(path, "{}{:.1} {:.1}", if n == 0 { "M" } else { "L" }, scale.x(*x), scale.y(*y));
    }
    let _ = write!(
        svg,
        "<path d=\"{path}\" fill=none stroke=\"{}\" stroke-width={width}{dash} stroke-linejoin=round />",
        series.colour
    );
    if series.stroke == Stroke::Dashed {
        return;
    }
    for (x, y) in &series.points {
        let _ = write!(
            svg,
            "<circle cx={:.1} cy={:.1} r={:.1} fill=\"{}\"><title>{}: {:.1} %</title></circle>",
            scale.x(*x),
            scale.y(*y),
            width + 0.9,
            series.colour,
            escaped(&series.label),
            y * 100.0
        );
    }
}

/// Values -> places on the drawing.
struct Scale {
    x_low: f64,
    x_high: f64,
    x_is_log: bool,
    y_low: f64,
    y_high: f64,
    y_step: f64,
}

impl Scale {
    fn of(chart: &Chart) -> Scale {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let xs = || points().map(|point| point.0).chain(chart.x_ticks.iter().map(|tick| tick.0));
        let low = points().map(|point| point.1).fold(1.0, f64::min);
        let high = points().map(|point| point.1).fold(0.0, f64::max);
        let y_step = if high - low > 0.4 { 0.1 } else { 0.05 };
        Scale {
            x_low: xs().fold(f64::INFINITY, f64::min),
            x_high: xs().fold(f64::NEG_INFINITY, f64::max),
            x_is_log: chart.x_is_log,
            y_low: ((low / y_step).floor() * y_step).max(0.0),
            y_high: ((high / y_step).ceil() * y_step).max(y_step),
            y_step,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let map = |x: f64| if self.x_is_log { x.max(1e-9).ln() } else { x };
        let span = (map(self.x_high) - map(self.x_low)).max(1e-9);
        LEFT + (map(value) - map(self.x_low)) / span * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let span = (self.y_high - self.y_low).max(1e-9);
        HEIGHT - BOTTOM - (value - self.y_low) / span * (HEIGHT - TOP - BOTTOM)
    }
}

/// Bars in a terminal, one letter a value: as high as its share of `top`, a dot where nothing is known.
pub fn sparkline(values: impl IntoIterator<Item = Option<f64>>, top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: f64| BARS[((value / top.max(1e-9) * 7.0).round() as usize).min(7)];
    values.into_iter().map(|value| value.map_or('·', bar)).collect()
}

/// Bars side by side under a title.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Written above them.
    pub title: String,
    /// One bar each.
    pub values: Vec<f64>,
    /// The value of a bar of full height.
    pub top: f64,
    /// What stands below some of them: the number of the bar, and the text.
    pub ticks: Vec<(usize, String)>,
    /// What the ticks are, such as "hour of the day".
    pub below: String,
}

/// The ticks as a line of text below a [`sparkline`], each at its place; one that would touch the tick before it is left out.
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

/// Panels of bars below each other, as an SVG file of its own.
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
    /// When, as a share of the time line.
    pub at: f64,
    /// How large it is drawn, 0 to 1.
    pub size: f64,
    /// Any CSS colour.
    pub colour: &'static str,
}

/// A time line: dots for events, ticks below for visits. Times are shares of the whole.
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
    fn labels_never_cover_each_other_and_stay_inside() {
        let places = spread(&[20.0, 21.0, 22.0, 350.0, 352.0, 353.0]);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_GAP - 1e-9), "{places:?}");
        assert!(places.iter().all(|place| *place <= HEIGHT - BOTTOM));
    }

    #[test]
    fn lines_go_where_their_values_are() {
        let series = Series {
            label: "a<b".to_owned(),
            colour: "#123456",
            stroke: Stroke::Thin,
            points: vec![(0.0, 0.0), (1.0, 1.0)],
        };
        let ticks = vec![(0.0, "0".to_owned()), (1.0, "1".to_owned())];
        let chart = Chart {
            x_label: "x".to_owned(),
            y_label: "y".to_owned(),
            x_ticks: ticks,
            x_is_log: false,
            series: vec![series],
        };
        let svg = chart.to_svg();
        assert!(svg.contains("d=\"M68.0 354.0L570.0 16.0\""), "{svg}");
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn nothing_to_draw_is_no_panic() {
        let chart = Chart {
            x_label: String::new(),
            y_label: String::new(),
            x_ticks: vec![],
            x_is_log: true,
            series: vec![],
        };
        assert!(chart.to_svg().starts_with("<svg"));
    }

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
    fn a_time_line_has_what_happened_and_who_looked() {
        let svg = time_line([0.25], [Dot { at: 0.5, size: 1.0, colour: "red" }]);
        assert!(
            svg.contains("M250.0 22v7") && svg.contains("cx=\"500.0\"") && svg.contains("r=\"8.5\""),
            "{svg}"
        );
    }
}
