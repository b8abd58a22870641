//! Probes: the shortest scripts for what a loop can come to, played without a scenario.

mod sample;
mod scripts;

use std::path::Path;
use std::sync::Arc;

use super::coverage::{CoverageMap, CoveragePoint, reached};
use super::faults::FaultSet;
use super::play::{Play, Played, RUN_ID, failures_of, moment_ms};
use crate::drive::stage::StagePlan;
use crate::engine::event::{Event, EventKind};
use crate::language::scenario::{Expectations, FaultPlan, START_OF_TIME, Scenario};
use crate::language::script::Script;
use crate::policy::word::written;
use crate::program::Program;
use crate::trace::units::plural;

/// A probe that was played.
#[derive(Debug)]
pub struct Probe {
    /// What it is about, in a few words.
    pub what: String,
    /// The script, with what came of it as its expectations; none when no script can be made.
    pub scenario: Option<Scenario>,
    /// Whether the run came to what the probe is about.
    pub is_reached: bool,
    /// What happened, or why no script can be made, in a sentence.
    pub outcome: String,
}

/// What a probe shall come to.
pub(super) enum ProbeAim {
    /// A point of the document.
    Point(CoveragePoint),
    /// The model is asked again.
    ModelRetry,
    /// A call is made again.
    CallRetry,
    /// A call is refused, because there were too many.
    CallLimit,
}

/// A script for an aim.
pub(super) struct ProbeScript {
    pub what: String,
    pub aim: ProbeAim,
    /// None when none can be made, and why.
    pub scenario: Result<Scenario, String>,
}

/// Plays the probes of a loop in its folder.
pub fn probes(program: &Arc<Program>, root: &Path) -> Vec<Probe> {
    let Some(of_loop) = program.as_loop() else { return Vec::new() };
    let map = CoverageMap::of(program);
    let scripts = scripts::all(of_loop, &map);
    scripts.into_iter().map(|script| played(program, root, &map, script)).collect()
}

/// Plays the steps of a workflow in its folder: tools answer with their names, and called loops with the simplest answer. Of
/// steps that read more, it shows where they stop.
pub fn flow_probe(program: &Arc<Program>, root: &Path) -> Probe {
    let what = "the steps are played".to_owned();
    let mut scenario = match scripts::of_flow(program, &what) {
        Ok(scenario) => scenario,
        Err(outcome) => return Probe { what, scenario: None, is_reached: false, outcome },
    };
    let played = play(program, root, &scenario);
    let Some(story) = &played.story else {
        let outcome = failures_of(&played.faults, "").into_iter().map(|fault| fault.message);
        return Probe { what, scenario: None, is_reached: false, outcome: outcome.collect::<Vec<_>>().join("; ") };
    };
    let result = &story.result;
    // Loops that were not come to have replies left.
    scenario.loops.retain(|name, _| story.replies.get(&Some(name.clone())).is_some_and(|used| *used > 0));
    scenario.expect =
        Expectations { status: Some(result.status), termination: result.termination, ..Expectations::default() };
    let why = result.error.as_ref().map(|error| error.message.clone());
    let outcome = why.unwrap_or_else(|| result.status.word().to_owned());
    Probe { what, scenario: Some(scenario), is_reached: true, outcome }
}

fn played(program: &Arc<Program>, root: &Path, map: &CoverageMap, script: ProbeScript) -> Probe {
    let ProbeScript { what, aim, scenario } = script;
    let mut scenario = match scenario {
        Ok(scenario) => scenario,
        Err(why) => return Probe { what, scenario: None, is_reached: false, outcome: why },
    };
    let played = play(program, root, &scenario);
    let Some(story) = &played.story else {
        let outcome = failures_of(&played.faults, "").into_iter().map(|fault| fault.message);
        let outcome = outcome.collect::<Vec<_>>().join("; ");
        return Probe { what, scenario: None, is_reached: false, outcome };
    };
    let events = || played.journals.values().flatten();
    let is_reached = match &aim {
        ProbeAim::Point(point) => reached(map, &played.journals).contains(point),
        ProbeAim::ModelRetry => events().any(|event: &Event| match &event.kind {
            EventKind::ModelReplied(reply) => reply.retries > 0,
            _ => false,
        }),
        ProbeAim::CallRetry => events().any(|event| matches!(event.kind, EventKind::ToolRetried(_))),
        ProbeAim::CallLimit => story.calls.iter().any(|call| !call.is_made && !call.success && !call.is_builtin()),
    };
    let result = &story.result;
    let ending = result.termination;
    scenario.decisions.truncate(story.pauses.len());
    // Where something fails, the replies that are left over are its doing.
    if let (Some(replies), None) = (&mut scenario.replies, &scenario.faults) {
        let used = story.replies.get(&None).copied().unwrap_or_default();
        replies.truncate(usize::try_from(used).unwrap_or(usize::MAX));
    }
    scenario.expect = Expectations { status: Some(result.status), termination: ending, ..Expectations::default() };
    let mut outcome = match ending.and_then(|ending| written(&ending)) {
        Some(termination) => format!("{} ({termination})", result.status.word()),
        None => result.status.word().to_owned(),
    };
    let iterations = usize::try_from(result.iterations).unwrap_or(usize::MAX);
    outcome.push_str(&format!(" in {}", plural(iterations, "iteration")));
    if story.seconds >= 1.0 {
        outcome.push_str(&format!(", {:.0} s", story.seconds));
    }
    if let Some(error) = &result.error {
        outcome.push_str(&format!(": {}", error.message));
    }
    Probe { what, scenario: Some(scenario), is_reached, outcome }
}

fn play(program: &Arc<Program>, root: &Path, scenario: &Scenario) -> Played {
    let faults = match &scenario.faults {
        Some(FaultPlan::Listed(faults)) => FaultSet::listed(faults),
        _ => FaultSet::default(),
    };
    let replies = faults.applied(scenario.replies.as_deref().unwrap_or_default());
    let script = Script { replies, loops: scenario.loops.clone(), tools: scenario.tools.clone(), ..Script::default() };
    let (calls, failures) = (faults.calls, faults.requests);
    Play {
        program,
        run_id: RUN_ID,
        root,
        plan: StagePlan { script, models: scenario.models.clone(), faults: calls, failures, ..StagePlan::default() },
        input: scenario.input.clone().map(serde_json::Value::Object),
        start_ms: moment_ms(START_OF_TIME),
        decisions: &scenario.decisions,
        is_left_waiting: false,
        host: None,
        crash: None,
        #[cfg(test)]
        stores_late: false,
    }
    .perform()
}
