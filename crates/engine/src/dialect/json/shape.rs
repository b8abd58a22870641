//! From an object to a call: which key is the thought, the action, the input.
//!
//! Keys are compared without case, `_`, `-` and spaces. `thought`, `action`, `action_input` are the
//! declared ones; these are taken in their place, when the object has no declared one:
//!
//! | in place of | taken |
//! |---|---|
//! | `thought` | `thoughts`, `thinking`, `reasoning` |
//! | `action` | `tool`, `tool_name`; only together with an input |
//! | `action_input` | `input`, `tool_input`, `arguments`, `args`, `parameters`, `params` |
//!
//! Two keys for one thing are refused, unless they have the same value; two spellings of `action`
//! always. Other keys mean nothing to us, unless the input is missing: then they may be its parts,
//! and the reply is refused.

use serde_json::{Map, Value};

use super::refusal::ReplyRefusal;
use crate::dialect::Wanted;
use crate::dialect::relaxed::{self, ParsedObject};

/// What a key of a reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyField {
    /// The thought.
    Thought,
    /// The action, by its own name.
    Action,
    /// The action, by another name.
    Tool,
    /// The action's input.
    Input,
    /// An observation, which is not the model's to write.
    Observation,
    /// A final answer, which belongs into the input of `__complete__`.
    Answer,
    /// Anything else.
    Other,
}

/// What this key is for.
pub fn field_of(key: &str) -> ReplyField {
    // No known key is longer. Every key of every reply comes here, so none is copied to the heap.
    let mut room = [0_u8; 24];
    if key.len() > room.len() {
        return ReplyField::Other;
    }
    let bytes = key.bytes().filter(|byte| !matches!(byte, b'_' | b'-' | b' '));
    let count = room.iter_mut().zip(bytes).map(|(to, byte)| *to = byte.to_ascii_lowercase()).count();
    match room.get(..count).unwrap_or_default() {
        b"thought" | b"thoughts" | b"thinking" | b"reasoning" => ReplyField::Thought,
        b"action" => ReplyField::Action,
        b"tool" | b"toolname" => ReplyField::Tool,
        b"actioninput" | b"input" | b"toolinput" | b"arguments" | b"args" | b"parameters" | b"params" => {
            ReplyField::Input
        }
        b"observation" => ReplyField::Observation,
        b"answer" | b"finalanswer" => ReplyField::Answer,
        _ => ReplyField::Other,
    }
}

/// A key without case, `_`, `-` and spaces.
pub fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether an object of this role has one.
pub fn has(map: &Map<String, Value>, wanted: &[ReplyField]) -> bool {
    map.keys().any(|key| wanted.contains(&field_of(key)))
}

/// The thought and the call of an object; or the thought, as far as it is known, and why there is no call.
pub fn shape(found: ParsedObject) -> Result<(String, Wanted), (String, ReplyRefusal)> {
    let mut parts = ReplyFields::default();
    for (key, value) in found.map {
        parts.take(key, value);
    }
    parts.doubled |= found.repeated.iter().any(|key| matches!(field_of(key), ReplyField::Action | ReplyField::Tool));
    parts.supplied = found.supplied > 0;
    let thought = match parts.thought.take() {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(thought)) => thought,
        Some(other) => other.to_string(),
    };
    match parts.call() {
        Ok(wanted) => Ok((thought, wanted)),
        Err(refusal) => Err((thought, refusal)),
    }
}

/// The values of an object by their roles.
#[derive(Default)]
struct ReplyFields {
    thought: Option<Value>,
    thought_declared: bool,
    actions: Vec<Value>,
    tools: Vec<Value>,
    inputs: Vec<Value>,
    /// A key that may be a part of a missing input.
    stray: Option<String>,
    /// Whether a key of the action occurs twice.
    doubled: bool,
    /// Whether closing brackets were missing.
    supplied: bool,
}

impl ReplyFields {
    fn take(&mut self, key: String, value: Value) {
        match field_of(&key) {
            ReplyField::Thought => {
                if self.thought.is_none() || (key == "thought" && !self.thought_declared) {
                    self.thought = Some(value);
                    self.thought_declared = key == "thought";
                }
            }
            ReplyField::Action => self.actions.push(value),
            ReplyField::Tool => self.tools.push(value),
            ReplyField::Input => self.inputs.push(value),
            ReplyField::Observation => {}
            ReplyField::Answer | ReplyField::Other => {
                self.stray.get_or_insert(key);
            }
        }
    }

    fn call(mut self) -> Result<Wanted, ReplyRefusal> {
        if self.doubled || self.actions.len() > 1 {
            return Err(ReplyRefusal::ActionTwice);
        }
        if self.actions.is_empty() && self.inputs.is_empty() {
            return Err(if self.tools.is_empty() { ReplyRefusal::NoAction } else { ReplyRefusal::ActionUnsure });
        }
        let mut names = std::mem::take(&mut self.actions);
        names.append(&mut self.tools);
        let name = match one(names).ok_or(ReplyRefusal::ActionTwice)? {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            Some(_) => return Err(ReplyRefusal::ActionNotText),
            None => return Err(ReplyRefusal::NoAction),
        };
        let input = one(std::mem::take(&mut self.inputs)).ok_or(ReplyRefusal::InputTwice)?;
        Ok(Wanted { name, input: Value::Object(self.input(input)?), unread: None })
    }

    fn input(self, value: Option<Value>) -> Result<Map<String, Value>, ReplyRefusal> {
        let map = match value {
            // What would have followed was cut off, and may have been the input.
            None if self.supplied => return Err(ReplyRefusal::CutOff),
            None | Some(Value::Null) => match self.stray {
                Some(key) => return Err(ReplyRefusal::InputMissing(key)),
                None => return Ok(Map::new()),
            },
            Some(Value::Object(map)) => map,
            Some(Value::String(text)) if text.trim_start().starts_with('{') => {
                relaxed::whole_object(&text).map_err(|fault| ReplyRefusal::InputBroken(fault.words(&text)))?
            }
            Some(_) => return Err(ReplyRefusal::InputNotObject),
        };
        // With a bracket missing, a key of the reply inside the input may belong outside of it.
        if self.supplied && has(&map, &[ReplyField::Thought, ReplyField::Action, ReplyField::Observation]) {
            return Err(ReplyRefusal::CutOff);
        }
        Ok(map)
    }
}

/// The one value of a list of equal ones; `None` when they differ.
fn one(values: Vec<Value>) -> Option<Option<Value>> {
    let mut values = values.into_iter();
    let first = values.next();
    values.all(|value| first.as_ref() == Some(&value)).then_some(first)
}
