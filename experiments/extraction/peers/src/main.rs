//! Runs the Rust crate `trafilatura` on pages named on standard input, one JSON object per line, for `evaluate.py`.
//!
//! The argument is the mode: `balanced`, `precision` or `recall`. A line of input has `id` and `file`, one of output `id` and
//! `text`.

use std::io::{BufRead, Write};

use trafilatura::{ExtractionFocus, Options, extract};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let focus = match std::env::args().nth(1).as_deref() {
        Some("precision") => ExtractionFocus::FavorPrecision,
        Some("recall") => ExtractionFocus::FavorRecall,
        _ => ExtractionFocus::Balanced,
    };
    let options = Options::default().with_fallback(true).with_focus(focus);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let job: serde_json::Value = serde_json::from_str(&line?)?;
        let html = std::fs::read_to_string(job["file"].as_str().unwrap_or_default())?;
        let html = html.trim_start_matches('\u{feff}');
        // A page on which it fails counts as empty.
        let text = extract(html, &options).map(|found| found.content_text).unwrap_or_default();
        writeln!(out, "{}", serde_json::json!({ "id": job["id"], "text": text }))?;
    }
    Ok(out.flush()?)
}
