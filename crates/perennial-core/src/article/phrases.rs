//! Lines that sites put around an article in so many words: calls to read on, to subscribe, to share; bylines; dates.
//!
//! Each question is asked of a line that stands where such lines stand, and of its beginning, so that an article that speaks of
//! newsletters loses nothing.

use crate::time::dates;

/// Lines that are never part of an object, in small letters and without marks at their ends.
const FURNITURE: [&str; 62] = [
    "advertisement",
    "advertisements",
    "advertising",
    "ad",
    "anzeige",
    "werbung",
    "publicidad",
    "publicidade",
    "publicité",
    "pubblicità",
    "advertentie",
    "reklama",
    "реклама",
    "story continues below advertisement",
    "continue reading the main story",
    "article continues below advertisement",
    "story continues",
    "continue reading",
    "close",
    "loading",
    "loading...",
    "share",
    "share this",
    "share this article",
    "share this post",
    "share this story",
    "share on facebook",
    "share on twitter",
    "tweet",
    "email",
    "print",
    "comments",
    "comment",
    "view comments",
    "show comments",
    "leave a comment",
    "reply",
    "facebook",
    "twitter",
    "whatsapp",
    "linkedin",
    "pinterest",
    "reddit",
    "copy link",
    "link copied",
    "save",
    "bookmark",
    "teilen",
    "drucken",
    "kommentare",
    "compartilhar",
    "compartir",
    "partager",
    "condividi",
    "imprimer",
    "imprimir",
    "back to top",
    "nach oben",
    "skip to content",
    "image",
    "play video",
    "embed",
];

/// How a line begins that leads to other pages.
const READ_ON: [&str; 100] = [
    "veja também",
    "veja mais",
    "más sobre",
    "mas sobre",
    "más noticias",
    "te puede interesar",
    "zum weiterlesen",
    "weiterlesen",
    "verwandte",
    "weitere informationen",
    "weitere themen",
    "mehr informationen",
    "mehr aus",
    "mehr über",
    "ähnliche artikel",
    "ähnliche beiträge",
    "passend zum thema",
    "lesetipp",
    "plus d'infos",
    "sur le même sujet",
    "articles similaires",
    "voir aussi",
    "przeczytaj",
    "czytaj",
    "więcej",
    "lees ook",
    "meer over",
    "läs också",
    "les også",
    "最新",
    "関連",
    "相关",
    "相關",
    "more great",
    "more reading",
    "more articles",
    "more posts",
    "more coverage",
    "more in",
    "latest stories",
    "latest news",
    "popular stories",
    "trending",
    "about the author",
    "über den autor",
    "über die autorin",
    "sobre el autor",
    "à propos de l'auteur",
    "read more",
    "read also",
    "read next",
    "read:",
    "also read",
    "more:",
    "related:",
    "related story",
    "related article",
    "related stories",
    "related articles",
    "related posts",
    "related content",
    "related news",
    "see also",
    "see more",
    "more on this",
    "more about",
    "more from",
    "more news",
    "more stories",
    "don't miss",
    "don’t miss",
    "must read",
    "recommended",
    "you may also",
    "you might also",
    "you may like",
    "up next",
    "next up",
    "watch:",
    "watch now",
    "further reading",
    "click here",
    "lesen sie auch",
    "lesen sie",
    "mehr zum thema",
    "mehr dazu",
    "mehr lesen",
    "weitere artikel",
    "das könnte",
    "auch interessant",
    "siehe auch",
    "lire aussi",
    "à lire aussi",
    "a lire aussi",
    "leia também",
    "leia mais",
    "lea también",
    "lee también",
    "leggi anche",
    "читайте также",
];

/// How a line begins, or what it says, that asks for something.
const ASKS: [&str; 68] = [
    "for the latest",
    "hazte miembro",
    "unterstütze",
    "unterstützen sie",
    "möchten sie",
    "want more",
    "do you want to be informed",
    "like this article",
    "stay up to date",
    "stay informed",
    "receive our",
    "get notified",
    "register now",
    "log in to",
    "already a",
    "anmelden",
    "jetzt anmelden",
    "post comment",
    "subscribe",
    "sign up",
    "signup",
    "sign-up",
    "follow us",
    "follow @",
    "like us on",
    "join our",
    "join the conversation",
    "get the latest",
    "get our",
    "get breaking news",
    "download our app",
    "download the",
    "support our",
    "donate",
    "become a member",
    "enjoyed this",
    "if you enjoyed",
    "if you liked",
    "thanks for reading",
    "thank you for reading",
    "have something to say",
    "let us know",
    "share your thoughts",
    "what do you think",
    "tell us",
    "send us",
    "contact us",
    "leave a reply",
    "leave a comment",
    "leave your comment",
    "post a comment",
    "this site uses akismet",
    "your email address",
    "newsletter",
    "abonnieren",
    "jetzt abonnieren",
    "melden sie sich",
    "folgen sie uns",
    "folge uns",
    "hat ihnen der artikel",
    "suivez-nous",
    "abonnez-vous",
    "inscrivez-vous",
    "síguenos",
    "suscríbete",
    "siga-nos",
    "iscriviti",
    "seguici",
];

/// What such a line says somewhere.
const ASKS_WITHIN: [&str; 22] = [
    "our newsletter",
    "newsletter.",
    "newsletters.",
    "sign up for",
    "subscribe to",
    "subscribe now",
    "follow us on",
    "us on facebook",
    "us on twitter",
    "on facebook and twitter",
    "and instagram.",
    "on facebook, twitter",
    "unseren newsletter",
    "unserem newsletter",
    "newsletter an",
    "auf facebook",
    "notre newsletter",
    "nuestro boletín",
    "nossa newsletter",
    "like to hear what you think",
    "want to hear what you think",
    "you enjoyed this article",
];

/// Small letters, single spaces, no marks at the ends; bounded, because only short lines are asked about.
pub fn folded(line: &str) -> String {
    let line = &line[..line.floor_char_boundary(300)];
    let small = line.to_lowercase();
    let trimmed = small.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | ':' | '\''));
    trimmed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a whole line is the site's furniture.
pub(super) fn is_furniture(folded: &str) -> bool {
    folded.len() <= 40 && FURNITURE.contains(&folded.trim_end_matches(':'))
}

/// Whether a line leads to other pages.
pub(super) fn leads_on(folded: &str) -> bool {
    begins_with(folded, &READ_ON)
}

/// Whether a line asks the reader to do something.
pub(super) fn asks(folded: &str) -> bool {
    begins_with(folded, &ASKS) || ASKS_WITHIN.iter().any(|phrase| folded.contains(phrase))
}

fn begins_with(folded: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| folded.starts_with(phrase))
}

/// Whether a short line lists what the page is filed under.
pub(super) fn is_filing(folded: &str) -> bool {
    const STARTS: [&str; 17] = [
        "tags:",
        "tag:",
        "tags ",
        "related tags",
        "topics:",
        "topics",
        "filed under",
        "categories:",
        "category:",
        "keywords:",
        "schlagwort",
        "schlagwörter",
        "stichwort",
        "themen:",
        "kategorie",
        "etiquetas",
        "mots-clés",
    ];
    folded.len() <= 160 && begins_with(folded, &STARTS)
}

/// Whether a short line tells who wrote, or when.
pub(super) fn is_byline(folded: &str) -> bool {
    const WHO: [&str; 11] = [
        "by ",
        "by: ",
        "von ",
        "por ",
        "par ",
        "di ",
        "written by",
        "posted by",
        "submitted by",
        "author:",
        "text:",
    ];
    const WHEN: [&str; 15] = [
        "posted",
        "published",
        "first published",
        "updated",
        "last updated",
        "veröffentlicht",
        "aktualisiert",
        "publié",
        "mis à jour",
        "publicado",
        "atualizado",
        "pubblicato",
        "date:",
        "reading time",
        "stand:",
    ];
    // "Updated dependencies" and "By the end of the year" begin text: a time has digits, and a name has few words.
    let has_digit = || folded.contains(|c: char| c.is_ascii_digit());
    let is_name = || folded.split_whitespace().count() <= MAX_BYLINE_WORDS;
    folded.len() <= 120
        && (begins_with(folded, &WHO) && is_name()
            || begins_with(folded, &WHEN) && has_digit()
            || is_date_like(folded)
            || is_dated(folded)
            || folded.ends_with("min read"))
}

/// Words of a line that tells who wrote.
const MAX_BYLINE_WORDS: usize = 9;

/// Whether a line is a date with a name or two: no sentence, but a whole date.
fn is_dated(folded: &str) -> bool {
    let n_words = folded.split_whitespace().count();
    folded.len() <= 90 && n_words <= 14 && !folded.contains(". ") && dates::find(folded).is_some()
}

/// Whether a line is a date and little else: at least a year or a time, a third of it digits.
pub(super) fn is_date_like(folded: &str) -> bool {
    let n_letters = folded.chars().filter(|c| c.is_alphabetic()).count();
    let n_digits = folded.chars().filter(char::is_ascii_digit).count();
    let has_year = folded
        .split(|c: char| !c.is_ascii_digit())
        .any(|number| number.len() == 4 && (number.starts_with("19") || number.starts_with("20")));
    let has_clock = folded.split_whitespace().any(|word| {
        word.split_once(':').is_some_and(|(hour, minute)| {
            !hour.is_empty()
                && hour.len() <= 2
                && hour.bytes().all(|b| b.is_ascii_digit())
                && minute.bytes().take(2).filter(u8::is_ascii_digit).count() == 2
        })
    });
    (has_year || has_clock) && n_letters <= 30 && n_digits * 4 >= n_letters
}

/// How a line begins that heads what readers wrote.
const COMMENT_STARTS: [&str; 26] = [
    "add comment",
    "write a comment",
    "what people are saying",
    "what readers are saying",
    "reader comments",
    "readers' comments",
    "user comments",
    "your comments",
    "leserkommentare",
    "ihre kommentare",
    "deine meinung",
    "ihre meinung",
    "kommentar schreiben",
    "kommentieren sie",
    "leave a reply",
    "leave a comment",
    "leave a response",
    "post a comment",
    "add a comment",
    "join the discussion",
    "schreibe einen kommentar",
    "kommentar hinterlassen",
    "laisser un commentaire",
    "deja un comentario",
    "deixe um comentário",
    "lascia un commento",
];

/// Whether a short line is the heading of what readers wrote: `12 comments`, `Comments (3)`, `3 thoughts on ...`.
pub(super) fn is_comment_heading(folded: &str) -> bool {
    const WORDS: [&str; 22] = [
        "comments",
        "comment",
        "kommentare",
        "kommentar",
        "commentaires",
        "commentaire",
        "comentarios",
        "comentários",
        "commenti",
        "reacties",
        "responses",
        "response",
        "replies",
        "antworten",
        "réponses",
        "respuestas",
        "respostas",
        "komentarze",
        "комментарии",
        "комментариев",
        "yorumlar",
        "kommentarer",
    ];
    let plain: String =
        folded.chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '(' | ')' | ':')).collect();
    let plain = plain.trim();
    let mut words = plain.split_whitespace();
    let first = words.next().unwrap_or_default();
    let n_more = words.count();
    let has_count = folded.starts_with(|c: char| c.is_ascii_digit());
    // An article may have a part named so: alone they tell nothing.
    const WITH_COUNT: [&str; 7] =
        ["responses", "response", "replies", "antworten", "réponses", "respuestas", "respostas"];
    let is_counted = has_count
        && (WORDS.contains(&first) || plain.starts_with("thoughts on") || plain.starts_with("thought on"));
    is_counted
        || n_more == 0
            && WORDS.contains(&first)
            && (!WITH_COUNT.contains(&first) || plain.len() < folded.len())
        || COMMENT_STARTS.iter().any(|start| folded.starts_with(start))
}
