//! Pages named on standard input, a JSON object a line -> what the Rust crate `trafilatura` finds in them, in each of its modes.
//!
//! A line of input has `id` and `file`; one of output `id`, `mode`, `text` and the processor time of all pages so far in `ms`.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use trafilatura::{ExtractionFocus, Options, extract};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let modes = [
        ("Rust trafilatura", ExtractionFocus::Balanced),
        ("Rust trafilatura, precision", ExtractionFocus::FavorPrecision),
        ("Rust trafilatura, recall", ExtractionFocus::FavorRecall),
    ];
    let lines: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    for (name, focus) in modes {
        let options = Options::default().with_fallback(true).with_focus(focus);
        let mut took = Duration::ZERO;
        for line in &lines {
            let job: serde_json::Value = serde_json::from_str(line)?;
            let html = std::fs::read_to_string(job["file"].as_str().unwrap_or_default())?;
            let start = Instant::now();
            // A page on which it fails has given nothing.
            let text = extract(&html, &options).map(|found| found.content_text).unwrap_or_default();
            took += start.elapsed();
            let found = serde_json::json!({ "id": job["id"], "mode": name, "text": text, "ms": took.as_secs_f64() * 1000.0 });
            writeln!(out, "{found}")?;
        }
    }
    Ok(out.flush()?)
}
