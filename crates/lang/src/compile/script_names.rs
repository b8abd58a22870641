//! The names in a script: tools and loops that no loop around it has.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Declared;
use crate::diagnostic::{Diagnostic, Nearest, codes, is_slip};
use crate::program::builtin;
use crate::syntax::document::Document;
use crate::syntax::{quoted, token};

/// The most names that are reported.
const MAX_FAULTS: usize = 50;
/// The most names that are compared with each other.
const MAX_COMPARED: usize = 200;

/// A name in a script, and the pointer of the value, or of the member, that has it.
struct ScriptName<'s> {
    name: &'s str,
    pointer: String,
    /// Whether it is the key of a list of answers or replies.
    is_key: bool,
}

/// Warns of the names in a script that no loop declares as a tool. A script that names nothing which the loops around it
/// have belongs to others.
pub(super) fn names(document: &Document, declared: &Declared, faults: &mut Vec<Diagnostic>) {
    let named = gathered(&document.value);
    let known = |name: &str| declared.names.contains(name) || builtin::NAMES.contains(&name);
    // Many names are not compared: a script with more has one that is known.
    let resembles = |name: &str| declared.names.iter().take(MAX_COMPARED).any(|known| is_slip(name, known));
    let ours = named.iter().any(|named| declared.names.contains(named.name))
        || named.iter().take(MAX_COMPARED).any(|named| resembles(named.name));
    if declared.is_open || !ours {
        return;
    }
    let (mut nearest, mut reported) = (Nearest::default(), BTreeSet::new());
    for ScriptName { name, pointer, is_key } in named.into_iter().filter(|named| !known(named.name)) {
        if !reported.insert((name, is_key)) || reported.len() > MAX_FAULTS {
            continue;
        }
        let place = if is_key { document.tree.key_place(&pointer) } else { document.tree.place(&pointer) };
        let (what, effect) = match (is_key, pointer.starts_with("/loops/")) {
            (true, true) => ("loop", "these replies are never used"),
            (true, false) => ("tool or loop", "these answers are never used, and what was meant is really called"),
            (false, _) => ("tool", "the call would be refused"),
        };
        let message = format!("no loop has the {what} `{name}`: {effect}");
        let fault = Diagnostic::warning(codes::SCRIPT_NAME, message, pointer, place);
        let is_completion = matches!(name, "complete" | "finish" | "done" | "final_answer" | "submit") && !is_key;
        if is_completion {
            let meant = builtin::COMPLETE;
            let help = format!("an agent completes with `{meant}`, or with an `answer` in place of the `action`");
            faults.push(fault.help(help).suggest(quoted(meant)));
            continue;
        }
        let near = nearest.field(name, declared.names.iter().map(String::as_str).collect::<Vec<_>>());
        faults.push(match near {
            Some((near, true)) => fault.help(format!("the nearest name is `{near}`")).suggest(quoted(near)),
            Some((near, false)) => fault.help(format!("the nearest name is `{near}`")),
            None => fault.help("name it as a loop declares it in its `tools`"),
        });
    }
}

fn gathered(script: &Value) -> Vec<ScriptName<'_>> {
    let mut named = Vec::new();
    for part in ["tools", "loops"] {
        for (name, entries) in script.get(part).and_then(Value::as_object).into_iter().flatten() {
            let pointer = format!("/{part}/{}", token(name));
            if part == "loops" {
                of_replies(entries, &pointer, &mut named);
            }
            named.push(ScriptName { name, pointer, is_key: true });
        }
    }
    if let Some(replies) = script.get("replies") {
        of_replies(replies, "/replies", &mut named);
    }
    for (at, case) in script.get("cases").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if let Some(replies) = case.get("replies") {
            of_replies(replies, &format!("/cases/{at}/replies"), &mut named);
        }
    }
    named
}

fn of_replies<'s>(replies: &'s Value, pointer: &str, named: &mut Vec<ScriptName<'s>>) {
    let list = |value: Option<&'s Value>| value.and_then(Value::as_array).into_iter().flatten().enumerate();
    let action = |value: &'s Value| value.get("action").and_then(Value::as_str);
    for (at, reply) in list(Some(replies)) {
        if let Some(name) = action(reply) {
            named.push(ScriptName { name, pointer: format!("{pointer}/{at}/action"), is_key: false });
        }
        for (call, value) in list(reply.get("calls")) {
            if let Some(name) = action(value) {
                let pointer = format!("{pointer}/{at}/calls/{call}/action");
                named.push(ScriptName { name, pointer, is_key: false });
            }
        }
    }
}
