//! What a workflow that waits for humans asks them, and what else it waits for.

use serde_json::{Map, Value};

use crate::address::{StepAddress, split_address};
use crate::call_attempt::lost_answer;
use crate::decision::form::FormRequest;
use crate::event::Decided;
use crate::flow::progress::FlowProgress;
use crate::operation::{Address, AskedFor, AwaitedKind, AwaitedThing, Doubt, OpenStep, Operation, Progress};
use crate::outcome::Termination;
use crate::question::WaitingCall;
use crate::question::{Question, StepQuestion};
use crate::state::{FlowState, Phase, RunHeader, State};
use crate::timestamp::rfc3339;
use loopctl_lang::language::step::OnRejected;
use loopctl_lang::program::Program;
use loopctl_lang::program::flow::FlowStep;
use loopctl_lang::program::form::{AskedForm, answer_schema};

/// The questions of the steps that wait, in the order of their addresses: those of a workflow, or of the workflow below that
/// a loop called. The kind of a question says whether a human is asked.
pub fn waiting_steps(state: &State) -> Vec<StepQuestion> {
    match (state, &state.phase) {
        (State::Flow(state), _) => state.waiting_steps(),
        (State::Loop(state), Phase::Paused { pause, turn }) => {
            let asked = pause.asks.iter().flat_map(|asks| &asks.steps);
            let calls = turn.iter().flat_map(|turn| &turn.calls).filter(|call| pause.calls.contains(&call.address));
            asked.cloned().chain(calls.filter_map(|call| of_server(call, &state.header))).collect()
        }
        _ => Vec::new(),
    }
}

/// The questions of the steps that wait, among which is that of a decision: those of the step that it names alone, or all.
pub fn waiting_for(state: &State, decided: &Decided) -> Vec<StepQuestion> {
    match state {
        State::Flow(state) => state.named_questions(decided).unwrap_or_else(|| state.waiting_steps()),
        State::Loop(_) => waiting_steps(state),
    }
}

impl FlowState {
    /// The questions of the step that a decision names, if it waits. Many steps may wait, and each decision is held against them.
    pub(super) fn named_questions(&self, decided: &Decided) -> Option<Vec<StepQuestion>> {
        let at = decided.at.as_deref().filter(|at| !at.contains('*'))?;
        let open = self.progress.open_at(&StepAddress::new(split_address(at).0))?;
        open.progress.waits().then(|| questions(open, &self.header))
    }

    /// Whether a step waits.
    pub(super) fn has_waiting_step(&self) -> bool {
        self.progress.open().iter().any(|open| open.progress.waits())
    }

    /// The questions of the steps that wait, in the order of their addresses.
    pub(super) fn waiting_steps(&self) -> Vec<StepQuestion> {
        let waiting = self.progress.open().into_iter().filter(|open| open.progress.waits());
        waiting.flat_map(|open| questions(open, &self.header)).collect()
    }
}

/// The first step of a workflow that waits: for a human, or for something else where no step asks one.
pub fn first_waiting(state: &State) -> Option<&StepAddress> {
    first_step(&state.as_flow()?.progress).map(|open| &open.address)
}

fn first_step(progress: &FlowProgress) -> Option<&OpenStep> {
    let waiting = of_pause(progress.open());
    first_asked(&waiting).first().copied()
}

/// The steps whose wait makes a pause: those that wait for a human, or for a model that can't be reached; without one, those that wait
/// for a time.
pub(super) fn of_pause(open: Vec<&OpenStep>) -> Vec<&OpenStep> {
    let (asks, mut waits): (Vec<_>, Vec<_>) = open.into_iter().partition(|open| open.progress.makes_a_pause());
    if !asks.is_empty() {
        return asks;
    }
    waits.retain(|open| open.progress.waits());
    waits
}

/// Those of the steps of a pause that its question is about: where a human is asked, nothing else is.
pub(super) fn first_asked<'s>(of_pause: &[&'s OpenStep]) -> Vec<&'s OpenStep> {
    let asks: Vec<_> = of_pause.iter().copied().filter(|open| open.progress.waits_for_human()).collect();
    if asks.is_empty() { of_pause.to_vec() } else { asks }
}

/// The question of the first of these steps, alone: there may be many.
pub fn first_question(state: &State) -> Option<String> {
    match (state, &state.phase) {
        (State::Flow(state), _) => {
            let questions = questions(first_step(&state.progress)?, &state.header);
            // Below it, others may wait for something else.
            let asks = questions.iter().position(|step| !step.question.kind.needs_no_human());
            questions.into_iter().nth(asks.unwrap_or_default()).map(|step| step.question.text)
        }
        (State::Loop(_), Phase::Paused { pause, .. }) => {
            pause.asks.iter().flat_map(|asks| &asks.steps).next().map(|step| step.question.text.clone())
        }
        _ => None,
    }
}

/// The questions of a step: several when its run has called a workflow of which several steps wait.
pub(crate) fn questions(open: &OpenStep, header: &RunHeader) -> Vec<StepQuestion> {
    match &open.progress {
        Progress::Asks(AskedFor::Subrun(waits)) if !waits.asks.steps.is_empty() => {
            let below = waits.asks.steps.iter().cloned();
            let label = open.item_label.as_deref();
            let above = |below: StepQuestion| StepQuestion {
                at: format!("{}/{}", open.address, below.at),
                item_label: label.map(str::to_owned).or(below.item_label),
                ..below
            };
            below.map(above).collect()
        }
        _ => vec![question(open, header)],
    }
}

fn approval_question(open: &OpenStep, remarks: &str) -> Question {
    Question::new(Termination::Approval, format!("May the step `{}` call {}?{remarks}", open.address, open.name))
}

pub(super) fn question(open: &OpenStep, header: &RunHeader) -> StepQuestion {
    if let Some(asked) = of_server(open, header) {
        return asked;
    }
    let action = open.name.clone();
    let uncertain = |text| Question::new(Termination::Uncertain, text);
    let plain = StepQuestion {
        at: open.address.to_string(),
        item_label: open.item_label.as_deref().map(str::to_owned),
        question: Question::new(Termination::Human, String::new()),
        action: action.clone(),
        action_input: Some(Value::clone(&open.input)),
        hash: Some(open.hash(header)),
        expected_keys: Vec::new(),
        show: None,
        fields: Vec::new(),
        answer_schema: None,
        expires_at_ms: None,
        approval: None,
        on_rejected: None,
        ends: open.ends,
        run_pause: None,
        calls: Vec::new(),
        awaits: None,
        ask: open.targets(),
        asked_by: None,
    };
    match &open.progress {
        Progress::Asks(AskedFor::Approval(awaited)) => StepQuestion {
            question: approval_question(open, &awaited.remarks(&action)),
            approval: (!awaited.is_plain()).then(|| (**awaited).clone()),
            on_rejected: Some(OnRejected::Stop),
            ..plain
        },
        Progress::Asks(AskedFor::Consent { comment, on_rejected }) => StepQuestion {
            question: Question::new(Termination::Approval, comment.as_str()),
            on_rejected: Some(*on_rejected),
            ..plain
        },
        Progress::Asks(AskedFor::Form { expires_at_ms }) => {
            let plain = StepQuestion { action_input: None, expires_at_ms: *expires_at_ms, ..plain };
            match open.form() {
                FormRequest::Keys(keys) => StepQuestion {
                    question: Question::new(Termination::Human, format!("Fill in {}", keys.join(", "))),
                    expected_keys: keys,
                    ..plain
                },
                FormRequest::Fields(AskedForm { question, show, fields }) => StepQuestion {
                    question: Question::new(Termination::Human, question),
                    expected_keys: fields.iter().map(|field| field.name.clone()).collect(),
                    show: Some(Value::Object(show)).filter(|show| *show != Value::Object(Map::new())),
                    answer_schema: Some(answer_schema(&fields)),
                    fields,
                    ..plain
                },
            }
        }
        Progress::Waits(awaited) => of_wait(awaited, plain),
        Progress::Asks(AskedFor::Subrun(waits)) => StepQuestion {
            // What else the model said is shown with the run that asks.
            question: Question { context: None, stuck: None, ..waits.asks.question.clone() },
            action_input: None,
            hash: None,
            run_pause: Some(waits.asks.pause),
            expires_at_ms: waits.asks.until_ms,
            calls: waits.asks.calls.clone(),
            ..plain
        },
        Progress::Uncertain(Doubt::Lost) => StepQuestion {
            question: uncertain(format!("The step `{}` {}", open.address, lost_answer(&action, &open.attempts))),
            ..plain
        },
        _ => StepQuestion {
            question: uncertain(format!(
                "The process stopped while the step `{}` called {action}. Did it happen?",
                open.address
            )),
            ..plain
        },
    }
}

/// The question of the server of a tool, in the middle of a call.
fn of_server<A: Address>(open: &Operation<A>, header: &RunHeader) -> Option<StepQuestion> {
    let Progress::Asks(AskedFor::Server(asks)) = &open.progress else { return None };
    let AskedForm { question, show, fields } = asks.form.clone();
    Some(StepQuestion {
        at: open.address.to_string(),
        item_label: open.item_label.as_deref().map(str::to_owned),
        question: Question::new(Termination::Human, question),
        action: open.name.clone(),
        action_input: None,
        hash: Some(open.hash(header)),
        expected_keys: fields.iter().map(|field| field.name.clone()).collect(),
        show: Some(Value::Object(show)).filter(|show| *show != Value::Object(Map::new())),
        answer_schema: Some(answer_schema(&fields)),
        fields,
        expires_at_ms: None,
        approval: None,
        on_rejected: None,
        ends: None,
        run_pause: None,
        calls: Vec::new(),
        awaits: None,
        ask: None,
        asked_by: Some(asks.by.clone()),
    })
}

/// What a step waits for that asks no human.
fn of_wait(awaited: &AwaitedThing, plain: StepQuestion) -> StepQuestion {
    let AwaitedThing { until_ms, what } = awaited;
    let until = rfc3339(*until_ms);
    let text = match what {
        AwaitedKind::Time => format!("The step `{}` waits until {until}", plain.at),
        AwaitedKind::Event(awaited) => {
            format!("The step `{}` waits for the event `{}`, until {until}", plain.at, awaited.event)
        }
        AwaitedKind::Room(why) => why.to_string(),
    };
    let awaits = match what {
        AwaitedKind::Event(awaited) => Some(awaited.clone()),
        AwaitedKind::Time | AwaitedKind::Room(_) => None,
    };
    StepQuestion {
        question: Question::new(what.kind(), text),
        action_input: None,
        expires_at_ms: Some(*until_ms),
        awaits,
        ..plain
    }
}

/// The steps that wait, as calls: what lists of waiting calls show of them.
pub(crate) fn calls(steps: &[StepQuestion]) -> Vec<WaitingCall> {
    let mut calls = Vec::new();
    for question in steps {
        for mut call in question.waiting_calls() {
            if question.calls.is_empty() {
                call.call.index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
            }
            calls.push(call);
        }
    }
    calls
}

/// When somebody is reminded of the steps of a workflow that wait, in milliseconds since 1970: all times, past ones too.
pub fn reminders(program: &Program, state: &State) -> Vec<i64> {
    let Some(program) = program.as_flow() else { return Vec::new() };
    let mut times = Vec::new();
    for open in state.open_steps() {
        if !matches!(open.progress, Progress::Asks(AskedFor::Consent { .. } | AskedFor::Form { .. })) {
            continue;
        }
        let expires_at_ms = open.progress.expires_at_ms();
        let after_ms = program.step_at(&open.address).map(FlowStep::reminders_ms).unwrap_or_default();
        let at = after_ms.iter().map(|after_ms| open.due_at_ms.saturating_add_unsigned(*after_ms));
        times.extend(at.filter(|at_ms| expires_at_ms.is_none_or(|expires_at_ms| *at_ms < expires_at_ms)));
    }
    times
}
