//! Answers as server-sent events: the progress of a call and its result, and the stream of changes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::call::StartedCall;
use crate::drive::clock;
use crate::drive::future::BoxFuture;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::mcp::client_message::{INTERNAL_ERROR, McpRefusal, answer, notification};
use crate::serve::mcp::protocol::{self, ClientEra};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Permit;
use crate::serve::route::START_SCOPES;
use crate::trace::escape;

/// When nothing was sent for this time, a comment keeps the stream alive, and its token is judged again.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A call whose progress is sent.
pub(super) struct StreamedCall {
    pub app: Arc<App>,
    pub caller: Caller,
    pub era: ClientEra,
    pub id: Value,
    /// What its notifications name.
    pub token: Value,
    pub progress: mpsc::Receiver<String>,
}

struct CallStream {
    call: StreamedCall,
    /// None once it was sent.
    result: Option<BoxFuture<'static, Result<Value, ProblemDetails>>>,
    sent: u64,
}

/// The progress of a call, and its result. A client that closes the stream gives the call up.
pub(super) fn of_call(call: StreamedCall, started: StartedCall) -> Response {
    let stream = CallStream { call, result: Some(Box::pin(started.result())), sent: 0 };
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<String, Infallible>(piece), stream))
    });
    events(Body::from_stream(pieces))
}

impl CallStream {
    async fn next(&mut self) -> Option<String> {
        let result = self.result.as_mut()?;
        tokio::select! {
            biased;
            Some(message) = self.call.progress.recv() => {
                self.sent = self.sent.saturating_add(1);
                let params = json!({ "progressToken": self.call.token, "progress": self.sent, "message": message });
                Some(event(&notification("notifications/progress", &params)))
            }
            result = result => {
                self.result = None;
                let StreamedCall { app, caller, era, id, .. } = &self.call;
                let result = result.and_then(|result| is_taken(app, caller).map(|()| result));
                Some(event(&match result {
                    Ok(result) => answer(id, &era.result(result)),
                    Err(problem) => refusal(app, problem).answer(id),
                }))
            }
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => Some(self.kept_alive()),
        }
    }

    fn kept_alive(&mut self) -> String {
        match is_taken(&self.call.app, &self.call.caller) {
            Ok(()) => COMMENT.to_owned(),
            Err(problem) => {
                self.result = None;
                event(&refusal(&self.call.app, problem).answer(&self.call.id))
            }
        }
    }
}

struct ChangeStream {
    app: Arc<App>,
    caller: Caller,
    era: ClientEra,
    id: Value,
    is_open: bool,
    is_over: bool,
    _permit: Permit,
}

/// A stream of changes: none of them is reported here, so it says so and stays open until the client closes it.
pub(super) fn of_changes(app: Arc<App>, caller: Caller, era: ClientEra, id: Value, permit: Permit) -> Response {
    let stream = ChangeStream { app, caller, era, id, is_open: false, is_over: false, _permit: permit };
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<String, Infallible>(piece), stream))
    });
    events(Body::from_stream(pieces))
}

impl ChangeStream {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if !self.is_open {
            self.is_open = true;
            return Some(event(&protocol::listening(&self.id)));
        }
        tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
        if let Err(problem) = is_taken(&self.app, &self.caller) {
            self.is_over = true;
            return Some(event(&refusal(&self.app, problem).answer(&self.id)));
        }
        if self.app.scheduler.is_draining() {
            self.is_over = true;
            return Some(event(&answer(&self.id, &self.era.result(json!({})))));
        }
        Some(COMMENT.to_owned())
    }
}

/// A comment, which clients pass over.
const COMMENT: &str = ":\n\n";

/// Whether the token of a caller is still taken.
fn is_taken(app: &App, caller: &Caller) -> Result<(), ProblemDetails> {
    app.served().authorizer.check_again(caller, START_SCOPES, clock::wall_ms()).map(|_| ())
}

fn refusal(app: &App, problem: ProblemDetails) -> McpRefusal {
    let problem = app.hidden_paths.problem(problem);
    McpRefusal { data: Some(json!({ "code": problem.code })), ..McpRefusal::new(INTERNAL_ERROR, problem.detail) }
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {}\n\n", escape::json(&message.to_string()))
}

fn events(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that buffer responses would delay the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
