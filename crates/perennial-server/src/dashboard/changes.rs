//! `/changes?...`: the changes that match a query, one part of the list at a time. The URL contains the whole state.

use maud::{Markup, html};
use perennial_core::memento::replay_url::escape;
use perennial_core::notice::{ChangeKind, ReportedElement};
use schemars::JsonSchema;
use serde::Serialize;

use super::change::{ChangeSummary, ChangeView, entry, event};
use super::components::{Operations, Time, alert, choice, empty, tick};
use super::layout::{Place, Shell, Tab};
use super::{Problem, Request, ResponseFormat};
use perennial_archive::store::{ChangeKey, Store};
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::AdFilters;
use perennial_engine::changes::{ChangeFinder, ChangeQuery, MatchingChange, WorkLimits};
use perennial_engine::html::dates::{counted, grouped};

/// Limits per part of the list: changes shown, changes read with both versions, changes examined.
const BOUNDS: WorkLimits = WorkLimits { max_found: 25, max_read: 300, max_rows: 20_000 };
/// The most changes that a program may request at a time.
const MAX_LIMIT: usize = 200;

/// The parameters of the query language.
const NAMES: [&str; 15] = [
    "site", "page", "since", "until", "least", "kind", "appears", "vanishes", "op", "element", "block",
    "text", "selector", "noise", "order",
];

/// The given parameters of a query, by name.
#[derive(Clone, Default)]
pub(crate) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    pub(crate) fn from_request(request: &Request<'_>) -> Parameters {
        Parameters(
            NAMES.into_iter().filter_map(|name| Some((name, request.given(name)?.to_owned()))).collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, or an empty string.
    fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Replaces a parameter.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> Parameters {
        let others = self.0.iter().filter(|(known, _)| *known != name).cloned();
        Parameters(others.chain([(name, value.to_owned())]).collect())
    }

    /// Sets a parameter that is missing.
    pub(crate) fn or(self, name: &'static str, value: &str) -> Parameters {
        if self.get(name).is_some() { self } else { self.with(name, value) }
    }

    /// Encodes the parameters for a URL.
    pub(crate) fn query(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={}", escape(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// A select field. A value that is not offered remains chosen.
    pub(crate) fn choice(&self, name: &str, label: &str, choices: &[(&str, &str)]) -> Markup {
        let value = self.value(name);
        let other = (!choices.iter().any(|(known, _)| *known == value)).then_some((value, value));
        choice(
            name,
            label,
            choices.iter().copied().chain(other).map(|(known, words)| (known, words, known == value)),
        )
    }

    fn text(&self, name: &str, label: &str, size: u32, hint: &str) -> Markup {
        html! {
            label {
                (label) " "
                input type="text" name=(name) size=(size) value=(self.value(name)) placeholder=(hint) autocomplete="off";
            }
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Changes")]
pub(crate) struct ChangesView {
    changes: Vec<MatchingChange>,
    /// The position at which the next part of the list begins.
    next: Option<String>,
    /// Changes that were examined for this part.
    n_examined: usize,
    #[serde(skip)]
    parameters: Parameters,
    #[serde(skip)]
    problem: Option<String>,
    /// The same changes for the page.
    #[serde(skip)]
    shown: Vec<ChangeView>,
    #[serde(skip)]
    is_first_part: bool,
}

pub(crate) fn load(request: &Request<'_>) -> Result<ChangesView, Problem> {
    let read = || -> Result<(ChangeQuery, Option<ChangeKey>, usize), String> {
        let query = ChangeQuery::read(|name| request.query.get(name), now())?;
        let after = request.given("after").map(str::parse).transpose();
        let after = after.map_err(|hint: String| format!("after: {hint}"))?;
        let limit = match request.given("limit").map(str::parse::<usize>) {
            None => BOUNDS.max_found,
            Some(Ok(limit)) if (1..=MAX_LIMIT).contains(&limit) => limit,
            Some(_) => return Err(format!("limit: write a number from 1 to {MAX_LIMIT}")),
        };
        Ok((query, after, limit))
    };
    let mut view = ChangesView {
        changes: Vec::new(),
        next: None,
        n_examined: 0,
        parameters: Parameters::from_request(request),
        problem: None,
        shown: Vec::new(),
        is_first_part: request.given("after").is_none(),
    };
    let (query, after, limit) = match (read(), request.form) {
        (Ok(read), _) => read,
        (Err(problem), ResponseFormat::Json) => return Err(Problem::bad_request(problem)),
        (Err(problem), ResponseFormat::Html) => {
            view.problem = Some(problem);
            return Ok(view);
        }
    };
    request.with(|snapshot: &Snapshot| {
        let filters = AdFilters::built_in();
        let mut finder = ChangeFinder::new(snapshot.archive(), snapshot.store(), &filters, &query)?;
        let found = finder.find(after.as_ref(), WorkLimits { max_found: limit, ..BOUNDS })?;
        view.next = found.next.map(|next| next.to_string());
        view.n_examined = found.n_rows;
        match request.form {
            ResponseFormat::Json => view.changes = found.changes,
            ResponseFormat::Html => {
                let shown = found.changes.into_iter().map(|change| entry_view(snapshot.store(), change));
                view.shown = shown.collect::<anyhow::Result<_>>()?;
            }
        }
        Ok(view)
    })
}

/// A change with the requested words and a thumbnail of the page.
fn entry_view(store: &Store, change: MatchingChange) -> anyhow::Result<ChangeView> {
    let reported =
        ChangeSummary { n_folded: change.n_folded, ..ChangeSummary::new(change.operations.iter()) };
    let tree = store.tree_at(change.page, change.after)?;
    let brief = ChangeView {
        event: event(change.status),
        time: change.after.into(),
        before: change.before.map(Time),
        importance: change.importance,
        is_indexed: change.is_indexed,
        title: change.title,
        url: change.url,
        part: None,
        words: Vec::new(),
        operations: Operations::default(),
        n_folded: 0,
        n_more: 0,
        thumbnail: None,
        similar: Vec::new(),
    };
    Ok(brief.with(reported, tree))
}

/// Options of a select field: value and label.
type Choices = &'static [(&'static str, &'static str)];

/// Fields that are folded while they are empty.
const FOLDED: [&str; 9] =
    ["kind", "appears", "vanishes", "op", "element", "block", "text", "selector", "noise"];

const OPS: Choices =
    &[("", "any"), ("insert", "inserted"), ("delete", "deleted"), ("update", "updated"), ("move", "moved")];
const BLOCKS: Choices = &[
    ("", "anywhere"),
    ("main", "main part"),
    ("header", "header"),
    ("nav", "navigation"),
    ("footer", "footer"),
    ("comments", "comments"),
    ("ad", "advertisements"),
    ("other", "other parts"),
];
/// Least importances to choose from.
pub(crate) const LEAST: [(&str, &str); 5] = [
    ("", "any"),
    ("0.01", "0.01 or more"),
    ("0.1", "0.1 or more (medium)"),
    ("0.3", "0.3 or more (large)"),
    ("0.6", "0.6 or more"),
];
pub(crate) const ORDERS: Choices =
    &[("", "latest first"), ("oldest", "oldest first"), ("importance", "most important first")];

pub(crate) fn render(view: &ChangesView, place: Place<'_>) -> Markup {
    let n = counted(view.shown.len() as u64, "change", "changes");
    let heading = match (&view.problem, view.shown.is_empty(), view.next.is_some()) {
        (Some(_), ..) => "Search changes".to_owned(),
        (None, true, false) => "No matching change".to_owned(),
        (None, true, true) => "No matching change so far".to_owned(),
        (None, false, true) => format!("{n} and more"),
        (None, false, false) => n,
    };
    let query = view.parameters.query();
    let main = html! {
        div.head {
            div {
                h1 { (heading) }
                @if view.problem.is_none() {
                    p.lead {
                        (counted(view.n_examined as u64, "change", "changes")) " examined for this part of the list. "
                        a href={ (place.base) "/changes.atom?" (query) } { "Subscribe to this search" }
                    }
                }
            }
        }
        (form(&view.parameters, place.base))
        @match &view.problem {
            Some(problem) => (alert(problem)),
            None => { @for change in &view.shown { (entry(place.base, change)) } (end(view, place.base)) }
        }
    };
    let json = view.problem.is_none().then(|| format!("/api/changes?{query}"));
    Shell::new(place, Tab::Changes, "Search changes", json).page(&main)
}

fn form(parameters: &Parameters, base: &str) -> Markup {
    let is_open = FOLDED.iter().any(|name| parameters.get(name).is_some());
    let kinds: Vec<(&str, &str)> =
        [("", "any")].into_iter().chain(ChangeKind::ALL.map(|kind| (kind.name(), kind.name()))).collect();
    let elements = ReportedElement::ALL.map(|element| match element {
        ReportedElement::Item => ("item", "headline"),
        element => (element.name(), element.name()),
    });
    let elements: Vec<(&str, &str)> = [("", "any")].into_iter().chain(elements).collect();
    html! {
        form.filters aria-label="Search" action={ (base) "/changes" } {
            (parameters.text(if parameters.get("page").is_none() { "site" } else { "page" }, "Site or page", 22, "all"))
            (parameters.text("since", "Since", 12, "2026-01-28 or 7d"))
            (parameters.text("until", "Before", 12, "2026-01-30"))
            (parameters.choice("least", "Importance", &LEAST))
            (parameters.choice("order", "Order", ORDERS))
            button.btn.go { "Show" }
            details.further open[is_open] {
                summary { "Kind, words, operation, part of the page" }
                div.filters {
                    (parameters.choice("kind", "Kind", &kinds))
                    (parameters.text("appears", "Words that appeared", 18, "\"limit value\""))
                    (parameters.text("vanishes", "Words that vanished", 18, "resign* or /regex/"))
                    (parameters.choice("op", "Operation", OPS))
                    (parameters.choice("element", "Element", &elements))
                    (parameters.choice("block", "Where", BLOCKS))
                    (parameters.text("text", "Words in the operation", 16, "any"))
                    (parameters.text("selector", "CSS selector", 14, "#price"))
                    (tick("noise", "include noise", parameters.get("noise").is_some()))
                }
            }
        }
    }
}

fn end(view: &ChangesView, base: &str) -> Markup {
    let query = view.parameters.query();
    let and = if query.is_empty() { "" } else { "&" };
    html! {
        @if let Some(next) = &view.next {
            p.more {
                a.btn rel="next" href={ (base) "/changes?" (query) (and) "after=" (escape(next)) } { "Next" } " "
                span.mute { (grouped(view.n_examined as u64)) " examined for this part" }
            }
        } @else if view.shown.is_empty() && view.is_first_part {
            (empty(
                "No change matches",
                "Try a longer span, a lower importance or fewer words. Captures that are not yet analysed are not included.",
                None,
            ))
        } @else {
            p.more.mute { "End of the list." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_keeps_and_escapes_its_values() {
        let hostile = "\"><script>alert(1)</script>".to_owned();
        let given =
            vec![("site", hostile.clone()), ("op", "insert".to_owned()), ("least", "0.25".to_owned())];
        let view = ChangesView {
            changes: Vec::new(),
            next: Some("1.2.0.5".to_owned()),
            n_examined: 1_234,
            parameters: Parameters(given),
            problem: None,
            shown: Vec::new(),
            is_first_part: true,
        };
        let place = Place { name: "a", base: "/b", ..Place::default() };
        let html = render(&view, place).0;
        assert!(!html.contains("<script") && html.contains("value=\"insert\" selected"), "{html}");
        assert!(
            html.contains("value=\"0.25\" selected") && html.contains("No matching change so far"),
            "{html}"
        );
        assert!(html.contains("op=insert&amp;least=0.25&amp;after=1.2.0.5"), "{html}");
        assert!(html.contains("/b/changes.atom?site=%22%3E%3Cscript"), "{html}");
        let wrong = render(&ChangesView { problem: Some(hostile), ..view }, place).0;
        assert!(
            !wrong.contains("<script") && wrong.contains("class=\"alert\"") && !wrong.contains(">Next<"),
            "{wrong}"
        );
    }
}
