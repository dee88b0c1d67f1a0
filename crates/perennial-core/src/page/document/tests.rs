use super::*;
use crate::page::diff::diff;
use crate::page::importance::{ImportanceConfig, importance};
use crate::page::segment::vixml;
use proptest::prelude::*;

fn read(format: DocumentFormat, text: &str) -> Document {
    format.read("http://city.example/data/", None, text.as_bytes()).unwrap()
}

fn texts(document: &Document) -> Vec<Vec<&str>> {
    let of_block = |block: &'_ crate::page::segment::Block| block.texts.len();
    assert!(document.tree.leaves().all(|leaf| of_block(leaf) + leaf.links.len() + leaf.images.len() > 0));
    document.tree.leaves().map(|leaf| leaf.texts.iter().map(|text| text.text.as_str()).collect()).collect()
}

fn words(document: &Document) -> String {
    texts(document).concat().join("\n")
}

#[test]
fn the_format_follows_from_media_type_name_and_first_bytes() {
    use DocumentFormat::{Csv, Json, Pdf, Text, Xml};
    let of = |content_type: &str, name: &str, bytes: &[u8]| {
        DocumentFormat::detect(Some(content_type).filter(|text| !text.is_empty()), name, bytes)
    };
    for (content_type, name, bytes, format) in [
        ("application/pdf", "/x", &b"%PDF-1.4"[..], Some(Pdf)),
        ("application/octet-stream", "/x", b"\n%PDF-1.4", Some(Pdf)),
        ("application/geo+json; charset=utf-8", "/x", b"{}", Some(Json)),
        ("Text/CSV", "/x", b"a,b", Some(Csv)),
        ("application/atom+xml", "/x", b"<feed/>", Some(Xml)),
        ("text/plain", "/x", b"words", Some(Text)),
        ("text/plain", "/table.csv?year=2026", b"a,b", Some(Csv)),
        ("text/plain", "/x", b"\0\x01\x02", None),
        ("text/html", "/x.pdf", b"<p>", None),
        ("application/xhtml+xml", "/x", b"<html/>", None),
        ("image/png", "/x.json", b"\x89PNG", None),
        ("application/zip", "/x", b"PK", None),
        ("", "/notes.TXT", b"words", Some(Text)),
        ("", "/x", b"  [1]", Some(Json)),
        ("", "/x", b"<p>words", None),
        ("", "/x.xml", b"<?xml version='1.0'?><html xmlns='...'>", None),
    ] {
        assert_eq!(of(content_type, name, bytes), format, "{content_type} {name}");
    }
}

#[test]
fn text_has_paragraphs_under_headings() {
    let text = "Speed limits\n============\n\nThe limit on the ring\nroad is 50.\n\n## Exceptions\nNone\u{ad} at\tall.\n\n- one\n- two\n";
    let document = read(DocumentFormat::Text, text);
    assert_eq!(document.title, "Speed limits");
    assert_eq!(texts(&document)[0][..2], ["Speed limits", "The limit on the ring road is 50."]);
    assert_eq!(texts(&document).concat()[2..], ["Exceptions", "None at all.", "- one", "- two"]);
    assert_eq!(document.tree.engine, "text/1");
}

#[test]
fn json_has_one_text_per_value_with_a_stable_path() {
    let before = r#"{"name":"Roads","n":2,"all":[{"id":7,"limit":50,"of":{"town":"A"},"tags":["x","y"]},{"id":8,"limit":null}]}"#;
    let after = before.replace("[{\"id\":7", "[{\"id\":6,\"limit\":30},{\"id\":7");
    let (before, after) = (read(DocumentFormat::Json, before), read(DocumentFormat::Json, &after));
    assert_eq!(before.title, "Roads");
    let all = words(&before);
    for text in
        ["all[7].limit: 50", "all[7].of.town: A", "all[7].tags: x", "name: Roads", "n: 2", "all[8].id: 8"]
    {
        assert!(all.contains(text), "{text} is not in {all}");
    }
    let delta = diff(&before.tree, &after.tree);
    let n_gone = delta.operations().filter(|operation| operation.kind.name() != "insert").count();
    assert_eq!(n_gone, 0, "a record in front is new and changes no other");
    assert!(read(DocumentFormat::Json, "{\"cut\": [1, 2").tree.engine == "text/1", "invalid JSON is text");
}

#[test]
fn rows_contain_the_names_of_their_columns() {
    let table = "road;limit;\"since; or \"\"when\"\"\"\r\nRing;50;\"Mon\nday\"\r\n;;\r\nQuay;30\r\n";
    let all = texts(&read(DocumentFormat::Csv, table)).concat().join("\n");
    assert_eq!(
        all,
        "road, limit, since; or \"when\"\nroad: Ring; limit: 50; since; or \"when\": Mon day\nroad: Quay; limit: 30"
    );
    let numbers = words(&read(DocumentFormat::Csv, "1\t2\n3\t4"));
    assert_eq!(numbers, "1; 2\n3; 4");
    assert!(words(&read(DocumentFormat::Csv, "a,b\n\"never closed,1\n2,3")).contains("a: 2; b: 3"));
}

#[test]
fn feeds_have_one_block_per_item() {
    let rss = "<?xml version='1.0'?><rss><channel><title>City &amp; roads</title><link>/</link><item><title>Ring</title>
        <link>ring</link><description>&lt;p&gt;50 km/h, if 3 &lt; 4&lt;/p&gt;</description></item><item><title>Quay</title>
        </item></channel></rss>";
    let document = read(DocumentFormat::Xml, rss);
    assert_eq!(document.title, "City & roads");
    let links: Vec<_> = document.tree.leaves().flat_map(|leaf| &leaf.links).collect();
    assert_eq!((links[0].name.as_str(), links[0].url.as_str()), ("City & roads", "http://city.example/"));
    assert_eq!((links[1].name.as_str(), links[1].url.as_str()), ("Ring", "http://city.example/data/ring"));
    assert_eq!(texts(&document), [vec![], vec!["50 km/h, if 3 < 4"], vec!["Quay"]]);
    let atom = "<feed xmlns='a'><title>News</title><entry><title>One</title><link rel='alternate' href='http://a.org/1'/>
        <id>urn:1</id><updated>2026-01-01T00:00:00Z</updated><content>Words</content></entry></feed>";
    let document = read(DocumentFormat::Xml, atom);
    assert_eq!(document.title, "News");
    assert_eq!(texts(&document)[1], ["updated: 2026-01-01T00:00:00Z", "Words"]);
}

#[test]
fn other_xml_has_one_text_per_element() {
    let xml = "<roads xmlns:x='y'><title>Limits</title><road name='Ring' x:y='z'><limit>50</limit><!-- no --></road>
        <road><limit>30</limit></road><cut>end";
    let document = read(DocumentFormat::Xml, xml);
    assert_eq!(document.title, "Limits");
    assert_eq!(words(&document), "title: Limits\nroad name: Ring\nlimit: 50\nlimit: 30\ncut: end");
}

/// A table of many rows, in which one row is inserted, deleted or changed.
#[test]
fn a_changed_row_moves_no_other_row() {
    let row = |n: usize| format!("Street {n},{} km/h,district {}\n", 30 + n % 3 * 10, n % 7);
    let table = |rows: &[usize]| {
        format!("street,limit,district\n{}", rows.iter().map(|&n| row(n)).collect::<String>())
    };
    let all: Vec<usize> = (0..500).collect();
    let without: Vec<usize> = all.iter().copied().filter(|n| *n != 77).collect();
    let (before, after) =
        (read(DocumentFormat::Csv, &table(&all)), read(DocumentFormat::Csv, &table(&without)));
    assert!(before.tree.blocks.len() > 20, "{}", before.tree.blocks.len());
    let removed: Vec<_> =
        diff(&before.tree, &after.tree).operations().map(|op| op.kind.name().to_owned()).collect();
    assert_eq!(removed, ["delete"]);
    let changed = table(&all).replace("Street 77,50 km/h", "Street 77,10 km/h");
    let changed = read(DocumentFormat::Csv, &changed);
    let delta = diff(&before.tree, &changed.tree);
    assert_eq!(delta.operations().map(|op| op.kind.name()).collect::<Vec<_>>(), ["update"]);
    let of_row = importance(&delta, &ImportanceConfig::default()).get();
    assert!(of_row > 0.0 && of_row < 0.2, "one limit of 500, read as one of some forty: {of_row}");
}

/// A new row at the end of a long table is a change that counts.
#[test]
fn a_long_table_that_grows_has_changed() {
    let table = |n_rows: usize| {
        let rows = (0..n_rows).map(|n| format!("day {n},{} visitors\n", n * 7 % 100));
        read(DocumentFormat::Csv, &format!("day,visitors\n{}", rows.collect::<String>()))
    };
    for n_rows in 3000..3020 {
        let delta = diff(&table(n_rows).tree, &table(n_rows + 1).tree);
        let grown = importance(&delta, &ImportanceConfig::default());
        assert!(crate::page::change_status::ChangeStatus::Changed(grown).is_change(), "{n_rows}: {grown:?}");
    }
}

#[test]
fn importance_is_the_share_of_what_is_read() {
    let paragraphs: Vec<String> =
        (0..200).map(|n| format!("Paragraph {n} has nine words and says nothing new here.")).collect();
    let document = read(DocumentFormat::Text, &format!("A heading\n\n{}", paragraphs.join("\n\n")));
    let leaves: Vec<f32> = document.tree.leaves().map(|leaf| leaf.importance).collect();
    assert!((leaves.iter().sum::<f32>() - 1.0).abs() < 1e-3);
    let mean = |part: &[f32], n_texts: usize| part.iter().sum::<f32>() / n_texts as f32;
    let n_texts: Vec<usize> = document.tree.leaves().map(|leaf| leaf.texts.len()).collect();
    let half = leaves.len() / 2;
    let first = mean(&leaves[..half], n_texts[..half].iter().sum());
    assert!(
        first > mean(&leaves[half..], n_texts[half..].iter().sum()),
        "the beginning is read by more people"
    );
}

#[test]
fn changes_beyond_the_limit_are_still_detected() {
    let list = |last: &str| format!("[{}\"{last}\"]", "1,".repeat(draft::MAX_ELEMENTS + 10));
    let (before, after) = (read(DocumentFormat::Json, &list("a")), read(DocumentFormat::Json, &list("b")));
    assert_ne!(before.tree.id(), after.tree.id());
    assert!(before.tree.leaves().map(|leaf| leaf.texts.len()).sum::<usize>() <= draft::MAX_ELEMENTS + 1);
}

#[test]
fn a_document_without_words_is_none() {
    for (format, bytes) in [
        (DocumentFormat::Text, &b" \n\n"[..]),
        (DocumentFormat::Csv, b",,\n"),
        (DocumentFormat::Xml, b"<a><b/></a>"),
        (DocumentFormat::Json, b"{}"),
        (DocumentFormat::Pdf, b"%PDF-1.7 and no object"),
    ] {
        assert_eq!(format.read("", None, bytes), None, "{format:?}");
    }
}

/// Writes a PDF from numbered objects and a trailer.
fn pdf_of(objects: &[(u32, Vec<u8>)], trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    for (number, body) in objects {
        file.extend(format!("{number} 0 obj\n").bytes());
        file.extend(body);
        file.extend(b"\nendobj\n");
    }
    file.extend(format!("trailer\n<< {trailer} >>\nstartxref\n0\n%%EOF\n").bytes());
    file
}

fn stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let mut object = format!("<< {entries} /Length {} >>\nstream\r\n", bytes.len()).into_bytes();
    object.extend(bytes);
    object.extend(b"\nendstream");
    object
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const PAGE: &str = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>";
const PAGES: &str = "<< /Type /Pages /Kids [3 0 R] /Resources << /Font << /F1 5 0 R >> /XObject << /X 6 0 R /I 7 0 R >> >> >>";
const CATALOG: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const HELVETICA: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /BaseEncoding /WinAnsiEncoding \
    /Differences [1 /fi /Eacute /uni20AC] >> >>";

/// A PDF with one page of these operators and one font.
fn pdf_with(operators: &str, font: &str, more: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let content = stream("/Filter /FlateDecode", &deflated(operators.as_bytes()));
    let mut objects: Vec<(u32, Vec<u8>)> =
        vec![(1, CATALOG.into()), (2, PAGES.into()), (3, PAGE.into()), (4, content), (5, font.into())];
    objects.extend_from_slice(more);
    pdf_of(&objects, "/Root 1 0 R /Info << /Title (Speed \\(new\\) limits) >>")
}

fn read_pdf(bytes: &[u8]) -> Option<Document> {
    DocumentFormat::Pdf.read("", Some("application/pdf"), bytes)
}

fn pdf_words(operators: &str) -> String {
    words(&read_pdf(&pdf_with(operators, HELVETICA, &[])).unwrap())
}

#[test]
fn operators_of_a_pdf_become_lines_and_paragraphs() {
    let operators = "BT /F1 12 Tf 1 0 0 1 72 720 Tm (The limit on the) Tj 0 -14 Td (ring road is \\06550.) Tj \
        0 -40 Td [(A) -20 (no) -300 (ther para) 10 <6772> (aph.)] TJ 14 TL (More) ' ( words) ' ET";
    assert_eq!(pdf_words(operators), "The limit on the ring road is 550.\nAno ther paragraph. More words");
    assert_eq!(read_pdf(&pdf_with(operators, HELVETICA, &[])).unwrap().title, "Speed (new) limits");
    // One word after the other, each with its own position, on a page that is upside down.
    let placed = "q 1 0 0 -1 0 792 cm BT /F1 10 Tf 1 0 0 -1 72 100 Tm (Two) Tj ET BT 1 0 0 -1 100 100 Tm (words) Tj ET Q";
    assert_eq!(pdf_words(placed), "Two words");
    assert_eq!(pdf_words("BT /F1 9 Tf (\\001ve \\002t\\351 5 \\003 \\226 a\\tb) Tj ET"), "ﬁve Été 5 € – ab");
    let inline = "BI /W 1 /H 1 ID \x01(Tj EIx EI BT /F1 9 Tf (after an image) Tj ET";
    assert_eq!(pdf_words(inline), "after an image");
}

#[test]
fn larger_text_is_a_heading() {
    let operators = "BT /F1 20 Tf 72 720 Td (Speed limits) Tj /F1 10 Tf 0 -30 Td (Words of the first paragraph) Tj 0 -12 Td \
        (go on here.) Tj ET";
    let document = read_pdf(&pdf_with(operators, HELVETICA, &[])).unwrap();
    assert_eq!(texts(&document), [["Speed limits", "Words of the first paragraph go on here."]]);
}

#[test]
fn wide_fonts_are_read_with_their_character_maps() {
    let font = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 8 0 R /DescendantFonts [<< /DW 600 /W [3 [500 250] 7 9 400] >>] >>";
    let table = "/CIDInit begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0003> <0041> <0004> \
        <d83dde00> endbfchar 2 beginbfrange <0007> <0009> <0061> <000a> <000b> [<00660066> <007a>] endbfrange";
    let more = [(8, stream("", table.as_bytes()))];
    let document =
        read_pdf(&pdf_with("BT /F1 9 Tf <0003000400070008000a000b0099> Tj ET", font, &more)).unwrap();
    assert_eq!(words(&document), "A😀abffz");
}

#[test]
fn type3_fonts_have_their_own_scale() {
    let font = "<< /Type /Font /Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FirstChar 65 /Widths [60 60] \
        /Encoding << /Differences [65 /a84 /a111 /a27] >> >>";
    let operators = "BT /F1 10 Tf (A) Tj 6 0 Td (BC) Tj ET";
    assert_eq!(words(&read_pdf(&pdf_with(operators, font, &[])).unwrap()), "To");
}

#[test]
fn objects_in_streams_forms_and_images_are_found() {
    let packed = format!("3 0 5 {} {PAGE} {HELVETICA}", PAGE.len() + 1);
    let first = packed.find("<<").unwrap();
    let inner = "BT /F1 9 Tf (in a form) Tj ET";
    let operators = "/X Do BT /F1 9 Tf 0 100 Td (on the page) Tj ET /I Do /I Do";
    let image = |bytes: &[u8]| {
        let objects = [
            (1, CATALOG.into()),
            (2, PAGES.into()),
            (
                9,
                stream(
                    &format!("/Type /ObjStm /N 2 /First {first} /Filter /FlateDecode"),
                    &deflated(packed.as_bytes()),
                ),
            ),
            (
                4,
                stream(
                    "/Filter [/ASCIIHexDecode]",
                    operators.bytes().map(|b| format!("{b:02X}")).collect::<String>().as_bytes(),
                ),
            ),
            (6, stream("/Subtype /Form", inner.as_bytes())),
            (7, stream("/Subtype /Image /Width 20 /Height 10 /Filter /DCTDecode", bytes)),
        ];
        read_pdf(&pdf_of(&objects, "/Root 1 0 R")).unwrap()
    };
    let (before, after) = (image(b"picture"), image(b"another"));
    assert_eq!(words(&before), "in a form\non the page");
    let n_images = before.tree.leaves().map(|leaf| leaf.images.len()).sum::<usize>();
    assert_eq!(n_images, 1, "an image that is drawn twice is one");
    assert_eq!(diff(&before.tree, &after.tree).operations().count(), 1, "another picture is a change");
}

#[test]
fn later_objects_replace_earlier_ones_and_damage_is_survived() {
    let mut file = pdf_with("BT /F1 9 Tf (old words) Tj ET", HELVETICA, &[]);
    file.extend(b"4 0 obj ");
    file.extend(stream("", b"BT /F1 9 Tf (new words) Tj ET"));
    file.extend(b" endobj trailer << /Root 1 0 R >>");
    assert_eq!(words(&read_pdf(&file).unwrap()), "new words");
    let text = String::from_utf8_lossy(&pdf_with("BT /F1 9 Tf (w) Tj ET", HELVETICA, &[])).into_owned();
    assert!(text.contains("trailer"));
    let lost: Vec<u8> = pdf_with("BT /F1 9 Tf (still here) Tj ET", HELVETICA, &[]);
    let end = lost.windows(7).position(|part| part == b"trailer").unwrap();
    let page = format!("{} /Resources << /Font << /F1 5 0 R >> >> >>", PAGE.trim_end_matches(" >>"));
    let mut lost = lost[..end].to_vec();
    lost.extend(format!("3 0 obj {page} endobj").bytes());
    assert_eq!(words(&read_pdf(&lost).unwrap()), "still here", "without a trailer");
}

#[test]
fn encrypted_and_scanned_files_are_not_read() {
    let mut file = pdf_with("BT /F1 9 Tf (secret) Tj ET", HELVETICA, &[]);
    assert!(read_pdf(&file).is_some());
    file.extend(b"trailer << /Root 1 0 R /Encrypt 9 0 R >>");
    assert_eq!(read_pdf(&file), None);
    let image = [(7, stream("/Subtype /Image /Width 9 /Height 9", b"scan"))];
    assert_eq!(read_pdf(&pdf_with("/I Do", HELVETICA, &image)), None);
}

/// A form that refers to itself is read once.
#[test]
fn self_references_in_a_pdf_end() {
    let form = [(6, stream("/Subtype /Form", b"/X Do /X Do BT /F1 9 Tf (again) Tj ET"))];
    assert!(
        words(&read_pdf(&pdf_with("/X Do", HELVETICA, &form)).unwrap()).matches("again").count() <= 1 << 9
    );
    let objects =
        [(1, CATALOG.into()), (2, b"<< /Kids [2 0 R 2 0 R 3 0 R] >>".to_vec()), (3, b"3 0 R".to_vec())];
    assert_eq!(read_pdf(&pdf_of(&objects, "/Root 1 0 R")), None);
    let nested = format!("%PDF-1.4 1 0 obj {}", "[".repeat(100_000));
    assert_eq!(read_pdf(nested.as_bytes()), None);
    let many = format!("%PDF-1.4 {}", "1 0 obj ( << ".repeat(50_000));
    assert_eq!(read_pdf(many.as_bytes()), None);
}

/// Every document tree can be written and read back unchanged, and its importance sums to 1.
fn check_tree(document: &Document) -> Result<(), TestCaseError> {
    let sum: f32 = document.tree.leaves().map(|leaf| leaf.importance).sum();
    prop_assert!((sum - 1.0).abs() < 1e-2, "{}", sum);
    prop_assert_eq!(&vixml::read(&vixml::write(&document.tree)).unwrap(), &document.tree);
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600), text in "[ -~\\n<>{}\\[\\]\",:;é]{0,400}") {
        for format in DocumentFormat::ALL {
            for bytes in [&bytes[..], text.as_bytes()] {
                if let Some(document) = format.read("http://a.org/", None, bytes) {
                    check_tree(&document)?;
                }
            }
        }
        let mut file = b"%PDF-1.4 1 0 obj ".to_vec();
        file.extend(&bytes);
        let _ = read_pdf(&file);
    }

    #[test]
    fn damaged_documents_are_survived(at in 0usize..2000, with in proptest::collection::vec(any::<u8>(), 0..6), n_gone in 0usize..40) {
        let pdf = pdf_with("BT /F1 12 Tf 72 720 Td (The limit) Tj [(on) -300 <0102>] TJ T* (road) ' ET", HELVETICA, &[]);
        let rss = b"<rss><channel><title>T</title><item><title>A &amp; b</title><link>l</link></item></channel></rss>".to_vec();
        let json = b"{\"a\":[{\"id\":1,\"b\":[1,2,{\"c\":\"d\"}]},[],{}],\"e\":null}".to_vec();
        let csv = b"a,b,\"c\"\n1,\"2 \"\"3\"\"\",4\n".to_vec();
        for (format, document) in DocumentFormat::ALL.into_iter().zip([csv.clone(), json, csv, rss, pdf]) {
            let mut bytes = document;
            let at = at % bytes.len();
            bytes.splice(at..(at + n_gone).min(bytes.len()), with.iter().copied());
            if let Some(document) = format.read("http://a.org/", None, &bytes) {
                check_tree(&document)?;
            }
        }
    }
}
