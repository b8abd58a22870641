//! Conditions: when a step or a workflow runs. One operator an object, as Hyphen writes them; `and`, `or`
//! and `not` put them together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When a step runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// What must hold.
    pub condition: Condition,
}

/// Two operands: literals, `@paths`, `{"length": "@path"}`, and moments for orders: `{"now": "-30d"}`,
/// `{"time": "@path", "plus": "30d"}`.
pub type Two = [Value; 2];

/// A condition: an object with one operator.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// Both are the same.
    Equal(Two),
    /// The same as `equal`, in another spelling.
    Eq(Two),
    /// They are not the same.
    NotEqual(Two),
    /// The first is greater: of two numbers, or of two times.
    GreaterThan(Two),
    /// The first is less: of two numbers, or of two times.
    LessThan(Two),
    /// The first is greater, or they are the same.
    GreaterOrEqual(Two),
    /// The first is less, or they are the same.
    LessOrEqual(Two),
    /// The context has this key: a path.
    HasKey(String),
    /// The first is an entry of the second, a list.
    In(Two),
    /// The first, a text, matches the second, a regular expression.
    Matches(Two),
    /// All of them hold.
    And(Vec<Condition>),
    /// One of them holds.
    Or(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}
