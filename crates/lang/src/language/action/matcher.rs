//! Actions of kind `matcher`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionKind, ActionText, CallSpeed, TextKind};

/// The settings of a matcher that a call may give, beside its two lists.
pub const MATCHER_SETTINGS: [&str; 9] = [
    "matchOn",
    "tolerance",
    "tolerance_mode",
    "dateWindowDays",
    "fuzzyThreshold",
    "descriptionKey",
    "outputMatched",
    "outputUnmatchedLeft",
    "outputUnmatchedRight",
];

super::action! {
    /// Which entries of two lists belong together.
    MatcherAction {
        /// The one list, or its `@path`. Without it each call gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Value>,
        /// The other list, or its `@path`. Without it each call gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        right: Option<Value>,
        /// The fields that must be equal.
        #[serde(rename = "matchOn", default, skip_serializing_if = "Option::is_none")]
        match_on: Option<Vec<String>>,
        /// How far the `amount` of two entries may be apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tolerance: Option<f64>,
        /// Whether `tolerance` is an amount or a share of the larger amount. Default: `absolute`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tolerance_mode: Option<ToleranceMode>,
        /// How many days dates may be apart.
        #[serde(rename = "dateWindowDays", default, skip_serializing_if = "Option::is_none")]
        date_window_days: Option<f64>,
        /// How alike texts must be, 0 to 100.
        #[serde(rename = "fuzzyThreshold", default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 100.0))]
        fuzzy_threshold: Option<f64>,
        /// The field whose texts are compared for likeness.
        #[serde(rename = "descriptionKey", default, skip_serializing_if = "Option::is_none")]
        description_key: Option<String>,
        /// Recognised, and refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Vec<Value>>,
        /// The key of the pairs in the result. Default: `matched`.
        #[serde(rename = "outputMatched", default, skip_serializing_if = "Option::is_none")]
        output_matched: Option<String>,
        /// The key of what is left of the one list. Default: `unmatchedLeft`.
        #[serde(rename = "outputUnmatchedLeft", default, skip_serializing_if = "Option::is_none")]
        output_unmatched_left: Option<String>,
        /// The key of what is left of the other list. Default: `unmatchedRight`.
        #[serde(rename = "outputUnmatchedRight", default, skip_serializing_if = "Option::is_none")]
        output_unmatched_right: Option<String>,
    }
}

/// Hyphen's matcher: two lists, and which of their entries belong together.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matcher {
    /// The one list, or its `@path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Value>,
    /// The other list, or its `@path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Value>,
    /// The fields that must be equal.
    #[serde(rename = "matchOn", default, skip_serializing_if = "Option::is_none")]
    pub match_on: Option<Vec<String>>,
    /// How far the `amount` of two entries may be apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Whether `tolerance` is an amount or a share of the larger amount. Default: `absolute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance_mode: Option<ToleranceMode>,
    /// How many days dates may be apart.
    #[serde(rename = "dateWindowDays", default, skip_serializing_if = "Option::is_none")]
    pub date_window_days: Option<f64>,
    /// How alike texts must be, 0 to 100.
    #[serde(rename = "fuzzyThreshold", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub fuzzy_threshold: Option<f64>,
    /// The field whose texts are compared for likeness.
    #[serde(rename = "descriptionKey", default, skip_serializing_if = "Option::is_none")]
    pub description_key: Option<String>,
    /// Rules of the platform's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Value>>,
    /// The context key of the pairs. Default: `matched`.
    #[serde(rename = "outputMatched", default, skip_serializing_if = "Option::is_none")]
    pub output_matched: Option<String>,
    /// The context key of what is left of the one list. Default: `unmatchedLeft`.
    #[serde(rename = "outputUnmatchedLeft", default, skip_serializing_if = "Option::is_none")]
    pub output_unmatched_left: Option<String>,
    /// The context key of what is left of the other list. Default: `unmatchedRight`.
    #[serde(rename = "outputUnmatchedRight", default, skip_serializing_if = "Option::is_none")]
    pub output_unmatched_right: Option<String>,
}

/// What a matcher's `tolerance` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToleranceMode {
    /// An amount: 0.02 is two cents.
    Absolute,
    /// A share: 0.02 is two percent.
    Relative,
}

impl MatcherAction {
    /// What it says of how entries are compared, without its lists.
    pub fn settings(&self) -> Matcher {
        Matcher {
            left: None,
            right: None,
            match_on: self.match_on.clone(),
            tolerance: self.tolerance,
            tolerance_mode: self.tolerance_mode,
            date_window_days: self.date_window_days,
            fuzzy_threshold: self.fuzzy_threshold,
            description_key: self.description_key.clone(),
            rules: self.rules.clone(),
            output_matched: self.output_matched.clone(),
            output_unmatched_left: self.output_unmatched_left.clone(),
            output_unmatched_right: self.output_unmatched_right.clone(),
        }
    }
}

impl ActionKind for MatcherAction {
    fn texts(&self) -> &'static [ActionText] {
        const { &[ActionText::plain("left", TextKind::Step), ActionText::plain("right", TextKind::Step)] }
    }

    fn describe(&self) -> String {
        "Finds which entries of two lists belong together.".to_owned()
    }

    fn repeated(&self) -> Option<String> {
        None
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn only_reads(&self, _: bool) -> bool {
        true
    }

    fn speed(&self) -> CallSpeed {
        CallSpeed::Local
    }
}
