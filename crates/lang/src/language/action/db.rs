//! Actions of kind `db`.

use serde_json::Value;

use super::{ActionKind, ActionText, CallSpeed, TextKind};

/// The most rows of a result, when the action does not say.
pub const DEFAULT_ROWS: u32 = 1_000;
/// The most rows that an action may say.
pub const MAX_ROWS: u32 = 100_000;

super::action! {
    /// A query to a database.
    DbAction {
        /// The datasource: a name of the project's `datasources`.
        datasource: String,
        /// The SQL, with `$1`, `$2` or `:name` for its parameters. Values are always bound, never
        /// written into it; it is no template.
        #[schemars(length(min = 1))]
        query: String,
        /// The parameters in order: literals, templates or `@paths`. Without them `:name` takes the
        /// input's `name`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        params: Vec<Value>,
        /// Whether the database refuses writes.
        #[serde(default = "crate::language::react::defaults::yes")]
        read_only: bool,
        /// The most rows of a result. Default: 1,000. A step with a larger result fails; an agent reads the first rows, and
        /// that there are more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000))]
        max_rows: Option<u32>,
    }
}

impl ActionKind for DbAction {
    fn texts(&self) -> &'static [ActionText] {
        const { &[ActionText::secret("params", TextKind::SqlValue)] }
    }

    fn describe(&self) -> String {
        let does = if self.read_only { "Reads from" } else { "Changes" };
        format!("{does} the database {}.", self.datasource)
    }

    fn repeated(&self) -> Option<String> {
        Some("a write".to_owned())
    }

    fn is_idempotent(&self) -> bool {
        self.read_only
    }

    fn only_reads(&self, idempotent: bool) -> bool {
        idempotent && self.read_only
    }

    fn speed(&self) -> CallSpeed {
        CallSpeed::Local
    }

    fn datasource(&self) -> Option<&str> {
        Some(&self.datasource)
    }
}
