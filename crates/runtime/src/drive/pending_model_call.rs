//! What a run does while its model is asked: whether it rests between two attempts, in which a stop need not wait for the
//! next one, and what the store must know of a run that only waits.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::clock;
use super::fault::Fault;
use super::gate::turns::{SlotOwner, TurnOwner};
use super::model_waits::{FailedRequest, PlaceOfWait, RunModelWait, ShownLine};
use super::spending::{CallToReserve, HeldReservations, NoRoom, SpendingGuard};
use super::stop::Stop;
use super::tool::Spent;
use crate::journal::{Journal, StoreError};
use loopctl_engine::budget;
use loopctl_engine::event::{AskedAttempt, FailedAttempt};

/// The most failed attempts of a call that its trace lists.
const MOST_KEPT_ATTEMPTS: usize = 100;

/// The first wait for calls under way that hold what a spending limit leaves; it doubles with each, with jitter.
const FIRST_WAIT_MS: u64 = 50;
const MAX_WAIT_MS: u64 = 2_000;

/// A wait in line that is shorter is not shown: the row of its run would be written twice for nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(2);
const MARKED_AFTER: Duration = Duration::from_millis(200);

/// The call of a model that a run waits for, from its first attempt to its reply.
pub struct PendingModelCall<'a> {
    /// Whether the last attempt failed and the next one is not due yet.
    is_resting: watch::Sender<bool>,
    /// What the attempts that failed have used: the call counts it when it returns, and nobody does when it is left.
    spent: Mutex<Spent>,
    /// The attempt that is under way, as it counts when nobody waits for its reply any longer.
    under_way: Mutex<Option<FailedAttempt>>,
    /// The attempts that failed and were followed by another one.
    attempts: Mutex<Vec<AskedAttempt>>,
    /// When the first of them began, in milliseconds since 1970.
    began_ms: i64,
    /// The store, and the run that asks.
    asking: (&'a Deaths, &'a str),
    /// When the time of the run, or of the call, is over.
    until: Option<Instant>,
    /// When the turn of a call of a tool must have come: its own time begins with its turn.
    turn_until: Option<Instant>,
    /// Why the store did not answer for the rate of the model.
    fault: Mutex<Option<StoreError>>,
    /// Where the status of the run finds that a model of one of its calls is asked again.
    shown: Option<RunModelWait<'a>>,
    /// Holds the run to the spending limits of its project; none without any.
    spending: Option<SpendingGuard<'a>>,
    /// Where its request waits for its turn, in words.
    line: Mutex<Option<String>>,
    /// How long its requests waited for their turns, in milliseconds.
    waited_ms: AtomicU64,
    /// When there is room in the spending limit that stopped the call, in milliseconds since 1970, if it is one that waits.
    room_at_ms: Mutex<Option<i64>>,
}

impl std::fmt::Debug for PendingModelCall<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PendingModelCall").field("is_resting", &self.is_resting).finish_non_exhaustive()
    }
}

impl<'a> PendingModelCall<'a> {
    /// That of this run.
    pub(super) fn of(deaths: &'a Deaths, run_id: &'a str) -> Self {
        let (is_resting, asking) = (watch::Sender::new(false), (deaths, run_id));
        Self {
            is_resting,
            spent: Mutex::default(),
            under_way: Mutex::default(),
            attempts: Mutex::default(),
            began_ms: clock::wall_ms(),
            asking,
            until: None,
            turn_until: None,
            fault: Mutex::default(),
            shown: None,
            spending: None,
            line: Mutex::default(),
            waited_ms: AtomicU64::new(0),
            room_at_ms: Mutex::default(),
        }
    }

    /// The same of a call, whose wait the status of its run shows.
    pub(super) fn shown(self, shown: RunModelWait<'a>) -> Self {
        Self { shown: Some(shown), ..self }
    }

    /// The same with this time for it.
    pub(super) fn within(self, time: Duration) -> Self {
        Self { until: clock::instant().checked_add(time), ..self }
    }

    /// The same with this time until the turn of a call of a tool.
    pub(super) fn in_turn_within(self, time: Duration) -> Self {
        Self { turn_until: clock::instant().checked_add(time), ..self }
    }

    /// The time that is left until the turn of a call of a tool must have come; none without a bound.
    pub(super) fn left_for_turn(&self) -> Option<Duration> {
        Some(self.turn_until?.saturating_duration_since(clock::instant()))
    }

    /// The same of a run that is held to spending limits.
    pub(super) fn limited(self, spending: Option<SpendingGuard<'a>>) -> Self {
        Self { spending, ..self }
    }

    /// Reserves what a call may spend. While calls under way hold what is left, it waits for them.
    pub(super) async fn reserve<'w>(
        wait: Option<&'w Self>,
        call: CallToReserve<'_>,
    ) -> Result<HeldReservations<'w>, NoRoom> {
        let Some(spending) = wait.and_then(|wait| wait.spending.as_ref()) else {
            return Ok(HeldReservations::default());
        };
        let (mut wait_ms, mut is_said) = (FIRST_WAIT_MS, false);
        let (began, mut shown) = (clock::instant(), None);
        loop {
            // Most calls are under no limit: their futures keep their size.
            match Box::pin(spending.try_to_reserve(call)).await {
                Ok(Some(held)) => return Ok(held),
                Ok(None) if wait_ms == MAX_WAIT_MS && !is_said => {
                    is_said = true;
                    spending.log_wait(&call.model.name);
                }
                Ok(None) => {}
                Err(none) => return Err(none),
            }
            if shown.is_none() && clock::elapsed(began) >= Self::shown_after(wait) {
                let place = PlaceOfWait::model(&call.model.name);
                let line = |wait: &'w Self| wait.in_line(place, "other calls hold what a limit leaves", None);
                shown = wait.and_then(line);
            }
            let pause = Duration::from_millis(fastrand::u64(wait_ms / 2..=wait_ms));
            let place = PlaceOfWait::model(&call.model.name);
            Self::wait_in_line(wait, place, Box::pin(clock::sleep(pause)).as_mut()).await;
            wait_ms = wait_ms.saturating_mul(2).min(MAX_WAIT_MS);
        }
    }

    /// Keeps when there is room in the spending limit that stopped the call.
    pub(super) fn wait_for_room(wait: Option<&Self>, room_at_ms: Option<i64>) {
        if let Some(wait) = wait {
            *wait.room_at_ms.lock().unwrap_or_else(PoisonError::into_inner) = room_at_ms;
        }
    }

    /// When there is room in the spending limit that stopped the call, in milliseconds since 1970; none for a limit that fails runs.
    pub(super) fn room_at_ms(&self) -> Option<i64> {
        *self.room_at_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the store answered for the spending limits, and for the rate of the model.
    ///
    /// # Errors
    /// The fault of the store: the run is left then.
    pub(super) fn sound(&self) -> Result<(), Fault> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        match fault.or_else(|| self.spending.as_ref().and_then(SpendingGuard::take_fault)) {
            Some(fault) => Err(Fault::Cut(fault)),
            None => Ok(()),
        }
    }

    /// An attempt of a call failed, and another one follows.
    pub(super) fn is_asked_again(&self, request: FailedRequest) {
        if let Some(shown) = &self.shown {
            shown.failed(request);
        }
    }

    /// An attempt failed, and used this.
    pub(super) fn failed(&self, attempt: Spent) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        *spent = spent.plus(attempt);
    }

    /// Keeps an attempt for the trace: why another one follows, and the wait before that.
    pub(super) fn keep_attempt(&self, reason: String, delay_ms: u64) {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() >= MOST_KEPT_ATTEMPTS {
            if let Some(last) = attempts.last_mut() {
                (last.reason, last.delay_ms) = ("more attempts failed, which are not listed".to_owned(), 0);
            }
            return;
        }
        let end_of = |last: &AskedAttempt| last.at_ms.saturating_add_unsigned(last.delay_ms);
        let at_ms = clock::wall_ms();
        let since_ms = attempts.last().map_or(self.began_ms, end_of);
        let duration_ms = u64::try_from(at_ms.saturating_sub(since_ms)).unwrap_or(0);
        attempts.push(AskedAttempt { at_ms, reason, duration_ms, delay_ms });
    }

    /// The attempts for the trace.
    pub(super) fn take_attempts(&self) -> Vec<AskedAttempt> {
        std::mem::take(&mut *self.attempts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the attempts of a call have used that is left: those that failed, and at most the one that is under way.
    pub(super) fn spent(&self) -> Spent {
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(FailedAttempt { usage: Some(tokens), price, at_most, .. }) = self.take_under_way() else {
            return spent;
        };
        let cost_usd = price.map(|price| budget::cost_usd(tokens, price));
        spent.plus(Spent { tokens: Some(tokens), cost_usd, estimated: false, at_most })
    }

    /// A request is sent.
    pub(super) fn is_under_way(wait: Option<&Self>, lost: FailedAttempt) {
        if let Some(wait) = wait {
            *wait.under_way.lock().unwrap_or_else(PoisonError::into_inner) = Some(lost);
        }
    }

    /// What became of it is known.
    pub(super) fn is_over(wait: Option<&Self>) {
        if let Some(wait) = wait {
            wait.take_under_way();
        }
    }

    /// The request that is under way, when nobody waits for its reply any longer.
    pub(super) fn take_under_way(&self) -> Option<FailedAttempt> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits between two attempts.
    pub(super) async fn rest<T>(wait: Option<&Self>, pause: Pin<&mut impl Future<Output = T>>) -> T {
        let Some(Self { is_resting, .. }) = wait else { return pause.await };
        is_resting.send_replace(true);
        let after = pause.await;
        is_resting.send_replace(false);
        after
    }

    /// A request waits for its turn: if the process dies now, the run is not what it died of.
    pub(super) async fn only_waits(wait: Option<&Self>) {
        if let Some((deaths, run_id)) = wait.map(|wait| wait.asking) {
            deaths.only_waits(run_id).await;
        }
    }

    /// Waits for the turn of a request.
    pub(super) async fn wait_in_line<T>(
        wait: Option<&Self>,
        place: PlaceOfWait<'_>,
        turn: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        let Some(wait) = wait else { return turn.await };
        let began = clock::instant();
        wait.set_line(Some(place.in_words()));
        let turn = Self::rest(Some(wait), turn).await;
        wait.set_line(None);
        wait.waited_ms.fetch_add(clock::elapsed_ms(began), Ordering::Relaxed);
        turn
    }

    fn set_line(&self, line: Option<String>) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    /// How long its requests waited for their turns, in milliseconds.
    pub(super) fn waited_ms(wait: Option<&Self>) -> u64 {
        wait.map_or(0, |wait| wait.waited_ms.load(Ordering::Relaxed))
    }

    /// That its request waits for its turn, or did when it was left: in words.
    pub(super) fn line_in_words(&self) -> Option<String> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// After which wait the status of the run shows it. One that a crash would make uncertain is shown soon: the row then says that
    /// nothing of it was sent.
    pub(super) fn shown_after(wait: Option<&Self>) -> Duration {
        let shown = wait.and_then(|wait| wait.shown.as_ref());
        if shown.is_some_and(RunModelWait::is_of_uncertain_call) { MARKED_AFTER } else { SHOWN_AFTER }
    }

    /// A request is about to be sent.
    ///
    /// # Errors
    /// When the store does not take back that none was.
    pub(super) async fn is_to_be_sent(wait: Option<&Self>) -> Result<(), NoRoom> {
        let Some((wait, shown)) = wait.and_then(|wait| Some((wait, wait.shown.as_ref()?))) else { return Ok(()) };
        if !shown.is_of_uncertain_call() {
            return Ok(());
        }
        Box::pin(shown.is_to_be_sent()).await.map_err(|fault| wait.store_failed(fault))
    }

    /// For whom a request waits for its turn.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn asker(wait: Option<&Self>) -> Result<TurnOwner, NoRoom> {
        let Some(wait) = wait else { return Ok(TurnOwner { org: None, run: "".into() }) };
        let journal = wait.journal();
        match &wait.shown {
            Some(shown) => shown.asker(journal).await.map_err(|fault| wait.store_failed(fault)),
            None => Ok(TurnOwner { org: None, run: wait.asking.1.into() }),
        }
    }

    /// The run, with the lease that it is driven with.
    pub(super) fn slot_owner(&self) -> SlotOwner {
        let unknown = || SlotOwner { run_id: self.asking.1.to_owned(), fence: 0 };
        self.shown.as_ref().map_or_else(unknown, RunModelWait::slot_owner)
    }

    /// The store of the run.
    pub(super) fn journal(&self) -> &'a Arc<dyn Journal> {
        &self.asking.0.journal
    }

    /// The store does not answer for the turn of a call: the run is left.
    pub(super) fn store_failed(&self, fault: StoreError) -> NoRoom {
        let message = format!("the turn of the call can't be looked up: {fault}");
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        NoRoom { message, limit: None }
    }

    /// A request waits for so long. Where the run, or the call, has no time for that, the log and the status say so until the answer is
    /// dropped.
    pub(super) fn has_no_time_for(&self, time: Duration, place: PlaceOfWait<'_>) -> Option<ShownLine<'_>> {
        let until = if place.of.is_model() { self.until } else { self.turn_until };
        let left = until?.saturating_duration_since(clock::instant());
        if time <= left {
            return None;
        }
        let (run_id, wait_ms) = (self.asking.1, u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let (of, name) = (place.of.word(), place.name);
        tracing::warn!(
            run_id,
            of,
            name,
            wait_ms,
            "a request waits for its turn for longer than its run or call has time"
        );
        self.in_line(place, "its rate is used up for longer than the run or call has time", Some(time))
    }

    /// A request waits for its turn: the status of the run shows it until the answer is dropped.
    pub(super) fn in_line(&self, place: PlaceOfWait<'_>, kind: &str, left: Option<Duration>) -> Option<ShownLine<'_>> {
        self.shown.as_ref().map(|shown| shown.in_line(place, kind, left))
    }

    /// Makes an attempt. Once its request is built and the answer has not come at once, the run only waits: if the process
    /// dies now, the run is not what it died of.
    pub(super) async fn attempt<T>(wait: Option<&Self>, mut attempt: Pin<&mut impl Future<Output = T>>) -> T {
        let Some((deaths, run_id)) = wait.map(|wait| wait.asking) else { return attempt.await };
        let first = poll_fn(|context| Poll::Ready(attempt.as_mut().poll(context))).await;
        if let Poll::Ready(answer) = first {
            return answer;
        }
        deaths.only_waits(run_id).await;
        attempt.await
    }

    /// Waits until a stop is requested while no attempt is under way.
    pub(super) async fn stopped(&self, stop: Option<&Stop>) {
        if let Some(stop) = stop {
            stop.asked().await;
            let mut is_resting = self.is_resting.subscribe();
            if is_resting.wait_for(|is_resting| *is_resting).await.is_ok() {
                return;
            }
        }
        std::future::pending().await
    }
}

/// The deaths of processes that runs of this one were in: a run that waits for its model, or for its next attempt, is not their cause.
pub struct Deaths {
    journal: Arc<dyn Journal>,
    /// Whether a run was resumed here whose drivers died with it.
    are_known: AtomicBool,
    /// By the ids of runs, how many of their tools are called right now.
    calls: Mutex<BTreeMap<String, u32>>,
}

impl Deaths {
    /// No deaths so far.
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, are_known: AtomicBool::new(false), calls: Mutex::default() }
    }

    /// A run is resumed whose drivers died, as many as this.
    pub(super) fn resumed_after(&self, failed_take_ups: u32) {
        if failed_take_ups > 0 {
            self.are_known.store(true, Ordering::SeqCst);
        }
    }

    /// A tool of a run is called, until the answer is dropped: it may be what ends the process.
    pub(super) fn calls(&self, run_id: &str) -> Option<CallUnderWay<'_>> {
        if !self.are_known.load(Ordering::SeqCst) {
            return None;
        }
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = calls.entry(run_id.to_owned()).or_default();
        *calls = calls.saturating_add(1);
        Some(CallUnderWay { deaths: self, run_id: run_id.to_owned() })
    }

    /// A run waits for a model's answer, or for the next attempt at a call: if the process dies now, it is not what it died of.
    pub(super) async fn only_waits(&self, run_id: &str) {
        if self.are_known.load(Ordering::SeqCst) {
            Box::pin(self.absolve(run_id)).await;
        }
    }

    /// Forgets the deaths of a run, and of those that called it, unless a tool of one of them is being called.
    async fn absolve(&self, run_id: &str) {
        let callers = run_id.match_indices('.').filter_map(|(at, _)| run_id.get(..at));
        let waiting: Vec<String> =
            callers.chain([run_id]).filter(|id| !self.has_calls(id)).map(str::to_owned).collect();
        if let Err(fault) = self.journal.absolve(waiting).await {
            tracing::debug!(run_id, code = fault.code(), "the store does not know that this run only waits: {fault}");
        }
    }

    /// Whether a tool of the run or of one below it is being called.
    fn has_calls(&self, run_id: &str) -> bool {
        let is_below =
            |id: &String| id.strip_prefix(run_id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).keys().any(is_below)
    }
}

/// A call of a tool that is under way.
pub struct CallUnderWay<'a> {
    deaths: &'a Deaths,
    run_id: String,
}

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        let mut calls = self.deaths.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = calls.get_mut(&self.run_id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                calls.remove(&self.run_id);
            }
        }
    }
}
