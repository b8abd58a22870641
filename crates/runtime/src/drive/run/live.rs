//! A reply while it arrives: what a listener hears of it, at a bounded rate, and without the project's secrets.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::super::clock;
use super::super::model::PartialReply;
use super::super::secret::GrowingScrubber;
use loopctl_engine::notice::{Listener, Notice};
use loopctl_engine::token_estimator::TokenEstimator;

/// The shortest time between two notices.
const EVERY: Duration = Duration::from_millis(100);
/// For each of these bytes of text, that time is added once more: each notice reads the whole text again.
const FOR_BYTES: usize = 32 * 1024;
/// The most text of a reply that is passed on, in bytes; after that only the tokens are counted.
const MAX_TEXT: usize = 256 * 1024;
/// The longest text of one notice, in bytes.
const MAX_PIECE: usize = 16 * 1024;

/// Reports a reply to a listener while it arrives.
pub(super) struct ReplyReporter<'a> {
    pub listener: &'a dyn Listener,
    pub iteration: u32,
    pub estimator: &'a TokenEstimator,
    pub scrubber: GrowingScrubber,
    state: Mutex<AttemptState>,
}

/// What has come of an attempt, and what the listener has of it.
struct AttemptState {
    number: u32,
    /// The text, as the provider sent it.
    text: String,
    written: usize,
    /// What the provider counted last, and how much was written then.
    counted: Option<(u64, usize)>,
    first_ms: Option<u64>,
    /// Whether the time to the first token was reported.
    is_timed: bool,
    /// How much of the text without secrets was passed on, in bytes.
    passed: usize,
    /// The tokens of the last notice; none when there was none.
    reported: Option<u64>,
    /// When the next notice may come.
    due_at: Option<Instant>,
    /// Whether something came since the last one.
    is_new: bool,
}

impl AttemptState {
    fn new(number: u32) -> Self {
        Self {
            number,
            text: String::new(),
            written: 0,
            counted: None,
            first_ms: None,
            is_timed: false,
            passed: 0,
            reported: None,
            due_at: None,
            is_new: false,
        }
    }

    /// The tokens so far, and whether they are estimated.
    fn tokens(&self, estimator: &TokenEstimator) -> (u64, bool) {
        let (counted, at) = self.counted.unwrap_or_default();
        let since = self.written.saturating_sub(at);
        (counted.saturating_add(estimator.tokens(since)), since > 0 || self.counted.is_none())
    }
}

impl<'a> ReplyReporter<'a> {
    pub fn new(
        listener: &'a dyn Listener,
        iteration: u32,
        estimator: &'a TokenEstimator,
        scrubber: GrowingScrubber,
    ) -> Self {
        Self { listener, iteration, estimator, scrubber, state: Mutex::new(AttemptState::new(1)) }
    }

    fn state(&self) -> MutexGuard<'_, AttemptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what has come.
    pub fn take(&self, reply: PartialReply<'_>) {
        let mut state = self.state();
        let room = reply.text.floor_char_boundary(MAX_TEXT);
        if let Some(more) = reply.text.get(state.text.len()..room.max(state.text.len())) {
            state.text.push_str(more);
        }
        state.written = reply.written;
        let counted = state.counted.map(|(counted, _)| counted);
        if let Some(tokens) = reply.output_tokens.filter(|tokens| Some(*tokens) != counted) {
            state.counted = Some((tokens, reply.written));
        }
        state.first_ms = Some(reply.time_to_first_token_ms);
        state.is_new = true;
        if state.due_at.is_none_or(|due_at| due_at <= clock::instant()) {
            self.pass_on(&mut state);
        }
    }

    /// The attempt failed: what follows is of the next one. A listener hears at once that what it has is void.
    pub fn start_again(&self) {
        let mut state = self.state();
        let was_heard = state.reported.is_some();
        *state = AttemptState::new(state.number.saturating_add(1));
        if was_heard && self.listener.wants_deltas() {
            self.report(&mut state, "", false);
        }
    }

    /// The reply is complete; `text` is that of one which did not come in pieces.
    pub fn finish(&self, text: &str) {
        let mut state = self.state();
        // A reply that did not come in pieces is reported as a whole, elsewhere.
        if state.reported.is_none() || !self.listener.wants_deltas() {
            return;
        }
        let text = if state.text.is_empty() { text.to_owned() } else { std::mem::take(&mut state.text) };
        // One that was cut may end within a secret.
        let is_whole = text.len() < MAX_TEXT.saturating_sub(3);
        let clean = if is_whole { self.scrubber.whole(&text) } else { self.scrubber.settled(&text) };
        self.pass_text(&mut state, &clean);
        self.report(&mut state, "", true);
    }

    /// Waits for the reply, and passes on in the meantime what could not be passed on when it came.
    pub async fn while_waiting<T>(&self, reply: impl Future<Output = T>) -> T {
        let mut reply = pin!(reply);
        let mut timer: Option<(Instant, Pin<Box<Sleep>>)> = None;
        poll_fn(|context| {
            if let Poll::Ready(reply) = reply.as_mut().poll(context) {
                return Poll::Ready(reply);
            }
            loop {
                let Some(due_at) = self.next_due_at() else { return Poll::Pending };
                if timer.as_ref().is_none_or(|(set_for, _)| *set_for != due_at) {
                    let left = due_at.saturating_duration_since(clock::instant());
                    timer = Some((due_at, Box::pin(tokio::time::sleep(left))));
                }
                let fired = timer.as_mut().is_some_and(|(_, timer)| timer.as_mut().poll(context).is_ready());
                if !fired {
                    return Poll::Pending;
                }
                self.pass_on(&mut self.state());
            }
        })
        .await
    }

    /// When what came must be passed on; none when all of it was.
    fn next_due_at(&self) -> Option<Instant> {
        let state = self.state();
        state.due_at.filter(|_| state.is_new)
    }

    /// Passes on what is settled.
    fn pass_on(&self, state: &mut AttemptState) {
        state.is_new = false;
        let times = u32::try_from(state.text.len() / FOR_BYTES).unwrap_or(u32::MAX);
        state.due_at = clock::instant().checked_add(EVERY.saturating_mul(times.saturating_add(1)));
        // Whoever comes later hears it from the start.
        if !self.listener.wants_deltas() {
            return;
        }
        let text = std::mem::take(&mut state.text);
        let before = state.passed;
        self.pass_text(state, &self.scrubber.settled(&text));
        state.text = text;
        let (tokens, _) = state.tokens(self.estimator);
        if state.passed == before && state.reported != Some(tokens) {
            self.report(state, "", false);
        }
    }

    /// Passes on what follows of a text without secrets.
    fn pass_text(&self, state: &mut AttemptState, clean: &str) {
        let mut rest = clean.get(state.passed..).unwrap_or_default();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
            state.passed = state.passed.saturating_add(piece.len());
            self.report(state, piece, false);
            rest = after;
        }
    }

    fn report(&self, state: &mut AttemptState, text: &str, last: bool) {
        let (output_tokens, estimated) = state.tokens(self.estimator);
        state.reported = Some(output_tokens);
        let first_ms = state.first_ms.filter(|_| !state.is_timed);
        state.is_timed |= first_ms.is_some();
        self.listener.on(Notice::ModelDelta {
            iteration: self.iteration,
            attempt: state.number,
            text: text.to_owned(),
            output_tokens,
            estimated,
            time_to_first_token_ms: first_ms,
            last,
        });
    }
}

#[cfg(test)]
mod tests;
