//! The queue of a store on disk: what drivers that die leave behind.

use super::*;
use crate::journal::tests::{event, new_run, wait};
use crate::journal::{
    Append, CALLBACK_LEASE, CallbackProgress, CallbackState, Created, ListedStatus, MOST_FAILED_TAKE_UPS, NewRun,
    QueueQuery, QueueShare, StatusRecord,
};
use loopctl_engine::outcome::{Status, Termination};

fn claim(store: &SqliteJournal) -> Vec<(String, u32)> {
    let share = QueueShare { org: None, token: None, runs: 9 };
    let claimed = wait(store.claim(QueueQuery::default(), vec![share])).unwrap();
    claimed.into_iter().map(|run| (run.run_id, run.lease.unwrap().failed_take_ups)).collect()
}

#[test]
fn what_a_dead_driver_left_is_claimed_at_once_and_never_what_a_living_one_has() {
    let (_folder, path) = place();
    let (dead, living) = (open(&path), open(&path));
    for (driver, id) in [(&dead, "a"), (&living, "b"), (&dead, "c")] {
        wait(driver.create(new_run(id))).unwrap();
    }
    assert!(claim(&living).is_empty(), "not even its own");
    dead.die();
    let third = open(&path);
    assert_eq!(claim(&third), [("a".to_owned(), 0), ("c".to_owned(), 0)]);
    assert!(claim(&living).is_empty());
}

#[test]
fn a_driver_whose_lease_is_over_loses_its_runs_and_writes_nothing_more() {
    let (_folder, path) = place();
    let clock = Clock::new();
    let hangs = SqliteJournal::start(&path, &SqliteOptions::default(), clock.clone()).unwrap();
    wait(hangs.create(new_run("r"))).unwrap();
    // It can't renew its lease meanwhile.
    let held = hangs.hold();
    clock.advance(31_000);
    let other = SqliteJournal::start(&path, &SqliteOptions::default(), clock).unwrap();
    assert_eq!(claim(&other), [("r".to_owned(), 0)]);
    drop(held);
    assert_eq!(wait(hangs.append(event("r", 1, 1))).unwrap_err(), StoreError::Fenced("r".to_owned()));
    wait(other.append(event("r", 2, 1))).unwrap();
}

#[test]
fn a_run_that_three_drivers_died_of_is_claimed_by_nobody_once_it_was_given_back() {
    let (_folder, path) = place();
    let first = open(&path);
    wait(first.create(new_run("r"))).unwrap();
    first.die();
    for failed in 0..MOST_FAILED_TAKE_UPS {
        let driver = open(&path);
        assert_eq!(claim(&driver), [("r".to_owned(), failed)]);
        driver.die();
    }
    let driver = open(&path);
    assert_eq!(claim(&driver), [("r".to_owned(), MOST_FAILED_TAKE_UPS)], "whoever claims it sets it aside");
    let fence = i64::from(MOST_FAILED_TAKE_UPS) + 2;
    wait(driver.release("r", u64::try_from(fence).unwrap())).unwrap();
    assert!(claim(&driver).is_empty());
    assert!(wait(driver.queue(QueueQuery::default())).unwrap().is_empty());
}

/// Ends a run that has a callback.
fn end(store: &SqliteJournal, id: &str) {
    let callback_url = Some("https://e.example/".to_owned());
    let Created::New(lease) = wait(store.create(NewRun { callback_url, ..new_run(id) })).unwrap() else {
        panic!("it is new")
    };
    let (status, termination) = (Status::Completed, Some(Termination::Complete));
    let status_record = Some(StatusRecord { termination, iterations: 1, ..StatusRecord::new(status, 1) });
    wait(store.append(Append { status_record, release: true, ..event(id, lease.fence, 1) })).unwrap();
}

#[test]
fn what_a_dead_driver_was_to_post_is_claimed_at_once_and_else_after_its_time() {
    let (_folder, path) = place();
    let clock = Clock::new();
    let start = || SqliteJournal::start(&path, &SqliteOptions::default(), clock.clone()).unwrap();
    let claimed = |store: &SqliteJournal| wait(store.claim_callbacks(9)).unwrap();
    let (dead, lives, other) = (start(), start(), start());
    end(&dead, "a");
    end(&lives, "b");
    let again_in = Some(CALLBACK_LEASE);
    let progress = CallbackProgress { state: CallbackState::Pending, tries: 1 };
    wait(dead.note_callback("a", progress, again_in, None)).unwrap();
    assert!(claimed(&other).is_empty());
    dead.die();
    assert_eq!(claimed(&other), ["a"]);
    assert!(claimed(&other).is_empty() && claimed(&lives).is_empty(), "for a minute");
    clock.advance(61_000);
    assert_eq!(claimed(&lives), ["a", "b"], "a living driver too has it for no longer");
    clock.advance(61_000);
    wait(lives.note_callback("a", progress, Some(CALLBACK_LEASE), None)).unwrap();
    assert_eq!(claimed(&other), ["b"], "but when it tries again");
}

/// How the store performs these statements.
fn plans(store: &SqliteJournal, statements: Vec<String>) -> Vec<String> {
    let (done, received) = channel();
    store.writer.touch(move |connection| {
        let plan = |sql: String| {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let count = plan.parameter_count();
            let lines = plan.query_map(rusqlite::params_from_iter((0..count).map(|_| "[]")), |row| row.get(3)).unwrap();
            lines.collect::<Result<Vec<String>, _>>().unwrap().join("; ")
        };
        done.send(statements.into_iter().map(plan).collect()).unwrap();
        true
    });
    received.recv().unwrap()
}

#[test]
fn the_queue_reads_no_run_that_has_ended_or_waits_for_a_human() {
    let (_folder, path) = place();
    let statements = crate::journal::sqlite::queue::statements().map(str::to_owned);
    for plan in plans(&open(&path), statements.to_vec()) {
        assert!(plan.contains("runs USING INDEX runs_by_queue"), "{plan}");
    }
}

#[test]
fn a_list_sorts_no_runs_whoever_they_belong_to() {
    let (_folder, path) = place();
    let of = |org: &str| RunFilter { org: Some(org.to_owned()), ..RunFilter::default() };
    let failed = RunFilter { org: Some(String::new()), ..RunFilter::of_statuses(&[ListedStatus::Failed]) };
    let lists = [RunFilter::default(), of(""), of("acme"), failed];
    for plan in plans(&open(&path), lists.iter().map(crate::journal::sqlite::reads::listing).collect()) {
        assert!(!plan.contains("ORDER BY"), "{plan}");
    }
}
