//! A turn: its calls return, the model reads the results, and repetitions are detected.

use std::sync::Arc;

use serde_json::Value;

use super::budget;
use super::builtin;
use super::call_attempt::{self, CallAttempt, lost_answer};
use super::compaction::{push_tight, shared};
use super::decision::decision_record;
use super::dialect::{self, Observation};
use super::effect::{Effect, Effects};
use super::event::{CallId, MAY_HAVE_HAPPENED, ToolAsks, ToolFault, ToolLeft, ToolResult, ToolRetried, ToolReturned};
use super::limit;
use super::memory;
use super::next::Next;
use super::observation::cut;
use super::operation::{AskedFor, Call, Doubt, LOST, Progress};
use super::outcome::{Ending, Limit, Pause, RunError, Status, Termination};
use super::question::Question;
use super::reply::refusal::ANSWERS;
use super::reply::window;
use super::state::{GivenHint, LoopState, Phase, StoredEntry, Turn};
use super::stuck::{self, StepDigest, Stuck};
use super::subrun;
use super::turn_policy::OpenCalls;
use loopctl_lang::language::action::OnUncertain;
use loopctl_lang::language::react::StuckAction;
use loopctl_lang::program::{Builtin, LoopProgram, Tool, ToolKind};

/// How often a model is given a hint before its run fails as stuck.
const HINTS: u32 = 2;
/// Why a call that asks a model was not made.
pub(super) const SPENT: &str = "not called: the run's budget is spent";

/// Requests a call. A call that is made again was counted the first time.
pub(super) fn request(state: &mut LoopState, call: &mut Call, effects: &mut Effects) {
    state.counters.tool_calls_made += u32::from(call.requested_at_ms.is_none());
    let now_ms = state.now.wall_ms;
    call.request(now_ms);
    decision_record::called(&mut state.decisions, call.address, now_ms);
    effects.push(Effect::CallTool(call.address));
}

/// A call returned.
pub(super) fn returned(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, returned: ToolReturned) -> Next {
    let call = match turn.call_under_way(returned.call) {
        Ok(call) => call,
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    };
    state.counters.estimated |= returned.estimated;
    state.counters.at_most |= returned.at_most;
    subrun::count(program, state, call.settled, returned.tokens, returned.cost_usd);
    call.run_id = returned.run_id.map(String::into_boxed_str);
    let duration_ms = call_attempt::time_of(&call.attempts).saturating_add(returned.duration_ms);
    call.waited_ms = call.waited_ms.saturating_add(returned.waited_ms);
    returned.attempts.into_iter().for_each(|attempt| call.failed(attempt.into()));
    call.progress = Progress::Done { result: returned.result, duration_ms };
    Next::Settle(turn)
}

/// An attempt at a call failed, and another one follows.
pub(super) fn retried(state: &mut LoopState, mut turn: Turn, retried: ToolRetried, effects: &mut Effects) -> Next {
    let call = match turn.call_under_way(retried.call) {
        Ok(call) => call,
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    };
    let ToolRetried { call: id, attempt, error, duration_ms, waited_ms, delay_ms, lost } = retried;
    if let Err(refused) = call.takes_attempt(attempt) {
        return Next::Refuse { phase: Phase::Acting { turn }, refused };
    }
    call.waited_ms = call.waited_ms.saturating_add(waited_ms);
    call.failed(CallAttempt { at_ms: state.now.wall_ms, error, duration_ms, delay_ms, lost });
    if lost {
        return Next::Settle(turn);
    }
    *state.counters.tool_retries.entry(call.name.clone()).or_default() += 1;
    effects.push(Effect::CallTool(id));
    Next::Wait(Phase::Acting { turn })
}

/// Nothing of a call is under way, although it was requested: it is requested again when the run is resumed.
pub(super) fn left(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, left: &ToolLeft) -> Next {
    let call = match turn.call_under_way(left.call) {
        Ok(call) => call,
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    };
    subrun::count(program, state, call.settled, left.tokens, left.cost_usd);
    call.progress = Progress::Held;
    let was_counted = u32::from(call.requested_at_ms.take().is_some());
    state.counters.tool_calls_made = state.counters.tool_calls_made.saturating_sub(was_counted);
    Next::Wait(Phase::Acting { turn })
}

/// The server of a tool asks a human before it continues with a call.
pub(super) fn asks(state: &mut LoopState, mut turn: Turn, asked: ToolAsks) -> Next {
    match turn.call_under_way(asked.call) {
        Ok(call) => {
            *state.counters.server_questions.entry(call.name.clone()).or_default() += 1;
            call.is_asked(asked.asks);
        }
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    }
    Next::Settle(turn)
}

/// The time of the run is over while calls are under way.
pub(super) fn out_of_time(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, effects: &mut Effects) -> Next {
    for call in &mut turn.calls {
        if matches!(call.progress, Progress::Requested | Progress::Asks(AskedFor::Subrun(_))) {
            call.progress = Progress::done(ToolResult::failed(cut_off(program, state, call)));
        } else if matches!(call.progress, Progress::Held | Progress::Asks(AskedFor::Approval(_))) {
            // No human is asked about a call that can't be made any more.
            state.counters.unmade(&call.name);
            let result = ToolResult::failed("not called: the run's time is over");
            call.progress = Progress::done(result);
        } else if matches!(call.progress, Progress::Asks(AskedFor::Server(_))) {
            let result = ToolResult::failed("its server was not answered: the run's time is over");
            call.progress = Progress::done(result);
        }
    }
    match settle(program, state, turn, effects) {
        Next::Think => match limit::think(program, state) {
            // The clock may have been a little before the limit when the turn was settled.
            Next::Ask { .. } | Next::Summarize { .. } => Next::Limit(Limit::Timeout),
            next => next,
        },
        next => next,
    }
}

/// Why a call failed that was under way when the time of the run was over.
fn cut_off(program: &LoopProgram, state: &LoopState, call: &Call) -> String {
    let mut class = "cut off: the run's time is over".to_owned();
    let is_lost = program.tool(&call.name).is_some_and(Tool::may_be_lost);
    if is_lost && state.header.names_lost_calls() {
        class.push_str(MAY_HAVE_HAPPENED);
    }
    class
}

/// A driver resumes the turn after a crash or a stop: requested calls may have happened.
pub(super) fn resumed(program: &LoopProgram, state: &LoopState, mut turn: Turn, effects: &mut Effects) -> Next {
    for call in &mut turn.calls {
        if !call.progress.is_under_way() {
            continue;
        }
        match program.tool(&call.name).map_or(OnUncertain::Pause, Tool::after_crash) {
            OnUncertain::Retry => {
                call.requested_at_ms = call.requested_at_ms.map(|_| state.now.wall_ms);
                effects.push(Effect::CallTool(call.address));
            }
            OnUncertain::Fail => call.progress = Progress::done(ToolResult::failed(LOST)),
            OnUncertain::Pause => call.progress = Progress::Uncertain(Doubt::Stopped),
        }
    }
    Next::Settle(turn)
}

/// Whether a call of the turn that asks models has started, and its total cost is not known yet: a sub-run that
/// waits for a human may still spend its allowance.
fn is_spending(program: &LoopProgram, turn: &Turn) -> bool {
    let open = |call: &&Call| {
        matches!(call.progress, Progress::Requested | Progress::Uncertain(_) | Progress::Asks(AskedFor::Subrun(_)))
    };
    turn.calls.iter().filter(open).any(|call| program.tool(&call.name).is_some_and(Tool::spends))
}

/// Requests the held calls that may start now: those for which the `order` of the run lets them start and, with a
/// budget, one at a time of those that ask models, because the cost of a call is known only when it has returned. When
/// the budget is spent, no call that asks models is made.
fn start_held(program: &LoopProgram, state: &mut LoopState, turn: &mut Turn, effects: &mut Effects) {
    let has_budget = budget::is_bound(program, state);
    let mut is_spending = has_budget && is_spending(program, turn);
    let mut open = OpenCalls::default();
    for call in &mut turn.calls {
        let tool = program.tool(&call.name);
        if call.progress == Progress::Held && open.let_start(state.header.order, tool) {
            let spends = has_budget && tool.is_some_and(Tool::spends);
            if spends && !is_spending && budget::is_spent(program, state) {
                state.counters.unmade(&call.name);
                call.progress = Progress::done(ToolResult::failed(SPENT));
            } else if !(spends && is_spending) {
                is_spending |= spends;
                request(state, call, effects);
            }
        }
        open.add(call, tool);
    }
}

/// Settles a turn: waits for calls under way, then for humans, then observes all results.
pub(super) fn settle(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, effects: &mut Effects) -> Next {
    start_held(program, state, &mut turn, effects);
    if turn.calls.iter().any(|call| call.progress.is_under_way()) {
        return Next::Wait(Phase::Acting { turn });
    }
    let waiting = |is: fn(&Progress) -> bool| -> Vec<CallId> {
        turn.calls.iter().filter(|call| is(&call.progress)).map(|call| call.address).collect()
    };
    let approvals = waiting(|progress| matches!(progress, Progress::Asks(AskedFor::Approval(_))));
    if !approvals.is_empty() {
        return ask_approval(program, state, turn, approvals);
    }
    let uncertain = waiting(|progress| matches!(progress, Progress::Uncertain(_)));
    if !uncertain.is_empty() {
        let question = uncertain_question(&turn);
        let pause = state.new_pause(Question::new(Termination::Uncertain, question), uncertain);
        return Next::Wait(Phase::Paused { pause, turn: Some(turn) });
    }
    if let Some(pause) = subrun::pause(state, &turn) {
        return Next::Wait(Phase::Paused { pause, turn: Some(turn) });
    }
    if let Some(pause) = server_pause(state, &turn) {
        return Next::Wait(Phase::Paused { pause, turn: Some(turn) });
    }
    observe(program, state, turn, effects)
}

/// The pause for the first call whose server asks a human.
fn server_pause(state: &mut LoopState, turn: &Turn) -> Option<Box<Pause>> {
    let asks = |call: &Call| match &call.progress {
        Progress::Asks(AskedFor::Server(asks)) => Some((call.address, asks.form.question.clone())),
        _ => None,
    };
    let (call, question) = turn.calls.iter().find_map(asks)?;
    Some(state.new_pause(Question::new(Termination::Human, question), vec![call]))
}

/// What a human is asked about the calls of a turn that may have happened.
fn uncertain_question(turn: &Turn) -> String {
    let of = |doubt| turn.calls.iter().filter(move |call| call.progress == Progress::Uncertain(doubt));
    let stopped: Vec<&str> = of(Doubt::Stopped).map(|call| call.name.as_str()).collect();
    let mut questions: Vec<String> = Vec::new();
    if !stopped.is_empty() {
        questions.push(format!("The process stopped while it called {}. Did it happen?", stopped.join(", ")));
    }
    questions.extend(of(Doubt::Lost).map(|call| format!("The agent {}", lost_answer(&call.name, &call.attempts))));
    questions.join(" ")
}

/// The run waits for the approval of these calls.
pub(super) fn ask_approval(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, ids: Vec<CallId>) -> Next {
    for call in turn.calls.iter_mut().filter(|call| ids.contains(&call.address)) {
        if let Progress::Asks(AskedFor::Approval(awaited)) = &mut call.progress
            && let Some(tool) = program.tool(&call.name)
        {
            awaited.begin(&tool.approval, state.now.wall_ms);
        }
    }
    let question = approval_question(&turn, &ids);
    let pause = state.new_pause(Question::new(Termination::Approval, question), ids);
    Next::Wait(Phase::Paused { pause, turn: Some(turn) })
}

/// What a human is asked before calls are made, with the conditions that could not be evaluated.
fn approval_question(turn: &Turn, ids: &[CallId]) -> String {
    let mut question = format!("May the agent call {}?", names(turn, ids));
    for call in turn.calls.iter().filter(|call| ids.contains(&call.address)) {
        let Progress::Asks(AskedFor::Approval(awaited)) = &call.progress else { continue };
        question.push_str(&awaited.remarks(&call.name));
    }
    question
}

/// The first question of a turn that no human has answered yet.
pub(super) fn question_of(program: &LoopProgram, turn: &Turn) -> Option<(CallId, Question)> {
    let mut open = turn.calls.iter().filter(|call| call.progress == Progress::Requested);
    let asks = |call: &&Call| {
        let kind = program.tool(&call.name).map(|tool| &tool.kind);
        matches!(kind, Some(ToolKind::Builtin(Builtin::PauseForHuman)))
    };
    open.find(asks).map(|call| (call.address, builtin::question(&call.input)))
}

/// The run waits for a human's answer to the model's question.
pub(super) fn ask_human(state: &mut LoopState, turn: Turn, call: CallId, question: Question) -> Next {
    let pause = state.new_pause(question, vec![call]);
    Next::Wait(Phase::Paused { pause, turn: Some(turn) })
}

fn names(turn: &Turn, ids: &[CallId]) -> String {
    let names: Vec<&str> =
        turn.calls.iter().filter(|call| ids.contains(&call.address)).map(|call| call.name.as_str()).collect();
    names.join(", ")
}

/// All calls of the turn are done: their observations go to the trace and to the model, then repetitions are
/// detected.
fn observe(program: &LoopProgram, state: &mut LoopState, turn: Turn, effects: &mut Effects) -> Next {
    let TurnRecord { observations, step } = record(program, state, turn, effects);
    let stuck = step.and_then(|mut step| {
        step.label = shared(state.last_action(), &step.label);
        push_tight(&mut state.watch.steps, step);
        let detect = if state.header.compares_actions() { stuck::detect } else { stuck::detect_older };
        detect(&state.watch.steps, program.properties.on_stuck.iterations)
    });
    if state.watch.answers_refused >= ANSWERS {
        let message =
            format!("{ANSWERS} answers did not match answer_schema; the trace shows what was wrong with each");
        let error = RunError { code: "invalid_replies".to_owned(), message, retryable: false, step: None };
        return Next::fail(state, Termination::InvalidReplies, error);
    }
    match stuck {
        None => {
            dialect::report(program.properties.dialect, &mut state.conversation, observations, None);
            Next::Think
        }
        Some(stuck) => is_stuck(program, state, stuck, observations),
    }
}

/// What a turn leaves besides the trace.
pub(super) struct TurnRecord {
    /// What the model reads about each call.
    observations: Vec<Observation>,
    /// The step for the detection of repetitions; none when nothing was done.
    step: Option<StepDigest>,
}

/// Adds the finished calls of a turn to the trace, and what must be kept of them to the memory.
pub(super) fn record(program: &LoopProgram, state: &mut LoopState, turn: Turn, effects: &mut Effects) -> TurnRecord {
    let mut observations = Vec::with_capacity(turn.calls.len());
    let mut outcomes = Vec::with_capacity(turn.calls.len());
    let most = window::observation_chars(program, state, turn.calls.len());
    for call in turn.calls {
        let Call { address, name: tool, input, progress, run_id, requested_at_ms, attempts, waited_ms, .. } = call;
        let input = Arc::unwrap_or_clone(input);
        let Progress::Done { result, duration_ms } = progress else { continue };
        let (value, error) = match result {
            ToolResult::Ok(value) => (value, None),
            ToolResult::Failed(fault) => (Value::String(fault.observation()), Some(fault)),
        };
        let wanted = program.tool(&tool).map(|tool| &tool.remember).filter(|_| error.is_none());
        let (keys, kept) = match wanted.filter(|wanted| !wanted.is_empty()) {
            Some(wanted) => memory::remember(&mut state.memory, wanted, &value),
            None => Default::default(),
        };
        effects.extend(keys.into_iter().filter(|_| state.header.session.is_some()).map(Effect::Remember));
        let (observation, mut text) = cut(state, value, most);
        if let Some(note) = decision_record::note(&state.decisions, address, &input, &attempts) {
            text.insert_str(0, &note);
        }
        text.push_str(&kept);
        observations.push(Observation { text, failed: error.is_some() });
        let times = CallTimes { duration_ms, waited_ms, requested_at_ms };
        outcomes.push(ToolOutcome { tool, input, observation, error, times, run_id, attempts });
    }
    let step = (!outcomes.is_empty()).then(|| step_of(program, turn.iteration, &turn.thought, &outcomes));
    let (mut thought, mut usage) = (turn.thought.into_boxed_str(), turn.usage);
    for outcome in outcomes {
        let ToolOutcome { tool, input, observation, error, times, run_id, attempts } = outcome;
        let CallTimes { duration_ms, waited_ms, requested_at_ms } = times;
        let action = shared(state.last_action(), &tool);
        push_tight(
            &mut state.entries,
            StoredEntry {
                iteration: turn.iteration,
                at_ms: turn.at_ms,
                thought: std::mem::take(&mut thought),
                action: Some(action),
                action_input: input.into(),
                observation: observation.into(),
                success: error.is_none(),
                error: error.map(Box::new),
                duration_ms,
                waited_ms,
                usage: usage.take(),
                run_id,
                called_at_ms: requested_at_ms,
                attempts: attempts.into(),
            },
        );
    }
    TurnRecord { observations, step }
}

/// The result of a call, before it becomes an entry.
struct ToolOutcome {
    tool: String,
    input: Value,
    observation: Value,
    error: Option<ToolFault>,
    times: CallTimes,
    run_id: Option<Box<str>>,
    attempts: Vec<CallAttempt>,
}

/// The times of a call, in milliseconds: how long it took, how long it waited for its turn, and when it was requested, since 1970.
struct CallTimes {
    duration_ms: u64,
    waited_ms: u64,
    requested_at_ms: Option<i64>,
}

fn step_of(program: &LoopProgram, iteration: u32, thought: &str, outcomes: &[ToolOutcome]) -> StepDigest {
    let calls = outcomes.iter().map(|call| {
        let polling = program.tool(&call.tool).is_some_and(|tool| tool.polling);
        (call.tool.as_str(), &call.input, &call.observation, call.error.is_some(), polling)
    });
    StepDigest::new(iteration, thought, calls)
}

/// The agent repeats itself: does what the loop's `on_stuck` says.
fn is_stuck(program: &LoopProgram, state: &mut LoopState, stuck: Stuck, observations: Vec<Observation>) -> Next {
    let rule = &program.properties.on_stuck;
    let dialect = program.properties.dialect;
    match rule.action {
        StuckAction::RetryWithHint if state.watch.hints < HINTS => {
            state.watch.hints += 1;
            state.watch.steps.clear();
            let hint = match &rule.hint {
                Some(hint) => format!("Hint: {hint}"),
                None => format!(
                    "Hint: {} That brought nothing new. Try another way, or complete with what is known.",
                    stuck.detail
                ),
            };
            dialect::report(dialect, &mut state.conversation, observations, Some(&hint));
            let entry = state.entries.len().saturating_sub(1);
            push_tight(&mut state.hints, GivenHint { entry, text: hint.into() });
            Next::Think
        }
        StuckAction::Fail | StuckAction::RetryWithHint => {
            dialect::report(dialect, &mut state.conversation, observations, None);
            let message = format!("the agent was stuck: {}", stuck.detail);
            let error = RunError { code: "stuck".to_owned(), message, retryable: false, step: None };
            Next::end(Ending {
                error: Some(error),
                stuck: Some(stuck),
                ..Ending::new(Status::Failed, Termination::Stuck, state.now.wall_ms)
            })
        }
        StuckAction::Escalate => {
            dialect::report(dialect, &mut state.conversation, observations, None);
            let question = format!("The agent is stuck: {} What should it do?", stuck.detail);
            let question = Question { stuck: Some(stuck), ..Question::new(Termination::Stuck, question) };
            Next::Wait(Phase::Paused { pause: state.new_pause(question, Vec::new()), turn: None })
        }
    }
}

/// The tool of a call, if the program has it.
pub(super) fn tool_of<'a>(program: &'a LoopProgram, call: &Call) -> Option<&'a Tool> {
    program.tool(&call.name).filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_)))
}

/// A failure with more details for the operator than for the model.
pub(super) fn denied(reason: Option<&str>) -> ToolResult {
    let class = match reason {
        Some(reason) => format!("a human did not allow this call: {reason}"),
        None => "a human did not allow this call".to_owned(),
    };
    ToolResult::failed(class)
}
