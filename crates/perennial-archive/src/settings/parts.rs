//! `pin` and `ignore` of `[[site]]` <-> how the pages of a site are segmented.

use perennial_core::page::segment::{Pin, SegmentConfig, Selector};
use toml_edit::{InlineTable, Value};

use super::site::parse_selector;

/// Share of a page's importance that its pinned blocks have together.
pub const PINNED_SHARE: f32 = 0.9;

/// A part of a site's pages that counts most.
#[derive(Debug, Clone, PartialEq)]
pub struct PinnedPart {
    /// Where it is.
    pub selector: Selector,
    /// Share of its page's importance; `None`: all such parts have [`PINNED_SHARE`] together.
    pub importance: Option<f32>,
}

/// Pinned and ignored parts of a site's pages, by CSS selectors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageParts {
    pin: Vec<PinnedPart>,
    ignore: Vec<Selector>,
    /// How pages are segmented; `None` where no part is named.
    config: Option<SegmentConfig>,
}

impl PageParts {
    /// Blocks that stand mostly inside a match of `pin` have its share of their page's importance; those that name no share have, all
    /// together, [`PINNED_SHARE`]. What matches `ignore` is left out of the tree.
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

    /// The parts that count most.
    pub fn pinned(&self) -> &[PinnedPart] {
        &self.pin
    }

    /// The parts that are not looked at.
    pub fn ignored(&self) -> &[Selector] {
        &self.ignore
    }

    /// How pages are segmented; `None` where no part is named.
    pub fn config(&self) -> Option<&SegmentConfig> {
        self.config.as_ref()
    }

    /// The same with another pin; one of the same selector is replaced.
    pub fn with_pin(&self, pinned: PinnedPart) -> PageParts {
        let is_other = |part: &&PinnedPart| part.selector.to_string() != pinned.selector.to_string();
        let mut pin: Vec<PinnedPart> = self.pin.iter().filter(is_other).cloned().collect();
        pin.push(pinned);
        PageParts::new(pin, self.ignore.clone())
    }

    /// The same with another part that is ignored.
    pub fn with_ignored(&self, selector: Selector) -> PageParts {
        let mut ignore = self.ignore.clone();
        if !ignore.iter().any(|other| other.to_string() == selector.to_string()) {
            ignore.push(selector);
        }
        PageParts::new(self.pin.clone(), ignore)
    }

    /// The same without what this selector names.
    pub fn without(&self, selector: &Selector) -> PageParts {
        let is_other = |other: &Selector| other.to_string() != selector.to_string();
        let pin = self.pin.iter().filter(|part| is_other(&part.selector)).cloned().collect();
        PageParts::new(pin, self.ignore.iter().filter(|other| is_other(other)).cloned().collect())
    }
}

/// A share of a page's importance.
pub fn parse_share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a number above 0 and at most 1".to_owned())
}

/// A selector, or a table with a selector and its share of the importance.
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

/// As it stands in perennial.toml.
pub(super) fn pin_to_toml(part: &PinnedPart) -> Value {
    let selector = part.selector.to_string();
    match part.importance {
        None => selector.into(),
        Some(importance) => {
            let mut table = InlineTable::new();
            table.insert("selector", selector.into());
            // The shortest number that is this one.
            table.insert(
                "importance",
                importance.to_string().parse::<f64>().unwrap_or(f64::from(importance)).into(),
            );
            table.into()
        }
    }
}
