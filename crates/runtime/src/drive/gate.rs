//! The gate before what calls reach: a model, an action, a datasource or an MCP server. No more requests are open at once than it allows, and
//! than the process has descriptors for; no more are made in a time than its `rate` allows; and none while its server asked for a wait, or
//! while its circuit is open. Organisations are let in by turns, within one its runs, and within a run who comes first. A request that
//! waits here is none yet: it costs no attempt, and no usage counts it.

mod circuit;
mod door;
mod rate_turn;
mod slot;
#[cfg(test)]
mod tests;
pub(in crate::drive) mod turns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::drive::model_waits::PlaceOfWait;
use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::spending::NoRoom;
use crate::drive::{clock, descriptors};
use crate::journal::WaitedFor;
pub use circuit::CircuitState;
pub(in crate::drive) use circuit::why_open;
use circuit::{CircuitChange, CircuitRecord, CircuitWait, LetIn};
use door::Door;
use loopctl_engine::event::Tokens;
use loopctl_lang::language::Project;
use loopctl_lang::language::call_limits::{CallLimits, CallRate, Circuit};
use rate_turn::{GateRate, LastShare, RateTurn};
use slot::Slot;
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

/// The gates of what projects declare, by the folders of these. They outlive a project that is read again: what waits at a gate then is
/// let in by what the project says now.
#[derive(Default)]
pub struct CallGates(Mutex<BTreeMap<GateKey, Arc<CallGate>>>);

/// The folder of a project, and what of it the gate is before.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GateKey {
    root: PathBuf,
    of: WaitedFor,
    name: String,
}

/// The requests that wait for their turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallQueue {
    /// What they are to.
    pub of: WaitedFor,
    /// Its name.
    pub name: String,
    /// How many they are.
    pub requests: usize,
    /// Since when the oldest of them waits, in milliseconds since 1970.
    pub since_ms: i64,
}

/// The circuit of what a project declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCircuit {
    /// What it is of.
    pub of: WaitedFor,
    /// Its name.
    pub name: String,
    /// Whether calls are made.
    pub state: CircuitState,
    /// Since when it is not closed, in milliseconds since 1970.
    pub since_ms: Option<i64>,
}

impl std::fmt::Debug for CallGates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CallGates").finish_non_exhaustive()
    }
}

impl CallGates {
    /// The gates are those of this project from now on.
    pub fn read(&self, project: &Project, root: &Path) {
        for (name, model) in &project.models {
            let max_connections = model.max_connections.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
            let gate = self.of(root, WaitedFor::Model, name);
            let rate = model.rate.map(GateRate::Model);
            gate.state.send_modify(|state| (state.max_connections, state.rate) = (max_connections, rate));
            gate.read_circuit(model.circuit);
            // The model of this name may be another one now.
            gate.hold.send_replace(None);
        }
        let limited: BTreeMap<(WaitedFor, &str), CallLimits> = limits_of(project).collect();
        // What is no longer limited lets in what waits.
        let gone = self.all().into_iter().filter(|(key, _)| {
            key.root == root && key.of != WaitedFor::Model && !limited.contains_key(&(key.of, key.name.as_str()))
        });
        gone.for_each(|(_, gate)| gate.limit(CallLimits::default()));
        for ((of, name), limits) in limited {
            self.of(root, of, name).limit(limits);
        }
    }

    /// The gate of this name.
    pub(in crate::drive) fn of(&self, root: &Path, of: WaitedFor, name: &str) -> Arc<CallGate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry(GateKey { root: root.to_owned(), of, name: name.to_owned() }).or_default())
    }

    fn all(&self) -> Vec<(GateKey, Arc<CallGate>)> {
        let gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.iter().map(|(key, gate)| (key.clone(), Arc::clone(gate))).collect()
    }

    /// Where requests wait.
    pub fn queues(&self) -> Vec<CallQueue> {
        let queue = |(GateKey { of, name, .. }, gate): (GateKey, Arc<CallGate>)| {
            let state = gate.state.borrow();
            let since_ms = *state.waiting.values().next()?;
            Some(CallQueue { of, name, requests: state.waiting.len(), since_ms })
        };
        self.all().into_iter().filter_map(queue).collect()
    }

    /// The circuits that are declared.
    pub fn circuits(&self) -> Vec<CallCircuit> {
        let circuit = |(GateKey { of, name, .. }, gate): (GateKey, Arc<CallGate>)| {
            let record = gate.circuit.borrow();
            let (state, since_ms) = record.state();
            record.rule().map(|_| CallCircuit { of, name, state, since_ms })
        };
        self.all().into_iter().filter_map(circuit).collect()
    }
}

/// Whether a project limits calls of tools.
pub(in crate::drive) fn limits_calls(project: &Project) -> bool {
    limits_of(project).next().is_some()
}

/// What a project limits, models apart.
fn limits_of(project: &Project) -> impl Iterator<Item = ((WaitedFor, &str), CallLimits)> {
    let actions = project.action_limits.iter().map(|(name, limits)| ((WaitedFor::Action, name.as_str()), *limits));
    let datasources = project.datasources.iter();
    let datasources = datasources.map(|(name, of)| ((WaitedFor::Datasource, name.as_str()), of.call_limits()));
    let servers = project.mcp.iter().map(|(name, of)| ((WaitedFor::Mcp, name.as_str()), of.call_limits()));
    actions.chain(datasources).chain(servers).filter(|(_, limits)| !limits.is_empty())
}

/// The gate of a model, or of what tools call.
#[derive(Default)]
pub(in crate::drive) struct CallGate {
    door: Door,
    state: watch::Sender<GateState>,
    /// By itself, because all that wait look at it.
    circuit: watch::Sender<CircuitRecord>,
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
    /// Its circuit is open for longer than the request waits, now for this time.
    Open {
        /// Until one call is made.
        left: Duration,
        /// When it opens.
        rule: Option<Circuit>,
    },
}

impl From<NoRoom> for NotLetIn {
    fn from(none: NoRoom) -> Self {
        Self::NoStore(none)
    }
}

#[derive(Debug, Default)]
struct GateState {
    max_connections: Option<usize>,
    /// The most calls at once, of all processes together.
    max_concurrency: Option<u32>,
    rate: Option<GateRate>,
    /// What the last request took of it.
    last: Option<LastShare>,
    /// How many requests have given back a part of what they took.
    given_back: u64,
    /// Whether the first one in the line waits for a call of another process to end.
    waits_for_slot: bool,
    /// The requests that are open.
    open: usize,
    /// Since when those that wait do, in milliseconds since 1970, by their numbers.
    waiting: BTreeMap<u64, i64>,
    /// The number of the next one that waits.
    next: u64,
}

impl GateState {
    fn has_room(&self) -> bool {
        let most = self.max_concurrency.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        self.max_connections.into_iter().chain(most).all(|most| self.open < most)
    }
}

/// A request that may be sent; dropping this makes room for the next one.
pub(in crate::drive) struct GatePass {
    gate: Arc<CallGate>,
    _descriptor: Option<SemaphorePermit<'static>>,
    /// What it took of the rate.
    rate: Option<Box<RateTurn>>,
    /// One of the calls that may be made at once.
    slot: Option<Slot>,
    /// How the circuit let it in, until its end is known.
    let_in: Option<LetIn>,
}

impl GatePass {
    /// The request is sent.
    pub fn sent(&mut self) {
        if let Some(rate) = &mut self.rate {
            rate.sent();
        }
    }

    /// The call has ended. `failed`: in a way that may pass, as one of a server that is away does.
    pub fn ended(&mut self, request: GateRequest<'_>, failed: bool) {
        let Some(let_in) = self.let_in.take() else { return };
        let mut change = None;
        self.gate.circuit.send_if_modified(|circuit| {
            change = circuit.ended(let_in, failed);
            change.is_some()
        });
        if let Some(change) = change {
            self.gate.log(change, request);
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
    /// What it is to, and the name of that.
    pub of: WaitedFor,
    pub name: &'a str,
    /// The id that the provider of a model has for it.
    pub id: &'a str,
    /// Whether it takes a descriptor of this process.
    pub is_sent: bool,
    /// The most tokens that it may use.
    pub tokens: u64,
    /// How long it waits for a server that wants no request: after that, it is as one that failed.
    pub patience: Duration,
    /// The same for a circuit that is open.
    pub circuit_patience: Duration,
    /// The call of the run: what interrupts it ends the wait.
    pub wait: Option<&'a PendingModelCall<'a>>,
}

impl GateRequest<'_> {
    /// Where it waits.
    fn place(&self) -> PlaceOfWait<'_> {
        PlaceOfWait { of: self.of, name: self.name }
    }

    /// The account of its rate.
    fn account(&self) -> String {
        match self.of {
            WaitedFor::Model => format!("rate {} {}", self.name, self.id),
            of => format!("calls of {} {}", of.word(), self.name),
        }
    }

    /// The account of the calls that are made at once.
    fn slots(&self) -> String {
        format!("at once {} {}", self.of.word(), self.name)
    }
}

impl Drop for GatePass {
    fn drop(&mut self) {
        // Before the next one looks.
        self.slot = None;
        if self.let_in == Some(LetIn::AsTrial) {
            self.gate.circuit.send_modify(CircuitRecord::trial_left);
        }
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

/// The first one in the line waits for a call of another process to end, until this is dropped.
struct WaitsForSlot<'g>(&'g CallGate);

impl<'g> WaitsForSlot<'g> {
    fn of(gate: &'g CallGate) -> Self {
        gate.set_waits_for_slot(true);
        Self(gate)
    }
}

impl Drop for WaitsForSlot<'_> {
    fn drop(&mut self) {
        self.0.set_waits_for_slot(false);
    }
}

/// A place in the line before a gate, until it is dropped.
struct WaitingNumber<'g> {
    gate: &'g CallGate,
    number: u64,
}

impl<'g> WaitingNumber<'g> {
    fn last(gate: &'g CallGate) -> Self {
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

impl CallGate {
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
        let (mut may_enter, has_circuit) = (false, self.circuit.borrow().rule().is_some());
        self.state.send_if_modified(|state| {
            let is_bound = state.rate.is_some() || state.max_concurrency.is_some() || !state.has_room();
            let is_closed = self.circuit.borrow().is_closed();
            may_enter = state.waiting.is_empty() && !is_bound && is_closed && self.held_for().is_none();
            state.open = state.open.saturating_add(usize::from(may_enter));
            false
        });
        may_enter.then(|| GatePass {
            gate: Arc::clone(self),
            _descriptor: descriptor,
            rate: None,
            slot: None,
            let_in: has_circuit.then_some(LetIn::Free),
        })
    }

    async fn enter_in_turn(self: &Arc<Self>, request: GateRequest<'_>) -> Result<GatePass, NotLetIn> {
        let _place = WaitingNumber::last(self);
        PendingModelCall::only_waits(request.wait).await;
        let asker = PendingModelCall::asker(request.wait).await?;
        let shown = async {
            clock::sleep(PendingModelCall::shown_after(request.wait)).await;
            let (reason, until) = self.reason(request.of);
            let _shown = request.wait.map(|wait| wait.in_line(request.place(), reason, until));
            std::future::pending().await
        };
        let turn = async {
            tokio::select! {
                biased;
                held = self.held_for_longer(request.patience) => Err(NotLetIn::Held(held)),
                open = self.open_for_longer(request.circuit_patience) => Err(open),
                pass = self.turn(request, asker) => Ok(pass?),
                pass = shown => pass,
            }
        };
        PendingModelCall::wait_in_line(request.wait, request.place(), pin!(turn)).await
    }

    /// For what requests wait, as the status of their runs says it, and until when, if that is known.
    fn reason(&self, of: WaitedFor) -> (&'static str, Option<Duration>) {
        if let Some(wait) = self.circuit.borrow().wait() {
            return match wait {
                CircuitWait::Open(left) => ("its circuit is open", Some(left)),
                CircuitWait::Tried => ("its circuit is open, and one call tries whether it answers again", None),
            };
        }
        let state = self.state.borrow();
        match (self.held_for(), state.has_room() && !state.waits_for_slot, state.rate) {
            (Some(left), ..) => ("its server asked for a wait", Some(left)),
            (None, true, Some(_)) => (RATE_IS_USED_UP, None),
            (None, ..) if of == WaitedFor::Model => ("no connection is free", None),
            (None, ..) => ("as many calls as may be made at once are under way", None),
        }
    }

    fn set_waits_for_slot(&self, waits: bool) {
        self.state.send_if_modified(|state| {
            state.waits_for_slot = waits;
            false
        });
    }

    /// Holds calls to these limits from now on.
    fn limit(&self, limits: CallLimits) {
        let rate = limits.rate.filter(|rate| *rate != CallRate::default()).map(GateRate::Calls);
        self.state.send_if_modified(|state| {
            let is_other = (state.max_concurrency, state.rate) != (limits.max_concurrency, rate);
            (state.max_concurrency, state.rate) = (limits.max_concurrency, rate);
            is_other
        });
        self.read_circuit(limits.circuit);
    }

    fn read_circuit(&self, rule: Option<Circuit>) {
        self.circuit.send_if_modified(|circuit| circuit.read(rule));
    }

    fn log(&self, change: CircuitChange, request: GateRequest<'_>) {
        let (of, name) = (request.of.word(), request.name);
        let rule = self.circuit.borrow().rule();
        let open_ms = rule.map(|rule| rule.open_ms);
        match change {
            CircuitChange::Opened => {
                let failures = rule.map(|rule| rule.failures);
                tracing::warn!(
                    of,
                    name,
                    failures,
                    open_ms,
                    "the circuit is open: calls failed, and none is made for now"
                );
            }
            CircuitChange::OpenedAgain => {
                tracing::info!(of, name, open_ms, "the circuit stays open: the call that tried it failed");
            }
            CircuitChange::Closed => tracing::warn!(of, name, "the circuit is closed: calls are made again"),
        }
    }

    /// Ends when the circuit keeps a call out for longer than this, from when it first does.
    async fn open_for_longer(&self, patience: Duration) -> NotLetIn {
        let for_ms = self.circuit.borrow().rule().and_then(|rule| rule.for_ms);
        let patience = for_ms.map_or(patience, |for_ms| patience.min(Duration::from_millis(for_ms)));
        let mut circuit = self.circuit.subscribe();
        let mut since = None;
        loop {
            let (wait, is_closed) = {
                let record = circuit.borrow_and_update();
                (record.wait(), record.is_closed())
            };
            since = since.or_else(|| Some(clock::instant())).filter(|_| !is_closed);
            let patient_for = patience.saturating_sub(since.map_or(Duration::ZERO, clock::elapsed));
            let until = match wait {
                None => None,
                Some(CircuitWait::Open(left)) if left > patient_for => return circuit.borrow().refusal(),
                Some(CircuitWait::Tried) if patient_for.is_zero() => return circuit.borrow().refusal(),
                Some(CircuitWait::Open(left)) => Some(left),
                Some(CircuitWait::Tried) => Some(patient_for),
            };
            let passed = async {
                match until {
                    Some(until) => clock::sleep(until).await,
                    None => std::future::pending().await,
                }
            };
            // The sender is this gate's own.
            tokio::select! {
                () = passed => {}
                changed = circuit.changed() => drop(changed),
            }
        }
    }

    /// Waits until the circuit lets a call in.
    async fn end_of_circuit(&self) {
        let mut circuit = self.circuit.subscribe();
        loop {
            let wait = circuit.borrow_and_update().wait();
            let Some(wait) = wait else { return };
            let passed = async {
                match wait {
                    CircuitWait::Open(left) => clock::sleep(left).await,
                    CircuitWait::Tried => std::future::pending().await,
                }
            };
            // The sender is this gate's own.
            tokio::select! {
                () = passed => {}
                changed = circuit.changed() => drop(changed),
            }
        }
    }

    /// Lets the call in as the circuit does; none while that lets none in.
    fn let_in(&self) -> Option<LetIn> {
        let mut let_in = None;
        self.circuit.send_if_modified(|circuit| {
            let_in = circuit.let_in();
            let_in == Some(LetIn::AsTrial)
        });
        let_in
    }

    /// Takes one of the calls that may be made at once in all processes, and waits for it. None: nothing bounds them.
    async fn slot(&self, request: GateRequest<'_>) -> Result<Option<Slot>, NoRoom> {
        let mut pause = slot::FIRST_WAIT;
        loop {
            let most = self.state.borrow().max_concurrency;
            let Some((most, wait)) = most.zip(request.wait) else { return Ok(None) };
            let run = wait.slot_owner();
            let slot = Slot::take(wait.journal(), request.slots(), &run, most).await;
            if let Some(slot) = slot.map_err(|fault| wait.store_failed(fault))? {
                return Ok(Some(slot));
            }
            let _waits = WaitsForSlot::of(self);
            let jitter = Duration::from_micros(fastrand::u64(0..=u64::try_from(pause.as_micros()).unwrap_or(u64::MAX)));
            clock::sleep(pause / 2 + jitter / 2).await;
            pause = pause.saturating_mul(2).min(slot::LONGEST_WAIT);
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
        let mut slot = None;
        let (rate, let_in) = loop {
            self.end_of_hold().await;
            self.end_of_circuit().await;
            // The sender is this gate's own: it is there.
            drop(state.wait_for(GateState::has_room).await);
            if request.is_sent && descriptor.is_none() {
                // Nobody closes it.
                descriptor = own_requests().acquire().await.ok();
            }
            if slot.is_none() {
                slot = self.slot(request).await?;
            }
            let Some(rate) = self.rate_turn(request, &mut state).await? else { continue };
            match self.let_in() {
                Some(let_in) => break (rate, Some(let_in)),
                // What it took is given back: others may be let in before the circuit closes.
                None => slot = None,
            }
        };
        let rate = rate.taken();
        self.state.send_if_modified(|state| {
            state.open = state.open.saturating_add(1);
            state.last = rate.as_deref().map(RateTurn::last);
            false
        });
        Ok(GatePass { gate: Arc::clone(self), _descriptor: descriptor, rate, slot, let_in })
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
        let _shown = wait.has_no_time_for(turn.wait, request.place()).or_else(|| {
            let is_long = turn.wait >= PendingModelCall::shown_after(request.wait);
            is_long.then(|| wait.in_line(request.place(), RATE_IS_USED_UP, Some(turn.wait))).flatten()
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
    fn last_by_another(&self, rate: GateRate) -> Option<LastShare> {
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
