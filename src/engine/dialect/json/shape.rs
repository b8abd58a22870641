//! From an object to a call: which key is the thought, the action, the input.
//!
//! Keys are compared without case, `_`, `-` and spaces. `thought`, `action`, `action_input` are the
//! declared ones; these are taken in their place, when no declared one stands beside them:
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

use super::refusal::Refusal;
use crate::engine::dialect::Wanted;
use crate::engine::dialect::relaxed::{self, Found};

/// What a key of a reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
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
pub fn role(key: &str) -> Role {
    // No known key is longer. Every key of every reply comes here, so none is copied to the heap.
    let mut room = [0_u8; 24];
    if key.len() > room.len() {
        return Role::Other;
    }
    let bytes = key.bytes().filter(|byte| !matches!(byte, b'_' | b'-' | b' '));
    let count = room.iter_mut().zip(bytes).map(|(to, byte)| *to = byte.to_ascii_lowercase()).count();
    match room.get(..count).unwrap_or_default() {
        b"thought" | b"thoughts" | b"thinking" | b"reasoning" => Role::Thought,
        b"action" => Role::Action,
        b"tool" | b"toolname" => Role::Tool,
        b"actioninput" | b"input" | b"toolinput" | b"arguments" | b"args" | b"parameters" | b"params" => Role::Input,
        b"observation" => Role::Observation,
        b"answer" | b"finalanswer" => Role::Answer,
        _ => Role::Other,
    }
}

/// A key without case, `_`, `-` and spaces.
pub fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether an object of this role has one.
pub fn has(map: &Map<String, Value>, wanted: &[Role]) -> bool {
    map.keys().any(|key| wanted.contains(&role(key)))
}

/// The thought and the call of an object; or the thought, as far as it can be told, and why not.
pub fn shape(found: Found) -> Result<(String, Wanted), (String, Refusal)> {
    let mut parts = Parts::default();
    for (key, value) in found.map {
        parts.take(key, value);
    }
    parts.doubled |= found.repeated.iter().any(|key| matches!(role(key), Role::Action | Role::Tool));
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
struct Parts {
    thought: Option<Value>,
    thought_declared: bool,
    actions: Vec<Value>,
    tools: Vec<Value>,
    inputs: Vec<Value>,
    /// A key that may be a part of a missing input.
    stray: Option<String>,
    /// Whether a key of the action stands there twice.
    doubled: bool,
    /// Whether closing brackets were missing.
    supplied: bool,
}

impl Parts {
    fn take(&mut self, key: String, value: Value) {
        match role(&key) {
            Role::Thought => {
                if self.thought.is_none() || (key == "thought" && !self.thought_declared) {
                    self.thought = Some(value);
                    self.thought_declared = key == "thought";
                }
            }
            Role::Action => self.actions.push(value),
            Role::Tool => self.tools.push(value),
            Role::Input => self.inputs.push(value),
            Role::Observation => {}
            Role::Answer | Role::Other => {
                self.stray.get_or_insert(key);
            }
        }
    }

    fn call(mut self) -> Result<Wanted, Refusal> {
        if self.doubled || self.actions.len() > 1 {
            return Err(Refusal::ActionTwice);
        }
        if self.actions.is_empty() && self.inputs.is_empty() {
            return Err(if self.tools.is_empty() { Refusal::NoAction } else { Refusal::ActionUnsure });
        }
        let mut names = std::mem::take(&mut self.actions);
        names.append(&mut self.tools);
        let name = match one(names).ok_or(Refusal::ActionTwice)? {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            Some(_) => return Err(Refusal::ActionNotText),
            None => return Err(Refusal::NoAction),
        };
        let input = one(std::mem::take(&mut self.inputs)).ok_or(Refusal::InputTwice)?;
        Ok(Wanted { name, input: Value::Object(self.input(input)?), unread: None })
    }

    fn input(self, value: Option<Value>) -> Result<Map<String, Value>, Refusal> {
        let map = match value {
            // What would have followed was cut off, and may have been the input.
            None if self.supplied => return Err(Refusal::CutOff),
            None | Some(Value::Null) => match self.stray {
                Some(key) => return Err(Refusal::InputMissing(key)),
                None => return Ok(Map::new()),
            },
            Some(Value::Object(map)) => map,
            Some(Value::String(text)) if text.trim_start().starts_with('{') => {
                relaxed::whole_object(&text).map_err(|fault| Refusal::InputBroken(fault.words(&text)))?
            }
            Some(_) => return Err(Refusal::InputNotObject),
        };
        // With a bracket missing, a key of the reply inside the input may belong outside of it.
        if self.supplied && has(&map, &[Role::Thought, Role::Action, Role::Observation]) {
            return Err(Refusal::CutOff);
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
