//! The runs that are driven here: so many at once, the others wait for their turn. A run that waits is
//! in the store like any other; only nobody drives it yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::live::{Ears, Live};
use super::metrics::Meter;
use super::places::{Places, Seat};
use super::problem::Problem;
use super::queue::Queue;
use super::shares::{Held, Owner, Permit, Shares, later};
use super::state::Served;
use super::take_up::TakenUp;
use crate::drive::begin::Begun;
use crate::drive::engine::{Engine, Finished, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::hold::Leased;
use crate::drive::stop::Stop;
use crate::engine::event::Decided;
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, StoreFault};
use crate::program::Program;

/// How long it is waited before a run is taken up again whose store failed.
const AGAIN: Duration = Duration::from_secs(2);
/// How often a run is looked at that another process drives.
const LOOK: Duration = Duration::from_millis(250);

/// The runs that are driven here, and those that wait for it.
pub struct Desk {
    shares: Arc<Shares>,
    stop: Stop,
    inner: Mutex<Inner>,
    idle: Notify,
}

struct Inner {
    places: Places,
    queue: Queue<Waiting>,
    live: HashMap<String, Arc<Live>>,
}

/// A run that waits for its turn.
struct Waiting {
    run_id: String,
    /// What it counts as in its owner's share; one that was taken up from the store counts in none.
    _permit: Option<Permit>,
}

/// The right to start a run: whose it is, and that it may wait.
#[derive(Default)]
pub struct Turn {
    owner: Owner,
    permit: Option<Permit>,
}

/// A run that is driven here, and the place that it is driven at. The place goes back when this is dropped: also
/// when its driver panics.
struct Driven {
    served: Arc<Served>,
    run_id: String,
    live: Arc<Live>,
    seat: Seat,
}

impl Driven {
    /// Counts a run that is driven from now on.
    fn new(served: &Arc<Served>, run_id: String, live: Arc<Live>, seat: Seat) -> Self {
        served.shares.driven(&seat.owner);
        Self { served: Arc::clone(served), run_id, live, seat }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let Self { served, run_id, live, seat } = self;
        if std::thread::panicking() {
            tracing::error!(run_id = run_id.as_str(), "the run's driver panicked; the next server takes it up");
        }
        served.shares.left(&seat.owner);
        {
            let mut inner = served.desk.inner();
            inner.places.give_back(seat);
            if inner.live.get(run_id).is_some_and(|known| Arc::ptr_eq(known, live)) {
                inner.live.remove(run_id);
            }
        }
        live.done.send_replace(true);
        live.news.notify_waiters();
        served.desk.idle.notify_waiters();
        served.pump();
    }
}

/// What a run of the desk is to do.
enum Work {
    Drive(Box<Begun>),
    TakeUp(Leased),
    Resume(Resume, Option<oneshot::Sender<()>>),
}

impl Desk {
    /// A desk with these places.
    pub fn new(places: Places, shares: Arc<Shares>) -> Self {
        let inner = Inner { places, queue: Queue::default(), live: HashMap::new() };
        Self { shares, stop: Stop::new(), inner: Mutex::new(inner), idle: Notify::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run, when it is driven here or waits for it.
    pub fn live(&self, run_id: &str) -> Option<Arc<Live>> {
        self.inner().live.get(run_id).cloned()
    }

    /// How many runs are driven here, and how many wait.
    pub fn load(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.places.driven(), inner.queue.len())
    }

    /// Whether an owner may start a run, and let it wait where there is no place for it.
    ///
    /// # Errors
    /// 429 when its runs have spent their time, or as many of them wait as may.
    pub fn turn(&self, owner: Owner) -> Result<Turn, Problem> {
        self.shares.check_time(&owner)?;
        match self.shares.take(&owner, Held::Queued) {
            Ok(permit) => Ok(Turn { owner, permit: Some(permit) }),
            // It need not wait.
            Err(_) if self.inner().places.has_room(&owner) => Ok(Turn { owner, permit: None }),
            Err(problem) => Err(problem),
        }
    }

    /// Takes a run out of the queue that will not be driven here: whoever waits for it hears so at once.
    pub fn forget(&self, run_id: &str) {
        let mut inner = self.inner();
        let removed = inner.queue.remove(|waiting| waiting.run_id == run_id);
        if !removed.is_empty()
            && let Some(live) = inner.live.remove(run_id)
        {
            live.done.send_replace(true);
        }
    }

    /// Lets every run end its step and leaves it then; comes back when all are left.
    pub async fn leave(&self) {
        {
            let mut inner = self.inner();
            for waiting in inner.queue.remove(|_| true) {
                if let Some(live) = inner.live.remove(&waiting.run_id) {
                    live.done.send_replace(true);
                }
            }
        }
        self.stop.leave();
        loop {
            let idle = self.idle.notified();
            if self.inner().places.driven() == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl Served {
    /// Drives a run that has begun: at once, or when it is its turn.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(
        self: &Arc<Self>,
        engine: &Engine,
        program: &Arc<Program>,
        begun: Box<Begun>,
        turn: Turn,
    ) -> Result<(), Fault> {
        let run_id = begun.run_id().to_owned();
        let live = Live::new();
        let seat = {
            let mut inner = self.desk.inner();
            // Others of its owner wait only where there is no place for it either.
            let may = !inner.queue.has(&turn.owner) && !self.is_draining();
            let seat = may.then(|| inner.places.take(&turn.owner)).flatten();
            inner.live.insert(run_id.clone(), Arc::clone(&live));
            seat
        };
        if let Some(seat) = seat {
            let driven = Driven::new(self, run_id, live, seat);
            self.spawn(engine.clone(), Arc::clone(program), driven, Work::Drive(begun));
            return Ok(());
        }
        // The lease goes back first: whoever takes the run from the queue must get it.
        let left = begun.leave().await;
        let waiting = Waiting { run_id: run_id.clone(), _permit: turn.permit };
        self.desk.inner().queue.push(&turn.owner, waiting);
        self.pump();
        if self.is_draining() {
            // The queue may have been left before this one came.
            self.desk.forget(&run_id);
        }
        left
    }

    /// Takes up every run that was under way when the last server ended; those that other runs called go on
    /// with these.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn take_up_all(self: &Arc<Self>) -> Result<usize, StoreFault> {
        let filter = RunFilter { status: Some(Status::Running), ..RunFilter::default() };
        let runs = self.journal.list(filter).await?;
        let mut count = 0;
        for run in runs.into_iter().rev().filter(|run| !run.driven) {
            let mut inner = self.desk.inner();
            inner.live.insert(run.run_id.clone(), Live::new());
            // Who started it is not in the store, whose it is is.
            let owner = Owner { org: run.org, token: None };
            inner.queue.push(&owner, Waiting { run_id: run.run_id, _permit: None });
            count += 1;
        }
        self.pump();
        Ok(count)
    }

    /// Takes runs from the queue while there is room.
    fn pump(self: &Arc<Self>) {
        loop {
            let (run_id, live, seat) = {
                let mut inner = self.desk.inner();
                let Inner { places, queue, live } = &mut *inner;
                if self.is_draining() || places.is_full() {
                    return;
                }
                let Some((owner, Waiting { run_id, .. })) = queue.pop(|owner| places.has_room(owner)) else { return };
                let Some(seat) = places.take(&owner) else { return };
                let live = Arc::clone(live.entry(run_id.clone()).or_insert_with(Live::new));
                (run_id, live, seat)
            };
            let driven = Driven::new(self, run_id, live, seat);
            let served = Arc::clone(self);
            tokio::spawn(async move {
                match served.take_up(&driven.run_id).await {
                    Ok(TakenUp::Leased(found, leased)) => {
                        served.spawn(found.engine, found.program, driven, Work::TakeUp(leased));
                    }
                    Ok(TakenUp::Quarantined) => drop(driven),
                    Err(fault) => served.left(driven, Err(fault)),
                }
            });
        }
    }

    /// Hands a decision to a run, or none to one that was set aside, and drives it on, also when as many runs as
    /// may be are driven: who decided must hear whether it was taken.
    ///
    /// # Errors
    /// When the decision does not fit, another driver has the run, the owner drives too many runs that were
    /// decided, or the store fails.
    pub async fn decide(
        self: &Arc<Self>,
        run_id: &str,
        decided: Option<Decided>,
        owner: &Owner,
    ) -> Result<(), Problem> {
        self.shares.check_time(owner)?;
        let found = self.recorded(run_id).await?;
        let live = Live::new();
        let seat = {
            let mut inner = self.desk.inner();
            if inner.live.contains_key(run_id) {
                return Err(StoreFault::Driven(run_id.to_owned()).into());
            }
            let seat = inner.places.take_decided(owner).ok_or_else(|| {
                let detail = "as many runs are driven that this token or its organisation decided as may be";
                later("too_many_running", detail, 1_000)
            })?;
            inner.live.insert(run_id.to_owned(), Arc::clone(&live));
            seat
        };
        let (sender, taken) = oneshot::channel();
        let resume = Resume { decided, new_document: false };
        let work = Work::Resume(resume, Some(sender));
        let driven = Driven::new(self, run_id.to_owned(), live, seat);
        let driven = self.spawn(found.engine, found.program, driven, work);
        // The sender is dropped with its run: then the run's own end says what came of it.
        match taken.await {
            Ok(()) => Ok(()),
            Err(_) => match driven.await {
                Ok(Some(fault)) => Err(fault.into()),
                _ => Ok(()),
            },
        }
    }

    /// Drives a run in a task of its own; the fault is given back when a decision was not taken.
    fn spawn(
        self: &Arc<Self>,
        engine: Engine,
        program: Arc<Program>,
        driven: Driven,
        work: Work,
    ) -> tokio::task::JoinHandle<Option<Fault>> {
        let served = Arc::clone(self);
        tokio::spawn(async move {
            let (result, decided) = {
                let (work, taken) = match work {
                    Work::Resume(resume, taken) => (Work::Resume(resume, None), taken),
                    other => (other, None),
                };
                let decided = taken.is_some();
                let meter = Meter::new(Arc::clone(&served.metrics));
                let ears = Ears { live: Arc::clone(&driven.live), meter, taken: Mutex::new(taken) };
                let watch = Watch { listener: Some(&ears), stop: Some(served.desk.stop.clone()) };
                let result = match work {
                    Work::Drive(begun) => engine.drive(&program, begun, watch).await,
                    Work::TakeUp(leased) => engine.resume_leased(&program, leased, Resume::default(), watch).await,
                    Work::Resume(resume, _) => engine.resume(&program, &driven.run_id, resume, watch).await,
                };
                // Whether the decision is still to be heard of.
                let unheard = ears.taken.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                (result, decided && unheard)
            };
            if decided {
                let run_id = driven.run_id.clone();
                drop(driven);
                if result.is_ok() {
                    served.callbacks.look(&served, &run_id);
                }
                return result.err();
            }
            served.left(driven, result);
            None
        })
    }

    /// A run that its driver has left.
    fn left(self: &Arc<Self>, driven: Driven, result: Result<Finished, Fault>) {
        let (run_id, owner) = (driven.run_id.clone(), driven.seat.owner.clone());
        drop(driven);
        let run_id = run_id.as_str();
        match result {
            Ok(_) => self.callbacks.look(self, run_id),
            // Somebody else drives it, or a run that it called.
            Err(Fault::Store(StoreFault::Driven(_)) | Fault::Cut(StoreFault::Fenced(_) | StoreFault::Driven(_))) => {}
            Err(Fault::Store(fault) | Fault::Cut(fault)) if !matches!(fault, StoreFault::Corrupt(_)) => {
                tracing::error!(run_id, code = fault.code(), "the store failed; the run is taken up again: {fault}");
                let served = Arc::clone(self);
                let waiting = Waiting { run_id: run_id.to_owned(), _permit: None };
                tokio::spawn(async move {
                    tokio::time::sleep(AGAIN).await;
                    served.desk.inner().queue.push(&owner, waiting);
                    served.pump();
                });
            }
            Err(fault) => tracing::error!(run_id, code = fault.code(), "the run can't go on: {fault}"),
        }
    }

    /// Waits until the run has ended, waits for a human or is left; at most so long. Whether it did.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn wait(&self, run_id: &str, at_most: Option<Duration>) -> Result<bool, StoreFault> {
        let settled = async {
            loop {
                if let Some(live) = self.desk.live(run_id) {
                    let mut done = live.done.subscribe();
                    // The sender lives as long as `live`.
                    let _ = done.wait_for(|done| *done).await;
                }
                let Some(run) = self.journal.find(run_id).await? else { return Ok(true) };
                if run.status != Status::Running {
                    return Ok(true);
                }
                if self.is_draining() || (!run.driven && self.desk.live(run_id).is_none()) {
                    return Ok(false);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        match at_most {
            Some(at_most) => tokio::time::timeout(at_most, settled).await.unwrap_or(Ok(false)),
            None => settled.await,
        }
    }
}
