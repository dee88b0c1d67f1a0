//! `/changes?...`: the changes that match a query, a part of the list at a time. The link is the state.

use maud::{Markup, html};
use perennial_core::memento::address::escape;
use perennial_core::notice::{ChangeKind, ReportedElement};
use schemars::JsonSchema;
use serde::Serialize;

use super::change::{Reported, ShownChange, entry, event_of};
use super::components::{Operations, Time, alert, choice, empty, tick};
use super::layout::{Place, Shell, Tab};
use super::{Form, Problem, Request};
use perennial_archive::store::{ChangeKey, Store};
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::AdFilters;
use perennial_engine::changes::{ChangeFinder, ChangeQuery, MatchingChange, WorkLimits};
use perennial_engine::html::dates::{counted, grouped};

/// Work for one page: changes that are shown, read with both versions, and looked at.
const BOUNDS: WorkLimits = WorkLimits { max_found: 25, max_read: 300, max_rows: 20_000 };
/// Changes that a program may ask for at a time.
const MAX_LIMIT: usize = 200;

/// The parameters of the query language.
const NAMES: [&str; 15] = [
    "site", "page", "since", "until", "least", "kind", "appears", "vanishes", "op", "element", "block",
    "text", "selector", "noise", "order",
];

/// The parameters of a query as they were given, by name.
#[derive(Clone, Default)]
pub(crate) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// Those of a request.
    pub(crate) fn of(request: &Request<'_>) -> Parameters {
        Parameters(
            NAMES.into_iter().filter_map(|name| Some((name, request.given(name)?.to_owned()))).collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, or nothing.
    fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// The same with another value of a parameter.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> Parameters {
        let others = self.0.iter().filter(|(known, _)| *known != name).cloned();
        Parameters(others.chain([(name, value.to_owned())]).collect())
    }

    /// The same with a value for a parameter that has none.
    pub(crate) fn or(self, name: &'static str, value: &str) -> Parameters {
        if self.get(name).is_some() { self } else { self.with(name, value) }
    }

    /// As the query of an address.
    pub(crate) fn query(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={}", escape(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// A field to choose a value from. A value that is not offered stays chosen.
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

/// The page of changes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Changes")]
pub(crate) struct View {
    changes: Vec<MatchingChange>,
    /// Where the list goes on.
    next: Option<String>,
    /// How many changes were looked at for this part.
    n_looked_at: usize,
    #[serde(skip)]
    parameters: Parameters,
    #[serde(skip)]
    problem: Option<String>,
    /// The changes of this part for people.
    #[serde(skip)]
    shown: Vec<ShownChange>,
    #[serde(skip)]
    is_first_part: bool,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let read = || -> Result<(ChangeQuery, Option<ChangeKey>, usize), String> {
        let question = ChangeQuery::read(|name| request.query.get(name), now())?;
        let after = request.given("after").map(str::parse).transpose();
        let after = after.map_err(|hint: String| format!("after: {hint}."))?;
        let limit = match request.given("limit").map(str::parse::<usize>) {
            None => BOUNDS.max_found,
            Some(Ok(limit)) if (1..=MAX_LIMIT).contains(&limit) => limit,
            Some(_) => return Err(format!("limit: write a number from 1 to {MAX_LIMIT}.")),
        };
        Ok((question, after, limit))
    };
    let mut view = View {
        changes: Vec::new(),
        next: None,
        n_looked_at: 0,
        parameters: Parameters::of(request),
        problem: None,
        shown: Vec::new(),
        is_first_part: request.given("after").is_none(),
    };
    let (question, after, limit) = match (read(), request.form) {
        (Ok(read), _) => read,
        (Err(problem), Form::Json) => return Err(Problem::bad_request(problem)),
        (Err(problem), Form::Html) => {
            view.problem = Some(problem);
            return Ok(view);
        }
    };
    request.with(|snapshot: &Snapshot| {
        let filters = AdFilters::built_in();
        let mut finder = ChangeFinder::new(snapshot.archive(), snapshot.store(), &filters, &question)?;
        let found = finder.find(after.as_ref(), WorkLimits { max_found: limit, ..BOUNDS })?;
        view.next = found.next.map(|next| next.to_string());
        view.n_looked_at = found.n_rows;
        match request.form {
            Form::Json => view.changes = found.changes,
            Form::Html => {
                let shown = found.changes.into_iter().map(|change| shown(snapshot.store(), change));
                view.shown = shown.collect::<anyhow::Result<_>>()?;
            }
        }
        Ok(view)
    })
}

/// A change with the words that were asked for, and a drawing of the page.
fn shown(store: &Store, change: MatchingChange) -> anyhow::Result<ShownChange> {
    let reported = Reported::new(change.operations.iter());
    let tree = store.tree_at(change.page, change.after)?;
    let brief = ShownChange {
        event: event_of(change.status),
        time: change.after.into(),
        before: change.before.map(Time),
        importance: change.importance,
        is_indexed: change.is_indexed,
        title: change.title,
        url: change.url,
        part: None,
        words: Vec::new(),
        operations: Operations::default(),
        n_more: 0,
        drawn: None,
        beside: Vec::new(),
    };
    Ok(brief.with(reported, tree))
}

/// A list to choose from: value and words.
type Choices = &'static [(&'static str, &'static str)];

/// The fields that are folded unless one of them is filled.
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
    ("ad", "advertisements"),
    ("other", "other parts"),
];
/// Least importances to choose from; the first one is any.
pub(crate) const LEAST: [(&str, &str); 5] = [
    ("", "any"),
    ("0.01", "0.01 and more"),
    ("0.1", "0.1 and more"),
    ("0.3", "0.3 and more"),
    ("0.6", "0.6 and more"),
];
/// Orders of changes to choose from.
pub(crate) const ORDERS: Choices =
    &[("", "latest first"), ("oldest", "oldest first"), ("importance", "most important first")];

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let n = counted(view.shown.len() as u64, "change", "changes");
    let heading = match (&view.problem, view.shown.is_empty(), view.next.is_some()) {
        (Some(_), ..) => "Ask for changes".to_owned(),
        (None, true, false) => "No such change".to_owned(),
        (None, true, true) => "No such change so far".to_owned(),
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
                        (counted(view.n_looked_at as u64, "change was", "changes were")) " looked at for this part of the list. "
                        a href={ (place.base) "/changes.atom?" (query) } { "This question as a feed" }
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
    Shell::new(place, Tab::Changes, "Changes that were asked for", json).page(&main)
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
        form.filters.asked aria-label="Question" action={ (base) "/changes" } {
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
                    (parameters.text("text", "Words of the operation", 16, "any"))
                    (parameters.text("selector", "CSS selector", 14, "#price"))
                    (tick("noise", "noise too", parameters.get("noise").is_some()))
                }
            }
        }
    }
}

fn end(view: &View, base: &str) -> Markup {
    let query = view.parameters.query();
    let and = if query.is_empty() { "" } else { "&" };
    html! {
        @if let Some(next) = &view.next {
            p.more {
                a.btn rel="next" href={ (base) "/changes?" (query) (and) "after=" (escape(next)) } { "Go on" } " "
                span.mute { (grouped(view.n_looked_at as u64)) " looked at so far in this part" }
            }
        } @else if view.shown.is_empty() && view.is_first_part {
            (empty(
                "No change is all of that",
                "A longer span, less importance or fewer words show more. Captures that wait for their analysis are not in the answer.",
                None,
            ))
        } @else {
            p.more.mute { "That was the last one." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_keeps_what_was_asked_and_escapes_it() {
        let hostile = "\"><script>alert(1)</script>".to_owned();
        let given =
            vec![("site", hostile.clone()), ("op", "insert".to_owned()), ("least", "0.25".to_owned())];
        let view = View {
            changes: Vec::new(),
            next: Some("1.2.0.5".to_owned()),
            n_looked_at: 1_234,
            parameters: Parameters(given),
            problem: None,
            shown: Vec::new(),
            is_first_part: true,
        };
        let place = Place { name: "a", base: "/b", ..Place::default() };
        let html = render(&view, place).0;
        assert!(!html.contains("<script") && html.contains("value=\"insert\" selected"), "{html}");
        assert!(html.contains("value=\"0.25\" selected") && html.contains("No such change so far"), "{html}");
        assert!(html.contains("op=insert&amp;least=0.25&amp;after=1.2.0.5"), "{html}");
        assert!(html.contains("/b/changes.atom?site=%22%3E%3Cscript"), "{html}");
        let wrong = render(&View { problem: Some(hostile), ..view }, place).0;
        assert!(
            !wrong.contains("<script") && wrong.contains("class=\"alert\"") && !wrong.contains("Go on"),
            "{wrong}"
        );
    }
}
