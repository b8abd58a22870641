//! The reasoning of a reply: what the model wrote before it, as its provider wants it back.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reasoning of one reply. Nothing but the adapter of its provider reads what is sealed; it is in no prompt, no
/// template and no trace.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The provider, the host and the model that wrote it: it is sent back to the same ones only.
    #[serde(default)]
    pub origin: String,
    /// What is sent back, byte for byte. Empty: nothing is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sealed: String,
    /// What of it can be read, cut to [`loopctl_lang::policy::reasoning::MAX_TEXT`]: the thought of a reply that has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl fmt::Debug for Reasoning {
    /// Its size alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Reasoning");
        shown.field("origin", &self.origin).field("bytes", &self.sealed.len()).finish_non_exhaustive()
    }
}
