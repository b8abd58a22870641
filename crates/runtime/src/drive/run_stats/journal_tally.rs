//! What one journal says: the fold of its events, with what each of them adds.

use std::collections::{BTreeMap, BTreeSet};

use crate::drive::run::spender::{self, Spender};
use crate::journal::needs_no_human;
use loopctl_engine::event::{Event, EventKind, FailedAttempt, Tokens};
use loopctl_engine::notice::{Notice, notices};
use loopctl_engine::record::TraceEntry;
use loopctl_engine::refused::Refused;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::wait_deadline::waits_beside_since_ms;
use loopctl_lang::policy::word::written;
use loopctl_lang::program::Program;

/// What happened in a run, one thing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Measure<'a> {
    /// A model replied after this time, in milliseconds.
    Reply { model: &'a str, ms: u64 },
    /// A model spent tokens.
    Spent { model: &'a str, tokens: Tokens, cost_usd: f64 },
    /// A request to a model was made again.
    ModelRetry { model: &'a str },
    /// A call of a tool ended after this time, in milliseconds.
    Call { tool: &'a str, ms: u64, success: bool },
    /// Attempts at calls of a tool were made again.
    ToolRetries { tool: &'a str, count: u32 },
    /// The agent went in circles.
    Stuck { pattern: String },
    /// An agent in circles got hints.
    Hints { count: usize },
    /// The run waited for a human for this time, in milliseconds.
    HumanWait { ms: i64 },
}

/// Folds the events of a run, and hands over what happened.
///
/// # Errors
/// When the events do not fit together.
pub(super) fn fold_measured(
    program: &Program,
    events: Vec<Event>,
    take: &mut dyn FnMut(Measure<'_>),
) -> Result<(), Refused> {
    let tools: BTreeSet<&str> = program.all_tools().into_iter().map(|tool| tool.name.as_str()).collect();
    let mut state = State::new(program);
    let (mut calls, mut waits_since_ms) = (Vec::new(), None);
    let (mut copied_retries, mut copied_hints) = (BTreeMap::new(), 0);
    for event in events {
        if matches!(&event.kind, EventKind::Started(started) if started.fork.is_some()) {
            // The run that it was copied from counts what was copied.
            notices(program, &mut state, event)?;
            (copied_retries, copied_hints) = (state.counters.tool_retries.clone(), hints(&state));
            continue;
        }
        let spender = Spender::of(&event.kind, program, &state);
        let failed = failed_attempts(&event.kind);
        let attempts = spender::attempts(&state);
        let before = (state.counters.tokens, state.counters.cost_usd, state.counters.model_retries);
        let had_ended = matches!(state.phase, Phase::Ended(_));
        let notices = notices(program, &mut state, event)?;
        let counters = &state.counters;
        let (tokens, cost_usd) = (counters.tokens.minus(before.0), counters.cost_usd - before.1);
        spender.each(&state.header, &(tokens, cost_usd), &spender::lost(&state, attempts), &mut |spent| {
            take(Measure::Spent { model: spent.model, tokens: spent.tokens, cost_usd: spent.cost_usd });
        });
        if let Some(model) = spender.model(&state.header) {
            for notice in &notices {
                if let Notice::ModelReplied { duration_ms, .. } = notice {
                    take(Measure::Reply { model, ms: *duration_ms });
                }
            }
        }
        let retries = usize::try_from(counters.model_retries.saturating_sub(before.2)).unwrap_or(usize::MAX);
        let asked = failed.iter().map(|attempt| attempt.model.as_deref().unwrap_or(&state.header.model.name));
        let asked = asked.chain(std::iter::repeat(&*state.header.model.name));
        asked.take(retries).for_each(|model| take(Measure::ModelRetry { model }));
        for notice in &notices {
            of_notice(&tools, notice, &mut calls, take);
        }
        if let Phase::Ended(ending) = &state.phase
            && !had_ended
            && let Some(stuck) = &ending.stuck
        {
            take(Measure::Stuck { pattern: written(&stuck.pattern).unwrap_or_default() });
        }
        let now_ms = state.now.wall_ms;
        match (waits(&state), waits_since_ms) {
            (true, None) => waits_since_ms = Some(now_ms),
            (false, Some(since_ms)) => {
                take(Measure::HumanWait { ms: now_ms.saturating_sub(since_ms).max(0) });
                waits_since_ms = None;
            }
            _ => {}
        }
    }
    for (tool, count) in &state.counters.tool_retries {
        let copied = copied_retries.get(tool).copied().unwrap_or_default();
        take(Measure::ToolRetries { tool, count: count.saturating_sub(copied) });
    }
    take(Measure::Hints { count: hints(&state).saturating_sub(copied_hints) });
    Ok(())
}

fn hints(state: &State) -> usize {
    state.as_loop().map_or(0, |state| state.hints.len())
}

/// The failed attempts that an event records.
fn failed_attempts(what: &EventKind) -> Vec<FailedAttempt> {
    match what {
        EventKind::ModelReplied(reply) | EventKind::Summarized(reply) => reply.attempts.clone(),
        EventKind::AttemptsFailed(attempts) => attempts.clone(),
        _ => Vec::new(),
    }
}

/// A call that is under way: its iteration, and the tool.
type CallUnderWay = (u32, String);

fn of_notice(
    tools: &BTreeSet<&str>,
    notice: &Notice,
    calls: &mut Vec<CallUnderWay>,
    take: &mut dyn FnMut(Measure<'_>),
) {
    match notice {
        Notice::ToolCalled { call, action, .. } => calls.push((call.iteration, action.clone())),
        // An observation of a call that was never made is no call.
        Notice::Observed {
            entry: TraceEntry { iteration, action: Some(action), success, duration_ms, call_status: None, .. },
            ..
        } => {
            let made = calls.iter().position(|(of, name)| of == iteration && name == action);
            if let Some(at) = made {
                calls.swap_remove(at);
                take(Measure::Call { tool: action, ms: *duration_ms, success: *success });
            }
        }
        Notice::StepEnded { record } if tools.contains(record.kind.as_str()) => {
            take(Measure::Call { tool: &record.kind, ms: record.duration_ms(), success: record.error.is_none() });
        }
        Notice::Paused { question, .. } => {
            if let Some(stuck) = &question.stuck {
                take(Measure::Stuck { pattern: written(&stuck.pattern).unwrap_or_default() });
            }
        }
        _ => {}
    }
}

/// Whether a human is waited for.
fn waits(state: &State) -> bool {
    match &state.phase {
        Phase::Paused { pause, .. } => !needs_no_human(pause.question.kind),
        _ => waits_beside_since_ms(state).is_some(),
    }
}
