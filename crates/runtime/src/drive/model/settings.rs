//! The settings of a model in the project file, as requests have them.

use bytes::BytesMut;
use serde::Serialize;
use serde_json::{Map, Value};

use super::refused_fields::{RefusedFields, RequestField};
use loopctl_lang::language::project::{Model, ReasoningEffort, ThinkingKind};

/// The settings of a model. They are the same in every request, so they are written once.
#[derive(Debug, Default)]
pub(super) struct ModelSettings {
    /// The provider's own settings.
    fields: Vec<SettingField>,
    /// `extra_body`, in the same form.
    pub(super) extra: String,
    /// Texts at which the model stops, beside those of the dialect.
    pub(super) stop: Vec<String>,
    /// How the model thinks, as JSON, where requests have it as it is written.
    pub(super) thinking: Option<String>,
    /// Whether the model decides how much it thinks.
    pub(super) is_adaptive: bool,
    /// The most tokens that it may think.
    pub(super) thinking_budget: Option<u32>,
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
            fields: fields.iter().map(|(name, value)| SettingField::of(name, value)).collect(),
            extra: members(&model.extra_body),
            stop: model.stop.clone(),
            thinking: thinking.filter(|_| model.provider.facts().sends_thinking),
            is_adaptive: model.thinking.is_some_and(|thinking| thinking.kind == ThinkingKind::Adaptive),
            thinking_budget: model.thinking.and_then(|thinking| thinking.budget_tokens),
            effort: model.reasoning_effort,
            stream: model.stream,
        })
    }
}

impl ModelSettings {
    /// Whether a setting is written.
    pub(super) fn has(&self, field: RequestField) -> bool {
        self.fields.iter().any(|setting| setting.field == Some(field))
    }

    /// Writes the provider's own settings that the model takes.
    pub(super) fn write(&self, buffer: &mut BytesMut, refused: &RefusedFields) {
        let is_taken = |setting: &&SettingField| !setting.field.is_some_and(|field| refused.contains(field));
        self.fields.iter().filter(is_taken).for_each(|setting| buffer.extend_from_slice(setting.text.as_bytes()));
    }
}

/// A setting, as requests have it.
#[derive(Debug)]
struct SettingField {
    /// What a refusal of it is remembered as.
    field: Option<RequestField>,
    /// `,"seed":1`, with a comma before it.
    text: String,
}

impl SettingField {
    fn of(name: &str, value: &Value) -> Self {
        Self { field: RequestField::of_setting(name), text: format!(",{}:{value}", Value::from(name)) }
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
