//! Limits: the checks before the model is asked again, and what happens at a limit.

use super::budget;
use super::conversation::Role;
use super::dialect;
use super::history::{self, Length};
use super::next::Next;
use super::outcome::{Limit, RunError};
use super::reply::window;
use super::state::{LoopState, StateHead};
use loopctl_lang::language::react::{OnLimit, defaults};
use loopctl_lang::program::flow::FlowProgram;
use loopctl_lang::program::{LoopProgram, Program, ProgramHead};

/// How often a request is made shorter and sent again, when the provider said how long it may be.
const REFUSALS: u32 = 4;

/// After an iteration: the model is asked again, unless a limit is reached. If the history is too long, it is
/// shortened first.
pub(super) fn think(program: &LoopProgram, state: &mut LoopState) -> Next {
    loop {
        if let Some(limit) = spent(program, state) {
            return Next::Limit(limit);
        }
        match history::look(program, state) {
            Length::Fits => return Next::Ask { forced: None },
            Length::Full if history::is_last(state) && history::shorten(program, state) => {}
            Length::Full => return Next::Limit(Limit::Context),
            Length::Over { until, summed: true } => return summarize(state, until),
            Length::Over { until, summed: false } => history::drop_until(state, until, None, None),
        }
    }
}

/// The model is asked for notes of what goes: a request of its own.
fn summarize(state: &mut LoopState, until: usize) -> Next {
    state.watch.paid_before_summary = std::mem::take(&mut state.watch.paid);
    Next::Summarize { until }
}

/// The limits that a document sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentLimits<'p> {
    /// Its time and its budget.
    pub head: &'p ProgramHead,
    /// Whether it is a loop: a workflow has no iterations.
    pub has_iterations: bool,
    max_iterations: u32,
}

impl<'p> From<&'p LoopProgram> for DocumentLimits<'p> {
    fn from(program: &'p LoopProgram) -> Self {
        Self { head: &program.head, has_iterations: true, max_iterations: program.properties.max_iterations }
    }
}

impl<'p> From<&'p FlowProgram> for DocumentLimits<'p> {
    /// A workflow has no iterations. In a run of an older edition, a raised limit is compared with the default of a loop, as it was:
    /// journals hold such limits.
    fn from(program: &'p FlowProgram) -> Self {
        Self { head: &program.head, has_iterations: false, max_iterations: defaults::max_iterations() }
    }
}

impl<'p> From<&'p Program> for DocumentLimits<'p> {
    fn from(program: &'p Program) -> Self {
        match program {
            Program::Loop(program) => program.into(),
            Program::Flow(program) => program.into(),
        }
    }
}

impl DocumentLimits<'_> {
    /// The most iterations of the run.
    pub fn max_iterations(self, state: &StateHead) -> u32 {
        state.limits.max_iterations.unwrap_or(self.max_iterations)
    }
}

/// The limit that is reached, if any; the window is checked by the history.
pub(super) fn spent<'p>(limits: impl Into<DocumentLimits<'p>>, state: &StateHead) -> Option<Limit> {
    let limits = limits.into();
    if state.counters.iterations >= limits.max_iterations(state) {
        return Some(Limit::MaxIterations);
    }
    if state.now.active_ms >= state.timeout_ms() {
        return Some(Limit::Timeout);
    }
    budget::is_spent(limits.head, state).then_some(Limit::Budget)
}

/// The provider reports that the request is too long: it is shortened, and sent again. Once, when the provider does not
/// say how long it may be.
pub(super) fn too_long(program: &LoopProgram, state: &mut LoopState, refused: LengthRefusal) -> Next {
    let is_new = refused.learn(state);
    if let Some(limit) = spent(program, state) {
        return Next::Limit(limit);
    }
    if state.watch.too_long > most_refusals(state) {
        return Next::Limit(Limit::Context);
    }
    if is_new {
        // The length of the request is judged anew: perhaps a shorter reply is enough.
        return Next::Think;
    }
    let all = state.counters.estimator.tokens(state.conversation.bytes);
    let bound = window::of_request(program, state).filter(|_| state.watch.window.is_some());
    match history::too_long(program, state, bound.unwrap_or(u64::MAX).min(all)) {
        Length::Over { until, summed: true } => summarize(state, until),
        Length::Over { until, summed: false } => {
            history::drop_until(state, until, None, None);
            Next::Think
        }
        Length::Full if history::is_last(state) && history::shorten(program, state) => Next::Think,
        Length::Full | Length::Fits => Next::Limit(Limit::Context),
    }
}

/// The same of the last call, which is sent again only when the provider said how long it may be.
pub(super) fn last_too_long(
    program: &LoopProgram,
    state: &mut LoopState,
    limit: Limit,
    refused: LengthRefusal,
) -> Next {
    let is_new = refused.learn(state);
    let may = refused.window.is_some() && state.watch.too_long <= most_refusals(state);
    if may && (history::make_room(program, state, true) || is_new) {
        return Next::Ask { forced: Some(limit) };
    }
    failed(program, state, Limit::Context)
}

/// What a refusal of a request that was too long said of its length.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LengthRefusal {
    /// The window of the run's model in tokens.
    pub window: Option<u64>,
    /// The tokens of the request.
    pub prompt: Option<u64>,
}

impl LengthRefusal {
    /// Counts the refusal, and remembers what it said. Returns whether the window was not known before.
    fn learn(self, state: &mut LoopState) -> bool {
        let before = window::tokens(state);
        window::learn(state, self.window, self.prompt);
        state.watch.too_long = state.watch.too_long.saturating_add(1);
        window::tokens(state) != before
    }
}

/// How often a request is made shorter and sent again.
fn most_refusals(state: &LoopState) -> u32 {
    if state.watch.window.is_some() { REFUSALS } else { 1 }
}

/// A limit is reached: the run fails, or one last call must answer. A sub-run whose caller has nothing left
/// gets no last call: with one at each level of nested loops, they would exceed the budget together.
pub(super) fn reached(program: &LoopProgram, state: &mut LoopState, limit: Limit) -> Next {
    if program.properties.on_limit == OnLimit::Fail || budget::is_spent_for_the_caller(state) {
        return failed(program, state, limit);
    }
    // One that is long is sent anyway: the provider says whether it fits.
    let _ = history::make_room(program, state, limit == Limit::Context);
    let words = dialect::forced_question(program.properties.dialect, words(limit));
    state.conversation.push(Role::User, words);
    state.watch.last_call = Some(limit);
    state.watch.paid.end();
    Next::Ask { forced: Some(limit) }
}

/// The last call gave an empty reply: the model is asked once more.
pub(super) fn ask_again(program: &LoopProgram, state: &mut LoopState, limit: Limit, why: &str) -> Next {
    let words = dialect::forced_question(program.properties.dialect, words(limit));
    state.conversation.push(Role::User, format!("{why}\n\n{words}"));
    Next::Ask { forced: Some(limit) }
}

/// The run fails because of a limit.
pub(super) fn failed(program: &LoopProgram, state: &LoopState, limit: Limit) -> Next {
    let (code, message) = match limit {
        Limit::MaxIterations => {
            let most = DocumentLimits::from(program).max_iterations(state);
            let noun = if most == 1 { "iteration" } else { "iterations" };
            ("max_iterations", format!("{most} {noun} passed without an answer"))
        }
        Limit::Timeout => {
            let waited = state.watch.in_line.as_ref().map(|waited| format!(": {waited}")).unwrap_or_default();
            ("timeout", format!("{} ms of active time passed without an answer{waited}", state.timeout_ms()))
        }
        Limit::Context => ("context", context_words(program, state)),
        Limit::Budget => ("budget", "the run's budget is spent".to_owned()),
    };
    let message = match state.last_refusal() {
        Some(why) => format!("{message}; {why}"),
        None => message,
    };
    // A timeout may not happen again; the other limits will be reached again.
    let error = RunError { code: code.to_owned(), message, retryable: limit == Limit::Timeout, step: None };
    Next::fail(state, limit.into(), error)
}

/// Why the conversation does not fit, and what to write.
fn context_words(program: &LoopProgram, state: &LoopState) -> String {
    let what = "the conversation no longer fits the model's window";
    let (reply, request) = (window::max_tokens(program, state), history::next_request(state));
    let model = &state.header.model.name;
    match (state.watch.window, state.header.model.context_tokens) {
        (Some(window), _) => format!(
            "{what}: its server showed a window of {window} tokens; the next request has about {request}, and {reply} are \
             kept for the reply. Start the server with a larger window, or give the loop fewer tools, shorter texts or a \
             smaller `max_tokens`; with \"context_tokens\": {window} of the model {model:?} in loopctl.json, the window is \
             known before the first request"
        ),
        (None, Some(window)) => format!(
            "{what}: `context_tokens` of the model {model:?} is {window}; the next request has about {request} tokens, and \
             {reply} are kept for the reply"
        ),
        (None, None) => format!(
            "{what}, and its size is not known: write it as `context_tokens` of the model {model:?} in loopctl.json"
        ),
    }
}

fn words(limit: Limit) -> &'static str {
    match limit {
        Limit::MaxIterations => "all iterations are used",
        Limit::Timeout => "the time is over",
        Limit::Context => "the conversation is as long as it can be",
        Limit::Budget => "the budget is used",
    }
}
