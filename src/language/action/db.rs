//! Actions of kind `db`.

use serde_json::Value;

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
