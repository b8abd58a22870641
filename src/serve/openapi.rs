//! The OpenAPI 3.1 description, generated from the types of requests and responses.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::problem::ProblemDetails;
use super::request::WaitQuery;
use super::route::{
    AcceptedRun, AgentsQuery, AnswerRequest, ApprovalRequest, ApprovalsRequest, ApprovalsResult, AuditList, AuditQuery,
    BulkRequest, BulkResult, CancelQuery, DocumentDifference, EventRequest, EventsQuery, LoopList, LoopRequest,
    ReleaseRequest, ReleasedRuns, RerunRequest, ResumeRequest, RetryRequest, StatusQuery, SwitchRequest, SwitchedLoop,
    TakenDelivery, TakenEvent, UsageQuery, WorkerList, WorkflowOutline, WorkflowRequest, WorkflowStatus,
};
use super::step_reader::StepsQuery;
use super::view::{Accepted, AgentList, AgentStatus};
use crate::engine::flow::view::StepView;
use crate::engine::run_stats::RunStats;
use crate::language::AgentRequest;
use crate::trace::iteration::IterationView;
use crate::trace::{PausedRun, WaitingSteps};

/// The description of all routes.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

/// The description of all routes under a prefix.
pub fn under(prefix: &str) -> Value {
    let mut document = DOCUMENT.clone();
    put(&mut document, "servers", json!([{ "url": prefix.trim_end_matches('/') }]));
    document
}

/// Requests may leave out what has a default, answers what is empty: one type can be described in both ways.
struct OpenApiWriter {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl OpenApiWriter {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        Self { requests: settings.clone().into_generator(), answers: settings.for_serialize().into_generator() }
    }

    /// All types that were described, by their names.
    fn definitions(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        for (name, schema) in self.answers.take_definitions(true) {
            let known = all.insert(name.clone(), schema);
            debug_assert!(known.is_none_or(|known| all.get(&name) == Some(&known)), "{name} is described in two ways");
        }
        all
    }

    /// What is sent to the server.
    fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    /// What the server sends.
    fn schema<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    /// A query's parameters from its type.
    fn query<T: JsonSchema>(&mut self) -> Vec<Value> {
        let schema = T::json_schema(&mut self.requests).to_value();
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let parameter = |(name, mut schema): (String, Value)| {
            let description = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
            json!({ "name": name, "in": "query", "description": description, "schema": schema })
        };
        properties.into_iter().map(parameter).collect()
    }

    fn json<T: JsonSchema>(&mut self, description: &str) -> Value {
        json!({ "description": description, "content": { "application/json": { "schema": self.schema::<T>() } } })
    }

    fn problem(&mut self) -> Value {
        let schema = self.schema::<ProblemDetails>();
        json!({ "description": "What went wrong", "content": { "application/problem+json": { "schema": schema } } })
    }

    /// An operation: its summary, parameters, body and answers. Every one may have a problem.
    fn operation(&mut self, summary: &str, parameters: &[Value], body: Option<Value>, answers: Value) -> Value {
        let mut responses = answers;
        put(&mut responses, "default", self.problem());
        let mut operation = json!({ "summary": summary, "parameters": parameters, "responses": responses });
        if let Some(schema) = body {
            let content = json!({ "application/json": { "schema": schema } });
            put(&mut operation, "requestBody", json!({ "required": true, "content": content }));
        }
        operation
    }

    /// What answers a request that waits for a run.
    fn waited(&mut self) -> Value {
        let status = self.json::<AgentStatus>("The run has ended, or waits for a human");
        let accepted = self.json::<Accepted>("The run continues; `Location` is the address of its status");
        json!({ "200": status, "202": accepted })
    }
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn header(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": { "type": "string" } })
}

fn id() -> Value {
    in_path("id", "The run's id")
}

fn in_path(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": { "type": "string" } })
}

fn document() -> Value {
    let mut writer = OpenApiWriter::new();
    let mut paths = Map::new();
    runs(&mut writer, &mut paths);
    one_run(&mut writer, &mut paths);
    workflows(&mut writer, &mut paths);
    mcp(&mut writer, &mut paths);
    rest(&mut writer, &mut paths);
    let webhooks = webhooks(&mut writer);
    let schemas = writer.definitions();
    let bearer = json!({ "type": "http", "scheme": "bearer" });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "loopctl serve", "version": env!("CARGO_PKG_VERSION"),
            "description": "Starts, shows, resumes and cancels agent loops. The fields are those of Hyphen's API, plus loopctl's result.",
            "license": { "name": "MIT OR Apache-2.0" }
        },
        "security": [{}, { "bearer": [] }],
        "paths": paths,
        "webhooks": webhooks,
        "components": { "schemas": schemas, "securitySchemes": { "bearer": bearer } }
    })
}

fn idempotency_key() -> Value {
    let mut key = header("Idempotency-Key", "The same key and body give the same run; another body is a 409");
    put(&mut key, "schema", json!({ "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" }));
    key
}

fn runs(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let body = json!({ "oneOf": [writer.request::<LoopRequest>(), writer.request::<AgentRequest>()] });
    let mut parameters = writer.query::<WaitQuery>();
    parameters.push(idempotency_key());
    let answers = writer.waited();
    let execute = writer.operation(
        "Start a loop of the folder (scope run) or an agent request (scope compose)",
        &parameters,
        Some(body),
        answers,
    );
    paths.insert("/agents/execute".to_owned(), json!({ "post": execute }));
    let parameters = writer.query::<AgentsQuery>();
    let answers = json!({ "200": writer.json::<AgentList>("The runs, the newest first") });
    let list = writer.operation("The caller's runs", &parameters, None, answers);
    paths.insert("/agents".to_owned(), json!({ "get": list }));
}

fn one_run(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let with_id = |more: Vec<Value>| [vec![id()], more].concat();
    let parameters = with_id(writer.query::<StatusQuery>());
    let answers = json!({ "200": writer.json::<AgentStatus>("The run") });
    let status = writer.operation("The status of a run", &parameters, None, answers);
    paths.insert("/agents/{id}/status".to_owned(), json!({ "get": status }));
    let result = json!({ "type": "object", "description": "The result with its trace" });
    let schema = json!({ "anyOf": [writer.schema::<StepView>(), writer.schema::<IterationView<'_>>(), result] });
    let result = json!({ "description": "The result with its trace, or what is at `at`",
        "content": { "application/json": { "schema": schema } } });
    let parameters = with_id(writer.query::<StepsQuery>());
    let summary = "The trace of a run; with `at`, an iteration of a loop or the steps of a workflow at an address";
    let trace = writer.operation(summary, &parameters, None, json!({ "200": result }));
    paths.insert("/agents/{id}/trace".to_owned(), json!({ "get": trace }));
    let answers = json!({ "200": writer.json::<WorkflowOutline>("The steps; none of a loop of mode `react`") });
    let outline = writer.operation("The steps of a run's workflow as its document has them", &[id()], None, answers);
    paths.insert("/agents/{id}/outline".to_owned(), json!({ "get": outline }));
    let answers = json!({ "200": writer.json::<DocumentDifference>("The documents that differ") });
    let summary = "What the folder has changed in the documents of a run since it started";
    let document = writer.operation(summary, &[id()], None, answers);
    paths.insert("/agents/{id}/document".to_owned(), json!({ "get": document }));
    // The schema of each event of the stream, not of its whole text, which need not end.
    let event = json!({ "type": "object", "required": ["id", "data"], "properties": {
        "id": { "type": "string", "description": "What `Last-Event-ID` takes" },
        "data": { "type": "string", "contentMediaType": "application/json" } } });
    let stream = json!({ "200": { "description": "Server-sent events; the data of each is JSON with an `event`",
            "content": { "text/event-stream": { "schema": event } } },
        "204": { "description": "The run has ended, and the caller has all of its events" } });
    let last = header("Last-Event-ID", "Only what came after this event");
    let mut parameters = writer.query::<EventsQuery>();
    parameters.push(last);
    let events = writer.operation("The events of a run, live", &with_id(parameters), None, stream);
    paths.insert("/agents/{id}/events".to_owned(), json!({ "get": events }));
    let parameters = with_id(writer.query::<WaitQuery>());
    let (body, answers) = (writer.request::<ResumeRequest>(), writer.waited());
    let resume = writer.operation("Send a decision to a run that waits", &parameters, Some(body), answers);
    paths.insert("/agents/{id}/resume".to_owned(), json!({ "post": resume }));
    answer(writer, paths);
    let parameters = with_id(writer.query::<WaitQuery>());
    let (body, answers) = (writer.request::<RetryRequest>(), writer.waited());
    let retry = writer.operation(
        "Retry a run that failed because its model could not be reached",
        &parameters,
        Some(body),
        answers,
    );
    paths.insert("/agents/{id}/retry".to_owned(), json!({ "post": retry }));
    let body = writer.request::<BulkRequest>();
    let answers = json!({ "200": writer.json::<BulkResult>("What became of the runs") });
    let bulk = writer.operation("Retry, cancel or release the runs that a filter finds", &[], Some(body), answers);
    paths.insert("/agents/bulk".to_owned(), json!({ "post": bulk }));
    let body = writer.request::<ReleaseRequest>();
    let answers = json!({ "200": writer.json::<ReleasedRuns>("What was released") });
    let release = writer.operation("Let servers take up the quarantined runs again", &[], Some(body), answers);
    paths.insert("/agents/release".to_owned(), json!({ "post": release }));
    let body = writer.request::<EventRequest>();
    let answers =
        json!({ "202": writer.json::<TakenEvent>("The event is kept, and given to the runs that wait for it") });
    let event = writer.operation("Send an event that runs wait for", &[], Some(body), answers);
    paths.insert("/events".to_owned(), json!({ "post": event }));
    webhook(writer, paths);
    let parameters = with_id([writer.query::<WaitQuery>(), vec![idempotency_key()]].concat());
    let (body, answers) = (writer.request::<RerunRequest>(), writer.waited());
    let rerun = writer.operation("Start a new run with the input of a run", &parameters, Some(body), answers);
    paths.insert("/agents/{id}/rerun".to_owned(), json!({ "post": rerun }));
    let parameters = with_id(writer.query::<CancelQuery>());
    let answers = writer.waited();
    let cancel = writer.operation("Cancel a run", &parameters, None, answers);
    paths.insert("/agents/{id}".to_owned(), json!({ "delete": cancel }));
}

fn answer(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let body = writer.request::<AnswerRequest>();
    let answers = json!({ "202": writer.json::<Accepted>("The decision was taken") });
    let summary = "Send the one decision that a token of a posted pause is for; the token is the only credential";
    let mut answer = writer.operation(summary, &[id()], Some(body), answers);
    put(&mut answer, "security", json!([{}, { "bearer": [] }]));
    let token = json!({ "name": "token", "in": "query", "required": true, "description": "The token of the link",
        "schema": { "type": "string" } });
    let text = json!({ "text/html": { "schema": { "type": "string" } } });
    let page = json!({ "200": { "description": "The page", "content": text },
        "default": { "description": "Why the link takes no decision", "content": text } });
    let mut shown = writer.operation("The page where a person takes that decision", &[id(), token], None, json!({}));
    put(&mut shown, "responses", page);
    put(&mut shown, "security", json!([]));
    paths.insert("/agents/{id}/answer".to_owned(), json!({ "get": shown, "post": answer }));
}

/// What other services deliver.
fn webhook(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let body = json!({ "required": true, "content": {
        "application/json": { "schema": { "description": "What the service sends" } },
        "application/x-www-form-urlencoded": { "schema": { "type": "object" } } } });
    let answers = json!({ "202": writer.json::<TakenDelivery>("Each run is in the store"),
        "200": { "description": "The service tried the address, or is Slack and sent a form" } });
    let summary =
        "Deliver something to the workflows with a webhook of this name; the signature is the only credential";
    let mut delivery = writer.operation(summary, &[in_path("name", "The name of the webhook")], None, answers);
    put(&mut delivery, "requestBody", body);
    put(&mut delivery, "security", json!([]));
    paths.insert("/hooks/{name}".to_owned(), json!({ "post": delivery }));
}

/// The routes by Hyphen's names for workflows.
fn workflows(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let waited = |writer: &mut OpenApiWriter| {
        let status = writer.json::<WorkflowStatus>("The run has ended, or waits for a human");
        let accepted = writer.json::<AcceptedRun>("The run continues; `Location` is the address of its status");
        json!({ "200": status, "202": accepted })
    };
    let mut parameters = vec![in_path("name", "The workflow's name")];
    parameters.extend(writer.query::<WaitQuery>());
    parameters.push(idempotency_key());
    let (body, answers) = (writer.request::<WorkflowRequest>(), waited(writer));
    let execute = writer.operation("Start a workflow of the folder", &parameters, Some(body), answers);
    paths.insert("/workflows/{name}/execute".to_owned(), json!({ "post": execute }));
    let run = || in_path("run", "The run's id");
    let parameters = [vec![run()], writer.query::<StatusQuery>()].concat();
    let answers = json!({ "200": writer.json::<WorkflowStatus>("The run") });
    let status = writer.operation("The status of a run, with the context of a workflow", &parameters, None, answers);
    paths.insert("/runs/{run}/status".to_owned(), json!({ "get": status }));
    let at = in_path("at", "The address of the step, like `review.57.1`");
    let parameters = [vec![run(), at], writer.query::<WaitQuery>()].concat();
    let (body, answers) = (writer.request::<ApprovalRequest>(), waited(writer));
    let approval = writer.operation("Decide about an approval of a workflow", &parameters, Some(body), answers);
    paths.insert("/approvals/{run}/{at}".to_owned(), json!({ "post": approval }));
    let body = writer.request::<ApprovalsRequest>();
    let answers = json!({ "200": writer.json::<ApprovalsResult>("What became of the decisions") });
    let approvals = writer.operation("Decide about several approvals of a workflow", &[run()], Some(body), answers);
    paths.insert("/approvals/{run}".to_owned(), json!({ "post": approvals }));
    let body = json!({ "type": "object", "description": "The keys of the form, or `data` with them" });
    let answers = waited(writer);
    let form = writer.operation("Fill in a form of a workflow", &parameters, Some(body), answers);
    paths.insert("/forms/{run}/{at}/submit".to_owned(), json!({ "post": form }));
}

/// What the server posts to a `callback_url`.
fn webhooks(writer: &mut OpenApiWriter) -> Value {
    let post = |events: &[&str], payload: Value| {
        let schema = json!({ "type": "object", "required": ["event", "timestamp", "payload"], "properties": {
            "event": { "enum": events }, "timestamp": { "type": "string", "format": "date-time" }, "payload": payload } });
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        json!({ "post": { "requestBody": body, "responses": { "2XX": { "description": "The post is accepted" } } } })
    };
    let (paused, waiting) = (writer.schema::<PausedRun>(), writer.schema::<WaitingSteps>());
    json!({
        "agent_run_paused": post(&["agent_run_paused"], paused.clone()),
        "agent_run_waiting": post(&["agent_run_waiting"], waiting.clone()),
        "agent_run_reminded": post(&["agent_run_reminded"], json!({ "anyOf": [paused, waiting] })),
        "agent_run_ended": post(
            &["agent_run_completed", "agent_run_failed", "agent_run_cancelled"],
            writer.schema::<AgentStatus>(),
        )
    })
}

fn mcp(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let message = json!({ "type": "object", "required": ["jsonrpc"], "properties": {
        "jsonrpc": { "const": "2.0" }, "id": { "type": ["string", "integer"] }, "method": { "type": "string" },
        "params": { "type": "object" } } });
    let text = json!({ "type": "string", "description": "Server-sent events; the data of each is a message" });
    let answer = json!({ "type": "object", "required": ["jsonrpc"] });
    let content = json!({ "application/json": { "schema": answer }, "text/event-stream": { "schema": text } });
    let refused = json!({ "description": "A request that can't be taken: an error of JSON-RPC",
        "content": { "application/json": { "schema": answer } } });
    let answers = json!({ "200": { "description": "The answer to a request", "content": content },
        "202": { "description": "A notification was taken" }, "400": refused, "404": refused });
    let summary =
        "A message of the Model Context Protocol: the loops and workflows of the folder are tools (scope run)";
    let names = [
        ("MCP-Protocol-Version", "The revision of the protocol; without it, 2025-03-26"),
        ("Mcp-Method", "The method of the message, in the newest revision"),
        ("Mcp-Name", "The tool that is called, or the task, in the newest revision"),
        ("Mcp-Session-Id", "What `initialize` answered: a cancellation is found by it"),
    ];
    let parameters: Vec<Value> = names.into_iter().map(|(name, description)| header(name, description)).collect();
    let post = writer.operation(summary, &parameters, Some(message), answers);
    paths.insert("/mcp".to_owned(), json!({ "post": post }));
}

fn rest(writer: &mut OpenApiWriter, paths: &mut Map<String, Value>) {
    let answers = json!({ "200": writer.json::<LoopList>("The loops and workflows by name") });
    let loops = writer.operation("The loops and workflows of the folder", &[], None, answers);
    paths.insert("/loops".to_owned(), json!({ "get": loops }));
    let answers = json!({ "200": writer.json::<WorkerList>("The processes") });
    let workers = writer.operation("The processes that execute runs of the store", &[], None, answers);
    paths.insert("/workers".to_owned(), json!({ "get": workers }));
    for (path, summary) in [
        ("/loops/{name}/disable", "Switch a loop off: nobody starts it, and its schedule starts no run (scope admin)"),
        ("/loops/{name}/enable", "Switch a loop on again (scope admin)"),
    ] {
        let answers = json!({ "200": writer.json::<SwitchedLoop>("The loop was switched") });
        let name = in_path("name", "The name of the loop or workflow");
        let body = writer.request::<SwitchRequest>();
        let switch = writer.operation(summary, &[name], Some(body), answers);
        paths.insert(path.to_owned(), json!({ "post": switch }));
    }
    let parameters = writer.query::<AuditQuery>();
    let answers = json!({ "200": writer.json::<AuditList>("The lines, the newest first") });
    let audit = writer.operation("What was done with the runs, and by whom", &parameters, None, answers);
    paths.insert("/audit".to_owned(), json!({ "get": audit }));
    let list = json!({ "200": { "description": "All diagnostics, as `loopctl check --format json` prints them",
        "content": { "application/json": { "schema": { "type": "array", "items": { "type": "object" } } } } } });
    let check = writer.operation("Check a document; nothing is run", &[], Some(json!(true)), list);
    paths.insert("/check".to_owned(), json!({ "post": check }));
    let parameters = writer.query::<UsageQuery>();
    let answers = json!({ "200": writer.json::<RunStats>("Endings, times, tokens, costs, retries and waits") });
    let usage = writer.operation("What the caller's runs came to", &parameters, None, answers);
    paths.insert("/usage".to_owned(), json!({ "get": usage }));
    let text = json!({ "200": { "description": "Metrics in the OpenMetrics text format",
        "content": { "application/openmetrics-text": { "schema": { "type": "string" } } } } });
    let metrics = writer.operation("Metrics since the start of the server", &[], None, text);
    paths.insert("/metrics".to_owned(), json!({ "get": metrics }));
    let object = |description: &str| json!({ "description": description, "content": { "application/json": { "schema": { "type": "object" } } } });
    let open = |mut operation: Value| {
        put(&mut operation, "security", json!([]));
        json!({ "get": operation })
    };
    let alive = writer.operation("Whether the process lives", &[], None, json!({ "200": object("The process lives") }));
    paths.insert("/healthz".to_owned(), open(alive));
    let answers = json!({ "200": object("Runs are accepted"), "503": object("The server is stopping, or its store can't be read") });
    let ready = writer.operation("Whether runs are accepted", &[], None, answers);
    paths.insert("/readyz".to_owned(), open(ready));
    let answers = json!({ "200": object("OpenAPI 3.1") });
    let this = writer.operation("This description", &[], None, answers);
    paths.insert("/openapi.json".to_owned(), open(this));
}
