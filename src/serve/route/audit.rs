//! `GET /audit`: what was done with the runs, and by whom.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::journal::{AuditAction, AuditFilter, AuditLine};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{json, query};
use crate::serve::run_query::moment;
use crate::trace::units::rfc3339;

/// The most lines of a page.
const MAX_PAGE_LINES: usize = 500;
/// The lines of a page when nothing is said.
const DEFAULT_PAGE_LINES: usize = 100;

/// Which lines.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditQuery {
    /// At this time or later, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Before this time, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// About this run.
    pub run: Option<String>,
    /// By the token of this name.
    pub token: Option<String>,
    /// Of this kind.
    pub action: Option<AuditAction>,
    /// The most lines, 1 to 500; 100 by default.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<usize>,
    /// The next page: the `next_cursor` of the page before.
    pub cursor: Option<u64>,
}

/// What was done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditList {
    /// The lines, the newest first.
    pub audit: Vec<AuditRow>,
    /// What `?cursor=` takes for the next page; left out on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<u64>,
}

/// Something that was done, or refused.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditRow {
    /// When, RFC 3339.
    pub at: String,
    /// What was done.
    pub action: AuditAction,
    /// Who did it: the name of a token, or a user of the machine. Left out for a server without tokens, and for the server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The run that it was done to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_run_id: Option<String>,
    /// The loop of the run, or the loop that was switched.
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub loop_name: Option<String>,
    /// The organisation of the run, or of who was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What more there is to say: the decision and its step, the limit, the code and the route of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How many times, in the same minute, it was refused; and how many runs were deleted.
    pub times: u64,
}

impl From<AuditLine> for AuditRow {
    fn from(line: AuditLine) -> Self {
        Self {
            at: rfc3339(line.entry.at_ms),
            action: line.entry.action,
            by: line.entry.actor,
            agent_run_id: line.run_id,
            loop_name: line.loop_name,
            org: line.org,
            detail: line.entry.detail,
            times: line.times,
        }
    }
}

/// The lines of the caller's organisation, the newest first; of all for who sees the runs of all.
pub async fn audit(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let asked: AuditQuery = query(&uri)?;
    let limit = asked.limit.unwrap_or(DEFAULT_PAGE_LINES);
    if !(1..=MAX_PAGE_LINES).contains(&limit) {
        return Err(ProblemDetails::bad_request(format!("`limit` is from 1 to {MAX_PAGE_LINES}")));
    }
    let filter = AuditFilter {
        since_ms: asked.since.as_deref().map(moment).transpose()?,
        until_ms: asked.until.as_deref().map(moment).transpose()?,
        org: caller.seen_org(),
        run_id: asked.run,
        actor: asked.token,
        action: asked.action,
        before: asked.cursor,
        after: None,
        limit: limit + 1,
    };
    let mut lines = app.runs.journal.audit(filter).await?;
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next_cursor = lines.last().filter(|_| more).map(|line| line.id);
    let audit = lines.into_iter().map(AuditRow::from).collect();
    Ok(json(StatusCode::OK, &AuditList { audit, next_cursor }))
}
