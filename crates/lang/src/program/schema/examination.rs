//! All that is wrong with a schema, and what is left of it without the parts that are wrong.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::vocabulary::{Holds, keyword_named};
use super::{Schema, SchemaFault};
use crate::program::reference::escape_pointer;

/// How often what is left is looked at again: one fault can hide others.
const MAX_ROUNDS: usize = 4;

/// A schema of which all faults were looked for.
#[derive(Debug)]
pub struct Examined {
    /// What is wrong with it.
    pub faults: Vec<SchemaFault>,
    /// The schema without what is wrong; nothing when too little is left.
    pub rest: Option<Schema>,
    /// What was left out.
    left_out: Vec<ExaminedPart>,
}

/// A part of a schema that is left out with the fault in it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExaminedPart {
    /// A keyword, at this pointer.
    Keyword(String),
    /// A schema, at this pointer: one that everything matches takes its place.
    Schema(String),
}

impl Schema {
    /// Compiles a schema, and looks for all that is wrong with it.
    pub fn examine(written: &Arc<Value>) -> Examined {
        let (mut faults, mut left_out): (Vec<SchemaFault>, Vec<ExaminedPart>) = (Vec::new(), Vec::new());
        // Most schemas are sound, and are not copied.
        let mut compiled = Self::compile_all(Arc::clone(written));
        let mut source = if compiled.is_ok() { Value::Null } else { Value::clone(written) };
        for _ in 0..MAX_ROUNDS {
            let found = match compiled {
                Ok(schema) => return Examined { faults, rest: Some(schema), left_out },
                Err(found) => found,
            };
            for fault in found {
                let part = ExaminedPart::around(&fault.path);
                if !left_out.contains(&part) {
                    part.leave_out(&mut source);
                    left_out.push(part);
                    faults.push(fault);
                }
            }
            compiled = Self::compile_all(Arc::new(source.clone()));
        }
        Examined { faults, rest: compiled.ok(), left_out }
    }
}

impl Examined {
    /// Whether what is left still has all names of the properties of an object, and of those that are required.
    pub fn has_names(&self) -> bool {
        self.left_out.iter().all(|part| {
            let (ExaminedPart::Keyword(at) | ExaminedPart::Schema(at)) = part;
            let mut tokens = at.split('/').skip(1);
            match (tokens.next(), tokens.next()) {
                (Some("properties"), inner) => inner.is_some(),
                (Some("type" | "title" | "description" | "default" | "examples"), None) => true,
                _ => false,
            }
        })
    }
}

impl ExaminedPart {
    /// The part around a fault at a JSON pointer.
    fn around(path: &str) -> Self {
        let mut tokens = path.split('/').skip(1).peekable();
        let mut at = String::new();
        while let Some(keyword) = tokens.next() {
            at.push('/');
            at.push_str(keyword);
            let holds = keyword_named(keyword).map(|keyword| keyword.holds);
            let holds_one = matches!(holds, Some(Holds::Schema | Holds::SchemaOrSchemas));
            let holds_named = matches!(holds, Some(Holds::NamedSchemas));
            let is_index = tokens.peek().is_some_and(|token| token.bytes().all(|byte| byte.is_ascii_digit()));
            let holds_several = matches!(holds, Some(Holds::Schemas | Holds::SchemaOrSchemas)) && is_index;
            match tokens.peek() {
                Some(name) if holds_named || holds_several => {
                    at.push('/');
                    at.push_str(name);
                    tokens.next();
                }
                _ if holds_one => {}
                _ => return Self::Keyword(at),
            }
        }
        Self::Schema(at)
    }

    fn leave_out(&self, source: &mut Value) {
        match self {
            Self::Schema(at) => {
                if let Some(schema) = source.pointer_mut(at) {
                    *schema = Value::Object(Map::new());
                }
            }
            Self::Keyword(at) => {
                let Some((around, keyword)) = at.rsplit_once('/') else { return };
                if let Some(members) = source.pointer_mut(around).and_then(Value::as_object_mut) {
                    members.retain(|name, _| escape_pointer(name) != keyword);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(source: &Value) -> Vec<String> {
        let mut paths: Vec<String> =
            Schema::examine(&Arc::new(source.clone())).faults.into_iter().map(|fault| fault.path).collect();
        paths.sort();
        paths
    }

    #[test]
    fn each_fault_of_a_schema_is_found_at_its_place() {
        let source = json!({
            "type": "dict",
            "properties": {
                "a": {"type": "float"},
                "b": "string",
                "c": {"type": ["string", "nul"], "minLength": -1},
                "type": {"$ref": "#/$defs/none"},
                "d": {"$ref": "#/$defs/none", "items": {"pattern": "[a"}},
            },
            "required": "a",
        });
        assert_eq!(
            paths(&source),
            [
                "/properties/a/type",
                "/properties/b",
                "/properties/c/minLength",
                "/properties/c/type/1",
                "/properties/d/$ref",
                "/properties/d/items/pattern",
                "/properties/type/$ref",
                "/required",
                "/type",
            ]
        );
    }

    #[test]
    fn faults_inside_of_the_forms_of_an_older_draft_are_found_at_their_places() {
        let source = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "items": [{"type": "strin"}, {"items": {"type": "int"}}],
            "dependencies": {"a": {"type": "bool"}},
        });
        assert_eq!(paths(&source), ["/dependencies/a/type", "/items/0/type", "/items/1/items/type"]);
    }

    #[test]
    fn what_is_left_has_the_names_that_no_fault_hides() {
        let source = json!({"type": "dict", "properties": {"a": {"type": "int"}, "b": 5}, "required": ["a"]});
        let examined = Schema::examine(&Arc::new(source));
        assert!(examined.has_names());
        let rest = examined.rest.unwrap();
        assert_eq!((rest.properties(), rest.required()), (vec!["a", "b"], vec!["a"]));
        for source in [json!({"properties": []}), json!({"required": "a"}), json!({"allOf": [5]}), json!(5)] {
            assert!(!Schema::examine(&Arc::new(source.clone())).has_names(), "{source}");
        }
    }

    #[test]
    fn a_sound_schema_has_no_fault_and_is_left_whole() {
        let source = json!({"properties": {"type": {"type": "string"}}});
        let examined = Schema::examine(&Arc::new(source.clone()));
        assert!(examined.faults.is_empty() && examined.has_names());
        assert_eq!(examined.rest.unwrap().source(), &source);
    }
}
