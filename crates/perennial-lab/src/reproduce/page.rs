//! Findings -> a self-contained HTML page with their table and charts.

use std::fmt::Write as _;

use perennial_core::text::markup::escaped;
use perennial_engine::html::page;

use super::{Reproduction, Verdict};
use crate::chart::REPORT_STYLE;

impl Reproduction {
    pub fn to_html(&self) -> String {
        let mut html = String::from(
            "<main><h1>Can the papers be repeated?</h1><p class=lead>A claim is repeated only if the 95 % interval of the measured \
             effect excludes no effect and reaches the published size.</p><table class=claims><thead><tr><th>verdict<th>paper<th>claim\
             <th>published<th>in the paper's condition<th>as shipped</thead><tbody>",
        );
        for finding in &self.findings {
            let class = match finding.verdict {
                Verdict::Repeated => "yes",
                Verdict::InSign => "part",
                Verdict::NotRepeated => "no",
                Verdict::NotTestable => "dim",
            };
            let _ = write!(
                html,
                "<tr><td class={class}>{}</td><td>{} {}</td><td>{}<div class=dim>{}</div></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                finding.verdict.name(),
                finding.paper,
                escaped(finding.item),
                escaped(finding.claim),
                escaped(&finding.reason),
                escaped(finding.published),
                escaped(&finding.in_condition),
                escaped(&finding.as_shipped)
            );
        }
        html.push_str("</tbody></table>");
        for table in &self.tables {
            html.push_str(&table.to_html());
        }
        for (title, chart) in &self.charts {
            let _ = write!(html, "<section><h2>{}</h2>{}</section>", escaped(title), chart.to_svg());
        }
        html.push_str("</main>");
        page("Can the papers be repeated?", REPORT_STYLE, &html)
    }
}
