//! A store of an older version is read, and gets what it lacks.

use super::*;
use crate::journal::tests::{begin, event, new_run, wait};
use crate::journal::{CallbackProgress, NewRun};

/// Makes a store what version 1 would have made of it.
fn make_old(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "DROP INDEX runs_by_org; DROP INDEX runs_by_callback;
             ALTER TABLE runs DROP COLUMN org; ALTER TABLE runs DROP COLUMN callback_url;
             ALTER TABLE runs DROP COLUMN callback; ALTER TABLE runs DROP COLUMN callback_tries;
             PRAGMA user_version = 1;",
        )
        .unwrap();
}

#[test]
fn a_store_of_version_1_is_read_and_written_on() {
    let (_folder, path) = place();
    let journal = open(&path);
    begin(&journal, "r");
    wait(journal.append(event("r", 1, 1))).unwrap();
    let before = (wait(journal.read("r")).unwrap(), wait(journal.find("r")).unwrap().unwrap().loop_name);
    drop(journal);
    make_old(&path);
    let journal = open(&path);
    let after = (wait(journal.read("r")).unwrap(), wait(journal.find("r")).unwrap().unwrap().loop_name);
    assert_eq!(before, after);
    assert_eq!(wait(journal.find("r")).unwrap().unwrap().org, None);
    let (org, callback_url) = (Some("acme".to_owned()), Some("https://e.example/".to_owned()));
    wait(journal.create(NewRun { org: org.clone(), callback_url, ..new_run("s") })).unwrap();
    let new = wait(journal.find("s")).unwrap().unwrap();
    assert_eq!((new.org, new.callback.unwrap().progress), (org, CallbackProgress::default()));
    drop(journal);
    // Twice is once.
    assert_eq!(wait(open(&path).list(RunFilter::default())).unwrap().len(), 2);
}
