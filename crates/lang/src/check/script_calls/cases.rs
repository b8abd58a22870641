//! The cases of a script, compared with the inputs of the loops that they are for: cases that no run plays.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::items;
use crate::check::Cursor;
use crate::diagnostic::{Diagnostic, codes, nearest, shown};
use crate::language::script::ScriptCase;
use crate::program::{Program, Schema};
use crate::syntax::document::Document;
use crate::syntax::{quoted, token};

/// The most cases that are compared with each other.
const MAX_COMPARED: usize = 200;

const NEVER: &str = "no run plays this case";

/// The cases that no input fits, and those before which another one fits each time.
pub(super) fn cases(document: &Document, loops: &[&Program], most: usize) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    // One that can't be read was reported.
    let read = |(at, case): (usize, &Value)| Some((at, ScriptCase::deserialize(case).ok()?));
    let all: Vec<(usize, ScriptCase)> =
        items(document.value.get("cases")).iter().enumerate().filter_map(read).collect();
    for (place, (at, case)) in all.iter().enumerate() {
        let pointer = format!("/cases/{at}/when");
        if found.len() >= most || document.unknown.holds(&pointer) {
            continue;
        }
        let earlier = all.iter().take(place.min(MAX_COMPARED));
        if case.when.is_empty() {
            let message = "`when` names no field of the input: the case fits every run";
            let fault =
                Diagnostic::warning(codes::SCRIPT_INPUT, message, pointer.as_str(), at_value(document, &pointer));
            found.push(fault.help("name a field and its value, or move the replies to `replies` of the script"));
        } else if let Some((first, _)) = earlier.into_iter().find(|(_, earlier)| earlier.covers(case)) {
            let message = format!("{NEVER}: an earlier one fits every input that it fits");
            let fault =
                Diagnostic::warning(codes::SCRIPT_INPUT, message, pointer.as_str(), at_value(document, &pointer));
            let fault = fault.related(&at_value(document, &format!("/cases/{first}/when")), "this one comes first");
            found.push(fault.help("take it out, or put the case with more fields before the other one"));
        } else {
            found.extend(unfit(document, case, &pointer, loops));
        }
    }
    found
}

fn at_value(document: &Document, pointer: &str) -> crate::diagnostic::Place {
    Cursor::new(&document.tree, pointer).place()
}

/// A field that no loop has as an input, or a value that no loop takes.
fn unfit(document: &Document, case: &ScriptCase, pointer: &str, loops: &[&Program]) -> Option<Diagnostic> {
    // A loop that says nothing of its input takes any.
    let schemas: Vec<&Schema> = loops.iter().map(|program| program.input.as_ref()).collect::<Option<_>>()?;
    if schemas.is_empty() {
        return None;
    }
    case.when.iter().find_map(|(name, value)| {
        let at = format!("{pointer}/{}", token(name));
        let knowing = schemas.iter().filter(|schema| schema.is_open() || schema.properties().contains(&name.as_str()));
        let mut faults = knowing.map(|schema| fault_of(schema, name, value));
        let Some(first) = faults.next() else { return Some(unknown(document, name, &at, &schemas)) };
        let first = first?;
        if faults.any(|other| other.is_none()) {
            return None;
        }
        let message = format!("{NEVER}: {first}");
        let fault = Diagnostic::warning(codes::SCRIPT_INPUT, message, at.as_str(), at_value(document, &at));
        Some(fault.help("write a value that the `input` of the loop allows"))
    })
}

/// What a schema has against a value of an input.
fn fault_of(schema: &Schema, name: &str, value: &Value) -> Option<String> {
    let input = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
    let at = format!("/{}", token(name));
    let is_of =
        |path: &str| path.strip_prefix(at.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    schema.faults(&input).into_iter().find(|fault| is_of(&fault.path)).map(|fault| fault.message)
}

fn unknown(document: &Document, name: &str, at: &str, schemas: &[&Schema]) -> Diagnostic {
    let known: BTreeSet<&str> = schemas.iter().flat_map(|schema| schema.properties()).collect();
    let place = document.tree.key_place(at);
    let message = format!("no loop has the input `{}`: {NEVER}", shown(name));
    let fault = Diagnostic::warning(codes::SCRIPT_NAME, message, at, place);
    match nearest(name, known.iter().copied()) {
        Some(near) => fault.help(format!("the nearest name is `{near}`")).suggest(quoted(near)),
        None if known.is_empty() => fault.help("the loops have no input: take the case out"),
        None => fault.help(format!("the inputs are `{}`", known.into_iter().collect::<Vec<_>>().join("`, `"))),
    }
}
