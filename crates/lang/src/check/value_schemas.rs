//! The schemas of the values that a text can name: of the run's input, and of the arguments of a call.

use std::sync::Arc;

use serde_json::Value;

use super::{Subject, Used};
use crate::program::reference::{PathStep, RESERVED};
use crate::program::schema::{Described, described};

/// The schemas of the values that a text can name.
#[derive(Clone, Copy)]
pub struct ValueSchemas<'s> {
    /// That of the run's input.
    pub input: Option<&'s Value>,
    /// That of the call's arguments, inside an action.
    pub arguments: Option<&'s Value>,
    /// Those of what the steps before write, and of what the engine gives, by name.
    pub written: &'s [(String, Arc<Value>)],
}

/// What a schema says of the way to a value.
pub struct DescribedValue<'s> {
    /// The schema.
    pub schema: &'s Value,
    /// What it says.
    pub way: Described<'s>,
    /// How many steps of the way come before those that the schema describes.
    pub skipped: usize,
}

impl<'s> ValueSchemas<'s> {
    /// Those of the texts of a loop or workflow.
    pub fn of_input(subject: &'s Subject<'_>) -> Self {
        Self { input: subject.input_schema(), arguments: None, written: &[] }
    }

    /// The same inside of an action.
    pub fn inside(self, subject: &Subject<'_>, used: &'s Used<'_>) -> Self {
        Self { arguments: used.parameters(subject.compiled), ..self }
    }

    /// What they say of the way to a value; nothing of one that the engine gives, unless `written` has its schema.
    pub fn describe(self, path: &[PathStep]) -> Option<DescribedValue<'s>> {
        let PathStep::Name(first) = path.first()? else { return None };
        let (schema, skipped) = match first.as_str() {
            "input" => (self.input?, 1),
            name => match self.written.iter().find(|(written, _)| written == name) {
                Some((_, schema)) => (&**schema, 1),
                None if RESERVED.contains(&name) => return None,
                None => (self.arguments?, 0),
            },
        };
        Some(DescribedValue { schema, way: described(schema, path.get(skipped..)?), skipped })
    }
}
