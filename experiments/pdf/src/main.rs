//! `pdf-readers READER FILE` prints the words of a PDF as `own`, `pdf-extract` or `lopdf` reads them.

use perennial_core::page::document::DocumentFormat;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [reader, file] = arguments.as_slice() else { return Err("usage: pdf-readers READER FILE".into()) };
    let bytes = std::fs::read(file)?;
    let text = match reader.as_str() {
        "own" => own(&bytes),
        "pdf-extract" => pdf_extract::extract_text_from_mem(&bytes)?,
        "lopdf" => by_lopdf(&bytes)?,
        other => return Err(format!("{other}: unknown reader; choose own, pdf-extract or lopdf").into()),
    };
    println!("{text}");
    Ok(())
}

fn own(bytes: &[u8]) -> String {
    let document = DocumentFormat::Pdf.read("http://a.example/a.pdf", None, bytes);
    let blocks = document.iter().flat_map(|document| document.tree.leaves());
    blocks.map(|block| block.read().join(" ")).collect::<Vec<_>>().join("\n")
}

fn by_lopdf(bytes: &[u8]) -> Result<String, Failure> {
    let document = lopdf::Document::load_mem(bytes)?;
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    Ok(document.extract_text(&pages)?)
}
