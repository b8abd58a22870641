//! Claims runs from the store's queue when there are slots for them: when one becomes free, and several times a second,
//! because other servers of the store start runs, leave them, and die.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::run_tasks::{DrivenRun, DriverTask};
use super::slots::RunSlot;
use super::{ActiveRun, RunSchedule, Scheduler};
use crate::drive::clock;
use crate::drive::engine::Resume;
use crate::drive::fault::Fault;
use crate::drive::lease_guard::{Leased, LeasedRun};
use crate::engine::outcome::Status;
use crate::engine::state::State;
use crate::journal::{ClaimedRun, ListedStatus, QueueQuery, QueuedRuns, RunFilter, RunSummary, StoreError};
use crate::program::Program;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::run_store::{DecidedRun, FollowedRun, ProgramOfRun};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

/// The interval of the looks at the queue: a run that another server has no slot for starts here within twice this time.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// After each of this number of intervals, the server also looks while runs wait that it may not take, because counting a long queue is
/// dear, and forgets the runs that continued elsewhere.
const FULL_LOOK_EVERY: u32 = 4;

impl Scheduler {
    /// Looks at the queue at each interval, until the server stops.
    pub fn watch_queue(self: &Arc<Self>) {
        let scheduler: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(
            async move {
                for interval in (0..FULL_LOOK_EVERY).cycle() {
                    tokio::time::sleep(QUEUE_POLL_INTERVAL).await;
                    let Some(scheduler) = scheduler.upgrade().filter(|scheduler| !scheduler.is_draining()) else {
                        return;
                    };
                    let is_full_look = interval == 0;
                    if is_full_look && let Err(fault) = scheduler.forget_what_went_on().await {
                        tracing::error!(code = fault.code(), "the runs that wait here can't be looked up: {fault}");
                    }
                    if is_full_look || scheduler.schedule().left.is_empty() {
                        scheduler.look();
                    }
                }
            }
            .boxed(),
        );
    }

    /// Claims every run that was under way when the last server ended, as far as there are slots, and has those that
    /// wait for their model, or for room in a spending limit, ask it now; sub-runs are resumed by their callers.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recover_all(self: &Arc<Self>) -> Result<(), StoreError> {
        self.ask_again(RunSummary::waits_for_model).await?;
        self.claim().await
    }

    /// The spending limits of the project have changed: the runs that wait for room look at them now.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn limits_changed(self: &Arc<Self>) -> Result<(), StoreError> {
        self.ask_again(RunSummary::may_wait_for_room).await?;
        self.look();
        Ok(())
    }

    /// Has the runs that wait so ask their models now.
    async fn ask_again(&self, waits: fn(&RunSummary) -> bool) -> Result<(), StoreError> {
        let filter = RunFilter { statuses: vec![ListedStatus::Paused], ..RunFilter::default() };
        let paused = self.runs.journal.list(filter).await?.into_iter();
        for run in paused.filter(|run| waits(run) && !run.driven) {
            self.runs.journal.retry_at(&run.run_id, clock::wall_ms()).await?;
        }
        Ok(())
    }

    /// Looks at the queue in a task of its own.
    pub(super) fn look(self: &Arc<Self>) {
        {
            let mut schedule = self.schedule();
            schedule.looks.is_wanted = true;
            if std::mem::replace(&mut schedule.looks.is_under_way, true) {
                return;
            }
        }
        let scheduler = Arc::clone(self);
        tokio::spawn(
            async move {
                while scheduler.wants_look() {
                    if let Err(fault) = scheduler.claim().await {
                        tracing::error!(code = fault.code(), "runs can't be claimed: {fault}");
                    }
                }
            }
            .boxed(),
        );
    }

    fn wants_look(&self) -> bool {
        let mut schedule = self.schedule();
        let looks = &mut schedule.looks;
        looks.is_under_way = std::mem::take(&mut looks.is_wanted);
        looks.is_under_way
    }

    /// How many runs of the store wait for a driver.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn queued(&self) -> Result<usize, StoreError> {
        let queue = self.runs.journal.queue(QueueQuery { now_ms: clock::wall_ms(), except: Vec::new() }).await?;
        Ok(usize::try_from(queue.iter().map(|of| of.runs).sum::<u64>()).unwrap_or(usize::MAX))
    }

    /// Claims as many runs as there are slots for.
    async fn claim(self: &Arc<Self>) -> Result<(), StoreError> {
        if !self.is_draining() && self.has_suspects() {
            return self.drive_next_alone().await;
        }
        let waiting = {
            let schedule = self.schedule();
            if self.is_draining() || schedule.slots.is_full() {
                return Ok(());
            }
            QueueQuery { now_ms: clock::wall_ms(), except: schedule.backoffs.resting() }
        };
        let queue = self.runs.journal.queue(waiting.clone()).await?;
        let mut taken: Vec<(Owner, RunSlot)> = Vec::new();
        let shares = {
            let mut schedule = self.schedule();
            let RunSchedule { slots, turns, .. } = &mut *schedule;
            let shares = turns.divide(&queue, |owner| {
                let slot = slots.take(owner);
                slot.is_some_and(|slot| {
                    taken.push((owner.clone(), slot));
                    true
                })
            });
            self.quotas.carry(&schedule.uncounted(&queue, &taken));
            schedule.left = left(queue, &taken);
            shares
        };
        if shares.is_empty() {
            return Ok(());
        }
        let asked_at = clock::instant();
        let claimed = self.runs.journal.claim(waiting, shares).await;
        self.metrics.store_answered("claim", clock::elapsed(asked_at));
        for run in claimed.as_ref().map(Vec::as_slice).unwrap_or_default() {
            let is_its = |(owner, _): &(Owner, RunSlot)| owner.org == run.org && owner.token == run.token;
            if let Some(at) = taken.iter().position(is_its) {
                self.take_claimed(run.clone(), taken.swap_remove(at).1);
            }
        }
        // Others were faster.
        let mut schedule = self.schedule();
        taken.iter().for_each(|(_, slot)| schedule.slots.give_back(slot));
        claimed.map(drop)
    }

    /// Drives a run that was claimed, in its slot.
    pub(super) fn take_claimed(self: &Arc<Self>, run: ClaimedRun, slot: RunSlot) {
        let ClaimedRun { run_id, lease, .. } = run;
        let (active, queued) = {
            let mut schedule = self.schedule();
            let known = schedule.active.get(&run_id).cloned();
            // A request that wants to drive it now is refused: it has an entry of its own until then.
            let queued = schedule.waiting.remove(&run_id);
            let active = known.filter(|_| queued.is_some()).unwrap_or_else(|| ActiveRun::new(None));
            schedule.active.insert(run_id.clone(), Arc::clone(&active));
            (active, queued)
        };
        // Its server died or left it, or what it waits for is due.
        let taken_up = lease.as_ref().ok().filter(|_| queued.is_none()).map(|lease| lease.events);
        let place = queued.filter(|queued| queued.is_launched).and_then(|queued| queued.permit);
        let driven = DrivenRun::new(self, run_id.clone(), active, slot).in_place(place);
        let scheduler = Arc::clone(self);
        let owner = driven.owner().span();
        tokio::spawn(
            async move {
                let leased = match lease {
                    Ok(lease) => Leased::claimed(&scheduler.runs.journal, &run_id, lease),
                    Err(fault) => return scheduler.finish(driven, Err(Fault::Store(fault))),
                };
                if leased.is_to_be_quarantined() {
                    tracing::error!(
                        run_id,
                        "set aside: its drivers died again and again, the last one while it drove this run alone; resume it by its id"
                    );
                    let released = leased.give_back().await.map_err(Fault::Store);
                    if let Err(fault) = released {
                        scheduler.finish(driven, Err(fault));
                    }
                    return;
                }
                if !leased.is_suspect() {
                    // It waited for its model meanwhile, or something came of it.
                    scheduler.let_others_in(&run_id);
                } else if !scheduler.may_drive_alone(&run_id) {
                    // It is taken up again when nothing else is driven here.
                    let released = leased.give_back().await.map_err(Fault::Store);
                    if let Err(fault) = released {
                        scheduler.finish(driven, Err(fault));
                    }
                    return;
                }
                match scheduler.read_leased(leased, &run_id).await {
                    Ok((run, program)) => {
                        if let Some(events) = taken_up {
                            let loop_name = program.program.name.as_str();
                            tracing::info!(run_id, "loop" = loop_name, events, "the run is taken up from the store");
                        }
                        let resume = Resume { models_rest: scheduler.models_rest(&run_id), ..Resume::default() };
                        let task = DriverTask::Resume { run: Box::new(run), resume: Box::new(resume), taken: None };
                        scheduler.spawn(program, driven, task);
                    }
                    Err(fault) => scheduler.finish(driven, Err(fault)),
                }
            }
            .instrument(owner)
            .boxed(),
        );
    }

    /// Forgets the runs that wait or rest here and that another server has driven or ended since.
    async fn forget_what_went_on(&self) -> Result<(), StoreError> {
        let known: Vec<String> = {
            let schedule = self.schedule();
            let waiting = schedule.waiting.iter().filter(|(_, queued)| queued.is_released).map(|(run_id, _)| run_id);
            waiting.chain(schedule.backoffs.runs()).cloned().collect()
        };
        if known.is_empty() {
            return Ok(());
        }
        let heads = self.runs.journal.heads(known.clone()).await?;
        for run_id in known {
            let head = heads.iter().find(|head| head.run_id == run_id);
            if head.is_none_or(|head| head.driven || head.status != Status::Running) {
                self.forget(&run_id);
            }
            if head.is_none_or(|head| !matches!(head.status, Status::Running | Status::Paused)) {
                self.schedule().backoffs.forget(&run_id);
            }
        }
        Ok(())
    }

    /// Leases and reads a run that a human decided about, with the document that the human chose.
    ///
    /// # Errors
    /// When another driver has it, its document can't be read or has changed, or the store fails.
    pub(super) async fn lease(
        &self,
        run: &mut DecidedRun,
        new_document: Option<bool>,
    ) -> Result<(LeasedRun, ProgramOfRun), ProblemDetails> {
        let run_id = run.row.run_id.clone();
        let leased = Leased::take(&self.runs.journal, &run_id).await?;
        if run.as_listed {
            let now = self.runs.journal.find(&run_id).await?;
            if !now.is_some_and(|now| now.is_unchanged(&run.row)) {
                let detail = "the run has continued since it was listed: somebody else may have retried it";
                return Err(ProblemDetails::conflict("changed_meanwhile", detail));
            }
        }
        let (events, folded) = match run.take() {
            // Nobody drove it since it was read.
            Some(FollowedRun { program, run }) if run.seen() == leased.events() => {
                (run.events, Some((program.program, run.state)))
            }
            _ => (self.runs.events(&run_id).await?, None),
        };
        let program = self.runs.chosen(&run_id, &events, new_document).await?;
        let is_same = |(folded_by, _): &(Arc<Program>, State)| Arc::ptr_eq(folded_by, &program.program);
        let state = folded.filter(is_same).map(|(_, state)| state);
        Ok((LeasedRun { leased, events, state }, program))
    }

    /// Reads a leased run. If that fails, dropping the lease releases it.
    pub(super) async fn read_leased(&self, leased: Leased, run_id: &str) -> Result<(LeasedRun, ProgramOfRun), Fault> {
        let events = self.runs.events(run_id).await?;
        let program = self.runs.program(run_id, &events).await?;
        Ok((LeasedRun { leased, events, state: None }, program))
    }
}

impl RunSchedule {
    /// The runs of each owner that wait in the store and not here, when these were taken. The oldest are taken first: those that wait from
    /// before a restart.
    fn uncounted(&self, queue: &[QueuedRuns], taken: &[(Owner, RunSlot)]) -> Vec<(Owner, usize)> {
        let mut known: HashMap<&Owner, usize> = HashMap::new();
        let here = self.waiting.values().filter(|queued| queued.permit.is_some()).map(|queued| &queued.owner);
        here.chain(taken.iter().map(|(owner, _)| owner)).for_each(|owner| *known.entry(owner).or_default() += 1);
        let of = |queued: &QueuedRuns| {
            let owner = Owner { org: queued.org.clone(), token: queued.token.clone() };
            let runs = usize::try_from(queued.runs).unwrap_or(usize::MAX);
            let known = known.get(&owner).copied().unwrap_or_default();
            (owner, runs.saturating_sub(known))
        };
        queue.iter().map(of).filter(|(_, runs)| *runs > 0).collect()
    }
}

/// The owners of whom some runs still wait.
fn left(queue: Vec<QueuedRuns>, taken: &[(Owner, RunSlot)]) -> Vec<Owner> {
    let owned = queue.into_iter().map(|of| (Owner { org: of.org, token: of.token }, of.runs));
    let count = |owner: &Owner| u64::try_from(taken.iter().filter(|(of, _)| of == owner).count()).unwrap_or(u64::MAX);
    owned.filter(|(owner, runs)| *runs > count(owner)).map(|(owner, _)| owner).collect()
}
