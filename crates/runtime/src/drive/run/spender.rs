//! Which model spends what an event adds to the counters of a run.

use crate::drive::tool::model_of;
use loopctl_engine::address::StepAddress;
use loopctl_engine::event::{EventKind, StepLeft};
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

impl Spender {
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
