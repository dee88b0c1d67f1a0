//! The fonts that we ship, under the names that pages ask for, so that layout is the same on every machine.
//!
//! DejaVu is wide, like Verdana. The condensed cut is as wide as Arial on average, so it stands in for the
//! families that share Arial's proportions; lines then break about where a reader's browser breaks them.

use std::sync::Arc;

use blitz_dom::FontContext;
use parley::fontique::{
    Blob, Collection, CollectionOptions, FontInfoOverride, FontStyle, FontWeight, FontWidth, GenericFamily,
    Script, SourceCache,
};

type Cut = fn() -> &'static [u8];

/// Regular, bold, italic, bold italic.
type Family = [Cut; 4];

const SANS: Family =
    [dejavu::sans::regular, dejavu::sans::bold, dejavu::sans::oblique, dejavu::sans::bold_oblique];
const SANS_CONDENSED: Family = [
    dejavu::sans_condensed::regular,
    dejavu::sans_condensed::bold,
    dejavu::sans_condensed::oblique,
    dejavu::sans_condensed::bold_oblique,
];
const SERIF_CONDENSED: Family = [
    dejavu::serif_condensed::regular,
    dejavu::serif_condensed::bold,
    dejavu::serif_condensed::italic,
    dejavu::serif_condensed::bold_italic,
];
const MONO: Family = [
    dejavu::sans_mono::regular,
    dejavu::sans_mono::bold,
    dejavu::sans_mono::oblique,
    dejavu::sans_mono::bold_oblique,
];

const WIDE_NAMES: [&str; 4] = ["DejaVu Sans", "Verdana", "Bitstream Vera Sans", "Geneva"];
const SANS_NAMES: [&str; 14] = [
    "Arial",
    "Helvetica",
    "Helvetica Neue",
    "Liberation Sans",
    "Roboto",
    "Open Sans",
    "Segoe UI",
    "Tahoma",
    "Trebuchet MS",
    "Lucida Grande",
    "Noto Sans",
    "Ubuntu",
    "Calibri",
    "Inter",
];
const SERIF_NAMES: [&str; 7] =
    ["Times New Roman", "Times", "Georgia", "Liberation Serif", "Cambria", "Noto Serif", "DejaVu Serif"];
const MONO_NAMES: [&str; 7] =
    ["Courier New", "Courier", "Monaco", "Menlo", "Consolas", "Liberation Mono", "DejaVu Sans Mono"];

/// Scripts whose text falls back to our fonts; what they lack shows as boxes, but still takes room.
const SCRIPTS: [&[u8; 4]; 30] = [
    b"Latn", b"Cyrl", b"Grek", b"Arab", b"Hebr", b"Hani", b"Hira", b"Kana", b"Hang", b"Thai", b"Deva",
    b"Beng", b"Taml", b"Telu", b"Gujr", b"Guru", b"Knda", b"Mlym", b"Orya", b"Sinh", b"Khmr", b"Laoo",
    b"Mymr", b"Tibt", b"Geor", b"Armn", b"Ethi", b"Mong", b"Zyyy", b"Zinh",
];

/// All fonts, registered once and shared by every document of an engine.
pub(crate) fn font_context() -> FontContext {
    let mut collection = Collection::new(CollectionOptions { shared: false, system_fonts: false });
    for (family, names) in [
        (SANS, &WIDE_NAMES[..]),
        (SANS_CONDENSED, &SANS_NAMES[..]),
        (SERIF_CONDENSED, &SERIF_NAMES[..]),
        (MONO, &MONO_NAMES[..]),
    ] {
        register(&mut collection, family, names);
    }
    set_defaults(&mut collection);
    FontContext { collection, source_cache: SourceCache::new_shared() }
}

fn register(collection: &mut Collection, family: Family, names: &[&str]) {
    for (cut, (weight, style)) in family.into_iter().zip([
        (FontWeight::NORMAL, FontStyle::Normal),
        (FontWeight::BOLD, FontStyle::Normal),
        (FontWeight::NORMAL, FontStyle::Italic),
        (FontWeight::BOLD, FontStyle::Italic),
    ]) {
        let blob = Blob::new(Arc::new(metrics_only(cut())) as _);
        for name in names {
            // The condensed cuts pose as normal ones, or a request for normal width would pass them over.
            let info = FontInfoOverride {
                family_name: Some(name),
                width: Some(FontWidth::NORMAL),
                style: Some(style),
                weight: Some(weight),
                axes: None,
            };
            collection.register_fonts(blob.clone(), Some(info));
        }
    }
}

/// What layout asks of a font: which letters it has and how wide they are. Kerning, ligatures and the rules of scripts
/// (GSUB, GPOS) move a line by less than our fonts differ from the reader's, and cost a sixth of the work on text; outlines
/// are never drawn.
const KEPT_TABLES: [&[u8; 4]; 8] = [b"OS/2", b"cmap", b"head", b"hhea", b"hmtx", b"maxp", b"name", b"post"];

/// A font with the tables that layout needs and no others.
fn metrics_only(font: &[u8]) -> Vec<u8> {
    let kept: Vec<(&[u8], &[u8])> =
        tables(font).filter(|(tag, _)| KEPT_TABLES.iter().any(|kept| kept == tag)).collect();
    let n_tables = kept.len() as u16;
    let mut directory = Vec::from(&font[..4]);
    // The three fields that help a binary search over the tables; no reader here uses them.
    for field in [n_tables, 0, 0, 0] {
        directory.extend(field.to_be_bytes());
    }
    let mut body = Vec::new();
    let start = 12 + 16 * kept.len();
    for (tag, table) in kept {
        directory.extend(tag);
        directory.extend([0; 4]);
        directory.extend(((start + body.len()) as u32).to_be_bytes());
        directory.extend((table.len() as u32).to_be_bytes());
        body.extend(table);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    directory.append(&mut body);
    directory
}

/// Tag and content of every table of a font in one of our packages, which is well formed.
fn tables(font: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let number =
        |at: usize| u32::from_be_bytes([font[at], font[at + 1], font[at + 2], font[at + 3]]) as usize;
    let n_tables = number(2) & 0xffff;
    (0..n_tables).map(move |index| {
        let record = 12 + 16 * index;
        let offset = number(record + 8);
        (&font[record..record + 4], &font[offset..offset + number(record + 12)])
    })
}

fn set_defaults(collection: &mut Collection) {
    let sans = collection.family_id(SANS_NAMES[0]);
    let serif = collection.family_id(SERIF_NAMES[0]);
    let mono = collection.family_id(MONO_NAMES[0]);
    for generic in [
        GenericFamily::SansSerif,
        GenericFamily::SystemUi,
        GenericFamily::UiSansSerif,
        GenericFamily::UiRounded,
        GenericFamily::Cursive,
        GenericFamily::Fantasy,
        GenericFamily::Emoji,
        GenericFamily::Math,
    ] {
        collection.set_generic_families(generic, sans.into_iter());
    }
    for generic in [GenericFamily::Serif, GenericFamily::UiSerif, GenericFamily::FangSong] {
        collection.set_generic_families(generic, serif.into_iter());
    }
    for generic in [GenericFamily::Monospace, GenericFamily::UiMonospace] {
        collection.set_generic_families(generic, mono.into_iter());
    }
    for script in SCRIPTS {
        collection.set_fallbacks(Script::from_bytes(*script), sans.into_iter());
    }
}
