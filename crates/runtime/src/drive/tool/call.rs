//! A call of a tool, and its outcome.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::retry::Transient;
use crate::drive::run_meter::TraceContext;
use crate::drive::secret::Vault;
use loopctl_engine::event::{Allowance, CallId, Tokens, ToolResult};
use loopctl_engine::notice::Listener;
use loopctl_engine::server_question::{AnsweredQuestion, ServerQuestion};
use loopctl_lang::program::bind::run_input::LongLists;
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::reference::Scope;

/// A call to be made.
pub struct ToolCall<'a> {
    /// Which one.
    pub id: CallId,
    /// The address of the step that it is, in a workflow; `id` means nothing then.
    pub at: Option<&'a str>,
    /// How often the request of the step was changed after it failed.
    pub request: u32,
    /// Its input, valid by the tool's schema.
    pub input: &'a Arc<Value>,
    /// The run's input.
    pub run_input: &'a Value,
    /// The long lists of the run's input, if it has any.
    pub lists: Option<&'a LongLists>,
    /// The run.
    pub run_id: &'a str,
    /// Its loop or workflow.
    pub loop_name: &'a str,
    /// How the run reads texts as JSON.
    pub json: JsonRule,
    /// The moment, RFC 3339.
    pub now: &'a str,
    /// The run's model, for `llm` actions that name none.
    pub model: &'a str,
    /// How long it may take.
    pub deadline: Duration,
    /// What the run may still spend: an `llm` action makes no further attempt when its failed ones used that.
    pub left: Allowance,
    /// Its place in the trace of its run.
    pub trace: Option<TraceContext>,
    /// What the server of the tool asked before it continues, and was answered; the oldest first.
    pub answered: &'a [AnsweredQuestion],
    /// Who hears how far the call is.
    pub listener: Option<&'a dyn Listener>,
    /// The wait for a model that an `llm` action asks.
    pub wait: Option<&'a PendingModelCall<'a>>,
}

impl<'a> ToolCall<'a> {
    /// The scope that the tool's templates are rendered with. It is not `Send`: each kind renders at once, and
    /// awaits without it.
    pub(super) fn scope(&self, vault: &'a Vault) -> Scope<'a> {
        Scope {
            arguments: self.input,
            lists: self.lists,
            now: self.now,
            run_id: self.run_id,
            secrets: Some(vault),
            ..Scope::of_input(self.run_input, self.json.into())
        }
    }

    /// The call's idempotency key: run, iteration, call; of a step, its run and its address. The same for every attempt at the call;
    /// a request that was changed has another one.
    pub fn key(&self) -> String {
        match self.at {
            Some(at) if self.request > 0 => format!("{}-{at}~{}", self.run_id, self.request),
            Some(at) => format!("{}-{at}", self.run_id),
            None => format!("{}-{}-{}", self.run_id, self.id.iteration, self.id.index),
        }
    }
}

/// The outcome of a call.
#[derive(Debug)]
pub struct CallOutcome {
    /// Its result, without any resolved secret.
    pub result: ToolResult,
    /// What it used of models.
    pub spent: Spent,
    /// Set when it failed, and the same call may succeed when it is made again.
    pub(in crate::drive) transient: Option<Transient>,
    /// Whether its answer was lost, and it may have happened; not set for a call that may be repeated without harm.
    pub(in crate::drive) is_lost: bool,
    /// What its server asks a human before it continues: then it has no result.
    pub(in crate::drive) asks: Option<Box<ServerQuestion>>,
}

/// What a call used of models.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// The tokens; nothing when no model was asked.
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the model's price is known.
    pub cost_usd: Option<f64>,
    /// Whether some of them are an estimate, because a provider did not say.
    pub estimated: bool,
    /// Whether some of them are the most that was used: nobody knows what became of a request that was sent.
    pub at_most: bool,
}

impl Spent {
    /// Both.
    pub fn plus(self, other: Self) -> Self {
        let cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        let tokens = [self.tokens, other.tokens].into_iter().flatten().reduce(Tokens::plus);
        let (estimated, at_most) = (self.estimated || other.estimated, self.at_most || other.at_most);
        Self { tokens, cost_usd, estimated, at_most }
    }
}
