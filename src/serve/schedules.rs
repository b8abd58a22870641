//! Starts the runs of schedules. The store knows for which time each of them was started; a run is also named after its
//! workflow and its time, so the journal begins it once, whoever looks: two servers, or a server and the one after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::FutureExt as _;
use serde_json::Value;

use super::app::App;
use super::folder::{Folder, ServedLoop};
use super::request::WaitQuery;
use super::route::{StartOrder, started};
use super::scheduler::Admission;
use super::switches::sentence;
use crate::drive::fault::Fault;
use crate::drive::start::Start;
use crate::engine::digest::Digest;
use crate::engine::event::DecisionRights;
use crate::engine::outcome::Status;
use crate::journal::schedules::CLOCK_TOLERANCE_MS;
use crate::journal::{
    LoopSwitch, ScheduleRuns, ScheduledRun, ServedSchedule, ServedSchedules, StoreError, UnderWay, needs_no_human,
};
use crate::program::flow::FlowSchedule;
use crate::program::timetable::{Timetable, stamp};
use crate::trace::units::rfc3339;

/// The interval of the looks.
const SCHEDULE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The most characters of a workflow's name in the ids of its runs.
const MAX_NAME_CHARACTERS: usize = 64;

/// How many ids of a time are tried: other runs may have them.
const MAX_TRIED_IDS: u32 = 16;

/// A run for which a schedule waits, as the log says it.
#[derive(Debug, PartialEq, Eq)]
struct HeldBack {
    run_id: String,
    waits_for_human: bool,
}

/// Starts the runs of the folder's schedules.
#[derive(Debug)]
pub struct ScheduledStarts {
    /// The moment since which this server looks, in milliseconds since 1970.
    since_ms: i64,
    /// By the name of the workflow, since when its schedule is as it is; none before the first look.
    seen: Option<BTreeMap<String, i64>>,
    /// Of the folder whose schedules were seen.
    digest: String,
    /// By the name of the workflow, the last time for which nothing is left to do.
    settled: BTreeMap<String, i64>,
    /// By the name of the workflow, the run for which its schedule waits, as far as the log says so.
    held_back: BTreeMap<String, HeldBack>,
    /// The workflows that are switched off, as far as the log says so.
    switched_off: BTreeSet<String>,
}

/// What is to be done at this moment. Of times that were missed, the last one counts, but none before the schedule was
/// first seen as it is. While a run has not ended, its schedule starts no other.
fn due(timetable: &Timetable, now_ms: i64, seen_ms: i64, runs: ScheduleRuns) -> Due {
    let Some(time_ms) = timetable.latest(now_ms) else { return Due::Nothing };
    if time_ms <= seen_ms || runs.last_due_ms.is_some_and(|last_ms| time_ms <= last_ms) {
        return Due::Nothing;
    }
    match runs.under_way {
        Some(run) => Due::Later(run),
        None => Due::Now(time_ms),
    }
}

/// What is to be done for a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Due {
    /// Nothing until its next time.
    Nothing,
    /// A run waits until this one has ended.
    Later(UnderWay),
    /// A run of this time is to be started.
    Now(i64),
}

/// What the ids of a workflow's scheduled runs begin with; their time follows. Ids are in addresses and headers: a name
/// with other signs than those of plain names is written without them, and its digest distinguishes it from others.
fn id_prefix(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() <= MAX_NAME_CHARACTERS && name.chars().all(is_plain) {
        return format!("{name}@");
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(MAX_NAME_CHARACTERS).collect();
    let mut digest = Digest::new();
    digest.extend(name);
    let digest: String = digest.to_string().chars().take(8).collect();
    format!("{plain}-{digest}@")
}

impl ScheduledStarts {
    /// Starts of what is due from this moment on.
    pub fn since(now_ms: i64) -> Self {
        Self {
            since_ms: now_ms,
            seen: None,
            digest: String::new(),
            settled: BTreeMap::new(),
            held_back: BTreeMap::new(),
            switched_off: BTreeSet::new(),
        }
    }

    /// Starts what is due by this clock, until the server stops.
    pub fn watch(mut self, app: &Arc<App>, clock: impl Fn() -> i64 + Send + 'static) {
        let app = Arc::downgrade(app);
        tokio::spawn(
            async move {
                loop {
                    let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                    self.look(&app, clock()).await;
                    drop(app);
                    tokio::time::sleep(SCHEDULE_POLL_INTERVAL).await;
                }
            }
            .boxed(),
        );
    }

    /// Starts what is due at this moment.
    pub async fn look(&mut self, app: &Arc<App>, now_ms: i64) {
        if let Err(fault) = self.see(app, now_ms).await {
            tracing::error!(code = fault.code(), "schedules can't be noted: {fault}");
            return;
        }
        let switches = match app.switches.all(&*app.runs.journal).await {
            Ok(switches) => switches,
            Err(fault) => {
                tracing::error!(code = fault.code(), "the switches of loops can't be read: {fault}");
                return;
            }
        };
        let folder = app.folder();
        for (name, offered) in &folder.loops {
            let Some(schedule) = schedule(offered) else { continue };
            let Some(time_ms) = schedule.timetable.latest(now_ms) else { continue };
            let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
            if self.settled.get(name).is_some_and(|settled| (time_ms..=latest_ms).contains(settled)) {
                continue;
            }
            if self.is_off(name, switches.get(name)) {
                continue;
            }
            let seen_ms = self.seen.as_ref().and_then(|seen| seen.get(name)).copied().unwrap_or(self.since_ms);
            // The times at which it was off are over.
            let switched = switches.get(name).filter(|switch| switch.at_ms <= latest_ms);
            let seen_ms = switched.map_or(seen_ms, |switch| switch.at_ms.max(seen_ms));
            let runs = match runs(app, name, now_ms).await {
                Ok(runs) => runs,
                Err(fault) => {
                    tracing::error!(name, code = fault.code(), "scheduled runs can't be listed: {fault}");
                    continue;
                }
            };
            let end = match due(&schedule.timetable, now_ms, seen_ms, runs) {
                Due::Nothing => StartEnd::Settled,
                Due::Later(run) => {
                    self.hold_back(app, name, run).await;
                    StartEnd::Open
                }
                Due::Now(time_ms) => {
                    self.held_back.remove(name);
                    start(app, name, offered, schedule, time_ms).await
                }
            };
            if end == StartEnd::Skipped
                && let Err(fault) = self.skip(app, name, now_ms).await
            {
                tracing::error!(code = fault.code(), "schedules can't be noted: {fault}");
            }
            if end != StartEnd::Open {
                self.settled.insert(name.clone(), time_ms);
            }
        }
    }

    /// Notes the schedules of the folder in the store, once: the others of the store may serve other folders. What was noted
    /// by a clock that was ahead, this one too, is noted anew.
    async fn see(&mut self, app: &App, now_ms: i64) -> Result<(), StoreError> {
        let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let folder = app.folder();
        if self.digest != folder.digest {
            // The folder was read again: what is new in it is seen now.
            if !self.digest.is_empty() {
                self.since_ms = now_ms;
                self.settled.clear();
            }
            (self.seen, self.digest) = (None, folder.digest.clone());
        }
        match &self.seen {
            Some(seen) if seen.values().all(|seen_ms| *seen_ms <= latest_ms) => return Ok(()),
            Some(_) => self.since_ms = now_ms,
            None => self.since_ms = self.since_ms.min(now_ms),
        }
        let served = served(&folder, self.since_ms);
        let names: Vec<String> = served.timetables.iter().map(|schedule| schedule.name.clone()).collect();
        let seen = app.runs.journal.serve_schedules(served).await?;
        self.seen = Some(names.into_iter().zip(seen).collect());
        Ok(())
    }

    /// Notes in the store that the times of a schedule until now are over, so that no other process starts them: it counts as first seen
    /// now. Without its times it is another schedule; a process that dies then leaves one whose times are not known, and the moment
    /// stays when they are noted again.
    async fn skip(&mut self, app: &App, name: &str, now_ms: i64) -> Result<(), StoreError> {
        let folder = app.folder();
        for has_times in [false, true] {
            let mut served = served(&folder, now_ms);
            let skipped = served.timetables.iter_mut().filter(|schedule| !has_times && schedule.name == name);
            skipped.for_each(|schedule| schedule.timetable.clear());
            let names: Vec<String> = served.timetables.iter().map(|schedule| schedule.name.clone()).collect();
            let seen = app.runs.journal.serve_schedules(served).await?;
            self.seen = Some(names.into_iter().zip(seen).collect());
        }
        Ok(())
    }

    /// Whether a workflow is switched off; says so once.
    fn is_off(&mut self, name: &str, switch: Option<&LoopSwitch>) -> bool {
        let Some(switch) = switch.filter(|switch| switch.is_off) else {
            self.switched_off.remove(name);
            return false;
        };
        if self.switched_off.insert(name.to_owned()) {
            tracing::warn!("the schedule of {name} starts no run: {}", sentence(switch));
        }
        true
    }

    /// Says once that a schedule waits for a run; once more when that waits for a decision.
    async fn hold_back(&mut self, app: &App, name: &str, run: UnderWay) {
        // A pause without a human ends by itself.
        let waits_for_human = match (run.status, app.runs.journal.find(&run.run_id).await) {
            (Status::Paused, Ok(Some(row))) => row.termination.is_some_and(|reason| !needs_no_human(reason)),
            _ => false,
        };
        let held = HeldBack { run_id: run.run_id, waits_for_human };
        if self.held_back.get(name) == Some(&held) {
            return;
        }
        let run_id = held.run_id.as_str();
        match waits_for_human {
            true => tracing::warn!(
                run_id,
                "the schedule of {name} starts no run: this one is paused, and waits for a decision"
            ),
            false => tracing::info!(run_id, "the schedule of {name} waits until this run has ended"),
        }
        self.held_back.insert(name.to_owned(), held);
    }
}

fn schedule(offered: &ServedLoop) -> Option<&FlowSchedule> {
    offered.program.as_flow()?.schedule.as_ref()
}

fn served(folder: &Folder, now_ms: i64) -> ServedSchedules {
    let timetables = folder.loops.iter().filter_map(|(name, offered)| {
        Some(ServedSchedule { name: name.clone(), timetable: schedule(offered)?.timetable.text() })
    });
    ServedSchedules { place: folder.place.display().to_string(), now_ms, timetables: timetables.collect() }
}

/// What is known of the runs of a schedule. Those that a clock that was ahead started for times to come stay, and are not
/// the runs of those times.
async fn runs(app: &App, name: &str, now_ms: i64) -> Result<ScheduleRuns, StoreError> {
    let runs = app.runs.journal.schedule_runs(name, now_ms).await?;
    if let Some(ahead_ms) = runs.ahead_due_ms {
        tracing::warn!(
            "the schedule of {name} has a run of {}, which is still to come: a clock was ahead; the run does not count, and \
             that time is started when it comes",
            rfc3339(ahead_ms)
        );
        app.runs.journal.disregard_ahead(name, now_ms).await?;
    }
    Ok(runs)
}

/// The run for which a schedule waits although a time of it has come.
///
/// # Errors
/// When the store fails.
pub async fn waits_for(app: &App, name: &str, now_ms: i64) -> Result<Option<UnderWay>, StoreError> {
    let folder = app.folder();
    let Some(schedule) = folder.loops.get(name).and_then(schedule) else { return Ok(None) };
    let runs = app.runs.journal.schedule_runs(name, now_ms).await?;
    Ok(match due(&schedule.timetable, now_ms, i64::MIN, runs) {
        Due::Later(run) => Some(run),
        Due::Nothing | Due::Now(_) => None,
    })
}

/// What became of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartEnd {
    /// It is to be tried again.
    Open,
    /// It need not be tried again.
    Settled,
    /// Its time is skipped: other runs hold the places of its line, and the workflow says that it is refused then.
    Skipped,
}

/// Starts a run.
async fn start(app: &Arc<App>, name: &str, offered: &ServedLoop, schedule: &FlowSchedule, time_ms: i64) -> StartEnd {
    let Some(stamp) = stamp(time_ms) else { return StartEnd::Settled };
    let line_full = Fault::LineFull { by: String::new() }.code();
    for number in 1..=MAX_TRIED_IDS {
        let again = if number == 1 { String::new() } else { format!("-{number}") };
        let run_id = format!("{}{stamp}{again}", id_prefix(name));
        let scheduled =
            ScheduledRun { schedule: name.to_owned(), due_at_ms: time_ms, timetable: schedule.timetable.text() };
        let input = Value::Object(schedule.input.clone());
        // No token started it: who wrote its document and its targets lets those decide who read what it posts.
        let callback_rights = Some(DecisionRights::All);
        let run = Some(run_id.clone());
        let start = Start { run_id: run, input, scheduled: Some(scheduled), callback_rights, ..Start::default() };
        let order = StartOrder { program: Arc::clone(&offered.program), root: offered.root.clone(), start };
        match started(app, order, Admission::default(), &WaitQuery::default()).await {
            Ok((_, Some(_))) => {
                tracing::info!(run_id, "started by its schedule");
                return StartEnd::Settled;
            }
            Err(problem) if problem.code == line_full => {
                let time = rfc3339(time_ms);
                tracing::warn!(run_id, "the schedule of {name} skips its time {time}: {}", problem.detail);
                return StartEnd::Skipped;
            }
            Err(problem) if problem.code != Fault::Conflict(String::new()).code() => {
                tracing::error!(run_id, code = problem.code, "the scheduled run can't be started: {}", problem.detail);
                return match problem.status {
                    StatusCode::SERVICE_UNAVAILABLE => StartEnd::Open,
                    _ => StartEnd::Settled,
                };
            }
            // Another server was faster; or a run has the id that no schedule started, or that one started by a clock that was ahead.
            Ok(_) | Err(_) => {}
        }
        match app.runs.journal.schedule_runs(name, time_ms).await {
            Ok(runs) if runs.last_due_ms.is_some_and(|last_ms| last_ms >= time_ms) => return StartEnd::Settled,
            Ok(_) => {
                tracing::warn!(run_id, "a run has this id already: the scheduled run gets another one")
            }
            Err(fault) => {
                tracing::error!(name, code = fault.code(), "scheduled runs can't be listed: {fault}");
                return StartEnd::Open;
            }
        }
    }
    tracing::error!(name, "the scheduled run of {stamp} can't be started: other runs have its ids");
    StartEnd::Settled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::workflow::Schedule;

    const HOUR_MS: i64 = 3_600_000;

    fn hourly() -> Timetable {
        let every = "1h".to_owned();
        Timetable::of(&Schedule { every, at: None, timezone: None, input: None }).unwrap()
    }

    fn runs(last_due_ms: Option<i64>, is_under_way: bool) -> ScheduleRuns {
        let run = UnderWay { run_id: "r".to_owned(), status: Status::Paused };
        ScheduleRuns { last_due_ms, ahead_due_ms: None, under_way: is_under_way.then_some(run) }
    }

    #[test]
    fn a_schedule_begins_at_its_first_time_after_it_was_seen() {
        let due = |now_ms: i64, last_due_ms| due(&hourly(), now_ms, 10 * HOUR_MS, runs(last_due_ms, false));
        assert_eq!(due(10 * HOUR_MS, None), Due::Nothing);
        assert_eq!(due(11 * HOUR_MS - 1, None), Due::Nothing);
        assert_eq!(due(11 * HOUR_MS, None), Due::Now(11 * HOUR_MS));
        // A schedule that was edited at ten.
        assert_eq!(due(11 * HOUR_MS - 1, Some(3 * HOUR_MS)), Due::Nothing);
    }

    #[test]
    fn an_id_has_the_name_or_what_is_plain_of_it() {
        assert_eq!(id_prefix("claims_v2.1-a"), "claims_v2.1-a@");
        let (one, other) = (id_prefix("AP/Prüfung"), id_prefix("AP Prüfung"));
        assert!(one.starts_with("AP-Pr-fung-") && one.len() == "AP-Pr-fung-12345678@".len(), "{one}");
        assert_ne!(one, other);
        assert!(id_prefix(&"x".repeat(500)).len() < 80);
    }

    #[test]
    fn of_missed_times_the_last_one_counts() {
        let last = || runs(Some(3 * HOUR_MS), false);
        assert_eq!(due(&hourly(), 10 * HOUR_MS + 5, 0, last()), Due::Now(10 * HOUR_MS));
        let last = || runs(Some(10 * HOUR_MS), false);
        assert_eq!(due(&hourly(), 10 * HOUR_MS + 5, 0, last()), Due::Nothing);
        // A clock that was set back.
        assert_eq!(due(&hourly(), 8 * HOUR_MS, 0, last()), Due::Nothing);
    }

    #[test]
    fn a_run_waits_for_the_one_before_it() {
        let is_later = |now_ms: i64| matches!(due(&hourly(), now_ms, 0, runs(Some(3 * HOUR_MS), true)), Due::Later(_));
        assert!(is_later(4 * HOUR_MS) && is_later(9 * HOUR_MS));
        assert_eq!(due(&hourly(), 9 * HOUR_MS, 0, runs(Some(3 * HOUR_MS), false)), Due::Now(9 * HOUR_MS));
        assert_eq!(due(&hourly(), 3 * HOUR_MS + 1, 0, runs(Some(3 * HOUR_MS), true)), Due::Nothing);
    }
}
