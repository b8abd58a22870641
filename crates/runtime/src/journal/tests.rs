//! The stores of this crate pass the cases of the conformance suite, and say the same to whatever is done.

pub(in crate::journal) use super::conformance::{begin, event, new_run, wait};
use super::memory::MemoryJournal;
use super::sqlite::SqliteJournal;
use super::*;

#[test]
fn memory_passes_every_case() {
    for (name, case) in conformance::CASES {
        eprintln!("{name}");
        case(&MemoryJournal::new());
    }
}

#[test]
fn sqlite_passes_every_case() {
    for (name, case) in conformance::CASES {
        eprintln!("{name}");
        let folder = tempfile::tempdir().unwrap();
        case(&SqliteJournal::open(&folder.path().join("runs.db")).unwrap());
    }
}

#[test]
fn a_store_is_opened_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    begin(&*open("memory", folder.path()).unwrap(), "r");
    begin(&*open("sqlite:deep/er/runs.db", folder.path()).unwrap(), "r");
    assert!(folder.path().join("deep/er/runs.db").is_file());
    for (name, hint) in [
        ("runs.db", "put sqlite: before"),
        ("C:\\runs.db", "put sqlite: before"),
        ("", "put sqlite: before"),
        ("sqlite:", "no path follows"),
        ("sqlite::memory:", "is written memory"),
        ("sqlite://runs.db", "without //"),
        ("mysql://x", "a store is memory or sqlite:PATH"),
    ] {
        let Err(fault) = open(name, folder.path()) else { panic!("{name} was opened") };
        assert_eq!(fault.code(), "store_open");
        assert!(fault.to_string().contains(hint), "{fault}");
    }
}

/// An operation on a store in the test below.
#[derive(Debug, Clone)]
enum JournalCall {
    Create { run: usize, other: bool },
    Append { run: usize, fence: u64, seq: u64 },
    Lease { run: usize },
    Release { run: usize, fence: u64 },
    Confirm { run: usize, fence: u64 },
    Cancel { run: usize },
}

fn calls() -> impl proptest::strategy::Strategy<Value = Vec<JournalCall>> {
    use proptest::prelude::*;
    let call = prop_oneof![
        (0..3_usize, any::<bool>()).prop_map(|(run, other)| JournalCall::Create { run, other }),
        (0..3_usize, 0..4_u64, 0..6_u64).prop_map(|(run, fence, seq)| JournalCall::Append { run, fence, seq }),
        (0..3_usize).prop_map(|run| JournalCall::Lease { run }),
        (0..3_usize, 0..4_u64).prop_map(|(run, fence)| JournalCall::Release { run, fence }),
        (0..3_usize, 0..4_u64).prop_map(|(run, fence)| JournalCall::Confirm { run, fence }),
        (0..3_usize).prop_map(|run| JournalCall::Cancel { run }),
    ];
    proptest::collection::vec(call, 1..60)
}

/// Performs an operation, and returns the store's result as text.
fn outcome(journal: &dyn Journal, call: &JournalCall) -> String {
    let id = |run: &usize| format!("run{run}");
    match call {
        JournalCall::Create { run, other } => {
            let identity = if *other { "other" } else { "same" }.to_owned();
            format!("{:?}", wait(journal.create(NewRun { identity, ..new_run(&id(run)) })))
        }
        JournalCall::Append { run, fence, seq } => format!("{:?}", wait(journal.append(event(&id(run), *fence, *seq)))),
        JournalCall::Lease { run } => format!("{:?}", wait(journal.lease(&id(run)))),
        JournalCall::Release { run, fence } => format!("{:?}", wait(journal.release(&id(run), *fence))),
        JournalCall::Confirm { run, fence } => format!("{:?}", wait(journal.confirm(&id(run), *fence))),
        JournalCall::Cancel { run } => {
            format!("{:?}", wait(journal.request_cancel(&id(run), CancelRequest::default())))
        }
    }
}

/// All that a store shows.
fn shown(journal: &dyn Journal) -> String {
    let runs = wait(journal.list(RunFilter::default())).unwrap();
    let more = runs.iter().map(|run| {
        (wait(journal.read(&run.run_id)), wait(journal.cancel_requested(&run.run_id)), wait(journal.find(&run.run_id)))
    });
    format!("{runs:?} {:?}", more.collect::<Vec<_>>())
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn both_stores_say_the_same_to_whatever_is_done(calls in calls()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let (memory, disk) = (MemoryJournal::new(), SqliteJournal::open(&path).unwrap());
        for call in &calls {
            proptest::prop_assert_eq!(outcome(&memory, call), outcome(&disk, call));
        }
        proptest::prop_assert_eq!(shown(&memory), shown(&disk));
        drop(disk);
        let again = SqliteJournal::open(&path).unwrap();
        let events = |journal: &dyn Journal| (0..3).map(|run| wait(journal.read(&format!("run{run}")))).collect::<Vec<_>>();
        proptest::prop_assert_eq!(events(&memory), events(&again));
    }
}
