//! `POST /agents/{id}/resume`: the decision of a human about a run that waits.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::status::answer;
use crate::drive::engine::Resume;
use crate::engine::decision::written_decision::{DecisionSyntax, WrittenDecision};
use crate::engine::event::{Allowance, Decided, DecisionRights, LimitsRaised, RaisedLimits};
use crate::engine::outcome::Status;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId, WaitQuery};
use crate::serve::run_store::DecidedRun;

/// A human's decision: one of `answer`, `approve`, `deny`, `edit`, `happened`, `fail`, `retry` and `resume`; or higher limits,
/// with a decision if the run waits for one.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResumeRequest {
    /// The decision.
    #[serde(flatten)]
    pub decision: WrittenDecision,
    /// `true`: a quarantined run is resumed.
    pub resume: Option<bool>,
    /// The iterations of the whole run, above those of the document. A run that ended by them continues.
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u32>,
    /// The active time of the whole run in milliseconds, in the same way.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// What the whole run may spend, in the same way.
    pub budget: Option<RaisedBudget>,
    /// If the document has changed since: `true` continues with the new one, `false` with the recorded one.
    pub new_document: Option<bool>,
    /// `true`: a run that a limit ended continues although the steps of its `on_failure` have run.
    pub after_on_failure: bool,
}

/// The limits of a budget that are raised.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RaisedBudget {
    /// Tokens, read and written together.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub cost_usd: Option<f64>,
}

impl ResumeRequest {
    /// The limits to raise, if any.
    fn raised(&mut self, by: Option<String>) -> Option<LimitsRaised> {
        let RaisedBudget { tokens, cost_usd } = self.budget.take().unwrap_or_default();
        let (max_iterations, timeout_ms) = (self.max_iterations.take(), self.timeout_ms.take());
        let limits = RaisedLimits { max_iterations, timeout_ms, budget: Allowance { tokens, cost_usd } };
        (!limits.is_none()).then_some(LimitsRaised { limits, by, bound: None })
    }

    /// The decision; none for a run that only waits for its resumption, or for higher limits.
    pub(crate) fn decided(self, by: Option<String>, rights: DecisionRights) -> Result<Option<Decided>, ProblemDetails> {
        let decision = WrittenDecision { resume: self.resume == Some(true), ..self.decision };
        decision.read(DecisionSyntax::Fields, by, rights).map_err(ProblemDetails::bad_request)
    }
}

/// Resumes a run with a decision, and waits for its end unless the query says otherwise.
pub async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&uri)?;
    let run = app.runs.find(&caller, &run_id).await?;
    let rights = caller.rights(&run.loop_name)?;
    let mut written = request::decision_body::<ResumeRequest>(&body)?;
    let (new_document, after_on_failure) = (written.new_document.take(), written.after_on_failure);
    let raised = written.raised(caller.name.clone());
    let is_meant = written.resume == Some(true);
    // Higher limits need no decision.
    let decided = match &raised {
        Some(_) if written.decision == WrittenDecision::default() => None,
        _ => written.decided(caller.name.clone(), rights)?,
    };
    if decided.is_none() || raised.is_some() {
        caller.may_resume(&run.loop_name)?;
    }
    app.scheduler.accepts_runs()?;
    if run.status == Status::Quarantined && !is_meant {
        return Err(ProblemDetails::quarantined(&run_id));
    }
    let looks = new_document == Some(true) && run.status == Status::Paused;
    if decided.is_none() && raised.is_none() && !looks && run.status != Status::Quarantined {
        let detail = format!("`resume` is for a run that is quarantined; this one is {}", run.status.word());
        return Err(ProblemDetails::conflict("refused", detail));
    }
    let resume = Resume { decided, raised, after_on_failure, ..Resume::default() };
    let (mut run, owner) = (DecidedRun::new(run), Owner::from(&caller));
    let (active, waiting) = app.scheduler.decide_for(&mut run, resume, new_document, &owner, waiting).await?;
    answer(&app, &run_id, active, &waiting).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_of_a_decision_is_answered_with_those_that_there_are() {
        let detail = |body: &[u8]| request::decision_body::<ResumeRequest>(body).unwrap_err().detail;
        let unknown = detail(br#"{"aprove":true}"#);
        let what = "the body can't be read: unknown field `aprove`, expected one of `answer`, `approve`, `deny`, ";
        assert!(unknown.starts_with(what), "{unknown}");
        assert!(unknown.contains("`max_iterations`") && unknown.contains(" at line 1 column "), "{unknown}");
        let nested = detail(br#"{"budget":{"usd":1}}"#);
        assert_eq!(nested.matches("expected").count(), 1, "{nested}");
    }
}
