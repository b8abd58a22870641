//! `loopctl event`.

use clap::Args;
use serde::Deserialize as _;
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::diagnostic::Source;
use crate::drive::clock;
use crate::drive::outside_events::{EventDelivery, MAX_DATA_BYTES, MAX_ID_BYTES, deliver};
use crate::journal::{EventPut, OutsideEvent};
use crate::language::Project;
use crate::language::event_keeping::EventKeeping;
use crate::policy::json_text;
use crate::program::awaited_event::is_name;
use crate::program::file_value::key_twice;
use crate::syntax::document::{DocumentKind, read_as};

/// Send an event that runs wait for
///
/// Each run of the store that waits for it, and belongs to no organisation, gets it once, and is due: a server continues it, or `loopctl resume`. An event that
/// nobody waits for is kept for `events.keep_seconds` of the project.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl event payment.received --id pay-4711 --data '{\"order\":7}'")]
pub struct EventCommand {
    /// The name of the event
    pub event: String,
    /// Its id: an event that is sent again under its id is the same one
    #[arg(long)]
    pub id: String,
    /// What it brings, as JSON
    #[arg(long, default_value = "null")]
    pub data: String,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl EventCommand {
    /// Sends the event.
    ///
    /// # Errors
    /// When it can't be sent, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Self { event, id, data, store } = self;
        if !is_name(&event) {
            let message = format!("`{event}` is no name of an event");
            return Err(CommandError::usage_help(
                message,
                "ASCII letters, digits, `.`, `_`, `-`, `:` and `/`, at most 100",
            ));
        }
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
            return Err(CommandError::usage(format!("--id has 1 to {MAX_ID_BYTES} bytes, and no control characters")));
        }
        let value: Value = json_text::read(&data).map_err(|error| {
            CommandError::usage_help(format!("--data is no JSON: {error}"), "a text is written '\"text\"'")
        })?;
        if let Some(key) = key_twice(&data, &value) {
            return Err(CommandError::usage(format!("--data has `{key}` twice: keep one of the two")));
        }
        let data = value.to_string();
        if data.len() > MAX_DATA_BYTES {
            return Err(CommandError::usage(format!(
                "--data has {} bytes, and at most {MAX_DATA_BYTES} are taken",
                data.len()
            )));
        }
        let (journal, place) = store.open()?;
        let at_ms = clock::wall_ms();
        let keeping = keeping(place.project.as_ref());
        let sent =
            OutsideEvent { org: None, id: id.clone(), event, data, at_ms, keep_until_ms: keeping.until_ms(at_ms) };
        let EventDelivery { put, runs, .. } = deliver(&*journal, sent).await.map_err(CommandError::from)?;
        let said = match put {
            EventPut::Conflict => return Err(CommandError::usage(format!("another event has the id {id}"))),
            EventPut::Full => return Err(CommandError::usage("the store keeps as many events as it can".to_owned())),
            EventPut::New | EventPut::Same { .. } if runs > 0 => {
                format!(
                    "{runs} {} it; a server continues them, or `loopctl resume RUN`",
                    if runs == 1 { "run gets" } else { "runs get" }
                )
            }
            EventPut::New => format!("no run waits for it; it is kept for {} s", keeping.keep_seconds),
            EventPut::Same { .. } => "it was sent before, and no further run waits for it".to_owned(),
        };
        surface.say(&format!("{said}\n"));
        Ok(Exit::Completed)
    }
}

/// How long the project keeps events.
fn keeping(project: Option<&Source>) -> EventKeeping {
    let read = project.map(|source| read_as(source, Some(DocumentKind::Project)).value);
    read.and_then(|value| Project::deserialize(&value).ok()).map(|project| project.events).unwrap_or_default()
}
