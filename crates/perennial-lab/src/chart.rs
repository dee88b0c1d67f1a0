//! Draws line charts in SVG for reports of simulations.

use std::fmt::Write as _;

use perennial_core::text::markup::escaped;

/// The stylesheet of reports with tables and charts.
pub const REPORT_STYLE: &str = include_str!("report.css");

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The label at its right end.
    pub label: String,
    pub colour: &'static str,
    pub stroke: Stroke,
    /// (x, y), ascending in x.
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stroke {
    #[default]
    Thin,
    /// An emphasised line.
    Bold,
    /// A bound.
    Dashed,
}

/// A chart of shares: y in percent of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub x_label: String,
    pub y_label: String,
    /// The ticks of x and their labels.
    pub x_ticks: Vec<(f64, String)>,
    /// Whether x is logarithmic.
    pub x_is_log: bool,
    /// The lines, drawn in this order.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
/// Labels at the right end are at least this far apart.
const LABEL_GAP: f64 = 15.0;

impl Chart {
    pub fn to_svg(&self) -> String {
        let scale = ChartScale::new(self);
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

    fn draw_grid(&self, scale: &ChartScale, svg: &mut String) {
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

    /// Labels are next to the ends of their lines, moved apart if they would overlap.
    fn draw_labels(&self, scale: &ChartScale, svg: &mut String) {
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

/// Moves sorted positions at least [`LABEL_GAP`] apart, within the drawing and close to the wanted ones.
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

fn draw_series(series: &Series, scale: &ChartScale, svg: &mut String) {
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

/// Maps values to positions on the drawing.
struct ChartScale {
    x_low: f64,
    x_high: f64,
    x_is_log: bool,
    y_low: f64,
    y_high: f64,
    y_step: f64,
}

impl ChartScale {
    fn new(chart: &Chart) -> ChartScale {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let xs = || points().map(|point| point.0).chain(chart.x_ticks.iter().map(|tick| tick.0));
        let low = points().map(|point| point.1).fold(1.0, f64::min);
        let high = points().map(|point| point.1).fold(0.0, f64::max);
        let y_step = if high - low > 0.4 { 0.1 } else { 0.05 };
        ChartScale {
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
    fn lines_follow_their_values() {
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
    fn an_empty_chart_does_not_panic() {
        let chart = Chart {
            x_label: String::new(),
            y_label: String::new(),
            x_ticks: vec![],
            x_is_log: true,
            series: vec![],
        };
        assert!(chart.to_svg().starts_with("<svg"));
    }
}
