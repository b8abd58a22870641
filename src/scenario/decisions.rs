//! The decisions of a scenario: which one answers a pause, and what it decides about.

use serde_json::Value;

use crate::drive::engine::Resume;
use crate::drive::stage::StagedCall;
use crate::engine::decision::written_decision::{DecisionSyntax, WrittenDecision};
use crate::engine::event::{CallId, Decided, Decision, DecisionRights, ToolResult};
use crate::engine::flow::waiting_steps;
use crate::engine::outcome::Termination;
use crate::engine::question::EventMatch;
use crate::engine::state::{Phase, State};
use crate::engine::wait_deadline::{DueTimes, due_at_ms, due_times};
use crate::engine::waiting_calls::waiting_calls;
use crate::language::scenario::ScenarioDecision;
use crate::policy::json_text;
use crate::policy::word::written;

/// What a decision comes to.
pub enum Answered {
    /// The run is resumed so.
    Resume(Box<Resume>),
    /// Nobody decides until this moment, in milliseconds since 1970; then the run is resumed.
    Expires(i64),
}

/// What waits in a pause.
pub struct WaitingQuestion {
    /// The address of its step, in a workflow.
    pub at: Option<String>,
    /// The run of its step, when it is one below.
    run_id: Option<String>,
    /// The call, if it is one.
    pub call: Option<CallId>,
    /// The names that a decision may be for.
    names: Vec<String>,
    /// Which decisions it takes.
    pub kind: Termination,
    /// The tool, or the type of the step.
    pub action: String,
    input: Value,
    /// The events that it takes.
    awaits: Option<Box<EventMatch>>,
}

/// Everything that waits for a human.
pub fn waiting(state: &State) -> Vec<WaitingQuestion> {
    let Phase::Paused { pause, .. } = &state.phase else { return Vec::new() };
    let steps = waiting_steps(state);
    if matches!(state, State::Flow(_)) || !steps.is_empty() {
        let mut all = Vec::new();
        for question in steps {
            let around = [question.at.clone(), question.action.clone()];
            let plain = WaitingQuestion {
                at: Some(question.at.clone()),
                run_id: question.question.run_id.clone(),
                call: None,
                names: around.to_vec(),
                kind: question.question.kind,
                action: question.action.clone(),
                input: question.action_input.clone().unwrap_or_default(),
                awaits: question.awaits.clone(),
            };
            if question.calls.is_empty() {
                all.push(plain);
                continue;
            }
            all.extend(question.calls.into_iter().map(|call| WaitingQuestion {
                at: Some(question.at.clone()),
                run_id: question.question.run_id.clone(),
                call: Some(call.call),
                names: [call.action.clone()].into_iter().chain(around.clone()).collect(),
                kind: question.question.kind,
                action: call.action,
                input: call.action_input,
                awaits: None,
            }));
        }
        return all;
    }
    let calls: Vec<WaitingQuestion> = waiting_calls(state)
        .into_iter()
        .map(|call| WaitingQuestion {
            at: None,
            run_id: None,
            call: Some(call.call),
            names: vec![call.action.clone()],
            kind: pause.question.kind,
            action: call.action,
            input: call.action_input,
            awaits: None,
        })
        .collect();
    if calls.is_empty() {
        return vec![WaitingQuestion {
            at: None,
            run_id: None,
            call: None,
            names: Vec::new(),
            kind: pause.question.kind,
            action: String::new(),
            input: Value::Null,
            awaits: None,
        }];
    }
    calls
}

impl WaitingQuestion {
    fn is_meant(&self, decision: &ScenarioDecision) -> bool {
        let of_kind = |about: &str| written(&self.kind).as_deref() == Some(about);
        let about = decision.about.as_deref();
        about.is_none_or(|about| of_kind(about) || self.names.iter().any(|name| name == about))
            && decision.at.as_ref().is_none_or(|at| self.at.as_ref() == Some(at))
    }

    /// Whether a decision is about it that is kept for crashes.
    fn takes_kept(&self, decision: &ScenarioDecision) -> bool {
        let takes = match self.kind {
            Termination::Uncertain => true,
            Termination::ModelError => decision.retry == Some(true),
            _ => false,
        };
        takes && is_for_crashes(decision) && self.is_meant(decision)
    }

    /// Whether it waits for an event that a decision is about: the data fits, or there is none.
    fn takes_event(&self, decision: &ScenarioDecision) -> bool {
        let fits = decision.by.is_some() || self.comes(decision.answer.as_ref()).is_ok();
        self.awaits.is_some() && self.is_meant(decision) && fits
    }

    /// Whether an event with this data comes to it.
    ///
    /// # Errors
    /// That it does not.
    fn comes(&self, data: Option<&Value>) -> Result<(), String> {
        let Some((awaits, data)) = self.awaits.as_deref().zip(data) else { return Ok(()) };
        let read = data.as_str().and_then(|text| json_text::read(text).ok());
        if awaits.takes(&awaits.event, read.as_ref().unwrap_or(data)) {
            return Ok(());
        }
        let wanted = Value::Object(awaits.matches.clone());
        Err(format!(
            "an event with {data} does not come to {}, whose `match` is {wanted}; with `by`, somebody answers in its place",
            self.words()
        ))
    }

    fn words(&self) -> String {
        match (&self.at, self.action.as_str()) {
            (Some(at), _) => format!("`{at}` ({})", written(&self.kind).unwrap_or_default()),
            (None, "") => format!("a decision of kind {}", written(&self.kind).unwrap_or_default()),
            (None, action) => format!("`{action}` ({})", written(&self.kind).unwrap_or_default()),
        }
    }
}

/// Whether a decision is about a call of unknown outcome: it is kept for crashes.
pub fn is_for_crashes(decision: &ScenarioDecision) -> bool {
    let says = decision.happened.is_some() || decision.fail.is_some();
    says || decision.retry.is_some() && decision.about.as_deref() != Some("model_error")
}

/// The kind of what a run waits for that a decision is about which is kept for crashes: a call whose answer was lost without one, or a
/// model that a retry without a kind asks again. None when it is about nothing that waits.
pub fn kept_for(decision: &ScenarioDecision, state: &State) -> Option<Termination> {
    waiting(state).iter().find(|one| one.takes_kept(decision)).map(|one| one.kind)
}

/// What a decision means for the pause that a run is in.
///
/// # Errors
/// Why it does not fit, in a sentence without a final stop.
pub fn answered(decision: &ScenarioDecision, state: &State) -> Result<Answered, String> {
    let waiting = waiting(state);
    let find = |is_wait: bool| waiting.iter().find(|one| one.kind.is_wait() == is_wait && one.is_meant(decision));
    let kept = waiting.iter().find(|one| one.takes_kept(decision));
    let asks_human = || waiting.iter().find(|one| !one.kind.needs_no_human() && one.is_meant(decision));
    // An event goes to the first step that it fits.
    let event = || waiting.iter().find(|one| one.takes_event(decision));
    let Some(meant) = kept.or_else(asks_human).or_else(|| find(false)).or_else(event).or_else(|| find(true)) else {
        let names: Vec<String> = waiting.iter().map(WaitingQuestion::words).collect();
        return Err(format!("the run waits for something else: {}", names.join(", ")));
    };
    if decision.expires == Some(true) {
        let DueTimes { own, below } = due_times(state);
        return own
            .into_iter()
            .chain(below)
            .min()
            .map(Answered::Expires)
            .ok_or_else(|| "what the run waits for does not expire".to_owned());
    }
    if meant.kind == Termination::ModelError && decision.retry == Some(true) {
        return Ok(Answered::Resume(Box::default()));
    }
    if decision.by.is_none() {
        meant.comes(decision.answer.as_ref())?;
    }
    let answer = decision.answer.as_ref().map(|answer| match answer {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let written = WrittenDecision {
        answer,
        approve: decision.approve == Some(true),
        deny: decision.deny.is_some(),
        reason: decision.deny.clone(),
        edit: decision.edit.clone().map(Value::Object),
        happened: decision.happened.clone(),
        fail: decision.fail.clone(),
        retry: decision.retry == Some(true),
        // One that waits alone needs no name.
        call: meant.call.filter(|_| waiting.len() > 1),
        at: meant.at.clone(),
        ..WrittenDecision::default()
    };
    let by = decision.by.clone().unwrap_or_else(|| "scenario".to_owned());
    let decided = written.read(DecisionSyntax::Fields, Some(by), DecisionRights::All)?;
    Ok(Answered::Resume(Box::new(Resume { decided, ..Resume::default() })))
}

/// When a run that waits for a time, or for an event that does not come, continues by itself, in milliseconds since 1970; none
/// when it waits for a human, or when the next decision of the scenario is about the wait: it ends it, or is the data of the event, that
/// nobody gives it, or that it does not come in time.
pub fn wait_ends_at_ms(state: &State, next: Option<&ScenarioDecision>) -> Option<i64> {
    let Phase::Paused { pause, .. } = &state.phase else { return None };
    let kind = pause.question.kind;
    let of_event = |decision: &ScenarioDecision| {
        let says = decision.answer.is_some() || decision.deny.is_some() || decision.expires == Some(true);
        kind == Termination::WaitingEvent && says
    };
    let is_named = |decision: &ScenarioDecision| decision.about.is_some() || decision.at.is_some();
    let next = next.filter(|next| is_named(next) || of_event(next));
    let is_ended = next.is_some_and(|next| waiting(state).iter().any(|waiting| waiting.is_meant(next)));
    due_at_ms(state).filter(|_| kind.is_wait() && !is_ended)
}

/// What is decided about a call whose outcome a crash left open: what the scenario says, or else that it happened as it
/// was played; one that was not played is made again. None if no such call waits, and for one whose answer is lost without a crash, too.
pub fn after_crash(state: &State, decisions: &[&ScenarioDecision], staged: &[StagedCall]) -> Option<Resume> {
    let waiting = waiting(state);
    let open = waiting.iter().find(|waiting| waiting.kind == Termination::Uncertain)?;
    let said = decisions.iter().copied().find(|decision| is_for_crashes(decision) && open.is_meant(decision));
    // The run that asks, where it is known.
    let run = match (state, &state.phase) {
        (State::Loop(_), Phase::Paused { pause, .. }) => {
            pause.asks.as_ref().map_or(state.header.run_id.as_str(), |asks| asks.run_id())
        }
        _ => "",
    };
    let is_same = |call: &&StagedCall| match &open.at {
        // A step of a run below is named by its own address in that: `pay/post` is `post` in `RUN.pay`.
        Some(at) if open.call.is_none() => {
            let run = open.run_id.as_ref().unwrap_or(&state.header.run_id);
            call.at.as_deref() == at.rsplit('/').next() && call.run_id == *run
        }
        // Another call may have the same input.
        _ => {
            let is_it = |id: CallId| call.key.ends_with(&format!("{run}-{}-{}", id.iteration, id.index));
            call.action == open.action && call.input == open.input && open.call.is_none_or(is_it)
        }
    };
    let call = staged.iter().rev().find(is_same);
    if call.is_some_and(|call| call.asks_whether_it_happened) {
        return None;
    }
    let played = call.and_then(|call| match &call.result {
        Some(ToolResult::Ok(value)) => Some(value.clone()),
        _ => None,
    });
    let decision = match said {
        Some(ScenarioDecision { happened: Some(value), .. }) => Decision::Happened(value.clone()),
        Some(ScenarioDecision { fail: Some(reason), .. }) => Decision::Failed(reason.clone()),
        Some(_) => Decision::Retry,
        None => played.map_or(Decision::Retry, Decision::Happened),
    };
    let call = open.call.filter(|_| waiting.len() > 1);
    let decided = Decided { call, at: open.at.clone(), ..Decided::from(decision) };
    Some(Resume { decided: Some(decided), ..Resume::default() })
}
