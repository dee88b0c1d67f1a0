//! Real robots.txt files -> one answer per line for a sample of URLs, for comparison with a different parser.
//!
//! `cargo run --release --example robots_answers -- DIR AGENT` reads every file of a folder and prints tab-separated
//! lines: file, path, allow or deny. The sample contains the file's own patterns, where parsers differ most. Each
//! pattern appears with its wildcards filled, then also shortened and extended.
//! `experiments/robots-against-protego/compare.py` reads these lines and compares them with Protego's answers.

use std::io::{BufWriter, Write};

use perennial_core::http::robots::Robots;

const MAX_PATTERNS: usize = 40;

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, agent] = args.as_slice() else {
        return Err(std::io::Error::other("give a folder of robots.txt files and a crawler's name"));
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut files: Vec<_> = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(path)?;
        let robots = Robots::parse(&bytes, agent);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for sample in samples(&bytes) {
            let answer = if robots.allows(&sample) { "allow" } else { "deny" };
            writeln!(out, "{name}\t{sample}\t{answer}")?;
        }
    }
    out.flush()
}

fn samples(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut paths = vec!["/".to_string(), "/index.html".into(), "/a/b/c?d=e".into()];
    let patterns = text.split(['\n', '\r']).filter_map(|line| {
        let (key, value) = line.split('#').next()?.split_once(':')?;
        let is_rule = matches!(key.trim().to_ascii_lowercase().as_str(), "allow" | "disallow");
        is_rule.then(|| value.trim().to_string()).filter(|value| value.starts_with('/'))
    });
    for pattern in patterns.take(MAX_PATTERNS) {
        let filled = pattern.replace('*', "xyz");
        let filled = filled.trim_end_matches('$').to_string();
        paths.push(format!("{filled}more"));
        paths.push(filled.chars().take(filled.chars().count().saturating_sub(1)).collect());
        paths.push(filled);
    }
    // Each path goes through a URL, as in a crawl, so both parsers see the same escapes.
    let base = url::Url::parse("https://example.org/");
    let mut sample: Vec<String> = paths
        .into_iter()
        .filter(|path| path.starts_with('/') && !path.starts_with("//"))
        .filter_map(|path| base.as_ref().ok()?.join(&path).ok())
        .filter(|url| url.host_str() == Some("example.org"))
        .map(|url| url[url::Position::BeforePath..url::Position::AfterQuery].to_string())
        .collect();
    sample.sort();
    sample.dedup();
    sample
}
