//! Requests that share a commit: none affects another, and none is answered too early.

use super::*;
use crate::journal::tests::{begin, event, wait};

/// How many transactions are in the log beside the file: frames that say how long the file is.
fn commits(path: &Path) -> usize {
    let log = std::fs::read(schema::beside(path, "-wal")).unwrap();
    log[32..].chunks_exact(24 + 4096).filter(|frame| frame[4..8] != [0; 4]).count()
}

#[test]
fn all_who_wait_at_the_same_moment_share_one_commit() {
    let (_folder, path) = place();
    let journal = open(&path);
    let ids: Vec<_> = (0..100).map(|number| format!("r{number}")).collect();
    for id in &ids {
        begin(&journal, id);
    }
    journal.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    let held = journal.hold();
    let tickets: Vec<_> = ids.iter().map(|id| journal.append(event(id, 1, 1))).collect();
    drop(held);
    for ticket in tickets {
        wait(ticket).unwrap();
    }
    assert_eq!(commits(&path), 1);
    drop(journal);
    let again = open(&path);
    assert!(ids.iter().all(|id| wait(again.read(id)).unwrap().len() == 2));
}

#[test]
fn one_that_is_refused_does_not_hurt_the_others() {
    let (_folder, path) = place();
    let journal = open(&path);
    for id in ["a", "b", "c"] {
        begin(&journal, id);
    }
    let held = journal.hold();
    let good = [journal.append(event("a", 1, 1)), journal.append(event("a", 1, 2)), journal.append(event("c", 1, 1))];
    let bad = [
        journal.append(event("b", 7, 1)),
        journal.append(event("b", 1, 5)),
        journal.append(event("a", 1, 1)),
        journal.append(event("nobody", 1, 1)),
    ];
    drop(held);
    assert!(good.into_iter().all(|ticket| wait(ticket).is_ok()));
    assert!(bad.into_iter().all(|ticket| wait(ticket).is_err()));
    assert_eq!(["a", "b", "c"].map(|id| wait(journal.read(id)).unwrap().len()), [3, 1, 2]);
}

#[test]
fn one_that_the_database_refuses_does_not_hurt_the_others() {
    let (_folder, path) = place();
    let journal = open(&path);
    for id in ["a", "b", "c"] {
        begin(&journal, id);
    }
    journal
        .sql("CREATE TRIGGER no BEFORE INSERT ON events WHEN new.run = 2 BEGIN SELECT RAISE(ABORT, 'no b today'); END");
    let held = journal.hold();
    let tickets = ["a", "b", "c"].map(|id| journal.append(event(id, 1, 1)));
    drop(held);
    let [a, b, c] = tickets.map(wait);
    assert!(a.is_ok() && c.is_ok());
    let fault = b.unwrap_err().to_string();
    assert!(fault.contains("run b") && fault.contains("no b today"), "{fault}");
    journal.sql("DROP TRIGGER no");
    wait(journal.append(event("b", 1, 1))).unwrap();
    assert_eq!(["a", "b", "c"].map(|id| wait(journal.read(id)).unwrap().len()), [2, 2, 2]);
}

#[test]
fn a_commit_that_fails_fails_for_all_of_it_and_can_be_made_again() {
    let (_folder, path) = place();
    let journal = open(&path);
    for id in ["a", "b"] {
        begin(&journal, id);
    }
    // A key that is only checked by COMMIT.
    journal.sql(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE late (run REFERENCES runs (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER no AFTER INSERT ON events BEGIN INSERT INTO late VALUES (99); END",
    );
    let held = journal.hold();
    let tickets = ["a", "b"].map(|id| journal.append(event(id, 1, 1)));
    drop(held);
    assert!(tickets.map(wait).iter().all(|answer| answer.as_ref().is_err_and(|fault| fault.code() == "store_failed")));
    assert_eq!(["a", "b"].map(|id| wait(journal.read(id)).unwrap().len()), [1, 1]);
    journal.sql("DROP TRIGGER no");
    assert!(["a", "b"].map(|id| wait(journal.append(event(id, 1, 1)))).iter().all(Result::is_ok));
    assert_eq!(["a", "b"].map(|id| wait(journal.read(id)).unwrap().len()), [2, 2]);
}

#[test]
fn what_waits_when_the_store_is_dropped_is_still_done() {
    let (_folder, path) = place();
    let journal = open(&path);
    begin(&journal, "r");
    let held = journal.hold();
    let tickets: Vec<_> = (1..50).map(|seq| journal.append(event("r", 1, seq))).collect();
    drop(held);
    drop(journal);
    assert!(tickets.into_iter().all(|ticket| wait(ticket).is_ok()));
    assert_eq!(wait(open(&path).read("r")).unwrap().len(), 50);
}

#[test]
fn lists_are_whole_while_others_write() {
    let (_folder, path) = place();
    let journal = open(&path);
    begin(&journal, "r");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for seq in 1..200 {
                wait(journal.append(event("r", 1, seq))).unwrap();
            }
        });
        let (other, mut seen) = (open(&path), 0);
        while !writer.is_finished() {
            assert_eq!(wait(journal.list(RunFilter::default())).unwrap().len(), 1);
            let now = wait(other.read("r")).unwrap().len();
            assert!(now >= seen, "another process sees what was written, and never less than before");
            seen = now;
        }
    });
    assert_eq!(wait(journal.read("r")).unwrap().len(), 200);
}
