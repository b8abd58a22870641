//! What a loop needs and does not find.

use loopctl_lang::syntax::token;

/// What a loop needs, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Missing {
    /// A tool of the program around the engine.
    Tool {
        /// Its name.
        name: String,
    },
    /// A model: it is unknown, its key can't be read, or it can't do what is asked of it.
    Model {
        /// Its name in the project or in the engine.
        name: String,
    },
    /// A secret.
    Secret {
        /// Its key in `orgconfig`.
        name: String,
    },
    /// The address or the password of a database.
    Datasource {
        /// Its name in the project.
        name: String,
    },
    /// A file that the project names as a document.
    Document {
        /// Its name in the project.
        name: String,
    },
}

impl Missing {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { name }
            | Self::Model { name }
            | Self::Secret { name }
            | Self::Datasource { name }
            | Self::Document { name } => name,
        }
    }

    /// Where the project file says what it is, as a JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let map = match self {
            Self::Tool { .. } => return "/embedded".to_owned(),
            Self::Model { .. } => "models",
            Self::Secret { .. } => "orgconfig",
            Self::Datasource { .. } => "datasources",
            Self::Document { .. } => "documents",
        };
        format!("/{map}/{}", token(self.name()))
    }
}

/// Something that a loop needs, and that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{why}")]
#[non_exhaustive]
pub struct MissingRequirement {
    /// What it is.
    pub what: Missing,
    /// Where the project file says where it is, as a JSON pointer.
    pub pointer: String,
    /// What is missing, in a sentence that never repeats a value.
    pub why: String,
}

impl MissingRequirement {
    pub(super) fn new(what: Missing, why: String) -> Self {
        Self { pointer: what.pointer(), what, why }
    }
}

/// All that is missing, in one sentence.
pub fn sentence(missing: &[MissingRequirement]) -> String {
    let all: Vec<&str> = missing.iter().map(|missing| missing.why.as_str()).collect();
    match all.as_slice() {
        [only] => (*only).to_owned(),
        all => {
            let numbered: Vec<String> = all.iter().zip(1..).map(|(why, at)| format!("({at}) {why}")).collect();
            format!("{} things are missing: {}", all.len(), numbered.join("; "))
        }
    }
}
