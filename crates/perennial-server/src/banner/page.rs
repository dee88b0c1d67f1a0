//! The HTML of the banner. Titles and URLs are untrusted: they are escaped, and shortened by the style.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use perennial_core::memento::TemporalCoherence;
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::text::untrusted::terminal_safe as shown_text;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::canonical::{host_with_port, without_scheme};

use super::block::{BlockChange, BlockChanges};
use super::parts::{CompositePage, ShownPart};
use crate::dashboard::layout::version_href;
use crate::replay_context::ReplayContext;
use crate::rewrite::assets;
use crate::rewrite::attributes::FRAME_NAME;
use perennial_archive::store::{VersionStep, VersionSteps};

/// The page in the frame may not navigate our window, open windows, or show dialogs.
const SANDBOX: &str = "allow-scripts allow-same-origin allow-forms allow-downloads";

const LOGO: PreEscaped<&str> = PreEscaped(
    "<svg width=\"20\" height=\"20\" viewBox=\"0 0 20 20\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" \
     aria-hidden=\"true\"><circle cx=\"10\" cy=\"10\" r=\"9\"/><circle cx=\"9.2\" cy=\"10.6\" r=\"5.8\"/><circle cx=\"8.6\" cy=\"11\" r=\"2.8\"/></svg>",
);

/// The content of the banner.
pub struct BannerContent<'a> {
    pub context: &'a ReplayContext,
    /// The page with its parts.
    pub whole: &'a CompositePage,
    /// The neighbouring versions.
    pub steps: &'a VersionSteps,
    pub archive: &'a str,
}

pub fn title(shown: &BannerContent<'_>) -> String {
    format!("{}, {} - Perennial", shown_text(&shown.context.capture.url), moment(shown.context.capture.time))
}

/// The whole page: banner and frame.
pub fn wrapper(shown: &BannerContent<'_>, frame: &str) -> Markup {
    let context = shown.context;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title(shown)) }
                link rel="icon" href={ (assets::ROOT) "icon.svg" };
                link rel="stylesheet" href={ (assets::ROOT) "banner.css" };
            }
            body data-replay=(context.origins.replay) data-base=(context.base) data-archive=(shown.archive)
                data-url=(context.capture.url) data-time=(context.time.to_digits14())
                data-captured=(context.capture.time.to_digits14()) data-root=(assets::ROOT) {
                a.skip href="#page" { "To the archived page" }
                div.ban #ban role="region" aria-label="Perennial: about this archived page" { (banner(shown)) }
                // Before the frame, so no message of the frame is missed.
                script src={ (assets::ROOT) "banner.js" } {}
                iframe #page name=(FRAME_NAME) title="Archived page" sandbox=(SANDBOX) referrerpolicy="no-referrer" src=(frame) {}
            }
        }
    }
}

/// The inside of the banner.
pub fn banner(shown: &BannerContent<'_>) -> Markup {
    let context = shown.context;
    html! {
        a.brand href={ (context.base) "/" } { (LOGO) span.vh { "Perennial" } }
        span.url.cut title=(context.capture.url) { (shown_text(without_scheme(&context.capture.url))) }
        time.when datetime=(context.capture.time.to_rfc3339()) { (moment(context.capture.time)) }
        (state(shown))
        details.more { summary { "This paragraph" } div.pop #block {} }
        span.grow {}
        (steps(shown))
        a.wide-only.nowrap href=(calendar(context)) { "All versions" }
    }
}

/// The path of the URL's calendar.
fn calendar(context: &ReplayContext) -> String {
    format!("{}/web/*/{}", context.base, context.capture.url)
}

fn state(shown: &BannerContent<'_>) -> Markup {
    let (context, whole) = (shown.context, shown.whole);
    let is_away = context.time.as_secs() != context.capture.time.as_secs();
    let away = span(distance(context.time, context.capture.time));
    html! {
        details {
            summary {
                (state_mark(whole.composite.state))
                span.mute.wide-only { "parts within " (span(whole.composite.spread())) }
                @if is_away { span.warn { (away) " away" } }
                @if whole.composite.n_missing > 0 { span.lack { (whole.composite.n_missing) " missing" } }
            }
            div.pop {
                p {
                    b { "Parts are the versions valid at " (moment(context.time)) ", not by what is closest." }
                    " " (sentence(whole.composite.state))
                }
                @if is_away { p.warn { "This page is from a different instant: its capture is " (away) " away." } }
                (parts(context, whole))
                p {
                    label.sw {
                        input type="checkbox" #keep;
                        " Links stay at this instant"
                    }
                }
                p { a href=(calendar(context)) { "All versions" } }
            }
        }
    }
}

/// The parts with their coherence, and the missing ones.
fn parts(context: &ReplayContext, whole: &CompositePage) -> Markup {
    html! {
        @if !whole.parts.is_empty() {
            div.scroll {
                table.t {
                    thead { tr { th { "State" } th { "Part" } th.wide-only { "Captured" } th.r { "Distance" } } }
                    tbody { @for part in &whole.parts { (part_row(part, context)) } }
                }
            }
        }
        @match (whole.composite.n_missing, whole.n_more) {
            (0, 0) => p { "Missing: nothing." },
            (n, more) => p {
                "Missing: " (n) ". They are not loaded from the live web."
                @if more > 0 { " " (more) " more parts were not looked up." }
            },
        }
    }
}

fn part_row(part: &ShownPart, context: &ReplayContext) -> Markup {
    // For the page's own host, the path is enough.
    let replay_url = without_scheme(&part.url);
    let own_path =
        replay_url.strip_prefix(host_with_port(&context.capture.url)).filter(|path| path.starts_with('/'));
    html! {
        tr {
            td { @match part.found { Some((_, state)) => (state_mark(state)), None => span.state.bad { "missing" } } }
            td.mono.part { (shown_text(own_path.unwrap_or(replay_url))) }
            td.wide-only { @match part.found { Some((time, _)) => (moment(time)), None => "not in the archive" } }
            td.r.nowrap { @if let Some((time, _)) = part.found { (span(distance(time, context.time))) } }
        }
    }
}

fn steps(shown: &BannerContent<'_>) -> Markup {
    let VersionSteps { previous, next, previous_important, next_important, here } = shown.steps;
    html! {
        span.step.wide-only {
            span.mute { "Versions" }
            (step(shown.context, *previous, "prev", "Previous version", false))
            (step(shown.context, *next, "next", "Next version", false))
        }
        span.step {
            span.mute.wide-only { "Important" }
            (step(shown.context, *previous_important, "prev", "Previous important version", true))
            (importance(*here))
            (step(shown.context, *next_important, "next", "Next important version", true))
        }
    }
}

/// A link to a different version, with its time visible or for screen readers only.
fn step(
    context: &ReplayContext,
    step: Option<VersionStep>,
    rel: &str,
    label: &str,
    is_timed: bool,
) -> Markup {
    let is_back = rel == "prev";
    let Some(step) = step else {
        return html! { span.mute.none title={ (label) ": none" } { @if is_back { "‹" } @else { "›" } } };
    };
    let text = short_moment(step.time, context.capture.time);
    html! {
        a href=(version_href(&context.base, step.time, &context.capture.url)) rel=(rel) title=(label) {
            span aria-hidden="true" { @if is_back { "‹ " } }
            @if is_timed { (text) } @else { span.vh { (label) ", " (text) } }
            span aria-hidden="true" { @if !is_back { " ›" } }
        }
    }
}

/// The importance of the change that led to this version, as a number and a bar.
fn importance(step: Option<VersionStep>) -> Markup {
    let Some(step) = step else { return html! { span.mute { "not analysed" } } };
    if step.status == ChangeStatus::New {
        return html! { span.mute { "first version" } };
    }
    let value = step.status.reported_importance().get();
    html! {
        span.imp.low[!step.is_important] {
            span { span.vh { "importance " } (format!("{value:.2}")) }
            svg viewBox="0 0 44 6" width="44" height="6" aria-hidden="true" {
                rect x=".5" y=".5" width="43" height="5" fill="none" stroke="currentColor" {}
                rect x="1" y="1" width=(format!("{:.1}", value.clamp(0.0, 1.0) * 42.0)) height="4" fill="currentColor" {}
            }
        }
    }
}

pub fn block(changes: &BlockChanges, base: &str, url: &str, at: Timestamp) -> Markup {
    let row = |label: &str, change: &BlockChange| {
        let time = Timestamp::parse(&change.time).unwrap_or(at);
        html! {
            p { b { (label) } " " a href={ (base) "/web/" (change.time) "/" (url) } { (moment(time)) } }
            @if let Some(text) = &change.before { p.words { del { (shown_text(text)) } } }
            @if let Some(text) = &change.after { p.words { ins { (shown_text(text)) } } }
        }
    };
    html! {
        @match &changes.previous {
            Some(change) => (row("Unchanged since", change)),
            None => p { "No earlier change of this block is known." },
        }
        @match &changes.next {
            Some(change) => (row("Changed again", change)),
            None => p { "No later change of this block is known." },
        }
    }
}

fn state_mark(state: TemporalCoherence) -> Markup {
    let (class, word, shape) = match state {
        TemporalCoherence::Coherent => (
            "ok",
            "coherent",
            "<circle cx=\"7\" cy=\"7\" r=\"6\" fill=\"currentColor\"/><path d=\"M4 7.2l2.1 2.1L10 5\" fill=\"none\" stroke=\"var(--bg)\" stroke-width=\"1.6\"/>",
        ),
        TemporalCoherence::PossiblyCoherent | TemporalCoherence::PossiblyViolative => (
            "maybe",
            "possibly",
            "<circle cx=\"7\" cy=\"7\" r=\"5.6\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\"/><path d=\"M7 1.4a5.6 5.6 0 0 1 0 11.2z\" fill=\"currentColor\"/>",
        ),
        TemporalCoherence::Violating => {
            ("bad", "violating", "<path d=\"M7 1l6.4 12H.6z\" fill=\"currentColor\"/>")
        }
    };
    html! {
        span class={ "state " (class) } {
            svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true" { (PreEscaped(shape)) }
            (word)
        }
    }
}

fn sentence(state: TemporalCoherence) -> &'static str {
    match state {
        TemporalCoherence::Coherent => "All parts are known to have been valid then.",
        TemporalCoherence::PossiblyCoherent | TemporalCoherence::PossiblyViolative => {
            "Some parts may not have been valid then."
        }
        TemporalCoherence::Violating => "At least one part is known not to have been valid then.",
    }
}

fn distance(a: Timestamp, b: Timestamp) -> Span {
    Span::from_millis((a.as_millis() - b.as_millis()).abs())
}

/// `Mon 29 June 2026, 11:00`, in UTC.
fn moment(time: Timestamp) -> String {
    time.to_jiff().strftime("%a %-d %B %Y, %H:%M").to_string()
}

/// The hour of a time on the same day, the date of any other.
fn short_moment(time: Timestamp, beside: Timestamp) -> String {
    let (own, other) = (time.to_jiff(), beside.to_jiff());
    let format = |pattern: &str| (own.strftime(pattern).to_string(), other.strftime(pattern).to_string());
    match (format("%Y%m%d"), format("%Y")) {
        ((a, b), _) if a == b => format("%H:%M").0,
        (_, (a, b)) if a == b => format("%-d %b").0,
        _ => format("%-d %b %Y").0,
    }
}

/// `12 s`, `8 h`, `7 h 30`, `3 days`.
fn span(span: Span) -> String {
    let seconds = span.as_secs_f64();
    let minutes = (seconds / 60.0).round() as u64;
    match (minutes / 60, minutes % 60) {
        _ if seconds < 60.0 => format!("{seconds:.0} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) if hours < 48 => format!("{hours} h"),
        (hours, minutes) if hours < 48 => format!("{hours} h {minutes:02}"),
        (hours, _) => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_words() {
        let time = |text: &str| Timestamp::parse(text).unwrap();
        assert_eq!(moment(time("20260629110000")), "Mon 29 June 2026, 11:00");
        assert_eq!(short_moment(time("20260629110000"), time("20260629150000")), "11:00");
        assert_eq!(short_moment(time("20260629110000"), time("20260729150000")), "29 Jun");
        assert_eq!(short_moment(time("20250629110000"), time("20260729150000")), "29 Jun 2025");
        let of = |minutes: i64| span(Span::from_millis(minutes * 60_000));
        assert_eq!([of(0), of(30), of(480), of(450), of(4320)], ["0 s", "30 min", "8 h", "7 h 30", "3 days"]);
    }
}
