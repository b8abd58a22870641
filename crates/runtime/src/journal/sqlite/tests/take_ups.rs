//! How drivers are counted that resume a run and die.

use super::*;
use crate::journal::tests::{event, new_run, wait};
use crate::journal::{MOST_FAILED_TAKE_UPS, NewRun, RunFilter};
use loopctl_engine::outcome::Status;

/// A driver that resumes these runs, appends that many events to each, and dies; returns how many failed before
/// it.
fn die(path: &Path, runs: &[(&str, u64)]) -> u32 {
    let driver = open(path);
    let mut first = None;
    for (run, events) in runs {
        let lease = wait(driver.lease(run)).unwrap();
        for seq in lease.events..lease.events + events {
            wait(driver.append(event(run, lease.fence, seq))).unwrap();
        }
        first.get_or_insert(lease.failed_take_ups);
    }
    driver.die();
    first.unwrap()
}

/// A store whose first driver died with these runs.
fn cut_off(runs: &[&str]) -> (TempDir, PathBuf) {
    let (folder, path) = place();
    let driver = open(&path);
    for run in runs {
        let parent_run_id = run.starts_with("r.1.").then(|| "r".to_owned());
        wait(driver.create(NewRun { parent_run_id, ..new_run(run) })).unwrap();
    }
    driver.die();
    (folder, path)
}

#[test]
fn what_taking_up_appends_is_nothing_that_happened() {
    let (_folder, path) = cut_off(&["r"]);
    let failed: Vec<u32> = [0, 1, 1, 0, 2, 1, 0].map(|events| die(&path, &[("r", events)])).into();
    assert_eq!(failed, [0, 1, 2, 3, 4, 0, 1]);
}

#[test]
fn what_happens_in_a_sub_run_counts_for_its_caller() {
    let (_folder, path) = cut_off(&["r", "r.1.0", "r2", "r.2"]);
    // A resumption appends one event to each.
    let die = |events| die(&path, &[("r", 1), ("r.1.0", events), ("r2", 5), ("r.2", 5)]);
    let failed: Vec<u32> = [1, 1, 2, 1].map(die).into();
    assert_eq!(failed, [0, 1, 2, 0], "other runs, r2 and r.2, are none of it");
}

#[test]
fn a_run_that_is_given_back_is_not_counted_and_forgets_what_came_before_once_something_happened() {
    let (_folder, path) = cut_off(&["r"]);
    let given_back = |events: u64| {
        let driver = open(&path);
        let lease = wait(driver.lease("r")).unwrap();
        for seq in lease.events..lease.events + events {
            wait(driver.append(event("r", lease.fence, seq))).unwrap();
        }
        wait(driver.release("r", lease.fence)).unwrap();
        let run = wait(driver.find("r")).unwrap().unwrap();
        let listed = RunFilter { statuses: vec![run.listed_status()], ..RunFilter::default() };
        let status = run.status;
        assert_eq!(wait(driver.list(listed)).unwrap(), [run], "the list agrees");
        (lease.failed_take_ups, status)
    };
    for _ in 0..MOST_FAILED_TAKE_UPS {
        assert_ne!(given_back(1).1, Status::Quarantined);
        die(&path, &[("r", 1)]);
    }
    assert_eq!(given_back(1), (3, Status::Quarantined));
    assert_eq!(given_back(0), (3, Status::Quarantined), "nothing happened");
    assert_eq!(given_back(2), (3, Status::Running));
    assert_eq!(given_back(0), (0, Status::Running));
}
