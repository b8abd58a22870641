//! `loopctl schema`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;
use crate::language::schema::{KINDS, published};
use crate::syntax::document::DocumentKind;
use crate::trace::events;

/// Print the JSON Schema of a kind of document, for editors and code generators
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl schema loop > loop.schema.json")]
pub struct SchemaCommand {
    /// The kind of document
    #[arg(value_name = "KIND", default_value = DocumentKind::Loop.name(), value_parser = kinds())]
    pub kind: String,
}

/// The name of the schema of events, which are not documents.
const EVENTS: &str = "events";

/// Everything with a schema, in clap's form.
fn kinds() -> PossibleValuesParser {
    let kinds = DocumentKind::ALL.into_iter().filter(|kind| KINDS.contains(&kind.name()));
    let names = kinds.map(|kind| PossibleValue::new(kind.name()).help(kind.called()));
    PossibleValuesParser::new(names.chain([PossibleValue::new(EVENTS).help("a line of --output ndjson")]))
}

impl SchemaCommand {
    /// Prints the schema.
    ///
    /// # Errors
    /// When stdout can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let name = &self.kind;
        let schema =
            schema(name).ok_or_else(|| CommandError::usage(format!("this build has no schema of a {name}")))?;
        let text = serde_json::to_string_pretty(&schema)
            .map_err(|error| CommandError::Output(std::io::Error::other(error)))?;
        surface.print(&(text + "\n"))?;
        Ok(Exit::Completed)
    }
}

/// The JSON Schema of a kind of document, or of the events.
fn schema(kind: &str) -> Option<Value> {
    if kind == "events" { Some(events::schema()) } else { published(kind) }
}
