//! `POST /mcp`: the loops and workflows of the folder as tools, for clients of the Model Context Protocol over streamable HTTP.
//! Nothing is kept between requests.

mod call;
mod change_stream;
mod stream;
mod task;

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use self::call::{CallRefusal, McpCall};
use self::change_stream::ListeningClient;
use super::status::with_location;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::mcp::call_registry::SessionRequest;
use crate::serve::mcp::client_message::{
    self, ClientMessage, ClientRequest, METHOD_NOT_FOUND, MISSING_CAPABILITY, McpRefusal, answer,
};
use crate::serve::mcp::http_headers;
use crate::serve::mcp::offered_tools::McpTools;
use crate::serve::mcp::protocol::{self, ClientEra, McpWork, ToolRequest};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::{Owner, QuotaItem};
use crate::serve::request::json;

/// Takes a message.
pub async fn message(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let request = match client_message::read(&body) {
        Err(refusal) => return Ok(json(StatusCode::BAD_REQUEST, &refusal)),
        Ok(ClientMessage::Request(request)) => request,
        Ok(ClientMessage::Notification { method, params }) => {
            let id = params.get("requestId").filter(|_| method == "notifications/cancelled");
            if let (Some(session), Some(id)) = (http_headers::session(&headers), id) {
                app.mcp_calls.cancel(&SessionRequest { owner: Owner::from(&caller), session, id: id.to_string() });
            }
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        Ok(ClientMessage::Response) => return Ok(StatusCode::ACCEPTED.into_response()),
    };
    if protocol::opens(&request) {
        return Ok(opened(&request));
    }
    let era = match http_headers::era(&request, &headers) {
        Ok(era) => era,
        Err(refusal) => return Ok(json(StatusCode::BAD_REQUEST, &refusal.answer(&request.id))),
    };
    let folder = app.folder();
    let switches = match &*request.method {
        "tools/list" => app.switches.all(&*app.runs.journal).await?,
        _ => Arc::default(),
    };
    let is_on = |name: &str| !switches.get(name).is_some_and(|switch| switch.is_off);
    let tools = || McpTools::of(&folder.loops, |name| is_on(name) && caller.may_run(name).is_ok());
    match era.asked(&request, true, || tools().listed()) {
        Err(refusal) => Ok(refused(era, &request.id, &refusal)),
        Ok(McpWork::Result(result)) => Ok(json(StatusCode::OK, &answer(&request.id, &result))),
        Ok(McpWork::Task(task)) => {
            let asked = task::AskedTask { app: Arc::clone(&app), caller, elicits: era.elicits };
            Ok(match asked.perform(task).await? {
                Ok(result) => json(StatusCode::OK, &answer(&request.id, &era.result(result))),
                Err(refusal) => refused(era, &request.id, &refusal),
            })
        }
        Ok(McpWork::Listen { tools }) => {
            let permit = app.quotas.take(&Owner::from(&caller), QuotaItem::EventStream)?;
            Ok(change_stream::of_changes(ListeningClient { app, caller, era, id: request.id, tools, _permit: permit })
                .await)
        }
        Ok(McpWork::Call(call)) => {
            // One that the caller may not start is refused as by the other routes.
            let all = McpTools::of(&folder.loops, |_| true);
            match all.by_name.get(&call.name) {
                None => {
                    let refusal = protocol::no_such_tool(&call.name, tools().by_name.keys().map(String::as_str));
                    Ok(refused(era, &request.id, &refusal))
                }
                Some(offered) => {
                    let name = offered.program.name.clone();
                    called(&app, caller, &headers, CallOfTool { era, id: request.id, call: *call, name }).await
                }
            }
        }
    }
}

/// A call of a tool.
struct CallOfTool {
    era: ClientEra,
    id: Value,
    call: ToolRequest,
    /// The loop or workflow that it is.
    name: String,
}

async fn called(
    app: &Arc<App>,
    caller: Caller,
    headers: &HeaderMap,
    asked: CallOfTool,
) -> Result<Response, ProblemDetails> {
    let CallOfTool { era, id, call, name } = asked;
    let mut cancellable = None;
    if let Some(session) = http_headers::session(headers).filter(|_| !era.protocol.is_modern()) {
        let request = SessionRequest { owner: Owner::from(&caller), session, id: id.to_string() };
        cancellable = Some(app.mcp_calls.join(request));
        if cancellable.as_ref().is_some_and(Option::is_none) {
            return Ok(refused(era, &id, &protocol::id_in_use()));
        }
    }
    // A call that may be answered with a task has no stream: whoever asks how far it is hears it so.
    let token = call.progress_token.clone().filter(|_| !era.tasks && http_headers::takes_stream(headers));
    let started = McpCall {
        app: Arc::clone(app),
        caller: caller.clone(),
        call,
        name,
        cancellable: cancellable.flatten(),
        elicits: era.elicits,
    };
    // Over an older revision, only a notification cancels a call.
    let started = started.start(headers, token.is_some(), era.protocol.is_modern()).await;
    let (progress, started) = match started {
        Ok(started) => started,
        Err(CallRefusal::Protocol(refusal)) => return Ok(refused(era, &id, &refusal)),
        Err(CallRefusal::Problem(problem)) => {
            let result = call::failed(app, *problem)?;
            return Ok(json(StatusCode::OK, &answer(&id, &era.result(result))));
        }
    };
    let run_id = started.run_id().to_owned();
    let response = match token {
        Some(token) => {
            stream::of_call(stream::StreamedCall { app: Arc::clone(app), caller, era, id, token, progress }, started)
        }
        None => {
            let result = if era.tasks { started.result_or_task().await? } else { started.result().await? };
            json(StatusCode::OK, &answer(&id, &era.result(result)))
        }
    };
    Ok(with_location(response, &run_id))
}

/// Answers the older way to open. The session names nothing that is kept: only a cancellation is found by it.
fn opened(request: &ClientRequest) -> Response {
    let result = match protocol::initialize(request) {
        Ok((_, result)) => result,
        Err(refusal) => return json(StatusCode::BAD_REQUEST, &refusal.answer(&request.id)),
    };
    let mut response = json(StatusCode::OK, &answer(&request.id, &result));
    if let Ok(session) = HeaderValue::from_str(&uuid::Uuid::now_v7().to_string()) {
        response.headers_mut().insert(http_headers::SESSION, session);
    }
    response
}

/// A request that nothing here answers. Older clients read a status of an error as one of the connection.
fn refused(era: ClientEra, id: &Value, refusal: &McpRefusal) -> Response {
    let status = match refusal.code {
        METHOD_NOT_FOUND if era.protocol.is_modern() => StatusCode::NOT_FOUND,
        MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    json(status, &refusal.answer(id))
}
