//! `POST /hooks/{name}`: a delivery of another service, which starts the workflows that have a webhook of this name. Its
//! signature is the only credential: without a right one, the answer says nothing of the folder, and nothing of the body is read.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::json;

use super::execute::{StartOrder, started};
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::drive::start::Start;
use crate::engine::event::{DecisionRights, WebhookDelivery};
use crate::language::webhook::{HmacSettings, WebhookScheme};
use crate::program::webhook::{Delivery, DeliveryOutcome, FlowWebhook};
use crate::serve::app::App;
use crate::serve::folder::{Folder, ServedLoop};
use crate::serve::middleware::whole_body;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, WaitQuery};
use crate::serve::start_key::StartKey;
use crate::serve::webhook::{
    AddressTest, NotVerified, REPLAY_WINDOW_SECONDS, SignatureScheme, address_test, body_of, headers_of, id_of,
    is_form, verify,
};

/// What became of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TakenDelivery {
    /// Its id: that of the service, or the digest of its body.
    pub delivery: String,
    /// The runs of it: one for each workflow that has the webhook and whose `when` holds.
    pub runs: Vec<DeliveredRun>,
    /// The workflows whose `when` does not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

/// A run of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveredRun {
    /// The name of the workflow.
    pub workflow: String,
    /// The id of the run.
    pub agent_run_id: String,
    /// Whether an earlier delivery of the same id started it.
    pub known: bool,
}

/// 401: the same for a name that no webhook has, and for a signature that is not right.
fn unverified() -> ProblemDetails {
    let detail = "no webhook of this name has this signature";
    ProblemDetails::new(StatusCode::UNAUTHORIZED, "unverified", detail)
}

/// Takes a delivery. The answer comes once each run is in the store.
pub async fn delivered(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    mut request: Request,
) -> Result<Response, ProblemDetails> {
    app.scheduler.accepts_runs()?;
    let headers = request.headers().clone();
    let bytes = whole_body(&app, &mut request, app.body.bytes).await?;
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let folder = app.folder();
    let hooked = HookedWorkflows::of(&folder, &name);
    let outcome = taken(&app, &hooked, &Received { headers, bytes }).await;
    if let Err(problem) = &outcome {
        let outcome = if problem.status == StatusCode::UNAUTHORIZED { "unverified" } else { "refused" };
        app.metrics.delivered(hooked.label(), outcome);
    }
    outcome
}

/// A delivery as it came.
struct Received {
    headers: HeaderMap,
    bytes: Bytes,
}

/// The workflows with a webhook of a name, and how all of them are verified.
struct HookedWorkflows<'f> {
    name: &'f str,
    all: Vec<HookedWorkflow<'f>>,
}

/// A workflow with a webhook.
#[derive(Clone, Copy)]
struct HookedWorkflow<'f> {
    name: &'f str,
    offered: &'f ServedLoop,
    webhook: &'f FlowWebhook,
}

impl<'f> HookedWorkflows<'f> {
    fn of(folder: &'f Folder, name: &'f str) -> Self {
        let names = folder.hooks.get(name).into_iter().flatten();
        let hooked = |workflow: &'f String| {
            let offered = folder.loops.get(workflow)?;
            let webhook = offered.program.as_flow()?.webhook.as_ref()?;
            Some(HookedWorkflow { name: workflow, offered, webhook })
        };
        Self { name, all: names.filter_map(hooked).collect() }
    }

    /// Its name in metrics; none for one that no webhook has.
    fn label(&self) -> Option<&'f str> {
        (!self.all.is_empty()).then_some(self.name)
    }
}

async fn taken(app: &Arc<App>, hooked: &HookedWorkflows<'_>, received: &Received) -> Result<Response, ProblemDetails> {
    let Received { headers, bytes } = received;
    let none = HmacSettings::default();
    let first = hooked.all.first();
    let scheme = first.map_or_else(|| SignatureScheme::of_settings(&none), |first| SignatureScheme::of(first.webhook));
    verified(app, hooked, &scheme, received).await?;
    let Some(first) = first else { return Err(unverified()) };
    let body = body_of(headers, bytes)?;
    let name = hooked.name;
    match address_test(&scheme, headers, &body) {
        Some(AddressTest::Challenge(challenge)) => {
            tracing::info!(webhook = name, "the service tried the address");
            app.metrics.delivered(Some(name), "tried");
            return Ok(request::json(StatusCode::OK, &json!({ "challenge": challenge })));
        }
        Some(AddressTest::Ping) => {
            tracing::info!(webhook = name, "the service tried the address");
            app.metrics.delivered(Some(name), "tried");
            return Ok(request::json(
                StatusCode::OK,
                &json!({ "delivery": id_of(&scheme, headers, &body, bytes), "runs": [] }),
            ));
        }
        None => {}
    }
    let id = id_of(&scheme, headers, &body, bytes);
    let delivery = Delivery::new(body, headers_of(headers), clock::rfc3339(clock::wall_ms()));
    let mut taken = TakenDelivery { delivery: id, runs: Vec::new(), skipped: Vec::new() };
    let mut refused: Vec<ProblemDetails> = Vec::new();
    for workflow in &hooked.all {
        match start(app, *workflow, &delivery, &taken.delivery, bytes.len()).await {
            Ok(Some(run)) => taken.runs.push(run),
            Ok(None) => taken.skipped.push(workflow.name.to_owned()),
            Err(problem) => {
                let (code, id) = (problem.code, &taken.delivery);
                tracing::warn!(webhook = name, delivery = id, "loop" = workflow.name, code, "a delivery starts no run");
                refused.push(problem);
            }
        }
    }
    // The service sends it again, and what was started stays started: the most passing reason counts.
    if let Some(problem) = refused.into_iter().max_by_key(|problem| problem.status != StatusCode::UNPROCESSABLE_ENTITY)
    {
        return Err(problem);
    }
    // Slack shows the answer to a command to the person who gave it.
    if first.webhook.scheme == WebhookScheme::Slack && is_form(headers) {
        return Ok(StatusCode::OK.into_response());
    }
    Ok(request::json(StatusCode::ACCEPTED, &taken))
}

/// Whether the signature is right. The log says why it is not, for a name that there is.
async fn verified(
    app: &App,
    hooked: &HookedWorkflows<'_>,
    scheme: &SignatureScheme<'_>,
    received: &Received,
) -> Result<(), ProblemDetails> {
    let first = hooked.all.first();
    let engine = first.and_then(|first| app.runs.engine(&first.offered.root));
    let secrets = match (first, engine) {
        (Some(first), Some(engine)) => engine.secrets_of(&first.webhook.secrets).await,
        _ => Vec::new(),
    };
    let keys: Vec<&[u8]> = secrets.iter().map(|secret| secret.expose_secret().as_bytes()).collect();
    let now_s = clock::wall_ms().div_euclid(1_000);
    let Err(why) = verify(scheme, &received.headers, &received.bytes, &keys, now_s) else { return Ok(()) };
    if first.is_some() {
        tracing::warn!(webhook = hooked.name, "a delivery is not taken: {}", why.why());
    }
    match why {
        NotVerified::Stale(signed_s) => {
            let away = now_s.abs_diff(signed_s);
            let detail = format!(
                "the delivery was signed {away} seconds away from now, and at most {REPLAY_WINDOW_SECONDS} are accepted: it \
                 was sent again, or a clock is wrong"
            );
            Err(ProblemDetails::new(StatusCode::UNAUTHORIZED, "stale_delivery", detail))
        }
        NotVerified::Unsigned | NotVerified::Undated | NotVerified::Wrong => Err(unverified()),
    }
}

/// Starts the run of a workflow; none where its `when` does not hold.
async fn start(
    app: &Arc<App>,
    workflow: HookedWorkflow<'_>,
    delivery: &Delivery,
    id: &str,
    bytes: usize,
) -> Result<Option<DeliveredRun>, ProblemDetails> {
    let HookedWorkflow { name, offered, webhook } = workflow;
    let run = |agent_run_id: String, known: bool| {
        app.metrics.delivered(Some(&webhook.name), if known { "known" } else { "started" });
        if known {
            tracing::info!(webhook = webhook.name, delivery = id, run_id = agent_run_id, "a delivery came again");
        } else {
            tracing::info!(webhook = webhook.name, delivery = id, run_id = agent_run_id, "started by a webhook");
        }
        Ok(Some(DeliveredRun { workflow: name.to_owned(), agent_run_id, known }))
    };
    let key = StartKey::of_delivery(webhook.org.as_deref(), &webhook.name, name, id);
    if let Some(there) = app.runs.journal.find_by_key(key.text()).await? {
        return run(there.run_id, true);
    }
    app.switches.refuse(&*app.runs.journal, name).await?;
    let owner = Owner { org: webhook.org.clone(), token: None };
    app.quotas.check_bytes(&owner)?;
    app.quotas.sent(&owner, bytes);
    let outcome = offered.program.as_flow().and_then(|flow| flow.outcome_of(delivery));
    let input = match outcome {
        Some(Ok(DeliveryOutcome::Starts(input))) => input,
        Some(Ok(DeliveryOutcome::Skipped)) | None => {
            app.metrics.delivered(Some(&webhook.name), "skipped");
            tracing::info!(
                webhook = webhook.name,
                delivery = id,
                "loop" = name,
                "a delivery is skipped: `when` does not hold"
            );
            return Ok(None);
        }
        Some(Err(why)) => {
            let detail = format!("the workflow `{name}`: {why}");
            return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, "delivery_does_not_fit", detail));
        }
    };
    let origin = WebhookDelivery { name: webhook.name.clone(), delivery: id.to_owned() };
    // As of a schedule: no token started it, and who wrote its document and its targets lets those decide who read what it posts.
    let callback_rights = Some(DecisionRights::All);
    let org = webhook.org.clone();
    let start = Start { input, org, delivery: Some(origin), callback_rights, ..key.start_of(name) };
    let admission = app.scheduler.admit(owner)?;
    let order = StartOrder { program: Arc::clone(&offered.program), root: offered.root.clone(), start };
    match started(app, order, admission, &WaitQuery::default()).await {
        Ok((run_id, active)) => run(run_id, active.is_none()),
        Err(problem) => match (problem.code == Fault::Conflict(String::new()).code(), &problem.agent_run_id) {
            (true, Some(there)) => run(there.to_string(), true),
            _ => Err(problem),
        },
    }
}
