//! The runs that are driven here: so many at once, the others wait in their order. A run that waits is
//! in the store like any other; only nobody drives it yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};

use super::metrics::Meter;
use super::state::Served;
use super::take_up::TakenUp;
use crate::compile::Program;
use crate::drive::begin::Begun;
use crate::drive::engine::{Engine, Finished, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::hold::Leased;
use crate::drive::stop::Stop;
use crate::engine::event::Decided;
use crate::engine::notice::{Listener, Notice};
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, StoreFault};

/// How long it is waited before a run is taken up again whose store failed.
const AGAIN: Duration = Duration::from_secs(2);
/// How often a run is looked at that another process drives.
const LOOK: Duration = Duration::from_millis(250);

/// The runs that are driven here, and those that wait for it.
pub struct Desk {
    most: usize,
    stop: Stop,
    inner: Mutex<Inner>,
    idle: Notify,
}

#[derive(Default)]
struct Inner {
    running: usize,
    queue: VecDeque<String>,
    live: HashMap<String, Arc<Live>>,
}

/// A run that is driven here, or waits for it.
#[derive(Debug)]
pub struct Live {
    done: watch::Sender<bool>,
    news: Notify,
}

impl Live {
    fn new() -> Arc<Self> {
        Arc::new(Self { done: watch::Sender::new(false), news: Notify::new() })
    }

    /// Waits until something happens in the run after this call, or nobody drives it any more.
    pub fn news(&self) -> impl Future<Output = ()> + '_ {
        let news = self.news.notified();
        let mut done = self.done.subscribe();
        async move {
            tokio::select! {
                () = news => {}
                _ = done.wait_for(|done| *done) => {}
            }
        }
    }
}

/// Tells who waits that something happened.
struct Ears {
    live: Arc<Live>,
    meter: Meter,
    /// Is told when a decision was taken.
    taken: Mutex<Option<oneshot::Sender<()>>>,
}

impl Listener for Ears {
    fn on(&self, notice: Notice) {
        self.meter.hear(&notice);
        self.live.news.notify_waiters();
        // The run is told to go on before the decision is looked at; all else comes after it.
        if !matches!(notice, Notice::RunResumed { .. })
            && let Some(taken) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = taken.send(());
        }
    }
}

/// What a run of the desk is to do.
enum Work {
    Drive(Box<Begun>),
    TakeUp(Leased),
    Resume(Resume, Option<oneshot::Sender<()>>),
}

impl Desk {
    /// A desk for so many runs at once, at least one.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), stop: Stop::new(), inner: Mutex::default(), idle: Notify::new() }
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
        (inner.running, inner.queue.len())
    }

    /// Takes a run out of the queue that will not be driven here: whoever waits for it hears so at once.
    pub fn forget(&self, run_id: &str) {
        let mut inner = self.inner();
        let waiting = inner.queue.len();
        inner.queue.retain(|waits| waits != run_id);
        if inner.queue.len() < waiting
            && let Some(live) = inner.live.remove(run_id)
        {
            live.done.send_replace(true);
        }
    }

    /// Lets every run end its step and leaves it then; comes back when all are left.
    pub async fn leave(&self) {
        let waiting = self.inner().queue.clone();
        for run_id in waiting {
            self.forget(&run_id);
        }
        self.stop.leave();
        loop {
            let idle = self.idle.notified();
            if self.inner().running == 0 {
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
    ) -> Result<(), Fault> {
        let run_id = begun.run_id().to_owned();
        let live = Live::new();
        let now = {
            let mut inner = self.desk.inner();
            let now = inner.running < self.desk.most && inner.queue.is_empty() && !self.is_draining();
            inner.running += usize::from(now);
            inner.live.insert(run_id.clone(), Arc::clone(&live));
            now
        };
        if now {
            self.spawn((engine.clone(), Arc::clone(program)), run_id, live, Work::Drive(begun));
            return Ok(());
        }
        // The lease goes back first: whoever takes the run from the queue must get it.
        let left = begun.leave().await;
        self.desk.inner().queue.push_back(run_id.clone());
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
            inner.queue.push_back(run.run_id);
            count += 1;
        }
        self.pump();
        Ok(count)
    }

    /// Takes runs from the queue while there is room.
    fn pump(self: &Arc<Self>) {
        loop {
            let (run_id, live) = {
                let mut inner = self.desk.inner();
                if inner.running >= self.desk.most || self.is_draining() {
                    return;
                }
                let Some(run_id) = inner.queue.pop_front() else { return };
                inner.running += 1;
                let live = inner.live.entry(run_id.clone()).or_insert_with(Live::new);
                (run_id, Arc::clone(live))
            };
            let served = Arc::clone(self);
            tokio::spawn(async move {
                match served.take_up(&run_id).await {
                    Ok(TakenUp::Leased(found, leased)) => {
                        served.spawn((found.engine, found.program), run_id, live, Work::TakeUp(leased));
                    }
                    Ok(TakenUp::Quarantined) => served.end(&run_id, &live),
                    Err(fault) => served.left(&run_id, &live, Err(fault)),
                }
            });
        }
    }

    /// Hands a decision to a run, or none to one that was set aside, and drives it on, also when as many runs as may be are driven: who
    /// decided must hear whether it was taken.
    ///
    /// # Errors
    /// When the decision does not fit, another driver has the run, or the store fails.
    pub async fn decide(self: &Arc<Self>, run_id: &str, decided: Option<Decided>) -> Result<(), Fault> {
        let found = self.recorded(run_id).await?;
        let live = Live::new();
        {
            let mut inner = self.desk.inner();
            if inner.live.contains_key(run_id) {
                return Err(Fault::Store(StoreFault::Driven(run_id.to_owned())));
            }
            inner.running += 1;
            inner.live.insert(run_id.to_owned(), Arc::clone(&live));
        }
        let (sender, taken) = oneshot::channel();
        let resume = Resume { decided, new_document: false };
        let work = Work::Resume(resume, Some(sender));
        let driven = self.spawn((found.engine, found.program), run_id.to_owned(), live, work);
        // The sender is dropped with its run: then the run's own end says what came of it.
        match taken.await {
            Ok(()) => Ok(()),
            Err(_) => match driven.await {
                Ok(Some(fault)) => Err(fault),
                _ => Ok(()),
            },
        }
    }

    /// Drives a run in a task of its own; the fault is given back when a decision was not taken.
    fn spawn(
        self: &Arc<Self>,
        (engine, program): (Engine, Arc<Program>),
        run_id: String,
        live: Arc<Live>,
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
                let ears = Ears { live: Arc::clone(&live), meter, taken: Mutex::new(taken) };
                let watch = Watch { listener: Some(&ears), stop: Some(served.desk.stop.clone()) };
                let result = match work {
                    Work::Drive(begun) => engine.drive(&program, begun, watch).await,
                    Work::TakeUp(leased) => engine.resume_leased(&program, leased, Resume::default(), watch).await,
                    Work::Resume(resume, _) => engine.resume(&program, &run_id, resume, watch).await,
                };
                // Whether the decision is still to be heard of.
                let unheard = ears.taken.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                (result, decided && unheard)
            };
            if decided {
                let ended = result.as_ref().map(|_| ()).map_err(|_| ());
                let fault = result.err();
                served.end(&run_id, &live);
                if ended.is_ok() {
                    served.callbacks.look(&served, &run_id);
                }
                return fault;
            }
            served.left(&run_id, &live, result);
            None
        })
    }

    /// A run that its driver has left.
    fn left(self: &Arc<Self>, run_id: &str, live: &Arc<Live>, result: Result<Finished, Fault>) {
        self.end(run_id, live);
        match result {
            Ok(_) => self.callbacks.look(self, run_id),
            // Somebody else drives it, or a run that it called.
            Err(Fault::Store(StoreFault::Driven(_)) | Fault::Cut(StoreFault::Fenced(_) | StoreFault::Driven(_))) => {}
            Err(Fault::Store(fault) | Fault::Cut(fault)) if !matches!(fault, StoreFault::Corrupt(_)) => {
                tracing::error!(run_id, code = fault.code(), "the store failed; the run is taken up again: {fault}");
                let (served, run_id) = (Arc::clone(self), run_id.to_owned());
                tokio::spawn(async move {
                    tokio::time::sleep(AGAIN).await;
                    served.desk.inner().queue.push_back(run_id);
                    served.pump();
                });
            }
            Err(fault) => tracing::error!(run_id, code = fault.code(), "the run can't go on: {fault}"),
        }
    }

    fn end(self: &Arc<Self>, run_id: &str, live: &Arc<Live>) {
        {
            let mut inner = self.desk.inner();
            inner.running = inner.running.saturating_sub(1);
            if inner.live.get(run_id).is_some_and(|known| Arc::ptr_eq(known, live)) {
                inner.live.remove(run_id);
            }
        }
        live.done.send_replace(true);
        live.news.notify_waiters();
        self.desk.idle.notify_waiters();
        self.pump();
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
