//! Streams of events that have nothing to say. The server is in this process, on a clock that advances by itself.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures_util::StreamExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use loopctl::journal::memory::MemoryJournal;
use loopctl::serve::{Folder, ServerOptions, Service};
use serde_json::{Value, json};

use crate::common::complete;
use crate::serve::client::place;

async fn answer(service: &Service, request: &str, body: &Value) -> Response {
    let (method, path) = request.split_once(' ').unwrap();
    let builder = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = builder.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap();
    TowerToHyperService::new(service.router()).call(request).await.unwrap()
}

async fn text(response: Response) -> String {
    let mut pieces = response.into_body().into_data_stream();
    let mut all = String::new();
    while let Some(piece) = pieces.next().await {
        all.push_str(&String::from_utf8_lossy(&piece.unwrap()));
    }
    all
}

#[test]
fn a_stream_stays_alive_while_a_model_is_asked_again_and_again() {
    // For a minute, a new attempt each 400 milliseconds, of which the journal has nothing before the reply.
    let mut replies = vec![json!({ "http": 503, "delay_ms": 400 }); 150];
    replies.push(complete(json!("done")));
    let properties = json!({ "retry": { "attempts": 151, "base_ms": 0 } });
    let place = place(properties, &replies);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let events = runtime.block_on(async {
        let journal = Arc::new(MemoryJournal::default());
        let service = Service::new(Folder::read(place.path()).unwrap(), journal, &ServerOptions::default()).unwrap();
        let run = json!({ "loop": "test", "input": {} });
        let started = text(answer(&service, "POST /agents/execute?async=true", &run).await).await;
        let started: Value = serde_json::from_str(&started).unwrap();
        let id = started["agent_run_id"].as_str().unwrap();
        text(answer(&service, &format!("GET /agents/{id}/events"), &Value::Null).await).await
    });
    let asked = events.find("model_asked").unwrap();
    let (first, replied) = (events.find("model_away"), events.find("model_replied").unwrap());
    assert!(first.is_some_and(|first| asked < first && first < replied), "{events}");
    // Each attempt is an event of its own, so the stream is never idle, and needs no comment.
    let attempts = events.matches("model_away").count();
    assert!(attempts > 10 && !events.contains(": still here"), "{attempts}: {events}");
}
