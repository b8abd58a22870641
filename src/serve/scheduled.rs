//! Starts the runs of schedules. A run is named after its workflow and its time, so the journal begins it once, whoever
//! looks: two servers, or a server and the one after it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::FutureExt as _;
use serde_json::Value;

use super::app::App;
use super::folder::ServedLoop;
use super::request::WaitQuery;
use super::route::{StartOrder, started};
use super::scheduler::Admission;
use crate::drive::start::Start;
use crate::engine::digest::Digest;
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, StoreFault};
use crate::program::flow::FlowSchedule;
use crate::program::timetable::{Timetable, stamp, stamped};

/// The interval of the looks.
const LOOK: Duration = Duration::from_millis(500);

/// The most characters of a workflow's name in the ids of its runs.
const LONGEST_NAME: usize = 64;

/// What was last seen of the runs of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastRun {
    /// The time of the newest one, in milliseconds since 1970.
    time_ms: i64,
    /// Whether one has not ended.
    goes_on: bool,
}

/// Starts the runs of the folder's schedules.
#[derive(Debug)]
pub struct ScheduledStarts {
    /// The moment since which this server looks, in milliseconds since 1970.
    since_ms: i64,
    /// By the name of the workflow, the last time for which nothing is left to do.
    settled: BTreeMap<String, i64>,
}

/// The time at which a run is to be started now, if there is one. Of times that were missed, the last one counts, but none
/// before the first look at a schedule that never started a run. While a run goes on, its schedule starts no other.
fn due(timetable: &Timetable, now_ms: i64, since_ms: i64, last: Option<LastRun>) -> Due {
    let Some(time_ms) = timetable.latest(now_ms) else { return Due::Nothing };
    match last {
        Some(last) if time_ms <= last.time_ms => Due::Nothing,
        None if time_ms <= since_ms => Due::Nothing,
        Some(last) if last.goes_on => Due::Later,
        _ => Due::Now(time_ms),
    }
}

/// What is to be done for a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Nothing until its next time.
    Nothing,
    /// A run waits until the one before it has ended.
    Later,
    /// A run of this time is to be started.
    Now(i64),
}

/// What the ids of a workflow's scheduled runs begin with; their time follows. Ids are in addresses and headers: a name
/// with other signs than those of plain names is written without them, and its digest distinguishes it from others.
fn id_prefix(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() <= LONGEST_NAME && name.chars().all(is_plain) {
        return format!("{name}@");
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(LONGEST_NAME).collect();
    let mut digest = Digest::new();
    digest.extend(name);
    let digest: String = digest.to_string().chars().take(8).collect();
    format!("{plain}-{digest}@")
}

impl ScheduledStarts {
    /// Starts of what is due from this moment on.
    pub fn since(now_ms: i64) -> Self {
        Self { since_ms: now_ms, settled: BTreeMap::new() }
    }

    /// Starts what is due by this clock, until the server stops.
    pub fn watch(mut self, app: &Arc<App>, clock: impl Fn() -> i64 + Send + 'static) {
        let app = Arc::downgrade(app);
        tokio::spawn(
            async move {
                loop {
                    tokio::time::sleep(LOOK).await;
                    let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                    self.look(&app, clock()).await;
                }
            }
            .boxed(),
        );
    }

    /// Starts what is due at this moment.
    pub async fn look(&mut self, app: &Arc<App>, now_ms: i64) {
        for (name, offered) in &app.folder.loops {
            let Some(schedule) = offered.program.flow.as_ref().and_then(|flow| flow.schedule.as_ref()) else {
                continue;
            };
            let Some(time_ms) = schedule.timetable.latest(now_ms) else { continue };
            if self.settled.get(name).is_some_and(|settled| *settled >= time_ms) {
                continue;
            }
            let last = match last_run(app, name).await {
                Ok(last) => last,
                Err(fault) => {
                    tracing::error!(name, code = fault.code(), "scheduled runs can't be listed: {fault}");
                    continue;
                }
            };
            let is_settled = match due(&schedule.timetable, now_ms, self.since_ms, last) {
                Due::Nothing => true,
                Due::Later => false,
                Due::Now(time_ms) => start(app, name, offered, (schedule, time_ms)).await,
            };
            if is_settled {
                self.settled.insert(name.clone(), time_ms);
            }
        }
    }
}

/// The newest run that the schedule of a workflow started.
async fn last_run(app: &App, name: &str) -> Result<Option<LastRun>, StoreFault> {
    let prefix = id_prefix(name);
    let filter = RunFilter { id_prefix: Some(prefix.clone()), limit: 1, ..RunFilter::default() };
    let newest = app.runs.journal.list(filter).await?.into_iter().next();
    Ok(newest.and_then(|run| {
        let time_ms = stamped(run.run_id.strip_prefix(&prefix)?)?;
        Some(LastRun { time_ms, goes_on: matches!(run.status, Status::Running | Status::Paused) })
    }))
}

/// Starts a run; returns whether that need not be tried again.
async fn start(app: &Arc<App>, name: &str, offered: &ServedLoop, due: (&FlowSchedule, i64)) -> bool {
    let (schedule, time_ms) = due;
    let Some(stamp) = stamp(time_ms) else { return true };
    let run_id = format!("{}{stamp}", id_prefix(name));
    let input = Value::Object(schedule.input.clone());
    let start = Start { run_id: Some(run_id.clone()), input, ..Start::default() };
    let order = StartOrder { program: Arc::clone(&offered.program), root: offered.root.clone(), start };
    match started(app, order, Admission::default(), &WaitQuery::default()).await {
        Ok(_) => {
            tracing::info!(run_id, "started by its schedule");
            true
        }
        Err(problem) => {
            tracing::error!(run_id, code = problem.code, "the scheduled run can't be started: {}", problem.detail);
            problem.status != StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::workflow::Schedule;

    const HOUR: i64 = 3_600_000;

    fn hourly() -> Timetable {
        let every = "1h".to_owned();
        Timetable::of(&Schedule { every, at: None, timezone: None, input: None }).unwrap()
    }

    #[test]
    fn a_schedule_without_runs_begins_at_its_next_time() {
        assert_eq!(due(&hourly(), 10 * HOUR, 10 * HOUR, None), Due::Nothing);
        assert_eq!(due(&hourly(), 11 * HOUR - 1, 10 * HOUR, None), Due::Nothing);
        assert_eq!(due(&hourly(), 11 * HOUR, 10 * HOUR, None), Due::Now(11 * HOUR));
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
        let last = LastRun { time_ms: 3 * HOUR, goes_on: false };
        assert_eq!(due(&hourly(), 10 * HOUR + 5, 10 * HOUR + 5, Some(last)), Due::Now(10 * HOUR));
        let last = LastRun { time_ms: 10 * HOUR, goes_on: false };
        assert_eq!(due(&hourly(), 10 * HOUR + 5, 0, Some(last)), Due::Nothing);
        // A clock that was set back.
        assert_eq!(due(&hourly(), 8 * HOUR, 0, Some(last)), Due::Nothing);
    }

    #[test]
    fn a_run_waits_for_the_one_before_it() {
        let last = LastRun { time_ms: 3 * HOUR, goes_on: true };
        assert_eq!(due(&hourly(), 4 * HOUR, 0, Some(last)), Due::Later);
        assert_eq!(due(&hourly(), 9 * HOUR, 0, Some(last)), Due::Later);
        assert_eq!(due(&hourly(), 9 * HOUR, 0, Some(LastRun { goes_on: false, ..last })), Due::Now(9 * HOUR));
        assert_eq!(due(&hourly(), 3 * HOUR + 1, 0, Some(last)), Due::Nothing);
    }
}
