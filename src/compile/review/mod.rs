//! Reviews a written schema: what is a valid JSON Schema and still not what its author means. A keyword that no
//! draft has asks for nothing, so a slip in it is silent otherwise.

mod contradiction;
mod example;
mod idle;
mod keyword;
mod known;
mod required;
#[cfg(test)]
mod tests;

use std::fmt::Arguments;

use serde_json::{Map, Value};

use crate::compile::tool::is_at;
use crate::program::fault::LocalFault;
use crate::program::reference::escape_pointer;
use crate::program::schema::vocabulary::{Holds, keyword_named};
use keyword::SortedMembers;
pub(crate) use known::known_part;

/// The most faults that are reported of one schema.
const MAX_FAULTS: usize = 50;
/// The keywords whose schemas are about the same value as the schema around them.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// What a review of a schema found.
pub(super) struct Review {
    /// The faults; their pointers begin at the schema.
    pub faults: Vec<LocalFault>,
    /// Whether they leave open which names the schema means.
    pub hides_names: bool,
}

/// A part of a schema that is a schema itself.
pub(super) struct Part<'s> {
    /// Its JSON pointer in the schema.
    pub at: String,
    pub members: &'s Map<String, Value>,
    /// Whether the schema around it is about the same value, and may describe what this one does not.
    pub in_place: bool,
    /// Whether it is of draft 4.
    pub draft_4: bool,
}

/// Reviews a schema. What is wrong with it by its draft, at the pointers `refused`, is not reported again.
pub(super) fn review(written: &Value, refused: &[&str]) -> Review {
    let Value::Object(members) = written else { return Review { faults: Vec::new(), hides_names: false } };
    let mut reviewer = Reviewer { faults: Vec::new() };
    reviewer.part(&Part::whole(members));
    let mut faults = reviewer.faults;
    // What refuses the whole leaves the judgement of its parts standing.
    let covers = |at: &str, pointer: &str| if at.is_empty() { pointer.is_empty() } else { is_at(pointer, at) };
    faults.retain(|fault| !refused.iter().any(|at| covers(at, &fault.pointer)));
    let hides_names = faults.iter().any(|fault| fault.is_error() && !fault.pointer.starts_with("/properties/"));
    Review { faults, hides_names }
}

struct Reviewer {
    faults: Vec<LocalFault>,
}

impl Reviewer {
    fn part(&mut self, part: &Part<'_>) {
        if self.faults.len() >= MAX_FAULTS {
            return;
        }
        let written = SortedMembers::of(part);
        if let Some(fault) = example::whole(part, &written) {
            self.faults.push(fault);
            return;
        }
        self.faults.extend(keyword::faults(part, &written));
        self.faults.extend(example::outside(part, &written));
        self.faults.extend(idle::faults(part));
        self.faults.extend(contradiction::faults(part));
        self.faults.extend(required::faults(part, &written.properties));
        self.faults.truncate(MAX_FAULTS);
        for (name, value) in part.members {
            let Some(keyword) = keyword_named(name) else {
                // A property that was written outside of `properties`.
                if written.properties.contains(&name.as_str()) {
                    self.below(part, format_args!("{name}"), value, false);
                }
                continue;
            };
            let in_place = IN_PLACE.contains(&keyword.name);
            match (keyword.holds, value) {
                (Holds::Schema | Holds::SchemaOrSchemas, Value::Object(_)) => {
                    self.below(part, format_args!("{name}"), value, in_place);
                }
                (Holds::NamedSchemas, Value::Object(schemas)) => {
                    for (key, schema) in schemas {
                        self.below(part, format_args!("{name}/{}", escape_pointer(key)), schema, in_place);
                    }
                }
                (Holds::Schemas | Holds::SchemaOrSchemas, Value::Array(schemas)) => {
                    for (at, schema) in schemas.iter().enumerate() {
                        self.below(part, format_args!("{name}/{at}"), schema, in_place);
                    }
                }
                _ => {}
            }
        }
    }

    fn below(&mut self, part: &Part<'_>, pointer: Arguments<'_>, schema: &Value, in_place: bool) {
        let Value::Object(members) = schema else { return };
        let at = format!("{}/{pointer}", part.at);
        self.part(&Part { at, members, in_place, draft_4: part.draft_4 });
    }
}

impl<'s> Part<'s> {
    /// A schema as a whole.
    fn whole(members: &'s Map<String, Value>) -> Self {
        let draft_4 = members.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("draft-04"));
        Self { at: String::new(), members, in_place: false, draft_4 }
    }
}

impl Part<'_> {
    /// The JSON pointer of a member.
    fn below(&self, name: &str) -> String {
        format!("{}/{}", self.at, escape_pointer(name))
    }

    /// The types that it names; nothing when it names none, or one that there is not.
    fn types(&self) -> Option<Vec<&str>> {
        let types: Vec<&str> = match self.members.get("type")? {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
            _ => return None,
        };
        let known = ["array", "boolean", "integer", "null", "number", "object", "string"];
        types.iter().all(|name| known.contains(name)).then_some(types)
    }

    /// Whether it says with OpenAPI's keyword that a value may be null: that is reported by itself.
    fn is_nullable(&self) -> bool {
        self.members.get("nullable") == Some(&Value::Bool(true))
    }
}

/// Names in a sentence.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(4).map(|name| format!("`{}`", short(name))).collect();
    let more = names.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// A name or a text, cut to what a message shows.
fn short(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
