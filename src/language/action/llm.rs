//! Actions of kind `llm`.

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
        /// The model's temperature.
        #[serde(default = "crate::language::react::defaults::temperature")]
        #[schemars(range(min = 0.0, max = 2.0))]
        temperature: f64,
        /// How often the model is asked again. Nothing else says so: not the loop, and no declaration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<crate::language::react::Retry>,
    }
}

fn max_tokens() -> u32 {
    1024
}
