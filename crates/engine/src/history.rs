//! The history: when it is too long, which messages are removed, and what replaces them. The opening and the
//! last iteration always stay; iterations are removed whole, the oldest first.

pub mod notes;
mod summary;
#[cfg(test)]
mod tests;
mod written_notes;

use super::budget;
use super::conversation::{Message, Role};
use super::event::{ModelFault, ModelFaultCode, Reply};
use super::next::Next;
use super::reply::usage;
use super::reply::window;
use super::state::LoopState;
use loopctl_lang::language::react::{History, OnLimit};
use loopctl_lang::program::LoopProgram;

use notes::NotesFault;
pub use summary::{MAX_SUMMARY_TOKENS, max_tokens, question};

/// Whether the next request is too long, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// It is not.
    Fits,
    /// The messages after the opening are removed, up to `until`; `summed`: the model summarises them.
    Over { until: usize, summed: bool },
    /// It is too long, and nothing can be removed.
    Full,
}

/// Whether no iteration can be removed.
pub(super) fn is_last(state: &LoopState) -> bool {
    state.conversation.iterations().nth(1).is_none()
}

/// Checks the length of the next request.
pub(super) fn look(program: &LoopProgram, state: &LoopState) -> Length {
    let history = program.properties.history.as_ref();
    if let Some(until) = history.and_then(|history| over_messages(history, state)) {
        return Length::Over { until, summed: history.and_then(|history| history.summarize) == Some(true) };
    }
    match window::of_request(program, state) {
        Some(bound) if next_request(state) > bound => too_long(program, state, bound),
        _ => Length::Fits,
    }
}

/// What to remove when a request must have less than `bound` tokens: half of them is left free.
pub(super) fn too_long(program: &LoopProgram, state: &LoopState, bound: u64) -> Length {
    let summarize = program.properties.history.as_ref().and_then(|history| history.summarize);
    // A loop with `on_limit: answer` and without `summarize` treats the full window as a limit.
    if program.properties.on_limit == OnLimit::Answer && summarize.is_none() {
        return Length::Full;
    }
    match fitting(state, bound / 2) {
        Some(until) => Length::Over { until, summed: summarize != Some(false) },
        None => Length::Full,
    }
}

/// For `max_messages`: where the last `keep_last` messages begin, or the first iteration within them.
fn over_messages(history: &History, state: &LoopState) -> Option<usize> {
    let conversation = &state.conversation;
    let all = conversation.messages.len();
    let most = usize::try_from(history.max_messages?).unwrap_or(usize::MAX);
    let from = all.saturating_sub(usize::try_from(history.keep_last).unwrap_or(usize::MAX));
    if all <= most {
        return None;
    }
    let until = conversation.iterations().find(|at| *at >= from).or_else(|| conversation.iterations().last())?;
    (until > conversation.opening()).then_some(until)
}

/// The number of tokens of the next request: the provider's count of the last one, and an estimate of what was
/// added since.
pub(super) fn next_request(state: &LoopState) -> u64 {
    let (tokens, bytes) = state.counters.window;
    tokens.saturating_add(state.counters.estimator.tokens(state.conversation.bytes.saturating_sub(bytes)))
}

/// Where the iterations begin that fit into `room` tokens with the opening. The last one always stays, and the
/// oldest one is removed. None when there is only one.
fn fitting(state: &LoopState, room: u64) -> Option<usize> {
    let conversation = &state.conversation;
    let size = |from: usize, until: usize| -> usize {
        let messages = conversation.messages.iter().skip(from).take(until.saturating_sub(from));
        messages.map(Message::size).sum()
    };
    let opening = conversation.opening();
    let starts: Vec<usize> = conversation.iterations().skip(1).collect();
    let mut until = conversation.messages.len();
    let mut bytes = size(0, opening).saturating_sub(conversation.stand_in().len());
    let mut kept = None;
    for start in starts.iter().rev() {
        bytes = bytes.saturating_add(size(*start, until));
        if kept.is_some() && state.counters.estimator.tokens(bytes) > room {
            break;
        }
        (kept, until) = (Some(*start), *start);
    }
    kept
}

/// The model has summarised the removed messages.
pub(super) fn summed(program: &LoopProgram, state: &mut LoopState, mut reply: Reply, until: usize) -> Next {
    let sent = question(program, state, until).bytes;
    window::learn(state, reply.own_window(), None);
    budget::tried(program, state, std::mem::take(&mut reply.attempts));
    state.counters.summaries = state.counters.summaries.saturating_add(1);
    state.watch.paid = std::mem::take(&mut state.watch.paid_before_summary);
    usage::of_reply(program, state, &reply, sent);
    let (text, fault) = match state.header.reads_notes() {
        true => written_notes::of_reply(program, &reply),
        false => written_notes::of_older_reply(&reply),
    };
    drop_until(state, until, text, fault);
    Next::Think
}

/// Whether the run continues without a summary when the model could not write one: the request itself was the
/// problem.
pub(super) fn goes_on_without_notes(fault: &ModelFault) -> bool {
    match fault.code {
        ModelFaultCode::ContextExceeded | ModelFaultCode::ModelProtocol | ModelFaultCode::ModelRefused => true,
        ModelFaultCode::ModelUnreachable | ModelFaultCode::ScriptExhausted | ModelFaultCode::SpendingLimit => false,
    }
}

/// The model could not write a summary: the messages are removed anyway.
pub(super) fn not_summed(program: &LoopProgram, state: &mut LoopState, fault: ModelFault, until: usize) -> Next {
    window::learn(state, fault.own_window(), None);
    let why = NotesFault::of_code(fault.code);
    usage::of_failure(program, state, fault);
    state.watch.paid = std::mem::take(&mut state.watch.paid_before_summary);
    drop_until(state, until, None, Some(why));
    Next::Think
}

/// Before the last call: removes the older half when the request would not fit, or when `must`. Returns whether it
/// became shorter.
pub(super) fn make_room(program: &LoopProgram, state: &mut LoopState, must: bool) -> bool {
    let bound = window::of_request(program, state);
    if !must && bound.is_none_or(|bound| next_request(state) <= bound) {
        return false;
    }
    let all = state.counters.estimator.tokens(state.conversation.bytes);
    let room = all.min(bound.filter(|_| state.watch.window.is_some()).unwrap_or(u64::MAX));
    match fitting(state, room / 2) {
        Some(until) => drop_until(state, until, None, None),
        None => return shorten(program, state),
    }
    true
}

/// Where no iteration can be removed and a server showed the window: cuts what the last iteration reports, so that the
/// request fits. Returns whether it became shorter.
pub(super) fn shorten(program: &LoopProgram, state: &mut LoopState) -> bool {
    let Some(bound) = window::of_request(program, state).filter(|_| state.watch.window.is_some()) else { return false };
    let opening = state.conversation.opening();
    let is_report = |message: &Message| matches!(message.role, Role::User | Role::Tool);
    let behind = state.conversation.messages.iter().skip(opening);
    let sizes: Vec<usize> = behind.filter(|message| is_report(message)).map(|message| message.text.len()).collect();
    let reports = state.counters.estimator.tokens(sizes.iter().sum());
    let rest = next_request(state).saturating_sub(reports);
    // An estimate: a part stays free.
    let room = state.counters.estimator.bytes(bound.saturating_sub(rest) / 4 * 3);
    let most = summary::share(&sizes, room);
    let gone = state.conversation.shorten(|message| {
        (is_report(message) && message.text.len() > most + summary::MARK)
            .then(|| summary::shortened(&message.text, most))
    });
    let counted = state.counters.estimator.tokens(gone);
    state.counters.window = (state.counters.window.0.saturating_sub(counted), state.conversation.bytes);
    state.counters.is_window_counted &= gone == 0;
    gone > 0
}

/// Removes the messages after the opening, up to this one; `fault` is what is wrong with the notes of them.
pub(super) fn drop_until(state: &mut LoopState, until: usize, notes: Option<&str>, fault: Option<NotesFault>) {
    let conversation = &state.conversation;
    let before = usize::try_from(state.counters.messages_trimmed).unwrap_or(usize::MAX);
    let gone = until.saturating_sub(conversation.opening()).saturating_add(before);
    let said = fault.filter(|_| state.header.marks_cut_notes());
    let words = summary::stand_in(gone, notes, said, &state.memory);
    state.counters.notes.add(notes.is_some(), fault);
    let gone = state.conversation.let_go(until, &words);
    let gone = u32::try_from(gone).unwrap_or(u32::MAX);
    state.counters.messages_trimmed = state.counters.messages_trimmed.saturating_add(gone);
    let bytes = state.conversation.bytes;
    state.counters.window = (state.counters.estimator.tokens(bytes), bytes);
    state.counters.is_window_counted = false;
}

/// Whether a message is the model's own.
fn is_own(role: Role) -> bool {
    role == Role::Assistant
}
