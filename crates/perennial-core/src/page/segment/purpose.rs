//! Tag, `role` and the words in `class` and `id` -> the purpose of an element.
//!
//! VIPS uses only the kind of tag. Pages since HTML5 contain more information, and most class names are plain English
//! words.

use crate::page::layout::LayoutNode;

/// The purpose of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub(super) enum Purpose {
    #[default]
    Unknown,
    Section,
    Main,
    Article,
    Navigation,
    Header,
    Footer,
    Sidebar,
    Form,
    Dialog,
    Comments,
    Related,
    Share,
    Advertisement,
}

impl Purpose {
    /// Whether it separates an element from its neighbours.
    pub(super) fn is_landmark(self) -> bool {
        !matches!(self, Purpose::Unknown | Purpose::Section | Purpose::Form)
    }

    /// Whether it is not part of the main content: comments, related stories, buttons, the page frame.
    pub(super) fn is_apart(self) -> bool {
        self.is_landmark() && !matches!(self, Purpose::Main | Purpose::Article)
    }

    /// Whether it belongs to the page frame, which is the same on every page of a site.
    pub(super) fn is_frame(self) -> bool {
        matches!(self, Purpose::Navigation | Purpose::Header | Purpose::Footer)
    }

    /// Maximum share of the page's prose for an element with this purpose. With more, the name is misleading: it is the
    /// content. Footers and dialogs hold legal texts on pages with little else, and comments may be longer than the
    /// article.
    pub(super) fn most_prose(self) -> Option<f32> {
        match self {
            Purpose::Advertisement
            | Purpose::Sidebar
            | Purpose::Related
            | Purpose::Share
            | Purpose::Navigation
            | Purpose::Header => Some(0.3),
            Purpose::Footer | Purpose::Dialog => Some(0.6),
            Purpose::Comments => Some(0.9),
            _ => None,
        }
    }
}

/// The purpose by tag and role, ignoring class names.
pub(super) fn purpose_by_markup(node: &LayoutNode) -> Purpose {
    match node.attribute("role").map_or(Purpose::Unknown, purpose_from_role) {
        Purpose::Unknown => purpose_from_tag(&node.tag),
        by_role => by_role,
    }
}

pub(super) fn element_purpose(node: &LayoutNode) -> Purpose {
    let by_tag = purpose_from_tag(&node.tag);
    if matches!(by_tag, Purpose::Main | Purpose::Navigation) || node.tag == "body" || node.tag == "html" {
        return by_tag;
    }
    let by_role = node.attribute("role").map_or(Purpose::Unknown, purpose_from_role);
    if by_role != Purpose::Unknown {
        return by_role;
    }
    if super::thread::is_marked(node) {
        return Purpose::Comments;
    }
    let by_name = ["id", "class"]
        .iter()
        .filter_map(|name| node.attribute(name))
        .map(purpose_from_names)
        .find(|purpose| *purpose != Purpose::Unknown);
    match (by_tag, by_name) {
        (Purpose::Unknown | Purpose::Section | Purpose::Sidebar, Some(by_name)) => by_name,
        _ => by_tag,
    }
}

fn purpose_from_tag(tag: &str) -> Purpose {
    match tag {
        "main" => Purpose::Main,
        "article" => Purpose::Article,
        "nav" => Purpose::Navigation,
        "header" => Purpose::Header,
        "footer" => Purpose::Footer,
        "aside" => Purpose::Sidebar,
        "form" => Purpose::Form,
        "dialog" => Purpose::Dialog,
        "section" => Purpose::Section,
        _ => Purpose::Unknown,
    }
}

fn purpose_from_role(role: &str) -> Purpose {
    match role.trim() {
        "main" => Purpose::Main,
        "article" => Purpose::Article,
        "navigation" | "menu" | "menubar" | "tablist" => Purpose::Navigation,
        "banner" => Purpose::Header,
        "contentinfo" => Purpose::Footer,
        "complementary" => Purpose::Sidebar,
        "search" | "form" => Purpose::Form,
        "dialog" | "alertdialog" => Purpose::Dialog,
        _ => Purpose::Unknown,
    }
}

/// Bytes of names that are read. Generated class lists can be long.
const MAX_NAMES: usize = 200;

/// The first word with a purpose decides, because names begin with the important part (`comment-form`, `footer-nav`).
fn purpose_from_names(names: &str) -> Purpose {
    let bytes = &names.as_bytes()[..names.len().min(MAX_NAMES)];
    let mut word = [0u8; 14];
    let mut len = 0;
    let mut is_about_another = false;
    for (index, byte) in bytes.iter().chain([&b' ']).enumerate() {
        let starts_word = byte.is_ascii_uppercase() && index > 0 && bytes[index - 1].is_ascii_lowercase();
        if !byte.is_ascii_alphabetic() || starts_word {
            let found = purpose_from_word(&word[..len.min(word.len())]);
            if found != Purpose::Unknown && !is_about_another {
                return found;
            }
            if len > 0 {
                is_about_another = is_qualifier(&word[..len.min(word.len())]);
            }
            len = 0;
        }
        if byte.is_ascii_alphabetic() {
            if len < word.len() {
                word[len] = byte.to_ascii_lowercase();
            }
            len += 1;
        }
    }
    Purpose::Unknown
}

/// Whether the word after this one names something that the element has or lacks: `has-sidebar`, `no-sidebar`.
fn is_qualifier(word: &[u8]) -> bool {
    matches!(word, b"no" | b"not" | b"has" | b"have" | b"with" | b"without" | b"hide")
}

fn purpose_from_word(word: &[u8]) -> Purpose {
    match word {
        b"nav" | b"navbar" | b"navigation" | b"menu" | b"menubar" | b"breadcrumb" | b"breadcrumbs"
        | b"pagination" | b"pager" | b"toc" | b"subnav" | b"topnav" => Purpose::Navigation,
        b"header" | b"masthead" | b"topbar" | b"branding" => Purpose::Header,
        b"footer" | b"foot" | b"colophon" | b"copyright" | b"legal" | b"imprint" => Purpose::Footer,
        b"sidebar" | b"aside" | b"rail" | b"widget" | b"widgets" => Purpose::Sidebar,
        b"comment" | b"comments" | b"disqus" | b"respond" | b"kommentare" | b"kommentar" | b"commentaire"
        | b"commentaires" | b"comentario" | b"comentarios" | b"commenti" | b"reacties" | b"komentarze"
        | b"kommentarer" | b"discussion" => Purpose::Comments,
        b"related" | b"recommended" | b"recommendation" | b"recirc" | b"popular" | b"trending"
        | b"outbrain" | b"taboola" | b"readmore" | b"mostread" => Purpose::Related,
        b"share" | b"sharing" | b"social" | b"sharedaddy" | b"addthis" | b"follow" => Purpose::Share,
        b"ad" | b"ads" | b"advert" | b"adverts" | b"advertisement" | b"advertising" | b"sponsor"
        | b"sponsored" | b"promo" | b"banner" | b"adsense" | b"anzeige" | b"werbung" | b"dfp" => {
            Purpose::Advertisement
        }
        b"cookie" | b"cookies" | b"consent" | b"gdpr" | b"modal" | b"popup" | b"newsletter"
        | b"subscribe" | b"paywall" | b"overlay" => Purpose::Dialog,
        _ => Purpose::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_with_a_purpose_decides() {
        for (names, purpose) in [
            ("site-footer nav", Purpose::Footer),
            ("mainNavBar", Purpose::Navigation),
            ("post_comments", Purpose::Comments),
            ("badge headers loading", Purpose::Unknown),
            ("ad-slot-3", Purpose::Advertisement),
            ("two-columns no-sidebar", Purpose::Unknown),
            ("hasSidebar comments", Purpose::Comments),
            ("", Purpose::Unknown),
        ] {
            assert_eq!(purpose_from_names(names), purpose, "{names}");
        }
    }
}
