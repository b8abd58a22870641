//! `GET /loops`: the loops and workflows that can be started by their names.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::language::webhook::WebhookScheme;
use crate::program::flow::FlowSchedule;
use crate::program::webhook::FlowWebhook;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::folder::{ServedKind, ServedLoop};
use crate::serve::problem::ProblemDetails;
use crate::serve::request::json;
use crate::serve::schedules;
use crate::trace::units::rfc3339;

/// The loops and workflows of the folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoopList {
    /// By name.
    pub loops: Vec<LoopRow>,
    /// Since when the folder has a fault and is served as it was, RFC 3339. The log says which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload_failed_since: Option<String>,
}

/// A loop or a workflow of the folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoopRow {
    /// What `loop` takes in `POST /agents/execute`.
    pub name: String,
    /// What it is: a loop of mode `react` or `foreach`, or a workflow.
    pub kind: ServedKind,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The tools that its model may call, or its steps.
    pub tools: Vec<String>,
    /// When the server starts it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleRow>,
    /// The deliveries of another service that start it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookRow>,
    /// That it is switched off: nobody starts it, and its schedule starts no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<DisabledLoop>,
}

/// Since when a loop is switched off, and why.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DisabledLoop {
    /// Since when, RFC 3339.
    pub since: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// When the server starts a workflow by itself.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduleRow {
    /// How often.
    pub every: String,
    /// The time of the day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Its next time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The run for which it waits although a time of it has come. Left out for a token that can't read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitedRun>,
}

/// The deliveries that start a workflow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WebhookRow {
    /// Where they are sent: a path of this server.
    pub path: String,
    /// How they are signed.
    pub verify: WebhookScheme,
}

impl From<&FlowWebhook> for WebhookRow {
    fn from(webhook: &FlowWebhook) -> Self {
        Self { path: format!("/hooks/{}", webhook.name), verify: webhook.scheme }
    }
}

/// A run of a schedule that has not ended: no other one is started meanwhile.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitedRun {
    /// Its id.
    pub agent_run_id: String,
    /// `paused` when it waits: for a decision, or for a time, its model or room in a spending limit. `running` otherwise.
    pub status: Status,
}

impl From<&FlowSchedule> for ScheduleRow {
    fn from(schedule: &FlowSchedule) -> Self {
        let FlowSchedule { every, at, timezone, timetable, .. } = schedule;
        let next = timetable.next(clock::wall_ms()).map(rfc3339);
        Self { every: every.clone(), at: at.clone(), timezone: timezone.clone(), next, waits_for: None }
    }
}

/// The loops that can be started.
///
/// # Errors
/// When the store fails.
pub async fn loops(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ProblemDetails> {
    let switches = app.switches.all(&*app.runs.journal).await?;
    let row = |(name, offered): (&String, &ServedLoop)| LoopRow {
        name: name.clone(),
        kind: offered.kind,
        description: offered.program.description.clone(),
        input: offered.program.input.as_ref().map(|schema| schema.source().clone()),
        tools: offered.program.all_tools().into_iter().map(|tool| tool.name.clone()).collect(),
        schedule: offered.program.as_flow().and_then(|flow| flow.schedule.as_ref()).map(ScheduleRow::from),
        webhook: offered.program.as_flow().and_then(|flow| flow.webhook.as_ref()).map(WebhookRow::from),
        disabled: switches
            .get(name)
            .filter(|switch| switch.is_off)
            .map(|switch| DisabledLoop { since: rfc3339(switch.at_ms), reason: switch.reason.clone() }),
    };
    let folder = app.folder();
    let mut loops: Vec<LoopRow> = folder.loops.iter().map(row).collect();
    for row in &mut loops {
        if let Some(schedule) = &mut row.schedule {
            let run = schedules::waits_for(&app, &row.name, clock::wall_ms()).await?;
            let Some(run) = run else { continue };
            // It belongs to no organisation: who reads the runs of one alone does not see it.
            let is_seen = match app.runs.find(&caller, &run.run_id).await {
                Ok(_) => true,
                Err(problem) if problem.status == StatusCode::NOT_FOUND => false,
                Err(problem) => return Err(problem),
            };
            schedule.waits_for = is_seen.then_some(WaitedRun { agent_run_id: run.run_id, status: run.status });
        }
    }
    let reload_failed_since = app.runs.current.fault().map(|fault| rfc3339(fault.since_ms));
    Ok(json(StatusCode::OK, &LoopList { loops, reload_failed_since }))
}
