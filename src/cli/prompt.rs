//! `loopctl prompt`.

use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::ListOutput;
use super::run_document::WhatArgs;
use super::run_drive;
use super::store::StorePlace;
use super::surface::Surface;
use crate::drive::start::Start;
use crate::engine::json::from_bytes;
use crate::journal::Journal;
use crate::journal::memory::MemoryJournal;
use crate::project::load::Loaded;
use crate::trace::text::text_of_pretty;
use crate::trace::{Look, Tone, escape};

/// Print the first request that a run would send to the model, without sending it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl prompt triage.json --input ticket_id=TK-1
  loopctl prompt triage.json --output json | wc -c")]
pub struct PromptCommand {
    #[command(flatten)]
    pub what: WhatArgs,
    /// The store of the earlier run: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: as for `run`
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The output format: human prints the messages, json prints the exact bytes of the request. Default:
    /// human on a terminal, else json
    #[arg(long, value_enum)]
    pub output: Option<ListOutput>,
}

impl PromptCommand {
    /// Shows the request.
    ///
    /// # Errors
    /// When the run could not be started.
    pub async fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let Loaded { program, root, sources, .. } = self.what.load(&self.what.document()?)?;
        let (input, script) = self.what.read(&program)?;
        let previous = self.what.previous_run.clone();
        let place = StorePlace::of_run(self.store.as_deref(), &program.project, &root);
        // Otherwise no other run is read, and no store is created.
        let has_previous = previous.is_some() || program.previous_run_id().is_some();
        let journal: Arc<dyn Journal> =
            if has_previous && place.exists() { place.open()? } else { Arc::new(MemoryJournal::new()) };
        let engine = run_drive::engine(Arc::clone(&program.project), &root, journal, script, None, None);
        let start = Start {
            input: input.into_whole(),
            model: self.what.model.clone(),
            previous_run_id: previous,
            ..Start::default()
        };
        let bytes = engine.prompt(&program, &start).await.map_err(|fault| CommandError::Fault {
            fault,
            sources,
            resume: None,
        })?;
        let on_terminal = if surface.out_terminal { ListOutput::Human } else { ListOutput::Json };
        match self.output.unwrap_or(on_terminal) {
            ListOutput::Json => surface.print_bytes(&[bytes.as_ref(), b"\n"].concat())?,
            ListOutput::Human => surface.print(&readable(&bytes, &surface.out))?,
        }
        Ok(Exit::Completed)
    }
}

/// The request for people: its settings, then each message under its role.
fn readable(bytes: &[u8], look: &Look) -> String {
    let Ok(Value::Object(mut request)) = from_bytes(bytes) else {
        return format!("{}\n", escape::terminal(&String::from_utf8_lossy(bytes)));
    };
    let system = request.shift_remove("system").map(|text| ("system".to_owned(), text));
    let messages = match request.shift_remove("messages") {
        Some(Value::Array(messages)) => messages,
        _ => Vec::new(),
    };
    let messages = messages.into_iter().map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("message").to_owned();
        (role, message.get("content").cloned().unwrap_or(message))
    });
    let mut shown = String::new();
    for (name, value) in &request {
        let line = format!("{}: {}", escape::line(name), escape::terminal(&text_of_pretty(value)));
        shown.push_str(&look.paint(Tone::Dim, &line));
        shown.push('\n');
    }
    for (role, content) in system.into_iter().chain(messages) {
        let title = look.paint(Tone::Accent, &format!("── {} ", escape::line(&role)));
        shown.push_str(&format!("\n{title}\n{}\n", escape::terminal(&text_of_pretty(&content))));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stand_under_their_roles() {
        let request = br#"{"model":"m","messages":[{"role":"system","content":"Be\nbrief."},{"role":"user","content":"Go\u001b[2J"}]}"#;
        let text = readable(request, &Look::plain(80));
        assert_eq!(text, "model: m\n\n── system \nBe\nbrief.\n\n── user \nGo\\u{1B}[2J\n");
    }

    #[test]
    fn what_is_no_request_is_shown_as_it_is() {
        assert_eq!(readable(b"not json", &Look::plain(80)), "not json\n");
    }
}
