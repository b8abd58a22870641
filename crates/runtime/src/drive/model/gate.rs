//! The gate before a model: no more requests at once than `max_connections`, and than the process has descriptors for. Who comes first
//! is let in first. A request that waits here is none yet: it costs no attempt, and no usage counts it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::{clock, descriptors};
use loopctl_lang::language::Project;

/// A wait that is shorter is not shown: the row of its run would be written twice for nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// For what a request waits, as the status of its run says it.
const NO_CONNECTION: &str = "no connection is free";

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
    pub(in crate::drive) fn read(&self, project: &Project, root: &Path) {
        for (name, model) in &project.models {
            let max_connections = model.max_connections.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
            self.of(root, name).state.send_modify(|state| state.max_connections = max_connections);
        }
    }

    /// The gate of a model.
    pub(super) fn of(&self, root: &Path, name: &str) -> Arc<ModelGate> {
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
    /// Who waits holds it, one after the other in the order in which they came.
    door: tokio::sync::Mutex<()>,
    state: watch::Sender<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    max_connections: Option<usize>,
    /// The requests that are open.
    open: usize,
    /// Since when those that wait do, in milliseconds since 1970, in the order in which they came.
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
}

impl Drop for GatePass {
    fn drop(&mut self) {
        self.gate.state.send_if_modified(|state| {
            state.open = state.open.saturating_sub(1);
            !state.waiting.is_empty()
        });
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
    /// Waits for the turn of a request; `is_sent`: it takes a descriptor of this process. What interrupts the call of the run ends the
    /// wait, and a wait of some seconds is shown by the status of the run.
    pub async fn enter(self: &Arc<Self>, is_sent: bool, wait: Option<&PendingModelCall<'_>>, model: &str) -> GatePass {
        match self.enter_at_once(is_sent) {
            Some(pass) => pass,
            None => Box::pin(self.enter_in_turn(is_sent, wait, model)).await,
        }
    }

    fn enter_at_once(self: &Arc<Self>, is_sent: bool) -> Option<GatePass> {
        let descriptor = if is_sent { Some(own_requests().try_acquire().ok()?) } else { None };
        let mut has_room = false;
        self.state.send_if_modified(|state| {
            has_room = state.waiting.is_empty() && state.has_room();
            state.open = state.open.saturating_add(usize::from(has_room));
            false
        });
        has_room.then(|| GatePass { gate: Arc::clone(self), _descriptor: descriptor })
    }

    async fn enter_in_turn(
        self: &Arc<Self>,
        is_sent: bool,
        wait: Option<&PendingModelCall<'_>>,
        model: &str,
    ) -> GatePass {
        let _place = WaitingNumber::last(self);
        PendingModelCall::only_waits(wait).await;
        let shown = async {
            clock::sleep(SHOWN_AFTER).await;
            let _shown = wait.map(|wait| wait.in_line(model, NO_CONNECTION));
            std::future::pending().await
        };
        let turn = async {
            tokio::select! {
                biased;
                pass = self.turn(is_sent) => pass,
                pass = shown => pass,
            }
        };
        PendingModelCall::rest(wait, pin!(turn)).await
    }

    /// The turn of the request that is the first in the line.
    async fn turn(self: &Arc<Self>, is_sent: bool) -> GatePass {
        let _first = self.door.lock().await;
        let mut state = self.state.subscribe();
        // The sender is this gate's own: it is there.
        drop(state.wait_for(GateState::has_room).await);
        // Nobody closes it.
        let descriptor = if is_sent { own_requests().acquire().await.ok() } else { None };
        self.state.send_if_modified(|state| {
            state.open = state.open.saturating_add(1);
            false
        });
        GatePass { gate: Arc::clone(self), _descriptor: descriptor }
    }
}
