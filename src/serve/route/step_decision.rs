//! `POST /approvals/{run}/{at}` and `POST /forms/{run}/{at}/submit`: the decision of a human about one step of a
//! workflow, in the bodies of Hyphen.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::workflow;
use crate::drive::engine::Resume;
use crate::engine::decision::written_decision::{DecisionSyntax, WrittenDecision};
use crate::engine::event::DecisionRights;
use crate::engine::flow::waiting_steps;
use crate::engine::outcome::Status;
use crate::engine::question::StepQuestion;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, WaitQuery};
use crate::serve::run_store::DecidedRun;

/// The run's id, and the address of the step in it.
type StepPath = (String, String);

/// The `type` of a step that asks for an approval.
const APPROVAL: &str = "PbotApproval";

/// A decision about an approval, as older and newer clients of Hyphen write it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// Whether it is approved.
    pub approved: bool,
    /// What is said with the decision: `@__comment`.
    #[serde(default)]
    pub comment: Option<String>,
    /// The same, under its older name.
    #[serde(default)]
    pub comments: Option<String>,
    /// What `@__approval_data` is, in place of the payload that was shown. It goes with a yes.
    #[serde(default)]
    pub data: Option<Map<String, Value>>,
    /// The hash of the step as it was shown: the decision is refused when it asks something else now.
    #[serde(default)]
    pub hash: Option<String>,
    /// Which pause is decided, from 1: the decision is refused when there is a newer one.
    #[serde(default)]
    pub pause: Option<u32>,
    /// If the document has changed since the run started: `true` continues with the new one, `false` with the recorded one.
    #[serde(default)]
    pub new_document: Option<bool>,
}

impl ApprovalRequest {
    pub(super) fn decision(self) -> Result<WrittenDecision, ProblemDetails> {
        let Self { approved, comment, comments, data, hash, pause, .. } = self;
        if comment.is_some() && comments.is_some() && comment != comments {
            let detail = "`comment` and `comments` are two names of one field: write one of them";
            return Err(ProblemDetails::bad_request(detail));
        }
        let (comment, data) = (comment.or(comments), data.filter(|data| !data.is_empty()));
        let plain = WrittenDecision { hash, pause, ..WrittenDecision::default() };
        match (approved, data) {
            (true, None) => Ok(WrittenDecision { approve: true, comment, ..plain }),
            (true, Some(data)) => Ok(WrittenDecision { edit: Some(Value::Object(data)), comment, ..plain }),
            (false, None) => Ok(WrittenDecision { deny: true, reason: comment.clone(), comment, ..plain }),
            (false, Some(_)) => {
                Err(ProblemDetails::bad_request("`data` goes with `\"approved\": true`: with a no, write a `comment`"))
            }
        }
    }
}

/// A step that somebody decides about.
struct DecidedStep {
    run: DecidedRun,
    rights: DecisionRights,
    at: String,
    new_document: Option<bool>,
}

impl DecidedStep {
    /// The step that the path names, if the caller may decide about it.
    async fn find(app: &App, caller: &Caller, path: StepPath) -> Result<Self, ProblemDetails> {
        let (run_id, at) = path;
        if at.contains('*') {
            return Err(ProblemDetails::bad_request("a decision is about one step: name its whole address"));
        }
        let run = app.runs.find(caller, &run_id).await?;
        let rights = caller.rights(&run.loop_name)?;
        Ok(Self { run: DecidedRun::new(run), rights, at, new_document: None })
    }

    /// What waits there; none when nothing does, which the decision then reports.
    async fn question(&mut self, app: &App) -> Result<Option<StepQuestion>, ProblemDetails> {
        question(app, &mut self.run, &self.at).await
    }

    /// Resumes the run with the decision, and waits for its end unless the query says otherwise.
    async fn decide(
        self,
        app: &Arc<App>,
        caller: &Caller,
        decision: WrittenDecision,
        waiting: WaitQuery,
    ) -> Result<Response, ProblemDetails> {
        let Self { mut run, rights, at, new_document } = self;
        let run_id = run.row.run_id.clone();
        let run_id = run_id.as_str();
        let decision = WrittenDecision { at: Some(at.clone()), ..decision };
        let decided = decision.read(DecisionSyntax::Fields, caller.name.clone(), rights);
        let decided = decided.map_err(ProblemDetails::bad_request)?;
        app.scheduler.accepts_runs()?;
        if run.row.status == Status::Quarantined {
            return Err(ProblemDetails::quarantined(run_id));
        }
        let resume = Resume { decided, ..Resume::default() };
        let owner = Owner::from(caller);
        let (active, waiting) = app.scheduler.decide_for(&mut run, resume, new_document, &owner, waiting).await?;
        workflow::answer(app, run_id, active, &waiting).await
    }
}

/// What waits at an address; none when nothing does.
async fn question(app: &App, run: &mut DecidedRun, at: &str) -> Result<Option<StepQuestion>, ProblemDetails> {
    let read = app.runs.read(run).await?;
    Ok(waiting_steps(&read.run.state).into_iter().find(|question| question.at == at))
}

/// Checks that a decision about the step at an address may have data.
///
/// # Errors
/// 400 for a step of another type.
pub(super) async fn check_data(app: &App, run: &mut DecidedRun, at: &str) -> Result<(), ProblemDetails> {
    if question(app, run, at).await?.is_none_or(|question| question.action == APPROVAL) {
        return Ok(());
    }
    let detail = format!(
        "`data` is for a step of type `{APPROVAL}`. To call an action with another input, send `edit` with `at` to \
         POST /agents/{}/resume",
        run.row.run_id
    );
    Err(ProblemDetails::bad_request(detail))
}

/// Decides about an approval.
pub async fn approval(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<StepPath>,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&uri)?;
    let mut step = DecidedStep::find(&app, &caller, path).await?;
    let asked: ApprovalRequest = request::body(&body)?;
    step.new_document = asked.new_document;
    let decision = asked.decision()?;
    if decision.edit.is_some() {
        check_data(&app, &mut step.run, &step.at).await?;
    }
    step.decide(&app, &caller, decision, waiting).await
}

/// Fills in a form.
pub async fn form(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<StepPath>,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&uri)?;
    let mut step = DecidedStep::find(&app, &caller, path).await?;
    let values: Map<String, Value> = request::body(&body)?;
    request::has_no_key_twice(&body)?;
    let keys = step.question(&app).await?.map(|question| question.expected_keys).unwrap_or_default();
    let decision = WrittenDecision { answer: Some(filled_in(values, &keys).to_string()), ..WrittenDecision::default() };
    step.decide(&app, &caller, decision, waiting).await
}

/// What was filled in: the body itself, or its only member `data`, unless that is the one key of the form.
fn filled_in(mut values: Map<String, Value>, keys: &[String]) -> Value {
    let is_key = matches!(keys, [only] if only == "data");
    match values.get("data") {
        Some(Value::Object(_)) if values.len() == 1 && !is_key => values.remove("data").unwrap_or_default(),
        _ => Value::Object(values),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_is_its_body_or_its_data() {
        let filled = |body: Value, keys: &[&str]| {
            let Value::Object(body) = body else { panic!("an object") };
            filled_in(body, &keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(filled(json!({ "a": 1 }), &["a"]), json!({ "a": 1 }));
        assert_eq!(filled(json!({ "data": { "a": 1 } }), &["a"]), json!({ "a": 1 }));
        assert_eq!(filled(json!({ "data": { "a": 1 } }), &["data"]), json!({ "data": { "a": 1 } }));
        assert_eq!(filled(json!({ "data": 1 }), &["a"]), json!({ "data": 1 }));
        assert_eq!(filled(json!({ "data": {}, "a": 1 }), &["a"]), json!({ "data": {}, "a": 1 }));
    }
}
