//! Who is asked by a post.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp::{as_rfc3339, as_rfc3339_each, from_rfc3339, from_rfc3339_each};

/// Who is asked by a post: the targets of the project that `ask` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedTargets {
    /// Their names.
    pub to: Vec<String>,
    /// Since when they are asked, RFC 3339.
    #[serde(rename = "since", serialize_with = "as_rfc3339", deserialize_with = "from_rfc3339")]
    #[schemars(with = "String")]
    pub since_ms: i64,
    /// When they are asked again while nobody has answered, RFC 3339: the times of the reminders.
    #[serde(
        rename = "reminders",
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "as_rfc3339_each",
        deserialize_with = "from_rfc3339_each"
    )]
    #[schemars(with = "Vec<String>")]
    pub reminders_ms: Vec<i64>,
}
