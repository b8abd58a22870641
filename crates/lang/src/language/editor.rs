//! The JSON Schemas as editors and validators read them: the same documents as the schemas of the types, said so that
//! one fault brings one message, at the field itself.
//!
//! `oneOf` and `anyOf` report every branch that does not match. So the word that decides between branches gets its
//! own list of words, and each branch is behind an `if`; branches of different types become one list of types,
//! for keywords of one type ignore values of another. What must be there is asked for once all names are known: a
//! misspelt name is not reported a second time as one that is missing.

mod json_schema;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::json_schema::json_schema;

/// What the fields of a name look like, beyond their type.
const PATTERNS: [(&str, &str); 8] = [
    ("action_name", "^[^\\s@{}\"'`$:]+$"),
    ("items_path", "^(@|doc:)[^\\s.@?]+(\\.[^\\s.@?]+)*$"),
    ("item_variable_name", "^[^\\s.@0-9][^\\s.@]*$"),
    ("base_url", "^(https?://|orgconfig:|env:)"),
    ("api_key", "^(env|file|orgconfig):.+"),
    ("hash", "^sha256:[0-9a-fA-F]{64}$"),
    ("store", "^(memory|(sqlite|postgres|postgresql|env|file):.+)$"),
    ("at", "^([01][0-9]|2[0-3]):[0-5][0-9]$"),
];
/// What the values of maps of a name look like.
const VALUE_PATTERNS: [(&str, &str); 2] = [("orgconfig", "^(env|file):.+"), ("remember", "^(/.*)?$")];

/// Rewrites the schema of a kind of document for editors.
pub(super) fn for_editors(schema: &Value) -> Value {
    let none = Map::new();
    let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
    let editor = Editor { definitions };
    let mut root = editor.whole(schema);
    let mut rewritten: Map<String, Value> = definitions
        .iter()
        .map(|(name, part)| (name.clone(), Value::Object(editor.part(part).keywords)))
        .filter(|(_, part)| part.get("enum").is_none())
        .collect();
    rewritten.insert("JsonSchema".to_owned(), json_schema());
    let texts: Vec<(String, String)> = rewritten.iter().map(|(name, part)| (name.clone(), part.to_string())).collect();
    let root_text = Value::Object(root.clone()).to_string();
    rewritten.retain(|name, _| {
        let names = |text: &str| text.contains(&format!("\"#/$defs/{name}\""));
        names(&root_text) || texts.iter().any(|(other, text)| other != name && names(text))
    });
    if !rewritten.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(rewritten));
    }
    Value::Object(root)
}

struct Editor<'s> {
    definitions: &'s Map<String, Value>,
}

/// A part of a schema: the types that it takes, and its other keywords, none of which speaks of another type.
#[derive(Default)]
struct TypedPart {
    /// Empty when it takes all.
    types: Vec<String>,
    keywords: Map<String, Value>,
}

impl Editor<'_> {
    /// A part with its types in it.
    fn whole(&self, part: &Value) -> Map<String, Value> {
        let TypedPart { types, keywords } = self.part(part);
        let mut whole = Map::new();
        match types.as_slice() {
            // A list of values says the type, too.
            _ if keywords.contains_key("enum") => {}
            [] => {}
            [one] => drop(whole.insert("type".to_owned(), json!(one))),
            all => drop(whole.insert("type".to_owned(), json!(all))),
        }
        whole.extend(keywords);
        whole
    }

    fn value(&self, part: &Value) -> Value {
        if part.is_object() { Value::Object(self.whole(part)) } else { part.clone() }
    }

    fn part(&self, part: &Value) -> TypedPart {
        let Value::Object(members) = part else { return TypedPart::default() };
        let mut typed = if let Some(name) = reference(part) {
            self.referred(name)
        } else if let Some(branches) = members.get("oneOf").or_else(|| members.get("anyOf")).and_then(Value::as_array) {
            self.branches(branches)
        } else {
            TypedPart { types: types(part), ..TypedPart::default() }
        };
        for (name, value) in members {
            let value = match name.as_str() {
                "type" | "$ref" | "oneOf" | "anyOf" | "$defs" | "x-schema" => continue,
                // The width of an integer is said by its bounds.
                "format" if value.as_str().is_some_and(|format| format.starts_with("uint") || format == "double") => {
                    continue;
                }
                "properties" => self.properties(value),
                "items" | "additionalProperties" => self.value(value),
                _ => value.clone(),
            };
            typed.keywords.insert(name.clone(), value);
        }
        if let Some(pattern) = typed.keywords.shift_remove("x-pattern") {
            typed.keywords.insert("pattern".to_owned(), pattern);
        }
        if members.contains_key("x-schema") {
            typed.keywords.insert("$ref".to_owned(), json!("#/$defs/JsonSchema"));
        }
        ask_for_known(&mut typed.keywords);
        describe(&mut typed.keywords);
        typed
    }

    /// A reference: words are at their place, so that `null` can be one of them; everything else stays a reference.
    fn referred(&self, name: &str) -> TypedPart {
        let Some(definition) = self.definitions.get(name) else { return TypedPart::default() };
        if words(definition).is_some() {
            return self.part(definition);
        }
        let keywords = Map::from_iter([("$ref".to_owned(), json!(format!("#/$defs/{name}")))]);
        TypedPart { types: self.types_of(definition), keywords }
    }

    /// The types that a part takes. Definitions lead to each other in circles: nothing below the part is looked at.
    fn types_of(&self, part: &Value) -> Vec<String> {
        let definition = reference(part).and_then(|name| self.definitions.get(name));
        if let Some(definition) = definition {
            return self.types_of(definition);
        }
        let branches = part.get("oneOf").or_else(|| part.get("anyOf")).and_then(Value::as_array);
        let mut all = types(part);
        for name in branches.into_iter().flatten().flat_map(|branch| self.types_of(branch)) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    fn branches(&self, branches: &[Value]) -> TypedPart {
        if let Some(words) = words_of(branches) {
            let texts: Vec<Value> =
                branches.iter().map(|branch| branch.get("description").cloned().unwrap_or_default()).collect();
            let mut keywords = Map::new();
            keywords.insert("enum".to_owned(), json!(words));
            keywords.insert("markdownEnumDescriptions".to_owned(), json!(texts));
            return TypedPart { types: vec!["string".to_owned()], keywords };
        }
        if let Some(tag) = tag(branches) {
            return self.tagged(branches, tag);
        }
        if let Some(keyed) = self.keyed(branches).or_else(|| self.named(branches)) {
            return keyed;
        }
        let mut merged = TypedPart::default();
        for branch in branches {
            let TypedPart { types, keywords } = self.part(branch);
            merged.types.extend(types);
            merged
                .keywords
                .extend(keywords.into_iter().filter(|(name, _)| !name.to_lowercase().contains("description")));
        }
        // A list of words would refuse the values of other types, which a pattern ignores.
        if merged.types.iter().any(|name| !matches!(name.as_str(), "string" | "null"))
            && let Some(Value::Array(words)) = merged.keywords.shift_remove("enum")
        {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            merged.keywords.insert("pattern".to_owned(), json!(format!("^({})$", words.join("|"))));
            merged.keywords.shift_remove("markdownEnumDescriptions");
        }
        if merged.types.iter().any(|name| name == "null")
            && let Some(Value::Array(words)) = merged.keywords.get_mut("enum")
        {
            words.push(Value::Null);
        }
        merged
    }

    /// Objects of which one word decides what they hold. A branch may need a field that the branch for other words does not
    /// know: it is right only where that field is there.
    fn tagged(&self, branches: &[Value], tag: &str) -> TypedPart {
        let word_of = |branch: &Value| branch.pointer(&format!("/properties/{tag}/const")).cloned();
        let rest = branches.iter().find(|branch| word_of(branch).is_none());
        let mark_of = |branch: &Value| {
            let known = rest?.get("properties")?.as_object()?;
            let required = branch.get("required")?.as_array()?.iter().filter_map(Value::as_str);
            required.filter(|name| !known.contains_key(*name)).map(str::to_owned).next()
        };
        let marked: Vec<(Value, String)> =
            branches.iter().filter_map(|branch| Some((word_of(branch)?, mark_of(branch)?))).collect();
        let (mut words, mut plain, mut texts, mut rules) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for branch in branches {
            let Some(word) = word_of(branch) else { continue };
            let mut keywords = self.part(branch).keywords;
            for text in ["description", "markdownDescription"] {
                keywords.remove(text);
            }
            let mut required = vec![json!(tag)];
            let mut without = None;
            match mark_of(branch) {
                Some(mark) => required.push(json!(mark)),
                None => {
                    plain.push(word.clone());
                    let other = marked.iter().find(|(other, _)| *other == word);
                    without = other.map(|(_, mark)| json!({ "required": [mark] }));
                }
            }
            let mut condition = Map::new();
            condition.insert("properties".to_owned(), json!({ tag: { "const": word } }));
            condition.insert("required".to_owned(), Value::Array(required));
            condition.extend(without.map(|mark| ("not".to_owned(), mark)));
            if !words.contains(&word) {
                words.push(word);
                texts.push(branch.get("description").cloned().unwrap_or_default());
            }
            rules.push(json!({ "if": condition, "then": keywords }));
        }
        let about = "What kind it is: the other fields follow from it.";
        let decides = match rest {
            None => {
                json!({ "description": about, "markdownDescription": about, "enum": words, "markdownEnumDescriptions": texts })
            }
            Some(rest) => {
                let mut keywords = self.part(rest).keywords;
                for text in ["description", "markdownDescription"] {
                    keywords.remove(text);
                }
                let mut condition = Map::new();
                let free = json!({ tag: { "type": "string", "not": { "enum": plain } } });
                condition.insert("properties".to_owned(), free);
                condition.insert("required".to_owned(), json!([tag]));
                let others = marked.iter().filter(|(word, _)| !plain.contains(word));
                let others: Vec<Value> = others
                    .map(|(word, mark)| json!({ "properties": { tag: { "const": word } }, "required": [tag, mark] }))
                    .collect();
                if !others.is_empty() {
                    condition.insert("not".to_owned(), json!({ "anyOf": others }));
                }
                rules.push(json!({ "if": condition, "then": keywords }));
                json!({ "type": "string", "minLength": 1, "description": about, "markdownDescription": about, "examples": words })
            }
        };
        let mut keywords = Map::new();
        keywords.insert("properties".to_owned(), json!({ tag: decides }));
        keywords.insert("required".to_owned(), json!([tag]));
        keywords.insert("allOf".to_owned(), Value::Array(rules));
        TypedPart { types: vec!["object".to_owned()], keywords }
    }

    /// Objects of one field each, which says what they are.
    fn keyed(&self, branches: &[Value]) -> Option<TypedPart> {
        let mut fields = Map::new();
        for branch in branches {
            let properties = branch.get("properties")?.as_object()?;
            let (1, Some(required)) = (properties.len(), branch.get("required")?.as_array()) else { return None };
            let (name, field) = properties.iter().next()?;
            if !required.iter().any(|required| required == name) {
                return None;
            }
            fields.insert(name.clone(), field.clone());
        }
        let mut keywords = Map::new();
        keywords.insert("properties".to_owned(), self.properties(&Value::Object(fields)));
        keywords.insert("additionalProperties".to_owned(), json!(false));
        keywords.insert("minProperties".to_owned(), json!(1));
        keywords.insert("maxProperties".to_owned(), json!(1));
        Some(TypedPart { types: vec!["object".to_owned()], keywords })
    }

    /// References to closed objects, each with a required field that no other one has: it says what the object is.
    fn named(&self, branches: &[Value]) -> Option<TypedPart> {
        let (mut names, mut words, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        let all: Vec<&Value> =
            branches.iter().map(|branch| self.definitions.get(reference(branch)?)).collect::<Option<_>>()?;
        for (branch, definition) in branches.iter().zip(&all) {
            let fields = definition.get("properties")?.as_object()?;
            let is_own = |name: &&str| {
                let has = |other: &&&Value| other.pointer(&format!("/properties/{name}")).is_some();
                all.iter().filter(has).count() == 1
            };
            let word = definition.get("required")?.as_array()?.iter().filter_map(Value::as_str).find(is_own)?;
            let new: Vec<&String> = fields.keys().filter(|name| !names.contains(name)).collect();
            names.extend(new);
            words.push(json!({ "required": [word] }));
            rules.push(json!({ "if": { "required": [word] }, "then": self.part(branch).keywords }));
        }
        let mut keywords = Map::new();
        keywords.insert("allOf".to_owned(), Value::Array(rules));
        let known = json!({ "propertyNames": { "enum": names } });
        let other = json!({ "propertyNames": { "enum": names }, "if": known, "then": { "anyOf": words } });
        keywords.insert("if".to_owned(), json!({ "anyOf": words }));
        keywords.insert("else".to_owned(), other);
        Some(TypedPart { types: vec!["object".to_owned()], keywords })
    }

    fn properties(&self, properties: &Value) -> Value {
        let mut fields = Map::new();
        for (name, field) in properties.as_object().into_iter().flatten() {
            let mut field = self.value(field);
            let find = |patterns: &[(&str, &str)]| {
                patterns.iter().find(|(known, _)| known == name).map(|(_, pattern)| json!(pattern))
            };
            let takes_text = types(&field).iter().any(|name| name == "string");
            if let (Some(pattern), Some(members), true) = (find(&PATTERNS), field.as_object_mut(), takes_text) {
                members.entry("pattern").or_insert(pattern);
            }
            if let (Some(pattern), Some(values)) = (find(&VALUE_PATTERNS), field.get_mut("additionalProperties")) {
                values
                    .as_object_mut()
                    .into_iter()
                    .for_each(|values| drop(values.insert("pattern".to_owned(), pattern.clone())));
            }
            fields.insert(name.clone(), field);
        }
        Value::Object(fields)
    }
}

/// Asks for the required fields of a closed object only when all its names are known.
fn ask_for_known(keywords: &mut Map<String, Value>) {
    let is_closed = keywords.get("additionalProperties") == Some(&json!(false));
    let names = keywords.get("properties").and_then(Value::as_object);
    let Some(names) = names.filter(|_| is_closed).map(|names| names.keys().cloned().collect::<Vec<_>>()) else {
        return;
    };
    if let Some(required) = keywords.shift_remove("required") {
        keywords.insert("if".to_owned(), json!({ "propertyNames": { "enum": names } }));
        keywords.insert("then".to_owned(), json!({ "required": required }));
    }
}

/// What an editor shows of a part: its text, its default and its bounds.
fn describe(keywords: &mut Map<String, Value>) {
    let Some(text) = keywords.get("description").and_then(Value::as_str) else { return };
    let mut markdown = text.to_owned();
    let facts = [("default", "Default"), ("minimum", "At least"), ("maximum", "At most")];
    let facts: BTreeMap<usize, String> = facts
        .into_iter()
        .enumerate()
        .filter_map(|(at, (keyword, word))| {
            let value = keywords.get(keyword).filter(|value| !value.is_object() && !value.is_array())?;
            // The widths of integers are no bounds that anyone thinks of.
            let is_width = value.as_f64().is_some_and(|value| value.abs() >= f64::from(u32::MAX));
            (!is_width).then(|| (at, format!("{word} `{value}`")))
        })
        .collect();
    if !facts.is_empty() {
        let facts: Vec<String> = facts.into_values().collect();
        markdown.push_str(&format!("\n\n{}.", facts.join(", ")));
    }
    keywords.insert("markdownDescription".to_owned(), Value::from(markdown));
}

fn reference(part: &Value) -> Option<&str> {
    part.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn types(part: &Value) -> Vec<String> {
    match part.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The words of branches that are one word each.
fn words_of(branches: &[Value]) -> Option<Vec<&Value>> {
    branches.iter().map(|branch| branch.get("const")).collect()
}

/// The words of a definition that is a list of them.
fn words(definition: &Value) -> Option<Vec<&Value>> {
    words_of(definition.get("oneOf")?.as_array()?)
}

/// The field with one word in each branch, but for one branch that takes all other words.
fn tag(branches: &[Value]) -> Option<&str> {
    let word = |branch: &Value, name: &str| branch.get("properties")?.get(name)?.get("const").map(drop);
    let properties = branches.first()?.get("properties")?.as_object()?;
    let found = properties.keys().find(|name| {
        let others: Vec<&Value> = branches.iter().filter(|branch| word(branch, name).is_none()).collect();
        others.len() < branches.len()
            && others.len() <= 1
            && others
                .iter()
                .all(|branch| branch.get("properties").is_some_and(|fields| fields.get(name.as_str()).is_some()))
    })?;
    Some(found)
}
