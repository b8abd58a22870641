//! Calls that start a run of its own: it is durable before the call returns, and driven beside the run that calls.

use std::sync::Arc;

use serde_json::json;

use super::begin::Begin;
use super::clock;
use super::fault::Fault;
use super::launcher::{LaunchOwner, LaunchedRun, SpawnedRun};
use super::stop::Stop;
use super::subrun::{PerformedCall, SubrunRequest, reason};
use super::subrun_budget::{self, SubrunBudget};
use super::world::{Engine, Resume, Watch, World};
use crate::drive::future::BoxFuture;
use loopctl_engine::event::{EventKind, ToolFault, ToolResult, ToolReturned};
use loopctl_engine::outcome::Status;
use loopctl_engine::state::State;
use loopctl_engine::step::step;
use loopctl_lang::program::Program;

/// Performs the call: creates the run, unless an earlier driver of the caller did, and has it driven.
pub(super) fn call<'a>(
    world: Arc<World>,
    request: SubrunRequest,
    stop: Option<Stop>,
    budget: Arc<SubrunBudget>,
) -> BoxFuture<'a, Result<PerformedCall, Fault>> {
    Box::pin(async move {
        let began = clock::instant();
        let engine = Engine { world: Arc::clone(&world) };
        let SubrunRequest { program, call, start, origin, .. } = request;
        let run_id = start.run_id.clone().unwrap_or_default();
        let returned = |result, run_id| {
            let returned = ToolReturned::without_tokens(call, result, clock::elapsed_ms(began), run_id);
            PerformedCall::Event(EventKind::ToolReturned(returned))
        };
        let launched = Arc::clone(&program);
        let is_known = world.journal.find(&run_id).await.map_err(Fault::Cut)?.is_some();
        // One that an earlier driver created waits already.
        let place = if is_known {
            None
        } else {
            match Arc::clone(&world.launcher).admit(owner(&world, &origin.caller.run_id).await?) {
                Ok(place) => Some(place),
                Err(why) => {
                    let why = format!("the {} `{}` was not started: {why}", program.word(), program.name);
                    return Ok(returned(ToolResult::failed(why), None));
                }
            }
        };
        if !is_known && !budget.enter() {
            return Ok(returned(ToolResult::failed(subrun_budget::full()), None));
        }
        match Box::pin(engine.begin_from(&program, start, Some(&origin))).await {
            Ok(Begin::New(started)) => started.leave(&engine, &program).await.map_err(cut)?,
            Ok(Begin::Same(_)) => {}
            Err(Fault::Store(fault) | Fault::Cut(fault)) => return Err(Fault::Cut(fault)),
            Err(fault) => {
                let class = format!("the {} `{}` could not be started", program.word(), program.name);
                let fault = ToolFault::new(class, reason(&run_id, &fault));
                return Ok(returned(ToolResult::Failed(fault), None));
            }
        }
        let run = world.journal.find(&run_id).await.map_err(Fault::Cut)?;
        let status = run.as_ref().map_or(Status::Running, |run| run.status);
        // Also one that waits for a human from its first step on: whoever drives it reports that.
        let is_open = matches!(status, Status::Running | Status::Paused);
        if run.is_some_and(|run| is_open && !run.driven) {
            let (driven, id) = (Arc::clone(&program), run_id.clone());
            let drive = Box::pin(async move {
                let watch = Watch { listener: None, stop };
                let finished = engine.resumed(&driven, &id, Resume::default(), watch.clone()).await?;
                engine.in_its_turn(&driven, finished, watch).await
            });
            let place = match place {
                Some(place) => Some(place),
                // It is there, whatever its owner may start now: if it takes no place, it only waits.
                None => Arc::clone(&world.launcher).admit(owner(&world, &origin.caller.run_id).await?).ok(),
            };
            if let Some(place) = place {
                place.launch(LaunchedRun { run_id: run_id.clone(), program, drive });
            }
        }
        let shown = match is_known && world.toolbox.is_offline() {
            true => status_at_start(&Engine { world }, &launched, &run_id).await.unwrap_or(status),
            false => status,
        };
        Ok(returned(ToolResult::Ok(json!({ "run_id": run_id, "status": shown })), Some(run_id)))
    })
}

/// The status that a run had when it was started: a play with a crash gives what it gives without one, however far the run is by then.
async fn status_at_start(engine: &Engine, program: &Program, run_id: &str) -> Option<Status> {
    let first = engine.events(run_id).await.ok()?.into_iter().next()?;
    let mut state = State::new(program);
    step(program, &mut state, first).ok()?;
    Some(state.status())
}

/// The owner of a run.
async fn owner(world: &World, run_id: &str) -> Result<LaunchOwner, Fault> {
    let run = world.journal.find(run_id).await.map_err(Fault::Cut)?;
    Ok(run.map_or_else(LaunchOwner::default, |run| LaunchOwner { org: run.org, token: run.token.map(String::from) }))
}

fn cut(fault: Fault) -> Fault {
    match fault {
        Fault::Store(fault) => Fault::Cut(fault),
        other => other,
    }
}

impl Engine {
    /// The runs of their own that runs of this engine started, and that it drives in tasks: those since the last time
    /// that this was asked.
    pub fn spawned(&self) -> Vec<SpawnedRun> {
        self.world.spawned.take()
    }

    /// Waits until the runs have ended, wait for a human or are stopped, which runs of this engine started without
    /// waiting for them (`"wait": false`). When the process ends before, they stay in the store and can be resumed.
    pub async fn started_runs_ended(&self) {
        loop {
            let runs = self.spawned();
            if runs.is_empty() {
                return;
            }
            for run in runs {
                drop(run.task.await);
            }
        }
    }
}
