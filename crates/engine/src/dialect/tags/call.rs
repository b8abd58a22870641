//! A call: the object of a `<tool_call>`, strict JSON or as models write it.

use serde_json::{Map, Value};

use super::escape::escaped;
use super::scan::word;
use crate::dialect::Wanted;
use crate::dialect::relaxed::{self, ParsedObject, RelaxedFaultKind, UnclosedBrackets, shown};

const FENCES: [&str; 3] = ["```json5", "```json", "```"];

/// Reads the call whose tag ends at this byte, and gives the byte behind the whole block.
///
/// # Errors
/// What is wrong, in a sentence for the model.
pub fn call(text: &str, begin: usize, unclosed: UnclosedBrackets) -> Result<(Wanted, usize), String> {
    let block = text.get(begin..).unwrap_or_default();
    let mut head = block.trim_start();
    for fence in FENCES {
        head = head.strip_prefix(fence).unwrap_or(head).trim_start();
    }
    if !head.starts_with('{') {
        return Err("A <tool_call> of your reply does not hold one JSON object.".to_owned());
    }
    let at = begin.saturating_add(block.len().saturating_sub(head.len()));
    let found = object(text, at, unclosed)?;
    let behind = found.end;
    let wanted = wanted(found)?;
    end(text, behind, unclosed).map(|end| (wanted, end))
}

/// The object that begins at this byte. One whose last brackets are missing ends where its tag does.
fn object(text: &str, at: usize, unclosed: UnclosedBrackets) -> Result<ParsedObject, String> {
    let fault = match relaxed::object(text, at, UnclosedBrackets::Refuse) {
        Ok(found) => return Ok(found),
        Err(fault) => fault,
    };
    let closes = |(from, _): (usize, &str)| {
        let from = at.saturating_add(from);
        word(text, from).is_some_and(|word| word.closing && word.name == "tool_call").then_some(from)
    };
    let close = text.get(at..).unwrap_or_default().match_indices('<').find_map(closes);
    if unclosed == UnclosedBrackets::Close {
        let block = text.get(..close.unwrap_or(text.len())).unwrap_or_default();
        if let Ok(found) = relaxed::object(block, at, UnclosedBrackets::Close) {
            return Ok(found);
        }
    }
    match fault.kind {
        RelaxedFaultKind::CutOff => {
            Err("A <tool_call> of your reply ends in the middle; answer more briefly.".to_owned())
        }
        _ => Err(format!("A <tool_call> of your reply is not valid JSON: {}.", escaped(&fault.words(text)))),
    }
}

/// The byte behind the block: its closing tag must follow, unless the reply ends or the next call begins.
fn end(text: &str, behind: usize, unclosed: UnclosedBrackets) -> Result<usize, String> {
    let rest = text.get(behind..).unwrap_or_default();
    let mut tail = rest.trim_start();
    tail = tail.strip_prefix("```").unwrap_or(tail).trim_start();
    let here = text.len().saturating_sub(tail.len());
    match word(text, here) {
        Some(word) if word.closing && word.name == "tool_call" => Ok(word.end),
        Some(word) if !word.closing && word.name == "tool_call" => Ok(here),
        _ if tail.is_empty() && unclosed == UnclosedBrackets::Close => Ok(here),
        _ if tail.get(..14).is_some_and(|tag| tag.eq_ignore_ascii_case("<tool_response")) => Ok(here),
        _ => Err("A <tool_call> of your reply goes on behind its object, or is not closed.".to_owned()),
    }
}

/// What a key of a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallField {
    Name,
    Input,
    Ignored,
    Stray,
}

fn field_of(key: &str) -> CallField {
    let plain: String =
        key.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).take(24).collect();
    match plain.as_str() {
        "name" | "tool" | "toolname" | "action" => CallField::Name,
        "arguments" | "args" | "parameters" | "params" | "input" | "actioninput" | "toolinput" => CallField::Input,
        "thought" | "thoughts" | "reasoning" | "id" | "type" => CallField::Ignored,
        _ => CallField::Stray,
    }
}

fn wanted(found: ParsedObject) -> Result<Wanted, String> {
    let supplied = found.supplied > 0;
    let (mut name, mut input, mut stray) = (None, None, None);
    for (key, value) in found.map {
        let (slot, what) = match field_of(&key) {
            CallField::Name => (&mut name, "name"),
            CallField::Input => (&mut input, "arguments"),
            CallField::Ignored => continue,
            CallField::Stray => {
                stray.get_or_insert(key);
                continue;
            }
        };
        match slot {
            None => *slot = Some(value),
            Some(other) if *other == value => {}
            Some(_) => return Err(format!("A <tool_call> of your reply gives \"{what}\" twice.")),
        }
    }
    let name = match name {
        Some(Value::String(name)) if !name.trim().is_empty() => name,
        Some(_) => return Err("The \"name\" of a <tool_call> must be a text.".to_owned()),
        None => return Err("A <tool_call> of your reply has no \"name\".".to_owned()),
    };
    let input = match input {
        // What would have followed is missing, and may have been the arguments.
        None if supplied => return Err("A <tool_call> of your reply ends in the middle.".to_owned()),
        None | Some(Value::Null) => match stray {
            Some(key) => {
                return Err(format!(
                    "A <tool_call> of your reply has no \"arguments\", but a key {}: put it into \"arguments\".",
                    escaped(&shown(&key))
                ));
            }
            None => Map::new(),
        },
        Some(Value::Object(map)) => map,
        Some(Value::String(text)) if text.trim_start().starts_with('{') => {
            relaxed::whole_object(&text).map_err(|fault| {
                format!("The \"arguments\" of a <tool_call> are not valid JSON: {}.", escaped(&fault.words(&text)))
            })?
        }
        Some(_) => return Err("The \"arguments\" of a <tool_call> must be an object.".to_owned()),
    };
    // With a bracket missing, a key of the call inside its arguments may belong outside of them.
    if supplied && input.keys().any(|key| matches!(field_of(key), CallField::Name | CallField::Input)) {
        return Err("A <tool_call> of your reply has a bracket too few; it is not clear where.".to_owned());
    }
    Ok(Wanted { name, input: Value::Object(input), unread: None })
}
