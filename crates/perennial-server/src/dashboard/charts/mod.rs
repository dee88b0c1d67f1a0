//! Charts that stretch with the page: x in per cent, y in pixels, so text is not distorted. Colours are CSS classes.

mod axis;
mod hours;
mod intervals;
mod shares;
mod versions;

pub(crate) use self::axis::Axis;
pub(crate) use self::hours::{HourChart, hours, small_bars, spent};
pub(crate) use self::intervals::{Bar, HATCH, intervals};
pub(crate) use self::shares::{BoundedShare, curve, ranges, trend};
pub(crate) use self::versions::{VersionMark, days, strip, versions};

/// `0.6` for 0.600.
fn without_zeros(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use perennial_core::time::{Span, Timestamp};

    use super::*;
    use crate::dashboard::components::Range;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn an_axis_of_any_length_has_a_few_ticks() {
        for hours in [1, 5, 24, 72, 7 * 24, 40 * 24, 400 * 24, 5_000 * 24] {
            let from = at("2026-03-02T05:00:00Z");
            let ticks = Axis { from, until: from + Span::from_hours(hours) }.ticks();
            assert!(!ticks.is_empty() && ticks.len() <= 20, "{hours} h: {}", ticks.len());
        }
        let instant = Axis { from: at("2026-03-02"), until: at("2026-03-02") };
        assert_eq!(instant.at(at("2026-03-02")), 0.0);
    }

    #[test]
    fn untrusted_text_is_escaped_and_positions_are_right() {
        let axis = Axis { from: at("2026-03-02"), until: at("2026-03-04") };
        let hostile = "</title><script>";
        let mark = VersionMark {
            time: at("2026-03-03"),
            importance: 0.2,
            is_indexed: false,
            href: format!("/x\"{hostile}"),
            title: hostile.into(),
        };
        let svg = versions(axis, &[mark], &[at("2026-03-02T12:00:00Z")], 0.1, hostile).0;
        assert!(svg.contains("cx=\"50.00%\" cy=\"0.0\"") && svg.contains("x1=\"25.00%\""), "{svg}");
        let rows = intervals(axis, &[Bar::Retitled(at("2026-03-03"), hostile.into())], hostile).0;
        let range = Range { at_least: 0.1, likely: 0.5, at_most: 1.0 };
        let rows = rows + &ranges(&[(hostile.into(), range)], hostile).0;
        assert!(!(svg + &rows).contains("<script"));
    }

    #[test]
    fn a_first_capture_does_not_flatten_edits() {
        let axis = Axis { from: at("2026-03-02"), until: at("2026-03-04") };
        let mark = |time: &str, importance| VersionMark {
            time: at(time),
            importance,
            is_indexed: true,
            href: String::new(),
            title: String::new(),
        };
        let svg =
            versions(axis, &[mark("2026-03-02", 1.0), mark("2026-03-03", 0.2)], &[], 0.0, "").into_string();
        assert!(svg.contains("cx=\"0.00%\" cy=\"0.0\"") && svg.contains("cx=\"50.00%\" cy=\"0.0\""), "{svg}");
    }

    #[test]
    fn charts_may_be_empty() {
        let axis = Axis { from: at("2026-03-02"), until: at("2026-03-02") };
        let charts = [
            versions(axis, &[], &[], 0.0, ""),
            days(0, &[], (0, 0), |_| String::new()),
            spent(&[], None, axis.from),
            curve(axis, &[], "", |_| String::new()),
            small_bars(&[], ""),
        ];
        assert!(charts.iter().all(|svg| !svg.0.contains("NaN")));
    }
}
