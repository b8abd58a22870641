//! Constrained replies: which models are sent the schema of a turn, and which servers have refused one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use reqwest::Url;

use super::Ask;
use crate::language::project::{Constrain, Provider};
use crate::language::react::Dialect;

/// The name of the schema in a request; of the tool that takes a turn, where a provider has tools only.
pub(super) const TURN: &str = "turn";
/// The most servers that are remembered.
const MAX_SERVERS: usize = 1_000;

/// The servers that were asked in this process, by address, and whether each has refused a schema.
static SERVERS: Mutex<BTreeMap<String, Arc<AtomicBool>>> = Mutex::new(BTreeMap::new());

/// Whether it was said that a schema is too large.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Whether a model's replies are constrained.
pub(super) struct ReplyConstraint {
    mode: Constrain,
    /// Whether the schema has branches at its top. Local servers take them; OpenAI's and Anthropic's do not.
    has_branches: bool,
    /// Whether the model's server has refused a schema.
    refused: Arc<AtomicBool>,
}

/// The schema that a request is sent.
pub(super) struct ConstrainedTurn<'a> {
    /// The schema as JSON.
    pub(super) schema: &'a str,
    /// Whether it is of OpenAI's strict subset.
    pub(super) is_strict: bool,
}

impl ReplyConstraint {
    /// For a model without a server: its replies are never constrained.
    pub(super) fn none() -> Self {
        Self { mode: Constrain::Off, has_branches: false, refused: Arc::default() }
    }

    /// For a model at a server. `auto` is for OpenAI's protocol alone: where a tool must be forced, a model can do less.
    pub(super) fn of(mode: Constrain, provider: Provider, url: &Url) -> Self {
        let is_openai = provider == Provider::Openai;
        let has_means = is_openai || provider == Provider::Anthropic && mode == Constrain::On;
        let mode = if has_means { mode } else { Constrain::Off };
        Self { mode, has_branches: is_openai && url.scheme() == "http", refused: refused_by(url) }
    }

    /// The schema that a request for this reply is sent; none where a reply is no turn of the dialect `json`.
    pub(super) fn turn<'a>(&self, ask: &Ask<'a>) -> Option<ConstrainedTurn<'a>> {
        let is_sent = match self.mode {
            Constrain::Off => false,
            Constrain::On => true,
            Constrain::Auto => !self.refused.load(Ordering::Relaxed),
        };
        let program = ask.program.filter(|program| is_sent && program.properties.dialect == Dialect::Json)?;
        let Some(turn) = program.turn_schema() else {
            if !WARNED.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "the tools of the loop {} make a schema too large to constrain replies: it is left out",
                    program.name
                );
            }
            return None;
        };
        Some(match self.has_branches {
            true => ConstrainedTurn { schema: &turn.branches, is_strict: false },
            false => ConstrainedTurn { schema: &turn.flat, is_strict: turn.is_strict },
        })
    }

    /// Writes the schema as OpenAI's protocol has it, where a reply is constrained.
    pub(super) fn write_response_format(&self, buffer: &mut BytesMut, ask: &Ask<'_>) {
        let Some(turn) = self.turn(ask) else { return };
        buffer.extend_from_slice(b",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"turn\"");
        buffer.extend_from_slice(if turn.is_strict { b",\"strict\":true,\"schema\":" } else { b",\"schema\":" });
        buffer.extend_from_slice(turn.schema.as_bytes());
        buffer.extend_from_slice(b"}}");
    }

    /// Whether a request may be sent again without the schema.
    pub(super) fn is_optional(&self) -> bool {
        self.mode == Constrain::Auto
    }

    /// Remembers whether the server refused the schema.
    pub(super) fn set_refused(&self, refused: bool) {
        self.refused.store(refused, Ordering::Relaxed);
    }
}

fn refused_by(url: &Url) -> Arc<AtomicBool> {
    // The map is whole at any moment: a panic elsewhere leaves nothing half done in it.
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    if servers.len() >= MAX_SERVERS {
        servers.clear();
    }
    Arc::clone(servers.entry(url.to_string()).or_default())
}
