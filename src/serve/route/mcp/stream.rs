//! Answers as server-sent events: the progress of a call and its result.

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
use crate::serve::mcp::protocol::ClientEra;
use crate::serve::problem::ProblemDetails;
use crate::serve::route::START_SCOPES;
use crate::trace::escape;

/// When nothing was sent for this time, a comment keeps the stream alive, and its token is judged again.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

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
                let result = result.and_then(|result| taken_now(app, caller).map(|_| result));
                Some(event(&match result {
                    Ok(result) => answer(id, &era.result(result)),
                    Err(problem) => refusal(app, problem).answer(id),
                }))
            }
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => Some(self.kept_alive()),
        }
    }

    fn kept_alive(&mut self) -> String {
        match taken_now(&self.call.app, &self.call.caller) {
            Ok(_) => COMMENT.to_owned(),
            Err(problem) => {
                self.result = None;
                event(&refusal(&self.call.app, problem).answer(&self.call.id))
            }
        }
    }
}

/// A comment, which clients pass over.
pub(super) const COMMENT: &str = ":\n\n";

/// Who a caller is now, if the token is still taken.
///
/// # Errors
/// When it is not.
pub(super) fn taken_now(app: &App, caller: &Caller) -> Result<Caller, ProblemDetails> {
    app.served().authorizer.check_again(caller, START_SCOPES, clock::wall_ms())
}

pub(super) fn refusal(app: &App, problem: ProblemDetails) -> McpRefusal {
    let problem = app.hidden_paths.problem(problem);
    McpRefusal { data: Some(json!({ "code": problem.code })), ..McpRefusal::new(INTERNAL_ERROR, problem.detail) }
}

pub(super) fn event(message: &Value) -> String {
    format!("event: message\ndata: {}\n\n", escape::json(&message.to_string()))
}

pub(super) fn events(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that buffer responses would delay the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
