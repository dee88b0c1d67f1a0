//! A choice of changes -> how somebody is told of them, and who is told already.

use axum::body::Body;
use axum::http::Response;
use perennial_core::memento::address::Query;

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::Form;
use crate::html_face::{NoticesPage, RuleLine};
use perennial_archive::Snapshot;
use perennial_archive::settings::{Shape, Target};
use perennial_archive::store::Outbox;

/// `/notices?place=...&least=...`.
pub fn notices(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let given = |name: &str| query.get(name).filter(|text| !text.is_empty());
    let least = match given("least").map(str::parse) {
        None => None,
        Some(Ok(least)) if (0.0..=1.0).contains(&least) => Some(least),
        Some(_) => return Err(Problem::bad_request("Write least from 0 to 1, such as least=0.1.")),
    };
    let rules = asking.served.pool.with(rules).and_then(|rules| rules);
    let rules = rules.map_err(|error| Problem::internal(&error))?;
    let page = NoticesPage { place: place_of(asking), of: given("place"), least, rules: &rules };
    Ok(form.answer(|| page.html(), || page.json()))
}

fn rules(snapshot: &Snapshot) -> anyhow::Result<Vec<RuleLine>> {
    let archive = snapshot.archive();
    let states = match Outbox::open_read(&archive.outbox_path())? {
        Some(outbox) => outbox.states()?,
        None => Vec::new(),
    };
    let line = |rule: &perennial_archive::settings::NotifyRule| {
        let state = states.iter().find(|state| state.name == rule.name);
        RuleLine {
            name: rule.name.clone(),
            kind: kind_of(&rule.to),
            sent: state.map(|state| (state.n_sent, state.n_waiting)),
            last_sent: state.and_then(|state| state.last_sent.clone()),
            // What a receiver answered may name its address, which may be a secret.
            error: state
                .and_then(|state| state.error.as_ref())
                .map(|_| "`perennial notify list` says why".to_string()),
        }
    };
    Ok(archive.settings().notify.iter().map(line).collect())
}

fn kind_of(target: &Target) -> &'static str {
    match target {
        Target::Web(Shape::Webhook, _) => "webhook",
        Target::Web(Shape::Slack, _) => "Slack",
        Target::Web(Shape::Ntfy, _) => "ntfy",
        Target::Web(Shape::Apprise, _) => "Apprise",
        Target::Command(_) => "program",
        Target::Email(_) => "e-mail",
    }
}
