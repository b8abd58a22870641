//! Processes that are killed around each event, and calls that fail: nothing acknowledged is lost,
//! and the next process continues at once.

use std::process::{Command, ExitStatus};

use super::*;
use crate::journal::tests::{begin, event, wait};

const EVENTS: u64 = 5;
const STORE: &str = "LOOPCTL_TEST_STORE";

/// What the processes of these tests do: drive run `r` from where it is to its end.
fn drive(journal: &SqliteJournal) -> Result<(), StoreError> {
    let (fence, next) = match wait(journal.create(crate::journal::tests::new_run("r")))? {
        Created::New(lease) => (lease.fence, 1),
        Created::Same => wait(journal.lease("r")).map(|lease| (lease.fence, lease.events))?,
        other => panic!("a conflict: {other:?}"),
    };
    failpoint::before_effect();
    for seq in next..EVENTS {
        wait(journal.confirm("r", fence))?;
        // The events must not contain the lease: the journal is the same however often a process was killed.
        wait(journal.append(event("r", fence, seq)))?;
        failpoint::before_effect();
        assert_eq!(wait(journal.cancel_requested("r"))?, None);
    }
    wait(journal.release("r", fence))
}

/// Not a test: the body of the processes that the tests start.
#[test]
#[ignore = "started by the other tests, in a process of its own"]
fn driver() {
    #[expect(clippy::disallowed_methods, reason = "the path comes from the test that started this process")]
    let path = std::env::var(STORE).expect("this is started by other tests");
    drive(&open(Path::new(&path))).unwrap();
}

/// Starts a process that drives the run with a plan of what is to go wrong.
fn process(path: &Path, plan: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal::sqlite::tests::crash::driver", "--ignored", "--quiet"])
        .env(STORE, path)
        .env("LOOPCTL_FAIL", plan)
        .output()
        .unwrap()
        .status
}

fn whole() -> Vec<String> {
    let (_folder, path) = place();
    let journal = open(&path);
    let fence = begin(&journal, "r");
    for seq in 1..EVENTS {
        wait(journal.append(event("r", fence, seq))).unwrap();
    }
    wait(journal.read("r")).unwrap()
}

#[cfg(unix)]
#[test]
fn a_process_killed_around_any_event_loses_only_what_was_not_yet_synced() {
    use std::os::unix::process::ExitStatusExt;
    let whole = whole();
    for number in 0..EVENTS {
        for (point, durable) in [
            (failpoint::BEFORE_WRITE, number),
            (failpoint::AFTER_WRITE, number),
            (failpoint::AFTER_SYNC, number + 1),
            (failpoint::BEFORE_EFFECT, number + 1),
        ] {
            let (_folder, path) = place();
            let status = process(&path, &format!("journal:{number}:{point}"));
            assert_eq!(status.signal(), Some(9), "event {number}, {point}");
            let journal = open(&path);
            let kept = match wait(journal.read("r")) {
                Err(StoreError::NoSuchRun(_)) => Vec::new(),
                other => other.unwrap(),
            };
            assert_eq!(kept, whole[..usize::try_from(durable).unwrap()], "event {number}, {point}");
            drive(&journal).unwrap();
            assert_eq!(wait(journal.read("r")).unwrap(), whole, "event {number}, {point}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_process_killed_again_and_again_gets_to_the_end() {
    let (_folder, path) = place();
    let mut kills = 0;
    while !process(&path, "journal:0:after-sync").success() {
        kills += 1;
        assert!(kills <= EVENTS, "it does not come to an end");
    }
    assert_eq!(kills, EVENTS, "each process wrote one event");
    assert_eq!(wait(open(&path).read("r")).unwrap(), whole());
}

#[test]
fn whichever_call_to_the_store_fails_the_next_process_ends_the_run() {
    let calls = 2 + 3 * (EVENTS - 1);
    // Each call fails with two of the four.
    for (first, fault) in [(0, "busy"), (1, "full"), (0, "ioerr"), (1, "readonly")] {
        for number in (first..calls).step_by(2) {
            let (_folder, path) = place();
            assert!(!process(&path, &format!("store:{number}:{fault}")).success(), "call {number}, {fault}");
            assert!(process(&path, "").success(), "call {number}, {fault}");
            assert_eq!(wait(open(&path).read("r")).unwrap(), whole(), "call {number}, {fault}");
        }
    }
    let (_folder, path) = place();
    let beyond = process(&path, &format!("store:{calls}:busy"));
    assert!(beyond.success(), "create, release, and three calls an event");
}

#[test]
fn of_many_processes_that_drive_one_run_at_once_one_does() {
    let (_folder, path) = place();
    let ended = std::thread::scope(|scope| {
        let processes: Vec<_> = (0..12).map(|_| scope.spawn(|| process(&path, "").success())).collect();
        processes.into_iter().map(|thread| thread.join().unwrap()).filter(|ended| *ended).count()
    });
    assert!(ended >= 1);
    assert_eq!(wait(open(&path).read("r")).unwrap(), whole(), "no event is doubled or missing");
}
