//! Events are appended to runs and read by several drivers at once, while the network or the database fails. One order
//! must explain all operations: by our own rules, and by a checker that others wrote.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loopctl::journal::Journal;

use crate::cluster::harness::database::{FailingServer, Standby, Store};
use crate::cluster::harness::elle;
use crate::cluster::harness::history::{Action, History, Operation};
use crate::cluster::harness::proxy::Proxy;
use crate::cluster::stored::{append, create, open, wait};
use crate::test_server;

const DRIVERS: usize = 3;
const LISTS: usize = 4;

#[allow(clippy::disallowed_methods, reason = "a history has moments")]
fn now() -> Instant {
    Instant::now()
}

fn name(list: usize) -> String {
    format!("list {list}")
}

fn read(journal: &dyn Journal, list: usize, history: &History) -> Option<usize> {
    let called = now();
    let events = wait(journal.read(&name(list))).ok()?;
    // The first event makes the list.
    let values: Vec<u64> = events[1..].iter().map(|event| event.parse().unwrap()).collect();
    let length = values.len();
    history.note(Operation { list, action: Action::Read(values), called, answered: Some(now()) });
    Some(length)
}

/// What one driver does until the play is over.
fn drive(journal: &dyn Journal, seed: u64, history: &History, next: &AtomicU64, over: &AtomicBool) {
    let mut chance = fastrand::Rng::with_seed(seed);
    while !over.load(Ordering::SeqCst) {
        let list = chance.usize(0..LISTS);
        if chance.u8(0..10) < 4 {
            let _ = read(journal, list, history);
            continue;
        }
        let Ok(lease) = wait(journal.lease(&name(list))) else { continue };
        for seq in lease.events..lease.events + chance.u64(1..6) {
            let value = next.fetch_add(1, Ordering::SeqCst);
            let called = now();
            let appended = wait(append(journal, &name(list), lease.fence, seq, value.to_string()));
            let answered = appended.is_ok().then(now);
            history.note(Operation { list, action: Action::Append(value), called, answered });
            if answered.is_none() {
                break;
            }
        }
        let _ = wait(journal.release(&name(list), lease.fence));
    }
}

/// Plays drivers with the store at this address, while `fail` makes faults; `store` is beside all faults.
fn play(test: &str, store: &Store, address: &str, mut fail: impl FnMut(&mut fastrand::Rng)) {
    let (history, next, over) = (History::default(), AtomicU64::new(0), AtomicBool::new(false));
    let beside = open(&store.url);
    for list in 0..LISTS {
        let lease = create(&*beside, &name(list));
        wait(beside.release(&name(list), lease.fence)).unwrap();
    }
    let mut chance = fastrand::Rng::with_seed(9);
    std::thread::scope(|scope| {
        for driver in 0..DRIVERS {
            let journal = open(address);
            let (history, next, over) = (&history, &next, &over);
            scope.spawn(move || drive(&*journal, u64::try_from(driver).unwrap(), history, next, over));
        }
        fail(&mut chance);
        // On a busy machine, faults may have left little time for anything else.
        let is_short = || history.counts().0 < 40 || history.counts().1 < 20;
        for _ in (0..600).take_while(|_| is_short()) {
            std::thread::sleep(Duration::from_millis(100));
        }
        over.store(true, Ordering::SeqCst);
    });
    for list in 0..LISTS {
        while read(&*beside, list, &history).is_none() {
            crate::common::wait_poll_interval();
        }
    }
    let (appends, reads) = history.counts();
    eprintln!("{test}: {appends} appends and {reads} reads");
    let mut violations = history.violations();
    violations.extend(elle::anomalies(&history.operations()));
    assert!(violations.is_empty(), "{test}: {}", violations.join("\n"));
    assert!(appends >= 40 && reads >= 20, "{appends} appends and {reads} reads are no history");
}

/// The network fails so many times.
fn networks(test: &str, faults: usize) {
    let Some(store) = Store::shared(test) else { return };
    let proxy = Proxy::start(format!("{}/.s.PGSQL.5432", test_server::server(test).unwrap().folder));
    play(test, &store, &store.behind(&proxy), |chance| {
        for _ in 0..faults {
            proxy.lose_commits(3);
            match chance.usize(0..8) {
                0 => proxy.lose(true, false),
                1 => proxy.lose(false, true),
                2..5 => proxy.slow(20),
                _ => proxy.cut(),
            }
            std::thread::sleep(Duration::from_millis(chance.u64(20..100)));
            proxy.slow(0);
            proxy.lose(false, false);
            std::thread::sleep(Duration::from_millis(chance.u64(100..300)));
        }
        proxy.lose_commits(0);
    });
}

/// The database crashes so many times.
fn crashes(test: &str, crashes: usize) {
    let Some(mut server) = FailingServer::start(test, Standby::None) else { return };
    let store = server.store.clone();
    play(test, &store, &store.url, |chance| {
        for _ in 0..crashes {
            std::thread::sleep(Duration::from_millis(chance.u64(200..600)));
            server.does("stop");
            server.does("start");
        }
        std::thread::sleep(Duration::from_millis(300));
    });
}

#[test]
fn all_reads_and_appends_have_one_order_though_the_network_fails() {
    networks("all_reads_and_appends_have_one_order_though_the_network_fails", 6);
}

#[test]
fn all_reads_and_appends_have_one_order_though_the_database_crashes() {
    crashes("all_reads_and_appends_have_one_order_though_the_database_crashes", 2);
}

#[test]
#[ignore = "nightly: histories of minutes"]
fn long_histories_have_one_order() {
    networks("long_histories_have_one_order", 250);
    crashes("long_histories_have_one_order", 40);
}
