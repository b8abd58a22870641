//! Matchers that can't be compared: a pattern or a schema that is wrong, a misspelt word.

use serde_json::{Value, json};

use super::{PlacedExpectations, ScenarioSubject};
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::language::scenario::{NeverEntry, ValueMatcher};
use crate::program::Schema;
use crate::syntax::{quoted, token};

/// Reports them.
pub(super) fn check(subject: &ScenarioSubject<'_>, found: &mut Vec<Diagnostic>) {
    for placed in subject.expectations() {
        for (pointer, matcher) in all(&placed) {
            walk(subject, &matcher.0, &pointer, found);
        }
    }
}

/// All matchers of expectations, each with its JSON pointer.
fn all<'a>(placed: &PlacedExpectations<'a>) -> Vec<(String, &'a ValueMatcher)> {
    let PlacedExpectations { at, expect } = placed;
    let mut all = Vec::new();
    let plain = [("answer", &expect.answer), ("summary", &expect.summary), ("error", &expect.error)];
    all.extend(plain.into_iter().filter_map(|(key, matcher)| Some((format!("{at}/{key}"), matcher.as_ref()?))));
    for (key, map) in [("memory", &expect.memory), ("steps", &expect.steps)] {
        all.extend(map.iter().map(|(name, matcher)| (format!("{at}/{key}/{}", token(name)), matcher)));
    }
    for (index, call) in expect.calls.iter().flatten().enumerate() {
        let of = [("input", &call.input), ("observation", &call.observation)];
        let of = of.into_iter().filter_map(|(key, matcher)| Some((key, matcher.as_ref()?)));
        all.extend(of.map(|(key, matcher)| (format!("{at}/calls/{index}/{key}"), matcher)));
    }
    for (index, never) in expect.never.iter().enumerate() {
        if let NeverEntry::Call(unwanted) = never {
            all.push((format!("{at}/never/{index}/input"), &unwanted.input));
        }
    }
    for (index, pause) in expect.pauses.iter().flatten().enumerate() {
        if let Some(question) = &pause.question {
            all.push((format!("{at}/pauses/{index}/question"), question));
        }
    }
    all
}

/// Whether the document that is tested, or one of its actions, writes this name itself: an answer or an input may be the object.
fn is_named(subject: &ScenarioSubject<'_>, name: &str) -> bool {
    let written = quoted(name);
    subject.program.is_some_and(|program| program.sources.iter().any(|source| source.text.contains(&written)))
}

fn walk(subject: &ScenarioSubject<'_>, value: &Value, pointer: &str, found: &mut Vec<Diagnostic>) {
    let mut report = |below: &str, message: String, help: &str| {
        found.push(subject.error(codes::SCENARIO_MATCHER, format!("{pointer}{below}"), message).help(help));
    };
    match ValueMatcher::word(value) {
        Some(("matches", about)) => match about.as_str() {
            None => report("/matches", "a pattern is a text".to_owned(), "write {\"matches\": \"^A-[0-9]+$\"}"),
            Some(pattern) => {
                if let Err(fault) = Schema::compile(json!({ "type": "string", "pattern": pattern })) {
                    let message = format!("the pattern can't be read: {}", fault.message);
                    report("/matches", message, "it is a regular expression as in JSON Schema");
                }
            }
        },
        Some(("schema", about)) => {
            if let Err(fault) = Schema::compile(about.clone()) {
                let message = format!("the schema can't be read: {}", fault.message);
                report(&format!("/schema{}", fault.path), message, "it is a JSON Schema");
            }
        }
        Some(("not", about)) => walk(subject, about, &format!("{pointer}/not"), found),
        Some(_) => {}
        None => match value {
            Value::Object(members) => {
                if let (1, Some((name, _))) = (members.len(), members.iter().next())
                    && let Some(near) = nearest(name, ValueMatcher::WORDS)
                    && !is_named(subject, name)
                {
                    let at = format!("{pointer}/{}", token(name));
                    let place = subject.document.tree.key_place(&at);
                    let message = format!("`{name}` is compared as a member of an object; `{near}` is a matcher");
                    let fault = Diagnostic::warning(codes::SCENARIO_MATCHER, message, at, place);
                    found.push(fault.help(format!("the nearest name is `{near}`")));
                }
                for (name, value) in members {
                    walk(subject, value, &format!("{pointer}/{}", token(name)), found);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(subject, item, &format!("{pointer}/{index}"), found);
                }
            }
            _ => {}
        },
    }
}
