//! What people read of a page that is pinned: what is new, what has changed, what is left out, and what to add to the project.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use super::action_files::digest;
use crate::compile::openapi::{MadeAction, MadeActions};
use crate::drive::tool::DriftClass;
use crate::language::openapi::{LockedOperation, LockedPage};
use crate::trace::escape;

/// The most lines of one kind.
const MAX_LINES: usize = 40;

/// The digests of texts that actions share.
#[derive(Default)]
pub struct SharedDigests(HashMap<usize, String>);

impl SharedDigests {
    fn of(&mut self, texts: &[Arc<str>]) -> String {
        let mut all = String::new();
        for text in texts {
            // Actions hold the same text, and as long as this does.
            let address = Arc::as_ptr(text).cast::<u8>().addr();
            all.push_str(self.0.entry(address).or_insert_with(|| digest(text)));
        }
        all
    }
}

/// The digests of an action.
pub fn locked(action: &MadeAction, shared: &mut SharedDigests) -> LockedOperation {
    let compared = action.compared();
    let short = |text: &str| digest(text).chars().take(32).collect();
    LockedOperation {
        place: action.place.clone(),
        text: short(&compared.text),
        input: short(&compared.input),
        output: short(&shared.of(&action.output)),
        notes: action.notes.clone(),
    }
}

/// How an operation differs from what was pinned. What has its name and is in another place is another operation.
fn drift(pinned: &LockedOperation, now: Option<&LockedOperation>) -> BTreeSet<DriftClass> {
    let Some(now) = now.filter(|now| now.place == pinned.place) else { return BTreeSet::from([DriftClass::Gone]) };
    let classes = [
        (DriftClass::Text, pinned.text != now.text),
        (DriftClass::Input, pinned.input != now.input),
        (DriftClass::Output, pinned.output != now.output),
    ];
    classes.into_iter().filter(|(_, is_other)| *is_other).map(|(class, _)| class).collect()
}

/// Whether a page has an operation under a name, in the same place.
fn has(page: &LockedPage, name: &str, operation: &LockedOperation) -> bool {
    page.actions.get(name).is_some_and(|other| other.place == operation.place)
}

/// The actions that would become other operations under their names, also those that are gone since: where each was, and where it
/// would be.
pub fn moved<'a>(pinned: &'a LockedPage, now: &'a LockedPage) -> impl Iterator<Item = (&'a String, &'a str, &'a str)> {
    let places = known_places(pinned);
    let both = places.filter_map(|(name, was)| now.actions.get(name).map(|is| (name, was, is.place.as_str())));
    both.filter(|(_, was, is)| was != is)
}

/// The actions that were pinned and have no operation now, each with its place.
pub fn gone(pinned: &LockedPage, now: &LockedPage) -> BTreeMap<String, String> {
    let gone = known_places(pinned).filter(|(name, _)| !now.actions.contains_key(*name));
    gone.map(|(name, was)| (name.clone(), was.to_owned())).collect()
}

fn known_places(pinned: &LockedPage) -> impl Iterator<Item = (&String, &str)> {
    let present = pinned.actions.iter().map(|(name, was)| (name, was.place.as_str()));
    present.chain(pinned.gone.iter().map(|(name, was)| (name, was.as_str())))
}

/// How a page differs from what was pinned, in lines; whether nothing of weight does.
pub fn differences(pinned: &LockedPage, now: &LockedPage) -> (String, bool) {
    let (mut lines, mut is_same) = (String::new(), true);
    let mut line = |word: &str, name: &str, place: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(lines, "  {word:<12} {}  {}", escape::exact_line(name), escape::exact_line(place));
    };
    for (name, operation) in &pinned.actions {
        for class in drift(operation, now.actions.get(name)) {
            line(class.word(), name, &operation.place);
            is_same = false;
        }
    }
    for (name, operation) in now.actions.iter().filter(|(name, operation)| !has(pinned, name, operation)) {
        line(DriftClass::New.word(), name, &operation.place);
    }
    (lines, is_same)
}

/// The head of a page: `petstore: Pet Store 1.0.0, 12 actions`.
pub fn head(name: &str, page: &LockedPage) -> String {
    let count = page.actions.len();
    let actions = if count == 1 { "action" } else { "actions" };
    let own = format!("{} {}", page.title, page.page_version);
    let own = escape::exact_line(own.trim()).into_owned();
    let own = if own.is_empty() { own } else { format!("{own}, ") };
    format!("{}: {own}{count} {actions}", escape::line(name))
}

/// What is new about a page.
pub fn review(name: &str, made: &MadeActions, page: &LockedPage, before: Option<&LockedPage>) -> String {
    let mut text = head(name, page) + "\n";
    let none = LockedPage::default();
    let old = before.unwrap_or(&none);
    let known = |action: &String, now: &LockedOperation| old.actions.get(action).filter(|was| was.place == now.place);
    let changed = |(action, now): (&String, &LockedOperation)| match known(action, now) {
        None => Some(format!("new      {action}  {}", now.place)),
        Some(pinned) => {
            let words: Vec<&str> = drift(pinned, Some(now)).into_iter().map(DriftClass::word).collect();
            (!words.is_empty()).then(|| format!("changed  {action} ({})  {}", words.join(", "), now.place))
        }
    };
    list(&mut text, "  ", page.actions.iter().filter_map(changed));
    let gone = old.actions.iter().filter(|(action, was)| !has(page, action, was));
    list(&mut text, "  ", gone.map(|(action, was)| format!("gone     {action}  {}", was.place)));
    // Each is named: nothing is left out unseen.
    for (place, why) in &made.left_out {
        let _ = writeln!(text, "  left out {}: {}", escape::exact_line(place), escape::exact_line(why));
    }
    if made.unnamed > 0 {
        let _ = writeln!(text, "  {} operations are named by no pattern of --operations", made.unnamed);
    }
    let noted = |action: &'_ MadeAction| {
        action.notes.iter().map(|note| (note.clone(), action.name.clone())).collect::<Vec<_>>()
    };
    grouped(&mut text, "note:", made.actions.values().flat_map(noted));
    let marked = |action: &'_ MadeAction| {
        action.suspicions.iter().map(|why| (why.clone(), action.name.clone())).collect::<Vec<_>>()
    };
    grouped(&mut text, "! look at it:", made.actions.values().flat_map(marked));
    text
}

/// What is said of actions: a line for each thing that is said.
fn grouped(text: &mut String, word: &str, said: impl Iterator<Item = (String, String)>) {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    said.for_each(|(what, name)| names.entry(what).or_default().push(name));
    let line = |(what, names): (String, Vec<String>)| {
        let first = names.first().cloned().unwrap_or_default();
        let others = names.len().saturating_sub(1);
        if others == 0 {
            format!("{word} {first}: {what}")
        } else {
            format!("{word} {first} and {others} more: {what}")
        }
    };
    list(text, "  ", names.into_iter().map(line));
}

/// Lines of one kind, and how many more there are.
fn list(text: &mut String, indent: &str, lines: impl Iterator<Item = String>) {
    let mut more = 0_usize;
    for (at, line) in lines.enumerate() {
        if at < MAX_LINES {
            let _ = writeln!(text, "{indent}{}", escape::exact_line(&line));
        } else {
            more = more.saturating_add(1);
        }
    }
    if more > 0 {
        let _ = writeln!(text, "{indent}and {more} more such lines");
    }
}

/// The secrets that the actions send: what each holds, and which servers get it.
pub fn secrets(made: &MadeActions) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut found: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for action in made.actions.values() {
        for (key, holds) in &action.secrets {
            let entry = found.entry(key.clone()).or_insert_with(|| (holds.clone(), BTreeSet::new()));
            entry.1.insert(action.server.clone());
        }
    }
    found
}
