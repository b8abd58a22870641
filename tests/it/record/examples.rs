//! The runs of the examples are recorded, and hold.

use serde_json::{Value, json};

use super::{Project, fits_its_schema, stderr};

#[test]
fn the_loops_of_the_examples_are_recorded_and_hold() {
    let status = Project::example("http-status");
    assert_eq!(status.run("loop.json", &["--input", "service=checkout"]), Some(3));
    assert_eq!(status.resume(&["--answer", "announce"]), Some(3));
    assert_eq!(status.resume(&["--approve"]), Some(0));
    status.is_recorded();
    let triage = Project::example("support-triage");
    assert!(triage.run("loop.json", &["--input", "ticket_id=TK-1042"]).is_some_and(|code| code != 2));
    triage.is_recorded();
}

#[test]
fn the_workflow_of_the_examples_is_recorded_and_holds() {
    let books = Project::example("ap-reconciliation");
    assert_eq!(books.run("workflow.json", &["--input", "until=2026-03-31"]), Some(3));
    let recorded = books.record();
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let tested = books.call(&["test", "--filter", "as it was"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    fits_its_schema(&books.text("recordings/r.json"));
}

#[test]
fn the_workflow_of_the_examples_is_recorded_at_its_end_and_its_last_step_is_given_the_id_of_the_run() {
    let books = Project::example("ap-reconciliation");
    let mut code = books.run("workflow.json", &["--input", "until=2026-03-31"]);
    for decision in [["--at=review.0.approve", "--approve"], ["--at=review.3.approve", "--deny"]] {
        assert_eq!(code, Some(3));
        code = books.resume(&decision);
    }
    assert_eq!(code, Some(0));
    let recorded = books.record();
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let recording: Value = serde_json::from_str(&books.text("recordings/r.json")).unwrap();
    let notified = recording["entries"].as_array().unwrap().iter().find(|entry| entry["call"]["action"] == "notify");
    assert_eq!(notified.unwrap()["call"]["input"]["run_id"], "r");
    let tested = books.call(&["test", "--filter", "as it was"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    fits_its_schema(&books.text("recordings/r.json"));
    let mut recording = recording;
    assert_eq!(recording.as_object_mut().unwrap().remove("run_id"), Some(json!("r")));
    books.write("recordings/r.json", &recording);
    let tested = books.call(&["test", "--filter", "as it was"]);
    assert_eq!(tested.status.code(), Some(1));
    assert!(stderr(&tested).contains("scenario"), "{}", stderr(&tested));
}
