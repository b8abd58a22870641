//! Reads the schemas of a page as JSON Schema writes them: what OpenAPI alone has is written out, references lead to `$defs` of the
//! schema itself, and what leads back to itself ends in an open value.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::choice_words::ChoiceWords;
use super::merged_schema::{flat, with_null, with_word};
use super::page_files::{PageFiles, PagePart, PageTarget};
use super::page_text::{name_of, plain};

/// The most characters of a description in a schema.
const MAX_TEXT_CHARACTERS: usize = 300;
/// The most parts of the schemas of one operation.
const MAX_PARTS: usize = 4_000;
/// What has too many parts even at this depth is pinned as it is.
pub(super) const LEAST_DEPTH: usize = 1;
/// The most bytes of a definition that is written out at each of its places.
const MAX_REPEATED_BYTES: usize = 160;

/// The keywords whose values are kept as they are.
pub(super) const PLAIN: [&str; 21] = [
    "type",
    "enum",
    "const",
    "required",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
    "default",
    "dependentRequired",
    "contentEncoding",
];
/// Those that hold one schema.
pub(super) const OF_ONE: [&str; 8] =
    ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];
/// Those that hold schemas by name.
pub(super) const OF_NAMES: [&str; 2] = ["properties", "patternProperties"];

/// Reads the schemas of one operation.
pub(super) struct SchemaReader<'p> {
    files: &'p PageFiles,
    max_depth: usize,
    parts_left: usize,
    /// The definitions by the part that they are made of: their names.
    names: HashMap<String, String>,
    taken: HashSet<String>,
    definitions: BTreeMap<String, Value>,
    /// The parts that are being read.
    open: Vec<String>,
    /// What was left open or can't be found, in sentences.
    pub notes: BTreeSet<String>,
}

impl<'p> SchemaReader<'p> {
    /// `max_depth`: how many schemas may be in each other; what is deeper is left open.
    pub fn new(files: &'p PageFiles, max_depth: usize) -> Self {
        Self {
            files,
            max_depth,
            parts_left: MAX_PARTS,
            names: HashMap::new(),
            taken: HashSet::new(),
            definitions: BTreeMap::new(),
            open: Vec::new(),
            notes: BTreeSet::new(),
        }
    }

    /// Whether there were more parts than are read.
    pub fn is_cut(&self) -> bool {
        self.parts_left == 0
    }

    /// A schema, which may name definitions.
    pub fn schema(&mut self, part: PagePart<'p>, depth: usize) -> Value {
        let Some(left) = self.parts_left.checked_sub(1) else {
            self.notes.insert(format!("schemas of more than {MAX_PARTS} parts are left open"));
            return opened(part.value);
        };
        self.parts_left = left;
        if depth > self.max_depth {
            self.notes.insert("parts that are nested deeply are left open".to_owned());
            return opened(part.value);
        }
        match (part.value, part.text("$ref")) {
            (Value::Object(members), Some(reference)) if !says_more(members) => {
                self.referred(part, members, reference, depth)
            }
            (Value::Object(members), _) => self.members(part, members, depth),
            (Value::Bool(_), _) => part.value.clone(),
            _ => json!({}),
        }
    }

    /// The schema that a reference leads to, as a reference to a definition.
    fn referred(
        &mut self,
        part: PagePart<'p>,
        members: &'p Map<String, Value>,
        reference: &str,
        depth: usize,
    ) -> Value {
        let target = match self.enter(part, reference) {
            Ok(target) => target,
            Err(open) => return open,
        };
        let name = match self.names.get(&target.key) {
            Some(name) => name.clone(),
            None => {
                let name = self.definition_name(&target.key);
                self.names.insert(target.key.clone(), name.clone());
                self.open.push(target.key);
                let made = self.schema(target.part, depth);
                self.open.pop();
                self.definitions.insert(name.clone(), made);
                name
            }
        };
        let mut made = Map::from_iter([("$ref".to_owned(), Value::from(format!("#/$defs/{name}")))]);
        if let Some(text) = members.get("description").and_then(Value::as_str) {
            made.insert("description".to_owned(), plain(text, MAX_TEXT_CHARACTERS).into());
        }
        let made = Value::Object(made);
        if members.get("nullable") == Some(&Value::Bool(true)) { with_null(made) } else { made }
    }

    /// The same, written out where it is.
    fn written_out(&mut self, part: PagePart<'p>, depth: usize) -> Value {
        let Some(reference) = part.text("$ref") else { return self.schema(part, depth) };
        match self.enter(part, reference) {
            Ok(target) => {
                self.open.push(target.key);
                let made = self.written_out(target.part, depth.saturating_add(1));
                self.open.pop();
                made
            }
            Err(open) => open,
        }
    }

    /// Where a reference leads; an open schema where it leads nowhere, or back.
    fn enter(&mut self, part: PagePart<'p>, reference: &str) -> Result<PageTarget<'p>, Value> {
        let target = match self.files.target(part.file, reference) {
            Ok(target) => target,
            Err(why) => {
                self.notes.insert(format!("{why}: any value may be there"));
                return Err(json!({}));
            }
        };
        if self.open.len() >= self.max_depth.saturating_mul(4) {
            self.notes.insert("parts that are nested deeply are left open".to_owned());
            return Err(opened(target.part.value));
        }
        if self.open.contains(&target.key) {
            let name = name_of(target.key.rsplit('/').next().unwrap_or_default(), &['-']);
            self.notes.insert(format!("`{name}` has itself in it: the inner one is left open"));
            return Err(opened(target.part.value));
        }
        Ok(target)
    }

    fn definition_name(&mut self, key: &str) -> String {
        let base = name_of(key.rsplit(['/', '#']).next().unwrap_or_default(), &['-', '.']);
        let base = if base.is_empty() { "part".to_owned() } else { base.chars().take(64).collect() };
        let mut name = base.clone();
        let mut number = 2_usize;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number = number.saturating_add(1);
        }
        name
    }

    fn members(&mut self, part: PagePart<'p>, members: &'p Map<String, Value>, depth: usize) -> Value {
        let mut made = Map::new();
        // The order of keys is notation: it decides nothing.
        let mut names: Vec<&String> = members.keys().collect();
        names.sort_unstable();
        for name in names {
            let Some(at) = part.get(name) else { continue };
            let below = depth.saturating_add(1);
            let value = match name.as_str() {
                "description" => {
                    let text = plain(at.value.as_str().unwrap_or_default(), MAX_TEXT_CHARACTERS);
                    if text.is_empty() { continue } else { Value::from(text) }
                }
                "exclusiveMinimum" | "exclusiveMaximum" if at.value.is_boolean() => continue,
                "exclusiveMinimum" | "exclusiveMaximum" => at.value.clone(),
                "allOf" => continue,
                "oneOf" | "anyOf" => self.choices(part, at, below),
                "prefixItems" => at.items().map(|item| self.schema(item, below)).collect(),
                known if PLAIN.contains(&known) => at.value.clone(),
                known if OF_ONE.contains(&known) => self.schema(at, below),
                known if OF_NAMES.contains(&known) => self.named(at, below),
                _ => continue,
            };
            made.insert(name.clone(), value);
        }
        exclusive(members, &mut made);
        self.without_answered(part, &mut made);
        let below = depth.saturating_add(1);
        // What is beside a reference adds to it.
        let mut parts: Vec<Value> = part.text("$ref").map(|_| self.written_out(part, below)).into_iter().collect();
        if let Some(all) = part.get("allOf") {
            parts.extend(all.items().map(|one| self.written_out(one, below)));
        }
        let whole = if parts.is_empty() {
            Value::Object(made)
        } else {
            let mut answered = AnsweredNames::default();
            self.answered_names(part, &mut answered, MAX_PARTS_DEPTH);
            not_required(&mut made, &answered.names);
            for members in parts.iter_mut().filter_map(Value::as_object_mut) {
                not_required(members, &answered.names);
            }
            flat(made, parts)
        };
        if part.is("nullable") { with_null(whole) } else { whole }
    }

    /// The properties that only an answer has, of a schema and of all that it is made of: another part may ask for one.
    fn answered_names(&self, part: PagePart<'p>, found: &mut AnsweredNames, levels: usize) {
        let Some(below) = levels.checked_sub(1) else { return };
        let properties = part.get("properties").into_iter().flat_map(PagePart::members);
        found.names.extend(properties.filter(|(_, at)| self.is_answered(*at)).map(|(name, _)| name.clone()));
        if let Some(reference) = part.text("$ref")
            && let Ok(target) = self.files.target(part.file, reference)
            && found.seen.insert(target.key)
        {
            self.answered_names(target.part, found, below);
        }
        for one in part.get("allOf").into_iter().flat_map(PagePart::items) {
            self.answered_names(one, found, below);
        }
    }

    /// The properties of the choices of a schema that only an answer has, in each choice that has one.
    fn answered_in_choices(&self, part: PagePart<'p>) -> Vec<&'p String> {
        let mut found: BTreeMap<&'p String, bool> = BTreeMap::new();
        for choice in ["oneOf", "anyOf"].into_iter().filter_map(|word| part.get(word)).flat_map(PagePart::items) {
            let mut names = ChoiceNames::default();
            self.names_of_choice(choice, &mut names, MAX_PARTS_DEPTH);
            for (name, is_answered) in names.properties {
                let all = found.entry(name).or_insert(true);
                *all &= is_answered;
            }
        }
        let own = |name: &String| part.get("properties").is_some_and(|properties| properties.get(name).is_some());
        found.into_iter().filter(|(name, is_answered)| *is_answered && !own(name)).map(|(name, _)| name).collect()
    }

    /// The properties of a choice, and of all that it is made of.
    fn names_of_choice(&self, part: PagePart<'p>, found: &mut ChoiceNames<'p>, levels: usize) {
        let Some(below) = levels.checked_sub(1) else { return };
        for (name, at) in part.get("properties").into_iter().flat_map(PagePart::members) {
            *found.properties.entry(name).or_insert(false) |= self.is_answered(at);
        }
        if let Some(reference) = part.text("$ref")
            && let Ok(target) = self.files.target(part.file, reference)
            && found.seen.insert(target.key)
        {
            self.names_of_choice(target.part, found, below);
        }
        for one in part.get("allOf").into_iter().flat_map(PagePart::items) {
            self.names_of_choice(one, found, below);
        }
    }

    fn is_answered(&self, at: PagePart<'p>) -> bool {
        at.is("readOnly") || self.files.follow(at).is_ok_and(|target| target.is("readOnly"))
    }

    /// Schemas by name, in the order of their names.
    fn named(&mut self, part: PagePart<'p>, depth: usize) -> Value {
        let mut all: Vec<(&String, PagePart<'p>)> = part.members().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter().map(|(name, at)| (name.clone(), self.schema(at, depth))).collect()
    }

    /// Leaves out the properties that only an answer has.
    fn without_answered(&self, part: PagePart<'p>, made: &mut Map<String, Value>) {
        let properties = part.get("properties").into_iter().flat_map(PagePart::members);
        let mut others: BTreeSet<&String> =
            properties.filter(|(_, at)| self.is_answered(*at)).map(|(name, _)| name).collect();
        others.extend(self.answered_in_choices(part));
        if others.is_empty() {
            return;
        }
        if let Some(Value::Object(properties)) = made.get_mut("properties") {
            properties.retain(|name, _| !others.contains(name));
        }
        if let Some(Value::Array(required)) = made.get_mut("required") {
            required.retain(|name| !others.iter().any(|other| name == *other));
        }
    }

    /// The choices of a schema. A discriminator's word is written into each, so that one fits and no other.
    fn choices(&mut self, part: PagePart<'p>, choices: PagePart<'p>, depth: usize) -> Value {
        let discriminator = part.get("discriminator");
        let property = discriminator.and_then(|found| found.text("propertyName"));
        let mapping = discriminator.and_then(|found| found.get("mapping"));
        let mut made = Vec::new();
        for choice in choices.items() {
            let words = property.map(|property| self.words(choice, property, mapping)).unwrap_or_default();
            made.push(match property.filter(|_| !words.is_empty()) {
                Some(property) => {
                    let choice = self.written_out(choice, depth);
                    with_word(choice, property, &words)
                }
                None => self.schema(choice, depth),
            });
        }
        Value::Array(made)
    }

    /// The words by which a discriminator names a choice. Those that the choice says itself count before the names of schemas, which
    /// few pages mean.
    fn words(&self, choice: PagePart<'p>, property: &'p str, mapping: Option<PagePart<'p>>) -> Vec<String> {
        let named = self.mapped_words(choice, mapping);
        let Some(own) = ChoiceWords::new(self.files, property).of_choice(choice) else { return named };
        let own: Vec<String> = own.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let both: Vec<String> = named.into_iter().filter(|word| own.contains(word)).collect();
        if both.is_empty() { own } else { both }
    }

    /// The words by which a page names a choice: those of the `mapping`, or the name of its schema.
    fn mapped_words(&self, choice: PagePart<'p>, mapping: Option<PagePart<'p>>) -> Vec<String> {
        let Some(reference) = choice.text("$ref") else { return Vec::new() };
        let Ok(target) = self.files.target(choice.file, reference) else { return Vec::new() };
        let own = target.key.rsplit_once("/components/schemas/").map_or("", |(_, name)| name);
        let leads_here = |at: &PagePart<'p>| {
            let text = at.value.as_str().unwrap_or_default();
            text == own || self.files.target(at.file, text).is_ok_and(|other| other.key == target.key)
        };
        let mapped = mapping.into_iter().flat_map(PagePart::members).filter(|(_, at)| leads_here(at));
        let mut words: Vec<String> = mapped.map(|(word, _)| word.clone()).collect();
        words.sort_unstable();
        // Only what has a name among the schemas of a page is named by it.
        if words.is_empty() && !own.is_empty() { vec![own.to_owned()] } else { words }
    }

    /// A schema with the definitions that it names. One that is named once, or is short, is written out. None where there were more parts
    /// than are read, and a lesser depth is tried next.
    pub fn whole(self, root: &Value) -> Option<Value> {
        if self.is_cut() && self.max_depth > LEAST_DEPTH {
            return None;
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for value in std::iter::once(root).chain(self.definitions.values()) {
            count(value, &mut counts);
        }
        let is_short = |value: &Value| {
            let mut named = HashMap::new();
            count(value, &mut named);
            named.is_empty() && value.to_string().len() <= MAX_REPEATED_BYTES
        };
        let is_inside = |(name, value): &(&String, &Value)| counts.get(name.as_str()) == Some(&1) || is_short(value);
        let inside: BTreeMap<&str, &Value> =
            self.definitions.iter().filter(is_inside).map(|(name, value)| (name.as_str(), value)).collect();
        let kept: Map<String, Value> = self
            .definitions
            .iter()
            .filter(|(name, _)| !inside.contains_key(name.as_str()) && counts.contains_key(name.as_str()))
            .map(|(name, value)| (name.clone(), spread(value, &inside)))
            .collect();
        let mut whole = spread(root, &inside);
        if let Some(members) = whole.as_object_mut().filter(|_| !kept.is_empty()) {
            members.insert("$defs".to_owned(), Value::Object(kept));
        }
        Some(whole)
    }
}

/// Whether there is more beside a reference than what describes it.
fn says_more(members: &Map<String, Value>) -> bool {
    let is_said = |name: &String| {
        let name = name.as_str();
        let is_keyword = PLAIN.contains(&name) || OF_ONE.contains(&name) || OF_NAMES.contains(&name);
        is_keyword
            || matches!(name, "allOf" | "anyOf" | "oneOf" | "prefixItems" | "exclusiveMinimum" | "exclusiveMaximum")
    };
    members.keys().any(is_said)
}

/// A schema of any value of the same type.
fn opened(schema: &Value) -> Value {
    let kind = schema.get("type").filter(|kind| kind.is_string() || kind.is_array()).cloned();
    let kind = kind.or_else(|| schema.get("properties").map(|_| Value::from("object")));
    let text = "(not described further)";
    match kind {
        Some(kind) => json!({ "type": kind, "description": text }),
        None => json!({ "description": text }),
    }
}

/// The bounds of 3.0, which exclude by a word.
fn exclusive(members: &Map<String, Value>, made: &mut Map<String, Value>) {
    for (word, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(word) == Some(&Value::Bool(true))
            && let Some(value) = made.remove(bound)
        {
            made.insert(word.to_owned(), value);
        }
    }
}

/// The deepest nesting of parts in which names are looked for that only an answer has.
const MAX_PARTS_DEPTH: usize = 16;

/// The properties that only an answer has, and where they were looked for.
#[derive(Default)]
struct AnsweredNames {
    names: BTreeSet<String>,
    seen: BTreeSet<String>,
}

/// The properties of a choice, each with whether only an answer has it, and where they were looked for.
#[derive(Default)]
struct ChoiceNames<'p> {
    properties: BTreeMap<&'p String, bool>,
    seen: BTreeSet<String>,
}

/// Asks for none of these properties, in a schema and in what it is made of.
fn not_required(members: &mut Map<String, Value>, names: &BTreeSet<String>) {
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| names.contains(name)));
    }
    if let Some(Value::Array(parts)) = members.get_mut("allOf") {
        parts.iter_mut().filter_map(Value::as_object_mut).for_each(|part| not_required(part, names));
    }
}

const DEFINITIONS: &str = "#/$defs/";

/// The definition that a schema is a reference to.
fn named_definition(members: &Map<String, Value>) -> Option<&str> {
    members.get("$ref").and_then(Value::as_str)?.strip_prefix(DEFINITIONS)
}

fn count<'v>(value: &'v Value, counts: &mut HashMap<&'v str, usize>) {
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => {
                if let Some(name) = named_definition(members) {
                    let seen = counts.entry(name).or_default();
                    *seen = seen.saturating_add(1);
                }
                todo.extend(members.values());
            }
            _ => {}
        }
    }
}

/// A schema with definitions written out. None has itself in it, and those that are long are named once: the work ends.
fn spread(value: &Value, inside: &BTreeMap<&str, &Value>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| spread(item, inside)).collect(),
        Value::Object(members) => match named_definition(members).and_then(|name| inside.get(name)) {
            Some(definition) => {
                let mut made = spread(definition, inside);
                if let (Some(made), Some(text)) = (made.as_object_mut(), members.get("description")) {
                    made.insert("description".to_owned(), text.clone());
                }
                made
            }
            None => members.iter().map(|(name, value)| (name.clone(), spread(value, inside))).collect(),
        },
        other => other.clone(),
    }
}
