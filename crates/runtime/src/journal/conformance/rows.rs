//! What the row of a run shows without its events.

use super::*;

fn found(journal: &dyn Journal, id: &str) -> RunSummary {
    wait(journal.find(id)).unwrap().unwrap()
}

fn titled(id: &str, title: &str) -> NewRun {
    NewRun { title: Some(title.to_owned()), ..new_run(id) }
}

fn record(status: Status, at_ms: i64) -> StatusRecord {
    StatusRecord { iterations: 2, tokens: Some(120), cost_usd: Some(0.25), ..StatusRecord::new(status, at_ms) }
}

pub(super) fn a_row_shows_what_its_events_came_to(journal: &dyn Journal) {
    let first = StatusRecord { tokens: Some(0), ..StatusRecord::new(Status::Running, 1_000) };
    let run = NewRun {
        status_record: Some(first),
        search_text: Some(search_text("Refund A-17")),
        ..titled("r", "Refund A-17")
    };
    wait(journal.create(run)).unwrap();
    let began = found(journal, "r");
    assert_eq!((began.tokens, began.cost_usd, began.iterations, began.updated_at_ms), (Some(0), None, 0, 1_000));
    assert!(began.is_complete && began.error.is_none() && began.question.is_none(), "{began:?}");
    assert_eq!(began.title.as_deref(), Some("Refund A-17"));
    // An event that changes no record leaves the row as it is.
    wait(journal.append(event("r", 1, 1))).unwrap();
    assert_eq!(found(journal, "r"), began);
    let append =
        |seq, record| wait(journal.append(Append { status_record: Some(record), ..event("r", 1, seq) })).unwrap();
    append(2, record(Status::Running, 2_000));
    let listed = || wait(journal.list(RunFilter::default())).unwrap().remove(0);
    let works = listed();
    assert_eq!((works.tokens, works.cost_usd, works.iterations), (Some(120), Some(0.25), 2));
    assert_eq!((works.status, works.updated_at_ms, works.started_at_ms), (Status::Running, 2_000, 1_000));
    let asks = StatusRecord {
        termination: Some(Termination::Human),
        question: RowText::new("Refund\n40 EUR?"),
        due_at_ms: Some(9_000),
        ..record(Status::Paused, 3_000)
    };
    append(3, asks.clone());
    assert_eq!((listed().question.as_deref(), listed().due_at_ms), (Some("Refund 40 EUR?"), Some(9_000)));
    append(4, record(Status::Running, 4_000));
    assert_eq!((listed().question, listed().due_at_ms, listed().updated_at_ms), (None, None, 4_000));
    let error = RowText::new(&"no answer\u{0} ".repeat(1_000));
    let failed = StatusRecord {
        termination: Some(Termination::ModelError),
        error: error.clone(),
        ..record(Status::Failed, 5_000)
    };
    append(5, failed);
    let ended = listed();
    assert_eq!((ended.status, ended.updated_at_ms), (Status::Failed, 5_000));
    assert_eq!(ended.error.as_deref(), error.as_ref().map(RowText::as_str));
    // What an older version lacks is not there: this row lacks nothing.
    let completion = RowCompletion { record: asks, search_text: "other".to_owned(), title: "other".to_owned() };
    wait(journal.complete_row("r", completion)).unwrap();
    assert_eq!(listed(), ended);
}

pub(super) fn a_row_of_an_older_version_is_completed_once_and_by_its_own_status(journal: &dyn Journal) {
    begin(journal, "old");
    let old = found(journal, "old");
    assert!(!old.is_complete && old.tokens.is_none(), "{old:?}");
    let complete = |status| {
        let texts = |search_text: &str, title: &str| RowCompletion {
            record: record(status, 7_000),
            search_text: search_text.to_owned(),
            title: title.to_owned(),
        };
        wait(journal.complete_row("old", texts("order a-17", "Order A-17"))).unwrap();
        wait(journal.complete_row("nobody", texts("", ""))).unwrap();
        found(journal, "old")
    };
    let whole = complete(Status::Running);
    assert_eq!((whole.tokens, whole.cost_usd, whole.iterations, whole.is_complete), (Some(120), Some(0.25), 2, true));
    assert_eq!((whole.status, whole.started_at_ms), (old.status, old.started_at_ms));
    assert_eq!(found_by(journal, "A-17"), "old");
    let extras = wait(journal.extras("old")).unwrap();
    assert_eq!((extras.search_text.as_deref(), extras.title.as_deref()), (Some("order a-17"), Some("Order A-17")));
    assert_eq!((old.title, whole.title.as_deref()), (None, Some("Order A-17")));
    assert_eq!(complete(Status::Running), whole);
    // A run that has continued in an older version since.
    let stopped = StatusRecord { tokens: None, ..record(Status::Paused, 8_000) };
    wait(journal.append(Append { status_record: Some(stopped), ..event("old", 1, 1) })).unwrap();
    assert!(!complete(Status::Running).is_complete);
    assert!(complete(Status::Paused).is_complete);
}

fn found_by(journal: &dyn Journal, text: &str) -> String {
    let filter = RunFilter { search: Some(text.to_owned()), ..RunFilter::default() };
    wait(journal.list(filter)).unwrap().into_iter().map(|run| run.run_id).collect()
}

pub(super) fn runs_are_found_by_their_objective_and_input(journal: &dyn Journal) {
    for (id, text) in [("a", "Refund order A-17 for ÄDA"), ("b", "100% _of it_"), ("c", "refund order A-18")] {
        wait(journal.create(NewRun { search_text: Some(search_text(text)), ..new_run(id) })).unwrap();
    }
    begin(journal, "d");
    for (text, expected) in
        [("ORDER a-1", "ca"), ("äda", "a"), ("a-17\nfor", "a"), ("%", "b"), ("_of", "b"), ("a-19", ""), ("'", "")]
    {
        assert_eq!(found_by(journal, text), expected, "{text}");
    }
}

pub(super) fn a_row_names_the_schedule_that_started_it(journal: &dyn Journal) {
    let scheduled = ScheduledRun { schedule: "night".to_owned(), due_at_ms: 60_000, timetable: "every 1h".to_owned() };
    wait(journal.create(NewRun { scheduled: Some(scheduled), ..new_run("r") })).unwrap();
    begin(journal, "other");
    let row = found(journal, "r");
    assert_eq!((row.schedule.as_deref(), row.scheduled_for_ms), (Some("night"), Some(60_000)));
    assert_eq!(found(journal, "other").schedule, None);
}

pub(super) fn a_run_that_is_about_nothing_has_no_title_and_a_whole_row(journal: &dyn Journal) {
    let first = StatusRecord { tokens: Some(0), ..StatusRecord::new(Status::Running, 1_000) };
    let run = NewRun { status_record: Some(first), search_text: Some(String::new()), ..titled("r", "") };
    wait(journal.create(run)).unwrap();
    let row = found(journal, "r");
    assert_eq!((row.title, row.is_complete), (None, true));
}
