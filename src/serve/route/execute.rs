//! `POST /agents/execute`: starts a loop, and waits for its end unless the query says otherwise.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::status::answer;
use crate::diagnostic::{Source, nearest};
use crate::drive::begin::Begin;
use crate::drive::start::Start;
use crate::language::serving::{AgentRequests, TokenScope};
use crate::program::Program;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::folder::REQUEST;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, WaitQuery};
use crate::serve::run_store::{ProgramOfRun, RunRow};
use crate::serve::scheduler::{ActiveRun, Admission};
use crate::serve::start_key::{StartKey, StartRequest};
use crate::syntax::document;

/// A loop of the served folder, to be run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopRequest {
    /// The loop's name, as `GET /loops` lists it.
    #[serde(rename = "loop")]
    pub name: String,
    /// Its input.
    #[serde(default)]
    pub input: Option<Map<String, Value>>,
    /// The session whose memory it shares: letters, digits and `_-.~@+=`.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.~@+=-]{1,128}$"))]
    pub session: Option<String>,
    /// The limit for its active time in milliseconds, instead of the document's.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Where its result is posted when it has ended.
    #[serde(default)]
    pub callback_url: Option<String>,
    /// An earlier run, which has ended. The new run gets its result in the prompt, and its memory.
    #[serde(default)]
    pub previous_run_id: Option<String>,
}

/// What says how something is started, and not what.
const OF_START: [&str; 5] = ["input", "session", "timeout_ms", "callback_url", "previous_run_id"];

/// What to run, and the folder of its project.
pub(in crate::serve) struct StartOrder {
    pub program: Arc<Program>,
    pub root: PathBuf,
    pub start: Start,
}

/// Starts a loop.
pub async fn execute(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&uri)?;
    let key = StartKey::of(&headers, caller.org.as_deref())?;
    app.scheduler.accepts_runs()?;
    let text = std::str::from_utf8(&body).map_err(|_| ProblemDetails::bad_request("the body is no UTF-8"))?;
    let keys: Map<String, Value> = request::body(&body)?;
    let order = if keys.contains_key("loop") {
        let (name, mut start) = of_loop(request::body(&body)?);
        caller.may_run(&name)?;
        let request = StartRequest::Named(name.clone());
        if let Some(run_id) = StartKey::applied(key, &app, &caller, &request, &mut start).await? {
            return answer(&app, &run_id, None, &waiting).await;
        }
        let order = offered(&app, &name, start)?;
        app.switches.refuse(&*app.runs.journal, &name).await?;
        order
    } else {
        may_compose(&app, &caller)?;
        if keys.keys().all(|key| OF_START.contains(&key.as_str())) {
            let detail = "the body names no `loop`, and has no `objective` of an agent request: {\"loop\": NAME, \"input\": {...}}";
            return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, "no_loop", detail));
        }
        let (document, mut start) = of_request(text)?;
        let request = StartRequest::Composed(document.clone());
        if let Some(run_id) = StartKey::applied(key, &app, &caller, &request, &mut start).await? {
            return answer(&app, &run_id, None, &waiting).await;
        }
        composed(&app, document, start).await?
    };
    let (order, admission) = admitted(&app, caller, order, &headers)?;
    begin(&app, order, admission, &waiting).await
}

/// Checks what a caller asks of a run that it starts, and whether it may start one now.
pub(super) fn admitted(
    app: &App,
    caller: Caller,
    order: StartOrder,
    headers: &HeaderMap,
) -> Result<(StartOrder, Admission), ProblemDetails> {
    let StartOrder { program, root, mut start } = order;
    if let Some(url) = &start.callback_url {
        app.callbacks.check(url)?;
    }
    // Who starts a run passes on no more than it may do itself: to whom its pauses, or what it asks, are posted.
    start.callback_rights = caller.rights(&program.name).ok();
    if start.timeout_ms == Some(0) {
        return Err(ProblemDetails::bad_request("`timeout_ms` is at least 1"));
    }
    let admission = app.scheduler.admit(Owner::from(&caller))?;
    start.within = request::trace_context(headers);
    (start.org, start.token) = (caller.org, caller.name);
    Ok((StartOrder { program, root, start }, admission))
}

/// Starts a run that was admitted, and answers as the caller wants to wait.
pub(super) async fn begin(
    app: &Arc<App>,
    order: StartOrder,
    admission: Admission,
    waiting: &WaitQuery,
) -> Result<Response, ProblemDetails> {
    let (run_id, active) = started(app, order, admission, waiting).await?;
    answer(app, &run_id, active, waiting).await
}

/// Starts a run that was admitted: its id, and the run if it is driven here.
pub(in crate::serve) async fn started(
    app: &Arc<App>,
    order: StartOrder,
    admission: Admission,
    waiting: &WaitQuery,
) -> Result<(String, Option<Arc<ActiveRun>>), ProblemDetails> {
    started_after(app, order, admission, waiting, |_| {}).await
}

/// The same. `before` is given the id of a new run before its first step.
pub(super) async fn started_after(
    app: &Arc<App>,
    order: StartOrder,
    admission: Admission,
    waiting: &WaitQuery,
    before: impl FnOnce(&str),
) -> Result<(String, Option<Arc<ActiveRun>>), ProblemDetails> {
    let StartOrder { program, root, start } = order;
    let Some(engine) = app.runs.engine(&root) else {
        return Err(ProblemDetails::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no_project",
            "the loop's project is not there",
        ));
    };
    // A callback changes the row while the run is under way.
    let row = start.callback_url.is_none().then(|| RunRow {
        org: start.org.clone(),
        token: start.token.clone(),
        ..RunRow::default()
    });
    match engine.begin(&program, start).await? {
        Begin::New(started) => {
            let run_id = started.run_id().to_owned();
            before(&run_id);
            let reader = waiting.deltas.then(|| app.scheduler.readers.join(&run_id));
            let active = app.scheduler.start(ProgramOfRun { program, engine }, started, admission, row).await?;
            if let Some(reader) = reader {
                active.expect_reader(reader);
            }
            Ok((run_id, Some(active)))
        }
        Begin::Same(run_id) => Ok((run_id, None)),
    }
}

/// Checks that a caller may send agent requests.
pub(super) fn may_compose(app: &App, caller: &Caller) -> Result<(), ProblemDetails> {
    if app.folder().project.serve.agent_requests == AgentRequests::Off {
        let detail = "this server starts the folder's loops only: {\"loop\": NAME, \"input\": {...}}";
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, "agent_requests_off", detail));
    }
    caller.require(TokenScope::Compose)
}

/// The order of an agent request.
pub(super) async fn composed(app: &Arc<App>, document: String, start: Start) -> Result<StartOrder, ProblemDetails> {
    let app_of_job = Arc::clone(app);
    let compiled = move || -> Result<StartOrder, ProblemDetails> {
        request::check_allowed(&document::read(&Source::new(REQUEST, document.as_str())))?;
        let loaded = app_of_job.folder().compile(&document)?;
        Ok(StartOrder { program: loaded.program, root: loaded.root, start })
    };
    app.compiler.run_in_time(compiled).await?
}

/// The document of an agent request, and how it is started.
pub(super) fn of_request(text: &str) -> Result<(String, Start), ProblemDetails> {
    let (document, options) = request::split_options(text)?;
    let start = Start { session: options.session, callback_url: options.callback_url, ..Start::default() };
    Ok((document, start))
}

/// The name of a loop, and how it is started.
fn of_loop(request: LoopRequest) -> (String, Start) {
    let start = Start {
        input: request.input.map_or(Value::Null, Value::Object),
        session: request.session,
        timeout_ms: request.timeout_ms,
        callback_url: request.callback_url,
        previous_run_id: request.previous_run_id,
        ..Start::default()
    };
    (request.name, start)
}

/// The order of a loop of the folder.
pub(super) fn offered(app: &App, name: &str, start: Start) -> Result<StartOrder, ProblemDetails> {
    let folder = app.folder();
    let Some(offered) = folder.loops.get(name) else {
        let near = nearest(name, folder.loops.keys().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let detail = format!("there is no loop `{name}`{near}");
        return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, "no_such_loop", detail));
    };
    Ok(StartOrder { program: Arc::clone(&offered.program), root: offered.root.clone(), start })
}
