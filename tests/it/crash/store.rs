//! R4: calls to the store fail, its disk is full, its folder is closed, another process locks it.

use crate::common;
use crate::common::server::Gate;
use crate::crash::reference::{Reference, assert_same, untouched};

/// The exit codes of a store whose fault needs an operator.
const BROKEN: [i32; 2] = [1, 2];
/// The exit code of a store that can be tried again.
const AWAY: i32 = 75;

/// Each call of the store fails in its turn, in one way.
fn each_failing_call_is_a_clear_error(kind: &str, codes: &[i32]) {
    let expected = untouched();
    let mut faults = 0;
    // The n-th call is as likely another one in each way: at each commit, a third of them.
    for call in (0..60).filter(|call| common::is_sampled(call + kind.len())) {
        let reference = Reference::new();
        let ran = reference.start(&format!("store:{call}:{kind}"));
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
        if ran.code == 3 {
            break;
        }
        faults += 1;
        assert!(codes.contains(&ran.code), "store:{call}:{kind}: {ran:#?}");
        assert!(ran.stderr.contains("store"), "store:{call}:{kind}: {ran:#?}");
        let (result, _) = reference.finish();
        assert_same(result, &expected, &format!("store:{call}:{kind}"));
        assert!(reference.calls_of("post").len() <= 1);
    }
    assert!(faults >= if common::is_nightly() { 5 } else { 2 }, "{faults} faults tested too little");
}

#[test]
fn the_n_th_store_call_that_is_busy_is_a_clear_error_and_the_run_can_be_resumed() {
    each_failing_call_is_a_clear_error("busy", &[AWAY]);
}

#[test]
fn the_n_th_store_call_without_room_is_a_clear_error_and_the_run_can_be_resumed() {
    each_failing_call_is_a_clear_error("full", &BROKEN);
}

#[test]
fn the_n_th_store_call_that_can_not_write_is_a_clear_error_and_the_run_can_be_resumed() {
    each_failing_call_is_a_clear_error("ioerr", &BROKEN);
}

#[test]
fn the_n_th_store_call_that_may_not_write_is_a_clear_error_and_the_run_can_be_resumed() {
    each_failing_call_is_a_clear_error("readonly", &BROKEN);
}

#[test]
fn a_disk_that_is_full_is_a_clear_error_and_the_run_goes_on_when_there_is_room() {
    let expected = untouched();
    let mut faults = 0;
    for blocks in (16..200).step_by(24) {
        let reference = Reference::new();
        let program = env!("CARGO_BIN_EXE_loopctl");
        let line =
            format!("ulimit -f {blocks}; exec '{program}' run loop.json --run-id r --script script.json --output json");
        let output = std::process::Command::new("sh")
            .args(["-c", &line])
            .current_dir(reference.place.path())
            .output()
            .expect("it starts");
        let ran = common::ran(&output);
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
        if ran.code != 3 {
            faults += 1;
            assert!(BROKEN.contains(&ran.code), "{blocks}: {ran:#?} {:?}", output.status);
            assert!(ran.stderr.contains("store"), "{blocks}: {ran:#?}");
        }
        assert_same(reference.finish().0, &expected, &format!("{blocks}"));
        assert!(reference.calls_of("post").len() <= 1);
    }
    assert!(faults >= 3, "{faults} faults tested too little");
}

#[test]
fn a_store_that_another_process_locks_during_a_run_is_reported_and_the_run_goes_on_when_it_is_free() {
    let expected = untouched();
    let gate = Gate::default();
    let reference = Reference::behind(Some(gate.clone()));
    let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
    let child = reference.place.start(&args, &[("LOOPCTL_FAIL", "time:200:busy")]);
    reference.server.wait_for(1);
    let acknowledged = reference.events();
    let other = rusqlite::Connection::open(reference.place.path().join(".loopctl/runs.db")).expect("a store");
    other.execute_batch("BEGIN EXCLUSIVE").expect("it is locked");
    gate.open();
    let ran = common::ran(&child.wait_with_output().expect("it ends"));
    assert!(ran.code == AWAY && ran.stderr.contains("locked by another process"), "{ran:#?}");
    let refused = reference.start("time:200:busy");
    assert!(refused.code == AWAY && refused.stderr.contains("locked by another process"), "{refused:#?}");
    other.execute_batch("ROLLBACK").expect("it is free");
    drop(other);
    assert!(reference.events().starts_with(&acknowledged), "what was acknowledged is there");
    assert_same(reference.finish().0, &expected, "");
    reference.holds("locked");
}
