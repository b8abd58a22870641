//! Whether what a workflow has done fits a document that is new to it. Its events are folded under both documents, side by
//! side: a step that has no `id` is known by its number, so another step may have its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::fault::Fault;
use super::fold;
use super::start;
use super::subrun::open_runs;
use super::world::Engine;
use crate::journal::StoreError;
use loopctl_engine::event::{Decided, Decision, Event, EventKind, FailedParts, ToolResult};
use loopctl_engine::flow::progress::StepChange;
use loopctl_engine::flow::{failed_parts, has_handled_failure};
use loopctl_engine::operation::{AskedFor, OpenStep, Progress};
use loopctl_engine::outcome::Status;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_lang::diagnostic::Source;
use loopctl_lang::language::step::OnRejected;
use loopctl_lang::program::builtin::FIND_TOOL;
use loopctl_lang::program::flow::{FlowProgram, StepAction};
use loopctl_lang::program::{Body, Program, ToolKind};

/// What follows from a document that is new to a run.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    /// The event of it, and what follows from it at once; nothing when the document is not new.
    pub events: Vec<EventKind>,
    /// The addresses of the steps that failed, and whose request is another one now.
    pub changed: BTreeSet<String>,
    /// How the run had ended by its former document, if it had, and this version can say so.
    pub ended: Option<FormerEnd>,
}

/// How a run had ended by its former document.
#[derive(Debug)]
pub(super) struct FormerEnd {
    /// Whether it was cancelled.
    pub is_cancelled: bool,
    /// Whether steps of `on_failure` have run.
    pub is_handled: bool,
    /// What failed of it; none of a run that completed without.
    pub failed: Option<FailedParts>,
}

impl FormerEnd {
    fn of(state: &State) -> Option<Self> {
        let Phase::Ended(ending) = &state.phase else { return None };
        let failed = Some(failed_parts(state)).filter(|failed| !(failed.completed && failed.loops.is_empty()));
        let is_cancelled = ending.status == Status::Cancelled;
        Some(Self { is_cancelled, is_handled: has_handled_failure(state), failed })
    }
}

/// A step that began.
struct BegunStep {
    kind: String,
    input: Arc<Value>,
}

/// The run under one of the documents.
struct FoldedSide<'p> {
    program: &'p Program,
    flow: &'p FlowProgram,
    state: State,
    /// The steps that have begun and not ended.
    begun: BTreeMap<String, BegunStep>,
}

/// A decision about steps, and those that waited when it came.
struct DecidedSteps {
    decided: Decided,
    before: Vec<OpenStep>,
    now: Vec<OpenStep>,
    /// How many decisions there were.
    known: usize,
}

impl Engine {
    /// What follows when a run continues with this document instead of its former one.
    ///
    /// # Errors
    /// When what the run has done does not fit it.
    pub(super) fn adoption(&self, program: &Program, run_id: &str, events: &[Event]) -> Result<Adoption, Fault> {
        let documents = EventKind::NewDocument(start::documents(program, &self.world.texts));
        let mut adoption = Adoption { events: vec![documents], ..Adoption::default() };
        let Some(before) = self.recorded(program, run_id, events) else { return Ok(adoption) };
        let refused = |why: String| {
            Fault::refused(format!("the run can't go on with the new document: {why}; put the old text back"))
        };
        let Some((mut one, mut other)) = FoldedSide::new(&before).zip(FoldedSide::new(program)) else {
            finds_the_same(&before, program, run_id, events).map_err(refused)?;
            return Ok(adoption);
        };
        for event in events {
            let decided = DecidedSteps::of(&one, &other, event);
            if let Some(at) = outcome_of(&event.kind) {
                compared(&one, &other, at, &event.kind).map_err(refused)?;
                note_changed(&one, &other, event, &mut adoption.changed);
            }
            let made = outcome_of(&event.kind).and_then(|at| Some((at, one.begun.get(at)?.kind.clone())));
            // A journal that is damaged is refused by the fold that follows.
            if one.take(event).is_none() {
                return Ok(adoption);
            }
            if other.take(event).is_none() {
                let still_waits = decided.as_ref().is_some_and(DecidedSteps::still_waits);
                return Err(refused(unfit(event, made, &other.state.phase, still_waits)));
            }
            if let Some(decided) = decided {
                decided.compared(&one, &other).map_err(refused)?;
            }
        }
        if !matches!(one.state.phase, Phase::Ended(_)) && left(&one, &other).map_err(refused)? {
            adoption.events.push(EventKind::Left);
        }
        adoption.ended = FormerEnd::of(&one.state);
        Ok(adoption)
    }

    /// Whether the runs below one that continues with new documents fit theirs: they continue with these by themselves.
    ///
    /// # Errors
    /// When one of them does not.
    pub(super) async fn fits_below(&self, program: &Program, state: &State) -> Result<(), Fault> {
        let owned = |(called, run_id): (&Arc<Program>, String)| (Arc::clone(called), run_id);
        let mut open: Vec<(Arc<Program>, String)> = open_runs(program, state).into_iter().map(owned).collect();
        while let Some((called, run_id)) = open.pop() {
            let events = match self.events(&run_id).await {
                Err(Fault::Store(StoreError::NoSuchRun(_))) => continue,
                events => events?,
            };
            if fold::same_document(&called, &events).is_ok() {
                continue;
            }
            self.adoption(&called, &run_id, &events)?;
            let state = fold::adoptable(fold::fold(&called, &run_id, events), false, true)?;
            open.extend(open_runs(&called, &state).into_iter().map(owned));
        }
        Ok(())
    }

    /// The program that a run has followed so far, if this version can compile it.
    pub(super) fn recorded(&self, program: &Program, run_id: &str, events: &[Event]) -> Option<Arc<Program>> {
        let project = serde_json::to_string(&*program.project).ok();
        let project = project.map(|text| Source::new("loopctl.json", text));
        let of = |project| {
            let mut texts = fold::texts(run_id, events, project).ok()?;
            texts.add_embedded(self.world.toolbox.signatures());
            fold::recorded(&texts).ok()
        };
        of(project).or_else(|| of(None))
    }
}

/// Refuses a document by which a loop would have found other tools than it did.
fn finds_the_same(before: &Program, now: &Program, run_id: &str, events: &[Event]) -> Result<(), String> {
    if before.as_loop().is_none_or(|program| program.selection().is_none()) {
        return Ok(());
    }
    let state = |program| fold::fold(program, run_id, events.to_vec());
    // What does not fit is refused by the fold that follows.
    let (Ok(State::Loop(one)), Ok(State::Loop(other))) = (state(before), state(now)) else { return Ok(()) };
    one.differing_search(&other).map_or(Ok(()), |iteration| {
        Err(format!("what happened does not fit it (`{FIND_TOOL}` in iteration {iteration} finds other tools by it)"))
    })
}

impl<'p> FoldedSide<'p> {
    fn new(program: &'p Program) -> Option<Self> {
        let flow = program.as_flow()?;
        Some(Self { program, flow, state: State::new(program), begun: BTreeMap::new() })
    }

    /// Applies an event; none when it does not fit.
    fn take(&mut self, event: &Event) -> Option<()> {
        step(self.program, &mut self.state, event.clone()).ok()?;
        for change in self.state.step_changes() {
            match change {
                StepChange::Started { at, kind, input, .. } => {
                    let begun = BegunStep { kind: kind.clone(), input: Arc::clone(input) };
                    self.begun.insert(at.clone(), begun);
                }
                StepChange::Ended(record) => drop(self.begun.remove(&record.at)),
                StepChange::Retried { .. } | StepChange::ItemEnded { .. } | StepChange::ItemsEnded { .. } => {}
            }
        }
        Some(())
    }

    fn open(&self) -> Vec<&OpenStep> {
        self.state.open_steps()
    }

    fn waiting(&self) -> Vec<OpenStep> {
        self.open().into_iter().filter(|open| open.progress.waits()).cloned().collect()
    }

    /// Whether a step at an address, a loop around it, or a case that it is in, is known by its number.
    fn is_numbered(&self, at: &str) -> bool {
        let is_number = |part: &str| part.trim_end_matches('f').bytes().all(|byte| byte.is_ascii_digit());
        let mut is_numbered = false;
        self.flow.walk(at, &mut |step| is_numbered |= step.name.split('.').any(is_number));
        is_numbered
    }
}

/// The address of the step that an event is the outcome of.
fn outcome_of(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::StepReturned(returned) => Some(&returned.at),
        EventKind::StepPaused(paused) => Some(&paused.at),
        EventKind::StepAsks(asked) => Some(&asked.at),
        EventKind::StepRetried(retried) => Some(&retried.at),
        _ => None,
    }
}

const BY_NUMBER: &str = "a step without an `id` is known by its number, so one that is inserted, removed or moved before it takes \
                         its place, and a call would be made twice. Leave the steps that the run has made as and where they \
                         are, and give steps an `id`";

/// Whether the step that has an outcome is the same one by both documents.
fn compared(one: &FoldedSide<'_>, other: &FoldedSide<'_>, at: &str, kind: &EventKind) -> Result<(), String> {
    let Some(before) = one.begun.get(at) else { return Ok(()) };
    let is_numbered = one.is_numbered(at) || other.is_numbered(at);
    let Some(now) = other.begun.get(at) else {
        if !is_numbered {
            return Ok(());
        }
        let kind = &before.kind;
        return Err(match other.flow.step_at(at) {
            Some(_) => format!(
                "the step `{at}` (`{kind}`) was made, and by the new document it does not begin: its `filter`, a `when` or a list \
                 around it, or the `condition` of the workflow leaves it out. Leave these as they are for what the run has made"
            ),
            None => format!(
                "the step `{at}` (`{kind}`) was made, and the new document has no step there. Leave the steps that the run has made \
                 where they are: one that failed may be corrected"
            ),
        });
    };
    if before.kind != now.kind {
        let why = if is_numbered { format!(": {BY_NUMBER}") } else { String::new() };
        return Err(format!("the step `{at}` was `{}`, and is `{}`{why}", before.kind, now.kind));
    }
    // A step that failed may be corrected.
    let has_failed =
        matches!(kind, EventKind::StepReturned(returned) if matches!(returned.result, ToolResult::Failed(_)));
    let is_attempt = matches!(kind, EventKind::StepRetried(_));
    if is_numbered && !has_failed && !is_attempt && before.input != now.input {
        return Err(format!("the step `{at}` (`{}`) was made with another input: {BY_NUMBER}", before.kind));
    }
    Ok(())
}

/// Why an event does not fit a document, and what may be changed instead. `made`: the step that it is the outcome of, and its type.
/// `still_waits`: whether what a human decided about waits by the document, too.
fn unfit(event: &Event, made: Option<(&str, String)>, phase: &Phase, still_waits: bool) -> String {
    const MAY_CHANGE: &str = "Each step that has an outcome must begin by it too, with the same `id` and type, and after the same steps; \
                              a step that failed may be corrected, and others may follow it";
    let why = match phase {
        Phase::Ended(_) => "by it the run has ended before that",
        _ => "by it that step is not under way then",
    };
    match (made, &event.kind) {
        (Some((at, kind)), _) => format!("the step `{at}` (`{kind}`) was made, and {why}. {MAY_CHANGE}"),
        (None, EventKind::Human(_)) if still_waits => {
            "a human answered what a step asked, and by it the step does not take that answer: leave what it asks for as it is"
                .to_owned()
        }
        (None, EventKind::Human(_)) => format!("a human decided about a step that does not wait by it. {MAY_CHANGE}"),
        (None, _) => format!("by it, the run would not have come to where it is. {MAY_CHANGE}"),
    }
}

/// Notes whether a step that failed has another request now.
fn note_changed(one: &FoldedSide<'_>, other: &FoldedSide<'_>, event: &Event, changed: &mut BTreeSet<String>) {
    let EventKind::StepReturned(returned) = &event.kind else { return };
    let at = returned.at.as_str();
    let is_other = || {
        let inputs = one.begun.get(at).zip(other.begun.get(at));
        let request = |side: &FoldedSide<'_>| side.flow.step_at(at).and_then(|step| request_of(&step.action));
        inputs.is_some_and(|(before, now)| before.input != now.input) || request(one) != request(other)
    };
    if matches!(returned.result, ToolResult::Failed(_)) && is_other() {
        changed.insert(at.to_owned());
    } else {
        changed.remove(at);
    }
}

/// What a step asks of a server that knows calls by their keys. Its headers say who asks, and not what.
fn request_of(action: &StepAction) -> Option<Value> {
    let StepAction::Call(call) = action else { return None };
    let ToolKind::Http(http) = &call.tool.kind else { return None };
    let written = &http.action;
    Some(serde_json::json!([
        written.url,
        written.http_method,
        written.content_type,
        written.query,
        written.body,
        matches!(http.body, Some(Body::Text(_))),
    ]))
}

impl DecidedSteps {
    /// What waits when a decision comes.
    fn of(one: &FoldedSide<'_>, other: &FoldedSide<'_>, event: &Event) -> Option<Self> {
        let EventKind::Human(decided) = &event.kind else { return None };
        let known = one.state.decisions.len();
        Some(Self { decided: decided.clone(), before: one.waiting(), now: other.waiting(), known })
    }

    /// Whether all steps that waited when it came wait by the other document, too.
    fn still_waits(&self) -> bool {
        let is_there = |step: &OpenStep| self.now.iter().any(|other| other.address == step.address);
        !self.before.is_empty() && self.before.iter().all(is_there)
    }

    /// Whether the decision was about the same steps, and is what it was.
    fn compared(&self, one: &FoldedSide<'_>, other: &FoldedSide<'_>) -> Result<(), String> {
        for record in one.state.decisions.iter().skip(self.known) {
            let Some(at) = &record.step else { continue };
            let of = |steps: &'_ [OpenStep]| steps.iter().position(|step| step.address.as_str() == *at);
            let before = of(&self.before).and_then(|place| self.before.get(place));
            let now = of(&self.now).and_then(|place| self.now.get(place));
            let Some((before, now)) = before.zip(now) else { continue };
            self.same(before, now, one.is_numbered(at) || other.is_numbered(at))?;
        }
        Ok(())
    }

    fn same(&self, before: &OpenStep, now: &OpenStep, is_numbered: bool) -> Result<(), String> {
        let at = &before.address;
        if before.name != now.name {
            return Err(format!("the step `{at}` was `{}`, and is `{}`", before.name, now.name));
        }
        let is_no = matches!(self.decided.decision, Decision::Deny(_));
        let Progress::Asks(AskedFor::Consent { comment, on_rejected }) = &before.progress else {
            return match is_numbered && !is_no && before.input != now.input {
                true => Err(format!("what was decided about the step `{at}` was about another input: {BY_NUMBER}")),
                false => Ok(()),
            };
        };
        let Progress::Asks(AskedFor::Consent { comment: asks_now, on_rejected: does_now }) = &now.progress else {
            return Ok(());
        };
        if is_no && on_rejected != does_now {
            return Err(format!(
                "the approval `{at}` was denied when a no {}, and by it a no {}",
                after_no(*on_rejected),
                after_no(*does_now)
            ));
        }
        let is_same = comment == asks_now && before.input == now.input;
        // A no that stopped the run is asked again when the step is retried.
        if !(is_same || is_no && *on_rejected == OnRejected::Stop) {
            return Err(format!(
                "a human answered the approval `{at}`, and by it another question is asked there: an answer counts only for \
                 what was shown"
            ));
        }
        Ok(())
    }
}

fn after_no(on_rejected: OnRejected) -> &'static str {
    match on_rejected {
        OnRejected::Stop => "stops the steps",
        OnRejected::GoOn => "lets the next step begin",
    }
}

/// Whether steps are under way by the new document that were never requested: they are still to be. What may have happened
/// must be the same call by both.
fn left(one: &FoldedSide<'_>, other: &FoldedSide<'_>) -> Result<bool, String> {
    let may_have_happened = |open: &OpenStep| {
        let asks = matches!(open.progress, Progress::Asks(AskedFor::Subrun(_) | AskedFor::Server(_)));
        asks || matches!(open.progress, Progress::Requested | Progress::Uncertain(_))
    };
    let (before, now) = (one.open(), other.open());
    let at = |steps: &[&OpenStep], at: &str| steps.iter().position(|step| step.address.as_str() == at);
    for open in &before {
        let is_numbered = one.is_numbered(&open.address) || other.is_numbered(&open.address);
        let why = if is_numbered { format!(": {BY_NUMBER}") } else { String::new() };
        let same = at(&now, &open.address).and_then(|place| now.get(place));
        match same {
            Some(same) if same.name != open.name => {
                return Err(format!("the step `{}` was `{}`, and is `{}`{why}", open.address, open.name, same.name));
            }
            _ if !may_have_happened(open) => {}
            Some(same)
                if same.input == open.input
                    || matches!(open.progress, Progress::Asks(AskedFor::Subrun(_))) && !is_numbered => {}
            Some(_) => {
                return Err(format!(
                    "the call of the step `{}` may have been made, and by it has another input: decide about that call with \
                     the recorded document first{why}",
                    open.address
                ));
            }
            None => {
                return Err(format!(
                    "the call of the step `{}` may have been made, and by it the step is not under way{why}",
                    open.address
                ));
            }
        }
    }
    let requested = |step: &&&OpenStep| {
        at(&before, &step.address).and_then(|place| before.get(place)).is_some_and(|open| may_have_happened(open))
    };
    let asked: Vec<&&OpenStep> = now.iter().filter(|open| open.progress == Progress::Requested).collect();
    let new: Vec<&&&OpenStep> = asked.iter().filter(|open| !requested(open)).collect();
    let Some(first) = new.first() else { return Ok(false) };
    if before.iter().any(|open| open.progress == Progress::Requested) {
        return Err(format!(
            "by it the step `{}` begins, which was not requested, while others may have been made: continue with the recorded \
             document first",
            first.address
        ));
    }
    Ok(true)
}
