//! loopctl's HTTP API in an axum app of your own: one engine with a tool written in Rust, and a folder whose documents have the
//! tool as a step. Runs outlive the process:
//! `cargo run --example service`, then
//! `curl localhost:8080/loops/agents/execute -H 'content-type: application/json' -d '{"loop": "restock", "input": {"part": "P-7"}}'`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use loopctl::serve::{Caller, Service, TokenScope};
use loopctl::{EmbeddedTool, Engine, ToolCall, ToolError};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Part {
    /// The part's number, like P-7
    part: String,
}

#[derive(serde::Serialize)]
struct InStock {
    in_stock: u32,
}

/// How many of a part are in stock. A real one would ask a warehouse.
struct Stock;

impl EmbeddedTool for Stock {
    type Input = Part;
    type Output = InStock;
    const NAME: &'static str = "stock";
    const DESCRIPTION: &'static str = "Returns how many of a part are in stock.";
    const IDEMPOTENT: bool = true;
    const READ_ONLY: bool = true;

    async fn call(&self, Part { part }: Part, _: &ToolCall<'_>) -> Result<InStock, ToolError> {
        match part.as_str() {
            "P-7" => Ok(InStock { in_stock: 12 }),
            _ => Err(ToolError::new("unknown part")),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let journal = loopctl::journal::open("sqlite:target/service.db", Path::new("."))?;
    let engine = Engine::builder(Arc::default(), Path::new(".")).tool(Stock).journal(journal).build();
    // Who calls is known to the program: here by a header that its proxy sets. Without one, everybody on this machine is the operator.
    let identify = |parts: &axum::http::request::Parts| {
        let name = parts.headers.get("x-user").map_or(Some("operator"), |name| name.to_str().ok())?;
        Some(Caller::new(name).all_orgs().scopes([TokenScope::Run, TokenScope::Read, TokenScope::Decide]))
    };
    let loops = Service::builder("examples/service/loops", &engine).identify(identify).build()?;
    // By this file, `loopctl check` and `loopctl test` know the tool.
    std::fs::write("examples/service/loops/tools.json", serde_json::to_string_pretty(&engine.signatures())?)?;

    loops.recover().await?;
    let app = Router::new().nest("/loops/", loops.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let stopped = async move {
        drop(tokio::signal::ctrl_c().await);
        loops.drain(Duration::from_secs(20)).await;
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    Ok(())
}
