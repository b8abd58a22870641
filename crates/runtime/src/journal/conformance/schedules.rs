//! Schedules: what the store knows of them and of their runs.

use super::*;
use crate::journal::schedules::CLOCK_TOLERANCE_MS;

const HOUR: i64 = 3_600_000;
const HOURLY: &str = "every 60 min at 0 min in UTC";

fn due(schedule: &str, due_at_ms: i64) -> Option<ScheduledRun> {
    Some(ScheduledRun { schedule: schedule.to_owned(), due_at_ms, timetable: HOURLY.to_owned() })
}

fn start(journal: &dyn Journal, id: &str, scheduled: Option<ScheduledRun>) -> u64 {
    match wait(journal.create(NewRun { scheduled, ..new_run(id) })).unwrap() {
        Created::New(lease) => lease.fence,
        other => panic!("not new: {other:?}"),
    }
}

fn end(journal: &dyn Journal, id: &str, fence: u64) {
    let record = StatusRecord {
        status: Status::Completed,
        termination: Some(Termination::Complete),
        iterations: 1,
        at_ms: 2_000,
        ..StatusRecord::new(Status::Running, 0)
    };
    wait(journal.append(Append { status_record: Some(record), release: true, ..event(id, fence, 1) })).unwrap();
}

fn served(place: &str, now_ms: i64, schedules: &[(&str, &str)]) -> ServedSchedules {
    let timetables = schedules
        .iter()
        .map(|(name, timetable)| ServedSchedule { name: (*name).to_owned(), timetable: (*timetable).to_owned() });
    ServedSchedules { place: place.to_owned(), now_ms, timetables: timetables.collect() }
}

fn runs(journal: &dyn Journal, schedule: &str, now_ms: i64) -> ScheduleRuns {
    wait(journal.schedule_runs(schedule, now_ms)).unwrap()
}

pub(super) fn a_run_of_a_schedule_is_known_by_its_time_and_not_by_its_id(journal: &dyn Journal) {
    assert_eq!(runs(journal, "job", HOUR), ScheduleRuns::default());
    start(journal, "job@extra", None);
    start(journal, "job@19700101T020000Z.1.0", None);
    assert_eq!(runs(journal, "job", HOUR), ScheduleRuns::default());
    let fence = start(journal, "job@19700101T010000Z", due("job", HOUR));
    let under_way = |status| Some(UnderWay { run_id: "job@19700101T010000Z".to_owned(), status });
    let known = ScheduleRuns { last_due_ms: Some(HOUR), ahead_due_ms: None, under_way: under_way(Status::Running) };
    assert_eq!(runs(journal, "job", HOUR), known);
    assert_eq!(runs(journal, "jo", HOUR), ScheduleRuns::default());
    assert_eq!(wait(journal.extras("job@19700101T010000Z")).unwrap().scheduled, due("job", HOUR));
    assert_eq!(wait(journal.extras("job@extra")).unwrap().scheduled, None);
    let paused = StatusRecord {
        status: Status::Paused,
        termination: Some(Termination::Approval),
        iterations: 1,
        at_ms: 2_000,
        ..StatusRecord::new(Status::Running, 0)
    };
    let waits = Append { status_record: Some(paused), ..event("job@19700101T010000Z", fence, 1) };
    wait(journal.append(waits)).unwrap();
    assert_eq!(runs(journal, "job", 2 * HOUR).under_way, under_way(Status::Paused));
    wait(journal.release("job@19700101T010000Z", fence)).unwrap();
    let Lease { fence, .. } = wait(journal.lease("job@19700101T010000Z")).unwrap();
    let ended = StatusRecord {
        status: Status::Failed,
        termination: Some(Termination::StepFailed),
        iterations: 1,
        at_ms: 3_000,
        ..StatusRecord::new(Status::Running, 0)
    };
    let ends = Append { status_record: Some(ended), release: true, ..event("job@19700101T010000Z", fence, 2) };
    wait(journal.append(ends)).unwrap();
    assert_eq!(runs(journal, "job", 2 * HOUR), ScheduleRuns { under_way: None, ..known });
}

pub(super) fn a_schedule_is_known_since_it_was_first_served_as_it_is(journal: &dyn Journal) {
    let serve = |place: &str, now_ms: i64, schedules: &[(&str, &str)]| {
        wait(journal.serve_schedules(served(place, now_ms, schedules))).unwrap()
    };
    assert!(serve("/app", 1, &[]).is_empty());
    assert_eq!(serve("/app", HOUR, &[("a", HOURLY), ("b\0", "daily")]), [HOUR, HOUR]);
    assert_eq!(serve("/app", 2 * HOUR, &[("b\0", "daily"), ("c", HOURLY)]), [HOUR, 2 * HOUR]);
    assert_eq!(serve("/app", 3 * HOUR, &[("a", HOURLY), ("c", "daily")]), [3 * HOUR; 2], "added again; edited");
    assert_eq!(serve("/app", 4 * HOUR, &[("a", HOURLY), ("c", HOURLY)]), [3 * HOUR, 4 * HOUR], "edited back");
    // Another folder of the same store removes nothing of this one.
    assert_eq!(serve("/other", 5 * HOUR, &[("d", HOURLY)]), [5 * HOUR]);
    assert_eq!(serve("/app", 6 * HOUR, &[("a", HOURLY), ("c", HOURLY)]), [3 * HOUR, 4 * HOUR]);
}

pub(super) fn what_a_clock_that_was_ahead_wrote_does_not_count(journal: &dyn Journal) {
    let serve = |now_ms: i64| wait(journal.serve_schedules(served("/app", now_ms, &[("job", HOURLY)]))).unwrap();
    assert_eq!(serve(9 * HOUR), [9 * HOUR]);
    assert_eq!(serve(9 * HOUR - CLOCK_TOLERANCE_MS), [9 * HOUR]);
    assert_eq!(serve(HOUR), [HOUR]);
    let ahead = start(journal, "job@9", due("job", 9 * HOUR));
    end(journal, "job@9", ahead);
    let known = |last, ahead| ScheduleRuns { last_due_ms: last, ahead_due_ms: ahead, under_way: None };
    assert_eq!(runs(journal, "job", 9 * HOUR), known(Some(9 * HOUR), None));
    assert_eq!(runs(journal, "job", 9 * HOUR - CLOCK_TOLERANCE_MS), known(Some(9 * HOUR), None));
    assert_eq!(runs(journal, "job", 2 * HOUR), known(None, Some(9 * HOUR)));
    let fence = start(journal, "job@2", due("job", 2 * HOUR));
    end(journal, "job@2", fence);
    assert_eq!(runs(journal, "job", 2 * HOUR), known(Some(2 * HOUR), Some(9 * HOUR)));
    wait(journal.disregard_ahead("other", 2 * HOUR)).unwrap();
    assert_eq!(runs(journal, "job", 9 * HOUR), known(Some(9 * HOUR), None));
    wait(journal.disregard_ahead("job", 2 * HOUR)).unwrap();
    assert_eq!(runs(journal, "job", 2 * HOUR), known(Some(2 * HOUR), None));
    assert_eq!(runs(journal, "job", 9 * HOUR), known(Some(2 * HOUR), None), "the time comes, and is started then");
}

pub(super) fn the_last_time_of_a_schedule_is_known_after_its_runs_are_pruned(journal: &dyn Journal) {
    for hours in 1..=3 {
        let id = format!("job@{hours}");
        let fence = start(journal, &id, due("job", hours * HOUR));
        end(journal, &id, fence);
    }
    let which = PruneQuery::all_before(i64::MAX, vec![Status::Completed]);
    assert_eq!(wait(journal.prune(which)).unwrap(), 3);
    let known = ScheduleRuns { last_due_ms: Some(3 * HOUR), ..ScheduleRuns::default() };
    assert_eq!(runs(journal, "job", 4 * HOUR), known);
    // An id that is free again.
    start(journal, "job@3", due("job", 4 * HOUR));
    assert_eq!(runs(journal, "job", 4 * HOUR).last_due_ms, Some(4 * HOUR));
}
