//! The bytes of a PDF -> its objects, found by scanning the file from start to end.
//!
//! The cross-reference tables at the end of a file are not used: they may be damaged, and all objects are needed
//! anyway. Of several objects with the same number the last one counts.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;

use memchr::memmem;

use super::object::{Dictionary, Lexer, PdfValue, from_hexadecimal};

/// Maximum length of a file.
const MAX_FILE_BYTES: usize = 32 << 20;
/// Maximum values of all objects.
const MAX_VALUES: usize = 3_000_000;
/// Maximum unpacked bytes of all streams.
const MAX_UNPACKED_BYTES: usize = 96 << 20;
/// Maximum pages that are read.
const MAX_PAGES: usize = 5000;
/// Maximum length of a chain of references.
const MAX_STEPS: usize = 8;
/// Maximum trailers that are read, and maximum bytes of each.
const MAX_TRAILERS: usize = 64;
const MAX_TRAILER_BYTES: usize = 16 << 10;
/// Maximum filters of a stream.
const MAX_FILTERS: usize = 4;

/// Smaller integers are exact in `f32`.
const MAX_EXACT: f32 = 16_777_216.0;
/// Bytes after a stream in which its end is searched.
const MAX_END_BYTES: usize = 16;

/// A file with its objects.
pub(super) struct PdfFile<'a> {
    bytes: &'a [u8],
    objects: BTreeMap<u32, PdfObject>,
    trailer: Dictionary,
    n_left: Cell<usize>,
    is_cut: Cell<bool>,
}

struct PdfObject {
    /// Its position in the file: a later object with the same number replaces it.
    position: usize,
    value: PdfValue,
    stream: Option<Range<usize>>,
}

/// A page: its operator streams and its resources.
pub(super) struct PdfPage<'f> {
    pub(super) contents: Vec<&'f PdfValue>,
    pub(super) resources: Option<&'f Dictionary>,
}

impl<'a> PdfFile<'a> {
    /// Opens a file. `None` if it is not a PDF, too long or encrypted.
    pub(super) fn open(bytes: &'a [u8]) -> Option<PdfFile<'a>> {
        let start = memmem::find(&bytes[..bytes.len().min(1024)], b"%PDF-")?;
        let bytes = &bytes[start..];
        if bytes.len() > MAX_FILE_BYTES {
            return None;
        }
        let mut file = PdfFile {
            bytes,
            objects: BTreeMap::new(),
            trailer: Dictionary::new(),
            n_left: Cell::new(MAX_UNPACKED_BYTES),
            is_cut: Cell::new(false),
        };
        file.scan();
        file.read_trailers();
        if file.trailer.contains_key("Encrypt") {
            return None;
        }
        file.read_object_streams();
        Some(file)
    }

    /// Whether something was left out because the unpacked file is too large.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    fn scan(&mut self) {
        let ends: Vec<usize> = memmem::find_iter(self.bytes, b"endstream").collect();
        let finder = memmem::Finder::new(b"obj");
        let mut lexer = Lexer::new(self.bytes, MAX_VALUES);
        while let Some(found) = finder.find(&self.bytes[lexer.at..]) {
            let keyword = lexer.at + found;
            lexer.at = keyword + 3;
            let Some(number) = number_before(&self.bytes[..keyword]) else { continue };
            let Some(value) = lexer.value() else { continue };
            let stream = stream_after(&mut lexer, &value, &ends);
            self.insert(number, PdfObject { position: keyword, value, stream });
        }
        self.is_cut.set(lexer.n_left == 0);
    }

    fn insert(&mut self, number: u32, object: PdfObject) {
        if self.objects.get(&number).is_none_or(|before| before.position <= object.position) {
            self.objects.insert(number, object);
        }
    }

    fn read_trailers(&mut self) {
        let mut found: Vec<(usize, Dictionary)> = Vec::new();
        for at in memmem::rfind_iter(self.bytes, b"trailer").take(MAX_TRAILERS) {
            let start = at + b"trailer".len();
            let end = self.bytes.len().min(start + MAX_TRAILER_BYTES);
            let mut lexer = Lexer::new(&self.bytes[start..end], MAX_TRAILER_BYTES);
            if let Some(PdfValue::Dictionary(trailer)) = lexer.value() {
                found.push((at, trailer));
            }
        }
        for object in self.objects.values() {
            if let PdfValue::Dictionary(entries) = &object.value
                && is_type(entries, "XRef")
            {
                found.push((object.position, entries.clone()));
            }
        }
        found.sort_by_key(|(position, _)| *position);
        for (_, trailer) in found {
            let wanted =
                trailer.into_iter().filter(|(name, _)| ["Root", "Info", "Encrypt"].contains(&name.as_str()));
            self.trailer.extend(wanted);
        }
    }

    fn read_object_streams(&mut self) {
        let mut streams: Vec<(usize, u32)> = Vec::new();
        for (number, object) in &self.objects {
            if let PdfValue::Dictionary(entries) = &object.value
                && is_type(entries, "ObjStm")
            {
                streams.push((object.position, *number));
            }
        }
        streams.sort_unstable();
        let mut n_values = MAX_VALUES;
        for (position, number) in streams {
            let Some((first, bytes)) = self.object_stream(number) else { continue };
            let mut head = Lexer::new(&bytes[..first], n_values);
            let mut lexer = Lexer::new(&bytes, n_values);
            while let (Some(PdfValue::Number(number)), Some(PdfValue::Number(offset))) =
                (head.value(), head.value())
            {
                let start = first.saturating_add(offset as usize);
                // Objects are stored one after the other. Reading the same bytes twice would let a small file request
                // endless work.
                if start < lexer.at || start > bytes.len() {
                    continue;
                }
                lexer.at = start;
                if let Some(value) = lexer.value() {
                    self.insert(number as u32, PdfObject { position, value, stream: None });
                }
            }
            n_values = lexer.n_left;
        }
    }

    /// The offset of the first object in an object stream, and the bytes of the stream.
    fn object_stream(&self, number: u32) -> Option<(usize, Vec<u8>)> {
        let PdfValue::Dictionary(entries) = &self.objects.get(&number)?.value else { return None };
        let first = self.resolve(entries.get("First")?).number()? as usize;
        let bytes = self.unpacked(number)?;
        (first <= bytes.len()).then_some((first, bytes))
    }

    /// Follows references to a value.
    pub(super) fn resolve<'f>(&'f self, value: &'f PdfValue) -> &'f PdfValue {
        let mut value = value;
        for _ in 0..MAX_STEPS {
            let PdfValue::Reference(number) = value else { return value };
            match self.objects.get(number) {
                Some(object) => value = &object.value,
                None => return &PdfValue::Null,
            }
        }
        &PdfValue::Null
    }

    pub(super) fn dictionary<'f>(&'f self, value: Option<&'f PdfValue>) -> Option<&'f Dictionary> {
        if let PdfValue::Dictionary(entries) = self.resolve(value?) { Some(entries) } else { None }
    }

    pub(super) fn array<'f>(&'f self, value: Option<&'f PdfValue>) -> Option<&'f [PdfValue]> {
        if let PdfValue::Array(values) = self.resolve(value?) { Some(values) } else { None }
    }

    /// The unpacked bytes of the referenced stream. `None` if they cannot be unpacked.
    pub(super) fn stream(&self, value: &PdfValue) -> Option<Vec<u8>> {
        if let PdfValue::Reference(number) = value { self.unpacked(*number) } else { None }
    }

    /// The packed bytes of a stream.
    pub(super) fn packed(&self, value: &PdfValue) -> Option<&'a [u8]> {
        let PdfValue::Reference(number) = value else { return None };
        self.bytes.get(self.objects.get(number)?.stream.clone()?)
    }

    fn unpacked(&self, number: u32) -> Option<Vec<u8>> {
        let object = self.objects.get(&number)?;
        let PdfValue::Dictionary(entries) = &object.value else { return None };
        let packed = self.bytes.get(object.stream.clone()?)?;
        let filters = match self.resolve(entries.get("Filter").unwrap_or(&PdfValue::Null)) {
            PdfValue::Array(filters) => filters.as_slice(),
            PdfValue::Null => &[],
            filter => std::slice::from_ref(filter),
        };
        if filters.len() > MAX_FILTERS || self.has_predictor(entries) {
            return None;
        }
        let mut bytes = None;
        for filter in filters {
            let source: &[u8] = bytes.as_deref().unwrap_or(packed);
            bytes = Some(self.spend(match self.resolve(filter).name()? {
                "FlateDecode" | "Fl" => inflate(source, self.n_left.get()),
                "ASCIIHexDecode" | "AHx" => {
                    from_hexadecimal(&source[..memchr::memchr(b'>', source).unwrap_or(source.len())])
                }
                "ASCII85Decode" | "A85" => from_base85(source),
                _ => return None,
            })?);
        }
        match bytes {
            Some(bytes) => Some(bytes),
            None => self.spend(packed.to_vec()),
        }
    }

    /// Whether the bytes are differences to the row above, as in images and cross-reference streams, which are not
    /// read.
    fn has_predictor(&self, entries: &Dictionary) -> bool {
        let parameters = self.dictionary(entries.get("DecodeParms"));
        let predictor = parameters.and_then(|parameters| parameters.get("Predictor"));
        predictor.and_then(|value| self.resolve(value).number()).is_some_and(|predictor| predictor > 1.0)
    }

    fn spend(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let n_left = self.n_left.get().saturating_sub(bytes.len());
        self.n_left.set(n_left);
        if n_left == 0 {
            self.is_cut.set(true);
            return None;
        }
        Some(bytes)
    }

    /// The title in the file's metadata.
    pub(super) fn title(&self) -> Option<&[u8]> {
        let info = self.dictionary(self.trailer.get("Info"))?;
        self.resolve(info.get("Title")?).string()
    }

    /// All pages in reading order.
    pub(super) fn pages(&self) -> Vec<PdfPage<'_>> {
        let mut pages = Vec::new();
        let root = self.dictionary(self.trailer.get("Root"));
        if let Some(top) = root.and_then(|root| root.get("Pages")) {
            self.collect_pages(top, &mut pages);
        }
        if pages.is_empty() {
            // Without a page tree, all pages are read in the order of their object numbers.
            let all = self.objects.values().filter_map(|object| self.dictionary(Some(&object.value)));
            pages.extend(
                all.filter(|entries| is_type(entries, "Page"))
                    .take(MAX_PAGES)
                    .map(|entries| self.page(entries, None)),
            );
        }
        pages
    }

    fn collect_pages<'f>(&'f self, top: &'f PdfValue, pages: &mut Vec<PdfPage<'f>>) {
        let mut seen = BTreeSet::new();
        let mut pending: Vec<(&PdfValue, Option<&Dictionary>)> = vec![(top, None)];
        while let Some((value, inherited)) = pending.pop() {
            // Each node occurs once in a tree. A repeated one is a loop.
            if let PdfValue::Reference(number) = value
                && !seen.insert(*number)
            {
                continue;
            }
            let Some(entries) = self.dictionary(Some(value)) else { continue };
            let resources = self.dictionary(entries.get("Resources")).or(inherited);
            match self.array(entries.get("Kids")) {
                Some(kids) => pending.extend(kids.iter().rev().map(|kid| (kid, resources))),
                None if pages.len() < MAX_PAGES => pages.push(self.page(entries, resources)),
                None => self.is_cut.set(true),
            }
        }
    }

    fn page<'f>(&'f self, entries: &'f Dictionary, inherited: Option<&'f Dictionary>) -> PdfPage<'f> {
        let contents = match entries.get("Contents") {
            None => Vec::new(),
            Some(contents) => match self.resolve(contents) {
                PdfValue::Array(streams) => streams.iter().collect(),
                _ => vec![contents],
            },
        };
        PdfPage { contents, resources: self.dictionary(entries.get("Resources")).or(inherited) }
    }
}

pub(super) fn is_type(entries: &Dictionary, name: &str) -> bool {
    entries.get("Type").and_then(PdfValue::name) == Some(name)
}

/// The number of an object, given the bytes before `obj`: `12 0 `.
fn number_before(bytes: &[u8]) -> Option<u32> {
    let text = &bytes[bytes.len().saturating_sub(24)..];
    let after_generation = text.trim_ascii_end();
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let n_generation = after_generation.iter().rev().take_while(is_digit).count();
    let before = after_generation[..after_generation.len() - n_generation].trim_ascii_end();
    let is_apart = n_generation > 0 && before.len() < after_generation.len() - n_generation;
    let n_number = before.iter().rev().take_while(is_digit).count();
    let digits = std::str::from_utf8(&before[before.len() - n_number..]).ok()?;
    digits.parse().ok().filter(|_| is_apart)
}

/// The range of the stream after a dictionary. Moves the lexer to its end.
fn stream_after(lexer: &mut Lexer, value: &PdfValue, ends: &[usize]) -> Option<Range<usize>> {
    let PdfValue::Dictionary(entries) = value else { return None };
    lexer.skip_blanks();
    let rest = lexer.bytes[lexer.at..].strip_prefix(b"stream")?;
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    let start = lexer.bytes.len() - rest.len();
    let length =
        entries.get("Length").and_then(PdfValue::number).filter(|length| (0.0..MAX_EXACT).contains(length));
    let is_end = |end: &usize| {
        let rest = lexer.bytes.get(*end..).unwrap_or_default();
        rest[..rest.len().min(MAX_END_BYTES)].trim_ascii_start().starts_with(b"endstream")
    };
    let end = length.map(|length| start + length as usize).filter(is_end).unwrap_or_else(|| {
        ends.get(ends.partition_point(|&end| end < start)).copied().unwrap_or(lexer.bytes.len())
    });
    lexer.at = end;
    Some(start..end)
}

/// Unpacks at most `limit` bytes. A truncated stream is read up to its end.
fn inflate(packed: &[u8], limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = flate2::read::ZlibDecoder::new(packed).take(limit as u64);
    let _ = decoder.read_to_end(&mut bytes);
    bytes
}

/// Decodes base 85: five characters encode four bytes, and `z` encodes four zeros.
fn from_base85(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut group) = (Vec::new(), Vec::new());
    for &letter in text {
        match letter {
            b'~' => break,
            b'z' if group.is_empty() => bytes.extend([0; 4]),
            b'!'..=b'u' => group.push(letter - b'!'),
            _ => {}
        }
        if group.len() == 5 {
            bytes.extend(base85_word(&group).to_be_bytes());
            group.clear();
        }
    }
    if group.len() > 1 {
        let n_bytes = group.len() - 1;
        group.resize(5, 84);
        bytes.extend(&base85_word(&group).to_be_bytes()[..n_bytes]);
    }
    bytes
}

fn base85_word(group: &[u8]) -> u32 {
    group.iter().fold(0u32, |word, &digit| word.wrapping_mul(85).wrapping_add(u32::from(digit)))
}
