//! What the runs of a loop or a workflow can come to.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::conditions;
use super::map::{CoverageMap, CoveragePart, PlacedStep};
use crate::check::scenario::endings::{endings, has_stopping_approval};
use crate::compile::flow;
use crate::language::ending::{StuckPattern, Termination};
use crate::language::foreach::FailureStrategy;
use crate::language::react::{OnLimit, StuckAction};
use crate::policy::word::written;
use crate::program::flow::{FlowStep, StepAction};
use crate::program::{Builtin, LoopProgram, Program, Tool, ToolKind};

/// All stuck patterns, each with how many iterations it needs as a multiple of `on_stuck.iterations`.
const PATTERNS: [(StuckPattern, u32); 5] = [
    (StuckPattern::SameAction, 1),
    (StuckPattern::SameFailure, 2),
    (StuckPattern::Alternation, 2),
    (StuckPattern::Cycle, 3),
    (StuckPattern::SameThought, 1),
];

impl CoverageMap {
    /// What its runs can come to.
    pub fn points(&self) -> BTreeSet<CoveragePoint> {
        self.parts.iter().flat_map(of).collect()
    }

    /// What the runs of the document itself can come to, without those of called loops.
    pub fn points_of_document(&self) -> BTreeSet<CoveragePoint> {
        self.parts.iter().take(1).flat_map(of).collect()
    }
}

impl CoveragePart {
    pub fn point(
        &self,
        pointer: String,
        kind: CoverageKind,
        name: impl Into<String>,
        outcome: CoverageOutcome,
    ) -> CoveragePoint {
        CoveragePoint { file: self.file.clone(), pointer, kind, name: name.into(), outcome }
    }

    /// A run of it ends or waits.
    pub fn ending(&self, ending: Termination) -> CoveragePoint {
        let property = match ending {
            Termination::MaxIterations => "max_iterations",
            Termination::ForcedAnswer => "on_limit",
            Termination::Timeout => "timeout_ms",
            Termination::Budget => "budget",
            Termination::Stuck => "on_stuck",
            Termination::ModelError => "retry",
            Termination::InvalidReplies => "answer_schema",
            Termination::Human => "builtins",
            Termination::Approval => "tools",
            _ => "objective",
        };
        let pointer = match *self.program {
            Program::Flow(_) => self.root.clone(),
            Program::Loop(_) => self.property(property),
        };
        self.point(pointer, CoverageKind::Ending, written(&ending).unwrap_or_default(), CoverageOutcome::Happens)
    }

    /// The agent repeats itself.
    pub fn stuck(&self, pattern: StuckPattern) -> CoveragePoint {
        self.point(
            self.property("on_stuck"),
            CoverageKind::StuckPattern,
            written(&pattern).unwrap_or_default(),
            CoverageOutcome::Happens,
        )
    }

    /// A model in circles is given a hint.
    pub fn hint(&self) -> CoveragePoint {
        self.point(self.property("on_stuck/hint"), CoverageKind::Hint, "hint", CoverageOutcome::Happens)
    }

    /// Another model answers.
    pub fn fallback(&self, model: &str) -> CoveragePoint {
        let models = self.program.fallback_models();
        let at = models.iter().position(|known| known.name() == model).unwrap_or_default();
        self.point(
            format!("{}/{at}", self.property("fallback_models")),
            CoverageKind::Fallback,
            model,
            CoverageOutcome::Happens,
        )
    }

    /// A call of a tool.
    pub fn call(&self, tool: &str, outcome: CoverageOutcome) -> CoveragePoint {
        self.point(self.tool(tool), CoverageKind::Tool, tool, outcome)
    }

    pub fn of_step(&self, step: &PlacedStep, outcome: CoverageOutcome) -> CoveragePoint {
        self.point(step.pointer.clone(), CoverageKind::Step, step.shown.as_str(), outcome)
    }
}

/// What the runs of a part can come to. Left out is what can't be judged: endings by a full window, by a spending
/// limit, by a crash or by a cancellation, and the failure of a call that only starts a run.
fn of(part: &CoveragePart) -> Vec<CoveragePoint> {
    let program = &part.program;
    let mut found = Vec::new();
    let is_judged = |ending: &Termination| match ending {
        // A step that waits is a point of its own.
        Termination::Waiting | Termination::WaitingEvent => false,
        // A no to a call that needs an approval is a point of the call, and one to an event is rare.
        Termination::Rejected => has_stopping_approval(program),
        Termination::Context | Termination::Uncertain | Termination::Cancelled | Termination::SpendingLimit => false,
        // Without a time of its own, a workflow has days.
        Termination::Timeout if program.is_flow() => program.timeout_ms != flow::TIMEOUT_MS,
        // A last call answers at a limit; only if it fails, the run ends by the limit itself.
        Termination::MaxIterations | Termination::Timeout | Termination::Budget => {
            program.as_loop().is_none_or(|program| program.properties.on_limit == OnLimit::Fail)
        }
        _ => true,
    };
    found.extend(endings(program).into_iter().filter(is_judged).map(|ending| part.ending(ending)));
    match &**program {
        Program::Flow(_) => {
            for placed in &part.steps {
                if let Some((_, step)) = part.step(&placed.address) {
                    of_step(part, placed, step, &mut found);
                }
            }
        }
        Program::Loop(program) => of_loop(part, program, &mut found),
    }
    conditions::of(part, &mut found);
    found
}

fn of_loop(part: &CoveragePart, program: &LoopProgram, found: &mut Vec<CoveragePoint>) {
    let properties = &program.properties;
    let fits = |times: u32| properties.on_stuck.iterations.saturating_mul(times) <= properties.max_iterations;
    found.extend(PATTERNS.into_iter().filter(|(_, times)| fits(*times)).map(|(pattern, _)| part.stuck(pattern)));
    if properties.on_stuck.action == StuckAction::RetryWithHint && fits(1) {
        found.push(part.hint());
    }
    // What one with a condition is asked for depends on what was spent.
    let fallbacks = properties.fallback_models.iter().filter(|model| model.when().is_none());
    found.extend(fallbacks.map(|model| part.fallback(model.name())));
    let is_listed = |tool: &&Tool| match tool.kind {
        // They have endings of their own.
        ToolKind::Builtin(Builtin::Complete | Builtin::PauseForHuman) => false,
        ToolKind::Builtin(Builtin::FindTool) => true,
        ToolKind::Builtin(_) => properties.builtins.is_some(),
        _ => true,
    };
    for tool in program.offered().filter(is_listed) {
        found.extend(outcomes(tool).into_iter().map(|outcome| part.call(&tool.name, outcome)));
    }
}

/// What can become of a call of a tool.
fn outcomes(tool: &Tool) -> Vec<CoverageOutcome> {
    let mut outcomes = vec![CoverageOutcome::Succeeds];
    if !matches!(tool.kind, ToolKind::Builtin(_) | ToolKind::Launch(_)) {
        outcomes.push(CoverageOutcome::Fails);
    }
    if tool.approval.may_ask() {
        outcomes.extend([CoverageOutcome::IsApproved, CoverageOutcome::IsDenied]);
    }
    outcomes
}

fn of_step(part: &CoveragePart, placed: &PlacedStep, step: &FlowStep, found: &mut Vec<CoveragePoint>) {
    let mut outcomes = match &step.action {
        StepAction::Call(call) => {
            let of_call = outcomes(&call.tool).into_iter().filter(|outcome| *outcome != CoverageOutcome::Succeeds);
            std::iter::once(CoverageOutcome::Runs).chain(of_call).collect()
        }
        StepAction::React(_) => vec![CoverageOutcome::Runs, CoverageOutcome::Fails],
        StepAction::Foreach(foreach) => {
            let fails = foreach.failure_strategy == FailureStrategy::StopOnError || foreach.max_failures.is_some();
            std::iter::once(CoverageOutcome::Runs).chain(fails.then_some(CoverageOutcome::Fails)).collect()
        }
        StepAction::Wait(_) | StepAction::WaitForEvent(_) => vec![CoverageOutcome::Runs],
        StepAction::Approval(_) => vec![CoverageOutcome::IsApproved, CoverageOutcome::IsDenied],
        // Its cases are reached with their steps.
        StepAction::Choose(choose) if choose.otherwise.is_some() => Vec::new(),
        StepAction::Choose(_) => vec![CoverageOutcome::IsSkipped],
        StepAction::Form(form) => std::iter::once(CoverageOutcome::IsFilledIn)
            .chain(form.ttl_ms.map(|_| CoverageOutcome::Expires))
            .collect::<Vec<_>>(),
    };
    if step.filter.is_some() {
        outcomes.push(CoverageOutcome::IsSkipped);
    }
    found.extend(outcomes.into_iter().map(|outcome| part.of_step(placed, outcome)));
}

/// Something that a run of a document can come to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoveragePoint {
    /// The file of the document.
    pub file: Arc<str>,
    /// The JSON pointer of what it is about.
    pub pointer: String,
    pub kind: CoverageKind,
    /// The name of the tool, the ending, the pattern, the model, the step, or the condition.
    pub name: String,
    /// What happens to it.
    pub outcome: CoverageOutcome,
}

/// What happens to what a point is about, in the order in which it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageOutcome {
    /// It happens: an ending, a pattern, a hint, a fallback.
    Happens,
    /// A step ran.
    Runs,
    /// A call gave a result.
    Succeeds,
    /// A call or a step failed.
    Fails,
    /// A human allowed it.
    IsApproved,
    /// A human did not allow it.
    IsDenied,
    /// A human filled in a form.
    IsFilledIn,
    /// Nobody filled in a form in time.
    Expires,
    /// The filter of a step does not hold.
    IsSkipped,
    /// A condition holds.
    IsTrue,
    /// A condition does not hold.
    IsFalse,
}

impl CoverageOutcome {
    /// What is said of it in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Happens => "happens",
            Self::Runs => "runs",
            Self::Succeeds => "succeeds",
            Self::Fails => "fails",
            Self::IsApproved => "is approved",
            Self::IsDenied => "is denied",
            Self::IsFilledIn => "is filled in",
            Self::Expires => "expires",
            Self::IsSkipped => "is skipped",
            Self::IsTrue => "is true",
            Self::IsFalse => "is false",
        }
    }
}

/// What a point of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageKind {
    /// A run ends or waits in this way.
    Ending,
    /// A call of a tool.
    Tool,
    /// The agent repeats itself in this way.
    StuckPattern,
    /// A model in circles is given a hint.
    Hint,
    /// Another model answers.
    Fallback,
    /// A step of a workflow.
    Step,
    /// A condition of a text (`{{#if}}`).
    Condition,
}

impl CoverageKind {
    /// What is said of points of this kind that no scenario comes to; `what` lists them.
    pub(super) fn sentence(self, name: &str, what: &str) -> String {
        match self {
            Self::Ending => format!("no scenario ends or waits by {what}"),
            Self::Tool => format!("no call of the tool `{name}` {what}"),
            Self::StuckPattern => format!("no scenario is stuck by {what}"),
            Self::Hint => "no scenario gives the hint".to_owned(),
            Self::Fallback => format!("the fallback `{name}` answers in no scenario"),
            Self::Step => format!("in no scenario the step `{name}` {what}"),
            Self::Condition => format!("in no scenario the condition `{name}` {what}"),
        }
    }

    /// Whether points of this kind at the same place are listed by their names, and not by what happens to them.
    pub(super) fn is_by_name(self) -> bool {
        matches!(self, Self::Ending | Self::StuckPattern)
    }
}

impl CoveragePoint {
    /// What it is about, in a few words.
    pub fn in_words(&self) -> String {
        let Self { name, outcome, .. } = self;
        match self.kind {
            CoverageKind::Ending => format!("ends or waits by `{name}`"),
            CoverageKind::Tool => format!("a call of `{name}` {}", outcome.words()),
            CoverageKind::StuckPattern => format!("is stuck by `{name}`"),
            CoverageKind::Hint => "the hint is given".to_owned(),
            CoverageKind::Fallback => format!("the fallback `{name}` answers"),
            CoverageKind::Step => format!("the step `{name}` {}", outcome.words()),
            CoverageKind::Condition => format!("the condition `{name}` {}", outcome.words()),
        }
    }
}
