//! Runs that are deleted, the workers of a store, and what a copy of a run needs.

use serde_json::json;

use super::*;
use crate::journal::prune::PrunedLoops;
use crate::journal::{CallbackProgress, CallbackState, PruneQuery, RunExtras};

/// A run that came to rest with this status at this moment.
fn ended(journal: &dyn Journal, new: NewRun, status: Status, at_ms: i64) {
    let run_id = new.run_id.clone();
    assert!(matches!(wait(journal.create(new)).unwrap(), Created::New(_)));
    let termination = match status {
        Status::Completed => Some(Termination::Complete),
        Status::Paused => Some(Termination::Human),
        Status::Cancelled => Some(Termination::Cancelled),
        _ => Some(Termination::ModelError),
    };
    let record = StatusRecord { termination, iterations: 1, ..StatusRecord::new(status, at_ms) };
    wait(journal.append(Append { status_record: Some(record), release: true, ..event(&run_id, 1, 1) })).unwrap();
}

fn old(statuses: &[Status], most: usize) -> PruneQuery {
    PruneQuery { most, ..PruneQuery::all_before(5_000, statuses.to_vec()) }
}

fn left(journal: &dyn Journal) -> Vec<String> {
    let filter = RunFilter { called: true, oldest_first: true, ..RunFilter::default() };
    wait(journal.list(filter)).unwrap().into_iter().map(|run| run.run_id).collect()
}

pub(super) fn only_runs_that_ended_long_ago_are_pruned_with_those_that_they_called(journal: &dyn Journal) {
    let ends = [Status::Completed, Status::Failed, Status::Cancelled];
    let called = |id: &str, by: &str| NewRun { parent_run_id: Some(by.to_owned()), ..new_run(id) };
    let posted = |id: &str| NewRun { callback_url: Some("https://e.example/".to_owned()), ..new_run(id) };
    ended(journal, NewRun { texts: vec!["shared".into(), "own".into()], ..new_run("done") }, Status::Completed, 1_000);
    ended(journal, called("done.1.0", "done"), Status::Completed, 1_000);
    ended(journal, NewRun { texts: vec!["shared".into()], ..new_run("done2") }, Status::Failed, 9_000);
    ended(journal, new_run("waits"), Status::Paused, 1_000);
    ended(journal, new_run("parent"), Status::Failed, 1_000);
    ended(journal, called("parent.1.0", "parent"), Status::Paused, 1_000);
    ended(journal, posted("posted"), Status::Completed, 1_000);
    ended(journal, posted("to-post"), Status::Completed, 1_000);
    let made = CallbackProgress { state: CallbackState::Delivered, tries: 1 };
    wait(journal.note_callback("posted", made, None, None)).unwrap();
    ended(journal, new_run("failed"), Status::Failed, 1_000);
    begin(journal, "runs");
    ended(journal, new_run("stopped"), Status::Completed, 1_000);
    let fence = wait(journal.lease("stopped")).unwrap().fence;
    let record = StatusRecord {
        status: Status::Cancelled,
        termination: None,
        iterations: 1,
        at_ms: 1_000,
        ..StatusRecord::new(Status::Running, 0)
    };
    let stopped = Append { status_record: Some(record), release: true, ..event("stopped", fence, 2) };
    wait(journal.append(stopped)).unwrap();
    ended(journal, new_run("driven"), Status::Completed, 1_000);
    wait(journal.lease("driven")).unwrap();

    let before = left(journal);
    let counted = PruneQuery { dry_run: true, ..old(&ends, 1) };
    assert_eq!(wait(journal.prune(counted)).unwrap(), 3, "a dry run counts all");
    assert_eq!(left(journal), before, "and deletes none");
    assert_eq!(wait(journal.prune(old(&[Status::Failed], 9))).unwrap(), 1);
    assert!(!left(journal).contains(&"failed".to_owned()));
    assert_eq!(wait(journal.prune(old(&ends, 9))).unwrap(), 2);
    let kept = ["done2", "waits", "parent", "parent.1.0", "to-post", "runs", "stopped", "driven"];
    assert_eq!(left(journal), kept);
    assert_eq!(wait(journal.read("done")).unwrap_err(), StoreError::NoSuchRun("done".to_owned()));
    let texts: Vec<String> =
        wait(journal.texts("done2")).unwrap().iter().map(|text| text.shared().to_string()).collect();
    assert_eq!(texts, ["shared"], "what another run names stays");
    // The id is free again, and nothing of the run that had it is there.
    begin(journal, "done");
    assert_eq!(wait(journal.read("done")).unwrap(), ["first"]);
    assert!(wait(journal.texts("done")).unwrap().is_empty());
}

pub(super) fn runs_are_pruned_in_batches_the_oldest_first(journal: &dyn Journal) {
    for (number, at_ms) in [(0, 3_000), (1, 1_000), (2, 2_000), (3, 4_000), (4, 6_000)] {
        ended(journal, new_run(&format!("r{number}")), Status::Completed, at_ms);
    }
    assert_eq!(wait(journal.prune(old(&[Status::Completed], 3))).unwrap(), 3);
    assert_eq!(left(journal).len(), 2);
    assert_eq!(wait(journal.prune(old(&[Status::Completed], 3))).unwrap(), 1);
    assert_eq!(left(journal), ["r4"]);
    assert_eq!(wait(journal.prune(old(&[Status::Completed], 3))).unwrap(), 0);
}

pub(super) fn runs_are_pruned_by_their_loops(journal: &dyn Journal) {
    for (run_id, loop_name) in [("a1", "a"), ("b1", "b"), ("c1", "c"), ("a2", "a")] {
        ended(journal, NewRun { loop_name: loop_name.to_owned(), ..new_run(run_id) }, Status::Completed, 1_000);
    }
    let of = |loops: PrunedLoops| PruneQuery { loops, ..old(&[Status::Completed], 9) };
    let but = |names: &[&str]| PrunedLoops::AllBut(names.iter().map(|name| (*name).to_owned()).collect());
    let counted = PruneQuery { dry_run: true, ..of(but(&["a", "z"])) };
    assert_eq!(wait(journal.prune(counted)).unwrap(), 2);
    assert_eq!(wait(journal.prune(of(PrunedLoops::Only("a".to_owned())))).unwrap(), 2);
    assert_eq!(left(journal), ["b1", "c1"]);
    assert_eq!(wait(journal.prune(of(but(&["c", "a"])))).unwrap(), 1);
    assert_eq!(left(journal), ["c1"]);
    // A store that gives nothing back says so, and one that does comes to an end.
    while wait(journal.give_back_space()).unwrap() > 0 {}
}

pub(super) fn named_runs_and_the_memory_of_a_session_are_deleted(journal: &dyn Journal) {
    for run_id in ["a", "b", "c"] {
        ended(journal, new_run(run_id), Status::Completed, 9_000);
    }
    ended(journal, NewRun { parent_run_id: Some("b".to_owned()), ..new_run("b.1.0") }, Status::Completed, 9_000);
    ended(journal, new_run("waits"), Status::Paused, 9_000);
    let named = |ids: &[&str]| PruneQuery::of_runs(ids.iter().map(|id| (*id).to_owned()).collect());
    let all = named(&["b", "waits", "c.1.0", "nobody"]);
    assert_eq!(wait(journal.prune(PruneQuery { dry_run: true, ..all.clone() })).unwrap(), 1);
    assert_eq!(wait(journal.prune(all)).unwrap(), 1);
    assert_eq!(left(journal), ["a", "c", "waits"]);
    assert_eq!(wait(journal.prune(named(&[]))).unwrap(), 0);
    begin(journal, "r");
    let remember = vec![("k".to_owned(), json!(1)), ("n".to_owned(), json!(2))];
    wait(journal.append(Append { remember, ..event("r", 1, 1) })).unwrap();
    assert_eq!(wait(journal.forget("nobody")).unwrap(), 0);
    assert_eq!(wait(journal.recall("ada")).unwrap().len(), 2);
    assert_eq!(wait(journal.forget("ada")).unwrap(), 2);
    assert!(wait(journal.recall("ada")).unwrap().is_empty());
}

pub(super) fn a_key_is_free_again_when_its_run_is_pruned(journal: &dyn Journal) {
    let with = |id: &str| NewRun { start_key: Some("k".to_owned()), ..new_run(id) };
    ended(journal, with("old"), Status::Completed, 1_000);
    assert_eq!(wait(journal.create(with("new"))).unwrap(), Created::KeyTaken("old".to_owned()));
    assert_eq!(wait(journal.prune(old(&[Status::Completed], 9))).unwrap(), 1);
    assert_eq!(wait(journal.find_by_key("k")).unwrap(), None);
    assert!(matches!(wait(journal.create(with("new"))).unwrap(), Created::New(_)));
    assert_eq!(wait(journal.find_by_key("k")).unwrap().unwrap().run_id, "new");
}

pub(super) fn a_worker_lists_itself_with_what_it_has(journal: &dyn Journal) {
    wait(journal.introduce("f00d", Some("127.0.0.1:3009"))).unwrap();
    begin(journal, "a");
    begin(journal, "b");
    wait(journal.release("b", 1)).unwrap();
    let workers = wait(journal.workers()).unwrap();
    let [worker] = workers.as_slice() else { panic!("{workers:?}") };
    assert!(worker.is_self && worker.is_alive);
    assert_eq!(worker.process, Some(std::process::id()));
    assert_eq!(worker.address.as_deref(), Some("127.0.0.1:3009"));
    assert_eq!((worker.folder.as_deref(), worker.version.as_deref()), (Some("f00d"), Some(env!("CARGO_PKG_VERSION"))));
    assert_eq!((worker.driven, worker.runs.as_slice()), (1, ["a".to_owned()].as_slice()));
    wait(journal.introduce("beef", None)).unwrap();
    let again = wait(journal.workers()).unwrap();
    assert_eq!((again[0].folder.as_deref(), again[0].address.as_deref()), (Some("beef"), None));
    // Its own runs are not left to others, whatever it served when they started.
    let claimed = wait(journal.queue(QueueQuery::default())).unwrap();
    assert_eq!(claimed.iter().map(|of| of.runs).sum::<u64>(), 1, "no living worker serves the folder of `b`");
}

pub(super) fn what_a_copy_needs_is_read_as_it_was_written(journal: &dyn Journal) {
    let new = NewRun {
        token: Some("ci".to_owned()),
        start_key: Some("k".to_owned()),
        search_text: Some("refund".to_owned()),
        title: Some("Refund".to_owned()),
        ..new_run("r")
    };
    wait(journal.create(new)).unwrap();
    let token =
        AnswerToken { hash: "h".to_owned(), pause: 1, call: Some("1.0".to_owned()), expires_at_ms: 9_000, used: false };
    wait(journal.put_answer_tokens("r", vec![token.clone()])).unwrap();
    let record = StatusRecord {
        status: Status::Paused,
        termination: Some(Termination::Human),
        iterations: 1,
        at_ms: 2_000,
        due_at_ms: Some(7_000),
        awaits: Some("[]".to_owned()),
        ..StatusRecord::new(Status::Running, 0)
    };
    wait(journal.append(Append { status_record: Some(record), ..event("r", 1, 1) })).unwrap();
    let expected = RunExtras {
        token: Some("ci".to_owned()),
        due_at_ms: Some(7_000),
        waits_since_ms: None,
        answer_tokens: vec![token],
        start_key: Some("k".to_owned()),
        scheduled: None,
        search_text: Some("refund".to_owned()),
        title: Some("Refund".to_owned()),
        awaits: Some("[]".to_owned()),
        line: None,
    };
    assert_eq!(wait(journal.extras("r")).unwrap(), expected);
    assert_eq!(wait(journal.extras("none")).unwrap_err(), StoreError::NoSuchRun("none".to_owned()));
}

pub(super) fn imported_runs_are_pruned_as_cancelled_ones_also_when_they_had_not_ended(journal: &dyn Journal) {
    let called = NewRun { parent_run_id: Some("above".to_owned()), ..new_run("above.1.0") };
    for new in [new_run("above"), called, new_run("waits")] {
        ended(journal, new.to_imported(), Status::Paused, 1_000);
    }
    // It was under way: here it is one that a signal stopped.
    let runs = new_run("runs").to_imported();
    wait(journal.create(NewRun {
        at_ms: 1_000,
        status_record: Some(StatusRecord::new(Status::Cancelled, 1_000)),
        ..runs
    }))
    .unwrap();
    wait(journal.release("runs", 1)).unwrap();
    ended(journal, new_run("own"), Status::Paused, 1_000);
    ended(journal, new_run("late").to_imported(), Status::Paused, 9_000);
    assert_eq!(wait(journal.prune(old(&[Status::Completed, Status::Failed], 9))).unwrap(), 0);
    let which = old(&[Status::Cancelled], 9);
    assert_eq!(wait(journal.prune(PruneQuery { dry_run: true, ..which.clone() })).unwrap(), 3);
    assert_eq!(wait(journal.prune(PruneQuery { most: 1, ..which.clone() })).unwrap(), 1);
    assert_eq!(wait(journal.prune(which)).unwrap(), 2);
    assert_eq!(left(journal), ["own", "late"]);
}
