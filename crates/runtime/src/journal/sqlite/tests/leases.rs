//! One driver a run: the living are left alone, the dead are not waited for, the late are locked out.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::journal::tests::{begin, event, wait};

fn driven() -> StoreError {
    StoreError::Driven("r".to_owned())
}

fn fenced() -> StoreError {
    StoreError::Fenced("r".to_owned())
}

/// How many drivers the store knows: files, rows.
fn drivers(path: &Path) -> (usize, i64) {
    let files = fs::read_dir(schema::beside(path, ".drivers")).map_or(0, Iterator::count);
    let rows = Connection::open(path).unwrap().query_row("SELECT count(*) FROM drivers", (), |row| row.get(0));
    (files, rows.unwrap())
}

/// Opens with a clock that can be put forward.
fn with_clock(path: &Path) -> (SqliteJournal, Clock) {
    let clock = Clock::new();
    (SqliteJournal::start(path, &SqliteOptions::default(), clock.clone()).unwrap(), clock)
}

const LATE_MS: u64 = 31_000;

#[test]
fn a_living_driver_is_left_alone_and_who_only_reads_is_no_driver() {
    let (_folder, path) = place();
    let (one, two) = (open(&path), open(&path));
    let fence = begin(&one, "r");
    assert_eq!(wait(two.lease("r")).unwrap_err(), driven());
    assert!(wait(two.find("r")).unwrap().unwrap().driven);
    assert!(wait(two.list(RunFilter::default())).unwrap()[0].driven);
    assert_eq!(drivers(&path), (1, 1));
    wait(one.release("r", fence)).unwrap();
    assert!(!wait(two.find("r")).unwrap().unwrap().driven);
    assert_eq!(wait(two.lease("r")).unwrap().fence, fence + 1);
    assert_eq!(wait(one.append(event("r", fence, 1))).unwrap_err(), fenced());
}

#[test]
fn a_dead_driver_is_not_waited_for() {
    let (_folder, path) = place();
    let (one, two) = (open(&path), open(&path));
    let fence = begin(&one, "r");
    wait(one.append(event("r", fence, 1))).unwrap();
    one.die();
    assert_eq!(drivers(&path), (1, 1), "it gave nothing back");
    assert!(!wait(two.find("r")).unwrap().unwrap().driven);
    assert_eq!(wait(two.lease("r")).unwrap(), Lease { fence: fence + 1, events: 2, failed_take_ups: 0 });
    assert_eq!(drivers(&path), (1, 1), "the dead one is cleared away");
}

#[test]
fn a_driver_whose_file_is_gone_is_dead() {
    let (_folder, path) = place();
    let one = open(&path);
    begin(&one, "r");
    one.die();
    fs::remove_dir_all(schema::beside(&path, ".drivers")).unwrap();
    assert_eq!(wait(open(&path).lease("r")).unwrap().fence, 2);
}

#[test]
fn a_store_that_is_closed_gives_all_back_and_leaves_nothing_beside_the_file() {
    let (folder, path) = place();
    let one = open(&path);
    for id in ["r", "s"] {
        begin(&one, id);
    }
    drop(one);
    assert_eq!(drivers(&path), (0, 0));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let two = open(&path);
    assert!(wait(two.lease("r")).is_ok() && wait(two.lease("s")).is_ok());
}

#[test]
fn a_driver_that_hangs_is_overtaken_after_its_lease_and_writes_nothing_more() {
    let (_folder, path) = place();
    let (one, its_clock) = with_clock(&path);
    let (two, clock) = with_clock(&path);
    let fence = begin(&one, "r");
    begin(&one, "s");
    assert_eq!(wait(two.lease("r")).unwrap_err(), driven());
    // The first process hangs, with its lock, while the time passes for the second.
    clock.advance(LATE_MS);
    let new = wait(two.lease("r")).unwrap();
    assert_eq!(new.fence, fence + 1);
    // Now it wakes up.
    its_clock.advance(LATE_MS);
    assert_eq!(wait(one.confirm("r", fence)).unwrap_err(), fenced(), "it makes no further call");
    assert_eq!(wait(one.append(event("r", fence, 1))).unwrap_err(), fenced());
    assert_eq!(wait(two.read("r")).unwrap(), ["first"]);
    wait(one.confirm("s", 1)).unwrap();
    wait(one.append(event("s", 1, 1))).unwrap();
    wait(two.append(event("r", new.fence, 1))).unwrap();
    assert_eq!(wait(two.lease("s")).unwrap_err(), StoreError::Driven("s".to_owned()), "the rest is its again");
}

#[test]
fn a_driver_that_was_overtaken_and_only_writes_is_locked_out_too() {
    let (_folder, path) = place();
    let (one, _) = with_clock(&path);
    let (two, clock) = with_clock(&path);
    let fence = begin(&one, "r");
    clock.advance(LATE_MS);
    wait(two.lease("r")).unwrap();
    assert_eq!(wait(one.append(event("r", fence, 1))).unwrap_err(), fenced());
    assert_eq!(wait(one.confirm("r", fence)).unwrap_err(), fenced());
    assert_eq!(wait(two.read("r")).unwrap(), ["first"]);
}

#[test]
fn a_late_driver_that_no_one_overtook_goes_on() {
    let (_folder, path) = place();
    let (one, clock) = with_clock(&path);
    let fence = begin(&one, "r");
    clock.advance(LATE_MS);
    wait(one.confirm("r", fence)).unwrap();
    wait(one.append(event("r", fence, 1))).unwrap();
    assert_eq!(wait(open(&path).lease("r")).unwrap_err(), driven(), "its lease was renewed");
}

#[test]
fn a_lease_is_renewed_with_what_is_written_after_a_third_of_it() {
    let (_folder, path) = place();
    let (one, clock) = with_clock(&path);
    let fence = begin(&one, "r");
    let until = || -> i64 {
        let query = "SELECT until_ms FROM drivers";
        Connection::open(&path).unwrap().query_row(query, (), |row| row.get(0)).unwrap()
    };
    let first = until();
    wait(one.append(event("r", fence, 1))).unwrap();
    assert_eq!(until(), first);
    clock.advance(10_500);
    wait(one.append(event("r", fence, 2))).unwrap();
    assert!(until() >= first + 10_500);
}

#[test]
fn a_lease_that_nobody_waited_for_is_given_back() {
    let (_folder, path) = place();
    let journal = open(&path);
    wait(journal.release("r", begin(&journal, "r"))).unwrap();
    let held = journal.hold();
    drop(journal.lease("r"));
    drop(journal.create(crate::journal::tests::new_run("s")));
    drop(held);
    // The writer gives it back before it looks at what comes next.
    assert_eq!(wait(journal.cancel_requested("r")).unwrap(), None);
    wait(journal.request_cancel("r", CancelRequest::default())).unwrap();
    assert!(wait(journal.lease("r")).is_ok());
    assert!(wait(journal.lease("s")).is_ok());
}

#[test]
fn of_fifty_drivers_who_want_one_run_at_once_one_gets_it() {
    let (_folder, path) = place();
    for round in 0..3 {
        let (id, dead) = (format!("r{round}"), open(&path));
        begin(&dead, &id);
        dead.die();
        let barrier = std::sync::Barrier::new(50);
        let got: Vec<_> = std::thread::scope(|scope| {
            let race = || {
                let journal = open(&path);
                barrier.wait();
                let lease = wait(journal.lease(&id));
                barrier.wait();
                lease
            };
            let threads: Vec<_> = (0..50).map(|_| scope.spawn(race)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(got.iter().filter(|lease| lease.is_ok()).count(), 1);
        assert_eq!(got.iter().filter(|lease| **lease == Err(StoreError::Driven(id.clone()))).count(), 49);
    }
    assert_eq!(drivers(&path), (0, 0));
}

#[test]
fn a_driver_s_name_in_the_file_leads_nowhere_else() {
    let (folder, path) = place();
    let one = open(&path);
    wait(one.release("r", begin(&one, "r"))).unwrap();
    let precious = folder.path().join("precious.lock");
    fs::write(&precious, "keep me").unwrap();
    one.sql("UPDATE runs SET driver = '../precious'; INSERT INTO drivers (driver, until_ms) VALUES ('../precious', 9000000000000000)");
    assert_eq!(wait(open(&path).lease("r")).unwrap().fence, 2);
    assert!(precious.exists());
}

#[test]
fn files_of_dead_drivers_are_cleared_away_and_those_of_living_ones_stay() {
    let (_folder, path) = place();
    let living = open(&path);
    begin(&living, "r");
    for number in 0..3 {
        let dead = open(&path);
        begin(&dead, &format!("d{number}"));
        dead.die();
    }
    let next = open(&path);
    begin(&next, "s");
    assert_eq!(drivers(&path), (2, 2));
    assert_eq!(wait(next.lease("r")).unwrap_err(), driven());
}

#[test]
fn a_driver_that_comes_while_others_clear_away_keeps_its_file() {
    let (_folder, path) = place();
    let drivers = Drivers::of(&path);
    let over = AtomicBool::new(false);
    let _stays = drivers.enter().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    drivers.sweep();
                }
            });
        }
        let gone = (0..2_000).find(|_| {
            let member = drivers.enter().unwrap();
            let alive = drivers.alive(&member.name);
            drivers.remove(&member.name);
            !alive
        });
        over.store(true, Ordering::SeqCst);
        assert_eq!(gone, None, "it was taken for dead");
    });
}
