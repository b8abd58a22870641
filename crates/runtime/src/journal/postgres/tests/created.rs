//! Runs that are created at once share a statement, and each gets its own outcome.

use super::*;
use crate::journal::conformance::{new_run, wait};
use crate::journal::{LineRule, NewRunLine};

/// Creates runs while none can be written, so that all but the first wait together.
fn create_at_once(server: &PostgresServer, runs: Vec<NewRun>) -> (PostgresJournal, Vec<Result<Created, StoreError>>) {
    let url = server.store();
    let schema = url.rsplit_once("schema=").unwrap().1;
    let (store, holder) = (open(&url), open(&url));
    holder.sql("BEGIN; LOCK TABLE @.runs IN SHARE MODE");
    let first = store.create(new_run("a-first"));
    let waiting = format!(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = (SELECT oid FROM pg_class
           WHERE relname = 'runs' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = '{schema}'))"
    );
    while server.psql(&waiting) != "1" {}
    let tickets: Vec<Ticket<Created>> = runs.into_iter().map(|run| store.create(run)).collect();
    holder.sql("COMMIT");
    assert!(matches!(wait(first).unwrap(), Created::New(_)));
    (store, tickets.into_iter().map(wait).collect())
}

#[test]
fn runs_that_are_created_at_once_share_a_transaction() {
    let Some(server) = server("runs_that_are_created_at_once_share_a_transaction") else { return };
    let text = Blob::new("a document that all of them have".to_owned());
    let runs =
        (0..64).map(|number| NewRun { texts: vec![text.clone()], ..new_run(&format!("r{number:02}")) }).collect();
    let (store, created) = create_at_once(server, runs);
    for created in created {
        assert!(matches!(created.unwrap(), Created::New(_)));
    }
    // A request may come just behind the statement that the others wait for.
    let transactions = store.rows("SELECT count(DISTINCT xmin::text)::text FROM @.runs");
    let count: usize = transactions.first().unwrap().parse().unwrap();
    assert!((2..8).contains(&count), "{count} transactions");
    assert_eq!(store.rows("SELECT count(*)::text FROM @.texts"), ["1"]);
    for number in 0..64 {
        let run_id = format!("r{number:02}");
        assert_eq!(wait(store.read(&run_id)).unwrap(), ["first"]);
        assert_eq!(wait(store.texts(&run_id)).unwrap(), std::slice::from_ref(&text));
    }
}

#[test]
fn of_starts_of_several_servers_that_do_not_wait_one_is_there_and_the_others_leave_nothing() {
    let Some(server) = server("of_starts_of_several_servers_that_do_not_wait_one_is_there") else { return };
    let url = server.store();
    let stores = [open(&url), open(&url), open(&url)];
    for round in 0..4 {
        let line = NewRunLine { line: format!("line {round}"), limit: 1, rule: LineRule::Refuse };
        let start = |number: usize| NewRun {
            line: Some(Box::new(line.clone())),
            start_key: Some(format!("key {round} {number}")),
            audit: None,
            ..new_run(&format!("r{round}-{number}"))
        };
        let tickets: Vec<Ticket<Created>> =
            (0..12).map(|number| stores[number % stores.len()].create(start(number))).collect();
        let created: Vec<Created> = tickets.into_iter().map(|ticket| wait(ticket).unwrap()).collect();
        let new = created.iter().filter(|created| matches!(created, Created::New(_))).count();
        let full = created.iter().filter(|created| matches!(created, Created::LineFull(_))).count();
        assert_eq!((new, full), (1, 11), "{created:?}");
        let there = stores[0].rows("SELECT count(*)::text || ' ' || count(start_key)::text FROM @.runs");
        assert_eq!(there, [format!("{0} {0}", round + 1)]);
    }
}

#[test]
fn of_requests_with_one_id_that_come_at_once_one_creates_the_run() {
    let Some(server) = server("of_requests_with_one_id_that_come_at_once_one_creates_the_run") else { return };
    let other = || NewRun { identity: "other".to_owned(), event: "other".to_owned(), ..new_run("r") };
    let (store, created) = create_at_once(server, vec![new_run("r"), other(), new_run("r"), new_run("z")]);
    let created: Vec<Created> = created.into_iter().map(Result::unwrap).collect();
    assert!(
        matches!(created.as_slice(), [Created::New(_), Created::Conflict, Created::Same, Created::New(_)]),
        "{created:?}"
    );
    assert_eq!(wait(store.read("r")).unwrap(), ["first"]);
}

#[test]
fn a_run_that_the_database_refuses_does_not_keep_the_others_from_being_created() {
    let Some(server) = server("a_run_that_the_database_refuses_does_not_keep_the_others_from_being_created") else {
        return;
    };
    let refused = NewRun { loop_name: "a\0b".to_owned(), ..new_run("b") };
    let (store, created) = create_at_once(server, vec![new_run("a"), refused, new_run("c")]);
    assert!(matches!(created.as_slice(), [Ok(Created::New(_)), Err(_), Ok(Created::New(_))]), "{created:?}");
    assert!(wait(store.find("b")).unwrap().is_none());
}
