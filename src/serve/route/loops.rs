//! `GET /loops`: the loops and workflows that can be started by their names.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::serve::app::App;
use crate::serve::folder::{ServedKind, ServedLoop};
use crate::serve::request::json;

/// The loops and workflows of the folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoopList {
    /// By name.
    pub loops: Vec<LoopRow>,
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
}

/// The loops that can be started.
pub async fn loops(State(app): State<Arc<App>>) -> Response {
    let row = |(name, offered): (&String, &ServedLoop)| LoopRow {
        name: name.clone(),
        kind: offered.kind,
        description: offered.program.description.clone(),
        input: offered.program.input.as_ref().map(|schema| schema.source().clone()),
        tools: offered.program.all_tools().into_iter().map(|tool| tool.name.clone()).collect(),
    };
    json(StatusCode::OK, &LoopList { loops: app.folder.loops.iter().map(row).collect() })
}
