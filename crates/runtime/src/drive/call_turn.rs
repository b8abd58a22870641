//! The turn of a call of a tool: it is made once the limits of its action, and of its datasource or MCP server, let it in. Its own time
//! begins then.

use std::sync::Arc;
use std::time::Duration;

use super::clock;
use super::gate::{CallGate, GatePass, GateRequest, NotLetIn, why_open};
use super::pending_model_call::PendingModelCall;
use super::retry::{FOR_MS, Transient};
use super::tool::{CallOutcome, Spent, ToolCall};
use super::world::World;
use crate::journal::WaitedFor;
use loopctl_engine::event::{ToolFault, ToolResult};
use loopctl_lang::language::call_limits::CallLimits;
use loopctl_lang::program::{Tool, ToolKind};

/// A limit that a call is held to.
#[derive(Clone, Copy)]
struct CallPlace<'a> {
    of: WaitedFor,
    name: &'a str,
    limits: CallLimits,
}

impl<'a> CallPlace<'a> {
    fn request(self, call: &'a ToolCall<'a>) -> GateRequest<'a> {
        let for_ms = self.limits.circuit.and_then(|circuit| circuit.for_ms).unwrap_or(FOR_MS);
        GateRequest {
            of: self.of,
            name: self.name,
            id: "",
            is_sent: false,
            tokens: 0,
            patience: Duration::MAX,
            circuit_patience: Duration::from_millis(for_ms),
            wait: call.wait,
        }
    }
}

/// The calls that are let in, with where each was asked for.
type Passes<'a> = Vec<(GatePass, GateRequest<'a>)>;

impl World {
    /// Makes a call in its turn. While it waits, nothing of it is under way.
    pub(super) async fn call_in_turn(&self, tool: &Tool, call: &ToolCall<'_>) -> CallOutcome {
        let places = if self.limits_calls { self.places(tool) } else { Vec::new() };
        if places.is_empty() {
            return self.call_now(tool, call).await;
        }
        // Most calls are under no limit: their futures keep their size.
        Box::pin(self.call_through(&places, tool, call)).await
    }

    async fn call_through(&self, places: &[CallPlace<'_>], tool: &Tool, call: &ToolCall<'_>) -> CallOutcome {
        let mut passes = match self.let_in(places, call).await {
            Ok(passes) => passes,
            Err(fault) => return not_made(fault),
        };
        passes.iter_mut().for_each(|(pass, _)| pass.sent());
        let outcome = self.call_now(tool, call).await;
        let failed = outcome.transient.is_some_and(|failure| failure.may_pass(None));
        passes.iter_mut().for_each(|(pass, request)| pass.ended(*request, failed));
        outcome
    }

    async fn call_now(&self, tool: &Tool, call: &ToolCall<'_>) -> CallOutcome {
        let _under_way = (!tool.asks_a_model()).then(|| self.deaths.calls(call.run_id));
        self.toolbox.call(tool, call).await
    }

    /// What limits the calls of a tool. What is played is not limited: nothing is called.
    fn places<'a>(&'a self, tool: &'a Tool) -> Vec<CallPlace<'a>> {
        let project = self.toolbox.project();
        let of_action = project.action_limits.get(&tool.name).filter(|_| is_action(tool));
        let action = of_action.map(|limits| CallPlace { of: WaitedFor::Action, name: &tool.name, limits: *limits });
        let datasource = tool.datasource().and_then(|name| {
            let limits = project.datasources.get(name)?.call_limits();
            Some(CallPlace { of: WaitedFor::Datasource, name, limits })
        });
        let server = tool.served().and_then(|served| {
            let limits = project.mcp.get(&served.server)?.call_limits();
            Some(CallPlace { of: WaitedFor::Mcp, name: &served.server, limits })
        });
        let all = [action, datasource, server].into_iter().flatten().filter(|place| !place.limits.is_empty());
        let places: Vec<CallPlace<'a>> = all.collect();
        if places.is_empty() || self.toolbox.is_offline() || self.toolbox.is_scripted(tool) {
            return Vec::new();
        }
        places
    }

    /// Waits for the turn of a call at each of the places.
    ///
    /// # Errors
    /// Why it is not made.
    async fn let_in<'a>(&self, places: &'a [CallPlace<'a>], call: &'a ToolCall<'a>) -> Result<Passes<'a>, NotMade> {
        let turn = async {
            let mut passes = Vec::with_capacity(places.len());
            for place in places {
                let gate: Arc<CallGate> = self.gates.of(&self.root, place.of, place.name);
                let request = place.request(call);
                match gate.enter(request).await {
                    Ok(pass) => passes.push((pass, request)),
                    Err(not) => return Err(NotMade::of(not, *place)),
                }
            }
            PendingModelCall::is_to_be_sent(call.wait).await.map_err(|none| NotMade::store(none.message))?;
            Ok(passes)
        };
        let Some(left) = call.wait.and_then(PendingModelCall::left_for_turn) else { return turn.await };
        tokio::select! {
            biased;
            passes = turn => passes,
            () = clock::sleep(left) => Err(NotMade::late(call)),
        }
    }
}

/// Whether a tool is an action: one that is registered, or that the program around the engine gives.
fn is_action(tool: &Tool) -> bool {
    let is_called =
        matches!(tool.kind, ToolKind::Loop(_) | ToolKind::Launch(_) | ToolKind::Builtin(_) | ToolKind::Mail(_));
    !is_called && tool.served().is_none()
}

/// Why a call was not made.
struct NotMade {
    fault: ToolFault,
    /// Whether it may be made later.
    transient: Option<Transient>,
}

impl NotMade {
    fn of(not: NotLetIn, place: CallPlace<'_>) -> Self {
        let (of, name) = (place.of.in_words(), place.name);
        match not {
            NotLetIn::NoStore(none) => Self::store(none.message),
            // No server of a tool asks for a wait here.
            NotLetIn::Held(left) => Self::kept_out(format!("the {of} {name:?} is not called"), left),
            NotLetIn::Open { left, rule } => {
                let (left_ms, why) = (left.as_millis(), why_open(rule));
                let class = format!("the {of} {name:?} is not called: its circuit is open for {left_ms} ms{why}");
                Self::kept_out(class, left)
            }
        }
    }

    fn kept_out(class: String, left: Duration) -> Self {
        let after = Some(left).filter(|left| !left.is_zero());
        Self { fault: ToolFault::new(class, ""), transient: Some(Transient { status: None, after }) }
    }

    /// The run is left then.
    fn store(message: String) -> Self {
        Self { fault: ToolFault::new(message, ""), transient: None }
    }

    fn late(call: &ToolCall<'_>) -> Self {
        let line = call.wait.and_then(PendingModelCall::line_in_words);
        let waited = line.map(|line| format!(": {line}")).unwrap_or_default();
        Self { fault: ToolFault::new(format!("the time of the run is over{waited}"), ""), transient: None }
    }
}

fn not_made(not: NotMade) -> CallOutcome {
    let NotMade { fault, transient } = not;
    CallOutcome { result: ToolResult::Failed(fault), spent: Spent::default(), transient, is_lost: false, asks: None }
}
