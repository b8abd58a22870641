//! What is known of the files that a project names and that are no documents: scripts, texts of SQL, databases. Who
//! gathers texts looks at these files; nothing in this room opens one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::policy::database_address::DatabaseServer;

/// What is known of these files.
#[derive(Debug, Clone, Default)]
pub struct OutsideFiles {
    /// Those that are not there, as the project file writes them.
    pub absent: BTreeSet<String>,
    /// Those that lie outside of the project's folder, or that a link leads out of it to.
    pub beyond: BTreeSet<String>,
    /// The project's `documents` that were looked at, by name: the schema of the value, or why it has none.
    pub documents: BTreeMap<String, Result<Value, String>>,
    /// The project's folder, as it is named and as links resolve; empty when it is not known.
    pub roots: Vec<PathBuf>,
    /// The databases of the project's datasources, where queries may be prepared against them.
    pub databases: Option<Arc<dyn DatabaseProbe>>,
    /// The moment, in milliseconds since 1970, where what is over is reported.
    pub now_ms: Option<i64>,
}

impl OutsideFiles {
    /// The same without the databases: for a document of somebody who may not look into them.
    #[must_use]
    pub fn without_databases(&self) -> Self {
        Self { databases: None, ..self.clone() }
    }
}

/// Prepares queries against databases. No query is run, and no database is changed.
pub trait DatabaseProbe: Debug + Send + Sync {
    /// What can be said of a datasource's database.
    fn state(&self, datasource: &str) -> DatabaseState;

    /// What the database of a datasource has against a query; nothing when it has nothing, or is not known.
    fn prepare(&self, datasource: &str, query: &str) -> Option<QueryFault>;

    /// The named parameters of a query with the types that its server gives them; none when they are not known.
    fn parameters(&self, _datasource: &str, _query: &str) -> Vec<QueryParameter> {
        Vec::new()
    }

    /// The tables and views of a datasource's database; nothing when they are not known.
    fn tables(&self, datasource: &str) -> Option<Vec<String>>;

    /// The columns of a table, or a view, of it; nothing when they are not known.
    fn columns(&self, datasource: &str, table: &str) -> Option<Vec<String>>;

    /// The columns of the rows that a query gives, none for one that gives no rows; nothing when that is not known.
    fn result_columns(&self, _datasource: &str, _query: &str) -> Option<Vec<String>> {
        None
    }

    /// Of which kind the values of these columns are, as far as that is known: an entry for each, or none at all.
    fn column_kinds(&self, _datasource: &str, _query: &str) -> Vec<Option<ValueKind>> {
        Vec::new()
    }

    /// The columns of a table that each new row must name: they take no NULL, and have no default. Nothing when they
    /// are not known.
    fn required_columns(&self, _datasource: &str, _table: &str) -> Option<Vec<String>> {
        None
    }

    /// Whether the database of a datasource is a file that is there, and one that its script would make now takes a query.
    fn is_taken_after_init(&self, _datasource: &str, _query: &str) -> bool {
        false
    }

    /// The kind of server that a datasource is at; none for a file.
    fn server(&self, _datasource: &str) -> Option<DatabaseServer> {
        None
    }
}

/// The kind of the values that are seen where no schema says it: in a column, or in the entries of a document. A value may
/// be of another kind all the same, so that nothing is refused for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Texts.
    Text,
    /// Numbers.
    Number,
    /// True or false.
    Boolean,
}

impl ValueKind {
    const ALL: [Self; 3] = [Self::Text, Self::Number, Self::Boolean];

    fn word(self) -> &'static str {
        match self {
            Self::Text => "seen: texts",
            Self::Number => "seen: numbers",
            Self::Boolean => "seen: true or false",
        }
    }

    /// A schema that any value matches, and that says the kind in its comment.
    pub(crate) fn schema(self) -> Value {
        json!({ "$comment": self.word() })
    }

    /// The kind that the comment of a schema says.
    pub(crate) fn of_schema(schema: &Value) -> Option<Self> {
        let comment = schema.get("$comment")?.as_str()?;
        Self::ALL.into_iter().find(|kind| kind.word() == comment)
    }
}

/// What can be said of a database before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// Nothing: it is of another kind, can't be read without changing it, or takes too much work.
    Unknown,
    /// There is no file, and no script would make it.
    Absent,
    /// The file is no database that can be read.
    Unreadable(String),
    /// The script that makes it has an error.
    BadInit(InitFault),
    /// Queries can be prepared. `is_made`: by its script, in memory; else the file exists already.
    Ready {
        /// Whether its script made it.
        is_made: bool,
    },
}

/// An error in the script that makes a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitFault {
    /// What the database says.
    pub message: String,
    /// The line of the script, from 1.
    pub line: usize,
}

/// A named parameter of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParameter {
    /// Its name.
    pub name: String,
    /// Its type, as the server names it.
    pub type_name: String,
    /// The types of JSON that it takes beside null, as JSON Schema names them; none when it takes all.
    pub takes: &'static [&'static str],
}

/// What a database has against a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFault {
    /// What is wrong.
    pub kind: QueryFaultKind,
    /// What the database says.
    pub message: String,
    /// Where in the query, in bytes, when the database says so.
    pub offset: Option<usize>,
}

/// What is wrong with a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryFaultKind {
    /// It can't be read, or asks for what the database can't do.
    Invalid,
    /// It names a table or a column that the database does not have.
    UnknownName {
        /// The name.
        name: String,
        /// Whether it is that of a table.
        is_table: bool,
        /// The names that there are.
        known: Vec<String>,
    },
}
