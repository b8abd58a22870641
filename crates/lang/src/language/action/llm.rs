//! Actions of kind `llm`.

use super::{ActionKind, ActionText, CallSpeed, QuestionTerms, TextKind, WrittenText};

super::action! {
    /// A question to a model.
    LlmAction {
        /// The question. A template.
        #[schemars(length(min = 1))]
        template: String,
        /// The model. Default: the loop's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The most tokens that the reply may have.
        #[serde(default = "max_tokens")]
        #[schemars(range(min = 1))]
        max_tokens: u32,
        /// The model's temperature. Default: none is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
        temperature: Option<f64>,
        /// The JSON Schema of its answer. With it the result is the value, and without it the text.
        #[serde(
            default,
            deserialize_with = "crate::language::react::read_schema",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(schema_with = "crate::language::react::json_schema")]
        answer_schema: Option<serde_json::Value>,
        /// How often the model is asked again. Nothing else says so: not the loop, and no declaration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<crate::language::react::Retry>,
    }
}

fn max_tokens() -> u32 {
    1024
}

impl ActionKind for LlmAction {
    fn texts(&self) -> &'static [ActionText] {
        const { &[ActionText::plain("template", TextKind::Question)] }
    }

    fn describe(&self) -> String {
        "Asks a language model.".to_owned()
    }

    fn answer_schema(&self) -> Option<&serde_json::Value> {
        self.answer_schema.as_ref()
    }

    fn repeated(&self) -> Option<String> {
        None
    }

    fn is_idempotent(&self) -> bool {
        false
    }

    fn only_reads(&self, _: bool) -> bool {
        // It costs something, and changes nothing.
        true
    }

    fn speed(&self) -> CallSpeed {
        CallSpeed::Model
    }

    fn templates(&self) -> Vec<WrittenText<'_>> {
        vec![WrittenText::of_field("template", &self.template)]
    }

    fn spends(&self) -> bool {
        true
    }

    fn question(&self) -> Option<QuestionTerms<'_>> {
        Some(QuestionTerms { max_tokens: self.max_tokens, retry: self.retry.as_ref() })
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }
}
