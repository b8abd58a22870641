//! Refusals of what is asked or said: how a provider names the category of one, and by which words its server refuses a
//! request for its content. What they say is text from outside: it is joined up to a bound here, and cleaned by
//! [`super::failure::Peer::clean`].

use serde_json::Value;

/// The most bytes of categories and words that are kept of one refusal.
const MAX_REFUSAL_BYTES: usize = 1_000;
/// The most categories that are looked at.
const MOST_CATEGORIES: usize = 20;

/// Codes and words, in lower case, by which servers refuse a request for its content: OpenAI, Azure, OpenRouter, LiteLLM,
/// Alibaba, DeepSeek, xAI, Kimi, Anthropic, Bedrock, Volcengine and GLM (their documentation and refusals, read in
/// November 2026).
const REFUSES_CONTENT: [&str; 20] = [
    "content_filter",
    "contentfilter",
    "content_policy_violation",
    "contentpolicyviolation",
    "content management policy",
    "responsibleaipolicyviolation",
    "violating our usage policy",
    "violates usage guidelines",
    "data_inspection_failed",
    "datainspectionfailed",
    "content exists risk",
    "considered high risk",
    "your input was flagged",
    "cyber_policy",
    "cybersecurity risk",
    "content filtering policy",
    "guardrail intervened",
    "guardrail_intervened",
    "sensitivecontent",
    "不安全或敏感内容",
];
/// The same of codes that are numbers: GLM's.
const CODES: [&str; 1] = ["1301"];

/// What a provider says of a refusal, as it comes: categories first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RefusalWords(String);

impl RefusalWords {
    /// Adds a category or a sentence, once.
    pub(super) fn add(&mut self, words: &str) {
        let words = words.trim();
        if words.is_empty() || self.0.contains(words) || self.0.len() > MAX_REFUSAL_BYTES {
            return;
        }
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        self.0.push_str(words.get(..words.floor_char_boundary(MAX_REFUSAL_BYTES)).unwrap_or_default());
    }

    /// Adds a category or a sentence that may be of any type.
    pub(super) fn add_value(&mut self, value: Option<&Value>) {
        self.add(value.and_then(Value::as_str).unwrap_or_default());
    }

    /// Adds the categories of filters that fired: `{"hate": {"filtered": true, "severity": "high"}}`, as Azure writes them, or
    /// `[{"category": "HARM_CATEGORY_HATE_SPEECH", "blocked": true}]`, as Gemini does.
    pub(super) fn add_fired(&mut self, filters: &Value) {
        let fired = |filter: &&Value| {
            ["filtered", "detected", "blocked"]
                .iter()
                .any(|name| filter.get(name).and_then(Value::as_bool) == Some(true))
        };
        if let Some(filters) = filters.as_object() {
            let fired = filters.iter().filter(|(_, filter)| fired(filter));
            fired.take(MOST_CATEGORIES).for_each(|(name, _)| self.add(name));
        }
        let ratings = filters.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter(fired);
        ratings.take(MOST_CATEGORIES).for_each(|rating| self.add_value(rating.get("category")));
    }

    /// What the `error` of a server says, when it refuses a request for its content. `codes`: its codes, with blanks between.
    pub(super) fn of_error(error: &Value, codes: &str, message: &str) -> Option<Self> {
        let said = format!("{codes} {message}").to_lowercase();
        let mut words = Self::default();
        let inner = ["innererror", "inner_error"].into_iter().find_map(|name| error.get(name));
        for place in [Some(error), inner].into_iter().flatten() {
            for name in ["content_filter_result", "content_filter_results"] {
                if let Some(filters) = place.get(name) {
                    words.add_fired(filters);
                }
            }
        }
        // OpenRouter, of a prompt that a moderation flagged.
        let reasons = error.pointer("/metadata/reasons").and_then(Value::as_array);
        for reason in reasons.into_iter().flatten().take(MOST_CATEGORIES) {
            words.add_value(Some(reason));
        }
        let refuses = !words.0.is_empty()
            || REFUSES_CONTENT.iter().any(|known| said.contains(known))
            || codes.split_whitespace().any(|code| CODES.contains(&code));
        refuses.then_some(words)
    }

    /// All of it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn categories_are_joined_once_and_bounded() {
        let mut words = RefusalWords::default();
        words.add_fired(&json!({ "hate": { "filtered": true }, "violence": { "filtered": false }, "x": 7 }));
        words
            .add_fired(&json!([{ "category": "HARM", "blocked": true }, { "category": "OTHER", "blocked": false }, 3]));
        words.add("hate");
        assert_eq!(words.as_str(), "hate, HARM");
        for number in 0..10_000 {
            words.add(&format!("{number} {}", "ä".repeat(700)));
        }
        assert!(words.as_str().len() < 3 * MAX_REFUSAL_BYTES, "{}", words.as_str().len());
    }

    #[test]
    fn an_error_refuses_content_by_its_words_or_its_filters() {
        let said = |error: Value, said: &str| RefusalWords::of_error(&error, "400", said).map(|words| words.0);
        let azure = json!({ "innererror": { "content_filter_result": { "jailbreak": { "detected": true, "filtered": true } } } });
        assert_eq!(said(azure, "content_filter").as_deref(), Some("jailbreak"));
        assert_eq!(said(json!({ "metadata": { "reasons": ["violence"] } }), "").as_deref(), Some("violence"));
        assert_eq!(said(json!({}), "Content Exists Risk").as_deref(), Some(""));
        assert_eq!(said(json!({ "metadata": { "reasons": 3 } }), "max_tokens is too large: 1301"), None);
        for (codes, message) in [
            ("cyber_policy_violation", "This content was flagged for possible cybersecurity risk."),
            ("invalid_request_error", "Output blocked by content filtering policy"),
            ("SensitiveContentDetected", "The request failed."),
            ("1301", "系统检测到输入或生成内容可能包含不安全或敏感内容"),
            ("1301", ""),
            ("", "Guardrail intervened"),
        ] {
            assert!(RefusalWords::of_error(&json!({}), codes, message).is_some(), "{codes} {message}");
        }
    }
}
