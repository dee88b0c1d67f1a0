//! `pin` and `ignore` of `[[site]]` <-> how the pages of a site are segmented.

use perennial_core::page::segment::{Pin, SegmentConfig, Selector};
use toml_edit::{InlineTable, Value};

use super::site::parse_selector;

/// Total share of a page's importance that its pinned blocks have.
pub const PINNED_SHARE: f32 = 0.9;

/// A pinned part of a site's pages.
#[derive(Debug, Clone, PartialEq)]
pub struct PinnedPart {
    pub selector: Selector,
    /// Share of the page's importance; `None`: all such parts share [`PINNED_SHARE`].
    pub importance: Option<f32>,
}

/// Pinned and ignored parts of a site's pages, by CSS selectors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageParts {
    pin: Vec<PinnedPart>,
    ignore: Vec<Selector>,
    /// How pages are segmented; `None` if no parts are named.
    config: Option<SegmentConfig>,
}

impl PageParts {
    /// Blocks mostly inside a match of `pin` have that pin's share of the page's importance. Pins without a share have
    /// [`PINNED_SHARE`] together. The tree omits matches of `ignore`.
    pub fn new(pin: Vec<PinnedPart>, ignore: Vec<Selector>) -> PageParts {
        let with_share = |part: &PinnedPart| {
            part.importance.map(|importance| Pin { selector: part.selector.clone(), importance })
        };
        let plain = pin.iter().filter(|part| part.importance.is_none()).map(|part| part.selector.clone());
        let all = plain.reduce(|all, selector| all.or(&selector));
        let together = all.map(|selector| Pin { selector, importance: PINNED_SHARE });
        let config = SegmentConfig {
            pins: pin.iter().filter_map(with_share).chain(together).collect(),
            ignored: ignore.clone(),
            ..SegmentConfig::default()
        };
        let is_usual = pin.is_empty() && ignore.is_empty();
        PageParts { pin, ignore, config: (!is_usual).then_some(config) }
    }

    pub fn pinned(&self) -> &[PinnedPart] {
        &self.pin
    }

    pub fn ignored(&self) -> &[Selector] {
        &self.ignore
    }

    /// How pages are segmented; `None` if no parts are named.
    pub fn config(&self) -> Option<&SegmentConfig> {
        self.config.as_ref()
    }

    /// Adds a pin; it replaces a pin with the same selector.
    pub fn with_pin(&self, pinned: PinnedPart) -> PageParts {
        let is_other = |part: &&PinnedPart| part.selector.to_string() != pinned.selector.to_string();
        let mut pin: Vec<PinnedPart> = self.pin.iter().filter(is_other).cloned().collect();
        pin.push(pinned);
        PageParts::new(pin, self.ignore.clone())
    }

    /// Adds an ignored part.
    pub fn with_ignored(&self, selector: Selector) -> PageParts {
        let mut ignore = self.ignore.clone();
        if !ignore.iter().any(|other| other.to_string() == selector.to_string()) {
            ignore.push(selector);
        }
        PageParts::new(self.pin.clone(), ignore)
    }

    /// Removes the pins and ignored parts with this selector.
    pub fn without(&self, selector: &Selector) -> PageParts {
        let is_other = |other: &Selector| other.to_string() != selector.to_string();
        let pin = self.pin.iter().filter(|part| is_other(&part.selector)).cloned().collect();
        PageParts::new(pin, self.ignore.iter().filter(|other| is_other(other)).cloned().collect())
    }
}

pub fn parse_share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a number above 0 and at most 1".to_owned())
}

/// Parses a selector, or a table with a selector and its share of the importance.
pub(super) fn parse_pin(value: &Value) -> Result<PinnedPart, String> {
    const HINT: &str = "write \"#headlines\" or { selector = \"#headlines\", importance = 0.5 }";
    if let Some(text) = value.as_str() {
        return Ok(PinnedPart { selector: parse_selector(text)?, importance: None });
    }
    let table = value.as_inline_table().ok_or(HINT)?;
    let share = match table.get("importance") {
        Some(Value::Float(number)) => Some(*number.value()),
        Some(Value::Integer(number)) => Some(*number.value() as f64),
        _ => None,
    };
    let selector = table.get("selector").and_then(Value::as_str).ok_or(HINT)?;
    let share = share.filter(|_| table.len() == 2).ok_or(HINT)?;
    Ok(PinnedPart { selector: parse_selector(selector)?, importance: Some(parse_share(&share.to_string())?) })
}

/// The pin in its form in perennial.toml.
pub(super) fn pin_to_toml(part: &PinnedPart) -> Value {
    let selector = part.selector.to_string();
    match part.importance {
        None => selector.into(),
        Some(importance) => {
            let mut table = InlineTable::new();
            table.insert("selector", selector.into());
            // The shortest decimal number that parses to the same value.
            table.insert(
                "importance",
                importance.to_string().parse::<f64>().unwrap_or(f64::from(importance)).into(),
            );
            table.into()
        }
    }
}
