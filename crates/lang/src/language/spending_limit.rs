//! The project file's `limits`: what all runs of a store may spend together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::react::defaults;

/// What all runs of a store may spend together in a day, a month or some hours, in whatever process they are driven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpendingLimit {
    /// What has the limit for itself: each organisation, each loop or each model; `all` is one account of all runs. Default: `all`.
    #[serde(default)]
    pub per: LimitShare,
    /// Only what this loop or workflow spends counts.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub loop_name: Option<String>,
    /// Only what this model costs counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Only what the runs of this organisation spend counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// The time that the limit is for: `day`, `month`, or the last hours.
    pub every: SpendingWindow,
    /// The time zone of days and months: the IANA name, such as `Europe/Berlin`. Default: `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Tokens, those read and those written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// US dollars, by the `price` of the model that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cost_usd: Option<f64>,
    /// What a run does that needs more than is left. Default: `fail`.
    #[serde(default)]
    pub on_limit: OnSpendingLimit,
    /// The share of the limit at which a warning is given, 0 to 1.
    #[serde(default = "defaults::warn_at")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub warn_at: f64,
}

/// What has a spending limit for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitShare {
    /// All runs share one account.
    #[default]
    All,
    /// Each organisation; the runs of none share one account.
    Org,
    /// Each loop and workflow.
    Loop,
    /// Each model.
    Model,
}

/// The time that a spending limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SpendingWindow {
    /// A day or a month of the calendar.
    Calendar(CalendarWindow),
    /// The last hours.
    Rolling(RollingWindow),
}

/// A day or a month of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalendarWindow {
    /// From midnight to midnight.
    Day,
    /// From the first day of a month to that of the next one.
    Month,
}

/// The last hours, at every moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollingWindow {
    /// How many.
    #[schemars(range(min = 1, max = 8784))]
    pub hours: u32,
}

/// What a run does that needs more than a spending limit leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnSpendingLimit {
    /// It fails as `spending_limit`, and can be retried.
    #[default]
    Fail,
    /// It waits until there is room again.
    Wait,
}
