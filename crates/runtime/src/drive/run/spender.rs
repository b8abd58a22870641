//! Which model spends what an event adds to the counters of a run.

use crate::drive::run_meter::OwnSpend;
use crate::drive::tool::model_of;
use loopctl_engine::address::StepAddress;
use loopctl_engine::budget::attempt_cost_usd;
use loopctl_engine::event::{EventKind, StepLeft, Tokens};
use loopctl_engine::state::{RunHeader, State};
use loopctl_lang::program::Program;

/// Who spends what an event adds to the counters of a run.
pub(in crate::drive) enum Spender {
    /// The model of the run.
    OwnModel,
    /// Another model: a fallback, or that of an action.
    Model(Box<str>),
    /// A run that it called, which is counted by itself.
    RunBelow,
}

/// What a failed attempt at a model used: its reply was lost, or could not be read.
pub(in crate::drive) struct LostSpend {
    /// The fallback; none for the model of the run.
    model: Option<Box<str>>,
    tokens: Tokens,
    cost_usd: f64,
}

/// How many failed attempts a run had.
pub(in crate::drive) fn attempts(state: &State) -> usize {
    state.as_loop().map_or(0, |state| state.attempts.len())
}

/// What the failed attempts behind the first `known` ones used.
pub(in crate::drive) fn lost(state: &State, known: usize) -> Vec<LostSpend> {
    let Some(state) = state.as_loop() else { return Vec::new() };
    let new = state.attempts.iter().skip(known).map(|(_, attempt)| attempt);
    let spent = new.filter_map(|attempt| {
        let (model, cost_usd) = (attempt.model.as_deref().map(Box::from), attempt_cost_usd(state, attempt));
        attempt.usage.map(|tokens| LostSpend { model, tokens, cost_usd })
    });
    spent.collect()
}

impl Spender {
    /// Hands over what an event spent, by the models that spent it: first what was lost.
    pub fn each(&self, run: &RunHeader, spent: &(Tokens, f64), lost: &[LostSpend], take: &mut dyn FnMut(OwnSpend<'_>)) {
        let (mut tokens, mut cost_usd) = *spent;
        for lost in lost {
            (tokens, cost_usd) = (tokens.minus(lost.tokens), cost_usd - lost.cost_usd);
            let model = lost.model.as_deref().unwrap_or(&run.model.name);
            take(OwnSpend { model, tokens: lost.tokens, cost_usd: lost.cost_usd });
        }
        let has_rest = tokens != Tokens::default() || lost.is_empty() && cost_usd > 0.0;
        if let Some(model) = self.model(run).filter(|_| has_rest) {
            take(OwnSpend { model, tokens, cost_usd: cost_usd.max(0.0) });
        }
    }

    /// That of an event, before it is applied.
    pub fn of(what: &EventKind, program: &Program, state: &State) -> Self {
        let of_tool = |name: &str| {
            let tools = program.as_loop().map(|program| program.tool(name));
            let tool = tools.unwrap_or_else(|| program.all_tools().into_iter().find(|tool| tool.name == name));
            tool.and_then(model_of).map_or(Self::OwnModel, |model| Self::Model(model.into()))
        };
        let of_step = |at: &str| {
            let open = state.open_step(&StepAddress::new(at));
            open.map_or(Self::OwnModel, |open| of_tool(&open.name))
        };
        match what {
            EventKind::ModelReplied(reply) | EventKind::Summarized(reply) => {
                reply.model.clone().map_or(Self::OwnModel, Self::Model)
            }
            EventKind::ToolReturned(returned) if returned.run_id.is_some() => Self::RunBelow,
            EventKind::StepReturned(returned) if returned.run_id.is_some() => Self::RunBelow,
            EventKind::ToolPaused(_) | EventKind::StepPaused(_) => Self::RunBelow,
            EventKind::ToolReturned(returned) if returned.tokens.is_some() => {
                let name = state.as_loop().and_then(|state| state.call(returned.call)).map(|call| call.name.as_str());
                name.map_or(Self::OwnModel, of_tool)
            }
            EventKind::StepReturned(returned) if returned.tokens.is_some() => of_tool(&returned.kind),
            EventKind::StepLeft(StepLeft { at, tokens: Some(_), .. }) => of_step(at),
            EventKind::StepWaits(waits) if waits.tokens.is_some() => of_step(&waits.at),
            _ => Self::OwnModel,
        }
    }

    /// The name of the model that spent; none for a run below.
    pub fn model<'a>(&'a self, run: &'a RunHeader) -> Option<&'a str> {
        match self {
            Self::OwnModel => Some(&run.model.name),
            Self::Model(name) => Some(name),
            Self::RunBelow => None,
        }
    }
}
