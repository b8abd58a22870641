//! How many runs of a loop or a workflow are under way at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most runs of a document that are under way at a time, where their number is bounded.
pub const MOST_RUNS: u32 = 1_000;

/// How many runs of a loop or a workflow are under way at a time, over all processes of the store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    /// What the runs that are counted together have in common: an `@path` into the input that leads to a text or a number, or a
    /// template of such paths. Without it, all runs of the loop or workflow are counted together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub key: Option<String>,
    /// How many of them are under way at a time. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: u32,
    /// What happens to a run that is started when so many are under way. Default: `wait`.
    #[serde(default, skip_serializing_if = "is_wait")]
    pub when_full: WhenFull,
}

/// What happens to a run that is started when as many are under way as may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It is queued, and begins in its turn.
    #[default]
    Wait,
    /// It is not started.
    Refuse,
    /// Those that were started before it are cancelled, and it begins when they have ended.
    Replace,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_one(limit: &u32) -> bool {
    *limit == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_wait(when_full: &WhenFull) -> bool {
    *when_full == WhenFull::Wait
}
