//! Actions of kind `db`.

use serde_json::Value;

use super::{ActionKind, ActionText, CallSpeed, TextKind};

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
