//! What both stores promise: the same tests for each.

use std::sync::Arc;

use serde_json::json;

mod answer_tokens;
mod lists;
mod queue;
mod reads;

use super::memory::MemoryJournal;
use super::sqlite::SqliteJournal;
use super::*;

/// A new run.
pub(in crate::journal) fn new_run(id: &str) -> NewRun {
    NewRun {
        run_id: id.to_owned(),
        loop_name: "triage".to_owned(),
        session: Some("ada".to_owned()),
        org: None,
        token: None,
        callback_url: None,
        parent_run_id: None,
        identity: "document+input".to_owned(),
        at_ms: 1_000,
        event: "first".to_owned(),
        texts: Vec::new(),
        status_record: None,
    }
}

/// Event `seq` of a run.
pub(in crate::journal) fn event(id: &str, fence: u64, seq: u64) -> Append {
    Append {
        run_id: id.to_owned(),
        fence,
        seq,
        event: format!("event {seq} of {id}"),
        texts: Vec::new(),
        status_record: None,
        remember: Vec::new(),
        reopens: false,
        answer_token: None,
        release: false,
    }
}

/// Awaits a future on a runtime of its own.
pub(in crate::journal) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Creates a run and returns the fence of its lease.
pub(in crate::journal) fn begin(journal: &dyn Journal, id: &str) -> u64 {
    match wait(journal.create(new_run(id))).unwrap() {
        Created::New(lease) => lease.fence,
        other => panic!("not new: {other:?}"),
    }
}

/// Does the same with both stores.
fn with_both(test: impl Fn(Arc<dyn Journal>)) {
    test(Arc::new(MemoryJournal::new()));
    let folder = tempfile::tempdir().unwrap();
    test(Arc::new(SqliteJournal::open(&folder.path().join("runs.db")).unwrap()));
}

#[test]
fn long_texts_come_back_to_each_run_that_named_them() {
    with_both(|journal| {
        let said = |id: &str| {
            let mut texts: Vec<_> =
                wait(journal.texts(id)).unwrap().iter().map(|text| text.shared().to_string()).collect();
            texts.sort();
            texts
        };
        for id in ["one", "two"] {
            let texts = vec!["prompt".into(), "document\u{0}".into(), id.into()];
            wait(journal.create(NewRun { texts, ..new_run(id) })).unwrap();
        }
        begin(&*journal, "three");
        wait(journal.append(Append { texts: vec!["another document".into()], ..event("two", 1, 1) })).unwrap();
        wait(journal.append(Append { texts: vec!["lost".into()], ..event("two", 1, 7) })).unwrap_err();
        assert_eq!(said("one"), ["document\u{0}", "one", "prompt"]);
        assert_eq!(said("two"), ["another document", "document\u{0}", "prompt", "two"]);
        assert!(said("three").is_empty());
        assert_eq!(wait(journal.texts("none")).unwrap_err(), StoreFault::NoSuchRun("none".to_owned()));
    });
}

#[test]
fn only_the_next_event_is_taken_and_a_refused_one_leaves_nothing() {
    with_both(|journal| {
        let fence = begin(&*journal, "r");
        for wrong in [0, 2, 7, u64::MAX] {
            let fault = wait(journal.append(event("r", fence, wrong))).unwrap_err();
            assert!(fault.to_string().contains("its next event is number 1"), "{fault}");
        }
        wait(journal.append(event("r", fence, 1))).unwrap();
        assert!(wait(journal.append(event("r", fence, 1))).is_err());
        assert_eq!(wait(journal.read("r")).unwrap().len(), 2);
    });
}

#[test]
fn the_same_id_is_the_same_run_or_a_conflict() {
    with_both(|journal| {
        begin(&*journal, "r");
        assert_eq!(wait(journal.create(new_run("r"))).unwrap(), Created::Same);
        let other = NewRun { identity: "other".to_owned(), ..new_run("r") };
        assert_eq!(wait(journal.create(other)).unwrap(), Created::Conflict);
        assert_eq!(wait(journal.read("r")).unwrap(), ["first"]);
    });
}

#[test]
fn of_a_hundred_who_make_one_run_at_once_one_makes_it() {
    with_both(|journal| {
        let tickets: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..100).map(|_| scope.spawn(|| wait(journal.create(new_run("r"))))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        assert_eq!(tickets.iter().filter(|made| matches!(made, Created::New(_))).count(), 1);
        assert_eq!(tickets.iter().filter(|made| **made == Created::Same).count(), 99);
    });
}

#[test]
fn a_run_has_one_driver_and_each_lease_a_higher_number() {
    with_both(|journal| {
        let first = begin(&*journal, "r");
        assert_eq!(wait(journal.lease("r")).unwrap_err(), StoreFault::Driven("r".to_owned()));
        wait(journal.append(event("r", first, 1))).unwrap();
        wait(journal.release("r", first)).unwrap();
        let second = wait(journal.lease("r")).unwrap();
        assert_eq!(second, Lease { fence: first + 1, events: 2, failed_take_ups: 0 });
        wait(journal.confirm("r", second.fence)).unwrap();
        wait(journal.append(event("r", second.fence, 2))).unwrap();
    });
}

#[test]
fn an_old_lease_writes_nothing_confirms_nothing_and_gives_nothing_back() {
    with_both(|journal| {
        let old = begin(&*journal, "r");
        wait(journal.release("r", old)).unwrap();
        let fenced = StoreFault::Fenced("r".to_owned());
        assert_eq!(wait(journal.append(event("r", old, 1))).unwrap_err(), fenced, "given back");
        let new = wait(journal.lease("r")).unwrap().fence;
        assert_eq!(wait(journal.append(event("r", old, 1))).unwrap_err(), fenced, "overtaken");
        assert_eq!(wait(journal.confirm("r", old)).unwrap_err(), fenced);
        wait(journal.release("r", old)).unwrap();
        wait(journal.confirm("r", new)).unwrap();
        assert_eq!(wait(journal.read("r")).unwrap(), ["first"]);
        wait(journal.append(event("r", new, 1))).unwrap();
    });
}

#[test]
fn what_is_not_there_is_said_to_be_not_there() {
    with_both(|journal| {
        let missing = StoreFault::NoSuchRun("r".to_owned());
        assert_eq!(wait(journal.read("r")).unwrap_err(), missing);
        assert_eq!(wait(journal.lease("r")).unwrap_err(), missing);
        assert_eq!(wait(journal.append(event("r", 1, 0))).unwrap_err(), missing);
        assert_eq!(wait(journal.request_cancel("r", None)).unwrap_err(), missing);
        assert_eq!(wait(journal.cancel_requested("r")).unwrap_err(), missing);
        assert_eq!(wait(journal.confirm("r", 1)).unwrap_err(), StoreFault::Fenced("r".to_owned()));
        assert_eq!(wait(journal.find("r")).unwrap(), None);
        assert_eq!(wait(journal.list(RunFilter::default())).unwrap(), []);
        assert!(wait(journal.recall("nobody")).unwrap().is_empty());
        wait(journal.release("r", 1)).unwrap();
    });
}

#[test]
fn a_list_shows_the_newest_first_with_their_standing() {
    with_both(|journal| {
        // The clock goes back meanwhile: the order is that of the creation.
        for (id, at_ms) in [("a", 3_000), ("b", 2_000), ("c", 1_000)] {
            wait(journal.create(NewRun { at_ms, ..new_run(id) })).unwrap();
        }
        let status_record = StatusRecord {
            status: Status::Paused,
            termination: Some(Termination::Human),
            iterations: 4,
            at_ms: 9_000,
            due_at_ms: None,
        };
        wait(journal.append(Append { status_record: Some(status_record), ..event("b", 1, 1) })).unwrap();
        wait(journal.release("b", 1)).unwrap();
        let ids = |filter| wait(journal.list(filter)).unwrap().into_iter().map(|run| run.run_id).collect::<Vec<_>>();
        assert_eq!(ids(RunFilter::default()), ["c", "b", "a"]);
        assert_eq!(ids(RunFilter { limit: 2, ..RunFilter::default() }), ["c", "b"]);
        assert_eq!(ids(RunFilter { status: Some(Status::Running), limit: 0, ..RunFilter::default() }), ["c", "a"]);
        assert_eq!(ids(RunFilter { status: Some(Status::Running), limit: 1, ..RunFilter::default() }), ["c"]);
        let paused =
            wait(journal.list(RunFilter { status: Some(Status::Paused), limit: 0, ..RunFilter::default() })).unwrap();
        let expected = RunSummary {
            run_id: "b".to_owned(),
            loop_name: "triage".to_owned(),
            session: Some("ada".to_owned()),
            status: Status::Paused,
            termination: Some(Termination::Human),
            iterations: 4,
            started_at_ms: 2_000,
            updated_at_ms: 9_000,
            driven: false,
            damaged: None,
            parent_run_id: None,
            identity: "document+input".to_owned(),
            org: None,
            callback: None,
        };
        assert_eq!(paused, std::slice::from_ref(&expected));
        assert_eq!(wait(journal.find("b")).unwrap(), Some(expected));
        assert!(wait(journal.find("a")).unwrap().unwrap().driven);
    });
}

#[test]
fn a_session_remembers_what_came_with_an_event_and_the_last_word_counts() {
    with_both(|journal| {
        begin(&*journal, "r");
        let remember = |seq, list: &[(&str, Value)]| Append {
            remember: list.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
            ..event("r", 1, seq)
        };
        let digits: Value = serde_json::from_str("12345678901234567890123").unwrap();
        wait(journal.append(remember(1, &[("k", json!(1)), ("n", digits.clone())]))).unwrap();
        wait(journal.append(remember(2, &[("k", json!({"b": 1, "a": [null]}))]))).unwrap();
        assert!(wait(journal.append(remember(9, &[("k", json!("never"))]))).is_err());
        let memory = wait(journal.recall("ada")).unwrap();
        assert_eq!(memory.get("k").unwrap().to_string(), r#"{"b":1,"a":[null]}"#);
        assert_eq!(memory.get("n"), Some(&digits));
        assert_eq!(memory.len(), 2);
    });
}

#[test]
fn a_run_without_a_session_leaves_no_memory() {
    with_both(|journal| {
        wait(journal.create(NewRun { session: None, ..new_run("r") })).unwrap();
        wait(journal.append(Append { remember: vec![("k".to_owned(), json!(1))], ..event("r", 1, 1) })).unwrap();
        assert!(wait(journal.recall("ada")).unwrap().is_empty());
        assert!(wait(journal.recall("")).unwrap().is_empty());
    });
}

#[test]
fn an_end_is_asked_for_once_and_the_first_reason_stays() {
    with_both(|journal| {
        begin(&*journal, "r");
        assert_eq!(wait(journal.cancel_requested("r")).unwrap(), None);
        wait(journal.request_cancel("r", Some("enough".to_owned()))).unwrap();
        wait(journal.request_cancel("r", Some("later".to_owned()))).unwrap();
        let request = CancelRequest { reason: Some("enough".to_owned()) };
        assert_eq!(wait(journal.cancel_requested("r")).unwrap(), Some(request));
    });
}

#[test]
fn many_runs_that_append_at_once_lose_nothing() {
    with_both(|journal| {
        let (runs, events) = (16_u64, 25_u64);
        std::thread::scope(|scope| {
            for run in 0..runs {
                let journal = &journal;
                scope.spawn(move || {
                    let id = format!("r{run}");
                    let fence = begin(&**journal, &id);
                    for seq in 1..events {
                        wait(journal.append(event(&id, fence, seq))).unwrap();
                    }
                });
            }
        });
        for run in 0..runs {
            let id = format!("r{run}");
            let expected: Vec<_> = std::iter::once("first".to_owned())
                .chain((1..events).map(|seq| format!("event {seq} of {id}")))
                .collect();
            assert_eq!(wait(journal.read(&id)).unwrap(), expected);
        }
    });
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
        ("postgres://x", "a store is memory or sqlite:PATH"),
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
        JournalCall::Cancel { run } => format!("{:?}", wait(journal.request_cancel(&id(run), None))),
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
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

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
