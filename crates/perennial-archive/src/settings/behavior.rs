//! `behaviors` of `[[site]]` -> what a reader would do in a page before a browser captures it.

use std::fmt;
use std::str::FromStr;

use super::parse_choice;

/// One kind of action in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// Closes consent dialogs and other annoyances.
    Dismiss,
    /// Starts audio and video.
    Autoplay,
    /// Clicks "load more".
    LoadMore,
    /// Scrolls to the end.
    Autoscroll,
}

impl Behavior {
    const NAMES: [(&'static str, Behavior); 4] = [
        ("dismiss", Behavior::Dismiss),
        ("autoplay", Behavior::Autoplay),
        ("load-more", Behavior::LoadMore),
        ("autoscroll", Behavior::Autoscroll),
    ];

    pub fn name(self) -> &'static str {
        Behavior::NAMES.iter().find(|(_, behavior)| *behavior == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Behavior {
    type Err = String;

    fn from_str(text: &str) -> Result<Behavior, String> {
        parse_choice(text, &Behavior::NAMES)
    }
}

impl fmt::Display for Behavior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
