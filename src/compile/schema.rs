//! JSON Schemas: compiled once, with every reference to elsewhere refused.

use serde_json::Value;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: jsonschema::Validator,
}

/// What does not match a schema, or what is wrong with the schema itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// The JSON pointer of the faulty part.
    pub path: String,
    /// What is wrong, in a sentence.
    pub message: String,
}

impl Schema {
    /// Compiles a schema. It may refer to its own parts (`#/$defs/x`) and to nothing else.
    ///
    /// # Errors
    /// When it is no valid JSON Schema, or refers to elsewhere.
    pub fn compile(source: Value) -> Result<Self, SchemaFault> {
        let validator = jsonschema::options()
            .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20))
            .build(&source)
            .map_err(|error| SchemaFault { path: error.instance_path().to_string(), message: error.to_string() })?;
        Ok(Self { source, validator })
    }

    /// The schema as written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Everything about `instance` that does not match, at most 20 faults; empty when it matches.
    pub fn faults(&self, instance: &Value) -> Vec<SchemaFault> {
        self.validator
            .iter_errors(instance)
            .take(20)
            .map(|error| SchemaFault { path: error.instance_path().to_string(), message: error.to_string() })
            .collect()
    }
}
