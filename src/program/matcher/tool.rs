//! A matcher as a tool: its settings and lists, and what a call gives in their place.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{MatchFault, MatchSettings, match_lists, unequal_types};
use crate::language::action::{MATCHER_SETTINGS, Matcher};
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
    left: Vec<Value>,
    right: Vec<Value>,
}

impl MatcherTool {
    /// The keys of a result, by the settings that are written.
    pub fn keys(&self) -> [&str; 3] {
        let [matched, left, right] = KEYS;
        let key =
            |name: &str, default: &'static str| self.settings.get(name).and_then(Value::as_str).unwrap_or(default);
        [key("outputMatched", matched), key("outputUnmatchedLeft", left), key("outputUnmatchedRight", right)]
    }

    /// A call with the input of a scope. A setting, or a list, of the input takes the place of the written one.
    ///
    /// # Errors
    /// A sentence that says what is missing, or can't be used.
    pub fn call(&self, scope: &Scope<'_>) -> Result<MatcherCall, String> {
        let given = |name: &str| scope.arguments.get(name).filter(|value| !value.is_null());
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
            let by_name = side.name.as_deref().and_then(given);
            let value = match (given(name).or(by_name), &side.field) {
                (Some(value), _) => value.clone(),
                (None, Some(field)) => field.resolve(scope).map_err(|Unresolved(why)| format!("`{name}`: {why}"))?,
                (None, None) => return Err(format!("`{name}` is missing")),
            };
            entries(value, scope).map_err(|what| format!("`{name}` must be a list; {what} was given"))
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
    /// Matches the lists: the pairs, and what is left of both.
    ///
    /// # Errors
    /// When the lists take too much work, and when nothing can match.
    pub fn run(self) -> Result<Value, MatchFault> {
        let found = match_lists(&self.settings, &self.left, &self.right)?;
        if found.matched.is_empty()
            && let Some(unequal) = unequal_types(&self.settings, &self.left, &self.right)
        {
            return Err(unequal);
        }
        let lists = found.into_entries(self.left, self.right);
        Ok(self.keys.into_iter().zip(lists.map(Value::Array)).collect::<Map<_, _>>().into())
    }
}
