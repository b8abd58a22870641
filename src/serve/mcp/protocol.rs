//! The two ways to open: the older revisions with `initialize`, the newest one with what each request says of itself in `_meta`. All
//! requests are answered here but those that take time.

use serde_json::{Map, Value, json};

use super::MAX_ID_BYTES;
use super::client_message::{
    ClientRequest, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, McpRefusal, UNSUPPORTED_VERSION, notification,
};
use crate::diagnostic::nearest;
use crate::drive::start::Start;
use crate::language::mcp::McpProtocol;
use crate::serve::start_key::{StartKey, StartRequest};

/// The keys of `_meta` that the protocol names.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The extension by which a call that takes time is answered with a task.
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The key of `_meta` that names the run which a call starts: the same again is the same run.
const IDEMPOTENCY_KEY: &str = "loopctl/idempotency-key";
/// The most bytes of an idempotency key.
const MAX_KEY_BYTES: usize = 255;
/// The most bytes of the id of a task.
const MAX_TASK_BYTES: usize = 255;
/// The most bytes of a state that a client sends back.
const MAX_STATE_BYTES: usize = 4_096;
/// How long a client may take a list for fresh, in milliseconds.
const FRESH_MS: u32 = 60_000;

/// How a request is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientEra {
    /// The revision.
    pub protocol: McpProtocol,
    /// Whether the client can ask its user, in the way of the newest revision.
    pub elicits: bool,
    /// Whether it takes a task for an answer.
    pub tasks: bool,
}

/// Whether a request is the first one of the older way to open.
pub fn opens(request: &ClientRequest) -> bool {
    let is_modern = request.params.get("_meta").is_some_and(|meta| meta.get(VERSION).is_some());
    request.method == "initialize" && !is_modern
}

/// What a request asks for.
#[derive(Debug)]
pub enum McpWork {
    /// It is answered with this result.
    Result(Value),
    /// A loop or workflow is to run.
    Call(Box<ToolRequest>),
    /// A run is asked about that a call was answered with.
    Task(TaskRequest),
    /// A stream of notices about changes, which lasts until it is cancelled.
    Listen {
        /// Whether the client wants to hear that the list of the tools has changed, and it is reported here.
        tools: bool,
    },
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The name of the tool.
    pub name: String,
    /// Its input.
    pub arguments: Map<String, Value>,
    /// What notifications of its progress name; none when the client wants none.
    pub progress_token: Option<Value>,
    /// What names the run.
    pub idempotency_key: Option<String>,
    /// What the client's user answered, when the call was asked about something before.
    pub answered: Option<AnsweredCall>,
}

/// A request about a task.
#[derive(Debug, Clone)]
pub struct TaskRequest {
    /// Its id, which is the run's.
    pub task_id: String,
    /// What is wanted.
    pub act: TaskAct,
}

/// What is wanted of a task.
#[derive(Debug, Clone)]
pub enum TaskAct {
    /// How far it is.
    Get,
    /// It gets the responses of the client's user, by the keys of its questions.
    Update(Map<String, Value>),
    /// It is cancelled.
    Cancel,
}

/// What came of the questions that a call was answered with.
#[derive(Debug, Clone)]
pub struct AnsweredCall {
    /// What stood beside the questions.
    pub state: String,
    /// The responses by the keys of the questions.
    pub responses: Map<String, Value>,
}

impl ToolRequest {
    /// How the run of the loop or workflow of this name is started, when it belongs to no organisation.
    pub fn start(&self, name: &str) -> Start {
        let mut start = Start {
            input: Value::Object(self.arguments.clone()),
            request: Some(StartRequest::Named(name.to_owned()).spelled()),
            ..Start::default()
        };
        if let Some(key) = &self.idempotency_key {
            StartKey::of_text(None, key).name(name, &mut start);
        }
        start
    }
}

impl ClientEra {
    /// How a request is to be answered: as it says itself, else as `initialize` has settled it.
    ///
    /// # Errors
    /// When it says nothing and nothing is settled, or names a revision that is not spoken so.
    pub fn of(request: &ClientRequest, settled: Option<McpProtocol>) -> Result<Self, McpRefusal> {
        let meta = request.params.get("_meta");
        let Some(word) = meta.and_then(|meta| meta.get(VERSION)) else {
            return match (settled, &*request.method) {
                (Some(protocol), _) => Ok(Self { protocol, elicits: false, tasks: false }),
                // An older client may ask at any time whether somebody is there.
                (None, "ping") => Ok(Self { protocol: McpProtocol::November2025, elicits: false, tasks: false }),
                (None, _) => Err(McpRefusal::params(format!(
                    "the request has no {VERSION:?} in `_meta`, and no `initialize` came before it"
                ))),
            };
        };
        let Some(word) = word.as_str() else {
            return Err(McpRefusal::params(format!("{VERSION:?} in `_meta` is a text")));
        };
        let protocol =
            McpProtocol::of(word).filter(|protocol| protocol.is_modern()).ok_or_else(|| unsupported(word))?;
        match meta.and_then(|meta| meta.get(CAPABILITIES)) {
            Some(Value::Object(capabilities)) => {
                let extensions = capabilities.get("extensions");
                let tasks = extensions.and_then(|all| all.get(TASKS)).is_some_and(Value::is_object);
                Ok(Self { protocol, elicits: elicits(capabilities), tasks })
            }
            Some(_) => Err(McpRefusal::params(format!("{CAPABILITIES:?} in `_meta` is an object"))),
            None => Err(McpRefusal::params(format!("the request has no {CAPABILITIES:?} in `_meta`"))),
        }
    }

    /// A result with what every result of this revision says.
    pub fn result(self, mut result: Value) -> Value {
        if let Some(members) = result.as_object_mut().filter(|_| self.protocol.is_modern()) {
            members.entry("resultType").or_insert_with(|| json!("complete"));
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(SERVER.to_owned(), server());
            }
        }
        result
    }

    /// What is asked for. `tools`: those that the client may call, as they are listed. `changes`: whether the list may change.
    ///
    /// # Errors
    /// When nothing here answers it.
    pub fn asked(
        self,
        request: &ClientRequest,
        changes: bool,
        tools: impl FnOnce() -> Vec<Value>,
    ) -> Result<McpWork, McpRefusal> {
        let is_modern = self.protocol.is_modern();
        let result = match &*request.method {
            "ping" if !is_modern => json!({}),
            "server/discover" if is_modern => json!({
                "supportedVersions": spoken(),
                "capabilities": with_extensions(capabilities(changes)),
                "ttlMs": FRESH_MS,
                "cacheScope": "private",
            }),
            "tools/list" => {
                if request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
                    return Err(McpRefusal::params("there is no such `cursor`: the list has one page"));
                }
                let mut list = json!({ "tools": tools() });
                if let Some(members) = list.as_object_mut().filter(|_| is_modern) {
                    members.insert("ttlMs".to_owned(), json!(FRESH_MS));
                    members.insert("cacheScope".to_owned(), json!("private"));
                }
                list
            }
            "tools/call" => return Ok(McpWork::Call(Box::new(called(&request.params)?))),
            "tasks/get" | "tasks/update" | "tasks/cancel" if is_modern => {
                self.must_take_tasks()?;
                return Ok(McpWork::Task(of_task(request)?));
            }
            "subscriptions/listen" if is_modern => {
                let wanted = request.params.get("notifications");
                return match wanted {
                    None => Ok(McpWork::Listen { tools: false }),
                    Some(Value::Object(wanted)) => {
                        if wanted.contains_key("taskIds") {
                            self.must_take_tasks()?;
                        }
                        let tools = wanted.get("toolsListChanged").and_then(Value::as_bool);
                        Ok(McpWork::Listen { tools: changes && tools == Some(true) })
                    }
                    Some(_) => Err(McpRefusal::params("`notifications` is an object")),
                };
            }
            other => {
                let other = brief(other);
                return Err(McpRefusal::new(METHOD_NOT_FOUND, format!("there is no method {other:?} here")));
            }
        };
        Ok(McpWork::Result(self.result(result)))
    }

    /// What is about tasks is for clients that take them.
    fn must_take_tasks(self) -> Result<(), McpRefusal> {
        if self.tasks {
            return Ok(());
        }
        let data = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
        let message = format!("the request does not say in `_meta` that its client has the extension {TASKS:?}");
        Err(McpRefusal { data: Some(data), ..McpRefusal::new(MISSING_CAPABILITY, message) })
    }
}

/// Answers `initialize`: the revision that is spoken from then on, and the result. A revision that is not known here is answered
/// with the newest one that begins so; the client ends the connection if it does not speak that.
///
/// # Errors
/// When it names no revision.
pub fn initialize(request: &ClientRequest) -> Result<(McpProtocol, Value), McpRefusal> {
    let Some(word) = request.params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(McpRefusal::params("`initialize` has a `protocolVersion`, which is a text"));
    };
    let known = McpProtocol::of(word).filter(|protocol| !protocol.is_modern());
    let protocol = known.unwrap_or(McpProtocol::November2025);
    let result =
        json!({ "protocolVersion": protocol.word(), "capabilities": capabilities(false), "serverInfo": server() });
    Ok((protocol, result))
}

/// The revision that a request names in its body.
pub fn named_in_body(request: &ClientRequest) -> Option<&str> {
    request.params.get("_meta")?.get(VERSION)?.as_str()
}

/// The older revision that a header names; none for the newest one, whose requests say it themselves.
///
/// # Errors
/// When it is not spoken here.
pub fn settled_by(word: &str) -> Result<Option<McpProtocol>, McpRefusal> {
    let protocol = McpProtocol::of(word).ok_or_else(|| unsupported(word))?;
    Ok(Some(protocol).filter(|protocol| !protocol.is_modern()))
}

/// That there is no task of this id, or that it is another client's.
pub fn no_such_task(task_id: &str) -> McpRefusal {
    McpRefusal::params(format!("Unknown task: {:?}", brief(task_id)))
}

/// The id of the task that a request is about, as its headers repeat it.
pub fn named_task(request: &ClientRequest) -> Option<&str> {
    let is_about_task = matches!(&*request.method, "tasks/get" | "tasks/update" | "tasks/cancel");
    request.params.get("taskId").filter(|_| is_about_task)?.as_str()
}

/// Reads the parameters of a request about a task.
fn of_task(request: &ClientRequest) -> Result<TaskRequest, McpRefusal> {
    let Some(task_id) = named_task(request).filter(|id| id.len() <= MAX_TASK_BYTES) else {
        return Err(McpRefusal::params(format!("`taskId` is a text of at most {MAX_TASK_BYTES} bytes")));
    };
    let act = match (&*request.method, request.params.get("inputResponses")) {
        ("tasks/get", _) => TaskAct::Get,
        ("tasks/cancel", _) => TaskAct::Cancel,
        (_, Some(Value::Object(responses))) => TaskAct::Update(responses.clone()),
        _ => return Err(McpRefusal::params("`tasks/update` has `inputResponses`, an object")),
    };
    Ok(TaskRequest { task_id: task_id.to_owned(), act })
}

/// That an id is in use.
pub fn id_in_use() -> McpRefusal {
    McpRefusal::new(INVALID_REQUEST, "a request with this id is under way")
}

/// That there is no tool of this name, with the nearest one.
pub fn no_such_tool<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> McpRefusal {
    let near = nearest(&brief(name), names).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    McpRefusal::params(format!("Unknown tool: {:?}{near}", brief(name)))
}

/// The beginning of a word of a client: what is sent back to it is bounded.
fn brief(word: &str) -> String {
    word.chars().take(100).collect()
}

/// The first notice of a stream: which of the changes that it asks for are reported. `tools`: those of the list of the tools.
pub fn listening(id: &Value, tools: bool) -> Value {
    let reported = if tools { json!({ "toolsListChanged": true }) } else { json!({}) };
    let params = json!({ "_meta": { SUBSCRIPTION: id }, "notifications": reported });
    notification("notifications/subscriptions/acknowledged", &params)
}

/// That the list of the tools has changed, in the stream of this id.
pub fn tools_changed(id: &Value) -> Value {
    notification("notifications/tools/list_changed", &json!({ "_meta": { SUBSCRIPTION: id } }))
}

/// The result of a stream that ends.
pub fn listened(id: &Value) -> Value {
    json!({ "_meta": { SUBSCRIPTION: id } })
}

/// The revisions, the newest first.
fn spoken() -> Vec<&'static str> {
    McpProtocol::ALL.into_iter().rev().map(McpProtocol::word).collect()
}

fn unsupported(word: &str) -> McpRefusal {
    McpRefusal {
        data: Some(json!({ "supported": spoken(), "requested": brief(word) })),
        ..McpRefusal::new(UNSUPPORTED_VERSION, "this revision of the protocol is not spoken here in this way")
    }
}

fn capabilities(changes: bool) -> Value {
    if changes { json!({ "tools": { "listChanged": true } }) } else { json!({ "tools": {} }) }
}

/// The older revisions know no extensions.
fn with_extensions(mut capabilities: Value) -> Value {
    if let Some(members) = capabilities.as_object_mut() {
        members.insert("extensions".to_owned(), json!({ TASKS: {} }));
    }
    capabilities
}

fn server() -> Value {
    json!({ "name": "loopctl", "version": env!("CARGO_PKG_VERSION") })
}

/// Reads the parameters of `tools/call`.
fn called(params: &Map<String, Value>) -> Result<ToolRequest, McpRefusal> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(McpRefusal::params("`tools/call` has a `name`, which is a text"));
    };
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(McpRefusal::params("`arguments` is an object")),
    };
    let answered = answered(params)?;
    let meta = params.get("_meta");
    let progress_token = match meta.and_then(|meta| meta.get("progressToken")) {
        None | Some(Value::Null) => None,
        Some(token @ (Value::String(_) | Value::Number(_))) if token.to_string().len() <= MAX_ID_BYTES => {
            Some(token.clone())
        }
        Some(_) => {
            let why = format!("`progressToken` is a text or a number of at most {MAX_ID_BYTES} bytes");
            return Err(McpRefusal::params(why));
        }
    };
    let idempotency_key = match meta.and_then(|meta| meta.get(IDEMPOTENCY_KEY)) {
        None | Some(Value::Null) => None,
        Some(key) => Some(key.as_str().filter(|key| is_key(key)).map(str::to_owned).ok_or_else(|| {
            McpRefusal::params(format!(
                "{IDEMPOTENCY_KEY:?} is a text of 1 to {MAX_KEY_BYTES} letters, digits and signs"
            ))
        })?),
    };
    Ok(ToolRequest { name: name.to_owned(), arguments, progress_token, idempotency_key, answered })
}

/// Reads what a client's user answered.
fn answered(params: &Map<String, Value>) -> Result<Option<AnsweredCall>, McpRefusal> {
    let state = match params.get("requestState") {
        None if params.contains_key("inputResponses") => {
            return Err(McpRefusal::params("`inputResponses` come with the `requestState` of the questions"));
        }
        None => return Ok(None),
        Some(Value::String(state)) if state.len() <= MAX_STATE_BYTES => state.clone(),
        Some(_) => return Err(McpRefusal::params("`requestState` is the text that came with the questions")),
    };
    match params.get("inputResponses") {
        None => Ok(Some(AnsweredCall { state, responses: Map::new() })),
        Some(Value::Object(responses)) => Ok(Some(AnsweredCall { state, responses: responses.clone() })),
        Some(_) => Err(McpRefusal::params("`inputResponses` is an object")),
    }
}

/// Whether a client can ask its user with a form. One that says nothing more can.
fn elicits(capabilities: &Map<String, Value>) -> bool {
    let modes = capabilities.get("elicitation").and_then(Value::as_object);
    modes.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

/// The same as of the header `Idempotency-Key`.
fn is_key(key: &str) -> bool {
    (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~')) && key.trim() == key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: Value) -> ClientRequest {
        let Value::Object(params) = params else { panic!() };
        ClientRequest { id: json!(1), method: method.to_owned(), params }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a test writes its values where it passes them")]
    fn modern(more: Value) -> Value {
        let mut params = json!({ "_meta": { VERSION: "2026-07-28", CAPABILITIES: {} } });
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    }

    #[test]
    fn a_request_says_how_it_is_to_be_answered_or_initialize_has() {
        let of = |params: Value, settled| ClientEra::of(&request("tools/list", params), settled);
        assert_eq!(of(json!({}), None).unwrap_err().code, -32602);
        assert_eq!(of(json!({}), Some(McpProtocol::June2025)).unwrap().protocol, McpProtocol::June2025);
        assert_eq!(of(modern(json!({})), Some(McpProtocol::June2025)).unwrap().protocol, McpProtocol::July2026);
        for odd in
            [json!({ VERSION: "2026-07-28" }), json!({ VERSION: 7 }), json!({ VERSION: "2026-07-28", CAPABILITIES: 7 })]
        {
            assert_eq!(of(json!({ "_meta": odd }), None).unwrap_err().code, -32602, "{odd}");
        }
        // The older revisions are not spoken without `initialize`.
        let old = of(json!({ "_meta": { VERSION: "2025-11-25", CAPABILITIES: {} } }), None).unwrap_err();
        assert_eq!((old.code, &old.data.unwrap()["supported"][0]), (-32022, &json!("2026-07-28")));
    }

    #[test]
    fn initialize_settles_a_revision_that_begins_so() {
        let of = |word: &str| initialize(&request("initialize", json!({ "protocolVersion": word }))).unwrap().0;
        assert_eq!(of("2024-11-05"), McpProtocol::November2024);
        assert_eq!(of("2026-07-28"), McpProtocol::November2025);
        assert_eq!(of("1999-01-01"), McpProtocol::November2025);
        assert!(initialize(&request("initialize", json!({}))).is_err());
    }

    #[test]
    fn results_of_the_newest_revision_say_what_they_are_and_others_do_not() {
        let ask = |method: &str, params, settled| {
            let request = request(method, params);
            ClientEra::of(&request, settled).and_then(|era| era.asked(&request, true, || vec![json!({ "name": "a" })]))
        };
        let Ok(McpWork::Result(list)) = ask("tools/list", modern(json!({})), None) else { panic!() };
        assert_eq!(list["resultType"], "complete");
        assert_eq!((&list["tools"][0]["name"], &list["cacheScope"]), (&json!("a"), &json!("private")));
        let legacy = Some(McpProtocol::November2025);
        let Ok(McpWork::Result(list)) = ask("tools/list", json!({}), legacy) else { panic!() };
        assert_eq!(list, json!({ "tools": [{ "name": "a" }] }));
        for (method, params, settled) in [
            ("ping", modern(json!({})), None),
            ("server/discover", json!({}), legacy),
            ("subscriptions/listen", json!({}), legacy),
            ("resources/list", json!({}), legacy),
        ] {
            assert_eq!(ask(method, params, settled).unwrap_err().code, METHOD_NOT_FOUND, "{method}");
        }
    }

    #[test]
    fn a_request_about_a_task_is_of_a_client_that_takes_them() {
        let ask = |method: &str, more: Value, takes: bool| {
            let mut params = modern(more);
            if takes {
                params["_meta"][CAPABILITIES] = json!({ "extensions": { TASKS: {} } });
            }
            let request = request(method, params);
            ClientEra::of(&request, None).and_then(|era| era.asked(&request, true, Vec::new))
        };
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": "r", "inputResponses": {} });
            assert!(matches!(ask(method, params.clone(), true), Ok(McpWork::Task(task)) if task.task_id == "r"));
            let refusal = ask(method, params, false).unwrap_err();
            let needed = &refusal.data.unwrap()["requiredCapabilities"]["extensions"][TASKS];
            assert_eq!((refusal.code, needed), (MISSING_CAPABILITY, &json!({})));
            assert_eq!(ask(method, json!({ "taskId": "x".repeat(256) }), true).unwrap_err().code, -32602);
        }
        assert_eq!(ask("tasks/update", json!({ "taskId": "r" }), true).unwrap_err().code, -32602);
        assert_eq!(ask("tasks/list", json!({}), true).unwrap_err().code, METHOD_NOT_FOUND);
        let listen = |takes| ask("subscriptions/listen", json!({ "notifications": { "taskIds": ["r"] } }), takes);
        assert_eq!(listen(false).unwrap_err().code, MISSING_CAPABILITY);
        assert!(listen(true).is_ok());
    }

    #[test]
    fn a_call_says_which_parameter_can_not_be_taken() {
        let of = |params: Value| called(params.as_object().unwrap());
        let call = of(json!({ "name": "a", "_meta": { "progressToken": 7, IDEMPOTENCY_KEY: "k 1" } })).unwrap();
        assert_eq!((call.progress_token, call.idempotency_key.as_deref()), (Some(json!(7)), Some("k 1")));
        for (params, part) in [
            (json!({}), "name"),
            (json!({ "name": "a", "arguments": [] }), "arguments"),
            (json!({ "name": "a", "requestState": 7 }), "requestState"),
            (json!({ "name": "a", "inputResponses": {} }), "requestState"),
            (json!({ "name": "a", "requestState": "x", "inputResponses": 7 }), "inputResponses"),
            (json!({ "name": "a", "_meta": { "progressToken": {} } }), "progressToken"),
            (json!({ "name": "a", "_meta": { "progressToken": "x".repeat(300) } }), "progressToken"),
            (json!({ "name": "a", "_meta": { IDEMPOTENCY_KEY: "" } }), IDEMPOTENCY_KEY),
            (json!({ "name": "a", "_meta": { IDEMPOTENCY_KEY: "é" } }), IDEMPOTENCY_KEY),
        ] {
            let refusal = of(params).unwrap_err();
            assert!(refusal.code == -32602 && refusal.message.contains(part), "{refusal:?}");
        }
    }
}
