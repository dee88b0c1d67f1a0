//! Rewrites a script so that it sees the archived page's own location instead of ours.
//!
//! `location` and `top` cannot be replaced in a browser, because the window protects them. So the script's text is changed, as little as
//! possible:
//!
//! - `x.location` and `x["location"]` become `x.__perennial_location`, which is the page's location if `x` is a window or a document,
//!   otherwise `x.location`; the same for `window.top`.
//! - A script that uses the bare names `location` or `top` is put into a block that declares both. Its own global declarations must stay
//!   global: `let` and `const` become `var`, a class is assigned, functions are assigned at the start.
//! - `x.postMessage(...)` tells the receiver which window sent the message, because our functions are called in between.
//! - Modules need no block, because their own scope has the two declarations. URLs in `import` and `export` are rewritten.
//!
//! - `const {location} = window` reads `__perennial_location`, and so does `window[name]` if the name is `location` at run time.
//! - Code that is created at run time (`eval`, `new Function`, timers, script elements) is sent here by `replay.js` before it runs.
//!
//! What is missed cannot leave the archive, because the responses' policy and the frame prevent it.

use std::borrow::Cow;

use perennial_core::memento::Modifier;

use super::tokens::{CONDITIONS, Kind, NONE, Token, tokens};
use super::url::RewritePlace;

/// The property that replaces `location`.
const LOCATION: &str = "__perennial_location";
/// The property of windows that replaces `top`.
const TOP: &str = "__perennial_top";
/// The function that rewrites the URL of a dynamic import.
const IMPORT: &str = "__perennial_import";

/// The function that records which window sends a message.
const FROM: &str = "__perennial_from";

/// The function that rewrites code of a direct `eval`, whose scope must stay that of the caller.
const CODE: &str = "__perennial_code";
/// The function that returns the archived URL of one of ours.
const ORIGINAL: &str = "__perennial_original";
/// The function that replaces a property name at run time.
const KEY: &str = "__perennial_key";

/// Parts of a script without which nothing is rewritten.
const MENTIONS: [&str; 11] = [
    "location",
    "top",
    "postMessage",
    "import",
    "export",
    "eval(",
    "eval)",
    "window[",
    "self[",
    "globalThis[",
    "document[",
];

/// Objects with a `location` whose properties scripts name at run time.
const WITH_LOCATION: [&str; 4] = ["window", "self", "globalThis", "document"];

/// Objects whose `top` is that of the window.
const WINDOWS: [&str; 6] = ["window", "self", "globalThis", "parent", "frames", "top"];

/// Names of the window that do not store any assigned value; a declaration of them stays within the block.
const HELD_NAMES: [&str; 16] = [
    "name",
    "status",
    "length",
    "closed",
    "event",
    "external",
    "screen",
    "history",
    "origin",
    "performance",
    "parent",
    "self",
    "opener",
    "frames",
    "scroll",
    "close",
];

/// Tokens of a declaration list that are read.
const MAX_DECLARED: usize = 500;

/// Rewrites a script; returns it unchanged if it cannot be tokenized or contains nothing relevant.
pub fn rewrite_script<'a>(source: &'a str, place: &RewritePlace) -> Cow<'a, str> {
    let mentions = MENTIONS.iter().any(|word| source.contains(word));
    let Some(tokens) = mentions.then(|| tokens(source)).flatten() else { return Cow::Borrowed(source) };
    let mut script = Script { source, tokens, edits: Vec::new() };
    let is_module = script.imports(place);
    script.members();
    script.run_time_names();
    let declared = script.declared(is_module);
    let names: Vec<&str> = ["location", "top"]
        .into_iter()
        .filter(|name| script.is_used(name) && !declared.contains(name))
        .collect();
    let (mut before, mut after) = (String::new(), "");
    if !names.is_empty() {
        before = prologue(&names);
        script.assignments(&names);
        if !is_module {
            before = format!("{}{{{before}{}", script.directive(), script.hand_out());
            after = "\n}";
        }
    }
    script.apply(&before, after)
}

/// Rewrites the code of an event handler such as `onclick`, which is the body of a function.
pub fn rewrite_handler<'a>(source: &'a str, place: &RewritePlace) -> Cow<'a, str> {
    let Some(tokens) = tokens(source) else { return Cow::Borrowed(source) };
    let mut script = Script { source, tokens, edits: Vec::new() };
    script.imports(place);
    script.members();
    script.run_time_names();
    let declared = script.declared(false);
    let names: Vec<&str> = ["location", "top"]
        .into_iter()
        .filter(|name| script.is_used(name) && !declared.contains(name))
        .collect();
    let before = if names.is_empty() { String::new() } else { prologue(&names) };
    script.assignments(&names);
    script.apply(&before, "")
}

/// Rewrites the URLs of an import map, in keys and values.
pub fn rewrite_import_map(source: &str, place: &RewritePlace) -> Option<String> {
    let mut map: serde_json::Value = serde_json::from_str(source).ok()?;
    rewrite_mapped(&mut map, place, 0);
    // The text must not end the script element.
    serde_json::to_string(&map).ok().map(|text| text.replace('<', "\\u003c"))
}

fn rewrite_mapped(value: &mut serde_json::Value, place: &RewritePlace, depth: usize) {
    match value {
        serde_json::Value::String(text) => {
            if let Some(to) = specifier(text, place) {
                *text = to;
            }
        }
        serde_json::Value::Object(entries) if depth < 4 => {
            let taken = std::mem::take(entries);
            for (key, mut inner) in taken {
                rewrite_mapped(&mut inner, place, depth + 1);
                entries.insert(specifier(&key, place).unwrap_or(key), inner);
            }
        }
        _ => {}
    }
}

/// The archive's URL of a module specifier; bare names are unchanged.
fn specifier(text: &str, place: &RewritePlace) -> Option<String> {
    let is_url = text.starts_with('/') || text.starts_with("./") || text.starts_with("../");
    (is_url || text.contains("://")).then(|| place.rewrite(text, Modifier::Script)).flatten()
}

fn prologue(names: &[&str]) -> String {
    let declare = |name: &&str| format!("{name}=(self.__perennial||self).{name}");
    format!("let {};", names.iter().map(declare).collect::<Vec<_>>().join(","))
}

struct Script<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    /// Replacements by source range, in any order, without overlaps.
    edits: Vec<(usize, usize, String)>,
}

impl<'a> Script<'a> {
    fn word(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &self.source[token.start..token.end])
    }

    fn kind(&self, index: usize) -> Option<Kind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    fn is_name(&self, index: usize, name: &str) -> bool {
        self.kind(index) == Some(Kind::Name) && self.word(index) == name
    }

    /// Whether a name is a member, as in `x.name`.
    fn is_member(&self, index: usize) -> bool {
        index > 0 && matches!(self.word(index - 1), "." | "?.") && self.kind(index - 1) == Some(Kind::Sign)
    }

    fn replace(&mut self, index: usize, text: String) {
        let token = self.tokens[index];
        self.edits.push((token.start, token.end, text));
    }

    /// `x.location`, `x["location"]`, `window.top`.
    fn members(&mut self) {
        for index in 1..self.tokens.len() {
            match self.kind(index) {
                Some(Kind::Name) if self.is_member(index) => match self.word(index) {
                    "location" => self.replace(index, LOCATION.into()),
                    "postMessage" => self.replace(index, format!("{FROM}(self).postMessage")),
                    "top" if index > 1 && WINDOWS.contains(&self.word(index - 2)) => {
                        self.replace(index, TOP.into());
                    }
                    _ => {}
                },
                Some(Kind::Text) if self.is_key(index) => {
                    self.replace(index, format!("\"{LOCATION}\""));
                }
                _ => {}
            }
        }
    }

    /// `eval(code)`, `window[name]`, `{location} = window`.
    fn run_time_names(&mut self) {
        let mut braces = Vec::new();
        for index in 0..self.tokens.len() {
            match self.kind(index) {
                Some(Kind::Open) => braces.push(index),
                Some(Kind::Close) => drop(braces.pop()),
                Some(Kind::Name) => match self.word(index) {
                    "eval" => self.evaluated(index),
                    "location" => self.destructured(index, braces.last().copied()),
                    name if WITH_LOCATION.contains(&name) && self.word(index + 1) == "[" => {
                        self.pass_through(index + 1, KEY, true);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    /// The arguments of `eval(...)`, `window.eval(...)` and `(0, eval)(...)`.
    fn evaluated(&mut self, index: usize) {
        let open = index + 1 + usize::from(self.word(index + 1) == ")");
        let is_declared = index > 0 && self.word(index - 1) == "function";
        let close = self.tokens.get(open).map_or(NONE, |token| token.partner);
        let is_method = close != NONE && self.word(close as usize + 1) == "{";
        if self.word(open) == "(" && !is_declared && !is_method {
            self.pass_through(open, CODE, false);
        }
    }

    /// Passes the content of a bracket through a function of ours, if that exists.
    fn pass_through(&mut self, open: usize, function: &str, is_single: bool) {
        let (start, close) = (self.tokens[open].end, self.tokens[open].partner);
        if close == NONE || close as usize == open + 1 {
            return;
        }
        let inside = &self.tokens[open + 1..close as usize];
        let is_constant = inside.len() == 1 && matches!(inside[0].kind, Kind::Text);
        let depth = self.tokens[open].depth + 1;
        let has_comma =
            inside.iter().any(|token| token.depth == depth && &self.source[token.start..token.end] == ",");
        if is_single && (is_constant || has_comma) {
            return;
        }
        let end = self.tokens[close as usize].start;
        self.edits.push((start, start, format!("(self.{function}||(x=>x))(")));
        self.edits.push((end, end, ")".into()));
    }

    /// `{location}` and `{location: name}` before an equals sign.
    fn destructured(&mut self, index: usize, brace: Option<usize>) {
        let Some(brace) = brace.filter(|brace| self.word(*brace) == "{") else { return };
        let close = self.tokens[brace].partner;
        let is_pattern =
            close != NONE && self.word(close as usize + 1) == "=" && self.word(close as usize + 2) != "=";
        let is_key = matches!(self.word(index - 1), "{" | ",")
            && matches!(self.word(index + 1), "}" | "," | "=" | ":");
        if is_pattern && is_key && self.word(index + 1) == ":" {
            self.replace(index, LOCATION.into());
        } else if is_pattern && is_key {
            self.replace(index, format!("{LOCATION}:location"));
        }
    }

    /// Whether a string is the key in `x["location"]`.
    fn is_key(&self, index: usize) -> bool {
        let is_indexed = index > 1
            && (matches!(self.kind(index - 2), Some(Kind::Close))
                || self.kind(index - 2) == Some(Kind::Name) && !is_keyword(self.word(index - 2)));
        matches!(self.word(index), "\"location\"" | "'location'")
            && self.word(index - 1) == "["
            && self.word(index + 1) == "]"
            && is_indexed
    }

    /// Whether a bare name is used anywhere.
    fn is_used(&self, name: &str) -> bool {
        (0..self.tokens.len()).any(|index| {
            self.is_name(index, name)
                && !self.is_member(index)
                && !(self.word(index + 1) == ":" && matches!(self.word(index.wrapping_sub(1)), "{" | ","))
        })
    }

    /// `location = x` navigates; with the declared `location` it would only set a variable.
    fn assignments(&mut self, names: &[&str]) {
        if !names.contains(&"location") {
            return;
        }
        for index in 0..self.tokens.len() {
            let is_assigned = self.is_name(index, "location")
                && !self.is_member(index)
                && self.word(index + 1) == "="
                && self.word(index + 2) != "=";
            let before = if index == 0 { "" } else { self.word(index - 1) };
            let may_declare =
                matches!(before, "var" | "let" | "const" | "," | "{") || self.is_parameter(index);
            if is_assigned && !may_declare {
                self.replace(index, "location.href".into());
            }
        }
    }

    /// Whether a name is the first parameter of a function.
    fn is_parameter(&self, index: usize) -> bool {
        if index == 0 || self.word(index - 1) != "(" {
            return false;
        }
        let close = self.tokens[index - 1].partner;
        close != NONE && matches!(self.word(close as usize + 1), "{" | "=>")
    }

    /// Rewrites the URLs of imports; returns whether the script is a module.
    fn imports(&mut self, place: &RewritePlace) -> bool {
        let mut is_module = false;
        for index in 0..self.tokens.len() {
            if self.kind(index) != Some(Kind::Name) || self.is_member(index) {
                continue;
            }
            let is_statement = self.tokens[index].depth == 0;
            match self.word(index) {
                "import" if self.word(index + 1) == "(" => self.dynamic_import(index, place),
                "import" if self.word(index + 1) == "." => {
                    is_module = true;
                    self.module_url(index);
                }
                "import" if is_statement => {
                    is_module = true;
                    self.import_text(index + 1, place);
                }
                "export" if is_statement && self.word(index + 1) != ":" => is_module = true,
                "from" if is_statement && is_module => self.import_text(index + 1, place),
                _ => {}
            }
        }
        is_module
    }

    /// `import.meta.url` is the module's own URL, as in the live web.
    fn module_url(&mut self, index: usize) {
        let is_read = self.word(index + 2) == "meta"
            && self.word(index + 3) == "."
            && self.word(index + 4) == "url"
            && (self.word(index + 5) != "=" || self.word(index + 6) == "=");
        if is_read {
            let (start, end) = (self.tokens[index].start, self.tokens[index + 4].end);
            self.edits.push((start, start, format!("(self.{ORIGINAL}||(x=>x))(")));
            self.edits.push((end, end, ")".into()));
        }
    }

    fn import_text(&mut self, index: usize, place: &RewritePlace) {
        if self.kind(index) == Some(Kind::Text)
            && let Some(to) = specifier(self.word(index).trim_matches(['"', '\'']), place)
        {
            self.replace(index, format!("{to:?}"));
        }
    }

    /// `import(x)` requests a URL of the archive, whatever `x` is at run time.
    fn dynamic_import(&mut self, index: usize, place: &RewritePlace) {
        let open = index + 1;
        let close = self.tokens[open].partner;
        if self.kind(index + 2) == Some(Kind::Text) {
            return self.import_text(index + 2, place);
        }
        let depth = self.tokens[open].depth + 1;
        let inside = &self.tokens[open + 1..(close as usize).min(self.tokens.len())];
        let has_options =
            inside.iter().any(|token| token.depth == depth && &self.source[token.start..token.end] == ",");
        if close != NONE && !inside.is_empty() && !has_options {
            let (start, end) = (self.tokens[open].end, self.tokens[close as usize].start);
            let with = format!("(self.{IMPORT}||String)(");
            self.edits.push((start, start, with));
            self.edits.push((end, end, ")".into()));
        }
    }

    /// The names among the two that the script itself declares, which a block would declare twice.
    fn declared(&self, is_module: bool) -> Vec<&'a str> {
        let (mut found, mut bodies, mut n_functions) = (Vec::new(), Vec::new(), 0usize);
        for index in 0..self.tokens.len() {
            let is_statement = self.tokens[index].depth == 0;
            match self.tokens[index].kind {
                Kind::Open => {
                    bodies.push(self.is_body(index));
                    n_functions += usize::from(self.is_body(index));
                }
                Kind::Close => n_functions -= usize::from(bodies.pop() == Some(true)),
                Kind::Name if !self.is_member(index) => match self.word(index) {
                    "var" if n_functions == 0 => self.names_after(index, &mut found),
                    "let" | "const" if is_statement => self.names_after(index, &mut found),
                    "import" if is_module && is_statement => self.names_after(index, &mut found),
                    "class" | "function" if is_statement => found.push(self.word(index + 1)),
                    _ => {}
                },
                _ => {}
            }
        }
        found
    }

    /// The names in a declaration list, without their initialisers.
    fn names_after(&self, index: usize, found: &mut Vec<&'a str>) {
        let depth = self.tokens[index].depth;
        let mut at = index + 1;
        for _ in 0..MAX_DECLARED {
            let Some(token) = self.tokens.get(at) else { return };
            if token.depth < depth || (token.depth == depth && matches!(self.word(at), ";" | "from")) {
                return;
            }
            let is_target = matches!(
                self.word(at - 1),
                "var" | "let" | "const" | "," | "{" | "[" | ":" | "as" | "import" | "..."
            );
            match token.kind {
                Kind::Name if is_target && self.word(at + 1) != ":" => found.push(self.word(at)),
                Kind::Open if !is_target && token.partner != NONE => at = token.partner as usize,
                _ => {}
            }
            at += 1;
        }
    }

    /// Whether a bracket opens the body of a function: it follows `=>` or the arguments.
    fn is_body(&self, open: usize) -> bool {
        if self.word(open) != "{" || open == 0 {
            return false;
        }
        if self.word(open - 1) == "=>" {
            return true;
        }
        let arguments = self.tokens[open - 1];
        if self.word(open - 1) != ")" || arguments.partner == NONE || arguments.partner == 0 {
            return false;
        }
        !CONDITIONS.contains(&self.word(arguments.partner as usize - 1))
    }

    /// A directive must stay at the start.
    fn directive(&self) -> &'static str {
        let is_strict = self.kind(0) == Some(Kind::Text)
            && matches!(self.word(0), "\"use strict\"" | "'use strict'")
            && (matches!(self.word(1), ";" | "")
                || self.tokens.get(1).is_some_and(|token| token.is_on_new_line));
        if is_strict { "\"use strict\";" } else { "" }
    }

    /// Keeps global declarations global: edits `let`, `const` and classes; returns assignments for functions.
    fn hand_out(&mut self) -> String {
        let mut handed = String::new();
        for index in 0..self.tokens.len() {
            let token = self.tokens[index];
            let is_statement = token.depth == 0
                && token.kind == Kind::Name
                && !self.is_member(index)
                && (index == 0
                    || matches!(self.word(index - 1), ";" | "}" | "{" | "async")
                    || token.is_on_new_line
                    || self.word(index - 1) == ")");
            if !is_statement {
                continue;
            }
            match self.word(index) {
                "let" | "const" if self.is_declared_for_all(index) => self.replace(index, "var".into()),
                "class" if self.kind(index + 1) == Some(Kind::Name) => self.hand_out_class(index),
                "function" => {
                    let name = index + 1 + usize::from(self.word(index + 1) == "*");
                    if self.kind(name) == Some(Kind::Name) && self.word(name + 1) == "(" {
                        handed.push_str(&format!("globalThis.{0}={0};", self.word(name)));
                    }
                }
                _ => {}
            }
        }
        handed
    }

    fn is_declared_for_all(&self, index: usize) -> bool {
        let is_declaration =
            self.kind(index + 1) == Some(Kind::Name) || matches!(self.word(index + 1), "[" | "{");
        is_declaration && !HELD_NAMES.contains(&self.word(index + 1))
    }

    fn hand_out_class(&mut self, index: usize) {
        // Between name and body there is at most an `extends` clause.
        let body = (index + 2..self.tokens.len().min(index + 64))
            .find(|&at| self.tokens[at].depth == 0 && self.word(at) == "{")
            .map(|at| self.tokens[at].partner);
        if let Some(close) = body.filter(|close| *close != NONE) {
            let (start, end) = (self.tokens[index].start, self.tokens[close as usize].end);
            self.edits.push((start, start, format!("var {}=", self.word(index + 1))));
            self.edits.push((end, end, ";".into()));
        }
    }

    fn apply(mut self, before: &str, after: &str) -> Cow<'a, str> {
        if self.edits.is_empty() && before.is_empty() {
            return Cow::Borrowed(self.source);
        }
        self.edits.sort_by_key(|edit| (edit.0, edit.1));
        let mut out = String::with_capacity(self.source.len() + before.len() + 16 * self.edits.len());
        out.push_str(before);
        let mut at = 0;
        for (start, end, text) in &self.edits {
            out.push_str(&self.source[at..*start]);
            out.push_str(text);
            at = *end;
        }
        out.push_str(&self.source[at..]);
        out.push_str(after);
        Cow::Owned(out)
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "return"
            | "typeof"
            | "in"
            | "of"
            | "case"
            | "new"
            | "delete"
            | "void"
            | "yield"
            | "await"
            | "else"
            | "do"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> RewritePlace {
        RewritePlace::of_test("2020", "http://a.example/js/s.js")
    }

    fn check(source: &str, expected: &str) {
        assert_eq!(rewrite_script(source, &place()), expected, "{source}");
    }

    const L: &str = "let location=(self.__perennial||self).location;";

    #[test]
    fn members_are_found_elsewhere() {
        check("window.location.href", "window.__perennial_location.href");
        check("a?.location=1", "a?.__perennial_location=1");
        check("w['location']", "w[\"__perennial_location\"]");
        check("if(window.top!==window.self)x()", "if(window.__perennial_top!==window.self)x()");
        check("rect.top+e.style.top", "rect.top+e.style.top");
        check("`${document.location}`", "`${document.__perennial_location}`");
    }

    #[test]
    fn what_is_no_code_stays() {
        for source in [
            "'x.location'",
            "/x.location/",
            "// x.location\n1",
            "{\"location\":[\"location\"]}",
            "({location:1})",
            "a",
        ] {
            check(source, source);
        }
    }

    #[test]
    fn a_bare_name_is_declared_around_the_script() {
        check("location.href='/x'", &format!("{{{L}location.href='/x'\n}}"));
        check("'use strict';f(location)", &format!("\"use strict\";{{{L}'use strict';f(location)\n}}"));
        check(
            "if(top!=self)top.location=location",
            "{let location=(self.__perennial||self).location,top=(self.__perennial||self).top;\
             if(top!=self)top.__perennial_location=location\n}",
        );
    }

    #[test]
    fn an_assignment_leads_elsewhere() {
        check("location='/x'", &format!("{{{L}location.href='/x'\n}}"));
        check("if(location==a)f((location=1)=>1)", &format!("{{{L}if(location==a)f((location=1)=>1)\n}}"));
        check("w.postMessage(1,'*')", "w.__perennial_from(self).postMessage(1,'*')");
    }

    #[test]
    fn what_a_script_declares_for_others_stays_declared() {
        check(
            "const a=location;let {b,c}=a\nclass D extends E{f(){let g}}\nfunction h(){const i=1}\nasync function j(){}",
            &format!(
                "{{{L}globalThis.h=h;globalThis.j=j;var a=location;var {{b,c}}=a\nvar D=class D extends E{{f(){{let g}}}};\n\
                 function h(){{const i=1}}\nasync function j(){{}}\n}}"
            ),
        );
        check("let name=location;for(let i;;);", &format!("{{{L}let name=location;for(let i;;);\n}}"));
    }

    #[test]
    fn a_script_with_a_name_of_its_own_keeps_it() {
        check("var a,location=1;location", "var a,location=1;location");
        check("function top(){}top()", "function top(){}top()");
        check(
            "(function(){var location=1;f(location)})()",
            &format!("{{{L}(function(){{var location=1;f(location)}})()\n}}"),
        );
        check("if(a){var top=1}top", "if(a){var top=1}top");
    }

    #[test]
    fn modules_import_from_the_archive() {
        check(
            "import a from '/m.js';import './n.js';export * from \"http://b.example/o.js\";import p from 'bare';location",
            &format!(
                "{L}import a from \"/web/2020js_/http://a.example/m.js\";import \"/web/2020js_/http://a.example/js/n.js\";\
                 export * from \"/web/2020js_/http://b.example/o.js\";import p from 'bare';location"
            ),
        );
        check("import('/m.js')", "import(\"/web/2020js_/http://a.example/m.js\")");
        check("import(a+b(c))", "import((self.__perennial_import||String)(a+b(c)))");
        check("f(import.meta.url)", "f((self.__perennial_original||(x=>x))(import.meta.url))");
        check("import(a,{with:b})", "import(a,{with:b})");
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        for source in ["location(", "x.location + 'a", "<html>location</b>'"] {
            check(source, source);
        }
    }

    #[test]
    fn handlers_are_bodies_of_functions() {
        let found = rewrite_handler("location.href='/x'; return false", &place());
        assert_eq!(found, format!("{L}location.href='/x'; return false"));
    }

    #[test]
    fn import_maps_are_mapped() {
        let found =
            rewrite_import_map(r#"{"imports":{"a":"/a.js","http://b.example/":"./b/"}}"#, &place()).unwrap();
        let to = "/web/2020js_/http://";
        assert_eq!(
            found,
            format!(r#"{{"imports":{{"{to}b.example/":"{to}a.example/js/b/","a":"{to}a.example/a.js"}}}}"#)
        );
    }

    proptest! {
        /// Any text is accepted, and unchanged without the relevant words.
        #[test]
        fn any_text_is_taken(pieces in proptest::collection::vec(prop::sample::select(vec![
            "location", "top", ".", "[", "]", "'location'", "{", "}", "(", ")", "`", "${", "/", "let ", "const ", "var ", "class A",
            "function f", "import ", "from ", "'x'", ";", "\n", "=>", "a", ",", ":", "import(", "\\", "é", "async ", "*",
        ]), 0..40)) {
            let source = pieces.concat();
            let _ = rewrite_script(&source, &place());
            let _ = rewrite_handler(&source, &place());
        }
    }
}
