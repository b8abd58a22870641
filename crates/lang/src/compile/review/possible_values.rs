//! What a schema still allows, as far as its parts show: a part that nothing matches makes the whole impossible only
//! where every value needs it. Each answer errs on the side of what may match.

use serde_json::{Map, Value};

use super::{Part, contradiction};
use crate::program::reference::escape_pointer;

/// The most parts that are looked at, those behind a reference once for each way to them.
const MAX_PARTS: usize = 5_000;
/// How many parts are gone into, one inside of the other or behind its reference.
const MAX_DEPTH: usize = 200;
/// The most places that are named as the cause.
const MAX_BLAMED: usize = 50;
/// How deep the parts that require names of one object are followed, how many of their names are kept, and how many names
/// and parts are looked at for that in a whole schema.
const MAX_NEEDS_DEPTH: usize = 8;
const MAX_NEEDED: usize = 200;
const MAX_LOOKS: usize = 50_000;
/// Keywords that may describe names which `unevaluatedProperties` does not shut out.
const EVALUATES: [&str; 9] =
    ["patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "dependentSchemas", "properties"];

/// Keywords by which a name requires others; the last one is that of drafts up to 7.
const DEPENDENT: [&str; 2] = ["dependentRequired", "dependencies"];

/// A set of types of JSON values. Whole numbers and other numbers are two types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueTypes(u8);

impl ValueTypes {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(0x7f);
    pub(super) const OBJECT: Self = Self(0x40);
    pub(super) const LIST: Self = Self(0x20);
    pub(super) const TEXT: Self = Self(0x10);

    /// The types of a name in `type`.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "null" => Self(0x01),
            "boolean" => Self(0x02),
            "integer" => Self(0x04),
            "number" => Self(0x0c),
            "string" => Self::TEXT,
            "array" => Self::LIST,
            "object" => Self::OBJECT,
            _ => Self::ALL,
        }
    }

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self(0x01),
            Value::Bool(_) => Self(0x02),
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => Self(0x04),
            Value::Number(_) => Self(0x08),
            Value::String(_) => Self::TEXT,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::OBJECT,
        }
    }

    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[must_use]
    pub(super) fn but(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What may match a part.
pub(super) struct LeftTypes {
    /// The types of the values that may.
    pub types: ValueTypes,
    /// The JSON pointers of what shuts out the others.
    pub blamed: Vec<String>,
}

impl LeftTypes {
    fn of(types: ValueTypes) -> Self {
        Self { types, blamed: Vec::new() }
    }

    /// Keeps values of some types. What only says a type is no cause, unless nothing is left.
    fn keep(&mut self, types: ValueTypes, at: impl FnOnce() -> String) {
        let kept = self.types.and(types);
        if kept.is_empty() && !self.types.is_empty() {
            self.blame(at());
        }
        self.types = kept;
    }

    fn remove(&mut self, types: ValueTypes, at: impl FnOnce() -> String) {
        if !self.types.and(types).is_empty() {
            self.blame(at());
            self.types = self.types.but(types);
        }
    }

    /// Values of some types need a part that nothing matches.
    fn lose(&mut self, types: ValueTypes, part: Self, at: impl FnOnce() -> String) {
        if self.types.and(types).is_empty() {
            return;
        }
        self.types = self.types.but(types);
        if part.blamed.is_empty() {
            self.blame(at());
        }
        part.blamed.into_iter().for_each(|at| self.blame(at));
    }

    fn blame(&mut self, at: String) {
        if self.blamed.len() < MAX_BLAMED && !self.blamed.contains(&at) {
            self.blamed.push(at);
        }
    }

    /// Whether nothing matches.
    pub(super) fn is_impossible(&self) -> bool {
        self.types.is_empty()
    }
}

/// What a schema leaves of the values of some types.
pub(super) fn left(schema: &Value, types: ValueTypes) -> LeftTypes {
    let name = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let mut judge = PossibleTypes {
        root: schema,
        steps: MAX_PARTS,
        looks: MAX_LOOKS,
        depth: 0,
        following: Vec::new(),
        is_draft_4: name.contains("draft-04"),
        is_lone_reference: ["draft-04", "draft-06", "draft-07"].iter().any(|draft| name.contains(draft)),
    };
    judge.part(String::new(), schema, types, &[], false)
}

struct PossibleTypes<'s> {
    root: &'s Value,
    steps: usize,
    /// How many names and parts may still be looked at for what is required.
    looks: usize,
    depth: usize,
    /// The parts whose references are being followed.
    following: Vec<*const Value>,
    is_draft_4: bool,
    /// Up to draft 7, nothing beside a reference counts.
    is_lone_reference: bool,
}

impl<'s> PossibleTypes<'s> {
    /// What a part leaves of the values of some types. `needed` are names that the parts around it require of the same object.
    fn part(
        &mut self,
        at: String,
        schema: &'s Value,
        around: ValueTypes,
        needed: &[&'s str],
        in_place: bool,
    ) -> LeftTypes {
        if self.depth >= MAX_DEPTH {
            return LeftTypes::of(around);
        }
        self.depth += 1;
        let left = self.judged(at, schema, around, needed, in_place);
        self.depth -= 1;
        left
    }

    fn judged(
        &mut self,
        at: String,
        schema: &'s Value,
        around: ValueTypes,
        needed: &[&'s str],
        in_place: bool,
    ) -> LeftTypes {
        let mut left = LeftTypes::of(around);
        let members = match schema {
            Value::Bool(false) => {
                left.remove(ValueTypes::ALL, || at);
                return left;
            }
            Value::Object(members) if self.steps > 0 => members,
            _ => return left,
        };
        self.steps -= 1;
        let mut names = needed.to_vec();
        // A name may require others, and those further ones.
        for _ in 0..MAX_NEEDS_DEPTH {
            let known = names.len();
            self.needs(members, MAX_NEEDS_DEPTH, &mut names);
            if names.len() == known {
                break;
            }
        }
        if members.contains_key("$ref") {
            self.reference(&at, members, &names, &mut left);
            if self.is_lone_reference {
                return left;
            }
        }
        let part = Part { draft_4: self.is_draft_4, in_place, ..Part::inner(at, members) };
        if let Some(types) = part.types() {
            let types = types.into_iter().map(ValueTypes::named).fold(ValueTypes::NONE, ValueTypes::or);
            left.keep(types, || part.below("type"));
        }
        for (types, at) in contradiction::excluded(&part) {
            left.remove(types, || at);
        }
        if let Some((types, at)) = contradiction::listed_types(&part) {
            left.keep(types, || at);
        }
        self.object(&part, &names, &mut left);
        self.list(&part, &mut left);
        self.forms(&part, &names, &mut left);
        left
    }

    fn is_impossible(&mut self, at: String, schema: &'s Value) -> Option<LeftTypes> {
        let left = self.part(at, schema, ValueTypes::ALL, &[], false);
        left.is_impossible().then_some(left)
    }

    fn reference(&mut self, at: &str, members: &'s Map<String, Value>, needed: &[&'s str], left: &mut LeftTypes) {
        let pointer = members.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        // A part with an address of its own may mean another place.
        let Some((pointer, target)) = pointer.and_then(|pointer| Some((pointer, self.root.pointer(pointer)?))) else {
            return;
        };
        let address = std::ptr::from_ref(target);
        if self.following.contains(&address) {
            return;
        }
        self.following.push(address);
        let inner = self.part(pointer.to_owned(), target, left.types, needed, true);
        self.following.pop();
        let lost = left.types.but(inner.types);
        left.lose(lost, inner, || format!("{at}/$ref"));
    }

    /// The names that a part requires, itself or through what it refers to.
    fn needs(&mut self, members: &'s Map<String, Value>, depth: usize, names: &mut Vec<&'s str>) {
        let required = members.get("required").and_then(Value::as_array).into_iter().flatten();
        let dependent = DEPENDENT.into_iter().filter_map(|keyword| members.get(keyword)?.as_object());
        let dependent: Vec<&'s Value> = dependent
            .flatten()
            .take(MAX_NEEDED)
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, others)| others.as_array())
            .flatten()
            .collect();
        self.looks = self.looks.saturating_sub(1);
        for name in required.chain(dependent).filter_map(Value::as_str) {
            self.looks = self.looks.saturating_sub(1);
            if self.looks > 0 && names.len() < MAX_NEEDED && !names.contains(&name) {
                names.push(name);
            }
        }
        let Some(depth) = depth.checked_sub(1).filter(|_| self.looks > 0) else { return };
        let target = members.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        let target = target.and_then(|pointer| self.root.pointer(pointer));
        let all = members.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for inner in target.into_iter().chain(all).filter_map(Value::as_object) {
            self.needs(inner, depth, names);
        }
    }

    fn object(&mut self, part: &Part<'s>, needed: &[&'s str], left: &mut LeftTypes) {
        if left.types.and(ValueTypes::OBJECT).is_empty() {
            return;
        }
        let properties = part.members.get("properties").and_then(Value::as_object);
        let has_patterns = part.members.contains_key("patternProperties");
        let mut others = None;
        for name in needed {
            let at = || format!("{}/{}", part.below("properties"), escape_pointer(name));
            if let Some(schema) = properties.and_then(|properties| properties.get(*name)) {
                if let Some(inner) = self.is_impossible(at(), schema) {
                    left.lose(ValueTypes::OBJECT, inner, at);
                }
            } else if !has_patterns && *others.get_or_insert_with(|| self.shuts_others(part)) {
                let listed = part.members.get("required").and_then(Value::as_array);
                let index = listed.and_then(|listed| listed.iter().position(|listed| listed == name));
                left.remove(ValueTypes::OBJECT, || match index {
                    Some(index) => format!("{}/{index}", part.below("required")),
                    None => part.below("additionalProperties"),
                });
            }
        }
        self.dependent(part, needed, left);
        self.count(part, needed, left);
        let least = part.members.get("minProperties").and_then(Value::as_f64).unwrap_or_default();
        if (least >= 1.0 || !needed.is_empty())
            && let Some(schema) = part.members.get("propertyNames").filter(|_| !self.is_draft_4)
            && let Some(inner) = self.is_impossible(part.below("propertyNames"), schema)
        {
            left.lose(ValueTypes::OBJECT, inner, || part.below("propertyNames"));
        }
    }

    /// The parts that are about an object because it needs a name.
    fn dependent(&mut self, part: &Part<'s>, needed: &[&'s str], left: &mut LeftTypes) {
        for keyword in ["dependentSchemas", "dependencies"] {
            let members = part.members.get(keyword).and_then(Value::as_object).into_iter().flatten().take(MAX_NEEDED);
            for (name, schema) in members.filter(|(name, schema)| !schema.is_array() && needed.contains(&name.as_str()))
            {
                let at = format!("{}/{}", part.below(keyword), escape_pointer(name));
                let inner = self.part(at.clone(), schema, ValueTypes::OBJECT, needed, true);
                if inner.is_impossible() {
                    left.lose(ValueTypes::OBJECT, inner, || at);
                }
            }
        }
    }

    /// How many names an object must have, and how many it may have.
    fn count(&mut self, part: &Part<'s>, needed: &[&'s str], left: &mut LeftTypes) {
        let number = |name: &str| part.members.get(name).and_then(Value::as_u64);
        let size = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        if number("maxProperties").is_some_and(|most| most < size(needed.len())) {
            left.remove(ValueTypes::OBJECT, || part.below("maxProperties"));
        }
        let Some(least) = number("minProperties").filter(|least| *least > 0) else { return };
        let names = part.members.get("propertyNames").filter(|_| !self.is_draft_4).and_then(|names| names.get("enum"));
        if names.and_then(Value::as_array).is_some_and(|names| size(names.len()) < least) {
            left.remove(ValueTypes::OBJECT, || part.below("minProperties"));
        }
        let properties = part.members.get("properties").and_then(Value::as_object);
        let count = properties.map_or(0, Map::len);
        if part.members.contains_key("patternProperties") || count > MAX_NEEDED || !self.shuts_others(part) {
            return;
        }
        let mut possible = 0_u64;
        let mut cause: Option<LeftTypes> = None;
        for (name, schema) in properties.into_iter().flatten() {
            let at = format!("{}/{}", part.below("properties"), escape_pointer(name));
            match self.is_impossible(at, schema) {
                None => possible += 1,
                Some(inner) => cause = cause.or(Some(inner)),
            }
        }
        if possible < least {
            let cause = cause.filter(|_| size(count) >= least);
            left.lose(ValueTypes::OBJECT, cause.unwrap_or_else(|| LeftTypes::of(ValueTypes::NONE)), || {
                part.below("minProperties")
            });
        }
    }

    /// Whether an object has no other names than those in `properties`.
    fn shuts_others(&mut self, part: &Part<'s>) -> bool {
        match part.members.get("additionalProperties") {
            Some(schema) => self.is_impossible(part.below("additionalProperties"), schema).is_some(),
            None => {
                let is_alone = !part.in_place
                    && !part.members.keys().any(|name| name != "properties" && EVALUATES.contains(&name.as_str()));
                is_alone && part.members.get("unevaluatedProperties") == Some(&Value::Bool(false))
            }
        }
    }

    fn list(&mut self, part: &Part<'s>, left: &mut LeftTypes) {
        if left.types.and(ValueTypes::LIST).is_empty() {
            return;
        }
        let count = |name: &str| part.members.get(name).and_then(Value::as_u64);
        let least = count("minItems").unwrap_or(0);
        let first = ["prefixItems", "items"]
            .into_iter()
            .find_map(|name| part.members.get(name).and_then(Value::as_array).map(|schemas| (name, schemas)));
        for (index, schema) in first.into_iter().flat_map(|(_, schemas)| schemas).enumerate() {
            let name = first.map(|(name, _)| name).unwrap_or_default();
            let at = || format!("{}/{index}", part.below(name));
            if u64::try_from(index).is_ok_and(|index| index < least)
                && let Some(inner) = self.is_impossible(at(), schema)
            {
                left.lose(ValueTypes::LIST, inner, at);
            }
        }
        let before = first.map_or(0, |(_, schemas)| schemas.len());
        let others = part.members.get("items").filter(|items| !items.is_array());
        if u64::try_from(before).is_ok_and(|before| before < least)
            && let Some(schema) = others
            && let Some(inner) = self.is_impossible(part.below("items"), schema)
        {
            left.lose(ValueTypes::LIST, inner, || part.below("items"));
        }
        if count("minContains") != Some(0)
            && !self.is_draft_4
            && let Some(schema) = part.members.get("contains")
            && let Some(inner) = self.is_impossible(part.below("contains"), schema)
        {
            left.lose(ValueTypes::LIST, inner, || part.below("contains"));
        }
    }

    /// The parts that are about the same value.
    fn forms(&mut self, part: &Part<'s>, needed: &[&'s str], left: &mut LeftTypes) {
        let forms = |name: &str| part.members.get(name).and_then(Value::as_array).filter(|forms| !forms.is_empty());
        for (index, schema) in forms("allOf").into_iter().flatten().enumerate() {
            let at = format!("{}/{index}", part.below("allOf"));
            let inner = self.part(at.clone(), schema, left.types, needed, true);
            let lost = left.types.but(inner.types);
            left.lose(lost, inner, || at);
        }
        for name in ["anyOf", "oneOf"] {
            let Some(forms) = forms(name) else { continue };
            let mut any = LeftTypes::of(ValueTypes::NONE);
            for (index, schema) in forms.iter().enumerate() {
                let at = format!("{}/{index}", part.below(name));
                let inner = self.part(at, schema, left.types, needed, true);
                any.types = any.types.or(inner.types);
                inner.blamed.into_iter().for_each(|at| any.blame(at));
            }
            let lost = left.types.but(any.types);
            left.lose(lost, any, || part.below(name));
        }
        let is_all = |schema: &Value| match schema {
            Value::Bool(all) => *all,
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        if part.members.get("not").is_some_and(is_all) {
            left.remove(ValueTypes::ALL, || part.below("not"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_impossible(schema: &Value) -> bool {
        left(schema, ValueTypes::OBJECT).is_impossible()
    }

    #[test]
    fn a_part_that_every_object_needs_makes_the_whole_impossible() {
        let bad = json!({"type": "array", "enum": ["a", "b"]});
        for schema in [
            json!({"properties": {"a": bad}, "required": ["a"]}),
            json!({"properties": {"a": {"enum": []}}, "required": ["a"]}),
            json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"], "$defs": {"a": bad}}),
            json!({"allOf": [{"properties": {"a": bad}}], "required": ["a"]}),
            json!({"allOf": [{"required": ["a"]}, {"properties": {"a": bad}}]}),
            json!({"anyOf": [{"properties": {"a": bad}, "required": ["a"]}, {"type": "string"}]}),
            json!({"oneOf": [{"enum": []}, false]}),
            json!({"properties": {"a": {"anyOf": [bad, bad]}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "array", "items": bad, "minItems": 1}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "array", "contains": bad}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "array", "prefixItems": [bad], "minItems": 1}}, "required": ["a"]}),
            json!({"properties": {"o": {"type": "object", "properties": {"a": bad}, "required": ["a"]}}, "required": ["o"]}),
            json!({"properties": {}, "required": ["a"], "additionalProperties": {"enum": []}}),
            json!({"properties": {"a": {"not": {}}}, "required": ["a"]}),
            json!({"properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "string", "minLength": 5, "maxLength": 2}}, "required": ["a"]}),
            json!({"minProperties": 3, "maxProperties": 2}),
            json!({"required": ["a"], "dependentRequired": {"a": ["b"], "b": ["c"]}, "properties": {"c": bad}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"], "dependencies": {"a": ["b"]},
                "properties": {"b": bad}}),
            json!({"required": ["a"], "dependentRequired": {"a": ["b"]}, "properties": {"a": {}}, "additionalProperties": false}),
            json!({"required": ["a"], "dependentSchemas": {"a": {"required": ["b"], "properties": {"b": bad}}}}),
            json!({"allOf": [{"required": ["a"]}, {"dependentRequired": {"a": ["b"]}}], "properties": {"b": bad}}),
            json!({"properties": {"a": {}}, "additionalProperties": false, "minProperties": 2}),
            json!({"properties": {"a": bad, "b": {}}, "additionalProperties": false, "minProperties": 2}),
            json!({"properties": {"a": bad}, "additionalProperties": false, "minProperties": 1}),
            json!({"propertyNames": {"enum": ["a"]}, "minProperties": 2}),
            json!({"required": ["a", "b"], "maxProperties": 1}),
            json!({"required": ["a"], "dependentRequired": {"a": ["b"]}, "maxProperties": 1}),
            json!({"not": true}),
            json!(false),
        ] {
            assert!(is_impossible(&schema), "{schema}");
        }
    }

    #[test]
    fn what_a_value_can_do_without_leaves_the_whole_possible() {
        let bad = json!({"type": "array", "enum": ["a", "b"]});
        for schema in [
            json!({"properties": {"a": bad}}),
            json!({"properties": {"a": bad}, "required": ["b"]}),
            json!({"anyOf": [{"properties": {"a": bad}, "required": ["a"]}, {"required": ["b"]}]}),
            json!({"properties": {"a": {"anyOf": [bad, {"type": "null"}]}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "array", "items": bad}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "array", "contains": bad, "minContains": 0}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "array", "prefixItems": [{}], "items": bad, "minItems": 1}}, "required": ["a"]}),
            json!({"properties": {"a": {"minimum": 3, "maximum": 2}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": ["number", "null"], "minimum": 3, "maximum": 2}}, "required": ["a"]}),
            json!({"properties": {"o": {"properties": {"a": bad}, "required": ["a"]}}, "required": ["o"]}),
            json!({"not": bad, "if": {"enum": []}, "additionalProperties": {"not": {}}}),
            json!({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "enum": [], "definitions": {"a": {}}}),
            json!({"properties": {"a": {"type": "integer", "enum": [1.0]}}, "required": ["a"]}),
            json!({"dependentRequired": {"a": ["b"]}, "properties": {"b": bad}}),
            json!({"dependentSchemas": {"a": {"required": ["b"], "properties": {"b": bad}}}}),
            json!({"required": ["a"], "dependentSchemas": {"a": {"required": ["b"]}}, "dependentRequired": {"a": ["b", "a"]}}),
            json!({"properties": {"a": {}, "b": {}}, "additionalProperties": false, "minProperties": 2}),
            json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": false, "minProperties": 9}),
            json!({"properties": {"a": {}}, "minProperties": 2}),
            json!({"properties": {"a": bad}, "additionalProperties": false}),
            json!({"required": ["a", "a"], "maxProperties": 1}),
        ] {
            assert!(!is_impossible(&schema), "{schema}");
        }
    }

    #[test]
    fn references_that_lead_to_each_other_many_times_end() {
        let next = |at: usize| json!({"$ref": format!("#/$defs/{}", at + 1)});
        let chain: Map<String, Value> = (0..9_000).map(|at| (at.to_string(), next(at))).collect();
        assert!(!is_impossible(&json!({"$ref": "#/$defs/0", "$defs": chain})));
        let each =
            |to: usize| json!({"allOf": vec![json!({"$ref": format!("#/$defs/{to}")}); 40], "required": ["a", "b"]});
        let parts: Map<String, Value> = (0..30).map(|at| (at.to_string(), each(at + 1))).collect();
        assert!(!is_impossible(&json!({"$ref": "#/$defs/0", "$defs": parts})));
        let wide: Vec<Value> = (0..50).map(|_| json!({"$ref": "#/$defs/a"})).collect();
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"anyOf": wide}, {"$ref": "#/$defs/b"}]},
            "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}});
        assert!(!is_impossible(&schema));
    }
}
