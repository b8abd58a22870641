//! Several drivers of one database: takeovers, and what a lost answer leaves.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::journal::tests::{begin, event, new_run, wait};
use crate::journal::{MOST_FAILED_TAKE_UPS, QueueShare};

/// A store with a lease of a second.
fn store(server: &PostgresServer) -> String {
    format!("{}&lease_ms=1000", server.store())
}

/// Claims a run as soon as one is free. A machine that stalls for a lease gets no answer in time, and asks again.
fn claim(store: &PostgresJournal) -> ClaimedRun {
    loop {
        let share = QueueShare { org: None, token: None, runs: 9 };
        let claimed = match wait(store.claim(QueueQuery::default(), vec![share])) {
            Err(StoreError::Unreachable(_)) => continue,
            claimed => claimed.unwrap(),
        };
        if let Some(run) = claimed.into_iter().next() {
            return run;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_dead_driver_s_run_is_claimed_when_its_lease_is_over_and_one_that_left_at_once() {
    let Some(server) = server("a_dead_driver_s_run_is_claimed_when_its_lease_is_over") else { return };
    let url = store(server);
    let (dead, leaves, other) = (open(&url), open(&url), open(&url));
    begin(&dead, "a");
    begin(&leaves, "b");
    let free = || wait(other.queue(QueueQuery::default())).unwrap();
    assert!(free().is_empty());
    drop(leaves);
    assert_eq!(claim(&other).run_id, "b");
    wait(dead.append(event("a", 1, 1))).unwrap();
    dead.die();
    let run = claim(&other);
    assert_eq!((run.run_id.as_str(), run.lease.unwrap().events), ("a", 2));
}

/// Event 1 of three runs: alone, with a change of the run's row, and with a text. Each has a statement of its own.
fn of_each_statement(ids: [&str; 3], fence: u64) -> [Append; 3] {
    let [events, rows, all] = ids.map(|id| event(id, fence, 1));
    [events, Append { release: true, ..rows }, Append { texts: vec![Blob::new("text".to_owned())], ..all }]
}

#[test]
fn the_driver_that_lost_its_run_writes_nothing_and_finds_that_out() {
    let Some(server) = server("the_driver_that_lost_its_run_writes_nothing_and_finds_that_out") else { return };
    // A long lease: nobody renews it meanwhile.
    let url = server.store();
    let (old, new) = (open(&url), open(&url));
    let ids = ["r", "s", "t"];
    let fence = ids.map(|id| begin(&old, id))[0];
    for (id, append) in ids.into_iter().zip(of_each_statement(ids, fence)) {
        // As if it had slept past its lease.
        new.sql("UPDATE @.drivers SET until = clock_timestamp() - interval '1 s'");
        let lease = wait(new.lease(id)).unwrap();
        assert_eq!(lease.fence, fence + 1);
        let fenced = StoreError::Fenced(id.to_owned());
        assert_eq!(wait(old.append(append)).unwrap_err(), fenced);
        assert_eq!(wait(old.confirm(id, fence)).unwrap_err(), fenced);
        wait(new.append(event(id, lease.fence, 1))).unwrap();
        assert_eq!(wait(old.read(id)).unwrap().len(), 2);
    }
}

#[test]
fn an_event_of_an_older_lease_is_not_inserted_by_any_of_the_statements() {
    let Some(server) = server("an_event_of_an_older_lease_is_not_inserted_by_any_of_the_statements") else { return };
    let store = open(&server.store());
    let ids = ["r", "s", "t"];
    let fence = ids.map(|id| begin(&store, id))[0];
    // The driver does not know yet.
    store.sql("UPDATE @.runs SET fence = fence + 1");
    for (id, append) in ids.into_iter().zip(of_each_statement(ids, fence)) {
        assert_eq!(wait(store.append(append)).unwrap_err(), StoreError::Fenced(id.to_owned()));
        assert_eq!(wait(store.read(id)).unwrap().len(), 1);
    }
    assert_eq!(store.rows("SELECT count(driver)::text FROM @.runs"), ["3"], "no row was changed");
    assert_eq!(store.rows("SELECT count(*)::text FROM @.run_texts"), ["0"]);
}

#[test]
fn a_database_that_went_back_is_found_before_anything_follows() {
    let Some(server) = server("a_database_that_went_back_is_found_before_anything_follows") else { return };
    let store = open(&server.store());
    let ids = ["r", "s", "t"];
    let fence = ids.map(|id| begin(&store, id))[0];
    for id in ids {
        wait(store.append(event(id, fence, 1))).unwrap();
    }
    store.sql("DELETE FROM @.events WHERE seq = 1");
    for (id, append) in ids.into_iter().zip(of_each_statement(ids, fence)) {
        let gone = StoreError::WentBack(id.to_owned());
        assert_eq!(wait(store.append(Append { seq: 2, ..append })).unwrap_err(), gone);
        assert_eq!(wait(store.confirm(id, fence)).unwrap_err(), StoreError::Fenced(id.to_owned()));
        assert_eq!(wait(store.read(id)).unwrap().len(), 1, "nothing is behind the gap");
    }
}

#[test]
fn connections_that_are_cut_lose_nothing_and_double_nothing() {
    let Some(server) = server("connections_that_are_cut_lose_nothing_and_double_nothing") else { return };
    let url = server.store();
    let (store, knife) = (open(&format!("{url}&application_name=cut")), open(&url));
    let fence = begin(&store, "r");
    let (cut, mut seq) = (AtomicUsize::new(0), 1);
    std::thread::scope(|scope| {
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let cut = &cut;
        scope.spawn(move || {
            for () in asked {
                let sql = "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE application_name = 'cut'";
                cut.fetch_add(knife.rows(sql).len(), Ordering::SeqCst);
            }
        });
        while seq < 200 || cut.load(Ordering::SeqCst) < 20 {
            if seq % 8 == 0 {
                ask.send(()).unwrap();
            }
            wait(store.append(event("r", fence, seq))).unwrap();
            seq += 1;
        }
    });
    assert_eq!(u64::try_from(wait(store.read("r")).unwrap().len()).unwrap(), seq);
}

#[test]
fn a_run_that_the_database_says_is_ours_and_nobody_here_drives_is_let_go() {
    let Some(server) = server("a_run_that_the_database_says_is_ours_and_nobody_here_drives_is_let_go") else { return };
    let url = server.store();
    let (store, other) = (open(&url), open(&url));
    begin(&store, "r");
    // The answer to a lease was lost, or the database went back behind a release.
    store.database.held.lost("r", 1);
    assert_eq!(claim(&other).run_id, "r");
}

#[test]
fn a_run_whose_release_failed_is_free_when_the_database_is_back() {
    let Some(server) = server("a_run_whose_release_failed_is_free_when_the_database_is_back") else { return };
    let url = server.store();
    let other = open(&url);
    other.sql("DROP ROLE IF EXISTS away; CREATE ROLE away LOGIN SUPERUSER");
    let store = open(&url.replace("loopctl@", "away@"));
    let fence = begin(&store, "r");
    other.sql("ALTER ROLE away NOLOGIN");
    other.rows("SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE usename = 'away'");
    assert!(wait(store.release("r", fence)).is_err(), "it can't be reached");
    other.sql("ALTER ROLE away LOGIN");
    assert_eq!(claim(&other).run_id, "r");
    drop(store);
    other.sql("DROP ROLE away");
}

#[test]
fn an_event_is_unreachable_when_the_database_is_away_for_a_lease_and_the_next_driver_reads_what_is_there() {
    let Some(server) = server("an_event_is_unreachable_when_the_database_is_away_for_a_lease") else { return };
    let url = store(server);
    let other = open(&url);
    other.sql(
        "DROP ROLE IF EXISTS distant; CREATE ROLE distant LOGIN; GRANT USAGE ON SCHEMA @ TO distant;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA @ TO distant",
    );
    let store = open(&url.replace("loopctl@", "distant@"));
    let fence = begin(&store, "r");
    wait(store.append(event("r", fence, 1))).unwrap();
    // No connection of this role is made any more, and those that there are end.
    other.sql("ALTER ROLE distant CONNECTION LIMIT 0");
    other.rows("SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE usename = 'distant'");
    let fault = wait(store.append(event("r", fence, 2))).unwrap_err();
    assert!(matches!(&fault, StoreError::Unreachable(_)), "{fault}");
    let run = claim(&other);
    assert_eq!((run.run_id.as_str(), run.lease.unwrap().events), ("r", 2));
    drop(store);
    other.sql("DROP OWNED BY distant; DROP ROLE distant");
}

#[test]
fn a_run_that_three_drivers_died_of_is_set_aside() {
    let Some(server) = server("a_run_that_three_drivers_died_of_is_set_aside") else { return };
    let url = server.store();
    let first = open(&url);
    begin(&first, "r");
    first.die();
    let over = |store: &PostgresJournal| store.sql("UPDATE @.drivers SET until = clock_timestamp() - interval '1 s'");
    for failed in 0..=MOST_FAILED_TAKE_UPS {
        let driver = open(&url);
        over(&driver);
        let lease = claim(&driver).lease.unwrap();
        assert_eq!(lease.failed_take_ups, failed);
        if failed == MOST_FAILED_TAKE_UPS {
            wait(driver.release("r", lease.fence)).unwrap();
        } else {
            driver.die();
        }
    }
    let store = open(&url);
    assert!(wait(store.queue(QueueQuery::default())).unwrap().is_empty());
    assert_eq!(wait(store.find("r")).unwrap().unwrap().status, loopctl_engine::outcome::Status::Quarantined);
}

#[test]
fn no_run_changes_hands_when_the_leases_of_all_drivers_end_at_once_and_they_live() {
    let Some(server) = server("no_run_changes_hands_when_the_leases_of_all_drivers_end_at_once") else { return };
    let url = server.store();
    let (one, other, new) = (open(&url), open(&url), open(&url));
    begin(&one, "a");
    begin(&other, "b");
    let claimed = |store: &PostgresJournal| {
        let share = QueueShare { org: None, token: None, runs: 9 };
        wait(store.claim(QueueQuery::default(), vec![share])).unwrap().len()
    };
    // As if the clock of the database had jumped.
    let over = || one.sql("UPDATE @.drivers SET until = clock_timestamp() - interval '1 s'");
    over();
    assert_eq!((claimed(&one), claimed(&other)), (0, 0), "their own leases are over");
    one.renew();
    assert_eq!(claimed(&one), 0, "the other one has the time to renew its lease");
    let waiting = begin(&new, "waits");
    wait(new.release("waits", waiting)).unwrap();
    assert_eq!(claimed(&one), 1, "what nobody drives is claimed all the same");
    other.renew();
    assert_eq!((claimed(&one), claimed(&other)), (0, 0));
    over();
    assert_eq!(claimed(&open(&url)), 3, "a new driver was not interrupted");
}

#[test]
fn a_request_to_end_a_run_of_another_driver_is_seen_without_a_query_for_each_run() {
    let Some(server) = server("a_request_to_end_a_run_of_another_driver_is_seen") else { return };
    let url = server.store();
    let (driver, other) = (open(&url), open(&url));
    for run in ["a", "b"] {
        wait(driver.create(new_run(run))).unwrap();
    }
    wait(other.request_cancel("a", CancelRequest { reason: Some("enough".to_owned()), by: Some("ada".to_owned()) }))
        .unwrap();
    let request = loop {
        if let Some(Some(request)) = driver.database.held.cancel("a", REQUESTS_LAST_MS) {
            break request;
        }
        std::thread::yield_now();
    };
    assert_eq!(request, CancelRequest { reason: Some("enough".to_owned()), by: Some("ada".to_owned()) });
    assert_eq!(wait(driver.cancel_requested("b")).unwrap(), None);
}
