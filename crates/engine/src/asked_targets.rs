//! Who is asked by a post.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp::{as_rfc3339, from_rfc3339};

/// Who is asked by a post: the targets of the project that `ask` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedTargets {
    /// Their names.
    pub to: Vec<String>,
    /// Since when they are asked, RFC 3339.
    #[serde(rename = "since", serialize_with = "as_rfc3339", deserialize_with = "from_rfc3339")]
    #[schemars(with = "String")]
    pub since_ms: i64,
}
