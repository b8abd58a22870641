//! The routes, a file each, and the scopes that they need.

mod agents;
mod answer;
mod answer_page;
mod approvals;
mod audit;
mod bulk;
mod cancel;
mod check;
mod document;
mod events;
mod execute;
mod handler;
mod health;
mod hook;
mod loops;
mod mcp;
mod metrics;
mod openapi;
mod outline;
mod outside_event;
mod page;
mod release;
mod rerun;
mod resume;
mod retry;
mod status;
mod step_decision;
mod switch;
mod trace;
mod usage;
mod workers;
mod workflow;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;

use self::handler::{deleted, posted, read};
use super::app::App;
use super::middleware;
use super::problem::ProblemDetails;
use crate::language::serving::TokenScope;

pub use agents::AgentsQuery;
pub use answer::AnswerRequest;
pub use approvals::{ApprovalsRequest, ApprovalsResult};
pub use audit::{AuditList, AuditQuery};
pub use bulk::{BulkRequest, BulkResult};
pub use cancel::CancelQuery;
pub use document::DocumentDifference;
pub use events::EventsQuery;
pub use execute::LoopRequest;
pub(super) use execute::{StartOrder, started};
pub use hook::TakenDelivery;
pub use loops::LoopList;
pub use outline::WorkflowOutline;
pub use outside_event::{EventRequest, TakenEvent};
pub use release::{ReleaseRequest, ReleasedRuns};
pub use rerun::RerunRequest;
pub use resume::ResumeRequest;
pub use retry::RetryRequest;
pub use status::StatusQuery;
pub use step_decision::ApprovalRequest;
pub use switch::{SwitchRequest, SwitchedLoop};
pub use usage::UsageQuery;
pub use workers::WorkerList;
pub use workflow::{AcceptedRun, WorkflowRequest, WorkflowStatus};

/// The scopes that may start runs. The kind of run decides which of the two is needed.
const START_SCOPES: &[TokenScope] = &[TokenScope::Run, TokenScope::Compose];
/// The scopes that may cancel runs: who starts something may end it.
const CANCEL_SCOPES: &[TokenScope] = &[TokenScope::Run, TokenScope::Compose, TokenScope::Cancel, TokenScope::Admin];

/// The scopes that may do something with many runs: which of them is needed follows from what is done.
const BULK_SCOPES: &[TokenScope] =
    &[TokenScope::Decide, TokenScope::Cancel, TokenScope::Run, TokenScope::Compose, TokenScope::Admin];

/// The scopes that may read what is about the whole store: whether they are enough follows from the organisations of the tokens.
const STORE_SCOPES: &[TokenScope] = &[TokenScope::Read, TokenScope::Metrics];

/// The scopes that may look at the documents of a run: who decides about it, or starts it again.
const DOCUMENT_SCOPES: &[TokenScope] = &[TokenScope::Decide, TokenScope::Run];

/// Routes that belong together: what a program around the server may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteGroup {
    /// Starts runs: `/agents/execute`, `/workflows/NAME/execute`, reruns.
    Start,
    /// Shows runs: lists, status, traces, events, documents, usage, the audit.
    Runs,
    /// Decides about runs, cancels, retries and resumes them.
    Decide,
    /// The links that posted pauses are answered with.
    Answers,
    /// Webhooks, and events that runs wait for.
    Events,
    /// The loops as tools of an MCP server.
    Mcp,
    /// The loops and the processes that serve them: lists, switches, checks of documents.
    Loops,
    /// `/metrics`.
    Metrics,
    /// `/healthz` and `/readyz`.
    Health,
    /// `/openapi.json`, which describes all routes.
    OpenApi,
    /// The page with the runs. It asks the routes of `Runs` and `Decide`.
    Page,
}

impl RouteGroup {
    /// All groups.
    pub const ALL: [Self; 11] = [
        Self::Start,
        Self::Runs,
        Self::Decide,
        Self::Answers,
        Self::Events,
        Self::Mcp,
        Self::Loops,
        Self::Metrics,
        Self::Health,
        Self::OpenApi,
        Self::Page,
    ];

    fn routes(self, app: &Arc<App>) -> Router<Arc<App>> {
        let guarded = |scopes: &'static [TokenScope], route: MethodRouter<Arc<App>>| {
            route.route_layer(from_fn_with_state((Arc::clone(app), scopes), middleware::admitted))
        };
        let all = Router::new();
        match self {
            Self::Start => all
                .route("/agents/execute", guarded(START_SCOPES, posted(execute::execute)))
                .route("/agents/{id}/rerun", guarded(START_SCOPES, posted(rerun::rerun)))
                .route("/workflows/{name}/execute", guarded(&[TokenScope::Run], posted(workflow::execute))),
            Self::Runs => all
                .route("/agents", guarded(&[TokenScope::Read], read(agents::agents)))
                .route("/usage", guarded(&[TokenScope::Read], read(usage::usage)))
                .route("/agents/{id}/status", guarded(&[TokenScope::Read], read(status::status)))
                .route("/agents/{id}/trace", guarded(&[TokenScope::Read], read(trace::trace)))
                .route("/agents/{id}/document", guarded(DOCUMENT_SCOPES, read(document::document)))
                .route("/agents/{id}/outline", guarded(&[TokenScope::Read], read(outline::outline)))
                .route("/agents/{id}/events", guarded(&[TokenScope::Read], read(events::events)))
                .route("/runs/{run}/status", guarded(&[TokenScope::Read], read(workflow::status)))
                .route("/audit", guarded(&[TokenScope::Read], read(audit::audit))),
            Self::Decide => all
                .route("/agents/{id}/resume", guarded(&[TokenScope::Decide], posted(resume::resume)))
                .route("/agents/bulk", guarded(BULK_SCOPES, posted(bulk::bulk)))
                .route("/agents/release", guarded(&[TokenScope::Decide], posted(release::release)))
                .route("/agents/{id}/retry", guarded(&[TokenScope::Decide], posted(retry::retry)))
                .route("/agents/{id}", guarded(CANCEL_SCOPES, deleted(cancel::cancel)))
                .route("/approvals/{run}", guarded(&[TokenScope::Decide], posted(approvals::approvals)))
                .route("/approvals/{run}/{at}", guarded(&[TokenScope::Decide], posted(step_decision::approval)))
                .route("/forms/{run}/{at}/submit", guarded(&[TokenScope::Decide], posted(step_decision::form))),
            // Its token is its own credential.
            Self::Answers => all.route("/agents/{id}/answer", read(answer_page::shown).merge(posted(answer::answer))),
            Self::Events => all
                // The signature is its credential.
                .route("/hooks/{name}", posted(hook::delivered))
                .route("/events", guarded(&[TokenScope::Event], posted(outside_event::event))),
            Self::Mcp => all.route("/mcp", guarded(START_SCOPES, posted(mcp::message))),
            Self::Loops => all
                .route("/loops", guarded(&[TokenScope::Read], read(loops::loops)))
                .route("/workers", guarded(STORE_SCOPES, read(workers::workers)))
                .route("/loops/{name}/disable", guarded(&[TokenScope::Admin], posted(switch::disable)))
                .route("/loops/{name}/enable", guarded(&[TokenScope::Admin], posted(switch::enable)))
                .route("/check", guarded(&[TokenScope::Read], posted(check::check))),
            Self::Metrics => all.route("/metrics", guarded(STORE_SCOPES, read(metrics::metrics))),
            Self::Health => all.route("/healthz", read(health::alive)).route("/readyz", read(health::ready)),
            Self::OpenApi => all.route("/openapi.json", read(openapi::openapi)),
            Self::Page => page::routes(),
        }
    }
}

/// The routes of a server.
pub fn router(app: &Arc<App>, groups: &[RouteGroup]) -> Router {
    let wanted = RouteGroup::ALL.into_iter().filter(|group| groups.contains(group));
    wanted
        .fold(Router::new(), |all, group| all.merge(group.routes(app)))
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        // `middleware::admitted` limits bodies; axum's own limit of 2 MB would be a second one.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(app), middleware::outer))
        .with_state(Arc::clone(app))
}

async fn nothing() -> Response {
    ProblemDetails::new(
        StatusCode::NOT_FOUND,
        "no_such_route",
        "there is no such route; `/openapi.json` lists the routes",
    )
    .into_response()
}

async fn other_method() -> Response {
    let detail = "this route takes another method; `/openapi.json` lists the methods";
    ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "other_method", detail).into_response()
}
