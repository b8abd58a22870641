//! What the answer of an `llm` action must be.

use serde_json::Value;

use super::schema::Schema;
use super::turn_schema::TurnForms;

/// What the answer of an `llm` action must be.
#[derive(Debug)]
pub struct AnswerForm {
    /// The schema that it is held against.
    pub schema: Schema,
    /// The schema to which a provider constrains it; none for an answer that is no object, and for one that would be too large.
    pub forms: Option<TurnForms>,
}

impl AnswerForm {
    /// That of a schema.
    pub fn of(schema: Schema) -> Self {
        let forms = TurnForms::of_answer(&schema);
        Self { schema, forms }
    }

    /// What the model reads of it, behind the question.
    pub fn instructions(&self) -> String {
        let source: &Value = self.schema.source();
        format!("Reply with one JSON value and nothing else. It must match this JSON Schema:\n{source}")
    }
}
