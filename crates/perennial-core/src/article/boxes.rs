//! Elements -> their purpose, by tag, role, class and identifier: navigation, comments, advertisements, captions.
//!
//! Names are only hints: some sites call an article's own text `widget` or `highlight`. So a box counts only if it
//! contains little of the page's running text. Each kind has its own limit ([`BoxKind::max_share`]). If too little
//! text is left, the extraction tries again with fewer kinds.

use crate::text::dom::DomNode;

/// The purpose of a box. The discriminants are bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(super) enum BoxKind {
    Navigation = 1,
    Header = 1 << 1,
    Footer = 1 << 2,
    Sidebar = 1 << 3,
    Share = 1 << 4,
    Newsletter = 1 << 5,
    Advertisement = 1 << 6,
    Related = 1 << 7,
    Comments = 1 << 8,
    Meta = 1 << 9,
    Caption = 1 << 10,
    Notice = 1 << 11,
    Form = 1 << 12,
    Biography = 1 << 13,
    Teaser = 1 << 14,
    /// By the structure of the page ([`super::surroundings`]), not by a name.
    Surrounding = 1 << 15,
}

/// A set of kinds.
pub(super) type BoxKinds = u16;

impl BoxKind {
    /// The maximum share of the page's running text in a box of this kind.
    pub(super) fn max_share(self) -> f32 {
        match self {
            BoxKind::Meta => 0.12,
            BoxKind::Header | BoxKind::Biography => 0.15,
            BoxKind::Share | BoxKind::Newsletter | BoxKind::Caption | BoxKind::Form => 0.2,
            BoxKind::Advertisement | BoxKind::Footer => 0.25,
            BoxKind::Navigation | BoxKind::Related | BoxKind::Teaser => 0.35,
            BoxKind::Sidebar | BoxKind::Notice => 0.5,
            BoxKind::Comments => 0.9,
            BoxKind::Surrounding => 1.0,
        }
    }

    pub(super) fn bit(self) -> BoxKinds {
        self as u16
    }
}

/// The kind of an element, according to its names.
pub(super) fn box_kind(node: &DomNode) -> Option<BoxKind> {
    let by_tag = match node.tag() {
        "" | "html" | "body" | "article" | "main" => return None,
        "nav" | "menu" => Some(BoxKind::Navigation),
        "header" => Some(BoxKind::Header),
        "footer" => Some(BoxKind::Footer),
        "aside" => Some(BoxKind::Sidebar),
        "figcaption" => Some(BoxKind::Caption),
        "form" | "fieldset" => Some(BoxKind::Form),
        "time" => None,
        _ => None,
    };
    let by_role = match node.attribute("role") {
        Some("navigation" | "menu" | "menubar" | "search" | "tablist") => Some(BoxKind::Navigation),
        Some("banner") => Some(BoxKind::Header),
        Some("contentinfo") => Some(BoxKind::Footer),
        Some("complementary") => Some(BoxKind::Sidebar),
        Some("dialog" | "alertdialog" | "alert" | "tooltip") => Some(BoxKind::Notice),
        _ => None,
    };
    by_role.or_else(|| by_names(node)).or_else(|| by_hiding(node)).or(by_tag)
}

/// The kind according to class and identifier; the least ambiguous word wins.
fn by_names(node: &DomNode) -> Option<BoxKind> {
    let names = [node.attribute("class"), node.attribute("id"), node.attribute("data-component")];
    let mut best: Option<(u8, BoxKind)> = None;
    for name in names.into_iter().flatten() {
        for_each_word(name, |word| {
            if let Some((rank, kind)) = word_kind(word)
                && best.is_none_or(|(known, _)| rank < known)
            {
                best = Some((rank, kind));
            }
        });
    }
    best.map(|(_, kind)| kind)
}

/// Hidden elements, according to the classes of well-known style sheets.
fn by_hiding(node: &DomNode) -> Option<BoxKind> {
    const HIDDEN: [&str; 9] = [
        "sr-only",
        "visually-hidden",
        "visuallyhidden",
        "screen-reader-text",
        "screen-reader-only",
        "element-invisible",
        "d-none",
        "dis-none",
        "display-none",
    ];
    let mut names = node.attribute("class")?.split_whitespace();
    names.any(|name| HIDDEN.contains(&name)).then_some(BoxKind::Notice)
}

/// Longer names are generated.
const MAX_NAME_BYTES: usize = 400;

/// Calls `call` with each word of a name in lower case: `relatedPosts_list` has three.
pub(super) fn for_each_word(name: &str, mut call: impl FnMut(&str)) {
    let name = &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
    let mut word = String::with_capacity(24);
    let mut was_small = false;
    for c in name.chars() {
        let is_border = !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && was_small;
        if is_border && !word.is_empty() {
            call(&word);
            word.clear();
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    if !word.is_empty() {
        call(&word);
    }
}

/// Rank and kind of a word; the lowest rank wins.
fn word_kind(word: &str) -> Option<(u8, BoxKind)> {
    use BoxKind::*;
    Some(match word {
        "comment" | "comments" | "commentlist" | "commentary" | "disqus" | "respond" | "replies"
        | "reply" | "kommentar" | "kommentare" | "commentaire" | "commentaires" | "comentario"
        | "comentarios" | "commenti" | "livefyre" | "kommentarer" | "reacties" | "commentsection"
        | "commentarea" | "commentform" | "commentaries" | "usercomments" | "usercomment" | "wpdiscuz"
        | "remark42" | "isso" | "giscus" | "utterances" | "spotim" | "viafoura" | "hyvor"
        | "leserkommentare" | "leserkommentar" | "kommentarbereich" | "komentarze" | "komentarz"
        | "commentbox" | "commentbody" | "commenttext" | "commentwrap" | "commentthread"
        | "commentcontent" | "commentblock" | "commententry" | "commentsblock" | "commentslist"
        | "commentswrap" => (0, Comments),
        "cookie" | "cookies" | "consent" | "gdpr" | "modal" | "popup" | "overlay" | "lightbox"
        | "paywall" | "infobar" | "flyout" | "offcanvas" | "cookiebar" | "noprint" => (1, Notice),
        "newsletter" | "newsletters" | "subscribe" | "subscription" | "signup" | "mailchimp" | "optin"
        | "mc4wp" | "nlsignup" | "subscribebox" => (2, Newsletter),
        "ad" | "ads" | "advert" | "adverts" | "advertisement" | "advertising" | "adsense" | "adslot"
        | "adbox" | "adsbygoogle" | "sponsor" | "sponsored" | "sponsors" | "promo" | "promos"
        | "promoted" | "promotion" | "outbrain" | "taboola" | "banner" | "banners" | "anzeige"
        | "anzeigen" | "werbung" | "publicidad" | "publicite" | "dfp" | "advertorial" | "affiliate"
        | "donate" | "donation" => (3, Advertisement),
        "share" | "shares" | "sharing" | "social" | "socials" | "sharedaddy" | "addthis" | "addtoany"
        | "sociable" | "shariff" | "sharebar" | "sharethis" | "ssba" | "sharebuttons" | "socialmedia"
        | "likes" | "heateor" | "socialshare" => (4, Share),
        "related" | "relatedposts" | "relateds" | "recommended" | "recommendations" | "recommendation"
        | "popular" | "trending" | "yarpp" | "mostread" | "similar" | "crp" | "upnext" | "readmore"
        | "seealso" | "morefrom" | "relacionadas" | "relacionados" | "verwandte" | "suggested"
        | "suggestions" | "zergnet" | "revcontent" | "otherarticles" | "relatedarticles"
        | "relatedcontent" => (5, Related),
        "teaser" | "teasers" => (6, Teaser),
        "nav" | "navi" | "navigation" | "navbar" | "menu" | "submenu" | "breadcrumb" | "breadcrumbs"
        | "pagination" | "pager" | "paging" | "sitemap" | "skip" | "topbar" | "pagenav" | "subnav"
        | "mainnav" | "navbox" | "pagelinks" | "crumbs" | "postnav" | "toolbar" | "tools" | "jumplink"
        | "toc" | "prev" | "previous" | "prevnext" | "nextprev" | "postnavigation" => (6, Navigation),
        "sidebar" | "sidebars" | "widgets" | "rail" | "aside" | "secondary" => (7, Sidebar),
        "footer" | "copyright" | "colophon" | "impressum" | "disclaimer" | "foot" => (8, Footer),
        "byline" | "dateline" | "timestamp" | "postmeta" | "metadata" | "meta" | "postmetadata"
        | "entrymeta" | "tags" | "taglist" | "tagcloud" | "categories" | "catlinks" | "posted"
        | "pubdate" | "articlemeta" | "postinfo" | "postdate" | "keywords" | "editsection" | "vcard"
        | "author" | "authors" | "byl" | "autor" | "date" | "datum" | "kicker" => (9, Meta),
        "bio" | "biography" | "authorbox" | "authorbio" | "autorenbox" => (8, Biography),
        "caption" | "captions" | "credit" | "credits" | "gallery" | "slideshow" | "carousel" | "legend"
        | "bildunterschrift" | "slider" | "swiper" => (10, Caption),
        "masthead" | "siteheader" | "pageheader" => (11, Header),
        _ => return None,
    })
}

/// Whether the names of an element mark it as the text of an article.
pub(super) fn is_marked_body(node: &DomNode) -> bool {
    const MARKS: [&str; 17] = [
        "articlebody",
        "articlecontent",
        "articletext",
        "entrycontent",
        "postcontent",
        "postbody",
        "storybody",
        "storycontent",
        "storytext",
        "bodytext",
        "newstext",
        "newsbody",
        "contentbody",
        "postentry",
        "articleinner",
        "blogcontent",
        "textcontent",
    ];
    if node.attribute("itemprop").is_some_and(|names| names.contains("articleBody")) {
        return true;
    }
    let names = [node.attribute("class"), node.attribute("id")].into_iter().flatten();
    // Checks the last letter first, because this runs for every element and few names pass.
    let may_be = |name: &&str| {
        (7..=60).contains(&name.len())
            && matches!(
                name.as_bytes().last().map(u8::to_ascii_lowercase),
                Some(b'y' | b't' | b'r' | b'-' | b'_')
            )
    };
    names.flat_map(|names| names.split_whitespace()).filter(may_be).any(|name| {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        MARKS.iter().any(|mark| plain.ends_with(mark))
    })
}
