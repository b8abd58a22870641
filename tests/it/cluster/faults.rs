//! Faults from a seed, while runs are under way on several workers: what was acknowledged is there, and nothing is done
//! twice. The plays of each commit are short; those of `just nightly` reach their floors.

use std::time::UNIX_EPOCH;

use serde_json::json;

use crate::cluster::harness::database::{FailingServer, Standby, Store};
use crate::cluster::harness::proxy::Proxy;
use crate::cluster::harness::worker::Signals;
use crate::cluster::harness::{Cluster, LEASE, Play};
use crate::common::Place;
use crate::serve::client::Serving;
use crate::test_server;

/// A play of a commit.
const SHORT: Play = Play { workers: 3, slots: 16, runs: 24, calls: 12, model_ms: 80, tool_ms: 40, has_once: true };
/// A play of the night.
const LONG: Play = Play { workers: 5, slots: 32, runs: 2500, calls: 16, model_ms: 60, tool_ms: 30, has_once: true };

/// The cluster of a play, with all its runs under way.
fn loaded(play: Play, store: &Store, address: &str, seed: u64) -> Cluster {
    let mut cluster = Cluster::start(play, store.clone(), address, seed);
    cluster.load();
    cluster.watch();
    cluster
}

/// Plays until there were so many takeovers: again with the next seed if the runs of a play end before.
fn until_taken_over(name: &str, seed: u64, least: usize, play: impl Fn(&str, u64) -> Option<Cluster>) {
    let mut takeovers = 0;
    for seed in seed.. {
        let name = format!("{name}_{seed}");
        let Some(cluster) = play(&name, seed) else { return };
        takeovers += cluster.judge(&name).sound(1).takeovers;
        if takeovers >= least {
            eprintln!("{name}: {takeovers} takeovers");
            return;
        }
    }
}

/// D1: random workers are killed, and others come in their place.
fn kills(name: &str, play: Play, seed: u64) -> Option<Cluster> {
    let store = Store::shared(name)?;
    let mut cluster = loaded(play, &store, &store.url, seed);
    let at_once = play.workers.div_ceil(2);
    while cluster.goes_on(play.workers * play.slots) {
        for _ in 0..at_once {
            let worker = cluster.pick(play.workers);
            cluster.replace(worker);
        }
    }
    Some(cluster)
}

#[test]
fn workers_that_are_killed_cost_their_runs_a_lease_and_nothing_else() {
    until_taken_over("workers_that_are_killed", 1, 5, |name, seed| kills(name, SHORT, seed));
}

#[test]
#[ignore = "nightly: 1,000 takeovers by kills"]
fn a_thousand_takeovers_by_kills() {
    until_taken_over("a_thousand_takeovers_by_kills", 1, 1_000, |name, seed| kills(name, LONG, seed));
}

/// D2: a random worker stands still, for half a lease to three, and wakes.
fn stops(name: &str, play: Play, seed: u64) -> Option<Cluster> {
    let store = Store::shared(name)?;
    let mut cluster = loaded(play, &store, &store.url, seed);
    // The first one stands still for long: what it drives is taken over while the others still work.
    let mut shortest = 250;
    while cluster.goes_on(play.workers * play.slots / 2) {
        let (worker, hundredths) = (cluster.pick(play.workers), cluster.chance.u32(shortest..300));
        shortest = 50;
        cluster.workers[worker].signal(Signals::Stop);
        cluster.wait_leases(hundredths);
        cluster.workers[worker].signal(Signals::Continue);
    }
    Some(cluster)
}

#[test]
fn workers_that_stand_still_for_longer_than_their_lease_do_nothing_more() {
    until_taken_over("workers_that_stand_still", 2, 5, |name, seed| stops(name, SHORT, seed));
}

#[test]
#[ignore = "nightly: 500 takeovers by workers that stand still"]
fn five_hundred_takeovers_by_workers_that_stand_still() {
    until_taken_over("five_hundred_takeovers", 2, 500, |name, seed| stops(name, LONG, seed));
}

/// D3: the database is stopped at once and comes back, so many times: in several plays, if the runs of one end before.
fn restarts(name: &str, play: Play, seed: u64, times: usize) {
    let mut done = 0;
    for seed in seed.. {
        let Some(mut server) = FailingServer::start(name, Standby::None) else { return };
        let store = server.store.clone();
        let (mut cluster, before) = (loaded(play, &store, &store.url, seed), done);
        while done < times && cluster.goes_on(play.runs * play.calls / (times + 1)) {
            let hundredths = cluster.chance.u32(0..200);
            server.does("stop");
            cluster.wait_leases(hundredths);
            server.does("start");
            done += 1;
        }
        assert!(done > before, "the runs ended before the first crash");
        cluster.judge(name).sound(0);
        eprintln!("{name}: {done} crashes of {times}");
        if done == times {
            return;
        }
    }
}

#[test]
fn a_database_that_crashes_and_comes_back_has_every_run() {
    restarts("a_database_that_crashes", SHORT, 3, 1);
}

#[test]
#[ignore = "nightly: 200 crashes of the database"]
fn two_hundred_crashes_of_the_database() {
    restarts("two_hundred_crashes_of_the_database", LONG, 3, 200);
}

/// D3: a synchronous standby takes the place of the primary.
fn promotions(name: &str, play: Play, seed: u64, times: u64) {
    for seed in seed..seed + times {
        let Some(mut server) = FailingServer::start(name, Standby::Synchronous) else { return };
        let store = server.store.clone();
        let mut cluster = loaded(play, &store, &store.url, seed);
        let calls = cluster.pick(play.runs * play.calls / 2);
        assert!(cluster.goes_on(calls));
        server.does("promote");
        cluster.judge(name).sound(0);
    }
}

#[test]
fn a_synchronous_standby_that_takes_over_has_every_run() {
    promotions("a_synchronous_standby_that_takes_over", SHORT, 4, 1);
}

#[test]
#[ignore = "nightly: 50 failovers to a synchronous standby"]
fn fifty_failovers_to_a_synchronous_standby() {
    promotions("fifty_failovers_to_a_synchronous_standby", SHORT, 4, 50);
}

/// D3: a standby takes the place of the primary, and lacks what was acknowledged since it last received something. Calls
/// whose events are gone are made again; no run stands still, and none has a gap.
fn lags(name: &str, play: Play, seed: u64, times: u64) {
    for seed in seed..seed + times {
        let Some(mut server) = FailingServer::start(name, Standby::Lagging) else { return };
        let store = server.store.clone();
        let mut cluster = Cluster::start(play, store.clone(), &store.url, seed);
        cluster.load();
        let calls = cluster.pick(play.runs * play.calls / 4);
        assert!(cluster.goes_on(calls));
        server.does("lag");
        let calls = cluster.pick(play.runs * play.calls / 4) + 1;
        assert!(cluster.goes_on(calls));
        server.does("promote");
        cluster.judge_what_is_left(name).sound(0);
    }
}

#[test]
fn no_run_stands_still_when_a_standby_that_lags_takes_over() {
    lags("no_run_stands_still_when_a_standby_that_lags_takes_over", SHORT, 5, 1);
}

#[test]
#[ignore = "nightly: 50 failovers to a standby that lags"]
fn fifty_failovers_to_a_standby_that_lags() {
    lags("fifty_failovers_to_a_standby_that_lags", SHORT, 5, 50);
}

/// D4: the network between the workers and the database fails in each way.
fn networks(name: &str, play: Play, seed: u64) -> Option<usize> {
    let store = Store::shared(name)?;
    let proxy = Proxy::start(format!("{}/.s.PGSQL.5432", test_server::server(name)?.folder));
    let mut cluster = loaded(play, &store, &store.behind(&proxy), seed);
    while cluster.goes_on(play.workers * play.slots / 4) {
        proxy.lose_commits(4);
        match cluster.pick(5) {
            0 => proxy.cut(),
            1 => proxy.slow(40),
            2 => proxy.lose(true, false),
            3 => proxy.lose(false, true),
            _ => continue,
        }
        let hundredths = cluster.chance.u32(10..50);
        cluster.wait_leases(hundredths);
        proxy.slow(0);
        proxy.lose(false, false);
    }
    proxy.lose_commits(0);
    cluster.judge(name).sound(0);
    eprintln!("{name}: {} answers to commits were lost", proxy.lost());
    Some(proxy.lost())
}

#[test]
fn a_network_that_cuts_delays_and_loses_what_is_sent_costs_no_event() {
    let lost = networks("a_network_that_cuts_delays_and_loses", Play { runs: 12, ..SHORT }, 5);
    assert!(lost.is_none_or(|lost| lost >= 5), "{lost:?}");
}

#[test]
#[ignore = "nightly: 500 answers to commits that are lost and found again"]
fn five_hundred_answers_that_are_lost_are_found_again() {
    let mut all = 0;
    for seed in 5.. {
        let Some(lost) = networks(&format!("five_hundred_answers_that_are_lost_{seed}"), LONG, seed) else { return };
        all += lost;
        if all >= 500 {
            return;
        }
    }
}

/// D5: the clocks of workers are an hour ahead or behind, and the database's jumps by a lease.
fn clocks(name: &str, play: Play, seed: u64, jumps: usize) {
    const HOUR_MS: i64 = 3_600_000;
    let Some(store) = Store::shared(name) else { return };
    let mut cluster = loaded(play, &store, &store.url, seed);
    for jump in 0..jumps {
        if !cluster.goes_on(play.runs * play.calls / (2 * jumps + 1)) {
            break;
        }
        let worker = cluster.pick(play.workers);
        cluster.workers[worker].clock_ahead(if jump % 2 == 0 { HOUR_MS } else { -HOUR_MS });
    }
    let taken =
        "SELECT count(*) FROM (SELECT run FROM @.events WHERE seq > 0 GROUP BY run HAVING count(DISTINCT fence) > 1) r";
    assert_eq!(store.tell(taken), "0", "no run changes hands by a worker's clock, {}", cluster.seeded());
    for jump in 0..jumps {
        if !cluster.goes_on(play.runs * play.calls / (2 * jumps + 1)) {
            break;
        }
        // To its clock, all leases end sooner or later than they did.
        let by = if jump % 2 == 0 { "-" } else { "+" };
        store.tell(&format!("UPDATE @.drivers SET until = until {by} interval '{} ms'", LEASE.as_millis()));
    }
    cluster.judge(name).sound(0);
}

#[test]
fn clocks_that_jump_cost_no_event_and_those_of_workers_no_takeover() {
    clocks("clocks_that_jump", SHORT, 6, 4);
}

/// D5: the clock of the database's machine jumps by a lease and back.
#[test]
#[ignore = "nightly: 20 jumps of the database's clock, by libfaketime"]
fn a_clock_of_the_database_that_jumps_by_a_lease_costs_no_event() {
    #![allow(clippy::disallowed_methods, reason = "two clocks are compared")]
    const JUMPS: usize = 20;
    let name = "a_clock_of_the_database_that_jumps";
    let play = Play { runs: 96, ..SHORT };
    let Some(mut server) = FailingServer::with_clock(name) else { return };
    let store = server.store.clone();
    let cluster = loaded(play, &store, &store.url, 7);
    let mut done = 0;
    while done < JUMPS && cluster.goes_on(play.runs * play.calls / (2 * JUMPS)) {
        // A little more than a lease: all of them are over at once.
        let (word, least_ahead) = if done % 2 == 0 { ("clock +1.2", 1.0) } else { ("clock +0", -0.1) };
        server.does(word);
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        let ahead = store.tell("SELECT extract(epoch FROM clock_timestamp())").parse::<f64>().unwrap() - now;
        assert!(ahead > least_ahead, "the clock of the database is {ahead} s ahead");
        done += 1;
    }
    assert_eq!(done, JUMPS, "the runs ended before");
    cluster.judge(name).sound(0);
}

#[test]
fn a_database_that_is_away_is_not_said_to_be_back_before_it_is() {
    let Some(mut server) = FailingServer::start("a_database_that_is_away", Standby::None) else { return };
    let place = Place::new();
    place.json("loopctl.json", &json!({}));
    place.json(
        "loops/one.json",
        &json!({ "type": "loop", "name": "one", "properties": { "mode": "react", "objective": "x", "tools": [] } }),
    );
    let log = place.path().join("log.txt");
    let worker = Serving::start_logged(&place, &["--store", &server.store.url], &log);
    let lines =
        |words: &str| std::fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains(words)).count();
    while worker.get("/readyz").status != 200 {
        crate::common::wait_poll_interval();
    }
    server.does("stop");
    while lines("the database can't be reached") == 0 {
        crate::common::wait_poll_interval();
    }
    // Each waits for the database, for as long as several beats.
    for _ in 0..3 {
        assert_eq!(worker.get("/readyz").status, 503);
    }
    assert_eq!((lines("can be reached again"), lines("the database can't be reached")), (0, 1));
    server.does("start");
    while lines("can be reached again") == 0 {
        crate::common::wait_poll_interval();
    }
    assert_eq!((lines("can be reached again"), lines("the database can't be reached")), (1, 1));
}
