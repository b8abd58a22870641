//! A call of a tool over HTTP: its run is started as by the other routes, and waited for.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::drive::engine::Resume;
use crate::drive::start::Start;
use crate::engine::event::DecisionRights;
use crate::engine::outcome::Status;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::mcp::answer_notes::{self, AnswerNotes};
use crate::serve::mcp::call_registry::CancellableCall;
use crate::serve::mcp::call_result;
use crate::serve::mcp::client_message::McpRefusal;
use crate::serve::mcp::protocol::{AnsweredCall, ToolRequest};
use crate::serve::mcp::put_question::{self, Decider, GivenAnswer, GivenAnswers, PutQuestion};
use crate::serve::mcp::request_state::{AskedPause, StateScope};
use crate::serve::mcp::task_view::{self, GRACE};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::WaitQuery;
use crate::serve::route::execute::{admitted, offered, started_after};
use crate::serve::run_store::{DecidedRun, FoldedRun};
use crate::serve::scheduler::{ActiveRun, RunFollower};
use crate::serve::start_key::{StartKey, StartRequest};
use crate::trace::{Redaction, RunResult, Shown, result};

/// How often a run that was interrupted by another client is taken up again for one call.
const MAX_TAKE_UPS: u32 = 3;

/// A call of a tool.
pub(super) struct McpCall {
    pub app: Arc<App>,
    pub caller: Caller,
    pub call: ToolRequest,
    /// The loop or workflow.
    pub name: String,
    pub cancellable: Option<CancellableCall>,
    /// Whether the client can ask its user.
    pub elicits: bool,
}

/// Why a call has no run.
pub(super) enum CallRefusal {
    /// As by the routes that start runs.
    Problem(Box<ProblemDetails>),
    /// By the protocol.
    Protocol(McpRefusal),
}

impl From<ProblemDetails> for CallRefusal {
    fn from(problem: ProblemDetails) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<McpRefusal> for CallRefusal {
    fn from(refusal: McpRefusal) -> Self {
        Self::Protocol(refusal)
    }
}

/// A call whose run is in the store.
pub(super) struct StartedCall {
    call: McpCall,
    run_id: String,
    active: Option<Arc<ActiveRun>>,
    follower: RunFollower,
    /// Whether the run is this call's, so that it ends with it.
    is_own: bool,
    /// The pause whose questions it answers.
    asked: Option<AskedPause>,
    /// What became of its answers.
    notes: AnswerNotes,
}

impl McpCall {
    /// Starts the run, or finds that of the same key. `hears`: whether the client wants to hear of its progress. `ends_with_client`:
    /// whether a connection that is lost interrupts it.
    ///
    /// # Errors
    /// Those of the routes that start runs.
    pub async fn start(
        self,
        headers: &HeaderMap,
        hears: bool,
        ends_with_client: bool,
    ) -> Result<(mpsc::Receiver<String>, StartedCall), CallRefusal> {
        let Self { app, caller, call, name, .. } = &self;
        caller.may_run(name)?;
        app.scheduler.accepts_runs()?;
        if let Some(answered) = call.answered.clone() {
            let (progress, mut started) = Box::pin(self.answered(answered, hears)).await?;
            if ends_with_client {
                started.ends_with_client();
            }
            return Ok((progress, started));
        }
        let key = call.idempotency_key.as_deref().map(|key| StartKey::of_text(caller.org.as_deref(), key));
        let mut start = Start { input: Value::Object(call.arguments.clone()), ..Start::default() };
        let request = StartRequest::Named(name.clone());
        let known = StartKey::applied(key, app, caller, &request, &mut start).await?;
        let is_new = known.is_none();
        let mut joined = None;
        let (run_id, active) = match known {
            Some(run_id) => {
                joined = Some(app.scheduler.followers.join(&run_id, hears));
                let active = self.taken_up(&run_id).await?;
                (run_id, active)
            }
            None => {
                let order = offered(app, name, start)?;
                app.switches.refuse(&*app.runs.journal, name).await?;
                let (order, admission) = admitted(app, caller.clone(), order, headers)?;
                let before = |run_id: &str| joined = Some(app.scheduler.followers.join(run_id, hears));
                started_after(app, order, admission, &WaitQuery::default(), before).await?
            }
        };
        let (follower, progress) = match joined {
            Some(joined) => joined,
            // Another request has started it at the same moment.
            None => app.scheduler.followers.join(&run_id, hears),
        };
        let notes = AnswerNotes::default();
        let mut started = StartedCall { run_id, active, follower, is_own: is_new, call: self, asked: None, notes };
        if ends_with_client {
            started.ends_with_client();
        }
        Ok((progress, started))
    }

    /// Has the run of an earlier call go on with what the client's user answered.
    async fn answered(
        self,
        answered: AnsweredCall,
        hears: bool,
    ) -> Result<(mpsc::Receiver<String>, StartedCall), CallRefusal> {
        let Self { app, caller, .. } = &self;
        let owner = Owner::from(caller);
        let asked = self.scope(&owner).open(&*app.runs.journal, &answered.state).await?;
        let (follower, progress) = app.scheduler.followers.join(&asked.run_id, hears);
        let row = app.runs.find(caller, &asked.run_id).await?;
        let (mut active, mut is_own) = (app.scheduler.active(&asked.run_id), false);
        let questions = if row.status == Status::Paused { self.asked_now(&asked).await? } else { Vec::new() };
        let rights = if questions.is_empty() { DecisionRights::Ordinary } else { caller.rights(&self.name)? };
        let decider = Decider { pause: asked.pause, by: caller.name.clone(), rights };
        let GivenAnswers { answers, mut notes } = put_question::given(&questions, &answered.responses, &decider)?;
        for GivenAnswer { key, decided } in answers {
            let mut run = DecidedRun::new(app.runs.find(caller, &asked.run_id).await?);
            let resume = Resume { decided: Some(decided), ..Resume::default() };
            match app.scheduler.decide(&mut run, resume, None, &owner).await {
                Ok(taker) => {
                    answer_notes::taken(&asked, &key, &answered.responses);
                    (active, is_own) = (taker.active().or(active), true);
                }
                Err(problem) if problem.code == "bad_answer" => notes.fault(&key, problem.detail),
                // Another answer came first.
                Err(_) if !is_own && self.asked_now(&asked).await?.is_empty() => notes.late(&key),
                Err(problem) if is_own => notes.fault(&key, problem.detail),
                Err(problem) => return Err(problem.into()),
            }
        }
        let run_id = asked.run_id.clone();
        Ok((progress, StartedCall { run_id, active, follower, is_own, notes, asked: Some(asked), call: self }))
    }

    /// The questions of a pause, if the run still waits in it.
    async fn asked_now(&self, asked: &AskedPause) -> Result<Vec<PutQuestion>, ProblemDetails> {
        let run = self.app.runs.looked_at(&asked.run_id).await.map_err(ProblemDetails::from)?;
        let result = shown_result(&run, false);
        let is_asked = result.pause.as_ref().is_some_and(|pause| pause.number == asked.pause);
        Ok(if is_asked { put_question::of_run(&result) } else { Vec::new() })
    }

    fn scope<'s>(&'s self, owner: &'s Owner) -> StateScope<'s> {
        StateScope { owner, call: &self.call }
    }

    /// The questions of a run, for a client that can ask its user, whose token may decide.
    async fn put(&self, result: &RunResult, notes: &AnswerNotes) -> Option<Value> {
        let pause = result.pause.as_ref().filter(|_| self.elicits && self.caller.rights(&self.name).is_ok())?;
        let questions = put_question::of_run(result);
        if questions.is_empty() {
            return None;
        }
        let asked = AskedPause { run_id: result.run_id.clone(), pause: pause.number };
        let state = self.scope(&Owner::from(&self.caller)).issue(&*self.app.runs.journal, &asked).await?;
        Some(put_question::result(&result.run_id, &questions, &state, notes))
    }

    /// Has a run go on that was interrupted: that of the same key. The run, if it is driven here.
    async fn taken_up(&self, run_id: &str) -> Result<Option<Arc<ActiveRun>>, ProblemDetails> {
        let Self { app, caller, .. } = self;
        let row = app.runs.find(caller, run_id).await?;
        if row.status != Status::Cancelled || row.has_ended() {
            return Ok(app.scheduler.active(run_id));
        }
        let owner = Owner::from(caller);
        let taker = app.scheduler.decide(&mut DecidedRun::new(row), Resume::default(), None, &owner).await?;
        Ok(taker.active())
    }
}

impl StartedCall {
    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// From now on, the run is interrupted when this call is given up, unless others wait for it.
    fn ends_with_client(&mut self) {
        if let Some(active) = self.active.as_ref().filter(|_| self.is_own) {
            self.follower.interrupts(active);
        }
    }

    /// Waits for the run: what the call gives.
    ///
    /// # Errors
    /// When the run can't be read.
    pub async fn result(mut self) -> Result<Value, ProblemDetails> {
        let mut cancellable = self.call.cancellable.take();
        let cancelled = async {
            match &mut cancellable {
                Some(cancellable) => cancellable.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            ended = self.ended() => Some(ended),
            () = cancelled => None,
        };
        match ended {
            Some(ended) => {
                self.follower.lets_go();
                ended
            }
            None => {
                self.ends_with_client();
                Ok(call_result::failure("cancelled", "the request was cancelled", Some(&self.run_id)))
            }
        }
    }

    /// Waits shortly for the run, which is then a task: it continues when its client has gone. What a client's user answered, and the
    /// run did not take, is answered as without tasks.
    ///
    /// # Errors
    /// When the run can't be read.
    pub async fn result_or_task(mut self) -> Result<Value, ProblemDetails> {
        let app = Arc::clone(&self.call.app);
        let settled = app.scheduler.wait(&self.run_id, self.active.clone(), Some(GRACE)).await?;
        self.follower.lets_go();
        let row = app.runs.find(&self.call.caller, &self.run_id).await?;
        if row.has_ended() || (settled.is_some() && self.asked.is_some()) {
            return self.ended().await;
        }
        Ok(task_view::created(&row))
    }

    async fn ended(&mut self) -> Result<Value, ProblemDetails> {
        let app = Arc::clone(&self.call.app);
        for _ in 0..MAX_TAKE_UPS {
            let Some(settled) = app.scheduler.wait(&self.run_id, self.active.clone(), None).await? else { break };
            let run = match settled.run {
                Some(run) => run,
                None => app.runs.looked_at(&self.run_id).await?,
            };
            let result = shown_result(&run, settled.row.is_quarantined);
            let is_interrupted = result.status == Status::Cancelled && result.finished_at.is_none();
            // What is sent again takes the run up.
            if is_interrupted && (self.call.call.idempotency_key.is_some() || self.asked.is_some()) {
                self.active = self.call.taken_up(&self.run_id).await?;
                continue;
            }
            if let (Some(asked), Some(answered)) = (&self.asked, &self.call.call.answered) {
                self.notes.settle(asked, &answered.responses);
            }
            if !self.notes.is_declined
                && let Some(put) = self.call.put(&result, &self.notes).await
            {
                return Ok(put);
            }
            let note = self.notes.note(std::iter::empty());
            let ways = || Some(decided_by(&self.call.caller, &self.call.name, &result));
            return Ok(call_result::of_run(&result, note, ways));
        }
        let why = "the server stops, and the run goes on without it: call again with the same idempotency key, or look at the run";
        Ok(call_result::failure("continues", why, Some(&self.run_id)))
    }
}

/// How what a run waits for is decided.
pub(super) fn decided_by(caller: &Caller, loop_name: &str, result: &RunResult) -> String {
    let run_id = &result.run_id;
    let pause = result.pause.as_ref();
    if pause.is_some_and(|pause| pause.question.kind.is_wait()) {
        return "it goes on by itself when its time has come".to_owned();
    }
    let who = match caller.rights(loop_name) {
        Ok(_) => "it is decided",
        Err(_) => "a token with the scope `decide` decides it",
    };
    match pause.is_some_and(|pause| pause.steps.is_empty()) {
        true => format!("{who} by POST /agents/{run_id}/resume, with {{\"answer\": \"...\"}}"),
        false => format!("{who} on the page of this server, or by POST /agents/{run_id}/resume"),
    }
}

pub(super) fn shown_result(run: &FoldedRun, is_quarantined: bool) -> RunResult {
    let redact = Redaction::new(&run.program.project.redact);
    let shown = Shown { result_key: run.program.result_key(), is_quarantined, ..Shown::default() };
    result(shown, &run.state, &redact)
}

/// What a call gives whose run was not started.
///
/// # Errors
/// What is about the caller or the server, and not about the call: it is answered as by the other routes.
pub(super) fn failed(app: &App, problem: ProblemDetails) -> Result<Value, ProblemDetails> {
    let is_about_call =
        matches!(problem.status, StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY);
    if !is_about_call {
        return Err(problem);
    }
    let problem = app.hidden_paths.problem(problem);
    let said = match &*problem.diagnostics {
        [] => problem.detail.clone(),
        all => call_result::all_said(all),
    };
    // A client of MCP has no header for its key.
    let said = said.replace("`Idempotency-Key`", "`loopctl/idempotency-key`");
    Ok(call_result::failure(problem.code, &said, problem.agent_run_id.as_deref()))
}
