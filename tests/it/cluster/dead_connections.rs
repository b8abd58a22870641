//! Networks that lose a connection without a word: what is sent on it is never answered, and nobody says that it is gone.

use std::time::Instant;

use loopctl::journal::{RunFilter, StoreError};

use crate::cluster::harness::LEASE;
use crate::cluster::harness::database::Store;
use crate::cluster::harness::proxy::Proxy;
use crate::cluster::stored::{append, create, open, wait};
use crate::test_server;

#[test]
fn a_connection_on_which_no_answer_comes_is_replaced_and_what_was_committed_is_found() {
    let test = "a_connection_on_which_no_answer_comes_is_replaced";
    let Some(store) = Store::shared(test) else { return };
    let proxy = Proxy::start(format!("{}/.s.PGSQL.5432", test_server::server(test).unwrap().folder));
    let journal = open(&store.behind(&proxy));
    let lease = create(&*journal, "r");
    wait(append(&*journal, "r", lease.fence, 1, "event 1".to_owned())).unwrap();
    proxy.lose(false, true);
    let committed = append(&*journal, "r", lease.fence, 2, "event 2".to_owned());
    while store.tell("SELECT count(*) FROM @.events") != "3" {
        crate::common::wait_poll_interval();
    }
    // Connections that are made from now on work again.
    proxy.lose(false, false);
    wait(committed).unwrap();
    wait(append(&*journal, "r", lease.fence, 3, "event 3".to_owned())).unwrap();
    assert_eq!(wait(journal.read("r")).unwrap(), ["event 0", "event 1", "event 2", "event 3"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a statement waits is what is held")]
fn what_is_asked_of_a_database_that_answers_nothing_ends_in_a_bounded_time() {
    let test = "what_is_asked_of_a_database_that_answers_nothing";
    let Some(store) = Store::shared(test) else { return };
    let proxy = Proxy::start(format!("{}/.s.PGSQL.5432", test_server::server(test).unwrap().folder));
    let journal = open(&store.behind(&proxy));
    create(&*journal, "r");
    proxy.lose(true, true);
    // The time for an answer doubles with each that does not come.
    for at in 0..5 {
        let began = Instant::now();
        let asked: Vec<_> = (0..3).map(|_| journal.list(RunFilter::default())).collect();
        let found = wait(journal.find("r")).unwrap_err();
        let listed = asked.into_iter().map(|listed| wait(listed).unwrap_err());
        for fault in listed.chain([found]) {
            assert!(matches!(fault, StoreError::Unreachable(_)), "{fault}");
        }
        assert!(began.elapsed() < LEASE * 3, "{at}: {:?}", began.elapsed());
    }
    proxy.lose(false, false);
    proxy.cut();
    while wait(journal.find("r")).is_err() {}
    assert_eq!(wait(journal.list(RunFilter::default())).unwrap().len(), 1);
}
