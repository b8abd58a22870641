//! A matcher as a tool: its settings and lists, and what a call gives in their place.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{MatchFault, MatchSettings, match_lists, unequal_types, unread};
use crate::language::action::{MATCHER_SETTINGS, Matcher};
use crate::program::json_length::json_bytes;
use crate::program::reference::{Field, Scope, Unresolved};

/// The default keys of a result.
const KEYS: [&str; 3] = ["matched", "unmatchedLeft", "unmatchedRight"];

/// A matcher, compiled.
#[derive(Debug, Default)]
pub struct MatcherTool {
    /// The settings that are written, by their names.
    pub settings: Map<String, Value>,
    /// The one list.
    pub left: MatcherSide,
    /// The other list.
    pub right: MatcherSide,
}

/// A list of a matcher.
#[derive(Debug, Default)]
pub struct MatcherSide {
    /// The list, or its path, when it is written.
    pub field: Option<Field>,
    /// The last name of its path: an input of that name takes its place.
    pub name: Option<String>,
}

/// A call with all that it needs.
#[derive(Debug)]
pub struct MatcherCall {
    settings: MatchSettings,
    keys: [String; 3],
    left: MatcherEntries,
    right: MatcherEntries,
}

/// The entries of a list of a call.
#[derive(Debug)]
enum MatcherEntries {
    Own(Vec<Value>),
    /// They are in this member of the input of the call, which may be large: it is not copied.
    OfInput(Arc<Value>, String),
}

impl MatcherEntries {
    fn as_slice(&self) -> &[Value] {
        match self {
            Self::Own(entries) => entries,
            Self::OfInput(input, name) => input.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice),
        }
    }
}

impl MatcherTool {
    /// The keys of a result, by the settings that are written.
    pub fn keys(&self) -> [&str; 3] {
        let [matched, left, right] = KEYS;
        let key =
            |name: &str, default: &'static str| self.settings.get(name).and_then(Value::as_str).unwrap_or(default);
        [key("outputMatched", matched), key("outputUnmatchedLeft", left), key("outputUnmatchedRight", right)]
    }

    /// A call with the input of a scope. A setting, or a list, of the input takes the place of the written one. `input`: the
    /// arguments of the scope.
    ///
    /// # Errors
    /// A sentence that says what is missing, or can't be used.
    pub fn call(&self, input: &Arc<Value>, scope: &Scope<'_>) -> Result<MatcherCall, String> {
        let given = |name: &str| input.get(name).filter(|value| !value.is_null());
        let mut written = self.settings.clone();
        for name in MATCHER_SETTINGS {
            if let Some(value) = given(name) {
                written.insert(name.to_owned(), value.clone());
            }
        }
        let written = Matcher::deserialize(&Value::Object(written)).map_err(|error| error.to_string())?;
        let settings = MatchSettings::new(&written)?;
        let [matched, left, right] = KEYS;
        let keys = [
            written.output_matched.unwrap_or_else(|| matched.to_owned()),
            written.output_unmatched_left.unwrap_or_else(|| left.to_owned()),
            written.output_unmatched_right.unwrap_or_else(|| right.to_owned()),
        ];
        let [first, second, third] = &keys;
        if first == second || first == third || second == third {
            return Err("two lists of the result have the same key".to_owned());
        }
        let list = |side: &MatcherSide, name: &str| {
            let names = [Some(name), side.name.as_deref()].into_iter().flatten();
            let mut of_input = names.filter_map(|name| Some((name, given(name)?)));
            let value = match (of_input.next(), &side.field) {
                (Some((name, Value::Array(_))), _) => {
                    return Ok(MatcherEntries::OfInput(Arc::clone(input), name.to_owned()));
                }
                (Some((_, value)), _) => value.clone(),
                (None, Some(field)) => {
                    field.resolve(scope).map_err(|Unresolved { why, .. }| format!("`{name}`: {why}"))?
                }
                (None, None) => return Err(format!("`{name}` is missing")),
            };
            entries(value, scope)
                .map(MatcherEntries::Own)
                .map_err(|what| format!("`{name}` must be a list; {what} was given"))
        };
        Ok(MatcherCall { settings, keys, left: list(&self.left, "left")?, right: list(&self.right, "right")? })
    }
}

/// The entries of a list, or of a text that is the JSON of one, or has it in a fence.
fn entries(value: Value, scope: &Scope<'_>) -> Result<Vec<Value>, &'static str> {
    match value {
        Value::Array(entries) => Ok(entries),
        Value::String(text) => match scope.json_of(&text) {
            Some(Value::Array(entries)) => Ok(entries),
            _ => Err("a text"),
        },
        Value::Object(_) => Err("an object"),
        Value::Number(_) => Err("a number"),
        Value::Bool(_) => Err("true or false"),
        Value::Null => Err("null"),
    }
}

impl MatcherCall {
    /// Matches the lists: the pairs, and what is left of both. `most`: the most bytes of the result as JSON text, which is not
    /// made when it has more.
    ///
    /// # Errors
    /// When the lists take too much work, when nothing can match, and when the result is too long.
    pub fn run(self, most: Option<usize>) -> Result<Value, MatchFault> {
        let (left, right) = (self.left.as_slice(), self.right.as_slice());
        let found = match_lists(&self.settings, left, right)?;
        if found.matched.is_empty()
            && let Some(fault) =
                unequal_types(&self.settings, left, right).or_else(|| unread(&self.settings, left, right))
        {
            return Err(fault);
        }
        if let Some(most) = most {
            // What is between the lists: two braces, two commas, and the keys with their colons.
            let keys = self.keys.iter().map(|key| json_bytes(&Value::from(key.as_str())).saturating_add(1));
            let bytes = keys.fold(found.bytes(left, right).saturating_add(4), usize::saturating_add);
            if bytes > most {
                return Err(MatchFault::TooLong { bytes, most });
            }
        }
        let lists = found.entries(left, right);
        Ok(self.keys.into_iter().zip(lists.map(Value::Array)).collect::<Map<_, _>>().into())
    }
}
