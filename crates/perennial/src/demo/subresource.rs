//! A URL of a site and an instant -> its style sheet or picture.
//!
//! By default these subresources do not change. With `subresources_change` every edition contains a comment with its
//! period of validity. Tests use it to check which edition a replay shows. The layout of pages does not depend on the
//! edition.

use perennial_core::rng::Rng;
use perennial_core::time::{Span, Timestamp};

use super::template;
use super::web::LivingWeb;

/// A subresource of a page at an instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DemoSubresource {
    pub(super) content_type: &'static str,
    /// An ETag, which changes with every edition.
    pub(super) validator: String,
    /// The Last-Modified header of a file. Banners are generated and have none.
    pub(super) modified: Option<Timestamp>,
    pub(super) body: Vec<u8>,
}

/// The subresource at a path, if there is one.
pub(super) fn subresource(
    web: &LivingWeb,
    site: usize,
    path: &str,
    now: Timestamp,
) -> Option<DemoSubresource> {
    let banner =
        path.strip_prefix("/ads/banner-").and_then(|name| name.strip_suffix(".gif")?.parse::<u64>().ok());
    let (number, mean_hours, is_file) = match path {
        "/draw.js" => (0, 1, false),
        "/style.css" => (1, 60, true),
        "/logo.gif" => (2, 120, true),
        "/photo.gif" => (3, 36, true),
        _ => (10 + banner?, 12, false),
    };
    let is_changing = web.subresources_change && number > 0;
    let edition =
        if is_changing { Edition::at(web, [site as u64, number], mean_hours, now) } else { Edition::ONLY };
    let comment = if is_changing { edition.comment() } else { String::new() };
    let (content_type, body) = match number {
        0 => ("text/javascript", template::DRAW_SCRIPT.as_bytes().to_vec()),
        1 if is_changing => ("text/css", format!("{}\n/* {comment} */\n", template::STYLE).into_bytes()),
        1 => ("text/css", template::STYLE.as_bytes().to_vec()),
        2 => ("image/gif", gif(120, 60, &comment)),
        3 => ("image/gif", gif(320, 240, &comment)),
        _ => ("image/gif", gif(728, 90, &comment)),
    };
    let modified = (is_changing && is_file).then_some(edition.from);
    Some(DemoSubresource { content_type, validator: format!("\"v{}\"", edition.number), modified, body })
}

/// One edition of a subresource, with its period of validity.
struct Edition {
    number: u64,
    from: Timestamp,
    until: Timestamp,
}

impl Edition {
    const ONLY: Edition =
        Edition { number: 1, from: Timestamp::from_secs(0), until: Timestamp::from_secs(0) };

    /// The edition at an instant. The time between editions is a quarter to seven quarters of the mean.
    fn at(web: &LivingWeb, of: [u64; 2], mean_hours: u64, now: Timestamp) -> Edition {
        let lifetime = |number: u64| {
            let rng = Rng::from_parts(&[web.seed, 71, of[0], of[1], number]).bits();
            Span::from_secs((mean_hours * 900 + rng % (mean_hours * 5_400)) as i64)
        };
        let mut edition = Edition { number: 1, from: web.start, until: web.start + lifetime(1) };
        while edition.until <= now {
            let number = edition.number + 1;
            edition = Edition { number, from: edition.until, until: edition.until + lifetime(number) };
        }
        edition
    }

    fn comment(&self) -> String {
        format!("edition {} from {} until {}", self.number, self.from.as_secs(), self.until.as_secs())
    }
}

/// Makes a GIF of one colour with the given size, and a comment unless it is empty. A comment block has at most 255
/// bytes.
fn gif(width: u16, height: u16, comment: &str) -> Vec<u8> {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend_from_slice(&width.to_le_bytes());
    bytes.extend_from_slice(&height.to_le_bytes());
    bytes.extend_from_slice(&[0x80, 0, 0, 0x22, 0x44, 0x66, 0xee, 0xee, 0xe0]);
    if let (false, Ok(length)) = (comment.is_empty(), u8::try_from(comment.len())) {
        bytes.extend_from_slice(&[0x21, 0xfe, length]);
        bytes.extend_from_slice(comment.as_bytes());
        bytes.push(0);
    }
    bytes.extend_from_slice(&[0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editions_follow_each_other_and_say_when_they_are_there() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let mut web = LivingWeb::new(1, start, 14);
        let later = start + Span::from_hours(200);
        let still = subresource(&web, 0, "/style.css", start).unwrap();
        assert_eq!(still, subresource(&web, 0, "/style.css", later).unwrap());
        assert_eq!((still.body.as_slice(), still.modified), (template::STYLE.as_bytes(), None));
        web.subresources_change = true;
        for path in ["/style.css", "/logo.gif", "/photo.gif", "/ads/banner-3.gif"] {
            let mut editions = Vec::new();
            for hour in 0..14 * 24 {
                let now = start + Span::from_hours(hour);
                let there = subresource(&web, 2, path, now).unwrap();
                let text = String::from_utf8_lossy(&there.body).into_owned();
                let said = text.split("edition ").nth(1).unwrap();
                let numbers: Vec<i64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
                assert!(numbers[1] <= now.as_secs(), "{said}");
                assert!(there.modified.is_none_or(|modified| modified.as_secs() == numbers[1]));
                editions.push(numbers[0]);
            }
            assert!(editions.is_sorted() && *editions.last().unwrap() > 1, "{path}: {editions:?}");
        }
        assert_eq!(subresource(&web, 0, "/news", start), None);
        assert_eq!(subresource(&web, 0, "/ads/banner-x.gif", start), None);
    }
}
