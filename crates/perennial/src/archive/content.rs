//! HTTP head -> index fields, and what kind of answer it is.
//!
//! Used by the writer on what it writes and by the scan on what it reads, so that both give the same rows.

use perennial_core::http::HttpHead;
use perennial_core::verdict::{self, AnswerKind};
use url::Url;

use super::links::redirect_of;
use crate::store::Kind;

/// The media type as index files have it: the field's value up to the first blank or semicolon.
pub(crate) fn index_mime(content_type: &str) -> Option<String> {
    let word = content_type.split(|c: char| c == ';' || c.is_whitespace()).next()?;
    (!word.is_empty()).then(|| word.to_string())
}

/// What kind of answer a record holds, and what tells it from another where that is not its digest; `None` when the record is
/// no look at a page.
pub(crate) fn look_of(
    url: &str,
    kind: Kind,
    head: Option<&HttpHead>,
    is_broken_off: bool,
) -> (Option<AnswerKind>, Option<String>) {
    let Some((head, status)) = head.and_then(|head| Some((head, head.status()?))) else {
        return (None, None);
    };
    if !matches!(kind, Kind::Response | Kind::Revisit) {
        return (None, None);
    }
    let answer = AnswerKind::of_answer(status, is_broken_off);
    let target =
        (answer == AnswerKind::Redirect).then(|| redirect_of(&Url::parse(url).ok()?, head)).flatten();
    let target = target.as_ref().map(Url::as_str);
    (Some(answer), verdict::identity_of(answer, status, target))
}
