//! What is known of an archived page -> the banner over it, as HTML. Titles and addresses are foreign text: escaped, and cut by the
//! style.

use std::fmt::Write as _;

use perennial_core::memento::{Coherence, Modifier};
use perennial_core::page::look::ChangeStatus;
use perennial_core::text::foreign::shown as shown_text;
use perennial_core::text::markup::escaped;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::canonical::{host_with_port, without_scheme};

use super::block::{BlockChange, BlockChanges};
use super::parts::{ShownPart, Whole};
use crate::rewrite::attributes::FRAME_NAME;
use crate::rewrite::own;
use crate::scene::Scene;
use perennial_archive::store::{Step, Steps};

/// What a page in the frame may do. It may not lead the window around it, open others, or ask with dialogs.
const SANDBOX: &str = "allow-scripts allow-same-origin allow-forms allow-downloads";

const LOGO: &str = "<svg width=\"20\" height=\"20\" viewBox=\"0 0 20 20\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" \
     aria-hidden=\"true\"><circle cx=\"10\" cy=\"10\" r=\"9\"/><circle cx=\"9.2\" cy=\"10.6\" r=\"5.8\"/><circle cx=\"8.6\" cy=\"11\" r=\"2.8\"/></svg>";

/// All that the banner shows.
pub struct Shown<'a> {
    /// What is replayed.
    pub scene: &'a Scene,
    /// It with its parts.
    pub whole: &'a Whole,
    /// The versions around it.
    pub steps: &'a Steps,
    /// The archive's name.
    pub archive: &'a str,
}

/// The title of the window.
pub fn title(shown: &Shown<'_>) -> String {
    format!("{}, {} - Perennial", shown_text(&shown.scene.capture.url), moment(shown.scene.capture.time))
}

/// The whole page: banner and frame.
pub fn wrapper(shown: &Shown<'_>) -> String {
    let scene = shown.scene;
    let frame = format!("{}{}", scene.origins.replay, scene.address(Modifier::Page, &scene.capture.url));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>\
         <link rel=\"icon\" href=\"{root}icon.svg\"><link rel=\"stylesheet\" href=\"{root}banner.css\"><script src=\"{root}banner.js\" defer></script></head>\n\
         <body data-replay=\"{replay}\" data-base=\"{base}\" data-archive=\"{archive}\" data-url=\"{url}\" \
         data-time=\"{time}\" data-root=\"{root}\">\
         <a class=\"skip\" href=\"#page\">To the archived page</a>\
         <div class=\"ban\" id=\"ban\" role=\"region\" aria-label=\"Perennial: about this archived page\">{banner}</div>\n\
         <iframe id=\"page\" name=\"{FRAME_NAME}\" title=\"Archived page\" sandbox=\"{SANDBOX}\" \
         referrerpolicy=\"no-referrer\" src=\"{frame}\"></iframe></body></html>\n",
        title = escaped(&title(shown)),
        root = own::ROOT,
        replay = escaped(&scene.origins.replay),
        base = escaped(&scene.base),
        archive = escaped(shown.archive),
        url = escaped(&scene.capture.url),
        time = scene.time.to_digits14(),
        banner = banner(shown),
        frame = escaped(&frame),
    )
}

/// The inside of the banner.
pub fn banner(shown: &Shown<'_>) -> String {
    let scene = shown.scene;
    let mut out = format!(
        "<a class=\"brand\" href=\"{base}/\">{LOGO}<span class=\"vh\">Perennial</span></a>\
         <span class=\"url cut\" title=\"{url}\">{short}</span>\
         <time class=\"when\" datetime=\"{datetime}\">{when}</time>",
        base = escaped(&scene.base),
        url = escaped(&scene.capture.url),
        short = escaped(&shown_text(without_scheme(&scene.capture.url))),
        datetime = scene.capture.time.to_rfc3339(),
        when = moment(scene.capture.time),
    );
    push_state(&mut out, shown);
    out.push_str("<details class=\"more\"><summary>This paragraph</summary><div class=\"pop\" id=\"block\"></div></details>");
    out.push_str("<span class=\"grow\"></span>");
    push_steps(&mut out, shown);
    let _ =
        write!(out, "<a class=\"wide-only nowrap\" href=\"{}\">All versions</a>", escaped(&calendar(scene)));
    out
}

/// The address of the page's calendar.
fn calendar(scene: &Scene) -> String {
    format!("{}/web/*/{}", scene.base, scene.capture.url)
}

fn push_state(out: &mut String, shown: &Shown<'_>) {
    let (scene, whole) = (shown.scene, shown.whole);
    let state = state_mark(whole.composite.state);
    let n_missing = whole.composite.n_missing;
    let missing = match n_missing {
        0 => String::new(),
        n => format!("<span class=\"lack\">{n} missing</span>"),
    };
    let spread = format!("parts within {}", span(whole.composite.spread()));
    let is_away = scene.time.as_secs() != scene.capture.time.as_secs();
    let away = span(distance(scene.time, scene.capture.time));
    let left = if is_away { format!("<span class=\"warn\">{away} away</span>") } else { String::new() };
    let _ = write!(
        out,
        "<details><summary>{state}<span class=\"mute wide-only\">{spread}</span>{left}{missing}</summary><div class=\"pop\">\
         <p><b>Parts are chosen by what is known to have been valid at {}, not by what is closest.</b> {}</p>",
        moment(scene.time),
        sentence(whole.composite.state)
    );
    if is_away {
        let _ = write!(
            out,
            "<p class=\"warn\">This page leaves the chosen instant: its capture is {away} away.</p>"
        );
    }
    push_parts(out, scene, whole);
    let _ = write!(
        out,
        "<p><label class=\"sw\"><input type=\"checkbox\" id=\"keep\"> One instant: links stay at this time, as close as the \
         archive can make it</label></p><p><a href=\"{}\">All versions</a></p></div></details>",
        escaped(&calendar(scene))
    );
}

/// The parts, each with its state, and what is missing.
fn push_parts(out: &mut String, scene: &Scene, whole: &Whole) {
    if !whole.parts.is_empty() {
        out.push_str("<div class=\"scroll\"><table class=\"t\"><thead><tr><th>State</th><th>Part</th><th class=\"wide-only\">Captured</th><th class=\"r\">Distance</th></tr></thead><tbody>");
        for part in &whole.parts {
            push_part(out, part, scene);
        }
        out.push_str("</tbody></table></div>");
    }
    match (whole.composite.n_missing, whole.n_more) {
        (0, 0) => out.push_str("<p>Missing: nothing.</p>"),
        (n, more) => {
            let _ = write!(out, "<p>Missing: {n}. Nothing is taken from the live web in their place.");
            if more > 0 {
                let _ = write!(out, " {more} more parts were not looked up.");
            }
            out.push_str("</p>");
        }
    }
}

fn push_part(out: &mut String, part: &ShownPart, scene: &Scene) {
    // Of the page's own host the path says enough.
    let address = without_scheme(&part.url);
    let own_path =
        address.strip_prefix(host_with_port(&scene.capture.url)).filter(|path| path.starts_with('/'));
    let address = escaped(&shown_text(own_path.unwrap_or(address))).to_string();
    let (mark, captured, away) = match part.found {
        Some((time, state)) => (state_mark(state), moment(time), span(distance(time, scene.time))),
        None => (
            "<span class=\"state bad\">missing</span>".to_string(),
            "not in the archive".into(),
            String::new(),
        ),
    };
    let _ = write!(
        out,
        "<tr><td>{mark}</td><td class=\"mono part\">{address}</td><td class=\"wide-only\">{captured}</td>\
         <td class=\"r nowrap\">{away}</td></tr>"
    );
}

fn push_steps(out: &mut String, shown: &Shown<'_>) {
    let (scene, steps) = (shown.scene, shown.steps);
    let at = scene.capture.time;
    let link = |step: Option<Step>, rel: &str, label: &str, is_timed: bool| match step {
        Some(step) => {
            let to = format!("{}/web/{}/{}", scene.base, step.time.to_digits14(), scene.capture.url);
            let text = short_moment(step.time, at);
            let text = if is_timed { text } else { format!("<span class=\"vh\">{label}, {text}</span>") };
            let (before, after) = if rel == "prev" { ("&lsaquo; ", "") } else { ("", " &rsaquo;") };
            format!(
                "<a href=\"{}\" rel=\"{rel}\" title=\"{label}\"><span aria-hidden=\"true\">{before}</span>{text}<span aria-hidden=\"true\">{after}</span></a>",
                escaped(&to)
            )
        }
        None => format!(
            "<span class=\"mute none\" title=\"{label}: none\">{}</span>",
            if rel == "prev" { "&lsaquo;" } else { "&rsaquo;" }
        ),
    };
    let _ = write!(
        out,
        "<span class=\"step wide-only\"><span class=\"mute\">Versions</span>{}{}</span>",
        link(steps.previous, "prev", "Previous version", false),
        link(steps.next, "next", "Next version", false)
    );
    let _ = write!(
        out,
        "<span class=\"step\"><span class=\"mute wide-only\">Important</span>{}{}{}</span>",
        link(steps.previous_important, "prev", "Previous important version", true),
        importance(steps.here),
        link(steps.next_important, "next", "Next important version", true)
    );
}

/// The importance of the change that made this version: a figure, and a bar of twenty steps for the eye.
fn importance(step: Option<Step>) -> String {
    let Some(step) = step else {
        return "<span class=\"mute\">not analysed</span>".to_string();
    };
    if step.status == ChangeStatus::New {
        return "<span class=\"mute\">first version</span>".to_string();
    }
    let value = step.status.reported_importance().get();
    let low = if step.is_important { "" } else { " low" };
    format!(
        "<span class=\"imp{low}\"><span><span class=\"vh\">importance </span>{value:.2}</span>\
         <svg viewBox=\"0 0 44 6\" width=\"44\" height=\"6\" aria-hidden=\"true\"><rect x=\".5\" y=\".5\" width=\"43\" height=\"5\" fill=\"none\" stroke=\"currentColor\"/>\
         <rect x=\"1\" y=\"1\" width=\"{:.1}\" height=\"4\" fill=\"currentColor\"/></svg></span>",
        value.clamp(0.0, 1.0) * 42.0
    )
}

/// When a block changed, as HTML.
pub fn block(changes: &BlockChanges, base: &str, url: &str, at: Timestamp) -> String {
    let mut out = String::new();
    let row = |out: &mut String, label: &str, change: &BlockChange| {
        let time = Timestamp::parse(&change.time).unwrap_or(at);
        let to = format!("{base}/web/{}/{url}", change.time);
        let _ = write!(out, "<p><b>{label}</b> <a href=\"{}\">{}</a></p>", escaped(&to), moment(time));
        for (tag, text) in [("del", &change.before), ("ins", &change.after)] {
            if let Some(text) = text {
                let _ = write!(out, "<p class=\"words\"><{tag}>{}</{tag}></p>", escaped(&shown_text(text)));
            }
        }
    };
    match &changes.previous {
        Some(change) => row(&mut out, "As it is since", change),
        None => out.push_str("<p>This block has not changed at any look before.</p>"),
    }
    match &changes.next {
        Some(change) => row(&mut out, "Changed again", change),
        None => out.push_str("<p>No later change of it was seen.</p>"),
    }
    out
}

fn state_mark(state: Coherence) -> String {
    let (class, word, shape) = match state {
        Coherence::Coherent => (
            "ok",
            "coherent",
            "<circle cx=\"7\" cy=\"7\" r=\"6\" fill=\"currentColor\"/><path d=\"M4 7.2l2.1 2.1L10 5\" fill=\"none\" stroke=\"var(--bg)\" stroke-width=\"1.6\"/>",
        ),
        Coherence::PossiblyCoherent | Coherence::PossiblyViolative => (
            "maybe",
            "possibly",
            "<circle cx=\"7\" cy=\"7\" r=\"5.6\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\"/><path d=\"M7 1.4a5.6 5.6 0 0 1 0 11.2z\" fill=\"currentColor\"/>",
        ),
        Coherence::Violating => ("bad", "violating", "<path d=\"M7 1l6.4 12H.6z\" fill=\"currentColor\"/>"),
    };
    format!(
        "<span class=\"state {class}\"><svg width=\"14\" height=\"14\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">{shape}</svg>{word}</span>"
    )
}

fn sentence(state: Coherence) -> &'static str {
    match state {
        Coherence::Coherent => "All of them are known to have been there then.",
        Coherence::PossiblyCoherent | Coherence::PossiblyViolative => {
            "Nothing is known against any of them, but not all are certain."
        }
        Coherence::Violating => "At least one is known not to have been there then.",
    }
}

fn distance(a: Timestamp, b: Timestamp) -> Span {
    Span::from_millis((a.as_millis() - b.as_millis()).abs())
}

/// `Mon 29 June 2026, 11:00`, in UTC.
fn moment(time: Timestamp) -> String {
    time.to_jiff().strftime("%a %-d %B %Y, %H:%M").to_string()
}

/// A time of the same day by its hour, of another by its date.
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
