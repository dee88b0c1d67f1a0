//! The names of classes and attributes that occur in a page's stylesheets.
//!
//! For each candidate rule the engine checks every class and attribute of an element, and it shares styles only
//! between elements with the same classes. Pages contain many names that no rule mentions: hooks for scripts, and
//! classes of stylesheets that were not captured. Such names cannot affect any rule, so they are removed before
//! styles are computed.

use std::borrow::Cow;
use std::collections::HashSet;

use blitz_dom::{Attribute, BaseDocument};
use html5ever::local_name;

use crate::engine::NodeMap;

/// The names in the stylesheets of a page. The engine's own stylesheets contain no class and no attribute for
/// scripts.
#[derive(Default)]
pub(crate) struct Mentions {
    classes: Names,
    /// In lower case.
    attributes: Names,
}

#[derive(Default, Debug)]
struct Names(HashSet<String>);

impl Names {
    /// Most names occur many times.
    fn put(&mut self, name: Option<Cow<'_, str>>) {
        if let Some(name) = name.filter(|name| !self.contains(name)) {
            self.0.insert(name.into_owned());
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl Mentions {
    /// Adds the names of a stylesheet.
    pub(crate) fn read(&mut self, css: &str) {
        for (at, mark) in css.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'.' | b'[' | b'(')) {
            let rest = &css[at + 1..];
            if mark == b'.' {
                self.classes.put(name_at(rest));
            } else {
                // `[name=value]` and `attr(name)`, also after a namespace: `[svg|name]`.
                for name in name_at(rest.trim_start()).into_iter().chain(name_behind_bar(rest)) {
                    self.attributes.put(Some(name.to_ascii_lowercase().into()));
                }
            }
        }
    }

    /// Removes unmentioned names. Must be called after the last stylesheet and before the first style.
    pub(crate) fn prune(&self, document: &mut BaseDocument, built: &NodeMap) {
        let keeps_classes = self.attributes.contains("class");
        for id in built.ids.iter().flatten() {
            let Some(element) = document.get_node_mut(*id).and_then(|node| node.element_data_mut()) else {
                continue;
            };
            element.attrs.retain_mut(|attribute| {
                if attribute.name.local == local_name!("class") {
                    return keeps_classes || self.keep_classes(attribute);
                }
                !is_for_scripts(&attribute.name.local) || self.attributes.contains(&attribute.name.local)
            });
        }
    }

    /// Keeps mentioned classes only. Returns whether any is left.
    fn keep_classes(&self, attribute: &mut Attribute) -> bool {
        let is_kept = |class: &&str| self.classes.contains(class);
        if !attribute.value.split_ascii_whitespace().all(|class| is_kept(&class)) {
            let kept: Vec<&str> = attribute.value.split_ascii_whitespace().filter(is_kept).collect();
            attribute.value = kept.join(" ");
        }
        !attribute.value.is_empty()
    }
}

/// Attributes that mean nothing to a layout engine.
fn is_for_scripts(name: &str) -> bool {
    name.starts_with("data-") || name.starts_with("aria-")
}

/// The CSS identifier at the start of a text, unescaped.
fn name_at(css: &str) -> Option<Cow<'_, str>> {
    let is_in_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || !byte.is_ascii();
    let end = css.bytes().position(|byte| !is_in_name(&byte)).unwrap_or(css.len());
    if css[end..].starts_with('\\') {
        return escaped_name(css).map(Cow::Owned);
    }
    (end > 0).then_some(Cow::Borrowed(&css[..end]))
}

fn escaped_name(css: &str) -> Option<String> {
    let mut name = String::new();
    let mut characters = css.chars().peekable();
    while let Some(character) =
        characters.next_if(|c| c.is_ascii_alphanumeric() || !c.is_ascii() || "-_\\".contains(*c))
    {
        name.push(if character == '\\' { escaped(&mut characters)? } else { character });
    }
    (!name.is_empty()).then_some(name)
}

/// The character after a backslash: up to six hexadecimal digits and a space, or the character itself.
fn escaped(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    let mut number = 0;
    let mut n_digits = 0;
    while let Some(digit) = characters.peek().and_then(|c| c.to_digit(16)).filter(|_| n_digits < 6) {
        characters.next();
        (number, n_digits) = (16 * number + digit, n_digits + 1);
    }
    if n_digits == 0 {
        return characters.next();
    }
    characters.next_if(|c| c.is_ascii_whitespace());
    Some(char::from_u32(number).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn name_behind_bar(css: &str) -> Option<Cow<'_, str>> {
    let end = css.find(|c: char| !(c.is_alphanumeric() || "-_*".contains(c)))?;
    name_at(css[end..].strip_prefix('|')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(css: &str) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.read(css);
        mentions
    }

    #[test]
    fn classes_are_found_wherever_a_selector_stands() {
        let css = "a.b:not(.c)>.d-e_f,.é{width:.5em}@media(x){.g:is(.h .i)::before{}}.md\\:j\\31 0{}.k\\6c /*.m*/{}";
        let found = mentions(css).classes;
        for class in ["b", "c", "d-e_f", "é", "g", "h", "i", "md:j10", "kl"] {
            assert!(found.contains(class), "{class} in {found:?}");
        }
        assert!(!found.contains("a"));
    }

    #[test]
    fn attributes_are_found_in_selectors_and_values() {
        let found = mentions("[data-a],b[ DATA-B='x'],[*|aria-c]::after{content:attr( data-d )}").attributes;
        for name in ["data-a", "data-b", "aria-c", "data-d"] {
            assert!(found.contains(name), "{name} in {found:?}");
        }
    }
}
