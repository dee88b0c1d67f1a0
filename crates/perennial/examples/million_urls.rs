//! Fills an archive's frontier with N URLs, to measure the memory that a crawl of it needs.
//!
//! ```text
//! cargo run --release --example million_urls -- DIR 1000000
//! /usr/bin/time -v perennial --archive DIR crawl --allow-private --no-analysis --time-limit 10s
//! ```

use perennial_archive::store::{Discovery, PageKind};
use perennial_archive::{Archive, ArchiveWriter};

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(dir), n_urls) =
        (args.first(), args.get(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000u32))
    else {
        anyhow::bail!("give a folder for the archive and a number of addresses");
    };
    let root = std::path::Path::new(dir);
    let archive = Archive::create(root)?;
    let seed = "http://127.0.0.1:9/".to_string();
    let settings = std::fs::read_to_string(archive.settings_path())?;
    std::fs::write(archive.settings_path(), format!("{settings}\n[[site]]\nurl = \"{seed}\"\n"))?;
    let mut writer = ArchiveWriter::open(&archive)?;
    writer.store_mut().write(|commit| {
        let number = commit.seed_numbers(std::slice::from_ref(&seed))?[0];
        for n in 0..n_urls {
            let port = 10_000 + n % 1000;
            let url = format!("http://127.0.0.1:{port}/section-{}/article-{n}-with-a-title.html", n % 97);
            commit.put_discovery(&Discovery {
                url,
                kind: PageKind::Page,
                seed: number,
                depth: 1,
                n_redirects: 0,
                changed: None,
                item: None,
            })?;
        }
        Ok(())
    })?;
    writer.close()
}
