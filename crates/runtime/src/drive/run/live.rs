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
use crate::drive::notices::report;
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
        let delta = Notice::ModelDelta {
            iteration: self.iteration,
            attempt: state.number,
            text: text.to_owned(),
            output_tokens,
            estimated,
            time_to_first_token_ms: first_ms,
            last,
        };
        report(self.listener, delta);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::drive::clock::played::{self, PlayedClock};
    use crate::drive::secret::Vault;

    /// Keeps what it hears.
    #[derive(Default)]
    struct Heard {
        notices: Mutex<Vec<Notice>>,
        is_away: AtomicBool,
    }

    impl Listener for Heard {
        fn on(&self, notice: Notice) {
            self.notices.lock().unwrap().push(notice);
        }

        fn wants_deltas(&self) -> bool {
            !self.is_away.load(Ordering::SeqCst)
        }
    }

    impl Heard {
        /// The texts, tokens and times since the last call.
        fn since(&self) -> Vec<(u32, String, u64, Option<u64>)> {
            let notices = std::mem::take(&mut *self.notices.lock().unwrap());
            let read = |notice| match notice {
                Notice::ModelDelta { attempt, text, output_tokens, time_to_first_token_ms, .. } => {
                    (attempt, text, output_tokens, time_to_first_token_ms)
                }
                other => panic!("{other:?}"),
            };
            notices.into_iter().map(read).collect()
        }
    }

    fn partial(text: &str) -> PartialReply<'_> {
        PartialReply { text, written: text.len(), output_tokens: None, time_to_first_token_ms: 7 }
    }

    fn live<'a>(heard: &'a Heard, estimator: &'a TokenEstimator, secret: Option<&str>) -> ReplyReporter<'a> {
        let vault = Vault::new(BTreeMap::new(), Path::new("/"));
        if let Some(secret) = secret {
            vault.keep("key", &secrecy::SecretString::from(secret)).unwrap();
        }
        ReplyReporter::new(heard, 3, estimator, vault.growing())
    }

    fn waits(ms: u64) {
        assert!(played::wait(Duration::from_millis(ms)));
    }

    #[test]
    fn pieces_come_at_a_bounded_rate_and_none_is_lost() {
        let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, None);
        live.take(partial("It "));
        assert_eq!(heard.since(), [(1, "It ".to_owned(), 1, Some(7))], "the first one at once, with its time");
        for text in ["It is", "It is the", "It is the cable"] {
            live.take(partial(text));
        }
        assert_eq!(heard.since(), [], "less than 100 ms later");
        waits(100);
        live.take(partial("It is the cable,"));
        assert_eq!(heard.since(), [(1, "is the cable,".to_owned(), 4, None)]);
        live.take(partial("It is the cable, yes."));
        // What the engine reads of it may be spelled otherwise.
        live.finish("It is the cable; yes.");
        let end = heard.since();
        assert_eq!(end.iter().map(|(_, text, ..)| text.as_str()).collect::<String>(), " yes.");
    }

    #[test]
    fn a_second_of_tokens_gives_at_most_ten_notices() {
        let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, None);
        let text = "ab ".repeat(1_000);
        for tokens in 1..=1_000 {
            live.take(partial(&text[..tokens * 3]));
            waits(1);
        }
        assert!(heard.since().len() <= 10);
        // The longer the text, the longer the time between two notices: each reads it all again.
        let text = "ab ".repeat(200_000);
        waits(10_000);
        live.take(partial(&text[..120_000]));
        let before = heard.since();
        assert!(before.iter().all(|(_, text, ..)| text.len() <= 16 * 1024), "bounded, too");
        waits(300);
        live.take(partial(&text[..121_000]));
        assert_eq!(heard.since(), []);
        waits(200);
        live.take(partial(&text[..122_000]));
        assert_eq!(heard.since()[0].1.len(), 2_000);
        // Beyond the longest text only the tokens continue.
        waits(10_000);
        live.take(partial(&text));
        let all: usize = heard.since().iter().map(|(_, text, ..)| text.len()).sum();
        assert_eq!(all, 256 * 1024 - 122_000);
        live.finish(&text);
        assert_eq!(heard.since(), [(1, String::new(), 150_000, None)]);
    }

    #[test]
    fn another_attempt_makes_what_was_heard_void_at_once() {
        let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, None);
        live.start_again();
        assert_eq!(heard.since(), [], "nothing was heard that could be void");
        live.take(partial("cut off"));
        live.start_again();
        live.take(partial("whole"));
        let heard = heard.since();
        assert_eq!(heard[0], (2, "cut off".to_owned(), 2, Some(7)));
        assert_eq!(heard[1..], [(3, String::new(), 0, None), (3, "whole".to_owned(), 2, Some(7))]);
    }

    #[test]
    fn tokens_are_the_providers_count_and_an_estimate_of_what_came_since() {
        let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, None);
        let at = |written, output_tokens| {
            live.take(PartialReply { text: "", written, output_tokens, time_to_first_token_ms: 7 });
            waits(100);
            let notices = std::mem::take(&mut *heard.notices.lock().unwrap());
            notices
                .iter()
                .map(|notice| match notice {
                    Notice::ModelDelta { output_tokens, estimated, .. } => (*output_tokens, *estimated),
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(at(400, None), [(100, true)], "reasoning and calls count, and show no text");
        assert_eq!(at(800, Some(150)), [(150, false)]);
        assert_eq!(at(800, Some(150)), [], "nothing new");
        assert_eq!(at(1_200, Some(150)), [(250, true)]);
    }

    #[test]
    fn a_secret_in_pieces_is_held_back_until_it_can_be_labelled() {
        let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, Some("s3cr3t-value"));
        let whole = "The key is s3cr3t-value, as you know.";
        for end in 1..=whole.len() {
            live.take(partial(&whole[..end]));
            waits(100);
        }
        live.finish(whole);
        let text: String = heard.since().into_iter().map(|(_, text, ..)| text).collect();
        assert_eq!(text, "The key is [secret key], as you know.");
    }

    #[test]
    fn a_listener_that_is_away_costs_nothing_and_then_hears_all() {
        let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, None);
        heard.is_away.store(true, Ordering::SeqCst);
        live.take(partial("It is"));
        heard.is_away.store(false, Ordering::SeqCst);
        assert_eq!(heard.since(), []);
        waits(100);
        live.take(partial("It is the cable"));
        assert_eq!(heard.since(), [(1, "It is the cable".to_owned(), 4, Some(7))]);
    }

    #[tokio::test]
    async fn what_came_is_passed_on_although_nothing_follows() {
        let (heard, estimator) = (Heard::default(), TokenEstimator::default());
        let live = live(&heard, &estimator, None);
        // The reply never ends; the wait does when the second piece was heard.
        let reply = async {
            live.take(partial("It "));
            live.take(partial("It is"));
            std::future::pending::<()>().await;
        };
        let all_heard = async {
            while heard.notices.lock().unwrap().len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = live.while_waiting(reply) => {}
            () = all_heard => {}
        }
        assert_eq!(heard.since()[1].1, "is");
    }
}
