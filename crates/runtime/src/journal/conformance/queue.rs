//! The queue, the heads of runs, and callbacks that are claimed.

use super::*;
use crate::journal::{CALLBACK_LEASE, CallbackProgress, CallbackState};

fn waiting() -> QueueQuery {
    QueueQuery { now_ms: 5_000, except: Vec::new() }
}

fn share(org: Option<&str>, token: Option<&str>, runs: usize) -> QueueShare {
    QueueShare { org: org.map(str::to_owned), token: token.map(str::to_owned), runs }
}

/// The queue as text: the owners and how many of their runs wait.
fn queue(journal: &dyn Journal, waiting: &QueueQuery) -> String {
    let queue = wait(journal.queue(waiting.clone())).unwrap();
    let line = |of: QueuedRuns| format!("{}/{}:{}", of.org.unwrap_or_default(), of.token.unwrap_or_default(), of.runs);
    queue.into_iter().map(line).collect::<Vec<_>>().join(" ")
}

fn claim(journal: &dyn Journal, waiting: &QueueQuery, share: QueueShare) -> Vec<ClaimedRun> {
    wait(journal.claim(waiting.clone(), vec![share])).unwrap()
}

fn ids(claimed: &[ClaimedRun]) -> Vec<&str> {
    claimed.iter().map(|run| run.run_id.as_str()).collect()
}

/// A run of this owner that nobody drives.
fn left(journal: &dyn Journal, id: &str, org: Option<&str>, token: Option<&str>) {
    let new = NewRun { org: org.map(str::to_owned), token: token.map(str::to_owned), ..new_run(id) };
    let Created::New(lease) = wait(journal.create(new)).unwrap() else { panic!("it is new") };
    wait(journal.release(id, lease.fence)).unwrap();
}

fn record(status: Status, termination: Option<Termination>, due_at_ms: Option<i64>) -> Option<StatusRecord> {
    Some(StatusRecord { termination, iterations: 1, due_at_ms, ..StatusRecord::new(status, 1) })
}

pub(super) fn runs_that_nobody_drives_are_claimed_by_their_owners_the_oldest_first(journal: &dyn Journal) {
    begin(journal, "driven");
    for (id, org, token) in [
        ("b1", Some("b"), Some("t")),
        ("a1", Some("a"), Some("t")),
        ("b2", Some("b"), Some("t")),
        ("b3", Some("b"), None),
        ("n1", None, None),
        ("b4", Some("b"), Some("t")),
    ] {
        left(journal, id, org, token);
    }
    let called = NewRun { parent_run_id: Some("n1".to_owned()), ..new_run("n1.1.0") };
    wait(journal.create(called)).unwrap();
    wait(journal.release("n1.1.0", 1)).unwrap();
    assert_eq!(queue(journal, &waiting()), "b/t:3 a/t:1 b/:1 /:1");
    let except = QueueQuery { except: vec!["b1".to_owned(), "n1".to_owned()], ..waiting() };
    assert_eq!(queue(journal, &except), "a/t:1 b/t:2 b/:1");
    let claimed = claim(journal, &except, share(Some("b"), Some("t"), 1));
    assert_eq!(ids(&claimed), ["b2"]);
    let lease = claimed[0].lease.clone().unwrap();
    assert_eq!(lease, Lease { fence: 2, events: 1, failed_take_ups: 0 });
    assert_eq!((claimed[0].org.as_deref(), claimed[0].token.as_deref()), (Some("b"), Some("t")));
    assert_eq!(wait(journal.lease("b2")).unwrap_err(), StoreError::Driven("b2".to_owned()), "it is leased at once");
    wait(journal.append(event("b2", lease.fence, 1))).unwrap();
    assert_eq!(ids(&claim(journal, &waiting(), share(Some("b"), Some("t"), 9))), ["b1", "b4"]);
    assert_eq!(ids(&claim(journal, &waiting(), share(None, None, 9))), ["n1"], "none that another run called");
    assert!(claim(journal, &waiting(), share(None, None, 9)).is_empty());
    assert_eq!(queue(journal, &waiting()), "a/t:1 b/:1");
    wait(journal.release("b4", 2)).unwrap();
    assert_eq!(queue(journal, &waiting()), "a/t:1 b/:1 b/t:1");
}

pub(super) fn of_many_who_claim_at_once_each_run_has_one_driver(journal: &dyn Journal) {
    let runs = 40;
    for run in 0..runs {
        left(journal, &format!("r{run}"), None, None);
    }
    let claimed: Vec<String> = std::thread::scope(|scope| {
        let claims = || {
            let mut mine = Vec::new();
            loop {
                let claimed = claim(journal, &waiting(), share(None, None, 3));
                if claimed.is_empty() {
                    return mine;
                }
                assert!(claimed.iter().all(|run| run.lease.is_ok()));
                mine.extend(claimed.into_iter().map(|run| run.run_id));
            }
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(claims)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut once = claimed.clone();
    once.sort();
    once.dedup();
    assert_eq!((claimed.len(), once.len()), (runs, runs));
}

pub(super) fn a_waiting_run_is_claimed_when_something_is_due_and_one_that_waits_for_its_model_when_it_is_to_ask_again(
    journal: &dyn Journal,
) {
    let cases = [
        ("due", Termination::Approval, Some(5_000)),
        ("later", Termination::Approval, Some(5_001)),
        ("human", Termination::Human, None),
        ("model", Termination::ModelError, None),
        ("room", Termination::SpendingLimit, Some(9_000)),
        // Both at once: a human is asked, and a model is away.
        ("both", Termination::Approval, None),
        ("early", Termination::Approval, Some(4_500)),
        ("timed", Termination::Waiting, None),
    ];
    for (id, termination, due_at_ms) in cases {
        let fence = begin(journal, id);
        let mut status_record = record(Status::Paused, Some(termination), due_at_ms);
        if let (Some(record), "both" | "early" | "timed") = (&mut status_record, id) {
            record.error = RowText::new("the model can't be reached");
        }
        wait(journal.append(Append { status_record, ..event(id, fence, 1) })).unwrap();
        wait(journal.release(id, fence)).unwrap();
    }
    let all = || share(None, None, 9);
    let early = QueueQuery { now_ms: 4_400, ..waiting() };
    wait(journal.retry_at("early", 9_000)).unwrap();
    assert_eq!(ids(&claim(journal, &early, all())), [] as [&str; 0], "nothing is due");
    let mut claimed = claim(journal, &waiting(), all());
    claimed.sort_by(|one, other| one.run_id.cmp(&other.run_id));
    assert_eq!(ids(&claimed), ["due", "early"], "the earlier time stays");
    for id in ["model", "room", "human", "later", "both", "timed"] {
        wait(journal.retry_at(id, 4_000)).unwrap();
    }
    let mut claimed = claim(journal, &waiting(), all());
    claimed.sort_by(|one, other| one.run_id.cmp(&other.run_id));
    assert_eq!(ids(&claimed), ["both", "model", "room"], "the time of the others is not changed");
    let later = QueueQuery { now_ms: 5_001, ..waiting() };
    assert_eq!(ids(&claim(journal, &later, all())), ["later"]);
}

pub(super) fn read_only_copies_are_never_claimed_and_are_other_runs_than_those_of_their_id(journal: &dyn Journal) {
    let standings = [
        ("running", Status::Running, None),
        ("model", Status::Paused, Some(Termination::ModelError)),
        ("room", Status::Paused, Some(Termination::SpendingLimit)),
        ("human", Status::Paused, Some(Termination::Human)),
        ("quarantined", Status::Quarantined, None),
    ];
    // The same run as an ordinary one, as a copy, and as a copy before its second event.
    for (id, status, termination) in standings {
        for (kind, is_read_only_copy) in [("driven", false), ("shown", true), ("new", true)] {
            let id = format!("{kind}-{id}");
            let new = NewRun { status_record: record(status, termination, Some(1)), ..new_run(&id) };
            let new = if is_read_only_copy { new.to_read_only_copy() } else { new };
            let Created::New(lease) = wait(journal.create(new)).unwrap() else { panic!("it is new") };
            if kind != "new" {
                let record = record(status, termination, Some(1));
                let status_record =
                    if is_read_only_copy { record.map(StatusRecord::to_read_only_copy) } else { record };
                wait(journal.append(Append { status_record, ..event(&id, lease.fence, 1) })).unwrap();
            }
            wait(journal.release(&id, lease.fence)).unwrap();
            wait(journal.retry_at(&id, 1)).unwrap();
            assert_eq!(wait(journal.find(&id)).unwrap().unwrap().is_read_only_copy(), is_read_only_copy);
        }
    }
    let mut claimed = claim(journal, &waiting(), share(None, None, 99));
    claimed.sort_by(|one, other| one.run_id.cmp(&other.run_id));
    assert_eq!(ids(&claimed), ["driven-human", "driven-model", "driven-room", "driven-running"]);
    assert_eq!(wait(journal.create(new_run("shown-running"))).unwrap(), Created::Conflict);
    assert_eq!(wait(journal.create(new_run("shown-running").to_read_only_copy())).unwrap(), Created::Same);
}

pub(super) fn the_lease_is_released_with_the_last_event_or_not_at_all(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let last = |seq| Append {
        release: true,
        status_record: record(Status::Completed, Some(Termination::Complete), None),
        ..event("r", fence, seq)
    };
    assert!(wait(journal.append(last(7))).is_err());
    wait(journal.confirm("r", fence)).unwrap();
    wait(journal.append(last(1))).unwrap();
    assert_eq!(wait(journal.confirm("r", fence)).unwrap_err(), StoreError::Fenced("r".to_owned()));
    assert_eq!(wait(journal.append(event("r", fence, 2))).unwrap_err(), StoreError::Fenced("r".to_owned()));
    let run = wait(journal.find("r")).unwrap().unwrap();
    assert_eq!((run.driven, run.status), (false, Status::Completed));
    assert_eq!(wait(journal.lease("r")).unwrap().events, 2);
}

pub(super) fn heads_show_how_far_runs_are(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    begin(journal, "other");
    wait(journal.append(event("r", fence, 1))).unwrap();
    let head = |ids: &[&str]| {
        let mut heads = wait(journal.heads(ids.iter().map(|id| (*id).to_owned()).collect())).unwrap();
        heads.sort_by(|one, other| one.run_id.cmp(&other.run_id));
        heads
    };
    let of = |id: &str, events, status, driven| RunHead { run_id: id.to_owned(), events, status, driven };
    assert_eq!(
        head(&["r", "nobody", "other"]),
        [of("other", 1, Status::Running, true), of("r", 2, Status::Running, true)]
    );
    let status_record = record(Status::Paused, Some(Termination::Human), None);
    wait(journal.append(Append { status_record, ..event("r", fence, 2) })).unwrap();
    wait(journal.release("r", fence)).unwrap();
    assert_eq!(head(&["r"]), [of("r", 3, Status::Paused, false)]);
    assert!(head(&[]).is_empty());
}

pub(super) fn a_callback_is_its_driver_s_first_and_is_put_off_as_long_as_it_says(journal: &dyn Journal) {
    let claimed = || wait(journal.claim_callbacks(9)).unwrap();
    let url = Some("https://e.example/".to_owned());
    for id in ["r", "running", "model", "without"] {
        let callback_url = url.clone().filter(|_| id != "without");
        let Created::New(lease) = wait(journal.create(NewRun { callback_url, ..new_run(id) })).unwrap() else {
            panic!("it is new")
        };
        let status_record = match id {
            "running" => None,
            "model" => record(Status::Paused, Some(Termination::ModelError), None),
            _ => record(Status::Completed, Some(Termination::Complete), None),
        };
        wait(journal.append(Append { status_record, ..event(id, lease.fence, 1) })).unwrap();
    }
    assert!(claimed().is_empty(), "the driver that ended it posts it");
    let note = |state, again_in| {
        wait(journal.note_callback("r", CallbackProgress { state, tries: 1 }, again_in, None)).unwrap();
    };
    note(CallbackState::Pending, Some(CALLBACK_LEASE));
    assert!(claimed().is_empty(), "it is tried again here");
    note(CallbackState::Delivered, None);
    note(CallbackState::Pending, Some(CALLBACK_LEASE));
    let callback = || wait(journal.find("r")).unwrap().unwrap().callback.unwrap();
    assert_eq!(callback().progress.state, CallbackState::Delivered, "what was taken is not pending again");
}
