//! Values -> HTML and SVG: one page frame, one escape ([`perennial_core::text::markup`]), one chart module, one diff view.
//!
//! Every page is one file: no script, style, font or picture from elsewhere.
//!
//! | file | what becomes what |
//! |---|---|
//! | [`calendar`] | captures by day, lists of captures and addresses -> pages of the server |
//! | [`chart`] | numbers -> lines, bars, time lines in SVG; bars in a terminal |
//! | `dates` | instants -> days, minutes and distances in words |
//! | [`diff`] | a comparison -> both captured pages with what changed marked, as text, as links |
//! | [`face`] | what changed, answers of a search -> the pages of the server that people read first |
//! | [`feeds`] | statistics of feeds -> the paper's figures |
//! | [`simulation`] | results of simulated crawls -> the papers' figures |

pub mod calendar;
pub mod chart;
mod dates;
pub mod diff;
pub mod face;
pub mod feeds;
pub mod simulation;

use perennial_core::text::markup::{escaped, unordered};

/// The stylesheet of reports with tables and charts.
pub const REPORT_STYLE: &str = include_str!("report.css");

/// The stylesheet of the server's own pages.
pub const SERVE_STYLE: &str = include_str!("serve.css");

/// A whole page; `body` is HTML already.
pub fn page(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{}</title><style>{style}</style></head><body>{body}</body></html>\n",
        escaped(&unordered(&face::cut(title)))
    )
}
