//! Constrained replies: which models are sent the schema of a turn, in which form, and which ones have refused it.

use std::sync::Arc;

use bytes::BytesMut;

use super::Ask;
use super::refused_fields::{RefusedFields, RequestField};
use super::reply::AttemptReply;
use loopctl_lang::language::project::Constrain;
use loopctl_lang::language::react::Dialect;
use loopctl_lang::program::LoopProgram;
use loopctl_lang::program::turn_schema::{TurnForms, TurnSchema};

/// The name of the schema in a request; of the tool that takes a turn, where a provider has tools only.
pub(super) const TURN: &str = "turn";

/// The form in which a model is sent the schema of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnMeans {
    /// One branch for each tool: servers that make a grammar of it.
    Branches,
    /// One object, in OpenAI's strict mode where it can be.
    Strict,
    /// One object.
    Flat,
    /// One object where it is of Anthropic's subset, else the input of a tool.
    Closed,
    /// The input of a tool that must be called.
    Tool,
}

/// Whether a model's replies are constrained.
pub(super) struct ReplyConstraint {
    mode: Constrain,
    form: TurnMeans,
    /// What the model refuses.
    refused: Arc<RefusedFields>,
}

/// The schema that a request is sent.
pub(super) struct ConstrainedTurn<'a> {
    /// The schema as JSON.
    pub(super) schema: &'a str,
    /// Whether it is of OpenAI's strict subset.
    pub(super) is_strict: bool,
    /// Whether a tool must be called whose input it is.
    pub(super) is_tool: bool,
}

impl ReplyConstraint {
    /// For a model without a server: its replies are never constrained.
    pub(super) fn none() -> Self {
        Self::new(Constrain::Off, TurnMeans::Flat, &Arc::default())
    }

    /// For a model at a server.
    pub(super) fn new(mode: Constrain, form: TurnMeans, refused: &Arc<RefusedFields>) -> Self {
        Self { mode, form, refused: Arc::clone(refused) }
    }

    /// The schema that a request for this reply is sent; none where a reply is no turn of the dialect `json`.
    pub(super) fn turn<'a>(&self, ask: &Ask<'a>) -> Option<ConstrainedTurn<'a>> {
        let is_sent = match self.mode {
            Constrain::Off => false,
            Constrain::On => true,
            Constrain::Auto => !self.refused.contains(RequestField::Schema),
        };
        let forms = forms(ask).filter(|_| is_sent)?;
        let turn = |schema, is_tool| ConstrainedTurn { schema, is_strict: false, is_tool };
        // A model that is made to call a tool can do less: it can't think.
        let tool = || (self.mode == Constrain::On).then(|| turn(&forms.flat, true));
        match (self.form, &forms.strict) {
            (TurnMeans::Branches, _) => Some(turn(&forms.branches, false)),
            (TurnMeans::Strict, Some(strict)) => {
                Some(ConstrainedTurn { is_strict: true, ..turn(&strict.schema, false) })
            }
            (TurnMeans::Strict, None) | (TurnMeans::Flat, _) => Some(turn(&forms.flat, false)),
            (TurnMeans::Closed, _) if forms.is_closed => Some(turn(&forms.flat, false)),
            (TurnMeans::Closed | TurnMeans::Tool, _) => tool(),
        }
    }

    /// The turn that a constrained reply holds, as the engine reads it.
    pub(super) fn read(&self, mut reply: AttemptReply, ask: &Ask<'_>) -> AttemptReply {
        if self.mode == Constrain::Off {
            return reply;
        }
        let Some(forms) = forms(ask) else { return reply };
        if let [call] = reply.calls.as_mut_slice()
            && call.name == TURN
        {
            reply.text = std::mem::take(&mut call.arguments);
            reply.calls.clear();
        }
        if let (TurnMeans::Strict, Some(strict)) = (self.form, &forms.strict)
            && let Some(text) = strict.without_nulls(&reply.text)
        {
            reply.text = text;
        }
        reply
    }

    /// Writes the schema as OpenAI's protocols have it, behind `begin`, where a reply is constrained.
    pub(super) fn write_openai(&self, buffer: &mut BytesMut, ask: &Ask<'_>, begin: &[u8], end: &[u8]) {
        let Some(turn) = self.turn(ask) else { return };
        buffer.extend_from_slice(begin);
        buffer.extend_from_slice(b"\"name\":\"turn\"");
        buffer.extend_from_slice(if turn.is_strict { b",\"strict\":true,\"schema\":" } else { b",\"schema\":" });
        buffer.extend_from_slice(turn.schema.as_bytes());
        buffer.extend_from_slice(end);
    }

    /// Whether a request may be sent again without the schema.
    pub(super) fn is_optional(&self) -> bool {
        self.mode == Constrain::Auto
    }

    /// Remembers whether the model refuses the schema.
    pub(super) fn set_refused(&self, refused: bool) {
        self.refused.set(RequestField::Schema, refused);
    }
}

/// The schema of the turns of a loop in the dialect `json`, or of the answer to a lone question.
fn forms<'a>(ask: &Ask<'a>) -> Option<&'a TurnForms> {
    if ask.answer.is_some() {
        return ask.answer;
    }
    let program = ask.program.filter(|program| program.properties.dialect == Dialect::Json)?;
    let turn = match ask.selected {
        Some(selected) => selected.turn_schema(program),
        None => program.turn_schema(),
    };
    turn.reported.call_once(|| report(program, turn));
    turn.forms.as_ref()
}

/// Logs what is left out of a schema that would be too large.
fn report(program: &LoopProgram, turn: &TurnSchema) {
    let tools = turn.open_inputs.join(", ");
    if turn.forms.is_none() {
        tracing::warn!("the loop {} has too many tools for a schema of its turns: it is left out", program.name);
    } else if !tools.is_empty() {
        tracing::warn!(
            "the schema that constrains the replies of the loop {} would be too large: it leaves out what these tools \
             take: {tools}",
            program.name
        );
    }
}
