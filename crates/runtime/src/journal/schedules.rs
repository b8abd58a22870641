//! Schedules in the store: since when each is known as it is written now, and for which time each of its runs was started.
//! What counts is what is written here, whatever the ids of runs look like.

use loopctl_engine::outcome::Status;

/// The most milliseconds by which the clocks of two processes may differ. What was started for a time that is further in the
/// future was started by a clock that was wrong.
pub const CLOCK_TOLERANCE_MS: i64 = 60_000;

/// For which time a schedule started a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledRun {
    /// The name of the workflow.
    pub schedule: String,
    /// The time, in milliseconds since 1970.
    pub due_at_ms: i64,
    /// The times of the schedule as they were then: its interval, its time of the day and its zone.
    pub timetable: String,
}

/// The schedules of a folder that a process begins to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedSchedules {
    /// Where the folder is. A schedule of this place that is not among these was removed there.
    pub place: String,
    /// The moment, in milliseconds since 1970.
    pub now_ms: i64,
    /// By the names of the workflows: their times.
    pub timetables: Vec<ServedSchedule>,
}

/// A schedule of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedSchedule {
    /// The name of the workflow.
    pub name: String,
    /// Its interval, its time of the day and its zone, as one text.
    pub timetable: String,
}

/// What is known of the runs of a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleRuns {
    /// The latest time that a run was started for, in milliseconds since 1970; without those that are still to come.
    pub last_due_ms: Option<i64>,
    /// The latest time to come that a run was started for.
    pub ahead_due_ms: Option<i64>,
    /// A run that has not ended.
    pub under_way: Option<UnderWay>,
}

/// A run of a schedule that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    /// Its id.
    pub run_id: String,
    /// Whether it is under way or waits.
    pub status: Status,
}

impl ServedSchedules {
    /// A schedule counts as seen for the first time at the moment, unless it was seen earlier as it is now.
    pub(super) fn latest_seen_ms(&self) -> i64 {
        self.now_ms.saturating_add(CLOCK_TOLERANCE_MS)
    }
}
