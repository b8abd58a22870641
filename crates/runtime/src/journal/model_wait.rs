//! A model that failed and is asked again, or something at which a call waits for its turn, as the row of its run holds it. While a run is under way, the column of its error
//! is free for that: the next record of the run replaces it. A row whose driver died, or that another driver has since, waits
//! for no model.

use serde::{Deserialize, Serialize};

/// What a call waits for its turn at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitedFor {
    /// A model.
    #[default]
    Model,
    /// An action.
    Action,
    /// A datasource.
    Datasource,
    /// An MCP server.
    Mcp,
}

impl WaitedFor {
    /// As programs name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Action => "action",
            Self::Datasource => "datasource",
            Self::Mcp => "mcp",
        }
    }

    /// As people name it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Mcp => "MCP server",
            of => of.word(),
        }
    }

    /// Whether it is a model.
    pub fn is_model(&self) -> bool {
        *self == Self::Model
    }
}

/// A model that failed and is asked again, or something at which a call waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelWait {
    /// The run that asks it: the one that is looked at, or one below.
    pub run_id: String,
    /// What is waited for.
    #[serde(default, skip_serializing_if = "WaitedFor::is_model")]
    pub of: WaitedFor,
    /// The name of it: of the model, mostly.
    pub model: String,
    /// The attempts that failed so far; 0: none failed, and a request waits for its turn.
    pub attempts: u32,
    /// When the first of them failed, or the request began to wait, in milliseconds since 1970.
    pub since_ms: i64,
    /// What kind of failure the last one was, without the words of the server; or for what the request waits.
    pub kind: String,
    /// Why the last one failed, in a sentence without secrets. It is known to the driver only.
    #[serde(skip)]
    pub reason: Option<String>,
    /// When it is asked again, in milliseconds since 1970; none where nobody knows when the turn of a request comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at_ms: Option<i64>,
    /// The addresses of the calls of the run of which nothing was sent, or nothing is under way: whoever resumes the run makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<String>,
}

/// The text in a row, with the lease of the driver that wrote it.
#[derive(Serialize, Deserialize)]
struct StoredWait<'w> {
    fence: u64,
    #[serde(flatten)]
    wait: std::borrow::Cow<'w, ModelWait>,
}

impl ModelWait {
    /// The text for the row, of the driver with this lease.
    pub fn for_row(&self, fence: u64) -> Option<String> {
        serde_json::to_string(&StoredWait { fence, wait: std::borrow::Cow::Borrowed(self) }).ok()
    }

    /// What a row says that is leased to the driver with this lease; none for what another driver wrote.
    #[cfg(any(test, feature = "sqlite", feature = "postgres"))]
    pub(super) fn of_row(text: &str, fence: u64) -> Option<Self> {
        let stored: StoredWait<'_> = loopctl_lang::policy::json_text::read(text).ok()?;
        (stored.fence == fence).then(|| stored.wait.into_owned())
    }

    /// The calls of which nothing was sent when the driver before this lease died.
    #[cfg(any(test, feature = "sqlite", feature = "postgres"))]
    pub(super) fn unsent_of_row(text: &str, fence: u64) -> Option<Vec<String>> {
        let stored: StoredWait<'_> = loopctl_lang::policy::json_text::read(text).ok()?;
        (stored.fence.saturating_add(1) == fence).then(|| stored.wait.into_owned().unsent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_wait_of_its_present_driver_only() {
        let wait = ModelWait {
            run_id: "r.1.0".to_owned(),
            of: WaitedFor::Model,
            model: "main".to_owned(),
            attempts: 3,
            since_ms: 1_000,
            kind: "http 503".to_owned(),
            reason: Some("http 503: the words of the server".to_owned()),
            again_at_ms: Some(9_000),
            unsent: vec!["1.0".to_owned()],
        };
        let row = wait.for_row(4).unwrap();
        assert!(!row.contains("words"), "{row}");
        let known = ModelWait { reason: None, ..wait };
        assert_eq!((ModelWait::of_row(&row, 4), ModelWait::of_row(&row, 5)), (Some(known), None));
        let unsent = |fence| ModelWait::unsent_of_row(&row, fence);
        assert_eq!(
            (unsent(4), unsent(5), unsent(6)),
            (None, Some(vec!["1.0".to_owned()]), None),
            "the next lease alone"
        );
        for text in ["", "the model is away", "{}", "{\"fence\":4}"] {
            assert_eq!(ModelWait::of_row(text, 4), None, "{text}");
        }
    }
}
