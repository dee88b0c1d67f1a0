//! Maps font names to built-in fonts, so layout is the same on every machine.
//!
//! DejaVu is wide, like Verdana. Its condensed cut is as wide as Arial on average, so it replaces the families with
//! Arial's proportions. Lines then break about where a reader's browser breaks them.

use std::collections::HashMap;
use std::sync::Arc;

use blitz_dom::FontContext;
use parley::fontique::{
    Blob, Collection, CollectionOptions, FontInfoOverride, FontStyle, FontWeight, FontWidth, GenericFamily,
    Script, SourceCache,
};
use style::properties::ComputedValues;
use style::values::computed::font::{FontStyle as FontStyleValue, GenericFontFamily, SingleFontFamily};

use crate::sfnt::{Sfnt, Widths};

type FontCut = fn() -> &'static [u8];

/// Regular, bold, italic, bold italic.
type FontFamily = [FontCut; 4];

// Only widths matter here. Slanted characters are as wide as upright ones, and all cuts of a fixed-width font have
// the same widths. Sharing cuts saves four megabytes.
const SANS: FontFamily =
    [dejavu::sans::regular, dejavu::sans::bold, dejavu::sans::regular, dejavu::sans::bold];
const SANS_CONDENSED: FontFamily = [
    dejavu::sans_condensed::regular,
    dejavu::sans_condensed::bold,
    dejavu::sans_condensed::regular,
    dejavu::sans_condensed::bold,
];
const SERIF_CONDENSED: FontFamily = [
    dejavu::serif_condensed::regular,
    dejavu::serif_condensed::bold,
    dejavu::serif_condensed::regular,
    dejavu::serif_condensed::bold,
];
const MONO: FontFamily = [dejavu::sans_mono::regular; 4];

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

/// Scripts that fall back to the built-in fonts. Characters that these lack are laid out as a box.
const SCRIPTS: [&[u8; 4]; 30] = [
    b"Latn", b"Cyrl", b"Grek", b"Arab", b"Hebr", b"Hani", b"Hira", b"Kana", b"Hang", b"Thai", b"Deva",
    b"Beng", b"Taml", b"Telu", b"Gujr", b"Guru", b"Knda", b"Mlym", b"Orya", b"Sinh", b"Khmr", b"Laoo",
    b"Mymr", b"Tibt", b"Geor", b"Armn", b"Ethi", b"Mong", b"Zyyy", b"Zinh",
];

/// The families by number, with the names that pages use for them.
const FAMILIES: [(FontFamily, &[&str]); 4] = [
    (SANS, &WIDE_NAMES),
    (SANS_CONDENSED, &SANS_NAMES),
    (SERIF_CONDENSED, &SERIF_NAMES),
    (MONO, &MONO_NAMES),
];
const SANS_NUMBER: usize = 1;
const SERIF_NUMBER: usize = 2;
const MONO_NUMBER: usize = 3;

/// All fonts, shared by every document of an engine.
pub(crate) struct Fonts {
    pub(crate) context: FontContext,
    /// By family and cut.
    widths: Vec<Widths>,
    /// Number of the family by lower-case name.
    numbers: HashMap<String, usize>,
}

impl Fonts {
    pub(crate) fn load() -> Fonts {
        let mut collection = Collection::new(CollectionOptions { shared: false, system_fonts: false });
        let (mut widths, mut numbers) = (Vec::new(), HashMap::new());
        for (number, (family, names)) in FAMILIES.into_iter().enumerate() {
            register(&mut collection, family, names);
            widths.extend(family.map(|cut| Sfnt::new(cut()).widths()));
            numbers.extend(names.iter().map(|name| (name.to_ascii_lowercase(), number)));
        }
        set_defaults(&mut collection);
        Fonts {
            context: FontContext { collection, source_cache: SourceCache::new_shared() },
            widths,
            numbers,
        }
    }

    /// The character widths for text of this style. Chooses the font as the engine does.
    pub(crate) fn letter_widths(&self, styles: &ComputedValues) -> &Widths {
        let known = |family: &SingleFontFamily| match family {
            SingleFontFamily::FamilyName(name) => self.numbers.get(&*name.name.to_ascii_lowercase()).copied(),
            SingleFontFamily::Generic(GenericFontFamily::Serif) => Some(SERIF_NUMBER),
            SingleFontFamily::Generic(GenericFontFamily::Monospace) => Some(MONO_NUMBER),
            SingleFontFamily::Generic(_) => Some(SANS_NUMBER),
        };
        let family = styles.clone_font_family().families.iter().find_map(known).unwrap_or(SANS_NUMBER);
        let is_bold = styles.clone_font_weight().value() > 550.0;
        let is_italic = styles.clone_font_style() != FontStyleValue::NORMAL;
        &self.widths[4 * family + 2 * usize::from(is_italic) + usize::from(is_bold)]
    }
}

fn register(collection: &mut Collection, family: FontFamily, names: &[&str]) {
    for (cut, (weight, style)) in family.into_iter().zip([
        (FontWeight::NORMAL, FontStyle::Normal),
        (FontWeight::BOLD, FontStyle::Normal),
        (FontWeight::NORMAL, FontStyle::Italic),
        (FontWeight::BOLD, FontStyle::Italic),
    ]) {
        let blob = Blob::new(Arc::new(Sfnt::new(cut()).for_layout()) as _);
        for name in names {
            // The condensed cuts are registered with normal width, because pages request normal width.
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
