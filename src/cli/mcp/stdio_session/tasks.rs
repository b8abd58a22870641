//! Calls that are answered with a task, and requests about one: it is the run, which this process drives after the answer.

use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::{IN_MEMORY, RequestUnderWay, StdioSession, failed, said, shown};
use crate::cli::process::{acting_user, local_user};
use crate::drive::begin::Begin;
use crate::drive::clock;
use crate::drive::engine::{Engine, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::start::Start;
use crate::engine::event::DecisionRights;
use crate::engine::notice::{Listener, Notice};
use crate::engine::outcome::Status;
use crate::journal::{CancelRequest, RunSummary};
use crate::program::Program;
use crate::serve::mcp::call_result;
use crate::serve::mcp::client_message::{INTERNAL_ERROR, McpRefusal};
use crate::serve::mcp::protocol::{ClientEra, TaskAct, TaskRequest, ToolRequest, no_such_task, no_such_tool};
use crate::serve::mcp::put_question::{self, Decider, GivenAnswer, PutQuestion};
use crate::serve::mcp::task_view::{self, GRACE, TaskView, has_ended};
use crate::trace::{Redaction, RunResult, result};

/// A run, as it is now.
struct SessionTask<'s> {
    engine: &'s Engine,
    program: &'s Arc<Program>,
    row: RunSummary,
    result: RunResult,
    questions: Vec<PutQuestion>,
}

/// Hears that a decision is durable.
#[derive(Default)]
struct AcceptedDecision(Notify);

impl Listener for AcceptedDecision {
    fn on(&self, _: Notice) {}

    fn on_accepted(&self) {
        self.0.notify_one();
    }
}

impl StdioSession {
    /// Carries out a call whose client takes a task. The run is in the store before it is answered, and driven here after that.
    pub(super) async fn run_as_task(
        &self,
        era: ClientEra,
        id: &Value,
        call: &ToolRequest,
        under_way: &Arc<RequestUnderWay>,
    ) {
        let tools = self.tools();
        let offered = tools.by_name.get(&call.name).copied();
        let engine = offered.and_then(|offered| self.parts.engines.get(&offered.root));
        let (Some(offered), Some(engine)) = (offered, engine) else {
            let refusal = no_such_tool(&call.name, tools.by_name.keys().map(String::as_str));
            return self.finish(era, id, Err(refusal), under_way).await;
        };
        let program = &offered.program;
        let start = Start { by: acting_user(), ..call.start(&program.name) };
        let begun = match engine.begin(program, start).await {
            Ok(begun) => begun,
            Err(fault) => return self.finish(era, id, Ok(failed(call, &fault)), under_way).await,
        };
        let run_id = match &begun {
            Begin::New(started) => started.run_id().to_owned(),
            Begin::Same(run_id) => run_id.clone(),
        };
        let key = task_key(&run_id);
        // A call of the same key may be driven here already: then this one says how far it is.
        if self.under_way().contains_key(&key) {
            return self.answer_created(era, id, engine, &run_id, under_way).await;
        }
        self.under_way().insert(key.clone(), Arc::clone(under_way));
        let drive = async {
            let turn = tokio::select! {
                biased;
                () = self.until_over(under_way) => None,
                turn = self.turns.acquire() => turn.ok(),
            };
            // One that gets no turn stays in the store, and is taken up by who asks how far it is.
            let _turn = turn?;
            let watch = Watch { listener: None, stop: Some(under_way.stop.clone()) };
            Some(engine.run_created(program, begun, watch).await)
        };
        let mut drive = std::pin::pin!(drive.fuse());
        match tokio::time::timeout(GRACE, &mut drive).await {
            Ok(Some(Err(fault))) => self.finish(era, id, Ok(failed(call, &fault)), under_way).await,
            Ok(Some(Ok(finished))) => {
                let result = result(shown(program), &finished.state, &Redaction::new(&program.project.redact));
                match has_ended(&result) {
                    true => self.finish(era, id, Ok(call_result::of_run(&result, None, || None)), under_way).await,
                    false => self.answer_created(era, id, engine, &run_id, under_way).await,
                }
            }
            Ok(None) => self.answer_created(era, id, engine, &run_id, under_way).await,
            Err(_) => {
                self.answer_created(era, id, engine, &run_id, under_way).await;
                if let Some(Err(fault)) = drive.await {
                    log(&run_id, &fault);
                }
            }
        }
        self.under_way().remove(&key);
    }

    async fn answer_created(
        &self,
        era: ClientEra,
        id: &Value,
        engine: &Engine,
        run_id: &str,
        under_way: &RequestUnderWay,
    ) {
        let created = match engine.find(run_id).await {
            Ok(Some(row)) => Ok(task_view::created(&row)),
            Ok(None) => Err(no_such_task(run_id)),
            Err(fault) => Err(of_fault(&fault)),
        };
        self.finish(era, id, created, under_way).await;
    }

    /// Answers a request about a task. A run that nobody drives any more is taken up: an earlier process began it.
    pub(super) async fn perform_on_task(
        &self,
        era: ClientEra,
        id: &Value,
        request: TaskRequest,
        under_way: &Arc<RequestUnderWay>,
    ) {
        let TaskRequest { task_id, act } = request;
        let now = match self.task_now(era, &task_id).await {
            Ok(Some(now)) => now,
            Ok(None) => return self.finish(era, id, Err(no_such_task(&task_id)), under_way).await,
            Err(fault) => return self.finish(era, id, Err(of_fault(&fault)), under_way).await,
        };
        match act {
            TaskAct::Update(responses) => return self.update_task(era, id, &now, &responses, under_way).await,
            TaskAct::Get => {
                let next = self.next_commands(&task_id);
                let view = TaskView { row: &now.row, result: &now.result, questions: &now.questions };
                let shown = view.shown(|| match next.lasts {
                    true => next.deciding(&now.result),
                    false => Some(IN_MEMORY.to_owned()),
                });
                self.finish(era, id, Ok(shown), under_way).await;
            }
            TaskAct::Cancel => {
                let cancelled = self.cancel_task(era, &now).await;
                self.finish(era, id, cancelled, under_way).await;
            }
        }
        self.take_up(&task_id, &now).await;
    }

    /// The run of this id, if it is one of a tool.
    async fn task_now(&self, era: ClientEra, task_id: &str) -> Result<Option<SessionTask<'_>>, Fault> {
        // All of them have one store.
        let Some(engine) = self.parts.engines.values().next() else { return Ok(None) };
        let Some(row) = engine.find(task_id).await? else { return Ok(None) };
        let tools = self.tools();
        let offered = tools.by_name.values().copied().find(|offered| offered.program.name == row.loop_name);
        let engine = offered.and_then(|offered| self.parts.engines.get(&offered.root));
        let (Some(offered), Some(engine)) = (offered, engine) else { return Ok(None) };
        let program = &offered.program;
        let state = engine.state(program, task_id).await?;
        let result = result(shown(program), &state, &Redaction::new(&program.project.redact));
        let questions = if era.elicits { put_question::of_run(&result) } else { Vec::new() };
        Ok(Some(SessionTask { engine, program, row, result, questions }))
    }

    async fn cancel_task(&self, era: ClientEra, now: &SessionTask<'_>) -> Result<Value, McpRefusal> {
        if has_ended(&now.result) {
            return Ok(json!({}));
        }
        let request = CancelRequest { reason: None, by: acting_user() };
        match now.engine.cancel(now.program, &now.row.run_id, request).await {
            Ok(_) => Ok(json!({})),
            // It may have ended meanwhile.
            Err(fault) => match self.task_now(era, &now.row.run_id).await {
                Ok(Some(now)) if has_ended(&now.result) => Ok(json!({})),
                _ => Err(of_fault(&fault)),
            },
        }
    }

    /// Has a run continue with what the client's user answered: the answer to the request says that it is durable, and the run is driven
    /// after it.
    async fn update_task(
        &self,
        era: ClientEra,
        id: &Value,
        now: &SessionTask<'_>,
        responses: &Map<String, Value>,
        under_way: &Arc<RequestUnderWay>,
    ) {
        let pause = now.result.pause.as_ref().map_or(0, |pause| pause.number);
        let decider = Decider { pause, by: local_user(), rights: DecisionRights::All };
        let responses = put_question::task_responses(&now.questions, pause, responses);
        let given = match put_question::given(&now.questions, &responses, &decider) {
            Ok(given) => given,
            Err(refusal) => return self.finish(era, id, Err(refusal), under_way).await,
        };
        let (run_id, mut notes) = (now.row.run_id.as_str(), given.notes);
        let (task, mut driving) = (self.driven_task(run_id, under_way), FuturesUnordered::new());
        for GivenAnswer { key, decided } in given.answers {
            let accepted = Arc::new(AcceptedDecision::default());
            let (listener, stop, own) = (Arc::clone(&accepted), task.stop.clone(), key.clone());
            driving.push(
                async move {
                    let resume = Resume { decided: Some(decided), ..Resume::default() };
                    let watch = Watch { listener: Some(&*listener), stop: Some(stop) };
                    (own, now.engine.resume(now.program, run_id, resume, watch).await)
                }
                .boxed(),
            );
            loop {
                tokio::select! {
                    biased;
                    () = accepted.0.notified() => break,
                    Some((of, outcome)) = driving.next() => match outcome {
                        Err(fault) if of == key => {
                            notes.fault(&key, said(&fault));
                            break;
                        }
                        Err(fault) => log(run_id, &fault),
                        Ok(_) if of == key => break,
                        Ok(_) => {}
                    }
                }
            }
        }
        // The question is open still, under its key: an answer that was not taken was not delivered.
        let outcome = match notes.note(std::iter::empty()) {
            Some(why) => Err(McpRefusal::params(why)),
            None => Ok(json!({})),
        };
        self.finish(era, id, outcome, under_way).await;
        while let Some((_, outcome)) = driving.next().await {
            if let Err(fault) = outcome {
                log(run_id, &fault);
            }
        }
        self.forget_task(run_id, &task);
    }

    /// Drives a run that has no driver.
    async fn take_up(&self, run_id: &str, now: &SessionTask<'_>) {
        let is_left = match now.row.status {
            Status::Running => !now.row.driven,
            Status::Cancelled => !now.row.has_ended(),
            // It waited for a time, which has come.
            Status::Paused => now.row.due_at_ms.is_some_and(|due_at_ms| due_at_ms <= clock::wall_ms()),
            _ => false,
        };
        if !is_left || self.under_way().contains_key(&task_key(run_id)) {
            return;
        }
        let task = self.driven_task(run_id, &Arc::new(RequestUnderWay::default()));
        let turn = tokio::select! {
            biased;
            () = self.until_over(&task) => None,
            turn = self.turns.acquire() => turn.ok(),
        };
        if let Some(_turn) = turn {
            let watch = Watch { listener: None, stop: Some(task.stop.clone()) };
            if let Err(fault) = now.engine.join(now.program, run_id, watch).await {
                log(run_id, &fault);
            }
        }
        self.forget_task(run_id, &task);
    }

    /// What stops a run with the session: that of the request that drives it already, else this one's.
    fn driven_task(&self, run_id: &str, under_way: &Arc<RequestUnderWay>) -> Arc<RequestUnderWay> {
        Arc::clone(self.under_way().entry(task_key(run_id)).or_insert_with(|| Arc::clone(under_way)))
    }

    /// Forgets what stops a run, unless another request drives it.
    fn forget_task(&self, run_id: &str, task: &Arc<RequestUnderWay>) {
        let mut all = self.under_way();
        if all.get(&task_key(run_id)).is_some_and(|known| Arc::ptr_eq(known, task)) {
            all.remove(&task_key(run_id));
        }
    }
}

/// The key of a run among what is under way: no id of a request is written so.
fn task_key(run_id: &str) -> String {
    format!("task {run_id}")
}

fn of_fault(fault: &Fault) -> McpRefusal {
    let data = Some(json!({ "code": fault.code() }));
    McpRefusal { data, ..McpRefusal::new(INTERNAL_ERROR, said(fault)) }
}

fn log(run_id: &str, fault: &Fault) {
    tracing::warn!(run_id, "the run of a task is left: {fault}");
}
