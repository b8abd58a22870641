//! R5: one driver at a time, whoever resumes a run. A driver that was suspended for longer than its lease,
//! while another one took over its run, writes nothing more and makes no further call.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::server::Gate;
use crate::common::{self, Ran};
use crate::crash::reference::{Reference, assert_same, untouched};

/// A short lease. It is renewed after a third of it.
const SHORT: &str = "time:300:lease";

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a pid"))
}

/// Waits until the process has stopped.
fn wait_until_stopped(child: &Child) {
    let status = waitpid(pid(child), Some(WaitPidFlag::WUNTRACED)).expect("it is there");
    assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
}

/// Where the first driver is suspended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asleep {
    /// During a call that may be repeated.
    InACall,
    /// After the intent of the POST without a key is durable, and before the call.
    BeforeThePost,
    /// After the POST, and before its outcome is written.
    AfterThePost,
}

const ALL: [Asleep; 3] = [Asleep::InACall, Asleep::BeforeThePost, Asleep::AfterThePost];

/// Suspends a process at any moment.
fn suspend(child: &Child) {
    kill(pid(child), Signal::SIGSTOP).expect("it is there");
    wait_until_stopped(child);
}

/// Another driver takes the run when the lease expires, and drives it to its question.
fn taken_over(reference: &Reference, sleeper: &Child, asleep: Asleep) -> Ran {
    let mut how: Vec<&str> = Vec::new();
    let mut is_awake = false;
    for _ in 0..10_000 {
        let ran = reference.resume(&how, SHORT);
        if ran.code == 75 && asleep == Asleep::InACall && ran.stderr.contains("the store is locked") {
            // It was suspended while it renewed its lease: nobody can write then. It goes on until somebody can.
            kill(pid(sleeper), Signal::SIGCONT).expect("it is there");
            is_awake = true;
            continue;
        }
        if ran.code == 2 {
            assert!(ran.stderr.contains("driven"), "{asleep:?}: {ran:#?}");
            if std::mem::take(&mut is_awake) {
                suspend(sleeper);
            }
            continue;
        }
        assert_eq!(ran.code, 3, "{ran:#?}");
        if ran.json()["termination"] == "human" {
            return ran;
        }
        let made = !reference.calls_of("post").is_empty();
        how = if made { vec!["--happened", r#"{"did":"post"}"#] } else { vec!["--retry"] };
    }
    panic!("the lease is never over");
}

fn a_round(expected: &Value, asleep: Asleep) {
    let gate = Gate::default();
    let reference = Reference::behind((asleep == Asleep::InACall).then(|| gate.clone()));
    let fail = match asleep {
        Asleep::InACall => SHORT.to_owned(),
        Asleep::BeforeThePost => format!("{SHORT},journal:5:after-sync-stop"),
        Asleep::AfterThePost => format!("{SHORT},journal:6:before-write-stop"),
    };
    let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
    let sleeper = reference.place.start(&args, &[("LOOPCTL_FAIL", &fail)]);
    if asleep == Asleep::InACall {
        reference.server.wait_for(1);
        suspend(&sleeper);
    } else {
        wait_until_stopped(&sleeper);
    }

    taken_over(&reference, &sleeper, asleep);
    let (events, calls) = (reference.events(), reference.server.requests().len());
    gate.open();
    kill(pid(&sleeper), Signal::SIGCONT).expect("it is there");
    let woken = common::ran(&sleeper.wait_with_output().expect("it ends"));
    assert!([1, 2].contains(&woken.code) && woken.stderr.contains("another driver"), "{asleep:?}: {woken:#?}");
    assert_eq!(reference.events(), events, "{asleep:?}: the sleeper wrote");
    assert_eq!(reference.server.requests().len(), calls, "{asleep:?}: the sleeper made a call");

    let ended = reference.resume(&["--answer", "yes"], "");
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert_same(ended.json(), expected, &format!("{asleep:?}"));
    let counts = ["read", "put", "post"].map(|name| reference.calls_of(name).len());
    let read = if asleep == Asleep::InACall { 2 } else { 1 };
    assert_eq!(counts, [read, 1, 1], "{asleep:?}");
    reference.holds("asleep");
}

#[test]
fn a_driver_that_slept_past_its_lease_writes_nothing_and_calls_nothing() {
    let expected = untouched();
    for asleep in ALL {
        a_round(&expected, asleep);
    }
}

#[test]
#[ignore = "nightly: 200 rounds"]
fn a_driver_that_slept_past_its_lease_writes_nothing_and_calls_nothing_in_200_rounds() {
    let expected = untouched();
    for asleep in ALL.into_iter().cycle().take(200) {
        a_round(&expected, asleep);
    }
}

#[test]
fn a_driver_that_slept_and_was_not_overtaken_goes_on() {
    let reference = Reference::new();
    let fail = format!("{SHORT},journal:5:after-sync-stop");
    let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
    let sleeper = reference.place.start(&args, &[("LOOPCTL_FAIL", &fail)]);
    wait_until_stopped(&sleeper);
    kill(pid(&sleeper), Signal::SIGCONT).expect("it is there");
    let woken = common::ran(&sleeper.wait_with_output().expect("it ends"));
    assert_eq!((woken.code, &woken.json()["termination"]), (3, &"human".into()));
    assert_eq!(reference.calls_of("post").len(), 1);
}

fn fifty_at_once() {
    let reference = Reference::new();
    assert_eq!(reference.start("journal:2:after-sync").code, -9);
    let args = ["resume", "r", "--script", "script.json", "--output", "json"];
    let children: Vec<_> = (0..50).map(|_| reference.place.start(&args, &[])).collect();
    let mut paused = 0;
    for child in children {
        let ran = common::ran(&child.wait_with_output().expect("it ends"));
        assert!(ran.code == 3 || (ran.code == 2 && ran.stderr.contains("driven")), "{ran:#?}");
        paused += usize::from(ran.code == 3);
    }
    assert!(paused >= 1);
    for name in ["read", "put", "post"] {
        assert_eq!(reference.calls_of(name).len(), 1, "{name}");
    }
}

#[test]
fn fifty_processes_that_resume_one_run_at_once_are_one_driver() {
    fifty_at_once();
}

#[test]
#[ignore = "nightly: 1,000 rounds of 50 processes"]
fn fifty_processes_that_resume_one_run_at_once_are_one_driver_in_1000_rounds() {
    for _ in 0..1000 {
        fifty_at_once();
    }
}
