//! A run as a task of the extension `io.modelcontextprotocol/tasks`: the handle that a call is answered with, and how far it is.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::call_result;
use super::client_message::{INTERNAL_ERROR, McpRefusal};
use super::put_question::{self, PutQuestion};
use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::RunSummary;
use crate::trace::RunResult;

/// What ends within this time is answered at once: a task would cost its client a further request.
pub const GRACE: Duration = Duration::from_millis(500);
/// How often a client is to ask how far a task is, in milliseconds.
const POLL_INTERVAL_MS: u32 = 2_000;

/// How far a run is, with what a client may know of it.
pub struct TaskView<'t> {
    /// Its row.
    pub row: &'t RunSummary,
    /// Its outcome so far.
    pub result: &'t RunResult,
    /// What it asks that the client may put to its user.
    pub questions: &'t [PutQuestion],
}

/// Whether a run has ended: then a call gives its result, and no task.
pub fn has_ended(result: &RunResult) -> bool {
    match result.status {
        Status::Completed | Status::Failed => true,
        Status::Cancelled => result.finished_at.is_some(),
        _ => false,
    }
}

/// The answer to a call whose run is under way: it is in the store.
pub fn created(row: &RunSummary) -> Value {
    let mut task = members(row, "working", "the run is under way");
    task.insert("resultType".to_owned(), json!("task"));
    Value::Object(task)
}

impl TaskView<'_> {
    /// How far it is. `decided_by`: how what it waits for is decided, where the client may know that.
    pub fn shown(&self, decided_by: impl FnOnce() -> Option<String>) -> Value {
        let Self { row, result, questions } = *self;
        let pause = result.pause.as_ref().map_or(0, |pause| pause.number);
        let mut task = match result.status {
            Status::Completed | Status::Failed => members(row, "completed", "the run has ended"),
            Status::Cancelled if result.finished_at.is_some() => members(row, "cancelled", "the run was cancelled"),
            Status::Cancelled => members(row, "working", "the run was interrupted, and can be taken up again"),
            Status::Quarantined => {
                let mut task = members(row, "failed", "the run can't be driven");
                let why = "the run can't be driven: whoever runs the server reads why";
                let error = McpRefusal::new(INTERNAL_ERROR, why).answer(&Value::Null);
                task.insert("error".to_owned(), error.get("error").cloned().unwrap_or_default());
                task
            }
            Status::Paused if !questions.is_empty() => {
                let mut task = members(row, "input_required", "the run asks");
                task.insert("inputRequests".to_owned(), Value::Object(put_question::of_task(questions, pause)));
                task
            }
            Status::Paused => {
                let ways = call_result::decided(result, decided_by);
                members(row, "working", &format!("the run waits: {ways}"))
            }
            _ => members(row, "working", "the run is under way"),
        };
        if has_ended(result) && result.status != Status::Cancelled {
            let mut given = call_result::of_run(result, None, || None);
            if let Some(given) = given.as_object_mut() {
                given.insert("resultType".to_owned(), json!("complete"));
            }
            task.insert("result".to_owned(), given);
        }
        Value::Object(task)
    }
}

fn members(row: &RunSummary, status: &str, message: &str) -> Map<String, Value> {
    let task = json!({
        "taskId": row.run_id,
        "status": status,
        "statusMessage": message,
        "createdAt": clock::rfc3339(row.started_at_ms),
        "lastUpdatedAt": clock::rfc3339(row.updated_at_ms),
        "ttlMs": Value::Null,
        "pollIntervalMs": POLL_INTERVAL_MS,
    });
    match task {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
