//! `/pin`: a part of a site's pages -> what it would have changed in the last month, before it is written.

use axum::body::Body;
use axum::http::Response;
use perennial_core::memento::address::Query;
use url::Url;

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::Form;
use crate::html_face::PinPage;
use perennial_archive::settings::Seed;
use perennial_engine::analyse::PartEffect;
use perennial_engine::operate::{Act, PartAct};

/// Edits that are looked at while somebody waits.
const MAX_EDITS: usize = 200;

/// The page, or the same for programs, which must name a part.
pub fn pin(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let text = |name: &str| query.get(name).unwrap_or_default().trim();
    let url = text("url");
    let archive = asking.served.pool.archive();
    let parsed = Url::parse(url).map_err(|_| Problem::bad_request("Write /pin?url=https://example.org/"))?;
    let not_followed =
        || Problem::bad_request(format!("{url} belongs to no site that is followed: only those have pins."));
    let seed = archive.settings().seeds.of_page(&parsed).ok_or_else(not_followed)?;
    let act = if text("act") == "ignore" { "ignore" } else { "pin" };
    let asked = if text("selector").is_empty() { None } else { Some(part_of(seed, act, query)) };
    let (mut effect, mut problem) = (None::<PartEffect>, None);
    match (asked, form) {
        (Some(Ok(part)), _) => {
            let found = part.effect(&archive, seed, MAX_EDITS, &|| ());
            effect = Some(found.map_err(|error| Problem::internal(&error))?);
        }
        (Some(Err(wrong)), Form::Html) => problem = Some(wrong),
        (Some(Err(wrong)), Form::Json) => return Err(Problem::bad_request(wrong)),
        (None, Form::Html) => {}
        (None, Form::Json) => return Err(Problem::bad_request("Write /api/pin?url=...&selector=...")),
    }
    let page = PinPage {
        place: place_of(asking),
        url,
        site: seed.scope.seed.as_str(),
        act,
        selector: text("selector"),
        importance: text("importance"),
        problem: problem.as_deref(),
        effect: effect.as_ref(),
    };
    Ok(form.answer(|| page.html(), || page.json()))
}

/// The part that is asked about, read as the act itself would be.
fn part_of(seed: &Seed, act: &str, query: &Query) -> Result<PartAct, String> {
    let read = Act::read(|name| match name {
        "act" => Some(act),
        "url" => Some(seed.scope.seed.as_str()),
        name => query.get(name),
    })?;
    match read {
        Act::Part(_, part) => Ok(part),
        other => Err(format!("{} names no part", other.name())),
    }
}
