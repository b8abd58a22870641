//! What it costs to look for a run of another organisation: as much as for none, counted in SQLite's own steps.

use rusqlite::StatementStatus;

use super::*;
use crate::journal::tests::{begin, new_run, wait};

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
    let owned = |org, run| steps(&connection, read::FIND_OF, &[org, Some(run)]);
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

#[test]
fn a_store_of_the_version_before_is_brought_to_this_one_when_it_is_opened() {
    let (_folder, path) = place();
    let journal = open(&path);
    begin(&journal, "r");
    drop(journal);
    let older = "DROP INDEX runs_by_owner; ALTER TABLE runs DROP COLUMN failed_take_ups;
                 ALTER TABLE runs DROP COLUMN take_up_events; PRAGMA user_version = 2";
    Connection::open(&path).unwrap().execute_batch(older).unwrap();
    let journal = open(&path);
    assert!(wait(journal.find_of(None, "r")).unwrap().is_some());
    assert!(wait(journal.find_of(Some("acme"), "r")).unwrap().is_none());
}
