//! `POST /agents/{id}/rerun`: starts a new run with the input of an earlier one.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::execute::{self, StartOrder};
use super::status::answer;
use crate::drive::start::Start;
use crate::drive::{fold, rerun};
use crate::engine::event::Event;
use crate::language::serving::TokenScope;
use crate::serve::app::App;
use crate::serve::authorizer::{Caller, OrgReach};
use crate::serve::folder::REQUEST;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId, WaitQuery};
use crate::serve::start_key::{StartKey, StartRequest};

/// Which document the new run has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunDocument {
    /// That of the earlier run, as it was recorded.
    #[default]
    Recorded,
    /// That which the folder has now.
    Current,
}

impl RerunDocument {
    fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Current => "current",
        }
    }
}

/// How to start the new run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RerunRequest {
    /// Which document it has.
    pub document: RerunDocument,
}

/// Starts a new run, and waits for its end unless the query says otherwise.
pub async fn rerun(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    parts: Parts,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&parts.uri)?;
    let run = app.runs.find(&caller, &run_id).await?;
    rerun::may_begin_with(&run)?;
    if caller.require(TokenScope::Compose).is_err() {
        caller.may_run(&run.loop_name)?;
    }
    let org = if caller.reach == OrgReach::All { run.org.clone() } else { caller.org.clone() };
    let key = StartKey::of(&parts.headers, org.as_deref())?;
    let RerunRequest { document } =
        if body.is_empty() { RerunRequest::default() } else { request::body::<RerunRequest>(&body)? };
    app.scheduler.accepts_runs()?;
    let request = StartRequest::Rerun { name: run.loop_name, document: document.word() };
    let mut asked = Start { rerun_of: Some(run_id.clone()), ..Start::default() };
    if let Some(run_id) = StartKey::applied(key, &app, &caller, &request, &mut asked).await? {
        return answer(&app, &run_id, None, &waiting).await;
    }
    // What the new run gets of the earlier one follows from that: it is no part of the request.
    asked.identify();
    let Start { run_id: new_id, key, request: asked_for, identity, .. } = asked;
    let events = app.runs.events(&run_id).await?;
    let mut order = order(&app, &caller, &run_id, &events, document).await?;
    app.switches.refuse(&*app.runs.journal, &order.program.name).await?;
    let admission = app.scheduler.admit(Owner::from(&caller))?;
    (order.start.run_id, order.start.key) = (new_id, key);
    (order.start.request, order.start.identity) = (asked_for, identity);
    order.start.within = request::trace_context(&parts.headers);
    (order.start.org, order.start.token) = (org, caller.name);
    execute::begin(&app, order, admission, &waiting).await
}

async fn order(
    app: &Arc<App>,
    caller: &Caller,
    run_id: &str,
    events: &[Event],
    document: RerunDocument,
) -> Result<StartOrder, ProblemDetails> {
    let recorded = app.runs.program(run_id, events).await?.program;
    let start = rerun::start(run_id, events, Some(&recorded))?;
    let main = fold::documents(events).and_then(|documents| documents.first());
    if let Some(request) = main.filter(|main| main.file == REQUEST) {
        // What such a request may contain is decided now, and not when the earlier run was started.
        execute::may_compose(app, caller)?;
        return execute::composed(app, request.text.to_string(), start).await;
    }
    let file = main.map(|main| main.file.as_str());
    let folder = app.folder();
    let offered = folder.loops.values();
    let mut offered = offered.filter(|offered| offered.program.sources.first().map(|source| &*source.name) == file);
    let Some(offered) = offered.next() else {
        let detail = "the loop of this run is not one of the folder any more";
        return Err(ProblemDetails::conflict("no_such_loop", detail));
    };
    let is_same = fold::same_document(&offered.program, events).is_ok();
    if is_same || document == RerunDocument::Current {
        caller.may_run(&offered.program.name)?;
        return Ok(StartOrder { program: Arc::clone(&offered.program), root: offered.root.clone(), start });
    }
    // The scope `run` starts the loops as the folder has them.
    if caller.require(TokenScope::Compose).is_err() {
        let detail = "the loop has changed since this run started: send {\"document\": \"current\"} to start the present \
                      one. The recorded one needs a token with the scope `compose`";
        return Err(ProblemDetails::conflict("document_changed", detail));
    }
    Ok(StartOrder { program: recorded, root: offered.root.clone(), start })
}
