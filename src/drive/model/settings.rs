//! The settings of a model in the project file, as requests have them.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::language::project::{Model, ReasoningEffort};

/// The settings of a model. They are the same in every request, so they are written once.
#[derive(Debug, Default)]
pub(super) struct ModelSettings {
    /// The provider's own settings: `,"seed":1`, each with a comma before it.
    pub(super) fields: String,
    /// `extra_body`, in the same form.
    pub(super) extra: String,
    /// Texts at which the model stops, beside those of the dialect.
    pub(super) stop: Vec<String>,
    /// How the model thinks, as JSON, where requests have it as it is written.
    pub(super) thinking: Option<String>,
    /// How much a model reasons, where this is a part of another field.
    pub(super) effort: Option<ReasoningEffort>,
    /// Whether its replies may be streamed.
    pub(super) stream: bool,
}

impl ModelSettings {
    /// Those of a model; `fields` are what its protocol makes of them.
    ///
    /// # Errors
    /// A sentence that names a setting that can't be sent.
    pub(super) fn new(name: &str, model: &Model, fields: &Map<String, Value>) -> Result<Self, String> {
        if let Some(fault) = model.setting_faults().into_iter().next() {
            return Err(format!("the model {name:?} can't be asked: {}", fault.message));
        }
        let thinking = model.thinking.as_ref().and_then(|thinking| serde_json::to_string(thinking).ok());
        Ok(Self {
            fields: members(fields),
            extra: members(&model.extra_body),
            stop: model.stop.clone(),
            thinking: thinking.filter(|_| model.provider.facts().sends_thinking),
            effort: model.reasoning_effort,
            stream: model.stream,
        })
    }
}

/// Members of an object, each with a comma before it.
fn members(fields: &Map<String, Value>) -> String {
    fields.iter().map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str()))).collect()
}

/// Adds a field that has a value.
pub(super) fn put(fields: &mut Map<String, Value>, name: &str, value: Option<impl Serialize>) {
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        fields.insert(name.to_owned(), value);
    }
}
