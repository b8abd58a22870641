//! Reviews a written schema: what is a valid JSON Schema and still not what its author means. A keyword that no
//! draft has asks for nothing, so a slip in it is silent otherwise.

mod contradiction;
mod example;
mod idle_keyword;
mod keyword;
mod known_members;
mod possible_values;
mod required_name;
#[cfg(test)]
mod tests;

use std::fmt::Arguments;

use serde_json::{Map, Value};

use crate::compile::tool::is_at;
use crate::diagnostic::{Severity, codes};
use crate::program::fault::LocalFault;
use crate::program::reference::escape_pointer;
use crate::program::schema::vocabulary::{Holds, keyword_named};
use keyword::SortedMembers;
pub(crate) use known_members::known_part;
use possible_values::{LeftTypes, ValueTypes};

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
    /// What still matches when nothing matches this part; nothing where every value needs it.
    pub stays: Option<String>,
    /// How it is used.
    pub role: PartRole,
}

/// How a part is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartRole {
    /// Values match it.
    Describes,
    /// What other names or items hold: what nothing matches says that there are none.
    Others,
    /// Values are asked whether they match it, and may not.
    Asks,
}

/// The values that a schema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewedValues {
    /// Objects: the input of a run or of a call.
    Objects,
    /// Any value.
    Anything,
}

/// Reviews a schema. What is wrong with it by its draft, at the pointers `refused`, is not reported again.
pub(super) fn review(written: &Value, about: ReviewedValues, refused: &[&str]) -> Review {
    let Value::Object(members) = written else { return Review { faults: Vec::new(), hides_names: false } };
    let mut reviewer =
        Reviewer { faults: Vec::new(), may_be_impossible: false, stays: Vec::new(), has_addresses: false };
    let whole = Part::whole(members);
    reviewer.part(&whole);
    // That the whole is for no objects is reported by itself.
    let takes_objects = whole.types().is_none_or(|types| types.contains(&"object"));
    let is_of_objects = about == ReviewedValues::Objects && takes_objects;
    let types = if is_of_objects { ValueTypes::OBJECT } else { ValueTypes::ALL };
    // A reference below a part with an address of its own may lead elsewhere: nothing is judged through it.
    if reviewer.may_be_impossible {
        let left = if reviewer.has_addresses { None } else { Some(possible_values::left(written, types)) };
        weigh(&mut reviewer.faults, &reviewer.stays, left);
    }
    let mut faults = reviewer.faults;
    // What refuses the whole leaves the judgement of its parts standing.
    let covers = |at: &str, pointer: &str| if at.is_empty() { pointer.is_empty() } else { is_at(pointer, at) };
    faults.retain(|fault| !refused.iter().any(|at| covers(at, &fault.pointer)));
    let hides_names = faults.iter().any(|fault| fault.is_error() && !fault.pointer.starts_with("/properties/"));
    Review { faults, hides_names }
}

/// A part that nothing matches is an error where every value needs it, and a warning elsewhere.
fn weigh(faults: &mut Vec<LocalFault>, stays: &[(String, String)], left: Option<LeftTypes>) {
    let impossible = left.filter(LeftTypes::is_impossible);
    let is_cause = |at: &str| impossible.as_ref().is_some_and(|left| left.blamed.iter().any(|blamed| blamed == at));
    for fault in faults.iter_mut().filter(|fault| fault.code == codes::IMPOSSIBLE_SCHEMA) {
        if is_cause(&fault.pointer) {
            continue;
        }
        fault.severity = Severity::Warning;
        if let Some((_, stays)) = stays.iter().find(|(at, _)| *at == fault.pointer) {
            let help = fault.help.take().unwrap_or_default();
            fault.help = Some(format!("{stays}; {help}"));
        }
    }
    let Some(left) = impossible.filter(|_| !faults.iter().any(LocalFault::is_error)) else { return };
    // The causes are no faults by themselves, as two types that exclude each other.
    let at = left.blamed.into_iter().next().unwrap_or_default();
    let message = "nothing matches the schema: every value needs this part, and nothing matches it beside the others";
    let fault = LocalFault::error(codes::IMPOSSIBLE_SCHEMA, at, message);
    faults.push(fault.help("correct this part, or take out of the schema what needs it"));
}

struct Reviewer {
    faults: Vec<LocalFault>,
    /// Whether a part was seen that may leave nothing.
    may_be_impossible: bool,
    /// What still matches without a part that nothing matches, by the JSON pointer of its fault.
    stays: Vec<(String, String)>,
    /// Whether a part inside has an address of its own.
    has_addresses: bool,
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
        self.faults.extend(idle_keyword::faults(part));
        let before = self.faults.len();
        self.faults.extend(contradiction::faults(part));
        self.faults.extend(required_name::faults(part, &written.properties));
        for fault in self.faults.iter().skip(before).filter(|fault| fault.code == codes::IMPOSSIBLE_SCHEMA) {
            self.may_be_impossible = true;
            // What is about values of one type leaves those of the other types.
            let is_of_one_type = part.types().is_some_and(|types| types.len() == 1);
            let stays = match fault.message.starts_with("nothing") || is_of_one_type {
                true => part.stays.as_deref(),
                false => Some("only values of other types match"),
            };
            self.stays.extend(stays.map(|stays| (fault.pointer.clone(), stays.to_owned())));
        }
        self.faults.truncate(MAX_FAULTS);
        let is_shut = |name: &String| matches!(name.as_str(), "not" | "allOf");
        self.may_be_impossible |= part.members.keys().any(is_shut);
        let has_address = ["$id", "id"].iter().any(|name| part.members.get(*name).is_some_and(Value::is_string));
        self.has_addresses |= has_address && !part.at.is_empty();
        for (name, value) in part.members {
            let Some(keyword) = keyword_named(name) else {
                // A property that was written outside of `properties`.
                if written.properties.contains(&name.as_str()) {
                    self.below(part, format_args!("{name}"), value, None);
                }
                continue;
            };
            match (keyword.holds, value) {
                (Holds::Schema | Holds::SchemaOrSchemas, Value::Object(_)) => {
                    self.below(
                        part,
                        format_args!("{name}"),
                        value,
                        Some(Edge { keyword: keyword.name, name: "", index: 0 }),
                    );
                }
                (Holds::NamedSchemas, Value::Object(schemas)) => {
                    for (key, schema) in schemas {
                        let edge = Edge { keyword: keyword.name, name: key, index: 0 };
                        self.may_be_impossible |= *schema == Value::Bool(false);
                        self.below(part, format_args!("{name}/{}", escape_pointer(key)), schema, Some(edge));
                    }
                }
                (Holds::Schemas | Holds::SchemaOrSchemas, Value::Array(schemas)) => {
                    for (at, schema) in schemas.iter().enumerate() {
                        let edge = Edge { keyword: keyword.name, name: "", index: at };
                        self.may_be_impossible |= *schema == Value::Bool(false);
                        self.below(part, format_args!("{name}/{at}"), schema, Some(edge));
                    }
                }
                _ => {}
            }
        }
    }

    fn below(&mut self, part: &Part<'_>, pointer: Arguments<'_>, schema: &Value, edge: Option<Edge<'_>>) {
        let Value::Object(members) = schema else { return };
        let at = format!("{}/{pointer}", part.at);
        let in_place = edge.as_ref().is_some_and(|edge| IN_PLACE.contains(&edge.keyword));
        let role = edge.as_ref().map_or(PartRole::Describes, |edge| edge.role(part.role));
        let stays = match &edge {
            Some(edge) => edge.stays(part),
            None => part.stays.clone(),
        };
        self.part(&Part { at, members, in_place, draft_4: part.draft_4, stays, role });
    }
}

/// The way from a schema to a part of it.
#[derive(Clone, Copy)]
struct Edge<'e> {
    keyword: &'static str,
    /// The name of the part, where the keyword holds schemas by name.
    name: &'e str,
    /// Its index, where the keyword holds a list of schemas.
    index: usize,
}

impl Edge<'_> {
    fn role(&self, around: PartRole) -> PartRole {
        match self.keyword {
            _ if around == PartRole::Asks => PartRole::Asks,
            "not" | "if" => PartRole::Asks,
            "additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems" => {
                PartRole::Others
            }
            _ => PartRole::Describes,
        }
    }

    /// What still matches when nothing matches the part at the end of the way. Where every value that matches the schema
    /// around needs the part, it is what still matches when nothing matches that schema.
    fn stays(&self, around: &Part<'_>) -> Option<String> {
        let least = around.members.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let prefix = || around.members.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        let required = || around.members.get("required").and_then(Value::as_array).into_iter().flatten();
        let is_needed = match self.keyword {
            "allOf" => true,
            "properties" => required().any(|name| name == self.name),
            "contains" => around.members.get("minContains").and_then(Value::as_u64) != Some(0),
            "prefixItems" => u64::try_from(self.index).is_ok_and(|index| index < least),
            "items" => u64::try_from(self.index.max(prefix())).is_ok_and(|before| before < least),
            _ => false,
        };
        if is_needed {
            return around.stays.clone();
        }
        Some(match self.keyword {
            "properties" => format!("`{}` can only be left out", short(self.name)),
            "patternProperties" => format!("no name that matches `{}` can be there", short(self.name)),
            "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" => {
                "only a list without such items matches".to_owned()
            }
            "additionalProperties" | "unevaluatedProperties" => "no other names can be there".to_owned(),
            "anyOf" | "oneOf" => "only the other forms match".to_owned(),
            "$defs" | "definitions" => "nothing that refers to this part matches".to_owned(),
            _ => "only a value that does not need this part matches".to_owned(),
        })
    }
}

impl<'s> Part<'s> {
    /// A schema as a whole.
    fn whole(members: &'s Map<String, Value>) -> Self {
        let draft_4 = members.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("draft-04"));
        Self { draft_4, ..Self::inner(String::new(), members) }
    }

    /// A schema at a JSON pointer, by itself.
    fn inner(at: String, members: &'s Map<String, Value>) -> Self {
        Self { at, members, in_place: false, draft_4: false, stays: None, role: PartRole::Describes }
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

    /// Whether values have to match it, so that what contradicts itself in it is a fault.
    fn judges_values(&self) -> bool {
        match self.role {
            PartRole::Describes => true,
            PartRole::Others => !self.members.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty),
            PartRole::Asks => false,
        }
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
