//! A form with fields, filled in in the terminal: what is not taken is asked for again, at its field.

use serde_json::{Map, Value};

use super::Asker;
use crate::engine::event::Decision;
use crate::engine::question::StepQuestion;
use crate::language::form::FieldType;
use crate::program::form::AskedField;
use crate::trace::{Tone, escape};

impl Asker<'_> {
    /// The answer to a form; none leaves the run paused.
    pub(super) async fn filled_in(&self, question: &StepQuestion) -> Option<Decision> {
        let mut answer = Map::new();
        for field in &question.fields {
            if let Some(value) = self.field(field).await? {
                answer.insert(field.name.clone(), value);
            }
        }
        Some(Decision::Answer(Value::Object(answer).to_string()))
    }

    /// The value of a field; `Some(None)` leaves it out.
    async fn field(&self, field: &AskedField) -> Option<Option<Value>> {
        let mut words = format!("{} ({})", escape::line(field.title()), escape::line(&field.note()));
        if field.kind == FieldType::LongText {
            words.push_str(" up to a line with a point alone");
        }
        loop {
            let typed = match field.kind {
                FieldType::LongText => self.long_text(&words).await?,
                _ => self.typed(&words).await?,
            };
            match field.read_typed(&typed) {
                // The run has the default.
                Ok(_) if typed.is_empty() => return Some(None),
                Ok(value) => return Some(Some(value)),
                Err(why) => self.surface.say(&self.surface.line(Tone::Warn, "not taken", &why)),
            }
        }
    }
}
