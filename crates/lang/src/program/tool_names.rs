//! The names of a loop's tools in a provider's native tool calls. Providers accept ASCII letters, digits, `_`
//! and `-`, at most 64, and Gemini only names that begin with a letter or `_`; a tool with another name gets an accepted
//! one. Only this module converts in either direction.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The longest name that all providers take, in characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// The characters of names of one kind. `_` is among both.
#[derive(Clone, Copy)]
pub(super) struct NameForm {
    /// What a name begins with.
    pub(super) begins: fn(char) -> bool,
    pub(super) has: fn(char) -> bool,
}

/// Those of tools.
const TOOL: NameForm = NameForm {
    begins: |c| c.is_ascii_alphabetic() || c == '_',
    has: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
};

/// The tools whose names a provider would refuse, and the names that replace them. No replacement is another
/// tool's name, so that each identifies one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames(Vec<(String, String)>);

impl ToolNames {
    /// The names of these tools, in their order: the same tools give the same names.
    pub fn of<'a>(tools: impl Iterator<Item = &'a str> + Clone) -> Self {
        Self::fitting(tools, TOOL)
    }

    /// The same for names of another kind.
    pub(super) fn fitting<'a>(names: impl Iterator<Item = &'a str> + Clone, form: NameForm) -> Self {
        let is_taken = |name: &str| is_taken_by(name, form);
        if names.clone().all(is_taken) {
            return Self::default();
        }
        let mut taken: HashSet<String> = names.clone().filter(|name| is_taken(name)).map(str::to_owned).collect();
        // The next free number for each name.
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut given = Vec::new();
        for name in names.filter(|name| !is_taken(name)) {
            let base = fitted(name, form);
            let mut called = base.clone();
            let number = numbers.entry(base.clone()).or_insert(2);
            while taken.contains(&called) {
                let ending = format!("_{number}");
                called = format!("{}{ending}", head(&base, MAX_NAME_CHARACTERS.saturating_sub(ending.len())));
                *number = number.saturating_add(1);
            }
            taken.insert(called.clone());
            given.push((name.to_owned(), called));
        }
        Self(given)
    }

    /// The name that is sent to a provider for the tool of this name.
    pub fn out<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|(tool, _)| tool == name).map_or(name, |(_, called)| called)
    }

    /// The tool of a provider's name; a name that was not replaced means itself.
    pub fn back<'a>(&'a self, called: &'a str) -> &'a str {
        self.0.iter().find(|(_, given)| given == called).map_or(called, |(tool, _)| tool)
    }

    /// A model's name for a tool in a form that can be sent to a provider, even if there is no such tool.
    pub fn sendable<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        let name = self.out(name);
        if is_taken(name) { Cow::Borrowed(name) } else { Cow::Owned(fitted(name, TOOL)) }
    }

    /// The tools with a replaced name: the tool's name, and the provider's.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(tool, called)| (tool.as_str(), called.as_str()))
    }
}

/// Whether all providers accept the name unchanged.
pub fn is_taken(name: &str) -> bool {
    is_taken_by(name, TOOL)
}

/// Whether a name has this form, and is not too long.
pub(super) fn is_taken_by(name: &str, form: NameForm) -> bool {
    name.starts_with(form.begins) && name.len() <= MAX_NAME_CHARACTERS && name.chars().all(form.has)
}

/// A similar name that providers accept.
fn fitted(name: &str, form: NameForm) -> String {
    let plain: String = name.chars().map(|c| if (form.has)(c) { c } else { '_' }).take(MAX_NAME_CHARACTERS).collect();
    if plain.starts_with(form.begins) { plain } else { format!("_{plain}").chars().take(MAX_NAME_CHARACTERS).collect() }
}

/// The first characters of an ASCII text.
fn head(text: &str, length: usize) -> &str {
    text.get(..length).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ToolNames, is_taken};

    #[test]
    fn a_name_that_providers_take_stays() {
        let called = ToolNames::of(["look_up", "act-2", "__complete__"].into_iter());
        assert_eq!(called.changed().count(), 0);
        assert_eq!(called.out("look_up"), "look_up");
        assert_eq!(called.back("look_up"), "look_up");
    }

    #[test]
    fn names_that_would_become_one_do_not() {
        let called = ToolNames::of(["crm/find", "crm.find", "crm_find", "поиск", "отчёт"].into_iter());
        let names: Vec<_> = called.changed().collect();
        assert_eq!(
            names,
            [("crm/find", "crm_find_2"), ("crm.find", "crm_find_3"), ("поиск", "_____"), ("отчёт", "______2")]
        );
        assert_eq!(called.back("crm_find"), "crm_find");
        assert_eq!(called.back("crm_find_3"), "crm.find");
    }

    #[test]
    fn a_name_begins_as_all_providers_take_it() {
        let long = "1".repeat(64);
        let called = ToolNames::of(["21st_magic", "-x", "_21st_magic", "x1", &long].into_iter());
        let names: Vec<_> = called.changed().collect();
        let of_long = format!("_{}", "1".repeat(63));
        assert_eq!(names, [("21st_magic", "_21st_magic_2"), ("-x", "_-x"), (long.as_str(), of_long.as_str())]);
        assert_eq!(called.sendable("1 made up"), "_1_made_up");
    }

    #[test]
    fn what_a_model_made_up_can_be_reported_to_a_provider() {
        let called = ToolNames::of(["a.b"].into_iter());
        assert_eq!(called.sendable("a.b"), "a_b");
        assert_eq!(called.sendable("no such tool"), "no_such_tool");
        assert_eq!(called.sendable(""), "_");
    }

    proptest! {
        #[test]
        fn every_tool_is_found_again(names in prop::collection::hash_set("[a-c./_é0-]{1,70}|[a-z0_]{1,4}", 1..24)) {
            let names: Vec<String> = names.into_iter().collect();
            let called = ToolNames::of(names.iter().map(String::as_str));
            let mut given: Vec<&str> = names.iter().map(|name| called.out(name)).collect();
            for (name, out) in names.iter().zip(&given) {
                prop_assert!(is_taken(out), "{out}");
                prop_assert_eq!(called.back(out), name);
            }
            given.sort_unstable();
            given.dedup();
            prop_assert_eq!(given.len(), names.len());
        }
    }
}
