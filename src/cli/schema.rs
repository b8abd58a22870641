//! `loopctl schema`.

use clap::Args;

use super::exit::Exit;
use super::failure::Failure;
use super::host;
use super::surface::Surface;

/// Print the JSON Schema of a kind of document, for editors and generators
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl schema loop > loop.schema.json")]
pub struct Schema {
    /// The kind of document
    #[arg(value_enum, default_value_t)]
    pub kind: Kind,
}

/// The kinds of documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A loop
    #[default]
    Loop,
    /// A workflow
    Workflow,
    /// An agent request
    AgentRequest,
    /// Registered actions
    Actions,
    /// The project file loopctl.json
    Project,
    /// A script
    Script,
    /// A line of --output ndjson
    Events,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Workflow => "workflow",
            Self::AgentRequest => "agent-request",
            Self::Actions => "actions",
            Self::Project => "project",
            Self::Script => "script",
            Self::Events => "events",
        }
    }
}

impl Schema {
    /// Prints the schema.
    ///
    /// # Errors
    /// When stdout can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, Failure> {
        let name = self.kind.name();
        let schema =
            host::schema(name).ok_or_else(|| Failure::usage(format!("this build has no schema of a {name}")))?;
        let text =
            serde_json::to_string_pretty(&schema).map_err(|error| Failure::Output(std::io::Error::other(error)))?;
        surface.print(&(text + "\n"))?;
        Ok(Exit::Completed)
    }
}
