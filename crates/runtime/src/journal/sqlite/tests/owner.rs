//! What it costs to look for a run of another organisation: as much as for none, counted in SQLite's own steps.

use rusqlite::StatementStatus;

use super::*;
use crate::journal::tests::{begin, event, new_run, wait};
use crate::journal::{QueueQuery, QueueShare, StatusRecord};
use loopctl_engine::outcome::Status;

/// The steps of SQLite's machine that a look-up takes.
fn steps(connection: &Connection, sql: &str, values: &[Option<&str>]) -> i32 {
    let mut query = connection.prepare(sql).unwrap();
    let mut rows = query.query(rusqlite::params_from_iter(values)).unwrap();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    query.get_status(StatementStatus::VmStep)
}

#[test]
fn another_organisation_s_run_costs_as_many_steps_as_none() {
    let (_folder, path) = place();
    let journal = open(&path);
    for n in 0..50 {
        let org = (n % 3 > 0).then(|| format!("org{}", n % 3));
        wait(journal.create(NewRun { org, ..new_run(&format!("r{n:02}")) })).unwrap();
    }
    begin(&journal, "own");
    let connection = Connection::open(&path).unwrap();
    let owned = |org, run| steps(&connection, reads::FIND_OF, &[org, Some(run)]);
    let none = owned(Some("org1"), "r99");
    for foreign in ["r00", "r02", "r47", "own"] {
        assert_eq!(owned(Some("org1"), foreign), none, "{foreign}");
    }
    assert_eq!(owned(None, "r01"), owned(None, "r99"), "also for runs of no organisation");
    // The twins: the count sees a row that is read, and a look-up by the id alone reads it.
    assert!(owned(Some("org1"), "r01") > none);
    let by_id = |org, run| {
        let sql = "SELECT loop_name FROM runs WHERE run_id = ?2 AND +org IS ?1";
        steps(&connection, sql, &[org, Some(run)])
    };
    assert!(by_id(Some("org1"), "r00") > by_id(Some("org1"), "r99"));
}

const TO_5: &str = "DROP INDEX runs_by_line; ALTER TABLE runs DROP COLUMN line; ALTER TABLE runs DROP COLUMN line_limit; \
                    ALTER TABLE runs DROP COLUMN line_rule; ALTER TABLE runs DROP COLUMN place; DROP TABLE outside_events; DROP INDEX runs_by_awaited; ALTER TABLE runs DROP COLUMN awaits;
                    ALTER TABLE drivers DROP COLUMN address; ALTER TABLE runs DROP COLUMN title; ALTER TABLE runs DROP COLUMN tokens; ALTER TABLE runs DROP COLUMN cost_usd; ALTER TABLE runs DROP COLUMN error;
                    ALTER TABLE runs DROP COLUMN question; ALTER TABLE runs DROP COLUMN search_text;
                    DROP INDEX runs_by_start_key; ALTER TABLE runs DROP COLUMN start_key; DROP INDEX runs_by_waiting; ALTER TABLE runs DROP COLUMN waits_since_ms;
                    ALTER TABLE runs DROP COLUMN cancel_by; ALTER TABLE drivers DROP COLUMN process; DROP INDEX runs_by_end; DROP INDEX run_texts_by_text; ALTER TABLE runs DROP COLUMN folder;
                    ALTER TABLE drivers DROP COLUMN folder; ALTER TABLE drivers DROP COLUMN version;
                    ALTER TABLE drivers DROP COLUMN since_ms; DROP INDEX runs_by_queue; ALTER TABLE runs DROP COLUMN token; ALTER TABLE runs DROP COLUMN callback_at_ms;
                    ALTER TABLE runs DROP COLUMN callback_by; PRAGMA user_version = 5;";
const TO_4: &str = "DROP TABLE answer_tokens; DROP INDEX runs_by_due; ALTER TABLE runs DROP COLUMN due_at_ms;
                    ALTER TABLE runs DROP COLUMN callback_pause; PRAGMA user_version = 4;";
const TO_3: &str = "ALTER TABLE runs DROP COLUMN parent_run_id; PRAGMA user_version = 3;";

#[test]
fn a_store_of_version_5_has_a_queue_and_its_callbacks_are_due_when_it_is_opened() {
    let (_folder, path) = place();
    let journal = open(&path);
    for (id, status) in [("ended", Status::Completed), ("waits", Status::Paused), ("running", Status::Running)] {
        let callback_url = Some("https://e.example/".to_owned());
        wait(journal.create(NewRun { callback_url, ..new_run(id) })).unwrap();
        let status_record = Some(StatusRecord { iterations: 1, ..StatusRecord::new(status, 1) });
        wait(journal.append(Append { status_record, release: true, ..event(id, 1, 1) })).unwrap();
    }
    drop(journal);
    Connection::open(&path).unwrap().execute_batch(TO_5).unwrap();
    let journal = open(&path);
    assert_eq!(wait(journal.claim_callbacks(9)).unwrap(), ["ended", "waits"]);
    let share = QueueShare { org: None, token: None, runs: 9 };
    let claimed = wait(journal.claim(QueueQuery::default(), vec![share])).unwrap();
    assert_eq!(claimed.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["running"]);
}

#[test]
fn a_store_of_version_4_is_brought_to_this_one_when_it_is_opened() {
    let (_folder, path) = place();
    let journal = open(&path);
    begin(&journal, "r");
    drop(journal);
    Connection::open(&path).unwrap().execute_batch(&format!("{TO_5} {TO_4}")).unwrap();
    let journal = open(&path);
    let due = RunFilter { due_ms: Some(i64::MAX), ..RunFilter::default() };
    assert_eq!(wait(journal.list(due)).unwrap(), []);
    assert!(wait(journal.find("r")).unwrap().is_some());
}

#[test]
fn a_store_of_version_3_names_the_parents_of_its_sub_runs_when_it_is_opened() {
    let (_folder, path) = place();
    let journal = open(&path);
    let sub_run = |id: &str, caller: &str| {
        let parent_run_id = Some(caller.to_owned());
        NewRun { parent_run_id, identity: format!("called by {caller}"), ..new_run(id) }
    };
    for run in [new_run("r"), sub_run("r.1.0", "r"), sub_run("r.1.0.2.0", "r.1.0"), new_run("r.own")] {
        wait(journal.create(run)).unwrap();
    }
    let all = || RunFilter { called: true, ..RunFilter::default() };
    let parents = |journal: &SqliteJournal| -> Vec<Option<String>> {
        wait(journal.list(all())).unwrap().into_iter().map(|run| run.parent_run_id).collect()
    };
    let before = parents(&journal);
    assert_eq!(before, [None, Some("r.1.0".to_owned()), Some("r".to_owned()), None]);
    drop(journal);
    Connection::open(&path).unwrap().execute_batch(&format!("{TO_5} {TO_4} {TO_3}")).unwrap();
    let journal = open(&path);
    assert_eq!(parents(&journal), before);
    assert_eq!(wait(journal.called_under("r")).unwrap(), 2);
    assert_eq!(wait(journal.list(RunFilter::default())).unwrap().len(), 2);
    // Starting a sub-run again gives the same run.
    assert_eq!(wait(journal.create(sub_run("r.1.0", "r"))).unwrap(), Created::Same);
}

#[test]
fn a_store_of_version_2_is_brought_to_this_one_when_it_is_opened() {
    let (_folder, path) = place();
    let journal = open(&path);
    begin(&journal, "r");
    drop(journal);
    let older = "DROP INDEX runs_by_owner; ALTER TABLE runs DROP COLUMN failed_take_ups;
                 ALTER TABLE runs DROP COLUMN take_up_events; PRAGMA user_version = 2";
    Connection::open(&path).unwrap().execute_batch(&format!("{TO_5} {TO_4} {TO_3} {older}")).unwrap();
    let journal = open(&path);
    assert!(wait(journal.find_of(None, "r")).unwrap().is_some());
    assert!(wait(journal.find_of(Some("acme"), "r")).unwrap().is_none());
}
