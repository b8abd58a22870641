//! The gate before a model: no more requests at once than `max_connections`, and than the process has descriptors for; no more in a minute
//! than its `rate` allows; and none while its server asked for a wait. Organisations are let in by turns, within one its runs, and
//! within a run who comes first. A request that waits here is none yet: it costs no attempt, and no usage counts it.

mod door;
mod rate_turn;
pub(in crate::drive) mod turns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::spending::NoRoom;
use crate::drive::{clock, descriptors};
use door::Door;
use loopctl_engine::event::Tokens;
use loopctl_lang::language::Project;
use loopctl_lang::language::model_rate::ModelRate;
use rate_turn::{LastShare, RateTurn};
use turns::TurnOwner;

const RATE_IS_USED_UP: &str = "its rate is used up";

/// The wait between two requests that waited because their server asked for it, and for how long there is one: together they would be too
/// many again.
const SPACING: Duration = Duration::from_millis(10);
const SPACED_FOR: Duration = Duration::from_secs(10);

/// The requests to servers of models that this process may have open at once.
fn own_requests() -> &'static Semaphore {
    static OPEN: OnceLock<Semaphore> = OnceLock::new();
    OPEN.get_or_init(|| Semaphore::new(descriptors::requests(descriptors::limit())))
}

/// The gates of the models of projects, by the folders of these. They outlive a project that is read again: what waits at a gate then is
/// let in by what the project says now.
#[derive(Default)]
pub struct ModelGates(Mutex<BTreeMap<(PathBuf, String), Arc<ModelGate>>>);

/// The requests that wait for their turn at a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQueue {
    /// The name of the model.
    pub model: String,
    /// How many they are.
    pub requests: usize,
    /// Since when the oldest of them waits, in milliseconds since 1970.
    pub since_ms: i64,
}

impl std::fmt::Debug for ModelGates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ModelGates").finish_non_exhaustive()
    }
}

impl ModelGates {
    /// The gates are those of this project from now on.
    pub fn read(&self, project: &Project, root: &Path) {
        for (name, model) in &project.models {
            let max_connections = model.max_connections.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
            let gate = self.of(root, name);
            gate.state.send_modify(|state| (state.max_connections, state.rate) = (max_connections, model.rate));
            // The model of this name may be another one now.
            gate.hold.send_replace(None);
        }
    }

    /// The gate of a model.
    pub(in crate::drive) fn of(&self, root: &Path, name: &str) -> Arc<ModelGate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry((root.to_owned(), name.to_owned())).or_default())
    }

    /// Where requests wait.
    pub fn queues(&self) -> Vec<ModelQueue> {
        let gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = |((_, model), gate): (&(PathBuf, String), &Arc<ModelGate>)| {
            let state = gate.state.borrow();
            let since_ms = *state.waiting.values().next()?;
            Some(ModelQueue { model: model.clone(), requests: state.waiting.len(), since_ms })
        };
        gates.iter().filter_map(queue).collect()
    }
}

/// The gate of a model.
#[derive(Default)]
pub(in crate::drive) struct ModelGate {
    door: Door,
    state: watch::Sender<GateState>,
    /// The wait that its server asked for last. By itself, because all that wait look at it.
    hold: watch::Sender<Option<ServerHold>>,
}

/// A time in which the server of a model wants no request.
#[derive(Debug, Clone, Copy)]
struct ServerHold {
    since: Instant,
    until: Instant,
}

impl ServerHold {
    /// How long it lasts from now on.
    fn left(self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(clock::instant());
        (!left.is_zero()).then_some(left)
    }

    /// Whether it lasts, or lasted until a moment ago.
    fn is_spaced(self) -> bool {
        clock::elapsed(self.until) < SPACED_FOR
    }
}

/// Why a request is not let in.
pub(in crate::drive) enum NotLetIn {
    /// The store does not answer.
    NoStore(NoRoom),
    /// Its server wants no request for this time, which is longer than the request waits.
    Held(Duration),
}

impl From<NoRoom> for NotLetIn {
    fn from(none: NoRoom) -> Self {
        Self::NoStore(none)
    }
}

#[derive(Debug, Default)]
struct GateState {
    max_connections: Option<usize>,
    rate: Option<ModelRate>,
    /// What the last request took of it.
    last: Option<LastShare>,
    /// How many requests have given back a part of what they took.
    given_back: u64,
    /// The requests that are open.
    open: usize,
    /// Since when those that wait do, in milliseconds since 1970, by their numbers.
    waiting: BTreeMap<u64, i64>,
    /// The number of the next one that waits.
    next: u64,
}

impl GateState {
    fn has_room(&self) -> bool {
        self.max_connections.is_none_or(|most| self.open < most)
    }
}

/// A request that may be sent; dropping this makes room for the next one.
pub(in crate::drive) struct GatePass {
    gate: Arc<ModelGate>,
    _descriptor: Option<SemaphorePermit<'static>>,
    /// What it took of the rate of the model.
    rate: Option<Box<RateTurn>>,
}

impl GatePass {
    /// The request is sent.
    pub fn sent(&mut self) {
        if let Some(rate) = &mut self.rate {
            rate.sent();
        }
    }

    /// Whether what the request used counts for a rate.
    pub fn counts_tokens(&self) -> bool {
        self.rate.is_some()
    }

    /// What the request used is known.
    pub fn settle(mut self, used: Tokens) {
        if let Some(rate) = self.rate.take()
            && rate.settle(used.input.saturating_add(used.output))
        {
            self.gate.state.send_modify(|state| state.given_back = state.given_back.wrapping_add(1));
        }
    }
}

/// A request that is to be sent.
#[derive(Clone, Copy)]
pub(in crate::drive) struct GateRequest<'a> {
    /// The name of the model, and its provider's own id.
    pub model: &'a str,
    pub id: &'a str,
    /// Whether it takes a descriptor of this process.
    pub is_sent: bool,
    /// The most tokens that it may use.
    pub tokens: u64,
    /// How long it waits for a server that wants no request: after that, it is as one that failed.
    pub patience: Duration,
    /// The call of the run: what interrupts it ends the wait.
    pub wait: Option<&'a PendingModelCall<'a>>,
}

impl GateRequest<'_> {
    /// The account of the rate of its model.
    fn account(&self) -> String {
        format!("rate {} {}", self.model, self.id)
    }
}

impl Drop for GatePass {
    fn drop(&mut self) {
        self.gate.state.send_if_modified(|state| {
            state.open = state.open.saturating_sub(1);
            !state.waiting.is_empty()
        });
    }
}

/// The turn of a request in the rate of its model.
enum TurnInRate {
    NoRate,
    Taken(Box<RateTurn>),
}

impl TurnInRate {
    fn taken(self) -> Option<Box<RateTurn>> {
        match self {
            Self::NoRate => None,
            Self::Taken(turn) => Some(turn),
        }
    }
}

/// A place in the line before a gate, until it is dropped.
struct WaitingNumber<'g> {
    gate: &'g ModelGate,
    number: u64,
}

impl<'g> WaitingNumber<'g> {
    fn last(gate: &'g ModelGate) -> Self {
        let mut number = 0;
        gate.state.send_if_modified(|state| {
            number = state.next;
            state.next = state.next.wrapping_add(1);
            state.waiting.insert(number, clock::wall_ms());
            false
        });
        Self { gate, number }
    }
}

impl Drop for WaitingNumber<'_> {
    fn drop(&mut self) {
        self.gate.state.send_if_modified(|state| {
            state.waiting.remove(&self.number);
            false
        });
    }
}

impl ModelGate {
    /// Waits for the turn of a request. A wait of some seconds is shown by the status of its run.
    ///
    /// # Errors
    /// When the store does not answer for the rate of the model, or its server wants no request for longer than this one waits.
    pub async fn enter(self: &Arc<Self>, request: GateRequest<'_>) -> Result<GatePass, NotLetIn> {
        match self.enter_at_once(request.is_sent) {
            Some(pass) => Ok(pass),
            None => Box::pin(self.enter_in_turn(request)).await,
        }
    }

    fn enter_at_once(self: &Arc<Self>, is_sent: bool) -> Option<GatePass> {
        let descriptor = if is_sent { Some(own_requests().try_acquire().ok()?) } else { None };
        let mut may_enter = false;
        self.state.send_if_modified(|state| {
            let is_bound = state.rate.is_some() || self.held_for().is_some() || !state.has_room();
            may_enter = state.waiting.is_empty() && !is_bound;
            state.open = state.open.saturating_add(usize::from(may_enter));
            false
        });
        may_enter.then(|| GatePass { gate: Arc::clone(self), _descriptor: descriptor, rate: None })
    }

    async fn enter_in_turn(self: &Arc<Self>, request: GateRequest<'_>) -> Result<GatePass, NotLetIn> {
        let _place = WaitingNumber::last(self);
        PendingModelCall::only_waits(request.wait).await;
        let asker = PendingModelCall::asker(request.wait).await?;
        let shown = async {
            clock::sleep(PendingModelCall::shown_after(request.wait)).await;
            let (reason, until) = self.reason();
            let _shown = request.wait.map(|wait| wait.in_line(request.model, reason, until));
            std::future::pending().await
        };
        let turn = async {
            tokio::select! {
                biased;
                held = self.held_for_longer(request.patience) => Err(NotLetIn::Held(held)),
                pass = self.turn(request, asker) => Ok(pass?),
                pass = shown => pass,
            }
        };
        PendingModelCall::wait_in_line(request.wait, request.model, pin!(turn)).await
    }

    /// For what requests wait, as the status of their runs says it, and until when, if that is known.
    fn reason(&self) -> (&'static str, Option<Duration>) {
        let state = self.state.borrow();
        match (self.held_for(), state.has_room(), state.rate) {
            (Some(left), ..) => ("its server asked for a wait", Some(left)),
            (None, true, Some(_)) => (RATE_IS_USED_UP, None),
            (None, ..) => ("no connection is free", None),
        }
    }

    /// How long its server wants no request from now on.
    fn held_for(&self) -> Option<Duration> {
        (*self.hold.borrow()).and_then(ServerHold::left)
    }

    /// Whether a request that has its turn may be sent.
    fn may_send(&self) -> bool {
        self.state.borrow().has_room() && self.held_for().is_none()
    }

    /// Ends when the server wants no request for longer than this, from now on or from when it first said so. Ends with the time that is
    /// left.
    async fn held_for_longer(&self, patience: Duration) -> Duration {
        let came_at = clock::instant();
        let mut hold = self.hold.subscribe();
        loop {
            let held = *hold.borrow_and_update();
            if let Some((held, left)) = held.and_then(|held| Some((held, held.left()?)))
                && held.until.saturating_duration_since(held.since.max(came_at)) > patience
            {
                return left;
            }
            // The sender is this gate's own.
            drop(hold.changed().await);
        }
    }

    /// Waits until the server takes requests again.
    async fn end_of_hold(&self) {
        let mut hold = self.hold.subscribe();
        loop {
            let held = *hold.borrow_and_update();
            let Some(left) = held.and_then(ServerHold::left) else {
                if held.is_some_and(ServerHold::is_spaced) {
                    clock::sleep(SPACING).await;
                }
                return;
            };
            tokio::select! {
                () = clock::sleep(left) => {}
                changed = hold.changed() => drop(changed),
            }
        }
    }

    /// The turn of the request that is the first in the line. The rate is the last thing that it waits for: a request that had its turn in
    /// the rate and is sent later than that would come in the minute of those behind it.
    async fn turn(self: &Arc<Self>, request: GateRequest<'_>, asker: TurnOwner) -> Result<GatePass, NoRoom> {
        let _first = self.door.first(asker).await;
        let mut state = self.state.subscribe();
        let mut descriptor = None;
        let rate = loop {
            self.end_of_hold().await;
            // The sender is this gate's own: it is there.
            drop(state.wait_for(GateState::has_room).await);
            if request.is_sent && descriptor.is_none() {
                // Nobody closes it.
                descriptor = own_requests().acquire().await.ok();
            }
            if let Some(rate) = self.rate_turn(request, &mut state).await? {
                break rate;
            }
        };
        let rate = rate.taken();
        self.state.send_if_modified(|state| {
            state.open = state.open.saturating_add(1);
            state.last = rate.as_deref().map(RateTurn::last);
            false
        });
        Ok(GatePass { gate: Arc::clone(self), _descriptor: descriptor, rate })
    }

    /// Takes the turn of a request in the rate of its model, and waits for it. None: what it is to wait for has changed.
    async fn rate_turn(
        &self,
        request: GateRequest<'_>,
        state: &mut watch::Receiver<GateState>,
    ) -> Result<Option<TurnInRate>, NoRoom> {
        if !self.may_send() {
            return Ok(None);
        }
        let (rate, given_back) = {
            let state = state.borrow_and_update();
            (state.rate, state.given_back)
        };
        let Some((rate, wait)) = rate.zip(request.wait) else { return Ok(Some(TurnInRate::NoRate)) };
        if let Some(last) = self.last_by_another(rate) {
            last.judge_by(wait.journal(), rate);
        }
        let turn = RateTurn::take(wait.journal(), request.account(), rate, request.tokens).await;
        let turn = Box::new(turn.map_err(|fault| wait.store_failed(fault))?);
        if turn.wait.is_zero() {
            return Ok(Some(TurnInRate::Taken(turn)));
        }
        let _shown = wait.has_no_time_for(turn.wait, request.model).or_else(|| {
            let is_long = turn.wait >= PendingModelCall::shown_after(request.wait);
            is_long.then(|| wait.in_line(request.model, RATE_IS_USED_UP, Some(turn.wait))).flatten()
        });
        let is_other = |state: &GateState| state.rate != Some(rate) || state.given_back != given_back;
        let mut hold = self.hold.subscribe();
        let other_wait = async {
            // The senders are this gate's own.
            tokio::select! {
                other = state.wait_for(is_other) => drop(other),
                held = hold.wait_for(|hold| hold.and_then(ServerHold::left).is_some()) => drop(held),
            }
        };
        tokio::select! {
            biased;
            () = clock::sleep(turn.wait) => Ok(Some(TurnInRate::Taken(turn))),
            // The rate is another one, or there is more of it than there was, or the server wants nothing: what it took is given back,
            // and taken anew.
            () = other_wait => Ok(None),
        }
    }

    /// What the last request took, if that was by another rate.
    fn last_by_another(&self, rate: ModelRate) -> Option<LastShare> {
        let mut last = None;
        self.state.send_if_modified(|state| {
            last = state.last.take_if(|last| !last.is_by(rate));
            false
        });
        last
    }

    /// Whether the project bounds the requests to the model: then its server's word holds for all of them.
    pub fn is_bounded(&self) -> bool {
        let state = self.state.borrow();
        state.rate.is_some() || state.max_connections.is_some()
    }

    /// Its server wants no request for this time.
    pub fn hold(&self, time: Duration, request: GateRequest<'_>) {
        let now = clock::instant();
        self.hold.send_modify(|hold| {
            let before = hold.filter(|before| before.left().is_some());
            let since = before.map_or(now, |before| before.since);
            let until = now.checked_add(time).max(before.map(|before| before.until));
            *hold = until.map(|until| ServerHold { since, until });
        });
        let rate = self.state.borrow().rate;
        if let Some((_, wait)) = rate.zip(request.wait) {
            RateTurn::hold(wait.journal(), request.account(), time);
        }
    }
}
