//! The endings that a document can have, and scenarios that expect another one.

use std::collections::BTreeSet;

use super::ScenarioSubject;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ending::{Limit, Termination};
use crate::language::react::{OnLimit, OnModelOutage, OnStuck, ReactProperties, StuckAction};
use crate::policy::word::written;
use crate::program::flow::StepAction;
use crate::program::{Builtin, Program, ToolKind};

/// How the runs of a document can end or wait, in the order of their words.
pub fn endings(program: &Program) -> Vec<Termination> {
    let mut found = Vec::new();
    for ending in ALL {
        if why_not(program, ending).is_none() {
            found.push(ending);
        }
    }
    found
}

/// The endings that a loop can have in general and no run of this one has, each with the reason.
pub fn unreachable(program: &Program) -> Vec<(String, &'static str)> {
    let is_general = |ending: &Termination| {
        !matches!(
            ending,
            Termination::Cancelled
                | Termination::StepFailed
                | Termination::Rejected
                | Termination::FormExpired
                | Termination::ConditionNotMet
                | Termination::Waiting
                | Termination::WaitingEvent
                | Termination::SpendingLimit
        )
    };
    let general = ALL.into_iter().filter(is_general);
    general.filter_map(|ending| Some((written(&ending)?, why_not(program, ending)?))).collect()
}

/// All endings.
const ALL: [Termination; 20] = [
    Termination::Complete,
    Termination::ForcedAnswer,
    Termination::MaxIterations,
    Termination::Timeout,
    Termination::Context,
    Termination::Budget,
    Termination::SpendingLimit,
    Termination::Stuck,
    Termination::ModelError,
    Termination::InvalidReplies,
    Termination::Human,
    Termination::Approval,
    Termination::Uncertain,
    Termination::Waiting,
    Termination::WaitingEvent,
    Termination::Cancelled,
    Termination::StepFailed,
    Termination::Rejected,
    Termination::FormExpired,
    Termination::ConditionNotMet,
];

/// The number of hints that a model in circles is given before its run fails.
const HINTS: u32 = 2;
/// The number of replies in a row that can't be read, or of answers that do not match the schema, that end a run.
const UNREADABLE: u32 = 3;

/// Why no run of a document ends or waits in this way, in a sentence; none when one can.
pub fn why_not(program: &Program, ending: Termination) -> Option<&'static str> {
    let of_loop = |why: &dyn Fn(&ReactProperties) -> Option<&'static str>| match program {
        Program::Flow(_) => Some("a workflow does not end so: a step fails"),
        Program::Loop(program) => why(&program.properties),
    };
    let budget = || program.budget.as_ref().is_some_and(|budget| budget.tokens.is_some() || budget.cost_usd.is_some());
    match ending {
        Termination::Complete | Termination::Timeout => None,
        Termination::MaxIterations | Termination::Context => of_loop(&|_| None),
        Termination::InvalidReplies => of_loop(&|properties| {
            let never = properties.max_iterations < UNREADABLE;
            never.then_some("it takes three replies, and `max_iterations` allows fewer")
        }),
        Termination::ForcedAnswer => of_loop(&|properties| {
            let fails = properties.on_limit == OnLimit::Fail;
            fails.then_some("`on_limit` is not `answer`")
        }),
        Termination::Budget => (!budget()).then_some("it has no `budget`"),
        Termination::SpendingLimit => program.project.limits.is_empty().then_some("its project has no `limits`"),
        Termination::Stuck => match program {
            Program::Flow(_) => pauses(program, Termination::Stuck),
            Program::Loop(program) => {
                let OnStuck { iterations, action, .. } = program.properties.on_stuck;
                let rounds = if action == StuckAction::RetryWithHint { HINTS + 1 } else { 1 };
                let never = iterations.saturating_mul(rounds) > program.properties.max_iterations;
                never.then_some("`on_stuck` needs more iterations than `max_iterations` allows")
            }
        },
        Termination::ModelError => match program {
            Program::Flow(_) => pauses(program, Termination::ModelError),
            Program::Loop(_) => None,
        },
        Termination::Human | Termination::Approval | Termination::Waiting | Termination::WaitingEvent => {
            pauses(program, ending)
        }
        Termination::Uncertain => None,
        Termination::Cancelled => Some("nobody cancels the run of a scenario"),
        Termination::StepFailed => (!program.is_flow()).then_some("it is no workflow"),
        Termination::Rejected => {
            let stops = |step: &StepAction| match step {
                StepAction::Call(call) => call.tool.approval.may_ask(),
                StepAction::WaitForEvent(_) => true,
                _ => false,
            };
            (!has_stopping_approval(program) && !has_step(program, &stops))
                .then_some("none of its steps asks for an approval, or waits for an event, and stops after a no")
        }
        Termination::FormExpired => {
            let expires = |step: &StepAction| matches!(step, StepAction::Form(form) if form.ttl_ms.is_some());
            (!has_step(program, &expires)).then_some("it has no form that expires")
        }
        Termination::ConditionNotMet => {
            let has = program.as_flow().is_some_and(|flow| flow.condition.is_some());
            (!has).then_some("it has no `condition`")
        }
    }
}

/// Whether a step of the document itself asks for an approval, and a no stops the run or the item.
pub fn has_stopping_approval(program: &Program) -> bool {
    has_step(program, &|step| matches!(step, StepAction::Approval(approval) if approval.stops))
}

fn has_step(program: &Program, is_meant: &dyn Fn(&StepAction) -> bool) -> bool {
    let mut found = false;
    if let Some(flow) = program.as_flow() {
        flow.each(&mut |step| found |= is_meant(&step.action));
    }
    found
}

/// Why neither the document nor a loop that it calls waits in this way.
fn pauses(program: &Program, kind: Termination) -> Option<&'static str> {
    let mut known = BTreeSet::new();
    let mut open = vec![program];
    while let Some(program) = open.pop() {
        if !known.insert(std::ptr::from_ref(program)) {
            continue;
        }
        if asks(program, kind) {
            return None;
        }
        open.extend(program.called_loops().into_iter().map(|called| &**called));
    }
    Some(match kind {
        Termination::Human => "nothing in it asks a human",
        Termination::Approval => "none of its calls needs an approval",
        Termination::Waiting => "none of its steps waits for a time",
        Termination::WaitingEvent => "none of its steps waits for an event",
        Termination::Stuck => "none of its loops asks for help when it is stuck",
        _ => "none of its loops waits for a model",
    })
}

/// Whether a run of a program may wait for this.
pub(in crate::check) fn asks(program: &Program, kind: Termination) -> bool {
    let of_loop =
        |asks: &dyn Fn(&ReactProperties) -> bool| program.as_loop().is_some_and(|program| asks(&program.properties));
    match kind {
        Termination::Human => {
            let builtin = |kind: &ToolKind| matches!(kind, ToolKind::Builtin(Builtin::PauseForHuman));
            program.tools().iter().any(|tool| builtin(&tool.kind))
                || has_step(program, &|step| matches!(step, StepAction::Form(_)))
        }
        Termination::Approval => {
            program.all_tools().iter().any(|tool| tool.approval.always || !tool.approval.when.is_empty())
                || has_step(program, &|step| matches!(step, StepAction::Approval(_)))
        }
        Termination::Waiting => has_step(program, &|step| matches!(step, StepAction::Wait(_))),
        Termination::WaitingEvent => has_step(program, &|step| matches!(step, StepAction::WaitForEvent(_))),
        Termination::Stuck => of_loop(&|properties| properties.on_stuck.action != StuckAction::Fail),
        _ => of_loop(&|properties| properties.on_model_outage == OnModelOutage::Pause),
    }
}

/// Reports expected endings that no run has.
pub(super) fn check(subject: &ScenarioSubject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.program else { return };
    let report = |pointer: String, ending: Termination, found: &mut Vec<Diagnostic>| {
        let Some(why) = why_not(program, ending) else { return };
        let word = written(&ending).unwrap_or_default();
        let message = format!("no run of this document ends or waits by `{word}`: {why}");
        let near: Vec<String> =
            endings(program).into_iter().filter_map(|ending| Some(format!("`{}`", written(&ending)?))).collect();
        let fault = subject.error(codes::SCENARIO_NAME, pointer, message);
        found.push(fault.help(format!("it can end or wait by {}", near.join(", "))));
    };
    for placed in subject.expectations() {
        if let Some(ending) = placed.expect.termination {
            report(format!("{}/termination", placed.at), ending, found);
        }
        if let Some(limit) = placed.expect.limit.filter(|limit| *limit == Limit::Budget) {
            report(format!("{}/limit", placed.at), limit.into(), found);
        }
        for (index, pause) in placed.expect.pauses.iter().flatten().enumerate() {
            let Some(kind) = pause.kind else { continue };
            let pointer = format!("{}/pauses/{index}/kind", placed.at);
            match kind {
                Termination::Human
                | Termination::Approval
                | Termination::Stuck
                | Termination::Uncertain
                | Termination::Waiting
                | Termination::WaitingEvent
                | Termination::SpendingLimit
                | Termination::ModelError => report(pointer, kind, found),
                _ => {
                    let message = "this is an ending: no run waits so".to_owned();
                    let fault = subject.error(codes::SCENARIO_NAME, pointer, message);
                    found.push(
                        fault.help(
                            "a run waits by `human`, `approval`, `stuck`, `uncertain`, `waiting`, `waiting_event`, `spending_limit` or \
                             `model_error`",
                        ),
                    );
                }
            }
        }
    }
}

/// The loops and workflows that a document consists of: itself, and those that it calls, each once.
pub fn programs(program: &Program) -> Vec<&Program> {
    let (mut known, mut all, mut open) = (BTreeSet::new(), Vec::new(), vec![program]);
    while let Some(program) = open.pop() {
        if known.insert(std::ptr::from_ref(program)) {
            all.push(program);
            let called = program.called_loops().into_iter();
            open.extend(called.map(|called| &**called));
        }
    }
    all
}
