//! The owner of a run, which runs a list shows, and the progress of a callback.

use super::*;
use crate::journal::{Callback, CallbackProgress, CallbackState, RunCounts, WaitingRuns};

pub(super) fn a_list_holds_what_it_is_asked_for(journal: &dyn Journal) {
    let hook = || Some("https://e.example/".to_owned());
    let org = |org: &str| Some(org.to_owned());
    for (at_ms, new) in [
        (1_000, NewRun { org: org("acme"), ..new_run("a") }),
        (2_000, NewRun { org: org("acme"), callback_url: hook(), ..new_run("b") }),
        (3_000, NewRun { loop_name: "other".to_owned(), session: None, ..new_run("c") }),
        (4_000, NewRun { org: org("acm"), session: Some("eve".to_owned()), ..new_run("d") }),
        (5_000, NewRun { org: org("acme"), ..new_run("e") }),
        (6_000, NewRun { org: org("acme"), parent_run_id: Some("e".to_owned()), ..new_run("f") }),
    ] {
        wait(journal.create(NewRun { at_ms, ..new })).unwrap();
    }
    let all = RunFilter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (all(), "edcba"),
        (RunFilter { org: text("acme"), ..all() }, "eba"),
        (RunFilter { org: text("acme"), called: true, ..all() }, "feba"),
        (RunFilter { called: true, limit: 2, ..all() }, "fe"),
        (RunFilter { oldest_first: true, limit: 3, ..all() }, "abc"),
        (RunFilter { oldest_first: true, after: text("b"), ..all() }, "cde"),
        (RunFilter { after: text("f"), limit: 2, ..all() }, "ed"),
        (RunFilter { org: text(""), ..all() }, "c"),
        (RunFilter { org: text("none"), ..all() }, ""),
        (RunFilter { loop_name: text("other"), ..all() }, "c"),
        (RunFilter { session: text("ada"), ..all() }, "eba"),
        (RunFilter { since_ms: Some(2_000), until_ms: Some(4_000), ..all() }, "cb"),
        (RunFilter { after: text("d"), limit: 2, ..all() }, "cb"),
        (RunFilter { org: text("acme"), after: text("e"), ..all() }, "ba"),
        (RunFilter { after: text("a"), ..all() }, ""),
        (RunFilter { after: text("nobody"), ..all() }, ""),
        (RunFilter { statuses: vec![ListedStatus::Paused], ..all() }, ""),
        (RunFilter { callback_pending: true, ..all() }, "b"),
        (RunFilter { limit: usize::MAX, ..all() }, "edcba"),
        // No store holds such a text.
        (RunFilter { loop_name: text("a\0"), ..all() }, ""),
        (RunFilter { org: text("\0"), after: text("e\0"), ..all() }, ""),
    ] {
        let found: String = wait(journal.list(filter.clone())).unwrap().into_iter().map(|run| run.run_id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
    assert_eq!(wait(journal.find("a")).unwrap().unwrap().org, org("acme"));
}

pub(super) fn what_waits_for_a_human_is_listed_also_while_its_run_is_under_way(journal: &dyn Journal) {
    let record = |status, termination, waits_since_ms| StatusRecord {
        termination,
        waits_since_ms,
        ..StatusRecord::new(status, 9)
    };
    let (running, paused) = (|since| record(Status::Running, None, since), Some(Termination::Human));
    let asks = |since| record(Status::Paused, paused, since);
    let below = |id: &str, of: &str| NewRun { parent_run_id: Some(of.to_owned()), ..new_run(id) };
    for (run, status_record) in [
        (new_run("works"), running(None)),
        (new_run("asks"), asks(None)),
        (new_run("beside"), running(Some(5))),
        (new_run("above"), running(None)),
        (below("above.1.0", "above"), running(None)),
        (below("above.1.0.2.0", "above.1.0"), running(Some(7))),
        (new_run("over"), running(None)),
        (below("over.1.0", "over"), asks(None)),
        (new_run("outage"), running(None)),
        (below("outage.1.0", "outage"), record(Status::Paused, Some(Termination::ModelError), None)),
        (new_run("sleeps"), running(None)),
        (below("sleeps.1.0", "sleeps"), record(Status::Paused, Some(Termination::Waiting), None)),
        (new_run("over1"), running(None)),
        (new_run("ended"), record(Status::Completed, Some(Termination::Complete), None)),
        // An older version ended it, and did not know the column.
        (new_run("stale"), record(Status::Completed, Some(Termination::Complete), Some(4))),
    ] {
        let id = run.run_id.clone();
        wait(journal.create(run)).unwrap();
        wait(journal.append(Append { status_record: Some(status_record), ..event(&id, 1, 1) })).unwrap();
    }
    let listed = |filter: RunFilter| -> Vec<(String, Option<i64>)> {
        let runs = wait(journal.list(filter)).unwrap();
        runs.into_iter().map(|run| (run.run_id, run.waits_since_ms)).collect()
    };
    let waiting = || RunFilter { waiting: true, ..RunFilter::default() };
    let expected = [("over", Some(9)), ("above", Some(7)), ("beside", Some(5)), ("asks", None)];
    let expected = expected.map(|(id, since)| (id.to_owned(), since));
    assert_eq!(listed(waiting()), expected);
    assert_eq!(listed(RunFilter { limit: 1, after: Some("above".to_owned()), ..waiting() }), expected[2..3]);
    let all = listed(RunFilter::default());
    assert!(all.contains(&("works".to_owned(), None)) && all.contains(&("stale".to_owned(), None)), "{all:?}");
    assert_eq!(all.len(), 10, "{all:?}");
    assert_eq!(listed(RunFilter { statuses: vec![ListedStatus::Paused], ..RunFilter::default() }), expected[3..]);
    assert_eq!(wait(journal.extras("beside")).unwrap().waits_since_ms, Some(5));
    // A decision ends the wait, and the run is under way as before.
    wait(journal.append(Append { status_record: Some(running(None)), ..event("beside", 1, 2) })).unwrap();
    assert!(!listed(waiting()).contains(&expected[2]));
    // One that begins with a question.
    let status_record = Some(running(Some(3)));
    wait(journal.create(NewRun { status_record, ..new_run("first") })).unwrap();
    assert_eq!(listed(RunFilter { limit: 1, ..waiting() }), [("first".to_owned(), Some(3))]);
    assert!(wait(journal.find("first")).unwrap().unwrap().waits_for_human());
    // What continues by itself waits, and for no human.
    use Termination::{ModelError, SpendingLimit, Stuck, Waiting, WaitingEvent};
    for (id, why) in
        [("away", ModelError), ("until", Waiting), ("event", WaitingEvent), ("full", SpendingLimit), ("stuck", Stuck)]
    {
        wait(journal.create(new_run(id))).unwrap();
        let status_record = Some(record(Status::Paused, Some(why), None));
        wait(journal.append(Append { status_record, ..event(id, 1, 1) })).unwrap();
    }
    let ids = |filter: RunFilter| listed(filter).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    let for_humans = || RunFilter { for_humans: true, ..RunFilter::default() };
    assert_eq!(ids(for_humans()), ["stuck", "first", "over", "above", "asks"]);
    assert_eq!(ids(RunFilter { limit: 2, after: Some("stuck".to_owned()), ..for_humans() }), ["first", "over"]);
    assert_eq!(ids(RunFilter { statuses: vec![ListedStatus::Paused], ..for_humans() }), ["stuck", "asks"]);
    assert_eq!(ids(waiting()), ["stuck", "full", "event", "until", "away", "first", "over", "above", "asks"]);
}

pub(super) fn several_statuses_at_once_are_listed_exactly_as_they_are_shown(journal: &dyn Journal) {
    let record = |status, termination| Some(StatusRecord { termination, ..StatusRecord::new(status, 9) });
    let below = |id: &str, of: &str| NewRun { parent_run_id: Some(of.to_owned()), ..new_run(id) };
    for (run, status_record, is_released) in [
        (new_run("driven"), record(Status::Running, None), false),
        (new_run("left"), record(Status::Running, None), true),
        (below("left.1.0", "left"), record(Status::Running, None), true),
        (new_run("asks"), record(Status::Paused, Some(Termination::Human)), true),
        (new_run("away"), record(Status::Paused, Some(Termination::ModelError)), true),
        (new_run("done"), record(Status::Completed, Some(Termination::Complete)), true),
        (new_run("failed"), record(Status::Failed, Some(Termination::Stuck)), true),
        (new_run("stopped"), record(Status::Cancelled, None), true),
        (new_run("cancelled"), record(Status::Cancelled, Some(Termination::Cancelled)), true),
    ] {
        let id = run.run_id.clone();
        wait(journal.create(run)).unwrap();
        wait(journal.append(Append { status_record, ..event(&id, 1, 1) })).unwrap();
        if is_released {
            wait(journal.release(&id, 1)).unwrap();
        }
    }
    use ListedStatus::{Cancelled, Completed, Failed, Paused, Quarantined, Queued, Running};
    let ids = |filter: RunFilter| -> Vec<String> {
        let runs = wait(journal.list(RunFilter { oldest_first: true, ..filter })).unwrap();
        runs.into_iter().map(|run| run.run_id).collect()
    };
    let exactly = |statuses: &[ListedStatus]| ids(RunFilter { statuses: statuses.to_vec(), ..RunFilter::default() });
    assert_eq!(exactly(&[Queued]), ["left"]);
    assert_eq!(exactly(&[Running]), ["driven"]);
    assert_eq!(exactly(&[Running, Queued]), ["driven", "left"]);
    assert_eq!(exactly(&[Queued, Failed]), ["left", "failed"]);
    assert_eq!(exactly(&[Running, Completed, Cancelled]), ["driven", "done", "stopped", "cancelled"]);
    let interrupted = || RunFilter { interrupted: true, ..RunFilter::default() };
    assert_eq!(ids(interrupted()), ["stopped"]);
    assert_eq!(ids(RunFilter { statuses: vec![Queued], ..interrupted() }), ["left", "stopped"]);
    assert_eq!(exactly(&[Paused]), ["asks", "away"]);
    assert_eq!(exactly(&[Quarantined]), [""; 0]);
    assert_eq!(exactly(&ListedStatus::ALL).len(), 8);
    let called = |statuses: &[ListedStatus]| {
        ids(RunFilter { statuses: statuses.to_vec(), called: true, limit: 2, ..RunFilter::default() })
    };
    assert_eq!(called(&[Running]), ["driven", "left.1.0"]);
    assert_eq!(called(&[Queued]), ["left"]);
    // As people ask: what is queued is under way, and what waits is paused.
    assert_eq!(ids(RunFilter::of_statuses(&[Running])), ["driven", "left"]);
    assert_eq!(ids(RunFilter::of_statuses(&[Paused, Failed])), ["asks", "away", "failed"]);
    let later = RunFilter { after: Some("asks".to_owned()), ..RunFilter::of_statuses(&[Paused, Failed]) };
    assert_eq!(ids(later), ["away", "failed"]);
    // The next driver has what was queued.
    wait(journal.lease("left")).unwrap();
    assert_eq!((exactly(&[Queued]).len(), exactly(&[Running])), (0, vec!["driven".to_owned(), "left".to_owned()]));
    for run in wait(journal.list(RunFilter { called: true, ..RunFilter::default() })).unwrap() {
        assert!(exactly(&[run.listed_status()]).contains(&run.run_id) || run.parent_run_id.is_some(), "{run:?}");
    }
}

pub(super) fn reports_count_the_rows_that_lists_show(journal: &dyn Journal) {
    let org = |org: &str| Some(org.to_owned());
    for (at_ms, new) in [
        (1_000, NewRun { org: org("acme"), ..new_run("a") }),
        (2_000, NewRun { loop_name: "other".to_owned(), ..new_run("b") }),
        (3_000, NewRun { parent_run_id: Some("a".to_owned()), ..new_run("a.1.0") }),
        (4_000, NewRun { org: org("acme"), ..new_run("d") }),
    ] {
        wait(journal.create(NewRun { at_ms, ..new })).unwrap();
    }
    let status_record = Some(StatusRecord {
        termination: Some(Termination::Complete),
        iterations: 3,
        tokens: Some(120),
        cost_usd: Some(0.25),
        ..StatusRecord::new(Status::Completed, 9_000)
    });
    wait(journal.append(Append { status_record, ..event("a", 1, 1) })).unwrap();
    for filter in [
        RunFilter::default(),
        RunFilter { called: true, ..RunFilter::default() },
        RunFilter { limit: 2, ..RunFilter::default() },
        RunFilter { org: org("acme"), ..RunFilter::of_statuses(&[ListedStatus::Completed]) },
        RunFilter { loop_name: Some("other".to_owned()), ..RunFilter::default() },
        RunFilter { since_ms: Some(2_000), until_ms: Some(4_000), oldest_first: true, ..RunFilter::default() },
    ] {
        let listed: Vec<MeasuredRun> =
            wait(journal.list(filter.clone())).unwrap().into_iter().map(Into::into).collect();
        assert!(!listed.is_empty(), "{filter:?}");
        assert_eq!(wait(journal.measured(filter)).unwrap(), listed);
    }
}

pub(super) fn a_run_is_found_by_its_organisation_and_its_id_together(journal: &dyn Journal) {
    wait(journal.create(NewRun { org: Some("acme".to_owned()), ..new_run("a") })).unwrap();
    begin(journal, "b");
    for (org, id, found) in [
        (Some("acme"), "a", true),
        (Some("other"), "a", false),
        (Some(""), "a", false),
        (None, "a", false),
        (None, "b", true),
        (Some("acme"), "b", false),
        (Some("acme"), "nobody", false),
        (None, "nobody", false),
    ] {
        let run = wait(journal.find_of(org, id)).unwrap();
        assert_eq!(run.is_some(), found, "{org:?} {id}");
        assert!(run.is_none() || run == wait(journal.find(id)).unwrap());
    }
}

pub(super) fn the_runs_that_a_run_called_are_counted_with_those_that_they_called(journal: &dyn Journal) {
    for (id, caller) in [
        ("r", None),
        ("r.1.0", Some("r")),
        ("r.1.0.2.0", Some("r.1.0")),
        ("r.1.1", Some("r")),
        ("r.own", None),
        ("r0", None),
        ("r0.1.0", Some("r0")),
        ("r-1", None),
    ] {
        let parent_run_id = caller.map(str::to_owned);
        wait(journal.create(NewRun { parent_run_id: parent_run_id.clone(), ..new_run(id) })).unwrap();
        assert_eq!(wait(journal.find(id)).unwrap().unwrap().parent_run_id, parent_run_id);
    }
    for (id, called) in [("r", 3), ("r.1.0", 1), ("r.1.1", 0), ("r0", 1), ("nobody", 0)] {
        assert_eq!(wait(journal.called_under(id)).unwrap(), called, "{id}");
    }
}

pub(super) fn a_callback_is_pending_until_it_is_noted_otherwise(journal: &dyn Journal) {
    let url = "https://e.example/".to_owned();
    wait(journal.create(NewRun { callback_url: Some(url.clone()), ..new_run("r") })).unwrap();
    begin(journal, "without");
    let callback = |run: &str| wait(journal.find(run)).unwrap().unwrap().callback;
    assert_eq!(
        callback("r"),
        Some(Callback { url: url.clone(), progress: CallbackProgress::default(), posted_pause: 0 })
    );
    for (state, tries) in [(CallbackState::Pending, 2), (CallbackState::Delivered, 3), (CallbackState::GivenUp, 16)] {
        let progress = CallbackProgress { state, tries };
        wait(journal.note_callback("r", progress, None, None)).unwrap();
        wait(journal.note_callback("without", progress, None, None)).unwrap();
        assert_eq!(callback("r"), Some(Callback { url: url.clone(), progress, posted_pause: 0 }));
        assert_eq!(callback("without"), None);
    }
    let missing = StoreError::NoSuchRun("nobody".to_owned());
    assert_eq!(wait(journal.note_callback("nobody", CallbackProgress::default(), None, None)).unwrap_err(), missing);
}

pub(super) fn the_end_of_a_run_that_continued_is_posted_whatever_is_noted_of_its_earlier_end(journal: &dyn Journal) {
    let callback_url = Some("https://e.example/".to_owned());
    let Created::New(lease) = wait(journal.create(NewRun { callback_url, ..new_run("r") })).unwrap() else {
        panic!("it is new")
    };
    let append = |seq, status, at_ms, reopens| {
        let termination = (status != Status::Running).then_some(Termination::Complete);
        let status_record = Some(StatusRecord { termination, ..StatusRecord::new(status, at_ms) });
        wait(journal.append(Append { status_record, reopens, ..event("r", lease.fence, seq) })).unwrap();
    };
    let noted = |state, of_end_ms| {
        wait(journal.note_callback("r", CallbackProgress { state, tries: 1 }, None, of_end_ms)).unwrap();
        wait(journal.find("r")).unwrap().unwrap().callback.unwrap().progress.state
    };
    append(1, Status::Failed, 2_000, false);
    append(2, Status::Running, 3_000, true);
    assert_eq!(noted(CallbackState::Delivered, Some(2_000)), CallbackState::Pending, "while it is under way");
    append(3, Status::Completed, 4_000, false);
    assert_eq!(noted(CallbackState::GivenUp, Some(2_000)), CallbackState::Pending, "after its next end");
    assert_eq!(noted(CallbackState::Delivered, Some(4_000)), CallbackState::Delivered);
}

/// Runs of these statuses, each with what its row says at this moment.
fn in_these_states(journal: &dyn Journal) {
    let hook = |id: &str| NewRun { callback_url: Some("https://e.example/".to_owned()), ..new_run(id) };
    let below = |id: &str, of: &str| NewRun { parent_run_id: Some(of.to_owned()), ..new_run(id) };
    let other = |id: &str| NewRun { loop_name: "other".to_owned(), ..new_run(id) };
    let human = Some(Termination::Human);
    for (new, status, termination, at_ms, waits_since_ms) in [
        (hook("done"), Status::Completed, Some(Termination::Complete), 1_000, None),
        (new_run("failed"), Status::Failed, Some(Termination::ModelError), 2_000, None),
        (new_run("cancelled"), Status::Cancelled, Some(Termination::Cancelled), 3_000, None),
        (new_run("stopped"), Status::Cancelled, None, 3_000, None),
        (new_run("works"), Status::Running, None, 2_000, None),
        (new_run("asks"), Status::Paused, human, 2_000, None),
        (hook("asks-too"), Status::Paused, human, 2_500, None),
        (other("asks-long"), Status::Paused, human, 100, None),
        (new_run("beside"), Status::Running, None, 9_000, Some(2_100)),
        (new_run("above"), Status::Running, None, 9_000, None),
        (below("above.1.0", "above"), Status::Paused, human, 900, None),
        (new_run("away"), Status::Paused, Some(Termination::ModelError), 2_000, None),
        (new_run("sleeps"), Status::Paused, Some(Termination::Waiting), 2_000, None),
        (below("above.2.0", "above"), Status::Paused, Some(Termination::ModelError), 2_000, None),
    ] {
        let status_record = StatusRecord { termination, waits_since_ms, ..StatusRecord::new(status, at_ms) };
        wait(journal.create(NewRun { status_record: Some(status_record), ..new })).unwrap();
    }
}

pub(super) fn runs_are_found_by_when_they_ended(journal: &dyn Journal) {
    in_these_states(journal);
    let found = |filter: RunFilter| {
        let filter = RunFilter { oldest_first: true, ..filter };
        let runs: Vec<String> = wait(journal.list(filter.clone())).unwrap().into_iter().map(|run| run.run_id).collect();
        let measured: Vec<String> = wait(journal.measured(filter)).unwrap().into_iter().map(|run| run.run_id).collect();
        assert_eq!(runs, measured);
        runs
    };
    let between =
        |since_ms, until_ms| RunFilter { ended_since_ms: since_ms, ended_until_ms: until_ms, ..RunFilter::default() };
    assert_eq!(found(between(Some(0), None)), ["done", "failed", "cancelled"]);
    assert_eq!(found(between(Some(2_000), None)), ["failed", "cancelled"]);
    assert_eq!(found(between(None, Some(2_000))), ["done"]);
    assert_eq!(found(between(Some(1_000), Some(3_000))), ["done", "failed"]);
    let failed = RunFilter::of_statuses(&[ListedStatus::Failed, ListedStatus::Paused]);
    assert_eq!(found(RunFilter { ended_since_ms: Some(0), ..failed }), ["failed"]);
}

pub(super) fn runs_that_need_somebody_are_counted_as_a_list_of_them_shows(journal: &dyn Journal) {
    in_these_states(journal);
    let moments = [2_400, 2_000, 950];
    let counted = wait(journal.run_counts(moments)).unwrap();
    let waiting = |loop_name: &str, moments, oldest_ms, runs| WaitingRuns {
        loop_name: loop_name.to_owned(),
        moments,
        oldest_ms,
        runs,
    };
    let expected = [
        waiting("other", 3, 100, 1),
        waiting("triage", 0, 2_500, 1),
        waiting("triage", 1, 2_100, 1),
        waiting("triage", 2, 2_000, 1),
        waiting("triage", 3, 900, 1),
    ];
    assert_eq!(counted.waiting, expected);
    assert_eq!((counted.quarantined, counted.model_away, counted.callbacks_pending), (0, 1, 2));
    let listed = wait(journal.list(RunFilter::default())).unwrap();
    assert_eq!(RunCounts::of(&listed, moments), counted);
}
