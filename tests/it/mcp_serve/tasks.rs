//! Calls that are answered with a task, over stdio and over HTTP: how far it is, what it asks, and its end.

use serde_json::{Value, json};

use super::client::StdioClient;
use super::http::until;
use super::{calling, modern, offer, project, runs};
use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, wait_poll_interval, with};
use crate::serve::client::Serving;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a client says that takes tasks, and can ask its user.
fn taking(more: Value) -> Value {
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": {}, "extensions": { TASKS: {} } });
    with(params, more)
}

/// A client over one of the two ways.
enum TaskClient {
    Stdio(StdioClient, u32),
    Http(Serving, String),
}

impl TaskClient {
    fn both(place: &Place) -> [Self; 2] {
        [Self::Stdio(StdioClient::start(place, &[]), 0), Self::Http(Serving::start(place, &[]), String::new())]
    }

    /// The answer to a request, whole.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Stdio(client, number) => {
                *number += 1;
                client.ask(&number.to_string(), method, params)
            }
            Self::Http(server, token) => {
                let bearer = format!("Bearer {token}");
                let name =
                    params.get("name").or(params.get("taskId")).and_then(Value::as_str).unwrap_or_default().to_owned();
                let headers = [
                    ("accept", "application/json, text/event-stream"),
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", method),
                    ("mcp-name", &name),
                    ("authorization", &bearer),
                ];
                let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
                server.send("POST", "/mcp", &headers, message.to_string().as_bytes()).json()
            }
        }
    }

    fn call(&mut self, name: &str) -> Value {
        self.ask("tools/call", taking(json!({ "name": name })))["result"].clone()
    }

    fn get(&mut self, task: &Value) -> Value {
        let got = self.ask("tasks/get", taking(json!({ "taskId": task })))["result"].clone();
        assert_eq!((&got["resultType"], &got["taskId"]), (&json!("complete"), task), "{got}");
        assert!(got.get("requestState").is_none(), "{got}");
        got
    }

    /// How far a task is, once it has this status.
    fn until(&mut self, task: &Value, status: &str) -> Value {
        loop {
            let got = self.get(task);
            if got["status"] == status {
                return got;
            }
            assert_eq!(got["status"], "working", "{got}");
            wait_poll_interval();
        }
    }

    fn update(&mut self, task: &Value, responses: Value) -> Value {
        self.ask("tasks/update", taking(json!({ "taskId": task, "inputResponses": responses })))
    }
}

fn accepted(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[test]
fn a_call_that_takes_time_is_answered_with_a_task_which_ends_as_its_run_does() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&tools, false);
    offer(&place, "quick", &[complete(json!("done"))], json!({}));
    offer(&place, "fails", &[], json!({}));
    project(&place, &["slow", "quick", "fails"]);
    let mut tasks = Vec::new();
    let mut clients = TaskClient::both(&place);
    for client in &mut clients {
        let discovered = client.ask("server/discover", modern(json!({})))["result"]["capabilities"].clone();
        assert_eq!((&discovered["extensions"], discovered.get("tasks")), (&json!({ TASKS: {} }), None));
        // What ends at once, or fails, is no task.
        let quick = client.call("quick");
        assert_eq!((&quick["resultType"], &quick["structuredContent"]["answer"]), (&json!("complete"), &json!("done")));
        assert_eq!(client.call("fails")["isError"], true);
        let task = client.call("slow");
        assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
        assert!(task["createdAt"].as_str().unwrap().starts_with("20") && task["lastUpdatedAt"].is_string(), "{task}");
        assert!(task["ttlMs"].is_null() && task["pollIntervalMs"].as_u64().unwrap() > 0, "{task}");
        assert!(task.get("content").is_none() && task.get("result").is_none(), "{task}");
        let working = client.get(&task["taskId"]);
        assert_eq!((&working["status"], working.get("result")), (&json!("working"), None), "{working}");
        tasks.push(task["taskId"].clone());
    }
    gate.open();
    for (client, task) in clients.iter_mut().zip(&tasks) {
        let done = client.until(task, "completed");
        let result = &done["result"];
        assert_eq!((&result["isError"], &result["resultType"]), (&json!(false), &json!("complete")), "{done}");
        assert_eq!(
            (&result["structuredContent"]["answer"], &result["structuredContent"]["run_id"]),
            (&json!("looked"), task)
        );
        // To cancel what has ended changes nothing.
        let acknowledged = client.ask("tasks/cancel", taking(json!({ "taskId": task })))["result"].clone();
        assert_eq!((&acknowledged["resultType"], acknowledged.get("taskId")), (&json!("complete"), None));
        assert_eq!(client.get(task)["status"], "completed");
        for (method, more) in
            [("tasks/get", json!({})), ("tasks/update", json!({ "inputResponses": {} })), ("tasks/cancel", json!({}))]
        {
            let unknown = client.ask(method, taking(with(more.clone(), json!({ "taskId": "slow-none" }))));
            assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
            let undeclared = client.ask(method, modern(with(more, json!({ "taskId": task }))));
            let needed = &undeclared["error"]["data"]["requiredCapabilities"]["extensions"];
            assert_eq!((&undeclared["error"]["code"], needed), (&json!(-32021), &json!({ TASKS: {} })), "{undeclared}");
        }
        assert_eq!(client.ask("tasks/list", taking(json!({})))["error"]["code"], -32601);
    }
    // Who takes no tasks waits for the run.
    let given = clients[1].ask("tools/call", modern(json!({ "name": "slow" })))["result"].clone();
    assert_eq!((&given["resultType"], &given["structuredContent"]["answer"]), (&json!("complete"), &json!("looked")));
}

#[test]
fn what_a_task_asks_is_answered_one_by_one_and_a_wrong_answer_is_none() {
    let place = Place::new();
    project(&place, &[]);
    let form = |id: &str, kind: &str| {
        let fields = json!([{ "name": id, "type": kind }]);
        json!({ "type": "PbotForm", "id": format!("ask_{id}"), "properties": { "question": format!("The {id}?"), "fields": fields } })
    };
    let steps = json!([form("amount", "integer"), form("day", "date")]);
    let output = json!({ "amount": "@amount", "day": "@day" });
    place.json(
        "workflows/claim.json",
        &json!({ "name": "claim", "description": "Claims.", "definition": { "actions": steps, "output": output } }),
    );
    for mut client in TaskClient::both(&place) {
        let task = client.call("claim");
        assert_eq!(task["resultType"], "task", "{task}");
        let id = task["taskId"].clone();
        let asked = client.until(&id, "input_required");
        let requests = asked["inputRequests"].as_object().unwrap().clone();
        let (first, request) = requests.iter().next().unwrap();
        assert_eq!((requests.len(), &request["method"]), (1, &json!("elicitation/create")), "{asked}");
        assert_eq!(request["params"]["message"], "The amount?");
        // An answer that does not fit is not delivered: the question is open, under its key.
        let wrong = client.update(&id, json!({ first: accepted(json!({ "amount": "x" })) }));
        assert!(wrong["error"]["code"] == -32602 && wrong.to_string().contains("amount"), "{wrong}");
        assert_eq!(client.get(&id)["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), [first]);
        let passed_over = client.update(&id, json!({ "other": 7 }));
        assert_eq!(passed_over["result"]["resultType"], "complete", "{passed_over}");
        let taken = client.update(&id, json!({ first: accepted(json!({ "amount": 7 })) }));
        assert_eq!(
            (&taken["result"]["resultType"], taken["result"].get("status")),
            (&json!("complete"), None),
            "{taken}"
        );
        let second = loop {
            let asked = client.until(&id, "input_required");
            let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            if key != *first {
                break key;
            }
        };
        // The same again is an answer to a question that nobody asks any more.
        let again = client.update(&id, json!({ first: accepted(json!({ "amount": 8 })) }));
        assert_eq!(again["result"]["resultType"], "complete", "{again}");
        client.update(&id, json!({ &second: accepted(json!({ "day": "2026-11-30" })) }));
        let done = client.until(&id, "completed");
        assert_eq!(
            done["result"]["structuredContent"]["answer"],
            json!({ "amount": 7, "day": "2026-11-30" }),
            "{done}"
        );
    }
}

#[test]
fn an_approval_of_a_task_is_put_to_nobody_and_a_cancelled_one_ends() {
    let tools = Server::new(Vec::new());
    let place = calling(&tools, true);
    for mut client in TaskClient::both(&place) {
        let task = client.call("slow")["taskId"].clone();
        let waits = client.get(&task);
        assert_eq!((&waits["status"], waits.get("inputRequests")), (&json!("working"), None), "{waits}");
        let said = waits["statusMessage"].as_str().unwrap();
        assert!(said.contains("decided elsewhere") && !said.contains("approve") && !said.contains("look"), "{said}");
        let acknowledged = client.ask("tasks/cancel", taking(json!({ "taskId": task })))["result"].clone();
        assert_eq!((&acknowledged["resultType"], acknowledged.get("status")), (&json!("complete"), None));
        let cancelled = client.until(&task, "cancelled");
        assert!(cancelled.get("result").is_none() && cancelled.get("error").is_none(), "{cancelled}");
        let again = client.ask("tasks/cancel", taking(json!({ "taskId": task })));
        assert_eq!(again["result"]["resultType"], "complete", "{again}");
    }
    assert!(tools.requests().is_empty());
}

#[test]
fn a_task_is_that_of_the_token_which_began_it_and_its_headers_name_it() {
    let place = Place::new();
    offer(
        &place,
        "asks",
        &[think("__pause_for_human__", json!({ "question": "Which?" })), complete(json!("ok"))],
        json!({}),
    );
    project(&place, &["asks"]);
    let token = |name: &str, scopes: &[&str]| {
        let scopes: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", scope]).collect();
        let made = place.call(&[&["token", name], scopes.as_slice()].concat());
        let entry: Value = serde_json::from_str(made.stderr.lines().nth(1).unwrap()).unwrap();
        (made.stdout.trim().to_owned(), entry)
    };
    let (one, one_entry) = token("one", &["run", "decide"]);
    let (two, two_entry) = token("two", &["run", "decide"]);
    let (three, three_entry) = token("three", &["run"]);
    let settings: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    place.json("loopctl.json", &with(settings, json!({ "serve": { "tokens": [one_entry, two_entry, three_entry] } })));
    let mut client = TaskClient::Http(Serving::start(&place, &[]), one.clone());
    let of = |client: &mut TaskClient, token: &str| {
        let TaskClient::Http(_, held) = client else { panic!() };
        token.clone_into(held);
    };
    let task = client.call("asks")["taskId"].clone();
    let asked = client.until(&task, "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    of(&mut client, &two);
    for (method, more) in
        [("tasks/get", json!({})), ("tasks/update", json!({ "inputResponses": {} })), ("tasks/cancel", json!({}))]
    {
        let foreign = client.ask(method, taking(with(more, json!({ "taskId": task }))));
        assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    }
    // Who may not decide is asked nothing.
    of(&mut client, &three);
    let own = client.call("asks")["taskId"].clone();
    let waits = client.get(&own);
    assert_eq!((&waits["status"], waits.get("inputRequests")), (&json!("working"), None), "{waits}");
    of(&mut client, &one);
    let TaskClient::Http(server, _) = &client else { panic!() };
    let bearer = format!("Bearer {one}");
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": taking(json!({ "taskId": task })) });
    for name in [own.as_str().unwrap(), ""] {
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tasks/get"),
            ("mcp-name", name),
            ("authorization", &*bearer),
        ];
        let refused = server.send("POST", "/mcp", &headers, message.to_string().as_bytes());
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32020)), "{name}");
    }
    client.update(&task, json!({ key: accepted(json!({ "answer": "main" })) }));
    assert_eq!(client.until(&task, "completed")["result"]["structuredContent"]["answer"], "ok");
}

#[test]
fn a_task_of_a_process_that_was_killed_is_taken_up_by_who_asks_for_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| match number {
        0 => Answer::json("{}").behind(&held),
        _ => Answer::json("{}"),
    });
    let place = calling(&tools, false);
    let path = place.path().join("loops/slow.json");
    let mut look: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    look["actions"][0]["idempotent"] = json!(true);
    place.json("loops/slow.json", &look);
    let mut first = StdioClient::start(&place, &[]);
    let task = first.ask("1", "tools/call", taking(json!({ "name": "slow" })))["result"]["taskId"].clone();
    tools.wait_for(1);
    first.kill();
    gate.open();
    let mut client = TaskClient::Stdio(StdioClient::start(&place, &[]), 0);
    let done = client.until(&task, "completed");
    assert_eq!(done["result"]["structuredContent"]["answer"], "looked", "{done}");
    assert_eq!(runs(&place).len(), 1);
    let TaskClient::Stdio(client, _) = client else { panic!() };
    assert_eq!(client.end(), Vec::<Value>::new());
    until(|| runs(&place)[0].1 == "completed");
}
