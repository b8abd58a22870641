//! Schedules of stores of older versions, and drivers that come and go at once.

use super::*;
use crate::journal::conformance::{begin, new_run, wait};
use crate::journal::{NewRun, ScheduleRuns, ServedSchedule, ServedSchedules};

/// 2026-06-01T10:01:00Z.
const DUE: i64 = 1_780_308_060_000;

#[test]
fn the_ids_of_an_older_store_say_for_which_times_its_runs_were_started() {
    let (_folder, path) = place();
    let journal = open(&path);
    for id in
        ["job@20260601T100000Z", "job@20260601T100100Z", "job@extra", "job@20261301T100100Z", "job@20260601T100200Z.x"]
    {
        let new = NewRun { loop_name: "job".to_owned(), ..new_run(id) };
        wait(journal.create(new)).unwrap();
    }
    begin(&journal, "other@20260601T110000Z");
    drop(journal);
    let older = "DROP INDEX runs_by_line; ALTER TABLE runs DROP COLUMN line; ALTER TABLE runs DROP COLUMN line_limit;
                 ALTER TABLE runs DROP COLUMN line_rule; ALTER TABLE runs DROP COLUMN place; DROP TABLE outside_events; DROP INDEX runs_by_awaited; ALTER TABLE runs DROP COLUMN awaits;
                    ALTER TABLE drivers DROP COLUMN address; ALTER TABLE runs DROP COLUMN title; ALTER TABLE runs DROP COLUMN tokens; ALTER TABLE runs DROP COLUMN cost_usd; ALTER TABLE runs DROP COLUMN error;
                    ALTER TABLE runs DROP COLUMN question; ALTER TABLE runs DROP COLUMN search_text;
                    DROP INDEX runs_by_start_key; ALTER TABLE runs DROP COLUMN start_key;
                 DROP TABLE schedules; DROP TABLE scheduled_runs; PRAGMA user_version = 10";
    Connection::open(&path).unwrap().execute_batch(older).unwrap();
    let journal = open(&path);
    let known = wait(journal.schedule_runs("job", DUE + 3_600_000)).unwrap();
    assert_eq!((known.last_due_ms, known.ahead_due_ms), (Some(DUE), None));
    assert_eq!(known.under_way.map(|run| run.run_id).as_deref(), Some("job@20260601T100100Z"));
    assert_eq!(wait(journal.schedule_runs("other", i64::MAX)).unwrap(), ScheduleRuns::default());
    // Nobody noted how its schedule was written: it counts as unchanged once.
    let serve = |now_ms: i64, timetable: &str| {
        let timetables = vec![ServedSchedule { name: "job".to_owned(), timetable: timetable.to_owned() }];
        wait(journal.serve_schedules(ServedSchedules { place: "/app".to_owned(), now_ms, timetables })).unwrap()
    };
    assert_eq!(serve(DUE + 9, "every 1 min"), [DUE - 60_000]);
    assert_eq!(serve(DUE + 10, "every 2 min"), [DUE + 10]);
}

#[test]
fn drivers_that_enter_and_leave_at_once_never_refuse_each_other() {
    let (_folder, path) = place();
    drop(open(&path));
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..20 {
                    begin(&open(path), &format!("r{worker}-{round}"));
                }
            });
        }
    });
    assert_eq!(wait(open(&path).list(Default::default())).unwrap().len(), 120);
}

#[test]
fn a_run_that_waits_for_its_model_is_not_counted() {
    let (_folder, path) = place();
    begin(&open(&path), "r");
    let failed = |journal: &SqliteJournal| wait(journal.lease("r")).unwrap().failed_take_ups;
    // Each of them is dropped with the lease that it holds, as in a death.
    let mut seen = Vec::new();
    for absolves in [false, false, true, false, false] {
        let journal = open(&path);
        seen.push(failed(&journal));
        if absolves {
            wait(journal.absolve(vec!["r".to_owned(), "none".to_owned()])).unwrap();
        }
        journal.die();
    }
    assert_eq!(seen, [0, 1, 2, 1, 2]);
}
