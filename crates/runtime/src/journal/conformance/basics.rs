//! Runs, leases and events.

use serde_json::json;

use super::*;

pub(super) fn long_texts_come_back_to_each_run_that_named_them(journal: &dyn Journal) {
    let said = |id: &str| {
        let mut texts: Vec<_> = wait(journal.texts(id)).unwrap().iter().map(|text| text.shared().to_string()).collect();
        texts.sort();
        texts
    };
    for id in ["one", "two"] {
        let texts = vec!["prompt".into(), "document\u{0}".into(), id.into()];
        wait(journal.create(NewRun { texts, ..new_run(id) })).unwrap();
    }
    begin(journal, "three");
    wait(journal.append(Append { texts: vec!["another document".into()], ..event("two", 1, 1) })).unwrap();
    wait(journal.append(Append { texts: vec!["lost".into()], ..event("two", 1, 7) })).unwrap_err();
    assert_eq!(said("one"), ["document\u{0}", "one", "prompt"]);
    assert_eq!(said("two"), ["another document", "document\u{0}", "prompt", "two"]);
    assert!(said("three").is_empty());
    assert_eq!(wait(journal.texts("none")).unwrap_err(), StoreError::NoSuchRun("none".to_owned()));
}

pub(super) fn only_the_next_event_is_taken_and_a_refused_one_leaves_nothing(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    for wrong in [0, 2, 7, u64::MAX] {
        let fault = wait(journal.append(event("r", fence, wrong))).unwrap_err();
        assert!(fault.to_string().contains("its next event is number 1"), "{fault}");
    }
    wait(journal.append(event("r", fence, 1))).unwrap();
    assert!(wait(journal.append(event("r", fence, 1))).is_err());
    assert_eq!(wait(journal.read("r")).unwrap().len(), 2);
}

pub(super) fn the_same_id_is_the_same_run_or_a_conflict(journal: &dyn Journal) {
    begin(journal, "r");
    assert_eq!(wait(journal.create(new_run("r"))).unwrap(), Created::Same);
    let other = NewRun { identity: "other".to_owned(), ..new_run("r") };
    assert_eq!(wait(journal.create(other)).unwrap(), Created::Conflict);
    assert_eq!(wait(journal.read("r")).unwrap(), ["first"]);
}

pub(super) fn of_a_hundred_who_make_one_run_at_once_one_makes_it(journal: &dyn Journal) {
    let tickets: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(|| wait(journal.create(new_run("r"))))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    assert_eq!(tickets.iter().filter(|made| matches!(made, Created::New(_))).count(), 1);
    assert_eq!(tickets.iter().filter(|made| **made == Created::Same).count(), 99);
}

pub(super) fn of_many_who_begin_with_one_key_at_once_one_begins(journal: &dyn Journal) {
    // Other ids, and other requests: as of other loops.
    let with = |key: &str, number: usize| NewRun {
        start_key: Some(key.to_owned()),
        identity: format!("request {number}"),
        ..new_run(&format!("{key}-{number}"))
    };
    for key in ["k1", "k2"] {
        let made: Vec<(usize, Created)> = std::thread::scope(|scope| {
            let make = |number| move || (number, wait(journal.create(with(key, number))).unwrap());
            let threads: Vec<_> = (0..50).map(|number| scope.spawn(make(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (new, taken): (Vec<_>, Vec<_>) = made.into_iter().partition(|(_, made)| matches!(made, Created::New(_)));
        let [(number, _)] = new.as_slice() else { panic!("one begins: {new:?}") };
        let (first, id) = (*number, format!("{key}-{number}"));
        assert!(taken.iter().all(|(_, made)| *made == Created::KeyTaken(id.clone())), "{taken:?}");
        assert_eq!(wait(journal.find_by_key(key)).unwrap(), wait(journal.find(&id)).unwrap());
        // Its own id says more than its key.
        assert_eq!(wait(journal.create(with(key, first))).unwrap(), Created::Same);
        let other = NewRun { identity: "other".to_owned(), ..with(key, first) };
        assert_eq!(wait(journal.create(other)).unwrap(), Created::Conflict);
    }
    let listed = wait(journal.list(RunFilter::default())).unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(wait(journal.find_by_key("k3")).unwrap(), None);
    // Without a key nothing is taken.
    begin(journal, "plain");
    begin(journal, "other");
}

pub(super) fn events_of_one_decision_are_written_together_and_the_last_one_may_be_refused(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let end = Append { release: true, ..event("r", fence, 3) };
    wait(journal.append_all(vec![event("r", fence, 1), event("r", fence, 2), end])).unwrap();
    assert_eq!(wait(journal.read("r")).unwrap().len(), 4);
    let fence = wait(journal.lease("r")).unwrap().fence;
    let token = Append { answer_token: Some("unknown".to_owned()), ..event("r", fence, 5) };
    wait(journal.append_all(vec![event("r", fence, 4), token])).unwrap_err();
    assert_eq!(wait(journal.read("r")).unwrap().len(), 5);
    wait(journal.append_all(vec![event("r", fence + 1, 5), event("r", fence + 1, 6)])).unwrap_err();
    assert_eq!(wait(journal.read("r")).unwrap().len(), 5);
    wait(journal.append_all(Vec::new())).unwrap();
}

pub(super) fn a_run_has_one_driver_and_each_lease_a_higher_number(journal: &dyn Journal) {
    let first = begin(journal, "r");
    assert_eq!(wait(journal.lease("r")).unwrap_err(), StoreError::Driven("r".to_owned()));
    wait(journal.append(event("r", first, 1))).unwrap();
    wait(journal.release("r", first)).unwrap();
    let second = wait(journal.lease("r")).unwrap();
    assert_eq!(second, Lease { fence: first + 1, events: 2, failed_take_ups: 0 });
    wait(journal.confirm("r", second.fence)).unwrap();
    wait(journal.append(event("r", second.fence, 2))).unwrap();
}

pub(super) fn an_old_lease_writes_nothing_confirms_nothing_and_gives_nothing_back(journal: &dyn Journal) {
    let old = begin(journal, "r");
    wait(journal.release("r", old)).unwrap();
    let fenced = StoreError::Fenced("r".to_owned());
    assert_eq!(wait(journal.append(event("r", old, 1))).unwrap_err(), fenced, "given back");
    let new = wait(journal.lease("r")).unwrap().fence;
    assert_eq!(wait(journal.append(event("r", old, 1))).unwrap_err(), fenced, "overtaken");
    assert_eq!(wait(journal.confirm("r", old)).unwrap_err(), fenced);
    wait(journal.release("r", old)).unwrap();
    wait(journal.confirm("r", new)).unwrap();
    assert_eq!(wait(journal.read("r")).unwrap(), ["first"]);
    wait(journal.append(event("r", new, 1))).unwrap();
}

pub(super) fn what_is_not_there_is_said_to_be_not_there(journal: &dyn Journal) {
    let missing = StoreError::NoSuchRun("r".to_owned());
    assert_eq!(wait(journal.read("r")).unwrap_err(), missing);
    assert_eq!(wait(journal.lease("r")).unwrap_err(), missing);
    assert_eq!(wait(journal.append(event("r", 1, 0))).unwrap_err(), missing);
    assert_eq!(wait(journal.request_cancel("r", CancelRequest::default())).unwrap_err(), missing);
    assert_eq!(wait(journal.cancel_requested("r")).unwrap_err(), missing);
    assert_eq!(wait(journal.confirm("r", 1)).unwrap_err(), StoreError::Fenced("r".to_owned()));
    assert_eq!(wait(journal.find("r")).unwrap(), None);
    assert_eq!(wait(journal.list(RunFilter::default())).unwrap(), []);
    // No store holds such an id, and some databases refuse it as a text.
    let no_id = "a\0b";
    assert_eq!(wait(journal.find(no_id)).unwrap(), None);
    assert_eq!(wait(journal.find_of(Some(no_id), no_id)).unwrap(), None);
    assert_eq!(wait(journal.read(no_id)).unwrap_err(), StoreError::NoSuchRun(no_id.to_owned()));
    assert_eq!(wait(journal.cancel_requested(no_id)).unwrap_err(), StoreError::NoSuchRun(no_id.to_owned()));
    assert_eq!(wait(journal.answer_token(no_id, "hash")).unwrap(), None);
    assert!(wait(journal.recall("nobody")).unwrap().is_empty());
    wait(journal.release("r", 1)).unwrap();
}

pub(super) fn a_list_shows_the_newest_first_with_their_standing(journal: &dyn Journal) {
    // The clock goes back meanwhile: the order is that of the creation.
    for (id, at_ms) in [("a", 3_000), ("b", 2_000), ("c", 1_000)] {
        wait(journal.create(NewRun { at_ms, ..new_run(id) })).unwrap();
    }
    let status_record = StatusRecord {
        status: Status::Paused,
        termination: Some(Termination::Human),
        iterations: 4,
        at_ms: 9_000,
        ..StatusRecord::new(Status::Running, 0)
    };
    wait(journal.append(Append { status_record: Some(status_record), ..event("b", 1, 1) })).unwrap();
    wait(journal.release("b", 1)).unwrap();
    let ids = |filter| wait(journal.list(filter)).unwrap().into_iter().map(|run| run.run_id).collect::<Vec<_>>();
    assert_eq!(ids(RunFilter::default()), ["c", "b", "a"]);
    assert_eq!(ids(RunFilter { limit: 2, ..RunFilter::default() }), ["c", "b"]);
    assert_eq!(ids(RunFilter { statuses: vec![ListedStatus::Running], ..RunFilter::default() }), ["c", "a"]);
    assert_eq!(ids(RunFilter { statuses: vec![ListedStatus::Running], limit: 1, ..RunFilter::default() }), ["c"]);
    let paused =
        wait(journal.list(RunFilter { statuses: vec![ListedStatus::Paused], ..RunFilter::default() })).unwrap();
    let expected = RunSummary {
        waits_since_ms: None,
        run_id: "b".to_owned(),
        loop_name: "triage".to_owned(),
        session: Some("ada".to_owned()),
        title: None,
        status: Status::Paused,
        termination: Some(Termination::Human),
        iterations: 4,
        started_at_ms: 2_000,
        updated_at_ms: 9_000,
        tokens: None,
        cost_usd: None,
        error: None,
        model_wait: None,
        unsent: Vec::new(),
        question: None,
        due_at_ms: None,
        schedule: None,
        scheduled_for_ms: None,
        behind: None,
        is_complete: false,
        driven: false,
        damaged: None,
        parent_run_id: None,
        identity: "document+input".to_owned(),
        org: None,
        token: None,
        callback: None,
    };
    assert_eq!(paused, std::slice::from_ref(&expected));
    assert_eq!(wait(journal.find("b")).unwrap(), Some(expected));
    assert!(wait(journal.find("a")).unwrap().unwrap().driven);
}

pub(super) fn a_session_remembers_what_came_with_an_event_and_the_last_word_counts(journal: &dyn Journal) {
    begin(journal, "r");
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
}

pub(super) fn a_run_without_a_session_leaves_no_memory(journal: &dyn Journal) {
    wait(journal.create(NewRun { session: None, ..new_run("r") })).unwrap();
    wait(journal.append(Append { remember: vec![("k".to_owned(), json!(1))], ..event("r", 1, 1) })).unwrap();
    assert!(wait(journal.recall("ada")).unwrap().is_empty());
    assert!(wait(journal.recall("")).unwrap().is_empty());
}

pub(super) fn an_end_is_asked_for_once_and_the_first_reason_stays(journal: &dyn Journal) {
    begin(journal, "r");
    assert_eq!(wait(journal.cancel_requested("r")).unwrap(), None);
    let asked = |reason: &str, by: &str| CancelRequest { reason: Some(reason.to_owned()), by: Some(by.to_owned()) };
    wait(journal.request_cancel("r", asked("enough", "ada"))).unwrap();
    wait(journal.request_cancel("r", asked("later", "eve"))).unwrap();
    assert_eq!(wait(journal.cancel_requested("r")).unwrap(), Some(asked("enough", "ada")));
    begin(journal, "plain");
    wait(journal.request_cancel("plain", CancelRequest::default())).unwrap();
    wait(journal.request_cancel("plain", asked("later", "eve"))).unwrap();
    assert_eq!(wait(journal.cancel_requested("plain")).unwrap(), Some(CancelRequest::default()));
}

pub(super) fn many_runs_that_append_at_once_lose_nothing(journal: &dyn Journal) {
    let (runs, events) = (16_u64, 25_u64);
    std::thread::scope(|scope| {
        for run in 0..runs {
            let journal = &journal;
            scope.spawn(move || {
                let id = format!("r{run}");
                let fence = begin(*journal, &id);
                for seq in 1..events {
                    wait(journal.append(event(&id, fence, seq))).unwrap();
                }
            });
        }
    });
    for run in 0..runs {
        let id = format!("r{run}");
        let expected: Vec<_> =
            std::iter::once("first".to_owned()).chain((1..events).map(|seq| format!("event {seq} of {id}"))).collect();
        assert_eq!(wait(journal.read(&id)).unwrap(), expected);
    }
}
