//! R5: one driver at a time, whoever resumes a run, and a driver that slept does nothing more.

use crate::common;
use crate::reference::Reference;

#[test]
fn fifty_processes_that_resume_one_run_at_once_are_one_driver() {
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
