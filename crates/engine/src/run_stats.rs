//! What many runs came to: endings, times, tokens, costs, retries and waits, for a report.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a report is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatsKey {
    /// The loop or workflow.
    Loop,
    /// The day of the start.
    Day,
    /// The model.
    Model,
    /// The tool.
    Tool,
    /// The organisation; the empty name is that of runs of none.
    Org,
}

/// What runs came to. A run that another one called counts with its caller.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunStats {
    /// What the groups are, if the report has one kind of them only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<StatsKey>,
    /// The runs started at this time or later, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The runs started before this time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The time zone of the days.
    pub zone: String,
    /// All runs together.
    pub total: RunFigures,
    /// By loop or workflow, that with the most runs first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<RunGroup>,
    /// By the day of their start, the first day first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<RunGroup>,
    /// By organisation, that with the most runs first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orgs: Vec<RunGroup>,
    /// By model, that with the most tokens first: of the runs whose journals were read, and those that they called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelFigures>,
    /// By tool, that with the most calls first: of the same runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolFigures>,
    /// What the accounts of the project's spending limits hold now, that with the largest share first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitUse>,
    /// What the figures lack.
    pub left_out: LeftOut,
}

/// What an account of a spending limit holds now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitUse {
    /// Whose it is, in words: `all runs`, ``the loop `triage` ``.
    pub of: String,
    /// The time that it is for, in words: `a day`, `24 hours`.
    pub every: String,
    /// When the day or month is over, RFC 3339; left out for the last hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The share of the limit that is spent or reserved: the larger one of tokens and US dollars; 1 is all of it.
    pub used: f64,
    /// The tokens that were spent.
    pub tokens: u64,
    /// Those that calls under way may spend.
    pub reserved_tokens: u64,
    /// The most tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_tokens: Option<u64>,
    /// The US dollars that were spent, as far as prices are known.
    pub cost_usd: f64,
    /// Those that calls under way may spend.
    pub reserved_usd: f64,
    /// The most US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_usd: Option<f64>,
}

/// What a report lacks, because it would take too long to read, or can't be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The runs that the report does not count, the oldest; whether there are such.
    pub older_runs: bool,
    /// The runs that are counted, and whose journals were not read: retries, stuck patterns, waits, models and tools lack
    /// them. The newest are read first.
    pub journals: u64,
    /// The runs whose journals can't be read.
    pub unreadable: u64,
}

/// The runs of a group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunGroup {
    /// What they have in common.
    pub key: String,
    /// What they came to.
    #[serde(flatten)]
    pub figures: RunFigures,
}

/// What runs came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunFigures {
    /// All of them.
    pub runs: u64,
    /// Those that ended with an answer.
    pub completed: u64,
    /// Those that ended without one.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those that wait for a human or a model.
    pub paused: u64,
    /// Those that are under way, are queued, were set aside or were stopped by a signal.
    pub open: u64,
    /// Those that ended, by why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub terminations: BTreeMap<String, u64>,
    /// The time from start to end that half of the runs that ended did not exceed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<i64>,
    /// The time that 95 of 100 did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<i64>,
    /// Replies of models, without those to sub-runs.
    pub iterations: u64,
    /// Tokens, those of sub-runs too.
    pub tokens: u64,
    /// What they cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// The runs with tokens whose price is not known: `cost_usd` lacks them.
    pub unpriced_runs: u64,
    /// The runs that an older version wrote, and whose tokens are not known.
    pub unknown_runs: u64,
    /// The runs whose journals were read. What follows is of these, and of the runs that they called.
    pub journals: u64,
    /// Requests to models that failed and were made again.
    pub model_retries: u64,
    /// Calls of tools that failed and were made again.
    pub tool_retries: u64,
    /// How often runs ended or paused because their agent went in circles, by the pattern.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stuck: BTreeMap<String, u64>,
    /// How often an agent in circles got a hint.
    pub stuck_hints: u64,
    /// How often runs waited for a human, and the wait is over.
    pub human_waits: u64,
    /// How long they waited in all, in milliseconds.
    pub human_wait_ms: u64,
}

/// What a model did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModelFigures {
    /// The name of the model in the project.
    pub key: String,
    /// Its replies to runs; a call of an action that asks it is none.
    pub replies: u64,
    /// The requests that failed and were made again.
    pub retries: u64,
    /// The time of a reply that half of them did not exceed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<u64>,
    /// The time that 95 of 100 did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
    /// Tokens that it read.
    pub input_tokens: u64,
    /// Those of them that were cached.
    pub cached_input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// What they cost in US dollars; left out when no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What a tool did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolFigures {
    /// The name of the tool.
    pub key: String,
    /// Its calls that ended.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// The attempts that failed and were made again.
    pub retries: u64,
    /// The time of a call that half of them did not exceed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<u64>,
    /// The time that 95 of 100 did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
}

impl RunStats {
    /// The report with one kind of groups only.
    #[must_use]
    pub fn only(mut self, by: StatsKey) -> Self {
        let groups = match by {
            StatsKey::Loop => &mut self.loops,
            StatsKey::Day => &mut self.days,
            StatsKey::Org => &mut self.orgs,
            StatsKey::Model | StatsKey::Tool => &mut Vec::new(),
        };
        let groups = std::mem::take(groups);
        (self.loops, self.days, self.orgs) = (Vec::new(), Vec::new(), Vec::new());
        match by {
            StatsKey::Loop => self.loops = groups,
            StatsKey::Day => self.days = groups,
            StatsKey::Org => self.orgs = groups,
            StatsKey::Model | StatsKey::Tool => {}
        }
        if by != StatsKey::Model {
            self.models.clear();
        }
        if by != StatsKey::Tool {
            self.tools.clear();
        }
        Self { by: Some(by), ..self }
    }
}

impl RunFigures {
    /// The share of the runs that ended without an answer among those that ended by themselves; none without such.
    pub fn failed_share(&self) -> Option<f64> {
        let ended = self.completed.saturating_add(self.failed);
        let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        (ended > 0).then(|| number(self.failed) / number(ended))
    }
}

/// The value that this share of the values, in hundredths, does not exceed: the nearest rank.
pub fn percentile<T: Copy + Ord>(values: &mut [T], hundredths: usize) -> Option<T> {
    let rank = values.len().saturating_mul(hundredths).div_ceil(100).max(1);
    let at = rank.saturating_sub(1);
    if at >= values.len() {
        return None;
    }
    Some(*values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_occurred() {
        let mut hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!((percentile(&mut hundred, 50), percentile(&mut hundred, 95)), (Some(50), Some(95)));
        assert_eq!((percentile(&mut [7], 50), percentile(&mut [7], 95)), (Some(7), Some(7)));
        assert_eq!((percentile(&mut [1, 9], 50), percentile(&mut [1, 9], 95)), (Some(1), Some(9)));
        assert_eq!(percentile::<u64>(&mut [], 50), None);
    }
}
