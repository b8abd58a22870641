//! JSON Schemas: compiled once, with every reference to elsewhere refused, and compared in counted steps.
//!
//! The library of schemas judges the schema itself, formats, and what a text encodes. It does not compare
//! values: what it does for `oneOf` in `oneOf`, or for parts that double each other, grows with the ways
//! that lead to a part. Here a schema becomes a plan (`lower`, `plan`), a judge compares it with a value
//! and remembers what came out (`judge`, `marks`), and faults are looked for afterwards (`gather`).

mod advice;
mod alphabet;
mod comparison;
mod depth;
mod description;
mod evaluated_parts;
mod evident_schema;
mod examination;
mod keyword;
mod lowering;
mod message;
mod pattern;
mod plan;
mod problem;
mod schema_faults;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_agree;
#[cfg(test)]
mod tests_plain;
#[cfg(test)]
mod tests_work;
mod violations;
pub mod vocabulary;
mod work;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use jsonschema::Draft;
use serde_json::{Map, Value, json};

pub use self::advice::{Advice, Fix, advice, is_type_word, type_meant};
pub(crate) use self::alphabet::Alphabet;
pub use self::description::{AbsentStep, Described, LargeTypes, StepOwner, described, is_declared_json, short};
pub use self::examination::Examined;
pub(crate) use self::pattern::TextPattern;
use super::reference::escape_pointer;
use crate::program::schema::comparison::Judge;
use crate::program::schema::plan::Plan;
use crate::program::schema::violations::Gather;
use crate::program::schema::work::{StepBudget, TooMuch};

/// The most faults that are reported for one value.
const MAX_FAULTS: usize = 20;
/// The bytes that all patterns of a document may compile to.
pub const MAX_PATTERN_PROGRAMS: usize = 16 << 20;
/// How deep the parts that describe one object may be nested.
const MAX_PARTS_DEPTH: usize = 8;

/// A JSON Schema that is known to be valid. Cheap to clone; what compares values with it is made when
/// the first value comes, and shared by all clones.
#[derive(Debug, Clone)]
pub struct Schema {
    parts: Arc<SchemaParts>,
}

#[derive(Debug)]
struct SchemaParts {
    source: Arc<Value>,
    text: OnceLock<Box<str>>,
    plan: OnceLock<Result<Plan, SchemaFault>>,
    pattern_bytes: usize,
}

/// What does not match a schema, or what is wrong with the schema itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// The JSON pointer of the faulty part.
    pub path: String,
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
    /// The name or the value that was most likely meant by the one that is given.
    pub near: Option<String>,
    /// How many bytes of the message name the part, at its beginning.
    subject: usize,
}

impl SchemaFault {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), near: None, subject: 0 }
    }

    /// The message with another name for the whole value.
    pub fn about_whole(&self, name: &str) -> String {
        match self.message.get(self.subject..) {
            Some(rest) if self.path.is_empty() && self.subject > 0 => format!("{name}{rest}"),
            _ => self.message.clone(),
        }
    }
}

impl Schema {
    /// Compiles a schema. It may refer to its own parts (`#/$defs/x`) and to nothing else: nothing
    /// is fetched, and no file is read. Its draft is that of `$schema`, when that is a known one;
    /// else 2020-12.
    ///
    /// # Errors
    /// When it is no valid JSON Schema, refers to elsewhere, or can't be compared with values in bounded
    /// work; `path` leads into the schema then.
    pub fn compile(source: Value) -> Result<Self, SchemaFault> {
        Self::compile_all(Arc::new(source)).map_err(first)
    }

    /// The same with all faults that can be seen at once.
    fn compile_all(source: Arc<Value>) -> Result<Self, Vec<SchemaFault>> {
        let cell = OnceLock::new();
        let pattern_bytes = if evident_schema::is_plain(&source) {
            evident_schema::pattern_bytes(&source)
        } else {
            let plan = plan(&source, MAX_PATTERN_PROGRAMS)?;
            let bytes = plan.pattern_bytes;
            drop(cell.set(Ok(plan)));
            bytes
        };
        if pattern_bytes > MAX_PATTERN_PROGRAMS {
            return Err(vec![too_many_patterns(String::new())]);
        }
        Ok(Self { parts: Arc::new(SchemaParts { source, text: OnceLock::new(), plan: cell, pattern_bytes }) })
    }

    /// The schema that every object matches.
    pub fn any() -> Self {
        let (source, plan) = (Arc::new(json!({"type": "object"})), OnceLock::new());
        Self { parts: Arc::new(SchemaParts { source, text: OnceLock::new(), plan, pattern_bytes: 0 }) }
    }

    /// An upper bound of the bytes that its patterns take once they are compiled.
    pub fn pattern_bytes(&self) -> usize {
        self.parts.pattern_bytes
    }

    /// The schema as written.
    pub fn source(&self) -> &Value {
        &self.parts.source
    }

    /// The schema as one line of JSON: every run's prompt has it.
    pub fn text(&self) -> &str {
        self.parts.text.get_or_init(|| self.parts.source.to_string().into_boxed_str())
    }

    /// Everything about `instance` that does not match, at most 20 faults; empty when it matches.
    /// `path` leads into the instance. The work is bounded, and counted: what would take more is a
    /// fault, and the same value always has the same ones.
    pub fn faults(&self, instance: &Value) -> Vec<SchemaFault> {
        // Beyond these an exact comparison would cost more than any number is worth.
        let immense = schema_faults::immense_numbers(instance, "");
        if !immense.is_empty() {
            return immense;
        }
        // What is made only now was seen to be valid at a glance.
        let source = self.source();
        let plan =
            match self.parts.plan.get_or_init(|| lowering::lower(source, draft(source), usize::MAX).map_err(first)) {
                Ok(plan) => plan,
                // What is plain compiles; were it ever not so, nothing would match, and this says why.
                Err(fault) => return vec![SchemaFault::new("", fault.message.clone())],
            };
        let mut judge = Judge::new(plan, instance);
        match judge.matches(0, instance) {
            Ok(true) => Vec::new(),
            // Looking for faults costs more than looking whether there are any.
            Ok(false) => self.gathered(judge, instance),
            Err(stop) => vec![stopped(stop, instance)],
        }
    }

    fn gathered(&self, mut judge: Judge<'_>, instance: &Value) -> Vec<SchemaFault> {
        judge.work = StepBudget::new(instance);
        let mut gather = Gather::new(&mut judge, self.source(), "", MAX_FAULTS);
        let stop = gather.part(0, instance).err();
        let problems = gather.found;
        if problems.is_empty() {
            return vec![stopped(stop.unwrap_or(TooMuch::Steps), instance)];
        }
        let mut words = message::FormExplainer { judge: &mut judge, source: self.source() };
        problems.into_iter().map(|problem| message::fault(problem, &mut words)).collect()
    }

    /// The names of the properties that it describes for an object, in their order: its own, those
    /// of what it refers to, and those of `allOf`, `anyOf` and `oneOf`.
    pub fn properties(&self) -> Vec<&str> {
        if self.is_one_part() {
            return property_names(self.source()).collect();
        }
        let (mut names, mut known) = (Vec::new(), HashSet::new());
        self.each_part(&mut |part| names.extend(property_names(part).filter(|name| known.insert(*name))));
        names
    }

    /// The names that it requires of every object.
    pub fn required(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for part in std::iter::once(self.source()).chain(self.referred(self.source())) {
            names
                .extend(part.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str));
        }
        names
    }

    /// Whether it says itself that an object may have other properties than those it describes.
    pub fn is_open(&self) -> bool {
        let mut open = *self.source() == Value::Bool(true);
        self.each_part(&mut |part| {
            let additional = part.get("additionalProperties").or_else(|| part.get("unevaluatedProperties"));
            open |= part.get("patternProperties").is_some() || additional.is_some_and(|value| *value != false);
        });
        open
    }

    /// Whether it says itself that an object may have no other properties.
    pub fn is_closed(&self) -> bool {
        let shut = |key: &str| self.source().get(key) == Some(&Value::Bool(false));
        (shut("additionalProperties") || shut("unevaluatedProperties"))
            && self.source().get("patternProperties").is_none()
    }

    /// Whether no other part describes the same object.
    fn is_one_part(&self) -> bool {
        let names_others = |keyword: &String| matches!(keyword.as_str(), "$ref" | "allOf" | "anyOf" | "oneOf");
        !self.source().as_object().is_some_and(|members| members.keys().any(names_others))
    }

    /// Visits the parts that describe the same object, each once.
    fn each_part<'s>(&'s self, visit: &mut dyn FnMut(&'s Value)) {
        if self.is_one_part() {
            return visit(self.source());
        }
        self.parts_of(self.source(), MAX_PARTS_DEPTH, &mut HashMap::new(), visit);
    }

    /// `seen` holds how deep the search below a part went: parts that name each other many times over
    /// would be gone through without end.
    fn parts_of<'s>(
        &'s self,
        part: &'s Value,
        depth: usize,
        seen: &mut HashMap<*const Value, usize>,
        visit: &mut dyn FnMut(&'s Value),
    ) {
        match seen.insert(std::ptr::from_ref(part), depth) {
            Some(deep) if deep >= depth => {
                seen.insert(std::ptr::from_ref(part), deep);
                return;
            }
            Some(_) => {}
            None => visit(part),
        }
        if depth == 0 {
            return;
        }
        if let Some(inner) = self.referred(part) {
            self.parts_of(inner, depth - 1, seen, visit);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for inner in part.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.parts_of(inner, depth - 1, seen, visit);
            }
        }
    }

    /// The own part that `part` refers to.
    fn referred<'s>(&'s self, part: &Value) -> Option<&'s Value> {
        let pointer = part.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.source().pointer(pointer)
    }
}

/// The names of the properties that a part describes itself.
fn property_names(part: &Value) -> impl Iterator<Item = &str> {
    let members = part.get("properties").and_then(Value::as_object);
    members.into_iter().flat_map(Map::keys).map(String::as_str)
}

/// Why a comparison was not carried to its end.
fn stopped(stop: TooMuch, instance: &Value) -> SchemaFault {
    let message =
        "the value takes more work to compare with its schema than a comparison may; give less, or less deeply";
    match stop {
        TooMuch::Steps => SchemaFault::new("", message),
        TooMuch::Pattern(address) => {
            let path = path_of(instance, address, "").unwrap_or_default();
            SchemaFault::new(path.as_str(), message::undecided(&path))
        }
    }
}

/// The JSON pointer of the part of a value at an address.
fn path_of(part: &Value, address: usize, path: &str) -> Option<String> {
    if std::ptr::from_ref(part).addr() == address {
        return Some(path.to_owned());
    }
    match part {
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| path_of(item, address, &format!("{path}/{at}")))
        }
        Value::Object(members) => members
            .iter()
            .find_map(|(key, member)| path_of(member, address, &format!("{path}/{}", escape_pointer(key)))),
        _ => None,
    }
}

/// Whether the patterns of all schemas of a document compile to more than they may together: the one that
/// is too many. They are looked for by their keywords, at every place.
pub fn too_many_patterns_in(document: &Value) -> Option<SchemaFault> {
    let (mut known, mut bytes) = (HashSet::new(), 0_usize);
    let mut found = None;
    each_pattern(document, &String::new, &mut |pattern, path| {
        if found.is_none() && known.insert(pattern) {
            bytes =
                bytes.saturating_add(evident_schema::bytes_of(pattern).unwrap_or_else(|| pattern::bytes_of(pattern)));
            found = (bytes > MAX_PATTERN_PROGRAMS).then(|| too_many_patterns(path()));
        }
        found.is_none()
    });
    found
}

/// Visits each pattern with its place, until the visit returns `false`.
fn each_pattern<'v>(
    part: &'v Value,
    path: &dyn Fn() -> String,
    visit: &mut dyn FnMut(&'v str, &dyn Fn() -> String) -> bool,
) -> bool {
    match part {
        Value::Array(items) => {
            items.iter().enumerate().all(|(at, item)| each_pattern(item, &|| format!("{}/{at}", path()), visit))
        }
        Value::Object(members) => members.iter().all(|(key, member)| {
            let path = || format!("{}/{}", path(), escape_pointer(key));
            let here = match (key.as_str(), member) {
                ("pattern", Value::String(pattern)) => visit(pattern, &path),
                ("patternProperties", Value::Object(patterns)) => patterns.keys().all(|pattern| visit(pattern, &path)),
                _ => true,
            };
            here && (!(member.is_object() || member.is_array()) || each_pattern(member, &path, visit))
        }),
        _ => true,
    }
}

/// The patterns of a document compile to more than they may.
fn too_many_patterns(path: String) -> SchemaFault {
    let message = format!(
        "the patterns of the document compile to more than {} MiB; use fewer or simpler ones: `\\p{{L}}` and large counts take the most",
        MAX_PATTERN_PROGRAMS >> 20
    );
    SchemaFault::new(path, message)
}

/// Checks a schema and makes it ready for comparing. Its patterns may compile to `room` bytes.
fn plan(source: &Value, room: usize) -> Result<Plan, Vec<SchemaFault>> {
    schema_faults::check_patterns(source, "").map_err(|fault| vec![fault])?;
    let draft = draft(source);
    let validator = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    };
    if !validator.is_valid(source) {
        return Err(schema_faults::no_schema(source, validator.iter_errors(source), MAX_FAULTS));
    }
    lowering::lower(source, draft, room)
}

/// The first of several faults.
fn first(faults: Vec<SchemaFault>) -> SchemaFault {
    let unfit = || SchemaFault::new("", "this is no JSON Schema");
    faults.into_iter().next().unwrap_or_else(unfit)
}

/// The draft that a schema names; 2020-12 when it names none, or one that is not known.
fn draft(source: &Value) -> Draft {
    let name = source.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let name = name.trim_end_matches('#').trim_start_matches("http://").trim_start_matches("https://");
    match name {
        "json-schema.org/draft-04/schema" => Draft::Draft4,
        "json-schema.org/draft-06/schema" => Draft::Draft6,
        "json-schema.org/draft-07/schema" => Draft::Draft7,
        "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
        _ => Draft::Draft202012,
    }
}

/// All faults of a value, one on each line, with their paths.
pub fn list(faults: &[SchemaFault]) -> String {
    faults
        .iter()
        .map(|fault| match fault.path.as_str() {
            "" => format!("\n- {}", fault.message),
            path => format!("\n- at {path}: {}", fault.message),
        })
        .collect()
}
