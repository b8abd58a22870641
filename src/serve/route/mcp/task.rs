//! Requests about a task: it is the run of a call, whose id it has.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::{decided_by, shown_result};
use crate::drive::engine::Resume;
use crate::journal::{CancelRequest, RunSummary};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::mcp::client_message::McpRefusal;
use crate::serve::mcp::protocol::{TaskAct, TaskRequest, no_such_task};
use crate::serve::mcp::put_question::{self, Decider, GivenAnswer, PutQuestion};
use crate::serve::mcp::task_view::{TaskView, has_ended};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::run_store::{DecidedRun, RunRow};
use crate::trace::RunResult;

/// Who asks about a task.
pub(super) struct AskedTask {
    pub app: Arc<App>,
    pub caller: Caller,
    /// Whether the client can ask its user.
    pub elicits: bool,
}

/// A run, as it is now.
struct CallersTask {
    row: RunSummary,
    result: RunResult,
    questions: Vec<PutQuestion>,
}

impl AskedTask {
    /// Answers a request about a task.
    ///
    /// # Errors
    /// What is about the caller or the server, and not about the task; inside, why the task can't do it.
    pub async fn perform(&self, request: TaskRequest) -> Result<Result<Value, McpRefusal>, ProblemDetails> {
        let TaskRequest { task_id, act } = request;
        let Some(now) = self.now(&task_id).await? else { return Ok(Err(no_such_task(&task_id))) };
        match act {
            TaskAct::Get => {
                let view = TaskView { row: &now.row, result: &now.result, questions: &now.questions };
                let ways = || Some(decided_by(&self.caller, &now.row.loop_name, &now.result));
                Ok(Ok(view.shown(ways)))
            }
            TaskAct::Update(responses) => self.updated(&now, &responses).await,
            TaskAct::Cancel => self.cancelled(&now).await,
        }
    }

    /// The run of this id, if the caller has started it.
    async fn now(&self, task_id: &str) -> Result<Option<CallersTask>, ProblemDetails> {
        let row = match self.app.runs.find(&self.caller, task_id).await {
            Ok(row) => row,
            Err(problem) if problem.status == axum::http::StatusCode::NOT_FOUND => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let starter = Owner { org: row.org.clone(), token: row.token.clone().map(String::from) };
        if starter != Owner::from(&self.caller) {
            return Ok(None);
        }
        self.caller.may_run(&row.loop_name)?;
        let run = self.app.runs.looked_at(task_id).await?;
        let result = shown_result(&run, RunRow::from(&row).is_quarantined);
        // As for a call: who may not decide is asked nothing.
        let may_answer = self.elicits && self.caller.rights(&row.loop_name).is_ok();
        let questions = if may_answer { put_question::of_run(&result) } else { Vec::new() };
        Ok(Some(CallersTask { row, result, questions }))
    }

    async fn updated(
        &self,
        now: &CallersTask,
        responses: &Map<String, Value>,
    ) -> Result<Result<Value, McpRefusal>, ProblemDetails> {
        let Some(pause) = now.result.pause.as_ref().filter(|_| !now.questions.is_empty()) else {
            return Ok(Ok(json!({})));
        };
        let rights = self.caller.rights(&now.row.loop_name)?;
        let decider = Decider { pause: pause.number, by: self.caller.name.clone(), rights };
        let responses = put_question::task_responses(&now.questions, pause.number, responses);
        let given = match put_question::given(&now.questions, &responses, &decider) {
            Ok(given) => given,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (owner, mut notes, mut is_taken) = (Owner::from(&self.caller), given.notes, false);
        for GivenAnswer { key, decided } in given.answers {
            let mut run = DecidedRun::new(self.app.runs.find(&self.caller, &now.row.run_id).await?);
            let resume = Resume { decided: Some(decided), ..Resume::default() };
            match self.app.scheduler.decide(&mut run, resume, None, &owner).await {
                Ok(_) => is_taken = true,
                Err(problem) if is_taken || problem.code == "bad_answer" => notes.fault(&key, problem.detail),
                // Another answer came first: this one is to a question that nobody asks any more.
                Err(_) if !self.is_asked_so(&now.row.run_id, pause.number).await? => {}
                Err(problem) => return Err(problem),
            }
        }
        // The question is open still, under its key: an answer that was not taken was not delivered.
        Ok(match notes.note(std::iter::empty()) {
            Some(why) => Err(McpRefusal::params(why)),
            None => Ok(json!({})),
        })
    }

    async fn is_asked_so(&self, run_id: &str, pause: u32) -> Result<bool, ProblemDetails> {
        let now = self.now(run_id).await?;
        Ok(now.and_then(|now| now.result.pause).is_some_and(|asked| asked.number == pause))
    }

    async fn cancelled(&self, now: &CallersTask) -> Result<Result<Value, McpRefusal>, ProblemDetails> {
        if has_ended(&now.result) {
            return Ok(Ok(json!({})));
        }
        self.caller.may_cancel(&now.row.loop_name)?;
        let run_id = &now.row.run_id;
        let request = CancelRequest { reason: None, by: self.caller.name.clone() };
        let asked = self.app.scheduler.cancel(run_id, &Owner::from(&self.caller), request).await;
        match asked {
            Ok(_) => Ok(Ok(json!({}))),
            // It may have ended meanwhile.
            Err(fault) => match self.now(run_id).await? {
                Some(now) if has_ended(&now.result) => Ok(Ok(json!({}))),
                _ => Err(fault.into()),
            },
        }
    }
}
