//! `POST /approvals/{run}`: decisions of a human about several steps of a workflow that wait for an approval. Each is a
//! decision of its own: one that is refused leaves the others as they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::status::with_location;
use super::step_decision::{ApprovalRequest, check_data};
use crate::drive::clock;
use crate::drive::engine::Resume;
use crate::engine::decision::written_decision::{DecisionSyntax, WrittenDecision};
use crate::engine::event::{Decided, DecisionRights};
use crate::engine::outcome::Status;
use crate::language::serving::TokenScope;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::{DOCUMENT_CHANGED, ItemizedResult, ProblemDetails};
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId, json};
use crate::serve::run_store::{DecidedRun, FollowedRun, ProgramOfRun};

/// The most decisions of a request.
const MAX_DECISIONS: usize = 500;
/// How often a decision is tried while another process takes the run up or leaves it.
const MAX_TRIES: u32 = 4;
/// How long one try waits for that.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// Decisions about steps of one run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalsRequest {
    /// One for each step, in the order in which they are taken.
    #[schemars(length(min = 1, max = 500))]
    pub decisions: Vec<StepApproval>,
    /// If the document has changed since the run started: `true` continues with the new one, `false` with the recorded one.
    #[serde(default)]
    pub new_document: Option<bool>,
}

/// A decision about one step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepApproval {
    /// The address of the step.
    pub at: String,
    /// Whether it is approved.
    pub approved: bool,
    /// What is said with the decision: `@__comment`.
    #[serde(default)]
    pub comment: Option<String>,
    /// What `@__approval_data` is, in place of the payload that was shown. It goes with a yes.
    #[serde(default)]
    pub data: Option<Map<String, Value>>,
    /// The hash of the step as it was shown: the decision is refused when it asks something else now.
    #[serde(default)]
    pub hash: Option<String>,
}

/// What became of the decisions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalsResult {
    /// The run's id.
    pub run_id: String,
    /// The same.
    pub agent_run_id: String,
    /// Where the run is now.
    #[schemars(with = "String")]
    pub status: Status,
    /// The addresses of the steps whose decisions were taken.
    pub taken: Vec<String>,
    /// The decisions that were not taken.
    pub refused: Vec<RefusedApproval>,
    /// The code of what ended the request early: a share was used up, or the token has expired or was revoked. The decisions after
    /// that were not tried. Send them again later, or with another token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
}

/// A decision that was not taken.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RefusedApproval {
    /// The address of its step.
    pub at: String,
    /// The code of the problem.
    pub code: &'static str,
    /// The problem, in a sentence.
    pub detail: String,
}

impl ApprovalsRequest {
    /// # Errors
    /// 400 for none, too many, an address that is no whole one, and two decisions about one step.
    fn check(&self) -> Result<(), ProblemDetails> {
        if !(1..=MAX_DECISIONS).contains(&self.decisions.len()) {
            return Err(ProblemDetails::bad_request(format!("`decisions` has from 1 to {MAX_DECISIONS} decisions")));
        }
        let mut known = BTreeSet::new();
        for StepApproval { at, .. } in &self.decisions {
            if at.contains('*') {
                return Err(ProblemDetails::bad_request("a decision is about one step: name its whole address"));
            }
            if !known.insert(at) {
                return Err(ProblemDetails::bad_request(format!("there are two decisions about the step {at:?}")));
            }
        }
        Ok(())
    }
}

impl StepApproval {
    fn decided(self, caller: &Caller, rights: DecisionRights) -> Result<Option<Decided>, ProblemDetails> {
        let Self { at, approved, comment, data, hash } = self;
        let plain = ApprovalRequest { approved, comment, data, hash, ..ApprovalRequest::default() };
        let decision = WrittenDecision { at: Some(at), ..plain.decision()? };
        decision.read(DecisionSyntax::Fields, caller.name.clone(), rights).map_err(ProblemDetails::bad_request)
    }
}

/// Decides about approvals, one after the other, and does not wait for what follows.
pub async fn approvals(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let row = app.runs.find(&caller, &run_id).await?;
    caller.rights(&row.loop_name)?;
    let asked: ApprovalsRequest = request::body(&body)?;
    asked.check()?;
    app.scheduler.accepts_runs()?;
    if row.status == Status::Quarantined {
        return Err(ProblemDetails::quarantined(&run_id));
    }
    let mut run =
        ApprovedRun { run: DecidedRun::new(row), new_document: asked.new_document, in_doubt: true, changed: None };
    let (mut taken, mut refused, mut stopped) = (Vec::new(), Vec::new(), None);
    for decision in asked.decisions {
        // Many decisions take a while: each is taken from a caller who may decide now.
        let now = match still(&app, &caller, &run.run.row.loop_name) {
            Ok(now) => now,
            Err(problem) => {
                stopped = Some(problem.code);
                break;
            }
        };
        let at = decision.at.clone();
        match run.decide(&app, &now, decision).await {
            Ok(()) => taken.push(at),
            Err(problem) if problem.status == StatusCode::TOO_MANY_REQUESTS => {
                stopped = Some(problem.code);
                break;
            }
            Err(ProblemDetails { code, detail, .. }) => refused.push(RefusedApproval { at, code, detail }),
        }
    }
    tracing::info!(run_id, taken = taken.len(), refused = refused.len(), by = caller.name.as_deref(), "decided");
    let status = app.runs.journal.find(&run_id).await?.map_or(Status::Running, |run| run.status);
    let result =
        ApprovalsResult { run_id: run_id.clone(), agent_run_id: run_id.clone(), status, taken, refused, stopped };
    let mut response = with_location(json(StatusCode::OK, &result), &run_id);
    response.extensions_mut().insert(ItemizedResult);
    Ok(response)
}

/// Who decides, and what the token may decide about now.
struct ApprovingCaller {
    caller: Caller,
    rights: DecisionRights,
}

/// The caller as the tokens of now have it.
///
/// # Errors
/// 401 or 403 when the token has expired, was revoked, or may not decide any more.
fn still(app: &App, caller: &Caller, loop_name: &str) -> Result<ApprovingCaller, ProblemDetails> {
    let caller = app.served().authorizer.check_again(caller, &[TokenScope::Decide], clock::wall_ms())?;
    let rights = caller.rights(loop_name)?;
    Ok(ApprovingCaller { caller, rights })
}

/// The run that the decisions of a request are about.
struct ApprovedRun {
    run: DecidedRun,
    new_document: Option<bool>,
    /// Whether the next decision may be one that no longer fits: then that is found out before the run is taken up for it.
    in_doubt: bool,
    /// Why no decision is taken before it is said which text of the document counts.
    changed: Option<ProblemDetails>,
}

impl ApprovedRun {
    async fn decide(
        &mut self,
        app: &Arc<App>,
        by: &ApprovingCaller,
        decision: StepApproval,
    ) -> Result<(), ProblemDetails> {
        if let Some(changed) = &self.changed {
            return Err(changed.clone());
        }
        let done = self.try_decide(app, by, decision).await;
        self.in_doubt = done.is_err();
        match &done {
            // The run has the new document from the first decision on that is taken.
            Ok(()) => self.new_document = self.new_document.filter(|is_new| !is_new),
            Err(problem) if problem.code == DOCUMENT_CHANGED => self.changed = Some(problem.clone()),
            Err(_) => {}
        }
        done
    }

    async fn try_decide(
        &mut self,
        app: &Arc<App>,
        by: &ApprovingCaller,
        decision: StepApproval,
    ) -> Result<(), ProblemDetails> {
        let ApprovingCaller { caller, rights } = by;
        let Self { run, new_document, in_doubt, .. } = self;
        if decision.data.is_some() {
            check_data(app, run, &decision.at).await?;
        }
        let decided = decision.decided(caller, *rights)?;
        // By a new document, what a step asks may be something else.
        if let Some(decided) = decided.as_ref().filter(|_| *in_doubt && *new_document != Some(true)) {
            let FollowedRun { program: ProgramOfRun { program, engine }, run: read } = app.runs.read_on(run).await?;
            engine.fits_as_it_is(program, &read.state, decided).await?;
        }
        let resume = Resume { decided, ..Resume::default() };
        let owner = Owner::from(caller);
        let run_id = run.row.run_id.clone();
        let mut tries = 1;
        loop {
            match app.scheduler.decide(run, resume.clone(), *new_document, &owner).await {
                Err(problem) if problem.is_driven_elsewhere() && tries < MAX_TRIES => {
                    tries += 1;
                    app.scheduler.wait(&run_id, None, Some(TRY_TIMEOUT)).await?;
                    app.runs.read_on(run).await?;
                }
                done => return done.map(drop),
            }
        }
    }
}
